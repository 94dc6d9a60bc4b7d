"""The methods of BMv2's Thrift interface, carried out at a running switch through P4Runtime's messages.

A method takes the structure of its parameters and returns its result, or raises one of the interface's exceptions. What P4Runtime
refuses becomes the code that BMv2 has for it, if it has one.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from holdfast.bmv2 import handles, program_json
from holdfast.bmv2 import thrift_types as types
from holdfast.bmv2.runtime_commands import CommandError, MulticastNodes
from holdfast.bmv2.thrift_types import Failure, Struct
from holdfast.entries_files.commands import HIGHEST
from holdfast.errors import HoldfastError
from holdfast.live import control
from holdfast.operations import verbs
from holdfast.p4runtime import codec
from holdfast.p4runtime.client import Client, Rates
from holdfast.p4runtime.errors import P4RuntimeError
from holdfast.p4runtime.p4info import MatchField, Named, Names, Table
from holdfast.p4runtime.received import Entry, Group, Member

N = TypeVar("N", bound=Named)

_PER_S = 1_000_000
_MS_NS = 1_000_000
_ERROR = 100
_I64 = 1 << 64
_MAX_SESSION = 0x7FFF

_TABLE_CODES = {
    "RESOURCE_EXHAUSTED": 1,
    "NOT_FOUND": 2,
    "ALREADY_EXISTS": 17,
    "INVALID_ARGUMENT": 18,
    "PERMISSION_DENIED": 25,
}
"""BMv2's codes of tables for P4Runtime's. 18: a bad match key; what else is bad of an entry is looked at before."""
_NO_TABLE, _NO_ACTION, _NO_PROFILE, _BAD_DATA, _BAD_HANDLE = 7, 8, 23, 26, 2
_NO_COUNTERS, _NO_METERS, _NO_TIMEOUTS = 4, 5, 6
_NO_OBJECT, _NO_CELL, _OTHER = 1, 2, 3
"""The codes of counters and registers: no such name, no such index, anything else."""


class Switch:
    """A running switch, which all connections share. ``ports``: asks for its ports, or adds or removes one."""

    def __init__(
        self, connect: Callable[[], Client], ports: Callable[[Any], control.Ports], device_id: int, thrift_port: int
    ) -> None:
        self.connect, self.ports = connect, ports
        self.device_id, self.thrift_port = device_id, thrift_port
        self.began = time.monotonic()
        self.changing = threading.RLock()
        """Held by a method, since many read, and then write by what they have read."""
        self.nodes: MulticastNodes | None = None


def switch_of(device_id: int, thrift_port: int) -> Switch:
    """Return the switch with this device id that runs in this process' network namespace."""
    who = f"switch with device id {device_id}"

    def ports(request: control.ListPorts | control.AddPort | control.RemovePort) -> control.Ports:
        return verbs.ask(control.socket_path(device_id), who, request, control.Ports)

    return Switch(lambda: control.client_of(device_id), ports, device_id, thrift_port)


class Methods:
    """The methods for one connection. Each has the name that the interface gives it, and takes its parameters."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._client = switch.connect()

    def call(self, method: types.Method, given: Struct) -> Any:
        """Carry out a method. Raises its exception, or HoldfastError where it has none."""
        with self._switch.changing:
            try:
                return getattr(self, method.name)(given)
            except P4RuntimeError as error:
                if method.failure is None:
                    raise
                codes = _TABLE_CODES if method.failure is types.InvalidTableOperation else {}
                other = _ERROR if method.failure is types.InvalidTableOperation else _OTHER
                if method.failure in (types.InvalidCounterOperation, types.InvalidRegisterOperation):
                    codes = dict.fromkeys(("INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE"), _NO_CELL)
                raise _failed(method.failure, codes.get(_code(error), other), error) from None
            except CommandError as error:
                if method.failure is None:
                    raise
                raise _failed(method.failure, _BAD_HANDLE, error) from None

    # ---- Names ----

    def _table(self, given: Any) -> Table:
        return _named(self._client.p4info.tables, given.table, types.InvalidTableOperation, _NO_TABLE)

    def _action(self, table: Table, name: str, data: Sequence[bytes] | None) -> tuple[str, dict[str, int]]:
        action = _named(table.actions, name, types.InvalidTableOperation, _NO_ACTION)
        params = list(self._client.p4info.actions[action.name].params)
        values = data or []
        if len(values) != len(params):
            raise _failed(types.InvalidTableOperation, _BAD_DATA, f"{action.name} has {len(params)} parameters")
        return action.name, {param.name: _number(value) for param, value in zip(params, values, strict=True)}

    def _data(self, action: str, params: dict[str, int | str]) -> list[bytes]:
        return [_bytes(params[param.name], param.width) for param in self._client.p4info.actions[action].params]

    def _profile(self, given: Any) -> str:
        profiles = self._client.p4info.action_profiles
        return _named(profiles, given.profile, types.InvalidTableOperation, _NO_PROFILE).name

    # ---- Tables ----

    def bm_mt_get_num_entries(self, given: Any) -> int:
        """Return how many entries a table has."""
        return len(handles.entries(self._client, self._table(given)))

    def bm_mt_clear_entries(self, given: Any) -> None:
        """Remove all entries of a table but constant ones, and with ``reset_default_entry`` set the default action back."""
        self._clear(self._table(given), reset_default=bool(given.reset_default_entry))

    def _clear(self, table: Table, *, reset_default: bool) -> None:
        with self._client.batch():
            for _, entry in handles.entries(self._client, table):
                if not entry.is_const:
                    self._client.delete(table.name, entry.match, entry.priority or None)
        if reset_default and not table.implementation_id:
            with _unless("PERMISSION_DENIED"):
                self._client.reset_default(table.name)

    def bm_mt_add_entry(self, given: Any) -> int:
        """Add an entry, and return its handle."""
        table = self._table(given)
        return self._insert(table, given, *self._action(table, given.action, given.data))

    def _insert(
        self, table: Table, given: Any, action: str | Member | Group, params: dict[str, int] | None = None
    ) -> int:
        handle = handles.free_entry(self._client, table)
        match, priority = _match(table, given.key), _priority(table, given.options)
        self._client.insert(table.name, match, action, params, priority, metadata=handles.metadata(handle))
        return handle

    def bm_mt_set_default_action(self, given: Any) -> None:
        """Set the action of packets that no entry matches."""
        table = self._table(given)
        self._client.set_default(table.name, *self._action(table, given.action, given.data))

    def bm_mt_reset_default_entry(self, given: Any) -> None:
        """Set the default action back to the program's."""
        self._client.reset_default(self._table(given).name)

    def bm_mt_delete_entry(self, given: Any) -> None:
        """Remove an entry."""
        table, entry = self._entry(given)
        self._client.delete(table.name, entry.match, entry.priority or None)

    bm_mt_indirect_delete_entry = bm_mt_delete_entry

    def bm_mt_modify_entry(self, given: Any) -> None:
        """Give an entry another action."""
        table, entry = self._entry(given)
        self._modify(table, entry, *self._action(table, given.action, given.data))

    def bm_mt_set_entry_ttl(self, given: Any) -> None:
        """Set how long an entry may be idle before the controller hears of it, in milliseconds."""
        table, entry = self._entry(given)
        message = next(it for it in self._client.p4info.message.tables if it.preamble.id == table.id)
        if not message.idle_timeout_behavior:
            raise _failed(types.InvalidTableOperation, _NO_TIMEOUTS, f"table {table.name} has no timeouts")
        self._modify(table, entry, *_use(entry), idle_timeout_ns=given.timeout_ms * _MS_NS)

    def _modify(
        self, table: Table, entry: Entry, action: str | Member | Group, params: Any = None, **more: Any
    ) -> None:
        kept: dict[str, Any] = {
            "metadata": entry.metadata,
            "idle_timeout_ns": entry.idle_timeout_ns,
            "rates": entry.rates,
        }
        self._client.modify(table.name, entry.match, action, params, entry.priority or None, **(kept | more))

    def _entry(self, given: Any) -> tuple[Table, Entry]:
        table = self._table(given)
        return table, handles.entry(self._client, table, given.handle)

    def bm_mt_get_entries(self, given: Any) -> list[Struct]:
        """Return all entries of a table."""
        table = self._table(given)
        return [self._shown(table, handle, entry) for handle, entry in handles.entries(self._client, table)]

    def bm_mt_get_entry(self, given: Any) -> Struct:
        """Return the entry with a handle."""
        table, entry = self._entry(given)
        return self._shown(table, given.handle, entry)

    def bm_mt_get_entry_from_key(self, given: Any) -> Struct:
        """Return the entry with a key, and a priority if the table has them."""
        table = self._table(given)
        wanted = _match(table, given.key), _priority(table, given.options) or 0
        for handle, entry in handles.entries(self._client, table):
            if (entry.match, entry.priority) == wanted:
                return self._shown(table, handle, entry)
        raise CommandError(f"table '{table.name}' has no such entry")

    def bm_mt_get_default_entry(self, given: Any) -> Struct:
        """Return the default action of a table."""
        return self._action_entry(self._client.read_default(self._table(given).name))

    def _shown(self, table: Table, handle: int, entry: Entry) -> Struct:
        options = types.EntryOptions(priority=HIGHEST - entry.priority if table.needs_priority else -1)
        life = types.EntryLife(timeout_ms=entry.idle_timeout_ns // _MS_NS, time_since_hit_ms=0)
        return types.TableEntry(
            match_key=[_param(field, entry.match.get(field.name)) for field in table.fields],
            options=options,
            entry_handle=handle,
            action_entry=self._action_entry(entry),
            life=life if entry.idle_timeout_ns else None,
        )

    def _action_entry(self, entry: Entry) -> Struct:
        if entry.member is not None:
            return types.ActionEntry(action_type=types.MEMBER, mbr_handle=entry.member)
        if entry.group is not None:
            return types.ActionEntry(action_type=types.GROUP, grp_handle=entry.group)
        if not entry.action:
            return types.ActionEntry(action_type=types.NO_ACTION)
        data = self._data(entry.action, entry.params)
        return types.ActionEntry(action_type=types.ACTION_DATA, action_name=entry.action, action_data=data)

    # ---- Action profiles ----

    def bm_mt_act_prof_add_member(self, given: Any) -> int:
        """Create a member of an action profile, and return its handle."""
        profile, table = self._profile(given), self._profile_table(given)
        handle = handles.free(self._client.profile_members(profile))
        self._client.profile_member(profile, handle, *self._action(table, given.action, given.data))
        return handle

    def bm_mt_act_prof_modify_member(self, given: Any) -> None:
        """Give a member another action."""
        action = self._action(self._profile_table(given), given.action, given.data)
        self._client.profile_member(self._profile(given), given.member, *action, verb="modify")

    def _profile_table(self, given: Any) -> Table:
        profile = self._client.p4info.action_profiles[self._profile(given)]
        if not profile.table_ids:
            raise _failed(types.InvalidTableOperation, _ERROR, f"action profile {profile.name} implements no table")
        return self._client.p4info.tables.by_id(profile.table_ids[0])

    def bm_mt_act_prof_delete_member(self, given: Any) -> None:
        """Remove a member."""
        self._client.delete_profile_member(self._profile(given), given.member)

    def bm_mt_act_prof_create_group(self, given: Any) -> int:
        """Create a group without members, and return its handle."""
        profile = self._profile(given)
        handle = handles.free(self._client.profile_groups(profile))
        self._client.profile_group(profile, handle, ())
        return handle

    def bm_mt_act_prof_delete_group(self, given: Any) -> None:
        """Remove a group."""
        self._client.delete_profile_group(self._profile(given), given.group)

    def bm_mt_act_prof_add_member_to_group(self, given: Any) -> None:
        """Add a member to a group."""
        self._change_group(given, lambda members: members | {given.member: 1})

    def bm_mt_act_prof_remove_member_from_group(self, given: Any) -> None:
        """Take a member out of a group."""
        self._change_group(given, lambda members: {key: it for key, it in members.items() if key != given.member})

    def _change_group(self, given: Any, change: Callable[[dict[int, int]], dict[int, int]]) -> None:
        profile, groups = self._profile(given), self._client.profile_groups(self._profile(given))
        members, watched, size = _one(groups, given.group, f"action profile '{profile}' has no group")
        changed = change(members)
        self._client.profile_group(profile, given.group, changed, watch_ports=watched, max_size=size, verb="modify")

    def bm_mt_act_prof_get_members(self, given: Any) -> list[Struct]:
        """Return the members of an action profile."""
        members = self._client.profile_members(self._profile(given))
        return [self._member(handle, *action) for handle, action in sorted(members.items())]

    def bm_mt_act_prof_get_member(self, given: Any) -> Struct:
        """Return a member of an action profile."""
        profile = self._profile(given)
        members = self._client.profile_members(profile)
        return self._member(given.member, *_one(members, given.member, f"action profile '{profile}' has no member"))

    def _member(self, handle: int, action: str, params: dict[str, int | str]) -> Struct:
        return types.ProfileMember(mbr_handle=handle, action_name=action, action_data=self._data(action, params))

    def bm_mt_act_prof_get_groups(self, given: Any) -> list[Struct]:
        """Return the groups of an action profile."""
        groups = self._client.profile_groups(self._profile(given))
        return [types.ProfileGroup(grp_handle=at, mbr_handles=sorted(it[0])) for at, it in sorted(groups.items())]

    def bm_mt_act_prof_get_group(self, given: Any) -> Struct:
        """Return a group of an action profile."""
        profile = self._profile(given)
        groups = self._client.profile_groups(profile)
        members, *_ = _one(groups, given.group, f"action profile '{profile}' has no group")
        return types.ProfileGroup(grp_handle=given.group, mbr_handles=sorted(members))

    def bm_mt_indirect_add_entry(self, given: Any) -> int:
        """Add an entry that uses a member, and return its handle."""
        return self._insert(self._table(given), given, Member(given.member))

    def bm_mt_indirect_ws_add_entry(self, given: Any) -> int:
        """Add an entry that uses a group, and return its handle."""
        return self._insert(self._table(given), given, Group(given.group))

    def bm_mt_indirect_modify_entry(self, given: Any) -> None:
        """Give an entry another member."""
        self._modify(*self._entry(given), Member(given.member))

    def bm_mt_indirect_ws_modify_entry(self, given: Any) -> None:
        """Give an entry another group."""
        self._modify(*self._entry(given), Group(given.group))

    # ---- Counters and meters of tables ----

    def bm_mt_read_counter(self, given: Any) -> Struct:
        """Return the direct counter of an entry."""
        table, entry = self._entry(given)
        if entry.counter is None:
            raise _failed(types.InvalidTableOperation, _NO_COUNTERS, f"table {table.name} has no counter")
        return _count(entry.counter)

    def bm_mt_write_counter(self, given: Any) -> None:
        """Set the direct counter of an entry."""
        table, entry = self._entry(given)
        priority = entry.priority or None
        self._client.write_direct_counter(table.name, entry.match, priority, given.value.packets, given.value.bytes)

    def bm_mt_reset_counters(self, given: Any) -> None:
        """Set the direct counters of all entries of a table to zero."""
        table = self._table(given)
        if not table.direct_counter_id:
            raise _failed(types.InvalidTableOperation, _NO_COUNTERS, f"table {table.name} has no counter")
        with self._client.batch():
            for _, entry in handles.entries(self._client, table):
                self._client.write_direct_counter(table.name, entry.match, entry.priority or None)

    def bm_mt_set_meter_rates(self, given: Any) -> None:
        """Set the rates of an entry's direct meter."""
        table, entry = self._metered(given)
        self._modify(table, entry, *_use(entry), rates=_rates(given.rates, types.InvalidTableOperation, _ERROR))

    def bm_mt_get_meter_rates(self, given: Any) -> list[Struct]:
        """Return the rates of an entry's direct meter; none if it has not got any."""
        return _shown_rates(self._metered(given)[1].rates)

    def _metered(self, given: Any) -> tuple[Table, Entry]:
        table, entry = self._entry(given)
        if not table.direct_meter_id:
            raise _failed(types.InvalidTableOperation, _NO_METERS, f"table {table.name} has no meter")
        return table, entry

    # ---- Counters, meters, registers, value sets ----

    def bm_counter_read(self, given: Any) -> Struct:
        """Return a cell of a counter."""
        return _count(self._client.counter(self._counter(given), given.index))

    def bm_counter_write(self, given: Any) -> None:
        """Set a cell of a counter."""
        self._client.write_counter(self._counter(given), given.index, given.value.packets, given.value.bytes)

    def bm_counter_reset_all(self, given: Any) -> None:
        """Set all cells of a counter to zero."""
        self._client.write_counter(self._counter(given), None)

    def _counter(self, given: Any) -> str:
        return _named(self._client.p4info.counters, given.name, types.InvalidCounterOperation, _NO_OBJECT).name

    def bm_meter_array_set_rates(self, given: Any) -> None:
        """Set the rates of all cells of a meter."""
        self._client.configure_meter(self._meter(given), None, _rates(given.rates, types.InvalidMeterOperation, 3))

    def bm_meter_set_rates(self, given: Any) -> None:
        """Set the rates of a cell of a meter."""
        rates = _rates(given.rates, types.InvalidMeterOperation, 3)
        self._client.configure_meter(self._meter(given), given.index, rates)

    def bm_meter_get_rates(self, given: Any) -> list[Struct]:
        """Return the rates of a cell of a meter; none if it has not got any."""
        return _shown_rates(self._client.meter_rates(self._meter(given), given.index)[given.index])

    def _meter(self, given: Any) -> str:
        return _named(self._client.p4info.meters, given.name, types.InvalidMeterOperation, _NO_OBJECT).name

    def bm_register_read(self, given: Any) -> int:
        """Return a cell of a register, as a signed number of 64 bits."""
        return _signed(self._client.register(self._register(given), given.index))

    def bm_register_read_all(self, given: Any) -> list[int]:
        """Return all cells of a register."""
        cells = self._client.registers(self._register(given))
        return [_signed(cells[at]) for at in sorted(cells)]

    def bm_register_write(self, given: Any) -> None:
        """Set a cell of a register."""
        self._client.write_register(self._register(given), given.index, given.value % _I64)

    def bm_register_write_range(self, given: Any) -> None:
        """Set the cells of a register from ``index`` on, before ``end``."""
        name = self._register(given)
        with self._client.batch():
            for at in range(given.index, given.end):
                self._client.write_register(name, at, given.value % _I64)

    def bm_register_reset(self, given: Any) -> None:
        """Set all cells of a register to zero."""
        self._client.write_register(self._register(given), None, 0)

    def _register(self, given: Any) -> str:
        return _named(self._client.p4info.registers, given.name, types.InvalidRegisterOperation, _NO_OBJECT).name

    def bm_parse_vset_add(self, given: Any) -> None:
        """Add a value to a parser value set."""
        name = self._value_set(given)
        self._client.set_value_set(name, {*self._client.value_set(name), _number(given.value)})

    def bm_parse_vset_remove(self, given: Any) -> None:
        """Take a value out of a parser value set."""
        name = self._value_set(given)
        self._client.set_value_set(name, {*self._client.value_set(name)} - {_number(given.value)})

    def bm_parse_vset_get(self, given: Any) -> list[bytes]:
        """Return the values of a parser value set."""
        name = self._value_set(given)
        message = next(it for it in self._client.p4info.message.value_sets if it.preamble.name == name)
        width = sum(field.bitwidth for field in message.match)
        return [_bytes(value, width) for value in self._client.value_set(name)]

    def bm_parse_vset_clear(self, given: Any) -> None:
        """Take all values out of a parser value set."""
        self._client.set_value_set(self._value_set(given), ())

    def _value_set(self, given: Any) -> str:
        return _named(self._client.p4info.value_sets, given.name, types.InvalidParseVSetOperation, _NO_OBJECT).name

    # ---- Multicast and mirroring ----

    def _nodes(self) -> MulticastNodes:
        if self._switch.nodes is None:
            self._switch.nodes = MulticastNodes(self._client.multicast_groups())
        return self._switch.nodes

    def _write_groups(self, groups: Sequence[int]) -> None:
        for group in groups:
            self._client.multicast_group(group, self._nodes().replicas(group), verb="modify")

    def bm_mc_mgrp_create(self, given: Any) -> int:
        """Create a multicast group, whose handle is its number."""
        self._nodes().create_group(given.group)
        self._client.multicast_group(given.group, [])
        return int(given.group)

    def bm_mc_mgrp_destroy(self, given: Any) -> None:
        """Remove a multicast group."""
        self._nodes().destroy_group(given.group)
        self._client.delete_multicast_group(given.group)

    def bm_mc_node_create(self, given: Any) -> int:
        """Create a node, and return its handle."""
        return self._nodes().create(given.instance, _ports(given))

    def bm_mc_node_update(self, given: Any) -> None:
        """Give a node other ports."""
        self._write_groups(self._nodes().update(given.node, _ports(given)))

    def bm_mc_node_associate(self, given: Any) -> None:
        """Add a node to a group."""
        self._nodes().associate(given.group, given.node)
        self._write_groups([given.group])

    def bm_mc_node_dissociate(self, given: Any) -> None:
        """Take a node out of a group."""
        self._nodes().dissociate(given.group, given.node)
        self._write_groups([given.group])

    def bm_mc_node_destroy(self, given: Any) -> None:
        """Remove a node, also from its group."""
        self._write_groups(self._nodes().destroy(given.node))

    def bm_mc_get_entries(self, given: Any) -> str:
        """Return groups and nodes as BMv2's JSON."""
        nodes = self._nodes()
        made = {
            "mgrps": [{"id": group, "l1_handles": members} for group, members in nodes.groups().items()],
            "l1_handles": [{"handle": at, "rid": rid, "l2_handle": at} for at, (rid, _) in nodes.nodes().items()],
            "l2_handles": [
                {"handle": at, "ports": list(ports), "lags": []} for at, (_, ports) in nodes.nodes().items()
            ],
            "lags": [],
        }
        return json.dumps(made)

    def mirroring_session_add(self, given: Any) -> None:
        """Send the clones of a session to a port, to the ports that a multicast group has now, or to both."""
        if not 0 < given.session <= _MAX_SESSION:
            raise CommandError(f"mirroring session {given.session} is not between 1 and {_MAX_SESSION}")
        config = given.config
        to = [] if config.port is None else [(config.port, 0)]
        to += [] if config.mgid is None else self._nodes().replicas(config.mgid)
        known = given.session in self._client.clone_sessions()
        self._client.clone_session(given.session, to, verb="modify" if known else "insert")

    def mirroring_session_delete(self, given: Any) -> None:
        """Remove a session of clones."""
        self._client.delete_clone_session(given.session)

    def mirroring_session_get(self, given: Any) -> Struct:
        """Return the port of a session of clones."""
        replicas = _one(self._client.clone_sessions(), given.session, "there is no mirroring session")
        return types.Session(port=replicas[0][0] if replicas else None)

    # ---- The switch ----

    def bm_dev_mgr_show_ports(self, given: Any) -> list[Struct]:
        """Return the ports."""
        rows = self._switch.ports(control.ListPorts()).ports
        return [
            types.PortInfo(port_num=row.port, iface_name=row.interface, is_up=bool(row.up), extra={}) for row in rows
        ]

    def bm_dev_mgr_add_port(self, given: Any) -> None:
        """Make an interface a port."""
        if given.capture:
            raise CommandError("a port is captured if the switch was started with --pcap")
        self._port(control.AddPort(port=given.port, interface=given.interface, io="auto"))

    def bm_dev_mgr_remove_port(self, given: Any) -> None:
        """Take a port away."""
        self._port(control.RemovePort(port=given.port))

    def _port(self, request: Any) -> None:
        try:
            self._switch.ports(request)
        except HoldfastError as error:
            raise _failed(types.InvalidDevMgrOperation, 1, error) from None

    def bm_mgmt_get_info(self, given: Any) -> Struct:
        """Return the device id and the Thrift port."""
        return types.SwitchInfo(device_id=self._switch.device_id, thrift_port=self._switch.thrift_port)

    def bm_get_config(self, given: Any) -> str:
        """Return what BMv2's JSON says of the program's objects."""
        return json.dumps(program_json.described(self._client.p4info.message))

    def bm_get_config_md5(self, given: Any) -> bytes:
        """Return the MD5 of :meth:`bm_get_config`."""
        return hashlib.md5(self.bm_get_config(given).encode(), usedforsecurity=False).digest()

    def bm_reset_state(self, given: Any) -> None:
        """Remove entries, members, groups and sessions, and set default actions, counters, meters and registers back."""
        info = self._client.p4info
        for table in info.tables:
            self._clear(table, reset_default=True)
        for profile in info.action_profiles:
            for group in self._client.profile_groups(profile.name):
                self._client.delete_profile_group(profile.name, group)
            for member in self._client.profile_members(profile.name):
                self._client.delete_profile_member(profile.name, member)
        for counter in info.counters:
            self._client.write_counter(counter.name, None)
        for meter in info.meters:
            self._client.configure_meter(meter.name, None, None)
        for register in info.registers:
            with _unless("UNIMPLEMENTED"):
                self._client.write_register(register.name, None, 0)
        for values in info.value_sets:
            self._client.set_value_set(values.name, ())
        for multicast in self._client.multicast_groups():
            self._client.delete_multicast_group(multicast)
        for session in self._client.clone_sessions():
            self._client.delete_clone_session(session)
        self._switch.nodes = None

    def get_time_elapsed_us(self, given: Any) -> int:
        """Return the microseconds since the switch began."""
        return int((time.monotonic() - self._switch.began) * _PER_S)

    def get_time_since_epoch_us(self, given: Any) -> int:
        """Return the wall clock in microseconds."""
        return time.time_ns() // 1000


def _code(error: P4RuntimeError) -> str:
    """Return the reason why a request was refused: that of its only element, if it has one."""
    return error.failures[0].code if error.failed == 1 else error.code


def _failed(failure: type[Failure], code: int, why: object) -> Failure:
    """Return an exception of the interface, which has a code and no place for ``why``; our own log shows it."""
    made = failure(code=code)
    made.args = (str(why),)
    return made


@contextmanager
def _unless(code: str) -> Iterator[None]:
    """Go on if P4Runtime refuses with this code."""
    try:
        yield
    except P4RuntimeError as error:
        if error.code != code:
            raise


def _named(names: Names[N], name: str | None, failure: type[Failure], code: int) -> N:
    found = names[name] if name is not None and names.has(name) else None
    if found is None:
        raise _failed(failure, code, f"there is no {name!r}")
    return found


def _one(among: dict[int, Any], number: int, sentence: str) -> Any:
    if number not in among:
        raise CommandError(f"{sentence} {number}")
    return among[number]


def _use(entry: Entry) -> tuple[str | Member | Group, dict[str, int | str] | None]:
    """Return what an entry does, as arguments for a change that keeps it."""
    if entry.member is not None:
        return Member(entry.member), None
    if entry.group is not None:
        return Group(entry.group), None
    return entry.action, entry.params


def _number(data: bytes | None) -> int:
    return int.from_bytes(data or b"", "big")


def _bytes(value: int | str, width: int) -> bytes:
    return value.encode() if isinstance(value, str) else value.to_bytes((width + 7) // 8, "big")


def _signed(value: int) -> int:
    low = value % _I64
    return low - _I64 if low >> 63 else low


def _count(counter: tuple[int, int]) -> Struct:
    packets, octets = counter
    return types.CounterValue(bytes=_signed(octets), packets=_signed(packets))


def _ports(given: Any) -> list[int]:
    """Return the ports of a map, in which the last character is port 0."""
    if set(given.lags or "") - {"0"}:
        raise CommandError("link aggregation groups are not there: give ports alone")
    return [port for port, sign in enumerate(reversed(given.ports or "")) if sign == "1"]


def _rates(given: Sequence[Any] | None, failure: type[Failure], code: int) -> Rates:
    if len(given or ()) != 2:
        raise _failed(failure, code, "a meter has two rates")
    low, high = given or ()
    return round(low.units_per_micros * _PER_S), low.burst_size, round(high.units_per_micros * _PER_S), high.burst_size


def _shown_rates(rates: Rates | None) -> list[Struct]:
    if rates is None:
        return []
    pairs = (rates[:2], rates[2:])
    return [types.MeterRate(units_per_micros=rate / _PER_S, burst_size=burst) for rate, burst in pairs]


def _priority(table: Table, options: Any) -> int | None:
    """Return P4Runtime's priority, where a higher number comes first; BMv2's 0 is the first."""
    if not table.needs_priority:
        return None
    given = options.priority if options is not None else None
    if given is None or not 0 <= given < HIGHEST:
        raise _failed(types.InvalidTableOperation, 18, f"table {table.name} needs a priority")
    return HIGHEST - int(given)


def _match(table: Table, key: Sequence[Any] | None) -> dict[str, Any]:
    """Return the match of an entry. Raises the interface's exception for a key that is not one of this table."""
    fields, params = list(table.fields), list(key or ())
    bad = _failed(types.InvalidTableOperation, 18, f"the key does not fit table {table.name}")
    if len(fields) != len(params):
        raise bad
    match: dict[str, Any] = {}
    for field, param in zip(fields, params, strict=True):
        value = _value(field, param)
        if value is None:
            raise bad
        if value != ():
            match[field.name] = value
    return match


def _value(field: MatchField, param: Any) -> Any:
    """Return the value of a key's field, () if it matches any value, None if it is of another kind than the field."""
    if field.form == "prefix":
        if param.lpm is None:
            return None
        length = param.lpm.prefix_length
        bits = _number(param.lpm.key)
        # What is behind the prefix counts for nothing in BMv2.
        return (bits >> (field.width - length) << (field.width - length), length) if 0 < length <= field.width else ()
    if field.form == "range":
        if param.range is None:
            return None
        low, high = _number(param.range.start), _number(param.range.end_)
        return () if (low, high) == (0, codec.all_ones(field.width)) else (low, high)
    if field.has_any:
        if param.ternary is None:
            return None
        bits, mask = _number(param.ternary.key), _number(param.ternary.mask)
        if mask == 0:
            return ()
        if field.form == "masked":
            return bits & mask, mask
        return bits if mask == codec.all_ones(field.width) else None
    if param.exact is not None:
        return _number(param.exact.key)
    return None if param.valid is None else int(param.valid.key)


def _param(field: MatchField, value: Any) -> Struct:
    """Return a field of an entry's key; one that matches any value has a prefix length or mask of zero."""
    width = field.width
    if field.form == "prefix":
        bits, length = value if isinstance(value, tuple) else (0, 0)
        return types.MatchParam(type=types.LPM, lpm=types.Lpm(key=_bytes(bits, width), prefix_length=length))
    if field.form == "range":
        low, high = value if isinstance(value, tuple) else (0, codec.all_ones(width))
        return types.MatchParam(type=types.RANGE, range=types.Range(start=_bytes(low, width), end_=_bytes(high, width)))
    if field.has_any:
        whole = (0 if value is None else value, 0 if value is None else codec.all_ones(width))
        bits, mask = value if isinstance(value, tuple) else whole
        ternary = types.Ternary(key=_bytes(bits, width), mask=_bytes(mask, width))
        return types.MatchParam(type=types.TERNARY, ternary=ternary)
    return types.MatchParam(type=types.EXACT, exact=types.Exact(key=_bytes(value, width)))


__all__ = ["Methods", "Switch", "switch_of"]
