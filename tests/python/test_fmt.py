"""``holdfast fmt``, and the compiler's diagnostics for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from holdfast_command import holdfast

from holdfast import _core

UNTIDY = "struct  s{bit<8>  a ;\n}\n"
TIDY = "struct s {bit<8> a;\n}\n"


def test_files_are_formatted_in_place(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    files = [tmp_path / "a.p4", tmp_path / "folder/b.p4"]
    for file in files:
        file.write_text(UNTIDY)
    (tmp_path / "folder/note.txt").write_text(UNTIDY)
    checked = holdfast("fmt", "--check", str(files[0]), cwd=tmp_path)
    assert checked.returncode == 1 and "a.p4 would change" in checked.stderr
    shown = holdfast("fmt", "--diff", str(files[0]), cwd=tmp_path)
    assert shown.returncode == 0
    assert "-struct  s{bit<8>  a ;\n+struct s {bit<8> a;\n }\n" in shown.stdout
    assert [file.read_text() for file in files] == [UNTIDY, UNTIDY]
    assert holdfast("fmt", "a.p4", "folder", cwd=tmp_path).returncode == 0
    assert [file.read_text() for file in files] == [TIDY, TIDY]
    assert (tmp_path / "folder/note.txt").read_text() == UNTIDY
    again = holdfast("fmt", "--check", "a.p4", "folder", cwd=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")


def test_what_cannot_be_formatted_is_named_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a.p4").write_text("\nx; /* y\n")
    (tmp_path / "b.p4").write_bytes(b"\xff\n")
    (tmp_path / "c.p4").write_text(UNTIDY)
    result = holdfast("fmt", "a.p4", "b.p4", "c.p4", cwd=tmp_path)
    assert result.returncode == 1
    assert "a.p4: line 2: this comment has no end" in result.stderr
    assert "b.p4: it is not UTF-8" in result.stderr
    assert (tmp_path / "a.p4").read_text() == "\nx; /* y\n"
    assert (tmp_path / "c.p4").read_text() == TIDY
    assert "there is no file 'd.p4'" in holdfast("fmt", "d.p4", cwd=tmp_path).stderr
    with pytest.raises(_core.HoldfastError, match="line 1"):
        _core.format_source('"')


LIBRARY = "const bit<8> A = 300;\n"


def test_diagnostics_are_printed_as_json_lines(tmp_path: Path) -> None:
    (tmp_path / "wrong.p4").write_text("const bit<8> LENGTH = 1;\nconst bit<8> B = LENGHT;\n")
    result = holdfast("compile", "--json", "wrong.p4", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    (error,) = [json.loads(line) for line in result.stdout.splitlines()]
    place = {"file": "wrong.p4", "line": 2, "column": 18, "end_line": 2, "end_column": 24}
    assert place.items() <= error.items()
    assert (error["severity"], error["hint"]) == ("error", "did you mean `LENGTH`?")
    assert error["code"].startswith("E") and "LENGHT" in error["message"] and "-->" in error["rendered"]
    (tmp_path / "library.p4").write_text(LIBRARY)
    result = holdfast("compile", "--json", "library.p4", cwd=tmp_path)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 0 and {one["severity"] for one in found} == {"warning"}


def closed(required: dict[str, object], optional: dict[str, object] | None = None) -> dict[str, object]:
    """Return the schema of an object with these members and no others."""
    members = required | (optional or {})
    return {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}


TEXT, NUMBER = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 1}
REGION = closed(dict.fromkeys(("startLine", "startColumn", "endLine", "endColumn"), NUMBER))
ARTIFACT = closed({"uri": {"type": "string", "pattern": "^[!-~]+$"}})
LOCATION = closed({"physicalLocation": closed({"artifactLocation": ARTIFACT, "region": REGION})})
RESULT = closed(
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": closed({"text": TEXT}),
        "locations": {"type": "array", "items": LOCATION},
    }
)
DRIVER = closed({"name": TEXT, "version": TEXT, "rules": {"type": "array", "items": closed({"id": TEXT})}})
RUN = closed(
    {
        "tool": closed({"driver": DRIVER}),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT},
    }
)
SARIF = closed({"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": {"type": "array", "minItems": 1, "items": RUN}})
"""The parts of SARIF 2.1.0 (OASIS, 2020, sections 3.13 to 3.52) that are written, with the names that they have there."""


@pytest.mark.parametrize("program", ["const bit<8> B = A;\n", LIBRARY, "const bit<8> A = 3;\n"])
def test_diagnostics_are_written_as_sarif(tmp_path: Path, program: str) -> None:
    file = tmp_path / "ä b.p4"
    file.write_text(program)
    shown = holdfast("compile", "--sarif", "log.sarif", file.name, cwd=tmp_path)
    log = json.loads((tmp_path / "log.sarif").read_text())
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    assert (shown.stderr == "") == (run["results"] == [])
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%C3%A4%20b.p4"
        assert f"{result['level']}[{result['ruleId']}]" in shown.stderr
    assert "there is no directory" in holdfast("compile", "--sarif", "no/log", file.name, cwd=tmp_path).stderr
