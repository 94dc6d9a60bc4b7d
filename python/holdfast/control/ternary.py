"""Ternary keys from what people write: prefixes and numbers, of which those that are None match everything.

Which fields there are, and what they mean, is each application's matter.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from holdfast.errors import NetworkError


def prefix_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Parse a prefix (``"10.0.1.0/24"``) or a single address. Raises :class:`NetworkError` if ``text`` is neither."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise NetworkError(f"{text!r} is not a prefix: {error}") from None


def ternary_key(
    prefixes: Mapping[str, str | None], numbers: Mapping[str, tuple[int | None, int]]
) -> dict[str, tuple[int, int]]:
    """Return (value, mask) for each key field, by name; fields given as None are left out, so that they match any value.

    ``prefixes``: by field, an IP prefix as text, whose netmask is the mask. ``numbers``: by field, a number and its mask.
    """
    key: dict[str, tuple[int, int]] = {}
    for field, text in prefixes.items():
        if text is not None:
            prefix = prefix_of(text)
            key[field] = (int(prefix.network_address), int(prefix.netmask))
    for field, (number, mask) in numbers.items():
        if number is not None:
            key[field] = (number, mask)
    return key
