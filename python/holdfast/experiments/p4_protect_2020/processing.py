"""Figure 6: what P4-Protect's programs cost per packet, at both ends, relative to plain forwarding.

The paper took hardware timestamps from the beginning of ingress to the beginning of egress. Here a switch in a simulated network,
with one route, one flow and one connection, is given the same kind of packet over and over by packet generators, one packet at
a time, and its links are down, so that nothing but the switch runs. That is timed in the thread's processor time. What the event
loop and the ends of links cost is measured in the same turns with a program that only drops or only sends on (``carry.p4``) and
taken off; what is left is the whole program, parser and checksums and egress and copying included.

Times are this machine's; instructions (``instructions.py``) are the same on every run.
"""

from __future__ import annotations

import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import _core, statistics
from holdfast._core import Program
from holdfast.errors import ExperimentError
from holdfast.experiments import Finding, Setting
from holdfast.experiments.p4_protect_2020 import drawing, instructions, published, setup
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_S
from holdfast.plots import style
from holdfast.sweep import Point

SIZES_BYTES = (64, 512, 1500)

MAIN_BYTES = 64
"""The size that stands for the figure: the paper gives none, and a packet's length hardly matters to a pipeline of headers."""

POINTS: list[Point] = [{"size_bytes": size, "turns": 60, "packets": 2000} for size in SIZES_BYTES]

PERIOD_PS = 100_000

SEQUENCE_STEP = 1 << 24
"""Between the sequence numbers of arriving copies: each is within the window of the one before, and 256 of them go around."""

PACKETS = PS_PER_S // PERIOD_PS
"""Per second of virtual time."""

DROP, SEND = "drops", "sends"
SECOND = "second copy"
"""The copy of a packet that has come on the other path already."""

VECTOR_SN_BITS = 8
"""The vector algorithm takes only what is near; so in 256 packets its numbers go around once, one by one."""

KINDS = {
    "PTI": (DROP, SEND, *published.MODES),
    "PTE": (DROP, SEND, *published.MODES, SECOND, setup.VECTOR),
}
"""What is timed at each end: ``carry.p4`` twice, then the forwarding modes."""

OUTPUTS = {("PTI", "protected"): 2, ("PTE", SECOND): 0}
"""Packets that leave per packet, where that is not one."""

INGRESS_PORT = {"PTI": ("s1", 1), "PTE": ("s2", 2)}
"""Where the packets enter: from the host, and from path 1. Ports count in the order of :func:`setup.two_ends`'s links."""


@cache
def carry(port: int | None) -> Program:
    """Sends everything out of a port, or drops it."""
    defines = {} if port is None else {"OUTPUT_PORT": str(port)}
    return Program.compile(str(Path(__file__).parent / "carry.p4"), defines=defines)


def udp_frame(size_bytes: int, source: str, destination: str) -> bytes:
    """A UDP datagram of zeros, ``size_bytes`` from the Ethernet header to the last of the payload."""
    addresses = b"".join(bytes(map(int, address.split("."))) for address in (source, destination))
    header = struct.pack("!BBHHHBBH8s", 0x45, 0, size_bytes - 14, 0, 0, 64, 17, 0, addresses)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", total ^ 0xFFFF) + header[12:]
    udp = struct.pack("!HHHH", 5001, 5001, size_bytes - 34, 0)
    return bytes(12) + b"\x08\x00" + header + udp + bytes(size_bytes - 42)


def _network(end: str, kind: str) -> SimulatedNetwork:
    """One pair of hosts; all switches run what is timed."""
    rate = {"rate_bps": 100_000_000_000_000}
    topology = setup.two_ends(1, clients=rate, servers=rate, path1=rate, path2=rate)
    if kind in (DROP, SEND):
        # Out of the port that plain forwarding takes: towards path 1, or to the host.
        port = {"PTI": 2, "PTE": 1}[end] if kind == SEND else None
        return SimulatedNetwork(topology, carry(port), [])
    mode = "protected" if kind == SECOND else kind
    sn_bits = VECTOR_SN_BITS if kind == setup.VECTOR else published.CLAIM_SN_BITS
    program, controller = setup.forwarding(mode, [(setup.client(1), setup.server(1))], sn_bits)
    return SimulatedNetwork(topology, program, [controller])


def _packets(end: str, kind: str, size_bytes: int) -> Iterator[bytes]:
    """What arrives: one packet over and over, or copies of 256 packets."""
    topology = _network(end, DROP).topology
    client, server = (str(topology.hosts[name].address.ip) for name in (setup.client(1), setup.server(1)))
    plain = udp_frame(size_bytes, client, server)
    apart = {"protected": SEQUENCE_STEP, SECOND: 0, setup.VECTOR: 1}.get(kind)
    if end == "PTE" and apart is not None:
        copy = _copy(plain)
        for step in range(256):
            number = step * apart + 1
            yield copy[:37] + number.to_bytes(4, "big") + copy[41:]
    else:
        yield plain


def _copy(packet: bytes) -> bytes:
    """What the PTI sends on path 1 for a packet. Its sequence number is not under a checksum."""
    network = _network("PTI", "protected")
    switch, port = INGRESS_PORT["PTI"]
    network.core.add_packet_generator(switch, port, packet, period_ps=PERIOD_PS, count=1)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "path1.pcap"
        network.core.capture(switch, 2, file)
        network.run(1e-6)
        [(_, copy)] = _core.read_pcap(file)
    return copy


@dataclass
class Case:
    """A switch that is given packets; virtual time goes on by one period per packet."""

    network: SimulatedNetwork
    switch: str
    packets: int = 0

    @classmethod
    def of(cls, end: str, kind: str, size_bytes: int) -> Case:
        """Everything is in place, and every link is down."""
        network = _network(end, kind)
        switch, port = INGRESS_PORT[end]
        for link in network.topology.links:
            network.set_link(link.name, up=False)
        network.run(1e-9)
        packets = list(_packets(end, kind, size_bytes))
        for i, packet in enumerate(packets):
            start_ps = (i + 1) * PERIOD_PS
            period_ps = len(packets) * PERIOD_PS
            network.core.add_packet_generator(switch, port, packet, period_ps=period_ps, start_ps=start_ps)
        return cls(network, switch)

    def run(self, packets: int) -> None:
        """The next ones."""
        self.packets += packets
        self.network.run((self.packets + 0.5) / PACKETS)

    def sent(self) -> int:
        """Packets that have left the switch."""
        return int(self.network.core.node_counters(self.switch)["sent"])


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Nanoseconds per packet of each kind at both ends; every kind has as many turns as the others, one after the other.

    The seed is only the number of the run.
    """
    del seed
    result = {}
    for end, kinds in KINDS.items():
        cases = {kind: Case.of(end, kind, point["size_bytes"]) for kind in kinds}
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for case in cases.values():
            case.run(256)
        before = {kind: (case.packets, case.sent()) for kind, case in cases.items()}
        for _ in range(point["turns"]):
            for kind, case in cases.items():
                before_ns = time.thread_time_ns()
                case.run(point["packets"])
                times[kind].append((time.thread_time_ns() - before_ns) / point["packets"])
        for kind, case in cases.items():
            packets, sent = before[kind]
            wanted = 0 if kind == DROP else OUTPUTS.get((end, kind), 1) * (case.packets - packets)
            if case.sent() - sent != wanted:
                raise ExperimentError(f"{end} {kind}: {case.sent() - sent} packets left, not {wanted}")
            result[f"{end} {kind}"] = median(times[kind])
    return result


def own(row: Mapping[str, Any], end: str, mode: str) -> float:
    """Of a program alone: without the event loop, and without the ends of the links that its packets leave by."""
    loop, sending, whole = (float(row[f"{end} {kind}"]) for kind in (DROP, SEND, mode))
    return whole - loop - OUTPUTS.get((end, mode), 1) * (sending - loop)


def find(setting: Setting) -> Finding:
    """All modes at both ends: times relative to plain forwarding, and instructions where valgrind can count them.

    The times are measured by one process at a time, whatever ``jobs`` says.
    """
    machine = setup.machine()
    alone = replace(setting, jobs=1, ray=None)
    times = alone.sweep("processing", f"{__name__}:measure", POINTS)
    counted = instructions.counted(alone)
    rows = numbers(times, counted)
    return Finding(rows, {"": draw(rows)}, {"runs": times, "instructions": counted, "machine": machine})


def numbers(times: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """By end and mode: medians over the runs, with bootstrap intervals; ratios are taken within a run."""
    rows: list[dict[str, Any]] = []
    for end, kinds in KINDS.items():
        for mode in kinds[2:]:
            for size in dict.fromkeys(times["size_bytes"]):
                runs = list(times.filter(pl.col("size_bytes") == size).iter_rows(named=True))
                suffix = "" if size == MAIN_BYTES else f"_{size}_bytes"
                relative = [100 * own(run, end, mode) / own(run, end, "plain") for run in runs]
                hop = [100 * run[f"{end} {mode}"] / run[f"{end} plain"] for run in runs]
                rows += [
                    _row(end, mode, f"relative_percent{suffix}", relative),
                    _row(end, mode, f"relative_hop_percent{suffix}", hop),
                    _row(end, mode, f"ns_{size}_bytes", [own(run, end, mode) for run in runs]),
                ]
            for row in counted.iter_rows(named=True):
                own_count = own(row, end, mode)
                size = row["size_bytes"]
                rows += [
                    _row(end, mode, f"instructions_{size}_bytes", [own_count]),
                    _row(
                        end,
                        mode,
                        f"relative_instructions_percent_{size}_bytes",
                        [100 * own_count / own(row, end, "plain")],
                    ),
                ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(end: str, mode: str, quantity: str, values: list[float]) -> dict[str, Any]:
    low, high = statistics.bootstrap_interval(values)
    return {"end": end, "mode": mode, "quantity": quantity, "ours": median(values), "low": low, "high": high}


def draw(rows: pl.DataFrame) -> Figure:
    """The paper's bars and ours: the program's own time, its instructions, and the whole hop."""
    places = [(end, mode) for end, kinds in KINDS.items() for mode in kinds[2:]]
    paper = {(row["end"], row["mode"]): value for row, _, value in published.FIGURE_6.entries()}
    paper |= {(end, "plain"): 100.0 for end in KINDS}
    groups = {
        "paper: Tofino, ingress": [
            (f"{end}\n{mode}", value := paper.get((end, mode), float("nan")), value, value) for end, mode in places
        ]
    }
    for label, quantity in (
        ("ours: time of the program", "relative_percent"),
        ("ours: its instructions", f"relative_instructions_percent_{MAIN_BYTES}_bytes"),
        ("ours: time of a simulated hop", "relative_hop_percent"),
    ):
        found = {
            (row["end"], row["mode"]): row for row in rows.filter(pl.col("quantity") == quantity).iter_rows(named=True)
        }
        if found:
            groups[label] = [
                (f"{end}\n{mode}", *(found[end, mode][n] for n in ("ours", "low", "high"))) for end, mode in places
            ]
    colours = [style("paper").colour, style("ours").colour, style("local").colour, style("path").colour]
    looks = dict(zip(groups, colours, strict=False))
    return drawing.bars(groups, looks, title=f"Processing a packet of {MAIN_BYTES} bytes, relative to plain forwarding")
