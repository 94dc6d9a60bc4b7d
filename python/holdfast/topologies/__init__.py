"""Topologies by name, from files, and the generators behind the names.

``load("fat-tree:4")``, ``load("waxman:20,seed=3")``, ``load("abilene")``, ``load("office.yaml")``, ``load("Zoo.graphml")``.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from holdfast.errors import TopologyError, TopologyWarning
from holdfast.link import describe_loss, describe_queue
from holdfast.numerals import is_numeral
from holdfast.suggestions import alternatives
from holdfast.topologies import outside, recognised
from holdfast.topologies.backbones import abilene, nsfnet
from holdfast.topologies.graphml import named
from holdfast.topologies.random_graphs import erdos_renyi, waxman
from holdfast.topologies.regular import fat_tree, grid, line, mesh, ring, star
from holdfast.topology import Host, Link, Topology

GENERATORS: Mapping[str, Callable[..., Topology]] = {
    "line": line,
    "ring": ring,
    "star": star,
    "mesh": mesh,
    "grid": grid,
    "fat-tree": fat_tree,
    "waxman": waxman,
    "erdos-renyi": erdos_renyi,
    "nsfnet": nsfnet,
    "abilene": abilene,
}


FILES = (".yaml", ".clab.yml", ".json", ".graphml", ".gml", ".xml", ".txt (SNDlib)")
"""Endings of files that :func:`load` reads."""


def usage(name: str, generator: Callable[..., Topology] | None = None) -> str:
    """Return the syntax of a generator and its parameters, for messages: ``grid:ROWSxCOLUMNS[,hosts=1,...]``.

    ``generator``: one from outside that is called ``name``.
    """
    parameters = inspect.signature(generator or GENERATORS[name]).parameters.values()
    sizes = [p.name.upper() for p in parameters if p.default is p.empty]
    options = [f"{p.name}={p.default}" for p in parameters if p.default not in (p.empty, None)]
    return name + (":" + "x".join(sizes) if sizes else "") + f"[{',' if sizes else ':'}{','.join(options)}]"


def by_name(text: str) -> Topology:
    """Generate a topology from text such as ``grid:3x4,hosts=0``.

    Raises :class:`TopologyError` for a mistake in the text, and :class:`holdfast.errors.ExtensionError` for a generator from
    outside that cannot be used (:mod:`holdfast.topologies.outside`).
    """
    name, _, rest = text.partition(":")
    if name in GENERATORS:
        return _generated(text, name, GENERATORS[name], rest)
    if (found := outside.generator(text)) is not None:
        name, generator, rest = found
        own = outside.GENERATED
        return own.called(text, lambda: _generated(text, name, generator, rest), Topology)
    meant = alternatives(name, [*GENERATORS, *outside.GENERATED.names()])
    raise TopologyError(f"there is no topology {name!r}{meant}; a file ends in {', '.join(FILES)}")


def _generated(text: str, name: str, generator: Callable[..., Topology], rest: str) -> Topology:
    """Call a generator with the sizes and parameters in ``rest``. Raises :class:`TopologyError` for a mistake in them."""
    parameters = inspect.signature(generator).parameters
    words = [word.strip() for word in rest.split(",")] if rest else []
    sizes = words.pop(0).split("x") if words and "=" not in words[0] else []
    needed = [p.name for p in parameters.values() if p.default is p.empty]
    if len(sizes) != len(needed):
        raise TopologyError(f"{text}: write {usage(name, generator)}")
    arguments = dict(zip(needed, sizes, strict=True))
    for word in words:
        key, given, value = word.partition("=")
        if not given or key not in parameters or key in arguments:
            raise TopologyError(f"{text}: {word!r} is not a size or a parameter; write {usage(name, generator)}")
        arguments[key] = value
    values = {key: _number(text, key, value, parameters[key].annotation) for key, value in arguments.items()}
    try:
        return generator(**values)
    except TopologyError as error:
        raise TopologyError(f"{text}: {error}") from None


def _number(text: str, key: str, value: str, annotation: object) -> int | float:
    """Parse a parameter's value as a number. Raises :class:`TopologyError` if it is not a number of the annotated type.

    ``annotation`` is a type or its name, as in every module that postpones the evaluation of annotations; without one, any number
    will do.
    """
    any_number = annotation is inspect.Parameter.empty
    annotation = getattr(annotation, "__name__", annotation)
    try:
        number = float(value) if value.isascii() and "_" not in value else math.nan
    except ValueError:
        number = math.nan
    if math.isfinite(number) and (annotation == "float" or (any_number and not number.is_integer())):
        return number
    if math.isfinite(number) and number.is_integer():
        return int(value) if is_numeral(value.lstrip("+-")) else int(number)
    raise TopologyError(f"{text}: {key} is {value!r}; a {'' if annotation == 'float' else 'whole '}number is expected")


def load(text: str, *, largest: bool = False, **parameters: Any) -> Topology:
    """Load a topology from a name (:func:`by_name`), from a file, or from a script, ``mininet:FILE.py:NAME``.

    Files are YAML, GraphML, or one of :mod:`holdfast.topologies.recognised`, told apart by their endings and their content.

    ``largest``: of a topology that is not connected, return the largest part, and warn of what is left out. ``parameters`` are
    those of :meth:`holdfast.topology.Topology.from_graphml`, for files of nodes and edges.
    """
    loaded = _load(text, parameters)
    if not largest or len(parts := loaded.parts()) < 2:
        return loaded
    apart = [name for part in parts[1:] for name in part]
    taken = f"{len(parts[0])} of {len(loaded.switches)} switches"
    warnings.warn(f"{text}: only the largest part, {taken}; without {named(apart)}", TopologyWarning, stacklevel=2)
    return loaded.largest_part()


def _load(text: str, parameters: Mapping[str, Any]) -> Topology:
    if ":" in text and text.partition(":")[0] not in GENERATORS and (found := outside.imported(text)) is not None:
        return found
    suffix = Path(text).suffix.lower()
    if recognised.is_file_of(text):
        return recognised.read(text, parameters)
    if suffix == ".graphml":
        return Topology.from_graphml(text, **parameters)
    if parameters:
        raise TopologyError(f"{text}: {', '.join(parameters)} can be given for GraphML files only")
    if suffix in (".yaml", ".yml"):
        return Topology.from_yaml(text)
    return by_name(text)


_HEADINGS = ("link", "ports", "rate", "delay", "queue", "loss", "host")
_RIGHT = ("rate", "delay", "queue")


def listing(topology: Topology, most: int | None = None) -> Iterator[str]:
    """Yield a line with the number of nodes and links, then a line for each link, links of hosts last.

    If there are more than ``most`` links, only the first ``most`` have lines.
    """
    links = topology.links
    yield f"{topology.name}: {topology.size}"
    if most is not None and len(links) > most:
        yield _degrees(topology)
    rows = link_rows(topology, most)
    columns = [_padded(column, right=column[0] in _RIGHT) for column in zip(*rows, strict=True)]
    for row in zip(*columns, strict=True):
        yield " ".join(row).rstrip()
    if most is not None and len(links) > most:
        yield f"... and {len(links) - most} more; --all shows all, and a file or a pipe gets all"


def link_rows(topology: Topology, most: int | None = None) -> list[tuple[str, ...]]:
    """Return a row of headings, and one for each of the first ``most`` links, those of hosts last."""
    links = list(zip(topology.link_names(), topology.links, strict=True))
    links.sort(key=lambda named: named[1].a in topology.hosts or named[1].b in topology.hosts)
    return [_HEADINGS, *(_row(topology, name, link) for name, link in links[:most])]


def _padded(column: Sequence[str], *, right: bool) -> list[str]:
    """Pad texts with blanks to the width of the widest in terminal columns: on the right, or on the left with ``right``."""
    widths = [len(text) if text.isascii() else cell_len(text) for text in column]
    widest = max(widths)
    blanks = (" " * (widest - width) for width in widths)
    return [blank + text if right else text + blank for text, blank in zip(column, blanks, strict=True)]


def _degrees(topology: Topology) -> str:
    """Return a line with the number of links between switches, and the least, mean and greatest degree of a switch."""
    ends = Counter[str]()
    between = 0
    for link in topology.links:
        if link.a in topology.switches and link.b in topology.switches:
            between += 1
            ends.update((link.a, link.b))
    degrees = [ends[switch] for switch in topology.switches]
    low, mean, high = min(degrees), 2 * between / len(degrees), max(degrees)
    return f"{between} links are between switches: {low} to {high} at each, {mean:.3g} on average"


def _row(topology: Topology, name: str, link: Link) -> tuple[str, ...]:
    host = topology.hosts.get(link.a) or topology.hosts.get(link.b)
    return (
        name,
        f"{link.a_port}-{link.b_port}",
        _rate(link.rate_bps),
        f"{link.delay_ms:.4g} ms",
        describe_queue(link),
        describe_loss(link),
        _addresses(host) if host else "",
    )


def _addresses(host: Host) -> str:
    return " ".join(str(each) for card in host.cards for each in card.interfaces_of_ip)


def _rate(rate_bps: int) -> str:
    for unit, size in (("Gb/s", 10**9), ("Mb/s", 10**6), ("kb/s", 10**3)):
        if rate_bps >= size:
            return f"{rate_bps / size:.4g} {unit}"
    return f"{rate_bps} b/s"


__all__ = [
    "GENERATORS",
    "abilene",
    "by_name",
    "erdos_renyi",
    "fat_tree",
    "grid",
    "line",
    "link_rows",
    "listing",
    "load",
    "mesh",
    "nsfnet",
    "ring",
    "star",
    "usage",
    "waxman",
]
