"""A link and a switch fail under a multicast stream of 10,000 packets/s to 20 kernel receivers: what that costs, to the packet.

BIER-FRR on port state loses what is on the wire and what comes until detection; 1+1 BIER loses nothing. No controller reacts. The
machine says how long a packet takes: a lost one must have been sent before the failure by no more than the slowest packet around it
took, and after the detection by no more than that. A run with a slow packet is made again, some times.
"""

from __future__ import annotations

import pytest

from holdfast.apps.bier import BierController, channel
from holdfast.apps.bier.program import compile_bier
from holdfast.experiments.bier_tofino_2021 import live_stream
from holdfast.experiments.bier_tofino_2021.live_stream import Observed, Stream
from holdfast.network import LiveNetwork
from holdfast.topology import Topology

RATE = 10_000
DETECTION_MS = 2.0
EDGES, RECEIVERS = 5, 20
ATTEMPTS, AROUND_NS = 5, 20_000_000
RECEIVING = [f"h{number}" for number in range(1, RECEIVERS + 1)]
STREAM = Stream("232.1.1.1", "source", RECEIVING, 10**9 // RATE, payload_bytes=64, before_s=0.3, after_s=0.3)


def two_cores() -> Topology:
    """Return a topology of a source at s, switches a and b behind s, and five switches with four receivers each behind both."""
    topology = Topology("two-cores")
    for switch in ("s", "a", "b", *(f"e{number}" for number in range(1, EDGES + 1))):
        topology.add_switch(switch)
    topology.add_host("source")
    topology.add_link("source", "s", rate_bps=10**9)
    for core in ("a", "b"):
        topology.add_link("s", core, rate_bps=10**9, delay_ms=0.1, cost=1 if core == "a" else 2)
        for number in range(1, EDGES + 1):
            topology.add_link(core, f"e{number}", rate_bps=10**9, delay_ms=0.1)
    for number, name in enumerate(RECEIVING):
        topology.add_host(name)
        topology.add_link(f"e{1 + number % EDGES}", name, rate_bps=10**9)
    return topology


def observe(failure: str, *, one_plus_one: bool) -> Observed:
    """Return the first run that the machine did not slow down, or the last one.

    With ``one_plus_one`` the first run counts, as its losses do not depend on how long packets take.
    """
    program = compile_bier(one_plus_one=one_plus_one)
    for _ in range(ATTEMPTS):
        topology = two_cores()
        controller = BierController(
            {channel(STREAM.group, str(topology.hosts["source"].address.ip)): RECEIVING},
            ip_delay_ms=0,
            bier_delay_ms=0,
            frr="none" if one_plus_one else "tunnel",
            protect="link" if one_plus_one else "node",
            reroute=False,
            one_plus_one=one_plus_one,
        )

        def fail(network: LiveNetwork, at_s: float, is_node: bool = failure in topology.switches) -> None:
            (network.set_node if is_node else network.set_link)(failure, up=False, at_s=at_s)

        found = live_stream.observe(topology, program, controller, STREAM, fail, detection_ms=DETECTION_MS)
        if one_plus_one or found.longest_ns(AROUND_NS) < 1_000_000:
            break
    return found


def behind(failure: str) -> list[str]:
    """Return the receivers whose path crosses the switch or link that fails."""
    return [name for number, name in enumerate(RECEIVING) if failure in ("a", f"a-e{1 + number % EDGES}")]


@pytest.mark.parametrize("failure", ["a-e1", "a"])
def test_fast_reroute_loses_what_comes_until_detection(failure: str) -> None:
    found = observe(failure, one_plus_one=False)
    detected_ns = found.failure_ns + round(DETECTION_MS * 1e6)
    longest_ns = found.longest_ns(AROUND_NS)
    first_ns, last_ns = found.failure_ns - longest_ns, detected_ns + longest_ns
    window = [number for number, sent_ns in enumerate(found.sent_ns) if first_ns <= sent_ns <= last_ns]
    # What was sent well before the detection cannot have been repaired.
    last_ns = detected_ns - longest_ns
    certain = [number for number in window if found.failure_ns <= found.sent_ns[number] <= last_ns]
    for host in RECEIVING:
        numbers = [number for number, _ in found.arrivals[host]]
        assert len(numbers) == len(set(numbers)), f"{host} got packets twice"
        assert numbers == sorted(numbers), f"{host} got packets in another order"
        lost = found.lost(host)
        if host in behind(failure):
            assert set(certain) <= set(lost) <= set(window), f"{host}: {lost}, not within {window}"
        else:
            assert lost == [], f"{host} is not behind {failure}"


@pytest.mark.parametrize("failure", ["a-e1", "a"])
def test_1_plus_1_loses_doubles_and_overtakes_nothing(failure: str) -> None:
    found = observe(failure, one_plus_one=True)
    for host in RECEIVING:
        assert [number for number, _ in found.arrivals[host]] == list(range(STREAM.count)), host
