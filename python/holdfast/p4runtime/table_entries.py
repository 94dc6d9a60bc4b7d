"""Table entries between P4Runtime messages and the core, checked against P4Info (specification, "TableEntry").

Here a message becomes what the core takes, or the error that the specification names; nothing here knows which entries
exist. All values handed to the core are canonical, so equal entries compare equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from holdfast._core import TableEntry
from holdfast.p4runtime import codec
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument
from holdfast.p4runtime.p4info import Action, MatchField, Names, Param, Table
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2

if TYPE_CHECKING:
    from holdfast._core import Match

EntryKey: TypeAlias = "tuple[int, tuple[tuple[int, Match], ...], int, bool]"
"""What identifies an entry: table, canonical matches, priority, whether it is the default entry."""


class Matched(Protocol):
    """What has match fields: a table or a value set."""

    @property
    def label(self) -> str:
        """For messages."""

    @property
    def fields(self) -> Names[MatchField]:
        """The match fields."""


def entry_key(entry: TableEntry) -> EntryKey:
    """The key of an entry with canonical matches."""
    return entry.table_id, tuple(sorted(entry.matches.items())), entry.priority, entry.is_default


def key_from_message(table: Table, message: Proto) -> TableEntry:
    """A core entry with the key fields of a ``TableEntry`` only. INVALID_ARGUMENT as the specification says."""
    if message.is_default_action:
        if message.match:
            raise invalid_argument(f"{table.label}: the default entry has no match fields")
        if message.priority:
            raise invalid_argument(f"{table.label}: the default entry has no priority")
        return TableEntry(table.id, is_default=True)
    matches = matches_from_message(table, message.match)
    if table.needs_priority and message.priority <= 0:
        raise invalid_argument(
            f"{table.label}: an entry needs a priority above zero (a key field is ternary, range or optional)"
        )
    if not table.needs_priority and message.priority != 0:
        raise invalid_argument(f"{table.label}: no priority, because all key fields are exact or lpm")
    return TableEntry(table.id, matches, priority=message.priority)


def matches_from_message(owner: Matched, messages: Iterable[Proto]) -> dict[int, Match]:
    """The match fields of an entry, by id. Don't-care fields are left out; exact ones are all there."""
    matches: dict[int, Match] = {}
    for message in messages:
        match_field = owner.fields.by_id(message.field_id)
        if match_field.id in matches:
            raise invalid_argument(f"{owner.label}: match field '{match_field.name}' is given twice")
        matches[match_field.id] = _match_from_message(owner, match_field, message)
    for match_field in owner.fields:
        if match_field.kind == "exact" and match_field.id not in matches:
            raise invalid_argument(f"{owner.label}: exact match field '{match_field.name}' is missing")
    return matches


def _match_from_message(owner: Matched, match_field: MatchField, message: Proto) -> Match:
    kind = message.WhichOneof("field_match_type")
    what = f"{owner.label}, match field '{match_field.name}'"
    if kind != match_field.kind:
        raise invalid_argument(f"{what}: the match is {kind or 'unset'}, the field is {match_field.kind}")
    try:
        if match_field.translation is not None:
            number = match_field.translation.to_switch(getattr(message, kind).value, what)
            return "exact" if match_field.kind == "exact" else "optional", codec.encode(number)
        if not match_field.width:
            raise invalid_argument(f"{what}: its type has no values in P4Runtime, so entries cannot name it")
        match = _MATCH_READERS[match_field.kind](getattr(message, kind), match_field.width, what)
    except P4RuntimeError as e:
        # "Match Format": whatever is wrong with a match, bytestrings included, is INVALID_ARGUMENT.
        raise invalid_argument(e.message) from None
    return match


def _exact(message: Proto, width: int, what: str) -> Match:
    return "exact", codec.encode(codec.decode(message.value, width, what))


def _optional(message: Proto, width: int, what: str) -> Match:
    return "optional", codec.encode(codec.decode(message.value, width, what))


def _lpm(message: Proto, width: int, what: str) -> Match:
    value, length = codec.decode(message.value, width, what), message.prefix_len
    if not 0 < length <= width:
        hint = "; leave a don't-care field out" if length == 0 else ""
        raise invalid_argument(f"{what}: prefix length {length} is not between 1 and {width}{hint}")
    if value & ~codec.prefix_mask(width, length):
        raise invalid_argument(f"{what}: the value has bits set behind its prefix of {length} bits")
    return "lpm", codec.encode(value), length


def _ternary(message: Proto, width: int, what: str) -> Match:
    value, mask = codec.decode(message.value, width, what), codec.decode(message.mask, width, f"{what}: mask")
    if mask == 0:
        raise invalid_argument(f"{what}: the mask is zero; leave a don't-care field out")
    if value & ~mask:
        raise invalid_argument(f"{what}: the value has bits set where the mask has none")
    return "ternary", codec.encode(value), codec.encode(mask)


def _range(message: Proto, width: int, what: str) -> Match:
    low, high = codec.decode(message.low, width, f"{what}: low"), codec.decode(message.high, width, f"{what}: high")
    if low > high:
        raise invalid_argument(f"{what}: the low end {low} is above the high end {high}")
    if low == 0 and high == codec.all_ones(width):
        raise invalid_argument(f"{what}: the range holds everything; leave a don't-care field out")
    return "range", codec.encode(low), codec.encode(high)


_MATCH_READERS = {"exact": _exact, "optional": _optional, "lpm": _lpm, "ternary": _ternary, "range": _range}


def call_from_message(table: Table, message: Proto, *, is_default: bool) -> tuple[int, dict[int, bytes]]:
    """(action id, arguments by parameter id) of an ``Action`` of a table."""
    action = table.actions.by_id(message.action_id)
    if table.scopes[action.id] == ("table_only" if is_default else "default_only"):
        place = "as the default" if is_default else "in an entry"
        raise P4RuntimeError("PERMISSION_DENIED", f"{table.label}: action '{action.name}' is not allowed {place}")
    args: dict[int, bytes] = {}
    for given in message.params:
        param = action.params.by_id(given.param_id)
        if param.id in args:
            raise invalid_argument(f"action '{action.name}': parameter '{param.name}' is given twice")
        what = f"action '{action.name}', parameter '{param.name}'"
        try:
            if param.translation is not None:
                value = param.translation.to_switch(given.value, what)
            else:
                value = codec.decode(given.value, param.width, what)
        except P4RuntimeError as e:
            raise invalid_argument(e.message) from None  # "Action Specification"
        args[param.id] = codec.encode(value)
    for param in action.params:
        if param.id not in args:
            raise invalid_argument(f"action '{action.name}': parameter '{param.name}' is missing")
    return action.id, args


def check_resources(table: Table, message: Proto, *, writing: bool) -> None:
    """Refuses resources that the table does not have (INVALID_ARGUMENT)."""
    metered = message.HasField("meter_config") or message.HasField("meter_counter_data")
    if writing and metered and not table.direct_meter_id:
        raise invalid_argument(f"{table.label} has no direct meter")
    if writing and message.HasField("counter_data") and not table.direct_counter_id:
        raise invalid_argument(f"{table.label} has no direct counter")
    if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
        if not table.supports_idle_timeout or message.is_default_action:
            raise invalid_argument(f"{table.label} has no idle timeout for this entry")
        if message.idle_timeout_ns < 0:
            raise invalid_argument(f"{table.label}: idle timeout {message.idle_timeout_ns} ns is negative")
        if writing and message.HasField("time_since_last_hit"):
            raise invalid_argument(f"{table.label}: time_since_last_hit is for the server to set")


def canonical_matches(owner: Matched, matches: Mapping[int, Match]) -> dict[int, Match]:
    """The core's matches with the shortest values, without don't-care fields."""
    result: dict[int, Match] = {}
    for id, match in sorted(matches.items()):
        match_field = owner.fields.by_id(id)
        parts = tuple(codec.canonical(part) if isinstance(part, bytes) else part for part in match[1:])
        full = codec.encode(codec.all_ones(match_field.width))
        dont_care = {"lpm": (parts[0], 0), "ternary": (parts[0], b"\0"), "range": (b"\0", full)}
        if parts != dont_care.get(match[0]):
            result[id] = (match[0], *parts)  # type: ignore[assignment]  # the same form as `match`
    return result


def copy_of(entry: TableEntry, matches: dict[int, Match]) -> TableEntry:
    """What to write to have an entry again that was read; with its matches in canonical form."""
    return TableEntry(
        entry.table_id,
        matches,
        entry.action_id,
        dict(entry.args),
        entry.priority,
        entry.is_default,
        idle_timeout_ns=entry.idle_timeout_ns,
        member_id=entry.member_id,
        group_id=entry.group_id,
        action_set=entry.action_set,
        meter_config=entry.meter_config,
    )


def fill_matches(messages: Proto, owner: Matched, matches: Mapping[int, Match]) -> None:
    """Adds a ``FieldMatch`` for each match that is no don't-care."""
    for id, match in canonical_matches(owner, matches).items():
        part = getattr(messages.add(field_id=id), match[0])
        if len(match) == 2:
            part.value = _for_controller(owner.fields.by_id(id), match[1])
        elif match[0] == "lpm":
            part.value, part.prefix_len = match[1:]
        elif match[0] == "ternary":
            part.value, part.mask = match[1:]
        else:
            part.low, part.high = match[1:]


def fill_action(message: Proto, actions: Names[Action], action_id: int, args: Mapping[int, bytes]) -> None:
    """Writes an ``Action``."""
    message.action_id = action_id
    params = actions.by_id(action_id).params
    for param_id, value in sorted(args.items()):
        message.params.add(param_id=param_id, value=_for_controller(params.by_id(param_id), value))


def _for_controller(owner: MatchField | Param, value: bytes) -> bytes:
    """The value that a client sees."""
    if owner.translation is None:
        return codec.canonical(value)
    return owner.translation.to_controller(int.from_bytes(value, "big"))


def key_message(table: Table, entry: TableEntry) -> Proto:
    """``TableEntry`` with the key fields of an entry read from the core."""
    message = p4runtime_pb2.TableEntry(table_id=table.id, priority=entry.priority, is_default_action=entry.is_default)
    fill_matches(message.match, table, entry.matches)
    return message
