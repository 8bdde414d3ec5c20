"""The work of the language server's answers grows as the text does (R13)."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import pytest

from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.editor.occurrences import occurrences, renamed
from cntkpy.commands.editor.symbols import symbols

GROWTH = 2.2
"""The most that the work may grow by where the text doubles."""


def lines(pattern: str, count: int) -> str:
    return "".join(pattern.replace("*", str(i)).replace("^", str(max(0, i - 1))) + "\n" for i in range(1, count))


TEXTS: dict[str, Callable[[int], str]] = {
    "a chain of variables": lambda n: "v0 = 1\n" + lines("v* = $v^$", n) + "command = c\nc = [ action = train ]\n",
    "a chain in a command": lambda n: "command = c\nc = [ action = train\nv0 = 1\n" + lines("v* = $v^$", n) + "]\n",
    "uses of one variable": lambda n: "v0 = 1\ncommand = c\nc = [ action = train\n" + lines("w* = $v0$", n) + "]\n",
    "sections": lambda n: "command = c\nc = [ action = train\nv0 = 1\n" + lines("v* = [ a = $v^$ ]", n) + "]\n",
    "commands": lambda n: "v0 = 1\ncommand = c1\n" + lines("c* = [ action = train ; a = $v0$ ]", n),
}
ANSWERS: dict[str, Callable[[Analysis, int, int], Any]] = {
    "findings": lambda found, line, column: found.findings(),
    "hover": lambda found, line, column: found.hover(line, column),
    "definition": lambda found, line, column: found.definition(line, column),
    "completions": lambda found, line, column: list(found.completions(line, column)),
    "outline": lambda found, line, column: symbols(found),
    "references": occurrences,
    "renaming": lambda found, line, column: renamed(found, line, column, "another"),
}


def work(text: str, answer: Callable[[Analysis, int, int], Any]) -> int:
    """The calls of functions for an answer about the last variable of a text."""
    found = Analysis(text, "f.cntk")
    line = max(number for number, content in enumerate(found.lines, 1) if "$" in content)
    profile = cProfile.Profile()
    profile.runcall(answer, found, line, found.lines[line - 1].index("$") + 2)
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


@pytest.mark.thorough
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.sampled
def test_an_answer(text: str, answer: str) -> None:
    make, ask = TEXTS[text], ANSWERS[answer]
    work(make(10), ask)  # modules are imported
    few, many = (work(make(n), ask) for n in (150, 300))
    assert many < GROWTH * few + 200, (few, many)
