"""Fixtures of this application's tests."""

from __future__ import annotations

import pytest

from holdfast._core import Program
from holdfast.apps.mpls import compile_mpls


@pytest.fixture(scope="session")
def program() -> Program:
    """Return ``mpls.p4``, compiled with its defaults."""
    return compile_mpls()
