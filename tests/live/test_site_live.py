"""The blocks of the site that say "as root" do what they show, in real time; ``tests/python/test_site_pages.py`` has the others."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
import site_build
from site_pages import Reader, runnable

ROOT = Path(__file__).parents[2]
BLOCKS = [
    (page, block)
    for page in site_build.sources()
    if page.startswith("docs/") and Path(page).name.islower()
    for block in runnable(page, (ROOT / page).read_text(encoding="utf-8"))
]
LIVE = sorted({page for page, block in BLOCKS if block.live})


@pytest.mark.parametrize("page", LIVE)
def test_a_page_does_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    reader = Reader(tmp_path, processes=True)
    for where, block in BLOCKS:
        # The files of the page are written, and its commands for everybody run elsewhere.
        if where == page and (block.live or block.language != "console"):
            reader.do(block)


def test_there_are_such_pages() -> None:
    assert LIVE
