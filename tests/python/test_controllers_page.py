"""docs/CONTROLLERS.md: its program and controller run, and what it lists exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from holdfast_command import holdfast, holdfast_process

from holdfast import Controller
from holdfast.p4runtime.client import Client

PAGE = (Path(__file__).parents[2] / "docs/CONTROLLERS.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mine")
    for name, text in re.findall(r"^`([a-z.0-9]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        (made / name).write_text(text)
    assert {path.name for path in made.iterdir()} == {"acl.p4", "acl.py", "network.yaml"}
    return made


def test_the_controller_blocks_what_it_says(folder: Path) -> None:
    (command,) = re.findall(r"^\$ holdfast (run .*)$", PAGE, re.MULTILINE)
    ethernet, ip = "0200000000000200000000000800", "4500014800000000400100000a0001010a000201"
    frame = ethernet + ip + "00" * 308
    (folder / "script.txt").write_text(
        f"pingall\nexpect lost 0\nh1 send {frame}\nh3 send {frame}\nwait 3s\nswitch s1 tables acl\n"
    )
    done = holdfast_process(*command.split(), "--simulated", "--script", "script.txt", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "['s1: 0xa000101']" in done.stdout, "the digest came, and the handler that was to be called later was called"
    assert "AclIngress.block()  priority 10  2 packets" in done.stdout


def test_the_program_has_no_warning(folder: Path) -> None:
    done = holdfast("compile", "acl.p4", "--check", cwd=folder)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr


def test_what_the_page_lists_exists() -> None:
    _, handlers, client = PAGE.split("\n## ")
    names = set(re.findall(r"^\| `(\w+)\(", handlers, re.MULTILINE))
    assert names == {name for name in vars(Controller) if name.startswith("on_")}
    cells = re.findall(r"^\| [a-z].* \| (`.*) \|$", client, re.MULTILINE)
    methods = {name for cell in cells for name in re.findall(r"`(?:with client\.)?([a-z_]+)\b", cell)}
    assert len(methods) > 20 and all(hasattr(Client, name) for name in methods), {
        n for n in methods if not hasattr(Client, n)
    }
