"""Fixtures: a device with basic.p4, and its primary client."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests in sub-directories import the modules of this one.
sys.path.insert(0, str(Path(__file__).parent))

from device_bench import Bench, make_bench

from holdfast.p4runtime import LocalClient


@pytest.fixture
def bench() -> Bench:
    return make_bench()


@pytest.fixture
def client(bench: Bench) -> Iterator[LocalClient]:
    client = bench.primary()
    yield client
    client.close()
