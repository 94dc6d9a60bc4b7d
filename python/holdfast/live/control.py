"""A running ``holdfast switch`` over a socket of this machine that only its user may open: ports, entries, its server.

P4Runtime has no ports to add and no interfaces to name, so ``holdfast port`` is beside it. ``simple_switch_CLI`` writes entries
here as the operator of the machine does, whoever is the primary.

Interfaces are named per network namespace, and so are switches: two namespaces may have a switch with the same device id. A
switch is asked for in the caller's own namespace first, then in the others.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter

from holdfast.errors import LiveError
from holdfast.live.switch import Io, LiveSwitch
from holdfast.measurements import PortStatistics
from holdfast.numerals import is_numeral
from holdfast.operations import directory, verbs
from holdfast.p4runtime.addresses import Access
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.received import Event
from holdfast.p4runtime.server import Server
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2

_NAMESPACES = Path("/run/netns")
"""The directory in which ``ip netns`` lists namespaces."""


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


class Write(verbs.Verb):
    """Writes entities as the operator, regardless of primaries. ``request``: a serialized ``WriteRequest``, in base64."""

    verb: Literal["write"] = "write"
    request: str


class Read(verbs.Verb):
    """Asks for entities. ``request``: a serialized ``ReadRequest``, in base64."""

    verb: Literal["read"] = "read"
    request: str


class AskPipeline(verbs.Verb):
    """Asks for the pipeline's P4Info."""

    verb: Literal["pipeline"] = "pipeline"


class Messages(verbs.Answer):
    """Serialized messages in base64: of a Write none, of a Read ``ReadResponse``, of a pipeline its config."""

    messages: list[str]


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
    """The address of a running switch's P4Runtime server, and the clients that may connect.

    ``thrift_port``: the number that ``simple_switch_CLI`` finds the switch by, if it was started with one.
    """

    address: str
    access: Access
    thrift_port: int | None = None


Request = ListPorts | AddPort | RemovePort | AskServer | Write | Read | AskPipeline

REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="verb")])

A = TypeVar("A", bound=verbs.Answer)


@dataclass(frozen=True)
class Running:
    """A running switch: its device id, the inode of its network namespace, and its socket."""

    device_id: int
    namespace: int
    path: Path

    @property
    def is_here(self) -> bool:
        """True if the switch is in this process' network namespace."""
        return self.namespace == _namespace()

    @property
    def where(self) -> str:
        """The namespace in words."""
        if self.is_here:
            return "this network namespace"
        named = [each.name for each in _named_namespaces() if each.stat().st_ino == self.namespace]
        return f"network namespace {named[0] if named else f'net:[{self.namespace}]'}"


def socket_path(device_id: int) -> Path:
    """Return the path of the socket at which the switch with this device id listens in this process' network namespace."""
    return directory.socket_path(f"switch-{device_id}@{_namespace()}")


def _namespace() -> int:
    """Return the inode of this process' network namespace, which nothing else has while the namespace is there."""
    return os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116


def _named_namespaces() -> Iterable[Path]:
    try:
        return sorted(each for each in _NAMESPACES.iterdir() if each.is_file())
    except OSError:
        return []


def control_socket(
    live: LiveSwitch, device_id: int, server: Server, *, thrift_port: int | None = None
) -> verbs.OperatorSocket:
    """Return the control socket of a running switch, which answers requests of the machine's operator; a context manager."""
    changing = threading.Lock()

    def obey(request: Request) -> verbs.Answer:
        if isinstance(request, AskServer):
            return RunningServer(address=server.address, access=server.access, thrift_port=thrift_port)
        if isinstance(request, Write | Read | AskPipeline):
            return Messages(messages=[base64.b64encode(each).decode() for each in _entities(live, request)])
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

    directory.clear("switch-*.sock")  # namespaces do not come again, so nothing would replace theirs
    taken = f"a switch with device id {device_id} is running in this network namespace: choose another --device-id"
    return verbs.OperatorSocket(socket_path(device_id), taken, REQUESTS, obey)


def _entities(live: LiveSwitch, request: Write | Read | AskPipeline) -> Iterable[bytes]:
    """Execute an operator's request to write, read or show the pipeline; return the serialized messages of the answer.

    Raises :class:`holdfast.operations.verbs.RefusedError` for a request that is not in base64.
    """
    device = live.device
    if isinstance(request, AskPipeline):
        asked = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=device.device_id)
        asked.response_type = p4runtime_pb2.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE
        return [device.get_forwarding_pipeline_config(asked).SerializeToString()]
    try:
        data = base64.b64decode(request.request, validate=True)
    except ValueError:
        raise verbs.RefusedError("the request is not in base64", "INVALID_ARGUMENT") from None
    try:
        if isinstance(request, Read):
            return list(device.read_serialized(data))
        device.write_as_operator(data)
    except P4RuntimeError as error:
        if error.failed == 1:  # its code says more than that of the batch
            raise verbs.RefusedError(str(error), error.failures[0].code) from None
        raise
    return []


def _row(port: int, interface: str, statistics: PortStatistics, *, up: bool | None, io: str | None) -> PortRow:
    return PortRow(port=port, interface=interface, up=up, io=io, **asdict(statistics))


def ask(device_id: int, request: Request, answer: type[A]) -> A:
    """Send a request to the switch with this device id, and return the answer.

    Raises :class:`LiveError` if it does not answer as a switch does, or refuses, or if it is not known which one is meant.
    """
    who, own = f"switch with device id {device_id}", socket_path(device_id)
    try:
        return verbs.ask(own, who, request, answer)
    except verbs.RefusedError:
        raise
    except LiveError:
        if own.exists() and not directory.is_left_behind(own):
            raise
        others = [each for each in running_switches() if each.device_id == device_id]
        if not others:
            raise
    if len(others) > 1:
        raise LiveError(
            f"switches with device id {device_id} run in {', '.join(each.where for each in others)}: "
            "ask from within one of them (ip netns exec NAME holdfast ...)"
        )
    return verbs.ask(others[0].path, who, request, answer)


def running_switches() -> list[Running]:
    """Return the switches that run on this machine, in all network namespaces, also those that this user may not access."""
    found = []
    for path in directory.DIRECTORY.glob("switch-*.sock"):
        number, _, namespace = path.stem.removeprefix("switch-").partition("@")
        if is_numeral(number) and is_numeral(namespace):
            found.append(Running(int(number), int(namespace), path))
    found.sort(key=lambda each: (each.device_id, each.namespace))
    return [each for each in found if not directory.is_left_behind(each.path)]


def client_of(device_id: int) -> OperatorClient:
    """Return a client of the switch with this device id in this process' network namespace."""
    return OperatorClient(Running(device_id, _namespace(), socket_path(device_id)))


class OperatorClient(Client):
    """A client of a running switch that writes and reads as the machine's operator, over the control socket.

    It has no stream: it is no primary, and gets no packets. The pipeline is set by clients of P4Runtime.
    """

    def __init__(self, running: Running) -> None:
        super().__init__(running.device_id, 0, "")
        self._running = running

    def _ask(self, request: Write | Read | AskPipeline) -> Iterator[bytes]:
        who = f"switch with device id {self.device_id}"
        try:
            answer = verbs.ask(self._running.path, who, request, Messages)
        except verbs.RefusedError as error:
            said = str(error).removeprefix(f"{who}: ").removeprefix(f"{error.code}: ")
            raise P4RuntimeError(error.code, said) from None
        return map(base64.b64decode, answer.messages)

    def _call_write(self, request: bytes) -> None:
        list(self._ask(Write(request=base64.b64encode(request).decode())))

    def _call_read(self, request: Proto) -> Iterable[Proto]:
        asked = Read(request=base64.b64encode(request.SerializeToString()).decode())
        return map(p4runtime_pb2.ReadResponse.FromString, self._ask(asked))

    def _call_get_pipeline(self, request: Proto) -> Proto:
        (config,) = self._ask(AskPipeline())
        return p4runtime_pb2.GetForwardingPipelineConfigResponse.FromString(config)

    def _call_set_pipeline(self, request: Proto) -> None:
        raise self._no("set the pipeline")

    def _call_capabilities(self, request: Proto) -> Proto:
        raise self._no("tell the capabilities")

    def _send(self, message: bytes) -> None:
        raise self._no("send packets")

    @staticmethod
    def _no(what: str) -> P4RuntimeError:
        return P4RuntimeError("UNIMPLEMENTED", f"the control socket cannot {what}: connect by P4Runtime")

    def _put(self, event: Event) -> None:
        """Discard an event: none comes without a stream."""

    def poll(self, timeout_s: float = 0.0) -> Event | None:
        """Return None: no event comes without a stream."""
        return None

    def close(self) -> None:
        """Do nothing: each request has a connection of its own."""
