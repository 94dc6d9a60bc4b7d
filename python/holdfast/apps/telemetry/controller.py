"""The controller of ``telemetry.p4``: routes, and each switch's part in a telemetry domain.

With ``reroute`` it plans routes and the ways of reports again when a link goes down or comes back. The watchlist can change
while the network runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.apps.telemetry import program
from holdfast.apps.telemetry.entries import (
    PROTOCOL_TCP,
    PROTOCOL_UDP,
    Reporter,
    switch_configuration,
    transit_configuration,
    unwatched,
    watch_entries,
)
from holdfast.apps.telemetry.planning import ReportPlan, node_ids, port_roles, reporters
from holdfast.apps.telemetry.watchlist import Watch
from holdfast.control.desired import Desired, Writer
from holdfast.control.link_state import LinkState
from holdfast.control.routes import Routing
from holdfast.control.subnets import check_routed
from holdfast.control.tables import has_register, has_table
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import NetworkError
from holdfast.paths import ShortestPaths

if TYPE_CHECKING:
    from holdfast.p4runtime.client import Client


def _indicator_port(client: Client) -> int | None:
    """Return the UDP port that indicates INT to a switch's program, as its P4Info says; None if the DSCP does."""
    nodes = [table.preamble for table in client.p4info.message.tables if table.preamble.name == program.NODE]
    annotations = [annotation for node in nodes for annotation in node.annotations]
    found = re.search(r"@int_udp_port\((\w+)\)", " ".join(annotations))
    return None if found is None else int(found[1], 0)


class TelemetryController(Controller):
    """Keeps a telemetry domain of all switches, one P4Runtime batch for each switch that something changes at.

    ``collector``: the host that gets the reports, at UDP port ``collector_port`` (None: no switch reports). ``udp_port``: as given
    to :func:`compile_telemetry`. ``domain_id``: of INT headers. ``mtu``: of links without ``mtu_bytes``. ``queue_threshold``: a
    queue of so many packets is congested (0: none is), and causes up to ``queue_quota`` reports until it is shorter again.
    ``changes_only``: tracked flows are reported when their way or their latency changes, the latter in steps of
    2^``latency_shift`` microseconds.

    ``hosts_in_domain``: hosts are source and sink of INT headers themselves, as HPCC's are; no port is at the domain's edge.

    Switches whose program is for transit alone have neither watchlist nor reports, so they must not have hosts that are outside.
    """

    def __init__(
        self,
        watchlist: Sequence[Watch] = (),
        *,
        collector: str | None,
        collector_port: int = program.COLLECTOR_PORT,
        domain_id: int = 0,
        udp_port: int | None = None,
        mtu: int = 1500,
        queue_threshold: int = 0,
        queue_quota: int = 100,
        changes_only: bool = False,
        latency_shift: int = 10,
        reroute: bool = False,
        hosts_in_domain: bool = False,
        reaction_delay_ms: float,
    ) -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        for name, value, bits in (
            ("collector_port", collector_port, 16),
            ("domain_id", domain_id, 16),
            ("mtu", mtu, 16),
            ("queue_threshold", queue_threshold, 19),
            ("queue_quota", queue_quota, 16),
            ("latency_shift", latency_shift, 5),
        ):
            if not 0 <= value < 1 << bits:
                raise NetworkError(f"{name} is {value}; it must be from 0 to {(1 << bits) - 1}")
        self.reroute = reroute
        self._hosts_in_domain = hosts_in_domain
        self._udp_port, self._by_port = udp_port, udp_port is not None
        self._domain_id = domain_id
        self._mtu, self._queue = mtu, (queue_threshold, queue_quota)
        self._reports = (
            None if collector is None else ReportPlan(collector, collector_port, changes_only, latency_shift)
        )
        self._watchlist = self._checked(watchlist)
        self._links = LinkState()

    def attach(self, plane: ControlPlane) -> None:
        """Create the routing and a configuration writer for each switch.

        Raise :class:`NetworkError` if a host is at a switch whose program is for transit only, or if a program recognizes INT by
        another indicator (DSCP or UDP port) than this controller's.
        """
        super().attach(plane)
        check_routed(plane.topology, "the telemetry domain")
        for name, client in plane.clients.items():
            if (port := _indicator_port(client)) != self._udp_port:
                indicator = "the DSCP" if port is None else f"UDP port {port}"
                raise NetworkError(f"the program of {name!r} has INT indicated by {indicator}; give udp_port={port}")
        self._links.attach(plane, self._install, self.reaction_delay_ps)
        self._routing = Routing(program.ROUTES, plane.clients, lambda topology, route: program.FORWARD)
        self._writers = {name: Writer(client) for name, client in plane.clients.items()}
        self._full = {name: has_table(client, program.REPORT_SETTINGS) for name, client in plane.clients.items()}
        for host in self.topology.hosts:
            switch = self.topology.attachment(host).switch
            if not self._hosts_in_domain and not self._full.get(switch, True):
                raise NetworkError(f"host {host!r} is at switch {switch!r}, whose program is for transit alone")
        self._load = {name: has_register(client, program.SENT_BYTES) for name, client in plane.clients.items()}

    def on_start(self) -> None:
        """Write routes and telemetry configuration to all switches."""
        self._install()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Plan routes, also those of reports, again without links of which a port is down, if ``reroute`` is set."""
        if self._links.port_changed(switch, port, up) and self.reroute:
            self._install()

    @property
    def watchlist(self) -> tuple[Watch, ...]:
        """The watched flows, the first match first."""
        return self._watchlist

    def watch(self, watchlist: Sequence[Watch]) -> None:
        """Replace the watchlist in all switches; each switch changes in one step.

        Raise :class:`NetworkError` for an entry that the domain cannot have.
        """
        self._watchlist = self._checked(watchlist)
        self._install()

    def counters(self, switch: str) -> dict[str, int]:
        """Return the packets that each counter of a switch's program has counted, by its short name."""
        client = self.clients[switch]
        known = {counter.preamble.name for counter in client.p4info.message.counters}
        return {name: client.counter(full, 0)[0] for name, full in program.COUNTERS.items() if full in known}

    def _checked(self, watchlist: Sequence[Watch]) -> tuple[Watch, ...]:
        for watch in watchlist:
            if watch.mode != "xd" and not self._by_port and watch.protocol not in (None, PROTOCOL_TCP, PROTOCOL_UDP):
                raise NetworkError(
                    f"protocol {watch.protocol}: where the DSCP indicates INT, it is behind TCP and UDP alone; "
                    "give udp_port, or mode xd"
                )
            if watch.new_udp_header and not self._by_port:
                raise NetworkError("new_udp_header needs a domain whose indicator is the UDP port; give udp_port")
            if watch.mode != "md" and self._reports is None:
                raise NetworkError(f"mode {watch.mode} is reports alone; give a collector")
        return tuple(watchlist)

    def _install(self) -> None:
        topology = self.topology
        paths = ShortestPaths.of(topology, self._links.down if self.reroute else ())
        routes = self._routing.plan(topology, paths)
        threshold, quota = self._queue
        roles = port_roles(
            topology,
            mtu=self._mtu,
            queue_threshold=threshold,
            queue_quota=quota,
            hosts_in_domain=self._hosts_in_domain,
        )
        watches = watch_entries(self._watchlist, domain_id=self._domain_id, by_port=self._by_port)
        reporting: Mapping[str, Reporter | None] = {}
        if self._reports is not None:
            reporting = reporters(topology, paths, self._reports)
            collector = topology.attachment(self._reports.collector).host.address.ip
            watches.append(unwatched(collector, self._reports.port, self._watchlist))
        for name, number in node_ids(topology).items():
            wanted: Desired
            if self._full[name]:
                wanted = switch_configuration(number, roles[name], watches, reporting.get(name))
            else:
                wanted = transit_configuration(number, roles[name], load=self._load[name])
            self._writers[name].write((*wanted, *routes[name]))
