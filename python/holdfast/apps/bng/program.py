"""``bng.p4`` and ``balancer.p4``: their compilation, and the full names of their tables, actions, counters and meters."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from holdfast._core import Program

HERE = Path(__file__).parent

Variant: TypeAlias = Literal["single", "auth", "forward"]
"""One plane, or one of the two kinds behind a balancer."""

VARIANTS: dict[Variant, dict[str, str]] = {
    "single": {},
    "auth": {"AUTH_ONLY": "1"},
    "forward": {"FORWARD_ONLY": "1"},
}
"""The macros that each variant is compiled with."""

REASONS = (
    "passes",
    "truncated",
    "malformed",
    "bad_checksum",
    "unknown_port",
    "ethertype",
    "bad_tags",
    "other_gateway",
    "unknown_session",
    "wrong_line",
    "wrong_mac",
    "not_negotiated",
    "spoofed_address",
    "bogus_address",
    "ttl_expired",
    "no_route",
    "no_subscriber",
    "too_big",
    "rate_up",
    "rate_down",
    "line_rate",
    "control_rate",
    "wrong_plane",
    "node_rate",
)
"""Why a user plane drops a packet, by the number in ``reasons.p4``; the first is none."""

BALANCER_REASONS = (
    "passes",
    "truncated",
    "unknown_port",
    "ethertype",
    "no_plane",
    "no_subscriber",
    "no_uplink",
    "core_rate",
)
"""Why the balancer drops a packet, by the number in ``balancer.p4``; the first is none."""

SESSION_IDS = 65536
"""Cells of registers and meters of sessions; identifiers 0 and 65,535 are no session's (RFC 2516, section 4)."""

LINE_CELLS = 65536
"""Cells of the meter of control packets in each class; the program's default."""

BUCKETS = 4096
"""The number of buckets to which the balancer assigns lines; the program's default."""

UNCLAMPED = 0xFFFF
"""The value in place of the largest MSS with which segments keep their own."""

CLASSES = ("padi", "discovery", "ppp", "core")
"""The classes of packets for the controller, by their number in ``bng.p4``."""

ETHERTYPE_PORT_TAG = 0x9100

_INGRESS = "BngIngress"

PORTS = f"{_INGRESS}.ports"
ACCESS = f"{_INGRESS}.access"
CORE = f"{_INGRESS}.core"
SESSIONS = f"{_INGRESS}.sessions"
SUBSCRIBER = f"{_INGRESS}.subscriber"
IPV4_LPM = f"{_INGRESS}.ipv4_lpm"
TO_CORE = f"{_INGRESS}.to_core"
IPV6_LPM = f"{_INGRESS}.ipv6_lpm"
TO_CORE_V6 = f"{_INGRESS}.to_core_v6"
SUBSCRIBERS_V4 = f"{_INGRESS}.subscribers_v4"
DELIVER = f"{_INGRESS}.deliver"
SUBSCRIBERS_V6 = f"{_INGRESS}.subscribers_v6"
DELIVER_V6 = f"{_INGRESS}.deliver_v6"
OWN_V4 = f"{_INGRESS}.answer_neighbour.own_v4"
OWN_V6 = f"{_INGRESS}.answer_neighbour.own_v6"
OWN = f"{_INGRESS}.answer_neighbour.own"
USAGE_UP = f"{_INGRESS}.usage_up"
USAGE_DOWN = f"{_INGRESS}.usage_down"
RATE_UP = f"{_INGRESS}.rate_up"
RATE_DOWN = f"{_INGRESS}.rate_down"
DROPS = f"{_INGRESS}.drops"
ECHOES = f"{_INGRESS}.echoes"
CLAMPED = f"{_INGRESS}.clamp_mss.clamped"
UNPARSED = f"{_INGRESS}.clamp_mss.unparsed"
LINE_RATE = f"{_INGRESS}.send_to_controller.line_rate"
NODE_COMMITTED = f"{_INGRESS}.send_to_controller.node_committed"
NODE_PEAK = f"{_INGRESS}.send_to_controller.node_peak"
CONTROL_RATE = f"{_INGRESS}.send_to_controller.control_rate"
TO_CONTROLLER = f"{_INGRESS}.send_to_controller.to_controller"

_BALANCER = "BalancerIngress"

BALANCER_PORTS = f"{_BALANCER}.ports"
SET_ROLE = f"{_BALANCER}.set_role"
AUTHENTICATION = f"{_BALANCER}.authentication"
TO_PLANE = f"{_BALANCER}.to_plane"
BUCKET_TABLE = f"{_BALANCER}.buckets"
SERVE = f"{_BALANCER}.serve"
DESTINATIONS_V4 = f"{_BALANCER}.destinations_v4"
BELONG = f"{_BALANCER}.belong"
DESTINATIONS_V6 = f"{_BALANCER}.destinations_v6"
BELONG_V6 = f"{_BALANCER}.belong_v6"
UPLINKS = f"{_BALANCER}.uplinks"
BALANCER_OWN_V4 = f"{_BALANCER}.answer_neighbour.own_v4"
BALANCER_OWN_V6 = f"{_BALANCER}.answer_neighbour.own_v6"
BALANCER_OWN = f"{_BALANCER}.answer_neighbour.own"
TO_UPLINK = f"{_BALANCER}.to_uplink"
BALANCER_DROPS = f"{_BALANCER}.drops"
CORE_RATE = f"{_BALANCER}.core_rate"

ROLES = {"access": 1, "plane": 2, "plane_core": 3, "core": 4}
"""The numbers of the roles of the balancer's ports, by name."""


def compile_bng(variant: Variant = "single", defines: dict[str, str] | None = None) -> Program:
    """Compile a variant of ``bng.p4``. ``defines`` may set SESSIONS, LINE_CELLS and CPU_PORT; the README says what they are."""
    return Program.compile(str(HERE / "bng.p4"), defines={**VARIANTS[variant], **(defines or {})})


def compile_balancer(defines: dict[str, str] | None = None) -> Program:
    """Compile ``balancer.p4``. ``defines`` may set BUCKETS, ADDRESSES and CPU_PORT."""
    return Program.compile(str(HERE / "balancer.p4"), defines=defines or {})
