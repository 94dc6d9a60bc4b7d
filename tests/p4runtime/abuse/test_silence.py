"""Clients that open what they do not use keep nobody out, beside a steady stream and a primary that writes."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from abuse import soak
from abuse.steady import Steady, steady
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc

from holdfast.p4runtime import GrpcClient, P4RuntimeError, limits
from holdfast.p4runtime.server import _Backlog, _Stream, _Streams


@pytest.fixture
def switch() -> Iterator[Steady]:
    with steady() as found:
        yield found


@contextmanager
def silent_streams(address: str, number: int) -> Iterator[list[Any]]:
    """Open ``number`` streams that send nothing, a hundred per connection, and yield them."""
    over = threading.Event()

    def says_nothing() -> Iterator[p4.StreamMessageRequest]:
        over.wait()
        yield from ()

    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(address, options=options) for _ in range(-(-number // 100))]
    calls = [p4_grpc.P4RuntimeStub(channels[at // 100]).StreamChannel(says_nothing()) for at in range(number)]
    try:
        yield calls
    finally:
        over.set()
        for channel in channels:
            channel.close()


@pytest.mark.parametrize("number", [48, 200])
def test_silent_streams_keep_no_controller_out(switch: Steady, number: int) -> None:
    """Opens silent streams, of which 48 kept controllers out as long as they were opened anew every ten seconds."""
    with silent_streams(switch.server.address, number) as calls:
        # Less than the time after which a silent stream ends anyway.
        deadline = time.monotonic() + limits.STREAM_HANDSHAKE_S - 2
        while sum(not call.done() for call in calls) > limits.MAX_SILENT_STREAMS and time.monotonic() < deadline:
            time.sleep(0.02)
        left = sum(not call.done() for call in calls)
        for election_id in range(2, 6):
            with (
                switch.within(2),
                GrpcClient(switch.server.address, election_id=election_id, timeout_s=30) as client,
            ):
                assert client.is_primary
        assert 0 < left <= limits.MAX_SILENT_STREAMS
        ended = [call.code().name for call in calls if call.done()]
        assert set(ended) == {"RESOURCE_EXHAUSTED"}


def test_streams_that_speak_have_their_own_places(switch: Steady) -> None:
    """Checks that all places of such streams can be taken; a further stream is told so, and takes one that is left."""
    free = limits.MAX_STREAMS - 1  # one is the primary's that writes throughout
    address = switch.server.address
    per_role = limits.MAX_STREAMS_PER_ROLE
    clients = [GrpcClient(address, role=f"r{at // per_role}", election_id=at + 1) for at in range(free)]
    try:
        with pytest.raises(P4RuntimeError, match=f"RESOURCE_EXHAUSTED: the server takes {limits.MAX_STREAMS} streams"):
            GrpcClient(address, role="late")
        clients.pop().close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                clients.append(GrpcClient(address, role="late"))
                break
            except P4RuntimeError:
                time.sleep(0.05)
        assert clients[-1].is_primary
    finally:
        for client in clients:
            client.close()


def test_the_client_with_most_silent_streams_makes_room() -> None:
    """Checks that another client's is not the victim of many, and that many that speak leave others their share."""
    streams, backlog = _Streams(), _Backlog()

    def new(client: str) -> Any:
        stream = _Stream(backlog)
        streams.admit(stream, client)
        return SimpleNamespace(stream=stream, ended=lambda: not stream._items.empty())

    honest = new("honest")
    flood = [new("flood") for _ in range(1000)]
    assert not honest.ended()
    assert sum(not each.ended() for each in flood) == limits.MAX_SILENT_STREAMS - 1
    assert not any(each.ended() for each in flood[-limits.MAX_SILENT_STREAMS + 1 :]), "the newest stay"
    streams.speaks(honest.stream)
    for each in flood:
        streams.leave(each.stream)
    for _ in range(limits.MAX_STREAMS_PER_CLIENT):
        streams.speaks(new("flood").stream)
    with pytest.raises(P4RuntimeError, match=f"{limits.MAX_STREAMS_PER_CLIENT} streams of one client"):
        streams.speaks(new("flood").stream)
    for at in range(limits.MAX_STREAMS - limits.MAX_STREAMS_PER_CLIENT - 1):
        streams.speaks(new(f"other {at}").stream)
    with pytest.raises(P4RuntimeError, match=f"the server takes {limits.MAX_STREAMS} streams"):
        streams.speaks(new("late").stream)


def test_a_connection_that_says_nothing_is_closed(switch: Steady) -> None:
    """Checks that it is closed after the handshake's time; it was kept for two minutes."""
    host, _, port = switch.server.address.rpartition(":")
    with GrpcClient(switch.server.address) as client, socket.create_connection((host, int(port))) as silent:
        silent.settimeout(limits.CONNECTION_HANDSHAKE_S + 60)
        begin = time.monotonic()
        while silent.recv(1 << 16):
            pass  # the server's settings, and its farewell
        took_s = time.monotonic() - begin
        assert took_s >= limits.CONNECTION_HANDSHAKE_S - 0.5
        assert client.is_primary, "one that has spoken stays"


def test_silent_connections_keep_nobody_out_for_long() -> None:
    """Takes all descriptors that the server may have: 22,000 kept a client out for as long as it tried."""
    with soak.server("steady.p4") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        host, _, port = address.rpartition(":")
        used = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + 200, used + 200))
        flood = [socket.create_connection((host, int(port))) for _ in range(600)]
        try:
            begin = time.monotonic()
            while True:
                try:
                    with GrpcClient(address, timeout_s=2) as client:
                        assert client.is_primary
                        break
                except P4RuntimeError:
                    assert time.monotonic() - begin < 8 * limits.CONNECTION_HANDSHAKE_S
        finally:
            for each in flood:
                each.close()
