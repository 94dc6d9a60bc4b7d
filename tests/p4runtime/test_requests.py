"""Write requests as a whole: checks before their updates, and batches of table entries compared with single updates."""

from __future__ import annotations

from typing import Any

import pytest
from device_bench import Bench, make_bench
from hypothesis import given, settings
from hypothesis import strategies as st
from raw import DELETE, INSERT, MODIFY, Raw, exact, failures, lpm, optional, range_, read_entries, request, ternary

from holdfast.p4runtime import P4RuntimeError
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4


def bench_of() -> Bench:
    """Return a bench whose device has basic.p4 and a primary client."""
    bench = make_bench()
    bench.primary()
    return bench


def update(kind: int, entry: Any) -> Any:
    return p4.Update(type=kind, entity=p4.Entity(table_entry=entry))


def test_a_request_is_checked_before_its_updates() -> None:
    bench = bench_of()
    insert = update(INSERT, Raw(bench.index).route())
    for wrong, code in (
        (request(insert, election_id=2), "PERMISSION_DENIED"),
        (request(insert, election_id=None), "PERMISSION_DENIED"),
        (request(insert, role="other"), "NOT_FOUND"),
        (request(insert, device_id=2), "NOT_FOUND"),
        (request(insert, atomicity=7), "INVALID_ARGUMENT"),
    ):
        for call in (bench.device.write, lambda r: bench.device.write_serialized(r.SerializeToString())):
            with pytest.raises(P4RuntimeError) as e:
                call(wrong)
            assert e.value.code == code
    with pytest.raises(P4RuntimeError, match="no WriteRequest"):
        bench.device.write_serialized(b"\xff")


def test_nothing_of_a_request_happens_that_cannot_be_decoded() -> None:
    bench = bench_of()
    raw = Raw(bench.index)
    good = request(update(INSERT, raw.route()))
    # A second update (field 4) that is no message.
    with pytest.raises(P4RuntimeError, match="no WriteRequest"):
        bench.device.write_serialized(good.SerializeToString() + bytes([4 << 3 | 2, 1, 0xFF]))
    assert state(bench) == state(bench_of())


values = st.binary(min_size=0, max_size=5)
small = st.integers(min_value=0, max_value=3)


def matches_of(table: str) -> st.SearchStrategy[list[Any]]:
    """Generate matches for a table, most of them valid, from so few values that entries often coincide."""
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
    info = raw.index.tables[table]
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


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_batch_is_its_updates_one_by_one(data: st.DataObject) -> None:
    """Check that a batch has the outcome of its updates sent one by one, word for word, and leaves the same state.

    An atomic batch makes all of its updates or none.
    """
    together, alone = bench_of(), bench_of()
    raw = Raw(together.index)
    for _ in range(data.draw(st.integers(1, 5))):
        batch = data.draw(st.lists(updates(raw), min_size=1, max_size=4))
        before = state(together)
        refused = failures(together.device, *batch, atomicity=data.draw(st.integers(1, 2)))
        if refused:
            assert len(refused) == len(batch)
            assert state(together) == before
            outcome = failures(together.device, *batch)
            assert outcome
        else:
            outcome = []
        one_by_one = [failures(alone.device, single) for single in batch]
        assert [(f.index, f.code, f.message) for f in outcome] == [
            (index, f.code, f.message) for index, found in enumerate(one_by_one) for f in found
        ]
        assert state(together) == state(alone)
