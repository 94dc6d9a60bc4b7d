"""The decoder against bytes that are written here from the specification, for any values of the fields."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apps.telemetry.conftest import md_header, mx_header, shim
from holdfast.apps.telemetry.reports import Hop, decode

FIELDS = (
    ("I", ("node_id",)), ("HH", ("ingress_port", "egress_port")), ("I", ("latency",)), ("BT", ("queue_id", "queue_occupancy")),
    ("Q", ("ingress_time",)), ("Q", ("egress_time",)), ("II", ("ingress_interface", "egress_interface")),
    ("I", ("tx_utilisation",)),
    ("BT", ("buffer_id", "buffer_occupancy")),
)  # fmt: skip
"""By bit, the most significant first (INT section 4.7): widths B 8, H 16, T 24, I 32, Q 64, and the names of :class:`Hop`."""

BYTES = {"B": 1, "H": 2, "T": 3, "I": 4, "Q": 8}


def number(draw: st.DrawFn, size: int) -> int:
    """Draw a number of ``size`` bytes; sometimes it has all bits set, which means "unknown"."""
    return draw(st.one_of(st.integers(0, 256**size - 1), st.just(256**size - 1)))


def metadata(draw: st.DrawFn, bits: int) -> tuple[bytes, dict[str, int | None]]:
    """Draw the metadata for the instructions ``bits`` (0 to 8); return its bytes and the values by name."""
    data, values = b"", {}
    for bit, (form, names) in enumerate(FIELDS):
        if bits & 0x8000 >> bit:
            numbers = [number(draw, BYTES[letter]) for letter in form]
            parts = [value.to_bytes(BYTES[letter], "big") for value, letter in zip(numbers, form, strict=True)]
            # Queue and buffer are unknown only as a whole.
            whole = b"".join(parts)
            for name, value, part in zip(names, numbers, parts, strict=True):
                unknown = whole if form == "BT" else part
                values[name] = None if unknown == b"\xff" * len(unknown) else value
            data += whole
    return data, values


@st.composite
def reports(draw: st.DrawFn) -> tuple[bytes, dict[str, Any]]:
    """Draw a report with a packet; return its bytes and the values in it by name."""
    v6, tcp, mode = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from([None, "md", "mx"]))
    flags = draw(st.integers(0, 7)) << 5 | 0x20 if mode else draw(st.integers(0, 15)) << 4
    ports = draw(st.tuples(st.integers(0, 65535), st.integers(0, 50000)))
    ends = [draw(st.binary(min_size=16 if v6 else 4, max_size=16 if v6 else 4)) for _ in "sd"]
    ttl, protocol, dscp = draw(st.integers(0, 255)), 6 if tcp else 17, 0x17 if mode else 0
    if v6:
        packet = struct.pack(">IHBB", 6 << 28 | dscp << 22, 0, protocol, ttl) + b"".join(ends)
    else:
        options = draw(st.integers(0, 10))
        packet = struct.pack(">BBHHHBBH", 0x45 + options, dscp << 2, 0, 0, 0, ttl, protocol, 0)
        packet += b"".join(ends) + bytes(4 * options)
    packet += struct.pack(">HH", *ports) + bytes(16 if tcp else 4)
    stack: list[dict[str, int | None]] = []
    instructions = draw(st.integers(0, 0x1FF)) << 7 if mode else 0
    if mode == "md":
        hops = [metadata(draw, instructions) for _ in range(draw(st.integers(0, 6)))]
        size = len(metadata(draw, instructions)[0])
        padding = draw(st.integers(0, 2)) * 4
        if not size + padding:
            hops = []
        stack = [values for _, values in hops]
        body = b"".join(data + bytes(padding) for data, _ in hops)
        ml = (size + padding) // 4
        packet += shim(1, 0, 3 + len(body) // 4, 0) + md_header(instructions, ml, 9, domain=5) + body
    elif mode == "mx":
        packet += shim(3, 0, 3, 0) + mx_header(instructions, domain=5)
    bits = draw(st.integers(0, 0xFF)) << 7
    data, own = metadata(draw, bits)
    reason = draw(st.one_of(st.none(), st.integers(0, 255)))
    if reason is not None:
        bits, data = bits | 1, data + bytes((3, reason, 0, 0))
    kind = draw(st.sampled_from(["ip", "ethernet", "tagged"]))
    if kind != "ip":
        tag = b"\x81\x00\x00\x07" if kind == "tagged" else b""
        packet = bytes(12) + tag + (b"\x86\xdd" if v6 else b"\x08\x00") + packet
        packet += bytes(-len(packet) % 4)
    in_type = (5 if v6 else 4) if kind == "ip" else 3
    length = (8 + len(data) + len(packet)) // 4
    report = struct.pack(">BBBB", 1 << 4 | in_type, min(length, 255), len(data) // 4, flags)
    report += struct.pack(">HHHH", bits, 4, 0, 0) + data + packet
    expected = {
        "flags": tuple(bool(flags & mask) for mask in (0x80, 0x40, 0x20, 0x10)),
        "own": own,
        "reason": reason,
        "flow": (*map(ip_address, ends), protocol, *ports),
        "ttl": ttl,
        "mode": mode,
        "stack": stack,
    }
    return report, expected


@settings(max_examples=100, deadline=None)
@given(st.lists(reports(), min_size=1, max_size=3), st.integers(0, 63), st.integers(0, (1 << 22) - 1), st.data())
def test_every_field(made: list[tuple[bytes, dict[str, Any]]], hw_id: int, sequence: int, data: st.DataObject) -> None:
    node_id = data.draw(st.integers(0, (1 << 32) - 1))
    payload = struct.pack(">II", 2 << 28 | hw_id << 22 | sequence, node_id) + b"".join(report for report, _ in made)
    # A length of 255 words or more is all that is left.
    made = made[: next((i + 1 for i, (report, _) in enumerate(made) if report[1] == 255), len(made))]
    found = decode(payload)
    assert len(found) == len(made)
    for it, (_, expected) in zip(found, made, strict=True):
        assert (it.node_id, it.hw_id, it.sequence, it.domain_id) == (node_id, hw_id, sequence, 4)
        assert (it.dropped, it.congested, it.tracked, it.intermediate) == expected["flags"]
        assert it.hop == Hop(**expected["own"] | {"node_id": node_id})
        assert (it.drop_reason, it.drop_queue) == (expected["reason"], None if expected["reason"] is None else 3)
        assert it.flow is not None
        assert (tuple(it.flow), it.ttl) == (expected["flow"], expected["ttl"])
        if expected["mode"] is None:
            assert it.embedded is None
        else:
            assert it.embedded is not None
            assert (it.embedded.mode, it.embedded.domain_id) == (expected["mode"], 5)
            assert it.embedded.hops == tuple(Hop(**values) for values in expected["stack"])
