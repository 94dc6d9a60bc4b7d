"""A rule set in one switch: table entries, timeouts and rates, as values. Pure functions; nothing here writes.

Zones and limits have numbers in tables. A :class:`Numbering` gives a name the same number in each rule set, so that flows outlive
the replacement of a rule set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.apps.firewall import program
from holdfast.apps.firewall.rules import ALL_PORTS, Address, Limit, Match, Port, Prefix, RuleSet
from holdfast.control.tables import EntryKey, MatchValue, TableEntry
from holdfast.errors import NetworkError

_US_PER_S = 1_000_000


@dataclass
class Numbering:
    """The numbers of zones and limits by name, from 1 on. A name that is gone frees its number."""

    zones: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    def follow(self, rules: RuleSet) -> None:
        """Assign numbers to the zones and limits of a rule set.

        Names that the previous rule set had keep their numbers. Freed numbers are used last, because flows may still have them.
        """
        self.zones = _numbered(self.zones, rules.zones, 255)
        self.limits = _numbered(self.limits, rules.limits, program.LIMITS - 1)


def _numbered(known: dict[str, int], names: Iterable[str], most: int) -> dict[str, int]:
    wanted = dict.fromkeys(names)
    taken = set(known.values())
    kept = {name: number for name, number in known.items() if name in wanted}
    free = [number for number in range(1, most + 1) if number not in taken]
    free += sorted(taken - set(kept.values()))
    for name in wanted:
        if name not in kept:
            kept[name] = free.pop(0)
    return kept


@dataclass(frozen=True)
class Station:
    """A station at a port, with its MAC and IP addresses; without IP addresses, a router that sends for others."""

    port: int
    mac: int
    addresses: tuple[Address, ...] = ()


def number_of(address: Address) -> int:
    """Return an address as the number that tables use: 128 bits, with IPv4 mapped into IPv6."""
    return int(address) + (program.MAPPED if address.version == 4 else 0)


def port_entries(rules: RuleSet, ports: Iterable[Port], numbers: Numbering) -> list[TableEntry]:
    """Return the table entries for the roles of ``ports``. An entry's metadata is the name of the port's zone."""
    return [
        TableEntry(
            program.PORTS,
            {"port": port.port},
            program.SET_ROLE,
            {
                "zone": numbers.zones[port.zone],
                "only_replies": int(rules.zones[port.zone].may == "reply"),
                "checks_mac": int(port.senders != "any"),
                "checks_address": int(port.senders == "bound"),
                "checks_network": int(bool(port.networks)),
                "authenticated": int(port.authenticated),
                "dhcp_server": int(port.dhcp_server),
                "router": int(port.router),
                "transit": int(port.transit),
            },
            metadata=port.zone.encode(),
        )
        for port in ports
    ]


def station_entries(
    stations: Iterable[Station], ports: Iterable[Port], numbers: Numbering, *, bridged: bool
) -> list[TableEntry]:
    """Return the entries that bind stations to ports: for packets from and to each station.

    ``bridged``: the firewall is a bridge, which also looks up the port of a MAC address. Raise :class:`NetworkError` for a station
    at a port that has no role.
    """
    roles = {port.port: port for port in ports}
    entries: dict[EntryKey, TableEntry] = {}
    for station in stations:
        role = roles.get(station.port)
        if role is None:
            raise NetworkError(f"a station is bound to port {station.port}, which is in no zone")
        place: dict[str, MatchValue] = {"port": station.port, "mac": station.mac}
        to = {"zone": numbers.zones[role.zone], "transit": int(role.transit)}
        found = [TableEntry(program.MAC_BINDINGS, place, "NoAction")]
        for address in station.addresses:
            found.append(TableEntry(program.ADDRESS_BINDINGS, {**place, "address": number_of(address)}, "NoAction"))
        if bridged:
            found.append(TableEntry(program.MAC_OWNERS, {"mac": station.mac}, program.OWNED, {"port": station.port}))
            found.append(
                TableEntry(program.STATIONS, {"mac": station.mac}, program.DELIVER, {"port": station.port, **to})
            )
        else:
            found.append(TableEntry(program.RECEIVERS, place, program.DELIVER, to))
        entries.update((entry.key, entry) for entry in found)
    return list(entries.values())


def rule_entries(rules: RuleSet, numbers: Numbering, generation: int) -> list[TableEntry]:
    """Return the entries of all rules in one generation of the rule table.

    A rule set is replaced by writing it as another generation. An entry's metadata is the name of its rule.
    """
    order = rules.ordered()
    found = []
    for position, index in enumerate(order):
        rule = rules.rules[index]
        action, params = program.DENY, {}
        if rule.action == "allow":
            action, params = program.ALLOW, {"number": numbers.limits[rule.limit] if rule.limit is not None else 0}
        seen = set()
        for match in rules.matches(rule):
            key = _key(match, numbers, generation)
            entry = TableEntry(program.RULE_TABLE, key, action, params, len(order) - position, rule.name.encode())
            if entry.key not in seen:  # a list may have the same item twice
                seen.add(entry.key)
                found.append(entry)
    return found


def _key(match: Match, numbers: Numbering, generation: int) -> dict[str, MatchValue]:
    key: dict[str, MatchValue] = {"generation": generation}
    if match.from_zone is not None:
        key["from_zone"] = numbers.zones[match.from_zone], 0xFF
    if match.to_zone is not None:
        key["to_zone"] = numbers.zones[match.to_zone], 0xFF
    if match.version is not None:
        key["is_ipv6"] = int(match.version == 6), 1
    if match.protocol is not None:
        key["protocol"] = match.protocol, 0xFF
    for name, prefix in (("src_addr", match.source), ("dst_addr", match.destination)):
        if prefix is not None and (masked := _masked(prefix))[1]:
            key[name] = masked
    for name, ports in (("src_port", match.source_ports), ("dst_port", match.destination_ports)):
        if ports != ALL_PORTS:
            key[name] = ports
    return key


def _masked(prefix: Prefix) -> tuple[int, int]:
    length = prefix.prefixlen + (96 if prefix.version == 4 else 0)
    return number_of(prefix.network_address), ((1 << length) - 1) << (128 - length)


def timeouts_us(rules: RuleSet) -> dict[int, int]:
    """Return the timeouts of flows in microseconds, by the number that stands for the flow's state in the program."""
    return {number: round(getattr(rules.timeouts_s, name) * _US_PER_S) for name, number in program.STATES.items()}


Rates = tuple[int, int, int, int]


def meter_rates(limit: Limit) -> tuple[Rates | None, Rates | None]:
    """Return the configurations of a limit's two meters, of packets and of bytes; None where the limit does not limit.

    A configuration is (rate per second, burst, rate per second, burst).
    """
    packets = bytes_ = None
    if limit.packets_per_s is not None:
        packets = (limit.packets_per_s, limit.burst_packets, limit.packets_per_s, limit.burst_packets)
    if limit.bytes_per_s is not None:
        bytes_ = (limit.bytes_per_s, limit.burst_bytes, limit.bytes_per_s, limit.burst_bytes)
    return packets, bytes_
