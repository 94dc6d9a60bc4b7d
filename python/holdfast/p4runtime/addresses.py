"""Which addresses there are, and who reaches them."""

from __future__ import annotations

import ipaddress
from typing import Literal, TypeAlias

from holdfast.numerals import is_numeral
from holdfast.p4runtime.errors import invalid_argument

Access: TypeAlias = Literal["machine", "certificate", "anybody"]
"""Who may connect to a server: every process of its machine, clients with a certificate, or everybody who reaches its
address."""


def access_at(address: str, *, certificates: bool) -> Access:
    """Return which clients can write to a server at this address. ``certificates``: the server demands certificates of clients."""
    if certificates:
        return "certificate"
    return "machine" if is_loopback(address) else "anybody"


def is_loopback(address: str) -> bool:
    """Return True if an address (``127.0.0.1:9559``, ``[::1]:9559``, ``localhost:9559``, ``unix:path``) is local."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check(address: str) -> None:
    """Raise :class:`P4RuntimeError` for an address without a port up to 65535.

    Without this check gRPC would take a greater port modulo 2^16, or choose a missing one itself.
    """
    port = address.rpartition(":")[2]
    if not address.startswith("unix") and not (is_numeral(port) and int(port) < 1 << 16):
        raise invalid_argument(f"address {address!r}: write HOST:PORT with a port up to 65535, as in 127.0.0.1:9559")
