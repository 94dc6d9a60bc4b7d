"""Snapshots of a simulated network: states, rates from counters, flows' curves and losses, and how soon a change is seen."""

from __future__ import annotations

import dataclasses
import json
import queue
import time

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.router import RouterController, compile_router
from holdfast.console import Session
from holdfast.console.flows import Progress
from holdfast.topologies import load
from holdfast.web.snapshot import WINDOW_S, LinkState, Snapshot, Watcher, _FlowPast


def session() -> Session:
    network = SimulatedNetwork(
        load("ring:3"), compile_router(), [RouterController(reroute=False, reaction_delay_ms=1)], seed=1
    )
    return Session(network)


def link(snapshot: Snapshot, name: str) -> LinkState:
    (found,) = [each for each in snapshot.links if each.name == name]
    return found


def looked(watcher: Watcher, live: Session, times: int, step: str = "500ms") -> Snapshot:
    """Let time pass and look, as the watcher's thread does."""
    for _ in range(times):
        live.do(f"wait {step}")
        watcher.latest = watcher.look()
    return watcher.latest


def test_rates_and_losses_are_differences_of_counters() -> None:
    with session() as live:
        watcher = Watcher(live)
        live.do("link s1-s2 rate 10Mbps")
        live.do("iperf h1 h2 udp 2Mbps &")
        watcher.demand()
        state = link(looked(watcher, live, 4), "s1-s2")
        assert state.up
        # 1200 bytes of payload, 28 of IP and UDP, 18 of Ethernet, 20 of the physical layer
        assert state.there.bps == pytest.approx(2e6 * 1266 / 1200, rel=0.02)
        assert state.there.load == pytest.approx(0.211, abs=0.01)
        assert state.back.bps == 0
        assert state.lost_per_s == 0
        live.do("link s1-s2 rate 1Mbps")
        live.do("link s1-s2 delay 7ms")
        watcher.demand()
        looked(watcher, live, 4)
        state = link(looked(watcher, live, 4), "s1-s2")
        assert state.there.load == pytest.approx(1.0, abs=0.02)
        assert state.lost_per_s == pytest.approx(104, rel=0.2)
        assert (state.there.rate_bps, state.there.delay_ms) == (1e6, 7.0)


def test_a_flow_has_goodput_latency_and_loss_of_the_last_minute() -> None:
    with session() as live:
        watcher = Watcher(live)
        for line in ("iperf h1 h2 udp 1Mbps &", "h1 ping h2 &", "iperf h2 h3 4s &"):
            live.do(line)
        udp, ping, tcp = looked(watcher, live, 6).flows
        assert udp.goodput_bps == pytest.approx(1e6, rel=0.03)
        assert udp.delay_ms is not None and 1 < udp.delay_ms < 4
        assert (udp.loss, ping.loss) == (0, 0)
        assert ping.goodput_bps is None
        assert ping.delay_ms is not None and 2 < ping.delay_ms < 6
        assert tcp.goodput_bps is not None and tcp.goodput_bps > 1e8
        live.do("link s1-s2 loss 20%")
        udp, ping, _ = looked(watcher, live, 20).flows
        losses = [point.loss for point in watcher.past(1)[-14:] if point.loss is not None]
        assert sum(losses) / len(losses) == pytest.approx(0.2, abs=0.05)
        live.do("link s1-s2 loss 0")
        live.do("link s1-s2 down")
        udp, ping, _ = looked(watcher, live, 6).flows
        assert (udp.goodput_bps, udp.loss, ping.loss) == (0, 1, 1)
        assert udp.delay_ms is None
        live.do("link s1-s2 up")
        udp, ping, _ = looked(watcher, live, 6).flows
        assert udp.goodput_bps == pytest.approx(1e6, rel=0.03)
        assert (udp.loss, ping.loss) == (0, 0)
        looked(watcher, live, 130)
        points = watcher.past(1)
        assert points[-1].time_s - points[0].time_s == pytest.approx(WINDOW_S, abs=1)
        assert watcher.past(99) == []


def test_an_ended_flow_goes_after_a_minute() -> None:
    with session() as live:
        watcher = Watcher(live)
        live.do("iperf h1 h2 udp 1Mbps 1s &")
        (flow,) = looked(watcher, live, 8).flows
        assert not flow.runs
        assert flow.goodput_bps is None
        assert watcher.past(1)
        assert looked(watcher, live, 140).flows == ()
        assert watcher.past(1) == []


def test_a_snapshot_is_json() -> None:
    with session() as live:
        watcher = Watcher(live)
        live.do("h1 ping h2 &")
        live.do("link s1-s2 down")
        text = json.dumps(dataclasses.asdict(looked(watcher, live, 3)), allow_nan=False)
        assert json.loads(text)["links"][0]["up"] is False


def test_a_change_is_told_at_once_whoever_makes_it() -> None:
    network = SimulatedNetwork(
        load("ring:3"), compile_router(), [RouterController(reroute=True, reaction_delay_ms=1)], seed=1
    )
    with Session(network, paced=True) as live, Watcher(live) as watcher:
        told: queue.Queue[Snapshot] = queue.Queue()
        watcher.listen(told.put)
        told.get(timeout=60)
        took_s = []
        for up in (False, True) * 3:
            with live.clock.held():
                network.set_link("s1-s2", up=up)
            began_s = time.monotonic()
            while link(told.get(timeout=60), "s1-s2").up is not up:
                pass
            took_s.append(time.monotonic() - began_s)
        assert min(took_s) < 0.5, took_s


def test_what_goes_wrong_in_one_listener_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    network = SimulatedNetwork(load("ring:3"), compile_router(), seed=1)
    with Session(network, paced=True) as live, Watcher(live) as watcher:
        told: queue.Queue[Snapshot] = queue.Queue()
        watcher.listen(lambda snapshot: told.put(snapshot) or 1 / 0)  # type: ignore[func-returns-value]
        assert told.get(timeout=60).time_s < told.get(timeout=60).time_s
    assert "is not new" in caplog.text


def test_packets_under_way_are_not_lost() -> None:
    """Over a long way, many packets are always under way: at the start of a flow, too."""
    with session() as live:
        watcher = Watcher(live)
        live.do("link s1-s2 delay 150ms")
        live.do("iperf h1 h2 udp 5Mbps &")
        live.do("h1 ping h2 &")
        for _ in range(12):
            for flow in looked(watcher, live, 1, step="300ms").flows:
                assert flow.loss in (None, 0), flow
        live.do("link s1-s2 loss 10%")
        looked(watcher, live, 12)
        losses = [point.loss for point in watcher.past(1)[-8:] if point.loss is not None]
        assert sum(losses) / len(losses) == pytest.approx(0.1, abs=0.04)


def test_the_loss_of_a_silent_receiver_is_not_known() -> None:
    """The receiver reports a loss, and then nothing more, as behind a link that was cut."""
    past = _FlowPast()
    said = [past.add(at / 2, Progress(sent=100 * at, arrived=90 * at), "udp").loss for at in range(1, 9)]
    assert said[-1] == pytest.approx(0.1, abs=0.02)
    later = [past.add(4 + at / 2, Progress(sent=800, arrived=720), "udp").loss for at in range(1, 9)]
    assert later[-3:] == [None] * 3
