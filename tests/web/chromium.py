"""A browser for the tests of pages, and commands that serve one."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from holdfast import interpreter

ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"
PATIENCE_MS = 15_000


def executable() -> str | None:
    """Return the path of an installed Chromium; None leaves it to Playwright's own."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser() -> Iterator[Any]:
    """Start a Chromium within the context, or skip the tests where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    with api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=executable(), args=["--no-sandbox"])
        except api.Error as error:
            pytest.skip(f"needs Chromium, such as Debian's package chromium: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


class Served:
    """A command with a page."""

    def __init__(self, process: subprocess.Popen[str], lines: list[str], errors: IO[str]) -> None:
        self.process, self.lines, self._errors = process, lines, errors
        found = re.search(r"http://\S+\?token=\S+", lines[-1])
        assert found is not None
        self.address = found[0]
        self.without_token = self.address.partition("?")[0]

    def errors(self) -> str:
        """Return what the command has written to standard error so far."""
        self._errors.seek(0)
        return self._errors.read()


@contextmanager
def serving(*arguments: object, stdin: int = subprocess.DEVNULL) -> Iterator[Served]:
    """Run ``holdfast`` with a page within the context."""
    pytest.importorskip("nicegui", reason="needs the extra web")
    command = [*interpreter.module("holdfast"), *map(str, arguments)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            lines: list[str] = []
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if "?token=" in line:
                    break
            else:
                errors.seek(0)
                raise AssertionError(f"no page: {''.join(lines)}{errors.read()}")
            yield Served(process, lines, errors)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def network(*more: object, script: Path | None = None, topology: str = "ring:3") -> tuple[object, ...]:
    """Return the arguments of a simulated network with routes, and a page."""
    first = ("run", ROUTER, topology, "--simulated", "--web")
    return (*first, *(() if script is None else ("--script", script)), *more)
