"""Sessions and accounting records on disk (SQLite), so that neither ends with the process.

A call's writes outlive a kill of the process; accounting records may share a write that comes soon. After a crash of the
machine, the last moments may be missing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from itertools import takewhile
from pathlib import Path
from typing import Any

from holdfast.errors import LiveError
from holdfast.subscribers.accounting import Cause, Kind, Record
from holdfast.subscribers.changes import Stored
from holdfast.subscribers.dhcpv6_pd import Binding, Bound
from holdfast.subscribers.plane import Line, Rates, Session, Usage
from holdfast.subscribers.session import Grant

_VERSION = 2
"""Version 1 had identities as text."""
_MOST_RECENT = 1024
"""Accounting records that are also kept in memory, so that those that are sent at once need not be read back."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY, state TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS accounting (number INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL) STRICT;
"""


class SqliteStore:
    """A :class:`holdfast.subscribers.gateway.Store` and a :class:`holdfast.subscribers.accounting_delivery.Queue` in one file.

    ``most_records``: beyond so many waiting accounting records, interim ones are dropped, and counted in ``dropped``.
    ``later``: has :meth:`commit` called soon, so that many records share one write; without it, each is written at once.
    """

    def __init__(
        self,
        path: Path,
        most_records: int = 1_000_000,
        later: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """Opens or makes the file. Raises :class:`LiveError` if it cannot, or if another version or process has it."""
        self._most_records = most_records
        self._later = later
        self.dropped = 0
        self._closed = False
        self._recent: dict[int, Record] = {}
        """The last records that were put, unless they are done: all of them beyond ``_before``."""
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=1)
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, 1, _VERSION):
                raise LiveError(f"{path}: it has version {version}, and this program knows version {_VERSION}")
            self._database.executescript(_SCHEMA)
            if version == 1:
                _from_version_1(self._database)
            self._database.execute(f"PRAGMA user_version = {_VERSION}")
            self._length: int = self._database.execute("SELECT count(*) FROM accounting").fetchone()[0]
            self._before: int = self._database.execute("SELECT max(number) FROM accounting").fetchone()[0] or 0
        except sqlite3.Error as error:
            raise LiveError(f"{path}: {error}") from None

    def close(self) -> None:
        """Writes what is open and closes the file."""
        self.commit()
        self._database.close()
        self._closed = True

    def commit(self) -> None:
        """Writes what is open; after the end, nothing."""
        if not self._closed and self._database.in_transaction:
            self._database.execute("COMMIT")

    def _change(self, statement: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        """Changes rows soon."""
        if self._later is not None and not self._database.in_transaction:
            self._database.execute("BEGIN")
            self._later(self.commit)
        return self._database.execute(statement, values)

    # Store

    def load(self) -> list[Stored]:
        """All sessions, by number."""
        rows = self._database.execute("SELECT state FROM session ORDER BY id")
        return [_stored(json.loads(state)) for (state,) in rows]

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        """Keeps and forgets sessions in one transaction."""
        gone = [(each,) for each in drop]
        rows = [(each.grant.session.session_id, _dump(each)) for each in put]
        if not gone and not rows:
            return
        if not self._database.in_transaction:
            self._database.execute("BEGIN")
        self._database.executemany("DELETE FROM session WHERE id = ?", gone)
        self._database.executemany("INSERT OR REPLACE INTO session VALUES (?, ?)", rows)
        self.commit()

    # Queue

    def put(self, record: Record) -> None:
        """Keeps a record."""
        if self._length >= self._most_records and record.kind is Kind.INTERIM:
            self.dropped += 1
            return
        number = self._change("INSERT INTO accounting (record) VALUES (?)", (_dump(record),)).lastrowid
        assert number is not None
        self._length += 1
        self._recent[number] = record
        if len(self._recent) > _MOST_RECENT:
            self._before = next(iter(self._recent))
            del self._recent[self._before]

    def after(self, number: int, most: int) -> list[tuple[int, Record]]:
        """The first records beyond a number."""
        if number >= self._before:
            newest_first = takewhile(lambda each: each[0] > number, reversed(self._recent.items()))
            return list(newest_first)[: -most - 1 : -1]
        rows = self._database.execute(
            "SELECT number, record FROM accounting WHERE number > ? ORDER BY number LIMIT ?", (number, most)
        )
        return [(each, _record(json.loads(text))) for each, text in rows]

    def done(self, number: int) -> None:
        """Forgets a record."""
        self._length -= self._change("DELETE FROM accounting WHERE number = ?", (number,)).rowcount
        self._recent.pop(number, None)

    def __len__(self) -> int:
        return self._length


_IDENTITIES = ("user", "circuit_id", "remote_id", "service", "called", "chargeable")
"""Fields of bytes, of records, sessions and grants."""


def _from_version_1(database: sqlite3.Connection) -> None:
    """Rewrites a file of version 1, all of it or nothing."""

    def bytes_of(values: dict[str, Any]) -> dict[str, Any]:
        found = {name: each.encode().hex() if name in _IDENTITIES else each for name, each in values.items()}
        return found | ({"grant": bytes_of(found["grant"])} if "grant" in found else {})

    database.execute("BEGIN")
    for table, key, column in (("session", "id", "state"), ("accounting", "number", "record")):
        for row, text in database.execute(f"SELECT {key}, {column} FROM {table}").fetchall():
            changed = _encode(bytes_of(json.loads(text)))
            database.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (changed, row))
    database.execute(f"PRAGMA user_version = {_VERSION}")
    database.execute("COMMIT")


_encode = json.JSONEncoder(separators=(",", ":")).encode


def _dump(value: Stored | Record) -> str:
    fields = _texts(value)
    if isinstance(value, Stored):
        grant = value.grant
        fields["grant"] = _texts(grant) | {
            "session": _plain(grant.session),
            "dns": [str(each) for each in grant.dns],
            "dns6": [str(each) for each in grant.dns6],
            "classes": [each.hex() for each in grant.classes],
        }
        fields["interface"] = None if value.interface is None else value.interface.hex()
        if isinstance(value.bound, Binding):
            fields["bound"] = {"client": value.bound.client.hex(), "iaid": value.bound.iaid.hex()}
    else:
        fields["session"] = None if value.session is None else _plain(value.session)
        fields["usage"] = vars(value.usage)
        fields["classes"] = [each.hex() for each in value.classes]
    return _encode(fields)


def _texts(value: Stored | Record | Grant) -> dict[str, Any]:
    """Its fields, with identities as hexadecimal digits."""
    return {name: each.hex() if name in _IDENTITIES else each for name, each in vars(value).items()}


def _identities(values: dict[str, Any]) -> dict[str, bytes]:
    return {name: bytes.fromhex(values[name]) for name in _IDENTITIES if name in values}


@lru_cache(maxsize=4096)
def _plain(session: Session) -> dict[str, object]:
    """A session as plain values: written several times while it is set up, and then again with its records."""
    addresses = ("ipv4", "ipv6_interface", "ipv6_prefix", "delegated")
    texts = {name: None if (value := getattr(session, name)) is None else str(value) for name in addresses}
    return vars(session) | texts | {"line": vars(session.line), "mac": session.mac.hex(), "rates": vars(session.rates)}


def _session(values: dict[str, Any]) -> Session:
    def address(name: str, kind: type[Any]) -> Any:
        return None if values[name] is None else kind(values[name])

    return Session(
        session_id=values["session_id"],
        line=Line(**values["line"]),
        mac=bytes.fromhex(values["mac"]),
        magic=values["magic"],
        peer_mru=values["peer_mru"],
        mss_clamp=values["mss_clamp"],
        ipv4=address("ipv4", IPv4Address),
        ipv6_interface=address("ipv6_interface", IPv6Address),
        ipv6_prefix=address("ipv6_prefix", IPv6Network),
        delegated=address("delegated", IPv6Network),
        rates=Rates(**values["rates"]),
    )


def _stored(values: dict[str, Any]) -> Stored:
    grant = values["grant"]
    interface = values["interface"]
    return Stored(
        **{
            **values,
            **_identities(values),
            "grant": Grant(
                **{
                    **grant,
                    **_identities(grant),
                    "session": _session(grant["session"]),
                    "dns": tuple(IPv4Address(each) for each in grant["dns"]),
                    "dns6": tuple(IPv6Address(each) for each in grant.get("dns6", ())),
                    "classes": tuple(bytes.fromhex(each) for each in grant["classes"]),
                }
            ),
            "interface": None if interface is None else bytes.fromhex(interface),
            "bound": _bound(values["bound"]),
        }
    )


def _bound(values: dict[str, str] | bool) -> Bound:
    return (
        values if isinstance(values, bool) else Binding(**{name: bytes.fromhex(each) for name, each in values.items()})
    )


def _record(values: dict[str, Any]) -> Record:
    return Record(
        **{
            **values,
            **_identities(values),
            "kind": Kind(values["kind"]),
            "session": None if values["session"] is None else _session(values["session"]),
            "usage": Usage(**values["usage"]),
            "cause": None if values["cause"] is None else Cause(values["cause"]),
            "classes": tuple(bytes.fromhex(each) for each in values["classes"]),
        }
    )
