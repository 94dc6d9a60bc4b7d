"""The parts of controllers one by one: entries as values, the writer, link states, planned routes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from holdfast import NetworkError, SimulatedNetwork, Topology
from holdfast.apps.router import compile_router
from holdfast.control.desired import Writer
from holdfast.control.link_state import LinkState
from holdfast.control.next_hop import over_link, to_neighbour
from holdfast.control.routes import ROUTER_TABLES as TABLES
from holdfast.control.routes import Routing, routes_to
from holdfast.control.tables import TableEntry, read_entries
from holdfast.paths import ShortestPaths
from holdfast.topologies import load


class Recorder:
    """A client that notes what it is to write, and in which batch."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[str, object]]] = []

    @contextmanager
    def batch(self) -> Iterator[None]:
        self.batches.append([])
        yield

    def insert(self, *arguments: Any, **keywords: Any) -> None:
        self.batches[-1].append(("insert", arguments[1]["key"]))

    def modify(self, *arguments: Any, **keywords: Any) -> None:
        self.batches[-1].append(("modify", arguments[1]["key"]))

    def delete(self, *arguments: Any, **keywords: Any) -> None:
        self.batches[-1].append(("delete", arguments[1]["key"]))


def entry(key: int, port: int) -> TableEntry:
    return TableEntry("t", {"key": key}, "forward", {"port": port})


def test_a_writer_writes_what_differs_in_one_batch() -> None:
    client = Recorder()
    writer = Writer(client)  # type: ignore[arg-type]
    writer.write([entry(2, 1), entry(1, 1)])
    writer.write([entry(1, 1), entry(2, 9), entry(3, 1)])
    writer.write([entry(3, 1)])
    writer.write([entry(3, 1)])
    assert client.batches == [
        [("insert", 2), ("insert", 1)],
        [("modify", 2), ("insert", 3)],
        [("delete", 1), ("delete", 2)],
    ]
    assert list(writer.installed.values()) == [entry(3, 1)]


def test_a_writer_reconciles_what_it_adopts() -> None:
    client = Recorder()
    writer = Writer(client)  # type: ignore[arg-type]
    writer.adopt([entry(1, 1), entry(2, 1), entry(3, 1)])
    assert client.batches == []
    writer.write([entry(1, 1), entry(2, 2), entry(4, 1)])
    assert client.batches == [[("delete", 3), ("modify", 2), ("insert", 4)]]


def triangle() -> Topology:
    """Return a topology of three switches in a triangle, with h1 at s1 and h2 at s2."""
    t = Topology("triangle")
    for name in ("s1", "s2", "s3"):
        t.add_switch(name)
    for host, switch in (("h1", "s1"), ("h2", "s2")):
        t.add_host(host)
        t.add_link(host, switch)
    for a, b in (("s1", "s2"), ("s2", "s3"), ("s3", "s1")):
        t.add_link(a, b)
    return t


def test_a_switch_returns_an_entry_as_it_was_written() -> None:
    network = SimulatedNetwork(triangle(), compile_router())
    client = network.clients["s1"]
    routes = Routing.of_router(network.clients)
    topology = network.topology
    planned = routes.plan(topology, ShortestPaths.of(topology))["s1"]
    routes.install(topology, ())
    assert sorted(read_entries(client, TABLES.ipv4), key=lambda e: e.key) == sorted(planned, key=lambda e: e.key)
    assert read_entries(client, "RouterIngress.no_such_table") == []
    heir = Writer(client)
    heir.adopt(read_entries(client, TABLES.ipv4))
    heir.write([])
    assert read_entries(client, TABLES.ipv4) == []


def test_routes_are_planned_on_the_links_that_work() -> None:
    t = triangle()
    direct = t.find_link("s1-s2")

    def ports(unusable: set[int]) -> dict[tuple[str, str], int]:
        paths = ShortestPaths.of(t, unusable)
        planned = (route for host in t.hosts for route in routes_to(paths, t.attachment(host)))
        return {(r.switch, r.destination.host.name): r.next_hop(t).port for r in planned}

    there, around = t.port_towards("s1", "s2"), t.port_towards("s1", "s3")
    assert ports(set())["s1", "h2"] == there
    assert ports({direct})["s1", "h2"] == around
    assert ports(set())["s2", "h2"] == t.attachment("h2").port
    cut = ports({direct, t.find_link("s3-s1")})
    assert ("s1", "h2") not in cut
    assert ("s1", "h1") in cut
    assert to_neighbour(t, "s1", "s2") == over_link(t, "s1", direct)


def test_routes_after_any_failures_and_repairs_are_those_of_a_plan_from_nothing() -> None:
    """Check that routes are as new ones, although only those over a link that fails or returns are computed again."""
    for name in ("grid:3x4", "waxman:14,seed=2", "line:4"):
        t = load(name)
        core = [i for i, link in enumerate(t.links) if link.a in t.switches and link.b in t.switches]
        t.add_link(t.links[core[0]].a, t.links[core[0]].b)
        network = SimulatedNetwork(t, compile_router())
        routing = Routing.of_router(network.clients)
        random = Random(1)
        unusable: set[int] = set(random.sample(core, 1))
        for _ in range(12):
            routing.install(t, unusable)
            fresh = routing.plan(t, ShortestPaths.of(t, unusable))
            for switch, client in network.clients.items():
                there = {entry.key: entry for entry in read_entries(client, TABLES.ipv4)}
                assert there == {entry.key: entry for entry in fresh[switch]}, (name, switch, unusable)
            unusable ^= set(random.sample(core, min(2, len(core))))
        t.add_host("late")
        t.add_link("late", next(iter(t.switches)))
        routing.install(t, unusable)
        assert sum(map(len, routing.plan(t, ShortestPaths.of(t, unusable)).values())) == sum(
            len(read_entries(client, TABLES.ipv4)) for client in network.clients.values()
        )


class Plane:
    """As much of a control plane as link states need."""

    def __init__(self, topology: Topology, down: set[tuple[str, int]]) -> None:
        self.topology = topology
        self.clients: dict[str, Any] = {}
        self.down = down

    def port_is_up(self, switch: str, port: int) -> bool:
        return (switch, port) not in self.down


def test_a_link_is_down_from_its_first_port_to_its_last() -> None:
    t = triangle()
    links = LinkState()
    with pytest.raises(NetworkError, match="not attached"):
        _ = links.topology
    a, b = ("s1", t.port_towards("s1", "s2")), ("s2", t.port_towards("s2", "s1"))
    host_port = t.attachment("h1").port
    links.attach(Plane(t, {a}), lambda: None, 0)  # type: ignore[arg-type]
    assert links.down == frozenset()
    links.ask_ports()
    assert links.down == {t.find_link("s1-s2")}
    assert not links.port_changed(*b, up=False), "the other end tells nothing new"
    assert not links.port_changed(*a, up=True)
    assert links.port_changed(*b, up=True)
    assert not links.port_changed("s1", host_port, up=False), "a host's link leads to no other switch"
    assert links.down == links.replaced == frozenset()
    assert links.find(b, a, in_use=True) == t.find_link("s1-s2")
    with pytest.raises(NetworkError, match="no link between s1:1 and s2:1"):
        links.find(("s1", 1), ("s2", 1), in_use=True)
