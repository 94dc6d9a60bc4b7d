"""Membership at a network's edge for a controller: it hears IGMP and MLD, asks hosts, and says which channels are wanted.

A controller makes an :class:`Overlay`, names a handler of changes, starts it in ``on_start``, and gives it every packet-in::

    self.overlay = Overlay(edge_ports(topology), OverlayParameters())
    self.overlay.changed(self._write_channels)
    self.overlay.start(self.plane)
    ...
    def on_packet_in(self, switch, packet, metadata):
        self.overlay.on_packet_in(switch, packet, metadata["ingress_port"])

The handler gets all changes that follow from one message or one moment, so that they can be one batch for each switch.
Queries leave by packet-outs with an ``egress_port``. No program and no table of a switch is known here.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

from pydantic import Field

from holdfast.control.membership import frames
from holdfast.control.membership.channels import (
    ChannelChange,
    Channels,
    ChannelTable,
    PortKey,
    memberships_of,
)
from holdfast.control.membership.filters import NOTHING, Filter, FilterChange
from holdfast.control.membership.limits import Allowance, Room
from holdfast.control.membership.messages import Address, Malformed, MalformedError, Report
from holdfast.control.membership.querier import Outcome, Querier, QuerierParameters
from holdfast.errors import HoldfastError, NetworkError
from holdfast.parameters import PS_PER_MS

if TYPE_CHECKING:
    from holdfast.controller import ControlPlane
    from holdfast.topology import Topology


@dataclass(frozen=True, slots=True)
class EdgePort:
    """A port with hosts. The addresses are the switch's there; without one, the protocol is not spoken.

    ``ipv6`` is link-local. ``fast_leave``: there is one host behind the port, so that what it leaves ends at once; if others report
    a group too, they are asked all the same. ``router``: there are routers behind the port, whose queries count.
    """

    mac: bytes
    ipv4: IPv4Address | None
    ipv6: IPv6Address | None = None
    fast_leave: bool = False
    router: bool = False

    def __post_init__(self) -> None:
        """Check the addresses. Raises :class:`NetworkError` if one of them cannot be the source of queries."""
        if len(self.mac) != 6 or self.mac[0] & 1:
            raise NetworkError(f"mac is {self.mac.hex()}; it must be the address of one station")
        if self.ipv6 is not None and not self.ipv6.is_link_local:
            raise NetworkError(f"queries of MLD come from a link-local address (RFC 3810, 5.1.14), not {self.ipv6}")


def link_local(mac: bytes) -> IPv6Address:
    """Return the link-local address with the interface identifier of a MAC address (RFC 4291, appendix A; RFC 2464, 5)."""
    identifier = bytes((mac[0] ^ 2,)) + mac[1:3] + b"\xff\xfe" + mac[3:]
    return IPv6Address(b"\xfe\x80" + bytes(6) + identifier)


def edge_ports(
    topology: Topology, *, fast_leave: bool | Iterable[str] = False, routers: Iterable[str] = ()
) -> dict[PortKey, EdgePort]:
    """Return the ports to which a map's hosts are attached, with the hosts' gateways as the source addresses of queries.

    MLD is used with all hosts, as each has a link-local address if it has IPv6 at all. ``fast_leave``: True for all hosts, or the
    names of hosts, at whose ports a leave takes effect at once. ``routers``: the hosts that are multicast routers and may be
    queriers in place of the switch. Raise :class:`NetworkError` for names that no host has.
    """
    routers = set(routers)
    named = set(topology.hosts) if fast_leave is True else set() if fast_leave is False else set(fast_leave)
    if unknown := named - topology.hosts.keys():
        raise NetworkError(f"there is no host {min(unknown)!r}, for which fast_leave is asked")
    if unknown := routers - topology.hosts.keys():
        raise NetworkError(f"there is no host {min(unknown)!r} to be a router")
    ports = {}
    for name, host in topology.hosts.items():
        place = topology.attachment(name)
        mac = topology.port_mac(place.switch, place.port)
        ports[place.switch, place.port] = EdgePort(mac, host.gateway, link_local(mac), name in named, name in routers)
    return ports


class OverlayParameters(QuerierParameters):
    """Parameters of the queriers of all ports, and what these may take of the switches and the controller together.

    ``channels``: (S,G) and (*,G) of all ports; half of them are kept for ports within their equal share (:class:`~.limits.Room`).
    ``changes_per_s``, ``changes_burst``: changes of channels that reports of a port may cause; reports beyond are refused whole.
    ``records_per_s``, ``records_burst``: the same of records, and of sources in them, whatever they change.
    ``reports_per_s``, ``reports_burst``: packets of a port that its switch hands to the controller.
    """

    channels: int = Field(default=49_152, ge=1)
    changes_per_s: int = Field(default=1000, ge=1, le=1_000_000)
    changes_burst: int = Field(default=8192, ge=1)
    records_per_s: int = Field(default=2000, ge=1, le=1_000_000)
    records_burst: int = Field(default=16_384, ge=1)
    reports_per_s: int = Field(default=100, ge=1, le=1_000_000)
    reports_burst: int = Field(default=500, ge=1, le=1_000_000)


Handler = Callable[[list[ChannelChange]], None]


class Overlay:
    """The queriers of ports, and the channels that follow. Counters are in :attr:`malformed` and :attr:`refused`."""

    def __init__(self, ports: Mapping[PortKey, EdgePort], parameters: OverlayParameters | None = None) -> None:
        self.ports = dict(ports)
        self.parameters = parameters or OverlayParameters()
        self.malformed: Counter[Malformed] = Counter()
        """Messages that were ignored, by reason."""
        self.unexpected = 0
        """Messages from ports without hosts."""
        self.heard = 0
        """Messages that were understood."""
        self.unsent = 0
        """Queries that could not be sent: their switch was not there."""
        self._busy: dict[PortKey, Counter[str]] = {}
        self._changes = {
            place: Allowance(self.parameters.changes_per_s, self.parameters.changes_burst) for place in self.ports
        }
        self._records = {
            place: Allowance(self.parameters.records_per_s, self.parameters.records_burst) for place in self.ports
        }
        self._room = Room(self.parameters.channels, 2 * len(self.ports))
        self._hidden = 0
        self._own_before = 0
        self._table = ChannelTable()
        self._queriers: dict[tuple[PortKey, int], Querier] = {}
        self._handlers: list[Handler] = []
        self._plane: ControlPlane | None = None
        self._wakes: list[tuple[int, PortKey, int]] = []
        self._woken_at: dict[tuple[PortKey, int], int] = {}
        self._called_at_ps: int | None = None
        self._settled_ps = 0

    # ---- For the controller ----

    @property
    def channels(self) -> Channels:
        """The channels that members want now; this mapping changes with reports, so copy it to keep it."""
        return self._table.channels

    def changed(self, handler: Handler) -> None:
        """Add a handler that is called with all changes of one message, or of one time, after :attr:`channels` includes them."""
        self._handlers.append(handler)

    @property
    def refused(self) -> Counter[str]:
        """The number of refused records and messages by reason, over all ports (see :attr:`refused_by_port`)."""
        return sum(self.refused_by_port.values(), Counter())

    @property
    def refused_by_port(self) -> dict[PortKey, Counter[str]]:
        """Records that changed nothing, by port and why; besides whole reports (``change_rate``, ``record_rate``) and queries.

        Ports that were refused nothing are not there.
        """
        found = {place: Counter(counts) for place, counts in self._busy.items()}
        for (place, _), querier in self._queriers.items():
            if querier.refused:
                found.setdefault(place, Counter()).update(querier.refused)
        return found

    def channels_at(self, place: PortKey) -> int:
        """Return the number of channels that a port's memberships take, of IPv4 and IPv6 together."""
        return sum(self._queriers[place, it].channels for it in (4, 6) if (place, it) in self._queriers)

    @property
    def is_settled(self) -> bool:
        """True if all hosts have had the time to answer the first general queries."""
        return self._plane is not None and self._plane.now_ps >= self._settled_ps

    def start(self, plane: ControlPlane, adopted: Channels | None = None) -> None:
        """Start to send queries to hosts. ``adopted``: channels that an earlier controller left in the switches.

        Their ports stay members for the Group Membership Interval without a report, so that a controller that takes over changes
        nothing until the hosts have had time to report. No handler is called for them.
        """
        self._plane = plane
        now_ps = plane.now_ps
        for place, port in self.ports.items():
            for address in (port.ipv4, port.ipv6):
                if address is not None:
                    querier = Querier(
                        address,
                        self.parameters,
                        now_ps,
                        fast_leave=port.fast_leave,
                        hears_queries=port.router,
                        has_room=self._has_room,
                    )
                    self._queriers[place, address.version] = querier
        for (place, group), wanted in memberships_of(adopted or {}).items():
            adopter = self._queriers.get((place, group.version))
            if adopter is not None:
                adopter.adopt(group, wanted, now_ps)
                self._table.change(place, FilterChange.between(group, NOTHING, wanted))
        repeats = (self.parameters.startup_query_count or self.parameters.robustness) - 1
        self._settled_ps = now_ps + repeats * self.parameters.startup_interval_ps + self.parameters.response_ps
        for key in self._queriers:
            self._plan(*key)
        self._wake()

    def on_packet_in(self, switch: str, packet: bytes, ingress_port: int) -> bool:
        """Process a packet-in; return True if it is a message of IGMP or MLD, or a malformed one.

        Raises :class:`NetworkError` if the overlay is not started.
        """
        if self._plane is None:
            raise NetworkError("the overlay is not started")
        try:
            source, message = frames.parse(packet)
        except MalformedError as error:
            if error.reason == Malformed.OTHER_PROTOCOL:
                return False
            self.malformed[error.reason] += 1
            return True
        key = (switch, ingress_port), source.version
        querier = self._queriers.get(key)
        if querier is None:
            self.unexpected += 1
            return True
        self.heard += 1
        place, now_ps = key[0], self._plane.now_ps
        for reason, allowance in (("change_rate", self._changes[place]), ("record_rate", self._records[place])):
            if allowance.wait_ps(now_ps):
                self._busy.setdefault(place, Counter())[reason] += 1
                return True
        if isinstance(message, Report):
            self._records[place].spend(now_ps, sum(1 + len(record.sources) for record in message.records))
        self._own_before, hidden = querier.channels, querier.hidden
        changes = self._take(place, querier, querier.heard(source, message, now_ps))
        self._hidden += querier.hidden - hidden
        self._changes[place].spend(now_ps, len(changes))
        self._plan(*key)
        self._call_back()
        self._tell(changes)
        return True

    def _has_room(self, own: int, new: int) -> bool:
        """Return True if the limit on the channels of all ports allows a port ``new`` channels, with which it has ``own``.

        Channels that the present message has already added are counted too, as they are not in the table yet.
        """
        used = self._table.count + self._hidden + max(0, own - new - self._own_before)
        return self._room.has(used, own, new)

    def filters(self, place: PortKey) -> dict[Address, Filter]:
        """Return the filters of a port by group, of IPv4 and IPv6."""
        found: dict[Address, Filter] = {}
        for version in (4, 6):
            if (querier := self._queriers.get((place, version))) is not None:
                found |= querier.groups
        return found

    # ---- Time ----

    def _plan(self, place: PortKey, version: int) -> None:
        """Schedule the next call of a port's querier, for the time that the querier has named."""
        due_ps = self._queriers[place, version].next_ps
        known_ps = self._woken_at.get((place, version))
        if known_ps is None or due_ps < known_ps:
            self._woken_at[place, version] = due_ps
            heapq.heappush(self._wakes, (due_ps, place, version))

    def _call_back(self) -> None:
        """Schedule a call of :meth:`_wake` for the earliest time that a querier has named."""
        if self._plane is None or not self._wakes:
            return
        due_ps = self._wakes[0][0]
        if self._called_at_ps is None or due_ps < self._called_at_ps:
            self._called_at_ps = due_ps
            self._plane.call_later(max(0, due_ps - self._plane.now_ps) / PS_PER_MS, partial(self._woken, due_ps))

    def _woken(self, at_ps: int) -> None:
        """Call :meth:`_wake`, unless a call for an earlier time has replaced the call for ``at_ps``."""
        if self._called_at_ps == at_ps:
            self._called_at_ps = None
            self._wake()

    def _wake(self) -> None:
        """Call the queriers that are due, send their queries, and report the changes of channels."""
        assert self._plane is not None
        now_ps = self._plane.now_ps
        changes: list[ChannelChange] = []
        while self._wakes and self._wakes[0][0] <= now_ps:
            due_ps, place, version = heapq.heappop(self._wakes)
            if self._woken_at.get((place, version)) != due_ps:
                continue
            del self._woken_at[place, version]
            querier = self._queriers[place, version]
            hidden = querier.hidden
            changes += self._take(place, querier, querier.due(now_ps))
            self._hidden += querier.hidden - hidden
            self._plan(place, version)
        self._call_back()
        self._tell(changes)

    # ---- Outcomes ----

    def _take(self, place: PortKey, querier: Querier, outcome: Outcome) -> list[ChannelChange]:
        assert self._plane is not None
        switch, port = place
        for query in outcome.queries:
            frame = frames.query(query, self.ports[place].mac, querier.address)
            try:
                self._plane.clients[switch].packet_out(frame, egress_port=port)
            except HoldfastError:
                self.unsent += 1  # the next one is due anyway
        changes = []
        for change in outcome.changes:
            changes += self._table.change(place, change)
        return changes

    def _tell(self, changes: list[ChannelChange]) -> None:
        if changes:
            for handler in self._handlers:
                handler(changes)
