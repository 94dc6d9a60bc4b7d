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
    sent: list[int]
    lost: list[int]
    duplicated: list[int]
    reordered: list[int]
    outage_ms: list[float]
    latency_ms: list[float | None]
    jitter_ms: list[float | None]
    delivered_curve: list[int]
    goodput_bytes: list[int]
    goodput_curve: list[int]
    timeouts: list[int | None]
    retransmitted_bytes: list[int | None]
    completion_ms: list[float | None]


class PortRow(TypedDict):
    """The INT reports' statistics of an output port in an interval."""

    switch: str
    to: str
    interval: Literal["before", "failed", "repaired"]
    packets: int
    latency_mean_us: float
    latency_max_us: int
    queue_mean: float
    queue_max: int


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
    links_used: list[bool]
    """By link of the topology; of the undisturbed run, as the next four."""
    entries: list[int]
    join_updates: float | None
    """Of a join to a multicast group, the P4Runtime updates and the switches that they go to, a batch each; means, or None."""
    join_switches: float | None
    promised_ms: list[float | None]
    """Under a failure: for how long each reception of probes may be out (0: it loses nothing), if anybody promises anything."""
    unprotected: list[int]
    """Places of flows among :meth:`holdfast.compare.traffic_file.TrafficFile.flows`."""
    telemetry: str
    """With ``--telemetry int`` a :class:`TelemetryRow`, as JSON."""
    mean_lateness_ms: float
    """Of a live run, as the next two."""
    max_lateness_ms: float
    sender_lateness_ms: float
    repeated: int


class Row(RunRow, total=False):
    """With its point."""

    mechanism: str
    failure: str
    network_seed: int
    attempt: int | None
    origin: str | None


SKIPPED: Final[RunRow] = {"skipped": True}  # type: ignore[typeddict-item]
"""The row of a failure that nothing could notice."""
