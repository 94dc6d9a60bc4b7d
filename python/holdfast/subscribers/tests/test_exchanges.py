"""Exchanges with any peer are bounded: in packets, and in time until the session is open or has ended.

Hypothesis makes up exchanges of RFC 1661's packets, and lists have peers' habits; :mod:`exchanges` has the peer and the law.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.subscribers import session
from holdfast.subscribers.tests.exchanges import (
    ACK,
    CHAP,
    CODE_REJECT,
    CONTROL,
    ECHO,
    HONEST,
    IPCP,
    IPV6CP,
    LCP,
    MAX_CONFIGURE,
    MOST_PACKETS,
    NAK,
    PAP,
    PROTOCOL_REJECT,
    REACTIONS,
    REJECT,
    REQUEST,
    SETUP_S,
    TERMINATE,
    TO_REQUESTS,
    Peer,
    World,
    cooperative,
    open_,
    read_options,
    sent,
    violations,
    write_options,
)

_KEYS = [(each, code) for each in CONTROL for code in (REQUEST, REQUEST, REQUEST, ACK, NAK, REJECT, TERMINATE, CODE_REJECT)] + [
    (LCP, PROTOCOL_REJECT), (LCP, ECHO), (CHAP, 1), (CHAP, 3), (CHAP, 4), (PAP, 2),
]  # fmt: skip
"""What the gateway sends, requests more often."""

_VALUES = st.one_of(
    st.binary(max_size=6), st.sampled_from([b"\xc0\x23", b"\xc2\x23\x05", bytes(4), bytes(8), b"\x23\x28"])
)
_OPTIONS = st.lists(st.tuples(st.sampled_from([1, 3, 5, 7, 129, 131, 200]), _VALUES), max_size=4)


class Exchange(RuleBasedStateMachine):
    """A peer whose habits change, and that says things that nobody asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.peer: Peer

    @initialize(
        habits=st.dictionaries(st.sampled_from(_KEYS), st.sampled_from(REACTIONS), max_size=3),
        max_payload=st.sampled_from([None, 1500]),
    )
    def begin(self, habits: dict[tuple[int, int], str], max_payload: int | None) -> None:
        """Open a session for a peer that cooperates except for the reactions in ``habits``."""
        self.peer = Peer(self.world, max_payload=max_payload)
        self.peer.reactions = cooperative() | habits
        self.peer.discover()

    @rule(key=st.sampled_from(_KEYS), reaction=st.sampled_from(REACTIONS))
    def has_a_habit(self, key: tuple[int, int], reaction: str) -> None:
        """Set how the peer reacts to packets of this protocol and code from now on."""
        self.peer.reactions[key] = reaction

    @rule(key=st.sampled_from(_KEYS))
    def falls_silent(self, key: tuple[int, int]) -> None:
        """Make the peer ignore packets of this protocol and code from now on."""
        self.peer.reactions.pop(key, None)

    @rule(protocol=st.sampled_from(CONTROL), options=_OPTIONS)
    def asks(self, protocol: int, options: list[tuple[int, bytes]]) -> None:
        """Set the options that the peer asks for, and send its Configure-Request."""
        self.peer.mine[protocol] = options
        self.peer.request(protocol)

    @rule(
        protocol=st.sampled_from([*CONTROL, CHAP, PAP]),
        code=st.integers(0, 12),
        last=st.booleans(),
        data=st.binary(max_size=20),
    )
    def says(self, protocol: int, code: int, last: bool, data: bytes) -> None:
        """Send a packet as the peer, with the Identifier of the last packet received and, with ``last``, that packet's data."""
        heard = self.peer.last.get(protocol, bytes(4))
        self.peer.say(protocol, code, heard[1], heard[4:] if last else data)

    @rule()
    def logs_in_by_pap(self) -> None:
        """Send the peer's PAP login."""
        self.peer.log_in_by_pap()

    @rule()
    def redials(self) -> None:
        """Start the peer's PPPoE discovery anew."""
        self.peer.discover()

    @rule(seconds=st.sampled_from([0.001, 0.1, 1.0, 3.0, 10.0, 40.0]))
    def waits(self, seconds: float) -> None:
        """Run the virtual clock for ``seconds``."""
        self.world.clock.run(seconds)

    @invariant()
    def the_law_holds(self) -> None:
        """Check that the gateway has broken no rule of :func:`violations` so far."""
        if hasattr(self, "peer"):
            self.world.clock.run(0.05)
            assert violations(self.peer) == []

    def teardown(self) -> None:
        """Check that each negotiation ends or opens, and that no session is left after the peer has fallen silent."""
        if hasattr(self, "peer"):
            self.world.clock.run(50)
            assert violations(self.peer) == []
            self.peer.reactions = {}
            self.world.clock.run(300)
            assert not self.world.gateway.sessions
            assert not self.world.plane.table
            assert self.world.gateway.pool_use() == World().gateway.pool_use()


TestExchange = Exchange.TestCase
TestExchange.settings = settings(
    max_examples=150, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def met(reactions: dict[tuple[int, int], str], *, seconds: float = SETUP_S + 15, **mine: object) -> Peer:
    """Return a peer after ``seconds`` that cooperates except for ``reactions``; ``mine``: its own options."""
    peer = World().peer(reactions=cooperative() | reactions)
    peer.world.clock.run(seconds)
    return peer


@pytest.mark.parametrize("protocol", CONTROL)
@pytest.mark.parametrize("habit", TO_REQUESTS)
def test_a_habit_of_answering_requests(protocol: int, habit: str) -> None:
    assert not violations(met({(protocol, REQUEST): habit}))


@pytest.mark.parametrize("protocol", CONTROL)
@pytest.mark.parametrize("habit", [each for each in REACTIONS if each not in ("log_in", "log_in_wrongly")])
def test_a_habit_of_answering_naks_and_rejects(protocol: int, habit: str) -> None:
    """Check a peer that asks for options that it cannot have, and answers the gateway's Naks and Rejects by ``habit``."""
    peer = World().peer(reactions=cooperative() | {(protocol, NAK): habit, (protocol, REJECT): habit})
    peer.mine[protocol] = {
        LCP: [(1, b"\x23\x28"), (5, bytes(4)), (7, b"")],
        IPCP: [(3, b"\7\7\7\7"), (2, b"\0\x2d\x0f\1")],
    }.get(protocol, [(1, bytes(8)), (2, b"\0\x4f")])
    peer.world.clock.run(SETUP_S + 15)
    assert not violations(peer)


def test_the_law_and_the_gateway_count_alike() -> None:
    assert MOST_PACKETS == session.MOST_PACKETS


def test_each_method_is_offered_once_and_then_the_link_is_terminated() -> None:
    peer = met({(LCP, REQUEST): "nak_all"})
    offered = [
        dict(read_options(packet[4:]))[3]
        for _, protocol, packet in peer.heard
        if (protocol, packet[0]) == (LCP, REQUEST)
    ]
    assert offered == [b"\xc2\x23\x05", b"\xc0\x23"]
    assert sent(peer)["c021", TERMINATE] == 1
    assert peer.session == 0
    assert not peer.world.gateway.sessions


@pytest.mark.parametrize(
    ("order", "offered"),
    [(["pap", "chap"], [b"\xc0\x23", b"\xc2\x23\x05"]), (["pap"], [b"\xc0\x23"]), (["chap"], [b"\xc2\x23\x05"])],
)
def test_a_peer_that_wants_eap_is_offered_what_there_is(order: list[str], offered: list[bytes]) -> None:
    peer = World(authentication=order).peer(reactions=cooperative() | {(LCP, REQUEST): "nak_method"})
    peer.world.clock.run(10)
    requests = [packet for _, protocol, packet in peer.heard if (protocol, packet[0]) == (LCP, REQUEST)]
    assert [dict(read_options(each[4:]))[3] for each in requests] == offered
    assert peer.session == 0


def test_a_peer_that_rejects_authentication_gets_no_session() -> None:
    peer = met({(LCP, REQUEST): "reject_all"})
    assert sent(peer)["c021", REQUEST] == 1
    assert peer.session == 0


@pytest.mark.parametrize("habit", ["nak_first", "nak_magic", "nak_empty", "nak_unknown"])
def test_a_peer_that_naks_for_ever_costs_ten_requests_at_most(habit: str) -> None:
    peer = met({(LCP, REQUEST): habit})
    assert 2 <= sent(peer)["c021", REQUEST] <= MAX_CONFIGURE
    assert peer.session == 0


@pytest.mark.parametrize(("kind", "value"), [(1, b"\x02\x40"), (1, b"\xff\xff"), (5, b"\x0a\x0b\x0c\x0d")])
def test_after_five_naks_of_an_option_we_do_without_it(kind: int, value: bytes) -> None:
    """Check that a peer comes online that accepts all options but MRU or magic number, which it never accepts."""
    habits = cooperative()
    acknowledge = habits.pop((LCP, REQUEST))
    peer = World().peer(reactions=habits)
    while kind in dict(read_options(peer.last[LCP][4:])) and peer.world.clock.now() < 1:
        peer.say(LCP, NAK, peer.last[LCP][1], write_options([(kind, value)]))
        peer.world.clock.run(0.002)
    peer.reactions[LCP, REQUEST] = acknowledge
    peer.world.clock.run(10)
    asked_for = [
        kind in dict(read_options(p[4:])) for _, protocol, p in peer.heard if (protocol, p[0]) == (LCP, REQUEST)
    ]
    assert asked_for == [True] * 5 + [False] * 2
    assert open_(peer)


def test_a_looped_line_does_not_open() -> None:
    peer = World().peer(reactions={(each, code): "loop" for each in (*CONTROL, CHAP, PAP) for code in range(1, 13)})
    peer.world.clock.run(45)
    assert not violations(peer)
    assert peer.session == 0
    assert len(peer.heard) < 40


def test_a_subscriber_without_any_network_protocol_is_not_kept() -> None:
    peer = met({(IPCP, REQUEST): "protocol_reject", (IPV6CP, REQUEST): "protocol_reject"}, seconds=1)
    assert peer.session == 0
    established = World().peer(reactions=cooperative())
    established.world.clock.run(1)
    assert open_(established)
    for each in (IPCP, IPV6CP):
        established.say(each, TERMINATE, 9, b"")
    established.world.clock.run(5)
    assert not established.world.gateway.sessions


def test_a_new_negotiation_after_the_login_ends_the_session_and_its_forwarding() -> None:
    """Check that a link that goes down ends a session that is installed but not established (section 3.4)."""
    peer = World().peer(reactions=cooperative() | {(IPCP, REQUEST): "request", (IPV6CP, REQUEST): "request"})
    peer.mine[IPCP] = [(3, b"\x64\x40\0\2")]
    peer.world.clock.run(0.5)
    assert peer.world.plane.table
    peer.reactions = {}
    peer.request(LCP)
    peer.world.clock.run(0.5)
    assert not peer.world.plane.table
    assert not peer.world.gateway.sessions
    assert peer.world.gateway.pool_use() == World().gateway.pool_use()


def test_the_deadline_is_one_whatever_the_peer_does() -> None:
    """Check that a peer that slowly negotiates the link anew at each challenge cannot move the deadline."""
    peer = World().peer(reactions={(LCP, REQUEST): "both", (LCP, NAK): "obey"})
    for _ in range(12):
        peer.world.clock.run(3.1)
        peer.request(LCP)
    peer.world.clock.run(SETUP_S + 7 - 12 * 3.1)
    assert not peer.world.gateway.sessions


@pytest.mark.parametrize("code", [REQUEST, CODE_REJECT])
def test_a_peer_that_does_not_know_lcps_codes_is_given_up(code: int) -> None:
    peer = World().peer()
    peer.say(LCP, CODE_REJECT, 1, bytes((code, 1, 0, 4)))
    peer.world.clock.run(8)
    assert not peer.world.gateway.sessions


def test_a_peer_that_has_not_the_logins_protocol_is_given_up_at_once() -> None:
    peer = met({(CHAP, 1): "protocol_reject"}, seconds=1)
    assert sent(peer)["c223", 1] == 1
    assert peer.session == 0


def test_every_peer_that_is_honest_at_last_comes_online() -> None:
    """Check a peer that first rejects, Naks or loses all that the RFC allows, and then behaves as an honest peer."""
    for protocol in CONTROL:
        for habit in ("acknowledge_other", "acknowledge_late", "nak_empty", "nak_unknown", "nak_first", "unknown_code"):
            peer = World().peer(reactions=cooperative() | {(protocol, REQUEST): habit})
            peer.mine = {each: list(HONEST[each]) for each in CONTROL}
            peer.world.clock.run(0.0045)
            peer.reactions = cooperative()
            peer.world.clock.run(12)
            assert open_(peer), (protocol, habit)


def test_an_exchange_that_opens_late_still_opens() -> None:
    """Check that IPV6CP opens if the peer starts it a minute after IPCP, when the gateway has given it up."""
    peer = World().peer(reactions={key: habit for key, habit in cooperative().items() if key != (IPV6CP, REQUEST)})
    peer.world.clock.run(35)
    assert open_(peer)
    assert sent(peer)["8057", REQUEST] == MAX_CONFIGURE
    peer.reactions = cooperative()
    peer.request(IPV6CP)
    peer.world.clock.run(1)
    [installed] = peer.world.plane.table.values()
    assert installed.ipv6_prefix is not None


def test_protocol_rejects_of_what_never_was_change_nothing() -> None:
    peer = met({}, seconds=1)
    peer.say(LCP, PROTOCOL_REJECT, 1, b"\x80\xfd\1\1\0\4")
    peer.world.clock.run(1)
    assert open_(peer)
