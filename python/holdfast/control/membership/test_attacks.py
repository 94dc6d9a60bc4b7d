"""Hosts that send what they like, as RFC 3376 (9) and RFC 3810 (10) describe it, beside members that keep to the rules.

Two ports attack. After every step the members of the other ports have what they asked for, and what the attackers have and cause is
bounded; when all are gone, nothing is left.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from random import Random
from typing import Any, cast

import pytest

from holdfast.control.membership import frames, igmp
from holdfast.control.membership.channels import PortKey, wanted_channels
from holdfast.control.membership.filters import EVERYTHING, NOTHING, Filter
from holdfast.control.membership.limits import Allowance, Room
from holdfast.control.membership.messages import Query, RecordKind, checksum
from holdfast.control.membership.overlay import EdgePort, Overlay, OverlayParameters, link_local
from holdfast.control.membership.querier import BURST_S
from holdfast.controller import ControlPlane

V4 = IPv4Address
S_PS = 1_000_000_000_000
MAC = bytes.fromhex("0200000000fe")
ROUTER, HOST, ALL_GROUPS = V4("10.0.0.254"), V4("10.0.0.1"), V4(0)
IS_IN, IS_EX, TO_IN, TO_EX, ALLOW, BLOCK = RecordKind
GMI_S = 260

Records = Sequence[tuple[RecordKind, V4, Sequence[V4]]]


def packet(source: V4, destination: V4, message: bytes) -> bytes:
    message = message[:2] + checksum(message).to_bytes(2, "big") + message[4:]
    head = b"\x46\xc0" + (24 + len(message)).to_bytes(2, "big") + bytes(4) + b"\1\2\0\0"
    head += source.packed + destination.packed + igmp.ROUTER_ALERT
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    return frames.group_mac(destination) + MAC + b"\x08\0" + head + message


def report(*records: tuple[RecordKind, V4, Sequence[V4]], source: V4 = HOST) -> bytes:
    body = b"".join(
        bytes((kind, 0)) + len(sources).to_bytes(2, "big") + group.packed + b"".join(it.packed for it in sources)
        for kind, group, sources in records
    )
    return packet(source, igmp.REPORTS_V3, b"\x22\0\0\0\0\0" + len(records).to_bytes(2, "big") + body)


def older(kind: int, group: V4, source: V4 = HOST) -> bytes:
    return packet(source, group, bytes((kind, 0, 0, 0)) + group.packed)


def query(source: V4, group: V4 = ALL_GROUPS, *, robustness: int = 7, interval_code: int = 0xFF) -> bytes:
    message = bytes((0x11, 0xFF, 0, 0)) + group.packed + bytes((robustness, interval_code, 0, 0))
    return packet(source, igmp.ALL_SYSTEMS if int(group) == 0 else group, message)


class Plane:
    """Time, and the queries that left, by port."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {"s1": self, "s2": self}
        self.now_ps = 0
        self.calls: list[tuple[int, int, Callable[[], None]]] = []
        self.sent: Counter[int] = Counter()
        self.general: list[int] = []
        self._added = 0

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        self._added += 1
        heapq.heappush(self.calls, (self.now_ps + round(delay_ms * 1e9), self._added, handler))

    def packet_out(self, frame: bytes, *, egress_port: int) -> None:
        _, message = frames.parse(frame)
        assert isinstance(message, Query)
        if message.group is None:
            self.general.append(egress_port)
        else:
            self.sent[egress_port] += 1

    def advance(self, seconds: float) -> None:
        until_ps = self.now_ps + round(seconds * S_PS)
        while self.calls and self.calls[0][0] <= until_ps:
            self.now_ps, _, handler = heapq.heappop(self.calls)
            handler()
        self.now_ps = until_ps


def started(parameters: OverlayParameters, ports: Sequence[PortKey], **given: Any) -> tuple[Overlay, Plane]:
    plane = Plane()
    overlay = Overlay(dict.fromkeys(ports, EdgePort(MAC, ROUTER, link_local(MAC), **given)), parameters)
    overlay.start(cast(ControlPlane, plane))
    return overlay, plane


# ---- Sequences ----

HONEST: list[PortKey] = [("s1", 1), ("s1", 2), ("s2", 1), ("s2", 2)]
ATTACKERS: list[PortKey] = [("s1", 3), ("s2", 3)]
GROUPS = [V4("239.1.1.1"), V4("239.1.1.2"), V4("232.1.1.1")]
SOURCES = [V4(f"10.9.0.{number}") for number in range(1, 5)]
LIMITS = OverlayParameters(
    channels=240, channels_per_port=100, source_limit=40, questions_per_s=20, changes_per_s=500, changes_burst=1000
)


class World:
    """Members that report as they should, and attackers that do not."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.overlay, self.plane = started(LIMITS, HONEST + ATTACKERS)
        self.wanted: dict[tuple[PortKey, V4], Filter] = {}
        self.began_ps = 0

    def say(self, place: PortKey, frame: bytes) -> None:
        assert self.overlay.on_packet_in(place[0], frame, place[1])

    def member_step(self) -> None:
        """Change at random what a member wants of a group, or repeat its report as after a query, and send the report."""
        random, place = self.random, self.random.choice(HONEST)
        group = random.choice(GROUPS)
        sources = random.sample(SOURCES, random.randrange(1, 3))
        if group == GROUPS[2] or random.random() < 0.5:
            wanted = Filter(False, frozenset(sources))
        else:
            wanted = EVERYTHING if random.random() < 0.5 else Filter(True, frozenset(sources))
        before = self.wanted.get((place, group))
        if before is not None and before.excludes:
            wanted = before
        self.wanted[place, group] = wanted
        self.say(place, report(_state(group, wanted, TO_EX if before is None else IS_EX)))

    def refresh(self) -> None:
        """Send the report of every member, as hosts do after a general query."""
        for (place, group), wanted in self.wanted.items():
            self.say(place, report(_state(group, wanted, IS_EX)))

    def attack_step(self) -> None:
        random, place = self.random, self.random.choice(ATTACKERS)
        source = V4(random.choice([0, 1, 0x0A000001, 0x0A000002, random.getrandbits(31)]))
        if source.is_loopback:
            source = V4(0)
        kind = random.randrange(6)
        if kind == 0:  # a full packet of sources, or of groups
            first, count = random.getrandbits(16), random.choice([1, 30, 300])
            many = [V4(0x0B000000 + first + at) for at in range(count)]
            groups = [V4(0xE8000000 + first), *GROUPS]
            frame = report((random.choice(list(RecordKind)), random.choice(groups), many), source=source)
        elif kind == 1:
            first, what = random.getrandbits(12), random.choice([TO_EX, IS_EX, TO_IN])
            frame = report(*((what, V4(0xEF000000 + first + at), ()) for at in range(100)), source=source)
        elif kind == 2:  # of others' groups: turns, leaves
            records = [(random.choice(list(RecordKind)), group, random.sample(SOURCES, 2)) for group in GROUPS]
            frame = report(*records, source=source)
        elif kind == 3:
            frame = older(random.choice([0x12, 0x16, 0x17]), random.choice(GROUPS), source)
        elif kind == 4:
            frame = query(V4(1), random.choice([V4(0), *GROUPS]))
        else:
            frame = report((TO_IN, V4(0xEF000000 + random.getrandbits(12)), ()), source=source)
        self.say(place, frame)

    def check(self) -> None:
        overlay, limits = self.overlay, LIMITS
        filters = {(place, group): it for place in overlay.ports for group, it in overlay.filters(place).items()}
        for (place, group), wanted in self.wanted.items():
            # Narrower filters take time (RFC 3376, 6.4): the member gets what it wants, and perhaps more.
            found = filters.get((place, group), NOTHING)
            if wanted.excludes:
                assert found.excludes and found.sources <= wanted.sources, (place, group)
            else:
                assert all(map(found.passes, wanted.sources)), (place, group)
        refused = overlay.refused_by_port
        assert not any(refused.get(place) for place in HONEST), refused
        assert len(overlay.channels) <= limits.channels
        assert overlay.channels == wanted_channels(filters)
        for place in ATTACKERS:
            assert overlay.channels_at(place) <= 2 * limits.channels_per_port
        seconds = (self.plane.now_ps - self.began_ps) / S_PS
        for _, port in ATTACKERS:
            # Each port of that number is at two switches. What is under way is asked about once more.
            most = 2 * limits.questions_per_s * (seconds + BURST_S) * 2 + 300
            assert self.plane.sent[port] <= most
        assert all(querier.is_querier for querier in overlay._queriers.values())
        assert all(len(querier._timers) <= 2 * len(querier._armed) + 65 for querier in overlay._queriers.values())
        assert len(self.plane.calls) < 200


def _state(group: V4, wanted: Filter, excluding: RecordKind) -> tuple[RecordKind, V4, list[V4]]:
    sources = sorted(cast("frozenset[V4]", wanted.sources))
    return (excluding if wanted.excludes else IS_IN), group, sources


@pytest.mark.parametrize("seed", range(4))
def test_two_ports_that_attack_take_nothing_from_the_others(seed: int) -> None:
    world = World(seed)
    for step in range(250):
        for _ in range(world.random.randrange(6)):
            world.attack_step()
        world.member_step()
        world.check()
        if step % 10 == 0:
            world.plane.advance(world.random.choice([0.001, 0.3, 1, 20, 100]))
            world.refresh()
            world.check()
    refused = world.overlay.refused_by_port
    assert all(refused[place]["query_from_host"] > 0 for place in ATTACKERS)
    assert all(refused[place].keys() & {"port_limit", "total_limit", "change_rate"} for place in ATTACKERS)
    world.plane.advance(GMI_S + 120)
    assert len(world.overlay.channels) == world.overlay._table.count == world.overlay._hidden == 0
    for querier in world.overlay._queriers.values():
        assert querier.channels == querier.hidden == 0
        assert not querier._groups and not querier._asking and not querier._armed


@pytest.mark.parametrize("seed", range(20))
def test_no_sequence_of_requests_takes_a_port_its_share(seed: int) -> None:
    """Check the rule of sharing for ports that add, share and drop channels: the limit of all together is never exceeded."""
    random, room = Random(seed), Room(channels=40, ports=4)
    held: list[set[int]] = [set() for _ in range(4)]
    for _ in range(3000):
        port = random.randrange(4)
        if random.random() < 0.3:
            held[port] -= set(random.sample(sorted(held[port]), random.randrange(len(held[port]) + 1)))
            continue
        after = held[port] if random.random() < 0.7 else set()
        after = after | {random.randrange(60) for _ in range(random.randrange(1, 8))}
        used, new = len(set().union(*held)), len(after - held[port])
        if not new or room.has(used, len(after), new):
            held[port] = set(after)
        else:
            assert len(after) > room.share
        assert len(set().union(*held)) <= room.channels


def test_an_allowance_lets_a_burst_pass_and_then_its_rate() -> None:
    allowance, passed = Allowance(10, 5), []
    for tick in range(300):
        if not allowance.wait_ps(tick * S_PS // 100):
            allowance.spend(tick * S_PS // 100, 1)
            passed.append(tick)
    assert passed[:5] == [0, 1, 2, 3, 4]
    assert len(passed) == 5 + 30 - 1


# ---- Single attacks ----


@pytest.mark.parametrize("group", [V4(0), V4("239.1.1.1")])
def test_a_query_from_a_host_silences_nobody_and_ends_nothing(group: V4) -> None:
    overlay, plane = started(OverlayParameters(), [("s1", 1)])
    overlay.on_packet_in("s1", report((TO_EX, V4("239.1.1.1"), ())), 1)
    plane.advance(40)
    plane.general.clear()
    overlay.on_packet_in("s1", query(V4("0.0.0.1"), group), 1)
    plane.advance(200)
    # Both protocols, once in an interval.
    assert len(plane.general) in (2, 4)
    assert overlay.filters(("s1", 1)) == {V4("239.1.1.1"): EVERYTHING}
    assert overlay.refused == {"query_from_host": 1}


def test_a_querier_behind_a_router_port_is_believed_for_a_bounded_time() -> None:
    overlay, plane = started(OverlayParameters(other_querier_limit_s=300), [("s1", 1)], router=True)
    plane.advance(40)
    plane.general.clear()
    overlay.on_packet_in("s1", query(V4("0.0.0.1")), 1)
    plane.advance(299)
    assert len(plane.general) <= 3  # of MLD
    plane.advance(2)
    assert len(plane.general) >= 3
    querier = overlay._queriers[("s1", 1), 4]
    assert querier.is_querier and querier.group_membership_interval_ps == GMI_S * S_PS


def test_leaves_of_somebody_else_do_not_end_a_membership_at_once() -> None:
    overlay, plane = started(OverlayParameters(), [("s1", 1)], fast_leave=True)
    group, own, other = V4("239.1.1.1"), V4("10.0.0.1"), V4("10.0.0.66")
    for forged in (report((TO_IN, group, ()), source=other), older(0x17, group, other)):
        overlay.on_packet_in("s1", report((TO_EX, group, ()), source=own), 1)
        overlay.on_packet_in("s1", forged, 1)
        assert overlay.filters(("s1", 1)) == {group: EVERYTHING}
        plane.advance(1.5)
        overlay.on_packet_in("s1", report((IS_EX, group, ()), source=own), 1)
        plane.advance(30)
        assert overlay.filters(("s1", 1)) == {group: EVERYTHING}


def test_old_versions_are_refused_where_the_operator_says_so() -> None:
    overlay, _ = started(OverlayParameters(oldest_igmp=3), [("s1", 1)])
    for kind in (0x12, 0x16):
        overlay.on_packet_in("s1", older(kind, V4("239.1.1.1")), 1)
    overlay.on_packet_in("s1", report((TO_EX, V4("239.1.1.1"), ())), 1)
    overlay.on_packet_in("s1", older(0x17, V4("239.1.1.1")), 1)
    assert overlay.filters(("s1", 1)) == {V4("239.1.1.1"): EVERYTHING}
    assert overlay.refused == {"older_version": 3}


def test_leaves_and_joins_in_turn_cause_queries_at_a_bounded_rate() -> None:
    overlay, plane = started(OverlayParameters(), [("s1", 1)])
    for _ in range(3000):
        overlay.on_packet_in("s1", report((TO_EX, V4("239.1.1.1"), ())), 1)
        overlay.on_packet_in("s1", report((TO_IN, V4("239.1.1.1"), ())), 1)
        plane.advance(0.001)
    assert plane.sent[1] <= 200 * (3 + BURST_S) + 10


def test_leaves_beyond_the_rate_are_asked_about_later() -> None:
    overlay, plane = started(OverlayParameters(questions_per_s=10), [("s1", 1)])
    groups = [V4(0xEF000000 + number) for number in range(100)]
    overlay.on_packet_in("s1", report(*((TO_EX, group, ()) for group in groups)), 1)
    overlay.on_packet_in("s1", report(*((TO_IN, group, ()) for group in groups)), 1)
    plane.advance(1)
    assert 20 <= plane.sent[1] <= 60
    # A member of one of them answers in time, whenever it is asked.
    stays = groups[-1]
    for _ in range(40):
        overlay.on_packet_in("s1", report((IS_EX, stays, ())), 1)
        plane.advance(1)
    assert overlay.filters(("s1", 1)) == {stays: EVERYTHING}
    assert plane.sent[1] == 200


def test_a_record_costs_what_it_names() -> None:
    """Check that a report of one source costs about as much in a group with thousands of sources as in one with few."""

    def seconds(sources: int) -> float:
        parameters = OverlayParameters(source_limit=10_000, channels_per_port=10_000, changes_burst=10**6)
        overlay, _ = started(parameters, [("s1", 1)])
        group, first = V4("232.1.1.1"), 0x0B000000
        for at in range(first, first + sources, 300):
            overlay.on_packet_in("s1", report((ALLOW, group, [V4(it) for it in range(at, at + 300)])), 1)
        one = [report((ALLOW, group, [V4(0x0C000000 + number)])) for number in range(60)]
        began = time.process_time()
        for frame in one:
            overlay.on_packet_in("s1", frame, 1)
        return time.process_time() - began

    few, many = (min(seconds(sources) for _ in range(3)) for sources in (300, 7500))
    assert many < 6 * few


def test_turning_a_group_that_others_have_filled_is_limited_by_what_it_changes() -> None:
    """Check a port that turns a group between INCLUDE and EXCLUDE, which changes all sources that another port has added."""
    parameters = OverlayParameters(changes_per_s=100, changes_burst=2000)
    overlay, plane = started(parameters, [("s1", 1), ("s1", 2), ("s1", 3)], fast_leave=True)
    told: list[int] = []
    overlay.changed(lambda changes: told.append(len(changes)))
    group = V4("239.1.1.1")
    for at in range(0, 1000, 250):
        overlay.on_packet_in("s1", report((ALLOW, group, [V4(0x0B000000 + at + it) for it in range(250)])), 1)
    told.clear()
    for _ in range(500):
        overlay.on_packet_in("s1", report((TO_EX, group, ())), 2)
        overlay.on_packet_in("s1", report((TO_IN, group, ())), 2)
        plane.advance(0.01)
    assert sum(told) <= 2000 + 1001 + 5 * 100 + 4 * 1001
    assert overlay.refused_by_port[("s1", 2)]["change_rate"] > 100
    overlay.on_packet_in("s1", report((ALLOW, group, [V4("10.9.0.1")])), 3)
    assert overlay.channels[V4("10.9.0.1"), group]["s1"] >= {3}


def test_what_does_not_fit_is_counted_by_port_and_reason() -> None:
    limits = OverlayParameters(channels_per_port=3, source_limit=2, group_limit=2, channels=8)
    overlay, plane = started(limits, [("s1", 1), ("s1", 2)])
    one, two, three = (V4(f"239.1.1.{number}") for number in (1, 2, 3))
    overlay.on_packet_in("s1", report((ALLOW, one, SOURCES[:3])), 1)
    overlay.on_packet_in("s1", report((ALLOW, one, SOURCES[:2]), (ALLOW, two, SOURCES[:2])), 1)
    overlay.on_packet_in("s1", report((ALLOW, two, SOURCES[:1]), (TO_EX, three, ())), 1)
    overlay.on_packet_in("s1", report((TO_EX, V4("239.2.2.2"), ())), 2)
    overlay.on_packet_in("s1", report((ALLOW, three, SOURCES[:2])), 2)
    assert overlay.refused_by_port == {
        ("s1", 1): {"source_limit": 1, "port_limit": 1, "group_limit": 1},
        ("s1", 2): {"total_limit": 1},
    }
    assert (overlay.channels_at(("s1", 1)), overlay.channels_at(("s1", 2))) == (3, 1)
    # What goes makes room.
    plane.advance(GMI_S + 1)
    overlay.on_packet_in("s1", report((ALLOW, three, SOURCES[:2])), 2)
    assert (overlay.channels_at(("s1", 1)), overlay.channels_at(("s1", 2))) == (0, 2)


@pytest.mark.parametrize("kinds", [(TO_IN, TO_EX), (IS_EX, IS_EX), (ALLOW, BLOCK)])
def test_the_records_of_a_port_are_bounded_whatever_they_change(kinds: tuple[RecordKind, RecordKind]) -> None:
    """Check full reports of channels that the port already has, at the rate at which a switch passes packets on."""
    parameters = OverlayParameters()
    overlay, plane = started(parameters, [*HONEST, *ATTACKERS])
    overlay.on_packet_in("s1", report((TO_EX, GROUPS[0], [])), 1)
    sources = SOURCES[:1] if ALLOW in kinds else []
    groups = [(V4("232.9.0.0") if sources else V4("239.9.0.0")) + number for number in range(180)]
    seconds, packets_per_s, before = 10, parameters.reports_per_s, overlay.heard
    for number in range(seconds * packets_per_s):
        overlay.on_packet_in("s1", report(*((kinds[number % 2], group, sources) for group in groups)), 3)
        plane.advance(1 / packets_per_s)
    refused = overlay.refused_by_port["s1", 3]["record_rate"] + overlay.refused_by_port["s1", 3]["change_rate"]
    taken = (overlay.heard - before - refused) * len(groups) * (1 + len(sources))
    assert 0 < taken <= parameters.records_burst + (seconds + 1) * parameters.records_per_s
    overlay.on_packet_in("s1", report((TO_EX, GROUPS[1], [])), 2)
    assert ("s1", 2) not in overlay.refused_by_port, "others are heard"
    assert overlay.filters(("s1", 2))[GROUPS[1]] == EVERYTHING
