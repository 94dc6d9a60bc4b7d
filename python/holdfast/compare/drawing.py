"""The pictures of a report, as SVG that takes its colours from the page: curves over time, the network, and the distribution.

Numbers in, text out; their meaning is the report's business. Classes and variables of colour are in ``report.css``.
Elements are :class:`Markup`, which escapes every string that is formatted into it or joined with it and is not itself markup.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from markupsafe import Markup

from holdfast.placement import places_of
from holdfast.topology import Topology

WIDE, NARROW = 760.0, 360.0
"""The widths in pixels of pictures for wide windows and for phones; letters have the same size in both."""

LABELLED_SWITCHES = {WIDE: 40, NARROW: 16}
"""The most switches that have their names drawn, by width; with more, only failing elements have names, others on pointing."""


def _f(value: float) -> str:
    """Format a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def picture(width: float, height: float, parts: Sequence[Markup], label: str) -> Markup:
    """Return an SVG element of ``width`` by ``height`` pixels with the drawn ``parts``.

    ``label`` describes the picture to people who cannot see it.
    """
    svg = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">\n{}\n</svg>')
    return svg.format(_f(width), _f(height), label, Markup("\n").join(parts))


def text(x: float, y: float, words: str, *, anchor: str = "start", style: str) -> Markup:
    """Return an SVG element with one line of text; ``style`` is its CSS class."""
    return Markup('<text x="{}" y="{}" text-anchor="{}" class="{}">{}</text>').format(
        _f(x), _f(y), anchor, style, words
    )


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """Return an SVG element of a straight line; ``style`` is its CSS class."""
    element = Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>')
    return element.format(_f(x1), _f(y1), _f(x2), _f(y2), style)


def path(course: str, style: str) -> Markup:
    """Return an SVG element of a path; ``course`` is its path data, ``style`` its CSS class."""
    return Markup('<path d="{}" class="{}"/>').format(course, style)


def nice_step(span: float, count: int) -> float:
    """Return a round distance between ticks, so that about ``count`` ticks fit into ``span``; 1 if ``span`` is not above 0."""
    if span <= 0:
        return 1.0
    raw = span / count
    magnitude = 10.0 ** math.floor(math.log10(raw))
    return next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= raw * 0.999)


@dataclass(frozen=True)
class Curve:
    """Values of bins that follow each other, drawn as steps."""

    start_s: float
    bin_s: float
    values: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a curve, the same undisturbed if there is one, and the time of the failure."""

    curve: Curve
    still: Curve | None
    failure: tuple[float, float]
    span: tuple[float, float]
    top: float
    style: str
    unit: str = ""


def panel(spec: Panel, width: float, height: float, label: str) -> Markup:
    """Draw one panel of curves over time, ``width`` by ``height`` pixels, with a time scale below, as a phone shows one at a time.

    ``label`` describes the picture to people who cannot see it.
    """
    left, right, above, below = 36.0, 10.0, 8.0, 18.0
    inner_width, inner_height = width - left - right, height - above - below
    start, end = spec.span

    def x(time_s: float) -> float:
        return left + (min(max(time_s, start), end) - start) / (end - start) * inner_width

    def y(value: float) -> float:
        return above + (1 - min(value, spec.top) / spec.top) * inner_height

    begin, finish = (x(time_s) for time_s in spec.failure)
    down = Markup('<rect x="{}" y="{}" width="{}" height="{}" class="down"><title>the failure lasts</title></rect>')
    parts = [down.format(_f(begin), _f(above), _f(finish - begin), _f(inner_height))]
    step = nice_step(spec.top, 2)
    for i in range(int(spec.top / step + 1e-9) + 1):
        parts.append(line(left, y(i * step), left + inner_width, y(i * step), "grid"))
        parts.append(text(left - 5, y(i * step) + 3.5, f"{i * step:g}", anchor="end", style="tick"))
    step = nice_step(end - start, 5)
    for i in range(math.ceil(start / step - 1e-9), math.floor(end / step + 1e-9) + 1):
        parts.append(line(x(i * step), above + inner_height, x(i * step), above + inner_height + 3, "axis"))
        parts.append(text(x(i * step), above + inner_height + 14, f"{i * step:g}", anchor="middle", style="tick"))
    if spec.still is not None:
        parts.append(path(_steps(spec.still, x, y, start, end), "still"))
    outline = _steps(spec.curve, x, y, start, end)
    floor = f" V{_f(y(0))} H{_f(x(max(start, spec.curve.start_s)))} Z"
    parts.append(path(outline + floor, f"area {spec.style}"))
    parts.append(path(outline, f"curve {spec.style}"))
    parts.append(line(left, above + inner_height, left + inner_width, above + inner_height, "axis"))
    if spec.unit:
        parts += _told(spec, x, above, inner_height)
    return picture(width, height, parts, label)


def _told(spec: Panel, x: Callable[[float], float], above: float, height: float) -> Iterator[Markup]:
    """Yield columns that are not seen, each with the values of a time: what a pointer or a tap shows. There are 60 at most."""
    start, end = spec.span
    bins = [
        (spec.curve.start_s + i * spec.curve.bin_s, value)
        for i, value in enumerate(spec.curve.values)
        if start <= spec.curve.start_s + i * spec.curve.bin_s < end
    ]
    step = -(-len(bins) // 60) or 1
    column = Markup('<rect x="{}" y="{}" width="{}" height="{}" class="told"><title>{}</title></rect>')
    for at in range(0, len(bins), step):
        some = bins[at : at + step]
        left, right = x(some[0][0]), x(some[-1][0] + spec.curve.bin_s)
        words = f"{some[0][0]:.3g} s: {sum(value for _, value in some) / len(some):.3g} {spec.unit}"
        yield column.format(_f(left), _f(above), _f(max(0.0, right - left)), _f(height), words)


def _steps(curve: Curve, x: Callable[[float], float], y: Callable[[float], float], start: float, end: float) -> str:
    """Return the SVG path data of a curve's bins, as steps, from ``start`` to ``end`` in seconds.

    ``x`` and ``y`` return the horizontal coordinate of a time and the vertical one of a value.
    """
    found: list[str] = []
    for i, value in enumerate(curve.values):
        left = curve.start_s + i * curve.bin_s
        if left + curve.bin_s <= start + 1e-9 or left >= end - 1e-9:
            continue
        found.append(f"{'M' + _f(x(left)) + ',' if not found else 'V'}{_f(y(value))}H{_f(x(left + curve.bin_s))}")
    return "".join(found) or "M0,0"


def decade(value: float) -> int:
    """Return the decade of a number: 0 if it is not above 0, 1 up to 10, 2 up to 100, 3 up to 1000, else 4."""
    return 0 if value <= 0 else min(4, max(1, math.ceil(math.log10(value) - 1e-9)))


DECADES = ("none", "1 to 10", "11 to 100", "101 to 1000", "more")
"""The labels of decades of packets, as :func:`decade` numbers them."""


@dataclass(frozen=True)
class LinkLook:
    """The look of a link. ``costs``: by mechanism, packets that its failure loses; without, only whether it is ``used``.

    ``parameters``: its rate and its delay, in words.
    """

    name: str
    a: str
    b: str
    used: bool
    failed: bool
    costs: Mapping[str, float] | None = None
    parameters: str = ""


def network(
    topology: Topology,
    links: Sequence[LinkLook],
    failed_switches: Set[str],
    ends: set[str],
    first: str | None,
    switches: Mapping[str, Mapping[str, float]],
    hosts: Mapping[str, Sequence[str]] | None = None,
    width: float = WIDE,
) -> Markup:
    """Draw the switches at their positions, the links between them, and crosses on failed links and on ``failed_switches``.

    ``ends``: switches whose hosts have traffic. ``switches``: for each switch that fails in turn, the packets that its failure
    costs by mechanism. ``first``: the mechanism whose costs give links and switches their colours. ``hosts``: the names of those at
    each switch, which stand beside its own if there is room; so do the parameters of links, where these differ. ``width``: in
    pixels, ``WIDE`` or ``NARROW``.
    """
    labelled = LABELLED_SWITCHES[width]
    places = {name: place for name, place in places_of(topology).items() if name in topology.switches}
    points, height = _fit(places, width)
    parts = []
    for look in sorted(links, key=lambda each: each.failed):
        (x1, y1), (x2, y2) = points[look.a], points[look.b]
        about = f" ({look.parameters})" if look.parameters else ""
        words = look.name + about + (_named(look.costs) if look.costs else _unused(look))
        style = (
            f"link q{decade((look.costs or {}).get(first or '', 0))}" if look.costs is not None else _link_style(look)
        )
        link = Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"{}><title>{}</title></line>')
        parts.append(link.format(_f(x1), _f(y1), _f(x2), _f(y2), style, _data(look.costs or {}), words))
        if look.failed:
            parts.append(_cross((x1 + x2) / 2, (y1 + y2) / 2))
    size = 5.5 if len(points) <= labelled else 3.5
    for name, (x, y) in points.items():
        style = "switch ends" if name in ends else "switch"
        at = (hosts or {}).get(name, ())
        data, words, radius = Markup(), name + (f": {_some(at)}" if at else ""), size
        if costs := switches.get(name):
            style, data = f"failing q{decade(costs.get(first or '', 0))}", _data(costs)
            words, radius = words + _named(costs), 1.6 * size
        switch = Markup('<circle cx="{}" cy="{}" r="{}" class="{}"{}><title>{}</title></circle>')
        parts.append(switch.format(_f(x), _f(y), _f(radius), style, data, words))
    parts += [_cross(*points[name]) for name in sorted(failed_switches)]
    near = {end for look in links if look.failed for end in (look.a, look.b)} | failed_switches
    named = [name for name in points if len(points) <= labelled or name in near]
    roomy = 2 * len(points) <= labelled
    shown = {name: f"{name} ({_some(at)})" for name, at in (hosts or {}).items() if roomy}
    if roomy and len({look.parameters for look in links}) > 1:
        for look in links:
            (x1, y1), (x2, y2) = points[look.a], points[look.b]
            parts.append(text((x1 + x2) / 2, (y1 + y2) / 2 - 4, look.parameters, anchor="middle", style="parameter"))
    parts += _labels(points, named, [(look.a, look.b) for look in links], width, height, shown)
    return picture(width, height, parts, f"the network {topology.name}")


def slug(name: str) -> str:
    """Return a mechanism's name in a form that can be part of an attribute's name."""
    return name.replace("+", "p").lower()


def _some(names: Sequence[str]) -> str:
    """Return the names of up to two hosts, or the first and how many more there are."""
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} and {len(names) - 1} more"


def _unused(look: LinkLook) -> str:
    return "" if look.used else ": carries none of this traffic"


def _named(costs: Mapping[str, float]) -> str:
    return ": packets lost if it fails\n" + "\n".join(f"{name}: {cost:.0f}" for name, cost in costs.items())


def _data(costs: Mapping[str, float]) -> Markup:
    """Return HTML attributes for the page's script: the decade of the failure's cost, by mechanism."""
    attribute = Markup(' data-{}="{}"')
    return Markup().join(attribute.format(slug(name), decade(cost)) for name, cost in costs.items())


def _link_style(look: LinkLook) -> str:
    return "link failed" if look.failed else "link used" if look.used else "link"


def _cross(x: float, y: float) -> Markup:
    left, right, above, below = _f(x - 7), _f(x + 7), _f(y - 7), _f(y + 7)
    course = f"M{left},{above} L{right},{below} M{left},{below} L{right},{above}"
    cross = Markup('<g class="cross"><circle cx="{}" cy="{}" r="11"/><path d="{}"/></g>')
    return cross.format(_f(x), _f(y), course)


def _fit(places: Mapping[str, tuple[float, float]], width: float) -> tuple[dict[str, tuple[float, float]], float]:
    """Scale positions to ``width`` with north up, and limit the ratio of height to width; return the points and the height."""
    xs, ys = zip(*places.values(), strict=True)
    wide, high = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 0.0
    margin_x, margin_y = (70.0 if width == WIDE else 46.0), 34.0
    inner = width - 2 * margin_x
    # A narrow drawing may be taller than the topology is, so that names have room.
    tall = min(max(inner * high / wide, 110.0 if width == WIDE else 200.0), 470.0)
    points = {
        name: (
            margin_x + (x - min(xs)) / wide * inner,
            margin_y + (1 - (y - min(ys)) / high if high else 0.5) * tall,
        )
        for name, (x, y) in places.items()
    }
    return points, tall + 2 * margin_y


Box = tuple[float, float, float, float]


def _labels(
    points: Mapping[str, tuple[float, float]],
    names: Sequence[str],
    links: Sequence[tuple[str, str]],
    width: float,
    height: float,
    texts: Mapping[str, str],
) -> list[Markup]:
    """Return SVG elements with the switches' names, or their ``texts``, each beside its switch where it covers least.

    A name that would cover another name is left out; the pointer shows it.
    """
    written: list[Box] = []
    taken: list[Box] = [(x - 6, y - 6, x + 6, y + 6) for x, y in points.values()]
    dots = [
        (ax + (bx - ax) * i / 24, ay + (by - ay) * i / 24)
        for (ax, ay), (bx, by) in ((points[a], points[b]) for a, b in links)
        for i in range(25)
    ]
    parts = []
    for name in names:
        x, y = points[name]
        shown = texts.get(name, name).replace("_", " ")
        wide = 6.4 * len(shown)
        choices = [
            (x, y - 10, "middle", (x - wide / 2, y - 21, x + wide / 2, y - 8)),
            (x, y + 18, "middle", (x - wide / 2, y + 8, x + wide / 2, y + 21)),
            (x + 10, y + 4, "start", (x + 9, y - 7, x + 9 + wide, y + 7)),
            (x - 10, y + 4, "end", (x - 9 - wide, y - 7, x - 9, y + 7)),
        ]

        def burden(box: Box) -> float:
            hits = 6 * sum(_overlap(box, other) for other in taken)
            hits += sum(box[0] <= dx <= box[2] and box[1] <= dy <= box[3] for dx, dy in dots)
            outside = box[0] < 0 or box[2] > width or box[1] < 0 or box[3] > height
            return hits + 100 * outside

        best = min(choices, key=lambda choice: burden(choice[3]))
        if any(_overlap(best[3], other) for other in written):
            continue
        written.append(best[3])
        taken.append(best[3])
        parts.append(text(best[0], best[1], shown, anchor=best[2], style="name"))
    return parts


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@dataclass(frozen=True)
class Dots:
    """The values of a mechanism, one per failure, with the failures' names."""

    name: str
    style: str
    values: Sequence[tuple[float, str]]


def distribution(rows: Sequence[Dots], unit: str, *, floor: float, width: float = WIDE) -> Markup:
    """Draw a row of dots per mechanism over a logarithmic scale; values below ``floor`` are drawn at its left end.

    ``unit``: of the values, in the scale's text. ``width``: in pixels, ``WIDE`` or ``NARROW``.
    """
    left, row_height = 112.0 if width == WIDE else 94.0, 34.0
    left = max(left, 8 + 6.6 * max((len(row.name) for row in rows), default=0))
    top = max((value for row in rows for value, _ in row.values), default=floor)
    decades = max(1, math.ceil(math.log10(max(top, floor) / floor) - 1e-9))
    inner = width - left - 24
    zero = left + 18

    def x(value: float) -> float:
        if value < floor:
            return zero
        return zero + 30 + (inner - 48) * math.log10(value / floor) / decades

    height = row_height * len(rows) + 34
    parts = [
        line(zero, 4, zero, height - 30, "grid"),
        text(zero, height - 16, f"< {floor:g}", anchor="middle", style="tick"),
    ]
    for i in range(decades + 1):
        parts.append(line(x(floor * 10**i), 4, x(floor * 10**i), height - 30, "grid"))
        parts.append(text(x(floor * 10**i), height - 16, f"{floor * 10**i:g}", anchor="middle", style="tick"))
    parts.append(text(width - 4, height - 2, unit, anchor="end", style="tick"))
    for i, row in enumerate(rows):
        middle = 4 + row_height * (i + 0.5)
        parts.append(text(left - 8, middle + 4, row.name, anchor="end", style="rowname"))
        parts.append(_dots(row, middle, zero, floor, x, row_height - 8))
    return picture(width, height, parts, f"distribution of {unit}")


def _dots(row: Dots, middle: float, zero: float, floor: float, x: Callable[[float], float], room: float) -> Markup:
    """Draw the dots of one row; dots that would cover each other are drawn above and below.

    ``x`` returns the horizontal coordinate of a value. Values below ``floor`` are drawn as one dot with their number, at ``zero``.
    """
    columns: dict[int, list[tuple[float, str]]] = {}
    below = 0
    for value, name in sorted(row.values, reverse=True):
        if value < floor:
            below += 1
        else:
            columns.setdefault(round(x(value) / 7), []).append((value, name))
    found = []
    if below:
        few = Markup('<circle cx="{}" cy="{}" r="4.2" class="dot {}"/>')
        found.append(few.format(_f(zero), _f(middle), row.style))
        found.append(text(zero + 8, middle + 4, str(below), style="tick"))
    dot = Markup('<circle cx="{}" cy="{}" r="3.2" class="dot {}"><title>{}: {:.3g}</title></circle>')
    for members in columns.values():
        step = min(6.0, room / len(members))
        for rank, (value, name) in enumerate(members):
            y = middle + (rank + 1) // 2 * step * (-1 if rank % 2 else 1)
            found.append(dot.format(_f(x(value)), _f(y), row.style, name, value))
    return Markup().join(found)


@dataclass(frozen=True)
class Line:
    """A mechanism's curve: points of x and y."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]


def growth(lines: Sequence[Line], *, width: float = WIDE) -> Markup:
    """Draw curves over two logarithmic axes, each with its mechanism's name at the end. Values below 0.1 are on the zero line.

    ``width``: in pixels, ``WIDE`` or ``NARROW``.
    """
    left, right, height = 44.0, width - 124.0, 220.0
    zero, bottom = height - 36, height - 54
    x_top = max((x for each in lines for x, _ in each.points), default=1.0)
    y_top = max((y for each in lines for _, y in each.points), default=1.0) or 1.0
    across, up = (max(1, math.ceil(math.log10(top / floor) - 1e-9)) for top, floor in ((x_top, 1.0), (y_top, 0.1)))

    def x(value: float) -> float:
        return left + (right - left) * math.log10(max(value, 1.0)) / across

    def y(value: float) -> float:
        return zero if value < 0.1 else bottom - (bottom - 8) * math.log10(value / 0.1) / up

    parts = [line(left, zero, right, zero, "grid"), text(left - 6, zero + 4, "0", anchor="end", style="tick")]
    for i in range(up + 1):
        parts.append(line(left, y(0.1 * 10**i), right, y(0.1 * 10**i), "grid"))
        parts.append(text(left - 6, y(0.1 * 10**i) + 4, f"{0.1 * 10**i:g}", anchor="end", style="tick"))
    for i in range(across + 1):
        parts.append(line(x(10**i), 8, x(10**i), zero, "grid"))
        parts.append(text(x(10**i), height - 18, f"{10**i}", anchor="middle", style="tick"))
    parts.append(text(right, height - 2, "groups", anchor="end", style="tick"))
    # Names of curves that end together stand below each other.
    lowest = -math.inf
    for each in sorted(lines, key=lambda each: y(each.points[-1][1])):
        course = "".join(f"{'L' if i else 'M'}{_f(x(a))} {_f(y(b))}" for i, (a, b) in enumerate(each.points))
        parts.append(path(course, f"curve {each.style}"))
        lowest = max(lowest + 13, y(each.points[-1][1]) + 4)
        parts.append(text(right + 6, lowest, each.name, style="tick"))
    return picture(width, height, parts, "state in the core by the number of groups")
