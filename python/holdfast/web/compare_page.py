"""The page of ``compare --web``: the network with what each failure costs, mechanisms whose rows fill, and curves of a failure."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nicegui import ui

from holdfast.compare.failures import JOINED, failing
from holdfast.compare.inputs import NO_FAILURE
from holdfast.topology import Topology
from holdfast.web import charts, words
from holdfast.web.charts import Colours
from holdfast.web.comparison import Standing
from holdfast.web.lists import Row, RowList
from holdfast.web.snapshot import LinkState, Way
from holdfast.web.tabs import Legend, Tab, Tabs, choice, part, set_text

AT_MOST_EVERY_S = 0.5
"""So often the tabs draw, however fast runs finish."""

CURVES = (
    charts.Curve("packets that arrive", "per s", "delivered", 1.0),
    charts.Curve("TCP goodput", "Mbit/s", "goodput", 1e-6),
)


@dataclass(frozen=True)
class RunPoint:
    """An interval of a run."""

    time_s: float
    delivered: float | None
    goodput: float | None


class ComparePage:
    """What the tabs of a comparison's page show."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        with TemporaryDirectory() as folder:
            file = Path(folder) / "topology.yaml"
            file.write_text(standing.about.topology, encoding="utf-8")
            self.topology = Topology.from_yaml(file)
        charts.places(self.topology)
        self.tabs = Tabs(lambda: CompareTab(self))
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def changed(self) -> None:
        """Have all tabs draw soon."""
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(AT_MOST_EVERY_S, self._draw)
                self._timer.daemon = True
                self._timer.start()

    def _draw(self) -> None:
        with self._lock:
            self._timer = None
        self.tabs.each(lambda tab: tab.draw())

    def links(self) -> list[LinkState]:
        """Return the links as the picture draws them: the load is what the link's failure costs, beside the dearest one.

        Of a link that fails together with others it is the mean of these failures.
        """
        standing = self.standing
        with_link: dict[int, list[float]] = {}
        for failure in standing.about.failures:
            known = [
                each for name, *_ in standing.about.mechanisms if (each := standing.lost(name, failure)) is not None
            ]
            if known:
                for number in failing(self.topology, failure).links:
                    with_link.setdefault(number, []).append(max(0.0, sum(known) / len(known)))
        costs = {link: sum(each) / len(each) for link, each in with_link.items()}
        most = max(costs.values(), default=0.0) or 1.0
        idle = Way(rate_bps=None, delay_ms=0.0, loss=0.0)
        found = []
        for i, (name, link) in enumerate(zip(self.topology.link_names(), self.topology.links, strict=True)):
            way = replace(idle, load=costs.get(i, 0.0) / most)
            found.append(LinkState(name, link.a, link.b, True, way, way))
        return found

    def curves(self, failure: str) -> dict[str, list[RunPoint]]:
        """Return the curve of each mechanism under a failure, of the first seed, as far as they are known."""
        about = self.standing.about
        width_s = about.bin_ms / 1000
        found = {}
        for name, *_ in about.mechanisms:
            row = self.standing.rows.get((name, failure, about.seeds[0]))
            if row is not None and row.get("skipped"):
                row = self.standing.rows.get((name, NO_FAILURE, about.seeds[0]))
            if row is None:
                continue
            delivered, goodput = row["delivered_curve"], row["goodput_curve"]
            step = max(1, round(0.05 / width_s))
            points = []
            for at in range(0, max(len(delivered), len(goodput)), step):
                arrived, sent = sum(delivered[at : at + step]), sum(goodput[at : at + step])
                points.append(RunPoint(at * width_s, arrived / (step * width_s), 8 * sent / (step * width_s)))
            found[name] = points
        return found


class CompareTab(Tab):
    """One tab."""

    def __init__(self, page: ComparePage) -> None:
        super().__init__()
        self.page = page
        about = page.standing.about
        self._failure = about.failures[0]
        self._drawn: object = None
        with ui.element("header").classes("head"):
            with ui.element("h1"):
                ui.label(about.title)
            self._progress_text = ui.label().classes("faint").props("aria-live=polite")
            self._report = ui.link("open the report", "/files/report.html", new_tab=True)
        self._bar = ui.linear_progress(0.0, show_value=False).props('aria-label="finished runs" color=accent')
        with (
            ui.element("main").classes("nicegui-column").style("align-items: stretch; gap: 0.6rem"),
            ui.element("div").classes("board"),
        ):
            with ui.element("section").classes("part").props('aria-label="picture"'):
                options = charts.picture(page.topology, page.links(), self.colours, self._failure)
                self._chart = ui.echart(options, on_point_click=self._clicked).classes("picture")
                ui.label("wider and warmer links: their failure costs more packets, mean of the mechanisms").classes(
                    "faint"
                )
            with ui.element("div").classes("beside"):
                with part("Mechanisms"):
                    self._rows = RowList(
                        "mechanisms",
                        ("mechanism", "runs", "lost, mean", "worst failure*", "outage"),
                        "no mechanisms",
                        None,
                        changed=self.draw,
                    )
                with part("Under one failure"):
                    with ui.element("div").classes("row"):
                        self._choice = choice("failure", list(about.failures), self._failure, self._choose)
                    self._legend = Legend()
                    with ui.element("div").classes("curves"):
                        self._charts = [ui.echart(self._axes(each)).classes("curve") for each in self._known()]
        self.draw()

    def _empty(self) -> list[dict[str, Any]]:
        return charts.empty_curves(self.colours, CURVES)

    def _known(self) -> list[dict[str, Any]]:
        """Return the charts as they are now: what is drawn before a chart is there would be lost."""
        pasts = self.page.curves(self._failure)
        return charts.curves(pasts, 0.0, self._palette(pasts), CURVES)

    def _axes(self, options: dict[str, Any]) -> dict[str, Any]:
        options["xAxis"] |= {"min": 0, "max": self.page.standing.about.end_s, "interval": None}
        return options

    def _clicked(self, event: Any) -> None:
        links = self.page.links()
        found = (
            charts.link_of_line(event.data_index, links)
            if event.data_type == "edge"
            else charts.link_of_point(event.data_index, self.page.topology, links)
        )
        name = event.name if found is None else found.name
        known = self.page.standing.about.failures
        # Of several that a link fails in, the first.
        if chosen := next((each for each in known if name in (each, *each.split(JOINED))), None):
            self._choice.set_value(chosen)

    def _choose(self, failure: str | None) -> None:
        if failure:
            self._failure = failure
            self.draw()

    def recolour(self) -> None:
        """Draw in the colours of the browser's scheme."""
        self._drawn = None
        self._chart.options.clear()
        self._chart.options.update(charts.picture(self.page.topology, self.page.links(), self.colours, self._failure))
        for chart, options in zip(self._charts, self._empty(), strict=True):
            chart.options.clear()
            chart.options.update(self._axes(options))
        self.draw()

    def draw(self) -> None:
        """Show what is known."""
        standing = self.page.standing
        about, finished = standing.about, len(standing.rows)
        set_text(self._progress_text, f"{finished} of {standing.total} runs" + (", done" if standing.is_done else ""))
        if self._bar.value != (share := round(finished / standing.total, 3)):
            self._bar.set_value(share)
        if self._report.visible != standing.is_done:
            self._report.set_visibility(standing.is_done)
        lines = charts.lines(self.page.topology, self.page.links(), self.colours, self._failure)
        if lines != self._drawn:
            self._drawn = lines
            self._chart.run_chart_method("setOption", {"series": [lines]})
        self._rows.show([name for name, *_ in about.mechanisms], self._row)
        pasts = self.page.curves(self._failure)
        more = f"; {len(pasts) - charts.MOST_CURVES} more are in the report" if len(pasts) > charts.MOST_CURVES else ""
        until = f"from {about.failure_s:g} s to {about.repair_s:g} s of {about.end_s:g} s"
        palette = self._palette(pasts)
        names = list(pasts)[: charts.MOST_CURVES]
        self._legend.show(names, palette.curves, f"{until}{more}" if pasts else f"{until}: no run has finished yet")
        for chart, options in zip(self._charts, charts.curves(pasts, 0.0, palette, CURVES), strict=True):
            chart.run_chart_method("setOption", self._axes(options))

    def _palette(self, pasts: dict[str, Any]) -> Colours:
        """Return the colours with those of the mechanisms for their curves, as in the report."""
        own = {
            name: dark if self.colours is charts.DARK else light
            for name, _, light, dark in self.page.standing.about.mechanisms
        }
        chosen = [own[name] for name in pasts][: charts.MOST_CURVES]
        return replace(self.colours, curves=(*chosen, *self.colours.curves)[: charts.MOST_CURVES])

    def _row(self, index: int) -> Row:
        standing = self.page.standing
        name = standing.about.mechanisms[index][0]
        finished, of = standing.finished(name), standing.total // len(standing.about.mechanisms)
        lost, worst, outage = standing.mean_lost(name), standing.worst(name), standing.outage_ms(name)
        cells = (
            name,
            f"{finished} of {of}",
            words.NOTHING if lost is None else f"{lost:,.4g}",
            words.NOTHING if worst is None else f"{worst[0]}: {worst[1]:,.4g}",
            words.NOTHING if outage is None else f"{outage:,.4g} ms",
        )
        return Row(name, cells)


__all__ = ["ComparePage"]
