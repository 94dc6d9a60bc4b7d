"""Somebody at two ports of switches relays, delays and replays genuine discovery frames: what bounds the links that follow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.router import RouterController, compile_router
from holdfast.discovery import LinkDiscovery, Port
from holdfast.errors import NetworkError
from holdfast.topology import Topology

PROGRAM = compile_router()
QUICK = LinkDiscovery(interval_ms=20, settle_ms=12, ports=9)
TAPS: tuple[Port, Port] = (("s1", 5), ("s3", 5))


def relayed(settings: LinkDiscovery, delay_ms: float, until_s: float = 0.5) -> RouterController:
    """Run s1 - s2 - s3 with a relay between ports of s1 and s3 at which the controller knows no hosts; return the controller."""
    wired = Topology("wired")
    declared = Topology("declared")
    for t in (wired, declared):
        for name in ("s1", "s2", "s3"):
            t.add_switch(name)
        t.add_link("s1", "s2", a_port=1, b_port=1, delay_ms=0.1)
        t.add_link("s2", "s3", a_port=2, b_port=1, delay_ms=0.1)
    for (switch, port), name in zip(TAPS, ("m1", "m2"), strict=True):
        wired.add_host(name)
        wired.add_link(name, switch, b_port=port, delay_ms=0.01)

    class Controller(RouterController):
        def attach(self, plane):  # type: ignore[no-untyped-def]
            class Plane:
                topology = declared

                def __getattr__(self, name: str) -> object:
                    return getattr(plane, name)

            super().attach(Plane())  # type: ignore[arg-type]

    controller = Controller(reroute=True, reaction_delay_ms=1, discovery=settings)
    network = SimulatedNetwork(wired, PROGRAM, [controller], detection_delay_ms=2)

    def pass_on(to: str):  # type: ignore[no-untyped-def]
        return lambda _, frame: network.call_later(delay_ms, lambda: network.send_frame(to, frame))

    network.add_frame_listener("m1", pass_on("m2"))
    network.add_frame_listener("m2", pass_on("m1"))
    network.run(until_s)
    return controller


def has_relay(controller: RouterController) -> bool:
    links = controller.discovery.topology.present().links
    return any({(x.a, x.a_port), (x.b, x.b_port)} == set(TAPS) for x in links)


def count(controller: RouterController, kind: str) -> int:
    return sum(incident.count for incident in controller.discovery.incidents if incident.kind == kind)


def test_without_a_bound_a_relay_is_a_cable() -> None:
    controller = relayed(QUICK, 1)
    assert has_relay(controller)
    assert len(controller.discovery.topology.present().links) == 3


@pytest.mark.parametrize(("delay_ms", "is_found"), [(0.1, False), (1, True), (5, True)])
def test_a_bound_on_the_time_of_a_frame(delay_ms: float, is_found: bool) -> None:
    """Check that a relay is recognised by its delay; one as fast as a cable cannot be."""
    controller = relayed(replace(QUICK, longest_ms=0.5), delay_ms)
    assert has_relay(controller) is not is_found
    assert (count(controller, "late") > 10) is is_found
    assert len(controller.discovery.topology.present().links) == 3 - is_found


def test_links_that_are_not_expected_are_none() -> None:
    told = []
    expected = [(("s1", 1), ("s2", 1)), (("s3", 1), ("s2", 2))]
    controller = relayed(replace(QUICK, expected=expected, on_incident=told.append), 0.05)
    assert not has_relay(controller)
    assert {(incident.switch, incident.port) for incident in told} == set(TAPS)
    assert {incident.kind for incident in told} == {"unexpected"}
    assert len(controller.discovery.topology.present().links) == 2


def test_frames_that_are_kept_back_are_too_old() -> None:
    controller = relayed(QUICK, 100)
    assert not has_relay(controller)
    assert count(controller, "replayed") > 10


def test_bounds_that_make_no_sense() -> None:
    with pytest.raises(NetworkError, match="longest_ms is 0; it must be above zero"):
        LinkDiscovery(longest_ms=0)
    with pytest.raises(NetworkError, match="expected link is at s1:77"):
        relayed(replace(QUICK, expected=[(("s1", 77), ("s2", 1))]), 1)
