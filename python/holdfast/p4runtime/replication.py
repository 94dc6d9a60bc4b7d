"""Multicast groups and clone sessions between P4Runtime messages and the core.

Specification: "PacketReplicationEngineEntry".

Ports are v1model's: 9 bits, not translated. The deprecated numeric port field is taken too, and given back to who used
it.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast._core import CloneSession, MulticastGroup
from holdfast.p4runtime import codec
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, unimplemented
from holdfast.p4runtime.stubs import Proto, p4runtime_pb2

PORT_BITS = 9
INSTANCE_BITS = 16  # egress_rid
GROUP_BITS = 16  # mcast_grp
CLASS_BITS = 3  # priority

Replicas = list[tuple[int, int]]


def group_from_message(message: Proto, *, key_only: bool = False) -> MulticastGroup:
    """The core's group of a ``MulticastGroupEntry``."""
    group_id = message.multicast_group_id
    what = f"multicast group {group_id}"
    if not 0 < group_id <= codec.all_ones(GROUP_BITS):
        raise invalid_argument(f"{what}: the id is not between 1 and {codec.all_ones(GROUP_BITS)}")
    if key_only:
        return MulticastGroup(group_id)
    replicas = replicas_from_messages(message.replicas, what)
    if len(set(replicas)) != len(replicas):
        raise invalid_argument(f"{what}: two replicas have the same port and instance")
    return MulticastGroup(group_id, replicas)


def session_from_message(message: Proto, *, key_only: bool = False) -> CloneSession:
    """The core's session of a ``CloneSessionEntry``."""
    what = f"clone session {message.session_id}"
    if message.session_id == 0:
        raise invalid_argument("clone session: the id is not zero in a write")
    if key_only:
        return CloneSession(message.session_id)
    if message.class_of_service > codec.all_ones(CLASS_BITS):
        raise invalid_argument(
            f"{what}: class of service {message.class_of_service} is above {codec.all_ones(CLASS_BITS)}"
        )
    if message.packet_length_bytes < 0:
        raise invalid_argument(f"{what}: packet length {message.packet_length_bytes} bytes is negative")
    replicas = replicas_from_messages(message.replicas, what)
    return CloneSession(message.session_id, replicas, message.packet_length_bytes, message.class_of_service)


def replicas_from_messages(messages: Iterable[Proto], what: str) -> Replicas:
    """(port, instance) of each ``Replica``."""
    replicas = []
    for message in messages:
        if message.backup_replicas:
            raise unimplemented(f"{what}: backup replicas are not supported")
        kind = message.WhichOneof("port_kind")
        if kind is None:
            raise invalid_argument(f"{what}: a replica has no port")
        if kind == "port":
            port = codec.decode(message.port, PORT_BITS, f"{what}: port")
        elif message.egress_port > codec.all_ones(PORT_BITS):
            raise P4RuntimeError(
                "OUT_OF_RANGE", f"{what}: port {message.egress_port} does not fit into {PORT_BITS} bits"
            )
        else:
            port = message.egress_port
        if message.instance > codec.all_ones(INSTANCE_BITS):
            raise invalid_argument(f"{what}: instance {message.instance} is above {codec.all_ones(INSTANCE_BITS)}")
        replicas.append((port, message.instance))
    return replicas


def numeric_ports(messages: Iterable[Proto]) -> frozenset[tuple[int, int]]:
    """The replicas that were given with the deprecated numeric port."""
    return frozenset((m.egress_port, m.instance) for m in messages if m.WhichOneof("port_kind") == "egress_port")


def _fill(target: Proto, replicas: Iterable[tuple[int, int]], numeric: frozenset[tuple[int, int]]) -> None:
    for port, instance in replicas:
        replica = target.replicas.add(instance=instance)
        if (port, instance) in numeric:
            replica.egress_port = port
        else:
            replica.port = codec.encode(port)


def group_message(group: MulticastGroup, numeric: frozenset[tuple[int, int]], metadata: bytes) -> Proto:
    """``Entity`` with a ``MulticastGroupEntry``."""
    entity = p4runtime_pb2.Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = group.group_id
    entry.metadata = metadata
    _fill(entry, group.replicas, numeric)
    return entity


def session_message(session: CloneSession, numeric: frozenset[tuple[int, int]]) -> Proto:
    """``Entity`` with a ``CloneSessionEntry``."""
    entity = p4runtime_pb2.Entity()
    entry = entity.packet_replication_engine_entry.clone_session_entry
    entry.session_id = session.session_id
    entry.class_of_service = session.class_of_service
    entry.packet_length_bytes = session.packet_length_bytes
    _fill(entry, session.replicas, numeric)
    return entity
