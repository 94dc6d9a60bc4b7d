"""The sessions in the store, and the writes that make it equal to what is to outlive the process: one's failure costs no other.

It does not know why a session is to be kept, or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import HoldfastError, LiveError
from holdfast.subscribers import dhcpv6_pd
from holdfast.subscribers.accounting import NO_USAGE, Cause
from holdfast.subscribers.plane import Usage
from holdfast.subscribers.session import Grant


@dataclass(frozen=True)
class Stored:
    """The state that outlives the process: a session with all that its next control plane must know.

    Its accounting began at ``started_s`` (Unix time), at ``began_s`` of the clock named ``epoch``, and had lasted ``lasted_s``.

    A session is in one of three states. It is being set up until it is ``accounted``: it may be installed, and has no Start. Then
    it forwards. From when its end is decided, it has a ``cause``: it may still be installed, and its Stop is missing. ``usage`` is
    what was read of it last; the user plane, which may have begun anew, does not count ``earlier`` of it.
    """

    grant: Grant
    accounting_id: str
    started_s: float
    ipcp: bool
    interface: bytes | None
    bound: dhcpv6_pd.Bound
    released: bool
    peer_mru: int
    circuit_id: bytes = b""
    remote_id: bytes = b""
    service: bytes = b""
    established: bool = True
    began_s: float | None = None
    epoch: str = ""
    lasted_s: float = 0.0
    accounted: bool = True
    cause: Cause | None = None
    usage: Usage = NO_USAGE
    earlier: Usage = NO_USAGE

    @property
    def goes_on(self) -> bool:
        """True if the next control plane restores the session: it was accounted, and its end has not begun."""
        return self.accounted and self.cause is None


class Store(Protocol):
    """The store of sessions. Changes of one call are there together or not at all."""

    def load(self) -> list[Stored]:
        """Return all stored sessions."""

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        """Write the sessions ``put`` and delete the numbers in ``drop``.

        Raises an exception, and changes nothing, if that fails.
        """


class Keeping:
    """The sessions in the store, as far as they are known. ``events`` counts writes that fail."""

    def __init__(self, store: Store, events: Counter[str]) -> None:
        self._store, self._events = store, events
        self._kept: set[int] = set()
        self._stale: set[int] = set()
        """Sessions that the store has, or may have, and is to forget."""

    def __contains__(self, number: int) -> bool:
        """Return True if the store has the session with this number, in its present or an earlier state."""
        return number in self._kept

    @property
    def behind(self) -> bool:
        """True if the store may have a session that has ended."""
        return bool(self._stale)

    def load(self) -> list[Stored]:
        """Read and return the stored sessions. Raises a :class:`HoldfastError` if they cannot be read."""
        try:
            found = self._store.load()
        except HoldfastError:
            raise
        except Exception as error:
            raise LiveError(f"the store cannot be read: {error}") from error
        self._kept = {each.grant.session.session_id for each in found}
        return found

    def keep(self, put: Mapping[int, Stored], drop: Iterable[int] = ()) -> dict[int, str]:
        """Write the sessions ``put``, and delete those in ``drop``; return by number why a session could not be written.

        Of these the store has what it had before. A deletion that fails is repeated with the next call.
        """
        self._stale |= {each for each in drop if each in self._kept}
        self._kept -= self._stale
        gone = self._stale - put.keys()
        why = self._save(put, gone)
        if why is None:
            self._stale.clear()
            return {}
        if put and gone and self._save({}, gone) is None:
            self._stale -= gone
        if len(put) == 1 and not gone:
            refused = dict.fromkeys(put, why)
        else:
            alone = {number: self._save({number: each}, ()) for number, each in put.items()}
            refused = {number: why for number, why in alone.items() if why is not None}
        # A write that failed may have reached the disk.
        self._stale = (self._stale - (put.keys() - refused.keys())) | (refused.keys() - self._kept)
        return refused

    def _save(self, put: Mapping[int, Stored], drop: Iterable[int]) -> str | None:
        """Write and delete sessions in one transaction. Returns None, or why the transaction failed."""
        gone = sorted(drop)
        if not put and not gone:
            return None
        try:
            self._store.save(list(put.values()), gone)
        except Exception as error:  # noqa: BLE001 - whatever a store raises, nobody forwards who is not kept
            self._events["store-failures"] += 1
            return str(error)
        self._kept |= put.keys()
        return None
