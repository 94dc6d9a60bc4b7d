"""``bier.p4``: its compilation, its numbers, and the full names of its tables, actions and counters.

It does not know the entries of a switch (``entries``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

from holdfast._core import Program
from holdfast.apps.bier.planning import BSL_CODES
from holdfast.control.routes import RouteTables
from holdfast.errors import NetworkError

HERE = Path(__file__).parent

Replication: TypeAlias = Literal["recirculate", "one-pass", "clusters"]
"""Ways to replicate: one next hop in each pass; all neighbours by one multicast group; groups of neighbours that occur together."""

Encapsulation: TypeAlias = Literal["ethernet", "mpls"]
"""EtherType 0xAB37, or a label at the bottom of an MPLS stack (RFC 8296, 2.2 and 2.1)."""

DEFAULT_BSL = 256
PROGRAM_BSLS = tuple(bsl for bsl in BSL_CODES if bsl <= 1024)
"""The lengths of BitStrings that the program can be compiled for."""

TAG_BYTES = 20
"""Ethernet header and R-TAG of the payload of a protected channel."""

TUNNEL_OVERHEAD_BYTES = 24
"""Outer IPv4 and GRE header of a BIER packet in a tunnel."""

PORTS = 512

FIRST_PORT_SESSION = 1
"""Clone session of port 0; that of port p is p more."""

FIRST_RECIRCULATION_SESSION = 514
"""Clone session of the first recirculation port."""

BIFT_GROUPS = range(1024, 0x3000)
"""Multicast groups and clone sessions of BIFTs' neighbours, one for each ECMP bucket."""

CLUSTER_GROUPS = range(0x3000, 0x4000)
"""Multicast groups and clone sessions of clusters."""

RECEIVER_GROUPS = range(0x4000, 0x10000)
"""Multicast groups and clone sessions of ports that have joined a channel."""

_SELECT = "BierIngress.select_copies"
BIFT_TABLE = f"{_SELECT}.bifts"
BIFT = f"{_SELECT}.bift"
CLUSTER_TABLE = f"{_SELECT}.clusters"
CLUSTER = f"{_SELECT}.cluster"
CLUSTER_MISSES = f"{_SELECT}.cluster_misses"
"""BitStrings that no cluster was for."""
SAMPLE_DIGEST = "bit_string_sample_t"
"""The digest that :func:`holdfast.apps.bier.clusters.sample` reads. One of CLUSTER_SAMPLING (64) BitStrings is sent."""
_ONE = f"{_SELECT}.one_next_hop"
NEXT_HOP_TABLE = f"{_ONE}.next_hops"
NEXT_HOP = f"{_ONE}.next_hop"
BACKUP_TABLE = f"{_ONE}.backups"
LFA = f"{_ONE}.lfa"
TUNNEL = f"{_ONE}.tunnel"

COPY_TABLE = "BierEgress.copies"
COPY = "BierEgress.copy"
PORT_MAC_TABLE = "BierEgress.port_macs"
SET_MAC = "BierEgress.set_mac"

LOOPBACK_TABLES = {
    "BierIngress.end_tunnels.loopbacks": "hdr.repair.dst_addr",
    "BierIngress.end_tunnels.carrier_loopbacks": "hdr.carrier.dst_addr",
}
"""The key field of each table of the switch's own addresses, by the table's name."""

_IMPOSE = "BierIngress.impose"
IMPOSE = f"{_IMPOSE}.impose"
IMPOSE_FURTHER = f"{_IMPOSE}.impose_further"
FURTHER_SET_TABLE = f"{_IMPOSE}.further_sets"
DISCARD_CHANNEL = f"{_IMPOSE}.discard"
_RECEIVERS = f"{_SELECT}.receivers"
DELIVER = f"{_RECEIVERS}.deliver"
DISCARD_PAYLOAD = f"{_RECEIVERS}.discard"


def channel_table(version: int, *, any_source: bool) -> str:
    """Return the name of a BFIR's table of channels for IP ``version``: of (S,G), or with ``any_source`` of (*,G)."""
    return f"{_IMPOSE}.channels{'_any_source' * any_source}{'_v6' * (version == 6)}"


def receiver_table(version: int, *, any_source: bool) -> str:
    """Return the name of a BFER's table of channels for IP ``version``: of (S,G), or with ``any_source`` of (*,G)."""
    return f"{_RECEIVERS}.receivers{'_any_source' * any_source}{'_v6' * (version == 6)}"


STREAMS = 1024
"""Protected channels that a switch can number as their BFIR, and as many that it can eliminate as a BFER."""

_NUMBER = "BierIngress.number_stream"
NUMBER = f"{_NUMBER}.number"
_ELIMINATE = "BierIngress.eliminate_copies"
SELECT_VECTOR = f"{_ELIMINATE}.select_vector"
HISTORY_REGISTER = f"{_ELIMINATE}.acceptance.history"


def numbered_table(version: int) -> str:
    """Return the name of the table of channels whose packets a BFIR numbers, for IP ``version`` 4 or 6."""
    return f"{_NUMBER}.numbered_channels{'_v6' * (version == 6)}"


def eliminated_table(version: int) -> str:
    """Return the name of the table of channels whose duplicates a BFER eliminates, for IP ``version`` 4 or 6."""
    return f"{_ELIMINATE}.eliminated_channels{'_v6' * (version == 6)}"


STREAM_TABLES = tuple(table(version) for table in (numbered_table, eliminated_table) for version in (4, 6))

_ROUTING = "BierIngress.routing"
FORWARD = f"{_ROUTING}.forward"
FORWARD_OR_LFA = f"{_ROUTING}.forward_or_lfa"
FORWARD_OR_REMOTE_LFA = f"{_ROUTING}.forward_or_remote_lfa"
ROUTES = RouteTables(
    ipv4=f"{_ROUTING}.ipv4_lpm",
    key="dst_addr",
    ipv6="BierIngress.ipv6_lpm",
    key_v6="hdr.ipv6.dst_addr",
    actions_v6={FORWARD: "BierIngress.forward_v6"},
)
"""Of the program's IPv6 routes none has an alternate."""

COUNTERS = {
    "malformed": "BierIngress.malformed",
    "wrong_version": "BierIngress.wrong_version",
    "wrong_bsl": "BierIngress.wrong_bsl",
    "unknown_bift": f"{_SELECT}.unknown_bift",
    "unowned_bits": f"{_SELECT}.unowned_bits",
    "ttl_expired": f"{_SELECT}.ttl_expired",
    "unknown_group": f"{_SELECT}.unknown_group",
    "malformed_payload": f"{_SELECT}.malformed_payload",
    "payload_ttl_expired": f"{_SELECT}.payload_ttl_expired",
    "lfa_repairs": f"{_ONE}.lfa_repairs",
    "tunnel_repairs": f"{_ONE}.tunnel_repairs",
    "no_backup": f"{_ONE}.no_backup",
    "tunnel_mtu_exceeded": f"{_ONE}.tunnel_mtu_exceeded",
    "mtu_exceeded": "BierIngress.mtu_exceeded",
    "unknown_channel": "BierIngress.unknown_channel",
    "foreign_multicast": "BierIngress.foreign_multicast",
    "ip_ttl_expired": "BierIngress.ttl_expired",
    "decapsulated": "BierIngress.end_tunnels.decapsulated",
    "congestion_unmarkable": "BierIngress.end_tunnels.congestion_unmarkable",
    "ip_lfa_repairs": f"{_ROUTING}.lfa_repairs",
    "ip_remote_lfa_repairs": f"{_ROUTING}.remote_lfa_repairs",
    "ip_no_alternate": f"{_ROUTING}.no_alternate",
    "ip_mtu_exceeded": f"{_ROUTING}.mtu_exceeded",
}
"""Full names of the counters, which have one cell each, by short name."""


REPORT_RATE = "BierIngress.report_rate"
"""The meter of IGMP and MLD for the controller, by ingress port."""
REPORT_RATE_EXCEEDED = "BierIngress.report_rate_exceeded"
"""The counter of IGMP and MLD messages that the meter has dropped, by ingress port."""


def checked_program_bsl(bsl: int) -> int:
    """Return ``bsl``, a length of BitStrings in bits. Raise :class:`NetworkError` if the program does not support it."""
    if bsl not in PROGRAM_BSLS:
        raise NetworkError(f"the program's BitStrings have {', '.join(map(str, PROGRAM_BSLS))} bits, not {bsl}")
    return bsl


def header_bytes(bsl: int = DEFAULT_BSL) -> int:
    """Return the length in bytes of a BIER header with a BitString of ``bsl`` bits.

    Raise :class:`NetworkError` for a length that the program does not support.
    """
    return 12 + checked_program_bsl(bsl) // 8


def compile_bier(
    replication: Replication = "one-pass",
    *,
    bsl: int = DEFAULT_BSL,
    encapsulation: Encapsulation = "ethernet",
    cluster_misses: Literal["recirculate", "one-pass"] = "one-pass",
    recirculation_ports: int = 1,
    looped_recirculation: bool = False,
    one_plus_one: bool = False,
    defines: dict[str, str] | None = None,
) -> Program:
    """Compile ``bier.p4``.

    ``cluster_misses``: how BitStrings without a cluster are replicated if ``replication`` is ``clusters``. ``recirculation_ports``:
    the number of clone sessions from :data:`FIRST_RECIRCULATION_SESSION` on that packets use in turn to recirculate; with
    ``looped_recirculation`` their ports are looped outside the switch. ``one_plus_one``: number protected channels and eliminate
    their copies. ``defines`` may set LOOPBACKS, CLUSTER_SAMPLING and CPU_PORT. Raise :class:`NetworkError` for a value that the
    program does not support.
    """
    for what, value, kinds in (
        ("a way to replicate", replication, Replication),
        ("an encapsulation", encapsulation, Encapsulation),
    ):
        if value not in get_args(kinds):
            raise NetworkError(f"{value!r} is not {what}: {', '.join(get_args(kinds))}")
    if cluster_misses not in ("recirculate", "one-pass"):
        raise NetworkError(f"{cluster_misses!r} is no way to replicate what no cluster is for: recirculate, one-pass")
    if not 1 <= recirculation_ports <= BIFT_GROUPS.start - FIRST_RECIRCULATION_SESSION:
        raise NetworkError(f"there are 1 to 510 recirculation ports, not {recirculation_ports}")
    given = {
        "BSL": str(checked_program_bsl(bsl)),
        "REPLICATION": _define(replication),
        "CLUSTER_MISSES": _define(cluster_misses),
        "RECIRCULATION_PORTS": str(recirculation_ports),
    }
    if encapsulation == "mpls":
        given["MPLS"] = "1"
    if one_plus_one:
        given |= {"ONE_PLUS_ONE": "1", "CONNECTIONS": str(STREAMS)}
    if looped_recirculation:
        given["LOOPED_RECIRCULATION"] = "1"
    return Program.compile(str(HERE / "bier.p4"), defines=given | (defines or {}))


def _define(replication: str) -> str:
    return replication.upper().replace("-", "_")
