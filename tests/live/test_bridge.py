"""A bridge in a live network: Linux hosts find each other by ARP and neighbour discovery, and nobody controls anything."""

from __future__ import annotations

from holdfast import Topology
from holdfast.console import Session
from holdfast.live.network import running


def test_hosts_at_two_bridges_reach_each_other() -> None:
    topology = Topology("lan")
    for name in ("lan1", "lan2"):
        topology.add_switch(name, kind="bridge")
    for number in (1, 2, 3):
        topology.add_host(f"h{number}", f"10.0.0.{number}/24", ipv6=f"2001:db8::{number}/64", gateway="none")
        topology.add_link(f"h{number}", "lan1" if number < 3 else "lan2")
    topology.add_link("lan1", "lan2")
    with running(topology, {}) as network, Session(network) as session:
        assert session.do("pingall").ok
        assert "1 received" in session.do("h1 ping -c 1 -W 10 2001:db8::3").text
        assert session.do("iperf h1 h3 1s").values["goodput"] > 1e5
        # Nothing that h1 and h2 say to each other comes to h3 once they are known.
        session.do("h3 sniff 100ms")
        session.do("h1 ping h2")
        assert "10.0.0.2 > 10.0.0.1" not in session.do("h3 sniff 500ms").text
