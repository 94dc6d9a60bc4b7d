"""Paths of LSPs on a map, and the numbers of a node; no network runs here."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.apps.mpls.lsp import LastHop, Lsp, Mechanism, Recovery, TtlModel
from holdfast.apps.mpls.owned_numbers import OwnedNumbers
from holdfast.apps.mpls.planning import PathPlanner
from holdfast.errors import NetworkError
from holdfast.topology import Topology


def square() -> Topology:
    """Build a ring of four switches, s1 to s4."""
    t = Topology("square")
    for name in ("s1", "s2", "s3", "s4"):
        t.add_switch(name)
    for a, b in (("s1", "s2"), ("s2", "s3"), ("s3", "s4"), ("s4", "s1")):
        t.add_link(a, b)
    return t


def planned(path: list[str], mechanism: Mechanism, **paths: Any) -> Lsp:
    lsp = Lsp(1, path, Recovery(mechanism), TtlModel.UNIFORM, LastHop.PHP, {})
    PathPlanner(square(), TtlModel.UNIFORM).complete(lsp, paths.get("backup"), paths.get("detours"))
    return lsp


def test_each_mechanism_gets_the_paths_that_it_needs() -> None:
    assert planned(["s1", "s2", "s3"], Mechanism.LOOPBACK).backup == ["s1", "s4", "s3"]
    local = planned(["s1", "s2", "s3"], Mechanism.LOCAL)
    assert local.backup is None
    assert local.detours == {0: ["s1", "s4", "s3", "s2"], 1: ["s2", "s1", "s4", "s3"]}
    plain = planned(["s1", "s2"], Mechanism.NONE)
    assert (plain.backup, plain.detours) == (None, {})


def test_given_paths_are_checked() -> None:
    given = {("s1", "s2"): ["s1", "s4", "s3", "s2"]}
    assert list(planned(["s1", "s2", "s3"], Mechanism.LOCAL, detours=given).detours) == [0]
    with pytest.raises(NetworkError, match="shares the link s"):
        planned(["s1", "s2", "s3"], Mechanism.LOOPBACK, backup=["s1", "s2", "s3"])
    with pytest.raises(NetworkError, match="add_port_events"):
        planned(["s1", "s2", "s3"], Mechanism.PATH)


def test_the_lowest_free_number_is_given_out() -> None:
    numbers = OwnedNumbers(16, 18, "none is left")
    assert [numbers.allocate(owner) for owner in (1, 2, 1)] == [16, 17, 18]
    with pytest.raises(NetworkError, match="none is left"):
        numbers.allocate(3)
    assert numbers.release(1) == [16, 18]
    assert numbers.release(1) == []
    assert (numbers.allocate(3), len(numbers)) == (16, 2)
