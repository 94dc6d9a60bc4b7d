"""Channels of memberships: examples by hand, and the incremental table against the definition."""

from __future__ import annotations

from ipaddress import IPv4Address

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.control.membership.channels import (
    Channel,
    ChannelChange,
    ChannelTable,
    PortKey,
    memberships_of,
    wanted_channels,
)
from holdfast.control.membership.filters import EVERYTHING, NOTHING, Filter, FilterChange
from holdfast.control.membership.messages import Address

GROUPS = [IPv4Address("239.0.0.1"), IPv4Address("232.0.0.1")]
SOURCES = [IPv4Address(f"10.0.0.{number}") for number in (1, 2, 3)]
PLACES: list[PortKey] = [("s1", 1), ("s1", 2), ("s2", 1)]
G, S = GROUPS[0], SOURCES[0]


def ports(**switches: set[int]) -> dict[str, frozenset[int]]:
    return {switch: frozenset(found) for switch, found in switches.items()}


def test_a_group_without_sources_is_one_channel() -> None:
    assert wanted_channels({(("s1", 1), G): EVERYTHING, (("s2", 3), G): EVERYTHING}) == {
        (None, G): ports(s1={1}, s2={3}),
    }


def test_a_source_that_one_port_excludes_has_an_entry_without_it() -> None:
    blocked = Filter(True, frozenset({S}))
    assert wanted_channels({(("s1", 1), G): blocked, (("s1", 2), G): EVERYTHING, (("s2", 1), G): blocked}) == {
        (None, G): ports(s1={1, 2}, s2={1}),
        (S, G): ports(s1={2}, s2=set()),
    }


def test_a_source_that_one_port_includes_is_delivered_to_all_others_too() -> None:
    assert wanted_channels({(("s1", 1), G): Filter(False, frozenset({S})), (("s2", 1), G): EVERYTHING}) == {
        (None, G): ports(s2={1}),
        (S, G): ports(s1={1}, s2={1}),
    }


FILTERS = st.builds(Filter, st.booleans(), st.frozensets(st.sampled_from(SOURCES)))
HISTORY = st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(GROUPS), FILTERS), max_size=30)


@settings(max_examples=150, deadline=None)
@given(HISTORY)
def test_the_table_is_the_definition_and_tells_every_change_once(
    history: list[tuple[PortKey, Address, Filter]],
) -> None:
    table = ChannelTable()
    memberships: dict[tuple[PortKey, Address], Filter] = {}
    told: dict[tuple[Channel, str], frozenset[int]] = {}
    for place, group, wanted in history:
        before = memberships.get((place, group), NOTHING)
        changes = table.change(place, FilterChange.between(group, before, wanted))
        memberships[place, group] = wanted
        assert len({(change.channel, change.switch) for change in changes}) == len(changes)
        for change in changes:
            assert told.get((change.channel, change.switch)) != change.ports
            if change.ports is None:
                del told[change.channel, change.switch]
            else:
                told[change.channel, change.switch] = change.ports
        expected = wanted_channels(memberships)
        assert len(table.channels) == table.count == len(expected)
        assert table.channels == expected
        assert told == {
            (channel, switch): found for channel, them in expected.items() for switch, found in them.items()
        }


@settings(max_examples=50, deadline=None)
@given(HISTORY)
def test_memberships_are_read_back_from_channels(history: list[tuple[PortKey, Address, Filter]]) -> None:
    memberships = {(place, group): wanted for place, group, wanted in history}
    channels = wanted_channels(memberships)
    assert wanted_channels(memberships_of(channels)) == channels


def test_a_join_touches_one_switch() -> None:
    table = ChannelTable()
    for number in range(200):
        table.change((f"s{number}", 1), FilterChange.between(G, NOTHING, EVERYTHING))
    changes = table.change(("s7", 2), FilterChange.between(G, NOTHING, EVERYTHING))
    assert changes == [ChannelChange((None, G), "s7", frozenset({1, 2}))]
