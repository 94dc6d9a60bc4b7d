"""The entries of a switch: their number, and the few of them that a failure changes."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from holdfast.apps.bier.conftest import BIFT, EAST, PLAN, SOUTH, WEST, hop, neighbour
from holdfast.apps.bier.entries import instances, switch_configuration
from holdfast.apps.bier.planning import Backup, Plan, Scheme, SwitchPlan, number_switches
from holdfast.apps.bier.program import BACKUP_TABLE, PORTS
from holdfast.apps.bier.protection import Protect
from holdfast.topologies import load


def entries(plan: SwitchPlan) -> dict[object, object]:
    return {entry.key: entry for entry in switch_configuration(plan).entries}


def updates(before: SwitchPlan, after: SwitchPlan) -> int:
    old, new = entries(before), entries(after)
    return sum(old.get(key) != new.get(key) for key in old.keys() | new.keys())


@pytest.mark.parametrize("protect", get_args(Protect))
def test_a_neighbour_has_two_entries_and_one_for_each_backup(protect: Protect) -> None:
    topology = load("waxman:30,hosts=1")
    plan = Plan(topology, Scheme(number_switches(topology), protect=protect))
    for switch in plan.switches.values():
        neighbours = [entry for buckets in switch.bifts.values() for bucket in buckets for entry in bucket]
        backups = sum(len(entry.backups) for entry in neighbours)
        assert len(entries(switch)) == 3 + 2 * len(neighbours) + backups


def masks(plan: SwitchPlan) -> dict[str, int]:
    return {entry.neighbour: entry.f_bm for bucket in plan.bifts[BIFT] for entry in bucket}


def test_a_failure_changes_the_entries_of_neighbours_whose_masks_change() -> None:
    topology = load("waxman:100")
    before = Plan(topology, Scheme(number_switches(topology), frr="tunnel"))
    moved = 0
    for link in range(0, len(topology.links), 40):
        after = before.after({link})
        for name in topology.switches:
            old, new = before.switches[name], after.switches[name]
            changed = sum(masks(old).get(each) != masks(new).get(each) for each in masks(old) | masks(new))
            # The copy, two patterns and the backup of a neighbour; the ports of the BIFT.
            assert updates(old, new) <= 4 * changed + 1
            moved += changed
    assert moved > 100


def test_bits_that_move_change_the_entries_of_two_neighbours() -> None:
    def plan(west: int, east: int) -> SwitchPlan:
        backup = Backup(hop(SOUTH), west, None)
        bucket = (neighbour(WEST, west, backup), neighbour(EAST, east), neighbour(SOUTH, 1 << 200))
        return replace(PLAN, bifts={BIFT: (bucket,)})

    # A copy is modified; a pattern is deleted, and another one inserted.
    assert updates(plan(0xFFFFF0, 0b1110), plan(0xFFFF00, 0b11111110)) == 6


def test_a_neighbour_keeps_its_number_when_others_go() -> None:
    west, east, south = neighbour(WEST, 0b10), neighbour(EAST, 0b100), neighbour(SOUTH, 0b1000)
    assert instances((west, east, south)) == {WEST: west, EAST: east, SOUTH: south}
    assert instances((west, south)) == {WEST: west, SOUTH: south}
    also_west = replace(west, neighbour="other", f_bm=0b10000)
    assert instances((west, also_west, south)) == {WEST: west, WEST + PORTS: also_west, SOUTH: south}


def test_a_backup_of_some_bits_has_their_pattern() -> None:
    some, rest = Backup(hop(EAST), 0b0010, None), Backup(hop(SOUTH), 0b0100, None)
    bucket = (neighbour(WEST, 0b0110, some, rest), neighbour(SOUTH, 0b1000, Backup(hop(WEST), 0b1000, None)))
    patterns = [
        (entry.match.get("bit"), entry.params["f_bm"])
        for entry in switch_configuration(replace(PLAN, bifts={BIFT: (bucket,)}), bsl=64).entries
        if entry.table == BACKUP_TABLE
    ]
    every_bit = (1 << 64) - 1
    assert patterns == [((0, every_bit ^ 0b0010), 0b0010), ((0, every_bit ^ 0b0100), 0b0100), (None, every_bit)]
