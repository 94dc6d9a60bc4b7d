"""The native core through its typed interface: switches, their control plane, networks on both clocks."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from controlled import controlled, insert

from holdfast import _core
from holdfast._core import CompileError, ControlError, HoldfastError, Network, Program, Switch
from holdfast.host import mac_text
from holdfast.link import Jitter
from holdfast.measurements import DirectionCounters, LinkCounters, NodeCounters, ReceivedLog, SentLog
from holdfast.p4runtime import DigestList, LocalClient, P4RuntimeError
from holdfast.traffic import Ping, UdpStream

SOURCE = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata { bit<8> mark; }
struct learn_t { bit<48> src; bit<16> type; }

parser P(packet_in packet, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control Check(inout headers h, inout metadata m) { apply {} }
control In(inout headers h, inout metadata m, inout standard_metadata_t s) {
    register<bit<17>>(8) seen;
    counter(4, CounterType.packets_and_bytes) arrived;
    direct_counter(CounterType.packets_and_bytes) l2_counter;

    action forward(bit<9> port) { s.egress_spec = port; }
    action multicast(bit<16> group) { s.mcast_grp = group; }
    action copy(bit<9> port) { s.egress_spec = port; clone(CloneType.I2E, 7); }
    action learn() { digest<learn_t>(1, { h.ethernet.src, h.ethernet.type }); mark_to_drop(s); }
    action drop() { mark_to_drop(s); }
    action mark(bit<8> value) { m.mark = value; }

    table l2 {
        key = { h.ethernet.dst: exact; }
        actions = { forward; multicast; copy; learn; @defaultonly drop; }
        default_action = drop();
        counters = l2_counter;
        size = 4;
    }
    table acl {
        key = {
            h.ethernet.type: ternary;
            h.ethernet.src: lpm;
            s.ingress_port: range;
            h.ethernet.dst: optional;
        }
        actions = { mark; NoAction; }
        default_action = NoAction();
    }
    table fixed {
        key = { s.ingress_port: exact; }
        actions = { mark; NoAction; }
        const default_action = NoAction();
        const entries = { 3: mark(3); }
    }
    apply {
        bit<17> count;
        acl.apply();
        fixed.apply();
        seen.read(count, (bit<32>) m.mark);
        seen.write((bit<32>) m.mark, count + 1);
        arrived.count((bit<32>) s.ingress_port);
        l2.apply();
    }
}
control Out(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control Sum(inout headers h, inout metadata m) { apply {} }
control Emit(packet_out packet, in headers h) { apply { packet.emit(h.ethernet); } }
V1Switch(P(), Check(), In(), Out(), Sum(), Emit()) main;
"""

MAC = {n: bytes((2, 0, 0, 0, 0, n)) for n in range(1, 10)}


def frame(dst: int, src: int = 9, ethertype: int = 0x0800, payload: bytes = b"payload") -> bytes:
    return MAC[dst] + MAC[src] + ethertype.to_bytes(2, "big") + payload


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.compile_text(SOURCE, "core.p4")


@pytest.fixture(params=["jit", "interpreter"])
def switch(program: Program, request: pytest.FixtureRequest) -> Switch:
    return Switch(program, executor=request.param)


def l2(client: LocalClient, dst: int, action: str, *args: int) -> None:
    insert(client, "l2", [MAC[dst]], action, *args)


# ---- Programs ----


def test_a_program_with_errors_says_where(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        Program.compile_text(SOURCE.replace("count + 1", "cuont + 1"), "wrong.p4")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.severity, diagnostic.file) == ("error", "wrong.p4")
    assert diagnostic.line == 1 + SOURCE[: SOURCE.index("count + 1")].count("\n")
    assert "cuont" in diagnostic.message
    assert diagnostic.rendered in str(caught.value)
    assert "^" in diagnostic.rendered
    with pytest.raises(HoldfastError, match=r"absent\.p4"):
        Program.compile(str(tmp_path / "absent.p4"))


def test_includes_and_defines(tmp_path: Path) -> None:
    (tmp_path / "ports.p4").write_text("#ifdef PORT\n#define OUT PORT\n#else\n#define OUT 1\n#endif\n")
    source = '#include "ports.p4"\n' + SOURCE.replace("drop();\n        counters", "forward(OUT);\n        counters")
    path = tmp_path / "main.p4"
    path.write_text(source)
    assert Switch(Program.compile(str(path))).process(0, frame(1)) == [(1, frame(1))]
    program = Program.compile_text(source, include_dirs=[str(tmp_path)], defines={"PORT": "6"})
    assert Switch(program).process(0, frame(1)) == [(6, frame(1))]


def test_an_artifact_is_the_program(program: Program) -> None:
    loaded = Program.from_artifact(program.artifact())
    assert loaded.name == program.name == "core"
    assert loaded.artifact() == program.artifact()
    assert (loaded.p4info, loaded.p4info_message) == (program.p4info, program.p4info_message)
    assert loaded.warnings == []
    bare = Program.from_artifact(program.ir_text.encode())
    assert (bare.p4info, bare.p4info_message, bare.artifact()) == ("", b"", program.ir_text.encode())
    switch = Switch(Program.from_artifact(program.artifact(), program.p4info))
    l2(controlled(switch), 1, "forward", 5)
    assert switch.process(0, frame(1)) == [(5, frame(1))]
    whole = program.artifact()
    cut = [whole[:-more] for more in (2, 3, 20, 21, 100, 101)]
    other = [whole.replace(b" end\n", more + b" end\n") for more in (b"0", b"+f", b"ff", b"zz")]
    assert all(each != whole for each in cut + other)
    for garbage in (b"", b"\xff", b"holdfast_ir 2", *cut, *other):
        with pytest.raises(ControlError) as caught:
            Program.from_artifact(garbage)
        assert caught.value.code == "INVALID_ARGUMENT"


def test_set_program_starts_afresh(switch: Switch, program: Program) -> None:
    l2(controlled(switch), 1, "forward", 5)
    assert switch.process(0, frame(1)) != []
    assert switch.program is program
    other = Program.compile_text(SOURCE.replace("size = 4", "size = 5"), "other.p4")
    switch.set_program(other)
    assert switch.program is other
    assert switch.process(0, frame(1)) == []


# ---- One switch ----


def test_packets_go_where_entries_say(switch: Switch) -> None:
    client = controlled(switch)
    l2(client, 1, "forward", 5)
    l2(client, 2, "multicast", 3)
    l2(client, 3, "copy", 4)
    client.multicast_group(3, [(1, 0), (2, 7)])
    client.clone_session(7, [(9, 1)], packet_length_bytes=16)
    assert switch.process(0, frame(1)) == [(5, frame(1))]
    assert switch.process(0, frame(2)) == [(1, frame(2)), (2, frame(2))]
    copies = switch.process(0, frame(3))
    assert sorted(copies) == [(4, frame(3)), (9, frame(3)[:16])]
    assert switch.process(0, frame(4)) == []
    assert switch.drops() == {"ingress_drop": 1}
    assert client.multicast_groups() == {3: [(1, 0), (2, 7)]}
    assert client.clone_sessions() == {7: [(9, 1)]}


def test_a_ternary_table_by_priority(switch: Switch) -> None:
    client = controlled(switch)
    names = {"type": "type", "src": "ethernet.src", "port": "ingress_port", "dst": "ethernet.dst"}
    rules: list[tuple[int, int, dict[str, Any]]] = [
        (1, 1, {}),
        (2, 10, {"type": (0x0800, 0xFF00)}),
        (4, 20, {"src": (MAC[9][:5] + b"\0", 40), "port": (2, 3)}),
        (5, 30, {"dst": MAC[7]}),
    ]
    for value, priority, match in rules:
        key = {names[name]: wanted for name, wanted in match.items()}
        client.insert("acl", key, "mark", {client.p4info.actions["mark"].params.by_id(1).name: value}, priority)
    for packet, port in (
        (frame(1, ethertype=0x86DD), 0),
        (frame(1, ethertype=0x0806), 0),
        (frame(1), 2),
        (frame(1, src=1), 1),
        (frame(7), 2),
    ):
        switch.process(port, packet)
    assert client.registers("seen") == {0: 0, 1: 1, 2: 2, 3: 0, 4: 1, 5: 1, 6: 0, 7: 0}
    assert [entry.priority for entry in client.read_table("acl")] == [1, 10, 20, 30]


def test_a_full_table(switch: Switch) -> None:
    client = controlled(switch)
    for n in range(1, 5):
        l2(client, n, "forward", n)
    with pytest.raises(P4RuntimeError, match="RESOURCE_EXHAUSTED"):
        l2(client, 5, "forward", 5)


def test_misuse_raises(program: Program) -> None:
    switch = Switch(program)
    for call in (
        lambda: Switch(program, executor="fast"),  # type: ignore[arg-type]
        lambda: Switch(program, cpu_port=511),
        lambda: switch.process(511, b""),
        lambda: switch.packet_out(b""),
    ):
        with pytest.raises(HoldfastError):
            call()


def test_a_trace_tells_what_happened(program: Program) -> None:
    switch = Switch(program, executor="jit")
    client = controlled(switch)
    l2(client, 1, "forward", 5)
    text = switch.trace(2, frame(1))
    assert '"program":"core"' in text.replace(" ", "")
    assert "forward" in text
    # The trace was a packet like any other.
    assert client.counter("arrived", 2)[0] == 1
    assert switch.process(2, frame(1)) == [(5, frame(1))]


# ---- Networks ----

MS = 1_000_000_000
S = 1000 * MS


def two_hosts(
    program: Program, *, seed: int = 1, detection_ms: int = 0
) -> tuple[Network, Switch, LocalClient, list[int]]:
    """Build a network of h1 and h2 in one subnet, behind ports 1 and 2 of s1, which forwards by MAC addresses.

    Returns the network, s1, its client, and the indices of the links to h1 and h2. s1 learns of a port's state ``detection_ms``
    after a change.
    """
    network = Network(seed=seed, detection_delay_ps=detection_ms * MS)
    switch = network.add_switch("s1", program, latency_ms=1e-6)
    client = controlled(switch)
    links = []
    for n in (1, 2):
        # The program floods nothing, so nobody could ask for an address.
        known = {f"10.0.0.{3 - n}": mac_text(MAC[3 - n])}
        network.add_host(f"h{n}", cards=[{"mac": mac_text(MAC[n]), "address": f"10.0.0.{n}/24"}], neighbours=known)
        links.append(
            network.add_link(
                a="s1",
                a_port=n,
                b=f"h{n}",
                b_port=0,
                a_to_b={
                    "rate_bps": 100_000_000,
                    "delay_ms": 0.1,
                    "jitter": Jitter(distribution="uniform", high_ms=0.01).model_dump(),
                },
            )
        )
        l2(client, n, "forward", n)
    return network, switch, client, links


def stream(network: Network, stop_ps: int, destination: str = "h2") -> int:
    stream = UdpStream(
        source="h1",
        destination=destination,
        packets_per_s=1000,
        payload_bytes=100,
        start_s=network.now_ps / S,
        stop_s=stop_ps / S,
    )
    return network.add_udp_stream(**stream.model_dump())


def columns(network: Network, kind: type[SentLog | ReceivedLog], **subject: object) -> list[list[int]]:
    (log,) = network.snapshot(kind, **subject)
    return [getattr(log, field.name).tolist() for field in fields(log)]


def test_a_stream_a_ping_and_a_failure(program: Program) -> None:
    def run() -> tuple[Any, ...]:
        network, _, client, links = two_hosts(program, detection_ms=2)
        flow = stream(network, S)
        ping = network.add_ping(**Ping(source="h1", destination="h2", stop_s=1).model_dump())
        network.apply(target={"link": links[1]}, up=False, at_ps=300 * MS)
        network.apply(target={"link": links[1]}, up=True, at_ps=500 * MS)
        changes = []
        while notifications := network.run(2 * S):
            changes += [(n.kind, n.node, n.port, n.up, n.time_ps) for n in notifications]
        assert network.now_ps == 2 * S
        return (
            changes,
            columns(network, SentLog, flow=flow),
            columns(network, ReceivedLog, flow=flow),
            columns(network, ReceivedLog, flow=ping),
            [LinkCounters(*network.snapshot(DirectionCounters, link=link)) for link in links],
            network.snapshot(NodeCounters, node="s1")[0],
            client.counter("arrived", 1)[0],
        )

    first = run()
    changes, sent, received, replies, links, node, arrived = first
    assert changes == [
        ("port_change", "s1", 2, False, 302 * MS),
        ("port_change", "s1", 2, True, 502 * MS),
    ]
    assert sent == [list(range(1000)), [i * MS for i in range(1000)]]
    sequence, sent_ps, received_ps = received
    assert 799 <= len(sequence) <= 801
    latencies = [r - s for s, r in zip(sent_ps, received_ps, strict=True)]
    assert 2 * MS // 10 <= min(latencies) <= max(latencies) < 3 * MS // 10
    assert replies[0] == [0, 1, 2, 5, 6, 7, 8, 9]
    lost = 1010 - len(sequence) - len(replies[0])
    assert links[1].a_to_b.down_drops + links[1].b_to_a.down_drops == lost
    assert links[0].b_to_a.packets == arrived == 1010
    assert node.received == links[0].b_to_a.delivered + links[1].b_to_a.delivered
    # All of it again, exactly.
    assert run() == first


def test_an_address_that_many_have(program: Program) -> None:
    network, _, client, _ = two_hosts(program)
    insert(client, "l2", [bytes.fromhex("01005e010203")], "multicast", 1)
    client.multicast_group(1, [(1, 0), (2, 0)])
    flow = stream(network, 10 * MS, "239.1.2.3")
    assert network.run(S) == []
    assert columns(network, ReceivedLog, flow=flow, host="h2")[0] == list(range(10))
    assert columns(network, ReceivedLog, flow=flow)[0] == []
    with pytest.raises(HoldfastError, match="s1"):
        network.snapshot(ReceivedLog, flow=flow, host="s1")


def test_packet_in_packet_out_and_digest(program: Program, tmp_path: Path) -> None:
    network, switch, client, _links = two_hosts(program)
    network.capture("s1", 2, tmp_path / "s1.pcap")
    l2(client, 3, "forward", 510)
    l2(client, 4, "learn")
    digests: list[DigestList] = []
    client.on_digest = digests.append
    (kind,) = client.p4info.digests
    client.enable_digest(kind.name)
    network.send_frame("h1", frame(3))
    network.send_frame("h1", frame(4, src=8))
    seen = []
    while notifications := network.run(S):
        seen += notifications
    assert [(n.kind, n.node) for n in seen] == [("packet_in", "s1"), ("digest", "s1")]
    assert seen[0].data == frame(3)
    client._device.collect_digests(1)
    assert [digest.values for digest in digests] == [[{"src": int.from_bytes(MAC[8], "big"), "type": 0x0800}]]
    switch.packet_out(frame(2, ethertype=0x1234, payload=b"from the controller"))
    notifications = network.run(2 * S)
    assert [(n.kind, n.node, n.data) for n in notifications] == [
        ("host_frame", "h2", frame(2, ethertype=0x1234, payload=b"from the controller"))
    ]
    assert network.run(2 * S) == []
    assert client.counter("arrived", 1)[0] == 2
    ((time_ps, captured),) = _core.read_pcap(tmp_path / "s1.pcap")
    assert (captured, S <= time_ps < 2 * S) == (frame(2, ethertype=0x1234, payload=b"from the controller"), True)
    assert network.port_is_up("s1", 2)
    network.apply(target={"node": "h2"}, up=False)
    assert not network.port_is_up("s1", 2)


def test_a_network_refuses(program: Program) -> None:
    network, switch, _, links = two_hosts(program)
    network.run(S)
    card = {"mac": mac_text(MAC[3]), "address": "10.0.0.3/24"}
    for call, text in (
        (lambda: network.add_switch("s1", program), "s1"),
        (lambda: network.add_switch("s2", program, executor="slow"), "slow"),
        (lambda: network.add_switch("s2", program, cpu_port=600), "cpu_port"),
        (lambda: network.add_host("h3", cards=[]), "cards"),
        (lambda: network.add_host("h3", cards=[{**card, "mac": "02:00"}]), '"02:00" is no address'),
        (lambda: network.add_host("h3", cards=[{**card, "address": "10.0.0/24"}]), '"10.0.0/24" is no address'),
        (lambda: network.add_host("h3", cards=[{**card, "address": "10.0.0.3/33"}]), "prefix_len"),
        (lambda: network.add_host("h3", cards=[card], neighbours={"10.0.0.4": "here"}), '"here" is no address'),
        (lambda: network.add_host("h3", cards=[{**card, "ipv6": "10.0.0.3/24"}]), '"10.0.0.3/24" is no address'),
        (lambda: network.add_link(a="s1", a_port=3, b="nobody", b_port=0, a_to_b={"rate_bps": 1}), "nobody"),
        (lambda: network.add_link(a="s1", a_port=1, b="s1", b_port=4, a_to_b={"rate_bps": 1}), "port 1"),
        (lambda: network.add_link(a="s1", a_port=3, b="s1", b_port=4, a_to_b={"rate_bps": 0}), "rate_bps"),
        (lambda: network.add_link(a="s1", a_port=3, b="s1", b_port=4, a_to_b={"rate_bps": 1, "loss": 1.5}), "loss"),
        (
            lambda: network.add_link(
                a="s1", a_port=3, b="s1", b_port=4, a_to_b={"rate_bps": 1, "jitter": {"distribution": "poisson"}}
            ),
            "poisson",
        ),
        (
            lambda: network.add_link(
                a="s1",
                a_port=3,
                b="s1",
                b_port=4,
                a_to_b={"rate_bps": 1, "jitter": {"distribution": "normal", "mean_ms": 0, "sigma_ms": -1}},
            ),
            "negative",
        ),
        (lambda: network.apply(target={"link": 99}, up=True), "99"),
        (lambda: network.apply(target={"link": links[0]}, up=True, at_ps=1), "passed"),
        (lambda: network.apply(target={"node": "nobody"}, up=True), "nobody"),
        (lambda: network.run(1), "passed"),
        (lambda: network.snapshot(SentLog, flow=5), "5"),
        (lambda: network.snapshot(ReceivedLog, flow=5), "5"),
        (lambda: network.snapshot(DirectionCounters, link=5), "5"),
        (lambda: network.poll(0.0), "start"),
        (lambda: network.poll(-1.0), "timeout_s"),
        (lambda: network.wall_statistics(), "not running"),
        (lambda: switch.process(1, b""), "s1"),
        (lambda: switch.trace(1, b""), "s1"),
    ):
        with pytest.raises(HoldfastError, match=text):
            call()


def test_the_wall_clock(program: Program) -> None:
    network, switch, client, links = two_hosts(program)
    flow = stream(network, 3 * S)
    network.start()
    with pytest.raises(HoldfastError, match="running already"):
        network.start()
    with pytest.raises(HoldfastError, match="stop"):
        network.run(S)
    started = time.monotonic()
    # The control plane works while packets flow.
    client.modify("l2", {"dst": MAC[2]}, "forward", {"port": 2})
    assert len(client.read_table("l2")) == 2
    switch.packet_out(frame(1, ethertype=0x1234, payload=b"live"))
    notifications = network.poll(60)
    assert [(n.kind, n.node, n.data) for n in notifications] == [
        ("host_frame", "h1", frame(1, ethertype=0x1234, payload=b"live"))
    ]
    # Late enough for a machine that is busy with something else meanwhile.
    network.apply(target={"link": links[0]}, up=False, at_ps=2 * S)
    (change,) = network.poll(60)
    assert (change.kind, change.port, change.up, change.time_ps) == ("port_change", 1, False, 2 * S)
    # Other threads run while one polls.
    ticks = []
    poller = threading.Thread(target=lambda: network.poll(0.2))
    poller.start()
    while poller.is_alive():
        ticks.append(network.now_ps)
        time.sleep(0.005)
    assert len(ticks) > 1
    assert ticks == sorted(ticks)
    assert network.wall_statistics().events > 300
    elapsed_ps = (time.monotonic() - started) * S
    assert elapsed_ps / 2 < network.now_ps < elapsed_ps + S
    network.stop()
    network.stop()
    received = columns(network, ReceivedLog, flow=flow)[0]
    # What was on its way when the link failed is lost, and all after it.
    assert received == list(range(len(received)))
    assert 1995 <= len(received) <= 2001
    # Time goes on from there, on either clock.
    assert network.run(network.now_ps + S) == []


def test_a_switch_of_a_running_network_gets_a_new_program(program: Program) -> None:
    network, switch, client, _ = two_hosts(program)
    network.start()
    try:
        switch.set_program(program)
        assert client.read_table("l2") == []
        l2(client, 1, "forward", 1)
        switch.packet_out(frame(1, ethertype=0x1234))
        assert [n.kind for n in network.poll(60)] == ["host_frame"]
        network.apply(target={"node": "s1"}, up=False)
        with pytest.raises(HoldfastError, match="before start"):
            network.add_interface("i1", "eth0")
    finally:
        network.stop()


def test_a_long_run_can_be_interrupted(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "from holdfast._core import Network\n"
        "network = Network()\n"
        "for n in (1, 2):\n"
        "    network.add_host(f'h{n}', cards=[{'mac': f'02:00:00:00:00:0{n}', 'address': f'10.0.0.{n}/24'}],"
        " neighbours={f'10.0.0.{3 - n}': f'02:00:00:00:00:0{3 - n}'})\n"
        "network.add_link(a='h1', a_port=0, b='h2', b_port=0, a_to_b={'rate_bps': 10**9})\n"
        "end = 10**18\n"
        "network.add_udp_stream(source='h1', destination='h2', family='ipv4', packets_per_s=10000, spacing='constant',"
        " payload_bytes=24, start_s=0, stop_s=10**6, source_port=5001, destination_port=5001, log_packets=True)\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    network.run(end)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(2)
        try:
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert out == "interrupted\n"


# ---- The rest ----


def test_captures(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    frames = [(1_000_000_001_000, frame(1)), (1_000_000_002_999, b"")]
    _core.write_pcap(path, frames)
    assert _core.read_pcap(str(path)) == [frames[0], (1_000_000_002_000, b"")]
    # The time of day, as captures on the wall clock have it.
    today = [(1_800_000_000 * 10**12 + 5000, frame(1)), (1_800_000_000 * 10**12 + 6000, frame(2))]
    _core.write_pcap(path, today)
    assert _core.read_pcap(path) == today
    with pytest.raises(OSError, match="32 bits"):
        _core.write_pcap(path, [(2**32 * 10**12, b"")])
    with pytest.raises(HoldfastError, match="beyond"):
        _core.write_pcap(path, [(2**100, b"")])
    with pytest.raises(FileNotFoundError):
        _core.read_pcap(tmp_path / "absent.pcap")
    path.write_bytes(b"not a capture")
    with pytest.raises(HoldfastError, match="pcap"):
        _core.read_pcap(path)
    path.write_bytes(struct.pack("<IHHiIII IIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 113, 0, 0, 1, 1) + b"x")
    with pytest.raises(HoldfastError, match="113"):
        _core.read_pcap(path)


def test_the_probe_tells_about_everything() -> None:
    findings = _core.probe()
    assert {"AF_PACKET", "AF_XDP", "CAP_NET_RAW", "cores", "ip", "iperf3", "perf counters", "ping"} <= findings.keys()
    assert all(detail for _, detail in findings.values())
    assert findings["AF_PACKET"][0] == (_core.interfaces_ready() is None)
