"""Table entries of connections, flows and tunnels, and the writes that start a connection's counts anew. Pure encoding.

Entries carry, as P4Runtime metadata, what a controller that comes later must know of them. The order of writes is not known here.
"""

from __future__ import annotations

import ipaddress
import json

from holdfast.apps.protect import program
from holdfast.apps.protect.acceptance import PATHS
from holdfast.apps.protect.connection import Connection, Copy, Flow, PathSet, Tunnel
from holdfast.control.next_hop import over_link
from holdfast.control.tables import TableEntry
from holdfast.p4runtime.client import Client
from holdfast.paths import Path
from holdfast.topology import Topology


def _metadata(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def address_number(address: str) -> int:
    """Return an IPv4 address in text form as an integer."""
    return int(ipaddress.IPv4Address(address))


# ---- Tunnels ----


def endpoint_entry(tunnel: Tunnel) -> TableEntry:
    """Return the entry by which the PTE recognises the address at which a tunnel ends."""
    match = {"hdr.tunnel.dst_addr": address_number(tunnel.address)}
    return TableEntry(program.ENDPOINT_TABLE, match, program.END_PATH, {"number": tunnel.number - 1})


def tunnel_route(topology: Topology, tunnel: Tunnel, node: str) -> TableEntry:
    """Return the entry for the route to a tunnel's address at ``node``, which is on the tunnel's path."""
    link = tunnel.path.links[tunnel.path.nodes.index(node)]
    prefix = ipaddress.IPv4Network(tunnel.address)
    return program.ROUTES.entry(prefix, program.FORWARD_TUNNEL, over_link(topology, node, link).params())


def copy_entry(topology: Topology, path_set: PathSet, copy: Copy) -> TableEntry:
    """Return the entry at the PTI that addresses one copy of the path set's multicast group to its tunnel."""
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


def replicas(topology: Topology, path_set: PathSet) -> list[tuple[int, int]]:
    """Return (port, instance) of each copy of the path set's multicast group."""
    return [
        (over_link(topology, path_set.ingress, copy.tunnel.path.links[0]).port, copy.instance)
        for copy in path_set.copies
    ]


# ---- Connections and flows ----


def flow_entry(topology: Topology, connection: Connection, flow: Flow, priority: int) -> TableEntry:
    """Return the entry at the PTI that protects a flow over ``connection``."""
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
    """Return the entry at the PTE that accepts packets of ``connection``."""
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


def clear_ingress(index: int, client: Client) -> None:
    """Set the counters and registers of the connection with this index at its PTI to zero."""
    client.write_register(program.LAST_SENT, index, 0)
    for counter in (program.PROTECTED, program.MTU_EXCEEDED):
        client.write_counter(counter, index)


def clear_egress(index: int, client: Client) -> None:
    """Set the counters and registers of the connection with this index, and of its paths, at its PTE to zero."""
    for register in (program.LAST_ACCEPTED, program.HISTORY, program.LOST):
        client.write_register(register, index, 0)
    client.write_counter(program.RESETS, index)
    for counter in (program.PASSED, program.DISCARDED, program.ROGUE, program.OUT_OF_ORDER):
        for cell in range(PATHS * index, PATHS * index + PATHS):
            client.write_counter(counter, cell)
