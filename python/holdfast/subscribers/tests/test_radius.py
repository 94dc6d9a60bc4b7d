"""The RADIUS client and the dynamic authorization server against packets made here, by hand, from the RFCs."""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Network
from pathlib import Path

import pytest

from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.authentication import Credentials, Question, Verdict
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.dynamic_authorization import DynamicAuthorization
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line, Rates, Session, Usage
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.radius_server import (
    SECRET,
    Attributes,
    Server,
    authorization_request,
    decode,
    signed,
    vendor,
)
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded

LINE = Line(3, 200, 17)
MAC = bytes.fromhex("020000000102")


class World:
    def __init__(self, servers: int = 1, queue: SqliteStore | None = None, **settings: object) -> None:
        self.clock = VirtualClock()
        self.servers = [Server() for _ in range(servers)]
        self.settings = Radius.model_validate(
            {
                "servers": [{"host": f"127.0.0.{each + 1}", "secret": SECRET} for each in range(servers)],
                "nas_identifier": "bng-1",
                "nas_address": "192.168.1.16",
                **settings,
            }
        )
        self.client = RadiusClient(
            self.settings,
            self.clock,
            self.transmit,
            random=lambda size: bytes.fromhex("0f403f9473978057bd83d5cb98f4227a")[:size],
            wall=lambda: 1000 + self.clock.now(),
            queue=queue,
        )
        self.verdicts: list[Verdict] = []
        self.asked = 0

    def transmit(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        answer = self.servers[server](data)
        if answer is not None:
            self.clock.call_later(0.001, lambda: self.client.received(server, accounting, channel, answer))

    def ask(self, credentials: Credentials | None = None) -> None:
        """Start a login of a new session; its verdict is appended to ``verdicts``."""
        credentials = credentials or Credentials(b"nemo", password=b"arctangent")
        question = Question(credentials, 7 + self.asked, "abc", LINE, MAC, b"dsl-1", b"home", b"internet")
        self.asked += 1
        self.client.authenticate(question, self.verdicts.append)

    def record(self, kind: Kind, **values: object) -> Record:
        session = Session(
            7,
            LINE,
            MAC,
            1,
            ipv4=IPv4Address("100.64.0.2"),
            ipv6_prefix=IPv6Network("2001:db8:1::/64"),
            delegated=IPv6Network("2001:db8:8000::/56"),
        )
        return Record(kind, "abc", b"nemo", session, int(1000 + self.clock.now()), **values)  # type: ignore[arg-type]


def test_a_password_is_hidden_as_in_the_rfcs_example() -> None:
    world = World()
    world.ask()
    request = world.servers[0].seen[0]
    attributes = decode(request)
    assert request[0] == 1
    assert attributes[0][0] == 80  # first: CVE-2024-3596
    # RFC 2865, section 7.1: this authenticator, secret and password.
    assert dict(attributes)[2] == bytes.fromhex("0dbe708d93d413ce3196e43f782a0aee")
    plain = request.replace(attributes[0][1], bytes(16))
    assert attributes[0][1] == hmac.digest(SECRET.encode(), plain, "md5")
    expected = {
        1: b"nemo", 4: bytes((192, 168, 1, 16)), 5: b"\0\0\0\7", 6: b"\0\0\0\2", 7: b"\0\0\0\1", 31: b"02-00-00-00-01-02",
        32: b"bng-1", 44: b"abc", 61: b"\0\0\0\x0f", 87: b"3:200.17",
    }  # fmt: skip
    assert expected.items() <= dict(attributes).items()
    assert vendor(3561, 1, b"dsl-1") in attributes
    assert vendor(3561, 2, b"home") in attributes


def test_chap_goes_with_its_challenge() -> None:
    world = World()
    world.ask(Credentials(b"flopsy", identifier=22, challenge=bytes(range(16)), response=bytes(range(16, 32))))
    attributes = dict(decode(world.servers[0].seen[0]))
    assert attributes[3] == b"\x16" + bytes(range(16, 32))
    assert attributes[60] == bytes(range(16))
    assert 2 not in attributes


def test_an_accept_gives_what_it_says() -> None:
    world = World()
    accept = [
        (8, bytes((10, 1, 2, 3))), (25, b"class-1"), (25, b"class-2"), (27, struct.pack("!I", 3600)), (28, struct.pack("!I", 600)),
        (85, struct.pack("!I", 120)), (88, b"gold"), (97, b"\0\x40" + bytes.fromhex("20010db8000a0001")),
        (123, b"\0\x38" + bytes.fromhex("20010db8000b01")), vendor(311, 28, bytes((9, 9, 9, 9))),
        vendor(14122, 7, struct.pack("!I", 10_000_000)), vendor(14122, 8, struct.pack("!I", 50_000_000)), (18, b"welcome"),
    ]  # fmt: skip
    world.servers[0].reply = lambda request: signed(request, 2, accept)
    world.ask()
    world.clock.run(1)
    assert world.verdicts == [
        Verdict(
            True, "welcome", IPv4Address("10.1.2.3"), "gold", IPv6Network("2001:db8:a:1::/64"), IPv6Network("2001:db8:b:100::/56"),
            (IPv4Address("9.9.9.9"),), Rates(10_000_000, 50_000_000), 3600, 600, 120, (b"class-1", b"class-2"),
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong", ["secret", "unsigned", "code", "identifier", "signature", "cut", "proxy-state", "length"]
)
def test_a_forged_answer_is_no_answer(wrong: str) -> None:
    world = World(tries=1)

    def forge(request: bytes) -> bytes:
        if wrong == "secret":
            return signed(request, 2, [], b"another-secret")
        if wrong == "unsigned":  # a forgery by BlastRADIUS has no Message-Authenticator
            return signed(request, 2, [], sign=False)
        if wrong == "code":
            return signed(request, 5, [])
        if wrong == "identifier":
            return signed(request[:1] + bytes((request[1] ^ 1,)) + request[2:], 2, [])
        if wrong == "proxy-state":
            return signed(request, 2, [(33, b"collision")])
        good = signed(request, 2, [(18, b"hi")])
        if wrong == "cut":
            return good[:-1]
        if wrong == "length":
            return good[:2] + b"\xff\xff" + good[4:]
        return good[:22] + bytes(16) + good[38:]

    world.servers[0].reply = forge
    world.ask()
    world.clock.run(1)
    assert world.verdicts == []
    world.clock.run(5)
    assert [each.accepted for each in world.verdicts] == [False]
    assert world.verdicts[0].message == {
        "unsigned": "no answer of an authentication server is signed",
    }.get(wrong, "no authentication server answers")
    assert sum(world.client.events[each] for each in ("invalid", "late", "unsigned")) == 1


@pytest.mark.parametrize(
    "attributes", [[], [(24, b"s")], [(18, b"code?"), (24, bytes(253)), (27, b"\0\0\0\x1e"), (76, b"\0\0\0\1")]]
)
def test_a_challenge_is_a_refusal_at_once(attributes: Attributes) -> None:
    """Check that a challenge is treated as an Access-Reject (RFC 2865, section 4.4), and that its server counts as alive."""
    world = World(2)
    for server in world.servers:
        server.reply = lambda request: signed(request, 11, attributes)
    world.ask()
    world.clock.run(60)
    assert [each.accepted for each in world.verdicts] == [False]
    assert world.verdicts[0].message == ("code?" if len(attributes) > 1 else "the server asks for more than a password")
    assert (world.client.events["challenged"], world.client.events["dead"], world.client.events["sent"]) == (1, 0, 1)
    assert world.client.dead_until == [None, None]


def test_a_server_that_does_not_sign_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    world = World(2, timeout_s=1, tries=2)
    first, second = world.servers
    first.reply = lambda request: signed(request, 2, [], sign=False)
    for _ in range(3):
        world.ask()
    world.clock.run(20)
    assert [each.accepted for each in world.verdicts] == [True] * 3
    assert second.seen
    (sentence,) = [each.getMessage() for each in caplog.records]
    assert sentence.startswith("RADIUS server 127.0.0.1 answers without Message-Authenticator")
    assert world.client.events["unsigned"] == sum(each[0] == 1 for each in first.seen)
    assert world.client.dead_until[0] is not None
    assert world.client.dead_until[1] is None
    waived = World(require_message_authenticator=False)
    waived.servers[0].reply = first.reply
    waived.ask()
    waived.clock.run(1)
    assert [each.accepted for each in waived.verdicts] == [True]


def test_an_answer_with_an_attribute_beyond_its_end_is_none() -> None:
    world = World(tries=1)

    def overrun(request: bytes) -> bytes:
        body = bytes((80, 18)) + bytes(16) + bytes((18, 40)) + b"hi"
        head = struct.pack("!BBH", 2, request[1], 20 + len(body))
        body = body[:2] + hmac.digest(SECRET.encode(), head + request[4:20] + body, "md5") + body[18:]
        return head + hashlib.md5(head + request[4:20] + body + SECRET.encode()).digest() + body

    world.servers[0].reply = overrun
    world.ask()
    world.clock.run(10)
    assert [each.accepted for each in world.verdicts] == [False]
    assert world.client.events["invalid"] == 1


def test_a_request_is_repeated_as_it_was() -> None:
    world = World()
    server = world.servers[0]
    server.alive = False
    world.ask()
    world.clock.run(5)
    server.alive = True
    world.clock.run(10)
    assert len(server.seen) == 3
    assert len(set(server.seen)) == 1  # RFC 5080, section 2.2.1
    assert [each.accepted for each in world.verdicts] == [True]


def test_a_dead_server_is_left_out_and_comes_back() -> None:
    world = World(2, timeout_s=1, tries=2, dead_s=30)
    first, _ = world.servers
    first.alive = False
    for number in range(5):
        world.ask(Credentials(b"user%d" % number, password=b"x"))
    world.clock.run(4)
    assert len(world.verdicts) == 5
    assert world.client.dead_until[0] is not None
    before = len(first.seen)
    for _ in range(20):
        world.ask()
    world.clock.run(1)
    assert len(world.verdicts) == 25
    assert len(first.seen) == before
    first.alive = True
    world.clock.run(40)
    for _ in range(3):
        world.ask()
        world.clock.run(0.01)
    assert len(first.seen) == before + 3
    assert world.client.dead_until[0] is None


def test_all_requests_of_a_storm_are_answered() -> None:
    world = World()
    for _ in range(5000):  # more than there are identifiers
        world.ask()
    world.clock.run(10)
    assert len(world.verdicts) == 5000
    assert not world.client.servers.under_way()
    assert len(world.client.logins) == 0
    assert world.client.events["repeated"] == 0


def test_accounting_counts_beyond_32_bits() -> None:
    world = World()
    usage = Usage(1, (3 << 32) + 5, 2, (1 << 32) + 6)
    world.client.account(world.record(Kind.START))
    world.client.account(
        world.record(Kind.STOP, usage=usage, duration_s=60, cause=Cause.USER_REQUEST, classes=(b"c1",))
    )
    world.clock.run(1)
    start, stop = world.servers[0].seen
    for each in (start, stop):
        assert each[0] == 4
        assert each[4:20] == hashlib.md5(each[:4] + bytes(16) + each[20:] + SECRET.encode()).digest()
    assert dict(decode(start))[40] == b"\0\0\0\1"
    values = dict(decode(stop))
    numbers = {kind: int.from_bytes(values[kind], "big") for kind in (40, 42, 43, 46, 47, 48, 49, 52, 53)}
    assert numbers == {40: 2, 42: 5, 43: 6, 46: 60, 47: 1, 48: 2, 49: 1, 52: 3, 53: 1}
    assert values[25] == b"c1"
    assert values[8] == bytes((100, 64, 0, 2))
    assert values[97] == b"\0\x40" + bytes.fromhex("20010db8000100000000000000000000")
    assert values[123] == b"\0\x38" + bytes.fromhex("20010db8800000000000000000000000")
    assert len(world.client.queue) == 0


def test_accounting_waits_on_disk_and_survives(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    world = World(queue=store, timeout_s=1, tries=1, dead_s=10)
    world.servers[0].alive = False
    for number in range(300):
        world.client.account(world.record(Kind.STOP, duration_s=number))
    world.clock.run(5)
    assert len(store) == 300
    store.close()
    # Another process: nothing is forgotten, and the delay is told.
    store = SqliteStore(tmp_path / "state.db")
    again = World(queue=store)
    again.clock.run(30)
    assert len(store) == 0
    durations = [int.from_bytes(dict(decode(each))[46], "big") for each in again.servers[0].seen]
    assert durations == list(range(300))


def test_accounting_goes_on_when_the_server_is_back() -> None:
    world = World(timeout_s=1, tries=1, dead_s=10)
    world.servers[0].alive = False
    for number in range(1000):
        world.client.account(world.record(Kind.STOP, duration_s=number))
        world.clock.run(0.01)
    world.clock.run(60)
    assert len(world.servers[0].seen) < 3000  # it does not hammer
    world.servers[0].alive = True
    world.servers[0].seen.clear()
    world.clock.run(30)
    assert len(world.client.queue) == 0
    assert {int.from_bytes(dict(decode(each))[46], "big") for each in world.servers[0].seen} == set(range(1000))


# Dynamic authorization.


class Online:
    """A gateway with one subscriber, and the server that changes its session."""

    def __init__(self, **authorization: object) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        radius = {
            "servers": [{"host": "127.0.0.1", "secret": SECRET}],
            "nas_identifier": "bng-1",
            "dynamic_authorization": {"clients": {"127.0.0.9": SECRET}, **authorization},
        }
        self.configuration = configuration(users={}, radius=radius)
        self.gateway = Gateway(self.configuration, self.plane, self.clock, self, random=seeded(3), wall=self.clock.now)
        settings = self.configuration.radius
        assert settings is not None
        self.server = DynamicAuthorization(settings, self.gateway)
        self.host = Subscriber(
            Account("alice", "secret"), MAC, self.clock, lambda frame: self.plane.from_line(LINE, frame), seed=1
        )
        self.plane.hosts[LINE, MAC] = self.host.receive
        self.host.dial()
        self.clock.run(1)
        assert self.host.state == "up"
        self.identifier = 0

    def authenticate(self, question: Question, answer: Callable[[Verdict], None]) -> None:
        answer(Verdict(True))

    def request(self, code: int, attributes: Attributes, **how: object) -> bytes:
        self.identifier += 1
        how = {"stamp_s": self.clock.now(), **how}
        return authorization_request(code, self.identifier, attributes, **how)  # type: ignore[arg-type]

    def ask(self, code: int, attributes: Attributes, **how: object) -> tuple[int, Attributes] | None:
        request = self.request(code, attributes, **how)
        answer = self.server.received(IPv4Address("127.0.0.9"), 1, request, self.clock.now())
        if answer is None:
            return None
        head, body = answer[:4], answer[20:]
        assert answer[4:20] == hashlib.md5(head + request[4:20] + body + SECRET.encode()).digest()
        assert body[0] == 80, "an answer is signed"
        assert body[2:18] == hmac.digest(
            SECRET.encode(), head + request[4:20] + body[:2] + bytes(16) + body[18:], "md5"
        )
        return answer[0], decode(answer)[1:]


UP_5M = vendor(14122, 7, struct.pack("!I", 5_000_000))


def test_a_coa_changes_a_rate_in_the_data_plane_before_it_is_acknowledged() -> None:
    online = Online()
    assert online.ask(43, [(1, b"alice"), UP_5M, (33, b"proxy")]) == (44, [(33, b"proxy")])
    assert online.plane.table[online.host.session].rates == Rates(5_000_000, None)
    down = vendor(14122, 8, struct.pack("!I", 9_000_000))
    assert online.ask(43, [(8, online.host.ipv4), down, (32, b"bng-1")]) == (44, [])
    assert online.plane.table[online.host.session].rates == Rates(5_000_000, 9_000_000)
    online.clock.run(1)
    assert online.host.state == "up"


def test_the_answer_to_a_coa_and_to_a_disconnect_is_the_result_of_the_write() -> None:
    """Check that a failed write gives a NAK (Error-Cause 506); a session stays unchanged, or ends as soon as possible."""
    online = Online()
    number = online.host.session
    before = online.plane.table[number]
    timeout = (27, struct.pack("!I", 3600))
    online.plane.failing = True
    assert online.ask(43, [(1, b"alice"), UP_5M, timeout]) == (45, [(101, struct.pack("!I", 506))])
    assert online.plane.table[number] == before
    grant = online.gateway.sessions[number].grant
    assert grant is not None
    assert (grant.session.rates, grant.session_timeout_s) == (before.rates, 0)
    assert online.ask(40, [(1, b"alice")]) == (42, [(101, struct.pack("!I", 506))])
    assert number in online.plane.table
    online.plane.failing = False
    online.clock.run(2)
    assert number not in online.plane.table
    assert online.ask(40, [(1, b"alice")]) == (42, [(101, struct.pack("!I", 503))])
    assert online.gateway.violations() == []


def test_a_session_is_disconnected_and_changed_while_it_is_not_established() -> None:
    """Check that a request finds a session that is installed but not established, as its subscriber may already send."""
    online = Online()
    online.host.hang_up()
    online.clock.run(1)
    deliver = online.plane.hosts[LINE, MAC]

    def deaf(frame: bytes) -> None:
        if frame[20:23] not in (b"\x80\x21\x01", b"\x80\x57\x01"):  # the gateway's Configure-Requests
            deliver(frame)

    online.plane.hosts[LINE, MAC] = deaf
    online.host.dial()
    online.clock.run(1)
    [session] = online.gateway.sessions.values()
    assert not session.established
    assert session.id in online.plane.table
    assert online.ask(43, [(1, b"alice"), UP_5M]) == (44, [])
    assert online.plane.table[session.id].rates == Rates(5_000_000, None)
    assert online.ask(40, [(1, b"alice")]) == (41, [])
    assert not online.plane.table


def test_a_disconnect_ends_the_session() -> None:
    online = Online()
    accounting = online.gateway.sessions[online.host.session].accounting_id.encode()
    assert online.ask(40, [(44, accounting), (31, b"02-00-00-00-01-02")]) == (41, [])
    online.clock.run(1)
    assert online.host.state == "failed"
    assert not online.plane.table


@pytest.mark.parametrize(
    ("code", "attributes", "error"),
    [
        (40, [(1, b"bob")], 503),
        (40, [], 402),
        (43, [(1, b"alice")], 402),
        (43, [(1, b"alice"), (32, b"bng-2"), UP_5M], 403),
        (43, [(1, b"alice"), (4, bytes((1, 2, 3, 4))), UP_5M], 403),
        (43, [(1, b"alice"), (11, b"filter")], 401),
        (40, [(1, b"alice"), UP_5M], 401),
        (43, [(1, b"alice"), (6, b"\0\0\0\x11")], 405),
        (43, [(1, b"alice"), (27, b"\1")], 404),
        (43, [(1, b"alice"), (27, bytes(4))], 404),
        (43, [(1, b"alice"), (27, b"\0\0\0\1"), (27, b"\0\0\0\1")], 404),
        (43, [(1, b"alice"), (1, b"bob"), UP_5M], 404),
        (43, [(1, b"alice"), vendor(14122, 7, b"\0\0\0\7")], 404),
        (43, [(1, b"alice"), vendor(9, 1, b"avpair")], 401),
        (43, [(1, b"alice"), (95, bytes(16)), UP_5M], 403),
        (40, [(97, b"\0\x40" + bytes.fromhex("20010db8ffff0000"))], 503),
        (40, [(97, b"\0\xff")], 503),
        (40, [(123, b"\0\x40" + bytes.fromhex("20010db880000000"))], 503),
        (43, [(1, b"alice"), (5, b"\0\0\0\x63"), UP_5M], 503),
    ],
)
def test_errors_have_their_causes(code: int, attributes: Attributes, error: int) -> None:
    online = Online()
    assert online.ask(code, attributes) == (code + 2, [(101, error.to_bytes(4, "big"))])
    assert online.plane.table[online.host.session].rates == Rates()


@pytest.mark.parametrize("form", ["short", "long", "unclean"])
@pytest.mark.parametrize("kind", [97, 123])
def test_a_session_is_named_by_an_ipv6_prefix(kind: int, form: str) -> None:
    online = Online()
    session = online.plane.table[online.host.session]
    prefix = session.ipv6_prefix if kind == 97 else session.delegated
    assert prefix is not None
    octets = {
        "short": prefix.network_address.packed[: prefix.prefixlen // 8],
        "long": prefix.network_address.packed,
        "unclean": prefix.network_address.packed[:15] + b"\x01",
    }[form]
    named = (kind, bytes((0, prefix.prefixlen)) + octets)
    assert online.ask(43, [named, UP_5M]) == (44, [])
    assert online.plane.table[online.host.session].rates == Rates(5_000_000, None)
    assert online.ask(40, [named, (96, session.ipv6_interface.packed[8:] if session.ipv6_interface else b"")]) == (
        41,
        [],
    )


def test_a_request_without_message_authenticator_is_taken_only_by_a_setting(caplog: pytest.LogCaptureFixture) -> None:
    wish = [(1, b"alice"), UP_5M]
    online = Online()
    for _ in range(2):
        assert online.ask(43, wish, sign=False) is None
    assert online.server.events["unsigned"] == 2
    waived = Online(require_message_authenticator=False)
    assert waived.ask(43, wish, sign=False) == (44, [])
    assert waived.plane.table[waived.host.session].rates == Rates(5_000_000, None)
    assert waived.ask(43, wish, sign=False, secret=b"another-secret") is None
    forged = bytearray(waived.request(43, wish))
    forged[25] ^= 1  # a signature that is there must be right
    forged[4:20] = hashlib.md5(forged[:4] + bytes(16) + forged[20:] + SECRET.encode()).digest()
    assert waived.server.received(IPv4Address("127.0.0.9"), 1, bytes(forged), waived.clock.now()) is None
    said = [each.getMessage() for each in caplog.records]
    assert len(said) == 2
    assert "127.0.0.9" in said[0]
    assert "dynamic_authorization.require_message_authenticator" in said[0]
    assert "taken" in said[1]


def test_what_is_not_proven_is_not_answered() -> None:
    online = Online()
    wish = [(1, b"alice"), UP_5M]
    assert online.ask(43, wish, sign=False) is None
    assert online.ask(43, wish, secret=b"another-secret") is None
    good = online.request(43, wish)
    assert online.server.received(IPv4Address("127.0.0.8"), 1, good, online.clock.now()) is None
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 0x40
        assert online.server.received(IPv4Address("127.0.0.9"), 1, bytes(bad), online.clock.now()) is None, at
        assert online.server.received(IPv4Address("127.0.0.9"), 1, good[:at], online.clock.now()) is None, at
    now = struct.pack("!I", 10_000)
    for stamps in ([struct.pack("!I", 1)], [now, struct.pack("!I", 1)], [b"\x01"], [b""], [bytes(4) + now + b"\0"]):
        stale = online.request(43, [*wish, *((55, each) for each in stamps)], stamp_s=None)
        assert online.server.received(IPv4Address("127.0.0.9"), 1, stale, 10_000) is None
    assert online.plane.table[online.host.session].rates == Rates()


def test_a_repeated_request_gets_the_same_answer_and_is_not_done_twice() -> None:
    online = Online()
    request = online.request(40, [(1, b"alice")])
    source = IPv4Address("127.0.0.9")
    first = online.server.received(source, 1, request, online.clock.now())
    online.clock.run(1)
    assert first is not None
    assert online.server.received(source, 1, request, online.clock.now()) == first
    assert online.server.events["disconnect-nak"] == 0


# Accounting-On and Accounting-Off.


def kinds(packets: list[bytes]) -> list[int]:
    return [int.from_bytes(dict(decode(each))[40], "big") for each in packets]


def test_the_gateways_own_records_are_signed_and_of_no_session() -> None:
    world = World()
    world.client.account_gateway(Kind.ON)
    world.clock.run(1)
    (packet,) = world.servers[0].seen
    assert packet[4:20] == hashlib.md5(packet[:4] + bytes(16) + packet[20:] + SECRET.encode()).digest()
    attributes = decode(packet)
    assert {kind for kind, _ in attributes} == {4, 32, 40, 41, 44, 55}
    assert dict(attributes)[40] == struct.pack("!I", 7)
    assert dict(attributes)[44]
    assert len(world.client.queue) == 0


@pytest.mark.parametrize("disk", [False, True])
def test_an_accounting_on_overtakes_nothing_and_nothing_overtakes_it(disk: bool, tmp_path: Path) -> None:
    """Check that a repeated Accounting-On never follows a Start, as servers end all sessions of the gateway upon it."""
    world = World(queue=SqliteStore(tmp_path / "state.db") if disk else None, timeout_s=1, tries=2, dead_s=5)
    server = world.servers[0]
    acknowledged: list[int] = []

    def lose(request: bytes) -> bytes | None:
        if len(server.seen) % 3:
            return None
        acknowledged.extend(kinds([request]))
        return signed(request, 5, [])

    server.reply = lose
    for kind in (Kind.STOP, Kind.STOP):
        world.client.account(world.record(kind))
    world.client.account_gateway(Kind.ON)
    for kind in (Kind.START, Kind.INTERIM, Kind.START, Kind.STOP):
        world.client.account(world.record(kind))
    world.client.account_gateway(Kind.OFF)
    world.client.account_gateway(Kind.ON)
    world.clock.run(300)
    assert len(world.client.queue) == 0
    assert acknowledged[:3] == [2, 2, 7]
    assert sorted(acknowledged[3:7]) == [1, 1, 2, 3]
    assert acknowledged[7:] == [8, 7]
    sent = kinds(server.seen)
    first, last = sent.index(7), len(sent) - 1 - sent[::-1].index(7)
    assert set(sent[:first]) == {2}
    off = sent.index(8)
    assert set(sent[off:last]) <= {7, 8}


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.parametrize("deaf", [{7}, {7, 8}])
def test_a_server_that_takes_no_accounting_on_gets_the_others(disk: bool, deaf: set[int], tmp_path: Path) -> None:
    """Check that a gateway's own record that no server takes holds up the others for two rounds, and comes not behind them."""
    world = World(queue=SqliteStore(tmp_path / "state.db") if disk else None, timeout_s=1, tries=2, dead_s=5)
    server = world.servers[0]
    acknowledged: list[int] = []

    def hear(request: bytes) -> bytes | None:
        [kind] = kinds([request])
        if kind in deaf:
            return None
        acknowledged.append(kind)
        return signed(request, 5, [])

    server.reply = hear
    for _ in range(3):
        world.client.account_gateway(Kind.ON)
        for kind in (Kind.START, Kind.STOP):
            world.client.account(world.record(kind))
        world.client.account_gateway(Kind.OFF)
    world.clock.run(300)
    assert [each for each in acknowledged if each < 7] == [1, 2] * 3
    assert len(world.client.queue) <= (8 in deaf), "the last one waits: somebody may take it yet"
    ons = [at for at, each in enumerate(kinds(server.seen)) if each == 7]
    assert kinds(server.seen).index(1) > ons[0]


def test_an_answer_too_long_to_be_passed_on_is_cut_or_refused() -> None:
    world = World()
    world.servers[0].reply = lambda request: signed(request, 2, [(18, b"x" * 253)] * 12)
    world.ask()
    world.clock.run(1)
    assert len(world.verdicts[0].message) == 1000  # text: a packet of CHAP is not sent in parts
    world.servers[0].reply = lambda request: signed(request, 2, [(25, bytes((each,)) * 253) for each in range(12)])
    world.ask()
    world.clock.run(1)
    assert [each.accepted for each in world.verdicts] == [True, False]  # and Class is no text
    assert "Class" in world.verdicts[1].message
