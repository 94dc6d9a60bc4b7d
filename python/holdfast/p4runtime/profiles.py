"""Action profiles between P4Runtime messages and the core: members, groups and one-shot sets.

Specification: "ActionProfileMember & ActionProfileGroup". Ports are v1model's: 9 bits, not translated. Nothing here
knows which members and groups exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast._core import ActionProfileGroup, ActionProfileMember
from holdfast.p4runtime import codec, table_entries
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, unimplemented
from holdfast.p4runtime.p4info import ActionProfile, P4InfoIndex, Table
from holdfast.p4runtime.replication import PORT_BITS
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2

_HASH = 1
_SEMANTICS = {"weights": 1, "members": 2}


@dataclass(frozen=True)
class SetNote:
    """What a client said in a one-shot set and the core does not keep."""

    numeric_watches: frozenset[int] = frozenset()
    """Positions of the actions whose port was given by the deprecated number."""
    mode: int = 0
    semantics: int = 0


def member_from_message(index: P4InfoIndex, message: Proto, *, key_only: bool) -> ActionProfileMember:
    """The core's member of an ``ActionProfileMember``."""
    profile = index.action_profiles.by_id(message.action_profile_id)
    if not message.member_id:
        raise invalid_argument(f"action profile '{profile.name}': a member's id is not zero")
    if key_only:
        return ActionProfileMember(profile.id, message.member_id)
    if not message.HasField("action"):
        raise invalid_argument(f"action profile '{profile.name}': the member has no action")
    action_id, args = _member_action(index, profile, message.action)
    return ActionProfileMember(profile.id, message.member_id, action_id, args)


def _member_action(index: P4InfoIndex, profile: ActionProfile, message: Proto) -> tuple[int, dict[int, bytes]]:
    """An action of one of the tables that the profile implements, with its arguments.

    Tables may differ in their actions; the core checks that an entry names what its own table can run.
    """
    if not profile.table_ids:
        raise invalid_argument(f"action profile '{profile.name}' implements no table, so no action is its")
    tables = [index.tables.by_id(id) for id in profile.table_ids]
    able = (table for table in tables if table.scopes.get(message.action_id, "default_only") != "default_only")
    return table_entries.call_from_message(next(able, tables[0]), message, is_default=False)


def group_from_message(index: P4InfoIndex, message: Proto, *, key_only: bool) -> ActionProfileGroup:
    """The core's group of an ``ActionProfileGroup``."""
    profile = index.action_profiles.by_id(message.action_profile_id)
    what = f"action profile '{profile.name}', group {message.group_id}"
    if not message.group_id:
        raise invalid_argument(f"action profile '{profile.name}': a group's id is not zero")
    if key_only:
        return ActionProfileGroup(profile.id, message.group_id)
    if not profile.with_selector:
        raise invalid_argument(f"action profile '{profile.name}' has no selector, so no groups")
    _check_max_size(profile, message.max_size, what)
    members = []
    for member in message.members:
        weight = checked_weight(profile, member.weight, what)
        members.append((member.member_id, weight, watch_port(member, what)))
    if len({id for id, _, _ in members}) != len(members):
        raise invalid_argument(f"{what}: a member is in it twice; give it more weight instead")
    return ActionProfileGroup(profile.id, message.group_id, members, message.max_size)


def _check_max_size(profile: ActionProfile, max_size: int, what: str) -> None:
    """As in the specification's rules on setting ``max_size``."""
    if max_size < 0:
        raise invalid_argument(f"{what}: max_size {max_size} is negative")
    if profile.max_group_size and not 0 < max_size <= profile.max_group_size:
        raise invalid_argument(f"{what}: max_size {max_size} is not between 1 and {profile.max_group_size}")


def checked_weight(profile: ActionProfile, weight: int, what: str) -> int:
    """The weight for the core."""
    if profile.weights_disallowed:
        if weight:
            raise invalid_argument(f"{what}: weights are not allowed")
        return 1
    if weight <= 0:
        raise invalid_argument(f"{what}: weight {weight} is not above zero")
    if profile.max_member_weight and weight > profile.max_member_weight:
        raise invalid_argument(f"{what}: weight {weight} is above {profile.max_member_weight}")
    return weight


def watch_port(message: Proto, what: str) -> int | None:
    """The port of a message with a ``watch_kind``; None if there is none."""
    kind = message.WhichOneof("watch_kind")
    if kind == "watch_port" and message.watch_port:
        try:
            return codec.decode(message.watch_port, PORT_BITS, f"{what}: watch port")
        except P4RuntimeError as e:
            raise invalid_argument(e.message) from None
    if kind == "watch":
        if not 0 <= message.watch <= codec.all_ones(PORT_BITS):
            raise invalid_argument(f"{what}: watch port {message.watch} does not fit into {PORT_BITS} bits")
        return int(message.watch)
    return None


def numeric_watches(messages: Iterable[Proto]) -> frozenset[int]:
    """Positions of the messages that give their port by the deprecated number."""
    return frozenset(i for i, m in enumerate(messages) if m.WhichOneof("watch_kind") == "watch")


def _fill_watch(message: Proto, port: int | None, *, numeric: bool) -> None:
    if port is not None and numeric:
        message.watch = port
    elif port is not None:
        message.watch_port = codec.encode(port)


def set_from_message(
    table: Table, profile: ActionProfile, message: Proto
) -> list[tuple[int, dict[int, bytes], int, int | None]]:
    """The core's one-shot set of an ``ActionProfileActionSet`` in an entry of the table."""
    what = f"action profile '{profile.name}', one-shot set"
    if not profile.with_selector:
        raise invalid_argument(f"action profile '{profile.name}' has no selector, so no one-shot sets")
    _check_modes(profile, message, what)
    actions = []
    for item in message.action_profile_actions:
        if not item.HasField("action"):
            raise invalid_argument(f"{what}: an action is missing")
        weight = checked_weight(profile, item.weight, what)
        call = table_entries.call_from_message(table, item.action, is_default=False)
        actions.append((*call, weight, watch_port(item, what)))
    size = sum(weight for _, _, weight, _ in actions) if profile.size_of_group == "weights" else len(actions)
    if profile.max_group_size and size > profile.max_group_size:
        raise invalid_argument(f"{what}: its size {size} is above {profile.max_group_size}")
    return actions


def _check_modes(profile: ActionProfile, message: Proto, what: str) -> None:
    """What 1.5 added: only spelling out what is the case anyhow."""
    note = set_note(message)
    if note.mode not in (0, _HASH) or note.semantics not in (0, _SEMANTICS[profile.size_of_group]):
        raise unimplemented(f"{what}: selection mode and size semantics are the selector's; leave them out")
    if "group_action" in {f.name for f, _ in message.ListFields()}:
        raise unimplemented(f"{what}: group actions are not supported")


def set_note(message: Proto) -> SetNote:
    """What of an ``ActionProfileActionSet`` the core does not keep."""
    mode, semantics = getattr(message, "action_selection_mode", 0), getattr(message, "size_semantics", 0)  # since 1.5
    return SetNote(numeric_watches(message.action_profile_actions), mode, semantics)


def fill_set(
    message: Proto,
    table: Table,
    profile: ActionProfile,
    actions: Iterable[tuple[int, dict[int, bytes], int, int | None]],
    note: SetNote,
) -> None:
    """Writes a one-shot set into an ``ActionProfileActionSet``."""
    message.SetInParent()
    for position, (action_id, args, weight, port) in enumerate(actions):
        item = message.action_profile_actions.add(weight=0 if profile.weights_disallowed else weight)
        table_entries.fill_action(item.action, table.actions, action_id, args)
        _fill_watch(item, port, numeric=position in note.numeric_watches)
    if note.mode:
        message.action_selection_mode = note.mode
    if note.semantics:
        message.size_semantics = note.semantics


def member_message(index: P4InfoIndex, member: ActionProfileMember) -> Proto:
    """``Entity`` with an ``ActionProfileMember``."""
    entity = p4runtime_pb2.Entity()
    message = entity.action_profile_member
    message.action_profile_id, message.member_id = member.action_profile_id, member.member_id
    table_entries.fill_action(message.action, index.actions, member.action_id, member.args)
    return entity


def group_message(profile: ActionProfile, group: ActionProfileGroup, numeric: frozenset[int]) -> Proto:
    """``Entity`` with an ``ActionProfileGroup``; ``numeric``: members whose port was given by the deprecated number."""
    entity = p4runtime_pb2.Entity()
    message = entity.action_profile_group
    message.action_profile_id, message.group_id = group.action_profile_id, group.group_id
    message.max_size = group.max_size
    for member_id, weight, port in group.members:
        member = message.members.add(member_id=member_id, weight=0 if profile.weights_disallowed else weight)
        _fill_watch(member, port, numeric=member_id in numeric)
    return entity
