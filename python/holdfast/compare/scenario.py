"""The input of a comparison: a topology, traffic, failures and times. One :class:`Scenario` is the same for every mechanism.

It is written beside the results under a name that is a hash of all of it, and the processes that run read it from there.
Mechanisms, measures and results are not known here.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, PlainSerializer, ValidationError

from holdfast import topologies, whole_files, yaml_model
from holdfast.compare import failures, inputs, multicast_traffic, traffic_csv, traffic_file
from holdfast.compare.inputs import NO_FAILURE
from holdfast.compare.traffic_file import TrafficFile
from holdfast.control.subnets import check_routed
from holdfast.errors import ExtensionError, NetworkError, ScenarioError, TopologyError, TopologyWarning, first_mistake
from holdfast.extensions import Door, is_place
from holdfast.link import trace_digests
from holdfast.topology import Topology

MULTICAST: Final = "multicast"
"""A value of ``traffic`` beside a file: groups that are drawn for the topology."""


ONE_FAILURE = {"before_s": 1.0, "down_s": 2.0, "after_s": 1.0}
ALL_FAILURES = {"before_s": 0.5, "down_s": 1.5, "after_s": 0.5}
"""With ``--fail all`` there are as many runs as links, and with others that mean several there are many, so each is shorter."""


class Scenario(inputs.Scenario):
    """A comparison of networks without the mechanisms and the seeds.

    ``telemetry``: switches report by INT. ``loss_traces``: the files that the topology names, with digests of what they held: with
    others the runs are others.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    topology: Annotated[Topology, PlainSerializer(Topology.to_yaml)]
    traffic: TrafficFile
    fail: str = Field(default="", exclude=True)
    own_traffic: bool = Field(default=True, exclude=True)
    executor: Literal["jit", "interpreter"] = "jit"
    notes: tuple[str, ...] = Field(default=(), exclude=True)
    telemetry: bool = False
    loss_traces: Mapping[str, str] = {}

    @property
    def failed(self) -> str:
        """The kind of what fails in turn, in words: ``link``, ``switch``, ``pair of links``, in the plural if there are several."""
        kinds = {failures.kind(self.topology, each) for each in self.failures}
        if len(self.failures) == 1:
            return kinds.pop()
        return failures.plural(kinds.pop()) if len(kinds) == 1 else "sets of links and switches"

    @property
    def bin_ms(self) -> int:
        """Width of the curves' bins: 10 ms, wider if a run would have more than 1000 of them."""
        return 10 * max(1, -(-round(self.times.end_s * 100) // 1000))

    def write(self, folder: Path) -> Path:
        """Write what a run needs to a file in ``folder`` whose name is a hash of its content, and the topology beside it.

        Return the path.
        """
        path = super().write(folder)
        whole_files.write_text(path.with_suffix(".yaml"), self.topology.to_yaml())
        return path


@lru_cache(maxsize=2)
def read(path: str) -> Scenario:
    """Return the scenario in a file that :meth:`Scenario.write` has written, without its failures.

    It is cached and shared, so callers must not change it.
    """
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    return Scenario.model_validate({**content, "topology": fresh_topology(path)})


def fresh_topology(path: str) -> Topology:
    """Return a copy of the topology of the scenario in file ``path``, to which a mechanism may add."""
    return _topology(path).copy()


@lru_cache(maxsize=2)
def _topology(path: str) -> Topology:
    """Return the topology of the scenario in file ``path``, read once: that takes seconds for a thousand switches.

    It is shared, so callers must not change it.
    """
    return Topology.from_yaml(Path(path).with_suffix(".yaml"))


def build(
    spec: str,
    *,
    fail: str,
    largest: bool = False,
    traffic: Path | str | None = None,
    executor: Literal["jit", "interpreter"] = "jit",
    when: Mapping[str, float | None] | None = None,
    live: bool = False,
    telemetry: bool = False,
) -> Scenario:
    """Build a scenario from the command's options; raise :class:`ScenarioError` with one sentence for a wrong one.

    ``largest``: take the largest part of a topology that is not connected. ``traffic``: a file, None for default traffic between
    pairs, ``multicast`` for default multicast traffic, or a function from outside (:data:`TRAFFIC`), by its place or name.
    ``when``: fields of :class:`Times`. ``live``: the runs are made in real time. ``telemetry``: mechanisms report by INT.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TopologyWarning)
        topology = topologies.load(spec, largest=largest)
    try:
        topology.check()
    except TopologyError as error:
        raise ScenarioError(f"{spec}: {error}; --largest compares the largest part") from None
    if len(topology.hosts) < 2:
        raise ScenarioError(f"{spec}: there are too few hosts ({len(topology.hosts)}); traffic needs two")
    try:
        check_routed(topology, "the baseline of holdfast compare")
    except NetworkError as error:
        raise ScenarioError(f"{spec}: {error}") from None
    found = failures.read(topology, fail)
    if NO_FAILURE in found.names:
        raise ScenarioError(
            f"{spec}: a switch that fails cannot be called {NO_FAILURE!r}, the name of the run without a failure"
        )
    given = {name: value for name, value in (when or {}).items() if value is not None}
    shown = inputs.times({**(ALL_FAILURES if found.several else ONE_FAILURE), **given})
    notes = [str(each.message) for each in caught]
    if found.note:
        notes.append(found.note)
    if isinstance(traffic, Path):
        is_csv = traffic.suffix.lower() == ".csv"
        offered = traffic_csv.read(traffic, topology) if is_csv else yaml_model.read(traffic, TrafficFile)
    elif traffic is None or traffic == MULTICAST:
        default = multicast_traffic.default if traffic == MULTICAST else traffic_file.default
        offered = default(topology, list(found.through), live=live)
    else:
        offered = _from_outside(traffic, topology)
    try:
        offered.check(topology, shown.failure_s, shown.end_s)
    except ScenarioError as error:
        raise ScenarioError(f"{traffic}: {error}" if isinstance(traffic, Path) else str(error)) from None
    return Scenario(
        topology=topology,
        traffic=offered,
        times=shown,
        failures=found.names,
        fail=fail,
        own_traffic=isinstance(traffic, Path),
        executor=executor,
        notes=tuple(notes),
        live=live,
        telemetry=telemetry,
        loss_traces=trace_digests(topology.links),
    )


def _function(value: object) -> Callable[[Topology], object]:
    if isinstance(value, type) or not callable(value):
        raise ExtensionError(f"it is a {type(value).__name__}, not a function that returns the traffic of a Topology")
    return value


TRAFFIC: Final = Door("holdfast.traffic", "traffic", _function, lambda: (MULTICAST,))
"""Traffic from outside the package: a function of a topology that returns a :class:`TrafficFile`, or a mapping like such a file."""


def _from_outside(text: str, topology: Topology) -> TrafficFile:
    """Return the traffic that a function from outside offers on ``topology``.

    Raise :class:`ExtensionError` if there is no such function, or if it cannot be used.
    """
    function = TRAFFIC.read(text) if is_place(text) else TRAFFIC.load(text)
    found = TRAFFIC.called(text, lambda: function(topology.copy()), object)
    if not isinstance(found, Mapping | TrafficFile):
        raise ExtensionError(f"{text}: this traffic is a {type(found).__name__}, not a mapping or a TrafficFile")
    try:
        return TrafficFile.model_validate(dict(found) if isinstance(found, Mapping) else found)
    except ValidationError as error:
        raise ScenarioError(f"{text}: {first_mistake(error)}") from None
