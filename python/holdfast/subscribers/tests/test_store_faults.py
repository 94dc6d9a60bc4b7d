"""A state file on a disk that fails or lies: nothing is lost that memory has, and nothing comes back changed."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import LiveError
from holdfast.subscribers import store as stores
from holdfast.subscribers.accounting import Kind, Record
from holdfast.subscribers.dhcpv6_pd import Binding
from holdfast.subscribers.keeping import Stored
from holdfast.subscribers.plane import Line, Rates, Session, Usage
from holdfast.subscribers.session import Grant
from holdfast.subscribers.store import SqliteStore


def session(number: int) -> Session:
    return Session(
        number, Line(1, 2, number), bytes.fromhex("0200") + number.to_bytes(4, "big"), number * 7, 1492, 1452,
        IPv4Address(0x0A000000 + number), IPv6Address(number), IPv6Network((number << 64, 64)), None, Rates(1000, number),
    )  # fmt: skip


def stored(number: int, name: bytes = b"alice") -> Stored:
    grant = Grant(name, session(number), (IPv4Address("9.9.9.9"),), classes=(b"c",))
    return Stored(grant, f"{number:x}", 1.0, True, bytes(8), Binding(b"client", b"iaid"), False, 1492, b"circuit")


def record(number: int, kind: Kind = Kind.STOP) -> Record:
    return Record(kind, f"{number:x}", b"alice", session(number % 60_000 + 1), number, usage=Usage(1, 2, 3, number))


class Faulty(SqliteStore):
    """A store whose disk fails: ``fails`` decides for each transaction: not, before it, or after it was written."""

    fails: Callable[[], str | None] = staticmethod(lambda: None)

    def _transact(self, *args: Any) -> None:
        how = self.fails()
        if how == "before":
            raise sqlite3.OperationalError("database or disk is full")
        super()._transact(*args)
        if how == "after":
            raise sqlite3.OperationalError("disk I/O error")


class Timers:
    """The functions that :class:`SqliteStore` wants to be called later."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.waiting.append((delay_s, call))

    def run(self) -> None:
        while self.waiting:
            waiting, self.waiting = self.waiting, []
            for _, call in waiting:
                call()

    def once(self) -> None:
        waiting, self.waiting = self.waiting, []
        for _, call in waiting:
            call()


def test_the_file_and_its_journal_are_their_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    for mode in (None, 0o644, 0o666):
        if mode is not None:
            path.chmod(mode)
        before = os.umask(0)
        try:
            store = SqliteStore(path)
        finally:
            os.umask(before)
        store.save([stored(7)], [])
        for each in tmp_path.iterdir():
            assert stat.S_IMODE(each.stat().st_mode) == 0o600, each
        assert {each.name for each in tmp_path.iterdir()} == {"state.db", "state.db-wal"}
        store.close()


def test_a_link_or_another_users_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("root's")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(LiveError, match="a link is not followed"):
        SqliteStore(tmp_path / "link")
    assert (tmp_path / "victim").read_text() == "root's"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LiveError, match="not a regular file"):
        SqliteStore(tmp_path / "pipe")
    if os.geteuid() == 0:
        SqliteStore(tmp_path / "theirs").close()
        os.chown(tmp_path / "theirs", 65534, 65534)
        with pytest.raises(LiveError, match="another user"):
            SqliteStore(tmp_path / "theirs")


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("how", ["before", "after"])
def test_records_and_sessions_outlive_a_disk_that_fails_at_any_write(how: str, later: bool, tmp_path: Path) -> None:
    """Check that every record and session that was put is in the store once in the end.

    Each write in turn is the first to fail, and all fail for a while after it.
    """
    for first in range(14):
        path = tmp_path / f"{how}-{first}.db"
        timers, said = Timers(), list[str]()
        store = Faulty(path, later=timers.later if later else None, say=said.append)
        writes = iter(range(1_000))
        store.fails = lambda writes=writes, first=first: how if first <= next(writes) < first + 4 else None  # type: ignore[misc]
        put: dict[int, Record] = {}
        kept: dict[int, Stored] = {}
        drop: set[int] = set()
        for number in range(1, 10):
            store.put(record(number))
            put[number] = record(number)
            if number % 3 == 0:
                store.done(number - 1)
                del put[number - 1]
            if number > 4:
                drop.add(number - 2)  # who leaves is asked for again until the disk has it
            try:
                store.save([stored(number)], drop)
            except LiveError:
                drop.add(number)
            else:
                kept[number] = stored(number)
                kept = {each: value for each, value in kept.items() if each not in drop}
                drop.clear()
            assert [each for each, _ in store.after(0, 99)] == list(put)
            assert len(store) == len(put)
            timers.once()
        timers.run()
        store.save((), drop)
        kept = {each: value for each, value in kept.items() if each not in drop}
        assert store.load() == list(kept.values())
        store.close()
        store = SqliteStore(path)
        assert [each for _, each in store.after(0, 99)] == list(put.values())
        assert len(store) == len(put)
        assert store.load() == list(kept.values())
        store.close()
        if first < 8:
            assert len(said) == 2 and "takes writes again" in said[1], (first, said)


def test_a_disk_that_fails_is_tried_at_intervals(tmp_path: Path) -> None:
    timers = Timers()
    store = Faulty(tmp_path / "state.db", later=timers.later, say=lambda text: None)
    store.fails = lambda: "before"
    store.put(record(1))
    delays = []
    for _ in range(5):
        [(delay_s, call)] = timers.waiting
        timers.waiting.clear()
        delays.append(delay_s)
        call()
    assert delays == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert store.failures == 5


def test_what_waits_in_memory_is_bounded_and_what_goes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_MOST_UNWRITTEN", 20)
    monkeypatch.setattr(stores, "_MOST_RECENT", 4)
    store = Faulty(tmp_path / "state.db", later=Timers().later, say=lambda text: None)
    store.fails = lambda: "before"
    for number in range(10):
        store.put(record(number, Kind.INTERIM))
        store.put(record(number, Kind.STOP))
    store.put(record(99, Kind.INTERIM))  # nothing goes for an interim record
    assert (store.dropped, len(store)) == (1, 20)
    for number in range(10, 25):
        store.put(record(number, Kind.STOP))
    assert (store.dropped, len(store)) == (16, 20)
    stops = [each.time_s for _, each in store.after(0, 99)]
    assert stops == list(range(5, 25))  # interim ones went first, then the oldest
    store.fails = lambda: None
    store.close()
    store = SqliteStore(tmp_path / "state.db")
    assert [each.time_s for _, each in store.after(0, 99)] == stops


def test_many_records_are_written_in_turns(tmp_path: Path) -> None:
    timers = Timers()
    store = Faulty(tmp_path / "state.db", later=timers.later)
    sizes: list[int] = []
    transact = store._transact

    def watched(gone: Sequence[Any], rows: Sequence[Any], records: Sequence[Any], *others: Any) -> None:
        sizes.append(len(records))
        transact(gone, rows, records, *others)

    store._transact = watched  # type: ignore[method-assign]
    for number in range(2_500):
        store.put(record(number))
    timers.run()
    assert sizes == [1024, 1024, 452]
    assert len(store) == 2_500
    assert [each.time_s for _, each in store.after(1_000, 3)] == [1_000, 1_001, 1_002]


def filled(path: Path, sessions: int = 60, records: int = 80) -> tuple[dict[int, Stored], dict[int, Record]]:
    store = SqliteStore(path)
    kept = {
        number: stored(number, b"a name that takes some room, so that there are many pages" * 8)
        for number in range(1, sessions)
    }
    store.save(kept.values(), [])
    waiting = {number: record(number) for number in range(1, records)}
    for each in waiting.values():
        store.put(each)
    store.close()
    return kept, waiting


def read(path: Path) -> tuple[list[Stored], list[Record], list[str]]:
    """Open a file as a store; return its sessions, its records and the messages logged; check that the store then works."""
    said: list[str] = []
    store = SqliteStore(path, say=said.append)
    sessions = store.load()
    records: list[Record] = []
    last = 0
    while found := store.after(last, 7):
        records += [each for _, each in found]
        last = found[-1][0]
    assert len(store) == len(records)
    store.save([stored(999)], [])
    store.put(record(999))
    store.close()
    store = SqliteStore(path, say=lambda text: pytest.fail(f"said again: {text}"))
    assert store.load() == [*sessions, stored(999)]
    assert len(store) == len(records) + 1
    store.close()
    return sessions, records, said


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def zeroed_page(content: bytes, draw: random.Random) -> bytes:
    page = draw.randrange(len(content) // 4096) * 4096
    return content[:page] + bytes(4096) + content[page + 4096 :]


def other_page(content: bytes, draw: random.Random) -> bytes:
    page, other = (draw.randrange(len(content) // 4096) * 4096 for _ in range(2))
    return content[:page] + content[other : other + 4096] + content[page + 4096 :]


def bits(content: bytes, draw: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(draw.choice((1, 3, 100))):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


def noise(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content))
    return content[:at] + draw.randbytes(draw.choice((10, 1_000, 20_000))) + content[at + 1_000 :]


@pytest.mark.parametrize("damage", [cut, zeroed_page, other_page, bits, noise])
def test_of_a_damaged_file_what_is_whole_is_used_and_nothing_else(
    damage: Callable[[bytes, random.Random], bytes], tmp_path: Path
) -> None:
    """Check that only undamaged rows are returned, unchanged, and that the damaged file is kept."""
    whole = tmp_path / "whole.db"
    kept, waiting = filled(whole)
    content = whole.read_bytes()
    found_sessions = 0
    for seed in range(25):
        path = tmp_path / f"{seed}" / "state.db"
        path.parent.mkdir()
        path.write_bytes(damage(content, random.Random(seed)))
        try:
            sessions, records, said = read(path)
        except LiveError as error:
            assert "version" in str(error), error  # that number was hit, and a newer program's file is not touched
            continue
        found_sessions += len(sessions)
        assert all(kept.get(each.grant.session.session_id) == each for each in sessions)
        assert all(waiting.get(each.time_s) == each for each in records)
        if len(sessions) < len(kept) or len(records) < len(waiting):
            assert said
    assert found_sessions > 100  # most damage leaves most sessions


def test_a_file_that_is_no_database_is_put_aside_with_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    for content in (b"no database at all, but longer than a header" * 100, b"short", b"\0" * 8192):
        path.write_bytes(content)
        (tmp_path / "state.db-wal").write_bytes(b"journal")
        said: list[str] = []
        SqliteStore(path, say=said.append).close()
        [sentence] = said
        asides = [each for each in tmp_path.iterdir() if ".damaged-" in each.name and each.read_bytes() == content]
        assert len(asides) == 1 and asides[0].name in sentence
    store = SqliteStore(path)
    assert store.load() == []
    # Tables of somebody else's are no state, either.
    store.close()
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE session (something TEXT)")
        database.execute(f"PRAGMA user_version = {stores._VERSION}")
    database.close()
    said = []
    SqliteStore(path, say=said.append).close()
    assert "is damaged" in said[0]


@pytest.mark.parametrize("gone", ["state.db", "state.db-wal", "all", "directory", "replaced"])
def test_nothing_is_written_where_no_restart_finds_it(gone: str, tmp_path: Path) -> None:
    """Check that a removed or replaced file is a disk that takes no writes, until the file is back."""
    folder, away = tmp_path / "state", tmp_path / "away"
    folder.mkdir()
    away.mkdir()
    said: list[str] = []
    store = SqliteStore(folder / "state.db", later=lambda *_: None, say=said.append)
    store.save([stored(1)], ())
    if gone == "directory":
        folder.rename(away / "state")
        moved = [(folder, away / "state")]
    else:
        names = [each.name for each in folder.iterdir()] if gone == "all" else [gone.replace("replaced", "state.db")]
        moved = [(folder / name, away / name) for name in names]
        for path, there in moved:
            path.rename(there)
        if gone == "replaced":
            (folder / "state.db").write_bytes(b"")
    with pytest.raises(LiveError):
        store.save([stored(2)], ())
    assert store.failures == 1
    assert "no session begins" in said[0]
    for path, there in moved:
        there.replace(path)
    store.save([stored(3)], ())
    store.close()
    assert [each.grant.session.session_id for each in SqliteStore(folder / "state.db").load()] == [1, 3]


def test_an_empty_file_does_not_cost_its_journal(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.save([stored(number) for number in range(1, 20)], ())
    store.put(record(1))
    copies = {name: (tmp_path / name).read_bytes() for name in ("state.db", "state.db-wal")}
    store.close()
    for size in (0, 1, 50, 4095):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "state.db").write_bytes(copies["state.db"][:size])
        (folder / "state.db-wal").write_bytes(copies["state.db-wal"])
        said: list[str] = []
        again = SqliteStore(folder / "state.db", say=said.append)
        assert [each.grant.session.session_id for each in again.load()] == list(range(1, 20)), said
        assert len(again) == 1


ROWS = ["", "{}", "null", "[]", "{" * 2000, '"text"', "\\x00", '{"grant": 3}', '{"grant": {"session": []}, "bound": 1}']


@pytest.mark.parametrize("row", ROWS)
def test_a_damaged_row_is_skipped_said_and_set_aside(row: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    kept, waiting = filled(path, 6, 6)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE session SET state = ? WHERE id = 3", (row,))
        database.execute("UPDATE accounting SET record = ? WHERE number = 3", (row,))
    database.close()
    sessions, records, said = read(path)
    assert sessions == [each for number, each in kept.items() if number != 3]
    assert records == [each for number, each in waiting.items() if number != 3]
    assert [text.split(": ")[1].split(" is ")[0] for text in said] == ["session 3", "accounting 3"]
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT what, number, content FROM damaged ORDER BY what").fetchall()
    database.close()
    assert rows == [("accounting", 3, row.encode()), ("session", 3, row.encode())]


def test_a_row_that_still_reads_well_but_is_another_is_no_session(tmp_path: Path) -> None:
    """Check that a row with a changed digit, or a copy of another row, is no session, as it would have another's address."""
    path = tmp_path / "state.db"
    kept, waiting = filled(path, 4, 4)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE session SET state = replace(state, '10.0.0.2', '10.0.0.3') WHERE id = 2")
        database.execute("UPDATE session SET state = (SELECT state FROM session WHERE id = 1) WHERE id = 3")
        database.execute("UPDATE accounting SET record = replace(record, '10.0.0.3', '10.0.0.9') WHERE number = 2")
    database.close()
    sessions, records, _ = read(path)
    assert sessions == [kept[1]]
    assert records == [waiting[1], waiting[3]]


def test_damage_that_is_found_while_it_runs_costs_what_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    kept, _ = filled(path)
    said: list[str] = []
    store = SqliteStore(path, say=said.append)
    assert len(store.load()) == len(kept)
    store._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store._database.execute("PRAGMA cache_size = 0")
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        if page % 3 == 0:
            content[page * 4096 : page * 4096 + 2048] = random.Random(page).randbytes(2048)
    with path.open("r+b") as file:
        file.write(content)
    for number in range(1, 60):
        store.put(record(1_000 + number))
        with suppress(LiveError):
            store.save([replace(kept[number], started_s=2.0)], [])
    assert len(said) >= 1
    saved = {each.grant.session.session_id for each in store.load() if each.started_s == 2.0}
    assert len(saved) > 50
    assert {each.time_s for _, each in store.after(0, 999)} >= set(range(1_001, 1_060))
    store.close()


def test_a_start_on_a_full_disk_reads_what_is_there(tmp_path: Path) -> None:
    """Check that an intact file is opened without a write, so that its sessions go on although no new one can be stored."""
    path = tmp_path / "state.db"
    kept, waiting = filled(path, 6, 6)
    before = path.read_bytes()
    store = SqliteStore(path)
    assert store.load() == list(kept.values())
    assert len(store) == len(waiting)
    assert (tmp_path / "state.db-wal").stat().st_size == 0
    store.close()
    assert path.read_bytes() == before
