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

from holdfast import _core, live_control
from holdfast.p4runtime import GrpcClient

ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"
PORT_MACS = {1: bytes.fromhex("020100010001"), 2: bytes.fromhex("020100010002")}
HOST_MACS = {1: bytes.fromhex("020000000001"), 2: bytes.fromhex("020000000002")}


@pytest.fixture
def hosts() -> Iterator[dict[int, tuple[_core.Namespace, str]]]:
    """Two namespaces and the outer ends of their cables, by port."""
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
        [
            sys.executable,
            "-c",
            "from holdfast.cli import main; main()",
            "switch",
            str(ROUTER),
            *interfaces,
            "--grpc",
            "127.0.0.1:0",
        ],
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
    with GrpcClient(address) as client:
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
        packet_in = next(client.packets_in(timeout_s=5))
        assert packet_in.metadata["ingress_port"] == 1
        assert packet_in.payload[30:34] == bytes((192, 0, 2, 7))
    process.send_signal(signal.SIGINT)
    check_clean_end(process, ports=(1, 2))


def check_clean_end(process: subprocess.Popen[str], ports: tuple[int, ...]) -> None:
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 0, stderr
    for port in ports:
        assert re.search(rf"{port}@hf\d+v\d+ +\d+ +\d+ +\d+ +\d+", stdout), stdout
    assert "Traceback" not in stderr
    assert not live_control.socket_path(1).exists()


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from holdfast.cli import main; main()", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=os.environ | {"COLUMNS": "200"}
    )


def test_ports_from_the_command_line(
    hosts: dict[int, tuple[_core.Namespace, str]], switch: tuple[subprocess.Popen[str], str]
) -> None:
    process, _ = switch
    with _core.Namespace("h3") as third:
        outer = third.add_veth("eth0")
        added = holdfast("port", "add", f"3@{outer}", "--io", "af_packet")
        assert added.returncode == 0, added.stderr
        rows = {row["port"]: row for row in json.loads(holdfast("port", "list", "--json").stdout)}
        assert {port: row["interface"] for port, row in rows.items()} == {1: hosts[1][1], 2: hosts[2][1], 3: outer}
        assert [row["io"] for row in rows.values()][2] == "af_packet"
        assert all(row["up"] for row in rows.values())
        third.set_link("eth0", up=False)
        deadline = time.monotonic() + 5
        while "down" not in holdfast("port", "list").stdout:
            assert time.monotonic() < deadline
        for wrong, message in [
            (("add", f"3@{outer}"), "already"),
            (("add", "4@nosuch0"), "nosuch0"),
            (("remove", "9"), "no port 9"),
            (("list", "--device-id", "77"), "device id 77"),
        ]:
            refused = holdfast("port", *wrong)
            assert refused.returncode == 1
            assert message in refused.stderr
            assert "Traceback" not in refused.stderr
        removed = holdfast("port", "remove", "3")
        assert removed.returncode == 0
        assert f"3@{outer}" in removed.stdout
    # Another switch with the same device id would take this one's place.
    second = holdfast("switch", str(ROUTER), "--grpc", "127.0.0.1:0")
    assert second.returncode == 1
    assert "device id 1 is running" in second.stderr
    # What is no request is refused, and does not end the switch.
    for nonsense in (b"x\n", b"[]\n", b'{"verb": "add", "port": "x"}\n', b'{"verb": "dance"}\n'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(live_control.socket_path(1)))
            connection.sendall(nonsense)
            assert "error" in json.loads(connection.recv(4096))
    process.send_signal(signal.SIGTERM)
    check_clean_end(process, ports=(1, 2))


def test_wrong_interface_is_one_message() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from holdfast.cli import main; main()", "switch", str(ROUTER), "-i", "1@nosuch0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert "nosuch0" in result.stderr
    assert "Traceback" not in result.stderr
