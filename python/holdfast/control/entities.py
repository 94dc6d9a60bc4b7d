"""All that a switch can be told but table entries, as values: a switch returns the values that were written.

Each kind has a key, which identifies an object in its switch, and a place, which is what ``read`` reads. A program's tables,
meters, registers, value sets and digests always exist: to delete one's value is to give it back the program's initial one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

from holdfast.p4runtime.client import Client, Rates, Verb

Replicas: TypeAlias = tuple[tuple[int, int], ...]
"""The copies of a multicast group or clone session, each as (egress port, instance)."""

Params: TypeAlias = Mapping[str, int | str]


class _Object:
    """An object that is identified by one field, or by several of which the first is its place."""

    _identity: ClassVar[tuple[str, ...]] = ("name",)
    _kind: ClassVar[str]
    """The objects of P4Info among which the place is."""

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the object in its switch."""
        return type(self), *(getattr(self, name) for name in self._identity)

    @property
    def place(self) -> Any:
        """The place that :meth:`read` reads."""
        return self.key[1]

    @classmethod
    def read(cls, client: Client, places: Collection[Any]) -> list[Self]:
        """Return the switch's objects of this kind at these places, without the program's initial ones; a place may be missing."""
        known = getattr(client.p4info, cls._kind)
        names = [(place if isinstance(place, str) else place[0], place) for place in places]
        return [found for name, place in names if known.has(name) for found in cls._found(client, place)]

    @classmethod
    def _found(cls, client: Client, place: Any) -> Iterable[Self]:
        """Return the switch's objects at one place, which its program has; none if objects of this kind can only be written."""
        return ()


@dataclass(frozen=True)
class ProfileMember(_Object):
    """A member of an action profile or selector."""

    profile: str
    number: int
    action: str
    params: Params = field(default_factory=dict)
    _identity, _kind = ("profile", "number"), "action_profiles"

    @classmethod
    def _found(cls, client: Client, place: str) -> Iterable[Self]:
        return (cls(place, number, *action) for number, action in client.profile_members(place).items())

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the member in a switch."""
        if verb == "delete":
            client.delete_profile_member(self.profile, self.number)
        else:
            client.profile_member(self.profile, self.number, self.action, self.params, verb=verb)


@dataclass(frozen=True)
class ProfileGroup(_Object):
    """A group of an action selector. ``members``: weights by number; ``watch_ports``: ports by member."""

    profile: str
    number: int
    members: Mapping[int, int]
    watch_ports: Mapping[int, int] = field(default_factory=dict)
    max_size: int = 0
    _identity, _kind = ("profile", "number"), "action_profiles"

    @classmethod
    def _found(cls, client: Client, place: str) -> Iterable[Self]:
        return (cls(place, number, *group) for number, group in client.profile_groups(place).items())

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the group in a switch."""
        if verb == "delete":
            client.delete_profile_group(self.profile, self.number)
            return
        more = {"watch_ports": self.watch_ports, "max_size": self.max_size}
        client.profile_group(self.profile, self.number, self.members, verb=verb, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class MulticastGroup(_Object):
    """A multicast group."""

    number: int
    replicas: Replicas
    _identity = ("number",)

    @classmethod
    def read(cls, client: Client, places: Collection[int]) -> list[Self]:
        """Return the multicast groups with these numbers."""
        return [cls(number, tuple(to)) for number, to in client.multicast_groups().items() if number in places]

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the group in a switch."""
        client.multicast_group(self.number, () if verb == "delete" else self.replicas, verb=verb)


@dataclass(frozen=True)
class CloneSession(_Object):
    """A clone session. Clones are truncated to ``packet_length_bytes``; 0 means that they are not."""

    number: int
    replicas: Replicas
    packet_length_bytes: int = 0
    class_of_service: int = 0
    _identity = ("number",)

    @classmethod
    def read(cls, client: Client, places: Collection[int]) -> list[Self]:
        """Return the clone sessions with these numbers."""
        found = client.clone_session_settings().items()
        return [cls(number, tuple(to), *settings) for number, (to, *settings) in found if number in places]

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the session in a switch."""
        settings = () if verb == "delete" else (self.packet_length_bytes, self.class_of_service)
        client.clone_session(self.number, () if verb == "delete" else self.replicas, *settings, verb=verb)


@dataclass(frozen=True)
class Digest(_Object):
    """An enabled digest."""

    name: str
    max_timeout_ns: int = 0
    max_list_size: int = 1
    ack_timeout_ns: int = 0
    _kind = "digests"

    @classmethod
    def _found(cls, client: Client, place: str) -> Iterable[Self]:
        settings = client.digest_settings(place)
        return () if settings is None else [cls(place, *settings)]

    def write(self, client: Client, verb: Verb) -> None:
        """Enable, configure or disable the digest in a switch."""
        if verb == "delete":
            client.disable_digest(self.name)
            return
        sizes = {"max_list_size": self.max_list_size, "ack_timeout_ns": self.ack_timeout_ns}
        client.enable_digest(self.name, max_timeout_ns=self.max_timeout_ns, verb=verb, **sizes)


@dataclass(frozen=True)
class ValueSet(_Object):
    """The members of a parser value set of one exact field."""

    name: str
    members: frozenset[int]
    _kind = "value_sets"

    @classmethod
    def _found(cls, client: Client, place: str) -> Iterable[Self]:
        members = client.value_set(place)
        return [cls(place, frozenset(members))] if members else ()

    def write(self, client: Client, verb: Verb) -> None:
        """Set the members of the value set in a switch, or remove them."""
        client.set_value_set(self.name, () if verb == "delete" else sorted(self.members))


@dataclass(frozen=True)
class DefaultAction(_Object):
    """The action that a table runs when no entry matches. One that is not wanted is the program's."""

    name: str
    action: str
    params: Params = field(default_factory=dict)
    _kind = "tables"

    @classmethod
    def _found(cls, client: Client, place: str) -> Iterable[Self]:
        entry = client.read_default(place)
        return () if entry.is_initial else [cls(place, entry.action, entry.params)]

    def write(self, client: Client, verb: Verb) -> None:
        """Set the default action in a switch, or reset it."""
        if verb == "delete":
            client.reset_default(self.name)
        else:
            client.set_default(self.name, self.action, self.params)


class _Cell(_Object):
    """A cell of an array. Its place is the array's name and the index; the place with the index None is the whole array."""

    _identity = ("name", "index")

    @property
    def place(self) -> tuple[str, int | None]:
        """The place that :meth:`read` reads."""
        _, name, index = self.key
        return name, index


@dataclass(frozen=True)
class Register(_Cell):
    """A cell of a register. One that is not wanted is zero."""

    name: str
    index: int
    value: int
    _kind = "registers"

    @classmethod
    def _found(cls, client: Client, place: tuple[str, int | None]) -> Iterable[Self]:
        return (cls(place[0], index, value) for index, value in client.registers(*place).items() if value)

    def write(self, client: Client, verb: Verb) -> None:
        """Set the cell in a switch; to zero if the register is not wanted any more."""
        client.write_register(self.name, self.index, 0 if verb == "delete" else self.value)


@dataclass(frozen=True)
class Counter(_Cell):
    """A cell of a counter that begins anew. What packets have counted is nothing that a switch is to hold, nor read."""

    name: str
    index: int
    _kind = "counters"

    def write(self, client: Client, verb: Verb) -> None:
        """Set the cell to zero."""
        client.write_counter(self.name, self.index)


@dataclass(frozen=True)
class Meter(_Cell):
    """The rates of a meter's cell, or with the index None of all its cells."""

    name: str
    index: int | None
    rates: Rates
    _kind = "meters"

    @classmethod
    def _found(cls, client: Client, place: tuple[str, int | None]) -> Iterable[Self]:
        """Return the cells at a place that have rates; one object for a whole meter whose cells all have the same rates."""
        name, at = place
        cells: Mapping[int, Rates | None] = client.meter_rates(name, at)
        one = set(cells.values())
        found = [(None, one.pop())] if at is None and len(one) == 1 else cells.items()
        return (cls(name, index, rates) for index, rates in found if rates is not None)

    def write(self, client: Client, verb: Verb) -> None:
        """Configure the meter in a switch, or turn it off."""
        client.configure_meter(self.name, self.index, None if verb == "delete" else self.rates)
