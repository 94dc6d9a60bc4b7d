"""The directory of sockets is made so that no other user can put one there, and refused where one could."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import run_directory
from holdfast.errors import LiveError


def test_it_is_ours_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = run_directory.made(tmp_path / "run" / "holdfast")
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert (made.stat().st_mode & 0o777, made.parent.stat().st_mode & 0o777) == (0o755, 0o755)
    assert run_directory.made(made) == made


@pytest.mark.parametrize("mode", [0o757, 0o777, 0o1777])
def test_one_that_others_may_write_into_is_refused(mode: int, tmp_path: Path) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(LiveError, match="other users may write"):
        run_directory.made(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_another_users_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(LiveError, match="other users may write"):
        run_directory.made(tmp_path)
