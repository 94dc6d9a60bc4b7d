"""What a page shows of a network at one moment, and the thread that looks twice a second.

A :class:`Snapshot` is values alone (``dataclasses.asdict`` makes JSON of it). Rates are differences of counters of two
moments. How it is drawn is not known here.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from holdfast.console.flows import Flow, Progress
from holdfast.console.session import Session
from holdfast.console.switches import is_up, lost_packets
from holdfast.link import Direction
from holdfast.measurements import DirectionCounters
from holdfast.parameters import PS_PER_S

log = logging.getLogger(__name__)

PERIOD_S = 0.5
"""Between two snapshots, if nobody demands one."""

GLANCE_S = 0.1
"""Between two looks at the links' states alone; a change of one is told at once."""

SHORTEST_S = 0.1
"""Between two snapshots that are demanded."""

WINDOW_S = 60.0
"""Of the flows' past."""

SHOWN_S = 60.0
"""For so long after its end a flow is shown."""

PARAMETERS_AT_A_TIME = 32
"""Links of which a snapshot reads rate, delay and loss; verbs that change a link have all read."""


FLOWS_AT_A_TIME = 100
"""Flows that are read while a simulation stands still; it goes on between these."""

PAUSE_S = 0.0005
"""For which the simulation can take its turn between two times: whoever asks for a lock again at once gets it again."""


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of a link since the last snapshot. ``load``: the share of its rate, None without one."""

    rate_bps: float | None
    delay_ms: float
    loss: float | None
    """The share that is lost at random, None if a model says which packets are."""
    bps: float = 0.0
    load: float | None = None
    lost_per_s: float = 0.0
    lost: int = 0
    """Packets, since the start."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """A link: ``there`` is the direction from ``a`` to ``b``."""

    name: str
    a: str
    b: str
    up: bool
    there: Way
    back: Way

    @property
    def load(self) -> float | None:
        """The larger load of both directions, None if neither has a rate."""
        return max((way.load for way in (self.there, self.back) if way.load is not None), default=None)

    @property
    def lost_per_s(self) -> float:
        """Packets that both directions lose per second."""
        return self.there.lost_per_s + self.back.lost_per_s


@dataclass(frozen=True, slots=True)
class FlowState:
    """A flow since the last snapshot; what its clock or its kind cannot tell is None. ``loss`` is a share."""

    number: int
    text: str
    kind: str
    source: str
    destination: str
    runs: bool
    goodput_bps: float | None
    delay_ms: float | None
    loss: float | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A network at one moment. ``pace``: seconds of the network per second of the wall clock."""

    time_s: float
    pace: float
    links: tuple[LinkState, ...]
    flows: tuple[FlowState, ...]
    taken_s: float = 0.0
    """For which the snapshot was made, on the wall clock."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a flow had at a moment of its past."""

    time_s: float
    goodput_bps: float | None
    delay_ms: float | None
    loss: float | None


SILENT_S = 1.6
"""Without a new report for so long, the loss of a flow is not known: iperf3 reports twice a second."""

_MOST_NUMBERS = 4 * round(1.2 * WINDOW_S / PERIOD_S)
"""Of a flow's past, which has up to twice as many: four for each point."""


class _FlowPast:
    """The last progress of a flow, and its points.

    Loss is judged a second late: until then a packet may be under way. What counts as lost is the least number of missing packets
    in that second, less those that the present rate and latency have under way at any time, and it never falls.
    """

    def __init__(self) -> None:
        # Numbers in a row, not objects: the garbage collector would look at each of a thousand flows' points.
        self._numbers = array("d")
        self._before: tuple[float, Progress] | None = None
        self._missing: deque[tuple[float, int, int]] = deque()
        self._lost, self._judged, self._judged_s = 0, 0, 0.0
        self._share: float | None = None
        self._under_way = 0

    def add(self, now_s: float, found: Progress, kind: str) -> Point:
        """Compare with the last progress, and return the point between."""
        before_s, before = self._before or (now_s, found)
        goodput = delay = None
        passed_s = now_s - before_s
        if passed_s > 0:
            if kind != "ping":
                goodput = max(0.0, (found.payload_bits - before.payload_bits) / passed_s)
            if found.delayed > before.delayed:
                delay = max(0.0, (found.delay_sum_ms - before.delay_sum_ms) / (found.delayed - before.delayed))
            elif found.delayed == 0 and (goodput is None or goodput > 0):
                delay = found.delay_ms
        if passed_s > 0 and found.sent is not None and found.delayed > before.delayed and delay is not None:
            # One more: a packet may have been sent right before the look.
            self._under_way = 1 + int((found.sent - (before.sent or 0)) / passed_s * delay / 1000)
        point = Point(now_s, goodput, delay, self._loss(now_s, before, found))
        if passed_s > 0 or not self._numbers:
            self._before = (now_s, found)
            if len(self._numbers) >= 2 * _MOST_NUMBERS:
                del self._numbers[:_MOST_NUMBERS]
            self._numbers.extend(math.nan if each is None else each for each in (now_s, goodput, delay, point.loss))
        return point

    def since(self, begin_s: float) -> list[Point]:
        """Return the points from a time on."""
        found = []
        for at in range(0, len(self._numbers), 4):
            time_s, *values = self._numbers[at : at + 4]
            if time_s >= begin_s:
                found.append(Point(time_s, *(None if math.isnan(each) else each for each in values)))
        return found

    def _loss(self, now_s: float, before: Progress, found: Progress) -> float | None:
        if found.sent is None:
            return None
        if found.again is not None:
            sent, again = found.sent - (before.sent or 0), found.again - (before.again or 0)
            return min(1.0, again / sent) if sent > 0 else None
        missing = found.sent - (found.arrived or 0) - self._under_way
        self._missing.append((now_s, found.sent, max(0, missing)))
        while len(self._missing) > 1 and self._missing[1][0] <= now_s - 1.0:
            self._missing.popleft()
        begin_s, sent, _ = self._missing[0]
        if begin_s > now_s - 0.9:
            return None
        lost = max(self._lost, min(missing for _, _, missing in self._missing))
        if sent > self._judged:
            self._share = min(1.0, (lost - self._lost) / (sent - self._judged))
            self._lost, self._judged, self._judged_s = lost, sent, now_s
        # Nothing new to judge: the receiver is silent, and the last share is of another time.
        return self._share if now_s - self._judged_s < SILENT_S else None


class Watcher:
    """Looks at a session's network in a thread of its own, and tells who listens; a context manager.

    Listeners are called with each snapshot, in this thread.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names = session.topology.link_names()
        self._parameters = [session.network.link_parameters(name) for name in self._names]
        self._rotation = 0
        self._counters: list[tuple[DirectionCounters, DirectionCounters]] | None = None
        self._pasts: dict[int, _FlowPast] = {}
        self._last_s, self._wall_s = 0.0, time.monotonic()
        self._listeners: list[Callable[[Snapshot], None]] = []
        self._wanted, self._stopping = threading.Event(), threading.Event()
        self._again = True
        self._lock = threading.Lock()
        self.latest = self.look()
        self._thread = threading.Thread(target=self._run, name="holdfast-watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._wanted.set()
        self._thread.join()

    def listen(self, listener: Callable[[Snapshot], None]) -> None:
        """Have ``listener`` called with each snapshot from now on."""
        self._listeners.append(listener)

    def demand(self) -> None:
        """Demand a snapshot now, with the parameters of all links: something may have changed them."""
        self._again = True
        self._wanted.set()

    def past(self, number: int) -> list[Point]:
        """Return the points of a flow's last minute; of an unknown flow none."""
        with self._lock:
            past = self._pasts.get(number)
            return [] if past is None else past.since(self._last_s - WINDOW_S)

    def _run(self) -> None:
        due_s = time.monotonic() + PERIOD_S
        while True:
            demanded = self._wanted.wait(min(GLANCE_S, max(0.0, due_s - time.monotonic())))
            if self._stopping.is_set():
                return
            self._wanted.clear()
            try:
                if (changed := self.glance()) is not None:
                    self._tell(changed)
                if demanded or time.monotonic() >= due_s:
                    due_s = time.monotonic() + PERIOD_S
                    self._tell(self.look())
            except Exception:
                log.exception("the page's picture of the network is not new")
            if demanded:
                self._stopping.wait(SHORTEST_S)

    def _tell(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        for listener in list(self._listeners):
            listener(snapshot)

    def _states(self) -> list[bool]:
        return [is_up(self._session, link) for link in self._session.topology.links]

    def glance(self) -> Snapshot | None:
        """Return the latest snapshot with the states that links have now, or None if none has changed."""
        states, latest = self._states(), self.latest
        if all(link.up is up for link, up in zip(latest.links, states, strict=True)):
            return None
        links = tuple(replace(link, up=up) for link, up in zip(latest.links, states, strict=True))
        return replace(latest, links=links)

    def look(self) -> Snapshot:
        """Return what the network is now, and remember it for the next differences."""
        with self._lock:
            began_s, network = time.monotonic(), self._session.network
            flows = self._session.flows.all()
            links = range(len(self._names)) if self._again else self._next_links()
            self._again = False
            for index in links:
                self._parameters[index] = network.link_parameters(self._names[index])
            with self._session.clock.held():
                now_s = network.now_ps / PS_PER_S
                counters = [(each.a_to_b, each.b_to_a) for _, each in network.all_link_counters()]
                states = self._states()
            passed_s, wall_s = now_s - self._last_s, began_s - self._wall_s
            before = self._counters or counters
            shown = tuple(
                LinkState(
                    name,
                    link.a,
                    link.b,
                    up,
                    _way(parameters[0], old[0], new[0], passed_s),
                    _way(parameters[1], old[1], new[1], passed_s),
                )
                for name, link, up, parameters, old, new in zip(
                    self._names, self._session.topology.links, states, self._parameters, before, counters, strict=True
                )
            )
            found = tuple(self._flows(flows))
            self._counters, self._last_s, self._wall_s = counters, now_s, began_s
            pace = passed_s / wall_s if wall_s > 0 else 0.0
            return Snapshot(now_s, pace, shown, found, time.monotonic() - began_s)

    def _next_links(self) -> range:
        begin = self._rotation if self._rotation < len(self._names) else 0
        self._rotation = begin + PARAMETERS_AT_A_TIME
        return range(begin, min(self._rotation, len(self._names)))

    def _flows(self, flows: list[Flow]) -> Iterator[FlowState]:
        """Yield what flows are now, a few at a time: the simulation goes on between them."""
        for begin in range(0, len(flows), FLOWS_AT_A_TIME):
            some = flows[begin : begin + FLOWS_AT_A_TIME]
            if begin:
                time.sleep(PAUSE_S)
            with self._session.clock.held():
                now_s = self._session.network.now_ps / PS_PER_S
                progress = [flow.progress() if flow.end_s is None else None for flow in some]
            for flow, found in zip(some, progress, strict=True):
                state = self._flow(now_s, flow, found)
                if state is not None:
                    yield state

    def _flow(self, now_s: float, flow: Flow, found: Progress | None) -> FlowState | None:
        """Return what a flow is now, or None if it has ended long ago. ``found``: None of one that has ended."""
        past = self._pasts.setdefault(flow.number, _FlowPast())
        if found is None:
            if flow.end_s is not None and flow.end_s < now_s - SHOWN_S:
                self._pasts.pop(flow.number)
                return None
            point, found = Point(now_s, None, None, None), flow.progress()
        else:
            point = past.add(now_s, found, flow.asked.kind)
        return FlowState(
            flow.number,
            str(flow.asked),
            flow.asked.kind,
            flow.asked.source,
            flow.asked.destination,
            flow.end_s is None,
            point.goodput_bps,
            point.delay_ms,
            point.loss,
            found.failure,
        )


def _way(now: Direction, old: DirectionCounters, new: DirectionCounters, passed_s: float) -> Way:
    bps = 8 * (new.bytes - old.bytes) / passed_s if passed_s > 0 else 0.0
    lost = lost_packets(new)
    return Way(
        rate_bps=now.rate_bps,
        delay_ms=now.delay_ms,
        loss=float(now.loss) if isinstance(now.loss, int | float) else None,
        bps=bps,
        load=None if not now.rate_bps else min(1.0, bps / now.rate_bps),
        lost_per_s=(lost - lost_packets(old)) / passed_s if passed_s > 0 else 0.0,
        lost=lost,
    )


__all__ = ["FlowState", "LinkState", "Point", "Snapshot", "Watcher", "Way"]
