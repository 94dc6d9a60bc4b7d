"""Rights of client certificates, and no new pipeline from a role that a client invented.

What needs a switch has a steady stream beside it, and a primary that writes (see ``steady``).
"""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from abuse.steady import Steady, steady
from device_bench import make_bench
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc as p4_grpc
from test_grpc import self_signed

from holdfast.errors import ScenarioError
from holdfast.p4runtime import GrpcClient, P4RuntimeError, Server, limits, rights, rights_file
from holdfast.p4runtime.errors import UpdateFailure, from_status, to_status
from holdfast.p4runtime.server import TlsFiles


def test_tls_alone_does_not_open_an_address_to_everybody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = self_signed(tmp_path)
    device = make_bench().device
    with pytest.raises(P4RuntimeError, match=r"whoever reaches 0\.0\.0\.0:0 could write"):
        Server([device], "0.0.0.0:0", files)
    Server([device], "0.0.0.0:0", TlsFiles(files.certificate, files.key, files.certificate)).stop()
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        Server([device], "0.0.0.0:0", files, insecure=True).stop()
    assert "whoever reaches 0.0.0.0:0 can write" in caplog.text


def test_a_role_of_its_own_does_not_replace_the_pipeline() -> None:
    with steady() as switch:
        device = switch.device
        request = p4.SetForwardingPipelineConfigRequest(device_id=1, role="mine", action=request_action())
        request.election_id.low = 1
        assert device.owner.running is not None
        request.config.CopyFrom(device.owner.running.config)
        session = device.open(lambda _: None)
        arbitration = p4.StreamMessageRequest()
        arbitration.arbitration.device_id = 1
        arbitration.arbitration.role.name = "mine"
        arbitration.arbitration.election_id.low = 1
        device.handle(session, arbitration)
        with pytest.raises(P4RuntimeError, match="PERMISSION_DENIED: role 'mine' may not set the pipeline"):
            device.set_forwarding_pipeline_config(request)
        switch.writer.may_be_refused = True
        device._pipeline_roles = frozenset({"mine"})
        device.set_forwarding_pipeline_config(request)


def request_action() -> int:
    return int(p4.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT)


def test_a_default_client_reads_the_error_of_a_large_batch() -> None:
    """Check that error details fit the client's limit of metadata, beyond which the call would end with another error."""
    write = p4.WriteRequest(device_id=1, updates=[p4.Update(type=p4.Update.INSERT)] * 1000)
    write.election_id.low = 1
    with steady() as switch, GrpcClient(switch.server.address) as client:
        for _ in range(20):
            with grpc.insecure_channel(switch.server.address) as channel, pytest.raises(grpc.RpcError) as raised:
                p4_grpc.P4RuntimeStub(channel).Write(write)
            assert raised.value.code().name == "UNKNOWN"
            assert "1000 of 1000 elements of the write failed; details of the first" in raised.value.details()
            with pytest.raises(P4RuntimeError) as all_of_them:
                client._call_write(write.SerializeToString())
            assert [failure.index for failure in all_of_them.value.failures] == list(range(1000))


@pytest.mark.parametrize("size", [1, 50, 100, 1000, 100_000])
def test_details_fit_and_keep_their_positions(size: int) -> None:
    failures = [UpdateFailure(i, "NOT_FOUND", "there is no such entry") for i in range(0, size, 3)]
    status = to_status(P4RuntimeError("UNKNOWN", "failed", failures, size), limits.ERROR_DETAILS_BYTES)
    assert status.ByteSize() <= limits.ERROR_DETAILS_BYTES
    kept = from_status(status).failures
    assert [f.index for f in kept] == [f.index for f in failures][: len(kept)]
    assert len(kept) == len(failures) or f"first {len(status.details)} " in status.message
    assert kept


class Authority:
    """Signs certificates, in a folder."""

    def __init__(self, folder: Path) -> None:
        if not (openssl := shutil.which("openssl")):
            pytest.skip("openssl, which makes the test's certificates, is not installed")
        self._openssl, self._folder = openssl, folder
        self.certificate = folder / "ca.pem"
        self._run("req", "-x509", *_KEY, "-subj", "/CN=authority", "-keyout", "ca-key.pem", "-out", "ca.pem")

    def _run(self, *command: str) -> None:
        subprocess.run([self._openssl, *command], cwd=self._folder, check=True, capture_output=True)

    def sign(self, name: str, alternatives: str = "DNS:localhost,IP:127.0.0.1") -> TlsFiles:
        """Create a certificate with this common name, and its key; return the paths."""
        names = ("-subj", f"/CN={name}", "-addext", f"subjectAltName={alternatives}")
        self._run("req", *_KEY, *names, "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")
        authority = ("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-copy_extensions", "copy")
        self._run("x509", "-req", "-in", f"{name}.csr", *authority, "-out", f"{name}.pem")
        return TlsFiles(self._folder / f"{name}.pem", self._folder / f"{name}-key.pem", self.certificate)

    def credentials(self, name: str) -> grpc.ChannelCredentials:
        """Return the gRPC credentials of a client that has the certificate ``name``."""
        files = [self._folder / file for file in ("ca.pem", f"{name}-key.pem", f"{name}.pem")]
        return grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

# The last one is the primary's that writes beside.
RIGHTS = """
clients:
  - {certificate: controller, read: true, roles: [""], pipeline: true}
  - {certificate: "spiffe://lab/monitor", read: true}
  - {certificate: tenant, roles: [mine], devices: [1]}
  - {certificate: elsewhere, read: true, roles: [""], pipeline: true, devices: [2]}
  - {certificate: timed, read: true, roles: ["", timed]}
"""


@contextmanager
def guarded(folder: Path, text: str | None = RIGHTS) -> Iterator[tuple[Steady, Authority]]:
    """Run a switch whose clients need certificates; yield it and the authority that signs them."""
    authority = Authority(folder)
    (folder / "rights.yaml").write_text(text or "")
    files = authority.sign("server")
    authority.sign("timed")
    granted = rights_file.read(folder / "rights.yaml") if text else None
    files = TlsFiles(files.certificate, files.key, authority.certificate, granted)
    with steady(tls=files, credentials=authority.credentials("timed")) as switch:
        yield switch, authority


def refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except grpc.RpcError as e:
        return str(e.code().name)
    except P4RuntimeError as e:
        return e.code
    return "OK"


def test_each_certificate_has_the_rights_of_its_file(tmp_path: Path) -> None:
    with guarded(tmp_path) as (switch, authority):
        server, device = switch.server, switch.device
        authority.sign("controller")
        authority.sign("watcher", "URI:spiffe://lab/monitor")
        authority.sign("tenant")
        authority.sign("elsewhere")
        authority.sign("nobody")
        found = {}
        with GrpcClient(server.address, credentials=authority.credentials("controller")) as controller:
            switch.writer.may_be_refused = True
            controller.set_pipeline(device.switch.program)
            assert device.owner.running is not None
            config = device.owner.running.config
            for name in ("controller", "watcher", "tenant", "elsewhere", "nobody", "server"):
                with grpc.secure_channel(server.address, authority.credentials(name)) as channel:
                    found[name] = answers(p4_grpc.P4RuntimeStub(channel), config)
    no, unknown = "PERMISSION_DENIED", "UNAUTHENTICATED"
    assert found == {
        "controller": ["OK", "OK", "OK", "OK", "OK", no],
        "watcher": ["OK", "OK", no, no, no, no],
        "tenant": ["OK", no, no, no, no, "OK"],
        "elsewhere": ["OK", no, no, no, no, no],
        "nobody": [no] * 6,
        "server": [unknown] * 6,
    }


def answers(stub: p4_grpc.P4RuntimeStub, config: p4.ForwardingPipelineConfig) -> list[str]:
    """Return the answer to each kind of call: its status code.

    Among them are a write, and streams of the default role and of another one.
    """
    election = p4.Uint128(low=1)
    pipeline = p4.SetForwardingPipelineConfigRequest(
        device_id=1, election_id=election, action=request_action(), config=config
    )
    return [
        refusal(lambda: stub.Capabilities(p4.CapabilitiesRequest())),
        refusal(lambda: list(stub.Read(p4.ReadRequest(device_id=1)))),
        refusal(lambda: stub.Write(p4.WriteRequest(device_id=1, election_id=election))),
        refusal(lambda: stub.SetForwardingPipelineConfig(pipeline)),
        first_answer(stub, role=""),
        first_answer(stub, role="mine"),
    ]


def first_answer(stub: p4_grpc.P4RuntimeStub, role: str) -> str:
    """Return the status code of the first answer to a new backup stream of a role."""
    message = p4.StreamMessageRequest()
    message.arbitration.device_id = 1
    if role:
        message.arbitration.role.name = role
    return refusal(lambda: next(stub.StreamChannel(iter([message]))))


def test_without_a_file_all_certificates_but_the_servers_own_have_all_rights(tmp_path: Path) -> None:
    with guarded(tmp_path, None) as (switch, authority):
        address = switch.server.address
        none = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
        with pytest.raises(P4RuntimeError):
            GrpcClient(address, credentials=none, timeout_s=2.0)
        authority.sign("anyone")
        with GrpcClient(address, credentials=authority.credentials("anyone")) as client:
            assert client.is_primary
        servers = authority.credentials("server")
        assert refusal(lambda: GrpcClient(address, credentials=servers)) == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("clients: [{read: true}]", "clients.0.certificate"),
        ("clients: [{certificate: a, write: true}]", "clients.0.write"),
        ("clients: [{certificate: a, read: maybe}]", "clients.0.read"),
        ("clients: [{certificate: a, roles: x}]", "clients.0.roles"),
        ("clients: {", ":1: not YAML"),
        (
            "clients: []\nclients: [{certificate: a, pipeline: true}]",
            ":2: 'clients' is declared twice (first in line 1)",
        ),
        ("clients: [{certificate: a, read: false, read: true}]", "'read' is declared twice"),
        ("", "clients"),
    ],
)
def test_a_file_of_rights_that_is_wrong(tmp_path: Path, text: str, mistake: str) -> None:
    file = tmp_path / "rights.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as raised:
        rights_file.read(file)
    assert str(raised.value).startswith(str(file))
    assert mistake in str(raised.value)


def test_a_file_of_rights_has_an_end(tmp_path: Path) -> None:
    file = tmp_path / "rights.yaml"
    file.write_text("clients:\n" + "- {certificate: a}\n" * 100_000)
    with pytest.raises(ScenarioError, match=r"rights\.yaml: longer than 1 MiB"):
        rights_file.read(file)


def test_rights_need_certificates(tmp_path: Path) -> None:
    files = self_signed(tmp_path)
    given = rights.Rights(())
    with pytest.raises(P4RuntimeError, match="need a client_ca"):
        Server([make_bench().device], "127.0.0.1:0", TlsFiles(files.certificate, files.key, None, given))
