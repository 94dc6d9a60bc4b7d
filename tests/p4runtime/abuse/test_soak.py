"""The soak test works for a few seconds; its caller chooses longer times."""

from __future__ import annotations

from dataclasses import replace

from abuse import soak


def test_a_short_soak() -> None:
    lines: list[str] = []
    verdict = soak.run(seconds=8, period_s=1, seed=2, log=lines.append)
    assert len(lines) >= 4
    assert verdict.sent > 8 * 9_000
    assert verdict.lost == 0
    assert verdict.writes > 100
    assert set(verdict.actions) == {"churn", "read_slowly", "reconnect", "send_nonsense", "never_read"}
    # Seconds say nothing about memory, but the verdict can say no.
    flat = replace(verdict, rss_mb=(100.0, 109.0), threads=(20, 24), descriptors=(13, 13))
    assert flat.holds
    for change in (
        {"rss_mb": (100.0, 111.0)},
        {"threads": (20, 25)},
        {"descriptors": (13, 40)},
        {"lost": 1},
        {"writes": 0},
    ):
        assert not replace(flat, **change).holds  # type: ignore[arg-type]
