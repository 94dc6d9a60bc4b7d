"""Members by IGMP and MLD: what an overlay hears at the edge, as the memberships that a BIER controller asks for.

It does not know how messages are read, nor what is written into switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

from holdfast.apps.bier.entries import Address, Channel, Configuration
from holdfast.apps.bier.program import DELIVER, receiver_table
from holdfast.control.membership.channels import ChannelChange
from holdfast.control.membership.overlay import Overlay
from holdfast.topology import Topology


class OverlayMembers:
    """The channels of an overlay, by switch."""

    def __init__(self, overlay: Overlay, topology: Topology) -> None:
        self._overlay = overlay
        self._edges = sorted({topology.attachment(host).switch for host in topology.hosts})
        self._switch_of: dict[Address, str] = {}
        for name, host in topology.hosts.items():
            for interface in (host.address, host.ipv6):
                if interface is not None:
                    self._switch_of[interface.ip] = topology.attachment(name).switch
        self._bfers: dict[Channel, frozenset[str]] = {channel: self._receiving(channel) for channel in overlay.channels}

    def at_bfir(self, switch: str) -> dict[Channel, list[str]]:
        """The channels whose source is here, or may be, with the switches where somebody wants them."""
        return {channel: sorted(bfers) for channel, bfers in self._bfers.items() if switch in self._bfirs(channel)}

    def at_bfer(self, switch: str) -> dict[Channel, frozenset[int]]:
        """The channels that are delivered here, or hidden from all that want the group's other sources."""
        channels = self._overlay.channels.items()
        return {channel: switches[switch] for channel, switches in channels if switch in switches}

    def touched(self, changes: Iterable[ChannelChange]) -> list[str]:
        """The switches that these changes touch: BFERs, and the BFIRs of channels that gained or lost one."""
        switches = set()
        for change in changes:
            channel = change.channel
            switches.add(change.switch)
            before, after = self._bfers.get(channel), self._receiving(channel)
            is_there = channel in self._overlay.channels
            if before != (after if is_there else None):
                switches.update(self._bfirs(channel))
            if is_there:
                self._bfers[channel] = after
            else:
                self._bfers.pop(channel, None)
        return sorted(switches)

    def _receiving(self, channel: Channel) -> frozenset[str]:
        return frozenset(switch for switch, ports in self._overlay.channels.get(channel, {}).items() if ports)

    def _bfirs(self, channel: Channel) -> list[str]:
        source, _ = channel
        if source is None:
            return self._edges
        switch = self._switch_of.get(source)
        return [] if switch is None else [switch]


def delivered(found: Mapping[str, Configuration]) -> dict[Channel, dict[str, frozenset[int]]]:
    """The channels that switches deliver, read back from their entries: what an overlay adopts."""
    tables = {
        receiver_table(version, any_source=any_source): version for version in (4, 6) for any_source in (False, True)
    }
    channels: dict[Channel, dict[str, frozenset[int]]] = {}
    for switch, configuration in found.items():
        for entry in configuration.entries:
            version = tables.get(entry.table)
            if version is None:
                continue
            kind = IPv4Address if version == 4 else IPv6Address
            group, source = (entry.match.get(f"hdr.ipv{version}.{name}_addr") for name in ("dst", "src"))
            assert isinstance(group, int)
            channel = (kind(source) if isinstance(source, int) else None, kind(group))
            ports: frozenset[int] = frozenset()
            if entry.action == DELIVER:
                replicas = configuration.groups.get(int(entry.params["m_grp"]), ())
                ports = frozenset(port for port, _ in replicas)
            channels.setdefault(channel, {})[switch] = ports
    return channels
