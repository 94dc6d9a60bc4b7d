"""BMv2's commands on a network of veth pairs: a switch without a program, its captures and log, its CLI, two namespaces."""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import _core, interpreter
from holdfast.bmv2 import shims
from holdfast.errors import LiveError
from holdfast.live import control
from holdfast.p4runtime import GrpcClient

COMMAND = interpreter.module("holdfast")
REFLECTOR = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
struct headers { ethernet_t ethernet; }
struct metadata {}
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition accept; }
}
control C(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    register<bit<32>>(4) seen;
    action forward(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    table ports { key = { s.ingress_port: exact; } actions = { forward; drop; } default_action = drop; }
    apply { ports.apply(); seen.write(1, (bit<32>)s.packet_length); }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.ethernet); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
FRAME = bytes.fromhex("020000000002020000000001") + b"\x88\xb5" + bytes(46)


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """Return a directory of BMv2's commands, and the compiled program ``reflector.json`` in the one above."""
    directory = tmp_path / "bin"
    shims.write(directory)
    (tmp_path / "reflector.p4").write_text(REFLECTOR)
    line = [directory / "p4c", "-o", tmp_path, "--p4runtime-files", tmp_path / "p4info.txt", tmp_path / "reflector.p4"]
    subprocess.run(line, check=True)
    return directory


@pytest.fixture
def ports() -> Iterator[tuple[_core.Namespace, list[str]]]:
    """Yield a namespace with the cards eth0 and eth1, and the names of their outer ends."""
    with _core.Namespace("dropin") as inside:
        yield inside, [inside.add_veth(name) for name in ("eth0", "eth1")]


@contextmanager
def running(
    command: list[str | Path], where: Path, within: list[str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a switch; yield its process and the address of its P4Runtime server, and kill it."""
    process = subprocess.Popen(
        [*(within or []), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=where,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"P4Runtime on (\S+),", line):
                yield process, found[1]
                break
        else:
            pytest.fail("".join(said))
    finally:
        process.kill()
        process.communicate()


def until(seen: Path, what: bytes) -> bytes:
    """Return a file's content as soon as it has ``what``."""
    end_s = time.monotonic() + 60
    while what not in (content := seen.read_bytes()):
        assert time.monotonic() < end_s, content
        time.sleep(0.05)
    return content


def wrapped(artifact: bytes) -> bytes:
    """Return the program as ``P4DeviceConfig.device_data``, as p4runtime_lib of p4lang's tutorials sends it."""
    size = bytes((len(artifact) & 127 | 128, len(artifact) >> 7)) if len(artifact) < 1 << 14 else b""
    assert size
    return b"\x08\x01\x1a" + size + artifact


def thrift_register(port: int, name: bytes, index: int) -> int:
    """Return a cell of a register that BMv2's Thrift interface answers."""
    method = b"bm_register_read"
    call = b"\x80\1\0\1" + struct.pack(">i", 9 + len(method)) + b"standard:" + method + bytes(4)
    call += b"\x08\0\1" + bytes(4) + b"\x0b\0\2" + struct.pack(">i", len(name)) + name
    call += b"\x08\0\3" + struct.pack(">i", index) + b"\0"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(call)
        answer = connection.recv(16 + len(method) + 8, socket.MSG_WAITALL)
    assert answer[8 : 8 + len(method)] == method
    return int.from_bytes(answer[-9:-1], "big")


def test_a_switch_without_a_program_gets_one(
    commands: Path, ports: tuple[_core.Namespace, list[str]], tmp_path: Path
) -> None:
    """Check drops before the pipeline, packets behind it, the log, the captures after kill -9, and commands beside a primary."""
    inside, (left, right) = ports
    thrift = str(20_000 + os.getpid() % 20_000)
    options = ["--no-p4", "--pcap", ".", "--log-file", "log", "--dump-packet-data", "20", "--thrift-port", thrift]
    command = [commands / "simple_switch_grpc", "-i", f"1@{left}", "-i", f"2@{right}", *options]
    target = ["--device-id", str(os.getpid()), "--", "--grpc-server-addr", "127.0.0.1:0", "--cpu-port", "255"]

    def cli(lines: str) -> subprocess.CompletedProcess[str]:
        words = [commands / "simple_switch_CLI", "--thrift-port", thrift]
        return subprocess.run(words, input=lines, capture_output=True, text=True, check=False)

    with running([*command, *target], tmp_path) as (process, address):
        assert Path(f"/proc/{process.pid}/comm").read_text() == "simple_switch_g\n"
        inside.send_load("eth0", [FRAME], duration_s=0.1, packets_per_s=30)
        until(tmp_path / "log.txt", b"no_pipeline.p4")
        assert "no forwarding pipeline config" in cli("show_tables\n").stdout
        with GrpcClient(address, os.getpid()) as client:
            artifact = (tmp_path / "reflector.json").read_bytes()
            client.set_pipeline(p4info=(tmp_path / "p4info.txt").read_text(), artifact=wrapped(artifact))
            said = cli("table_add ports forward 1 => 2\nregister_read seen 1\nshow_ports\n")
            assert said.returncode == 0, said
            assert "handle 0" in said.stdout
            assert f"1: {left}, up" in said.stdout
            assert client.is_primary
            assert [entry.params for entry in client.read_table("ports")] == [{"port": 2}]
            inside.send_load("eth0", [FRAME], duration_s=0.1, packets_per_s=30)
            log = until(tmp_path / "log.txt", b"sent 60 bytes at port 2")
            assert b"table I.ports (s.ingress_port=0x001): hit" in log
            assert b"bytes at port 2: 0200000000020200000000018" in log
            assert "seen[1]= 60" in cli("register_read seen 1\n").stdout
            assert cli("register_read nothing\n").returncode == 1
            assert thrift_register(int(thrift), b"seen", 1) == 60
    came = [frame for _, frame in _core.read_pcap(tmp_path / f"{left}_in.pcap")]
    left_by = [frame for _, frame in _core.read_pcap(tmp_path / f"{right}_out.pcap")]
    assert came.count(FRAME) == 2 * left_by.count(FRAME) > 0, "killed, and nothing is missing"
    assert _core.read_pcap(tmp_path / f"{right}_in.pcap") == []


def test_namespaces_have_switches_of_their_own(tmp_path: Path) -> None:
    """Check one device id in two namespaces, which one is asked, and that none is when it is not known which is meant."""
    device_id = str(os.getpid())
    options = ["--device-id", device_id, "--grpc", "127.0.0.1:9559"]
    with _core.Namespace("one") as one, _core.Namespace("two") as two:
        for each, name in ((one, "left"), (two, "right")):
            each.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-end"])
            each.run(["ip", "link", "set", name, "up"])
        port_list = [*COMMAND, "port", "list", "--device-id", device_id]

        def switch(namespace: _core.Namespace, name: str) -> list[str | Path]:
            return [*namespace.exec_prefix, *COMMAND, "switch", "-i", f"1@{name}", *options]

        with running(switch(one, "left"), tmp_path) as _:
            # The only one there is answers from everywhere.
            assert "1@left" in subprocess.run(port_list, capture_output=True, text=True, check=True).stdout
            assert "1@left" in two.run(port_list).stdout
            with running(switch(two, "right"), tmp_path) as _:
                assert "1@left" in one.run(port_list).stdout
                assert "1@right" in two.run(port_list).stdout
                outside = subprocess.run(port_list, capture_output=True, text=True, check=False)
                assert outside.returncode == 1
                for name in (one.name, two.name):
                    assert f"network namespace {name}" in outside.stderr
                assert "ip netns exec NAME" in outside.stderr
                again = one.run([*COMMAND, "switch", *options], check=False)
                assert again.returncode == 1
                with pytest.raises(LiveError, match="network namespace hf"):
                    control.ask(int(device_id), control.AskServer(), control.RunningServer)
        assert [each for each in control.running_switches() if each.device_id == int(device_id)] == []


def test_a_disk_without_room_ends_the_record_and_nothing_else(ports: tuple[_core.Namespace, list[str]]) -> None:
    """Check that a log that cannot be written is told once, and that packets pass."""
    inside, (left, right) = ports
    options = ["--device-id", str(os.getpid()), "--grpc", "127.0.0.1:0", "--log", "/dev/full"]
    with running([*COMMAND, "switch", "-i", f"1@{left}", "-i", f"2@{right}", *options], Path("/")) as (process, _):
        inside.send_load("eth0", [FRAME], duration_s=0.2, packets_per_s=50)
        assert process.stdout is not None
        for line in process.stdout:
            if "warning: log of switch: No space left on device" in line:
                break
        inside.send_load("eth0", [FRAME], duration_s=0.1, packets_per_s=30)
        rows = control.ask(os.getpid(), control.ListPorts(), control.Ports).ports
        assert rows[0].rx_packets > 0
        assert process.poll() is None


def test_what_is_no_place_is_refused_before_the_start(tmp_path: Path) -> None:
    for option, value, says in (("--pcap", "absent", "there is no directory"), ("--log", "absent/log", "No such file")):
        line = [
            *COMMAND,
            "switch",
            option,
            str(tmp_path / value),
            "--device-id",
            str(os.getpid()),
            "--grpc",
            "127.0.0.1:0",
        ]
        outcome = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert outcome.returncode == 1
        assert says in outcome.stderr
        assert "Traceback" not in outcome.stderr
