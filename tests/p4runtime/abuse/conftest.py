"""Makes a test again whose time was exceeded.

What the machine takes only ever adds to a time, and a fault of the switch is there each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TIMES = 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this directory to be repeated up to ``TIMES`` times if they fail by SlowError."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=TIMES - 1, only_rerun=["SlowError"]))
