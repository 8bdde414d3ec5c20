"""The configurations of a folder, told from other files."""

from __future__ import annotations

import re
from pathlib import Path

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.files import is_folder, read_input
from cntkpy.cntk_config.includes import Loader
from cntkpy.commands.words import RESOLVED

SUFFIXES = (".cntk", ".cfg", ".config")
"""The files of a folder that are configurations."""

FOREIGN = (".cfg", ".config")
"""Endings that files of other programs have, too."""
_COMMANDS = re.compile(r"(?:^|[\s;,\[({])(?:command|action)\s*=", re.IGNORECASE)
_INCLUDE = re.compile(r"(?:^|[\s;,\[({])include\s*=", re.IGNORECASE)
_FOREIGN_TEXT = re.compile(r"\A\s*<|^\[[^\[\]=\n]+\][ \t]*\r?$", re.MULTILINE)


def expand_folders(
    words: list[str], suffixes: tuple[str, ...] = SUFFIXES, skipped: list[str] | None = None
) -> list[str]:
    """Return the words, with the configurations of a folder (the files with these endings) in place of its name.

    Files of a folder that do not look like configurations of CNTK are left out, those in `FOREIGN` suffixes always, the
    others (parts of configurations, which can be laid out) if a list is given for their names. So are records of runs.
    """
    result: list[str] = []
    for word in words:
        if "=" not in word and "+" not in word and is_folder(word):
            files = (path for path in Path(word).rglob("*") if path.suffix in suffixes and path.is_file())
            for path in sorted(path for path in files if path.name != RESOLVED):
                like = (skipped is None and path.suffix not in FOREIGN) or looks_like_cntk(path)
                if like and (skipped is None or runs_something(path)):
                    result.append(str(path))
                elif skipped is not None:
                    skipped.append(str(path))
        else:
            result.append(word)
    return result


def looks_like_cntk(path: Path) -> bool:
    """Return whether a command, an action or an include is in a file, neither XML nor with sections like `[name]`."""
    try:
        text = read_input(path).decode("utf-8-sig", "replace")
    except (OSError, ConfigError):
        return True  # the error is reported where it is read
    return bool(_COMMANDS.search(text) or _INCLUDE.search(text)) and not _FOREIGN_TEXT.search(text)


def runs_something(path: Path) -> bool:
    """Return whether a command or an action is in a file or in one that it includes: else it is a part of others."""
    loader = Loader()
    try:
        return bool(_COMMANDS.search(loader.expand(loader.file(str(path))).string))
    except ConfigError:
        return True  # the error is reported where it is read
