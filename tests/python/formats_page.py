"""Makes docs/FORMATS.md from the models that read files and the words of tables' columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast import schemas
from holdfast.apps.telemetry import rows as telemetry_rows
from holdfast.compare import columns

HEAD = """# Formats

The files that users write, key by key, and the columns of the tables that Holdfast writes. This page is made from the models
and the columns' own documentation (`UPDATE_EXPECT=1 pytest tests/python/test_formats.py`).

A key whose name ends in a unit takes a number in that unit, or a text with a unit, also under the name without it: `delay_ms:
5`, `delay_ms: 5ms` and `delay: 5ms` are the same. `holdfast schema NAME` prints the same as a JSON schema.
"""

FILES = {
    "topology": "A topology file",
    "traffic": "A traffic file",
    "entries": "An entries file",
    "rules": "A firewall's rules",
    "gateway": "A broadband gateway",
}

RESULTS = """## Results

Tables are Parquet files (`holdfast.results.read(FOLDER)` opens all of a folder); with `compare --csv` they are CSV, too. Names
end in the unit: `_ms` milliseconds, `_us` microseconds, `_ns` nanoseconds, `_bytes` bytes, `_percent` percent.
"""

SWEEPS = """### Sweeps

A sweep's `rows.parquet` has the values of its points, `seed`, and what its function returned: a row for each run.
`runs/rows.parquet` of a comparison of networks is one. A list has a number for each reception of probes, connection or
transfer, in the order of the traffic, and a curve one for each interval.
"""


def page() -> str:
    """Return the whole text."""
    parts = [HEAD, "## Files\n"]
    for name, heading in FILES.items():
        parts.append(_file(heading, name))
    parts.append(RESULTS)
    parts.append("### Comparisons of networks\n")
    for name, words in columns.NETWORKS.items():
        parts.append(_columns(f"`{name}.parquet`", words))
    parts.append("### Comparisons of gateways\n")
    parts.append(_columns("`cases.parquet`", columns.GATEWAY_CASES))
    parts.append(_columns("`subscribers.parquet`", columns.SUBSCRIBERS))
    parts.append(SWEEPS)
    parts.append(_columns("`runs/rows.parquet`", columns.RUNS))
    parts.append("### Telemetry reports\n")
    parts.append(_columns("`reports-00000.parquet` of `holdfast collect --parquet`", telemetry_rows.COLUMNS))
    return "\n".join(parts)


def _columns(heading: str, words: Mapping[str, str]) -> str:
    lines = [f"{heading}:\n", "| column | what it is |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {_cell(text)} |" for name, text in words.items())]) + "\n"


def _file(heading: str, name: str) -> str:
    schema = schemas.schema(name)
    text = [f"### {heading}\n", f"For {schemas.what(name).partition(', for ')[2]}.\n", _keys("The file", schema)]
    for part, inner in schema.get("$defs", {}).items():
        if "properties" in inner and part != "LinkDefaults":
            text.append(_keys(f"`{part.strip('_')}`", inner))
    return "\n".join(text)


def _keys(heading: str, schema: Mapping[str, Any]) -> str:
    about = f": {schema['description']}" if schema.get("description") else ""
    lines = [f"{heading}{about}\n", "| key | value | what it is |", "|---|---|---|"]
    required = schema.get("required", ())
    for key, value in schema["properties"].items():
        words = value.get("description", "")
        if "The same as " in words and words.endswith("with a unit."):
            continue
        default = value.get("default")
        end = f" Default: `{default}`." if default is not None and not isinstance(default, dict | list) else ""
        needed = " (required)" if key in required else ""
        lines.append(f"| `{key}`{needed} | {_cell(' or '.join(dict.fromkeys(_kinds(value))))} | {_cell(words + end)} |")
    return "\n".join(lines) + "\n"


def _kinds(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the forms of a value in words; numbers as text, and nothing, are left out."""
    if "$ref" in schema:
        yield f"`{schema['$ref'].rpartition('/')[2].strip('_')}`"
    elif "anyOf" in schema or "oneOf" in schema:
        forms = schema.get("anyOf", schema.get("oneOf", ()))
        numbers = any(each.get("type") in ("integer", "number") for each in forms)
        for each in forms:
            if not (numbers and "pattern" in each) and each.get("type") != "null":
                yield from _kinds(each)
    elif "enum" in schema:
        yield from (f"`{each}`" for each in schema["enum"])
    elif "const" in schema:
        yield f"`{schema['const']}`"
    elif schema.get("type") == "array":
        inner = schema.get("items") or {"anyOf": schema.get("prefixItems", [])}
        count = (
            f"{schema['minItems']} "
            if "minItems" in schema and schema.get("minItems") == schema.get("maxItems")
            else ""
        )
        yield f"list of {count}{' or '.join(dict.fromkeys(_kinds(inner))) or 'values'}"
    elif schema.get("type") == "object" or "additionalProperties" in schema:
        inner = schema.get("additionalProperties")
        yield (
            f"mapping to {' or '.join(dict.fromkeys(_kinds(inner)))}"
            if isinstance(inner, dict) and inner
            else "mapping"
        )
    else:
        kinds = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`"}
        yield kinds.get(str(schema.get("type")), "any value") + _range(schema)


def _range(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    found = [f"{text} {schema[name]:g}" for name, text in words.items() if name in schema]
    return f", {', '.join(found)}" if found else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
