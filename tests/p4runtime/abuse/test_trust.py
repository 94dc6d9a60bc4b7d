"""Who may do what: client certificates on public addresses, and no new pipeline from a role that a client made up."""

from __future__ import annotations

import logging
from pathlib import Path

import grpc
import pytest
from conftest import make_bench
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc
from test_grpc import self_signed

from holdfast.p4runtime import GrpcClient, P4RuntimeError, Server, limits
from holdfast.p4runtime.errors import UpdateFailure, fitting_status, from_status
from holdfast.p4runtime.server import TlsFiles


def test_tls_alone_does_not_open_an_address_to_everybody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = self_signed(tmp_path)
    device = make_bench("fake").device
    with pytest.raises(P4RuntimeError, match=r"whoever reaches 0\.0\.0\.0:0 could write"):
        Server([device], "0.0.0.0:0", files)
    Server([device], "0.0.0.0:0", TlsFiles(files.certificate, files.key, files.certificate)).stop()
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        Server([device], "0.0.0.0:0", files, insecure=True).stop()
    assert "whoever reaches 0.0.0.0:0 can write" in caplog.text


def test_a_role_of_its_own_does_not_replace_the_pipeline() -> None:
    bench = make_bench("fake")
    bench.primary()
    request = p4.SetForwardingPipelineConfigRequest(device_id=1, role="mine", action=request_action())
    request.election_id.low = 1
    assert bench.device._running is not None
    request.config.CopyFrom(bench.device._running.config)
    session = bench.device.open(lambda _: None)
    arbitration = p4.StreamMessageRequest()
    arbitration.arbitration.device_id = 1
    arbitration.arbitration.role.name = "mine"
    arbitration.arbitration.election_id.low = 1
    bench.device.handle(session, arbitration)
    with pytest.raises(P4RuntimeError, match="PERMISSION_DENIED: role 'mine' may not set the pipeline"):
        bench.device.set_forwarding_pipeline_config(request)
    bench.device._pipeline_roles = frozenset({"mine"})
    bench.device.set_forwarding_pipeline_config(request)


def request_action() -> int:
    return int(p4.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT)


def test_a_default_client_reads_the_error_of_a_large_batch() -> None:
    """Details beyond its metadata limit would end the call with another error."""
    bench = make_bench("fake")
    updates = [p4.Update(type=p4.Update.INSERT)] * 1000
    with Server([bench.device], "127.0.0.1:0") as server, GrpcClient(server.address) as client:
        client.set_pipeline(bench.program)
        write = p4.WriteRequest(device_id=1, updates=updates)
        write.election_id.low = 1
        with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
            p4_grpc.P4RuntimeStub(channel).Write(write)
        assert raised.value.code().name == "UNKNOWN"
        assert "1000 of 1000 elements of the write failed; details of the first" in raised.value.details()
        with pytest.raises(P4RuntimeError) as all_of_them:
            client._call_write(write)
    assert [failure.index for failure in all_of_them.value.failures] == list(range(1000))


@pytest.mark.parametrize("size", [1, 50, 100, 1000, 100_000])
def test_details_fit_and_keep_their_positions(size: int) -> None:
    failures = [UpdateFailure(i, "NOT_FOUND", "there is no such entry") for i in range(0, size, 3)]
    error, status = fitting_status(P4RuntimeError("UNKNOWN", "failed", failures, size), limits.ERROR_DETAILS_BYTES)
    assert status.ByteSize() <= limits.ERROR_DETAILS_BYTES
    assert status.message == error.message
    kept = from_status(status).failures
    assert [f.index for f in kept] == [f.index for f in failures][: len(kept)]
    assert len(kept) == len(failures) or f"first {len(status.details)} " in error.message
    assert kept
