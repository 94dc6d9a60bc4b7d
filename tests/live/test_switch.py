"""``holdfast switch`` on veth pairs: configured over gRPC, forwarding the kernel's packets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast import _core, interpreter
from holdfast.errors import HoldfastError
from holdfast.live import control
from holdfast.live.switch import LiveSwitch
from holdfast.p4runtime import GrpcClient

ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"
COMMAND = tuple(interpreter.module("holdfast"))
DEVICE_ID = os.getpid()
OWN = ("--grpc", "127.0.0.1:0", "--device-id", str(DEVICE_ID))
"""So that it gets in no way of other switches on this machine."""

PORT_MACS = {1: bytes.fromhex("020100010001"), 2: bytes.fromhex("020100010002")}
HOST_MACS = {1: bytes.fromhex("020000000001"), 2: bytes.fromhex("020000000002")}


@pytest.fixture
def hosts() -> Iterator[dict[int, tuple[_core.Namespace, str]]]:
    """Create two hosts; yield by port the namespace and the name of the outer interface."""
    with ExitStack() as stack:
        result = {}
        for port in (1, 2):
            namespace = stack.enter_context(_core.Namespace(f"h{port}"))
            outer = namespace.add_veth("eth0", mac=HOST_MACS[port])
            namespace.add_address("eth0", f"10.0.{port}.1/24")
            namespace.add_neighbour("eth0", f"10.0.{port}.254", PORT_MACS[port])
            namespace.add_route("0.0.0.0/0", "eth0", via=f"10.0.{port}.254")
            result[port] = (namespace, outer)
        yield result


@pytest.fixture
def switch(hosts: dict[int, tuple[_core.Namespace, str]]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    interfaces = [word for port, (_, outer) in hosts.items() for word in ("-i", f"{port}@{outer}")]
    process = subprocess.Popen(
        [*COMMAND, "switch", str(ROUTER), *interfaces, *OWN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
    if address is None:
        process.kill()
        pytest.fail(process.communicate()[1])
    yield process, address[0]
    process.kill()
    process.wait()


def test_routes_and_packet_in_over_grpc(
    hosts: dict[int, tuple[_core.Namespace, str]], switch: tuple[subprocess.Popen[str], str]
) -> None:
    process, address = switch
    with GrpcClient(address, device_id=DEVICE_ID) as client:
        for port in (1, 2):
            client.insert(
                "RouterIngress.ipv4_lpm",
                {"hdr.ipv4.dst_addr": f"10.0.{port}.0/24"},
                "RouterIngress.forward",
                {"port": port, "src_mac": PORT_MACS[port], "dst_mac": HOST_MACS[port]},
            )
        client.insert("RouterIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": "192.0.2.0/24"}, "RouterIngress.punt", {})
        h1 = hosts[1][0]
        ping = h1.run(["ping", "-n", "-c", "20", "-i", "0.02", "-W", "2", "10.0.2.1"], check=False)
        assert "20 received" in ping.stdout, ping.stdout
        assert "ttl=63" in ping.stdout
        counted = client.direct_counter("RouterIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.2.0/24"})
        assert counted == (20, 20 * 98)
        h1.run(["ping", "-n", "-c", "1", "-W", "1", "192.0.2.7"], check=False)
        packet_in = next(client.packets_in(timeout_s=60))
        assert packet_in.metadata["ingress_port"] == 1
        assert packet_in.payload[30:34] == bytes((192, 0, 2, 7))
    process.send_signal(signal.SIGINT)
    check_clean_end(process, ports=(1, 2))


def check_clean_end(process: subprocess.Popen[str], ports: tuple[int, ...]) -> None:
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    for port in ports:
        assert re.search(rf"{port}@hf\d+v\d+ +\d+ +\d+ +\d+ +\d+", stdout), stdout
    assert "Traceback" not in stderr
    assert not control.socket_path(DEVICE_ID).exists()


@pytest.mark.parametrize(
    ("address", "options", "says"),
    [
        ("127.0.0.1:0", (), "yes P4Runtime at 127.0.0.1:[0-9]+; every process of this machine can write"),
        (
            "0.0.0.0:0",
            ("--insecure",),
            "no P4Runtime at 0.0.0.0:[0-9]+; open: every client that reaches this address can write",
        ),
    ],
)
def test_doctor_says_whether_a_running_switch_is_open(address: str, options: tuple[str, ...], says: str) -> None:
    command = [*COMMAND, "switch", str(ROUTER), "--grpc", address, "--device-id", str(DEVICE_ID), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        while "P4Runtime" not in (line := process.stdout.readline()):
            assert line, "the switch ended"
        report = " ".join(re.sub("[│┃|]", " ", holdfast("doctor").stdout).split())
        assert re.search(f"running switch {DEVICE_ID} is closed {says}", report), report
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert f"running switch {DEVICE_ID}" not in holdfast("doctor").stdout


LEFT_BEHIND = """
import os
from pathlib import Path
from holdfast import _core, interpreter
namespaces = [_core.Namespace(f"left{i}") for i in range(2)]
for namespace in namespaces:
    namespace.add_veth("eth0")
print(*(namespace.name for namespace in namespaces), flush=True)
stats = [file.read_text().rpartition(")") for file in Path("/proc").glob("[0-9]*/stat")]
guards = [int(name.split()[0]) for name, _, rest in stats if int(rest.split()[1]) == os.getpid()]
assert guards
for process in [*guards, os.getpid()]:
    os.kill(process, 9)
"""


def test_a_live_command_removes_what_a_killed_one_left_behind() -> None:
    """Check this also if the process that cleans up was killed, too, and if the killed run had the lower number."""
    with _core.Namespace("mine"):  # so that the number is not the first
        killed = subprocess.run([sys.executable, "-P", "-c", LEFT_BEHIND], capture_output=True, text=True, check=False)
        names = killed.stdout.split()
        assert len(names) == 2, killed.stderr
        folder = Path("/run/netns")
        assert all((folder / name).exists() for name in names)
        process = subprocess.Popen(
            [*COMMAND, "switch", str(ROUTER), *OWN],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            assert not any((folder / name).exists() for name in names)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )


def port(*arguments: str) -> subprocess.CompletedProcess[str]:
    return holdfast("port", *arguments, "--device-id", str(DEVICE_ID))


def test_ports_from_the_command_line(
    hosts: dict[int, tuple[_core.Namespace, str]], switch: tuple[subprocess.Popen[str], str]
) -> None:
    process, _ = switch
    with _core.Namespace("h3") as third:
        outer = third.add_veth("eth0")
        added = port("add", f"3@{outer}", "--io", "af_packet")
        assert added.returncode == 0, added.stderr
        rows = {row["port"]: row for row in json.loads(port("list", "--json").stdout)}
        assert {port: row["interface"] for port, row in rows.items()} == {1: hosts[1][1], 2: hosts[2][1], 3: outer}
        assert [row["io"] for row in rows.values()][2] == "af_packet"
        assert all(row["up"] for row in rows.values())
        third.set_link("eth0", up=False)
        deadline = time.monotonic() + 60
        while "down" not in port("list").stdout:
            assert time.monotonic() < deadline
        for wrong, message in [
            (("add", f"3@{outer}"), "already"),
            (("add", "4@nosuch0"), "nosuch0"),
            (("remove", "9"), "no port 9"),
        ]:
            refused = port(*wrong)
            assert refused.returncode == 1
            assert message in refused.stderr
            assert "Traceback" not in refused.stderr
        absent = holdfast("port", "list", "--device-id", str(DEVICE_ID + 1_000_000_000))
        assert absent.returncode == 1
        assert f"device id {DEVICE_ID + 1_000_000_000}" in absent.stderr
        removed = port("remove", "3")
        assert removed.returncode == 0
        assert f"3@{outer}" in removed.stdout
    # Another switch with the same device id would take this one's place.
    second = holdfast("switch", str(ROUTER), *OWN)
    assert second.returncode == 1
    assert f"device id {DEVICE_ID} is running" in second.stderr
    # What is no request is refused, and does not end the switch.
    for nonsense in (b"x\n", b"[]\n", b'{"verb": "add", "port": "x"}\n', b'{"verb": "dance"}\n'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(control.socket_path(DEVICE_ID)))
            connection.sendall(nonsense)
            assert "error" in json.loads(connection.recv(4096))
    process.send_signal(signal.SIGTERM)
    check_clean_end(process, ports=(1, 2))


def test_an_interface_is_a_port_of_one_switch(
    hosts: dict[int, tuple[_core.Namespace, str]], switch: tuple[subprocess.Popen[str], str]
) -> None:
    process, _ = switch
    outer = hosts[2][1]
    taken = f"interface {outer} is a port of another switch already: process {process.pid} ({sys.executable} -P -m"
    second = ("switch", str(ROUTER), "--grpc", "127.0.0.1:0", "--device-id", str(DEVICE_ID + 1_000_000_000))
    refused = holdfast(*second, "-i", f"5@{outer}")
    assert refused.returncode == 1
    assert taken in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr
    # By another name, too.
    subprocess.run(["ip", "link", "property", "add", "dev", outer, "altname", f"{outer}-again"], check=True)
    refused = holdfast(*second, "-i", f"5@{outer}-again")
    assert f"interface {outer}-again is a port of another switch already: process {process.pid}" in refused.stderr
    # And while the other one runs.
    with LiveSwitch(_core.Program.compile(str(ROUTER))) as live:
        with pytest.raises(HoldfastError, match="is a port of another switch already"):
            live.add_port(5, outer)
        assert live.ports == {}
    again = port("add", f"5@{outer}")
    assert (again.returncode, again.stdout) == (1, "")
    assert "of this switch already" in again.stderr
    # An interface that is given back can be had, and one of a process that died.
    assert port("remove", "2").returncode == 0
    with LiveSwitch(_core.Program.compile(str(ROUTER))) as live:
        live.add_port(5, outer)
        refused = port("add", f"2@{outer}")
        assert f"process {os.getpid()} (" in refused.stderr
    assert port("add", f"2@{outer}").returncode == 0
    process.kill()
    process.wait()
    with LiveSwitch(_core.Program.compile(str(ROUTER))) as live:
        live.add_port(5, outer)
        live.add_port(6, hosts[1][1])


def test_joined_segments_are_explained_when_they_are_dropped(
    hosts: dict[int, tuple[_core.Namespace, str]], switch: tuple[subprocess.Popen[str], str]
) -> None:
    process, _ = switch
    namespace, outer = hosts[1]
    subprocess.run(["ip", "link", "set", outer, "mtu", "60000"], check=True)
    namespace.run(["ip", "link", "set", "eth0", "mtu", "60000"])
    for _ in range(2):
        namespace.run(["ping", "-n", "-c", "2", "-i", "0.01", "-W", "0.1", "-s", "50000", "10.0.2.1"], check=False)
    assert process.stdout is not None
    # The switch still runs.
    hint = process.stdout.readline()
    while hint.endswith(" is up\n"):
        hint = process.stdout.readline()
    assert hint.startswith(f"port 1@{outer}: segments that the sending kernel left joined are dropped; "), hint
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "oversized" in stdout
    assert "ethtool" not in stdout


def test_wrong_interface_is_one_message() -> None:
    result = holdfast("switch", str(ROUTER), "-i", "1@nosuch0", *OWN)
    assert result.returncode == 1
    assert "nosuch0" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr


@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_a_compiled_program_runs(
    hosts: dict[int, tuple[_core.Namespace, str]], interrupt: signal.Signals, tmp_path: Path
) -> None:
    holdfast("compile", str(ROUTER), "-o", str(tmp_path / "x.holdfast"), "--p4info", str(tmp_path / "x.p4info.txtpb"))
    command = [*COMMAND, "switch", str(tmp_path / "x.holdfast"), "-i", f"1@{hosts[1][1]}", *OWN]
    environment = os.environ | {"COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("router: 1 ports, P4Runtime on 127.0.0.1:"), process.communicate()[1]
        address = first.split()[5].rstrip(",")
        with GrpcClient(address, device_id=DEVICE_ID) as client:
            client.insert("RouterIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.1.0/24"}, "RouterIngress.drop", {})
        process.send_signal(interrupt)
        check_clean_end(process, ports=(1,))
    finally:
        process.kill()
        process.wait()


def test_entries_of_a_file_forward_before_a_controller_comes(
    hosts: dict[int, tuple[_core.Namespace, str]], tmp_path: Path
) -> None:
    file = tmp_path / "entries.yaml"
    routes = [
        {
            "match": {"dst_addr": f"10.0.{port}.0/24"},
            "action": "forward",
            "params": {"port": port, "src_mac": PORT_MACS[port].hex(":"), "dst_mac": HOST_MACS[port].hex(":")},
        }
        for port in (1, 2)
    ]
    file.write_text(json.dumps({"tables": {"ipv4_lpm": routes}}))
    interfaces = [word for port, (_, outer) in hosts.items() for word in ("-i", f"{port}@{outer}")]
    process = subprocess.Popen(
        [*COMMAND, "switch", str(ROUTER), "--entries", str(file), *interfaces, *OWN],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        address = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
        assert address is not None
        ping = ["ping", "-c", "3", "-i", "0.2", "-W", "20", "10.0.2.1"]
        assert hosts[1][0].run(ping).returncode == 0
        # A controller takes over, with the lowest election id, too.
        with GrpcClient(address[0], device_id=DEVICE_ID, election_id=1) as client:
            assert len(client.read_table("ipv4_lpm")) == 2
            client.delete("ipv4_lpm", {"dst_addr": "10.0.1.0/24"})
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    file.write_text(json.dumps({"tables": {"ipv4_lpn": routes}}))
    refused = holdfast("switch", str(ROUTER), "--entries", str(file), *OWN)
    assert refused.returncode == 1
    assert "entries.yaml:1: no table 'ipv4_lpn'; did you mean" in refused.stderr
