"""Random messages from the protocol's own descriptors, often with ids of a program, so that they pass the first check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor

from holdfast.p4runtime import P4InfoIndex

Ids: TypeAlias = Mapping[str, Sequence[int]]
"""Ids by the name of the field that holds them."""


def ids_of(index: P4InfoIndex) -> Ids:
    return {
        "table_id": [t.id for t in index.tables],
        "action_id": [a.id for a in index.actions],
        "action_profile_id": [p.id for p in index.action_profiles],
        "counter_id": [c.id for c in index.counters],
        "meter_id": [m.id for m in index.meters],
        "value_set_id": [v.id for v in index.value_sets],
        "register_id": [r.id for r in index.registers],
        "digest_id": [d.id for d in index.digests],
    }


def message_of(random: Random, kind: Any, ids: Ids, depth: int = 0) -> Any:
    """Return a message of class ``kind`` with random content; in a oneof, the field that was set last remains."""
    message = kind()
    if kind.DESCRIPTOR.full_name.startswith("google.protobuf"):
        return message
    for field in random.sample(list(kind.DESCRIPTOR.fields), len(kind.DESCRIPTOR.fields)):
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map or random.random() < (0.3 if depth else 0.1):
            continue
        for _ in range(random.randrange(4) if field.is_repeated else 1):
            value = value_of(random, field, ids, depth)
            if value is None:
                continue
            if field.is_repeated:
                getattr(message, field.name).append(value)
            elif field.message_type is not None:
                getattr(message, field.name).CopyFrom(value)
            else:
                setattr(message, field.name, value)
    return message


def value_of(random: Random, field: Any, ids: Ids, depth: int) -> Any:
    if field.message_type is not None:
        return message_of(random, field.message_type._concrete_class, ids, depth + 1) if depth < 7 else None
    if field.type == FieldDescriptor.TYPE_BYTES:
        return random.choice([b"", b"\0", b"\1", b"\x0a\0\0\0", random.randbytes(random.randrange(9))])
    if field.type == FieldDescriptor.TYPE_STRING:
        return random.choice(["", "a", "learn_t", "packet_in"])
    if field.type == FieldDescriptor.TYPE_BOOL:
        return random.random() < 0.5
    if field.type == FieldDescriptor.TYPE_ENUM:
        return random.randrange(5)
    bits = 64 if field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64) else 32
    signed = field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)
    choices = [random.randrange(5), random.randrange(40), random.randrange(1 << (bits - signed))]
    if signed:
        choices.append(-random.randrange(1 << (bits - 1)))
    if ids.get(field.name):
        choices += [random.choice(ids[field.name])] * 12
    return random.choice(choices)
