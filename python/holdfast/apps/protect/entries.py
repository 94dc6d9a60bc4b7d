"""Table entries of connections, flows and tunnels, and the cells by which a connection's counts begin anew. Pure encoding.

Entries carry, as P4Runtime metadata, what a controller that comes later must know of them. The order of writes is not known here.
"""

from __future__ import annotations

import ipaddress
import json

from holdfast.apps.protect import program
from holdfast.apps.protect.acceptance import PATHS
from holdfast.apps.protect.connection import Connection, Copy, Flow, PathSet, Tunnel
from holdfast.control.desired import Entity
from holdfast.control.entities import Counter, MulticastGroup, Register
from holdfast.control.next_hop import over_link
from holdfast.control.tables import TableEntry
from holdfast.paths import Path
from holdfast.topology import Topology


def _metadata(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def address_number(address: str) -> int:
    """Return an IPv4 address in text form as an integer."""
    return int(ipaddress.IPv4Address(address))


# ---- Tunnels ----


def endpoint_entry(tunnel: Tunnel) -> TableEntry:
    """Return the entry by which the PTE (tunnel egress) recognises the address at which a tunnel ends."""
    match = {"hdr.tunnel.dst_addr": address_number(tunnel.address)}
    return TableEntry(program.ENDPOINT_TABLE, match, program.END_PATH, {"number": tunnel.number - 1})


def tunnel_route(topology: Topology, tunnel: Tunnel, node: str) -> TableEntry:
    """Return the entry for the route to a tunnel's address at ``node``, which is on the tunnel's path."""
    link = tunnel.path.links[tunnel.path.nodes.index(node)]
    prefix = ipaddress.IPv4Network(tunnel.address)
    return program.ROUTES.entry(prefix, program.FORWARD_TUNNEL, over_link(topology, node, link).params())


def copy_entry(topology: Topology, path_set: PathSet, copy: Copy) -> TableEntry:
    """Return the entry at the PTI (tunnel ingress) that addresses one copy of the path set's multicast group to its tunnel."""
    path = copy.tunnel.path
    hop = over_link(topology, path_set.ingress, path.links[0])
    return TableEntry(
        program.COPY_TABLE,
        {"meta.multicast_group": path_set.group, "standard_metadata.egress_rid": copy.instance},
        program.SEND_COPY,
        {"src_mac": hop.src_mac, "dst_mac": hop.dst_mac, "dst_ip": address_number(copy.tunnel.address)},
        metadata=_metadata(
            {
                "number": copy.tunnel.number,
                "links": _link_names(topology, path),
                "preferred": [_link_names(topology, preferred) for preferred in path_set.preferred],
                "disjoint": path_set.disjoint,
            }
        ),
    )


def _link_names(topology: Topology, path: Path) -> list[str]:
    return [topology.links[index].ends for index in path.links]


def copy_group(topology: Topology, path_set: PathSet) -> MulticastGroup:
    """Return the multicast group of a path set: (port, instance) of each copy."""
    copies = [
        (over_link(topology, path_set.ingress, it.tunnel.path.links[0]).port, it.instance) for it in path_set.copies
    ]
    return MulticastGroup(path_set.group, tuple(copies))


# ---- Connections and flows ----


def flow_entry(topology: Topology, connection: Connection, flow: Flow, priority: int) -> TableEntry:
    """Return the flow table's entry by which the connection's tunnel ingress (PTI) protects the packets of ``flow``.

    If flows overlap, the one with the higher ``priority`` matches.
    """
    return TableEntry(
        program.FLOW_TABLES[flow.version],
        flow.match(),
        program.PROTECT,
        {
            "index": connection.index,
            "cid": connection.cid,
            "src_ip": int(program.NODE_ADDRESSES[topology.switches[connection.ingress].index]),
            "dst_ip": address_number(connection.addresses[0]),
            "m_grp": connection.multicast_group,
            "mtu": connection.mtu,
        },
        priority,
        _metadata(flow.fields()),
    )


def connection_entry(connection: Connection) -> TableEntry:
    """Return the entry by which the PTE (tunnel egress) accepts packets of ``connection``, with its acceptance algorithm."""
    action, parameters = connection.acceptance.action(connection.egress_index)
    noted = {
        "ingress": connection.ingress,
        "index": connection.index,
        "group": connection.path_set.group,
        "mtu": connection.mtu,
    }
    return TableEntry(
        program.CONNECTION_TABLE,
        {"hdr.protection.cid": connection.cid},
        f"{program.CONNECTION_ACTIONS}.{action}",
        parameters,
        metadata=_metadata(noted),
    )


# ---- Registers and counters ----


def cleared_ingress(index: int) -> list[Entity]:
    """Return the counters and registers of the connection with this index at its PTI, with their initial values.

    The PTI is the tunnel ingress.
    """
    return [
        Register(program.LAST_SENT, index, 0),
        Counter(program.PROTECTED, index),
        Counter(program.MTU_EXCEEDED, index),
    ]


def cleared_egress(index: int) -> list[Entity]:
    """Return the counters and registers of a connection with this index at its PTE (tunnel egress), with their initial values.

    Those of its paths are included.
    """
    counters = (program.PASSED, program.DISCARDED, program.ROGUE, program.OUT_OF_ORDER)
    return [
        *(Register(register, index, 0) for register in (program.LAST_ACCEPTED, program.HISTORY, program.LOST)),
        Counter(program.RESETS, index),
        *(Counter(counter, PATHS * index + path) for counter in counters for path in range(PATHS)),
    ]
