"""From a topology to the roles of a telemetry domain: node ids, ports at its edge and inside, MTUs, the way to the collector.

Pure functions of the map. All switches of the topology are INT nodes; hosts are outside the domain if nothing else is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from holdfast.apps.telemetry.entries import PortRole, Reporter
from holdfast.control.next_hop import over_link, to_host
from holdfast.errors import NetworkError
from holdfast.link import link_towards
from holdfast.paths import ShortestPaths
from holdfast.topology import Topology


@dataclass(frozen=True)
class ReportPlan:
    """The reporting of all switches. ``collector``: a host."""

    collector: str
    port: int
    changes_only: bool = False
    latency_shift: int = 0


def node_ids(topology: Topology) -> dict[str, int]:
    """Return the node id of each switch: its index, which is unique in the domain."""
    return {name: switch.index for name, switch in topology.switches.items()}


def port_roles(
    topology: Topology, *, mtu: int, queue_threshold: int, queue_quota: int, hosts_in_domain: bool = False
) -> dict[str, dict[int, PortRole]]:
    """Return the role of each port in the telemetry domain, by switch and port.

    ``mtu``: of links that do not state theirs, in bytes. A port to a host is at the domain's edge, unless ``hosts_in_domain`` is
    set.
    """
    roles: dict[str, dict[int, PortRole]] = {name: {} for name in topology.switches}
    for link in topology.links:
        ends = ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        for switch, port, neighbour in ends:
            if switch in roles:
                roles[switch][port] = PortRole(
                    mtu=link.mtu_bytes or mtu,
                    edge=neighbour not in roles and not hosts_in_domain,
                    interface=topology.switches[switch].index << 16 | port,
                    queue_threshold=queue_threshold,
                    queue_quota=queue_quota,
                    rate_bps=link_towards(link, neighbour).rate_bps,
                )
    return roles


def reporters(topology: Topology, paths: ShortestPaths, plan: ReportPlan) -> Mapping[str, Reporter | None]:
    """Return by switch how it sends reports; None for a switch from which no path leads to the collector.

    Raise :class:`NetworkError` if the collector is no host of the topology.
    """
    if plan.collector not in topology.hosts:
        raise NetworkError(f"there is no host {plan.collector!r} to collect reports")
    place = topology.attachment(plan.collector)
    target = paths.number[place.switch]
    found: dict[str, Reporter | None] = {}
    for node, switch in enumerate(paths.nodes):
        hop = paths.next_hop(node, target)
        if switch != place.switch and hop is None:
            found[switch] = None
            continue
        next_hop = to_host(topology, place) if hop is None else over_link(topology, switch, hop.link)
        found[switch] = Reporter(
            hop=next_hop,
            source=source_address(topology, switch),
            collector=place.host.address.ip,
            source_port=plan.port,
            collector_port=plan.port,
            changes_only=plan.changes_only,
            latency_shift=plan.latency_shift,
        )
    return found


def source_address(topology: Topology, switch: str) -> IPv4Address:
    """Return the source address of a switch's reports: in 10.255.0.0/16, by its index."""
    return IPv4Address(0x0AFF0000 + topology.switches[switch].index)
