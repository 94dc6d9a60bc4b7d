"""Commands of single applications: collect, bier, firewall. Those of bng are in :mod:`holdfast.subscribers.commands`."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.shared import DeviceId, console
from holdfast.terminal import printable

bier = typer.Typer(no_args_is_help=True, help="Multicast by Bit Index Explicit Replication.")
firewall = typer.Typer(no_args_is_help=True, help="Rule files of the firewall.")


def collect(
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Where reports arrive, over UDP.")
    ] = "0.0.0.0:32766",
    capture: Annotated[
        Path | None,
        typer.Option(help="Read the reports of a capture (pcap, pcapng) instead; --listen says their port."),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Directory for Parquet files with a row for each hop of each report.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help="Serve metrics for Prometheus at http://ADDRESS:PORT/metrics."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0.1, help="Seconds to listen.", show_default="until interrupted")
    ] = None,
    flows: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Flows in memory; beyond, the oldest one goes.")
    ] = 100_000,
    dscp: Annotated[int, typer.Option(min=0, max=63, help="DSCP of packets with INT in the domain.")] = 0x17,
    udp_port: Annotated[
        int, typer.Option(min=1, max=65535, help="UDP port of packets with INT in the domain.")
    ] = 54321,
    live: Annotated[
        bool, typer.Option(help="Show a table while listening.", show_default="on a terminal")
    ] = sys.stdout.isatty(),
) -> None:
    """Collect telemetry reports (v2.0): flows, paths, latencies, queues and drops.

    Reports that arrive faster than they can be handled are counted; so are malformed ones.
    """
    from holdfast.apps.telemetry import collect as collecting
    from holdfast.apps.telemetry.collector import Limits

    collecting.run(
        collecting.Settings(
            listen=listen,
            capture=capture,
            parquet=parquet,
            metrics=metrics,
            seconds=seconds,
            limits=Limits(flows=flows),
            dscp=dscp,
            udp_port=udp_port,
            live=live,
        ),
        console,
    )


class FastReroute(StrEnum):
    """The way that BIER packets take around a failure without a controller."""

    NONE = "none"
    TUNNEL = "tunnel"
    LFA = "lfa"


class Protect(StrEnum):
    """The element that BIER-FRR gets packets around."""

    LINK = "link"
    NODE = "node"


@bier.command("coverage")
def bier_coverage(
    topology: Annotated[str, typer.Argument(help="A file or a name, as for 'holdfast topology'.")],
    frr: Annotated[
        FastReroute, typer.Option(help="Fast reroute, by tunnels or by loop-free alternates.")
    ] = FastReroute.TUNNEL,
    protect: Annotated[
        Protect, typer.Option(help="Against the failure of links alone, or of switches too.")
    ] = Protect.LINK,
    as_json: Annotated[bool, typer.Option("--json", help="Print every failure as JSON.")] = False,
) -> None:
    """Show which single failures lose packets between which switches, until the controller has reacted."""
    from holdfast import topologies
    from holdfast.apps.bier import coverage
    from holdfast.apps.bier.planning import Scheme, number_switches

    loaded = topologies.load(topology)
    rows = coverage.coverage_report(loaded, Scheme(number_switches(loaded), frr=frr.value, protect=protect.value))
    if as_json:
        sys.stdout.write(json.dumps(coverage.as_json(rows), indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in coverage.table(rows))


RulesFile = Annotated[Path, typer.Argument(metavar="RULES", help="A rule file (YAML); apps/firewall documents it.")]


@firewall.command("check")
def firewall_check(
    rules: RulesFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a rule file, and find the rules that are shadowed, redundant or contradictory. Status 1 if there are any."""
    from holdfast.apps.firewall import report
    from holdfast.apps.firewall.rules import read

    located = read(rules)
    findings = report.findings(located)
    if as_json:
        sys.stdout.write(json.dumps(findings, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in report.sentences(located, findings))
    if findings:
        raise typer.Exit(1)


@firewall.command("show")
def firewall_show(
    rules: RulesFile,
    grpc: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="P4Runtime server of a switch with these rules, to show its counters."),
    ] = None,
    device_id: DeviceId = 1,
) -> None:
    """Show the rules in the order in which they are tried, and for a running switch how often each rule and check decided."""
    from holdfast.apps.firewall import report
    from holdfast.apps.firewall.rules import read

    loaded = read(rules).value
    counts = None if grpc is None else report.counts(grpc, device_id)
    console.print(report.rules_table(loaded, counts))
    if counts is not None:
        console.print(report.drops_table(counts))
