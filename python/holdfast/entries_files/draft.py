"""Collects what a file says that a switch holds, with names and values resolved by the program's P4Info.

Every value goes through :mod:`holdfast.p4runtime.codec`, so it may be written in each of its forms. It does not know the formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import _core, json_file
from holdfast.control.desired import Desired, Entity
from holdfast.control.entities import ProfileMember
from holdfast.control.tables import MatchValue, TableEntry
from holdfast.errors import EntriesError
from holdfast.left_out import LeftOut
from holdfast.p4runtime import codec
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.entity_messages import pair_of
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.p4info import MatchField, P4InfoIndex, Param, Table, message_of
from holdfast.p4runtime.received import Member
from holdfast.terminal import excerpt


@dataclass
class Draft:
    """The objects that a file describes, in its order, each with its place in the file.

    ``program``: that of the switch; a P4Info in its place serves all but :meth:`checked`.
    """

    path: Path
    program: _core.Program | P4InfoIndex
    found: list[tuple[str, Entity]] = field(default_factory=list)
    """Place and object."""
    left_out: LeftOut = field(default_factory=LeftOut)
    json_content: bytes | None = None
    """The file's, if places are places in JSON; then errors have the line."""

    def __post_init__(self) -> None:
        known = self.program if isinstance(self.program, P4InfoIndex) else P4InfoIndex(message_of(self.program))
        self.p4info = known
        self._place = ""
        self._members: dict[tuple[Any, ...], int] = {}

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Raise errors of the enclosed code as errors of the file at this place, such as ``:7`` (it begins with its separator)."""
        before, self._place = self._place, place
        try:
            yield
        except P4RuntimeError as error:
            raise self.error(error.failures[0].message if error.failures else error.message) from None
        finally:
            self._place = before

    def error(self, sentence: str) -> EntriesError:
        """Return an error at the current place of the file, for the caller to raise."""
        line = ""
        if self.json_content is not None and self._place:
            line = f":{json_file.line_of(self.json_content, self._place.lstrip(': '))}"
        return EntriesError(f"{self.path}{line}{self._place}: {excerpt(sentence)}")

    def add(self, entity: Entity) -> None:
        """Add an object, with the current place in the file."""
        self.found.append((self._place, entity))

    def leave_out(self, what: str) -> None:
        """Record that something (``what``) at the current place is left out, for a warning."""
        self.left_out.add(what, self._place.lstrip(": "))

    def match(self, table: Table, given: Mapping[str, Any]) -> dict[str, MatchValue]:
        """Convert an entry's match to the program's full names and to numbers; fields that match any value are left out.

        Raises :class:`EntriesError` if a field is given twice, or a value does not fit.
        """
        found: dict[str, MatchValue] = {}
        for name, value in given.items():
            match_field = table.fields[name]
            if match_field.name in found:
                raise self.error(f"match field '{match_field.name}' is given twice")
            what = f"table '{table.name}', match field '{match_field.name}'"
            if (number := _match_value(match_field, value, what)) is not None:
                found[match_field.name] = number
        return found

    def arguments(self, params: Sequence[tuple[Param, Any]], action: str) -> dict[str, int | str]:
        """Convert the arguments of an action to numbers, by the parameters' names."""
        return {
            param.name: _number(param, value, f"action '{action}', parameter '{param.name}'") for param, value in params
        }

    def entry(
        self,
        table: Table,
        match: dict[str, MatchValue],
        action: str,
        params: Mapping[str, int | str],
        priority: int | None,
        idle_timeout_ns: int = 0,
    ) -> TableEntry:
        """Return a table entry.

        In a table with an action profile, the entry refers to a member with this action, which is made if it is new.
        """
        if not table.implementation_id:
            return TableEntry(table.name, match, action, params, priority, idle_timeout_ns=idle_timeout_ns)
        profile = self.p4info.action_profiles.by_id(table.implementation_id)
        key = profile.name, action, tuple(params.items())
        if key not in self._members:
            number = self._members[key] = _FIRST_OWN_MEMBER + len(self._members)
            self.add(ProfileMember(profile.name, number, action, params))
        member = Member(self._members[key])
        return TableEntry(table.name, match, member, {}, priority, idle_timeout_ns=idle_timeout_ns)

    def checked(self) -> Desired:
        """Return all objects, after installing them in a switch with this program to see whether it accepts each.

        Raises :class:`EntriesError` with the place of the first object that it refuses, or that is there twice.
        """
        if isinstance(self.program, P4InfoIndex):
            raise self.error("there is no program to check this with")
        places: dict[Any, str] = {}
        client = LocalClient(Device(1, _core.Switch(self.program, executor="interpreter"), executor="interpreter"))
        try:
            client.set_pipeline(self.program)
            for place, entity in self.found:
                with self.at(place):
                    if entity.key in places:
                        where = places[entity.key].lstrip(": ")
                        raise self.error(f"this is there twice (first at {where}): the later one would replace it")
                    places[entity.key] = place
                    entity.write(client, "insert")
        finally:
            client.close()
        return tuple(entity for _, entity in self.found)


_FIRST_OWN_MEMBER = 1 << 24
"""The first id of the members made for entries that name an action, above the ids that files use themselves."""


def _number(owner: MatchField | Param, value: Any, what: str) -> int | str:
    """Convert a value to a number of its field's width: a negative one to two's complement, a list of one value to that value."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if owner.uri is not None and isinstance(value, str):
        return value
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int) and value < 0 and -(1 << (owner.width - 1)) <= value:
        value += 1 << owner.width
    return codec.to_int(value, owner.width, what)


def _match_value(match_field: MatchField, value: Any, what: str) -> MatchValue | None:
    """Convert the value of a match field to the form in which a switch returns it; None if it matches any value."""
    if value is None:
        return None
    if match_field.form == "value" or match_field.uri is not None:
        return _number(match_field, value, what)
    between = {"masked": "&&&", "range": "->"}.get(match_field.form)
    if isinstance(value, str) and between and between in value:
        value = tuple(part.strip() for part in value.split(between))
    return pair_of(match_field, _one(value), what)


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
