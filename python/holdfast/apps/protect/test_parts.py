"""The controller's parts one by one, without a network: planning, the registry, and entries as a switch returns them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import pytest

from holdfast._core import Switch
from holdfast.apps.protect import Acceptance, Connection, Flow, compile_protect
from holdfast.apps.protect.changes import Changes, Phase, Transactions
from holdfast.apps.protect.connection import Copy, PathSet, Tunnel
from holdfast.apps.protect.entries import connection_entry, copy_entry, endpoint_entry, flow_entry, tunnel_route
from holdfast.apps.protect.planning import PathPlanner
from holdfast.apps.protect.registry import Registry
from holdfast.apps.protect.test_controller import ladder
from holdfast.control.link_state import LinkState
from holdfast.control.tables import read_entries
from holdfast.errors import HoldfastError, NetworkError
from holdfast.p4runtime.client import Client, LocalClient
from holdfast.p4runtime.device import Device
from holdfast.paths import NoDisjointPathsError, path_along


class Plane:
    topology = ladder(3)
    clients: ClassVar[dict[str, Client]] = {}


def connection(cid: int = 7, index: int = 3) -> Connection:
    t = Plane.topology
    path_set = PathSet("a", "z", 1, "node", tuple(path_along(t, ["a", m, "z"]) for m in ("m1", "m2")))
    path_set.copies = [
        Copy(number, Tunnel(path, number, f"10.254.0.{number + 1}"))
        for number, path in enumerate(path_set.preferred, start=1)
    ]
    return Connection("a", "z", cid, index, 4, path_set, 1500, Acceptance("vector", 32))


def test_paths_avoid_links_that_are_down() -> None:
    links = LinkState()
    links.attach(Plane(), lambda: None, 0)  # type: ignore[arg-type]
    planner = PathPlanner(links, 2, "node")

    def chosen() -> list[str]:
        return [str(path) for path in planner.choose("a", "z", None, None, None)]

    assert chosen() == ["a-m1-z", "a-m2-z"]
    links.port_changed("m1", Plane.topology.port_towards("m1", "z"), up=False)
    assert chosen() == ["a-m2-z", "a-m3-z"]
    links.port_changed("a", Plane.topology.port_towards("a", "m2"), up=False)
    with pytest.raises(NoDisjointPathsError, match="in what is left of the network"):
        chosen()
    with pytest.raises(NetworkError, match="2 to 4 paths, not 1"):
        PathPlanner(links, 1, "node")


def test_numbers_are_claimed_all_or_none() -> None:
    registry = Registry(["a", "z"])
    first, same_cid = connection(index=3), connection(index=5)
    assert registry.claim(first)
    assert not registry.claim(same_cid)
    assert (len(registry.indices["a"]), len(registry.egress_indices["z"]), len(registry.cids["z"])) == (1, 1, 1)
    registry.give_back(first)
    assert registry.claim(same_cid)


def test_numbers_of_abandoned_changes_are_free_again() -> None:
    registry, changes = Registry(["a", "z"]), Changes()
    assert registry.take(changes, "a", "z", 9) == (0, 0, 9)
    with pytest.raises(NetworkError, match="connection identifier 9 is in use"):
        registry.take(changes, "a", "z", 9)
    changes.abandon()
    assert not len(registry.indices["a"]) and not len(registry.cids["z"])


def test_a_flow_has_one_owner() -> None:
    registry, it, flow = Registry(["a", "z"]), connection(), Flow(protocol=6)
    registry.adopt(it)
    registry.adopt_flow(it, flow, 10)
    assert registry.owner("a", flow) is it
    assert registry.owner("z", flow) is None
    registry.forget_flow(it, flow, 10)
    assert registry.owner("a", flow) is None
    registry.forget(it)
    assert registry.between("a", "z") == []
    with pytest.raises(NetworkError, match="not there any more"):
        registry.check(it)


def test_a_switch_returns_entries_as_they_were_written() -> None:
    program = compile_protect()
    client = LocalClient(Device(1, Switch(program)))
    client.set_pipeline(program)
    it, t = connection(), Plane.topology
    copy = it.path_set.copies[0]
    for entry in (
        connection_entry(it),
        flow_entry(t, it, Flow("10.0.1.0/24", "10.0.2.1/32", 17, None, 5000), 10),
        flow_entry(t, it, Flow("2001:db8::/32"), 10),
        copy_entry(t, it.path_set, copy),
        endpoint_entry(it.path_set.copies[1].tunnel),
        tunnel_route(t, copy.tunnel, "m1"),
    ):
        entry.write(client, "insert")
        assert read_entries(client, entry.table) == [entry]
        entry.write(client, "delete")
        assert read_entries(client, entry.table) == []


class Switches:
    """Two clients that note every batch, and a clock of which nothing is due before :meth:`pass_time`."""

    def __init__(self, refusing: str | None = None) -> None:
        self.log: list[str] = []
        self.later: list[Callable[[], None]] = []
        self.clients = {name: SwitchClient(self, name, name == refusing) for name in ("a", "z")}

    def call_later(self, delay_ms: float, handler: Callable[[], None]) -> None:
        self.later.append(handler)

    def pass_time(self) -> None:
        while self.later:
            self.later.pop(0)()


class SwitchClient:
    def __init__(self, switches: Switches, name: str, refuses: bool) -> None:
        self.switches, self.name, self.refuses = switches, name, refuses

    @contextmanager
    def batch(self, atomicity: str = "rollback_on_error") -> Iterator[None]:
        yield
        if self.refuses:
            raise HoldfastError(f"{self.name} refuses")


class Note(NamedTuple):
    """An entity that its switch notes."""

    what: str

    def write(self, client: SwitchClient, verb: str) -> None:
        client.switches.log.append(f"{client.name} {self.what}")


def write(what: str) -> Any:
    return "modify", Note(what)


def test_transactions_write_in_phases_at_the_end_of_the_outermost_block() -> None:
    switches = Switches()
    transactions = Transactions(switches, drain_ms=10)  # type: ignore[arg-type]
    with transactions.changes() as outer:
        outer.add(Phase.SWITCH, "a", write("switch"))
        with transactions.changes() as inner:
            inner.add(Phase.RECEIVE, "z", write("receive"))
            inner.afterwards(lambda: transactions.when_drained(lambda c: c.add(Phase.FORGET, "z", write("forget"))))
        assert switches.log == []
    assert switches.log == ["z receive", "a switch"]
    switches.pass_time()
    assert switches.log == ["z receive", "a switch", "z forget"]


def test_a_refused_change_is_taken_back() -> None:
    switches = Switches(refusing="a")
    transactions = Transactions(switches, drain_ms=0)  # type: ignore[arg-type]
    with pytest.raises(HoldfastError, match="a refuses"), transactions.changes() as changes:
        changes.add(Phase.RECEIVE, "z", write("receive"), write("back"))
        changes.add(Phase.SWITCH, "a", write("switch"), write("never needed"))
        changes.otherwise(lambda: switches.log.append("forgotten"))
    assert switches.log == ["z receive", "a switch", "z back", "forgotten"]
    with pytest.raises(ZeroDivisionError), transactions.changes() as changes:
        changes.otherwise(lambda: switches.log.append("forgotten again"))
        _ = 1 / 0
    assert switches.log[-1] == "forgotten again"
