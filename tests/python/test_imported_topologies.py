"""Topologies in the files of other tools: p4lang, p4-utils, containerlab, GML, node-link JSON, SNDlib, Mininet."""

from __future__ import annotations

import json
import os
import random
import re
import warnings
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from holdfast_command import holdfast

from holdfast import HoldfastError, Topology, TopologyError
from holdfast.errors import TopologyWarning
from holdfast.topologies import load
from holdfast.topology import great_circle_km, propagation_delay_ms

P4LANG = {
    "hosts": {
        "h1": {
            "ip": "10.0.1.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": [
                "route add default gw 10.0.1.10 dev eth0",
                "arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00",
                "ip route add 10.0.1.0/24 dev eth0",
                "./serve.sh &",
            ],
        },
        "h2": {"ip": "10.0.2.2/31", "mac": "08:00:00:00:02:22"},
    },
    "switches": {
        "s1": {"runtime_json": "s1-runtime.json", "program": "build/fw.json", "cpu_port": "510"},
        "s10": {"priority_queues": 4},
        "s2": {"cli_input": "s2-commands.txt"},
    },
    "links": [
        ["h1", "s1-p1"],
        ["h2", "s2-p7", "3ms", 10],
        ["s1-p2", "s2-p3", "0", 0.5],
        ["s2-p4", "s10-p1", 2],
    ],
}

P4UTILS = {
    "p4_src": "main.p4",
    "exec_scripts": [{"cmd": "python controller.py"}],
    "topology": {
        "assignment_strategy": "l3",
        "default": {"bw": 10},
        "hosts": {"h1": {}, "h2": {}, "web": {}},
        "switches": {"s1": {"cli_input": "s1-commands.txt"}, "s2": {"cpu_port": True}},
        "links": [["h1", "s1"], ["s1", "s2", {"delay": "5ms", "loss": 2}], ["h2", "s2"], ["web", "s2", {"bw": 1}]],
    },
}

CLAB = """\
name: lab
topology:
  kinds:
    nokia_srlinux: {image: x}
  nodes:
    leaf-1: {kind: nokia_srlinux, startup-config: a.cfg}
    br: {kind: bridge}
    client1:
      kind: linux
      exec:
        - ip address add 192.168.1.2/24 dev eth1
        - ip link set dev eth1 address 00:c1:ab:00:00:01
        - ip route add default via 192.168.1.1
        - iperf3 -s -D
    client2: {kind: linux}
  links:
    - endpoints: ["client1:eth1", "leaf-1:e1-7"]
    - {endpoints: ["leaf-1:e1-8", "br:x"], mtu: 9000}
    - {endpoints: ["client2:eth2", "br:y"]}
    - {endpoints: ["leaf-1:e1-9", "host:leaf9"]}
"""

GML = """\
graph [
  label "Two"
  node [ id 0 label "New York" Longitude -74.0 Latitude 40.7 ]
  node [ id 1 label "Wien" Longitude 16.37 Latitude 48.21 ]
  node [ id 2 label "Wien" x 3 y 4 ]
  edge [ source 0 target 1 LinkLabel "10 Gbps" ]
  edge [ source 1 target 2 bandwidth "100 Mbit/s" delay "3ms" cost 5 ]
]
"""

NODE_LINK = {
    "directed": False,
    "multigraph": True,
    "graph": {"label": "links"},
    "nodes": [{"id": "a"}, {"id": "b", "name": "Bee"}],
    "links": [
        {"source": "a", "target": "b", "key": 0, "rate_bps": 5e6, "delay_ms": 2.5},
        {"source": "a", "target": "b", "key": 1, "capacity": "1Gbps", "latency": "1ms"},
    ],
}

SNDLIB = """\
<?xml version="1.0" encoding="ISO-8859-1"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
  <meta><unit>MBITPERSEC</unit></meta>
  <networkStructure>
    <nodes coordinatesType="geographical">
      <node id="N1"><coordinates><x>10.0</x><y>50.0</y></coordinates></node>
      <node id="N2"><coordinates><x>11.0</x><y>51.0</y></coordinates></node>
    </nodes>
    <links>
      <link id="L1"><source>N1</source><target>N2</target>
        <preInstalledModule><capacity>2480.0</capacity><cost>0.0</cost></preInstalledModule></link>
      <link id="L2"><source>N2</source><target>N1</target>
        <additionalModules><addModule><capacity>155.0</capacity></addModule>
        <addModule><capacity>622.0</capacity></addModule></additionalModules></link>
    </links>
  </networkStructure>
  <demands><demand id="D1"><source>N1</source><target>N2</target></demand></demands>
</network>
"""

NATIVE = """\
?SNDlib native format; type: network; version: 1.0
# a remark
META (
  granularity = DAY
  unit = MBITPERSEC
  origin = Somebody, http://example.org/dataset.html, a text
)
NODES (
  N1 ( 10.00 50.00 )
  N2 ( 11.00 51.00 )
)
LINKS (
  L1 ( N1 N2 ) 2480.00 0.00 0.00 0.00 ( 622.00 1.00 )
  L2 ( N2 N1 ) 0.00 0.00 0.00 0.00 ( 155.00 1.00 622.00 2.00 )
)
DEMANDS (
  D1 ( N1 N2 ) 1 10.00 UNLIMITED
  D2 ( N2 N1 ) 1 10.00 UNLIMITED
)
ADMISSIBLE_PATHS (
  D1 ( P1 ( L1 ) P2 ( L2 ) )
)
"""

MININET = """\
from mininet.topo import Topo
from mininet.net import Mininet
from mininet.link import TCLink
from mininet.node import OVSKernelSwitch, RemoteController
from mininet.cli import CLI
from stratum import StratumBmv2Switch

class Pair(Topo):
    def build(self, n=2, bw=10):
        left, right = self.addSwitch('s1'), self.addSwitch('s2', cls=OVSKernelSwitch)
        for i in range(1, n + 1):
            self.addHost('h%d' % i)
        self.addLink('h1', left, bw=bw, delay='5ms', loss=1, max_queue_size=50)
        self.addLink('h2', right)
        self.addLink(left, right, port1=7, jitter='1ms', delay='4ms')

topos = {'pair': (lambda *args: Pair(*args))}

def run():
    net = Mininet(topo=Pair(), link=TCLink, autoSetMacs=True, controller=RemoteController)
    net.start()
    net['h1'].cmd('ip route add default via 10.0.0.9')
    net['h1'].cmd('ping 10.0.0.2')
    assert net.pingAll() == 0
    CLI(net)
    net.stop()

if __name__ == '__main__':
    run()
"""

P4UTILS_SCRIPT = """\
from p4utils.mininetlib.network_API import NetworkAPI

net = NetworkAPI()
net.setLogLevel('info')
net.addP4RuntimeSwitch('s1')
net.addP4Switch('s2', cli_input='s2-commands.txt')
net.setP4SourceAll('main.p4')
for host in ('h1', 'h2'):
    net.addHost(host)
net.addLink('h1', 's1')
net.addLink('h2', 's2', port2=9)
net.addLink('s1', 's2')
net.setBw('s1', 's2', 5)
net.setDelay('s1', 's2', 7)
net.setLoss('s1', 's2', 0.25)
net.enableCpuPort('s2')
net.mixed()
net.enableCli()
net.startNetwork()
raise AssertionError
"""

FILES = {
    "topology.json": json.dumps(P4LANG, indent=1),
    "p4app.json": json.dumps(P4UTILS, indent=1),
    "lab.clab.yml": CLAB,
    "graph.gml": GML,
    "graph.json": json.dumps(NODE_LINK, indent=1),
    "net.xml": SNDLIB,
    "net.txt": NATIVE,
}

SCRIPTS = {"topo.py": MININET, "network.py": P4UTILS_SCRIPT}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file of each kind, and the files that they name."""
    for name, text in (FILES | SCRIPTS).items():
        (tmp_path / name).write_text(text)
    for name in ("fw.p4", "main.p4", "s1-runtime.json", "s2-commands.txt", "s1-commands.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


def read(path: Path, name: str = "") -> tuple[Topology, list[str]]:
    """Return the topology in a file, or of a script, and the warnings about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TopologyWarning)
        topology = load(f"mininet:{path}{name}" if path.suffix == ".py" else str(path))
    return topology, [str(each.message).removeprefix(f"{path}: ") for each in caught]


def ends(topology: Topology) -> list[str]:
    """Return the links, with ports."""
    return [link.ends for link in topology.links]


def test_p4lang(folder: Path) -> None:
    topology, warned = read(folder / "topology.json")
    h1, h2 = topology.hosts.values()
    assert (str(h1.address), h1.mac.hex(":"), str(h1.gateway)) == ("10.0.1.1/24", "08:00:00:00:01:11", "10.0.1.10")
    assert {str(ip): mac.hex(":") for ip, mac in h1.neighbours.items()} == {"10.0.1.10": "08:00:00:00:01:00"}
    assert h1.commands == ("./serve.sh &",)
    assert (str(h2.address), h2.gateway) == ("10.0.2.2/31", None)
    s1, s10, s2 = topology.switches.values()
    assert (s1.program, s1.entries, s1.cpu_port) == (str(folder / "fw.p4"), str(folder / "s1-runtime.json"), 510)
    assert s2.entries == str(folder / "s2-commands.txt")
    assert [(s.device_id, s.grpc) for s in (s1, s2, s10)] == [(i, f"127.0.0.1:{50051 + i}") for i in range(3)]
    assert s10.queueing is not None
    assert s10.queueing.queues == 4
    assert ends(topology) == ["h1:0-s1:1", "h2:0-s2:7", "s1:2-s2:3", "s2:4-s10:1"]
    assert [(link.rate_bps, link.delay_ms) for link in topology.links] == [
        (10**9, 0),
        (10**7, 3),
        (500_000, 0),
        (10**9, 2),
    ]
    assert warned == []


def test_p4utils(folder: Path) -> None:
    topology, warned = read(folder / "p4app.json")
    assert {name: (str(h.address), str(h.gateway), h.mac.hex(":")) for name, h in topology.hosts.items()} == {
        "h1": ("10.1.1.2/24", "10.1.1.1", "00:00:0a:01:01:02"),
        "h2": ("10.2.2.2/24", "10.2.2.1", "00:00:0a:02:02:02"),
        "web": ("10.2.1.2/24", "10.2.1.1", "00:00:0a:02:01:02"),
    }
    assert {str(ip): mac.hex(":") for ip, mac in topology.hosts["h1"].neighbours.items()} == {
        "10.1.1.1": "00:01:0a:01:01:02"
    }
    s1, s2 = topology.switches.values()
    assert (s1.device_id, s1.program, s1.entries) == (1, str(folder / "main.p4"), str(folder / "s1-commands.txt"))
    # The controller's port is the last one: its link is to "sw-cpu".
    assert (s2.device_id, s2.cpu_port) == (2, 3)
    assert ends(topology) == ["h1:0-s1:1", "s1:2-s2:2", "h2:0-s2:1", "web:0-s2:4"]
    assert [(link.rate_bps, link.delay_ms, link.loss) for link in topology.links[1::2]] == [
        (10_000_000, 5, 0.02),
        (1_000_000, 0, 0),
    ]
    assert warned == ["1 is left out: the part 'exec_scripts' (exec_scripts)"]


@pytest.mark.parametrize(
    ("strategy", "h1", "h2", "web", "known"),
    [
        ("l2", "10.0.0.1/16", "10.0.0.2/16", "10.0.0.3/16", {"h1": ["10.0.0.2", "10.0.0.3"]}),
        (
            "mixed",
            "10.1.1.1/24",
            "10.1.2.2/24",
            "10.1.2.1/24",
            {"h1": ["10.0.1.254"], "h2": ["10.0.2.254", "10.0.2.1"]},
        ),
        (None, "10.0.0.1/8", "10.0.0.2/8", "10.0.0.3/8", {"h1": []}),
    ],
)
def test_addresses_of_p4utils(
    strategy: str | None, h1: str, h2: str, web: str, known: dict[str, list[str]], folder: Path
) -> None:
    document = json.loads(json.dumps(P4UTILS))
    document["topology"]["assignment_strategy"] = strategy
    (folder / "p4app.json").write_text(json.dumps(document))
    topology, _ = read(folder / "p4app.json")
    expected = [address.replace("10.1.", "10.0.") for address in (h1, h2, web)]
    assert [str(host.address) for host in topology.hosts.values()] == expected
    for name, addresses in known.items():
        assert sorted(map(str, topology.hosts[name].neighbours)) == sorted(addresses)


@pytest.mark.parametrize("told", [True, False])
def test_a_gateway_of_p4utils_that_is_a_switch_is_a_neighbour(told: bool, folder: Path) -> None:
    """Check the MAC address of a gateway that has none in the file: Mininet draws one, here it is the switch port's."""
    links = [["h1", "s1"], ["s1", "s2"], ["s2", "h2", {"sw_ip1": "10.9.2.1/24", "params2": {"ip": "10.9.2.2/24"}}]]
    links[0].append({"params1": {"ip": "10.9.1.2/24"}})  # type: ignore[arg-type]
    document = {
        "default": {"auto_gw_arp": told},
        "hosts": {"h1": {}, "h2": {"defaultRoute": "via 10.9.2.1"}},
        "switches": {"s1": {}, "s2": {}},
        "links": links,
    }
    (folder / "p4app.json").write_text(json.dumps({"p4_src": "main.p4", "topology": document}))
    topology, _ = read(folder / "p4app.json")
    known = topology.hosts["h2"].neighbours.get(IPv4Address("10.9.2.1"))
    assert known == (topology.port_mac("s2", 2) if told else None)


def test_containerlab(folder: Path) -> None:
    topology, warned = read(folder / "lab.clab.yml")
    assert topology.name == "lab"
    assert list(topology.switches) == ["leaf-1", "br"]
    h1, h2 = topology.hosts["client1"], topology.hosts["client2"]
    assert (str(h1.address), h1.mac.hex(":"), str(h1.gateway), h1.commands) == (
        "192.168.1.2/24",
        "00:c1:ab:00:00:01",
        "192.168.1.1",
        ("iperf3 -s -D",),
    )
    assert h2.gateway is None
    assert ends(topology) == ["client1:0-leaf-1:7", "leaf-1:8-br:1", "client2:0-br:2"]
    assert topology.links[1].mtu_bytes == 9000
    assert warned == [
        "3 are left out: links to host (line 20), the software of nodes of kind nokia_srlinux, which become switches "
        "(line 6), startup-config of nodes (line 6)"
    ]


def test_of_two_linked_hosts_that_with_more_links_is_a_switch(tmp_path: Path) -> None:
    path = tmp_path / "lab.clab.yml"
    nodes = "".join(f"    {name}: {{kind: linux}}\n" for name in ("a", "router", "b"))
    links = '    - endpoints: ["a:eth1", "router:eth1"]\n    - endpoints: ["b:eth1", "router:eth2"]\n'
    path.write_text(f"name: x\ntopology:\n  nodes:\n{nodes}  links:\n{links}")
    topology, warned = read(path)
    assert (list(topology.switches), ends(topology)) == (["router"], ["a:0-router:1", "b:0-router:2"])
    assert "the software of nodes of kind linux between hosts" in warned[0]


def test_gml(folder: Path) -> None:
    topology, warned = read(folder / "graph.gml")
    assert topology.name == "Two"
    assert list(topology.switches) == ["New_York", "Wien", "Wien_2"]
    first, second = (link for link in topology.links if link.a in topology.switches)
    assert first.rate_bps == 10_000_000_000
    assert first.delay_ms == propagation_delay_ms(great_circle_km((-74.0, 40.7), (16.37, 48.21)))
    assert (second.rate_bps, second.delay_ms, second.cost) == (100_000_000, 3, 5)
    assert topology.switches["Wien_2"].position == (3, 4)
    assert len(topology.hosts) == 3
    assert "names that are taken get a number: Wien_2" in warned


def test_node_link_data(folder: Path) -> None:
    topology, warned = read(folder / "graph.json")
    assert not any("label" in each for each in warned)
    assert list(topology.switches) == ["a", "Bee"]
    between = [link for link in topology.links if link.a in topology.switches]
    assert [(link.rate_bps, link.delay_ms) for link in between] == [(5_000_000, 2.5), (10**9, 1)]
    without = load(str(folder / "graph.json"), hosts=False, rate_bps=7)
    assert not without.hosts
    assert {link.rate_bps for link in without.links} == {7}


@pytest.mark.parametrize("name", ["net.xml", "net.txt"])
def test_sndlib(name: str, folder: Path) -> None:
    topology, warned = read(folder / name)
    between = [link for link in topology.links if link.a in topology.switches]
    assert [(link.name, link.rate_bps) for link in between] == [("N1-N2", 2_480_000_000), ("N2-N1", 622_000_000)]
    assert between[0].delay_ms == propagation_delay_ms(great_circle_km((10, 50), (11, 51)))
    assert warned == ["1 demand left out" if name == "net.xml" else "2 demands left out"]


@pytest.mark.parametrize("name", ["", ":pair", ":Pair", ":run", ":Pair,2,bw=10"])
def test_mininet(name: str, folder: Path) -> None:
    topology, warned = read(folder / "topo.py", name)
    with_net = name in ("", ":run")
    assert [str(host.address) for host in topology.hosts.values()] == ["10.0.0.1/8", "10.0.0.2/8"]
    assert str(topology.hosts["h1"].gateway) == ("10.0.0.9" if with_net else "None")
    assert topology.hosts["h2"].mac.hex(":") == ("00:00:00:00:00:02" if with_net else "02:00:00:00:00:02")
    assert ends(topology) == ["h1:0-s1:1", "h2:0-s2:1", "s1:7-s2:2"]
    first, second, third = topology.links
    assert (first.rate_bps, first.delay_ms, first.loss, first.queue_packets) == (10_000_000, 5, 0.01, 50)
    assert (second.rate_bps, second.delay_ms) == (10**9, 0)
    assert third.delay_ms == 3
    assert third.jitter is not None
    assert (third.jitter.distribution, third.jitter.high_ms) == ("uniform", 2)
    assert warned == (["1 is left out: commands that the script gives to nodes (h1)"] if with_net else [])


def test_a_script_of_p4utils(folder: Path) -> None:
    topology, warned = read(folder / "network.py")
    assert [str(host.address) for host in topology.hosts.values()] == ["10.0.1.1/24", "10.0.2.2/24"]
    s1, s2 = topology.switches.values()
    assert (s1.grpc, s1.device_id, s1.program) == ("127.0.0.1:9559", 1, str(folder / "main.p4"))
    assert (s2.grpc, s2.entries, s2.cpu_port) == (None, str(folder / "s2-commands.txt"), 2)
    assert ends(topology) == ["h1:0-s1:1", "h2:0-s2:9", "s1:2-s2:1"]
    third = topology.links[2]
    assert (third.rate_bps, third.delay_ms, third.loss) == (5_000_000, 7, 0.25)
    assert warned == []


@pytest.mark.parametrize("name", [*FILES, *SCRIPTS])
def test_as_yaml_it_reads_as_the_same_topology(name: str, folder: Path) -> None:
    topology, _ = read(folder / name)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "again.yaml").write_text(topology.to_yaml())
    again, _ = read(elsewhere / "again.yaml")
    assert again.to_yaml() == topology.to_yaml()
    for mine, others in (
        (again.hosts.values(), topology.hosts.values()),
        (again.switches.values(), topology.switches.values()),
        (again.links, topology.links),
    ):
        assert [each.model_dump() for each in mine] == [each.model_dump() for each in others]


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("topology.json", '"s1-p2"', '"s7-p2"', ":42: links.2: link s7-s2: there is no node 's7'"),
        ("topology.json", '"s1-p2"', '"q"', ":42: links.2: unknown end of a link, 'q'"),
        ("topology.json", '"3ms"', '"3 parsecs"', ":36: links.1: '3 parsecs' is not a time, such as 5ms"),
        ("topology.json", "10.0.1.1/24", "10.0.1.256/24", ":3: hosts.h1: host 'h1': address: "),
        ("topology.json", "08:00:00:00:01:11", "08:00", ":3: hosts.h1: host 'h1': mac: '08:00' is no MAC address"),
        ("topology.json", '"510"', '"x"', ":19: switches.s1: cpu_port is 'x'; a number is expected"),
        ("topology.json", '"links": [', '"links": [3,', ":31: links.0: a link is a list of two ends"),
        ("topology.json", '"hosts"', '"hots"', ": this is no topology: a JSON file has hosts"),
        ("p4app.json", '"l3"', '"l4"', ":8: topology: assignment_strategy is 'l4'; it is l2, l3, mixed or manual"),
        ("p4app.json", '"bw": 10', '"bw": -1', ":27: topology.links.0: bw is -1; it is above zero, in Mbit/s"),
        ("p4app.json", '"loss": 2', '"loss": 200', ":31: topology.links.1: loss is 200; it is 0 to 100, in percent"),
        ("lab.clab.yml", '"br:x"', '"bri:x"', ": line 18: unknown node 'bri'; did you mean 'br'?"),
        ("lab.clab.yml", "mtu: 9000", "mtu: big", ": line 18: mtu is 'big'; a number of bytes is expected"),
        ("lab.clab.yml", '"leaf-1:e1-8"', '"leaf-1"', ": line 18: 'leaf-1' is no endpoint such as 'srl1:e1-1'"),
        ("lab.clab.yml", '"leaf-1:e1-8"', '"leaf-1:e1-7"', ": line 18: interface 'e1-7' of 'leaf-1' has two links"),
        ("lab.clab.yml", "name: lab", "name: [lab", ":2: not YAML"),
        ("graph.gml", "target 2", "target 7", ": not a graph in GML: "),
        ("graph.gml", "graph [", "graph {", ": not a graph in GML: cannot tokenize"),
        ("graph.json", '"target": "b"', '"target": "c"', ": links.0: there is no node 'c'"),
        ("graph.json", '"target": "b"', '"targt": "b"', ": not node-link data: 'target' is missing"),
        ("net.xml", "<target>N2", "<target>N7", ":10: link 'L1': there is no node 'N7'"),
        ("net.xml", "</networkStructure>", "", ":18: not XML: mismatched tag"),
        ("net.xml", 'id="N2"', 'id="N1"', ":7: node 'N1' is declared twice (first in line 6)"),
        ("net.xml", "<network ", '<!DOCTYPE n [<!ENTITY e SYSTEM "/etc/passwd">]><network a="" ', ": "),
        ("net.txt", "N2 ( 11.00 51.00 )", "N2 ( 11.00 )", ":11: node 'N2' has 1 coordinates; 2 are expected"),
        ("net.txt", "( N1 N2 ) 2480", "( N1 N7 ) 2480", ":13: link 'L1': there is no node 'N7'"),
        ("net.txt", "NODES", "KNOTEN", ": not a network of SNDlib's native format"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(name: str, old: str, new: str, sentence: str, folder: Path) -> None:
    path = folder / name
    assert old in FILES[name]
    path.write_text(FILES[name].replace(old, new, 1))
    if "ENTITY" in new:
        path.write_text(path.read_text().replace("<x>10.0", "<x>&e;"))
        sentence = ":6: an entity refers to another file, which is not read"
    with pytest.raises(TopologyError) as error, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(str(path))
    assert str(error.value).startswith(f"{path}{sentence}"), error.value
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("script", "name", "sentence"),
    [
        ("x = 1\nraise ValueError('no')\n", "", ":2: ValueError: no"),
        ("def broken(:\n", "", ":1: SyntaxError: "),
        ("import nowhere_to_be_found\n", "", ":1: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("x = 1\n", "", ": it builds no network when it is run; name a class or a function in it"),
        (MININET, ":Pear", ": there is no 'Pear' in it (known: pair, Pair)"),
        (MININET, ":Pair,many", ":11: TypeError: "),
        ("import os\nos._exit(3)\n", "", ": the script ended without a network, with status 3"),
        ("print('x' * 100000)\nimport sys\nsys.exit('ended')\n", "", ": it builds no network when it is run"),
        (
            "from mininet.topo import Topo\nt = Topo()\nt.addHost('h1')\nt.addLink('h1', 's1')\n",
            ":t",
            ": link h1-s1: the link",
        ),
    ],
)
def test_a_script_that_fails_is_one_sentence(script: str, name: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(script)
    with pytest.raises(TopologyError) as error:
        load(f"mininet:{path}{name}")
    assert str(error.value).startswith(f"{path}{sentence}"), error.value
    assert "\n" not in str(error.value)


def test_a_network_counts_that_a_script_is_busy_with(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    begin = "import signal\nfrom mininet.net import Mininet\nnet = Mininet()\nh, s = net.addHost('h1'), net.addSwitch('s1')\n"
    fails = "net.addLink(h, s)\nnet.start()\nfloat(h.cmd('ping'))\n"
    busy = "net.addLink(h, s)\nsignal.setitimer(signal.ITIMER_REAL, 0.5)\nwhile True: pass\n"
    for end in (fails, busy):
        path.write_text(begin + end)
        assert ends(read(path)[0]) == ["h1:0-s1:1"]


def test_a_script_that_goes_on_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.topologies.mininet_files.MOST_SECONDS", 2)
    path = tmp_path / "script.py"
    path.write_text("import subprocess\nsubprocess.Popen(['sleep', '1000'])\nwhile True: pass\n")
    with pytest.raises(TopologyError, match="does not start its network within 2 s"):
        load(f"mininet:{path}")


def test_the_command_converts_what_a_script_builds(folder: Path) -> None:
    result = holdfast("topology", "topo.py:pair", "--mininet", "--yaml", cwd=folder)
    assert result.returncode == 0, result.stderr
    (folder / "converted.yaml").write_text(result.stdout)
    assert ends(read(folder / "converted.yaml")[0]) == ["h1:0-s1:1", "h2:0-s2:1", "s1:7-s2:2"]
    warned = holdfast("topology", "lab.clab.yml", cwd=folder)
    assert "warning: lab.clab.yml: 3 are left out: links to host" in warned.stderr
    assert "lab: 2 switches, 2 hosts, 3 links" in warned.stdout
    refused = holdfast("topology", "topo.py:pear", "--mininet", cwd=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: topo.py: there is no 'pear' in it (known: pair, Pair)")


CORPORA = os.environ.get("HOLDFAST_TOPOLOGY_CORPORA", "")
"""Folders with files of other people, with colons between them: ``docs/COVERAGE.md`` names such collections."""


@pytest.mark.skipif(not CORPORA, reason="needs folders of topologies in HOLDFAST_TOPOLOGY_CORPORA")
def test_files_of_other_people_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    names = ("topology.json", "p4app*.json", "*.clab.yml", "*.clab.yaml", "*.gml", "network*.xml")
    files = [file for folder in CORPORA.split(":") for name in names for file in sorted(Path(folder).rglob(name))]
    assert files
    for file in files:
        try:
            topology, _ = read(file)
        except TopologyError as error:
            assert str(error).startswith(str(file))
            assert "\n" not in str(error)
            continue
        (tmp_path / "again.yaml").write_text(topology.to_yaml())
        assert read(tmp_path / "again.yaml")[0].to_yaml() == topology.to_yaml(), file


def test_p4langs_form_of_before_2019(folder: Path) -> None:
    """Check addresses by the numbers in names, and ports by the names of links, those of hosts first."""
    file = folder / "topology.json"
    old = {
        "hosts": ["h1", "h2", "h11"],
        "switches": {"s1": {}, "s2": {"runtime_json": "s2-runtime.json"}},
        "links": [["s2", "s1", "0", 0.5], ["h2", "s2"], ["h11", "s1"], ["s1", "h1", "5ms"]],
    }
    file.write_text(json.dumps(old))
    topology, _ = read(file)
    ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in topology.links]
    assert {frozenset(end for end in pair if end[0].startswith("s")) for pair in ends} == {
        frozenset({("s1", 1)}),
        frozenset({("s1", 2)}),
        frozenset({("s1", 3), ("s2", 2)}),
        frozenset({("s2", 1)}),
    }
    assert {name: str(host.address) for name, host in topology.hosts.items()} == {
        "h1": "10.0.1.1/24",
        "h11": "10.0.1.11/24",
        "h2": "10.0.2.2/24",
    }
    for wrong, says in (
        (old | {"links": [["h1", "s9"]]}, "unknown node 's9'"),
        (old | {"links": [["h1"]]}, "a link is a list of two names"),
        ({"hosts": ["web"], "switches": {"s1": {}}, "links": [["web", "s1"]]}, "use names such as s1 and h1"),
        (old | {"hosts": [1]}, "hosts are names"),
    ):
        file.write_text(json.dumps(wrong))
        with pytest.raises(TopologyError, match=re.escape(says)) as refused:
            read(file)
        assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_has_parameters_that_it_cannot_have(folder: Path) -> None:
    for spec in ("nowhere.json", "nowhere.gml", "nowhere.clab.yml", "nowhere.xml", "mininet:nowhere.py"):
        with pytest.raises(TopologyError, match="nowhere"):
            load(spec)
    with pytest.raises(TopologyError, match="hosts can be given for GraphML"):
        load(str(folder / "topology.json"), hosts=False)
    with pytest.raises(TopologyError, match="there is no topology 'rng'; did you mean 'ring'"):
        load("rng:4")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore::holdfast.errors.TopologyWarning")
def test_a_changed_file_is_read_or_refused_in_one_sentence(name: str, folder: Path) -> None:
    drawn = random.Random(name)
    path = folder / name
    read_at_all = 0
    for _ in range(400):
        content = bytearray(FILES[name].encode())
        for _ in range(drawn.choice((1, 1, 2, 5))):
            at = drawn.randrange(len(content))
            kind = drawn.randrange(5)
            if kind == 0:
                content[at] = drawn.randrange(256)
            elif kind == 1:
                del content[at : at + drawn.randint(1, 40)]
            elif kind == 2:
                content[at:at] = content[at : at + drawn.randint(1, 60)]
            elif kind == 3:
                other = drawn.randrange(len(content))
                content[at : at + 8], content[other : other + 8] = content[other : other + 8], content[at : at + 8]
            else:
                inserted = (
                    b"-1",
                    b"9" * 400,
                    b"[",
                    b"}",
                    b" null ",
                    b"\xff",
                    b"{}",
                    b'"',
                    b"1e999",
                    b"true",
                    b"&x;",
                    b"(",
                )
                content[at:at] = drawn.choice(inserted)
        path.write_bytes(bytes(content))
        try:
            load(str(path))
            read_at_all += 1
        except HoldfastError as error:
            assert str(error).startswith(str(path)), error
            assert "\n" not in str(error), error
            assert len(str(error)) < 1000
    assert 0 < read_at_all < 400
