"""The tables of the README, generated from the CSV files in ``results/`` alone.

``python -P -m holdfast.experiments.pppoe_split_plane.tests.report out/experiments/pppoe_split_plane`` takes the results there.
"""

from __future__ import annotations

import statistics as plain
from pathlib import Path

from holdfast import statistics
from holdfast.experiments import Finding
from holdfast.experiments.pppoe_split_plane import (
    EXPERIMENT,
    beyond,
    dial_runs,
    drawing,
    live,
    live_runs,
    published,
    scale_runs,
    setup,
    storm_runs,
    tables,
)
from holdfast.experiments.tests.committed import Committed, Sections, found, markdown, number
from holdfast.experiments.this_machine import disturbance

COMMITTED = Committed(EXPERIMENT, Path(__file__).parents[1])
read, seeds = COMMITTED.read, COMMITTED.seeds

COMPARED = {"table1": 2, "table2": 0, "gain": 2}
"""The parts of which the paper prints something, with the decimals of ours."""

STORED = {
    **dict.fromkeys(("table1", "table2", "gain"), "table1_runs"),
    "burst": "burst_runs",
    "table1_live": "table1_live_runs",
    "storm": "storm_runs",
    "scale": "scale_runs",
    "dial": "dial_runs",
}
"""The file with the runs of each part, by part."""


def printed() -> str:
    """Return Markdown of what the paper's tables say by themselves: the mean gain in %, with and without the last row."""
    gains = [row[3] for row in published.SPEEDS]
    low, high = statistics.mean_interval(gains)
    last = [published.ms_per_packet(published.LEFT_OUT, plane) for plane in published.PLANES]
    with_last = [*gains, 100 * (1 - last[1] / last[0])]
    low_16, high_16 = statistics.mean_interval(with_last)
    totals = [sum(row[column] for row in published.LATENCIES) for column in (1, 2)]
    first_ten = [row[1] for row in published.SPEEDS if row[0] <= 300]
    mean, spread = plain.fmean(first_ten), plain.stdev(first_ten)
    return "\n".join(
        [
            f"- Mean of the 15 printed gains: {sum(gains) / 15:.1f} % ({low:.1f} .. {high:.1f}, were the rows independent).",
            f"- The row that only the second table has, {published.LEFT_OUT:,} packets: {last[0]:.1f} ms a packet with a single "
            f"plane and {last[1]:.1f} with a split one, a gain of {with_last[-1]:.1f} %.",
            f"- Mean of all 16: {sum(with_last) / 16:.1f} % ({low_16:.1f} .. {high_16:.1f}).",
            f"- All packets of the second table together took {totals[0]:,} ms with a single plane and {totals[1]:,} with a split "
            f"one: a gain of {100 * (1 - totals[1] / totals[0]):.1f} %.",
            f"- Standard deviation of the first ten rows, single plane: {spread:.1f} ms, {100 * spread / mean:.0f} % of the mean.",
        ]
    )


def beside() -> str:
    """Return a text and a Markdown table of every number of the paper beside ours."""
    words, table = COMMITTED.beside(COMPARED)
    times = ", ".join(f"{setup.SERVICE_MS['one by one'][plane]:.2f} ms ({plane})" for plane in published.PLANES)
    return f"Service times: {times}. {seeds('table1')} seeds. In all: {words}.\n\n{table}"


def burst() -> str:
    """Return a Markdown table of latencies in ms if the packets of a row are sent at once, beside the paper's."""
    rows = []
    for count in published.PACKETS[:11]:
        row = [str(count)]
        for plane in published.PLANES:
            row += [
                f"{published.ms_per_packet(count, plane):.1f}",
                number(found(read("burst"), packets=count, plane=plane, quantity="latency_ms"), 1),
            ]
        rows.append([*row, number(found(read("burst"), packets=count, plane="single", quantity="lost"), 0)])
    return markdown(["packets", "single: paper, ms", "burst", "split: paper, ms", "burst", "lost"], rows)


def real_time() -> str:
    """Return a Markdown table of the paper's first table as measured on this machine, in real time."""
    frame, where = read("table1_live"), read("table1_live_machine")
    rows = []
    for count in published.PACKETS:
        for plane in published.PLANES:
            cells = [(name, 3) for name in ("latency_p50_ms", "latency_ms")] + [
                (name, 0) for name in ("forwarded_per_s", "offered_per_s", "lost")
            ]
            rows.append(
                [str(count), plane]
                + [number(found(frame, packets=count, plane=plane, quantity=name), digits) for name, digits in cells]
            )
    headings = ["packets", "planes", "median latency, ms", "mean", "forwarded/s under full load", "offered/s", "lost"]
    about = (
        f"Means of {seeds('table1_live')} runs, {disturbance(where)}; a packet every millisecond, in rows of more than"
        f" {live_runs.FEW:,} every 0.1 ms, then full load for a second."
    )
    return f"{about}\n\n{markdown(headings, rows)}"


def storms() -> str:
    """Return a Markdown table of the costs of new sessions beside traffic, by storm and kind of gateway."""
    frame, where = read("storm"), read("storm_machine")
    quantities = (
        ("ns_per_packet", 0),
        ("packets_per_s", 0),
        ("packets_per_s_one_core", 0),
        ("planes_us_per_setup", 0),
        ("control_us_per_setup", 0),
        ("setups_per_s", 0),
        ("left_percent", 0),
        ("ns_per_padi", 0),
        ("lost", 0),
    )
    rows = [
        [
            storm,
            plane,
            *(number(found(frame, storm=storm, plane=plane, quantity=q), digits) for q, digits in quantities),
        ]
        for storm in storm_runs.STORMS
        for plane in published.PLANES
    ]
    headings = [
        "storm", "planes", "ns a packet", "packets/s, a core each", "packets/s, one core", "planes: us a setup",
        "control plane: us a setup", "setups/s", "packets/s left then, %", "ns a PADI", "lost",
    ]  # fmt: skip
    about = (
        f"Beside {storm_runs.PACKETS:,} packets of {storm_runs.ESTABLISHED:,} sessions; means of {seeds('storm')} runs, "
        f"{disturbance(where)}. Times are of a processor."
    )
    return f"{about}\n\n{markdown(headings, rows)}"


def scale() -> str:
    """Return a Markdown table of a gateway's costs by number of sessions and kind of gateway."""
    frame, where = read("scale"), read("scale_machine")
    quantities = (
        ("ns_up", 0), ("ns_down", 0), ("packets_per_s", 0), ("setups_per_s", 0), ("installs_per_s", 0),
        ("upkeep_percent", 1), ("memory_mb", 0), ("recover_s", 2),
    )  # fmt: skip
    rows = [
        [f"{count:,}", plane]
        + [number(found(frame, sessions=count, plane=plane, quantity=q), digits) for q, digits in quantities]
        for count in scale_runs.SESSIONS
        for plane in published.PLANES
    ]
    headings = [
        "sessions",
        "planes",
        "ns up",
        "ns down",
        "packets/s",
        "setups/s",
        "installs/s",
        "upkeep, % of a core",
        "memory, MB",
        "restart, s",
    ]
    about = f"Means of {seeds('scale')} runs, {disturbance(where)}. Times are of a processor."
    return f"{about}\n\n{markdown(headings, rows)}"


def dials() -> str:
    """Return a Markdown table of the costs of many subscribers that dial, by their number and kind of gateway."""
    frame, where = read("dial"), read("dial_machine")
    quantities = (
        ("setup_s", 1), ("setups_per_s", 0), ("control_ms_first", 2), ("control_ms_last", 2), ("planes_ms_first", 2),
        ("planes_ms_last", 2), ("packets_per_s", 0), ("memory_mb", 0), ("restart_s", 1), ("taken_over", 0), ("takeover_s", 1),
    )  # fmt: skip
    rows = [
        [f"{count:,}", plane]
        + [number(found(frame, sessions=count, plane=plane, quantity=q), digits) for q, digits in quantities]
        for count in dial_runs.SESSIONS
        for plane in published.PLANES
    ]
    headings = [
        "sessions", "planes", "all setups, s", "setups/s", "control plane: ms a setup, first eighth", "last", "planes: ms, first",
        "last", "packets/s", "memory, MB", "restart, s", "lost with a plane", "made on the other, s",
    ]  # fmt: skip
    count = seeds("dial")
    runs = "One run each" if count == 1 else f"Means of {count} runs"
    return f"{runs}, {disturbance(where)}. Times are of a processor.\n\n{markdown(headings, rows)}"


SECTIONS: Sections = (
    ("The published tables", printed),
    ("The paper's numbers and ours", beside),
    ("Had the packets come at once", burst),
    ("In real time", real_time),
    ("Storms", storms),
    ("1 to 64,000 sessions", scale),
    ("Subscribers that dial", dials),
)


def found_again(name: str) -> Finding:
    """Return the finding of the part ``name``, computed from its committed runs; nothing is simulated."""
    runs = read(STORED[name])
    match name:
        case "table1":
            return Finding(tables.table1_numbers(runs), {"": drawing.table1(runs)})
        case "table2":
            return Finding(tables.table2_numbers(runs), {"": drawing.table2(runs)})
        case "gain":
            return Finding(tables.gain_numbers(runs))
        case "burst":
            return tables.burst(runs)
        case "table1_live":
            return live.found(runs, read("table1_live_machine"))
        case "storm":
            return beyond.found_storm(runs, read("storm_machine"))
        case "dial":
            return beyond.found_dial(runs, read("dial_machine"))
        case _:
            return beyond.found_scale(runs, read("scale_machine"))


if __name__ == "__main__":
    COMMITTED.regenerate(SECTIONS, found_again)
