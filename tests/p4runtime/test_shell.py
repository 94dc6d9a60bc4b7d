"""An independent client: p4runtime-shell pushes the compiled pipeline, writes, reads, and sees a packet.

It runs in an environment of its own: ``HOLDFAST_P4RT_SHELL_PYTHON``, or ``.venv-shell`` from ``make shell-env``.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from device_bench import Bench
from loop import loop_server
from raw import MODIFY, Raw, update, write

from holdfast.p4runtime import Server

HERE = Path(__file__).parent


def shell_python() -> str:
    """Return the path of the shell's Python interpreter; skip the test if there is none."""
    named = os.environ.get("HOLDFAST_P4RT_SHELL_PYTHON")
    python = Path(named) if named else HERE.parents[1] / ".venv-shell/bin/python"
    if not python.exists():
        pytest.skip("p4runtime-shell is not installed (make shell-env, or set HOLDFAST_P4RT_SHELL_PYTHON)")
    return str(python)


def packet() -> bytes:
    """Return an IPv4 packet that matches no route, so that the default action decides."""
    ethernet = bytes.fromhex("020000000001 020000000002 0800")
    ipv4 = bytes.fromhex("45000014 00000000 40fd0000 0a090001 0a090002")
    return ethernet + ipv4 + bytes(26)


def provoke_packet_in(bench: Bench) -> bytes:
    """Make the switch send a packet to the controller; return the packet without its packet-in header."""
    raw = Raw(bench.index)
    default = raw.entry("ipv4_lpm", action=raw.action("to_cpu", b"\x05"), is_default_action=True)
    write(bench.device, update(MODIFY, table_entry=default))
    for port, data in bench.switch.process(2, packet()):
        if port == 510:
            assert bench.device.packet_in(data)
    return packet()


@pytest.fixture
def server(bench: Bench) -> Iterator[Server]:
    with Server([bench.device], "127.0.0.1:0") as server:
        yield server


def run_session(script: str, server: Server, program: Any, tmp_path: Path, listen: Callable[[str], None]) -> Any:
    """Run a script in the shell against a server; return its steps. ``listen`` is called with the name of each step."""
    (tmp_path / "p4info.txtpb").write_text(program.p4info)
    (tmp_path / "artifact").write_bytes(program.artifact())
    arguments = [server.address, str(tmp_path / "p4info.txtpb"), str(tmp_path / "artifact")]
    session = subprocess.Popen(
        [shell_python(), str(HERE / script), *arguments],
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "errors").open("w"),
        text=True,
        env={**os.environ, "PYTHONPATH": "", "HOME": str(tmp_path)},
    )
    steps: dict[str, Any] = {}
    watchdog = threading.Timer(60, session.kill)
    watchdog.start()
    assert session.stdout
    try:
        for line in session.stdout:
            step = json.loads(line)
            name = step.pop("step")
            steps[name] = step
            listen(name)
        assert session.wait(30) == 0, (tmp_path / "errors").read_text()
    finally:
        watchdog.cancel()
        session.kill()
        session.wait()
    return steps


def test_a_session(bench: Bench, server: Server, tmp_path: Path) -> None:
    expected = b""

    def listen(step: str) -> None:
        nonlocal expected
        if step == "listening":
            expected = provoke_packet_in(bench)

    steps = run_session("shell_session.py", server, bench.program, tmp_path, listen)
    assert steps["connected"] == {"version": "1.5.0"}
    route = {"value": "0a010000", "prefix_len": 16, "port": "03"}
    assert steps["inserted"] == {"routes": [route]}
    ((index, code, message),) = steps["again"]["errors"]
    assert (index, code) == (0, 6)
    assert message
    assert steps["modified"] == {"routes": [{**route, "port": "04"}]}
    assert sorted(steps["group"]["replicas"]) == [[1, 1], [2, 1]]
    assert steps["counter"] == {"packets": [5]}
    assert steps["packets"] == {"packets": [{"payload": expected.hex(), "metadata": {"1": "02", "2": "05"}}]}
    assert steps["deleted"] == {"routes": []}
    assert bench.packets_out == [b"\x01\x80hello"]


def test_groups_meters_registers_and_digests(tmp_path: Path) -> None:
    with loop_server("jit") as (server, program):
        steps = run_session("shell_entities.py", server, program, tmp_path, lambda step: None)
    assert steps["group"] == {"members": [[1, 1, ""], [2, 2, ""], [3, 1, "03"]], "entries": [1]}
    assert steps["spread"] == {"ports": [1, 2, 3]}
    assert steps["one-shot"] == {"ports": [7, 8]}
    assert steps["meter"] == {"rates": [[1, 1, 1, 2]], "colours": [0, 1, 2]}
    assert steps["register"] == {"values": ["43", "07"]}
    assert steps["digest"] == {"learned": [[21, 4], [22, 4]]}
