"""Topologies by name, from files, and the generators behind the names.

``load("fat-tree:4")``, ``load("waxman:20,seed=3")``, ``load("abilene")``, ``load("office.yaml")``, ``load("Zoo.graphml")``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from holdfast.errors import TopologyError
from holdfast.link import describe_loss, describe_queue
from holdfast.topologies.backbones import abilene, nsfnet
from holdfast.topologies.random_graphs import erdos_renyi, waxman
from holdfast.topologies.regular import fat_tree, grid, line, mesh, ring, star
from holdfast.topology import Host, Topology

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


def usage(name: str) -> str:
    """How a generator is called by name: ``grid:ROWSxCOLUMNS[,hosts=1,...]``."""
    parameters = inspect.signature(GENERATORS[name]).parameters.values()
    sizes = [p.name.upper() for p in parameters if p.default is p.empty]
    options = [f"{p.name}={p.default}" for p in parameters if p.default not in (p.empty, None)]
    return name + (":" + "x".join(sizes) if sizes else "") + f"[{',' if sizes else ':'}{','.join(options)}]"


def by_name(text: str) -> Topology:
    """A generated topology: ``NAME:SIZE,PARAMETER=VALUE,...``; the sizes of a grid are ``ROWSxCOLUMNS``."""
    name, _, rest = text.partition(":")
    if name not in GENERATORS:
        known = ", ".join(GENERATORS)
        raise TopologyError(f"there is no topology {name!r} (known: {known}; or a file .yaml or .graphml)")
    generator = GENERATORS[name]
    parameters = inspect.signature(generator).parameters
    words = [word.strip() for word in rest.split(",")] if rest else []
    sizes = words.pop(0).split("x") if words and "=" not in words[0] else []
    needed = [p.name for p in parameters.values() if p.default is p.empty]
    if len(sizes) != len(needed):
        raise TopologyError(f"{text}: write {usage(name)}")
    arguments = dict(zip(needed, sizes, strict=True))
    for word in words:
        key, given, value = word.partition("=")
        if not given or key not in parameters or key in arguments:
            raise TopologyError(f"{text}: what is {word!r}? Write {usage(name)}")
        arguments[key] = value
    values = {key: _number(text, key, value, parameters[key].annotation) for key, value in arguments.items()}
    try:
        return generator(**values)
    except TopologyError as error:
        raise TopologyError(f"{text}: {error}") from None


def _number(text: str, key: str, value: str, annotation: str) -> int | float:
    """``annotation`` is a text, as in every module that postpones the evaluation of annotations."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if math.isfinite(number) and annotation == "float":
        return number
    if math.isfinite(number) and number.is_integer():
        return int(value) if value.lstrip("+-").isdecimal() else int(number)
    raise TopologyError(f"{text}: {key} is {value!r}; a {'' if annotation == 'float' else 'whole '}number is expected")


def load(text: str, **parameters: Any) -> Topology:
    """A topology from a name (:func:`by_name`) or a file: ``.yaml``, ``.yml`` or ``.graphml``.

    ``parameters`` are those of :meth:`holdfast.topology.Topology.from_graphml`, and only for such files.
    """
    suffix = Path(text).suffix.lower()
    if suffix == ".graphml":
        return Topology.from_graphml(text, **parameters)
    if parameters:
        raise TopologyError(f"{text}: {', '.join(parameters)} can be given for GraphML files only")
    if suffix in (".yaml", ".yml"):
        return Topology.from_yaml(text)
    return by_name(text)


def table(topology: Topology) -> Table:
    """The links, those of hosts at the end, for a terminal."""
    hosts, switches = len(topology.hosts), len(topology.switches)
    title = f"{topology.name}: {switches} switches, {hosts} hosts, {len(topology.links)} links"
    result = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    result.add_column("link", overflow="fold", min_width=10)
    for heading in ("ports", "rate", "delay", "queue", "loss", "host"):
        result.add_column(heading, justify="right" if heading in ("rate", "delay", "queue") else "left", no_wrap=True)
    for link in sorted(topology.links, key=lambda link: link.a in topology.hosts or link.b in topology.hosts):
        host = topology.hosts.get(link.a) or topology.hosts.get(link.b)
        result.add_row(
            link.name,
            f"{link.a_port}-{link.b_port}",
            _rate(link.rate_bps),
            f"{link.delay_ms:.4g} ms",
            describe_queue(link),
            describe_loss(link),
            _addresses(host) if host else "",
        )
    return result


def _addresses(host: Host) -> str:
    return str(host.address) if host.ipv6 is None else f"{host.address} {host.ipv6}"


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
    "load",
    "mesh",
    "nsfnet",
    "ring",
    "star",
    "table",
    "usage",
    "waxman",
]
