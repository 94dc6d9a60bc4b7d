"""Link discovery learns from frames which ports of switches are wired to each other, and makes a map of these links.

Every port is sent a frame from time to time (:mod:`holdfast.lldp`, by packet-out), which the switch at the other end hands to its
controller; both directions together are a link. Any controller can use it whose program knows packet-outs with a port and punts
LLDP. Hosts are not discovered: they stay where the declared map has them, and their ports take no part. The controller's use of the
map is not known here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import networkx as nx

from holdfast import lldp
from holdfast.errors import NetworkError
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.topology import Link, Topology

if TYPE_CHECKING:
    from holdfast.controller import ControlPlane

Port: TypeAlias = tuple[str, int]
"""A switch and one of its ports."""

IncidentKind: TypeAlias = Literal[
    "malformed", "foreign", "forged", "replayed", "late", "misplaced", "unexpected", "elsewhere", "loop"
]

RATE = "discovery_rate"
"""The meter of the frames that a switch hands to its controller, by port (``apps/discovery.p4``)."""
RATE_EXCEEDED = "discovery_rate_exceeded"
"""The counter of the frames beyond that rate, by port."""

_LEAST_RATE = 20
"""The smallest limit of frames per second that a port may hand to the controller."""

_TEXTS: dict[str, str] = {
    "malformed": "what should be LLDP is not",
    "foreign": "LLDP of somebody else",
    "forged": "a frame of this controller's kind, with a wrong signature",
    "replayed": "a frame that was made long ago",
    "late": "a frame that took longer than a link may",
    "unexpected": "a frame of a port that no expected link leads to",
    "misplaced": "a frame of a switch, where a host is declared or no switch's port should be",
    "elsewhere": "a frame that was heard at another port first",
    "loop": "a frame of the same switch",
}


@dataclass(frozen=True)
class Incident:
    """Frames that made no link, of one kind and at one port.

    ``claimed``: the port that the last one named, where that is genuine. ``count``: their number.
    """

    kind: IncidentKind
    switch: str
    port: int
    claimed: Port | None
    first_ps: int
    last_ps: int
    count: int

    def __str__(self) -> str:
        claimed = "" if self.claimed is None else f" (of {self.claimed[0]}:{self.claimed[1]})"
        return f"{self.switch}:{self.port}: {_TEXTS[self.kind]}{claimed}"


@dataclass(frozen=True)
class LinkDiscovery:
    """The parameters of link discovery.

    ``interval_ms``: from one frame of a port to the next; longer if all ports together would exceed ``frames_per_s``.
    ``hold_ms``: a link that is not heard for so long is gone; three and a half intervals unless given. ``settle_ms``: the time
    without anything new before it is acted on; it should exceed the slowest link's delay. A lost link is acted on at once.

    ``ports``: those that may have links, by switch, or 1 to so many of each; without it, those with links in the declared map.
    Ports of declared hosts are left out. ``expected``: the links that there may be, by their two ports; without it, any between
    these ports. ``longest_ms``: the time that a frame may take from the controller to the controller, its reaction delay left
    out; a relay adds its own to that of the cable. What is not as it should be makes no link, and is an incident.

    ``default_cost``: of links at ports that the map has no cost of. ``on_incident`` is called with the first of each kind and port.
    """

    interval_ms: float = 1000.0
    hold_ms: float | None = None
    settle_ms: float = 200.0
    frames_per_s: float = 1000.0
    ports: int | Mapping[str, Collection[int]] | None = None
    expected: Collection[tuple[Port, Port]] | None = None
    longest_ms: float | None = None
    default_cost: int = 1
    on_incident: Callable[[Incident], None] | None = None

    @property
    def frames_heard_per_s(self) -> int:
        """The frames per second that a switch hands over of each port: ten times as many as a neighbour sends, and 20 at least."""
        return max(_LEAST_RATE, math.ceil(10_000 / self.interval_ms))

    def __post_init__(self) -> None:
        for name in ("interval_ms", "frames_per_s", "default_cost"):
            if not 0 < getattr(self, name) < math.inf:
                raise NetworkError(f"{name} is {getattr(self, name)}; it must be above zero")
        if self.frames_per_s > 1e6:
            raise NetworkError(f"frames_per_s is {self.frames_per_s:g}; it can be 1000000 at most")
        if not 0 <= self.settle_ms < math.inf:
            raise NetworkError(f"settle_ms is {self.settle_ms}; it cannot be negative")
        if self.longest_ms is not None and not 0 < self.longest_ms < math.inf:
            raise NetworkError(f"longest_ms is {self.longest_ms}; it must be above zero")
        if self.hold_ms is not None and not self.interval_ms < self.hold_ms < math.inf:
            raise NetworkError(f"hold_ms ({self.hold_ms}) must be above interval_ms ({self.interval_ms})")


class DiscoveredTopology(Topology):
    """The declared switches and hosts, and the links between switches that were ever learnt.

    A link keeps its index; :attr:`absent` has those that are not there now, and nothing else is in :attr:`graph`. A port may be in
    several links, of which one is present at most.
    """

    def __init__(self, declared: Topology, default_cost: int = 1) -> None:
        super().__init__(declared.name)
        self.switches, self.hosts = dict(declared.switches), dict(declared.hosts)
        self._ports = {name: {} for name in (*self.hosts, *self.switches)}
        self._plan = declared._plan.copy()
        self._default_cost = default_cost
        self._declared: dict[Port, Link] = {}
        self._index: dict[frozenset[Port], int] = {}
        self._absent: set[int] = set()
        for link in declared.links:
            if link.a in self.hosts or link.b in self.hosts:
                self._ports[link.a][link.a_port] = self._ports[link.b][link.b_port] = len(self.links)
                self.links.append(link)
            else:
                self._declared[link.a, link.a_port] = self._declared[link.b, link.b_port] = link

    def learn(self, one: Port, other: Port) -> int:
        """Return the index of the link between two ports. A link that was not known before is added, marked as absent."""
        ends = frozenset((one, other))
        index = self._index.get(ends)
        if index is None:
            index = self._index[ends] = len(self.links)
            self.links.append(self._describe(one, other))
            self._absent.add(index)
        return index

    def _describe(self, one: Port, other: Port) -> Link:
        """Return the declared link of two ports, or a new link with the greater of the costs declared at these ports."""
        of_one, of_other = self._declared.get(one), self._declared.get(other)
        if of_one is not None and of_one is of_other:
            return of_one
        costs = [link.cost for link in (of_one, of_other) if link is not None]
        (a, a_port), (b, b_port) = sorted((one, other), key=lambda end: (self.switches[end[0]].index, end[1]))
        return Link(a=a, a_port=a_port, b=b, b_port=b_port, cost=max(costs, default=self._default_cost))

    def set_present(self, index: int, present: bool) -> None:
        """Mark the link with this index as present in the map or as absent from it."""
        link = self.links[index]
        if present:
            self._absent.discard(index)
            self._ports[link.a][link.a_port] = self._ports[link.b][link.b_port] = index
        else:
            self._absent.add(index)
        self.__dict__.pop("graph", None)
        self.__dict__.pop("absent", None)

    @cached_property
    def absent(self) -> frozenset[int]:
        """The indices of the links that are known but not present now."""
        return frozenset(self._absent)

    @property
    def replaced(self) -> frozenset[int]:
        """The indices of the absent links at least one of whose ports is in another, present link now."""
        links = ((index, self.links[index]) for index in self._absent)
        return frozenset(
            index
            for index, link in links
            if any(self._ports[n].get(p, index) != index for n, p in ((link.a, link.a_port), (link.b, link.b_port)))
        )

    @cached_property
    def graph(self) -> nx.Graph[str]:
        """The graph of the switches and the links that are present, as :attr:`Topology.graph` has all links."""
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(self.switches)
        for index, link in enumerate(self.links):
            if index not in self._absent and link.a in self.switches and link.b in self.switches:
                known = graph.get_edge_data(link.a, link.b)
                if known is None or link.cost < known["cost"]:
                    graph.add_edge(link.a, link.b, cost=link.cost, link=index)
        return graph

    def present(self) -> Topology:
        """Return the map as it is now, without the absent links, as a topology of its own."""
        topology = Topology(self.name)
        topology.hosts, topology.switches = dict(self.hosts), dict(self.switches)
        topology._ports = {name: {} for name in (*self.hosts, *self.switches)}
        topology._plan = self._plan.copy()
        for index, link in enumerate(self.links):
            if index not in self._absent:
                topology._ports[link.a][link.a_port] = topology._ports[link.b][link.b_port] = len(topology.links)
                topology.links.append(link)
        return topology


@dataclass
class _Heard:
    """The port at which a port's frames were heard last, and the time when that ends."""

    at: Port
    until_ps: int


@dataclass
class _Sending:
    """A queue of ports to send frames from: each port once at most, so that it is bounded."""

    waiting: deque[Port] = field(default_factory=deque)
    is_scheduled: bool = False
    free_ps: int = 0
    """When the next frame may be sent."""


class Discovery:
    """One controller's discovery. ``reaction_delay_ps``: the delay with which it is told of frames.

    :meth:`prepare`, then :meth:`start`; then :meth:`hear` every packet-in and :meth:`port_changed` every change. ``on_change``
    is called when the map has changed: with what is gone at once, with what is new when all has settled, and when the first round
    is over.
    """

    def __init__(
        self,
        plane: ControlPlane,
        settings: LinkDiscovery,
        on_change: Callable[[], None],
        *,
        reaction_delay_ps: int = 0,
    ) -> None:
        declared = plane.topology
        self._plane = plane
        self._settings = settings
        self._on_change = on_change
        self._reaction_delay_ps = reaction_delay_ps
        self._key = plane.secret()
        self.topology = DiscoveredTopology(declared, settings.default_cost)
        self.ports = _ports(declared, settings.ports)
        """That may have links between switches, in the order in which they are sent frames."""
        self._known = frozenset(self.ports)
        self._expected = None if settings.expected is None else frozenset(map(frozenset, settings.expected))
        for port in frozenset().union(*self._expected or ()) - self._known:
            raise NetworkError(f"an expected link is at {port[0]}:{port[1]}, which is not a port that may have links")
        self._longest_ps = None if settings.longest_ms is None else round(settings.longest_ms * PS_PER_MS)
        self._gap_ps = round(PS_PER_S / settings.frames_per_s)
        self._interval_ps = max(round(settings.interval_ms * PS_PER_MS), self._gap_ps * len(self.ports))
        self.hold_ps = round(3.5 * self._interval_ps)
        if settings.hold_ms is not None:
            self.hold_ps = round(settings.hold_ms * PS_PER_MS)
            if self.hold_ps <= self._interval_ps:
                raise NetworkError(
                    f"{len(self.ports)} ports at {settings.frames_per_s:g} frames/s are sent one every "
                    f"{self._interval_ps / PS_PER_MS:g} ms; hold_ms ({settings.hold_ms:g}) must be above that"
                )
        self._ttl_s = min(65535, math.ceil(self.hold_ps / PS_PER_S))
        self._down: set[Port] = set()
        self._heard: dict[Port, _Heard] = {}
        self._latest_ps: dict[Port, int] = {}
        """When the last frame of a port was made that was heard."""
        self._last_peer: dict[Port, Port] = {}
        self._link_of: dict[Port, int] = {}
        self._sending = _Sending()
        self._expiry_ps: int | None = None
        self._settled_ps: int | None = None
        self._round_is_over = False
        self._incidents: dict[tuple[IncidentKind, str, int], Incident] = {}
        self.frames_sent = 0
        self.is_settled = False
        """Whether the first round is over, and what it found is known to the controller."""

    # ---- Discovered links and incidents ----

    @property
    def incidents(self) -> list[Incident]:
        """The frames that made no link, counted by kind and port, in the order of the first frame of each."""
        return list(self._incidents.values())

    @property
    def one_way(self) -> list[tuple[Port, Port]]:
        """The pairs (port, other port) for which frames arrive in this direction only."""
        pairs = ((source, heard.at) for source, heard in self._heard.items())
        return sorted((a, b) for a, b in pairs if b not in self._heard or self._heard[b].at != a)

    def presume(self, one: Port, other: Port, *, is_there: bool) -> int:
        """Add a link between two ports that a controller knows from elsewhere, and return its index.

        With ``is_there`` it is present, until the hold time is over without a frame. Raises :class:`NetworkError` if one of the
        ports cannot have links.
        """
        for port in (one, other):
            if port not in self._known:
                raise NetworkError(f"{port[0]}:{port[1]} is not a port that may have links")
        if one[0] == other[0]:
            raise NetworkError(f"a link from {one[0]} to itself is not allowed")
        index = self.topology.learn(one, other)
        self._last_peer.setdefault(one, other)
        self._last_peer.setdefault(other, one)
        if is_there and not {one, other} & self._down:
            until_ps = self._plane.now_ps + self.hold_ps
            self._move(one, _Heard(other, until_ps))
            self._move(other, _Heard(one, until_ps))
            self._expect(until_ps)
        return index

    # ---- Sending ----

    def prepare(self) -> None:
        """Ask the network for the signal of each port, and remember the ports that are down."""
        self._down = {port for port in self.ports if not self._plane.port_is_up(*port)}

    def start(self) -> None:
        """Start the first round of frames at the highest rate allowed; the frames of later rounds are spread over the interval."""
        self._sending.waiting.extend(port for port in self.ports if port not in self._down)
        self._send_soon()
        round_ps = self._gap_ps * len(self.ports)
        if self.ports:
            self._plane.call_later(round_ps / PS_PER_MS, partial(self._next, 0))
        self._plane.call_later((round_ps + self._reaction_delay_ps) / PS_PER_MS, self._end_first_round)

    def _end_first_round(self) -> None:
        self._round_is_over = True
        self._settle_later()

    def _next(self, number: int) -> None:
        """Send the regular frame of the port at position ``number`` of :attr:`ports`, and schedule the next port's frame."""
        self._send(self.ports[number])
        following = (number + 1) % len(self.ports)
        delay_ps = self._interval_ps // len(self.ports)
        self._plane.call_later(delay_ps / PS_PER_MS, partial(self._next, following))

    def _send(self, port: Port) -> None:
        if port not in self._down and port not in self._sending.waiting:
            self._sending.waiting.append(port)
            self._send_soon()

    def _send_soon(self) -> None:
        sending = self._sending
        if sending.waiting and not sending.is_scheduled:
            sending.is_scheduled = True
            wait_ps = max(0, sending.free_ps - self._plane.now_ps)
            self._plane.call_later(wait_ps / PS_PER_MS, self._send_first)

    def _send_first(self) -> None:
        sending = self._sending
        sending.is_scheduled = False
        if sending.waiting:
            switch, port = sending.waiting.popleft()
            now_ps = self._plane.now_ps
            sending.free_ps = now_ps + self._gap_ps
            mac = self.topology.port_mac(switch, port)
            packet = lldp.frame(mac, switch, port, self._ttl_s, now_ps, self._key)
            self.frames_sent += 1
            self._plane.clients[switch].packet_out(packet, egress_port=port)
        self._send_soon()

    # ---- Hearing ----

    def hear(self, switch: str, packet: bytes, port: int) -> bool:
        """Process a packet-in and return True if it is an LLDP frame.

        Otherwise return False, so that others can process the packet.
        """
        if not lldp.is_lldp(packet):
            return False
        here = (switch, port)
        try:
            said = lldp.parse(packet)
        except lldp.MalformedLldpError:
            self._note("malformed", here)
            return True
        if said.signature is None or said.made_at_ps is None:
            self._note("foreign", here)
        elif not said.is_genuine(self._key):
            self._note("forged", here)
        else:
            self._hear_genuine((said.chassis[1].decode(), int(said.port[1])), here, said.made_at_ps)
        return True

    def _hear_genuine(self, source: Port, here: Port, made_at_ps: int) -> None:
        """Learn a link from a frame that this controller signed, unless its age or ports show that it was relayed or kept."""
        age_ps = self._plane.now_ps - made_at_ps
        if age_ps > self.hold_ps + self._reaction_delay_ps:
            self._note("replayed", here, source)
        elif here not in self._known:
            self._note("misplaced", here, source)
        elif self._expected is not None and frozenset((source, here)) not in self._expected:
            self._note("unexpected", here, source)
        elif self._longest_ps is not None and age_ps - self._reaction_delay_ps > self._longest_ps:
            self._note("late", here, source)
        elif source[0] == here[0]:
            self._note("loop", here, source)
        elif source in self._down or here in self._down:
            pass  # It was under way when the port went down.
        elif made_at_ps > self._latest_ps.get(source, -1):
            until_ps = self._plane.now_ps + self.hold_ps
            self._latest_ps[source] = made_at_ps
            self._last_peer[source] = here
            lost = self._move(source, _Heard(here, until_ps))
            self._expect(until_ps)
            if lost:
                self._on_change()
        elif self._last_peer[source] != here:
            self._note("elsewhere", here, source)

    def _note(self, kind: IncidentKind, here: Port, claimed: Port | None = None) -> None:
        key, now_ps = (kind, *here), self._plane.now_ps
        known = self._incidents.get(key)
        if known is not None:
            self._incidents[key] = replace(known, claimed=claimed, last_ps=now_ps, count=known.count + 1)
            return
        incident = self._incidents[key] = Incident(kind, *here, claimed, now_ps, now_ps, 1)
        if self._settings.on_incident is not None:
            self._settings.on_incident(incident)

    # ---- The map ----

    def port_changed(self, switch: str, port: int, up: bool) -> None:
        """Remove the link of a port that went down. If it came up, send a frame from it and from the port last linked to it."""
        here = (switch, port)
        if here not in self._known:
            return
        if up:
            self._down.discard(here)
            self._send(here)
            if here in self._last_peer:
                self._send(self._last_peer[here])
            return
        self._down.add(here)
        gone = [source for source, heard in self._heard.items() if here in (source, heard.at)]
        if sum(self._move(source, None) for source in gone):
            self._on_change()

    def _move(self, source: Port, heard: _Heard | None) -> bool:
        """Record the port at which frames of ``source`` are heard now; None: nowhere.

        Returns True if the map lost a link by this. A link that is new becomes known when all has settled.
        """
        before = self._heard.get(source)
        if heard is None:
            self._heard.pop(source, None)
        else:
            self._heard[source] = heard
        if before is not None and heard is not None and before.at == heard.at:
            return False
        lost = self._unlink(source)
        if heard is not None and (back := self._heard.get(heard.at)) is not None and back.at == source:
            index = self.topology.learn(source, heard.at)
            self._link_of[source] = self._link_of[heard.at] = index
            self.topology.set_present(index, True)
            self._settle_later()
        return lost

    def _unlink(self, port: Port) -> bool:
        index = self._link_of.get(port)
        if index is None:
            return False
        link = self.topology.links[index]
        del self._link_of[link.a, link.a_port], self._link_of[link.b, link.b_port]
        self.topology.set_present(index, False)
        return True

    def _expect(self, until_ps: int) -> None:
        """Schedule a check of the hold times at ``until_ps``, unless one is scheduled already."""
        if self._expiry_ps is None:
            self._expiry_ps = until_ps
            self._plane.call_later(max(0, until_ps - self._plane.now_ps) / PS_PER_MS, self._expire)

    def _expire(self) -> None:
        self._expiry_ps = None
        now_ps = self._plane.now_ps
        old = [source for source, heard in self._heard.items() if heard.until_ps <= now_ps]
        lost = sum(self._move(source, None) for source in old)
        if self._heard:
            self._expect(min(heard.until_ps for heard in self._heard.values()))
        if lost:
            self._on_change()

    # ---- Telling ----

    def _settle_later(self) -> None:
        """Call ``on_change`` once no new link has come for ``settle_ms``; do nothing before the end of the first round."""
        if not self._round_is_over:
            return
        wait_ps = round(self._settings.settle_ms * PS_PER_MS)
        is_waiting = self._settled_ps is not None
        self._settled_ps = self._plane.now_ps + wait_ps
        if not is_waiting:
            self._plane.call_later(wait_ps / PS_PER_MS, self._settle)

    def _settle(self) -> None:
        if self._settled_ps is None:
            return
        if (wait_ps := self._settled_ps - self._plane.now_ps) > 0:
            self._plane.call_later(wait_ps / PS_PER_MS, self._settle)
            return
        self._settled_ps = None
        self.is_settled = True
        self._on_change()


def _ports(declared: Topology, given: int | Mapping[str, Collection[int]] | None) -> list[Port]:
    """Return the ports that may have links, except those of hosts. Raises :class:`NetworkError` for ports that do not exist.

    ``given``: the ports by switch; or a number n, for ports 1 to n of every switch; or None, for the ports that have links in the
    declared map.
    """
    taken = {(at.switch, at.port) for at in map(declared.attachment, declared.hosts)}
    if isinstance(given, Mapping) and (unknown := given.keys() - declared.switches.keys()):
        raise NetworkError(f"discovery has ports of unknown switches: {', '.join(sorted(unknown))}")
    ports: list[Port] = []
    for switch in declared.switches:
        if len(switch.encode()) > 255:
            raise NetworkError(f"switch {switch[:20]!r}…: names in discovery frames have 255 bytes at most")
        if given is None:
            numbers: Collection[int] = declared._ports[switch]
        elif isinstance(given, int):
            numbers = range(1, given + 1)
        else:
            numbers = given.get(switch, ())
        if any(not 0 <= number <= 509 for number in numbers):
            raise NetworkError(f"switch {switch!r}: ports in discovery are 0 to 509")
        ports += ((switch, number) for number in sorted(set(numbers)) if (switch, number) not in taken)
    return ports
