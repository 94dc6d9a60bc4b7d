"""Logins under attack: renegotiating sessions, crowded lines, realms without a server. Honest ones are asked at once.

A machine of sessions, lines, users and servers checks after every step what the client promises.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.subscribers import radius
from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.authentication import Credentials, Question, Verdict
from holdfast.subscribers.configuration import Radius
from holdfast.subscribers.login_queue import Login, LoginQueue
from holdfast.subscribers.plane import Line, Session
from holdfast.subscribers.radius import RadiusClient
from holdfast.subscribers.tests.radius_server import SECRET, Online, decode, signed, values
from holdfast.subscribers.tests.worlds import VirtualClock, seeded

MAC = bytes.fromhex("020000000102")
STATUS_SERVER = 12
GIVEN_UP_S = 14.0
"""The time after which a request is given up with default settings: 2 + 4 + 8 s."""


class World:
    """A client and servers, each of which answers all but the realms in ``silent``; one in ``dead`` answers nothing."""

    def __init__(self, servers: int = 1, status: bool = True, **settings: object) -> None:
        self.clock = VirtualClock()
        hosts = [{"host": f"127.0.0.{each + 1}", "secret": SECRET} for each in range(servers)]
        self.settings = Radius.model_validate({"servers": hosts, "nas_identifier": "bng-1", **settings})
        self.client = RadiusClient(
            self.settings, self.clock, self.transmit, random=seeded(5), wall=lambda: 1000 + self.clock.now()
        )
        self.seen: list[tuple[float, int, bytes]] = []
        self.silent: set[bytes] = set()
        self.dead: set[int] = set()
        self.knows_status = status
        self.delay_s = 0.001
        self.verdicts: dict[int, list[Verdict]] = {}
        self.questions = 0

    def transmit(self, server: int, accounting: bool, channel: int, data: bytes) -> None:
        self.seen.append((self.clock.now(), server, data))
        if server in self.dead:
            return
        users = values(data, 1)
        unknown = data[0] == STATUS_SERVER and not self.knows_status
        if unknown or (users and realm(users[0]) in self.silent):
            return
        answer = signed(data, 5 if accounting else 2, [])
        self.clock.call_later(self.delay_s, lambda: self.client.received(server, accounting, channel, answer))

    def ask(self, user: bytes = b"alice", session: int = 1, line: int = 1) -> int:
        """Start a login of a session; return its number in ``verdicts``."""
        self.questions += 1
        number = self.questions
        self.verdicts[number] = []
        question = Question(Credentials(user, password=b"%d" % number), session, f"s{session}", Line(1, line), MAC)
        self.client.authenticate(question, self.verdicts[number].append)
        return number

    def account(self, user: bytes) -> None:
        session = Session(7, Line(1, 1), MAC, 1)
        self.client.account(Record(Kind.INTERIM, user.decode(), user, session, int(1000 + self.clock.now())))

    def sent(self, user: bytes) -> list[tuple[float, int]]:
        """Return (time in s, server) of each packet that was sent about a user."""
        return [(at, server) for at, server, data in self.seen if user in values(data, 1)]


def realm(user: bytes) -> bytes:
    return user.rpartition(b"@")[2] if b"@" in user else b""


# A session that renegotiates.


def test_a_session_has_one_login_under_way_and_one_that_waits() -> None:
    world = World()
    world.silent = {b"away"}
    for _ in range(500):
        world.ask(b"eve@away")
        world.clock.run(0.001)
    assert len(world.sent(b"eve@away")) == 1
    assert len(world.client.logins) == 2
    honest = world.ask(session=2, line=2)
    assert world.sent(b"alice") == [(world.clock.now(), 0)]
    world.clock.run(0.01)
    assert [each.accepted for each in world.verdicts[honest]] == [True]
    # The one under way is given up when it would be repeated, and the last of the others is asked.
    world.silent = set()
    world.clock.run(2)
    assert [each.accepted for each in world.verdicts[500]] == [True]
    assert [len(each) for each in world.verdicts.values()] == [1] * 501
    assert world.client.events["superseded"] == 499
    assert len(world.client.logins) == 0
    assert not world.client.servers.under_way()


def test_renegotiation_costs_a_server_one_request_in_two_seconds() -> None:
    world = World()
    world.silent = {b"away"}
    for number in range(20_000):
        world.ask(b"eve%d@away" % number)
        world.clock.run(0.001)
    assert len(world.seen) <= 11
    assert len(world.client.servers.under_way()) == 1


def test_a_session_that_ends_leaves_nothing_behind() -> None:
    world = World()
    world.dead = {0}
    for session in range(1, 3000):
        world.ask(session=session)
        world.ask(session=session)
        world.client.withdraw(Line(1, 1), session, f"s{session}")
        world.client.withdraw(Line(1, 1), session, f"s{session}")
    assert len(world.client.logins) == 0
    assert not world.client.servers.under_way()
    world.clock.run(60)
    assert not any(world.verdicts.values())  # nobody is there to be told


@pytest.mark.parametrize("changes_user", [False, True])
def test_a_subscriber_gets_in_at_once_while_another_renegotiates(changes_user: bool) -> None:
    """Check a whole gateway whose attacker starts LCP anew after each login, which no server answers."""
    online = Online()
    server = online.server
    answer = server.reply
    server.reply = lambda request: None if b"eve" in values(request, 1)[0] else answer(request)
    attacker = online.dial(9, user="eve", pap=True)
    for turn in range(60):
        if changes_user:
            attacker.account = type(attacker.account)(f"eve{turn}", "x", pap=True)
        attacker._sent_ack = dict.fromkeys(attacker._sent_ack, False)
        attacker._requests = dict.fromkeys(attacker._requests, 0)
        attacker._ask(0xC021)
        online.clock.run(0.01)
    under_way = online.client.servers.under_way()
    assert len(under_way) <= 1
    began = online.clock.now()
    honest = online.dial(1)
    assert honest.state == "up"
    assert honest.up_s - began < 0.1


# Lines that take turns.


def test_a_crowded_line_waits_for_itself_alone() -> None:
    world = World()
    world.dead = {0}
    for session in range(4000):
        world.ask(session=session, line=1)
    assert len(world.client.servers.under_way()) == radius.LOGINS_OF_A_LINE
    for line in range(2, 40):
        world.ask(b"alice%d" % line, session=10_000, line=line)
        assert world.sent(b"alice%d" % line) == [(world.clock.now(), 0)]


def test_many_lines_leave_room_for_one_more() -> None:
    world = World()
    world.dead = {0}
    for line in range(10, 310):
        for session in range(8):
            world.ask(session=session, line=line)
    assert len(world.client.servers.under_way()) == radius.LOGINS
    world.dead = set()
    honest = world.ask(b"bob", session=1, line=1)
    assert world.sent(b"bob") == [(world.clock.now(), 0)]
    world.clock.run(0.01)
    assert [each.accepted for each in world.verdicts[honest]] == [True]
    assert world.client.events["displaced"] == 300 - radius.LOGINS // 8
    world.clock.run(60)
    assert {len(each) for each in world.verdicts.values()} == {1}


def test_the_list_of_those_that_wait_is_bounded_and_refusals_are_counted() -> None:
    world = World()
    world.dead = {0}
    for session in range(20_000):
        world.ask(session=session, line=1)
    assert len(world.client.logins) <= radius.LOGINS_OF_A_LINE + radius.WAITING_LOGINS
    refused = 20_000 - radius.LOGINS_OF_A_LINE - radius.WAITING_LOGINS
    assert world.client.events["overflow"] == refused
    assert sum(map(len, world.verdicts.values())) == refused
    world.ask(b"bob", session=1, line=2)  # the list is full, of another line's
    assert world.sent(b"bob") == [(world.clock.now(), 0)]


# Which server is alive.


@pytest.mark.parametrize("status", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_a_realm_without_a_server_costs_its_own_users_alone(status: bool, beside: bool) -> None:
    world = World(servers=2, status=status)
    world.silent = {b"away"}
    for turn in range(40):
        world.ask(b"eve%d@away" % turn, session=turn, line=turn)
        if beside:
            world.ask(b"alice", session=1000 + turn, line=1000 + turn)
        world.clock.run(1)
    world.clock.run(60)
    late = world.ask(b"bob", session=5000, line=5000)
    world.clock.run(0.01)
    assert world.sent(b"bob")[0][1] == 0
    assert world.verdicts[late][0].accepted
    assert {server for _, server in world.sent(b"alice")} <= {0}
    assert world.client.events["dead"] == 0
    assert world.client.dead_until == [None, None]
    # Each request of that realm was tried at both servers, one after the other.
    assert {server for _, server in world.sent(b"eve0@away")} == {0, 1}


def test_the_other_server_answers_for_a_realm_that_the_first_cannot_reach() -> None:
    world = World(servers=2)
    transmit = world.transmit
    world.silent = {b"away"}

    def only_the_first(server: int, accounting: bool, channel: int, data: bytes) -> None:
        world.silent = {b"away"} if server == 0 else set()
        transmit(server, accounting, channel, data)

    world.client.servers._transmit = only_the_first
    eve = world.ask(b"eve@away")
    world.clock.run(GIVEN_UP_S + 0.1)
    assert world.verdicts[eve][0].accepted
    assert world.client.dead_until == [None, None]


@pytest.mark.parametrize("status", [True, False])
def test_a_dead_server_is_found_and_comes_back(status: bool) -> None:
    world = World(servers=2, status=status, dead_s=30)
    if status:  # it has shown that it knows Status-Server: then one user's silence is enough to find out
        world.silent = {b"away"}
        world.ask(b"eve@away", session=99, line=99)
        world.clock.run(60)
        assert world.client.events["status-answered"] > 0
    world.dead = {0}
    world.ask(b"carol", session=1, line=1)
    if not status:
        world.ask(b"dave", session=2, line=2)
    world.clock.run(GIVEN_UP_S + 0.1)
    assert world.client.dead_until[0] is not None
    bob = world.ask(b"bob", session=3, line=3)
    world.clock.run(0.01)
    assert world.verdicts[bob][0].accepted
    assert {server for _, server in world.sent(b"bob")} == {1}
    world.dead = set()
    world.clock.run(40)
    for turn in range(3):
        world.ask(b"frank", session=4 + turn, line=4)
        world.clock.run(0.01)
    assert {server for _, server in world.sent(b"frank")} == {0}
    assert world.client.dead_until == [None, None]


def test_a_trial_of_a_dead_server_by_a_silent_realm_does_not_keep_it_dead() -> None:
    world = World(servers=2, dead_s=10)
    world.dead = {0}
    for number in range(2):
        world.ask(b"user%d" % number, session=number, line=number)
    world.clock.run(GIVEN_UP_S + 0.1)
    assert world.client.dead_until[0] is not None
    world.dead, world.silent = set(), {b"away"}
    world.clock.run(11)
    world.ask(b"eve@away", session=50, line=50)  # it is the trial
    world.clock.run(3)
    world.ask(b"bob", session=51, line=51)
    world.clock.run(1)
    assert world.sent(b"bob")[0][1] == 0
    assert world.client.dead_until[0] is None


# Accounting of a realm without a server.


@pytest.mark.parametrize("servers", [1, 2])
def test_records_of_a_realm_without_a_server_delay_no_others(servers: int) -> None:
    world = World(servers=servers)
    world.silent = {b"away"}
    for turn in range(120):
        for each in range(5):
            world.account(b"eve%d@away" % (turn * 5 + each))
        world.account(b"user%d" % turn)
        began = world.clock.now()
        assert world.sent(b"user%d" % turn) == [(began, 0)]
        world.clock.run(1)
    assert len(world.client.queue) == 600
    world.silent = set()
    world.clock.run(300)
    assert len(world.client.queue) == 0
    assert world.client.events["accounted"] == 720


def test_an_accounting_on_waits_for_a_silent_realm_but_not_for_ever() -> None:
    world = World()
    world.silent = {b"away"}
    world.account(b"eve@away")
    world.client.account_gateway(Kind.ON)
    world.account(b"alice")
    world.clock.run(100)
    assert not world.sent(b"alice")
    world.clock.run(3000)
    assert world.sent(b"alice")
    kinds = [int.from_bytes(values(data, 40)[0], "big") for _, _, data in world.seen]
    assert kinds.index(7) < len(kinds) - 1


# A machine.


class Machine(RuleBasedStateMachine):
    """Sessions that ask at any time, on lines, with users of realms; servers and realms that go and come back.

    There is little room, so that a crowd takes all of it, but a place for each line that asks for one login.
    """

    MOST, OF_A_LINE, WAITING = 40, 10, 30

    @initialize(servers=st.integers(1, 3), status=st.booleans())
    def begin(self, servers: int, status: bool) -> None:
        self.world = World(servers=servers, status=status)
        self.world.client.logins = LoginQueue(self.MOST, self.OF_A_LINE, self.WAITING)
        self.honest = 100_000
        self.ever_dead: set[int] = set()

    @rule(
        session=st.integers(1, 6),
        line=st.integers(1, 6),
        user=st.sampled_from([b"eve@a", b"eve@b", b"mallory", b"alice"]),
        times=st.integers(1, 40),
    )
    def ask(self, session: int, line: int, user: bytes, times: int) -> None:
        for _ in range(times):
            self.world.ask(user, session, line)

    @rule(session=st.integers(1, 6), line=st.integers(1, 6))
    def end(self, session: int, line: int) -> None:
        self.world.client.withdraw(Line(1, line), session, f"s{session}")

    @rule(line=st.integers(1, 6), sessions=st.integers(1, 60))
    def crowd(self, line: int, sessions: int) -> None:
        for session in range(1000, 1000 + sessions):
            self.world.ask(b"eve@a", session, line)

    @rule(user=st.sampled_from([b"eve@a", b"alice"]))
    def account(self, user: bytes) -> None:
        self.world.account(user)

    @rule(seconds=st.sampled_from([0.0005, 0.01, 1.0, 2.0, 14.0, 31.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.world.clock.run(seconds)

    @rule(silent=st.sets(st.sampled_from([b"a", b"b"])), dead=st.sets(st.integers(0, 2)))
    def change(self, silent: set[bytes], dead: set[int]) -> None:
        self.world.silent, self.world.dead = silent, dead
        self.ever_dead |= dead

    @rule()
    def honest_login(self) -> None:
        """Check that the login of a new line is sent at once, whatever logins the other lines have under way."""
        self.honest += 1
        user = b"honest%d" % self.honest
        self.world.ask(user, self.honest, self.honest)
        assert [at for at, _ in self.world.sent(user)] == [self.world.clock.now()]

    @invariant()
    def one_request_of_a_session(self) -> None:
        if not hasattr(self, "world"):
            return
        requests = [each for each in self.world.client.servers.under_way() if not each.accounting]
        sessions = Counter((values(each.wire, 5)[0], values(each.wire, 87)[0]) for each in requests)
        assert not sessions or max(sessions.values()) == 1
        assert len(requests) == self.world.client.logins.under_way <= self.MOST
        lines = Counter(values(each.wire, 87)[0] for each in requests)
        assert not lines or max(lines.values()) <= self.OF_A_LINE

    @invariant()
    def bounded_and_answered_once(self) -> None:
        if not hasattr(self, "world"):
            return
        logins = self.world.client.logins
        assert logins.waiting <= self.WAITING + self.MOST
        assert len(logins) <= 2 * self.MOST + self.WAITING
        assert all(len(each) <= 1 for each in self.world.verdicts.values())

    @invariant()
    def a_server_that_lives_is_not_dead(self) -> None:
        """Check that a server that answers Status-Server is not marked as dead although it is silent about realms."""
        if not hasattr(self, "world") or not self.world.knows_status or len(self.world.client.dead_until) < 2:
            return
        alive = [until for server, until in enumerate(self.world.client.dead_until) if server not in self.ever_dead]
        assert alive == [None] * len(alive)

    def teardown(self) -> None:
        """Check that no login or request is left after the servers have recovered, and that every record has been delivered."""
        if not hasattr(self, "world"):
            return
        self.world.silent, self.world.dead = set(), set()
        self.world.clock.run(300)
        assert len(self.world.client.logins) == 0
        assert not self.world.client.servers.under_way()
        assert len(self.world.client.queue) == 0


class Turns(RuleBasedStateMachine):
    """The queue alone, with little room, so that all of it is taken often."""

    MOST, OF_A_LINE, WAITING = 4, 2, 5

    def __init__(self) -> None:
        super().__init__()
        self.queue = LoginQueue(self.MOST, self.OF_A_LINE, self.WAITING)
        self.state: dict[Login, str] = {}

    def lose(self, login: Login, was: str) -> None:
        assert self.state.pop(login) == was

    def lines(self, state: str) -> Counter[object]:
        return Counter(login.line for login, each in self.state.items() if each == state)

    @rule(line=st.integers(1, 6), session=st.integers(1, 4))
    def offer(self, line: int, session: int) -> None:
        login = Login(line, session)
        self.state[login] = "waits"
        for lost, _ in self.queue.offer(login):
            self.lose(lost, "waits")

    @rule()
    def take(self) -> None:
        before, waiting = self.lines("under way"), self.lines("waits")
        blocked = Counter(
            login.line for login, each in self.state.items()
            if each == "waits" and self.queue.of_session(login.line, login.session) is not None
        )  # fmt: skip
        could = [line for line in waiting if waiting[line] > blocked[line] and before[line] < self.OF_A_LINE]
        found = self.queue.take()
        if found is None:
            full = sum(before.values()) == self.MOST
            assert not could or (full and (all(before[line] for line in could) or max(before.values()) < 2))
            return
        login, loser = found
        if loser is not None:
            self.lose(loser, "under way")
            assert not before[login.line]
            assert before[loser.line] == max(before.values()) > 1
        assert not before[login.line] or all(before[line] for line in could), "a line with none is first"
        assert self.state[login] == "waits"
        self.state[login] = "under way"

    @rule(number=st.integers(0, 9))
    def done(self, number: int) -> None:
        under_way = [login for login, each in self.state.items() if each == "under way"]
        if under_way:
            login = under_way[number % len(under_way)]
            self.queue.done(login)
            self.lose(login, "under way")

    @rule(line=st.integers(1, 6), session=st.integers(1, 4))
    def withdraw(self, line: int, session: int) -> None:
        login = self.queue.withdraw(line, session)
        self.state = {
            each: state for each, state in self.state.items()
            if state == "under way" or (each.line, each.session) != (line, session)
        }  # fmt: skip
        assert (login is None) or self.state[login] == "under way"

    @invariant()
    def counts(self) -> None:
        under_way = [login for login, each in self.state.items() if each == "under way"]
        assert self.queue.under_way == len(under_way) <= self.MOST
        assert len({(login.line, login.session) for login in under_way}) == len(under_way)
        assert max(self.lines("under way").values(), default=0) <= self.OF_A_LINE
        assert len(self.queue) == len(self.state)
        assert self.queue.waiting <= self.WAITING + self.MOST
        sessions = Counter((login.line, login.session) for login, each in self.state.items() if each == "waits")
        assert max(sessions.values(), default=0) <= 1
        assert set(self.queue._lines) == {login.line for login in self.state}


TestTurns = Turns.TestCase
TestTurns.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestLogins = Machine.TestCase
TestLogins.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


def test_status_server_is_signed_and_names_no_user() -> None:
    """Check that Status-Server has a Message-Authenticator, and no attribute of a user or a password (RFC 5997, section 3)."""
    world = World(servers=2)
    world.silent = {b"away"}
    world.ask(b"eve@away")
    world.account(b"eve@away")
    world.clock.run(3)
    packets = [data for _, _, data in world.seen if data[0] == STATUS_SERVER]
    assert len(packets) == 2
    for each in packets:
        assert [kind for kind, _ in decode(each)] == [80, 32] or [kind for kind, _ in decode(each)] == [32, 80]
    waived = World(servers=2, status_server=False)
    waived.silent = {b"away"}
    waived.ask(b"eve@away")
    waived.clock.run(60)
    assert not [data for _, _, data in waived.seen if data[0] == STATUS_SERVER]
    alone = World()
    alone.silent = {b"away"}
    alone.ask(b"eve@away")
    alone.clock.run(60)
    assert {data[0] for _, _, data in alone.seen} == {1}
