"""Telemetry reports v2.0 (P4.org, 2020-10-08) and the INT headers v2.1 of the packets in them, as values.

``crates/wire`` decodes them. A payload may be anything: :class:`MalformedReport` is the only exception, and says which rule is
broken. Values that a node does not know (all ones) are None. Nothing is kept here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import Literal, NamedTuple

from holdfast import _core
from holdfast.apps.telemetry.program import INT_DSCP, INT_UDP_PORT

REASONS = _core.REPORT_RULES
"""The possible errors, for counters."""


class MalformedReport(ValueError):
    """A report that breaks a rule of the format; ``reason`` is one of :data:`REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Hop(NamedTuple):
    """A node's metadata; None is what was not asked for, or is unknown. Times and latencies are the node's own units."""

    node_id: int | None = None
    ingress_port: int | None = None
    egress_port: int | None = None
    latency: int | None = None
    queue_id: int | None = None
    queue_occupancy: int | None = None
    ingress_time: int | None = None
    egress_time: int | None = None
    ingress_interface: int | None = None
    egress_interface: int | None = None
    tx_utilisation: int | None = None
    buffer_id: int | None = None
    buffer_occupancy: int | None = None


class FlowKey(NamedTuple):
    """A 5-tuple. Ports of other protocols than TCP and UDP are zero."""

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    protocol: int
    source_port: int
    destination_port: int

    def __str__(self) -> str:
        ends = (str(self.source), str(self.destination))
        if not (self.source_port or self.destination_port):
            return f"{ends[0]} > {ends[1]} protocol {self.protocol}"
        name = {6: "tcp", 17: "udp"}.get(self.protocol, str(self.protocol))
        brackets = "[{}]:{}" if self.source.version == 6 else "{}:{}"
        ports = (self.source_port, self.destination_port)
        return " > ".join(brackets.format(*end) for end in zip(ends, ports, strict=True)) + f" {name}"


@dataclass(frozen=True, slots=True)
class Embedded:
    """The INT headers of the packet that a report is about. ``hops``: the last node first; none of INT-MX."""

    mode: Literal["md", "mx"]
    instructions: int
    domain_id: int
    remaining_hops: int
    discard: bool
    hops_exceeded: bool
    mtu_exceeded: bool
    hops: tuple[Hop, ...]
    cut: bool
    """The report holds less than the shim announces."""
    source_only: bytes
    """The bytes below the whole hops: domain-specific metadata of the source."""


@dataclass(frozen=True, slots=True)
class Report:
    """An individual report. ``hop`` is the metadata of the node that reports."""

    node_id: int
    hw_id: int
    sequence: int
    dropped: bool
    congested: bool
    tracked: bool
    intermediate: bool
    hop: Hop
    drop_reason: int | None
    drop_queue: int | None
    domain_id: int
    flow: FlowKey | None
    ttl: int
    embedded: Embedded | None

    def path(self) -> tuple[Hop, ...]:
        """Return the nodes that the packet has passed, the first one first, as far as this report tells."""
        if self.embedded is None or not self.embedded.hops:
            return (self.hop,)
        return (*reversed(self.embedded.hops), self.hop)


def decode(data: bytes, *, dscp: int = INT_DSCP, dscp_mask: int = 0x3F, udp_port: int = INT_UDP_PORT) -> list[Report]:
    """Return the individual reports in a UDP payload. ``dscp`` (by its mask) and ``udp_port`` indicate INT in the domain.

    Reports of other types than INT (IOAM) are ignored. Raise :class:`MalformedReport` for a payload that breaks the specification.
    """
    try:
        found = _core.decode_reports(data, dscp, dscp_mask, udp_port)
    except _core.HoldfastError as error:
        raise MalformedReport(str(error)) from None
    reports = []
    for group, flags, hop, drop, domain_id, (flow, ttl, stack) in found:
        key = None if flow is None else FlowKey._make(flow)
        embedded = None
        if stack is not None:
            embedded = replace(Embedded(*stack), hops=tuple(map(Hop._make, stack[7])))
        reports.append(Report(*group, *flags, Hop._make(hop), *drop, domain_id, key, ttl, embedded))
    return reports
