"""The instruments: from a network that has run to plain numbers, the same for every mechanism and on both clocks.

They are used in processes that were forked, so nothing here may start threads (as data frames do). Definitions:

- *lost*, *duplicated*, *reordered*, *outage*: of each stream of probes at each of its receivers, over the whole run; as ``net``'s
  statistics.rs has them. An outage is the longest time between two arrivals less the stream's interval, and live less what the
  sender was late by.
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
from typing import Literal, NamedTuple

from holdfast.compare.flows import Flow, flows_of, of_kind, receptions_of
from holdfast.compare.rows import Measures
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import PingEntry, TcpEntry
from holdfast.network import Network, SimulatedNetwork
from holdfast.parameters import PS_PER_MS, PS_PER_S
from holdfast.paths import path_delay_ms
from holdfast.traffic import Ping, TcpTransfer, UdpStream


@dataclass(frozen=True)
class Stream:
    """A stream of probes as seen at one receiver.

    ``arrivals`` are first copies, when sent and when received, in the order of arrival.
    """

    sent: int
    lost: int
    duplicated: int
    reordered: int
    outage_ps: int
    arrivals: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Connection:
    """A TCP connection as seen at its receiver: new bytes by bin, and for a transfer when the last one came (None: it did not)."""

    goodput: Sequence[int]
    finished_ps: int | None
    timeouts: int | None
    retransmitted_bytes: int | None


def bins_of(scenario: Scenario) -> int:
    """Return how many bins a curve over time has in a run of this scenario."""
    return -(-round(scenario.times.end_s * 1000) // scenario.bin_ms)


class Instrument(NamedTuple):
    """A counter of a receiver's packets in a simulated network: the flow's number there, and the host, if it is one of several."""

    flow: int
    host: str | None = None


def add_traffic(network: SimulatedNetwork, scenario: Scenario, *, multicast: bool) -> list[Instrument]:
    """Add the scenario's flows to a network; return an instrument for each reception (flow and receiver).

    They are in the order of ``receptions_of``. With ``multicast``, a flow with several receivers is sent once, to its group;
    otherwise once to each receiver.
    """
    found: list[Instrument] = []
    for flow in flows_of(scenario):
        if multicast and flow.ends.group is not None:
            number = _add(network, scenario, flow, flow.ends.group)
            found += [Instrument(number, receiver) for receiver in flow.ends.receivers]
        else:
            found += [Instrument(_add(network, scenario, flow, each)) for each in flow.ends.receivers]
    return found


def _add(network: SimulatedNetwork, scenario: Scenario, flow: Flow, destination: str) -> int:
    entry, source, stop_s = flow.entry, flow.ends.source, scenario.times.end_s
    if isinstance(entry, TcpEntry):
        application = _application(scenario, flow, entry)
        transfer = TcpTransfer(
            source=source,
            destination=destination,
            start_s=flow.start_s,
            application=application.kind,
            transfer_bytes=application.transfer_bytes,
            silence_ms=application.silence_ms,
            options=entry.tcp_options(),
            goodput_bin_ms=scenario.bin_ms,
        )
        return network.add_tcp(transfer)
    if isinstance(entry, PingEntry):
        echo = Ping(
            source=source,
            destination=destination,
            start_s=flow.start_s,
            interval_ms=entry.interval_ms,
            payload_bytes=entry.payload_bytes,
            stop_s=stop_s,
        )
        return network.add(echo)
    stream = UdpStream(
        source=source,
        destination=destination,
        start_s=flow.start_s,
        packets_per_s=entry.packets_per_s,
        payload_bytes=entry.payload_bytes,
        spacing=entry.spacing,
        stop_s=stop_s,
        # Two streams between the same hosts are told apart by their ports.
        source_port=5001 + flow.place % 60_000,
    )
    return network.add(stream)


@dataclass(frozen=True)
class Application:
    """The application that writes to a connection; fields of :class:`holdfast.traffic.TcpTransfer`."""

    kind: Literal["bulk", "transfer", "on-off"]
    transfer_bytes: int = 0
    silence_ms: float = 0.0


def _application(scenario: Scenario, flow: Flow, entry: TcpEntry) -> Application:
    """Return what the sender of a TCP connection does: it writes always, transfers a number of bytes, or writes bursts.

    Bursts begin at intervals that give the entry's rate, unless the round trip is longer.
    """
    if entry.transfer_bytes is not None:
        return Application("transfer", entry.transfer_bytes)
    if entry.rate_bps is None:
        return Application("bulk")
    every_ms = entry.burst_bytes * 8 * 1000 / entry.rate_bps
    round_trip_ms = 2 * path_delay_ms(scenario.topology, *flow.ends.hosts)
    return Application("on-off", entry.burst_bytes, max(1e-6, every_ms - round_trip_ms))


def entries(network: Network) -> list[int]:
    """Return for each switch, in the topology's order, how many entries of the controller are installed now.

    Table entries, replicas of multicast groups, and members of action profiles are counted.
    """
    return [network.devices[name].written() for name in network.topology.switches]


def links_used(network: Network) -> list[bool]:
    """Return for each link, in the topology's order, whether it was offered a packet in either direction."""
    counters = [network.link_counters(name) for name in network.topology.link_names()]
    return [bool(each.a_to_b.offered or each.b_to_a.offered) for each in counters]


def simulated(
    network: SimulatedNetwork, scenario: Scenario, instruments: Sequence[Instrument], cut_off: set[str]
) -> Measures:
    """Return the measures of a simulated run that has ended. ``cut_off``: hosts at a switch that failed."""
    seen = [
        _simulated_stream(network, at) if each.flow.is_probe else _simulated_connection(network, scenario, at.flow)
        for each, at in zip(receptions_of(scenario), instruments, strict=True)
    ]
    return row(scenario, seen, cut_off, network.bytes_on_wire())


def _simulated_stream(network: SimulatedNetwork, at: Instrument) -> Stream:
    found = network.statistics(at.flow, host=at.host)
    log = network.received(at.flow, host=at.host)
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
    """Return the first arrival of each sequence number, without later duplicates. An arrival begins with its number."""
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
    """Return a stream from the sender's times of sending, and the receiver's arrivals in the order of arrival.

    An arrival is (sequence number, time of sending, time of arrival), in ps. The results are those of the core for a simulated
    stream, except that with ``constant`` a gap is shortened by the time by which the sender was late, because that is not the
    network's doing.
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


def row(scenario: Scenario, seen: Sequence[Stream | Connection], cut_off: set[str], wire_bytes: int) -> Measures:
    """Return the measures of a run, computed from the stream or connection seen at each reception.

    ``cut_off``: hosts at a switch that failed, whose flows are left out of the curves.
    """
    receptions = receptions_of(scenario)
    counted = [cut_off.isdisjoint(each.hosts) for each in receptions]
    probes = [(each, counted[i]) for i in of_kind(receptions, "udp", "ping") if isinstance(each := seen[i], Stream)]
    bulk = [(each, counted[i]) for i in of_kind(receptions, "bulk") if isinstance(each := seen[i], Connection)]
    first = round(scenario.times.failure_s * 1000) // scenario.bin_ms
    window_ps = (round(scenario.times.failure_s * PS_PER_S), round(scenario.times.repair_s * PS_PER_S))
    latencies = [
        [there - sent for sent, there in stream.arrivals if window_ps[0] <= sent < window_ps[1]] for stream, _ in probes
    ]
    steps = [[abs(b - a) for a, b in pairwise(each)] for each in latencies]
    return {
        "wire_bytes": wire_bytes,
        "sent": [stream.sent for stream, _ in probes],
        "lost": [stream.lost for stream, _ in probes],
        "duplicated": [stream.duplicated for stream, _ in probes],
        "reordered": [stream.reordered for stream, _ in probes],
        "outage_ms": [round(stream.outage_ps / PS_PER_MS, 6) for stream, _ in probes],
        "latency_ms": [_mean_ms(each) for each in latencies],
        "jitter_ms": [_mean_ms(each) for each in steps],
        "delivered_curve": _delivered(scenario, [stream for stream, counts in probes if counts]),
        "goodput_bytes": [sum(each.goodput[first:]) for each, _ in bulk],
        "goodput_curve": [
            sum(column) for column in zip(*(each.goodput for each, counts in bulk if counts), strict=True)
        ],
        "timeouts": [each.timeouts for each, _ in bulk],
        "retransmitted_bytes": [each.retransmitted_bytes for each, _ in bulk],
        "completion_ms": [
            _completion_ms(receptions[i].flow, each)
            for i in of_kind(receptions, "transfer")
            if isinstance(each := seen[i], Connection)
        ],
    }


def _completion_ms(flow: Flow, connection: Connection) -> float | None:
    finished_ps = connection.finished_ps
    return None if finished_ps is None else round(finished_ps / PS_PER_MS - flow.start_s * 1000, 6)


def _mean_ms(times_ps: Sequence[int]) -> float | None:
    return round(sum(times_ps) / len(times_ps) / PS_PER_MS, 6) if times_ps else None


def _delivered(scenario: Scenario, streams: Sequence[Stream]) -> list[int]:
    """Return how many first copies of probes arrived in each bin of a curve."""
    curve = [0] * bins_of(scenario)
    width_ps = scenario.bin_ms * PS_PER_MS
    for stream in streams:
        for _, there in stream.arrivals:
            if (index := there // width_ps) < len(curve):
                curve[index] += 1
    return curve
