"""Entries that follow from the map: the stations, the ways to them, and the hosts at each edge."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from holdfast.control.next_hop import over_link, to_host
from holdfast.control.tables import TableEntry
from holdfast.errors import NetworkError
from holdfast.paths import ShortestPaths
from holdfast.topology import Topology

INGRESS = "ShorternetIngress"
SHORT_PORTS = "ShorternetParser.short_ports"
HIGHEST_STATION = 255


def stations(topology: Topology, hosts: Mapping[str, int]) -> dict[str, int]:
    """Return the station number of each switch, which is its index in the map, and of the given hosts.

    Raise :class:`NetworkError` for a number that does not fit into eight bits or is used twice, or a host that does not exist.
    """
    found = {name: switch.index for name, switch in topology.switches.items()}
    for name, station in hosts.items():
        if name not in topology.hosts:
            raise NetworkError(f"there is no host {name!r} to be station {station}")
        found[name] = station
    taken: dict[int, str] = {}
    for name, station in found.items():
        if not 1 <= station <= HIGHEST_STATION:
            raise NetworkError(f"{name!r} would be station {station}; Shorternet has 1 to {HIGHEST_STATION}")
        if station in taken:
            raise NetworkError(f"{name!r} and {taken[station]!r} would both be station {station}")
        taken[station] = name
    return found


def short_ports(topology: Topology, hosts: Mapping[str, int]) -> dict[str, list[int]]:
    """Return the ports of each switch whose links carry Shorternet: to switches, and to hosts that are stations."""
    ports: dict[str, list[int]] = {name: [] for name in topology.switches}
    for link in topology.links:
        for name, port, other in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a)):
            if name in ports and (other in topology.switches or other in hosts):
                ports[name].append(port)
    return ports


def plan(topology: Topology, paths: ShortestPaths, hosts: Mapping[str, int]) -> dict[str, list[TableEntry]]:
    """Return all entries of each switch except those of flows' contexts (:mod:`holdfast.apps.shorternet.contexts`).

    ``hosts``: the station numbers of the hosts that speak Shorternet, which get no entries for their IP addresses.
    """
    numbers = stations(topology, hosts)
    wanted: dict[str, list[TableEntry]] = {name: [] for name in topology.switches}
    for switch, entries in wanted.items():
        entries.append(_station(numbers[switch], "receive", {}))
        for other in topology.switches:
            if other != switch and (port := _port(topology, paths, switch, other)) is not None:
                entries.append(_station(numbers[other], "forward", {"port": port}))
                params = {"port": port, "own": numbers[switch]}
                entries.append(
                    TableEntry(f"{INGRESS}.edges", {"station": numbers[other]}, f"{INGRESS}.towards", params)
                )
    for name in topology.hosts:
        place = topology.attachment(name)
        if name in hosts:
            for switch, entries in wanted.items():
                way = place.port if switch == place.switch else _port(topology, paths, switch, place.switch)
                if way is not None:
                    entries.append(_station(hosts[name], "forward", {"port": way}))
            speak = TableEntry(
                f"{INGRESS}.speakers", {"port": place.port}, f"{INGRESS}.speak", {"station": hosts[name]}
            )
            wanted[place.switch].append(speak)
            continue
        networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = [place.host.address.network]
        if place.host.ipv6 is not None:
            networks.append(place.host.ipv6.network)
        for network in networks:
            for switch, entries in wanted.items():
                entries.append(
                    _host(network, "deliver", to_host(topology, place).params())
                    if switch == place.switch
                    else _host(network, "send", {"station": numbers[place.switch]})
                )
    return wanted


def _port(topology: Topology, paths: ShortestPaths, switch: str, other: str) -> int | None:
    hop = paths.next_hop(paths.number[switch], paths.number[other])
    return None if hop is None else over_link(topology, switch, hop.link).port


def _station(station: int, action: str, params: Mapping[str, int]) -> TableEntry:
    return TableEntry(f"{INGRESS}.stations", {"station": station}, f"{INGRESS}.{action}", dict(params))


def _host(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network, action: str, params: Mapping[str, int | str]
) -> TableEntry:
    key = {"dst_addr": (int(network.network_address), network.prefixlen)}
    return TableEntry(f"{INGRESS}.ipv{network.version}_hosts", key, f"{INGRESS}.{action}", params)
