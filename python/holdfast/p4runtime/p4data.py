"""``P4Data``: values of the program's types, as registers and digests carry them.

The core knows only flat bit strings; P4Info's type specification says how to cut them (specification, section
"Representation of Arbitrary P4 Types"). Supported: ``bit``, ``int``, ``bool``, structs and tuples of supported types, enums,
errors, and types introduced by ``type``. Headers, stacks, unions and varbit are UNIMPLEMENTED. An enum without a
representation, or an error, is the position of its name here, and a string in ``P4Data``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeAlias

from holdfast.p4runtime import codec
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, unimplemented
from holdfast.p4runtime.p4info import MAX_WIDTH
from holdfast.p4runtime.stubs import Proto, p4data_pb2

Plain: TypeAlias = "int | bool | str | dict[str, Plain] | list[Plain]"
"""A value in Python's own types: structs are dictionaries of members by name, tuples are lists."""

# P4Info comes from outside: its types may contain themselves, or double with every level.
_MAX_DEPTH = 32
_MAX_PARTS = 4096
_NAME_WIDTH = 32
"""The width in bits of the number that stands for an enumeration member or error without an underlying type: its
position."""


def _bits(spec: Proto) -> tuple[str, int]:
    """Return kind ("bit" or "int") and width of a ``P4BitstringLikeTypeSpec``. Raises UNIMPLEMENTED for "varbit"."""
    kind = spec.WhichOneof("type_spec")
    if kind not in ("bit", "int"):
        raise unimplemented(f"values of type {kind or 'unknown'} are not supported")
    return kind, _checked_width(getattr(spec, kind).bitwidth)


def _checked_width(width: int) -> int:
    if not 0 < width <= MAX_WIDTH:
        raise invalid_argument(f"P4Info: a type has {width} bits; 1 to {MAX_WIDTH} are supported")
    return width


def _resolve(spec: Proto, types: Proto, depth: int) -> tuple[str, Proto]:
    """Return the kind and the specification of a type; the names of structs, headers and enums are looked up in ``types``.

    ``depth``: how many types this one is nested in. Raises INVALID_ARGUMENT if that is too deep or a name is unknown, UNIMPLEMENTED
    for types that are not supported.
    """
    if depth > _MAX_DEPTH:
        raise invalid_argument("P4Info: types are nested too deeply, or in themselves")
    kind = spec.WhichOneof("type_spec")
    if kind == "struct":
        if spec.struct.name not in types.structs:
            raise invalid_argument(f"P4Info: no type_info for struct '{spec.struct.name}'")
        return "struct", types.structs[spec.struct.name].members
    if kind == "serializable_enum":
        if spec.serializable_enum.name not in types.serializable_enums:
            raise invalid_argument(f"P4Info: no type_info for enum '{spec.serializable_enum.name}'")
        return "enum", _checked_width(types.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth)
    if kind == "new_type":
        if spec.new_type.name not in types.new_types:
            raise invalid_argument(f"P4Info: no type_info for type '{spec.new_type.name}'")
        new_type = types.new_types[spec.new_type.name]
        if new_type.WhichOneof("representation") == "translated_type":
            if new_type.translated_type.WhichOneof("sdn_type") != "sdn_bitwidth":
                raise unimplemented(f"type '{spec.new_type.name}' is translated to a string, which is not supported")
            return "translated", _checked_width(new_type.translated_type.sdn_bitwidth)
        return _resolve(new_type.original_type, types, depth + 1)
    if kind == "enum":
        if spec.enum.name not in types.enums:
            raise invalid_argument(f"P4Info: no type_info for enum '{spec.enum.name}'")
        return "enum_name", [member.name for member in types.enums[spec.enum.name].members]
    if kind == "error":
        return "error", list(types.error.members)
    if kind == "tuple":
        return "tuple", spec.tuple.members
    if kind == "bitstring":
        return "bitstring", spec.bitstring
    if kind == "bool":
        return "bool", None
    raise unimplemented(f"values of type {kind or 'unknown'} are not supported")


def width_of(spec: Proto, types: Proto) -> int:
    """Return the width in bits of a ``P4DataTypeSpec``, given the program's ``P4TypeInfo``.

    Raises INVALID_ARGUMENT or UNIMPLEMENTED for a type that is not supported; every type that has a width is.
    """
    return _width(spec, types, 0, itertools.count(1))


def _width(spec: Proto, types: Proto, depth: int, parts: Iterator[int]) -> int:
    if next(parts) > _MAX_PARTS:
        raise invalid_argument(f"P4Info: a type has more than {_MAX_PARTS} parts")
    kind, inner = _resolve(spec, types, depth)
    if kind == "bool":
        return 1
    if kind == "bitstring":
        return _bits(inner)[1]
    if kind in ("enum", "translated"):
        return int(inner)
    if kind in ("enum_name", "error"):
        return _NAME_WIDTH
    members = [m.type_spec for m in inner] if kind == "struct" else inner
    return sum(_width(member, types, depth + 1, parts) for member in members)


def to_p4data(spec: Proto, types: Proto, value: int, depth: int = 0) -> Proto:
    """Convert a value to canonical ``P4Data``. A struct's value is one number with its first member in the highest bits.

    ``depth`` is only for the call for parts of a value: how many types they are in.
    """
    if depth == 0:
        width_of(spec, types)
    kind, inner = _resolve(spec, types, depth)
    data = p4data_pb2.P4Data()
    if kind == "bool":
        data.bool = bool(value)
    elif kind == "enum":
        data.enum_value = codec.encode(value)
    elif kind in ("enum_name", "error"):
        setattr(data, "error" if kind == "error" else "enum", inner[value] if value < len(inner) else "")
    elif kind == "translated":
        data.bitstring = codec.encode(value)
    elif kind == "bitstring":
        sort, width = _bits(inner)
        negative = sort == "int" and value >> (width - 1)
        number = value - (1 << width) if negative else value
        data.bitstring = codec.encode_signed(number) if sort == "int" else codec.encode(value)
    else:
        target = data.struct if kind == "struct" else data.tuple
        target.SetInParent()
        members = [m.type_spec for m in inner] if kind == "struct" else inner
        rest = sum(width_of(member, types) for member in members)
        for member in members:
            width = width_of(member, types)
            rest -= width
            part = (value >> rest) & codec.all_ones(width)
            target.members.append(to_p4data(member, types, part, depth + 1))
    return data


def from_p4data(spec: Proto, types: Proto, data: Proto, depth: int = 0) -> int:
    """Convert ``P4Data`` to one number, the reverse of :func:`to_p4data`.

    Raises INVALID_ARGUMENT if the data are not of the type. ``depth`` is as in :func:`to_p4data`.
    """
    if depth == 0:
        width_of(spec, types)
    kind, inner = _resolve(spec, types, depth)
    expected = {"enum": "enum_value", "enum_name": "enum", "translated": "bitstring"}.get(kind, kind)
    found = data.WhichOneof("data")
    if found != expected:
        raise invalid_argument(f"the data is of kind {found or 'nothing'}, the type asks for {expected}")
    if kind == "bool":
        return int(data.bool)
    if kind in ("enum_name", "error"):
        if (name := getattr(data, expected)) not in inner:
            raise invalid_argument(f"value: there is no '{name}'")
        return int(inner.index(name))
    try:
        if kind == "enum":
            return codec.decode(data.enum_value, int(inner))
        if kind == "translated":
            return codec.decode(data.bitstring, int(inner))
        if kind == "bitstring":
            sort, width = _bits(inner)
            if sort == "int":
                return codec.decode_signed(data.bitstring, width) & codec.all_ones(width)
            return codec.decode(data.bitstring, width)
    except P4RuntimeError as e:
        raise invalid_argument(e.message) from None  # "RegisterEntry": data of another type is INVALID_ARGUMENT
    members = [m.type_spec for m in inner] if kind == "struct" else list(inner)
    values = (data.struct if kind == "struct" else data.tuple).members
    if len(values) != len(members):
        raise invalid_argument(f"the data has {len(values)} members, the type has {len(members)}")
    total = 0
    for member, value in zip(members, values, strict=True):
        part = from_p4data(member, types, value, depth + 1)
        total = total << width_of(member, types) | part
    return total


def to_plain(spec: Proto, types: Proto, value: int, depth: int = 0) -> Plain:
    """Convert a value, one number as for :func:`to_p4data`, to a bool, number, text, list or dictionary that people can read.

    ``depth`` is as in :func:`to_p4data`.
    """
    if depth == 0:
        width_of(spec, types)
    kind, inner = _resolve(spec, types, depth)
    if kind == "bool":
        return bool(value)
    if kind == "bitstring":
        sort, width = _bits(inner)
        return value - (1 << width) if sort == "int" and value >> (width - 1) else value
    if kind in ("enum", "translated"):
        return value
    if kind in ("enum_name", "error"):
        return str(inner[value]) if value < len(inner) else ""
    members = [(m.name, m.type_spec) for m in inner] if kind == "struct" else [("", m) for m in inner]
    rest = sum(width_of(spec, types) for _, spec in members)
    parts: list[tuple[str, Plain]] = []
    for name, member in members:
        width = width_of(member, types)
        rest -= width
        parts.append((name, to_plain(member, types, (value >> rest) & codec.all_ones(width), depth + 1)))
    return dict(parts) if kind == "struct" else [part for _, part in parts]
