"""Table entries that need no protobuf library: which they are. What becomes of their bytes is the native core's business.

A request is plain if all of it is valid inserts, modifies and deletes of entries with a match and an action, in tables
without implementation, direct meter, translated types or constant entries. Everything else, and everything that is
wrong, goes the way of :mod:`.pipeline` and :mod:`.table_entries`, so errors are worded in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from holdfast import _core
from holdfast._core import PlainTables, Program, Switch
from holdfast.p4runtime.p4info import P4InfoIndex, Table
from holdfast.p4runtime.snapshots import ENTRIES_PER_SLICE, Snapshot, replaced
from holdfast.p4runtime.stubs import Proto

Failure: TypeAlias = tuple[int, str, str]
"""Of one update of a request: position, status name, message."""


def plain_tables(index: P4InfoIndex, program: Program, switch: Switch) -> PlainTables | None:
    """The tables of a program whose entries may be plain; None for a switch that is not the native core's."""
    if not isinstance(switch, _core.Switch):
        return None
    return PlainTables(program, [_description(table) for table in index.tables if _may_be_plain(table)])


def _may_be_plain(table: Table) -> bool:
    parts = [*table.fields, *(param for action in table.actions for param in action.params)]
    translated = any(part.translation is not None for part in parts)
    return not (table.is_const or table.implementation_id or table.direct_meter_id or translated)


def _description(table: Table) -> _core.PlainTable:
    fields = [(f.id, f.kind, f.width) for f in table.fields]
    actions = [a for a in table.actions if table.scopes[a.id] != "default_only"]
    return table.id, fields, [(a.id, [(p.id, p.width) for p in a.params]) for a in actions]


def is_plain_read(wanted: Proto) -> bool:
    """Whether a ``TableEntry`` asks for all entries of one table, with or without their direct counters."""
    set_fields = {field.name for field, _ in wanted.ListFields()}
    return bool(wanted.table_id) and set_fields <= {"table_id", "counter_data"}


def read(tables: PlainTables, snapshot: Snapshot, wanted: Proto) -> Iterator[bytes]:
    """Serialized ``ReadResponse`` messages with the entries of a table."""
    counters = wanted.HasField("counter_data")
    place: int | None = 0
    while place is not None:
        slice = tables.read(snapshot.switch, snapshot.core, place, ENTRIES_PER_SLICE, counters)
        if slice is None:
            raise replaced()
        response, place = slice
        if response:
            yield response
