"""A subscriber's host: PPPoE's and PPP's client side, which answers as the RFCs say, or withholds what an attacker withholds.

It reads frames, knows nothing of the gateway's automata, and has no timers of its own: its world calls :meth:`Host.tick`.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections import deque
from collections.abc import Callable

from attacks import pppoe_frames as wire
from attacks.pppoe_frames import ACK, CHAP, ECHO, IPCP, IPV6CP, LCP, NAK, PAP, REJECT, REQUEST, TERMINATE, Packet

Send = Callable[["Host", bytes], None]

WITHHELD = (
    "lcp-ack",
    "lcp-request",
    "login",
    "ipcp-ack",
    "ipcp-request",
    "ipv6cp-ack",
    "ipv6cp-request",
    "echo",
    "dhcp",
)
"""Answers that an attacker may not give."""

MAX_CONFIGURE = 10
"""Requests without an answer, after which a host begins anew."""


class Host:
    """One host of a line. ``line`` is the world's name of the line; ``send`` puts a frame on it."""

    def __init__(self, line: object, mac: bytes, user: bytes, password: bytes, send: Send, method: int = CHAP) -> None:
        self.line, self.mac, self.user, self.password, self.method = line, mac, user, password, method
        self._send = send
        self.gateway = wire.BROADCAST
        self.cookies: deque[bytes] = deque(maxlen=4)
        self.inbox: deque[bytes] = deque(maxlen=64)
        self.sent: deque[bytes] = deque(maxlen=64)
        self.withheld: frozenset[str] = frozenset()
        self.session = 0
        self.ended_by: str | None = None
        self.interface = hashlib.md5(mac).digest()[:7] + b"\x01"
        self._number = 0
        self.forget()

    def forget(self) -> None:
        """Reset the host's state to that without a session."""
        self.session = 0
        self.tries = 0
        self.acked: set[int] = set()
        self.acknowledged: set[int] = set()
        self.asked: set[int] = set()
        self.logged_in = False
        self.wanted_login = 0
        self.challenge = (0, b"")
        self.address = bytes(4)
        self.delegated: tuple[int, bytes] | None = None
        self.server = b""
        self.last: dict[tuple[int, int], Packet] = {}
        self.refused: set[int] = set()

    @property
    def online(self) -> bool:
        """True if the host may send IPv4: both sides have acknowledged IPCP's options (RFC 1332, section 2)."""
        return bool(self.session) and IPCP in self.acked and IPCP in self.acknowledged

    # What it sends.

    def discovery(self, code: int, tags: wire.Tags, session: int = 0, to: bytes | None = None) -> None:
        """Send a frame of the PPPoE discovery stage."""
        self.put(wire.discovery(self.gateway if to is None else to, self.mac, code, session, tags))

    def put(self, frame: bytes) -> None:
        """Send a frame, and record it in ``sent``."""
        self.sent.append(frame)
        self._send(self, frame)

    def say(self, protocol: int, packet: bytes) -> None:
        """Send a PPP packet in the host's session."""
        self.put(wire.session_frame(self.gateway, self.mac, self.session, protocol, packet))

    def identifier(self) -> int:
        """Return the next Identifier, which differs from the last packet's."""
        self._number = self._number % 255 + 1
        return self._number

    def padi(self) -> None:
        """Send a PADI, by which a host looks for a gateway."""
        self.discovery(wire.PADI, [(wire.SERVICE_NAME, b"")], to=wire.BROADCAST)

    def padr(self, cookie: bytes) -> None:
        """Send a PADR with a cookie, by which a host requests a session."""
        self.discovery(wire.PADR, [(wire.SERVICE_NAME, b""), (wire.AC_COOKIE, cookie)])

    def padt(self) -> None:
        """Send a PADT, which ends the session (RFC 2516, section 5.5)."""
        self.discovery(wire.PADT, [], self.session)

    def request(self, protocol: int) -> None:
        """Send the Configure-Request of an honest host for a protocol."""
        self.asked.add(protocol)
        pairs = {
            LCP: [(1, struct.pack("!H", 1492)), (5, self.mac[2:])],
            IPCP: [(3, self.address)],
            IPV6CP: [(1, self.interface)],
        }[protocol]
        data = wire.options(*(each for each in pairs if (protocol << 8 | each[0]) not in self.refused))
        self.say(protocol, wire.control(REQUEST, self.identifier(), data))

    def log_in(self, protocol: int = 0) -> None:
        """Send an Authenticate-Request (RFC 1334), or the answer to the last challenge (RFC 1994)."""
        if (protocol or self.wanted_login) == PAP:
            data = bytes((len(self.user),)) + self.user + bytes((len(self.password),)) + self.password
            self.say(PAP, wire.control(1, self.identifier(), data))
            return
        identifier, challenge = self.challenge
        digest = hashlib.md5(bytes((identifier,)) + self.password + challenge).digest()
        self.say(CHAP, wire.control(2, identifier, b"\x10" + digest + self.user))

    def dhcp(self, kind: int, prefix: tuple[int, bytes] | None = None, iaid: bytes = b"\0\0\0\1") -> None:
        """Send a DHCPv6 message with an IA_PD: 1 Solicit, 3 Request, 5 Renew, 6 Rebind, 8 Release."""
        pairs = [(1, b"\0\3\0\1" + self.mac), (8, b"\0\0"), wire.delegation(iaid, prefix)]
        if kind not in (1, 6) and self.server:
            pairs.append((2, self.server))
        transaction = hmac.digest(self.mac, bytes((self.identifier(),)), "md5")[:3]
        self.say(wire.IPV6, wire.dhcpv6(self.interface, kind, transaction, pairs))

    # What it hears.

    def hear(self, frame: bytes) -> None:
        """Record a frame, and answer it unless the answer is withheld."""
        if frame[12:14] == b"\x88\x63":
            self._hear_discovery(frame)
            return
        packet = wire.packet_of(frame)
        if packet.session != self.session:
            return
        self.last[packet.protocol, packet.code] = packet
        if packet.protocol in wire.CONTROL:
            self._hear_control(packet)
        elif packet.protocol in (PAP, CHAP):
            self._hear_login(packet)
        elif packet.protocol == wire.IPV6 and "dhcp" not in self.withheld:
            self._hear_ipv6(packet.whole)

    def _hear_discovery(self, frame: bytes) -> None:
        code, session = frame[15], int.from_bytes(frame[16:18], "big")
        tags = wire.tags_of(frame[20 : 20 + int.from_bytes(frame[18:20], "big")])
        if code == wire.PADO:
            self.gateway = frame[6:12]
            self.cookies.extend(value for kind, value in tags if kind == wire.AC_COOKIE)
            if not self.session and self.cookies:
                self.padr(self.cookies[-1])
        elif code == wire.PADS and session and session != self.session:
            self.forget()
            self.session = session
        elif code == wire.PADT and session == self.session:
            self.ended_by = "PADT"
            self.forget()

    def _may(self, what: str) -> bool:
        return what not in self.withheld

    def _hear_control(self, packet: Packet) -> None:
        protocol, code, name = packet.protocol, packet.code, wire.NAMES[packet.protocol]
        if code == REQUEST:
            self._hear_request(packet, name)
        elif code == ACK:
            self.acked.add(protocol)
            if protocol == LCP and self.wanted_login == PAP and LCP in self.acknowledged and self._may("login"):
                self.log_in()
        elif code in (NAK, REJECT):
            self._hear_refusal(packet, name)
        elif code == TERMINATE:
            self.say(protocol, wire.control(wire.TERMINATE_ACK, packet.identifier))
            if protocol == LCP:
                self.ended_by = "Terminate-Request"
        elif code == ECHO and protocol == LCP and self._may("echo"):
            self.say(LCP, wire.control(wire.ECHO_REPLY, packet.identifier, self.mac[2:] + packet.data[4:]))

    def _hear_request(self, packet: Packet, name: str) -> None:
        protocol = packet.protocol
        if protocol == LCP:
            if LCP in self.acknowledged and LCP in self.acked:  # the link is negotiated anew
                self.acked.clear(), self.acknowledged.clear(), self.asked.clear()
                self.logged_in = False
            wanted = dict(wire.options_of(packet.data)).get(3, b"")
            self.wanted_login = int.from_bytes(wanted[:2], "big")
            other = self.method if self.method != self.wanted_login and self.method not in self.refused else 0
            if other and wanted:
                self.refused.add(other)  # once is enough
                value = struct.pack("!H", other) + (b"\x05" if other == CHAP else b"")
                self.say(LCP, wire.control(NAK, packet.identifier, wire.options((3, value))))
                return
        if self._may(f"{name}-ack"):
            self.acknowledged.add(protocol)
            self.say(protocol, wire.control(ACK, packet.identifier, packet.data))
        if protocol not in self.asked and self._may(f"{name}-request"):
            self.request(protocol)
        elif protocol == LCP and LCP in self.acked and self.wanted_login == PAP and self._may("login"):
            self.log_in()

    def _hear_refusal(self, packet: Packet, name: str) -> None:
        for kind, value in wire.options_of(packet.data):
            if packet.code == REJECT:
                self.refused.add(packet.protocol << 8 | kind)
            elif packet.protocol == IPCP and kind == 3:
                self.address = value
            elif packet.protocol == IPV6CP and kind == 1 and len(value) == 8:
                self.interface = value
        if self._may(f"{name}-request"):
            self.request(packet.protocol)

    def _hear_login(self, packet: Packet) -> None:
        if packet.protocol == CHAP and packet.code == 1 and packet.data:
            self.challenge = packet.identifier, packet.data[1 : 1 + packet.data[0]]
            if self._may("login"):
                self.log_in(CHAP)
        elif packet.code == (3 if packet.protocol == CHAP else 2):
            self.logged_in = True
            for protocol, name in ((IPCP, "ipcp"), (IPV6CP, "ipv6cp")):
                if protocol not in self.asked and self._may(f"{name}-request"):
                    self.request(protocol)

    def _hear_ipv6(self, packet: bytes) -> None:
        if packet[6] == 58 and packet[40] == 134 and self.delegated is None:
            self.dhcp(1)
        elif packet[6] == 17 and packet[42:44] == b"\x02\x22":
            kind, found = packet[48], dict(wire.tags_of(packet[52:]))
            self.server = found.get(2, b"")
            inner = dict(wire.tags_of(found.get(25, bytes(12))[12:])).get(26)
            if inner is None:
                return
            if kind == 2:
                self.dhcp(3, (inner[8], inner[9:25]))
            elif kind == 7:
                self.delegated = inner[8], inner[9:25]

    def tick(self) -> None:
        """Repeat the request that has no answer yet, as after a Restart timer.

        After ten repetitions the session is given up (RFC 1661, section 4.6).
        """
        self.tries += 1
        if self.session and self.tries > MAX_CONFIGURE:
            self.padt()
            self.forget()
        if not self.session:
            self.padi()
        elif LCP not in self.acked:
            self.request(LCP)
        elif not self.logged_in:
            if self.wanted_login == PAP or self.challenge[1]:
                self.log_in()
        else:
            for protocol in (IPCP, IPV6CP):
                if protocol not in self.acked:
                    self.request(protocol)
