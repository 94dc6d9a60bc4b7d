"""What programs that route between the subnets of hosts ask of a topology. Routes and programs are not known here."""

from __future__ import annotations

from holdfast.errors import NetworkError
from holdfast.host import shared_subnets
from holdfast.topology import Topology


def check_routed(topology: Topology, what: str, *, several_cards: bool = False) -> None:
    """Raise :class:`NetworkError` if ``what`` cannot route to one of the hosts.

    Routers answer no ARP and no neighbour solicitations and read no VLAN tags, so each host is alone in its subnets, knows its
    gateway's MAC address and sends without a tag. ``several_cards``: hosts may have several network cards.
    """
    if topology.bridges:
        raise NetworkError(f"switch {topology.bridges[0]!r} is a bridge, and {what} routes between P4 switches alone")
    for one, other, subnet in shared_subnets(topology.hosts):
        raise NetworkError(
            f"hosts {one!r} and {other!r} are both in {subnet}, at different ports of what {what} routes; "
            "give each a subnet of its own, such as a /32"
        )
    for name, host in topology.hosts.items():
        if host.vlan is not None:
            raise NetworkError(f"host {name!r} is in VLAN {host.vlan}, and {what} does not read the tags of VLANs")
        if host.interfaces and not several_cards:
            raise NetworkError(f"host {name!r} has {len(host.cards)} network cards, and {what} knows one of each host")
        if host.gateway is not None and host.gateway not in topology.known_neighbours(name):
            raise NetworkError(
                f"host {name!r} asks by ARP for its gateway {host.gateway}, and {what} does not answer; "
                "leave its `gateway` out, or add it to its `neighbours`"
            )
