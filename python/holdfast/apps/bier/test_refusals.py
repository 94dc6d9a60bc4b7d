"""Hosts that ask for more than switches hold, and switches that refuse writes: the controller goes on, and nothing else is lost."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import SimulatedNetwork
from holdfast._core import Switch
from holdfast.apps.bier import BierController, one_plus_one
from holdfast.apps.bier.channels import ChannelWriter
from holdfast.apps.bier.conftest import BIFT, PLAN, Compile
from holdfast.apps.bier.one_plus_one import Streams
from holdfast.apps.bier.pending import MOST_REFUSALS, PendingChannels
from holdfast.apps.bier.planning import Bift
from holdfast.apps.bier.program import DELIVER, RECEIVER_GROUPS, STREAM_TABLES, STREAMS, receiver_table
from holdfast.apps.bier.takeover import find
from holdfast.apps.bier.test_channels import change, meaning, switch
from holdfast.apps.bier.test_overlay import report
from holdfast.control.membership.channels import Channel
from holdfast.control.membership.members import channel
from holdfast.control.membership.messages import RecordKind
from holdfast.control.membership.overlay import OverlayParameters
from holdfast.control.tables import read_entries
from holdfast.errors import HoldfastError, NetworkError
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.topologies import load
from holdfast.topology import Topology
from holdfast.traffic import UdpStream

TABLE = receiver_table(4, any_source=False)
TABLE_SIZE = 65_536


class Unreliable(LocalClient):
    """A client whose writes fail while it is told so."""

    fails = False

    def _call_write(self, request: bytes) -> None:
        if self.fails:
            raise P4RuntimeError("UNAVAILABLE", "the switch does not answer")
        super()._call_write(request)


@settings(max_examples=25, deadline=None)
@given(history=st.lists(st.tuples(change, st.booleans()), max_size=14))
def test_refused_writes_change_nothing_and_are_made_up_for(
    compiled: Compile,
    history: list[tuple[tuple[bool, Channel, dict[Bift, int] | None, frozenset[int] | None], bool]],
) -> None:
    program = compiled("one-pass")
    client, fresh = Unreliable(Device(1, Switch(program))), switch(compiled)
    client.set_pipeline(program)
    writer = ChannelWriter(client)
    writer.start(PLAN, {}, {})
    pending = PendingChannels(writer.change)
    sends: dict[Channel, dict[Bift, int]] = {}
    delivers: dict[Channel, frozenset[int]] = {}
    for (is_sent, joined, bit_strings, ports), fails in history:
        client.fails, before = fails, meaning(client)
        if is_sent:
            pending.change({joined: bit_strings}, {})
            sends.pop(joined, None)
            if bit_strings is not None:
                sends[joined] = bit_strings
        else:
            pending.change({}, {joined: ports})
            delivers.pop(joined, None)
            if ports is not None:
                delivers[joined] = ports
        if fails:
            assert meaning(client) == before
        client.fails = False
        if not pending.channels:
            other = switch(compiled)
            ChannelWriter(other).start(PLAN, sends, delivers)
            assert meaning(client) == meaning(other)
    pending.retry()
    assert not len(pending) and not pending.why
    ChannelWriter(fresh).start(PLAN, sends, delivers)
    assert meaning(client) == meaning(fresh)
    assert len(writer._free_groups) == len(set(delivers.values()) - {frozenset()})


def filled(client: LocalClient, entries: int) -> None:
    """Insert ``entries`` entries into the table of receivers, as another controller would."""
    client.multicast_group(RECEIVER_GROUPS.stop - 1, [(1, 0)])
    for first in range(0, entries, 4096):
        with client.batch():
            for number in range(first, min(entries, first + 4096)):
                match = {"hdr.ipv4.src_addr": number, "hdr.ipv4.dst_addr": 0xE9000000}
                client.insert(TABLE, match, DELIVER, {"m_grp": RECEIVER_GROUPS.stop - 1})


def test_what_fits_is_written_and_the_rest_waits_for_room(compiled: Compile) -> None:
    program = compiled("one-pass")
    client = LocalClient(Device(1, Switch(program)))
    client.set_pipeline(program)
    filled(client, TABLE_SIZE - 3)
    writer = ChannelWriter(client)
    writer.start(PLAN, {}, {})
    pending = PendingChannels(writer.change)
    joined = {channel(f"232.0.{at >> 8}.{at & 255}", "10.0.0.1"): frozenset({1}) for at in range(300)}
    sends = {it: {BIFT: 2} for it in joined}
    requests = client.requests_sent
    pending.change(sends, joined)
    # Those that fit are found by halves, and with a bound.
    assert client.requests_sent - requests <= MOST_REFUSALS + 16
    assert len(pending) == 297
    assert pending.refusals.keys() == {"RESOURCE_EXHAUSTED"}
    assert any("is full" in why for why in pending.why.values())
    gone = next(iter(joined))
    for number in range(10):
        client.delete(TABLE, {"hdr.ipv4.src_addr": number, "hdr.ipv4.dst_addr": 0xE9000000})
    pending.change({gone: None}, {gone: None})
    for _ in range(6):
        pending.retry()
    found = find(client, 256).channels
    ours = [it for it in found.entries if it.table == TABLE and it.match["hdr.ipv4.src_addr"] == 0x0A000001]
    assert len(ours) == 13
    assert len(pending) == 299 - 13


def test_a_full_table_is_no_end_and_room_lets_a_member_in(compiled: Compile) -> None:
    topology = load("ring:3")
    controller = BierController(ip_delay_ms=1, bier_delay_ms=1, overlay=OverlayParameters())
    network = SimulatedNetwork(topology, compiled("one-pass"), [controller])
    place = topology.attachment("h2")
    client = network.clients[place.switch]
    assert isinstance(client, LocalClient)
    filled(client, TABLE_SIZE)
    source = str(topology.hosts["h1"].address.ip)
    flow = network.add(UdpStream(source="h1", destination="232.1.1.1", packets_per_s=100, stop_s=20, payload_bytes=64))
    network.join("h2", "232.1.1.1", sources=[source])
    network.join("h3", "232.1.1.1", sources=[source])
    network.run(5)
    assert network.statistics(flow, host="h2").delivered == 0
    assert network.statistics(flow, host="h3").delivered > 480
    assert list(controller.refused_channels) == [place.switch]
    ((refused, why),) = controller.refused_channels[place.switch].items()
    assert refused == channel("232.1.1.1", source) and "is full" in why
    client.delete(TABLE, {"hdr.ipv4.src_addr": 7, "hdr.ipv4.dst_addr": 0xE9000000})
    network.run(20.5)
    assert controller.refused_channels == {}
    assert network.statistics(flow, host="h2").delivered > 1390


def test_a_static_member_that_no_switch_takes_is_told_so(compiled: Compile) -> None:
    topology = load("ring:3")
    controller = BierController(ip_delay_ms=1, bier_delay_ms=1)
    network = SimulatedNetwork(topology, compiled("one-pass"), [controller])
    client = network.clients[topology.attachment("h2").switch]
    assert isinstance(client, LocalClient)
    filled(client, TABLE_SIZE)
    wanted = channel("232.1.1.1", str(topology.hosts["h1"].address.ip))
    with pytest.raises(NetworkError, match=r"'h2' cannot join 232\.1\.1\.1 .* is full"):
        controller.join(wanted, "h2")
    assert controller.refused_channels == {}
    client.delete(TABLE, {"hdr.ipv4.src_addr": 7, "hdr.ipv4.dst_addr": 0xE9000000})
    controller.join(wanted, "h2")
    with pytest.raises(NetworkError, match="no member"):
        controller.leave(wanted, "h3")


def test_protected_channels_without_a_register_leave_nothing_behind(compiled: Compile) -> None:
    program = compiled("one-pass", one_plus_one=True)
    client = LocalClient(Device(1, Switch(program)))
    client.set_pipeline(program)
    streams = Streams(client)
    channels = [channel(f"232.0.{at >> 8}.{at & 255}", "10.0.0.1") for at in range(STREAMS + 1)]
    streams.add(channels[:-2], [(1, it) for it in channels[:-2]])
    with pytest.raises(HoldfastError, match="in use"):
        streams.add(channels[-2:], [(1, it) for it in channels[-2:]])
    streams.add(channels[-1:], [(1, channels[-1])])
    assert len(streams._indices) == 2 * STREAMS


def test_streams_that_a_switch_does_not_remove_keep_their_registers(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_plus_one, "STREAMS", 2)
    program = compiled("one-pass", one_plus_one=True)
    client = Unreliable(Device(1, Switch(program)))
    client.set_pipeline(program)
    streams = Streams(client)
    kept, gone, new = (channel(f"232.0.0.{at}", "10.0.0.1") for at in range(1, 4))
    streams.add([kept, gone], [(1, kept), (1, gone)])
    for remove in (lambda: streams.keep([kept], [(1, kept)]), lambda: streams.remove([gone], [(1, gone)])):
        client.fails = True
        with pytest.raises(P4RuntimeError, match="does not answer"):
            remove()
        client.fails = False
        with pytest.raises(HoldfastError, match="in use"):
            streams.add([new], [(1, new)])
    streams.keep([kept], [(1, kept)])
    streams.add([new], [(1, new)])
    for table in STREAM_TABLES:
        assert sorted(entry.params["index"] for entry in read_entries(client, table)) in ([0, 1], [])


# ---- Hosts that flood ----


def flood(network: SimulatedNetwork, topology: Topology, host: str, frames: int, *, first: int, sources: int) -> None:
    """Send ``frames`` reports from ``host``, each for another group with ``sources`` sources."""
    for number in range(first, first + frames):
        names = [str(IPv4Address(0x0B000000 + sources * number + at)) for at in range(sources)]
        group = f"232.{10 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
        network.send_frame(host, report(topology, host, RecordKind.ALLOW_NEW_SOURCES, group, *names))


def test_floods_of_two_hosts_end_nothing_and_delay_nobody(compiled: Compile) -> None:
    topology = load("ring:3")
    limits = OverlayParameters(reports_per_s=50, reports_burst=100, channels_per_port=2000)
    controller = BierController(ip_delay_ms=1, bier_delay_ms=1, overlay=limits)
    network = SimulatedNetwork(topology, compiled("one-pass"), [controller])
    flow = network.add(UdpStream(source="h1", destination="239.1.2.3", packets_per_s=1000, stop_s=4, payload_bytes=64))
    network.join("h1", "239.1.2.3", at_s=2.005)
    for step in range(40):
        for host, base in (("h2", 0), ("h3", 1 << 16)):
            flood(network, topology, host, 20, first=base + 20 * step, sources=30)
        network.run(step / 10)
        assert controller.overlay is not None
        for name in ("h2", "h3"):
            place = topology.attachment(name)
            assert controller.overlay.channels_at((place.switch, place.port)) <= 2000
        assert not controller.refused_channels
    network.run(4)
    # The member's join waits for nobody: the wire, and the controller's millisecond.
    first_ps = network.group_statistics("h1", "239.1.2.3").first_ps
    assert first_ps is None or 2.005e12 < first_ps < 2.012e12
    for name in ("h2", "h3"):
        place = topology.attachment(name)
        drops = controller.report_drops(place.switch)
        # 800 frames; 100 at once and 50 in each second have passed, besides what the queries made of them.
        assert drops.keys() == {place.port} and 450 <= drops[place.port] <= 600
        assert controller.overlay.refused_by_port[place.switch, place.port]["port_limit"] > 10
    assert network.statistics(flow, host="h2").delivered == 0
