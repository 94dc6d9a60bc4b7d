"""The row of a run, as it is kept in files: the instruments fill it in, and a comparison reads it. Nothing is computed here.

Lists of ``sent`` to ``jitter_ms`` have a number for each reception of probes (:func:`holdfast.compare.flows.of_kind`: UDP, then
pings), those of goodput for each connection without an end, and ``completion_ms`` for each transfer.
"""

from __future__ import annotations

from typing import Final, Literal, TypedDict

CurveColumn = Literal["delivered_curve", "goodput_curve"]


class Measures(TypedDict):
    """The measures of :mod:`holdfast.compare.measures`."""

    wire_bytes: int
    """Bytes on all links between switches, both ways, with the physical layer's overhead."""
    sent: list[int]
    """Packets."""
    lost: list[int]
    """Packets that never arrived."""
    duplicated: list[int]
    """Further copies that arrived."""
    reordered: list[int]
    """Packets that arrived behind a later one (RFC 4737)."""
    outage_ms: list[float]
    """The longest time without an arrival, beyond the interval."""
    latency_ms: list[float | None]
    """Mean of the packets sent between failure and repair; None: none arrived."""
    jitter_ms: list[float | None]
    """Mean absolute difference of the latencies of consecutive packets of them."""
    delivered_curve: list[int]
    """Packets that arrived, by interval of the run, all together."""
    goodput_bytes: list[int]
    """Bytes that arrived in order, from the failure to the end."""
    goodput_curve: list[int]
    """Bytes that arrived in order, by interval of the run, all together."""
    timeouts: list[int | None]
    """Of the sender's retransmission timer."""
    retransmitted_bytes: list[int | None]
    """Bytes sent again."""
    completion_ms: list[float | None]
    """From the beginning of a transfer to its last byte; None: it was not finished."""


class PortRow(TypedDict):
    """The INT reports' statistics of an output port in an interval."""

    switch: str
    """The switch that reports."""
    to: str
    """The node at the other end of the port's link."""
    interval: Literal["before", "failed", "repaired"]
    """That in which packets left the port: before the failure, while it lasts, or after the repair."""
    packets: int
    """Packets that were reported."""
    latency_mean_us: float
    """Mean time in the switch."""
    latency_max_us: int
    """The longest time in the switch."""
    queue_mean: float
    """Mean number of packets in front of the one that reports."""
    queue_max: int
    """The largest such number."""


class TelemetryRow(TypedDict):
    """The INT reports' statistics of a run."""

    reports: int
    reports_lost: int
    """By their sequence numbers."""
    malformed: int
    hops_exceeded: int
    """Packets that had no room for a hop, as of the links' MTU."""
    mtu_exceeded: int
    ports: list[PortRow]


class RunRow(Measures, total=False):
    """The whole row. The row of a failure that nothing noticed is ``skipped``, and has nothing else."""

    skipped: bool
    """True: the failure hit nothing in use, and there are no other numbers."""
    links_used: list[bool]
    """By link of the topology, whether it carried anything; of the undisturbed run, as the next four."""
    entries: list[int]
    """Of each switch, what the controller wrote: table entries, replicas of multicast groups, members of action profiles."""
    join_updates: float | None
    """Of a join to a multicast group, the mean number of P4Runtime updates; None without such groups."""
    join_switches: float | None
    """The mean number of switches that these go to, a batch each; None likewise."""
    promised_ms: list[float | None]
    """Under a failure: for how long each reception of probes may be out (0: it loses nothing), if anybody promises anything."""
    unprotected: list[int]
    """Places of flows among :meth:`holdfast.compare.traffic_file.TrafficFile.flows`."""
    telemetry: str
    """With ``--telemetry int`` a :class:`TelemetryRow`, as JSON."""
    mean_lateness_ms: float
    """Of a live run: by how much the network's clock was late on average."""
    max_lateness_ms: float
    """Of a live run: by how much the network's clock was late at most."""
    sender_lateness_ms: float
    """Of a live run: by how much a sender of probes was late at most."""
    repeated: int
    """Of a live run: how often it was made again, as the machine held it up."""


class Row(RunRow, total=False):
    """With its point."""

    mechanism: str
    failure: str
    network_seed: int
    attempt: int | None
    origin: str | None


SKIPPED: Final[RunRow] = {"skipped": True}  # type: ignore[typeddict-item]
"""The row of a failure that nothing could notice."""
