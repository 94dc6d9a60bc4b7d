"""Fixtures of this application's tests."""

from __future__ import annotations

import pytest

from holdfast._core import Program
from holdfast.apps.protect import compile_protect


@pytest.fixture(scope="session")
def program() -> Program:
    """Return ``protect.p4``, compiled with its defaults."""
    return compile_protect()
