"""The state of connections: which there are, their flows, and the numbers in use at both ends. Nothing is written here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from holdfast.apps.protect.changes import Changes
from holdfast.apps.protect.connection import Connection, Flow
from holdfast.apps.protect.program import CONNECTIONS
from holdfast.control.numbers import Numbers
from holdfast.errors import NetworkError


class Registry:
    """The connections and flows, indexed for look-ups, and the numbers in use at each switch."""

    def __init__(self, switches: Iterable[str]) -> None:
        names = list(switches)
        self.indices = {name: Numbers(0, CONNECTIONS - 1, f"connections of PTI {name}") for name in names}
        self.egress_indices = {name: Numbers(0, CONNECTIONS - 1, f"connections of PTE {name}") for name in names}
        self.cids = {name: Numbers(0, 2**24 - 1, f"connection identifiers of PTE {name}") for name in names}
        self._connections: dict[tuple[str, int], Connection] = {}
        self._by_ends: dict[tuple[str, str], list[Connection]] = {}
        self._owner: dict[tuple[str, Flow], Connection] = {}

    def __iter__(self) -> Iterator[Connection]:
        """Return the connections in the order in which they were added."""
        return iter(self._connections.values())

    def __len__(self) -> int:
        return len(self._connections)

    def between(self, ingress: str, egress: str) -> list[Connection]:
        """Return the connections from ``ingress`` to ``egress``, in the order in which they were added."""
        return self._by_ends.get((ingress, egress), [])

    def check(self, connection: Connection) -> None:
        """Raise :class:`NetworkError` if ``connection`` has been removed."""
        if self._connections.get((connection.egress, connection.cid)) is not connection:
            raise NetworkError(f"connection {connection} is not there any more")

    def adopt(self, connection: Connection) -> None:
        """Add a connection whose index, egress index and identifier are marked as used already."""
        self._connections[connection.egress, connection.cid] = connection
        self._by_ends.setdefault((connection.ingress, connection.egress), []).append(connection)

    def forget(self, connection: Connection) -> None:
        """Remove a connection; its numbers stay marked as used until :meth:`give_back`."""
        del self._connections[connection.egress, connection.cid]
        self._by_ends[connection.ingress, connection.egress].remove(connection)

    # ---- Flows ----

    def owner(self, ingress: str, flow: Flow) -> Connection | None:
        """Return the connection that protects ``flow`` at the PTI (tunnel ingress) ``ingress``; None if there is none."""
        return self._owner.get((ingress, flow))

    def adopt_flow(self, connection: Connection, flow: Flow, priority: int) -> None:
        """Add a flow, with its priority, to the connection that protects it."""
        connection.flows.append((flow, priority))
        self._owner[connection.ingress, flow] = connection

    def forget_flow(self, connection: Connection, flow: Flow, priority: int) -> None:
        """Remove a flow from the connection that protects it."""
        connection.flows.remove((flow, priority))
        del self._owner[connection.ingress, flow]

    # ---- Numbers ----

    def take(self, changes: Changes, ingress: str, egress: str, cid: int | None) -> tuple[int, int, int]:
        """Take an index at the PTI (tunnel ingress), one at the PTE (tunnel egress), and the identifier ``cid`` or a free one.

        Return the three. They are freed again if ``changes`` are not made. Raise :class:`NetworkError` if one is used up or ``cid``
        is in use.
        """
        return (
            _take(changes, self.indices[ingress]),
            _take(changes, self.egress_indices[egress]),
            _take(changes, self.cids[egress], cid),
        )

    def claim(self, connection: Connection) -> bool:
        """Mark the numbers of a connection found in the switches as used; if one is not free, mark none and return False."""
        taken: list[tuple[Numbers, int]] = []
        for numbers, number in self._numbers(connection):
            if not isinstance(number, int) or not numbers.claim(number):
                for other, given in taken:
                    other.give_back(given)
                return False
            taken.append((numbers, number))
        return True

    def give_back(self, connection: Connection) -> None:
        """Free the numbers of a connection, so that others may use them."""
        for numbers, number in self._numbers(connection):
            numbers.give_back(number)

    def reserve_egress(self, egress: str, cid: int, egress_index: int, reserve: Callable[[Numbers, int], None]) -> None:
        """Call ``reserve`` for the identifier and for the index that a leftover entry at the PTE (tunnel egress) uses.

        ``reserve`` marks a number of some :class:`Numbers` as used.
        """
        reserve(self.cids[egress], cid)
        reserve(self.egress_indices[egress], egress_index)

    def _numbers(self, connection: Connection) -> tuple[tuple[Numbers, int], ...]:
        return (
            (self.indices[connection.ingress], connection.index),
            (self.egress_indices[connection.egress], connection.egress_index),
            (self.cids[connection.egress], connection.cid),
        )


def _take(changes: Changes, numbers: Numbers, wanted: int | None = None) -> int:
    if wanted is None:
        wanted = numbers.take()
    elif not numbers.claim(wanted):
        raise NetworkError(f"connection identifier {wanted} is in use, or is none")
    changes.otherwise(lambda: numbers.give_back(wanted))
    return wanted
