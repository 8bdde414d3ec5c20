"""The layout of BrainScript: lines are indented by their brackets. Nothing inside a line changes.

A line that begins a member stands as deep as the brackets around it say. A line that continues with an expression keeps
its distance from the line that began it. What is inside a text or a comment of several lines stays as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from cntkpy.networks.builders.brainscript.language.source import WORDS

STEP = "    "
_TOKENS = re.compile(rf"{WORDS.pattern}|(?P<open>\[\||[\[({{])|(?P<close>\|\]|[\])}}])")
_MEMBER = re.compile(r"[A-Za-z_]\w*\s*(?:\[[^]\n]*\]\s*)?(?:[({].*[)}]\s*)?=(?![=>])")
_BEGINS = re.compile(r"//|#|/\*|include\b")
_OPENERS = ("(", "[", "{", "[|")
_GOES_ON = re.compile(r"(?:then|else|with)\b|[-+*/.%<>=:!&|]")
_CALLER = re.compile(r"[\w)}\]]\s*$")
_MADE = re.compile(r"\bnew\s+\w+\s*$")


class _Open(NamedTuple):
    """A bracket that is open: the indentation of its line, and whether it is that of a call."""

    indent: int
    of_call: bool


def layout(lines: list[str], level: int = 0, opening: str = "") -> list[str]:
    """Lines of BrainScript in the layout of this program.

    Args:
        lines: the lines.
        level: how deep the text around them stands.
        opening: the line before them, whose brackets are open.
    """
    text = "\n".join([opening, *lines])
    starts = [0]
    for line in (opening, *lines):
        starts.append(starts[-1] + len(line) + 1)
    inside, brackets = _scanned(text, starts)
    result: list[str] = []
    base = level * len(STEP)
    stack = _after([], brackets[0], base)
    anchor_old, anchor_new = -1, base
    hanging = opening.rstrip().endswith(_OPENERS)
    for number, line in enumerate(lines, 1):
        code, new = line.strip(" \t"), anchor_new
        if number in inside:
            result.append(line)
        elif not code:
            result += [""] if result and result[-1] else []
        else:
            old = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip(" "))
            closed = _leading(code, brackets[number])
            around = stack[-1] if stack else None
            begins = hanging or _BEGINS.match(code) or (_MEMBER.match(code) and not (around and around.of_call))
            if closed:
                new = stack[-min(closed, len(stack))].indent if stack else base
            elif not begins and (old > anchor_old >= 0 or (old == anchor_old and _GOES_ON.match(code))):
                new = anchor_new + old - anchor_old
            else:
                new = around.indent + len(STEP) if around else base
            if closed or begins or old <= anchor_old or anchor_old < 0:
                anchor_old, anchor_new = old, new
            result.append(" " * new + code)
            hanging = code.endswith(_OPENERS)
        stack = _after(stack, brackets[number], new)
    while result and not result[-1]:
        result.pop()
    return result


def _scanned(text: str, starts: list[int]) -> tuple[set[int], dict[int, list[tuple[str, bool]]]]:
    """Return the lines that begin inside a text or comment, and the brackets of each line: (open or close, of a
    call).
    """
    inside: set[int] = set()
    brackets: dict[int, list[tuple[str, bool]]] = {number: [] for number in range(len(starts))}
    for token in _TOKENS.finditer(text):
        line = bisect_right(starts, token.start()) - 1
        if token["open"]:
            context = text[max(0, token.start() - 200) : token.start()]
            call = bool(_CALLER.search(context)) and not _MADE.search(context)
            brackets[line].append(("open", call and token["open"] != "[|"))
        elif token["close"]:
            brackets[line].append(("close", False))
        else:
            inside.update(range(line + 1, bisect_right(starts, token.end() - 1)))
    return inside, brackets


def _after(stack: list[_Open], brackets: list[tuple[str, bool]], indent: int) -> list[_Open]:
    """Return the brackets that are open after a line."""
    stack = list(stack)
    for kind, call in brackets:
        if kind == "open":
            stack.append(_Open(indent, call))
        elif stack:
            indent = stack.pop().indent  # what follows on the line belongs to the line of that bracket
    return stack


def _leading(code: str, brackets: list[tuple[str, bool]]) -> int:
    """Return the number of brackets a line closes before anything else is in it."""
    count = 0
    for c in code.replace("|]", "]"):
        if c not in ")]}" or count >= len(brackets) or brackets[count][0] != "close":
            break
        count += 1
    return count
