"""Two ends of TCP connections between the same addresses and ports, as RFC 9293, section 3.10.7 (with RFC 5961) has them.

They open connections from either side or both, send data, reset and forget. They have no windows, FIN and time.
It knows nothing of the firewall: a test is the network between the ends.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

SYN, RST, ACK = 2, 4, 16
WINDOW = 65_535

State: TypeAlias = Literal["listen", "closed", "syn_sent", "syn_received", "established"]


@dataclass(frozen=True)
class Segment:
    """A TCP segment with ``data`` bytes; ``scale`` is the window scale option of one with SYN."""

    flags: int
    seq: int
    ack: int = 0
    data: int = 0
    scale: int | None = None

    @property
    def after(self) -> int:
        """The sequence number that follows the segment's last one."""
        return (self.seq + self.data + (1 if self.flags & SYN else 0)) % 2**32


@dataclass
class End:
    """One end of a TCP connection. Its methods return the segments that it sends."""

    rng: random.Random
    listens: bool = True
    state: State = "closed"
    una: int = 0
    nxt: int = 0
    received: int = 0
    scale: int | None = None
    passive: bool = False

    def __post_init__(self) -> None:
        self.reboot()

    def reboot(self) -> list[Segment]:
        """Set the state to LISTEN or CLOSED, as after a restart of the host; return no segments."""
        self.state = "listen" if self.listens else "closed"
        return []

    def _begin(self) -> None:
        # Often numbers that wrap soon; none that an earlier connection would take for its own.
        self.una = self.rng.choice((self.rng.getrandbits(32), -self.rng.randrange(3_000) % 2**32))
        self.nxt = (self.una + 1) % 2**32
        self.scale = self.rng.choice((None, 0, 7, 14))

    def connect(self) -> list[Segment]:
        """Open a connection and return its SYN segment; do nothing and return none if there is a connection already."""
        if self.state not in ("listen", "closed"):
            return []
        self._begin()
        self.state, self.passive = "syn_sent", False
        return self.again()

    def again(self) -> list[Segment]:
        """Return the unacknowledged segment that is sent again when the retransmission timer expires, if there is one."""
        if self.state == "syn_sent":
            return [Segment(SYN, self.una, scale=self.scale)]
        if self.state == "syn_received":
            return [Segment(SYN | ACK, self.una, self.received, scale=self.scale)]
        if self.state == "established" and self.una != self.nxt:
            return [Segment(ACK, self.una, self.received, (self.nxt - self.una) % 2**32)]
        return []

    def send(self) -> list[Segment]:
        """Return one segment with data, or none.

        There is none without an established connection, and with more than 20,000 bytes unacknowledged.
        """
        if self.state != "established" or (self.nxt - self.una) % 2**32 > 20_000:
            return []
        data = self.rng.choice((1, 100, 1000))
        segment = Segment(ACK, self.nxt, self.received, data)
        self.nxt = segment.after
        return [segment]

    def abort(self) -> list[Segment]:
        """Drop the connection, if there is one, and return the RST that aborts it at the other end; else return none."""
        had = self.state in ("established", "syn_received")
        self.reboot()
        return [Segment(RST, self.nxt)] if had else []

    def receive(self, segment: Segment) -> list[Segment]:
        """Process a segment that arrives, and return the segments that the end sends in answer."""
        if self.state == "closed":
            return self._refuse(segment)
        if self.state == "listen":
            return self._in_listen(segment)
        if self.state == "syn_sent":
            return self._in_syn_sent(segment)
        return self._synchronized(segment)

    def _refuse(self, segment: Segment) -> list[Segment]:
        if segment.flags & RST:
            return []
        if segment.flags & ACK:
            return [Segment(RST, segment.ack)]
        return [Segment(RST | ACK, 0, segment.after)]

    def _in_listen(self, segment: Segment) -> list[Segment]:
        if segment.flags & (RST | ACK):
            return self._refuse(segment)
        self._begin()
        self.state, self.passive, self.received = "syn_received", True, segment.after
        return self.again()

    def _in_syn_sent(self, segment: Segment) -> list[Segment]:
        acks = bool(segment.flags & ACK)
        if acks and segment.ack != self.nxt:
            return self._refuse(segment)
        if segment.flags & RST:
            if acks:
                self.reboot()
            return []
        if not segment.flags & SYN:
            return []
        self.received = segment.after
        if acks:
            self.una, self.state = segment.ack, "established"
            return [Segment(ACK, self.nxt, self.received)]
        self.state = "syn_received"
        return self.again()

    def _acceptable(self, segment: Segment) -> bool:
        first = (segment.seq - self.received) % 2**32
        length = (segment.after - segment.seq) % 2**32
        return first < WINDOW or (length > 0 and (first + length - 1) % 2**32 < WINDOW)

    def _synchronized(self, segment: Segment) -> list[Segment]:
        mine = [Segment(ACK, self.nxt, self.received)]
        if segment.flags & RST:
            if segment.seq == self.received:
                self.reboot()
                return []
            return mine if self._acceptable(segment) else []
        if segment.flags & SYN and not (self.state == "syn_received" and segment.flags & ACK):
            if self.state == "syn_received" and segment.after == self.received:
                return self.again()
            if self.state == "syn_received" and self.passive and self._acceptable(segment):
                self.reboot()
                return []
            return mine
        if self.state == "syn_received" and segment.flags & ACK:
            # The other's SYN comes again with its acknowledgment where both have opened (section 3.5, figure 7).
            if segment.ack != self.nxt:
                return self._refuse(segment) if self._acceptable(segment) else mine
            if segment.flags & SYN and segment.after != self.received:
                return mine
            self.una, self.state = segment.ack, "established"
            if segment.flags & SYN:
                return [Segment(ACK, self.nxt, self.received)]
        elif not self._acceptable(segment):
            return mine
        if (segment.ack - self.una) % 2**32 <= (self.nxt - self.una) % 2**32:
            self.una = segment.ack
        elif (segment.ack - self.nxt) % 2**32 < 2**31:
            return mine
        if segment.data and (self.received - segment.seq) % 2**32 <= segment.data:
            self.received = segment.after
        return [Segment(ACK, self.nxt, self.received)] if segment.data else []


Network: TypeAlias = Callable[[int, Segment], bool]
"""Whether a segment of an end gets to the other."""


@dataclass
class Pair:
    """Two ends and the segments on their way between them, in order for each direction."""

    rng: random.Random
    network: Network
    openers: tuple[int, ...] = (0, 1)
    ends: tuple[End, End] = field(init=False)
    flying: tuple[deque[Segment], deque[Segment]] = field(default_factory=lambda: (deque(), deque()))
    dropped: list[tuple[int, Segment]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Each has numbers of its own, so that they do not depend on the network.
        self.ends = (End(random.Random(self.rng.random())), End(random.Random(self.rng.random())))

    def leave(self, end: int, segments: list[Segment]) -> None:
        """Add segments of ``end`` to those that are on their way to the other end."""
        self.flying[end].extend(segments)

    def deliver(self, end: int) -> None:
        """Deliver the next segment of ``end`` to the other end; add it to ``dropped`` if the network drops it."""
        if not self.flying[end]:
            return
        segment = self.flying[end].popleft()
        if self.network(end, segment):
            self.leave(1 - end, self.ends[1 - end].receive(segment))
        else:
            self.dropped.append((end, segment))

    def settle(self) -> None:
        """Deliver all segments on their way and the answers to them, in at most 50 rounds; discard the rest.

        So ends that answer each other's answers endlessly fall silent, as RFC 5961, section 7, demands.
        """
        for _ in range(50):
            for end in (0, 1):
                self.deliver(end)
        for queue in self.flying:
            queue.clear()

    def act(self) -> str:
        """Perform a random action at a random end or on the segments on their way; return its name and the end as text."""
        end = self.rng.randrange(2)
        what = self.rng.choice(
            ("connect", "connect", "reboot", "abort", "send", "send", "again", "settle") + 6 * ("deliver",)
        )
        if what == "settle":
            self.settle()
        elif what == "deliver":
            self.deliver(end)
        elif what != "connect" or end in self.openers:
            self.leave(end, getattr(self.ends[end], what)())
        return f"{what} {end}"

    def connects(self, end: int, most: int, wait: Callable[[int], None] = lambda seconds: None) -> int:
        """Restart an end, open a connection and exchange data; return the number of SYNs that it took, ``most + 1`` if it failed.

        ``wait``: called with the seconds before each repeated SYN (RFC 6298, 5.5).
        """
        self.settle()
        self.ends[end].reboot()
        self.leave(end, self.ends[end].connect())
        for tries in range(1, most + 1):
            self.settle()
            if self.ends[end].state == self.ends[1 - end].state == "established":
                self.leave(end, self.ends[end].send())
                self.leave(1 - end, self.ends[1 - end].send())
                self.settle()
                if all(a.nxt == b.received for a, b in (self.ends, self.ends[::-1])):
                    return tries
            wait(2 ** (tries - 1))
            if self.ends[end].state in ("listen", "closed"):
                self.leave(end, self.ends[end].connect())
            else:
                self.leave(end, self.ends[end].again())
        return most + 1
