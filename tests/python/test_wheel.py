"""The wheel's contents: the package without its tests and their support modules. All of it can be imported and runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

IMPORT_ALL = """
import importlib, pkgutil, sys
import holdfast
for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""


def shipped() -> list[Path]:
    """Return the files below ``python`` that belong to the wheel, by maturin's patterns."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    excluded = {path for each in settings["exclude"] for path in ROOT.glob(each["path"])}
    below = (ROOT / "python").rglob("*")
    return [
        path.relative_to(ROOT / "python")
        for path in below
        if path.is_file() and path.suffix != ".pyc" and path not in excluded
    ]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with the files that a wheel would install."""
    folder = tmp_path_factory.mktemp("installed")
    for path in shipped():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in EXTENSION_SUFFIXES or path.name.endswith(".so"):
            (folder / path).symlink_to(ROOT / "python" / path)
        else:
            shutil.copyfile(ROOT / "python" / path, folder / path)
    return folder


def python(installed: Path, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_tests_and_committed_results_are_not_shipped() -> None:
    names = [str(path) for path in shipped()]
    assert not [name for name in names if "/test_" in name or "/results/" in name or name.endswith((".csv", ".png"))]
    assert not [name for name in names if name.endswith(("conftest.py", "soak.py", "differential.py", "agreement.py"))]
    for needed in (
        "apps/router/router.p4",
        "bridge.p4",
        "compare/report.css",
        "compare/gateways/report.html",
        "py.typed",
        "_core.pyi",
    ):
        assert f"holdfast/{needed}" in names
    assert [name for name in names if name.endswith("/published.py")]


def test_every_module_that_is_shipped_can_be_imported(installed: Path, tmp_path: Path) -> None:
    modules = python(installed, "-c", IMPORT_ALL, cwd=tmp_path).splitlines()
    assert "holdfast.live.switch" in modules
    assert not [name for name in modules if ".tests" in name]
    assert len(modules) > 100


def test_an_experiment_is_reproduced_without_the_committed_results(installed: Path, tmp_path: Path) -> None:
    text = python(installed, "-c", "import holdfast; print(holdfast.__file__)", cwd=tmp_path)
    assert Path(text.strip()).is_relative_to(installed)
    python(installed, "-m", "holdfast", "reproduce", "--list", cwd=tmp_path)
    command = ("reproduce", "gmpls_tcp_2001", "table8", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path / "out"))
    python(installed, "-m", "holdfast", *command, cwd=tmp_path)
    assert list((tmp_path / "out/gmpls_tcp_2001").glob("table8*"))
