"""How values are shown in notebooks: topologies as pictures, comparisons as tables, statistics with the words of their fields.

Names are users' text: the templates escape every value. Nothing here measures, and nothing outside of notebooks imports this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from holdfast import field_docs

if TYPE_CHECKING:
    from holdfast.compare.page import Column
    from holdfast.compare.ranking import Ranking
    from holdfast.topology import Topology

MOST_DRAWN = 400
"""The most switches of a topology that is drawn."""

MOST_LINKS = 40
"""The most links of a topology that are listed."""

_TEMPLATES = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)

_PICTURE = _TEMPLATES.from_string(
    """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" width="640" height="400" role="img" font-family="sans-serif">
<title>{{ name }}</title>
{% for x1, y1, x2, y2 in lines %}
<line x1="{{ x1 }}" y1="{{ y1 }}" x2="{{ x2 }}" y2="{{ y2 }}" stroke="#888888"/>
{% endfor %}
{% for x, y, label, kind in nodes %}
{% if kind == "switch" %}
<rect x="{{ x - 5 }}" y="{{ y - 5 }}" width="10" height="10" fill="#0072B2"><title>{{ label }}</title></rect>
{% else %}
<circle cx="{{ x }}" cy="{{ y }}" r="4" fill="#E69F00"><title>{{ label }}</title></circle>
{% endif %}
{% if labels or kind == "switch" %}
<text x="{{ x }}" y="{{ y - 8 }}" font-size="10" text-anchor="middle" fill="currentColor">{{ label }}</text>
{% endif %}
{% endfor %}
</svg>
"""
)

_TABLE = _TEMPLATES.from_string(
    """{% if before %}<p>{{ before }}</p>
{% endif %}
{{ picture }}
<table>
<thead><tr>{% for heading in headings %}<th>{{ heading }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
{% if after %}<p>{{ after }}</p>
{% endif %}
"""
)

_BARS = _TEMPLATES.from_string(
    """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {{ 20 * bars|length + 26 }}" width="640" \
height="{{ 20 * bars|length + 26 }}" role="img" font-family="sans-serif" font-size="12">
<title>{{ title }}</title>
<text x="4" y="14" fill="currentColor">{{ title }}</text>
{% for name, value, share, colour in bars %}
<text x="4" y="{{ 20 * loop.index + 15 }}" fill="currentColor">{{ name }}</text>
<rect x="160" y="{{ 20 * loop.index + 4 }}" width="{{ share }}" height="14" fill="{{ colour }}"/>
<text x="{{ 166 + share }}" y="{{ 20 * loop.index + 15 }}" fill="currentColor">{{ value }}</text>
{% endfor %}
</svg>
"""
)


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], **around: object) -> str:
    """Return an HTML table; ``before`` and ``after`` are lines around it, and ``picture`` is markup above it."""
    return _TABLE.render({"before": "", "after": "", "picture": "", **around, "headings": headings, "rows": rows})


def values(value: Any) -> str:
    """Return a dataclass as an HTML table: each field with its value, times in milliseconds, and what it is."""
    kind: type = type(value)
    words = field_docs.of(kind)
    rows: list[tuple[object, ...]] = []
    for name, given in _flat(asdict(value)):
        rows.append((*_shown(name, given), words.get(name.partition(".")[0], "")))
    return table(("value of " + kind.__name__, "", "what it is"), rows)


def _flat(given: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in given.items():
        found += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]
    return found


def _shown(name: str, value: Any) -> tuple[str, str]:
    """Return a field's name and value, picoseconds as milliseconds, long lists by their lengths."""
    if isinstance(value, int | float) and not isinstance(value, bool) and name.endswith("_ps"):
        return f"{name.removesuffix('_ps')} (ms)", f"{value / 1e9:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return name, f"{value:,}"
    if isinstance(value, float):
        return name, f"{value:.6g}"
    if not isinstance(value, str) and hasattr(value, "__len__"):
        return name, f"{len(value)} values"
    return name, "\N{EN DASH}" if value is None else str(value)


def topology_picture(topology: Topology) -> str | None:
    """Return a topology as an SVG picture, or None if it has more than :data:`MOST_DRAWN` switches, or none."""
    if not 0 < len(topology.switches) <= MOST_DRAWN:
        return None
    from holdfast.placement import places_of

    places = places_of(topology)
    xs, ys = zip(*places.values(), strict=True)
    scale = min(580 / (max(xs) - min(xs) or 1), 330 / (max(ys) - min(ys) or 1))

    def at(node: str) -> tuple[float, float]:
        x, y = places[node]
        return round(30 + (x - min(xs)) * scale, 1), round(375 - (y - min(ys)) * scale, 1)

    lines = [(*at(link.a), *at(link.b)) for link in topology.links]
    nodes = [(*at(name), name, "switch") for name in topology.switches]
    nodes += [(*at(name), name, "host") for name in topology.hosts]
    return _PICTURE.render(name=topology.name, lines=lines, nodes=nodes, labels=len(nodes) <= 40)


def topology_page(topology: Topology) -> str:
    """Return a topology as HTML: its size, its picture, and its first links."""
    from holdfast.topologies import link_rows

    headings, *rows = link_rows(topology, MOST_LINKS)
    size = f"{len(topology.switches)} switches, {len(topology.hosts)} hosts, {len(topology.links)} links"
    more = len(topology.links) - len(rows)
    picture = Markup(topology_picture(topology) or "")  # noqa: S704 - a template has escaped it
    after = f"... and {more} more links" if more else ""
    return table(headings, rows, before=f"{topology.name}: {size}", picture=picture, after=after)


def comparison_page(comparison: Ranking, columns: Sequence[Column], advice: str) -> str:
    """Return a comparison as HTML: the ranking with a world's columns, and its advice."""
    headings = ["rank", "mechanism", *(f"{heading} ({unit})" if unit else heading for heading, unit, _, _ in columns)]
    rows = [
        ["" if each.rank is None else each.rank, each.mechanism, *(show(each) for _, _, show, _ in columns)]
        for each in comparison.summaries
    ]
    return table(headings, rows, after=advice)


def comparison_picture(comparison: Ranking) -> str:
    """Return a comparison as an SVG picture: a bar for what each mechanism loses to a failure, mean over the failures."""
    colours = {each.name: each.colour[0] for each in comparison.mechanisms}
    most = max((each.lost_mean for each in comparison.summaries), default=0.0)
    bars = [
        (
            each.mechanism,
            f"{each.lost_mean:,.4g}",
            round(400 * max(0.0, each.lost_mean) / most, 1) if most > 0 else 0,
            colours[each.mechanism],
        )
        for each in comparison.summaries
    ]
    return _BARS.render(title="lost to a failure, mean", bars=bars)


def frame_names(names: Mapping[str, Sequence[str]], before: str) -> str:
    """Return a folder's tables as HTML: the columns of each."""
    return table(("table", "columns"), [(name, ", ".join(columns)) for name, columns in names.items()], before=before)


__all__ = [
    "comparison_page",
    "comparison_picture",
    "frame_names",
    "table",
    "topology_page",
    "topology_picture",
    "values",
]
