"""Decodes telemetry reports v2.0 (P4.org, 2020-10-08) and the INT headers v2.1 of the packets in them.

What arrives may be anything: :class:`MalformedReport` is the only exception, and says which rule is broken. Values that a node
does not know (all ones) are None. Nothing is kept here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Literal, NamedTuple

from holdfast.apps.telemetry.program import INT_DSCP, INT_UDP_PORT

REASONS = (
    "short group header",
    "group version",
    "short report header",
    "report length",
    "metadata length",
    "inner packet",
    "TLV length",
)
"""What can be wrong, for counters."""


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
    """A 5-tuple; addresses are packed. Ports of other protocols than TCP and UDP are zero."""

    version: int
    source: bytes
    destination: bytes
    protocol: int
    source_port: int
    destination_port: int

    def __str__(self) -> str:
        ends = (str(ip_address(self.source)), str(ip_address(self.destination)))
        if not (self.source_port or self.destination_port):
            return f"{ends[0]} > {ends[1]} protocol {self.protocol}"
        name = {6: "tcp", 17: "udp"}.get(self.protocol, str(self.protocol))
        brackets = "[{}]:{}" if self.version == 6 else "{}:{}"
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
    """What is below the whole hops: domain-specific metadata of the source."""


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
        """The nodes that the packet has passed, the first one first, as far as this report tells."""
        if self.embedded is None or not self.embedded.hops:
            return (self.hop,)
        return (*reversed(self.embedded.hops), self.hop)


_GROUP = struct.Struct(">II")
_INDIVIDUAL = struct.Struct(">BBBB")
_MAIN = struct.Struct(">HHHH")
_SHIM_AND_INT = struct.Struct(">BBHIHHHH")

# By bit, the most significant first: format, and names with their all-ones values.
_FIELDS: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = (
    ("I", (("node_id", 0xFFFFFFFF),)),
    ("HH", (("ingress_port", 0xFFFF), ("egress_port", 0xFFFF))),
    ("I", (("latency", 0xFFFFFFFF),)),
    ("I", (("queue", 0xFFFFFFFF),)),
    ("Q", (("ingress_time", (1 << 64) - 1),)),
    ("Q", (("egress_time", (1 << 64) - 1),)),
    ("II", (("ingress_interface", 0xFFFFFFFF), ("egress_interface", 0xFFFFFFFF))),
    ("I", (("tx_utilisation", 0xFFFFFFFF),)),
    ("I", (("buffer", 0xFFFFFFFF),)),
)


class _Layout:
    """The metadata of one node for a bitmap."""

    __slots__ = ("_buffer", "_fields", "_queue", "size", "struct")

    def __init__(self, bits: int, bytes_per_hop: int | None) -> None:
        form, self._fields = ">", []
        self._queue = self._buffer = -1
        number = 0
        for bit, (part, names) in enumerate(_FIELDS):
            if not bits >> 15 - bit & 1:
                continue
            form += part
            for name, unknown in names:
                if name == "queue":
                    self._queue = number
                elif name == "buffer":
                    self._buffer = number
                else:
                    self._fields.append((Hop._fields.index(name), number, unknown))
                number += 1
        size = struct.calcsize(form)
        # Reserved and domain-specific instructions, and the complement.
        if bytes_per_hop is not None:
            form += f"{bytes_per_hop - size}x"
            size = bytes_per_hop
        self.struct, self.size = struct.Struct(form), size

    def hop(self, raw: tuple[int, ...]) -> Hop:
        values: list[int | None] = [None] * 13
        for target, number, unknown in self._fields:
            value = raw[number]
            if value != unknown:
                values[target] = value
        if self._queue >= 0 and (value := raw[self._queue]) != 0xFFFFFFFF:
            values[4], values[5] = value >> 24, value & 0xFFFFFF
        if self._buffer >= 0 and (value := raw[self._buffer]) != 0xFFFFFFFF:
            values[11], values[12] = value >> 24, value & 0xFFFFFF
        return Hop._make(values)


@lru_cache(maxsize=1024)
def _layout(bits: int, bytes_per_hop: int | None = None) -> _Layout | None:
    """None if a hop has less room than the bitmap asks for. A few bitmaps are in use; that others come cannot fill the memory."""
    if bytes_per_hop is not None and bytes_per_hop < _Layout(bits, None).size:
        return None
    return _Layout(bits, bytes_per_hop)


@lru_cache(maxsize=1024)
def _report_words(bits: int) -> int:
    """Words of a report's baseline metadata: bits 4 to 6 are two each."""
    return bits.bit_count() + (bits & 0x0E00).bit_count()


def decode(data: bytes, *, dscp: int = INT_DSCP, dscp_mask: int = 0x3F, udp_port: int = INT_UDP_PORT) -> list[Report]:
    """The individual reports of a UDP payload.

    ``dscp`` (by its mask) and ``udp_port`` are the domain's indicators. Reports of other types than INT (IOAM) are passed over.
    Raises :class:`MalformedReport`.
    """
    if len(data) < 8:
        raise MalformedReport("short group header")
    first, node_id = _GROUP.unpack_from(data)
    if first >> 28 != 2:
        raise MalformedReport("group version")
    hw_id, sequence = first >> 22 & 0x3F, first & 0x3FFFFF
    reports = []
    at = 8
    while True:
        if len(data) - at < 4:
            raise MalformedReport("short report header")
        types, length, md_words, flags = _INDIVIDUAL.unpack_from(data, at)
        at += 4
        end = len(data) if length == 0xFF else at + 4 * length
        if end > len(data):
            raise MalformedReport("report length")
        rep_type, in_type = types >> 4, types & 0xF
        bits, domain_id, hop = 0, 0, Hop(node_id)
        drop_reason = drop_queue = None
        inner = at
        if rep_type == 1:
            if end - at < 8:
                raise MalformedReport("report length")
            bits, domain_id, ds_bits, _ = _MAIN.unpack_from(data, at)
            words = _report_words(bits)
            inner = at + 8 + 4 * md_words
            if inner > end or words > md_words or (words < md_words and ds_bits == 0):
                raise MalformedReport("metadata length")
            # Bit 0 is reserved here, and one word like every reserved bit.
            layout = _layout(bits)
            assert layout is not None
            if bits & ~0x8001:
                hop = layout.hop(layout.struct.unpack_from(data, at + 8))
            hop = hop._replace(node_id=node_id)
            if bits & 1:
                word = int.from_bytes(data[at + 4 + 4 * words : at + 8 + 4 * words], "big")
                drop_queue, drop_reason = word >> 24, word >> 16 & 0xFF
        if rep_type in (0, 1):
            flow, ttl, embedded = _inner(data, inner, end, in_type, bool(flags & 0x20), dscp, dscp_mask, udp_port)
            reports.append(
                Report(
                    node_id,
                    hw_id,
                    sequence,
                    bool(flags & 0x80),
                    bool(flags & 0x40),
                    bool(flags & 0x20),
                    bool(flags & 0x10),
                    hop,
                    drop_reason,
                    drop_queue,
                    domain_id,
                    flow,
                    ttl,
                    embedded,
                )
            )
        at = end
        if at == len(data):
            return reports


_Inner = tuple[FlowKey | None, int, Embedded | None]


def _inner(
    data: bytes, at: int, end: int, in_type: int, tracked: bool, dscp: int, dscp_mask: int, udp_port: int
) -> _Inner:
    """What is known of the packet that a report is about."""
    if in_type == 1:
        return _tlv(data, at, end, tracked, dscp, dscp_mask, udp_port)
    if in_type == 3:
        if end - at < 14:
            raise MalformedReport("inner packet")
        ethertype = data[at + 12] << 8 | data[at + 13]
        at += 14
        if ethertype == 0x8100 and end - at >= 4:
            ethertype = data[at + 2] << 8 | data[at + 3]
            at += 4
        in_type = {0x0800: 4, 0x86DD: 5}.get(ethertype, 0)
    if in_type == 4:
        if end - at < 20 or data[at] >> 4 != 4 or (header := (data[at] & 0xF) * 4) < 20 or end - at < header:
            raise MalformedReport("inner packet")
        traffic_class, ttl, protocol = data[at + 1], data[at + 8], data[at + 9]
        source, destination = data[at + 12 : at + 16], data[at + 16 : at + 20]
        whole = (data[at + 6] & 0x3F) == 0 and data[at + 7] == 0
        at += header
    elif in_type == 5:
        if end - at < 40 or data[at] >> 4 != 6:
            raise MalformedReport("inner packet")
        traffic_class, ttl, protocol = (data[at] & 0xF) << 4 | data[at + 1] >> 4, data[at + 7], data[at + 6]
        source, destination = data[at + 8 : at + 24], data[at + 24 : at + 40]
        whole = True
        at += 40
    else:
        return None, 0, None
    version = 4 if in_type == 4 else 6
    embedded = None
    source_port = destination_port = 0
    if whole and protocol in (6, 17) and end - at >= 4:
        source_port, destination_port = data[at] << 8 | data[at + 1], data[at + 2] << 8 | data[at + 3]
        behind = at + (20 if protocol == 6 else 8)
        by_port = protocol == 17 and destination_port == udp_port
        # Without the tracked flag nothing is embedded (section 3.4 of the report specification).
        if tracked and end - behind >= 4 and (by_port or (traffic_class >> 2 & dscp_mask) == dscp & dscp_mask):
            npt, original = data[behind] >> 2 & 3, data[behind + 2] << 8 | data[behind + 3]
            embedded, behind = _embedded(data, behind, end)
            if npt == 1:
                destination_port = original
            elif npt == 2:
                protocol = original & 0xFF
                source_port = destination_port = 0
                if protocol in (6, 17) and end - behind >= 4:
                    source_port = data[behind] << 8 | data[behind + 1]
                    destination_port = data[behind + 2] << 8 | data[behind + 3]
    return FlowKey(version, source, destination, protocol, source_port, destination_port), ttl, embedded


def _embedded(data: bytes, at: int, end: int) -> tuple[Embedded | None, int]:
    """The INT headers at a place, None for those of an unknown type or version; and the place behind them."""
    behind = at + 4 + 4 * data[at + 1]
    kind = data[at] >> 4
    if kind not in (1, 3) or data[at + 1] < 3 or end - at < 16 or data[at + 4] >> 4 != 2:
        return None, min(behind, end)
    _, _, _, first, instructions, domain_id, _, _ = _SHIM_AND_INT.unpack_from(data, at)
    cut = behind > end
    behind = min(behind, end)
    hops: tuple[Hop, ...] = ()
    rest = data[at + 16 : behind]
    hop_bytes = (first >> 8 & 0x1F) * 4
    if kind == 1 and hop_bytes:
        layout = _layout(instructions, hop_bytes)
        if layout is not None:
            whole = len(rest) // hop_bytes * hop_bytes
            hops = tuple(layout.hop(raw) for raw in layout.struct.iter_unpack(rest[:whole]))
            rest = rest[whole:]
    embedded = Embedded(
        "md" if kind == 1 else "mx",
        instructions,
        domain_id,
        first & 0xFF if kind == 1 else 0,
        bool(first >> 27 & 1),
        kind == 1 and bool(first >> 26 & 1),
        kind == 1 and bool(first >> 25 & 1),
        hops,
        cut,
        rest,
    )
    return embedded, behind


def _tlv(data: bytes, at: int, end: int, tracked: bool, dscp: int, dscp_mask: int, udp_port: int) -> _Inner:
    """The first packet among the TLVs."""
    found: _Inner = (None, 0, None)
    while at < end:
        if end - at < 4 or (behind := at + 4 + 4 * data[at + 1]) > end:
            raise MalformedReport("TLV length")
        kind = data[at] >> 4
        if kind in (1, 2, 3) and found[0] is None:
            found = _inner(data, at + 4, behind, kind + 2, tracked, dscp, dscp_mask, udp_port)
        at = behind
    return found
