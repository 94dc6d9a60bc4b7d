"""Ends that lose their connections get new ones through the firewall as without it (RFC 9293, 3.5.1 and 3.10.7; RFC 5961, 4)."""

from __future__ import annotations

import ipaddress
import random
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast._core import Program
from holdfast.apps.firewall import program as names
from holdfast.apps.firewall.conftest import Standalone
from holdfast.apps.firewall.program import Variant
from holdfast.apps.firewall.rules import RuleSet
from holdfast.apps.firewall.tests import packets as make
from holdfast.apps.firewall.tests.ends import Pair, Segment

S, A, F, R = make.SYN, make.ACK, make.FIN, make.RST
INSIDE, OUTSIDE = 1, 2
ADDRESSES = {4: ("10.0.1.1", "203.0.113.9"), 6: ("2001:db8:1::1", "2001:db8:f::9")}
MOST = 6
"""First segments after which a connection fails."""


def rules(*from_zones: str) -> RuleSet:
    return RuleSet.model_validate(
        {
            "zones": {"inside": {}, "outside": {}},
            "ports": [{"port": INSIDE, "zone": "inside"}, {"port": OUTSIDE, "zone": "outside", "senders": "mac"}],
            "bindings": [
                {"port": INSIDE, "mac": "02:00:00:00:00:01", "addresses": [v[0] for v in ADDRESSES.values()]},
                {"port": OUTSIDE, "mac": "02:00:00:00:00:02"},
            ],
            "new_flows_per_source": {"per_s": 10**9, "burst": 10**9},
            "rules": [{"name": zone, "action": "allow", "from": zone} for zone in from_zones],
        }
    )


@dataclass
class Wire:
    """A firewall between an end 0 and an end 1; end 0 is inside unless they are mirrored."""

    firewall: Standalone
    version: int = 4
    mirrored: bool = False
    routes: bool = False
    client_port: int = 5000

    def __post_init__(self) -> None:
        if self.routes:
            for side, pair in enumerate(zip(*ADDRESSES.values(), strict=True)):
                params = {
                    "port": side + 1,
                    "src_mac": make.number(make.mac(9)),
                    "dst_mac": make.number(make.mac(side + 1)),
                }
                for address in pair:
                    names.ROUTES.entry(ipaddress.ip_network(address), names.FORWARD, params).insert(
                        self.firewall.client
                    )

    def frame(self, end: int, segment: Segment) -> tuple[int, bytes]:
        """Return the firewall's port at which the segment of ``end`` arrives, and its frame."""
        side = 1 - end if self.mirrored else end
        ports = (self.client_port, 80) if end == 0 else (80, self.client_port)
        options = b"" if segment.scale is None else make.window_scale(segment.scale)
        tcp = make.tcp(
            *ports, segment.flags, seq=segment.seq, ack=segment.ack, payload=bytes(segment.data), options=options
        )
        src, dst = ADDRESSES[self.version][:: -1 if side else 1]
        packet = make.ip(src, dst, make.TCP, tcp)
        kind = 0x0800 if self.version == 4 else 0x86DD
        return side + 1, make.ethernet(make.mac(2 - side), make.mac(side + 1), kind, packet)

    def __call__(self, end: int, segment: Segment) -> bool:
        """Send a segment of ``end``, and return True if the firewall passes it."""
        return bool(self.firewall.receive(*self.frame(end, segment)))

    def reasons(self, *history: tuple[int, Segment]) -> list[str]:
        """Return the reason of each segment's drop, or "passes"."""
        return [self.firewall.reason(*self.frame(end, segment)) for end, segment in history]


@pytest.fixture(params=["routed", "bridged"])
def variant(request: pytest.FixtureRequest) -> Any:
    """Return the variant of ``firewall.p4``, routed or bridged; a test runs once with each."""
    return request.param


@pytest.fixture(params=[4, 6])
def version(request: pytest.FixtureRequest) -> Any:
    """Return the test's version of IP, 4 or 6; a test runs once with each."""
    return request.param


@pytest.fixture(params=[False, True], ids=["inside", "outside"])
def mirrored(request: pytest.FixtureRequest) -> Any:
    """Return False for a client inside, True for one outside; a test runs once with each."""
    return request.param


@pytest.fixture
def wire(programs: dict[Variant, Program], variant: Variant, version: int, mirrored: bool, executor: str) -> Wire:
    """Return a firewall between two ends, of which only the client's side may begin flows."""
    firewall = Standalone(programs[variant], rules("outside" if mirrored else "inside"), executor)
    return Wire(firewall, version, mirrored, routes=variant == "routed")


C, V = 0, 1  # the client and the server
OPENED = ((C, Segment(S, 99)), (V, Segment(S | A, 999, 100)), (C, Segment(A, 100, 1000)))
AGAIN = (
    (C, Segment(S, 5000)),
    (V, Segment(S | A, 8000, 5001)),
    (C, Segment(A, 5001, 8001, 10)),
    (V, Segment(A, 8001, 5011, 10)),
)


def test_a_server_with_an_old_connection_is_told_and_the_next_attempt_succeeds(wire: Wire) -> None:
    challenged = ((C, Segment(S, 5000)), (V, Segment(A, 42, 17)), (C, Segment(R, 17)))
    assert set(wire.reasons(*challenged, *AGAIN)) == {"passes"}


def test_a_client_that_starts_anew_opens_its_connection_again(wire: Wire) -> None:
    assert set(wire.reasons(*OPENED)) == {"passes"}
    challenged = ((C, Segment(S, 5000)), (V, Segment(A, 1000, 100)), (C, Segment(R, 100)))
    assert set(wire.reasons(*challenged, *AGAIN)) == {"passes"}


def test_so_it_does_if_both_start_anew_or_an_end_has_nothing_there(wire: Wire) -> None:
    assert set(wire.reasons(*OPENED, *AGAIN)) == {"passes"}
    refused = ((C, Segment(S, 700)), (V, Segment(R | A, 0, 701)))
    assert set(wire.reasons(*refused, (C, Segment(S, 5000)), *AGAIN[1:])) == {"passes"}


def test_an_answer_to_an_earlier_first_segment_is_reset_by_its_receiver(wire: Wire) -> None:
    """RFC 9293, section 3.5, figure 8."""
    late = ((C, Segment(S, 90)), (C, Segment(S, 5000)), (V, Segment(S | A, 300, 91)), (C, Segment(R, 91)))
    assert set(wire.reasons(*late, *AGAIN)) == {"passes"}


def test_a_client_that_starts_anew_while_it_opens(wire: Wire) -> None:
    half = (*OPENED[:2], (C, Segment(S, 5000)), (V, Segment(A, 1000, 100)), (C, Segment(R, 100)))
    assert set(wire.reasons(*half, *AGAIN)) == {"passes"}


def test_a_server_that_starts_anew_while_it_is_opened(wire: Wire) -> None:
    again = (
        *OPENED[:2],
        OPENED[0],
        (V, Segment(S | A, 8000, 100)),
        (C, Segment(A, 100, 8001, 10)),
        (V, Segment(A, 8001, 110)),
    )
    assert set(wire.reasons(*again)) == {"passes"}


def test_a_server_that_starts_anew_resets_the_connection(wire: Wire) -> None:
    assert set(wire.reasons(*OPENED, (C, Segment(A, 100, 1000, 5)), (V, Segment(R, 1000)), *AGAIN)) == {"passes"}


def test_both_ends_may_open_where_both_may_begin(
    programs: dict[Variant, Program], variant: Variant, version: int, executor: str
) -> None:
    """RFC 9293, section 3.5, figure 7."""
    wire = Wire(
        Standalone(programs[variant], rules("inside", "outside"), executor), version, routes=variant == "routed"
    )
    crossing = (
        (C, Segment(S, 100)),
        (V, Segment(S, 300)),
        (C, Segment(S | A, 100, 301)),
        (V, Segment(A, 301, 101)),
        (C, Segment(A, 101, 301, 10)),
        (V, Segment(A, 301, 111, 10)),
    )
    assert set(wire.reasons(*crossing)) == {"passes"}


def test_what_nobody_asked_for_still_does_not_pass(wire: Wire) -> None:
    assert wire.reasons((C, Segment(S, 99))) == ["passes"]
    unasked = (
        (C, Segment(R, 17)),
        (V, Segment(A, 42, 17, 5)),
        (V, Segment(A | F, 42, 17)),
        (V, Segment(R, 17)),
        (V, Segment(R | A, 0, 17)),
    )
    assert wire.reasons(*unasked) == ["tcp_reset", "tcp_state", "tcp_state", "tcp_reset", "tcp_reset"]
    assert set(wire.reasons(*OPENED)) == {"passes"}
    # Neither a second segment without a first, nor a first of an end that may not begin.
    assert wire.reasons((V, Segment(S | A, 5, 100)), (V, Segment(S, 5)), (C, Segment(S, 5000))) == [
        "tcp_state",
        "no_rule",
        "passes",
    ]
    wrong = (
        (V, Segment(R | A, 0, 5002)),
        (C, Segment(S | A, 5, 5001)),
        (C, Segment(R, 777)),
        (V, Segment(A, 1_000_000, 17, 5)),
    )
    assert wire.reasons(*wrong) == ["tcp_reset", "tcp_state", "tcp_reset", "tcp_window"]
    # Answers to other numbers pass, once a first segment has, and change nothing.
    assert wire.reasons((V, Segment(S | A, 5, 5000)), (V, Segment(S | A, 5, 5002)), (C, Segment(R, 5002))) == 3 * [
        "passes"
    ]
    assert set(wire.reasons((C, Segment(A, 100, 1000, 10)), (V, Segment(A, 1000, 110, 10)))) == {"passes"}
    assert wire.reasons((V, Segment(S | A, 5, 5000)), (C, Segment(R, 5002))) == ["tcp_state", "tcp_reset"]


def test_a_forged_attempt_changes_nothing(wire: Wire) -> None:
    assert set(wire.reasons(*OPENED, (C, Segment(S, 5000)), (V, Segment(A, 1000, 100)))) == {"passes"}
    assert set(wire.reasons((C, Segment(A, 100, 1000, 10)), (V, Segment(A, 1000, 110, 10)))) == {"passes"}
    # The client has the connection, so the attempt was not its own, and nobody is believed who answers it.
    assert wire.reasons((V, Segment(S | A, 8000, 5001)), (V, Segment(R | A, 0, 5001))) == ["tcp_state", "tcp_reset"]


def test_attempts_and_answers_to_them_do_not_prolong_a_flow(wire: Wire) -> None:
    assert set(wire.reasons(*OPENED)) == {"passes"}
    for _ in range(8):
        wire.firewall.elapse(1_000_000_000)
        if wire.reasons((C, Segment(S, 5000))) == ["passes"] and wire.reasons((V, Segment(A, 1000, 100))) != ["passes"]:
            break
    assert wire.firewall.now_us > 7_440_000_000
    assert wire.firewall.now_us < 8_100_000_000
    # A flood of answers does not keep a half-open flow.
    wire.client_port = 6000
    assert wire.reasons((C, Segment(S, 99))) == ["passes"]
    for _ in range(3):
        wire.firewall.elapse(4_000_000)
        last = wire.reasons((V, Segment(A, 42, 17)))
    assert last == ["tcp_no_state"]


def test_an_error_about_an_attempt_passes(wire: Wire) -> None:
    assert set(wire.reasons(*OPENED, (C, Segment(S, 5_000_000)))) == {"passes"}
    for number, reason in ((5_000_000, "passes"), (5_000_001, "icmp_unrelated")):
        port, frame = wire.frame(C, Segment(S, number))
        addresses = ADDRESSES[wire.version][:: 1 if wire.mirrored else -1]
        kind, protocol = (3, make.ICMP) if wire.version == 4 else (1, make.ICMPV6)
        packet = make.ip(*addresses, protocol, make.icmp(kind, 0, payload=frame[14:74]))
        error = make.ethernet(frame[6:12], frame[:6], 0x0800 if wire.version == 4 else 0x86DD, packet)
        assert wire.firewall.reason(3 - port, error) == reason


@pytest.mark.parametrize("openers", [(0,), (1,), (0, 1)], ids=["client", "server", "both"])
def test_random_histories_of_two_ends_go_on_as_without_a_firewall(
    programs: dict[Variant, Program], variant: Variant, version: int, openers: tuple[int, ...]
) -> None:
    """Opening, reboots, resets, retransmissions, in any order: a new connection takes as many first segments as over a wire.

    Rarely it takes more: a flow that a reset has ended passes no second reset that is on its way.
    """
    firewall = Standalone(programs[variant], rules("inside", "outside"))
    later = 0
    for seed in range(300):
        tries, histories = [], []
        wire = Wire(firewall, version, client_port=2000 + seed, routes=variant == "routed" and seed == 0)
        for network in (lambda end, segment: True, wire):
            pair = Pair(random.Random(seed), network, openers)
            histories.append([pair.act() for _ in range(40)])
            tries.append(pair.connects(openers[seed % len(openers)], MOST, lambda s: firewall.elapse(s * 1_000_000)))
        where = (seed, tries, histories, pair.dropped, pair.ends)
        assert tries[0] < MOST, where
        assert tries[1] <= (tries[0] + 1 if len(openers) == 1 else MOST), where
        later += tries[1] > tries[0]
    assert later <= 3


def test_where_only_one_side_may_begin_it_always_succeeds_after_losses(
    programs: dict[Variant, Program], variant: Variant, version: int, mirrored: bool
) -> None:
    """Segments are lost on both sides of the firewall, and flows end there by time: the client still gets its connection."""
    firewall = Standalone(programs[variant], rules("outside" if mirrored else "inside"))
    for seed in range(200):
        rng = random.Random(seed)
        wire = Wire(firewall, version, mirrored, client_port=2000 + seed, routes=variant == "routed" and seed == 0)
        lossy = [True]

        def network(
            end: int, segment: Segment, wire: Wire = wire, rng: random.Random = rng, lossy: list[bool] = lossy
        ) -> bool:
            if lossy and rng.random() < 0.02:
                firewall.elapse(rng.choice((11_000_000, 241_000_000, 7_441_000_000)))
            before, behind = (bool(lossy) and rng.random() < 0.1 for _ in range(2))
            return not before and wire(end, segment) and not behind

        pair = Pair(random.Random(seed), network)
        history = [pair.act() for _ in range(60)]
        lossy.clear()
        assert pair.connects(C, MOST) <= MOST, (seed, history, pair.dropped, pair.ends)
