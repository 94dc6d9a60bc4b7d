"""A small churn of memberships in a network: nobody misses a packet, and nobody gets one after the timer of a leave."""

from __future__ import annotations

from bier_churn import churn


def test_hosts_that_come_and_go_get_what_they_joined_and_nothing_else() -> None:
    found = churn("abilene", groups=24, changes_per_s=40, seconds=12)
    assert (found.joins, found.leaves) == (240, 240)
    assert found.delivered > 10_000
    assert found.late_s > 1.9, "somebody got packets until the timer of the leave expired"
    assert not (found.strangers or found.missed or found.late)
