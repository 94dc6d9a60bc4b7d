"""``holdfast switch --metrics``: what it shows under traffic is what P4Runtime, the kernel and its clients count."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast import LiveNetwork, Topology, _core, interpreter
from holdfast.live import control, network_metrics
from holdfast.operations import directory, pages
from holdfast.p4runtime import GrpcClient, P4RuntimeError

ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"
COMMAND = tuple(interpreter.module("holdfast"))
DEVICE_ID = os.getpid() + 2_000_000_000
"""So that it gets in no way of other switches on this machine."""

MACS = {1: bytes.fromhex("020100010001"), 2: bytes.fromhex("020100010002")}
PACKETS = 3000

OWN = ("--grpc", "127.0.0.1:0", "--device-id", str(DEVICE_ID))

Samples = dict[tuple[str, ...], float]


class Running:
    """A running ``holdfast switch`` with two ports, which show metrics at ``page``."""

    def __init__(
        self, process: subprocess.Popen[str], namespaces: list[_core.Namespace], interfaces: list[str]
    ) -> None:
        self.process, self.namespaces, self.interfaces = process, namespaces, interfaces
        assert process.stdout is not None
        page = re.search(r"metrics at http://(\S+)/metrics", process.stdout.readline())
        assert page is not None, process.communicate()[1]
        self.page = page[1]
        address = re.search(r"P4Runtime on (\S+),", process.stdout.readline())
        assert address is not None
        self.address = address[1]

    def samples(self) -> Samples:
        """Return the values of a page that is made from now on, by the name of the sample and the values of its labels."""
        time.sleep(pages.FRESH_S)
        with urllib.request.urlopen(f"http://{self.page}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        families = text_string_to_metric_families(text)
        return {
            (sample.name.removeprefix("holdfast_switch_"), *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }


@contextmanager
def running(*options: str, label: str = "m") -> Iterator[Running]:
    with ExitStack() as stack:
        namespaces = [stack.enter_context(_core.Namespace(f"{label}{port}")) for port in (1, 2)]
        interfaces = [namespace.add_veth("eth0") for namespace in namespaces]
        words = [word for port, outer in enumerate(interfaces, 1) for word in ("-i", f"{port}@{outer}")]
        process = subprocess.Popen(
            [*COMMAND, "switch", str(ROUTER), *words, *OWN, "--metrics", "127.0.0.1:0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
        )
        try:
            yield Running(process, namespaces, interfaces)
        finally:
            process.kill()
            process.communicate()


def frame(destination: str, ttl: int = 64) -> bytes:
    """Return an Ethernet frame of 100 bytes with UDP over IPv4 from 10.0.1.1."""
    head = (
        bytes.fromhex("4500005600000000")
        + bytes((ttl, 17, 0, 0))
        + bytes((10, 0, 1, 1))
        + socket.inet_aton(destination)
    )
    total = sum(int.from_bytes(head[at : at + 2], "big") for at in range(0, 20, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + (total ^ 0xFFFF).to_bytes(2, "big") + head[12:]
    udp = bytes.fromhex("1388138800420000") + bytes(58)
    return MACS[1] + bytes.fromhex("020000000001") + b"\x08\x00" + head + udp


def test_it_shows_what_others_count() -> None:
    with running() as switch, GrpcClient(switch.address, device_id=DEVICE_ID) as client:
        for port in (1, 2):
            parameters = {"port": port, "src_mac": MACS[port], "dst_mac": MACS[3 - port]}
            client.insert(
                "RouterIngress.ipv4_lpm",
                {"hdr.ipv4.dst_addr": f"10.0.{port}.0/24"},
                "RouterIngress.forward",
                parameters,
            )
        with pytest.raises(P4RuntimeError):
            client.insert("RouterIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.1.0/24"}, "RouterIngress.drop", {})
        frames = [frame("10.0.2.1"), frame("10.0.2.2"), frame("10.0.9.9")]
        load = switch.namespaces[0].send_load("eth0", frames, duration_s=PACKETS / 20_000, packets_per_s=20_000)
        assert load.sent > 100
        routed = {"hdr.ipv4.dst_addr": "10.0.2.0/24"}
        end_s, counted = time.monotonic() + 60, (0, 0)
        while counted[0] < load.sent // 3 * 2:
            assert time.monotonic() < end_s
            counted = client.direct_counter("RouterIngress.ipv4_lpm", routed)
        found = switch.samples()
        one, two = (("1", switch.interfaces[0]), ("2", switch.interfaces[1]))
        assert found["port_received_packets_total", *one] >= load.sent
        assert found["port_sent_packets_total", *two] == counted[0]
        assert found["port_sent_bytes_total", *two] == counted[1]
        assert found["port_up", *one] == found["port_up", *two] == 1
        # The interface's other end has counted them, too, besides what kernels send on their own.
        arrived = switch.namespaces[1].interface_counters("eth0")
        assert arrived.rx_packets == counted[0]
        not_routed = found["port_received_packets_total", *one] - counted[0]
        assert sum(value for (name, *_), value in found.items() if name == "drops_total") == not_routed
        assert (
            found["table_entries", "RouterIngress.ipv4_lpm"]
            == len(list(client.read_table("RouterIngress.ipv4_lpm")))
            == 2
        )
        assert found["table_size", "RouterIngress.ipv4_lpm"] > 2
        assert found["updates_total", "table_entry", "insert", "OK"] == 2
        assert found["updates_total", "table_entry", "insert", "ALREADY_EXISTS"] == 1
        assert found["write_seconds_count", "table_entry"] == 3
        assert 0 < found["write_seconds_sum", "table_entry"] < 60
        assert found["read_seconds_count", "direct_counter_entry"] >= 1
        assert (found["streams", ""], found["primary", ""]) == (1, 1)
        statistics = {row.port: row for row in control.ask(DEVICE_ID, control.ListPorts(), control.Ports).ports}
        assert statistics[2].tx_packets == counted[0]


def test_clients_that_come_and_go_and_choose_names() -> None:
    """Checks that a role's name, which any client makes up, ends no line, and that who is not the primary is counted."""
    evil = 'x"} 1\nholdfast_switch_evil_total{a="'
    with running() as switch:
        with (
            GrpcClient(switch.address, device_id=DEVICE_ID) as client,
            GrpcClient(switch.address, device_id=DEVICE_ID, role=evil),
        ):
            found = switch.samples()
            assert found["streams", evil] == found["primary", evil] == 1
            assert not any("evil_total" in name for name, *_ in found)
            with GrpcClient(switch.address, device_id=DEVICE_ID, election_id=99):
                with pytest.raises(P4RuntimeError, match="not the primary"):
                    client.insert(
                        "RouterIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": "10.0.1.0/24"}, "RouterIngress.drop", {}
                    )
                found = switch.samples()
                assert found["streams", ""] == 2
                assert found["requests_refused_total", "write", "PERMISSION_DENIED"] == 1
        found = switch.samples()
        assert ("streams", evil) not in found
        assert (found["streams", ""], found["primary", ""]) == (0, 0)


def test_events_tell_of_ports() -> None:
    with running() as switch, urllib.request.urlopen(f"http://{switch.page}/events", timeout=60) as stream:
        assert stream.readline() == b"event: snapshot\n"
        about = json.loads(stream.readline().removeprefix(b"data: "))["about"]
        assert about == {"switch": DEVICE_ID, "program": "router", "p4runtime": switch.address, "access": "machine"}
        switch.namespaces[0].set_link("eth0", up=False)
        kinds: dict[bytes, object] = {}
        end_s = time.monotonic() + 60
        while not {b"port", b"change"} <= kinds.keys():
            assert time.monotonic() < end_s
            line = stream.readline()
            if line.startswith(b"event: "):
                kind = line.removeprefix(b"event: ").strip()
                data = json.loads(stream.readline().removeprefix(b"data: "))
                if kind == b"port" or "holdfast_switch_port_up" in data.get("metrics", {}):
                    kinds[kind] = data
        assert kinds[b"port"] == {"port": 1, "up": False}
        changed = kinds[b"change"]["metrics"]["holdfast_switch_port_up"]["values"]  # type: ignore[index]
        assert changed == {"1": {switch.interfaces[0]: 0}}


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.3])
def test_a_killed_switch_is_replaced(after_s: float) -> None:
    """Checks that kill -9, while clients ask at both doors, leaves one socket file, which the next switch replaces."""
    path = control.socket_path(DEVICE_ID)
    with running() as switch, ExitStack() as stack:
        host, _, port = switch.page.rpartition(":")
        for _ in range(5):
            stack.enter_context(socket.create_connection((host, int(port)), 60)).send(b"GET /events HTTP/1.1\r\n\r\n")
            stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))
        time.sleep(after_s)
        switch.process.send_signal(signal.SIGKILL)
        switch.process.wait(60)
        assert path.exists()
        assert DEVICE_ID not in [each.device_id for each in control.running_switches()]
        with running("--metrics", switch.page, label="again") as again:
            assert again.page == switch.page
            assert control.ask(DEVICE_ID, control.AskServer(), control.RunningServer).address == again.address
            again.process.send_signal(signal.SIGTERM)
            assert again.process.wait(60) == 0
    assert not path.exists()
    assert not list(directory.DIRECTORY.glob(f"*{DEVICE_ID}*"))


def test_a_place_that_is_taken_ends_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*COMMAND, "switch", str(ROUTER), *OWN]
        result = subprocess.run(
            [*command, "--metrics", f"127.0.0.1:{port}"], capture_output=True, text=True, timeout=60, check=False
        )
    assert result.returncode == 1
    assert f"cannot serve metrics at 127.0.0.1:{port}" in result.stderr
    assert "Traceback" not in result.stderr
    assert not control.socket_path(DEVICE_ID).exists()


def test_a_live_network_shows_links_and_nodes() -> None:
    topology = Topology("two")
    for name in ("s1", "s2"):
        topology.add_switch(name)
    topology.add_link("s1", "s2")
    program = _core.Program.compile(str(ROUTER))
    with LiveNetwork(topology, program, interfaces={}) as network, network_metrics.pages(network) as shown:

        def values() -> dict[str, dict[str, object]]:
            time.sleep(pages.FRESH_S)
            with urllib.request.urlopen(f"http://{shown.authority}/snapshot", timeout=60) as answer:
                metrics = json.load(answer)["metrics"]
            return {name: of["values"] for name, of in metrics.items()}

        link = network.topology.links[0]
        before = values()
        assert before["holdfast_network_port_up"]["s1"] == {str(link.a_port): 1}
        network.set_link("s1-s2", up=False)
        end_s = time.monotonic() + 60
        while values()["holdfast_network_port_up"]["s1"] != {str(link.a_port): 0}:
            assert time.monotonic() < end_s
        counters = network.link_counters("s1-s2")
        packets = values()["holdfast_network_link_packets_total"]
        assert packets["s1"] == {str(link.a_port): {"s2": counters.a_to_b.packets}}
        assert before.keys() == values().keys()
