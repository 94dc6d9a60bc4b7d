"""Parser value sets between P4Runtime messages and the core (specification, "ValueSetEntry")."""

from __future__ import annotations

from holdfast._core import ValueSetMembers
from holdfast.p4runtime import table_entries
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.p4info import ValueSet
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2


def members_from_message(value_set: ValueSet, message: Proto) -> ValueSetMembers:
    """The core's members of a ``ValueSetEntry``: all of them, as they are to be."""
    members = [table_entries.matches_from_message(value_set, member.match) for member in message.members]
    if value_set.size and len(members) > value_set.size:
        raise P4RuntimeError(
            "RESOURCE_EXHAUSTED", f"{value_set.label}: {len(members)} members, it holds {value_set.size}"
        )
    if len({tuple(sorted(member.items())) for member in members}) != len(members):
        raise P4RuntimeError("ALREADY_EXISTS", f"{value_set.label}: a member is given twice")
    return ValueSetMembers(value_set.id, members)


def members_message(value_set: ValueSet, members: ValueSetMembers) -> Proto:
    """``Entity`` with a ``ValueSetEntry``."""
    entity = p4runtime_pb2.Entity()
    entity.value_set_entry.value_set_id = value_set.id
    for member in members.members:
        table_entries.fill_matches(entity.value_set_entry.members.add().match, value_set, member)
    return entity
