"""A refusal costs one session alone, a plane that does not answer is asked again, and all that forwards is accounted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.changes import Stored
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.plane import Line, Rates, Session, Usage
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.exchanges import ACK, IPCP, IPV6CP, LCP, REQUEST, TERMINATE, Peer, cooperative
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded
from holdfast.subscribers.users import UserList


class PickyPlane(MemoryPlane):
    """Refuses a write that has one session of those that it does not like, whole; and all of them while it is away."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.dislikes: Callable[[Session], bool] = lambda each: False
        self.keeps: set[int] = set()
        self.away = False
        self.attempts = 0

    def install(self, sessions: Iterable[Session]) -> None:
        sessions = list(sessions)
        self._answer()
        for each in sessions:
            if self.dislikes(each):
                raise HoldfastError(f"session {each.session_id} is refused")
        super().install(sessions)

    def remove(self, session_ids: Iterable[int]) -> dict[int, Usage]:
        numbers = list(session_ids)
        self._answer()
        if self.keeps & set(numbers):
            raise HoldfastError("a session is not let go")
        return super().remove(numbers)

    def _answer(self) -> None:
        self.attempts += 1
        if self.away:
            raise P4RuntimeError("UNAVAILABLE", "nobody answers")


class World:
    def __init__(self, **changes: object) -> None:
        self.clock = VirtualClock()
        self.plane = PickyPlane(self.clock)
        self.records: list[Record] = []
        settings = configuration(**changes)
        self.gateway = Gateway(
            settings, self.plane, self.clock, UserList(settings.users), random=seeded(1), accountant=self, wall=self.clock.now
        )  # fmt: skip
        self.gateway.start()

    def account(self, record: Record) -> None:
        self.records.append(record)

    def kinds(self, number: int | None = None) -> list[Kind]:
        """Return the kinds of the accounting records of a session, or of all sessions if ``number`` is None."""
        return [each.kind for each in self.records if number in (None, each.session and each.session.session_id)]

    def host(self, number: int, **account: object) -> Subscriber:
        line, mac = Line(1, 100, number), bytes.fromhex("0200000001") + bytes((number,))
        values: dict[str, object] = {"user": "alice", "password": "secret", **account}
        made = Account(**values)  # type: ignore[arg-type]
        host = Subscriber(made, mac, self.clock, lambda frame: self.plane.from_line(line, frame), seed=number)
        self.plane.hosts[line, mac] = host.receive
        return host

    def online(self, *numbers: int) -> list[Subscriber]:
        hosts = [self.host(each) for each in numbers]
        for each in hosts:
            each.dial()
        self.run(1)
        assert {each.state for each in hosts} <= {"up"}
        return hosts

    def run(self, seconds: float, step: float = 0.25) -> None:
        """Run for ``seconds`` in steps, and check after each that the gateway's records do not contradict each other."""
        end = self.clock.now() + seconds
        while self.clock.now() < end - 1e-9:
            self.clock.run(min(step, end - self.clock.now()))
            assert self.gateway.violations() == []


@given(disliked=st.sets(st.integers(1, 12), max_size=6))
@settings(max_examples=12, deadline=None)
def test_those_that_are_refused_end_and_the_others_of_the_batch_come_online(disliked: set[int]) -> None:
    world = World()
    world.plane.dislikes = lambda each: each.line.c_tag in disliked
    hosts = {number: world.host(number) for number in range(1, 13)}
    for each in hosts.values():
        each.dial()
    world.run(2)
    assert {number for number, each in hosts.items() if each.state == "up"} == hosts.keys() - disliked
    assert {each.line.c_tag for each in world.plane.table.values()} == hosts.keys() - disliked
    assert world.kinds() == [Kind.START] * (12 - len(disliked))
    assert world.gateway.events["install-failures"] == len(disliked)


def test_sessions_that_forward_are_not_ended_by_another_ones_refusal() -> None:
    """Check sessions whose rates change in the same batch of writes as a session that the plane refuses."""
    world = World()
    hosts = world.online(*range(1, 11))
    world.plane.dislikes = lambda each: each.line.c_tag == 99
    late = world.host(99)
    late.dial()
    answers: list[str | None] = []
    while not any(each.line.c_tag == 99 and each.wanted for each in world.gateway.sessions.values()):
        world.clock.run(0.0002)
    for each in hosts:
        world.gateway.change_rates(world.gateway.sessions[each.session], Rates(10**6, 10**6), answers.append)
    world.run(2)
    assert answers == [None] * 10
    assert late.state == "failed"
    assert {each.state for each in hosts} == {"up"}
    assert {each.rates for each in world.plane.table.values()} == {Rates(10**6, 10**6)}


@pytest.mark.parametrize("at_once", [False, True])
def test_a_change_that_is_refused_leaves_the_session_as_it_was_and_is_told(at_once: bool) -> None:
    world = World()
    [host] = world.online(1)
    session = world.gateway.sessions[host.session]
    before = world.plane.table[host.session]
    assert session.grant is not None
    granted = session.grant
    world.plane.dislikes = lambda each: each.rates.up_bit_s == 5000
    answers: list[str | None] = []
    for rates in (Rates(5000, None), Rates(7, None), Rates(None, 1 << 63)):
        if at_once:
            whole = type(granted)(
                **{**vars(granted), "session": type(before)(**{**vars(granted.session), "rates": rates})}
            )
            answers.append(world.gateway.change(session, whole))
        else:
            world.gateway.change_rates(session, rates, answers.append)
            world.run(0.1)
    assert [each is None for each in answers] == [False] * 3
    assert world.plane.table[host.session] == before
    assert session.grant == granted
    world.run(30)
    assert host.state == "up"
    assert world.kinds() == [Kind.START]


def test_while_the_plane_is_away_nobody_who_forwards_ends_and_all_is_done_when_it_is_back() -> None:
    world = World()
    hosts = world.online(1, 2, 3)
    world.plane.away = True
    gone = hosts[2].session
    attempts = world.plane.attempts
    late = world.host(4, redial_s=1.0)
    late.dial()
    answers: list[str | None] = []
    world.gateway.change_rates(world.gateway.sessions[hosts[0].session], Rates(10**6), answers.append)
    hosts[2].hang_up()
    world.run(10)
    assert len(answers) == 1
    assert answers[0] is not None
    assert [each.state for each in hosts[:2]] == ["up", "up"]
    assert late.state != "up"
    assert world.plane.attempts - attempts < 60  # it is not asked again and again
    assert world.kinds() == [Kind.START] * 3
    world.plane.away = False
    world.run(10)
    assert late.state == "up"
    assert len(world.plane.table) == 3
    assert world.gateway.pool_use()["default"] == World().gateway.pool_use()["default"] + 3
    assert world.kinds(gone)[:2] == [Kind.START, Kind.STOP]


def test_a_plane_that_is_away_is_not_asked_more_often_because_subscribers_say_more() -> None:
    world = World()
    world.plane.away = True
    hosts = [world.host(number) for number in range(1, 101)]
    for each in hosts:
        each.dial()
        world.run(0.1)
    assert world.plane.attempts <= 25  # in ten seconds
    world.plane.away = False
    world.run(5)
    assert {each.state for each in hosts} == {"up"}


def test_what_is_not_removed_keeps_its_address_and_number_until_it_is() -> None:
    world = World(pools={"default": "100.64.0.0/29"})
    hosts = world.online(1, 2)
    number = hosts[0].session
    world.plane.keeps = {number}
    hosts[0].hang_up()
    hosts[1].hang_up()
    world.run(3)
    assert list(world.plane.table) == [number]
    assert world.kinds(number) == [Kind.START]  # it may forward still
    others = [world.host(each) for each in range(10, 15)]
    for each in others:
        each.dial()
    world.run(3)
    # Five hosts, and four addresses: one of eight is the gateway's, two are edges, and one is still there.
    assert sorted(each.state for each in others) == ["failed"] + ["up"] * 4
    assert world.plane.table[number].ipv4 not in {
        each.ipv4 for each in world.plane.table.values() if each.session_id != number
    }
    world.plane.keeps = set()
    world.run(3)
    assert world.kinds(number) == [Kind.START, Kind.STOP]
    assert number not in world.plane.table


PROTOCOLS_OPEN = ["neither", "acknowledged", "one", "both"]
ENDINGS = ["link", "terminate", "padt", "silence", "networks", "kick"]


def to_phase(peer: Peer, reached: str) -> None:
    """Negotiate as the peer until its network protocols have reached the state ``reached``."""
    peer.reactions = cooperative()
    if reached in ("neither", "acknowledged"):
        for each in (IPCP, IPV6CP):
            peer.reactions.pop((each, REQUEST))
    if reached == "one":
        peer.reactions.pop((IPV6CP, REQUEST))
    peer.discover()
    peer.world.clock.run(0.5)
    if reached == "acknowledged":
        peer.request(IPCP)
        peer.world.clock.run(0.5)


@pytest.mark.parametrize("reached", PROTOCOLS_OPEN)
@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_ends_the_network_phase_ends_forwarding_and_accounting(reached: str, ending: str) -> None:
    """Check that, an hour later, each installation has a Start and a Stop, and the plane has no session without them."""
    world = World()
    peer = Peer(world)  # type: ignore[arg-type]
    to_phase(peer, reached)
    number = peer.session
    installed = reached != "neither"
    assert (number in world.plane.table) == installed
    assert world.kinds() == [Kind.START] * installed
    assert world.gateway.violations() == []
    if installed:
        world.plane.traffic[number] = Usage(7, 700, 8, 800)
    peer.reactions = {(LCP, TERMINATE): "terminate_ack"} if ending == "kick" else {}
    if ending == "link":
        peer.request(LCP)
    elif ending == "terminate":
        peer.say(LCP, TERMINATE, 7, b"")
    elif ending == "padt":
        peer.hang_up()
    elif ending == "networks":
        for each in (IPCP, IPV6CP):
            peer.say(each, TERMINATE, 7, b"")
    elif ending == "kick":
        world.gateway.kick([number])
    world.run(0.1, 0.01)
    if ending in ("link", "terminate", "padt", "kick"):
        assert number not in world.plane.table
    world.run(4_000, 500)
    assert not world.plane.table
    assert not world.gateway.sessions
    assert world.gateway.setups == 0
    assert world.gateway.pool_use() == World().gateway.pool_use()
    assert world.kinds() == [Kind.START, Kind.STOP] * installed
    if installed:
        assert world.records[-1].usage == Usage(7, 700, 8, 800)


def test_a_session_that_is_installed_and_not_established_ends_at_its_deadline() -> None:
    """Check that such a session is accounted from its installation on, and that no packet of its subscriber moves its deadline."""
    world = World()
    peer = Peer(world)  # type: ignore[arg-type]
    to_phase(peer, "acknowledged")
    [session] = world.gateway.sessions.values()
    assert (session.counted, session.established) == (True, False)
    for _ in range(25):
        world.run(1)
        peer.request(IPCP)
        peer.say(LCP, 9, 3, b"\1\2\3\4")
    world.run(15)
    assert world.kinds() == [Kind.START, Kind.STOP]
    assert world.records[-1].cause is Cause.USER_ERROR
    assert not world.plane.table


def test_a_protocol_that_is_negotiated_again_does_not_end_the_account() -> None:
    world = World()
    peer = Peer(world)  # type: ignore[arg-type]
    to_phase(peer, "one")
    for _ in range(3):
        peer.mine[IPCP] = [(3, b"\1\2\3\4")]  # a Nak: the gateway's side is not agreed for a while
        peer.request(IPCP)
        world.run(1)
    assert world.kinds() == [Kind.START]
    [session] = world.gateway.sessions.values()
    assert session.established
    peer.say(IPCP, ACK, 99, b"")
    assert world.gateway.violations() == []


def test_a_mistake_of_ours_ends_one_session_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    first, second = world.online(1, 2)
    session = world.gateway.sessions[first.session]

    def fails(payload: bytes) -> None:
        raise IndexError("tuple index out of range")

    session.lcp.receive = fails  # type: ignore[method-assign]
    first.echo()
    world.run(1)
    assert first.session not in world.plane.table
    assert second.state == "up"
    assert world.gateway.events["faults"] == 1
    assert "IndexError" in caplog.text
    # In a timer, too.
    other = world.gateway.sessions[second.session]
    other._clock.call_later(0.1, lambda: fails(b""))
    world.run(1)
    assert not world.plane.table
    assert world.gateway.events["faults"] == 2
    assert world.kinds() == [Kind.START, Kind.START, Kind.STOP, Kind.STOP]


class Rows:
    """A store in memory."""

    def __init__(self) -> None:
        self.rows: dict[int, Stored] = {}

    def load(self) -> list[Stored]:
        return list(self.rows.values())

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        for number in drop:
            self.rows.pop(number, None)
        self.rows |= {each.grant.session.session_id: each for each in put}


def started_again(world: World, rows: Rows, **changes: object) -> Gateway:
    """Return a new gateway on a world's plane and store, whose old process has ended with its timers."""
    world.gateway.stop()
    world.clock = world.plane.clock = VirtualClock()
    settings = configuration(**changes)
    world.gateway = Gateway(
        settings, world.plane, world.clock, UserList(settings.users), random=seeded(2), accountant=world, store=rows,
        wall=world.clock.now,
    )  # fmt: skip
    world.gateway.reconcile()
    world.gateway.start()
    return world.gateway


def test_a_stored_session_whose_address_another_one_has_is_accounted_as_ended() -> None:
    world, rows = World(), Rows()
    started_again(world, rows)
    first, second = world.online(1, 2)
    world.plane.traffic[second.session] = Usage(3, 300, 4, 400)
    kept, lost = rows.rows[first.session], rows.rows[second.session]
    whole = replace(lost.grant.session, ipv4=kept.grant.session.ipv4)
    rows.rows[second.session] = replace(lost, grant=replace(lost.grant, session=whole))
    started_again(world, rows)
    assert list(world.plane.table) == list(world.gateway.sessions) == list(rows.rows) == [first.session]
    assert world.gateway.violations() == []
    stop = world.records[-1]
    assert (stop.kind, stop.cause, stop.usage) == (Kind.STOP, Cause.NAS_REBOOT, Usage(3, 300, 4, 400))
    assert stop.accounting_id == lost.accounting_id


def test_what_a_session_has_that_only_the_plane_knows_is_nobodys_until_it_is_removed() -> None:
    users = {"alice": {"password": "secret"}, "static": {"password": "secret", "ipv4": "198.51.100.7"}}
    world = World(users=users)
    host = world.host(1, user="static")
    host.dial()
    world.run(1)
    world.plane.keeps = {host.session}
    started_again(world, Rows(), users=users)
    assert world.gateway.violations() == []
    other = world.host(2, user="static")
    other.dial()
    world.run(2)
    assert other.state == "failed"
    world.plane.keeps = set()
    world.run(2)
    assert not world.plane.table
    other.dial()
    world.run(2)
    assert other.state == "up"


def test_a_session_that_was_not_established_has_a_deadline_after_a_restart_too() -> None:
    world, rows = World(), Rows()
    started_again(world, rows)
    peer = Peer(world)  # type: ignore[arg-type]
    to_phase(peer, "acknowledged")
    assert list(rows.rows) == [peer.session]
    peer.reactions = {}
    started_again(world, rows)
    [session] = world.gateway.sessions.values()
    assert (session.counted, session.established, session.ends_by_itself) == (True, False, True)
    assert world.gateway.setups == 1
    world.run(45)
    assert not world.gateway.sessions
    assert not world.plane.table
    assert not rows.rows
    assert world.kinds() == [Kind.START, Kind.STOP]
