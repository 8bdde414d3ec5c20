"""A `$` that was lost: half a variable, or the name of one that stands where its text is meant."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from cntkpy.cntk_config import ConfigParameters, ConfigValue
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.source import VARIABLE, Fragment
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.commands.checks.names import used_variables

HALF = re.compile(r"\$([{(])?(?P<before>[A-Za-z_]\w*)(?(1)[})])|(?<![\w$])(?P<behind>[A-Za-z_]\w*)\$")
"""A name with one `$`, in brackets too, as shells and `make` write variables."""
PATTERN = re.compile(r"regex[ \t]*=[^;\n]*", re.IGNORECASE)
"""A parameter that is a regular expression, in which a `$` is the end."""
MEANT = ("CK020", "CK051", "CK052")
"""Kinds of errors that appear where the name of a variable is in place of its text."""
_WORD = re.compile(r"\w+")
_PARTS = re.compile(r"[^\\/:|]+")


def dollar_problems(root: ConfigParameters, top: Use) -> Iterator[Diagnostic]:
    """Report half variables, and paths in which a part is called as a variable is."""
    variables = used_variables(root)
    plain = set(_plain_names(top))
    names = {name.lower() for name in plain} | variables
    for entry in filter(None, map(root.definition, root.names())):
        for part in entry.parts:
            if part.text.string.find("$", part.start, part.end) >= 0:
                yield from _halves(part, names)
    read = {name.lower() for use in top.walk() for name in use.names()} - variables
    meant = {name for name in plain if name.lower() not in read}
    for use in top.walk() if meant else ():
        for parameter in use.parameters():
            if parameter.type.name.startswith("path") and (value := use.value(parameter)):
                yield from _named_parts(value, meant)


def with_variables(diagnostics: Iterable[Diagnostic], top: Use) -> Iterator[Diagnostic]:
    """Report the same, with the advice to write `$name$` where the name of a variable is wrong."""
    names = {name.lower() for name in _plain_names(top)}
    for diagnostic in diagnostics:
        name = _name_at(diagnostic) if diagnostic.rule.code in MEANT else ""
        yield replace(diagnostic, hint=f"did you mean ${name}$?") if name.lower() in names else diagnostic


def _plain_names(top: Use) -> Iterator[str]:
    """Return the names of single values at the top level and directly in commands."""
    for section in (top.section, *(use.section for use in top.parts)):
        for name in section.names():
            entry = section.definition(name)
            if entry is not None and not entry.bracket:
                yield entry.name


def _halves(part: Fragment, names: set[str]) -> Iterator[Diagnostic]:
    text = VARIABLE.sub(lambda match: " " * len(match[0]), part.string)
    patterns = [pattern.span() for pattern in PATTERN.finditer(text)]
    for match in HALF.finditer(text):
        name, index = match["before"] or match["behind"], bisect(patterns, (match.start(),)) - 1
        in_pattern = index >= 0 and match.start() <= patterns[index][1]
        if name.lower() in names and not (match["behind"] and in_pattern):
            message = f"'{match[0]}' is ordinary text, no variable: it has one $"
            span = part.text.span(part.start + match.start(), len(match[0]))
            yield Diagnostic("LostDollar", message, span, f"write ${name}$", severity="warning")


def _named_parts(value: ConfigValue, meant: set[str]) -> Iterator[Diagnostic]:
    for match in _PARTS.finditer(value):
        if match[0] in meant and not exists(Path(value[: match.end()])):
            message = f"{value.path}: '{match[0]}' is ordinary text, no variable"
            span = value.locate(match.start(), len(match[0]))
            yield Diagnostic("LostDollar", message, span, f"did you mean ${match[0]}$?", severity="warning")
            return


def _name_at(diagnostic: Diagnostic) -> str:
    """Return the name that a finding is about, if its message names it and it is at the place."""
    match = diagnostic.span.match(_WORD) if diagnostic.span is not None else None
    return match[0] if match is not None and f"'{match[0]}'" in diagnostic.message else ""
