"""The modules of a crate import each other in one direction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"

#: Comments, and literals of strings and characters.
_NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(#+)".*?"\1|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\[^u]|\\u\{\w+\})'""", re.DOTALL
)
_TEST_ITEM = re.compile(
    r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z]+\))?\s+)?(?:mod|use|impl|fn)\b"
)
_PATH = re.compile(r"\bcrate::")


def without_tests(source: str) -> str:
    """Return Rust source without tests, comments and strings."""
    source = _NO_CODE.sub(" ", source)
    while (found := _TEST_ITEM.search(source)) is not None:
        end = found.end()
        while source[end] not in "{;":
            end += 1
        depth = source[end] == "{"
        while depth:
            end += 1
            depth += (source[end] == "{") - (source[end] == "}")
        source = source[: found.start()] + source[end + 1 :]
    return source


def first_names(tree: str) -> list[str]:
    """Return the first names in a Rust use tree: a and c of ``{a::b, c}``, a of ``a::{b, c}``."""
    if not tree.startswith("{"):
        name = re.match(r"\w+", tree)
        return [name.group()] if name else []
    names, depth, begin = [], 0, True
    for at, letter in enumerate(tree):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            break
        if depth == 1 and letter in "{,":
            begin = True
        elif begin and (name := re.match(r"\w+", tree[at:])):
            names.append(name.group())
            begin = False
    return names


def module_of(path: Path, source_root: Path) -> str:
    """Return the name of the crate's top-level module to which a file belongs."""
    return path.relative_to(source_root).with_suffix("").parts[0]


def is_test(path: Path, source_root: Path) -> bool:
    return "tests" in path.relative_to(source_root).with_suffix("").parts


def imports(source_root: Path) -> dict[str, set[str]]:
    """Return for each module of a crate the modules of the crate that it names."""
    root = without_tests((source_root / "lib.rs").read_text())
    modules = set(re.findall(r"\bmod\s+(\w+)\s*;", root))
    names = {name: name for name in modules}
    # What the root gives on belongs to the module that it is from.
    for module, tree in re.findall(r"\bpub(?:\([a-z]+\))?\s+use\s+(?:crate::|self::)?(\w+)::([^;]*);", root):
        if module in modules:
            for name in re.findall(r"\w+", tree):
                names.setdefault(name, module)
    found: dict[str, set[str]] = {module: set() for module in modules}
    for path in source_root.rglob("*.rs"):
        module = module_of(path, source_root)
        if module not in modules or is_test(path, source_root):
            continue
        source = without_tests(path.read_text())
        paths = [source[at.end() :] for at in _PATH.finditer(source)]
        if path.parent == source_root or path.name == "mod.rs":
            paths += [source[at.end() :] for at in re.finditer(r"\bsuper::", source)]
        for tree in paths:
            found[module] |= {names[name] for name in first_names(tree) if name in names} - {module}
    return found


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the sets of modules that name each other in a circle, directly or not."""
    reach = {module: set(named) for module, named in graph.items()}
    for middle in graph:
        for module in graph:
            if middle in reach[module]:
                reach[module] |= reach[middle]
    mutual = {module: frozenset(other for other in reach[module] if module in reach[other]) for module in graph}
    return {others for others in mutual.values() if len(others) > 1}


@pytest.mark.parametrize("crate", sorted(path.parents[1].name for path in CRATES.glob("*/src/lib.rs")))
def test_modules_import_each_other_in_one_direction(crate: str) -> None:
    graph = imports(CRATES / crate / "src")
    assert len(graph) > 1, "the modules were found"
    assert any(graph.values()), "their imports were found"
    assert circles(graph) == set(), {module: sorted(named) for module, named in graph.items()}


def test_a_circle_is_found(tmp_path: Path) -> None:
    """Check each way in which a module can name another one."""
    for back in (
        "use crate::a::A;",
        "use crate::{b::B, a};",
        "use crate::{b::{B, C}, A};",
        "fn f(_: crate::A) {}",
        "use super::a;",
    ):
        (tmp_path / "lib.rs").write_text("mod a;\nmod b;\nmod c;\npub use a::A;\npub struct Root;\n")
        (tmp_path / "a.rs").write_text("use crate::b::B;\n")
        (tmp_path / "b.rs").write_text("use crate::c::C;\n")
        (tmp_path / "c.rs").write_text(f"{back}\n")
        assert circles(imports(tmp_path)) == {frozenset("abc")}, back
    for no_way in (
        "// use crate::a::A;",
        "#[cfg(test)]\nmod tests {\n use crate::a::A;\n fn f() {}\n}",
        "use crate::Root;",
    ):
        (tmp_path / "c.rs").write_text(f"{no_way}\n")
        assert circles(imports(tmp_path)) == set(), no_way
