"""requirements/ holds a version, with hashes, of every requirement of pyproject.toml (``make lock`` writes it)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def locked(name: str) -> dict[str, list[tuple[Version, int]]]:
    """Return for each package in a requirements file its versions, each as (version, number of hashes).

    A package may have one version for each kind of machine.
    """
    text = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8").replace("\\\n", "")
    result: dict[str, list[tuple[Version, int]]] = {}
    for line in text.splitlines():
        if found := re.match(r"([A-Za-z0-9._-]+)(?:\[.*?\])?==([^ ;]+)", line):
            package = canonicalize_name(found[1])
            result.setdefault(package, []).append((Version(found[2]), line.count("--hash=sha256:")))
    return result


def wanted(file: str) -> list[str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def expanded(requirements: list[str]) -> Iterator[Requirement]:
    """Yield the requirements, with those of the package's own extras in the place of the extras."""
    for each in map(Requirement, requirements):
        if each.name == PROJECT["name"]:
            for extra in each.extras:
                yield from expanded(EXTRAS[extra])
        else:
            yield each


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("locked", [*PROJECT["dependencies"], *EXTRAS["test"], *EXTRAS["web"], *wanted("requirements/build.in")]),
        ("ray", [*PROJECT["dependencies"], *EXTRAS["ray"]]),
        ("shell", wanted("tests/p4runtime/shell-requirements.txt")),
        ("site", wanted("requirements/site.in")),
        ("release", wanted("requirements/release.in")),
    ],
)
def test_what_is_asked_for_is_locked(name: str, requirements: list[str]) -> None:
    found = locked(name)
    for requirement in expanded(requirements):
        versions = found[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version, _ in versions), str(requirement)
    assert all(hashes for versions in found.values() for _, hashes in versions)
