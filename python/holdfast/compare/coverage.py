"""What a network and the mechanisms in it protect before anything fails: single points of failure, and pairs without protection.

Each mechanism is built and its controllers start, as for a run; no packet is sent. Of the restoring ones, which find new ways only
after a failure, a pair is unprotected if a single link separates it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from holdfast.compare import traffic_file
from holdfast.compare.formats import listed
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import Ends, Pair
from holdfast.errors import HoldfastError
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology

NOTHING = "nobody reacts"
REFUSED = "refuses: "
NOT_STATED = "not stated by its author"


@dataclass(frozen=True)
class Point:
    """A link or switch whose failure separates hosts: the smaller part of them, ``alone``, from the others.

    Hosts at a switch that fails are in no part; they have no other switch.
    """

    name: str
    is_switch: bool
    alone: tuple[str, ...]


@dataclass(frozen=True)
class Unprotected:
    """A pair of hosts that a mechanism does not protect against the failure of some link, and why."""

    pair: Pair
    why: str


@dataclass(frozen=True)
class Protected:
    """What a mechanism does for the ``pairs`` pairs of a scenario. ``kind``: when it has its ways around a failure, in words."""

    mechanism: str
    kind: str
    pairs: int
    unprotected: tuple[Unprotected, ...]


def between_switches(topology: Topology) -> nx.MultiGraph[str]:
    """Return the graph of the links between switches by name; each of several parallel links is an edge."""
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_nodes_from(topology.switches)
    for name, link in zip(topology.link_names(), topology.links, strict=True):
        if {link.a, link.b} <= topology.switches.keys():
            graph.add_edge(link.a, link.b, key=name)
    return graph


def bridges(graph: nx.MultiGraph[str]) -> dict[str, tuple[str, str]]:
    """Return the ends of each link without which some switches have no way to each other, by its name."""
    ends = {}
    for edge in nx.bridges(nx.Graph(graph)):
        a, b = edge[0], edge[1]
        if graph.number_of_edges(a, b) == 1:
            ends.update(dict.fromkeys(graph[a][b], (a, b)))
    return {name: ends[name] for _, _, name in graph.edges(keys=True) if name in ends}


def points(topology: Topology) -> list[Point]:
    """Return the single points of failure, links first: the links between switches, and the switches, that separate hosts."""
    graph = between_switches(topology)
    at = {host: {place.switch for place in topology.attachments(host)} for host in topology.hosts}
    found = []
    for name, ends in bridges(graph).items():
        rest = graph.copy()
        rest.remove_edge(*ends)
        found.append(Point(name, False, _alone(rest, at)))
    cuts = set(nx.articulation_points(nx.Graph(graph)))
    for switch in [name for name in topology.switches if name in cuts]:
        rest = graph.copy()
        rest.remove_node(switch)
        found.append(Point(switch, True, _alone(rest, at)))
    return [point for point in found if point.alone]


def _alone(rest: nx.MultiGraph[str], at: dict[str, set[str]]) -> tuple[str, ...]:
    """Return the hosts outside the part with most hosts, in their order; those at no switch that is left are in no part."""
    parts = [[host for host, switches in at.items() if switches & part] for part in nx.connected_components(rest)]
    most = max(parts, key=len)
    return tuple(host for host in at if host not in most and any(host in part for part in parts))


def separating(topology: Topology, pairs: Sequence[Pair]) -> dict[Pair, list[str]]:
    """Return, for each pair of hosts that single links separate, the names of these links."""
    graph = between_switches(topology)
    plain, single = nx.Graph(graph), {frozenset(ends): name for name, ends in bridges(graph).items()}
    found = {}
    for pair in pairs:
        path = nx.shortest_path(plain, *(topology.attachment(host).switch for host in pair))
        # A bridge is on every path, so one path is enough.
        if names := [single[hop] for hop in map(frozenset, pairwise(path)) if hop in single]:
            found[pair] = names
    return found


def protected(scenario: Scenario, mechanisms: Sequence[Mechanism]) -> list[Protected]:
    """Return what each mechanism protects of the scenario's pairs; of one that refuses them, its sentence is the ``kind``."""
    found = []
    for each in mechanisms:
        try:
            found.append(_protected(scenario, each))
        except HoldfastError as error:
            found.append(Protected(each.name, f"{REFUSED}{error}", len(pairs_of(scenario)), ()))
    return found


def pairs_of(scenario: Scenario) -> list[Pair]:
    """Return the pairs of hosts that have traffic with each other, each once."""
    return Setting(scenario.topology, scenario.traffic.flows(), 0, 0, 0).pairs


def _protected(scenario: Scenario, mechanism: Mechanism) -> Protected:
    topology = scenario.topology
    setting = Setting(
        topology=topology.copy(),
        flows=scenario.traffic.flows(),
        detection_delay_ms=scenario.times.detection_delay_ms,
        reaction_delay_ms=scenario.times.reaction_delay_ms,
        largest_packet_bytes=scenario.traffic.largest_packet_bytes(),
    )
    pairs, alone = setting.pairs, separating(topology, setting.pairs)
    lacking: dict[Pair, str]
    if mechanism.protects == "nothing":
        far = [pair for pair in pairs if len({topology.attachment(host).switch for host in pair}) > 1]
        kind, lacking = NOTHING, dict.fromkeys(far, NOTHING)
    elif mechanism.protects == "restored":
        kind, lacking = "new ways after the failure", _reasons(alone, alone)
    else:
        built = mechanism.built(setting, telemetry=False)
        SimulatedNetwork(setting.topology, built.program, [built.controller], executor=scenario.executor)
        lists = {frozenset(pair) for pair in (*built.unprotected, *_without_promise(topology, setting.flows, built))}
        kind = NOT_STATED if mechanism.protects is None else "ways prepared"
        lacking = _reasons([pair for pair in pairs if frozenset(pair) in lists], alone)
    unprotected = tuple(Unprotected(pair, why) for pair, why in lacking.items())
    return Protected(mechanism.name, kind, len(pairs), unprotected)


def _without_promise(topology: Topology, flows: Sequence[Ends], built: Built) -> Iterator[Pair]:
    """Yield the pairs to which a mechanism that promises how long an outage lasts promises nothing, when some link fails."""
    if built.promise is None:
        return
    names = [name for _, _, name in between_switches(topology).edges(keys=True)]
    for ends in flows:
        for receiver in ends.receivers:
            if any(built.promise(name, ends, receiver) is None for name in names):
                yield ends.source, receiver


def _reasons(pairs: Iterable[Pair], alone: Mapping[Pair, list[str]]) -> dict[Pair, str]:
    other = "there is another way, which the mechanism cannot use"
    on_all = {
        pair: f"{listed(names)} {'is' if len(names) == 1 else 'are'} on every way" for pair, names in alone.items()
    }
    return {pair: on_all.get(pair, other) for pair in pairs}


def lines(scenario: Scenario, found: Sequence[Protected]) -> list[str]:
    """Return what a terminal shows: the single points of failure, a line for each mechanism, and the unprotected pairs.

    Mechanisms with the same unprotected pairs are told together.
    """
    topology = scenario.topology
    hosts = len(topology.hosts)
    whole = (
        f"; of {hosts * (hosts - 1) // 2} pairs of hosts, those with traffic are told (--traffic says which have it)"
    )
    shown = [*_wrapped(f"{topology.name}: {traffic_file.describe(scenario.traffic)}{whole}"), ""]
    alone = points(topology)
    for one, several, is_switch in (("link", "links", False), ("switch", "switches", True)):
        ours = [point for point in alone if point.is_switch == is_switch]
        what = f"{len(ours) or 'no'} {one if len(ours) == 1 else several}"
        shown.append(f"{what} whose failure alone separates hosts{':' if ours else ''}")
        for point in ours:
            shown += _wrapped(f"  {point.name} separates {', '.join(point.alone)}")
    shown += ["", "pairs that are protected against the failure of each link on their way"]
    longest = max(len(each.mechanism) for each in found)
    for each in found:
        protected = (
            "-" if each.kind == NOT_STATED or each.kind.startswith(REFUSED) else str(each.pairs - len(each.unprotected))
        )
        count = f"{protected} of {each.pairs}"
        shown.append(f"  {each.mechanism:{longest}}  {count:>{len(str(each.pairs)) * 2 + 4}}  {each.kind}")
    groups: dict[tuple[Unprotected, ...], list[str]] = {}
    for each in found:
        if each.unprotected and each.kind != NOTHING:
            groups.setdefault(each.unprotected, []).append(each.mechanism)
    for unprotected, names in groups.items():
        reasons: dict[str, list[str]] = {}
        for lacking in unprotected:
            reasons.setdefault(lacking.why, []).append("-".join(lacking.pair))
        shown += ["", *_wrapped(f"not protected by {listed(names)}")]
        for why, pairs in reasons.items():
            shown += [f"  {why}:", *_wrapped(f"    {', '.join(pairs)}")]
    return shown


def _wrapped(text: str) -> list[str]:
    """Break a line at the width of a terminal of 80 columns; names with a hyphen stay whole."""
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text, 80, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
