"""Networks with gateways: traffic of modelled hosts through contexts, failures, lost contexts, and late controllers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw

from holdfast import Ping, SimulatedNetwork, TcpTransfer, UdpStream, topologies
from holdfast._core import Program
from holdfast.apps.shorternet import ShorternetController
from holdfast.apps.shorternet.contexts import context_table, flow_table
from holdfast.apps.shorternet.planning import stations
from holdfast.control.domain import refused
from holdfast.control.tables import read_entries
from holdfast.errors import NetworkError
from holdfast.topology import Topology


def controller_of(**more: Any) -> ShorternetController:
    return ShorternetController(**{"reaction_delay_ms": 5, "idle_s": 1.0, "linger_ms": 100, **more})


def network_of(
    program: Program, topology: Topology, *controllers: ShorternetController, detection_delay_ms: float = 10
) -> SimulatedNetwork:
    return SimulatedNetwork(topology, program, list(controllers), detection_delay_ms=detection_delay_ms)


def with_ipv6(topology: Topology) -> Topology:
    topology.add_ipv6()
    return topology


def entries(network: SimulatedNetwork, switch: str, table: str) -> int:
    return len(read_entries(network.clients[switch], table))


@pytest.mark.parametrize("spec", ["line:3", "ring:4", "abilene"])
def test_everything_arrives_with_contexts_and_without(program: Program, spec: str) -> None:
    topology = with_ipv6(topologies.load(spec))
    hosts = list(topology.hosts)
    first, last = hosts[0], hosts[-1]
    controller = controller_of()
    network = network_of(program, topology, controller)
    flows = [
        network.add(
            UdpStream(source=a, destination=b, packets_per_s=500, stop_s=1, payload_bytes=28, family=f"ipv{version}")
        )
        for a, b in ((first, last), (last, first))
        for version in (4, 6)
    ]
    transfer = network.add_tcp(
        TcpTransfer(source=first, destination=last, application="transfer", transfer_bytes=500_000)
    )
    network.add(Ping(source=last, destination=first, stop_s=1))
    network.run(3.0)
    for flow in flows:
        found = network.statistics(flow)
        assert (found.sent, found.lost, found.duplicated, found.reordered) == (500, 0, 0, 0)
    assert network.tcp_statistics(transfer).bytes_received == 500_000
    assert network.tcp_statistics(transfer).segments_retransmitted == 0
    assert controller.counts["allotted"] >= 6 and controller.counts["refused"] == 0
    edge = topology.attachment(first).switch
    whole = controller.counter(edge, "whole")
    assert 0 < whole < 100  # until their contexts were there
    dropped = ("malformed", "no_context", "wrong_context", "wrong_length", "no_station", "no_host")
    assert all(controller.counter(switch, name) == 0 for switch in topology.switches for name in dropped)


def test_idle_flows_lose_their_contexts_and_numbers_come_back(program: Program) -> None:
    controller = controller_of(idle_s=0.5, linger_ms=200)
    network = network_of(program, topologies.load("line:3"), controller)
    network.add(UdpStream(source="h1", destination="h3", packets_per_s=100, stop_s=1))
    network.run(0.9)
    assert (entries(network, "s1", flow_table(4)), entries(network, "s3", context_table(4))) == (1, 1)
    assert len(controller.contexts) == 1
    network.run(4.0)
    assert (entries(network, "s1", flow_table(4)), entries(network, "s3", context_table(4))) == (0, 0)
    assert len(controller.contexts) == 0 and controller.counts["aged"] == 1
    flow = network.add(UdpStream(source="h1", destination="h3", packets_per_s=100, start_s=4, stop_s=5))
    network.run(6.0)
    assert network.statistics(flow).lost == 0
    assert controller.counts["allotted"] == 2


def test_a_cut_and_a_lost_context_cost_what_they_must(program: Program) -> None:
    controller = controller_of(idle_s=10)
    network = network_of(program, topologies.load("ring:4"), controller)
    rate = 1000
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=rate, stop_s=3))
    transfer = network.add_tcp(
        TcpTransfer(source="h1", destination="h2", application="transfer", transfer_bytes=2_000_000)
    )
    network.set_link("s1-s2", up=False, at_s=1)
    network.run(1.5)
    cut = network.statistics(flow).lost
    assert 15 <= cut <= 30  # detection and reaction, and what waited at the link beside TCP
    (lost, *_) = read_entries(network.clients["s2"], context_table(4))
    for entry in read_entries(network.clients["s2"], context_table(4)):
        entry.write(network.clients["s2"], "delete")
    network.run(2.0)
    wrong = type(lost)(lost.table, lost.match, lost.action, {**lost.params, "dst_port": 9})
    for entry in read_entries(network.clients["s2"], context_table(4)):
        if entry.match == lost.match:
            wrong.modify(network.clients["s2"])
    network.run(6.0)
    found = network.statistics(flow)
    assert found.duplicated == 0
    dropped = sum(controller.counter("s2", name) for name in ("no_context", "wrong_context"))
    assert controller.counter("s2", "no_context") > 0 and controller.counter("s2", "wrong_context") > 0
    assert cut < found.lost <= cut + dropped <= cut + 40  # two times about six milliseconds, of both flows
    assert controller.counts["repaired"] >= 2
    assert network.tcp_statistics(transfer).bytes_received == 2_000_000


def test_a_number_that_is_nobodys_is_taken_out_at_its_sender(program: Program) -> None:
    controller = controller_of(idle_s=10)
    network = network_of(program, topologies.load("line:2"), controller)
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=1000, stop_s=1))
    network.run(0.5)
    (entry,) = read_entries(network.clients["s1"], flow_table(4))
    type(entry)(entry.table, entry.match, entry.action, {"context": 999}).modify(network.clients["s1"])
    network.run(2.0)
    assert network.statistics(flow).lost < 20
    (entry,) = read_entries(network.clients["s1"], flow_table(4))
    assert entry.params["context"] == 0


def test_a_successor_takes_contexts_over_without_losing_a_packet(program: Program) -> None:
    first, second = controller_of(idle_s=10), controller_of(idle_s=10)
    network = network_of(program, topologies.load("line:3"), first)
    flow = network.add(UdpStream(source="h1", destination="h3", packets_per_s=1000, stop_s=2))
    network.add(UdpStream(source="h3", destination="h1", packets_per_s=1000, stop_s=2))
    network.run(0.5)
    # Two things go wrong while nobody is there: a context without a number, and a number without a context.
    (number,) = read_entries(network.clients["s3"], flow_table(4))
    number.delete(network.clients["s3"])
    before = {switch: entries(network, switch, context_table(4)) for switch in ("s1", "s3")}
    assert before == {"s1": 1, "s3": 1}
    network.controllers[:] = [second]
    second.attach(network)
    second.on_start()
    assert [context.sender for context in second.contexts] == ["s1"]
    network.run(3.0)
    assert network.statistics(flow).lost == 0
    assert second.counts["allotted"] == 1
    assert sorted(context.sender for context in second.contexts) == ["s1", "s3"]


def test_a_full_edge_sends_whole_packets(program: Program) -> None:
    controller = controller_of(contexts=3, idle_s=10)
    network = network_of(program, topologies.load("line:2"), controller)
    flows = [
        network.add(UdpStream(source="h1", destination="h2", packets_per_s=100, stop_s=1, source_port=9000 + n))
        for n in range(5)
    ]
    network.run(2.0)
    assert all(network.statistics(flow).lost == 0 for flow in flows)
    assert controller.counts["refused"] > 0 and len(controller.contexts) == 3


def test_the_same_seed_gives_the_same_run(program: Program) -> None:
    def run() -> tuple[object, ...]:
        controller = controller_of()
        network = network_of(program, topologies.load("ring:4"), controller)
        flow = network.add(UdpStream(source="h1", destination="h3", packets_per_s=500, stop_s=1))
        network.set_link("s1-s2", up=False, at_s=0.5)
        network.run(2.0)
        return network.statistics(flow), dict(controller.counts), [it.number for it in controller.contexts]

    assert run() == run()


def test_stations_have_eight_bits() -> None:
    topology = topologies.load("line:2")
    with pytest.raises(NetworkError, match="'h1' and 's1' would both be station 1"):
        stations(topology, {"h1": 1})
    with pytest.raises(NetworkError, match="'h1' would be station 256"):
        stations(topology, {"h1": 256})
    with pytest.raises(NetworkError, match="no host 'h7'"):
        stations(topology, {"h7": 9})


@pytest.mark.parametrize(
    ("parameter", "value"), [("idle_s", 0), ("linger_ms", 0), ("flows_per_s", 0), ("idle_s", float("nan"))]
)
def test_parameters_have_ranges(parameter: str, value: float) -> None:
    with pytest.raises(NetworkError, match=parameter):
        controller_of(**{parameter: value})


def test_the_readmes_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(from holdfast.*?)```", text, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == example.rpartition("# ")[2].strip()


def test_a_host_that_is_a_station_speaks_for_no_other_one(program: Program) -> None:
    """Has it send another station's frame again, with a flow's context, whole, and to a station: all are refused and counted."""
    topology = Topology("stations")
    for name in ("s1", "s2"):
        topology.add_switch(name)
    for host, switch in (("h1", "s1"), ("h2", "s2"), ("h3", "s2"), ("h4", "s2")):
        topology.add_host(host)
        topology.add_link(host, switch)
    topology.add_link("s1", "s2", delay_ms=0.1)
    network = network_of(program, topology, controller_of(host_stations={"h3": 200, "h4": 201}))
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=500, stop_s=0.4, payload_bytes=28))
    heard: list[bytes] = []
    network.add_frame_listener("h4", lambda _, frame: heard.append(frame))
    got: list[bytes] = []
    network.add_frame_listener("h2", lambda _, frame: got.append(frame))
    network.run(0.2)
    [context] = read_entries(network.clients["s2"], "ShorternetIngress.restore.ipv4_contexts")
    source, number = context.match["station"], context.match["context"]
    assert source == topology.switches["s1"].index and isinstance(number, int)
    receiver = topology.switches["s2"].index
    ip = bytes(IP(src="10.0.1.1", dst=str(topology.hosts["h2"].address.ip)) / UDP(dport=9) / Raw(bytes(40)))
    forged = [
        bytes((receiver, source, 253, 64)) + number.to_bytes(2, "big") + bytes((0x40, *check)) + bytes(60)
        for check in ((0, 0), (255, 255))
    ]
    forged += [bytes((receiver, other, 4, 64)) + ip for other in (0, source, receiver, 201)]
    forged.append(bytes((201, source, 99, 64)) + bytes(60))
    for frame in forged:
        network.send_frame("h3", frame)
    network.run(0.3)
    port = topology.attachment("h3").port
    assert refused(network.clients["s2"], port) == len(forged)
    assert network.clients["s2"].counter("ShorternetIngress.restore.wrong_context", 0)[0] == 0
    assert heard == [] and all(ip not in frame for frame in got)
    own = bytes((201, 200, 99, 64)) + bytes(60)
    network.send_frame("h3", own)
    network.run(1.0)
    assert [frame[4:] for frame in heard] == [own[4:]], "in its own name it may speak"
    assert refused(network.clients["s2"], port) == len(forged)
    found = network.statistics(flow)
    assert (found.sent, found.lost, found.duplicated) == (200, 0, 0)
