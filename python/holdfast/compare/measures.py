"""The instruments: from a network that has run to plain numbers, the same for every mechanism.

They are used in processes that were forked, so nothing here may start threads (as data frames do). Definitions:

- *lost*, *duplicated*, *reordered*, *outage*: of each stream of probes, over the whole run; the core's ``statistics`` (``net``'s
  statistics.rs). An outage is the longest time between two arrivals less the stream's interval.
- *latency*: mean of the probes sent while the failure lasted (first copies); *jitter*: mean absolute difference of the latencies
  of those that arrived one after the other.
- *goodput*: new bytes in order at the receiver from the failure on; *completion*: from a transfer's start to its last byte.
- *curves*: probes by the time of their arrival, and goodput, in bins, over all flows that the failure does not cut off by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from holdfast.compare.scenario import Scenario
from holdfast.network import SimulatedNetwork
from holdfast.topology import PS_PER_MS, PS_PER_S
from holdfast.traffic import Ping, TcpTransfer, UdpStream


@dataclass(frozen=True)
class Flow:
    """A flow of the scenario; ``kind`` is ``udp``, ``ping``, ``bulk`` or ``transfer``. ``id`` is the network's."""

    kind: str
    source: str
    destination: str
    start_s: float
    id: int

    @property
    def is_probe(self) -> bool:
        """Whether each of its packets is counted."""
        return self.kind in ("udp", "ping")


def add_traffic(network: SimulatedNetwork, scenario: Scenario) -> list[Flow]:
    """Adds the scenario's flows, in an order that is always the same."""
    times, traffic = scenario.times, scenario.traffic
    flows: list[Flow] = []

    def add(kind: str, source: str, destination: str, start_s: float, flow: int) -> None:
        flows.append(Flow(kind, source, destination, start_s, flow))

    for udp in traffic.udp:
        start_s = udp.begins_s(times.failure_s)
        for source, destination in traffic.ends(udp):
            stream = UdpStream(
                source=source,
                destination=destination,
                packets_per_s=udp.packets_per_s,
                payload_bytes=udp.payload_bytes,
                spacing=udp.spacing,
                start_s=start_s,
                stop_s=times.end_s,
                # Two streams between the same hosts are told apart by their ports.
                source_port=5001 + len(flows) % 60_000,
            )
            add("udp", source, destination, start_s, network.add(stream))
    for tcp in traffic.tcp:
        for source, destination in traffic.ends(tcp):
            for i in range(tcp.count):
                start_s = round(tcp.begins_s(times.failure_s) + i * tcp.every_ms / 1000, 9)
                transfer = TcpTransfer(
                    source=source,
                    destination=destination,
                    application="bulk" if tcp.transfer_bytes is None else "transfer",
                    transfer_bytes=tcp.transfer_bytes or 0,
                    start_s=start_s,
                    options=tcp.tcp_options(),
                    goodput_bin_ms=scenario.bin_ms,
                )
                kind = "bulk" if tcp.transfer_bytes is None else "transfer"
                add(kind, source, destination, start_s, network.add_tcp(transfer))
    for ping in traffic.ping:
        start_s = ping.begins_s(times.failure_s)
        for source, destination in traffic.ends(ping):
            echo = Ping(
                source=source,
                destination=destination,
                interval_ms=ping.interval_ms,
                payload_bytes=ping.payload_bytes,
                start_s=start_s,
                stop_s=times.end_s,
            )
            add("ping", source, destination, start_s, network.add(echo))
    return flows


def entries(network: SimulatedNetwork) -> list[int]:
    """State per switch, in the topology's order.

    Table entries that the controller has written, replicas of multicast groups, and members of action profiles.
    """
    counts = []
    for name in network.topology.switches:
        switch = network.devices[name].switch
        count = sum(not entry.is_const for entry in switch.table_entries())
        count += sum(len(group.replicas) for group in switch.multicast_groups())
        counts.append(count + len(switch.action_profile_members()))
    return counts


def links_used(network: SimulatedNetwork) -> list[bool]:
    """By link of the topology: whether it has carried a packet."""
    counters = [network.core.link_counters(link) for link in network.link_ids]
    return [bool(each["a_to_b_offered"] or each["b_to_a_offered"]) for each in counters]


def measure(network: SimulatedNetwork, flows: Sequence[Flow], scenario: Scenario, cut_off: set[str]) -> dict[str, Any]:
    """The numbers of a run that is over; lists are by flow of their kind. ``cut_off``: hosts at a switch that failed."""
    probes = [flow for flow in flows if flow.is_probe]
    bulk = [flow for flow in flows if flow.kind == "bulk"]
    transfers = [flow for flow in flows if flow.kind == "transfer"]
    row: dict[str, Any] = {"wire_bytes": network.bytes_on_wire()}
    row |= _probes(network, probes, scenario, cut_off)
    bins = [_goodput(network, flow, scenario) for flow in bulk]
    first = round(scenario.times.failure_s * 1000) // scenario.bin_ms
    row["goodput_bytes"] = [sum(each[first:]) for each in bins]
    row["goodput_curve"] = _total([each for flow, each in zip(bulk, bins, strict=True) if _counts(flow, cut_off)])
    row["completion_ms"] = [_completion_ms(network, flow) for flow in transfers]
    return row


def _counts(flow: Flow, cut_off: set[str]) -> bool:
    return flow.source not in cut_off and flow.destination not in cut_off


def _total(bins: Sequence[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*bins, strict=True)]


def _goodput(network: SimulatedNetwork, flow: Flow, scenario: Scenario) -> list[int]:
    count = -(-round(scenario.times.end_s * 1000) // scenario.bin_ms)
    found = memoryview(network.core.tcp_goodput(flow.id)).cast("q").tolist()[:count]
    return found + [0] * (count - len(found))


def _completion_ms(network: SimulatedNetwork, flow: Flow) -> float | None:
    finished_ps = network.core.tcp_statistics(flow.id)["finished_ps"]
    return None if finished_ps is None else round(int(finished_ps) / PS_PER_MS - flow.start_s * 1000, 6)


def _probes(network: SimulatedNetwork, probes: Sequence[Flow], scenario: Scenario, cut_off: set[str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        name: [] for name in ("sent", "lost", "duplicated", "reordered", "outage_ms", "latency_ms", "jitter_ms")
    }
    count = -(-round(scenario.times.end_s * 1000) // scenario.bin_ms)
    curve = [0] * count
    width_ps = scenario.bin_ms * PS_PER_MS
    window_ps = (round(scenario.times.failure_s * PS_PER_S), round(scenario.times.repair_s * PS_PER_S))
    for flow in probes:
        statistics = network.core.statistics(flow.id)
        for name in ("sent", "lost", "duplicated", "reordered"):
            row[name].append(int(statistics[name] or 0))
        row["outage_ms"].append(round((statistics["longest_outage_ps"] or 0) / PS_PER_MS, 6))
        arrivals = _first_copies(network, flow)
        latencies = [there - sent for sent, there in arrivals if window_ps[0] <= sent < window_ps[1]]
        row["latency_ms"].append(round(sum(latencies) / len(latencies) / PS_PER_MS, 6) if latencies else None)
        steps = [abs(b - a) for a, b in pairwise(latencies)]
        row["jitter_ms"].append(round(sum(steps) / len(steps) / PS_PER_MS, 6) if steps else None)
        if _counts(flow, cut_off):
            for _, there in arrivals:
                if (index := there // width_ps) < count:
                    curve[index] += 1
    row["delivered_curve"] = curve
    return row


def _first_copies(network: SimulatedNetwork, flow: Flow) -> list[tuple[int, int]]:
    """Sent and received, in the order of arrival."""
    log = network.core.received(flow.id)
    sequences, sent, there = (
        memoryview(log[name]).cast("q").tolist() for name in ("sequence", "sent_ps", "received_ps")
    )
    seen: set[int] = set()
    first = []
    for sequence, sent_ps, received_ps in zip(sequences, sent, there, strict=True):
        if sequence not in seen:
            seen.add(sequence)
            first.append((sent_ps, received_ps))
    return first
