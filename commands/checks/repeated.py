"""Names that are set twice in one section of one file: the last text counts, the others are lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from cntk_config.base.diagnostics import Diagnostic, shorten
from cntk_config.base.source import Fragment, Source
from cntk_config.definitions import Definition
from commands.catalogue.section_map import Use


def repeated_problems(top: Use) -> Iterator[Diagnostic]:
    """Texts that replace another one of the same file: what other files and the command line replace is meant so."""
    for use in top.walk():
        for name in use.section.names():
            entry = use.section.definition(name)
            if entry is not None and entry.earlier:
                yield from _replaced(entry)


def _replaced(entry: Definition) -> Iterator[Diagnostic]:
    texts = [*(entry.earlier or ()), entry.parts[0]]
    for before, after in itertools.pairwise(texts):
        if not _is_meant(before, after):
            message = f"'{entry.name}' has been set before, at {before.span}: '{shorten(before.string, 40)}' is lost"
            hint = "the last one counts; remove one of the two"
            yield Diagnostic("RepeatedParameter", message, after.span, hint, severity="warning")


def _is_meant(before: Fragment, after: Fragment) -> bool:
    """Whether one text replaces another of elsewhere, or the same text, or is a section that replaces one (CK034)."""
    source = before.span.source
    of_file = isinstance(source, Source) and source.path is not None
    if not of_file or source is not after.span.source or before.string == after.string:
        return True
    return all(Definition("", None, text).bracket for text in (before, after))
