"""Reads entries in YAML, a mapping by table.

.. code-block:: yaml

    tables:
      ipv4_lpm:
        - {match: {hdr.ipv4.dst_addr: 10.0.0.0/8}, action: forward, params: {port: 2}}
        - {action: drop, default: true}
    multicast_groups: {1: [[2, 1], [3, 1]]}      # port and instance of each copy
    clone_sessions: {5: [[4, 0]]}
    registers: {flows: {0: 17}}
"""

from __future__ import annotations

from typing import Any

from holdfast import yaml_model
from holdfast.control.entities import CloneSession, DefaultAction, MulticastGroup, Register
from holdfast.entries_files.draft import Draft
from holdfast.parameters import Checked
from holdfast.regular_files import MOST_TEXT_BYTES


class Entry(Checked):
    """An entry of a table, or with ``default`` its default action."""

    match: dict[str, Any] = {}
    action: str
    params: dict[str, Any] = {}
    priority: int | None = None
    default: bool = False
    idle_timeout_ns: int = 0


class Entries(Checked):
    """The content of a file.

    ``tables``: entries by table name. ``multicast_groups`` and ``clone_sessions``: lists of ``[port, instance]`` by number.
    ``registers``: values by register name and index.
    """

    tables: dict[str, list[Entry]] = {}
    multicast_groups: dict[int, list[tuple[int, int]]] = {}
    clone_sessions: dict[int, list[tuple[int, int]]] = {}
    registers: dict[str, dict[int, int]] = {}


def read(draft: Draft) -> None:
    """Add the objects that a YAML file describes to ``draft``.

    Raises :class:`holdfast.errors.ScenarioError`, with the line, for what does not have the form, and
    :class:`holdfast.errors.EntriesError` for what the program does not have.
    """
    located = yaml_model.read_located(draft.path, Entries, MOST_TEXT_BYTES)
    entries = located.value
    for name, items in entries.tables.items():
        for index, item in enumerate(items):
            with draft.at(f":{located.line(f'tables.{name}.{index}')}"):
                _add(draft, name, item)
    for group, replicas in entries.multicast_groups.items():
        with draft.at(f":{located.line(f'multicast_groups.{group}')}"):
            draft.add(MulticastGroup(group, tuple(replicas)))
    for session, replicas in entries.clone_sessions.items():
        with draft.at(f":{located.line(f'clone_sessions.{session}')}"):
            draft.add(CloneSession(session, tuple(replicas)))
    for register, cells in entries.registers.items():
        for cell, value in cells.items():
            with draft.at(f":{located.line(f'registers.{register}.{cell}')}"):
                draft.add(Register(draft.p4info.registers[register].name, cell, value))


def _add(draft: Draft, name: str, item: Entry) -> None:
    table = draft.p4info.tables[name]
    action = table.actions[item.action]
    params = draft.arguments([(action.params[param], value) for param, value in item.params.items()], action.name)
    if item.default:
        draft.add(DefaultAction(table.name, action.name, params))
    else:
        match = draft.match(table, item.match)
        draft.add(draft.entry(table, match, action.name, params, item.priority, item.idle_timeout_ns))
