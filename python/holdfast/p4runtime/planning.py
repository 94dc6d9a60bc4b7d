"""From P4Runtime updates to the core's, one by one: what each comes to, or why it is refused.

What exists is asked of the caller, because in an atomic batch it is what the batch so far leaves. It knows nothing of
batches, sessions or how a pipeline came to be accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from holdfast._core import (
    CloneSession,
    CounterCell,
    DirectCounterCell,
    DirectMeterCell,
    MeterCell,
    MulticastGroup,
    RegisterCell,
    TableEntry,
)
from holdfast.p4runtime import codec, meters, p4data, profiles, replication, table_entries, value_sets
from holdfast.p4runtime.digests import DigestBuffers
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, unimplemented
from holdfast.p4runtime.p4info import MeterType, P4InfoIndex, Table
from holdfast.p4runtime.stubs import Proto
from holdfast.p4runtime.table_entries import EntryKey, entry_key

if TYPE_CHECKING:
    from holdfast._core import Update

K = TypeVar("K")
V = TypeVar("V")

Verb: TypeAlias = Literal["insert", "modify", "delete"]
Find: TypeAlias = Callable[[TableEntry], "TableEntry | None"]
"""The entry with the key of another one, None if there is none."""

_VERBS: dict[int, Verb] = {1: "insert", 2: "modify", 3: "delete"}


@dataclass
class Plan:
    """What one P4Runtime update comes to: updates of the core that succeed together, then a note of it."""

    core: list[Update] = field(default_factory=list)
    setting: Callable[[], None] | None = None
    """A change of digest settings, which may be refused and can be undone."""
    then: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class EntryNote:
    """What a client said of a table entry and the core does not keep."""

    metadata: bytes = b""
    controller_metadata: int = 0
    action_set: profiles.SetNote = field(default_factory=profiles.SetNote)


@dataclass
class Notes:
    """What a client wrote and the core does not keep."""

    entries: dict[EntryKey, EntryNote] = field(default_factory=dict)
    groups: dict[int, tuple[bytes, frozenset[tuple[int, int]]]] = field(default_factory=dict)  # metadata, numeric ports
    sessions: dict[int, frozenset[tuple[int, int]]] = field(default_factory=dict)  # numeric ports
    profile_groups: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)  # members with numeric ports


class Planner:
    """Plans updates for one P4Info. ``initial_defaults``: the default entries as the program has them, by table."""

    def __init__(
        self, index: P4InfoIndex, notes: Notes, digests: DigestBuffers, initial_defaults: dict[int, TableEntry]
    ) -> None:
        self._index = index
        self._notes = notes
        self._digests = digests
        self._initial_defaults = initial_defaults

    def plan(self, update: Proto, find: Find, role: str) -> Plan:
        """What an ``Update`` comes to. Raises what it is refused with."""
        verb = _VERBS.get(update.type)
        kind = update.entity.WhichOneof("entity")
        if verb is None:
            raise invalid_argument(
                f"there is no update type {update.type}" if update.type else "the update has no type"
            )
        if kind is None:
            raise invalid_argument("the update has no entity, or one of a later version of P4Runtime")
        message = getattr(update.entity, kind)
        self._index.check_role(role, object_id(kind, message))
        match kind:
            case "table_entry":
                return self._table_entry(verb, message, find)
            case "action_profile_member":
                member = profiles.member_from_message(self._index, message, key_only=verb == "delete")
                return Plan([(verb, member)])
            case "action_profile_group":
                return self._profile_group(verb, message)
            case "meter_entry":
                return self._meter(verb, message)
            case "direct_meter_entry":
                return self._direct_meter(verb, message, find)
            case "counter_entry":
                return self._counter(verb, message)
            case "direct_counter_entry":
                return self._direct_counter(verb, message, find)
            case "packet_replication_engine_entry":
                return self._replication(verb, message)
            case "value_set_entry":
                return self._value_set(verb, message)
            case "register_entry":
                return self._register(verb, message)
            case "digest_entry":
                digest = self._index.digests.by_id(message.digest_id)
                return Plan(setting=lambda: self._digests.configure(update.type, digest, message.config))
        raise unimplemented(f"{kind}: v1model has no externs beyond those with entities of their own")

    # ---- Table entries ----

    def _table_entry(self, verb: Verb, message: Proto, find: Find) -> Plan:
        table = self._index.tables.by_id(message.table_id)
        if message.is_const:
            raise invalid_argument(f"{table.label}: is_const is for the server to set")
        if message.is_default_action:
            return self._default_entry(verb, table, message)
        if table.is_const and (verb != "modify" or message.HasField("action")):
            raise P4RuntimeError("PERMISSION_DENIED", f"{table.label}: its entries are constant")
        if not len(table.fields):
            raise invalid_argument(f"{table.label} has no key, so no entries but the default one")
        entry = table_entries.key_from_message(table, message)
        key = entry_key(entry)
        if verb == "delete":
            return Plan([("delete", entry)], then=lambda: self._note_entry(key, EntryNote()))
        table_entries.check_resources(table, message, writing=True)
        if verb == "insert" or message.HasField("action"):
            note = self._entry_note(message)
            self._fill_action(table, entry, message)
            self._fill_resources(table, entry, message)
            plan = Plan([(verb, entry)], then=lambda: self._note_entry(key, note))
        else:
            plan = self._modify_without_action(table, entry, message, find)
        if verb == "modify" and message.HasField("meter_counter_data"):
            plan.core.insert(0, ("modify", DirectMeterCell(_same_key(entry))))
        self._counter_data(plan, entry, message)
        return plan

    def _modify_without_action(self, table: Table, key: TableEntry, message: Proto, find: Find) -> Plan:
        """Leaves the action as it is."""
        present = find(key)
        if present is None:
            raise P4RuntimeError("NOT_FOUND", f"{table.label} has no such entry")
        was = self._notes.entries.get(entry_key(key), EntryNote())
        note = EntryNote(message.metadata, message.controller_metadata, was.action_set)
        plan = Plan(then=lambda: self._note_entry(entry_key(key), note))
        if table.direct_meter_id:
            what = f"the direct meter of {table.label}"
            config = meters.config_of(message, "meter_config", self._direct_meter_type(table), what)
            plan.core.append(("modify", DirectMeterCell(key, config)))
        if message.idle_timeout_ns != present.idle_timeout_ns and not table.is_const:
            entry = _same_key(key)
            entry.action_id, entry.args = present.action_id, dict(present.args)
            entry.member_id, entry.group_id = present.member_id, present.group_id
            entry.action_set, entry.idle_timeout_ns = present.action_set, message.idle_timeout_ns
            entry.meter_config = plan.core.pop()[1].config if plan.core else None  # type: ignore[union-attr]
            plan.core.append(("modify", entry))
        return plan

    def _default_entry(self, verb: Verb, table: Table, message: Proto) -> Plan:
        if verb != "modify":
            raise invalid_argument(f"{table.label} always has its default entry; it can only be modified")
        entry = table_entries.key_from_message(table, message)
        if table.const_default_action_id:
            raise P4RuntimeError("PERMISSION_DENIED", f"{table.label}: its default action is constant")
        table_entries.check_resources(table, message, writing=True)
        key = entry_key(entry)
        note = EntryNote()
        if message.HasField("action"):
            _check_kind(table, message.action, "action")
            entry.action_id, entry.args = table_entries.call_from_message(table, message.action.action, is_default=True)
            note = EntryNote(message.metadata, message.controller_metadata)
        else:
            original = self._initial_defaults.get(table.id)
            if original is None:
                raise P4RuntimeError("INTERNAL", f"{table.label}: the switch did not tell its initial default action")
            entry.action_id, entry.args = original.action_id, dict(original.args)
        self._fill_resources(table, entry, message)
        plan = Plan([("modify", entry)], then=lambda: self._note_entry(key, note))
        self._counter_data(plan, entry, message)
        return plan

    def _fill_action(self, table: Table, entry: TableEntry, message: Proto) -> None:
        """The action of an entry, or what stands for it in a table with an implementation."""
        action, kind = message.action, message.action.WhichOneof("type")
        if not table.implementation_id:
            _check_kind(table, action, "action")
            entry.action_id, entry.args = table_entries.call_from_message(table, action.action, is_default=False)
            return
        profile = self._index.action_profiles.by_id(table.implementation_id)
        if kind == "action_profile_member_id":
            entry.member_id = _id(action.action_profile_member_id, f"{table.label}: member")
        elif kind == "action_profile_group_id" and profile.with_selector:
            entry.group_id = _id(action.action_profile_group_id, f"{table.label}: group")
        elif kind == "action_profile_action_set":
            entry.action_set = profiles.set_from_message(table, profile, action.action_profile_action_set)
        else:
            wanted = "a member, a group or a one-shot set" if profile.with_selector else "a member"
            raise invalid_argument(f"{table.label}: the action is {kind or 'unset'}, this table takes {wanted}")

    def _fill_resources(self, table: Table, entry: TableEntry, message: Proto) -> None:
        entry.idle_timeout_ns = message.idle_timeout_ns
        if table.direct_meter_id:
            what = f"the direct meter of {table.label}"
            entry.meter_config = meters.config_of(message, "meter_config", self._direct_meter_type(table), what)
            meters.check_reset(message.meter_counter_data, what)

    def _direct_meter_type(self, table: Table) -> MeterType:
        return self._index.direct_meters.by_id(table.direct_meter_id).type

    @staticmethod
    def _counter_data(plan: Plan, entry: TableEntry, message: Proto) -> None:
        if message.HasField("counter_data"):
            plan.core.append(("modify", DirectCounterCell(_same_key(entry), *_counts(message.counter_data))))

    @staticmethod
    def _entry_note(message: Proto) -> EntryNote:
        note = profiles.set_note(message.action.action_profile_action_set)
        return EntryNote(message.metadata, message.controller_metadata, note)

    def _note_entry(self, key: EntryKey, note: EntryNote) -> None:
        if note != EntryNote():
            self._notes.entries[key] = note
        else:
            self._notes.entries.pop(key, None)

    def _direct_table(self, verb: Verb, message: Proto, what: str) -> Table:
        if not message.HasField("table_entry"):
            raise invalid_argument(f"the direct {what} entry has no table entry")
        table = self._index.tables.by_id(message.table_entry.table_id)
        _modify_only(verb, f"the direct {what} of {table.label}")
        if not (table.direct_counter_id if what == "counter" else table.direct_meter_id):
            raise invalid_argument(f"{table.label} has no direct {what}")
        return table

    def _direct_counter(self, verb: Verb, message: Proto, find: Find) -> Plan:
        table = self._direct_table(verb, message, "counter")
        entry = table_entries.key_from_message(table, message.table_entry)
        if not message.HasField("data"):
            if find(entry) is None:
                raise P4RuntimeError("NOT_FOUND", f"{table.label} has no such entry")
            return Plan()
        return Plan([("modify", DirectCounterCell(entry, *_counts(message.data)))])

    def _direct_meter(self, verb: Verb, message: Proto, find: Find) -> Plan:
        table = self._direct_table(verb, message, "meter")
        entry = table_entries.key_from_message(table, message.table_entry)
        what = f"the direct meter of {table.label}"
        meters.check_reset(message.counter_data, what)
        config = meters.config_of(message, "config", self._direct_meter_type(table), what)
        if find(entry) is None:
            raise P4RuntimeError("NOT_FOUND", f"{table.label} has no such entry")
        plan = Plan([("modify", DirectMeterCell(entry, config))])
        if message.HasField("counter_data"):
            plan.core.insert(0, ("modify", DirectMeterCell(entry)))
        return plan

    # ---- Everything else ----

    def _profile_group(self, verb: Verb, message: Proto) -> Plan:
        group = profiles.group_from_message(self._index, message, key_only=verb == "delete")
        numeric = frozenset(message.members[i].member_id for i in profiles.numeric_watches(message.members))
        key = (group.action_profile_id, group.group_id)
        return Plan([(verb, group)], then=lambda: _note(self._notes.profile_groups, verb, key, numeric))

    def _replication(self, verb: Verb, message: Proto) -> Plan:
        kind = message.WhichOneof("type")
        entity: MulticastGroup | CloneSession
        if kind == "multicast_group_entry":
            inner = message.multicast_group_entry
            entity, notes = replication.group_from_message(inner, key_only=verb == "delete"), self._notes.groups
            note = inner.metadata, replication.numeric_ports(inner.replicas)
            return Plan([(verb, entity)], then=lambda: _note(notes, verb, inner.multicast_group_id, note))
        if kind == "clone_session_entry":
            inner = message.clone_session_entry
            entity, sessions = replication.session_from_message(inner, key_only=verb == "delete"), self._notes.sessions
            ports = replication.numeric_ports(inner.replicas)
            return Plan([(verb, entity)], then=lambda: _note(sessions, verb, inner.session_id, ports))
        raise invalid_argument("the packet replication engine entry has no type")

    def _counter(self, verb: Verb, message: Proto) -> Plan:
        counter = self._index.counters.by_id(message.counter_id)
        _modify_only(verb, f"counter '{counter.name}'")
        cell = cell_of(message, counter.size, f"counter '{counter.name}'")
        if not message.HasField("data"):
            return Plan()
        packets, octets = _counts(message.data)
        return Plan([("modify", CounterCell(counter.id, cell, packets, octets))])

    def _meter(self, verb: Verb, message: Proto) -> Plan:
        meter = self._index.meters.by_id(message.meter_id)
        what = f"meter '{meter.name}'"
        _modify_only(verb, what)
        cell = cell_of(message, meter.size, what)
        meters.check_reset(message.counter_data, what)
        config = meters.config_of(message, "config", meter.type, what)
        plan = Plan([("modify", MeterCell(meter.id, cell, config))])
        if message.HasField("counter_data"):  # the counters of a meter without configuration are gone
            plan.core.insert(0, ("modify", MeterCell(meter.id, cell)))
        return plan

    def _value_set(self, verb: Verb, message: Proto) -> Plan:
        value_set = self._index.value_sets.by_id(message.value_set_id)
        _modify_only(verb, value_set.label)
        return Plan([("modify", value_sets.members_from_message(value_set, message))])

    def _register(self, verb: Verb, message: Proto) -> Plan:
        register = self._index.registers.by_id(message.register_id)
        _modify_only(verb, f"register '{register.name}'")
        cell = cell_of(message, register.size, f"register '{register.name}'")
        number = p4data.from_p4data(register.type_spec, self._index.message.type_info, message.data)
        return Plan([("modify", RegisterCell(register.id, cell, codec.encode(number)))])


_ID_FIELDS = {
    "table_entry": "table_id",
    "action_profile_member": "action_profile_id",
    "action_profile_group": "action_profile_id",
    "meter_entry": "meter_id",
    "counter_entry": "counter_id",
    "value_set_entry": "value_set_id",
    "register_entry": "register_id",
    "digest_entry": "digest_id",
}


def object_id(kind: str, message: Proto) -> int:
    """The P4Info id of what an entity of this kind belongs to; 0 where there is none."""
    if kind in ("direct_counter_entry", "direct_meter_entry"):
        return int(message.table_entry.table_id)
    return int(getattr(message, _ID_FIELDS[kind])) if kind in _ID_FIELDS else 0


def cell_of(message: Proto, size: int, what: str) -> int | None:
    """The cell that a message with an optional ``index`` means; None for all."""
    if not message.HasField("index"):
        return None
    index = message.index.index
    if index < 0:
        raise invalid_argument(f"{what}: index {index} is negative")
    if index >= size:
        raise P4RuntimeError("OUT_OF_RANGE", f"{what}: index {index}, but there are {size} cells")
    return int(index)


def _same_key(entry: TableEntry) -> TableEntry:
    return TableEntry(entry.table_id, entry.matches, priority=entry.priority, is_default=entry.is_default)


def _check_kind(table: Table, action: Proto, wanted: str) -> None:
    kind = action.WhichOneof("type")
    if kind != wanted:
        raise invalid_argument(f"{table.label}: the action is {kind or 'unset'}, a direct table takes an action")


def _id(id: int, what: str) -> int:
    if id == 0:
        raise invalid_argument(f"{what} 0: ids are not zero")
    return id


def _modify_only(verb: Verb, what: str) -> None:
    if verb != "modify":
        raise invalid_argument(f"{what} can be modified, not inserted or deleted")


def _counts(message: Proto) -> tuple[int, int]:
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid_argument("a counter is not negative")
    return message.packet_count, message.byte_count


def _note(notes: dict[K, V], verb: Verb, key: K, value: V) -> None:
    if verb == "delete":
        notes.pop(key, None)
    else:
        notes[key] = value
