"""The end systems of a topology: their network cards, addresses and neighbours, and which addresses go together.

A host has one network card, or several with a link each. Links, switches and what runs on a host are not known here.
"""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect, insort
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from holdfast.errors import TopologyError
from holdfast.parameters import Parameters

Position = tuple[float, float]
"""The place of a node in a drawing: x and y in any unit; in a geographic topology, longitude and latitude in
degrees."""

MAC_TEXT = re.compile(r"[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}")

MOST_COMMANDS = 1000
"""The most commands of one host."""

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def mac_of(value: object) -> bytes:
    """Return a MAC address of one station, given as text such as ``08:00:00:00:01:11`` or as 6 bytes. Raises ValueError."""
    if isinstance(value, str) and MAC_TEXT.fullmatch(value):
        value = bytes.fromhex(value.replace("-", "").replace(":", ""))
    if not isinstance(value, bytes) or len(value) != 6:
        raise ValueError(f"{value!r} is no MAC address, such as '08:00:00:00:01:11'")
    if value[0] & 1 or value == bytes(6):
        raise ValueError(f"{mac_text(value)} is not the MAC address of one station")
    return value


def mac_text(mac: bytes) -> str:
    """Return a MAC address as text, such as ``08:00:00:00:01:11``."""
    return mac.hex(":")


_MacText: TypeAlias = Annotated[str, Field(pattern=f"^{MAC_TEXT.pattern}$", examples=["08:00:00:00:01:11"])]

Mac: TypeAlias = Annotated[
    bytes,
    BeforeValidator(mac_of, json_schema_input_type=_MacText),
    PlainSerializer(mac_text, return_type=str, when_used="json"),
]


def _of_one_station(value: ipaddress.IPv6Interface | None) -> ipaddress.IPv6Interface | None:
    if value is not None and (value.is_multicast or value.is_unspecified or value.is_loopback or value.is_link_local):
        raise ValueError(f"{value.ip} is not an address that packets are routed to")
    return value


def _unusable(interface: ipaddress.IPv4Interface) -> str | None:
    """Return why a host cannot have an IPv4 address, or None if it can (RFC 3021: a /31 has neither network nor broadcast)."""
    address, network = interface.ip, interface.network
    if address.is_multicast or address.is_loopback or address.is_unspecified or int(address) == 2**32 - 1:
        return "no address of a host"
    if network.prefixlen < 31 and address in (network.network_address, network.broadcast_address):
        return f"the {'network' if address == network.network_address else 'broadcast'} address of {network}"
    return None


class _Addressed(Parameters):
    """What every network card has."""

    address: ipaddress.IPv4Interface
    ipv6: ipaddress.IPv6Interface | None = None
    mac: Mac = b""

    @field_validator("ipv6")
    @classmethod
    def _routed(cls, value: ipaddress.IPv6Interface | None) -> ipaddress.IPv6Interface | None:
        return _of_one_station(value)

    @field_validator("address")
    @classmethod
    def _of_a_host(cls, value: ipaddress.IPv4Interface) -> ipaddress.IPv4Interface:
        if why := _unusable(value):
            raise ValueError(f"{value.ip} is {why}")
        return value

    @property
    def interfaces_of_ip(self) -> list[Interface]:
        """The card's addresses with their subnets: IPv4, then IPv6 if it has one."""
        return [self.address] if self.ipv6 is None else [self.address, self.ipv6]


class Card(_Addressed):
    """A network card of a host. Without a ``mac``, the host gives it one."""


class Host(_Addressed):
    """An end system: a network card with its addresses, and what else it is told.

    ``mac``: by default 02:00:00:00, then the index in two bytes. ``gateway``: the IPv4 address of the default route, or "none",
    which leaves out the default routes of both families. By default it is the last address before the broadcast address, of a /31
    the other address, and of a /32 none. The default one is the switch's port, whose MAC address is known, unless it is another
    host's address; one that is given is resolved by ARP unless ``neighbours`` has it. ``neighbours``: MAC addresses that are known
    from the start, by IP address. ``interfaces``: further network cards; links take the cards in order. ``vlan``: the host's frames
    have this tag (IEEE 802.1Q). ``commands``: for the shell of a live host, when the network starts. ``namespace``: a live host is
    this network namespace, which exists already: a name of ``ip netns``, a path, or ``pid:`` and the number of a process in it.
    """

    name: str
    index: int = Field(ge=1, le=65_000)
    position: Position | None = None
    gateway: ipaddress.IPv4Address | None = None
    neighbours: Mapping[Address, Mac] = {}
    interfaces: tuple[Card, ...] = ()
    vlan: int | None = Field(default=None, ge=1, le=4094)
    commands: tuple[str, ...] = ()
    namespace: str | None = None

    @field_validator("gateway", mode="before", json_schema_input_type=ipaddress.IPv4Address | Literal["none"] | None)
    @classmethod
    def _none_by_name(cls, value: object) -> object:
        return None if value == "none" else value

    @field_validator("gateway")
    @classmethod
    def _of_one_router(cls, value: ipaddress.IPv4Address | None) -> ipaddress.IPv4Address | None:
        if value is not None and (value.is_multicast or value.is_loopback or value.is_unspecified):
            raise ValueError(f"{value} is no address of a gateway")
        return value

    @field_validator("commands")
    @classmethod
    def _with_words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > MOST_COMMANDS:
            raise ValueError(f"a host has at most {MOST_COMMANDS} commands")
        if any(not command.strip() or "\0" in command for command in value):
            raise ValueError("a command has words")
        return value

    @field_validator("namespace")
    @classmethod
    def _nameable(cls, value: str | None) -> str | None:
        if value is None or re.fullmatch(r"pid:[1-9][0-9]{0,9}|/[^\0]{1,4000}|(?!\.{1,2}$)[\w.+-]{1,255}", value):
            return value
        raise ValueError(f"{value!r} is no network namespace: give its name in `ip netns`, a path, or pid:NUMBER")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Fill in what was not given, as values that :attr:`model_fields_set` does not count."""
        if "gateway" not in self.model_fields_set:
            self.__dict__["gateway"] = default_gateway(self.address.network, self.address.ip)
        if self.gateway == self.address.ip:
            given = "gateway" in self.model_fields_set
            why = "its own gateway" if given else "its gateway's address, the last of the subnet"
            raise ValueError(f'{self.address.ip} is {why}; give it another gateway, or "none"')
        if "mac" not in self.model_fields_set:
            self.__dict__["mac"] = bytes((0x02, 0, 0, 0)) + self.index.to_bytes(2, "big")
        if len(self.interfaces) > 255:
            raise ValueError("a host has at most 256 network cards")
        cards = []
        for number, card in enumerate(self.interfaces, 1):
            # A copy: its owner may give the card to several hosts.
            cards.append(card.model_copy())
            if "mac" not in card.model_fields_set:
                cards[-1].__dict__["mac"] = bytes((0x02, 0, 0, number)) + self.index.to_bytes(2, "big")
        self.__dict__["interfaces"] = tuple(cards)
        return self

    def __hash__(self) -> int:
        return hash((self.name, self.index, self.address))

    @property
    def cards(self) -> tuple[_Addressed, ...]:
        """All network cards, by the host's port: the host itself describes the first."""
        return (self, *self.interfaces)

    @property
    def has_own_gateway(self) -> bool:
        """True if the gateway was given, so that it need not be the port of the switch that the host is connected to."""
        return "gateway" in self.model_fields_set

    @property
    def ipv6_gateway(self) -> ipaddress.IPv6Address:
        """The switch's IPv6 address on the host's link, which is link-local, as in router advertisements (RFC 4861)."""
        return ipaddress.IPv6Address("fe80::1")

    def card_to(self, address: Address) -> int | None:
        """Return the port of the network card in whose subnet an address is, or None if it is in none of them."""
        for port, card in enumerate(self.cards):
            if any(each.version == address.version and address in each.network for each in card.interfaces_of_ip):
                return port
        return None

    def description(self, neighbours: Mapping[Address, bytes]) -> dict[str, Any]:
        """Return the host as the native core takes it: its network cards, the next hops of its default routes, and its VLAN.

        ``neighbours``: the MAC addresses that it knows from the start (:meth:`holdfast.topology.Topology.known_neighbours`).
        """
        cards = self.cards
        gateways = [] if self.gateway is None else [str(self.gateway)]
        if gateways and any(card.ipv6 is not None for card in cards):
            gateways.append(str(self.ipv6_gateway))
        return {
            "cards": [card.model_dump(mode="json", include={*_Addressed.model_fields}) for card in cards],
            "gateways": gateways,
            "neighbours": {str(address): mac_text(mac) for address, mac in neighbours.items()},
            "vlan": self.vlan,
        }

    def given(self) -> dict[str, Any]:
        """Return the fields that were given, for another host with the same ones, without ``name`` and ``index``."""
        without = {"name", "index"}
        found = {name: getattr(self, name) for name in self.model_fields_set - without}
        if "gateway" in found and found["gateway"] is None:
            found["gateway"] = "none"
        return found


def card_name(host: str, card: int) -> str:
    """Return the name of one of a host's network cards: the host's own, with ``:1`` and so on for further ones."""
    return f"{host}:{card}" if card else host


def default_gateway(network: ipaddress.IPv4Network, own: ipaddress.IPv4Address) -> ipaddress.IPv4Address | None:
    """Return the default gateway of a host with the address ``own``, as :class:`Host` says; None in a /32."""
    if network.prefixlen == 32:
        return None
    if network.prefixlen == 31:
        return network[0] if own == network[1] else network[1]
    return network.broadcast_address - 1


_Subnet = tuple[int, int, int, str]
"""The version of IP, the first and last address of a subnet, and the name of a host that has an address in it."""


class Plan:
    """All addresses of a topology. Several hosts can be in one subnet; two subnets do not overlap, and each address has one owner.

    It also has the numbers that the switches have in P4Runtime.
    """

    def __init__(self) -> None:
        self._subnets: list[_Subnet] = []
        self._addresses: dict[Address, str] = {}
        self._macs: dict[bytes, str] = {}
        self._devices: dict[tuple[str | None, int], str] = {}

    def copy(self) -> Plan:
        """Return a plan with the same addresses, to which more can be added."""
        other = Plan()
        other._subnets, other._addresses, other._macs = list(self._subnets), dict(self._addresses), dict(self._macs)
        other._devices = dict(self._devices)
        return other

    def add(self, host: Host) -> None:
        """Add a host's addresses. Raises :class:`TopologyError`, and adds none, if one of them is taken or a subnet overlaps."""
        of_cards = [interface for card in host.cards for interface in card.interfaces_of_ip]
        networks = [interface.network for interface in of_cards]
        for number, network in enumerate(networks):
            if any(network.version == other.version and network.overlaps(other) for other in networks[:number]):
                raise TopologyError(f"host {host.name!r}: two of its network cards are in {network}; give each its own")
        macs = [card.mac for card in host.cards]
        if len({*macs}) < len(macs):
            raise TopologyError(f"host {host.name!r}: two of its network cards have the same MAC address")
        fresh = [subnet for interface in of_cards if (subnet := self._new_subnet(host.name, interface.network))]
        for interface in of_cards:
            if owner := self._addresses.get(interface.ip):
                raise TopologyError(f"hosts {owner!r} and {host.name!r} have the same address {interface.ip}")
        for mac in macs:
            if owner := self._macs.get(mac):
                raise TopologyError(f"{owner} and host {host.name!r} have the same MAC address {mac_text(mac)}")
        for subnet in fresh:
            insort(self._subnets, subnet)
        self._addresses.update((interface.ip, host.name) for interface in of_cards)
        self._macs.update((mac, f"host {host.name!r}") for mac in macs)

    def remove(self, host: Host) -> None:
        """Remove the addresses of a host, so that others can have them. Its subnets stay, since other hosts may be in them."""
        for card in host.cards:
            self._macs.pop(card.mac, None)
            for interface in card.interfaces_of_ip:
                self._addresses.pop(interface.ip, None)

    def owner(self, address: Address) -> str | None:
        """Return the name of the host that has an address, or None."""
        return self._addresses.get(address)

    def add_port(self, mac: bytes, port: int, switch: str) -> None:
        """Add the MAC address of a switch's port. Raises :class:`TopologyError` if a host has it."""
        owner = self._macs.setdefault(mac, f"port {port} of switch {switch!r}")
        if owner.startswith("host"):
            raise TopologyError(f"{owner} has the MAC address {mac_text(mac)} of port {port} of switch {switch!r}")

    def add_device(self, server: str | None, device_id: int, switch: str) -> None:
        """Add a switch's number at a P4Runtime server. Raises :class:`TopologyError` if another switch has it."""
        owner = self._devices.setdefault((server, device_id), switch)
        if owner != switch:
            raise TopologyError(f"switches {owner!r} and {switch!r} have the same device_id {device_id}")

    def _new_subnet(self, name: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> _Subnet | None:
        """Return the subnet of a host to be added; None if it is known already.

        Raises :class:`TopologyError` if it overlaps another.
        """
        begin, end = int(network.network_address), int(network.broadcast_address)
        subnet = (network.version, begin, end, name)
        at = bisect(self._subnets, subnet)
        # Those known do not overlap each other, so only the neighbours can reach into this one.
        for version, first, last, other in self._subnets[max(0, at - 1) : at + 1]:
            if version == network.version and first <= end and begin <= last:
                if (first, last) == (begin, end):
                    return None
                raise TopologyError(
                    f"hosts {other!r} and {name!r} have overlapping subnets; give each host its own, or both the same"
                )
        return subnet


def shared_subnets(
    hosts: Mapping[str, Host],
) -> Iterator[tuple[str, str, ipaddress.IPv4Network | ipaddress.IPv6Network]]:
    """Yield (first host, further host, subnet) for each host that is in a subnet of a host before it."""
    first: dict[ipaddress.IPv4Network | ipaddress.IPv6Network, str] = {}
    for name, host in hosts.items():
        for card in host.cards:
            for interface in card.interfaces_of_ip:
                owner = first.setdefault(interface.network, name)
                if owner != name:
                    yield owner, name, interface.network
