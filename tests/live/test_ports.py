"""Ports of a live switch: adding and removing under traffic, counters, and interfaces that disappear and return."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast import _core
from holdfast.errors import HoldfastError, LiveError
from holdfast.live import benchmark
from holdfast.live.switch import LiveSwitch

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst_addr; bit<48> src_addr; bit<16> ether_type; }
struct headers { ethernet_t ethernet; }
struct metadata {}
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition accept; }
}
control C(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    @port_state register<bit<1>>(16) ports;
    // To the port in the last byte of the destination address; 2 stands in for 1.
    apply {
        bit<1> up;
        s.egress_spec = (bit<9>)h.ethernet.dst_addr;
        ports.read(up, (bit<32>)s.egress_spec);
        if (s.egress_spec == 1 && up == 0) {
            s.egress_spec = 2;
        }
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.ethernet); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def live() -> Iterator[LiveSwitch]:
    live = LiveSwitch(_core.Program.compile_text(PROGRAM, "by_address.p4"))
    yield live
    live.stop()


@pytest.fixture
def hosts() -> Iterator[list[tuple[_core.Namespace, str]]]:
    with ExitStack() as stack:
        namespaces = [stack.enter_context(_core.Namespace(f"h{i}")) for i in range(3)]
        yield [(namespace, namespace.add_veth("eth0")) for namespace in namespaces]


def frame_to(port: int, size_bytes: int = 64) -> bytes:
    return bytes((0x02, 0, 0, 0, 0, port)) + bytes.fromhex("020000000001") + b"\x99\x99" + bytes(size_bytes - 14)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Load:
    """Frames from a host at 2000 per second, until they are stopped: however long the machine takes for what is tried meanwhile."""

    def __init__(self, sender: _core.Namespace, frames: list[bytes]) -> None:
        self._sender, self._frames = sender, frames
        self._stopped = threading.Event()
        self._sent = 0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        while not self._stopped.is_set():
            self._sent += self._sender.send_load("eth0", self._frames, duration_s=0.2, packets_per_s=2000).sent

    def stop(self) -> int:
        """Stop the load and return how many frames were sent."""
        self._stopped.set()
        self._thread.join()
        return self._sent


@pytest.mark.parametrize("io", ["af_packet", "af_xdp"])
def test_statistics_add_up(live: LiveSwitch, hosts: list[tuple[_core.Namespace, str]], io: str) -> None:
    for port, (_, outer) in enumerate(hosts[:2]):
        live.add_port(port, outer, io=io)  # type: ignore[arg-type]
    assert live.port_io(0) is None
    frames = [frame_to(1), frame_to(1, 1514), frame_to(9)]
    with live:
        assert [live.port_io(port) for port in live.ports] == [io, io]
        report = hosts[0][0].send_load("eth0", frames, duration_s=0.2, packets_per_s=2000)
        sent = report.sent

        def is_through() -> bool:
            first, second = live.port_statistics(0), live.port_statistics(1)
            gone = second.tx_packets + live.drops().get("no_such_port", 0)
            return first.rx_packets + first.rx_overrun_drops == sent and gone == first.rx_packets

        wait_for(is_through)
        assert sent > 0
        arrived = live.port_statistics(0)
        assert hosts[1][0].interface_counters("eth0").rx_packets == live.port_statistics(1).tx_packets
    # They can still be read, and there are none of ports that are not there.
    left = live.port_statistics(1)
    assert live.port_statistics(0) == arrived
    assert left.tx_packets + live.drops()["no_such_port"] == arrived.rx_packets
    assert left.tx_bytes == pytest.approx(left.tx_packets * (64 + 1514) / 2, abs=1514)
    with pytest.raises(HoldfastError):
        live.port_statistics(5)
    # Another start goes on counting.
    with live:
        hosts[0][0].send_load("eth0", frames, duration_s=0.02, packets_per_s=2000)
        wait_for(lambda: live.port_statistics(0).rx_packets > arrived.rx_packets)


def test_ports_come_and_go_under_traffic(live: LiveSwitch, hosts: list[tuple[_core.Namespace, str]]) -> None:
    (sender, first), (receiver, second), (other, third) = hosts
    live.add_port(0, first)
    live.add_port(1, second)
    live.start()
    load = Load(sender, [frame_to(1), frame_to(2)])
    wait_for(lambda: live.port_statistics(1).tx_packets > 100)
    assert other.interface_counters("eth0").rx_packets == 0
    live.add_port(2, third)
    wait_for(lambda: other.interface_counters("eth0").rx_packets > 100)
    removed = live.remove_port(2)
    assert removed.tx_packets == other.interface_counters("eth0").rx_packets
    assert live.ports == {0: first, 1: second}
    # Under another number, and another interface under the old one.
    live.add_port(7, third)
    with pytest.raises(HoldfastError):
        live.add_port(2, third)
    live.remove_port(7)
    before = other.interface_counters("eth0").rx_packets
    live.add_port(2, third)
    wait_for(lambda: other.interface_counters("eth0").rx_packets > before + 100)
    # Of what was sent to the port that stayed, nothing is missing; each part of the load began with it.
    half = load.stop() / 2
    wait_for(lambda: receiver.interface_counters("eth0").rx_packets >= half - 1)
    assert live.port_statistics(0).rx_overrun_drops == 0


def test_an_interface_that_goes_and_returns(live: LiveSwitch, hosts: list[tuple[_core.Namespace, str]]) -> None:
    (sender, first), (receiver, second), _ = hosts
    live.add_port(0, first)
    live.add_port(1, second)
    live.start()

    told: list[tuple[int, bool]] = []

    def change() -> tuple[int, bool]:
        def polled() -> bool:
            told.extend((n.port, n.up) for n in live.poll(0.1) if n.kind == "port_change")
            return bool(told)

        wait_for(polled)
        return told.pop(0)

    # That the ports are there.
    assert change() == (0, True)
    assert change() == (1, True)

    receiver.set_link("eth0", up=False)
    assert change() == (1, False)
    assert not live.port_is_up(1)
    assert live.port_is_up(0)
    receiver.set_link("eth0", up=True)
    assert change() == (1, True)
    # What happens while the switch stands still, it learns when it goes on.
    live.stop()
    receiver.set_link("eth0", up=False)
    live.start()
    assert change() == (1, False)
    live.stop()
    receiver.set_link("eth0", up=True)
    live.start()
    assert change() == (1, True)
    subprocess.run(["ip", "link", "delete", second], check=True)
    assert change() == (1, False)
    subprocess.run(
        ["ip", "link", "add", second, "type", "veth", "peer", "name", "eth0", "netns", receiver.name], check=True
    )
    receiver.set_link("eth0", up=True)
    subprocess.run(["ip", "link", "set", second, "up"], check=True)
    assert change() == (1, True)
    before = receiver.interface_counters("eth0").rx_packets
    sender.send_load("eth0", [frame_to(1)], duration_s=0.1, packets_per_s=1000)
    wait_for(lambda: receiver.interface_counters("eth0").rx_packets >= before + 90)


def test_the_program_sees_an_interface_go(live: LiveSwitch, hosts: list[tuple[_core.Namespace, str]]) -> None:
    (sender, first), (receiver, second), (other, third) = hosts
    for port, outer in enumerate((first, second, third)):
        live.add_port(port, outer)
    live.start()

    def arrived(namespace: _core.Namespace) -> int:
        return namespace.interface_counters("eth0").rx_packets

    load = Load(sender, [frame_to(1)])
    wait_for(lambda: arrived(receiver) > 100)
    assert arrived(other) == 0
    receiver.set_link("eth0", up=False)
    # No controller had a hand in it.
    wait_for(lambda: arrived(other) > 100)
    receiver.set_link("eth0", up=True)
    before = arrived(receiver)
    wait_for(lambda: arrived(receiver) > before + 100)
    load.stop()


def test_mistakes_are_explained(live: LiveSwitch, hosts: list[tuple[_core.Namespace, str]]) -> None:
    first, second = hosts[0][1], hosts[1][1]
    live.add_port(0, first)
    for port, interface, message in [
        (0, second, "already"),
        (1, first, "is port 0 of this switch already"),
        (510, second, "controller"),
        (-1, second, "not between"),
        (600, second, "not between"),
    ]:
        with pytest.raises(HoldfastError, match=message):
            live.add_port(port, interface)
    with pytest.raises(HoldfastError, match="io must be"):
        live.add_port(1, second, io="dpdk")  # type: ignore[arg-type]
    live.start()
    with pytest.raises(HoldfastError, match="nosuch0"):
        live.add_port(1, "nosuch0")
    # What failed left nothing behind.
    assert live.ports == {0: first}
    live.add_port(1, second)
    live.remove_port(0)
    live.add_port(0, first)
    with pytest.raises(HoldfastError, match="no port 3"):
        live.remove_port(3)


@pytest.mark.parametrize("length", ["+24", "33", "-1", " 24", "2_4", "", "٢٤", "24/1"])
def test_the_length_of_a_prefix_is_digits(hosts: list[tuple[_core.Namespace, str]], length: str) -> None:
    namespace, _ = hosts[0]
    for add in (namespace.add_address, lambda _, prefix: namespace.add_route(prefix, "eth0")):
        with pytest.raises(HoldfastError, match="no address with prefix length"):
            add("eth0", f"10.77.0.0/{length}")


def test_the_live_benchmark_measures(tmp_path: Path) -> None:
    (result,) = benchmark.run([64], quick=True, progress=lambda _: None)
    assert result.size_bytes == 64
    assert 0 < result.forwarded_packets_per_s <= result.offered_packets_per_s
    assert 0 <= result.lossless_packets_per_s <= result.offered_packets_per_s
    assert result.loss == pytest.approx(1 - result.forwarded_packets_per_s / result.offered_packets_per_s)
    assert 0 < result.worker_share <= 1.1
    assert "ns per packet" in result.limit
    benchmark.write_json([result], tmp_path / "live.json")
    assert "forwarded_packets_per_s" in (tmp_path / "live.json").read_text()
    with pytest.raises(HoldfastError):
        benchmark.run([9000], quick=True, progress=lambda _: None)


def test_a_port_of_any_architectures_controller_is_no_interfaces() -> None:
    """Checks this for a program of PSA, whose controller is elsewhere: a client may set one of v1model."""
    program = _core.Program.compile(str(Path(__file__).parents[1] / "p4/accept/psa.p4"))
    with pytest.raises(LiveError, match="port 510 is the controller's"):
        LiveSwitch(program).add_port(510, "absent0")
