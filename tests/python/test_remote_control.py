"""A controller over gRPC takes over from others, hands over to others, and runs its handlers on time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from holdfast import SimulatedNetwork
from holdfast._core import Program
from holdfast.apps.protect import Flow, ProtectController, __main__, compile_protect
from holdfast.apps.router import RouterController, compile_router
from holdfast.controller import Controller
from holdfast.demo import two_paths
from holdfast.discovery import LinkDiscovery
from holdfast.errors import NetworkError
from holdfast.link import Direction
from holdfast.live.remote_control import RemoteControl
from holdfast.network import LiveNetwork
from holdfast.p4runtime.server import Server
from holdfast.parameters import PS_PER_MS
from holdfast.topology import Topology


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_protect()


@pytest.fixture
def topology() -> Topology:
    return two_paths("remote", edge=Direction(), core=Direction())


@pytest.fixture
def address(topology: Topology, program: Program) -> Iterator[str]:
    """Start a P4Runtime server of the topology's switches, yield its address, and stop it afterwards."""
    network = SimulatedNetwork(topology, program)
    server = Server(network.devices.values(), "127.0.0.1:0")
    server.start()
    yield server.address
    server.stop()


def controller(**parameters: object) -> ProtectController:
    return ProtectController(reaction_delay_ms=0, **parameters)  # type: ignore[arg-type]


def test_one_controller_after_another(topology: Topology, address: str) -> None:
    first = controller(protect=[("h1", "h2")])
    with RemoteControl(topology, address, [first]) as control:
        assert first.taken_over is None
        extra = first.add_connection("s1", "s4", cid=77)
        first.add_flow(extra, Flow(protocol=6))
        first.remove_connection(first.connections[0])
        control.run(for_s=0.3)
        assert len(first.connections) == 2
    second = controller(protect=[("h1", "h2")])
    with RemoteControl(topology, address, [second]) as control:
        assert second.taken_over is not None
        assert (second.taken_over.connections, second.taken_over.flows) == (2, 2)
        assert (second.taken_over.restored, second.taken_over.removed) == (0, 0)
        assert {c.cid for c in second.connections} == {77, 0}
        # Somebody else starts while it is there: it is told, and ends.
        with RemoteControl(topology, address, [controller()]) as other:
            assert len(other.clients) == 4
            with pytest.raises(NetworkError, match="has another primary now"):
                control.run(for_s=5)


def test_a_lower_election_id_is_refused(topology: Topology, address: str) -> None:
    with (
        RemoteControl(topology, address, [], election_id=9),
        pytest.raises(NetworkError, match="another primary, with a higher election id"),
        RemoteControl(topology, address, [], election_id=8),
    ):
        pass


def test_addresses(topology: Topology) -> None:
    with pytest.raises(NetworkError, match="switches without an address: s2, s3, s4"):
        RemoteControl(topology, {"s1": "127.0.0.1:1"}, [])


def bare(t: Topology) -> Topology:
    """Return a topology with the same switches, and the links between them at the same ports, but without hosts."""
    core = Topology("core")
    for name in t.switches:
        core.add_switch(name)
    for link in t.links:
        if link.a in t.switches and link.b in t.switches:
            core.add_link(link.a, link.b, a_port=link.a_port, b_port=link.b_port)
    return core


def test_links_are_discovered(topology: Topology, program: Program) -> None:
    """Check discovery over gRPC in real time with a map that has only hosts' links.

    Pairs are planned, and a silent link is a failure.
    """
    declared = bare(topology)
    declared.links.clear()
    declared._ports = {name: {} for name in topology.switches}
    for host in topology.hosts:
        declared.add_host(host)
        at = topology.attachment(host)
        declared.add_link(host, at.switch, b_port=at.port)

    def start() -> ProtectController:
        settings = LinkDiscovery(interval_ms=100, hold_ms=3000, settle_ms=100, ports=5)
        return controller(protect=[("h1", "h2")], repair=True, discovery=settings)

    def wait(control: RemoteControl, what: Callable[[], bool]) -> None:
        for _ in range(200):
            control.run(for_s=0.1)
            if what():
                return
        raise AssertionError("it does not come about")

    first, second = start(), start()
    with LiveNetwork(bare(topology), program, interfaces={}) as network:
        address = network.p4runtime_address
        with RemoteControl(declared, address, [first]) as control:
            assert len(first.waiting) == 2
            wait(control, lambda: not first.waiting)
            assert len(first.discovery.topology.present().links) == 2 + len(network.topology.links)
            assert len(first.connections) == 2
        with RemoteControl(declared, address, [second]) as control:
            assert second.taken_over is not None
            assert (second.taken_over.connections, second.taken_over.restored, second.taken_over.removed) == (2, 0, 0)
            control.run(for_s=1.5)
            assert second.repairs == []
            network.set_link("s1-s2", up=False)
            wait(control, lambda: bool(second.repairs))
    assert "every path uses" in second.repairs[0].reason, "there are two paths in all"


class Clock(Controller):
    """Counts on its fingers."""

    def __init__(self) -> None:
        super().__init__(reaction_delay_ms=0)
        self.called_ps: list[int] = []

    def on_start(self) -> None:
        self.begin_ps = self.plane.now_ps
        for delay_ms in (60, 20, 40):
            self.plane.call_later(delay_ms, lambda: self.called_ps.append(self.plane.now_ps))


def test_handlers_are_called_in_time(topology: Topology, address: str) -> None:
    clock = Clock()
    with RemoteControl(topology, address, [clock]) as control:
        control.run(for_s=0.2)
        waited_ms = [(now_ps - clock.begin_ps) / PS_PER_MS for now_ps in clock.called_ps]
        assert [waited >= delay for waited, delay in zip(waited_ms, (20, 40, 60), strict=True)] == [True] * 3
        control.stop()
        control.run()


def test_the_time_of_controllers_passes_while_they_run(topology: Topology, address: str) -> None:
    """Check that a handler that takes long, and a pause between two runs, cost no timer its time."""
    clock = Clock()
    with RemoteControl(topology, address, [clock]) as control:
        control.run(for_s=0.2)
        before_ps = control.now_ps
        control._scheduler.add(control.now_ps, lambda: time.sleep(0.6))
        fired_ps: list[int] = []
        control._scheduler.add(control.now_ps + 500 * PS_PER_MS, lambda: fired_ps.append(control.now_ps))
        control.run(for_s=0.7)
        assert not fired_ps, "the handler took the time, not the timer"
        time.sleep(0.6)
        control.run(for_s=0.01)
        assert not fired_ps
        assert control.now_ps - before_ps < 500 * PS_PER_MS
        control.run(for_s=1)
        assert fired_ps
        assert 500 <= (fired_ps[0] - before_ps) / PS_PER_MS < 700


def test_a_controller_that_did_not_run_takes_no_link_for_gone(topology: Topology) -> None:
    """Check that silence counts only while the controller asks, since neighbours are heard by its own frames."""
    settings = LinkDiscovery(interval_ms=100, hold_ms=500, settle_ms=50, ports=5)
    router = RouterController(reroute=True, reaction_delay_ms=0, discovery=settings)
    with ExitStack() as stack:
        network = stack.enter_context(LiveNetwork(bare(topology), compile_router(), interfaces={}))
        control = stack.enter_context(RemoteControl(topology, network.p4runtime_address, [router]))
        known: list[int] = []
        for _ in range(100):
            control.run(for_s=0.1)
            if len(router.discovery.topology.present().links) == len(topology.links):
                break
        count = router.discovery.topology
        control._scheduler.add(control.now_ps, lambda: known.append(len(count.present().links)))
        time.sleep(1.5)
        for _ in range(100):
            control.run(for_s=0.01)
            known.append(len(count.present().links))
        assert set(known) == {len(topology.links)}, known
        assert router.discovery.incidents == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.yaml", "127.0.0.1:1"], 1, "No such file"),
        (["ring:4", "127.0.0.1:1", "--protect", "h1"], 2, "not a pair of hosts"),
        (["ring:4", "127.0.0.1:1", "--repair"], 2, "--repair needs --alarms or --discover"),
        (["ring:4", "127.0.0.1:1", "--paths", "9"], 1, "2 to 4 paths, not 9"),
        (["ring:4", "127.0.0.1:1", "--discover", "--discovery-hold-ms", "900"], 1, "must be above interval_ms"),
        (["ring:4", "127.0.0.1:1", "--discovery-ports", "9"], 2, "belongs to --discover"),
    ],
)
def test_the_command(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["protect", *arguments])
    try:
        assert __main__.main() == code
    except SystemExit as exit:
        assert exit.code == code
    assert message in capsys.readouterr().err
