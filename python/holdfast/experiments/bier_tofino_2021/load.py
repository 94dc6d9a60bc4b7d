"""Networks around one switch with recirculation ports: hosts that load it, and what its recirculation ports then did.

The switch runs ``rounds.p4``. It does not know which load a part wants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from holdfast._core import Program
from holdfast.experiments.bier_tofino_2021 import published
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

LINE_BPS = round(published.LINE_GBPS * 1e9)

FRAME_BYTES = 1514
"""The bytes of every packet, without FCS: 1500 bytes of IP. The paper does not give the size."""

OVERHEAD_BYTES = 24
"""The bytes that the physical layer adds in Holdfast's links and recirculation ports: FCS, preamble, gap."""

PAYLOAD_BYTES = FRAME_BYTES - 14 - 20 - 8

PASS_MS = 0.0006
"""The latency of a pass. The paper does not give it; a Tofino's pipeline takes about as long."""

FIRST_PORT = 20000
"""The UDP destination port with which ``rounds.p4`` does not recirculate a packet."""

SWITCH = "s1"


def line_packets_per_s(frame_bytes: int = FRAME_BYTES, line_bps: int = LINE_BPS) -> float:
    """Return how many frames of ``frame_bytes`` a line of ``line_bps`` bits per second carries per second."""
    return line_bps / 8 / (frame_bytes + OVERHEAD_BYTES)


@cache
def rounds_program() -> Program:
    """Compile ``rounds.p4``, once per process."""
    return Program.compile(str(Path(__file__).parent / "rounds.p4"))


@dataclass(frozen=True)
class Recirculated:
    """The counts of the recirculation ports of a switch."""

    offered: int
    lost: int
    utilisation: float
    """Mean of all ports, over the whole run."""
    max_packets: int
    """The most that ever waited at one."""

    @property
    def loss(self) -> float:
        """The share of the packets offered to recirculation ports that were lost there; 0 if none was offered."""
        return self.lost / self.offered if self.offered else 0.0


def recirculated(network: SimulatedNetwork, switch: str = SWITCH) -> Recirculated:
    """Return the offered, lost and queued packets and the mean utilisation of all recirculation ports of ``switch`` together."""
    ports = network.recirculation_statistics(switch)
    return Recirculated(
        offered=sum(port.offered for port in ports),
        lost=sum(port.queue_drops for port in ports),
        utilisation=sum(port.utilisation for port in ports) / max(1, len(ports)),
        max_packets=max((port.max_packets for port in ports), default=0),
    )


def star(hosts: int, recirculation_ports: int, queue_packets: int, line_bps: int = LINE_BPS) -> Topology:
    """Build a topology of one switch with recirculation ports, and hosts ``h1``, ``h2``, ... at its ports 1, 2, ..."""
    topology = Topology("recirculation")
    recirculation = {"ports": recirculation_ports, "rate_bps": line_bps, "queue_packets": queue_packets}
    latency_ms = PASS_MS * LINE_BPS / line_bps
    topology.add_switch(SWITCH, queueing={"recirculation": recirculation}, latency_ms=latency_ms)
    for number in range(1, hosts + 1):
        topology.add_host(f"h{number}", f"10.0.{number}.1/24")
        topology.add_link(f"h{number}", SWITCH, b_port=number, rate_bps=line_bps, queue_packets=1000)
    return topology


def passes(mean: Fraction) -> Mapping[int, Fraction]:
    """Return shares of packets by number of passes, so that the mean is ``mean``; only the whole numbers next to it occur."""
    whole = mean.numerator // mean.denominator
    shares = {whole: 1 - (mean - whole), whole + 1: mean - whole}
    return {number: share for number, share in shares.items() if share > 0}


def add_ring(
    network: SimulatedNetwork, hosts: int, shares: Mapping[int, Fraction], load: float, stop_s: float
) -> Sequence[int]:
    """Add a load from each host to the next one, ``load`` times the link's rate; return the identifiers of the flows.

    Each host sends a Poisson process for each number of passes in ``shares``, until ``stop_s``.
    """
    line_bps = network.topology.links[0].rate_bps
    return [
        network.add(
            UdpStream(
                source=f"h{number}",
                destination=f"h{number % hosts + 1}",
                packets_per_s=load * float(share) * line_packets_per_s(line_bps=line_bps),
                spacing="poisson",
                payload_bytes=PAYLOAD_BYTES,
                destination_port=FIRST_PORT + count,
                stop_s=stop_s,
            )
        )
        for number in range(1, hosts + 1)
        for count, share in shares.items()
    ]
