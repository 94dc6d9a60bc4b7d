"""``holdfast port``: ports of a running ``holdfast switch``, over a socket of this machine that only its user may open.

P4Runtime has no ports to add and no interfaces to name, so this is beside it.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter

from holdfast.live.switch import Io, LiveSwitch
from holdfast.measurements import PortStatistics
from holdfast.numerals import is_numeral
from holdfast.operations import directory, verbs
from holdfast.p4runtime.addresses import Access
from holdfast.p4runtime.server import Server


class ListPorts(verbs.Verb):
    """Asks for the ports."""

    verb: Literal["list"] = "list"


class AddPort(verbs.Verb):
    """Adds an interface as a port."""

    verb: Literal["add"] = "add"
    port: int
    interface: str
    io: Io


class RemovePort(verbs.Verb):
    """Removes a port."""

    verb: Literal["remove"] = "remove"
    port: int


class AskServer(verbs.Verb):
    """Asks for the P4Runtime server."""

    verb: Literal["server"] = "server"


class PortRow(verbs.Answer):
    """A port with its counters since it was added (:class:`PortStatistics`); a removed one has no state and no kind of socket."""

    port: int
    interface: str
    up: bool | None
    io: str | None
    rx_packets: int
    rx_bytes: int
    rx_overrun_drops: int
    rx_oversized_drops: int
    rx_errors: int
    rx_checksums_completed: int
    tx_packets: int
    tx_bytes: int
    tx_drops: int


class Ports(verbs.Answer):
    """All ports, or the one that was removed."""

    ports: list[PortRow]


class RunningServer(verbs.Answer):
    """The address of a running switch's P4Runtime server, and the clients that may connect."""

    address: str
    access: Access


Request = ListPorts | AddPort | RemovePort | AskServer

REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="verb")])

A = TypeVar("A", bound=verbs.Answer)


def socket_path(device_id: int) -> Path:
    """Return the path of the socket at which the switch with this device id listens."""
    return directory.socket_path(f"switch-{device_id}")


def control_socket(live: LiveSwitch, device_id: int, server: Server) -> verbs.OperatorSocket:
    """Return the socket that answers requests for a switch; a context manager."""
    changing = threading.Lock()

    def obey(request: Request) -> verbs.Answer:
        if isinstance(request, AskServer):
            return RunningServer(address=server.address, access=server.access)
        with changing:
            if isinstance(request, AddPort):
                live.add_port(request.port, request.interface, io=request.io)
            elif isinstance(request, RemovePort):
                name = live.ports.get(request.port, "")
                statistics = live.remove_port(request.port)
                return Ports(ports=[_row(request.port, name, statistics, up=None, io=None)])
            readings = live.port_readings()
            return Ports(
                ports=[
                    _row(port, name, statistics, up=up, io=live.port_io(port))
                    for port, name, statistics, up in readings
                ]
            )

    taken = f"a switch with device id {device_id} is running: choose another --device-id"
    return verbs.OperatorSocket(socket_path(device_id), taken, REQUESTS, obey)


def _row(port: int, interface: str, statistics: PortStatistics, *, up: bool | None, io: str | None) -> PortRow:
    return PortRow(port=port, interface=interface, up=up, io=io, **asdict(statistics))


def ask(device_id: int, request: Request, answer: type[A]) -> A:
    """Send a request to the switch with this device id, and return the answer.

    Raises :class:`LiveError` if it does not answer as a switch does, or refuses.
    """
    return verbs.ask(socket_path(device_id), f"switch with device id {device_id}", request, answer)


def running_switches() -> list[int]:
    """Return the device ids of the switches that run on this machine, also of those that this user may not access."""
    names = [path.stem.removeprefix("switch-") for path in directory.DIRECTORY.glob("switch-*.sock")]
    numbers = sorted(int(name) for name in names if is_numeral(name))
    return [number for number in numbers if not directory.is_left_behind(socket_path(number))]
