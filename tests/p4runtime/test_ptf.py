"""PTF (ptf/entities.py) drives a running server: an independent client in an environment of its own, as test_shell's is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from loop import loop_server
from test_shell import shell_python

HERE = Path(__file__).parent


def ptf_program() -> str:
    """Return the path of ``ptf`` in the environment of :func:`shell_python`; skip the test if it is not installed."""
    ptf = Path(shell_python()).with_name("ptf")
    if not ptf.exists():
        pytest.skip("ptf is not installed (make shell-env)")
    return str(ptf)


@pytest.mark.parametrize("executor", ["interpreter", "jit"])
def test_entities(executor: str, tmp_path: Path) -> None:
    ptf = ptf_program()
    with loop_server(executor) as (server, program):
        (tmp_path / "p4info.txtpb").write_text(program.p4info)
        (tmp_path / "artifact").write_bytes(program.artifact())
        parameters = f"address='{server.address}';p4info='{tmp_path}/p4info.txtpb';artifact='{tmp_path}/artifact'"
        command = [ptf, "--allow-user", "--platform", "dummy", "--disable-vxlan", "--test-dir", str(HERE / "ptf")]
        command += ["--test-params", parameters, "--log-dir", str(tmp_path / "logs"), "--test-case-timeout", "60"]
        outcome = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": "", "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    for name in ("Group", "OneShot", "Multicast", "Register", "Meter", "Digest"):
        assert f"entities.{name}Test ... ok" in outcome.stdout + outcome.stderr
