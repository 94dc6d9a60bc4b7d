"""Table entries as values, and a writer that makes a switch's entries equal to the wanted ones, in one batch.

It does not know the source of the entries: planning returns values, and a switch returns the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

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


def entry_key(table: str, match: Mapping[str, MatchValue], priority: int | None = None) -> EntryKey:
    """Return the key that identifies an entry in its switch: table, match and priority."""
    return table, tuple(sorted(match.items())) if len(match) > 1 else tuple(match.items()), priority


class TableEntry(NamedTuple):
    """An entry with the program's full names and with numbers as values, as a switch returns it.

    A tuple, because controllers make and compare thousands after a failure.
    """

    table: str
    match: Mapping[str, MatchValue]
    action: str
    params: Mapping[str, int | str] = MappingProxyType({})
    priority: int | None = None
    metadata: bytes = b""

    @classmethod
    def of(cls, entry: Entry) -> TableEntry:
        """Return the table entry that equals an entry read from a switch."""
        return cls(entry.table, entry.match, entry.action, entry.params, entry.priority or None, entry.metadata)

    @property
    def key(self) -> EntryKey:
        """The key that identifies the entry in its switch."""
        return entry_key(self.table, self.match, self.priority)

    def insert(self, client: Client) -> None:
        """Insert the entry in a switch."""
        client.insert(self.table, self.match, self.action, self.params, self.priority, metadata=self.metadata)

    def modify(self, client: Client) -> None:
        """Replace the action of the switch's entry with this key."""
        client.modify(self.table, self.match, self.action, self.params, self.priority, metadata=self.metadata)

    def delete(self, client: Client) -> None:
        """Delete the switch's entry with this key."""
        client.delete(self.table, self.match, self.priority)


def read_entries(client: Client, table: str) -> list[TableEntry]:
    """Return the entries of a switch's table; an empty list if the program does not have the table."""
    return [TableEntry.of(entry) for entry in client.read_table(table)] if has_table(client, table) else []


def has_table(client: Client, table: str) -> bool:
    """Return True if the switch's program has this table; some tables of applications are optional."""
    return any(known.preamble.name == table for known in client.p4info.message.tables)


def has_register(client: Client, register: str) -> bool:
    """Return True if the switch's program has this register."""
    return any(known.preamble.name == register for known in client.p4info.message.registers)


class TableWriter:
    """The entries, multicast groups and clone sessions that one controller keeps in one switch. A batch is atomic."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._installed: dict[EntryKey, TableEntry] = {}
        self._groups: dict[int, Replicas] = {}
        self._sessions: dict[int, Replicas] = {}

    @property
    def installed(self) -> list[TableEntry]:
        """The entries that are in the switch, as far as this writer knows."""
        return list(self._installed.values())

    @property
    def groups(self) -> Mapping[int, Replicas]:
        """The multicast groups in the switch, as far as this writer knows."""
        return self._groups

    @property
    def sessions(self) -> Mapping[int, Replicas]:
        """The clone sessions in the switch, as far as this writer knows."""
        return self._sessions

    def adopt(
        self,
        entries: Iterable[TableEntry],
        groups: Mapping[int, Replicas] | None = None,
        sessions: Mapping[int, Replicas] | None = None,
    ) -> None:
        """Record entries, multicast groups and clone sessions that an earlier controller left in the switch.

        The next write keeps, changes or removes them.
        """
        self._installed = {entry.key: entry for entry in entries}
        self._groups, self._sessions = dict(groups or {}), dict(sessions or {})

    def write(
        self,
        wanted: Iterable[TableEntry],
        groups: Mapping[int, Replicas] | None = None,
        sessions: Mapping[int, Replicas] | None = None,
    ) -> None:
        """Write in one batch the differences between the installed state and the wanted state.

        ``groups``, ``sessions``: the wanted multicast groups and clone sessions by id; None leaves them unchanged.
        """
        entries = {entry.key: entry for entry in wanted}
        self._change(
            entries,
            [key for key in self._installed if key not in entries],
            {} if groups is None else dict.fromkeys(self._groups.keys() - groups.keys()) | dict(groups),
            {} if sessions is None else dict.fromkeys(self._sessions.keys() - sessions.keys()) | dict(sessions),
        )

    def change(
        self,
        put: Iterable[TableEntry],
        removed: Iterable[EntryKey] = (),
        groups: Mapping[int, Replicas | None] | None = None,
        sessions: Mapping[int, Replicas | None] | None = None,
    ) -> None:
        """Put some entries and remove others in one batch; all other entries are unchanged.

        ``groups``, ``sessions``: multicast groups and clone sessions by id; None as a value removes one. No entry loses its group
        before the entry itself is removed.
        """
        self._change({entry.key: entry for entry in put}, removed, groups, sessions)

    def _change(
        self,
        put: Mapping[EntryKey, TableEntry],
        removed: Iterable[EntryKey],
        groups: Mapping[int, Replicas | None] | None,
        sessions: Mapping[int, Replicas | None] | None,
    ) -> None:
        """Apply the changes of :meth:`change`. ``put`` has the entries by key, as keys take long to compute."""
        client, installed = self._client, self._installed
        changed = {key: entry for key, entry in put.items() if installed.get(key) != entry}
        gone = [key for key in dict.fromkeys(removed) if key in installed]
        kinds = [
            (known, wanted, write, delete)
            for known, wanted, write, delete in (
                (self._groups, groups, client.multicast_group, client.delete_multicast_group),
                (self._sessions, sessions, client.clone_session, client.delete_clone_session),
            )
            if wanted
        ]
        with client.batch():
            for key in gone:
                installed[key].delete(client)
            for known, wanted, write, _ in kinds:
                for number, replicas in wanted.items():
                    if replicas is not None and known.get(number) != replicas:
                        write(number, replicas, verb="modify" if number in known else "insert")
            for key, entry in changed.items():
                (entry.modify if key in installed else entry.insert)(client)
            for known, wanted, _, delete in kinds:
                for number in sorted(number for number, replicas in wanted.items() if replicas is None):
                    if number in known:
                        delete(number)
        for key in gone:
            del installed[key]
        installed |= changed
        for known, wanted, _, _ in kinds:
            for number, replicas in wanted.items():
                if replicas is None:
                    known.pop(number, None)
                else:
                    known[number] = replicas
