"""Handles of table entries, by which BMv2's interfaces name them and which P4Runtime has not.

An entry that is added here keeps its handle in its metadata; one that a controller added has a number that holds while the table
stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.bmv2.runtime_commands import CommandError
from holdfast.numerals import is_numeral
from holdfast.p4runtime.client import Client
from holdfast.p4runtime.p4info import Table
from holdfast.p4runtime.received import Entry

_HANDLE = b"bmv2 handle "
_FOREIGN = 1 << 24
"""The first of the handles that are made up for entries of other clients, which carry none."""


def metadata(handle: int) -> bytes:
    """Return the metadata of an entry that has a handle."""
    return _HANDLE + b"%d" % handle


def entries(client: Client, table: Table) -> list[tuple[int, Entry]]:
    """Return the entries of a table, each with its handle, in the order of the handles."""
    found, foreign = [], _FOREIGN
    for entry in client.read_table(table.name):
        if entry.is_default:
            continue
        handle = _handle_of(entry)
        if handle is None:
            handle, foreign = foreign, foreign + 1
        found.append((handle, entry))
    return sorted(found, key=lambda each: each[0])


def entry(client: Client, table: Table, handle: int) -> Entry:
    """Return the entry of a table that has a handle. Raises :class:`CommandError` if there is none."""
    for at, found in entries(client, table):
        if at == handle:
            return found
    raise CommandError(f"table '{table.name}' has no entry with handle {handle}")


def free_entry(client: Client, table: Table) -> int:
    """Return the lowest handle that no entry of a table has."""
    used = {handle for handle, _ in entries(client, table)}
    return next(at for at in range(len(used) + 1) if at not in used)


def free(used: Iterable[int]) -> int:
    """Return the lowest positive number that is not used, as ids of members and groups are."""
    taken = set(used)
    return next(at for at in range(1, len(taken) + 2) if at not in taken)


def _handle_of(found: Entry) -> int | None:
    text = found.metadata.removeprefix(_HANDLE).decode("latin-1")
    return int(text) if found.metadata.startswith(_HANDLE) and is_numeral(text) else None


__all__ = ["entries", "entry", "free", "free_entry", "metadata"]
