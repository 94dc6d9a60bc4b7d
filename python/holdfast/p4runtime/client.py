"""The controller's side: names instead of ids, values instead of byte strings, over gRPC or in process.

:class:`LocalClient` and :class:`GrpcClient` differ in how messages travel and in nothing else: the same protobuf
messages reach the same :class:`~holdfast.p4runtime.device.Device`. Names are the program's: whole
(``ingress.ipv4_lpm``), alias, or any unique ending (``ipv4_lpm``; of a match field, ``dst_addr``). Values are what
:mod:`holdfast.p4runtime.codec` takes: integers, ``"10.0.0.0/24"``, MAC and IPv6 addresses, bytes; ``(value, mask)``,
``(value, prefix_len)`` and ``(low, high)`` where the field wants them. Everything refused raises
:class:`P4RuntimeError`, which names each update that failed.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from holdfast.p4runtime import codec, p4data, stream_batches
from holdfast.p4runtime.addresses import check, is_loopback
from holdfast.p4runtime.client_session import UPDATE_TYPES, Atomicity, ClientSession, EntryName, PipelineAction
from holdfast.p4runtime.codec import Pair, Value
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.entity_messages import (
    describe,
    fill_action,
    fill_key,
    fill_rates,
    fill_replicas,
    int64,
    read_action,
    read_entry,
    read_rates,
    read_replicas,
    uint,
)
from holdfast.p4runtime.errors import DETAILS_BYTES_KEY, P4RuntimeError, from_status, invalid_argument
from holdfast.p4runtime.limits import MAX_READ_ENTITIES
from holdfast.p4runtime.received import Arbitration, Entry, Event, Group, Member, StreamError
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2, p4runtime_pb2_grpc, status_pb2

__all__ = ["Atomicity", "Client", "GrpcClient", "LocalClient", "PipelineAction", "Rates", "Verb"]

Rates: TypeAlias = tuple[int, int, int, int]
"""The rates and bursts of a meter (cir, cburst, pir, pburst), per second, in packets or bytes as the meter counts."""

Verb: TypeAlias = Literal["insert", "modify", "delete"]

_FAREWELL_S = 1.0
"""The time in seconds that a server may take to end a stream after its client has closed its side."""
_HANDSHAKE_S = 10.0
_DETAILS_BYTES = 3 << 19  # errors of large batches travel as metadata ("gRPC Metadata Maximum Size"), which is slow
_METADATA_BYTES = 2 * _DETAILS_BYTES  # as text, with room for the rest
_CALL_METADATA = ((DETAILS_BYTES_KEY, str(_DETAILS_BYTES)),)
_MESSAGE_BYTES = 128 << 20


class Client(ClientSession):
    """A P4Runtime client of one device. Use :class:`LocalClient` or :class:`GrpcClient`.

    Packet-ins and digests go to :attr:`on_packet_in` and :attr:`on_digest` if set (called from whatever thread delivers
    them), else into a queue that :meth:`poll` and :meth:`packets_in` read.

    Methods raise :class:`holdfast.p4runtime.errors.P4RuntimeError` for names that the program does not have, for values that do
    not fit, and if the device refuses a request.
    """

    # ---- Writing ----

    def insert(
        self,
        table: str,
        match: Mapping[str, Value | Pair],
        action: str | Member | Group,
        params: Mapping[str, Value] | None = None,
        priority: int | None = None,
        *,
        metadata: bytes = b"",
        idle_timeout_ns: int = 0,
        rates: Rates | None = None,
    ) -> None:
        """Add an entry to a table. Fields that are left out of ``match`` (or are None) match any value.

        ``action``: in a table with an action profile or selector, a :class:`Member` or :class:`Group`. ``priority``: the
        highest wins; only for tables with ternary, range or optional fields, and there required. ``rates``: of the table's direct
        meter.
        """
        self._write_entry("insert", table, match, action, params, priority, metadata, idle_timeout_ns, rates)

    def modify(
        self,
        table: str,
        match: Mapping[str, Value | Pair],
        action: str | Member | Group,
        params: Mapping[str, Value] | None = None,
        priority: int | None = None,
        *,
        metadata: bytes = b"",
        idle_timeout_ns: int = 0,
        rates: Rates | None = None,
    ) -> None:
        """Replace the action of an existing entry of a table, and its metadata, idle timeout and direct meter.

        The arguments are those of :meth:`insert`.
        """
        self._write_entry("modify", table, match, action, params, priority, metadata, idle_timeout_ns, rates)

    def delete(self, table: str, match: Mapping[str, Value | Pair], priority: int | None = None) -> None:
        """Remove an entry from a table. ``match`` and ``priority`` are those with which it was inserted."""
        self._write_entry("delete", table, match, None, None, priority, b"")

    def set_default(self, table: str, action: str, params: Mapping[str, Value] | None = None) -> None:
        """Set the action that a table runs when no entry matches. ``params``: the action's parameters by name."""
        info = self.p4info.tables[table]
        entity = p4runtime_pb2.Entity(table_entry={"table_id": info.id, "is_default_action": True})
        fill_action(entity.table_entry.action.action, info, action, params)
        self._update("modify", entity, f"default action of {info.name}")

    def reset_default(self, table: str) -> None:
        """Set the action that a table runs when no entry matches back to the program's."""
        info = self.p4info.tables[table]
        entity = p4runtime_pb2.Entity(table_entry={"table_id": info.id, "is_default_action": True})
        self._update("modify", entity, f"default action of {info.name}")

    def _write_entry(
        self,
        verb: str,
        table: str,
        match: Mapping[str, Value | Pair],
        action: str | Member | Group | None,
        params: Mapping[str, Value] | None,
        priority: int | None,
        metadata: bytes,
        idle_timeout_ns: int = 0,
        rates: Rates | None = None,
    ) -> None:
        info = self.p4info.tables[table]
        given = dict(match)  # the caller's may change before the batch is sent
        what = EntryName(info.name, given, priority)
        # Most entries are plain numbers, and there are many.
        if not idle_timeout_ns and rates is None and (action is None or isinstance(action, str)):
            encoded = info.encoder.update(
                UPDATE_TYPES[verb],
                given,
                action,
                dict(params or ()),
                uint(priority, 31, "priority") if priority else 0,
                metadata,
            )
            if encoded is not None:
                self._send_update(verb, encoded, what)
                return
        entity = p4runtime_pb2.Entity()
        entry = entity.table_entry
        fill_key(entry, info, match, priority)
        if metadata:
            entry.metadata = metadata
        if idle_timeout_ns:
            entry.idle_timeout_ns = int64(idle_timeout_ns, "idle_timeout_ns")
        if rates is not None:
            fill_rates(entry.meter_config, rates)
        if isinstance(action, str):
            fill_action(entry.action.action, info, action, params)
        elif isinstance(action, Member):
            entry.action.action_profile_member_id = uint(action.id, 32, "member")
        elif isinstance(action, Group):
            entry.action.action_profile_group_id = uint(action.id, 32, "group")
        self._update(verb, entity, what)

    def profile_member(
        self,
        profile: str,
        member_id: int,
        action: str,
        params: Mapping[str, Value] | None = None,
        *,
        verb: Literal["insert", "modify"] = "insert",
    ) -> None:
        """Create a member of an action profile or selector, or change it with ``verb="modify"``."""
        info = self.p4info.action_profiles[profile]
        given = {"action_profile_id": info.id, "member_id": uint(member_id, 32, "member")}
        entity = p4runtime_pb2.Entity(action_profile_member=given)
        if not info.table_ids:
            raise invalid_argument(f"action profile '{info.name}' implements no table")
        tables = [self.p4info.tables.by_id(id) for id in info.table_ids]
        able = next((table for table in tables if table.actions.has(action)), tables[0])
        fill_action(entity.action_profile_member.action, able, action, params)
        self._update(verb, entity, f"member {member_id} of {info.name}")

    def delete_profile_member(self, profile: str, member_id: int) -> None:
        """Remove a member of an action profile or selector that no group and no entry uses."""
        info = self.p4info.action_profiles[profile]
        given = {"action_profile_id": info.id, "member_id": uint(member_id, 32, "member")}
        entity = p4runtime_pb2.Entity(action_profile_member=given)
        self._update("delete", entity, f"member {member_id} of {info.name}")

    def profile_group(
        self,
        profile: str,
        group_id: int,
        members: Mapping[int, int] | Iterable[int],
        *,
        watch_ports: Mapping[int, int] | None = None,
        max_size: int = 0,
        verb: Literal["insert", "modify"] = "insert",
    ) -> None:
        """Create a group of an action selector, or change it with ``verb="modify"``. ``members``: ids, or weights by id.

        ``watch_ports``: by member, the port that must be up for the member to be chosen.
        """
        info = self.p4info.action_profiles[profile]
        entity = p4runtime_pb2.Entity()
        message = entity.action_profile_group
        message.action_profile_id, message.group_id = info.id, uint(group_id, 32, "group")
        message.max_size = uint(max_size, 31, "max_size")
        weights = members if isinstance(members, Mapping) else dict.fromkeys(members, 1)
        for member_id, weight in weights.items():
            member = message.members.add(member_id=uint(member_id, 32, "member"), weight=uint(weight, 31, "weight"))
            if watch_ports and member_id in watch_ports:
                member.watch_port = codec.encode(codec.to_int(watch_ports[member_id], 32, "watch port"))
        self._update(verb, entity, f"group {group_id} of {info.name}")

    def delete_profile_group(self, profile: str, group_id: int) -> None:
        """Remove a group of an action selector that no entry uses."""
        info = self.p4info.action_profiles[profile]
        given = {"action_profile_id": info.id, "group_id": uint(group_id, 32, "group")}
        entity = p4runtime_pb2.Entity(action_profile_group=given)
        self._update("delete", entity, f"group {group_id} of {info.name}")

    def configure_meter(self, name: str, index: int | None, rates: Rates | None) -> None:
        """Configure the cell ``index`` of a meter, or all its cells if ``index`` is None.

        ``rates`` of None turns the meter off: all packets are green.
        """
        meter = self.p4info.meters[name]
        entity = p4runtime_pb2.Entity(meter_entry={"meter_id": meter.id, "index": _cell(index)})
        if rates is not None:
            fill_rates(entity.meter_entry.config, rates)
        self._update("modify", entity, f"meter {meter.name}[{'*' if index is None else index}]")

    def meter_rates(self, name: str, index: int | None = None) -> dict[int, Rates | None]:
        """Return (cir, cburst, pir, pburst) of a meter's cells by index; None for a cell that is not configured."""
        entity = p4runtime_pb2.Entity(meter_entry={"meter_id": self.p4info.meters[name].id, "index": _cell(index)})
        cells = [entry.meter_entry for entry in self._read(entity)]
        return {cell.index.index: read_rates(cell.config) if cell.HasField("config") else None for cell in cells}

    def multicast_group(
        self,
        group_id: int,
        replicas: Sequence[tuple[int, int]],
        *,
        verb: Literal["insert", "modify", "delete"] = "insert",
    ) -> None:
        """Create a multicast group, or change it with ``verb="modify"``. Each replica is (egress port, instance)."""
        entity = p4runtime_pb2.Entity()
        group = entity.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = uint(group_id, 32, "multicast group id")
        fill_replicas(group, replicas)
        self._update(verb, entity, f"multicast group {group_id}")

    def delete_multicast_group(self, group_id: int) -> None:
        """Remove a multicast group."""
        self.multicast_group(group_id, (), verb="delete")

    def clone_session(
        self,
        session_id: int,
        replicas: Sequence[tuple[int, int]],
        packet_length_bytes: int = 0,
        class_of_service: int = 0,
        *,
        verb: Literal["insert", "modify", "delete"] = "insert",
    ) -> None:
        """Create a clone session, or change it with ``verb="modify"``. Each replica is (egress port, instance).

        Clones are truncated to ``packet_length_bytes``; 0 means that they are not.
        """
        entity = p4runtime_pb2.Entity()
        session = entity.packet_replication_engine_entry.clone_session_entry
        session.session_id = uint(session_id, 32, "clone session id")
        session.packet_length_bytes = uint(packet_length_bytes, 31, "packet length")
        session.class_of_service = uint(class_of_service, 32, "class of service")
        fill_replicas(session, replicas)
        self._update(verb, entity, f"clone session {session_id}")

    def delete_clone_session(self, session_id: int) -> None:
        """Remove a clone session."""
        self.clone_session(session_id, (), verb="delete")

    def set_value_set(self, name: str, members: Iterable[Value]) -> None:
        """Set the members of a parser value set of one exact field."""
        value_set = self.p4info.value_sets[name]
        message = next(it for it in self.p4info.message.value_sets if it.preamble.id == value_set.id)
        field, what = message.match[0], f"member of value set '{value_set.name}'"
        entity = p4runtime_pb2.Entity()
        entity.value_set_entry.value_set_id = value_set.id
        for member in members:
            match = entity.value_set_entry.members.add().match.add(field_id=field.id)
            match.exact.value = codec.encode(codec.to_int(member, field.bitwidth, what))
        self._update("modify", entity, f"value set {value_set.name}")

    def write_register(self, name: str, index: int | None, value: Value) -> None:
        """Set a cell of a register, or with ``index=None`` all of them.

        A struct is given as one number, its first member in the highest bits.
        """
        register = self.p4info.registers[name]
        types = self.p4info.message.type_info
        number = codec.to_int(value, p4data.width_of(register.type_spec, types), f"register '{register.name}'")
        entity = p4runtime_pb2.Entity(register_entry={"register_id": register.id, "index": _cell(index)})
        entity.register_entry.data.CopyFrom(p4data.to_p4data(register.type_spec, types, number))
        self._update("modify", entity, f"register {register.name}[{'*' if index is None else index}]")

    def write_counter(self, name: str, index: int | None, packets: int = 0, bytes: int = 0) -> None:
        """Set a cell of a counter, or with ``index=None`` all cells, to ``packets`` and ``bytes``."""
        counter = self.p4info.counters[name]
        cell = {"counter_id": counter.id, "index": _cell(index), "data": _counts(packets, bytes)}
        entity = p4runtime_pb2.Entity(counter_entry=cell)
        self._update("modify", entity, f"counter {counter.name}[{'*' if index is None else index}]")

    def write_direct_counter(
        self,
        table: str,
        match: Mapping[str, Value | Pair],
        priority: int | None = None,
        packets: int = 0,
        bytes: int = 0,
    ) -> None:
        """Set the direct counter of a table's entry to ``packets`` and ``bytes``."""
        info = self.p4info.tables[table]
        entity = p4runtime_pb2.Entity(direct_counter_entry={"data": _counts(packets, bytes)})
        fill_key(entity.direct_counter_entry.table_entry, info, match, priority)
        self._update("modify", entity, f"direct counter of {info.name} {describe(match, priority)}")

    def enable_digest(
        self,
        name: str,
        *,
        max_timeout_ns: int = 0,
        max_list_size: int = 1,
        ack_timeout_ns: int = 0,
        verb: Literal["insert", "modify"] = "insert",
    ) -> None:
        """Enable the sending of digests of this name; by default each is sent alone, and need not be acknowledged.

        ``verb="modify"`` configures a digest that is enabled.
        """
        config = {
            "max_timeout_ns": int64(max_timeout_ns, "max_timeout_ns"),
            "max_list_size": uint(max_list_size, 31, "max_list_size"),
            "ack_timeout_ns": int64(ack_timeout_ns, "ack_timeout_ns"),
        }
        self._update(verb, self._digest_entity(name, config=config), f"digest {self.p4info.digests[name].name}")

    def disable_digest(self, name: str) -> None:
        """Disable the sending of digests of this name."""
        self._update("delete", self._digest_entity(name), f"digest {self.p4info.digests[name].name}")

    def _digest_entity(self, name: str, **more: Any) -> Proto:
        return p4runtime_pb2.Entity(digest_entry={"digest_id": self.p4info.digests[name].id, **more})

    # ---- Reading ----

    def read_table(
        self, table: str, match: Mapping[str, Value | Pair] | None = None, priority: int | None = None
    ) -> list[Entry]:
        """Read the entries of a table, or those with this match key, with direct counters if there are any."""
        info = self.p4info.tables[table]
        entity = p4runtime_pb2.Entity()
        if match:
            fill_key(entity.table_entry, info, match, priority)
        else:
            entity.table_entry.table_id = info.id
            entity.table_entry.priority = uint(priority or 0, 31, "priority")
        if info.direct_counter_id:
            entity.table_entry.counter_data.SetInParent()
        if info.direct_meter_id:
            entity.table_entry.meter_config.SetInParent()
        return [read_entry(self.p4info, info, e.table_entry) for e in self._read(entity)]

    def read_default(self, table: str) -> Entry:
        """Read the action that a table runs when no entry matches."""
        info = self.p4info.tables[table]
        entity = p4runtime_pb2.Entity(table_entry={"table_id": info.id, "is_default_action": True})
        return next(read_entry(self.p4info, info, e.table_entry) for e in self._read(entity))

    def profile_members(self, profile: str) -> dict[int, tuple[str, dict[str, int | str]]]:
        """Read the members of an action profile or selector: action and parameters by the member's id."""
        info = self.p4info.action_profiles[profile]
        entity = p4runtime_pb2.Entity(action_profile_member={"action_profile_id": info.id})
        members = (e.action_profile_member for e in self._read(entity))
        return {member.member_id: read_action(self.p4info, member.action) for member in members}

    def profile_groups(self, profile: str) -> dict[int, tuple[dict[int, int], dict[int, int], int]]:
        """Read the groups of an action selector, by id: weights by member, watched ports by member, and the largest size."""
        info = self.p4info.action_profiles[profile]
        entity = p4runtime_pb2.Entity(action_profile_group={"action_profile_id": info.id})
        groups = (e.action_profile_group for e in self._read(entity))
        return {
            group.group_id: (
                {member.member_id: member.weight for member in group.members},
                {m.member_id: int.from_bytes(m.watch_port, "big") for m in group.members if m.watch_port},
                group.max_size,
            )
            for group in groups
        }

    def digest_settings(self, name: str) -> tuple[int, int, int] | None:
        """Read the configuration of a digest, (max_timeout_ns, max_list_size, ack_timeout_ns); None if it is not enabled."""
        wanted = self.p4info.digests[name].id
        for found in self._read(p4runtime_pb2.Entity(digest_entry={})):
            if found.digest_entry.digest_id == wanted:
                config = found.digest_entry.config
                return config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns
        return None

    def counters(self, name: str, index: int | None = None) -> dict[int, tuple[int, int]]:
        """Read a counter's cells, or one of them. Returns (packets, bytes) by index."""
        cell = {"counter_id": self.p4info.counters[name].id, "index": _cell(index)}
        entity = p4runtime_pb2.Entity(counter_entry=cell)
        cells = (e.counter_entry for e in self._read(entity))
        return {cell.index.index: (cell.data.packet_count, cell.data.byte_count) for cell in cells}

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """Read one cell of a counter. Returns (packets, bytes)."""
        return self.counters(name, index)[index]

    def direct_counter(
        self, table: str, match: Mapping[str, Value | Pair], priority: int | None = None
    ) -> tuple[int, int]:
        """Read the direct counter of the entry with this key as (packets, bytes). Raises NOT_FOUND if there is no such entry."""
        info = self.p4info.tables[table]
        entity = p4runtime_pb2.Entity()
        key = entity.direct_counter_entry.table_entry
        fill_key(key, info, match, priority)
        for found in self._read(entity):
            entry = found.direct_counter_entry
            if len(entry.table_entry.match) == len(key.match):  # an empty key reads all entries
                return entry.data.packet_count, entry.data.byte_count
        raise P4RuntimeError("NOT_FOUND", f"table '{info.name}' has no entry {describe(match, priority)}")

    def registers(self, name: str, index: int | None = None) -> dict[int, int]:
        """Read a register's cells, or one of them. Returns numbers by index; a struct's first member is in the highest bits."""
        return self._cells(name, [index])

    def register_cells(self, name: str, indices: Iterable[int]) -> dict[int, int]:
        """Read the cells of a register with these indices, in few requests. Returns numbers by index, as :meth:`registers` does."""
        wanted = list(indices)
        found: dict[int, int] = {}
        for first in range(0, len(wanted), MAX_READ_ENTITIES):
            found |= self._cells(name, wanted[first : first + MAX_READ_ENTITIES])
        return found

    def _cells(self, name: str, indices: Sequence[int | None]) -> dict[int, int]:
        register = self.p4info.registers[name]
        entities = [
            p4runtime_pb2.Entity(register_entry={"register_id": register.id, "index": _cell(index)})
            for index in indices
        ]
        types = self.p4info.message.type_info
        cells = (e.register_entry for e in self._read(*entities))
        return {cell.index.index: p4data.from_p4data(register.type_spec, types, cell.data) for cell in cells}

    def register(self, name: str, index: int) -> int:
        """Read one cell of a register as a number."""
        return self.registers(name, index)[index]

    def value_set(self, name: str) -> list[int]:
        """Read the members of a parser value set of one exact field."""
        entity = p4runtime_pb2.Entity()
        entity.value_set_entry.value_set_id = self.p4info.value_sets[name].id
        members = (member for found in self._read(entity) for member in found.value_set_entry.members)
        return [int.from_bytes(member.match[0].exact.value, "big") for member in members]

    def multicast_groups(self) -> dict[int, list[tuple[int, int]]]:
        """Read the multicast groups: (egress port, instance) of each replica, by the group's id."""
        entity = p4runtime_pb2.Entity()
        entity.packet_replication_engine_entry.multicast_group_entry.SetInParent()
        groups = (e.packet_replication_engine_entry.multicast_group_entry for e in self._read(entity))
        return {g.multicast_group_id: read_replicas(g) for g in groups}

    def clone_sessions(self) -> dict[int, list[tuple[int, int]]]:
        """Read the clone sessions: (egress port, instance) of each replica, by the session's id."""
        return {number: replicas for number, (replicas, *_) in self.clone_session_settings().items()}

    def clone_session_settings(self) -> dict[int, tuple[list[tuple[int, int]], int, int]]:
        """Read the clone sessions: replicas, length in bytes that clones are truncated to, and class of service, by id."""
        entity = p4runtime_pb2.Entity()
        entity.packet_replication_engine_entry.clone_session_entry.SetInParent()
        sessions = (e.packet_replication_engine_entry.clone_session_entry for e in self._read(entity))
        return {s.session_id: (read_replicas(s), s.packet_length_bytes, s.class_of_service) for s in sessions}


class LocalClient(Client):
    """A client in the same process, without a socket.

    Calls and events are synchronous, so it also works in virtual time.
    """

    def __init__(self, device: Device, election_id: int = 1, role: str = "") -> None:
        super().__init__(device.device_id, election_id, role)
        self._device = device
        self._events: deque[Event] = deque()
        self._session = device.open(self._receive)
        self.arbitrate()

    def _call_write(self, request: bytes) -> None:
        self._device.write_serialized(request)

    def _call_read(self, request: Proto) -> Iterable[Proto]:
        return self._device.read(request)

    def _call_set_pipeline(self, request: Proto) -> None:
        self._device.set_forwarding_pipeline_config(request)

    def _call_get_pipeline(self, request: Proto) -> Proto:
        return self._device.get_forwarding_pipeline_config(request)

    def _call_capabilities(self, request: Proto) -> Proto:
        return self._device.capabilities(request)

    def _send(self, message: bytes) -> None:
        self._device.handle(self._session, p4runtime_pb2.StreamMessageRequest.FromString(message))

    def _put(self, event: Event) -> None:
        self._events.append(event)

    def poll(self, timeout_s: float = 0.0) -> Event | None:
        """Return the next event, or None. The timeout is ignored, as no event can come from elsewhere."""
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        """End the session with the device. If this client was the primary, its role then has no primary."""
        self._device.close(self._session)
        if self.arbitration is not None:
            self.arbitration = Arbitration(False, "NOT_FOUND", self.arbitration.election_id)


class GrpcClient(Client):
    """A client over gRPC: with TLS ``credentials``, or plaintext over loopback or if asked with ``insecure=True``.

    The session is open, and the device's first word on who is the primary is known, when the constructor returns.
    ``batches``: with a server that knows :mod:`.stream_batches`, packets that wait travel in one message.
    """

    def __init__(
        self,
        address: str,
        device_id: int = 1,
        election_id: int = 1,
        role: str = "",
        *,
        credentials: grpc.ChannelCredentials | None = None,
        insecure: bool = False,
        timeout_s: float = 30.0,
        batches: bool = False,
    ) -> None:
        super().__init__(device_id, election_id, role)
        check(address)
        if credentials is None and not insecure and not is_loopback(address):
            raise invalid_argument(
                f"{address} is not loopback: give TLS credentials, or ask for plaintext with insecure=True"
            )
        options = [
            ("grpc.max_metadata_size", _METADATA_BYTES),
            ("grpc.absolute_max_metadata_size", _METADATA_BYTES),
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
        ]
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options=options)
        self._timeout_s = timeout_s
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        # As the stub's, for requests that are serialized already.
        self._write = self._channel.unary_unary(
            "/p4.v1.P4Runtime/Write", response_deserializer=p4runtime_pb2.WriteResponse.FromString
        )
        open_stream = self._channel.stream_stream(
            "/p4.v1.P4Runtime/StreamChannel", response_deserializer=p4runtime_pb2.StreamMessageResponse.FromString
        )
        self._answered = threading.Event()
        self._ended: P4RuntimeError | None = None
        self._closed = False
        self.on_end: Callable[[], None] | None = None
        """Called, in the thread that receives, when the stream has ended."""
        self._batched = False
        """Whether the server has said that it takes several messages in one."""
        self._stream = open_stream(self._outgoing())
        self._reader = threading.Thread(target=self._read_stream, daemon=True, name="p4runtime-client")
        self._reader.start()
        self.arbitrate()
        answered = self._answered.wait(min(timeout_s, _HANDSHAKE_S))
        if self._ended is not None or not answered:
            error = self._ended or P4RuntimeError("DEADLINE_EXCEEDED", f"{address} did not answer")
            self.close()
            raise error
        if batches:
            self._send(stream_batches.request())

    @property
    def ended(self) -> bool:
        """True if the stream has ended, as when the server stops."""
        return self._ended is not None

    def _outgoing(self) -> Iterator[bytes]:
        """Yield the serialized messages to the server, in gRPC's thread.

        Waiting messages are sent as one batch if the server allows.
        """
        while (first := self._requests.get()) is not None:
            if not self._batched or self._requests.empty():
                yield first
                continue
            batch, size = [first], len(first)
            last = False
            while len(batch) < stream_batches.MOST_MESSAGES and size < stream_batches.MOST_BYTES:
                try:
                    item = self._requests.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    last = True
                    break
                batch.append(item)
                size += len(item)
            yield stream_batches.request(batch)
            if last:
                return

    def _read_stream(self) -> None:
        try:
            for message in self._stream:
                if stream_batches.is_batch(message):
                    self._batched = True
                    for each in stream_batches.messages_of(message):
                        self._take(p4runtime_pb2.StreamMessageResponse.FromString(each))
                elif not stream_batches.refuses(message):
                    self._take(message)
                self._answered.set()
            self._ended = P4RuntimeError("UNAVAILABLE", "the server closed the stream")
        except grpc.RpcError as e:
            self._ended = _from_rpc_error(e)
        except DecodeError:
            self._ended = P4RuntimeError("DATA_LOSS", "the server sent what is no message of a stream")
            self._stream.cancel()
        if self.arbitration is not None:
            self.arbitration = Arbitration(False, "NOT_FOUND", self.arbitration.election_id)
        self._answered.set()
        self._events.put(None)
        if self.on_end is not None:
            self.on_end()

    def _take(self, message: Proto) -> None:
        try:
            self._receive(message)
        except P4RuntimeError as e:  # of a pipeline that we do not know any more
            self._put(StreamError(e.code, e.message))

    def _call(self, method: Any, request: Proto) -> Any:
        try:
            return method(request, timeout=self._timeout_s, metadata=_CALL_METADATA)
        except grpc.RpcError as e:
            raise _from_rpc_error(e) from None

    def _call_write(self, request: bytes) -> None:
        self._call(self._write, request)

    def _call_read(self, request: Proto) -> Iterable[Proto]:
        try:
            yield from self._stub.Read(request, timeout=self._timeout_s, metadata=_CALL_METADATA)
        except grpc.RpcError as e:
            raise _from_rpc_error(e) from None

    def _call_set_pipeline(self, request: Proto) -> None:
        self._call(self._stub.SetForwardingPipelineConfig, request)

    def _call_get_pipeline(self, request: Proto) -> Proto:
        return self._call(self._stub.GetForwardingPipelineConfig, request)

    def _call_capabilities(self, request: Proto) -> Proto:
        return self._call(self._stub.Capabilities, request)

    def _send(self, message: bytes) -> None:
        if self._ended is not None:
            raise self._ended
        self._requests.put(message)

    def _put(self, event: Event) -> None:
        self._events.put(event)

    def poll(self, timeout_s: float = 0.0) -> Event | None:
        """Return the next event, or None if none comes within ``timeout_s`` seconds.

        Raises :class:`P4RuntimeError` when the stream has ended and all events are read.
        """
        try:
            event = self._events.get(timeout=timeout_s) if timeout_s > 0 else self._events.get_nowait()
        except queue.Empty:
            return None
        if event is None:
            self._events.put(None)  # for the next caller
            raise self._ended or P4RuntimeError("UNAVAILABLE", "the stream has ended")
        return event

    def close(self) -> None:
        """End the session and close the channel. Afterwards the election id is free, unless the server does not answer."""
        if self._closed:
            return
        self._closed = True
        self._requests.put(None)
        self._reader.join(timeout=_FAREWELL_S)
        self._stream.cancel()
        self._reader.join(timeout=5.0)
        self._channel.close()
        # Its destructor takes a lock of gRPC's threads. At the end of the process, one that has been stopped may hold it for ever.
        del self._stream


def _cell(index: int | None) -> dict[str, int] | None:
    """Return the fields of an ``Index`` message for the cell ``index``; None, which means all cells, if ``index`` is None."""
    return None if index is None else {"index": int64(index, "index")}


def _counts(packets: int, bytes: int) -> dict[str, int]:
    return {"packet_count": int64(packets, "packets"), "byte_count": int64(bytes, "bytes")}


def _from_rpc_error(error: grpc.RpcError) -> P4RuntimeError:
    """Convert an error of gRPC to a :class:`P4RuntimeError`.

    The details in ``grpc-status-details-bin`` are used if there are any, else code and message.
    """
    call: Any = error
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status()
            try:
                status.ParseFromString(value)
            except DecodeError:  # then the plain status is as good as it gets
                break
            return from_status(status)
    return P4RuntimeError(call.code().name, call.details() or "")
