"""Compares a modelled host's TCP with the kernel's: the numbers of an observation, and the bounds of their differences.

It runs nothing (see :mod:`holdfast.live.tests.tcp`) and draws nothing (see ``benches/live_agreement.py``). docs/VALIDATION.md
explains the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import polars as pl

from holdfast.live.tests.tcp import FRAME_BYTES, FRAME_PAYLOAD_BYTES, Observation

SKIP_S = 5.0
"""Counted as the beginning, with its slow start, and left out of the steady state."""


@dataclass(frozen=True)
class Bound:
    """A difference is allowed up to the larger of the two."""

    relative: float
    absolute: float
    unit: str
    what: str

    def allows(self, live: float, simulated: float) -> bool:
        """Return True if two numbers differ by no more than ``absolute``, or ``relative`` times ``live`` if that is more."""
        return abs(live - simulated) <= max(self.absolute, self.relative * abs(live))

    def twice(self) -> Bound:
        """Return a bound twice as wide, for a single run instead of a mean."""
        return replace(self, relative=2 * self.relative, absolute=2 * self.absolute)


STEADY = {
    "goodput_mbps": Bound(0.02, 0.0, "Mb/s", "goodput"),
    "retransmitted_percent": Bound(0.35, 0.10, "%", "retransmitted"),
    "queueing_ms": Bound(0.12, 2.0, "ms", "queueing delay"),
    "window_segments": Bound(0.07, 0.0, "segments", "windows, sum of means"),
}
BEGINNING = {
    "first_retransmitted_segments": Bound(0.25, 15.0, "segments", "retransmitted in the first 5 s"),
    "peak_window_segments": Bound(0.15, 0.0, "segments", "first flow's largest window"),
}
BEGINNING_WITH_HYSTART = {
    "first_retransmitted_segments": Bound(0.25, 30.0, "segments", "retransmitted in the first 5 s"),
    "peak_window_segments": Bound(0.35, 0.0, "segments", "first flow's largest window"),
}
"""HyStart's train of acknowledgments breaks if one comes more than 2 ms after the last. Then slow start goes on for a round."""

CUT = {
    "stall_s": Bound(0.20, 0.15, "s", "nothing new arrives"),
    "recovery_s": Bound(0.25, 0.30, "s", "until 90 % of the rate before"),
    "cut_retransmitted_segments": Bound(0.30, 15.0, "segments", "retransmitted because of the cut"),
    "cut_timeouts": Bound(0.0, 1.0, "", "timeouts"),
}
BACK = {"back_retransmitted_segments": Bound(0.0, 45.0, "segments", "retransmitted because of the way back")}
"""On the way back to the repaired link: its packets overtake those that wait on the other way, and these look lost."""


def rise(frame: pl.DataFrame, column: str, start_s: float, end_s: float) -> float:
    """Return how much a counter rises between two times in seconds, summed over all flows."""
    total = 0.0
    for _, rows in frame.group_by("flow") if "flow" in frame.columns else [((), frame)]:
        before = rows.filter(pl.col("time_s") <= start_s)[column]
        until = rows.filter(pl.col("time_s") <= end_s)[column]
        total += (until[-1] if len(until) else 0) - (before[-1] if len(before) else 0)
    return total


def steady(seen: Observation) -> dict[str, float]:
    """Return the measured quantities of the steady state by name, such as throughput and mean window, without the first seconds."""
    end_s = seen.scenario.duration_s
    window = pl.col("time_s").is_between(SKIP_S, end_s)
    link = seen.bottleneck.filter(window)
    seconds = end_s - SKIP_S
    packets_per_s = rise(seen.bottleneck, "delivered", SKIP_S, end_s) / seconds
    means = seen.sent.filter(window).group_by("flow").agg(pl.col("cwnd_bytes").mean())
    # Little's law: packets on the link, by those that leave it; without the way itself and a packet's own transmission.
    own_ms = seen.scenario.rtt_ms / 4 + FRAME_BYTES * 8000 / seen.scenario.rate_bps
    return {
        "goodput_mbps": rise(seen.received, "bytes_received", SKIP_S, end_s) * 8e-6 / seconds,
        "retransmitted_percent": 100
        * rise(seen.sent, "bytes_retransmitted", SKIP_S, end_s)
        / rise(seen.sent, "bytes_sent", SKIP_S, end_s),
        "queueing_ms": 1000 * float(link["in_transit"].mean() or 0) / packets_per_s - own_ms,  # type: ignore[arg-type]
        "window_segments": float(means["cwnd_bytes"].sum()) / FRAME_PAYLOAD_BYTES,
    }


def beginning(seen: Observation) -> dict[str, float]:
    """Return the measured quantities of the first slow start by name: retransmissions and the peak of the window."""
    first = seen.sent.filter((pl.col("flow") == 0) & (pl.col("time_s") <= SKIP_S))
    return {
        "first_retransmitted_segments": rise(seen.sent, "bytes_retransmitted", 0, SKIP_S) / FRAME_PAYLOAD_BYTES,
        "peak_window_segments": float(first["cwnd_bytes"].max() or 0) / FRAME_PAYLOAD_BYTES,  # type: ignore[arg-type]
    }


def after_cut(seen: Observation) -> dict[str, float]:
    """Return the effects of a link's cut by name.

    The recovery counts from the cut if there is another path, else from the repair.
    """
    scenario = seen.scenario
    assert scenario.failure_s is not None
    assert scenario.repair_s is not None
    received = seen.received.filter(pl.col("flow") == 0)
    times, counts = received["time_s"].to_list(), received["bytes_received"].to_list()
    stall = last = 0.0
    for time_s, before, count in zip(times[1:], counts, counts[1:], strict=False):
        if count > before:
            if time_s > scenario.failure_s:
                stall = max(stall, time_s - max(last, scenario.failure_s - 1))
            last = time_s
    usual = rise(received, "bytes_received", 4, scenario.failure_s) / (scenario.failure_s - 4)
    event_s = scenario.failure_s if scenario.reroute else scenario.repair_s
    recovery = math.inf
    for step in range(int((scenario.duration_s - 0.5 - event_s) * 50)):
        time_s = event_s + step * 0.02
        if rise(received, "bytes_received", time_s, time_s + 0.5) / 0.5 >= 0.9 * usual:
            recovery = time_s - event_s
            break
    noticed_s = scenario.repair_s + (0 if scenario.reroute else 2)
    again = rise(seen.sent, "bytes_retransmitted", scenario.failure_s, noticed_s)
    back = rise(seen.sent, "bytes_retransmitted", scenario.repair_s, scenario.repair_s + 1) if scenario.reroute else 0.0
    return {
        "stall_s": stall,
        "recovery_s": recovery,
        "cut_retransmitted_segments": again / FRAME_PAYLOAD_BYTES,
        "cut_timeouts": rise(seen.sent, "timeouts", scenario.failure_s, scenario.duration_s),
        "back_retransmitted_segments": back / FRAME_PAYLOAD_BYTES,
    }


def disturbance(seen: Observation) -> str:
    """Return why a live run must be discarded; empty if it need not be.

    It must be if the wall clock's events were late by more than a hundredth of the round trip in the mean or by more than half of
    it once, or if more than one in a hundred of a host's samples came more than an interval late.
    """
    rtt_ms = seen.scenario.rtt_ms
    if seen.mean_lateness_ms > rtt_ms / 100:
        return f"events were {seen.mean_lateness_ms:.2f} ms late in the mean"
    if seen.max_lateness_ms > rtt_ms / 2:
        return f"an event was {seen.max_lateness_ms:.0f} ms late"
    if seen.late_samples > 0.01:
        return f"{100 * seen.late_samples:.1f} % of the samples were late"
    return ""
