"""Every reader of users' files refuses files without an end: pipes, devices and much too long files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import yaml_model
from holdfast.compare.traffic_file import TrafficFile
from holdfast.entries_files.yaml_entries import Entries
from holdfast.errors import HoldfastError, NetworkError
from holdfast.link import Traces
from holdfast.p4runtime.server import TlsFiles
from holdfast.regular_files import MOST_TEXT_BYTES, doubt, read_regular
from holdfast.topology import Topology

READERS: dict[str, Callable[[Path], object]] = {
    "traffic": lambda path: yaml_model.read(path, TrafficFile),
    "entries": lambda path: yaml_model.read(path, Entries),
    "topology": Topology.from_yaml,
    "graphml": Topology.from_graphml,
    "loss trace": lambda path: Traces().text(str(path)),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_has_no_end_is_not_read(reader: str, tmp_path: Path) -> None:
    long, pipe, linked, device = (tmp_path / name for name in ("long", "pipe", "linked", "device"))
    with long.open("wb") as file:
        file.truncate(MOST_TEXT_BYTES + 1)
    os.mkfifo(pipe)
    linked.symlink_to(pipe)
    device.symlink_to("/dev/zero")
    for path, message in (
        (long, "longer than (4|64) MiB"),
        (pipe, "this is not a regular file"),
        (linked, "this is not a regular file"),
        (device, "this is not a regular file"),
        (tmp_path, "this is not a regular file"),
        (tmp_path / "absent", "No such file or directory"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(HoldfastError, match=f"^(loss trace )?{path}: {message}$"):
            READERS[reader](path)
    with pytest.raises(HoldfastError, match=r"no file has such a name$"):
        READERS[reader](Path("\0"))


def test_a_pipe_in_an_include_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "t.yaml").write_text("include: pipe.yaml\n")
    with pytest.raises(HoldfastError, match=r"pipe.yaml: this is not a regular file$"):
        Topology.from_yaml(tmp_path / "t.yaml")


def test_what_fits_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(content := bytes(range(256)) * 5000)
    assert read_regular(path, len(content), NetworkError) == content
    with pytest.raises(NetworkError, match=r"some: longer than 1 MiB$"):
        read_regular(path, len(content) - 1, NetworkError)
    # Its size is unknown, and it has an end all the same.
    assert read_regular(Path("/proc/self/status"), 1 << 20, NetworkError).startswith(b"Name:")


def test_a_pipe_is_no_certificate(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pem")
    with pytest.raises(HoldfastError, match=r"pipe.pem: this is not a regular file$"):
        TlsFiles(tmp_path / "pipe.pem", tmp_path / "pipe.pem").server_credentials()


def test_a_file_in_other_users_hands_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    file = tmp_path / "rights.yaml"
    assert doubt(file) is None  # whoever reads it will say that there is none
    file.touch(0o600)
    assert doubt(file, secret=True) is None
    file.chmod(0o644)
    assert doubt(file) is None
    assert "read the secrets" in (doubt(file, secret=True) or "")
    file.chmod(0o602)
    assert "can change" in (doubt(file) or "")
    if os.geteuid() == 0:
        file.chmod(0o600)
        os.chown(file, 65534, 65534)
        assert "another user" in (doubt(file) or "")
        monkeypatch.setenv("SUDO_UID", "65534")
        assert doubt(file) is None
