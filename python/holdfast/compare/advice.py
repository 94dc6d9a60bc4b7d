"""What a comparison says, in words: one sentence of advice, and what a reader must know to take the numbers for what they are."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx

from holdfast.compare import traffic_file
from holdfast.compare.comparison import Comparison, Summary
from holdfast.compare.scenario import link_names
from holdfast.topology import Topology

CHEAP = 1.2
"""A mechanism that carries no more than so many times the bytes of plain routing is called cheap."""

HELPS = 0.9
"""One that loses more than this part of what ``static`` loses does not help."""


TCP_SUFFERS_PERCENT = 10.0
"""A mechanism that loses no packet, but more than that of TCP's goodput, is not praised without saying it."""


def advice(comparison: Comparison) -> str:
    """One plain sentence, or why there is none."""
    if comparison.unranked is not None:
        return f"{comparison.unranked}."
    static = _static(comparison)
    best = comparison.summaries[0]
    noise = comparison.noise
    if static.lost_mean <= noise.packets and static.outage_mean_ms <= static.outage_unsteady_ms + noise.outage_ms:
        if (static.goodput_lost_percent or 0.0) <= noise.goodput_percent and not static.transfers_unfinished:
            return "The failure costs this traffic nothing that is measured here."
        return (
            "No probe met the failure, but TCP did: give UDP or ping on the same way to have a ranking of packets lost."
        )
    little = not comparison.lost_less(best, static) or best.lost_mean > HELPS * static.lost_mean
    if little and _part_without_another_way(comparison) > 1 / 2:
        return "No mechanism helps much here: what fails is the only way for most of what is lost."
    if not comparison.lost_less(best, static):
        if comparison.back_sooner(best, static):
            return f"{best.mechanism} has a shorter outage than static, but what they lose cannot be told apart."
        return "No mechanism helps here as far as can be seen: none can be told from static by more than noise."
    if little:
        return f"No mechanism helps much here: {best.mechanism} loses {best.lost_mean / static.lost_mean:.0%} of what static loses."
    each = " per failure" if best.cases > 1 else ""
    text = f"{best.mechanism} loses {_loss(best, each)} at {best.bytes_ratio:.2f} times the bytes of plain routing"
    text += _equals(comparison, best)
    cheap = next((s for s in comparison.summaries if s.bytes_ratio <= CHEAP and s.mechanism != "static"), None)
    if best.bytes_ratio > CHEAP and cheap is not None:
        if comparison.lost_less(cheap, static) and cheap.lost_mean < HELPS * static.lost_mean:
            text += (
                f"; if that is too dear, {cheap.mechanism} loses {_loss(cheap, each)} at {cheap.bytes_ratio:.2f} times"
            )
            text += _equals(comparison, cheap)
        else:
            cheap = None
    for named in {each.mechanism: each for each in (best, cheap) if each is not None}.values():
        text += _but(comparison, named) if named is best or best.bytes_ratio > CHEAP else ""
    return text + "."


def _part_without_another_way(comparison: Comparison) -> float:
    """Of what static loses to failures, the part lost to those after which some switches cannot reach each other."""
    topology = comparison.scenario.topology
    cut: dict[str, bool] = {}
    for failure in comparison.scenario.failures:
        graph: nx.MultiGraph[str] = nx.MultiGraph()
        graph.add_edges_from(
            (link.a, link.b) for link in topology.links if {link.a, link.b} <= topology.switches.keys()
        )
        if failure in topology.switches:
            graph.remove_node(failure)
        else:
            link = topology.links[topology.find_link(failure)]
            graph.remove_edge(link.a, link.b)
        cut[failure] = not nx.is_connected(graph)
    lost = [(case.lost_to_failure, cut[case.failure]) for case in comparison.cases if case.mechanism == "static"]
    total = sum(count for count, _ in lost)
    return sum(count for count, alone in lost if alone) / total if total > 0 else 0.0


def _but(comparison: Comparison, named: Summary) -> str:
    """What packets do not say."""
    text = ""
    if (named.goodput_lost_percent or 0.0) > TCP_SUFFERS_PERCENT and named.lost_mean <= comparison.noise.packets:
        text += f"; {named.mechanism} loses {named.goodput_lost_percent:.0f} % of TCP's goodput all the same"
    if named.unprotected_pairs:
        text += f"; {named.mechanism} cannot protect {named.unprotected_pairs} of {len(comparison.pairs)} host pairs"
    return text


def _equals(comparison: Comparison, chosen: Summary) -> str:
    """Names those that differ from the chosen one by no more than noise, and are cheap if it is."""
    equal = [
        other.mechanism
        for other in comparison.summaries
        if other is not chosen
        and (other.bytes_ratio <= CHEAP) == (chosen.bytes_ratio <= CHEAP)
        and comparison.as_good(chosen, other)
    ]
    if not equal:
        return ""
    names = " and ".join([", ".join(equal[:-1]), equal[-1]] if len(equal) > 1 else equal)
    return f" ({names} {'is' if len(equal) == 1 else 'are'} as good)"


def _loss(summary: Summary, each: str) -> str:
    lost, outage = summary.lost_mean, summary.outage_worst_ms
    packets = f"{lost:.0f} packets{each}" if lost >= 10 else f"{lost:.2g} packets{each}"
    if lost <= 0:
        packets = "nothing" if summary.lost_undisturbed == 0 else "no more than undisturbed"
    if outage < 1:
        return packets
    at_worst = " at worst" if summary.cases > 1 else ""
    return f"{packets} (outage {outage:.0f} ms{at_worst})"


def notes(comparison: Comparison) -> list[str]:
    """Everything that qualifies the numbers, a sentence or two each."""
    scenario, times, summaries = comparison.scenario, comparison.scenario.times, comparison.summaries
    found = [
        f"Switches notice a failure after {times.detection_delay_ms:g} ms; what a controller does about it takes effect"
        f" {times.reaction_delay_ms:g} ms later."
    ]
    if scenario.live:
        late = comparison.late()
        again = (
            f" {traffic_file.counted(int(late['repeated']), 'run')} had to be made again, for that or for other disturbances."
            if late["repeated"]
            else ""
        )
        found.append(
            "Live: the kernel's TCP, UDP and ICMP in real time; no two runs are the same. The network's clock was late by"
            f" {late['mean_ms']:.2f} ms on average and {late['max_ms']:.0f} ms at most, senders of probes by"
            f" {late['senders_ms']:.0f} ms at most; outages are known to about {comparison.noise.outage_ms:.0f} ms.{again}"
        )
    if any(summary.unprotected_pairs for summary in summaries):
        counts = _grouped(summaries, lambda s: s.unprotected_pairs)
        found.append(
            f"Not protected on the whole path, for want of a second way: {counts} of {len(comparison.pairs)} host pairs."
            " Where there is none, they are as badly off as with static."
        )
    found += _notes_of_noise(comparison)
    if any(summary.transfers_unfinished for summary in summaries):
        counts = _grouped(summaries, lambda s: s.transfers_unfinished)
        found.append(
            f"TCP transfers that were not finished at the end: {counts} of {summaries[0].transfers} that a failure affected."
            " Where one is not, the number of those that were is shown, and no time: a mean of these would flatter."
        )
    if any(s.added_latency_ms is None for s in summaries) and any(s.added_latency_ms is not None for s in summaries):
        found.append(
            "No latency and jitter: of a stream that others carried meanwhile nothing arrived, so a mean would be of other streams."
        )
    if comparison.seeds_agree:
        found.append(
            f"All {len(comparison.seeds)} seeds gave the same: nothing here is random (no jitter, no loss, no Poisson stream)."
        )
    if not scenario.own_traffic:
        found.append(
            "TCP connections of the default traffic are limited by their window or their application; a longer way can cost goodput"
            " even where nothing is lost."
        )
    if len(scenario.failures) > 1:
        found += _notes_of_all(comparison)
    elif scenario.failures[0] in scenario.topology.switches:
        failure = scenario.failures[0]
        if gone := len(comparison.probes) - len(comparison.measured(comparison.probes, failure)):
            found.append(f"{gone} streams begin or end at {failure}; nothing can help them, and they are not counted.")
    return [*found, *scenario.notes]


def _notes_of_noise(comparison: Comparison) -> list[str]:
    """By what rule mechanisms differ, and what was lost without a failure."""
    scenario, summaries, noise = comparison.scenario, comparison.summaries, comparison.noise
    found = [f"Not reliable: {doubt}." for doubt in comparison.doubts if doubt not in (comparison.unranked or "")]
    if "as good" in advice(comparison):
        seeds = (
            " or the 95 % interval of their differences, seed by seed, has zero in it,"
            if len(comparison.seeds) > 1 and not comparison.seeds_agree
            else ""
        )
        found.append(
            f"As good: what they lose differs by no more than {noise.share:.0%} or {noise.packets:g} packets,{seeds} and so do"
            f" their outages, by {noise.share:.0%} or {noise.outage_ms:g} ms. The ranking then looks at the bytes carried."
        )
    if any(summary.lost_undisturbed for summary in summaries):
        counts = _grouped(summaries, lambda s: max(1, round(s.lost_undisturbed)) if s.lost_undisturbed else 0)
        found.append(
            f"Packets lost even without a failure (lossy or full links, or reordering): {counts}. They are subtracted, seed by"
            " seed, from what is lost with the failure."
            + (
                " With one seed, a difference of no more than two mechanisms lose in this way is none."
                if len(comparison.seeds) == 1 or comparison.seeds_agree
                else ""
            )
        )
    gains = [s.mechanism for s in summaries if (s.goodput_lost_percent or 0.0) < -noise.goodput_percent]
    if gains and comparison.unranked is None and not scenario.live:
        # Static has no way around.
        around = [name for name in gains if name != "static"]
        if around:
            found.append(
                f"TCP delivers more with the failure than without under {' and '.join(around)}: the way around is better for it"
                " than what failed."
            )
        if "static" in gains:
            found.append(
                "TCP delivers more with the failure than without under static: what failed had held others back."
            )
    fewer = [s.mechanism for s in summaries if s.mechanism != "static" and comparison.surely_gains(s)]
    if fewer and comparison.unranked is None:
        found.append(
            f"Fewer packets are lost with the failure than without under {' and '.join(fewer)}, with every confidence that the"
            " seeds give: the way around is better than what failed."
        )
    return found


def _notes_of_all(comparison: Comparison) -> list[str]:
    scenario = comparison.scenario
    count, what = len(scenario.failures), scenario.failed
    carried = _static(comparison).carried // len(comparison.seeds)
    found = [
        f"Under static {carried} of {count} {what} carry this traffic. Means are over all {count} failures, medians over those"
        f" of {what} that the mechanism itself uses."
    ]
    if what == "switches":
        cuts = sum(1 for _ in nx.articulation_points(nx.Graph(scenario.topology.graph)))
        found.append(
            "What begins or ends at the switch that fails is not counted: nothing can help it."
            + (f" Without {traffic_file.counted(cuts, 'switch')} the network falls apart." if cuts == 1 else "")
            + (f" Without any of {cuts} switches the network falls apart." if cuts > 1 else "")
        )
        return found
    bridges = _bridges(comparison.scenario.topology)
    if bridges:
        subject = "1 link is a bridge" if bridges == 1 else f"{bridges} links are bridges"
        found.append(f"{subject}: without one the network falls apart, and no mechanism can help.")
    return found


def _bridges(topology: Topology) -> int:
    """Links between switches without which some could not reach each other."""
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    for name in link_names(topology):
        link = topology.links[topology.find_link(name)]
        graph.add_edge(link.a, link.b)
    return sum(graph.number_of_edges(edge[0], edge[1]) == 1 for edge in nx.bridges(nx.Graph(graph)))


def _static(comparison: Comparison) -> Summary:
    return next(summary for summary in comparison.summaries if summary.mechanism == "static")


def _grouped(summaries: list[Summary], count: Callable[[Summary], int]) -> str:
    """``3 (a, b), 5 (c)``, without those that have none."""
    names: dict[int, list[str]] = {}
    for summary in summaries:
        if count(summary):
            names.setdefault(count(summary), []).append(summary.mechanism)
    return ", ".join(f"{number} ({', '.join(which)})" for number, which in sorted(names.items()))
