"""The core's encoder of entries says the same as protobuf messages, or leaves the entry to them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.p4runtime.codec import Pair, Value
from holdfast.p4runtime.entity_messages import fill_action, fill_key
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.p4info import MATCH_KINDS, Action, MatchField, Names, Param, Table
from holdfast.p4runtime.stubs import p4runtime_pb2

WIDTHS = (1, 7, 8, 32, 48, 64, 65, 128, 256, 1024)


@st.composite
def numbers(draw: st.DrawFn, width: int) -> int:
    """Generate numbers for a field of ``width`` bits, most of which fit, many with zeros at one end."""
    fits = st.integers(0, (1 << width) - 1)
    high = st.integers(0, width).map(lambda length: (1 << width) - (1 << (width - length)))
    return draw(st.one_of(fits, high, st.sampled_from((0, (1 << width) - 1, 1 << width, -1))))


@st.composite
def entries(draw: st.DrawFn) -> tuple[Table, dict[str, Value | Pair], dict[str, Value]]:
    """Generate a table with one action, a match key, and parameters."""
    fields, params = [], []
    match: dict[str, Value | Pair] = {}
    values: dict[str, Value] = {}
    for id in range(1, draw(st.integers(1, 4)) + 1):
        field = MatchField(id, f"hdr.f{id}", draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(sorted(MATCH_KINDS))))
        fields.append(field)
        number = numbers(field.width)
        other = st.integers(0, field.width + 1) if field.kind == "lpm" else number
        if field.kind in ("exact", "optional"):
            match[field.name] = draw(number)
        elif draw(st.integers(0, 9)):
            first, second = draw(number), draw(other)
            # Bits that the mask or the prefix has not are refused: half of these are taken off.
            if draw(st.booleans()) and first >= 0 and second >= 0:
                if field.kind == "ternary":
                    first &= second
                elif field.kind == "lpm" and second <= field.width:
                    first = first >> (field.width - second) << (field.width - second)
            match[field.name] = (first, second)
        else:
            match[field.name] = draw(number)
    for id in range(1, draw(st.integers(0, 4)) + 1):
        param = Param(id, f"p{id}", draw(st.sampled_from(WIDTHS)))
        params.append(param)
        values[param.name] = draw(numbers(param.width))
    action = Action(0x01000007, "Ingress.act", "act", Names("parameter", params))
    table = Table(
        0x02000003,
        "Ingress.t",
        "t",
        Names("match field", fields),
        Names("action", [action]),
        1024,
        0,
        0,
        0,
        p4runtime_pb2.Action(),
    )
    return table, match, values


def by_messages(table: Table, match: dict[str, Value | Pair], values: dict[str, Value], priority: int) -> bytes | None:
    """Return a serialized update of an entry, built from protobuf messages; None if the entry is refused."""
    update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
    entry = update.entity.table_entry
    try:
        fill_key(entry, table, match, priority)
        fill_action(entry.action.action, table, "act", values)
    except P4RuntimeError:
        return None
    entry.metadata = b"m" * (priority % 3)
    data: bytes = p4runtime_pb2.WriteRequest(updates=[update]).SerializeToString()
    return data


def encoded(table: Table, match: dict[str, Value | Pair], values: dict[str, Value], priority: int) -> bytes | None:
    kind = p4runtime_pb2.Update.MODIFY
    return table.encoder.update(kind, dict(match), "act", dict(values), priority, b"m" * (priority % 3))


@given(entries(), st.integers(0, 2**31 - 1))
@settings(max_examples=400, deadline=None)
def test_what_is_encoded_is_what_messages_say(
    entry: tuple[Table, dict[str, Value | Pair], dict[str, Value]], priority: int
) -> None:
    table, match, values = entry
    wanted, found = by_messages(table, match, values, priority), encoded(table, match, values, priority)
    if found is not None:
        assert found == wanted
    elif wanted is not None:
        # A single number under a mask, of a prefix or of a range is another way to write it.
        alone = [name for name, value in match.items() if isinstance(value, int)]
        assert any(table.fields[name].kind in ("lpm", "ternary", "range") for name in alone)


def test_what_is_no_number_is_left_to_messages() -> None:
    field, param = MatchField(1, "hdr.ipv4.dst", 32, "exact"), Param(1, "mac", 48)
    action = Action(1, "Ingress.act", "act", Names("parameter", [param]))
    table = Table(
        2,
        "Ingress.t",
        "t",
        Names("match field", [field]),
        Names("action", [action]),
        1,
        0,
        0,
        0,
        p4runtime_pb2.Action(),
    )
    assert encoded(table, {"dst": 1}, {"mac": 2}, 0) == encoded(table, {"hdr.ipv4.dst": 1}, {"mac": 2}, 0) is not None
    assert encoded(table, {"dst": "10.0.0.1"}, {"mac": 2}, 0) is None
    assert encoded(table, {"dst": 1}, {"mac": "02:00:00:00:00:01"}, 0) is None
    assert encoded(table, {"dst": True}, {"mac": 2}, 0) is None
    assert encoded(table, {"src": 1}, {"mac": 2}, 0) is None
    assert encoded(table, {"dst": (1, 2, 3)}, {"mac": 2}, 0) is None  # type: ignore[dict-item]
