"""Conversion between a client's values and protobuf messages of entities: keys, actions, entries, replicas.

Names and ids are a :class:`~holdfast.p4runtime.p4info.P4InfoIndex`'s; the sender of the messages is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from holdfast.p4runtime import codec
from holdfast.p4runtime.codec import Pair, Value
from holdfast.p4runtime.errors import invalid_argument
from holdfast.p4runtime.p4info import Action, Form, MatchField, P4InfoIndex, Param, Table
from holdfast.p4runtime.received import Entry
from holdfast.p4runtime.stubs import Proto


def fill_key(message: Proto, table: Table, match: Mapping[str, Value | Pair], priority: int | None) -> None:
    """Write a table's id, a match key and a priority into a ``TableEntry``."""
    message.table_id = table.id
    message.priority = uint(priority or 0, 31, "priority")
    for name, value in match.items():
        if value is not None:
            _fill_match(message, table.name, table.fields[name], value)


_PARTS: dict[Form, tuple[str, str]] = {
    "value": ("value", ""),
    "prefix": ("value", "prefix_len"),
    "masked": ("value", "mask"),
    "range": ("low", "high"),
}
"""Fields of the message of a match, by form."""


def _fill_match(message: Proto, table: str, match_field: MatchField, value: Value | Pair) -> None:
    """Add a field's ``FieldMatch`` to a ``TableEntry``; a match of any value (mask 0, full range, ...) is left out."""
    what = f"table '{table}', match field '{match_field.name}'"
    form = match_field.form
    if form == "value" or match_field.uri is not None:
        first = encoded_value(match_field, value, what)
        # A string is matched exactly whatever the kind of the field (specification, "Translation of Match Fields").
        whole: dict[Form, int | bytes] = {"prefix": 8 * len(first), "masked": b"\xff" * len(first), "range": first}
        second = whole.get(form)
    else:
        pair = pair_of(match_field, value, what)
        if pair is None:
            return
        first = codec.encode(pair[0])
        second = pair[1] if form == "prefix" else codec.encode(pair[1])
    part = getattr(message.match.add(field_id=match_field.id), match_field.kind)
    names = _PARTS[form]
    setattr(part, names[0], first)
    if second is not None:
        setattr(part, names[1], second)


def pair_of(match_field: MatchField, value: Value | Pair, what: str) -> tuple[int, int] | None:
    """Return both parts of a match that is more than a value, as its form has them; None if it accepts any value."""
    width = match_field.width
    if match_field.form == "range":
        pair = codec.to_range(value, width, what)
        return None if pair == (0, codec.all_ones(width)) else pair
    pair = (codec.to_prefix if match_field.form == "prefix" else codec.to_ternary)(value, width, what)
    return pair if pair[1] else None


def fill_action(message: Proto, table: Table, action: str, params: Mapping[str, Value] | None) -> None:
    """Write an action of a table with its parameters into an ``Action`` message.

    Raises INVALID_ARGUMENT for an action or parameter that is not the table's, and OUT_OF_RANGE for a value that does not fit.
    """
    info = table.actions[action]
    message.action_id = info.id
    for name, value in (params or {}).items():
        param = info.params[name]
        if _is_plain(value, param):
            message.params.add(param_id=param.id, value=codec.encode(value))
            continue
        encoded = encoded_value(param, value, f"action '{info.name}', parameter '{param.name}'")
        message.params.add(param_id=param.id, value=encoded)


def _is_plain(value: Value | Pair, owner: MatchField | Param) -> TypeGuard[int]:
    """Return True if the value is a number that needs no conversion and fits the field, as most values do."""
    return type(value) is int and owner.uri is None and value >= 0 and value.bit_length() <= owner.width


def encoded_value(owner: MatchField | Param, value: Value | Pair, what: str) -> bytes:
    """Encode a number, or a string for a type that is translated to strings, as bytes.

    Raises INVALID_ARGUMENT or OUT_OF_RANGE, with ``what`` in the message, for a value of another kind or one that does not fit.
    """
    if owner.uri is None:
        return codec.encode(codec.to_int(value, owner.width, what))
    if not isinstance(value, str):
        raise invalid_argument(f"{what}: it is a string ('{owner.uri}'), not {value!r}")
    return value.encode()


def decoded_value(owner: MatchField | Param, data: bytes) -> int | str:
    """Decode bytes to a number, or to a string for a type that is translated to strings."""
    return int.from_bytes(data, "big") if owner.uri is None else data.decode(errors="replace")


def read_entry(p4info: P4InfoIndex, table: Table, message: Proto) -> Entry:
    """Convert a ``TableEntry`` message to an :class:`Entry`, with names in place of ids."""
    match: dict[str, int | str | tuple[int, int]] = {}
    for item in message.match:
        match_field = table.fields.by_id(item.field_id)
        match[match_field.name] = _read_match(match_field, item)
    action, params = read_action(p4info, message.action.action)
    counted = message.HasField("counter_data")
    return Entry(
        table=table.name,
        match=match,
        action=action,
        params=params,
        priority=message.priority,
        is_default=message.is_default_action,
        is_const=message.is_const,
        counter=(message.counter_data.packet_count, message.counter_data.byte_count) if counted else None,
        metadata=message.metadata,
        idle_timeout_ns=message.idle_timeout_ns,
        member=message.action.action_profile_member_id or None,
        group=message.action.action_profile_group_id or None,
        rates=read_rates(message.meter_config) if message.HasField("meter_config") else None,
        is_initial=message.is_default_action and message.action.action == table.initial_default,
    )


def read_action(p4info: P4InfoIndex, message: Proto) -> tuple[str, dict[str, int | str]]:
    """Return the name and the parameters of an ``Action`` message; both are empty if it has no action."""
    if not message.action_id:
        return "", {}
    action = p4info.actions.by_id(message.action_id)
    return action.name, dict(_read_param(action, param) for param in message.params)


def _read_param(action: Action, message: Proto) -> tuple[str, int | str]:
    param = action.params.by_id(message.param_id)
    return param.name, decoded_value(param, message.value)


def _read_match(match_field: MatchField, message: Proto) -> int | str | tuple[int, int]:
    part, (first, second) = getattr(message, match_field.kind), _PARTS[match_field.form]
    if match_field.form == "value" or match_field.uri is not None:
        return decoded_value(match_field, getattr(part, first))
    other = getattr(part, second)
    return int.from_bytes(getattr(part, first), "big"), other if isinstance(other, int) else int.from_bytes(
        other, "big"
    )


def fill_replicas(message: Proto, replicas: Sequence[tuple[int, int]]) -> None:
    """Add replicas, (egress port, instance), to the message of a multicast group or clone session."""
    for port, instance in replicas:
        port_bytes = codec.encode(codec.to_int(port, 32, "replica port"))
        message.replicas.add(port=port_bytes, instance=uint(instance, 32, "replica instance"))


def read_replicas(message: Proto) -> list[tuple[int, int]]:
    """Return the replicas of a multicast group or clone session: (egress port, instance)."""
    return [
        (int.from_bytes(r.port, "big") if r.WhichOneof("port_kind") == "port" else r.egress_port, r.instance)
        for r in message.replicas
    ]


def fill_rates(message: Proto, rates: tuple[int, int, int, int]) -> None:
    """Write cir, cburst, pir and pburst into a ``MeterConfig``."""
    message.cir, message.cburst, message.pir, message.pburst = (int64(rate, "rate") for rate in rates)


def read_rates(message: Proto) -> tuple[int, int, int, int]:
    """Return cir, cburst, pir and pburst of a ``MeterConfig``."""
    return message.cir, message.cburst, message.pir, message.pburst


def describe(match: Mapping[str, Value | Pair], priority: int | None) -> str:
    """Return a text for people that describes a match key and its priority."""

    def text(value: Value | Pair) -> str:
        if isinstance(value, tuple | list):
            return "(" + ", ".join(map(text, value)) + ")"
        return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)

    fields = ", ".join(f"{name}: {text(value)}" for name, value in match.items())
    return f"{{{fields}}}" + (f" priority {priority}" if priority else "")


def uint(value: int, bits: int, what: str) -> int:
    """Return the value as an integer. Raises OUT_OF_RANGE if it does not fit into ``bits`` bits."""
    return codec.to_int(value, bits, what)


def int64(value: int, what: str) -> int:
    """Return ``value``. Raises OUT_OF_RANGE if it does not fit into 64 bits with a sign."""
    if not -(1 << 63) <= value < 1 << 63:
        raise codec.out_of_range(f"{what}: {value} does not fit into 64 bits")
    return value
