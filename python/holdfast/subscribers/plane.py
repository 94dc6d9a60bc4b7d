"""The interface between control plane and user plane: requests and reports (TR-459's state control interface).

All objects are immutable values. A user plane holds one `Session` for each session. It hands every discovery and PPP control
frame to the control plane with the line that it came from, and sends frames that the control plane wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Protocol

from holdfast.errors import HoldfastError

AccessNode = tuple[int, int]
"""A port and an outer tag."""


@dataclass(frozen=True, order=True)
class Line:
    """A subscriber's line: a port towards an access node and up to two VLAN tags (TR-101, 1:1 or N:1). An absent tag is 0."""

    port: int
    s_tag: int = 0
    c_tag: int = 0

    @property
    def access_node(self) -> AccessNode:
        """The port and the outer tag, which all access lines of one access node have in common.

        A subscriber may write inner tags itself.
        """
        return self.port, self.s_tag


@dataclass(frozen=True)
class Rates:
    """Limits of a session in bits per second, without Ethernet's preamble and gap; None is unlimited."""

    up_bit_s: int | None = None
    down_bit_s: int | None = None


@dataclass(frozen=True)
class Session:
    """A session as the user plane must forward it. `session_id` is 1 to 65,534, unique on a user plane (RFC 2516, section 4).

    `magic` is the gateway's own LCP magic number: the data plane answers Echo-Requests with it (RFC 1661, section 5.8).
    `peer_mru` is the largest PPP payload, in bytes, that the subscriber takes; with `mss_clamp`, TCP's MSS option is
    lowered to what fits. `ipv6_prefix` is the /64 of the router advertisements, `delegated` the prefix of DHCPv6.
    """

    session_id: int
    line: Line
    mac: bytes
    magic: int
    peer_mru: int = 1492
    mss_clamp: bool = True
    ipv4: IPv4Address | None = None
    ipv6_interface: IPv6Address | None = None
    ipv6_prefix: IPv6Network | None = None
    delegated: IPv6Network | None = None
    rates: Rates = Rates()


@dataclass(frozen=True)
class Usage:
    """Packets and bytes (of IP) of a session since it was installed, in both directions."""

    packets_up: int = 0
    bytes_up: int = 0
    packets_down: int = 0
    bytes_down: int = 0

    def with_each(self, function: Callable[[int, int], int], other: Usage) -> Usage:
        """Return a usage each count of which is ``function`` of this usage's count and the other's."""
        return Usage(
            function(self.packets_up, other.packets_up),
            function(self.bytes_up, other.bytes_up),
            function(self.packets_down, other.packets_down),
            function(self.bytes_down, other.bytes_down),
        )


OUT_OF_REACH = frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "DATA_LOSS"))
"""Codes (gRPC's) of errors that say that a user plane did not answer: what it has done, nobody knows."""


def is_out_of_reach(error: HoldfastError) -> bool:
    """Return True if a user plane's error means that the plane did not answer, and False if the plane refused a request."""
    return getattr(error, "code", None) in OUT_OF_REACH


class UserPlane(Protocol):
    """A user plane, or several behind one face. A call returns when the data plane has it; a failure raises a HoldfastError.

    What a call has done that failed may be in part. The same call again, also for each session alone, does the rest of it.
    """

    def install(self, sessions: Iterable[Session]) -> None:
        """Add sessions in one batch; a session with the `session_id` of an installed one replaces it and continues its counters.

        If a write of a single session fails, the user plane has that session in the state from before the call.
        """

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions. Returns their last usage by session id, in the order given, without sessions that were not installed."""

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Return the usage of sessions by session id, in the order given, without sessions that are not installed."""

    def installed(self) -> dict[int, Session]:
        """Read back the sessions that the data plane forwards, by session id, to compare them with the store after a restart."""

    def send(self, line: Line, frame: bytes) -> None:
        """Send an Ethernet frame without VLAN tags to an access line (a port and its tags); the user plane inserts these tags."""

    def receive(self, handler: Callable[[Line, bytes], None]) -> None:
        """Set the handler, which is called with the access line and the untagged bytes of each discovery and PPP control frame."""


Address = IPv4Address | IPv6Address


def plane_addresses(plane: UserPlane) -> tuple[Address, ...]:
    """Return the user plane's own addresses towards the core, or an empty tuple if it has no property ``addresses``."""
    return tuple(getattr(plane, "addresses", ()))


class ForwardingPlanes(Protocol):
    """Operators' requests to a user plane of several forwarding planes. Raises a HoldfastError for one that is not there."""

    @property
    def planes(self) -> dict[str, int]:
        """The number of sessions of each forwarding plane."""

    @property
    def drained(self) -> frozenset[str]:
        """The forwarding planes that serve no line."""

    def drain(self, name: str, done: Callable[[], None]) -> None:
        """Move all sessions of a plane to the other planes, and give it no new ones; call `done` when it has none left."""

    def undrain(self, name: str, done: Callable[[], None]) -> None:
        """Give a drained plane its share of access lines again; call `done` when the plane serves all of its share."""


class Behind:
    """A user plane that passes everything on to another one; its subclasses add something."""

    def __init__(self, plane: UserPlane) -> None:
        self._plane = plane

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses of the user plane behind this one."""
        return plane_addresses(self._plane)

    def install(self, sessions: Iterable[Session]) -> None:
        """Add or replace sessions on the user plane behind this one."""
        self._plane.install(sessions)

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Remove sessions from the user plane behind this one, and return their last usage by session id."""
        return self._plane.remove(session_ids)

    def usage(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        """Return the usage of sessions on the user plane behind this one, by session id."""
        return self._plane.usage(session_ids)

    def installed(self) -> dict[int, Session]:
        """Return the sessions of the user plane behind this one, by session id."""
        return self._plane.installed()

    def send(self, line: Line, frame: bytes) -> None:
        """Send an Ethernet frame to an access line through the user plane behind this one."""
        self._plane.send(line, frame)

    def receive(self, handler: Callable[[Line, bytes], None]) -> None:
        """Set the handler of discovery and PPP control frames at the user plane behind this one."""
        self._plane.receive(handler)


class Clock(Protocol):
    """Time for timers, in seconds: the simulation's or the machine's. State machines keep no other clock."""

    def now(self) -> float:
        """Return the seconds since an arbitrary but fixed time."""

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call `action` after `delay_s` seconds; return a function that cancels this."""
