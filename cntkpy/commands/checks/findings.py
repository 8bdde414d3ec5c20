"""The findings of `cntkpy check`: diagnostics with the rule of their kind and a severity."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, SourceLike, printable
from cntkpy.cntk_config.base.kinds import Rule

GUESSES = 100
"""Errors in values for which the nearest name is looked for; the others say what to do in general."""
RUNS_SHOWN = 4
"""Runs whose names a finding lists."""
SEVERITIES = ("error", "warning", "hint")
_COMMENT = re.compile(r"#\s*cntkpy:\s*ignore(?P<file>-file)?(?:\s*=\s*(?P<codes>[A-Za-z0-9, ]+))?", re.IGNORECASE)


class Finding(NamedTuple):
    """A diagnostic and the rule that it falls under."""

    diagnostic: Diagnostic
    rule: Rule
    severity: str
    runs: tuple[str, ...] = ()
    """Names of the runs of a project that show it."""
    of_runs: int = 0
    """Number of the runs that were checked."""

    @classmethod
    def of(cls, diagnostic: Diagnostic) -> Finding:
        """Return the finding for a diagnostic. A warning of another part of the program stays one."""
        rule = diagnostic.rule
        severity = "warning" if diagnostic.severity == "warning" else rule.severity_of(diagnostic.kind)
        return cls(diagnostic, rule, severity)

    @property
    def fix(self) -> str:
        """Advice in one line."""
        return self.diagnostic.hint or self.rule.fix

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line and column; a finding without a place comes first."""
        span = self.diagnostic.span
        return (span.source.name, span.line, span.column) if span is not None else ("", 0, 0)

    def error(self) -> ConfigError:
        """Return the finding as an error that ends a run."""
        diagnostic = self.diagnostic
        return ConfigError(diagnostic.kind, diagnostic.message, diagnostic.span, diagnostic.hint, diagnostic.notes)

    def one_line(self, severity: str = "") -> str:
        """`file:line:column: error: message - what to do [CK012]`; with another severity if one is given."""
        where = f"{self.diagnostic.span}: " if self.diagnostic.span else ""
        hint = f" - {self.diagnostic.hint}" if self.diagnostic.hint else ""
        text = f"{where}{severity or self.severity}: {printable(self.diagnostic.message)}{hint} [{self.rule.code}]"
        return f"{text}{self.in_brackets}"

    @property
    def in_brackets(self) -> str:
        """Runs that show the finding, in brackets after a blank; empty outside of a project."""
        return f" ({self.in_runs})" if self.in_runs else ""

    @property
    def in_runs(self) -> str:
        """`in run prod-large`, `in 3 of 12 runs: a, b, c`; empty outside of a project."""
        count = len(self.runs)
        if not count:
            return ""
        if count == self.of_runs > 1:
            return f"in all {count} runs"
        if count == 1:
            return f"in run {printable(self.runs[0])}"
        ending = ", ..." if count > RUNS_SHOWN else ""
        return f"in {count} of {self.of_runs} runs: {printable(', '.join(self.runs[:RUNS_SHOWN]))}{ending}"

    def ignored(self) -> bool:
        """Return whether a comment in its line, or `# cntkpy: ignore-file=...` in its file, switches it off."""
        span = self.diagnostic.span
        if span is None:
            return False
        in_line = _switched_off(span.source.line(span.line) or "")
        comments = [*_of_file(span.source), *((in_line[1],) if in_line and not in_line[0] else ())]
        return any(codes is None or selects(codes, self.rule.code) for codes in comments)

    def as_error(self) -> Finding:
        """Return the same with the severity `error`."""
        return self._replace(severity="error")


@functools.lru_cache(64)
def _switched_off(line: str) -> tuple[bool, str | None] | None:
    """Return the scope of an ignoring comment in a line: True for the whole file, and the codes (None: all).

    A line may be long and have many findings; it is searched once.
    """
    match = _COMMENT.search(line)
    return (bool(match["file"]), match["codes"]) if match else None


@functools.lru_cache(64)
def _of_file(source: SourceLike) -> tuple[str | None, ...]:
    """Return the codes that the comments at the head of a file switch off for all of it."""
    codes: list[str | None] = []
    number = 1
    while (line := source.line(number)) is not None and (not line.strip() or line.lstrip().startswith("#")):
        match = _COMMENT.search(line)
        if match is not None and match["file"]:
            codes.append(match["codes"])
        number += 1
    return tuple(codes)


def diagnostics_of(errors: Iterable[ConfigError]) -> Iterator[Diagnostic]:
    """Report the errors as diagnostics; many of them would look for nearest names for minutes."""
    for number, error in enumerate(errors):
        if number < GUESSES:
            yield error.diagnostic
        else:
            yield Diagnostic(error.kind, error.message, error.span, None, error.notes)


def selects(codes: str | Iterable[str], code: str) -> bool:
    """Return whether a code is among `codes` (a list, or a text with commas); `CK01` selects all that begin with it."""
    words = codes.split(",") if isinstance(codes, str) else codes
    return any(word.strip() and code.startswith(word.strip().upper()) for word in words)
