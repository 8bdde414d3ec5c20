"""Lines that end with a line feed alone: `str.splitlines` also ends them at U+2028, U+0085 and six other characters."""

from __future__ import annotations

import json
from typing import Any

_ENDS_ELSEWHERE = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Ends of lines for other programs that JSON allows in a text."""


def split_lines(text: str, *, keep_ends: bool = False) -> list[str]:
    r"""Return the lines of a text, which end with `\n` or `\r\n`; a line after the last end only if it has characters.

    Args:
        text: of a file.
        keep_ends: Leave the ends of the lines as they are.
    """
    lines = text.split("\n")
    last = lines.pop()
    if keep_ends:
        return [line + "\n" for line in lines] + [last] * bool(last)
    return [line.removesuffix("\r") for line in [*lines, *[last] * bool(last)]]


def json_line(value: Any) -> str:
    """Return a value as JSON in one line, whatever a reader takes for the end of a line; without a line feed."""
    return json.dumps(value, ensure_ascii=False).translate(_ENDS_ELSEWHERE)
