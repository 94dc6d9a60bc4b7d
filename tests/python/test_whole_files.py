"""Files are written whole, and in UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from holdfast import whole_files
from holdfast.p4runtime.p4info import parse_text

SOURCE = Path(__file__).parents[1] / "p4runtime/basic.p4"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    whole_files.write_text(file, "old")

    def fill(path: Path) -> None:
        path.write_text("new, but only ha")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        whole_files.write(file, fill)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.json"]


def test_a_table_on_a_full_disk_is_an_error_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*rows\.parquet'"):
        whole_files.write_parquet(tmp_path / "rows.parquet", pl.DataFrame({"a": [1]}))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    whole_files.write_parquet(tmp_path / "rows.parquet", pl.DataFrame({"a": [1]}))
    assert pl.read_parquet(tmp_path / "rows.parquet")["a"].to_list() == [1]


def test_a_full_disk_leaves_nothing() -> None:
    """Check this in a file system of one page."""
    if os.geteuid() != 0:
        pytest.skip("a file system is mounted as root only")
    script = (
        "set -e; mount -t tmpfs -o size=4k none /mnt; cd /mnt; "
        f"{sys.executable} -m holdfast compile {SOURCE} -o /mnt/out --p4info /mnt/info || echo status $?; ls -a /mnt"
    )
    result = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "permission denied" in result.stderr.lower() or "not permitted" in result.stderr.lower():
        pytest.skip(result.stderr.strip())
    assert result.stdout.split() == ["status", "1", ".", ".."], result.stderr
    assert result.stderr.strip().endswith("cannot write '/mnt/out': No space left on device")


def test_a_link_and_a_device_stay_what_they_are(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    whole_files.write_text(link, "new")
    assert link.is_symlink()
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o600)
    whole_files.write_bytes(Path("/dev/null"), b"gone")
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")
def test_a_link_of_another_user_in_a_directory_for_all_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    everybodys = tmp_path / "tmp"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    (everybodys / "out").symlink_to(secret)
    (everybodys / "folder").symlink_to(tmp_path)
    for name in ("out", "folder"):
        os.chown(everybodys / name, 65534, 65534, follow_symlinks=False)
    for place in (everybodys / "out", everybodys / "folder/secret", everybodys / "folder/new"):
        with pytest.raises(PermissionError, match="another user's link"):
            whole_files.write_text(place, "new")
    assert secret.read_text() == "root's"
    assert not (tmp_path / "new").exists()
    # Those of the user are the user's own affair, and so are links elsewhere.
    (everybodys / "mine").symlink_to(secret)
    whole_files.write_text(everybodys / "mine", "new")
    assert secret.read_text() == "new"


def test_a_link_beside_the_file_is_not_followed(tmp_path: Path) -> None:
    """Check links with every name that an attacker could guess for the unfinished file."""
    file, victim = tmp_path / "rows.json", tmp_path / "victim"
    victim.write_text("untouched")
    names: set[str] = set()

    def fill(path: Path) -> None:
        names.add(path.name)
        path.write_text("new")

    for _ in range(2):
        whole_files.write(file, fill)
    assert len(names) == 2
    assert all(name.endswith(file.name) for name in names)
    (tmp_path / f"unfinished-{file.name}").symlink_to(victim)
    whole_files.write(file, fill)
    assert victim.read_text() == "untouched"


def test_a_new_file_has_the_mode_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    whole_files.write_text(tmp_path / "written", "new")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_what_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept"
    file.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # what the superuser is never told
    with pytest.raises(PermissionError):
        whole_files.write_text(file, "new")
    assert file.read_text() == "old"


def test_a_circle_of_links_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    command = [sys.executable, "-m", "holdfast", "compile", str(SOURCE), "-o", "a"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr


def test_text_is_utf_8_in_every_locale(tmp_path: Path) -> None:
    source = tmp_path / "named.p4"
    text = SOURCE.read_text()
    name = "größer → kleiner"
    source.write_text(
        text.replace("control BasicIngress(", f'@brief("{name}") control BasicIngress(', 1), encoding="utf-8"
    )
    script = f"from holdfast import whole_files; from pathlib import Path; whole_files.write_text(Path('x'), {name!a})"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=os.environ | C_LOCALE, check=True)
    assert (tmp_path / "x").read_bytes() == name.encode()
    command = [sys.executable, "-m", "holdfast", "compile", str(source)]
    subprocess.run(command, cwd=tmp_path, env=os.environ | C_LOCALE, check=True, capture_output=True)
    parse_text((tmp_path / "named.p4info.txtpb").read_text(encoding="utf-8"))


def test_a_locale_that_lacks_a_character_ends_no_command(tmp_path: Path) -> None:
    for arguments in (["compare", "--help"], ["doctor"], ["--help"]):
        command = [sys.executable, "-m", "holdfast", *arguments]
        result = subprocess.run(command, env=os.environ | C_LOCALE, capture_output=True, check=False)
        assert (result.returncode, b"Traceback" in result.stderr) == (0, False), result.stderr


def test_a_hundred_thousand_errors_are_found_at_once(tmp_path: Path) -> None:
    """Check that no similar names are searched for errors that are not shown, which took minutes."""
    source = tmp_path / "many.p4"
    states = "\n".join(f"state s{i} {{ transition u{i}; }}" for i in range(100_000))
    source.write_text(f"parser P() {{ state start {{ transition s0; }} {states} }}")
    result = subprocess.run(
        [sys.executable, "-m", "holdfast", "compile", str(source)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert "more lines" in result.stderr
    assert len(result.stderr) < 50_000
