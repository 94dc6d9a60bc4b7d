"""docs/FORMATS.md is what the models and tables say, and the words of columns are those of the tables."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest
import yaml
from formats_page import page

from holdfast.apps.telemetry import rows as telemetry_rows
from holdfast.compare import columns, mechanisms, results, scenario

PAGE = Path(__file__).parents[2] / "docs/FORMATS.md"


def test_the_page_is_up_to_date() -> None:
    if os.environ.get("UPDATE_EXPECT"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "UPDATE_EXPECT=1 makes it anew"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all tables of a comparison of networks."""
    folder = tmp_path_factory.mktemp("compared")
    traffic = {
        "pairs": [["h1", "h2"]],
        "udp": [{"packets_per_s": 100}, {"source": "h1", "receivers": ["h2", "h3"], "packets_per_s": 100}],
        "tcp": [{}, {"transfer_bytes": 1000}],
    }
    (folder / "traffic.yaml").write_text(yaml.safe_dump(traffic))
    when: dict[str, float | None] = {"before_s": 0.2, "down_s": 0.2, "after_s": 0.1}
    given = scenario.build("ring:3", fail="s1-s2", when=when, traffic=folder / "traffic.yaml", telemetry=True)
    results.run(given, mechanisms.find(["reroute"]), [1], folder)
    return folder


@pytest.mark.parametrize("name", columns.NETWORKS)
def test_columns_of_a_comparison_are_described(out: Path, name: str) -> None:
    frame = pl.read_parquet(out / f"{name}.parquet")
    assert frame.columns == list(columns.NETWORKS[name])


def test_columns_of_runs_are_described(out: Path) -> None:
    found = set(pl.read_parquet(out / "runs/rows.parquet").columns)
    assert found <= set(columns.RUNS)
    live = {"mean_lateness_ms", "max_lateness_ms", "sender_lateness_ms", "repeated", "origin", "attempt"}
    assert set(columns.RUNS) - found <= live


def test_columns_of_reports_are_described() -> None:
    assert list(telemetry_rows.COLUMNS) == list(telemetry_rows.SCHEMA)
