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
        """Take over the configuration that an earlier controller left; later writes keep, change or remove its parts."""
        groups = configuration.groups
        self._writer.adopt(configuration.entries, groups, {**groups, **configuration.sessions})

    def write(self, wanted: Configuration) -> None:
        """Write the differences between the installed configuration and ``wanted``, in one batch."""
        self._writer.write(wanted.entries, wanted.groups, {**wanted.groups, **wanted.sessions})

    def change(
        self, put: Iterable[TableEntry], removed: Iterable[EntryKey], groups: Mapping[int, Replicas | None]
    ) -> None:
        """Write ``put`` and ``groups``, and delete ``removed`` and the groups that are None; keep everything else."""
        self._writer.change(put, removed, groups, groups)
