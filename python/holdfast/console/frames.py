"""Frames as users write and see them: hexadecimal digits, or Scapy's expressions and summaries if Scapy is installed."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.errors import ConsoleError
from holdfast.terminal import printable

if TYPE_CHECKING:
    from holdfast.topology import Host

LONGEST_BYTES = 9018
"""Of a frame, with its Ethernet header."""

_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2}[\s:]*)+)")


def encoded(text: str, host: Host) -> bytes:
    """Return the bytes of a frame from a text. An Ethernet header of Scapy without a source has the host's address.

    Raises :class:`ConsoleError` with one sentence.
    """
    text = text.strip().strip("'\"") if _HEX.fullmatch(text.strip().strip("'\"")) else text.strip()
    digits = _HEX.fullmatch(text)
    data = bytes.fromhex(re.sub(r"[\s:]", "", digits[1])) if digits else _built(text, host)
    if not 14 <= len(data) <= LONGEST_BYTES:
        raise ConsoleError(f"a frame has 14 to {LONGEST_BYTES} bytes, and this one {len(data)}")
    return data


def _scapy() -> Any:
    try:
        from scapy import all as scapy
    except ImportError:
        return None
    return scapy


def _built(text: str, host: Host) -> bytes:
    scapy = _scapy()
    if scapy is None:
        raise ConsoleError(f"{text[:40]!r} is not hexadecimal; with Scapy installed, it could be an expression of it")
    try:
        packet = eval(text, {"__builtins__": {}}, _names(scapy))
        if not isinstance(packet, scapy.Packet):
            raise TypeError("it is no packet")
        if isinstance(packet, scapy.Ether):
            if "src" not in packet.fields:
                packet.src = host.mac.hex(":")
            if "dst" not in packet.fields:
                packet.dst = "ff:ff:ff:ff:ff:ff"
        # Else Scapy takes this machine's own address.
        if scapy.IP in packet and "src" not in packet[scapy.IP].fields:
            packet[scapy.IP].src = str(host.address.ip)
        return bytes(packet)
    except Exception as error:  # noqa: BLE001 - what a user writes can fail in any way
        raise ConsoleError(f"Scapy does not take {text[:60]!r}: {error}") from None


def _names(scapy: Any) -> dict[str, Any]:
    """Return Scapy's layers by name, and a few functions that make payloads."""
    found = {
        name: value
        for name, value in vars(scapy).items()
        if isinstance(value, type) and issubclass(value, scapy.Packet | scapy.Field)
    }
    return {**found, "bytes": bytes, "range": range, "len": len}


def shown(frame: bytes) -> str:
    """Return a frame on one line: Scapy's summary if Scapy is installed, its length, and its first bytes."""
    said = ""
    if (scapy := _scapy()) is not None:
        with suppress(Exception):
            said = f"{printable(scapy.Ether(frame).summary())[:70]}  "
    head = frame[:64].hex()
    return f"{said}{len(frame)} bytes  {head}{'...' if len(frame) > 64 else ''}"


__all__ = ["encoded", "shown"]
