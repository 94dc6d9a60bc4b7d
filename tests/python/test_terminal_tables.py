"""The tables of all commands in a terminal of 80 columns: nothing is cut, no word is broken, and every number is there."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import typer
from holdfast_command import holdfast
from rich.console import Console as Plain
from rich.table import Table

from holdfast import benchmark, cli, experiments, reproduce
from holdfast.apps.firewall import report as firewall
from holdfast.apps.telemetry import showing
from holdfast.live import benchmark as live_benchmark
from holdfast.live.switch import statistics_table
from holdfast.measurements import ProgramMeasurement, SimulationMeasurement, TableMeasurement
from holdfast.terminal import Grid

WIDTH = 80


def shown(table: Any, width: int = WIDTH) -> str:
    said = io.StringIO()
    Plain(file=said, width=width, color_system=None).print(table)
    return said.getvalue()


def check(text: str, width: int = WIDTH) -> None:
    for line in text.splitlines():
        assert len(line.rstrip()) <= width, line
        assert "…" not in line, line
        # A heading or a word that goes on in the next line.
        assert not re.search(r"[a-z]-( |$)", line.replace(" - ", "   ")), line


def made_up(kind: type, names: Iterable[str], **changes: object) -> list[Any]:
    """Return measurements of ``kind`` with large numbers, one for each name."""
    found = []
    for name in names:
        values = {each.name: 123_456.789 for each in dataclasses.fields(kind)}
        first = dataclasses.fields(kind)[0].name
        found.append(SimpleNamespace(**{**values, first: name, **changes}))
    return found


PROGRAMS = ["telemetry_transit", "protect_ingress", "router", "l2"]


@pytest.mark.parametrize(
    ("table", "last"),
    [
        (
            benchmark.table(made_up(ProgramMeasurement, PROGRAMS, packets_per_s=2.5e7, size_bytes=1500, ratio=0.97)),
            "0.97",
        ),
        (benchmark.table_of_simulations(made_up(SimulationMeasurement, ["fat-tree, UDP", "ring"], packets=10**9)), "1"),
        (benchmark.table_of_tables(made_up(TableMeasurement, ["exact", "ternary"], entries=1_000_000)), "123457"),
        (live_benchmark.table(made_up(live_benchmark.LiveResult, PROGRAMS, loss=0.125, ns_per_packet=987.0)), "987"),
    ],
)
def test_benchmarks(table: Grid, last: str) -> None:
    text = shown(table)
    check(text)
    assert last in text
    check(shown(table, 50), 50)


def test_all_comparisons_with_papers() -> None:
    """Print each committed table of a comparison; its last column is there, of whichever width."""
    count = 0
    for experiment in reproduce.everything():
        folder = Path(experiments.__file__).parent / experiment.name / "results"
        for part in experiment.parts:
            path = folder / f"{part.name}.csv"
            if not path.exists():
                continue
            frame = pl.read_csv(path, infer_schema_length=None)
            if "quantity" not in frame.columns or (part.published is not None and "verdict" not in frame.columns):
                continue
            text = shown(reproduce.table(part, frame))
            assert "…" not in text and all(len(line.rstrip()) <= WIDTH for line in text.splitlines()), (path, text)
            assert "ours" in text and "interval" in text
            if part.published is not None:
                verdicts = set(frame["verdict"].drop_nulls())
                assert all(verdict.split()[0] in text for verdict in verdicts)
            count += 1
    assert count > 20


def test_other_tables() -> None:
    ports = [
        {
            "port": number,
            "interface": f"a-long-name-{number}",
            **dict.fromkeys(("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_errors", "tx_drops"), 10**13),
            **dict.fromkeys(("rx_overrun_drops", "rx_oversized_drops", "rx_checksums_completed"), 10**13),
        }
        for number in (1, 2)
    ]
    text = shown(statistics_table(ports))
    check(text)
    assert text.count(str(10**13)) == 2 * 9
    dropped = firewall.Counts(
        {}, {"a reason that has many words, and goes on for longer than others do": (10**13, 10**15)}
    )
    check(shown(firewall.drops_table(dropped)))
    check(shown(reproduce.listing(reproduce.everything())).replace("VI-A", ""))
    flow = SimpleNamespace(
        reports=10**9, path=list(range(30)), path_changes=10**6, latency_last=10**8, latency_max=10**8, drops=10**6
    )
    collector: Any = SimpleNamespace(
        counts=lambda: SimpleNamespace(flows=1, hops=1),
        flows=lambda most: {"10.0.1.1:50000 > 10.0.2.1:50001 udp": flow},
    )
    text = shown(showing.flow_table(collector))
    assert "…" not in text and all(str(hop) in text for hop in flow.path)


def test_columns_that_do_not_fit_are_below() -> None:
    table = Grid(title="a title", legend=["what it means"])
    table.add_names("name")
    table.add_numbers(*(f"column{i}" for i in range(9)))
    for row in range(3):
        table.add_row(f"row{row}", *(f"{row}{i}{'0' * 6}" for i in range(9)))
    text = shown(table, 50)
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[0] == "a title" and lines[-1] == "what it means"
    assert [line for line in lines if line.startswith("name")] == [
        "name  column0  column1  column2  column3  column4",
        "name  column5  column6  column7  column8",
    ]
    for row in range(3):
        for i in range(9):
            assert f"{row}{i}000000" in text
    assert isinstance(table, Table) and table.row_count == 3


@pytest.mark.parametrize(
    "command",
    [
        "compare ring:3 --mechanisms reroute,mpls-loopback,1+1-vector --jobs 1 --before-s 0.1 --down-s 0.3 --after-s 0.1",
        "compare ring:3 --coverage",
        "compare ring:4 --coverage --fail pairs --mechanisms reroute,ip-frr",
        "doctor",
        "extensions",
        "reproduce --list",
        "topology ring:5",
    ],
)
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    done = holdfast(*command.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout
    # Paths and addresses are whole, and one line.
    kept = [line for line in done.stdout.splitlines() if not line.startswith("results in")]
    if "compare" in command:
        check("\n".join(kept))
    assert done.stdout.strip()


def test_the_help_of_compare_is_one_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    lines = holdfast("compare", "--help").stdout.splitlines()
    assert 24 <= len(lines) <= 40 and all(len(line) <= WIDTH for line in lines)
    options = {parameter.opts[-1] for parameter in typer.main.get_command(cli.app).commands["compare"].params}  # type: ignore[attr-defined]
    shown = {line.split()[0] for line in lines if line.startswith("  --")}
    assert options - {"topology"} <= shown
