"""Rule files: zones, ports, bindings, limits and rules in YAML, checked.

.. code-block:: yaml

    zones:
      inside:
      servers: {may: reply}              # never begins a flow
      outside:
    ports:
      - {port: 1, zone: inside, authenticated: true}
      - {port: 2, zone: servers}
      - {port: 3, zone: outside, senders: mac}
    bindings:
      - {port: 2, mac: "02:00:00:00:00:02", addresses: [10.0.2.1, "2001:db8:2::1"]}
      - {port: 3, mac: "02:00:00:00:00:03"}
    addresses: {office: [10.0.1.0/24, "2001:db8:1::/64"]}
    limits: {dns: {packets_per_s: 1000, burst_packets: 100}}
    rules:
      - {name: web, action: allow, to: servers, protocol: tcp, destination_ports: [80, 443]}
      - {name: names, action: allow, from: inside, source: office, protocol: udp, destination_ports: 53, limit: dns}

The fields are those of the models here. This module knows no tables.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from holdfast import yaml_model
from holdfast.apps.firewall.program import LIMITS, RULES
from holdfast.errors import ParameterError, ScenarioError
from holdfast.numerals import is_numeral
from holdfast.parameters import Checked

Prefix: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Range: TypeAlias = tuple[int, int]

PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58}
"""Protocols that have names in rule files."""

MOST_ZONES = 255
MOST_ENTRIES = RULES // 2
"""The most entries of a rule set in the program's table, which holds two rule sets."""

ALL_PORTS: Range = (0, 65535)


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _port_range(value: object) -> Range:
    if isinstance(value, int) and not isinstance(value, bool):
        low = high = value
    else:
        first, dash, last = str(value).partition("-")
        ends = [first.strip(), last.strip()] if dash else [first.strip()]
        if not all(map(is_numeral, ends)):
            raise ValueError(f"{value!r} is neither a port nor a range such as 1024-65535")
        low, high = int(first), int(last if dash else first)
    if not 0 <= low <= high <= 65535:
        raise ValueError(f"{value!r}: ports go from 0 to 65535, the lower one first")
    return low, high


def _mac(value: object) -> int:
    parts = str(value).split(":")
    if len(parts) != 6 or any(len(part) != 2 or not set(part.lower()) <= set("0123456789abcdef") for part in parts):
        raise ValueError(f"{value!r} is not a MAC address such as 02:00:00:00:00:01 (YAML needs quotes around some)")
    number = int("".join(parts), 16)
    if number >> 40 & 1 or number == 0:
        raise ValueError(f"{value!r} is not the address of one station")
    return number


def _protocol(value: object) -> int:
    if isinstance(value, str) and value in PROTOCOLS:
        return PROTOCOLS[value]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255:
        return value
    raise ValueError(f"{value!r} is neither one of {', '.join(PROTOCOLS)} nor a number from 0 to 255")


PortNumber: TypeAlias = Annotated[int, Field(ge=0, le=509)]
_MacText: TypeAlias = Annotated[str, Field(pattern="^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")]
_PortText: TypeAlias = Annotated[str, Field(pattern=r"^\s*[0-9]{1,5}\s*(-\s*[0-9]{1,5}\s*)?$", examples=["1024-65535"])]
_Ports: TypeAlias = Annotated[int, Field(ge=0, le=65535)] | _PortText
_Protocols: TypeAlias = Literal["icmp", "tcp", "udp", "icmpv6"] | Annotated[int, Field(ge=0, le=255)]
"""What users write."""

MacAddress: TypeAlias = Annotated[int, BeforeValidator(_mac, json_schema_input_type=_MacText)]
Words: TypeAlias = Annotated[
    list[str], BeforeValidator(_as_list, json_schema_input_type=list[str] | str), Field(min_length=1)
]
PortRange: TypeAlias = Annotated[Range, BeforeValidator(_port_range, json_schema_input_type=_Ports)]
PortRanges: TypeAlias = Annotated[
    list[PortRange], BeforeValidator(_as_list, json_schema_input_type=list[_Ports] | _Ports), Field(min_length=1)
]
Protocol: TypeAlias = Annotated[int, BeforeValidator(_protocol, json_schema_input_type=_Protocols)]


class Zone(Checked):
    """A part of the network. A zone that may only reply never begins a flow.

    In a network with a topology: ``hosts`` are those whose ports are in the zone; ``switches``: the links between switches are.
    """

    may: Literal["begin", "reply"] = "begin"
    hosts: list[str] = []
    switches: bool = False


class Port(Checked):
    """A port of a switch (without ``switch``: of every switch), and who may send from it.

    ``senders``: ``bound`` lets only bound pairs of MAC and IP address send, ``mac`` only bound MAC addresses (routers send for
    others), ``any`` everybody. ``networks``: the addresses behind the port; no other address comes from it, and none of these from
    another port (RFC 2827). Addresses that are bound come from their own ports alone in any case. ``authenticated``: addresses that
    are granted here become bindings. ``dhcp_server``, ``router``: DHCP answers and router advertisements may come from here.
    ``transit``: packets between two such ports are not judged, and their senders have been where they entered the network.
    """

    port: PortNumber
    switch: str | None = None
    zone: str
    senders: Literal["bound", "mac", "any"] = "bound"
    networks: list[Prefix] = []
    authenticated: bool = False
    dhcp_server: bool = False
    router: bool = False
    transit: bool = False


class Binding(Checked):
    """A station at a port, with its addresses."""

    port: PortNumber
    switch: str | None = None
    mac: MacAddress
    addresses: list[Address] = []


class Limit(Checked):
    """A rate that all flows of its rules share, in packets or bytes per second, with a burst."""

    packets_per_s: Annotated[int, Field(ge=1, le=10**12)] | None = None
    burst_packets: Annotated[int, Field(ge=1, le=10**9)] = 100
    bytes_per_s: Annotated[int, Field(ge=1, le=10**15)] | None = None
    burst_bytes: Annotated[int, Field(ge=1, le=10**12)] = 100_000

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.packets_per_s is None and self.bytes_per_s is None:
            raise ValueError("a limit needs packets_per_s or bytes_per_s")
        return self


class Rate(Checked):
    """Events per second, and how many at once."""

    per_s: Annotated[int, Field(ge=1, le=10**9)]
    burst: Annotated[int, Field(ge=1, le=10**9)]


# The longest is LONGEST_US of flows.p4.
Timeout: TypeAlias = Annotated[float, Field(gt=0, le=10**7)]


class Timeouts(Checked):
    """Seconds without a packet after which a flow ends, by its state. The established ones are those of RFC 5382 and RFC 4787."""

    syn_sent: Timeout = 10
    syn_received: Timeout = 10
    established: Timeout = 7440
    closing: Timeout = 240
    closed: Timeout = 10
    udp_new: Timeout = 30
    udp_stream: Timeout = 300
    echo: Timeout = 30
    other_new: Timeout = 30
    other_stream: Timeout = 300


class Rule(Checked):
    """The flows that may begin. A field that is left out matches everything; a list matches what one of its items matches.

    Rules with a higher ``priority`` come first; without one it is 0, and such rules come in the order of the file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    action: Literal["allow", "deny"]
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | None = None
    from_zones: Words | None = Field(None, alias="from")
    to_zones: Words | None = Field(None, alias="to")
    family: Literal["ipv4", "ipv6"] | None = None
    source: Words | None = None
    destination: Words | None = None
    protocol: Protocol | None = None
    source_ports: PortRanges | None = None
    destination_ports: PortRanges | None = None
    limit: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.source_ports or self.destination_ports) and self.protocol not in (6, 17):
            raise ValueError("ports need protocol: tcp or protocol: udp")
        if self.limit is not None and self.action == "deny":
            raise ValueError("a rule that denies has no limit")
        if (self.protocol, self.family) in ((1, "ipv6"), (58, "ipv4")):
            raise ValueError("icmp is of ipv4, icmpv6 is of ipv6")
        return self

    @property
    def version(self) -> int | None:
        """The version of IP that follows from the rule's family or protocol; None if both allow either version."""
        if self.protocol == 1 or self.family == "ipv4":
            return 4
        return 6 if self.protocol == 58 or self.family == "ipv6" else None


@dataclass(frozen=True)
class Match:
    """One combination of the items in a rule's lists; None matches everything."""

    from_zone: str | None
    to_zone: str | None
    version: int | None
    source: Prefix | None
    destination: Prefix | None
    protocol: int | None
    source_ports: Range
    destination_ports: Range


class RuleSet(Checked):
    """A rule file."""

    zones: dict[str, Zone]
    ports: list[Port] = []
    bindings: list[Binding] = []
    addresses: dict[str, list[Prefix]] = {}
    limits: dict[str, Limit] = {}
    timeouts_s: Timeouts = Timeouts()
    new_flows_per_source: Rate = Rate(per_s=1000, burst=2000)
    log_per_reason: Rate = Rate(per_s=10, burst=10)
    controller_per_port: Rate = Rate(per_s=100, burst=100)
    addresses_per_port: Annotated[int, Field(ge=1, le=4096)] = 16
    established: Literal["judge-again", "keep"] = "judge-again"
    rules: list[Rule] = []

    @field_validator("zones", mode="before", json_schema_input_type=dict[str, Zone | None])
    @classmethod
    def _empty_zones(cls, value: object) -> object:
        """Replace a zone that has a name only, as in ``inside:``, by a zone with all defaults."""
        return (
            {name: {} if zone is None else zone for name, zone in value.items()} if isinstance(value, dict) else value
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= len(self.zones) <= MOST_ZONES:
            raise _wrong("zones", f"there must be 1 to {MOST_ZONES} zones")
        if len(self.limits) >= LIMITS:
            raise _wrong("limits", f"there can be {LIMITS - 1} limits")
        self._check_ports()
        names: dict[str, int] = {}
        for index, rule in enumerate(self.rules):
            place = f"rules.{index}"
            if rule.name in names:
                raise _wrong(f"{place}.name", f"there is another rule {rule.name!r}")
            names[rule.name] = index
            for key, zones in (("from", rule.from_zones), ("to", rule.to_zones)):
                for zone in zones or ():
                    self._check_zone(f"{place}.{key}", zone)
            if rule.limit is not None and rule.limit not in self.limits:
                raise _wrong(f"{place}.limit", f"there is no limit {rule.limit!r}")
            for key, words in (("source", rule.source), ("destination", rule.destination)):
                for word in words or ():
                    self._prefixes(f"{place}.{key}", word)
            if not self.matches(rule):
                raise _wrong(place, "it matches nothing: its addresses are of different versions of IP")
        entries = sum(len(self.matches(rule)) for rule in self.rules)
        if entries > MOST_ENTRIES:
            raise _wrong("rules", f"they need {entries} entries, and the table has {MOST_ENTRIES} for a rule set")
        return self

    def _check_ports(self) -> None:
        seen: set[tuple[str | None, int]] = set()
        for index, port in enumerate(self.ports):
            self._check_zone(f"ports.{index}.zone", port.zone)
            if (port.switch, port.port) in seen:
                raise _wrong(f"ports.{index}.port", f"port {port.port} is declared twice")
            seen.add((port.switch, port.port))
            if port.transit and port.senders == "bound":
                raise _wrong(f"ports.{index}.transit", "a transit port leads to routers, so senders must be mac or any")
            if port.transit and port.networks:
                raise _wrong(
                    f"ports.{index}.networks", "addresses at a transit port are judged where they enter the network"
                )
            if port.authenticated and port.senders != "bound":
                raise _wrong(f"ports.{index}.authenticated", "only a port whose senders are bound learns bindings")
        stations: set[tuple[str | None, int]] = set()
        for index, binding in enumerate(self.bindings):
            place = f"bindings.{index}"
            if (binding.switch, binding.mac) in stations:
                raise _wrong(f"{place}.mac", "this MAC address is bound already")
            stations.add((binding.switch, binding.mac))
            if self.ports and not any(port.port == binding.port for port in self.ports):
                raise _wrong(f"{place}.port", f"port {binding.port} is not declared in ports")

    def _check_zone(self, place: str, zone: str) -> None:
        if zone not in self.zones:
            raise _wrong(place, f"there is no zone {zone!r}; there are {', '.join(self.zones)}")

    def _prefixes(self, place: str, word: str) -> list[Prefix]:
        if word in self.addresses:
            return self.addresses[word]
        try:
            return [ipaddress.ip_network(word)]
        except ValueError as error:
            raise _wrong(place, f"{word!r} is neither a prefix nor a name in addresses ({error})") from None

    def ordered(self) -> list[int]:
        """Return the indices of the rules in the order in which they are tried: highest priority first, then as in the file."""
        return sorted(range(len(self.rules)), key=lambda index: (-(self.rules[index].priority or 0), index))

    def matches(self, rule: Rule) -> list[Match]:
        """Return the combinations of one item from each of a rule's lists, without those that combine both IP versions."""
        found = []
        for from_zone, to_zone, source, destination, source_ports, destination_ports in itertools.product(
            _or_any(rule.from_zones),
            _or_any(rule.to_zones),
            self._all_prefixes(rule.source),
            self._all_prefixes(rule.destination),
            rule.source_ports or [ALL_PORTS],
            rule.destination_ports or [ALL_PORTS],
        ):
            asked = (rule.version, *(prefix.version for prefix in (source, destination) if prefix is not None))
            versions = {version for version in asked if version is not None}
            if len(versions) < 2:
                version = next(iter(versions), None)
                found.append(
                    Match(
                        from_zone, to_zone, version, source, destination, rule.protocol, source_ports, destination_ports
                    )
                )
        return found

    def _all_prefixes(self, words: Iterable[str] | None) -> list[Prefix | None]:
        if words is None:
            return [None]
        return [prefix for word in words for prefix in self._prefixes("", word)]

    def ports_of(self, switch: str) -> Iterator[Port]:
        """Return the ports declared for ``switch``, including those declared for every switch."""
        return (port for port in self.ports if port.switch in (None, switch))

    def bindings_of(self, switch: str) -> Iterator[Binding]:
        """Return the bindings declared for ``switch``, including those declared for every switch."""
        return (binding for binding in self.bindings if binding.switch in (None, switch))


def _or_any(names: list[str] | None) -> list[str | None]:
    return [None] if names is None else [*names]


def _wrong(place: str, sentence: str) -> ParameterError:
    return ParameterError("", place, sentence)


def read(path: Path) -> yaml_model.Located[RuleSet]:
    """Return the rule set in the file ``path``. Raise :class:`holdfast.errors.ScenarioError`, with the line, if it is wrong."""
    return yaml_model.read_located(path, RuleSet)


__all__ = ["Binding", "Limit", "Match", "Port", "Rate", "Rule", "RuleSet", "ScenarioError", "Timeouts", "Zone", "read"]
