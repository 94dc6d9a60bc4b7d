"""``holdfast bng run``: the control plane of a gateway over P4Runtime, beside switches that it finds or starts.

Each switch is a process of its own: it forwards on while this one is killed and comes back. Of a gateway with several planes, a
switch that is lost is started again and gets its tables back. The sessions of a lost forwarding plane are moved to the others.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from holdfast import interpreter, yaml_model
from holdfast.apps.bng import interfaces, program
from holdfast.apps.bng.edges import AccessPort, ControlRates, CorePort, Edges, MacAddress, PortNumber, Route
from holdfast.apps.bng.single import SinglePlane
from holdfast.apps.bng.split import AuthenticationPlane, Balancer, ForwardingPlane, SplitPlane
from holdfast.errors import HoldfastError, LiveError
from holdfast.operations import directory
from holdfast.p4runtime.addresses import is_loopback
from holdfast.p4runtime.client import GrpcClient
from holdfast.parameters import Checked
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.loop_clock import AsyncClock
from holdfast.subscribers.service import Service

_PATIENCE_S = 60.0
_LOOK_S = 1.0
_LAST_WORDS_S = 0.3
"""The time that frames may be on their way to subscribers before their switch ends."""
_SWITCH_INTERVAL_S = 0.0005
_GC_THRESHOLDS = 20_000, 20, 20
"""A session is some hundred objects that stay: by the usual thresholds, each setup would look at some of them again."""

Say: TypeAlias = Callable[[str], None]


def _with_own_socket(schema: dict[str, Any]) -> None:
    """Remove ``grpc`` from the required fields in the JSON schema of :class:`SwitchSettings`, as it has a default."""
    schema["required"] = [name for name in schema["required"] if name != "grpc"]


class SwitchSettings(Checked):
    """A switch: the address of its P4Runtime server, and the interfaces of its ports if it has to be started.

    Without an address, there is a socket that this user alone may open: whoever reaches a switch may write to it.
    """

    model_config = ConfigDict(json_schema_extra=_with_own_socket)

    grpc: str
    device_id: Annotated[int, Field(gt=0)] = 1
    interfaces: dict[PortNumber, str]

    @model_validator(mode="before")
    @classmethod
    def _own_socket(cls, values: object) -> object:
        if isinstance(values, dict) and "grpc" not in values:
            path = directory.socket_path(f"p4runtime-{values.get('device_id', 1)}")
            return values | {"grpc": f"unix:{path}"}
        return values

    def check_ports(self, name: str, ports: tuple[int, ...]) -> None:
        """Raise ValueError if one of ``ports`` has no interface."""
        for port in ports:
            if port not in self.interfaces:
                raise ValueError(f"{name}.interfaces has no interface for port {port}")


class BalancerSettings(SwitchSettings):
    """The balancer. ``uplinks``: its ports towards the core, by the MAC address of the next hop there."""

    uplinks: Annotated[dict[MacAddress, PortNumber], Field(min_length=1)]


class AuthenticationSettings(SwitchSettings):
    """The authentication plane. ``trunk``: its port towards the balancer; ``access_port``: the balancer's port to it."""

    trunk: PortNumber
    access_port: PortNumber


class ForwardingSettings(AuthenticationSettings):
    """A forwarding plane. ``core_port``: the balancer's port to its core side."""

    core_port: PortNumber


class SplitSettings(Checked):
    """Several planes behind a balancer. ``drain_s``: the time that a packet can still be on its way through an old plane."""

    balancer: BalancerSettings
    authentication: AuthenticationSettings
    planes: Annotated[dict[str, ForwardingSettings], Field(min_length=1)]
    drain_s: Annotated[float, Field(ge=0, le=60)] = 0.2

    def check_distinct(self) -> None:
        """Raise ValueError if two switches, or two of the balancer's cables, are the same."""
        switches = [self.balancer, self.authentication, *self.planes.values()]
        cables = [self.authentication.access_port, *self.balancer.uplinks.values()]
        cables += [port for plane in self.planes.values() for port in (plane.access_port, plane.core_port)]
        for what, each in (
            ("grpc", [one.grpc for one in switches]),
            ("device_id", [one.device_id for one in switches]),
            ("interface", [name for one in switches for name in one.interfaces.values()]),
            ("port of the balancer", cables),
        ):
            if twice := [value for value, times in Counter(each).items() if times > 1]:
                raise ValueError(f"split: {what} {twice[0]} is there twice")


class LiveConfiguration(Checked):
    """A gateway on one machine: ``switch`` or ``split``. ``access``: ports towards access nodes, all with the gateway's address."""

    switch: SwitchSettings | None = None
    split: SplitSettings | None = None
    access: Annotated[tuple[PortNumber, ...], Field(min_length=1)]
    s_tpid: int = 0x8100
    core: Annotated[tuple[CorePort, ...], Field(min_length=1)]
    routes: tuple[Route, ...]
    control: ControlRates = ControlRates()
    gateway: Configuration

    @model_validator(mode="after")
    def _coherent(self) -> LiveConfiguration:
        core = tuple(each.port for each in self.edges.core)
        if (self.switch is None) is (self.split is None):
            raise ValueError("there must be either a section switch or a section split")
        if self.switch is not None:
            self.switch.check_ports("switch", (*self.access, *core))
        if self.split is not None:
            balancer, authentication = self.split.balancer, self.split.authentication
            balancer.check_ports(
                "split.balancer", (*self.access, *balancer.uplinks.values(), authentication.access_port)
            )
            authentication.check_ports("split.authentication", (authentication.trunk,))
            for name, plane in self.split.planes.items():
                plane.check_ports(f"split.planes.{name}", (plane.trunk, *core))
                balancer.check_ports("split.balancer", (plane.access_port, plane.core_port))
            self.split.check_distinct()
        return self

    @property
    def edges(self) -> Edges:
        """The ports and routes around the user plane."""
        access = tuple(AccessPort(port=port, mac=self.gateway.mac, s_tpid=self.s_tpid) for port in self.access)
        return Edges(access=access, core=self.core, routes=self.routes, control=self.control)


def read(path: Path) -> LiveConfiguration:
    """Return the configuration in file ``path``. Raise :class:`holdfast.errors.ScenarioError`, with the line, if it is wrong."""
    return yaml_model.read(path, LiveConfiguration)


def _connect(settings: SwitchSettings) -> GrpcClient:
    # Of two control planes, the one that came last is the primary.
    return GrpcClient(settings.grpc, settings.device_id, election_id=time.time_ns(), batches=True)


_Wanted: TypeAlias = tuple[str, SwitchSettings, str, dict[str, str]]
"""A switch: its name, its settings, its program and what that is compiled with."""


class Switches:
    """The switches of a gateway, by name, and the processes of those that were started here; a context manager."""

    def __init__(self, say: Say, *, keep: bool) -> None:
        """Create an object without any switches. ``keep``: do not end the switches' processes at the end."""
        self._say, self._keep = say, keep
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: dict[str, GrpcClient] = {}

    def connect(self, name: str, settings: SwitchSettings, source: str, defines: dict[str, str]) -> GrpcClient:
        """Return a client of a switch, which is started if it is not running. Raise :class:`LiveError` if it does not start."""
        self.connect_all([(name, settings, source, defines)])
        return self._clients[name]

    def connect_all(self, wanted: list[_Wanted]) -> None:
        """Connect to several switches as :meth:`connect` does; those that are not running are started at the same time.

        Raise :class:`LiveError` before any is started, or taken from another control plane, if one that is running has other
        interfaces than it should have.
        """
        doubts = {name: interfaces.check_running(name, settings) for name, settings, *_ in wanted}
        found = [(each[0], each[1], self._begin(*each, doubts[each[0]])) for each in wanted]
        for name, settings, client in found:
            self._clients[name] = client or self._await_start(name, settings)

    def _begin(
        self, name: str, settings: SwitchSettings, source: str, defines: dict[str, str], doubt: str | None
    ) -> GrpcClient | None:
        """Return a client of the switch if it is running, and report ``doubt`` about it; else start its process and return None."""
        with suppress(HoldfastError):
            client = _connect(settings)
            self._say(f"{name} at {settings.grpc}: it is running, and keeps its sessions")
            if doubt is not None:
                self._say(f"warning: {doubt}")
            return client
        words = interpreter.module("holdfast", "switch", str(program.HERE / source))
        for define, value in defines.items():
            words += ["-D", f"{define}={value}"]
        for port, interface in settings.interfaces.items():
            words += ["-i", f"{port}@{interface}"]
        words += ["--grpc", settings.grpc, "--device-id", str(settings.device_id)]
        # In a session of its own, so that what ends this process does not end it.
        process = subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self._processes[name] = process
        return None

    def _await_start(self, name: str, settings: SwitchSettings) -> GrpcClient:
        """Wait until a switch whose process was started answers, and return its client.

        Raise :class:`LiveError` if it does not start.
        """
        process = self._processes[name]
        end_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s and process.poll() is None:
            with suppress(HoldfastError):
                client = _connect(settings)
                self._say(f"{name} at {settings.grpc}: started, process {process.pid}")
                return client
            time.sleep(0.2)
        process.kill()
        raise LiveError(f"{name}: the switch did not start (status {process.wait()}): its own message is above")

    def client(self, name: str) -> GrpcClient:
        """Return the client of the connected switch ``name``."""
        return self._clients[name]

    def ended(self) -> list[str]:
        """Return the names of the switches whose P4Runtime stream has ended."""
        return [name for name, client in list(self._clients.items()) if client.ended]

    def taken(self) -> str | None:
        """Return the name of a switch at which another controller has become primary; None if there is none."""
        found = (name for name, client in list(self._clients.items()) if not client.is_primary and not client.ended)
        return next(found, None)

    def forget(self, name: str) -> None:
        """Close the client of a switch that was lost or did not start; end its process if it was started here."""
        client = self._clients.pop(name, None)
        if client is not None:
            client.close()
        process = self._processes.pop(name, None)
        if process is not None:
            process.kill()
            process.wait()

    @property
    def end_here(self) -> bool:
        """True if this process has started switches and ends them when it ends."""
        return bool(self._processes) and not self._keep

    def __enter__(self) -> Switches:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()
        for process in self._processes.values():
            if not self._keep:
                process.terminate()
        for process in self._processes.values():
            if not self._keep:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def run(configuration: LiveConfiguration, say: Say, *, keep_switch: bool) -> None:
    """Run the gateway until it is interrupted; then end the switches that it has started, unless ``keep_switch`` is True.

    Raise :class:`LiveError` if something that it needs is missing, or if a switch is lost that no other can replace.
    """
    interfaces.check(configuration)
    directory.made()
    for doubt in doubts(configuration):
        say(f"warning: {doubt}")
    # Every frame wakes gRPC's thread and ours; with the usual 5 ms one would wait for the other too long.
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.set_threshold(*_GC_THRESHOLDS)
    with Switches(say, keep=keep_switch) as switches:
        if configuration.switch is not None:
            switches.connect("switch", configuration.switch, "bng.p4", {})
        if configuration.split is not None:
            switches.connect_all(_wanted(configuration.split))
        asyncio.run(_serve(configuration, switches, say))


def doubts(configuration: LiveConfiguration) -> list[str]:
    """Return a warning for each switch whose P4Runtime server any user of the machine can reach, who could then create sessions."""
    split = configuration.split
    switches = (
        [configuration.switch] if split is None else [split.balancer, split.authentication, *split.planes.values()]
    )
    open_ones = (one.grpc for one in switches if one is not None and not one.grpc.startswith("unix:"))
    return [
        f"every user of this machine can write to the switch at {grpc}: leave grpc out"
        for grpc in open_ones
        if is_loopback(grpc)
    ]


BALANCER, AUTHENTICATION = "balancer", "authentication plane"


def _wanted(settings: SplitSettings) -> list[_Wanted]:
    """Return (name, settings, program, macros) of every switch of a split gateway."""
    found: list[_Wanted] = [
        (BALANCER, settings.balancer, "balancer.p4", {}),
        (AUTHENTICATION, settings.authentication, "bng.p4", program.VARIANTS["auth"]),
    ]
    forward = program.VARIANTS["forward"]
    return found + [(_plane(name), each, "bng.p4", forward) for name, each in settings.planes.items()]


def _plane(name: str) -> str:
    """Return the name of forwarding plane ``name`` among all switches."""
    return f"plane {name}"


async def _serve(configuration: LiveConfiguration, switches: Switches, say: Say) -> None:
    loop = asyncio.get_running_loop()
    edges, split = configuration.edges, configuration.split
    several: SplitPlane | None = None
    if split is None:
        plane: SinglePlane | SplitPlane = SinglePlane(switches.client("switch"), edges)
    else:
        plane = several = SplitPlane(
            edges,
            Balancer(switches.client(BALANCER), split.balancer.uplinks),
            AuthenticationPlane(
                switches.client(AUTHENTICATION), split.authentication.trunk, split.authentication.access_port
            ),
            {name: _cables(each, switches.client(_plane(name))) for name, each in split.planes.items()},
            AsyncClock(loop),
            drain_s=split.drain_s,
        )
    over, wake = asyncio.Event(), asyncio.Event()

    def end() -> None:
        over.set()
        wake.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    keeper = None if split is None or several is None else _Keeper(split, several, switches, say, wake.set)
    async with Service(configuration.gateway, plane, several) as service:
        plane.listen()
        found = service.reconciled
        say(
            f"gateway {configuration.gateway.name}: {found.kept} sessions kept, {found.reinstalled} installed again, "
            f"{found.removed} removed"
        )
        for name, port in service.addresses.items():
            say(f"{name.replace('_', ' ')} on port {port}")
        say("ready; Ctrl-C ends it")
        try:
            while not over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), _LOOK_S)
                wake.clear()
                if (taken := switches.taken()) is not None:
                    raise LiveError(f"the {taken} has another control plane")
                if keeper is not None:
                    keeper.look()
                elif switches.ended():
                    raise LiveError("the switch is lost")
            if switches.end_here:
                say(f"{await service.end_sessions()} sessions ended, because switches end")
                await asyncio.sleep(_LAST_WORDS_S)
        finally:
            if keeper is not None:
                keeper.stop()


def _cables(settings: ForwardingSettings, client: GrpcClient) -> ForwardingPlane:
    return ForwardingPlane(client, settings.trunk, settings.access_port, settings.core_port)


class _Keeper:
    """Keeps the switches of a split gateway: acts when they are lost, and when they are back.

    A switch is lost when the stream to it ends: at once if its process dies, after gRPC's keepalive if its machine does.
    """

    def __init__(
        self, settings: SplitSettings, plane: SplitPlane, switches: Switches, say: Say, wake: Callable[[], None]
    ) -> None:
        """Begin to watch the switches for losses. ``wake`` schedules a call of :meth:`look` in the event loop's thread."""
        self._plane, self._switches, self._say, self._wake = plane, switches, say, wake
        self._wanted = {each[0]: each for each in _wanted(settings)}
        self._forwarding = {_plane(name): (name, each) for name, each in settings.planes.items()}
        self._loop = asyncio.get_running_loop()
        self._starting: dict[str, asyncio.Task[None]] = {}
        for name in self._wanted:
            self._watch(name)

    def _watch(self, name: str) -> None:
        def ended() -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._wake)

        self._switches.client(name).on_end = ended

    def look(self) -> None:
        """Start lost switches again, and move the sessions of lost forwarding planes to the planes that are left, if any is."""
        gone = [name for name in self._switches.ended() if name not in self._starting]
        there = self._plane.planes
        moved = [plane for name in gone if (plane := self._forwarding.get(name, ("",))[0]) in there]
        if moved and len(moved) < len(there) - sum(_plane(name) in self._starting for name in there):
            began = time.monotonic()
            try:
                self._plane.lost(*moved)
            except HoldfastError as error:
                # Another switch may have failed, too: it is tried again when that is known.
                self._say(f"the sessions of {', '.join(moved)} cannot be moved: {error}")
                return
            spent_ms = (time.monotonic() - began) * 1000
            for plane in moved:
                self._say(f"forwarding plane {plane} is lost: {there[plane]} sessions moved in {spent_ms:.0f} ms")
        for name in gone:
            if name not in self._forwarding or self._forwarding[name][0] in self._plane.planes:
                self._say(f"the {name} is lost")
            self._switches.forget(name)
            self._starting[name] = self._loop.create_task(self._return(name))

    async def _return(self, name: str) -> None:
        while True:
            try:
                client = await asyncio.to_thread(self._switches.connect, *self._wanted[name])
                self._join(name, client)
            except HoldfastError as error:
                self._say(f"{name}: {error}")
                self._switches.forget(name)
                await asyncio.sleep(_LOOK_S)
                continue
            del self._starting[name]
            self._watch(name)
            self._plane.listen()
            return

    def _join(self, name: str, client: GrpcClient) -> None:
        """Take the switch ``name``, which has come back, into use: write what it lacks, or add it as a forwarding plane."""

        def back() -> None:
            self._say(f"{'forwarding ' * (name in self._forwarding)}{name} is back")

        if name == BALANCER:
            self._plane.restore_balancer(client)
        elif name == AUTHENTICATION:
            self._plane.restore_authentication(client)
        else:
            plane, settings = self._forwarding[name]
            if plane not in self._plane.planes:
                self._plane.add(plane, _cables(settings, client), back)
                return
            self._plane.restore(plane, _cables(settings, client))
        back()

    def stop(self) -> None:
        """Cancel the tasks that wait for switches to start."""
        for each in self._starting.values():
            each.cancel()
