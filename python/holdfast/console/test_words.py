"""What the console says of rates, of flows, and of commands that hosts have run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.console import Session
from holdfast.console import session as sessions
from holdfast.console.flows import Progress
from holdfast.errors import ConsoleError


@pytest.mark.parametrize(
    ("bps", "said"),
    [
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (1000, "1 kbit/s"),
        (999_499, "999 kbit/s"),
        (999_500, "1 Mbit/s"),
        (1e6, "1 Mbit/s"),
        (2.5e8, "250 Mbit/s"),
        (1e9, "1 Gbit/s"),
        (4e11, "400 Gbit/s"),
    ],
)
def test_a_rate_has_the_largest_unit_that_it_reaches(bps: float, said: str) -> None:
    assert sessions._rate(bps) == said


def test_a_flow_says_what_is_known_of_it() -> None:
    def said(progress: Progress, end_s: float | None = None) -> str:
        flow: Any = SimpleNamespace(number=3, asked="udp h1 h2", end_s=end_s, progress=lambda: progress)
        return sessions._flow_text(flow)

    nothing = Progress()
    assert said(nothing) == "flow 3: udp h1 h2, running"
    assert said(replace(nothing, sent=0, arrived=0), 1.5) == "flow 3: udp h1 h2, ended, 0 sent, 0 arrived"
    some = replace(nothing, sent=4, arrived=3, payload_bits=8e6, failure="refused")
    assert said(some) == "flow 3: udp h1 h2, running, 4 sent, 3 arrived, 1 MB, refused"


@pytest.mark.parametrize("status", [0, 1, 2, 255, -9])
def test_a_command_that_fails_stops_a_script(status: int) -> None:
    result = Session._of_command(None, "h1", "false", status, "text", shown=True)  # type: ignore[arg-type]
    assert (result.ok, result.failed_command, result.shown) == (status == 0, status != 0, True)
    assert (result.text, result.values) == ("text", {"status": status})
    assert not Session._of_command(None, "h1", "false", status, "text").shown  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"), [("sh: 1: gone: not found", ": sh: 1: gone: not found"), ("a\nb", ": b"), ("", "")]
)
def test_a_command_that_a_host_does_not_have_is_a_mistake(text: str, said: str) -> None:
    for status in (126, 127):
        with pytest.raises(ConsoleError) as found:
            Session._of_command(None, "h1", "gone", status, text)  # type: ignore[arg-type]
        assert str(found.value) == f"h1 cannot run 'gone'{said}"
