"""The languages of cntkpy, each defined in one readable file of this folder, and the functions that load them.

The files are Lark grammars. They are what the programs run, not an illustration: `load` gives the parser, `terminal`
the pattern of one terminal. Parsing tables are kept in the user's cache folder, so that starting a program does not
build them again; Lark itself notices when the grammar, Lark or Python has changed.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

FOLDER = Path(__file__).parent


def load(name: str, **options: Any) -> Lark:
    """The LALR parser of `grammar/NAME.lark`. `options` go to Lark, for instance `start`, `lexer`, `transformer`."""
    from lark import Lark

    options = {"parser": "lalr", **options}
    kept = {key: str(value) for key, value in sorted(options.items()) if key != "transformer"}
    return Lark.open(str(FOLDER / f"{name}.lark"), cache=_cache_file(name, str(kept)), **options)


def terminal(name: str, term: str) -> re.Pattern[str]:
    """The pattern of a terminal that the rule `lexical` of `grammar/NAME.lark` names, for scanning outside a parser."""
    return re.compile(_lexical(name).get_terminal(term).pattern.to_regexp(), re.MULTILINE)


@cache
def _lexical(name: str) -> Lark:
    return load(name, start="lexical", lexer="basic")


def _cache_file(name: str, options: str) -> str | bool:
    """The file that keeps the parsing tables, or False when there is no folder for it."""
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "cntkpy"
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return False
    except (OSError, RuntimeError):
        return False
    return str(folder / f"grammar-{name}-{zlib.crc32(options.encode()):08x}")
