"""Installs a wheel in an environment of its own and runs it: ``python tests/python/installed_wheel.py WHEEL``.

Checks the metadata that a registry shows, what is in the wheel, and that the command works far from the repository.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

LARGEST_BYTES = 10_000_000
LARGEST_ENVIRONMENT_BYTES = 150_000_000


def main(wheel: Path) -> None:
    """Print a wheel's name and version, or raise an exception that says what is wrong with the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = message_from_bytes(archive.read(metadata))
    for field in ("Name", "Version", "Summary", "Requires-Python", "License-Expression"):
        if not said[field]:
            raise SystemExit(f"{wheel.name}: METADATA has no {field}")
    if strange := [name for name in names if "/tests/" in name or "/test_" in name]:
        raise SystemExit(f"{wheel.name}: has tests: {strange[0]}")
    if (size := wheel.stat().st_size) > LARGEST_BYTES:
        raise SystemExit(f"{wheel.name}: has {size} bytes, more than {LARGEST_BYTES}")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        install = ("pip", "install", "--quiet", "--disable-pip-version-check")
        run(folder, *install, str(wheel.resolve()))
        print(run(folder, "holdfast", "--version"), end="")
        environment_bytes = sum(file.lstat().st_size for file in Path(folder).rglob("*"))
        if environment_bytes > LARGEST_ENVIRONMENT_BYTES:
            raise SystemExit(f"{wheel.name}: an environment with it has {environment_bytes} bytes")
        run(folder, "holdfast", "topology", "ring:3")
        run(folder, *install, f"{wheel.resolve()}[compare]")
        run(folder, "holdfast", "demo", "--out", f"{folder}/report")
    print(
        f"{wheel}: {size / 1e6:.1f} MB, {len(names)} files, {environment_bytes / 1e6:.0f} MB with all that it needs; "
        "installed and run"
    )


def run(folder: str, command: str, *arguments: str) -> str:
    """Run a command of an environment outside the repository, and return its standard output."""
    done = subprocess.run(
        [f"{folder}/bin/{command}", *arguments], cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command} {' '.join(arguments)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
