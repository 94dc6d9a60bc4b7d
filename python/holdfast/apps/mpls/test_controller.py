"""The controller's entries, installed and removed, tunnels, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import NetworkError, SimulatedNetwork, Topology, UdpStream
from holdfast._core import Program
from holdfast.apps.mpls import (
    Connection,
    Fec,
    LastHop,
    Mechanism,
    MplsController,
    Recovery,
    TtlModel,
    add_port_events,
)
from holdfast.apps.mpls.lsr import FAILED_HOPS, FTN, FTN_LPM, ILM, NHLFES, NOTICES


def ring(*, events: bool = True) -> Topology:
    """Build a ring of six switches, s1-s2-s3-s4 above and s4-s5-s6-s1 below, with a host at s1 and one at s4."""
    topology = Topology("ring")
    topology.add_host("h1")
    topology.add_host("h2")
    for i in range(1, 7):
        topology.add_switch(f"s{i}")
    topology.add_link("h1", "s1")
    topology.add_link("s4", "h2")
    for i in range(1, 7):
        topology.add_link(f"s{i}", f"s{i % 6 + 1}", delay_ms=1, cost=1 if i < 4 else 2)
    if events:
        add_port_events(topology)
    return topology


def network(program: Program, topology: Topology, **options: Any) -> tuple[SimulatedNetwork, MplsController]:
    controller = MplsController(**options)
    return SimulatedNetwork(topology, program, [controller], detection_delay_ms=1), controller


def delivered(net: SimulatedNetwork, start_s: float) -> int:
    """Send 100 packets from h1 to h2, beginning at ``start_s``, and return how many are delivered."""
    flow = net.add(
        UdpStream(source="h1", destination="h2", packets_per_s=10_000, start_s=start_s, stop_s=start_s + 0.01)
    )
    net.run(start_s + 0.1)
    return int(net.statistics(flow).delivered or 0)


def installed(net: SimulatedNetwork) -> dict[str, Any]:
    """Return all entries and registers of LSPs in the switches, by switch and kind."""
    state: dict[str, Any] = {}
    for name, client in net.clients.items():
        for table in (ILM, NHLFES, FTN, FTN_LPM, NOTICES):
            entries = [(e.match, e.action, e.params) for e in client.read_table(table)]
            state[f"{name} {table}"] = sorted(entries, key=str)
        state[f"{name} groups"] = client.multicast_groups()
        state[f"{name} sessions"] = client.clone_sessions()
    return state


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("merge_capable", [True, False])
def test_what_is_removed_leaves_nothing(program: Program, mechanism: Mechanism, merge_capable: bool) -> None:
    if mechanism == Mechanism.LOOPBACKVAR and not merge_capable:
        pytest.skip("there is no such thing")
    net, controller = network(program, ring())
    before = installed(net)
    assert delivered(net, 0) == 0
    recovery = Recovery(mechanism, merge_capable=merge_capable)
    pair = controller.connect(Connection("h1", "h2", recovery=recovery, last_hop=LastHop.LABEL))
    assert delivered(net, 1) == 100
    during = installed(net)
    for lsp in pair:
        controller.remove_lsp(lsp)
    assert installed(net) == before
    assert all(lsr.labels_in_use() == 0 for lsr in controller.lsrs.values())
    assert delivered(net, 2) == 0
    # The same labels and numbers again.
    controller.connect(Connection("h1", "h2", recovery=recovery, last_hop=LastHop.LABEL))
    assert installed(net) == during
    assert delivered(net, 3) == 100
    assert controller.statistics(controller.lsps[1]).offered_packets == 100, "of this LSP, not of the one before"


@pytest.mark.parametrize("last_hop", LastHop)
@pytest.mark.parametrize("ttl", TtlModel)
@pytest.mark.parametrize("mechanism", Mechanism)
def test_every_last_hop_and_model_delivers_before_and_after_a_failure(
    program: Program, last_hop: LastHop, ttl: TtlModel, mechanism: Mechanism
) -> None:
    connection = Connection("h1", "h2", recovery=Recovery(mechanism), ttl=ttl, last_hop=last_hop)
    net, controller = network(program, ring(), connections=[connection], explicit_null=ttl)
    assert delivered(net, 0) == 100
    for link in ("s3-s4", "s2-s3", "s1-s2"):
        start_s = net.now_ps / 1e12
        net.set_link(link, up=False)
        net.run(start_s + 0.1)
        assert delivered(net, start_s + 0.1) == (0 if mechanism == Mechanism.NONE else 100), link
        net.set_link(link, up=True)
        net.run(start_s + 0.3)
        assert delivered(net, start_s + 0.3) == 100
    assert controller.statistics(controller.lsps[1]).ttl_expired == 0


def test_an_lsp_of_one_link(program: Program) -> None:
    topology = Topology("pair")
    for name in ("h1", "h2"):
        topology.add_host(name)
    for name in ("s1", "s2", "s3"):
        topology.add_switch(name)
    for a, b in (("h1", "s1"), ("s2", "h2"), ("s1", "s2"), ("s1", "s3"), ("s3", "s2")):
        topology.add_link(a, b)
    add_port_events(topology)
    for mechanism in (Mechanism.LOCAL, Mechanism.PATH, Mechanism.LOOPBACK, Mechanism.LOOPBACKVAR):
        net, controller = network(program, topology, connections=[Connection("h1", "h2", recovery=Recovery(mechanism))])
        assert controller.lsps[1].path == ["s1", "s2"]
        assert delivered(net, 0) == 100
        net.set_link("s1-s2", up=False)
        net.run(0.5)
        assert delivered(net, 0.5) == 100
        assert controller.statistics(controller.lsps[1]).backup == {"s1": 100}


def test_labels_are_each_routers_own(program: Program) -> None:
    _, controller = network(program, ring())
    first = controller.add_lsp(["s1", "s2", "s3", "s4"])
    second = controller.add_lsp(["s2", "s3", "s4"], last_hop=LastHop.LABEL)
    assert first.labels == {"s2": 16, "s3": 16}
    assert second.labels == {"s3": 17, "s4": 16}
    controller.remove_lsp(first)
    assert controller.add_lsp(["s1", "s2", "s3", "s4"]).labels == {"s2": 16, "s3": 16}


def test_classes_of_packets(program: Program) -> None:
    net, controller = network(program, ring())
    above = controller.add_lsp(["s1", "s2", "s3", "s4"])
    below = controller.add_lsp(["s1", "s6", "s5", "s4"])
    subnet = str(net.topology.hosts["h2"].address.network)
    port = net.topology.attachment("h1").port
    controller.add_fec(above, Fec(destination=subnet))
    assert delivered(net, 0) == 100
    special = Fec(destination=subnet, protocol=17, ingress_port=port)
    controller.add_fec(below, special)
    assert delivered(net, 1) == 100
    assert (controller.statistics(above).offered_packets, controller.statistics(below).offered_packets) == (100, 100)
    controller.remove_fec(below, special)
    assert delivered(net, 2) == 100
    assert controller.statistics(above).offered_packets == 200
    with pytest.raises(NetworkError, match="has no"):
        controller.remove_fec(below, special)


def test_tunnels_in_tunnels(program: Program) -> None:
    """Four labels deep: an LSP from s1 to s4 through a tunnel from s2 to s4, that through one from s2 to s5 and so on."""
    for last_hop in (LastHop.LABEL, LastHop.PHP):
        net, controller = network(program, ring())
        recovery = Recovery(Mechanism.LOCAL)
        t1 = controller.add_lsp(["s2", "s1", "s6"], last_hop=last_hop, recovery=recovery)
        t2 = controller.add_lsp(["s2", "s6", "s5"], last_hop=LastHop.LABEL, tunnels={("s2", "s6"): t1})
        t3 = controller.add_lsp(["s2", "s5", "s4"], last_hop=LastHop.LABEL, tunnels={("s2", "s5"): t2})
        lsp = controller.add_lsp(
            ["s1", "s2", "s4"], last_hop=LastHop.LABEL, tunnels={("s2", "s4"): t3}, ttl=TtlModel.PIPE
        )
        controller.add_fec(lsp, Fec(destination=str(net.topology.hosts["h2"].address.network)))
        assert delivered(net, 0) == 100
        stack = [e.params for e in net.clients["s2"].read_table(NHLFES) if "count" in e.params]
        assert max(int(params["count"]) for params in stack) == 4
        assert controller.statistics(t1).traffic["s1"] == 100
        net.set_link("s1-s6", up=False)
        net.run(1)
        assert delivered(net, 1) == 100, "the tunnel recovers below its users"
        with pytest.raises(NetworkError, match="is a tunnel of"):
            controller.remove_lsp(t3)
        with pytest.raises(NetworkError, match="5 labels"):
            t4 = controller.add_lsp(["s2", "s4"], last_hop=LastHop.LABEL, tunnels={("s2", "s4"): t3})
            controller.add_lsp(["s1", "s2", "s4"], last_hop=LastHop.LABEL, tunnels={("s2", "s4"): t4})


def test_many_lsps_over_a_link_that_fails(program: Program) -> None:
    """One event, one notice for each LSP of several ingresses that wants one, and none for the others."""
    net, controller = network(program, ring())
    path, looping = Recovery(Mechanism.PATH), Recovery(Mechanism.LOOPBACKVAR)
    told = [
        controller.add_lsp(["s1", "s2", "s3", "s4"], recovery=path),
        controller.add_lsp(["s1", "s2", "s3", "s4"], recovery=looping),
        controller.add_lsp(["s6", "s1", "s2", "s3", "s4"], recovery=path),
        controller.add_lsp(["s4", "s3", "s2", "s1"], recovery=path),
    ]
    adjacent = controller.add_lsp(["s2", "s3", "s4"], recovery=path)
    other = controller.add_lsp(["s1", "s2", "s3", "s4"], recovery=Recovery(Mechanism.LOCAL))
    elsewhere = controller.add_lsp(["s1", "s6", "s5", "s4"], recovery=path)
    net.set_link("s2-s3", up=False)
    net.run(0.5)
    hops = [1, 1, 2, 1]
    for lsp, hop in zip(told, hops, strict=True):
        statistics = controller.statistics(lsp)
        assert (statistics.notices_sent, statistics.notices_received) == (1, 1)
        assert net.clients[lsp.ingress].register(FAILED_HOPS, lsp.number) == 1 << hop
    for lsp in (adjacent, other, elsewhere):
        assert controller.statistics(lsp).notices_sent == 0
    controller.remove_lsp(told[1])
    net.set_link("s2-s3", up=True)
    net.run(1)
    for lsp in (told[0], *told[2:]):
        assert controller.statistics(lsp).notices_received == 2
        assert net.clients[lsp.ingress].register(FAILED_HOPS, lsp.number) == 0


def test_the_agents_port_is_not_for_links(program: Program) -> None:
    topology = ring()
    topology.add_link("s1", "s4", a_port=509)
    with pytest.raises(NetworkError, match="port 509"):
        network(program, topology)


REFUSALS: list[tuple[str, Callable[[MplsController], object]]] = [
    ("not neighbours", lambda c: c.add_lsp(["s1", "s3"])),
    ("no node twice", lambda c: c.add_lsp(["s1", "s2", "s1"])),
    ("1 to 31 links", lambda c: c.add_lsp(["s1"])),
    ("shares the link", lambda c: c.add_lsp(["s1", "s2"], recovery=Recovery(Mechanism.PATH), backup=["s1", "s2"])),
    (
        "does not lead",
        lambda c: c.add_lsp(["s1", "s2"], recovery=Recovery(Mechanism.PATH), backup=["s1", "s6", "s5"]),
    ),
    (
        "has no link",
        lambda c: c.add_lsp(["s1", "s2"], recovery=Recovery(Mechanism.LOCAL), detours={("s2", "s3"): ["s2", "s3"]}),
    ),
    ("last_hop='label'", lambda c: c.add_lsp(["s1", "s2"], recovery=Recovery(Mechanism.PATH, merge_capable=False))),
    ("label 0", lambda c: c.add_lsp(["s1", "s2"], ttl=TtlModel.PIPE, last_hop=LastHop.EXPLICIT_NULL)),
    ("not an LSP between", lambda c: c.add_lsp(["s1", "s3"], tunnels={("s1", "s3"): c.add_lsp(["s1", "s2"])})),
    ("loopbackvar merges", lambda c: Recovery(Mechanism.LOOPBACKVAR, merge_capable=False)),
    ("'nowhere' is not a prefix", lambda c: c.add_fec(c.add_lsp(["s1", "s2"]), Fec(source="nowhere"))),
    ("not of IPv4", lambda c: c.add_fec(c.add_lsp(["s1", "s2"]), Fec(source="2001:db8::/32"))),
    ("wait_to_restore_ms", lambda c: Recovery(Mechanism.LOCAL, wait_to_restore_ms=-1)),
    ("mechanism is 'magic'; it must be one of none, local", lambda c: Recovery("magic")),  # type: ignore[arg-type]
    ("ttl is 'short'; it must be one of uniform, pipe", lambda c: c.add_lsp(["s1", "s2"], ttl="short")),
    ("last_hop is 'pop'; it must be one of php", lambda c: c.add_lsp(["s1", "s2"], last_hop="pop")),
    ("a backup path is of no use .* 'none'", lambda c: c.add_lsp(["s1", "s2"], backup=["s1", "s6", "s2"])),
    (
        "a backup path is of no use .* 'local'",
        lambda c: c.add_lsp(["s1", "s2"], recovery=Recovery(Mechanism.LOCAL), backup=["s1", "s6", "s2"]),
    ),
    (
        "detours are of no use .* 'path'",
        lambda c: c.add_lsp(
            ["s1", "s2"], recovery=Recovery(Mechanism.PATH), detours={("s1", "s2"): ["s1", "s6", "s2"]}
        ),
    ),
    ("is not set up", lambda c: [c.remove_lsp(lsp) for lsp in [c.add_lsp(["s1", "s2"])] * 2]),
]


@pytest.mark.parametrize(("message", "attempt"), REFUSALS, ids=[message for message, _ in REFUSALS])
def test_refusals_leave_nothing_behind(
    program: Program, message: str, attempt: Callable[[MplsController], object]
) -> None:
    net, controller = network(program, ring())
    before = installed(net)
    with pytest.raises(NetworkError, match=message):
        attempt(controller)
    for lsp in list(controller.lsps.values()):  # of the attempt's own preparations
        controller.remove_lsp(lsp)
    assert installed(net) == before


def test_who_is_to_be_notified_needs_events(program: Program) -> None:
    _, controller = network(program, ring(events=False))
    for mechanism in (Mechanism.PATH, Mechanism.LOOPBACKVAR):
        with pytest.raises(NetworkError, match="add_port_events"):
            controller.add_lsp(["s1", "s2"], recovery=Recovery(mechanism))
    controller.add_lsp(["s1", "s2"], recovery=Recovery(Mechanism.LOCAL))


def test_no_disjoint_path(program: Program) -> None:
    topology = ring()
    topology.add_switch("s7")
    topology.add_link("s4", "s7")
    _, controller = network(program, topology)
    with pytest.raises(NetworkError, match="no path"):
        controller.add_lsp(["s3", "s4", "s7"], recovery=Recovery(Mechanism.LOCAL))
    with pytest.raises(NetworkError, match="no path disjoint"):
        controller.add_lsp(["s3", "s4", "s7"], recovery=Recovery(Mechanism.PATH))
    assert controller.lsps == {}
