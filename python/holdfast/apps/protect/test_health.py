"""Latent errors: those that are reported, when, and those that are not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apps.protect.health import Alarm, HealthMonitor, LatentErrorDetection
from holdfast.errors import NetworkError
from holdfast.parameters import PS_PER_MS

NODES = (("a", "m1", "z"), ("a", "m2", "z"))
INTERVAL_MS = 2000 / 3


class Reader:
    """Feeds a monitor with readings, a third of a period apart; packets arrive on both of two paths unless a path loses them."""

    def __init__(self, detection: LatentErrorDetection | None = None) -> None:
        self.heard: list[Alarm] = []
        self.monitor = HealthMonitor(detection or LatentErrorDetection(), self.heard.append)
        self.passed = [0, 0]
        self.discarded = [0, 0]
        self.intervals = 0

    def interval(self, packets: int, loss: tuple[float, float] = (0, 0), late: int = 0, down: bool = False) -> None:
        """Advance an interval with ``packets`` packets and read the counters.

        ``loss``: the share of copies lost on each path. ``late``: copies still on their way on path 2. ``down``: path 2 is known to
        be down.
        """
        brought = [round(packets * (1 - loss[0])), round(packets * (1 - loss[1]))]
        self.passed[0] += brought[0]
        self.passed[1] += packets - brought[0]
        self.discarded[1] += brought[1] - (packets - brought[0])
        self.intervals += 1
        shown = [self.discarded[0], self.discarded[1] - late]
        self.monitor.read(
            round(self.intervals * INTERVAL_MS * PS_PER_MS), "a-z#0", NODES, self.passed, shown, (False, down)
        )

    def alarms(self) -> list[tuple[int, bool]]:
        return [(alarm.path, alarm.raised) for alarm in self.monitor.alarms]


@pytest.mark.parametrize(("packets", "intervals"), [(10, 2), (40, 2), (1000, 2), (10**7, 2)])
def test_a_dead_path_is_named_within_a_period(packets: int, intervals: int) -> None:
    reader = Reader()
    for _ in range(5):
        reader.interval(packets)
    assert not reader.monitor.alarms
    for _ in range(intervals):
        reader.interval(packets, (0, 1))
    (alarm,) = reader.monitor.alarms
    assert (alarm.connection, alarm.path, alarm.nodes, alarm.raised) == ("a-z#0", 2, NODES[1], True)
    assert alarm.expected == 3 * packets
    assert alarm.seen == packets
    assert reader.heard == [alarm]
    assert reader.monitor.active() == [("a-z#0", 2)]
    for _ in range(20):
        reader.interval(packets, (0, 1))
    assert reader.alarms() == [(2, True)], "once"
    for _ in range(4):
        reader.interval(packets)
    assert reader.alarms() == [(2, True), (2, False)]
    for _ in range(100):
        reader.interval(packets)
    assert len(reader.monitor.alarms) == 2
    assert reader.monitor.active() == []


def test_the_faster_path() -> None:
    reader = Reader()
    for loss in [(0, 0)] * 3 + [(1, 0)] * 2:
        reader.interval(100, loss)
    assert reader.alarms() == [(1, True)]


def test_a_lossy_path() -> None:
    """A twentieth of the packets, until a hundred are missing."""
    reader = Reader()
    while not reader.monitor.alarms:
        reader.interval(500, (0, 0.05))
    assert 5 <= reader.intervals <= 7
    (alarm,) = reader.monitor.alarms
    assert (alarm.path, alarm.expected, alarm.seen) == (2, 1500, 1425)


def test_a_known_failure_is_no_latent_one() -> None:
    reader = Reader()
    for _ in range(3):
        reader.interval(1000)
    for _ in range(30):
        reader.interval(1000, (0, 1), down=True)
    for _ in range(30):
        reader.interval(1000)
    assert not reader.monitor.alarms


def test_no_traffic_is_no_error() -> None:
    reader = Reader()
    for _ in range(50):
        reader.interval(0)
    for _ in range(2):
        reader.interval(4, (0, 1))
        reader.interval(0)
    assert not reader.monitor.alarms


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), skew_ms=st.floats(0, 10))
def test_no_false_alarm(seed: int, skew_ms: float) -> None:
    """Any load from nothing to millions of packets, changing all the time; a slower path; rare losses on both."""
    rng = random.Random(seed)
    reader = Reader()
    lost = 0
    for _ in range(200):
        packets = rng.choice([0, 1, 5, 10, 100, 10_000, 1_000_000])
        # Packets sent just before the reading: at the interval's rate, or all of it at once if it is little.
        late = min(packets, max(packets * skew_ms / INTERVAL_MS, rng.choice([0, 0, 10])))
        loss = 0.0
        if packets and lost < 2 and rng.random() < 0.05:
            loss, lost = 1 / packets, lost + 1
        reader.interval(packets, (0, loss), late=round(late) if packets != 1 else 0)
    assert reader.alarms() == []


def test_counters_and_paths_that_begin_anew() -> None:
    reader = Reader()
    for _ in range(3):
        reader.interval(1000)
    reader.passed, reader.discarded = [0, 0], [0, 0]
    for _ in range(3):
        reader.interval(1000)
    other = (NODES[0], ("a", "m3", "z"))
    reader.monitor.read(reader.intervals * 10**12, "a-z#0", other, [0, 10**6], [5, 5], (False, False))
    assert not reader.monitor.alarms
    reader.monitor.keep({})
    assert not reader.monitor._watched


def test_parameters() -> None:
    for arguments in ({"period_ms": 0}, {"period_ms": 50_000}, {"difference": 0}, {"delay_difference_ms": -1}):
        with pytest.raises(NetworkError):
            LatentErrorDetection(**arguments)  # type: ignore[arg-type]


def test_a_path_that_was_down_when_traffic_ended_is_no_latent_error() -> None:
    reader = Reader()
    for _ in range(4):
        reader.interval(1000)
    reader.interval(1000, (0, 1), down=True)
    for _ in range(4):
        reader.interval(0)
    assert not reader.monitor.alarms
    # It still is one if it stays silent when there is traffic again.
    reader.interval(50, (0, 1))
    reader.interval(50, (0, 1))
    assert reader.alarms() == [(2, True)]
