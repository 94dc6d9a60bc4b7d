"""BIER domains: ``apps/bier`` with its controller, with given receivers. It does not know the measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from holdfast._core import Program
from holdfast.apps.bier.controller import BierController
from holdfast.apps.bier.entries import cluster_configuration
from holdfast.apps.bier.planning import Bift
from holdfast.apps.bier.program import Replication, compile_bier
from holdfast.control.desired import Writer
from holdfast.control.membership.members import channel
from holdfast.controller import Controller
from holdfast.topology import Topology

BFR = "bfr"
"""The switch that is studied."""

MTU = 9000
"""The MTU of links between switches: BIER headers are added to the hosts' packets."""

Members = Mapping[tuple[str, str], Iterable[str]]
"""The hosts that receive, by (sending host, group)."""


@cache
def bier_program(replication: Replication) -> Program:
    """Compile the BIER program with one way to replicate packets (``replication``), once per process."""
    return compile_bier(replication)


def controller(topology: Topology, members: Members, **options: Any) -> BierController:
    """Build a BIER controller for these groups; without rerouting and without backups, unless ``options`` say otherwise.

    ``members``: the hosts that receive each pair of a source and a group.
    """
    channels = {
        channel(group, str(topology.hosts[source].address.ip)): list(hosts)
        for (source, group), hosts in members.items()
    }
    unprotected: dict[str, Any] = {
        "frr": "none",
        "ip_frr": False,
        "reroute": False,
        "ip_delay_ms": 0.0,
        "bier_delay_ms": 0.0,
    }
    return BierController(channels, mtu=MTU, **(unprotected | options))


class Clusters(Controller):
    """Gives sets of neighbours of :data:`BFR`, by name, groups of their own; it starts after the domain's controller."""

    def __init__(self, domain: BierController, sets: Iterable[Iterable[str]]) -> None:
        super().__init__(reaction_delay_ms=0.0)
        self._domain, self._sets = domain, [frozenset(names) for names in sets]

    def on_start(self) -> None:
        """Write this controller's clusters of neighbours into the tables of the switch :data:`BFR`."""
        plan = self._domain.plan.switches[BFR]
        bift = Bift(0, 0)
        [bucket] = plan.bifts[bift]
        places = {entry.neighbour: place for place, entry in enumerate(bucket)}
        sets = [frozenset(places[name] for name in names) for names in self._sets]
        Writer(self.clients[BFR]).write(cluster_configuration(plan, {(bift, 0): sets}))
