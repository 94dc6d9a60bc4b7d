"""A match kind is declared once: others ask, and nothing but the places listed here names one, each with its reason."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from test_rooms import WRITERS, code

from holdfast.p4runtime.p4info import MATCH_KINDS

ROOT = Path(__file__).parents[2]

#: The declaration, of which a kind is a row.
DECLARATION = "crates/ir/src/program/match_kind.rs"

#: Other places that name a match kind, by file: how many lines, and why. One that is gone goes from here too.
PLACES: dict[str, tuple[int, str]] = {
    "crates/compile/src/p4info/build.rs": (1, "a field of a value set without @match is exact"),
    "crates/ir/src/arbitrary.rs": (1, "arbitrary tables with a selector have its fields"),
    "crates/p4runtime/src/messages.rs": (11, "P4Runtime's message of each kind"),
    "crates/p4runtime/src/info.rs": (1, "a value that is no key field is exact"),
    "crates/syntax/src/ast/types.rs": (1, "the annotation @optional"),
    "python/holdfast/bmv2/program_json.py": (2, "BMv2's name of a table's kind, from those of its fields"),
    "python/holdfast/bmv2/runtime_commands.py": (1, "BMv2's names of kinds"),
    "python/holdfast/bmv2/thrift_types.py": (2, "the fields of a message of BMv2's"),
    "python/holdfast/p4runtime/p4info.py": (5, "the client's own table, which is compared with the declaration"),
}

_ROW = re.compile(r'MatchKind::(\w+) => \("(\w+)", Form::(\w+), (true|false), (true|false)\)')


def declared(root: Path) -> dict[str, tuple[str, str, bool, bool]]:
    """Return all kinds by their names in P4: variant, form, and whether they have a don't-care and a priority."""
    rows = _ROW.findall((root / DECLARATION).read_text())
    return {name: (variant, form, has_any == "true", prior == "true") for variant, name, form, has_any, prior in rows}


def rust_names(root: Path) -> re.Pattern[str]:
    """Return what matches the name of a kind in Rust: of a variant, or in quotes."""
    kinds = declared(root)
    variants = "|".join(sorted(variant for variant, *_ in kinds.values()))
    return re.compile(rf'MatchKind::(?:{variants}|\*|\{{)|"(?:{"|".join(sorted(kinds.keys() - {"selector"}))})"')


def python_names(root: Path) -> re.Pattern[str]:
    """Return what matches a line of Python that names a kind: in quotes, where they are compared with a kind or listed."""
    names = "|".join(sorted(declared(root).keys() - {"selector"}))
    return re.compile(rf'kind\b[^"]*"(?:{names})"|^\s*"(?:{names})": MatchKind|"(?:lpm|ternary)"')


def places(root: Path) -> dict[str, list[str]]:
    """Return the lines of the product's source that name a match kind outside of the declaration, by file."""
    found = dict[str, list[str]]()
    sources = itertools.chain((root / "crates").glob("*/src/**/*.rs"), (root / "python/holdfast").glob("**/*.py"))
    for path in sorted(sources):
        name = path.relative_to(root).as_posix()
        is_test = "/test" in name or "conftest" in name or name.endswith(("/official.rs", "/test_programs.rs"))
        if is_test or name == DECLARATION or name.startswith(WRITERS) or "/generated/" in name:
            continue
        text = path.read_text()
        is_rust = path.suffix == ".rs"
        lines = (code(text) if is_rust else text).splitlines()
        pattern = (rust_names if is_rust else python_names)(root)
        named = [f"{name}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if pattern.search(line)]
        if named:
            found[name] = named
    return found


def test_nothing_outside_of_the_places_names_a_match_kind() -> None:
    found = places(ROOT)
    counts = {name: len(lines) for name, lines in found.items()}
    assert counts == {name: count for name, (count, _) in PLACES.items()}, "\n".join(itertools.chain(*found.values()))
    assert all(reason for _, reason in PLACES.values())


def test_python_knows_of_kinds_what_the_declaration_says() -> None:
    kinds = {name: (form.lower(), *rest) for name, (_, form, *rest) in declared(ROOT).items() if form != "Unstated"}
    assert kinds == {name: tuple(kind) for name, kind in MATCH_KINDS.items()}
    assert len(kinds) >= 5


@pytest.mark.parametrize(
    ("name", "line", "is_found"),
    [
        ("crates/jit/src/code.rs", "MatchKind::Exact => {}", True),
        ("crates/jit/src/code.rs", "use ir::MatchKind::{Lpm, Ternary};", True),
        ("crates/jit/src/code.rs", 'match name { "lpm" => 1, _ => 2 }', True),
        ("crates/jit/src/code.rs", "key.kind.is_prefix()", False),
        ("crates/jit/src/code.rs", "// As in MatchKind::Exact.", False),
        ("crates/jit/src/code.rs", "ExprKind::Ternary(a, b, c)", False),
        ("python/holdfast/new.py", 'if field.kind == "exact":', True),
        ("python/holdfast/new.py", 'if field.kind in ("range", "optional"):', True),
        ("python/holdfast/new.py", 'if field.form == "range":', False),
        ("python/holdfast/new.py", 'table = "ipv4_lpm"', False),
    ],
)
def test_a_new_place_is_found(tmp_path: Path, name: str, line: str, is_found: bool) -> None:
    for each in (DECLARATION, name):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / DECLARATION).write_text((ROOT / DECLARATION).read_text())
    (tmp_path / name).write_text(f"{line}\n")
    assert (name in places(tmp_path)) == is_found
