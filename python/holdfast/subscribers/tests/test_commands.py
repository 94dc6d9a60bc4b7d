"""``holdfast bng``'s commands for operators, with a gateway that is made up."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast.cli import app
from holdfast.subscribers import commands, operator_requests

ROW: dict[str, Any] = dict.fromkeys(operator_requests.SessionRow.model_fields, 1) | {
    "user": "alice",
    "line": "1:2.3",
    "phase": "network",
    "mac": "02:00:00:00:00:01",
    "ipv6": "2001:db8:1:1234::/64",
    "delegated": "2001:db8:8000:1200::/56",
    "ipv4": None,
}


def asked(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], *words: str) -> str:
    monkeypatch.setattr(operator_requests, "ask", lambda name, request, model: model.model_validate(answer))
    done = CliRunner().invoke(app, ["bng", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_sessions_are_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = {"sessions_per_line": 4, "setups": 1}
    answer = {"sessions": [ROW, ROW], "planes": {"one": 2, "two": 0}, "drained": ["two"], "refusals": refusals}
    answer["draining"] = False
    lines = asked(monkeypatch, answer, "sessions").splitlines()
    assert lines[0].split() == list(commands.COLUMNS)
    assert lines[1].split() == [str(ROW[each] or "-") for each in commands.COLUMNS]
    assert lines[3] == "one has 2 sessions, two has 0 sessions and is drained"
    assert lines[4] == "refused: 4 by limits.sessions_per_line, 1 by limits.setups"


def test_a_subscribers_name_is_no_markup_and_controls_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {
        "sessions": [ROW | {"user": "[/b]\x1b[31mx"}],
        "planes": {},
        "drained": [],
        "refusals": {},
        "draining": False,
    }
    assert "[/b]\ufffd[31mx" in asked(monkeypatch, answer, "sessions")


@pytest.mark.parametrize("code", [0x09, 0x0A, 0x0B, 0x0D, 0x85, 0x061C, 0x200F, 0x2028, 0x2029, 0x202E, 0x2066])
def test_a_subscribers_name_is_one_piece_of_its_line(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Check that no control character in a name begins a line or turns the direction, as if it were another session's line."""
    forged = f"a{chr(code)}9  bob"
    answer = {"sessions": [ROW, ROW | {"user": forged}], "planes": {}, "drained": [], "refusals": {}, "draining": False}
    output = asked(monkeypatch, answer, "sessions")
    assert chr(code) not in output.replace("\n", "") and len(output.split("\n")) == 4
    assert "a\ufffd9  bob" in output


def test_what_drain_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"planes": {"one": 0, "two": 9}, "switched_ms": 12.3, "done_ms": 234.5}
    words = "switched over in 12 ms, the last packets let through after 234 ms"
    assert (
        asked(monkeypatch, answer, "drain", "one")
        == f"one has 0 sessions and is drained, two has 9 sessions; {words}\n"
    )
    assert asked(monkeypatch, answer, "undrain", "one") == f"one has 0 sessions, two has 9 sessions; {words}\n"
    assert asked(monkeypatch, {"sessions": 3}, "drain") == "no new sessions; 3 there\n"
    assert asked(monkeypatch, {"sessions": 3}, "undrain") == "new sessions again; 3 there\n"


def test_what_kick_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, {"kicked": 2}, "kick", "1", "2") == "2 sessions end\n"
    assert asked(monkeypatch, {"kicked": 9}, "kick", "--all") == "9 sessions end\n"
    for words in (["kick"], ["kick", "--all", "1"], ["kick", "0"]):
        assert CliRunner().invoke(app, ["bng", *words]).exit_code == 2
