"""The report: one HTML file that needs nothing else, to be read in a browser, printed or mailed.

The text around its tables and pictures stands in ``report.html``; they are parts of :mod:`holdfast.compare.page`. The numbers
are :mod:`holdfast.compare.comparison`'s business.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from markupsafe import Markup

from holdfast.compare import drawing, mechanisms, multicast, page, telemetry, traffic_file
from holdfast.compare.comparison import Comparison
from holdfast.compare.drawing import Curve, Dots, Line, LinkLook, Panel
from holdfast.compare.failures import failing, kind, link_names
from holdfast.compare.figures import Summary
from holdfast.compare.formats import difference, number, percent, ratio
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.page import NONE, Cell, Column, Lane, Lanes, Table, TableRow, for_both
from holdfast.compare.ranking import Less
from holdfast.compare.rows import CurveColumn, Row
from holdfast.compare.terminal import completion
from holdfast.link import reversed_link
from holdfast.topology import Link, Topology

CURVES = 6
"""Failures whose curves are shown, if there are so many: those that cost most."""

GOODPUT_BIN_MS = 50
PROBES_PER_BIN = 20
"""Bins of the delivery curve are wide enough for so many probes, so that the curve is not their counting."""

TIMES = "\N{MULTIPLICATION SIGN}"


def parts(comparison: Comparison) -> dict[str, object]:
    """Return the values for the page's template that only comparisons of networks have, besides those that every report has."""
    several = len(comparison.scenario.failures) > 1
    over_time = [_lanes(comparison, failure) for failure in comparison.costliest_failures()[:CURVES]]
    return {
        "comparison": comparison,
        "receivers": _receivers(comparison),
        "worst": _worst(comparison),
        "links": _links(comparison.scenario.topology),
        "several": several,
        "one": kind(comparison.scenario.topology, comparison.scenario.failures[0]),
        "network": _network(comparison),
        "network_choices": [(each.name, drawing.slug(each.name)) for each in comparison.mechanisms],
        "decades": drawing.DECADES,
        "distributions": _distributions(comparison) if several else [],
        "core": _core(comparison),
        "over_time": over_time,
        "over_time_choices": page.times_to_choose(over_time),
        "telemetry": _telemetry(comparison) if comparison.scenario.telemetry else None,
        "definitions": _definitions(comparison),
        "how": LIVELY if comparison.scenario.live else SIMULATED,
        "files": "cases.parquet, flows.parquet",
    }


def _style(name: str) -> str:
    return page.style(mechanisms.known(), name)


def heading(comparison: Comparison) -> str:
    """Return the heading of the page: the topology and what fails."""
    scenario = comparison.scenario
    failure = scenario.failures[0]
    if len(scenario.failures) > 1:
        what = f"each of {len(scenario.failures)} {scenario.failed} fails in turn"
    else:
        what = f"{scenario.failed} {failure.replace('_', ' ')} fails"
    return f"{scenario.topology.name}: {what}{' (live)' if scenario.live else ''}"


def subtitle(comparison: Comparison) -> str:
    """Return the sentence below the page's heading: size of the network, times, seeds and traffic."""
    scenario, times = comparison.scenario, comparison.scenario.times
    topology = scenario.topology
    count = len(comparison.seeds)
    seeds = "one seed" if count == 1 else f"{count} seeds"
    how = f"live, {'once' if count == 1 else f'{count} times'}" if scenario.live else f"simulated, {seeds}"
    return (
        f"{topology.size}. A failure lasts from"
        f" {times.failure_s:g} s to {times.repair_s:g} s of {times.end_s:g} s; {how}."
        f" Traffic: {traffic_file.describe(scenario.traffic)}{'' if scenario.own_traffic else ' (the default)'}."
    )


# ---- The ranking ----


def columns(comparison: Comparison) -> list[Column]:
    """Return the columns of the ranking: losses, outages, TCP, delays, and the price."""
    many, seeds = len(comparison.scenario.failures) > 1, len(comparison.seeds)
    # Losses and outages are no mechanism's merit if the runs carry no conclusion; the price is known all the same.
    counted = comparison.uncounted is None
    lost_less, back_sooner = (
        None if comparison.unranked is not None else test for test in (comparison.lost_less, comparison.back_sooner)
    )
    delivers_more = None if comparison.unranked is not None and counted else comparison.delivers_more
    lost: list[Column] = [
        ("packets lost", "mean, 95 % interval" if seeds > 1 else "", _lost, lost_less),
        ("longest outage", "ms", lambda s: _gap(s, s.outage_mean_ms), back_sooner),
    ]
    if many:
        lost = [
            (
                "packets lost",
                "mean, worst",
                lambda s: f"{number(s.lost_mean)}\n{s.lost_worst}",
                lost_less,
            ),
            (
                "outage",
                "median, worst, ms",
                lambda s: f"{_gap(s, s.outage_median_ms)}\n{number(s.outage_worst_ms)}",
                back_sooner,
            ),
        ]
    if not counted:
        lost = [(name, unit, lambda _: NONE, None) for name, unit, _, _ in lost]
    elif any(summary.lost_undisturbed for summary in comparison.summaries):
        lost.insert(1, ("lost without", "a failure", lambda s: number(s.lost_undisturbed), None))
    tcp: list[Column] = [
        ("TCP goodput lost", "%, MB", _goodput_lost, delivers_more),
        ("TCP transfers", "mean, worst, ms", _completion, None),
    ]
    found: list[Column] = [
        *lost,
        *([] if comparison.is_multicast else tcp),
        ("latency added", "ms", lambda s: difference(s.added_latency_ms), None),
        ("jitter added", "ms", lambda s: difference(s.added_jitter_ms), None),
        ("bytes carried", f"{TIMES} {comparison.baseline}", lambda s: f"{s.bytes_ratio:.2f}", comparison.carries_less),
        (
            "state per switch",
            "mean, most",
            lambda s: f"{number(s.entries_mean)}\n{s.entries_max}",
            lambda one, other: one.entries_mean < other.entries_mean,
        ),
    ]
    if any(ends.group is not None for ends in comparison.flows):
        found += [
            ("bytes carried", f"{TIMES} best trees", lambda s: ratio(s.tree_ratio), None),
            ("core state", "mean", lambda s: number(s.core_state), _least(lambda s: s.core_state)),
            (
                "a join",
                "updates, switches",
                lambda s: f"{number(s.join_updates)}\n{number(s.join_switches)}",
                _least(lambda s: s.join_updates),
            ),
        ]
    if any(summary.promises is not None for summary in comparison.summaries):
        found.append(("promises kept", "of receivers", _promises, None))
    if any(summary.unprotected_flows for summary in comparison.summaries):
        kind = traffic_file.kind_of(comparison.flows).removeprefix("host ")
        found.append(("not protected", f"of {len(comparison.flows)} {kind}s", lambda s: str(s.unprotected_flows), None))
    return found


def _gap(summary: Summary, outage_ms: float) -> str:
    """Return an outage in ms, and call it a gap if no packet is lost to any failure: arrivals have only come later."""
    return f"{'gap ' if summary.lost_worst <= 0 < outage_ms else ''}{number(outage_ms)}"


def _promises(summary: Summary) -> str:
    if summary.promises is None:
        return NONE
    return f"{summary.promises_kept} of {summary.promises}\n{summary.promises_none} without"


def _least(value: Callable[[Summary], float | None]) -> Less:
    """Return a function that tells if its first summary has a smaller ``value`` than the second; False if one has none."""

    def less(one: Summary, other: Summary) -> bool:
        values = value(one), value(other)
        return values[0] is not None and values[1] is not None and values[0] < values[1]

    return less


def _lost(summary: Summary) -> str:
    if summary.lost_low is None:
        return number(summary.lost_mean)
    return f"{number(summary.lost_mean)}\n{number(summary.lost_low)} to {number(summary.lost_high)}"


def _goodput_lost(summary: Summary) -> str:
    if summary.goodput_lost_percent is None:
        return NONE
    return f"{number(summary.goodput_lost_percent)}\n{number(summary.goodput_lost_bytes_mean / 1e6)}"


def _completion(summary: Summary) -> str:
    shown = completion(summary, after="\nfinished")
    if summary.transfers_unfinished:
        return shown
    return NONE if summary.completion_mean_ms is None else f"{shown}\n{number(summary.completion_worst_ms)}"


def _receivers(comparison: Comparison) -> Table | None:
    """Return a table with the worst receiver of each flow with several receivers, by mechanism; None without such flows."""
    several = [(flow, places) for flow, places in comparison.probe_flows() if len(places) > 1]
    if not several:
        return None
    rows = []
    for flow, places in several:
        cells = []
        for summary in comparison.summaries:
            receiver, outage_ms, lost = comparison.worst_receiver(summary.mechanism, places)
            shown = f"{receiver}\n{number(outage_ms)}, {lost}" if receiver else NONE
            cells.append(Cell(shown, summary.mechanism, ""))
        rows.append(TableRow(f"{flow.ends.source} to {' '.join(flow.ends.receivers)}", cells))
    return Table("flow", [(summary.mechanism, "outage (ms), lost") for summary in comparison.summaries], rows)


def _worst(comparison: Comparison) -> Table | None:
    """Return a table of each mechanism's worst failure, and the pair that loses most to it; None if nothing is lost."""
    rows = []
    for each in comparison.summaries:
        pair = None if comparison.uncounted is not None else comparison.worst_pair(each.mechanism)
        if pair is not None:
            shown = (pair.failure.replace("_", " "), pair.name, str(pair.lost), number(pair.outage_ms))
            cells = [Cell(text, heading, unit) for text, (heading, unit) in zip(shown, WORST, strict=True)]
            rows.append(TableRow(each.mechanism, cells, _style(each.mechanism)))
    return Table("mechanism", WORST, rows) if rows else None


WORST = (("worst failure", ""), ("worst pair", ""), ("packets lost", "of the pair"), ("outage", "of the pair, ms"))


def _links(topology: Topology) -> str:
    """Return a sentence with the rate and the delay of links between switches if all have the same, else an empty text."""
    found = {_parameters(topology.links[topology.find_link(name)]) for name in link_names(topology)}
    return f"Links between switches: {found.pop()}." if len(found) == 1 else ""


def rule(comparison: Comparison) -> str:
    """Return text that explains the order of the mechanisms and the bold numbers."""
    noise = comparison.noise
    bold = (
        "Bold: the best number of its column, and those that cannot be told from it (TCP by no more than"
        f" {noise.goodput_percent:g} point{'' if noise.goodput_percent == 1 else 's'} of its goodput and three segments for each"
        f" failure, bytes carried by no more than {noise.bytes_ratio:g}), unless all are as good"
    )
    if comparison.unranked is not None:
        return f"In no order. {bold}."
    few = f" and {noise.packets:g}" if noise.packets else ""
    sure = (
        "and if that is so with 95 % confidence, seed by seed"
        if len(comparison.seeds) > 1
        else "and by more than is lost, or out, without a failure"
    )
    return (
        "The order: first comes who loses fewer packets to the failure. Who loses as many is ordered by the outage, and with equal"
        f" outages by the bytes carried. Packets count as different by more than {percent(noise.share)}{few}, mean outages by more"
        f" than {percent(noise.share)} and {noise.outage_ms:.3g} ms, {sure}. Where packets seem to differ, but the runs cannot"
        " confirm it, only an outage that differs in the same direction decides. Who does not differ has the same rank."
        f" {bold}."
    )


# ---- The network ----


def _network(comparison: Comparison) -> Mapping[str, Markup]:
    scenario, topology = comparison.scenario, comparison.scenario.topology
    many = len(scenario.failures) > 1
    used = comparison.row(comparison.baseline, NO_FAILURE, comparison.seeds[0])["links_used"]
    lost: dict[tuple[str, str], list[int]] = {}
    for case in comparison.cases:
        lost.setdefault((case.failure, case.mechanism), []).append(case.lost_to_failure)
    with_link: dict[int, list[str]] = {}
    with_switch: dict[str, list[str]] = {}
    for failure in scenario.failures:
        parts = failing(topology, failure)
        for number_of_link in parts.links:
            with_link.setdefault(number_of_link, []).append(failure)
        for switch in parts.switches:
            with_switch.setdefault(switch, []).append(failure)
    looks = []
    for name in link_names(topology):
        index = topology.find_link(name)
        link = topology.links[index]
        costs = _costs(comparison, lost, with_link[index]) if many and index in with_link else None
        fails = not many and index in with_link
        looks.append(LinkLook(name, link.a, link.b, used[index], fails, costs, _parameters(link)))
    switches = {name: _costs(comparison, lost, which) for name, which in with_switch.items()} if many else {}
    ends = {topology.attachment(host).switch for ends in comparison.flows for host in ends.hosts}
    first = comparison.baseline if many else None
    off = set() if many else {*with_switch}
    return for_both(partial(drawing.network, topology, looks, off, ends, first, switches, _hosts(topology)))


def _hosts(topology: Topology) -> dict[str, list[str]]:
    """Return the names of the hosts at each switch that has some."""
    found: dict[str, list[str]] = {}
    for name in topology.hosts:
        found.setdefault(topology.attachment(name).switch, []).append(name)
    return found


def _parameters(link: Link) -> str:
    """Return a link's rate and delay in words; those of the other direction are shown if they differ."""
    there = f"{_rate(link.rate_bps)}, {link.delay_ms:.3g} ms"
    back = link if link.reverse is None else reversed_link(link)
    other = f"{_rate(back.rate_bps)}, {back.delay_ms:.3g} ms"
    return there if there == other else f"{there} / {other}"


def _rate(rate_bps: float | None) -> str:
    """Return a rate with its unit, such as ``1.5 Gb/s``."""
    if rate_bps is None:
        return "any rate"
    for size, unit in ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if rate_bps >= size:
            return f"{rate_bps / size:.3g} {unit}"
    return f"{rate_bps:.3g} b/s"


def _costs(
    comparison: Comparison, lost: Mapping[tuple[str, str], Sequence[int]], failures: Sequence[str]
) -> dict[str, float]:
    """Return by mechanism the mean number of packets that the failures lose; 0 if no more are lost than undisturbed."""
    found = {
        m.name: statistics.fmean(n for failure in failures for n in lost[failure, m.name])
        for m in comparison.mechanisms
    }
    unsteady = {s.mechanism: s.lost_undisturbed for s in comparison.summaries}
    return {name: 0.0 if cost <= unsteady[name] else cost for name, cost in found.items()}


# ---- All failures ----


def _distributions(comparison: Comparison) -> list[tuple[str, Mapping[str, Markup]]]:
    """Return pictures of the longest outage in ms and the packets lost under each failure, each with its caption."""
    figures = []
    for title, unit, value, floor in (
        ("Longest outage", "ms", "outage_ms", 1.0),
        ("Packets lost", "packets", "lost_to_failure", 1.0),
    ):
        rows = []
        for summary in comparison.summaries:
            cases = [case for case in comparison.cases if case.mechanism == summary.mechanism and case.carried]
            values = [(float(getattr(case, value)), case.failure) for case in cases]
            rows.append(Dots(summary.mechanism, _style(summary.mechanism), values))
        figures.append((f"{title} ({unit})", for_both(partial(drawing.distribution, rows, unit, floor=floor))))
    return figures


# ---- State ----


def _core(comparison: Comparison) -> dict[str, object] | None:
    """Return the parts of the section on state in the core by number of groups; None if no mechanism tells its state.

    None also if no flow has several receivers.
    """
    if all(ends.group is None for ends in comparison.flows):
        return None
    topology = comparison.scenario.topology
    curves = {each.name: multicast.core_curve(topology, each) for each in comparison.mechanisms}
    lines = [
        Line(name, _style(name), [(point.groups, point.mean) for point in curve])
        for name, curve in curves.items()
        if curve
    ]
    if not lines:
        return None
    columns = [(str(count), "group" if count == 1 else "groups") for count in multicast.GROUP_COUNTS]
    rows = [
        TableRow(
            name,
            [Cell(f"{number(point.mean)}\n{point.most}", f"{point.groups} groups", "mean, most") for point in curve],
            _style(name),
        )
        for name, curve in curves.items()
        if curve
    ]
    return {"pictures": for_both(partial(drawing.growth, lines)), "table": Table("mechanism", columns, rows)}


# ---- Telemetry ----


def _telemetry(comparison: Comparison) -> Table:
    """Return a table of INT reports of ports around the failure that cost most: latency in microseconds, queue in packets."""
    failure = comparison.costliest_failures()[0]
    latency, queue = "\N{MICRO SIGN}s", "packets"
    columns = [
        column
        for interval in telemetry.INTERVALS
        for column in ((interval, f"latency, {latency}"), (NONE, f"queue, {queue}"))
    ]
    rows = []
    for each in comparison.mechanisms:
        if (reported := comparison.telemetry_of(each.name, failure)) is None:
            continue
        for line in telemetry.around(comparison.scenario.topology, failure, reported):
            cells = [
                Cell(shown, interval, unit)
                for interval in telemetry.INTERVALS
                for shown, unit in zip(telemetry.cells(line[interval]), (latency, queue), strict=True)
            ]
            port = f" {line['switch']} \N{RIGHTWARDS ARROW} {line['to']}"
            rows.append(TableRow(each.name, cells, _style(each.name), after=port))
    return Table("port", columns, rows)


# ---- Over time ----

ZOOM_S = 0.4
"""The part of the time after the failure that is shown enlarged, unless a controller takes longer."""


def _lanes(comparison: Comparison, failure: str) -> Lanes:
    """Draw for each mechanism the probes that arrive around the failure and the repair, and TCP's goodput over time."""
    scenario, times, seed = comparison.scenario, comparison.scenario.times, comparison.seeds[0]
    window = (times.failure_s, times.repair_s)
    zoom_s = min(times.down_s, max(ZOOM_S, 2e-3 * (times.detection_delay_ms + times.reaction_delay_ms)))
    spans = {
        "around the failure": (max(0.0, times.failure_s - zoom_s / 4), times.failure_s + zoom_s),
        "around the repair": (times.repair_s - zoom_s / 8, min(times.end_s, times.repair_s + zoom_s / 2)),
    }
    if times.after_s == 0:
        del spans["around the repair"]
    whole = (max(0.0, times.failure_s - 0.25 * times.down_s), times.end_s)
    rows = {m.name: comparison.row(m.name, failure, seed) for m in comparison.mechanisms}
    still = {m.name: comparison.row(m.name, NO_FAILURE, seed) for m in comparison.mechanisms}
    probes = _rebinned(scenario.bin_ms, _probe_factor(comparison), "delivered_curve")
    goodput = _rebinned(scenario.bin_ms, max(1, round(GOODPUT_BIN_MS / scenario.bin_ms)), "goodput_curve")
    peak = max((v for row in (*rows.values(), *still.values()) for v in goodput(row).values), default=0.0) or 1.0
    # The undisturbed curve has all flows, those too that begin or end at the switch that fails.
    all_counted = len(comparison.measured(comparison.bulk, failure)) == len(comparison.bulk)
    cases = {case.mechanism: case for case in comparison.cases if (case.failure, case.seed) == (failure, seed)}
    heads = {where: f"probes delivered (%), {where}" for where in spans} if comparison.probes else {}
    heads |= {"TCP": "TCP goodput (Mb/s)"} if comparison.bulk else {}
    lanes = []
    height, counted = 92.0, comparison.uncounted is None
    for summary in comparison.summaries:
        name = summary.mechanism
        what = "outage" if cases[name].lost_to_failure > 0 else "gap"
        notes = [f"{cases[name].lost_to_failure} lost", f"{what} {number(cases[name].outage_ms)} ms"] if counted else []
        pictures = []
        share = _percent(probes(rows[name]), probes(still[name]), _counted_share(comparison, failure, still[name]))
        for (where, span), width in zip(spans.items() if comparison.probes else (), (330.0, 220.0), strict=False):
            shown = Panel(share, None, window, span, 110.0, _style(name), "% of probes")
            pictures.append((heads[where], drawing.panel(shown, width, height, f"{name}: probes {where}")))
        if comparison.bulk:
            undisturbed = goodput(still[name]) if all_counted else None
            shown = Panel(goodput(rows[name]), undisturbed, window, whole, 1.08 * peak, _style(name), "Mb/s")
            pictures.append((heads["TCP"], drawing.panel(shown, 330.0, height, f"{name}: TCP goodput")))
        lanes.append(Lane(name, _style(name), pictures, notes))
    widths = " ".join(
        ["8.2rem", *(["3fr", "2fr"][: len(spans)] if comparison.probes else []), "3fr" * bool(comparison.bulk)]
    )
    dashed = " Dashed: the same mechanism without the failure." if comparison.bulk and all_counted else ""
    seeds = " The first of the seeds." if len(comparison.seeds) > 1 else ""
    shown_failure = failure.replace("_", " ")
    words = f"Shaded: {shown_failure} is down. Time in seconds. Probes: of those that arrive undisturbed meanwhile.{dashed}{seeds}"
    return Lanes(shown_failure, widths, list(heads.values()), lanes, words)


def _probe_factor(comparison: Comparison) -> int:
    """Return how many bins of the runs' curves are summed into one bin of the picture."""
    scenario = comparison.scenario
    sent = sum(comparison.row(comparison.baseline, NO_FAILURE, comparison.seeds[0])["sent"])
    per_bin = sent * scenario.bin_ms / 1000 / scenario.times.end_s
    return max(1, -(-PROBES_PER_BIN // max(1, int(per_bin))))


def _rebinned(bin_ms: int, factor: int, column: CurveColumn) -> Callable[[Row], Curve]:
    """Return a function that takes a curve out of a row and sums ``factor`` bins into one; goodput becomes Mb/s."""
    scale = 8e-6 / (bin_ms * factor / 1000) if column == "goodput_curve" else 1.0

    def curve(row: Row) -> Curve:
        values = row[column]
        whole = len(values) - len(values) % factor
        return Curve(
            0.0, bin_ms * factor / 1000, [scale * sum(values[i : i + factor]) for i in range(0, whole, factor)]
        )

    return curve


def _counted_share(comparison: Comparison, failure: str, still: Row) -> float:
    """Return the share of probes sent by flows whose ends ``failure`` does not cut off. ``still``: the undisturbed row."""
    sent = still["sent"]
    return sum(sent[i] for i in comparison.measured(comparison.probes, failure)) / (sum(sent) or 1)


NEAR = 1 / 5
"""Of the probes of a bin, as many at most count although they came in the bin before or after it."""


def _percent(curve: Curve, still: Curve, share: float) -> Curve:
    """Return ``curve`` in percent of what arrives in the same bin undisturbed, ``still``, of which ``share`` can arrive.

    Probes that a bin lacks and a neighbour has too many of have come a little earlier or later, over another way: they count where
    they are missed. What else is above 100 is no more than was sent, and not shown.
    """
    usual = sorted(still.values)[len(still.values) // 2]
    full = [share * min(value, usual) or 1 for value in still.values[: len(curve.values)]]
    values = list(curve.values)
    spare = [max(0.0, value - whole) for value, whole in zip(values, full, strict=True)]
    for i, whole in enumerate(full):
        for neighbour in (i - 1, i + 1):
            if 0 <= neighbour < len(values):
                moved = min(max(0.0, whole - values[i]), spare[neighbour], max(1.0, NEAR * whole))
                values[i] += moved
                spare[neighbour] -= moved
    return Curve(
        curve.start_s, curve.bin_s, [min(100.0, 100 * value / whole) for value, whole in zip(values, full, strict=True)]
    )


# ---- In words ----

DEFINITIONS = (
    (
        "packets lost",
        "probes (UDP, ping) that never arrived, all streams together, over the whole run, less those that the same mechanism loses"
        " with the same seed without the failure",
    ),
    (
        "longest outage",
        "the longest time between two arrivals of one stream, less the stream's interval; the worst stream counts. A gap is one in"
        " which no packet was lost: what was sent came over a longer way",
    ),
    (
        "TCP goodput lost",
        "what connections which always send delivered less than under the same mechanism undisturbed, from the failure to the end:"
        " the mean of what each lost of its own, and the bytes that all lost for each failure; over the connections that the"
        " failure affected under any mechanism and with any seed",
    ),
    (
        "TCP transfers",
        "from the start of a transfer of limited size to its last byte, over those affected by any failure; if one was not finished"
        " at the end, how many were",
    ),
    (
        "latency, jitter added",
        "against static (of multicast, ingress-replication) undisturbed, of probes sent while the failure lasts; jitter is"
        " the mean absolute difference of consecutive latencies; over the streams affected of which something arrives"
        " then under any mechanism, and not shown if of one of them nothing does",
    ),
    ("bytes carried", "by all links between switches in the undisturbed run"),
    (
        "state per switch",
        "table entries that the controller wrote, replicas of multicast groups, members of action profiles",
    ),
)

OF_MULTICAST = (
    (
        "bytes against the best trees",
        "the bytes carried, over those of each flow's packets, as UDP over Ethernet, once on each link of its best tree: the"
        " smaller one of the routers' shortest-path tree and Kou's approximation of a Steiner tree, by links between switches",
    ),
    (
        "core state",
        "entries and replicas that a switch holds for these flows where they neither begin nor end; a mean over the switches",
    ),
    (
        "promises kept",
        "before a failure, fast reroute's coverage and the two ways of 1+1 say of each receiver of a flow whether it loses nothing,"
        " is out for no longer than detection takes, or cannot be saved (without a promise). Kept: no packet is lost, or none but"
        " those of detection and of the wire of what fails, and none comes twice; over all failures and receivers",
    ),
    (
        "a join",
        "updates that the controller writes when a receiver joins a group that others have joined, and the switches that it writes"
        " to, a P4Runtime batch each: measured after the traffic, mean over up to 40 receivers; under ingress-replication the"
        " source alone is told",
    ),
)


SIMULATED = (
    "Every switch ran a P4 program; hosts, links and TCP were simulated. The same topology, traffic, failure and seeds give the"
    " same numbers."
)
LIVELY = (
    "Every switch ran a P4 program; links and switches were Holdfast's in real time, hosts were Linux network namespaces, and TCP"
    " was the kernel's. Numbers differ from run to run."
)


def _definitions(comparison: Comparison) -> list[tuple[str, str]]:
    """Return (term, meaning) for each quantity in the report."""
    groups = any(ends.group is not None for ends in comparison.flows)
    defined = [(term, words) for term, words in DEFINITIONS if not (comparison.is_multicast and term.startswith("TCP"))]
    return [*defined, *(OF_MULTICAST if groups else ())]
