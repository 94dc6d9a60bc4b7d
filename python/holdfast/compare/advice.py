"""A comparison in words: one sentence of advice, and the reservations that a reader of the numbers must know."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import networkx as nx

from holdfast.compare import telemetry, traffic_file
from holdfast.compare.comparison import Comparison
from holdfast.compare.coverage import between_switches, bridges, pairs_of, separated, without
from holdfast.compare.failures import cut_off
from holdfast.compare.figures import Summary
from holdfast.compare.formats import listed, packets, percent
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.scenario import Scenario
from holdfast.wording import counted

CHEAP = 1.2
"""A mechanism that carries no more than so many times the bytes of plain routing is called cheap."""

HELPS = 0.9
"""One that loses more than this part of what ``static`` loses does not help."""

AS_FEW = "as few packets"

TCP_SUFFERS_PERCENT = 10.0
"""A mechanism that loses more than that of TCP's goodput is not praised for its packets without saying it."""


def advice(comparison: Comparison) -> str:
    """Return one sentence that advises for or against a mechanism, or says why there is no ranking."""
    if comparison.unranked is not None:
        return f"{comparison.unranked}."
    static = comparison.plain(comparison.summaries)
    # A mechanism that only seems to lose less than static is no headline where another does for sure.
    sure = (one for one in comparison.summaries if comparison.lost_less(one, static))
    best = next(sure, comparison.summaries[0])
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
    if comparison.seems_less(best, static) and _random(comparison):
        return (
            f"{best.mechanism} lost {packets(best.lost_mean)} on average and {static.mechanism} {static.lost_mean:.0f}, but"
            f" {_seeds_cannot(comparison)} that it loses less; use --seeds {_more_seeds(comparison)}."
        )
    if not comparison.lost_less(best, static):
        if comparison.back_sooner(best, static):
            return f"{best.mechanism} has a shorter outage than {static.mechanism}, but what they lose cannot be told apart."
        return f"No mechanism helps here as far as can be seen: none can be told from {static.mechanism} by more than noise."
    if little:
        part = percent(best.lost_mean / static.lost_mean)
        return f"No mechanism helps much here: {best.mechanism} loses {part} of what {static.mechanism} loses."
    cheap = _cheap(comparison, static) if best.bytes_ratio > CHEAP else None
    named = [best] if cheap is None else [best, cheap]
    other = cheap or static
    outages = comparison.back_sooner(best, other) or comparison.back_sooner(other, best)
    text = (
        f"{best.mechanism} loses {_loss(comparison, best, outages=outages)} at {best.bytes_ratio:.2f} times the bytes of"
        f" {comparison.plainly}{_equals(comparison, best)}"
    )
    if cheap is not None:
        text += (
            f"; if that is too dear, {cheap.mechanism} loses {_loss(comparison, cheap, outages=outages)} at"
            f" {cheap.bytes_ratio:.2f} times{_equals(comparison, cheap)}"
        )
    return f"{text}{_unconfirmed(comparison, best)}{_tcp(comparison, named)}{_unprotected(comparison, named)}."


def _cheap(comparison: Comparison, static: Summary) -> Summary | None:
    """Return the best-ranked mechanism that carries few bytes and loses clearly fewer packets than static routing, or None."""
    helpful = (
        one
        for one in comparison.summaries
        if one.bytes_ratio <= CHEAP and comparison.lost_less(one, static) and one.lost_mean < HELPS * static.lost_mean
    )
    return next(helpful, None)


def _random(comparison: Comparison) -> bool:
    """Return True if the comparison has several seeds and their results are not all equal."""
    return len(comparison.seeds) > 1 and not comparison.seeds_agree


def _seeds_cannot(comparison: Comparison) -> str:
    return f"{len(comparison.seeds)} {'runs' if comparison.scenario.live else 'seeds'} cannot confirm"


def _more_seeds(comparison: Comparison) -> int:
    return max(5, 2 * len(comparison.seeds))


def _unconfirmed(comparison: Comparison, best: Summary) -> str:
    """Return a clause on mechanisms whose mean loss differs from that of ``best`` though the seeds do not confirm it.

    It is empty if the results do not depend on the seed.
    """
    if not _random(comparison):
        return ""
    text = ""
    if more := [s for s in comparison.summaries if comparison.seems_less(best, s) and s.rank == best.rank]:
        shown = [f"{s.mechanism} ({s.lost_mean:.0f}{'' if i else ' on average'})" for i, s in enumerate(more)]
        text += f"; {_seeds_cannot(comparison)} that {best.mechanism} loses less than {listed(shown)}"
    for one in comparison.summaries:
        if comparison.seems_less(one, best):
            text += f"; {one.mechanism} lost {packets(one.lost_mean)} on average, but {_seeds_cannot(comparison)} that this is less"
    return f"{text}; use --seeds {_more_seeds(comparison)}" if text else ""


def _part_without_another_way(comparison: Comparison) -> float:
    """Return the share of static routing's lost packets that is due to failures which cut the network into parts."""
    topology = comparison.scenario.topology
    cut: dict[str, bool] = {}
    for failure in comparison.scenario.failures:
        cut[failure] = not nx.is_connected(without(topology, failure))
    lost = [
        (case.lost_to_failure, cut[case.failure]) for case in comparison.cases if case.mechanism == comparison.baseline
    ]
    total = sum(count for count, _ in lost)
    return sum(count for count, alone in lost if alone) / total if total > 0 else 0.0


def _tcp(comparison: Comparison, named: Sequence[Summary]) -> str:
    """Return a clause on the goodput that TCP loses under the mechanisms ``named``; empty if none of them loses much.

    It says "all the same" of a mechanism that loses no packet.
    """
    shown = [(one, each) for one in named if (each := one.goodput_lost_percent) is not None]
    if not any(each > TCP_SUFFERS_PERCENT for _, each in shown):
        return ""
    suffers = [one for one, each in shown if each > TCP_SUFFERS_PERCENT and one.lost_mean <= comparison.noise.packets]
    if len(shown) == 1:
        one, each = shown[0]
        text = f"; {one.mechanism} loses {each:.0f} % of TCP's goodput{' all the same' if suffers else ''}"
    else:
        parts = [
            f"{one.mechanism} {'' if i else 'loses '}{each:.0f} %{' all the same,' if one in suffers else ''}"
            for i, (one, each) in enumerate(shown)
        ]
        text = f"; of TCP's goodput {' and '.join(parts).removesuffix(',')}"
    if any(_slowed_by_a_window(comparison, one) for one in suffers):
        text += " (connections are limited by their windows, and the path is longer)"
    return text


def _slowed_by_a_window(comparison: Comparison, one: Summary) -> bool:
    """Return True if TCP loses goodput under ``one`` because windows limit connections and paths are longer meanwhile.

    That can be so only with the default traffic.
    """
    scenario = comparison.scenario
    if scenario.own_traffic or any(entry.rate_bps is not None for entry in scenario.traffic.tcp):
        return False
    usual = [
        ms
        for ms in comparison.row(comparison.baseline, NO_FAILURE, comparison.seeds[0])["latency_ms"]
        if ms is not None
    ]
    longer_ms = one.added_latency_ms or 0.0
    return bool(usual) and longer_ms > comparison.noise.share * statistics.fmean(usual)


def _unprotected(comparison: Comparison, named: Sequence[Summary]) -> str:
    return "".join(
        f"; {one.mechanism} cannot protect {one.unprotected_flows} of {_all_flows(comparison)}"
        for one in named
        if one.unprotected_flows
    )


def _all_flows(comparison: Comparison) -> str:
    return counted(len(comparison.flows), traffic_file.kind_of(comparison.flows))


def _equals(comparison: Comparison, chosen: Summary) -> str:
    """Return a clause with the mechanisms of the same rank as ``chosen`` that the tests do not distinguish from it; empty if none.

    The tests are of packets, outage and TCP's loss.
    """
    tests = (comparison.lost_less, comparison.back_sooner, comparison.delivers_more, comparison.seems_less)
    equal = [
        other.mechanism
        for other in comparison.summaries
        if other is not chosen
        and other.rank == chosen.rank
        and not any(less(chosen, other) or less(other, chosen) for less in tests)
    ]
    if not equal:
        return ""
    return f" ({listed(equal)} lose{'s' if len(equal) == 1 else ''} {AS_FEW})"


def _loss(comparison: Comparison, one: Summary, *, outages: bool) -> str:
    """Return in words the packets that a mechanism loses; with ``outages``, its outage too.

    The outage without a failure is added if it matters.
    """
    cases = [case for case in comparison.cases if case.mechanism == one.mechanism]
    many = len(comparison.scenario.failures) > 1
    lost = packets(one.lost_mean)
    if many:
        lost += " per failure"
    elif _random(comparison):
        lost += f" on average over {len(comparison.seeds)} {'runs' if comparison.scenario.live else 'seeds'}"
    what = "outage"
    if one.lost_mean <= 0:
        lost = "nothing" if one.lost_undisturbed == 0 else "no more than undisturbed"
        what = "gap"
    if many:
        worst = max(cases, key=lambda case: case.outage_ms)
        outage_ms, still_ms = worst.outage_ms, worst.outage_undisturbed_ms
    else:
        outage_ms, still_ms = one.outage_mean_ms, statistics.fmean(case.outage_undisturbed_ms for case in cases)
    if not outages or outage_ms < 1:
        return lost
    noise = comparison.noise
    # A gap of two intervals of the probes is what jitter alone makes.
    material = still_ms > max(2 * noise.outage_ms, noise.share * outage_ms)
    still = f", and {still_ms:.0f} ms without a failure" if material else ""
    return f"{lost} ({what} {outage_ms:.0f} ms{' at worst' if many else ''}{still})"


def notes(comparison: Comparison) -> list[str]:
    """Return the reservations with which the numbers must be read, a sentence or two each."""
    scenario, times, summaries = comparison.scenario, comparison.scenario.times, comparison.summaries
    found = [
        f"Switches notice a failure after {times.detection_delay_ms:g} ms; what a controller does about it takes effect"
        f" {times.reaction_delay_ms:g} ms later."
    ]
    if scenario.live:
        late = comparison.late()
        again = (
            f" {counted(int(late['repeated']), 'run')} had to be made again, for that or for other disturbances."
            if late["repeated"]
            else ""
        )
        found.append(
            "Live: the kernel's TCP, UDP and ICMP in real time; no two runs are the same. The network's clock was late by"
            f" {late['mean_ms']:.2f} ms on average and {late['max_ms']:.0f} ms at most, senders of probes by"
            f" {late['senders_ms']:.0f} ms at most; outages are known to about {comparison.noise.outage_ms:.0f} ms.{again}"
        )
    if several := sum(len(ends.receivers) > 1 for ends in comparison.flows):
        names = listed([each.name for each in comparison.mechanisms if each.multicast])
        copies = (
            f"Under {names} the network copies packets, else the source." if names else "The source copies packets."
        )
        found.append(
            f"{counted(several, 'flow')} with several receivers: a packet counts at each of them, a flow's loss is the"
            f" sum over its receivers, and its outage that of the worst. {copies}"
        )
    if scenario.telemetry:
        found.append(_note_of_telemetry(comparison))
    found += _notes_of_promises(comparison)
    if any(summary.unprotected_flows for summary in summaries):
        counts = _grouped(summaries, lambda s: s.unprotected_flows)
        found.append(
            f"Not protected on the whole path, for want of a second way: {counts} of {len(comparison.flows)}"
            f" {traffic_file.kind_of(comparison.flows)}s."
            f" Where there is none, they wait for the repair, as with {comparison.baseline}."
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
            f"All {len(comparison.seeds)} seeds gave the same: nothing here is random (no jitter, no loss, no Poisson stream), so"
            f" further seeds add nothing. {_resolution(scenario)}"
        )
    found += reasons(comparison)
    if len(scenario.failures) > 1:
        found += _notes_of_all(comparison)
    elif gone := len(comparison.probes) - len(comparison.measured(comparison.probes, scenario.failures[0])):
        streams = "1 stream begins or ends" if gone == 1 else f"{gone} streams begin or end"
        nobody = "it, and it is" if gone == 1 else "them, and they are"
        found.append(f"{streams} at {scenario.failures[0]}; nothing can help {nobody} not counted.")
    return [*found, *scenario.notes]


def reasons(comparison: Comparison) -> list[str]:
    """Return sentences that say why a mechanism loses what it seems not to have to: packets that it protects, and TCP's goodput."""
    by_name = {each.name: each for each in comparison.mechanisms}
    found = [
        f"{each.mechanism} loses {packets(each.lost_mean)}: {by_name[each.mechanism].loses}."
        for each in comparison.summaries
        if by_name[each.mechanism].loses and each.lost_mean > 0 and comparison.uncounted is None
    ]
    noise, scenario = comparison.noise, comparison.scenario
    slowed = [
        f"{each.mechanism} {each.goodput_lost_percent:.3g} %"
        for each in comparison.summaries
        if each.lost_mean <= noise.packets and (each.goodput_lost_percent or 0.0) > noise.goodput_percent
    ]
    if slowed and not scenario.own_traffic and scenario.traffic.tcp:
        found.append(
            f"TCP loses goodput where no packet of a stream is lost ({', '.join(slowed)}): connections of the default traffic are"
            " limited by their window or their application, so on the longer way around, and until a connection has its rate"
            " again, they deliver less."
        )
    elif not scenario.own_traffic and scenario.traffic.tcp:
        found.append(
            "TCP connections of the default traffic are limited by their window or their application; a longer way can cost goodput"
            " even where nothing is lost."
        )
    return found


def _note_of_telemetry(comparison: Comparison) -> str:
    rows = [row for _, row in comparison.telemetry_rows()]
    reports, lost = (sum(row[name] for row in rows) for name in ("reports", "reports_lost"))
    cut = sum(row["mtu_exceeded"] + row["hops_exceeded"] for row in rows)
    short = f" {cut:,} packets had no room for all of their hops." if cut else ""
    return (
        f"INT: {telemetry.HEADER_BYTES} bytes and {telemetry.HOP_BYTES} per hop in TCP and UDP packets, and a report for each, all"
        f" of them in these figures; switches run telemetry.p4. The collector got {reports:,} reports, and missed {lost:,}.{short}"
    )


def _notes_of_promises(comparison: Comparison) -> list[str]:
    """Return a sentence for each mechanism that promised outages: whether it kept its promises, and where not."""
    found = []
    for each in comparison.summaries:
        if each.promises is None:
            continue
        broken = [promise for promise in comparison.promises[each.mechanism] if not promise.is_kept]
        every = each.promises + (each.promises_none or 0)
        said = (
            f"{each.mechanism} protects {each.promises} of {every} receivers, over all failures; promises held in"
            f" {each.promises_kept} of {each.promises}"
        )
        if not broken:
            found.append(f"{said}: none of these lost more than what is on the wire and detection make.")
            continue
        worst = max(broken, key=lambda promise: promise.lost - promise.allowed)
        found.append(
            f"{said}: the others lost more than what is on the wire and detection make, or got packets twice; at worst"
            f" {comparison.probes[worst.place].receiver} {worst.lost} instead of {worst.allowed} when {worst.failure} fails."
        )
    return found


def _resolution(scenario: Scenario) -> str:
    """Return a sentence on the interval of probes in ms, to which outages are known; empty if there are no probes."""
    intervals = [1000 / entry.packets_per_s for entry in scenario.traffic.udp]
    intervals += [entry.interval_ms for entry in scenario.traffic.ping]
    if not intervals:
        return ""
    low, high = (f"{each(intervals):.3g}" for each in (min, max))
    return f"Outages are known to the interval of the probes, {low if low == high else f'{low} to {high}'} ms."


def _notes_of_noise(comparison: Comparison) -> list[str]:
    """Return sentences on the differences that are taken for noise, and on packets lost without a failure."""
    scenario, summaries, noise = comparison.scenario, comparison.summaries, comparison.noise
    found = [f"Not reliable: {doubt}." for doubt in comparison.doubts if doubt not in (comparison.unranked or "")]
    if AS_FEW in advice(comparison):
        seeds = (
            " or the 95 % interval of their differences, seed by seed, has zero in it," if _random(comparison) else ""
        )
        few = f" or {packets(noise.packets)}," if noise.packets else ","
        found.append(
            f"As few packets: what they lose differs by no more than {percent(noise.share)}{few}{seeds} and so do their outages,"
            f" by {percent(noise.share)} or {noise.outage_ms:.3g} ms, and TCP's loss, by {noise.goodput_percent:g} % of its goodput"
            " or three segments. Then the ranking looks at the bytes carried; what has the fewest table entries is named first."
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
        around = [name for name in gains if name != comparison.baseline]
        if around:
            found.append(
                f"TCP delivers more with the failure than without under {' and '.join(around)}: the way around is better for it"
                " than what failed."
            )
        if comparison.baseline in gains:
            found.append(
                f"TCP delivers more with the failure than without under {comparison.baseline}: what failed had held others back."
            )
    fewer = [s.mechanism for s in summaries if s.mechanism != comparison.baseline and comparison.surely_gains(s)]
    if fewer and comparison.unranked is None:
        found.append(
            f"Fewer packets are lost with the failure than without under {' and '.join(fewer)}, with every confidence that the"
            " seeds give: the way around is better than what failed."
        )
    return found


def _notes_of_all(comparison: Comparison) -> list[str]:
    scenario = comparison.scenario
    count, what = len(scenario.failures), scenario.failed
    carried = comparison.plain(comparison.summaries).carried // len(comparison.seeds)
    carry = "carries" if carried == 1 else "carry"
    found = [
        f"Under {comparison.baseline} {carried} of {count} {what} {carry} this traffic. Means are over all {count} failures,"
        f" medians over those of {what} that the mechanism itself uses."
    ]
    if what == "switches":
        cuts = sum(1 for _ in nx.articulation_points(scenario.topology.graph))
        found.append(
            "Traffic that begins or ends at the switch that fails is not counted: no mechanism can help it."
            + (f" Without {counted(cuts, 'switch')} the network falls apart." if cuts == 1 else "")
            + (f" Without any of {cuts} switches the network falls apart." if cuts > 1 else "")
        )
        return found
    if what != "links":
        if any(cut_off(scenario.topology, failure) for failure in scenario.failures):
            found.append("Traffic that begins or ends at a switch that fails is not counted: no mechanism can help it.")
        pairs = pairs_of(scenario)
        if parted := sum(map(bool, separated(scenario.topology, pairs, scenario.failures).values())):
            leave = "leaves" if parted == 1 else "leave"
            found.append(f"{parted} of {count} {what} {leave} some of this traffic no way, and no mechanism can help.")
        return found
    if count := len(bridges(between_switches(scenario.topology))):
        subject = "1 link is a bridge" if count == 1 else f"{count} links are bridges"
        found.append(f"{subject}: without one the network falls apart, and no mechanism can help.")
    return found


def _grouped(summaries: list[Summary], count: Callable[[Summary], int]) -> str:
    """Return mechanisms grouped by ``count``, as in ``3 (a, b), 5 (c)``; those with a count of 0 are left out."""
    names: dict[int, list[str]] = {}
    for summary in summaries:
        if count(summary):
            names.setdefault(count(summary), []).append(summary.mechanism)
    return ", ".join(f"{number} ({', '.join(which)})" for number, which in sorted(names.items()))
