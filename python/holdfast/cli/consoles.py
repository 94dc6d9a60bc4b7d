"""The command run: a network with a prompt, or with a script."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import completions
from holdfast.cli.shared import Executor, Web, console, fail, interruptible, say
from holdfast.errors import EntriesWarning, TopologyWarning
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.console.session import Session
    from holdfast.console.start import Started


def run(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[PROGRAM] TOPOLOGY",
            help="P4_16 source; a file, or a name such as ring:4, as in holdfast topology.",
            autocompletion=completions.topologies,
        ),
    ],
    controller: Annotated[
        list[str],
        typer.Option(metavar="FILE.py[:NAME]", help="Your holdfast.Controller; NAME(key=value) has arguments."),
    ] = [],  # noqa: B006
    runtime: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Entries: s1-runtime.json, s1-commands.txt or s1.yaml.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", metavar="", help="Namespaces, kernel TCP, real time; needs root.")
    ] = False,
    simulated: Annotated[
        bool, typer.Option("--simulated", metavar="", help="Modelled hosts; deterministic with a script.")
    ] = False,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Verbs to obey; exit status 1 if one fails.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Same seed and script, same simulation.")
    ] = 1,
    detection_delay_ms: Annotated[float, typer.Option(min=0, metavar="MS", help="Until a switch notices a cut.")] = 0.0,
    grpc: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The switches' P4Runtime server.", show_default="a free port")
    ] = "127.0.0.1:0",
    executor: Annotated[
        Executor, typer.Option(metavar="jit|interpreter", help="Executor of the packets.")
    ] = Executor.JIT,
    web: Web = None,
) -> None:
    """Run a P4 program in a network, with a prompt: ping, iperf, cut links, look into switches.

    Live if this machine can, else simulated at the pace of the clock, and a script as fast as possible. The program may be left out
    if the topology names one for each switch. The verb help lists the verbs.
    """
    with interruptible():
        from holdfast import topologies
        from holdfast.console import prompt, start
        from holdfast.console import script as scripts
        from holdfast.console.session import Session
        from holdfast.operations.pages import endpoint

        if live and simulated:
            fail("--live and --simulated exclude each other")
        if script is not None and not script.is_file():
            fail(f"--script: there is no file {str(script)!r}")
        *sources, spec = files
        if web is not None and re.fullmatch(r"((\d+\.){3}\d+:|localhost:|\[\S+\]:)?[0-9]{1,5}", spec):
            fail(f"the address of the page is written --web={spec if ':' in spec else f'127.0.0.1:{spec}'}")
        endpoint("--grpc", grpc)
        if len(sources) > 1:
            fail(f"run takes a program and a topology, or a topology alone, not {len(files)} files")
        _show_warnings()
        loaded = topologies.load(spec)
        wanted = start.Wanted(
            loaded,
            Path(sources[0]) if sources else None,
            controller,
            runtime,
            "live" if live else "simulated" if simulated else None,
            {"seed": seed, "executor": executor.value, "detection_delay_ms": detection_delay_ms},
            grpc,
            serves=script is None or web is not None,
        )
        clock, why = start.chosen_clock(wanted)
        # With a page, a script is watched: at the pace of the clock.
        paced = script is None or web is not None
        with (
            start.started(wanted, clock) as found,
            Session(found.network, paced=paced, on_terminal=script is None) as session,
            _page(session, web) as address,
        ):
            if paced:
                _say_what_runs(found, f"{clock} ({why})", address)
            if script is not None:
                session.echo = lambda _, result: prompt.show(result)
                scripts.run(session, script)
            else:
                if sys.stdin.isatty():
                    console.print("'help' lists the verbs, 'quit' ends", markup=False, highlight=False)
                prompt.run(session)
            if address is not None and not sys.stdin.isatty():
                _stay(session)


@contextmanager
def _page(session: Session, at: str | None) -> Iterator[str | None]:
    """Serve the session's page within the context, if one is wanted, and yield its address."""
    if at is None:
        yield None
        return
    from holdfast.web.run import page_of

    with page_of(session, at) as address:
        yield address


def _say_what_runs(found: Started, clock: str, page: str | None) -> None:
    from holdfast.console import start

    topology = found.network.topology
    nodes = f"{counted(len(topology.switches), 'switch', 'switches')}, {counted(len(topology.hosts), 'host')}"
    lines = [f"{topology.name}: {nodes}, {clock}"]
    lines += start.addresses(found)
    if page is not None:
        lines.append(f"the page: {page}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _stay(session: Session) -> None:
    """Wait until a signal, or the verb quit on the page, ends the network."""
    with suppress(KeyboardInterrupt):
        while not session.ended:
            time.sleep(1)


def _show_warnings() -> None:
    """Have what is guessed of files, or left out, shown as one line each."""
    for kind in (TopologyWarning, EntriesWarning):
        warnings.simplefilter("always", kind)
    warnings.showwarning = lambda message, *_args, **_more: say("warning", message)


__all__ = ["run"]
