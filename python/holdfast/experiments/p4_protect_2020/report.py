"""The committed results in words: tables of the README, written from the CSV files in ``results/`` and nothing else.

``python -m holdfast.experiments.p4_protect_2020.report out/experiments/p4_protect_2020`` takes the results there into
``results/`` and puts the tables between the README's markers. Tests check that the README is what the files say. How the results
came about is :mod:`holdfast.reproduce`'s business.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from holdfast.errors import ExperimentError
from holdfast.experiments import DIFFERS
from holdfast.experiments.committed import Committed, Sections, markdown
from holdfast.experiments.p4_protect_2020 import jitter, processing, published, scenarios

COMMITTED = Committed(Path(__file__).parent)
read, seeds = COMMITTED.read, COMMITTED.seeds

COMPARED = ("scenarios", "claim", "fig6", "fig7", "fig8")
"""The parts of which the paper prints numbers."""


def _number(row: Mapping[str, Any] | None, decimals: int) -> str:
    """With its interval, unless there is nothing random in it."""
    if row is None:
        return ""
    text = f"{row['ours']:.{decimals}f}"
    low, high = (f"{row[name]:.{decimals}f}" for name in ("low", "high"))
    return text if low == text == high else f"{text} ({low} .. {high})"


def _found(frame: pl.DataFrame, **wanted: Any) -> Mapping[str, Any] | None:
    rows = frame.filter(*(pl.col(name) == value for name, value in wanted.items()))
    return rows.row(0, named=True) if len(rows) else None


def beside() -> str:
    """Every number of the paper with ours."""
    rows = []
    for name in COMPARED:
        frame = read(name).drop_nulls("paper")
        keys = frame.columns[: frame.columns.index("quantity")]
        for row in frame.iter_rows(named=True):
            decimals = 3 if name == "claim" else 1 if name in ("fig7", "fig8") else 0
            rows.append(
                [
                    name,
                    ", ".join(str(row[key]) for key in keys),
                    row["quantity"].replace("_", " "),
                    f"{row['paper']:g}",
                    _number(row, decimals),
                    row["verdict"] if row["verdict"] != DIFFERS else f"**{DIFFERS}**",
                ]
            )
    return markdown(["part", "", "", "paper", "ours", ""], rows)


def what_came_out() -> str:
    """Figures 2 to 4."""
    frame = read("scenarios_events")
    rows = []
    for row in frame.iter_rows(named=True):
        numbers = _found(read("scenarios"), figure=row["figure"], algorithm=row["algorithm"], quantity="worst_delay_ms")
        rows.append(
            [
                scenarios.SCRIPTS[row["figure"]].title,
                row["algorithm"],
                row["path1_numbers"],
                row["path2_numbers"],
                row["forwarded_numbers"],
                _number(numbers, 1),
            ]
        )
    return markdown(["", "algorithm", "path 1", "path 2", "forwarded", "longest delay, ms"], rows)


def limits() -> str:
    """The claim."""
    frame = read("claim")
    rows = []
    for bits in dict.fromkeys(frame["sn_bits"].sort()):
        measured = _found(frame, sn_bits=bits, quantity="harmless_packets")
        expected = _found(frame, sn_bits=bits, quantity="harmless_packets_expected")
        rows.append([str(bits), _number(measured, 0) or "not measured", _number(expected, 0)])
    return markdown(["bits", "packets behind without harm", "W - 1"], rows)


def _machine(name: str) -> str:
    row = read(f"{name}_machine").row(0, named=True)
    return f"{row['processor']}, {row['processors']} processors, {row['system']}; load {row['load_before']:g} when it began."


def costs() -> str:
    """Figure 6."""
    frame = read("fig6")
    rows = []
    for end, kinds in processing.KINDS.items():
        for mode in kinds[2:]:

            def value(quantity: str, decimals: int = 0, end: str = end, mode: str = mode) -> str:
                return _number(_found(frame, end=end, mode=mode, quantity=quantity), decimals)

            rows.append(
                [
                    end,
                    mode,
                    *(value(f"ns_{size}_bytes") for size in processing.SIZES_BYTES),
                    value("relative_percent"),
                    value("relative_hop_percent"),
                    value("instructions_64_bytes"),
                    value("relative_instructions_percent_64_bytes"),
                ]
            )
    headings = ["", "", *(f"{size} bytes, ns" for size in processing.SIZES_BYTES), "% of plain", "% of a plain hop"]
    about = f"{seeds('fig6')} runs. {_machine('fig6')}"
    return f"{about}\n\n" + markdown([*headings, "instructions", "% of plain"], rows)


def goodputs() -> str:
    """Figure 7."""
    simulated, live = read("fig7"), read("fig7_live")
    rows = []
    for pairs in published.PAIRS:
        for mode in published.MODES:
            rows.append(
                [
                    str(pairs),
                    mode,
                    _number(_found(simulated, pairs=pairs, mode=mode, quantity="goodput_gbps"), 2),
                    _number(_found(simulated, pairs=pairs, mode=mode, quantity="goodput_gbps_hosts_at_line_rate"), 2),
                    _number(_found(live, pairs=pairs, mode=mode, quantity="goodput_gbps"), 2),
                    _number(_found(live, pairs=pairs, mode=mode, quantity="relative_percent"), 0),
                ]
            )
    headings = ["pairs", "", "hosts at 30 Gb/s", "hosts at 100 Gb/s", "live, iperf3", "live, % of plain"]
    about = f"Gb/s. Simulated {seeds('fig7')} runs, live {seeds('fig7_live')}. Live: {_machine('fig7_live')}"
    return f"{about}\n\n" + markdown(headings, rows)


def deviations() -> str:
    """Figure 8."""
    frame = read("fig8")
    rows = []
    for law in jitter.LAWS:
        closed = _found(frame, law=law, quantity="mdev_closed_form_percent")
        values = [_number(_found(frame, law=law, quantity=f"{name}_percent"), 1) for name in jitter.MEASURES]
        rows.append([law, *values, _number(closed, 1)])
    headings = ["netem", *(name.replace("_", " ") for name in jitter.MEASURES), "mdev, closed form"]
    return f"{seeds('fig8')} seeds; with protection in % of without.\n\n" + markdown(headings, rows)


def close_pings() -> str:
    """What overtaking does to Figure 8."""
    frame = read("fig8")
    rows = []
    for apart in jitter.CLOSE:
        row = [f"{apart:g} J"]
        for algorithm in ("window", "vector"):
            for measure in ("average_deviation", "lost"):
                quantity = f"{measure}_percent_{algorithm}_pings_{apart:g}_j_apart"
                row.append(_number(_found(frame, law="around", quantity=quantity), 1))
        rows.append(row)
    headings = ["time between pings", "window: deviation, %", "lost, %", "vector: deviation, %", "lost, %"]
    return markdown(headings, rows)


SECTIONS: Sections = (
    ("The paper's numbers beside ours", beside),
    ("Figures 2 to 4", what_came_out),
    ("The claim of 1.6 s", limits),
    ("Figure 6", costs),
    ("Figure 7", goodputs),
    ("Figure 8", deviations),
    ("Figure 8 with pings that overtake each other", close_pings),
)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        try:
            COMMITTED.collect(Path(given))
        except ExperimentError as error:
            sys.exit(f"error: {error}")
    COMMITTED.rewrite(SECTIONS)
