"""Lists: files of lines, one for an utterance, a state or a file."""

from __future__ import annotations

from cntk_config.base.files import LIST_LIMIT, read_input
from readers.errors import DataError


def read_lines(path: str, what: str) -> list[tuple[int, str]]:
    """The lines of a list with their numbers (from 1), without blank ones."""
    try:
        content = read_input(path, LIST_LIMIT)
    except OSError as error:
        raise DataError(f"Failed to open {what}: {path}: {error.strerror or error}", path=path) from None
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [(i, line.strip(" \t")) for i, line in enumerate(text.split("\n"), 1) if line.strip(" \t")]
