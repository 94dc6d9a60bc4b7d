"""One run: a mechanism under one failure, and what it measures. This is what :mod:`holdfast.sweep` calls.

Definitions, for each subscriber over both directions of its traffic:

- *kept*: it has had one session in the whole run, and has it at the end.
- *lost*: packets that never arrived. *outage*: the longest time between two arrivals, less the interval of packets.
- *recovered*: the time of sending of the last packet that was lost after the failure, less the failure's; None if the last
  packet of a direction is lost: it has not recovered.
- *setup*: of those that dial while something is down, from the first attempt to the session; None if there is none at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, TypedDict

from holdfast.compare import inputs
from holdfast.compare.gateways import access
from holdfast.compare.gateways.mechanisms import MECHANISMS
from holdfast.compare.gateways.scenario import BIN_MS, Scenario
from holdfast.compare.gateways.simulation import Simulation
from holdfast.compare.inputs import DRAIN_S
from holdfast.parameters import PS_PER_MS, PS_PER_S


class RunRow(TypedDict):
    """The results of a run. Lists are by subscriber or newcomer; curves have a number for each :data:`BIN_MS`."""

    sent: list[int]
    lost: list[int]
    duplicated: list[int]
    outage_ms: list[float]
    recovered_ms: list[float | None]
    kept: list[bool]
    online: list[bool]
    setup_ms: list[float | None]
    delivered_curve: list[int]
    online_curve: list[int]
    entries: list[int]
    wrong_session: int
    accounted: int
    records_waiting: int


def measured(point: Mapping[str, Any], _: int) -> RunRow:
    """Run the mechanism, failure and seed of ``point``, and return the row for :func:`holdfast.sweep.run`.

    A point has ``scenario`` (a file), ``mechanism``, ``network_seed`` and ``failure``.
    """
    scenario = inputs.read(Scenario, point["scenario"])
    return run(Simulation(scenario, MECHANISMS[point["mechanism"]], point["network_seed"]), point["failure"])


def run(simulation: Simulation, failure: str) -> RunRow:
    """Run ``simulation`` under ``failure`` until all traffic has ended, and return the measured numbers of each subscriber."""
    given = simulation.given
    simulation.schedule(failure)
    online_curve: list[int] = []
    count = given.subscribers.subscribers

    def look() -> None:
        online_curve.append(sum(each.model.state == "up" for each in simulation.access.online[:count]))

    for number in range(given.bins):
        simulation.network.call_later((number + 1) * BIN_MS, look)
    simulation.network.run(given.times.end_s + DRAIN_S)
    seen = [_Seen(simulation, flows) for flows in simulation.flows]
    callers = simulation.access.online
    return {
        "sent": [each.sent for each in seen],
        "lost": [each.lost for each in seen],
        "duplicated": [each.duplicated for each in seen],
        "outage_ms": [each.outage_ms for each in seen],
        "recovered_ms": [each.recovered_ms for each in seen],
        "kept": [len(each.sessions) == 1 and each.model.state == "up" for each in callers[:count]],
        "online": [each.model.state == "up" for each in callers[:count]],
        "setup_ms": [
            round(1000 * (each.sessions[0][0] - caller.at_s), 6) if each.sessions else None
            for caller, each in zip(simulation.callers[count:], callers[count:], strict=True)
        ],
        "delivered_curve": [sum(column) for column in zip_longest(*(each.curve for each in seen), fillvalue=0)],
        "online_curve": online_curve,
        "entries": [
            simulation.network.devices[name].written()
            for name in simulation.topology.switches
            if name not in (access.NODE, "core")
        ],
        "wrong_session": simulation.access.client.counter("wrong_session", 0)[0],
        "accounted": sum(simulation.radius.records.values()),
        "records_waiting": sum(len(each.store) for each in simulation.processes),
    }


class _Seen:
    """Sent, lost and duplicated packets of a subscriber, and its outage."""

    def __init__(self, simulation: Simulation, flows: tuple[int, int]) -> None:
        network, times = simulation.network, simulation.given.times
        self.sent = self.lost = self.duplicated = 0
        self.outage_ms = 0.0
        self.recovered_ms: float | None = 0.0
        self.curve = [0] * simulation.given.bins
        failure_ps = round(times.failure_s * PS_PER_S)
        for flow in flows:
            found, sent, received = network.statistics(flow), network.sent(flow), network.received(flow)
            self.sent += found.sent
            self.lost += found.lost
            self.duplicated += found.duplicated
            self.outage_ms = max(self.outage_ms, round(found.longest_outage_ps / PS_PER_MS, 6))
            arrived = set(received.sequence)
            for at_ps in received.received_ps:
                if (place := at_ps // (BIN_MS * PS_PER_MS)) < len(self.curve):
                    self.curve[place] += 1
            gone = [at for number, at in zip(sent.sequence, sent.sent_ps, strict=True) if number not in arrived]
            if gone and gone[-1] == sent.sent_ps[-1]:
                self.recovered_ms = None
            elif gone and self.recovered_ms is not None:
                self.recovered_ms = max(self.recovered_ms, round((gone[-1] - failure_ps) / PS_PER_MS, 6))
