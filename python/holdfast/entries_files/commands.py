"""Reads command files of ``simple_switch_CLI``, a command in a line, as bmv2's tools understand them.

Commands that fill a switch are read: of tables (``table_add``, ``table_set_default``, ``table_modify``, ``table_delete``,
``table_set_timeout``, ``table_clear``), action profiles (``act_prof_*``, ``table_indirect_*``), multicast groups (``mc_*``), clone
sessions (``mirroring_add``), registers, meters and parser value sets. Handles are those that a switch with no entries gives: the
lowest free one, from 0 on. A lower number of ``table_add`` is a higher priority; it becomes P4Runtime's, where a higher number is.

Commands that only show something, or set what a P4Runtime device does not have, are left out and named. Lines that begin with
``#`` or ``//`` are remarks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from holdfast.control.desired import Entity
from holdfast.control.entities import (
    CloneSession,
    DefaultAction,
    Meter,
    MulticastGroup,
    ProfileGroup,
    ProfileMember,
    Register,
    ValueSet,
)
from holdfast.control.tables import MatchValue, TableEntry
from holdfast.entries_files.draft import Draft
from holdfast.p4runtime import codec
from holdfast.p4runtime.client import Rates
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.p4info import ActionProfile, MatchField, P4InfoIndex, Table
from holdfast.p4runtime.received import Group, Member
from holdfast.suggestions import unknown

HIGHEST: Final = (1 << 31) - 1
"""The highest priority of P4Runtime. In bmv2's commands, the highest priority is 0."""

_RATE_UNIT: Final = 1_000_000
"""The factor between bmv2's rates of meters, per microsecond, and P4Runtime's, per second."""

_QUERIES: Final = (
    "show_",
    "table_dump",
    "table_info",
    "table_num_entries",
    "table_show",
    "act_prof_dump",
    "counter_read",
    "register_read",
    "meter_get",
    "mc_dump",
    "mirroring_get",
    "pvs_get",
    "get_time",
    "switch_info",
    "help",
    "greet",
    "shell",
    "exit",
    "quit",
    "EOF",
)

_EMPTY_ALREADY: Final = ("counter_reset", "reset_state")
"""Commands that change nothing in a switch that was just started."""

_OTHERS: Final = (
    "set_queue_rate",
    "set_queue_depth",
    "set_crc16_parameters",
    "set_crc32_parameters",
    "set_toeplitz_hash_key",
    "port_add",
    "port_remove",
    "load_new_config_file",
    "swap_configs",
    "counter_write",
    "mc_set_lag_membership",
    "write_config_to_file",
    "serialize_state",
)
"""Commands that set what a P4Runtime device does not have."""

T = TypeVar("T")


class Handles(Generic[T]):
    """Objects by handle. A new object gets the lowest handle that is free, as in bmv2."""

    def __init__(self) -> None:
        self._items: dict[int, T] = {}
        self._free: list[int] = []

    def add(self, item: T) -> int:
        """Add an object and return its handle."""
        handle = heapq.heappop(self._free) if self._free else len(self._items)
        self._items[handle] = item
        return handle

    def take(self, handle: int) -> T:
        """Remove the object with this handle and return it. Raises :class:`KeyError` if there is none."""
        item = self._items.pop(handle)
        heapq.heappush(self._free, handle)
        return item

    def __getitem__(self, handle: int) -> T:
        return self._items[handle]

    def __setitem__(self, handle: int, item: T) -> None:
        self._items[handle] = item

    def __contains__(self, handle: object) -> bool:
        return handle in self._items

    def items(self) -> Iterator[tuple[int, T]]:
        """Yield each handle with its object, lowest first."""
        yield from sorted(self._items.items())


@dataclass
class _Placed(Generic[T]):
    """An object, and the line of the command that made it."""

    place: str
    value: T


@dataclass
class _Node:
    """A node of multicast groups: an instance and its ports."""

    instance: int
    ports: tuple[int, ...]


@dataclass
class _State:
    """The objects that the commands so far have made."""

    draft: Draft
    place: str = ""
    entries: dict[str, Handles[_Placed[TableEntry]]] = field(default_factory=dict)
    defaults: dict[str, _Placed[Entity]] = field(default_factory=dict)
    members: dict[str, Handles[_Placed[ProfileMember]]] = field(default_factory=dict)
    groups: dict[str, Handles[_Placed[ProfileGroup]]] = field(default_factory=dict)
    nodes: Handles[_Node] = field(default_factory=Handles)
    multicast: dict[int, _Placed[list[int]]] = field(default_factory=dict)
    sessions: dict[int, _Placed[CloneSession | int]] = field(default_factory=dict)
    """Clone sessions, or the multicast group of one."""
    cells: dict[tuple[Any, ...], _Placed[Entity]] = field(default_factory=dict)
    sets: dict[str, _Placed[set[int]]] = field(default_factory=dict)
    rates: dict[str, Rates] = field(default_factory=dict)
    """Of all entries of a table."""

    def finish(self) -> None:
        """Add all objects that the commands have made to the draft, each with the line of its command."""
        for per_profile in (self.members, self.groups):
            for handles in per_profile.values():
                for _, placed in handles.items():
                    self._put(placed.place, placed.value)
        for number, group in self.multicast.items():
            self._put(group.place, MulticastGroup(number, self.replicas(group.value)))
        for number, session in self.sessions.items():
            value = session.value
            if isinstance(value, int):
                nodes = self.multicast[value].value if value in self.multicast else []
                value = CloneSession(number, self.replicas(nodes))
            self._put(session.place, value)
        for name, values in self.sets.items():
            self._put(values.place, ValueSet(name, frozenset(values.value)))
        for cell in self.cells.values():
            self._put(cell.place, cell.value)
        for table, entries in self.entries.items():
            for _, entry in entries.items():
                self._put(entry.place, entry.value, table)
        for default in self.defaults.values():
            self._put(default.place, default.value)

    def _put(self, place: str, entity: Entity, table: str = "") -> None:
        with self.draft.at(place):
            if table and isinstance(entity, TableEntry) and isinstance(entity.action, str):
                info = self.draft.p4info.tables[table]
                entity = self.draft.entry(
                    info, dict(entity.match), entity.action, entity.params, entity.priority, entity.idle_timeout_ns
                )._replace(rates=entity.rates)
            self.draft.add(entity)

    def replicas(self, nodes: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return port and instance of each copy that the nodes with these handles make."""
        return tuple((port, node.instance) for handle in nodes for node in [self.nodes[handle]] for port in node.ports)

    def number(self, text: str, what: str) -> int:
        """Parse a word of a command as a number. Raises :class:`EntriesError` if it is none."""
        try:
            return codec.to_int(text, 64, what)
        except P4RuntimeError:
            raise self.draft.error(f"{what} is {text!r}; a number is expected") from None

    def held(self, handles: Handles[T] | None, text: str, what: str) -> int:
        """Parse a word of a command as a handle in ``handles``. Raises :class:`EntriesError` if no object has this handle."""
        handle = self.number(text, what)
        if handles is None or handle not in handles:
            raise self.draft.error(f"there is no {what} {handle} here")
        return handle

    def placed(self, value: T) -> _Placed[T]:
        """Return a value together with the line of the current command."""
        return _Placed(self.place, value)


def are_in(content: bytes) -> bool:
    """Return True if the first line of the content that is not empty or a comment begins with a known command."""
    for line in content.decode(errors="replace").splitlines():
        words = words_of(line)
        if words:
            return _known(words[0])
    return False


def read(draft: Draft, content: bytes) -> None:
    """Execute commands, and add the objects that they make to ``draft``.

    Raises :class:`EntriesError` with the line of a mistake.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise draft.error("this is not text in UTF-8") from None
    state = _State(draft)
    for number, line in enumerate(text.splitlines(), 1):
        if words := words_of(line):
            state.place = f":{number}"
            with draft.at(state.place):
                _obey(state, words)
    state.finish()


def table_entry(p4info: P4InfoIndex, arguments: Sequence[str]) -> TableEntry:
    """Return the entry that ``table_add`` with these words adds, as the program's P4Info names it.

    Raises HoldfastError if table, action, values or their number do not fit the program.
    """
    form = f"table_add {_COMMANDS['table_add'][0]}"
    draft = Draft(Path("table_add"), p4info)
    if len(arguments) < 3:
        raise draft.error(f"write {form}")
    state, table = _State(draft), p4info.tables[arguments[0]]
    _table_add(state, arguments)
    return state.entries[table.name][0].value


def action(p4info: P4InfoIndex, table: Table, name: str, words: Sequence[str]) -> tuple[str, dict[str, int | str]]:
    """Return an action of a table with its parameters from their words, as in ``table_set_default``. Raises HoldfastError."""
    return _arguments(_State(Draft(Path(table.name), p4info)), table, name, [word for word in words if word != "=>"])


def words_of(line: str) -> list[str]:
    """Return the words of a line, up to a comment (``#`` or ``//``)."""
    words = line.split()
    for index, word in enumerate(words):
        if word.startswith(("#", "//")):
            return words[:index]
    return words


def _known(command: str) -> bool:
    return command in _COMMANDS or command in _OTHERS or command.startswith((*_QUERIES, *_EMPTY_ALREADY))


def _obey(state: _State, words: Sequence[str]) -> None:
    command, arguments = words[0], words[1:]
    if command in _COMMANDS:
        form, most, obey = _COMMANDS[command]
        least = sum(not word.startswith("[") for word in form.split())
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise state.draft.error(f"{command} has {len(arguments)} words behind it; write {command} {form}")
        obey(state, arguments)
    elif command in _OTHERS:
        state.draft.leave_out(command)
    elif command.startswith(_QUERIES):
        state.draft.leave_out("commands that only show something")
    elif not command.startswith(_EMPTY_ALREADY):
        raise state.draft.error(unknown("command", command, (*_COMMANDS, *_OTHERS)))


# ---- Tables ----


def _split(state: _State, arguments: Sequence[str], table: Table, form: str) -> tuple[list[str], list[str], int | None]:
    """Split the arguments of a command that adds an entry: return the match, the words after ``=>``, and P4Runtime's priority.

    Raises :class:`EntriesError` if there is no ``=>``, or no priority where the table needs one.
    """
    rest, priority = list(arguments), None
    if table.needs_priority:
        given = state.number(rest.pop(), "the priority") if rest and rest[-1] != "=>" else None
        if given is None or given >= HIGHEST:
            raise state.draft.error(f"table '{table.name}' needs a priority as the last word, below {HIGHEST}")
        priority = HIGHEST - given
    if "=>" not in rest:
        raise state.draft.error(f"there is no '=>' behind the match fields: {form}")
    at = rest.index("=>")
    keys = rest[:at]
    if len(keys) != len(table.fields):
        names = ", ".join(f"{each.name} ({each.kind})" for each in table.fields) or "none"
        raise state.draft.error(f"table '{table.name}' has {len(table.fields)} match fields, not {len(keys)}: {names}")
    return keys, rest[at + 1 :], priority


def _match(state: _State, table: Table, keys: Sequence[str]) -> dict[str, MatchValue]:
    return state.draft.match(
        table, {each.name: _key(state, each, text) for each, text in zip(table.fields, keys, strict=True)}
    )


def _key(state: _State, match_field: MatchField, text: str) -> Any:
    """Parse the value of a match field. Bits that a prefix or mask does not cover, which bmv2 ignores, are cleared."""
    what, width = f"match field '{match_field.name}'", match_field.width
    if match_field.uri is not None:
        return text
    if match_field.form == "prefix":
        value, slash, length = text.rpartition("/")
        if not slash:
            raise state.draft.error(f"{what} is {text!r}; write a prefix, such as 10.0.0.0/8")
        bits = codec.to_int(length, 16, f"{what}: prefix length")
        if bits > width:
            raise state.draft.error(f"{what}: a prefix of {bits} bits in a field of {width}")
        return codec.to_int(value, width, what) & codec.prefix_mask(width, bits), bits
    if match_field.form == "masked":
        value, given, mask = text.partition("&&&")
        if not given:
            raise state.draft.error(f"{what} is {text!r}; write value&&&mask")
        bits = codec.to_int(mask, width, f"{what}: mask")
        return codec.to_int(value, width, what) & bits, bits
    if match_field.form == "range":
        low, given, high = text.partition("->")
        if not given:
            raise state.draft.error(f"{what} is {text!r}; write low->high")
        return low, high
    return {"true": 1, "false": 0}.get(text.lower(), text) if width == 1 else text


def _arguments(state: _State, table: Table, name: str, words: Sequence[str]) -> tuple[str, dict[str, int | str]]:
    action = table.actions[name]
    if len(words) != len(action.params):
        names = ", ".join(param.name for param in action.params) or "none"
        raise state.draft.error(
            f"action '{action.name}' has {len(action.params)} parameters, not {len(words)}: {names}"
        )
    return action.name, state.draft.arguments(list(zip(action.params, words, strict=True)), action.name)


def _table_add(state: _State, arguments: Sequence[str]) -> None:
    table = state.draft.p4info.tables[arguments[0]]
    keys, words, priority = _split(state, arguments[2:], table, f"table_add {_COMMANDS['table_add'][0]}")
    action, params = _arguments(state, table, arguments[1], words)
    entry = TableEntry(table.name, _match(state, table, keys), action, params, priority)
    _add_entry(state, table, entry)


def _add_entry(state: _State, table: Table, entry: TableEntry) -> None:
    handles = state.entries.setdefault(table.name, Handles())
    handles.add(state.placed(entry._replace(rates=state.rates.get(table.name))))


def _table_set_default(state: _State, arguments: Sequence[str]) -> None:
    table = state.draft.p4info.tables[arguments[0]]
    words = [word for word in arguments[2:] if word != "=>"]
    state.defaults[table.name] = state.placed(DefaultAction(table.name, *_arguments(state, table, arguments[1], words)))


def _table_reset_default(state: _State, arguments: Sequence[str]) -> None:
    state.defaults.pop(state.draft.p4info.tables[arguments[0]].name, None)


def _entry(state: _State, name: str, handle: str) -> tuple[Table, Handles[_Placed[TableEntry]], int]:
    table = state.draft.p4info.tables[name]
    handles = state.entries.setdefault(table.name, Handles())
    return table, handles, state.held(handles, handle, f"entry of table '{table.name}' with the handle")


def _table_modify(state: _State, arguments: Sequence[str]) -> None:
    table, handles, handle = _entry(state, arguments[0], arguments[2])
    words = [word for word in arguments[3:] if word != "=>"]
    action, params = _arguments(state, table, arguments[1], words)
    handles[handle] = state.placed(handles[handle].value._replace(action=action, params=params))


def _table_delete(state: _State, arguments: Sequence[str]) -> None:
    _, handles, handle = _entry(state, *arguments)
    handles.take(handle)


def _table_clear(state: _State, arguments: Sequence[str]) -> None:
    state.entries.pop(state.draft.p4info.tables[arguments[0]].name, None)


def _table_set_timeout(state: _State, arguments: Sequence[str]) -> None:
    _, handles, handle = _entry(state, *arguments[:2])
    timeout_ms = state.number(arguments[2], "the timeout in ms")
    handles[handle] = state.placed(handles[handle].value._replace(idle_timeout_ns=timeout_ms * 1_000_000))


# ---- Action profiles ----


def _profile(state: _State, name: str) -> ActionProfile:
    """Return an action profile by its name or, as older commands have it, by the name of a table that it implements."""
    info = state.draft.p4info
    if not info.action_profiles.has(name) and info.tables.has(name) and info.tables[name].implementation_id:
        return info.action_profiles.by_id(info.tables[name].implementation_id)
    return info.action_profiles[name]


def _create_member(state: _State, arguments: Sequence[str]) -> None:
    profile = _profile(state, arguments[0])
    tables = [state.draft.p4info.tables.by_id(each) for each in profile.table_ids]
    if not tables:
        raise state.draft.error(f"action profile '{profile.name}' implements no table")
    table = next((each for each in tables if each.actions.has(arguments[1])), tables[0])
    action, params = _arguments(state, table, arguments[1], arguments[2:])
    handles = state.members.setdefault(profile.name, Handles())
    handle = handles.add(state.placed(ProfileMember(profile.name, 0, action, params)))
    handles[handle] = state.placed(replace(handles[handle].value, number=handle + 1))


def _modify_member(state: _State, arguments: Sequence[str]) -> None:
    profile = _profile(state, arguments[0])
    tables = [state.draft.p4info.tables.by_id(each) for each in profile.table_ids]
    handles = state.members.setdefault(profile.name, Handles())
    handle = state.held(handles, arguments[2], "member")
    table = next((each for each in tables if each.actions.has(arguments[1])), tables[0])
    action, params = _arguments(state, table, arguments[1], [word for word in arguments[3:] if word != "=>"])
    handles[handle] = state.placed(ProfileMember(profile.name, handle + 1, action, params))


def _create_group(state: _State, arguments: Sequence[str]) -> None:
    profile = _profile(state, arguments[0])
    handles = state.groups.setdefault(profile.name, Handles())
    handle = handles.add(state.placed(ProfileGroup(profile.name, 0, {})))
    handles[handle] = state.placed(replace(handles[handle].value, number=handle + 1))


def _group(state: _State, arguments: Sequence[str]) -> tuple[Handles[_Placed[ProfileGroup]], int, int]:
    profile = _profile(state, arguments[0])
    member = state.held(state.members.get(profile.name), arguments[1], "member")
    handles = state.groups.setdefault(profile.name, Handles())
    return handles, state.held(handles, arguments[2], "group"), member + 1


def _join_group(state: _State, arguments: Sequence[str]) -> None:
    handles, handle, member = _group(state, arguments)
    placed = handles[handle]
    placed.value = replace(placed.value, members={**placed.value.members, member: 1})


def _leave_group(state: _State, arguments: Sequence[str]) -> None:
    handles, handle, member = _group(state, arguments)
    placed = handles[handle]
    placed.value = replace(
        placed.value, members={key: weight for key, weight in placed.value.members.items() if key != member}
    )


def _delete_of(per_profile: str, what: str) -> Callable[[_State, Sequence[str]], None]:
    def delete(state: _State, arguments: Sequence[str]) -> None:
        handles: Handles[Any] | None = getattr(state, per_profile).get(_profile(state, arguments[0]).name)
        handle = state.held(handles, arguments[1], what)
        assert handles is not None
        handles.take(handle)

    return delete


def _indirect_add(kind: type[Member] | type[Group]) -> Callable[[_State, Sequence[str]], None]:
    def add(state: _State, arguments: Sequence[str]) -> None:
        table = state.draft.p4info.tables[arguments[0]]
        keys, words, priority = _split(state, arguments[1:], table, "table MATCH... => HANDLE")
        if len(words) != 1:
            raise state.draft.error("one handle is expected behind '=>'")
        profile = _profile(state, arguments[0]).name
        if kind is Member:
            handle = state.held(state.members.get(profile), words[0], "member")
        else:
            handle = state.held(state.groups.get(profile), words[0], "group")
        _add_entry(
            state, table, TableEntry(table.name, _match(state, table, keys), kind(handle + 1), priority=priority)
        )

    return add


# ---- Packet replication ----


def _mc_mgrp_create(state: _State, arguments: Sequence[str]) -> None:
    number = state.number(arguments[0], "the group")
    if number in state.multicast:
        raise state.draft.error(f"multicast group {number} is there already")
    state.multicast[number] = state.placed([])


def _mc_mgrp_destroy(state: _State, arguments: Sequence[str]) -> None:
    if state.multicast.pop(state.number(arguments[0], "the group"), None) is None:
        raise state.draft.error(f"there is no multicast group {arguments[0]} here")


def _ports(state: _State, words: Sequence[str]) -> tuple[int, ...]:
    ports = words[: words.index("|")] if "|" in words else words
    if len(ports) + 1 < len(words):
        state.draft.leave_out("link aggregation groups of multicast nodes")
    return tuple(sorted(state.number(port, "a port") for port in ports))


def _mc_node_create(state: _State, arguments: Sequence[str]) -> None:
    instance = state.number(arguments[0], "the replication id")
    state.nodes.add(_Node(instance, _ports(state, arguments[1:])))


def _mc_node_update(state: _State, arguments: Sequence[str]) -> None:
    state.nodes[state.held(state.nodes, arguments[0], "node")].ports = _ports(state, arguments[1:])


def _mc_node_associate(state: _State, arguments: Sequence[str]) -> None:
    group, node = state.number(arguments[0], "the group"), state.held(state.nodes, arguments[1], "node")
    if group not in state.multicast:
        raise state.draft.error(f"there is no multicast group {group} here; mc_mgrp_create {group} makes it")
    state.multicast[group].value.append(node)


def _mc_node_dissociate(state: _State, arguments: Sequence[str]) -> None:
    group, node = state.number(arguments[0], "the group"), state.held(state.nodes, arguments[1], "node")
    if group not in state.multicast or node not in state.multicast[group].value:
        raise state.draft.error(f"node {node} is not in multicast group {group}")
    state.multicast[group].value.remove(node)


def _mc_node_destroy(state: _State, arguments: Sequence[str]) -> None:
    node = state.held(state.nodes, arguments[0], "node")
    for group in state.multicast.values():
        group.value = [each for each in group.value if each != node]
    state.nodes.take(node)


def _mirroring_add(state: _State, arguments: Sequence[str]) -> None:
    number, port = state.number(arguments[0], "the session"), state.number(arguments[1], "the port")
    state.sessions[number] = state.placed(CloneSession(number, ((port, 0),)))


def _mirroring_add_mc(state: _State, arguments: Sequence[str]) -> None:
    number, group = state.number(arguments[0], "the session"), state.number(arguments[1], "the group")
    state.sessions[number] = state.placed(group)


def _mirroring_delete(state: _State, arguments: Sequence[str]) -> None:
    state.sessions.pop(state.number(arguments[0], "the session"), None)


# ---- Cells ----


def _register_write(state: _State, arguments: Sequence[str]) -> None:
    register = Register(
        state.draft.p4info.registers[arguments[0]].name,
        state.number(arguments[1], "the index"),
        state.number(arguments[2], "the value"),
    )
    state.cells[register.key] = state.placed(register)


def _register_reset(state: _State, arguments: Sequence[str]) -> None:
    name = state.draft.p4info.registers[arguments[0]].name
    state.cells = {key: cell for key, cell in state.cells.items() if key[:2] != (Register, name)}


def _rates(state: _State, words: Sequence[str]) -> Rates:
    """Parse the two rates of a meter, committed and peak, each ``RATE:BURST`` with the rate per microsecond."""
    if len(words) != 2:
        raise state.draft.error(f"a meter has two rates, committed and peak, each RATE:BURST, not {len(words)}")
    numbers: list[int] = []
    for word in words:
        rate, _, burst = word.partition(":")
        try:
            per_s = float(rate) * _RATE_UNIT if rate.isascii() and "_" not in rate else -1
        except ValueError:
            per_s = -1
        if not 0 <= per_s < 1 << 62:
            raise state.draft.error(f"{word!r} is not RATE:BURST with a rate per microsecond")
        numbers += [round(per_s), state.number(burst, "the burst")]
    return numbers[0], numbers[1], numbers[2], numbers[3]


def _metered_table(state: _State, name: str) -> Table | None:
    """Return the table whose direct meter has this name; None if it is the name of no direct meter."""
    info = state.draft.p4info
    if not info.direct_meters.has(name):
        return None
    meter = info.direct_meters[name]
    return next((table for table in info.tables if table.direct_meter_id == meter.id), None)


def _meter_set_rates(state: _State, arguments: Sequence[str]) -> None:
    rates = _rates(state, arguments[2:])
    if (table := _metered_table(state, arguments[0])) is not None:
        _, handles, handle = _entry(state, table.name, arguments[1])
        handles[handle] = state.placed(handles[handle].value._replace(rates=rates))
        return
    meter = state.draft.p4info.meters[arguments[0]]
    cell = Meter(meter.name, state.number(arguments[1], "the index"), rates)
    state.cells[cell.key] = state.placed(cell)


def _meter_array_set_rates(state: _State, arguments: Sequence[str]) -> None:
    if (table := _metered_table(state, arguments[0])) is not None:
        state.rates[table.name] = _rates(state, arguments[1:])
        for _, entry in state.entries.get(table.name, Handles[_Placed[TableEntry]]()).items():
            entry.value = entry.value._replace(rates=state.rates[table.name])
        return
    cell = Meter(state.draft.p4info.meters[arguments[0]].name, None, _rates(state, arguments[1:]))
    state.cells = {key: each for key, each in state.cells.items() if key[:2] != cell.key[:2]}
    state.cells[cell.key] = state.placed(cell)


def _pvs_add(state: _State, arguments: Sequence[str]) -> None:
    name = state.draft.p4info.value_sets[arguments[0]].name
    state.sets.setdefault(name, state.placed(set())).value.add(state.number(arguments[1], "the value"))


def _pvs_remove(state: _State, arguments: Sequence[str]) -> None:
    name = state.draft.p4info.value_sets[arguments[0]].name
    if name in state.sets:
        state.sets[name].value.discard(state.number(arguments[1], "the value"))


def _pvs_clear(state: _State, arguments: Sequence[str]) -> None:
    state.sets.pop(state.draft.p4info.value_sets[arguments[0]].name, None)


_Command = tuple[str, int | None, Callable[[_State, Sequence[str]], None]]

_COMMANDS: Final[Mapping[str, _Command]] = {
    "table_add": ("TABLE ACTION [MATCH...] => [PARAMETERS...] [PRIORITY]", None, _table_add),
    "table_set_default": ("TABLE ACTION [PARAMETERS...]", None, _table_set_default),
    "table_reset_default": ("TABLE", 1, _table_reset_default),
    "table_modify": ("TABLE ACTION HANDLE [PARAMETERS...]", None, _table_modify),
    "table_delete": ("TABLE HANDLE", 2, _table_delete),
    "table_clear": ("TABLE", 1, _table_clear),
    "table_set_timeout": ("TABLE HANDLE MILLISECONDS", 3, _table_set_timeout),
    "act_prof_create_member": ("PROFILE ACTION [PARAMETERS...]", None, _create_member),
    "act_prof_modify_member": ("PROFILE ACTION MEMBER [PARAMETERS...]", None, _modify_member),
    "act_prof_delete_member": ("PROFILE MEMBER", 2, _delete_of("members", "member")),
    "act_prof_create_group": ("PROFILE", 1, _create_group),
    "act_prof_delete_group": ("PROFILE GROUP", 2, _delete_of("groups", "group")),
    "act_prof_add_member_to_group": ("PROFILE MEMBER GROUP", 3, _join_group),
    "act_prof_remove_member_from_group": ("PROFILE MEMBER GROUP", 3, _leave_group),
    "table_indirect_create_member": ("TABLE ACTION [PARAMETERS...]", None, _create_member),
    "table_indirect_create_group": ("TABLE", 1, _create_group),
    "table_indirect_add_member_to_group": ("TABLE MEMBER GROUP", 3, _join_group),
    "table_indirect_add": ("TABLE [MATCH...] => MEMBER [PRIORITY]", None, _indirect_add(Member)),
    "table_indirect_add_with_group": ("TABLE [MATCH...] => GROUP [PRIORITY]", None, _indirect_add(Group)),
    "mc_mgrp_create": ("GROUP", 1, _mc_mgrp_create),
    "mc_mgrp_destroy": ("GROUP", 1, _mc_mgrp_destroy),
    "mc_node_create": ("ID [PORTS...]", None, _mc_node_create),
    "mc_node_update": ("NODE [PORTS...]", None, _mc_node_update),
    "mc_node_associate": ("GROUP NODE", 2, _mc_node_associate),
    "mc_node_dissociate": ("GROUP NODE", 2, _mc_node_dissociate),
    "mc_node_destroy": ("NODE", 1, _mc_node_destroy),
    "mirroring_add": ("SESSION PORT", 2, _mirroring_add),
    "mirroring_add_mc": ("SESSION GROUP", 2, _mirroring_add_mc),
    "mirroring_delete": ("SESSION", 1, _mirroring_delete),
    "register_write": ("REGISTER INDEX VALUE", 3, _register_write),
    "register_reset": ("REGISTER", 1, _register_reset),
    "meter_set_rates": ("METER INDEX RATE:BURST RATE:BURST", 4, _meter_set_rates),
    "meter_array_set_rates": ("METER RATE:BURST RATE:BURST", 3, _meter_array_set_rates),
    "pvs_add": ("SET VALUE", 2, _pvs_add),
    "pvs_remove": ("SET VALUE", 2, _pvs_remove),
    "pvs_clear": ("SET", 1, _pvs_clear),
}
"""The commands by name, each with its arguments (optional ones in brackets), the most arguments, and the function that
carries it out."""
