"""A mechanism from outside Holdfast that is edited is measured again: its old results are those of another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from holdfast import fingerprint
from holdfast.compare import mechanisms

MODULE = '''
"""A mechanism of somebody else."""

import importlib
from pathlib import Path

from holdfast._core import Program
from holdfast.apps.router import RouterController
from holdfast.compare.mechanism import Built, Mechanism, Setting
from outside_helper import delay_ms
import outside_package.near

HERE = Path(__file__).parent


class Controller(RouterController):
    """Reroutes."""


def build(setting: Setting, extra_ms: float = 0.0) -> Built:
    later = importlib.import_module("outside_later")
    program = Program.compile(str(HERE / "p4" / "mine.p4"), [str(HERE.parent / "include")])
    settings = (HERE / "settings.txt").read_text()
    table = [(HERE / "tables" / f"{kind}.csv").read_text() for kind in ("one",)]
    return Built(program, Controller(reroute=True, reaction_delay_ms=delay_ms() + extra_ms + later.MORE_MS + float(settings)))


MECHANISM = Mechanism("outside", "somebody else's", ("#000000", "#ffffff"), build)
'''

RUN = """
import sys
from pathlib import Path
import outside_mechanism
from holdfast.compare import mechanisms, results, scenario

mechanisms.MECHANISMS["outside"] = outside_mechanism.MECHANISM
when = {"before_s": 0.3, "down_s": 0.6, "after_s": 0.1}
traffic = Path(sys.argv[2]) if len(sys.argv) > 2 else None
if __name__ == "__main__":
    built = scenario.build(sys.argv[1], fail="s1-s2", when=when, traffic=traffic)
    results.run(built, mechanisms.find(["outside"]), [1], Path("out"), jobs=int(sys.argv[3]) if len(sys.argv) > 3 else 1)
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Create the folder of a mechanism from outside the package, with all files that the mechanism can read; return it."""
    folder = tmp_path / "project" / "mechanism"
    router = (Path(fingerprint.ROOT) / "apps/router/router.p4").read_text()
    files = {
        "outside_mechanism.py": MODULE,
        "outside_helper.py": "from outside_deeper import BASE_MS\n\n\ndef delay_ms():\n    return BASE_MS\n",
        "outside_deeper.py": "BASE_MS = 20.0\n",
        "outside_later.py": "MORE_MS = 0.0\n",
        "outside_package/__init__.py": "",
        "outside_package/near.py": "from .nearer import X\n",
        "outside_package/nearer.py": "X = 1\n",
        "outside_unused.py": "X = 1\n",
        "notes.txt": "nothing\n",
        "settings.txt": "1.0\n",
        "tables/one.csv": "1,2\n",
        "p4/mine.p4": f'#include "own.h"\n#include "../../include/shared.p4inc"\n{router}',
        "p4/own.h": '#include "deep.h"\n',
        "p4/deep.h": "// deep\n",
        "../include/shared.p4inc": "// shared\n",
        "../../common.p4": (Path(fingerprint.ROOT) / "apps/headers.p4").read_text(),
        "run.py": RUN,
    }
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    # The router's program includes these beside its own folder.
    for shared in ("headers.p4", "discovery.p4"):
        (folder / shared).write_text((Path(fingerprint.ROOT) / "apps" / shared).read_text())
    for included in (Path(fingerprint.ROOT) / "apps/router").glob("*.p4"):
        if included.name != "router.p4":
            (folder / "p4" / included.name).write_text(included.read_text())
    return folder


@pytest.fixture
def module(outside: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(outside))
    import outside_mechanism  # type: ignore[import-not-found]

    yield outside_mechanism
    for name in [name for name in sys.modules if name.startswith("outside_")]:
        del sys.modules[name]


EDITED = (
    "outside_mechanism.py",
    "outside_helper.py",
    "outside_deeper.py",
    "outside_later.py",
    "outside_package/near.py",
    "outside_package/nearer.py",
    "settings.txt",
    "tables/one.csv",
    "p4/mine.p4",
    "p4/own.h",
    "p4/deep.h",
    "../include/shared.p4inc",
    "headers.p4",
)


def test_whatever_a_mechanism_reads_is_in_its_hash(module: ModuleType, outside: Path) -> None:
    code: Callable[[], str] = module.MECHANISM.code
    known = {code()}
    assert code() in known
    for name in EDITED:
        file = outside / name
        file.write_text(file.read_text() + "\n")
        assert code() not in known, name
        known.add(code())
    # What it does not read does not count, and results do not, nor does what is hidden.
    (outside / "out/runs").mkdir(parents=True)
    (outside / "out/runs/journal.jsonl").touch()
    for name in ("outside_unused.py", "notes.txt", "run.py", "out/settings.txt", "out/runs/mine.p4", ".hidden.p4"):
        (outside / name).write_text("changed\n")
        assert code() in known, name
    (outside / "p4/new.p4").write_text("// a program that a name made of parts could lead to\n")
    assert code() not in known


def test_values_that_a_mechanism_is_made_with_are_in_its_hash(module: ModuleType, tmp_path: Path) -> None:
    build = module.build

    class Builder:
        def __init__(self, wait_ms: float) -> None:
            self.wait_ms = wait_ms

        def __call__(self, setting: object) -> object:
            return build(setting, self.wait_ms)

        def other(self, setting: object) -> object:
            return build(setting)

    def closed(wait_ms: float) -> Callable[[object], object]:
        return lambda setting: build(setting, wait_ms)

    ways = [
        lambda: [partial(build, extra_ms=5.0)],
        lambda: [partial(build, extra_ms=6.0)],
        lambda: [closed(5.0)],
        lambda: [closed(6.0)],
        lambda: [Builder(5.0)],
        lambda: [Builder(6.0)],
        lambda: [Builder(5.0).other, True],
        lambda: [build],
    ]
    hashes = [fingerprint.of_code(way()) for way in ways]
    assert len(set(hashes)) == len(ways)
    assert [fingerprint.of_code(way()) for way in ways] == hashes
    # Declared files, and folders of them.
    (tmp_path / "data").mkdir()
    file = tmp_path / "data/weights.bin"
    seen = set()
    for content in (None, b"1", b"2"):
        if content is not None:
            file.write_bytes(content)
        for declared in (file, tmp_path / "data"):
            assert fingerprint.of_code([build], [declared]) == fingerprint.of_code([build], [declared])
            seen.add(fingerprint.of_code([build], [declared]))
    assert len(seen) == 4, "that file is all there is in the folder"


def test_our_own_mechanisms_have_no_hash_of_their_own() -> None:
    """Check that their hash is empty, as their code is part of the hash of all runs."""
    assert {mechanism.code() for mechanism in mechanisms.known().values()} == {""}


def test_code_that_nobody_can_read_is_never_taken_for_known(
    module: ModuleType, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: dict[str, Callable[[object], object]] = {}
    exec("def build(setting):\n    return 1\n", {"__name__": "typed_by_somebody"}, typed)
    assert fingerprint.of_code([typed["build"]]) != fingerprint.of_code([typed["build"]])
    assert module.MECHANISM.code() == module.MECHANISM.code()
    monkeypatch.setattr(fingerprint, "MOST_ENTRIES", 3)
    assert module.MECHANISM.code() != module.MECHANISM.code()


def test_nothing_that_lies_beside_a_mechanism_is_in_the_way(module: ModuleType, outside: Path) -> None:
    before = module.MECHANISM.code()
    os.mkfifo(outside / "p4/pipe.p4")
    (outside / "nowhere.p4").symlink_to(outside / "absent.p4")
    (outside / "circle").symlink_to(outside)
    assert module.MECHANISM.code() == before
    (outside / "outside_later.py").write_text(f"TEXT = {'x' * 290!r}\nOTHER = '\\ud800 \\0'\n")
    after = module.MECHANISM.code()
    (outside / "outside_later.py").write_text("this is not Python\n")
    assert len({before, after, module.MECHANISM.code()}) == 3


def test_a_helper_beside_the_function_of_a_sweep_counts(outside: Path, module: ModuleType) -> None:
    before = fingerprint.fingerprint("outside_mechanism")
    for name in ("outside_helper.py", "p4/deep.h"):
        (outside / name).write_text((outside / name).read_text() + "\n")
        fingerprint.fingerprint.cache_clear()
        assert fingerprint.fingerprint("outside_mechanism") != before
        before = fingerprint.fingerprint("outside_mechanism")


EVERYWHERE = """
if 1: import m1
else: import m2
for _ in (): import m3
else: import m4
while 0: import m5
else: import m6
try: import m7
except OSError: import m8
else: import m9
finally: import m10
with x: import m11
def f(): import m12
async def g():
    async for _ in (): import m13
    async with x: import m14
class C: import m15
match x:
    case 1: import m16
call(lambda: [importlib.import_module("m17") for _ in ()])
f"{__import__('m18')}"
"""


def test_an_import_counts_wherever_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {f"m{number}" for number in range(1, 19)}
    for name, text in {"everywhere": EVERYWHERE, **dict.fromkeys(names, "X = 1\n")}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert set(fingerprint.reachable("everywhere")) == {"everywhere", *names}


TOPOLOGY = {
    "hosts": ["h1", "h2"],
    "switches": ["s1", "s2", "s3"],
    "links": [
        {"a": a, "b": b, "delay_ms": 1}
        for a, b in (("h1", "s1"), ("h2", "s2"), ("s1", "s2"), ("s2", "s3"), ("s3", "s1"))
    ],
}


def test_an_edited_mechanism_topology_or_traffic_is_measured_again(outside: Path) -> None:
    (outside / "net.yaml").write_text(yaml.safe_dump(TOPOLOGY))
    (outside / "traffic.yaml").write_text("udp: [{source: h1, destination: h2, packets_per_s: 500}]\n")

    def lost(jobs: int = 1) -> tuple[int, float]:
        """Return the number of runs that were made, and the packets lost under the mechanism."""
        command = [sys.executable, "run.py", "net.yaml", "traffic.yaml", str(jobs)]
        subprocess.run(command, cwd=outside, check=True, timeout=300, capture_output=True)
        made = json.loads((outside / "out/runs/sweep.json").read_text())["runs_of_this_call"]
        found = json.loads((outside / "out/summary.json").read_text())["mechanisms"]
        return made, next(each["lost_mean"] for each in found if each["mechanism"] == "outside")

    made, before = lost(jobs=2)
    assert made == 4
    assert lost() == (0, before)
    # The helper of the mechanism: it reacts 100 ms later, in which 50 packets are lost.
    (outside / "outside_deeper.py").write_text("BASE_MS = 120.0\n")
    made, after = lost()
    assert made == 2, "the other mechanism's runs are kept"
    assert after == pytest.approx(before + 50, abs=2)
    # Its program.
    program = outside / "p4/mine.p4"
    program.write_text(program.read_text() + "\n// edited\n")
    assert lost() == (2, after)
    for file, old, new in (("net.yaml", "delay_ms: 1", "delay_ms: 2"), ("traffic.yaml", "500", "400")):
        (outside / file).write_text((outside / file).read_text().replace(old, new))
        assert lost()[0] == 4, file
