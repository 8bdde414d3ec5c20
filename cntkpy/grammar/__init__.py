"""The languages of cntkpy, each defined in one readable file of this folder, and the functions that load them.

The files are Lark grammars. They are what the programs run, not an illustration: `load` gives the parser, and `tables`
has parsers of the two languages that every command reads. Lark's parsing tables can be kept in a folder, so that
starting a program does not build them again; Lark itself notices when the grammar, Lark or Python has changed. They are
pickles: nobody else may write there, and they are used only if their checksum is right.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

FOLDER = Path(__file__).parent


def load(name: str, folder: Path | None = None, **options: Any) -> Lark:
    """Return the LALR parser of `cntkpy/grammar/NAME.lark`.

    Args:
        name: of the grammar.
        folder: where its tables are kept; None: nowhere.
        options: go to Lark, for instance `start`, `lexer`, `transformer`.
    """
    from lark import Lark

    options = {"parser": "lalr", **options}
    kept = {key: str(value) for key, value in sorted(options.items()) if key != "transformer"}
    file = _cache_file(folder, name, str(kept))
    whole = file is None or _is_whole(file)
    parser = Lark.open(  # pyright: ignore[reportUnknownMemberType]
        str(FOLDER / f"{name}.lark"), cache=str(file) if file is not None else False, **options
    )
    if file is not None and not whole:
        with suppress(OSError):
            _sum_file(file).write_text(_checksum(file), encoding="utf-8")
    return parser


def _cache_file(folder: Path | None, name: str, options: str) -> Path | None:
    """Return the file that keeps the parsing tables, or None when there is no folder for it."""
    return folder / f"grammar-{name}-{zlib.crc32(options.encode()):08x}" if folder is not None else None


def _sum_file(file: Path) -> Path:
    """Return the file with the checksum of the parsing tables."""
    return file.with_name(f"sum-of-{file.name}")


def _checksum(file: Path) -> str:
    content = file.read_bytes()
    return f"{zlib.crc32(content):08x} {len(content)}"


def _is_whole(file: Path) -> bool:
    """Return True if parsing tables are there with the checksum that belongs to them; remove them otherwise."""
    try:
        if _sum_file(file).read_text(encoding="utf-8") == _checksum(file):
            return True
    except (OSError, ValueError):
        pass
    for part in (_sum_file(file), file):
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return False
