"""Commands for simulated and live networks: demo, topology, reproduce."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli import completions
from holdfast.cli.comparisons import LargestOption, TelemetryOption, folder_of, show_comparison
from holdfast.cli.shared import MAX_JOBS, MAX_SEEDS, Executor, console, errors, resumable, warned_of
from holdfast.errors import TopologyWarning
from holdfast.terminal import printable

FIRST_LINKS = 40
"""The number of links of a large topology that a terminal shows."""


def demo(
    live: Annotated[bool, typer.Option("--live", help="Real namespaces, kernel TCP, real time (needs root).")] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same result, byte for byte (unless live).")
    ] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the results.", show_default="out/demo or out/demo-live")
    ] = None,
    jitter_ms: Annotated[
        float | None,
        typer.Option(min=0, help="Uniform jitter per link between switches.", show_default="0.1, live: 0"),
    ] = None,
    detection_delay_ms: Annotated[float, typer.Option(help="Time from the cut to its detection by the switch.")] = 50.0,
    reaction_delay_ms: Annotated[
        float, typer.Option(help="Time from the detection to the controller's new routes.")
    ] = 100.0,
    executor: Annotated[Executor, typer.Option(help="Executor of the packets.")] = Executor.JIT,
    telemetry: TelemetryOption = None,
) -> None:
    """Cut a link under UDP, TCP and a ping, and compare four mechanisms on a square of two paths."""
    from holdfast import demo as square
    from holdfast.compare.results import WORLD

    built = square.scenario(
        live=live,
        jitter_ms=(0.0 if live else 0.1) if jitter_ms is None else jitter_ms,
        executor=executor.value,
        detection_delay_ms=detection_delay_ms,
        reaction_delay_ms=reaction_delay_ms,
        telemetry=telemetry is not None,
    )
    folder = folder_of(out, Path("out/demo-live" if live else "out/demo"), built, square.chosen(built), [seed])
    show_comparison(WORLD, lambda: square.run(built, folder, seed=seed, console=errors), folder)


def topology(
    spec: Annotated[
        str,
        typer.Argument(
            help="A file: .yaml, p4lang's topology.json, p4-utils' p4app.json, .clab.yml, .graphml, .gml, node-link .json, "
            "SNDlib's .xml or .txt; a script, mininet:FILE.py:CLASS, which runs; or a name: line:4, ring:5, star:3, mesh:4, "
            "grid:3x4, fat-tree:4, "
            "waxman:20,seed=3, erdos-renyi:20,p=0.1, nsfnet, abilene; then PARAMETER=VALUE as in ring:5,delay_ms=2,hosts=0.",
            autocompletion=completions.topologies,
        ),
    ],
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Write the topology as YAML to standard output.")] = False,
    draw: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the topology (.svg or .png).")] = None,
    largest: LargestOption = False,
    mininet: Annotated[
        bool,
        typer.Option(
            "--mininet", help="The file is a script for Mininet, FILE.py or FILE.py:CLASS: run it, without Mininet."
        ),
    ] = False,
    every_link: Annotated[
        bool, typer.Option("--all", help=f"Show every link on a terminal, instead of the first {FIRST_LINKS}.")
    ] = False,
) -> None:
    """Show, convert or draw a topology. Links have the names that other commands use."""
    from holdfast import topologies

    if mininet:
        spec = f"mininet:{spec}"
    with warned_of(TopologyWarning):
        loaded = topologies.load(spec, largest=largest)
    if draw is not None:
        from holdfast import plots

        plots.draw_topology(loaded, draw)
        errors.print(f"drawn in {draw}", markup=False, highlight=False, soft_wrap=True)
    if as_yaml:
        sys.stdout.write(loaded.to_yaml(ascii_only=sys.stdout.encoding.lower() not in ("utf-8", "utf8")))
    elif draw is None:
        most = None if every_link or not sys.stdout.isatty() else FIRST_LINKS
        sys.stdout.writelines(f"{printable(line)}\n" for line in topologies.listing(loaded, most))


def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(help="Name of the experiment, as in --list.", autocompletion=completions.experiments)
    ] = None,
    part: Annotated[
        list[str] | None, typer.Argument(help="Figures and tables, such as table3 fig14. The default is all.")
    ] = None,
    show: Annotated[
        bool,
        typer.Option("--list", help="List experiments or parts, and their runs."),
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=MAX_SEEDS, help="Number of seeds.", show_default="as many as in the paper")
    ] = None,
    first_seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**32 - 1,
            help="First seed. Choose parameters with some seeds and judge them with others.",
        ),
    ] = 1,
    jobs: Annotated[int, typer.Option(min=1, max=MAX_JOBS, help="Processes on this machine.")] = 1,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Use a Ray cluster; local starts one with --jobs processors."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for the results; each experiment has its own below it.")] = Path(
        "out/experiments"
    ),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Few seeds, and few small points of each part, to see that all of it works."),
    ] = False,
) -> None:
    """Reproduce the figures and tables of a paper, with its numbers beside ours.

    After an interrupt, the same command continues where it stopped.
    """
    from holdfast import experiments
    from holdfast import reproduce as reproduction

    if experiment is None or show:
        known = reproduction.everything() if experiment is None else [experiments.find(experiment)]
        console.print(reproduction.listing(known))
        return
    chosen = experiments.find(experiment)
    with resumable():
        reproduction.run(
            chosen,
            part or [],
            out,
            seeds=seeds,
            first_seed=first_seed,
            jobs=jobs,
            ray=ray,
            console=console,
            progress=errors,
            quick=quick,
        )
    console.print(f"results in {out / experiment}/", markup=False, highlight=False, soft_wrap=True)
