"""Every address and prefix has one owner, whatever is asked for in whatever order; and the books balance after each step."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.subscribers import pools
from holdfast.subscribers.authentication import Answer, Question, Verdict
from holdfast.subscribers.gateway import Gateway
from holdfast.subscribers.grants import Grants, Refusal
from holdfast.subscribers.plane import Line, Rates
from holdfast.subscribers.pools import Prefixes
from holdfast.subscribers.session import Grant, PppSession
from holdfast.subscribers.subscriber import Account, Subscriber
from holdfast.subscribers.tests.worlds import MemoryPlane, VirtualClock, configuration, seeded

SMALL = {
    "pools": {"default": "100.64.0.0/28", "other": "100.65.0.0/30"},
    "ipv6": {"prefixes": "2001:db8:1::/60", "delegated": "2001:db8:8000::/52", "delegated_length": 56},
}
OWN = (IPv4Address("192.0.2.1"), IPv4Address("100.64.0.9"), IPv6Address("2001:db8:ffff::1"))

_FOUR = [
    *(f"100.64.0.{each}" for each in (0, 1, 2, 3, 9, 15)),
    "100.65.0.1",
    "198.51.100.7",
    "192.0.2.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "127.0.0.1",
    "169.254.1.1",
    "240.0.0.1",
]
_SIX = [
    "2001:db8:1::/64",
    "2001:db8:1:f::/64",
    "2001:db8:2::/64",
    "2001:db8:8000::/64",
    "2001:db8:ffff::/64",
    "::/64",
    "fe80::/64",
    "2001:db8:1::/60",
    "ff05::/64",
]
_DELEGATED = [
    "2001:db8:8000::/56",
    "2001:db8:8000:100::/56",
    "2001:db8:8000:100::/60",
    "2001:db8:8000::/55",
    "2001:db8:8000::/52",
    "2001:db8:8000::/48",
    "2001:db8::/32",
    "2001:db8:2::/48",
    "2001:db8:2::/64",
    "2001:db8:1::/64",
    "2001:db8:ffff::/48",
    "8000::/1",
    "::/1",
    "2000::/3",
]

VERDICTS = st.builds(
    Verdict,
    st.just(True),
    ipv4=st.none() | st.sampled_from([IPv4Address(each) for each in _FOUR]),
    ipv4_pool=st.sampled_from(["", "", "default", "other", "nowhere"]),
    ipv6_prefix=st.none() | st.none() | st.sampled_from([IPv6Network(each) for each in _SIX]),
    delegated=st.none() | st.none() | st.sampled_from([IPv6Network(each) for each in _DELEGATED]),
    rates=st.none() | st.builds(Rates, st.none() | st.sampled_from([1, 8, 10**9, 1 << 63]), st.none()),
    user=st.sampled_from([b"", b"alice", b"bob"]),
)


class Registry(RuleBasedStateMachine):
    """Sessions that take and give back, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.configuration = configuration(**SMALL)
        self.grants = Grants(self.configuration, OWN)
        self.empty = self.grants.use()
        self.given: dict[int, Grant] = {}
        clock = VirtualClock()
        self.gateway = Gateway(self.configuration, MemoryPlane(clock), clock, _Refuses(), random=seeded(1))

    def session(self, number: int) -> PppSession:
        from holdfast.subscribers.pppoe import SetupRequest

        request = SetupRequest(Line(1, 1, number), number.to_bytes(6, "big"), b"", 1492, b"", b"", b"", ())
        made = PppSession(self.gateway, number, request, "id", 1492)
        made.user = b"carol"
        return made

    @rule(number=st.integers(1, 24), verdict=VERDICTS)
    def takes(self, number: int, verdict: Verdict) -> None:
        found = self.grants.take(self.session(number), verdict)
        if number in self.given:
            assert isinstance(found, Refusal)
        elif isinstance(found, Grant):
            self.given[number] = found
            assert verdict.ipv4 in (None, found.session.ipv4)
            assert verdict.ipv6_prefix in (None, found.session.ipv6_prefix)
            assert verdict.delegated in (None, found.session.delegated)
            assert None not in (found.session.ipv4, found.session.ipv6_prefix, found.session.delegated)
        else:
            assert found.holders <= self.given.keys() | {0}

    @rule(number=st.integers(1, 24))
    def gives_back(self, number: int) -> None:
        """Release a session's grant twice; the second call must have no effect."""
        self.given.pop(number, None)
        self.grants.release(number)
        self.grants.release(number)

    @rule(number=st.integers(1, 24), other=st.integers(1, 24))
    def restores(self, number: int, other: int) -> None:
        """Restore the grant of session ``other`` as that of ``number``, as from a file that may be wrong."""
        known = self.given.get(other)
        if known is None or number in self.given:
            return
        whole = known.session
        moved = type(whole)(**{**vars(whole), "session_id": number})
        assert self.grants.restore(moved, b"carol") is not None
        if number != other:
            self.gives_back(other)
            assert self.grants.restore(moved, b"carol") is None
            self.given[number] = Grant(b"carol", moved, ())

    @invariant()
    def the_books_balance(self) -> None:
        assert self.grants.violations() == []
        assert self.grants.owners == self.given.keys()

    @invariant()
    def nothing_is_anothers(self) -> None:
        wholes = [each.session for each in self.given.values()]
        assert len({each.ipv4 for each in wholes}) == len(wholes)
        for at, one in enumerate(wholes):
            assert one.ipv4 not in OWN
            for other in wholes[:at]:
                for mine in (one.ipv6_prefix, one.delegated):
                    for theirs in (other.ipv6_prefix, other.delegated):
                        assert mine is not None
                        assert theirs is not None
                        assert not mine.overlaps(theirs)

    def teardown(self) -> None:
        """Check that all pools are free after every session has released its grant, and that new sessions get grants."""
        for number in list(self.given):
            self.gives_back(number)
        assert self.grants.use() == self.empty
        found = [self.grants.take(self.session(number), Verdict(True)) for number in range(1, 12)]
        assert all(isinstance(each, Grant) for each in found)  # 16 less two edges, the gateway's, and the plane's: 12


class _Refuses:
    def authenticate(self, question: Question, answer: Answer) -> None:
        answer(Verdict(False))


TestRegistry = Registry.TestCase
TestRegistry.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_pool_remembers_no_more_than_its_users_and_some_that_came_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a value that came back is not given at once again, and that memory does not grow with each session."""
    monkeypatch.setattr(pools, "MOST_RETURNED", 16)
    pool = Prefixes(IPv6Network("2001:db8::/29"), 56)
    held = [pool.take() for _ in range(5)]
    given = []
    for _ in range(1000):
        value = pool.take()
        assert value is not None
        assert value not in held
        pool.give_back(value)
        given.append(value)
    assert len(set(given)) == 16
    assert all(len(set(given[at : at + 16])) == 16 for at in range(0, 900, 7)), (
        "the one that waited longest comes first"
    )
    assert len(pool._returned) <= 16
    assert pool.used == 5


def test_a_pool_passes_over_what_is_taken_of_it_and_gives_it_later() -> None:
    pool = Prefixes(IPv6Network("2001:db8::/52"), 56)
    taken = IPv6Network("2001:db8:0:200::/55")

    def obstacle(prefix: IPv6Network) -> IPv6Network | None:
        return IPv6Network("2001:db8:0:300::/56") if taken.overlaps(prefix) else None

    given = [pool.take(obstacle) for _ in range(15)]
    numbers = [None if each is None else int(each.network_address) >> 72 & 0xFF for each in given]
    assert numbers == [0, 1, *range(4, 16), None]
    pool.give_back(IPv6Network("2001:db8:0:500::/56"))
    assert pool.take(obstacle) == IPv6Network("2001:db8:0:500::/56")
    assert [pool.take(), pool.take(), pool.take()] == [
        IPv6Network("2001:db8:0:200::/56"), IPv6Network("2001:db8:0:300::/56"), None,
    ]  # fmt: skip


class World:
    """Users whose verdicts are the test's, on lines and hosts of its choice."""

    def __init__(self, verdicts: dict[bytes, Verdict], **changes: object) -> None:
        self.clock, self.verdicts = VirtualClock(), verdicts
        self.plane = MemoryPlane(self.clock)
        self.gateway = Gateway(
            configuration(**changes), self.plane, self.clock, self, random=seeded(1), wall=self.clock.now
        )
        self.gateway.start()

    def authenticate(self, question: Question, answer: Answer) -> None:
        answer(self.verdicts.get(question.credentials.user, Verdict(True)))

    def dials(self, user: str, line: int, host: int) -> Subscriber:
        place, mac = Line(1, 100, line), bytes.fromhex("0200000001") + bytes((host,))
        made = Subscriber(
            Account(user, "x"), mac, self.clock, lambda frame: self.plane.from_line(place, frame), seed=host
        )
        self.plane.hosts[place, mac] = made.receive
        made.dial()
        for _ in range(12):
            self.clock.run(0.25)
            assert self.gateway.violations() == []
        return made


STATIC = {b"static": Verdict(True, ipv4=IPv4Address("198.51.100.7"))}


@pytest.mark.parametrize(
    ("setting", "user", "line", "host", "outcome"),
    [
        ("off", "static", 1, 2, "replaces"),  # its home gateway was changed for another one
        ("off", "static", 2, 1, "replaces"),  # its home gateway was moved
        ("off", "static", 2, 2, "refused"),
        ("off", "other", 2, 2, "both"),
        ("replace", "static", 2, 2, "replaces"),
        ("replace", "other", 2, 2, "both"),
        ("refuse", "static", 2, 2, "refused"),
        ("refuse", "static", 1, 2, "replaces"),
    ],
)
def test_a_second_login_with_an_address_of_its_own(setting: str, user: str, line: int, host: int, outcome: str) -> None:
    world = World(STATIC, single_session=setting)
    first = world.dials("static", 1, 1)
    number = first.session
    assert first.state == "up"
    second = world.dials(user, line, host)
    assert (number in world.gateway.sessions) == (outcome != "replaces")
    assert (second.state == "up") == (outcome != "refused")
    mine = [each for each in world.plane.table.values() if each.ipv4 == IPv4Address("198.51.100.7")]
    assert len(mine) == 1
    if outcome == "refused":
        assert "use" in second.reason or "has a session" in second.reason


@pytest.mark.parametrize(("setting", "sessions"), [("off", 2), ("replace", 1), ("refuse", 1)])
def test_how_many_sessions_a_user_has(setting: str, sessions: int) -> None:
    world = World({}, single_session=setting)
    first, second = world.dials("alice", 1, 1), world.dials("alice", 2, 2)
    assert len(world.plane.table) == sessions
    assert (first.state == "up") == (setting != "replace")
    assert (second.state == "up") == (setting != "refuse")
    third = world.dials("bob", 3, 3)
    assert third.state == "up"


def test_an_address_of_another_user_is_not_to_be_had_even_from_the_same_line() -> None:
    both = {**STATIC, b"thief": STATIC[b"static"]}
    for setting in ("off", "replace", "refuse"):
        world = World(both, single_session=setting)
        first, second = world.dials("static", 1, 1), world.dials("thief", 1, 2)
        assert (first.state, second.state) == ("up", "failed")


def test_the_old_session_keeps_its_address_if_the_plane_does_not_let_it_go() -> None:
    world = World(STATIC)
    first = world.dials("static", 1, 1)
    assert first.state == "up"
    world.plane.failing = True
    second = world.dials("static", 1, 2)
    assert second.state == "failed"
    world.plane.failing = False
    world.clock.run(2)
    again = world.dials("static", 1, 2)
    assert again.state == "up"
    assert len(world.plane.table) == 1


@pytest.mark.parametrize(
    "bad",
    [
        Verdict(True, ipv6_prefix=IPv6Network("2001:db8:77::/56")),
        Verdict(True, delegated=IPv6Network("2001:db8::/32")),  # all pools are in it
        Verdict(True, delegated=IPv6Network("2000::/3")),
        Verdict(True, delegated=IPv6Network("8000::/1")),  # so are multicast and link-local addresses
        Verdict(True, ipv4=IPv4Address("100.64.255.255")),  # a pool's broadcast address
        Verdict(True, ipv4=IPv4Address("100.64.0.1")),
        Verdict(True, ipv4=IPv4Address("203.0.113.1")),  # the user plane's own
        Verdict(True, ipv4=IPv4Address("169.254.3.4")),
        Verdict(True, rates=Rates(7, None)),
        Verdict(True, rates=Rates(None, 1 << 63)),
    ],
)
def test_a_verdict_that_cannot_be_is_one_users_refusal(bad: Verdict, caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    MemoryPlane.addresses = (IPv4Address("203.0.113.1"),)  # type: ignore[attr-defined]
    try:
        world = World({b"mallory": bad})
    finally:
        del MemoryPlane.addresses  # type: ignore[attr-defined]
    assert clock.now() == 0
    assert world.dials("mallory", 1, 1).state == "failed"
    assert world.gateway.events["not-served"] == 1
    assert "user b'mallory' is refused: not served here: " in caplog.text
    assert world.dials("alice", 2, 2).state == "up"


def test_a_prefix_inside_a_pool_is_passed_over_by_the_pool() -> None:
    """Check that a pool skips its prefixes inside a /40 whose user has logged in before."""
    wide = IPv6Network("2001:db8:8000::/40")
    world = World({b"wide": Verdict(True, delegated=wide)})
    owner = world.dials("wide", 1, 1)
    others = [world.dials("alice", number, number) for number in range(2, 6)]
    assert {each.state for each in (owner, *others)} == {"up"}
    given = [each.delegated for each in world.plane.table.values() if each.delegated != wide]
    assert len(given) == 4
    assert not any(each is None or each.overlaps(wide) for each in given)
    owner.hang_up()
    world.clock.run(1)
    last = world.dials("wide", 7, 7)
    assert last.state == "up"
    # The other order: what is in it is another's.
    world = World({b"wide": Verdict(True, delegated=wide)})
    assert world.dials("alice", 1, 1).state == "up"
    assert world.dials("wide", 2, 2).state == "failed"
    assert world.gateway.events["in-use"] == 1
