"""Doubts about a comparison: runs from which nothing follows, and the reasons, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.compare.failures import link_names
from holdfast.compare.figures import Summary
from holdfast.compare.formats import packets
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.ranking import doubts_of_losses

if TYPE_CHECKING:
    from holdfast.compare.comparison import Comparison

GAIN_PERCENT = 10.0
"""More goodput with the failure than without, by so much of it, is no effect of the failure."""

SAME_START = 0.7
"""Before the failure a run is the undisturbed one again; live, its goodput there is no less than such a part of that, nor the
other way round."""

LOST_SHARE = 0.001
"""Live, undisturbed, so much of all probes may be lost."""

LATE_MS = 25.0
"""Live, a run in which the network's clock or a sender of probes was later than that measured this machine."""


def doubts(comparison: Comparison, found: Sequence[Summary]) -> list[str]:
    """Return the reasons why the runs prove nothing, a sentence each; empty if they prove something."""
    why = []
    if comparison.scenario.live:
        why += _doubts_of_live(comparison)
    why += doubts_of_losses(comparison, found)
    gains = [s for s in found if s.goodput_lost_percent is not None and s.goodput_lost_percent < -GAIN_PERCENT]
    # Simulated, nothing else runs beside it, and more is the merit of a better way around.
    if gains and comparison.scenario.live and comparison.plain(found).carried:
        gain = min(gains, key=lambda s: s.goodput_lost_percent or 0.0)
        why.append(
            f"TCP delivered {-(gain.goodput_lost_percent or 0):.0f} % more with the failure than without under"
            f" {gain.mechanism}: the undisturbed run was disturbed by something else"
        )
    return why


def unranked(comparison: Comparison, found: Sequence[Summary]) -> str | None:
    """Return why there is no ranking, or None if there is one.

    Reasons: no packet was counted, no traffic uses the elements that fail, or there is a doubt.
    """
    if comparison.uncounted is not None:
        return f"No ranking: {comparison.uncounted}"
    if not comparison.plain(found).carried:
        count = len(comparison.scenario.failures)
        name = (
            f"{comparison.scenario.failed} {comparison.scenario.failures[0]}"
            if count == 1
            else f"none of {count} {comparison.scenario.failed}"
        )
        used = [name for name in link_names(comparison.scenario.topology) if _uses(comparison, name)]
        others = f" ({', '.join(used[:3])}{' or others' if len(used) > 3 else ''})" if used else ""
        return (
            f"No ranking: {name} carries {'none' if count == 1 else 'any'} of this traffic under {comparison.plainly}, so this says"
            f" nothing of what mechanisms do for it; choose another{others}"
        )
    return f"Unreliable, so there is neither ranking nor advice: {comparison.doubts[0]}" if comparison.doubts else None


def _uses(comparison: Comparison, link: str) -> bool:
    """Return True if traffic under static routing uses ``link`` when nothing fails."""
    index = comparison.scenario.topology.find_link(link)
    return bool(comparison.row(comparison.baseline, NO_FAILURE, comparison.seeds[0])["links_used"][index])


def _doubts_of_live(comparison: Comparison) -> list[str]:
    late = comparison.late()
    why = []
    if max(late["max_ms"], late["senders_ms"]) > LATE_MS:
        why.append(
            f"this machine held up the runs, the network's clock by up to {late['max_ms']:.0f} ms and senders of probes by"
            f" up to {late['senders_ms']:.0f} ms"
        )
    for (mechanism, seed), reason in disturbed(comparison).items():
        why.append(f"{mechanism}{f' (run {seed})' if len(comparison.seeds) > 1 else ''}: {reason}")
        break
    return why


def disturbed(comparison: Comparison) -> dict[tuple[str, int], str]:
    """Return, by mechanism and seed of a live comparison, why its run without a failure is no basis for a comparison.

    Mechanisms and seeds whose run is sound are left out.
    """
    found: dict[tuple[str, int], str] = {}
    for mechanism in comparison.mechanisms:
        for seed in comparison.seeds:
            if (why := _why_disturbed(comparison, mechanism.name, seed)) is not None:
                found[mechanism.name, seed] = why
    return found


def _why_disturbed(comparison: Comparison, mechanism: str, seed: int) -> str | None:
    still = comparison.row(mechanism, NO_FAILURE, seed)
    lost = sum(still["lost"])
    if not _lossy(comparison) and lost > max(comparison.noise.packets, LOST_SHARE * sum(still["sent"])):
        return f"{packets(lost)} {'was' if lost == 1 else 'were'} lost without a failure"
    for failure in comparison.scenario.failures:
        if not comparison.is_carried(mechanism, failure, seed):
            continue
        row = comparison.row(mechanism, failure, seed)
        bulk = comparison.measured(comparison.bulk, failure)
        before, now = (sum(each["goodput_bytes"][i] for i in bulk) for each in (still, row))
        if now > (1 + GAIN_PERCENT / 100) * before:
            return (
                f"TCP delivered {100 * (now / before - 1) if before else 100:.0f} % more with the failure than without"
            )
        if len(bulk) == len(comparison.bulk):
            first = round(comparison.scenario.times.failure_s * 1000) // comparison.scenario.bin_ms
            start, again = (sum(each["goodput_curve"][:first]) for each in (still, row))
            if min(start, again) < SAME_START * max(start, again):
                return (
                    "TCP's goodput differed by a factor of"
                    f" {max(start, again) / max(1, min(start, again)):.2g} before anything had failed"
                )
    return None


def _lossy(comparison: Comparison) -> bool:
    """Return True if some link of the topology has a model of random loss."""
    links = comparison.scenario.topology.links
    return any(link.loses or (link.reverse is not None and link.reverse.loses) for link in links)
