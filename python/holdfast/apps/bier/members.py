"""Who has joined which channel: what BFIRs send to and BFERs deliver to. It does not know how a controller learns of it.

A channel's packets enter the domain at the switch of its source's host, or, without a source (*,G), at every switch with hosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Protocol, TypeAlias

from holdfast.apps.bier.entries import Address, Channel
from holdfast.errors import NetworkError
from holdfast.topology import Topology

BfirChannels: TypeAlias = Mapping[Channel, Iterable[str]]
"""Of one switch: the BFERs that each channel's packets go to."""

BferChannels: TypeAlias = Mapping[Channel, Iterable[int]]
"""Of one switch: the ports that each channel's packets are delivered to."""


class Memberships(Protocol):
    """What a controller asks about channels."""

    def at_bfir(self, switch: str) -> BfirChannels:
        """The channels that may enter the domain at a switch."""

    def at_bfer(self, switch: str) -> BferChannels:
        """The channels that are delivered at a switch."""


def channel(group: str, source: str | None = None) -> Channel:
    """A channel by its addresses. Raises :class:`NetworkError` for what is none."""
    try:
        group_address = ip_address(group)
        source_address: Address | None = None if source is None else ip_address(source)
    except ValueError as error:
        raise NetworkError(f"({source or '*'}, {group}) is not a channel: {error}") from None
    if not group_address.is_multicast:
        raise NetworkError(f"{group} is not a multicast group")
    if source_address is not None and source_address.version != group_address.version:
        raise NetworkError(f"{source} and {group} are of different versions of IP")
    return source_address, group_address


class StaticMembers:
    """Members that somebody names. Raises :class:`NetworkError` for a host that is not there."""

    def __init__(self, topology: Topology, members: Mapping[Channel, Iterable[str]]) -> None:
        self._topology = topology
        self._members: dict[Channel, dict[str, None]] = {}
        self._edges = {topology.attachment(host).switch for host in topology.hosts}
        self._owners: dict[Address, str] = {}
        for host in topology.hosts.values():
            self._owners[host.address.ip] = host.name
            if host.ipv6 is not None:
                self._owners[host.ipv6.ip] = host.name
        for joined, names in members.items():
            self._members[joined] = {}
            for name in names:
                self.join(joined, name)

    def join(self, joined: Channel, host: str) -> None:
        """Adds a member."""
        if host not in self._topology.hosts:
            raise NetworkError(f"there is no host {host!r}")
        self._members.setdefault(joined, {})[host] = None

    def leave(self, left: Channel, host: str) -> None:
        """Takes a member out. Raises :class:`NetworkError` if it is none."""
        if host not in self._members.get(left, ()):
            raise NetworkError(f"{host!r} is no member of {left[1]} from {left[0] or 'any source'}")
        del self._members[left][host]
        if not self._members[left]:
            del self._members[left]

    def at_bfir(self, switch: str) -> dict[Channel, list[str]]:
        """The channels whose source is here, or may be. Of the members of (*,G) those of (S,G) receive from S as well."""
        channels: dict[Channel, list[str]] = {}
        for each, hosts in self._members.items():
            source, group = each
            if source is None:
                if switch in self._edges:
                    channels[each] = self._switches(hosts)
            elif self._switch_of(source) == switch:
                channels[each] = self._switches([*hosts, *self._members.get((None, group), ())])
        return channels

    def at_bfer(self, switch: str) -> dict[Channel, list[int]]:
        """The channels with members here."""
        channels: dict[Channel, list[int]] = {}
        for each, hosts in self._members.items():
            wanted = hosts if each[0] is None else [*hosts, *self._members.get((None, each[1]), ())]
            places = [self._topology.attachment(host) for host in wanted]
            ports = [place.port for place in places if place.switch == switch]
            if ports:
                channels[each] = ports
        return channels

    def _switches(self, hosts: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(self._topology.attachment(host).switch for host in hosts))

    def _switch_of(self, source: Address) -> str | None:
        owner = self._owners.get(source)
        return None if owner is None else self._topology.attachment(owner).switch
