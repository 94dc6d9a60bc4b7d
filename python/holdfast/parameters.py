"""Checks user input: fields of models, and times. An error is one sentence.

Times are written in seconds or milliseconds and counted in whole picoseconds, in signed 64 bits in results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from holdfast import units
from holdfast.errors import NetworkError, ParameterError, place_of_mistake
from holdfast.suggestions import alternatives
from holdfast.terminal import excerpt

PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000

LONGEST_S = 9_000_000
"""The largest time in seconds: 104 days, so that the time in picoseconds is below 2^63."""

SHORTEST_MS = 0.00001
"""The shortest interval in milliseconds between packets: 100 million packets per second."""

Seconds: TypeAlias = Annotated[float, Field(ge=0, le=LONGEST_S)]
"""A time in seconds, not negative."""

Milliseconds: TypeAlias = Annotated[float, Field(ge=0, le=LONGEST_S * 1000)]
"""A time in milliseconds, not negative."""


class Checked(BaseModel):
    """A model of values that users write: without unknown fields, infinities, or booleans in place of numbers.

    Units may be written (:func:`spelled_out`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, given: object) -> object:
        return spelled_out(cls, given) if isinstance(given, dict) else given

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_booleans(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a boolean where a number is expected: Python's booleans are numbers, so True would be taken for 1."""
        field = info.field_name or ""
        values = [] if isinstance(value, dict) and _has_models(cls, field) else list(_within(value))
        if any(isinstance(each, bool) for each in values) and _is_numeric(cls, field):
            raise ValueError("a number is expected, not true or false")
        if any(isinstance(each, int) for each in values) and _is_address(cls, field):
            raise ValueError("an address is expected as text, such as '10.0.1.1'")
        if isinstance(value, int | float | str) and not isinstance(value, bool) and _is_switch(cls, field):
            raise ValueError("true or false is expected")
        return value


def spelled_out(model: type[BaseModel], given: dict[str, Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a model as they are called, in their own units, from what a user wrote.

    A field whose name ends in a unit, such as ``delay_ms``, also takes a text with a unit (``delay_ms: 2s``), and such a text under
    its name without the unit (``delay: 2s``). A field that is a number takes ``1%``. This is the only place that reads units of
    fields. ``without``: fields that a user cannot give. Raises :class:`ParameterError`, for an unknown key with similar ones.
    """
    fields, short = _names(model, without)
    if given.keys() <= fields.keys() and not any(isinstance(value, str | list | tuple) for value in given.values()):
        return given
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = short.get(key, key)
        if name in fields:
            value = _measured(model, fields[name], key, value, short=name != key)
            if name != key and name in given:
                raise ParameterError(model.__name__, key, f"{name} is given, too, and they are the same")
        else:
            key = excerpt(str(key), 80)
            raise ParameterError(model.__name__, key, f"unknown key{alternatives(key, [*fields, *short])}")
        found[name] = value
    return found


@cache
def _names(model: type[BaseModel], without: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the name of each field by its key, and the key of each field with a unit by that key without the unit."""
    fields = {field.alias or name: name for name, field in model.model_fields.items() if name not in without}
    if model.model_config.get("populate_by_name"):
        fields |= {name: name for name in model.model_fields if name not in without}
    short: dict[str, str] = {}
    for key, name in fields.items():
        named = units.of_name(key)
        if named is not None and named[0] and named[0] not in fields and _is_numeric(model, name):
            short.setdefault(named[0], key)
    return fields, short


def _measured(model: type[BaseModel], name: str, key: str, value: object, *, short: bool) -> object:
    """Convert the value that a user wrote under ``key`` to the unit of the field ``name``.

    ``short``: the key lacks the unit, so numbers need one.
    """
    named = units.of_name(name)
    if isinstance(value, list | tuple) and named is not None:
        return [_measured(model, name, key, each, short=short) for each in value]
    is_share = named is None and isinstance(value, str) and value.endswith("%")
    if not (named or is_share) or not _is_numeric(model, name) or str in _types_of(model, name):
        return value
    try:
        if isinstance(value, str) and is_share:
            return units.share(value)
        assert named is not None
        if isinstance(value, str) and (short or not units.is_plain(value)):
            return named[1].read(value)
    except ParameterError as error:
        raise ParameterError(model.__name__, key, error.sentence) from None
    if short and isinstance(value, int | float) and not isinstance(value, bool) and value:
        wanted = f"write {named[1].quantity.example}, or {name}: {value:g}"
        raise ParameterError(model.__name__, key, f"{value:g} has no unit; {wanted}")
    return value


def written_names(model: type[BaseModel]) -> dict[str, tuple[str, units.Suffix]]:
    """Return, for each key of a field with a unit, the key without the unit (empty if there is none), and the unit."""
    fields, short = _names(model, ())
    without = {key: name for name, key in short.items()}
    found = {}
    for key, name in fields.items():
        if (
            (named := units.of_name(name)) is not None
            and _is_numeric(model, name)
            and str not in _types_of(model, name)
        ):
            found[key] = without.get(key, ""), named[1]
    return found


@cache
def _types_of(model: type[BaseModel], field: str) -> frozenset[object]:
    """Return all types in a field's annotation."""
    return frozenset(_types(model.model_fields[field].annotation))


@cache
def _is_switch(model: type[BaseModel], field: str) -> bool:
    """Return True if a model's field is a boolean: for those, pydantic takes numbers and words such as "off", too."""
    return model.model_fields[field].annotation in (bool, bool | None)


def _within(value: object) -> Iterator[object]:
    """Yield a value, or the values in lists and mappings of any depth."""
    if isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _within(each)
    else:
        yield value


@cache
def _has_models(model: type[BaseModel], field: str) -> bool:
    """Return True if a model's field is, or holds, other models, which check their own values."""
    return any(isinstance(each, type) and issubclass(each, BaseModel) for each in _types_of(model, field))


@cache
def _is_address(model: type[BaseModel], field: str) -> bool:
    """Return True if a model's field is an IP address or prefix, or holds them: for those, Python takes numbers, too."""
    types = _types_of(model, field)
    return int not in types and any(getattr(each, "__module__", "") == "ipaddress" for each in types)


@cache
def _is_numeric(model: type[BaseModel], field: str) -> bool:
    """Return True if a model's field is a number, or holds numbers, and cannot be or hold a boolean."""
    types = _types_of(model, field)
    return not types.isdisjoint({int, float}) and bool not in types


def _types(annotation: object) -> Iterator[object]:
    yield annotation
    for part in get_args(annotation):
        yield from _types(part) if not isinstance(part, bool) else ()


class Parameters(Checked):
    """A model whose fields users give. Raises :class:`holdfast.errors.ParameterError` on values that they cannot have."""

    if not TYPE_CHECKING:  # Type checkers know the fields from the class, and check what callers give.

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise ParameterError(type(self).__name__, *place_of_mistake(error)) from None


Keywords: TypeAlias = dict[str, Any]
"""Keyword arguments of the native core, which checks them."""


def core_keywords(model: BaseModel, names: Iterable[str]) -> Keywords:
    """Return fields of a model as keyword arguments of the native core, with ``x_ms`` as ``x_ps``."""
    given = ((name, getattr(model, name)) for name in names)
    return dict(
        (f"{name.removesuffix('_ms')}_ps", round(value * PS_PER_MS)) if name.endswith("_ms") else (name, value)
        for name, value in given
    )


def ps_of_s(parameter: str, time_s: float) -> int:
    """Convert a time in seconds to whole picoseconds.

    Raises :class:`NetworkError`, with the parameter's name, if the time is not a number, is negative, or is too long.
    """
    return _whole_ps(parameter, time_s, PS_PER_S)


def ps_of_ms(parameter: str, time_ms: float) -> int:
    """Convert a time in milliseconds to whole picoseconds.

    Raises :class:`NetworkError`, with the parameter's name, if the time is not a number, is negative, or is too long.
    """
    return _whole_ps(parameter, time_ms, PS_PER_MS)


def _whole_ps(parameter: str, time: float, unit_ps: int) -> int:
    if isinstance(time, bool) or not isinstance(time, Real) or math.isnan(time):
        raise NetworkError(f"{parameter} is {time!r}; it must be a number")
    if time < 0:
        raise NetworkError(f"{parameter} is {time:g}; it cannot be negative")
    if time > (longest := LONGEST_S * PS_PER_S // unit_ps):
        raise NetworkError(f"{parameter} is {time:g}; it must be at most {longest:g}")
    return round(time * unit_ps)
