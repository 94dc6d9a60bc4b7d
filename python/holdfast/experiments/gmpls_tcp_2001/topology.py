"""The networks of the study: figures 6, 9 and 17, with the paper's open values as parameters.

The content of the figures is rebuilt from the text, so names of nodes on backup paths are partly ours. Nothing runs here.

Access node A is a router, as is C; destinations are hosts. All delays are of one direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.apps.mpls import Connection, LastHop, Mechanism, Recovery, add_port_events
from holdfast.errors import TopologyError
from holdfast.link import Direction, MarkAbove
from holdfast.topology import Topology

FAILING_LINK = "LSR1-LSR2"


@dataclass(frozen=True)
class Parameters:
    """The common parameters of all networks of the study.

    ``access_delays_ms``: one source node each (the paper draws ten from 10 to 100 ms); ``fixed_access_delays_ms``: those of the
    fixed flows of the timing study, the same if not given. ``access_percent``: the rate of access links, of the backbone's (the
    paper: 80, and 90 in the timing study). ``buffer_packets`` wait at each link; the paper does not say, nor the backbone's
    rate, nor the delay of a backbone link in the timing study, ``timing_link_ms``. ``mark_above``: links mark packets that find
    more than so many waiting (ECN); the paper's do not.
    """

    access_delays_ms: Sequence[float]
    backbone_bps: int = 34_000_000
    access_percent: float = 80.0
    buffer_packets: int = 50
    timing_link_ms: float = 1.0
    mark_above: int | None = None
    fixed_access_delays_ms: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.access_delays_ms:
            raise TopologyError("access_delays_ms is empty; every source node needs one")
        for name, value in (
            ("backbone_bps", self.backbone_bps),
            ("access_percent", self.access_percent),
            ("buffer_packets", self.buffer_packets),
            ("timing_link_ms", self.timing_link_ms),
        ):
            if value <= 0:
                raise TopologyError(f"{name} is {value}; it must be above zero")

    @property
    def backbone(self) -> Direction:
        """The rate, buffer and ECN marking of every backbone link."""
        mark_above = None if self.mark_above is None else MarkAbove(packets=self.mark_above)
        return Direction(rate_bps=self.backbone_bps, queue_packets=self.buffer_packets, mark_above=mark_above)

    @property
    def access(self) -> Direction:
        """The rate, buffer and ECN marking of every access link."""
        return self.backbone.model_copy(update={"rate_bps": round(self.backbone_bps * self.access_percent / 100)})


@dataclass(frozen=True)
class Case:
    """Delays of the case study in ms (table 7).

    The extra length of the local and the path backup over the path they replace, and the three links of the working path.
    """

    dl: float
    dp: float
    a: float
    b: float
    c: float


CASES: Mapping[str, Case] = {
    "A": Case(1, 3, 2, 1, 48),
    "B": Case(5, 15, 10, 1, 40),
    "C": Case(10, 30, 20, 1, 30),
    "D": Case(20, 60, 40, 1, 10),
}


@dataclass(frozen=True)
class Scenario:
    """A network and its LSPs.

    ``sources`` send to ``sink`` over :data:`FAILING_LINK`; ``fixed_sources``, if there are any, to ``fixed_sink``.
    """

    topology: Topology
    connections: Sequence[Connection]
    sources: Sequence[str]
    sink: str
    fixed_sources: Sequence[str] = ()
    fixed_sink: str | None = None


def _chain(topology: Topology, nodes: Sequence[str], delays_ms: Sequence[float], link: Direction) -> None:
    for (a, b), delay_ms in zip(pairwise(nodes), delays_ms, strict=True):
        topology.add_link(a, b, link, delay_ms=delay_ms)


def _sources(
    topology: Topology, prefix: str, access_node: str, delays_ms: Sequence[float], parameters: Parameters
) -> list[str]:
    names = [f"{prefix}{i}" for i in range(len(delays_ms))]
    topology.add_switch(access_node)
    for name, delay_ms in zip(names, delays_ms, strict=True):
        topology.add_host(name)
        topology.add_link(name, access_node, parameters.access, delay_ms=delay_ms)
    return names


def _network(name: str, parameters: Parameters, ingress: str, nodes: Sequence[str]) -> tuple[Topology, list[str]]:
    """Build the ends common to all networks; return the topology and the names of the sources.

    The sources are behind A, which is 1 ms before the ingress; the host B is 1 ms behind LSR3.
    """
    topology = Topology(name)
    for node in nodes:
        topology.add_switch(node)
    sources = _sources(topology, "S", "A", parameters.access_delays_ms, parameters)
    topology.add_host("B")
    topology.add_link("A", ingress, parameters.access, delay_ms=1)
    topology.add_link("LSR3", "B", parameters.access, delay_ms=1)
    return topology, sources


def timing(parameters: Parameters, *, recovery: Recovery | None = None, shared: bool = True) -> Scenario:
    """Build the network of section 5 (figure 6).

    The backup path of the switched flows crosses LSR5-LSR6, with fixed flows if ``shared``, else alone. ``recovery``: that of the
    switched flows; local if None.
    """
    spine = ["LSR4", "LSR1", "LSR2", "LSR3"]
    detour = ["LSR1", "LSR5", "LSR6", "LSR2"]
    topology, sources = _network("timing", parameters, "LSR4", [*spine, "LSR5", "LSR6"])
    delay_ms = parameters.timing_link_ms
    _chain(topology, spine, [delay_ms] * 3, parameters.backbone)
    _chain(topology, detour, [delay_ms] * 3, parameters.backbone)
    connections = [
        _connection(sources, "B", spine, {("LSR1", "LSR2"): detour}, None, recovery or Recovery(Mechanism.LOCAL))
    ]
    if not shared:
        add_port_events(topology)
        return Scenario(topology, connections, sources, "B")
    for node in ("LSR7", "LSR8"):
        topology.add_switch(node)
    fixed_delays_ms = parameters.fixed_access_delays_ms or parameters.access_delays_ms
    fixed = _sources(topology, "F", "C", fixed_delays_ms, parameters)
    topology.add_host("D")
    topology.add_link("C", "LSR8", parameters.access, delay_ms=1)
    topology.add_link("LSR8", "LSR5", parameters.backbone, delay_ms=delay_ms)
    topology.add_link("LSR6", "LSR7", parameters.backbone, delay_ms=delay_ms)
    topology.add_link("LSR7", "D", parameters.access, delay_ms=1)
    connections.append(_connection(fixed, "D", ["LSR8", "LSR5", "LSR6", "LSR7"], None, None, Recovery()))
    add_port_events(topology)
    return Scenario(topology, connections, sources, "B", fixed, "D")


def rtt_change(parameters: Parameters, d_ms: float, *, recovery: Recovery | None = None) -> Scenario:
    """Build the network of sections 6 and 7 (figure 9).

    The working path crosses LSR1-LSR2 in 1 ms; the backup path goes over LSR4 and LSR5 in ``d_ms``. ``recovery`` is local if None.
    """
    spine = ["LSR0", "LSR1", "LSR2", "LSR3"]
    detour = ["LSR1", "LSR4", "LSR5", "LSR2"]
    topology, sources = _network("rtt_change", parameters, "LSR0", [*spine, "LSR4", "LSR5"])
    _chain(topology, spine, [1, 1, 1], parameters.backbone)
    _chain(topology, detour, [d_ms / 3] * 3, parameters.backbone)
    add_port_events(topology)
    connection = _connection(
        sources, "B", spine, {("LSR1", "LSR2"): detour}, None, recovery or Recovery(Mechanism.LOCAL)
    )
    return Scenario(topology, [connection], sources, "B")


def case_study(parameters: Parameters, case: Case, recovery: Recovery | None) -> Scenario:
    """Build the network of section 8 (figure 17).

    The links from LSR0 to LSR3 have the delays a, b and c of ``case``. LSR4 is on the detour around the middle link, LSR5 to LSR7
    on the path around all. Without ``recovery`` there are no LSPs, and no agents in the switches.
    """
    spine = ["LSR0", "LSR1", "LSR2", "LSR3"]
    detour = ["LSR1", "LSR4", "LSR2"]
    backup = ["LSR0", "LSR5", "LSR6", "LSR7", "LSR3"]
    topology, sources = _network("case_study", parameters, "LSR0", [*spine, "LSR4", "LSR5", "LSR6", "LSR7"])
    _chain(topology, spine, [case.a, case.b, case.c], parameters.backbone)
    _chain(topology, detour, [(case.b + case.dl) / 2] * 2, parameters.backbone)
    _chain(topology, backup, [(case.a + case.b + case.c + case.dp) / 4] * 4, parameters.backbone)
    if recovery is None:
        return Scenario(topology, [], sources, "B")
    add_port_events(topology)
    connection = _connection(sources, "B", spine, {("LSR1", "LSR2"): detour}, backup, recovery)
    return Scenario(topology, [connection], sources, "B")


def _connection(
    sources: Sequence[str],
    sink: str,
    path: Sequence[str],
    detours: Mapping[tuple[str, str], Sequence[str]] | None,
    backup: Sequence[str] | None,
    recovery: Recovery,
) -> Connection:
    """Return the pair of LSPs of the aggregate of all flows.

    The last hop has a label of its own, by which the egress tells its inputs. ``detours`` are used by local recovery only,
    ``backup`` by mechanisms with a backup path.
    """
    return Connection(
        a=sources,
        b=sink,
        recovery=recovery,
        path=path,
        backup=backup if recovery.mechanism.has_backup else None,
        detours=detours if recovery.mechanism == Mechanism.LOCAL else None,
        last_hop=LastHop.LABEL,
    )
