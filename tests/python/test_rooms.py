"""An architecture is one room: nothing outside of the rooms names one, but for the places listed here, each with its reason."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Places outside of the rooms that name an architecture, by file: how many lines, and why. One that is gone goes from here too.
PLACES: dict[str, tuple[int, str]] = {
    "crates/ir/src/architecture.rs": (1, "the list of all rooms"),
}

#: Crates that write or measure P4 programs, each of which is for one architecture.
WRITERS = ("crates/bench/", "crates/conformance/")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TESTS = re.compile(
    r"#\[cfg\((?:test|all\(test\b[^\]]*|any\(test\b[^\]]*)\)\]\s*(?:pub\s+)?(?:mod|use)\s+\w+\s*\{.*", re.DOTALL
)


def rooms(root: Path) -> list[str]:
    """Return the names of all architectures' rooms, from their only list."""
    text = (root / "crates/ir/src/architecture.rs").read_text()
    (listed,) = re.findall(r"\$with! \{([^}]*)\}", text)
    return re.findall(r"\w+", re.sub(r"#\[[^\]]*\]", "", listed))


def room_files(root: Path) -> set[str]:
    return {
        f"crates/{crate}/{name}.rs"
        for name in rooms(root)
        for crate in ("ir/src/architecture", "compile/src/lower", "engine/src/architecture")
    }


def names(root: Path) -> re.Pattern[str]:
    """Return what matches any name of an architecture: of its room, in messages, of its package."""
    known = set(rooms(root))
    for room in rooms(root):
        text = (root / f"crates/ir/src/architecture/{room}.rs").read_text()
        known |= set(re.findall(r'^    (?:title|package): "(\w+)"', text, re.MULTILINE))
    return re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(known))})(?![a-z])", re.IGNORECASE)


def code(text: str) -> str:
    """Return Rust source without comments and modules of tests; lines stay in their places."""
    text = _COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text)
    return _TESTS.sub("", text)


def places(root: Path) -> dict[str, list[str]]:
    """Return the lines of the product's Rust source that name an architecture outside of its room, by file."""
    pattern, found = names(root), dict[str, list[str]]()
    for path in sorted((root / "crates").glob("*/src/**/*.rs")):
        name = path.relative_to(root).as_posix()
        if name in room_files(root) or name.startswith(WRITERS) or "/tests" in name or "/generated/" in name:
            continue
        lines = code(path.read_text()).splitlines()
        named = [f"{name}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if pattern.search(line)]
        if named:
            found[name] = named
    return found


def test_every_room_is_whole() -> None:
    assert {"v1model", "psa"} < set(rooms(ROOT))
    assert all((ROOT / name).is_file() for name in room_files(ROOT)), room_files(ROOT)


def test_nothing_outside_of_the_rooms_names_an_architecture() -> None:
    found = places(ROOT)
    counts = {name: len(lines) for name, lines in found.items()}
    assert counts == {name: count for name, (count, _) in PLACES.items()}, "\n".join(itertools.chain(*found.values()))
    assert all(reason for _, reason in PLACES.values())


def test_a_new_place_is_found(tmp_path: Path) -> None:
    for name in ("ir/src/architecture.rs", *(f"ir/src/architecture/{room}.rs" for room in rooms(ROOT))):
        path = tmp_path / "crates" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((ROOT / "crates" / name).read_text())
    before = places(tmp_path)
    source = tmp_path / "crates/jit/src/code.rs"
    source.parent.mkdir(parents=True)
    for asks in (
        'if program.architecture.description().name == "psa" {}',
        "use ir::architecture::v1model::DROP_PORT;",
        "let Some(standard) = program.v1model() else { return };",
        "Architecture::Psa(_) => None,",
        "fn psa_meter() {}",
        'has("PSA_Switch")',
    ):
        source.write_text(f"{asks}\n")
        assert places(tmp_path).keys() - before.keys() == {"crates/jit/src/code.rs"}, asks
    for asks_not in (
        "// As in v1model.",
        "fn upsala() {}",
        "#[cfg(test)]\nmod tests {\n use ir::architecture::psa;\n}",
    ):
        source.write_text(f"{asks_not}\n")
        assert places(tmp_path) == before, asks_not
