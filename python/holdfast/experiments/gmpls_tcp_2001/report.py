"""The committed results in words: tables of the README, written from the CSV files in ``results/`` and nothing else.

``python -m holdfast.experiments.gmpls_tcp_2001.report out/experiments/gmpls_tcp_2001`` takes the results there into
``results/``, with each run's goodput in ``runs_*.csv``, and puts the tables between the README's markers. Tests check that the
README is what the files say, and the files what the runs say. How the results came about is :mod:`holdfast.reproduce`'s business.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from holdfast import reproduce
from holdfast.errors import ExperimentError
from holdfast.experiments import AGREES, BY_DEFINITION, DIFFERS, OPEN, PublishedTable
from holdfast.experiments.committed import Committed, Sections, markdown
from holdfast.experiments.gmpls_tcp_2001 import conclusions, published, runs

COMMITTED = Committed(Path(__file__).parent)
read, seeds = COMMITTED.read, COMMITTED.seeds

TABLES = ("table3", "optical_timing", "table4", "table5", "table6", "table8")
BEYOND = ("beyond_table3", "beyond_table5", "beyond_table6", "beyond_fig19")


SWEEPS = {
    "timing": (["delta_ms"], "after_failure"),
    "timing_low_access": (["delta_ms"], "after_failure"),
    "timing_optical": (["delta_ms"], "after_failure"),
    "rtt_change": (["d_ms", "delta_ms"], "after_failure"),
    "switch_back": (["d_ms", "strategy"], "after_repair"),
    "merge": (["d_ms"], "merge_drops"),
    "case_study": (["mechanism", "scenario"], "after_failure"),
}
"""Of which sweep's runs which goodput is kept, by what."""


def collect(out: Path) -> None:
    """Copies the parts' files from where ``holdfast reproduce`` wrote them, and writes the runs' goodputs, in packets."""
    COMMITTED.collect(out)
    for name, (keys, value) in SWEEPS.items():
        rows = pl.read_parquet(out / "sweeps" / name / "rows.parquet").select(*keys, "seed", pl.col(value).round(3))
        rows.write_csv(COMMITTED.results / f"runs_{name}.csv")


def _interval(low: float | None, high: float | None, decimals: int = 2) -> str:
    return "" if low is None or high is None else f"{low:+.{decimals}f} .. {high:+.{decimals}f}"


def _keys(row: dict[str, object], keys: Sequence[str]) -> str:
    return ", ".join(f"{key.removesuffix('_ms')} = {row[key]}" for key in keys)


def _key_columns(frame: pl.DataFrame) -> list[str]:
    return frame.columns[: frame.columns.index("quantity")]


def agreement() -> str:
    """Of each table's numbers: how many agree with the paper's, by column, and the margins."""
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
    total = pl.concat([read(name).select("paper", "verdict") for name in TABLES])
    headings = ["table", "seeds", "column", "margin", "agree", "differ", "open"]
    reasons = "\n".join(f"- {margin}." for margin in margins)
    return f"In all: {reproduce.in_words(total)}.\n\n{markdown(headings, rows)}\n\nMargins, and why:\n\n{reasons}"


def _published(name: str) -> PublishedTable:
    (table,) = (table for table in published.TABLES if table.name == name)
    return table


def entries() -> str:
    """Every goodput change and proportion with the paper's, table by table."""
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
    """Each conclusion and, of its claims, the numbers."""
    return _verdicts("conclusions")


def faster() -> str:
    """The same of the case study at a higher rate."""
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


def fitted() -> str:
    """The candidates, the nearest first, and what the two main effects are with each."""
    frame = read("fit")
    unknowns = list(runs.UNKNOWNS)
    rows = []
    for key, numbers in frame.group_by(unknowns, maintain_order=True):
        of = {row["quantity"]: row for row in numbers.iter_rows(named=True)}
        chosen = all(str(value) == str(runs.UNKNOWNS[name]) for name, value in zip(unknowns, key, strict=True))
        changed = [
            f"{name} {value}"
            for name, value in zip(unknowns, key, strict=True)
            if name not in ("rate_mbps", "buffer_packets", "window_packets") and str(value) != str(runs.UNKNOWNS[name])
        ]
        rows.append(
            [
                ("**used** " if chosen else "") + ", ".join([f"{key[0]:g} Mb/s, {key[1]}, {key[3]}", *changed]),
                f"{of['distance']['ours']:.2f} ({of['distance']['low']:.2f} .. {of['distance']['high']:.2f})",
                *(f"{of[f'distance_{table}']['ours']:.2f}" for table in ("table3", "table5")),
                *(
                    f"{of[name]['ours']:+.1f} ({_interval(of[name]['low'], of[name]['high'], 1)})"
                    for name in ("delta_50_ms_change_percent", "d_100_ms_change_percent")
                ),
            ]
        )
    headings = [
        "rate, buffer, window",
        "distance",
        "Table 3",
        "Table 5",
        "delta = 50 ms gains, %",
        "d = 100 ms costs, %",
    ]
    return f"{seeds('fit')} seeds.\n\n" + markdown(headings, rows)


def fitted_alone() -> str:
    """Table 3 with more packets per flow."""
    frame = read("fit_faster")
    rows = []
    for key, numbers in frame.group_by(["rate_mbps", "buffer_packets", "window_packets"], maintain_order=True):
        of = {row["quantity"]: row for row in numbers.iter_rows(named=True)}
        changes = [f"{row['ours']:+.1f} ({_interval(row['low'], row['high'], 1)})" for row in list(of.values())[1:]]
        rows.append([f"{key[0]:g} Mb/s, {key[1]}, {key[2]}", f"{of['distance_table3']['ours']:.2f}", *changes])
    headings = ["rate, buffer, window", "distance", "delta = 50 ms, %", "250 ms", "1000 ms"]
    return f"{seeds('fit_faster')} seeds.\n\n" + markdown(headings, rows)


def beyond() -> str:
    """The tables with other TCPs: a row per configuration, a column per TCP."""
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
    ("Conclusions", verdicts),
    ("Conclusions of the case study at a higher rate", faster),
    ("The fit, and how much the two main effects depend on it", fitted),
    ("Table 3 alone with more packets per flow", fitted_alone),
    ("Beyond the paper", beyond),
)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        try:
            collect(Path(given))
        except ExperimentError as error:
            sys.exit(f"error: {error}")
    COMMITTED.rewrite(SECTIONS)
