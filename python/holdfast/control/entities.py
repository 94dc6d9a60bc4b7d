"""All that a switch can be told but table entries, as values: a switch returns the values that were written.

Each kind has a key, which identifies the object in its switch, and a place, which is what :meth:`read` reads. A program's tables,
meters, registers, value sets and digests always exist: to delete one's value is to give it back the program's initial one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.control.tables import has_table
from holdfast.p4runtime.client import Client, Rates, Verb

Replicas: TypeAlias = tuple[tuple[int, int], ...]
"""Egress port and instance of each copy."""

Cell: TypeAlias = tuple[str, int | None]
"""The name of an array and an index; None: all of its cells."""


class _Numbered:
    """An object whose place is its number: all objects of its kind are read at once."""

    number: int

    @property
    def key(self) -> tuple[type, int]:
        """The key of the object in its switch."""
        return type(self), self.number

    @property
    def place(self) -> int:
        """The place that :meth:`read` reads."""
        return self.number


class _Named:
    """An object of which the program has one by its name."""

    name: str

    @property
    def key(self) -> tuple[type, str]:
        """The key of the object in its switch."""
        return type(self), self.name

    @property
    def place(self) -> str:
        """The place that :meth:`read` reads."""
        return self.name


class _OfProfile:
    """An object of an action profile, whose place is the profile."""

    profile: str
    number: int

    @property
    def key(self) -> tuple[type, str, int]:
        """The key of the object in its switch."""
        return type(self), self.profile, self.number

    @property
    def place(self) -> str:
        """The place that :meth:`read` reads."""
        return self.profile


class _Cell:
    """A cell of an array, or with the index None all of them."""

    name: str
    index: int | None

    @property
    def key(self) -> tuple[type, str, int | None]:
        """The key of the object in its switch."""
        return type(self), self.name, self.index

    @property
    def place(self) -> Cell:
        """The place that :meth:`read` reads."""
        return self.name, self.index


@dataclass(frozen=True)
class ProfileMember(_OfProfile):
    """A member of an action profile or selector."""

    profile: str
    number: int
    action: str
    params: Mapping[str, int | str] = field(default_factory=dict)

    @classmethod
    def read(cls, client: Client, profiles: Iterable[str]) -> list[ProfileMember]:
        """Return the members of action profiles."""
        return [
            cls(profile, number, action, params)
            for profile in profiles
            if client.p4info.action_profiles.has(profile)
            for number, (action, params) in client.profile_members(profile).items()
        ]

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the member in a switch."""
        if verb == "delete":
            client.delete_profile_member(self.profile, self.number)
        else:
            client.profile_member(self.profile, self.number, self.action, self.params, verb=verb)


@dataclass(frozen=True)
class ProfileGroup(_OfProfile):
    """A group of an action selector. ``members``: weights by number; ``watch_ports``: ports by member."""

    profile: str
    number: int
    members: Mapping[int, int]
    watch_ports: Mapping[int, int] = field(default_factory=dict)
    max_size: int = 0

    @classmethod
    def read(cls, client: Client, profiles: Iterable[str]) -> list[ProfileGroup]:
        """Return the groups of action selectors."""
        there = [profile for profile in profiles if client.p4info.action_profiles.has(profile)]
        return [
            cls(profile, number, *found)
            for profile in there
            for number, found in client.profile_groups(profile).items()
        ]

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the group in a switch."""
        if verb == "delete":
            client.delete_profile_group(self.profile, self.number)
            return
        client.profile_group(
            self.profile, self.number, self.members, watch_ports=self.watch_ports, max_size=self.max_size, verb=verb
        )


@dataclass(frozen=True)
class MulticastGroup(_Numbered):
    """A multicast group."""

    number: int
    replicas: Replicas

    @classmethod
    def read(cls, client: Client, numbers: Collection[int]) -> list[MulticastGroup]:
        """Return the multicast groups with these numbers."""
        return [cls(number, tuple(to)) for number, to in client.multicast_groups().items() if number in numbers]

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the group in a switch."""
        client.multicast_group(self.number, () if verb == "delete" else self.replicas, verb=verb)


@dataclass(frozen=True)
class CloneSession(_Numbered):
    """A clone session. Clones are truncated to ``packet_length_bytes``; 0 means that they are not."""

    number: int
    replicas: Replicas
    packet_length_bytes: int = 0
    class_of_service: int = 0

    @classmethod
    def read(cls, client: Client, numbers: Collection[int]) -> list[CloneSession]:
        """Return the clone sessions with these numbers."""
        found = client.clone_session_settings().items()
        return [cls(number, tuple(to), *settings) for number, (to, *settings) in found if number in numbers]

    def write(self, client: Client, verb: Verb) -> None:
        """Insert, modify or delete the session in a switch."""
        if verb == "delete":
            client.delete_clone_session(self.number)
        else:
            client.clone_session(self.number, self.replicas, self.packet_length_bytes, self.class_of_service, verb=verb)


@dataclass(frozen=True)
class Digest(_Named):
    """An enabled digest."""

    name: str
    max_timeout_ns: int = 0
    max_list_size: int = 1
    ack_timeout_ns: int = 0

    @classmethod
    def read(cls, client: Client, names: Iterable[str]) -> list[Digest]:
        """Return the digests with these names that are enabled."""
        there = [name for name in names if client.p4info.digests.has(name)]
        return [cls(name, *found) for name in there if (found := client.digest_settings(name)) is not None]

    def write(self, client: Client, verb: Verb) -> None:
        """Enable, configure or disable the digest in a switch."""
        if verb == "delete":
            client.disable_digest(self.name)
            return
        client.enable_digest(
            self.name,
            max_timeout_ns=self.max_timeout_ns,
            max_list_size=self.max_list_size,
            ack_timeout_ns=self.ack_timeout_ns,
            verb=verb,
        )


@dataclass(frozen=True)
class ValueSet(_Named):
    """The members of a parser value set of one exact field."""

    name: str
    members: frozenset[int]

    @classmethod
    def read(cls, client: Client, names: Iterable[str]) -> list[ValueSet]:
        """Return the value sets with these names that have members."""
        there = [name for name in names if client.p4info.value_sets.has(name)]
        return [cls(name, frozenset(found)) for name in there if (found := client.value_set(name))]

    def write(self, client: Client, verb: Verb) -> None:
        """Set the members of the value set in a switch, or remove them."""
        client.set_value_set(self.name, () if verb == "delete" else sorted(self.members))


@dataclass(frozen=True)
class Register(_Cell):
    """A cell of a register. One that is not wanted is zero."""

    name: str
    index: int
    value: int

    @classmethod
    def read(cls, client: Client, cells: Iterable[Cell]) -> list[Register]:
        """Return the given cells that are not zero."""
        found = [(name, client.registers(name, at)) for name, at in cells if client.p4info.registers.has(name)]
        return [cls(name, index, value) for name, values in found for index, value in values.items() if value]

    def write(self, client: Client, verb: Verb) -> None:
        """Set the cell in a switch; to zero if the register is not wanted any more."""
        client.write_register(self.name, self.index, 0 if verb == "delete" else self.value)


@dataclass(frozen=True)
class Counter(_Cell):
    """A cell of a counter that begins anew. What packets have counted is nothing that a switch is to hold."""

    name: str
    index: int

    @classmethod
    def read(cls, client: Client, cells: Iterable[Cell]) -> list[Counter]:
        """Return no counter, as none is kept."""
        return []

    def write(self, client: Client, verb: Verb) -> None:
        """Set the cell to zero."""
        client.write_counter(self.name, self.index)


@dataclass(frozen=True)
class Meter(_Cell):
    """The rates of a meter's cell, or with the index None of all its cells."""

    name: str
    index: int | None
    rates: Rates

    @classmethod
    def read(cls, client: Client, cells: Iterable[Cell]) -> list[Meter]:
        """Return the given cells that have rates. If all cells of a meter are asked for and have the same, they are one."""
        found: list[Meter] = []
        for name, at in cells:
            rates = client.meter_rates(name, at) if client.p4info.meters.has(name) else {}
            one = set(rates.values())
            given = [(None, one.pop())] if at is None and len(one) == 1 else rates.items()
            found += [cls(name, index, value) for index, value in given if value is not None]
        return found

    def write(self, client: Client, verb: Verb) -> None:
        """Configure the meter in a switch, or turn it off."""
        client.configure_meter(self.name, self.index, None if verb == "delete" else self.rates)


@dataclass(frozen=True)
class DefaultAction(_Named):
    """The action that a table runs when no entry matches. One that is not wanted is the program's."""

    name: str
    action: str
    params: Mapping[str, int | str] = field(default_factory=dict)

    @classmethod
    def read(cls, client: Client, tables: Iterable[str]) -> list[DefaultAction]:
        """Return the default actions of tables that are not the program's."""
        found = [client.read_default(table) for table in tables if has_table(client, table)]
        return [cls(entry.table, entry.action, entry.params) for entry in found if not entry.is_initial]

    def write(self, client: Client, verb: Verb) -> None:
        """Set the default action in a switch, or reset it."""
        if verb == "delete":
            client.reset_default(self.name)
        else:
            client.set_default(self.name, self.action, self.params)
