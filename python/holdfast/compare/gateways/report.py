"""A comparison of gateways in words, tables and pictures, for terminals and reports. What the numbers are is computed elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from markupsafe import Markup

from holdfast.compare import drawing, page, world
from holdfast.compare.drawing import Curve, LinkLook, Panel
from holdfast.compare.failures import link_names
from holdfast.compare.formats import count, number
from holdfast.compare.gateways import access, core, simulation
from holdfast.compare.gateways.comparison import Comparison, Part, Summary
from holdfast.compare.gateways.mechanisms import MECHANISMS, Mechanism
from holdfast.compare.gateways.scenario import BIN_MS, FAILURES
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.page import Cell, Column, Lane, Lanes, Table, TableRow, for_both
from holdfast.terminal import Grid

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

HOW = (
    "Every switch ran a P4 program; hosts, subscribers, links and the RADIUS server were simulated. The same scenario and seeds"
    " give the same numbers."
)


# ---- In words ----


def title(comparison: Comparison) -> str:
    """Return two lines that describe the failure's times, the seeds, and the subscribers with their traffic."""
    crowd, times = comparison.scenario.subscribers, comparison.scenario.times
    seeds = f", {len(comparison.seeds)} seeds" if len(comparison.seeds) > 1 else ""
    return (
        f"gateways: a failure lasts from {times.failure_s:g} s to {times.repair_s:g} s of {times.end_s:g} s{seeds}\n"
        f"{crowd.subscribers} subscribers with {crowd.packets_per_s:g} packets/s each way, and"
        f" {len(comparison.scenario.newcomers)} that dial meanwhile"
    )


def legend(comparison: Comparison) -> list[str]:
    """Return a line for each failure: its name and what fails."""
    return [f"{name}: {FAILURES[name]}" for name in comparison.scenario.failures]


def input_of(comparison: Comparison) -> dict[str, object]:
    """Return the comparison's input for the JSON output: the failures, their times, and the subscribers."""
    subscribers = comparison.scenario.subscribers.model_dump()
    return {"scenario": "gateways", **world.input_of(comparison), "subscribers": subscribers}


def advice(comparison: Comparison) -> str:
    """Return one sentence that says which mechanism loses fewest packets and what it keeps, and how the others compare."""
    first = comparison.summaries[0]
    verb = "keep" if sum(each.rank == first.rank for each in comparison.summaries) > 1 else "keeps"
    rest = [f"{s.mechanism} {s.kept_percent:.0f} %" for s in comparison.summaries if s.rank != first.rank]
    return world.advice(comparison, more=f", and {verb} {first.kept_percent:.0f} % of sessions ({', '.join(rest)})")


def notes(comparison: Comparison) -> list[str]:
    """Return the facts with which the numbers must be read, a sentence or two each."""
    crowd, times = comparison.scenario.subscribers, comparison.scenario.times
    found = [
        f"{crowd.subscribers} subscribers (CHAP, IPv4) have {crowd.packets_per_s:g} packets/s in each direction;"
        f" {len(comparison.scenario.newcomers)} others dial while something is down.",
        f"A session is over when three LCP echoes in a row, {crowd.keepalive_s:g} s apart, are not answered, on either side."
        " The data plane answers those of subscribers; so a controller that is away costs no session.",
        "The element that fails belongs to the first gateway, and fails alone. Detection of a port's state takes"
        f" {times.detection_delay_ms:g} ms, the reaction to it, and a route to the core, {times.reaction_delay_ms:g} ms more.",
        "A switch that fails comes back without its tables. A gateway of one plane is one box: its control plane is off with"
        " it, and starts again from disk. The time that a control plane needs to start is not modelled: pppoe_split_plane"
        " measures it.",
        "A gateway of one plane is at the access link, authenticates and forwards in one switch: its failures of plane,"
        " balancer and auth are the same. Without the balancer of a split gateway nothing passes; without its authentication"
        " plane, established sessions with traffic do.",
    ]
    if "plane" in comparison.scenario.failures and any(each.planes == 1 for each in comparison.mechanisms):
        found.append(
            "While the only forwarding plane of split is off, its authentication plane sets sessions up all the same: such a"
            " setup is fast, and no packet passes."
        )
    if most := max(case.measures["wrong_session"] for case in comparison.cases):
        found.append(
            f"At most {most} packet{'' if most == 1 else 's'} of a run came down a line for a session that had ended; home"
            " gateways dropped them."
        )
    return [*found, *world.notes(comparison)]


def heading(comparison: Comparison) -> str:
    """Return the heading of the report: what fails."""
    failures = comparison.scenario.failures
    what = f"{FAILURES[failures[0]]}" if len(failures) == 1 else f"each of {len(failures)} things fails in turn"
    return f"Broadband gateways: {what}"


def subtitle(comparison: Comparison) -> str:
    """Return the sentence below the report's heading: the subscribers, the times of the failure and the seeds."""
    scenario, times = comparison.scenario, comparison.scenario.times
    crowd = scenario.subscribers
    seeds = "one seed" if len(comparison.seeds) == 1 else f"{len(comparison.seeds)} seeds"
    return (
        f"{crowd.subscribers} subscribers with PPPoE sessions and {crowd.packets_per_s:g} packets/s each way;"
        f" {len(scenario.newcomers)} more dial while something is down. A failure lasts from {times.failure_s:g} s to"
        f" {times.repair_s:g} s of {times.end_s:g} s; simulated, {seeds}."
    )


# ---- Tables ----


def columns(comparison: Comparison) -> list[Column]:
    """Return the columns of the ranking: losses, sessions, delays, and the price."""

    def shown(heading: str, unit: str, value: Callable[[Summary], float | None]) -> Column:
        return heading, unit, lambda s: number(value(s)), comparison.clearly(value)

    return [
        ("packets lost", "mean, worst failure", _lost, comparison.clearly(lambda s: s.lost_mean)),
        (
            "sessions kept",
            "%",
            lambda s: number(s.kept_percent),
            comparison.clearly(lambda s: s.kept_percent, most=True),
        ),
        shown("outage", "worst, ms", lambda s: s.outage_worst_ms),
        shown("recovered", "slowest, ms", lambda s: s.recovered_ms),
        shown("setup", "slowest, ms", lambda s: s.setup_worst_ms),
        ("switches", "", lambda s: str(s.switches), comparison.clearly(lambda s: s.switches)),
        ("entries", "all switches", lambda s: str(s.entries), comparison.clearly(lambda s: s.entries)),
    ]


def tables(comparison: Comparison) -> list[Grid]:
    """Return a table with the failures one after the other, and under each failure the mechanisms, best first."""
    result = Grid(
        names=2,
        legend=[
            "kept: sessions that did not end; lost: packets; outage: mean of the longest of each",
            "subscriber, longest: the worst; recovered: until the slowest lost no more;",
            "setup: mean time until newcomers have a session, slowest: the last one",
        ],
    )
    result.add_names("failure", "")
    result.add_numbers("kept\n", "lost\npkts", "outage\nms", "longest\nms", "recovered\nms", "setup\nms", "slowest\nms")
    total = comparison.scenario.subscribers.subscribers
    for failure in comparison.scenario.failures:
        for place, each in enumerate(comparison.summaries):
            part = each.parts[failure]
            kept, lost = f"{number(part['kept_mean'])}/{total}", count(part["lost_mean"])
            outages, setups = (_shown(f"{what}_mean_ms", f"{what}_worst_ms")(part) for what in ("outage", "setup"))
            shown = (kept, lost, *outages.split("\n"), recovered(part), *setups.split("\n"))
            result.add_row(failure if place == 0 else "", each.mechanism, *shown)
    return [result]


def recovered(part: Part) -> str:
    """Return as text the slowest subscriber's time to recover in ms, or how many never recovered."""
    return f"{part['unrecovered']} never" if part["unrecovered"] else number(part["recovered_ms"])


def _shown(*names: str) -> Callable[[Part], str]:
    """Return a function that formats the named measures of a mechanism under a failure, one per line."""
    return lambda part: "\n".join(number(part[name]) for name in names)


def _lost(summary: Summary) -> str:
    return f"{count(summary.lost_mean)}\n{count(summary.lost_worst)}"


# ---- Each failure ----


def parts(comparison: Comparison) -> dict[str, object]:
    """Return the values for the page's template that only comparisons of gateways have, besides those that every report has."""
    failures = comparison.scenario.failures
    over_time = [_lanes(comparison, failure) for failure in failures]
    return {
        "failures": [
            (FAILURES[failure], _numbers(comparison, failure), lanes)
            for failure, lanes in zip(failures, over_time, strict=True)
        ],
        "choices": page.times_to_choose(over_time),
        "networks": [
            (each, _style(each.name), for_both(partial(_network, comparison, each))) for each in comparison.mechanisms
        ],
        "fails": [(failure, FAILURES[failure]) for failure in failures],
    }


def _style(name: str) -> str:
    return page.style(MECHANISMS, name)


def _numbers(comparison: Comparison, failure: str) -> Table:
    total = comparison.scenario.subscribers.subscribers
    newcomers = len(comparison.scenario.newcomers)
    several = len(comparison.seeds) > 1
    columns: list[tuple[str, str, Callable[[Part], str]]] = [
        ("sessions kept", f"of {total}", _shown("kept_mean")),
        ("packets lost", "mean, 95 % interval" if several else "", _lost_of_part),
        ("outage", "mean, worst, ms", lambda p: f"{number(p['outage_mean_ms'])}\n{number(p['outage_worst_ms'])}"),
        ("recovered", "slowest, ms", recovered),
        ("setup", "mean, worst, ms", lambda p: f"{number(p['setup_mean_ms'])}\n{number(p['setup_worst_ms'])}"),
        ("newcomers in", f"of {newcomers}", _shown("newcomers_in")),
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
    mean, low, high = (part[name] for name in ("lost_mean", "lost_low", "lost_high"))
    return count(mean) if low is None else f"{count(mean)}\n{count(low)} to {count(high)}"


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
    """Draw the switches and links of a mechanism's network, with crosses on the elements that fail in turn.

    ``width``: in pixels, ``WIDE`` or ``NARROW`` of :mod:`holdfast.compare.drawing`.
    """
    failures = comparison.scenario.failures
    topology = simulation.topology(mechanism, 1)
    at = {name: simulation.failing(mechanism, name) for name in failures}
    links = []
    for name in link_names(topology):
        link = topology.links[topology.find_link(name)]
        links.append(LinkLook(name, link.a, link.b, True, "access" in at and name == at["access"]))
    switches = {each for each in at.values() if each in topology.switches}
    return drawing.network(topology, links, switches, {access.NODE, core.NODE}, None, {}, width=width)
