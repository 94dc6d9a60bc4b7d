"""Writes what is wanted of a switch: entries, multicast groups and clone sessions, the differences alone, in one batch.

It does not know what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.apps.bier.entries import Configuration, Replicas
from holdfast.control.tables import EntryKey, TableEntry
from holdfast.p4runtime.client import Client


class ConfigurationWriter:
    """What one controller keeps in one switch. A batch is atomic: no packet sees half of it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._entries: dict[EntryKey, TableEntry] = {}
        self._groups: Mapping[int, Replicas] = {}
        self._sessions: Mapping[int, Replicas] = {}

    @property
    def installed(self) -> Configuration:
        """What is in the switch, as far as this writer knows."""
        return Configuration(tuple(self._entries.values()), self._groups, {**self._sessions})

    def adopt(self, configuration: Configuration) -> None:
        """Takes over what an earlier controller has left in the switch: the next write keeps, changes or removes it."""
        self._entries = {entry.key: entry for entry in configuration.entries}
        self._groups = configuration.groups
        self._sessions = {**configuration.groups, **configuration.sessions}

    def write(self, wanted: Configuration) -> None:
        """Writes the differences between what is installed and what is wanted."""
        entries = {entry.key: entry for entry in wanted.entries}
        sessions = {**wanted.groups, **wanted.sessions}
        client = self._client
        with client.batch():
            for key in sorted(self._entries.keys() - entries.keys(), key=repr):
                self._entries[key].delete(client)
            _write_replicas(self._groups, wanted.groups, client.multicast_group, client.delete_multicast_group)
            _write_replicas(self._sessions, sessions, client.clone_session, client.delete_clone_session)
            for key, entry in entries.items():
                if self._entries.get(key) != entry:
                    (entry.modify if key in self._entries else entry.insert)(client)
        self._entries, self._groups, self._sessions = entries, dict(wanted.groups), sessions


def _write_replicas(
    installed: Mapping[int, Replicas],
    wanted: Mapping[int, Replicas],
    put: Callable[..., None],
    delete: Callable[[int], None],
) -> None:
    for number in sorted(installed.keys() - wanted.keys()):
        delete(number)
    for number in sorted(number for number, replicas in wanted.items() if installed.get(number) != replicas):
        put(number, wanted[number], verb="modify" if number in installed else "insert")
