"""Metrics as text: byte for byte what gateways and collectors have always shown, and nothing that a name can break."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Histogram, Metric
from prometheus_client.parser import text_string_to_metric_families

from holdfast.apps.telemetry import metrics as collector_metrics
from holdfast.apps.telemetry.collector import Collector
from holdfast.apps.telemetry.test_collector import GOOD, md, report
from holdfast.operations import exposition, pages
from holdfast.subscribers import metrics as gateway_metrics

EXPECTED = Path(__file__).parent
"""Has a page for each program, written by the code before there were families."""


class Logins(SimpleNamespace):
    """Logins, of which there are five."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 5


def collector() -> Collector:
    """Return a collector that has seen reports, also of drops, of congestion and malformed ones."""
    found = Collector()
    for number, payload in enumerate(
        (
            GOOD,
            md(3, (2, 25), (1, 10), own=(3, 30)),
            md(4, (2, 250_000), (7, 1), own=(3, 7)),
            b"x",
            b"",
            report(9, node=5, bits=0x2000, metadata=(12).to_bytes(4, "big")),
            report(3, in_type=0),
        )
    ):
        found.take(number * 1000, payload)
    found.receive_drops, found.rows_lost = 12, 3
    return found


def gateway() -> tuple[Any, Any, Any, Any]:
    """Return what stands for a gateway, its client of RADIUS, its server of CoA, and its state file."""
    phases = ["network", "network", "authentication"]
    sessions = {at: SimpleNamespace(phase=SimpleNamespace(value=phase)) for at, phase in enumerate(phases)}
    return (
        SimpleNamespace(
            sessions=sessions,
            setups=4,
            events=Counter(opened=7, faults=1),
            refusals=Counter(sessions_per_line=4),
            drops=Counter(overflow=2),
            pool_use=lambda: Counter({"cgn": 17, "business": 1}),
        ),
        SimpleNamespace(
            logins=Logins(under_way=3),
            events=Counter(accepted=9),
            queue=range(6),
            servers=SimpleNamespace(dead_until=lambda accounting: [None, 5.0] if accounting else [5.0, None]),
        ),
        SimpleNamespace(events=Counter(obeyed=2, stale=1)),
        SimpleNamespace(failures=1, dropped=0, damaged=123_456_789),
    )


def gateway_page() -> str:
    """Return the page of :func:`gateway`."""
    return gateway_metrics.text(*gateway())


@pytest.mark.parametrize(
    ("name", "page"), [("collector", lambda: collector_metrics.text(collector())), ("gateway", gateway_page)]
)
def test_the_text_is_what_it_was(name: str, page: Any) -> None:
    assert page() == (EXPECTED / f"{name}_page.txt").read_text(encoding="utf-8")


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the samples of a page by name and labels, as Prometheus' own parser reads them."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(
    st.lists(st.tuples(st.text(), st.text(), st.integers(0, 1 << 70) | st.floats(-1e300, 1e300)), max_size=5),
    st.text(),
)
def test_any_names_and_values_come_back(rows: list[tuple[str, str, float]], about: str) -> None:
    """Checks that a label cannot end its line or its quotes: what is read are the samples that were written, and no others."""
    wanted = {(a, b): value for a, b, value in rows}
    metric = exposition.family("counter", "found_total", about, ("a", "b"), wanted.items())
    page = exposition.text([metric])
    lines = [line for line in page.split("\n") if line and not line.startswith("#")]
    assert len(lines) == len(wanted)
    if about != _shown(about):
        return  # what is said of a family is ours, not a client's
    # Readers other than Prometheus end lines at other characters, too: none gets a line that a name has chosen.
    assert [line for line in page.splitlines() if line and not line.startswith("#")] == lines
    found = samples(page)
    names = {(_shown(a), _shown(b)): value for (a, b), value in wanted.items()}
    assert len(found) == len(names)
    for (a, b), value in names.items():
        assert found["found_total", frozenset({("a", a), ("b", b)})] == pytest.approx(float(value), rel=1e-9)


def _shown(text: str) -> str:
    """Return a name as a page has it: control characters, but for the new line, by their numbers."""
    ends = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u2028", "\u2029"} - {"\n"}
    return "".join(f"U+{ord(letter):04X}" if letter in ends else letter for letter in text)


def test_whole_numbers_have_all_their_digits() -> None:
    page = exposition.text([exposition.single("counter", "octets_total", "Octets.", 123_456_789_012_345_678)])
    assert page.endswith("octets_total 123456789012345678\n")


def test_an_instrument_of_the_library_is_shown() -> None:
    histogram = Histogram("took_seconds", "Time.", ("entity",), buckets=(0.1, 1), registry=None)
    histogram.labels("table_entry").observe(0.5)
    found = samples(exposition.text(histogram.collect()))
    entity = ("entity", "table_entry")
    assert found == {
        ("took_seconds_bucket", frozenset({entity, ("le", "0.1")})): 0,
        ("took_seconds_bucket", frozenset({entity, ("le", "1.0")})): 1,
        ("took_seconds_bucket", frozenset({entity, ("le", "+Inf")})): 1,
        ("took_seconds_count", frozenset({entity})): 1,
        ("took_seconds_sum", frozenset({entity})): 0.5,
    }


def families() -> Iterable[Metric]:
    yield exposition.single("gauge", "alone", "Alone.", 5)
    yield exposition.family("gauge", "up", "Up.", ("port", "interface"), [(("1", "a"), True), (("2", "b"), False)])


def test_json_has_values_by_their_labels() -> None:
    assert exposition.as_json(families()) == {
        "alone": {"labels": [], "values": 5},
        "up": {"labels": ["port", "interface"], "values": {"1": {"a": 1}, "2": {"b": 0}}},
    }
    assert "true" not in json.dumps(exposition.as_json(families()))


JSON = st.recursive(
    st.integers(0, 3) | st.text(max_size=2) | st.booleans(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def merged(target: object, patch: object) -> object:
    """Apply a merge patch as the pseudo-code of RFC 7396, section 2, does."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_the_new_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = pages.merge_patch(old, new)
    assert merged(old, patch) == new
    if old == new:
        assert patch == {}
    assert merged({}, pages.merge_patch(cast("dict[str, Any]", {}), new)) == new
