"""`cntkpy lsp`: a language server over standard input and output. Thin over `language`; pygls does the protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from cntkpy import __version__
from cntkpy.cntk_config.base.diagnostics import Span, UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.declare import Parameter
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.editor.fixes import Fix, fixes
from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.editor.occurrences import occurrences, renamed
from cntkpy.commands.editor.symbols import Symbol, symbols
from cntkpy.networks.builders.brainscript.reference import Documented

QUIET_SECONDS = 0.1
"""Time without a change after which findings are published: one keystroke after the other publishes once."""
FURTHER_SECONDS = 0.5
"""Time for which further runs are checked before other questions are answered."""


def serve() -> int:
    """Serve until the editor ends."""
    server = make_server()
    server.start_io()
    if sys.stdout.closed:  # by the server; whoever called us flushes it
        sys.stdout = sys.stderr
    return 0


def make_server() -> Any:
    """Return the server with its features."""
    try:
        from lsprotocol import types  # pyright: ignore[reportMissingImports]
        from pygls.lsp.server import LanguageServer  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        message = f"the language server needs pygls: {error}"
        raise UserError("MissingPackage", message, hint=how_to_install("lsp")) from error

    server = LanguageServer("cntkpy", __version__)
    documents = Documents(types, server)
    _add_findings(types, server, documents)
    _add_corrections(types, server, documents)
    _add_answers(types, server, documents)
    _add_names(types, server, documents)
    _add_changes(types, server, documents)
    return server


class Documents:
    """The documents that are open in the editor.

    Args:
        types: the types of the protocol.
        server: the server, which keeps their texts.
    """

    def __init__(self, types: Any, server: Any) -> None:
        self._types, self._server = types, server
        self._known: dict[str, Analysis] = {}

    def analysis(self, uri: str) -> Analysis:
        """Return the analysis of the current text of a document."""
        text = self._server.workspace.get_text_document(uri).source
        value = self._known.get(uri)
        if value is None or value.text != text:
            self._known[uri] = value = Analysis(text, name_of(uri), value)
        return value

    def forget(self) -> None:
        """Analyse all documents again when they are asked for: files that they depend on have changed."""
        self._known = {uri: Analysis(analysis.text, analysis.name, analysis) for uri, analysis in self._known.items()}

    def places(self, uri: str) -> Places:
        """Return the converter of places of a document to the protocol."""
        return Places(self._types, self._server.workspace.get_text_document(uri).position_codec, self.analysis(uri))

    def at(self, params: Any) -> tuple[Analysis, int, int]:
        """Return the document that the editor asks about, with line and column, both from 1."""
        uri = params.text_document.uri
        return self.analysis(uri), *self.places(uri).read(params.position)


class Publisher:
    """Sends the findings of documents to the editor, or answers when it asks for them.

    Args:
        types: the types of the protocol.
        server: the server.
        documents: the documents.
    """

    def __init__(self, types: Any, server: Any, documents: Documents) -> None:
        self._types, self._server, self._documents = types, server, documents
        severities = types.DiagnosticSeverity
        self._levels = {"error": severities.Error, "warning": severities.Warning, "hint": severities.Hint}

    def diagnostics(self, uri: str) -> list[Any]:
        """Return the findings of a document, and which runs have not been checked yet."""
        types, analysis = self._types, self._documents.analysis(uri)
        places, listed = self._documents.places(uri), analysis.findings()
        result = [
            types.Diagnostic(
                places.range(span),
                message_of(finding),
                severity=self._levels[finding.severity],
                code=finding.rule.code,
                source="cntkpy",
            )
            for finding, span in _in_file(listed, analysis.name)
        ]
        if note := analysis.checked.unchecked:
            start = types.Range(types.Position(0, 0), types.Position(0, 0))
            level = types.DiagnosticSeverity.Information
            result.insert(0, types.Diagnostic(start, note, severity=level, source="cntkpy"))
        return result

    @property
    def _pulls(self) -> bool:
        """True if the editor asks for findings by itself."""
        capabilities = self._server.client_capabilities.text_document
        return capabilities is not None and capabilities.diagnostic is not None

    def _push(self, uri: str, version: int | None) -> None:
        if not self._pulls:
            params = self._types.PublishDiagnosticsParams(uri, self.diagnostics(uri), version)
            self._server.text_document_publish_diagnostics(params)

    def is_present(self, uri: str, version: int | None) -> bool:
        """Return True for a version of a document that is still the last one."""
        document = self._server.workspace.text_documents.get(uri)
        return document is not None and document.version == version

    async def publish(self, uri: str, version: int | None) -> None:
        """Send the findings; then those of further runs, until all are checked or the text changes."""
        self._push(uri, version)
        while self.is_present(uri, version) and (checked := self._documents.analysis(uri).checked).unchecked:
            await asyncio.sleep(QUIET_SECONDS)  # other questions of the editor are answered in between
            checked.advance(FURTHER_SECONDS)
            self._push(uri, version)

    async def publish_again(self) -> None:
        """Send the findings of all documents after a file was saved: they may be layers of the same runs."""
        self._documents.forget()
        workspace = self._server.client_capabilities.workspace
        if self._pulls and workspace is not None and workspace.diagnostics is not None:
            self._server.workspace_diagnostic_refresh(None)
        documents = list(self._server.workspace.text_documents.values())
        await asyncio.gather(*(self.publish(document.uri, document.version) for document in documents))


def _add_findings(types: Any, server: Any, documents: Documents) -> None:
    """Add findings, pushed when a document is opened or has changed, or pulled by the client."""
    publisher = Publisher(types, server, documents)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: Any) -> None:
        await publisher.publish(params.text_document.uri, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: Any) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(QUIET_SECONDS)
        if publisher.is_present(uri, version):
            await publisher.publish(uri, version)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: Any) -> None:
        await publisher.publish_again()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: Any) -> None:
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    options = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier="cntkpy")

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    def asked(params: Any) -> Any:
        documents.analysis(params.text_document.uri).checked.advance(FURTHER_SECONDS)
        return types.RelatedFullDocumentDiagnosticReport(publisher.diagnostics(params.text_document.uri))


def _add_corrections(types: Any, server: Any, documents: Documents) -> None:
    """Add corrections of findings."""
    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def correct(params: Any) -> list[Any]:
        uri = params.text_document.uri
        result = fixes(documents.analysis(uri), params.range.start.line + 1, params.range.end.line + 1)
        return [_action(types, uri, documents.places(uri), fix) for fix in result]


def _add_answers(types: Any, server: Any, documents: Documents) -> None:
    """Add the answers about the meaning of a name, its definition, and completions."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: Any) -> Any:
        analysis, line, column = documents.at(params)
        return _hover(types, analysis.hover(line, column))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: Any) -> Any:
        uri = params.text_document.uri
        analysis, line, column = documents.at(params)
        span = analysis.definition(line, column)
        return None if span is None else types.Location(_uri_of(span, uri), documents.places(uri).range(span))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["$", ".", "=", "/"]))
    def complete(params: Any) -> list[Any]:
        analysis, line, column = documents.at(params)
        values = analysis.values(line, column)
        if values is not None:
            return [types.CompletionItem(value, kind=types.CompletionItemKind.Value) for value in values]
        return [_item(types, name, item) for name, item in analysis.completions(line, column)]


def _add_names(types: Any, server: Any, documents: Documents) -> None:
    """The outline of a document, and where else a name occurs."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outline(params: Any) -> list[Any]:
        uri = params.text_document.uri
        return [_symbol(types, documents.places(uri), symbol) for symbol in symbols(documents.analysis(uri))]

    def ranges(params: Any) -> list[Any]:
        places = documents.places(params.text_document.uri)
        return [places.range(span) for span in occurrences(*documents.at(params))]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: Any) -> list[Any]:
        return [types.Location(params.text_document.uri, text_range) for text_range in ranges(params)]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: Any) -> list[Any]:
        return [types.DocumentHighlight(text_range) for text_range in ranges(params)]


def _add_changes(types: Any, server: Any, documents: Documents) -> None:
    """Another name everywhere; another layout."""
    from pygls.exceptions import JsonRpcInvalidParams  # pyright: ignore[reportMissingImports]

    @server.feature(types.TEXT_DOCUMENT_RENAME)
    def rename(params: Any) -> Any:
        uri = params.text_document.uri
        try:
            spans = renamed(*documents.at(params), params.new_name)
        except UserError as error:
            raise JsonRpcInvalidParams(error.message) from error
        places = documents.places(uri)
        return types.WorkspaceEdit({uri: [types.TextEdit(places.range(span), params.new_name) for span in spans]})

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def layout(params: Any) -> list[Any]:
        analysis = documents.analysis(params.text_document.uri)
        new = _formatted(analysis)
        everything = types.Range(types.Position(0, 0), types.Position(len(analysis.lines), 0))
        return [types.TextEdit(everything, new)] if new != analysis.text else []


class Places:
    """Places of a document as the protocol has them: from 0, in the units that the editor counts (mostly UTF-16).

    Args:
        types: the types of the protocol.
        codec: counts the units.
        found: the document.
    """

    def __init__(self, types: Any, codec: Any, analysis: Analysis) -> None:
        self._types, self._codec, self._analysis = types, codec, analysis

    def read(self, position: Any) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = min(int(position.line), len(self._analysis.lines) - 1)
        text = self._analysis.lines[line]
        column, units = 0, int(position.character)
        while column < len(text) and units > 0:
            units -= self._codec.client_num_units(text[column])
            column += 1
        return line + 1, column + 1

    def range(self, span: Span) -> Any:
        """Return a place with its end, in this document or in another."""
        start, end = span.column - 1, span.column - 1 + max(1, span.length)
        return self._types.Range(self._at(span, span.line, start), self._at(span, span.line, end))

    def to(self, span: Span, end: tuple[int, int]) -> Any:
        """Return the stretch from a place to line and column (from 1) after its end."""
        return self._types.Range(self.range(span).start, self._at(span, end[0], end[1] - 1))

    def _at(self, span: Span, line: int, column: int) -> Any:
        text = span.source.line(line) or ""
        return self._types.Position(line - 1, self._codec.client_num_units(text[:column]))


def _symbol(types: Any, places: Places, symbol: Symbol) -> Any:
    """Return an entry of the outline with what is in it."""
    kinds = types.SymbolKind
    kind = {
        "command": kinds.Class,
        "section": kinds.Namespace,
        "value": kinds.Property,
        "function": kinds.Function,
        "member": kinds.Variable,
    }[symbol.kind]
    inside = [_symbol(types, places, part) for part in symbol.inside]
    end = max([symbol.end, *(part.end for part in symbol.inside)])
    return types.DocumentSymbol(
        symbol.name,
        kind,
        places.to(symbol.span, end),
        places.range(symbol.span),
        detail=symbol.detail or None,
        children=inside,
    )


def _action(types: Any, uri: str, places: Places, fix: Fix) -> Any:
    """Return a correction that the editor offers."""
    return types.CodeAction(
        f"Replace with '{fix.new}'",
        kind=types.CodeActionKind.QuickFix,
        edit=types.WorkspaceEdit({uri: [types.TextEdit(places.range(span), fix.new) for span in fix.spans]}),
        is_preferred=True,
    )


def _in_file(findings: Iterable[Finding], name: str) -> Iterator[tuple[Finding, Span]]:
    """Return the findings of one file, with their places."""
    for finding in findings:
        span = finding.diagnostic.span
        if span is not None and span.source.name == name:
            yield finding, span


def _formatted(analysis: Analysis) -> str:
    """Return the text of a document laid out; as it is when it cannot be read, and in NDL."""
    from cntkpy.commands.tools.format import format_text

    if analysis.is_network or analysis.is_toml:
        return analysis.text  # it has a layout of its own
    try:
        return format_text(analysis.text, analysis.name)
    except UserError:
        return analysis.text


def _hover(types: Any, text: str | None) -> Any:
    """Return the text shown beside a name; None if there is none."""
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, text)) if text else None


def _uri_of(span: Span, uri: str) -> str:
    """Return the document of a place: the one that is open, or the file of another one."""
    return uri if span.source.name == name_of(uri) else Path(span.source.name).resolve().as_uri()


def _item(types: Any, name: str, parameter: Parameter[Any] | Documented | None) -> Any:
    """Return a completion: a parameter with its type and meaning, a function of BrainScript, or a variable."""
    if isinstance(parameter, Documented):
        kind = types.CompletionItemKind.Function
        return types.CompletionItem(name, kind=kind, detail=parameter.usage, documentation=parameter.meaning)
    if parameter is None:
        return types.CompletionItem(name, kind=types.CompletionItemKind.Variable)
    kind = types.CompletionItemKind.Property
    order = f"{'~' if parameter.ignored else ''}{name}"  # what has no effect comes last
    return types.CompletionItem(
        name, kind=kind, detail=parameter.type.name, documentation=parameter.help, sort_text=order
    )


def name_of(uri: str) -> str:
    """Return the path of a document, which distinguishes its findings."""
    return unquote(urlparse(uri).path) or uri


def message_of(finding: Finding) -> str:
    """Return the text that an editor shows."""
    return f"{finding.diagnostic.message} - {finding.fix}{finding.in_brackets}"
