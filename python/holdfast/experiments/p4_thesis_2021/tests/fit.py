"""The fit of the service rates: ``python -P -m holdfast.experiments.p4_thesis_2021.tests.fit`` prints them.

Each rate is fitted to one statement of the thesis by bisection, with seeds that the study does not judge with. :mod:`..setup` has
the results, rounded to 10 packets/s.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from holdfast.experiments.p4_thesis_2021 import header_runs, setup, telemetry, telemetry_runs

SEEDS = range(101, 105)

LATENCIES_MS = {"standard": 4.0, "shorternet": 1.0}
"""3 ms less, which is 75 % less."""

PACKET_BYTES = 850
PACKETS = 50_000

UNCONGESTED_MBPS, CONGESTED_MBPS = 4.5, 5.0
"""Five switches with INT: the rates between which loss passes 2 %."""


def bisect(low: float, high: float, holds: Callable[[float], bool], within: float = 2.0) -> float:
    """Return the lowest value, up to ``within``, from which on ``holds`` is True; it must hold for all larger values."""
    while high - low > within:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def latency_ms(stack: str, packets_per_s: float) -> float:
    """Return the mean latency in ms through switches with a service rate of ``packets_per_s``."""
    setup.SERVICE_PACKETS_PER_S[stack] = packets_per_s
    point = {"stack": stack, "packet_bytes": PACKET_BYTES, "packets": PACKETS}
    return fmean(header_runs.measure(point, seed)["latency_ms"] for seed in SEEDS)


def lost_percent(rate_mbps: float, packets_per_s: float) -> float:
    """Return the mean percentage of packets lost at ``rate_mbps`` through five switches with the thesis's INT.

    The switches process ``packets_per_s`` together; the mean is over SEEDS.
    """
    setup.MACHINE_PACKETS_PER_S = packets_per_s
    point = telemetry_runs.point(5, 1, "thesis", rate_mbps)
    return fmean(telemetry_runs.measure(point, seed)["lost_percent"] for seed in SEEDS)


def main() -> None:
    """Fit and print the service rates. That with INT is the middle of the range in which the statement holds."""
    for stack, wanted_ms in LATENCIES_MS.items():
        rate = bisect(1010, 6000, lambda rate: latency_ms(stack, rate) <= wanted_ms)  # noqa: B023
        print(f"{stack}: {rate:.0f} packets/s")
    limit = telemetry.CONGESTED_PERCENT
    least = bisect(2000, 8000, lambda rate: lost_percent(UNCONGESTED_MBPS, rate) <= limit, 10)
    most = bisect(2000, 8000, lambda rate: lost_percent(CONGESTED_MBPS, rate) <= limit, 10)
    print(
        f"all switches of the tests of INT: {least:.0f} to {most:.0f} packets/s, the middle is {(least + most) / 2:.0f}"
    )


if __name__ == "__main__":
    main()
