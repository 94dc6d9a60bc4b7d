"""What a network and the mechanisms in it protect before anything fails: single points of failure, and pairs without protection.

Each mechanism is built and its controllers start, as for a run; no packet is sent. A mechanism with prepared ways says whether
they deliver while links are down (:attr:`holdfast.compare.mechanism.Built.delivers`). Of the restoring ones, which find new ways
only after a failure, a pair is unprotected if the failure separates it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from holdfast.compare import traffic_file
from holdfast.compare.failures import cut_off, failing, links_down
from holdfast.compare.failures import kind as kind_of
from holdfast.compare.formats import listed
from holdfast.compare.inputs import ALL
from holdfast.compare.mechanism import Built, Mechanism, Setting
from holdfast.compare.scenario import Scenario
from holdfast.compare.traffic_file import Ends, Pair
from holdfast.errors import HoldfastError
from holdfast.network import SimulatedNetwork
from holdfast.topology import Topology

NOTHING = "nobody reacts"
REFUSED = "refuses: "
NOT_STATED = "not stated by its author"
NO_WAY = "no way is left"
OTHER = "there is another way, which the mechanism cannot use"

MOST_TOLD = 20
"""The most lines of one kind in a terminal."""


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
    """A pair of hosts that a mechanism does not protect against the failure of something, and why.

    ``failures``: against which; empty if that is not known.
    """

    pair: Pair
    why: str
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Protected:
    """What a mechanism does for the ``pairs`` pairs of a scenario. ``kind``: when it has its ways around a failure, in words.

    ``lacking``: by failure, the pairs that it does not protect against it; None where the mechanism does not say.
    """

    mechanism: str
    kind: str
    pairs: int
    unprotected: tuple[Unprotected, ...]
    lacking: Mapping[str, Sequence[Pair]] | None = None


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


def without(topology: Topology, failure: str) -> nx.MultiGraph[str]:
    """Return the graph of the links between switches that are left in a failure."""
    names, down = topology.link_names(), links_down(topology, failure)
    gone = {names[link] for link in down}
    graph = between_switches(topology)
    graph.remove_edges_from([(a, b, name) for a, b, name in graph.edges(keys=True) if name in gone])
    graph.remove_nodes_from(failing(topology, failure).switches)
    return graph


def separations(topology: Topology, failures: Sequence[str]) -> list[Point]:
    """Return the failures of several elements at once that separate hosts though none of the elements alone does."""
    single = {point.name for point in points(topology)}
    at = {host: {place.switch for place in topology.attachments(host)} for host in topology.hosts}
    names, found = topology.link_names(), []
    for failure in failures:
        what = failing(topology, failure)
        if len(what.links) + len(what.switches) < 2 or single & {*what.switches, *(names[i] for i in what.links)}:
            continue
        if alone := _alone(without(topology, failure), at):
            found.append(Point(failure, False, alone))
    return found


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


def separated(topology: Topology, pairs: Sequence[Pair], failures: Sequence[str]) -> dict[str, list[Pair]]:
    """Return by failure the pairs of hosts that have no way to each other while it lasts.

    A pair with a host at a switch that fails is none of them: nothing is asked of it.
    """
    single = {topology.find_link(name) for name in bridges(between_switches(topology))}
    found = {}
    for failure in failures:
        what = failing(topology, failure)
        if not what.switches and len(what.links) == 1 and what.links[0] not in single:
            found[failure] = list[Pair]()
            continue
        part = {}
        for number, nodes in enumerate(nx.connected_components(without(topology, failure))):
            part.update(dict.fromkeys(nodes, number))
        at = [(pair, [part.get(topology.attachment(host).switch) for host in pair]) for pair in pairs]
        found[failure] = [pair for pair, (a, b) in at if a is not None and b is not None and a != b]
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
    pairs = setting.pairs
    cut = separated(topology, pairs, scenario.failures)
    lacking: Mapping[str, Sequence[Pair]] | None
    if mechanism.protects == "restored":
        kind, lacking = "new ways after the failure", cut
    else:
        built = mechanism.built(setting, telemetry=False)
        SimulatedNetwork(setting.topology, built.program, [built.controller], executor=scenario.executor)
        kind = {"nothing": NOTHING, "prepared": "ways prepared"}.get(mechanism.protects or "", NOT_STATED)
        lacking = _not_delivered(scenario, pairs, built)
        if lacking is None and _only(scenario, "link"):
            lists = {
                frozenset(pair) for pair in (*built.unprotected, *_without_promise(topology, setting.flows, built))
            }
            known = [
                pair for pair in pairs if frozenset(pair) in lists or (kind == NOTHING and _is_far(topology, pair))
            ]
            alone = separating(topology, pairs)
            why = {
                pair: NOTHING if kind == NOTHING else _on_every_way(alone[pair]) if pair in alone else OTHER
                for pair in known
            }
            unprotected = tuple(Unprotected(pair, why[pair]) for pair in known)
            return Protected(mechanism.name, kind, len(pairs), unprotected)
        if lacking is None:
            return Protected(mechanism.name, NOT_STATED, len(pairs), ())
    return Protected(
        mechanism.name, kind, len(pairs), tuple(_unprotected(scenario, kind, pairs, cut, lacking)), lacking
    )


def _not_delivered(scenario: Scenario, pairs: Sequence[Pair], built: Built) -> dict[str, list[Pair]] | None:
    """Return by failure the pairs of which packets in one direction do not arrive; None if the mechanism does not say."""
    if built.delivers is None:
        return None
    found = {}
    for failure in scenario.failures:
        down, gone = links_down(scenario.topology, failure), cut_off(scenario.topology, failure)
        asked = [pair for pair in pairs if gone.isdisjoint(pair)]
        found[failure] = [(a, b) for a, b in asked if not (built.delivers(down, a, b) and built.delivers(down, b, a))]
    return found


def _unprotected(
    scenario: Scenario,
    kind: str,
    pairs: Sequence[Pair],
    cut: Mapping[str, Sequence[Pair]],
    lacking: Mapping[str, Sequence[Pair]],
) -> Iterator[Unprotected]:
    """Yield why pairs are not protected: of each at most once for want of a way, and once though there is one."""
    alone = separating(scenario.topology, pairs) if _only(scenario, "link") else None
    of_cut, of_lacking = ({failure: set(which) for failure, which in each.items()} for each in (cut, lacking))
    for pair in pairs:
        against = [failure for failure in scenario.failures if pair in of_lacking[failure]]
        hopeless = tuple(failure for failure in against if pair in of_cut[failure])
        others = tuple(failure for failure in against if pair not in of_cut[failure])
        if against and kind == NOTHING:
            yield Unprotected(pair, NOTHING, tuple(against))
        elif alone is not None and hopeless:
            yield Unprotected(pair, _on_every_way([name for name in alone[pair] if name in hopeless]), tuple(against))
        else:
            if hopeless:
                yield Unprotected(pair, NO_WAY, hopeless)
            if others:
                yield Unprotected(pair, OTHER, others)


def _only(scenario: Scenario, kind: str) -> bool:
    """Return True if every failure of a scenario is of one ``kind``, such as ``link``."""
    return all(kind_of(scenario.topology, failure) == kind for failure in scenario.failures)


def _is_far(topology: Topology, pair: Pair) -> bool:
    return len({topology.attachment(host).switch for host in pair}) > 1


def _without_promise(topology: Topology, flows: Sequence[Ends], built: Built) -> Iterator[Pair]:
    """Yield the pairs to which a mechanism that promises how long an outage lasts promises nothing, when some link fails."""
    if built.promise is None:
        return
    names = [name for _, _, name in between_switches(topology).edges(keys=True)]
    for ends in flows:
        for receiver in ends.receivers:
            if any(built.promise(name, ends, receiver) is None for name in names):
                yield ends.source, receiver


def _on_every_way(names: Sequence[str]) -> str:
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'} on every way"


def lines(scenario: Scenario, found: Sequence[Protected]) -> list[str]:
    """Return what a terminal shows: the single points of failure, a line for each mechanism, and the unprotected pairs.

    Mechanisms with the same unprotected pairs are told together.
    """
    topology, failures = scenario.topology, scenario.failures
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
        shown += _separations(ours)
    if any(kind_of(topology, failure) not in ("link", "switch") for failure in failures):
        shown += ["", *_left(scenario)]
    if _only(scenario, "link") and scenario.fail == ALL:
        shown += ["", "pairs that are protected against the failure of each link on their way"]
    elif len(failures) > 1:
        shown += [
            "",
            *_wrapped(
                f"pairs that are protected against each of {len(failures)} {scenario.failed}, and the part of all"
                " cases (a pair and a failure) that is protected"
            ),
        ]
    else:
        shown += ["", f"pairs that are protected against the failure of the {scenario.failed} {failures[0]}"]
    longest = max(len(each.mechanism) for each in found)
    for each in found:
        unknown = each.kind.startswith((NOT_STATED, REFUSED))
        pairs = len({one.pair for one in each.unprotected})
        count = f"{'-' if unknown else each.pairs - pairs} of {each.pairs}"
        part = ""
        if len(failures) > 1 and scenario.fail != ALL:
            lost = None if each.lacking is None else sum(map(len, each.lacking.values()))
            share = "-" if lost is None else f"{100 * (1 - lost / (each.pairs * len(failures) or 1)):.1f} %"
            part = f"{share:>9}"
        shown.append(f"  {each.mechanism:{longest}}  {count:>{len(str(each.pairs)) * 2 + 4}}{part}  {each.kind}")
    by_failure = scenario.fail != ALL
    if by_failure and (hopeless := list(_told(_of_all(scenario)))):
        shown += ["", "no way is left, whatever the mechanism:", *_capped(hopeless, "  ")]
    groups: dict[tuple[Unprotected, ...], list[str]] = {}
    for each in found:
        if each.kind != NOTHING:
            theirs = tuple(one for one in each.unprotected if not by_failure or one.why != NO_WAY)
            groups.setdefault(theirs, []).append(each.mechanism)
    for unprotected, names in groups.items():
        if not unprotected:
            continue
        shown += ["", *_wrapped(f"not protected by {listed(names)}")]
        for why in dict.fromkeys(one.why for one in unprotected):
            these = [one for one in unprotected if one.why == why]
            texts = list(_told(these)) if by_failure else [", ".join("-".join(one.pair) for one in these)]
            shown += [f"  {why}:", *_capped(texts, "    ")]
    return shown


def _left(scenario: Scenario) -> list[str]:
    """Return what is left of the network in failures of several elements.

    That is how many separate hosts, and those of which no part does so alone.
    """
    topology, failures = scenario.topology, scenario.failures
    at = {host: {place.switch for place in topology.attachments(host)} for host in topology.hosts}
    whole = sum(not _alone(without(topology, failure), at) for failure in failures)
    together = separations(topology, failures)
    if len(failures) == 1:
        words = f"the {scenario.failed} {failures[0]} {'leaves all hosts connected' if whole else 'separates hosts'}"
    else:
        alone = len(failures) - whole - len(together)
        words = (
            f"{len(failures)} {scenario.failed}: {whole} with all hosts connected, {alone} that separate hosts by a part that"
            f" does so alone, and {len(together)} only together"
        )
    return [*_wrapped(words + (":" if together else "")), *_separations(together)]


def _of_all(scenario: Scenario) -> list[Unprotected]:
    """Return the pairs that no mechanism can protect, and against which failures."""
    pairs = pairs_of(scenario)
    cut = {failure: set(which) for failure, which in separated(scenario.topology, pairs, scenario.failures).items()}
    against = {pair: tuple(failure for failure in scenario.failures if pair in cut[failure]) for pair in pairs}
    return [Unprotected(pair, NO_WAY, failures) for pair, failures in against.items() if failures]


def _separations(found: Sequence[Point]) -> list[str]:
    """Return a line for each set of hosts that failures separate, with their names; the first :data:`MOST_TOLD` sets."""
    sets: dict[tuple[str, ...], list[str]] = {}
    for point in found:
        sets.setdefault(point.alone, []).append(point.name)
    shown = []
    for alone, names in list(sets.items())[:MOST_TOLD]:
        separate = "separates" if len(names) == 1 else "separate"
        shown += _wrapped(f"  {', '.join(names)} {separate} {', '.join(alone)}")
    if len(sets) > MOST_TOLD:
        shown.append(f"  and {len(sets) - MOST_TOLD} more sets of hosts are separated")
    return shown


def _told(unprotected: Sequence[Unprotected]) -> Iterator[str]:
    """Yield a text for the failures with the same pairs: their names, and the pairs; without failures the pairs alone."""
    pairs: dict[str, list[str]] = {}
    for each in unprotected:
        for failure in each.failures or ("",):
            pairs.setdefault(failure, []).append("-".join(each.pair))
    together: dict[tuple[str, ...], list[str]] = {}
    for failure, which in pairs.items():
        together.setdefault(tuple(which), []).append(failure)
    for named, failures in together.items():
        texts = ", ".join(named)
        yield f"{', '.join(failures)}: {texts}" if failures != [""] else texts


def _capped(texts: Sequence[str], indent: str) -> list[str]:
    """Return the lines of the first :data:`MOST_TOLD` texts, and a line with the number of the others."""
    shown = [line for text in texts[:MOST_TOLD] for line in _wrapped(indent + text)]
    if len(texts) > MOST_TOLD:
        shown.append(f"{indent}and {len(texts) - MOST_TOLD} more; name fewer failures (--fail) to have them told")
    return shown


def _wrapped(text: str) -> list[str]:
    """Break a line at the width of a terminal of 80 columns; names with a hyphen stay whole."""
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text, 80, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
