"""Makes a switch's configuration equal to the wanted one: the differences alone, in one batch. It does not know what they mean."""

from __future__ import annotations

from holdfast.apps.telemetry import program
from holdfast.apps.telemetry.entries import Configuration
from holdfast.control.domain import REGISTER, set_domain_ports
from holdfast.control.tables import EntryKey, TableEntry, has_register
from holdfast.p4runtime.client import Client


class ConfigurationWriter:
    """The configuration that one controller keeps in one switch."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._entries: dict[EntryKey, TableEntry] = {}
        self._written = Configuration((), {}, (), None)

    def write(self, wanted: Configuration, routes: list[TableEntry] | None = None) -> None:
        """Write the differences from the last configuration in one batch; ``routes`` are further entries."""
        client, before = self._client, self._written
        entries = {entry.key: entry for entry in (*wanted.entries, *(routes or ()))}
        with client.batch():
            for key in sorted(self._entries.keys() - entries.keys(), key=repr):
                self._entries[key].delete(client)
            if wanted.report_port != before.report_port:
                if wanted.report_port is None:
                    client.delete_clone_session(program.REPORT_SESSION)
                else:
                    verb = "insert" if before.report_port is None else "modify"
                    client.clone_session(program.REPORT_SESSION, [(wanted.report_port, 0)], verb=verb)  # type: ignore[arg-type]
            for table in sorted(before.defaults.keys() - wanted.defaults.keys()):
                client.reset_default(table)
            for table, default in wanted.defaults.items():
                if before.defaults.get(table) != default:
                    client.set_default(table, default.action, default.params)
            if wanted.domain_ports != before.domain_ports:
                if has_register(client, REGISTER):
                    set_domain_ports(client, frozenset(wanted.domain_ports), frozenset(before.domain_ports))
                else:
                    client.set_value_set(program.DOMAIN_PORTS, wanted.domain_ports)
            for key, entry in entries.items():
                if self._entries.get(key) != entry:
                    (entry.modify if key in self._entries else entry.insert)(client)
        self._entries, self._written = entries, wanted
