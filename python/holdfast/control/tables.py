"""Table entries as values, and a writer that makes a switch's entries equal to the wanted ones, in one batch.

It does not know the source of the entries: planning returns values, and a switch returns the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from holdfast.p4runtime.client import Client
from holdfast.p4runtime.received import Entry

Write: TypeAlias = Callable[[Client], None]
"""A write to one switch."""

MatchValue: TypeAlias = int | str | tuple[int, int]
"""A number, or (value, prefix length), (value, mask), (low, high)."""

Replicas: TypeAlias = tuple[tuple[int, int], ...]
"""Of a multicast group: egress port and instance of each copy."""

EntryKey: TypeAlias = tuple[str, tuple[tuple[str, MatchValue], ...], int | None]
"""The key of an entry among all of its switch: table, match, priority."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An entry with the program's full names and with numbers as values, as a switch returns it."""

    table: str
    match: Mapping[str, MatchValue]
    action: str
    params: Mapping[str, int | str] = field(default_factory=dict)
    priority: int | None = None
    metadata: bytes = b""

    @classmethod
    def of(cls, entry: Entry) -> TableEntry:
        """An entry that was read."""
        return cls(entry.table, entry.match, entry.action, entry.params, entry.priority or None, entry.metadata)

    @property
    def key(self) -> EntryKey:
        """The identity of the entry in its switch."""
        return self.table, tuple(sorted(self.match.items())), self.priority

    def insert(self, client: Client) -> None:
        """Adds the entry."""
        client.insert(self.table, self.match, self.action, self.params, self.priority, metadata=self.metadata)

    def modify(self, client: Client) -> None:
        """Gives the entry with this key this action."""
        client.modify(self.table, self.match, self.action, self.params, self.priority, metadata=self.metadata)

    def delete(self, client: Client) -> None:
        """Removes the entry with this key."""
        client.delete(self.table, self.match, self.priority)


def read_entries(client: Client, table: str) -> list[TableEntry]:
    """The entries of a table; none if the program does not have the table."""
    return [TableEntry.of(entry) for entry in client.read_table(table)] if has_table(client, table) else []


def has_table(client: Client, table: str) -> bool:
    """Whether a switch's program has this table: applications have optional ones."""
    return any(known.preamble.name == table for known in client.p4info.message.tables)


class TableWriter:
    """The entries, and the multicast groups, that one controller keeps in one switch."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._installed: dict[EntryKey, TableEntry] = {}
        self._groups: dict[int, Replicas] = {}

    @property
    def installed(self) -> list[TableEntry]:
        """The entries that are in the switch, as far as this writer knows."""
        return list(self._installed.values())

    def adopt(self, entries: Iterable[TableEntry]) -> None:
        """Takes entries over that an earlier controller has left in the switch: the next write keeps, changes or removes them."""
        self._installed = {entry.key: entry for entry in entries}

    def write(self, wanted: Iterable[TableEntry], groups: Mapping[int, Replicas] | None = None) -> None:
        """Writes the differences between what is installed and what is wanted in one batch.

        ``groups``: the wanted multicast groups by id; by default those that are there stay. No entry loses its group before it.
        """
        entries = {entry.key: entry for entry in wanted}
        replicas = self._groups if groups is None else dict(groups)
        with self._client.batch():
            for key in sorted(self._installed.keys() - entries.keys()):
                self._installed[key].delete(self._client)
            for number in sorted(number for number, ports in replicas.items() if self._groups.get(number) != ports):
                verb: Literal["insert", "modify"] = "modify" if number in self._groups else "insert"
                self._client.multicast_group(number, replicas[number], verb=verb)
            for key in sorted(key for key, entry in entries.items() if self._installed.get(key) != entry):
                entry = entries[key]
                (entry.modify if key in self._installed else entry.insert)(self._client)
            for number in sorted(self._groups.keys() - replicas.keys()):
                self._client.delete_multicast_group(number)
        self._installed, self._groups = entries, replicas
