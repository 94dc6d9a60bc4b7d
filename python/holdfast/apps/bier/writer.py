"""Writes a :class:`Configuration` of a switch: entries, multicast groups and clone sessions, the differences alone, in one batch.

It does not know what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.apps.bier.entries import Configuration
from holdfast.control.tables import EntryKey, Replicas, TableEntry, TableWriter
from holdfast.p4runtime.client import Client


class ConfigurationWriter:
    """One controller's entries in one switch. Each of its groups is a multicast group and a clone session of that number."""

    def __init__(self, client: Client) -> None:
        self._writer = TableWriter(client)

    @property
    def installed(self) -> Configuration:
        """The configuration in the switch, as far as this writer knows."""
        return Configuration(tuple(self._writer.installed), self._writer.groups, self._writer.sessions)

    def adopt(self, configuration: Configuration) -> None:
        """Take over what an earlier controller has left in the switch: the next write keeps, changes or removes it."""
        groups = configuration.groups
        self._writer.adopt(configuration.entries, groups, {**groups, **configuration.sessions})

    def write(self, wanted: Configuration) -> None:
        """Write the differences between what is installed and what is wanted."""
        self._writer.write(wanted.entries, wanted.groups, {**wanted.groups, **wanted.sessions})

    def change(
        self, put: Iterable[TableEntry], removed: Iterable[EntryKey], groups: Mapping[int, Replicas | None]
    ) -> None:
        """Make sure that these entries and groups are there, and others (groups: None) are not; the rest stays as it is."""
        self._writer.change(put, removed, groups, groups)
