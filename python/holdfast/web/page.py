"""The page of ``run --web``: draws snapshots, and has the desk obey verbs. Every button is a verb, and the page shows which.

One :class:`NetworkPage` for a session, one :class:`NetworkTab` for each tab of a browser. Everything here runs in the
framework's thread, but for what the watcher and the desk call.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from holdfast.console.session import Session
from holdfast.topology import Topology
from holdfast.web import charts, words
from holdfast.web.desk import Desk, Said
from holdfast.web.lists import Row, RowList
from holdfast.web.snapshot import FlowState, LinkState, Snapshot, Watcher, Way
from holdfast.web.tabs import Legend, Tab, Tabs, Verbs, button, choice, field, part, set_text

NEWEST = 3
"""Flows whose curves are shown if nobody has chosen any."""

EXAMPLE = "h1 ping h2, switch s1 tables, help"


class NetworkPage:
    """What the tabs of a session's page show, and what they have done."""

    def __init__(self, session: Session, watcher: Watcher, desk: Desk, captures: Path) -> None:
        self.session, self.watcher, self.desk, self.captures = session, watcher, desk, captures
        self.tabs = Tabs(lambda: NetworkTab(self))
        watcher.listen(lambda snapshot: self.tabs.each(lambda tab: tab.draw(snapshot)))
        desk.listeners.append(self._said)

    def _said(self, said: Said) -> None:
        self.watcher.demand()
        self.tabs.each(lambda tab: tab.verbs.say(said))


class NetworkTab(Tab):
    """One tab: its elements, and what is chosen in it."""

    def __init__(self, page: NetworkPage) -> None:
        super().__init__()
        self.page = page
        self._session = page.session
        self._drawn_flows: object = None
        self._drawn_lines: dict[str, Any] | None = None
        self.link = next(iter(page.session.topology.link_names()), None)
        self.flows: list[int] = []
        self._has_chosen = False
        """Whether flows were chosen here; else the newest are shown."""
        topology = self._topology
        hosts = list(topology.hosts)
        self._head(topology)
        with ui.element("main").classes("nicegui-column").style("align-items: stretch; gap: 0.6rem"):
            with ui.element("div").classes("board"):
                self._picture()
                with ui.element("div").style("display: flex; flex-direction: column; gap: 0.6rem; min-width: 0"):
                    self._link_part()
                    self._flow_part(hosts)
                    self._switch_part()
            self._curves()
            with ui.element("div").classes("half"):
                self._flow_list()
                self._link_list()
            self.verbs = Verbs(page.desk, page.session.grammar, EXAMPLE, self._show_flow)
        self.draw(page.watcher.latest)

    @property
    def _topology(self) -> Topology:
        return self._session.topology

    # ---- Its parts ----

    def _head(self, topology: Topology) -> None:
        with ui.element("header").classes("head"):
            with ui.element("h1"):
                ui.label(topology.name)
            ui.label(f"{topology.size}, {self._session.clock.kind}").classes("faint")
            self._time = ui.label().classes("faint").props("aria-live=off")
            self._cut = ui.label().classes("bad")

    def _picture(self) -> None:
        with ui.element("section").classes("part").props('aria-label="picture"'):
            latest = self.page.watcher.latest
            options = charts.picture(self._topology, latest.links, self.colours, self.link)
            self._chart = ui.echart(options, on_point_click=self._clicked).classes("picture")
            with ui.element("div").classes("legend"):
                for style, text in (
                    ("solid; color: var(--accent)", "load: wider and warmer"),
                    ("dashed; color: var(--bad)", "cut"),
                    ("dotted; color: var(--losing)", "loses packets"),
                ):
                    with ui.element("span"):
                        ui.element("i").style(f"border-top-style: {style}")
                        ui.element("span")._text = text
                ui.label("choose a link or switch here, or in the lists below")

    def _link_part(self) -> None:
        names = self._topology.link_names()
        with part("Link"):
            with ui.element("div").classes("row"):
                self._link_choice = choice("link", names, self.link, self.choose_link).classes("long")
                button("Cut", on_click=lambda: self._on_link("down")).classes("main")
                button("Repair", on_click=lambda: self._on_link("up"))
                button("Silent loss", on_click=lambda: self._on_link("silent"))
            self._link_text = ui.label().classes("faint")
            with ui.element("div").classes("row"):
                self._loss = field("loss", "1%")
                self._delay = field("delay", "10ms")
                self._rate = field("rate", "10Mbps")
                button("Impair", on_click=self._impair)
                button("Capture", on_click=self._capture)

    def _flow_part(self, hosts: list[str]) -> None:
        with part("Flow"), ui.element("div").classes("row"):
            if len(hosts) < 2:
                ui.label("flows need two hosts, and this network has fewer").classes("empty")
                return
            self._source = choice("from", hosts, hosts[0])
            self._destination = choice("to", hosts, hosts[1])
            self._kind = choice("kind", ["udp", "tcp", "ping"], "udp").classes(add="narrow")
            self._udp_rate = field("UDP rate", "1Mbps").classes(add="narrow")
            button("Start flow", on_click=self._start_flow).classes("main")

    def _switch_part(self) -> None:
        switches = list(self._topology.switches)
        if not switches:
            return
        with part("Switch"):
            with ui.element("div").classes("row"):
                self._switch_choice = choice("switch", switches, switches[0]).classes("long")
                for word in ("tables", "counters", "ports", "drops"):
                    button(word.capitalize(), partial(self._on_switch, word))
                button("Trace next packet", on_click=lambda: self._on_switch("trace next"))
            with ui.element("div").classes("row"):
                self._mechanism = choice("mechanism", _mechanisms(), None)
                button("Change mechanism", on_click=self._change_mechanism)

    def _curves(self) -> None:
        with part("Flows of the last minute"):
            self._legend = Legend()
            with ui.element("div").classes("curves") as self._curve_box:
                self._curve_charts = [ui.echart(each).classes("curve") for each in charts.empty_curves(self.colours)]

    def _flow_list(self) -> None:
        with part("Flows"):
            self._flow_rows = RowList(
                "flows",
                ("flow", "goodput", "latency", "loss", "state*", ""),
                "no flows yet: start one above",
                self._toggle_flow,
                lambda number: self.do(f"flow {number} stop"),
                changed=self._redraw_lists,
            )

    def _link_list(self) -> None:
        with part("Links"):
            self._link_rows = RowList(
                "links",
                ("link", "state", "rate*", "delay*", "load →", "load ←", "lost*"),
                "this network has no links",
                self.choose_link,
                changed=self._redraw_lists,
            )

    # ---- What is pressed ----

    def do(self, line: str) -> None:
        """Have a line obeyed."""
        self.verbs.do(line)

    def choose_link(self, name: str | None) -> None:
        """Choose a link, wherever it was pressed. None, or the link that is chosen already, changes nothing."""
        if name and name != self.link:
            self.link = name
            self._link_choice.set_value(name)
            self.draw(self.page.watcher.latest)

    def _clicked(self, event: Any) -> None:
        links = self.page.watcher.latest.links
        if event.data_type == "edge":
            found = charts.link_of_line(event.data_index, links)
        else:
            found = charts.link_of_point(event.data_index, self._topology, links)
        if found is not None:
            self.choose_link(found.name)
        elif event.name in self._topology.switches:
            self._switch_choice.set_value(event.name)

    def _on_link(self, what: str) -> None:
        if self.link is not None:
            self.do(f"link {self.link} {what}")

    def _impair(self) -> None:
        given = [(word, field.value.strip()) for word, field in self._impairments() if (field.value or "").strip()]
        if not given:
            self.verbs.say(Said(f"link {self.link}", "fill in loss, delay or rate", ok=False))
        for word, value in given:
            self.do(f"link {self.link} {word} {value}")

    def _impairments(self) -> list[tuple[str, Any]]:
        return [("loss", self._loss), ("delay", self._delay), ("rate", self._rate)]

    def _capture(self) -> None:
        if self.link is None:
            return
        file = self.page.captures / f"{charts.file_name(self.link)}.pcap"

        def offer(_: Said) -> None:
            with self.verbs.log:
                ui.link(f"download {file.name}: what has crossed the link until then", f"/files/{file.name}")

        if file.exists():
            offer(Said("", "", ok=True))
        else:
            self.verbs.do(f"capture {self.link} {file}", offer)

    def _start_flow(self) -> None:
        a, b, kind = self._source.value, self._destination.value, self._kind.value
        rate = (self._udp_rate.value or "").strip() or "1Mbps"
        line = f"{a} ping {b} &" if kind == "ping" else f"iperf {a} {b}{f' udp {rate}' if kind == 'udp' else ''} &"
        self.verbs.do(line, self._show_flow)

    def _show_flow(self, said: Said) -> None:
        if said.result is not None and "flow" in said.result.values:
            self._has_chosen = True
            self.flows = [int(said.result.values["flow"]), *self.flows][: charts.MOST_CURVES]

    def _toggle_flow(self, number: int) -> None:
        self._has_chosen = True
        if number in self.flows:
            self.flows.remove(number)
        else:
            self.flows = [number, *self.flows][: charts.MOST_CURVES]
        self.draw(self.page.watcher.latest)

    def _on_switch(self, what: str) -> None:
        self.do(f"switch {self._switch_choice.value} {what}")

    def _change_mechanism(self) -> None:
        if self._mechanism.value:
            self.do(f"mechanism {self._mechanism.value}")

    # ---- What is shown ----

    def recolour(self) -> None:
        """Draw picture and curves in the colours of the browser's scheme."""
        self._drawn_lines = None
        latest = self.page.watcher.latest
        self._chart.options.clear()
        self._chart.options.update(charts.picture(self._topology, latest.links, self.colours, self.link))
        for chart, options in zip(self._curve_charts, charts.empty_curves(self.colours), strict=True):
            chart.options.clear()
            chart.options.update(options)
        self.draw(latest)

    def draw(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        set_text(
            self._time,
            f"{snapshot.time_s:.1f} s" + ("" if snapshot.pace > 0.9 else f", {snapshot.pace:.0%} of real time"),
        )
        down = [link.name for link in snapshot.links if not link.up]
        more = f" and {len(down) - 3} more" if len(down) > 3 else ""
        set_text(self._cut, f"cut: {', '.join(down[:3])}{more}" if down else "")
        lines = charts.lines(self._topology, snapshot.links, self.colours, self.link)
        if lines != self._drawn_lines:
            self._drawn_lines = lines
            self._chart.options["series"][0].update(lines)
            self._chart.run_chart_method("setOption", {"series": [lines]})
        # A snapshot of a link's change has the flows of the one before.
        shown = (snapshot.time_s, self.colours, tuple(self.flows))
        if shown != self._drawn_flows:
            self._drawn_flows = shown
            self._draw_curves(snapshot)
        self._draw_lists(snapshot)

    def _draw_curves(self, snapshot: Snapshot) -> None:
        known = {flow.number: flow for flow in snapshot.flows}
        if not self._has_chosen:
            self.flows = [flow.number for flow in snapshot.flows if flow.runs][: -NEWEST - 1 : -1]
        # One that has just begun is in the next snapshot.
        newest = max(known, default=0)
        self.flows = [number for number in self.flows if number in known or number > newest]
        if self._curve_box.visible != bool(self.flows):
            self._curve_box.set_visibility(bool(self.flows))
        pasts = {
            f"{number}: {known[number].text}": self.page.watcher.past(number)
            for number in self.flows
            if number in known
        }
        nothing = "choose flows in the list below" if snapshot.flows else "no flows yet: start one above"
        self._legend.show(list(pasts), self.colours.curves, "" if pasts else nothing)
        if not pasts:
            return
        for chart, options in zip(self._curve_charts, charts.curves(pasts, snapshot.time_s, self.colours), strict=True):
            chart.run_chart_method("setOption", options)

    def _redraw_lists(self) -> None:
        self._draw_lists(self.page.watcher.latest)

    def _draw_lists(self, snapshot: Snapshot) -> None:
        flows = snapshot.flows[::-1]
        self._flow_rows.show(
            [f"{flow.number}: {flow.text}" for flow in flows], lambda index: self._flow_row(flows[index])
        )
        self._link_rows.show(
            [link.name for link in snapshot.links], lambda index: self._link_row(snapshot.links[index])
        )
        chosen = next((link for link in snapshot.links if link.name == self.link), None)
        set_text(self._link_text, "" if chosen is None else _sentence(chosen))

    def _flow_row(self, flow: FlowState) -> Row:
        name = f"{flow.number}: {flow.text}"
        state = flow.failure or ("running" if flow.runs else "ended")
        cells = (name, words.rate(flow.goodput_bps), words.delay(flow.delay_ms), words.share(flow.loss), state, "")
        action = "stop" if flow.runs else ""
        return Row(flow.number, cells, flow.number in self.flows, action, f"flow {flow.number}")

    def _link_row(self, link: LinkState) -> Row:
        there, back = link.there, link.back
        state = "cut" if not link.up else "losing" if link.lost_per_s else "up"
        cells = (
            link.name,
            state,
            words.rate(there.rate_bps),
            words.delay(there.delay_ms),
            words.rate(there.bps),
            words.rate(back.bps),
            str(there.lost + back.lost),
        )
        return Row(link.name, cells, link.name == self.link)


def _mechanisms() -> list[str]:
    from holdfast.compare.mechanisms import MECHANISMS

    return list(MECHANISMS)


def _sentence(link: LinkState) -> str:
    """Return what a link is and does, on one line."""
    if not link.up:
        return f"{link.name} is cut"
    there, back = link.there, link.back
    same = (there.rate_bps, there.delay_ms, there.loss) == (back.rate_bps, back.delay_ms, back.loss)
    ways = _way(there) if same else f"{link.a} to {link.b}: {_way(there)}; back: {_way(back)}"
    lost = f"; it loses {link.lost_per_s:.3g} packets/s" if link.lost_per_s else ""
    return f"{ways}; carries {words.rate(there.bps)} to {link.b}, {words.rate(back.bps)} to {link.a}{lost}"


def _way(way: Way) -> str:
    loss = ", loses by a model" if way.loss is None else f", loses {words.share(way.loss)}" if way.loss else ""
    return f"{words.rate(way.rate_bps)}, {words.delay(way.delay_ms)}{loss}"


__all__ = ["NetworkPage"]
