"""Console output of commands: errors on standard error, findings, in colour where the stream is a terminal."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TextIO

from cntkpy.cntk_config.base.diagnostics import UserError

_COLOURS = {"error": "31", "warning": "33", "hint": "36", "note": "36", "help": "32"}
"""Numbers of ANSI colours by the word before the colon."""
_WORD = re.compile(r"(?P<before>^(?:\S.*?:[0-9]+:[0-9]+: | +)?)(?P<word>error|warning|hint|note|help):")
_CARETS = re.compile(r"(?P<before>^ +\| *)(?P<carets>\^+)$")


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows colours; `NO_COLOR` (https://no-color.org) with any text says
    no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def coloured(text: str) -> str:
    """Return the text with the severity of each line, and the carets under a place, in their colours.

    Args:
        text: lines as `UserError.diagnostic.render()` or `Finding.one_line()` have them.
    """
    colour, lines = "", list[str]()
    for line in text.split("\n"):
        if match := _WORD.match(line):
            colour = _COLOURS[match["word"]]
            line = f"{match['before']}\033[1;{colour}m{match['word']}:\033[0m{line[match.end() :]}"
        elif colour and (match := _CARETS.match(line)):
            line = f"{match['before']}\033[1;{colour}m{match['carets']}\033[0m"
        lines.append(line)
    return "\n".join(lines)


def say_on_console(text: str) -> None:
    """Print a line on standard error; where that cannot be written, nothing more is written there.

    Python itself would write what is left when it ends, and end with status 120.
    """
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def print_error(error: UserError) -> None:
    """Print an error with its place and what to do, on standard error."""
    text = error.diagnostic.render()
    say_on_console(coloured(text) if has_colours(sys.stderr) else text)
