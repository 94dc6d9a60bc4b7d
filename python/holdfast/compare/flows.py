"""The unit of a comparison: a flow has one source and one or many receivers, and what is measured is measured at each receiver.

A :class:`Reception` is a flow at one of its receivers. Rows of runs have a number for each reception. A flow's own figures follow:
counts are sums over its receivers, an outage is that of the worst receiver, and latency and jitter are means over the receivers, or
None if there is a receiver that has none. Networks are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import Ends, Pair, PingEntry, TcpEntry, UdpEntry

Kind = Literal["udp", "ping", "bulk", "transfer"]


@dataclass(frozen=True)
class Flow:
    """A flow of the scenario, and the entry of the traffic file that it is of. ``place``: among all of them."""

    place: int
    entry: UdpEntry | TcpEntry | PingEntry
    ends: Ends
    start_s: float

    @property
    def kind(self) -> Kind:
        """The kind of the flow: ``udp``, ``ping``, ``bulk`` or ``transfer``."""
        if isinstance(self.entry, TcpEntry):
            return "bulk" if self.entry.transfer_bytes is None else "transfer"
        return "udp" if isinstance(self.entry, UdpEntry) else "ping"

    @property
    def is_probe(self) -> bool:
        """True if each packet of the flow is counted."""
        return self.kind in ("udp", "ping")


@dataclass(frozen=True)
class Reception:
    """A flow at one of its receivers."""

    flow: Flow
    receiver: str

    @property
    def source(self) -> str:
        """The host that sends the flow."""
        return self.flow.ends.source

    @property
    def hosts(self) -> tuple[str, str]:
        """The flow's source and this receiver: if one of them is cut off, nothing is received."""
        return self.source, self.receiver


def flows_of(scenario: Scenario) -> list[Flow]:
    """Return the flows of the scenario's traffic, in the same order for every mechanism and run."""
    traffic, failure_s = scenario.traffic, scenario.times.failure_s
    flows: list[Flow] = []
    entries: list[UdpEntry | TcpEntry | PingEntry] = [*traffic.udp, *traffic.tcp, *traffic.ping]
    for entry in entries:
        begin_s = entry.begins_s(failure_s)
        for ends in traffic.ends(entry):
            if isinstance(entry, TcpEntry):
                starts = [round(begin_s + i * entry.every_ms / 1000, 9) for i in range(entry.count)]
            else:
                starts = [begin_s]
            flows += [Flow(len(flows) + i, entry, ends, start_s) for i, start_s in enumerate(starts)]
    return flows


def receptions_of(scenario: Scenario) -> list[Reception]:
    """Return the receptions of all flows, flow by flow; a flow has one for each of its receivers."""
    return [Reception(flow, receiver) for flow in flows_of(scenario) for receiver in flow.ends.receivers]


def of_kind(receptions: Iterable[Reception], *kinds: Kind) -> list[int]:
    """Return the indices of receptions whose flow is of one of ``kinds``, kind by kind."""
    known = list(receptions)
    return [i for kind in kinds for i, each in enumerate(known) if each.flow.kind == kind]


def not_protected(flows: Iterable[Ends], unprotected: Iterable[Pair]) -> list[int]:
    """Return the indices of flows that cannot be protected on the way to one of their receivers.

    ``unprotected``: pairs of hosts, in either direction.
    """
    known = {frozenset(pair) for pair in unprotected}
    return [i for i, ends in enumerate(flows) if any(frozenset(pair) in known for pair in ends.pairs)]
