"""Which addresses plaintext is harmless on."""

from __future__ import annotations

import ipaddress


def is_loopback(address: str) -> bool:
    """Whether an address (``127.0.0.1:9559``, ``[::1]:9559``, ``localhost:9559``, ``unix:path``) is local."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
