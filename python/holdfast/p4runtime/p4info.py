"""P4Info as an index: from names and ids to tables, actions and the rest, checked once.

The protobuf message is a list of lists; controllers look things up here. The native core decides what a device accepts. The index
knows nothing of entries or values.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from google.protobuf import text_format

from holdfast._core import EntryEncoder, Program
from holdfast.p4runtime.errors import P4RuntimeError, invalid_argument, quoted
from holdfast.p4runtime.stubs import Proto, p4info_pb2, p4runtime_pb2

Form: TypeAlias = Literal["value", "prefix", "masked", "range"]
"""How entries state a match: as a value, a prefix with its length, a value with a mask, or both ends of a range."""


class MatchKind(NamedTuple):
    """A row of :data:`MATCH_KINDS`. ``has_any``: entries may match any value; ``has_priority``: entries have priorities."""

    form: Form
    has_any: bool
    has_priority: bool


MATCH_KINDS = {
    "exact": MatchKind("value", has_any=False, has_priority=False),
    "lpm": MatchKind("prefix", has_any=True, has_priority=False),
    "ternary": MatchKind("masked", has_any=True, has_priority=True),
    "range": MatchKind("range", has_any=True, has_priority=True),
    "optional": MatchKind("value", has_any=True, has_priority=True),
}
"""What a client has to know of match kinds, by name; as the native core knows it (``ir::MatchKind``)."""

MAX_WIDTH = 65_536
"""The largest width of a value, in bits, that is accepted: P4Info is untrusted, and numbers of this width are computed
from it."""


@dataclass(frozen=True)
class Named:
    """Anything with a P4Runtime id and a control-plane name."""

    id: int
    name: str


@dataclass(frozen=True)
class Object(Named):
    """An object of the program. Meters, direct counters and value sets, which clients only name, have no more than this."""

    alias: str


@dataclass(frozen=True)
class MatchField(Named):
    """A key field of a table. ``width`` in bits; 0 for a string and for what clients cannot give."""

    width: int
    kind: str
    uri: str | None = None
    """Of a type that is translated to strings; it may be empty."""

    @cached_property
    def form(self) -> Form:
        """How entries state the match of this field."""
        return MATCH_KINDS[self.kind].form

    @cached_property
    def has_any(self) -> bool:
        """True if entries may match any value of this field."""
        return MATCH_KINDS[self.kind].has_any


@dataclass(frozen=True)
class Param(Named):
    """A parameter of an action, or a field of a controller header. ``width`` in bits; 0 for a string."""

    width: int
    uri: str | None = None
    """Of a type that is translated to strings; it may be empty."""


@dataclass(frozen=True)
class Action(Object):
    """An action that tables can run."""

    params: Names[Param]


@dataclass(frozen=True)
class Table(Object):
    """A table. ``size`` in entries, as requested by the program."""

    fields: Names[MatchField]
    actions: Names[Action]
    size: int
    implementation_id: int
    direct_counter_id: int
    direct_meter_id: int
    initial_default: Proto = field(repr=False, compare=False)
    """The program's default action, as an ``Action`` message."""

    @cached_property
    def needs_priority(self) -> bool:
        """True if entries must have a priority, as several may match a packet."""
        return any(MATCH_KINDS[f.kind].has_priority for f in self.fields)

    @cached_property
    def encoder(self) -> EntryEncoder:
        """The native encoder of updates of entries whose values are plain numbers."""
        return EntryEncoder(
            self.id,
            [(name, f.id, f.width, f.kind) for name, f in self.fields.spellings() if f.uri is None],
            [
                (name, a.id, [(name, p.id, p.width) for name, p in a.params.spellings() if p.uri is None])
                for name, a in self.actions.spellings()
            ],
        )


@dataclass(frozen=True)
class Counter(Object):
    """An indexed counter. ``size`` in cells."""

    size: int
    unit: Literal["unspecified", "bytes", "packets", "both"]


@dataclass(frozen=True)
class ActionProfile(Object):
    """An action profile, or an action selector."""

    table_ids: tuple[int, ...]


@dataclass(frozen=True)
class Register(Object):
    """A register array. ``size`` in cells; ``type_spec`` is a ``P4DataTypeSpec``."""

    size: int
    type_spec: Proto = field(repr=False, compare=False)


@dataclass(frozen=True)
class Digest(Object):
    """A digest message type; ``type_spec`` is a ``P4DataTypeSpec``."""

    type_spec: Proto = field(repr=False, compare=False)


@dataclass(frozen=True)
class ControllerHeader(Named):
    """The header between switch and controller, ``packet_in`` or ``packet_out``; fields in wire order."""

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
        """The objects that names were resolved to."""
        for item in objects:
            if item.id == 0:
                raise invalid_argument(f"P4Info: {kind} '{item.name}'{where} has id 0")
            if other := self._by_id.get(item.id):
                raise invalid_argument(f"P4Info: {kind} '{item.name}'{where} has id {item.id}, as '{other.name}' has")
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
        """Return True if ``name`` is a key for :meth:`__getitem__` that means exactly one object."""
        try:
            self[name]
        except P4RuntimeError:
            return False
        return True

    def spellings(self) -> Iterator[tuple[str, T]]:
        """Yield (name, object) for every name, alias or ending of a name that means exactly one object."""
        return ((name, self[name]) for name in self._by_name if self.has(name))

    def get(self, id: int) -> T | None:
        """Return the object with this id, or None if there is none."""
        return self._by_id.get(id)

    def by_id(self, id: int) -> T:
        """Return the object with this id. Raises INVALID_ARGUMENT if there is none."""
        if (item := self._by_id.get(id)) is None:
            raise invalid_argument(f"no {self.kind} has id {id}{self.where}; {self._choices()}")
        return item

    def __getitem__(self, name: str) -> T:
        """Return the object with this name.

        Raises INVALID_ARGUMENT, with suggestions, if there is none or the name is ambiguous.
        """
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
    """Return all names by which clients may call an object: the whole name, its alias, and what follows each dot in the name.

    It is cached: every switch of a network has mostly the same objects, and splitting their names took a tenth of a short
    simulation.
    """
    parts = name.split(".")
    endings = (".".join(parts[i:]) for i in range(1, len(parts)))
    return tuple(dict.fromkeys((name, alias or name, *endings)))


class P4InfoIndex:
    """The index of one ``p4.config.v1.P4Info``. Raises INVALID_ARGUMENT if the message contradicts itself."""

    def __init__(self, message: Proto) -> None:
        self.message = message
        self.actions = Names("action", map(self._action, message.actions))
        self.tables = Names("table", [self._table(t) for t in message.tables])
        self.counters = Names("counter", map(_counter, message.counters))
        self.direct_counters = Names("direct counter", map(_object, message.direct_counters))
        self.action_profiles = Names("action profile", map(_action_profile, message.action_profiles))
        self.meters = Names("meter", map(_object, message.meters))
        self.direct_meters = Names("direct meter", map(_object, message.direct_meters))
        self.value_sets = Names("value set", map(_object, message.value_sets))
        self.registers = Names("register", map(_register, message.registers))
        self.digests = Names("digest", map(_digest, message.digests))
        headers = Names("controller header", map(self._controller_header, message.controller_packet_metadata))
        self.controller_headers = headers
        self.packet_in = next((h for h in headers if h.name == "packet_in"), None)
        self.packet_out = next((h for h in headers if h.name == "packet_out"), None)

    @staticmethod
    def from_text(text: str) -> P4InfoIndex:
        """Build the index of a P4Info in protobuf text format. Raises INVALID_ARGUMENT if it cannot be parsed."""
        return P4InfoIndex(parse_text(text))

    def _table(self, message: Proto) -> Table:
        name = message.preamble.name
        where = f" of table '{name}'"
        direct_counters, direct_meters = (
            {each.preamble.id for each in kind} for kind in (self.message.direct_counters, self.message.direct_meters)
        )
        refs = [(self.actions.get(ref.id), ref) for ref in message.action_refs]
        for action, ref in refs:
            if action is None:
                raise invalid_argument(f"P4Info: table '{name}' refers to the unknown action id {ref.id}")
        return Table(
            *_preamble(message),
            fields=Names("match field", [self._match_field(f, where) for f in message.match_fields], where),
            actions=Names("action", [a for a, _ in refs if a is not None], where),
            size=message.size,
            implementation_id=message.implementation_id,
            direct_counter_id=next((i for i in message.direct_resource_ids if i in direct_counters), 0),
            direct_meter_id=next((i for i in message.direct_resource_ids if i in direct_meters), 0),
            initial_default=_initial_default(message),
        )

    def _uri(self, type_name: str) -> str | None:
        """Return the URI of a type that is translated to strings, or None for other types."""
        types = self.message.type_info.new_types
        translated = types[type_name].translated_type if type_name in types else None
        return translated.uri if translated is not None and translated.HasField("sdn_string") else None

    def _match_field(self, message: Proto, where: str) -> MatchField:
        match_types = p4info_pb2.MatchField.MatchType
        kind = match_types.Name(message.match_type).lower() if message.match_type in match_types.values() else ""
        what = f"match field '{message.name}'{where}"
        if kind not in MATCH_KINDS:
            raise invalid_argument(f"P4Info: {what} has an unsupported match type")
        uri = self._uri(message.type_name.name)
        # An enum or error without a representation has no width, and no value that a client could give.
        width = 0 if uri is not None or not message.bitwidth else _width(message.bitwidth, what)
        return MatchField(message.id, message.name, width, kind, uri)

    def _action(self, message: Proto) -> Action:
        where = f" of action '{message.preamble.name}'"
        params = []
        for p in message.params:
            uri = self._uri(p.type_name.name)
            # An enum or error without a representation: no client can give a value, and the action can be the program's own.
            is_opaque = uri is not None or not p.bitwidth
            width = 0 if is_opaque else _width(p.bitwidth, f"parameter '{p.name}'{where}")
            params.append(Param(p.id, p.name, width, uri))
        return Action(*_preamble(message), Names("parameter", params, where))

    def _controller_header(self, message: Proto) -> ControllerHeader:
        where = f" of controller header '{message.preamble.name}'"
        fields = []
        for m in message.metadata:
            uri = self._uri(m.type_name.name)
            width = 0 if uri is not None else _width(m.bitwidth, f"field '{m.name}'{where}")
            fields.append(Param(m.id, m.name, width, uri))
        return ControllerHeader(message.preamble.id, message.preamble.name, Names("metadata field", fields, where))


def _initial_default(table: Proto) -> Proto:
    """Return the initial default action that P4Info states for a table, as an ``Action`` message."""
    initial = table.initial_default_action
    action = p4runtime_pb2.Action(action_id=initial.action_id)
    for argument in initial.arguments:
        action.params.add(param_id=argument.param_id, value=argument.value)
    return action


def message_of(program: Program) -> Proto:
    """Return the ``P4Info`` message of a program: the compiler's, or the one that was given with its artifact.

    Raises INVALID_ARGUMENT if its text cannot be parsed.
    """
    data = program.p4info_message
    return p4info_pb2.P4Info.FromString(data) if data else parse_text(program.p4info)


def parse_text(text: str) -> Proto:
    """Parse a ``P4Info`` in protobuf text format. Raises INVALID_ARGUMENT if it cannot be parsed."""
    message = p4info_pb2.P4Info()
    message.CopyFrom(_parsed(text))
    return message


@lru_cache(maxsize=32)
def _parsed(text: str) -> Proto:
    """Parse a ``P4Info`` in protobuf text format; equal texts are parsed once.

    Every switch of a network has mostly the same text, and parsing it took half of a short simulation's time. Raises
    INVALID_ARGUMENT for text that is no ``P4Info``.
    """
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


def _object(message: Proto) -> Object:
    return Object(*_preamble(message))


def _preamble(message: Proto) -> tuple[int, str, str]:
    return message.preamble.id, message.preamble.name, message.preamble.alias


def _counter(message: Proto) -> Counter:
    units: tuple[Literal["unspecified", "bytes", "packets", "both"], ...] = ("unspecified", "bytes", "packets", "both")
    size, unit = _size(message.size, f"counter '{message.preamble.name}'"), message.spec.unit
    return Counter(*_preamble(message), size, units[unit] if unit < 4 else "unspecified")


def _action_profile(message: Proto) -> ActionProfile:
    return ActionProfile(*_preamble(message), tuple(message.table_ids))


def _register(message: Proto) -> Register:
    size = _size(message.size, f"register '{message.preamble.name}'")
    return Register(*_preamble(message), size, message.type_spec)


def _digest(message: Proto) -> Digest:
    return Digest(*_preamble(message), message.type_spec)
