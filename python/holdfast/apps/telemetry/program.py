"""``telemetry.p4``: its compilation, its constants, and the full names of its tables, actions and counters."""

from __future__ import annotations

from pathlib import Path

from holdfast._core import Program
from holdfast.control.routes import RouteTables
from holdfast.errors import NetworkError

HERE = Path(__file__).parent

INT_DSCP = 0x17
"""The DSCP of packets with INT; the program's default, and the specification's example."""

INT_UDP_PORT = 54321
"""The UDP port of packets with INT where a port indicates it. The specification leaves the number to IANA, which has none yet."""

COLLECTOR_PORT = 32766
"""The collectors' UDP port, unless told otherwise."""

LOAD_DOMAIN = 0x4850
"""The domain whose first domain-specific instruction asks for the load of the output port."""

LOAD_RATES_BPS = tuple(
    round(gigabits * 1e9) for gigabits in (0.01, 0.1, 1, 2.5, 4, 5, 10, 25, 40, 50, 100, 200, 400, 800)
)
"""Rates of links in the order of their codes, from 1 on."""

FORWARD = "TelemetryIngress.routing.forward"
ROUTES = RouteTables(
    ipv4="TelemetryIngress.routing.ipv4_lpm",
    key="hdr.ipv4.dst_addr",
    ipv6="TelemetryIngress.routing.ipv6_lpm",
    key_v6="hdr.ipv6.dst_addr",
    actions_v6={FORWARD: "TelemetryIngress.routing.forward_v6"},
)

WATCHLISTS = {4: "TelemetryIngress.watchlist", 6: "TelemetryIngress.watchlist_v6"}
"""By version of IP."""
WATCH = "TelemetryIngress.watch"
DOMAIN_PORTS = "TelemetryParser.domain_ports"
"""The value set of programs with edges. One for transit alone has the register of :mod:`holdfast.control.domain`."""
NODE = "TelemetryEgress.node"
IDENTIFY = "TelemetryEgress.identify"
PORT_SETTINGS = "TelemetryEgress.port_settings"
CONFIGURE = "TelemetryEgress.configure"
INGRESS_INTERFACES = "TelemetryEgress.ingress_interfaces"
INGRESS_INTERFACE = "TelemetryEgress.ingress_interface"
EGRESS_INTERFACES = "TelemetryEgress.egress_interfaces"
EGRESS_INTERFACE = "TelemetryEgress.egress_interface"
REPORT_SETTINGS = "TelemetryEgress.report_settings"
REPORT_TO = "TelemetryEgress.report_to"
REPORT_SESSION = 1
"""The clone session of reports."""

SENT_BYTES = "TelemetryEgress.sent_bytes"
"""The register of programs that know the load."""

COUNTERS = {
    "malformed": "TelemetryIngress.malformed",
    "ttl_expired": "TelemetryIngress.routing.ttl_expired",
    "sourced": "TelemetryEgress.source.sourced",
    "not_sourced": "TelemetryEgress.source.not_sourced",
    "hops_exceeded": "TelemetryEgress.push_hop.hops_exceeded",
    "mtu_exceeded": "TelemetryEgress.push_hop.mtu_exceeded",
    "not_pushed": "TelemetryEgress.push_hop.not_pushed",
    "sunk": "TelemetryEgress.sink.sunk",
    "discarded": "TelemetryEgress.discarded",
    "reports": "TelemetryEgress.make_report.reports",
}
"""The full names of the program's counters, by short name."""


def rate_code(rate_bps: int | None) -> int:
    """Return the code by which the load instruction gives a port's rate; 0 if ``rate_bps`` is None, that is unlimited.

    Raise :class:`NetworkError` for a rate that has no code.
    """
    if rate_bps is None:
        return 0
    if rate_bps not in LOAD_RATES_BPS:
        rates = ", ".join(f"{rate:,}" for rate in LOAD_RATES_BPS)
        raise NetworkError(f"a link's rate is {rate_bps:,} b/s; the load has codes for {rates} b/s")
    return LOAD_RATES_BPS.index(rate_bps) + 1


def compile_telemetry(
    *,
    udp_port: int | None = None,
    transit_only: bool = False,
    load: bool = False,
    defines: dict[str, str] | None = None,
) -> Program:
    """Compile ``telemetry.p4``.

    ``udp_port``: the indicator of INT is this destination port of UDP (:data:`INT_UDP_PORT`, say) and not the DSCP.
    ``transit_only``: a transit node of INT-MD, which neither watches nor reports, and handles packets faster. ``load``: a
    transit-only node that also knows the instruction of domain :data:`LOAD_DOMAIN` for the load of its output port (rate, time,
    bytes sent, queue length), as HPCC needs it. ``defines``: further preprocessor names with their values. Raises
    :class:`NetworkError` for a port that does not exist, and for ``load`` without ``transit_only``.
    """
    values = dict(defines or {})
    if udp_port is not None:
        if not 0 < udp_port < 1 << 16:
            raise NetworkError(f"udp_port is {udp_port}; it must be from 1 to 65535")
        values["INT_UDP_PORT"] = str(udp_port)
    if load:
        if not transit_only:
            raise NetworkError("load is of nodes for transit alone; give transit_only")
        values["INT_LOAD"] = "1"
    if transit_only:
        values["INT_TRANSIT_ONLY"] = "1"
    return Program.compile(str(HERE / "telemetry.p4"), defines=values)
