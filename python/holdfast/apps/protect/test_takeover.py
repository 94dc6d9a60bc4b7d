"""A controller that is killed, at any of its writes, and the one after it: connections go on, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast import SimulatedNetwork
from holdfast._core import Program
from holdfast.apps.protect import Flow, ProtectController
from holdfast.apps.protect.program import (
    CONNECTION_TABLE,
    COPY_TABLE,
    ENDPOINT_TABLE,
    FLOW_TABLES,
    ROUTE_TABLE,
    SELECT_CONNECTION,
)
from holdfast.apps.protect.test_controller import MTU, NOTHING, build, entries, ladder, stream
from holdfast.p4runtime.client import Client
from holdfast.scheduler import Scheduler


class Killed(BaseException):
    """Raised by a write: the controller's process has been killed."""


def kill_at_write(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let ``number`` batches be written; then raise Killed at each further one."""
    left = [number]
    send = Client._send_batch

    def counted(self: Client, batch: object, atomicity: object) -> None:
        if left[0] <= 0:
            raise Killed
        left[0] -= 1
        send(self, batch, atomicity)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "_send_batch", counted)


def successor(network: SimulatedNetwork, **parameters: object) -> ProtectController:
    """Start a new controller in place of the present one, without changing the switches, and return it."""
    controller = ProtectController(reaction_delay_ms=1, mtu=MTU, **parameters)  # type: ignore[arg-type]
    network.controllers = [controller]
    network._scheduler = Scheduler()
    controller.attach(network)
    controller.on_start()
    return controller


def dump(controller: ProtectController) -> dict[str, object]:
    """Return all table entries and groups in the switches, without counters, by switch."""
    tables = (ROUTE_TABLE, COPY_TABLE, ENDPOINT_TABLE, CONNECTION_TABLE, FLOW_TABLES[4])
    return {
        name: (
            [
                sorted(repr((e.match, e.action, e.params, e.metadata, e.priority)) for e in c.read_table(t))
                for t in tables
            ],
            c.multicast_groups(),
        )
        for name, c in controller.clients.items()
    }


def test_nothing_changes_in_the_switches(program: Program) -> None:
    network, controller = build(program, ladder(4), protect=[("h1", "h2")])
    assert controller.taken_over is None
    other = controller.add_connection("a", "z", count=3, mtu=1400, cid=900)
    controller.add_flow(other, Flow(protocol=6, destination_port=80), priority=7)
    controller.add_connection("m1", "m2", disjoint="link")
    flow = stream(network)
    network.run(0.5)
    before = dump(controller)
    with pytest.MonkeyPatch.context() as patch:
        kill_at_write(patch, 0)
        heir = successor(network, protect=[("h1", "h2")])
    assert dump(heir) == before
    assert heir.taken_over is not None
    assert (heir.taken_over.connections, heir.taken_over.flows) == (4, 3)
    assert (heir.taken_over.restored, heir.taken_over.removed) == (0, 0)

    def told(c: ProtectController) -> set[object]:
        return {
            (str(x), x.index, x.egress_index, x.mtu, tuple(x.paths), tuple(x.addresses), x.path_set.disjoint,
             tuple(x.flows), x.path_set.users, x.multicast_group)
            for x in c.connections
        }  # fmt: skip

    assert told(heir) == told(controller)
    network.run(1.5)
    assert network.statistics(flow).lost == 0
    assert heir.statistics(heir.find_connection("a", "z")).last_accepted_sn == 1000  # type: ignore[arg-type]
    # It can do everything with them.
    added = heir.add_connection("a", "z", count=3)
    assert added.path_set.users == 2
    assert (added.index, added.cid) == (2, 1)
    for connection in heir.connections:
        heir.remove_connection(connection)
    network.run(2)
    assert entries(heir) == NOTHING


def steps(controller: ProtectController) -> list[Callable[[], object]]:
    """Return functions that change, add and remove connections and flows with a controller."""

    def change() -> None:
        controller.change_connection(controller.connections[0], paths=[["a", "m3", "z"], ["a", "m4", "z"]], mtu=1500)

    def extend() -> None:
        connection = controller.add_connection("a", "z", count=3)
        controller.add_flow(connection, Flow(destination="10.0.2.1/32", protocol=6))

    return [
        extend,
        change,
        lambda: controller.remove_connection(controller.connections[1]),
        lambda: controller.remove_connection(controller.connections[0]),
    ]


@pytest.mark.parametrize("killed_at", range(40))
def test_killed_at_any_write(program: Program, killed_at: int) -> None:
    """The stream goes on, and what the heir knows is all that there is: when it has removed that, the switches are empty."""
    network, controller = build(program, ladder(4), protect=[("h1", "h2")], drain_ms=20)
    flow = stream(network)
    network.run(0.1)
    died = False
    with pytest.MonkeyPatch.context() as patch:
        kill_at_write(patch, killed_at)
        try:
            for i, step in enumerate(steps(controller)):
                step()
                network.run(0.15 + 0.05 * i)
        except Killed:
            died = True
    heir = successor(network, drain_ms=20)
    network.run(1.5)
    statistics = network.statistics(flow)
    assert (statistics.lost, statistics.duplicated) == (0, 0)
    routes = {(str(c), tuple(map(str, c.paths))) for c in heir.connections}
    for connection in heir.connections:
        heir.remove_connection(connection)
    network.run(2)
    assert entries(heir) == NOTHING, routes
    assert all(
        not len(numbers)
        for numbers in (*heir.registry.indices.values(), *heir.registry.cids.values(), heir.tunnels.numbers)
    )
    assert died == (killed_at < writes_in_all(program))


def writes_in_all(program: Program) -> int:
    """Return how many batches all of the steps write together."""
    if not _TOTAL:
        network, controller = build(program, ladder(4), protect=[("h1", "h2")], drain_ms=20)
        network.run(0.1)
        with pytest.MonkeyPatch.context() as patch:
            sent = []
            send = Client._send_batch
            patch.setattr(
                Client, "_send_batch", lambda self, batch, atomicity: (sent.append(1), send(self, batch, atomicity))
            )
            for i, step in enumerate(steps(controller)):
                step()
                network.run(0.15 + 0.05 * i)
        _TOTAL.append(len(sent))
    return _TOTAL[0]


_TOTAL: list[int] = []


def test_what_is_missing_is_restored_and_what_is_strange_is_removed(program: Program) -> None:
    network, controller = build(program, ladder(), protect=[("h1", "h2")])
    before = dump(controller)
    m1, a, z = (controller.clients[name] for name in ("m1", "a", "z"))
    there = controller.connections[0]
    m1.delete(ROUTE_TABLE, {"dst_addr": f"{there.addresses[0]}/32"})
    m1.insert(ROUTE_TABLE, {"dst_addr": "10.254.200.1/32"}, "drop", {})
    z.delete(ENDPOINT_TABLE, {"hdr.tunnel.dst_addr": there.addresses[1]})
    z.insert(ENDPOINT_TABLE, {"hdr.tunnel.dst_addr": "10.254.200.2"}, "NoAction", {})
    z.insert(CONNECTION_TABLE, {"hdr.protection.cid": 99}, SELECT_CONNECTION, {"index": 99})
    a.multicast_group(77, [(2, 1)])
    a.insert(
        COPY_TABLE,
        {"meta.multicast_group": 77, "standard_metadata.egress_rid": 1},
        "send_copy",
        {"src_mac": 1, "dst_mac": 2, "dst_ip": "10.254.200.3"},
        metadata=b'{"number":1,"links":["a-z"],"preferred":[["a-z"]],"disjoint":"node"}',
    )
    a.multicast_group(there.multicast_group, [(9, 1), (9, 2)], verb="modify")
    heir = successor(network)
    network.run(0.2)
    assert dump(heir) == before
    assert heir.taken_over is not None
    assert (heir.taken_over.restored, heir.taken_over.removed) == (3, 5)


def test_a_failure_in_between_is_seen(program: Program) -> None:
    """A link that fails while there is no controller: the next one asks the ports, and plans without the link."""
    network, controller = build(program, ladder(), protect=[("h1", "h2")])
    network.controllers = []
    network.set_link("a-m1", up=False, at_s=0.1)
    network.run(0.2)
    heir = successor(network)
    assert [str(path) for path in heir.add_connection("a", "z").paths] == ["a-m2-z", "a-m3-z"]
    assert [str(path) for path in controller.connections[0].paths] == ["a-m1-z", "a-m2-z"]
