"""What a running ``holdfast switch`` shows of itself: ports, drops, tables, control. It does not know who asks, nor how often."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from prometheus_client import Counter, Histogram, Metric

from holdfast.live.switch import LiveSwitch
from holdfast.measurements import PortStatistics
from holdfast.operations import exposition
from holdfast.operations.events import Events
from holdfast.operations.pages import Pages
from holdfast.p4runtime.server import Server

_PREFIX = "holdfast_switch_"
_PORT = ("port", "interface")

_CONTROL_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
"""The histogram bounds, in seconds, of the durations of control requests: one update takes 0.1 ms, a batch of 100,000 a
second."""

_DIRECTIONS = (
    ("received", "packets", "rx_packets"),
    ("received", "bytes", "rx_bytes"),
    ("sent", "packets", "tx_packets"),
    ("sent", "bytes", "tx_bytes"),
)

_PORT_DROPS = {
    "overrun": "rx_overrun_drops",
    "oversized": "rx_oversized_drops",
    "receive-error": "rx_errors",
    "transmit": "tx_drops",
}


class ControlMetrics:
    """Counts requests of P4Runtime clients; a :class:`holdfast.p4runtime.device.Watcher`."""

    def __init__(self) -> None:
        self._updates = Counter(
            _PREFIX + "updates_total",
            "Updates of P4Runtime clients, by entity, type and status.",
            ("entity", "type", "status"),
            registry=None,
        )
        self._refused = Counter(
            _PREFIX + "requests_refused_total",
            "Requests of P4Runtime clients that were refused as a whole.",
            ("call", "status"),
            registry=None,
        )
        self._write_s = Histogram(
            _PREFIX + "write_seconds",
            "Time from a Write to its answer, once for each kind of entity in it.",
            ("entity",),
            buckets=_CONTROL_S,
            registry=None,
        )
        self._read_s = Histogram(
            _PREFIX + "read_seconds",
            "Time to compute the answer to a Read, once for each kind of entity in it.",
            ("entity",),
            buckets=_CONTROL_S,
            registry=None,
        )

    def now_s(self) -> float:
        """Return a time in seconds from a clock that never goes back; only differences between two times mean something."""
        return time.perf_counter()

    def wrote(self, tally: Iterable[tuple[str, str, str, int]], began_s: float) -> None:
        """Count the updates of a Write in ``tally`` (entity, kind, status, number), and the time since it began at ``began_s``."""
        took_s, entities = time.perf_counter() - began_s, set()
        for entity, kind, status, count in tally:
            self._updates.labels(entity, kind, status).inc(count)
            entities.add(entity)
        for entity in entities:
            self._write_s.labels(entity).observe(took_s)

    def computed(self, entities: Collection[str], took_s: float) -> None:
        """Record the computing time of a Read, in seconds, for each kind of entity that it asked for."""
        for entity in entities:
            self._read_s.labels(entity).observe(took_s)

    def refused(self, call: str, code: str) -> None:
        """Count a request that was refused as a whole, by its call (such as "Write") and the name of the status."""
        self._refused.labels(call, code).inc()

    def families(self) -> Iterator[Metric]:
        """Yield the metrics of P4Runtime requests: counted updates, refusals, and times of writes and reads."""
        for each in (self._updates, self._refused, self._write_s, self._read_s):
            yield from each.collect()


def watched(live: LiveSwitch, server: Server) -> Callable[[], list[Metric]]:
    """Make a running switch's device count its clients' requests, and return what makes the switch's metrics."""
    control = ControlMetrics()
    live.device.watcher = control
    return lambda: families(live, server, control)


def about(live: LiveSwitch, server: Server) -> dict[str, Any]:
    """Return what a running switch is."""
    return {
        "switch": live.device.device_id,
        "program": live.switch.program.name,
        "p4runtime": server.address,
        "access": server.access,
    }


def pages(
    live: LiveSwitch,
    server: Server,
    host: str,
    port: int,
    *,
    events: Events,
    made: Callable[[], list[Metric]] | None = None,
) -> Pages:
    """Return a web server of a running switch's metrics and events. ``made``: what :func:`watched` returned, if it was called."""
    return Pages(made or watched(live, server), port, host, about=about(live, server), events=events)


def families(live: LiveSwitch, server: Server, control: ControlMetrics) -> list[Metric]:
    """Return all metrics of a running switch. The thread that moves packets is interrupted four times, each time briefly."""
    device = live.device
    streams = device.streams()
    open_streams = (((role,), count) for role, (count, _) in streams.items())
    primaries = (((role,), primary) for role, (_, primary) in streams.items())
    lost = {
        "digest": live.switch.digests_lost(),
        "notification": server.notifications_dropped,
        "short-packet-in": device.short_packet_ins,
    }
    return [
        *_of_ports(live.port_readings()),
        exposition.counted("counter", _PREFIX + "drops_total", "Packets dropped, by reason.", "reason", live.drops()),
        *_of_tables(live.switch.table_fill()),
        exposition.family("gauge", _PREFIX + "streams", "Open P4Runtime streams, by role.", ("role",), open_streams),
        exposition.family("gauge", _PREFIX + "primary", "Roles that have a primary.", ("role",), primaries),
        exposition.counted("counter", _PREFIX + "lost_total", "Messages for controllers that were lost.", "kind", lost),
        *control.families(),
    ]


def _of_ports(readings: list[tuple[int, str, PortStatistics, bool]]) -> Iterator[Metric]:
    about = "Ports whose interface is up and has a carrier."
    states = (((str(port), name), up) for port, name, _, up in readings)
    yield exposition.family("gauge", _PREFIX + "port_up", about, _PORT, states)
    for direction, unit, field in _DIRECTIONS:
        counts = (((str(port), name), getattr(statistics, field)) for port, name, statistics, _ in readings)
        about = f"{unit.capitalize()} {direction} at a port, since it was added."
        yield exposition.family("counter", f"{_PREFIX}port_{direction}_{unit}_total", about, _PORT, counts)
    drops = (
        ((str(port), name, reason), getattr(statistics, field))
        for port, name, statistics, _ in readings
        for reason, field in _PORT_DROPS.items()
    )
    about = "Packets lost at a port, by reason."
    yield exposition.family("counter", _PREFIX + "port_drops_total", about, (*_PORT, "reason"), drops)


def _of_tables(tables: list[tuple[str, int, int]]) -> Iterator[Metric]:
    entries = (((name,), count) for name, count, _ in tables)
    yield exposition.family("gauge", _PREFIX + "table_entries", "Entries of a table.", ("table",), entries)
    sizes = (((name,), size) for name, _, size in tables)
    about = "Entries that a table has room for."
    yield exposition.family("gauge", _PREFIX + "table_size", about, ("table",), sizes)


__all__ = ["ControlMetrics", "about", "families", "pages", "watched"]
