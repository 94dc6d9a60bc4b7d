"""What every switch needs for BIER: its BFR-id, its forwarding tables, and what its neighbours' bits take when a port is down.

A BitString is an integer: bit position ``p`` (1 to the BitString's length, BSL) is ``1 << (p - 1)``. This module knows the
topology's map alone: no program, no tables of a switch, no state of a port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from holdfast.control.next_hop import NextHop
from holdfast.errors import NetworkError

BSL_CODES = {64: 1, 128: 2, 256: 3, 512: 4, 1024: 5, 2048: 6, 4096: 7}
"""The code of a BitString's length in a header (RFC 8296, 2.1.2)."""


def checked_bsl(bsl: int) -> int:
    """The length of BitStrings. Raises :class:`NetworkError` if no header can say it."""
    if bsl not in BSL_CODES:
        raise NetworkError(f"a BitString has {', '.join(map(str, BSL_CODES))} bits, not {bsl}")
    return bsl


@dataclass(frozen=True, slots=True, order=True)
class Bift:
    """One forwarding table: sub-domain and set identifier, for the network's one BitString length."""

    sub_domain: int
    set_identifier: int

    def __post_init__(self) -> None:
        for what, value in (("sub-domain", self.sub_domain), ("set identifier", self.set_identifier)):
            if not 0 <= value <= 255:
                raise NetworkError(f"{what} {value} is not in 0 to 255")

    def bift_id(self, bsl: int) -> int:
        """The 20 bits that packets carry: the length's code (4), sub-domain (8), set identifier (8).

        RFC 8296 leaves the numbers to the domain; this packing is an option of the expired draft-ietf-bier-non-mpls-bift-encoding.
        """
        return BSL_CODES[checked_bsl(bsl)] << 16 | self.sub_domain << 8 | self.set_identifier


@dataclass(frozen=True, slots=True)
class Backup:
    """What some of a neighbour's bits take while the port towards it is down.

    ``tunnel``: the addresses of the outer IPv4 header: this switch's loopback and where the tunnel ends; ``next_hop`` is then the
    underlay's, towards that end. None: plain BIER to ``next_hop``.
    """

    next_hop: NextHop
    f_bm: int
    tunnel: tuple[IPv4Address, IPv4Address] | None


@dataclass(frozen=True, slots=True)
class NeighbourEntry:
    """A neighbour (BFR-NBR) with its forwarding bit mask (F-BM). The masks of its ``backups`` are disjoint."""

    neighbour: str
    next_hop: NextHop
    f_bm: int
    backups: tuple[Backup, ...]


@dataclass(frozen=True)
class SwitchPlan:
    """One switch.

    ``bfr_id``: 0 is a transit router without a bit of its own. ``bifts``: by table its ECMP buckets, one or a power of two, which
    entropy chooses between (RFC 8279, 6.7); the masks of each bucket are a partition of the bits that can be reached.
    ``own``: the switch's own bit by table, 0 where it has none.
    """

    bfr_id: int
    loopback: IPv4Address
    bifts: Mapping[Bift, tuple[tuple[NeighbourEntry, ...], ...]]
    own: Mapping[Bift, int]
