"""No file of the working directory runs in a process that we start, and no tool of another user's directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from holdfast import interpreter, tool_path

ROOT = Path(__file__).parents[2]
DECOY = """import os
with open({marker!r}, "a") as marker:
    marker.write({name!r} + " ")
raise SystemExit("a decoy ran")
"""


@pytest.fixture(scope="module")
def decoys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Create a directory with a file named as each importable top-level module.

    A decoy that is imported writes its name into ``ran``.
    """
    folder = tmp_path_factory.mktemp("decoys")
    ours = {path.stem for path in ROOT.glob("tests/*/*.py")}
    names = {*sys.stdlib_module_names, *packages_distributions(), *ours, "sitecustomize", "usercustomize", "holdfast"}
    for name in names:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(DECOY.format(marker=str(folder / "ran"), name=name))
    for tool in ("ip", "sh", "git", "tc", "sysctl"):
        (folder / tool).write_text(f"#!/bin/sh\necho {tool} >> {folder}/ran\nexit 1\n")
        (folder / tool).chmod(0o755)
    yield folder


def check_none_ran(folder: Path) -> None:
    marker = folder / "ran"
    if marker.exists():
        names = marker.read_text()
        marker.unlink()
        raise AssertionError(f"of the working directory ran: {names}")


def run(folder: Path, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300, env=os.environ | environment
    )


def test_the_decoys_run_where_the_working_directory_is_searched(decoys: Path) -> None:
    for command in ([sys.executable, "-m", "holdfast", "--version"], [sys.executable, "-c", "import json"]):
        assert run(decoys, command).returncode == 1
        with pytest.raises(AssertionError):
            check_none_ran(decoys)


HEAD = """
import subprocess, sys, time
from pathlib import Path
from holdfast import interpreter
from holdfast.errors import HoldfastError

if __name__ == "__main__":
    here = Path(sys.argv[0]).parent
"""
STARTS = {
    "the command": "subprocess.run(interpreter.module('holdfast', 'topology', 'ring:4'), check=True)",
    "a script": "subprocess.run(interpreter.script(here / 'alone.py'), check=True)",
    "a measurement": """
        from holdfast.experiments.pppoe_split_plane import scale_runs
        scale_runs.measured_alone('subject', {'x': 1}, 1)
    """,
    "workers of a sweep": """
        from holdfast import sweep
        frame = sweep.run('subject:number', [{'x': 1}, {'x': 2}], [1, 2], here / 'out', jobs=2)
        assert frame['y'].to_list() == [1, 2, 2, 4]
    """,
    "parts of a soak": """
        from holdfast.apps.protect.tests import soak, soak_parts
        one = soak.Soak(connections=2, duration_s=1.0, failures=0, latent_errors=0)
        soak_parts.run_parts(one, 2, time.time() + 120)
    """,
    "a switch of a gateway": """
        import socket
        from holdfast.apps.bng import live
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        settings = live.SwitchSettings(grpc=f'127.0.0.1:{port}', device_id=port, interfaces={})
        with live.Switches(print, keep=False) as switches:
            assert switches.connect('one', settings, 'bng.p4', {}).is_primary
    """,
    "a switch of a measurement": """
        from holdfast.experiments.pppoe_split_plane import live_runs
        with live_runs.switch(str(live_runs.HERE / 'bng.p4'), {}, {}) as client:
            assert client.is_primary
    """,
}
SUBJECT = """
import json

def number(point, seed):
    return {"y": point["x"] * seed}

if __name__ == "__main__":
    print(json.dumps({}))
"""


@pytest.mark.parametrize("kind", STARTS)
def test_no_file_of_the_working_directory_runs(kind: str, decoys: Path, tmp_path: Path) -> None:
    """Check each way of starting an interpreter from a process whose working directory has decoys, as by ``sudo holdfast``."""
    if "switch" in kind and os.geteuid() != 0:
        pytest.skip("a switch needs root")
    (tmp_path / "subject.py").write_text(SUBJECT)
    (tmp_path / "alone.py").write_text("import json, socket\n")
    (tmp_path / "starts.py").write_text(HEAD + textwrap.indent(textwrap.dedent(STARTS[kind]), "    "))
    # As an operator may set it: the empty entry of PATH is the working directory.
    path = os.pathsep.join(["", os.environ["PATH"]]) if kind == "the command" else os.environ["PATH"]
    done = run(decoys, [sys.executable, str(tmp_path / "starts.py")], PYTHONPATH=str(tmp_path), PATH=path)
    check_none_ran(decoys)
    assert done.returncode == 0, done.stderr


def test_what_a_process_of_ours_starts_finds_the_files_beside_it(tmp_path: Path) -> None:
    """Check that a program that a sweep's run starts does not inherit the setting that protects the start of a worker."""
    (tmp_path / "subject.py").write_text(
        "import os\ndef number(point, seed):\n    return {'y': os.environ.get('PYTHONSAFEPATH', 'unset')}\n"
    )
    (tmp_path / "starts.py").write_text(
        HEAD + "    from holdfast import sweep\n"
        "    print(sweep.run('subject:number', [{'x': 1}], [1, 2], here / sys.argv[1], jobs=2)['y'].to_list())\n"
    )
    command = [sys.executable, str(tmp_path / "starts.py")]
    assert run(tmp_path, [*command, "one"], PYTHONPATH=str(tmp_path)).stdout == "['unset', 'unset']\n"
    safe = run(tmp_path, [*command, "two"], PYTHONPATH=str(tmp_path), PYTHONSAFEPATH="1")
    assert safe.stdout == "['1', '1']\n"


def test_the_flags_that_say_where_modules_come_from_are_inherited() -> None:
    show = "from holdfast import interpreter; print(interpreter.module('x')[1:])"
    for flags, expected in (
        ((), ["-P", "-m", "x"]),
        (("-I",), ["-I", "-P", "-m", "x"]),
        (("-E", "-s"), ["-E", "-s", "-P", "-m", "x"]),
    ):
        done = subprocess.run([sys.executable, *flags, "-c", show], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(expected)


STARTED_ELSEWHERE = re.compile(
    r"sys\.executable(?!, \"-[IP]\"|\} -P)|get_context\(|multiprocessing\.(Process|Pool|Queue|Manager)"
    r"|ProcessPoolExecutor|\[\"python3?\"(?!, \"-m\", \"holdfast\.sweep\")"
)


def test_interpreters_are_started_in_one_place() -> None:
    """Check the package, and the programs of tests that are run as root."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in ("python/holdfast", "tests/live")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if STARTED_ELSEWHERE.search(line) and path != Path(interpreter.__file__)
    ]
    assert not found, "\n".join(found)


def test_the_texts_show_commands_that_leave_the_working_directory_out() -> None:
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / "python/holdfast").rglob("*.md")]
    texts += (ROOT / "python/holdfast").rglob("*.py")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts
        for line in path.read_text(encoding="utf-8").splitlines()
        # A run of a sweep is a function of the user's own module, which is where the user is.
        if re.search(r"python3? -m holdfast(?!\.sweep\b)", line)
    ]
    assert not found, "\n".join(found)


def test_a_file_of_settings_in_the_working_directory_changes_no_picture(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\naxes.facecolor: red\nbackend: module://evil\n")
    show = "from holdfast import plots; print([plots.plt.rcParams[n] for n in ('text.usetex', 'axes.facecolor')])"
    done = subprocess.run([sys.executable, "-P", "-c", show], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, 'white']"


@pytest.mark.skipif(os.geteuid() != 0, reason="other users' PATH is their own")
def test_root_finds_tools_in_its_own_directories_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, theirs, everybodys = (tmp_path / name for name in ("own", "theirs", "everybodys"))
    for each in (own, theirs, everybodys):
        each.mkdir()
    os.chown(theirs, 65534, 65534)
    everybodys.chmod(0o1777)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f":own:.:{theirs}:{own}:{everybodys}:{tmp_path}/missing::/usr/bin")
    tool_path.leave_others_directories()
    assert os.environ["PATH"] == f"{own}:/usr/bin"
    monkeypatch.delenv("PATH")
    tool_path.leave_others_directories()
    assert "PATH" not in os.environ
