"""The model editing language (MEL): a script that loads networks, changes them and saves them.

editor = edit_file("edit.mel", section)         # what action=edit does
editor.models.find(...).network

text -> statements (`mel.parse`) -> commands (`mel.commands`), in-line NDL (`ndl.front_end.Session`) and networks in NDL
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, nearest
from cntkpy.cntk_config.parameters import ConfigValue, read_text_file
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.parse import NAME, Word
from cntkpy.networks.builders.ndl.recovery import SKIPPED
from cntkpy.networks.builders.ndl.scope import MAX_ERRORS, DependsOnFailed, TooManyErrors
from cntkpy.networks.builders.ndl.source import macro_documents, section_documents, value_document
from cntkpy.networks.builders.ndl.text import Document, Place, ScriptError, error
from cntkpy.networks.builders.recovery import assigned_names, attempts, blanked, statement_at
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.mel.commands import COMMANDS, find, makes_model
from cntkpy.networks.mel.editor import Editor, Files
from cntkpy.networks.mel.parse import Command, Inline, Snippet, Statement, parse_commands, part
from cntkpy.networks.mel.request import request, warn_of_short

if TYPE_CHECKING:
    from cntkpy.cntk_config.parameters import ConfigParameters

log = logging.getLogger("cntkpy.networks")

HAS_SECTIONS = re.compile(r"(?im)(?:^|[\s,;])(?:load|edit)[ \t]*=")


def edit_file(
    path: str,
    section: ConfigParameters | None = None,
    precision: str = "float",
    seeds: SeedCounter | None = None,
    files: Files | None = None,
    mistakes: Mistakes | None = None,
    statements: Iterable[Statement] | None = None,
) -> Editor:
    """Run a MEL file.

    Args:
        path: the file; if it has an entry `edit` (and perhaps `load`), these name its sections to be run (and sections
            with macros), otherwise the whole file is run.
        section: gives the values of `$variables$`, and `ndlMacros`.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`, of all models.
        seeds: the counter of start values.
        files: where models come from and go to; None: the files that the script names.
        mistakes: collects the mistakes of statements; None: the first one is raised.
        statements: those of the file, where they have been read before.

    Raises:
        ConfigError: a mistake in the script, with its place.
        UserError: a model that cannot be read or saved, or is not complete.
    """
    editor = Editor(precision, seeds, section, files, mistakes.errors if mistakes is not None else None)
    if section is not None:
        for document in macro_documents(section):
            editor.define_macros(document)
    documents = scripts(read_text_file(path, section), editor)
    if statements is not None:
        _run_all(editor, statements, mistakes)
        return editor
    for document in documents:
        run(editor, document, mistakes)
    return editor


class Mistakes:
    """Mistakes of a script, without those that follow from earlier ones.

    Attributes:
        errors: The mistakes.
    """

    def __init__(self) -> None:
        self.errors: list[UserError] = []
        self._lost: set[str] = set()
        """Names, in lower case, of statements that failed."""

    @property
    def are_many(self) -> bool:
        """True if no more are looked for."""
        return len(self.errors) >= MAX_ERRORS

    def note(self, statement: Statement, problem: UserError) -> None:
        """Keep the error of a statement, unless an earlier one that has failed shares a name with it.

        Args:
            statement: The statement.
            problem: Its error.
        """
        names, writes = names_of(statement), False
        if isinstance(statement, Command):
            kind = find(statement.name.text)
            writes = kind is not None and kind.writes
        follows = bool(self.errors) and (writes or problem.kind == "NoDefaultModel")
        if not (follows or any(map(self._is_lost, names))):
            self.errors.append(problem)

    def lose(self, names: set[str]) -> None:
        """Take note of names, in lower case, that statements with errors were to define or change."""
        self._lost |= names

    def _is_lost(self, name: str) -> bool:
        """Return whether a name was lost, also with its model in front, or the model or macro of a node."""
        points = [number for number, character in enumerate(name) if character == "."]
        heads = (name[:point] for point in points)
        return name in self._lost or any(part in self._lost for part in (*heads, *(name[p + 1 :] for p in points)))


def names_of(statement: Statement) -> set[str]:
    """Return the models and nodes that a statement names, in lower case."""
    if isinstance(statement, Inline):
        return assigned_names(statement.place.text)
    if isinstance(statement, Snippet):
        return {statement.name.text.lower()}
    words = [word.text.lower() for word in (statement.model, *statement.arguments) if word is not None]
    return {word for word in words if NAME.fullmatch(word)}


def scripts(value: ConfigValue, editor: Editor) -> list[Document]:
    """Return the scripts of a file; the macros that its entry `load` names go to the editor."""
    if not HAS_SECTIONS.search(value):
        return [value_document(value)]
    content = value.as_section()
    load, edit = map(content.own, ("load", "edit"))
    load, edit = (None if v is None or "(" in v or "[" in v else v for v in (load, edit))
    if load is not None:
        if edit is None:
            hint = "add edit = name of the section with the commands"
            raise ConfigError("MissingParameter", "the file has 'load' but no 'edit'", load.span, hint)
        for document in section_documents((load, None), content):
            editor.define_macros(document)
    if edit is None:
        return [value_document(value)]
    return [_inside(document) for document in section_documents((edit, None), content)]


def _inside(document: Document) -> Document:
    """Return a section without the brackets around it."""
    text = document.text.rstrip()
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] in ("[", "{", "(") and text[-1] in "]})":
        return part(Place(document, start + 1, len(text) - 1))
    return document


def run(editor: Editor, document: Document, mistakes: Mistakes | None = None) -> None:
    """Run a script.

    Args:
        editor: The models.
        document: The script.
        mistakes: Collects the mistakes of statements; None: the first one is raised.

    Raises:
        ConfigError: a mistake in the script, with its place.
        UserError: a model that cannot be read or saved, or is not complete.
    """
    _run_all(editor, joined(statements_of(document, mistakes)), mistakes)


def _run_all(editor: Editor, statements: Iterable[Statement], mistakes: Mistakes | None) -> None:
    for statement in statements:
        if mistakes is not None and mistakes.are_many:
            break
        known = len(mistakes.errors) if mistakes is not None else 0
        try:
            _run(editor, statement)
        except UserError as problem:
            located = _located(problem, statement.place)
            if mistakes is None:
                raise located from None
            mistakes.note(statement, located)
        except DependsOnFailed:
            known = -1
        except TooManyErrors:
            break
        if mistakes is not None and len(mistakes.errors) > known:
            mistakes.lose(names_of(statement))


def statements_of(document: Document, mistakes: Mistakes | None = None) -> list[Statement]:
    """Return the statements of a script.

    Args:
        document: The script.
        mistakes: Collects the errors of statements that cannot be read; None: the first one is raised.

    Raises:
        ConfigError: A statement cannot be read, or where the next one begins is not known.
    """
    while True:
        try:
            return parse_commands(document, makes_model)
        except ScriptError as problem:
            place = problem.place
            stretch = statement_at(document.text, place.start, SKIPPED) if place is not None else None
            if mistakes is None or stretch is None or len(mistakes.errors) >= attempts(document.text):
                raise
            mistakes.errors.append(problem)
            mistakes.lose(assigned_names(document.text[slice(*stretch)]))
            document = replace(document, text=blanked(document.text, *stretch))


def _run(editor: Editor, statement: Command | Inline | Snippet) -> None:
    if isinstance(statement, Snippet):
        editor.put_script(statement.name, [part(statement.place)])
    elif isinstance(statement, Inline):
        for function in statement.functions:
            check_function(editor, function)
        editor.models.needed_default(statement.place).add(part(statement.place))
    else:
        checked = request(statement, find(statement.name.text), COMMANDS)
        if statement.name.text.lower() not in map(str.lower, checked.kind.names):
            warn_of_short(statement.name, checked.kind.name)
        log.debug("%s: %s", statement.place.short, statement.place.one_line)
        checked.kind.run(editor, checked)


def check_function(editor: Editor, function: Word) -> None:
    """Help with a command on the right of `=`, where only those that make a model may be.

    Raises:
        ConfigError: what is called is another command, or nearly one that makes a model.
    """
    name = function.text
    if name.lower() in editor.macros or nodes.find(name) is not None:
        return
    if (kind := find(name)) is not None:
        message = f"{kind.name} gives no result that could be called by a name"
        raise error("InvalidStatement", message, function.place, hint=f"usage: {kind.usage}")
    if meant := nearest(name, ["LoadModel", "CreateModel"]):
        message = f"undefined function or macro '{name}'"
        raise error("UndefinedFunction", message, function.place, hint=f"did you mean '{meant}'?")


def joined(statements: list[Statement]) -> Iterator[Statement]:
    """Yield the statements, with those of NDL that follow each other as one."""
    for inline, group in itertools.groupby(statements, lambda statement: isinstance(statement, Inline)):
        members = list(group)
        if not inline:
            yield from members
            continue
        first, last = members[0].place, members[-1].place
        functions = [function for member in members if isinstance(member, Inline) for function in member.functions]
        yield Inline(Place(first.document, first.start, last.end), tuple(functions))


def _located(problem: UserError, place: Place) -> UserError:
    """Return the error with the place of the statement, unless it has one."""
    if problem.span is not None:
        return problem
    diagnostic = problem.diagnostic
    if isinstance(problem, ConfigError):
        return ConfigError(diagnostic.kind, diagnostic.message, place.span, diagnostic.hint, diagnostic.notes)
    return UserError(diagnostic.kind, diagnostic.message, place.span, diagnostic.hint, diagnostic.notes)
