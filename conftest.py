"""Fixtures and options of all Python tests."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine and what else it does, not of the code.
settings.register_profile("holdfast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")
# CI draws with one seed, so each run repeats the same examples; it takes fewer than `make test`, which draws new ones each time.
settings.register_profile("few", settings.get_profile("holdfast"), max_examples=40)

ROOT = Path(__file__).parent
SLOW = frozenset((ROOT / "tests/slow.txt").read_text(encoding="utf-8").split())
"""The files of tests that take more than a few seconds, and folders of such."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick``, which leaves out the tests of the files in ``tests/slow.txt``."""
    parser.addoption(
        "--quick", action="store_true", help="leave out the files of tests/slow.txt, which take more than a few seconds"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Return True for a slow file or folder if ``--quick`` was given, else None."""
    if not config.getoption("quick") or not collection_path.is_relative_to(ROOT):
        return None
    return True if str(collection_path.relative_to(ROOT)) in SLOW else None
