"""The page of ``holdfast compare`` in a real browser: rows fill, the report is linked, and the command ends on a signal."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from chromium import browser, serving


def test_rows_fill_while_runs_finish_and_the_report_is_linked(tmp_path: Path) -> None:
    options = ("--mechanisms", "static,reroute", "--jobs", 1, "--before-s", 0.3, "--down-s", 0.5, "--after-s", 0.3)
    with browser() as chromium, serving("compare", "ring:4", *options, "--out", tmp_path, "--web") as served:
        tab = chromium.new_page()
        tab.set_default_timeout(120_000)
        problems: list[str] = []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        assert tab.goto(served.without_token).status == 403
        tab.goto(served.address)
        tab.wait_for_selector("canvas")
        tab.get_by_role("row", name=re.compile("^static [1-9] of 5")).wait_for()
        tab.get_by_role("link", name="open the report").wait_for()
        tab.get_by_text("10 of 10 runs, done").wait_for()
        assert (
            tab.get_by_role("row", name=re.compile(r"^reroute 5 of 5 [\d,.]+ s\d-s\d: [\d,.]+ [\d,.]+ ms")).count() == 1
        )
        drawn = "(chart) => getElement(chart).chart.getOption().series.filter((line) => line.data.length).length"
        chart = tab.locator(".curve").first.get_attribute("id").removeprefix("c")
        tab.wait_for_function(f"(chart) => ({drawn})(chart) === 2", arg=int(chart))
        # Who comes when all is done sees the same curves.
        late = chromium.new_page()
        late.set_default_timeout(120_000)
        late.goto(served.address)
        late.get_by_text("10 of 10 runs, done").wait_for()
        chart = late.locator(".curve").first.get_attribute("id").removeprefix("c")
        late.wait_for_function(f"(chart) => ({drawn})(chart) === 2", arg=int(chart))
        with tab.expect_popup() as opened:
            tab.get_by_role("link", name="open the report").click()
        opened.value.get_by_role("heading").first.wait_for()
        assert served.process.poll() is None, "the page stays"
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(60) == 0
        assert not problems
        with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
            tab.goto(served.without_token)
