"""So many subscribers dial at one gateway, are there at once, and something fails: a gateway's costs for it, set up for real.

Each is a modelled subscriber with its own line and a dual-stack session, which the whole control plane negotiates. Time is virtual,
work is this machine's processor time. A split gateway has two forwarding planes here; one is lost in the end. Each run is a process
of its own, so that its memory is its own.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.apps.bng import SplitPlane
from holdfast.errors import ExperimentError
from holdfast.experiments.pppoe_split_plane import published
from holdfast.experiments.pppoe_split_plane.scale_runs import BATCH, measured_alone, memory_bytes
from holdfast.experiments.pppoe_split_plane.storm_runs import Subscribers, traffic
from holdfast.subscribers.plane import Session
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Subscriber
from holdfast.sweep import Point

SESSIONS = (1000, 8000, 64_000)


def points(*sessions: int) -> list[Point]:
    """Return a point for each number of sessions and each kind of gateway (single plane or split)."""
    return [{"sessions": count, "plane": plane} for count in sessions for plane in published.PLANES]


POINTS = points(*SESSIONS)

DIALS_PER_S = 1000
"""The subscribers that dial per second of virtual time."""

PARTS = 8
"""The parts into which all dials are divided; the cost of a setup is noted for the first and the last part."""

PACKETS = 10_000
"""The packets in each direction, of sessions drawn at random."""


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Run :func:`dial` with the parameters of ``point`` in a process of its own, and return its row."""
    return measured_alone(__name__, point, seed)


def dial(plane: str, sessions: int, *, seed: int, packets: int, folder: Path) -> dict[str, Any]:
    """Connect ``sessions`` subscribers to a gateway, restart its control plane, and fail a forwarding plane; return the costs.

    Times are of the processor, in seconds. ``setup_s``: of control plane and planes, for all sessions together. ``memory_mb``: of
    switches and control plane. ``restart_s``: until a new control plane has taken up all sessions. ``takeover_s``: to move the
    sessions of the failed forwarding plane, ``taken_over`` of them, to the other one. Raises :class:`ExperimentError` if a session
    is missing, or packets are lost.
    """
    store = SqliteStore(folder / "sessions.db")
    world = Subscribers(plane, seed=seed, store=store, forwarding=2)
    planes, clock = world.planes, world.clock
    before = memory_bytes()
    began = time.process_time()
    hosts: list[Subscriber] = []
    works: list[tuple[float, float]] = [(0.0, 0.0)]
    for part in range(PARTS):
        for number in range(part * sessions // PARTS, (part + 1) * sessions // PARTS):
            hosts.append(world.dial(number))
            clock.run(clock.now() + 1 / DIALS_PER_S)
        clock.run(clock.now() + 1.0)
        works.append((planes.control_ns / 1e9, sum(planes.busy_s().values())))
    whole_s = time.process_time() - began
    if missing := sum(host.state != "up" for host in hosts):
        raise ExperimentError(f"{missing} of {sessions} subscribers are not in")
    del hosts
    world.forget()
    memory = memory_bytes() - before
    installed = planes.user_plane.installed()
    if len(installed) != sessions:
        raise ExperimentError(f"of {sessions} sessions {len(installed)} are in the switches")
    data = _forwarding(world, list(installed.values()), packets, seed)
    # The control plane ends, and another one takes its place.
    planes.user_plane.receive(lambda line, frame: None)
    del installed
    began = time.process_time()
    planes.attach()
    found = world.control().reconcile()
    restart_s = time.process_time() - began
    if (found.kept, found.reinstalled, found.removed) != (sessions, 0, 0):
        raise ExperimentError(f"of {sessions} sessions the restart found {found}")
    takeover_s = taken_over = None
    if isinstance(planes.user_plane, SplitPlane):
        taken_over = planes.user_plane.planes["forwarding"]
        began = time.process_time()
        planes.user_plane.lost("forwarding")
        takeover_s = time.process_time() - began
        _forwarding(world, list(planes.user_plane.installed().values()), packets, seed)
    store.close()
    (control_s, planes_s), of_first, of_last = works[-1], works[1], works[-2]
    each = sessions / PARTS
    return {
        "setup_s": control_s + planes_s,
        "setups_per_s": sessions / control_s,
        "control_ms_first": 1e3 * of_first[0] / each,
        "control_ms_last": 1e3 * (control_s - of_last[0]) / each,
        "planes_ms_first": 1e3 * of_first[1] / each,
        "planes_ms_last": 1e3 * (planes_s - of_last[1]) / each,
        "whole_s": whole_s,
        "memory_mb": memory / 1e6,
        "packets_per_s": 2 * packets / max(data.values()),
        "restart_s": restart_s,
        "taken_over": taken_over,
        "takeover_s": takeover_s,
    }


def _forwarding(world: Subscribers, sessions: list[Session], packets: int, seed: int) -> dict[str, float]:
    """Return by switch the processor time for ``packets`` packets each way. Raise :class:`ExperimentError` if one is lost."""
    planes = world.planes
    given = dict(enumerate(sorted(sessions, key=lambda each: each.session_id), 1))
    up, down = traffic(len(given), packets, seed, lambda number: replace(given[number]))
    for _ in range(2):  # the first round is a warm-up
        planes.busy_ns.clear()
        planes.to_core = planes.to_lines = 0
        for first in range(0, packets, BATCH):
            planes.from_lines(up[first : first + BATCH], "data")
        for first in range(0, packets, BATCH):
            planes.from_core(down[first : first + BATCH])
        if (planes.to_core, planes.to_lines) != (packets, packets):
            raise ExperimentError(f"of {packets} packets each way {planes.to_core} and {planes.to_lines} came out")
    return planes.busy_s("data")


def main() -> None:
    """Run the point that the first argument gives as JSON, and print its row as JSON."""
    point = json.loads(sys.argv[1])
    gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        row = dial(point["plane"], point["sessions"], seed=point["seed"], packets=PACKETS, folder=Path(folder))
    print(json.dumps(row))


if __name__ == "__main__":
    main()
