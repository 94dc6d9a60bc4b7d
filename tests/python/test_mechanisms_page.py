"""docs/MECHANISMS.md: its files, in an empty folder, give what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from holdfast_command import holdfast, holdfast_process
from site_pages import included

from holdfast.compare import mechanisms

PAGE = included((Path(__file__).parents[2] / "docs/MECHANISMS.md").read_text(encoding="utf-8"))


def blocks(kind: str) -> list[str]:
    return [
        text for found, text in re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if found == kind
    ]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mine")
    (program,), (module, comparison, network, own) = blocks("p4"), blocks("python")
    for name, text in (
        ("backup.p4", program),
        ("backup.py", module),
        ("compare_it.py", comparison),
        ("network.py", network),
        ("own.py", own),
    ):
        (made / name).write_text(text)
    return made


def test_the_command_prints_what_the_page_shows(folder: Path) -> None:
    shown, _ = blocks("")
    command, _, expected = shown.removeprefix("$ holdfast ").partition("\n")
    done = holdfast_process(*command.split(), "--jobs", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert words(expected) in words(done.stdout)


def test_an_own_topology_and_own_traffic_are_compared(folder: Path) -> None:
    _, shown = blocks("")
    done = holdfast_process(*shown.removeprefix("$ holdfast ").split(), "--out", "own", "--jobs", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "spine 3 (5 switches): leaf0-spine0 down" in words(done.stdout) and "2 UDP streams" in done.stdout
    assert "reroute loses" in words(done.stdout)


def test_the_prompt_takes_the_controller(folder: Path) -> None:
    (command,) = re.findall(r"`holdfast (run backup\.p4 [^`]*)`", PAGE)
    (folder / "script.txt").write_text("pingall\nlink s1-s2 down\nh1 ping h3\nswitch s1 tables\n")
    done = holdfast_process(*command.split(), "--simulated", "--script", "script.txt", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 pairs, 0 without an answer" in done.stdout and "BackupIngress.routes" in done.stdout


def test_the_program_has_no_read_of_an_invalid_header(folder: Path) -> None:
    done = holdfast("compile", "backup.p4", "--check", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_programs_in_python_run(folder: Path) -> None:
    def lines(name: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, name], cwd=folder, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert [line.split()[0] for line in lines("compare_it.py")] == ["backup", "reroute", "static"]
    (lost,) = lines("network.py")
    assert 0 < int(lost) < 300, "packets until the backup, or the controller's route, carries them"


def test_the_entry_point_is_one_of_our_groups() -> None:
    (text,) = blocks("toml")
    points = tomllib.loads(text)["project"]["entry-points"]
    assert points == {mechanisms.OUTSIDE.group: {"backup": "backup:BACKUP"}}
