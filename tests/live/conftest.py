"""Live tests need root and tools; without them they are skipped with the missing item."""

from __future__ import annotations

import shutil

import pytest

from holdfast import _core


def _missing() -> str | None:
    if reason := _core.interfaces_ready():
        return f"live test: {reason}"
    absent = [tool for tool in ("ip", "ping", "iperf3") if shutil.which(tool) is None]
    return f"live test: not installed: {', '.join(absent)}" if absent else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if reason := _missing():
        for item in items:
            if "tests/live" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=reason))
