"""The service on a loopback socket, through the official stubs alone, and the features of the transport."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from device_bench import Bench, make_bench
from google.rpc import status_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc
from raw import DELETE, INSERT, Raw, request, update

from holdfast.p4runtime import GrpcClient, P4RuntimeError, Server, TlsFiles, serve
from holdfast.p4runtime.arbitration import Session


class Peer:
    """A client of stubs and a queue."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_metadata_size", 1 << 20)])
        self.stub = p4_grpc.P4RuntimeStub(self.channel)
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))

    def arbitrate(self, election_id: int = 1, device_id: int = 1) -> Any:
        message = p4.StreamMessageRequest()
        message.arbitration.device_id = device_id
        message.arbitration.election_id.low = election_id
        self.requests.put(message)
        return next(self.stream).arbitration

    def close(self) -> None:
        self.requests.put(None)
        self.stream.cancel()
        self.channel.close()


@pytest.fixture
def server(bench: Bench) -> Iterator[Server]:
    with Server([bench.device], "127.0.0.1:0") as server:
        yield server


@pytest.fixture
def peer(server: Server) -> Iterator[Peer]:
    peer = Peer(server.address)
    yield peer
    peer.close()


def status_of(error: grpc.RpcError) -> Any:
    details = [v for k, v in error.trailing_metadata() if k == "grpc-status-details-bin"]
    return status_pb2.Status.FromString(details[0]) if details else None


def push(peer: Peer, bench: Bench) -> Raw:
    assert peer.arbitrate().status.code == 0
    message = p4.SetForwardingPipelineConfigRequest(device_id=1, action=3, config=bench.config())
    message.election_id.low = 1
    peer.stub.SetForwardingPipelineConfig(message)
    return Raw(bench.index)


def test_round_trip(peer: Peer, bench: Bench) -> None:
    raw = push(peer, bench)
    peer.stub.Write(request(update(INSERT, table_entry=raw.route())))
    wanted = p4.ReadRequest(device_id=1, entities=[p4.Entity(table_entry=raw.entry("ipv4_lpm"))])
    found = [e.table_entry for r in peer.stub.Read(wanted) for e in r.entities]
    assert found == [raw.route()]
    config = peer.stub.GetForwardingPipelineConfig(p4.GetForwardingPipelineConfigRequest(device_id=1)).config
    assert config == bench.config()
    assert peer.stub.Capabilities(p4.CapabilitiesRequest()).p4runtime_api_version == "1.5.0"
    bench.device.packet_in(b"\0\1data")
    assert next(peer.stream).packet.payload == b"data"
    peer.stub.Write(request(update(DELETE, table_entry=raw.route())))
    assert list(peer.stub.Read(wanted)) == []


def test_error_details_are_one_per_update(peer: Peer, bench: Bench) -> None:
    raw = push(peer, bench)
    updates = [
        update(INSERT, table_entry=raw.route()),
        update(INSERT, table_entry=raw.route()),
        update(INSERT, meter_entry=p4.MeterEntry(meter_id=1)),
    ]
    with pytest.raises(grpc.RpcError) as e:
        peer.stub.Write(request(*updates))
    assert e.value.code() == grpc.StatusCode.UNKNOWN
    status = status_of(e.value)
    assert (status.code, status.message) == (2, e.value.details())
    errors = []
    for detail in status.details:
        error = p4.Error()
        assert detail.Unpack(error)
        errors.append(error)
    assert [error.canonical_code for error in errors] == [0, 6, 3]
    assert errors[0] == p4.Error()
    assert errors[1].space == "holdfast"
    assert errors[1].message


def test_read_errors_come_after_the_entities(peer: Peer, bench: Bench) -> None:
    push(peer, bench)
    entities = [p4.Entity(table_entry=p4.TableEntry()), p4.Entity()]
    responses, found = peer.stub.Read(p4.ReadRequest(device_id=1, entities=entities)), []
    with pytest.raises(grpc.RpcError) as e:
        for response in responses:
            found += response.entities
    assert len(found) == 2
    assert [len(d.value) > 0 for d in status_of(e.value).details] == [False, True]


@pytest.mark.parametrize(
    ("call", "message", "code"),
    [
        ("Write", p4.WriteRequest(device_id=9), "NOT_FOUND"),
        ("Write", p4.WriteRequest(device_id=1), "PERMISSION_DENIED"),
        ("SetForwardingPipelineConfig", p4.SetForwardingPipelineConfigRequest(device_id=9), "NOT_FOUND"),
        ("SetForwardingPipelineConfig", p4.SetForwardingPipelineConfigRequest(device_id=1), "PERMISSION_DENIED"),
        ("GetForwardingPipelineConfig", p4.GetForwardingPipelineConfigRequest(), "NOT_FOUND"),
        ("Capabilities", p4.CapabilitiesRequest(device_id=9), "NOT_FOUND"),
    ],
)
def test_call_errors_have_no_details(peer: Peer, call: str, message: Any, code: str) -> None:
    with pytest.raises(grpc.RpcError) as e:
        getattr(peer.stub, call)(message)
    assert e.value.code().name == code
    assert status_of(e.value) is None


def test_read_before_a_pipeline(peer: Peer) -> None:
    with pytest.raises(grpc.RpcError) as e:
        list(peer.stub.Read(p4.ReadRequest(device_id=1)))
    assert e.value.code().name == "FAILED_PRECONDITION"


def test_stream_ends_with_the_arbitration_error(server: Server, peer: Peer) -> None:
    peer.arbitrate(5)
    for kwargs, code in (({"device_id": 9}, "NOT_FOUND"), ({"election_id": 5}, "INVALID_ARGUMENT")):
        other = Peer(server.address)
        with pytest.raises(grpc.RpcError) as e:
            other.arbitrate(**kwargs)
        assert e.value.code().name == code
        other.close()
    first = Peer(server.address)
    first.requests.put(p4.StreamMessageRequest(packet=p4.PacketOut()))
    with pytest.raises(grpc.RpcError) as e:
        next(first.stream)
    assert e.value.code().name == "FAILED_PRECONDITION"
    first.close()


@pytest.mark.parametrize("how", ["cancel", "half-close", "channel"])
def test_a_broken_stream_is_a_lost_primary(server: Server, peer: Peer, how: str) -> None:
    backup = Peer(server.address)
    peer.arbitrate(5)
    assert backup.arbitrate(1).status.code == 6
    if how == "cancel":
        peer.stream.cancel()
    elif how == "half-close":
        peer.requests.put(None)
    else:
        peer.channel.close()
    update = next(backup.stream).arbitration
    assert (update.status.code, update.election_id.low) == (5, 5)
    backup.close()


def test_a_client_that_is_closed_has_left_its_election_id(
    server: Server, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check this with a device that takes long to close a session."""
    close = bench.device.close

    def late(session: Session) -> None:
        time.sleep(0.1)
        close(session)

    monkeypatch.setattr(bench.device, "close", late)
    for _ in range(3):
        client = GrpcClient(server.address)
        assert client.is_primary
        client.close()


def test_several_devices(bench: Bench) -> None:
    other = make_bench(device_id=2)
    with Server([bench.device, other.device], "127.0.0.1:0") as server:
        clients = [GrpcClient(server.address, device_id=i) for i in (1, 2)]
        for client in clients:
            client.set_pipeline(bench.program)
        clients[1].insert("ipv4_lpm", {}, "drop")
        assert [len(c.read_table("ipv4_lpm")) for c in clients] == [0, 1]
        for client in clients:
            client.close()
    with pytest.raises(P4RuntimeError, match="two devices"):
        Server([bench.device, bench.device], "127.0.0.1:0")


def test_many_writers_at_once(server: Server, bench: Bench) -> None:
    client = GrpcClient(server.address)
    client.set_pipeline(bench.program)
    raw, errors = Raw(bench.index), []

    def work(number: int) -> None:
        peer = p4_grpc.P4RuntimeStub(channel)
        try:
            for i in range(20):
                peer.Write(request(update(INSERT, table_entry=raw.route(bytes([10, number, i, 0]), 24))))
                list(peer.Read(p4.ReadRequest(device_id=1, entities=[p4.Entity(table_entry=p4.TableEntry())])))
        except grpc.RpcError as e:
            errors.append(e)

    with grpc.insecure_channel(server.address) as channel:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    assert len(client.read_table("ipv4_lpm")) == 160
    client.close()


def test_stop_ends_streams_and_frees_the_port(bench: Bench) -> None:
    server = serve([bench.device], "127.0.0.1:0")
    client = GrpcClient(server.address)
    assert client.poll(1)
    server.stop()
    with pytest.raises(P4RuntimeError) as e:
        client.poll(5)
    assert e.value.code == "UNAVAILABLE"
    assert not client.is_primary
    with pytest.raises(P4RuntimeError):
        client.packet_out(b"")
    client.close()
    again = serve([bench.device], server.address)
    again.stop()
    with pytest.raises(P4RuntimeError, match=r"UNAVAILABLE|DEADLINE_EXCEEDED"):
        GrpcClient(server.address, timeout_s=2.0)


def test_a_taken_port_is_reported(bench: Bench) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(P4RuntimeError, match="cannot listen") as e:
            Server([bench.device], f"127.0.0.1:{taken.getsockname()[1]}")
    assert e.value.code == "UNAVAILABLE"


# ---- Plaintext and TLS ----


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:9559", "example.org:9559", ":9559", "9559"])
def test_plaintext_elsewhere_must_be_asked_for(bench: Bench, address: str) -> None:
    with pytest.raises(P4RuntimeError, match="insecure=True"):
        Server([bench.device], address)
    with pytest.raises(P4RuntimeError, match="insecure=True"):
        GrpcClient(address)


def test_plaintext_elsewhere_when_asked_for(bench: Bench) -> None:
    with Server([bench.device], "0.0.0.0:0", insecure=True) as server:
        GrpcClient(f"127.0.0.1:{server.port}", insecure=True).close()


def test_unix_socket(bench: Bench, tmp_path: Path) -> None:
    with Server([bench.device], f"unix:{tmp_path}/p4rt") as server:
        GrpcClient(server.address).close()


def self_signed(directory: Path) -> TlsFiles:
    import shutil
    import subprocess

    if not (openssl := shutil.which("openssl")):
        pytest.skip("openssl, which makes the test's certificate, is not installed")
    certificate, key = directory / "cert.pem", directory / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return TlsFiles(certificate, key)


def test_tls(bench: Bench, tmp_path: Path) -> None:
    files = self_signed(tmp_path)
    with Server([bench.device], "127.0.0.1:0", files) as server:
        credentials = grpc.ssl_channel_credentials(files.certificate.read_bytes())
        client = GrpcClient(server.address, credentials=credentials)
        assert client.is_primary
        client.close()
        with pytest.raises(P4RuntimeError):
            GrpcClient(server.address, timeout_s=2.0)
    with pytest.raises(P4RuntimeError, match="exclude each other"):
        Server([bench.device], "127.0.0.1:0", TlsFiles(files.certificate, files.key, files.certificate), insecure=True)
    with pytest.raises(P4RuntimeError, match="cannot listen"):
        Server([bench.device], "127.0.0.1:0", TlsFiles(tmp_path / "none", tmp_path / "none"))


# ---- Nonsense ----

METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")


@given(st.sampled_from(METHODS), st.binary(max_size=60))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_that_are_no_message(server: Server, method: str, data: bytes) -> None:
    with grpc.insecure_channel(server.address) as channel:
        path = f"/p4.v1.P4Runtime/{method}"
        try:
            if method == "Read":
                list(channel.unary_stream(path)(data, timeout=60))
            else:
                channel.unary_unary(path)(data, timeout=60)
        except grpc.RpcError as e:
            assert e.code().name not in ("DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN")
        assert p4_grpc.P4RuntimeStub(channel).Capabilities(p4.CapabilitiesRequest()).p4runtime_api_version


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xff\xff", "INVALID_ARGUMENT"),
        (b"\x0a\xff", "INVALID_ARGUMENT"),
        (b"", "FAILED_PRECONDITION"),
        (b"\x32\x05hello", "FAILED_PRECONDITION"),
    ],
    ids=["bytes", "truncated", "empty", "unknown field"],
)
def test_bytes_that_are_no_stream_message(server: Server, data: bytes, code: str) -> None:
    with grpc.insecure_channel(server.address) as channel:
        for _ in range(10):
            call = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")(iter([data]), timeout=60)
            with pytest.raises(grpc.RpcError) as e:
                list(call)
            assert e.value.code().name == code
        assert p4_grpc.P4RuntimeStub(channel).Capabilities(p4.CapabilitiesRequest()).p4runtime_api_version
