"""``holdfast compare``: a command for each world. Options that belong to one world are that command's alone."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.text import Text

from holdfast import interrupts, whole_files
from holdfast.cli import completions
from holdfast.cli.shared import (
    MAX_JOBS,
    MAX_SEEDS,
    Executor,
    Web,
    WithPage,
    check_folder,
    console,
    errors,
    resumable,
    say,
    say_where,
    writing,
)
from holdfast.errors import ScenarioError

if TYPE_CHECKING:
    from holdfast.compare.world import World


class Telemetry(StrEnum):
    """The telemetry that a comparison can use."""

    INT = "int"


LargestOption = Annotated[
    bool, typer.Option("--largest", help="Of a topology in parts take the largest.", show_default=False)
]

TelemetryOption = Annotated[
    Telemetry | None,
    typer.Option("--telemetry", metavar="int", help="Latency and queues by INT, of static and reroute."),
]

# ---- Options of every world ----

SeedsOption = Annotated[
    int, typer.Option(min=1, max=MAX_SEEDS, metavar="N", help="Runs with other random numbers.", show_default=False)
]
JobsOption = Annotated[
    int | None,
    typer.Option(min=1, max=MAX_JOBS, metavar="N", help="Processes; the results are the same."),
]
DetectionOption = Annotated[float, typer.Option(metavar="MS", help="Until a switch notices a failure.")]
ReactionOption = Annotated[float, typer.Option(metavar="MS", help="From then to new routes.")]
CsvOption = Annotated[
    bool, typer.Option("--csv", help="Write the tables of the results as CSV, too.", show_default=False)
]
ExecutorOption = Annotated[Executor, typer.Option(metavar="NAME", help="jit, or interpreter.", show_default=False)]
RequireOption = Annotated[
    list[str] | None,
    typer.Option("--require", metavar="LIMITS", help="As 'outage < 50ms, lost < 10'; else status 1."),
]
MarkdownOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write ranking and verdicts as Markdown.")]
JunitOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a test case for each --require as XML.")]


class Wanted(NamedTuple):
    """What a comparison writes beside its results, and what is required of it."""

    csv: bool
    require: Sequence[str]
    markdown: Path | None
    junit: Path | None


def _seconds(what: str) -> Any:
    return typer.Option(metavar="S", help=f"Seconds {what}.")


def _out(default: str) -> Any:
    return typer.Option(help="Directory for the results.", show_default=default)


def show_comparison(world: World[Any, Any, Any], run: Callable[[], Any], out: Path) -> Any:
    """Run a comparison of ``world``, print its tables, its advice and the notes on them, and return it."""
    with resumable():
        found = run()
    console.print(Text(f"{world.title(found)}\n", style="italic"))
    for place, table in enumerate(world.shown(found)):
        if place:
            console.print("")
        console.print(table)
    console.print(Text(f"\n{world.advice(found)}\n"))
    for note in (*world.legend(found), *world.notes(found)):
        console.print(Text(f"* {note}", style="dim"))
    say_where(out)
    return found


def folder_of(given: Path | None, base: Path, scenario: Any, mechanisms: Sequence[Any], seeds: Sequence[int]) -> Path:
    """Return the folder ``given`` for a comparison's results, or its own below ``base``'s parent.

    Say if a given folder has the results of another comparison, which are replaced.
    """
    from holdfast.compare import folders

    wanted = folders.key(scenario, mechanisms, seeds)
    if given is None:
        return folders.own(base, wanted, again=scenario.live)
    if folders.found_in(given) not in (None, wanted):
        say("note", f"{given} has the results of another comparison, which are replaced")
    return given


def _when(*given: float | None) -> dict[str, float | None]:
    """Return the times that are given in the order of the options, by name."""
    names = ("before_s", "down_s", "after_s", "detection_delay_ms", "reaction_delay_ms")
    return dict(zip(names, given, strict=True))


OF_THE_MACHINE = ("--out", "--jobs", "--web", "--markdown", "--junit")
"""Options on which no result depends, as a report names the command."""


def _typed() -> str:
    """Return the command as a user typed it, without what is of the machine and not of the results."""
    words = iter(sys.argv[1:])
    kept = []
    for word in words:
        option, equals, _ = word.partition("=")
        if option in OF_THE_MACHINE:
            if not equals and option != "--web":
                next(words, None)
            continue
        kept.append(word)
    return shlex.join(("holdfast", *kept)) if kept[:1] == ["compare"] else ""


def _names(mechanisms: str | None) -> list[str] | None:
    return None if mechanisms is None else [name.strip() for name in mechanisms.split(",")]


def _traffic(text: str | None) -> Path | str | None:
    """Return the path of a traffic file, or the name or place of other traffic as it was given."""
    from holdfast.compare import scenario
    from holdfast.extensions import is_place

    if text is None or text == scenario.MULTICAST:
        return text
    if not os.path.exists(text) and (is_place(text) or text in scenario.TRAFFIC.names()):  # noqa: PTH110 - Path's can raise
        return text
    return Path(text)


def _compare(
    world: World[Any, Any, Any],
    scenario: Any,
    names: Sequence[str] | None,
    seeds: int,
    jobs: int | None,
    given: Path | None,
    base: Path,
    wanted: Wanted,
    web: str | None = None,
) -> None:
    """Compare mechanisms of a world with the seeds from 1 to ``seeds``, and print the results and whether they are as required.

    ``given``: the folder of the results; without it that of this comparison, called ``base`` or like it.
    """
    from holdfast.compare import requirements, verdicts

    required = [requirements.read(text, world.measures) for text in wanted.require]
    chosen = world.choose(scenario, names)
    requirements.check(required, [each.name for each in chosen])
    for file in (wanted.markdown, wanted.junit):
        check_folder(file)
    out = folder_of(given, base, scenario, chosen, range(1, seeds + 1))
    runs = len(chosen) * seeds * (len(scenario.failures) + 1)
    begins = f"{world.about(scenario)}; {len(chosen)} mechanisms, {runs} runs"
    errors.print(begins, markup=False, highlight=False, soft_wrap=True)
    processes = jobs or len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        page = None
        if web is not None:
            from holdfast.web.comparison import described, page_of_comparison

            out.mkdir(parents=True, exist_ok=True)
            about = described(world.about(scenario), scenario, chosen, range(1, seeds + 1), out)
            page = stack.enter_context(page_of_comparison(about, web))
            console.print(f"the page: {page.address}", markup=False, highlight=False, soft_wrap=True)
        found = show_comparison(
            world,
            lambda: world.run(
                scenario,
                chosen,
                range(1, seeds + 1),
                out,
                jobs=processes,
                console=errors,
                csv=wanted.csv,
                requirements=required,
                told=None if page is None else page.told,
                command=_typed(),
                # Comparisons of the same scenario share their finished runs.
                runs=None if given is not None else base / "runs",
            ),
            out,
        )
        if page is not None:
            page.done()
            console.print("the page shows the results until an interrupt", markup=False, highlight=False)
            with suppress(KeyboardInterrupt), interrupts.raised():
                page.wait()
    judged = world.judged(found, required)
    for verdict in judged:
        for line in requirements.sentences(verdict, world.measures):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if wanted.markdown is not None:
        with writing(wanted.markdown):
            whole_files.write_text(wanted.markdown, verdicts.markdown(world, found, judged))
    if wanted.junit is not None:
        with writing(wanted.junit):
            whole_files.write_text(wanted.junit, verdicts.junit(world, found, judged))
    if not all(verdict.is_met for verdict in judged):
        raise typer.Exit(1)


def compare(
    topology: Annotated[
        str,
        typer.Argument(
            help="A file, or a name such as abilene, ring:5 or waxman:100.",
            metavar="TOPOLOGY",
            autocompletion=completions.topologies,
        ),
    ],
    fail: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="A link A-B, a switch, several at once (A-B+C-D, a shared risk group), or in turn: all links, nodes, "
            "pairs of links, srlg, sample:N, random:K.",
        ),
    ] = "all",
    traffic: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="YAML, CSV, multicast, or FILE.py:NAME."),
    ] = None,
    mechanisms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="What to compare with static; all by default.",
            autocompletion=completions.mechanisms,
        ),
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py:NAME", help="An own one (docs/MECHANISMS.md); repeatable."),
    ] = None,
    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Run nothing: say what is protected, and why not.", show_default=False),
    ] = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="In real time, with the kernel's hosts; needs root.", show_default=False),
    ] = False,
    largest: LargestOption = False,
    seeds: SeedsOption = 1,
    jobs: JobsOption = None,
    out: Annotated[Path | None, typer.Option(metavar="DIRECTORY", help="Where the results go.")] = None,
    before_s: Annotated[float | None, _seconds("before the failure: 1, of several 0.5")] = None,
    down_s: Annotated[float | None, _seconds("until the repair: 2, of several 1.5")] = None,
    after_s: Annotated[float | None, _seconds("after the repair: 1, of several 0.5")] = None,
    detection_delay_ms: DetectionOption = 50.0,
    reaction_delay_ms: ReactionOption = 100.0,
    require: RequireOption = None,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    csv: CsvOption = False,
    telemetry: TelemetryOption = None,
    web: Web = None,
    executor: ExecutorOption = Executor.JIT,
) -> None:
    """Fail links or switches under each mechanism, and compare losses, outages and costs.

    After an interrupt, the same command continues where it stopped. The documentation has the rest, and holdfast compare gateways
    --help is of broadband gateways.
    """
    from holdfast.compare import mechanisms as registry
    from holdfast.compare import results
    from holdfast.compare import scenario as scenarios

    if topology in OTHERS:
        raise ScenarioError(f"{topology} is no topology: its name comes first, before any option")
    names = _names(mechanisms)
    registry.find([*(names or ()), *(mechanism or ())])
    built = scenarios.build(
        topology,
        fail=fail,
        largest=largest,
        traffic=_traffic(traffic),
        executor=executor.value,
        when=_when(before_s, down_s, after_s, detection_delay_ms, reaction_delay_ms),
        live=live,
        telemetry=telemetry is not None,
    )
    if mechanism:
        names = [*(results.default_names(built) if names is None else names), *mechanism]
    if coverage:
        given = {
            "--require": require,
            "--markdown": markdown,
            "--junit": junit,
            "--csv": csv,
            "--out": out,
            "--web": web,
        }
        if named := [option for option, value in given.items() if value]:
            raise ScenarioError(f"--coverage runs nothing, so that there is nothing for {' and '.join(named)}")
        from holdfast.compare import coverage as coverages

        for note in built.notes:
            say("note", note)

        for line in coverages.lines(built, coverages.protected(built, results.WORLD.choose(built, names))):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    wanted = Wanted(csv, require or (), markdown, junit)
    base = Path("out/compare-live" if live else "out/compare")
    _compare(results.WORLD, built, names, seeds, jobs, out, base, wanted, web)


def gateways(
    fail: Annotated[
        str,
        typer.Option(
            metavar="NAME|all", help="plane, balancer, auth, controller, radius, access, or all of them in turn."
        ),
    ] = "all",
    subscribers: Annotated[int, typer.Option(help="Their number, 2 to 400.")] = 50,
    packets_per_s: Annotated[float, typer.Option(help="Of each subscriber in each direction.")] = 50,
    newcomers_per_s: Annotated[float, typer.Option(help="Other subscribers that dial while something is down.")] = 4,
    keepalive_s: Annotated[
        float,
        typer.Option(help="Seconds between LCP echoes; a session is over when three in a row are not answered."),
    ] = 1,
    mechanisms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="single, pair, split, split-2; single is always included.",
            show_default="all",
        ),
    ] = None,
    seeds: SeedsOption = 1,
    jobs: JobsOption = None,
    out: Annotated[Path | None, _out("out/compare-gateways")] = None,
    before_s: Annotated[float | None, _seconds("before the failure: 8")] = None,
    down_s: Annotated[float | None, _seconds("until the repair: 8")] = None,
    after_s: Annotated[float | None, _seconds("after the repair: 12")] = None,
    detection_delay_ms: DetectionOption = 50.0,
    reaction_delay_ms: ReactionOption = 100.0,
    executor: ExecutorOption = Executor.JIT,
    csv: CsvOption = False,
    require: RequireOption = None,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
) -> None:
    """Fail a part of broadband gateways, and compare sessions kept, losses, and times to recover.

    PPPoE subscribers are behind one gateway of a single plane, two of them, or one whose planes are split behind a balancer.

    After an interrupt, the same command continues where it stopped.
    """
    from holdfast.compare.gateways import results, scenario

    names = _names(mechanisms)
    built = scenario.build(
        fail=fail,
        when=_when(before_s, down_s, after_s, detection_delay_ms, reaction_delay_ms),
        subscribers={
            "subscribers": subscribers,
            "packets_per_s": packets_per_s,
            "newcomers_per_s": newcomers_per_s,
            "keepalive_s": keepalive_s,
        },
        executor=executor.value,
    )
    wanted = Wanted(csv, require or (), markdown, junit)
    _compare(results.WORLD, built, names, seeds, jobs, out, Path("out/compare-gateways"), wanted)


OTHERS = {"gateways": gateways}
"""The commands of other worlds than networks, by the name that is typed in place of a topology."""


def other(name: str) -> Any:
    """Return the command of a world of :data:`OTHERS`."""
    app = typer.Typer(add_completion=False)
    app.command()(OTHERS[name])
    return typer.main.get_command(app)


class Compare(WithPage):
    """The command for networks, which becomes another world's command if its first argument is that world's name.

    Its help has a line for each option, so that it fits on a screen.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **{**keywords, "rich_markup_mode": None})

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the world's command."""
        if args and args[0] in OTHERS:
            return other(args[0]).make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)
