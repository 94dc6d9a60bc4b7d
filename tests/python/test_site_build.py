"""The documentation site: every page is reachable, every link leads somewhere, and the reference has every command and name."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import command_line
import pytest
import site_build
from site_build import Site, SiteError
from site_docstrings import markdown

import holdfast

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("site"))
    made.write()
    return made


def test_every_page_and_every_file_that_it_links_to_is_there(site: Site) -> None:
    pages = list(site.pages.rglob("*.md"))
    assert len(pages) > 30
    links = 0
    for page in pages:
        for is_prose, part in site_build.prose(page.read_text(encoding="utf-8")):
            if is_prose:
                for target in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", part):
                    links += 1
                    assert (page.parent / target).is_file(), f"{page}: {target}"
    assert links > 100


def test_a_link_that_leads_nowhere_is_an_error(site: Site) -> None:
    with pytest.raises(SiteError, match=r"docs/AGENT\.md: the link to \.\./no\.md leads nowhere"):
        site.page("docs/AGENT.md", "[x](../no.md)")


def test_links_become_those_of_the_site(site: Site) -> None:
    text = "[a](../python/holdfast/compare/README.md#ranking) [b](../crates) [c](https://x.org) ![d](demo.png)\n"
    found = "[a](compare.md#ranking) b [c](https://x.org) ![d](demo.png)\n"
    block = "```\n[e](no.md)\n```\n"
    assert site.page("docs/AGENT.md", text + block) == found + block


def test_a_page_that_the_navigation_lacks_is_an_error(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.texts["docs/lost.md"] = "# Lost\n"
    with pytest.raises(SiteError, match=r"lost\.md"):
        site.write()


def test_the_reference_has_every_name_that_the_package_offers() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    documented = set(re.findall(r"^::: [\w.]+\.(\w+)$", text, re.MULTILINE))
    errors = {name for name in holdfast.__all__ if issubclass(getattr(holdfast, name), holdfast.HoldfastError)}
    assert "::: holdfast.errors\n" in text
    assert {*holdfast.__all__} - errors <= documented


def test_the_page_of_the_command_line_has_every_command_and_option() -> None:
    text = command_line.page()
    found = command_line.commands()
    assert {"holdfast", "holdfast compare", "holdfast port add"} < {command.name for command in found}
    assert "holdfast p4c-bm2-ss" not in text
    for command in found:
        assert f"## `{command.name}`" in text
    assert "<code>--executor &#60;jit&#124;interpreter></code>\n:   Executor of the packets." in text


def test_man_pages_are_sound() -> None:
    found = command_line.commands()
    for command in found:
        text = command_line.manual(command, found)
        assert text.startswith('.TH "HOLDFAST')
        for name, _ in command.options:
            assert rf"\fB{name}\fR".replace("-", r"\-") in text
    if shutil.which("groff"):
        text = "".join(command_line.manual(command, found) for command in found)
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and not done.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Return a :class:`~a.b.C`, or :func:`d`.", "Return a `C`, or `d`."),
        ("So::\n\n    x = 1\n    y\n\nThen.", "So:\n\n```python\nx = 1\ny\n```\n\nThen."),
        ("One.\n\n.. code-block:: yaml\n\n    a: 1\n", "One.\n\n```yaml\na: 1\n```"),
        ("Nothing: a ``b``.", "Nothing: a ``b``."),
    ],
)
def test_docstrings_become_markdown(text: str, found: str) -> None:
    assert markdown(text) == found


def test_a_notebook_becomes_a_page(site: Site) -> None:
    text = (site.pages / "examples/notebooks/one_failure.md").read_text(encoding="utf-8")
    assert text.startswith("# One failure") and "```python\nlost = {" in text
