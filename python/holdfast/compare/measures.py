"""The instruments: from a network that has run to plain numbers, the same for every mechanism and on both clocks.

They are used in processes that were forked, so nothing here may start threads (as data frames do). Definitions:

- *lost*, *duplicated*, *reordered*, *outage*: of each stream of probes, over the whole run; as ``net``'s statistics.rs has them. An
  outage is the longest time between two arrivals less the stream's interval, and live less what the sender was late by.
- *latency*: mean of the probes sent while the failure lasted (first copies); *jitter*: mean absolute difference of the latencies
  of those that arrived one after the other.
- *goodput*: new bytes in order at the receiver from the failure on; *completion*: from a transfer's start to its last byte.
- *curves*: probes by the time of their arrival, and goodput, in bins, over all flows that the failure does not cut off by itself.
- *timeouts*, *retransmitted*: of the sender of a connection without an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from holdfast.compare.routes import path_delay_ms
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import PingEntry, TcpEntry, UdpEntry
from holdfast.network import Network, SimulatedNetwork
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.traffic import Ping, TcpTransfer, UdpStream


@dataclass(frozen=True)
class Flow:
    """A flow of the scenario, and the entry of the traffic file that it is of."""

    entry: UdpEntry | TcpEntry | PingEntry
    source: str
    destination: str
    start_s: float

    @property
    def kind(self) -> Literal["udp", "ping", "bulk", "transfer"]:
        """``udp``, ``ping``, ``bulk`` or ``transfer``."""
        if isinstance(self.entry, TcpEntry):
            return "bulk" if self.entry.transfer_bytes is None else "transfer"
        return "udp" if isinstance(self.entry, UdpEntry) else "ping"

    @property
    def is_probe(self) -> bool:
        """Whether each of its packets is counted."""
        return self.kind in ("udp", "ping")


@dataclass(frozen=True)
class Stream:
    """What became of a stream of probes; ``arrivals`` are first copies, when sent and when received, in the order of arrival."""

    sent: int
    lost: int
    duplicated: int
    reordered: int
    outage_ps: int
    arrivals: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Connection:
    """What became of a TCP connection: new bytes by bin, and for a transfer when the last one came (None: it did not)."""

    goodput: Sequence[int]
    finished_ps: int | None
    timeouts: int | None
    retransmitted_bytes: int | None


def flows_of(scenario: Scenario) -> list[Flow]:
    """The scenario's flows, in an order that is always the same."""
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
            flows += [Flow(entry, *ends, start_s) for start_s in starts]
    return flows


def bins_of(scenario: Scenario) -> int:
    """How many bins a curve has."""
    return -(-round(scenario.times.end_s * 1000) // scenario.bin_ms)


def add_traffic(network: SimulatedNetwork, scenario: Scenario) -> list[int]:
    """Adds the scenario's flows to a simulated network; their ids there, in the order of :func:`flows_of`."""
    return [_add(network, scenario, flow, i) for i, flow in enumerate(flows_of(scenario))]


def _add(network: SimulatedNetwork, scenario: Scenario, flow: Flow, index: int) -> int:
    entry, stop_s = flow.entry, scenario.times.end_s
    ends: dict[str, Any] = {"source": flow.source, "destination": flow.destination, "start_s": flow.start_s}
    if isinstance(entry, TcpEntry):
        transfer = TcpTransfer(
            **ends,
            **_application(scenario, flow, entry),
            options=entry.tcp_options(),
            goodput_bin_ms=scenario.bin_ms,
        )
        return network.add_tcp(transfer)
    if isinstance(entry, PingEntry):
        echo = Ping(**ends, interval_ms=entry.interval_ms, payload_bytes=entry.payload_bytes, stop_s=stop_s)
        return network.add(echo)
    stream = UdpStream(
        **ends,
        packets_per_s=entry.packets_per_s,
        payload_bytes=entry.payload_bytes,
        spacing=entry.spacing,
        stop_s=stop_s,
        # Two streams between the same hosts are told apart by their ports.
        source_port=5001 + index % 60_000,
    )
    return network.add(stream)


def _application(scenario: Scenario, flow: Flow, entry: TcpEntry) -> dict[str, Any]:
    """What writes: always, a transfer, or bursts, which begin as far apart as the rate says, unless the round trip is longer."""
    if entry.transfer_bytes is not None:
        return {"application": "transfer", "transfer_bytes": entry.transfer_bytes}
    if entry.rate_bps is None:
        return {"application": "bulk"}
    every_ms = entry.burst_bytes * 8 * 1000 / entry.rate_bps
    round_trip_ms = 2 * path_delay_ms(scenario.topology, flow.source, flow.destination)
    silence_ms = max(1e-6, every_ms - round_trip_ms)
    return {"application": "on-off", "transfer_bytes": entry.burst_bytes, "silence_ms": silence_ms}


def entries(network: Network) -> list[int]:
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


def links_used(network: Network) -> list[bool]:
    """By link of the topology: whether it has carried a packet."""
    counters = [network.link_counters(name) for name in network.topology.link_names()]
    return [bool(each.a_to_b.offered or each.b_to_a.offered) for each in counters]


def simulated(network: SimulatedNetwork, scenario: Scenario, ids: Sequence[int], cut_off: set[str]) -> dict[str, Any]:
    """The row of a simulation that is over."""
    seen = [
        _simulated_stream(network, flow) if each.is_probe else _simulated_connection(network, scenario, flow)
        for each, flow in zip(flows_of(scenario), ids, strict=True)
    ]
    return row(scenario, seen, cut_off, network.bytes_on_wire())


def _simulated_stream(network: SimulatedNetwork, flow: int) -> Stream:
    found = network.statistics(flow)
    log = network.received(flow)
    copies = list(zip(log.sequence, log.sent_ps, log.received_ps, strict=True))
    arrivals = [(there[1], there[2]) for there in first_copies(copies)]
    outage_ps = found.longest_outage_ps
    return Stream(found.sent, found.lost, found.duplicated, found.reordered, outage_ps, arrivals)


def _simulated_connection(network: SimulatedNetwork, scenario: Scenario, flow: int) -> Connection:
    count = bins_of(scenario)
    goodput = network.tcp_goodput(flow).tolist()[:count]
    found = network.tcp_statistics(flow)
    missing = [0] * (count - len(goodput))
    return Connection(goodput + missing, found.finished_ps, found.timeouts, found.bytes_retransmitted)


def first_copies(received: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Of arrivals, which begin with a sequence number, each number's first."""
    seen: set[int] = set()
    first = []
    for arrival in received:
        if arrival[0] not in seen:
            seen.add(arrival[0])
            first.append(arrival)
    return first


def stream_of(
    sent_ps: Sequence[int], received: Sequence[tuple[int, int, int]], interval_ps: int, *, constant: bool
) -> Stream:
    """From the logs of both ends: sequence numbers, times of sending and of arrival, in the order of arrival.

    These are the numbers that the core has for a simulated stream, but that of a gap what its sender itself was late by does not
    count, if its interval is to be ``constant``: what happened to the sender is not the network's doing.
    """
    first = first_copies(received)
    reordered, highest = 0, -1
    for sequence, _, _ in first:
        reordered += sequence < highest
        highest = max(highest, sequence)
    if not sent_ps:
        outage_ps = 0
    elif not first:
        outage_ps = sent_ps[-1] - sent_ps[0] + interval_ps
    else:
        gaps = [sent_ps[-1] - first[-1][2]]
        for (i, sent_i, there_i), (j, sent_j, there_j) in pairwise(first):
            late_ps = (sent_j - sent_i) - (j - i) * interval_ps if constant else 0
            gaps.append(there_j - there_i - max(0, late_ps))
        outage_ps = max(0, max(gaps) - interval_ps)
    lost = len(sent_ps) - len(first)
    arrivals = [(sent, there) for _, sent, there in first]
    return Stream(len(sent_ps), lost, len(received) - len(first), reordered, outage_ps, arrivals)


def row(scenario: Scenario, seen: Sequence[Stream | Connection], cut_off: set[str], wire_bytes: int) -> dict[str, Any]:
    """The numbers of a run; lists are by flow of their kind. ``cut_off``: hosts at a switch that failed."""
    flows = flows_of(scenario)
    counted = [flow.source not in cut_off and flow.destination not in cut_off for flow in flows]
    # In the order of comparison's names: streams, then pings.
    probes = [i for kind in ("udp", "ping") for i, flow in enumerate(flows) if flow.kind == kind]
    streams = [(each, counted[i]) for i in probes if isinstance(each := seen[i], Stream)]
    connections = [(flow, each, counted[i]) for i, flow in enumerate(flows) if isinstance(each := seen[i], Connection)]
    bulk = [(each, counts) for flow, each, counts in connections if flow.kind == "bulk"]
    first = round(scenario.times.failure_s * 1000) // scenario.bin_ms
    curve = [sum(column) for column in zip(*(each.goodput for each, counts in bulk if counts), strict=True)]
    return {
        "wire_bytes": wire_bytes,
        **_probes(scenario, streams),
        "goodput_bytes": [sum(each.goodput[first:]) for each, _ in bulk],
        "goodput_curve": curve,
        "timeouts": [each.timeouts for each, _ in bulk],
        "retransmitted_bytes": [each.retransmitted_bytes for each, _ in bulk],
        "completion_ms": [_completion_ms(flow, each) for flow, each, _ in connections if flow.kind == "transfer"],
    }


def _completion_ms(flow: Flow, connection: Connection) -> float | None:
    finished_ps = connection.finished_ps
    return None if finished_ps is None else round(finished_ps / PS_PER_MS - flow.start_s * 1000, 6)


def _probes(scenario: Scenario, streams: Sequence[tuple[Stream, bool]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: [] for name in ("sent", "lost", "duplicated", "reordered", "outage_ms", "latency_ms", "jitter_ms")
    }
    curve = [0] * bins_of(scenario)
    width_ps = scenario.bin_ms * PS_PER_MS
    window_ps = (round(scenario.times.failure_s * PS_PER_S), round(scenario.times.repair_s * PS_PER_S))
    for stream, counts in streams:
        for name in ("sent", "lost", "duplicated", "reordered"):
            found[name].append(getattr(stream, name))
        found["outage_ms"].append(round(stream.outage_ps / PS_PER_MS, 6))
        latencies = [there - sent for sent, there in stream.arrivals if window_ps[0] <= sent < window_ps[1]]
        found["latency_ms"].append(round(sum(latencies) / len(latencies) / PS_PER_MS, 6) if latencies else None)
        steps = [abs(b - a) for a, b in pairwise(latencies)]
        found["jitter_ms"].append(round(sum(steps) / len(steps) / PS_PER_MS, 6) if steps else None)
        if counts:
            for _, there in stream.arrivals:
                if (index := there // width_ps) < len(curve):
                    curve[index] += 1
    found["delivered_curve"] = curve
    return found
