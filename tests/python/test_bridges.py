"""Bridges: they learn, flood, forget and need no controller; what they are refused; and the formats that have them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from holdfast import Controller, HoldfastError, SimulatedNetwork, Topology, TopologyError
from holdfast._core import Program, Switch
from holdfast.apps.router import RouterController, compile_router
from holdfast.bridges import GROUP, program
from holdfast.console import Session
from holdfast.errors import ConsoleError, NetworkError
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.topologies import load

S = 1_000_000_000_000
AGE_S = 300


def lan(hosts: int, bridges: int = 1) -> Topology:
    """Return bridges in a line, and hosts at them in turn, all of one subnet."""
    topology = Topology("lan")
    names = [f"lan{number}" for number in range(1, bridges + 1)]
    for name in names:
        topology.add_switch(name, kind="bridge")
    for a, b in pairwise(names):
        topology.add_link(a, b, delay_ms=0.1)
    for number in range(hosts):
        topology.add_host(f"h{number + 1}", f"10.0.0.{number + 1}/24")
        topology.add_link(f"h{number + 1}", names[number % bridges], delay_ms=0.1)
    return topology


class Bench:
    """One bridge with four ports."""

    def __init__(self) -> None:
        self.switch = Switch(program(), executor="interpreter")
        client = LocalClient(Device(1, self.switch))
        client.set_pipeline(program())
        client.multicast_group(GROUP, [(port, 1) for port in range(1, 5)])

    def send(self, port: int, source: str, destination: str, time_s: float = 1) -> set[int]:
        frame = bytes(Ether(src=source, dst=destination, type=0x88B5) / Raw(b"payload"))
        left = self.switch.process(port, frame, round(time_s * S))
        assert all(each == frame for _, each in left), "frames pass as they are"
        assert len({port for port, _ in left}) == len(left)
        return {port for port, _ in left}


A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


def test_it_learns_floods_and_filters() -> None:
    bench = Bench()
    assert bench.send(1, A, B) == {2, 3, 4}, "nobody knows B"
    assert bench.send(2, B, A) == {1}
    assert bench.send(1, A, B) == {2}
    assert bench.send(2, C, B) == set(), "both are at port 2"
    assert bench.send(1, A, "ff:ff:ff:ff:ff:ff") == {2, 3, 4}
    assert bench.send(1, A, "01:00:5e:00:00:05") == {2, 3, 4}
    assert bench.send(3, B, A) == {1}, "B has moved"
    assert bench.send(1, A, B) == {3}
    for last in range(16):
        assert bench.send(1, A, f"01:80:c2:00:00:{last:02x}") == set()
    assert bench.send(1, A, "01:80:c2:00:00:10") == {2, 3, 4}


def test_an_address_is_forgotten() -> None:
    bench = Bench()
    bench.send(2, B, A, 0)
    assert bench.send(1, A, B, AGE_S - 1) == {2}
    assert bench.send(1, A, B, AGE_S + 1) == {2, 3, 4}
    bench.send(2, B, A, AGE_S + 2)
    assert bench.send(1, A, B, AGE_S + 3) == {2}


def test_what_nobody_said_is_not_known() -> None:
    bench = Bench()
    assert bench.send(1, A, "00:00:00:00:00:00", 0) == {2, 3, 4}
    assert bench.send(1, "ff:ff:ff:ff:ff:ff", C, 0) == {2, 3, 4}, "a group is nobody's address"
    assert bench.send(2, B, "ff:ff:ff:ff:ff:ff", 0) == {1, 3, 4}


def test_random_stations_against_a_model() -> None:
    """Check that a frame to a station that was heard goes to its port alone, or is flooded if a hash is shared."""
    draw = random.Random(7)
    bench, places = Bench(), dict[str, int]()
    stations = [f"02:00:00:00:{draw.randrange(256):02x}:{draw.randrange(256):02x}" for _ in range(200)]
    alone = 0
    for _ in range(3000):
        source, to = draw.sample(stations, 2)
        port = places.get(source, draw.randrange(1, 5)) if draw.random() < 0.95 else draw.randrange(1, 5)
        left = bench.send(port, source, to)
        places[source] = port
        everywhere = {1, 2, 3, 4} - {port}
        if to not in places:
            assert left == everywhere
        else:
            assert left in ({places[to]} - {port}, everywhere)
            alone += left != everywhere
    assert alone > 2000


@pytest.mark.parametrize("bridges", [1, 2, 3])
def test_hosts_reach_each_other_without_anything_else(bridges: int) -> None:
    network = SimulatedNetwork(lan(5, bridges), {}, seed=1)
    with Session(network) as session:
        assert session.do("pingall").ok
        assert session.do("iperf h1 h2 1s").values["goodput"] > 1e8
        assert "bridge" in session.do("nodes").text
        assert session.do("switch lan1 tables").values["entries"] == 0
        assert "sent" in session.do("switch lan1 trace h1 ping h2").text
        with pytest.raises(ConsoleError, match="lan1 is a bridge, and mechanisms"):
            session.do("mechanism reroute")
        with pytest.raises(ConsoleError, match="lan1 is a bridge, which has a program"):
            session.do("reload x.p4 lan1")


HUB = Path(__file__).parents[2] / "examples/hub"


class Ports(Controller):
    """Floods at the switches that it is given, and remembers which they are."""

    def __init__(self) -> None:
        super().__init__(reaction_delay_ms=1)
        self.heard: list[tuple[str, int]] = []

    def on_start(self) -> None:
        for name, client in self.clients.items():
            client.multicast_group(1, [(port, 1) for port in self.topology.ports(name)])

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        self.heard.append((switch, port))


def test_controllers_have_no_client_of_a_bridge() -> None:
    """Check a bridge between two switches with a program: only these are the controller's."""
    topology = lan(2)
    topology.add_switch("s1")
    topology.add_link("s1", "lan1", delay_ms=0.1)
    topology.add_host("h3", "10.0.0.3/24")
    topology.add_link("h3", "s1", delay_ms=0.1)
    controller = Ports()
    network = SimulatedNetwork(topology, Program.compile(str(HUB / "hub.p4")), [controller], seed=1)
    assert list(controller.clients) == ["s1"]
    with Session(network) as session:
        assert session.do("pingall").ok
        session.do("link s1-lan1 down")
        session.do("link h1-lan1 down")
        assert session.do("h2 ping h3").values["lost"] == 3
        assert controller.heard == [("s1", 1)]
        session.do("link s1-lan1 up")
        assert session.do("h2 ping h3").ok
        session.do(f"reload {HUB / 'hub.p4'}")
        assert session.do("h2 ping h3").ok
    before = network.programs["lan1"]
    network.replace_control(Program.compile(str(HUB / "hub.p4")), [Ports()])
    assert network.programs["lan1"] is before


def loop(kinds: Sequence[str]) -> Topology:
    topology = Topology("loop")
    for number, kind in enumerate(kinds):
        topology.add_switch(f"s{number}", kind=kind)
    for number in range(len(kinds)):
        topology.add_link(f"s{number}", f"s{(number + 1) % len(kinds)}")
    return topology


def test_bridges_in_a_loop_are_refused() -> None:
    with pytest.raises(NetworkError, match=r"the bridges s0, s1, s2 are in a loop"):
        SimulatedNetwork(loop(["bridge"] * 3), {})
    with pytest.raises(NetworkError, match=r"are in a loop"):
        SimulatedNetwork(loop(["bridge"] * 2), {})
    SimulatedNetwork(loop(["bridge", "bridge", "p4"]), compile_router())


def test_what_bridges_are_not_for() -> None:
    with pytest.raises(NetworkError, match=r"switch 'lan1' is a bridge, and the router routes between P4 switches"):
        SimulatedNetwork(lan(2), {}, [RouterController(reroute=True, reaction_delay_ms=1)])
    topology = Topology("t")
    with pytest.raises(TopologyError, match="a bridge has a program of its own"):
        topology.add_switch("lan", kind="bridge", program="x.p4")
    with pytest.raises(HoldfastError, match="kind"):
        topology.add_switch("lan", kind="hub")


def test_a_host_asks_for_a_gateway_behind_a_bridge() -> None:
    """Check that nothing is known of a gateway: it is who answers, here another host."""
    topology = lan(1)
    assert topology.known_neighbours("h1") == {}
    topology.add_host("gateway", "10.0.0.254/24", gateway="none")
    topology.add_link("gateway", "lan1")
    with Session(SimulatedNetwork(topology, {}, seed=1)) as session:
        assert session.do("pingall").ok


def test_files_keep_the_kind(tmp_path: Path) -> None:
    file = tmp_path / "lan.yaml"
    file.write_text(
        "hosts: {h1: {address: 10.0.0.1/24}, h2: {address: 10.0.0.2/24}}\n"
        "switches: {lan1: {kind: bridge}}\nlinks: [{a: h1, b: lan1}, {a: h2, b: lan1}]\n"
    )
    topology = load(str(file))
    assert topology.bridges == ["lan1"]
    (tmp_path / "again.yaml").write_text(topology.to_yaml())
    assert load(str(tmp_path / "again.yaml")).bridges == ["lan1"]


def test_kinds_of_other_tools(tmp_path: Path) -> None:
    lab = tmp_path / "lab.clab.yml"
    lab.write_text(
        "name: lab\ntopology:\n  nodes:\n    br: {kind: bridge}\n    ovs: {kind: ovs-bridge}\n    c1: {kind: linux}\n"
        '  links:\n    - endpoints: ["c1:eth1", "br:p1"]\n    - endpoints: ["br:p2", "ovs:p1"]\n'
    )
    assert load(str(lab)).bridges == ["br", "ovs"]
    script = tmp_path / "net.py"
    script.write_text(
        "from mininet.net import Mininet\nfrom mininet.nodelib import LinuxBridge\nfrom mininet.node import OVSBridge\n"
        "net = Mininet()\nh1, h2 = net.addHost('h1'), net.addHost('h2')\n"
        "s1, s2, s3 = net.addSwitch('s1', cls=OVSBridge), net.addSwitch('s2', cls=LinuxBridge), net.addSwitch('s3')\n"
        "net.addLink(h1, s1)\nnet.addLink(h2, s2)\nnet.addLink(s1, s2)\nnet.addLink(s2, s3)\nnet.start()\n"
    )
    assert load(f"mininet:{script}").bridges == ["s1", "s2"]
