"""A TOML text with the place of every key and value, which `tomllib` does not tell."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError, Span
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.source import Source

MAX_BYTES = 1 << 20
"""Bytes of a project file."""
Path_ = tuple[str | int, ...]
"""Keys and indices that lead to a value."""

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_SPACES = re.compile(r"[ \t]*+")
_KEY = re.compile(r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")
_STRING = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*+'{3,5}|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+\'''',
    re.DOTALL,
)
_SCALAR = re.compile(r"\d{4}-\d\d-\d\d[ ]\d\d:[^\s,\]}#]++|[^\s,\]}#]++")
RUN_HINT = "every run begins with [[run]], in two brackets"
"""Advice for a `run` table outside of the array of tables."""
_TWICE = re.compile(
    r"Cannot (?:declare|redefine namespace|mutate immutable namespace) \((.*)\)(?: twice)?$|Cannot overwrite a value$"
)
_QUOTED = re.compile(r"'([^']*)'")
_HEADER = re.compile(r"\s*\[{1,2}\s*(?:tool\s*\.\s*cntkpy\s*\.\s*)?(\w+)\s*\]")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class TomlText:
    """The values of a TOML file and their places.

    Args:
        path: The file.
        name: The name of the file in messages.
        text: The text of the file; None reads it.

    Raises:
        ConfigError: The file cannot be read, or is not TOML.
    """

    def __init__(self, path: Path, name: str, text: str | None = None) -> None:
        self.source = Source(name, "" if text is None else text, path=path)
        if text is None:
            self.source.text = text = self._read(path)
        import tomllib

        try:
            self.data: dict[str, Any] = tomllib.loads(text.replace("\r\n", "\n"))
        except tomllib.TOMLDecodeError as error:
            raise self._error(str(error)) from None
        except RecursionError:
            raise ConfigError("BadProject", "arrays or tables are nested too deeply", Span(self.source, 1, 1)) from None
        self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._keys: dict[Path_, tuple[int, int]] = {}
        self._values: dict[Path_, tuple[int, int]] = {}
        _Scanner(text, self._keys, self._values).document()

    def key(self, *path: str | int) -> Span:
        """Return the place of a key; of a table in an array, the place of its header."""
        return self._span(self._keys.get(path))

    def value(self, *path: str | int) -> Span:
        """Return the place of a value; that of its key if the value is a table with a header."""
        return self._span(self._values.get(path) or self._keys.get(path))

    def _span(self, stretch: tuple[int, int] | None) -> Span:
        start, end = stretch or (0, 1)
        line = bisect_right(self._starts, start)
        column = start - self._starts[line - 1] + 1
        end = min(end, self._starts[line] - 1) if line < len(self._starts) else end
        return Span(self.source, line, column, max(1, end - start))

    def _read(self, path: Path) -> str:
        try:
            return read_input(path, MAX_BYTES).decode("utf-8-sig")
        except OSError as error:
            raise ConfigError("BadProject", f"cannot read '{self.source.name}': {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise ConfigError("BadProject", f"{self.source.name} is not UTF-8", hint="save the file as UTF-8") from None

    def _error(self, message: str) -> ConfigError:
        match = _PLACE.search(message)
        lines = self.source.lines
        line, column = (int(match[1]), int(match[2])) if match and match[1] else (len(lines), len(lines[-1]) + 1)
        problem = message[: match.start()] if match else message
        span = Span(self.source, line, column)
        twice = _TWICE.match(problem)
        names = _QUOTED.findall(twice[1]) if twice is not None and twice[1] else []
        header = _HEADER.match(lines[line - 1])
        if twice is not None and (names[-1:] == ["run"] or (header is not None and header[1] == "run")):
            return ConfigError("BadProject", "[run] is one table, and here is another run", span, RUN_HINT)
        if twice is not None and names:
            table = ".".join(names)
            hint = f"write all keys of [{table}] below its first header"
            return ConfigError("BadProject", f"the table [{table}] is given twice", span, hint)
        if twice is not None:
            hint = "remove one of the two; a table with a header is given once"
            return ConfigError("BadProject", "this key has a value already", span, hint)
        return ConfigError("BadProject", f"this is not TOML: {problem}", span)


class _Scanner:
    """Finds keys and values in a text that `tomllib` accepts."""

    def __init__(self, text: str, keys: dict[Path_, tuple[int, int]], values: dict[Path_, tuple[int, int]]) -> None:
        self._text, self._keys, self._values = text, keys, values
        self._offset = 0
        self._tables: dict[Path_, int] = {}
        """Number of tables in each array of tables."""

    def document(self) -> None:
        """Scan the whole text."""
        prefix: Path_ = ()
        self._skip(_BLANK)
        while self._offset < len(self._text):
            if self._text[self._offset] == "[":
                prefix = self._header()
            else:
                self._pair(prefix)
            self._skip(_BLANK)

    def _header(self) -> Path_:
        start = self._offset
        is_array = self._text.startswith("[[", start)
        self._offset += 1 + is_array
        *names, last = self._dotted()
        prefix: Path_ = ()
        for name in names:
            prefix = self._inside((*prefix, name[0]))
        path: Path_ = (*prefix, last[0])
        if is_array:
            number = self._tables[path] = self._tables.get(path, -1) + 1
            self._keys.setdefault(path, last[1])
            path = (*path, number)
        else:
            path = self._inside(path)
        self._keys[path] = last[1]
        self._offset = self._text.index("]", self._offset) + 1 + is_array
        return path

    def _inside(self, path: Path_) -> Path_:
        """Return the path, with the number of the last table if it is an array of tables."""
        return (*path, self._tables[path]) if path in self._tables else path

    def _pair(self, prefix: Path_) -> None:
        path = prefix
        for name, place in self._dotted():
            path = (*path, name)
            self._keys.setdefault(path, place)
        self._skip(_SPACES)
        self._offset += 1  # the equals sign
        self._skip(_SPACES)
        self._value(path)

    def _dotted(self) -> list[tuple[str, tuple[int, int]]]:
        names: list[tuple[str, tuple[int, int]]] = []
        while True:
            self._skip(_SPACES)
            match = _KEY.match(self._text, self._offset)
            if match is None:  # a text that tomllib accepts has a key here
                raise AssertionError(self._offset)
            import tomllib

            name = match[0] if match[0][0] not in "\"'" else next(iter(tomllib.loads(f"{match[0]}=0")))
            names.append((name, match.span()))
            self._offset = match.end()
            self._skip(_SPACES)
            if not self._text.startswith(".", self._offset):
                return names
            self._offset += 1

    def _value(self, path: Path_) -> None:
        start, sign = self._offset, self._text[self._offset]
        if sign == "[":
            self._array(path)
        elif sign == "{":
            self._inline_table(path)
        else:
            match = (_STRING if sign in "\"'" else _SCALAR).match(self._text, start)
            self._offset = match.end() if match is not None else start + 1
        self._values[path] = start, self._offset

    def _array(self, path: Path_) -> None:
        self._offset += 1
        index = 0
        while self._is_before("]"):
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: Path_) -> None:
        self._offset += 1
        while self._is_before("}"):
            self._pair(path)

    def _is_before(self, closer: str) -> bool:
        """Move over blanks and a comma; return False and move on after the closer."""
        self._skip(_BLANK)
        if self._text.startswith(",", self._offset):
            self._offset += 1
            self._skip(_BLANK)
        if self._text.startswith(closer, self._offset):
            self._offset += 1
            return False
        return True

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._offset)
        self._offset = match.end() if match is not None else self._offset
