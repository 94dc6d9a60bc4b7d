"""Table entries as values: planning returns them, and a switch returns the same values.

It does not know the source of the entries, nor when they are written (:mod:`holdfast.control.desired`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from holdfast.p4runtime.client import Client, Rates, Verb
from holdfast.p4runtime.received import Entry, Group, Member

MatchValue: TypeAlias = int | str | tuple[int, int]
"""An exact value, or (value, prefix length), (value, mask) or (low, high)."""

EntryKey: TypeAlias = tuple[str, tuple[tuple[str, MatchValue], ...], int | None]
"""The table, the match and the priority of an entry, which identify it among all entries of its switch."""


def entry_key(table: str, match: Mapping[str, MatchValue], priority: int | None = None) -> EntryKey:
    """Return the key that identifies an entry in its switch: table, match and priority."""
    return table, tuple(sorted(match.items())) if len(match) > 1 else tuple(match.items()), priority


class TableEntry(NamedTuple):
    """An entry with the program's full names and with numbers as values, as a switch returns it.

    A tuple, because controllers make and compare thousands after a failure.
    """

    table: str
    match: Mapping[str, MatchValue]
    action: str | Member | Group
    params: Mapping[str, int | str] = MappingProxyType({})
    priority: int | None = None
    metadata: bytes = b""
    idle_timeout_ns: int = 0
    rates: Rates | None = None
    """Those of the table's direct meter."""

    @classmethod
    def of(cls, entry: Entry) -> TableEntry:
        """Return the table entry that equals an entry read from a switch."""
        action: str | Member | Group = entry.action
        if entry.member is not None:
            action = Member(entry.member)
        elif entry.group is not None:
            action = Group(entry.group)
        return cls(
            entry.table,
            entry.match,
            action,
            entry.params,
            entry.priority or None,
            entry.metadata,
            entry.idle_timeout_ns,
            entry.rates,
        )

    @classmethod
    def read(cls, client: Client, places: Iterable[str | EntryKey]) -> list[TableEntry]:
        """Return the entries of these tables and with these keys, without the program's constants; a table may be missing."""
        keys = [(place, (), None) if isinstance(place, str) else place for place in places]
        found = [client.read_table(table, dict(match), at) for table, match, at in keys if has_table(client, table)]
        return [cls.of(entry) for entries in found for entry in entries if not entry.is_const]

    @property
    def key(self) -> EntryKey:
        """The key that identifies the entry in its switch."""
        return entry_key(self.table, self.match, self.priority)

    @property
    def place(self) -> EntryKey:
        """The place at which :meth:`read` finds this entry alone. A table's name is a place too, that of all its entries."""
        return self.key

    def write(self, client: Client, verb: Verb) -> None:
        """Insert the entry in a switch, or modify or delete the switch's entry with its key, as ``verb`` says."""
        if verb == "delete":
            client.delete(self.table, self.match, self.priority)
            return
        (client.insert if verb == "insert" else client.modify)(
            self.table,
            self.match,
            self.action,
            self.params,
            self.priority,
            metadata=self.metadata,
            idle_timeout_ns=self.idle_timeout_ns,
            rates=self.rates,
        )

    def insert(self, client: Client) -> None:
        """Insert the entry in a switch."""
        self.write(client, "insert")

    def modify(self, client: Client) -> None:
        """Replace the action of the switch's entry with this key."""
        self.write(client, "modify")

    def delete(self, client: Client) -> None:
        """Delete the switch's entry with this key."""
        self.write(client, "delete")


def read_entries(client: Client, *tables: str) -> list[TableEntry]:
    """Return the entries of a switch's tables; tables that its program does not have are left out."""
    return TableEntry.read(client, tables)


def has_table(client: Client, table: str) -> bool:
    """Return True if the switch's program has this table; some tables of applications are optional."""
    return any(known.preamble.name == table for known in client.p4info.message.tables)


def has_meter(client: Client, meter: str) -> bool:
    """Return True if the switch's program has this meter."""
    return any(known.preamble.name == meter for known in client.p4info.message.meters)


def has_register(client: Client, register: str) -> bool:
    """Return True if the switch's program has this register."""
    return any(known.preamble.name == register for known in client.p4info.message.registers)
