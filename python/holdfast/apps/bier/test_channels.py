"""Channels of a switch, changed one by one: a switch then holds what it would if all were written at once."""

from __future__ import annotations

from ipaddress import IPv4Address

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast._core import Switch
from holdfast.apps.bier.channels import ChannelWriter
from holdfast.apps.bier.conftest import BIFT, PLAN, Compile
from holdfast.apps.bier.entries import bfer_configuration, bfir_configuration
from holdfast.apps.bier.planning import Bift
from holdfast.apps.bier.program import FURTHER_SET_TABLE, RECEIVER_GROUPS
from holdfast.apps.bier.takeover import find
from holdfast.control.membership.channels import Channel
from holdfast.control.membership.members import channel
from holdfast.p4runtime.client import Client, LocalClient
from holdfast.p4runtime.device import Device

CHANNELS: list[Channel] = [
    channel("239.1.1.1", "10.0.0.1"),
    channel("239.1.1.1"),
    channel("239.1.1.2", "10.0.0.1"),
    channel("ff1e::1", "2001:db8::1"),
    channel("ff1e::1"),
]
SETS = [BIFT, Bift(0, 1), Bift(0, 2)]

sent = st.dictionaries(st.sampled_from(SETS), st.integers(1, 255)) | st.none()
delivered = st.frozensets(st.integers(1, 3)) | st.none()
change = st.tuples(st.booleans(), st.sampled_from(CHANNELS), sent, delivered)


def switch(compiled: Compile) -> Client:
    program = compiled("one-pass")
    client = LocalClient(Device(1, Switch(program)))
    client.set_pipeline(program)
    return client


def meaning(client: Client) -> tuple[object, object]:
    """Return the BitStrings and the receiving ports of all channels in a switch, without the numbers of sets and groups."""
    found = find(client, 256).channels
    further = {entry.match["set"]: entry.params for entry in found.entries if entry.table == FURTHER_SET_TABLE}
    there, groups, used = {}, [], 0
    for entry in found.entries:
        if entry.table == FURTHER_SET_TABLE:
            continue
        params = dict(entry.params)
        passes = []
        following = int(params.pop("next_set", 0))
        while following:
            step = dict(further[following])
            following = int(step.pop("next_set"))
            passes.append(sorted(step.items()))
            used += 1
        if (group := params.pop("m_grp", None)) is not None:
            groups.append(int(group))
            passes.append(sorted(found.groups[int(group)]))
        there[entry.key] = entry.action, sorted(params.items()), passes
    assert used == len(further), "no set is left over, and none has two channels"
    assert set(groups) == found.groups.keys(), "no group is left over"
    assert len(set(found.groups.values())) == len(found.groups), "the same ports have one group"
    return there, None


@settings(max_examples=25, deadline=None)
@given(history=st.lists(change, max_size=12), restarts=st.sets(st.integers(0, 11), max_size=2))
def test_changes_make_what_writing_all_would(
    compiled: Compile,
    history: list[tuple[bool, Channel, dict[Bift, int] | None, frozenset[int] | None]],
    restarts: set[int],
) -> None:
    client, fresh = switch(compiled), switch(compiled)
    writer = ChannelWriter(client)
    writer.start(PLAN, {}, {})
    sends: dict[Channel, dict[Bift, int]] = {}
    delivers: dict[Channel, frozenset[int]] = {}
    for number, (is_sent, joined, bit_strings, ports) in enumerate(history):
        if is_sent:
            writer.change({joined: bit_strings}, {})
            sends.pop(joined, None)
            if bit_strings is not None:
                sends[joined] = bit_strings
        else:
            writer.change({}, {joined: ports})
            delivers.pop(joined, None)
            if ports is not None:
                delivers[joined] = ports
        if number in restarts:
            before = find(client, 256).channels
            writer = ChannelWriter(client)
            writer.adopt(before)
            requests = client.requests_sent
            writer.start(PLAN, sends, delivers)
            assert client.requests_sent == requests, "a successor that wants the same writes nothing"
    other = ChannelWriter(fresh)
    other.start(PLAN, sends, delivers)
    assert meaning(client) == meaning(fresh)
    whole = bfir_configuration(PLAN, sends) | bfer_configuration(delivers)
    assert len(find(client, 256).channels.entries) == len(whole.entries)


def test_a_join_writes_its_channel_alone_and_numbers_stay(compiled: Compile) -> None:
    client = switch(compiled)
    writer = ChannelWriter(client)
    joined = {channel(f"239.0.0.{number}", "10.0.0.1"): frozenset({number % 3 + 1}) for number in range(30)}
    writer.start(PLAN, {key: {BIFT: 2} for key in joined}, joined)
    groups = client.multicast_groups()
    assert groups.keys() == set(range(RECEIVER_GROUPS.start, RECEIVER_GROUPS.start + 3))
    updates, requests = client.updates_sent, client.requests_sent
    one, two = list(joined)[:2]
    writer.change({one: {BIFT: 6}}, {one: frozenset({2})})
    # Its entries as BFIR and BFER; the ports are another channel's as well.
    assert (client.updates_sent - updates, client.requests_sent - requests) == (2, 1)
    writer.change({}, {two: frozenset({1, 2})})
    assert client.multicast_groups().items() > groups.items()
    assert IPv4Address("239.0.0.1") == two[1]
    writer.change({}, {two: frozenset({2})})
    assert client.multicast_groups() == groups
