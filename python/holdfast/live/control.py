"""``holdfast port``: ports of a running ``holdfast switch``, over a socket of this machine that only its user may open.

P4Runtime has no ports to add and no interfaces to name, so this is beside it: a request and an answer, each a line of JSON.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, cast, get_args

from holdfast import run_directory
from holdfast.errors import HoldfastError, LiveError
from holdfast.live.switch import Io, LiveSwitch
from holdfast.numerals import is_numeral
from holdfast.p4runtime.addresses import Access
from holdfast.p4runtime.server import Server

DIRECTORY = run_directory.DIRECTORY
"""The directory of the sockets, one per device."""

_MAX_REQUEST_BYTES = 4096
_PATIENCE_S = 10.0


def socket_path(device_id: int) -> Path:
    """Return the path of the socket at which the switch with this device id listens."""
    return DIRECTORY / f"switch-{device_id}.sock"


class ControlSocket:
    """Answers requests for a switch, in a thread of its own; a context manager."""

    def __init__(self, live: LiveSwitch, device_id: int, server: Server) -> None:
        self._live = live
        self._server = server
        self._path = socket_path(device_id)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listen(device_id)
        except BaseException:
            self._socket.close()
            raise
        self._thread = threading.Thread(target=self._serve, name="holdfast-control", daemon=True)

    def _listen(self, device_id: int) -> None:
        try:
            run_directory.made(DIRECTORY)
            if not _is_left_behind(self._path):
                raise LiveError(f"a switch with device id {device_id} is running: choose another --device-id")
            self._path.unlink(missing_ok=True)
            before = os.umask(0o077)
            try:
                self._socket.bind(str(self._path))
            finally:
                os.umask(before)
            self._socket.listen()
        except OSError as e:
            raise LiveError(f"cannot listen on {self._path}: {e.strerror or e}") from None

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(_PATIENCE_S)
                try:
                    connection.sendall(json.dumps(self._answer(_read_line(connection))).encode() + b"\n")
                except OSError:
                    # The client has gone.
                    continue

    def _answer(self, line: bytes) -> Mapping[str, object]:
        try:
            return self._obey(json.loads(line))
        except HoldfastError as e:
            return {"error": str(e)}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            return {"error": f"not a request: {e!r}"}

    def _obey(self, request: Mapping[str, object]) -> Mapping[str, object]:
        verb = request["verb"]
        if verb == "server":
            return {"address": self._server.address, "access": self._server.access}
        if verb == "add":
            port, interface, io = request["port"], request["interface"], request["io"]
            if not isinstance(port, int) or not isinstance(interface, str):
                raise LiveError("a port is a number, an interface a name")
            self._live.add_port(port, interface, io=cast("Io", str(io)))
        elif verb == "remove":
            port = request["port"]
            if not isinstance(port, int):
                raise LiveError("a port is a number")
            name = self._live.ports.get(port)
            return {
                "ports": [
                    {"port": port, "interface": name, "up": None, "io": None, **asdict(self._live.remove_port(port))}
                ]
            }
        elif verb != "list":
            raise LiveError(f"there is no request {verb!r}")
        ports = [
            {
                "port": port,
                "interface": name,
                "up": self._live.port_is_up(port),
                "io": self._live.port_io(port),
                **asdict(self._live.port_statistics(port)),
            }
            for port, name in self._live.ports.items()
        ]
        return {"ports": ports}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Closing alone would leave the thread waiting.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(_PATIENCE_S)
        self._path.unlink(missing_ok=True)


def request(device_id: int, **fields: object) -> list[dict[str, object]]:
    """Send a request to the switch with this device id, and return the ports in its answer."""
    return cast("list[dict[str, object]]", _ask(device_id, fields)["ports"])


@dataclass(frozen=True)
class RunningServer:
    """The address of a running switch's P4Runtime server, and the clients that may connect."""

    device_id: int
    address: str
    access: Access


def running_switches() -> list[int]:
    """Return the device ids of the switches that run on this machine, also of those that this user may not access."""
    names = [path.stem.removeprefix("switch-") for path in DIRECTORY.glob("switch-*.sock")]
    return sorted(int(name) for name in names if is_numeral(name) and not _is_left_behind(socket_path(int(name))))


def server_of(device_id: int) -> RunningServer:
    """Ask the switch with this device id for the address and access of its P4Runtime server.

    Raises :class:`LiveError` if it does not answer as a switch does.
    """
    answer = _ask(device_id, {"verb": "server"})
    address, access = answer.get("address"), answer.get("access")
    if not isinstance(address, str) or access not in get_args(Access):
        raise LiveError(f"what answers at {socket_path(device_id)} is no switch")
    return RunningServer(device_id, address, cast("Access", access))


def _ask(device_id: int, fields: Mapping[str, object]) -> dict[str, object]:
    path = socket_path(device_id)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(str(path))
            connection.sendall(json.dumps(fields).encode() + b"\n")
            answer = json.loads(_read_line(connection))
    except (OSError, ValueError, RecursionError) as e:
        reason = getattr(e, "strerror", None) or str(e)
        raise LiveError(f"no switch with device id {device_id} answers at {path}: {reason}") from None
    if not isinstance(answer, dict):
        raise LiveError(f"what answers at {path} is no switch")
    if "error" in answer:
        raise LiveError(str(answer["error"]))
    return cast("dict[str, object]", answer)


def _is_left_behind(path: Path) -> bool:
    """Return True if no switch listens at a socket, as the switch was killed or the socket does not exist."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        try:
            connection.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            pass  # somebody is there, who does not answer this user, or not now
        return False


def _read_line(connection: socket.socket) -> bytes:
    """Read up to the end of a line or the limit of bytes. Raises TimeoutError if the line is not complete in time."""
    data, deadline = b"", time.monotonic() + _PATIENCE_S
    while not data.endswith(b"\n"):
        if time.monotonic() > deadline:
            raise TimeoutError("the line does not end")
        part = connection.recv(_MAX_REQUEST_BYTES)
        if not part or len(data) > 1 << 20:
            break
        data += part
    return data
