"""What the package does without its extra ``compare``: all but measuring and drawing, and who needs the extra is told its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import sys
for module in ("matplotlib", "numpy", "polars"):
    sys.modules[module] = None
"""

MODULES = (
    "holdfast",
    "holdfast.apps.bier",
    "holdfast.apps.bng",
    "holdfast.apps.firewall",
    "holdfast.apps.mpls",
    "holdfast.apps.protect",
    "holdfast.apps.shorternet",
    "holdfast.apps.telemetry.collect",
    "holdfast.cli",
    "holdfast.compare.coverage",
    "holdfast.compare.mechanisms",
    "holdfast.console",
    "holdfast.live",
    "holdfast.network",
    "holdfast.p4runtime",
    "holdfast.topologies",
)
"""What works without it; each imports many more."""


def without(script: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that has none of the packages of the extra."""
    words = [sys.executable, "-P", "-c", WITHOUT + script, *arguments]
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False)


def test_programs_networks_and_controllers_need_no_extra() -> None:
    done = without("from importlib import import_module\nfor name in sys.argv[1:]: import_module(name)", *MODULES)
    assert (done.returncode, done.stderr) == (0, "")


COMMAND = "from holdfast.__main__ import main\nmain()"


@pytest.mark.parametrize("command", [("compare", "ring:3"), ("demo",)])
def test_a_command_names_the_extra_that_it_needs(command: tuple[str, ...], tmp_path: Path) -> None:
    done = without(COMMAND, *command, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "pip install 'holdfast[compare]'" in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_network_runs_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "verbs").write_text("pingall\n")
    hub = Path(__file__).parents[2] / "examples/hub"
    words = (
        "run",
        str(hub / "hub.p4"),
        str(hub / "network.yaml"),
        "--controller",
        str(hub / "hub.py"),
        "--simulated",
        "--script",
        "verbs",
    )
    done = without(COMMAND, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "6 pairs, 0 without an answer" in done.stdout, done.stdout
