"""What a comparison's page knows of runs, and its process. The page in a browser is in ``tests/web/test_compare_page.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.compare import results
from holdfast.compare import scenario as scenarios
from holdfast.errors import ConsoleError
from holdfast.web.comparison import Described, Standing, added, described, page_of_comparison


def about(out: Path) -> Described:
    when = {"before_s": 0.2, "down_s": 0.3, "after_s": 0.2, "detection_delay_ms": 10.0, "reaction_delay_ms": 10.0}
    scenario = scenarios.build(
        "ring:3", fail="all", largest=False, traffic=None, executor="jit", when=when, live=False, telemetry=False
    )
    return described("ring", scenario, results.WORLD.choose(scenario, ["static", "reroute"]), range(1, 3), out)


def row(*lost: int, outage_ms: float = 1.0) -> dict[str, object]:
    return {"lost": list(lost), "outage_ms": [outage_ms], "delivered_curve": [1], "goodput_curve": [1], "other": 1}


def point(mechanism: str, failure: str, seed: int = 1) -> dict[str, object]:
    return {"mechanism": mechanism, "failure": failure, "network_seed": seed}


def test_costs_are_beyond_what_is_lost_without_a_failure_and_means_of_seeds(tmp_path: Path) -> None:
    standing = Standing(about(tmp_path))
    first, second, third = standing.about.failures
    assert standing.total == 2 * 2 * 4
    added(standing, point("static", first), row(10, 5))
    assert standing.lost("static", first) is None, "it is not known what is lost without"
    added(standing, point("static", "none"), row(1, 1))
    assert standing.lost("static", first) == 13
    added(standing, point("static", first, 2), row(30, 0, outage_ms=77.0))
    added(standing, point("static", "none", 2), row(0, 0))
    assert standing.lost("static", first) == 21.5
    added(standing, point("static", second), {"skipped": True})
    assert standing.lost("static", second) == 0
    assert standing.lost("static", third) is None
    assert standing.mean_lost("static") == 10.75
    assert standing.worst("static") == (first, 21.5)
    assert standing.outage_ms("static") == 77
    assert standing.finished("static") == 5
    assert (standing.mean_lost("reroute"), standing.worst("reroute"), standing.outage_ms("reroute")) == (
        None,
        None,
        None,
    )
    assert "other" not in standing.rows["static", first, 1]


def test_a_page_that_cannot_be_served_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("nicegui", reason="needs the extra web")
    with (
        pytest.raises(ConsoleError, match=r"^--web: cannot serve a page at 192\.0\.2\.1:0"),
        page_of_comparison(about(tmp_path), "192.0.2.1:0"),
    ):
        pass


def test_the_page_ends_with_the_comparison_and_the_comparison_goes_on_without_it(tmp_path: Path) -> None:
    pytest.importorskip("nicegui", reason="needs the extra web")
    with page_of_comparison(about(tmp_path), "127.0.0.1:0") as page:
        assert "?token=" in page.address
        page.told(point("static", "none"), row(1))
        page._process.kill()
        page.wait()
        for _ in range(3):
            page.told(point("static", "none"), row(1))
        page.done()
    assert not page._process.is_alive()
