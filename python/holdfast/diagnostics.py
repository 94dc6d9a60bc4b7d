"""The compiler's diagnostics for other programs: JSON, a line each, and SARIF for services that show them beside the source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast._core import Diagnostic
from holdfast.version import version

FIELDS = (
    "file",
    "line",
    "column",
    "end_line",
    "end_column",
    "severity",
    "code",
    "message",
    "notes",
    "hint",
    "rendered",
)


def json_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the diagnostics as JSON objects, one a line; lines and columns count from 1, and columns characters."""
    objects = ({name: getattr(diagnostic, name) for name in FIELDS} for diagnostic in diagnostics)
    return "".join(json.dumps(one) + "\n" for one in objects)


def sarif(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return the diagnostics as a log of SARIF 2.1.0 (OASIS, 2020)."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    driver = {
        "name": "holdfast",
        "version": version(),
        "rules": [{"id": code} for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in diagnostics],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    notes = [f"note: {note}" for note in diagnostic.notes]
    hints = [f"hint: {diagnostic.hint}"] if diagnostic.hint is not None else []
    region = {
        "startLine": diagnostic.line,
        "startColumn": diagnostic.column,
        "endLine": max(diagnostic.end_line, diagnostic.line),
        "endColumn": diagnostic.end_column,
    }
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": "\n".join([diagnostic.message, *notes, *hints])},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": _uri(diagnostic.file)}, "region": region}},
        ],
    }


def _uri(file: str) -> str:
    """Return the URI of a file: relative to where the command runs, as it was named, or absolute."""
    return Path(file).as_uri() if Path(file).is_absolute() else quote(file)
