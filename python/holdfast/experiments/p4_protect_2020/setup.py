"""Shared by the parts: the network between two ends with two paths, and the forwarding modes that run on it.

Nothing here knows what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from holdfast._core import Program
from holdfast.apps.protect import Acceptance, ProtectController, compile_protect
from holdfast.apps.protect.program import OVERHEAD_BYTES
from holdfast.apps.router import RouterController, compile_router
from holdfast.controller import Controller
from holdfast.errors import ExperimentError
from holdfast.experiments.p4_protect_2020 import published
from holdfast.topology import Topology

MTU = 1500
"""The MTU of the hosts. Links between switches carry the tunnel's headers as well."""

VECTOR = "vector"
"""Protection with 802.1CB's VectorRecoveryAlgorithm in place of the paper's window: ours."""

MODES = (*published.MODES, VECTOR)

Options = Mapping[str, Any]


def client(pair: int) -> str:
    """Return the name of the downloading host of a pair, which is behind s1. Pairs count from 1."""
    return f"c{pair}"


def server(pair: int) -> str:
    """Return the name of the sending host of a pair, which is behind s2. Pairs count from 1."""
    return f"v{pair}"


def two_ends(
    pairs: int, *, clients: Options, servers: Options, path1: Options, path2: Options, direct: bool = False
) -> Topology:
    """Build clients at s1, servers at s2, and two disjoint paths: s1-m1-s2, which costs less, and s1-m2-s2.

    With ``direct``, the paths are two links between s1 and s2, as in the paper except for its jitter, which was made by nodes in
    between. Options are those of :meth:`Topology.add_link`; a path's losses and jitter are on its first link, seen from s1.
    """
    result = Topology("p4-protect")
    for pair in range(1, pairs + 1):
        result.add_host(client(pair))
        result.add_host(server(pair))
    for switch in ("s1", "s2") if direct else ("s1", "s2", "m1", "m2"):
        result.add_switch(switch)
    for pair in range(1, pairs + 1):
        result.add_link(client(pair), "s1", **clients)
        result.add_link(server(pair), "s2", **servers)
    for middle, cost, options in (("m1", 1, path1), ("m2", 2, path2)):
        result.add_link("s1", "s2" if direct else middle, cost=cost, **options)
        if direct:
            continue
        plain = {name: value for name, value in options.items() if name not in ("jitter", "loss", "reverse")}
        result.add_link(middle, "s2", cost=cost, **plain)
    return result


@cache
def router_program() -> Program:
    """Compile the router program, once per process."""
    return compile_router()


@cache
def protect_program(sn_bits: int = published.CLAIM_SN_BITS) -> Program:
    """Compile the protection program with sequence numbers of ``sn_bits``, once per process and width."""
    return compile_protect({"SN_BITS": str(sn_bits)})


def forwarding(
    mode: str, protect: Sequence[tuple[str, str]], sn_bits: int = published.CLAIM_SN_BITS
) -> tuple[Program, Controller]:
    """Return the program of all switches, and its controller, for one forwarding mode.

    ``protect``: pairs of hosts, protected in both directions if the mode protects. Raise :class:`ExperimentError` for an unknown
    mode.
    """
    if mode not in MODES:
        raise ExperimentError(f"there is no forwarding mode {mode!r} (known: {', '.join(MODES)})")
    if mode == "plain":
        return router_program(), RouterController(reroute=False, reaction_delay_ms=0.0)
    controller = ProtectController(
        protect=[] if mode == "unprotected" else list(protect),
        reaction_delay_ms=0.0,
        mtu=MTU + OVERHEAD_BYTES,
        disjoint="link",
        acceptance=Acceptance("vector", reset_ms=0) if mode == VECTOR else Acceptance("window", reset_ms=0),
    )
    return protect_program(sn_bits), controller
