"""docs/SECURITY.md is true."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from holdfast import _core
from holdfast.p4runtime import Device, GrpcClient, P4RuntimeError, Server, limits, rights_file
from holdfast.p4runtime.server import TlsFiles

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/SECURITY.md").read_text(encoding="utf-8")


def test_the_limits_are_those_of_the_server() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([\d,.]+) \|", TEXT, re.MULTILINE)
    said = {name: float(value.replace(",", "")) for name, value in rows}
    assert said == {name: value for name, value in vars(limits).items() if name.isupper()}


def test_the_file_of_rights_is_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "rights.yaml").write_text(text, encoding="utf-8")
    controller, monitor, tenant = rights_file.read(tmp_path / "rights.yaml").clients
    assert (controller.roles, controller.pipeline, controller.devices) == (("",), True, None)
    assert (monitor.read, monitor.roles, monitor.pipeline) == (True, (), False)
    assert (tenant.certificate, tenant.devices) == ("tenant-7", (1,))


def test_certificates_made_so_are_taken_and_others_refused(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the test's certificates, is not installed")
    (script,) = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    files = {path.name: path.read_bytes() for path in tmp_path.glob("*.pem")}
    program = _core.Program.compile(str(ROOT / "tests/p4runtime/basic.p4"))
    device = Device(1, _core.Switch(program))
    tls = TlsFiles(tmp_path / "server.pem", tmp_path / "server-key.pem", tmp_path / "ca.pem")
    with Server([device], "0.0.0.0:0", tls) as server:
        address = f"localhost:{server.port}"
        known = grpc.ssl_channel_credentials(files["ca.pem"], files["client-key.pem"], files["client.pem"])
        with GrpcClient(address, credentials=known) as client:
            assert client.is_primary
        with pytest.raises(P4RuntimeError):
            GrpcClient(address, credentials=grpc.ssl_channel_credentials(files["ca.pem"]), timeout_s=2.0)


def test_two_crates_have_unsafe_code() -> None:
    sources = [path for path in ROOT.glob("crates/*/**/*.rs") if "target" not in path.parts]
    assert len(sources) > 300
    unsafe = re.compile(r"\bunsafe\b")
    # `unsafe` in a line of comment is a word, and `unsafe_code` is a lint.
    code = {path: re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE) for path in sources}
    assert {path.relative_to(ROOT).parts[1] for path, text in code.items() if unsafe.search(text)} == {"jit", "ports"}
