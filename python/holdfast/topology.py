"""A topology is data: hosts, switches, links and their addresses. Nothing runs here (see :mod:`holdfast.network`).

Names are what users guess: ``h1``, ``s1``; a switch's ports count from 1 in the order of its links, a host has port 0.
A host is in a subnet of its own, ``10.0.<n>.1/24`` by default, with its switch at ``.254``, unless several are given the same
subnet. It may have an IPv6 address besides; by default there is none (:meth:`Topology.add_ipv6` gives one to each).
:mod:`holdfast.host` has what else a host can be given.
"""

from __future__ import annotations

import ipaddress
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

import networkx as nx
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from holdfast.errors import TopologyError, first_mistake
from holdfast.host import Address, Card, Plan
from holdfast.host import Host as Host
from holdfast.host import Position as Position
from holdfast.link import Bfd, DelayMs, Direction, Processor, Queueing, link_towards
from holdfast.numerals import is_numeral
from holdfast.parameters import LONGEST_S, SHORTEST_MS, Milliseconds, Parameters
from holdfast.wording import counted

FIBRE_KM_PER_MS = 299.792458 * 2 / 3
"""The speed of light in fibre, in km per millisecond: two thirds of that in vacuum."""

EARTH_RADIUS_KM = 6371.0

M = TypeVar("M", bound=BaseModel)


def propagation_delay_ms(distance_km: float) -> float:
    """Return the propagation delay of a fibre of ``distance_km`` in milliseconds, rounded to a nanosecond."""
    return round(distance_km / FIBRE_KM_PER_MS, 6)


def great_circle_km(a: Position, b: Position) -> float:
    """Return the distance in km over a spherical earth between two points given as (longitude, latitude) in degrees."""
    (lon_a, lat_a), (lon_b, lat_b) = (tuple(map(math.radians, point)) for point in (a, b))
    haversine = (
        math.sin((lat_b - lat_a) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, haversine)))


def port_mac(index: int, port: int) -> bytes:
    """Return the MAC address of a port of the switch with an index: 02:01, then the index and the port, each in two bytes."""
    return bytes((0x02, 0x01)) + index.to_bytes(2, "big") + port.to_bytes(2, "big")


def is_letter(character: str) -> bool:
    """Return True if a character is allowed in a node's name: a letter or digit of any script, or a mark such as a vowel sign."""
    return character.isalnum() or unicodedata.category(character)[0] == "M"


class SwitchNode(Parameters):
    """A switch; the program that a network loads into it decides its behaviour.

    ``kind``: ``p4``, or ``bridge``, which needs no program and no controller: it learns where stations are, and floods the rest.
    ``latency_ms``: a packet's time through it besides waiting and transmission; with a traffic manager, in each pass.
    ``processor``: its packets wait for it first, if it can do only so many in a time. ``device_id``: its number in P4Runtime, by
    default the index. ``grpc``: the address of a P4Runtime server of its own, ``HOST:PORT``, of a live network. ``cpu_port``: the
    port of packet-in and packet-out, by default the program's or 510. ``program`` and ``entries``: files, for those who choose no
    others; a topology's file names them relative to itself.
    """

    name: str
    index: int = Field(ge=1, le=65_000)
    kind: Literal["p4", "bridge"] = "p4"
    position: Position | None = None
    queueing: Queueing | None = None
    latency_ms: DelayMs = 0.0
    processor: Processor | None = None
    device_id: int = Field(default=0, ge=0, lt=1 << 64)
    grpc: str | None = None
    cpu_port: int | None = Field(default=None, ge=0, le=511)
    program: str | None = Field(default=None, min_length=1)
    entries: str | None = Field(default=None, min_length=1)

    @field_validator("grpc")
    @classmethod
    def _of_a_server(cls, value: str | None) -> str | None:
        host, _, port = (value or "localhost:1").rpartition(":")
        if not host or not is_numeral(port) or not 1 <= int(port) <= 65_535:
            raise ValueError(f"{value!r} is not the address of a server, such as '127.0.0.1:50051'")
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "bridge" and (self.program is not None or self.entries is not None):
            raise ValueError("a bridge has a program of its own; leave program and entries out")
        if "device_id" not in self.model_fields_set:
            self.__dict__["device_id"] = self.index
        return self


NOT_IN_DESCRIPTION = {"name", "index", "kind", "position", "device_id", "grpc", "cpu_port", "program", "entries"}
"""The fields of :class:`SwitchNode` that are not in the description of a switch for the native core."""


class Link(Direction):
    """A bidirectional link. Each direction has its own queue and draws its own jitter and loss.

    The queue holds ``queue_packets`` or ``queue_bytes``; the packet being transmitted does not count. ``reverse``: the parameters
    that differ from ``b`` to ``a``. ``detection_delay_ms``: until switches notice a change, if not the network's delay;
    ``detection_down_ms`` and ``detection_up_ms``: the same for failures and repairs alone. ``bfd``: hellos between switches,
    besides. ``mtu_bytes``: the most bytes behind the Ethernet header; longer frames are dropped and counted, never cut.
    ``ordering``: the function that puts packets with sequence numbers in order in front of the link, for hosts behind 1+1
    protection that need it.
    """

    a: str
    b: str
    a_port: int = Field(ge=0, le=509)
    b_port: int = Field(ge=0, le=509)
    detection_delay_ms: Milliseconds | None = None
    detection_down_ms: Milliseconds | None = None
    detection_up_ms: Milliseconds | None = None
    bfd: Bfd | None = None
    reverse: Direction | None = None
    cost: int = Field(default=1, ge=1)

    @property
    def name(self) -> str:
        """The link's name ``a-b``, with the ends as declared; parallel links share it (see :meth:`Topology.link_names`)."""
        return f"{self.a}-{self.b}"

    @property
    def ends(self) -> str:
        """Both ends with their ports, ``a:1-b:2``, which names one link even among parallel ones."""
        return f"{self.a}:{self.a_port}-{self.b}:{self.b_port}"


_Hexadecimal: TypeAlias = Annotated[str, Field(pattern=r"^\s*([0-9A-Fa-f]{2}\s*)*$")]


class PacketGenerator(Parameters):
    """Packets that enter a switch by themselves at one of its ports, like packets from outside.

    Either every ``period_ms`` (``count`` times; 0 is without end), or ``on_port_down`` or ``on_port_up``: when the switch notices
    that a port went down or came up, then with the number of that port in the two bytes at ``port_offset``.
    """

    switch: str
    port: int = Field(ge=0, le=510)
    packet: bytes
    period_ms: float | None = Field(default=None, ge=SHORTEST_MS, le=LONGEST_S * 1000)
    count: int = Field(default=0, ge=0, lt=1 << 62)
    start_ms: Milliseconds = 0.0
    on_port_down: bool = False
    on_port_up: bool = False
    port_offset: int | None = Field(default=None, ge=0)

    @field_validator("packet", mode="before", json_schema_input_type=_Hexadecimal)
    @classmethod
    def _from_hex(cls, packet: object) -> object:
        return bytes.fromhex(packet) if isinstance(packet, str) else packet

    @model_validator(mode="after")
    def _check(self) -> Self:
        on_port = self.on_port_down or self.on_port_up
        if [self.on_port_down, self.on_port_up, self.period_ms is not None].count(True) != 1:
            raise ValueError("give one of period_ms, on_port_down and on_port_up")
        if on_port and (self.count or self.start_ms):
            raise ValueError("count and start_ms belong to period_ms")
        if self.port_offset is not None and not (on_port and self.port_offset + 2 <= len(self.packet)):
            raise ValueError("port_offset needs on_port_down or on_port_up, and two bytes inside the packet")
        return self


@dataclass(frozen=True)
class Attachment:
    """The switch and the port of a host, and which of the host's network cards is connected to them."""

    host: Host
    switch: str
    port: int
    card: int = 0

    @property
    def interface(self) -> Card | Host:
        """The network card, with its addresses; the first is described by the host itself."""
        return self.host if self.card == 0 else self.host.interfaces[self.card - 1]


def _check_name(name: str, of: str) -> None:
    """Raise :class:`TopologyError` for a name with other signs than names of nodes and groups may have."""
    if not name or not all(is_letter(c) or c in "_.-" for c in name) or "-" in (name[0], name[-1]):
        raise TopologyError(f"{of} name {name!r}: use letters, digits, '_', '.', and '-' between others")


class Topology:
    """Hosts, switches and links, in the order in which they were added.

    Raises :class:`holdfast.errors.TopologyError` on anything that could not run: unknown or doubled names, a host with more links
    than network cards, addresses that are taken, overlapping subnets, values out of range.
    """

    def __init__(self, name: str = "topology") -> None:
        self.name = name
        self.hosts: dict[str, Host] = {}
        self.switches: dict[str, SwitchNode] = {}
        self.links: list[Link] = []
        self.packet_generators: list[PacketGenerator] = []
        self.shared_risks: dict[str, tuple[int, ...]] = {}
        """The indices in ``links`` of those that fail together, by the name of their shared risk group."""
        self._ports: dict[str, dict[int, int]] = {}
        self._plan = Plan()

    def _new_name(self, name: str) -> None:
        _check_name(name, "node")
        if name in self.hosts or name in self.switches:
            raise TopologyError(f"node {name!r} is declared twice")

    def add_host(self, name: str, address: str | None = None, **fields: Any) -> Host:
        """Add a host and return it; ``fields`` are those of :class:`holdfast.host.Host`.

        The addresses have prefix lengths, as in ``"10.0.1.1/24"`` and ``"2001:db8:0:1::1/64"``. None stands for what is not given.
        """
        self._new_name(name)
        index = len(self.hosts) + 1
        given = {field: value for field, value in fields.items() if value is not None}
        address = address if address is not None else f"10.{index >> 8}.{index & 255}.1/24"
        host = _validated(Host, **{**given, "name": name, "index": index, "address": address}, where=f"host {name!r}")
        self._plan.add(host)
        self.hosts[name] = host
        self._ports[name] = {}
        return host

    def add_ipv6(self, prefix: str = "2001:db8::/32") -> None:
        """Give an IPv6 address to every host without one.

        With the default prefix it is ``2001:db8:0:<n>::1/64``, ``n`` the host's number. ``prefix`` must not be longer than 48 bits,
        so that it has room for 2^16 subnets of 64 bits. Raises :class:`TopologyError` for others.
        """
        try:
            network = ipaddress.IPv6Network(prefix)
        except ValueError as error:
            raise TopologyError(f"prefix {prefix!r}: {error}") from None
        if network.prefixlen > 48:
            raise TopologyError(f"prefix {prefix!r} is longer than 48 bits; hosts have subnets of 64 bits in it")
        for name, host in self.hosts.items():
            if host.ipv6 is None:
                address = network.network_address + (host.index << 64) + 1
                fields = {**host.given(), "name": name, "index": host.index, "ipv6": f"{address}/64"}
                given = _validated(Host, where=f"host {name!r}", **fields)
                self._plan.remove(host)
                self._plan.add(given)
                self.hosts[name] = given

    def add_switch(self, name: str, **fields: Any) -> SwitchNode:
        """Add a switch and return it; ``fields`` are those of :class:`SwitchNode`.

        ``queueing`` says where the switch's packets wait, by the fields of :class:`holdfast.link.Queueing`; ``processor`` says what
        processes them before that, by the fields of :class:`holdfast.link.Processor`. ``latency_ms``: in milliseconds. None stands
        for what is not given.
        """
        self._new_name(name)
        given = {field: value for field, value in fields.items() if value is not None}
        index = len(self.switches) + 1
        switch = _validated(SwitchNode, **{**given, "name": name, "index": index}, where=f"switch {name!r}")
        self._plan.add_device(switch.grpc, switch.device_id, name)
        self.switches[name] = switch
        self._ports[name] = {}
        self.__dict__.pop("graph", None)
        return switch

    def _free_port(self, node: str) -> int:
        used = self._ports[node]
        if node in self.hosts:
            cards = len(self.hosts[node].cards)
            if (free := next((card for card in range(cards) if card not in used), None)) is not None:
                return free
            what = (
                "a link already; it has one network card"
                if cards == 1
                else f"a link at each of its {cards} network cards"
            )
            raise TopologyError(f"host {node!r} has {what} (`interfaces` adds more)")
        # Large topologies have thousands of links: a generator would take twice as long.
        port = 1
        while port in used:
            port += 1
        if port > 509:
            raise TopologyError(f"switch {node!r} has no port left; it has links on all of 1 to 509")
        return port

    def add_link(self, a: str, b: str, *like: Direction, **parameters: Any) -> Link:
        """Add a link and return it; ``parameters`` are fields of :class:`Link`. A port that is not given is the next free one.

        ``like``: directions whose given parameters hold for both directions, unless ``parameters`` say otherwise. Raises
        :class:`TopologyError` for unknown ends, a port in use, a link of a node with itself, or one between hosts.
        """
        for direction in like:
            parameters = {**{name: getattr(direction, name) for name in direction.model_fields_set}, **parameters}
        for node in (a, b):
            if node not in self._ports:
                raise TopologyError(f"link {a}-{b}: there is no node {node!r} (known: {self._known()})")
        if a == b:
            raise TopologyError(f"link {a}-{b}: both ends are the same node")
        if a in self.hosts and b in self.hosts:
            raise TopologyError(f"link {a}-{b}: two hosts need a switch between them")
        a_port = parameters.pop("a_port", None)
        b_port = parameters.pop("b_port", None)
        link = _validated(
            Link,
            a=a,
            b=b,
            a_port=self._free_port(a) if a_port is None else a_port,
            b_port=self._free_port(b) if b_port is None else b_port,
            **parameters,
            where=f"link {a}-{b}",
        )
        for node, port in ((a, link.a_port), (b, link.b_port)):
            if port in self._ports[node]:
                raise TopologyError(f"link {a}-{b}: port {port} of {node!r} is taken")
            if node in self.hosts and port >= (cards := len(self.hosts[node].cards)):
                raise TopologyError(
                    f"link {a}-{b}: host {node!r} has {cards} network cards, numbered from 0, and no {port}"
                )
        for node, port in ((a, link.a_port), (b, link.b_port)):
            if node in self.switches:
                self._plan.add_port(self.port_mac(node, port), port, node)
        self._ports[a][link.a_port] = self._ports[b][link.b_port] = len(self.links)
        self.links.append(link)
        self.__dict__.pop("graph", None)
        return link

    def _known(self) -> str:
        names = [*self.hosts, *self.switches]
        return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "none"

    def add_packet_generator(self, switch: str, port: int, packet: bytes | str, **parameters: Any) -> PacketGenerator:
        """Add a packet generator to a switch and return it.

        ``packet`` is bytes or hexadecimal text; ``parameters`` are the other fields of :class:`PacketGenerator`. Raises
        :class:`TopologyError` if there is no such switch, or a parameter is invalid.
        """
        if switch not in self.switches:
            raise TopologyError(f"packet generator: there is no switch {switch!r} (known: {', '.join(self.switches)})")
        where = f"packet generator of {switch!r}"
        generator = _validated(
            PacketGenerator, where=where, **{**parameters, "switch": switch, "port": port, "packet": packet}
        )
        self.packet_generators.append(generator)
        return generator

    def add_shared_risk(self, name: str, links: Sequence[str]) -> None:
        """Add a shared risk group: links, by their names, that fail together, such as those in one duct.

        Raises :class:`TopologyError` if the group's name is a node's, a link's or another group's, or if a link is unknown or given
        twice.
        """
        _check_name(name, "shared risk group")
        if name in self.shared_risks:
            raise TopologyError(f"shared risk group {name!r} is declared twice")
        if name in self.hosts or name in self.switches or name in self._links_by_name():
            raise TopologyError(f"shared risk group {name!r} has the name of a {'link' if '-' in name else 'node'}")
        found = tuple(self.find_link(link) for link in links)
        if not found:
            raise TopologyError(f"shared risk group {name!r} has no links")
        if len(set(found)) < len(found):
            raise TopologyError(f"shared risk group {name!r} has a link twice")
        self.shared_risks[name] = found

    def find_link(self, name: str) -> int:
        """Return the index in :attr:`links` of the link called ``a-b`` or ``b-a``; ``a-b#2`` is the second of parallel ones.

        ``a:1-b:2``, with the ports of both ends, names a link too. Raises :class:`TopologyError` if there is no such link, or if
        the name fits several because the nodes' own names have hyphens.
        """
        ends, numbered, number = name.partition("#")
        found = self._links_by_name().get(ends, [])
        if len({frozenset((self.links[i].a, self.links[i].b)) for i in found}) > 1:
            candidates = ", ".join(self.links[i].ends for i in found)
            raise TopologyError(f"{name!r} can be any of the links {candidates}: name it with its ports")
        if not numbered:
            number = "1"
        if is_numeral(number) and 1 <= int(number) <= len(found):
            return found[int(number) - 1]
        known = self.link_names()
        names = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
        raise TopologyError(f"there is no link {name!r} (known: {names})")

    def is_forward(self, name: str) -> bool:
        """Return True if a link's name, as for :meth:`find_link`, begins with the link's end ``a``.

        Raises :class:`TopologyError` if there is no such link, or if the name reads the same from both ends.
        """
        link = self.links[self.find_link(name)]
        ends = name.partition("#")[0]
        if link.name == f"{link.b}-{link.a}" == ends:
            raise TopologyError(f"{name!r} can be both directions of the link {link.ends}: name it with its ports")
        return ends in (link.name, link.ends)

    def _links_by_name(self) -> dict[str, list[int]]:
        """Return the indices of the links that each name fits, in either direction, with and without ports.

        The result is cached.
        """
        known: tuple[int, dict[str, list[int]]] | None = self.__dict__.get("_by_name")
        if known is not None and known[0] == len(self.links):
            return known[1]
        found: dict[str, list[int]] = {}
        for i, link in enumerate(self.links):
            back = f"{link.b}:{link.b_port}-{link.a}:{link.a_port}"
            for name in {link.name, f"{link.b}-{link.a}", link.ends, back}:
                found.setdefault(name, []).append(i)
        self.__dict__["_by_name"] = (len(self.links), found)
        return found

    def link_names(self) -> list[str]:
        """Return the name of each of :attr:`links`, for :meth:`find_link`: ``a-b``, and ``a-b#2`` and so on for parallel links.

        A link whose name would fit others is named with its ports, ``a:1-b:2``.
        """
        names = []
        by_name = self._links_by_name()
        parallel: dict[frozenset[str], int] = {}
        for link in self.links:
            ends = frozenset((link.a, link.b))
            number = parallel[ends] = parallel.get(ends, 0) + 1
            fits = by_name[link.name]
            if len(fits) > 1 and any({self.links[i].a, self.links[i].b} != ends for i in fits):
                names.append(link.ends)
            else:
                names.append(link.name if number == 1 else f"{link.name}#{number}")
        return names

    @cached_property
    def graph(self) -> nx.Graph[str]:
        """The graph of switches and the links between them.

        Edges have ``cost`` and ``link`` (index), of parallel links the cheapest.
        """
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(self.switches)
        for i, link in enumerate(self.links):
            if link.a in self.switches and link.b in self.switches:
                known = graph.get_edge_data(link.a, link.b)
                if known is None or link.cost < known["cost"]:
                    graph.add_edge(link.a, link.b, cost=link.cost, link=i)
        return graph

    def port_towards(self, node: str, neighbour: str) -> int:
        """Return the port of ``node`` on its cheapest link to ``neighbour``.

        Raises :class:`TopologyError` if no link connects them.
        """
        if not self.graph.has_edge(node, neighbour):
            raise TopologyError(f"there is no link between switches {node!r} and {neighbour!r}")
        link: Link = self.links[self.graph.edges[node, neighbour]["link"]]
        return link.a_port if link.a == node else link.b_port

    def port_mac(self, switch: str, port: int) -> bytes:
        """Return the MAC address of a switch's port, see :func:`port_mac`."""
        return port_mac(self.switches[switch].index, port)

    def puts_in_order(self, host: str) -> bool:
        """Return True if packets to a host go through an ordering function in front of the host's link."""
        return any(link_towards(self.links[i], host).ordering is not None for i in self._ports[host].values())

    def attachment(self, host: str) -> Attachment:
        """Return the switch and port that a host is connected to, of several links the one of the first network card.

        Raises :class:`TopologyError` if the host is unknown or has no link.
        """
        return self.attachments(host)[0]

    def attachments(self, host: str) -> list[Attachment]:
        """Return the switches and ports that a host is connected to, in the order of its network cards: at least one.

        Raises :class:`TopologyError` if the host is unknown or has no link.
        """
        if host not in self.hosts:
            raise TopologyError(f"there is no host {host!r} (known: {', '.join(self.hosts)})")
        if not (ports := self._ports[host]):
            raise TopologyError(f"host {host!r} has no link")
        found = []
        for card in sorted(ports):
            link = self.links[ports[card]]
            switch, port = (link.b, link.b_port) if link.a == host else (link.a, link.a_port)
            found.append(Attachment(self.hosts[host], switch, port, card))
        return found

    def all_attachments(self) -> list[Attachment]:
        """Return where all hosts are connected, in the order of hosts and of their network cards.

        Raises :class:`TopologyError` if a host has no link.
        """
        return [place for host in self.hosts for place in self.attachments(host)]

    @property
    def size(self) -> str:
        """The numbers of switches, hosts and links, as a person would say them."""
        parts = ((self.switches, "switch", "switches"), (self.hosts, "host", "hosts"), (self.links, "link", "links"))
        return ", ".join(counted(len(each), one, several) for each, one, several in parts)

    @property
    def bridges(self) -> list[str]:
        """The names of the switches that are bridges."""
        return [name for name, switch in self.switches.items() if switch.kind == "bridge"]

    def ports(self, node: str) -> list[int]:
        """Return the ports of a node that have a link."""
        return list(self._ports[node])

    def known_neighbours(self, host: str) -> dict[Address, bytes]:
        """Return the MAC addresses that a host knows from the start, by IP address: see :class:`holdfast.host.Host`.

        Raises :class:`TopologyError` if the host is unknown or has no link.
        """
        place = self.attachment(host)
        node, mac = place.host, self.port_mac(place.switch, place.port)
        found: dict[Address, bytes] = {}
        if self.switches[place.switch].kind == "bridge":
            # Who the gateway is, only the station itself can say.
            return dict(node.neighbours)
        if node.gateway is not None and not node.has_own_gateway and self._plan.owner(node.gateway) is None:
            found[node.gateway] = mac
        if node.gateway is not None and node.ipv6 is not None:
            found[node.ipv6_gateway] = mac
        return {**found, **node.neighbours}

    def parts(self) -> list[list[str]]:
        """Return the switches in groups that can reach each other; the largest group first, and of equal groups the older one."""
        order = {name: i for i, name in enumerate(self.switches)}
        groups = [sorted(group, key=order.__getitem__) for group in nx.connected_components(self.graph)]
        return sorted(groups, key=lambda group: (-len(group), order[group[0]]))

    def copy(self) -> Topology:
        """Return a new topology with the same hosts, switches and links, to which more can be added."""
        other = Topology(self.name)
        other.hosts, other.switches = dict(self.hosts), dict(self.switches)
        other.links, other.packet_generators = list(self.links), list(self.packet_generators)
        other.shared_risks = dict(self.shared_risks)
        other._ports = {node: dict(ports) for node, ports in self._ports.items()}
        other._plan = self._plan.copy()
        return other

    def largest_part(self) -> Topology:
        """Return a topology of the largest group of :meth:`parts` and its hosts, with the same names, addresses and ports."""
        kept = set(self.parts()[0]) if self.switches else set()
        part = Topology(self.name)
        for name, host in self.hosts.items():
            if any(place.switch in kept for place in self.attachments(name)):
                part.add_host(name, **{**host.given(), "address": str(host.address)})
                kept.add(name)
        for name, switch in self.switches.items():
            if name in kept:
                part.add_switch(name, **_given(switch, {"name", "index"}))
        for link in self.links:
            if link.a in kept and link.b in kept:
                part.add_link(**_given(link))
        part.packet_generators = [each for each in self.packet_generators if each.switch in kept]
        stayed = [i for i, link in enumerate(self.links) if link.a in kept and link.b in kept]
        number = {i: place for place, i in enumerate(stayed)}
        for name, links in self.shared_risks.items():
            if left := tuple(number[i] for i in links if i in number):
                part.shared_risks[name] = left
        return part

    def check(self) -> None:
        """Raise :class:`TopologyError` if a host has no link, or if no path connects two of the hosts."""
        part_of = {switch: i for i, part in enumerate(self.parts()) for switch in part}
        first: dict[frozenset[int], str] = {}
        for host in self.hosts:
            reached = frozenset(part_of[place.switch] for place in self.attachments(host))
            for other, of_other in first.items():
                if not reached & other:
                    one, at = self.attachment(of_other), self.attachment(host).switch
                    raise TopologyError(
                        f"there is no path between hosts {of_other!r} (at {one.switch!r}) and {host!r} (at {at!r})"
                    )
            first.setdefault(reached, host)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Topology:
        """Read a topology from a YAML file, whose contents :mod:`holdfast.topologies.yaml_file` describes."""
        from holdfast.topologies import yaml_file

        return yaml_file.read(Path(path))

    def _repr_svg_(self) -> str | None:
        """Return a picture for notebooks, or None if the topology is too large for one."""
        from holdfast import notebook

        return notebook.topology_picture(self)

    def _repr_html_(self) -> str:
        """Return the picture and the first links for notebooks."""
        from holdfast import notebook

        return notebook.topology_page(self)

    def to_yaml(self, *, ascii_only: bool = False) -> str:
        """Return the topology as the text of a YAML file; with ``ascii_only`` the text has ASCII characters alone."""
        from holdfast.topologies import yaml_file

        return yaml_file.write(self, ascii_only=ascii_only)

    @classmethod
    def from_graphml(
        cls,
        path: str | Path,
        *,
        hosts: bool = True,
        rate_bps: int | None = None,
        default_rate_bps: int = 1_000_000_000,
        default_delay_ms: float = 1.0,
        **host_link: Any,
    ) -> Topology:
        """Read a topology from a GraphML file of the Internet Topology Zoo's kind, see :mod:`holdfast.topologies.graphml`.

        The other arguments are explained there; ``host_link`` are parameters of the links of hosts.
        """
        from holdfast.topologies import graphml

        return graphml.read(
            Path(path),
            hosts=hosts,
            rate_bps=rate_bps,
            default_rate_bps=default_rate_bps,
            default_delay_ms=default_delay_ms,
            host_link=host_link,
        )


def _given(model: BaseModel, without: set[str] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
    """Return the fields that a model was created with, without defaults, and without the names in ``without``."""
    return {name: getattr(model, name) for name in model.model_fields_set - without}


def _validated(model: type[M], *, where: str, **values: Any) -> M:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise TopologyError(f"{where}: {first_mistake(error)}") from error
