"""An LSP as its user sees it: forwarding equivalence classes, recovery, paths and statistics. Nothing is installed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from holdfast.control.ternary import prefix_of, ternary_key
from holdfast.errors import NetworkError

MAX_HOPS = 31
"""Links of a path: the ingress keeps their state in the bits of one register cell, and one bit for packets that came back."""

NEVER_US = 2**48 - 1
"""The value of ``wait_to_restore`` with which an LSP never reverts."""


E = TypeVar("E", bound=StrEnum)


def one_of(kind: type[E], parameter: str, value: str) -> E:
    """Return the member of the enumeration ``kind`` with this value. Raise :class:`NetworkError` if there is none."""
    try:
        return kind(value)
    except ValueError:
        raise NetworkError(f"{parameter} is {value!r}; it must be one of {', '.join(kind)}") from None


class Mechanism(StrEnum):
    """The way that an LSP recovers from the failure of a link."""

    NONE = "none"
    LOCAL = "local"
    PATH = "path"
    LOOPBACK = "loopback"
    LOOPBACKVAR = "loopbackvar"

    @property
    def has_backup(self) -> bool:
        """True if the mechanism needs a whole other path from ingress to egress."""
        return self not in (Mechanism.NONE, Mechanism.LOCAL)

    @property
    def notifies(self) -> bool:
        """True if the ingress is notified of failures elsewhere on the path."""
        return self in (Mechanism.PATH, Mechanism.LOOPBACKVAR)

    @property
    def loops(self) -> bool:
        """True if the node before a failure sends packets back."""
        return self in (Mechanism.LOOPBACK, Mechanism.LOOPBACKVAR)


class TtlModel(StrEnum):
    """RFC 3443: whether the hops of an LSP count in the packet's own TTL."""

    UNIFORM = "uniform"
    PIPE = "pipe"


class LastHop(StrEnum):
    """How the egress gets packets: without a label (penultimate hop popping), with label 0, or with a label of its own."""

    PHP = "php"
    EXPLICIT_NULL = "explicit_null"
    LABEL = "label"


@dataclass(frozen=True)
class Recovery:
    """A recovery mechanism and its parameters.

    ``revertive``: back to the primary path when it is repaired, after ``wait_to_restore_ms``. ``merge_capable``: the merge point
    takes packets of both inputs ("electrical"), or of one at a time ("optical").
    """

    mechanism: Mechanism = Mechanism.NONE
    revertive: bool = True
    wait_to_restore_ms: float = 0.0
    merge_capable: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", one_of(Mechanism, "mechanism", self.mechanism))
        if not 0 <= self.wait_to_restore_ms < NEVER_US / 1000:
            raise NetworkError(f"wait_to_restore_ms is {self.wait_to_restore_ms}; it is from 0 to {NEVER_US // 1000}")
        if self.mechanism == Mechanism.LOOPBACKVAR and not self.merge_capable:
            raise NetworkError(
                "loopbackvar merges, at the ingress, packets that come back with new ones: without that it is 'path'"
            )

    @property
    def wait_to_restore_us(self) -> int:
        """The time before an LSP returns to its primary path, in microseconds, as a register holds it; the maximum for never."""
        return round(self.wait_to_restore_ms * 1000) if self.revertive else NEVER_US


@dataclass(frozen=True)
class Fec:
    """A forwarding equivalence class: packets that belong together. A field that is None matches everything.

    ``destination`` alone is looked up by longest prefix; with anything else the class is an entry with a ``priority``,
    and comes before all prefixes. ``ingress_port`` is a port of the LSP's ingress; ``diffserv`` the whole octet.
    """

    destination: str | None = None
    source: str | None = None
    protocol: int | None = None
    diffserv: int | None = None
    ingress_port: int | None = None
    priority: int = 1000

    @property
    def is_prefix(self) -> bool:
        """True if the class is described by a destination prefix alone."""
        others = (self.source, self.protocol, self.diffserv, self.ingress_port)
        return self.destination is not None and all(other is None for other in others)

    def match(self) -> dict[str, tuple[int, int]]:
        """Return (value, mask) of each key field. Raise :class:`NetworkError` for an address that is not IPv4."""
        for prefix in (self.source, self.destination):
            if prefix is not None and prefix_of(prefix).version != 4:
                raise NetworkError(f"{prefix} is not of IPv4, which is what these label edges read")
        return ternary_key(
            {"hdr.ipv4.src_addr": self.source, "hdr.ipv4.dst_addr": self.destination},
            {
                "ingress_port": (self.ingress_port, 0x1FF),
                "hdr.ipv4.protocol": (self.protocol, 0xFF),
                "hdr.ipv4.diffserv": (self.diffserv, 0xFF),
            },
        )


@dataclass(frozen=True)
class Connection:
    """Hosts on two sides, and what the pair of LSPs is like that :meth:`MplsController.connect` sets up for them.

    ``path``, ``backup`` and ``detours`` as for :meth:`MplsController.add_lsp`, from ``a`` to ``b``; the other direction is the same
    backwards. The path need not begin and end at the hosts' switches.
    """

    a: str | Sequence[str]
    b: str | Sequence[str]
    recovery: Recovery = field(default_factory=Recovery)
    path: Sequence[str] | None = None
    backup: Sequence[str] | None = None
    detours: Mapping[tuple[str, str], Sequence[str]] | None = None
    ttl: TtlModel = TtlModel.UNIFORM
    last_hop: LastHop = LastHop.PHP

    @property
    def hosts_a(self) -> list[str]:
        """The hosts on side ``a`` of the connection."""
        return [self.a] if isinstance(self.a, str) else list(self.a)

    @property
    def hosts_b(self) -> list[str]:
        """The hosts on side ``b`` of the connection."""
        return [self.b] if isinstance(self.b, str) else list(self.b)


@dataclass(eq=False)
class Lsp:
    """An LSP that is installed. ``number`` is its index in the registers and counters of every node."""

    number: int
    path: list[str]
    recovery: Recovery
    ttl: TtlModel
    last_hop: LastHop
    tunnels: Mapping[tuple[str, str], Lsp]
    backup: list[str] | None = None
    """From ingress to egress, for all mechanisms but *local*."""
    detours: dict[int, list[str]] = field(default_factory=dict)
    """*local*: by hop, the way around the link. Hops without one are not protected."""
    labels: dict[str, int] = field(default_factory=dict)
    """By node, the label with which packets on the primary arrive there."""
    fecs: list[Fec] = field(default_factory=list)

    @property
    def ingress(self) -> str:
        """The first node of the path."""
        return self.path[0]

    @property
    def egress(self) -> str:
        """The last node of the path."""
        return self.path[-1]


@dataclass(frozen=True)
class LspStatistics:
    """An LSP's counters, by node where more than one counts."""

    offered_packets: int
    """Packets that the ingress took into the LSP."""
    offered_bytes: int
    traffic: dict[str, int]
    """Packets of the LSP, by node: on the primary, a backup, a detour or the way back to it."""
    backup: dict[str, int]
    """Packets that a node sent another way because of a failure."""
    looped: int
    """Packets that came back to the ingress."""
    discarded: dict[str, int]
    """Packets that a merge point did not take, being one that takes one input at a time."""
    ttl_expired: int
    switchovers: dict[str, int]
    notices_sent: int
    notices_received: int
