"""``holdfast switch`` on veth pairs: configured over gRPC, forwarding the kernel's packets."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast import _core
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
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 0, stderr
    assert re.search(r"1@hf\d+v\d+ +\d+ +\d+ +\d+ +\d+", stdout), stdout
    assert "Traceback" not in stderr


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
