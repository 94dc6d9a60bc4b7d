"""The comparison as tables for a terminal of 80 columns: the ranking, and each failure."""

from __future__ import annotations

from rich.table import Table

from holdfast.compare.bng.comparison import Comparison, Part, count
from holdfast.compare.bng.scenario import FAILURES
from holdfast.compare.terminal import number


def title(comparison: Comparison) -> str:
    """Return two lines that describe the failure's times, the seeds, and the subscribers with their traffic."""
    crowd, times = comparison.scenario.subscribers, comparison.scenario.times
    seeds = f", {len(comparison.seeds)} seeds" if len(comparison.seeds) > 1 else ""
    return (
        f"bng: a failure lasts from {times.failure_s:g} s to {times.repair_s:g} s of {times.end_s:g} s{seeds}\n"
        f"{crowd.subscribers} subscribers with {crowd.packets_per_s:g} packets/s each way, and"
        f" {len(comparison.scenario.given.newcomers)} that dial meanwhile"
    )


def recovered(part: Part) -> str:
    """Return as text the slowest subscriber's time to recover in ms, or how many never recovered."""
    return f"{part.unrecovered} never" if part.unrecovered else number(part.recovered_ms)


def table(comparison: Comparison) -> Table:
    """Return a table with the failures one after the other, and under each failure the mechanisms, best first."""
    result = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    result.add_column("failure", no_wrap=True)
    result.add_column("", style="bold", no_wrap=True)
    headings = ("sess.\nkept", "lost\npackets", "outage\nmean\n(ms)", "outage\nworst\n(ms)", "recov-\nered\n(ms)")
    for heading in (*headings, "setup\nmean\n(ms)", "setup\nworst\n(ms)"):
        result.add_column(heading, justify="right", no_wrap=True)
    total = comparison.scenario.subscribers.subscribers
    for failure in comparison.scenario.failures:
        for place, each in enumerate(comparison.summaries):
            part = each.parts[failure]
            result.add_row(
                failure if place == 0 else "",
                each.mechanism,
                f"{number(part.kept_mean)}/{total}",
                count(part.lost_mean),
                number(part.outage_mean_ms),
                number(part.outage_worst_ms),
                recovered(part),
                number(part.setup_mean_ms),
                number(part.setup_worst_ms),
            )
    return result


def failures(comparison: Comparison) -> list[str]:
    """Return a line for each failure: its name and what fails."""
    return [f"{name}: {FAILURES[name]}" for name in comparison.scenario.failures]
