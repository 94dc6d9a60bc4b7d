"""A switch in real time that carries 10,000 packets/s between two modelled hosts, with a P4Runtime server beside it.

With ``HOLDFAST_ABUSE_LOG=FILE`` each test appends a line of JSON: its packets sent and lost, the slowest write of its primary, the
longest step of control in processor time, and the resident memory before and after.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from p4.v1 import p4runtime_pb2 as p4

from holdfast import _core
from holdfast.errors import HoldfastError
from holdfast.p4runtime import Device, GrpcClient, P4InfoIndex, P4RuntimeError, Server
from holdfast.p4runtime.stubs import p4info_pb2

HERE = Path(__file__).parent
PACKETS_PER_S = 10_000


@dataclass
class Steady:
    """What the tests act on."""

    core: _core.Network
    device: Device
    server: Server
    slowest_writes_s: list[float] = field(default_factory=list)
    """Of each :class:`Writer` that has ended."""

    @property
    def index(self) -> P4InfoIndex:
        """The program's P4Info."""
        assert self.device._running is not None
        return index_of(self.device._running.config.p4info.SerializeToString())

    def longest_pause_ms(self) -> float:
        """How late an event of the network was at most: packets waited so long."""
        return self.core.wall_statistics()["max_lateness_ps"] / 1e9

    def longest_command_ms(self) -> float:
        """The most processor time that a step of control took between two packets."""
        time.sleep(0.05)  # a step is answered before it is counted
        return self.core.wall_statistics()["max_command_cpu_ps"] / 1e9

    def fill(self, entries: int, batch: int = 1 << 16) -> None:
        """Puts entries 1 to ``entries`` into the table of addresses."""
        for start in range(1, entries + 1, batch):
            numbers = range(start, min(start + batch, entries + 1))
            self.device.write(request(self.device, p4.Update.INSERT, numbers))


@cache
def index_of(p4info: bytes) -> P4InfoIndex:
    """Of a serialized P4Info."""
    return P4InfoIndex(p4info_pb2.P4Info.FromString(p4info))


def request(
    device: Device, kind: int, numbers: range, *, atomicity: int = 0, metadata: bytes = b"", timeout_ns: int = 0
) -> p4.WriteRequest:
    """One update of the table of addresses for each number."""
    assert device._running is not None
    index = index_of(device._running.config.p4info.SerializeToString())
    table, action = index.table("addresses"), index.action("note")
    written = p4.WriteRequest(device_id=1, atomicity=atomicity)
    written.election_id.low = 1
    for number in numbers:
        update = written.updates.add(type=kind)
        entry = update.entity.table_entry
        entry.table_id = table.id
        match = entry.match.add(field_id=1)
        match.exact.value = number.to_bytes(6, "big").lstrip(b"\0") or b"\0"
        if kind != p4.Update.DELETE:
            entry.action.action.action_id = action.id
            for param in action.params:
                entry.action.action.params.add(param_id=param.id, value=b"\1")
        entry.metadata, entry.idle_timeout_ns = metadata, timeout_ns
    return written


@contextmanager
def steady(source: str = "steady.p4", *, copies_per_s: int = _core.COPIES_PER_S) -> Iterator[Steady]:
    """It runs while inside. At the end no packet of the stream may be missing, whatever was done to the switch."""
    program = _core.Program.compile(str(HERE / source))
    core = _core.Network()
    switch = core.add_switch("s1", program)
    for number, name in enumerate(("a", "b")):
        core.add_host(
            name,
            mac=bytes([2, 0, 0, 0, 0, number]),
            ipv4=f"10.0.0.{number + 1}",
            prefix_len=8,
            gateway_mac=bytes([2, 0, 0, 0, 0, 1 - number]),
        )
        core.add_link(name, 0, "s1", number, rate_bps=10**10)
    device = Device(1, switch)
    device.load(program)
    core.add_udp_stream(
        "a",
        "b",
        packets_per_s=PACKETS_PER_S,
        payload_bytes=64,
        start_ps=0,
        stop_ps=10**16,
        log_packets=False,
    )
    with Server([device], "127.0.0.1:0") as server:
        core.start(copies_per_s=copies_per_s)
        before_mb = memory_mb()
        try:
            running = Steady(core, device, server)
            yield running
            found = ended(core)
            write_log(running, found, before_mb)
            assert found["sent"] > 0
            assert found["lost"] == 0, f"{found['lost']} of {found['sent']} packets were lost"
        finally:
            core.stop()


def memory_mb() -> float:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def write_log(running: Steady, found: dict[str, Any], before_mb: float) -> None:
    """See the module."""
    if (path := os.environ.get("HOLDFAST_ABUSE_LOG")) is None:
        return
    gc.collect()
    line = {
        "test": os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[-1].split(" ")[0],
        "sent": found["sent"],
        "lost": found["lost"],
        "slowest_write_s": max(running.slowest_writes_s, default=None),
        "longest_step_ms": running.longest_command_ms(),
        "memory_mb": [before_mb, memory_mb()],
    }
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def ended(core: _core.Network) -> dict[str, Any]:
    """Ends the stream and waits for its last packets; its statistics."""
    core.end_flow(0)
    deadline = time.monotonic() + 60
    while (found := core.statistics(0))["lost"] and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@contextmanager
def served(switch: Steady) -> Iterator[None]:
    """Hands the device what the network says, as whoever runs a switch does."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            for notification in switch.core.poll(0.1):
                if notification.kind == "digest":
                    switch.device.collect_digests(time.time_ns())
                elif notification.kind == "idle_timeout":
                    switch.device.collect_idle(time.time_ns())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def primary(address: str) -> GrpcClient:
    """A client with the default election id, as soon as the server has noticed the end of the one that had it before."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return GrpcClient(address)
        except P4RuntimeError as e:
            if "is used by another controller" not in e.message or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class Writer:
    """A primary that writes one update after another, and how long each took at most."""

    def __init__(self, steady: Steady, *, period_s: float = 0.02) -> None:
        self.client = primary(steady.server.address)
        self.slowest_s = 0.0
        self.writes = 0
        self._steady = steady
        self._period_s = period_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: grpc.RpcError | HoldfastError | None = None

    def _run(self) -> None:
        number = 1 << 32
        kinds = (p4.Update.INSERT, p4.Update.MODIFY, p4.Update.DELETE)
        try:
            while not self._over.is_set():
                update = request(self._steady.device, kinds[self.writes % 3], range(number, number + 1))
                begin = time.monotonic()
                self.client._call_write(update)
                self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
                self.writes += 1
                self._over.wait(self._period_s)
        except (grpc.RpcError, HoldfastError) as e:
            self.error = e

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._steady.slowest_writes_s.append(self.slowest_s)
        self.client.close()
        if self.error:
            raise self.error
