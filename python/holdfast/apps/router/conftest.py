"""Fixtures of this application's tests."""

from __future__ import annotations

import pytest

from holdfast._core import Program
from holdfast.apps.router import compile_ipfrr


@pytest.fixture(scope="session")
def program() -> Program:
    """Return ``ipfrr.p4``, compiled with its defaults."""
    return compile_ipfrr()
