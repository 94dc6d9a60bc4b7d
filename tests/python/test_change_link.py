"""Changes of a link's rate, delay, loss and jitter while the network runs, as users ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import HoldfastError, Jitter, SimulatedNetwork, Topology, UdpStream
from holdfast.apps.router import RouterController, compile_router
from holdfast.link import Queueing
from holdfast.measurements import ReceivedLog


def network(queueing: Queueing | None = None, **parameters: Any) -> SimulatedNetwork:
    """Build a network of h1 and h2 at s1, whose link to h2 has these parameters."""
    topology = Topology("one")
    for host in ("h1", "h2"):
        topology.add_host(host)
    topology.add_switch("s1", queueing=queueing)
    topology.add_link("h1", "s1")
    topology.add_link("s1", "h2", **parameters)
    return SimulatedNetwork(topology, compile_router(), [RouterController(reroute=False, reaction_delay_ms=0)])


def stream(packets_per_s: float, stop_s: float = 1.0) -> UdpStream:
    """Return a stream of frames of 1,000 bytes, each 8,192 bits on the wire."""
    return UdpStream(source="h1", destination="h2", packets_per_s=packets_per_s, payload_bytes=958, stop_s=stop_s)


def latencies_ms(log: ReceivedLog) -> list[float]:
    return [round((there - sent) / 1e9, 3) for sent, there in zip(log.sent_ps, log.received_ps, strict=True)]


def test_rate_and_delay_change_at_their_times() -> None:
    simulated = network(rate_bps=8.192e6, delay_ms=5)
    flow = simulated.add(stream(10))
    simulated.change_link("s1-h2", delay_ms=20, at_s=0.25)
    simulated.change_link("s1-h2", rate_bps="819.2e3", at_s=0.55)
    simulated.change_link("h2-s1", delay_ms=0, one_way=True, at_s=0.65)
    simulated.run(0.75)
    simulated.change_link("s1-h2", rate_bps=8_192_000, delay_ms=0)
    simulated.run(2)
    first_link_ms = 0.008
    expected = [6.0] * 3 + [21.0] * 3 + [30.0] * 2 + [1.0] * 2
    assert latencies_ms(simulated.received(flow)) == pytest.approx([it + first_link_ms for it in expected], abs=0.002)


def test_losses_and_jitter_come_and_go() -> None:
    simulated = network()
    flow = simulated.add(stream(1000, stop_s=0.4))
    simulated.change_link("s1-h2", loss=1, at_s=0.1)
    simulated.change_link("s1-h2", loss={"model": "gilbert_elliott", "p": 1, "r": 1}, at_s=0.2)
    simulated.change_link("s1-h2", loss=0, jitter={"distribution": "trace", "delays_ms": [0, 3]}, at_s=0.3)
    simulated.change_link("s1-h2", jitter=Jitter(distribution="none"), at_s=0.35)
    simulated.run(1)
    log = simulated.received(flow)
    arrived = sorted(log.sequence)
    assert [number for number in arrived if number <= 100] == list(range(100 + (100 in arrived)))
    assert len([number for number in arrived if 200 < number <= 300]) == 50
    assert [number for number in arrived if number > 300] == list(range(301, 400))
    order = list(log.sequence)
    late = [number for number in order[order.index(301) :] if number > 300]
    assert late != sorted(late), "with jitter packets overtake"
    assert late[-40:] == list(range(360, 400)), "without it none does"


@pytest.mark.parametrize("queueing", [None, Queueing(mode="traffic_manager", queues=2)])
def test_queues_keep_their_packets(queueing: Queueing | None) -> None:
    simulated = network(queueing, rate_bps=819_200, queue_packets=200)
    flow = simulated.add(stream(1000, stop_s=0.1))
    simulated.run(0.1)
    waiting = simulated.link_counters("s1-h2").a_to_b
    assert waiting.packets <= 11
    simulated.change_link("s1-h2", rate_bps=81.92e6)
    # The packet that is being sent takes 10 ms in all; the others 0.1 ms each.
    simulated.run(0.12)
    counters = simulated.link_counters("s1-h2").a_to_b
    assert (counters.delivered, counters.queue_drops) == (100, 0)
    assert list(simulated.received(flow).sequence) == list(range(100))
    simulated.change_link("s1-h2", rate_bps=8_192)
    simulated.add(stream(1000, stop_s=0.15).model_copy(update={"start_s": 0.13}))
    simulated.run(10.2)
    assert simulated.link_counters("s1-h2").a_to_b.packets == 100 + 11


def test_a_shorter_delay_lets_no_packet_overtake() -> None:
    simulated = network(delay_ms=100)
    flow = simulated.add(stream(1000, stop_s=0.1))
    simulated.change_link("s1-h2", delay_ms=1, at_s=0.05)
    simulated.run(1)
    log = simulated.received(flow)
    assert list(log.sequence) == list(range(100))
    # Number 49 is under way when the delay changes; 50 to 99 would be there before it.
    assert len(set(log.received_ps[49:])) == 1
    assert latencies_ms(log)[49] == pytest.approx(100, abs=0.1)


def test_lookahead_sees_no_difference() -> None:
    found = []
    for lookahead in (True, False):
        simulated = network(delay_ms=2, rate_bps=5e6)
        # Zero: nobody may look ahead; events of one instant have the same order as with lookahead.
        simulated._core.set_reaction(None if lookahead else 0)
        flow = simulated.add(stream(500, stop_s=0.5))
        for step in range(40):
            at_s = 0.0101 * step
            simulated.change_link("s1-h2", delay_ms=(step * 7) % 5, rate_bps=(1 + step % 6) * 1_000_000, at_s=at_s)
            simulated.change_link("h1-s1", delay_ms=(step * 3) % 4, at_s=at_s)
        simulated.run(3)
        found.append((simulated.received(flow), simulated.link_counters("s1-h2")))
    assert found[0] == found[1]


def test_a_trace_of_losses_may_be_a_file(tmp_path: Path) -> None:
    trace = tmp_path / "lost.txt"
    trace.write_text("01")
    simulated = network()
    flow = simulated.add(stream(100))
    simulated.change_link("s1-h2", loss={"model": "trace", "file": str(trace), "repeat": True}, at_s=0.5)
    simulated.run(2)
    assert len(simulated.received(flow).sequence) == 75


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "^link s1-h2: give one of rate_bps, delay_ms, loss, jitter$"),
        ({"rate_bps": 0}, "rate_bps: Input should be greater than 0"),
        ({"rate_bps": 1.5}, "rate_bps: "),
        ({"delay_ms": -1}, "delay_ms: Input should be greater than or equal to 0"),
        ({"delay_ms": float("inf")}, "delay_ms: "),
        ({"delay_ms": True}, "delay_ms: .*a number is expected"),
        ({"loss": 2}, "loss.probability: Input should be less than or equal to 1"),
        ({"loss": {"model": "fire"}}, "model must be one of"),
        ({"jitter": {"distribution": "none", "high_ms": 1}}, "high_ms does not belong to the distribution none"),
        ({"delay_ms": 1, "at_s": -1}, "at_s is -1; it cannot be negative"),
        ({"loss": {"model": "trace", "file": "/nowhere/lost"}}, "^loss trace /nowhere/lost: No such file"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    simulated = network()
    with pytest.raises(HoldfastError, match=message) as caught:
        simulated.change_link("s1-h2", **change)
    assert "\n" not in str(caught.value)
    with pytest.raises(HoldfastError, match="there is no link 's1-h9'"):
        simulated.change_link("s1-h9", delay_ms=1)
