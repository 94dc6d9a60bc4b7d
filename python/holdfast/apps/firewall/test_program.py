"""The program and its names, and random packets at the program and the model side by side."""

from __future__ import annotations

import re

import pytest

from holdfast._core import Program
from holdfast.apps.firewall import program as names
from holdfast.apps.firewall.tests import differential


@pytest.mark.parametrize("variant", names.VARIANTS)
def test_each_variant_compiles_without_warnings(variant: names.Variant) -> None:
    assert names.compile_firewall(variant).warnings == []


def test_reasons_have_the_numbers_of_the_program() -> None:
    source = (names.HERE / "reasons.p4").read_text()
    declared = re.findall(r"const reason_t (\w+)\s+= (\d+);", source)
    assert [(name.lower(), int(number)) for name, number in declared] == list(
        zip(names.REASONS, range(len(names.REASONS)), strict=True)
    )
    assert f"#define REASONS {len(names.REASONS)}" in source


def test_states_have_the_numbers_of_the_program() -> None:
    source = (names.HERE / "flows.p4").read_text()
    declared = {
        name.lower(): int(number) for name, number in re.findall(r"const flow_state_t (\w+)\s+= (\d+);", source)
    }
    assert declared == {"free": 0, "assured": 8, **names.STATES}


@pytest.fixture(scope="module")
def roomy() -> dict[names.Variant, Program]:
    return {v: names.compile_firewall(v, {"WAY_BITS": "10", "RULES": "64"}) for v in ("routed", "bridged")}


@pytest.mark.parametrize("variant", ["routed", "bridged"])
@pytest.mark.parametrize(("executor", "packets"), [("jit", 7_000), ("interpreter", 3_000)])
def test_random_packets_are_judged_as_the_model_judges_them(
    roomy: dict[names.Variant, Program], variant: names.Variant, executor: differential.Executor, packets: int
) -> None:
    """20,000 packets in all; ``tests/differential.py`` does it with a million."""
    decisions = differential.compare(variant, packets, 3, executor, roomy[variant])
    # It is worth something: much passes, and most reasons occur.
    assert decisions["send"] > packets / 3
    never = {name for name in names.REASONS[1:] if not decisions[name]}
    assert len(never) <= 10, never


@pytest.mark.parametrize(
    "end_us", [2**48, 2**47, 2**64 // 10**6, 2**64], ids=["2^48 us", "2^47 us", "2^64 ps", "2^64 us"]
)
@pytest.mark.parametrize("lead_us", [20_000, 55_000, 90_000])
def test_flows_end_in_time_past_the_end_of_a_clock(
    roomy: dict[names.Variant, Program], end_us: int, lead_us: int
) -> None:
    """The clock passes a number at which a representation of times ends, beside the model, whose times have no end.

    The packets take 110 ms: there are flows of every state when it does.
    """
    differential.compare("routed", 2_000, 3, "jit", roomy["routed"], end_us - lead_us)


def test_a_wrong_model_is_noticed(roomy: dict[names.Variant, Program], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential.Model, "_check_addresses", lambda self, packet: None)
    with pytest.raises(AssertionError, match="model: "):
        differential.compare("routed", 3_000, 3, "jit", roomy["routed"])
