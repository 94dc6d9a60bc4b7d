"""Packets meet the entries that P4Runtime wrote: the real core, with packets, on both executors."""

from __future__ import annotations

import pytest
from device_bench import HERE

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4RuntimeError, PacketIn
from holdfast.p4runtime.received import DigestList, StreamError

CPU_PORT = 510
SOURCE = 0x020000000002


def packet(destination: str = "10.1.2.3", tos: int = 0) -> bytes:
    ethernet = bytes.fromhex("020000000001") + SOURCE.to_bytes(6, "big") + b"\x08\0"
    address = bytes(int(part) for part in destination.split("."))
    return ethernet + bytes([0x45, tos, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 9, 0, 1]) + address + bytes(30)


class Lab:
    """A switch that stands alone, its device and its primary client; packets go through by hand."""

    def __init__(self, executor: str) -> None:
        self.program = _core.Program.compile(str(HERE / "basic.p4"))
        self.switch = _core.Switch(self.program, executor=executor)  # type: ignore[arg-type]
        self.sent: list[tuple[int, bytes]] = []
        self.device = Device(1, self.switch, executor=executor, packet_out=self.packet_out)  # type: ignore[arg-type]
        self.client = LocalClient(self.device)
        self.client.set_pipeline(self.program)
        assert self.client.poll() is not None

    def packet_out(self, data: bytes) -> None:
        self.sent += self.switch.process(CPU_PORT, data)

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Process a packet and return (port, packet) of those that leave; packets for the controller go to the device."""
        outputs = self.switch.process(port, data)
        for number, frame in outputs:
            if number == CPU_PORT:
                assert self.device.packet_in(frame)
        self.device.collect_digests(1)
        return [o for o in outputs if o[0] != CPU_PORT]


@pytest.fixture(params=["interpreter", "jit"])
def lab(request: pytest.FixtureRequest) -> Lab:
    return Lab(request.param)


def test_routes(lab: Lab) -> None:
    assert lab.process(1, packet()) == []
    lab.client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "forward", {"port": 2, "dst_addr": "02:00:00:00:00:aa"})
    lab.client.insert("ipv4_lpm", {"dst_addr": "10.1.0.0/16"}, "forward", {"port": 3, "dst_addr": "02:00:00:00:00:bb"})
    ((port, data),) = lab.process(1, packet())
    assert (port, data[:6].hex()) == (3, "0200000000bb")
    ((port, _),) = lab.process(1, packet("10.2.2.3"))
    assert port == 2
    assert lab.client.direct_counter("ipv4_lpm", {"dst_addr": "10.1.0.0/16"}) == (1, len(packet()))
    assert lab.client.counter("port_packets", 1)[0] == 3
    assert lab.client.register("last_seen", 1) == 0x0A090001
    lab.client.delete("ipv4_lpm", {"dst_addr": "10.1.0.0/16"})
    ((port, _),) = lab.process(1, packet())
    assert port == 2


def test_modify_keeps_the_direct_counter(lab: Lab) -> None:
    key = {"dst_addr": "10.0.0.0/8"}
    lab.client.insert("ipv4_lpm", key, "forward", {"port": 2, "dst_addr": 1})
    lab.process(1, packet())
    lab.client.modify("ipv4_lpm", key, "forward", {"port": 4, "dst_addr": 1})
    assert lab.client.direct_counter("ipv4_lpm", key) == (1, len(packet()))
    ((port, _),) = lab.process(1, packet())
    assert port == 4


def test_priorities(lab: Lab) -> None:
    lab.client.insert("ipv4_lpm", {}, "forward", {"port": 2, "dst_addr": 1})
    match = {"ether_type": 0x0800, "hdr.ipv4.src_addr": ("10.0.0.1", "255.0.0.255")}
    lab.client.insert("acl", match, "drop", priority=1)
    assert lab.process(1, packet()) == []
    lab.client.insert("acl", {**match, "hdr.ipv4.total_len": (20, 40)}, "to_cpu", {"reason": 9}, priority=2)
    assert lab.process(1, packet()) == []
    event = lab.client.poll()
    assert isinstance(event, PacketIn)
    assert event.metadata == {"ingress_port": 1, "reason": 9}
    lab.client.delete("acl", match, priority=1)
    lab.client.delete("acl", {**match, "hdr.ipv4.total_len": (20, 40)}, priority=2)
    assert [port for port, _ in lab.process(1, packet())] == [2]


def test_multicast(lab: Lab) -> None:
    lab.client.insert("ipv4_lpm", {}, "multicast", {"group": 5})
    assert lab.process(1, packet()) == []
    lab.client.multicast_group(5, [(2, 1), (3, 1), (3, 2)])
    assert sorted(port for port, _ in lab.process(1, packet())) == [2, 3, 3]


def test_packet_in_and_out(lab: Lab) -> None:
    lab.client.set_default("ipv4_lpm", "to_cpu", {"reason": 5})
    assert lab.process(7, packet()) == []
    event = lab.client.poll()
    assert event == PacketIn(packet(), {"ingress_port": 7, "reason": 5})
    lab.client.packet_out(packet(), egress_port=6)
    assert lab.sent == [(6, packet())]


def test_digests(lab: Lab) -> None:
    lab.process(3, packet())
    assert lab.client.poll() is None
    lab.client.enable_digest("learn_t")
    lab.process(3, packet())
    event = lab.client.poll()
    assert isinstance(event, DigestList)
    assert event.values == [{"src_addr": SOURCE, "port": 3}]
    lab.client.insert("learned", {"src_addr": SOURCE}, "pass")
    lab.process(3, packet())
    assert lab.client.poll() is None


def test_a_new_pipeline_forgets(lab: Lab) -> None:
    lab.client.insert("ipv4_lpm", {}, "forward", {"port": 2, "dst_addr": 1})
    assert lab.process(1, packet()) != []
    lab.client.set_pipeline(lab.program)
    assert lab.process(1, packet()) == []


def test_a_saved_pipeline_does_not_disturb_the_running_one(lab: Lab) -> None:
    lab.client.insert("ipv4_lpm", {}, "forward", {"port": 2, "dst_addr": 1})
    lab.client.set_pipeline(lab.program, action="verify_and_save")
    lab.client.insert("ipv4_lpm", {}, "forward", {"port": 3, "dst_addr": 1})
    assert [port for port, _ in lab.process(1, packet())] == [2]
    lab.client.set_pipeline(action="commit")
    assert [port for port, _ in lab.process(1, packet())] == [3]


def test_a_batch_that_fails_forwards_as_before(lab: Lab) -> None:
    lab.client.insert("ipv4_lpm", {}, "forward", {"port": 2, "dst_addr": 1})
    with pytest.raises(P4RuntimeError), lab.client.batch():
        lab.client.modify("ipv4_lpm", {}, "forward", {"port": 3, "dst_addr": 1})
        lab.client.delete("ipv4_lpm", {"dst_addr": "1.0.0.0/8"})
    assert [port for port, _ in lab.process(1, packet())] == [2]


def test_a_switch_that_stands_alone_takes_no_packet_out(lab: Lab) -> None:
    device = Device(2, _core.Switch(lab.program, executor="interpreter"), executor="interpreter")
    client = LocalClient(device)
    client.set_pipeline(lab.program)
    client.packet_out(packet(), egress_port=6)
    events = [client.poll(), client.poll()]
    assert isinstance(events[1], StreamError)
    assert events[1].code == "FAILED_PRECONDITION"
