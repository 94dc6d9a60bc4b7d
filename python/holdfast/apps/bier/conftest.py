"""Fixtures of the tests of ``bier.p4``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from holdfast._core import Program
from holdfast.apps.bier.program import compile_bier

Compile = Callable[..., Program]


@pytest.fixture(scope="session")
def compiled() -> Compile:
    """``compile_bier``, once for the same arguments."""
    return cache(compile_bier)
