"""What BMv2's JSON says of a program's objects, made of its P4Info: tables, actions, action profiles, counters, meters, registers.

Clients of BMv2's Thrift interface read names, widths and kinds of matches from it. It has no parsers, expressions and conditions,
so no switch can run it.
"""

from __future__ import annotations

from typing import Any

from holdfast.bmv2.runtime_commands import MATCHES
from holdfast.p4runtime.stubs import Proto, p4info_pb2

_RATES = 2
"""The rates of a meter: committed and peak."""


def described(p4info: Proto) -> dict[str, Any]:
    """Return the JSON object of a program with this P4Info."""
    actions = {action.preamble.id: action for action in p4info.actions}
    profiles = {profile.preamble.id: profile for profile in p4info.action_profiles}
    fields = [_target(field.name) for table in p4info.tables for field in table.match_fields]
    widths = [field.bitwidth for table in p4info.tables for field in table.match_fields]
    headers: dict[str, dict[str, int]] = {}
    for (header, name), width in zip(fields, widths, strict=True):
        headers.setdefault(header, {})[name] = width
    blocks: dict[str, list[Proto]] = {}
    for table in p4info.tables:
        blocks.setdefault(table.preamble.name.partition(".")[0], []).append(table)
    return {
        "program": p4info.pkg_info.name,
        "header_types": [
            {"name": f"{header}_t", "id": at, "fields": [[name, width, False] for name, width in members.items()]}
            for at, (header, members) in enumerate(headers.items())
        ],
        "headers": [
            {"name": header, "id": at, "header_type": f"{header}_t", "metadata": False, "pi_omit": True}
            for at, header in enumerate(headers)
        ],
        "actions": [
            {
                "name": action.preamble.name,
                "id": action.preamble.id,
                "runtime_data": [{"name": param.name, "bitwidth": param.bitwidth} for param in action.params],
                "primitives": [],
            }
            for action in p4info.actions
        ],
        "pipelines": [
            {
                "name": block,
                "id": at,
                "source_info": {"source_fragment": block},
                "tables": [_table(table, actions, profiles) for table in tables],
                "action_profiles": [
                    _profile(profile)
                    for profile in p4info.action_profiles
                    if {table.preamble.id for table in tables} & set(profile.table_ids)
                ],
            }
            for at, (block, tables) in enumerate(blocks.items())
        ],
        "counter_arrays": [
            *({**_named(counter), "is_direct": False, "size": counter.size} for counter in p4info.counters),
            *(
                {**_named(counter), "is_direct": True, "binding": _table_name(p4info, counter.direct_table_id)}
                for counter in p4info.direct_counters
            ),
        ],
        "meter_arrays": [
            *({**_meter(meter), "is_direct": False, "size": meter.size} for meter in p4info.meters),
            *(
                {**_meter(meter), "is_direct": True, "binding": _table_name(p4info, meter.direct_table_id)}
                for meter in p4info.direct_meters
            ),
        ],
        "register_arrays": [
            {**_named(register), "size": register.size, "bitwidth": _width(register.type_spec)}
            for register in p4info.registers
        ],
        "parse_vsets": [
            {**_named(values), "compressed_bitwidth": sum(field.bitwidth for field in values.match)}
            for values in p4info.value_sets
        ],
        "calculations": [],
        "learn_lists": [{**_named(digest), "elements": []} for digest in p4info.digests],
        "field_lists": [],
    }


def _named(it: Proto) -> dict[str, Any]:
    return {"name": it.preamble.name, "id": it.preamble.id}


def _meter(meter: Proto) -> dict[str, Any]:
    kind = "bytes" if meter.spec.unit == p4info_pb2.MeterSpec.BYTES else "packets"
    return {**_named(meter), "type": kind, "rate_count": _RATES}


def _profile(profile: Proto) -> dict[str, Any]:
    more = {"selector": {"algo": "crc16", "input": []}} if profile.with_selector else {}
    return {**_named(profile), "max_size": profile.size, **more}


def _table_name(p4info: Proto, table: int) -> str:
    return next((it.preamble.name for it in p4info.tables if it.preamble.id == table), "")


def _target(field: str) -> tuple[str, str]:
    """Return header and field of a key as BMv2 has them: without the name of the structure around headers."""
    header, _, name = field.rpartition(".")
    return header.partition(".")[2] or header or "scalars", name


def _width(type_spec: Proto) -> int:
    """Return the width of a register's cells, 0 if they are no numbers."""
    kind = type_spec.bitstring.WhichOneof("type_spec")
    return int(getattr(type_spec.bitstring, kind).bitwidth) if kind in ("bit", "int") else 0


def _table(table: Proto, actions: dict[int, Proto], profiles: dict[int, Proto]) -> dict[str, Any]:
    kinds = [p4info_pb2.MatchField.MatchType.Name(field.match_type).lower() for field in table.match_fields]
    shown = [MATCHES.get(kind, "exact") for kind in kinds]
    # The kind of a table is that of its field that asks for most.
    whole = next((kind for kind in ("range", "ternary", "lpm") if kind in shown), "exact")
    refs = [ref.id for ref in table.action_refs]
    profile = profiles.get(table.implementation_id)
    made: dict[str, Any] = {
        **_named(table),
        "match_type": whole,
        "type": "simple" if profile is None else "indirect_ws" if profile.with_selector else "indirect",
        "max_size": table.size,
        "with_counters": any(True for ref in table.direct_resource_ids if ref >> 24 == p4info_pb2.P4Ids.DIRECT_COUNTER),
        "support_timeout": table.idle_timeout_behavior == p4info_pb2.Table.NOTIFY_CONTROL,
        "direct_meters": None,
        "key": [
            {"match_type": kind, "name": field.name, "target": list(_target(field.name)), "mask": None}
            for kind, field in zip(shown, table.match_fields, strict=True)
        ],
        "action_ids": refs,
        "actions": [actions[ref].preamble.name for ref in refs],
    }
    if profile is not None:
        made["action_profile"] = made["act_prof_name"] = profile.preamble.name
    return made


__all__ = ["described"]
