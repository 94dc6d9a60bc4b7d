"""The gateway between a user plane in memory and modelled subscribers."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network

import pytest

from holdfast.subscribers import metrics
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line, Rates, Usage
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList


class Ledger:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def account(self, record: Record) -> None:
        self.records.append(record)


class World:
    def __init__(self, **changes: object) -> None:
        self.clock = VirtualClock()
        self.plane = MemoryPlane(self.clock)
        self.ledger = Ledger()
        self.configuration = configuration(**changes)
        self.gateway = Gateway(
            self.configuration,
            self.plane,
            self.clock,
            UserList(self.configuration.users),
            random=seeded(1),
            accountant=self.ledger,
            wall=self.clock.now,
        )
        self.gateway.start()

    def subscriber(self, number: int = 1, line: Line | None = None, **account: object) -> Subscriber:
        line = line or Line(1, 100, number)
        mac = bytes.fromhex("0200000100") + bytes((number,)) if number < 256 else number.to_bytes(6, "big")
        values: dict[str, object] = {"user": "alice", "password": "secret", **account}
        host = Subscriber(
            Account(**values),  # type: ignore[arg-type]
            mac,
            self.clock,
            lambda frame: self.plane.from_line(line, frame),
            seed=number,
        )
        self.plane.hosts[line, mac] = host.receive
        return host


@pytest.mark.parametrize("pap", [False, True])
@pytest.mark.parametrize("rapid", [False, True])
def test_a_subscriber_comes_online_with_both_families(pap: bool, rapid: bool) -> None:
    world = World()
    host = world.subscriber(pap=pap, rapid_commit=rapid)
    host.dial()
    world.clock.run(1)
    assert host.state == "up", (host.state, host.reason)
    session = world.plane.table[host.session]
    assert IPv4Address(host.ipv4) == session.ipv4 == IPv4Address("100.64.0.2")
    assert [IPv4Address(each) for each in host.dns] == list(world.configuration.dns)
    assert IPv4Address(host.gateway_ipv4) == IPv4Address("100.64.0.1")
    assert session.ipv6_interface == IPv6Address(host.link_local)
    assert session.ipv6_prefix == IPv6Network(host.ipv6_prefix) == IPv6Network("2001:db8:1::/64")
    assert session.delegated == IPv6Network(host.delegated) == IPv6Network("2001:db8:8000::/56")
    assert session.peer_mru == 1492
    assert session.line == Line(1, 100, 1)
    assert [each.kind for each in world.ledger.records] == [Kind.START]
    assert world.gateway.setups == 0


def test_a_wrong_password_gets_no_session() -> None:
    world = World()
    for pap in (False, True):
        host = world.subscriber(password="wrong", pap=pap)
        host.dial()
        world.clock.run(10)
        assert host.state == "failed"
        assert "wrong user name or password" in host.reason
    assert not world.plane.table
    assert not world.gateway.sessions
    assert world.gateway.setups == 0
    assert not world.ledger.records


def test_hanging_up_frees_everything_and_stops_the_account() -> None:
    world = World()
    host = world.subscriber()
    host.dial()
    world.clock.run(1)
    number = host.session
    world.plane.traffic[number] = Usage(10, 1000, 20, 5_000_000_000)
    host.hang_up()
    world.clock.run(1)
    assert not world.plane.table
    assert not world.gateway.sessions
    stop = world.ledger.records[-1]
    assert (stop.kind, stop.cause, stop.usage) == (Kind.STOP, Cause.USER_REQUEST, Usage(10, 1000, 20, 5_000_000_000))
    again = world.subscriber(2)
    again.dial()
    world.clock.run(1)
    assert IPv4Address(again.ipv4) == IPv4Address("100.64.0.3")  # a returned address waits


def test_one_family_is_enough() -> None:
    world = World()
    four = world.subscriber(1, ipv6=False)
    six = world.subscriber(2, ipv4=False)
    four.dial()
    six.dial()
    world.clock.run(1)
    assert four.state == six.state == "up"
    assert world.plane.table[four.session].ipv6_prefix is None
    assert world.plane.table[six.session].ipv4 is None


def test_a_kicked_subscriber_redials() -> None:
    world = World()
    host = world.subscriber(redial_s=1.0)
    host.dial()
    world.clock.run(1)
    assert world.gateway.kick([host.session, 999]) == 1
    world.clock.run(5)
    assert host.state == "up"
    assert host.counts.lost == 1
    assert [each.kind for each in world.ledger.records] == [Kind.START, Kind.STOP, Kind.START]
    assert world.ledger.records[1].cause is Cause.ADMIN_RESET


def test_a_silent_subscriber_is_missed_and_an_answering_one_kept() -> None:
    world = World(echo_interval_s=30, echo_failures=3)
    gone, there, busy = (world.subscriber(number) for number in (1, 2, 3))
    for each in (gone, there, busy):
        each.dial()
    world.clock.run(1)
    number = busy.session
    gone.vanish()
    busy.vanish()
    for second in range(300):
        world.plane.traffic[number] = Usage(second, 0, 0, 0)
        world.clock.run(1)
    assert set(world.plane.table) == {there.session, number}
    assert world.ledger.records[-1].cause is Cause.LOST_CARRIER
    assert there.counts.sent["c021 10"] >= 9
    assert "c021 10" not in busy.counts.sent


def test_a_changed_rate_replaces_the_session_without_its_end() -> None:
    world = World()
    host = world.subscriber()
    host.dial()
    world.clock.run(1)
    world.gateway.change_rates(world.gateway.sessions[host.session], Rates(1_000_000, 2_000_000))
    world.clock.run(1)
    assert world.plane.table[host.session].rates == Rates(1_000_000, 2_000_000)
    assert host.state == "up"


def test_a_lost_pads_is_repeated_for_the_same_session() -> None:
    world = World()
    host = world.subscriber()
    lose = iter((True, False))
    deliver = world.plane.hosts[Line(1, 100, 1), host.mac]

    def lossy(frame: bytes) -> None:
        if frame[15] == 0x65 and next(lose, False):
            return
        deliver(frame)

    world.plane.hosts[Line(1, 100, 1), host.mac] = lossy
    host.dial()
    world.clock.run(10)
    assert host.state == "up"
    assert world.gateway.events["padr"] == 2
    assert list(world.gateway.sessions) == [1]


@pytest.mark.parametrize("loss", [3, 5, 7])
def test_losses_everywhere_only_cost_time(loss: int) -> None:
    world = World()
    host = world.subscriber()
    deliver = world.plane.hosts[Line(1, 100, 1), host.mac]
    seen = 0

    def lossy(frame: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen % loss:
            deliver(frame)

    world.plane.hosts[Line(1, 100, 1), host.mac] = lossy
    host.dial()
    world.clock.run(25)
    assert host.state == "up", (host.state, host.reason)


def test_max_payload_gives_mru_1500_and_only_if_both_can() -> None:
    world = World(max_payload=1500)
    large, plain = world.subscriber(1, max_payload=1500), world.subscriber(2)
    large.dial()
    plain.dial()
    world.clock.run(1)
    assert world.plane.table[large.session].peer_mru == 1500
    assert world.plane.table[plain.session].peer_mru == 1492
    small = World()
    host = small.subscriber(max_payload=1500)
    host.dial()
    small.clock.run(1)
    assert small.plane.table[host.session].peer_mru == 1492


def test_limits_of_line_host_and_setups() -> None:
    world = World(limits={"sessions_per_line": 2, "sessions_per_mac": 1, "setups": 3})
    line = Line(1)
    hosts = [world.subscriber(number, line) for number in (1, 2, 3)]
    for each in hosts:
        each.dial()
        world.clock.run(1)
    assert [each.state for each in hosts] == ["up", "up", "failed"]
    assert "too many sessions on this line" in hosts[2].reason
    # A host that lost its session without a word takes its own place.
    hosts[0].vanish()
    hosts[0].dial()
    world.clock.run(1)
    assert hosts[0].state == "up"
    assert world.gateway.events["replaced"] == 1
    assert len(world.plane.table) == 2
    # Half-open sessions: discovery, and then nothing.
    for number in range(10, 14):
        silent = world.subscriber(number)
        silent._ask = lambda protocol: None  # type: ignore[method-assign]
        silent.dial()
    world.clock.run(1)
    assert world.gateway.setups == 3
    world.clock.run(60)
    assert world.gateway.setups == 0
    assert len(world.gateway.sessions) == 2


BOB = {"bob": {"password": "other"}, "alice": {"password": "secret"}}


def test_an_address_of_another_line_is_counted_after_login_alone() -> None:
    """Check that a host that uses a subscriber's MAC address on another line does not hinder the subscriber without a login."""
    world = World(users=BOB)
    victim, silent, guessing = (world.subscriber(1, Line(1, 100, number)) for number in (1, 2, 3))
    silent._ask = lambda protocol: None  # type: ignore[method-assign]
    guessing.account = Account("bob", "wrong")
    for each in (silent, guessing, victim):  # those without credentials are first, and then again
        each.dial()
        world.clock.run(1)
    assert (victim.state, silent.state, guessing.state) == ("up", "link", "failed")
    for each in (silent, guessing):
        each.vanish()
        each.dial()
        world.clock.run(40)
    assert victim.state == "up"
    assert victim.counts.lost == 0
    assert world.gateway.refusals["sessions_per_mac"] == 0
    assert len(world.plane.table) == 1


def test_a_login_from_another_line_is_refused_and_a_user_that_moved_takes_its_session_along() -> None:
    world = World(users=BOB)
    first, other, moved = (world.subscriber(1, Line(1, 100, number)) for number in (1, 2, 3))
    other.account = Account("bob", "other")
    first.dial()
    world.clock.run(1)
    other.dial()
    world.clock.run(1)
    assert (first.state, other.state) == ("up", "failed")
    assert "another line" in other.reason
    assert world.gateway.refusals == {"sessions_per_mac": 1}
    moved.dial()
    world.clock.run(1)
    assert (first.state, moved.state) == ("failed", "up")
    assert [each.line for each in world.plane.table.values()] == [Line(1, 100, 3)]
    # With a higher limit, addresses that many lines share are of no account.
    world = World(users=BOB, limits={"sessions_per_mac": 2})
    first, other = (world.subscriber(1, Line(1, 100, number)) for number in (1, 2))
    other.account = Account("bob", "other")
    for each in (first, other):
        each.dial()
        world.clock.run(1)
    assert (first.state, other.state) == ("up", "up")


def test_a_line_of_many_hosts_is_refused_by_a_limit_that_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Check that a refusal on a line of many hosts names the limit to raise, as default limits suit a household's line."""
    world = World()
    hosts = [world.subscriber(number, Line(1, 7, 7)) for number in range(1, 13)]
    for each in hosts:
        each.dial()
        world.clock.run(1)
    assert sum(each.state == "up" for each in hosts) == 8
    assert world.gateway.refusals["sessions_per_line"] == 4
    [sentence] = [each.getMessage() for each in caplog.records]
    assert sentence == "line 1:7.7: too many sessions on this line (limits.sessions_per_line is 8)"
    assert 'holdfast_bng_refusals_total{limit="sessions_per_line"} 4' in metrics.text(world.gateway, None, None)


def test_a_draining_gateway_keeps_what_it_has() -> None:
    world = World()
    first, second = world.subscriber(1), world.subscriber(2)
    first.dial()
    world.clock.run(1)
    world.gateway.drain()
    second.dial()
    world.clock.run(5)
    assert first.state == "up"
    assert second.state == "discovery"
    assert world.gateway.drops["draining"] == 2


def test_a_failing_data_plane_ends_setups_and_recovers() -> None:
    world = World()
    host = world.subscriber(redial_s=1.0)
    world.plane.failing = True
    host.dial()
    world.clock.run(3)
    assert not world.plane.table
    world.plane.failing = False
    world.clock.run(10)
    assert host.state == "up"
    assert list(world.plane.table) == [host.session]
    assert len(world.gateway.sessions) == 1


def test_frames_of_others_change_nothing() -> None:
    world = World()
    host = world.subscriber()
    host.dial()
    world.clock.run(1)
    terminate = (
        world.gateway.concentrator.mac
        + host.mac
        + bytes.fromhex("886311a7")
        + host.session.to_bytes(2, "big")
        + b"\0\0"
    )
    handler = world.plane.handler
    assert handler is not None
    handler(Line(1, 100, 2), terminate)  # from another line
    handler(Line(1, 100, 1), terminate[:6] + bytes.fromhex("020000010099") + terminate[12:])  # from another host
    assert host.session in world.gateway.sessions
    assert world.gateway.drops["spoofed"] == 2
    handler(Line(1, 100, 1), terminate)
    assert host.session not in world.gateway.sessions


def test_a_thousand_subscribers_share_few_writes() -> None:
    world = World(limits={"padi_per_s": 20000, "setups": 5000})
    hosts = [world.subscriber(number, Line(number % 4, 1 + number // 100, number)) for number in range(300, 1300)]
    for at, each in enumerate(hosts):
        world.clock.call_later(at / 1000, each.dial)
    world.clock.run(10)
    assert {each.state for each in hosts} == {"up"}
    assert len({each.ipv4 for each in hosts}) == len({each.delegated for each in hosts}) == 1000
    assert len(world.plane.writes) < 1500


def test_the_same_seed_gives_the_same_frames() -> None:
    traces = []
    for _ in range(2):
        world = World()
        world.plane.trace = []
        for number in range(1, 20):
            world.subscriber(number).dial()
        world.clock.run(40)
        traces.append(world.plane.trace)
    assert traces[0] == traces[1]


def test_a_subscriber_that_keeps_alive_notices_a_gateway_that_is_gone() -> None:
    """Check that a subscriber dials again after three echoes without an answer, also while its login waits."""
    world = World()
    host = world.subscriber(keepalive_s=1.0, keepalive_failures=3, redial_s=0.5)
    host.dial()
    world.clock.run(20.5)
    assert (host.state, host.counts.lost, host.counts.sessions) == ("up", 0, 1)
    assert host.counts.sent["echo replies"] >= 20
    world.plane.hosts.clear()  # nothing reaches it any more
    world.clock.run(2.9)
    assert host.state == "up"
    reasons = set()
    for _ in range(20):
        world.clock.run(0.1)
        reasons.add(host.reason)
    assert reasons == {"", "the gateway does not answer"}
    assert (host.state, host.counts.lost) == ("discovery", 1)


def test_a_subscriber_in_the_middle_of_its_login_notices_it_too() -> None:
    world = World()
    host = world.subscriber(keepalive_s=1.0, keepalive_failures=3, redial_s=0.5)
    deliver = world.plane.hosts[Line(1, 100, 1), host.mac]
    # LCP opens, and of CHAP and of what follows nothing arrives.
    world.plane.hosts[Line(1, 100, 1), host.mac] = lambda frame: (
        None if frame[20:22] == b"\xc2\x23" or frame[20:23] == b"\xc0\x21\x0a" else deliver(frame)
    )
    host.dial()
    world.clock.run(1)
    assert host.state == "login"
    assert host.counts.sent["discovery 0x09"] == 1
    world.clock.run(3)
    assert (host.counts.sent["discovery 0x09"], host.counts.lost) == (2, 0)
    world.plane.hosts[Line(1, 100, 1), host.mac] = deliver
    world.clock.run(5)
    assert host.state == "up"
