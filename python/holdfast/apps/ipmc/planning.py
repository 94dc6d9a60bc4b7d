"""From channels and a map to what each switch forwards: a pure function. Nothing is written, and no event is known here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.control.entities import MulticastGroup
from holdfast.control.membership.channels import Channel
from holdfast.control.next_hop import over_link, to_host
from holdfast.control.tables import TableEntry
from holdfast.paths import ShortestPaths, shortest_path_tree
from holdfast.topology import Topology

ANY_PORT = 511
"""Of ``groups.p4``: packets of the group may come in by every port."""

INSTANCE = 1
"""Of all copies; the program tells copies from other packets by it."""

GROUPS = 65_535
"""Multicast groups that a switch can have: their number is 16 bits wide, and 0 is none."""

_CONTROL = "RouterIngress.groups"


@dataclass(frozen=True, slots=True)
class Root:
    """The source of the packets of a channel: the switch, and its port (:data:`ANY_PORT` for those of any source)."""

    switch: str
    port: int


def tree(
    topology: Topology,
    paths: ShortestPaths,
    channel: Channel,
    root: Root,
    members: Mapping[str, frozenset[int]],
    number: int,
) -> Mapping[str, tuple[MulticastGroup, TableEntry]]:
    """Return by switch its multicast group and its table entry for the distribution tree of one channel.

    The tree has the routers' path from its root to each member; a member to which no path leads is left out. ``members``: by
    switch, the ports with receivers. ``number``: of the multicast group.
    """
    source, group = channel
    header = f"hdr.ipv{group.version}"
    table, match = f"{_CONTROL}.ipv{group.version}_groups", {f"{header}.dst_addr": int(group)}
    if source is not None:
        table, match = f"{_CONTROL}.ipv{group.version}_sources", {f"{header}.src_addr": int(source)} | match
    found = {}
    leaves = [switch for switch, ports in members.items() if ports]
    for switch, branch in shortest_path_tree(paths, root.switch, leaves).items():
        ports = [over_link(topology, switch, link).port for link in branch.outgoing] + [*members.get(switch, ())]
        if ports:
            rpf_port = root.port if branch.incoming is None else over_link(topology, switch, branch.incoming).port
            params = {"m_grp": number, "rpf_port": rpf_port}
            replicas = tuple((port, INSTANCE) for port in sorted(ports))
            entry = TableEntry(table, match, f"{_CONTROL}.replicate", params)
            found[switch] = MulticastGroup(number, replicas), entry
    return found


def interfaces(topology: Topology) -> dict[str, list[TableEntry]]:
    """Return by switch an entry for each port, with the source MAC address of the copies that leave by it."""
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
