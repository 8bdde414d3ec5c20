"""Script files (.scp): a line per utterance, `name=archive[first,last]`, `name=path` or `path`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cntkpy.readers.errors import DataError
from cntkpy.readers.utterances.lists import read_lines

_RANGE = re.compile(r"\[([^\[\]]*)\]$")
_BOUNDS = re.compile(r"(\d{1,15}),(\d{1,15})")
UNKNOWN = -1
"""Last frame of an utterance that is the whole file, which was not opened yet."""


@dataclass(eq=False)
class Script:
    """Utterances in order. Each: key, logical name, number of its file in `files`, first and last frame (int64[U])."""

    keys: list[str]
    names: list[str]
    files: list[str]
    file: np.ndarray
    first: np.ndarray
    last: np.ndarray
    lines: np.ndarray
    paths: list[str]
    source: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def place(self, utterance: int) -> str:
        """Return the place in the list of the utterance, for messages."""
        return f"{self.paths[self.source[utterance]]}, line {self.lines[utterance]}"

    def select(self, which: np.ndarray) -> Script:
        """Only these utterances."""
        some = which.tolist()
        return Script(
            [self.keys[i] for i in some],
            [self.names[i] for i in some],
            self.files,
            self.file[which],
            self.first[which],
            self.last[which],
            self.lines[which],
            self.paths,
            self.source[which],
        )


def key_of(name: str) -> str:
    """Return the name of an utterance without its extension.

    >>> key_of("a.b/c.d.mfc"), key_of("a.b/c")
    ('a.b/c.d', 'a.b/c')
    """
    dot = name.rfind(".")
    return name[:dot] if dot > max(name.rfind("/"), name.rfind("\\"), name.rfind(":")) else name


def expand_dots(line: str, script: str) -> str:
    """Return the first `...` of a line replaced by the folder of the script file."""
    return line.replace("...", os.path.dirname(script) or ".", 1)  # noqa: PTH120  keeps the spelling of the path


def read_script(paths: Sequence[str], prefix: str = "") -> Script:
    """Read script files one after the other. prefix: folder of all files; without it `...` is the script's folder."""
    if prefix:
        prefix = prefix.replace("\\", "/").rstrip("/") + "/"
    keys: list[str] = []
    names: list[str] = []
    files: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for number, path in enumerate(paths):
        for span, line in read_lines(path, "input file"):
            name, physical, first, last = _parse(line if prefix else expand_dots(line, path), path, span)
            physical = prefix + physical
            keys.append(key_of(name))
            names.append(name)
            rows.append((files.setdefault(physical, len(files)), first, last, span, number))
    if not rows:
        raise DataError(f"The script file {', '.join(paths)} lists no utterances.", path=paths[0])
    file, first, last, lines, source = np.array(rows, np.int64).T.copy()
    return Script(keys, names, list(files), file, first, last, lines, list(paths), source)


def _parse(line: str, path: str, number: int) -> tuple[str, str, int, int]:
    """Logical name, file, first and last frame of a line."""
    logical, equals, physical = line.partition("=")
    if not equals:
        logical, physical = line, line
    first, last = 0, UNKNOWN
    if "[" in physical or physical.endswith("]"):
        match = _RANGE.search(physical)
        bounds = _BOUNDS.fullmatch(match[1].replace(" ", "")) if match else None
        if match is None or bounds is None:
            raise _malformed(path, number, f"malformed path '{physical}'")
        first, last = int(bounds[1]), int(bounds[2])
        if first > last:
            raise _malformed(path, number, f"the first frame of [{first},{last}] is after the last one")
        physical = physical[: match.start()]
        logical = logical if equals else physical
    if not physical or not logical:
        raise _malformed(path, number, f"the name of the {'file' if logical else 'utterance'} is missing in '{line}'")
    return logical, physical, first, last


def _malformed(path: str, position: int, message: str) -> DataError:
    return DataError(
        f"{path}, line {position}: {message}",
        path=path,
        line=position,
        hint="a line is name=archive[first,last] with frames counted from 0, or the path of a file",
    )
