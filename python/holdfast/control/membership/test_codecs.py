"""IGMP and MLD against bytes written from the RFCs, against Scapy, and with bytes that are no messages."""

from __future__ import annotations

import logging
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.control.membership import frames, igmp, mld
from holdfast.control.membership.family import IGMP, MLD
from holdfast.control.membership.messages import (
    Malformed,
    MalformedError,
    Query,
    Record,
    RecordKind,
    Report,
    checksum,
    decoded,
    encoded,
    is_ssm,
    stays_on_link,
)

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

V4, V6 = IPv4Address, IPv6Address
S_PS = 1_000_000_000_000


def ipv4(
    message: str, *, source: str = "0a000001", destination: str = "e0000016", ttl: str = "01", alert: bool = True
) -> bytes:
    """Return an IPv4 packet with an IGMP message, given in hexadecimal digits."""
    data = bytes.fromhex(message)
    length = 20 + 4 * alert
    head = bytes.fromhex(f"{0x40 + length // 4:02x}c0{length + len(data):04x}00000000{ttl}020000{source}{destination}")
    head += b"\x94\4\0\0" * alert
    total = checksum(head)
    return head[:10] + total.to_bytes(2, "big") + head[12:] + data


# ---- Bytes written from the RFCs ----


def test_a_general_query_of_igmpv3_byte_by_byte() -> None:
    query = Query(3, None, 10 * S_PS, robustness=2, interval_s=125)
    # RFC 3376, 4.1; the sum by hand: 0x1164 + 0x027d = 0x13e1.
    message = bytes.fromhex("1164ec1e00000000027d0000")
    assert igmp.query_message(query) == message
    assert igmp.parse_message(message) == query
    packet = igmp.query_packet(query, V4("10.0.0.254"))
    # Version 4, 24 bytes of header, Internetwork Control, length 36, TTL 1, protocol 2; then the option of RFC 2113.
    assert packet[:10] == bytes.fromhex("46c00024000000000102")
    assert packet[12:24] == bytes.fromhex("0a0000fee000000194040000")
    assert packet[24:] == message
    assert igmp.parse(packet) == (V4("10.0.0.254"), query)


def test_a_report_of_igmpv3_byte_by_byte() -> None:
    # RFC 3376, 4.2: one record TO_EX({}) of 239.1.2.3; by hand 0x2200 + 1 + 0x0400 + 0xef01 + 0x0203, carried 0x1706.
    packet = ipv4("2200e8f90000000104000000ef010203")
    expected = Report(3, (Record(RecordKind.CHANGE_TO_EXCLUDE, V4("239.1.2.3")),))
    assert igmp.parse(packet) == (V4("10.0.0.1"), expected)


def test_auxiliary_data_and_unknown_records_are_passed_over() -> None:
    # An unknown kind 9 with one word of auxiliary data and one source, then ALLOW {10.0.0.9} of 232.0.0.1.
    body = "00000002" + "09010001ef010203" + "0a000009" + "deadbeef" + "05000001e8000001" + "0a000009"
    total = checksum(bytes.fromhex("22000000" + body))
    _, report = igmp.parse(ipv4(f"2200{total:04x}{body}"))
    assert report == Report(3, (Record(RecordKind.ALLOW_NEW_SOURCES, V4("232.0.0.1"), (V4("10.0.0.9"),)),))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # RFC 1112: version 1, type 2, unused, checksum.
        ("1200fefcef010203", Report(1, (Record(RecordKind.MODE_IS_EXCLUDE, V4("239.1.2.3")),))),
        # RFC 2236: report and leave.
        ("1600f8faef010203", Report(2, (Record(RecordKind.MODE_IS_EXCLUDE, V4("239.1.2.3")),))),
        ("1700f7faef010203", Report(2, (Record(RecordKind.CHANGE_TO_INCLUDE, V4("239.1.2.3")),))),
        # Queries: version 1 without a time; version 2 with 10 s; specific, 1 s.
        ("1100eeff00000000", Query(1, None, 10 * S_PS)),
        ("1164ee9b00000000", Query(2, None, 10 * S_PS)),
        ("110afef0ef010203", Query(2, V4("239.1.2.3"), S_PS)),
    ],
)
def test_older_messages(message: str, expected: object) -> None:
    data = bytearray.fromhex(message)
    data[2:4] = b"\0\0"
    data[2:4] = checksum(bytes(data)).to_bytes(2, "big")
    assert igmp.parse_message(bytes(data)) == expected


def test_a_query_of_mldv2_byte_by_byte() -> None:
    query = Query(2, V6("ff1e::5"), S_PS, (V6("2001:db8::9"),), True, 2, 125)
    packet = mld.query_packet(query, V6("fe80::1"))
    # RFC 8200: 60 bytes behind the header, Hop-by-Hop next, hop limit 1.
    assert packet[:8] == bytes.fromhex("6000000000340001")
    assert packet[24:40] == V6("ff1e::5").packed
    # ICMPv6 next, 8 bytes, Router Alert 0 (RFC 2711, 2.1), PadN of two bytes.
    assert packet[40:48] == bytes.fromhex("3a00050200000100")
    body = packet[48:]
    assert body[:2] == b"\x82\0"
    assert body[4:8] == bytes.fromhex("03e80000")
    assert body[8:24] == V6("ff1e::5").packed
    assert body[24:28] == bytes.fromhex("0a7d0001")  # S with QRV 2, QQIC 125, one source
    assert body[28:] == V6("2001:db8::9").packed
    assert mld.parse(packet) == (V6("fe80::1"), query)


def test_codes_with_a_floating_form() -> None:
    # RFC 3376, 4.1.1: (mant | 0x10) << (exp + 3); RFC 3810, 5.1.3: (mant | 0x1000) << (exp + 3).
    assert [decoded(code, 4) for code in (0, 127, 128, 0x8F, 0x90, 0xFF)] == [0, 127, 128, 248, 256, 31744]
    assert [decoded(code, 12) for code in (0x7FFF, 0x8000, 0xFFFF)] == [32767, 32768, 8387584]


@given(st.integers(0, 1 << 24), st.sampled_from([(4, 8), (12, 16)]))
def test_the_code_of_a_value_is_the_largest_that_is_not_above(value: int, shape: tuple[int, int]) -> None:
    bits, width = shape
    code = encoded(value, bits)
    assert 0 <= code < 1 << width
    assert decoded(code, bits) <= value
    assert code == (1 << width) - 1 or decoded(code + 1, bits) > value


def test_ranges() -> None:
    assert [is_ssm(V4(it)) for it in ("231.255.255.255", "232.0.0.0", "232.255.255.255", "233.0.0.0")] == [
        False,
        True,
        True,
        False,
    ]
    assert [is_ssm(V6(it)) for it in ("ff3e::1", "ff3e:0:1::1", "ff3e:1::1", "ff1e::1")] == [True, True, False, False]
    assert [stays_on_link(V4(it)) for it in ("224.0.0.251", "224.0.1.1")] == [True, False]
    assert [stays_on_link(V6(it)) for it in ("ff02::fb", "ff12::1", "ff05::2", "ff0e::1")] == [True, True, False, False]


# ---- Malformed ----


def _reason(packet: bytes) -> Malformed:
    with pytest.raises(MalformedError) as caught:
        igmp.parse(packet)
    return caught.value.reason


def test_reasons() -> None:
    good = "2200e8f90000000104000000ef010203"
    assert _reason(ipv4(good, ttl="02")) == Malformed.TTL
    assert _reason(ipv4(good, alert=False)) == Malformed.NO_ROUTER_ALERT
    assert _reason(ipv4("2200e8fa0000000104000000ef010203")) == Malformed.CHECKSUM
    assert _reason(ipv4(good, source="e0000001")) == Malformed.SOURCE
    assert _reason(ipv4(good)[:-1]) == Malformed.TRUNCATED
    assert _reason(ipv4("2200dcfc00000002" + "04000000ef010203")) in (Malformed.CHECKSUM, Malformed.TRUNCATED)
    nine = bytes.fromhex("116400000000000000")
    nine = nine[:2] + checksum(nine).to_bytes(2, "big") + nine[4:]
    assert _reason(ipv4(nine.hex())) == Malformed.QUERY_LENGTH
    assert _reason(ipv4("1300ecff00000000")) == Malformed.UNKNOWN_TYPE
    assert _reason(
        ipv4("16008ffa5f010203"[:4] + f"{checksum(bytes.fromhex('160000005f010203')):04x}" + "5f010203")
    ) == (Malformed.GROUP)


def test_an_mld_message_is_from_the_link() -> None:
    good = bytearray(mld.query_packet(Query(2, None, S_PS, robustness=2, interval_s=125), V6("fe80::1")))

    def reason(at: int, value: int, fix: int = 0) -> Malformed:
        packet = bytearray(good)
        packet[at] = value
        total = int.from_bytes(packet[50:52], "big") + fix
        packet[50:52] = total.to_bytes(2, "big")
        with pytest.raises(MalformedError) as caught:
            mld.parse(bytes(packet))
        return caught.value.reason

    assert reason(7, 2) == Malformed.TTL
    assert reason(8, 0xFD, fix=0x100) == Malformed.SOURCE
    assert reason(42, 4) == Malformed.NO_ROUTER_ALERT


@given(st.binary(max_size=120))
def test_any_bytes_are_refused_with_a_reason_or_read(data: bytes) -> None:
    for parse in (igmp.parse, mld.parse, igmp.parse_message, mld.parse_message, frames.parse):
        try:
            parse(data)
        except MalformedError as error:
            assert error.reason in Malformed


ADDRESSES_V4 = st.integers(0x0A000001, 0x0A0000FF).map(V4)
GROUPS_V4 = st.integers(0xE0000100, 0xEFFFFFFF).map(V4)
ADDRESSES_V6 = st.integers(0, (1 << 64) - 1).map(lambda low: V6((0x20010DB8 << 96) + low))
GROUPS_V6 = st.integers(0, (1 << 112) - 1).map(lambda low: V6((0xFF1E << 112) + low))


@st.composite
def queries(draw: st.DrawFn) -> tuple[V4 | V6, Query]:
    """Generate a query of the latest version and a source address that is valid for it."""
    v4 = draw(st.booleans())
    group = draw(st.none() | (GROUPS_V4 if v4 else GROUPS_V6))
    sources = draw(st.lists(ADDRESSES_V4 if v4 else ADDRESSES_V6, max_size=4)) if group is not None else []
    unit = (IGMP if v4 else MLD).response_unit_ps
    code = draw(st.integers(0, 0xFF if v4 else 0xFFFF))
    query = Query(
        3 if v4 else 2,
        group,
        decoded(code, 4 if v4 else 12) * unit,
        tuple(sources),
        draw(st.booleans()),
        draw(st.integers(0, 7)),
        decoded(draw(st.integers(0, 255)), 4),
    )
    return (V4("10.0.0.254") if v4 else V6("fe80::fe")), query


@given(queries(), st.data())
def test_queries_are_read_as_they_are_written_and_no_cut_is_read(
    given: tuple[V4 | V6, Query], data: st.DataObject
) -> None:
    source, query = given
    frame = frames.query(query, bytes.fromhex("020000000001"), source)
    assert frames.parse(frame) == (source, query)
    cut = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(MalformedError):
        frames.parse(frame[:cut])
    bit = data.draw(st.integers(14 * 8, len(frame) * 8 - 1))
    flipped = bytearray(frame)
    flipped[bit // 8] ^= 0x80 >> bit % 8
    try:
        changed = frames.parse(bytes(flipped))
    except MalformedError:
        return
    # Nothing but header fields that no checksum covers (IPv6's class, flow label, options) goes unnoticed.
    assert changed == (source, query)


# ---- Scapy ----


def _scapy_report(kind: int, group: str, sources: list[str]) -> bytes:
    from scapy.layers.igmp import IGMPv3_MR, IGMPv3_MR_Group
    from scapy.layers.inet import IP, IPOption_Router_Alert

    record = IGMPv3_MR_Group(rtype=kind, maddr=group, srcaddrs=sources)
    packet = IP(src="10.0.0.7", dst="224.0.0.22", ttl=1, options=[IPOption_Router_Alert()])
    return bytes(packet / IGMPv3_MR(records=[record]))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(RecordKind)), GROUPS_V4, st.lists(ADDRESSES_V4, max_size=3))
def test_scapys_igmpv3_reports(kind: RecordKind, group: V4, sources: list[V4]) -> None:
    source, report = igmp.parse(_scapy_report(int(kind), str(group), [str(it) for it in sources]))
    assert source == V4("10.0.0.7")
    assert report == Report(3, (Record(kind, group, tuple(sources)),))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(RecordKind)), GROUPS_V6, st.lists(ADDRESSES_V6, max_size=3))
def test_scapys_mldv2_reports(kind: RecordKind, group: V6, sources: list[V6]) -> None:
    from scapy.layers.inet6 import ICMPv6MLDMultAddrRec, ICMPv6MLReport2, IPv6, IPv6ExtHdrHopByHop, RouterAlert

    record = ICMPv6MLDMultAddrRec(rtype=int(kind), dst=str(group), sources=[str(it) for it in sources])
    hop_by_hop = IPv6ExtHdrHopByHop(options=[RouterAlert()])
    packet = bytes(IPv6(src="fe80::7", dst="ff02::16", hlim=1) / hop_by_hop / ICMPv6MLReport2(records=[record]))
    source, report = mld.parse(packet)
    assert source == V6("fe80::7")
    assert report == Report(2, (Record(kind, group, tuple(sources)),))


def test_scapy_reads_our_queries() -> None:
    from scapy.layers.igmp import IGMPv3_MQ
    from scapy.layers.inet import IP
    from scapy.layers.inet6 import ICMPv6MLQuery2, IPv6

    query = Query(3, V4("239.1.2.3"), S_PS, (V4("10.0.0.9"),), True, 2, 125)
    read = IP(igmp.query_packet(query, V4("10.0.0.254")))
    assert (read.ttl, read.dst, read.options[0].option) == (1, "239.1.2.3", 20)
    inner = read[IGMPv3_MQ]
    assert (inner.type, inner.mrcode) == (0x11, 10)
    assert (inner.gaddr, inner.s, inner.qrv, inner.qqic, inner.srcaddrs) == ("239.1.2.3", 1, 2, 125, ["10.0.0.9"])
    packet = mld.query_packet(Query(2, V6("ff1e::5"), S_PS, (V6("2001:db8::9"),), False, 2, 125), V6("fe80::1"))
    six = IPv6(packet)
    found = six[ICMPv6MLQuery2]
    assert (six.hlim, found.mladdr, found.mrd, found.S, found.QRV, found.QQIC) == (1, "ff1e::5", 1000, 0, 2, 125)
    assert found.sources == ["2001:db8::9"]
    kept = found.cksum
    del six[ICMPv6MLQuery2].cksum
    assert IPv6(bytes(six))[ICMPv6MLQuery2].cksum == kept


def test_group_macs() -> None:
    # RFC 1112, 6.4: the low 23 bits; RFC 2464, 7: the low 32 bits.
    assert frames.group_mac(V4("239.129.2.3")) == bytes.fromhex("01005e010203")
    assert frames.group_mac(V6("ff1e::1:2:3")) == bytes.fromhex("333300020003")
