"""Hosts as people have them, in Linux namespaces: given addresses, several cards, VLANs, commands, and namespaces of others."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import _core
from holdfast.errors import LiveError
from holdfast.live.hosts import LiveHost, hosts
from holdfast.live.tests.learning_switch import Learning, compiled, four_in_one_subnet, lan
from holdfast.network import LiveNetwork
from holdfast.topology import Topology


def received(host: LiveHost, address: str, count: int = 20, within_s: int = 60) -> int:
    """Return how many of ``count`` pings were answered. For those that are late, ping waits, and sends more meanwhile."""
    words = ["ping", "-n", "-i", "0.02", "-c", str(count), "-w", str(within_s), address]
    said = host.run(words, check=False)
    assert not said.stderr or "unreachable" in said.stderr, said.stderr
    answered = {int(number) for number in re.findall(r"bytes from .* icmp_seq=(\d+) ", said.stdout)}
    return len(answered & set(range(1, count + 1)))


def shown(host: LiveHost, *words: str) -> list[dict[str, object]]:
    """Return what ``ip`` says as JSON."""
    found: list[dict[str, object]] = json.loads(host.run(["ip", "-json", *words]).stdout)
    return found


def test_a_learning_switch_answers_all_pings() -> None:
    t = four_in_one_subnet()
    with hosts(t) as (running, interfaces), LiveNetwork(t, compiled(), [Learning()], interfaces=interfaces):
        assert received(running["h1"], "10.0.0.3") == 20
        assert received(running["h4"], "10.0.0.2") == 20
        assert received(running["h1"], "2001:db8::2") == 20
        # It was asked for, and nobody was told before.
        assert {each["dst"] for each in shown(running["h4"], "neighbour")} == {"10.0.0.2"}


@pytest.fixture(scope="module")
def vlans() -> bool:
    """Return True if the kernel has VLANs; a test without them checks that it says so."""
    name = f"vlan-{os.getpid()}-{secrets.token_hex(3)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-netns", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
        words = ["ip", "-netns", name, "link", "add", "link", "v0", "name", "v0.5", "type", "vlan", "id", "5"]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_two_network_cards_and_given_addresses(tmp_path: Path) -> None:
    t = Topology()
    for name in ("s1", "s2"):
        t.add_switch(name)
    two = {"address": "10.1.0.2/24", "mac": "08:00:00:00:00:22"}
    t.add_host("h-1", "10.0.0.1/24", mac="08:00:00:00:01:11", gateway="10.0.0.2", interfaces=[two])
    t.add_host("h2", "10.0.0.2/24", gateway="none")
    t.add_host("h3", "10.1.0.3/24", gateway="none")
    for host, switch in (("h-1", "s1"), ("h-1", "s2"), ("h2", "s1"), ("h3", "s2")):
        t.add_link(host, switch)
    with hosts(t) as (running, interfaces), LiveNetwork(t, compiled(), [Learning()], interfaces=interfaces) as network:
        h1 = running["h-1"]
        network.capture("h-1", 1, tmp_path / "second.pcap")
        assert {link["ifname"]: link["address"] for link in shown(h1, "link") if link["ifname"] != "lo"} == {
            "eth0": "08:00:00:00:01:11",
            "eth1": "08:00:00:00:00:22",
        }
        assert [route.get("gateway") for route in shown(h1, "route", "show", "default")] == ["10.0.0.2"]
        assert received(h1, "10.0.0.2") == 20
        assert received(h1, "10.1.0.3") == 20
        assert received(running["h2"], "10.1.0.3", 2, 2) == 0
        assert network.link_counters("h-1-s2").a_to_b.packets >= 20
    assert len(_core.read_pcap(tmp_path / "second.pcap")) >= 40


def test_short_prefixes() -> None:
    t = Topology()
    t.add_switch("s1")
    t.add_host("p1", "10.2.0.0/31")
    t.add_host("p2", "10.2.0.1/31", mac=t.port_mac("s1", 9))
    t.add_host("a", "10.3.0.1/32", gateway="10.3.0.9", neighbours={"10.3.0.9": "08:00:00:00:03:09"})
    t.add_host("b", "10.4.0.1/32", mac="08:00:00:00:03:09", gateway="10.3.0.1")
    for name in t.hosts:
        t.add_link(name, "s1")
    with hosts(t) as (running, interfaces), LiveNetwork(t, compiled(), [Learning()], interfaces=interfaces):
        assert received(running["p1"], "10.2.0.1") == 20
        # Both gateways are outside of the hosts' subnets, and one is asked for.
        assert received(running["a"], "10.4.0.1") == 20


def test_vlans(vlans: bool) -> None:
    t = lan(
        {"address": "10.0.0.1/24", "gateway": "none", "vlan": 5},
        {"address": "10.0.0.2/24", "gateway": "none", "vlan": 5},
        {"address": "10.0.0.3/24", "gateway": "none", "vlan": 6},
    )
    if not vlans:
        with pytest.raises(LiveError, match="host 'h1': this kernel has no VLANs"), hosts(t):
            pytest.fail("it should not start")
        pytest.skip("this kernel has no VLANs")
    learning = Learning()
    with hosts(t) as (running, interfaces), LiveNetwork(t, compiled(), [learning], interfaces=interfaces):
        assert running["h1"].cards == {0: "eth0.5"}
        assert received(running["h1"], "10.0.0.2") == 20
        assert received(running["h1"], "10.0.0.3", 2, 2) == 0
        assert {vlan for _, _, vlan in learning.stations} == {5}


def test_commands_run_at_the_start() -> None:
    t = lan({"commands": ["ip route add 10.77.0.0/16 via 10.0.1.254", "sleep 1000 &"]})
    with hosts(t) as (running, _):
        assert shown(running["h1"], "route", "show", "10.77.0.0/16")[0]["gateway"] == "10.0.1.254"
        assert "sleep 1000" in running["h1"].run("ps -o args= $(ip netns pids $(ip netns identify $$))").stdout
    t = lan({"commands": ["ip route add 10.77.0.0/16 via 192.0.2.1"]})
    with (
        pytest.raises(LiveError, match=r"host 'h1': 'ip route add .*' failed with exit code 2: .*[Nn]exthop"),
        hosts(t),
    ):
        pytest.fail("it should not start")


def test_a_command_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.live.hosts.COMMAND_S", 1.0)
    mark = f"{secrets.randbelow(10**6) + 10**6}"
    begin = time.monotonic()
    with pytest.raises(LiveError, match=rf"'sleep {mark}' did not end within 1 s; .* ends with '&'"):  # noqa: SIM117
        with hosts(lan({"commands": [f"sleep {mark}"]})):
            pytest.fail("it should not start")
    assert time.monotonic() - begin < 30
    assert mark not in output("ps", "-eo", "args")


@pytest.fixture
def container() -> Iterator[str]:
    """Yield the name of a namespace of somebody else, with an interface, an address and a process of its own."""
    name = f"container-{os.getpid()}-{secrets.token_hex(3)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for words in ("link add eth0 type bridge", "address add 172.31.0.1/24 dev eth0", "link set eth0 up"):
            subprocess.run(["ip", "-netns", name, *words.split()], check=True)
        with subprocess.Popen(["ip", "netns", "exec", name, "sleep", "1000"]) as own:
            try:
                yield name
                assert own.poll() is None, "it is not ours to end"
            finally:
                own.kill()
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def output(*words: str) -> str:
    """Return what a command prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def state(name: str) -> list[str]:
    """Return what there is in a namespace."""
    asked = ("link", "-4 address", "-4 route", "neighbour")
    return [re.sub(r" qlen \d+", "", output("ip", "-netns", name, *words.split())) for words in asked]


def test_a_namespace_that_exists_already_keeps_what_it_has(container: str) -> None:
    before = state(container)
    pid = subprocess.run(["ip", "netns", "pids", container], capture_output=True, text=True, check=True).stdout.split()[
        0
    ]
    for namespace in (container, f"/run/netns/{container}", f"pid:{pid}"):
        t = lan(
            {"address": "10.0.0.1/24", "namespace": namespace, "commands": ["setsid sleep 4321 &"]},
            {"address": "10.0.0.2/24", "gateway": "none"},
        )
        with hosts(t) as (running, interfaces), LiveNetwork(t, compiled(), [Learning()], interfaces=interfaces):
            assert running["h1"].cards == {0: "eth1"}  # eth0 was taken
            assert received(running["h1"], "10.0.0.2") == 20
            assert state(container) != before
            # Its own process lives in it, and can be reached from it.
            assert received(running["h2"], "10.0.0.1", 3) == 3
        assert state(container) == before
        assert "sleep 4321" not in output("ps", "-eo", "args")


def test_a_namespace_that_is_not_there_is_named() -> None:
    for namespace, why in (
        ("nowhere-at-all", "no network namespace 'nowhere-at-all': .*: No such file"),
        ("pid:4194303", "no network namespace 'pid:4194303': /proc/4194303/ns/net: No such file"),
        ("/etc/passwd", "'/etc/passwd' is no network namespace: .*Invalid argument"),
    ):
        with pytest.raises(LiveError, match=f"host 'h1': {why}"), hosts(lan({"namespace": namespace})):
            pytest.fail("it should not start")


def test_switches_are_served_at_their_own_addresses() -> None:
    import socket

    from holdfast.p4runtime.client import GrpcClient

    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    t = Topology()
    t.add_switch("s1", device_id=7, grpc=address, cpu_port=300)
    t.add_switch("s2", device_id=7)
    with LiveNetwork(t, compiled(), interfaces={}) as network:
        assert network.devices["s1"].switch.cpu_port == 300
        for server in (address, network.p4runtime_address):
            with GrpcClient(server, device_id=7, election_id=9) as client:
                assert client.is_primary
                client.multicast_group(1, [(1, 1)])
        assert network.clients["s1"].multicast_groups() == network.clients["s2"].multicast_groups() == {1: [(1, 1)]}
