"""Contexts: the parts of a flow's headers that are not sent, and the numbers that stand for them.

A number belongs to the edge that shortens. It is in use from the moment at which the other edge gets the context until
that edge has lost it again, so a number never means two contexts at one time. This module does not know switches or messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from holdfast.control.tables import TableEntry

NUMBERS = 1 << 16
"""The number of context numbers that an edge has."""

UDP, TCP = 17, 6

FIELDS: Mapping[int, tuple[str, ...]] = {
    4: ("diffserv", "flags", "ttl", "protocol", "src_addr", "dst_addr", "src_port", "dst_port"),
    6: ("traffic_class", "flow_label", "next_header", "hop_limit", "src_addr", "dst_addr", "src_port", "dst_port"),
}
"""The fields of a context, by version of IP: the names of the key fields of flows and of the parameters that restore them."""

Protocol = Literal[253, 254]
"""The IP protocol of a shortened frame (``shorternet.p4``)."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The values of a flow's header fields that all of its packets have in common, in the order of :data:`FIELDS`."""

    version: int
    values: tuple[int, ...]

    @classmethod
    def of(cls, version: int, fields: Mapping[str, object]) -> Flow:
        """Return the flow in the fields of a digest or of a table entry. Raise :class:`KeyError` if a field is missing."""
        values = [fields[name] for name in FIELDS[version]]
        return cls(version, tuple(value for value in values if isinstance(value, int)))

    @property
    def destination(self) -> int:
        """The destination address as a number."""
        return self.values[5]

    @property
    def profile(self) -> int:
        """The code that ``shorternet.p4`` has for the header behind IP that is in the context: 1 for UDP, 2 for TCP, else 0."""
        protocol = self.values[3 if self.version == 4 else 2]
        return {UDP: 1, TCP: 2}.get(protocol, 0)


@dataclass(frozen=True, slots=True)
class Context:
    """A flow and its number. ``sender`` and ``receiver`` are the edges' names, ``station`` is the sender's."""

    flow: Flow
    number: int
    sender: str
    receiver: str
    station: int

    @property
    def protocol(self) -> int:
        """The IP protocol number that marks shortened frames with this context: 253 for IPv4 flows, 254 for IPv6 flows."""
        return 253 if self.flow.version == 4 else 254

    def flow_entry(self) -> TableEntry:
        """Return the entry by which the sending edge replaces the headers of the flow's packets by the context's number."""
        return flow_entry(self.flow, self.number)

    def context_entry(self) -> TableEntry:
        """Return the entry by which the receiving edge restores the headers of the flow's packets."""
        key = {"station": self.station, "context": self.number, "profile": self.flow.profile}
        params = dict(zip(FIELDS[self.flow.version], self.flow.values, strict=True))
        version = self.flow.version
        return TableEntry(context_table(version), key, f"{RESTORE}.restore_ipv{version}", params)


SHORTEN, RESTORE = "ShorternetIngress.shorten", "ShorternetIngress.restore"


def flow_table(version: int) -> str:
    """Return the name of the table of flows that are shortened, for IP ``version`` 4 or 6."""
    return f"{SHORTEN}.ipv{version}_flows"


def context_table(version: int) -> str:
    """Return the name of the table of contexts by which packets are restored, for IP ``version`` 4 or 6."""
    return f"{RESTORE}.ipv{version}_contexts"


def flow_entry(flow: Flow, number: int) -> TableEntry:
    """Return the entry by which a sending edge replaces the headers of ``flow`` by the context number ``number``."""
    key = dict(zip(FIELDS[flow.version], flow.values, strict=True))
    return TableEntry(flow_table(flow.version), key, f"{SHORTEN}.shorten", {"context": number})


class Contexts:
    """The contexts in use, by flow and by number.

    ``limit``: the most contexts per IP version that an edge has as sender or as receiver, counting those that are being removed.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._by_flow: dict[tuple[str, Flow], Context] = {}
        self._by_number: dict[tuple[int, int, int], Context] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._held: dict[tuple[str, str, int], int] = {}

    def __len__(self) -> int:
        return len(self._by_flow)

    def __iter__(self) -> Iterator[Context]:
        return iter(self._by_flow.values())

    def of(self, sender: str, flow: Flow) -> Context | None:
        """Return the context of ``flow`` at the edge ``sender``, or None if it has none."""
        return self._by_flow.get((sender, flow))

    def numbered(self, station: int, protocol: int, number: int) -> Context | None:
        """Return the context that a frame's station, protocol and number stand for, or None.

        A context that is being removed is returned as well.
        """
        return self._by_number.get((station, 4 if protocol == 253 else 6, number))

    def allot(self, flow: Flow, sender: str, receiver: str, station: int) -> Context | None:
        """Add and return a new context for ``flow``, with the number that has been free for longest.

        Return None if one of the two edges has no room.
        """
        version = flow.version
        if not self._has_room(sender, receiver, version):
            return None
        number = self._next.get((station, version), 0)
        while (station, version, number) in self._by_number:  # ends: there is room
            number = (number + 1) % NUMBERS
        context = Context(flow, number, sender, receiver, station)
        self.adopt(context)
        return context

    def adopt(self, context: Context) -> None:
        """Add a context that is already in both switches."""
        self._by_flow[context.sender, context.flow] = context
        self.reserve(context)

    def reserve(self, context: Context) -> None:
        """Add a context that only the receiver has; its number stays in use until :meth:`free`."""
        version = context.flow.version
        self._by_number[context.station, version, context.number] = context
        self._next[context.station, version] = (context.number + 1) % NUMBERS
        self._count(context, 1)

    def retire(self, context: Context) -> None:
        """Record that the sender has removed a context; its number stays in use until :meth:`free`."""
        del self._by_flow[context.sender, context.flow]

    def free(self, context: Context) -> None:
        """Record that the receiver has removed a context, too, and free its number."""
        del self._by_number[context.station, context.flow.version, context.number]
        self._count(context, -1)

    def _has_room(self, sender: str, receiver: str, version: int) -> bool:
        places = ("sends", sender, version), ("receives", receiver, version)
        return all(self._held.get(place, 0) < min(self.limit, NUMBERS) for place in places)

    def _count(self, context: Context, by: int) -> None:
        version = context.flow.version
        for place in (("sends", context.sender, version), ("receives", context.receiver, version)):
            self._held[place] = self._held.get(place, 0) + by
