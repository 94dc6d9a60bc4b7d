"""What a switch is to hold, as one value, and a writer that makes a switch hold it.

A controller says what it wants; :class:`Writer` compares that with what is there, and writes what differs. Nothing in a switch
refers to what does not exist, before or after any update: users are deleted first, then objects are written, those that others
refer to before their users, and objects that nobody refers to any more are deleted last. So there must be room for both the former
and the new objects that entries refer to. Entries are written in the order in which they are wanted, and deleted in the opposite
one. It does not know what the objects mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

from holdfast.control.entities import (
    CloneSession,
    Counter,
    DefaultAction,
    Digest,
    Meter,
    MulticastGroup,
    ProfileGroup,
    ProfileMember,
    Register,
    ValueSet,
)
from holdfast.control.tables import TableEntry
from holdfast.p4runtime.client import Client, Verb
from holdfast.p4runtime.errors import P4RuntimeError

Entity: TypeAlias = (
    TableEntry
    | DefaultAction
    | ProfileMember
    | ProfileGroup
    | MulticastGroup
    | CloneSession
    | Digest
    | ValueSet
    | Register
    | Meter
    | Counter
)

Desired: TypeAlias = tuple[Entity, ...]
"""All objects that a switch is to hold in the tables and other places that one writer owns."""

Key: TypeAlias = tuple[Any, ...]
"""The key of an object, unique among all objects of its switch."""

Scope: TypeAlias = Mapping[type[Entity], Collection[Any]]
"""Places of objects, by kind: tables, numbers of groups, profiles, names, or cells (see each kind's ``place``)."""

_REFERRED = (MulticastGroup, CloneSession, ProfileMember, ProfileGroup)
"""Kinds of objects that other objects refer to, in the order in which they are created: the actions of members may name
multicast groups."""

_ORDER = {
    kind: place
    for place, kind in enumerate((*_REFERRED, Digest, ValueSet, Register, Meter, TableEntry, DefaultAction, Counter))
}

_REFUSALS = frozenset(
    {"RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION", "UNIMPLEMENTED"}
)
"""Error codes of refused updates that do not show that the switch holds something else than was assumed."""


def read_state(client: Client, scope: Scope) -> Desired:
    """Return the objects that a switch has of the kinds and at the places in ``scope``, without those that its program lacks."""
    return tuple(entity for kind, places in scope.items() for entity in kind.read(client, places))


class Writer:
    """The objects that one controller keeps in one switch. A write brings the switch to the objects that are wanted.

    What differs is written in one batch, or with ``most`` in batches of so many updates. A batch is atomic: no packet passes while
    it is applied, and if an update is refused, it changes nothing and raises an error that names the updates at fault. What a
    failed batch was about is read before the next write, unless the switch has said that it holds what it held.
    """

    def __init__(self, client: Client, *, most: int | None = None) -> None:
        self._client = client
        self._most = most
        self._installed: dict[Key, Entity] = {}
        self._doubtful: dict[Key, Entity] = {}

    @property
    def installed(self) -> Mapping[Key, Entity]:
        """The objects in the switch by key, as far as this writer knows."""
        return self._installed

    def adopt(self, found: Iterable[Entity]) -> None:
        """Record what an earlier controller left in the switch (:func:`read_state`).

        The next write keeps, changes or removes it.
        """
        self._installed = {entity.key: entity for entity in found}
        self._doubtful = {}

    def doubt(self, entities: Iterable[Entity]) -> None:
        """Mark the objects with these keys as perhaps changed by somebody else: the next write reads them first."""
        self._doubtful |= {entity.key: entity for entity in entities}

    def write(self, wanted: Iterable[Entity]) -> int:
        """Write what differs between the switch and ``wanted``; remove everything else that this writer keeps there.

        Return the number of updates.
        """
        self._settle()
        put = {entity.key: entity for entity in wanted}
        return self._change(put, [key for key in reversed(self._installed) if key not in put])

    def change(self, put: Iterable[Entity] = (), removed: Iterable[Key] = (), also: Iterable[Entity] = ()) -> int:
        """Put some objects into the switch and remove others. An object that is both put and removed is put; all others stay.

        Return the number of updates. ``also``: cells of registers and counters that packets change; they are set at the same time,
        whatever they are, and not kept.
        """
        self._settle()
        return self._change({entity.key: entity for entity in put}, dict.fromkeys(removed), also)

    def _change(self, put: Mapping[Key, Entity], removed: Iterable[Key], also: Iterable[Entity] = ()) -> int:
        installed = self._installed
        gone = [(key, installed[key]) for key in removed if key in installed and key not in put]
        new = [(key, entity) for key, entity in put.items() if installed.get(key) != entity]
        new.sort(key=_place)
        gone.sort(key=_place, reverse=True)
        updates: list[_Update] = [
            *(("delete", key, entity) for key, entity in gone if not isinstance(entity, _REFERRED)),
            *(("modify" if key in installed else "insert", key, entity) for key, entity in new),
            *(("modify", (), cell) for cell in also),
            *(("delete", key, entity) for key, entity in gone if isinstance(entity, _REFERRED)),
        ]
        size = self._most or max(len(updates), 1)
        for first in range(0, len(updates), size):
            self._send(updates[first : first + size])
        return len(updates)

    def _send(self, updates: list[_Update]) -> None:
        try:
            with self._client.batch():
                for verb, _, entity in updates:
                    entity.write(self._client, verb)
        except BaseException as error:
            if not _left_all(error):
                self._doubtful |= {key: entity for _, key, entity in updates if key}
            raise
        for verb, key, entity in updates:
            if verb == "delete":
                self._installed.pop(key, None)
            elif key:
                self._installed[key] = entity

    def _settle(self) -> None:
        """Read from the switch the objects about which it is doubtful whether a failed write has changed them."""
        doubtful = self._doubtful
        if not doubtful:
            return
        # All cells of a meter may be one object, or several.
        whole = {(Meter, each.name) for each in doubtful.values() if isinstance(each, Meter) and each.index is None}
        scope: dict[type[Entity], dict[Any, None]] = {}
        for key, entity in doubtful.items():
            if key[:2] not in whole or key[2] is None:
                scope.setdefault(type(entity), {})[entity.place] = None
        there = {entity.key: entity for entity in read_state(self._client, scope)}
        for key in [key for key in self._installed if key in doubtful or key[:2] in whole]:
            del self._installed[key]
        self._installed |= {key: entity for key, entity in there.items() if key in doubtful or key[:2] in whole}
        self._doubtful = {}


_Update: TypeAlias = tuple[Verb, Key, Entity]


def _place(item: tuple[Key, Entity]) -> int:
    return _ORDER[type(item[1])]


def _left_all(error: BaseException) -> bool:
    """Return True if a write that failed with this error has certainly changed nothing in the switch."""
    if not isinstance(error, P4RuntimeError):
        return False
    if not error.failed:
        return error.code in ("INVALID_ARGUMENT", "OUT_OF_RANGE")
    # The rest of an atomic batch is aborted, as one update was refused.
    reasons = {failure.code for failure in error.failures} - {"ABORTED"}
    return bool(reasons) and reasons <= _REFUSALS
