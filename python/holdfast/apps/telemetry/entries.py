"""What a switch in a telemetry domain is to hold: entries, default actions, domain ports, clone session; all but its routes.

Pure functions of the roles and the watchlist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from holdfast.apps.telemetry import program
from holdfast.apps.telemetry.instructions import Instructions
from holdfast.apps.telemetry.watchlist import Watch
from holdfast.control.desired import Desired
from holdfast.control.domain import domain_registers
from holdfast.control.entities import CloneSession, DefaultAction, ValueSet
from holdfast.control.next_hop import NextHop
from holdfast.control.tables import TableEntry
from holdfast.control.ternary import ternary_key

PROTOCOL_TCP, PROTOCOL_UDP = 6, 17

MODES = {"md": 1, "mx": 3, "xd": 15}
NPT_NONE, NPT_UDP, NPT_PROTOCOL = 0, 1, 2

QUEUE_INSTRUCTIONS = int(
    Instructions.PORTS
    | Instructions.LATENCY
    | Instructions.QUEUE
    | Instructions.INGRESS_TIME
    | Instructions.EGRESS_TIME
    | Instructions.TX_UTILISATION
)
"""The instructions of reports that are about congested queues only."""


@dataclass(frozen=True)
class PortRole:
    """A port of a switch. ``edge``: no INT node is behind it. ``interface``: the number of its logical interface."""

    mtu: int
    edge: bool
    interface: int
    queue_threshold: int = 0
    queue_quota: int = 0
    rate_bps: int | None = None


@dataclass(frozen=True)
class Reporter:
    """The destination of a switch's reports, and the conditions for sending them."""

    hop: NextHop
    source: IPv4Address
    collector: IPv4Address
    source_port: int
    collector_port: int
    hw_id: int = 0
    changes_only: bool = False
    latency_shift: int = 0


def switch_configuration(
    node_id: int, ports: Mapping[int, PortRole], watches: Sequence[TableEntry], reporter: Reporter | None
) -> Desired:
    """Return the entries that configure one switch: its node id, ports, watchlist, and where it sends reports.

    ``reporter``: None if the switch sends no reports.
    """
    reports: Desired = ()
    if reporter is not None:
        to = DefaultAction(program.REPORT_SETTINGS, program.REPORT_TO, _report_params(reporter))
        reports = CloneSession(program.REPORT_SESSION, ((reporter.hop.port, 0),)), to
    entries = [entry for number, port in sorted(ports.items()) for entry in _port_entries(number, port)]
    return (_node(node_id), ValueSet(program.DOMAIN_PORTS, frozenset(_domain(ports))), *reports, *entries, *watches)


def transit_configuration(node_id: int, ports: Mapping[int, PortRole], *, load: bool = False) -> Desired:
    """Return a switch's configuration for the program for transit only: the node id, and each port's MTU.

    With ``load``, a port also has the code of its rate.
    """
    entries = []
    for number, port in sorted(ports.items()):
        match = {"standard_metadata.egress_port": number}
        params = {"link_mtu": port.mtu}
        if load:
            params["rate_code"] = program.rate_code(port.rate_bps)
        entries.append(TableEntry(program.PORT_SETTINGS, match, program.CONFIGURE, params))
        entries += _interface_entries(number, port)
    return (_node(node_id), *domain_registers(_domain(ports)), *entries)


def _node(node_id: int) -> DefaultAction:
    return DefaultAction(program.NODE, program.IDENTIFY, {"node_id": node_id})


def _domain(ports: Mapping[int, PortRole]) -> list[int]:
    return [number for number, port in ports.items() if not port.edge]


def _port_entries(number: int, port: PortRole) -> Iterable[TableEntry]:
    params = {
        "link_mtu": port.mtu,
        "is_edge": int(port.edge),
        "threshold": port.queue_threshold,
        "quota": port.queue_quota,
    }
    yield TableEntry(program.PORT_SETTINGS, {"standard_metadata.egress_port": number}, program.CONFIGURE, params)
    yield from _interface_entries(number, port)


def _interface_entries(number: int, port: PortRole) -> Iterable[TableEntry]:
    for way, table, action in (
        ("ingress", program.INGRESS_INTERFACES, program.INGRESS_INTERFACE),
        ("egress", program.EGRESS_INTERFACES, program.EGRESS_INTERFACE),
    ):
        yield TableEntry(table, {f"standard_metadata.{way}_port": number}, action, {"id": port.interface})


def _report_params(reporter: Reporter) -> dict[str, int]:
    return {
        "hw_id": reporter.hw_id,
        "queue_instructions": QUEUE_INSTRUCTIONS,
        "changes_only": int(reporter.changes_only),
        "latency_shift": reporter.latency_shift,
        "src_mac": reporter.hop.src_mac,
        "dst_mac": reporter.hop.dst_mac,
        "src_addr": int(reporter.source),
        "dst_addr": int(reporter.collector),
        "src_port": reporter.source_port,
        "dst_port": reporter.collector_port,
    }


def unwatched(collector: IPv4Address, port: int, watchlist: Sequence[Watch]) -> TableEntry:
    """Return the watchlist entry of highest priority, which matches reports themselves and does not watch them.

    Otherwise each report would cause further reports.
    """
    match = ternary_key({"dst_addr": str(collector)}, {"protocol": (PROTOCOL_UDP, 0xFF), "dst_port": (port, 0xFFFF)})
    return TableEntry(program.WATCHLISTS[4], match, "NoAction", {}, 2 * len(watchlist) + 1)


def watch_entries(watchlist: Sequence[Watch], *, domain_id: int, by_port: bool) -> list[TableEntry]:
    """Return the table entries of a watchlist. ``by_port``: INT is indicated by a UDP port, else by the DSCP.

    Modes that embed INT headers are for packets that enter the domain. If the DSCP indicates INT, headers are inserted only behind
    TCP and UDP; then an entry for all protocols becomes one for each of the two.
    """
    found = []
    for number, watch in enumerate(watchlist):
        for version in watch.versions:
            for protocol in _protocols(watch, by_port):
                found.append(_watch_entry(watch, version, protocol, 2 * (len(watchlist) - number), domain_id, by_port))
                if protocol == PROTOCOL_UDP and watch.protocol is None:
                    # All the others, of which UDP has been told apart.
                    found.append(
                        _watch_entry(watch, version, None, 2 * (len(watchlist) - number) - 1, domain_id, by_port)
                    )
    return found


def _protocols(watch: Watch, by_port: bool) -> tuple[int | None, ...]:
    if watch.protocol is not None:
        return (watch.protocol,)
    if watch.mode == "xd":
        return (None,)
    return (PROTOCOL_UDP,) if by_port else (PROTOCOL_TCP, PROTOCOL_UDP)


def _watch_entry(
    watch: Watch, version: int, protocol: int | None, priority: int, domain_id: int, by_port: bool
) -> TableEntry:
    embeds = watch.mode != "xd"
    if not embeds or not by_port:
        npt = NPT_NONE
    elif protocol == PROTOCOL_UDP and not watch.new_udp_header:
        npt = NPT_UDP
    else:
        npt = NPT_PROTOCOL
    match = ternary_key(
        {"src_addr": watch.source, "dst_addr": watch.destination},
        {
            "from_domain": (0 if embeds else None, 1),
            "protocol": (protocol, 0xFF),
            "src_port": (watch.source_port, watch.source_port_mask),
            "dst_port": (watch.destination_port, watch.destination_port_mask),
        },
    )
    params = {
        "mode": MODES[watch.mode],
        "npt": npt,
        "instructions": watch.instructions,
        # Reserved in the header of INT-MX.
        "hop_ml": watch.hop_words if watch.mode == "md" else 0,
        "hops": watch.hops if watch.mode == "md" else 0,
        "domain_id": domain_id,
        "discard": int(watch.discard),
        "sampling": watch.sampling_threshold,
        "report_drops": int(watch.drops),
    }
    return TableEntry(program.WATCHLISTS[version], match, program.WATCH, params, priority)
