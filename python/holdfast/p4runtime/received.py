"""A device's answers to a client, in values for people: entries as read, packets, digests, and the rest of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.p4runtime.p4data import Plain


@dataclass(frozen=True)
class Entry:
    """A table entry as read.

    A match is an int for exact and optional fields, else (value, prefix_len), (value, mask) or (low, high). Fields and
    parameters that P4Info has as strings are strings.
    """

    table: str
    match: dict[str, int | str | tuple[int, int]]
    action: str
    params: dict[str, int | str]
    priority: int = 0
    is_default: bool = False
    is_const: bool = False
    counter: tuple[int, int] | None = None
    """(packets, bytes), if the table has a direct counter."""
    metadata: bytes = b""
    idle_timeout_ns: int = 0
    member: int | None = None
    """In a table with an action profile or selector: a member, or"""
    group: int | None = None
    """a group of them (``action`` is empty then)."""
    rates: tuple[int, int, int, int] | None = None
    """cir, cburst, pir and pburst of the entry's direct meter."""
    is_initial: bool = False
    """True if it is a default action, and the program's own."""


@dataclass(frozen=True)
class Member:
    """A member of a table's action profile or selector, in place of an action."""

    id: int


@dataclass(frozen=True)
class Group:
    """A group of a table's action selector, in place of an action."""

    id: int


@dataclass(frozen=True)
class IdleEntries:
    """Entries that were idle for as long as their timeout: table, match and priority of each, no action."""

    entries: list[Entry]
    timestamp_ns: int


@dataclass(frozen=True)
class PacketIn:
    """A packet for the controller. Metadata are numbers, or strings of types that are translated to strings."""

    payload: bytes
    metadata: dict[str, Any]


@dataclass(frozen=True)
class DigestList:
    """Digest messages of one kind. Struct members by name. Acknowledge with :meth:`Client.acknowledge`."""

    digest: str
    list_id: int
    values: list[Plain]
    timestamp_ns: int


@dataclass(frozen=True)
class Arbitration:
    """An answer of the device to an arbitration: whether this client is the primary, and the highest election id."""

    is_primary: bool
    status: str
    """OK for the primary; ALREADY_EXISTS if it is another client; NOT_FOUND if there is none."""
    election_id: int | None


@dataclass(frozen=True)
class StreamError:
    """A message of this client that the device dropped, and why."""

    code: str
    message: str


Event: TypeAlias = PacketIn | DigestList | IdleEntries | Arbitration | StreamError
