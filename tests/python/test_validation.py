"""docs/VALIDATION.md names a peer for each TCP that supports a conclusion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.experiments.gmpls_tcp_2001 import beyond

TEXT = (Path(__file__).parents[2] / "docs" / "VALIDATION.md").read_text()


def anchors() -> dict[str, tuple[str, str]]:
    """Return the first table of docs/VALIDATION.md: for each TCP profile, the peer and where it is compared."""
    rows: dict[str, tuple[str, str]] = {}
    for line in TEXT.split("\n## ")[0].splitlines():
        if line.startswith("| ") and not line.startswith("| TCP profile"):
            profile, peer, place = (cell.strip() for cell in line.strip("|").split("|")[:3])
            rows[profile] = (peer, place)
    return rows


@pytest.mark.parametrize("profile", beyond.TCPS)
def test_each_tcp_beyond_the_paper_has_an_anchor_or_says_that_it_has_none(profile: str) -> None:
    assert profile in anchors(), f"docs/VALIDATION.md names no peer for {profile!r}, nor says that there is none"
    peer, place = anchors()[profile]
    links = re.findall(r"\]\(#([^)]+)\)", place)
    assert (peer == "none") == (not links), f"{profile}: {peer}, {place}"


def test_the_anchors_are_sections_of_the_text() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in TEXT.splitlines()
        if line.startswith("#")
    }
    for _, place in anchors().values():
        for link in re.findall(r"\]\(#([^)]+)\)", place):
            assert link in headings
