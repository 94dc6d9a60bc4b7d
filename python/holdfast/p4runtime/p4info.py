"""P4Info as an index: from names and ids to tables, actions and the rest, checked once.

The protobuf message is a list of lists; everything else in this room looks things up here. Building the index is also
the verification of a P4Info that a client pushes: ids are unique and of known objects, widths are given. It knows
nothing of entries or values.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from google.protobuf import text_format

from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, quoted, unimplemented
from holdfast.p4runtime.stubs import Proto, p4info_pb2
from holdfast.p4runtime.translation import Mappings, Translation

MatchKind: TypeAlias = Literal["exact", "lpm", "ternary", "range", "optional"]
Scope: TypeAlias = Literal["both", "table_only", "default_only"]

_MATCH_KINDS: dict[int, MatchKind] = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}
_SCOPES: dict[int, Scope] = {0: "both", 1: "table_only", 2: "default_only"}


MAX_WIDTH = 65_536
"""Widest value that is believed, in bits: P4Info comes from outside, and a number of that size is built from it."""


class Named(Protocol):
    """Anything with a control-plane name and an id."""

    @property
    def id(self) -> int:
        """P4Runtime id."""

    @property
    def name(self) -> str:
        """Control-plane name."""


@dataclass(frozen=True)
class MatchField:
    """A key field of a table. ``width`` in bits; 0 for a string (then it is translated) and for what clients cannot give."""

    id: int
    name: str
    width: int
    kind: MatchKind
    translation: Translation | None = field(default=None, repr=False, compare=False)
    is_translated: bool = False
    """Also if by itself: then the width is not the program's."""


@dataclass(frozen=True)
class Param:
    """A parameter of an action, or a field of a controller header. ``width`` in bits; 0 for a string."""

    id: int
    name: str
    width: int
    translation: Translation | None = field(default=None, repr=False, compare=False)
    is_translated: bool = False
    """Also if by itself: then the width is not the program's."""


@dataclass(frozen=True)
class Action:
    """An action that tables can run."""

    id: int
    name: str
    alias: str
    params: Names[Param]


@dataclass(frozen=True)
class Table:
    """A table. ``size`` in entries, as requested by the program."""

    id: int
    name: str
    alias: str
    fields: Names[MatchField]
    actions: Names[Action]
    scopes: Mapping[int, Scope]
    size: int
    const_default_action_id: int
    is_const: bool
    implementation_id: int
    direct_counter_id: int
    direct_meter_id: int
    supports_idle_timeout: bool

    @property
    def label(self) -> str:
        """For messages."""
        return f"table '{self.name}'"

    @cached_property
    def needs_priority(self) -> bool:
        """Whether entries carry a priority: some field is ternary, range or optional."""
        return any(f.kind in ("ternary", "range", "optional") for f in self.fields)


@dataclass(frozen=True)
class Counter:
    """An indexed counter. ``size`` in cells."""

    id: int
    name: str
    alias: str
    size: int
    unit: Literal["unspecified", "bytes", "packets", "both"]


@dataclass(frozen=True)
class DirectCounter:
    """A counter with one cell per table entry."""

    id: int
    name: str
    alias: str
    table_id: int


@dataclass(frozen=True)
class ActionProfile:
    """An action profile, or an action selector. ``size`` in members; ``max_group_size`` 0 is no limit."""

    id: int
    name: str
    alias: str
    table_ids: tuple[int, ...]
    with_selector: bool
    size: int
    max_group_size: int
    size_of_group: Literal["weights", "members"]
    """What a group's size is the sum of."""
    max_member_weight: int
    weights_disallowed: bool


MeterType: TypeAlias = Literal["two_rate_three_color", "single_rate_three_color", "single_rate_two_color"]


@dataclass(frozen=True)
class Meter:
    """An indexed meter. ``size`` in cells."""

    id: int
    name: str
    alias: str
    size: int
    type: MeterType


@dataclass(frozen=True)
class DirectMeter:
    """A meter with one cell per table entry."""

    id: int
    name: str
    alias: str
    table_id: int
    type: MeterType


@dataclass(frozen=True)
class ValueSet:
    """A parser value set. ``size`` in members."""

    id: int
    name: str
    alias: str
    fields: Names[MatchField]
    size: int

    @property
    def label(self) -> str:
        """For messages."""
        return f"value set '{self.name}'"


@dataclass(frozen=True)
class Register:
    """A register array. ``size`` in cells; ``type_spec`` is a ``P4DataTypeSpec``."""

    id: int
    name: str
    alias: str
    size: int
    type_spec: Proto = field(repr=False, compare=False)


@dataclass(frozen=True)
class Digest:
    """A digest message type; ``type_spec`` is a ``P4DataTypeSpec``."""

    id: int
    name: str
    alias: str
    type_spec: Proto = field(repr=False, compare=False)


@dataclass(frozen=True)
class ControllerHeader:
    """The header between switch and controller, ``packet_in`` or ``packet_out``; fields in wire order."""

    id: int
    name: str
    fields: Names[Param]


T = TypeVar("T", bound=Named)


class Names(Generic[T]):
    """Objects of one kind, by id, and by name as people give it: whole, alias, or any unique ending after a dot."""

    def __init__(self, kind: str, objects: Iterable[T], where: str = "") -> None:
        self.kind = kind
        self.where = where
        self._by_id: dict[int, T] = {}
        self._by_name: dict[str, list[T]] = {}
        self._found: dict[str, T] = {}
        """What names were resolved to."""
        for item in objects:
            if item.id == 0 or item.id in self._by_id:
                raise invalid_argument(f"P4Info: {kind} '{item.name}'{where} has id {item.id}, which is zero or taken")
            self._by_id[item.id] = item
            for name in _names_of(item.name, getattr(item, "alias", "")):
                self._by_name.setdefault(name, []).append(item)

    def __iter__(self) -> Iterator[T]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def has(self, name: str) -> bool:
        """Whether a name, as :meth:`__getitem__` takes it, is one object's."""
        try:
            self[name]
        except P4RuntimeError:
            return False
        return True

    def get(self, id: int) -> T | None:
        """By id; None if there is none."""
        return self._by_id.get(id)

    def by_id(self, id: int) -> T:
        """By id; INVALID_ARGUMENT if there is none."""
        if (item := self._by_id.get(id)) is None:
            raise invalid_argument(f"no {self.kind} has id {id}{self.where}; {self._choices()}")
        return item

    def __getitem__(self, name: str) -> T:
        """By name; INVALID_ARGUMENT with suggestions if there is none, or if the name is ambiguous."""
        if (known := self._found.get(name)) is not None:
            return known
        found = self._by_name.get(name, [])
        whole = [item for item in found if name in (item.name, getattr(item, "alias", ""))]
        if len(whole) == 1 or (not whole and len(found) == 1):
            self._found[name] = (whole or found)[0]
            return self._found[name]
        if found:
            raise invalid_argument(f"{self.kind} '{name}'{self.where} could be {quoted(item.name for item in found)}")
        raise invalid_argument(f"no {self.kind} '{name}'{self.where}; {self._suggest(name)}")

    def _suggest(self, name: str) -> str:
        close = difflib.get_close_matches(name, self._by_name, n=1)
        if close:
            return f"did you mean {quoted(item.name for item in self._by_name[close[0]])}?"
        return self._choices()

    def _choices(self) -> str:
        names = [item.name for item in self]
        if not names:
            return "there are none"
        shown = quoted(sorted(names)[:8])
        return f"there are {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")


@lru_cache(maxsize=4096)
def _names_of(name: str, alias: str) -> tuple[str, ...]:
    """Every switch of a network has the same objects mostly: splitting their names took a tenth of a short simulation."""
    parts = name.split(".")
    endings = (".".join(parts[i:]) for i in range(1, len(parts)))
    return tuple(dict.fromkeys((name, alias or name, *endings)))


class P4InfoIndex:
    """The index of one ``p4.config.v1.P4Info``. Raises INVALID_ARGUMENT if the message contradicts itself."""

    def __init__(self, message: Proto, mappings: Mappings | None = None) -> None:
        self.message = message
        self._mappings = mappings or {}
        self._translations: dict[str, Translation] = {}
        self.actions = Names("action", map(self._action, message.actions))
        self.tables = Names("table", [self._table(t) for t in message.tables])
        self.counters = Names("counter", map(_counter, message.counters))
        self.direct_counters = Names("direct counter", map(_direct_counter, message.direct_counters))
        self.action_profiles = Names("action profile", [self._action_profile(p) for p in message.action_profiles])
        self.meters = Names("meter", map(_meter, message.meters))
        self.direct_meters = Names("direct meter", map(_direct_meter, message.direct_meters))
        self.value_sets = Names("value set", map(self._value_set, message.value_sets))
        self.registers = Names("register", map(_register, message.registers))
        self.digests = Names("digest", map(_digest, message.digests))
        headers = Names("controller header", map(self._controller_header, message.controller_packet_metadata))
        self.controller_headers = headers
        self.packet_in = next((h for h in headers if h.name == "packet_in"), None)
        self.packet_out = next((h for h in headers if h.name == "packet_out"), None)
        self._check_ids_are_unique()
        self.roles = dict(_roles(message))
        """The role that an object's ``@p4runtime_role`` annotation names, by id."""

    def role_may(self, role: str, id: int) -> bool:
        """Whether a role may deal with an object. The default role may everything, and what names no role is everybody's."""
        return not role or self.roles.get(id, role) == role

    def check_role(self, role: str, id: int) -> None:
        """PERMISSION_DENIED unless :meth:`role_may`."""
        if not self.role_may(role, id):
            raise P4RuntimeError("PERMISSION_DENIED", f"object {id} is of role '{self.roles[id]}', not of '{role}'")

    @staticmethod
    def from_text(text: str) -> P4InfoIndex:
        """The index of a P4Info in protobuf text format. INVALID_ARGUMENT if it cannot be parsed."""
        return P4InfoIndex(parse_text(text))

    def table(self, name: str) -> Table:
        """The table of a name; INVALID_ARGUMENT with suggestions if there is none."""
        return self.tables[name]

    def action(self, name: str) -> Action:
        """The action of a name; likewise."""
        return self.actions[name]

    def counter(self, name: str) -> Counter:
        """The indexed counter of a name; likewise."""
        return self.counters[name]

    def register(self, name: str) -> Register:
        """The register of a name; likewise."""
        return self.registers[name]

    def digest(self, name: str) -> Digest:
        """The digest of a name; likewise."""
        return self.digests[name]

    def _table(self, message: Proto) -> Table:
        name = message.preamble.name
        where = f" of table '{name}'"
        direct = {counter.preamble.id for counter in self.message.direct_counters}
        meters = {meter.preamble.id for meter in self.message.direct_meters}
        refs = [(self.actions.get(ref.id), ref) for ref in message.action_refs]
        for action, ref in refs:
            if action is None:
                raise invalid_argument(f"P4Info: table '{name}' refers to the unknown action id {ref.id}")
            if ref.scope not in _SCOPES:
                raise invalid_argument(f"P4Info: table '{name}' uses action '{action.name}' in an unsupported scope")
        for id in message.direct_resource_ids:
            if id not in direct and id not in meters:
                raise invalid_argument(f"P4Info: table '{name}' refers to the unknown direct resource id {id}")
        return Table(
            id=message.preamble.id,
            name=name,
            alias=message.preamble.alias,
            fields=Names("match field", [self._match_field(f, where) for f in message.match_fields], where),
            actions=Names("action", [a for a, _ in refs if a is not None], where),
            scopes={ref.id: _SCOPES[ref.scope] for _, ref in refs},
            size=message.size,
            const_default_action_id=message.const_default_action_id,
            is_const=message.is_const_table,
            implementation_id=message.implementation_id,
            direct_counter_id=next((i for i in message.direct_resource_ids if i in direct), 0),
            direct_meter_id=next((i for i in message.direct_resource_ids if i in meters), 0),
            supports_idle_timeout=message.idle_timeout_behavior != 0,
        )

    def _is_translated(self, type_name: str) -> bool:
        types = self.message.type_info.new_types
        return type_name in types and types[type_name].WhichOneof("representation") == "translated_type"

    def _translation(self, type_name: str) -> Translation | None:
        """Of a type that is translated otherwise than by itself."""
        if not self._is_translated(type_name):
            return None
        translated = self.message.type_info.new_types[type_name].translated_type
        kind, given = translated.WhichOneof("sdn_type"), self._mappings.get(translated.uri)
        if kind == "sdn_bitwidth" and given is None:
            return None
        if kind not in ("sdn_bitwidth", "sdn_string"):
            raise invalid_argument(f"P4Info: type '{type_name}' is translated to nothing")
        width = _width(translated.sdn_bitwidth, f"type '{type_name}'") if kind == "sdn_bitwidth" else 0
        known = self._translations.setdefault(translated.uri, Translation(translated.uri, width, given))
        if known.width != width:
            raise invalid_argument(f"P4Info: '{translated.uri}' is translated to strings and to numbers")
        return known

    def inherit_translations(self, other: P4InfoIndex) -> None:
        """Takes over what the strings of another pipeline mean."""
        for uri, translation in self._translations.items():
            if uri in other._translations:
                translation.inherit(other._translations[uri])

    def _match_field(self, message: Proto, where: str) -> MatchField:
        kind = _MATCH_KINDS.get(message.match_type)
        what = f"match field '{message.name}'{where}"
        if kind is None:
            raise invalid_argument(f"P4Info: {what} has an unsupported match type")
        translation = self._translation(message.type_name.name)
        if translation is not None and kind not in ("exact", "optional"):
            raise unimplemented(f"P4Info: {what} is translated; only exact and optional matches can be")
        # An enum or error without a representation has no width, and no value that a client could give.
        is_text = translation is not None and translation.is_text
        width = 0 if is_text or not message.bitwidth else _width(message.bitwidth, what)
        is_translated = self._is_translated(message.type_name.name)
        return MatchField(message.id, message.name, width, kind, translation, is_translated)

    def _action(self, message: Proto) -> Action:
        preamble = message.preamble
        where = f" of action '{preamble.name}'"
        params = []
        for p in message.params:
            translation = self._translation(p.type_name.name)
            is_text = translation is not None and translation.is_text
            width = 0 if is_text else _width(p.bitwidth, f"parameter '{p.name}'{where}")
            params.append(Param(p.id, p.name, width, translation, self._is_translated(p.type_name.name)))
        return Action(preamble.id, preamble.name, preamble.alias, Names("parameter", params, where))

    def _value_set(self, message: Proto) -> ValueSet:
        preamble = message.preamble
        where = f" of value set '{preamble.name}'"
        fields = Names("match field", [self._match_field(f, where) for f in message.match], where)
        size = _size(message.size, f"value set '{preamble.name}'")
        return ValueSet(preamble.id, preamble.name, preamble.alias, fields, size)

    def _controller_header(self, message: Proto) -> ControllerHeader:
        where = f" of controller header '{message.preamble.name}'"
        fields = []
        for m in message.metadata:
            width = _width(m.bitwidth, f"field '{m.name}'{where}")
            fields.append(Param(m.id, m.name, width, self._translation(m.type_name.name)))
        return ControllerHeader(message.preamble.id, message.preamble.name, Names("metadata field", fields, where))

    def _action_profile(self, message: Proto) -> ActionProfile:
        name = message.preamble.name
        for id in message.table_ids:
            if id not in self.tables:
                raise invalid_argument(f"P4Info: action profile '{name}' refers to the unknown table id {id}")
        by_members = message.WhichOneof("selector_size_semantics") == "sum_of_members"
        return ActionProfile(
            id=message.preamble.id,
            name=name,
            alias=message.preamble.alias,
            table_ids=tuple(message.table_ids),
            with_selector=message.with_selector,
            size=_size(message.size, f"action profile '{name}'"),
            max_group_size=_size(message.max_group_size, f"a group of action profile '{name}'"),
            size_of_group="members" if by_members else "weights",
            max_member_weight=message.sum_of_members.max_member_weight,
            weights_disallowed=getattr(message, "weights_disallowed", False),  # since 1.5
        )

    def _check_ids_are_unique(self) -> None:
        """Ids of all kinds share one number space (comment of ``Preamble.id``)."""
        seen: dict[int, str] = {}
        kinds: list[Iterable[Named]] = [self.actions, self.tables, self.counters, self.direct_counters, self.registers]
        kinds += [self.action_profiles, self.meters, self.direct_meters, self.value_sets]
        for names in kinds:
            for item in names:
                if item.id in seen:
                    raise invalid_argument(f"P4Info: '{item.name}' and '{seen[item.id]}' both have id {item.id}")
                seen[item.id] = item.name


_IS_ROLE = re.compile(r"@p4runtime_role\b")
_ROLE = re.compile(r'@p4runtime_role\(\s*"((?:[^"\\]|\\.)*)"\s*\)')


def _roles(message: Proto) -> Iterator[tuple[int, str]]:
    lists = (
        message.tables,
        message.action_profiles,
        message.counters,
        message.meters,
        message.value_sets,
        message.registers,
        message.digests,
    )
    for item in itertools.chain(*lists):
        preamble = item.preamble
        roles = [_role(text, preamble.name) for text in map(str.strip, preamble.annotations) if _IS_ROLE.match(text)]
        for annotation in preamble.structured_annotations:
            if annotation.name == "p4runtime_role":
                values = [e.string_value for e in annotation.expression_list.expressions if e.HasField("string_value")]
                if len(values) != 1 or len(annotation.expression_list.expressions) != 1:
                    raise invalid_argument(f"P4Info: the role of '{preamble.name}' is not one string")
                roles += values
        if len(roles) > 1:
            raise invalid_argument(f"P4Info: '{preamble.name}' has {len(roles)} roles")
        for role in roles:
            yield preamble.id, role


def _role(annotation: str, owner: str) -> str:
    """What is not understood must not open an object to everybody."""
    match = _ROLE.fullmatch(annotation)
    if match is None:
        raise invalid_argument(f"P4Info: the role of '{owner}' is not one string: {annotation}")
    return re.sub(r"\\(.)", r"\1", match[1])


def parse_text(text: str) -> Proto:
    """A ``P4Info`` from protobuf text format. INVALID_ARGUMENT if it cannot be parsed."""
    message = p4info_pb2.P4Info()
    message.CopyFrom(_parsed(text))
    return message


@lru_cache(maxsize=32)
def _parsed(text: str) -> Proto:
    """Every switch of a network has the same text mostly, and parsing it took half of a short simulation's time."""
    message = p4info_pb2.P4Info()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as e:
        raise P4RuntimeError("INVALID_ARGUMENT", f"P4Info text: {e}") from None
    return message


def _size(size: int, what: str) -> int:
    if size < 0:
        raise invalid_argument(f"P4Info: {what} has a negative size")
    return size


def _width(bitwidth: int, what: str) -> int:
    if bitwidth > MAX_WIDTH:
        raise invalid_argument(f"P4Info: {what} has {bitwidth} bits; more than {MAX_WIDTH} are not supported")
    if bitwidth <= 0:
        raise invalid_argument(f"P4Info: {what} has no width in bits (a string?), which is not supported")
    return bitwidth


def _counter(message: Proto) -> Counter:
    units: tuple[Literal["unspecified", "bytes", "packets", "both"], ...] = ("unspecified", "bytes", "packets", "both")
    preamble, unit = message.preamble, message.spec.unit
    return Counter(
        preamble.id,
        preamble.name,
        preamble.alias,
        _size(message.size, f"counter '{preamble.name}'"),
        units[unit] if unit < 4 else "unspecified",
    )


def _direct_counter(message: Proto) -> DirectCounter:
    preamble = message.preamble
    return DirectCounter(preamble.id, preamble.name, preamble.alias, message.direct_table_id)


def _meter_type(spec: Proto) -> MeterType:
    types: tuple[MeterType, ...] = ("two_rate_three_color", "single_rate_three_color", "single_rate_two_color")
    number = getattr(spec, "type", 0)  # since 1.4
    if number >= len(types):
        raise invalid_argument(f"P4Info: there is no meter type {number}")
    return types[number]


def _meter(message: Proto) -> Meter:
    preamble = message.preamble
    size = _size(message.size, f"meter '{preamble.name}'")
    return Meter(preamble.id, preamble.name, preamble.alias, size, _meter_type(message.spec))


def _direct_meter(message: Proto) -> DirectMeter:
    preamble = message.preamble
    table_id, type = message.direct_table_id, _meter_type(message.spec)
    return DirectMeter(preamble.id, preamble.name, preamble.alias, table_id, type)


def _register(message: Proto) -> Register:
    preamble = message.preamble
    size = _size(message.size, f"register '{preamble.name}'")
    return Register(preamble.id, preamble.name, preamble.alias, size, message.type_spec)


def _digest(message: Proto) -> Digest:
    preamble = message.preamble
    return Digest(preamble.id, preamble.name, preamble.alias, message.type_spec)
