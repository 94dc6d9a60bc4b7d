"""The report: one HTML file that needs nothing else. :mod:`holdfast.compare.bng.comparison` computes the numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from markupsafe import Markup

from holdfast.compare import drawing, page
from holdfast.compare.bng import access, core, mechanisms, world
from holdfast.compare.bng.comparison import NOISE_SHARE, Comparison, Part, Summary, count
from holdfast.compare.bng.mechanisms import Mechanism
from holdfast.compare.bng.scenario import BIN_MS, FAILURES, NO_FAILURE
from holdfast.compare.bng.terminal import recovered
from holdfast.compare.drawing import Curve, LinkLook, Panel
from holdfast.compare.page import Cell, Lane, Lanes, Table, TableRow, for_both
from holdfast.compare.scenario import link_names
from holdfast.compare.terminal import number

Column = tuple[str, str, Callable[[Summary], str], set[str]]
"""Heading, what stands below it, how it is shown, and who is best."""

DEFINITIONS = (
    ("sessions kept", "subscribers that have had one session in the whole run, and have it at the end"),
    (
        "packets lost",
        "of all subscribers, both ways, that never arrived, less those that the same mechanism loses with the same seed without a"
        " failure",
    ),
    (
        "outage",
        "the longest time between two packets that arrive for a subscriber or from it, less their interval; the mean is over"
        " subscribers that have one",
    ),
    ("recovered", "when the last packet was sent that was lost, after the failure; the slowest subscriber"),
    (
        "setup",
        "of subscribers that dial while something is down: from the first attempt to the session, those included that are in only"
        " after the repair",
    ),
    ("entries", "table entries that controllers wrote, in all switches of the gateways, without a failure"),
)

RULE = (
    "By packets lost to a failure, mean over the failures; mechanisms differ if it is by more than"
    f" {100 * NOISE_SHARE:g} % and, with several seeds, with 95 % confidence, seed by seed. Those that do not differ have the same"
    f" rank. Bold: within {100 * NOISE_SHARE:g} % of the best of the column, unless all are."
)


def write(comparison: Comparison, path: Path) -> None:
    """Write the report to ``path`` as one HTML file; the same comparison always gives the same bytes."""
    failures = comparison.scenario.failures
    over_time = [_lanes(comparison, failure) for failure in failures]
    page.write(
        path,
        "bng/report.html",
        title=_title(comparison),
        subtitle=_subtitle(comparison),
        advice=comparison.advice(),
        colours=[(_style(each.name), each.colour) for each in comparison.mechanisms],
        ranking=_ranking(comparison),
        rule=RULE,
        failures=[
            (FAILURES[failure], _numbers(comparison, failure), lanes)
            for failure, lanes in zip(failures, over_time, strict=True)
        ],
        choices=page.times_to_choose(over_time),
        networks=[
            (each, _style(each.name), for_both(partial(_network, comparison, each))) for each in comparison.mechanisms
        ],
        notes=comparison.notes(),
        fails=[(failure, FAILURES[failure]) for failure in failures],
        definitions=DEFINITIONS,
        made_by="holdfast compare --scenario bng",
        how="hosts, subscribers, links and the RADIUS server were simulated. The same scenario and seeds give the same numbers.",
        files="cases.parquet, subscribers.parquet",
    )


def _style(name: str) -> str:
    """Return the CSS class that gives the colour of mechanism ``name``."""
    return f"m{[each.name for each in mechanisms.MECHANISMS].index(name)}"


def _title(comparison: Comparison) -> str:
    failures = comparison.scenario.failures
    what = f"{FAILURES[failures[0]]}" if len(failures) == 1 else f"each of {len(failures)} things fails in turn"
    return f"Broadband gateways: {what}"


def _subtitle(comparison: Comparison) -> str:
    scenario, times = comparison.scenario, comparison.scenario.times
    crowd = scenario.subscribers
    seeds = "one seed" if len(comparison.seeds) == 1 else f"{len(comparison.seeds)} seeds"
    return (
        f"{crowd.subscribers} subscribers with PPPoE sessions and {crowd.packets_per_s:g} packets/s each way;"
        f" {len(scenario.given.newcomers)} more dial while something is down. A failure lasts from {times.failure_s:g} s to"
        f" {times.repair_s:g} s of {times.end_s:g} s; simulated, {seeds}."
    )


# ---- The ranking ----


def _ranking(comparison: Comparison) -> Table:
    best = comparison.best
    columns: list[Column] = [
        ("packets lost", "mean, worst failure", _lost, best(lambda s: s.lost_mean)),
        ("sessions kept", "%", lambda s: number(s.kept_percent), best(lambda s: s.kept_percent, most=True)),
        ("outage", "worst, ms", lambda s: number(s.outage_worst_ms), best(lambda s: s.outage_worst_ms)),
        ("recovered", "slowest, ms", lambda s: number(s.recovered_ms), best(lambda s: s.recovered_ms)),
        ("setup", "slowest, ms", lambda s: number(s.setup_worst_ms), best(lambda s: s.setup_worst_ms)),
        ("switches", "", lambda s: str(s.switches), best(lambda s: s.switches)),
        ("entries", "all switches", lambda s: str(s.entries), best(lambda s: s.entries)),
    ]
    rows = [
        TableRow(
            summary.mechanism,
            [Cell(show(summary), heading, unit, summary.mechanism in ahead) for heading, unit, show, ahead in columns],
            _style(summary.mechanism),
            before=f"{summary.rank}. ",
        )
        for summary in comparison.summaries
    ]
    return Table("mechanism", [(heading, unit) for heading, unit, _, _ in columns], rows)


def _lost(summary: Summary) -> str:
    return f"{count(summary.lost_mean)}\n{count(summary.lost_worst)}"


# ---- Each failure ----


def _numbers(comparison: Comparison, failure: str) -> Table:
    total = comparison.scenario.subscribers.subscribers
    newcomers = len(comparison.scenario.given.newcomers)
    several = len(comparison.seeds) > 1
    columns: list[tuple[str, str, Callable[[Part], str]]] = [
        ("sessions kept", f"of {total}", lambda p: number(p.kept_mean)),
        ("packets lost", "mean, 95 % interval" if several else "", _lost_of_part),
        ("outage", "mean, worst, ms", lambda p: f"{number(p.outage_mean_ms)}\n{number(p.outage_worst_ms)}"),
        ("recovered", "slowest, ms", recovered),
        ("setup", "mean, worst, ms", lambda p: f"{number(p.setup_mean_ms)}\n{number(p.setup_worst_ms)}"),
        ("newcomers in", f"of {newcomers}", lambda p: number(p.newcomers_in)),
    ]
    rows = [
        TableRow(
            each.mechanism,
            [Cell(show(each.parts[failure]), heading, unit) for heading, unit, show in columns],
            _style(each.mechanism),
        )
        for each in comparison.summaries
    ]
    return Table("mechanism", [(heading, unit) for heading, unit, _ in columns], rows)


def _lost_of_part(part: Part) -> str:
    if part.lost_low is None or part.lost_high is None:
        return count(part.lost_mean)
    return f"{count(part.lost_mean)}\n{count(part.lost_low)} to {count(part.lost_high)}"


def _lanes(comparison: Comparison, failure: str) -> Lanes:
    """Draw for each mechanism, over time, packets that arrive and subscribers with a session, in percent, of the first seed."""
    times, seed = comparison.scenario.times, comparison.seeds[0]
    window = (times.failure_s, times.repair_s)
    span = (max(0.0, times.failure_s - 0.25 * times.down_s), times.end_s)
    heads = ("packets delivered (%)", "subscribers with a session (%)")
    lanes = []
    for summary in comparison.summaries:
        name = summary.mechanism
        row, still = (comparison.row(name, which, seed) for which in (failure, NO_FAILURE))
        full = sorted(still["delivered_curve"])[-len(still["delivered_curve"]) // 2] or 1
        curves = (
            [100 * value / full for value in row["delivered_curve"]],
            [100 * value / len(row["kept"]) for value in row["online_curve"]],
        )
        pictures = []
        for head, values in zip(heads, curves, strict=True):
            shown = Panel(Curve(0.0, BIN_MS / 1000, values), None, window, span, 125.0, _style(name))
            pictures.append((head, drawing.panel(shown, 440.0, 92.0, f"{name}: {head}")))
        lanes.append(Lane(name, _style(name), pictures))
    words = (
        "Shaded: down. Time in seconds. Packets: of what arrives without a failure. A subscriber has a session until it knows that"
        f" it has lost it.{' The first of the seeds.' if len(comparison.seeds) > 1 else ''}"
    )
    return Lanes(failure, "5rem 1fr 1fr", heads, lanes, words)


# ---- The networks ----


def _network(comparison: Comparison, mechanism: Mechanism, *, width: float) -> Markup:
    """Draw the switches and links of a mechanism's network, with crosses on the elements that fail in turn."""
    failures = comparison.scenario.failures
    topology = world.topology(mechanism, 1)
    at = {name: world.failing(mechanism, name) for name in failures}
    links = []
    for name in link_names(topology):
        link = topology.links[topology.find_link(name)]
        links.append(LinkLook(name, link.a, link.b, True, "access" in at and name == at["access"]))
    switches = {each for each in at.values() if each in topology.switches}
    return drawing.network(topology, links, switches, {access.NODE, core.NODE}, None, {}, width)
