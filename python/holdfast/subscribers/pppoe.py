"""PPP over Ethernet (RFC 2516): frames of both stages, and the access concentrator's part of discovery.

Discovery keeps no state until a valid PADR: the AC-Cookie of a PADO is an HMAC over the line, the subscriber's MAC address
and a time slot. Knows RFC 4638 (PPP-Max-Payload) and TR-101's circuit and remote id; knows no session and sends nothing itself.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from holdfast.errors import HoldfastError
from holdfast.subscribers.plane import Line

BROADCAST = b"\xff" * 6
DISCOVERY = b"\x88\x63"
SESSION = b"\x88\x64"

MRU = 1492
"""The largest PPP payload in bytes without PPP-Max-Payload (RFC 2516, section 7)."""

OVERHEAD = 8
"""Bytes of PPPoE's header and PPP's protocol field (RFC 2516, section 4)."""

LONGEST_PADI = 1484
"""Bytes of a PADI with its PPPoE header: the rest is for an agent's tag (RFC 2516, section 5.1)."""

_VERSION_TYPE = 0x11
_HEADER = struct.Struct("!6s6s2sBBHH")
_TAG = struct.Struct("!HH")


class Code(IntEnum):
    """The CODE field."""

    SESSION = 0x00
    PADO = 0x07
    PADI = 0x09
    PADR = 0x19
    PADS = 0x65
    PADT = 0xA7


class Tag(IntEnum):
    """TAG_TYPE (RFC 2516, appendix A; RFC 4638)."""

    END_OF_LIST = 0x0000
    SERVICE_NAME = 0x0101
    AC_NAME = 0x0102
    HOST_UNIQ = 0x0103
    AC_COOKIE = 0x0104
    VENDOR_SPECIFIC = 0x0105
    RELAY_SESSION_ID = 0x0110
    PPP_MAX_PAYLOAD = 0x0120
    SERVICE_NAME_ERROR = 0x0201
    AC_SYSTEM_ERROR = 0x0202
    GENERIC_ERROR = 0x0203


class MalformedError(HoldfastError):
    """A frame that breaks a rule of its protocol; the text is a short reason, by which drops are counted."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """A discovery packet. Tags are in the packet's order; those after End-Of-List are not there."""

    destination: bytes
    source: bytes
    code: int
    session_id: int = 0
    tags: tuple[tuple[int, bytes], ...] = ()

    def first(self, tag: Tag) -> bytes | None:
        """Return the value of the packet's first tag of this type, or None if there is none."""
        return next((value for each, value in self.tags if each == tag), None)

    def all(self, tag: Tag) -> list[bytes]:
        """Return the values of all the packet's tags of this type."""
        return [value for each, value in self.tags if each == tag]

    def write(self) -> bytes:
        """Return the packet as an Ethernet frame without VLAN tags and without padding."""
        body = b"".join(_TAG.pack(tag, len(value)) + value for tag, value in self.tags)
        return (
            _HEADER.pack(self.destination, self.source, DISCOVERY, _VERSION_TYPE, self.code, self.session_id, len(body))
            + body
        )


def read_discovery(frame: bytes) -> Discovery:
    """Parse a frame of the discovery stage, without its padding. Raises :class:`MalformedError` for a malformed frame."""
    if len(frame) < _HEADER.size:
        raise MalformedError("short")
    destination, source, ethertype, version, code, session_id, length = _HEADER.unpack_from(frame)
    if ethertype != DISCOVERY or version != _VERSION_TYPE:
        raise MalformedError("version")
    end = _HEADER.size + length
    if end > len(frame):
        raise MalformedError("length")
    tags, at = [], _HEADER.size
    while at < end:
        if at + 4 > end:
            raise MalformedError("tag")
        tag, size = _TAG.unpack_from(frame, at)
        if tag == Tag.END_OF_LIST:
            break
        at += 4 + size
        if at > end:
            raise MalformedError("tag")
        tags.append((tag, frame[at - size : at]))
    return Discovery(destination, source, code, session_id, tuple(tags))


def session_frame(destination: bytes, source: bytes, session_id: int, protocol: int, payload: bytes) -> bytes:
    """Return a PPP packet as an Ethernet frame of the session stage (RFC 2516, section 6)."""
    return (
        _HEADER.pack(destination, source, SESSION, _VERSION_TYPE, Code.SESSION, session_id, 2 + len(payload))
        + protocol.to_bytes(2, "big")
        + payload
    )


def read_session(frame: bytes) -> tuple[bytes, bytes, int, int, bytes]:
    """Parse a frame of the session stage into destination, source, session id, PPP protocol and payload.

    Raises :class:`MalformedError` for a malformed frame.
    """
    if len(frame) < _HEADER.size + 2:
        raise MalformedError("short")
    destination, source, ethertype, version, code, session_id, length = _HEADER.unpack_from(frame)
    if ethertype != SESSION or version != _VERSION_TYPE or code != Code.SESSION:
        raise MalformedError("version")
    if length < 2 or _HEADER.size + length > len(frame):
        raise MalformedError("length")
    protocol = int.from_bytes(frame[20:22], "big")
    if protocol & 0x0101 != 1:  # RFC 1661, section 2
        raise MalformedError("protocol")
    return destination, source, session_id, protocol, frame[22 : _HEADER.size + length]


class Cookies:
    """AC-Cookies: 4 bytes of time slot, 8 of nonce, 16 of HMAC-SHA256 over these, the line and the MAC address.

    A cookie is valid in its slot and in the next one. The nonce tells two discoveries of one host apart.
    """

    def __init__(self, key: bytes, random: Callable[[int], bytes], slot_s: float = 10.0) -> None:
        self._key, self._random, self._slot_s = key, random, slot_s

    def make(self, line: Line, mac: bytes, now_s: float) -> bytes:
        """Return a new cookie for a host (MAC address) on an access line."""
        head = (int(now_s / self._slot_s) & 0xFFFFFFFF).to_bytes(4, "big") + self._random(8)
        return head + self._mac(head, line, mac)

    def valid(self, cookie: bytes | None, line: Line, mac: bytes, now_s: float) -> bool:
        """Return True if the cookie was made for this host on this access line, in the present or the previous time slot."""
        if cookie is None or len(cookie) != 28:
            return False
        age = int(now_s / self._slot_s) - int.from_bytes(cookie[:4], "big") & 0xFFFFFFFF
        return age <= 1 and hmac.compare_digest(cookie[12:], self._mac(cookie[:12], line, mac))

    def _mac(self, head: bytes, line: Line, mac: bytes) -> bytes:
        where = struct.pack("!IHH", line.port, line.s_tag, line.c_tag)
        return hmac.digest(self._key, head + where + mac, "sha256")[:16]


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """A valid PADR: a request for a session. Circuit and remote id are the access node's words (TR-101), empty without them."""

    line: Line
    mac: bytes
    service: bytes
    max_payload: int
    circuit_id: bytes
    remote_id: bytes
    cookie: bytes
    echoed: tuple[tuple[int, bytes], ...]


_BROADBAND_FORUM = b"\x00\x00\x0d\xe9"


def access_line(packet: Discovery) -> tuple[bytes, bytes]:
    """Return the agent circuit id and agent remote id (TR-101, appendix A; RFC 4679's sub-options 1 and 2), empty where absent."""
    found = {1: b"", 2: b""}
    for value in packet.all(Tag.VENDOR_SPECIFIC):
        if value[:4] != _BROADBAND_FORUM:
            continue
        at = 4
        while at + 2 <= len(value):
            kind, size = value[at], value[at + 1]
            part = value[at + 2 : at + 2 + size]
            if len(part) < size:
                break
            if kind in found:
                found[kind] = part
            at += 2 + size
    return found[1], found[2]


class Concentrator:
    """The access concentrator's words in discovery. ``services`` empty: any Service-Name is served."""

    def __init__(self, mac: bytes, name: str, services: tuple[str, ...], max_payload: int, cookies: Cookies) -> None:
        self.mac, self.name, self.max_payload = mac, name, max_payload
        self._services, self._cookies = tuple(each.encode() for each in services), cookies

    def offer(self, padi: Discovery, line: Line, now_s: float) -> bytes | None:
        """Return the PADO frame for a PADI; None if its Service-Name is not served (section 5.2).

        Raises :class:`MalformedError` for a PADI that breaks RFC 2516.
        """
        if padi.session_id:
            raise MalformedError("session")
        if 20 + sum(4 + len(value) for _, value in padi.tags) - 14 > LONGEST_PADI:
            raise MalformedError("length")
        wanted = self._service(padi)
        if wanted is None:
            return None
        others = [(int(Tag.SERVICE_NAME), each) for each in self._services if each != wanted]
        tags = (
            (int(Tag.AC_NAME), self.name.encode()),
            (int(Tag.SERVICE_NAME), wanted),
            *others,
            (int(Tag.AC_COOKIE), self._cookies.make(line, padi.source, now_s)),
            *self._echoed(padi),
        )
        return Discovery(padi.source, self.mac, Code.PADO, 0, tags).write()

    def request(self, padr: Discovery, line: Line, now_s: float) -> SetupRequest | bytes:
        """Return the session request in a PADR, or a PADS frame with an error tag that refuses the request.

        Raises :class:`MalformedError` for a PADR without a valid cookie, which gets no answer, as its source may be forged.
        """
        if padr.session_id:
            raise MalformedError("session")
        cookie = padr.first(Tag.AC_COOKIE)
        if cookie is None or not self._cookies.valid(cookie, line, padr.source, now_s):
            raise MalformedError("cookie")
        service = self._service(padr)
        if service is None:
            return self.refuse(padr, Tag.SERVICE_NAME_ERROR, "no such service")
        circuit, remote = access_line(padr)
        return SetupRequest(
            line,
            padr.source,
            service,
            self._payload(padr) or MRU,
            circuit,
            remote,
            cookie,
            ((int(Tag.SERVICE_NAME), service), *self._echoed(padr)),
        )

    def confirm(self, request: SetupRequest, session_id: int) -> bytes:
        """Return the frame of the PADS that confirms a new session to the host that requested it."""
        return Discovery(request.mac, self.mac, Code.PADS, session_id, request.echoed).write()

    def refuse(self, padr: Discovery | SetupRequest, error: Tag, sentence: str) -> bytes:
        """Return a PADS frame with session id 0 and an error tag (RFC 2516, section 5.4)."""
        if isinstance(padr, SetupRequest):
            destination, echoed = padr.mac, padr.echoed
        else:
            named = [(int(Tag.SERVICE_NAME), each) for each in padr.all(Tag.SERVICE_NAME)[:1]]
            destination, echoed = padr.source, (*named, *self._echoed(padr))
        return Discovery(destination, self.mac, Code.PADS, 0, ((int(error), sentence.encode()), *echoed)).write()

    def terminate(self, mac: bytes, session_id: int, sentence: str = "") -> bytes:
        """Return a PADT frame (RFC 2516, section 5.5), with ``sentence`` in a Generic-Error tag unless it is empty."""
        tags = ((int(Tag.GENERIC_ERROR), sentence.encode()),) if sentence else ()
        return Discovery(mac, self.mac, Code.PADT, session_id, tags).write()

    def _service(self, packet: Discovery) -> bytes | None:
        """Return the Service-Name to serve, or None if it is not served.

        An empty name means any service. Raise :class:`MalformedError` unless the packet has exactly one Service-Name.
        """
        wanted = packet.all(Tag.SERVICE_NAME)
        if len(wanted) != 1:
            raise MalformedError("service-name")
        return wanted[0] if not self._services or not wanted[0] or wanted[0] in self._services else None

    def _payload(self, packet: Discovery) -> int | None:
        """Return the greatest PPP payload in bytes that both sides take; None if the host names none above 1,492 (RFC 4638)."""
        value = packet.first(Tag.PPP_MAX_PAYLOAD)
        if value is None or len(value) != 2:
            return None
        payload = min(int.from_bytes(value, "big"), self.max_payload)
        return payload if payload > MRU else None

    def _echoed(self, packet: Discovery) -> list[tuple[int, bytes]]:
        """Return the tags that an answer must repeat unmodified (Host-Uniq, Relay-Session-Id), and our PPP-Max-Payload."""
        tags = [(tag, value) for tag, value in packet.tags if tag in (Tag.HOST_UNIQ, Tag.RELAY_SESSION_ID)]
        payload = self._payload(packet)
        if payload is not None:
            tags.append((int(Tag.PPP_MAX_PAYLOAD), payload.to_bytes(2, "big")))
        return tags
