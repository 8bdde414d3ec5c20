"""Quick fixes for editors: every finding that asks "did you mean ...?"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.cntk_config.base.spelling import MAX_NAME_LENGTH
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.editor.occurrences import occurrences

_MEANT = re.compile(r"did you mean '([^']+)'")
_WORD = re.compile(r"[^\s\"'=:;,()\[\]{}$]+")
_NAME = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*=\s*$")
_MIN_SIMILARITY = 0.5


@dataclass(frozen=True)
class Fix:
    """A word that is to be another one, where it stands, and the finding that says so."""

    finding: Finding
    spans: list[Span]
    new: str


def fixes(analysis: Analysis, first: int, last: int) -> Iterator[Fix]:
    """Return what can be corrected in the lines `first` to `last`, from 1."""
    for finding in analysis.findings():
        span = finding.diagnostic.span
        if span is None or span.source.name != analysis.name or not first <= span.line <= last:
            continue
        meant = _MEANT.search(finding.fix)
        word = _wrong_word(analysis.lines[span.line - 1], span, meant[1]) if meant is not None else None
        if meant is not None and word is not None:
            everywhere = (
                occurrences(analysis, word.line, word.column) if analysis.script_at(word.line, word.column) else []
            )
            yield Fix(finding, everywhere or [word], meant[1])


def _wrong_word(line: str, span: Span, new: str) -> Span | None:
    """The word of a finding that is most like the one that was meant: in it, or the name that it is the value of.

    Paths end in the word, or are all of it.
    """
    text = line[span.column - 1 : span.column - 1 + span.length]
    words = [(span.column + word.start(), word[0]) for word in _WORD.finditer(text) if len(word[0]) <= MAX_NAME_LENGTH]
    name = _NAME.search(line[: span.column - 1])
    if name is not None:
        words.append((name.start(1) + 1, name[1]))
    words += [
        (start + cut + 1, word[cut + 1 :]) for start, word in words for cut in range(len(word)) if word[cut] in "/.\\"
    ]
    alike = [
        (difflib.SequenceMatcher(None, word.lower(), new.lower()).ratio(), start, word)
        for start, word in words
        if word and word != new
    ]
    score, start, word = max(alike, default=(0.0, 0, ""), key=lambda finding: finding[0])
    return Span(span.source, span.line, start, len(word)) if score >= _MIN_SIMILARITY else None
