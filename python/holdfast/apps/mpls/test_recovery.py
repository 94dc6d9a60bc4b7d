"""Every mechanism on the paper's network (section 8), packet by packet: losses, delays, and their end.

The link in the middle fails at 0.5 s and is repaired at 1 s. At 10 Gb/s a packet takes a microsecond to send, so times are
those of propagation, of which the expectations are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import pytest

from holdfast import SimulatedNetwork, UdpStream
from holdfast._core import Program
from holdfast.apps.mpls import Connection, Lsp, Mechanism, MplsController, Recovery, add_port_events
from holdfast.experiments.gmpls_tcp_2001.topology import (
    CASES,
    FAILING_LINK,
    Case,
    Parameters,
    Scenario,
    case_study,
    rtt_change,
)
from holdfast.parameters import PS_PER_MS
from holdfast.topology import Topology

DETECTION_MS = 10.0
FAILURE_MS, REPAIR_MS, END_MS = 500, 1000, 1600
PACKETS_PER_MS = 4
PARAMETERS = Parameters(access_delays_ms=[10], backbone_bps=10_000_000_000, buffer_packets=10_000)

MECHANISMS = [m for m in Mechanism if m != Mechanism.NONE]


@dataclass
class Flow:
    """A stream's received packets, in order of arrival: sequence numbers, and by sequence number sending time and delay in ms."""

    arrivals: list[int]
    sent_ms: dict[int, float]
    delay_ms: dict[int, float]
    total: int

    @cached_property
    def lost(self) -> list[int]:
        return [k for k in range(self.total) if k not in self.delay_ms]

    def reordered(self) -> int:
        """Return how many packets arrived after a packet that was sent later."""
        highest, count = -1, 0
        for k in self.arrivals:
            count += k < highest
            highest = max(k, highest)
        return count

    def delays(self, begin_ms: float, end_ms: float) -> list[float]:
        """Return the delays in ms of the packets sent from ``begin_ms`` to ``end_ms``."""
        return [delay for k, delay in self.delay_ms.items() if begin_ms <= self.sent_ms[k] < end_ms]


class Run:
    """A scenario with a stream each way, run to its end."""

    def __init__(self, program: Program, scenario: Scenario, *, repair: bool = True, one_way: bool = False) -> None:
        self.controller = MplsController(connections=scenario.connections)
        self.network = SimulatedNetwork(scenario.topology, program, [self.controller], detection_delay_ms=DETECTION_MS)
        self.flow_ids = [
            self.network.add(
                UdpStream(
                    source=a,
                    destination=b,
                    packets_per_s=PACKETS_PER_MS * 1000,
                    payload_bytes=100,
                    stop_s=END_MS / 1000,
                )
            )
            for a, b in ((scenario.sources[0], scenario.sink), (scenario.sink, scenario.sources[0]))
        ]
        self.network.set_link(FAILING_LINK, up=False, at_s=FAILURE_MS / 1000, one_way=one_way)
        if repair:
            self.network.set_link(FAILING_LINK, up=True, at_s=REPAIR_MS / 1000, one_way=one_way)

    def finish(self) -> tuple[Flow, Flow]:
        self.network.run(END_MS / 1000 + 1)
        forth, back = (self.flow(i) for i in self.flow_ids)
        return forth, back

    def flow(self, flow_id: int) -> Flow:
        log = self.network.received(flow_id)
        sequence, sent, received = log.sequence, log.sent_ps, log.received_ps
        total = len(self.network.sent(flow_id).sequence)
        assert len(set(sequence)) == len(sequence), "no packet arrives twice"
        rows = zip(sequence, sent, received, strict=True)
        delay_ms = {k: (there - here) / PS_PER_MS for k, here, there in rows}
        sent_ms = {k: here / PS_PER_MS for k, here in zip(sequence, sent, strict=True)}
        return Flow(list(sequence), sent_ms, delay_ms, total)

    @property
    def lsps(self) -> tuple[Lsp, Lsp]:
        forth, back = list(self.controller.lsps.values())[:2]
        return forth, back


def about(delays: list[float], expected_ms: float) -> bool:
    """Return True if all delays are ``expected_ms``, within the 0.02 ms that the packets' length adds at the links."""
    return bool(delays) and all(abs(delay - expected_ms) < 0.02 for delay in delays)


def near(count: int, expected_ms: float) -> bool:
    """Return True if ``count`` is the number of packets sent in ``expected_ms``, give or take one."""
    return abs(count - expected_ms * PACKETS_PER_MS) <= 1


def one_way(mechanism: Mechanism, case: Case, *, forth: bool) -> tuple[float, float]:
    """Return the expected (loss, extra delay) in ms of one direction, by Table 8 and the packets on the failed link.

    With some mechanisms packets are lost that reach the link before the ingress has switched.
    """
    upstream = case.a if forth else case.c
    loss = DETECTION_MS + case.b
    if mechanism == Mechanism.LOCAL:
        return loss, case.dl
    if mechanism == Mechanism.PATH:
        return loss + 2 * upstream, case.dp
    if mechanism == Mechanism.LOOPBACK:
        return loss, case.dp + 2 * upstream
    return loss, case.dp


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_loss_and_delay_are_those_of_table_8(program: Program, mechanism: Mechanism, case: Case) -> None:
    run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism)))
    extra_round_trip = 0.0
    for flow, forth in zip(run.finish(), (True, False), strict=True):
        base = 10 + 1 + case.a + case.b + case.c + 1
        loss, extra = one_way(mechanism, case, forth=forth)
        assert near(len(flow.lost), loss)
        assert flow.lost == list(range(flow.lost[0], flow.lost[-1] + 1)), "one burst"
        assert about(flow.delays(0, 400), base)
        assert about(flow.delays(800, 900), base + extra)
        assert about(flow.delays(1400, 1600), base)
        extra_round_trip += extra
    expected = {
        Mechanism.LOCAL: 2 * case.dl,
        Mechanism.PATH: 2 * case.dp,
        Mechanism.LOOPBACK: 2 * case.dp + 2 * case.a + 2 * case.c,
        Mechanism.LOOPBACKVAR: 2 * case.dp,
    }
    assert extra_round_trip == expected[mechanism]
    assert run.controller.on_backup(run.lsps[0]) == run.controller.on_backup(run.lsps[1]) == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_loopbackvar_loops_until_the_notice_is_there(program: Program, case: Case) -> None:
    run = Run(program, case_study(PARAMETERS, case, Recovery(Mechanism.LOOPBACKVAR)))
    forth, _ = run.finish()
    statistics = run.controller.statistics(run.lsps[0])
    # From the detection on, at LSR1: the packets that LSR0 sent until it was told, a link's delay later, twice.
    assert near(statistics.looped, 2 * case.a)
    looped = [d for d in forth.delay_ms.values() if abs(d - (63 + case.dp + 2 * case.a)) < 0.02]
    assert len(looped) == statistics.looped
    # They are overtaken by what the ingress then sends itself.
    assert forth.reordered() > 0
    assert (statistics.notices_sent, statistics.notices_received) == (2, 2)
    assert statistics.switchovers == {"LSR0": 1, "LSR1": 1}


def test_the_order_is_kept_until_the_path_gets_shorter(program: Program) -> None:
    case = CASES["B"]
    for mechanism in (Mechanism.LOCAL, Mechanism.PATH, Mechanism.LOOPBACK):
        run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism)), repair=False)
        for flow in run.finish():
            assert flow.reordered() == 0
        run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism)))
        for flow, forth in zip(run.finish(), (True, False), strict=True):
            assert near(flow.reordered(), one_way(mechanism, case, forth=forth)[1])


def test_without_recovery_all_is_lost_until_the_repair(program: Program) -> None:
    run = Run(program, case_study(PARAMETERS, CASES["A"], Recovery()))
    for flow in run.finish():
        assert near(len(flow.lost), REPAIR_MS - FAILURE_MS + CASES["A"].b)
    assert run.controller.statistics(run.lsps[0]).backup == {}


def test_the_controller_has_no_part_in_it(program: Program) -> None:
    """With a controller that would take a minute to react, nothing is different."""
    case = CASES["C"]
    for mechanism in MECHANISMS:
        run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism)))
        run.controller.reaction_delay_ps = 60_000 * PS_PER_MS
        for flow, forth in zip(run.finish(), (True, False), strict=True):
            assert near(len(flow.lost), one_way(mechanism, case, forth=forth)[0])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_not_revertive(program: Program, mechanism: Mechanism) -> None:
    case = CASES["B"]
    run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism, revertive=False)))
    for flow, forth in zip(run.finish(), (True, False), strict=True):
        loss, extra = one_way(mechanism, case, forth=forth)
        assert near(len(flow.lost), loss)
        assert about(flow.delays(1400, 1600), 63 + extra)
    switching = {Mechanism.LOCAL: "LSR1", Mechanism.LOOPBACK: "LSR1"}.get(mechanism, "LSR0")
    assert switching in run.controller.on_backup(run.lsps[0])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wait_to_restore(program: Program, mechanism: Mechanism) -> None:
    """The node that switches waits 200 ms after it has found the link repaired, or was told so."""
    case = CASES["B"]
    run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism, wait_to_restore_ms=200)))
    for flow, forth in zip(run.finish(), (True, False), strict=True):
        _, extra = one_way(mechanism, case, forth=forth)
        upstream = case.a if forth else case.c
        entry = 11 if forth else 1  # from the source to the ingress
        told = mechanism.notifies
        found_ms = REPAIR_MS + DETECTION_MS + (upstream if told else -upstream) - entry
        assert about(flow.delays(found_ms - 100, found_ms + 199), 63 + extra)
        assert about(flow.delays(found_ms + 201, END_MS), 63)
        assert near(len(flow.lost), one_way(mechanism, case, forth=forth)[0])


# ---- Merge points that take one input at a time ----


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("mechanism", [Mechanism.LOCAL, Mechanism.PATH, Mechanism.LOOPBACK])
def test_optical_switch_back(program: Program, mechanism: Mechanism, case: Case) -> None:
    """Packets still on the backup when the first packet comes on the primary again are discarded (section 7)."""
    run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism, merge_capable=False)))
    for flow, lsp, forth in zip(run.finish(), run.lsps, (True, False), strict=True):
        loss, extra = one_way(mechanism, case, forth=forth)
        discarded = sum(run.controller.statistics(lsp).discarded.values())
        assert near(discarded, extra)
        assert abs(len(flow.lost) - discarded - loss * PACKETS_PER_MS) <= 1
        assert flow.reordered() == 0
        assert about(flow.delays(800, 900), 63 + extra)
        assert about(flow.delays(1400, 1600), 63)
        merge_point = lsp.path[2] if mechanism == Mechanism.LOCAL else lsp.egress
        assert set(run.controller.statistics(lsp).discarded) == {merge_point}
        state = run.controller.clients[merge_point].register("MplsIngress.merge_point.backup_selected", lsp.number)
        assert state == 0


def test_optical_not_revertive_discards_nothing(program: Program) -> None:
    for mechanism in (Mechanism.LOCAL, Mechanism.PATH, Mechanism.LOOPBACK):
        recovery = Recovery(mechanism, revertive=False, merge_capable=False)
        run = Run(program, case_study(PARAMETERS, CASES["B"], recovery))
        for flow, lsp, forth in zip(run.finish(), run.lsps, (True, False), strict=True):
            assert run.controller.statistics(lsp).discarded == {}
            assert near(len(flow.lost), one_way(mechanism, CASES["B"], forth=forth)[0])


@pytest.mark.parametrize("d_ms", [1, 2, 10, 100])
def test_the_network_of_section_7(program: Program, d_ms: float) -> None:
    """Optical loses d - 1 ms of packets at the switch-back, electrical none: it reorders them."""
    for merge_capable in (True, False):
        recovery = Recovery(Mechanism.LOCAL, merge_capable=merge_capable)
        run = Run(program, rtt_change(PARAMETERS, d_ms, recovery=recovery))
        for flow in run.finish():
            discarded = 0 if merge_capable else d_ms - 1
            assert abs(len(flow.lost) - (DETECTION_MS + 1 + discarded) * PACKETS_PER_MS) <= 2
            assert near(flow.reordered(), d_ms - 1 if merge_capable else 0)
            assert about(flow.delays(800, 900), 15 + d_ms - 1)


# ---- Other failures ----


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_one_direction_fails(program: Program, mechanism: Mechanism) -> None:
    """LSR1 has a signal all the time; its neighbour tells it, over the direction that works."""
    case = CASES["B"]
    run = Run(program, case_study(PARAMETERS, case, Recovery(mechanism)), one_way=True)
    controller = run.controller
    run.network.run(0.9)
    defect = "MplsIngress.remote_defect.remote_defect"
    port = run.network.topology.port_towards("LSR1", "LSR2")
    assert controller.clients["LSR1"].register(defect, port) == 1
    run.network.run(END_MS / 1000)
    assert controller.clients["LSR1"].register(defect, port) == 0
    forth, back = run.finish()
    loss, extra = one_way(mechanism, case, forth=True)
    assert near(len(forth.lost), loss + case.b)
    assert about(forth.delays(800, 900), 63 + extra)
    assert about(forth.delays(1400, 1600), 63)
    assert back.lost == [], "that direction works until its traffic is switched"
    assert about(back.delays(800, 900), 63 + one_way(mechanism, case, forth=False)[1])
    assert about(back.delays(1400, 1600), 63)


def chain(length: int) -> Topology:
    """Build a ladder: s1 to s<length> with links of 1 ms, and beside it t2 to t<length-1> with links of 2 ms.

    There are rungs between the rows, and hosts at the ends of the first one.
    """
    topology = Topology("ladder")
    topology.add_host("h1")
    topology.add_host("h2")
    link = {"rate_bps": 10_000_000_000}
    row = [f"s{i}" for i in range(1, length + 1)]
    beside = [f"t{i}" for i in range(2, length)]
    for name in [*row, *beside]:
        topology.add_switch(name)
    topology.add_link("h1", "s1", **link)
    topology.add_link(f"s{length}", "h2", **link)
    for a, b in pairwise(row):
        topology.add_link(a, b, delay_ms=1, cost=1, **link)
    second = ["s1", *beside, f"s{length}"]
    for a, b in pairwise(second):
        topology.add_link(a, b, delay_ms=2, cost=2, **link)
    for i in range(2, length):
        topology.add_link(f"s{i}", f"t{i}", delay_ms=1, cost=2, **link)
    add_port_events(topology)
    return topology


def ladder(
    program: Program, recovery: Recovery, failures: list[tuple[str, float, float]], executor: str = "jit"
) -> tuple[SimulatedNetwork, MplsController, int]:
    controller = MplsController(connections=[Connection("h1", "h2", recovery=recovery)])
    network = SimulatedNetwork(
        chain(6),
        program,
        [controller],
        detection_delay_ms=2,
        executor=executor,  # type: ignore[arg-type]
    )
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=4000, payload_bytes=100, stop_s=1))
    for link, down_s, up_s in failures:
        network.set_link(link, up=False, at_s=down_s)
        network.set_link(link, up=True, at_s=up_s)
    network.run(2)
    return network, controller, flow


@pytest.mark.parametrize("hop", range(5))
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_link_of_a_longer_path(program: Program, mechanism: Mechanism, hop: int) -> None:
    network, controller, flow = ladder(program, Recovery(mechanism), [(f"s{hop + 1}-s{hop + 2}", 0.3, 0.6)])
    statistics = network.statistics(flow)
    loss_ms = 2 + 1 + (2 * hop if mechanism == Mechanism.PATH else 0)
    assert near(int(statistics.lost or 0), loss_ms)
    lsp = controller.lsps[1]
    assert lsp.path == [f"s{i}" for i in range(1, 7)]
    counted = controller.statistics(lsp)
    assert counted.offered_packets == 4000
    at = "s1" if mechanism == Mechanism.PATH else f"s{hop + 1}"
    assert counted.switchovers[at] == 1
    assert controller.on_backup(lsp) == []
    assert (counted.looped > 0) == (mechanism.loops and hop > 0)


def late_ms(network: SimulatedNetwork, flow: int) -> list[float]:
    """Return the times at which those packets were sent, in ms, whose delay was more than 8 ms, as they took the longer path."""
    log = network.received(flow)
    sent, received = log.sent_ps, log.received_ps
    return [here / PS_PER_MS for here, there in zip(sent, received, strict=True) if there - here > 8 * PS_PER_MS]


@pytest.mark.parametrize("mechanism", [Mechanism.PATH, Mechanism.LOOPBACKVAR])
def test_back_only_when_all_failures_are_repaired(program: Program, mechanism: Mechanism) -> None:
    failures = [("s4-s5", 0.2, 0.6), ("s2-s3", 0.3, 0.4)]
    network, controller, flow = ladder(program, Recovery(mechanism), failures)
    late = late_ms(network, flow)
    assert min(late) < 210
    assert 600 < max(late) < 610
    assert len(late) > 0.99 * (max(late) - min(late)) * PACKETS_PER_MS
    loss_ms = 2 + 1 + (6 if mechanism == Mechanism.PATH else 0)
    assert near(int(network.statistics(flow).lost or 0), loss_ms), "the second failure hurts nobody"
    assert controller.statistics(controller.lsps[1]).switchovers["s1"] == 1
    assert controller.on_backup(controller.lsps[1]) == []


@pytest.mark.parametrize("mechanism", [Mechanism.PATH, Mechanism.LOOPBACKVAR])
def test_a_lost_notice_of_a_repair(program: Program, mechanism: Mechanism) -> None:
    """That s4-s5 is repaired is lost at s2-s3. So the ingress believes that it is not, until it is told again."""
    failures = [("s4-s5", 0.2, 0.4), ("s2-s3", 0.3, 0.6)]
    network, controller, flow = ladder(program, Recovery(mechanism), failures)
    lsp = controller.lsps[1]
    assert max(late_ms(network, flow)) > 999
    assert controller.clients["s1"].register("MplsIngress.notices.failed_hops", lsp.number) == 1 << 3
    controller.resynchronise()
    assert controller.clients["s1"].register("MplsIngress.notices.failed_hops", lsp.number) == 0
    again = network.add(
        UdpStream(source="h1", destination="h2", packets_per_s=1000, payload_bytes=100, start_s=2, stop_s=2.1)
    )
    network.run(3)
    assert late_ms(network, again) == []
    assert controller.on_backup(lsp) == []


@pytest.mark.parametrize("mechanism", [Mechanism.PATH, Mechanism.LOOPBACKVAR])
def test_a_lost_notice_is_made_up_for(program: Program, mechanism: Mechanism) -> None:
    """While s2-s3 is down nothing gets back from s4. When it is repaired packets come to s4 again, and remind the ingress."""
    failures = [("s2-s3", 0.2, 0.4), ("s4-s5", 0.3, 0.6)]
    network, controller, flow = ladder(program, Recovery(mechanism), failures)
    late = late_ms(network, flow)
    assert 600 < max(late) < 610
    assert len(late) > 0.98 * (max(late) - min(late)) * PACKETS_PER_MS
    # Of path protection, the second time, what was sent until the reminder came from s4.
    loss_ms = 2 + 1 + (2 + 6 if mechanism == Mechanism.PATH else 0)
    assert near(int(network.statistics(flow).lost or 0), loss_ms)
    assert controller.statistics(controller.lsps[1]).switchovers["s1"] == 2
    assert controller.on_backup(controller.lsps[1]) == []


def test_without_events_packets_tell_of_the_failure(program: Program) -> None:
    """The same as with them, here; but of the repair nobody would tell."""
    topology = chain(5)
    topology.packet_generators = [topology.packet_generators[0]]  # s1's, who is not concerned
    controller = MplsController(connections=[Connection("h1", "h2", recovery=Recovery(Mechanism.PATH))])
    network = SimulatedNetwork(topology, program, [controller])
    flow = network.add(UdpStream(source="h1", destination="h2", packets_per_s=4000, payload_bytes=100, stop_s=0.4))
    network.set_link("s3-s4", up=False, at_s=0.2)
    network.run(1)
    assert near(int(network.statistics(flow).lost or 0), 1 + 2 * 2)


def test_local_recovers_from_several_failures_at_once(program: Program) -> None:
    network, controller, flow = ladder(program, Recovery(Mechanism.LOCAL), [("s2-s3", 0.2, 0.5), ("s4-s5", 0.2, 0.5)])
    assert network.statistics(flow).lost <= 2 * 3 * PACKETS_PER_MS + 2
    assert set(controller.statistics(controller.lsps[1]).switchovers) == {"s2", "s4"}


def test_the_ingress_is_told_of_a_failure_before_the_lsp_was(program: Program) -> None:
    controller = MplsController()
    network = SimulatedNetwork(chain(5), program, [controller], detection_delay_ms=1)
    network.set_link("s3-s4", up=False, at_s=0.1)
    network.run(0.2)
    lsp, _ = controller.connect(Connection("h1", "h2", recovery=Recovery(Mechanism.PATH)))
    flow = network.add(
        UdpStream(source="h1", destination="h2", packets_per_s=1000, payload_bytes=100, start_s=0.3, stop_s=0.4)
    )
    network.run(0.5)
    assert network.statistics(flow).lost == 0
    assert controller.on_backup(lsp) == ["s1"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_both_executors_and_every_run_are_alike(program: Program, mechanism: Mechanism) -> None:
    def log(executor: str) -> tuple[object, ...]:
        network, controller, flow = ladder(program, Recovery(mechanism), [("s3-s4", 0.1, 0.2)], executor)
        return network.received(flow), [controller.statistics(lsp) for lsp in controller.lsps.values()]

    assert log("jit") == log("interpreter") == log("jit")
