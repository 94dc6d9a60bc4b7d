"""Keeps a rule set, and the bindings, in one switch, and replaces a rule set at one moment.

The rules of a new set are written beside the active ones, under the other generation, while the active ones judge packets. Then
one batch changes zones, limits and the epoch, between two packets. Entries that the epoch replaces are deleted afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from holdfast.apps.firewall import entries, program
from holdfast.apps.firewall.entries import Numbering, Station
from holdfast.apps.firewall.rules import Port, Rate, RuleSet
from holdfast.apps.firewall.sources import SourceWriter
from holdfast.control.desired import Desired, Entity, Scope, Writer, read_state
from holdfast.control.entities import DefaultAction, Digest, Meter, MulticastGroup, Register
from holdfast.control.tables import TableEntry, has_table, read_entries
from holdfast.p4runtime.client import Client, Rates

CHUNK = 500
"""Entries of a rule set that is not active, in one batch: packets pass between batches."""

EPOCHS = 1 << 32

_KEPT: Scope = {
    TableEntry: (
        program.PORTS,
        program.MAC_BINDINGS,
        program.ADDRESS_BINDINGS,
        program.STATIONS,
        program.RECEIVERS,
        program.MAC_OWNERS,
    ),
    MulticastGroup: (program.FLOOD_GROUP,),
    Digest: (program.LOG,),
    Meter: tuple((meter, None) for meter in (program.LOG_RATE, program.PACKET_LIMITS, program.BYTE_LIMITS)),
    Register: ((program.TIMEOUTS, None),),
    DefaultAction: (program.RULE_SET,),
}
"""All but rules, of which two sets can be there. Rates of sources and of ports are written anew, as they have many cells."""


class FirewallWriter:
    """A controller's entries in one switch. ``secret``: of the keys of the hash of flows, if the switch has none yet."""

    def __init__(self, client: Client, secret: bytes) -> None:
        self._client = client
        self.bridged = has_table(client, program.STATIONS)
        self.judges = has_table(client, program.RULE_TABLE)
        self.numbers = Numbering()
        self._keys = _hash_keys(secret)
        self._epoch = 0
        self._kept = Writer(client)
        self._settings: Desired = ()
        self._rules = Writer(client, most=CHUNK)
        self.sources = SourceWriter(client)

    def adopt(self) -> None:
        """Take over the entries and hash keys that an earlier controller has left in the switch, so that flows survive."""
        self._kept.adopt(read_state(self._client, _KEPT))
        self._rules.adopt(read_entries(self._client, program.RULE_TABLE))
        self.sources.adopt()
        active = self._kept.installed.get((DefaultAction, program.RULE_SET))
        if isinstance(active, DefaultAction) and active.action == program.ACTIVATE:
            self._epoch = int(active.params["epoch"])
            self._keys = {f"k{i}": int(active.params[f"k{i}"]) for i in range(program.HASH_KEYS)}

    def write_stations(self, rules: RuleSet, ports: Iterable[Port], stations: Iterable[Station]) -> None:
        """Write the entries of ``ports`` and of the bindings ``stations``, and delete the entries of other ports and bindings."""
        self._write(self._settings, rules, list(ports), stations)

    def _write(self, settings: Desired, rules: RuleSet, ports: list[Port], stations: Iterable[Station]) -> None:
        bindings = entries.station_entries(stations, ports, self.numbers, bridged=self.bridged)
        self._kept.write((*settings, *entries.port_entries(rules, ports, self.numbers), *bindings))
        self._settings = settings

    def replace(self, rules: RuleSet, ports: Iterable[Port], stations: Iterable[Station]) -> None:
        """Write a rule set with its ports and bindings, and make it the active rule set with a single write."""
        ports = list(ports)
        self.numbers.follow(rules)
        epoch = (self._epoch + 1) % EPOCHS
        if self.judges:
            self._forget_rules(epoch % 2)
            self._rules.change(entries.rule_entries(rules, self.numbers, epoch % 2))
        self._write(self._settings_of(rules, ports, epoch), rules, ports, stations)
        if self.judges:
            self._forget_rules(self._epoch % 2)
            self._epoch = epoch

    def _forget_rules(self, generation: int) -> None:
        """Delete the rules of the generation that is not active, in batches between which packets pass."""
        rules = (each for each in self._rules.installed.values() if isinstance(each, TableEntry))
        self._rules.change(removed=[each.key for each in rules if each.match["generation"] == generation])

    def _settings_of(self, rules: RuleSet, ports: list[Port], epoch: int) -> Desired:
        """Return what is written with a rule set besides table entries: digest, meters, limits, timeouts, flooding, and the epoch.

        The epoch is the number that selects the active generation of rules.
        """
        found: list[Entity] = [
            Digest(program.LOG, max_timeout_ns=100_000_000, max_list_size=100, ack_timeout_ns=1_000_000_000),
            Meter(program.LOG_RATE, None, _one_rate(rules.log_per_reason)),
            Meter(program.CONTROLLER_RATE, None, _one_rate(rules.controller_per_port)),
        ]
        if self.bridged:
            found.append(
                MulticastGroup(program.FLOOD_GROUP, tuple((port, 1) for port in sorted({p.port for p in ports})))
            )
        if not self.judges:
            return tuple(found)
        for name, limit in rules.limits.items():
            meters = zip((program.PACKET_LIMITS, program.BYTE_LIMITS), entries.meter_rates(limit), strict=True)
            found += (Meter(meter, self.numbers.limits[name], rates) for meter, rates in meters if rates is not None)
        found.append(Meter(program.NEW_FLOWS, None, _one_rate(rules.new_flows_per_source)))
        found += (Register(program.TIMEOUTS, state, us) for state, us in entries.timeouts_us(rules).items())
        active = {"epoch": epoch, "judges_again": int(rules.established == "judge-again"), **self._keys}
        return (*found, DefaultAction(program.RULE_SET, program.ACTIVATE, active))

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

    A rule decides about the first packet of each flow, and after a rule set is replaced about the flow's next packet.
    """
    active = client.read_default(program.RULE_SET)
    generation = int(active.params["epoch"]) % 2 if active.action == program.ACTIVATE else 0
    found: dict[str, int] = {}
    for entry in sorted(client.read_table(program.RULE_TABLE), key=lambda entry: -entry.priority):
        if entry.match["generation"] == generation:
            name = entry.metadata.decode()
            found[name] = found.get(name, 0) + (entry.counter[0] if entry.counter else 0)
    return found


def _one_rate(rate: Rate) -> Rates:
    return rate.per_s, rate.burst, rate.per_s, rate.burst


def _hash_keys(secret: bytes) -> Mapping[str, int]:
    names = [f"k{index}" for index in range(program.HASH_KEYS)]
    return {
        name: int.from_bytes(hashlib.blake2b(name.encode(), key=secret, digest_size=8).digest(), "big")
        for name in names
    }
