"""Starts the network of ``holdfast run``: programs, entries and controllers in a topology, on one of two clocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from holdfast import _core
from holdfast.console import programs
from holdfast.console.controllers import load, of_user
from holdfast.control.desired import Desired, Writer
from holdfast.controller import Controller
from holdfast.errors import ConsoleError, LiveError
from holdfast.network import LiveNetwork, Network, NetworkOptions, SimulatedNetwork
from holdfast.topology import Topology

TOOLS = ("ip", "ping", "iperf3")
"""That hosts of a live network have."""

RUNTIME_NAMES = ("{}-runtime.json", "{}-commands.txt", "{}.yaml")
"""The names of files with a switch's entries, by the switch's name."""


@dataclass
class Wanted:
    """What is to be run."""

    topology: Topology
    program: Path | None = None
    """Of the switches to which the topology gives none."""
    controllers: Sequence[str] = ()
    runtime: Path | None = None
    """A directory of entries, by switch."""
    clock: Literal["live", "simulated"] | None = None
    """None: live if this process and machine can."""
    options: NetworkOptions = field(default_factory=NetworkOptions)
    p4runtime: str = "127.0.0.1:0"
    serves: bool = True
    """A simulation has a P4Runtime server, too; it must pass at the pace of the clock."""
    _compiled: dict[Path, _core.Program] = field(default_factory=dict)

    def programs(self) -> dict[str, _core.Program]:
        """Return the program of each switch; each file is compiled once. Raises :class:`ConsoleError` if a switch has none."""
        found = {}
        for name, switch in self.topology.switches.items():
            if switch.kind == "bridge":
                continue
            path = switch.program or self.program
            if path is None:
                raise ConsoleError(
                    f"switch {name!r} has no program: give one, as in holdfast run PROGRAM TOPOLOGY, or make it a bridge "
                    "(kind: bridge)"
                )
            key = Path(path)
            if key not in self._compiled:
                self._compiled[key] = programs.compiled(key)
            found[name] = self._compiled[key]
        return found

    def entries(self, given: dict[str, _core.Program]) -> dict[str, Desired]:
        """Return what the files of entries say, by switch."""
        files = {}
        for name, switch in self.topology.switches.items():
            if switch.entries is not None:
                files[name] = Path(switch.entries)
        if self.runtime is not None:
            files |= self._runtime_files(self.runtime)
        if not files:
            return {}
        from holdfast import entries_files

        return {name: entries_files.load(path, given[name]) for name, path in files.items()}

    def _runtime_files(self, folder: Path) -> dict[str, Path]:
        if not folder.is_dir():
            raise ConsoleError(f"--runtime: there is no directory {str(folder)!r}")
        found = {}
        bridges = self.topology.bridges
        for name in (each for each in self.topology.switches if each not in bridges):
            for pattern in RUNTIME_NAMES:
                if (path := folder / pattern.format(name)).is_file():
                    found[name] = path
                    break
        if not found:
            wanted = ", ".join(pattern.format("s1") for pattern in RUNTIME_NAMES)
            raise ConsoleError(f"--runtime: {str(folder)!r} has no entries of any switch (wanted: {wanted})")
        return found


class Started(NamedTuple):
    """A network that runs. ``p4runtime``: the address of the switches' server, None if there is none."""

    network: Network
    p4runtime: str | None


def chosen_clock(wanted: Wanted) -> tuple[Literal["live", "simulated"], str]:
    """Return the clock, and why it is that one. Raises :class:`LiveError` if live is demanded and cannot be had."""
    from holdfast.live.hosts import check_machine

    if wanted.clock == "simulated":
        return "simulated", "as demanded"
    try:
        check_machine(TOOLS)
    except LiveError as error:
        if wanted.clock == "live":
            raise
        return "simulated", f"not live: {error}"
    return (
        "live",
        "as demanded" if wanted.clock == "live" else "with rights and tools for it; --simulated: modelled hosts",
    )


@contextmanager
def started(wanted: Wanted, clock: Literal["live", "simulated"]) -> Iterator[Started]:
    """Run the network within the context: programs, then entries, then controllers."""
    given = wanted.programs()
    entries = wanted.entries(given)
    own: list[Controller] = [load(spec) for spec in wanted.controllers]
    # In front: the others find what the files say.
    all_controllers = [*([_Entries(entries)] if entries else []), *own]
    try:
        with ExitStack() as stack:
            options: NetworkOptions = {**wanted.options, "gives_way": not own}
            yield _network(wanted, clock, given, all_controllers, stack, options)
    except Exception as error:
        if (said := of_user(error)) is None:
            raise
        raise ConsoleError(f"a controller has failed:\n{said}") from error


def _network(
    wanted: Wanted,
    clock: Literal["live", "simulated"],
    given: dict[str, _core.Program],
    all_controllers: list[Controller],
    stack: ExitStack,
    options: NetworkOptions,
) -> Started:
    """Return the started network; ``stack`` ends it."""
    if clock == "simulated":
        simulated = SimulatedNetwork(wanted.topology, given, all_controllers, **options)
        if wanted.serves:
            return Started(simulated, stack.enter_context(simulated.served(wanted.p4runtime)))
        return Started(simulated, None)
    from holdfast.live.network import running

    context = running(wanted.topology, given, all_controllers, tools=TOOLS, p4runtime=wanted.p4runtime, **options)
    live = stack.enter_context(context)
    return Started(live, live.p4runtime_address)


class _Entries(Controller):
    """Writes the entries of files into the switches, once."""

    def __init__(self, entries: dict[str, Desired]) -> None:
        super().__init__(reaction_delay_ms=0)
        self._entries = entries

    def on_start(self) -> None:
        for name, desired in self._entries.items():
            Writer(self.clients[name]).write(desired)


def addresses(found: Started) -> list[str]:
    """Return lines that say where switches and hosts can be reached from outside, while the network runs."""
    lines = []
    if found.p4runtime is not None:
        devices = found.network.devices
        ids = ", ".join(f"{name} {device.device_id}" for name, device in list(devices.items())[:8])
        lines.append(f"P4Runtime at {found.p4runtime}, device ids: {ids}{', ...' if len(devices) > 8 else ''}")
        own = {name: switch.grpc for name, switch in found.network.topology.switches.items() if switch.grpc is not None}
        if own:
            lines.append(f"at their own addresses: {', '.join(f'{name} {at}' for name, at in list(own.items())[:8])}")
    if isinstance(found.network, LiveNetwork) and found.network.hosts:
        name, host = next(iter(found.network.hosts.items()))
        lines.append(f"hosts are namespaces: {name} is {' '.join(host.exec_prefix)} bash")
    return lines


__all__ = ["Started", "Wanted", "addresses", "chosen_clock", "started"]
