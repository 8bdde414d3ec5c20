"""`cntkpy lsp`: a language server over standard input and output. Thin over `language`; pygls does the protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from cntk_config.base.diagnostics import Span, UserError
from cntk_config.declare import Parameter
from commands import __version__
from commands.checks.findings import Finding
from commands.editor.language import Analysis
from networks.builders.brainscript.reference import Documented


def serve() -> int:
    """Serve until the editor ends."""
    make_server().start_io()
    if sys.stdout.closed:  # by the server; whoever called us flushes it
        sys.stdout = sys.stderr
    return 0


def make_server() -> Any:
    """The server with its features."""
    try:
        from lsprotocol import types  # pyright: ignore[reportMissingImports]
        from pygls.lsp.server import LanguageServer  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        message = f"the language server needs pygls: {error}"
        raise UserError("MissingPackage", message, hint="pip install 'cntkpy[lsp]'") from error

    server = LanguageServer("cntkpy", __version__)
    known: dict[str, Analysis] = {}

    def analysis(uri: str) -> Analysis:
        text = server.workspace.get_text_document(uri).source
        found = known.get(uri)
        if found is None or found.text != text:
            known[uri] = found = Analysis(text, name_of(uri), found)
        return found

    levels = {
        "error": types.DiagnosticSeverity.Error,
        "warning": types.DiagnosticSeverity.Warning,
        "hint": types.DiagnosticSeverity.Hint,
    }

    def publish(uri: str) -> None:
        current = analysis(uri)
        findings = current.findings()
        shown = [
            types.Diagnostic(
                _range(types, span),
                message_of(finding),
                severity=levels[finding.severity],
                code=finding.rule.code,
                source="cntkpy",
            )
            for finding, span in _in_file(findings, current.name)
        ]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        text = analysis(params.text_document.uri).hover(params.position.line + 1, params.position.character + 1)
        return _hover(types, text)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        uri = params.text_document.uri
        span = analysis(uri).definition(params.position.line + 1, params.position.character + 1)
        if span is None:
            return None
        return types.Location(_uri_of(span, uri), _range(types, span))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["$", "."]))
    def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        found = analysis(params.text_document.uri)
        names = found.completions(params.position.line + 1, params.position.character + 1)
        return [_item(types, name, one) for name, one in names]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def layout(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        found = analysis(params.text_document.uri)
        new = _formatted(found)
        everything = types.Range(types.Position(0, 0), types.Position(len(found.lines), 0))
        return [types.TextEdit(everything, new)] if new != found.text else []

    return server


def _in_file(findings: Iterable[Finding], name: str) -> Iterator[tuple[Finding, Span]]:
    """The findings of one file, with their places."""
    for finding in findings:
        span = finding.diagnostic.span
        if span is not None and span.source.name == name:
            yield finding, span


def _formatted(found: Analysis) -> str:
    """The text of a document laid out; as it is when it cannot be read."""
    from commands.tools.format import format_text

    try:
        return format_text(found.text, found.name)
    except UserError:
        return found.text


def _hover(types: Any, text: str | None) -> Any:
    """What is shown beside a name; None for nothing."""
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, text)) if text else None


def _range(types: Any, span: Span) -> Any:
    """A place as the protocol has it: from 0, with its end."""
    start = types.Position(span.line - 1, span.column - 1)
    return types.Range(start, types.Position(span.line - 1, span.column - 1 + max(1, span.length)))


def _uri_of(span: Span, uri: str) -> str:
    """The document of a place: the one that is open, or the file of another one."""
    return uri if span.source.name == name_of(uri) else Path(span.source.name).resolve().as_uri()


def _item(types: Any, name: str, parameter: Parameter[Any] | Documented | None) -> Any:
    """A completion: a parameter with its type and meaning, a function of BrainScript, or a variable."""
    if isinstance(parameter, Documented):
        kind = types.CompletionItemKind.Function
        return types.CompletionItem(name, kind=kind, detail=parameter.usage, documentation=parameter.meaning)
    if parameter is None:
        return types.CompletionItem(name, kind=types.CompletionItemKind.Variable)
    kind = types.CompletionItemKind.Property
    return types.CompletionItem(name, kind=kind, detail=parameter.type.name, documentation=parameter.help)


def name_of(uri: str) -> str:
    """The path of a document, which findings in it are told apart by."""
    return unquote(urlparse(uri).path) or uri


def message_of(finding: Finding) -> str:
    """The text that an editor shows."""
    return f"{finding.diagnostic.message} - {finding.fix}"
