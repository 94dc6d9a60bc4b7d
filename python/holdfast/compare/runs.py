"""One run: a mechanism under one failure. This is what :mod:`holdfast.sweep` calls, and what its results depend on.

Building a network of a hundred switches takes much longer than running it for two seconds. So a process builds it once for a
mechanism and a seed, runs it until shortly before the failure, and forks for every failure: the child's work on its copy is that
run. The undisturbed run is a child, too. A link or switch that carried nothing in it is not failed at all: nothing that travels
could notice, and the undisturbed run's numbers are that run's (a test runs such failures all the same and compares).
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, cast

from holdfast.compare import failures, mechanisms, telemetry
from holdfast.compare import scenario as scenarios
from holdfast.compare.flows import not_protected, of_kind, receptions_of
from holdfast.compare.inputs import DRAIN_S, NO_FAILURE
from holdfast.compare.measures import add_traffic, entries, links_used, simulated
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.compare.multicast import join_cost
from holdfast.compare.rows import SKIPPED, RunRow
from holdfast.compare.scenario import Scenario
from holdfast.errors import HoldfastError, ScenarioError, located
from holdfast.network import Network, SimulatedNetwork
from holdfast.topology import Topology

LEAD_S = 0.001
"""The time before the failure at which the prepared network is forked."""


def schedule(network: Network, failure: str, failure_s: float, repair_s: float) -> set[str]:
    """Schedule the failure and its repair; return the hosts that are attached to a failing switch, which nothing can help."""
    topology = network.topology
    if failure == NO_FAILURE:
        return set()
    found = failures.failing(topology, failure)
    for up, at_s in ((False, failure_s), (True, repair_s)):
        for link in found.links:
            network.set_link(topology.links[link].ends, up=up, at_s=at_s)
        for switch in found.switches:
            network.set_node(switch, up=up, at_s=at_s)
    return failures.cut_off(topology, failure)


def is_used(topology: Topology, failure: str, links_used: Sequence[bool]) -> bool:
    """Return True if a link that fails, or any link of a switch that fails, carried packets in ``links_used``."""
    return any(links_used[link] for link in failures.links_down(topology, failure))


def setting_of(path: str, scenario: Scenario) -> Setting:
    """Return the setting for which a mechanism is built; its topology is a copy that the mechanism may change."""
    topology, flows = scenarios.fresh_topology(path), scenario.traffic.flows()
    if scenario.telemetry:
        telemetry.add_collector(topology, flows)
    return Setting(
        topology=topology,
        flows=flows,
        detection_delay_ms=scenario.times.detection_delay_ms,
        reaction_delay_ms=scenario.times.reaction_delay_ms,
        largest_packet_bytes=scenario.traffic.largest_packet_bytes(),
    )


class Prepared:
    """A network of one mechanism and one seed, shortly before the failure."""

    def __init__(self, path: str, mechanism: str, seed: int, origin: str | None = None) -> None:
        scenario = scenarios.read(path)
        self.scenario: Scenario = scenario
        self._undisturbed: RunRow | None = None
        # The collector would look at half a million entries of tables again and again, and find nothing.
        gc.disable()
        try:
            self._build(path, scenario, mechanisms.of_run(mechanism, origin), seed)
        finally:
            gc.enable()
        self.network.run(max(0.0, scenario.times.failure_s - LEAD_S))

    def _build(self, path: str, scenario: Scenario, chosen: Mechanism, seed: int) -> None:
        """Build the network of a mechanism and start its controllers, which fill the tables."""
        setting = setting_of(path, scenario)
        self.setting = setting
        self.built: Built = chosen.built(setting, telemetry=scenario.telemetry)
        self.network = SimulatedNetwork(
            setting.topology,
            self.built.program,
            [self.built.controller],
            seed=seed,
            detection_delay_ms=scenario.times.detection_delay_ms,
            executor=scenario.executor,
        )
        self.reports = telemetry.Reports(scenario.times) if scenario.telemetry else None
        if self.reports is not None:
            self.reports.listen(self.network)
        self.entries = entries(self.network)
        self.instruments = add_traffic(self.network, scenario, multicast=chosen.multicast)

    def run(self, failure: str, *, skip: bool = True) -> RunRow:
        """Run the prepared network with ``failure`` and return the row.

        Return :data:`SKIPPED` if the failure hits nothing in use, unless ``skip`` is False.
        """
        if self._undisturbed is None:
            # The collector never looks at the objects that exist now, so children do not copy them.
            gc.collect()
            gc.freeze()
            self._undisturbed = _in_child(lambda: self._finish(NO_FAILURE))
            self._undisturbed["entries"] = self.entries
            self._undisturbed["unprotected"] = not_protected(self.setting.flows, self.built.unprotected)
        if failure == NO_FAILURE:
            return self._undisturbed
        if skip and not is_used(self.network.topology, failure, self._undisturbed["links_used"]):
            return SKIPPED
        # Promised by what is there before the failure, which no child changes.
        promised_ms = self._promised(failure)
        row = _in_child(lambda: self._finish(failure))
        row["promised_ms"] = promised_ms
        return row

    def _finish(self, failure: str) -> RunRow:
        network, times = self.network, self.scenario.times
        cut_off = schedule(network, failure, times.failure_s, times.repair_s)
        network.run(times.end_s + DRAIN_S)
        row = cast(RunRow, simulated(network, self.scenario, self.instruments, cut_off))
        row["skipped"] = False
        if self.reports is not None:
            row["telemetry"] = json.dumps(self.reports.row(network.topology))
        if failure == NO_FAILURE:
            row["links_used"] = links_used(network)
            row["join_updates"], row["join_switches"] = join_cost(network, self.built, self.setting.flows)
        return row

    def _promised(self, failure: str) -> list[float | None]:
        receptions = receptions_of(self.scenario)
        promise = self.built.promise
        if promise is None or (single := failures.single(self.scenario.topology, failure)) is None:
            return []
        places = of_kind(receptions, "udp", "ping")
        return [promise(single, receptions[i].flow.ends, receptions[i].receiver) for i in places]


_kept: dict[tuple[str, str, int, str | None], Prepared] = {}


def prepared(path: str, mechanism: str, seed: int, origin: str | None = None) -> Prepared:
    """Return the network of a mechanism and seed, prepared until shortly before the failure.

    ``origin``: the place (``FILE.py:NAME`` or ``MODULE:NAME``) of a mechanism from outside, None for one of Holdfast's. The last
    network is kept, since a sweep asks for one failure after the other. It is freed before another one is built, as one can take
    gigabytes.
    """
    key = path, mechanism, seed, origin
    if key not in _kept:
        _kept.clear()
        gc.unfreeze()
        gc.collect()
        _kept[key] = Prepared(path, mechanism, seed, origin)
    return _kept[key]


def measured(point: Mapping[str, Any], _: int) -> RunRow:
    """Run the mechanism, failure and seed of ``point``, and return the row for :func:`holdfast.sweep.run`.

    A point has ``scenario`` (a file), ``mechanism``, ``network_seed`` and ``failure``, and ``origin`` if the mechanism is from
    outside. The sweep's own seed is ignored: so the failures of one prepared network follow each other.
    """
    found = prepared(point["scenario"], point["mechanism"], point["network_seed"], point.get("origin"))
    return found.run(point["failure"])


class _Answer(TypedDict, total=False):
    """The answer of a forked process: a row, a mistake of the user, or an error of the program."""

    row: RunRow
    mistake: str
    error: str


def _in_child(work: Callable[[], RunRow]) -> RunRow:
    """Call ``work`` in a forked copy of this process and return its result; this process does not change.

    Raise :class:`ScenarioError` if the copy failed.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads, which a child does not have. Those of libraries are idle, and the child never calls them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _child(work, reader, writer)
    os.close(writer)
    try:
        with os.fdopen(reader) as stream:
            text = stream.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if not text:
        raise ScenarioError(f"the process of a run ended with status {status}")
    answer: _Answer = json.loads(text)
    if "mistake" in answer:
        raise ScenarioError(answer["mistake"])
    if "error" in answer:
        raise ScenarioError(f"a run failed:\n{answer['error']}")
    return answer["row"]


def _child(work: Callable[[], RunRow], reader: int, writer: int) -> None:
    """Call ``work`` in the forked process, write its result as JSON, and exit without the parent's clean-up."""
    try:
        os.close(reader)
        try:
            text = json.dumps({"row": work()})
        except HoldfastError as error:
            text = json.dumps({"mistake": located(error)})
        except BaseException:  # noqa: BLE001 - handed to the parent
            text = json.dumps({"error": traceback.format_exc()})
        with os.fdopen(writer, "w") as stream:
            stream.write(text)
    finally:
        os._exit(0)
