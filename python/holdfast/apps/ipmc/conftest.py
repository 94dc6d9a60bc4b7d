"""Fixtures of this application's tests."""

from __future__ import annotations

import pytest

from holdfast._core import Program
from holdfast.apps.ipmc import compile_ipmc


@pytest.fixture(scope="session")
def program() -> Program:
    """Return ``ipmc.p4``, compiled with its defaults."""
    return compile_ipmc()
