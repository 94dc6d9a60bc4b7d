"""Commands for simulated and live networks: demo, topology, reproduce, compare."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from holdfast.cli.shared import (
    MAX_JOBS,
    MAX_SEEDS,
    Executor,
    console,
    errors,
    resumable,
    say,
    say_where,
)
from holdfast.errors import ScenarioError, TopologyWarning
from holdfast.terminal import printable

if TYPE_CHECKING:
    from holdfast.compare.comparison import Comparison


class Telemetry(StrEnum):
    """The telemetry that a comparison can use."""

    INT = "int"


class Scenario(StrEnum):
    """The subject of ``compare`` in place of a topology that is given."""

    BNG = "bng"


FIRST_LINKS = 40
"""The number of links of a large topology that a terminal shows."""

LargestOption = Annotated[
    bool,
    typer.Option(
        "--largest", help="Of a topology that is not connected take the largest part, and say what is left out."
    ),
]

TelemetryOption = Annotated[
    Telemetry | None,
    typer.Option(
        "--telemetry",
        help="int: switches report latency and queue of each port by INT-MD, and the report shows them before, during and after"
        " the failure. Of mechanisms whose program has INT: static and reroute, which then run telemetry.p4 (16 bytes of headers"
        " and 24 per hop in TCP and UDP, and reports to a collector, all in the figures). Not live.",
    ),
]


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

    built = square.scenario(
        live=live,
        jitter_ms=(0.0 if live else 0.1) if jitter_ms is None else jitter_ms,
        executor=executor.value,
        detection_delay_ms=detection_delay_ms,
        reaction_delay_ms=reaction_delay_ms,
        telemetry=telemetry is not None,
    )
    folder = out or Path("out/demo-live" if live else "out/demo")
    _show_comparison(lambda: square.run(built, folder, seed=seed, console=errors), folder)


def _show_comparison(run: Callable[[], Comparison], out: Path) -> None:
    """Run a comparison, and print its table of mechanisms, its advice and the notes on them."""
    from holdfast.compare import advice, terminal

    with resumable():
        found = run()
    console.print(Text(f"{terminal.title(found)}\n", style="italic"))
    console.print(terminal.table(found))
    if found.scenario.telemetry:
        console.print("")
        console.print(terminal.telemetry_table(found))
    console.print(Text(f"\n{advice.advice(found)}\n"))
    for note in advice.notes(found):
        console.print(Text(f"* {note}", style="dim"))
    say_where(out)


def topology(
    spec: Annotated[
        str,
        typer.Argument(
            help="A file (.yaml, .graphml), or a name: line:4, ring:5, star:3, mesh:4, grid:3x4, fat-tree:4, "
            "waxman:20,seed=3, erdos-renyi:20,p=0.1, nsfnet, abilene; then PARAMETER=VALUE as in ring:5,delay_ms=2,hosts=0."
        ),
    ],
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Write the topology as YAML to standard output.")] = False,
    draw: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the topology (.svg or .png).")] = None,
    largest: LargestOption = False,
    every_link: Annotated[
        bool, typer.Option("--all", help=f"Show every link on a terminal, instead of the first {FIRST_LINKS}.")
    ] = False,
) -> None:
    """Show, convert or draw a topology. Links have the names that other commands use."""
    from holdfast import topologies

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TopologyWarning)
        loaded = topologies.load(spec, largest=largest)
    for warning in caught:
        say("warning", warning.message)
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
    experiment: Annotated[str | None, typer.Argument(help="Name of the experiment, as in --list.")] = None,
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


def compare(
    topology: Annotated[
        str | None,
        typer.Argument(
            help="A file (.yaml, .graphml), or a name such as abilene, ring:5, waxman:100; see the command topology. "
            "Left out with --scenario."
        ),
    ] = None,
    scenario: Annotated[
        Scenario | None,
        typer.Option(
            help="In place of a topology. bng: subscribers behind one gateway of a single plane, two of them, or one whose planes "
            "are split behind a balancer; sessions, losses and time to recover when something of it fails.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Run in real time with network namespaces as hosts and the kernel's TCP (needs root): at most 32 switches, 32 "
            "hosts, half an hour. By default 6 host pairs have UDP, 3 of them TCP.",
        ),
    ] = False,
    fail: Annotated[
        str,
        typer.Option(
            metavar="LINK|NODE|all|nodes|sample:N",
            help="A link A-B, a switch, every link between switches in turn, every switch in turn, or N links in turn that are "
            "drawn with a seed (sample:20 or sample:20,seed=2). With --scenario bng plane, "
            "balancer, auth, controller, radius, access, or all of them in turn.",
        ),
    ] = "all",
    largest: LargestOption = False,
    traffic: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|multicast",
            help="UDP, TCP and ping in YAML; holdfast.compare.traffic_file documents the format. multicast: up to 8 groups with a "
            "source and up to 20 receivers each, half of the hosts at most, drawn always alike; UDP of 20 to 500 packets/s, all "
            "copies together at most 16,000 per second and a third of the slowest link.",
            show_default="16 host pairs, up to 50 in networks "
            "of more than 32 hosts, with UDP of 20 to 500 packets/s, together at most a third of the slowest link; for 16 of them "
            "(in such networks 8) a TCP connection of about 5 Mb/s, and four TCP transfers of 50 kB around the failure, less if "
            "links are slow: at most half of any link, even if each pair uses its cheapest path and a disjoint one; a pair that "
            "could not have 0.5 Mb/s has no TCP",
        ),
    ] = None,
    mechanisms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Mechanisms to compare; static is always included, and ingress-replication if all flows have several receivers.",
            show_default="all mechanisms, or all of multicast if all flows have several receivers",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_SEEDS, help="Number of seeds; every mechanism has the same seeds.")
    ] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_JOBS,
            help="Processes; the results do not depend on their number.",
            show_default="one for each processor",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the results.", show_default="out/compare, out/compare-live or out/compare-bng"
        ),
    ] = None,
    before_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds from the beginning to the failure.", show_default="1; with several failures 0.5; bng 8"
        ),
    ] = None,
    down_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds from the failure to the repair.", show_default="2; with several failures 1.5; bng 8"
        ),
    ] = None,
    after_s: Annotated[
        float | None,
        typer.Option(help="Seconds from the repair to the end.", show_default="1; with several failures 0.5; bng 12"),
    ] = None,
    detection_delay_ms: Annotated[float, typer.Option(help="Time from a failure to its detection by a switch.")] = 50.0,
    reaction_delay_ms: Annotated[
        float, typer.Option(help="Time from the detection to a controller's new routes.")
    ] = 100.0,
    executor: Annotated[Executor, typer.Option(help="Executor of the packets.")] = Executor.JIT,
    telemetry: TelemetryOption = None,
    subscribers: Annotated[int | None, typer.Option(help="Of --scenario bng, 2 to 400.", show_default="50")] = None,
    packets_per_s: Annotated[
        float | None, typer.Option(help="Of each subscriber in each direction.", show_default="50")
    ] = None,
    newcomers_per_s: Annotated[
        float | None, typer.Option(help="Other subscribers that dial while something is down.", show_default="4")
    ] = None,
    keepalive_s: Annotated[
        float | None,
        typer.Option(
            help="Seconds between LCP echoes; a session is over when three in a row are not answered.", show_default="1"
        ),
    ] = None,
) -> None:
    """Fail a link, a switch, or every link under each mechanism, and compare losses, outages and costs.

    Losses without the failure are subtracted, seed by seed. Mechanisms that differ by less than a margin, which the report
    states, share a rank. There is no ranking if losses without a failure are as large as its cost, or if a live run was disturbed.

    After an interrupt, the same command continues where it stopped.
    """
    from holdfast.compare import mechanisms as registry
    from holdfast.compare import results
    from holdfast.compare import scenario as scenarios

    given = None if mechanisms is None else [name.strip() for name in mechanisms.split(",")]
    processes = jobs or len(os.sched_getaffinity(0))
    crowd: dict[str, float | None] = {
        "subscribers": subscribers,
        "packets_per_s": packets_per_s,
        "newcomers_per_s": newcomers_per_s,
        "keepalive_s": keepalive_s,
    }
    times: dict[str, float | None] = {
        "before_s": before_s,
        "down_s": down_s,
        "after_s": after_s,
        "detection_delay_ms": detection_delay_ms,
        "reaction_delay_ms": reaction_delay_ms,
    }
    if scenario is not None:
        scenarios.check_alone(
            scenario.value,
            {
                "TOPOLOGY": topology,
                "--live": live or None,
                "--largest": largest or None,
                "--traffic": traffic,
                "--telemetry": telemetry,
            },
        )
        _compare_gateways(fail, given, range(1, seeds + 1), out, processes, executor, times, crowd)
        return
    if topology is None:
        raise ScenarioError("give a topology, or --scenario bng")
    for name, value in crowd.items():
        if value is not None:
            raise ScenarioError(f"--{name.replace('_', '-')} belongs to --scenario bng")
    registry.find(given or ())
    file = None if traffic is None else Path(traffic)
    built = scenarios.build(
        topology,
        fail=fail,
        largest=largest,
        traffic=scenarios.MULTICAST if traffic == scenarios.MULTICAST else file,
        executor=executor.value,
        when=times,
        live=live,
        telemetry=telemetry is not None,
    )
    baseline = registry.baseline(built.traffic)
    if telemetry is not None:
        given = registry.with_telemetry(given, baseline)
    chosen = registry.find(given or registry.defaults(built.traffic), baseline)
    folder = out or Path("out/compare-live" if live else "out/compare")
    network, runs = built.topology, len(chosen) * seeds * (len(built.failures) + 1)
    begins = f"{network.name}: {len(network.switches)} switches, {len(network.links)} links; {len(chosen)} mechanisms, {runs} runs"
    errors.print(begins, markup=False, highlight=False, soft_wrap=True)
    _show_comparison(
        lambda: results.run(built, chosen, range(1, seeds + 1), folder, jobs=processes, console=errors), folder
    )


def _compare_gateways(
    fail: str,
    names: Sequence[str] | None,
    seeds: Sequence[int],
    out: Path | None,
    jobs: int,
    executor: Executor,
    times: Mapping[str, float | None],
    crowd: Mapping[str, float | None],
) -> None:
    """Run ``compare --scenario bng``: compare mechanisms of gateways, and print the results."""
    from holdfast.compare.bng import mechanisms, results, scenario, terminal

    chosen = mechanisms.find(names)
    built = scenario.build(fail=fail, when=times, subscribers=crowd, executor=executor.value)
    folder = out or Path("out/compare-bng")
    with resumable():
        found = results.run(built, chosen, seeds, folder, jobs=jobs, console=errors)
    console.print(Text(f"{terminal.title(found)}\n", style="italic"))
    console.print(terminal.table(found))
    console.print(Text(f"\n{found.advice()}\n"))
    for note in (*terminal.failures(found), *found.notes()):
        console.print(Text(f"* {note}", style="dim"))
    say_where(folder)
