"""The collector: the values it keeps of reports, its limits, and that no packet ends it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6

from holdfast.apps.telemetry.collector import Collector, HopKey, Limits
from holdfast.apps.telemetry.reports import REASONS, MalformedReport, decode

TRACKED, DROPPED, CONGESTED = 0x20, 0x80, 0x40


def report(
    sequence: int = 0, *, node: int = 1, hw_id: int = 0, flags: int = TRACKED, bits: int = 0, metadata: bytes = b"",
    inner: bytes = b"", in_type: int | None = None, rep_type: int = 1, version: int = 2, length: int | None = None,
    md_words: int | None = None,
) -> bytes:  # fmt: skip
    """Return a UDP payload with one telemetry report of these fields."""
    main = struct.pack(">HHHH", bits, 0, 0, 0) if rep_type == 1 else b""
    if in_type is None:
        in_type = 4 if inner else 0
    words = (len(main) + len(metadata) + len(inner)) // 4
    individual = struct.pack(
        ">BBBB",
        rep_type << 4 | in_type,
        min(words, 255) if length is None else length,
        len(metadata) // 4 if md_words is None else md_words,
        flags,
    )
    return struct.pack(">II", version << 28 | hw_id << 22 | sequence, node) + individual + main + metadata + inner


def flow(port: int = 1, *, ttl: int = 60, dscp: int = 0, behind: bytes = b"") -> bytes:
    packet = IP(src="10.0.0.1", dst="10.0.0.2", ttl=ttl, tos=dscp << 2) / TCP(sport=port, dport=80) / behind
    return bytes(packet)


def stack(*hops: tuple[int, int], flags: int = 0, shim_words: int | None = None) -> bytes:
    """Return an INT-MD shim, header and stack of (node id, latency) pairs, the last node first."""
    body = b"".join(struct.pack(">II", *hop) for hop in hops)
    length = 3 + len(body) // 4 if shim_words is None else shim_words
    return struct.pack(">BBHIHHHH", 0x10, length, 0, 2 << 28 | flags | 2 << 8 | 8, 0xA000, 0, 0, 0) + body


def md(sequence: int, *hops: tuple[int, int], own: tuple[int, int], port: int = 1, **more: int) -> bytes:
    """Return the report of a sink about a packet with a stack of ``hops``, and ``own``: its node id and latency."""
    inner = flow(port, dscp=0x17, behind=stack(*hops, **more))
    return report(sequence, node=own[0], bits=0x2000, metadata=struct.pack(">I", own[1]), inner=inner)


def taken(*payloads: bytes, **limits: int) -> Collector:
    collector = Collector(Limits(**limits))
    for number, payload in enumerate(payloads):
        collector.take(number * 1000, payload)
    return collector


def test_paths_and_latencies() -> None:
    collector = taken(
        md(0, (2, 20), (1, 10), own=(3, 30)),
        md(1, (2, 25), (1, 10), own=(3, 30)),
        md(2, (4, 1), (1, 10), own=(3, 30)),
    )
    counts = collector.counts()
    assert (counts.packets, counts.reports, counts.reports_lost) == (3, 3, 0)
    ((key, state),) = collector.flows().items()
    assert str(key) == "10.0.0.1:1 > 10.0.0.2:80 tcp"
    assert (state.reports, state.path, state.path_changes) == (3, [1, 4, 3], 1)
    assert (state.latency_last, state.latency_max, state.first_ns, state.last_ns) == (41, 65, 0, 2000)
    hop = collector.hops()[HopKey(2, None)]
    assert (hop.packets, hop.latency_sum, hop.latency_max, hop.latency_last) == (2, 45, 25, 25)
    assert hop.latency_buckets[4] == 1  # above 10, up to 20
    assert hop.latency_buckets[5] == 1


def test_flags_of_the_headers() -> None:
    collector = taken(md(0, (1, 1), own=(3, 1), flags=1 << 26), md(1, (1, 1), own=(3, 1), flags=1 << 25))
    (state,) = collector.flows().values()
    assert (state.hops_exceeded, state.mtu_exceeded) == (1, 1)


def test_nodes_that_report_one_by_one() -> None:
    """INT-XD: the TTL orders them, in whatever order their reports arrive."""

    def xd(node: int, ttl: int) -> bytes:
        return report(node=node, bits=0x2000, metadata=struct.pack(">I", 5), inner=flow(ttl=ttl))

    collector = taken(xd(2, 62), xd(3, 61), xd(1, 63))
    (state,) = collector.flows().values()
    assert (state.path, state.path_changes) == ([1, 2, 3], 0)
    for payload in (xd(1, 63), xd(4, 62), xd(3, 61)):
        collector.take(0, payload)
    (state,) = collector.flows().values()
    assert (state.path, state.path_changes) == ([1, 4, 3], 1)


def test_drops_and_congestion() -> None:
    drop = struct.pack(">HHI", 7, 0xFFFF, 0xFF << 24 | 29 << 16)
    queue = struct.pack(">HHI", 7, 9, 1 << 24 | 200)
    collector = taken(
        report(0, flags=DROPPED, bits=0x4001, metadata=drop, inner=flow()),
        report(1, flags=CONGESTED, bits=0x5000, metadata=queue, inner=flow(2)),
    )
    assert collector.drops() == {(1, 29): 1}
    assert [state.drops for state in collector.flows().values()] == [1, 0]
    hop = collector.hops()[HopKey(1, 9)]
    assert (hop.queue_last, hop.queue_max, hop.congested, hop.packets) == (200, 200, 1, 1)
    assert set(collector.hops()) == {HopKey(1, 9)}


def test_lost_reports() -> None:
    collector = taken(*(report(number) for number in (0, 1, 5, 6)))
    assert collector.counts().reports_lost == 3
    for _ in range(5):
        collector.take(0, report(3))  # late, not lost; and those that repeat it were never lost
    assert collector.counts().reports_lost == 2
    collector = taken(report((1 << 22) - 1), report(0), report(1, hw_id=1))
    assert collector.counts().reports_lost == 0


@pytest.mark.parametrize("packets", [1, 2])
def test_forged_numbers_lose_no_reports(packets: int) -> None:
    """Whoever sends in a node's name, with a number of its own, makes no report of the node look lost."""
    collector = taken(*(report(number) for number in (0, 1, 5, 6)))
    for round_ in range(5):
        collector.take(0, report(1 << 20))
        if packets == 2:
            collector.take(0, report((1 << 20) + 1))
        for number in range(7 + 3 * round_, 10 + 3 * round_):
            collector.take(0, report(number))
    assert collector.counts().reports_lost == 3


def test_a_switch_that_starts_again_has_lost_no_reports() -> None:
    collector = taken(*(report(number) for number in range(10_000)))
    for number in range(100):
        collector.take(0, report(number))
    assert collector.counts().reports_lost == 0


def test_flows_are_bounded() -> None:
    """The one that was reported longest ago goes."""
    collector = taken(*(report(inner=flow(port)) for port in (1, 2, 3, 1, 4)), flows=3)
    assert [key.source_port for key in collector.flows()] == [3, 1, 4]
    assert collector.counts().flows_evicted == 1


def test_hops_and_reporters_are_bounded() -> None:
    collector = taken(*(md(0, (node, 1), own=(node, 1)) for node in range(10)), hops=4, reporters=3)
    assert (len(collector.hops()), collector.counts().hops_refused) == (4, 12)
    assert (len(collector.reporters()), collector.counts().reporters_refused) == (3, 7)


GOOD = md(0, (2, 20), (1, 10), own=(3, 30))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "short group header"),
        (GOOD[:7], "short group header"),
        (GOOD[:8], "short report header"),
        (GOOD[:11], "short report header"),
        (report(version=1), "group version"),
        (report(length=200), "report length"),
        (report(length=1), "report length"),
        (report(bits=0x2000, metadata=bytes(4), md_words=3), "metadata length"),
        (report(bits=0x2000), "metadata length"),
        (report(metadata=bytes(4)), "metadata length"),
        (report(inner=flow()[:16]), "inner packet"),
        (report(inner=b"\x65" + flow()[1:]), "inner packet"),
        (report(inner=b"\x4f" + flow()[1:]), "inner packet"),
        (report(inner=bytes(IPv6())[:36], in_type=5), "inner packet"),
        (report(inner=bytes(12), in_type=3), "inner packet"),
        (report(inner=b"\x20\x09\0\0", in_type=1), "TLV length"),
        (GOOD + b"\0", "short report header"),
    ],
)
def test_what_is_malformed(payload: bytes, reason: str) -> None:
    assert reason in REASONS
    with pytest.raises(MalformedReport, match=reason):
        decode(payload)
    collector = taken(payload, GOOD)
    assert collector.malformed() == {reason: 1}
    assert collector.counts().reports == 1


def test_other_report_types_and_inner_types() -> None:
    assert decode(report(rep_type=2, length=2, inner=bytes(8))) == []
    (inner_only,) = decode(report(rep_type=0, inner=flow()))
    assert inner_only.flow is not None
    ethernet = bytes(12) + b"\x08\x00" + flow() + bytes(2)
    (of_frame,) = decode(report(in_type=3, inner=ethernet))
    assert of_frame.flow == inner_only.flow
    tagged = bytes(12) + b"\x81\x00\x00\x05\x08\x00" + flow() + bytes(2)
    assert decode(report(in_type=3, inner=tagged))[0].flow == inner_only.flow
    tlv = b"\x00\x01\0\0" + bytes(4) + b"\x20\x0a\0\0" + flow()
    assert decode(report(in_type=1, inner=tlv))[0].flow == inner_only.flow
    (nothing,) = decode(report(in_type=0))
    assert nothing.flow is None
    udp = bytes(IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=1, dport=2))
    assert str(decode(report(in_type=5, inner=udp))[0].flow) == "[2001:db8::1]:1 > [2001:db8::2]:2 udp"


def test_a_stack_that_is_cut() -> None:
    """The hops that are there are used; a shim may announce more."""
    inner = flow(dscp=0x17, behind=stack((2, 20), (1, 10), shim_words=3 + 8))
    (found,) = decode(report(inner=inner))
    assert found.embedded is not None
    assert found.embedded.cut
    assert [hop.node_id for hop in found.embedded.hops] == [2, 1]


def test_untracked_packets_embed_nothing() -> None:
    (found,) = decode(report(flags=DROPPED, inner=flow(dscp=0x17, behind=stack((1, 1)))))
    assert found.embedded is None


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes(payload: bytes) -> None:
    collector = taken(payload, b"\x20" + payload, GOOD[:8] + payload)
    assert collector.counts().packets == 3


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_damaged_reports(data: st.DataObject) -> None:
    """Cut, with bytes changed, or with something behind: decoded or malformed, nothing else."""
    payload = bytearray(
        data.draw(st.sampled_from([GOOD, report(inner=flow()), report(in_type=1, inner=b"\x20\x0a\0\0" + flow())]))
    )
    for _ in range(data.draw(st.integers(0, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    payload += data.draw(st.binary(max_size=20))
    collector = taken(bytes(payload[: data.draw(st.integers(0, len(payload)))]))
    assert collector.counts().packets == 1
    assert sum(collector.malformed().values()) <= 1
