"""Tables as they were when a Read began, read in slices: packets pass between two slices, and updates do not show.

The core keeps, for every snapshot that is open, entries that change (see ``holdfast._core.Switch.snapshot_table``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast._core import Switch, TableEntry, TableSnapshot
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.planning import EntryNote, Notes
from holdfast.p4runtime.table_entries import EntryKey

ENTRIES_PER_SLICE = 512


@dataclass(frozen=True)
class Snapshot:
    """One table of a switch."""

    switch: Switch
    core: TableSnapshot

    def entries(self) -> Iterator[TableEntry]:
        """All but the default one. Raises ControlError ABORTED when the program is replaced meanwhile."""
        place: int | None = 0
        while place is not None:
            entries, place = self.switch.read_snapshot(self.core, place, ENTRIES_PER_SLICE)
            yield from entries


class Snapshots:
    """What one request reads, as of the moment at which it began. Its methods are called while the device is locked."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._tables: dict[int, Snapshot] = {}
        self._entry_notes: dict[EntryKey, EntryNote] | None = None

    def entry_notes(self, notes: Notes) -> dict[EntryKey, EntryNote]:
        """What clients said of table entries."""
        if self._entry_notes is None:
            self._entry_notes = dict(notes.entries)
        return self._entry_notes

    def table(self, id: int) -> Snapshot:
        """One table."""
        if id not in self._tables:
            self._tables[id] = Snapshot(self._switch, self._switch.snapshot_table(id))
        return self._tables[id]


def replaced() -> P4RuntimeError:
    """The Read began with another program."""
    return P4RuntimeError("ABORTED", "the pipeline was replaced during the Read")
