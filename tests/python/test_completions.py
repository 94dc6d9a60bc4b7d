"""The shell completes commands, options and the names of things."""

from __future__ import annotations

import subprocess

import pytest
from holdfast_command import holdfast


def completed(monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """Return what bash is given for a line whose last word is begun."""
    words = line.split(" ")
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    return holdfast().stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("holdfast com", ["compile", "compare"]),
        ("holdfast compare --mark", ["--markdown"]),
        ("holdfast compare wax", ["waxman:"]),
        ("holdfast topology abi", ["abilene"]),
        ("holdfast run fat", ["fat-tree:"]),
        ("holdfast compare ring:4 --mechanisms reroute,mpls-p", ["reroute,mpls-path"]),
        ("holdfast compare ring:4 --mechanisms reroute,rer", []),
        ("holdfast reproduce gm", ["gmpls_tcp_2001"]),
        ("holdfast schema t", ["topology", "traffic"]),
        ("holdfast bng un", ["undrain"]),
        ("holdfast run my", []),
    ],
)
def test_what_is_completed(monkeypatch: pytest.MonkeyPatch, line: str, words: list[str]) -> None:
    assert completed(monkeypatch, line) == words


def test_bash_takes_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--install-completion" in holdfast("--help").stdout
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "source_bash")
    script = holdfast().stdout
    assert "complete -o default" in script, "files are completed where no name is"
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
