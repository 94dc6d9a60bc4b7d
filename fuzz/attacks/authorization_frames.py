"""Datagrams of a dynamic authorization client (RFC 5176), with authenticators (RFC 2866, section 3; RFC 2869, section 5.14)."""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable

DISCONNECT, DISCONNECT_ACK, COA, COA_ACK = 40, 41, 43, 44
USER_NAME, SESSION_TIMEOUT, NAS_IDENTIFIER, ACCT_SESSION_ID, EVENT_TIMESTAMP, MESSAGE_AUTHENTICATOR = (
    1,
    27,
    32,
    44,
    55,
    80,
)
WISPR, MAX_UP, MAX_DOWN = 14122, 7, 8

Attributes = list[tuple[int, bytes]]


def attribute(kind: int, value: bytes) -> bytes:
    """Return the bytes of a RADIUS attribute (RFC 2865, section 5)."""
    return bytes((kind, 2 + len(value))) + value


def wispr(kind: int, value: int) -> tuple[int, bytes]:
    """Return WISPr's 32-bit number as a Vendor-Specific attribute 26 (RFC 2865, section 5.26)."""
    return 26, struct.pack("!IBBI", WISPR, kind, 6, value & 0xFFFFFFFF)


def request(code: int, identifier: int, attributes: Iterable[tuple[int, bytes]], secret: bytes) -> bytes:
    """Return a signed RADIUS request with these attributes and a Message-Authenticator.

    The Message-Authenticator is computed over zeros in place of itself and of the Request Authenticator; the Request Authenticator
    is computed last.
    """
    body = b"".join(attribute(kind, value) for kind, value in attributes)
    unsigned = body + attribute(MESSAGE_AUTHENTICATOR, bytes(16))
    head = struct.pack("!BBH", code, identifier & 0xFF, 20 + len(unsigned))
    signature = hmac.digest(secret, head + bytes(16) + unsigned, "md5")
    signed = body + attribute(MESSAGE_AUTHENTICATOR, signature)
    return head + hashlib.md5(head + bytes(16) + signed + secret).digest() + signed
