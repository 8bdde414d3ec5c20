"""The classic command line, `configFile=a.cntk+b.cntk name=value ...`: from its words to the root."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cntk_config.base.diagnostics import ConfigError, Span
from cntk_config.base.source import BLANKS, Line, Source, read_lines
from cntk_config.includes import Loader
from cntk_config.parameters import ConfigParameters, root_of

CONFIG_FILE = "configfile="
CURRENT_DIRECTORY = "currentdirectory="


def has_config_file(argv: Sequence[str]) -> bool:
    """True when the words are a classic command line: one of them is `configFile=...`."""
    return any(word.lower().startswith(CONFIG_FILE) for word in argv)


def load(argv: Sequence[str]) -> ConfigParameters:
    """The configuration that a command line describes.

    The words are used strictly from left to right: files are read, other words become lines, and what comes later
    is stronger. `currentDirectory=DIR` changes the directory of the process at once.
    """
    loader = Loader()
    lines: list[Line] = []
    named: set[str] = set()
    for number, word in enumerate(argv, 1):
        source = Source(f"<argument {number}>", word, argument=number)
        _check(source)
        if word.lower().startswith(CONFIG_FILE):
            lines.extend(_config_files(word, source, loader, named))
            continue
        if word.lower().startswith(CURRENT_DIRECTORY):
            _change_directory(word[len(CURRENT_DIRECTORY) :], Span(source, 1, len(CURRENT_DIRECTORY) + 1))
        lines.extend(read_lines(source, tidy=False))
    return root_of(loader.expand(lines), loader)


def _config_files(word: str, source: Source, loader: Loader, named: set[str]) -> list[Line]:
    lines: list[Line] = []
    column = len(CONFIG_FILE) + 1
    for part in word[len(CONFIG_FILE) :].split("+"):
        name = part.strip(BLANKS)
        span = Span(source, 1, column + len(part) - len(part.lstrip(BLANKS)), max(1, len(name)))
        column += len(part) + 1
        if not name:
            continue
        if name in named:
            raise ConfigError(
                "DuplicateConfigFile",
                f"'{name}' is given twice as configFile",
                Span(source, 1, 1, len(word)),
                hint="give every file once; what stands later is stronger",
            )
        named.add(name)
        lines.extend(loader.file(name, span))
    return lines


def _change_directory(name: str, span: Span) -> None:
    folder = name.strip(BLANKS).removeprefix('"').removesuffix('"')
    if not folder:
        return
    try:
        os.chdir(folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable name"
        raise ConfigError("BadDirectory", f"cannot change to the directory '{folder}': {reason}", span) from None


def _check(source: Source) -> None:
    """Words come from the system as bytes; those that are not UTF-8 are an error."""
    for column, char in enumerate(source.text, 1):
        if "\ud800" <= char <= "\udfff":
            source.text = source.text.encode("utf-8", "replace").decode("utf-8")
            message = f"argument {source.argument} is not valid UTF-8"
            raise ConfigError("MalformedLine", message, Span(source, 1, column))
