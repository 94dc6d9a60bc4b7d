"""Keeps a rule set, and the bindings, in one switch, and replaces a rule set at one moment.

The rules of a new set are written beside the active ones, under the other generation, while the active ones judge packets. Then
one batch changes zones, limits and the epoch, between two packets. Entries that the epoch replaces are deleted afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from holdfast.apps.firewall import entries, program
from holdfast.apps.firewall.entries import Numbering, Rates, Station
from holdfast.apps.firewall.rules import Port, Rate, RuleSet
from holdfast.apps.firewall.sources import SourceWriter
from holdfast.control.tables import EntryKey, TableEntry, TableWriter, has_table, read_entries
from holdfast.p4runtime.client import Client

CHUNK = 500
"""Entries of a rule set that is not active, in one batch: packets pass between batches."""

EPOCHS = 1 << 32


class FirewallWriter:
    """A controller's entries in one switch. ``secret``: of the keys of the hash of flows, if the switch has none yet."""

    def __init__(self, client: Client, secret: bytes) -> None:
        self._client = client
        self.bridged = has_table(client, program.STATIONS)
        self.judges = has_table(client, program.RULE_TABLE)
        self.numbers = Numbering()
        self._keys = _hash_keys(secret)
        self._epoch = 0
        self._configuration = TableWriter(client)
        self.sources = SourceWriter(client)
        self._rules: dict[int, dict[EntryKey, TableEntry]] = {0: {}, 1: {}}
        self._limits: dict[int, tuple[Rates | None, Rates | None]] = {}
        self._timeouts: dict[int, int] = {}
        self._new_flows: Rate | None = None
        self._flood: tuple[int, ...] | None = None

    def adopt(self) -> None:
        """Take over the entries and hash keys that an earlier controller has left in the switch, so that flows survive."""
        tables = [program.PORTS, program.MAC_BINDINGS, program.ADDRESS_BINDINGS, program.STATIONS, program.RECEIVERS]
        tables.append(program.MAC_OWNERS)
        self._configuration.adopt(entry for table in tables for entry in read_entries(self._client, table))
        self.sources.adopt()
        if program.FLOOD_GROUP in self._client.multicast_groups():
            self._flood = ()
        if not self.judges:
            return
        for entry in read_entries(self._client, program.RULE_TABLE):
            self._rules[int(str(entry.match["generation"]))][entry.key] = entry
        active = self._client.read_default(program.RULE_SET)
        if active.action == program.ACTIVATE:
            params = {name: int(value) for name, value in active.params.items()}
            self._epoch = params["epoch"]
            self._keys = {f"k{i}": params[f"k{i}"] for i in range(program.HASH_KEYS)}

    def prepare(self, rules: RuleSet) -> None:
        """Configure the digests and the rates of logs and of packets to the controller, which are set before any rules."""
        self._client.ensure_digest(
            program.LOG, max_list_size=100, max_timeout_ns=100_000_000, ack_timeout_ns=1_000_000_000
        )
        self._rate(program.LOG_RATE, rules.log_per_reason)
        self._rate(program.CONTROLLER_RATE, rules.controller_per_port)

    def _rate(self, meter: str, rate: Rate) -> None:
        self._client.configure_meter(meter, None, (rate.per_s, rate.burst, rate.per_s, rate.burst))

    def write_stations(self, rules: RuleSet, ports: Iterable[Port], stations: Iterable[Station]) -> None:
        """Write the entries of ``ports`` and of the bindings ``stations``, and delete those of others."""
        self._configuration.write(self._wanted(rules, list(ports), stations))

    def _wanted(self, rules: RuleSet, ports: list[Port], stations: Iterable[Station]) -> list[TableEntry]:
        bindings = entries.station_entries(stations, ports, self.numbers, bridged=self.bridged)
        return entries.port_entries(rules, ports, self.numbers) + bindings

    def replace(self, rules: RuleSet, ports: Iterable[Port], stations: Iterable[Station]) -> None:
        """Write a rule set with its ports and bindings, and make it the active rule set with a single write."""
        ports, client = list(ports), self._client
        self.numbers.follow(rules)
        generation = 1 - self._epoch % 2
        if self.judges:
            self._write_rules(generation, entries.rule_entries(rules, self.numbers, generation))
        flood = tuple(sorted({port.port for port in ports}))
        with client.batch():
            if self.bridged and flood != self._flood:
                replicas = [(port, 1) for port in flood]
                verb = "insert" if self._flood is None else "modify"
                client.multicast_group(program.FLOOD_GROUP, replicas, verb=verb)  # type: ignore[arg-type]
                self._flood = flood
            self._write_configuration(rules, ports, stations)
            if self.judges:
                self._write_rates(rules)
                self._epoch = (self._epoch + 1) % EPOCHS
                client.set_default(
                    program.RULE_SET,
                    program.ACTIVATE,
                    {"epoch": self._epoch, "judges_again": int(rules.established == "judge-again"), **self._keys},
                )
        if self.judges:
            self._write_rules(1 - generation, [])

    def _write_configuration(self, rules: RuleSet, ports: list[Port], stations: Iterable[Station]) -> None:
        """Write the differences of ports and bindings as part of an open batch."""
        before = {entry.key: entry for entry in self._configuration.installed}
        wanted = {entry.key: entry for entry in self._wanted(rules, ports, stations)}
        for key in sorted(before.keys() - wanted.keys()):
            before[key].delete(self._client)
        for key, entry in wanted.items():
            if before.get(key) != entry:
                (entry.modify if key in before else entry.insert)(self._client)
        self._configuration.adopt(wanted.values())

    def _write_rates(self, rules: RuleSet) -> None:
        client = self._client
        limits = {self.numbers.limits[name]: entries.meter_rates(limit) for name, limit in rules.limits.items()}
        for number in sorted(self._limits.keys() | limits.keys()):
            before, after = self._limits.get(number, (None, None)), limits.get(number, (None, None))
            for meter, old, new in zip((program.PACKET_LIMITS, program.BYTE_LIMITS), before, after, strict=True):
                if old != new:
                    client.configure_meter(meter, number, new)
        self._limits = limits
        rate = rules.new_flows_per_source
        if self._new_flows != rate:
            client.configure_meter(program.NEW_FLOWS, None, (rate.per_s, rate.burst, rate.per_s, rate.burst))
            self._new_flows = rate
        for state, timeout in entries.timeouts_us(rules).items():
            if self._timeouts.get(state) != timeout:
                client.write_register(program.TIMEOUTS, state, timeout)
                self._timeouts[state] = timeout

    def _write_rules(self, generation: int, wanted: list[TableEntry]) -> None:
        """Write the differences of rules in the generation that is not active, in batches between which packets pass."""
        installed, entries_by_key = self._rules[generation], {entry.key: entry for entry in wanted}
        gone = [entry for key, entry in installed.items() if entries_by_key.get(key) != entry]
        new = [entry for key, entry in entries_by_key.items() if installed.get(key) != entry]
        writes = [entry.delete for entry in gone] + [entry.insert for entry in new]
        for first in range(0, len(writes), CHUNK):
            with self._client.batch():
                for write in writes[first : first + CHUNK]:
                    write(self._client)
        self._rules[generation] = dict(entries_by_key)

    # ---- Reading ----

    def drops(self) -> dict[str, tuple[int, int]]:
        """Return (packets, bytes) that the switch has dropped, by reason."""
        return drops(self._client)

    def hits(self) -> dict[str, int]:
        """Return how many packets each rule of the active rule set has decided about, by rule name."""
        return hits(self._client)


def drops(client: Client) -> dict[str, tuple[int, int]]:
    """Return (packets, bytes) that a switch has dropped, by reason; reasons without drops are left out."""
    cells = client.counters(program.DROPS)
    return {reason: cells[number] for number, reason in enumerate(program.REASONS) if number and cells[number][0]}


def hits(client: Client) -> dict[str, int]:
    """Return how many packets each active rule in a switch has decided about, by rule name.

    A rule decides about the first packet of each flow, and about the next packet after rules are replaced.
    """
    active = client.read_default(program.RULE_SET)
    generation = int(active.params["epoch"]) % 2 if active.action == program.ACTIVATE else 0
    found: dict[str, int] = {}
    for entry in sorted(client.read_table(program.RULE_TABLE), key=lambda entry: -entry.priority):
        if entry.match["generation"] == generation:
            name = entry.metadata.decode()
            found[name] = found.get(name, 0) + (entry.counter[0] if entry.counter else 0)
    return found


def _hash_keys(secret: bytes) -> Mapping[str, int]:
    names = [f"k{index}" for index in range(program.HASH_KEYS)]
    return {
        name: int.from_bytes(hashlib.blake2b(name.encode(), key=secret, digest_size=8).digest(), "big")
        for name in names
    }
