"""A modelled subscriber host: a PPPoE and PPP client (RFC 2516, 1661) for simulations, tests and live dialling.

It shares no code with the gateway's control plane: it writes and reads its packets itself, so that no mistake is on both sides.
Sans I/O: frames come in through :meth:`Subscriber.receive` and leave, without VLAN tags, through a function; time is a clock's.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

_ALL = bytes.fromhex("ffffffffffff")
_IPV4, _IPV6, _IPCP, _IPV6CP, _LCP, _PAP, _CHAP = 0x0021, 0x0057, 0x8021, 0x8057, 0xC021, 0xC023, 0xC223

_SIZES = {(_LCP, 1): 2, (_LCP, 5): 4, (_IPCP, 3): 4, (_IPCP, 129): 4, (_IPCP, 131): 4, (_IPV6CP, 1): 8}
"""Bytes of the values of options that it asks for."""


class Timer(Protocol):
    """The only thing that it needs of the world, besides a function that sends."""

    def now(self) -> float:
        """Return the clock's time in seconds."""

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Callable[[], None]:
        """Call ``action`` after ``delay_s`` seconds; return a function that cancels this."""


@dataclass(frozen=True)
class Account:
    """The credentials and the wishes of a subscriber. ``pap``: insists on PAP. ``max_payload`` above 1492 asks for it by RFC 4638.

    Credentials that are not UTF-8 have surrogates for such bytes, as words of a command line do (PEP 383). ``redial_s``: the time
    after a lost session until it dials again; None never. ``keepalive_s``: seconds between LCP Echo-Requests while LCP is open,
    None for none; when ``keepalive_failures`` in a row are not answered, the session is lost.
    """

    user: str
    password: str
    service: bytes = b""
    ipv4: bool = True
    ipv6: bool = True
    delegation: bool = True
    rapid_commit: bool = True
    pap: bool = False
    max_payload: int = 1492
    redial_s: float | None = None
    keepalive_s: float | None = None
    keepalive_failures: int = 3
    access_tags: bytes = b""


@dataclass
class Counts:
    """Counts of a subscriber's packets and sessions."""

    sent: dict[str, int] = field(default_factory=dict)
    unexpected: int = 0
    sessions: int = 0
    lost: int = 0


class Subscriber:
    """A host. ``state`` is one of idle, discovery, link, login, network, up, failed; ``reason`` says why it failed."""

    RETRY_S = 3.0
    TRIES = 10
    SETUP_S = 120.0
    """From the PADS until the session is up; by then the gateway has given it up, too."""
    MOST_REQUESTS = 20
    """Configure-Requests of a protocol before it is up, whatever the gateway answers (RFC 1661, section 2: loops)."""

    def __init__(
        self,
        account: Account,
        mac: bytes,
        clock: Timer,
        send: Callable[[bytes], None],
        *,
        seed: int,
        up: Callable[[Subscriber], None] | None = None,
        packet: Callable[[bytes], None] | None = None,
    ) -> None:
        self.account, self.mac = account, mac
        self._clock, self._send_frame, self._up, self._packet = clock, send, up, packet
        self._seed = seed
        self.counts = Counts()
        self._generation = 0
        self._timers: dict[str, Callable[[], None]] = {}
        self.dialled_s = self.up_s = 0.0
        self._forget()
        self.state = "idle"
        self.reason = ""

    def _forget(self) -> None:
        for cancel in self._timers.values():
            cancel()
        self._timers = {}
        self.session = 0
        self.gateway = _ALL
        self.magic = int.from_bytes(self._unpredictable("magic", 4), "big") | 1
        self.mru = self.account.max_payload
        self.peer_mru = 1492
        self.ipv4 = bytes(4)
        self.dns = [bytes(4), bytes(4)]
        self.gateway_ipv4 = bytes(4)
        self.interface = self._unpredictable("interface", 8)
        self.gateway_interface = bytes(8)
        self.ipv6_prefix: tuple[bytes, int] | None = None
        self.delegated: tuple[bytes, int] | None = None
        self.server_duid = b""
        self._cookie: list[tuple[int, bytes]] = []
        self._numbers = {_LCP: 0, _IPCP: 0, _IPV6CP: 0}
        self._last = dict.fromkeys(self._numbers, b"")
        self._requests = dict.fromkeys(self._numbers, 0)
        self._wants: dict[int, set[int]] = {_LCP: {1, 5}, _IPCP: {3, 129, 131}, _IPV6CP: {1}}
        self._sent_ack = dict.fromkeys(self._numbers, False)
        self._got_ack = dict.fromkeys(self._numbers, False)
        self._refused: set[int] = set()
        self._login: int | None = None
        self._transaction = self._unpredictable("transaction", 3)

    def _unpredictable(self, what: str, size: int) -> bytes:
        text = f"{self._seed} {self._generation} {what}".encode() + self.mac
        return hashlib.sha256(text).digest()[:size]

    # Actions of its user.

    def dial(self) -> None:
        """Start to dial: send PADIs until a gateway offers a session or the attempts are used up."""
        self._generation += 1
        self._forget()
        self.state, self.reason = "discovery", ""
        self.dialled_s = self._clock.now()
        self._unique = self._unpredictable("unique", 8)
        self._repeat("padi", self._padi, "no gateway answers")

    def hang_up(self) -> None:
        """Terminate the link and the session by sending an LCP Terminate-Request and a PADT."""
        if self.session:
            self._control(_LCP, 5, self._next(_LCP), b"")
            self._discovery(0xA7, self.gateway, self.session, b"")
        self._forget()
        self.state = "idle"

    def vanish(self) -> None:
        """Stop at once without sending anything, as at a loss of power."""
        self._forget()
        self.state = "idle"

    def send(self, packet: bytes) -> None:
        """Send an IP packet through the session; before the session is up, drop it."""
        if self.session:
            self._ppp(_IPV4 if packet[0] >> 4 == 4 else _IPV6, packet)

    # Frames.

    def receive(self, frame: bytes) -> None:
        """Process an Ethernet frame from the access line."""
        if len(frame) < 20 or (frame[:6] != self.mac and frame[:6] != _ALL) or self.state == "idle":
            return
        kind, code, session, size = struct.unpack("!HxBHH", frame[12:20])
        body = frame[20 : 20 + size]
        if kind == 0x8864 and session == self.session and frame[6:12] == self.gateway and len(body) >= 2:
            self._receive_ppp(struct.unpack("!H", body[:2])[0], body[2:])
        elif kind == 0x8863:
            self._receive_discovery(frame[6:12], code, session, body)
        else:
            self.counts.unexpected += 1

    def _receive_discovery(self, source: bytes, code: int, session: int, body: bytes) -> None:
        tags = []
        while len(body) >= 4:
            kind, size = struct.unpack("!HH", body[:4])
            tags.append((kind, body[4 : 4 + size]))
            body = body[4 + size :]
        if code == 0xA7:
            if session == self.session and source == self.gateway and self.session:
                self._lost("the gateway ended the session")
            return
        if (0x0103, self._unique) not in tags or self.state != "discovery":
            return
        if code == 0x07 and self.gateway == _ALL:
            self.gateway = source
            self._cookie = [each for each in tags if each[0] in (0x0104, 0x0110)]
            if not any(kind == 0x0120 for kind, _ in tags):
                self.mru = 1492
            self._stop("padi")
            self._repeat("padr", self._padr, "the gateway gives no session")
        elif code == 0x65 and source == self.gateway:
            errors = [value for kind, value in tags if kind >> 8 == 0x02]
            self._stop("padr")
            if not session or errors:
                self._fail("refused: " + (errors[0].decode(errors="replace") if errors else ""))
                return
            self.session = session
            self._link()
            self._ask(_LCP)

    def _link(self) -> None:
        self.state = "link"
        self._stop("setup")
        self._timers["setup"] = self._clock.call_later(self.SETUP_S, lambda: self._fail("the session does not come up"))

    def _padi(self) -> None:
        self._discovery(0x09, _ALL, 0, self._tags([]))

    def _padr(self) -> None:
        self._discovery(0x19, self.gateway, 0, self._tags(self._cookie))

    def _tags(self, more: list[tuple[int, bytes]]) -> bytes:
        tags = [(0x0101, self.account.service), (0x0103, self._unique), *more]
        if self.account.max_payload > 1492:
            tags.append((0x0120, struct.pack("!H", self.account.max_payload)))
        if self.account.access_tags:
            tags.append((0x0105, self.account.access_tags))
        return b"".join(struct.pack("!HH", kind, len(value)) + value for kind, value in tags)

    def _discovery(self, code: int, destination: bytes, session: int, body: bytes) -> None:
        self._count(f"discovery {code:#04x}")
        self._send_frame(destination + self.mac + struct.pack("!HBBHH", 0x8863, 0x11, code, session, len(body)) + body)

    def _ppp(self, protocol: int, body: bytes) -> None:
        head = struct.pack("!HBBHHH", 0x8864, 0x11, 0, self.session, len(body) + 2, protocol)
        self._send_frame(self.gateway + self.mac + head + body)

    def _control(self, protocol: int, code: int, number: int, body: bytes) -> None:
        self._count(f"{protocol:04x} {code}")
        self._ppp(protocol, struct.pack("!BBH", code, number, 4 + len(body)) + body)

    def _count(self, what: str) -> None:
        self.counts.sent[what] = self.counts.sent.get(what, 0) + 1

    def _next(self, protocol: int) -> int:
        self._numbers[protocol] = (self._numbers[protocol] + 1) % 256
        return self._numbers[protocol]

    # Timers.

    def _repeat(self, name: str, action: Callable[[], None], failure: str, tries: int = TRIES) -> None:
        self._stop(name)
        if tries == 0:
            self._fail(failure)
            return

        def again() -> None:
            self._repeat(name, action, failure, tries - 1)

        self._timers[name] = self._clock.call_later(self.RETRY_S, again)
        action()

    def _stop(self, name: str) -> None:
        cancel = self._timers.pop(name, None)
        if cancel is not None:
            cancel()

    def _fail(self, reason: str) -> None:
        self._forget()
        self.state, self.reason = "failed", reason
        self._redial()

    def _lost(self, reason: str) -> None:
        self.counts.lost += self.state == "up"
        self._fail(reason)

    def _redial(self) -> None:
        if self.account.redial_s is not None:
            self._timers["redial"] = self._clock.call_later(self.account.redial_s, self.dial)

    # PPP.

    def _receive_ppp(self, protocol: int, body: bytes) -> None:
        if protocol in (_IPV4, _IPV6):
            if self.state in ("network", "up"):
                if protocol == _IPV6 and self._own_ipv6(body):
                    return
                if self._packet is not None:
                    self._packet(body)
            return
        if len(body) < 4:
            return
        code, number, size = struct.unpack("!BBH", body[:4])
        body = body[4:size]
        if protocol in self._numbers:
            self._negotiate(protocol, code, number, body)
        elif protocol == _CHAP:
            self._chap(code, number, body)
        elif protocol == _PAP and code in (2, 3):
            self._stop("pap")
            self._logged_in(code == 2, body[1:])

    def _negotiate(self, protocol: int, code: int, number: int, body: bytes) -> None:
        if protocol != _LCP and self.state not in ("network", "up"):
            return
        if protocol in self._refused:
            return
        if code == 1:
            self._answer(protocol, number, body)
        elif code in (2, 3, 4):
            if number != self._numbers[protocol] or self._got_ack[protocol]:
                return
            if code == 2:
                if body == self._last[protocol]:
                    self._stop(f"{protocol:04x}")
                    self._got_ack[protocol] = True
                    self._opened(protocol)
                return
            for kind, value in self._options(body):
                self._changed(protocol, code == 4, kind, value)
            self._ask(protocol)
        elif code == 5:
            self._control(protocol, 6, number, b"")
            if protocol == _LCP:
                self._lost("the gateway terminated the link")
        elif protocol == _LCP and code == 8 and len(body) >= 2:
            self._refused.add(struct.unpack("!H", body[:2])[0])
            self._stop(body[:2].hex())
            self._whole()
        elif protocol == _LCP and code == 9 and len(body) >= 4:
            self._control(_LCP, 10, number, struct.pack("!I", self.magic) + body[4:])
        elif protocol == _LCP and code in (10, 11):
            self.counts.sent["echo replies"] = self.counts.sent.get("echo replies", 0) + (code == 10)

    def echo(self) -> None:
        """Send an LCP Echo-Request to the gateway; ``counts.sent['echo replies']`` counts the answers."""
        self._control(_LCP, 9, self._next(_LCP), struct.pack("!I", self.magic) + b"are you there")

    def _ask(self, protocol: int) -> None:
        def request() -> None:
            self._requests[protocol] += 1
            if self._requests[protocol] > self.MOST_REQUESTS:
                self._fail(f"protocol {protocol:04x} does not converge")
                return
            self._last[protocol] = self._wishes(protocol)
            self._control(protocol, 1, self._next(protocol), self._last[protocol])

        self._got_ack[protocol] = False
        self._repeat(f"{protocol:04x}", request, f"protocol {protocol:04x} does not converge")

    def _wishes(self, protocol: int) -> bytes:
        wants = self._wants[protocol]
        if protocol == _LCP:
            values = {1: struct.pack("!H", self.mru), 5: struct.pack("!I", self.magic)}
        elif protocol == _IPCP:
            values = {3: self.ipv4, 129: self.dns[0], 131: self.dns[1]}
        else:
            values = {1: self.interface}
        return b"".join(bytes((kind, len(value) + 2)) + value for kind, value in values.items() if kind in wants)

    def _changed(self, protocol: int, reject: bool, kind: int, value: bytes) -> None:
        if reject:
            self._wants[protocol].discard(kind)
        elif len(value) != _SIZES.get((protocol, kind)):
            return  # no value of this option
        elif protocol == _LCP and kind == 1:
            self.mru = struct.unpack("!H", value)[0]
        elif protocol == _LCP and kind == 5:
            self.magic = struct.unpack("!I", value)[0]
        elif protocol == _IPCP and kind == 3:
            self.ipv4 = value
            self._wants[_IPCP].add(3)
        elif protocol == _IPCP and kind in (129, 131):
            self.dns[kind == 131] = value
        elif protocol == _IPV6CP and kind == 1:
            self.interface = value

    def _options(self, body: bytes) -> list[tuple[int, bytes]]:
        found = []
        while len(body) >= 2 and body[1] >= 2:
            found.append((body[0], body[2 : body[1]]))
            body = body[body[1] :]
        return found

    def _answer(self, protocol: int, number: int, body: bytes) -> None:
        """Answer a Configure-Request of the gateway with an Ack, a Nak or a Reject."""
        if (
            protocol == _LCP
            and self.state in ("network", "up", "login")
            and self._sent_ack[_LCP]
            and self._got_ack[_LCP]
        ):
            self._link()  # the gateway begins anew
            self._sent_ack = dict.fromkeys(self._numbers, False)
            self._ask(_LCP)
        bad = b""
        for kind, value in self._options(body):
            if protocol == _LCP:
                if kind == 1 and len(value) == 2:
                    self.peer_mru = struct.unpack("!H", value)[0]
                elif kind == 3 and len(value) >= 2:
                    method = struct.unpack("!H", value[:2])[0]
                    if self.account.pap and method != _PAP:
                        self._control(_LCP, 3, number, b"\x03\x04\xc0\x23")
                        return
                    self._login = method
                elif kind != 5:
                    bad += bytes((kind, len(value) + 2)) + value
            elif protocol == _IPCP and kind == 3:
                self.gateway_ipv4 = value
            elif protocol == _IPV6CP and kind == 1:
                self.gateway_interface = value
            else:
                bad += bytes((kind, len(value) + 2)) + value
        wanted = {_LCP: True, _IPCP: self.account.ipv4, _IPV6CP: self.account.ipv6}[protocol]
        if not wanted:
            self._control(_LCP, 8, self._next(_LCP), struct.pack("!HBBH", protocol, 1, number, 4 + len(body)) + body)
            return
        if bad:
            self._control(protocol, 4, number, bad)
            return
        self._control(protocol, 2, number, body)
        self._sent_ack[protocol] = True
        self._opened(protocol)

    def _opened(self, protocol: int) -> None:
        if not (self._sent_ack[protocol] and self._got_ack[protocol]):
            return
        if protocol == _LCP and self.state == "link":
            self.state = "login"
            self._keep_alive(0)
            if self._login == _PAP:
                self._repeat("pap", self._pap, "nobody answers the login")
        elif protocol == _IPCP:
            self._whole()
        elif protocol == _IPV6CP:
            self._repeat("rs", self._solicit_router, "no router advertisement")
            if self.account.delegation:
                self._repeat("dhcpv6", self._solicit_prefix, "no delegated prefix")
            self._whole()

    def _pap(self) -> None:
        user, password = (
            self.account.user.encode(errors="surrogateescape"),
            self.account.password.encode(errors="surrogateescape"),
        )
        body = bytes((len(user),)) + user + bytes((len(password),)) + password
        self._control(_PAP, 1, 1, body)

    def _chap(self, code: int, number: int, body: bytes) -> None:
        if code == 1 and body and self.state == "login":
            challenge = body[1 : 1 + body[0]]
            digest = hashlib.md5(
                bytes((number,)) + self.account.password.encode(errors="surrogateescape") + challenge
            ).digest()
            self._control(_CHAP, 2, number, b"\x10" + digest + self.account.user.encode(errors="surrogateescape"))
        elif code in (3, 4):
            self._logged_in(code == 3, body)

    def _logged_in(self, accepted: bool, message: bytes) -> None:
        if self.state != "login":
            return
        if not accepted:
            self._fail("login refused: " + message.decode(errors="replace"))
            return
        self.state = "network"
        for protocol, wanted in ((_IPCP, self.account.ipv4), (_IPV6CP, self.account.ipv6)):
            if wanted:
                self._ask(protocol)

    def _whole(self) -> None:
        """Change the state to "up" if every protocol that is wanted and not refused is open, with its addresses and prefixes."""
        if self.state != "network":
            return
        for protocol, wanted in ((_IPCP, self.account.ipv4), (_IPV6CP, self.account.ipv6)):
            if wanted and protocol not in self._refused and not (self._sent_ack[protocol] and self._got_ack[protocol]):
                return
        six = self.account.ipv6 and _IPV6CP not in self._refused
        if six and (self.ipv6_prefix is None or (self.account.delegation and self.delegated is None)):
            return
        self._stop("setup")
        self.state, self.up_s = "up", self._clock.now()
        self._requests = dict.fromkeys(self._requests, 0)
        self.counts.sessions += 1
        if self._up is not None:
            self._up(self)

    def _keep_alive(self, missed: int) -> None:
        """Send Echo-Requests periodically; the session is lost after ``keepalive_failures`` without an answer.

        ``missed``: so far.
        """
        self._stop("keepalive")
        if self.account.keepalive_s is None:
            return
        if missed >= self.account.keepalive_failures:
            self._lost("the gateway does not answer")
            return
        before = self.counts.sent.get("echo replies", 0)

        def look() -> None:
            answered = self.counts.sent.get("echo replies", 0) > before
            self._keep_alive(0 if answered else missed + 1)

        self._timers["keepalive"] = self._clock.call_later(self.account.keepalive_s, look)
        self.echo()

    # IPv6.

    @property
    def link_local(self) -> bytes:
        """The subscriber's own link-local address on the session, as 16 bytes."""
        return bytes.fromhex("fe80000000000000") + self.interface

    def _sum(self, source: bytes, destination: bytes, protocol: int, body: bytes) -> int:
        words = source + destination + struct.pack("!II", len(body), protocol) + body + b"\0" * (len(body) % 2)
        total = sum(int.from_bytes(words[at : at + 2], "big") for at in range(0, len(words), 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        return 0xFFFF - total

    def _ipv6(self, destination: bytes, protocol: int, body: bytes, at: int) -> bytes:
        value = self._sum(self.link_local, destination, protocol, body)
        body = body[:at] + struct.pack("!H", value or 0xFFFF) + body[at + 2 :]
        return struct.pack("!IHBB", 6 << 28, len(body), protocol, 255) + self.link_local + destination + body

    def _solicit_router(self) -> None:
        destination = bytes.fromhex("ff020000000000000000000000000002")
        self._ppp(_IPV6, self._ipv6(destination, 58, bytes((133, 0, 0, 0, 0, 0, 0, 0)), 2))

    def _dhcpv6(self, kind: int, options: bytes) -> None:
        self._count(f"dhcpv6 {kind}")
        duid = b"\0\3\0\1" + self.mac
        body = bytes((kind,)) + self._transaction + struct.pack("!HH", 1, len(duid)) + duid + options
        body += struct.pack("!HHH", 8, 2, 0) + struct.pack("!HHH", 6, 2, 23)
        head = struct.pack("!HHHH", 546, 547, 8 + len(body), 0)
        destination = bytes.fromhex("ff020000000000000000000000010002")
        self._ppp(_IPV6, self._ipv6(destination, 17, head + body, 6))

    def _association(self, prefix: tuple[bytes, int] | None) -> bytes:
        inner = b"" if prefix is None else struct.pack("!HHIIB", 26, 25, 0, 0, prefix[1]) + prefix[0]
        return struct.pack("!HHIII", 25, 12 + len(inner), 1, 0, 0) + inner

    def _solicit_prefix(self) -> None:
        rapid = struct.pack("!HH", 14, 0) if self.account.rapid_commit else b""
        self._dhcpv6(1, self._association(None) + rapid)

    def renew(self) -> None:
        """Send DHCPv6 Renews for the delegated prefix until the server answers, before the prefix expires."""
        self._transaction = self._unpredictable(f"renew {self._clock.now()}", 3)

        def ask() -> None:
            server = struct.pack("!HH", 2, len(self.server_duid)) + self.server_duid
            self._dhcpv6(5, server + self._association(self.delegated))

        self._repeat("dhcpv6", ask, "the delegated prefix cannot be renewed")

    def release(self) -> None:
        """Send a DHCPv6 Release of the delegated prefix."""
        server = struct.pack("!HH", 2, len(self.server_duid)) + self.server_duid
        self._dhcpv6(8, server + self._association(self.delegated))
        self.delegated = None
        self._stop("t1")

    def _own_ipv6(self, packet: bytes) -> bool:
        """Process an IPv6 packet that is for the host itself: a router advertisement or a DHCPv6 message.

        Return True if it was one of these or is malformed; False if it is for the user's programs.
        """
        if len(packet) < 48:
            return True
        protocol, body = packet[6], packet[40:]
        if protocol not in (17, 58):
            return False
        if self._sum(packet[8:24], packet[24:40], protocol, body):
            self.counts.unexpected += 1
            return True
        if protocol == 58 and body[0] == 134:
            self._advertisement(packet[7], body)
        elif protocol == 17 and body[2:4] == b"\x02\x22":
            self._dhcpv6_answer(body[8:])
        else:
            return False
        return True

    def _advertisement(self, hops: int, body: bytes) -> None:
        at = 16
        while hops == 255 and at + 8 <= len(body) and body[at + 1]:
            if body[at] == 3 and body[at + 1] == 4 and at + 32 <= len(body) and body[at + 3] & 0x40:
                self.ipv6_prefix = body[at + 16 : at + 32], body[at + 2]
                self._stop("rs")
            at += 8 * body[at + 1]
        self._whole()

    def _dhcpv6_answer(self, body: bytes) -> None:
        if len(body) < 4 or body[1:4] != self._transaction:
            return
        options = {}
        rest = body[4:]
        while len(rest) >= 4:
            kind, size = struct.unpack("!HH", rest[:4])
            options[kind] = rest[4 : 4 + size]
            rest = rest[4 + size :]
        self.server_duid = options.get(2, b"")
        association = options.get(25, b"")
        if len(association) < 41 or association[12:16] != b"\0\x1a\0\x19":
            return  # no prefix: it asks again
        prefix = association[25:41], association[24]
        if body[0] == 2:

            def request() -> None:
                server = struct.pack("!HH", 2, len(self.server_duid)) + self.server_duid
                self._dhcpv6(3, server + self._association(prefix))

            self._repeat("dhcpv6", request, "the delegated prefix is refused")
        elif body[0] == 7:
            self._stop("dhcpv6")
            self.delegated = prefix
            renewal = struct.unpack("!I", association[4:8])[0]
            self._stop("t1")
            self._timers["t1"] = self._clock.call_later(renewal, self.renew)
            self._whole()
