"""The Rust messages of P4Info and P4Runtime are those of the official stubs: generating them again gives the committed files.

``UPDATE_EXPECT=1`` writes the files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from device_bench import HERE
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

from holdfast.p4runtime.stubs import p4runtime_pb2

ROOT = HERE.parent.parent
GENERATED = ROOT / "crates" / "proto" / "src" / "generated"


def official_definitions() -> descriptor_pb2.FileDescriptorSet:
    """Return the descriptors of P4Runtime and of all files that it imports, each after the files that it imports."""
    found = descriptor_pb2.FileDescriptorSet()
    seen: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in seen:
            return
        seen.add(file.name)
        for needed in file.dependencies:
            add(needed)
        file.CopyToProto(found.file.add())

    add(p4runtime_pb2.DESCRIPTOR)
    return found


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_committed_messages_are_generated_from_the_official_stubs(tmp_path: Path) -> None:
    definitions = tmp_path / "definitions"
    definitions.write_bytes(official_definitions().SerializeToString())
    generate = [
        "cargo",
        "run",
        "--quiet",
        "--release",
        "--config",
        "tests/profile.toml",
        "--package",
        "holdfast-protogen",
    ]
    subprocess.run([*generate, "--", str(definitions), str(tmp_path)], cwd=ROOT, check=True)
    generated = {path.name: path.read_text() for path in tmp_path.glob("*.rs")}
    if os.environ.get("UPDATE_EXPECT"):
        for name, text in generated.items():
            (GENERATED / name).write_text(text)
    assert generated == {path.name: path.read_text() for path in GENERATED.glob("*.rs")}
