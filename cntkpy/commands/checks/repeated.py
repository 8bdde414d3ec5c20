"""Names that are set twice in one section of one file: the last text counts, the others are lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic, shorten
from cntkpy.cntk_config.base.source import Fragment, Source
from cntkpy.cntk_config.definitions import Definition
from cntkpy.commands.catalogue.section_map import Use


def repeated_problems(top: Use) -> Iterator[Diagnostic]:
    """Report texts that replace another one of the same file; other files and the command line mean to."""
    for use in top.walk():
        for name in use.section.names():
            entry = use.section.definition(name)
            if entry is not None and entry.earlier:
                yield from _replaced(entry)
            if entry is not None and entry.bracket and all(part.span.in_word for part in entry.parts):
                yield from _hidden(use.section, entry)


def _replaced(entry: Definition) -> Iterator[Diagnostic]:
    texts = [*(entry.earlier or ()), entry.parts[0]]
    for first, after in itertools.pairwise(texts):
        if not _is_meant(first, after):
            message = f"'{entry.name}' has been set before, at {first.span}: '{shorten(first.string, 40)}' is lost"
            hint = "the last one counts; remove one of the two"
            yield Diagnostic("RepeatedParameter", message, after.span, hint, severity="warning")


def _hidden(section: ConfigParameters, entry: Definition) -> Iterator[Diagnostic]:
    """Report a section of a file that is further out, and that a word hides from the command or section around it."""
    outer = section.parent
    while outer is not None:
        definition = outer.definition(entry.name)
        if definition is not None and definition.bracket and not definition.span.in_word:
            whose, place = _name_of(section), definition.span
            message = f"for '{whose}' this replaces the section '{entry.name}' of {place}, it does not add to it"
            hint = f"write {_path_of(outer)}{entry.name}=[...] to change single entries"
            yield Diagnostic("SectionReplaced", message, entry.parts[-1].span, hint, severity="warning")
            return
        outer = outer.parent


def _name_of(section: ConfigParameters) -> str:
    return section.path.rpartition(":")[2]


def _path_of(section: ConfigParameters) -> str:
    """Return the path of a section as in a word, with a trailing slash."""
    inside = section.path.partition(":")[2].replace(":", "/")
    return f"{inside}/" if inside else ""


def _is_meant(first: Fragment, after: Fragment) -> bool:
    """Return whether a text replaces one of elsewhere or the same text, or is a section that replaces one (CK034)."""
    source = first.span.source
    if first.string == "true" and not first.span.starts_with("true"):
        return True  # a name without a value
    of_file = isinstance(source, Source) and source.path is not None
    if not of_file or source is not after.span.source or first.string == after.string:
        return True
    return all(Definition("", None, text).bracket for text in (first, after))
