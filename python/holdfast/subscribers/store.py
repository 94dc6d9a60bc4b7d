"""Sessions and accounting records on disk (SQLite), so that neither ends with the process.

A call's writes outlive a kill of the process; accounting records may share a write that comes soon. After a crash of the
machine, the last moments may be missing.

A disk that fails ends nothing: who asks is told that a session cannot be kept, records wait in memory, and what waits is written
again until the disk takes it. A file that is damaged is put aside, and what can be read of it is taken over.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice, takewhile
from pathlib import Path

from holdfast import private_files
from holdfast.errors import LiveError
from holdfast.subscribers import store_rows
from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.keeping import Stored
from holdfast.subscribers.store_rows import DamagedRowError

log = logging.getLogger(__name__)

_VERSION = 4
"""Version 1 had identities as text, version 2 rows without checksums; before 4, all sessions were forwarding ones."""
_MOST_RECENT = 1024
"""Accounting records that are also kept in memory, so that those that are sent at once need not be read back."""
_MOST_UNWRITTEN = 65_536
"""Accounting records that wait in memory for a disk that fails."""
_RETRY_S = 1.0
_CHUNK = 1024
"""Waiting records that are written in one transaction."""
_MOST_IDS = 0xFFFF
"""The largest number of a session (RFC 2516, section 4)."""
_LONGEST = 1 << 32
"""Bytes of a whole file at most, as its head says; one that says more is not made longer when it was cut."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY, state TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS accounting (number INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS damaged (what TEXT NOT NULL, number INTEGER, content BLOB) STRICT;
"""
_COLUMNS = {"session": ("id", "state"), "accounting": ("number", "record")}
_JOURNALS = ("-wal", "-journal")
_LOG_MAGICS = (bytes.fromhex("377f0682"), bytes.fromhex("377f0683"))
"""The first bytes of a write-ahead log."""
_UNREADABLE = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)

Later = Callable[[float, Callable[[], None]], object]
"""Has a function called after so many seconds."""


class _DamagedError(Exception):
    """The file is no database, or one whose pages do not fit together."""


class SqliteStore:
    """A :class:`holdfast.subscribers.keeping.Store` and a :class:`holdfast.subscribers.accounting_delivery.Queue` in one file.

    ``most_records``: beyond so many waiting accounting records, interim ones are dropped. ``dropped`` counts them, and those that
    had no room in memory while the disk failed. ``failures`` counts writes that failed, ``damaged`` what could not be read.
    """

    def __init__(
        self,
        path: Path,
        most_records: int = 1_000_000,
        later: Later | None = None,
        say: Callable[[str], object] = log.warning,
    ) -> None:
        """Open or create the file, with mode 0600.

        Raises :class:`LiveError` if that fails, or if the file is of another version or in use. ``later`` lets many records share
        one write; without it, each record is written at once. ``say`` is called with messages about failures.
        """
        self._path, self._most_records, self._later, self._say = path, most_records, later, say
        self.dropped = self.failures = self.damaged = 0
        self._failing = self._closed = self._waiting = False
        self._replaced = False
        self._files: dict[Path, int] = {}
        """The file and its journal, with their inode numbers."""
        self._unwritten: dict[int, tuple[Kind, str]] = {}
        self._done: set[int] = set()
        """Numbers of records that the disk has and that are to go from it."""
        self._together = False
        self._gone: set[int] = set()
        """Sessions that are to go from the disk in one transaction with records that wait."""
        self._aside: dict[tuple[str, int], bytes] = {}
        """Damaged rows that are still to be moved into the table of damaged rows."""
        self._recent: dict[int, Record] = {}
        """The last records that were put, unless they are done: all of them beyond ``_before``."""
        try:
            self._database = self._opened_or_replaced()
            self._length: int = self._database.execute("SELECT count(*) FROM accounting").fetchone()[0]
            self._before: int = self._database.execute("SELECT max(number) FROM accounting").fetchone()[0] or 0
            given = self._database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'accounting'").fetchone()
        except sqlite3.Error as error:
            raise LiveError(f"{path}: {error}") from None
        self._last = self._tried = max(self._before, given[0] if given else 0)
        with suppress(OSError):
            self._check_files()

    def close(self) -> None:
        """Write all pending changes and close the file."""
        with suppress(LiveError):
            while self._open:
                self._write((), ())
        self._database.close()
        self._closed = True

    def commit(self) -> None:
        """Write pending changes; if the disk fails, schedule another attempt. After :meth:`close`, do nothing."""
        self._waiting = False
        if not self._closed and self._open:
            with suppress(LiveError):
                self._write((), ())
                self._write_soon()

    # Store

    def load(self) -> list[Stored]:
        """Return all sessions, ordered by number. A damaged row is logged and moved to the table of damaged rows."""
        found: list[Stored] = []
        rows = self._database.execute("SELECT id, CAST(state AS BLOB) FROM session ORDER BY id")
        for number, text in _all(rows):
            try:
                found.append(store_rows.stored(number, text))
            except DamagedRowError as error:
                self._put_aside("session", number, text, error)
        return found

    def save(self, put: Iterable[Stored], drop: Iterable[int]) -> None:
        """Write and delete sessions in one transaction.

        Raises :class:`LiveError` if the disk fails, or if a session cannot be encoded. Pending records are written in the same
        transaction. See :meth:`together`.
        """
        gone = set(drop)
        if self._together:
            self._gone |= gone
        try:
            rows = [(each.grant.session.session_id, store_rows.row_of(each)) for each in put]
        except (ValueError, TypeError, AttributeError) as error:
            raise LiveError(f"{self._path}: it cannot be written: {error}") from None
        if gone or rows:
            self._write(gone, rows)

    # Queue

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write records that are put within the context in one transaction with the sessions written and deleted within it.

        If the disk fails, the records and the sessions to delete wait for the next transaction that succeeds. If the context ends
        with an exception, only what was saved within it stays.
        """
        before, self._together = self._last, True
        try:
            yield
        except BaseException:
            for number in [each for each in self._unwritten if each > before]:
                self.done(number)
            raise
        finally:
            self._together = False
        self._write_soon()

    def put(self, record: Record) -> None:
        """Add an accounting record to memory, and to the disk at once or soon; a full queue drops interim records."""
        full = self._length >= self._most_records or len(self._unwritten) >= _MOST_UNWRITTEN
        if full and record.kind is Kind.INTERIM:
            self.dropped += 1
            return
        if len(self._unwritten) >= _MOST_UNWRITTEN:
            self._make_room()
        self._last += 1
        self._length += 1
        self._unwritten[self._last] = record.kind, store_rows.row_of(record)
        self._recent[self._last] = record
        self._write_soon()
        while len(self._recent) > _MOST_RECENT and (oldest := next(iter(self._recent))) not in self._unwritten:
            self._before = oldest
            del self._recent[oldest]

    def after(self, number: int, most: int) -> list[tuple[int, Record]]:
        """Return up to ``most`` records numbered above ``number``. A damaged row is logged and moved, as in :meth:`load`."""
        found: list[tuple[int, Record]] = []
        while number < self._before and not found:
            rows = self._rows_after(number, most)
            if not rows:
                break
            for number, text in rows:
                if number in self._done or ("accounting", number) in self._aside:
                    continue
                try:
                    found.append((number, store_rows.record(text)))
                except DamagedRowError as error:
                    self._length -= 1
                    self._put_aside("accounting", number, text, error)
        if found:
            return found
        newest_first = takewhile(lambda each: each[0] > number, reversed(self._recent.items()))
        return list(newest_first)[: -most - 1 : -1]

    def done(self, number: int) -> None:
        """Remove the accounting record with this number."""
        known = self._unwritten.pop(number, None) is not None
        if number <= self._tried and number not in self._done:
            # A write that failed may have reached the disk.
            known = known or number in self._recent or self._has(number)
            self._done.add(number)
            self._write_soon()
        self._recent.pop(number, None)
        self._length -= known

    def __len__(self) -> int:
        return self._length

    # The rest is the store's own.

    @property
    def _open(self) -> bool:
        """True if there are changes that are not on disk yet."""
        return bool(self._unwritten or self._done or self._aside or self._gone)

    def _write(self, gone: Collection[int], rows: Sequence[tuple[int, str]]) -> None:
        """Delete and write sessions, and write pending records, in one transaction. Raises :class:`LiveError` if the disk fails.

        ``gone``: the ids of sessions to delete; ``rows``: the id and row of each session to write. Without sessions, at most
        ``_CHUNK`` pending records are written; with sessions, all, so that a session's records are written together with it. A
        damaged file is replaced once, and the write repeated.
        """
        whole = bool(rows or gone or self._gone)
        records = list(islice(self._unwritten.items(), None if whole else _CHUNK))
        done, aside = list(islice(self._done, _CHUNK)), list(self._aside.items())
        self._tried = max(self._tried, *(number for number, _ in records), 0)
        try:
            self._check_files()
            self._transact(
                [(each,) for each in sorted(self._gone.union(gone))],
                rows,
                [(number, row) for number, (_, row) in records],
                done,
                aside,
            )
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            if _is_damage(error) and not self._replaced:
                self._replaced = True
                self._database.close()
                self._database = self._replacement(str(error))
                self._files = {}
                self._recall()
                self._write(gone, rows)
                return
            self._failed(error)
            raise LiveError(f"{self._path}: {error}") from None
        for number, _ in records:
            self._unwritten.pop(number, None)
        self._gone.clear()
        self._done.difference_update(done)
        for key, _ in aside:
            self._aside.pop(key, None)
        if self._failing:
            self._failing = False
            self._say(f"{self._path}: the disk takes writes again")

    def _check_files(self) -> None:
        """Raise OSError if the file or its journal is not at its path any more: what is written to it then, no restart finds."""
        if str(self._path) == ":memory:":
            return
        for part in (self._path, self._path.with_name(self._path.name + _JOURNALS[0])):
            found = part.stat(follow_symlinks=False)
            if self._files.setdefault(part, found.st_ino) != found.st_ino:
                raise OSError(f"somebody has put another {part.name} in its place")

    def _recall(self) -> None:
        """Schedule a write of the records that are still in memory into a new file, which may lack some of them."""
        for number, each in self._recent.items():
            self._unwritten.setdefault(number, (each.kind, store_rows.row_of(each)))
        self._unwritten = dict(sorted(self._unwritten.items()))
        first = next(iter(self._unwritten), self._last + 1)
        before = self._database.execute("SELECT number FROM accounting WHERE number < ?", (first,)).fetchall()
        self._length = len(self._unwritten) + len({number for (number,) in before} - self._done)

    def _transact(
        self,
        gone: Sequence[tuple[int]],
        rows: Sequence[tuple[int, str]],
        records: Sequence[tuple[int, str]],
        done: Sequence[int],
        aside: Sequence[tuple[tuple[str, int], bytes]],
    ) -> None:
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("DELETE FROM session WHERE id = ?", gone)
            database.executemany("INSERT OR REPLACE INTO session VALUES (?, ?)", rows)
            database.executemany("INSERT OR REPLACE INTO accounting VALUES (?, ?)", records)
            database.executemany("DELETE FROM accounting WHERE number = ?", [(each,) for each in done])
            for (table, number), content in aside:
                key, column = _COLUMNS[table]
                same = f"WHERE {key} = ? AND CAST({column} AS BLOB) = ?"
                database.execute("INSERT INTO damaged VALUES (?, ?, ?)", (table, number, content))
                database.execute(f"DELETE FROM {table} {same}", (number, content))
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if database.in_transaction:
                    database.execute("ROLLBACK")
            raise

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if not self._failing:
            self._failing = True
            self._say(
                f"{self._path}: {error}: no session begins, and accounting waits in memory, until it can be written"
            )
        if self._later is not None:
            self._write_soon()

    def _write_soon(self) -> None:
        """Schedule a write of pending changes, after ``_RETRY_S`` seconds if the disk failed; without ``later``, write at once."""
        if not self._open or self._together:
            return
        if self._later is None:
            self.commit()
        elif not self._waiting:
            self._waiting = True
            self._later(_RETRY_S if self._failing else 0.0, self.commit)

    def _make_room(self) -> None:
        """Drop the oldest interim record that is not yet on disk, or the oldest record if there is no interim record."""
        oldest = next(iter(self._unwritten))
        interim = (number for number, (kind, _) in self._unwritten.items() if kind is Kind.INTERIM)
        self.done(next(interim, oldest))
        self.dropped += 1

    def _has(self, number: int) -> bool:
        with suppress(sqlite3.Error):
            return self._database.execute("SELECT 1 FROM accounting WHERE number = ?", (number,)).fetchone() is not None
        return False

    def _rows_after(self, number: int, most: int) -> list[tuple[int, bytes]]:
        rows = "SELECT number, CAST(record AS BLOB) FROM accounting WHERE number > ? ORDER BY number LIMIT ?"
        try:
            return self._database.execute(rows, (number, most + len(self._done))).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._failed(error)
            return []

    def _put_aside(self, what: str, number: int, text: bytes, error: DamagedRowError) -> None:
        self.damaged += 1
        self._say(f"{self._path}: {what} {number} is damaged and not used ({error})")
        self._aside[what, number] = text
        self._write_soon()

    def _opened_or_replaced(self) -> sqlite3.Connection:
        """Open the file. If it is damaged, rename it and copy what can be read from it into a new file."""
        try:
            return _opened(self._path)
        except _DamagedError as damage:
            return self._replacement(str(damage))

    def _replacement(self, damage: str) -> sqlite3.Connection:
        aside = _put_file_aside(self._path)
        try:
            database = _opened(self._path)
            counts = _salvage(aside, database)
        except _DamagedError as error:
            raise LiveError(f"{self._path}: {error}") from None
        self.damaged += 1
        self._say(
            f"{self._path} is damaged ({damage}): it is {aside.name} now, and {counts['session']} sessions and "
            f"{counts['accounting']} accounting records could be read of it"
        )
        return database


def _opened(path: Path) -> sqlite3.Connection:
    """Open or create the file. Raises :class:`_DamagedError` for a damaged file, else :class:`LiveError` or sqlite3.Error."""
    _make_private(path)  # also empty journals: while they are there, nobody else can make them
    if _is_headless_beside_log(path):
        raise _DamagedError("it has no header, and its journal is not empty")  # SQLite would delete the journal
    database = sqlite3.connect(path, isolation_level=None, timeout=1)
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        _check_journals(path)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in range(_VERSION + 1):
            raise LiveError(f"{path}: it has version {version}, and this program knows version {_VERSION}")
        [(verdict,), *_] = database.execute("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise _DamagedError(" ".join(verdict.split()))
        if version != _VERSION:
            _bring_up(database, version)
        for table, (key, column) in _COLUMNS.items():
            database.execute(f"SELECT {key}, {column} FROM {table} LIMIT 0")
    except BaseException as error:
        database.close()
        # A file without our tables, or with others, is not ours: SQLITE_ERROR.
        if _is_damage(error) or _code(error) in (*_UNREADABLE, sqlite3.SQLITE_ERROR):
            raise _DamagedError(str(error)) from None
        raise
    return database


def _code(error: BaseException) -> int:
    """Return SQLite's extended code of an error; 0 for an error without a code, such as one of Python's own module."""
    if isinstance(error, UnicodeDecodeError):  # the text of SQLite's error has damaged names in it
        return sqlite3.SQLITE_CORRUPT
    return getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_OK


def _is_damage(error: BaseException) -> bool:
    return _code(error) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _make_private(path: Path) -> None:
    """Create the file and its journals so that this user alone can read and lock them.

    Raises :class:`LiveError` if one of them is a link or another user's, or if another user could put one there later: SQLite
    trusts what it finds in a journal.
    """
    if str(path) == ":memory:":
        return
    private_files.check_directory(path)
    private_files.make(path)
    for part in _parts(path)[1:]:
        if private_files.check(part) or part.name.endswith(_JOURNALS):
            private_files.make(part)


def _check_journals(path: Path) -> None:
    """Raise :class:`LiveError` if SQLite's journal is missing or another user's, so that somebody has replaced it meanwhile."""
    if str(path) == ":memory:":
        return
    log, rollback = (path.with_name(path.name + end) for end in _JOURNALS)
    if not private_files.check(log):
        raise LiveError(f"{log}: somebody has removed it")
    if private_files.check(rollback):
        rollback.unlink()  # none is written beside the other one


def _is_headless_beside_log(path: Path) -> bool:
    """Return True for a file shorter than SQLite's header beside a journal that is not empty."""
    log = path.with_name(path.name + _JOURNALS[0])
    return path.exists() and path.stat().st_size < 100 and log.exists() and log.stat().st_size > 0


def _parts(path: Path) -> list[Path]:
    """Return the paths of the database file and of the files that SQLite keeps beside it."""
    return [path, *(path.with_name(path.name + end) for end in ("-shm", *_JOURNALS))]


def _bring_up(database: sqlite3.Connection, version: int) -> None:
    """Create the tables, and convert a file of version 1, in one transaction. Rows that cannot be read stay unchanged."""
    database.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, _SCHEMA.split(";")):
        database.execute(statement)
    for table, (key, column) in _COLUMNS.items() if version == 1 else ():
        for row, text in _all(database.execute(f"SELECT {key}, CAST({column} AS BLOB) FROM {table}")):
            with suppress(DamagedRowError):
                changed = store_rows.of_version_1(text)
                database.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (changed, row))
    database.execute(f"PRAGMA user_version = {_VERSION}")
    database.execute("COMMIT")


def _all(rows: sqlite3.Cursor) -> list[tuple[int, bytes]]:
    return [(number, bytes(text)) for number, text in rows]


def _put_file_aside(path: Path) -> Path:
    """Rename a damaged file and its journals to a name with the time; return the new path.

    Raises :class:`LiveError` if it fails.
    """
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (f"{path.name}.damaged-{moment}{suffix}" for suffix in ("", *(f".{i}" for i in range(2, 1000))))
    aside = next(found for name in names if not (found := path.with_name(name)).exists())
    try:
        for part, there in zip(_parts(path), _parts(aside), strict=True):
            with suppress(FileNotFoundError):
                part.rename(there)
    except OSError as error:
        raise LiveError(f"{path}: it is damaged, and cannot be put aside: {error.strerror}") from None
    return aside


def _salvage(aside: Path, database: sqlite3.Connection) -> dict[str, int]:
    """Copy the readable and undamaged rows of a damaged file into a new database; return the number of rows by table."""
    counts = dict.fromkeys(_COLUMNS, 0)
    _make_private(aside)
    _lengthen(aside)
    with closing(sqlite3.connect(aside, isolation_level=None, timeout=1)) as damaged:
        database.execute("BEGIN IMMEDIATE")
        for table, check in (("session", store_rows.stored), ("accounting", lambda _, text: store_rows.record(text))):
            for number, text in _readable(damaged, table).items():
                with suppress(DamagedRowError):
                    check(number, text)
                    database.execute(f"INSERT INTO {table} VALUES (?, ?)", (number, text.decode()))
                    counts[table] += 1
        database.execute("COMMIT")
    return counts


def _lengthen(aside: Path) -> None:
    """Extend a truncated file to the length in its header, as SQLite reads nothing of a file that is shorter.

    Extend one without a header beside a journal to one page, as SQLite reads no journal of an empty file.
    """
    if _is_headless_beside_log(aside):
        with aside.with_name(aside.name + _JOURNALS[0]).open("rb") as log:
            head = log.read(12)
        if head[:4] in _LOG_MAGICS:
            with aside.open("rb+") as file:
                file.truncate(min(int.from_bytes(head[8:], "big"), 1 << 16))
        return
    with aside.open("rb+") as file:
        head = file.read(32)
        wanted = int.from_bytes(head[16:18], "big") * int.from_bytes(head[28:32], "big")
        if head.startswith(b"SQLite format 3\0") and aside.stat().st_size < wanted <= _LONGEST:
            file.truncate(wanted)


def _readable(damaged: sqlite3.Connection, table: str) -> dict[int, bytes]:
    """Return the rows of a damaged table that can be read, by number; only rows on damaged pages are missing."""
    key, column = _COLUMNS[table]
    select = f"SELECT {key}, CAST({column} AS BLOB) FROM {table}"
    found: dict[int, bytes] = {}
    stops = []
    for order in ("ASC", "DESC"):
        number = 0
        try:
            for number, text in damaged.execute(f"{select} ORDER BY {key} {order}"):
                found[number] = text
        except (sqlite3.Error, UnicodeDecodeError):
            stops.append(number)
            continue
        break
    if len(stops) == 2:
        last, first = stops
        for number in range(last + 1, min(first, last + 1 + _MOST_IDS)):
            with suppress(sqlite3.Error, UnicodeDecodeError):
                found.update(damaged.execute(f"{select} WHERE {key} = ?", (number,)).fetchall())
    return {number: text for number, text in found.items() if isinstance(text, bytes)}
