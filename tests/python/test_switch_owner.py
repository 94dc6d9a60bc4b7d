"""The owner of a switch serves any protocol: here one whose pipelines are described by a word."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from holdfast import _core
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device, write_request
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4
from holdfast.switch_owner import Pipeline, SwitchOwner

ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"
ROUTES = 10


@pytest.fixture(scope="module")
def program() -> _core.Program:
    return _core.Program.compile(str(ROUTER))


def core(program: _core.Program) -> _core.Pipeline:
    return _core.Pipeline(program, program.p4info_message)


def prepared(owner: SwitchOwner[str], word: str, program: _core.Program) -> Pipeline[str]:
    return Pipeline(word, program, core(program), owner.scratch(program))


@pytest.fixture
def owner(program: _core.Program) -> SwitchOwner[str]:
    owner: SwitchOwner[str] = SwitchOwner(_core.Switch(program))
    assert owner.target is None
    owner.load("first", program, core(program))
    return owner


def routes(program: _core.Program) -> p4.WriteRequest:
    """Return a request with routes, recorded from a client of another device."""
    device = Device(1, _core.Switch(program))
    client = LocalClient(device)
    client.set_pipeline(program)
    recorded = p4.WriteRequest(device_id=1)
    write = device.write_serialized
    device.write_serialized = recorded.MergeFromString  # type: ignore[assignment, method-assign]
    for number in range(ROUTES):
        client.insert("RouterIngress.ipv4_lpm", {"hdr.ipv4.dst_addr": f"10.{number}.0.0/16"}, "RouterIngress.drop", {})
    device.write_serialized = write  # type: ignore[method-assign]
    assert len(recorded.updates) == ROUTES
    return recorded


def filled(owner: SwitchOwner[str]) -> int:
    return {name: entries for name, entries, _ in owner.switch.table_fill()}["RouterIngress.ipv4_lpm"]


def test_a_batch_goes_on_while_it_may(owner: SwitchOwner[str], program: _core.Program) -> None:
    running = owner.running
    assert running is not None
    batch = running.core.plan(write_request(routes(program).SerializeToString()))
    asked: list[int] = []

    def may_go_on() -> str | None:
        asked.append(batch.applied)
        # Others may change the switch between slices, and in none.
        taken: list[bool] = []
        other = threading.Thread(target=lambda: taken.append(owner.lock.acquire(blocking=False)))
        other.start()
        other.join()
        assert taken == [False]
        return "that is enough" if batch.applied >= 6 else None

    assert owner.apply(running, batch, may_go_on, updates_per_slice=2) == "that is enough"
    assert asked == [0, 2, 4, 6]
    assert (batch.applied, filled(owner)) == (6, 6)
    assert batch.tally(batch.take_failures()) == [("table_entry", "insert", "OK", ROUTES)], "the caller adds the rest"


def test_a_batch_is_applied_at_once(owner: SwitchOwner[str], program: _core.Program) -> None:
    running = owner.running
    assert running is not None
    batch = running.core.plan(write_request(routes(program).SerializeToString()))
    assert owner.apply(running, batch, lambda: None, updates_per_slice=None) is None
    assert filled(owner) == ROUTES


def test_a_saved_pipeline_takes_effect_with_what_was_written_to_it(
    owner: SwitchOwner[str], program: _core.Program
) -> None:
    owner.saved = prepared(owner, "second", program)
    target = owner.target
    assert target is not None
    assert target.config == "second"
    batch = target.core.plan(write_request(routes(program).SerializeToString()))
    owner.apply(target, batch, lambda: None, updates_per_slice=4)
    assert filled(owner) == 0, "the switch runs the first one"
    owner.realize(target)
    assert (filled(owner), owner.saved) == (ROUTES, None)
    assert owner.running is not None
    assert (owner.running.config, owner.running.switch) == ("second", owner.switch)


def test_a_pipeline_that_is_the_same_changes_its_words_alone(owner: SwitchOwner[str], program: _core.Program) -> None:
    before = owner.running
    assert before is not None
    batch = before.core.plan(write_request(routes(program).SerializeToString()))
    owner.apply(before, batch, lambda: None, updates_per_slice=4)
    for same in (True, False):
        word = f"same: {same}"
        owner.reconcile(prepared(owner, word, program), lambda old, new, same=same: same)  # type: ignore[misc]
        assert owner.running is not None
        assert owner.running.config == word
        assert (owner.running.core is before.core) is same
        assert filled(owner) == ROUTES


def test_it_knows_no_protocol() -> None:
    """Checks that the module needs nothing of P4Runtime's, so that another protocol can stand beside it."""
    source = Path(sys.modules[SwitchOwner.__module__].__file__ or "").read_text(encoding="utf-8")
    assert "p4runtime" not in source
    assert "protobuf" not in source
