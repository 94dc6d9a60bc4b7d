"""`holdfast stf` as users see it, wrong arguments included. Each command runs in a process of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from holdfast_command import holdfast

from holdfast import stf
from holdfast.regular_files import MOST_TEXT_BYTES

ECHO = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { hdr.h.a = hdr.h.a + STEP; sm.egress_spec = 1; }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    directory = tmp_path / "scripts"
    (directory / "below").mkdir(parents=True)
    for name, expected in (("right", "06"), ("below/wrong", "07")):
        (directory / f"{name}.p4").write_text(ECHO)
        (directory / f"{name}.stf").write_text(f"packet 0 05\nexpect 1 {expected} $\n")
    (directory / "alone.stf").write_text("packet 0 05\n")
    return directory


def test_stf_with_every_script_skipped_is_no_success(scripts: Path) -> None:
    result = holdfast("stf", str(scripts), "--filter", "alone")
    assert result.returncode == 1
    assert "0 failed, 1 skipped" in result.stdout


def test_stf_says_what_passed_failed_and_was_skipped(scripts: Path, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    result = holdfast("stf", str(scripts), "--json", str(file), "-D", "STEP=1")
    assert result.returncode == 1, result.stderr
    assert "1 passed, 0 passed without packets, 1 failed, 1 skipped" in result.stdout
    assert "expected 07$" in result.stdout
    assert "right" not in result.stdout
    report = json.loads(file.read_text())
    assert {key: report[key] for key in ("passed", "failed", "skipped")} == {"passed": 1, "failed": 1, "skipped": 1}
    cases = {case["name"]: case for case in report["cases"]}
    assert list(cases) == ["alone", "below/wrong", "right"]
    assert {name: case["status"] for name, case in cases.items()} == {
        "alone": "skipped",
        "below/wrong": "failed",
        "right": "passed",
    }
    assert cases["alone"]["reason"] == "there is no program of this name beside it"
    assert "got      06" in cases["below/wrong"]["reason"]
    assert cases["right"]["reason"] == ""


def test_stf_loads_the_program_of_an_empty_script(scripts: Path) -> None:
    (scripts / "right.stf").write_text("")
    file = scripts / "results.json"
    result = holdfast("stf", "right.stf", "-D", "STEP=1", "--json", str(file), cwd=scripts)
    assert result.returncode == 0, result.stderr
    assert "0 passed, 1 passed without packets, 0 failed, 0 skipped" in result.stdout
    assert json.loads(file.read_text())["passed without packets"] == 1
    # Without the macro the program does not compile.
    result = holdfast("stf", "right.stf", cwd=scripts)
    assert result.returncode == 1
    assert "does not compile" in result.stdout


def test_stf_takes_single_scripts(scripts: Path) -> None:
    result = holdfast("stf", "right.stf", "-D", "STEP=1", "--all", cwd=scripts)
    assert result.returncode == 0, result.stderr
    assert "1 passed, 0 passed without packets, 0 failed, 0 skipped" in result.stdout
    result = holdfast("stf", "right.stf", "below", "right.stf", "-D", "STEP=1", "--all", cwd=scripts)
    assert result.returncode == 1
    assert "1 passed, 0 passed without packets, 1 failed, 0 skipped" in result.stdout
    assert "below/wrong" in result.stdout


@pytest.mark.parametrize("executor", ["jit", "interpreter", "both"])
def test_stf_filters_and_runs_on_the_executor_asked_for(scripts: Path, executor: str) -> None:
    arguments = ("--filter", "ri*", "--executor", executor, "--all")
    result = holdfast("stf", str(scripts), *arguments, "-D", "STEP=1")
    assert result.returncode == 0, result.stderr
    assert "1 passed, 0 passed without packets, 0 failed, 0 skipped" in result.stdout
    assert "right" in result.stdout
    result = holdfast("stf", str(scripts), *arguments, "-D", "STEP=2")
    assert result.returncode == 1
    assert ("as machine code" if executor == "jit" else "on the interpreter") in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-directory"], "there is no file or directory 'no-such-directory'"),
        (["{}/right.p4"], "right.p4' is not a script: give NAME.stf"),
        (["{}", "--filter", "x*"], "no script"),
        (["{}", "--json", "no-such-directory/x.json"], "there is no directory for"),
        (["{}", "--executor", "gpu"], "'gpu' is not one of"),
    ],
)
def test_stf_says_what_is_wrong_with_its_arguments(scripts: Path, arguments: list[str], message: str) -> None:
    result = holdfast("stf", *(argument.format(scripts) for argument in arguments))
    assert result.returncode != 0
    assert message in result.stderr


def test_a_script_without_an_end_is_not_read(scripts: Path) -> None:
    for name in ("pipe", "device", "long"):
        (scripts / f"{name}.p4").write_text(ECHO)
    os.mkfifo(scripts / "pipe.stf")
    (scripts / "device.stf").symlink_to("/dev/zero")
    with (scripts / "long.stf").open("wb") as file:
        file.truncate(MOST_TEXT_BYTES + 1)
    cases = stf.run(stf.scripts([scripts], "[pdl]*"), "jit", [], {}, lambda _: None).cases
    assert {case.name: (case.status, case.reason) for case in cases} == {
        "pipe": ("failed", "the script is not a regular file"),
        "device": ("failed", "the script is not a regular file"),
        "long": ("failed", "the script is longer than 64 MiB"),
    }
