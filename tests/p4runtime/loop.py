"""A server whose switch runs loop.p4, with wires that return every packet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import _core
from holdfast.p4runtime import Device, Server

HERE = Path(__file__).parent
CPU_PORT = 510


@contextmanager
def loop_server(executor: str) -> Iterator[tuple[Server, _core.Program]]:
    """Run a switch with loop.p4 whose packets all come back to the controller; yield its server and program."""
    program = _core.Program.compile(str(HERE / "loop.p4"))
    switch = _core.Switch(program, executor=executor)  # type: ignore[arg-type]

    def packet_out(packet: bytes) -> None:
        for _, left in switch.process(CPU_PORT, packet):
            device.packet_in(left)
        device.collect_digests(time.time_ns())

    device = Device(1, switch, packet_out=packet_out)
    with Server([device], "127.0.0.1:0") as server:
        yield server, program
