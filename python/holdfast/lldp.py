"""Link discovery frames (IEEE 802.1AB): a sender's name, its port, the time to live, and an authentication code.

The controller of the switches says in a frame's last TLV when it was made, and signs all before with a key that nobody else has:
hosts can send LLDP, but none that counts. Nothing is known here of switches, links, or when frames are sent.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from holdfast.errors import HoldfastError

ETHERTYPE = 0x88CC

NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
"""The frames' destination: no bridge forwards this address (802.1AB, 7.1)."""

END, CHASSIS_ID, PORT_ID, TIME_TO_LIVE, ORGANISATIONAL = 0, 1, 2, 3, 127
"""Types of TLVs (802.1AB, table 8-1)."""

LOCALLY_ASSIGNED = 7
"""The subtype of chassis and port identifiers whose meaning the administrator defines."""

ORGANISATION = bytes.fromhex("024846")
"""The OUI of this project's own TLVs: a value from the space that anybody may assign (IEEE 802c)."""

MADE_BY_CONTROLLER = 1
"""The subtype, under :data:`ORGANISATION`, of the TLV with the time (8 bytes) and the signature."""

SIGNATURE_BYTES = 16

MIN_FRAME_BYTES = 60

_TAG_BYTES = 3 + 1 + 8 + SIGNATURE_BYTES


class MalformedLldpError(HoldfastError):
    """A frame with the EtherType of LLDP is not what 802.1AB (8, 9.2.8.7) asks for."""


@dataclass(frozen=True)
class Lldpdu:
    """The contents of a frame. Identifiers are their subtypes and bytes.

    ``made_at_ps`` and ``signature`` are None if it has no TLV of a controller; ``signed`` is what the signature is of.
    """

    chassis: tuple[int, bytes]
    port: tuple[int, bytes]
    ttl_s: int
    made_at_ps: int | None = None
    signature: bytes | None = None
    signed: bytes = b""

    def is_genuine(self, key: bytes) -> bool:
        """Return True if the frame's signature was made with ``key``."""
        return self.signature is not None and hmac.compare_digest(self.signature, _sign(key, self.signed))


def _sign(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()[:SIGNATURE_BYTES]


def _tlv(kind: int, value: bytes) -> bytes:
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def frame(source_mac: bytes, chassis: str, port: int, ttl_s: int, made_at_ps: int, key: bytes) -> bytes:
    """Return the signed LLDP frame that a switch sends from a port. ``ttl_s``: the frame's time to live in seconds."""
    body = (
        _tlv(CHASSIS_ID, bytes((LOCALLY_ASSIGNED,)) + chassis.encode())
        + _tlv(PORT_ID, bytes((LOCALLY_ASSIGNED,)) + str(port).encode())
        + _tlv(TIME_TO_LIVE, ttl_s.to_bytes(2, "big"))
    )
    unsigned = ORGANISATION + bytes((MADE_BY_CONTROLLER,)) + made_at_ps.to_bytes(8, "big")
    tag = _tlv(ORGANISATIONAL, unsigned + _sign(key, body + unsigned))
    whole = NEAREST_BRIDGE + source_mac + ETHERTYPE.to_bytes(2, "big") + body + tag + _tlv(END, b"")
    return whole.ljust(MIN_FRAME_BYTES, b"\0")


def is_lldp(packet: bytes) -> bool:
    """Return True if a packet has LLDP's EtherType right after the addresses.

    A frame with a VLAN tag is not LLDP (802.1AB, 7.4).
    """
    return packet[12:14] == ETHERTYPE.to_bytes(2, "big")


def parse(packet: bytes) -> Lldpdu:
    """Return the fields of an LLDP frame from any sender. Raises :class:`MalformedLldpError` if the frame is malformed.

    The three mandatory TLVs come first and once; later ones may be missing, unknown, or of other organisations.
    """
    if not is_lldp(packet):
        raise MalformedLldpError("the frame is not LLDP")
    tlvs = _split(packet)
    if [kind for kind, _, _ in tlvs[:3]] != [CHASSIS_ID, PORT_ID, TIME_TO_LIVE]:
        raise MalformedLldpError("chassis, port and time to live are not the first three TLVs")
    if any(kind in (CHASSIS_ID, PORT_ID, TIME_TO_LIVE) for kind, _, _ in tlvs[3:]):
        raise MalformedLldpError("chassis, port or time to live is there twice")
    (_, _, chassis), (_, _, port), (_, _, ttl) = tlvs[:3]
    for what, value in (("chassis", chassis), ("port", port)):
        if not 2 <= len(value) <= 256:
            raise MalformedLldpError(f"the {what} identifier has {len(value)} bytes, not 2 to 256")
    if len(ttl) < 2:
        raise MalformedLldpError("the time to live has less than two bytes")
    made_at_ps, signature, signed = _signature(packet, tlvs[3:])
    return Lldpdu(
        (chassis[0], chassis[1:]),
        (port[0], port[1:]),
        int.from_bytes(ttl[:2], "big"),
        made_at_ps,
        signature,
        signed,
    )


def _split(packet: bytes) -> list[tuple[int, int, bytes]]:
    """Return the TLVs up to the one that ends the frame, each as (type, offset in the packet, value).

    Raises :class:`MalformedLldpError`.
    """
    tlvs = []
    at = 14
    while at < len(packet):
        if at + 2 > len(packet):
            raise MalformedLldpError("a TLV is cut off")
        head = int.from_bytes(packet[at : at + 2], "big")
        kind, length = head >> 9, head & 0x1FF
        if kind == END:
            if length:
                raise MalformedLldpError("the TLV at the end has a value")
            break
        value = packet[at + 2 : at + 2 + length]
        if len(value) < length:
            raise MalformedLldpError("a TLV is cut off")
        if kind == ORGANISATIONAL and length < 4:
            raise MalformedLldpError("a TLV of an organisation does not name it")
        tlvs.append((kind, at, value))
        at += 2 + length
    return tlvs


def _signature(packet: bytes, tlvs: list[tuple[int, int, bytes]]) -> tuple[int | None, bytes | None, bytes]:
    """Return the time in ps at which the packet was made, the signature, and the bytes that were signed.

    Those are the bytes from the first TLV to the time, without the two header bytes of the signature's TLV. Return (None, None,
    b"") if there is no such TLV. Raise :class:`MalformedLldpError` if it has the wrong length.
    """
    for kind, at, value in tlvs:
        if kind == ORGANISATIONAL and value[:4] == ORGANISATION + bytes((MADE_BY_CONTROLLER,)):
            if len(value) != _TAG_BYTES:
                raise MalformedLldpError(f"the signature's TLV has {len(value)} bytes, not {_TAG_BYTES}")
            return int.from_bytes(value[4:12], "big"), value[12:], packet[14:at] + value[:12]
    return None, None, b""
