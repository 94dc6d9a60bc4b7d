"""One accepted forwarding pipeline on one switch: writes and reads of all entities.

Translates updates to the core's, in batches, and keeps what the core does not: metadata of entries, the initial default
actions, digest settings. It knows nothing of clients, streams or how a pipeline came to be accepted. Callers hold the
device's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from holdfast._core import (
    CloneSession,
    ControlError,
    CounterCell,
    DirectCounterCell,
    MulticastGroup,
    Program,
    RegisterCell,
    Switch,
    TableEntry,
    WriteRequest,
)
from holdfast.p4runtime import codec, p4data, plain, replication, table_entries
from holdfast.p4runtime.digests import DigestBuffers
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, unimplemented
from holdfast.p4runtime.p4info import P4InfoIndex, Table
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2
from holdfast.p4runtime.table_entries import EntryKey, entry_key

if TYPE_CHECKING:
    from holdfast._core import Update

V = TypeVar("V")

Verb: TypeAlias = Literal["insert", "modify", "delete"]
Result: TypeAlias = tuple[str, str] | None
"""Of one update: None, or (status name, message)."""

_VERBS: dict[int, Verb] = {1: "insert", 2: "modify", 3: "delete"}

_UNSUPPORTED = {
    "extern_entry": "externs",
    "action_profile_member": "action_profiles",
    "action_profile_group": "action_profiles",
    "meter_entry": "meters",
    "direct_meter_entry": "direct_meters",
    "value_set_entry": "value_sets",
}
"""Entities that are not supported, with the list of P4Info that says whether a program has any."""

_ID_FIELDS = {
    "extern_entry": "extern_type_id",
    "action_profile_member": "action_profile_id",
    "action_profile_group": "action_profile_id",
    "meter_entry": "meter_id",
    "value_set_entry": "value_set_id",
}


@dataclass
class _Plan:
    """What one P4Runtime update comes to: updates of the core that succeed together, then a note of it."""

    core: list[Update] = field(default_factory=list)
    setting: Callable[[], None] | None = None
    """A change of digest settings, which may be refused and can be undone."""
    then: Callable[[], None] = lambda: None


@dataclass
class Notes:
    """What a client wrote and the core does not keep."""

    entries: dict[EntryKey, tuple[bytes, int]] = field(default_factory=dict)  # metadata, controller_metadata
    groups: dict[int, tuple[bytes, frozenset[tuple[int, int]]]] = field(default_factory=dict)  # metadata, numeric ports
    sessions: dict[int, frozenset[tuple[int, int]]] = field(default_factory=dict)  # numeric ports


class Pipeline:
    """A program with its P4Info on a switch. ``config`` is the ``ForwardingPipelineConfig`` as the client gave it."""

    def __init__(
        self, config: Proto, index: P4InfoIndex, program: Program, switch: Switch, send_digest: Callable[[Proto], None]
    ) -> None:
        self.config = config
        self.index = index
        self.program = program
        self.switch = switch
        self.notes = Notes()
        self.digests = DigestBuffers(index.message.type_info, send_digest)
        self.accepted: list[Update] = []
        """Core updates applied since this pipeline was made, in order, if :attr:`record` is on."""
        self.record = False
        defaults = switch.table_entries(0, include_default=True)
        self.initial_defaults = {e.table_id: e for e in defaults if e.is_default}
        self._plain = plain.plain_tables(index, program, switch)

    # ---- Write ----

    def write_plain(self, request: WriteRequest, *, atomic: bool) -> list[plain.Failure] | None:
        """Applies a request of plain table entries (see :mod:`.plain`) at once; gives the failures.

        None, and nothing happened, if it is not so plain: then :meth:`write` must do it.
        """
        if self._plain is None or self.record or self.notes.entries:
            return None
        return self._plain.write(self.switch, request, atomic)

    def write(self, updates: Sequence[Proto], *, atomic: bool) -> list[Result]:
        """Applies ``Update`` messages in order. With ``atomic``: all or nothing, with no packet in between."""
        return self._write_all(updates) if atomic else self._write_each(updates)

    def _write_each(self, updates: Sequence[Proto]) -> list[Result]:
        results: list[Result] = [None] * len(updates)
        run: list[tuple[int, _Plan]] = []

        def flush() -> None:
            outcome = self._core_write([u for _, plan in run for u in plan.core], "continue_on_error")
            for (position, plan), result in zip(run, outcome, strict=True):
                results[position] = result
                if result is None:
                    plan.then()
            run.clear()

        def exists(entry: TableEntry) -> bool:
            flush()
            return self._exists(entry)

        for position, update in enumerate(updates):
            try:
                plan = self._plan(update, exists)
            except P4RuntimeError as e:
                results[position] = (e.code, e.message)
                continue
            if len(plan.core) == 1:
                run.append((position, plan))
                continue
            flush()
            results[position] = self._apply_alone(plan)
        flush()
        return results

    def _apply_alone(self, plan: _Plan) -> Result:
        """A plan of no core update, or of several that must succeed together."""
        failures = [r for r in self._core_write(plan.core, "rollback_on_error") if r is not None]
        if failures:
            return next((r for r in failures if r[0] != "ABORTED"), failures[0])
        try:
            if plan.setting:
                plan.setting()
        except P4RuntimeError as e:
            return e.code, e.message
        plan.then()
        return None

    def _write_all(self, updates: Sequence[Proto]) -> list[Result]:
        present: dict[EntryKey, bool] = {}  # as the batch so far leaves it
        digests = self.digests.snapshot()
        plans: list[_Plan] = []
        results: list[Result] = [None] * len(updates)

        def exists(entry: TableEntry) -> bool:
            key = entry_key(entry)
            return present[key] if key in present else self._exists(entry)

        for position, update in enumerate(updates):
            try:
                plan = self._plan(update, exists)
                if plan.setting:
                    plan.setting()  # undone below if need be
            except P4RuntimeError as e:
                results[position] = (e.code, e.message)
                plan = _Plan()
            plans.append(plan)
            for verb, entity in plan.core:
                if isinstance(entity, TableEntry):
                    present[entry_key(entity)] = verb != "delete"
        if not any(results):
            outcome = iter(self._core_write([u for plan in plans for u in plan.core], "rollback_on_error"))
            for position, plan in enumerate(plans):
                failures = [r for r in [next(outcome) for _ in plan.core] if r is not None]
                results[position] = next((r for r in failures if r[0] != "ABORTED"), failures[0] if failures else None)
        if any(results):
            self.digests.restore(digests)
            return [r or ("ABORTED", "another update of the batch failed") for r in results]
        for plan in plans:
            plan.then()
        return results

    def _core_write(
        self, updates: list[Update], atomicity: Literal["continue_on_error", "rollback_on_error"]
    ) -> list[Result]:
        if not updates:
            return []
        outcome = self.switch.write(updates, atomicity)
        if self.record:
            self.accepted += [u for u, result in zip(updates, outcome, strict=True) if result is None]
        return list(outcome)

    def _plan(self, update: Proto, exists: Callable[[TableEntry], bool]) -> _Plan:
        verb = _VERBS.get(update.type)
        kind = update.entity.WhichOneof("entity")
        if verb is None:
            raise invalid_argument("the update has no type")
        if kind is None:
            raise invalid_argument("the update has no entity, or one of a later version of P4Runtime")
        if kind in _UNSUPPORTED:
            raise unimplemented(f"{kind} is not supported")
        message = getattr(update.entity, kind)
        match kind:
            case "table_entry":
                return self._plan_table_entry(verb, message, exists)
            case "packet_replication_engine_entry":
                return self._plan_replication(verb, message)
            case "counter_entry":
                return self._plan_counter(verb, message)
            case "direct_counter_entry":
                return self._plan_direct_counter(verb, message)
            case "register_entry":
                return self._plan_register(verb, message)
            case "digest_entry":
                digest = self.index.digests.by_id(message.digest_id)
                return _Plan(setting=lambda: self.digests.configure(update.type, digest, message.config))
        raise unimplemented(f"{kind} is not supported")

    def _plan_table_entry(self, verb: Verb, message: Proto, exists: Callable[[TableEntry], bool]) -> _Plan:
        table = self.index.tables.by_id(message.table_id)
        if message.is_const:
            raise invalid_argument(f"table '{table.name}': is_const is for the server to set")
        if message.is_default_action:
            return self._plan_default_entry(verb, table, message)
        if table.is_const and (verb != "modify" or message.HasField("action")):
            raise P4RuntimeError("PERMISSION_DENIED", f"table '{table.name}': its entries are constant")
        if not len(table.fields):
            raise invalid_argument(f"table '{table.name}' has no key, so no entries but the default one")
        entry = table_entries.key_from_message(table, message)
        key = entry_key(entry)
        if verb == "delete":
            return _Plan([("delete", entry)], then=lambda: self._note_entry(key, None))
        table_entries.check_resources(table, message, writing=True)
        plan = _Plan(then=lambda: self._note_entry(key, message))
        if verb == "insert" or message.HasField("action"):
            entry.action_id, entry.args = table_entries.action_from_message(table, message.action, is_default=False)
            plan.core.append((verb, entry))
        elif not exists(entry):
            raise P4RuntimeError("NOT_FOUND", f"table '{table.name}' has no such entry")
        self._plan_counter_data(plan, entry, message)
        return plan

    def _plan_default_entry(self, verb: Verb, table: Table, message: Proto) -> _Plan:
        if verb != "modify":
            raise invalid_argument(f"table '{table.name}' always has its default entry; it can only be modified")
        entry = table_entries.key_from_message(table, message)
        if table.const_default_action_id:
            raise P4RuntimeError("PERMISSION_DENIED", f"table '{table.name}': its default action is constant")
        table_entries.check_resources(table, message, writing=True)
        key = entry_key(entry)
        if message.HasField("action"):
            entry.action_id, entry.args = table_entries.action_from_message(table, message.action, is_default=True)
            plan = _Plan(then=lambda: self._note_entry(key, message))
        else:
            original = self.initial_defaults.get(table.id)
            if original is None:
                raise P4RuntimeError(
                    "INTERNAL", f"table '{table.name}': the switch did not tell its initial default action"
                )
            entry.action_id, entry.args = original.action_id, dict(original.args)
            plan = _Plan(then=lambda: self._note_entry(key, None))
        plan.core.append(("modify", entry))
        self._plan_counter_data(plan, entry, message)
        return plan

    @staticmethod
    def _plan_counter_data(plan: _Plan, entry: TableEntry, message: Proto) -> None:
        if message.HasField("counter_data"):
            key = TableEntry(entry.table_id, entry.matches, priority=entry.priority, is_default=entry.is_default)
            packets, octets = _counter_data(message.counter_data)
            plan.core.append(("modify", DirectCounterCell(key, packets, octets)))

    def _exists(self, key: TableEntry) -> bool:
        try:
            return self.switch.table_entry(key) is not None
        except ControlError as e:
            raise P4RuntimeError(e.code, str(e)) from None

    def _note_entry(self, key: EntryKey, message: Proto | None) -> None:
        if message is not None and (message.metadata or message.controller_metadata):
            self.notes.entries[key] = (message.metadata, message.controller_metadata)
        else:
            self.notes.entries.pop(key, None)

    def _plan_replication(self, verb: Verb, message: Proto) -> _Plan:
        kind = message.WhichOneof("type")
        entity: MulticastGroup | CloneSession
        if kind == "multicast_group_entry":
            inner = message.multicast_group_entry
            entity, notes = replication.group_from_message(inner, key_only=verb == "delete"), self.notes.groups
            note = inner.metadata, replication.numeric_ports(inner.replicas)
            return _Plan([(verb, entity)], then=lambda: _note(notes, verb, inner.multicast_group_id, note))
        if kind == "clone_session_entry":
            inner = message.clone_session_entry
            entity, sessions = replication.session_from_message(inner, key_only=verb == "delete"), self.notes.sessions
            ports = replication.numeric_ports(inner.replicas)
            return _Plan([(verb, entity)], then=lambda: _note(sessions, verb, inner.session_id, ports))
        raise invalid_argument("the packet replication engine entry has no type")

    def _plan_counter(self, verb: Verb, message: Proto) -> _Plan:
        counter = self.index.counters.by_id(message.counter_id)
        _modify_only(verb, f"counter '{counter.name}'")
        cells = _cells(message, counter.size, f"counter '{counter.name}'")
        if not message.HasField("data"):
            return _Plan()
        packets, octets = _counter_data(message.data)
        return _Plan([("modify", CounterCell(counter.id, i, packets, octets)) for i in cells])

    def _plan_direct_counter(self, verb: Verb, message: Proto) -> _Plan:
        if not message.HasField("table_entry"):
            raise invalid_argument("the direct counter entry has no table entry")
        table = self.index.tables.by_id(message.table_entry.table_id)
        _modify_only(verb, f"the direct counter of table '{table.name}'")
        if not table.direct_counter_id:
            raise invalid_argument(f"table '{table.name}' has no direct counter")
        entry = table_entries.key_from_message(table, message.table_entry)
        if not message.HasField("data"):
            if not self._exists(entry):
                raise P4RuntimeError("NOT_FOUND", f"table '{table.name}' has no such entry")
            return _Plan()
        packets, octets = _counter_data(message.data)
        return _Plan([("modify", DirectCounterCell(entry, packets, octets))])

    def _plan_register(self, verb: Verb, message: Proto) -> _Plan:
        register = self.index.registers.by_id(message.register_id)
        _modify_only(verb, f"register '{register.name}'")
        cells = _cells(message, register.size, f"register '{register.name}'")
        number = p4data.from_p4data(register.type_spec, self.index.message.type_info, message.data)
        return _Plan([("modify", RegisterCell(register.id, i, codec.encode(number))) for i in cells])

    # ---- Read ----

    def read_plain(self, entity: Proto) -> list[bytes] | None:
        """Serialized ``ReadResponse`` messages with all entries of a table, if that is wanted and they are plain."""
        if self._plain is None or self.notes.entries or entity.WhichOneof("entity") != "table_entry":
            return None
        return plain.read(self._plain, self.switch, entity.table_entry)

    def read(self, entity: Proto) -> Iterator[Proto]:
        """The ``Entity`` messages that a request ``Entity`` selects."""
        kind = entity.WhichOneof("entity")
        if kind is None:
            raise invalid_argument("the request has no entity, or one of a later version of P4Runtime")
        message = getattr(entity, kind)
        match kind:
            case "table_entry":
                return (p4runtime_pb2.Entity(table_entry=e) for e in self._read_table_entries(message))
            case "direct_counter_entry":
                return self._read_direct_counters(message)
            case "counter_entry":
                return self._read_counters(message)
            case "register_entry":
                return self._read_registers(message)
            case "packet_replication_engine_entry":
                return iter(self._read_replication(message))
            case "digest_entry":
                if message.digest_id:
                    self.index.digests.by_id(message.digest_id)
                return (p4runtime_pb2.Entity(digest_entry=e) for e in self.digests.entries(message.digest_id))
        is_wildcard = kind == "direct_meter_entry" or not getattr(message, _ID_FIELDS[kind])
        if is_wildcard and not len(getattr(self.index.message, _UNSUPPORTED[kind])):
            return iter(())  # a read of everything, in a program that has none
        raise unimplemented(f"{kind} is not supported")

    def _read_table_entries(self, message: Proto) -> Iterator[Proto]:
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
            return (m for table in self.index.tables for m in self._read_table(table, message))
        table = self.index.tables.by_id(message.table_id)
        table_entries.check_resources(table, message, writing=False)
        if message.is_default_action and (message.match or message.priority):
            raise invalid_argument(f"table '{table.name}': the default entry has no match fields and no priority")
        if message.HasField("action"):
            if message.action.WhichOneof("type") != "action":
                raise invalid_argument("entries can be selected by action id only")
            table.actions.by_id(message.action.action.action_id)
        return self._read_table(table, message)

    def _read_table(self, table: Table, message: Proto) -> Iterator[Proto]:
        wanted = table_entries.matches_from_message(table, message.match) if message.match else None
        action_id = message.action.action.action_id
        for entry in self.switch.table_entries(table.id, include_default=message.is_default_action):
            if entry.is_default != message.is_default_action:
                continue
            if (message.priority and entry.priority != message.priority) or (
                action_id and entry.action_id != action_id
            ):
                continue
            matches = table_entries.canonical_matches(table, entry.matches)
            if wanted is not None and matches != wanted:
                continue
            key = (table.id, tuple(sorted(matches.items())), entry.priority, entry.is_default)
            metadata, controller_metadata = self.notes.entries.get(key, (b"", 0))
            if message.metadata not in (b"", metadata) or message.controller_metadata not in (0, controller_metadata):
                continue
            found = table_entries.entry_message(table, entry)
            found.metadata, found.controller_metadata = metadata, controller_metadata
            if message.HasField("counter_data") and entry.counter is not None and table.direct_counter_id:
                found.counter_data.packet_count, found.counter_data.byte_count = entry.counter
            yield found

    def _read_direct_counters(self, message: Proto) -> Iterator[Proto]:
        wanted = p4runtime_pb2.TableEntry()
        wanted.CopyFrom(message.table_entry)
        wanted.ClearField("action")  # ignored, says the message's own comment
        wanted.counter_data.SetInParent()
        if wanted.table_id and not self.index.tables.by_id(wanted.table_id).direct_counter_id:
            raise invalid_argument(f"table {wanted.table_id} has no direct counter")
        found = list(self._read_table_entries(wanted))
        if wanted.match and not found:
            raise P4RuntimeError("NOT_FOUND", "there is no such table entry")
        for entry in found:
            if entry.HasField("counter_data"):
                entity = p4runtime_pb2.Entity()
                entity.direct_counter_entry.data.CopyFrom(entry.counter_data)
                for name in ("counter_data", "action", "is_const", "metadata", "controller_metadata"):
                    entry.ClearField(name)
                entity.direct_counter_entry.table_entry.CopyFrom(entry)
                yield entity

    def _read_counters(self, message: Proto) -> Iterator[Proto]:
        if not message.counter_id and message.HasField("index"):
            raise invalid_argument("a read of all counters takes no index")
        counters = [self.index.counters.by_id(message.counter_id)] if message.counter_id else list(self.index.counters)
        for counter in counters:
            if message.HasField("index"):
                _cells(message, counter.size, f"counter '{counter.name}'")
            index = message.index.index if message.HasField("index") else None
            for cell in self.switch.counters(counter.id, index):
                entry = p4runtime_pb2.CounterEntry(counter_id=counter.id)
                entry.index.index = cell.index
                entry.data.packet_count, entry.data.byte_count = cell.packets, cell.bytes
                yield p4runtime_pb2.Entity(counter_entry=entry)

    def _read_registers(self, message: Proto) -> Iterator[Proto]:
        if not message.register_id and message.HasField("index"):
            raise invalid_argument("a read of all registers takes no index")
        one = message.register_id
        types = self.index.message.type_info
        for register in [self.index.registers.by_id(one)] if one else list(self.index.registers):
            if message.HasField("index"):
                _cells(message, register.size, f"register '{register.name}'")
            index = message.index.index if message.HasField("index") else None
            for cell in self.switch.registers(register.id, index):
                entry = p4runtime_pb2.RegisterEntry(register_id=register.id)
                entry.index.index = cell.index
                entry.data.CopyFrom(p4data.to_p4data(register.type_spec, types, int.from_bytes(cell.value, "big")))
                yield p4runtime_pb2.Entity(register_entry=entry)

    def _read_replication(self, message: Proto) -> list[Proto]:
        kind = message.WhichOneof("type")
        if kind == "multicast_group_entry":
            wanted = message.multicast_group_entry.multicast_group_id
            groups = [g for g in self.switch.multicast_groups() if wanted in (0, g.group_id)]
            if wanted and not groups:
                raise P4RuntimeError("NOT_FOUND", f"there is no multicast group {wanted}")
            notes = [self.notes.groups.get(g.group_id, (b"", frozenset())) for g in groups]
            return [replication.group_message(g, ports, data) for g, (data, ports) in zip(groups, notes, strict=True)]
        if kind == "clone_session_entry":
            wanted = message.clone_session_entry.session_id
            sessions = [s for s in self.switch.clone_sessions() if wanted in (0, s.session_id)]
            if wanted and not sessions:
                raise P4RuntimeError("NOT_FOUND", f"there is no clone session {wanted}")
            return [
                replication.session_message(s, self.notes.sessions.get(s.session_id, frozenset())) for s in sessions
            ]
        raise invalid_argument("the packet replication engine entry has no type")

    # ---- Moving to another program ----

    def state(self) -> Iterator[Update]:
        """Updates that bring a switch from the state after loading (without initial entries) to this one's."""
        for group in self.switch.multicast_groups():
            yield "insert", group
        for session in self.switch.clone_sessions():
            yield "insert", session
        for table in self.index.tables:
            for entry in self.switch.table_entries(table.id, include_default=True):
                yield from self._entry_state(table, entry)
        for register in self.index.registers:
            for cell in self.switch.registers(register.id):
                if any(cell.value):
                    yield "modify", RegisterCell(register.id, cell.index, cell.value)
        for counter in self.index.counters:
            for counted in self.switch.counters(counter.id):
                if counted.packets or counted.bytes:
                    yield "modify", counted

    def _entry_state(self, table: Table, entry: TableEntry) -> Iterator[Update]:
        matches = table_entries.canonical_matches(table, entry.matches)
        copy = TableEntry(table.id, matches, entry.action_id, dict(entry.args), entry.priority, entry.is_default)
        if entry.is_default:
            original = self.initial_defaults[table.id]
            if (original.action_id, dict(original.args)) != (entry.action_id, dict(entry.args)):
                yield "modify", copy
        elif not entry.is_const:
            yield "insert", copy
        if entry.counter is not None and any(entry.counter):
            key = TableEntry(table.id, matches, priority=entry.priority, is_default=entry.is_default)
            yield "modify", DirectCounterCell(key, *entry.counter)


def check_belongs(index: P4InfoIndex, switch: Switch) -> None:
    """INVALID_ARGUMENT unless every object of the P4Info is one of the switch's program."""
    try:
        for table in index.tables:
            switch.table_entries(table.id, include_default=True)
        for register in index.registers:
            switch.registers(register.id, register.size - 1 if register.size else None)
            p4data.width_of(register.type_spec, index.message.type_info)
        for counter in index.counters:
            switch.counters(counter.id, counter.size - 1 if counter.size else None)
    except ControlError as e:
        raise invalid_argument(f"the P4Info and the device config are not of one program: {e}") from None


def _modify_only(verb: Verb, what: str) -> None:
    if verb != "modify":
        raise invalid_argument(f"{what}: cells can be modified, not inserted or deleted")


def _counter_data(message: Proto) -> tuple[int, int]:
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid_argument("a counter is not negative")
    return message.packet_count, message.byte_count


def _cells(message: Proto, size: int, what: str) -> Iterable[int]:
    """The cells that a message with an optional ``index`` means."""
    if not message.HasField("index"):
        return range(size)
    index = message.index.index
    if index < 0:
        raise invalid_argument(f"{what}: index {index} is negative")
    if index >= size:
        raise P4RuntimeError("OUT_OF_RANGE", f"{what}: index {index}, but there are {size} cells")
    return (index,)


def _note(notes: dict[int, V], verb: Verb, id: int, value: V) -> None:
    if verb == "delete":
        notes.pop(id, None)
    else:
        notes[id] = value
