#!/usr/bin/env python3
"""benches/live_agreement.py [--quick] [--runs N] [--out DIR] [--again]: TCP through the router network, simulated and live.

Each case runs with modelled hosts in virtual time and with Linux's Reno or CUBIC in network namespaces through wall-clock
links: same topology, P4 program, controller, rates, delays and queues (:mod:`holdfast.live.tests.tcp`). Writes ``agreement.csv``,
``links.csv``, all samples and the pictures of docs/VALIDATION.md to DIR, prints the tables, and exits with 1 if a difference
exceeds its bound (:mod:`holdfast.live.tests.agreement`). Skips with a reason if root, namespaces, ip, ping or iperf3 are missing.

``--quick`` runs two short cases once, in half a minute and with twice the bounds: it shows that this script works,
and detects a gross difference.

With ``--again``, live runs come from an earlier call with the same DIR; only simulations run, and no rights are needed.

A live run that was disturbed (:func:`holdfast.live.tests.agreement.disturbance`) is repeated; such runs are counted, not shown.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import polars as pl

from holdfast.apps.router import compile_router
from holdfast.errors import LiveError
from holdfast.live.hosts import check_machine, iperf3_report, start, wait_listening
from holdfast.live.tests.agreement import (
    BACK,
    BEGINNING,
    BEGINNING_WITH_HYSTART,
    CUT,
    STEADY,
    Bound,
    after_cut,
    beginning,
    disturbance,
    rise,
    steady,
)
from holdfast.live.tests.tcp import (
    FRAME_BYTES,
    FRAME_PAYLOAD_BYTES,
    Observation,
    Scenario,
    live_network,
    run_live,
    simulate,
)
from holdfast.network import SimulatedNetwork
from holdfast.plots import save, style
from holdfast.traffic import Ping

SEEDS = 5
"""Of every simulation with more than one flow; nothing is random with one."""


@dataclass(frozen=True)
class Case:
    """A scenario, its name in tables, and what is compared."""

    name: str
    scenario: Scenario
    bounds: dict[str, Bound]

    @property
    def is_cut(self) -> bool:
        """True if a link is cut, so that only the cut's effects are compared."""
        return self.scenario.failure_s is not None


def cases() -> list[Case]:
    """Return all cases in which modelled and real hosts are compared."""
    paths = [(10, 40, 1.0), (5, 80, 0.5), (20, 40, 2.0)]
    result = []
    for congestion in ("reno", "cubic"):
        for rate, rtt_ms, buffer_bdp in paths:
            for flows in (1, 4):
                scenario = Scenario(
                    congestion=congestion,  # type: ignore[arg-type]
                    flows=flows,
                    rate_bps=rate * 1_000_000,
                    rtt_ms=rtt_ms,
                    buffer_bdp=buffer_bdp,
                    duration_s=30,
                )
                name = f"{congestion}, {flows} flow{'s' * (flows > 1)}, {rate} Mb/s, {rtt_ms} ms, {buffer_bdp:g} BDP"
                first = BEGINNING_WITH_HYSTART if congestion == "cubic" else BEGINNING
                result.append(Case(name, scenario, STEADY | (first if flows == 1 else {})))
    for congestion in ("reno", "cubic"):
        for reroute in (True, False):
            scenario = Scenario(
                congestion=congestion,  # type: ignore[arg-type]
                duration_s=16,
                failure_s=6,
                # Between the kernel's third and fourth retransmission of the timer, at 1.9 and 4.1 s, and near neither.
                repair_s=9,
                reroute=reroute,
            )
            reaction = "controller reroutes" if reroute else "nobody reacts"
            result.append(Case(f"{congestion}, link cut for 3 s, {reaction}", scenario, CUT | BACK if reroute else CUT))
    return result


def quick_cases() -> list[Case]:
    """Return a short case of each kind. Bounds are wider, as a single run may be farther off than a mean of several."""
    steady_one = Scenario(congestion="reno", duration_s=7)
    cut = Scenario(congestion="cubic", duration_s=9.5, failure_s=5.5, repair_s=7, reroute=True)
    shown = [Case("reno, quick", steady_one, STEADY | BEGINNING), Case("cubic, quick, link cut", cut, CUT | BACK)]
    return [
        dataclasses.replace(case, bounds={name: bound.twice() for name, bound in case.bounds.items()}) for case in shown
    ]


def conclude(case: Case, seen: Observation) -> dict[str, float]:
    """Return the measured quantities of a run by name.

    For a case with a cut these are its effects, else the steady state, and the beginning of a single flow.
    """
    if case.is_cut:
        return after_cut(seen)
    return steady(seen) | (beginning(seen) if case.scenario.flows == 1 else {})


# Runs.


@dataclass
class Outcome:
    """A case with its runs on both clocks, and how many live ones were discarded."""

    case: Case
    simulated: list[Observation]
    live: list[Observation]
    discarded: int


def simulated(case: Case) -> list[Observation]:
    """Simulate a case with the modelled hosts, once for each seed."""
    seeds = SEEDS if case.scenario.flows > 1 else 1
    return [simulate(case.scenario, seed) for seed in range(1, seeds + 1)]


def measure(case: Case, runs: int, progress: Callable[[str], None]) -> Outcome:
    """Simulate a case, and run it live until ``runs`` live runs were undisturbed.

    There are at most three times as many live runs.
    """
    outcome = Outcome(case, simulated(case), [], 0)
    for seed in range(1, 3 * runs + 1):
        if len(outcome.live) == runs:
            break
        seen = run_live(case.scenario, seed)
        if reason := disturbance(seen):
            outcome.discarded += 1
            progress(f"{case.name}: disturbed: {reason}")
        else:
            outcome.live.append(seen)
    return outcome


def compare(outcome: Outcome) -> list[dict[str, Any]]:
    """Return a row per quantity: both sides' means and ranges, and whether the means differ by no more than the bound."""
    live = [conclude(outcome.case, seen) for seen in outcome.live]
    ours = [conclude(outcome.case, seen) for seen in outcome.simulated]
    rows = []
    for name, bound in outcome.case.bounds.items():
        a, b = [each[name] for each in live], [each[name] for each in ours]
        mean_a, mean_b = (statistics.fmean(values) if values else math.nan for values in (a, b))
        rows.append(
            {
                "case": outcome.case.name,
                "quantity": name,
                "unit": bound.unit,
                "live": mean_a,
                "live_low": min(a, default=math.nan),
                "live_high": max(a, default=math.nan),
                "live_runs": len(a),
                "discarded": outcome.discarded,
                "simulated": mean_b,
                "simulated_low": min(b),
                "simulated_high": max(b),
                "bound_relative": bound.relative,
                "bound_absolute": bound.absolute,
                "within": bound.allows(mean_a, mean_b),
            }
        )
    return rows


def check_links(scenario: Scenario) -> dict[str, float]:
    """Measure the rate and delay that links on the wall clock have.

    Return them beside the expected ones. 200 pings cross an idle path, then iperf3 sends UDP at 1.3 times the link's rate.
    """
    network = SimulatedNetwork(scenario.topology(), compile_router(), [scenario.controller()])
    flow = network.add(Ping(source="h1", destination="h2", start_s=0.1, stop_s=1, interval_ms=100))
    network.run(2)
    expected_ms = float(network.statistics(flow).latency_mean_ps or 0) / 1e9
    payload = 1400
    with live_network(scenario) as (live, namespaces):
        h1, h2 = namespaces["h1"], namespaces["h2"]
        target = str(live.topology.hosts["h2"].address.ip)
        live.wait_until(live.now_ps / 1e12 + 0.5)
        pings = h1.run(["ping", "-n", "-i", "0.02", "-c", "200", "-W", "1", target], check=False).stdout
        server = start(h2, "iperf3", "--server", "--one-off", "--json", "--port", "5202")
        try:
            wait_listening(h2, (5202,))
            rate = ("--bitrate", str(round(1.3 * scenario.rate_bps)), "--length", str(payload), "--time", "5")
            h1.run(["iperf3", "--client", target, "--json", "--udp", *rate, "--port", "5202"], check=False)
            report = iperf3_report(server.communicate(timeout=20)[0], "iperf3 (UDP, server)")
        finally:
            server.kill()
    times = sorted(float(each) for each in re.findall(r"time=([\d.]+) ms", pings))
    # The first second fills the queue, and the last may be short.
    whole = [each["sum"]["bits_per_second"] for each in report["intervals"][1:-1]]
    return {
        "rate_mbps": scenario.rate_bps / 1e6,
        "udp_expected_mbps": scenario.rate_bps * payload / (payload + FRAME_BYTES - 1500 + 28) / 1e6,
        "udp_mbps": statistics.fmean(whole) / 1e6,
        "ping_expected_ms": expected_ms,
        "ping_min_ms": times[0],
        "ping_median_ms": statistics.median(times),
        "ping_p99_ms": times[int(len(times) * 0.99)],
        "ping_deviation_ms": statistics.pstdev(times),
        "pings": float(len(times)),
    }


PARTS = ("sent", "received", "bottleneck")
LATENESS = ("mean_lateness_ms", "max_lateness_ms", "late_samples")


def _stem(case: Case) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", case.name.lower())


def keep(outcome: Outcome, folder: Path) -> None:
    """Write the samples of every run, and how late the events of live runs were, to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = _stem(outcome.case)
    for clock, runs in (("live", outcome.live), ("simulated", outcome.simulated)):
        for number, seen in enumerate(runs, start=1):
            for part in PARTS:
                getattr(seen, part).write_parquet(folder / f"{stem}-{clock}-{number}-{part}.parquet")
    late = [{name: getattr(seen, name) for name in LATENESS} for seen in outcome.live]
    (folder / f"{stem}.json").write_text(
        json.dumps({"discarded": outcome.discarded, "live": late}, indent=2) + "\n", encoding="utf-8"
    )


def recall(case: Case, folder: Path) -> Outcome:
    """Read the live runs that :func:`keep` wrote, and simulate the case again."""
    stem = _stem(case)
    kept = json.loads((folder / f"{stem}.json").read_text(encoding="utf-8"))
    live = [
        Observation(
            case.scenario, *(pl.read_parquet(folder / f"{stem}-live-{i}-{part}.parquet") for part in PARTS), **late
        )
        for i, late in enumerate(kept["live"], start=1)
    ]
    return Outcome(case, simulated(case), live, kept["discarded"])


# Pictures.


def draw_windows(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the congestion window of single flows over time, live and simulated, with a panel per case."""
    shown = [o for o in outcomes if o.case.scenario.flows == 1 and not o.case.is_cut]
    columns = 1 if len(shown) <= 2 else 2
    lines = math.ceil(len(shown) / columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(4.6 * columns + 1, 2.1 * lines + 0.8), dpi=130, squeeze=False, sharex=True
    )
    for i, outcome in enumerate(shown):
        axis = grid[i % lines][i // lines]
        for name, runs in (("kernel", outcome.live), ("simulated", outcome.simulated)):
            look = style(name)
            for j, seen in enumerate(runs):
                axis.plot(
                    seen.sent["time_s"].to_list(),
                    (seen.sent["cwnd_bytes"] / FRAME_PAYLOAD_BYTES).to_list(),
                    color=look.colour,
                    linewidth=1.3 if name == "simulated" else 0.7,
                    alpha=0.9 if name == "simulated" else 0.75,
                    label=look.label if j == 0 else None,
                )
        axis.set_title(outcome.case.name, fontsize=8, loc="left")
        axis.set_ylim(0)
        axis.set_xlim(0, outcome.case.scenario.duration_s)
        _plain(axis)
    for axis in grid.flatten(order="F")[len(shown) :]:
        axis.set_visible(False)
    for axis in grid[-1]:
        axis.set_xlabel("time (s)")
    grid[lines // 2][0].set_ylabel("congestion window (segments)")
    grid[0][0].legend(fontsize=8, frameon=False)
    figure.suptitle("The congestion window of one flow", fontsize=10)
    figure.tight_layout()
    save(figure, path, path.with_suffix(".svg"))


def draw_numbers(rows: pl.DataFrame, path: Path) -> None:
    """Draw simulated and live values of each steady quantity: ranges, means, and the bound around the live mean."""
    quantities = {name: bound for name, bound in STEADY.items() if name in rows["quantity"].to_list()}
    names = rows.filter(pl.col("quantity") == next(iter(quantities)))["case"].to_list()
    figure, axes = plt.subplots(
        1, len(quantities), figsize=(2.3 * len(quantities) + 3.2, 0.34 * len(names) + 1.5), dpi=130, sharey=True
    )
    for axis, (quantity, bound) in zip(axes, quantities.items(), strict=True):
        for i, row in enumerate(rows.filter(pl.col("quantity") == quantity).iter_rows(named=True)):
            width = max(bound.absolute, bound.relative * row["live"])
            axis.barh(i, 2 * width, left=row["live"] - width, height=0.8, color="#EEEEEE", zorder=0)
            for name, column, shift in (("kernel", "live", 0.16), ("simulated", "simulated", -0.16)):
                look = style(name)
                axis.plot(
                    [row[f"{column}_low"], row[f"{column}_high"]], [i + shift] * 2, color=look.colour, linewidth=1.4
                )
                label = look.label if i == 0 else None
                axis.plot(
                    row[column],
                    i + shift,
                    look.marker,
                    color=look.colour,
                    markersize=4.5,
                    linestyle="none",
                    label=label,
                )
        axis.set_title(f"{bound.what} ({bound.unit})", fontsize=8)
        axis.set_xlim(left=0)
        axis.set_yticks(range(len(names)), names, fontsize=7)
        axis.tick_params(axis="x", labelsize=7)
        _plain(axis)
    axes[0].invert_yaxis()
    axes[0].legend(fontsize=7, frameon=False, loc="lower left")
    figure.suptitle("Steady state: means and ranges of the runs; grey: the bound around the live mean", fontsize=9)
    figure.tight_layout()
    save(figure, path, path.with_suffix(".svg"))


def draw_cuts(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw goodput around each cut, live and simulated, in bins of 100 ms."""
    shown = [o for o in outcomes if o.case.is_cut]
    figure, axes = plt.subplots(
        len(shown), 1, figsize=(7.5, 1.55 * len(shown) + 0.9), dpi=130, sharex=True, squeeze=False
    )
    for axis, outcome in zip(axes[:, 0], shown, strict=True):
        scenario = outcome.case.scenario
        axis.axvspan(scenario.failure_s, scenario.repair_s, color="#DDDDDD", zorder=0)
        for name, runs in (("kernel", outcome.live), ("simulated", outcome.simulated)):
            look = style(name)
            for j, seen in enumerate(runs):
                times = [step * 0.1 for step in range(40, 130)]
                rates = [rise(seen.received, "bytes_received", t, t + 0.1) * 8e-6 / 0.1 for t in times]
                axis.plot(
                    [t + 0.05 for t in times],
                    rates,
                    color=look.colour,
                    linewidth=1.3 if name == "simulated" else 0.8,
                    alpha=0.85,
                    label=look.label if j == 0 else None,
                )
        axis.set_title(outcome.case.name, fontsize=8, loc="left")
        axis.set_xlim(4, 13)
        _plain(axis)
    axes[0][0].legend(fontsize=7, frameon=False, loc="lower right")
    axes[len(shown) // 2][0].set_ylabel("goodput (Mb/s)")
    axes[-1][0].set_xlabel("time (s)")
    figure.suptitle("A link is cut and repaired (grey)", fontsize=10)
    figure.tight_layout()
    save(figure, path, path.with_suffix(".svg"))


def _plain(axis: Any) -> None:
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def print_tables(rows: pl.DataFrame, links: pl.DataFrame) -> None:
    """Print both tables, of links and of quantities, as Markdown."""
    print("\n| rate | UDP, expected | UDP | ping, expected | min | median | 99 % | deviation |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in links.iter_rows(named=True):
        print(
            f"| {row['rate_mbps']:g} Mb/s | {row['udp_expected_mbps']:.3f} | {row['udp_mbps']:.3f} "
            f"| {row['ping_expected_ms']:.2f} ms | {row['ping_min_ms']:.2f} | {row['ping_median_ms']:.2f} "
            f"| {row['ping_p99_ms']:.2f} | {row['ping_deviation_ms']:.2f} |"
        )
    for title, bounds in (("steady", STEADY), ("beginning", BEGINNING), ("cut", CUT | BACK)):
        shown = rows.filter(pl.col("quantity").is_in(list(bounds)))
        if shown.is_empty():
            continue
        units = [f"{bound.what}{f', {bound.unit}' * bool(bound.unit)}" for bound in bounds.values()]
        print(f"\n| {title}: live (range), simulated | {' | '.join(units)} | runs, discarded |")
        print("|---|" + "--:|" * (len(units) + 1))
        for (case,), cells in shown.group_by(["case"], maintain_order=True):
            found = {row["quantity"]: row for row in cells.iter_rows(named=True)}
            first = next(iter(found.values()))
            texts = [_cell(found[name]) if name in found else "" for name in bounds]
            print(f"| {case} | {' | '.join(texts)} | {first['live_runs']}, {first['discarded']} |")


def _cell(row: dict[str, Any]) -> str:
    """Return a quantity's live mean with range and its simulated mean as text, in bold if they differ by more than the bound."""
    live = f"{row['live']:.3g} ({row['live_low']:.3g} to {row['live_high']:.3g}), {row['simulated']:.3g}"
    return live if row["within"] else f"**{live}: beyond the bound**"


def report(outcomes: Sequence[Outcome], links: pl.DataFrame, out: Path) -> int:
    """Write the table and the pictures, print the tables, and return the exit status: 1 if a bound is exceeded."""
    rows = [row for outcome in outcomes for row in compare(outcome)]
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(out / "agreement.csv")
    if any("peak_window_segments" in o.case.bounds for o in outcomes):
        draw_windows(outcomes, out / "live_windows.png")
    if any(not o.case.is_cut for o in outcomes):
        draw_numbers(table, out / "live_numbers.png")
    if any(o.case.is_cut for o in outcomes):
        draw_cuts(outcomes, out / "live_cut.png")
    print_tables(table, links)
    unmeasured = [o.case.name for o in outcomes if not o.live]
    for name in unmeasured:
        print(f"not measured, the machine was too busy: {name}")
    return 0 if all(row["within"] or row["case"] in unmeasured for row in rows) else 1


def main() -> int:
    """Run the comparison that the command line describes, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two short cases, once, with twice the bounds")
    parser.add_argument("--runs", type=int, default=3, help="undisturbed live runs of each case")
    parser.add_argument(
        "--out",
        type=Path,
        help="directory for tables and pictures (out/live_agreement, quick: out/live_agreement_quick)",
    )
    parser.add_argument("--only", default="", help="only cases whose names contain this")
    parser.add_argument(
        "--again", action="store_true", help="take live runs from --out, where an earlier call left them"
    )
    options = parser.parse_args()
    out: Path = options.out or Path("out", "live_agreement_quick" if options.quick else "live_agreement")
    chosen = [case for case in (quick_cases() if options.quick else cases()) if options.only in case.name]
    if options.again:
        outcomes = [recall(case, out / "runs") for case in chosen]
        return report(outcomes, pl.read_csv(out / "links.csv"), out)
    try:
        check_machine()
    except LiveError as error:
        print(f"skipped: {error}")
        return 0
    out.mkdir(parents=True, exist_ok=True)
    rates = sorted({(case.scenario.rate_bps, case.scenario.rtt_ms) for case in chosen})
    links = [check_links(Scenario(congestion="reno", rate_bps=rate, rtt_ms=rtt_ms)) for rate, rtt_ms in rates]
    pl.DataFrame(links).write_csv(out / "links.csv")
    outcomes = []
    for case in chosen:
        outcome = measure(case, 1 if options.quick else options.runs, lambda text: print(text, flush=True))
        keep(outcome, out / "runs")
        outcomes.append(outcome)
        print(f"{case.name}: {len(outcome.live)} live runs, {outcome.discarded} discarded", flush=True)
    return report(outcomes, pl.DataFrame(links), out)


if __name__ == "__main__":
    sys.exit(main())
