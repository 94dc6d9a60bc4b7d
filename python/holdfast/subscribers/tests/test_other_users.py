"""Files of another user beside a gateway's state decide nothing: neither journals nor the list of CoA requests."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.errors import LiveError
from holdfast.subscribers.replays import Replays
from holdfast.subscribers.store import SqliteStore
from holdfast.subscribers.tests.test_store_faults import stored

NOBODY = 65534
BESIDE = ["state.db", "state.db-wal", "state.db-shm", "state.db-journal", "state.db-authorization"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def a_link(path: Path) -> None:
    target = path.with_name("victim")
    target.write_text("root's")
    path.symlink_to(target)


def a_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_directory(path: Path) -> None:
    path.mkdir()


def anothers_file(path: Path) -> None:
    path.write_text("9999999999\n")
    os.chown(path, NOBODY, NOBODY)


def begin(directory: Path) -> SqliteStore:
    """Open the store and the replay file of a gateway as its start does; return the store."""
    store = SqliteStore(directory / "state.db")
    try:
        Replays(300.0, 1e9, directory / "state.db-authorization")
    except BaseException:
        store.close()
        raise
    return store


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize(
    "lay", [a_link, a_dangling_link, a_pipe, a_directory, pytest.param(anothers_file, marks=needs_root)]
)
@pytest.mark.parametrize("before", [False, True], ids=["first", "again"])
def test_what_another_user_laid_is_refused(
    lay: Callable[[Path], None], name: str, before: bool, tmp_path: Path
) -> None:
    tmp_path.chmod(0o1777)
    if before:
        begin(tmp_path).close()
        (tmp_path / name).unlink(missing_ok=True)
    lay(tmp_path / name)
    with pytest.raises(
        LiveError,
        match=rf"{name}: (a link is not followed|it belongs to another user|this is not a regular|Is a directory)",
    ):
        begin(tmp_path)
    assert not (tmp_path / "nowhere").exists()
    assert (tmp_path / "victim").read_text() == "root's" if lay is a_link else not (tmp_path / "victim").exists()


@needs_root
def test_a_journal_that_another_user_made_brings_no_session(tmp_path: Path) -> None:
    """Attack a store with a forged journal, which SQLite would take for its own, and the gateway for established sessions."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for each in (theirs, ours):
        each.mkdir()
        SqliteStore(each / "state.db").close()
    ours.chmod(0o1777)
    forge(theirs / "state.db", ours / "state.db-wal")
    # With a journal of our own the session would be there: the forgery works.
    twin = tmp_path / "twin"
    shutil.copytree(ours, twin)
    store = SqliteStore(twin / "state.db")
    assert [each.grant.session.session_id for each in store.load()] == [7]
    store.close()
    os.chown(ours / "state.db-wal", NOBODY, NOBODY)
    with pytest.raises(LiveError, match="another user"):
        SqliteStore(ours / "state.db")
    (ours / "state.db-wal").unlink()
    store = SqliteStore(ours / "state.db")
    assert not store.load()
    store.close()


def forge(state: Path, journal: Path) -> None:
    """Write to ``journal`` a SQLite journal with all pages of a state file that has one session."""
    store = SqliteStore(state)
    store.save([stored(7)], [])
    store.close()
    with closing(sqlite3.connect(state, isolation_level=None)) as database:
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("VACUUM")
        shutil.copyfile(f"{state}-wal", journal)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_directory_whose_files_others_replace_is_refused(mode: int, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 0, NOBODY)
    tmp_path.chmod(mode)
    if mode == 0o775 and tmp_path.stat().st_gid in (0, os.getegid()):
        pytest.skip("the group is this user's own")
    with pytest.raises(LiveError, match="other users may write into it"):
        SqliteStore(tmp_path / "state.db")
    with pytest.raises(LiveError, match="other users may write into it"):
        Replays(300.0, 1e9, tmp_path / "state.db-authorization")
    tmp_path.chmod(0o1777)  # as /tmp
    begin(tmp_path).close()


@needs_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    os.chown(tmp_path, NOBODY, NOBODY)
    with pytest.raises(LiveError, match="belongs to another user"):
        begin(tmp_path)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))  # the operator's own directory
    begin(tmp_path).close()
