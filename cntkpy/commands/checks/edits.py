"""Checks of scripts in the model editing language (MEL): each command by itself, then all of them without values."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, UserError
from cntkpy.commands.checks.files import windows_output
from cntkpy.commands.checks.models import Models, ModelToCome, located

if TYPE_CHECKING:
    from cntkpy.networks.builders.ndl.parse import Statement as NdlStatement
    from cntkpy.networks.builders.ndl.text import Place
    from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork
    from cntkpy.networks.mel.parse import Statement
    from cntkpy.networks.mel.script import Editor, Mistakes


def edit_problems(section: ConfigParameters, models: Models, strict: bool) -> Iterator[Diagnostic]:
    """Check the commands of a MEL script against their declarations, and the nodes that they name."""
    if not section.exists("editPath"):
        return
    from cntkpy.cntk_config.parameters import read_text_file
    from cntkpy.networks.builders.ndl.source import macro_documents
    from cntkpy.networks.mel.script import Editor, Mistakes, joined, scripts, statements_of

    try:
        path, editor = section("editPath"), Editor("float", section=section)
    except ConfigError:
        return  # already found
    try:
        for document in macro_documents(section):
            editor.define_macros(document)
        documents = scripts(read_text_file(str(path), section), editor)
    except UserError as error:
        diagnostic = error.diagnostic
        yield Diagnostic(diagnostic.kind, diagnostic.message, diagnostic.span or path.span, diagnostic.hint)
        return
    mistakes, unread = Mistakes(), Mistakes()
    script: list[Statement] = []
    is_read = True
    for document in documents:
        try:
            statements = list(joined(statements_of(document, unread)))
        except UserError as error:
            unread.errors.append(error)
            is_read = False
            continue
        script += statements if is_read else ()  # a run ends at the document before
        yield from _statement_problems(editor, statements, mistakes)
    errors = [*unread.errors, *mistakes.errors]
    yield from (error.diagnostic for error in errors)
    if not errors:
        models.script_writes(_written(script))
        yield from _lost(script, path.span)
    if strict and not mistakes.are_many:  # a run edits when it comes to it, as CNTK does
        yield from _rehearsed(section, path.span, models, script, unread)


def _statement_problems(editor: Editor, statements: list[Statement], mistakes: Mistakes) -> Iterator[Diagnostic]:
    """Check statements, each by itself; `mistakes` gets the errors."""
    from cntkpy.networks.mel.parse import Command

    snippets = any(isinstance(command, Command) and "ndlsnippet" in command.name.text.lower() for command in statements)
    for statement in statements:
        if mistakes.are_many:
            break
        if snippets and not isinstance(statement, Command):
            continue  # their files may have macros
        try:
            yield from _check_statement(editor, statement)
        except UserError as error:
            mistakes.errors.append(error)


def _written(script: list[Statement]) -> Iterator[str]:
    """Yield the files that a script writes."""
    from cntkpy.networks.mel.commands import COMMANDS, find
    from cntkpy.networks.mel.parse import Command
    from cntkpy.networks.mel.request import request

    for command in script:
        if isinstance(command, Command) and (kind := find(command.name.text)) is not None and kind.writes:
            yield from (word.text for word in request(command, kind, COMMANDS).arguments[-1:])


def _lost(script: list[Statement], place: Span | None) -> Iterator[Diagnostic]:
    """Report changes after the last command that writes a file, or a script that writes none."""
    from cntkpy.networks.mel.commands import find
    from cntkpy.networks.mel.parse import Command, Inline

    kinds = [find(command.name.text) if isinstance(command, Command) else None for command in script]
    last = max((number for number, kind in enumerate(kinds) if kind is not None and kind.writes), default=None)
    if last is None:
        yield Diagnostic("NotSaved", "the script saves no model", place, "add SaveModel(m, file)")
        return
    for command, kind in zip(script[last + 1 :], kinds[last + 1 :], strict=True):
        if isinstance(command, Inline) or (kind is not None and kind.changes):
            message = "what the script does after its last SaveModel is lost"
            yield Diagnostic("NotSaved", message, command.place.span, "save the model once more at the end")
            return


def _rehearsed(
    section: ConfigParameters, place: Span | None, models: Models, script: list[Statement], mistakes: Mistakes
) -> Iterator[Diagnostic]:
    """Report nodes that the models of a MEL script lack: it is run with models that exist, and writes nothing.

    Args:
        section: the section of the action.
        place: that of the script in it.
        models: the models before.
        script: the statements of the script.
        mistakes: those of statements that cannot be read; gets the others.
    """
    from cntkpy.networks.files.model_file import as_reread
    from cntkpy.networks.mel.editor import Files
    from cntkpy.networks.mel.script import edit_file

    class Rehearsal(Files):
        """Models without values; those that the script saves are kept."""

        values = False

        def __init__(self) -> None:
            self.saved: dict[str, ValidatedNetwork] = {}

        def load(self, path: str, precision: str) -> Network:
            saved = self.saved.get(os.path.normpath(path))
            return models.of_file(path, precision) if saved is None else as_reread(saved, precision)

        def save(self, path: str, network: ValidatedNetwork) -> None:
            self.saved[os.path.normpath(path)] = as_reread(network)

        def dump(self, path: str, network: Network, nodes: Iterable[Node], values: bool) -> None:
            """Write nothing."""

    log = logging.getLogger("cntkpy.networks")
    silent, log.disabled = log.disabled, True
    rehearsal, precision = Rehearsal(), str(section("precision", "float"))
    try:
        edit_file(str(section("editPath")), section, precision, None, rehearsal, mistakes, script)
        if not mistakes.errors:
            models.has_saved(rehearsal.saved)
    except ModelToCome:
        pass
    except UserError as error:
        mistakes.errors.append(error)
    finally:
        log.disabled = silent
    yield from (located(error.diagnostic, place, models) for error in mistakes.errors)


def _check_statement(editor: Editor, statement: Statement) -> Iterator[Diagnostic]:
    """Check a statement of MEL by itself: a command against its declaration, a call against known macros."""
    from cntkpy.networks.builders.ndl.idle import idle_problems
    from cntkpy.networks.mel.commands import COMMANDS, find
    from cntkpy.networks.mel.parse import Command, Inline, part
    from cntkpy.networks.mel.request import request
    from cntkpy.networks.mel.script import check_function

    if isinstance(statement, Command):
        kind = find(statement.name.text)
        asked = request(statement, kind, COMMANDS)
        if kind is not None and kind.writes and asked.arguments:
            file = asked.arguments[-1]
            yield from windows_output(file.text, statement.name.text, file.place.span)
    elif isinstance(statement, Inline):
        for function in statement.functions:
            try:
                check_function(editor, function)
            except UserError as error:
                yield error.diagnostic
        yield from idle_problems(_statements(statement.place), editor.macros)
    else:
        editor.define_macros(part(statement.place))
        yield from idle_problems(_statements(statement.place), editor.macros)


def _statements(place: Place) -> list[NdlStatement]:
    """Return the statements of in-line NDL that can be read; the rehearsal has the errors of the others."""
    from cntkpy.networks.builders.ndl.recovery import statements_of
    from cntkpy.networks.builders.ndl.scope import DependsOnFailed, Expansion
    from cntkpy.networks.mel.parse import part

    try:
        return statements_of(part(place), Expansion(errors=[]))
    except DependsOnFailed:
        return []
