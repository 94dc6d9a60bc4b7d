"""ICMP errors of routers in a live network: a Linux host sees the path, hop by hop, with both IP versions."""

from __future__ import annotations

import re

from holdfast import Topology
from holdfast.apps.router import RouterController, compile_router
from holdfast.console import Session
from holdfast.live.network import running


def test_a_host_sees_the_path() -> None:
    topology = Topology("line")
    for name in ("s1", "s2", "s3"):
        topology.add_switch(name)
    for name, at in (("h1", "s1"), ("h2", "s3")):
        topology.add_host(name)
        topology.add_link(name, at, b_port=1)
    topology.add_link("s1", "s2", a_port=2, b_port=2)
    topology.add_link("s2", "s3", a_port=3, b_port=3)
    topology.add_ipv6()
    controller = RouterController(reroute=True, reaction_delay_ms=0, icmp_errors=True)
    host, end = topology.hosts["h1"], topology.hosts["h2"]
    assert end.ipv6 is not None
    expected = {
        str(end.address.ip): [str(host.gateway), "10.255.0.2", "10.255.0.3", str(end.address.ip)],
        str(end.ipv6.ip): ["fdff::1", "fdff::2", "fdff::3", str(end.ipv6.ip)],
    }
    with running(topology, compile_router({"ROUTER_ICMP": "1"}), [controller]) as network:
        for to, path in expected.items():
            hops = []
            for ttl in range(1, 5):
                command = ["ping", "-n", "-c", "1", "-W", "10", "-t", str(ttl), to]
                said = network.hosts["h1"].run(command, check=False).stdout
                found = re.search(r"(?:From|bytes from) ([0-9a-f.:]+?)(?::|) icmp_seq", said)
                hops.append(found[1] if found else said)
            assert hops == path
        with Session(network) as session:
            result = session.do("h1 traceroute h2")
            assert result.ok
            assert [line.split()[1] for line in result.text.splitlines()] == expected[str(end.address.ip)]


def test_a_host_learns_the_mtu_of_a_path() -> None:
    topology = Topology("line")
    for name in ("s1", "s2"):
        topology.add_switch(name)
    for name, at in (("h1", "s1"), ("h2", "s2")):
        topology.add_host(name)
        topology.add_link(name, at, b_port=1)
    topology.add_link("s1", "s2", mtu_bytes=1200)
    topology.add_ipv6()
    controller = RouterController(reroute=True, reaction_delay_ms=0, icmp_errors=True)
    to = topology.hosts["h2"]
    assert to.ipv6 is not None
    with running(topology, compile_router({"ROUTER_MTU": "1"}), [controller]) as network:
        for address in (str(to.address.ip), str(to.ipv6.ip)):
            command = ["ping", "-n", "-c", "2", "-i", "0.5", "-W", "10", "-M", "do", "-s", "1300", address]
            said = network.hosts["h1"].run(command, check=False)
            assert re.search(r"mtu ?= ?1200", said.stdout + said.stderr), said
        with Session(network) as session:
            # Segments of 1,460 bytes with DF become shorter.
            assert session.do("iperf h1 h2 1s").values["goodput"] > 1e6
