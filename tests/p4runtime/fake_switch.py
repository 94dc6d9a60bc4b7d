"""A switch in a few dictionaries that keeps the control contract of ``holdfast._core``. It forwards nothing.

It lets the tests check the protocol apart from the core: if the two disagree, a test passes
on one and fails on the other. A program's artifact is its P4Info text and its initial entries.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast._core import (
    CloneSession,
    ControlError,
    CounterCell,
    DirectCounterCell,
    MulticastGroup,
    RegisterCell,
    TableEntry,
)


def refused(code: str, message: str) -> ControlError:
    error = ControlError(message)
    error.code = code
    return error


class FakeProgram:
    """See :class:`holdfast._core.Program`. ``initial``: constant entries that come with the program."""

    MAGIC = b"FAKE"

    def __init__(self, p4info: str, name: str = "fake", initial: tuple[TableEntry, ...] = ()) -> None:
        from holdfast.p4runtime.p4info import P4InfoIndex

        self.name = name
        self.p4info = p4info
        self.initial = initial
        self.index = P4InfoIndex.from_text(p4info)

    def artifact(self) -> bytes:
        def plain(value: Any) -> Any:
            return {"hex": value.hex()} if isinstance(value, bytes) else value

        entries = [
            [
                e.table_id,
                [[i, *map(plain, m)] for i, m in e.matches.items()],
                e.action_id,
                [[i, v.hex()] for i, v in e.args.items()],
            ]
            for e in self.initial
        ]
        return self.MAGIC + json.dumps({"p4info": self.p4info, "name": self.name, "entries": entries}).encode()

    def check_claims(self, *, tables: Any, registers: Any, counters: Any, **_: Any) -> None:
        claimed = [t[0][0] for t in tables] + [r[0] for r in registers] + [c[0] for c in counters]
        known = {o.id for kind in (self.index.tables, self.index.registers, self.index.counters) for o in kind}
        if missing := sorted(set(claimed) ^ known):
            raise refused("INVALID_ARGUMENT", f"only one of them has {missing}")

    @staticmethod
    def from_artifact(data: bytes) -> FakeProgram:
        if not data.startswith(FakeProgram.MAGIC):
            raise refused("INVALID_ARGUMENT", "this is no compiled program")

        def value(item: Any) -> Any:
            return bytes.fromhex(item["hex"]) if isinstance(item, dict) else item

        content = json.loads(data[len(FakeProgram.MAGIC) :])
        entries = []
        for table_id, matches, action_id, args in content["entries"]:
            entry = TableEntry(table_id, {m[0]: tuple(map(value, m[1:])) for m in matches}, action_id)
            entry.args = {i: bytes.fromhex(v) for i, v in args}
            entry.is_const = True
            entries.append(entry)
        return FakeProgram(content["p4info"], content["name"], tuple(entries))


def copy_of(entity: Any) -> Any:
    """Another record with the same content; the native ones know no :mod:`copy`."""
    if isinstance(entity, TableEntry):
        copied = TableEntry(entity.table_id, dict(entity.matches), entity.action_id, dict(entity.args))
        copied.priority, copied.is_default, copied.is_const = entity.priority, entity.is_default, entity.is_const
        return copied
    if isinstance(entity, MulticastGroup):
        return MulticastGroup(entity.group_id, list(entity.replicas))
    assert isinstance(entity, CloneSession)
    return CloneSession(entity.session_id, list(entity.replicas), entity.packet_length_bytes, entity.class_of_service)


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


class FakeSwitch:
    """See :class:`holdfast._core.Switch`."""

    def __init__(self, program: FakeProgram) -> None:
        self.packets_out: list[bytes] = []
        self.digests_waiting: list[tuple[int, bytes]] = []
        self.set_program(program)

    def set_program(self, program: FakeProgram) -> None:
        self.program = program
        self.tables: dict[int, dict[Any, TableEntry]] = {t.id: {} for t in program.index.tables}
        self.defaults: dict[int, TableEntry] = {}
        for table in program.index.message.tables:
            default = TableEntry(table.preamble.id, is_default=True)
            default.action_id = table.initial_default_action.action_id
            default.args = {a.param_id: a.value for a in table.initial_default_action.arguments}
            self.defaults[default.table_id] = default
        for entry in program.initial:
            self.tables[entry.table_id][self._key(entry)] = copy_of(entry)
        self.counted: dict[Any, tuple[int, int]] = {}
        self.groups: dict[int, MulticastGroup] = {}
        self.sessions: dict[int, CloneSession] = {}
        self.cells: dict[tuple[int, int], int] = {}

    @staticmethod
    def _key(entry: TableEntry) -> Any:
        matches = tuple(
            sorted((i, *(number(p) if isinstance(p, bytes) else p for p in m)) for i, m in entry.matches.items())
        )
        return matches, entry.priority

    def write(self, updates: Any, atomicity: str = "continue_on_error") -> list[tuple[str, str] | None]:
        names = ("tables", "defaults", "counted", "groups", "sessions", "cells")
        before = {name: self._saved(getattr(self, name)) for name in names}
        results: list[tuple[str, str] | None] = []
        for verb, entity in updates:
            try:
                self._write_one(verb, entity)
                results.append(None)
            except ControlError as e:
                results.append((e.code, str(e)))
        if atomicity == "undo" or (atomicity == "rollback_on_error" and any(results)):
            for name in names:
                setattr(self, name, before[name])
        if atomicity == "rollback_on_error" and any(results):
            return [result or ("ABORTED", "another failed") for result in results]
        return results

    @staticmethod
    def _saved(store: dict[Any, Any]) -> dict[Any, Any]:
        """A copy that later writes do not touch: they replace records, and never change one."""
        return {k: dict(v) if isinstance(v, dict) else v for k, v in store.items()}

    def _write_one(self, verb: str, entity: Any) -> None:
        if isinstance(entity, TableEntry):
            self._write_entry(verb, entity)
        elif isinstance(entity, MulticastGroup):
            self._write_into(self.groups, verb, entity.group_id, entity)
        elif isinstance(entity, CloneSession):
            self._write_into(self.sessions, verb, entity.session_id, entity)
        elif isinstance(entity, RegisterCell):
            register = self.program.index.registers.by_id(entity.register_id)
            if verb != "modify" or number(entity.value) >> 32:
                raise refused("OUT_OF_RANGE", "no such value")
            for index in self._indices(register.size, entity.index):
                self.cells[entity.register_id, index] = number(entity.value)
        elif isinstance(entity, CounterCell):
            counter = self.program.index.counters.by_id(entity.counter_id)
            if verb != "modify":
                raise refused("INVALID_ARGUMENT", "only modified")
            for index in self._indices(counter.size, entity.index):
                self.counted[entity.counter_id, index] = (entity.packets, entity.bytes)
        elif isinstance(entity, DirectCounterCell):
            entry = entity.entry
            if not entry.is_default and self._key(entry) not in self.tables[entry.table_id]:
                raise refused("NOT_FOUND", "no such entry")
            self.counted[entry.table_id, entry.is_default, self._key(entry)] = (entity.packets, entity.bytes)
        else:
            raise TypeError(entity)

    @staticmethod
    def _write_into(store: dict[int, Any], verb: str, id: int, value: Any) -> None:
        if verb == "insert" and id in store:
            raise refused("ALREADY_EXISTS", f"{id} exists")
        if verb != "insert" and id not in store:
            raise refused("NOT_FOUND", f"{id} does not exist")
        if verb == "delete":
            del store[id]
        else:
            store[id] = copy_of(value)

    def _write_entry(self, verb: str, entry: TableEntry) -> None:
        table = self.program.index.tables.get(entry.table_id)
        if table is None:
            raise refused("INVALID_ARGUMENT", f"no table {entry.table_id}")
        copied = TableEntry(
            entry.table_id, dict(entry.matches), entry.action_id, dict(entry.args), entry.priority, entry.is_default
        )
        if verb != "delete":
            action = table.actions.get(entry.action_id)
            if action is None or {p.id for p in action.params} != set(entry.args):
                raise refused("INVALID_ARGUMENT", "the action is not the table's")
        if entry.is_default:
            if verb != "modify" or table.const_default_action_id:
                raise refused("PERMISSION_DENIED", "not for the default entry")
            self.defaults[table.id] = copied
            return
        for id, match in entry.matches.items():
            if match[0] != table.fields.by_id(id).kind:
                raise refused("INVALID_ARGUMENT", "wrong kind of match")
        store, key = self.tables[table.id], self._key(entry)
        if table.is_const or (key in store and store[key].is_const):
            raise refused("PERMISSION_DENIED", "constant entries")
        if verb == "insert" and key not in store and len(store) >= table.size:
            raise refused("RESOURCE_EXHAUSTED", f"table {table.name} is full")
        if verb == "insert" and key in store:
            raise refused("ALREADY_EXISTS", "the entry exists")
        if verb != "insert" and key not in store:
            raise refused("NOT_FOUND", "there is no such entry")
        if verb == "delete":
            del store[key]
            self.counted.pop((table.id, False, key), None)
        else:
            store[key] = copied

    def snapshot_table(self, table_id: int) -> list[TableEntry]:
        return self.table_entries(table_id)

    def read_snapshot(self, snapshot: list[TableEntry], place: int, most: int) -> tuple[list[TableEntry], int | None]:
        end = place + most
        return snapshot[place:end], end if end < len(snapshot) else None

    def table_entries(self, table_id: int = 0, include_default: bool = False) -> list[TableEntry]:
        if table_id and table_id not in self.tables:
            raise refused("INVALID_ARGUMENT", f"no table {table_id}")
        found = []
        for id in [table_id] if table_id else list(self.tables):
            entries = list(self.tables[id].values()) + ([self.defaults[id]] if include_default else [])
            for entry in entries:
                entry = copy_of(entry)
                if self.program.index.tables.by_id(id).direct_counter_id:
                    entry.counter = self.counted.get((id, entry.is_default, self._key(entry)), (0, 0))
                found.append(entry)
        return found

    def table_entry(self, key: TableEntry) -> TableEntry | None:
        if key.is_default:
            return self.table_entries(key.table_id, include_default=True)[-1]
        return next((e for e in self.table_entries(key.table_id) if self._key(e) == self._key(key)), None)

    def multicast_groups(self) -> list[MulticastGroup]:
        return list(self.groups.values())

    def clone_sessions(self) -> list[CloneSession]:
        return list(self.sessions.values())

    def _indices(self, size: int, index: int | None, count: int = 1) -> range:
        if index is None:
            return range(size)
        if not 0 <= index < size:
            raise refused("OUT_OF_RANGE", f"no cell {index}")
        return range(index, min(index + count, size))

    def registers(
        self, register_id: int, index: int | None = None, count: int = 1, *, nonzero: bool = False
    ) -> list[RegisterCell]:
        register = self.program.index.registers.get(register_id)
        if register is None:
            raise refused("INVALID_ARGUMENT", f"no register {register_id}")
        indices = self._indices(register.size, index, count)
        values = ((i, self.cells.get((register_id, i), 0)) for i in indices)
        return [RegisterCell(register_id, i, value.to_bytes(4, "big")) for i, value in values if value or not nonzero]

    def counters(
        self, counter_id: int, index: int | None = None, count: int = 1, *, nonzero: bool = False
    ) -> list[CounterCell]:
        counter = self.program.index.counters.get(counter_id)
        if counter is None:
            raise refused("INVALID_ARGUMENT", f"no counter {counter_id}")
        indices = self._indices(counter.size, index, count)
        values = ((i, self.counted.get((counter_id, i), (0, 0))) for i in indices)
        return [CounterCell(counter_id, i, *value) for i, value in values if any(value) or not nonzero]

    def drops(self) -> dict[str, int]:
        return {}

    def take_digests(self, most: int | None = None) -> list[tuple[int, bytes]]:
        taken = self.digests_waiting[:most]
        del self.digests_waiting[:most]
        return taken

    def packet_out(self, packet: bytes) -> None:
        self.packets_out.append(packet)
