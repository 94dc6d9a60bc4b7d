"""A PPP peer that answers as it is told to, right or wrong (RFC 1661, 1332, 1334, 1994, 5072), and what must hold whatever it says.

It reads and writes its packets itself and knows nothing of the gateway's automata: :class:`Peer` sees frames alone.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line
from holdfast.subscribers.tests.worlds import MAC, MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList

LCP, IPCP, IPV6CP, PAP, CHAP = 0xC021, 0x8021, 0x8057, 0xC023, 0xC223
REQUEST, ACK, NAK, REJECT, TERMINATE, TERMINATE_ACK, CODE_REJECT, PROTOCOL_REJECT, ECHO = range(1, 10)
CONTROL = LCP, IPCP, IPV6CP

RESTART_S, MAX_CONFIGURE, MAX_TERMINATE = 3.0, 10, 2
"""RFC 1661, section 4.6, as the gateway has them."""

SETUP_S = 30.0
MOST_PACKETS = 200
"""Packets that the gateway may send in a session before that is open: requests, answers to as many, and some to spare."""

_SPOKEN_MOST = 4000
"""Packets after which a peer falls silent, so that an exchange that has no end ends."""

Options = list[tuple[int, bytes]]
Reactions = dict[tuple[int, int], str]
"""The names of a peer's reactions, by protocol and code."""


def read_options(data: bytes) -> Options:
    """Parse configuration options up to the first one with a wrong length."""
    found, at = [], 0
    while at + 2 <= len(data) and data[at + 1] >= 2:
        found.append((data[at], data[at + 2 : at + data[at + 1]]))
        at += data[at + 1]
    return found


def write_options(options: Options) -> bytes:
    """Return the bytes of configuration options."""
    return b"".join(bytes((kind, 2 + len(value))) + value for kind, value in options)


class World:
    """A gateway with a user plane in memory, and lines with peers."""

    def __init__(self, **changes: object) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        conf = configuration(**changes)
        self.gateway = Gateway(
            conf, self.plane, self.clock, UserList(conf.users), random=seeded(1), wall=self.clock.now
        )
        self.gateway.start()

    def peer(self, number: int = 1, max_payload: int | None = None, reactions: Reactions | None = None) -> Peer:
        """Return a new peer on a line of its own, after its PPPoE discovery."""
        peer = Peer(self, number, max_payload)
        peer.reactions = reactions or {}
        peer.discover()
        return peer


HONEST: dict[int, Options] = {
    LCP: [(1, b"\x05\xd4"), (5, b"\1\2\3\4")],
    IPCP: [(3, bytes(4))],
    IPV6CP: [(1, b"\2\0\0\0\0\0\0\1")],
}
"""The options that a peer asks for at first."""


class Peer:
    """One session's other end. ``reactions`` says by protocol and code what it does about a packet; without one, it is silent."""

    def __init__(self, world: World, number: int = 1, max_payload: int | None = None) -> None:
        self.world, self.max_payload = world, max_payload
        self.line, self.mac = Line(1, 100, number), bytes.fromhex("0200000100") + bytes((number,))
        self.session = 0
        self.heard: list[tuple[float, int, bytes]] = []
        self.discovery: dict[int, tuple[int, Options]] = {}
        self.reactions: Reactions = {}
        self.last: dict[int, bytes] = {}
        self.mine: dict[int, Options] = dict(HONEST)
        self.refused: list[bytes] = []
        self.repeated: list[bytes] = []
        self.requests: dict[int, list[float]] = {each: [] for each in CONTROL}
        self.asked: set[int] = set()
        self.began_s = 0.0
        self.established_before = 0
        self._number = 0
        self._spoken = 0
        world.plane.hosts[self.line, self.mac] = self._receive

    # Discovery (RFC 2516).

    def discover(self) -> None:
        """Send a PADI and, if a PADO comes, a PADR that requests a session; neither is repeated."""
        tags: Options = [(0x0101, b"")]
        if self.max_payload is not None:
            tags.append((0x0120, struct.pack("!H", self.max_payload)))
        self._discovery(0x09, b"\xff" * 6, 0, tags)
        self.world.clock.run(0.0015)
        if 0x07 not in self.discovery:
            return
        cookie = [each for each in self.discovery.pop(0x07)[1] if each[0] == 0x0104]
        self._discovery(0x19, MAC, 0, tags + cookie)
        self.world.clock.run(0.0015)

    def _discovery(self, code: int, to: bytes, session: int, tags: Options) -> None:
        body = b"".join(struct.pack("!HH", kind, len(value)) + value for kind, value in tags)
        head = struct.pack("!HBBHH", 0x8863, 0x11, code, session, len(body))
        self.world.plane.from_line(self.line, to + self.mac + head + body)

    def hang_up(self) -> None:
        """End the session by sending a PADT."""
        self._discovery(0xA7, MAC, self.session, [])
        self.session = 0

    # PPP.

    def say(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Send a PPP packet, up to a fixed number of packets per peer."""
        if self._spoken >= _SPOKEN_MOST or not self.session:
            return
        self._spoken += 1
        body = struct.pack("!HBBH", protocol, code, identifier, 4 + len(data)) + data
        head = struct.pack("!HBBHH", 0x8864, 0x11, 0, self.session, len(body))
        self.world.plane.from_line(self.line, MAC + self.mac + head + body)

    def request(self, protocol: int) -> None:
        """Send the peer's Configure-Request for a protocol."""
        self.asked.add(protocol)
        self._number = self._number % 255 + 1
        self.say(protocol, REQUEST, self._number, write_options(self.mine[protocol]))

    def _receive(self, frame: bytes) -> None:
        if frame[12:14] == b"\x88\x63":
            self._receive_discovery(frame)
            return
        size = struct.unpack("!H", frame[18:20])[0]
        protocol, packet = struct.unpack("!H", frame[20:22])[0], frame[22 : 20 + size]
        self.heard.append((self.world.clock.now(), protocol, packet))
        if protocol not in (*CONTROL, PAP, CHAP):
            return
        code, identifier, data = packet[0], packet[1], packet[4:]
        self.last[protocol] = packet
        if protocol in CONTROL and code == REQUEST:
            self._note_request(protocol, data)
        reaction = self.reactions.get((protocol, code))
        if reaction is not None:
            _REACTIONS[reaction](self, protocol, code, identifier, data)

    def _receive_discovery(self, frame: bytes) -> None:
        code, session, size = struct.unpack("!xBHH", frame[14:20])
        body, tags = frame[20 : 20 + size], []
        while len(body) >= 4:
            kind, length = struct.unpack("!HH", body[:4])
            tags.append((kind, body[4 : 4 + length]))
            body = body[4 + length :]
        self.discovery[code] = session, tags
        if code == 0x65 and session:
            self.session = session
            self.began_s, self.established_before = self.world.clock.now(), self.world.gateway.events["established"]
            self.heard, self.refused, self.repeated, self.asked = [], [], [], set()
            self.requests = {each: [] for each in CONTROL}
        elif code == 0xA7 and session == self.session:
            self.session = 0

    def _note_request(self, protocol: int, data: bytes) -> None:
        self.requests[protocol].append(self.world.clock.now())
        method = dict(read_options(data)).get(3) if protocol == LCP else None
        if method in self.refused:
            self.repeated.append(method)

    # Reactions to a Configure-Request.

    def _acknowledge(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, ACK, identifier, data)
        if protocol == LCP:
            self.refused = []

    def _acknowledge_other(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, ACK, identifier, data[:-1] + b"\x5a" if data else b"\1\4\0\0")

    def _acknowledge_late(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, ACK, identifier - 1 & 0xFF, data)

    def _nak_all(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Answer with a Nak of all options, with new values each time.

        For the authentication option, with the other of PAP and CHAP.
        """
        options: Options = []
        for kind, old in read_options(data):
            if protocol == LCP and kind == 3:
                self.refused.append(old)
                options.append((kind, b"\xc0\x23" if old[:2] == b"\xc2\x23" else b"\xc2\x23\x05"))
            else:
                self._number = self._number % 255 + 1
                options.append((kind, old[:-1] + bytes((self._number,))))
        self.say(protocol, NAK, identifier, write_options(options))

    def _nak_method(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Answer with a Nak that asks for EAP as the authentication method."""
        self.refused += [old for kind, old in read_options(data) if kind == 3]
        self.say(protocol, NAK, identifier, b"\3\4\xc2\x27")

    def _nak_first(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Answer with a Nak of the first option that proposes the value that was already asked for."""
        self.say(protocol, NAK, identifier, write_options(read_options(data)[:1]))

    def _nak_magic(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, NAK, identifier, b"\5\6" + bytes(4))

    def _nak_empty(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, NAK, identifier, b"")

    def _nak_unknown(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, NAK, identifier, b"\x2a\4\0\0")

    def _reject_all(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, REJECT, identifier, data)

    def _reject_last(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, REJECT, identifier, write_options(read_options(data)[-1:]))

    # Reactions to anything.

    def _loop(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, code, identifier, data)

    def _request(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        if protocol in CONTROL:
            self.request(protocol)

    def _terminate(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, TERMINATE, identifier, b"")

    def _terminate_ack(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, TERMINATE_ACK, identifier, b"")

    def _code_reject(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, CODE_REJECT, identifier, self.last[protocol])

    def _protocol_reject(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(LCP, PROTOCOL_REJECT, identifier, struct.pack("!H", protocol) + self.last[protocol])

    def _unknown_code(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(protocol, 66, identifier, b"what?")

    def _link_again(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Send an LCP Configure-Request, by which both ends negotiate the link anew."""
        self.request(LCP)

    def _both(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Acknowledge a Configure-Request, and send the peer's own if it has not been sent, as an honest peer does."""
        self._acknowledge(protocol, code, identifier, data)
        if protocol not in self.asked:
            self._request(protocol, code, identifier, data)

    def _obey(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Send a new Configure-Request with the values of a received Nak, or without the options of a received Reject."""
        if protocol not in CONTROL:
            return
        told = dict(read_options(data))
        mine = dict(self.mine[protocol])
        self.mine[protocol] = list(
            ({**mine, **told} if code == NAK else {k: mine[k] for k in mine if k not in told}).items()
        )
        self.request(protocol)

    def _insist(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Send a Configure-Request with the options that the peer already asked for, with other values."""
        if protocol not in CONTROL:
            return
        self.mine[protocol] = [
            (kind, value[:-1] + bytes((self._number,)) if value else value) for kind, value in self.mine[protocol]
        ]
        self.request(protocol)

    def _log_in(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        """Answer a CHAP challenge with the right password."""
        if protocol == CHAP and code == 1 and data:
            digest = hashlib.md5(bytes((identifier,)) + b"secret" + data[1 : 1 + data[0]]).digest()
            self.say(CHAP, 2, identifier, b"\x10" + digest + b"alice")

    def _log_in_wrongly(self, protocol: int, code: int, identifier: int, data: bytes) -> None:
        self.say(CHAP, 2, identifier, b"\x10" + bytes(16) + b"alice")

    def log_in_by_pap(self) -> None:
        """Send a PAP Authenticate-Request with the right name and password."""
        self.say(PAP, 1, 1, b"\5alice\6secret")


_REACTIONS: dict[str, Callable[[Peer, int, int, int, bytes], None]] = {
    name[1:]: value
    for name, value in vars(Peer).items()
    if name[0] == "_"
    and callable(value)
    and value.__code__.co_varnames[1:5] == ("protocol", "code", "identifier", "data")
}
REACTIONS = sorted(_REACTIONS)

TO_REQUESTS = [name for name in REACTIONS if name not in ("obey", "insist", "log_in", "log_in_wrongly")]


def cooperative() -> Reactions:
    """Return the reactions of a peer that cooperates and so comes online."""
    return (
        dict.fromkeys(((each, REQUEST) for each in CONTROL), "both")
        | {(each, code): "obey" for each in CONTROL for code in (NAK, REJECT)}
        | {(each, TERMINATE): "terminate_ack" for each in CONTROL}
        | {(CHAP, 1): "log_in"}
    )


def open_(peer: Peer) -> bool:
    """Return True if the peer's session is established and forwards IP."""
    session = peer.world.gateway.sessions.get(peer.session)
    return session is not None and session.mac == peer.mac and session.established


def violations(peer: Peer) -> list[str]:
    """Return a sentence for each rule that the gateway broke in an exchange.

    Negotiations may never converge, so RFC 1661, section 2, asks implementations to notice loops or to have timeouts.
    """
    found = []
    window_s = RESTART_S * MAX_CONFIGURE
    for protocol, times in peer.requests.items():
        # A network protocol that was given up may begin anew when the peer asks for it.
        most = MAX_CONFIGURE if protocol == LCP else 2 * MAX_CONFIGURE
        for at, time_s in enumerate(times):
            count = bisect_left(times, time_s + window_s - 0.01) - at
            if count > most:
                found.append(f"{count} Configure-Requests of {protocol:04x} within {window_s} s")
                break
    if peer.repeated:
        found.append(f"authentication by {peer.repeated[0].hex()} is offered again")
    if not open_(peer) and peer.world.gateway.events["established"] == peer.established_before:
        if len(peer.heard) > MOST_PACKETS:
            found.append(f"{len(peer.heard)} packets and no session")
        age_s = peer.world.clock.now() - peer.began_s
        if age_s > SETUP_S + RESTART_S * MAX_TERMINATE + 0.1 and peer.world.gateway.sessions:
            found.append(f"after {age_s:.1f} s the session is neither open nor ended")
    return found


def sent(peer: Peer) -> Counter[tuple[str, int]]:
    """Return the number of packets that the gateway has sent, by (protocol in hexadecimal digits, code)."""
    return Counter((f"{protocol:04x}", packet[0]) for _, protocol, packet in peer.heard)
