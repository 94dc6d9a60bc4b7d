"""Figure 6: the cost of P4-Protect's programs per packet, at both ends, relative to plain forwarding.

The paper took hardware timestamps from the beginning of ingress to the beginning of egress. Here a switch in a simulated network,
with one route, one flow and one connection, is given the same kind of packet over and over by packet generators, one packet at
a time, and its links are down, so that nothing but the switch runs. The cost of a packet is the instructions that valgrind counts
(:mod:`.instructions`); a build and a processor's features change them a little, the load of the machine does not.

A hop is more than its program: the event loop and the ends of links are in it. A baseline is taken off: a program that only drops
or only sends on (``carry.p4``). Which one it is decides the ratio: :data:`BASELINES` has the main one and three others, and a
ratio's ``low`` to ``high`` is its range over them.

Processor times are measured, too. They are one machine's in one sitting: within a sitting runs are alike, between sittings and
machines they are not, so an interval over the runs of one sitting says nothing of the next. The result is a 95 % prediction
interval for another sitting, from the medians of those there are; of one sitting alone it is unbounded.
"""

from __future__ import annotations

import math
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from holdfast import _core, statistics
from holdfast._core import Program
from holdfast.controller import Controller
from holdfast.errors import ExperimentError
from holdfast.experiments import Finding, Setting, this_machine
from holdfast.experiments.p4_protect_2020 import drawing, instructions, published, setup
from holdfast.experiments.rows import exact, row
from holdfast.network import SimulatedNetwork
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.plots import style
from holdfast.sweep import Point
from holdfast.topology import PacketGenerator

SIZES_BYTES = (64, 512, 1500)

MAIN_BYTES = 64
"""The size that stands for the figure: the paper gives none, and a packet's length hardly matters to a pipeline of headers."""

POINTS: list[Point] = [{"size_bytes": size, "turns": 60, "packets": 2000} for size in SIZES_BYTES]

PERIOD_PS = 100_000

ROUND = 256
"""The packets of a round, after which the same packets arrive again."""

SEQUENCE_STEP = (1 << published.CLAIM_SN_BITS) // ROUND
"""The step between the sequence numbers of arriving copies.

Each is within the window of the one before, and a round goes around.
"""

PACKETS = PS_PER_S // PERIOD_PS
"""The packets per second of virtual time."""

DROP, SEND, COPY = "drops", "sends", "copies"
"""The action of ``carry.p4`` on every packet: it sends nothing, one copy, or two by a multicast group."""

SECOND = "second copy"
"""The copy of a packet that has come on the other path already."""

VECTOR_SN_BITS = 8
"""The vector algorithm takes only what is near; so in a round its numbers go around once, one by one."""

FORWARDING = {"PTI": published.MODES, "PTE": (*published.MODES, SECOND, setup.VECTOR)}
"""The forwarding modes that are compared with plain forwarding, by end."""

KINDS = {"PTI": (DROP, SEND, COPY, *FORWARDING["PTI"]), "PTE": (DROP, SEND, *FORWARDING["PTE"])}
"""The programs run at each end: ``carry.p4``, then the forwarding modes."""

OUTPUTS = {("PTI", "protected"): 2, ("PTI", COPY): 2, ("PTE", SECOND): 0}
"""The packets that leave per packet, by end and mode, where that is not one."""

AS_MANY = "as_many_copies"
BASELINES = (AS_MANY, "nothing", "one_copy", "drop")
"""The baselines subtracted from a hop to leave the program: ``carry.p4`` with as many copies as the mode sends, which is the main
one, because it leaves the program's work beyond moving packets; nothing; ``carry.p4`` with one copy; or with none."""

GROUP = 1

INGRESS_PORT = {"PTI": ("s1", 1), "PTE": ("s2", 2)}
"""The ports where the packets enter: from the host, and from path 1. Ports count in the order of :func:`setup.two_ends`'s links."""


@cache
def carry(kind: str, port: int) -> Program:
    """Compile ``carry.p4`` to drop all packets, to send all to ``port``, or to send all to multicast group :data:`GROUP`."""
    defines = {DROP: {}, SEND: {"OUTPUT_PORT": str(port)}, COPY: {"OUTPUT_GROUP": str(GROUP)}}[kind]
    return Program.compile(str(Path(__file__).parent / "carry.p4"), defines=defines)


class BothPaths(Controller):
    """Makes the group by which s1 sends on both paths."""

    def on_start(self) -> None:
        """Install the multicast group by which s1 sends a copy on each path."""
        replicas = [(self.topology.port_towards("s1", middle), 0) for middle in ("m1", "m2")]
        self.clients["s1"].multicast_group(GROUP, replicas)


def udp_frame(size_bytes: int, source: str, destination: str) -> bytes:
    """Return a frame with a UDP datagram over IPv4 from ``source`` to ``destination``, both port 5001, with a payload of zeros.

    ``size_bytes``: from the Ethernet header, whose addresses are zero, to the end of the payload; at least 42.
    """
    addresses = b"".join(bytes(map(int, address.split("."))) for address in (source, destination))
    header = struct.pack("!BBHHHBBH8s", 0x45, 0, size_bytes - 14, 0, 0, 64, 17, 0, addresses)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", total ^ 0xFFFF) + header[12:]
    udp = struct.pack("!HHHH", 5001, 5001, size_bytes - 34, 0)
    return bytes(12) + b"\x08\x00" + header + udp + bytes(size_bytes - 42)


def _network(end: str, kind: str) -> SimulatedNetwork:
    """Build a network of one pair of hosts, whose switches run the program ``kind`` that is measured at ``end``."""
    rate = {"rate_bps": 100_000_000_000_000}
    topology = setup.two_ends(1, clients=rate, servers=rate, path1=rate, path2=rate)
    if kind in (DROP, SEND, COPY):
        # Out of the port that plain forwarding takes: towards path 1, or to the host.
        program = carry(kind, {"PTI": 2, "PTE": 1}[end])
        return SimulatedNetwork(topology, program, [BothPaths(reaction_delay_ms=0.0)] if kind == COPY else [])
    mode = "protected" if kind == SECOND else kind
    sn_bits = VECTOR_SN_BITS if kind == setup.VECTOR else published.CLAIM_SN_BITS
    program, controller = setup.forwarding(mode, [(setup.client(1), setup.server(1))], sn_bits)
    return SimulatedNetwork(topology, program, [controller])


def _packets(end: str, kind: str, size_bytes: int) -> list[bytes]:
    """Return the :data:`ROUND` packets that arrive again and again: all equal, or copies with their own sequence numbers.

    Every kind has as many, because each packet has a generator of its own and the event loop's work grows with the generators.
    """
    topology = _network(end, DROP).topology
    client, server = (str(topology.hosts[name].address.ip) for name in (setup.client(1), setup.server(1)))
    plain = udp_frame(size_bytes, client, server)
    apart = {"protected": SEQUENCE_STEP, SECOND: 0, setup.VECTOR: 1}.get(kind)
    if end == "PTI" or apart is None:
        return [plain] * ROUND
    copy = _copy(plain)
    return [copy[:37] + (step * apart + 1).to_bytes(4, "big") + copy[41:] for step in range(ROUND)]


def _copy(packet: bytes) -> bytes:
    """Return the copy of ``packet`` that the PTI sends on path 1. No checksum covers its sequence number."""
    network = _network("PTI", "protected")
    switch, port = INGRESS_PORT["PTI"]
    generator = PacketGenerator(switch=switch, port=port, packet=packet, period_ms=PERIOD_PS / PS_PER_MS, count=1)
    network.add_packet_generator(generator)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "path1.pcap"
        network.capture(switch, 2, file)
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
        """Build the network of a program at one end, with its packet generators installed and every link down."""
        network = _network(end, kind)
        switch, port = INGRESS_PORT[end]
        for link in network.topology.links:
            network.set_link(link.name, up=False)
        network.run(1e-9)
        period_ms = ROUND * PERIOD_PS / PS_PER_MS
        for i, packet in enumerate(_packets(end, kind, size_bytes)):
            start_ms = (i + 1) * PERIOD_PS / PS_PER_MS
            network.add_packet_generator(
                PacketGenerator(switch=switch, port=port, packet=packet, period_ms=period_ms, start_ms=start_ms)
            )
        return cls(network, switch)

    def run(self, packets: int) -> None:
        """Run the network until ``packets`` more packets have arrived at the measured switch."""
        self.packets += packets
        self.network.run((self.packets + 0.5) / PACKETS)

    def sent(self) -> int:
        """Return the number of packets that have left the measured switch."""
        return self.network.node_counters(self.switch).sent


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Measure the processor time in ns per packet of each program at both ends; programs take equally many turns, in rotation.

    The seed is only the number of the run. Raises :class:`ExperimentError` if another number of packets leaves than should.
    """
    del seed
    result = {}
    for end, kinds in KINDS.items():
        cases = {kind: Case.of(end, kind, point["size_bytes"]) for kind in kinds}
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for case in cases.values():
            case.run(ROUND)
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


def baseline(row: Mapping[str, Any], end: str, mode: str, name: str) -> float | None:
    """Return the cost that is subtracted from a mode's cost: that of the baseline ``name``; None where it was not measured."""
    if name == "nothing":
        return 0.0
    copies = {AS_MANY: OUTPUTS.get((end, mode), 1), "one_copy": 1, "drop": 0}[name]
    value = row.get(f"{end} {(DROP, SEND, COPY)[copies]}")
    return None if value is None else float(value)


def relative(row: Mapping[str, Any], end: str, mode: str, name: str) -> float | None:
    """Return a mode's cost in % of plain forwarding, both less the baseline ``name``; None where it was not measured."""
    own, plain = baseline(row, end, mode, name), baseline(row, end, "plain", name)
    if own is None or plain is None:
        return None
    return 100 * (float(row[f"{end} {mode}"]) - own) / (float(row[f"{end} plain"]) - plain)


def find(setting: Setting) -> Finding:
    """Return the finding of Figure 6: the cost per packet of each mode in % of plain forwarding, by end (PTI and PTE).

    It has instructions where valgrind can count them, and the times of this one measurement (a sitting). Times are measured by one
    process at a time, whatever ``jobs`` says.
    """
    machine = this_machine.machine()
    alone = replace(setting, jobs=1, ray=None)
    times = alone.sweep("processing", f"{__name__}:measure", POINTS)
    counted = instructions.counted(alone)
    rows = numbers(times, counted)
    figure = draw(rows)
    frames = {"runs": times, "instructions": counted, "machine": machine}
    return Finding(rows, {} if figure is None else {"": figure}, frames)


def numbers(times: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """Return a row per end, mode and quantity: cost in % of plain forwarding, in instructions and in time.

    Times may have a column ``sitting``; without it they are of one sitting. ``relative_percent`` is the ratio of instructions with
    the main baseline, and its interval is the range over the baselines.
    """
    if "sitting" not in times.columns:
        times = times.with_columns(sitting=pl.lit(1))
    rows: list[dict[str, Any]] = []
    for end, modes in FORWARDING.items():
        for mode in modes:
            for run in counted.filter(pl.col("size_bytes") == MAIN_BYTES).iter_rows(named=True):
                rows += _counted_rows(run, end, mode)
            for size in dict.fromkeys(times["size_bytes"]):
                of_size = times.filter(pl.col("size_bytes") == size)
                for quantity, name in (("time_percent", AS_MANY), ("time_hop_percent", "nothing")):
                    medians = sittings(of_size, end, mode, name)
                    if medians:
                        found = dict(
                            zip(("mean", "low", "high"), (fmean(medians), *next_sitting(medians)), strict=True)
                        )
                        rows.append(row({"end": end, "mode": mode}, f"{quantity}_{size}_bytes", found))
    return pl.DataFrame(rows, infer_schema_length=None)


def _counted_rows(run: Mapping[str, Any], end: str, mode: str) -> list[dict[str, Any]]:
    """Return the rows of one end and mode from one row of counted instructions: ratios in %, and counts per packet."""
    ratios = {name: relative(run, end, mode, name) for name in BASELINES}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    hop, off = float(run[f"{end} {mode}"]), baseline(run, end, mode, AS_MANY) or 0.0
    counts = {
        **{f"relative_percent_{name}": ratio for name, ratio in known.items()},
        "instructions_hop": hop,
        "instructions": hop - off,
    }
    key = {"end": end, "mode": mode}
    reach = {"mean": known[AS_MANY], "low": min(known.values()), "high": max(known.values())}
    return [
        row(key, "relative_percent", reach),
        *(row(key, quantity, exact(value)) for quantity, value in counts.items()),
    ]


def sittings(times: pl.DataFrame, end: str, mode: str, name: str) -> list[float]:
    """Return per sitting (one measurement of all modes) the median ratio in % of a mode's time to plain forwarding.

    The time of the baseline ``name`` is subtracted from both. Sittings that did not measure the baseline are left out.
    """
    medians = []
    for _, runs in times.group_by(["sitting"], maintain_order=True):
        ratios = [relative(run, end, mode, name) for run in runs.iter_rows(named=True)]
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            medians.append(median(known))
    return medians


def next_sitting(medians: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the prediction interval (low, high) for the median of another sitting, that is, another measurement on one machine.

    Sittings are taken as independent draws of one normal law. After one sitting alone the interval is unbounded.
    """
    if len(medians) < 2:
        return -math.inf, math.inf
    deviation = stdev(medians) * math.sqrt(1 + 1 / len(medians))
    reach = statistics.student_quantile(confidence, len(medians) - 1) * deviation
    return fmean(medians) - reach, fmean(medians) + reach


def in_order(rows: pl.DataFrame, end: str, name: str) -> bool:
    """Return True if plain, unprotected and protected forwarding cost more and more in this order, less the baseline ``name``."""
    of_end = rows.filter(pl.col("end") == end, pl.col("quantity") == f"relative_percent_{name}")
    cost = dict(zip(of_end["mode"], of_end["ours"], strict=True))
    return bool(cost["plain"] < cost["unprotected"] < cost["protected"])


def draw(rows: pl.DataFrame) -> Figure | None:
    """Draw Figure 6: instructions in % of plain forwarding, the paper's bars and ours with the range over the baselines.

    Return None if no instructions were counted.
    """
    counted = rows.filter(pl.col("quantity") == "relative_percent")
    if counted.is_empty():
        return None
    found = {(row["end"], row["mode"]): row for row in counted.iter_rows(named=True)}
    paper = {(row["end"], row["mode"]): value for row, _, value in published.FIGURE_6.entries()}
    paper |= {(end, "plain"): 100.0 for end in KINDS}
    places = [(end, mode) for end, modes in FORWARDING.items() for mode in modes]
    groups = {
        "paper: time in the ingress of a Tofino": [
            (f"{end}\n{mode}", value := paper.get((end, mode), float("nan")), value, value) for end, mode in places
        ],
        "ours: instructions of the program; lines: range over what is taken off": [
            (f"{end}\n{mode}", *(found[end, mode][name] for name in ("ours", "low", "high"))) for end, mode in places
        ],
    }
    looks = dict(zip(groups, (style("paper").colour, style("ours").colour), strict=True))
    return drawing.bars(groups, looks, title=f"Processing a packet of {MAIN_BYTES} bytes, relative to plain forwarding")
