"""Reads the blocks of the documentation's pages, and runs them as a reader would, from the first to the last, in one folder.

A fenced block has a language, and a title that says what it is:

- ``title="FILE"``: the content of a file, which is written. A line ``--8<-- "FILE"`` is the content of a file of the repository.
- ``title="Part of FILE"``: an excerpt of a file that is there, line by line; a line ``...`` stands for any lines.
- ``console`` without a title: commands after ``$``, each with all that it prints. What is typed at the prompt of ``holdfast run``
  follows ``holdfast>``, and each answer is compared. ``...`` stands for anything: in a line, or as a line for any lines.
- ``console`` with ``title="as root"``: the same, where live networks can be had (``tests/live``).

Anything else is refused: no test would run it. With ``UPDATE_EXPECT=1`` an answer that differs is written into the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast_command import holdfast

ROOT = Path(__file__).parents[2]
AS_ROOT = "as root"
PROMPT = "holdfast> "
_FENCE = re.compile(r"^```(?P<language>[\w+-]*)(?P<rest>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"[|;<>&$*`(){}]")
# What a terminal shows as a bar that moves, and then removes.
_PROGRESS = re.compile(
    r"^(?:runs \d+/\d+ after .*|.*: \d+ switches, .* \d+ runs|.* finished runs of other code .*)\n", re.MULTILINE
)
_BETWEEN = "quit\n    End the network.\n"
"""What ``help quit`` prints; it is asked for between two lines that are typed, to tell their answers apart."""


class PageError(AssertionError):
    """A block that is not so, or that no test would run. The text says where."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def where(self) -> str:
        """The page and the line of the fence."""
        return f"{self.page}:{self.line}"

    @property
    def live(self) -> bool:
        """True if it needs live networks."""
        return self.title == AS_ROOT


@dataclass(frozen=True)
class Command:
    """A command of a console block, what is typed at its prompt, and what it prints: before the first such line and after each."""

    line: str
    typed: tuple[str, ...]
    answers: tuple[str, ...]


def included(text: str) -> str:
    """Return a text in which a line ``--8<-- "FILE"`` is replaced by that file of the repository."""
    return re.sub(
        r'^--8<-- "([^"]+)"\n',
        lambda found: (ROOT / found[1]).read_text(encoding="utf-8"),
        text,
        flags=re.MULTILINE,
    )


def fences(page: str, text: str) -> Iterator[Block]:
    """Yield all fenced blocks of a page."""
    for found in _FENCE.finditer(text):
        title = re.search(r'title="([^"]*)"', found["rest"])
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["language"], title[1] if title else "", found["text"])


def runnable(page: str, text: str) -> list[Block]:
    """Return the blocks of a page, or raise :class:`PageError` for one that no test would run."""
    blocks = list(fences(page, text))
    if (marks := len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE))) != 2 * len(blocks):
        raise PageError(f"{page}: {marks} lines open or close blocks, but {len(blocks)} blocks stand at the margin")
    for block in blocks:
        if block.language == "console":
            if block.title not in ("", AS_ROOT):
                raise PageError(f"{block.where}: the title of console blocks is {AS_ROOT!r} or left out")
            commands(block)
        elif not block.title:
            raise PageError(
                f"{block.where}: no test runs this block: it is no console block, and its title names no file"
            )
    return blocks


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block."""
    found: list[tuple[str, list[str], list[str]]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), [], [""]))
        elif not found:
            raise PageError(f"{block.where}: a console block begins with a command after '$ '")
        elif line.startswith(PROMPT):
            found[-1][1].append(line.removeprefix(PROMPT).strip())
            found[-1][2].append("")
        else:
            found[-1][2][-1] += line
    return [Command(line, tuple(typed), tuple(answers)) for line, typed, answers in found]


def alike(shown: str, printed: str) -> bool:
    """Return True if a text is what a page shows, where ``...`` stands for anything; spaces at the end of lines do not count."""
    pattern = ""
    for line in _lines(shown):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed))) is not None


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()] if text.strip() else []


class Reader:
    """Does what a page says, in a folder that is the reader's at the beginning.

    ``processes``: each command of ours has a process of its own, as live networks need, whose hosts write to the process's output.
    """

    def __init__(self, folder: Path, *, processes: bool = False) -> None:
        self.folder = self.here = folder
        self.processes = processes
        self.status = 0

    def do(self, block: Block) -> str:
        """Do what a block says, and return it with what was printed in the place of what differs. Raises :class:`PageError`."""
        if block.language == "console":
            return "".join(self._command(block, command) for command in commands(block))
        text = included(block.text)
        if block.title.startswith("Part of "):
            file = self.here / block.title.removeprefix("Part of ")
            if not file.is_file():
                raise PageError(f"{block.where}: there is no file {file.name}")
            if not alike(f"...\n{text}...\n", file.read_text(encoding="utf-8")):
                raise PageError(f"{block.where}: this is no part of {file.name}")
        else:
            file = self.here / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return block.text

    def _command(self, block: Block, command: Command) -> str:
        asks = f"{self.status}\n" if command.line == "echo $?" else None
        printed = (asks,) if asks is not None else self._run(block, command)
        text = f"$ {command.line}\n"
        differs = []
        for i, (shown, said) in enumerate(zip(command.answers, printed, strict=True)):
            text += f"{PROMPT}{command.typed[i - 1]}\n" if i else ""
            same = alike(shown, said)
            text += shown if same else "".join(f"{line}\n" for line in _lines(said))
            if not same:
                differs.append(f"the page shows\n{shown}\nand this was printed\n{said}")
        if differs and not os.environ.get("UPDATE_EXPECT"):
            raise PageError(f"{block.where}: {command.line}\n" + "\n".join(differs))
        if self.status and asks is None and "echo $?" not in block.text:
            raise PageError(f"{block.where}: {command.line} ended with status {self.status}\n{printed[-1]}")
        return text

    def _run(self, block: Block, command: Command) -> tuple[str, ...]:
        words = shlex.split(command.line)
        if words[0] == "cd":
            self.here = (self.here / words[1]).resolve()
            if not self.here.is_dir() or not self.here.is_relative_to(self.folder):
                raise PageError(f"{block.where}: {command.line}: there is no such folder")
            return ("",)
        typed = "".join(f"help quit\n{line}\n" for line in command.typed)
        if words[0] == "holdfast" and not self.processes and not _SHELL.search(re.sub(r'"[^"]*"', "", command.line)):
            # Results do not depend on the number of processes, and each takes seconds to start.
            jobs = ["--jobs", "1"] if words[1] == "compare" and "--coverage" not in words else []
            done = holdfast(*words[1:], *jobs, cwd=self.here, stdin=typed, together=True)
            self._forget()
        else:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-c", command.line],
                cwd=self.here,
                input=typed,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
                env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            )
        self.status = done.returncode
        printed = _PROGRESS.sub("", done.stdout)
        answers = tuple(printed.split(_BETWEEN)) if typed else (printed,)
        if len(answers) != len(command.answers):
            raise PageError(f"{block.where}: {command.line}: a line that was typed has no answer\n{printed}")
        return answers

    def _forget(self) -> None:
        """Forget the reader's modules, as the process of a command would."""
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(self.folder)):
                del sys.modules[name]
