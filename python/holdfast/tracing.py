"""``holdfast trace``: a packet's path through a program, from the interpreter's structured trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast import _core, yaml_model
from holdfast.errors import ScenarioError
from holdfast.p4runtime.client import Client, LocalClient
from holdfast.p4runtime.device import Device
from holdfast.parameters import Checked


class _Entry(Checked):
    match: dict[str, Any] = {}
    action: str
    params: dict[str, Any] = {}
    priority: int | None = None
    default: bool = False


class Entries(Checked):
    """The content of an entries file.

    ``tables``: entries by table name. ``multicast_groups`` and ``clone_sessions``: lists of ``[port, instance]`` by number.
    ``registers``: values by register name and index.
    """

    tables: dict[str, list[_Entry]] = {}
    multicast_groups: dict[int, list[tuple[int, int]]] = {}
    clone_sessions: dict[int, list[tuple[int, int]]] = {}
    registers: dict[str, dict[int, int]] = {}

    def install(self, client: Client) -> None:
        """Write all table entries, groups, sessions and registers of this file through a P4Runtime client."""
        for table, entries in self.tables.items():
            for entry in entries:
                if entry.default:
                    client.set_default(table, entry.action, entry.params)
                else:
                    client.insert(table, entry.match, entry.action, entry.params, priority=entry.priority)
        for group, replicas in self.multicast_groups.items():
            client.multicast_group(group, replicas)
        for session, replicas in self.clone_sessions.items():
            client.clone_session(session, replicas)
        for register, cells in self.registers.items():
            for index, value in cells.items():
                client.write_register(register, index, value)


def read_packets(text: str) -> list[bytes]:
    """Read packets from hexadecimal text (blanks, colons and a leading 0x are allowed) or from a capture file (pcap, pcapng)."""
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

    ``assignments``: the traces also show each assignment.
    """
    switch = _core.Switch(program, executor="interpreter")
    if entries is not None:
        client = LocalClient(Device(1, switch, executor="interpreter"))
        client.set_pipeline(program)
        yaml_model.read(entries, Entries).install(client)
    return (switch.trace(port, packet, text=text, assignments=assignments) for packet in packets)
