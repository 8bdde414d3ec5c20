"""Quick fixes for editors: every finding that asks "did you mean ...?"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.commands.checks.corrections import meant_by, wrong_word
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.editor.occurrences import occurrences


@dataclass(frozen=True)
class Fix:
    """A word that is to be another one, where it stands, and the finding that says so."""

    finding: Finding
    spans: list[Span]
    new: str


def fixes(analysis: Analysis, first: int, last: int) -> Iterator[Fix]:
    """Yield the corrections in the lines `first` to `last`, counted from 1."""
    for finding in analysis.findings():
        span = finding.diagnostic.span
        if span is None or span.source.name != analysis.name or not first <= span.line <= last:
            continue
        meant = meant_by(finding)
        word = wrong_word(analysis.lines[span.line - 1], span, meant) if meant is not None else None
        if meant is not None and word is not None:
            everywhere = (
                occurrences(analysis, word.line, word.column) if analysis.script_at(word.line, word.column) else []
            )
            yield Fix(finding, everywhere or [word], meant)
