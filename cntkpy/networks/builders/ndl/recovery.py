"""Statements of a script with several errors: what cannot be read is left out, so that the others are found as well."""

from __future__ import annotations

import re
from dataclasses import replace

from cntkpy.networks.builders.ndl.parse import Statement, parse_document
from cntkpy.networks.builders.ndl.scope import DependsOnFailed, Expansion
from cntkpy.networks.builders.ndl.text import Document, ScriptError
from cntkpy.networks.builders.recovery import assigned_names, attempts, blanked, statement_at

SKIPPED = re.compile(r'#[^\n]*|"[^"\n]*"')
"""Comments and quoted texts."""


def statements_of(document: Document, expansion: Expansion) -> list[Statement]:
    """Return the statements of a script; the expansion gets its warnings, its errors and the names that are lost.

    Args:
        document: The script.
        expansion: What is known of the scripts so far.

    Raises:
        ConfigError: The script has an error, and the expansion collects none.
        DependsOnFailed: The script cannot be read further.
    """
    for _ in range(attempts(document.text)):
        try:
            statements, warnings = parse_document(document)
        except ScriptError as problem:
            expansion.note(problem)
            place = problem.place
            stretch = statement_at(document.text, place.start, SKIPPED) if place is not None else None
            if stretch is None:
                break
            expansion.lost |= assigned_names(document.text[slice(*stretch)])
            document = replace(document, text=blanked(document.text, *stretch))
        else:
            expansion.warnings.extend(warnings)
            return statements
    raise DependsOnFailed
