"""Commands for a switch on Linux interfaces: switch, port."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast import regular_files
from holdfast.cli.programs import load_or_fail
from holdfast.cli.shared import (
    ENTRIES_FORMATS,
    MAX_PORT,
    Defines,
    DeviceId,
    Executor,
    Includes,
    Io,
    P4Info,
    Web,
    console,
    fail,
    interruptible,
    say,
    warned_of,
)
from holdfast.errors import EntriesWarning

if TYPE_CHECKING:
    from holdfast.control.desired import Desired

COPIES_PER_S = 200_000
"""Of :data:`holdfast._core.COPIES_PER_S`, likewise."""

LOG_PER_S = 100
"""Of :class:`holdfast.live.switch.Records`, likewise."""

ports = typer.Typer(no_args_is_help=True, help="Ports of a running holdfast switch.")


def switch(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="P4_16 program, or its compiled form; a P4Runtime client may replace it. Without one, packets are dropped "
            "until a client sets the pipeline.",
        ),
    ] = None,
    interface: Annotated[
        list[str], typer.Option("--interface", "-i", metavar="PORT@NAME", help="Add a port (repeatable).")
    ] = [],  # noqa: B006
    grpc: Annotated[str, typer.Option(help="Address of the P4Runtime server.")] = "127.0.0.1:9559",
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Let every client that reaches the address write, even if it is not loopback."),
    ] = False,
    tls_certificate: Annotated[Path | None, typer.Option(help="PEM file of the server's certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the certificate's key.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="PEM file of the authority of clients' certificates.")
    ] = None,
    client_rights: Annotated[
        Path | None,
        typer.Option(metavar="YAML", help="Rights of certificates: to read, to write as a role, to set the pipeline."),
    ] = None,
    pipeline_role: Annotated[
        list[str],
        typer.Option(metavar="ROLE", help="A role that may replace the program; the default role always may."),
    ] = [],  # noqa: B006
    limit: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUE", help="Change a limit for P4Runtime clients, as in docs/SECURITY.md (repeatable)."
        ),
    ] = [],  # noqa: B006
    copies_per_s: Annotated[
        int,
        typer.Option(
            min=0,
            help="Maximum of resubmissions, recirculations and clones per second beyond the first two of each packet.",
        ),
    ] = COPIES_PER_S,
    device_id: Annotated[
        int,
        typer.Option(help="P4Runtime device id of the switch: from 1 on, or 0 for clients that send none."),
    ] = 1,
    cpu_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=MAX_PORT, help="Port of the controller; by default, that of the architecture (v1model: 510)."
        ),
    ] = None,
    executor: Annotated[Executor, typer.Option(help="Executor of the packets.")] = Executor.JIT,
    io: Annotated[
        Io, typer.Option(help="How frames leave: af_xdp is faster, af_packet is visible to tc and tcpdump.")
    ] = Io.AUTO,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Show metrics for Prometheus at http://ADDRESS:PORT/metrics, and /snapshot, /events.",
        ),
    ] = None,
    entries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"What the switch holds from the start: {ENTRIES_FORMATS}."),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Capture the frames of each port there: INTERFACE_in.pcap and INTERFACE_out.pcap.",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write each packet's path through the program there; - is standard output."),
    ] = None,
    log_rate: Annotated[
        int,
        typer.Option(min=1, max=1_000_000, help="Packets per second in the log; the others are only counted there."),
    ] = LOG_PER_S,
    web: Web = None,
    p4info: P4Info = None,
    define: Defines = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
) -> None:
    """Run a switch on Linux interfaces, controlled over P4Runtime (needs root)."""
    from holdfast.live import switch as live_switch
    from holdfast.operations.pages import endpoint
    from holdfast.p4runtime import limits

    for file, secret in ((tls_key, True), (client_rights, False)):
        if file is not None and (doubt := regular_files.doubt(file, secret=secret)):
            say("warning", doubt)
    limits.change(limit)
    shown_at = None if metrics is None else endpoint("--metrics", metrics)
    if pcap is not None and not pcap.is_dir():
        fail(f"--pcap: there is no directory {str(pcap)!r}")
    if source is None and (p4info is not None or define or include or entries is not None):
        fail("--entries, --p4info, -D and -I belong to a program")
    program = None if source is None else load_or_fail(source, define, include, p4info, needs_p4info=True)
    wanted: Desired = ()
    if entries is not None and program is not None:
        from holdfast import entries_files

        with warned_of(EntriesWarning):
            wanted = entries_files.load(entries, program)
    with interruptible():
        live_switch.run(
            program,
            [live_switch.parse_port(text) for text in interface],
            io=io.value,
            address=grpc,
            tls=live_switch.tls_files(tls_certificate, tls_key, tls_client_ca, client_rights),
            insecure=insecure,
            pipeline_roles=pipeline_role,
            copies_per_s=copies_per_s,
            device_id=device_id,
            cpu_port=cpu_port,
            executor=executor.value,
            metrics=shown_at,
            console=console,
            entries=wanted,
            records=live_switch.Records(pcap, log, log_rate),
            web=web,
        )


@ports.command("list")
def port_list(device_id: DeviceId = 1, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Show the counters of the ports."""
    from holdfast.live import control
    from holdfast.live import switch as live_switch

    rows = [row.model_dump() for row in control.ask(device_id, control.ListPorts(), control.Ports).ports]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        console.print(live_switch.statistics_table(rows))


@ports.command("add")
def port_add(
    port: Annotated[str, typer.Argument(metavar="PORT@NAME", help="Port and interface, such as 2@veth2.")],
    device_id: DeviceId = 1,
    io: Annotated[Io, typer.Option(help="How frames leave.")] = Io.AUTO,
) -> None:
    """Add an interface as a port of the running switch."""
    from holdfast.live import control
    from holdfast.live import switch as live_switch

    number, name = live_switch.parse_port(port)
    control.ask(device_id, control.AddPort(port=number, interface=name, io=io.value), control.Ports)


@ports.command("remove")
def port_remove(
    port: Annotated[int, typer.Argument(min=0, max=MAX_PORT, help="Number of the port.")],
    device_id: DeviceId = 1,
) -> None:
    """Remove a port from the running switch, and print its counters."""
    from holdfast.live import control
    from holdfast.live import switch as live_switch

    removed = control.ask(device_id, control.RemovePort(port=port), control.Ports)
    console.print(live_switch.statistics_table([row.model_dump() for row in removed.ports]))
