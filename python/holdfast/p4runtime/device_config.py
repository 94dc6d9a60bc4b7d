"""The device config of a pipeline: a compiled program, by itself or in the message in which BMv2's clients send theirs.

That message is ``p4.tmp.P4DeviceConfig`` (p4runtime, ``p4/tmp/p4config.proto``): a flag, key-value pairs, and the bytes themselves.
A device takes the bytes; flag and pairs are BMv2's.
"""

from __future__ import annotations

import json

from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument

ARTIFACT_BEGINS = b"holdfast_ir "
"""The first bytes of every compiled program."""

_DEVICE_DATA = 3
_FIELDS = {1: 0, 2: 2, _DEVICE_DATA: 2}
"""The wire types of the fields of BMv2's device config: ``reassign``, ``extras``, ``device_data``."""

_MOST_JSON_BYTES = 64 << 20


def artifact(config: bytes) -> bytes:
    """Return the compiled program in a device config.

    Raises INVALID_ARGUMENT for a program that BMv2's compiler made. Other bytes are returned as they are, for the loader to refuse.
    """
    if config.startswith(ARTIFACT_BEGINS):
        return config
    data = _device_data(config) or config
    if _is_bmv2(data):
        raise bmv2_refused()
    return data


def bmv2_refused() -> P4RuntimeError:
    """Return the error for a program in BMv2's JSON; its message says how to make a program that can be pushed."""
    return invalid_argument(
        "p4_device_config is BMv2's JSON, which p4c wrote: push what 'holdfast compile' or 'holdfast p4c' writes of the same "
        "source ('holdfast shims DIR' makes a p4c for PATH that writes it in the JSON's place)"
    )


def _device_data(config: bytes) -> bytes | None:
    """Return the field ``device_data`` of a ``P4DeviceConfig``, or None if the bytes are no such message."""
    at, data = 0, None
    while at < len(config):
        tag, at = _varint(config, at)
        field, wire = tag >> 3, tag & 7
        if _FIELDS.get(field) != wire:
            return None
        size, at = _varint(config, at)
        if wire == 2:
            if len(config) - at < size:
                return None
            if field == _DEVICE_DATA:
                data = config[at : at + size]
            at += size
    return data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint at ``at`` and the position after it. For one that is cut off or too long, return the number of no field."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    return 1 << 70, at


def _is_bmv2(data: bytes) -> bool:
    """Return True if the bytes are a JSON object with the parts of a program of BMv2."""
    if data.lstrip()[:1] != b"{" or len(data) > _MOST_JSON_BYTES:
        return False
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"parsers", "pipelines"} <= found.keys()


__all__ = ["ARTIFACT_BEGINS", "artifact", "bmv2_refused"]
