"""``simple_switch_CLI``: commands from standard input, carried out at a running switch of this machine over its control socket.

P4Runtime has no handles of entries (:mod:`holdfast.bmv2.handles`). Rates of meters are BMv2's, per microsecond.
"""

from __future__ import annotations

import argparse
import cmd
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import IO, NoReturn

from holdfast.bmv2 import handles
from holdfast.bmv2.runtime_commands import CommandError, MulticastNodes, number
from holdfast.bmv2.switch_options import DEFAULT_THRIFT_PORT
from holdfast.entries_files import commands
from holdfast.errors import HoldfastError, LiveError
from holdfast.live import control
from holdfast.operations import verbs
from holdfast.p4runtime import codec
from holdfast.p4runtime.client import Client, Rates
from holdfast.p4runtime.p4info import MatchField, Table
from holdfast.p4runtime.received import Entry, Group, Member
from holdfast.terminal import printable

_PER_S = 1_000_000
_MAX_SESSION = 0x7FFF


class RuntimeCli(cmd.Cmd):
    """The commands, each a method. ``failed``: how many could not be carried out."""

    prompt = "RuntimeCmd: "
    intro = "Commands of BMv2's simple_switch_CLI at a Holdfast switch; help lists them"
    doc_header = "Commands (help COMMAND)"

    def __init__(self, client: Client, ports: Callable[[], str], stdin: IO[str] | None = None) -> None:
        super().__init__(stdin=stdin)
        self.use_rawinput = stdin is None
        self.failed = 0
        self._client = client
        self._ports = ports
        self._known_nodes: MulticastNodes | None = None

    # ---- The loop ----

    def onecmd(self, line: str) -> bool:
        """Execute a line, and print why if that fails. Returns True if the line ends the session."""
        given = commands.words_of(line)
        if not given:
            return False
        if given[0] in ("EOF", "exit", "quit"):
            self._say("")
            return True
        if given[0] not in ("help", "?") and not hasattr(self, f"do_{given[0]}"):
            self._fail(f"unknown command {given[0]!r}; help lists the commands")
            return False
        try:
            super().onecmd(" ".join(given))
        except HoldfastError as error:
            self._fail(str(error))
        return False

    def _fail(self, why: str) -> None:
        self.failed += 1
        self._say(f"Error: {why}")

    def _say(self, text: str) -> None:
        self.stdout.write(printable(f"{text}\n"))

    @staticmethod
    def _words(line: str, usage: str, least: int, most: int | None = None) -> list[str]:
        """Split the arguments of a command. Raises :class:`CommandError` with its usage if there are too few or too many."""
        given = line.split()
        if not least <= len(given) <= (least if most is None else most):
            raise CommandError(f"usage: {usage}")
        return given

    def completenames(self, text: str, *ignored: object) -> list[str]:
        """Return the commands that begin with a text."""
        return [name.removeprefix("do_") for name in self.get_names() if name.startswith(f"do_{text}")]

    def completedefault(self, *ignored: object) -> list[str]:
        """Return the names of the program's objects that begin with the word before the cursor."""
        text = str(ignored[0])
        info = self._client.p4info
        kinds = (info.tables, info.actions, info.registers, info.counters, info.meters)
        names = (spelling for kind in kinds for spelling, _ in kind.spellings())
        return sorted({name for name in names if name.startswith(text)})

    # ---- Tables ----

    def do_show_tables(self, line: str) -> None:
        """Show the tables with their actions and keys: show_tables."""
        self._words(line, "show_tables", 0)
        for table in self._client.p4info.tables:
            self._say(self._described(table))

    def do_show_actions(self, line: str) -> None:
        """Show the actions with their parameters: show_actions."""
        self._words(line, "show_actions", 0)
        for action in self._client.p4info.actions:
            shown = ", ".join(f"{param.name}({param.width or 'string'})" for param in action.params)
            self._say(f"{action.name:30} [{shown}]")

    def do_table_info(self, line: str) -> None:
        """Show a table with its actions and key: table_info TABLE."""
        (name,) = self._words(line, "table_info TABLE", 1)
        table = self._client.p4info.tables[name]
        self._say(self._described(table))
        for action in table.actions:
            self._say(f"{action.name:30} [{', '.join(f'{param.name}({param.width})' for param in action.params)}]")

    do_table_show_actions = do_table_info

    @staticmethod
    def _described(table: Table) -> str:
        fields = ", ".join(f"{field.name}({field.kind}, {field.width or 'string'})" for field in table.fields)
        return f"{table.name:30} [implementation={table.implementation_id or None}, mk={fields}]"

    def do_table_add(self, line: str) -> None:
        """Add an entry; the lowest priority is the first: table_add TABLE ACTION KEY... => PARAMETER... [PRIORITY]."""
        entry = commands.table_entry(self._client.p4info, line.split())
        handle = self._free_handle(entry.table)
        action = entry.action
        self._client.insert(
            entry.table, entry.match, action, entry.params, entry.priority, metadata=handles.metadata(handle)
        )
        self._say(f"Adding entry to match table {entry.table}\nEntry has been added with handle {handle}")

    def do_table_modify(self, line: str) -> None:
        """Give an entry another action: table_modify TABLE ACTION HANDLE PARAMETER...."""
        usage = "table_modify TABLE ACTION HANDLE PARAMETER..."
        name, action_name, handle, *texts = self._words(line, usage, 3, 1 << 16)
        table = self._client.p4info.tables[name]
        entry = self._entry(table, handle)
        named, params = commands.action(self._client.p4info, table, action_name, texts)
        self._client.modify(table.name, entry.match, named, params, entry.priority or None, metadata=entry.metadata)
        self._say(f"Modifying entry {handle} for match table {table.name}")

    def do_table_delete(self, line: str) -> None:
        """Remove an entry: table_delete TABLE HANDLE."""
        name, handle = self._words(line, "table_delete TABLE HANDLE", 2)
        table = self._client.p4info.tables[name]
        entry = self._entry(table, handle)
        self._client.delete(table.name, entry.match, entry.priority or None)
        self._say(f"Deleting entry {handle} from {table.name}")

    def do_table_clear(self, line: str) -> None:
        """Remove all entries but constant ones: table_clear TABLE."""
        (name,) = self._words(line, "table_clear TABLE", 1)
        table = self._client.p4info.tables[name]
        with self._client.batch():
            for _, entry in self._entries(table):
                if not entry.is_const:
                    self._client.delete(table.name, entry.match, entry.priority or None)

    def do_table_set_default(self, line: str) -> None:
        """Set the action of packets that no entry matches: table_set_default TABLE ACTION PARAMETER...."""
        name, action_name, *texts = self._words(line, "table_set_default TABLE ACTION PARAMETER...", 2, 1 << 16)
        table = self._client.p4info.tables[name]
        named, params = commands.action(self._client.p4info, table, action_name, texts)
        self._client.set_default(table.name, named, params)
        self._say(f"Setting default action of {table.name}\naction: {named}")

    def do_table_reset_default(self, line: str) -> None:
        """Set the default action back to the program's: table_reset_default TABLE."""
        (name,) = self._words(line, "table_reset_default TABLE", 1)
        self._client.reset_default(name)

    def do_table_num_entries(self, line: str) -> None:
        """Show how many entries a table has: table_num_entries TABLE."""
        (name,) = self._words(line, "table_num_entries TABLE", 1)
        self._say(str(len(self._entries(self._client.p4info.tables[name]))))

    def do_table_dump(self, line: str) -> None:
        """Show all entries, and the default action: table_dump TABLE."""
        (name,) = self._words(line, "table_dump TABLE", 1)
        table = self._client.p4info.tables[name]
        self._say("==========\nTABLE ENTRIES")
        for handle, entry in self._entries(table):
            self._say("**********")
            self._dump(table, handle, entry)
        self._say("==========\nDumping default entry")
        self._say(self._action_text(self._client.read_default(table.name)))
        self._say("==========")

    def do_table_dump_entry(self, line: str) -> None:
        """Show one entry: table_dump_entry TABLE HANDLE."""
        name, handle = self._words(line, "table_dump_entry TABLE HANDLE", 2)
        table = self._client.p4info.tables[name]
        self._dump(table, number(handle, "handle"), self._entry(table, handle))

    def _dump(self, table: Table, handle: int, entry: Entry) -> None:
        self._say(f"Dumping entry {handle:#x}\nMatch key:")
        width = max([20, *(len(field.name) for field in table.fields)])
        for field in table.fields:
            value = entry.match.get(field.name)
            self._say(f"* {field.name:{width}}: {field.kind.upper():10}{_value_text(value, field)}")
        if table.needs_priority:
            self._say(f"Priority: {commands.HIGHEST - entry.priority}")
        self._say(self._action_text(entry))
        if entry.counter is not None:
            self._say(f"Counter: {entry.counter[1]} bytes, {entry.counter[0]} packets")

    def _action_text(self, entry: Entry) -> str:
        if entry.member is not None or entry.group is not None:
            return f"Index: member({entry.member})" if entry.member is not None else f"Index: group({entry.group})"
        if not entry.action:
            return "Action entry: EMPTY"
        params = self._client.p4info.actions[entry.action].params
        texts = (_hex(entry.params[param.name], param.width) for param in params if param.name in entry.params)
        return f"Action entry: {entry.action} - {', '.join(texts)}"

    def _entries(self, table: Table) -> list[tuple[int, Entry]]:
        return handles.entries(self._client, table)

    def _entry(self, table: Table, handle: str) -> Entry:
        return handles.entry(self._client, table, number(handle, "handle"))

    def _free_handle(self, name: str) -> int:
        return handles.free_entry(self._client, self._client.p4info.tables[name])

    # ---- Action profiles ----

    def do_act_prof_create_member(self, line: str) -> None:
        """Create a member: act_prof_create_member PROFILE ACTION PARAMETER...."""
        usage = "act_prof_create_member PROFILE ACTION PARAMETER..."
        name, action_name, *texts = self._words(line, usage, 2, 1 << 16)
        profile = self._client.p4info.action_profiles[name]
        tables = [self._client.p4info.tables.by_id(each) for each in profile.table_ids]
        if not tables:
            raise CommandError(f"action profile '{profile.name}' implements no table")
        named, params = commands.action(self._client.p4info, tables[0], action_name, texts)
        handle = handles.free(self._client.profile_members(profile.name))
        self._client.profile_member(profile.name, handle, named, params)
        self._say(f"Member has been created with handle {handle}")

    def do_act_prof_delete_member(self, line: str) -> None:
        """Remove a member: act_prof_delete_member PROFILE MEMBER."""
        name, member = self._words(line, "act_prof_delete_member PROFILE MEMBER", 2)
        self._client.delete_profile_member(name, number(member, "member"))

    def do_act_prof_create_group(self, line: str) -> None:
        """Create a group: act_prof_create_group PROFILE."""
        (name,) = self._words(line, "act_prof_create_group PROFILE", 1)
        handle = handles.free(self._client.profile_groups(name))
        self._client.profile_group(name, handle, ())
        self._say(f"Group has been created with handle {handle}")

    def do_act_prof_delete_group(self, line: str) -> None:
        """Remove a group: act_prof_delete_group PROFILE GROUP."""
        name, group = self._words(line, "act_prof_delete_group PROFILE GROUP", 2)
        self._client.delete_profile_group(name, number(group, "group"))

    def do_act_prof_add_member_to_group(self, line: str) -> None:
        """Add a member to a group: act_prof_add_member_to_group PROFILE MEMBER GROUP."""
        self._change_group(line, "act_prof_add_member_to_group PROFILE MEMBER GROUP", lambda m, one: m | {one: 1})

    def do_act_prof_remove_member_from_group(self, line: str) -> None:
        """Take a member out of a group: act_prof_remove_member_from_group PROFILE MEMBER GROUP."""
        usage = "act_prof_remove_member_from_group PROFILE MEMBER GROUP"
        self._change_group(line, usage, lambda m, one: {k: v for k, v in m.items() if k != one})

    def _change_group(self, line: str, usage: str, change: Callable[[dict[int, int], int], dict[int, int]]) -> None:
        name, member, group = self._words(line, usage, 3)
        handle = number(group, "group")
        groups = self._client.profile_groups(name)
        if handle not in groups:
            raise CommandError(f"action profile '{name}' has no group {handle}")
        members, watched, size = groups[handle]
        changed = change(members, number(member, "member"))
        self._client.profile_group(name, handle, changed, watch_ports=watched, max_size=size, verb="modify")

    def do_table_indirect_add(self, line: str) -> None:
        """Add an entry that uses a member: table_indirect_add TABLE KEY... => MEMBER [PRIORITY]."""
        self._add_indirect(line, Member)

    def do_table_indirect_add_with_group(self, line: str) -> None:
        """Add an entry that uses a group: table_indirect_add_with_group TABLE KEY... => GROUP [PRIORITY]."""
        self._add_indirect(line, Group)

    def _add_indirect(self, line: str, kind: type[Member] | type[Group]) -> None:
        given = line.split()
        if "=>" not in given:
            raise CommandError("usage: table_indirect_add TABLE KEY... => MEMBER [PRIORITY]")
        at = given.index("=>")
        table = self._client.p4info.tables[given[0]]
        if len(given) != at + 2 + table.needs_priority:
            raise CommandError(f"'=>' is followed by one number{' and a priority' if table.needs_priority else ''}")
        plain = next(iter(table.actions)).name
        zeros = ["0"] * len(self._client.p4info.actions[plain].params)
        entry = commands.table_entry(
            self._client.p4info, [given[0], plain, *given[1:at], "=>", *zeros, *given[at + 2 :]]
        )
        handle = self._free_handle(entry.table)
        use = kind(number(given[at + 1], "member or group"))
        self._client.insert(entry.table, entry.match, use, None, entry.priority, metadata=handles.metadata(handle))
        self._say(f"Entry has been added with handle {handle}")

    # ---- Registers, counters, meters ----

    def do_register_read(self, line: str) -> None:
        """Show a cell, or all: register_read REGISTER [INDEX]."""
        name, *index = self._words(line, "register_read REGISTER [INDEX]", 1, 2)
        if index:
            at = number(index[0], "index")
            self._say(f"{name}[{at}]= {self._client.register(name, at)}")
        else:
            self._say(f"{name}= {', '.join(map(str, self._client.registers(name).values()))}")

    def do_register_write(self, line: str) -> None:
        """Set a cell: register_write REGISTER INDEX VALUE."""
        name, index, value = self._words(line, "register_write REGISTER INDEX VALUE", 3)
        self._client.write_register(name, number(index, "index"), value)

    def do_register_reset(self, line: str) -> None:
        """Set all cells to zero: register_reset REGISTER."""
        (name,) = self._words(line, "register_reset REGISTER", 1)
        self._client.write_register(name, None, 0)

    def do_counter_read(self, line: str) -> None:
        """Show a cell; INDEX of a direct counter is an entry's handle: counter_read COUNTER INDEX."""
        name, index = self._words(line, "counter_read COUNTER INDEX", 2)
        if table := self._counted(name):
            packets, octets = self._entry(table, index).counter or (0, 0)
            self._say(f"this is the direct counter for table {table.name}")
        else:
            packets, octets = self._client.counter(name, number(index, "index"))
        self._say(f"{name}[{number(index, 'index')}]= ({octets} bytes, {packets} packets)")

    def do_counter_write(self, line: str) -> None:
        """Set a cell; INDEX of a direct counter is an entry's handle: counter_write COUNTER INDEX PACKETS BYTES."""
        name, index, packets, octets = self._words(line, "counter_write COUNTER INDEX PACKETS BYTES", 4)
        counts = number(packets, "packets"), number(octets, "bytes")
        if table := self._counted(name):
            entry = self._entry(table, index)
            self._client.write_direct_counter(table.name, entry.match, entry.priority or None, *counts)
        else:
            self._client.write_counter(name, number(index, "index"), *counts)

    def do_counter_reset(self, line: str) -> None:
        """Set all cells to zero: counter_reset COUNTER."""
        (name,) = self._words(line, "counter_reset COUNTER", 1)
        if table := self._counted(name):
            with self._client.batch():
                for _, entry in self._entries(table):
                    self._client.write_direct_counter(table.name, entry.match, entry.priority or None)
        else:
            self._client.write_counter(name, None)

    def _counted(self, name: str) -> Table | None:
        """Return the table to which the direct counter ``name`` belongs; None if the name is not that of a direct counter."""
        info = self._client.p4info
        if info.counters.has(name) or not info.direct_counters.has(name):
            return None
        counter = info.direct_counters[name]
        return next(table for table in info.tables if table.direct_counter_id == counter.id)

    def do_meter_set_rates(self, line: str) -> None:
        """Set committed and peak rate, per microsecond: meter_set_rates METER INDEX RATE:BURST RATE:BURST."""
        name, index, *rates = self._words(line, "meter_set_rates METER INDEX RATE:BURST RATE:BURST", 4)
        self._client.configure_meter(name, number(index, "index"), _rates(rates))

    def do_meter_array_set_rates(self, line: str) -> None:
        """Set the rates of all cells: meter_array_set_rates METER RATE:BURST RATE:BURST."""
        name, *rates = self._words(line, "meter_array_set_rates METER RATE:BURST RATE:BURST", 3)
        self._client.configure_meter(name, None, _rates(rates))

    def do_meter_get_rates(self, line: str) -> None:
        """Show committed and peak rate with bursts: meter_get_rates METER INDEX."""
        name, index = self._words(line, "meter_get_rates METER INDEX", 2)
        found = self._client.meter_rates(name, number(index, "index"))[number(index, "index")]
        if found is None:
            self._say("no rates: all packets are green")
            return
        cir, cburst, pir, pburst = found
        self._say(f"0: info rate = {cir / _PER_S}, burst size = {cburst}")
        self._say(f"1: info rate = {pir / _PER_S}, burst size = {pburst}")

    # ---- Multicast and mirroring ----

    def _nodes(self) -> MulticastNodes:
        if self._known_nodes is None:
            self._known_nodes = MulticastNodes(self._client.multicast_groups())
        return self._known_nodes

    def _write_groups(self, groups: Iterable[int]) -> None:
        for group in groups:
            self._client.multicast_group(group, self._nodes().replicas(group), verb="modify")

    def do_mc_mgrp_create(self, line: str) -> None:
        """Create a multicast group: mc_mgrp_create GROUP."""
        group = number(self._words(line, "mc_mgrp_create GROUP", 1)[0], "group")
        self._nodes().create_group(group)
        self._client.multicast_group(group, [])
        self._say(f"Creating multicast group {group}")

    def do_mc_mgrp_destroy(self, line: str) -> None:
        """Remove a multicast group: mc_mgrp_destroy GROUP."""
        group = number(self._words(line, "mc_mgrp_destroy GROUP", 1)[0], "group")
        self._nodes().destroy_group(group)
        self._client.delete_multicast_group(group)

    def do_mc_node_create(self, line: str) -> None:
        """Create a node, a copy to each port with this instance: mc_node_create RID PORT...."""
        rid, *ports = self._words(line, "mc_node_create RID PORT...", 1, 1 << 16)
        if "|" in ports:
            raise CommandError("link aggregation groups ('|') are not there: give ports alone")
        handle = self._nodes().create(number(rid, "rid", 0xFFFF), [number(port, "port") for port in ports])
        self._say(f"Creating node with rid {rid}\nnode was created with handle {handle}")

    def do_mc_node_update(self, line: str) -> None:
        """Give a node other ports: mc_node_update NODE PORT...."""
        handle, *ports = self._words(line, "mc_node_update NODE PORT...", 1, 1 << 16)
        changed = self._nodes().update(number(handle, "node"), [number(port, "port") for port in ports])
        self._write_groups(changed)

    def do_mc_node_associate(self, line: str) -> None:
        """Add a node to a group: mc_node_associate GROUP NODE."""
        group, handle = (number(word, "number") for word in self._words(line, "mc_node_associate GROUP NODE", 2))
        self._nodes().associate(group, handle)
        self._write_groups([group])
        self._say(f"Associating node {handle} to multicast group {group}")

    def do_mc_node_dissociate(self, line: str) -> None:
        """Take a node out of a group: mc_node_dissociate GROUP NODE."""
        group, handle = (number(word, "number") for word in self._words(line, "mc_node_dissociate GROUP NODE", 2))
        self._nodes().dissociate(group, handle)
        self._write_groups([group])

    def do_mc_node_destroy(self, line: str) -> None:
        """Remove a node, also from its group: mc_node_destroy NODE."""
        (handle,) = self._words(line, "mc_node_destroy NODE", 1)
        self._write_groups(self._nodes().destroy(number(handle, "node")))

    def do_mc_dump(self, line: str) -> None:
        """Show groups and nodes: mc_dump."""
        self._words(line, "mc_dump", 0)
        self._say(self._nodes().dump())

    def do_mirroring_add(self, line: str) -> None:
        """Send the clones of a session to a port: mirroring_add SESSION PORT."""
        session, port = (number(word, "number") for word in self._words(line, "mirroring_add SESSION PORT", 2))
        self._mirror(session, [(port, 0)])

    def do_mirroring_add_mc(self, line: str) -> None:
        """Send the clones of a session to the ports that a multicast group has now: mirroring_add_mc SESSION GROUP."""
        session, group = (number(word, "number") for word in self._words(line, "mirroring_add_mc SESSION GROUP", 2))
        self._mirror(session, self._nodes().replicas(group))

    def _mirror(self, session: int, replicas: Sequence[tuple[int, int]]) -> None:
        if not 0 < session <= _MAX_SESSION:
            raise CommandError(f"mirroring session {session} is not between 1 and {_MAX_SESSION}")
        known = session in self._client.clone_sessions()
        self._client.clone_session(session, replicas, verb="modify" if known else "insert")

    def do_mirroring_delete(self, line: str) -> None:
        """Remove a session of clones: mirroring_delete SESSION."""
        (session,) = self._words(line, "mirroring_delete SESSION", 1)
        self._client.delete_clone_session(number(session, "session"))

    def do_mirroring_get(self, line: str) -> None:
        """Show where the clones of a session go: mirroring_get SESSION."""
        (session,) = self._words(line, "mirroring_get SESSION", 1)
        found = self._client.clone_sessions().get(number(session, "session"))
        if found is None:
            raise CommandError(f"there is no mirroring session {session}")
        self._say(f"{session}: " + ", ".join(f"port {port}, instance {instance}" for port, instance in found))

    # ---- The switch ----

    def do_show_ports(self, line: str) -> None:
        """Show the ports with their interfaces and counters: show_ports."""
        self._words(line, "show_ports", 0)
        self._say(self._ports())

    def do_set_queue_rate(self, line: str) -> None:
        """Refuse, as an interface takes packets at once: set_queue_rate RATE [PORT] [PRIORITY]."""
        raise CommandError("a live switch has no queues: limit the interface, as by tc qdisc add dev NAME root tbf ...")

    def do_set_queue_depth(self, line: str) -> None:
        """Refuse, as an interface takes packets at once: set_queue_depth PACKETS [PORT] [PRIORITY]."""
        self.do_set_queue_rate(line)


def _rates(texts: Sequence[str]) -> Rates:
    found: list[int] = []
    for text in texts:
        rate, separator, burst = text.partition(":")
        try:
            per_s = round(float(rate) * _PER_S)
        except (ValueError, OverflowError):
            separator, per_s = "", 0
        if not separator or per_s < 0:
            raise CommandError(f"{text!r} is not RATE:BURST, as in 0.5:10 (per microsecond)")
        found += [per_s, number(burst, "burst")]
    cir, cburst, pir, pburst = found
    return cir, cburst, pir, pburst


def _hex(value: int | str, width: int) -> str:
    return value if isinstance(value, str) else f"{value:0{(width + 7) // 8 * 2}x}"


def _value_text(value: int | str | tuple[int, int] | None, field: MatchField) -> str:
    """Format a match as BMv2 shows it; a field that matches any value has a prefix length or mask of zero."""
    width = field.width
    if field.form == "prefix":
        prefix, length = value if isinstance(value, tuple) else (0, 0)
        return f"{_hex(prefix, width)}/{length}"
    if field.form == "range":
        low, high = value if isinstance(value, tuple) else (0, codec.all_ones(width))
        return f"{_hex(low, width)} -> {_hex(high, width)}"
    if field.has_any:
        bits, mask = value if isinstance(value, tuple) else (value or 0, 0 if value is None else codec.all_ones(width))
        return f"{_hex(bits, width)} &&& {_hex(mask, width)}"
    return _hex(value if isinstance(value, int | str) else 0, width)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LiveError(f"simple_switch_CLI: {message}")


def find(thrift_port: int | None) -> control.Running:
    """Return the running switch of this network namespace with a Thrift port, or the only one if ``thrift_port`` is None.

    Raises :class:`LiveError` if there is none, or several.
    """
    switches = [each for each in control.running_switches() if each.is_here]
    if thrift_port is None and len(switches) == 1:
        return switches[0]
    wanted = DEFAULT_THRIFT_PORT if thrift_port is None else thrift_port
    found = [each for each in switches if _thrift_port(each) == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(each.device_id) for each in found)
        raise LiveError(f"the switches with device ids {ids} were all started with Thrift port {wanted}")
    raise LiveError(
        f"no switch of this network namespace was started with Thrift port {wanted}: "
        "start one by holdfast simple_switch_grpc --thrift-port, or go to its namespace (ip netns exec)"
    )


def _thrift_port(running: control.Running) -> int | None:
    who = f"switch with device id {running.device_id}"
    try:
        return verbs.ask(running.path, who, control.AskServer(), control.RunningServer).thrift_port
    except LiveError:
        return None


def _ports_of(running: control.Running) -> str:
    who = f"switch with device id {running.device_id}"
    rows = verbs.ask(running.path, who, control.ListPorts(), control.Ports).ports
    return "\n".join(
        f"{row.port}: {row.interface}, {'up' if row.up else 'down'}, received {row.rx_packets}, sent {row.tx_packets}"
        for row in rows
    )


def main(arguments: Sequence[str], version: str) -> bool:
    """Read commands to the end of standard input. Returns False if one of them could not be carried out."""
    parser = _Parser(prog="simple_switch_CLI", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"holdfast {version}")
    parser.add_argument(
        "--thrift-port", type=int, help="that the switch was started with (default: the only switch, or 9090)"
    )
    parser.add_argument("--thrift-ip", default="localhost", help="this machine only")
    parser.add_argument("--json", help="not used: the switch knows its program")
    parser.add_argument("--pre", help="not used: the switch has one kind of replication")
    given = parser.parse_args(list(arguments))
    if given.thrift_ip not in ("localhost", "127.0.0.1", "::1", "0.0.0.0"):
        parser.error(f"--thrift-ip {given.thrift_ip}: there is no Thrift; run this on the switch's machine")
    for option in ("json", "pre"):
        if getattr(given, option) is not None:
            sys.stderr.write(f"note: ignored: --{option}\n")
    running = find(given.thrift_port)
    interactive = os.isatty(sys.stdin.fileno())
    cli = RuntimeCli(control.OperatorClient(running), lambda: _ports_of(running), None if interactive else sys.stdin)
    cli.cmdloop()
    return cli.failed == 0


__all__ = ["RuntimeCli", "find", "main"]
