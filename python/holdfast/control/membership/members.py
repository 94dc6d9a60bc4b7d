"""Members that somebody names, instead of hosts that report: their channels, and what each join and leave changes of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from holdfast.control.membership.channels import Channel, ChannelChange, Channels, ChannelTable, PortKey
from holdfast.control.membership.filters import EVERYTHING, NOTHING, Filter, FilterChange
from holdfast.control.membership.messages import Address, stays_on_link
from holdfast.errors import NetworkError
from holdfast.topology import Topology


def channel(group: str, source: str | None = None) -> Channel:
    """Return the channel of a ``group`` and a ``source``, given as text; None for any source.

    Raises :class:`NetworkError` for texts that are no addresses of a channel, and for groups that routers do not forward.
    """
    try:
        group_address = ip_address(group)
        source_address: Address | None = None if source is None else ip_address(source)
    except ValueError as error:
        raise NetworkError(f"({source or '*'}, {group}) is not a channel: {error}") from None
    if not group_address.is_multicast:
        raise NetworkError(f"{group} is not a multicast group")
    if stays_on_link(group_address):
        raise NetworkError(f"{group} is a group of one link, which no router forwards")
    if source_address is not None and source_address.version != group_address.version:
        raise NetworkError(f"{source} and {group} are of different versions of IP")
    return source_address, group_address


def channel_of(topology: Topology, group: str, source: str) -> Channel:
    """Return the channel of a group whose source is the address of a host.

    Raises :class:`NetworkError` if there is no such host, or it has no address of the group's IP version.
    """
    if source not in topology.hosts:
        raise NetworkError(f"{group}: there is no host {source!r}")
    host = topology.hosts[source]
    interface = host.ipv6 if ":" in group else host.address
    if interface is None:
        raise NetworkError(f"{group}: host {source!r} has no IPv6 address")
    return channel(group, str(interface.ip))


class SourcePlaces:
    """By address of a host, its name and its switch."""

    def __init__(self, topology: Topology) -> None:
        self._hosts: dict[Address, str] = {}
        self._switches: dict[str, str] = {}
        for name, host in topology.hosts.items():
            self._switches[name] = topology.attachment(name).switch
            for interface in (host.address, host.ipv6):
                if interface is not None:
                    self._hosts[interface.ip] = name
        self.edges = sorted(set(self._switches.values()))
        """The switches with hosts."""

    def host(self, source: Address) -> str | None:
        """Return the name of the host with this address, or None if there is none."""
        return self._hosts.get(source)

    def switch(self, source: Address) -> str | None:
        """Return the switch to which the host with this address is attached, or None if there is no such host."""
        host = self._hosts.get(source)
        return None if host is None else self._switches[host]


class StaticMembers:
    """Hosts that are members of channels. A member of (*,G) takes all sources of G, as if it excluded none.

    ``members``: those from the beginning. Raises :class:`NetworkError` for a host that is not there.
    """

    def __init__(self, topology: Topology, members: Mapping[Channel, Iterable[str]]) -> None:
        self._topology = topology
        self._table = ChannelTable()
        self._hosts: dict[Channel, dict[str, None]] = {}
        self._wanted: dict[tuple[str, Address], set[Address | None]] = {}
        for joined, names in members.items():
            for name in names:
                self.join(joined, name)

    @property
    def channels(self) -> Channels:
        """The channels that members want now; this mapping changes with joins and leaves."""
        return self._table.channels

    def members(self, joined: Channel) -> list[str]:
        """Return the hosts that have joined a channel, in the order of joining."""
        return list(self._hosts.get(joined, ()))

    def join(self, joined: Channel, host: str) -> list[ChannelChange]:
        """Add a host to a channel, and return the changes of channels that result; none if it is a member already.

        Raises :class:`NetworkError` for an unknown host.
        """
        if host not in self._topology.hosts:
            raise NetworkError(f"there is no host {host!r}")
        if host in self._hosts.get(joined, ()):
            return []
        source, group = joined
        wanted = self._wanted.setdefault((host, group), set())
        before = _filter(wanted)
        wanted.add(source)
        self._hosts.setdefault(joined, {})[host] = None
        change = FilterChange.between(group, before, _filter(wanted))
        return self._table.change(self._place(host), change)

    def leave(self, left: Channel, host: str) -> list[ChannelChange]:
        """Remove a host from a channel, and return the changes of channels that result.

        Raises :class:`NetworkError` for a non-member.
        """
        if host not in self._hosts.get(left, ()):
            raise NetworkError(f"{host!r} is no member of {left[1]} from {left[0] or 'any source'}")
        source, group = left
        wanted = self._wanted[host, group]
        before = _filter(wanted)
        wanted.remove(source)
        if not wanted:
            del self._wanted[host, group]
        del self._hosts[left][host]
        if not self._hosts[left]:
            del self._hosts[left]
        change = FilterChange.between(group, before, _filter(wanted))
        return self._table.change(self._place(host), change)

    def _place(self, host: str) -> PortKey:
        place = self._topology.attachment(host)
        return place.switch, place.port


def _filter(wanted: set[Address | None]) -> Filter:
    if None in wanted:
        return EVERYTHING
    return Filter(False, frozenset(source for source in wanted if source is not None)) if wanted else NOTHING
