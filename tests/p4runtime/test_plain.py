"""Plain requests travel as bytes, all others through protobuf; their results are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import REAL_CORE, Bench, make_bench
from hypothesis import given, settings
from hypothesis import strategies as st
from raw import DELETE, INSERT, MODIFY, Raw, exact, failures, lpm, optional, range_, read_entries, request, ternary

from holdfast.p4runtime import P4RuntimeError
from holdfast.p4runtime.pipeline import Pipeline
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

pytestmark = pytest.mark.skipif(not REAL_CORE, reason="the native core is not built (make test builds it)")


def bench_of(*, plain: bool) -> Bench:
    """A device with basic.p4; without ``plain`` it decodes every request."""
    bench = make_bench("real")
    bench.primary()
    if not plain:
        bench.device._running._plain = None  # type: ignore[union-attr]
    return bench


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request was dealt with as bytes."""
    seen: list[bool] = []

    def spy(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            seen.append(result is not None)
            return result

        return call

    monkeypatch.setattr(Pipeline, "write_plain", spy(Pipeline.write_plain))
    monkeypatch.setattr(Pipeline, "read_plain", spy(Pipeline.read_plain))
    return seen


def update(kind: int, entry: Any) -> Any:
    return p4.Update(type=kind, entity=p4.Entity(table_entry=entry))


def test_what_is_plain(taken: list[bool]) -> None:
    bench = bench_of(plain=True)
    raw = Raw(bench.index)
    routes = [raw.route(bytes([10, i, 0, 0]), 16) for i in range(5)]
    assert failures(bench.device, *(update(INSERT, r) for r in routes)) == []
    assert failures(bench.device, *(update(MODIFY, r) for r in routes), atomicity=1) == []
    assert read_entries(bench.device, p4.TableEntry(table_id=routes[0].table_id)) == routes
    assert failures(bench.device, *(update(DELETE, r) for r in routes), atomicity=2) == []
    assert taken == [True] * 4


def test_what_is_not(taken: list[bool]) -> None:
    bench = bench_of(plain=True)
    raw = Raw(bench.index)
    default = raw.entry("ipv4_lpm", action=raw.action("forward", b"\1", b"\2"), is_default_action=True)
    assert failures(bench.device, update(MODIFY, default)) == []
    assert failures(bench.device, update(INSERT, raw.route(metadata=b"m"))) == []
    # Metadata is kept beside the switch, so from now on nothing is plain.
    assert failures(bench.device, update(DELETE, raw.route())) == []
    assert taken == [False] * 3
    assert failures(bench.device, update(INSERT, raw.route())) == []
    assert taken == [False] * 3 + [True]


def test_a_plain_request_is_checked_like_any_other() -> None:
    bench = bench_of(plain=True)
    plain = update(INSERT, Raw(bench.index).route())
    for wrong, code in (
        (request(plain, election_id=2), "PERMISSION_DENIED"),
        (request(plain, election_id=None), "PERMISSION_DENIED"),
        (request(plain, role="other"), "NOT_FOUND"),
        (request(plain, device_id=2), "NOT_FOUND"),
        (request(plain, atomicity=7), "INVALID_ARGUMENT"),
    ):
        for call in (bench.device.write, lambda r: bench.device.write_serialized(r.SerializeToString())):
            with pytest.raises(P4RuntimeError) as e:
                call(wrong)
            assert e.value.code == code
    with pytest.raises(P4RuntimeError, match="no WriteRequest"):
        bench.device.write_serialized(b"\xff")


values = st.binary(min_size=0, max_size=5)
small = st.integers(min_value=0, max_value=3)


def matches_of(table: str) -> st.SearchStrategy[list[Any]]:
    """Matches, most of them right, drawn from so few that entries meet again."""
    few = st.sampled_from([b"\0", b"\1", b"\x0a\0\0\0", b"\0\x0a\0\0\0", b"\x0a\1\0\0", b"\xff"]) | values
    if table == "ipv4_lpm":
        one = st.builds(lpm, st.just(1), few, st.sampled_from([8, 16, 32, 0, 33]))
    elif table == "acl":
        one = st.one_of(
            st.builds(ternary, st.just(1), few, few),
            st.builds(range_, st.just(2), few, few),
            st.builds(optional, st.just(3), few),
        )
    else:
        one = st.builds(exact, st.just(1), few)
    return st.lists(one, max_size=3) | st.lists(one, min_size=1, max_size=1)


@st.composite
def updates(draw: st.DrawFn, raw: Raw) -> Any:
    table = draw(st.sampled_from([t.alias for t in raw.index.tables]))
    info = raw.index.table(table)
    entry = p4.TableEntry(table_id=info.id, match=draw(matches_of(table)))
    if info.needs_priority or draw(st.sampled_from([False] * 9 + [True])):
        entry.priority = draw(st.sampled_from([1, 1, 2, 0, -1]))
    if draw(st.sampled_from([True] * 9 + [False])):
        action = draw(st.sampled_from(sorted(info.actions, key=lambda a: a.id)))
        entry.action.action.action_id = action.id
        for param in action.params:
            value = draw(st.sampled_from([b"\1", b"\0\2"]) | values)
            entry.action.action.params.add(param_id=param.id, value=value)
    rare = draw(st.sampled_from([""] * 20 + ["metadata", "is_default_action", "counter_data", "is_const"]))
    if rare == "metadata":
        entry.metadata = b"m"
    elif rare == "counter_data":
        entry.counter_data.packet_count = 5
    elif rare:
        setattr(entry, rare, True)
    return update(draw(st.sampled_from([INSERT, INSERT, INSERT, MODIFY, DELETE, 0])), entry)


def state(bench: Bench) -> list[Any]:
    found = []
    for table in bench.index.tables:
        wanted = p4.TableEntry(table_id=table.id)
        found += read_entries(bench.device, wanted)
        wanted.counter_data.SetInParent()
        found += read_entries(bench.device, wanted)
    return found


@settings(max_examples=60)
@given(st.data())
def test_both_ways_agree(data: st.DataObject) -> None:
    """On every update's outcome, word for word, and on what is there in the end."""
    with_bytes, decoded = bench_of(plain=True), bench_of(plain=False)
    raw = Raw(with_bytes.index)
    for _ in range(data.draw(st.integers(1, 5))):
        batch = data.draw(st.lists(updates(raw), max_size=4))
        atomicity = data.draw(st.integers(0, 2))
        outcomes = [failures(b.device, *batch, atomicity=atomicity) for b in (with_bytes, decoded)]
        assert outcomes[0] == outcomes[1]
        assert state(with_bytes) == state(decoded)
