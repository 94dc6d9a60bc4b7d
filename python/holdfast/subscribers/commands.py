"""``holdfast bng``: runs a gateway, shows and ends its sessions, and dials as a subscriber."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from holdfast import regular_files
from holdfast.terminal import Console, Grid, shown_name

app = typer.Typer(no_args_is_help=True, help="A broadband network gateway: PPPoE sessions on a P4 switch.")

COLUMNS = ("session", "user", "line", "mac", "phase", "ipv4", "ipv6", "delegated", "bytes_up", "bytes_down")

_WIDE = 300
"""Columns of what is no terminal: each session has one line there."""

Name = Annotated[str, typer.Option("--name", help="The gateway's name in its configuration.")]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@app.command("run")
def run(
    configuration: Annotated[Path, typer.Argument(metavar="CONFIG", help="YAML; apps/bng/README.md documents it.")],
    keep_switch: Annotated[bool, typer.Option("--keep-switch", help="Let the switch run on in the end.")] = False,
) -> None:
    """Run a gateway's control plane, and its switch if there is none (needs root)."""
    from holdfast.apps.bng import live

    if doubt := regular_files.doubt(configuration, secret=True):
        _say(f"warning: {doubt}")
    live.run(live.read(configuration), _say, keep_switch=keep_switch)


@app.command("sessions")
def sessions(
    name: Name = "holdfast",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the sessions of a running gateway, with their traffic."""
    from holdfast.subscribers import operator_requests

    answer = operator_requests.ask(name, operator_requests.Sessions(usage=True), operator_requests.SessionsAnswer)
    if as_json:
        _say(json.dumps(answer.model_dump(), indent=2))
        return
    table = Grid()
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for row in answer.sessions:
        # Names are the subscribers': no markup, and no second line that looks like a session.
        cells = [getattr(row, each) for each in COLUMNS]
        table.add_row(*(Text("-" if cell is None else shown_name(str(cell))) for cell in cells))
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
    if answer.planes:
        _say(_planes(answer.planes, answer.drained))
    if answer.refusals:
        _say("refused: " + ", ".join(f"{count} by limits.{name}" for name, count in answer.refusals.items()))


@app.command("kick")
def kick(
    session: Annotated[list[int] | None, typer.Argument(min=1, max=65_534, help="Numbers of sessions.")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="End all sessions.")] = False,
    name: Name = "holdfast",
) -> None:
    """End sessions of a running gateway."""
    from holdfast.subscribers import operator_requests

    if bool(session) == everybody:
        raise typer.BadParameter("name sessions, or give --all")
    request = operator_requests.Kick(sessions="all" if everybody else session or [])
    answer = operator_requests.ask(name, request, operator_requests.KickAnswer)
    _say(f"{answer.kicked} sessions end")


@app.command("drain")
def drain(
    plane: Annotated[
        str | None, typer.Argument(help="A forwarding plane of a split gateway.", show_default=False)
    ] = None,
    name: Name = "holdfast",
) -> None:
    """Make a running gateway refuse new sessions and keep the ones it has. With PLANE, move all sessions off that plane."""
    _drain("drain", plane, name)


@app.command("undrain")
def undrain(
    plane: Annotated[
        str | None, typer.Argument(help="A forwarding plane of a split gateway.", show_default=False)
    ] = None,
    name: Name = "holdfast",
) -> None:
    """Make a drained gateway accept new sessions again. With PLANE, give that plane its share of lines back."""
    _drain("undrain", plane, name)


def _drain(verb: Literal["drain", "undrain"], plane: str | None, name: str) -> None:
    from holdfast.subscribers import operator_requests

    request = operator_requests.Drain(verb=verb, plane=plane)
    if plane is None:
        there = operator_requests.ask(name, request, operator_requests.DrainAnswer)
        _say(f"{'no new sessions' if verb == 'drain' else 'new sessions again'}; {there.sessions} there")
        return
    answer = operator_requests.ask(name, request, operator_requests.HandOverAnswer)
    _say(
        f"{_planes(answer.planes, [plane] if verb == 'drain' else [])}; "
        f"switched over in {answer.switched_ms:.0f} ms, the last packets let through after {answer.done_ms:.0f} ms"
    )


def _planes(planes: dict[str, int], drained: list[str]) -> str:
    return ", ".join(
        f"{name} has {count} sessions" + " and is drained" * (name in drained) for name, count in planes.items()
    )


@app.command("dial")
def dial(
    interface: Annotated[str, typer.Argument(help="The Ethernet interface towards the gateway.")],
    user: Annotated[str, typer.Option(help="The subscriber's name.")],
    password_file: Annotated[
        Path | None,
        typer.Option(help="A file whose first line is its password; - for the standard input.", show_default=False),
    ] = None,
    password: Annotated[str | None, typer.Option(hidden=True)] = None,
    tunnel: Annotated[str, typer.Option(help="The TUN device to make.")] = "ppp0",
    service_name: Annotated[str, typer.Option(help="The Service-Name to ask for.")] = "",
    max_payload: Annotated[int, typer.Option(min=1492, max=9000, help="PPP-Max-Payload (RFC 4638).")] = 1492,
    redial_s: Annotated[float | None, typer.Option(min=0.1, help="Dial again after a lost session.")] = None,
    keepalive_s: Annotated[float, typer.Option(min=0, help="Seconds between LCP Echo-Requests; 0 for none.")] = 10.0,
    keepalive_failures: Annotated[int, typer.Option(min=1, help="Echoes without an answer that end the session.")] = 3,
) -> None:
    """Dial as a subscriber: a TUN device gets the session's addresses and the default route (needs root).

    Without --password-file, the password is the value of HOLDFAST_PASSWORD, or is asked for.
    """
    from holdfast.subscribers import passwords
    from holdfast.subscribers.dialer import dial as online
    from holdfast.subscribers.subscriber import Account

    if password is not None:
        raise typer.BadParameter(
            f"every user of this machine can read it (ps): give --password-file, set {passwords.VARIABLE}, or be asked",
            param_hint="--password",
        )
    account = Account(
        user, passwords.password(user, password_file), service_name.encode(), max_payload=max_payload, redial_s=redial_s,
        keepalive_s=keepalive_s or None, keepalive_failures=keepalive_failures,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):
        # An import of some 25 ms, which the other commands do without.
        import asyncio

        asyncio.run(online(interface, account, tunnel, _say))
