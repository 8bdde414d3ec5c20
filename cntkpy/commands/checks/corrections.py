"""Corrections of findings that are certain: a misspelled name, quotation marks, a list with commas, backslashes."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.spelling import MAX_NAME_LENGTH, edits
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.commands.checks.findings import Finding

MAX_TRIED = 100
"""Corrections that are tried one by one."""
SHORT_NAME = 3
"""Fewest letters of a name that is corrected: `z` and `zz` are two names, not one with a slip."""
LONG_NAME = 8
"""Letters from which on two edits are certain, not one."""
_MEANT = re.compile(r"did you mean '([^']+)'")
_WORD = re.compile(r"[^\s\"'=:;,()\[\]{}$]+")
_NAME = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*=\s*$")
_INCLUDE = re.compile(r"include[ \t:]*(?=\")", re.IGNORECASE)
_BACKSLASHES = re.compile(r"\\+/?")
_DIGIT = re.compile("[0-9]")
_DIGITS = re.compile(r"(?<![\w.,])[0-9]++(?:,[0-9]++)++(?![\w.,])")
_MIN_SIMILARITY = 0.5
_CURLY = ("\u201c", "\u201d", "\u201e")

Texts = Mapping[str, str]
"""Texts of files, by canonical path."""
Judge = Callable[[Sequence["Correction"], Texts], bool]
"""Returns True if texts lack the findings of the corrections, and can be read."""


@dataclass(frozen=True)
class Correction:
    """A stretch of a file and the text in its place.

    Attributes:
        path: The canonical path of the file.
        span: The stretch.
        new: The text.
        finding: The finding that it corrects.
    """

    path: str
    span: Span
    new: str
    finding: Finding


def meant_by(finding: Finding) -> str | None:
    """Return the name that the advice of a finding asks for."""
    match = _MEANT.search(finding.fix)
    return match[1] if match is not None else None


def wrong_word(line: str, span: Span, new: str) -> Span | None:
    """Return the word of a finding that is most like the one that is meant: in it, or the name of the value.

    Paths end in the word, or are all of it.

    Args:
        line: The line of the finding.
        span: Its place.
        new: The word that is meant.
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


def corrections(findings: Iterable[Finding], folders: Sequence[Path]) -> list[Correction]:
    """Return the certain corrections, each place once.

    Args:
        findings: The findings.
        folders: Only files below one of these folders are corrected.
    """
    result: dict[tuple[str, int, int], Correction] = {}
    for finding in findings:
        span = finding.diagnostic.span
        path = getattr(span.source, "path", None) if span is not None else None
        if span is None or not isinstance(path, Path):
            continue
        canonical = Path(os.path.realpath(path))
        if not any(folder in canonical.parents for folder in folders):
            continue
        for stretch, new in _certain(finding, span):
            result.setdefault(
                (str(canonical), stretch.line, stretch.column), Correction(str(canonical), stretch, new, finding)
            )
    return list(result.values())


def _certain(finding: Finding, span: Span) -> Iterator[tuple[Span, str]]:
    line = span.source.line(span.line) or ""
    text = line[span.column - 1 : span.column - 1 + span.length]
    kind, hint = finding.diagnostic.kind, finding.fix
    meant = meant_by(finding)
    if meant is not None:
        word = wrong_word(line, span, meant)
        written = line[word.column - 1 : word.column - 1 + word.length] if word is not None else ""
        if word is not None and _is_slip(written.lower(), meant.lower()):
            yield word, meant
    elif kind == "CurlyQuotes" and text[:1] in _CURLY:
        yield Span(span.source, span.line, span.column, 1), '"'
    elif kind == "CurlyQuotes" and len(text) > 1 and text[0] == text[-1] == "'":
        yield span, f'"{text[1:-1]}"'
    elif kind == "WindowsPath" and hint.startswith("separate folders by /"):
        yield span, _BACKSLASHES.sub("/", text)
    elif kind == "BadInclude" and (match := _INCLUDE.match(line, span.column - 1)):
        yield Span(span.source, span.line, span.column, len(match[0])), "include="
    elif kind == "CutOff" and "colons" in hint:
        preceding = line[: span.column - 1].rstrip(" \t")
        if preceding[-1:] in (",", ";") and not _may_be_one_number(line, len(preceding) - 1):
            yield Span(span.source, span.line, len(preceding), 1), ":"


def _is_slip(written: str, meant: str) -> bool:
    """Return whether a name is certainly another one with a slip: they differ in a letter or two, and in no digit."""
    if written == meant:
        return True
    if min(len(written), len(meant)) < SHORT_NAME or _DIGIT.findall(written) != _DIGIT.findall(meant):
        return False
    return edits(written, meant) <= (2 if len(meant) >= LONG_NAME else 1)


def _may_be_one_number(line: str, comma: int) -> bool:
    """Return whether digits around a comma may be one number, as `0,1` and `1,000` in some countries."""
    for match in _DIGITS.finditer(line):
        if match.start() <= comma < match.end():
            groups = match[0].split(",")
            return len(groups) == 2 or all(len(group) == 3 for group in groups[1:])
    return False


def accepted(several: Sequence[Correction], texts: Texts, is_better: Judge) -> Texts:
    """Return the new texts of files, with the corrections that remove their findings and break nothing.

    Args:
        several: The corrections.
        texts: Texts that are not in the files yet.
        is_better: Judges texts with some of the corrections.
    """
    everything = applied(several, texts)
    if not several or is_better(several, everything):
        return everything
    kept: list[Correction] = []
    for correction in several[:MAX_TRIED]:
        if is_better([correction], applied([*kept, correction], texts)):
            kept.append(correction)
    return applied(kept, texts)


def applied(several: Iterable[Correction], texts: Texts) -> dict[str, str]:
    """Return the texts of files with the corrections, by canonical path.

    Args:
        several: The corrections.
        texts: Texts that are not in the files yet.
    """
    by_file: dict[str, list[Correction]] = {}
    for correction in several:
        by_file.setdefault(correction.path, []).append(correction)
    known = {path: texts[path] if path in texts else read_text(path) for path in by_file}
    return dict(texts) | {path: _corrected(known[path], inside) for path, inside in by_file.items()}


def _corrected(text: str, several: list[Correction]) -> str:
    lines = text.split("\n")
    for correction in sorted(several, key=lambda item: (item.span.line, item.span.column), reverse=True):
        span = correction.span
        line = lines[span.line - 1]
        start = span.column - 1 + line.startswith("\ufeff")
        lines[span.line - 1] = line[:start] + correction.new + line[start + span.length :]
    return "\n".join(lines)


def read_text(path: str) -> str:
    """Return the text of a file.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        return read_input(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("CannotRead", f"cannot read '{path}': {error}") from None


def write_texts(texts: Texts) -> None:
    """Write files.

    Args:
        texts: Their texts, by path.

    Raises:
        ConfigError: A file cannot be written.
    """
    for path, text in texts.items():
        try:
            with atomic_write(path) as file:
                file.write(text.encode("utf-8"))
        except OSError as error:
            raise ConfigError("CannotWrite", f"cannot write '{path}': {error.strerror or error}") from None


def difference(texts: Texts) -> str:
    """Return the changes as a unified diff.

    Args:
        texts: New texts of files, by path.
    """
    parts: list[str] = []
    for path, text in sorted(texts.items()):
        name = os.path.relpath(path)
        old, new = read_text(path).splitlines(keepends=True), text.splitlines(keepends=True)
        for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)
