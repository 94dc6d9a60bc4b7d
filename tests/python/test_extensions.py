"""Things from outside the package, by place or by entry point: a fault is one sentence, and leaves the others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from holdfast_command import COMMAND, holdfast, holdfast_process

from holdfast.compare import mechanisms, results, scenario
from holdfast.compare.mechanism import Built, Mechanism
from holdfast.errors import ExtensionError, HoldfastError, ScenarioError
from holdfast.topologies import load, outside

ROOT = Path(__file__).parents[2]

MINE = """
from holdfast.apps.router import RouterController, compile_router
from holdfast.compare.mechanism import Built, Mechanism
from nearby_{name} import DELAY_MS

def build(setting):
    return Built(compile_router(), RouterController(reroute=True, reaction_delay_ms=DELAY_MS))

MINE = Mechanism("{name}", "somebody's", ("#0F766E", "#5EEAD4"), build)
"""

SHORT = ("--fail", "s1-s2", "--before-s", "0.3", "--down-s", "0.6", "--after-s", "0.1")


@pytest.fixture(autouse=True)
def path_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what loading adds to the path."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def offer(folder: Path, package: str, group: str = "mechanisms", **points: str) -> None:
    """Install a package into ``folder`` that offers mechanisms, or things of another group, by name, each at a place."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "RECORD").write_text("".join(f"{file.name},,\n" for file in folder.glob("*.py")))
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name.replace('_', '-')} = {place}" for name, place in points.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[holdfast.{group}]", *lines, ""]))


def write_mechanism(folder: Path, name: str, delay_ms: float = 20) -> Path:
    file = folder / f"mechanism_{name}.py"
    file.write_text(MINE.format(name=name))
    (folder / f"nearby_{name}.py").write_text(f"DELAY_MS = {delay_ms}\n")
    return file


def summaries(out: Path) -> dict[str, float]:
    found = json.loads((out / "summary.json").read_text())["mechanisms"]
    return {each["mechanism"]: each["lost_mean"] for each in found}


def runs_made(out: Path) -> int:
    return int(json.loads((out / "runs/sweep.json").read_text())["runs_of_this_call"])


FAULTS: list[tuple[str, str, str]] = [
    ("import nosuchmodule\n", ":X", r"away.py:X: .*away\.py:1: ModuleNotFoundError: No module named 'nosuchmodule'"),
    ("def f(:\n", ":X", r"away.py:X: .*away\.py:1: invalid syntax"),
    ("import sys\nsys.exit(3)\n", ":X", r"away.py:X: .*away\.py:2: it ends the process when it is imported"),
    ("\n1 / 0\n", ":X", r"away.py:X: .*away\.py:2: ZeroDivisionError: division by zero"),
    ("raise ValueError('two\\nlines')\n", ":X", r"ValueError: two lines"),
    ("from .near import X\n", ":X", r"no known parent package; a module of a package is given as MODULE:NAME"),
    ("", ":X", r"away\.py has no 'X'"),
    ("", "", r"write .*away\.py:NAME with the name of a mechanism; there are none"),
    ("X = 5\n", ":X", r"it is a int, not a holdfast.compare.mechanism.Mechanism"),
    ("from holdfast.compare.mechanism import Mechanism as X\n", ":X", r"it is the class Mechanism, not a"),
    (
        "{head}X = Mechanism('static', 'x', C, len)\n",
        ":X",
        r"its name 'static' is that of one of Holdfast's mechanisms",
    ),
    ("{head}X = Mechanism('1+1-bier', 'x', C, len)\n", ":X", r"its name '1\+1-bier' is that of one of Holdfast's"),
    ("{head}X = Mechanism('a b', 'x', C, len)\n", ":X", r"its name 'a b' is not 1 to 40 letters"),
    ("{head}X = Mechanism('', 'x', C, len)\n", ":X", r"its name '' is not 1 to 40 letters"),
    ("{head}X = Mechanism('a', 'x', ('red', 'blue'), len)\n", ":X", r"its colour \('red', 'blue'\) is not a pair"),
    ("{head}X = Mechanism('a', 'x', ('#000000',), len)\n", ":X", r"its colour .* is not a pair"),
    ("{head}X = Mechanism('a', 'x', C, 5)\n", ":X", r"its build is a int, not a function"),
    ("{head}X = Mechanism('a', 'x', C, len)\nY = Mechanism('b', 'x', C, len)\n", "", r"there are several \(X, Y\)"),
]


@pytest.mark.parametrize(("text", "name", "sentence"), FAULTS)
def test_a_fault_of_a_file_is_one_sentence_that_names_it(tmp_path: Path, text: str, name: str, sentence: str) -> None:
    head = "from holdfast.compare.mechanism import Mechanism\nC = ('#000000', '#ffffff')\n"
    (tmp_path / "away.py").write_text(text.replace("{head}", head))
    with pytest.raises(HoldfastError, match=sentence) as caught:
        mechanisms.outside(f"{tmp_path / 'away.py'}{name}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("nosuch.py:X", "there is no file 'nosuch.py'"),
        ("nosuchmodule:X", "there is no module 'nosuchmodule' here"),
        ("nosuch.module:X", "there is no module 'nosuch' here"),
        ("no-such:X", "write MODULE:NAME or FILE.py:NAME"),
        (":X", "write MODULE:NAME or FILE.py:NAME"),
        ("json:nothing.loads", "has no 'nothing.loads'"),
        ("json:loads", "it is a function, not a"),
    ],
)
def test_a_place_that_is_none_is_one_sentence(place: str, sentence: str) -> None:
    with pytest.raises(ExtensionError, match=re.escape(sentence)) as caught:
        mechanisms.outside(place)
    assert str(caught.value).startswith(place)


def test_a_file_that_is_called_as_a_module_of_python_takes_nobodys_place(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text(
        MINE.format(name="queued").replace("from nearby_queued import DELAY_MS", "DELAY_MS = 1")
    )
    found = mechanisms.outside(f"{tmp_path / 'queue.py'}:MINE")
    assert (found.name, found.origin) == ("queued", f"{tmp_path / 'queue.py'}:MINE")
    import queue

    assert not hasattr(queue, "MINE")
    again = mechanisms.outside(f"{tmp_path / 'queue.py'}")
    assert again.build is found.build, "it is imported once"


def test_two_mechanisms_of_one_name_are_refused(tmp_path: Path) -> None:
    one = write_mechanism(tmp_path, "same")
    (tmp_path / "other.py").write_text(one.read_text())
    with pytest.raises(ScenarioError, match="mechanism 'same' is given twice"):
        mechanisms.find([f"{one}:MINE", f"{tmp_path / 'other.py'}:MINE"])
    with pytest.raises(
        ScenarioError, match=r"there is no mechanism 'same' .*an own one is FILE.py:NAME or MODULE:NAME"
    ):
        mechanisms.find(["same"])


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (lambda built: None, "mechanism 'x' built a NoneType; its function returns a Built"),
        (lambda built: (built.program, built.controller), "mechanism 'x' built a tuple"),
        (lambda built: Built("a.p4", built.controller), "mechanism 'x': its program is a str, not a Program"),
        (lambda built: Built(built.program, type(built.controller)), "its controller is a type, not a Controller"),
    ],
)
def test_what_is_no_program_with_a_controller_is_refused(found: Callable[[Built], object], sentence: str) -> None:
    from holdfast.apps.router import RouterController, compile_router

    built = Built(compile_router(), RouterController(reroute=False, reaction_delay_ms=0))
    mechanism = Mechanism("x", "x", ("#000000", "#ffffff"), lambda setting: found(built))  # type: ignore[arg-type, return-value]
    with pytest.raises(ScenarioError, match=re.escape(sentence)):
        mechanism.built(None, telemetry=False)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="has no program that reports by INT"):
        mechanism.built(None, telemetry=True)  # type: ignore[arg-type]


def test_a_file_is_compared_and_measured_again_when_it_changes(tmp_path: Path) -> None:
    write_mechanism(tmp_path, "mine")
    command = (
        "compare",
        "ring:3",
        *SHORT,
        "--mechanisms",
        "reroute",
        "--mechanism",
        "mechanism_mine.py:MINE",
        "--out",
        "o",
    )

    def compare(*more: str) -> dict[str, float]:
        done = holdfast_process(*command, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return summaries(tmp_path / "o")

    before = compare("--jobs", "2")
    assert runs_made(tmp_path / "o") == 6
    assert before["mine"] < before["reroute"] < before["static"]
    page = (tmp_path / "o/report.html").read_text()
    assert "somebody&#39;s" in page and "#0F766E" in page
    assert compare("--jobs", "1") == before
    assert runs_made(tmp_path / "o") == 0
    # What it imports beside it: it reacts as late as the other.
    (tmp_path / "nearby_mine.py").write_text("DELAY_MS = 100\n")
    after = compare("--jobs", "1")
    assert runs_made(tmp_path / "o") == 2
    assert after["mine"] == after["reroute"]


def test_one_without_a_place_is_refused_before_anything_runs(tmp_path: Path) -> None:
    mechanism = Mechanism("stranger", "x", ("#000000", "#ffffff"), lambda setting: None)  # type: ignore[arg-type, return-value]
    built = scenario.build("ring:3", fail="s1-s2")
    with pytest.raises(
        ScenarioError, match="mechanism 'stranger' is not known to the processes that run it: give MODULE:NAME"
    ):
        results.run(built, [*mechanisms.find([]), mechanism], [1], tmp_path)
    assert not list(tmp_path.iterdir())


def test_one_is_compared_with_all_others_unless_they_are_named(tmp_path: Path) -> None:
    write_mechanism(tmp_path, "mine")
    done = holdfast_process(
        "compare", "line:2", *SHORT, "--mechanism", "mechanism_mine:MINE", "--out", "o", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert set(summaries(tmp_path / "o")) == {*mechanisms.MECHANISMS, "mine"}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a folder of installed packages: one mechanism works, the others do not, each in its way."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    write_mechanism(folder, "works")
    (folder / "broken.py").write_text("raise OSError('no such thing')\n")
    offer(folder, "good", works="mechanism_works:MINE", renamed="mechanism_works:MINE")
    offer(folder, "bad", broken="broken:X", static="mechanism_works:MINE", absent="mechanism_works:NOTHING")
    offer(folder, "first", both="mechanism_works:MINE")
    offer(folder, "second", both="broken:X")
    return folder


def run_with(packages: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command where ``packages`` is a folder of installed packages."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [*(each for each in COMMAND if each not in ("-I", "-E", "-s")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False, env=environment)


def test_a_broken_package_is_named_and_leaves_the_others(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = run_with(installed, "extensions", cwd=tmp_path)
    assert listed.returncode == 1 and "Traceback" not in listed.stderr + listed.stdout
    lines = {line.split()[0]: line for line in listed.stdout.splitlines() if line.startswith("  ")}
    assert lines["works"] == "  works (mechanism_works:MINE, good 1.0)"
    assert "'broken' of bad 1.0: broken:X: " in lines["broken"] and "OSError: no such thing" in lines["broken"]
    assert "'static' is the name of one of Holdfast's own" in lines["static"]
    assert "has no 'NOTHING'" in lines["absent"]
    assert "is offered by first 1.0 (mechanism_works:MINE) and second 1.0 (broken:X)" in lines["both"]

    monkeypatch.syspath_prepend(str(installed))

    def compare(names: str) -> subprocess.CompletedProcess[str]:
        return holdfast("compare", "ring:3", *SHORT, "--mechanisms", names, "--out", "o", "--jobs", "1", cwd=tmp_path)

    for name, sentence in (
        ("broken", "mechanisms: 'broken' of bad 1.0: broken:X: "),
        ("both", "mechanism 'both' is offered by"),
        ("renamed", "mechanism 'renamed' of an installed package calls itself 'works'"),
        ("none", "there is no mechanism 'none' (known: static, "),
    ):
        done = compare(name)
        assert done.returncode == 1 and done.stderr.startswith(f"error: {sentence}"), done.stderr
        assert done.stderr.count("\n") == 1
    # Holdfast's own name is Holdfast's own.
    assert compare("static").returncode == 0
    assert set(summaries(tmp_path / "o")) == {"static"}


def test_an_installed_mechanism_is_measured_again_when_it_changes(installed: Path, tmp_path: Path) -> None:
    def compare() -> float:
        command = (
            "compare",
            "ring:3",
            *SHORT,
            "--mechanism",
            "works",
            "--mechanisms",
            "static",
            "--out",
            "o",
            "--jobs",
            "1",
        )
        done = run_with(installed, *command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return summaries(tmp_path / "o")["works"]

    before = compare()
    assert runs_made(tmp_path / "o") == 4
    assert compare() == before and runs_made(tmp_path / "o") == 0
    # A module of the same distribution that it imports.
    (installed / "nearby_works.py").write_text("DELAY_MS = 200\n")
    assert compare() > before and runs_made(tmp_path / "o") == 2
    file = installed / "mechanism_works.py"
    file.write_text(file.read_text().replace("reroute=True", "reroute=False"))
    compare()
    assert runs_made(tmp_path / "o") == 2


def test_an_installed_package_never_runs_a_file_of_the_working_directory(installed: Path, tmp_path: Path) -> None:
    offer(installed, "careless", gone="gone_module:X")
    (tmp_path / "gone_module.py").write_text("raise SystemExit('it ran')\n")
    (tmp_path / "mechanism_works.py").write_text("raise SystemExit('it ran')\n")
    done = run_with(installed, "compare", "ring:3", *SHORT, "--mechanisms", "gone", "--out", "o", cwd=tmp_path)
    assert done.returncode == 1 and "there is no module 'gone_module' here" in done.stderr
    done = run_with(
        installed, "compare", "ring:3", *SHORT, "--mechanisms", "works", "--out", "o", "--jobs", "1", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


OWN = """
from holdfast import Topology

def row(size, delay_ms: float = 1.0, unknown=2):
    topology = Topology(f"row {size}")
    for number in range(size):
        topology.add_switch(f"s{number}")
        topology.add_host(f"h{number}")
        topology.add_link(f"h{number}", f"s{number}", delay_ms=delay_ms)
        if number:
            topology.add_link(f"s{number - 1}", f"s{number}", delay_ms=unknown)
    return topology

def broken(size: int):
    return {}[size]

def nothing():
    return None

def one_host():
    topology = Topology("one")
    topology.add_host("h1")
    topology.add_host("h1")

def lines(path):
    return row(int(path.read_text()))

def pairs(topology):
    first, *others = topology.hosts
    return {"udp": [{"source": first, "destination": each} for each in others]}

def wrong(topology):
    return {"udp": [{"packets_per_second": 3}]}

NUMBER = 5
"""


def test_a_topology_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    own = f"{tmp_path / 'own.py'}"
    topology = load(f"{own}:row:3,delay_ms=0.25,unknown=1.5")
    assert (topology.name, len(topology.switches)) == ("row 3", 3)
    assert {link.delay_ms for link in topology.links} == {0.25, 1.5}
    for text, sentence in (
        ("row", "write .*own.py:row:SIZE"),
        ("row:3,size=4", "'size=4' is not a size or a parameter; write .*own.py:row:SIZE"),
        ("row:3,delay_ms=x", "delay_ms is 'x'; a number is expected"),
        ("broken:3", r"own.py:broken:3: .*own.py:15: KeyError: 3"),
        ("nothing", "this topology returned a NoneType, not a Topology"),
        ("one_host", "own.py:one_host: node 'h1' is declared twice"),
        ("NUMBER", "it is a int, not a function that returns a Topology"),
        ("absent:3", "has no 'absent'"),
    ):
        with pytest.raises(HoldfastError, match=sentence) as caught:
            load(f"{own}:{text}")
        assert "\n" not in str(caught.value)


def test_installed_topologies_importers_and_traffic_are_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "own_things.py").write_text(OWN)
    offer(packages, "rows", "topologies", row="own_things:row", ring="own_things:row", mininet="own_things:row")
    offer(packages, "lines", "importers", lines="own_things:lines", bad="own_things:nothing")
    offer(
        packages, "loads", "traffic", pairs="own_things:pairs", wrong="own_things:wrong", multicast="own_things:pairs"
    )
    monkeypatch.syspath_prepend(str(packages))
    assert load("row:4").name == "row 4"
    assert load("ring:4").name == "ring_4", "Holdfast's own name is Holdfast's own"
    (tmp_path / "size.yaml").write_text("5")
    assert len(load(f"lines:{tmp_path / 'size.yaml'}").switches) == 5
    with pytest.raises(HoldfastError, match=r"there is no topology 'rowe'; did you mean 'row'\?; a file ends in"):
        load("rowe:4")
    with pytest.raises(HoldfastError, match=r"bad:x: .*TypeError"):
        load("bad:x")
    built = scenario.build("row:3", fail="s0-s1", traffic="pairs")
    assert [entry.destination for entry in built.traffic.udp] == ["h1", "h2"]
    with pytest.raises(HoldfastError, match=r"wrong: udp.0.packets_per_second: unknown key"):
        scenario.build("row:3", fail="s0-s1", traffic="wrong")
    with pytest.raises(HoldfastError, match="there is no traffic 'none'"):
        scenario.build("row:3", fail="s0-s1", traffic="none")
    assert {each.name: each.error is None for each in outside.GENERATED.installed()} == {
        "row": True,
        "ring": False,
        "mininet": False,
    }
