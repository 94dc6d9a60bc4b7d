"""The path of a modelled host's echo requests: hop by hop, over routers that answer and that do not, and in one subnet."""

from __future__ import annotations

import pytest

from holdfast import SimulatedNetwork, Topology
from holdfast.apps.router import RouterController, compile_router
from holdfast.console import Session
from holdfast.console.echo import answer, request
from holdfast.errors import ConsoleError


def line(*, answers: bool = True, paced: bool = False) -> Session:
    topology = Topology("line")
    for name in ("s1", "s2", "s3"):
        topology.add_switch(name)
    for name, at in (("h1", "s1"), ("h2", "s3")):
        topology.add_host(name)
        topology.add_link(name, at, b_port=1)
    topology.add_link("s1", "s2", a_port=2, b_port=2, delay_ms=2)
    topology.add_link("s2", "s3", a_port=3, b_port=3, delay_ms=2)
    controller = RouterController(reroute=True, reaction_delay_ms=1, icmp_errors=answers)
    return Session(SimulatedNetwork(topology, compile_router({"ROUTER_ICMP": "1"}), [controller], seed=1), paced=paced)


@pytest.mark.parametrize("paced", [False, True])
def test_a_path_of_routers(paced: bool) -> None:
    with line(paced=paced) as session:
        result = session.do("h1 traceroute h2")
        rows = [row.split() for row in result.text.splitlines()]
        assert [row[1] for row in rows] == ["10.0.1.254", "10.255.0.2", "10.255.0.3", "10.0.2.1"]
        assert result.ok
        assert result.values == {"hops": 4}
        times = [float(row[2]) for row in rows]
        assert times[0] < 4 < times[1] < 8 < times[2]
        assert 8 < times[3] < 9
        assert not session.do("h1 sniff 10ms").ok, "the answers are nobody else's"


def test_routers_that_do_not_answer() -> None:
    with line(answers=False) as session:
        result = session.do("h1 traceroute h2")
        assert [row.split()[1] for row in result.text.splitlines()] == ["*", "*", "*", "10.0.2.1"]
        session.do("link s2-s3 down")
        result = session.do("h1 traceroute h2")
        assert not result.ok
        assert result.values == {"hops": 5}
        with pytest.raises(ConsoleError, match="h1 has no path to itself"):
            session.do("h1 traceroute h1")


def test_a_subnet_has_one_hop() -> None:
    topology = Topology("lan")
    topology.add_switch("lan", kind="bridge")
    for number in (1, 2):
        topology.add_host(f"h{number}", f"10.0.0.{number}/24", vlan=5)
        topology.add_link(f"h{number}", "lan")
    topology.add_host("far", "10.9.0.1/24")
    topology.add_link("far", "lan")
    with Session(SimulatedNetwork(topology, {}, seed=1)) as session:
        assert session.do("h1 traceroute h2").values == {"hops": 1}
        with pytest.raises(ConsoleError, match="h1 does not know the MAC address of its gateway"):
            session.do("h1 traceroute far")


def test_what_is_no_answer() -> None:
    topology = line().topology
    frame = request(topology, "h1", "h2", 7)
    assert answer(frame, 7) is None, "a request"
    for size in range(len(frame)):
        assert answer(frame[:size], 7) is None
