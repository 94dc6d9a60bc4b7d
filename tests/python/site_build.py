"""Puts the pages of the documentation site together: ``python tests/python/site_build.py DIRECTORY``, as ``make site`` does.

Every Markdown file of the repository that readers want is a page. It lies where :func:`place` says, and its links lead to pages
and files there. What the site does not have (such as a folder of source) is named without a link; a link to nothing is an error.
The pages about the command line are made of the commands themselves. Zensical makes HTML of all this, and checks the links again.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command_line
from site_pages import included

ROOT = Path(__file__).parents[2]
PACKAGE = "python/holdfast/"
SAME = {"README.md": "docs/index.md", "docs": "docs/index.md", "examples": "docs/tutorial/index.md"}
"""Places of the repository that the site has under another name."""
FILES = (".png", ".csv", ".p4", ".py", ".yaml", ".txt", ".zip")
"""Files that pages may link to; they are copied."""


class SiteError(Exception):
    """A page that is not in order. The text says which, and why."""


def sources() -> list[str]:
    """Return the paths of all Markdown files that are pages, from the repository's root."""
    files = [path for path in sorted(ROOT.glob("*.md")) if path.name != "README.md"]
    files += sorted((ROOT / "docs").rglob("*.md"))
    files += sorted(path for path in (ROOT / PACKAGE).rglob("*.md") if "tests" not in path.parts)
    return [path.relative_to(ROOT).as_posix() for path in files]


def place(source: str) -> str:
    """Return where a file of the repository lies in the site."""
    name = re.sub(r"/README\.md$|\.ipynb$", ".md", source.removeprefix("docs/").removeprefix(PACKAGE))
    folder, _, file = name.rpartition("/")
    return posixpath.join(folder, file.lower() if file.endswith(".md") else file)


def prose(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a page in order, each as (it is prose, text); the others are fenced blocks."""
    for i, part in enumerate(re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)):
        yield i % 2 == 0, part


class Site:
    """The pages and files of the site, as they are put together in a directory."""

    def __init__(self, directory: Path) -> None:
        self.pages = directory / "pages"
        self.files: set[str] = set()
        shutil.rmtree(directory, ignore_errors=True)
        self.pages.mkdir(parents=True)
        self.texts = {source: (ROOT / source).read_text(encoding="utf-8") for source in sources()}
        self.texts["docs/reference/command-line.md"] = command_line.page()
        for path in sorted((ROOT / "examples/notebooks").glob("*.ipynb")):
            self.texts[path.relative_to(ROOT).as_posix()] = notebook(path)
        with zipfile.ZipFile(self.pages / "examples.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted((ROOT / "examples").rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(ROOT))
        shutil.copy(ROOT / "docs/zensical.toml", directory / "zensical.toml")

    def write(self) -> None:
        """Write every page and the files that pages link to, and check that each page is in the navigation, once."""
        for source, text in self.texts.items():
            path = self.pages / place(source)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.page(source, text), encoding="utf-8")
        for file in self.files:
            (self.pages / place(file)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.pages / place(file))
        named = list(in_navigation())
        there = [place(source) for source in self.texts]
        if wrong := sorted({*there} ^ {*named}) + sorted({name for name in named if named.count(name) > 1}):
            raise SiteError(f"docs/zensical.toml: the navigation must name each page once: {', '.join(wrong)}")

    def page(self, source: str, text: str) -> str:
        """Return the text of a page with the site's links, and with the files that its blocks include."""

        def link(found: re.Match[str]) -> str:
            to = self.leads_to(source, found[2])
            return f"{found[1]}({to})" if to is not None else found[1].strip("[]")

        parts = [
            re.sub(r"(!?\[[^\]]*\])\(([^)\s]+)\)", link, part) if is_prose else _highlighted(included(part))
            for is_prose, part in prose(text)
        ]
        return "".join(parts)

    def leads_to(self, source: str, target: str) -> str | None:
        """Return what a link of a page is in the site, or None if the site does not have what it leads to."""
        if re.match(r"[a-z]+:|#", target):
            return target
        file, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
        path = SAME.get(path, path)
        if path not in self.texts and path != "docs/examples.zip":
            if not (ROOT / path).exists():
                raise SiteError(f"{source}: the link to {target} leads nowhere")
            if not path.endswith(FILES):
                return None
            self.files.add(path)
        here = posixpath.dirname(place(source))
        return posixpath.relpath(place(path), here or ".") + (f"#{anchor}" if anchor else "")


def _highlighted(block: str) -> str:
    """Return a block whose language Pygments knows: of those, P4 is most like C."""
    return re.sub(r"\A```p4\b", "```c", block)


def notebook(path: Path) -> str:
    """Return a notebook as a page: its texts, and its programs as blocks."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ("".join(cell["source"]) for cell in cells)
    return "\n\n".join(
        text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        for cell, text in zip(cells, texts, strict=True)
    )


def in_navigation() -> Iterator[str]:
    """Yield the pages that the navigation of ``docs/zensical.toml`` names."""

    def names(entry: Any) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        else:
            for each in entry if isinstance(entry, list) else entry.values():
                yield from names(each)

    yield from names(tomllib.loads((ROOT / "docs/zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])


def main() -> None:
    """Put the site together in the directory that is given."""
    try:
        Site(Path(sys.argv[1])).write()
    except SiteError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
