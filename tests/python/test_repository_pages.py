"""The blocks of the repository's own pages (README files and docs in capitals): programs run, commands and what they name exist.

The pages of the site are in ``test_site_pages.py``. YAML is read by ``test_compare_examples.py``. Pages that ``OWN`` names have
tests of their own.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import site_build
from site_pages import Block, fences, included

from holdfast import SimulatedNetwork, Topology

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in ("README.md", *site_build.sources())
    if not (page.startswith("docs/") and Path(page).name.islower()) and page != "docs/FORMATS.md"
]
APPS = "python/holdfast/apps/"
OWN = {
    "README.md": "tests/python/test_repository.py",
    "docs/CONTROLLERS.md": "tests/python/test_controllers_page.py",
    "docs/MECHANISMS.md": "tests/python/test_mechanisms_page.py",
    "docs/EDITORS.md": "tests/python/test_lsp.py",
    "docs/SECURITY.md": "tests/python/test_security.py",
    f"{APPS}bng/README.md": "tests/live/test_bng.py",
    f"{APPS}firewall/README.md": f"{APPS}firewall/test_controller.py",
    f"{APPS}shorternet/README.md": f"{APPS}shorternet/test_networks.py",
    f"{APPS}telemetry/README.md": f"{APPS}telemetry/test_network.py",
    "python/holdfast/console/README.md": "python/holdfast/console/test_session.py",
    "python/holdfast/topologies/README.md": "tests/python/test_topologies.py",
}
"""Pages whose programs other tests run, each with one of them."""

DRAWN = {
    ("ARCHITECTURE.md", "router.p4 --syntax--> tree"),
    ("ARCHITECTURE.md", "host -> link (queue, rate"),
    (f"{APPS}bng/README.md", "lines -- balancer -- auth"),
    (f"{APPS}protect/README.md", "Ethernet | outer IPv4"),
    (f"{APPS}shorternet/README.md", " station | station | protocol"),
}
"""Blocks that are pictures of characters: page, and how the block begins."""

OUTSIDE = {("docs/VALIDATION.md", "p4c-bm2-ss --std p4-16")}
"""Blocks of commands of BMv2's, which no machine of ours has."""

BLOCKS = [block for page in PAGES for block in fences(page, included((ROOT / page).read_text(encoding="utf-8")))]


def listed(block: Block, places: set[tuple[str, str]]) -> bool:
    return any(block.page == page and block.text.startswith(begin) for page, begin in places)


def ways(with_host: bool) -> Topology:
    """Return three ways between two hosts; the second host's link is left to a program that adds it."""
    topology = Topology("three ways")
    for name in ("s1", "s2", "s3", "s4", "s5"):
        topology.add_switch(name)
    topology.add_host("h1")
    topology.add_host("h2")
    for a, b in (("h1", "s1"), ("s1", "s2"), ("s2", "s4"), ("s1", "s3"), ("s3", "s4"), ("s1", "s5"), ("s5", "s4")):
        topology.add_link(a, b)
    if with_host:
        topology.add_link("s4", "h2")
    return topology


@pytest.mark.parametrize("page", sorted({b.page for b in BLOCKS if b.language == "python"} - {*OWN}))
def test_the_programs_of_a_page_run(page: str) -> None:
    names: dict[str, Any] = {"SimulatedNetwork": SimulatedNetwork, "packet": bytes(64)}
    for block in BLOCKS:
        if block.page == page and block.language == "python":
            names["topology"] = ways("add_link" not in block.text)
            exec(compile(block.text, block.where, "exec"), names)


def test_tests_that_are_named_read_the_page() -> None:
    for page, test in OWN.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert Path(page).name in text, f"{test} does not read {page}"


def wrong(block: Block) -> str | None:
    """Return what is wrong with a block of commands, or of a language that no test reads; None if nothing is."""
    if block.language in ("yaml", "python") or listed(block, DRAWN | OUTSIDE):
        return None
    if block.language == "p4" and block.text.strip() in (ROOT / "examples/backup_port/backup.p4").read_text():
        return None
    if block.language not in ("", "sh", "console"):
        return None if block.page in OWN else "no test reads this block"
    lines = [line.removeprefix("$ ") for line in block.text.splitlines() if line.strip()]
    if block.text.startswith("$ ") or block.language == "console":
        lines = [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
    unknown = [line for line in lines if not _exists(line.partition("  #")[0].strip(), block.page)]
    return f"nothing says whether this works: {unknown[0]}" if unknown else None


def _exists(line: str, page: str) -> bool:
    line = re.sub(r"^(?:\w+=\S+ )+", "", line)
    program, _, rest = line.partition(" ")
    if program == "holdfast":
        return True
    if program == "make":
        return re.search(rf"^{rest.split()[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE) is not None
    if program == "python":
        if found := re.match(r"-P -m (\S+)", rest):
            return importlib.util.find_spec(found[1]) is not None
        return (ROOT / rest.split()[0]).is_file()
    if program == "cargo":
        crate = re.search(r"-p holdfast-(\w+)", rest)
        target = re.search(r"--(example|test) (\w+)", rest)
        place = {"example": "examples", "test": "tests"}
        return bool(crate and target and (ROOT / f"crates/{crate[1]}/{place[target[1]]}/{target[2]}.rs").is_file())
    return page in OWN


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS}))
def test_every_block_is_looked_at(page: str) -> None:
    for block in BLOCKS:
        if block.page == page:
            assert (found := wrong(block)) is None, f"{block.where}: {found}"


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("```\nmake test\n```\n", True),
        ("```\nmake tea\n```\n", False),
        ("```\npython benches/page.py --quick\n```\n", True),
        ("```\npython benches/pages.py\n```\n", False),
        ("```\npython -P -m holdfast.nothing\n```\n", False),
        ("```\nA=1 cargo run --release -p holdfast-tcp --example speed\n```\n", True),
        ("```\ncargo run --release -p holdfast-tcp --example sped\n```\n", False),
        ("```\n$ dance\nanything\n```\n", False),
        ("```rust\nfn main() {}\n```\n", False),
        ("```p4\nheader h {}\n```\n", False),
    ],
)
def test_what_nothing_checks_is_found(text: str, sound: bool) -> None:
    assert (wrong(next(fences("page.md", text))) is None) is sound


def test_lists_are_of_blocks_that_are_there() -> None:
    for page, begin in DRAWN | OUTSIDE:
        assert any(listed(block, {(page, begin)}) for block in BLOCKS), (page, begin)
