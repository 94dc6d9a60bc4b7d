"""One gateway with so many sessions: the cost of a packet, a setup and a restart of its control plane, and its memory.

Sessions are dual stack, as a control plane before this one has left them: on disk and in the switches. Each run is a process of its
own, so that its memory is its own.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Network
from pathlib import Path
from typing import Any

from holdfast import interpreter
from holdfast.errors import ExperimentError
from holdfast.experiments.pppoe_split_plane import published
from holdfast.experiments.pppoe_split_plane.storm_runs import TICK_S, Subscribers, line_of, traffic
from holdfast.subscribers import ipv6
from holdfast.subscribers.keeping import Stored
from holdfast.subscribers.plane import Session
from holdfast.subscribers.session import Grant
from holdfast.subscribers.store import SqliteStore
from holdfast.sweep import Point

SESSIONS = (1, 1000, 8000, 64_000)
POINTS: list[Point] = [{"sessions": count, "plane": plane} for count in SESSIONS for plane in published.PLANES]

PACKETS = 10_000
"""The packets in each direction, of sessions drawn at random."""

BATCH = 100
"""Packets that are handed over at once: the output of many would not fit in the caches."""

SETUPS = 30
"""The setups beside the sessions that there are; a hundredth of a second apart."""


def stored(number: int) -> tuple[Stored, Session]:
    """Return session ``number`` twice: as it is stored on disk, and as the user plane has it."""
    mac = b"\x02\x01" + number.to_bytes(4, "big")
    whole = Session(
        number,
        line_of(number),
        mac,
        number,
        ipv4=IPv4Address("100.64.0.1") + number,
        ipv6_prefix=IPv6Network((0x20010DB8_0001 << 80 | number << 64, 64)),
        delegated=IPv6Network((0x20010DB8_8000 << 80 | number << 72, 56)),
    )
    interface = b"\x02\0" + mac
    kept = Stored(Grant(b"alice", whole, ()), f"{number:x}", 0.0, True, interface, True, False, whole.peer_mru)
    return kept, replace(whole, ipv6_interface=ipv6.link_local(interface))


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run :func:`scale` with the parameters of ``point`` in a process of its own, and return its row."""
    return measured_alone(__name__, point, seed)


def measured_alone(module: str, point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run the measurement of ``module`` in a process of its own, and return the row that it prints.

    Raise :class:`ExperimentError` if the process fails.
    """
    words = interpreter.module(module, json.dumps({**point, "seed": seed}))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExperimentError(f"the measurement failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def memory_bytes() -> int:
    """Return how many bytes of this process are in memory, after a garbage collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def scale(plane: str, sessions: int, *, seed: int, packets: int, setups: int, folder: Path) -> dict[str, Any]:
    """Measure a gateway that has ``sessions`` sessions; return the costs of packets, setups and a restart.

    Times are of the processor. ``memory_mb``: of switches and control plane, beyond what they need without sessions.
    ``upkeep_percent``: percent of a core, to look after established sessions; setups are measured without it. Raises
    :class:`ExperimentError` if a session is missing, a setup fails, or packets are lost.
    """
    store = SqliteStore(folder / "sessions.db")
    world = Subscribers(plane, seed=seed, store=store)
    planes = world.planes
    before = memory_bytes()
    installed: list[Session] = []
    for first in range(1, sessions + 1, 1000):
        both = [stored(number) for number in range(first, min(first + 1000, sessions + 1))]
        store.save([each for each, _ in both], ())
        installed += [each for _, each in both]
    began = time.process_time()
    planes.user_plane.install(installed)
    install_s = time.process_time() - began
    del installed
    # The control plane ends, and another one takes its place.
    planes.user_plane.receive(lambda line, frame: None)
    began, wall = time.process_time(), time.perf_counter()
    planes.attach()
    read_s = time.process_time() - began
    gateway = world.control()
    found = gateway.reconcile()
    recover_s, recover_wall_s = time.process_time() - began, time.perf_counter() - wall
    if (found.kept, found.reinstalled, found.removed) != (sessions, 0, 0):
        raise ExperimentError(f"of {sessions} sessions the restart found {found}")
    memory = memory_bytes() - before
    up, down = traffic(sessions, packets, seed, lambda number: stored(number)[1])
    for measured in (False, True):  # the first round is a warm-up
        planes.busy_ns.clear()
        planes.to_core = planes.to_lines = 0
        for first in range(0, packets, BATCH):
            planes.from_lines(up[first : first + BATCH], "data")
        up_s = sum(planes.busy_s("data").values())
        for first in range(0, packets, BATCH):
            planes.from_core(down[first : first + BATCH])
        if measured and (planes.to_core, planes.to_lines) != (packets, packets):
            raise ExperimentError(f"of {packets} packets each way {planes.to_core} and {planes.to_lines} came out")
    data = planes.busy_s("data")
    planes.busy_ns.clear()
    planes.control_ns = 0
    hosts = []
    for number in range(setups):
        hosts.append(world.dial(sessions + 1 + number))
        world.clock.run(world.clock.now() + 5 * TICK_S)
    world.clock.run(world.clock.now() + 2.0)
    if down_ := sum(host.state != "up" for host in hosts):
        raise ExperimentError(f"{down_} of {setups} setups failed")
    work = sum(sum(planes.busy_s(kind).values()) for kind in ("control", "entries"))
    setups_ns = planes.control_ns
    # All sessions are looked after once: echoes, timeouts, usage.
    planes.control_ns = 0
    gateway.start()
    world.clock.run(world.clock.now() + gateway.configuration.echo_interval_s)
    upkeep_s = (
        planes.control_ns / 1e9 + sum(sum(planes.busy_s(kind).values()) for kind in ("control", "entries")) - work
    )
    gateway.stop()
    store.close()
    return {
        "ns_up": 1e9 * up_s / packets,
        "ns_down": 1e9 * (sum(data.values()) - up_s) / packets,
        "packets_per_s": 2 * packets / max(data.values()),
        "installs_per_s": sessions / install_s,
        "control_ms_per_setup": setups_ns / 1e6 / setups,
        "planes_ms_per_setup": 1e3 * work / setups,
        "setups_per_s": 1e9 * setups / setups_ns,
        "upkeep_percent": 100 * upkeep_s / gateway.configuration.echo_interval_s,
        "memory_mb": memory / 1e6,
        "read_s": read_s,
        "recover_s": recover_s,
        "recover_wall_s": recover_wall_s,
    }


def main() -> None:
    """Run the point that the first argument gives as JSON, and print its row as JSON."""
    point = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        row = scale(
            point["plane"], point["sessions"], seed=point["seed"], packets=PACKETS, setups=SETUPS, folder=Path(folder)
        )
    print(json.dumps(row))


if __name__ == "__main__":
    main()
