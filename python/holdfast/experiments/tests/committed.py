"""An experiment's committed results, and the part of its README that is generated from them. It does not know their meaning.

An experiment's ``tests/report.py`` says what the tables are, and ``tests/test_results.py`` checks that they are what the files say.
:mod:`holdfast.reproduce` makes the results.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import polars as pl

from holdfast import reproduce, whole_files
from holdfast.errors import ExperimentError
from holdfast.experiments import BY_DEFINITION, DIFFERS, Experiment, Finding, Setting

BEGIN, END = "<!-- from results/, by report.py: begin -->", "<!-- end -->"
"""The markers around the generated part of a README."""

SUFFIXES = (".csv", ".json", ".png", ".svg")

Sections = Sequence[tuple[str, Callable[[], str]]]
"""Headings, and the function that returns the text below each."""


@dataclass(frozen=True)
class Committed:
    """The results of an experiment: ``results/`` in its folder, beside ``README.md``."""

    experiment: Experiment
    folder: Path

    @property
    def results(self) -> Path:
        """The directory of the results."""
        return self.folder / "results"

    @property
    def readme(self) -> Path:
        """The file with the generated part."""
        return self.folder / "README.md"

    def collect(self, out: Path) -> None:
        """Copy the parts' files from ``out``, where ``holdfast reproduce`` wrote them, except reasons for skipped parts.

        Raise :class:`ExperimentError` if there is no such folder.
        """
        if not out.is_dir():
            raise ExperimentError(f"there is no folder {str(out)!r} that holdfast reproduce wrote")
        self.results.mkdir(exist_ok=True)
        for file in sorted(out.iterdir()):
            if file.suffix in SUFFIXES and not file.stem.endswith("_skipped"):
                shutil.copyfile(file, self.results / file.name)

    def read(self, name: str) -> pl.DataFrame:
        """Return the committed file ``<name>.csv``: the numbers of a part, or another of its tables."""
        return pl.read_csv(self.results / f"{name}.csv", infer_schema_length=None)

    def seeds(self, name: str) -> int:
        """Return the number of seeds, or of runs, with which the part ``name`` was made."""
        return int(json.loads((self.results / f"{name}.json").read_text(encoding="utf-8"))["seeds"])

    def replaced(self, sections: Sections) -> str:
        """Return the README's text with its generated part made anew from the committed files."""
        before, _, rest = self.readme.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        text = "\n\n".join(f"### {heading}\n\n{section()}" for heading, section in sections)
        return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"

    def regenerate(
        self,
        sections: Sections,
        found_again: Callable[[str], Finding] | None = None,
        collect: Callable[[Path], None] | None = None,
    ) -> None:
        """Run ``report.py``: collect the results in each folder on the command line, and write the README's tables anew.

        ``found_again``: returns the finding of a part's committed runs, from which its numbers and pictures are written anew.
        ``collect``: the function called instead of :meth:`collect`.
        """
        for given in sys.argv[1:]:
            try:
                (collect or self.collect)(Path(given))
            except ExperimentError as error:
                sys.exit(f"error: {error}")
        if found_again is not None:
            for part in self.experiment.parts:
                setting = Setting(tuple(range(1, self.seeds(part.name) + 1)), self.results)
                reproduce.write(setting, part, found_again(part.name))
        whole_files.write_text(self.readme, self.replaced(sections))

    def check_numbers(self, part: str, finding: Finding) -> None:
        """Assert that a part's committed numbers and verdicts equal those of ``finding``, computed from its committed runs."""
        for figure in finding.figures.values():
            plt.close(figure)
        kept = self.read(part)
        again = reproduce.compare(self.experiment.part(part), finding, self.seeds(part))
        assert again is not None
        assert kept.columns == again.columns
        keys = again.columns[: again.columns.index("quantity") + 1]
        assert kept.select(keys).rows() == again.select(keys).rows()
        if "verdict" in kept.columns:
            assert kept["verdict"].to_list() == again["verdict"].to_list()
        for name in ("ours", "low", "high"):
            for before, now in zip(kept[name].to_list(), again[name].to_list(), strict=True):
                # Values of figures are rounded; neither or both are absent.
                assert before == now or math.isclose(before, now, rel_tol=1e-4, abs_tol=1e-4), (name, before, now)

    def beside(self, decimals: Mapping[str, int]) -> tuple[str, str]:
        """Return a sentence that sums up the verdicts, and a Markdown table of every number of the paper beside ours.

        ``decimals``: the parts, with the decimals of their numbers.
        """
        rows, compared, because = [], [], []
        for name in decimals:
            table = self.experiment.part(name).published
            assert table is not None
            frame = self.read(name).drop_nulls("paper")
            compared.append(frame.select("paper", "verdict"))
            keys = frame.columns[: frame.columns.index("quantity")]
            for row in frame.iter_rows(named=True):
                judged = row["verdict"] != BY_DEFINITION
                rows.append(
                    [
                        name,
                        ", ".join(str(row[key]) for key in keys),
                        row["quantity"].replace("_", " "),
                        f"{row['paper']:g}",
                        number(row, decimals[name]),
                        f"{table.criteria[row['quantity']].margin:g}" if judged else "",
                        row["verdict"] if row["verdict"] != DIFFERS else f"**{DIFFERS}**",
                    ]
                )
            because += [
                f"- {name}, {column.replace('_', ' ')}: {criterion.margin:g}: {criterion.reason}."
                for column, criterion in table.criteria.items()
                if criterion.by_definition is None
            ]
        listed = markdown(["part", "", "", "paper", "ours", "margin", ""], rows)
        words = reproduce.in_words(pl.concat(compared))
        return words, f"{listed}\n\nThe margins:\n\n" + "\n".join(because)


def number(row: Mapping[str, Any] | None, decimals: int) -> str:
    """Format a number with its interval; without the interval if nothing is random or there was one run.

    The text is empty if ``row`` is None.
    """
    if row is None:
        return ""
    text = f"{row['ours']:.{decimals}f}"
    if row["low"] is None:
        return text
    low, high = (f"{row[name]:.{decimals}f}" for name in ("low", "high"))
    return text if low == text == high else f"{text} ({low} .. {high})"


def found(frame: pl.DataFrame, **wanted: Any) -> Mapping[str, Any] | None:
    """Return the first row whose columns have these values, or None if no row has."""
    rows = frame.filter(*(pl.col(name) == value for name, value in wanted.items()))
    return rows.row(0, named=True) if len(rows) else None


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with these headings and rows."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
