"""``firewall.p4``: its compilation, its limits, and the full names of its tables, actions, registers, counters and meters."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from holdfast._core import Program
from holdfast.control.routes import RouteTables
from holdfast.errors import NetworkError

HERE = Path(__file__).parent

Variant: TypeAlias = Literal["routed", "bridged", "bindings"]
"""A router, a bridge, or a router that checks bindings and has neither rules nor flows."""

VARIANTS: dict[Variant, dict[str, str]] = {
    "routed": {},
    "bridged": {"BRIDGED": "1"},
    "bindings": {"BINDINGS_ONLY": "1"},
}
"""The macros that each variant is compiled with."""

REASONS = (
    "passes",
    "truncated",
    "malformed",
    "bad_checksum",
    "ethertype",
    "not_ready",
    "unknown_port",
    "spoofed_mac",
    "spoofed_address",
    "bogus_address",
    "ip_options",
    "fragment",
    "extension_header",
    "ttl_expired",
    "multicast",
    "no_route",
    "unknown_receiver",
    "tcp_flags",
    "tcp_no_state",
    "tcp_state",
    "tcp_window",
    "tcp_reset",
    "icmp_type",
    "icmp_unrelated",
    "reply_only",
    "wrong_zone",
    "denied",
    "no_rule",
    "flow_rate",
    "table_full",
    "rate_limit",
    "rogue_server",
    "controller_rate",
    "no_controller",
)
"""Why a packet is dropped, by the number in ``reasons.p4``; the first is none."""

STATES = {
    "syn_sent": 1,
    "syn_received": 2,
    "closed": 3,
    "udp_new": 4,
    "echo": 5,
    "other_new": 6,
    "established": 8,
    "closing": 9,
    "udp_stream": 10,
    "other_stream": 11,
}
"""The states of flows that have a timeout, by the name that rule files have for it."""

RULES = 32768
"""Entries of the table of rules, both generations together; the program's default."""

LIMITS = 1024
"""Limits of rates, the first of which is not used; the program's default."""

HASH_KEYS = 11
"""The number of secret keys of the hash of flows, of 64 bits each."""

FLOOD_GROUP = 1
"""The multicast group of all ports of a bridge."""

_INGRESS = "FirewallIngress"
_JUDGE = f"{_INGRESS}.judge_flow"

PORTS = f"{_INGRESS}.ports"
SET_ROLE = f"{_INGRESS}.set_role"
MAC_BINDINGS = f"{_INGRESS}.mac_bindings"
ADDRESS_BINDINGS = f"{_INGRESS}.address_bindings"
SOURCES = f"{_INGRESS}.sources"
BELONGS_TO = f"{_INGRESS}.belongs_to"
PORT_SETS = f"{_INGRESS}.port_sets"
RECEIVERS = f"{_INGRESS}.receivers"
MAC_OWNERS = f"{_INGRESS}.mac_owners"
OWNED = f"{_INGRESS}.owned"
STATIONS = f"{_INGRESS}.stations"
DELIVER = f"{_INGRESS}.deliver"
FORWARD = f"{_INGRESS}.forward"
RULE_SET = f"{_INGRESS}.rule_set"
ACTIVATE = f"{_INGRESS}.activate"
RULE_TABLE = f"{_JUDGE}.rules"
ALLOW = f"{_JUDGE}.allow"
DENY = f"{_JUDGE}.deny"

DROPS = f"{_INGRESS}.drops"
LOG_RATE = f"{_INGRESS}.log_rate"
CONTROLLER_RATE = f"{_INGRESS}.controller_rate"
TIMEOUTS = f"{_JUDGE}.timeouts"
PACKET_LIMITS = f"{_JUDGE}.packet_limits"
BYTE_LIMITS = f"{_JUDGE}.byte_limits"
NEW_FLOWS = f"{_JUDGE}.new_flows"
DISPLACED = f"{_JUDGE}.displaced"
YIELDED = f"{_JUDGE}.yielded"
LOG = "dropped_t"
"""The digest of dropped packets."""

ROUTES = RouteTables(
    ipv4=f"{_INGRESS}.ipv4_lpm",
    key="hdr.ipv4.dst_addr",
    ipv6=f"{_INGRESS}.ipv6_lpm",
    key_v6="hdr.ipv6.dst_addr",
    actions_v6={FORWARD: f"{_INGRESS}.forward_v6"},
)

MAPPED = 0xFFFF << 32
"""IPv4 addresses are in tables and flows as IPv6 addresses (RFC 4291, section 2.5.5.2)."""


def compile_firewall(variant: Variant = "routed", defines: dict[str, str] | None = None) -> Program:
    """Compile a variant of ``firewall.p4``.

    ``defines`` may set WAY_BITS (a quarter of the flows, as a power of two), RULES, LIMITS, SOURCE_BITS, BINDINGS and CPU_PORT; the
    README says what they are. Raise :class:`NetworkError` for an unknown variant.
    """
    if variant not in VARIANTS:
        raise NetworkError(f"variant is {variant!r}; there are {', '.join(VARIANTS)}")
    return Program.compile(str(HERE / "firewall.p4"), defines={**VARIANTS[variant], **(defines or {})})
