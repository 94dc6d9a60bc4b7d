"""The paper's formulas: throughput with too little recirculation capacity, loss after several passes, ports that a load needs.

They are solved exactly (the ports in fractions, not in floating point). Nothing here runs a network.
"""

from __future__ import annotations

import math
from fractions import Fraction

PORTS = 32
"""The physical ports of the switch; a 33rd, internal port recirculates only."""

TOLERANCE = 1e-15


def carried(next_hops: int, ports: int) -> float:
    """Return the share 1 - p of packets that get through a recirculation port, when multicast arrives at the line rate.

    It is the root of (1-p) + (1-p)^2 + ... + (1-p)^(n-1) = k (equation 1) for n next hops and k ports, and 1 if the k ports
    suffice.
    """
    passes = next_hops - 1
    if ports >= passes:
        return 1.0
    low, high = 0.0, 1.0
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        load = sum(middle**m for m in range(1, next_hops))
        low, high = (middle, high) if load < ports else (low, middle)
    return (low + high) / 2


def throughput_gbps(next_hop: int, next_hops: int, ports: int, line_gbps: float = 100.0) -> float:
    """Return T(i) in Gb/s, the throughput of the i-th of ``next_hops`` next hops (equation 2)."""
    return line_gbps * carried(next_hops, ports) ** (next_hop - 1)


def loss_after(passes: int, loss: float) -> float:
    """Return p(n), the share of packets lost in ``passes`` passes that each lose the share ``loss`` (section VII-A)."""
    return 1 - (1 - loss) ** passes


def recirculation_ports(ports: int, recirculations: Fraction, utilisation_ratio: Fraction) -> int:
    """Return m', the number of recirculation ports that ``ports`` incoming ports need (equation 3).

    ``recirculations`` is the mean number per packet.
    """
    return math.ceil(ports * recirculations / utilisation_ratio)


def provision(recirculations: Fraction, utilisation_ratio: Fraction) -> tuple[int, int]:
    """Return two numbers of ports of a switch with 32: m for traffic, and m' for recirculation, the internal port included.

    m is the largest that leaves room for its m' (section VII-C): m + m' is 33 at most. The internal port carries no other traffic.
    """
    for ports in range(PORTS, -1, -1):
        needed = recirculation_ports(ports, recirculations, utilisation_ratio)
        if ports + needed <= PORTS + 1:
            return ports, needed
    raise AssertionError("no port needs none")


def physical(recirculation_ports: int) -> int:
    """Return how many physical ports must be in loopback mode: ``recirculation_ports`` less the internal one, 0 at least."""
    return max(0, recirculation_ports - 1)


def recirculations(multicast: Fraction, next_hops: int) -> Fraction:
    """Return R = a (n - 1), the mean recirculations per packet with a share a of multicast to n next hops (section VII-D).

    With no next hop it is 0, where the formula would give -a.
    """
    return multicast * max(0, next_hops - 1)
