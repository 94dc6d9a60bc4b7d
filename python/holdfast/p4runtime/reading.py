"""What a P4Runtime read of one entity gives: wildcards, filters, and what the core does not keep put back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from holdfast._core import Switch, TableEntry
from holdfast.p4runtime import meters, p4data, profiles, replication, table_entries, value_sets
from holdfast.p4runtime.digests import DigestBuffers
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, unimplemented
from holdfast.p4runtime.p4info import Names, P4InfoIndex, T, Table
from holdfast.p4runtime.planning import EntryNote, Notes, cell_of, object_id
from holdfast.p4runtime.snapshots import ENTRIES_PER_SLICE, Snapshots, replaced
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2
from holdfast.p4runtime.table_entries import EntryKey

if TYPE_CHECKING:
    from holdfast._core import Match

C = TypeVar("C")


class Reader:
    """Reads a switch whose program has this P4Info, for one request.

    Its methods are called while the device is locked. What they return may be taken later: it is of the time of the call.
    """

    def __init__(
        self, index: P4InfoIndex, switch: Switch, notes: Notes, digests: DigestBuffers, snapshots: Snapshots
    ) -> None:
        self._index = index
        self._switch = switch
        self._program = switch.program
        self._notes = notes
        self._digests = digests
        self._snapshots = snapshots

    def read(self, entity: Proto, role: str) -> Iterator[Proto]:
        """The ``Entity`` messages that a request ``Entity`` selects, of those that the role may have."""
        kind = entity.WhichOneof("entity")
        if kind is None:
            raise invalid_argument("the request has no entity, or one of a later version of P4Runtime")
        message = getattr(entity, kind)
        self._index.check_role(role, object_id(kind, message))
        match kind:
            case "table_entry":
                entries = self._table_entries(message, role)
                return (p4runtime_pb2.Entity(table_entry=e) for e in entries)
            case "action_profile_member":
                return self._members(message, role)
            case "action_profile_group":
                return self._groups(message, role)
            case "meter_entry":
                return self._meters(message, role)
            case "direct_meter_entry":
                return self._direct_meters(message, role)
            case "counter_entry":
                return self._counters(message, role)
            case "direct_counter_entry":
                return self._direct_counters(message, role)
            case "packet_replication_engine_entry":
                return iter(self._replication(message))
            case "value_set_entry":
                return self._value_sets(message, role)
            case "register_entry":
                return self._registers(message, role)
            case "digest_entry":
                return self._digest_entries(message, role)
        if not message.extern_type_id:
            return iter(())  # a read of everything, and there is nothing
        raise unimplemented(f"{kind}: v1model has no externs beyond those with entities of their own")

    def _wanted(self, objects: Names[T], id: int, role: str) -> list[T]:
        """The object of this id, or with 0 all that the role may have."""
        return [objects.by_id(id)] if id else [o for o in objects if self._index.role_may(role, o.id)]

    # ---- Table entries ----

    def _table_entries(self, message: Proto, role: str) -> Iterator[Proto]:
        if message.table_id == 0:
            filters = (
                message.match,
                message.HasField("action"),
                message.priority,
                message.controller_metadata,
                message.metadata,
            )
            if any(filters):
                raise invalid_argument("a read of all tables takes no other filter; name a table")
            tables = self._wanted(self._index.tables, 0, role)
            return itertools.chain.from_iterable([self._entries(table, message) for table in tables])
        table = self._index.tables.by_id(message.table_id)
        table_entries.check_resources(table, message, writing=False)
        if message.is_default_action and (message.match or message.priority):
            raise invalid_argument(f"{table.label}: the default entry has no match fields and no priority")
        if message.HasField("action"):
            if message.action.WhichOneof("type") != "action":
                raise invalid_argument("entries can be selected by action id only")
            table.actions.by_id(message.action.action.action_id)
        return self._entries(table, message)

    def _entries(self, table: Table, message: Proto) -> Iterator[Proto]:
        wanted = table_entries.matches_from_message(table, message.match) if message.match else None
        candidates = self._candidates(table, message, wanted)
        return self._filtered(table, message, wanted, candidates, self._snapshots.entry_notes(self._notes))

    def _filtered(
        self,
        table: Table,
        message: Proto,
        wanted: dict[int, Match] | None,
        candidates: Iterable[TableEntry],
        notes: dict[EntryKey, EntryNote],
    ) -> Iterator[Proto]:
        for entry in candidates:
            if entry.is_default != message.is_default_action or (
                message.priority and entry.priority != message.priority
            ):
                continue
            if message.HasField("action") and entry.action_id != message.action.action.action_id:
                continue
            matches = table_entries.canonical_matches(table, entry.matches)
            if wanted is not None and matches != wanted:
                continue
            key = (table.id, tuple(sorted(matches.items())), entry.priority, entry.is_default)
            note = notes.get(key, EntryNote())
            if message.metadata in (b"", note.metadata) and message.controller_metadata in (
                0,
                note.controller_metadata,
            ):
                yield self._entry(table, entry, note, message)

    def _candidates(self, table: Table, message: Proto, wanted: dict[int, Match] | None) -> Iterable[TableEntry]:
        """The entries among which to look: one that is named in full is looked up."""
        if message.is_default_action:
            default = self._switch.table_entry(TableEntry(table.id, is_default=True))
            return () if default is None else (default,)
        if wanted is not None and bool(message.priority) == table.needs_priority:
            entry = self._switch.table_entry(TableEntry(table.id, wanted, priority=message.priority))
            return () if entry is None else (entry,)
        return self._snapshots.table(table.id).entries()

    def _entry(self, table: Table, entry: TableEntry, note: EntryNote, wanted: Proto) -> Proto:
        """``TableEntry``, with those of its resources that are wanted."""
        found = table_entries.key_message(table, entry)
        found.is_const = entry.is_const or (entry.is_default and table.const_default_action_id != 0)
        found.metadata, found.controller_metadata = note.metadata, note.controller_metadata
        found.idle_timeout_ns = entry.idle_timeout_ns
        self._fill_action(found, table, entry, note)
        if wanted.HasField("counter_data") and entry.counter is not None and table.direct_counter_id:
            meters.fill_count(found.counter_data, entry.counter)
        if table.direct_meter_id:
            if wanted.HasField("meter_config") and entry.meter_config is not None:
                meters.fill_config(found.meter_config, entry.meter_config)
            if wanted.HasField("meter_counter_data"):
                meters.fill_counters(found.meter_counter_data, entry.meter_counters)
        if wanted.HasField("time_since_last_hit") and entry.idle_ns is not None:
            found.time_since_last_hit.elapsed_ns = entry.idle_ns
        return found

    def _fill_action(self, found: Proto, table: Table, entry: TableEntry, note: EntryNote) -> None:
        if entry.member_id is not None:
            found.action.action_profile_member_id = entry.member_id
        elif entry.group_id is not None:
            found.action.action_profile_group_id = entry.group_id
        elif entry.action_set is not None:
            profile = self._index.action_profiles.by_id(table.implementation_id)
            message = found.action.action_profile_action_set
            profiles.fill_set(message, table, profile, entry.action_set, note.action_set)
        elif entry.action_id:
            table_entries.fill_action(found.action.action, table.actions, entry.action_id, entry.args)

    def _direct(self, message: Proto, role: str, what: str, resources: tuple[str, ...]) -> Iterator[Proto]:
        """The table entries that a read of a direct resource selects, with the resources."""
        wanted = p4runtime_pb2.TableEntry()
        wanted.CopyFrom(message.table_entry)
        wanted.ClearField("action")  # ignored, says the message's own comment
        for resource in resources:
            getattr(wanted, resource).SetInParent()
        ids = self._direct_ids(what)
        if wanted.table_id and self._index.tables.by_id(wanted.table_id).id not in ids:
            raise invalid_argument(f"table {wanted.table_id} has no direct {what}")
        found = (entry for entry in self._table_entries(wanted, role) if entry.table_id in ids)
        return _at_least_one(found) if wanted.match else found

    def _direct_ids(self, what: str) -> set[int]:
        tables = self._index.tables
        return {t.id for t in tables if (t.direct_counter_id if what == "counter" else t.direct_meter_id)}

    def _direct_counters(self, message: Proto, role: str) -> Iterator[Proto]:
        entries = self._direct(message, role, "counter", ("counter_data",))
        return (_direct_counter(entry) for entry in entries if entry.HasField("counter_data"))

    def _direct_meters(self, message: Proto, role: str) -> Iterator[Proto]:
        counted = message.HasField("counter_data")
        resources = ("meter_config", "meter_counter_data") if counted else ("meter_config",)
        return (_direct_meter(entry, counted=counted) for entry in self._direct(message, role, "meter", resources))

    # ---- Everything else ----

    def _members(self, message: Proto, role: str) -> Iterator[Proto]:
        if message.member_id and not message.action_profile_id:
            raise invalid_argument("a read of the members of all action profiles takes no member id")
        found = [
            member
            for profile in self._wanted(self._index.action_profiles, message.action_profile_id, role)
            for member in self._switch.action_profile_members(profile.id)
            if message.member_id in (0, member.member_id)
        ]
        if message.member_id and not found:
            raise P4RuntimeError("NOT_FOUND", f"there is no member {message.member_id}")
        return (profiles.member_message(self._index, member) for member in found)

    def _groups(self, message: Proto, role: str) -> Iterator[Proto]:
        if message.group_id and not message.action_profile_id:
            raise invalid_argument("a read of the groups of all action profiles takes no group id")
        found = [
            (profile, group)
            for profile in self._wanted(self._index.action_profiles, message.action_profile_id, role)
            if profile.with_selector
            for group in self._switch.action_profile_groups(profile.id)
            if message.group_id in (0, group.group_id)
        ]
        if message.group_id and not found:
            raise P4RuntimeError("NOT_FOUND", f"there is no group {message.group_id}")
        notes = self._notes.profile_groups
        return (profiles.group_message(p, g, notes.get((p.id, g.group_id), frozenset())) for p, g in found)

    def _cells(self, message: Proto, objects: Names[T], id: int, role: str) -> Iterator[tuple[T, int | None]]:
        """Arrays and the cell wanted of each, None for all."""
        if not id and message.HasField("index"):
            raise invalid_argument(f"a read of all {objects.kind}s takes no index")
        for found in self._wanted(objects, id, role):
            size = int(getattr(found, "size"))  # noqa: B009 - not all named things have one
            yield found, cell_of(message, size, f"{objects.kind} '{found.name}'")

    def _in_slices(
        self, read: Callable[[int, int, int], list[C]], id: int, index: int | None, size: int
    ) -> Iterator[C]:
        """One cell, or all of an array: packets pass between two slices."""
        first, last = (0, size) if index is None else (index, index + 1)
        for start in range(first, last, ENTRIES_PER_SLICE):
            cells = read(id, start, min(ENTRIES_PER_SLICE, last - start))
            if self._switch.program is not self._program:
                raise replaced()
            yield from cells

    def _counters(self, message: Proto, role: str) -> Iterator[Proto]:
        for counter, index in self._cells(message, self._index.counters, message.counter_id, role):
            for cell in self._in_slices(self._switch.counters, counter.id, index, counter.size):
                entry = p4runtime_pb2.CounterEntry(counter_id=counter.id)
                entry.index.index = cell.index
                meters.fill_count(entry.data, (cell.packets, cell.bytes))
                yield p4runtime_pb2.Entity(counter_entry=entry)

    def _meters(self, message: Proto, role: str) -> Iterator[Proto]:
        for meter, index in self._cells(message, self._index.meters, message.meter_id, role):
            for cell in self._in_slices(self._switch.meters, meter.id, index, meter.size):
                entry = p4runtime_pb2.MeterEntry(meter_id=meter.id)
                entry.index.index = cell.index
                if cell.config is not None:
                    meters.fill_config(entry.config, cell.config)
                if message.HasField("counter_data"):
                    meters.fill_counters(entry.counter_data, cell.counters)
                yield p4runtime_pb2.Entity(meter_entry=entry)

    def _registers(self, message: Proto, role: str) -> Iterator[Proto]:
        types = self._index.message.type_info
        for register, index in self._cells(message, self._index.registers, message.register_id, role):
            for cell in self._in_slices(self._switch.registers, register.id, index, register.size):
                entry = p4runtime_pb2.RegisterEntry(register_id=register.id)
                entry.index.index = cell.index
                entry.data.CopyFrom(p4data.to_p4data(register.type_spec, types, int.from_bytes(cell.value, "big")))
                yield p4runtime_pb2.Entity(register_entry=entry)

    def _value_sets(self, message: Proto, role: str) -> Iterator[Proto]:
        for value_set in self._wanted(self._index.value_sets, message.value_set_id, role):
            for members in self._switch.value_set_members(value_set.id):
                yield value_sets.members_message(value_set, members)

    def _digest_entries(self, message: Proto, role: str) -> Iterator[Proto]:
        allowed = {digest.id for digest in self._wanted(self._index.digests, message.digest_id, role)}
        entries = (e for e in self._digests.entries(message.digest_id) if e.digest_id in allowed)
        return (p4runtime_pb2.Entity(digest_entry=e) for e in entries)

    def _replication(self, message: Proto) -> list[Proto]:
        kind = message.WhichOneof("type")
        if kind == "multicast_group_entry":
            wanted = message.multicast_group_entry.multicast_group_id
            groups = [g for g in self._switch.multicast_groups() if wanted in (0, g.group_id)]
            if wanted and not groups:
                raise P4RuntimeError("NOT_FOUND", f"there is no multicast group {wanted}")
            notes = [self._notes.groups.get(g.group_id, (b"", frozenset())) for g in groups]
            return [replication.group_message(g, ports, data) for g, (data, ports) in zip(groups, notes, strict=True)]
        if kind == "clone_session_entry":
            wanted = message.clone_session_entry.session_id
            sessions = [s for s in self._switch.clone_sessions() if wanted in (0, s.session_id)]
            if wanted and not sessions:
                raise P4RuntimeError("NOT_FOUND", f"there is no clone session {wanted}")
            notes_of = self._notes.sessions
            return [replication.session_message(s, notes_of.get(s.session_id, frozenset())) for s in sessions]
        raise invalid_argument("the packet replication engine entry has no type")


def idle_entry(index: P4InfoIndex, notes: Notes, entry: TableEntry) -> Proto:
    """The ``TableEntry`` of an idle notification."""
    table = index.tables.by_id(entry.table_id)
    found = table_entries.key_message(table, entry)
    matches = table_entries.canonical_matches(table, entry.matches)
    key = (table.id, tuple(sorted(matches.items())), entry.priority, False)
    note = notes.entries.get(key, EntryNote())
    found.metadata, found.controller_metadata = note.metadata, note.controller_metadata
    found.idle_timeout_ns = entry.idle_timeout_ns
    return found


def _at_least_one(entries: Iterator[Proto]) -> Iterator[Proto]:
    first = next(entries, None)
    if first is None:
        raise P4RuntimeError("NOT_FOUND", "there is no such table entry")
    return itertools.chain([first], entries)


def _direct_counter(entry: Proto) -> Proto:
    entity = p4runtime_pb2.Entity()
    entity.direct_counter_entry.data.CopyFrom(entry.counter_data)
    entity.direct_counter_entry.table_entry.CopyFrom(_key_of(entry))
    return entity


def _direct_meter(entry: Proto, *, counted: bool) -> Proto:
    entity = p4runtime_pb2.Entity()
    if entry.HasField("meter_config"):
        entity.direct_meter_entry.config.CopyFrom(entry.meter_config)
    if counted:
        entity.direct_meter_entry.counter_data.CopyFrom(entry.meter_counter_data)
    entity.direct_meter_entry.table_entry.CopyFrom(_key_of(entry))
    return entity


def _key_of(entry: Proto) -> Proto:
    """The key fields of a ``TableEntry``."""
    key = p4runtime_pb2.TableEntry(
        table_id=entry.table_id, priority=entry.priority, is_default_action=entry.is_default_action
    )
    key.match.extend(entry.match)
    return key
