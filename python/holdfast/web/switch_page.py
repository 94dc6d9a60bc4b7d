"""The page of ``switch --web``: ports, drops by reason, tables with their fill, and verbs that look into them.

What it shows is made of the switch's metrics, as ``/snapshot`` is, once a second; :class:`Meter` turns counters into rates.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from nicegui import ui
from prometheus_client import Metric

from holdfast.console.grammar import Grammar
from holdfast.operations import exposition
from holdfast.operations.events import Events
from holdfast.web import charts, words
from holdfast.web.desk import Desk, Said
from holdfast.web.lists import Row, RowList
from holdfast.web.snapshot import WINDOW_S
from holdfast.web.tabs import Tab, Tabs, Verbs, button, part, set_text

log = logging.getLogger(__name__)

PERIOD_S = 1.0
"""Between two looks: the thread that moves packets is interrupted by each."""

EXAMPLE = "tables, trace next, port add 2@veth2, help"

_PREFIX = "holdfast_switch_"

CURVES = (charts.Curve("received", "packets/s", "received", 1.0), charts.Curve("sent", "packets/s", "sent", 1.0))


@dataclass(frozen=True)
class PortState:
    """A port; rates are of the last second."""

    number: str
    interface: str
    up: bool
    received_per_s: float
    received_bps: float
    sent_per_s: float
    sent_bps: float
    dropped: int


@dataclass(frozen=True)
class SwitchState:
    """A switch at one moment. ``drops``: by reason, in all and per second. ``tables``: entries and size."""

    time_s: float
    ports: tuple[PortState, ...]
    drops: tuple[tuple[str, int, float], ...]
    tables: tuple[tuple[str, int, int], ...]
    streams: int


@dataclass(frozen=True)
class PortPoint:
    """Packets of a port per second, at a moment."""

    time_s: float
    received: float
    sent: float


class Meter:
    """Makes states of a switch's metrics, and remembers the last minute of its ports."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begin_s = clock, clock()
        self._last: tuple[float, dict[str, Any]] | None = None
        self.pasts: dict[str, deque[PortPoint]] = {}

    def read(self, families: Iterable[Metric]) -> SwitchState:
        """Return the state that the metrics tell."""
        now_s = self._clock() - self._begin_s
        found = {name.removeprefix(_PREFIX): each["values"] for name, each in exposition.as_json(families).items()}
        before_s, before = self._last or (now_s, found)
        passed_s = now_s - before_s

        def per_s(name: str, *keys: str) -> float:
            return max(0.0, _at(found, name, *keys) - _at(before, name, *keys)) / passed_s if passed_s > 0 else 0.0

        ports = []
        for number, named in sorted(found.get("port_up", {}).items(), key=lambda each: int(each[0])):
            for interface, up in named.items():
                at = (number, interface)
                received, sent = per_s("port_received_packets_total", *at), per_s("port_sent_packets_total", *at)
                dropped = found.get("port_drops_total", {}).get(number, {}).get(interface, {})
                ports.append(
                    PortState(
                        number,
                        interface,
                        bool(up),
                        received,
                        8 * per_s("port_received_bytes_total", *at),
                        sent,
                        8 * per_s("port_sent_bytes_total", *at),
                        int(sum(dropped.values())),
                    )
                )
                past = self.pasts.setdefault(f"{number}@{interface}", deque(maxlen=round(1.2 * WINDOW_S / PERIOD_S)))
                past.append(PortPoint(now_s, received, sent))
        drops = tuple(
            (reason, int(count), per_s("drops_total", reason)) for reason, count in found.get("drops_total", {}).items()
        )
        sizes = found.get("table_size", {})
        tables = tuple(
            (name, int(count), int(sizes.get(name, 0))) for name, count in found.get("table_entries", {}).items()
        )
        self._last = (now_s, found)
        return SwitchState(now_s, tuple(ports), drops, tables, int(sum(found.get("streams", {}).values())))


def _at(found: Mapping[str, Any], name: str, *keys: str) -> float:
    place: Any = found.get(name, {})
    for key in keys:
        place = place.get(key, {}) if isinstance(place, Mapping) else {}
    return float(place) if isinstance(place, int | float) else 0.0


class SwitchPage:
    """What the tabs of a switch's page show; a context manager that looks at the switch meanwhile."""

    def __init__(
        self,
        about: Mapping[str, Any],
        families: Callable[[], Iterable[Metric]],
        grammar: Grammar,
        desk: Desk,
        events: Events,
    ) -> None:
        self.about, self.grammar, self.desk = about, grammar, desk
        self.meter = Meter()
        self._families, self._events = families, events
        self.latest = SwitchState(0.0, (), (), (), 0)
        """Empty until the switch runs."""
        self.tabs = Tabs(lambda: SwitchTab(self))
        desk.listeners.append(lambda said: self.tabs.each(lambda tab: tab.verbs.say(said)))
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=each, name="holdfast-page-look", daemon=True) for each in (self._look, self._listen)
        ]

    def __enter__(self) -> SwitchPage:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _look(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            try:
                self.latest = state = self.meter.read(self._families())
            except Exception:
                log.exception("the page's picture of the switch is not new")
                continue
            self.tabs.each(lambda tab, state=state: tab.draw(state))  # type: ignore[misc]

    def _listen(self) -> None:
        with self._events.listener() as listener:
            while not self._stopping.is_set():
                if (event := listener.next(0.5)) is not None:
                    self._tell(*event)

    def _tell(self, kind: str, data: Mapping[str, Any]) -> None:
        text = ", ".join(f"{name} {value}" for name, value in data.items())
        if kind == "port":
            text = f"port {data['port']} is {'up' if data['up'] else 'down'}"
        self.tabs.each(lambda tab: tab.verbs.say(Said(f"({kind})", text, ok=True)))


class SwitchTab(Tab):
    """One tab."""

    def __init__(self, page: SwitchPage) -> None:
        super().__init__()
        self.page = page
        self._port: str | None = None
        with ui.element("header").classes("head"):
            with ui.element("h1"):
                ui.label(f"switch {page.about['switch']}: {page.about['program']}")
            ui.label(f"P4Runtime at {page.about['p4runtime']}, access: {page.about['access']}").classes("faint")
            self._streams = ui.label().classes("faint")
        with ui.element("main").classes("nicegui-column").style("align-items: stretch; gap: 0.6rem"):
            with part("Packets of the last minute"):
                self._curve_name = ui.label().classes("faint")
                with ui.element("div").classes("curves"):
                    self._charts = [
                        ui.echart(each).classes("curve") for each in charts.empty_curves(self.colours, CURVES)
                    ]
            with part("Ports"):
                self._ports = RowList(
                    "ports",
                    ("port", "state", "received", "received*", "sent", "sent*", "dropped"),
                    "no ports yet: obey port add 0@INTERFACE below",
                    self._choose_port,
                    changed=self._redraw,
                )
            with ui.element("div").classes("half"):
                with part("Tables"):
                    with ui.element("div").classes("row"):
                        button("All tables", partial(self._do, "tables"))
                        button("Counters", partial(self._do, "counters"))
                        button("Trace next packet", partial(self._do, "trace next"))
                    self._tables = RowList(
                        "tables",
                        ("table", "entries", "size", "fill"),
                        "the program has no tables",
                        lambda name: self._do(f"tables {name}"),
                        changed=self._redraw,
                    )
                with part("Drops"):
                    self._drops = RowList(
                        "drops",
                        ("reason", "packets", "per second"),
                        "no packets were dropped",
                        None,
                        changed=self._redraw,
                    )
            self.verbs = Verbs(page.desk, page.grammar, EXAMPLE, lambda said: None)
        self.draw(page.latest)

    def _do(self, line: str) -> None:
        self.verbs.do(line)

    def _choose_port(self, name: str) -> None:
        self._port = name
        self._redraw()

    def _redraw(self) -> None:
        self.draw(self.page.latest)

    def recolour(self) -> None:
        """Draw the curves in the colours of the browser's scheme."""
        for chart, options in zip(self._charts, charts.empty_curves(self.colours, CURVES), strict=True):
            chart.options.clear()
            chart.options.update(options)
        self._redraw()

    def draw(self, state: SwitchState) -> None:
        """Show a state."""
        set_text(self._streams, f"{state.streams} streams of controllers")
        names = [f"{port.number}@{port.interface}" for port in state.ports]
        if self._port not in names:
            self._port = names[0] if names else None
        self._ports.show(names, lambda index: self._port_row(names[index], state.ports[index]))
        self._tables.show([name for name, _, _ in state.tables], lambda index: _table_row(*state.tables[index]))
        self._drops.show([reason for reason, _, _ in state.drops], lambda index: _drop_row(*state.drops[index]))
        set_text(self._curve_name, f"port {self._port}" if self._port else "no ports")
        points = {self._port: list(self.page.meter.pasts.get(self._port, ()))} if self._port else {}
        for chart, options in zip(self._charts, charts.curves(points, state.time_s, self.colours, CURVES), strict=True):
            chart.run_chart_method("setOption", options)

    def _port_row(self, name: str, port: PortState) -> Row:
        cells = (
            name,
            "up" if port.up else "down",
            f"{port.received_per_s:,.0f}/s",
            words.rate(port.received_bps),
            f"{port.sent_per_s:,.0f}/s",
            words.rate(port.sent_bps),
            f"{port.dropped:,}",
        )
        return Row(name, cells, name == self._port)


def _table_row(name: str, entries: int, size: int) -> Row:
    return Row(name, (name, f"{entries:,}", f"{size:,}", words.share(entries / size if size else None)))


def _drop_row(reason: str, count: int, per_s: float) -> Row:
    return Row(reason, (reason.replace("_", " "), f"{count:,}", f"{per_s:,.1f}"))


__all__ = ["Meter", "SwitchPage", "SwitchState"]
