"""A RADIUS server as a function, and RADIUS packets written by hand from the RFCs: nothing here is the product's or pyrad's."""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable

from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded

SECRET = "xyzzy5461"

Attributes = list[tuple[int, bytes]]


def encode(attributes: Attributes) -> bytes:
    """Return the bytes of RADIUS attributes, given as (type, value)."""
    return b"".join(bytes((kind, len(value) + 2)) + value for kind, value in attributes)


def decode(packet: bytes) -> Attributes:
    """Return the attributes of a packet as (type, value)."""
    found, at = [], 20
    assert struct.unpack("!H", packet[2:4])[0] == len(packet)
    while at < len(packet):
        found.append((packet[at], packet[at + 2 : at + packet[at + 1]]))
        at += packet[at + 1]
    return found


def vendor(number: int, kind: int, value: bytes) -> tuple[int, bytes]:
    """Return a Vendor-Specific attribute (RFC 2865, section 5.26) that contains one attribute of a vendor."""
    return 26, struct.pack("!IBB", number, kind, len(value) + 2) + value


def signed(
    request: bytes, code: int, attributes: Attributes, secret: bytes = SECRET.encode(), sign: bool = True
) -> bytes:
    """Return a signed answer (RFC 2865, section 3).

    With ``sign``, its first attribute is a Message-Authenticator (RFC 2869, 5.14).
    """
    if sign:
        attributes = [(80, bytes(16)), *attributes]
    body = encode(attributes)
    head = struct.pack("!BBH", code, request[1], 20 + len(body))
    if sign:
        over = bytes(16) if code == 5 else request[4:20]
        body = body[:2] + hmac.digest(secret, head + over + body, "md5") + body[18:]
    return head + hashlib.md5(head + request[4:20] + body + secret).digest() + body


def authorization_request(
    code: int,
    identifier: int,
    attributes: Attributes,
    stamp_s: float | None,
    sign: bool = True,
    secret: bytes = SECRET.encode(),
) -> bytes:
    """Return a CoA (43) or Disconnect (40) request (RFC 5176, section 2.3), with a Message-Authenticator first.

    ``stamp_s``: the Event-Timestamp, the last attribute, in Unix seconds; None to leave it out.
    """
    stamp = [] if stamp_s is None else [(55, int(stamp_s).to_bytes(4, "big"))]
    body = encode([*([(80, bytes(16))] if sign else []), *attributes, *stamp])
    head = struct.pack("!BBH", code, identifier, 20 + len(body))
    if sign:
        body = body[:2] + hmac.digest(secret, head + bytes(16) + body, "md5") + body[18:]
    return head + hashlib.md5(head + bytes(16) + body + secret).digest() + body


class Server:
    """A server as a function; ``alive`` says whether it answers."""

    def __init__(self) -> None:
        self.alive = True
        self.seen: list[bytes] = []
        self.reply: Callable[[bytes], bytes | None] = lambda request: signed(request, 2 if request[0] == 1 else 5, [])

    def __call__(self, request: bytes) -> bytes | None:
        """Record a request and return the answer, or None for no answer."""
        self.seen.append(request)
        return self.reply(request) if self.alive else None


def values(packet: bytes, kind: int) -> list[bytes]:
    """Return the values of all a packet's attributes of type ``kind``."""
    return [value for each, value in decode(packet) if each == kind]


def vendors(packet: bytes, number: int, kind: int) -> list[bytes]:
    """Return the values of all a packet's vendor-specific attributes of this vendor and type."""
    head = struct.pack("!IB", number, kind)
    return [value[6:] for value in values(packet, 26) if value[:5] == head]


class Online:
    """A gateway that asks a RADIUS server, which accepts everybody with ``accept``, and subscribers."""

    def __init__(
        self, accept: Attributes | None = None, radius: dict[str, object] | None = None, **changes: object
    ) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.accept = accept or []
        self.server = Server()
        self.server.reply = lambda request: (
            signed(request, 2, self.accept) if request[0] == 1 else signed(request, 5, [])
        )
        servers = [{"host": "127.0.0.1", "secret": SECRET}]
        section = {"servers": servers, "nas_identifier": "bng-1", **(radius or {})}
        self.configuration = configuration(users={}, radius=section, **changes)
        assert self.configuration.radius is not None
        self.client = RadiusClient(
            self.configuration.radius, self.clock, self.transmit, random=seeded(7), wall=self.wall
        )
        self.gateway = Gateway(
            self.configuration, self.plane, self.clock, self.client, random=seeded(8), accountant=self.client,
            wall=self.wall,
        )  # fmt: skip
        self.gateway.start()

    def wall(self) -> float:
        """Return the Unix time in seconds."""
        return 1_000_000 + self.clock.now()

    def transmit(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        """Pass a datagram to the server, and its answer, if any, to the client one millisecond later."""
        answer = self.server(data)
        if answer is not None:
            self.clock.call_later(0.001, lambda: self.client.received(server, accounting, channel, answer))

    def dial(self, number: int = 1, **account: object) -> Subscriber:
        """Add a subscriber that dials, run for two seconds, and return the subscriber."""
        line, mac = Line(1, 100, number), bytes.fromhex("0200000001") + bytes((number,))
        host = Subscriber(
            Account(**{"user": "alice", "password": "secret", **account}),  # type: ignore[arg-type]
            mac, self.clock, lambda frame: self.plane.from_line(line, frame), seed=number,
        )  # fmt: skip
        self.plane.hosts[line, mac] = host.receive
        host.dial()
        self.clock.run(2)
        return host

    def requests(self, code: int) -> list[bytes]:
        """Return the requests that the server has received with this code: Access-Request (1) or Accounting-Request (4)."""
        return [each for each in self.server.seen if each[0] == code]
