"""The language server as an editor sees it: one process, and pygls as the client."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast_command import COMMAND, holdfast
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

APPS = Path(__file__).parents[2] / "python/holdfast/apps"
ROUTER = APPS / "router/router.p4"

HEADERS = """\
header h_t { bit<8> a; }
struct headers_t { h_t h; }
"""
PROGRAM = """\
#include <v1model.p4>
#include "headers.p4"
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t m) { apply { } }
control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { hdr.h.a = 1; } }
control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t hdr, inout meta_t m) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


class Editor:
    """A client, and the diagnostics that it was sent."""

    def __init__(self) -> None:
        self.client = LanguageClient("test", "1")
        self.found: dict[str, lsp.PublishDiagnosticsParams] = {}
        self.news = asyncio.Event()

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.found[params.uri] = params
            self.news.set()

    def open(self, file: Path) -> None:
        document = lsp.TextDocumentItem(file.as_uri(), "p4", 1, file.read_text())
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))

    def change(self, file: Path, version: int, text: str, place: lsp.Range | None = None) -> None:
        change = (
            lsp.TextDocumentContentChangePartial(range=place, text=text)
            if place
            else lsp.TextDocumentContentChangeWholeDocument(text)
        )
        document = lsp.VersionedTextDocumentIdentifier(version, file.as_uri())
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    async def diagnostics(self, file: Path, version: int, count: int | None = None) -> list[lsp.Diagnostic]:
        """Return the diagnostics of a version of a document when they have come, or when it has this number of them."""
        async with asyncio.timeout(60):
            while True:
                found = self.found.get(file.as_uri())
                if found is not None and found.version == version and count in (None, len(found.diagnostics)):
                    return list(found.diagnostics)
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def editor(folder: Path, *options: str) -> AsyncIterator[Editor]:
    found = Editor()
    await found.client.start_io(*COMMAND, "lsp", *options, env=None)
    root = lsp.WorkspaceFolder(folder.as_uri(), "test")
    await found.client.initialize_async(
        lsp.InitializeParams(lsp.ClientCapabilities(), workspace_folders=[root], root_uri=folder.as_uri())
    )
    found.client.initialized(lsp.InitializedParams())
    yield found
    await found.client.shutdown_async(None)
    found.client.exit(None)
    async with asyncio.timeout(60):
        await found.client.stop()
    server = found.client._server
    assert server is not None and server.returncode == 0


def point(text: str, around: str, name: str) -> lsp.Position:
    at = text.index(around) + around.index(name)
    before = text[:at].split("\n")
    return lsp.Position(len(before) - 1, len(before[-1]))


def test_an_editor_gets_answers_about_a_program_of_two_files(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    main, headers = tmp_path / "a b.p4", tmp_path / "headers.p4"
    main.write_text(PROGRAM)
    headers.write_text(HEADERS)

    async def session() -> None:
        async with editor(tmp_path) as opened:
            client = opened.client
            # The program that includes the document is found in its folder.
            opened.open(headers)
            assert await opened.diagnostics(headers, 1) == []
            opened.open(main)
            assert await opened.diagnostics(main, 1) == []
            document = lsp.TextDocumentIdentifier(main.as_uri())
            field = point(PROGRAM, "hdr.h.a = 1", "a")
            definition = await client.text_document_definition_async(lsp.DefinitionParams(document, field))
            assert isinstance(definition, lsp.Location)
            assert (definition.uri, definition.range.start) == (headers.as_uri(), point(HEADERS, "bit<8> a", "a"))
            hover = await client.text_document_hover_async(lsp.HoverParams(document, field))
            assert hover is not None and isinstance(hover.contents, lsp.MarkupContent)
            assert "bit<8> a" in hover.contents.value
            library = await client.text_document_definition_async(
                lsp.DefinitionParams(document, point(PROGRAM, "b.extract", "extract"))
            )
            assert isinstance(library, lsp.Location)
            copy = Path(library.uri.removeprefix("file://"))
            assert copy == tmp_path / "cache/holdfast/p4include/core.p4"
            assert "extract" in copy.read_text().splitlines()[library.range.start.line]
            rename = await client.text_document_rename_async(lsp.RenameParams(document, field, "value"))
            assert rename is not None and rename.changes is not None
            assert {uri: len(edits) for uri, edits in rename.changes.items()} == {
                main.as_uri(): 1,
                headers.as_uri(): 1,
            }
            outline = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
            assert [symbol.name for symbol in outline or ()] == ["meta_t", "P", "V", "I", "E", "C", "D", "main"]

    asyncio.run(session())


def test_an_editor_sees_errors_as_they_are_typed(tmp_path: Path) -> None:
    main, headers = tmp_path / "main.p4", tmp_path / "headers.p4"
    main.write_text(PROGRAM)
    headers.write_text(HEADERS)

    async def session() -> None:
        async with editor(tmp_path) as opened:
            opened.open(main)
            assert await opened.diagnostics(main, 1) == []
            value = point(PROGRAM, "hdr.h.a = 1", "1")
            one = lsp.Range(value, lsp.Position(value.line, value.character + 1))
            opened.change(main, 2, "hdr.h.b", one)
            (error,) = await opened.diagnostics(main, 2)
            assert (error.code, error.severity, error.source) == ("E1007", lsp.DiagnosticSeverity.Error, "holdfast")
            assert error.range.start == lsp.Position(value.line, value.character + len("hdr.h."))
            completion = await opened.client.text_document_completion_async(
                lsp.CompletionParams(lsp.TextDocumentIdentifier(main.as_uri()), error.range.end)
            )
            assert isinstance(completion, list)
            assert {"a", "isValid"} <= {item.label for item in completion}
            # An included document that is open counts as it is on the screen, and its errors are its own.
            opened.change(main, 3, PROGRAM)
            opened.open(headers)
            assert await opened.diagnostics(main, 3, count=0) == []
            opened.change(headers, 2, HEADERS.replace("bit<8> a", "bit<8> b"))
            (error,) = await opened.diagnostics(main, 3, count=1)
            assert error.message.startswith("`h_t` has no field `a`")
            opened.change(headers, 3, HEADERS.replace("bit<8>", "bit<"))
            assert await opened.diagnostics(headers, 3)
            opened.change(headers, 4, HEADERS)
            assert await opened.diagnostics(headers, 4) == []
            assert await opened.diagnostics(main, 3, count=0) == []

    asyncio.run(session())


def test_wrong_requests_are_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    async def session() -> None:
        async with editor(tmp_path, "-D", "WIDTH=8") as opened:
            file = tmp_path / "ö.p4"
            file.write_text("const bit<WIDTH> A = 1;\nconst bit<8> B = A;\n")
            opened.open(file)
            assert await opened.diagnostics(file, 1) == []
            document = lsp.TextDocumentIdentifier(file.as_uri())
            for place, name, reason in ((point("A", "A", "A"), "x y", "no name"), (lsp.Position(1, 13), "A", "twice")):
                try:
                    await opened.client.text_document_rename_async(lsp.RenameParams(document, place, name))
                except Exception as error:  # noqa: BLE001
                    assert reason in str(error)
                else:
                    raise AssertionError(name)

    asyncio.run(session())


def test_an_editor_formats_a_document(tmp_path: Path) -> None:
    async def session() -> None:
        async with editor(tmp_path) as opened:
            file = tmp_path / "a.p4"
            file.write_text("const bit<8> A = 1;\n\n\nconst  bit<8> B = A+1;\n")
            opened.open(file)
            document = lsp.TextDocumentIdentifier(file.as_uri())
            ask = lsp.DocumentFormattingParams(document, lsp.FormattingOptions(4, True))
            edits = await opened.client.text_document_formatting_async(ask)
            assert edits is not None
            (edit,) = edits
            assert edit.new_text == "const bit<8> B = A + 1;\n"
            assert (edit.range.start, edit.range.end) == (lsp.Position(2, 0), lsp.Position(4, 0))
            opened.change(file, 2, "const bit<8> A = 1;\n")
            assert not await opened.client.text_document_formatting_async(ask)

    asyncio.run(session())


def test_the_page_and_the_extension_start_the_command() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs/EDITORS.md").read_text()
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL))
    helix = tomllib.loads(blocks["toml"])
    server = helix["language-server"]["holdfast"]
    extension = json.loads((root / "editors/vscode/package.json").read_text())
    setting = extension["contributes"]["configuration"]["properties"]["holdfast.command"]["default"]
    assert [server["command"], *server["args"]] == setting == ["holdfast", "lsp"]
    assert helix["language"][0]["language-servers"] == ["holdfast"]
    assert 'cmd = { "holdfast", "lsp" }' in blocks["lua"]
    assert '("holdfast" "lsp")' in blocks["elisp"]
    folder = root / "editors/vscode"
    for file in (extension["main"], extension["contributes"]["languages"][0]["configuration"]):
        assert (folder / file).is_file()
    assert f"{extension['name']}-{extension['version']}.vsix" in page


def test_a_terminal_is_no_editor(monkeypatch: Any) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("holdfast.cli.editors.sys.stdin", Terminal())
    result = holdfast("lsp", "-I", "missing")
    assert result.returncode == 1
