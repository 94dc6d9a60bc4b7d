"""Counts and measurements of a network up to now: flows, TCP connections, links, queues, nodes, interfaces, the wall clock.

Those of benchmarks are at the end. Times are picoseconds. These are values: they do not change while the network runs. The native
core makes them. This module knows no network.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass


class Measured:
    """A value that notebooks show as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the fields, with what they are, for notebooks."""
        from holdfast import notebook

        return notebook.values(self)


@dataclass(frozen=True, slots=True)
class FlowStatistics(Measured):
    """Statistics of a stream's packets, or of pings, at one receiver.

    A statistic for which too few packets arrived is None; percentiles are also None without a log of packets.
    """

    sent: int
    delivered: int
    """Packets of which a copy arrived, each counted once."""
    lost: int
    duplicated: int
    """Further copies."""
    reordered: int
    """Packets that arrived behind a later one (RFC 4737)."""
    undecided: int
    """Without a log: copies that may have been late packets. Everything is exact while this is 0."""
    longest_outage_ps: int
    """The longest gap in what arrived, beyond the nominal interval."""
    latency_mean_ps: float | None
    latency_min_ps: int | None
    latency_p50_ps: int | None
    latency_p99_ps: int | None
    latency_max_ps: int | None
    interarrival_jitter_ps: float | None
    """RFC 3550, section 6.4.1, after the last packet."""
    mean_delay_variation_ps: float | None
    """Mean absolute difference of the latencies of consecutive packets."""


@dataclass(frozen=True, slots=True)
class TcpStatistics(Measured):
    """A TCP connection between modelled hosts. Fields that are not said to be the server's are the client's, which writes."""

    cwnd_bytes: int
    ssthresh_bytes: int
    """2^63 - 1 as long as there was no loss."""
    flight_bytes: int
    """Sent, and neither acknowledged nor known to have left the network."""
    srtt_ps: int
    """0 before the first sample."""
    rtt_min_ps: int
    rto_ps: int
    """With its back-off."""
    bytes_sent: int
    """Of payload, with those that were sent again."""
    bytes_retransmitted: int
    bytes_acknowledged: int
    bytes_received: int
    """At the server, in order, each counted once."""
    bytes_received_again: int
    """At the server."""
    segments_sent: int
    """With payload, SYN or FIN."""
    segments_retransmitted: int
    acks_sent: int
    """By the server, without payload."""
    duplicate_acks: int
    timeouts: int
    fast_recoveries: int
    ecn_reductions: int
    tail_loss_probes: int
    ce_received: int
    """Segments with congestion experienced, at the server."""
    finished_ps: int | None
    """When a transfer was complete."""
    client_state: str
    server_state: str
    failure: str | None
    """Why the connection ended before its time."""


@dataclass(frozen=True, slots=True)
class DirectionCounters(Measured):
    """One direction of a link."""

    packets: int
    """Put on the wire."""
    bytes: int
    """Of these, with the physical layer's overhead."""
    queue_drops: int
    red_drops: int
    marked: int
    """With congestion experienced."""
    loss_drops: int
    """By the link's model of loss."""
    down_drops: int
    mtu_drops: int
    offered: int
    """Packets that came to the sender's queue."""
    delivered: int
    """Packets that arrived at the other end."""
    frame_bytes: int
    """Put on the wire, without the physical layer's overhead."""
    in_transit: int
    """Packets that wait or are under way now."""


@dataclass(frozen=True, slots=True)
class LinkCounters(Measured):
    """Both directions of a link."""

    a_to_b: DirectionCounters
    b_to_a: DirectionCounters


@dataclass(frozen=True, slots=True)
class OrderingCounters(Measured):
    """Counters of the ordering function of a direction."""

    untagged: int
    """Without a sequence number; sent at once."""
    in_order: int
    """With the next number; sent at once."""
    taken_any: int
    """Sent at once because nothing had come for POFTakeAnyTime (RFC 9550), or ever."""
    late: int
    """Something behind them was sent already; sent at once."""
    unordered: int
    """There was no room among the streams; sent at once."""
    held_back: int
    """The sum of ``filled``, ``timed_out``, ``overflowed``, ``lost`` and ``held``."""
    filled: int
    """Sent because all before them were."""
    timed_out: int
    """Sent because POFMaxDelay was over, theirs or that of one behind them."""
    overflowed: int
    """Sent because the buffer was full."""
    lost: int
    """Held when the node failed."""
    held: int
    """Now."""
    max_held: int


@dataclass(frozen=True, slots=True)
class BfdStatistics(Measured):
    """One end of a BFD session (RFC 5880)."""

    state: str
    """``up``, ``init``, ``down`` or ``admin_down``."""
    diagnostic: int
    """Why the state changed last (section 4.1): 0 none, 1 detection time expired, 3 neighbor signaled session down."""
    sent: int
    received: int
    refused: int
    """Control packets for another session."""
    came_up: int
    """Sessions begin up, which is not counted."""
    went_down: int
    expired: int
    """The number of times that the detection time was over."""
    changed_ps: int
    """When the state changed last."""
    detection_time_ps: int
    """The time that it waits for a packet now."""


@dataclass(frozen=True, slots=True)
class Drops(Measured):
    """Packets that ended at a node, or on a link that leads away from it."""

    node: str
    reason: str
    """``queue_full``, ``early``, ``loss``, ``link_down``, ``mtu``, ``node_down``, ``unconnected``, ``interface``,
    ``not_addressed``, ``not_joined``, ``corrupted`` or ``unresolved``."""
    packets: int


@dataclass(frozen=True, slots=True)
class RandomFailure(Measured):
    """A random failure or repair that happened."""

    time_ps: int
    what: str
    """A switch's name, ``a:1-b:2`` of a link, or ``a:1>b:2`` of a direction."""
    up: bool
    """True for a repair."""


@dataclass(frozen=True, slots=True)
class GeneratorCounters(Measured):
    """A packet generator."""

    packets: int
    """That it made."""


@dataclass(frozen=True, slots=True)
class QueueStatistics(Measured):
    """A queue of a switch's traffic manager."""

    port: int
    queue: int
    offered: int
    taken: int
    queue_drops: int
    red_drops: int
    marked: int
    down_drops: int
    packets: int
    """That wait now, as are the bytes."""
    bytes: int
    max_packets: int
    max_bytes: int
    mean_packets: float
    """Over time."""
    mean_bytes: float


@dataclass(frozen=True, slots=True)
class RecirculationStatistics(Measured):
    """A recirculation port of a switch, by number."""

    port: int
    offered: int
    passes: int
    """Packets that went through it."""
    queue_drops: int
    down_drops: int
    packets: int
    """That wait now."""
    max_packets: int
    mean_packets: float
    """Over time."""
    utilisation: float
    """The share of the time in which it sent."""


@dataclass(frozen=True, slots=True)
class NodeCounters(Measured):
    """Packet counters of a node."""

    received: int
    sent: int
    packet_ins: int
    unconnected_drops: int
    """Sent to a port without a link."""
    queue_drops: int
    down_drops: int
    accepted: int
    """By a host."""
    not_addressed: int
    unwanted: int
    """To multicast groups, or from sources, that a host has not joined."""
    corrupted: int
    interface_drops: int
    unresolved_drops: int = 0
    """Of a host, to a next hop whose MAC address nobody told."""


@dataclass(frozen=True, slots=True)
class GroupStatistics(Measured):
    """The packets of a multicast group that a modelled host received. Times are None if nothing arrived."""

    received: int
    """Datagrams, intact, while the host was a member."""
    duplicates: int
    """Those among them that were copies of earlier ones."""
    out_of_order: int
    """Those among them that arrived after a later one of the same stream."""
    first_ps: int | None
    last_ps: int | None
    longest_gap_ps: int
    """Between two that followed each other without a leave in between."""
    unwanted: int
    """Packets that arrived while the host was no member, or from sources that it did not want."""
    last_unwanted_ps: int | None


@dataclass(frozen=True, slots=True)
class PortStatistics(Measured):
    """A network interface that is a switch's port, since it was added."""

    rx_packets: int
    rx_bytes: int
    rx_overrun_drops: int
    """The switch was too slow."""
    rx_oversized_drops: int
    """Joined segments, or longer than any wire carries."""
    rx_errors: int
    rx_checksums_completed: int
    """Packets whose transport checksum the kernel had left to hardware."""
    tx_packets: int
    tx_bytes: int
    tx_drops: int
    """The interface took no more, or was down."""


@dataclass(frozen=True, slots=True)
class InterfaceCounters(Measured):
    """The kernel's counters of a network interface."""

    rx_packets: int
    rx_bytes: int
    rx_drops: int
    tx_packets: int
    tx_bytes: int
    tx_drops: int


@dataclass(frozen=True, slots=True)
class Load(Measured):
    """Packets that were sent from an interface for a while."""

    sent: int
    refused: int
    """By the interface."""
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class WallStatistics(Measured):
    """Lateness against the wall clock, frames and commands."""

    events: int
    max_lateness_ps: int
    total_lateness_ps: int
    """Divided by ``events``: the mean."""
    frames_in: int
    """From network interfaces."""
    frames_out: int
    max_command_ps: int
    """The longest that a call from outside, or a step of one, held up packets."""
    max_command_cpu_ps: int
    """The most processor time that one took."""
    notifications_lost: int


@dataclass(frozen=True, slots=True)
class SentLog(Measured):
    """A flow's packets in the order of sending: columns of whole numbers."""

    sequence: array[int]
    sent_ps: array[int]


@dataclass(frozen=True, slots=True)
class ReceivedLog(Measured):
    """The packets of a flow that arrived, in the order of arrival: columns of integers. Of pings, the replies at their source."""

    sequence: array[int]
    sent_ps: array[int]
    received_ps: array[int]


@dataclass(frozen=True, slots=True)
class GoodputLog(Measured):
    """What arrived over a TCP connection: a column of whole numbers, one per bin of time."""

    new_bytes: array[int]


@dataclass(frozen=True, slots=True)
class WindowLog(Measured):
    """The window of a TCP connection's client, one row per change: columns of whole numbers."""

    time_ps: array[int]
    cwnd_bytes: array[int]
    ssthresh_bytes: array[int]
    flight_bytes: array[int]
    srtt_ps: array[int]


def whole_numbers(data: bytes) -> array[int]:
    """Return a column of the native core, 64-bit little-endian numbers, as an array."""
    numbers = array("q", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


@dataclass(frozen=True, slots=True)
class ProgramMeasurement(Measured):
    """A program at a packet size, beside hand-written Rust of the same function."""

    program: str
    size_bytes: int
    packets_per_s: float
    handwritten_packets_per_s: float
    ratio: float
    instructions_per_packet: float | None
    handwritten_instructions_per_packet: float | None
    outputs_per_packet: float
    spread: float


@dataclass(frozen=True, slots=True)
class SimulationMeasurement(Measured):
    """A simulation; ``processor_s`` is the median of several runs."""

    scenario: str
    switches: int
    packets: int
    packet_hops: int
    drops: int
    events: int
    simulated_s: float
    goodput_bps: float | None
    processor_s: float


@dataclass(frozen=True, slots=True)
class TableMeasurement(Measured):
    """A table on its own."""

    table: str
    entries: int
    inserts_per_s: float
    deletes_per_s: float
    longest_update_us: float
    p999_update_us: float
    lookup_ns: float
    bytes_per_entry: float
