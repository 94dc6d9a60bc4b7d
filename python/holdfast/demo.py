"""The demo, a small case of ``holdfast compare``: it cuts a link on a square of two paths under a few mechanisms.

Two hosts, an ingress switch s1 and an egress switch s4, and two disjoint paths between them: s1-s2-s4 (path 1) and s1-s3-s4
(path 2). The link s1-s2 fails under a UDP stream, a ping and TCP. Mechanisms, runs, measures, table and report are
:mod:`holdfast.compare`'s; here are its givens, and a picture of the curves to put somewhere else than into the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console

from holdfast.compare import mechanisms, results
from holdfast.compare.comparison import Comparison
from holdfast.compare.inputs import times
from holdfast.compare.mechanism import Mechanism
from holdfast.compare.rows import CurveColumn
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import PingEntry, TcpEntry, TrafficFile, UdpEntry
from holdfast.link import Direction, Jitter
from holdfast.plots import Curves, over_time
from holdfast.topology import Topology
from holdfast.traffic import TcpOptions

MECHANISMS = ("static", "reroute", "ip-frr", "1+1-vector")

FAILS = "s1-s2"

TIMES = {"before_s": 3.0, "down_s": 4.0, "after_s": 3.0}

LIVE_TIMES = {"before_s": 1.5, "down_s": 3.0, "after_s": 2.5}
"""The times of a live run: shorter than the simulated ones, since it takes them in real time, twice for each
mechanism."""

RATE_BPS = 100_000_000
"""The rate of all links."""

UDP_PER_S = 1000.0
TCP_WINDOW_BYTES = 8 * 1448
"""The TCP window. It gives about 20 Mb/s at an RTT of 4 ms, well below the links' rate: no queue overflows, so all loss
is due to the cut."""

PICTURE_BIN_MS = 100


def two_paths(name: str, *, edge: Direction, core: Direction) -> Topology:
    """Build a topology of two hosts and two disjoint paths of two hops; path 1 is the cheaper one.

    ``edge``: of the hosts' links; ``core``: of those between switches.
    """
    result = Topology(name)
    for host in ("h1", "h2"):
        result.add_host(host)
    for switch, x, y in (("s1", 0.0, 0.5), ("s2", 0.5, 1.0), ("s3", 0.5, 0.0), ("s4", 1.0, 0.5)):
        result.add_switch(switch, position=(x, y))
    result.add_link("h1", "s1", edge)
    result.add_link("s1", "s2", core)
    result.add_link("s2", "s4", core)
    result.add_link("s1", "s3", core, cost=2)
    result.add_link("s3", "s4", core, cost=2)
    result.add_link("s4", "h2", edge)
    return result


def scenario(
    *,
    live: bool = False,
    jitter_ms: float = 0.1,
    executor: Literal["jit", "interpreter"] = "jit",
    telemetry: bool = False,
    **changes: float,
) -> Scenario:
    """Return the demo's scenario.

    ``jitter_ms``: the highest jitter of each link between switches, uniformly distributed. ``changes``: fields of the comparison's
    times. ``telemetry``: by INT, under the mechanisms that have it.
    """
    edge = Direction(rate_bps=RATE_BPS, delay_ms=0.01)
    jitter = Jitter(distribution="uniform", high_ms=jitter_ms) if jitter_ms else None
    core = Direction(rate_bps=RATE_BPS, delay_ms=1.0, jitter=jitter)
    # Packets that are sent at the same time may overtake each other under jitter, so nothing begins together.
    traffic = TrafficFile(
        pairs=[("h1", "h2")],
        udp=[UdpEntry(packets_per_s=UDP_PER_S, payload_bytes=1000)],
        tcp=[
            TcpEntry(start_s=0.1, options=TcpOptions(window_limit_bytes=TCP_WINDOW_BYTES)),
            TcpEntry(transfer_bytes=50_000, after_failure_s=-0.1, count=4, every_ms=100.0),
        ],
        ping=[PingEntry(interval_ms=100.0, start_s=0.0505)],
    )
    return Scenario(
        topology=two_paths("demo", edge=edge, core=core),
        traffic=traffic,
        times=times({**(LIVE_TIMES if live else TIMES), **changes}),
        failures=(FAILS,),
        fail=FAILS,
        own_traffic=True,
        executor=executor,
        live=live,
        telemetry=telemetry,
    )


def chosen(given: Scenario) -> list[Mechanism]:
    """Return the mechanisms that the demo compares: with telemetry those that report by INT."""
    return mechanisms.find(mechanisms.with_telemetry(None, mechanisms.STATIC) if given.telemetry else MECHANISMS)


def run(given: Scenario, out: Path, *, seed: int = 1, console: Console | None = None) -> Comparison:
    """Compare the demo's mechanisms and return the comparison; write ``compare``'s files and ``demo.png`` to ``out``."""
    comparison = results.run(given, chosen(given), [seed], out, console=console)
    draw(comparison, out / "demo.png")
    return comparison


def draw(comparison: Comparison, path: Path) -> None:
    """Draw packets delivered and TCP's goodput over time, a row for each mechanism, with the failed interval shaded."""
    given = comparison.scenario
    factor = max(1, PICTURE_BIN_MS // given.bin_ms)

    def rates(column: CurveColumn, unit: float) -> dict[str, Sequence[float]]:
        found: dict[str, Sequence[float]] = {}
        for each in comparison.mechanisms:
            bins = comparison.row(each.name, FAILS, comparison.seeds[0])[column]
            per_s = unit * 1000 / (factor * given.bin_ms)
            found[each.name] = [per_s * sum(bins[i : i + factor]) for i in range(0, len(bins), factor)]
        return found

    curves = (
        Curves("UDP and ping delivered (packets/s)", rates("delivered_curve", 1.0)),
        Curves("TCP goodput (Mb/s)", rates("goodput_curve", 8e-6)),
    )
    words = {s.mechanism: f"{s.lost_mean:.0f} lost, outage {s.outage_mean_ms:.0f} ms" for s in comparison.summaries}
    over_time(
        path,
        curves,
        rows={each.name: (words[each.name], each.colour[0]) for each in comparison.mechanisms},
        bin_s=factor * given.bin_ms / 1000,
        shaded_s=(given.times.failure_s, given.times.repair_s),
        title=f"The link {FAILS} is cut at {given.times.failure_s:g} s and repaired at {given.times.repair_s:g} s",
    )
