"""``protect.p4``: its compilation, its limits, and the full names of its tables, actions, registers and counters."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from holdfast._core import Program
from holdfast.control.routes import RouteTables
from holdfast.link import SequenceHeader

HERE = Path(__file__).parent

NODE_ADDRESSES = ipaddress.IPv4Network("10.255.0.0/16")
"""The network of the PTIs' addresses (sources of the outer headers), by switch index."""

PROTECTION_PROTOCOL = 253
"""Protocol number of outer headers; the program's default."""

OVERHEAD_BYTES = 28
"""Outer IPv4 header and protection header."""

CONNECTIONS = 8192
"""Connections that a node can be the PTI of, and those it can be the PTE of; the program's default."""

MAX_PATHS = 4
"""Copies of a packet, at most."""

PROTECTION_HEADER = SequenceHeader(
    ethertype=0x88B5,
    bytes=8,
    stream=(0, 24),
    sequence=(24, 32),
    following=(56, 8),
    ethertypes={4: 0x0800, 41: 0x86DD},
)
"""The protection header of accepted packets, for an ordering function: connection, sequence number and protocol of what follows."""

R_TAG = SequenceHeader(ethertype=0xF1C1, bytes=6, sequence=(16, 16), following=(32, 16))
"""The redundancy tag of IEEE 802.1CB, which ``rtag.p4`` may leave."""

_FORWARDING = "ProtectIngress.protect_and_forward"
FORWARD = f"{_FORWARDING}.forward"
FORWARD_TUNNEL = f"{_FORWARDING}.forward_tunnel"
"""The action towards the end of a tunnel, which refuses what is in none."""
FORWARD_IN_ORDER = f"{_FORWARDING}.forward_in_order"
"""Leaves an accepted packet's number in front of it, for the ordering function behind the port."""

ROUTE_TABLE = f"{_FORWARDING}.ipv4_lpm"
ROUTES = RouteTables(
    ipv4=ROUTE_TABLE,
    key="dst_addr",
    ipv6=f"{_FORWARDING}.ipv6_lpm",
    key_v6="hdr.ipv6.dst_addr",
    actions_v6={FORWARD: f"{_FORWARDING}.forward_v6", FORWARD_IN_ORDER: f"{_FORWARDING}.forward_v6_in_order"},
)

FLOW_TABLES = {4: f"{_FORWARDING}.protected_flows", 6: f"{_FORWARDING}.protected_flows_v6"}
"""By version of IP."""
PROTECT = f"{_FORWARDING}.protect"
LAST_SENT = f"{_FORWARDING}.encapsulate.last_sent_sn"
PROTECTED = f"{_FORWARDING}.encapsulate.protected"
MTU_EXCEEDED = f"{_FORWARDING}.encapsulate.mtu_exceeded"

CONNECTION_TABLE = "ProtectIngress.decaps_p.egress_connections"
CONNECTION_ACTIONS = "ProtectIngress.decaps_p"
"""The prefix of the names of :meth:`Acceptance.action`."""
SELECT_CONNECTION = f"{CONNECTION_ACTIONS}.select_connection"
_ACCEPTANCE = "ProtectIngress.decaps_p.acceptance"
LAST_ACCEPTED = f"{_ACCEPTANCE}.last_accepted_sn"
HISTORY = f"{_ACCEPTANCE}.history"
LOST = f"{_ACCEPTANCE}.lost"
RESETS = f"{_ACCEPTANCE}.resets"
PASSED = f"{_ACCEPTANCE}.passed"
DISCARDED = f"{_ACCEPTANCE}.discarded"
ROGUE = f"{_ACCEPTANCE}.rogue"
OUT_OF_ORDER = f"{_ACCEPTANCE}.out_of_order"

ENDPOINT_TABLE = "ProtectIngress.decaps_ip.tunnel_endpoints"
END_PATH = "ProtectIngress.decaps_ip.end_path"
COPY_TABLE = "ProtectEgress.tunnel_copies"
SEND_COPY = "ProtectEgress.send_copy"


def compile_protect(defines: dict[str, str] | None = None) -> Program:
    """Compile ``protect.p4``.

    ``defines`` may set PROTECTION_PROTOCOL, UDP_PORT, SN_BITS, HISTORY_BITS, CONNECTIONS, CPU_PORT and NESTED_ENDS; the README says
    what they are.
    """
    return Program.compile(str(HERE / "protect.p4"), defines=defines or {})
