"""The index: lookups, suggestions, and refusal of a P4Info that contradicts itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_bench import HERE, P4INFO, accept

from holdfast import _core
from holdfast.p4runtime import P4InfoIndex, P4RuntimeError
from holdfast.p4runtime.p4data import width_of
from holdfast.p4runtime.p4info import parse_text
from holdfast.p4runtime.stubs import p4info_pb2


def shape(index: P4InfoIndex) -> object:
    """Return the names, widths and sizes in an index, without ids, so that two indices can be compared."""
    tables = {
        t.name: (
            [(f.name, f.width, f.kind) for f in t.fields],
            t.size,
            bool(t.direct_counter_id),
        )
        for t in index.tables
    }
    actions = {a.name: [(p.name, p.width) for p in a.params] for a in index.actions}
    headers = {h.name: [(f.name, f.width) for f in h.fields] for h in index.controller_headers}
    arrays = {(r.name, r.size) for r in index.registers} | {(c.name, c.size, c.unit) for c in index.counters}
    return tables, actions, headers, arrays, [d.name for d in index.digests], [c.name for c in index.direct_counters]


def test_the_compiler_says_the_same(index: P4InfoIndex) -> None:
    compiled = P4InfoIndex.from_text(_core.Program.compile(str(HERE / "basic.p4")).p4info)
    assert shape(compiled) == shape(index)
    for name in ("last_seen", "learn_t"):
        mine = index.registers[name] if name == "last_seen" else index.digests[name]
        theirs = compiled.registers[name] if name == "last_seen" else compiled.digests[name]
        assert mine.type_spec == theirs.type_spec
        assert width_of(mine.type_spec, index.message.type_info) == width_of(
            theirs.type_spec, compiled.message.type_info
        )


@pytest.fixture(scope="module")
def index() -> P4InfoIndex:
    return P4InfoIndex.from_text(P4INFO)


def test_names_aliases_and_endings(index: P4InfoIndex) -> None:
    table = index.tables["BasicIngress.ipv4_lpm"]
    assert index.tables["ipv4_lpm"] is table
    assert index.tables.by_id(table.id) is table
    assert table.fields["hdr.ipv4.dst_addr"] is table.fields["dst_addr"]
    assert [a.alias for a in table.actions] == ["forward", "to_cpu", "multicast", "drop"]
    assert index.actions["forward"].params["port"].width == 9
    assert index.registers["last_seen"].size == 16
    assert index.counters["port_packets"].unit == "both"
    assert index.digests["learn_t"].id
    assert index.packet_in is not None
    assert [f.name for f in index.packet_in.fields] == ["ingress_port", "reason"]


def test_what_tables_are(index: P4InfoIndex) -> None:
    assert not index.tables["ipv4_lpm"].needs_priority
    assert index.tables["acl"].needs_priority


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ipv4_lmp", "did you mean 'BasicIngress.ipv4_lpm'?"),
        ("BasicIngres.acl", "did you mean 'BasicIngress.acl'?"),
        ("zzz", "there are 'BasicIngress.acl'"),
    ],
)
def test_suggestions(index: P4InfoIndex, name: str, text: str) -> None:
    with pytest.raises(P4RuntimeError) as e:
        index.tables[name]
    assert e.value.code == "INVALID_ARGUMENT"
    assert f"no table '{name}'" in str(e.value)
    assert text in str(e.value)


def test_unknown_parts_name_their_owner(index: P4InfoIndex) -> None:
    with pytest.raises(P4RuntimeError, match=r"no match field 'dst' of table 'BasicIngress\.ipv4_lpm'"):
        index.tables["ipv4_lpm"].fields["dst"]
    with pytest.raises(
        P4RuntimeError, match=r"no parameter 'prt' of action 'BasicIngress\.forward'; did you mean 'port'"
    ):
        index.actions["forward"].params["prt"]
    with pytest.raises(P4RuntimeError, match="no table has id 7"):
        index.tables.by_id(7)


def test_ambiguous_ending() -> None:
    text = """
    actions { preamble { id: 1 name: "A.x.go" } }
    actions { preamble { id: 2 name: "A.y.go" } }
    """
    index = P4InfoIndex.from_text(text)
    assert index.actions["x.go"].id == 1
    with pytest.raises(P4RuntimeError, match=r"could be 'A\.x\.go', 'A\.y\.go'"):
        index.actions["go"]


def test_a_whole_name_wins_over_an_ending() -> None:
    text = """
    actions { preamble { id: 1 name: "go" } }
    actions { preamble { id: 2 name: "A.go" } }
    """
    assert P4InfoIndex.from_text(text).actions["go"].id == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('tables { preamble { id: 5 name: "t" } action_refs { id: 9 } }', "unknown action id 9"),
        ('actions { preamble { id: 0 name: "a" } }', "id 0"),
        ('actions { preamble { id: 1 name: "a" } } actions { preamble { id: 1 name: "b" } }', "has id 1, as 'a' has"),
        ('actions { preamble { id: 1 name: "a" } } tables { preamble { id: 1 name: "t" } }', "both have id 1"),
        ('tables { preamble { id: 5 name: "t" } match_fields { id: 1 name: "f" bitwidth: 8 } }', "match type"),
        ('tables { preamble { id: 5 name: "t" } direct_resource_ids: 3 }', "direct resource id 3"),
        ("tables { nonsense: 1 }", "P4Info text"),
    ],
)
def test_contradictions_are_refused(text: str, message: str) -> None:
    with pytest.raises(P4RuntimeError, match=message) as e:
        accept(text)
    assert e.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("source", sorted((HERE.parent / "p4" / "accept").glob("*.p4")), ids=lambda source: source.stem)
def test_the_compiler_writes_one_message_in_both_formats(source: Path) -> None:
    program = _core.Program.compile(str(source))
    assert p4info_pb2.P4Info.FromString(program.p4info_message) == parse_text(program.p4info)


def test_the_text_is_the_message(index: P4InfoIndex) -> None:
    assert parse_text(P4INFO) == index.message
