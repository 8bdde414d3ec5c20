"""Declare MEL commands, and check calls against the declarations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.networks.builders.ndl.parse import Word
from cntkpy.networks.builders.ndl.scalars import BOOLEANS_TEXT
from cntkpy.networks.builders.ndl.text import Place, error
from cntkpy.networks.mel.editor import Editor
from cntkpy.networks.mel.parse import Command

log = logging.getLogger("cntkpy.networks")

BOOLEAN = ("true", "false")
INSTEAD = {
    "addlayer": "in-line NDL for the new nodes, and SetInput(nodes, index, input)",
    "setmodel": "SetDefaultModel(m)",
}
"""Replacements for commands that CNTK documents but lacks."""


def in_full(text: str, names: Iterable[str]) -> str | None:
    """Return the name that a text stands for: itself, or the first one of which it is at least the first half."""
    names, text = list(names), text.lower()
    for name in names:
        if name.lower() == text:
            return name
    return next((name for name in names if name.lower().startswith(text) and len(text) >= len(name) // 2), None)


def warn_of_short(word: Word, name: str) -> None:
    """Log the meaning of an abbreviation."""
    if word.text.lower() != name.lower():
        log.warning("%s: '%s' is taken for %s", word.place.short, word.text, name)


@dataclass(frozen=True)
class Kind:
    """One command.

    Args:
        name: its name; letter case does not count.
        arguments: names of the positional arguments.
        run: does it; its docstring is the meaning.
        aliases: other names.
        options: optional arguments with their permitted values (none: any text).
        least: the smallest number of arguments, if some may be left out.
        many: the last argument may be repeated.
        makes_model: may be on the right of `=`; the name on the left comes first then.
        writes: a file; what is after the last such command is lost.
        changes: nodes of a model.
        example: a call of it, as it may be in a script.
    """

    name: str
    arguments: tuple[str, ...]
    run: Callable[[Editor, Request], None]
    aliases: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    least: int | None = None
    many: bool = False
    makes_model: bool = False
    writes: bool = False
    changes: bool = False
    example: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return (self.name, *self.aliases)

    @property
    def meaning(self) -> str:
        """Summary in a sentence."""
        return self.run.__doc__ or ""

    @property
    def usage(self) -> str:
        """The form of a call."""
        words = [*self.arguments, *(["..."] if self.many else [])]
        words += [f"{name}={'|'.join(values) or 'text'}" for name, values in self.options.items()]
        call = f"{self.name}({', '.join(words)})"
        return f"m = {call}" if self.makes_model else call


@dataclass(frozen=True)
class Request:
    """A command of a script whose numbers of arguments and options were checked."""

    kind: Kind
    command: Command

    @property
    def place(self) -> Place:
        """The whole command."""
        return self.command.place

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The positional arguments."""
        return self.command.arguments

    def option(self, *names: str) -> str | None:
        """Return the value of an option under one of its names, as declared; None if it is not given."""
        for name, value in self.command.options:
            if name.text.lower() in (name.lower() for name in names):
                return value.text.lower() if self.kind.options[names[0]] else value.text
        return None


def request(command: Command, kind: Kind | None, kinds: Iterable[Kind]) -> Request:
    """Check a command against its declaration (None: there is none of its name; `kinds` are those to be suggested).

    Raises:
        ConfigError: with the nearest name, or with the form of the command.
    """
    name = command.name
    if kind is None:
        raise error("UnknownCommand", f"unknown editor function '{name.text}'", name.place, _nearest(name.text, kinds))
    hint = f"usage: {kind.usage}"
    if kind.makes_model and command.model is None and kind.name == "CreateModel":
        raise error("CommandArguments", "CreateModel needs a name for the model", command.place, hint)
    count, most = len(command.arguments), len(kind.arguments)
    least = most if kind.least is None else kind.least
    if count < least or (count > most and not kind.many):
        expected = (
            f"{least}" if least == most and not kind.many else f"{least} or more" if kind.many else f"{least} to {most}"
        )
        message = f"{kind.name} takes {expected} argument{'' if expected == '1' else 's'}, {count} given"
        raise error("CommandArguments", message, command.place, hint)
    known = {option.lower(): option for option in kind.options}
    for option, value in command.options:
        declared = known.get(option.text.lower())
        if declared is None:
            valid = ", ".join(kind.options)
            message = f"{kind.name} has no optional argument '{option.text}'"
            raise error(
                "UnknownOption",
                message,
                option.place,
                suggestion(option.text, kind.options) or (f"valid: {valid}" if valid else hint),
            )
        permitted = kind.options[declared]
        if permitted and not _permitted(value.text, permitted):
            message = f"'{value.text}' is not a value of '{declared}'; valid: {', '.join(permitted)}"
            raise error("BadValue", message, value.place, suggestion(value.text, permitted))
    return Request(kind, command)


def _permitted(text: str, values: tuple[str, ...]) -> bool:
    return text in BOOLEANS_TEXT if values == BOOLEAN else text.lower() in values


def _nearest(name: str, kinds: Iterable[Kind]) -> str | None:
    if name.lower() in INSTEAD:
        return f"use {INSTEAD[name.lower()]}"
    names = [name for kind in kinds for name in kind.names]
    return suggestion(name, names)
