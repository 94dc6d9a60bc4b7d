"""The controller of ``bier.p4``: unicast routes, BIFTs with their backups, channels; and what changes when a port does.

After a change of ports IP converges first, ``ip_delay_ms`` after a switch notices it, and BIER later, ``bier_delay_ms`` after that
moment. These delays stand for signalling and computation, as in the paper of 2021. It composes planning (``planning``), memberships
(``members``, or an overlay) and entries (``entries``), and forwards no packet.

**Order of writes.** A switch gets one batch, which is atomic: no packet sees half of it. Switches get theirs one after another,
those farthest from the failure first (RFC 6976), so that no packet is sent back by a switch that knows more than its sender. The
routes of tunnels are there before the backups that use them, and stay until no packet is in them. Several changes at once, or links
that come back, may still make transient loops, which TTLs end (RFC 8279, section 6.8: as transient as those of the underlay).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Address
from typing import TypeAlias

from holdfast.apps.bier.channels import ChannelWriter, delivered_channels
from holdfast.apps.bier.clusters import learn
from holdfast.apps.bier.entries import (
    DEFAULT_MTU,
    Configuration,
    cluster_configuration,
    port_configuration,
    switch_changes,
    switch_configuration,
)
from holdfast.apps.bier.one_plus_one import SUB_DOMAINS, Streams
from holdfast.apps.bier.pending import PendingChannels
from holdfast.apps.bier.planning import (
    LOOPBACKS,
    NOT_VIA,
    Bift,
    Plan,
    Scheme,
    SwitchPlan,
    TreesOf,
    Tunnel,
    TunnelRoutes,
    number_switches,
    shortest,
)
from holdfast.apps.bier.program import (
    CLUSTER_GROUPS,
    DEFAULT_BSL,
    FORWARD,
    LOOPBACK_TABLES,
    REPORT_RATE,
    REPORT_RATE_EXCEEDED,
    ROUTES,
    checked_program_bsl,
)
from holdfast.apps.bier.protection import FastReroute, Loss, Protect, Underlay
from holdfast.apps.bier.takeover import Found, find
from holdfast.control.desired import Desired, Writer, read_state
from holdfast.control.domain import DomainPorts
from holdfast.control.entities import Digest, Meter
from holdfast.control.link_state import LinkState
from holdfast.control.membership.channels import Channel, ChannelChange, Channels
from holdfast.control.membership.members import SourcePlaces, StaticMembers
from holdfast.control.membership.overlay import Overlay, OverlayParameters, edge_ports
from holdfast.control.next_hop import NextHop
from holdfast.control.routes import Routing
from holdfast.control.subnets import check_routed
from holdfast.control.tables import EntryKey, TableEntry, entry_key
from holdfast.controller import Controller, ControlPlane
from holdfast.errors import HoldfastError, NetworkError
from holdfast.p4runtime.received import DigestList
from holdfast.paths import ShortestPaths

CARRIERS = "BierIngress.end_tunnels.carrier_loopbacks"
CARRIERS_KEY = LOOPBACK_TABLES[CARRIERS]

SAMPLE_DIGEST = "bit_string_sample_t"
SAMPLES = 1024
"""The number of samples of a switch from which clusters are learnt: the latest ones."""

Clusters: TypeAlias = dict[tuple[Bift, int], list[frozenset[int]]]

RETRY_MS = 1000.0
"""After so long, channels that a switch has refused are tried again."""

DRAIN_MS = 1000.0
"""The time that packets may be on their way in a tunnel that is not used any more."""


class BierController(Controller):
    """Keeps a BIER domain in all switches.

    ``members``: the hosts that have joined each channel from the beginning. With ``overlay``, hosts say so by IGMP and MLD instead,
    and it has their timers; ``fast_leave`` names the hosts that are alone on their ports, or says whether all are;
    ``multicast_routers`` those whose queries are heard. Channels that a switch refuses wait (:attr:`refused_channels`). ``frr``,
    ``protect``, ``ip_frr``: the fast reroute of BIER packets without the controller (:mod:`holdfast.apps.bier.protection`).
    ``reroute``: whether routes and BIFTs follow ports. ``sub_domains``: the trees of each; channels are sent in the first.
    ``buckets``: of ECMP. ``bfr_ids``: of switches; others get free numbers. ``mtu``: bytes behind the Ethernet header of links
    between switches. ``one_plus_one``: every (S,G) is sent in all sub-domains, by default two of independent trees, and its BFERs
    pass the first copy; the program has to be compiled for it. ``clusters``: the number that each switch learns from samples of
    BitStrings, if its program has them.
    """

    def __init__(
        self,
        members: Mapping[Channel, Iterable[str]] | None = None,
        *,
        ip_delay_ms: float,
        bier_delay_ms: float,
        frr: FastReroute = "tunnel",
        protect: Protect = "link",
        ip_frr: bool = True,
        reroute: bool = True,
        bsl: int = DEFAULT_BSL,
        bfr_ids: Mapping[str, int] | None = None,
        sub_domains: Mapping[int, TreesOf] | None = None,
        buckets: int = 1,
        mtu: int = DEFAULT_MTU,
        one_plus_one: bool = False,
        overlay: OverlayParameters | None = None,
        fast_leave: bool | Iterable[str] = False,
        multicast_routers: Iterable[str] = (),
        clusters: int = 0,
    ) -> None:
        super().__init__(reaction_delay_ms=ip_delay_ms)
        if not bier_delay_ms >= ip_delay_ms:
            raise NetworkError(
                f"BIER converges after IP: bier_delay_ms {bier_delay_ms} is less than ip_delay_ms {ip_delay_ms}"
            )
        self.bier_after_ip_ms = bier_delay_ms - ip_delay_ms
        self.reroute = reroute
        self.bsl = checked_program_bsl(bsl)
        self.mtu = mtu
        if members and overlay is not None:
            raise NetworkError("members are given, or heard by an overlay, not both")
        if fast_leave and overlay is None:
            raise NetworkError("fast_leave belongs to an overlay")
        if multicast_routers and overlay is None:
            raise NetworkError("multicast_routers belong to an overlay")
        self._overlay_parameters, self._fast_leave = overlay, fast_leave
        self._multicast_routers = tuple(multicast_routers)
        self.overlay: Overlay | None = None
        if not 0 <= clusters <= len(CLUSTER_GROUPS):
            raise NetworkError(f"a switch learns 0 to {len(CLUSTER_GROUPS)} clusters, not {clusters}")
        self.clusters = clusters
        self._given = dict(bfr_ids or {})
        self._options = partial(
            Scheme,
            sub_domains=dict(sub_domains or (SUB_DOMAINS if one_plus_one else {0: shortest})),
            buckets=buckets,
            frr=frr,
            protect=protect,
            ip_frr=ip_frr,
        )
        self.one_plus_one = one_plus_one
        self._first_members = dict(members or {})
        self._links = LinkState()
        self.taken_over = False

    # ---- The plan ----

    @property
    def plan(self) -> Plan:
        """The plan that the BIFTs follow now. Raises :class:`NetworkError` before the controller has started."""
        if self._plan is None:
            raise NetworkError("the controller has not started; there is no plan yet")
        return self._plan

    @property
    def scheme(self) -> Scheme:
        """The scheme of the plan. Raises :class:`NetworkError` before the controller has started."""
        return self.plan.scheme

    # ---- Events ----

    def attach(self, plane: ControlPlane) -> None:
        """Create the parts that write entries: routes, tunnels, ports, BIFTs and channels of every switch."""
        super().attach(plane)
        check_routed(plane.topology, "the BIER domain")
        self._links.attach(plane, self._links_changed, self.reaction_delay_ps)
        self._domain = DomainPorts(plane.clients, self._links)
        self._routing = Routing(ROUTES, plane.clients, lambda topology, route: FORWARD)
        self._tunnel_writers = {name: Writer(client) for name, client in plane.clients.items()}
        self._writers = {name: Writer(client) for name, client in plane.clients.items()}
        self._port_writers = {name: Writer(client) for name, client in plane.clients.items()}
        self._channel_writers = {
            name: ChannelWriter(client, bsl=self.bsl, mtu=self.mtu) for name, client in plane.clients.items()
        }
        self._streams = {name: Streams(client) for name, client in plane.clients.items()}
        self._pending = {name: PendingChannels(partial(self._write_channels, name)) for name in plane.clients}
        self._retries = False
        self._plan: Plan | None = None
        self._primary: Plan | None = None
        """The plan without backups, if it has been written before the plan with backups; its groups have the same numbers."""
        self._underlay: Underlay | None = None
        self._underlay_without: frozenset[int] = frozenset()
        self._coming_back = False
        self._tunnels: set[Tunnel] = set()
        self._tunnel_routes = TunnelRoutes(self.topology)
        self._lost: set[int] = set()
        self._inherited: dict[str, list[TableEntry]] = {}
        self._generation = 0
        self._samples: dict[str, deque[tuple[int, int]]] = {name: deque(maxlen=SAMPLES) for name in plane.clients}
        self._learnt: dict[str, Clusters] = {}
        self._written: dict[str, SwitchPlan] = {}
        self._static = StaticMembers(self.topology, self._first_members)
        self._sources = SourcePlaces(self.topology)
        self._channels: Channels = self._static.channels
        self._sent: dict[Channel, dict[int, int]] = {}
        self._changes: list[ChannelChange] = []

    def on_start(self) -> None:
        """Take over the entries of an earlier controller, and write what is missing.

        Raise :class:`NetworkError` if a host's network overlaps the switches' addresses.
        """
        topology = self.topology
        for host in topology.hosts.values():
            for ours in (LOOPBACKS, NOT_VIA):
                if host.address.network.overlaps(ours):
                    raise NetworkError(f"host {host.name!r}: {host.address} is in {ours}, which is the switches'")
        found = {name: find(client, self.bsl) for name, client in self.clients.items()}
        self.taken_over = any(each.is_filled for each in found.values())
        if self.taken_over:
            self._links.ask_ports()
            self._adopt(found)
        numbers = {name: each.bfr_id for name, each in found.items() if each.bfr_id} | self._given
        self._scheme = self._options(number_switches(topology, self.bsl, numbers))
        self._domain.start()
        for name, writer in self._port_writers.items():
            writer.write((*self._ports(name), *self._settings()))
        self._converge()
        if self._overlay_parameters is not None:
            channels = delivered_channels({name: each.channels for name, each in found.items()})
            self._listen(self._overlay_parameters, channels)
        self._start_channels()

    def on_packet_in(self, switch: str, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Pass a packet of IGMP or MLD to the overlay; ignore it if there is no overlay."""
        if self.overlay is not None:
            self.overlay.on_packet_in(switch, packet, metadata["ingress_port"])

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        """Record that a port is ``up`` or down; if a link changes by it, plan IP routes at once, and BIER after its delay."""
        if self._links.port_changed(switch, port, up):
            self._links_changed()

    def on_digest(self, switch: str, digest: DigestList) -> None:
        """Learn clusters from the BitStrings that a switch has sampled, and write them if they have changed."""
        samples = self._samples[switch]
        for value in digest.values:
            assert isinstance(value, dict)
            group, bit_string = value["group"], value["bit_string"]
            assert isinstance(group, int) and isinstance(bit_string, int)
            samples.append((group, bit_string))
        learnt = learn(self._written[switch], samples, limit=self.clusters)
        if learnt != self._learnt.get(switch):
            self._write_switch(switch, self._written[switch])

    def _links_changed(self) -> None:
        """Plan again after links have failed or come back, if ``reroute`` is set.

        Failures are handled at once. Links that come back in one moment cause one new plan.
        """
        if not self.reroute:
            return
        if self._unusable() >= self._underlay_without:
            self._converge(self.bier_after_ip_ms)
        elif not self._coming_back:
            self._coming_back = True
            self.plane.call_later(0, self._come_back)

    def _come_back(self) -> None:
        self._coming_back = False
        self._converge(self.bier_after_ip_ms)

    def _converge(self, bier_after_ms: float = 0) -> None:
        unusable = self._unusable()
        loss = self._write_ip(unusable)
        assert self._underlay is not None
        write_bier = partial(self._write_bier, unusable, self._underlay, loss)
        if bier_after_ms:
            self.plane.call_later(bier_after_ms, write_bier)
        else:
            write_bier()

    def _unusable(self) -> frozenset[int]:
        return self._links.down if self.reroute else frozenset()

    # ---- Members ----

    def _listen(self, parameters: OverlayParameters, adopted: Channels) -> None:
        """Start the overlay, which asks hosts for their memberships.

        Channels that are delivered already stay until hosts have had time to answer.
        """
        ports = edge_ports(self.topology, fast_leave=self._fast_leave, routers=self._multicast_routers)
        self.overlay = Overlay(ports, parameters)
        self.overlay.start(self.plane, adopted)
        self.overlay.changed(self._collect)
        self._channels = self.overlay.channels

    def _settings(self) -> Desired:
        """Return the entities that all switches get: the meter of membership reports by port, and the digest of samples.

        The digest is there with clusters only.
        """
        parameters = self._overlay_parameters or OverlayParameters()
        rate = parameters.reports_per_s, parameters.reports_burst
        return (Meter(REPORT_RATE, None, rate + rate), *([Digest(SAMPLE_DIGEST)] if self.clusters else []))

    def report_drops(self, switch: str) -> dict[int, int]:
        """Return by port how many IGMP and MLD messages a switch has dropped because they exceeded the port's rate."""
        cells = self.clients[switch].counters(REPORT_RATE_EXCEEDED)
        return {port: packets for port, (packets, _) in cells.items() if packets}

    def _collect(self, changes: list[ChannelChange]) -> None:
        """Collect changes of channels, so that all changes of one moment become one batch for each switch."""
        if not self._changes:
            self.plane.call_later(0, self._write_changes)
        self._changes += changes

    def _write_changes(self) -> None:
        changes, self._changes = self._changes, []
        self.members_changed(changes)

    def join(self, channel: Channel, host: str) -> None:
        """Add ``host`` as a static member of ``channel``.

        Raise :class:`NetworkError` if there is no such host, if an overlay manages the memberships, or if a switch refuses the
        channel.
        """
        self._check_static()
        changes = self._static.join(channel, host)
        self.members_changed(changes)
        if changes and (why := next((it[channel] for it in self.refused_channels.values() if channel in it), None)):
            self.members_changed(self._static.leave(channel, host))
            raise NetworkError(f"{host!r} cannot join {channel[1]} from {channel[0] or 'any source'}: {why}")

    def leave(self, channel: Channel, host: str) -> None:
        """Remove ``host`` from the static members of ``channel``.

        Raise :class:`NetworkError` if it is not one, or if an overlay manages the memberships.
        """
        self._check_static()
        self.members_changed(self._static.leave(channel, host))

    def _check_static(self) -> None:
        if self.overlay is not None:
            raise NetworkError("memberships are the overlay's")

    # ---- Channels ----

    def members_changed(self, changes: Iterable[ChannelChange]) -> None:
        """Write only the entries that changes of channels affect: one batch for each switch, BFERs before BFIRs."""
        delivered: dict[str, dict[Channel, frozenset[int] | None]] = {}
        for change in changes:
            delivered.setdefault(change.switch, {})[change.channel] = change.ports
        sent: dict[str, dict[Channel, dict[Bift, int] | None]] = {}
        for channel in dict.fromkeys(channel for channels in delivered.values() for channel in channels):
            bit_strings = self._bit_strings(channel)
            if bit_strings == self._sent.get(channel):
                continue
            for bfir in self._bfirs(channel):
                sent.setdefault(bfir, {})[channel] = self._sent_by(bfir, channel, bit_strings)
            if bit_strings is None:
                del self._sent[channel]
            else:
                self._sent[channel] = bit_strings
        for name in dict.fromkeys((*delivered, *sent)):
            self._pending[name].change(sent.get(name, {}), delivered.get(name, {}))
        self._retry_later()

    @property
    def refused_channels(self) -> dict[str, dict[Channel, str]]:
        """The channels that wait for room in a switch, by switch, and why each was refused when it was last tried."""
        return {
            name: {
                channel: it.why.get(channel, "it was not tried since others were refused") for channel in it.channels
            }
            for name, it in self._pending.items()
            if len(it)
        }

    def _retry_later(self) -> None:
        if not self._retries and any(map(len, self._pending.values())):
            self._retries = True
            self.plane.call_later(RETRY_MS, self._retry)

    def _retry(self) -> None:
        self._retries = False
        for pending in self._pending.values():
            pending.retry()
        self._retry_later()

    def _start_channels(self) -> None:
        """Write all channels to the BFIRs and BFERs when the controller starts."""
        delivered: dict[str, dict[Channel, frozenset[int] | None]] = {name: {} for name in self.clients}
        sent: dict[str, dict[Channel, dict[Bift, int] | None]] = {name: {} for name in self.clients}
        for channel, switches in self._channels.items():
            bit_strings = self._bit_strings(channel)
            assert bit_strings is not None
            self._sent[channel] = bit_strings
            for name, ports in switches.items():
                delivered[name][channel] = ports
            for bfir in self._bfirs(channel):
                sent[bfir][channel] = self._sent_by(bfir, channel, bit_strings)
        for name, writer in self._channel_writers.items():
            streams = self._streams_of(sent[name], delivered[name])
            self._streams[name].add(*streams)
            writer.start(self._written[name], sent[name], delivered[name])
            self._streams[name].keep(*streams)

    def _write_channels(
        self,
        name: str,
        sent: Mapping[Channel, dict[Bift, int] | None],
        delivered: Mapping[Channel, frozenset[int] | None],
    ) -> None:
        """Write the channels that the switch ``name`` sends and delivers.

        ``sent``: by channel, its BitStrings as ingress; ``delivered``: by channel, its ports as egress; None for a channel that
        ends. With 1+1, numbering and elimination of copies are installed before a channel's packets come, and removed after they
        have stopped.
        """
        if not self.one_plus_one:
            self._channel_writers[name].change(sent, delivered)
            return
        there = {channel: sets for channel, sets in sent.items() if sets is not None}
        here = {channel: ports for channel, ports in delivered.items() if ports is not None}
        new = self._streams[name].add(*self._streams_of(there, here))
        try:
            self._channel_writers[name].change(sent, delivered)
        except HoldfastError:
            self._streams[name].forget(new)
            raise
        self._streams[name].remove(*self._streams_of(sent.keys() - there.keys(), delivered.keys() - here.keys()))

    def _streams_of(
        self, sent: Iterable[Channel], delivered: Iterable[Channel]
    ) -> tuple[list[Channel], list[tuple[int, Channel]]]:
        """Return the channels that a switch numbers, and (BFR-id of the BFIR, channel) of those whose duplicates it eliminates.

        Both are empty without 1+1.
        """
        if not self.one_plus_one:
            return [], []
        eliminated = []
        for channel in delivered:
            for bfir in self._bfirs(channel) if channel[0] is not None else ():
                eliminated.append((self._scheme.numbering.bfr_ids[bfir], channel))
        return [channel for channel in sent if channel[0] is not None], eliminated

    def _bit_strings(self, channel: Channel) -> dict[int, int] | None:
        """Return the BitStrings of the channel's BFERs by set identifier; None if there is no such channel."""
        switches = self._channels.get(channel)
        if switches is None:
            return None
        return self._scheme.numbering.bit_strings(name for name, ports in switches.items() if ports)

    def _bfirs(self, channel: Channel) -> list[str]:
        """Return the switches at which packets of ``channel`` enter the domain.

        That is the switch of its source, or for (*,G) every switch with hosts.
        """
        source, _ = channel
        if source is None:
            return self._sources.edges
        switch = self._sources.switch(source)
        return [] if switch is None else [switch]

    def _sent_by(self, bfir: str, channel: Channel, bit_strings: Mapping[int, int] | None) -> dict[Bift, int] | None:
        """Return the BitStrings that ``bfir`` sends for ``channel``, by BIFT; None if ``bit_strings`` is None.

        With 1+1 the BFIR's own bit is in one sub-domain only.
        """
        if bit_strings is None:
            return None
        first, *others = sorted(self._scheme.sub_domains)
        sent = {Bift(first, place): bits for place, bits in bit_strings.items()}
        if self.one_plus_one and channel[0] is not None:
            place, own = self._scheme.numbering.place(bfir)
            for further in others:
                for each, bits in bit_strings.items():
                    sent[Bift(further, each)] = bits & ~own if each == place else bits
        return sent

    # ---- Writing ----

    def _ports(self, name: str) -> Configuration:
        topology = self.topology
        core = self._links.domain_ports().get(name, frozenset())
        edge = sorted(place.port for place in map(topology.attachment, topology.hosts) if place.switch == name)
        macs = {port: int.from_bytes(topology.port_mac(name, port), "big") for port in edge}
        return port_configuration(sorted([*core, *edge]), macs)

    def _write_ip(self, unusable: frozenset[int]) -> Loss | None:
        """Write the IP routes to hosts, computed without the ``unusable`` links (indices).

        If links have only failed since the last call, write only the routes that changed, and return the :class:`Loss`; else return
        None.
        """
        before, down = self._underlay, self._underlay_without
        self._underlay_without = unusable
        if before is not None and unusable >= down:
            loss = before.without(unusable - down)
            self._underlay = loss.after
            self._routing.reroute(self.topology, before.paths, loss.after.paths, loss.moved)
            # The tunnels around a link do not pass it. Without not-via addresses they are those of routes, and may.
            self._lost |= unusable - down
            if self._scheme.ip_frr:
                self.plane.call_later(0, self._reroute_tunnels)
            else:
                self._reroute_tunnels()
            return loss
        paths = ShortestPaths.of(self.topology, unusable)
        self._underlay = Underlay(paths, ip_frr=self._scheme.ip_frr)
        for name, entries in self._routing.plan(self.topology, paths).items():
            self._routing.writers[name].write(entries)
        self._tunnel_routes, self._lost = TunnelRoutes(self.topology), set()
        self._tunnel_routes.add(self._underlay, self._tunnels)
        self._write_tunnels()
        return None

    def _reroute_tunnels(self) -> None:
        """Route the tunnels that crossed failed links another way, and write the changes."""
        lost, self._lost = self._lost, set()
        assert self._underlay is not None
        self._tunnel_routes.reroute(self._underlay, lost)
        self._change_tunnels()

    def _write_tunnels(self) -> None:
        """Write all tunnel routes and the addresses where tunnels end; keep those of an earlier controller."""
        wanted = {name: list(self._inherited.get(name, ())) for name in self._tunnel_writers}
        for name, routes in self._tunnel_routes.routes().items():
            wanted[name] += (_tunnel_route(address, next_hop) for address, next_hop in routes.items())
        for name, address in self._tunnel_routes.ends():
            wanted[name].append(_tunnel_end(address))
        for name, writer in self._tunnel_writers.items():
            writer.write(wanted[name])
        self._tunnel_routes.take_changes()

    def _change_tunnels(self) -> None:
        """Write the changes of tunnel routes and of addresses where tunnels end since the last write."""
        put: dict[str, list[TableEntry]] = {}
        removed: dict[str, list[EntryKey]] = {}
        changes = self._tunnel_routes.take_changes()
        for name, address, next_hop in changes.routes:
            if next_hop is not None:
                put.setdefault(name, []).append(_tunnel_route(address, next_hop))
            else:
                removed.setdefault(name, []).append(_tunnel_route_key(address))
        for name, address, is_end in changes.ends:
            entry = _tunnel_end(address)
            if is_end:
                put.setdefault(name, []).append(entry)
            else:
                removed.setdefault(name, []).append(entry.key)
        for name in sorted(put.keys() | removed.keys()):
            self._tunnel_writers[name].change(put.get(name, ()), removed.get(name, ()))

    def _write_bier(self, unusable: frozenset[int], underlay: Underlay, loss: Loss | None) -> None:
        """Write the BIFTs, groups and backups that differ from the last plan.

        ``underlay``: the routes without the ``unusable`` links, after ``loss``.
        """
        if self._primary is None:
            self._protect(unusable, underlay, loss)
            return
        # The failure is repaired first; then the next one is prepared for.
        before = self._primary
        self._primary = before.after(unusable, underlay=underlay, loss=loss)
        for name in self._order(before, self._primary):
            changes = switch_changes(before.switches[name], self._primary.switches[name], bsl=self.bsl)
            assert changes is not None, "there is one group for each BIFT"
            self._writers[name].change(*changes)
        self.plane.call_later(0, partial(self._protect, unusable, underlay, loss))

    def _protect(self, unusable: frozenset[int], underlay: Underlay, loss: Loss | None) -> None:
        """Write the backups, the tunnels that backups use, and the parts of BIFTs that are not written yet.

        ``unusable``: the links that are down. ``loss``: their effect on the underlay, if it is known, which saves work. Do nothing
        if the links that are down have changed since the plan was made; another call follows.
        """
        if self._primary is not None and self._primary.unusable != unusable:
            return  # there is news already
        self._reroute_tunnels()
        before = self._plan
        if before is None:
            plan = Plan(self.topology, self._scheme, unusable, underlay=underlay)
            if (
                self._scheme.frr != "none"
                and self._scheme.is_shortest
                and self._scheme.buckets == 1
                and not self.clusters
            ):
                primary = replace(self._scheme, frr="none", protect="link")
                self._primary = Plan(self.topology, primary, unusable, underlay=underlay)
                _ = self._primary.switches  # planned now, not when something has failed
        else:
            plan = before.after(unusable, underlay=underlay, loss=loss)
        new = [tunnel for tunnel in plan.tunnels if tunnel not in self._tunnels]
        self._tunnels.update(new)
        assert self._underlay is not None
        self._tunnel_routes.add(self._underlay, new)
        self._change_tunnels()
        for name in self._order(before, plan):
            switch = plan.switches[name]
            if switch != self._written.get(name):
                self._write_switch(name, switch)
        self._plan = plan
        self._generation += 1
        if len(self._tunnels) != len(plan.tunnels) or self._inherited:
            self.plane.call_later(DRAIN_MS, partial(self._forget_tunnels, self._generation))

    def _write_switch(self, name: str, switch: SwitchPlan) -> None:
        """Write the BIFTs of a switch and the clusters, which are computed from the BIFTs' masks, in one batch."""
        before = self._written.get(name)
        self._written[name] = switch
        if before is not None and not self.clusters:
            changes = switch_changes(before, switch, bsl=self.bsl, tunnel_mtu=self.mtu)
            if changes is not None:
                self._writers[name].change(*changes)
                return
        wanted = switch_configuration(switch, bsl=self.bsl, tunnel_mtu=self.mtu)
        if self.clusters:
            self._learnt[name] = learn(switch, self._samples[name], limit=self.clusters)
            wanted |= cluster_configuration(switch, self._learnt[name])
        self._writers[name].write(wanted)

    def _forget_tunnels(self, generation: int) -> None:
        """Remove the tunnels that only earlier plans used, at a time when all packets have left them.

        Do nothing if ``generation`` is not the present one, as a newer plan has been made since.
        """
        if generation != self._generation:
            return
        self._tunnel_routes.remove(self._tunnels.difference(self.plan.tunnels))
        self._tunnels = set(self.plan.tunnels)
        if self._inherited:
            self._inherited = {}
            self._write_tunnels()
        else:
            self._change_tunnels()

    def _order(self, before: Plan | None, plan: Plan) -> list[str]:
        """Return the switches that change in ``plan``; after a failure, those that were farthest from the failed links come first.

        ``before``: the plan until now, None for the first plan.
        """
        if before is None or not (failed := plan.unusable - before.unusable):
            return list(plan.changed)
        paths = before.paths
        links = (self.topology.links[index] for index in failed)
        distances = [paths.distances(end) for end in {paths.number[end] for link in links for end in (link.a, link.b)}]

        def place(name: str) -> tuple[int, int]:
            node = paths.number[name]
            return -min(distance[node] for distance in distances), node

        return sorted(plan.changed, key=place)

    # ---- Taking over ----

    def _adopt(self, found: Mapping[str, Found]) -> None:
        """Register the entries found in the switches as written, so that later writes keep, change or remove them."""
        self._inherited = {name: each.tunnels for name, each in found.items()}
        for name, each in found.items():
            self._routing.writers[name].adopt(each.host_routes)
            self._tunnel_writers[name].adopt(each.tunnels)
            settings = read_state(self.clients[name], {Meter: ((REPORT_RATE, None),), Digest: (SAMPLE_DIGEST,)})
            self._port_writers[name].adopt((*each.ports, *settings))
            self._writers[name].adopt(each.bifts)
            self._channel_writers[name].adopt(each.channels)
            self._streams[name].adopt(each.streams)


def _tunnel_route(address: IPv4Address, next_hop: NextHop) -> TableEntry:
    return TableEntry(ROUTES.ipv4, {ROUTES.key: (int(address), 32)}, FORWARD, next_hop.params())


def _tunnel_route_key(address: IPv4Address) -> EntryKey:
    return entry_key(ROUTES.ipv4, {ROUTES.key: (int(address), 32)})


def _tunnel_end(address: IPv4Address) -> TableEntry:
    return TableEntry(CARRIERS, {CARRIERS_KEY: int(address)}, "NoAction")
