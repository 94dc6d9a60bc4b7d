"""Flows that run on while other verbs are obeyed, in a simulation. The live ones are in ``tests/live/test_run_live.py``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.router import RouterController, compile_router
from holdfast.console import Session, flows
from holdfast.errors import ConsoleError, HoldfastError
from holdfast.topologies import load


@pytest.fixture
def session() -> Iterator[Session]:
    network = SimulatedNetwork(
        load("ring:3"), compile_router(), [RouterController(reroute=False, reaction_delay_ms=1)], seed=1
    )
    with Session(network) as session:
        yield session


def test_flows_run_on_while_other_verbs_are_obeyed(session: Session) -> None:
    assert session.do("flows").text == "no flows; iperf h1 h2 & starts one"
    assert session.do("h1 ping h2 &").values == {"flow": 1}
    assert session.do("iperf h1 h3 udp 960kbps &").text == "flow 2: iperf h1 h3 udp 0.96Mbps"
    assert session.do("iperf h2 h3 1s &").values == {"flow": 3}
    assert session.do("h1 ping h2").ok
    session.do("wait 4s")
    said = session.do("flows")
    assert said.values == {"flows": 3, "running": 2}
    ping, udp, tcp = (flow.progress() for flow in session.flows.all())
    assert ping.sent == ping.arrived == ping.delayed
    assert 20 <= ping.sent <= 30
    assert 400 <= (udp.sent or 0) <= 600
    assert udp.arrived is not None and udp.payload_bits == 8 * 1200 * udp.arrived
    assert tcp.payload_bits > 1e8
    assert "flow 3: iperf h2 h3, ended" in said.text


def test_a_flow_stops_when_it_is_told(session: Session) -> None:
    session.do("iperf h1 h2 udp 1Mbps &")
    session.do("h1 ping h2 &")
    session.do("wait 1s")
    session.do("flow 1 stop")
    session.do("wait 2s")
    assert session.do("flows").values == {"flows": 2, "running": 1}
    before = session.flows.get(1).progress().sent
    session.do("wait 1s")
    assert session.flows.get(1).progress().sent == before
    session.do("flow 1 stop")
    session.do("iperf h1 h3 3s &")
    with pytest.raises(ConsoleError, match="a simulated TCP connection ends at its own time, in 3 s"):
        session.do("flow 3 stop")
    session.do("wait 5s")
    session.do("flow 3 stop")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("iperf h1 h1 &", "h1 sends nothing to itself over the network"),
        ("h1 ping h1 &", "h1 sends nothing to itself over the network"),
        ("flow 1 stop", "there is no flow '1'; the verb flows lists them"),
        ("flow x stop", "there is no flow 'x'; the verb flows lists them"),
        ("iperf h1 h2 udp &", "'&' is not a rate"),
    ],
)
def test_what_is_refused(session: Session, line: str, error: str) -> None:
    with pytest.raises(HoldfastError) as raised:
        session.do(line)
    assert str(raised.value).startswith(error)


def test_there_are_bounds(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "MOST_FLOWS", 2)
    session.do("iperf h1 h2 udp 1Mbps 100ms &")
    session.do("h1 ping h2 &")
    with pytest.raises(ConsoleError, match="2 flows run already"):
        session.do("h1 ping h2 &")
    session.do("wait 2s")
    assert session.do("flows").values["running"] == 1
    session.do("h1 ping h3 &")
    session.do("flow 2 stop")
    session.do("flow 3 stop")
    session.do("wait 2s")
    assert session.do("flows").text.count("\n") == 1, "of the ended ones the last two are kept"


def test_listeners_hear_each_line_that_was_obeyed(session: Session) -> None:
    heard: list[tuple[str, bool]] = []
    session.listeners.append(lambda line, result: heard.append((line, result.ok)))
    session.do("  h1 ping h2 -c 1 ")
    session.do("# nothing")
    with pytest.raises(ConsoleError):
        session.do("pnig")
    assert heard == [("h1 ping h2 -c 1", True)]
