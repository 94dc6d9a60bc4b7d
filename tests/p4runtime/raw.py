"""P4Runtime messages for tests, built without the client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.p4runtime import Device, P4InfoIndex, P4RuntimeError, UpdateFailure
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

INSERT, MODIFY, DELETE = p4.Update.INSERT, p4.Update.MODIFY, p4.Update.DELETE


def lpm(field: int, value: bytes, length: int) -> Any:
    return p4.FieldMatch(field_id=field, lpm=p4.FieldMatch.LPM(value=value, prefix_len=length))


def exact(field: int, value: bytes) -> Any:
    return p4.FieldMatch(field_id=field, exact=p4.FieldMatch.Exact(value=value))


def ternary(field: int, value: bytes, mask: bytes) -> Any:
    return p4.FieldMatch(field_id=field, ternary=p4.FieldMatch.Ternary(value=value, mask=mask))


def range_(field: int, low: bytes, high: bytes) -> Any:
    return p4.FieldMatch(field_id=field, range=p4.FieldMatch.Range(low=low, high=high))


def optional(field: int, value: bytes) -> Any:
    return p4.FieldMatch(field_id=field, optional=p4.FieldMatch.Optional(value=value))


class Raw:
    """Messages for one program."""

    def __init__(self, index: P4InfoIndex) -> None:
        self.index = index

    def action(self, name: str, *values: bytes) -> Any:
        action = self.index.actions[name]
        message = p4.TableAction()
        message.action.action_id = action.id
        for param, value in zip(action.params, values, strict=True):
            message.action.params.add(param_id=param.id, value=value)
        return message

    def entry(self, table: str, matches: Iterable[Any] = (), action: Any = None, **fields: Any) -> Any:
        return p4.TableEntry(table_id=self.index.tables[table].id, match=matches, action=action, **fields)

    def route(self, prefix: bytes = b"\x0a\0\0\0", length: int = 8, port: bytes = b"\x01", **fields: Any) -> Any:
        """Return an entry of table ``ipv4_lpm`` for a prefix that forwards to ``port``."""
        return self.entry("ipv4_lpm", [lpm(1, prefix, length)], self.action("forward", port, b"\x02"), **fields)


def update(kind: int, **entity: Any) -> Any:
    return p4.Update(type=kind, entity=p4.Entity(**entity))


def group(id: int, replicas: Iterable[Any] = (), **fields: Any) -> Any:
    entry = p4.MulticastGroupEntry(multicast_group_id=id, replicas=replicas, **fields)
    return p4.PacketReplicationEngineEntry(multicast_group_entry=entry)


def session(id: int, replicas: Iterable[Any] = (), **fields: Any) -> Any:
    entry = p4.CloneSessionEntry(session_id=id, replicas=replicas, **fields)
    return p4.PacketReplicationEngineEntry(clone_session_entry=entry)


def request(*updates: Any, atomicity: int = 0, election_id: int | None = 1, device_id: int = 1, role: str = "") -> Any:
    message = p4.WriteRequest(device_id=device_id, updates=updates, atomicity=atomicity, role=role)
    if election_id is not None:
        message.election_id.high = election_id >> 64
        message.election_id.low = election_id & (1 << 64) - 1
    return message


def write(device: Device, *updates: Any, atomicity: int = 0) -> None:
    device.write(request(*updates, atomicity=atomicity))


def failures(device: Device, *updates: Any, atomicity: int = 0) -> list[UpdateFailure]:
    """Write updates and return their failures; the list is empty if all were accepted."""
    try:
        write(device, *updates, atomicity=atomicity)
    except P4RuntimeError as e:
        assert e.code == "UNKNOWN"
        assert e.batch_size == len(updates)
        return list(e.failures)
    return []


def read(device: Device, **entity: Any) -> list[Any]:
    """Return the entities that a Read of one entity returns."""
    wanted = p4.ReadRequest(device_id=1, entities=[p4.Entity(**entity)])
    return [e for response in device.read(wanted) for e in response.entities]


def read_entries(device: Device, entry: Any) -> list[Any]:
    return [e.table_entry for e in read(device, table_entry=entry)]
