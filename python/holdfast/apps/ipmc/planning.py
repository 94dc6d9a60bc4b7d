"""From groups and a map to what each switch forwards: a pure function. Nothing is written, and no event is known here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

from holdfast.control.next_hop import over_link, to_host
from holdfast.control.tables import Replicas, TableEntry
from holdfast.errors import NetworkError
from holdfast.paths import ShortestPaths, shortest_path_tree
from holdfast.topology import Topology

ANY_PORT = 511
"""Of ``groups.p4``: packets of the group may come in by every port."""

INSTANCE = 1
"""Of all copies; the program tells copies from other packets by it."""

GROUPS = 65_535
"""Multicast groups that a switch can have: their number is 16 bits wide, and 0 is none."""

_CONTROL = "RouterIngress.groups"


@dataclass(frozen=True)
class Channel:
    """What hosts join. ``source``: a host, for (S,G), or a switch, for (*,G): then whatever host is attached there may send."""

    group: str
    source: str

    def __post_init__(self) -> None:
        try:
            address = ip_address(self.group)
        except ValueError as error:
            raise NetworkError(f"{self.group!r} is no multicast group: {error}") from None
        if not address.is_multicast:
            raise NetworkError(f"{self.group} is no multicast group")
        if _is_local(address):
            raise NetworkError(f"{self.group} is a group of one link, which no router forwards")

    def root(self, topology: Topology) -> str:
        """The switch of the senders. Raises :class:`NetworkError` if there is no such host or switch."""
        if self.source in topology.switches:
            return self.source
        if self.source not in topology.hosts:
            raise NetworkError(f"{self.group}: there is no host and no switch {self.source!r}")
        return topology.attachment(self.source).switch

    def key(self, topology: Topology) -> tuple[str, dict[str, int]]:
        """The table of its entries, and their match. Raises :class:`NetworkError` if the source has no address of that family."""
        address = ip_address(self.group)
        ip = f"ipv{address.version}"
        match = {f"hdr.{ip}.dst_addr": int(address)}
        if self.source in topology.switches:
            return f"{_CONTROL}.{ip}_groups", match
        host = topology.hosts[self.source]
        interface = host.address if address.version == 4 else host.ipv6
        if interface is None:
            raise NetworkError(f"{self.group}: host {self.source!r} has no IPv6 address")
        return f"{_CONTROL}.{ip}_sources", {f"hdr.{ip}.src_addr": int(interface.ip)} | match


def _is_local(address: IPv4Address | IPv6Address) -> bool:
    """224.0.0.0/24, and IPv6 scopes 0 to 2."""
    if address.version == 4:
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xF <= 2


@dataclass
class Forwarding:
    """What a switch has of all groups."""

    entries: list[TableEntry] = field(default_factory=list)
    groups: dict[int, Replicas] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Entries and copies."""
        return len(self.entries) + sum(map(len, self.groups.values()))


def plan(
    topology: Topology, paths: ShortestPaths, members: Mapping[Channel, Iterable[str]], numbers: Mapping[Channel, int]
) -> dict[str, Forwarding]:
    """The forwarding of every switch. ``members``: hosts; ``numbers``: of the switches' multicast groups.

    The tree of a channel has the routers' path from its root to each member; a member that no path leads to has to wait.
    """
    found = {name: Forwarding() for name in topology.switches}
    for channel, hosts in members.items():
        table, match = channel.key(topology)
        root = channel.root(topology)
        here: dict[str, list[int]] = {}
        for name in hosts:
            place = topology.attachment(name)
            here.setdefault(place.switch, []).append(place.port)
        if not here:
            continue
        for switch, branch in shortest_path_tree(paths, root, here).items():
            ports = [over_link(topology, switch, link).port for link in branch.outgoing] + here.get(switch, [])
            if not ports:
                continue
            if branch.incoming is not None:
                rpf_port = over_link(topology, switch, branch.incoming).port
            else:
                rpf_port = ANY_PORT if channel.source == root else topology.attachment(channel.source).port
            params = {"m_grp": numbers[channel], "rpf_port": rpf_port}
            found[switch].entries.append(TableEntry(table, match, f"{_CONTROL}.replicate", params))
            found[switch].groups[numbers[channel]] = tuple((port, INSTANCE) for port in sorted(ports))
    return found


def interfaces(topology: Topology) -> dict[str, list[TableEntry]]:
    """The addresses with which copies leave, by switch: an entry for every port."""
    found: dict[str, list[TableEntry]] = {name: [] for name in topology.switches}

    def add(switch: str, port: int, src_mac: int) -> None:
        match = {"standard_metadata.egress_port": port}
        found[switch].append(
            TableEntry("RouterEgress.replicas.interfaces", match, "RouterEgress.replicas.send", {"src_mac": src_mac})
        )

    for index, link in enumerate(topology.links):
        if {link.a, link.b} <= topology.switches.keys():
            for switch in (link.a, link.b):
                hop = over_link(topology, switch, index)
                add(switch, hop.port, hop.src_mac)
    for name in topology.hosts:
        place = topology.attachment(name)
        hop = to_host(topology, place)
        add(place.switch, hop.port, hop.src_mac)
    return found
