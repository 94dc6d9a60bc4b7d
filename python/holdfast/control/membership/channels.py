"""The channels that the ports want: for each channel, the ports of each switch that receive its packets.

A channel is (S,G) or (*,G), and (*,G) is for all sources that have no channel of their own (RFC 4607, 1). It does not know where
filters come from, nor how packets get to the switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.control.membership.filters import Filter, FilterChange
from holdfast.control.membership.messages import Address

Channel: TypeAlias = tuple[Address | None, Address]
"""A source and a group; (None, group) is (*,G), all sources of the group."""

PortKey: TypeAlias = tuple[str, int]
"""A switch and one of its ports."""

Channels: TypeAlias = Mapping[Channel, Mapping[str, frozenset[int]]]
"""The ports with members of each channel, by switch. An empty set: members of the group at the switch want all sources
but this."""


@dataclass(frozen=True, slots=True)
class ChannelChange:
    """The ports of one switch that want a channel now; None: it has no more to do with the channel."""

    channel: Channel
    switch: str
    ports: frozenset[int] | None


def wanted_channels(memberships: Mapping[tuple[PortKey, Address], Filter]) -> dict[Channel, dict[str, frozenset[int]]]:
    """Return the channels that memberships need: for each channel, the ports by switch.

    :class:`ChannelTable` computes the same step by step. (*,G) exists if a port takes all sources but some; (S,G) if a port's
    filter names S, to include or to exclude it.
    """
    groups: dict[Address, dict[PortKey, Filter]] = {}
    for (place, group), wanted in memberships.items():
        if wanted:
            groups.setdefault(group, {})[place] = wanted
    channels: dict[Channel, dict[str, frozenset[int]]] = {}
    for group, filters in groups.items():
        takers = {place: wanted for place, wanted in filters.items() if wanted.excludes}
        if takers:
            channels[None, group] = _by_switch(takers)
        for source in {source for wanted in filters.values() for source in wanted.sources}:
            passing = [place for place, wanted in filters.items() if wanted.passes(source)]
            channels[source, group] = {switch: frozenset() for switch, _ in takers} | _by_switch(passing)
    return channels


def _by_switch(places: Iterable[PortKey]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for switch, port in places:
        found.setdefault(switch, set()).add(port)
    return {switch: frozenset(ports) for switch, ports in found.items()}


def memberships_of(channels: Channels) -> dict[tuple[PortKey, Address], Filter]:
    """Return memberships that result in these channels, for a controller that takes over and can read only channels."""
    takers: dict[Address, set[PortKey]] = {}
    for (source, group), switches in channels.items():
        if source is None:
            takers[group] = {(switch, port) for switch, ports in switches.items() for port in ports}
    named: dict[tuple[PortKey, Address], set[Address]] = {}
    for (source, group), switches in channels.items():
        if source is None:
            continue
        passing = {(switch, port) for switch, ports in switches.items() for port in ports}
        everyone = {place for place in takers.get(group, ()) if place[0] in switches}
        for place in passing ^ everyone:
            named.setdefault((place, group), set()).add(source)
    found = {(place, group): Filter(True) for group, places in takers.items() for place in places}
    for (place, group), sources in named.items():
        found[place, group] = Filter(place in takers.get(group, ()), frozenset(sources))
    return found


_Places: TypeAlias = PortKey | dict[str, set[int]]
"""The ports that name a source, by switch; a single port, the most frequent case, is stored as its key alone."""


class _Group:
    """The ports that take all sources, by switch; and by source, ports that include it alone, and that exclude it."""

    __slots__ = ("excluded", "included", "takers")

    def __init__(self) -> None:
        self.takers: dict[str, set[int]] = {}
        self.included: dict[Address, _Places] = {}
        self.excluded: dict[Address, _Places] = {}

    def names(self, source: Address) -> bool:
        """Return True if the filter of any port names the source."""
        return source in self.included or source in self.excluded

    def switches(self, source: Address | None) -> set[str]:
        """Return the switches that have ports which take all sources, or which include this ``source``."""
        found = set(self.takers)
        if source is not None:
            found.update(_switches(self.included.get(source)))
        return found

    def ports(self, source: Address | None, switch: str) -> frozenset[int] | None:
        """Return a switch's ports that want a source's channel (None: of all sources); None if the switch has no part in it."""
        takers = self.takers.get(switch, _NO_PORTS)
        if source is None:
            return frozenset(takers) or None
        if not self.names(source):
            return None
        included = _ports_at(self.included.get(source), switch)
        if not (takers or included):
            return None
        return frozenset(takers - _ports_at(self.excluded.get(source), switch) | included)


class ChannelsView(Mapping[Channel, dict[str, frozenset[int]]]):
    """The channels of a table, as they are when they are asked for: no channel is kept twice."""

    def __init__(self, table: ChannelTable) -> None:
        self._table = table

    def __getitem__(self, channel: Channel) -> dict[str, frozenset[int]]:
        source, group = channel
        state = self._table.groups.get(group)
        if state is None or not (state.takers if source is None else state.names(source)):
            raise KeyError(channel)
        ports = {switch: state.ports(source, switch) for switch in state.switches(source)}
        return {switch: found for switch, found in ports.items() if found is not None}

    def __iter__(self) -> Iterator[Channel]:
        for group, state in self._table.groups.items():
            if state.takers:
                yield None, group
            yield from ((source, group) for source in state.included)
            yield from ((source, group) for source in state.excluded if source not in state.included)

    def __len__(self) -> int:
        return self._table.count


class ChannelTable:
    """:func:`wanted_channels`, kept up to date: a change costs what it changes, not what there is."""

    def __init__(self) -> None:
        self.groups: dict[Address, _Group] = {}
        self.count = 0
        """The number of channels."""
        self.channels: Channels = ChannelsView(self)

    def change(self, place: PortKey, change: FilterChange) -> list[ChannelChange]:
        """Change a port's filter of a group, and return the changes of channels that result."""
        group = change.group
        state = self.groups.get(group)
        if state is None:
            state = self.groups[group] = _Group()
        turned = change.excluded != change.excludes
        named = {*change.removed, *change.added}
        sources = named.union(state.included, state.excluded) if turned else named
        touched = [*([None] if turned else []), *sorted(sources, key=int)]
        before = {source: _ports_by_switch(state, source, place, source in named) for source in touched}
        existed = {source for source in touched if (state.takers if source is None else state.names(source))}
        _apply(state, place, change)
        changes = []
        for source, by_switch in before.items():
            exists = bool(state.takers if source is None else state.names(source))
            self.count += exists - (source in existed)
            for switch, ports in by_switch.items():
                if (now := state.ports(source, switch)) != ports:
                    changes.append(ChannelChange((source, group), switch, now))
        if not (state.takers or state.included or state.excluded):
            del self.groups[group]
        return changes


def _ports_by_switch(
    state: _Group, source: Address | None, place: PortKey, is_named: bool
) -> dict[str, frozenset[int] | None]:
    """Return by switch the ports of a channel, for the switches where a change at ``place`` may alter them.

    That is the switch of ``place``. If the change names the source (``is_named``) and no other port does, the channel appears or
    vanishes at all switches with ports that take all sources, so these are included.
    """
    switches = {place[0]}
    if source is not None and is_named and _is_alone(state.included.get(source), state.excluded.get(source)):
        switches |= state.switches(source)
    return {switch: state.ports(source, switch) for switch in sorted(switches)}


def _apply(state: _Group, place: PortKey, change: FilterChange) -> None:
    switch, port = place
    named = state.excluded if change.excluded else state.included
    for source in change.removed:
        left = _without(named[source], place)
        if left is None:
            del named[source]
        else:
            named[source] = left
    if change.excluded and not change.excludes:
        state.takers[switch].remove(port)
        if not state.takers[switch]:
            del state.takers[switch]
    elif change.excludes and not change.excluded:
        state.takers.setdefault(switch, set()).add(port)
    named = state.excluded if change.excludes else state.included
    for source in change.added:
        named[source] = _with(named.get(source), place)


# ---- Ports that name a source ----

_NO_PORTS: frozenset[int] = frozenset()


def _with(places: _Places | None, place: PortKey) -> _Places:
    if places is None:
        return place
    if isinstance(places, tuple):
        switch, port = places
        places = {switch: {port}}
    places.setdefault(place[0], set()).add(place[1])
    return places


def _without(places: _Places, place: PortKey) -> _Places | None:
    if isinstance(places, tuple):
        return None
    switch, port = place
    places[switch].remove(port)
    if not places[switch]:
        del places[switch]
    return places or None


def _switches(places: _Places | None) -> Iterable[str]:
    if places is None:
        return ()
    return (places[0],) if isinstance(places, tuple) else places


def _ports_at(places: _Places | None, switch: str) -> AbstractSet[int]:
    if places is None:
        return _NO_PORTS
    if isinstance(places, tuple):
        return frozenset((places[1],)) if places[0] == switch else _NO_PORTS
    return places.get(switch, _NO_PORTS)


def _is_alone(*named: _Places | None) -> bool:
    """Return True if at most one port names a source."""
    found = [places for places in named if places is not None]
    if len(found) != 1 or isinstance(found[0], tuple):
        return len(found) < 2
    return sum(map(len, found[0].values())) < 2
