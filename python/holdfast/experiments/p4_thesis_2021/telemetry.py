"""Figures 4.6 to 4.11: a flow with the thesis's INT and without, over the transmitted bandwidth; then with other formats of INT.

All come from the same runs (:mod:`.telemetry_runs`). The service rate is fitted to one number, the bandwidth from which on five
switches with INT lose packets. The rest is judged: with how many switches, with how many flows, what becomes of latency and jitter.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from holdfast.experiments import Finding, Part, PublishedTable, Setting
from holdfast.experiments.p4_thesis_2021 import drawing, published, telemetry_runs
from holdfast.experiments.rows import exact, row, summaries

CONGESTED_PERCENT = 2.0
"""The percentage of packets lost up to which the thesis says that there was no congestion yet."""

GROWN = 2.0
"""Latency that is so many times that at the lowest rate has grown."""

QUANTITIES = {
    "bandwidth_mbps": "received bandwidth (Mb/s)",
    "latency_ms": "round-trip time of ping (ms)",
    "lost_percent": "lost packets (%)",
    "jitter_ms": "jitter (RFC 3550, ms)",
}

BY = ["switches", "flows", "mode", "rate_mbps"]


def _runs(setting: Setting) -> pl.DataFrame:
    return setting.sweep("telemetry", f"{telemetry_runs.__name__}:measure", telemetry_runs.POINTS)


def numbers(frame: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return a row per number of switches, number of flows, format of INT and rate in Mb/s: the mean of the quantity ``value``."""
    return summaries(frame, BY, [value])


def onsets(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per number of switches and flows: the lowest rate in Mb/s at which the network with INT is congested.

    It is congested if more than :data:`CONGESTED_PERCENT` of the packets are lost, or with two flows if latency has grown. The
    interval is the range of single runs; a run that is never congested counts as a step beyond the last rate.
    """
    rows = []
    for key, group in frame.filter(mode="thesis").group_by(["switches", "flows"], maintain_order=True):
        switches, flows = key
        measured = []
        for _, run in group.sort("rate_mbps").group_by(["seed"], maintain_order=True):
            rates = run["rate_mbps"].to_list()
            if flows == 1:
                congested = [lost > CONGESTED_PERCENT for lost in run["lost_percent"]]
            else:
                congested = [latency > GROWN * run["latency_ms"][0] for latency in run["latency_ms"]]
            measured.append(next((rate for rate, so in zip(rates, congested, strict=True) if so), rates[-1] + 0.5))
        low, high = min(measured), max(measured)
        mean = sum(measured) / len(measured)
        rows.append(row({"switches": switches, "flows": flows}, "onset_mbps", {"mean": mean, "low": low, "high": high}))
    return pl.DataFrame(rows)


class Means:
    """The means over the runs, by number of switches, number of flows, mode of INT and rate."""

    def __init__(self, frame: pl.DataFrame) -> None:
        columns = list(QUANTITIES)
        means = frame.group_by(BY, maintain_order=True).agg(pl.col(name).mean() for name in columns)
        self._rows = {tuple(each[key] for key in BY): each for each in means.iter_rows(named=True)}
        self.rates = sorted({key[3] for key in self._rows})

    def of(self, value: str, switches: int, mode: str, rate: float, flows: int = 1) -> float:
        """Return the mean over the runs of the quantity ``value`` at one rate in Mb/s."""
        return float(self._rows[switches, flows, mode, rate][value])

    def close(self, switches: int, flows: int, rates: list[float], within: float) -> bool:
        """Return True if at each of ``rates`` bandwidth with INT is at most the share ``within`` below that without INT."""
        return all(
            self.of("bandwidth_mbps", switches, "thesis", rate, flows)
            >= (1 - within) * self.of("bandwidth_mbps", switches, "off", rate, flows)
            for rate in rates
        )


def _statements() -> dict[str, Callable[[Means, dict[tuple[int, int], float]], bool]]:
    """Return by statement of :data:`published.STATEMENTS` the function that tests it, in the published order.

    A test is given the means and the onsets in Mb/s by (switches, flows).
    """
    switches = published.SWITCHES

    def same_latency(means: Means) -> bool:
        found = [means.of("latency_ms", n, "off", means.rates[0]) for n in switches]
        return max(found) <= 1.25 * min(found)

    def gap(means: Means, rate: float) -> float:
        on, off = (means.of("bandwidth_mbps", 4, mode, rate, 2) for mode in ("thesis", "off"))
        return off - on

    def low(means: Means) -> list[float]:
        return [rate for rate in means.rates if rate <= 4.5]

    tests: list[Callable[[Means, dict[tuple[int, int], float]], bool]] = [
        lambda m, _: m.close(3, 1, m.rates, 0.05) and m.close(4, 1, m.rates, 0.05),
        lambda m, _: m.of("bandwidth_mbps", 5, "thesis", 5.0) < m.of("bandwidth_mbps", 5, "thesis", 4.5),
        lambda m, _: all(
            m.of("lost_percent", n, mode, rate) <= CONGESTED_PERCENT
            for n in switches
            for mode in ("off", "thesis")
            for rate in low(m)
        ),
        lambda _, onset: onset[5, 1] < min(onset[3, 1], onset[4, 1]),
        lambda m, _: same_latency(m),
        lambda m, _: (
            m.of("latency_ms", 3, "thesis", 4.5)
            < m.of("latency_ms", 4, "thesis", 4.5)
            < m.of("latency_ms", 5, "thesis", 4.5)
        ),
        lambda m, _: all(
            m.of("latency_ms", n, "off", m.rates[-1]) > GROWN * m.of("latency_ms", n, "off", m.rates[0])
            for n in switches
        ),
        lambda m, _: all(
            0.5 <= m.of("jitter_ms", n, "thesis", rate) / m.of("jitter_ms", n, "off", rate) <= 2
            for n in switches
            for rate in m.rates
        ),
        lambda m, _: m.close(4, 2, low(m), 0.05),
        lambda m, _: gap(m, m.rates[-1]) > gap(m, 5.0) > gap(m, 4.5),
        lambda m, _: all(
            m.of("jitter_ms", 4, mode, rate, 2) > m.of("jitter_ms", 4, mode, rate)
            for mode in ("off", "thesis")
            for rate in (1.0, 3.0)
        ),
    ]
    return dict(zip((each[0] for each in published.STATEMENTS.rows), tests, strict=True))


def statement_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each statement of the thesis: ``holds`` is 1 if the runs in ``frame`` agree with the statement, else 0."""
    means = Means(frame)
    onset = {(each["switches"], each["flows"]): each["ours"] for each in onsets(frame).iter_rows(named=True)}
    rows = []
    for statement, test in _statements().items():
        holds = float(test(means, onset))
        rows.append(row({"statement": statement}, "holds", exact(holds)))
    return pl.DataFrame(rows)


FIGURES = {
    "fig46": (1, ("bandwidth_mbps",), "received bandwidth with 3, 4 and 5 switches"),
    "fig47": (1, ("latency_ms",), "latency with 3, 4 and 5 switches"),
    "fig48": (1, ("lost_percent",), "lost packets with 3, 4 and 5 switches"),
    "fig49": (1, ("jitter_ms",), "jitter with 3, 4 and 5 switches"),
    "fig410": (2, ("bandwidth_mbps", "latency_ms", "jitter_ms"), "two flows and four switches beside one flow"),
    "fig411": (2, ("lost_percent",), "lost packets with two flows and four switches"),
}
"""The flows, the quantity drawn and the title of each figure, by part."""


def found(name: str, frame: pl.DataFrame) -> Finding:
    """Return the finding of the part ``name`` (a figure, congestion, statements or beyond) from the runs in ``frame``."""
    match name:
        case "congestion":
            return Finding(onsets(frame), frames={"runs": frame})
        case "statements":
            return Finding(statement_numbers(frame))
        case "beyond":
            return Finding(beyond_numbers(frame), {"": drawing.beyond(frame, QUANTITIES)}, {"runs": frame})
        case _:
            flows, quantities, title = FIGURES[name]
            chosen = frame.filter(flows=flows) if flows == 1 else frame.filter(switches=4)
            drawn = {value: QUANTITIES[value] for value in quantities}
            figure = drawing.by_switches(chosen, quantities[0], drawn[quantities[0]], title)
            if flows == 2:
                figure = drawing.two_flows(chosen, drawn, title)
            tables = [numbers(chosen, value) for value in quantities]
            return Finding(pl.concat(tables), {"": figure})


def beyond_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per format of INT, share of packets with INT, rate in Mb/s and quantity: the mean over seeds."""
    return summaries(frame, ["mode", "sampling", "rate_mbps"], [*QUANTITIES, "bytes_between_switches"])


def find_beyond(setting: Setting) -> Finding:
    """Return the finding on formats of INT: none, the thesis's, and INT v2.1 in three modes for all packets or a tenth."""
    frame = setting.sweep("beyond", f"{telemetry_runs.__name__}:measure", telemetry_runs.BEYOND_POINTS)
    return found("beyond", frame)


def _part(name: str, place: str, title: str, table: PublishedTable | None = None) -> Part:
    return Part(name, place, title, lambda setting: found(name, _runs(setting)), len(telemetry_runs.POINTS), table)


PARTS = (
    _part("congestion", published.CONGESTION.place, published.CONGESTION.title, published.CONGESTION),
    *(_part(name, f"Fig. 4.{name[4:]}, section 4.2", title) for name, (_, _, title) in FIGURES.items()),
    _part("statements", published.STATEMENTS.place, published.STATEMENTS.title, published.STATEMENTS),
    Part(
        "beyond",
        "not in the thesis",
        "five switches with INT v2.1 (MD, MX, XD), and with a tenth of the packets",
        find_beyond,
        len(telemetry_runs.BEYOND_POINTS),
    ),
)
