"""The tables of the README, generated from the CSV files in ``results/`` alone.

``python -P -m holdfast.experiments.gmpls_tcp_2001.tests.report out/experiments/gmpls_tcp_2001`` takes the results there,
with each run's goodput in ``runs_*.csv``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from holdfast import reproduce, whole_files
from holdfast.experiments import AGREES, BY_DEFINITION, DIFFERS, OPEN, PublishedTable
from holdfast.experiments.gmpls_tcp_2001 import (
    EXPERIMENT,
    conclusions,
    fit,
    longer_path,
    merge,
    published,
    runs,
    statements,
)
from holdfast.experiments.tests.committed import Committed, Sections, markdown

COMMITTED = Committed(EXPERIMENT, Path(__file__).parents[1])
read, seeds = COMMITTED.read, COMMITTED.seeds

TABLES = ("table3", "optical_timing", "table4", "table5", "table6", "table8")
BEYOND = ("beyond_table3", "beyond_table5", "beyond_table6", "beyond_fig19")


@dataclass(frozen=True)
class Kept:
    """Which runs of a sweep are kept: their keys and values, how a frame of them is made, and of how many seeds."""

    sweep: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    make: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame
    seeds: int | None = None


RUNS: Mapping[str, Kept] = {
    "timing": Kept("timing", ("delta_ms",), ("after_failure",)),
    "timing_low_access": Kept("timing_low_access", ("delta_ms",), ("after_failure",)),
    "timing_optical": Kept("timing_optical", ("delta_ms",), ("after_failure",)),
    "rtt_change": Kept("rtt_change", ("d_ms", "delta_ms"), ("after_failure",)),
    "switch_back": Kept("switch_back", ("d_ms", "strategy"), ("after_repair",)),
    "merge": Kept(
        "merge", ("d_ms",), tuple(f"{where}_drops{when}" for where in merge.LINKS for when in ("", "_before"))
    ),
    "case_study": Kept("case_study", ("mechanism", "scenario"), ("after_failure",)),
    "case_study_repair": Kept("case_study", ("mechanism", "scenario"), ("after_repair",)),
    "timing_curves": Kept(
        "timing", ("delta_ms", "flows"), ("packets",), statements.timing_curves, statements.CURVE_SEEDS
    ),
    "recovery": Kept("rtt_change", ("delta_ms",), ("packets",), statements.recovery_curves, statements.CURVE_SEEDS),
    "dips": Kept("switch_back_curves", ("d_ms", "strategy"), ("packets",), statements.dip_curves),
    "half_longer": Kept("half_longer", ("d_ms",), ("after_failure",)),
    "loads": Kept("loads", ("access_percent",), ("before_percent", "met_percent")),
}
"""The runs that are kept, by their file's name; :func:`holdfast.experiments.gmpls_tcp_2001.statements.measured` has them too."""

CURVE = "packets"
"""A column of curves; in a file the numbers stand beside each other, with spaces between."""


def kept(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of file ``runs_<name>.csv`` from the rows of a sweep, ``frame``.

    Goodput is in packets, rounded to a thousandth.
    """
    of = RUNS[name]
    rows = of.make(frame if of.seeds is None else statements.first(frame, of.seeds)).select(
        *of.keys, "seed", *of.values
    )
    if CURVE in of.values:
        texts = [" ".join(f"{round(each, 3):g}" for each in curve) for curve in rows[CURVE].to_list()]
        return rows.with_columns(pl.Series(CURVE, texts))
    return rows.with_columns(pl.col(value).round(3) for value in of.values)


def committed(name: str) -> pl.DataFrame:
    """Read the committed runs ``name``, and return them as a sweep would."""
    frame = pl.read_csv(COMMITTED.results / f"runs_{name}.csv")
    if CURVE in frame.columns:
        curves = [[float(each) for each in text.split()] for text in frame[CURVE].to_list()]
        frame = frame.with_columns(pl.Series(CURVE, curves))
    if name.startswith("case_study"):
        frame = frame.with_columns(
            rate_mbps=pl.lit(runs.DEFAULTS["rate_mbps"]), access_percent=pl.lit(published.ACCESS_PERCENT)
        )
    return frame


def collect(out: Path) -> None:
    """Copy the files of parts that ``holdfast reproduce`` wrote to ``out``, and write the runs of each sweep there."""
    COMMITTED.collect(out)
    for name, of in RUNS.items():
        rows = out / "sweeps" / of.sweep / "rows.parquet"
        if rows.is_file():
            whole_files.write(COMMITTED.results / f"runs_{name}.csv", kept(name, pl.read_parquet(rows)).write_csv)


def _interval(low: float | None, high: float | None, decimals: int = 2) -> str:
    return "" if low is None or high is None else f"{low:+.{decimals}f} .. {high:+.{decimals}f}"


def _keys(row: dict[str, object], keys: Sequence[str]) -> str:
    return ", ".join(f"{key.removesuffix('_ms')} = {row[key]}" for key in keys)


def _key_columns(frame: pl.DataFrame) -> list[str]:
    return frame.columns[: frame.columns.index("quantity")]


def agreement() -> str:
    """Return a Markdown table of how many numbers of each table agree with the paper's, by column, and the margins."""
    rows: list[list[str]] = []
    margins: dict[str, None] = {}
    for name in TABLES:
        frame, criteria = read(name), _published(name).criteria
        for (quantity,), found in frame.filter(pl.col("verdict") != BY_DEFINITION).group_by(
            ["quantity"], maintain_order=True
        ):
            number = reproduce.counts(found)
            criterion = criteria[str(quantity)]
            margins[f"{criterion.margin:g}: {criterion.reason}"] = None
            rows.append(
                [
                    name,
                    str(seeds(name)),
                    str(quantity).removesuffix("_percent").replace("_", " "),
                    f"{criterion.margin:g}",
                    *(str(number[verdict]) for verdict in (AGREES, DIFFERS, OPEN)),
                ]
            )
    counted = [
        read(name).filter(~((pl.lit(name) == "table4") & (pl.col("quantity") == "goodput_change_percent")))
        for name in TABLES
        if name != "table8"
    ]
    total = pl.concat([frame.select("paper", "verdict") for frame in counted])
    exact = reproduce.counts(read("table8"))[AGREES]
    headings = ["table", "seeds", "column", "margin", "agree", "differ", "open"]
    reasons = "\n".join(f"- {margin}." for margin in margins)
    apart = (
        "Table 4's goodput is a column of Table 5 and counts once. "
        f"Beside them {exact} values that follow from the formulas of Table 8 and section 8.1 come out."
    )
    return (
        f"In all: {reproduce.in_words(total)}. {apart}\n\n{markdown(headings, rows)}\n\nMargins, and why:\n\n{reasons}"
    )


def _published(name: str) -> PublishedTable:
    (table,) = (table for table in published.TABLES if table.name == name)
    return table


def entries() -> str:
    """Return Markdown tables of every goodput change and proportion, in %, beside the paper's."""
    parts = []
    for name in TABLES[:-1]:
        frame = read(name)
        keys = _key_columns(frame)
        rows = [
            [
                _keys(row, keys),
                row["quantity"].removesuffix("_percent").replace("_", " "),
                f"{row['paper']:+.2f}",
                f"{row['ours']:+.2f}",
                _interval(row["low"], row["high"]),
                _interval(row["difference_low"], row["difference_high"]),
                row["verdict"] if row["verdict"] != DIFFERS else f"**{DIFFERS}**",
            ]
            for row in frame.drop_nulls(["paper", "difference_low"]).iter_rows(named=True)
        ]
        table = markdown(["", "", "paper, %", "ours, %", "95 % interval", "of the difference", ""], rows)
        parts.append(f"<details><summary>{name}, {seeds(name)} seeds</summary>\n\n{table}\n\n</details>")
    return "\n\n".join(parts)


def verdicts() -> str:
    """Return a Markdown table of each conclusion's verdict and of the numbers of its claims."""
    return _verdicts("conclusions")


def in_words() -> str:
    """Return Markdown of each statement of the paper: its verdict, its claims, and the seeds that would decide an open one."""
    frame = read("statements")
    counts = [
        (verdict, frame.filter(pl.col("overall") == verdict)["statement"].n_unique())
        for verdict in (conclusions.HOLDS, conclusions.REFUTED, conclusions.UNDECIDED)
    ]
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts)
    rows = []
    for statement in published.STATEMENTS:
        claims = frame.filter(pl.col("statement") == statement.name)
        rows.append([f"**{statement.text}** ({statement.place})", f"**{claims['overall'][0]}**", "", ""])
        for claim in claims.iter_rows(named=True):
            needed = f"; about {claim['seeds_needed']} seeds would decide" if claim["seeds_needed"] else ""
            number = f"{claim['ours']:+.2f} ({_interval(claim['low'], claim['high'])}) {claim['quantity']}"
            rows.append([claim["about"], claim["verdict"] + needed, claim["bound"], number])
    table = markdown(["statement, and its claims", "verdict", "holds if", "95 % interval"], rows)
    return f"{len(published.STATEMENTS)} statements: {words}.\n\n{table}"


def merging() -> str:
    """Return a Markdown table of the seeds, in %, in which buffers overflow behind the merge point, by backup length d."""
    frame = read("merge")
    rows = []
    for (d_ms,), numbers in frame.group_by(["d_ms"], maintain_order=True):
        of = {row["quantity"]: row for row in numbers.iter_rows(named=True)}
        cells = []
        for where in merge.LINKS:
            share, lost = of[f"{where}_overflow_percent"], of[f"{where}_drops"]
            cells.append(
                f"{share['ours']:.0f} % ({share['low']:.0f} .. {share['high']:.0f}), {lost['ours']:.2f} packets"
            )
        rows.append([f"d = {d_ms}", *cells])
    headings = ["", "at LSR2-LSR3: seeds with more drops after than before, and drops", "at LSR2-LSR3 or LSR3-B"]
    return f"{seeds('merge')} seeds.\n\n{markdown(headings, rows)}"


def faster() -> str:
    """Return Markdown of the case study's conclusions at a higher rate."""
    rate = f"{conclusions.FASTER_MBPS:g} Mb/s instead of {runs.UNKNOWNS['rate_mbps']:g}"
    return f"{rate}, {seeds('conclusions_faster')} seeds.\n\n{_verdicts('conclusions_faster')}"


def _verdicts(part: str) -> str:
    frame = read(part)
    rows = []
    for name, sentence in conclusions.CONCLUSIONS.items():
        claims = frame.filter(pl.col("conclusion") == name)
        if claims.is_empty():
            continue
        rows.append([f"**{sentence}**", f"**{claims['overall'][0]}**", ""])
        for claim in claims.iter_rows(named=True):
            number = f"{claim['ours']:+.2f} ({_interval(claim['low'], claim['high'])})"
            rows.append([claim["about"], claim["verdict"], number])
    return markdown(["conclusion", "verdict", "% or points, with 95 % interval"], rows)


def _ordered(frame: pl.DataFrame, target: str) -> list[fit.Candidate]:
    """Return all candidates, sorted by their score for ``target``, the best first."""
    scored = frame.filter(pl.col("quantity") == f"score_{target}").sort("ours", descending=True)
    return scored.select(*fit.FACTORS).rows()


def _numbers_of(frame: pl.DataFrame, one: fit.Candidate) -> dict[str, dict[str, Any]]:
    """Return the rows of ``frame`` that belong to candidate ``one``, by quantity."""
    rows = frame.filter(pl.col(name) == value for name, value in zip(fit.FACTORS, one, strict=True))
    return {row["quantity"]: row for row in rows.iter_rows(named=True)}


def _score(numbers: Mapping[str, Mapping[str, Any]], target: str) -> str:
    above = numbers[f"score_{target}_above_used"]
    interval = _interval(above["low"], above["high"], 0)
    first = numbers[f"first_{target}_percent"]["ours"]
    return f"{numbers[f'score_{target}']['ours']:.0f}; {above['ours']:+.0f} ({interval}); {first:.0f} %"


def fitted() -> str:
    """Return Markdown of how candidates were chosen, and of the finalists' scores with seeds that chose nothing."""
    frame = read("fit")
    held = frame.filter(pl.col("stage") == fit.HELD_OUT)
    stages = []
    for (stage,), found in frame.filter(pl.col("stage") != fit.HELD_OUT).group_by(["stage"], maintain_order=True):
        both, alone = (_ordered(found, target) for target in (fit.BOTH, "table3"))
        used = (
            f"what is used has rank {both.index(fit.USED) + 1} at both tables and {alone.index(fit.USED) + 1} at Table 3"
            if fit.USED in both
            else "what is used is no longer among them"
        )
        stages.append(f"- {stage}: {len(both)} candidates; {used}.")
    rows = [
        [
            fit.label(one) + (" **(used)**" if one == fit.USED else ""),
            *(_score(_numbers_of(held, one), target) for target in (fit.BOTH, *fit.POINTS)),
        ]
        for one in _ordered(held, fit.BOTH)
    ]
    scores = markdown(["candidate", *(f"{t}: score; above used; first" for t in ("both", "Table 3", "Table 5"))], rows)
    words = f"Judged with {seeds('fit')} seeds that chose nothing; chosen with others:"
    return "\n\n".join([words, "\n".join(stages), scores, _distances(held)])


def _distances(held: pl.DataFrame) -> str:
    """Return a Markdown table of each finalist's numbers, and of their distances from the paper's in percentage points."""
    rows = []
    for one in _ordered(held, fit.BOTH):
        of = _numbers_of(held, one)
        for name in [name.removesuffix("_apart_points") for name in of if name.endswith("_apart_points")]:
            change, worse = of[f"{name}_change_percent"], of.get(f"{name}_worse_percent")
            rows.append(
                [
                    fit.label(one),
                    name.replace("_", " "),
                    f"{change['ours']:+.1f} ({_interval(change['low'], change['high'], 1)})",
                    f"{of[f'{name}_apart_points']['ours']:+.1f}",
                    f"{of[f'{name}_apart_errors']['ours']:+.1f}",
                    f"{of[f'{name}_spread_percent']['ours']:.1f}",
                    f"{worse['ours']:.0f} %" if worse else "",
                ]
            )
    headings = [
        "candidate",
        "entry",
        "change, %",
        "from the paper: points",
        "standard errors",
        "spread over seeds, %",
        "worse",
    ]
    return f"<details><summary>Every entry</summary>\n\n{markdown(headings, rows)}\n\n</details>"


def factors() -> str:
    """Return a Markdown table of two main effects in % at each value of each factor, averaged over the other factors."""
    first = fit.selection_seeds()[: fit.ROUNDS[0].seeds]
    changes = {}
    for table in fit.POINTS:
        frame = read(f"fit_runs_{table}").filter(pl.col("seed").is_in(first))
        of = fit.changes_by_candidate(table, frame, fit.CANDIDATES)
        changes[table] = {one: {entry: fmean(values) for entry, values in found.items()} for one, found in of.items()}
    rows = []
    for place, (name, values) in enumerate(fit.FACTORS.items()):
        for value in values:
            those = [one for one in fit.CANDIDATES if one[place] == value]
            gains = [changes["table3"][one][50,] for one in those]
            costs = [changes["table5"][one][100, longer_path.DELTA_MS] for one in those]
            cells = [f"{fmean(each):+.1f} ({min(each):+.1f} .. {max(each):+.1f})" for each in (gains, costs)]
            rows.append([f"{name} = {value:g}", *cells])
    headings = ["", "delta = 50 ms gains, %: mean, least and most of the candidates", "d = 100 ms costs, %: the same"]
    return f"All {len(fit.CANDIDATES)} candidates with the {len(first)} seeds of the first round.\n\n" + markdown(
        headings, rows
    )


def beyond() -> str:
    """Return Markdown tables with today's TCPs: a row per configuration, a column per TCP."""
    parts = []
    for name in BEYOND:
        frame = read(name)
        keys = [key for key in _key_columns(frame) if key != "tcp"]
        if "goodput_change_percent" in frame["quantity"].to_list():
            frame = frame.filter(pl.col("quantity") == "goodput_change_percent")
        tcps = frame["tcp"].unique(maintain_order=True).to_list()
        rows = []
        for key, numbers in frame.group_by([*keys, "quantity"], maintain_order=True):
            of = {row["tcp"]: row for row in numbers.iter_rows(named=True)}
            what = _keys(dict(zip(keys, key, strict=False)), keys)
            quantity = str(key[-1]).removesuffix("_percent").replace("_", " ")
            rows.append(
                [
                    what,
                    quantity,
                    *(f"{of[t]['ours']:+.1f} ± {(of[t]['high'] - of[t]['low']) / 2:.1f}" for t in tcps),
                ]
            )
        parts.append(f"{name}, {seeds(name)} seeds:\n\n" + markdown(["", "", *tcps], rows))
    return "\n\n".join(parts)


SECTIONS: Sections = (
    ("Which of the paper's numbers agree with ours", agreement),
    ("Every entry", entries),
    ("The paper's statements", in_words),
    ("Conclusions", verdicts),
    ("Losses behind the merge point", merging),
    ("Conclusions of the case study at a higher rate", faster),
    ("The fit, judged with other seeds", fitted),
    ("Dependencies of the two main effects", factors),
    ("Beyond the paper", beyond),
)


if __name__ == "__main__":
    COMMITTED.regenerate(SECTIONS, collect=collect)
