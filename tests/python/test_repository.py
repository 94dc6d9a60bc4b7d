"""The repository's own rules: the map matches the tree, the README is short, no text refers to a machine's paths."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tracked() -> list[str]:
    try:
        text = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return text.splitlines()


def test_no_output_of_a_command_is_tracked() -> None:
    roots = {path for path in tracked() if "/" not in path}
    assert roots == {
        *(".gitignore", ".pre-commit-config.yaml", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.lock"),
        *(
            "Cargo.toml",
            "Containerfile",
            "LICENSE",
            "Makefile",
            "README.md",
            "clippy.toml",
            "conftest.py",
            "pyproject.toml",
        ),
        "rust-toolchain.toml",
    }
    outputs = [path for path in tracked() if path.endswith((".holdfast", ".p4info.txtpb", ".so", ".pcap"))]
    assert [path for path in outputs if not path.startswith("tests/")] == []


def crates() -> set[str]:
    return {path.split("/")[1] for path in tracked() if path.startswith("crates/")}


def test_every_crate_and_folder_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    mapped = set(re.findall(r"^\| `crates/(\w+)`", text, re.MULTILINE))
    assert mapped == crates()
    folders = {path.split("/")[0] for path in tracked() if "/" in path and not path.startswith(".")} - {"crates"}
    assert folders <= set(re.findall(r"^\| `(\w+)", text, re.MULTILINE))


def test_every_crate_is_tested_with_assertions() -> None:
    profile = tomllib.loads((ROOT / "tests/profile.toml").read_text())["profile"]["release"]["package"]
    assert set(profile) == {f"holdfast-{crate}" for crate in crates()}


def test_where_to_begin_exists() -> None:
    """Check that each function or type in the table "Where to begin" is in the file named beside it."""
    table = (
        (ROOT / "ARCHITECTURE.md")
        .read_text(encoding="utf-8")
        .partition("## Where to begin")[2]
        .partition("## The map")[0]
    )
    places = re.findall(r"`([\w/.]+\.(?:rs|py))`: `(\w+)`", table)
    assert len(places) > 15
    for file, name in places:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"\b(fn|def|enum|struct|class) {name}\b", text), f"{name} is not in {file}"


def test_every_application_has_its_parts() -> None:
    apps = ROOT / "python/holdfast/apps"
    for app in (p for p in apps.iterdir() if p.is_dir() and p.name != "__pycache__"):
        for part in (f"{app.name}.p4", "controller.py", "README.md"):
            assert (app / part).is_file(), f"{app.name} lacks {part}"


def test_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 100
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_the_readmes_program_prints_what_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(program, {})
    printed = capsys.readouterr().out
    sent, lost = re.search(r"# (\d+) sent, (\d+) lost", program).groups()  # type: ignore[union-attr]
    assert f"sent={sent}," in printed
    assert f"lost={lost}," in printed


def test_nothing_large_was_added() -> None:
    sizes = {path: (ROOT / path).stat().st_size for path in tracked() if (ROOT / path).is_file()}
    assert not [path for path, size in sizes.items() if size > 1_000_000]


def test_every_dependency_has_its_sentence() -> None:
    text = (ROOT / "docs/DEPENDENCIES.md").read_text()
    manifest = (ROOT / "Cargo.toml").read_text()
    section = manifest.split("[workspace.dependencies]")[1].split("\n[")[0]
    for name in re.findall(r"^([\w-]+) *=", section, re.MULTILINE):
        if f'{name} = {{ path = "crates/' not in section:
            assert name in text or name.startswith("cranelift"), f"{name} is not in docs/DEPENDENCIES.md"


def test_no_unfinished_work_and_no_path_of_a_machine() -> None:
    pattern = re.compile(r"todo!\(|unimplemented!\(|raise NotImplementedError|(?<![\w/])/(?:work|home|root)/\w")
    for path in tracked():
        if path.endswith((".rs", ".py", ".p4", ".md", ".toml", "Makefile")) and not path.endswith("test_repository.py"):
            match = pattern.search((ROOT / path).read_text())
            assert match is None, f"{path}: {match[0] if match else ''}"


def test_no_application_imports_another() -> None:
    apps = ROOT / "python/holdfast/apps"
    for path in apps.glob("*/*.py"):
        imported = re.findall(
            r"^\s*(?:from|import) holdfast\.apps\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert set(imported) <= {path.parent.name}, path


def test_paths_that_contributors_are_sent_to_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {
        name
        for name in re.findall(r"`([a-z0-9_./]+/[a-z0-9_./]+)`", text)
        if not name.startswith(("fuzz/attack_", "out/"))
    }
    assert len(named) > 30
    places = (ROOT, ROOT / "crates", ROOT / "python/holdfast", ROOT / "python/holdfast/apps")
    assert not [name for name in named if not any((place / name).exists() for place in places)]


def test_the_slow_tests_that_are_named_are_there() -> None:
    named = (ROOT / "tests/slow.txt").read_text().split()
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).exists()]
