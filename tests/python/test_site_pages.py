"""Every page of the site does what it shows: its commands run, in the order of the page, and what they print is compared.

Pages in capitals and README files are the repository's own: tests of their own run them. Here, the commands that they name are
parsed, and their programs in Python name what exists.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import site_build
import typer
from site_pages import Block, PageError, Reader, alike, commands, fences, included, runnable

from holdfast import cli, schemas
from holdfast.cli import comparisons

ROOT = Path(__file__).parents[2]
# The changelog names commands of the past.
ALL = ["README.md", *(page for page in site_build.sources() if page != "CHANGELOG.md")]
OURS = [page for page in ALL if page.startswith("docs/") and Path(page).name.islower()]
TREE: Any = typer.main.get_command(cli.app)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in OURS if "```" in read(page)])
def test_a_page_does_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    text = read(page)
    reader = Reader(tmp_path)
    for block in runnable(page, text):
        if not block.live:
            done = reader.do(block)
            if os.environ.get("UPDATE_EXPECT") and done != block.text:
                text = text.replace(block.text, done, 1)
                (ROOT / page).write_text(text, encoding="utf-8")


def words() -> Iterator[tuple[str, str]]:
    """Yield (page, command) of each command of ours in the text of a page, and in a block of it."""
    for page in ALL:
        for is_prose, part in site_build.prose(included(read(page))):
            if is_prose:
                found = re.findall(r"`(holdfast [^`]*)`", part)
            else:
                found = re.findall(r"^(?:\$ )?(holdfast .*?)(?: +#.*| &| < [\w.]+)?$", part, re.MULTILINE)
            for each in found:
                yield page, " ".join(each.split())


@pytest.mark.parametrize("page", sorted({page for page, _ in words()}))
def test_the_commands_that_a_page_names_exist(page: str) -> None:
    for where, line in words():
        if where == page:
            unknown = unknown_in(line)
            assert unknown is None, f"{page}: {line}: there is no {unknown}"


def unknown_in(line: str) -> str | None:
    """Return the first word of a command that is neither a command nor an option of ours, or None."""
    command, rest = TREE, shlex.split(line)[1:]
    while rest and hasattr(command, "commands"):
        word = rest.pop(0)
        if word.isupper() or word in ("--help", "...", *(name for each in command.params for name in each.opts)):
            return None
        if word not in command.commands:
            return word
        command = command.commands[word]
    if command.name in ("p4c", "simple_switch_grpc", "simple_switch_CLI"):
        return None
    if command.name == "compare" and rest and rest[0] in comparisons.OTHERS:
        command = comparisons.other(rest[0])
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    for word in rest:
        if re.match(r"--?[a-zA-Z]", word) and word.partition("=")[0].rstrip(";,:") not in options:
            return word
    return None


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("holdfast run a.p4 b.yaml --simulated", None),
        ("holdfast rnu a.p4", "rnu"),
        ("holdfast run a.p4 b.yaml --simulate", "--simulate"),
        ("holdfast port add 2@veth2", None),
        ("holdfast COMMAND --help", None),
        ("holdfast --install-completion", None),
        ("holdfast --install", "--install"),
    ],
)
def test_a_command_that_is_none_is_found(line: str, unknown: str | None) -> None:
    assert unknown_in(line) == unknown


@pytest.mark.parametrize("page", [page for page in ALL if page not in OURS and "```python" in read(page)])
def test_names_in_programs_exist(page: str) -> None:
    for block in fences(page, included(read(page))):
        if block.language == "python":
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "holdfast":
                    module = importlib.import_module(str(node.module))
                    for name in node.names:
                        if not hasattr(module, name.name):
                            importlib.import_module(f"{node.module}.{name.name}")


def test_keys_of_a_gateway_exist() -> None:
    def exists(schema: Any, keys: list[str]) -> bool:
        while "$ref" in schema or "anyOf" in schema:
            schema = whole["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema["anyOf"][0]
        return not keys or (keys[0] in schema["properties"] and exists(schema["properties"][keys[0]], keys[1:]))

    whole = schemas.schema("gateway")
    table = read("docs/coming-from/accel-ppp.md").partition("| accel-ppp.conf | gateway.yaml |")[2]
    named = [name for row in table.splitlines() for name in re.findall(r"`((?:gateway|switch)[.\w]+)`", row)]
    assert len(named) > 20
    assert not [name for name in named if not exists(whole, name.split("."))]


def block(text: str) -> Block:
    return next(fences("page.md", text))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```python\nx = 1\n```\n", "page.md:1: no test runs this block"),
        ("\n```\nx\n```\n", "page.md:2: no test runs this block"),
        ("```console\nls\n```\n", "begins with a command"),
        ('```console title="x"\n$ ls\n```\n', "the title of console blocks"),
        ("- a\n\n    ```console\n    $ ls\n    ```\n", "2 lines open or close blocks, but 0"),
        ("~~~\nls\n~~~\n", "2 lines open or close blocks, but 0"),
    ],
)
def test_a_block_that_no_test_runs_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PageError, match=re.escape(problem)):
        runnable("page.md", text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```console\n$ echo a\nb\n```\n", "and this was printed\na"),
        ("```console\n$ echo a\n```\n", "and this was printed\na"),
        ("```console\n$ true\na\n```\n", "the page shows\na"),
        ("```console\n$ false\n```\n", "ended with status 1"),
        ("```console\n$ holdfast schema nothing\n...\n```\n", "ended with status"),
        ("```console\n$ cd nowhere\n```\n", "there is no such folder"),
        ('```text title="Part of a.txt"\ntwo\nfour\n```\n', "this is no part of a.txt"),
        ('```text title="Part of b.txt"\ntwo\n```\n', "there is no file b.txt"),
    ],
)
def test_what_is_not_so_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str) -> None:
    monkeypatch.delenv("UPDATE_EXPECT", raising=False)
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    with pytest.raises(PageError, match=re.escape(problem)):
        Reader(tmp_path).do(block(text))


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo a; echo b c\n...\nb ...\n$ cd .\n$ false\n$ echo $?\n1\n```\n",
        '```text title="Part of a.txt"\ntwo\n...\nfour\n```\n',
        '```text title="x/b.txt"\ntwo\n```\n',
    ],
)
def test_what_is_so_passes(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    given = block(text)
    assert Reader(tmp_path).do(given) == given.text


def test_what_differs_is_written_into_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPDATE_EXPECT", "1")
    text = "```console\n$ echo a\n...\n$ echo b\nc\n```\n"
    assert Reader(tmp_path).do(block(text)) == "$ echo a\n...\n$ echo b\nb\n"


def test_lines_that_are_typed_have_answers_of_their_own() -> None:
    text = "```console\n$ holdfast run ring:3\nring\nholdfast> nodes\nh1\nholdfast> quit\n```\n"
    (command,) = commands(block(text))
    assert (command.typed, command.answers) == (("nodes", "quit"), ("ring\n", "h1\n", ""))


def test_dots_stand_for_anything() -> None:
    assert alike("a\n...\nz\n", "a\nb\nc\nz")
    assert alike("a ... z\n", "a b  c z  \n\n")
    assert not alike("a ... z\n", "a b\nc z\n")
    assert not alike("a\n", "a\nb\n")
