"""A mechanism in a comparison of networks, and how its network is built from a :class:`Setting`. No mechanism is known here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdfast._core import Program
from holdfast.compare.competitor import Competitor
from holdfast.compare.traffic_file import Ends, Pair
from holdfast.controller import Controller
from holdfast.errors import ScenarioError
from holdfast.topology import Topology


@dataclass(frozen=True)
class Setting:
    """The setting that a mechanism is built for. The mechanism may add to the topology, which is its own."""

    topology: Topology
    flows: Sequence[Ends]
    detection_delay_ms: float
    reaction_delay_ms: float
    largest_packet_bytes: int

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of source and receiver, each in one direction, for a mechanism that knows only pairs of hosts."""
        found: dict[frozenset[str], Pair] = {}
        for ends in self.flows:
            for pair in ends.pairs:
                found.setdefault(frozenset(pair), pair)
        return list(found.values())

    def mtu_for(self, overhead_bytes: int) -> int:
        """Return the MTU that links between switches need, in bytes, if tunnels add ``overhead_bytes`` to hosts' packets.

        It is at least 1600.
        """
        return max(1600, self.largest_packet_bytes + overhead_bytes)


@dataclass(frozen=True)
class Built:
    """A program for all switches and its controller.

    ``unprotected``: the source and the receiver to which it cannot protect a flow, of each such flow; known when it has started.
    ``membership``: the function that makes a receiver a member of a flow's group (True) or takes it out, if members are the
    controller's matter. ``promise``: the longest outage of the flow at a receiver when a link or a switch fails, in milliseconds
    (0: it loses no packet); None where the mechanism promises nothing. ``delivers``: whether packets from a host arrive at another
    while some links are down, by their indices in the topology, once switches have noticed it and before a controller has reacted;
    known when it has started.
    """

    program: Program
    controller: Controller
    unprotected: list[Pair] = field(default_factory=list)
    membership: Callable[[Ends, str, bool], None] | None = None
    promise: Callable[[str, Ends, str], float | None] | None = None
    delivers: Callable[[frozenset[int], str, str], bool] | None = None


@dataclass(frozen=True)
class Mechanism(Competitor):
    """Something that keeps traffic in a network going, or does not.

    ``multicast``: its switches copy what is sent to a flow's group to all receivers of the flow. ``core_state``: the state that
    each switch then holds, in entries and replicas, for flows that neither begin nor end at it. ``with_telemetry``: the same with a
    program that reports by INT, if there is one. ``protects``: flows have another way before a failure (but for those that
    :attr:`Built.unprotected` lists), find one after it, or do not; None: that is not stated. ``loses``: a sentence that says why it
    loses packets of flows that it protects, shown where it does.
    """

    build: Callable[[Setting], Built]
    multicast: bool = False
    core_state: Callable[[Topology, Sequence[Ends]], list[int]] | None = None
    with_telemetry: Callable[[Setting], Built] | None = None
    protects: Literal["prepared", "restored", "nothing"] | None = None
    loses: str = ""

    def built(self, setting: Setting, *, telemetry: bool) -> Built:
        """Return the program and the controller that this mechanism builds for ``setting``.

        With ``telemetry``, return its variant that reports by INT. Raise :class:`ScenarioError` if the mechanism has no such
        variant, or if its function does not return a :class:`Built` of a program and a controller.
        """
        build = self.with_telemetry if telemetry else self.build
        if build is None:
            raise ScenarioError(f"mechanism {self.name!r} has no program that reports by INT")
        found: object = build(setting)
        if not isinstance(found, Built):
            raise ScenarioError(f"mechanism {self.name!r} built a {type(found).__name__}; its function returns a Built")
        for what, value, kind in (("program", found.program, Program), ("controller", found.controller, Controller)):
            if not isinstance(value, kind):
                raise ScenarioError(
                    f"mechanism {self.name!r}: its {what} is a {type(value).__name__}, not a {kind.__name__}"
                )
        return found
