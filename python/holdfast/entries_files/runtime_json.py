"""Reads the ``sX-runtime.json`` files of p4lang's tutorials.

An object with lists: ``table_entries`` of ``table``, ``match``, ``action_name``, ``action_params``, ``default_action`` and
``priority``; ``multicast_group_entries`` and ``clone_session_entries`` with their ``replicas``. ``target``, ``p4info`` and
``bmv2_json`` name files of another switch, and are not opened. Keys that begin with ``_`` or are called ``comment`` are remarks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast import json_file
from holdfast.control.entities import CloneSession, DefaultAction, MulticastGroup
from holdfast.entries_files.draft import Draft
from holdfast.errors import EntriesError
from holdfast.suggestions import unknown

_TOP = (
    "target",
    "p4info",
    "bmv2_json",
    "pipeline_config",
    "table_entries",
    "multicast_group_entries",
    "clone_session_entries",
)

_ENTRY = (
    "table",
    "match",
    "action_name",
    "action_params",
    "default_action",
    "priority",
    "idle_timeout_ns",
)

_GROUP = ("multicast_group_id", "replicas")

_SESSION = ("clone_session_id", "replicas", "packet_length_bytes", "class_of_service")

_REPLICA = ("egress_port", "instance")


def read(draft: Draft, content: bytes) -> None:
    """Add the objects that a JSON file describes to ``draft``. Raises :class:`EntriesError` with the place of a mistake."""
    document = json_file.parse(draft.path, content, EntriesError)
    draft.json_content = content
    top = _object(draft, document, "the file", _TOP)
    if not set(_TOP[4:]) & top.keys():
        raise draft.error(f"there is none of {', '.join(_TOP[4:])} in it")
    _each(draft, top, "table_entries", _ENTRY, _add_entry)
    _each(draft, top, "multicast_group_entries", _GROUP, _add_group)
    _each(draft, top, "clone_session_entries", _SESSION, _add_session)


def _each(
    draft: Draft,
    top: Mapping[str, Any],
    key: str,
    known: tuple[str, ...],
    add: Callable[[Draft, Mapping[str, Any]], None],
) -> None:
    items = top.get(key)
    if items is None:
        return
    if not isinstance(items, list):
        raise draft.error(f"{key}: a list is expected")
    for index, item in enumerate(items):
        with draft.at(f": {key}.{index}"):
            add(draft, _object(draft, item, "an entry", known))


def _object(draft: Draft, value: Any, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise draft.error(f"{what} is an object, such as {{{known[0]!r}: ...}}")
    for key in value:
        if key not in known and not key.startswith(("_", "comment", "//", "#")):
            raise draft.error(unknown("key", key, known))
    return value


def _needed(draft: Draft, item: Mapping[str, Any], key: str, kind: type) -> Any:
    if key not in item:
        raise draft.error(f"{key!r} is missing")
    value = item[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise draft.error(f"{key} is {value!r}; {'a number' if kind is int else 'a name'} is expected")
    return value


def _mapping(draft: Draft, item: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = item.get(key)
    if value is not None and not isinstance(value, dict):
        raise draft.error(f"{key}: an object with a value for each name is expected")
    return value or {}


def _add_entry(draft: Draft, item: Mapping[str, Any]) -> None:
    table = draft.p4info.tables[_needed(draft, item, "table", str)]
    match, given = _mapping(draft, item, "match"), _mapping(draft, item, "action_params")
    action = table.actions[_needed(draft, item, "action_name", str)]
    params = draft.arguments([(action.params[name], value) for name, value in given.items()], action.name)
    if missing := [param.name for param in action.params if param.name not in params]:
        raise draft.error(f"action '{action.name}' needs {', '.join(missing)} in action_params")
    if item.get("default_action"):
        if match:
            raise draft.error("a default action has no match: leave out match or default_action")
        draft.add(DefaultAction(table.name, action.name, params))
        return
    priority = item.get("priority")
    if priority is not None:
        priority = _needed(draft, item, "priority", int) or None
    if table.needs_priority and priority is None:
        raise draft.error(
            f"table '{table.name}' has fields that are ternary, range or optional: give a priority above 0"
        )
    if not table.needs_priority and priority is not None:
        draft.leave_out(f"the priority in table '{table.name}', which has none")
        priority = None
    idle = _needed(draft, item, "idle_timeout_ns", int) if "idle_timeout_ns" in item else 0
    draft.add(draft.entry(table, draft.match(table, match), action.name, params, priority, idle))


def _replicas(draft: Draft, item: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    given = item.get("replicas", [])
    if not isinstance(given, list):
        raise draft.error("replicas: a list is expected")
    replicas = [_object(draft, each, "a replica", _REPLICA) for each in given]
    return tuple(
        (_needed(draft, each, "egress_port", int), _needed(draft, {"instance": 1, **each}, "instance", int))
        for each in replicas
    )


def _add_group(draft: Draft, item: Mapping[str, Any]) -> None:
    draft.add(MulticastGroup(_needed(draft, item, "multicast_group_id", int), _replicas(draft, item)))


def _add_session(draft: Draft, item: Mapping[str, Any]) -> None:
    numbers = {"packet_length_bytes": 0, "class_of_service": 0, **item}
    length, service = (_needed(draft, numbers, key, int) for key in ("packet_length_bytes", "class_of_service"))
    draft.add(CloneSession(_needed(draft, item, "clone_session_id", int), _replicas(draft, item), length, service))
