"""Discovery in bytes, written from RFC 2516's appendix B, RFC 4638 and TR-101."""

from __future__ import annotations

import pytest

from holdfast.subscribers import pppoe
from holdfast.subscribers.admission import Admission
from holdfast.subscribers.plane import Line
from holdfast.subscribers.tests.worlds import MAC, seeded

HOST = bytes.fromhex("0050da42d7df")
LINE = Line(1, 100, 7)
COOKIE = 28


def frame(code: int, tags: str, destination: bytes = MAC, session: int = 0) -> bytes:
    body = bytes.fromhex(tags)
    return (
        destination
        + HOST
        + b"\x88\x63\x11"
        + bytes((code,))
        + session.to_bytes(2, "big")
        + len(body).to_bytes(2, "big")
        + body
    )


def concentrator(services: tuple[str, ...] = (), payload: int = 1492) -> pppoe.Concentrator:
    return pppoe.Concentrator(MAC, "Go RedBack", services, payload, pppoe.Cookies(b"k" * 32, seeded(1)))


def offer(padi: str, **how: object) -> bytes:
    made = concentrator(**how).offer(pppoe.read_discovery(frame(9, padi, pppoe.BROADCAST)), LINE, 100.0)  # type: ignore[arg-type]
    assert made is not None
    return made


def tags(packet: bytes) -> list[tuple[int, bytes]]:
    assert packet[12:16] in (b"\x88\x63\x11\x07", b"\x88\x63\x11\x65")
    assert int.from_bytes(packet[18:20], "big") == len(packet) - 20
    found, at = [], 20
    while at < len(packet):
        size = int.from_bytes(packet[at + 2 : at + 4], "big")
        found.append((int.from_bytes(packet[at : at + 2], "big"), packet[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def test_the_rfcs_padi_gets_its_pado() -> None:
    made = offer("01010000")
    assert made[:12] == HOST + MAC
    assert made[16:18] == b"\0\0"
    name, service, cookie = tags(made)
    assert (name, service) == ((0x0102, b"Go RedBack"), (0x0101, b""))  # appendix B
    assert cookie[0] == 0x0104
    assert len(cookie[1]) == COOKIE


def test_host_uniq_and_relay_session_id_come_back_unmodified() -> None:
    made = tags(offer("0101 0000 0103 0004 00010203 0110 0002 aabb 0999 0001 ff"))
    assert (0x0103, bytes.fromhex("00010203")) in made
    assert (0x0110, bytes.fromhex("aabb")) in made
    assert all(kind != 0x0999 for kind, _ in made)  # unknown tags are ignored


def test_services() -> None:
    assert [value for kind, value in tags(offer("0101 0002 6161", services=("aa", "bb"))) if kind == 0x0101] == [
        b"aa",
        b"bb",
    ]
    assert [value for kind, value in tags(offer("0101 0000", services=("aa", "bb"))) if kind == 0x0101] == [
        b"",
        b"aa",
        b"bb",
    ]
    strange = pppoe.read_discovery(frame(9, "0101 0002 6363", pppoe.BROADCAST))
    assert concentrator(services=("aa",)).offer(strange, LINE, 1) is None  # MUST NOT answer: section 5.2


@pytest.mark.parametrize(
    ("tag", "ours", "expected"),
    [
        ("05dc", 1500, b"\x05\xdc"),
        ("2328", 1500, b"\x05\xdc"),
        ("05dc", 1492, None),
        ("05d4", 1500, None),
        ("0100", 1500, None),
    ],
)
def test_max_payload_is_the_smaller_of_both(tag: str, ours: int, expected: bytes | None) -> None:
    made = dict(tags(offer(f"0101 0000 0120 0002 {tag}", payload=ours)))
    assert made.get(0x0120) == expected


def padr(cookie: bytes | None, more: str = "", service: str = "0101 0000") -> pppoe.Discovery:
    with_cookie = "" if cookie is None else f"0104 {len(cookie):04x} {cookie.hex()}"
    return pppoe.read_discovery(frame(0x19, f"{service} {with_cookie} {more}"))


def test_a_session_is_confirmed_to_who_brings_the_cookie() -> None:
    ac = concentrator(payload=1500)
    cookie = dict(tags(offer("01010000")))[0x0104]
    access = "0105 0012 00000de9 01 05 6473 6c2d31 02 05 6c 6f 6f 70 31"
    request = ac.request(padr(cookie, f"0103 0001 55 0120 0002 05dc {access}"), LINE, 105.0)
    assert isinstance(request, pppoe.SetupRequest)
    assert (request.circuit_id, request.remote_id, request.max_payload) == (b"dsl-1", b"loop1", 1500)
    confirmation = ac.confirm(request, 0x1234)
    assert confirmation[15:18] == bytes.fromhex("65 12 34")
    assert tags(confirmation) == [(0x0101, b""), (0x0103, b"\x55"), (0x0120, b"\x05\xdc")]
    refusal = ac.refuse(request, pppoe.Tag.AC_SYSTEM_ERROR, "full")
    assert refusal[16:18] == b"\0\0"
    assert tags(refusal)[0] == (0x0202, b"full")


@pytest.mark.parametrize("why", ["none", "short", "forged", "other line", "other host", "old"])
def test_a_cookie_that_is_not_theirs_gets_no_answer(why: str) -> None:
    ac = concentrator()
    cookie: bytes | None = dict(tags(offer("01010000")))[0x0104]
    assert cookie is not None
    line, now, packet = LINE, 105.0, padr(cookie)
    if why == "none":
        packet = padr(None)
    elif why == "short":
        packet = padr(cookie[:-1])
    elif why == "other line":
        line = Line(1, 100, 8)
    elif why == "other host":
        packet = pppoe.Discovery(MAC, b"\2" * 6, 0x19, 0, packet.tags)
    elif why == "old":
        now = 125.0
    if why != "forged":
        with pytest.raises(pppoe.MalformedError, match="cookie"):
            ac.request(packet, line, now)
        return
    for bit in range(COOKIE * 8):
        forged = bytearray(cookie)
        forged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(pppoe.MalformedError, match="cookie"):
            ac.request(padr(bytes(forged)), LINE, 105.0)


def test_an_unknown_service_is_refused_with_its_error() -> None:
    ac = concentrator(services=("aa",))
    cookie = dict(tags(offer("01010000")))[0x0104]
    answer = ac.request(padr(cookie, "0103 0001 55", "0101 0002 6363"), LINE, 105.0)
    assert isinstance(answer, bytes)
    assert tags(answer) == [(0x0201, b"no such service"), (0x0101, b"cc"), (0x0103, b"\x55")]


def test_padt_both_ways() -> None:
    assert concentrator().terminate(HOST, 0x0102) == HOST + MAC + bytes.fromhex("8863 11a7 0102 0000")
    assert pppoe.read_discovery(frame(0xA7, "", session=5)).session_id == 5


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (frame(9, "01010000")[:19], "short"),
        (frame(9, "01010000")[:23], "length"),
        (frame(9, "010100"), "tag"),
        (frame(9, "01010005 00"), "tag"),
        (frame(9, "01010000").replace(b"\x63\x11", b"\x63\x12"), "version"),
    ],
)
def test_malformed_frames_have_a_reason(data: bytes, why: str) -> None:
    with pytest.raises(pppoe.MalformedError, match=why):
        pppoe.read_discovery(data)


@pytest.mark.parametrize("text", ["", "01010000 01010000"])
def test_exactly_one_service_name(text: str) -> None:
    with pytest.raises(pppoe.MalformedError, match="service-name"):
        concentrator().offer(pppoe.read_discovery(frame(9, text, pppoe.BROADCAST)), LINE, 1)


def test_tags_end_at_the_end_of_list_and_padding_is_nothing() -> None:
    packet = pppoe.read_discovery(frame(9, "01010000 00000000 0103000155") + bytes(20))
    assert packet.tags == ((0x0101, b""),)


def test_session_frames() -> None:
    made = pppoe.session_frame(HOST, MAC, 0x0102, 0xC021, b"\x01\x01\x00\x04")
    assert made == HOST + MAC + bytes.fromhex("8864 1100 0102 0006 c021 01010004")
    assert pppoe.read_session(made + bytes(30)) == (HOST, MAC, 0x0102, 0xC021, b"\x01\x01\x00\x04")
    for cut in range(len(made)):
        with pytest.raises(pppoe.MalformedError):
            pppoe.read_session(made[:cut])
    with pytest.raises(pppoe.MalformedError, match="protocol"):
        pppoe.read_session(made.replace(b"\xc0\x21", b"\xc0\x20"))


def test_loud_lines_leave_room_for_quiet_ones() -> None:
    admission = Admission(per_line=1000, in_all=100)
    loud = [Line(1, 1, number) for number in range(10)]
    taken = 0
    for second in range(3):
        taken = sum(admission.admits(loud[number % 10], second) is None for number in range(5000))
    assert taken == 50
    for number in range(50):
        assert admission.admits(Line(2, 1, number), 2) is None
    assert admission.admits(Line(2, 1, 99), 2) == "rate"
    assert Admission(2, 100).admits(LINE, 1) is None
    few = Admission(1000, 10**9, lines=10)
    assert [few.admits(Line(1, 2, number), 5) for number in range(20)] == [None] * 10 + ["lines"] * 10
