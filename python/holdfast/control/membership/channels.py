"""The channels that the ports want: for each channel, the ports of each switch that receive its packets.

A channel is (S,G) or (*,G), and (*,G) is for all sources that have no channel of their own (RFC 4607, 1). It does not know where
filters come from, nor how packets get to the switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.control.membership.filters import Filter
from holdfast.control.membership.messages import Address

Channel: TypeAlias = tuple[Address | None, Address]
"""(source, group); without a source (*,G)."""

PortKey: TypeAlias = tuple[str, int]
"""Switch and port."""

Channels: TypeAlias = Mapping[Channel, Mapping[str, frozenset[int]]]
"""By channel and switch, ports. No ports: the switch has members of (*,G), and none of them wants this source."""


@dataclass(frozen=True, slots=True)
class ChannelChange:
    """The ports of one switch that want a channel now; None: it has no more to do with the channel."""

    channel: Channel
    switch: str
    ports: frozenset[int] | None


def wanted_channels(memberships: Mapping[tuple[PortKey, Address], Filter]) -> dict[Channel, dict[str, frozenset[int]]]:
    """The definition: the channels of memberships, by port and group.

    (*,G) is there if a port takes all sources but some; (S,G) if a port's filter names S, be it to include or to exclude it.
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
    """The memberships that have these channels: a controller that takes over reads them back."""
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


@dataclass(slots=True)
class _Group:
    """By switch: ports that take all sources; and by source, ports that include it alone, and that exclude it."""

    takers: dict[str, set[int]] = field(default_factory=dict)
    included: dict[Address, dict[str, set[int]]] = field(default_factory=dict)
    excluded: dict[Address, dict[str, set[int]]] = field(default_factory=dict)


class ChannelTable:
    """:func:`wanted_channels`, kept up to date: a change costs what it changes, not what there is."""

    def __init__(self) -> None:
        self.channels: dict[Channel, dict[str, frozenset[int]]] = {}
        self._groups: dict[Address, _Group] = {}

    def change(self, place: PortKey, group: Address, before: Filter, after: Filter) -> list[ChannelChange]:
        """The changes of channels by a change of a port's filter of a group."""
        state = self._groups.setdefault(group, _Group())
        switch, port = place
        mentioned = state.included.keys() | state.excluded.keys()
        for wanted, put in ((before, False), (after, True)):
            if wanted.excludes:
                _put(state.takers, switch, port, put)
            named = state.excluded if wanted.excludes else state.included
            for source in wanted.sources:
                _put(named.setdefault(source, {}), switch, port, put)
                if not named[source]:
                    del named[source]
        changes: list[ChannelChange] = []
        turned = before.excludes != after.excludes
        if turned:
            self._refresh((None, group), state, [switch], changes)
        now = state.included.keys() | state.excluded.keys()
        touched = before.sources | after.sources
        for source in sorted(mentioned | now if turned else touched, key=int):
            channel = source, group
            everywhere = (source in mentioned) != (source in now)
            switches = {*state.takers, *self.channels.get(channel, ()), switch} if everywhere else {switch}
            if source in now:
                self.channels.setdefault(channel, {})
            self._refresh(channel, state, sorted(switches), changes)
            if source not in now:
                self.channels.pop(channel, None)
        if not (state.takers or now):
            del self._groups[group]
        return changes

    def _refresh(self, channel: Channel, state: _Group, switches: list[str], changes: list[ChannelChange]) -> None:
        source, _ = channel
        held = self.channels.setdefault(channel, {})
        for switch in switches:
            ports = _ports(state, source, switch)
            if ports == held.get(switch):
                continue
            if ports is None:
                del held[switch]
            else:
                held[switch] = ports
            changes.append(ChannelChange(channel, switch, ports))
        if source is None and not held:
            del self.channels[channel]


def _ports(state: _Group, source: Address | None, switch: str) -> frozenset[int] | None:
    takers = state.takers.get(switch, set())
    if source is None:
        return frozenset(takers) or None
    if source not in state.included and source not in state.excluded:
        return None
    included = state.included.get(source, {}).get(switch, set())
    if not (takers or included):
        return None
    return frozenset(takers - state.excluded.get(source, {}).get(switch, set()) | included)


def _put(ports: dict[str, set[int]], switch: str, port: int, there: bool) -> None:
    if there:
        ports.setdefault(switch, set()).add(port)
        return
    ports[switch].remove(port)
    if not ports[switch]:
        del ports[switch]
