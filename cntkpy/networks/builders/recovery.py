"""Statements around errors of a grammar: left out, so that the other errors of a text are found as well."""

from __future__ import annotations

import re

MAX_ERRORS = 50
"""Errors of one text that are looked for: after each, the text is read once more."""
MAX_CHARACTERS = 1_000_000
"""Characters that are read for it, at most, but for a text that is larger."""
_PAIRS = {")": "(", "]": "[", "}": "{"}
_ASSIGNED = re.compile(r"(?<![\w.\-])([\w.\-]++)[ \t]*+=(?![=>])")
_PARENTHESES = re.compile(r"([()])")
_HEADER = re.compile(r"(?<![\w.\-])([\w.\-]++)[ \t]*+\(")


def attempts(text: str) -> int:
    """Return the number of times that a text is read to find its errors.

    Args:
        text: The text.
    """
    return max(2, min(MAX_ERRORS, MAX_CHARACTERS // max(1, len(text))))


def statement_at(text: str, offset: int, skipped: re.Pattern[str]) -> tuple[int, int] | None:
    """Return the whole lines of the statement around an offset.

    A statement begins at a line outside of parentheses and of brackets that follow a name; other brackets, as those of
    sections, macros and records, hold statements.

    Args:
        text: The text.
        offset: The offset of the error.
        skipped: Comments and quoted texts, in which brackets do not count.

    Returns:
        Offsets of begin and end; None if brackets do not match, so that the end is not known.
    """
    plain = skipped.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    opened: list[bool] = []
    """For each open bracket, True if statements are inside."""
    start = position = 0
    preceding = ""
    for line in plain.splitlines(keepends=True):
        if all(opened):
            start = position
        for sign in line:
            if sign in "([{":
                opened.append(sign != "(" and preceding in ("", "=", ")", ">"))
            elif sign in _PAIRS and opened:
                opened.pop()
            if not sign.isspace():
                preceding = sign
        position += len(line)
        if position > offset and all(opened):
            break
    return (start, position) if start < position and _is_balanced(plain[start:position]) else None


def _is_balanced(text: str) -> bool:
    opened: list[str] = []
    for sign in text:
        if sign in "([{":
            opened.append(sign)
        elif sign in _PAIRS and (not opened or opened.pop() != _PAIRS[sign]):
            return False
    return not opened


def assigned_names(text: str) -> set[str]:
    """Return the names, in lower case, that a statement assigns or defines as functions."""
    outside: list[str] = []
    depth = 0
    for part in _PARENTHESES.split(text):
        if part in ("(", ")"):
            depth = max(0, depth + (1 if part == "(" else -1))
        elif depth == 0:
            outside.append(part)
    return {name.lower() for name in (*_HEADER.findall(text), *_ASSIGNED.findall(" ".join(outside)))}


def blanked(text: str, start: int, end: int) -> str:
    """Return a text with blanks in place of a stretch; its lines stay."""
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
