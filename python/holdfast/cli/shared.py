"""Common parts of commands: their messages on both streams, and the types of options that several have."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text
from typer.core import TyperCommand

from holdfast import interrupts
from holdfast.terminal import Console, screenful

# Names and addresses may contain emoji codes, as in "ring:x:".
console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


class Executor(StrEnum):
    """The two executors of the switch."""

    JIT = "jit"
    INTERPRETER = "interpreter"


class Io(StrEnum):
    """The kind of socket by which frames leave a live port."""

    AUTO = "auto"
    AF_PACKET = "af_packet"
    AF_XDP = "af_xdp"


MAX_PORT = 510
"""The last port of a switch. The modules that know it take long to import."""

ENTRIES_FORMATS = "p4lang's sX-runtime.json, commands of simple_switch_CLI, or YAML"

MAX_SEEDS = 100_000
MAX_JOBS = 1024

Defines = Annotated[list[str], typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="Preprocessor macro.")]
DeviceId = Annotated[int, typer.Option(help="P4Runtime device id of the switch.")]
P4Info = Annotated[
    Path | None,
    typer.Option(
        "--p4info", help="P4Info of a compiled program.", show_default="NAME.p4info.txtpb beside NAME.holdfast"
    ),
]
Web = Annotated[
    str | None,
    typer.Option(metavar="[=ADDRESS:PORT]", help="A page for browsers; prints its address."),
]
Includes = Annotated[list[Path], typer.Option("--include", "-I", help="Directory to search for #include <...>.")]


AT_LOOPBACK = "127.0.0.1:0"
"""Where a page is if nobody says otherwise."""


class WithPage(TyperCommand):
    """A command with ``--web``, whose value may be left out. A word that follows it is an argument, and not its value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command."""
        end = args.index("--") if "--" in args else len(args)
        whole = [f"--web={AT_LOOPBACK}" if word == "--web" and i < end else word for i, word in enumerate(args)]
        return super().parse_args(ctx, whole)


def say(kind: str, message: object) -> None:
    """Print ``kind: message`` on standard error without wrapping, so that programs can search it."""
    errors.print(screenful(f"{kind}: {message}"), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def warned_of(kind: type[Warning]) -> Iterator[None]:
    """Print the warnings of ``kind`` that the code within the context raises, each as a line on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", kind)
        try:
            yield
        finally:
            for warning in caught:
                say("warning", warning.message)


def fail(message: str) -> NoReturn:
    """Print an error message and end the command with status 1."""
    say("error", message)
    raise typer.Exit(1)


def check_folder(file: Path | None) -> None:
    """End the command with an error, before its work, if the directory of a file for its results is missing."""
    if file is not None and not file.absolute().parent.is_dir():
        fail(f"there is no directory for {str(file)!r}")


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """End the command with an error if the code within the context cannot write ``file``."""
    try:
        yield
    except OSError as error:
        fail(f"cannot write {str(file)!r}: {error.strerror}")


def progress(text: str) -> None:
    """Print a line about the progress of a command on standard error."""
    errors.print(Text(text, style="dim"))


@contextmanager
def interruptible(sentence: str = "interrupted") -> Iterator[None]:
    """End the command on an interrupt within the context, after its cleaning up, and say so. Typer would end it without a word."""
    try:
        with interrupts.raised():
            yield
    except KeyboardInterrupt:
        errors.print(sentence, soft_wrap=True)
        raise typer.Exit(interrupts.STATUS) from None


def resumable() -> AbstractContextManager[None]:
    """End the command on an interrupt within the context, and say that the same command continues its work."""
    return interruptible("interrupted; the same command continues from here")


def say_where(out: Path) -> None:
    """Print the directory of the results and the path of the report in it."""
    console.print(f"results in {out}/; open {out}/report.html", markup=False, highlight=False, soft_wrap=True)
