"""The clients have one interface over two transports; the same tests check both."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from device_bench import Bench

from holdfast.p4runtime import Arbitration, Client, GrpcClient, LocalClient, P4RuntimeError, PacketIn, Server
from holdfast.p4runtime.received import DigestList, StreamError

Connect = Callable[..., Client]


@pytest.fixture(params=["local", "grpc"])
def connect(request: pytest.FixtureRequest, bench: Bench) -> Iterator[Connect]:
    """Yield a function that connects a new client to the bench's device, locally or over gRPC."""
    made: list[Client] = []
    server = Server([bench.device], "127.0.0.1:0") if request.param == "grpc" else None
    if server:
        server.start()

    def connect(election_id: int = 1, role: str = "") -> Client:
        if server:
            client: Client = GrpcClient(server.address, election_id=election_id, role=role)
        else:
            client = LocalClient(bench.device, election_id, role)
        made.append(client)
        return client

    yield connect
    for client in made:
        client.close()
    if server:
        server.stop()


@pytest.fixture
def client(connect: Connect, bench: Bench) -> Client:
    client = connect()
    client.set_pipeline(bench.program)
    assert client.poll(1) == Arbitration(True, "OK", 1)
    return client


def test_entries(client: Client) -> None:
    client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "forward", {"port": 1, "dst_addr": "02:00:00:00:00:01"})
    client.insert("BasicIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": ("10.1.0.0", 16)}, "drop", metadata=b"mine")
    first, second = client.read_table("ipv4_lpm")
    assert first.table == "BasicIngress.ipv4_lpm"
    assert first.match == {"hdr.ipv4.dst_addr": (0x0A000000, 8)}
    assert (first.action, first.params) == ("BasicIngress.forward", {"port": 1, "dst_addr": 0x020000000001})
    assert first.counter == (0, 0)
    assert second.metadata == b"mine"
    client.modify("ipv4_lpm", first.match, "to_cpu", {"reason": 5})
    assert client.read_table("ipv4_lpm", first.match)[0].params == {"reason": 5}
    client.delete("ipv4_lpm", second.match)
    client.delete("ipv4_lpm", {"dst_addr": "10.0.0.0/8"})
    assert client.read_table("ipv4_lpm") == []


def test_all_kinds_of_match_read_back(client: Client) -> None:
    match = {
        "ether_type": 0x0800,
        "hdr.ipv4.src_addr": ("10.0.0.1", "255.0.0.255"),
        "total_len": (20, 64),
        "hdr.ipv4.protocol": 6,
    }
    client.insert("acl", match, "drop", priority=10)
    client.insert("acl", {"ether_type": 0x0800, "hdr.ipv4.src_addr": "10.0.0.0/8"}, "to_cpu", {"reason": 1}, priority=9)
    client.insert("acl", {"ether_type": 1, "total_len": (0, 0xFFFF), "hdr.ipv4.src_addr": (0, 0)}, "drop", priority=8)
    first, second, third = client.read_table("acl")
    assert list(first.match.values()) == [0x0800, (0x0A000001, 0xFF0000FF), (20, 64), 6]
    assert second.match["hdr.ipv4.src_addr"] == (0x0A000000, 0xFF000000)
    assert third.match == {"hdr.ethernet.ether_type": 1}
    assert [e.priority for e in (first, second, third)] == [10, 9, 8]
    for entry in (first, second, third):
        client.delete("acl", entry.match, entry.priority)
    assert client.read_table("acl") == []


def test_default_action(client: Client) -> None:
    assert client.read_default("ipv4_lpm").action == "BasicIngress.drop"
    client.set_default("ipv4_lpm", "forward", {"port": 3, "dst_addr": 4})
    assert client.read_default("ipv4_lpm").params == {"port": 3, "dst_addr": 4}
    client.reset_default("ipv4_lpm")
    assert client.read_default("ipv4_lpm").action == "BasicIngress.drop"
    assert client.read_default("learned").is_const


def test_groups_and_sessions(client: Client) -> None:
    client.multicast_group(7, [(1, 1), (2, 1)])
    client.multicast_group(7, [(1, 2)], verb="modify")
    client.clone_session(3, [(510, 0)], packet_length_bytes=64)
    assert client.multicast_groups() == {7: [(1, 2)]}
    assert client.clone_sessions() == {3: [(510, 0)]}
    client.delete_multicast_group(7)
    client.delete_clone_session(3)
    assert client.multicast_groups() == client.clone_sessions() == {}


def test_registers_and_counters(client: Client) -> None:
    client.write_register("last_seen", 3, "10.0.0.1")
    assert client.register("last_seen", 3) == 0x0A000001
    client.write_register("last_seen", None, 1)
    assert client.registers("last_seen") == dict.fromkeys(range(16), 1)
    client.write_register("last_seen", 7, 9)
    assert client.register_cells("last_seen", [7, 2]) == {7: 9, 2: 1}
    assert client.register_cells("last_seen", [7, 2] * 600) == {7: 9, 2: 1}
    assert client.register_cells("last_seen", []) == {}
    client.write_counter("port_packets", 2, packets=5, bytes=6)
    assert client.counter("port_packets", 2) == (5, 6)
    assert client.counters("port_packets")[3] == (0, 0)
    client.insert("ipv4_lpm", {}, "drop")
    client.insert("ipv4_lpm", {"dst_addr": "1.0.0.0/8"}, "drop")
    client.write_direct_counter("ipv4_lpm", {"dst_addr": "1.0.0.0/8"}, packets=1, bytes=2)
    assert client.direct_counter("ipv4_lpm", {"dst_addr": "1.0.0.0/8"}) == (1, 2)
    assert client.direct_counter("ipv4_lpm", {}) == (0, 0)
    with pytest.raises(P4RuntimeError, match="NOT_FOUND"):
        client.direct_counter("ipv4_lpm", {"dst_addr": "2.0.0.0/8"})


def test_batch(client: Client) -> None:
    with client.batch():
        for i in range(20):
            client.insert("ipv4_lpm", {"dst_addr": f"10.{i}.0.0/16"}, "drop")
        assert client.read_table("ipv4_lpm") == []
    assert len(client.read_table("ipv4_lpm")) == 20
    with client.batch():
        pass
    with pytest.raises(ZeroDivisionError), client.batch():
        client.insert("ipv4_lpm", {"dst_addr": "11.0.0.0/8"}, "drop")
        raise ZeroDivisionError
    assert len(client.read_table("ipv4_lpm")) == 20
    with pytest.raises(P4RuntimeError, match="nest"), client.batch(), client.batch():
        pass


def test_errors_name_each_failing_update(client: Client) -> None:
    client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "drop")
    with pytest.raises(P4RuntimeError) as e, client.batch("continue_on_error"):
        client.insert("ipv4_lpm", {"dst_addr": "11.0.0.0/8"}, "drop")
        client.insert("ipv4_lpm", {"dst_addr": "10.0.0.0/8"}, "drop")
        client.delete("acl", {"ether_type": 1}, priority=7)
        client.delete_multicast_group(9)
    assert e.value.code == "UNKNOWN"
    assert [(f.index, f.code) for f in e.value.failures] == [(1, "ALREADY_EXISTS"), (2, "NOT_FOUND"), (3, "NOT_FOUND")]
    text = str(e.value)
    assert "[1] (insert BasicIngress.ipv4_lpm {dst_addr: 10.0.0.0/8}) ALREADY_EXISTS" in text
    assert "[2] (delete BasicIngress.acl {ether_type: 1} priority 7) NOT_FOUND" in text
    assert "[3] (delete multicast group 9)" in text
    assert len(client.read_table("ipv4_lpm")) == 2


def test_a_batch_rolls_back_by_default(client: Client) -> None:
    with pytest.raises(P4RuntimeError) as e, client.batch():
        client.insert("ipv4_lpm", {"dst_addr": "11.0.0.0/8"}, "drop")
        client.delete_multicast_group(9)
    assert [f.code for f in e.value.failures] == ["ABORTED", "NOT_FOUND"]
    assert client.read_table("ipv4_lpm") == []


def test_a_large_failing_batch_keeps_its_details(client: Client) -> None:
    with pytest.raises(P4RuntimeError) as e, client.batch("continue_on_error"):
        for i in range(1, 2001):
            client.delete_multicast_group(i)
    assert len(e.value.failures) == 2000


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c: c.insert("ipv4_lmp", {}, "drop"), "did you mean 'BasicIngress.ipv4_lpm'"),
        (lambda c: c.insert("ipv4_lpm", {}, "forwrd"), "did you mean 'BasicIngress.forward'"),
        (lambda c: c.insert("ipv4_lpm", {}, "learn"), "no action 'learn' of table 'BasicIngress.ipv4_lpm'"),
        (lambda c: c.insert("ipv4_lpm", {"dst": 1}, "drop"), "no match field 'dst'"),
        (lambda c: c.insert("ipv4_lpm", {"dst_addr": "10.0.0.1/8"}, "drop"), "10.0.0.0/8?"),
        (lambda c: c.insert("ipv4_lpm", {}, "forward", {"port": 512, "dst_addr": 0}), "does not fit into 9 bits"),
        (lambda c: c.insert("ipv4_lpm", {}, "forward", {"port": 1}), "parameter 'dst_addr' is missing"),
        (lambda c: c.insert("acl", {"ether_type": 1}, "drop"), "needs a priority"),
        (lambda c: c.insert("learned", {"src_addr": (1, 2)}, "pass"), "no number, address or bytes"),
        (lambda c: c.register("last_sen", 0), "did you mean 'BasicIngress.last_seen'"),
        (lambda c: c.register("last_seen", 99), "OUT_OF_RANGE"),
        (lambda c: c.counter("port_packets", -1), "INVALID_ARGUMENT"),
        (lambda c: c.counter("port_packets", 1 << 70), "64 bits"),
        (lambda c: c.write_register("last_seen", 0, 1 << 32), "does not fit into 32 bits"),
        (lambda c: c.multicast_group(-1, []), "OUT_OF_RANGE"),
        (lambda c: c.packet_out(b"", egres_port=1), "did you mean 'egress_port'"),
        (lambda c: c.packet_out(b"", egress_port=512), "does not fit into 9 bits"),
    ],
)
def test_mistakes_are_explained(client: Client, call: Callable[[Client], object], text: str) -> None:
    with pytest.raises(P4RuntimeError) as e:
        call(client)
    assert text in str(e.value)


def test_packets(client: Client, bench: Bench) -> None:
    client.packet_out(b"data", egress_port=0x103, unused=1)
    bench.device.packet_in(b"\x81\x82data")
    bench.device.packet_in(b"\x00\x00more")
    (first, second) = client.packets_in(0.3)
    assert first == PacketIn(b"data", {"ingress_port": 0x103, "reason": 2})
    assert second.payload == b"more"
    assert bench.packets_out == [b"\x81\x81data"]
    seen: list[PacketIn] = []
    client.on_packet_in = seen.append
    bench.device.packet_in(b"\x00\x00third")
    assert client.poll(0.3) is None
    assert [p.payload for p in seen] == [b"third"]


def test_digests(client: Client, bench: Bench) -> None:
    client.enable_digest("learn_t", ack_timeout_ns=10**15)
    frame = bytes(6) + (0xAA).to_bytes(6, "big") + bytes(50)
    bench.switch.process(3, frame)
    bench.device.collect_digests(7)
    event = client.poll(1)
    assert isinstance(event, DigestList)
    assert (event.digest, event.values, event.timestamp_ns) == ("learn_t", [{"src_addr": 0xAA, "port": 3}], 7)
    client.acknowledge(event)
    assert client.poll(0.2) is None  # no error came back, so the acknowledgement was understood
    bench.switch.process(3, frame)
    bench.device.collect_digests(8)
    assert isinstance(client.poll(1), DigestList)


def test_two_controllers(client: Client, connect: Connect, bench: Bench) -> None:
    backup = connect(election_id=0)
    assert backup.poll(1) == Arbitration(False, "ALREADY_EXISTS", 1)
    with pytest.raises(P4RuntimeError) as e:
        backup.insert("ipv4_lpm", {}, "drop")
    assert e.value.code == "PERMISSION_DENIED"
    with pytest.raises(P4RuntimeError) as e:
        backup.set_pipeline(bench.program)
    assert e.value.code == "PERMISSION_DENIED"
    assert backup.read_table("ipv4_lpm") == []
    backup.packet_out(b"", egress_port=1)
    assert backup.poll(1) == StreamError("PERMISSION_DENIED", "the client is not the primary")
    backup.arbitrate(5)
    assert client.poll(1) == Arbitration(False, "ALREADY_EXISTS", 5)
    assert backup.poll(1) == Arbitration(True, "OK", 5)
    backup.insert("ipv4_lpm", {}, "drop")
    assert not client.is_primary
    backup.close()
    assert client.poll(2) == Arbitration(False, "NOT_FOUND", 5)
    client.arbitrate(6)
    assert client.poll(1) == Arbitration(True, "OK", 6)
    client.delete("ipv4_lpm", {})


def test_duplicate_election_id(client: Client, connect: Connect) -> None:
    with pytest.raises(P4RuntimeError) as e:
        connect(election_id=1)
    assert e.value.code == "INVALID_ARGUMENT"


def test_without_a_pipeline(connect: Connect) -> None:
    client = connect()
    assert client.pipeline_config() is None
    with pytest.raises(P4RuntimeError) as e:
        client.insert("t", {}, "a")
    assert e.value.code == "FAILED_PRECONDITION"


def test_pipeline_actions(connect: Connect, bench: Bench) -> None:
    client = connect()
    client.set_pipeline(bench.program, action="verify")
    assert client.pipeline_config() is None
    client.set_pipeline(bench.program, action="verify_and_save", cookie=9)
    client.insert("ipv4_lpm", {}, "drop")
    client.set_pipeline(action="commit")
    assert len(client.read_table("ipv4_lpm")) == 1
    config = client.pipeline_config()
    assert config is not None
    assert config.cookie.cookie == 9
    client.set_pipeline(bench.program, action="reconcile_and_commit")
    assert len(client.read_table("ipv4_lpm")) == 1
    client.set_pipeline(p4info=bench.program.p4info, artifact=bench.program.artifact())
    assert client.read_table("ipv4_lpm") == []
    with pytest.raises(P4RuntimeError, match="not both"):
        client.set_pipeline(bench.program, p4info=bench.program.p4info)
    assert client.api_version() == "1.5.0"


def test_a_large_election_id(connect: Connect, bench: Bench) -> None:
    client = connect(election_id=(1 << 128) - 1)
    assert client.is_primary
    client.set_pipeline(bench.program)
    with pytest.raises(P4RuntimeError, match="128 bits"):
        client.arbitrate(1 << 128)


def test_the_text_of_a_large_failure_is_short(client: LocalClient) -> None:
    with pytest.raises(P4RuntimeError) as e, client.batch("continue_on_error"):
        for i in range(100):
            client.delete("ipv4_lpm", {"dst_addr": f"10.{i}.0.0/16"})
    assert len(e.value.failures) == 100
    lines = str(e.value).splitlines()
    assert len(lines) == 22
    assert lines[-1].strip() == "... and 80 more"
