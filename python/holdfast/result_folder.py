"""Opens the folder that a comparison, a sweep or a collector has written: its tables as data frames, and its summary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from holdfast.errors import ResultError
from holdfast.regular_files import read_regular
from holdfast.suggestions import alternatives

if TYPE_CHECKING:
    import pandas as pd

MOST_SUMMARY_BYTES = 64 << 20


class ResultFolder:
    """A folder of results. Its tables are its files ``*.parquet``, by name: ``folder["cases"]`` is a polars data frame.

    docs/FORMATS.md says what the columns are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = {file.stem: file for file in sorted(folder.glob("*.parquet")) if file.is_file()}
        if not self._files:
            raise ResultError(f"{folder}: there are no results here, no file .parquet")

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, name: str) -> pl.DataFrame:
        """Return a table. Raise :class:`ResultError` if there is none of this name, or if its file is damaged."""
        if name not in self._files:
            raise ResultError(f"{self.folder}: there is no table {name!r}{alternatives(name, self._files)}")
        with self._reading(name) as file:
            return pl.read_parquet(file)

    @contextmanager
    def _reading(self, name: str) -> Iterator[Path]:
        """Yield the path of a table's file; raise :class:`ResultError` for what goes wrong within the context."""
        try:
            yield self._files[name]
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ResultError(f"{self._files[name]}: it cannot be read as Parquet: {error}") from None

    def pandas(self, name: str) -> pd.DataFrame:
        """Return a table as a pandas data frame, which needs the extra ``holdfast[pandas]``. Raise :class:`ResultError`."""
        try:
            return self[name].to_pandas()
        except ImportError as error:
            raise ResultError(f"pandas is not installed here ({error}); pip install 'holdfast[pandas]'") from None

    @property
    def summary(self) -> dict[str, Any]:
        """The content of ``summary.json``, or of ``sweep.json`` of a sweep; empty if there is neither.

        Raise :class:`ResultError` if it is damaged.
        """
        return self.summary_of(self.folder)

    @staticmethod
    def summary_of(folder: Path) -> dict[str, Any]:
        """Return the same of a folder that may have no table. Raise :class:`ResultError` likewise."""
        for name in ("summary.json", "sweep.json"):
            if (file := folder / name).is_file():
                try:
                    found = json.loads(read_regular(file, MOST_SUMMARY_BYTES, ResultError))
                except ValueError as error:
                    raise ResultError(f"{file}: not JSON: {error}") from None
                if not isinstance(found, dict):
                    raise ResultError(f"{file}: an object is expected")
                return found
        return {}

    def __repr__(self) -> str:
        return f"ResultFolder({str(self.folder)!r}: {', '.join(self._files)})"

    def _repr_html_(self) -> str:
        """Return the tables with their columns, and the summary's advice, for notebooks."""
        from holdfast import notebook

        names = {}
        for name in self:
            with self._reading(name) as file:
                names[name] = list(pl.read_parquet_schema(file))
        return notebook.frame_names(names, f"{self.folder}: {self.summary.get('advice', 'results')}")


def read(folder: str | Path) -> ResultFolder:
    """Open a folder of results. Raise :class:`ResultError` if it has none."""
    return ResultFolder(Path(folder))


__all__ = ["ResultFolder", "read"]
