"""Groups that are drawn for a topology, and the default multicast traffic: ``holdfast compare --traffic multicast``.

A group has a source, and receivers at other switches than the source's: half of the hosts, and 20 at most. Which ones follows from
the topology's hosts alone, in an order that every number of groups shares. No mechanism is known here.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise

from holdfast.compare.traffic_file import FIRST_GROUP, Ends, TrafficFile, UdpEntry, probes_per_s
from holdfast.errors import ScenarioError
from holdfast.paths import path_by_cost
from holdfast.topology import Topology

GROUPS, RECEIVERS = 8, 20
"""The most groups, and the most receivers of each."""

CANDIDATES = 64
"""So many groups are drawn where one link or switch fails; those that it lies on the way of come first."""

LEAST_PACKETS_PER_S = 20
COPIES_PER_S = 16_000
"""The most packets that all receivers together get..."""

MOST_PACKETS_PER_S = 500
"""...and of one group. All copies together take no more than a third of the slowest link, if they met there."""

LIVE_GROUPS, LIVE_RECEIVERS, LIVE_COPIES_PER_S = 3, 5, 4000


def draw(topology: Topology, count: int, receivers: int = RECEIVERS) -> list[Ends]:
    """Draw ``count`` multicast groups (a source and its receivers); smaller counts give the first ones of the same groups.

    Raise :class:`ScenarioError` if no host has two hosts at other switches to send to.
    """
    at = {name: topology.attachment(name).switch for name in topology.hosts}
    hosts = list(at)
    size = min(receivers, max(2, len(hosts) // 2))
    sources = [host for host in hosts if sum(at[other] != at[host] for other in hosts) >= 2]
    if not sources:
        raise ScenarioError(
            f"{topology.name}: no host has two others at other switches, so there is nobody to send copies to"
        )
    dice = random.Random(20)
    found = []
    for number in range(count):
        source = dice.choice(sources)
        others = [host for host in hosts if at[host] != at[source]]
        chosen = dice.sample(others, min(size, len(others)))
        found.append(Ends(source, tuple(sorted(chosen, key=hosts.index)), str(FIRST_GROUP + number)))
    return found


def default(topology: Topology, through: Iterable[frozenset[str]] = (), *, live: bool = False) -> TrafficFile:
    """Return the default multicast traffic. ``live``: less of it, as much as a run in real time can carry.

    ``through``: links or switches, as in :func:`holdfast.compare.traffic_file.default`.
    """
    wanted = min(LIVE_GROUPS if live else GROUPS, max(1, len(topology.hosts) // 2))
    groups = _through(topology, list(through), wanted, LIVE_RECEIVERS if live else RECEIVERS)
    copies = sum(len(ends.receivers) for ends in groups)
    all_per_s = min(LIVE_COPIES_PER_S if live else COPIES_PER_S, probes_per_s(topology))
    while len(groups) > 1 and all_per_s / copies < LEAST_PACKETS_PER_S:
        copies -= len(groups.pop().receivers)
    rate = min(MOST_PACKETS_PER_S, all_per_s / copies)
    return TrafficFile(
        udp=[
            UdpEntry(
                source=ends.source,
                receivers=ends.receivers,
                packets_per_s=int(rate) if rate >= 1 else float(f"{rate:.2g}"),
            )
            for ends in groups
        ]
    )


def _through(topology: Topology, through: Sequence[frozenset[str]], wanted: int, receivers: int) -> list[Ends]:
    """Draw at most ``wanted`` different groups of up to ``receivers`` receivers.

    Groups whose paths cross a link or switch in ``through`` come first. Groups whose source is at such a switch are left out,
    unless no others were drawn.
    """
    drawn = {(ends.source, ends.receivers): ends for ends in draw(topology, max(CANDIDATES, wanted), receivers)}
    groups = list(drawn.values())
    if through:
        gone = {name for each in through if len(each) == 1 for name in each}
        groups = [ends for ends in groups if topology.attachment(ends.source).switch not in gone] or groups
        groups.sort(key=lambda ends: not any(each in _parts(topology, ends) for each in through))
    return list(islice(groups, wanted))


def _parts(topology: Topology, ends: Ends) -> set[frozenset[str]]:
    """Return the links and switches on the routers' paths of a group, without the switches at the paths' ends."""
    parts: set[frozenset[str]] = set()
    for pair in ends.pairs:
        path = path_by_cost(topology, *(topology.attachment(host).switch for host in pair))
        parts |= {frozenset(link) for link in pairwise(path)} | {frozenset((node,)) for node in path[1:-1]}
    return parts
