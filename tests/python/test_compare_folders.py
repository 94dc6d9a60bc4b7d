"""Each comparison has a folder of its own, and nothing is overwritten without a word."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast_command import holdfast

BRIEF = [
    "--mechanisms",
    "static",
    "--fail",
    "s1-s2",
    "--before-s",
    "0.1",
    "--down-s",
    "0.1",
    "--after-s",
    "0",
    "--jobs",
    "1",
]


def runs_made(folder: Path) -> int:
    made: int = json.loads((folder / "sweep.json").read_text())["runs_of_this_call"]
    return made


def test_another_comparison_has_another_folder_and_the_same_one_its_own(tmp_path: Path) -> None:
    (tmp_path / "traffic.yaml").write_text("udp: [{source: h1, destination: h2}]")
    brief = [*BRIEF, "--traffic", "traffic.yaml"]

    def compared(*more: str) -> str:
        done = holdfast("compare", "ring:3", *brief, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("results in")]
        return line.partition(";")[0]

    assert compared() == "results in out/compare/"
    first = (tmp_path / "out/compare/summary.json").read_bytes()
    assert compared("--seeds", "2") == "results in out/compare-2/"
    # The runs of the first seed are those of the first comparison.
    assert runs_made(tmp_path / "out/compare/runs") == 2
    assert compared("--down-s", "0.2") == "results in out/compare-3/"
    assert compared() == "results in out/compare/"
    assert runs_made(tmp_path / "out/compare/runs") == 0
    assert (tmp_path / "out/compare/summary.json").read_bytes() == first
    assert compared("--seeds", "2") == "results in out/compare-2/"
    # What is required and written besides is no other comparison.
    assert compared("--csv", "--require", "lost < 1000") == "results in out/compare/"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"compare", "compare-2", "compare-3"}


def test_a_folder_that_is_named_is_taken_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "traffic.yaml").write_text("udp: [{source: h1, destination: h2}]")

    def said(*more: str) -> str:
        words = ["compare", "ring:3", *BRIEF, "--traffic", "traffic.yaml", "--out", "mine", *more]
        done = holdfast(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stderr

    replaced = "note: mine has the results of another comparison, which are replaced"
    assert replaced not in said()
    assert replaced not in said()
    assert replaced in said("--seeds", "2")
    (tmp_path / "mine/summary.json").write_text("no JSON")
    assert replaced in said("--seeds", "2")
    assert replaced not in said("--seeds", "2")
