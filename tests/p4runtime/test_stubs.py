"""The official messages beside Holdfast, in either order of the imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

OFFICIAL = "from p4.v1 import p4runtime_pb2"
OURS = "import holdfast.p4runtime"
USE = "assert p4runtime_pb2.WriteRequest(device_id=1).SerializeToString() == b'\\x08\\x01'"
SAME = "from holdfast.p4runtime import stubs; assert stubs.p4runtime_pb2 is p4runtime_pb2"


@pytest.mark.parametrize(
    "first",
    [
        [],
        # As the documentation says: it fails in this order under a recent protobuf, and works afterwards.
        ["try:", f"    {OFFICIAL}", "except TypeError as error:", "    assert 'Descriptors cannot' in str(error)"],
    ],
    ids=["ours first", "theirs first"],
)
def test_the_official_messages_work_once_ours_are_imported(first: list[str]) -> None:
    program = "\n".join([*first, OURS, OFFICIAL, USE, SAME])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
