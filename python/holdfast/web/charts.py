"""The picture of a network and the curves of its flows, as options of Apache ECharts. Values in, values out: no page, no network.

A link is a line for each direction, in large networks one for both. Its state has a form and not only a colour: what is cut is
dashed, what loses packets dotted; the width is the load. The colours have a contrast of 4.5:1 for text, and 3:1 for lines, on their
ground (``test_charts.py`` computes it).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.topology import Topology
from holdfast.web import words
from holdfast.web.snapshot import WINDOW_S, LinkState, Way

BOTH_WAYS = 60
"""Up to this number of links, each direction has its line."""

WRITTEN = 30
"""Up to this number of links, rate and delay are written on each."""

NAMED = 60
"""Up to this number of nodes, hosts have their names; switches up to three times as many."""

MOST_CURVES = 5
"""Flows whose curves are shown at the same time."""


@dataclass(frozen=True)
class Colours:
    """The colours on one ground. ``loads``: for a load up to a fifth, two fifths and so on."""

    ground: str
    text: str
    faint: str
    switch: str
    host: str
    cut: str
    losing: str
    loads: tuple[str, ...]
    curves: tuple[str, ...]


LIGHT = Colours(
    ground="#f3f5f8",
    text="#1b1f24",
    faint="#5b6470",
    switch="#0b57a4",
    host="#8a5a00",
    cut="#b3261e",
    losing="#9c27b0",
    loads=("#7a8594", "#2f7d4f", "#4f7a00", "#8a6d00", "#b45309"),
    curves=("#0b57a4", "#b45309", "#2f7d4f", "#9c27b0", "#5b6470"),
)

DARK = Colours(
    ground="#1f242a",
    text="#eceff3",
    faint="#a7b0bb",
    switch="#7cb7ff",
    host="#f0b95a",
    cut="#ff8a80",
    losing="#e39bf0",
    loads=("#808b98", "#5cc489", "#a4cf4a", "#e3c04d", "#ff9e57"),
    curves=("#7cb7ff", "#ffb27a", "#6fd19a", "#e39bf0", "#a7b0bb"),
)

STEPS = (0.2, 0.4, 0.6, 0.8)
"""Loads at which a line's colour changes."""

_SIZE = 1000.0


_places: WeakKeyDictionary[Topology, dict[str, tuple[float, float]]] = WeakKeyDictionary()


def places(topology: Topology) -> dict[str, tuple[float, float]]:
    """Return where nodes are drawn, as in the picture of ``holdfast topology``: x to the right, y downwards, from 0 to 1000.

    They are computed once for a topology.
    """
    if topology not in _places:
        _places[topology] = _computed(topology)
    return _places[topology]


def _computed(topology: Topology) -> dict[str, tuple[float, float]]:
    from holdfast.placement import places_of

    if not topology.switches:
        return {name: (_SIZE * i / max(1, len(topology.hosts) - 1), 0.0) for i, name in enumerate(topology.hosts)}
    found = places_of(topology)
    xs, ys = zip(*found.values(), strict=True)
    # Stretched to a wide picture, but not beyond three times: what was square stays recognisable.
    width, height = max(xs) - min(xs), max(ys) - min(ys)
    width, height = max(width, height / 3) or 1.0, max(height, width / 3) or 1.0
    return {
        name: (round(_SIZE * (x - min(xs)) / width, 1), round(0.62 * _SIZE * (max(ys) - y) / height, 1))
        for name, (x, y) in found.items()
    }


def picture(topology: Topology, links: Sequence[LinkState], colours: Colours, chosen: str | None) -> dict[str, Any]:
    """Return the whole picture; :func:`lines` has the part that changes.

    ``chosen``: the name of the link that is chosen, None if none is.
    """
    nodes = len(topology.switches) + len(topology.hosts)
    return {
        "animation": False,
        "backgroundColor": "transparent",
        "aria": {"enabled": True, "label": {"description": _description(topology)}},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "roam": nodes > NAMED,
                "preserveAspect": True,
                "left": 40,
                "right": 40,
                "top": 34,
                "bottom": 34,
                "labelLayout": {"hideOverlap": True},
                "emphasis": {"disabled": True},
                "lineStyle": {"opacity": 1},
                "data": nodes_of(topology, colours),
                **lines(topology, links, colours, chosen),
            }
        ],
    }


def _description(topology: Topology) -> str:
    return f"Picture of the network {topology.name}: {topology.size}. The tables below say the same."


def lines(topology: Topology, links: Sequence[LinkState], colours: Colours, chosen: str | None) -> dict[str, Any]:
    """Return the part of a picture's series that changes with a snapshot: its lines, and what is written on them.

    The lines are in the order of :func:`link_of_line`. What is written on a link is the label of a point in its middle, which comes
    behind the nodes: labels of lines are neither moved nor kept apart by the library. ``chosen`` is as in :func:`picture`.
    """
    drawn = []
    for link in links:
        both = len(links) <= BOTH_WAYS
        ways = ((link.a, link.b, link.there), (link.b, link.a, link.back)) if both else ((link.a, link.b, None),)
        drawn += [{"source": a, "target": b, "lineStyle": _style(link, way, colours, chosen)} for a, b, way in ways]
    written = {
        "color": colours.text,
        "fontSize": 12,
        "distance": 3,
        "textBorderColor": colours.ground,
        "textBorderWidth": 2,
    }
    if len(links) > WRITTEN:
        return {"links": drawn, "label": written}
    at = places(topology)
    points = []
    for link in links:
        (x1, y1), (x2, y2) = at[link.a], at[link.b]
        # Between switches: the links of hosts are short, and say the same on the page's list.
        label = _label(link) if {link.a, link.b} <= topology.switches.keys() or not link.up else ""
        points.append(
            {
                "name": f"on {link.name}",
                "x": round((x1 + x2) / 2, 1),
                "y": round((y1 + y2) / 2, 1),
                "symbol": "rect",
                "symbolSize": [40, 14],
                "itemStyle": {"color": "transparent"},
                "label": {
                    "show": bool(label),
                    "position": "inside",
                    "formatter": label,
                    "fontSize": 11,
                    "lineHeight": 13,
                    "backgroundColor": colours.ground,
                    "padding": [1, 3],
                    "textBorderWidth": 0,
                    "color": colours.text if link.up else colours.cut,
                },
            }
        )
    return {"links": drawn, "label": written, "data": [*nodes_of(topology, colours), *points]}


def nodes_of(topology: Topology, colours: Colours) -> list[dict[str, Any]]:
    """Return the nodes of a picture, switches and hosts, in the order of :func:`places`."""
    nodes = len(topology.switches) + len(topology.hosts)
    size = max(6.0, min(18.0, 80 / math.sqrt(nodes + 1)))
    drawn = []
    for name, (x, y) in places(topology).items():
        is_switch = name in topology.switches
        drawn.append(
            {
                "name": name,
                "x": x,
                "y": y,
                "symbol": "rect" if is_switch else "circle",
                "symbolSize": size if is_switch else 0.7 * size,
                "itemStyle": {"color": colours.switch if is_switch else colours.host},
                "label": {
                    "show": nodes <= (3 * NAMED if is_switch else NAMED),
                    "position": "top" if is_switch else "bottom",
                },
            }
        )
    return drawn


def link_of_line(number: int, links: Sequence[LinkState]) -> LinkState | None:
    """Return the link that a line of the picture stands for; None if there is no such line."""
    index = number // 2 if len(links) <= BOTH_WAYS else number
    return links[index] if 0 <= index < len(links) else None


def _style(link: LinkState, way: Way | None, colours: Colours, chosen: str | None) -> dict[str, Any]:
    load = link.load if way is None else way.load
    lost_per_s = link.lost_per_s if way is None else way.lost_per_s
    width = 2.0 + round(4 * (load or 0.0))
    if link.name == chosen:
        width += 2.0
    if not link.up:
        colour, form = colours.cut, "dashed"
    elif lost_per_s > 0:
        colour, form = colours.losing, "dotted"
    else:
        colour, form = colours.loads[sum((load or 0.0) > step for step in STEPS)], "solid"
    return {"color": colour, "type": form, "width": width, "curveness": 0.0 if way is None else 0.06}


def link_of_point(number: int, topology: Topology, links: Sequence[LinkState]) -> LinkState | None:
    """Return the link on whose middle a point of the picture is, or None if it is a node."""
    index = number - len(topology.switches) - len(topology.hosts)
    return links[index] if 0 <= index < len(links) else None


def _label(link: LinkState) -> str:
    """Return what is written on a link: its rate and delay, and what is wrong with it."""
    if not link.up:
        return "cut"
    there = link.there
    said = [words.rate(there.rate_bps)] if there.rate_bps else []
    said += [words.delay(there.delay_ms)] if there.delay_ms else []
    said += ["lossy"] if there.loss is None else [f"loses {words.share(there.loss)}"] if there.loss else []
    return "\n".join(said)


def file_name(text: str) -> str:
    """Return a name as a part of a file's: letters, digits, dots and hyphens; others become underscores."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", text).lstrip(".") or "_"


@dataclass(frozen=True)
class Curve:
    """A chart of the last minute: what it shows of points such as :class:`Point`, times ``factor``."""

    name: str
    unit: str
    field: str
    factor: float


CURVES = (
    Curve("goodput", "Mbit/s", "goodput_bps", 1e-6),
    Curve("latency", "ms", "delay_ms", 1.0),
    Curve("loss", "%", "loss", 100.0),
)


def curves(
    flows: Mapping[str, Sequence[Any]], now_s: float, colours: Colours, of: Sequence[Curve] = CURVES
) -> list[dict[str, Any]]:
    """Return the charts of ``of`` at a moment: each of ``flows`` is a line of points in every one of them."""
    begin_s = max(0, math.ceil(now_s - WINDOW_S))
    axis = {"min": begin_s, "max": begin_s + WINDOW_S}
    # With titles and axes: a browser that has lost a change of colours gets it with the next one.
    return [
        {**empty, "xAxis": {**empty["xAxis"], **axis}, "series": _series(flows, each, colours)}
        for each, empty in zip(of, empty_curves(colours, of), strict=True)
    ]


FORMS = ("solid", "dashed", "dotted", "solid", "dashed")
"""Of the curves, beside their colours."""


def _series(flows: Mapping[str, Sequence[Any]], curve: Curve, colours: Colours) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    names = list(flows)[:MOST_CURVES]
    for index in range(MOST_CURVES):
        points = flows[names[index]] if index < len(names) else ()
        found.append(
            {
                "id": str(index),
                "name": names[index] if index < len(names) else "",
                "type": "line",
                "showSymbol": False,
                "lineStyle": {"width": 2, "type": FORMS[index]},
                "data": list(_data(points, curve)),
                "color": colours.curves[index],
            }
        )
    return found


def _data(points: Iterable[Any], curve: Curve) -> Iterator[list[Any]]:
    for point in points:
        value = getattr(point, curve.field)
        yield [round(point.time_s, 2), "-" if value is None else float(f"{value * curve.factor:.3g}")]


def empty_curves(colours: Colours, of: Sequence[Curve] = CURVES) -> list[dict[str, Any]]:
    """Return the charts of ``of`` without any line: axes, units and colours."""
    axis = {
        "axisLabel": {"color": colours.faint, "fontSize": 11, "hideOverlap": True},
        "axisLine": {"onZero": False, "lineStyle": {"color": colours.faint}},
        "splitLine": {"lineStyle": {"color": colours.faint, "opacity": 0.25}},
    }
    title = {"color": colours.text, "fontSize": 12, "fontWeight": "normal"}
    return [
        {
            "animation": False,
            "backgroundColor": "transparent",
            "aria": {
                "enabled": True,
                "label": {"description": f"{each.name}, in {each.unit}, of the last minute"},
            },
            "grid": {"left": 52, "right": 14, "top": 26, "bottom": 24},
            "title": {"text": f"{each.name}, {each.unit}", "left": 6, "top": 0, "textStyle": title},
            "xAxis": {"type": "value", "min": 0, "max": WINDOW_S, "interval": 15, **axis, "splitLine": {"show": False}},
            "yAxis": {"type": "value", "min": 0, "splitNumber": 3, **axis},
            "series": _series({}, each, colours),
        }
        for each in of
    ]


__all__ = [
    "CURVES",
    "DARK",
    "FORMS",
    "LIGHT",
    "MOST_CURVES",
    "Colours",
    "Curve",
    "curves",
    "empty_curves",
    "file_name",
    "lines",
    "link_of_line",
    "link_of_point",
    "nodes_of",
    "picture",
    "places",
]
