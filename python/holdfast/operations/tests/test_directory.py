"""The directory of sockets is made so that no other user can put one there, and refused where one could."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import LiveError
from holdfast.operations import directory


def test_it_is_ours_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = directory.made(tmp_path / "run" / "holdfast")
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert (made.stat().st_mode & 0o777, made.parent.stat().st_mode & 0o777) == (0o755, 0o755)
    assert directory.made(made) == made


@pytest.mark.parametrize("mode", [0o757, 0o777, 0o1777])
def test_one_that_others_may_write_into_is_refused(mode: int, tmp_path: Path) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(LiveError, match="other users may write"):
        directory.made(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_another_users_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(LiveError, match="other users may write"):
        directory.made(tmp_path)


HOLD = """
import sys, time
from pathlib import Path
from holdfast.errors import LiveError
from holdfast.operations import directory
try:
    opened = directory.listening(Path(sys.argv[1]), "taken")
except LiveError as error:
    print(error, flush=True)
else:
    print("listens", flush=True)
    time.sleep(600)
"""


def holding(path: Path) -> subprocess.Popen[str]:
    """Start a process that listens at ``path``, or says why it does not."""
    return subprocess.Popen([sys.executable, "-P", "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_socket_is_its_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with directory.listening(tmp_path / "x.sock", "taken"):
            assert stat.S_IMODE((tmp_path / "x.sock").stat().st_mode) == 0o600
        assert os.umask(0) == 0
    finally:
        os.umask(before)


def test_a_killed_process_leaves_its_place_to_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    first = holding(path)
    try:
        assert said(first) == "listens"
        assert not directory.is_left_behind(path)
        with pytest.raises(LiveError, match=r"^taken$"):
            directory.listening(path, "taken")
        first.send_signal(signal.SIGKILL)
        first.wait(60)
        assert path.exists()
        assert directory.is_left_behind(path)
        with directory.listening(path, "taken"):
            assert not directory.is_left_behind(path)
    finally:
        first.kill()
        first.communicate()


def test_of_many_that_start_at_once_one_has_the_place(tmp_path: Path) -> None:
    """Checks also that what a killed process left behind is taken away once: the second one would take the first one's."""
    path = tmp_path / "x.sock"
    left = holding(path)
    assert said(left) == "listens"
    left.kill()
    left.communicate()
    together = [holding(path) for _ in range(8)]
    try:
        assert sorted(said(each) for each in together) == ["listens"] + ["taken"] * 7
        assert not directory.is_left_behind(path)
    finally:
        for each in together:
            each.kill()
            each.communicate()


def test_what_is_no_socket_is_not_listened_at(tmp_path: Path) -> None:
    with pytest.raises(
        LiveError, match=r"cannot listen on .*: File name too long|cannot listen on .*: AF_UNIX path too long"
    ):
        directory.listening(tmp_path / ("x" * 200), "taken")
    (tmp_path / "folder").mkdir()
    with pytest.raises(LiveError, match="cannot listen on"):
        directory.listening(tmp_path / "folder", "taken")


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "sockets.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LiveError, match="cannot listen on"):
        directory.listening(tmp_path / "x.sock", "taken")
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LiveError, match=r"Not a directory|File exists"):
        directory.made(tmp_path / "file" / "holdfast")
    with pytest.raises(LiveError):
        directory.listening(tmp_path / "file" / "holdfast" / "x.sock", "taken")


def test_a_socket_that_does_not_answer_is_not_left_behind(tmp_path: Path) -> None:
    """Checks that the place of a process that hangs is not taken: its sessions are there."""
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as hangs:
        hangs.bind(str(path))
        hangs.listen(0)
        assert not directory.is_left_behind(path)
        with pytest.raises(LiveError, match=r"^taken$"):
            directory.listening(path, "taken")
