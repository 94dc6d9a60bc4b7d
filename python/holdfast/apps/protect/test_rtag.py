"""R-TAGs: frames through one bridge byte by byte, random copies against the model of the standard, and a ring of four bridges."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from holdfast._core import Network, Program, Switch
from holdfast.apps.protect.acceptance import PATHS, Acceptance
from holdfast.apps.protect.program import R_TAG
from holdfast.apps.protect.tests.differential import arrivals
from holdfast.apps.protect.tests.model import SequenceRecovery
from holdfast.control.desired import Writer
from holdfast.control.domain import domain_registers, refused
from holdfast.link import Ordering
from holdfast.measurements import NodeCounters, OrderingCounters
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device

STREAM, STATION = 0x010000000005, 0x020000000007
VID = 12
DOMAIN = frozenset(range(1, 5))
"""Ports with other bridges behind them."""
EDGE = 6


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.compile(str(Path(__file__).with_name("rtag.p4")), defines={"CONNECTIONS": "16"})


@pytest.fixture(params=["jit", "interpreter"])
def executor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def frame(
    destination: int, vid: int | None = None, sequence: int | None = None, payload: bytes = b"\x12\x34data"
) -> bytes:
    """Return a frame with a VLAN tag and an R-TAG (IEEE 802.1CB), where they are not None.

    ``payload`` begins with its EtherType.
    """
    vlan = b"" if vid is None else b"\x81\x00" + (0xA000 | vid).to_bytes(2, "big")
    rtag = b"" if sequence is None else b"\xf1\xc1\0\0" + sequence.to_bytes(2, "big")
    return destination.to_bytes(6, "big") + bytes(6) + vlan + rtag + payload


class Bridge:
    def __init__(self, program: Program, switch: Switch, executor: str = "jit") -> None:
        self.switch = switch
        self.client = LocalClient(Device(1, self.switch, executor=executor))
        self.client.set_pipeline(program)
        Writer(self.client).write(domain_registers(DOMAIN))

    def split(self, vid: int, ports: list[int], mtu: int = 100) -> None:
        self.client.multicast_group(1, [(port, 0) for port in ports])
        params = {"index": 3, "m_grp": 1, "max_frame_bytes": mtu}
        self.client.insert("split_streams", {"hdr.ethernet.dst_addr": STREAM, "meta.vid": vid}, "split.split", params)

    def eliminate(self, vid: int, acceptance: Acceptance, *, untag: bool = True) -> None:
        action, params = acceptance.action(4)
        key = {"hdr.ethernet.dst_addr": STREAM, "meta.vid": vid}
        self.client.insert("eliminated_streams", key, action, params | {"untag": int(untag)})
        for port in range(1, PATHS + 1):
            self.client.insert("ports", {"standard_metadata.ingress_port": port}, "end_path", {"number": port - 1})

    def bridge(self, destination: int, vid: int, port: int) -> None:
        key = {"hdr.ethernet.dst_addr": destination, "meta.vid": vid}
        self.client.insert("stations", key, "forward", {"port": port})


def alone(program: Program, executor: str) -> Bridge:
    return Bridge(program, Switch(program, executor=executor), executor)  # type: ignore[arg-type]


@pytest.mark.parametrize("vid", [None, VID])
def test_numbers_and_copies(program: Program, executor: str, vid: int | None) -> None:
    """From 0, around at 65536, behind the VLAN's tag; other streams and stations as they came."""
    bridge = alone(program, executor)
    bridge.split(vid or 0, [2, 3])
    bridge.bridge(STATION, vid or 0, 5)
    for sequence in (0, 1, 2):
        assert sorted(bridge.switch.process(1, frame(STREAM, vid))) == [
            (p, frame(STREAM, vid, sequence)) for p in (2, 3)
        ]
    bridge.client.write_register("next_sn", 3, 65535)
    for sequence in (65535, 0):
        assert bridge.switch.process(1, frame(STREAM, vid))[0][1] == frame(STREAM, vid, sequence)
    assert bridge.switch.process(1, frame(STATION, vid)) == [(5, frame(STATION, vid))]
    assert bridge.switch.process(1, frame(STREAM, 99)) == [], "another VLAN, unknown"
    assert bridge.switch.process(5, frame(STATION, vid)) == [], "not back"
    assert bridge.client.counter("numbered", 3)[0] == 5


def test_frames_too_large_take_no_number(program: Program, executor: str) -> None:
    bridge = alone(program, executor)
    bridge.split(0, [2, 3], mtu=60)
    fits, too_large = (frame(STREAM, payload=bytes(n)) for n in (42, 43))
    assert bridge.switch.process(1, too_large) == []
    assert [len(out) for _, out in bridge.switch.process(1, fits)] == [60, 60]
    assert bridge.client.counter("mtu_exceeded", 3)[0] == 1
    assert bridge.client.register("next_sn", 3) == 1


@pytest.mark.parametrize("untag", [True, False])
@pytest.mark.parametrize("vid", [None, VID])
def test_elimination(program: Program, executor: str, vid: int | None, untag: bool) -> None:
    bridge = alone(program, executor)
    bridge.eliminate(vid or 0, Acceptance("vector", 8, 0), untag=untag)
    bridge.bridge(STREAM, vid or 0, 9)
    for sequence in (65534, 65535, 0, 1):
        out = frame(STREAM, vid, None if untag else sequence)
        assert bridge.switch.process(2, frame(STREAM, vid, sequence)) == [(9, out)]
        assert bridge.switch.process(3, frame(STREAM, vid, sequence)) == []
    assert bridge.client.counter("passed", 4 * PATHS + 1)[0] == 4
    assert bridge.client.counter("discarded", 4 * PATHS + 2)[0] == 4
    untagged = frame(STREAM, vid)
    assert bridge.switch.process(2, untagged) == [(9, untagged)], "no number: passed (TakeNoSequence)"


@pytest.mark.parametrize("vid", [None, VID])
def test_numbers_of_stations_are_refused(program: Program, executor: str, vid: int | None) -> None:
    """Sends a number far ahead from a port without a bridge behind it: no copy of the stream is taken for an old one."""
    bridge = alone(program, executor)
    bridge.eliminate(vid or 0, Acceptance("window", 16, 100))
    bridge.bridge(STREAM, vid or 0, 9)
    assert bridge.switch.process(2, frame(STREAM, vid, 10)) == [(9, frame(STREAM, vid))]
    for port in (EDGE, 0, 509):
        for sequence in (11, 1000, 10 + (1 << 15) - 1):
            assert bridge.switch.process(port, frame(STREAM, vid, sequence)) == []
        assert refused(bridge.client, port) == 3
    assert bridge.switch.process(3, frame(STREAM, vid, 11)) == [(9, frame(STREAM, vid))]
    untagged = frame(STREAM, vid)
    assert bridge.switch.process(EDGE, untagged) == [(9, untagged)], "a station's frame, without a number"


@pytest.mark.parametrize("tags", [[0x88A8], [0x8100, 0x8100], [0x88A8, 0x8100], [0x9100]], ids=str)
def test_a_number_behind_other_tags_is_payload(program: Program, executor: str, tags: list[int]) -> None:
    """No bridge reads it: it is carried, and a stream's state does not change."""
    bridge = alone(program, executor)
    vid = VID if tags[0] == 0x8100 else 0
    bridge.eliminate(vid, Acceptance("window", 16, 100))
    bridge.bridge(STREAM, vid, 9)
    tagged = (
        frame(STREAM)[:12] + b"".join(tag.to_bytes(2, "big") + b"\0\x0c" for tag in tags) + frame(STREAM, None, 99)[12:]
    )
    assert bridge.switch.process(EDGE, tagged) == [(9, tagged)]
    assert bridge.client.register("last_accepted_sn", 4) == 0


def test_streams_of_others_pass_with_their_tags(program: Program, executor: str) -> None:
    bridge = alone(program, executor)
    bridge.bridge(STREAM, 0, 9)
    for _ in range(2):
        assert bridge.switch.process(2, frame(STREAM, None, 7)) == [(9, frame(STREAM, None, 7))]
    assert bridge.switch.process(2, frame(STREAM, None, 7)[:18]) == [], "cut off in the tag"
    assert bridge.client.counter("malformed", 0)[0] == 1


@pytest.mark.parametrize(
    "acceptance", [Acceptance("vector", 16, 2), Acceptance("match", 16, 2), Acceptance("window", 16, 2)], ids=str
)
def test_random_copies_against_the_model(program: Program, acceptance: Acceptance) -> None:
    bridge, model = alone(program, "jit"), SequenceRecovery(acceptance, 16)
    bridge.eliminate(0, acceptance)
    bridge.bridge(STREAM, 0, 9)
    stream, now_us = arrivals(random.Random(str(acceptance)), 1 << 16, 16), 0
    for _ in range(5000):
        elapsed_us, sequence, path = next(stream)
        now_us += elapsed_us
        model.elapse(elapsed_us)
        out = bridge.switch.process(path + 1, frame(STREAM, None, sequence), now_us * 1_000_000)
        assert bool(out) == model.receive(sequence, path)
    counted = [bridge.client.counter("passed", 4 * PATHS + path)[0] for path in range(PATHS)]
    assert counted == model.passed
    assert bridge.client.register("lost", 4) == model.lost


def test_a_ring_loses_nothing_when_a_link_fails(program: Program) -> None:
    """Both ways around four bridges, one of which fails in between; every frame arrives once, without its tag."""
    network = Network(seed=3)
    bridges = {name: Bridge(program, network.add_switch(name, program)) for name in "abcd"}
    # Port 1 leads on around the ring, port 2 back.
    links = [
        network.add_link(a=x, a_port=1, b=y, b_port=2, a_to_b={"rate_bps": 10**9, "delay_ms": 0.001})
        for x, y in ("ab", "bc", "cd", "da")
    ]
    bridges["a"].split(VID, [1, 2])
    bridges["b"].bridge(STREAM, VID, 1)
    bridges["d"].bridge(STREAM, VID, 2)
    bridges["c"].eliminate(VID, Acceptance("vector", 16, 100))
    bridges["c"].bridge(STREAM, VID, 3)
    network.add_packet_generator(switch="a", port=7, packet=frame(STREAM, VID), period_ms=0.1, count=1000)
    network.apply(target={"link": links[0]}, up=False, at_ps=25 * 10**9)
    network.apply(target={"link": links[0]}, up=True, at_ps=60 * 10**9)
    while network.now_ps < 200 * 10**9:
        network.run(200 * 10**9)  # stops where ports change
    end = bridges["c"].client
    passed = [end.counter("passed", 4 * PATHS + path)[0] for path in (0, 1)]
    assert sum(passed) == 1000
    discarded = sum(end.counter("discarded", 4 * PATHS + path)[0] for path in (0, 1))
    assert discarded == 1000 - 350, "the failure took the copies of 35 ms"
    assert network.snapshot(NodeCounters, node="c")[0].unconnected_drops == 1000


def test_tags_that_a_bridge_leaves_are_put_in_order_and_taken_off(program: Program) -> None:
    """An ordering function that is told of the R-TAG; in VLAN 12, whose tag stays."""
    network = Network(seed=3)
    bridge = Bridge(program, network.add_switch("b", program))
    network.add_host("h", cards=[{"mac": "02:00:00:00:00:09", "address": "10.0.0.1/24"}])
    ordering = Ordering(max_delay_ms=5, take_any_ms=50, headers=(R_TAG,))
    link = network.add_link(
        a="b", a_port=3, b="h", b_port=0, a_to_b={"rate_bps": 10**9, "ordering": ordering.model_dump()}
    )
    bridge.eliminate(VID, Acceptance("vector", 16, 100), untag=False)
    bridge.bridge(STREAM, VID, 3)
    for position, sequence in enumerate([65534, 0, 65535, 2, 3, 1]):
        payload = b"\x12\x34" + sequence.to_bytes(2, "big")
        packet = frame(STREAM, VID, sequence, payload)
        network.add_packet_generator(switch="b", port=1, packet=packet, period_ms=1, count=1, start_ms=position / 10)
    received = []
    while network.now_ps < 10**10:
        received += [it.data for it in network.run(10**10) if it.kind == "host_frame"]
    payloads = [b"\x12\x34" + sequence.to_bytes(2, "big") for sequence in (65534, 65535, 0, 1, 2, 3)]
    assert received == [frame(STREAM, VID, None, payload) for payload in payloads]
    (counters,) = network.snapshot(OrderingCounters, link=link, direction="a_to_b")
    assert (counters.taken_any, counters.in_order, counters.filled) == (1, 2, 3)
