"""A user plane of several switches: an authentication plane and forwarding planes behind a balancer (`UserPlane`).

Sessions of a line are on the plane that serves the line's bucket. A handover makes them on the new plane first, then has the
balancer serve the bucket from there, and removes them from the old plane when no packet can be on its way any more. Both
directions of a bucket change with one entry. A switch that comes back, perhaps without its tables, is restored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from holdfast.apps.bng import program
from holdfast.apps.bng.balancing import assigned, bucket_of
from holdfast.apps.bng.edges import Edges
from holdfast.apps.bng.entries import NO_USAGE, Way, configure_edges, own_addresses
from holdfast.apps.bng.frames import check_line, tagged, untagged
from holdfast.apps.bng.sessions import CHUNK, SessionTables, total
from holdfast.apps.bng.single import Handler, answer_neighbour, drops, refuse
from holdfast.control.desired import Entity, Scope, Writer, read_state
from holdfast.control.entities import DefaultAction, Meter
from holdfast.control.tables import EntryKey, MatchValue, TableEntry
from holdfast.errors import HoldfastError, NetworkError
from holdfast.p4runtime.client import Client
from holdfast.subscribers.plane import Clock, Line, Session, Usage


@dataclass(frozen=True)
class ForwardingPlane:
    """A forwarding plane and its cables: its port towards lines, and the balancer's ports to both of its sides.

    Its core ports are those of the gateway's edges.
    """

    client: Client
    trunk: int
    access_port: int
    core_port: int


@dataclass(frozen=True)
class AuthenticationPlane:
    """The authentication plane: its port towards the balancer, and the balancer's port to it."""

    client: Client
    trunk: int
    access_port: int


@dataclass(frozen=True)
class Balancer:
    """The balancer: its ports towards the core, by the MAC address of the next hop there. Access ports are those of the edges."""

    client: Client
    uplinks: Mapping[str, int]


_BALANCER_OWN = program.BALANCER_OWN_V4, program.BALANCER_OWN_V6, program.BALANCER_OWN
_BALANCER: Scope = {
    TableEntry: (
        program.BALANCER_PORTS,
        program.BUCKET_TABLE,
        program.DESTINATIONS_V4,
        program.DESTINATIONS_V6,
        program.UPLINKS,
        *_BALANCER_OWN[:2],
    ),
    DefaultAction: (program.AUTHENTICATION,),
    Meter: ((program.CORE_RATE, 0),),
}
_MOST = 6 * CHUNK
"""The most updates of the balancer in one batch: at least all updates of sessions that are installed at once."""

_DRAINED = b"drained"
"""Metadata of the balancer's entry for a plane that an operator has drained, so that the next controller knows it, too."""


@dataclass
class _Plane:
    name: str
    cables: ForwardingPlane
    sessions: SessionTables


def destinations(session: Session, bucket: int) -> list[TableEntry]:
    """Return the balancer's entries that assign a session's addresses and prefixes to ``bucket``."""
    entries = []
    params: dict[str, int | str] = {"bucket": bucket}
    if session.ipv4 is not None:
        match: dict[str, MatchValue] = {"address": int(session.ipv4)}
        entries.append(TableEntry(program.DESTINATIONS_V4, match, program.BELONG, params))
    for prefix in dict.fromkeys((session.ipv6_prefix, session.delegated)):
        if prefix is not None:
            match = {"prefix": (int(prefix.network_address) >> 64, prefix.prefixlen)}
            entries.append(TableEntry(program.DESTINATIONS_V6, match, program.BELONG_V6, params))
    return entries


class SplitPlane:
    """The `UserPlane` of these switches.

    ``drain_s``: the time after a change of the balancer that a packet can still be on its way through the old plane. State that
    earlier controllers have left is taken over, also a handover that was not finished, and planes that are drained.
    """

    def __init__(
        self,
        edges: Edges,
        balancer: Balancer,
        authentication: AuthenticationPlane,
        planes: Mapping[str, ForwardingPlane],
        clock: Clock,
        *,
        drain_s: float,
    ) -> None:
        if len({port.mac for port in edges.access}) > 1:
            raise NetworkError("behind a balancer, all access ports have one MAC address")
        self._edges, self._balancer, self._authentication, self._clock = edges, balancer, authentication, clock
        self._drain_s = drain_s
        self._handler: Handler = refuse
        self._owners: dict[EntryKey, int] = {}
        """The session that has each entry of the balancer, by entry key, and the keys of each session's entries."""
        self._keys: dict[int, tuple[EntryKey, ...]] = {}
        self._heard: dict[int, Usage] = {}
        """The last usage that was asked for: all that is left of a plane's counters when it fails."""
        self._left: dict[int, Usage] = {}
        """The usage on planes that a session was removed from, until it is removed from all."""
        self._planes = {
            name: _Plane(name, cables, SessionTables(cables.client, Way(edges, cables.trunk)))
            for name, cables in planes.items()
        }
        self._drained: set[str] = set()
        self.restore_authentication()
        self._table = Writer(balancer.client, most=_MOST)
        self._adopt()

    # ---- Start ----

    def restore_authentication(self, client: Client | None = None) -> None:
        """Write the entries that the authentication plane lacks. ``client``: a client of its new process, if it was restarted."""
        if client is not None:
            self._authentication = dataclasses.replace(self._authentication, client=client)
        configure_edges(self._authentication.client, self._edges, self._authentication.trunk, forwards=False)

    def _adopt(self) -> None:
        found = self._read_balancer()
        by_port = {plane.cables.access_port: name for name, plane in self._planes.items()}
        for entry in found:
            if entry.table == program.BALANCER_PORTS and entry.metadata == _DRAINED:
                number = entry.match["port"]
                if isinstance(number, int) and number in by_port:
                    self._drained.add(by_port[number])
        wanted = assigned(self._takers())
        self._serving = dict(wanted)
        for entry in found:
            if entry.table == program.BUCKET_TABLE:
                number, port = entry.match["bucket"], int(entry.params["access"])
                if isinstance(number, int) and port in by_port:
                    self._serving[number] = by_port[port]
        # A handover that was not finished: its sessions are made where they are served, and removed elsewhere.
        for plane in self._planes.values():
            stray = [each for each in plane.sessions.installed.values() if self._plane_of(each.line) is not plane]
            for each in stray:
                to = self._plane_of(each.line).sessions
                if each.session_id not in to:
                    to.install([each])
            self._retire(plane, [each.session_id for each in stray])
        for session in self._sessions():
            keys = tuple(entry.key for entry in destinations(session, bucket_of(session.line)))
            self._keys[session.session_id] = keys
            self._owners |= dict.fromkeys(keys, session.session_id)
        self._write_balancer()
        if self._serving != wanted:  # a plane has come or gone, or was drained, when no controller was there
            self._rebalance()

    def _read_balancer(self) -> list[TableEntry]:
        found = read_state(self._balancer.client, _BALANCER)
        self._table.adopt(found)
        return [each for each in found if isinstance(each, TableEntry)]

    def _write_balancer(self) -> None:
        """Write the entries that the balancer lacks, and delete those that it should not have."""
        addresses = (each for session in self._sessions() for each in destinations(session, bucket_of(session.line)))
        self._table.write((*self._static(), *self._buckets(range(program.BUCKETS)), *addresses))

    def restore_balancer(self, client: Client | None = None) -> None:
        """Write the entries that the balancer lacks after it came back.

        ``client``: a client of its new process, if it was restarted.
        """
        if client is not None:
            self._balancer = dataclasses.replace(self._balancer, client=client)
            self._table = Writer(client, most=_MOST)
        self._read_balancer()
        self._write_balancer()

    def restore(self, name: str, cables: ForwardingPlane | None = None) -> None:
        """Write the entries that forwarding plane ``name`` lacks after it came back; it serves the same access lines as before.

        Sessions get the usage that was read last. ``cables``: those of its new process, if it was restarted.
        """
        self._check(name)
        old = self._planes[name]
        cables = cables or old.cables
        sessions = SessionTables(cables.client, Way(self._edges, cables.trunk))
        known = list(old.sessions.installed.values())
        wanted = {each.session_id: each for each in known if self.serving(each.line) == name}
        there = dict(sessions.installed)
        sessions.remove([number for number in there if number not in wanted])
        sessions.install(session for number, session in wanted.items() if there.get(number, session) != session)
        self._planes[name] = _Plane(name, cables, sessions)
        self._recover(session for session in known if session.session_id not in there)
        if self._serving != assigned(self._takers()):
            self._rebalance()

    def _static(self) -> list[Entity]:
        def role(port: int, name: str, metadata: bytes = b"") -> TableEntry:
            number = {"number": program.ROLES[name]}
            return TableEntry(program.BALANCER_PORTS, {"port": port}, program.SET_ROLE, number, metadata=metadata)

        rates, to = self._edges.control.core, {"port": self._authentication.access_port}
        entries: list[Entity] = [
            DefaultAction(program.AUTHENTICATION, program.TO_PLANE, to),
            Meter(program.CORE_RATE, 0, (rates.per_s, rates.burst, rates.per_s, rates.burst)),
        ]
        entries += (role(port.port, "access") for port in self._edges.access)
        entries.append(role(self._authentication.access_port, "plane"))
        for plane in self._planes.values():
            mark = _DRAINED if plane.name in self._drained else b""
            entries += [role(plane.cables.access_port, "plane", mark), role(plane.cables.core_port, "plane_core")]
        for port in dict.fromkeys(self._balancer.uplinks.values()):
            entries.append(role(port, "core"))
            entries += own_addresses(self._edges.core[0], port, _BALANCER_OWN)
        for mac, port in self._balancer.uplinks.items():
            key = {"mac": int(mac.replace(":", ""), 16)}
            entries.append(TableEntry(program.UPLINKS, key, program.TO_UPLINK, {"port": port}))
        return entries

    def _buckets(self, numbers: Iterable[int]) -> list[TableEntry]:
        """Return the balancer's entries that assign buckets to the planes that serve them."""
        entries = []
        for number in numbers:
            cables = self._planes[self._serving[number]].cables
            params = {"access": cables.access_port, "core": cables.core_port}
            entries.append(TableEntry(program.BUCKET_TABLE, {"bucket": number}, program.SERVE, params))
        return entries

    # ---- Present sessions and planes ----

    def _sessions(self) -> list[Session]:
        return [session for plane in self._planes.values() for session in plane.sessions.installed.values()]

    def _takers(self, without: Iterable[str] = ()) -> list[str]:
        """Return the planes that may serve access lines: those that are not drained, or all if every plane is drained.

        Planes in ``without`` are left out.
        """
        there = [name for name in self._planes if name not in set(without)]
        return [name for name in there if name not in self._drained] or there

    def _plane_of(self, line: Line) -> _Plane:
        return self._planes[self._serving[bucket_of(line)]]

    def _holders(self, session_id: int) -> list[_Plane]:
        """Return the planes that have the session; during a handover there are two."""
        return [plane for plane in self._planes.values() if session_id in plane.sessions]

    @property
    def planes(self) -> dict[str, int]:
        """The number of sessions of each forwarding plane."""
        return {name: len(plane.sessions) for name, plane in self._planes.items()}

    @property
    def drained(self) -> frozenset[str]:
        """The forwarding planes that an operator has drained, so that they serve no line.

        A plane that was lost may be among them.
        """
        return frozenset(self._drained)

    def serving(self, line: Line) -> str:
        """Return the name of the plane that serves an access line."""
        return self._serving[bucket_of(line)]

    def owns(self, address: IPv4Address | IPv6Address) -> bool:
        """Return True if ``address`` is the IPv4 address of a session, or an IPv6 address in a session's prefix."""
        # A thread that receives may ask while planes come and go.
        return any(plane.sessions.owns(address) for plane in list(self._planes.values()))

    def drops(self) -> dict[str, dict[str, int]]:
        """Return how many packets were dropped, by switch and reason."""
        found = {name: drops(plane.cables.client) for name, plane in self._planes.items()}
        found["authentication"] = drops(self._authentication.client)
        found["balancer"] = drops(self._balancer.client, program.BALANCER_DROPS, program.BALANCER_REASONS)
        return found

    @property
    def addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        """The gateway's own addresses towards the core: no subscriber may have one."""
        return self._edges.addresses

    # ---- UserPlane ----

    def install(self, sessions: Iterable[Session]) -> None:
        """Add or replace sessions on their planes, and then in the balancer, in atomic batches.

        If a call fails, each session is as it was or fully replaced; a new one may be on its plane, but gets no packets. Raise
        :class:`NetworkError` if another session has an address or prefix of theirs, or for an impossible access line.
        """
        given = list({session.session_id: session for session in sessions}.values())
        self._destinations(given)
        for session in given:
            check_line(session.line)
        for first in range(0, len(given), CHUNK):
            self._install(given[first : first + CHUNK])

    def _install(self, given: list[Session]) -> None:
        wanted = self._destinations(given)
        before: dict[str, list[Session]] = {}
        try:
            for name, part in self._by_plane(given).items():
                known = self._planes[name].sessions.installed
                before[name] = [known[each.session_id] for each in part if each.session_id in known]
                self._planes[name].sessions.install(part)
            gone = [key for each in given for key in self._keys.get(each.session_id, ()) if key not in wanted]
            self._table.change((entry for entry, _ in wanted.values()), gone)
        except HoldfastError:
            for name, part in before.items():
                with suppress(HoldfastError):
                    self._planes[name].sessions.install(part)
            raise
        for key in gone:
            del self._owners[key]
        for session in given:
            self._keys[session.session_id] = ()
        for key, (_, number) in wanted.items():
            self._owners[key] = number
            self._keys[number] = (*self._keys[number], key)
        for session in given:
            plane = self._plane_of(session.line)
            for other in self._holders(session.session_id):
                if other is not plane and other.sessions.installed[session.session_id].line != session.line:
                    self._retire(other, [session.session_id])

    def _by_plane(self, sessions: Iterable[Session]) -> dict[str, list[Session]]:
        found: dict[str, list[Session]] = {}
        for session in sessions:
            found.setdefault(self.serving(session.line), []).append(session)
        return found

    def _destinations(self, sessions: Iterable[Session]) -> dict[EntryKey, tuple[TableEntry, int]]:
        """Return by key the balancer's entries of sessions to be installed, each with its session's number.

        Raise :class:`NetworkError` if another session already has one of these addresses or prefixes.
        """
        found: dict[EntryKey, tuple[TableEntry, int]] = {}
        given = list(sessions)
        numbers = {session.session_id for session in given}
        for session in given:
            for entry in destinations(session, bucket_of(session.line)):
                owner = self._owners.get(entry.key)
                if owner in numbers:
                    owner = None
                if entry.key in found:
                    owner = found[entry.key][1]
                if owner is not None:
                    raise NetworkError(f"session {session.session_id}: session {owner} has the same address or prefix")
                found[entry.key] = entry, session.session_id
        return found

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions from all planes and from the balancer, and return their last usage by identifier."""
        numbers = list(dict.fromkeys(session_ids))
        known = [number for number in numbers if self._holders(number)]
        keys = [key for number in known for key in self._keys.get(number, ())]
        self._table.change(removed=keys)
        # Each step may fail with its switch, and is not repeated then when the whole is.
        for key in keys:
            del self._owners[key]
        for number in known:
            self._keys.pop(number, None)
        for plane in self._planes.values():
            for number, used in plane.sessions.remove(numbers).items():
                self._left[number] = total(self._left.get(number, NO_USAGE), used)
        for number in numbers:
            self._heard.pop(number, None)
        return {number: self._left.pop(number) for number in numbers if number in self._left}

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Return by identifier the usage of sessions, summed over all planes that have had them, and remember it."""
        numbers = list(dict.fromkeys(session_ids))
        parts = [plane.sessions.usage(numbers) for plane in self._planes.values()]
        found = {
            number: total(*(part[number] for part in parts if number in part))
            for number in numbers
            if any(number in part for part in parts)
        }
        self._heard |= found
        return found

    def installed(self) -> dict[int, Session]:
        """Return by identifier the sessions in the switches, each as the plane that serves its access line has it."""
        found: dict[int, Session] = {}
        for plane in self._planes.values():
            for number, session in plane.sessions.read().items():
                if self._plane_of(session.line) is plane:
                    found[number] = session
        return found

    def send(self, line: Line, frame: bytes) -> None:
        """Send a frame to an access line through the authentication plane.

        Raise :class:`NetworkError` if the line's port is no access port.
        """
        port = self._edges.access_port(line.port)
        if port is None:
            raise NetworkError(f"{line}: port {line.port} is no access port")
        plane = self._authentication
        plane.client.packet_out(tagged(line, frame, port.s_tpid, port_tag=True), egress_port=plane.trunk)

    def receive(self, handler: Handler) -> None:
        """Set ``handler``, which is called with the access line and the frame for each frame for the control plane."""
        self._handler = handler

    def packet_in(self, packet: bytes, metadata: Mapping[str, int]) -> None:
        """Process a packet from a switch: hand it to the control plane if it has a port tag, else answer ARP or a solicitation."""
        port = metadata["ingress_port"]
        if packet[12:14] == program.ETHERTYPE_PORT_TAG.to_bytes(2, "big"):
            self._handler(*untagged(packet, port))
        else:
            answer_neighbour(self._balancer.client, self._edges.core[0], port, packet, self.owns)

    def listen(self) -> None:
        """Process the packet-ins of all clients from now on, in the threads that receive for the clients."""
        clients = [self._balancer.client, self._authentication.client]
        for client in clients + [plane.cables.client for plane in self._planes.values()]:
            client.on_packet_in = lambda packet: self.packet_in(packet.payload, packet.metadata)

    # ---- Handover ----

    def drain(self, name: str, done: Callable[[], None] | None = None) -> None:
        """Move all sessions of a plane to the others, make before break; the plane serves no access line until :meth:`undrain`.

        ``done`` is called when no session is left on it. Raise :class:`NetworkError` if there is no such plane, or no other plane
        is left.
        """
        self._check(name)
        if not self._planes.keys() - self._drained - {name}:
            raise NetworkError(f"no forwarding plane but {name!r} is left")
        self._drained.add(name)
        try:
            self._table.change(self._static())
            self._rebalance(done)
        except HoldfastError:
            self._drained.discard(name)
            with suppress(HoldfastError):
                self._table.change(self._static())
            raise

    def undrain(self, name: str, done: Callable[[], None] | None = None) -> None:
        """Give a drained plane its share of the access lines again, make before break.

        ``done`` is called when the lines' sessions are on this plane only. Raise :class:`NetworkError` if there is no such plane.
        """
        self._check(name)
        self._drained.discard(name)
        self._table.change(self._static())
        self._rebalance(done)

    def _rebalance(self, done: Callable[[], None] | None = None) -> None:
        """Move sessions between planes, make before break, so that each plane serves its share of the buckets.

        ``done`` is called when all sessions have moved.
        """
        wanted = assigned(self._takers())
        moving = [bucket for bucket, name in wanted.items() if self._serving[bucket] != name]
        leaving: dict[str, list[int]] = {}
        arriving: dict[str, list[Session]] = {}
        in_motion = set(moving)
        for plane in self._planes.values():
            for number, session in plane.sessions.installed.items():
                bucket = bucket_of(session.line)
                if bucket in in_motion and self._serving[bucket] == plane.name:
                    leaving.setdefault(plane.name, []).append(number)
                    arriving.setdefault(wanted[bucket], []).append(session)
        for name, sessions in arriving.items():
            self._planes[name].sessions.install(sessions)
        for bucket in moving:
            self._serving[bucket] = wanted[bucket]
        self._table.change(self._buckets(moving))

        def finish() -> None:
            for name, numbers in leaving.items():
                plane = self._planes.get(name)
                if plane is not None:
                    known = plane.sessions.installed
                    there = [number for number in numbers if number in known]
                    # A plane that has failed since then is found to be lost.
                    with suppress(HoldfastError):
                        self._retire(
                            plane, [number for number in there if self._plane_of(known[number].line) is not plane]
                        )
            if done is not None:
                done()

        self._clock.call_later(self._drain_s, finish)

    def _retire(self, plane: _Plane, numbers: list[int]) -> None:
        """Remove sessions from ``plane``, and add their usage there to their usage on the planes that have them now."""
        last = plane.sessions.remove(numbers)
        for other in self._planes.values():
            known = other.sessions.installed
            there = [number for number in last if number in known]
            earlier = {number: total(other.sessions.earlier(number), last[number]) for number in there}
            other.sessions.install([known[number] for number in there], earlier)

    def lost(self, *names: str) -> None:
        """Remove failed planes, and install their sessions on the other planes with the usage that was read last.

        Raise :class:`NetworkError` if no plane is left, and the error of a plane that fails during the call; then nothing has
        changed.
        """
        for name in names:
            self._check(name)
        wanted = assigned(self._takers(names))
        before = dict(self._planes), dict(self._serving)
        failed = [self._planes.pop(name) for name in names]
        moving = [bucket for bucket, server in self._serving.items() if server in names]
        for bucket in moving:
            self._serving[bucket] = wanted[bucket]
        try:
            self._recover(session for plane in failed for session in plane.sessions.installed.values())
        except HoldfastError:
            self._planes, self._serving = before
            raise
        self._table.change(self._buckets(moving))

    def _recover(self, sessions: Iterable[Session]) -> None:
        """Install sessions on the planes that serve their access lines, with the usage that was read last.

        A session in a handover is already on its new plane; it is installed again to add its usage on the old plane.
        """
        arriving: dict[str, list[Session]] = {}
        for session in sessions:
            to, number = self._plane_of(session.line), session.session_id
            if number not in to.sessions or to.sessions.earlier(number) == NO_USAGE:
                arriving.setdefault(to.name, []).append(to.sessions.installed.get(number, session))
        for name, those in arriving.items():
            earlier = {each.session_id: self._heard.get(each.session_id, NO_USAGE) for each in those}
            self._planes[name].sessions.install(those, earlier)

    def add(self, name: str, cables: ForwardingPlane, done: Callable[[], None] | None = None) -> None:
        """Add a forwarding plane, which gets its share of the access lines unless it is drained.

        ``done`` is called when all sessions have moved. A plane that was lost is added again in this way; sessions that are still
        in it are removed. Raise :class:`NetworkError` if there is a plane with this name.
        """
        if name in self._planes:
            raise NetworkError(f"there is a forwarding plane {name!r} already")
        plane = _Plane(name, cables, SessionTables(cables.client, Way(self._edges, cables.trunk)))
        plane.sessions.remove(list(plane.sessions.installed))
        self._planes[name] = plane
        self._table.change(self._static())
        self._rebalance(done)

    def _check(self, name: str) -> None:
        if name not in self._planes:
            raise NetworkError(f"there is no forwarding plane {name!r}; there are {', '.join(self._planes)}")
