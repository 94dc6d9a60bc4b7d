"""An experiment's committed results, and the part of its README that is generated from them. It does not know their meaning."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from holdfast import whole_files
from holdfast.errors import ExperimentError

BEGIN, END = "<!-- from results/, by report.py: begin -->", "<!-- end -->"
"""What the generated part of a README stands between."""

SUFFIXES = (".csv", ".json", ".png", ".svg")

Sections = Sequence[tuple[str, Callable[[], str]]]
"""Headings, and what gives the text below each."""


@dataclass(frozen=True)
class Committed:
    """The results of the experiment whose folder this is: ``results/`` there, beside ``README.md``."""

    folder: Path

    @property
    def results(self) -> Path:
        """Where the results are."""
        return self.folder / "results"

    @property
    def readme(self) -> Path:
        """The file with the generated part."""
        return self.folder / "README.md"

    def collect(self, out: Path) -> None:
        """Copies the parts' files from where ``holdfast reproduce`` wrote them, but those that say why a part was skipped."""
        if not out.is_dir():
            raise ExperimentError(f"there is no folder {str(out)!r} that holdfast reproduce wrote")
        self.results.mkdir(exist_ok=True)
        for file in sorted(out.iterdir()):
            if file.suffix in SUFFIXES and not file.stem.endswith("_skipped"):
                shutil.copyfile(file, self.results / file.name)

    def read(self, name: str) -> pl.DataFrame:
        """A part's numbers, or another of its files."""
        return pl.read_csv(self.results / f"{name}.csv", infer_schema_length=None)

    def seeds(self, name: str) -> int:
        """With how many seeds, or in how many runs, a part was done."""
        return int(json.loads((self.results / f"{name}.json").read_text(encoding="utf-8"))["seeds"])

    def replaced(self, readme: str, sections: Sections) -> str:
        """A README with its generated part as the files have it."""
        before, _, rest = readme.partition(BEGIN)
        _, _, after = rest.partition(END)
        text = "\n\n".join(f"### {heading}\n\n{section()}" for heading, section in sections)
        return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"

    def rewrite(self, sections: Sections) -> None:
        """Writes the generated part anew."""
        text = self.replaced(self.readme.read_text(encoding="utf-8"), sections)
        whole_files.write_text(self.readme, text)


def collect_given(collect: Callable[[Path], None]) -> None:
    """Collects results from each folder on the command line."""
    for given in sys.argv[1:]:
        try:
            collect(Path(given))
        except ExperimentError as error:
            sys.exit(f"error: {error}")


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
