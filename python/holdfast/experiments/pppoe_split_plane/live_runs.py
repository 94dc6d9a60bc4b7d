"""A row of the first table in real time: planes are processes ``holdfast switch`` on interfaces of this machine. Needs root.

The subscriber and the server are namespaces with programs that send and receive frames. A session is written over P4Runtime, as
the gateway's control plane does. All of them share this machine's processors.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Network
from typing import Any

from holdfast import _core, interpreter
from holdfast.apps.bng import (
    AccessPort,
    AuthenticationPlane,
    Balancer,
    CorePort,
    Edges,
    ForwardingPlane,
    Route,
    SinglePlane,
    SplitPlane,
)
from holdfast.apps.bng.program import HERE, VARIANTS
from holdfast.errors import HoldfastError, LiveError
from holdfast.experiments import this_machine
from holdfast.experiments.pppoe_split_plane import published, setup
from holdfast.experiments.pppoe_split_plane.frames import upstream
from holdfast.p4runtime.client import GrpcClient
from holdfast.subscribers.plane import UserPlane
from holdfast.sweep import Point

FEW = 3_000


def interval_ns(count: int) -> int:
    """Return the interval between packets whose latency is measured, in ns, for a row of ``count`` packets.

    It is 1 ms, so that planes are mostly idle, and 0.1 ms in long rows.
    """
    return 1_000_000 if count <= FEW else 100_000


LOAD_S = 1.0
"""The time of sending as many packets as the kernel takes, to see how many are forwarded."""

START_S = 90.0
POINTS: list[Point] = [{"packets": count, "plane": plane} for count in published.PACKETS for plane in published.PLANES]
CORE_MAC, SERVER_MAC = "02:00:00:00:00:09", "06:00:00:00:00:09"


def cable_names() -> list[tuple[str, str]]:
    """Return the pairs of interfaces that are cables from the balancer: one to authentication, two to forwarding.

    Names contain the process id, so that several processes do not share them.
    """
    return [(f"hfs{os.getpid()}{cable}0", f"hfs{os.getpid()}{cable}1") for cable in "afc"]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def switch(source: str, interfaces: Mapping[int, str], defines: Mapping[str, str]) -> Iterator[GrpcClient]:
    """Start ``holdfast switch`` as a process, and yield a client of it; stop it at the end.

    Raise :class:`LiveError` if it does not start.
    """
    number = _free_port()
    address = f"127.0.0.1:{number}"
    # On one machine, no two switches have the same device id.
    words = interpreter.module("holdfast", "switch", str(HERE / source))
    words += ["--grpc", address, "--device-id", str(number)]
    for port, name in interfaces.items():
        words += ["-i", f"{port}@{name}"]
    for name, value in defines.items():
        words += ["-D", f"{name}={value}"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        with _connected(process, address, number) as client:
            yield client
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _connected(process: subprocess.Popen[str], address: str, device_id: int) -> GrpcClient:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s and process.poll() is None:
        try:
            return GrpcClient(address, device_id)
        except HoldfastError:
            time.sleep(0.1)
    process.kill()
    assert process.stderr is not None
    raise LiveError(f"a switch does not start: {process.stderr.read().strip().splitlines()[-1:]}")


@contextmanager
def cables() -> Iterator[None]:
    """Create the pairs of interfaces between switches, and remove them at the end of the context."""
    made: list[str] = []
    try:
        for a, b in cable_names():
            _ip("link", "add", a, "type", "veth", "peer", "name", b)
            made.append(a)
            for name in (a, b):
                _ip("link", "set", name, "addrgenmode", "none", "up")
        yield
    finally:
        for name in made:
            subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LiveError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class _WallClock:
    """For handovers, of which there are none here."""

    def now(self) -> float:
        """Return the monotonic clock's time in seconds."""
        return time.monotonic()

    def call_later(self, delay_s: float, action: object) -> Any:
        """Raise :class:`LiveError`, as this measurement needs no timers."""
        raise LiveError("nothing is handed over in this measurement")


EDGES = Edges(
    access=(AccessPort(port=1, mac=setup.GATEWAY_MAC),),
    core=(CorePort(port=2, mac=CORE_MAC),),
    routes=(Route(prefix=IPv4Network("0.0.0.0/0"), port=2, next_hop_mac=SERVER_MAC),),
)


def _gateway(stack: ExitStack, plane: str, home: str, core: str) -> UserPlane:
    if plane == "single":
        return SinglePlane(stack.enter_context(switch("bng.p4", {1: home, 2: core}, VARIANTS["single"])), EDGES)
    stack.enter_context(cables())
    (auth0, auth1), (access0, access1), (core0, core1) = cable_names()
    balancer = stack.enter_context(switch("balancer.p4", {1: home, 2: auth0, 3: core, 11: access0, 12: core0}, {}))
    authentication = stack.enter_context(switch("bng.p4", {1: auth1}, VARIANTS["auth"]))
    forwarding = stack.enter_context(switch("bng.p4", {1: access1, 2: core1}, VARIANTS["forward"]))
    return SplitPlane(
        EDGES,
        Balancer(balancer, {SERVER_MAC: 3}),
        AuthenticationPlane(authentication, 1, 2),
        {"forwarding": ForwardingPlane(forwarding, 1, 11, 12)},
        _WallClock(),
        drain_s=0,
    )


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Measure a row of Table 1: the latency of each packet in ms, and packets per second at the highest rate.

    The highest rate is that at which the kernel takes packets from the sender.
    """
    count = point["packets"]
    session = setup.session()
    frame = upstream(session, setup.GATEWAY_MAC, setup.PAYLOAD_BYTES)
    length = 14 + 28 + setup.PAYLOAD_BYTES
    with ExitStack() as stack:
        home = stack.enter_context(_core.Namespace("home"))
        core = stack.enter_context(_core.Namespace("core"))
        outside = home.add_veth("eth0"), core.add_veth("eth0")
        user_plane = _gateway(stack, point["plane"], *outside)
        user_plane.receive(lambda line, frame: None)
        user_plane.install([session])
        _round(home, core, frame, length, 50)  # the first round is a warm-up
        latencies_ms = _round(home, core, frame, length, count)
        before = core.interface_counters("eth0")
        load = home.send_load("eth0", [frame], duration_s=LOAD_S)
        took_s = load.elapsed_ns / 1e9
        time.sleep(0.2)
        after = core.interface_counters("eth0")
    return {
        "latency_ms": statistics.fmean(latencies_ms),
        "latency_p50_ms": statistics.median(latencies_ms),
        "total_ms": sum(latencies_ms),
        "lost": count - len(latencies_ms),
        "offered_per_s": load.sent / took_s,
        "forwarded_per_s": (after.rx_packets - before.rx_packets) / took_s,
    }


def _round(home: _core.Namespace, core: _core.Namespace, frame: bytes, length: int, count: int) -> Sequence[float]:
    arrivals = this_machine.send_frames(home, core, frame, count, interval_ns(count), length)
    return [(at_ns - sent_ns) / 1e6 for _, sent_ns, at_ns in arrivals]
