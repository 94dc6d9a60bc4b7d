"""The values that the controller manages: flows, tunnels, connections and their counters. Switches are not known here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from holdfast.apps.protect.acceptance import Acceptance
from holdfast.apps.protect.program import OVERHEAD_BYTES
from holdfast.control.ternary import prefix_of, ternary_key
from holdfast.errors import NetworkError
from holdfast.paths import Disjoint, Path


def checked_mtu(mtu: int) -> int:
    """Return ``mtu``, the bytes that a tunnel's links carry. Raise :class:`NetworkError` if it is too small or too large."""
    if not OVERHEAD_BYTES + 20 <= mtu <= 65535:
        raise NetworkError(f"mtu is {mtu} bytes; a tunnel needs {OVERHEAD_BYTES + 20} to 65535")
    return mtu


@dataclass(frozen=True)
class Flow:
    """A descriptor on the 5-tuple of a packet's outermost header; a field that is None matches everything.

    Addresses are prefixes (``"10.0.1.0/24"``, ``"2001:db8::/32"``) or single addresses; ``protocol`` is a number (of IPv6 the first
    next header); ports are numbers. Without addresses it is a flow of IPv4; ``"::/0"`` is all of IPv6.
    """

    source: str | None = None
    destination: str | None = None
    protocol: int | None = None
    source_port: int | None = None
    destination_port: int | None = None

    @property
    def version(self) -> int:
        """The version of IP, 4 or 6.

        Raises :class:`NetworkError` if an address is invalid, or if the addresses are of both versions.
        """
        versions = {prefix_of(prefix).version for prefix in (self.source, self.destination) if prefix is not None}
        if len(versions) > 1:
            raise NetworkError(f"{self.source} and {self.destination} are not of the same version of IP")
        return versions.pop() if versions else 4

    def match(self) -> dict[str, tuple[int, int]]:
        """Return (value, mask) of each key field."""
        header, protocol = ("hdr.ipv4", "protocol") if self.version == 4 else ("hdr.ipv6", "next_header")
        return ternary_key(
            {f"{header}.src_addr": self.source, f"{header}.dst_addr": self.destination},
            {
                f"{header}.{protocol}": (self.protocol, 0xFF),
                "meta.src_port": (self.source_port, 0xFFFF),
                "meta.dst_port": (self.destination_port, 0xFFFF),
            },
        )

    def fields(self) -> dict[str, str | int]:
        """Return by name the fields that the flow specifies, that is those that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(eq=False)
class Tunnel:
    """A path, and the PTE's address on it. ``number`` is that of the copy that takes it, from 1: the PTE counts by it, from 0."""

    path: Path
    number: int
    address: str
    users: int = 0


@dataclass(frozen=True)
class Copy:
    """A replica of a group: its instance number (the egress' ``egress_rid``), and where it goes."""

    instance: int
    tunnel: Tunnel


@dataclass(eq=False)
class PathSet:
    """The paths of a PTI's copies. ``preferred``: the paths that it was set up with, and returns to after repairs."""

    ingress: str
    egress: str
    group: int
    disjoint: Disjoint
    preferred: tuple[Path, ...]
    copies: list[Copy] = field(default_factory=list)
    leaving: list[Copy] = field(default_factory=list)
    """Not made any more, but still there for packets under way."""
    users: int = 0

    @property
    def paths(self) -> list[Path]:
        """The paths that copies of a packet take now, in the order of the copies' numbers."""
        return [copy.tunnel.path for copy in self.copies]

    def __str__(self) -> str:
        return f"{self.ingress}-{self.egress} group {self.group}"


@dataclass(eq=False)
class Connection:
    """A protection connection from a tunnel ingress (PTI) to a tunnel egress (PTE).

    ``index`` is the PTI's number of it, ``cid`` the identifier in its packets, which only the PTE must be able to tell from others,
    and ``egress_index`` the PTE's number of it.
    """

    ingress: str
    egress: str
    cid: int
    index: int
    egress_index: int
    path_set: PathSet
    mtu: int
    acceptance: Acceptance = field(default_factory=Acceptance)
    flows: list[tuple[Flow, int]] = field(default_factory=list)
    """The protected flows with their priorities."""

    def __str__(self) -> str:
        return f"{self.ingress}-{self.egress}#{self.cid}"

    @property
    def multicast_group(self) -> int:
        """The multicast group by which the PTI (tunnel ingress) makes the copies."""
        return self.path_set.group

    @property
    def paths(self) -> list[Path]:
        """The paths that copies of a packet take now."""
        return self.path_set.paths

    @property
    def addresses(self) -> list[str]:
        """The addresses of the PTE (tunnel egress), one on each path."""
        return [copy.tunnel.address for copy in self.path_set.copies]


@dataclass(frozen=True)
class PathStatistics:
    """The PTE's counts of the copies that came by one path of a connection. ``path`` is its number, from 1."""

    connection: str
    path: int
    nodes: str
    passed_packets: int
    passed_bytes: int
    discarded_packets: int
    discarded_bytes: int
    rogue: int
    """Of the discarded ones: those too far from the last number."""
    out_of_order: int
    """Of the passed ones: those with another number than the next."""


@dataclass(frozen=True)
class ConnectionStatistics:
    """The counters of both ends of a connection, since it was set up."""

    connection: str
    protected_packets: int
    protected_bytes: int
    mtu_exceeded: int
    last_sent_sn: int
    accepted_packets: int
    accepted_bytes: int
    discarded_packets: int
    discarded_bytes: int
    lost: int
    """Numbers that were never accepted, as far as the algorithm can tell."""
    resets: int
    """The number of times that any number was accepted."""
    last_accepted_sn: int
    flow_packets: int
    """Packets of all flows that the connection has now, since each was added."""
    paths: tuple[PathStatistics, ...]
