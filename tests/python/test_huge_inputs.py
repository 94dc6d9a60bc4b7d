"""Huge inputs to every command that takes a file: an answer comes soon, and is at most a screen or two."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import HoldfastError, yaml_model
from holdfast._core import write_pcap
from holdfast.cli import app
from holdfast.errors import ScenarioError
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.terminal import MOST_COLUMNS, MOST_LINES, excerpt, screenful
from holdfast.topologies import load

ROOT = Path(__file__).parents[2]
MOST_OUTPUT = 48_000
"""Characters of an answer at most: sixty lines of up to 400, with what they are printed in, on both streams."""
MOST_CPU_S = 15.0
"""The most processor time of a command on a machine that is busy."""

NAME = "n" * 2_000_000

Text = Callable[[], str]
"""A large text is made when it is needed."""
EXAMPLE = str(ROOT / "tests/p4runtime/basic.p4")


def yaml_texts() -> Iterator[tuple[str, Text]]:
    """Yield (name, text) of YAML documents of several kinds, as large as files may be."""
    yield "a name", lambda: f"{NAME}: 1\n"
    yield "a text", lambda: f"tables: {NAME}\n"
    yield "a comment", lambda: f"# {NAME}\ntables: 1\n"
    yield "many keys", lambda: "".join(f"k{i}: {i}\n" for i in range(150_000))
    yield "a list", lambda: "tables: [" + "1, " * 400_000 + "]\n"
    yield "many mistakes", lambda: "rules: [" + "{x: 1}, " * 20_000 + "]\n"
    yield "open brackets", lambda: "[" * 1_000_000
    yield "aliases", lambda: "a: &a [1, 2]\nb: [" + "*a, " * 200_000 + "]\n"
    yield "a doubled name", lambda: f"{NAME}: 1\n{NAME}: 2\n"
    yield "no YAML", lambda: f"a: b: {NAME}\n"
    yield "an unknown alias", lambda: f"a: *{NAME}\n"
    yield "tabs", lambda: "\t" * 2_000_000
    yield "a tag", lambda: f"a: !{NAME} 1\n"
    yield "a large number", lambda: "a: " + "9" * 1_000_000 + "\n"


def p4_texts() -> Iterator[tuple[str, Text]]:
    yield "a name", lambda: f"const bit<8> x = {NAME};\n"
    yield "a long line", lambda: "const bit<8> x = " + "1+" * 400_000 + "y;\n"
    yield "many errors", lambda: "".join(f"const bit<8> x{i} = y{i};\n" for i in range(50_000))
    yield "brackets", lambda: "const bit<8> x = " + "(" * 500_000 + ";\n"
    yield "a string", lambda: f'@brief("{NAME}") const bit<8> x = y;\n'
    yield "a macro", lambda: f"#define A {NAME}\nconst bit<8> x = A;\n"
    yield "an include", lambda: f'#include "{NAME}"\n'
    yield "a directive", lambda: f"#error {NAME}\n"
    yield "an artifact", lambda: f"holdfast_ir {NAME}\n"
    yield "an artifact of many lines", lambda: "holdfast_ir 2\n" + "x y z\n" * 300_000


def commands(folder: Path) -> Iterator[tuple[str, list[str], Path, Text]]:
    """Yield (name, arguments, file, its contents) of commands that read a large file."""
    for what, text in yaml_texts():
        file = folder / "file.yaml"
        yield f"topology: {what}", ["topology", str(file)], file, text
        yield f"firewall: {what}", ["firewall", "check", str(file)], file, text
        yield f"entries: {what}", ["trace", EXAMPLE, "--packet", "00", "--entries", str(file)], file, text
        yield f"traffic: {what}", ["compare", "ring:3", "--traffic", str(file)], file, text
    for what, text in p4_texts():
        file = folder / "file.p4"
        yield f"compile: {what}", ["compile", str(file)], file, text
        yield f"check: {what}", ["compile", "--check", str(file)], file, text
    graphml = folder / "file.graphml"
    yield "graphml: a name", ["topology", str(graphml)], graphml, lambda: f"<graphml><{NAME}/></graphml>"
    yield "graphml: deep", ["topology", str(graphml)], graphml, lambda: "<a>" * 500_000
    p4info = folder / "p4info.txtpb"
    given = ["trace", str(folder / "basic.holdfast"), "--packet", "00", "--p4info", str(p4info), "--entries", "none"]
    yield "P4Info: a name", given, p4info, lambda: NAME
    stf = folder / "script.stf"
    yield "stf: a name", ["stf", EXAMPLE, str(stf)], stf, lambda: f"{NAME}\n"
    yield "stf: lines", ["stf", EXAMPLE, str(stf)], stf, lambda: "packet 0 zz\n" * 300_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("huge")
    assert (
        invoke("compile", EXAMPLE, "-o", str(found / "basic.holdfast"), "--p4info", str(found / "own.txtpb")).exit_code
        == 0
    )
    return found


def invoke(*arguments: str) -> Any:
    """Run a command in this process, as starting a process for each would take long."""
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})


NAMES = [name for name, *_ in commands(Path())]


@pytest.mark.parametrize("name", NAMES)
def test_a_huge_file_has_a_short_answer(folder: Path, name: str) -> None:
    arguments, file, text = next(rest for of, *rest in commands(folder) if of == name)
    file.write_text(text())
    begin = time.process_time()
    done = invoke(*arguments)
    assert time.process_time() - begin <= MOST_CPU_S
    answer = done.output
    if isinstance(done.exception, HoldfastError):
        answer += str(done.exception)  # the program's main prints it, in at most a screen
    else:
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)[:1000]
    assert len(answer) <= MOST_OUTPUT, answer[:1000]
    assert done.exit_code in (0, 1, 2)


def test_a_trace_of_much(folder: Path) -> None:
    capture = folder / "many.pcap"
    write_pcap(str(capture), [(at, bytes(9000)) for at in range(5000)])
    done = invoke("trace", EXAMPLE, "--packet", str(capture))
    assert "4900 more packets are not shown: --packets 5000 shows them" in done.output
    for packet in (str(capture), "00" * 60_000):
        done = invoke("trace", EXAMPLE, "--packet", packet)
        assert done.exit_code == 0, done.output[:1000]
        assert len(done.output) < 200_000


def test_a_screen() -> None:
    assert screenful("a\nb") == "a\nb"
    lines = [str(at) for at in range(MOST_LINES + 5)]
    assert screenful("\n".join(lines)).split("\n") == [*lines[:MOST_LINES], "... and 5 more lines"]
    assert excerpt("x" * MOST_COLUMNS) == "x" * MOST_COLUMNS
    assert excerpt("x" * (MOST_COLUMNS + 7)) == "x" * MOST_COLUMNS + "... (7 more characters)"


@pytest.mark.parametrize("make", [lambda text: P4RuntimeError("UNKNOWN", text)], ids=["P4Runtime"])
def test_an_error_is_cut(make: Callable[[str], HoldfastError]) -> None:
    assert len(str(make(NAME))) < 3000


def test_a_file_with_too_many_values_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    file.write_text("[" + "1, " * (yaml_model.MOST_VALUES + 1) + "]")
    with pytest.raises(ScenarioError, match="it has more than 100000 keys and values: divide it into several files"):
        yaml_model.read(file, yaml_model.BaseModel)
    file.write_bytes(b"# " + b"x" * yaml_model.MOST_BYTES)
    with pytest.raises(ScenarioError, match="longer than 4 MiB"):
        yaml_model.read(file, yaml_model.BaseModel)


def test_a_large_topology_loads(tmp_path: Path) -> None:
    """Checks that what is generated can be written and read again."""
    file = tmp_path / "large.yaml"
    topology = load("fat-tree:24")
    file.write_text(topology.to_yaml())
    again = load(str(file))
    assert len(again.links) == len(topology.links) > 10_000
