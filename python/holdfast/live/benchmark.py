"""``holdfast bench --live``: the packets that a switch on Linux interfaces forwards and loses, and its bottleneck.

A sender in one namespace floods a router on veth pairs; another namespace counts what arrives. The sender, the kernel and
the switch share this machine's processors, as they would in an experiment. Losses are what the counter lacks of what
the sender's kernel accepted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from holdfast import _core, whole_files
from holdfast.errors import LiveError
from holdfast.live.switch import Io, LiveSwitch
from holdfast.p4runtime import LocalClient
from holdfast.p4runtime.codec import Value
from holdfast.terminal import Grid

SIZES_BYTES = (64, 1500)
"""Frame sizes, from the first byte of the Ethernet header to the last of the payload."""

ROUTES = 1000
FLOWS = 256
LOSSLESS = 0.001
"""The share of lost packets up to which a rate counts as one without loss; the scheduler causes such losses now and
then."""

_PORT_MACS = (bytes.fromhex("020100010000"), bytes.fromhex("020100010001"))
_SINK_MAC = bytes.fromhex("0200000000ff")
"""The destination address of the packets at the sink. It is not the interface's own, so that the sink's kernel counts
and drops them at once."""

_ROUTER = Path(__file__).parents[1] / "apps/router/router.p4"


@dataclass(frozen=True)
class Usage:
    """Processor time, in seconds: while packets were sent, and a little more."""

    sending: float
    elapsed: float
    worker_user: float
    worker_kernel: float
    process: float
    machine: float


@dataclass(frozen=True)
class Flood:
    """The counts and processor times of one run."""

    offered_packets_per_s: float
    forwarded_packets_per_s: float
    loss: float
    overrun_drops: int
    usage: Usage


@dataclass(frozen=True)
class LiveResult:
    """Measurements with frames of one size; medians of several floods."""

    program: str
    size_bytes: int
    offered_packets_per_s: float
    forwarded_packets_per_s: float
    loss: float
    lossless_packets_per_s: float
    gb_per_s: float
    worker_share: float
    """Of one processor, the thread that owns the switch."""
    worker_kernel_share: float | None
    """Of that, inside the kernel; None if there was too little to tell."""
    ns_per_packet: float
    """Of that thread's time."""
    other_load: float
    """Processors that were busy with anything but this benchmark."""
    io: str
    limit: str


def ipv4_frame(size_bytes: int, destination: int) -> bytes:
    """Return the frame of a UDP datagram from the sender to the address ``destination``. ``size_bytes``: the whole frame's size."""
    total = size_bytes - 14
    header = bytearray(bytes.fromhex("4500000000000000401100000a000001") + destination.to_bytes(4, "big"))
    header[2:4] = total.to_bytes(2, "big")
    words = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    header[10:12] = (words ^ 0xFFFF).to_bytes(2, "big")
    udp = bytes.fromhex("13881389") + (total - 20).to_bytes(2, "big") + bytes(2)
    frame = _PORT_MACS[0] + bytes.fromhex("020000000001") + b"\x08\x00" + bytes(header) + udp
    return frame + bytes(size_bytes - len(frame))


def _thread_times() -> tuple[float, float]:
    """Return the user and kernel time of the switch's thread in seconds. Raises :class:`LiveError` if the thread has ended."""
    tick = os.sysconf("SC_CLK_TCK")
    for task in Path("/proc/self/task").iterdir():
        try:
            name, _, rest = (task / "stat").read_text(encoding="utf-8").partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        if name == "holdfast-net":
            fields = rest.split()
            return int(fields[11]) / tick, int(fields[12]) / tick
    raise LiveError("the switch's thread is gone")


def _machine_busy() -> float:
    """Return the time in seconds that the machine's processors have been busy since it started, summed over all processors."""
    numbers = [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _wait, interrupt, soft, steal = numbers
    return (user + nice + system + interrupt + soft + steal) / os.sysconf("SC_CLK_TCK")


class _Bench:
    """A router between two namespaces."""

    def __init__(self, io: Io) -> None:
        program = _core.Program.compile(str(_ROUTER))
        self.sender = _core.Namespace("sender")
        try:
            self.sink = _core.Namespace("sink")
        except BaseException:
            self.sender.close()
            raise
        try:
            outer = [namespace.add_veth("eth0") for namespace in (self.sender, self.sink)]
            self.live = LiveSwitch(program)
            for port, interface in enumerate(outer):
                self.live.add_port(port, interface, io=io)
            self._install_routes()
            self.live.start()
            self.io = self.live.port_io(1) or "none"
        except BaseException:
            self.close()
            raise

    def _install_routes(self) -> None:
        client = LocalClient(self.live.device)
        names = [param.name for param in client.p4info.actions["RouterIngress.forward"].params]
        params: dict[str, Value] = dict(zip(names, (1, _PORT_MACS[1], _SINK_MAC), strict=True))
        with client.batch("continue_on_error"):
            for i in range(ROUTES):
                match = {"dst_addr": (0x0B000000 + (i << 8), 24)}
                client.insert("RouterIngress.ipv4_lpm", match, "RouterIngress.forward", params)
        client.close()

    def flood(self, size_bytes: int, duration_s: float, packets_per_s: float | None = None) -> Flood:
        """Send frames for ``duration_s`` seconds, at ``packets_per_s`` or as fast as possible, and count those that arrive."""
        stride = max(1, ROUTES // FLOWS)
        frames = [ipv4_frame(size_bytes, 0x0B000001 + (i * stride % ROUTES << 8)) for i in range(FLOWS)]
        before = self._counts()
        times, cpu, machine, start = _thread_times(), time.process_time(), _machine_busy(), time.monotonic()
        report = self.sender.send_load("eth0", frames, duration_s=duration_s, packets_per_s=packets_per_s)
        elapsed, busy, process = time.monotonic() - start, _machine_busy() - machine, time.process_time() - cpu
        # Opening and closing the sender's sockets takes some of the time, too.
        seconds = report.elapsed_ns / 1e9
        user, kernel = (after - earlier for after, earlier in zip(_thread_times(), times, strict=True))
        # The frames still in the ring get out.
        time.sleep(0.05)
        after = self._counts()
        arrived, overruns = (a - b for a, b in zip(after, before, strict=True))
        return Flood(
            report.sent / seconds,
            arrived / seconds,
            1 - arrived / report.sent if report.sent else 0.0,
            overruns,
            Usage(seconds, elapsed, user, kernel, process, busy),
        )

    def _counts(self) -> tuple[int, int]:
        return (
            self.sink.interface_counters("eth0").rx_packets,
            self.live.port_statistics(0).rx_overrun_drops,
        )

    def lossless(self, size_bytes: int, duration_s: float, at_most: float) -> float:
        """Return the highest rate without loss that bisection finds below ``at_most``, in packets per second."""
        low, high = 0.0, at_most
        for _ in range(6):
            rate = (low + high) / 2
            flood = self.flood(size_bytes, duration_s, rate)
            # The sender itself may not reach the rate; that is no loss.
            if flood.loss <= LOSSLESS and flood.offered_packets_per_s > 0.95 * rate:
                low = rate
            else:
                high = rate
        return low

    def close(self) -> None:
        """Stop the switch, and remove the namespaces of sender and receiver."""
        if live := getattr(self, "live", None):
            live.stop()
        self.sink.close()
        self.sender.close()


def _limit(
    flood: Flood, worker_share: float, kernel_share: float | None, ns_per_packet: float, other_load: float
) -> str:
    """Return a sentence that names what limits the measured rate, such as the switch's thread, as the measured loads show it.

    ``kernel_share``: the part of the switch's time that it spent in the kernel, None if unknown.
    """
    cores = os.cpu_count() or 1
    split = f"{ns_per_packet:.0f} ns per packet"
    if kernel_share is not None:
        split += (
            f", {ns_per_packet * kernel_share:.0f} of them in the kernel (sending through veth, and the receiving side's "
            f"stack, run in that thread) and {ns_per_packet * (1 - kernel_share):.0f} in the switch"
        )
    if other_load > 0.5 and cores < 3 + other_load:
        return f"the machine: other processes had {other_load:.1f} of its {cores} processors; the switch took {split}"
    if worker_share > 0.9 and flood.loss > LOSSLESS:
        return f"the one thread that owns the switch is busy all the time: {split}"
    if worker_share > 0.9:
        return f"both processors: the sender has no more to offer, and the thread that owns the switch is busy, {split}"
    if flood.loss <= LOSSLESS:
        return f"the sender: the switch's thread is busy {worker_share:.0%} of the time, {split}"
    return f"{cores} processors for sender, kernel and switch: the switch's thread got {worker_share:.0%} of one, with {split}"


def run(
    sizes_bytes: Sequence[int], *, io: Io = "auto", quick: bool = False, progress: Callable[[str], None]
) -> list[LiveResult]:
    """Measure frames of each size in bytes (the usual sizes if none is given).

    Needs root; :func:`reason_against` says what is missing.
    """
    for size in sizes_bytes:
        if not 60 <= size <= 1514:
            raise LiveError(f"frames of {size} bytes cannot be sent on these interfaces: from 60 to 1514")
    duration_s, repetitions = (0.3, 1) if quick else (1.5, 5)
    bench = _Bench(io)
    try:
        results = []
        for size in sizes_bytes or SIZES_BYTES:
            progress(f"live: {size} bytes, as fast as the sender can")
            bench.flood(size, duration_s / 3)
            floods = [bench.flood(size, duration_s) for _ in range(repetitions)]
            progress(f"live: {size} bytes, highest rate without loss")
            offered = median(flood.offered_packets_per_s for flood in floods)
            results.append(_result(bench, size, floods, bench.lossless(size, duration_s / 2, offered)))
        return results
    finally:
        bench.close()


def _result(bench: _Bench, size_bytes: int, floods: list[Flood], lossless: float) -> LiveResult:
    middle = sorted(floods, key=lambda flood: flood.forwarded_packets_per_s)[len(floods) // 2]
    usage = middle.usage
    worker = usage.worker_user + usage.worker_kernel
    share = worker / usage.sending
    # The clock that tells them apart ticks rarely: over all runs.
    kernel_s = sum(flood.usage.worker_kernel for flood in floods)
    worker_s = kernel_s + sum(flood.usage.worker_user for flood in floods)
    kernel = kernel_s / worker_s if worker_s > 1 else None
    ns = worker / usage.sending * 1e9 / middle.forwarded_packets_per_s if middle.forwarded_packets_per_s else 0.0
    other = max(0.0, (usage.machine - usage.process) / usage.elapsed)
    return LiveResult(
        "router_1k",
        size_bytes,
        middle.offered_packets_per_s,
        middle.forwarded_packets_per_s,
        middle.loss,
        lossless,
        middle.forwarded_packets_per_s * size_bytes * 8e-9,
        share,
        kernel,
        ns,
        other,
        bench.io,
        _limit(middle, share, kernel, ns, other),
    )


def reason_against() -> str | None:
    """Return the capabilities and tools that the measurement needs and this machine lacks, as text; None if it lacks none."""
    absent = [
        f"{name}: {detail}"
        for name, (there, detail) in _core.probe().items()
        if not there and (name.startswith("CAP_") or name in ("AF_PACKET", "/run/netns", "ip"))
    ]
    return "; ".join(absent) or None


def write_json(results: Sequence[LiveResult], file: Path) -> None:
    """Write the results to a JSON file as a list of objects."""
    whole_files.write_text(file, json.dumps([asdict(result) for result in results], indent=2) + "\n")


def table(results: Sequence[LiveResult]) -> Grid:
    """Return the results as a table for a terminal of 80 columns."""
    shown = Grid(
        title="on veth pairs",
        legend=["offered, forwarded, lossless: packets in a second; lossless: the most without a loss"],
    )
    shown.add_names("program")
    shown.add_numbers("bytes", "offered", "forwarded", "lost", "lossless", "Gb/s", "ns/packet")
    for r in results:
        shown.add_row(
            r.program,
            str(r.size_bytes),
            f"{r.offered_packets_per_s:,.0f}",
            f"{r.forwarded_packets_per_s:,.0f}",
            f"{r.loss:.1%}",
            f"{r.lossless_packets_per_s:,.0f}",
            f"{r.gb_per_s:.2f}",
            f"{r.ns_per_packet:.0f}",
        )
    return shown
