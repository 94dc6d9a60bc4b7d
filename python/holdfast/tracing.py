"""``holdfast trace``: a packet's path through a program, from the interpreter's structured trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast import _core, entries_files
from holdfast.errors import ScenarioError
from holdfast.p4runtime.device import Device


def read_packets(text: str) -> list[bytes]:
    """Read packets from hexadecimal text (blanks, colons and a leading 0x are allowed) or from a capture file (pcap, pcapng).

    Raises :class:`ScenarioError` for other text, and for a file that cannot be read.
    """
    path = Path(text)
    # For long hexadecimal text these are false; Path's own would raise.
    is_there = os.path.exists(text) and not (os.path.isdir(text) and _is_hexadecimal(text))  # noqa: PTH110, PTH112
    if path.suffix in (".pcap", ".pcapng", ".cap") or is_there:
        try:
            return [data for _, data in _core.read_pcap(str(path))]
        except OSError as error:
            raise ScenarioError(f"{path}: {error.strerror or error}") from None
    if not _is_hexadecimal(text):
        raise ScenarioError(f"--packet: {text[:40]!r} is neither hexadecimal bytes nor a capture file")
    return [bytes.fromhex(_digits(text))]


def _digits(text: str) -> str:
    return text.removeprefix("0x").replace(":", "").replace(" ", "")


def _is_hexadecimal(text: str) -> bool:
    try:
        bytes.fromhex(_digits(text))
    except ValueError:
        return False
    return True


def trace(
    program: _core.Program,
    entries: Path | None,
    packets: Sequence[bytes],
    port: int,
    *,
    text: bool,
    assignments: bool = False,
) -> Iterator[str]:
    """Run the packets in order through one switch and yield a trace of each, as indented text or as JSON.

    ``entries``: a file for :func:`holdfast.entries_files.load`, for the switch to hold.
    ``assignments``: the traces also show each assignment.
    """
    switch = _core.Switch(program, executor="interpreter")
    if entries is not None:
        device = Device(1, switch, executor="interpreter")
        device.load(program)
        entries_files.install(entries_files.load(entries, program), device)
    return (switch.trace(port, packet, text=text, assignments=assignments) for packet in packets)
