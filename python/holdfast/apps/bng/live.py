"""``holdfast bng run``: the control plane of a gateway over P4Runtime, beside a switch that it finds or starts.

The switch is a process of its own: it forwards on while this one is killed and comes back.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from holdfast import yaml_model
from holdfast.apps.bng import program
from holdfast.apps.bng.edges import AccessPort, ControlRates, CorePort, Edges, PortNumber, Route
from holdfast.apps.bng.single import SinglePlane
from holdfast.errors import HoldfastError, LiveError
from holdfast.p4runtime.client import GrpcClient
from holdfast.parameters import Checked
from holdfast.subscribers.configuration import Configuration
from holdfast.subscribers.service import Service

_PATIENCE_S = 60.0
_SWITCH_INTERVAL_S = 0.0005
_GC_THRESHOLDS = 20_000, 20, 20
"""A session is some hundred objects that stay: by the usual thresholds, each setup would look at some of them again."""


class SwitchSettings(Checked):
    """The switch: where its P4Runtime server is, and the interfaces of its ports if it has to be started."""

    grpc: str = "127.0.0.1:9559"
    device_id: Annotated[int, Field(gt=0)] = 1
    interfaces: dict[PortNumber, str]


class LiveConfiguration(Checked):
    """A gateway on one machine. ``access``: ports towards access nodes; all have the gateway's MAC address."""

    switch: SwitchSettings
    access: Annotated[tuple[PortNumber, ...], Field(min_length=1)]
    s_tpid: int = 0x8100
    core: tuple[CorePort, ...]
    routes: tuple[Route, ...]
    control: ControlRates = ControlRates()
    gateway: Configuration

    @model_validator(mode="after")
    def _coherent(self) -> LiveConfiguration:
        edges = self.edges
        for port in (*self.access, *(each.port for each in edges.core)):
            if port not in self.switch.interfaces:
                raise ValueError(f"switch.interfaces has no interface for port {port}")
        return self

    @property
    def edges(self) -> Edges:
        """What surrounds the user plane."""
        access = tuple(AccessPort(port=port, mac=self.gateway.mac, s_tpid=self.s_tpid) for port in self.access)
        return Edges(access=access, core=self.core, routes=self.routes, control=self.control)


def read(path: Path) -> LiveConfiguration:
    """The configuration in a file. Raises :class:`holdfast.errors.ScenarioError`, with the line."""
    return yaml_model.read(path, LiveConfiguration)


def _connect(settings: SwitchSettings) -> GrpcClient:
    # Of two control planes, the one that came last is the primary.
    return GrpcClient(settings.grpc, settings.device_id, election_id=time.time_ns(), batches=True)


def _start_switch(settings: SwitchSettings) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "holdfast", "switch", str(program.HERE / "bng.p4")]
    for port, name in settings.interfaces.items():
        words += ["-i", f"{port}@{name}"]
    words += ["--grpc", settings.grpc, "--device-id", str(settings.device_id)]
    # In a session of its own, so that what ends this process does not end it.
    return subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def find_switch(
    settings: SwitchSettings, say: Callable[[str], None]
) -> tuple[GrpcClient, subprocess.Popen[bytes] | None]:
    """A client of the running switch, or of one that is started. Raises :class:`LiveError` if there will be none."""
    with suppress(HoldfastError):
        client = _connect(settings)
        say(f"switch at {settings.grpc}: it is running, and keeps its sessions")
        return client, None
    process = _start_switch(settings)
    end_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end_s and process.poll() is None:
        with suppress(HoldfastError):
            client = _connect(settings)
            say(f"switch at {settings.grpc}: started, process {process.pid}")
            return client, process
        time.sleep(0.2)
    process.kill()
    raise LiveError(f"the switch did not start (status {process.wait()}): its own message is above")


def run(configuration: LiveConfiguration, say: Callable[[str], None], *, keep_switch: bool) -> None:
    """Runs the gateway until it is interrupted. The switch ends with it if it started the switch and is not to keep it.

    Raises :class:`LiveError` if something that it needs is missing, or if the switch is lost.
    """
    client, process = find_switch(configuration.switch, say)
    # Every frame wakes gRPC's thread and ours; with the usual 5 ms one would wait for the other too long.
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        with client:
            asyncio.run(_serve(configuration, client, say))
    finally:
        if process is not None and not keep_switch:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _serve(configuration: LiveConfiguration, client: GrpcClient, say: Callable[[str], None]) -> None:
    plane = SinglePlane(client, configuration.edges)
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    async with Service(configuration.gateway, plane) as service:
        plane.listen()
        found = service.reconciled
        say(
            f"gateway {configuration.gateway.name}: {found.kept} sessions kept, {found.reinstalled} installed again, "
            f"{found.removed} removed"
        )
        for name, port in service.addresses.items():
            say(f"{name.replace('_', ' ')} on port {port}")
        say("ready; Ctrl-C ends it")
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 1.0)
            if client.arbitration is None or not client.arbitration.is_primary:
                raise LiveError(f"the switch at {configuration.switch.grpc} is lost, or has another control plane")
