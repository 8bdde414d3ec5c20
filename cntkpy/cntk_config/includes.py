"""Reading files, and putting the text of included files in the place of their include lines."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span
from cntkpy.cntk_config.base.files import exists, is_file, read_input
from cntkpy.cntk_config.base.names import from_here, is_url, public_name, split_names
from cntkpy.cntk_config.base.source import BLANKS, COMMENT, Line, Place, Source, Text, decode, join_lines, read_lines
from cntkpy.cntk_config.base.spelling import nearest_file
from cntkpy.grammar.tables import terminal

NAMES_COMPARED = 1000
"""Files of a folder among which the one that is meant is looked for."""
INCLUDE = terminal("config", "INCLUDE")
INLINE = terminal("config", "INLINE_INCLUDE")


class Loader:
    """Reads the inputs of one configuration: remembers what was read, and the warnings."""

    def __init__(self, allow_remote: bool = False, texts: Mapping[str, str] | None = None) -> None:
        self.texts = texts or {}
        """Texts of an editor in place of files, by canonical path."""
        self.allow_remote = allow_remote
        """True if configurations may be read from URLs."""
        self.read: set[str] = set()
        """The canonical paths, or URLs, of the files read so far."""
        self.remote = 0
        """Number of URLs among them."""
        self.last = "global"
        """The base name of the last file: the name of the root."""
        self.warnings: list[Diagnostic] = []

    def file(self, name: str, span: Span | None = None, *, base: Path | None = None) -> list[Line]:
        """Return the lines of a file, which `span` asks for. `base` is a second folder to look in."""
        if is_url(name):
            return self._remote(name, span)
        path, folders = Path(name), [Path(), *([base] if base is not None else [])]
        if base is not None and not path.is_absolute() and not exists(path) and exists(base / path):
            path = base / path
            name = from_here(path)
        try:
            text = self.texts.get(os.path.realpath(path)) if self.texts else None
            data = read_input(path, pipe=True) if text is None else text.encode("utf-8", "surrogatepass")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a usable name"
            hint = None if Path(name).is_absolute() else f"the current directory is {Path.cwd()}"
            hint = "the standard input is called /dev/stdin" if name == "-" else _nearest_file(name, folders) or hint
            raise ConfigError("FileNotFound", f"cannot read '{name}': {reason}", span, hint) from None
        self.read.add(os.path.realpath(path))
        self.last = path.name
        return read_lines(decode(data, name, path=Path(os.path.abspath(path)), included_at=span))  # noqa: PTH100

    def _remote(self, url: str, span: Span | None) -> list[Line]:
        """Return the lines of a configuration behind a URL."""
        shown = public_name(url)
        self.remote += 1
        if self.remote > MOST_REMOTE:
            message = f"a configuration has more than {MOST_REMOTE} parts that are not on this machine"
            hint = "join them in fewer files; an include without end names another one each time"
            raise ConfigError("RemoteConfiguration", message, span, hint)
        if not self.allow_remote:
            message = f"the configuration {shown} is not on this machine, and says what is run and written"
            raise ConfigError("RemoteConfiguration", message, span, "add --allow-remote if you trust it")
        try:
            data = read_input(url)
        except OSError as error:
            raise ConfigError("FileNotFound", f"cannot read '{shown}': {error.strerror or error}", span) from None
        self.read.add(url)
        self.last = shown.rpartition("/")[2]
        source = decode(data, shown, included_at=span)
        source.url = url
        return read_lines(source)

    def expand(self, lines: Iterable[Line]) -> Text:
        """Return the text of the lines, with the files that include lines name in their place, depth first, each
        once.
        """
        return join_lines(self.expanded(lines))

    def expanded(self, lines: Iterable[Line]) -> list[Line]:
        """Return the lines of that text."""
        result: list[Line] = []
        pending = list(lines)[::-1]
        while pending:
            line = pending.pop()
            if "=" not in line.string or "include" not in line.string.lower():
                result.append(line)
                continue
            if (inline := _inline(line)) is not None:
                pending.extend(reversed(inline))
                continue
            match = INCLUDE.match(line.string)
            if not match:
                result.append(line)
                continue
            included: list[Line] = []
            for offset, name in _file_names(match.group("files"), match.start("files"), line.place):
                included.extend(self._include(name, _span(line.place, offset, len(name))))
            pending.extend(reversed(included))
        return result

    def _include(self, name: str, span: Span) -> list[Line]:
        source = span.source
        if isinstance(source, Source) and source.url is not None:
            name = _from_remote(name, source.url, span)
        if is_url(name) and name in self.read:
            message = f"'{public_name(name)}' has been read before; it is not read again"
            self.warnings.append(Diagnostic("RepeatedInclude", message, span, severity="warning"))
            return []
        base = source.path.parent if isinstance(source, Source) and source.path else None
        for folder in [Path(), base] if base else [Path()]:
            if os.path.realpath(folder / name.replace("\0", "")) in self.read and exists(folder / name):
                circle = _circle(folder / name, name, span)
                reason = f"includes itself: {circle}" if circle else "has been read before"
                message = f"'{name}' {reason}; it is not read again"
                self.warnings.append(Diagnostic("RepeatedInclude", message, span, severity="warning"))
                return []
            if exists(folder / name):
                break
        return self.file(name, span, base=base)


def _nearest_file(name: str, folders: Sequence[Path]) -> str | None:
    """Return advice to read the file whose path is most alike, or one of the same name in a folder less."""
    path = Path(name)
    for folder in folders:
        present, steps = folder, list[str]()
        for part in path.parts:
            if not exists(present / part):
                meant = _nearest_entry(present, part)
                if meant is None:
                    break
                part = meant
            present /= part
            steps.append(part)
        else:
            if is_file(present) and steps != list(path.parts):
                return f"did you mean '{Path(*steps)}'?"
    shorter = (Path(*path.parts[start:]) for start in range(1, len(path.parts)))
    meant = next((end for end in shorter if any(is_file(folder / end) for folder in folders)), None)
    return f"did you mean '{meant}'?" if meant is not None else None


def _nearest_entry(folder: Path, name: str) -> str | None:
    try:
        names = [entry.name for entry in itertools.islice(folder.iterdir(), NAMES_COMPARED)]
    except (OSError, ValueError):
        return None
    return nearest_file(name, names)


def _from_remote(name: str, including: str, span: Span) -> str:
    """Return the URL of a file that a remote configuration includes, from the folder of that one if it is relative.

    Raises:
        ConfigError: it may be a file of this machine.
    """
    scheme = including.partition("://")[0].lower()
    if not is_url(name):
        return f"{re.split('[?#]', including, maxsplit=1)[0].rpartition('/')[0]}/{name}"  # of the same user
    if name.partition("://")[0].lower() not in (scheme, *NETWORK) or "::" in name:
        message = f"{public_name(including)} includes '{public_name(name)}', which may be a file of this machine"
        hint = f"a remote configuration includes remote files only: {', '.join(NETWORK)}"
        raise ConfigError("RemoteConfiguration", message, span, hint)
    return name


MOST_REMOTE = 100
"""Files behind URLs of one configuration."""
NETWORK = ("http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "hf", "ftp", "sftp")
"""Schemes of URLs that are never files of this machine; a chain of schemes, `zip://x::file:///y`, may be one."""
MOST_NAMED = 6
"""Files of a circle of includes that a warning names."""


def _circle(path: Path, name: str, span: Span) -> str:
    """`a includes b includes a`, if a file is included from within itself, else an empty text.

    Args:
        path: the file.
        name: as the include names it.
        span: where it is named.
    """
    file, place, between = os.path.realpath(path), span, list[str]()
    while place is not None and isinstance(place.source, Source):
        between.append(place.source.name)
        if place.source.path is not None and os.path.realpath(place.source.path) == file:
            names = [*reversed(between), name]
            if len(names) > MOST_NAMED:
                names[2:-2] = ["..."]
            return " includes ".join(names)
        place = place.source.included_at
    return ""


def read_file(path: str | os.PathLike[str]) -> Text:
    """Return the text of a file without comments and empty lines; include lines are ordinary lines here."""
    return join_lines(Loader().file(os.fspath(path)))


def plain_text(text: str, name: str) -> Text:
    """Return a text given by a program, treated as the content of a file `name`."""
    return join_lines(read_lines(Source(name, text)))


def _inline(line: Line) -> list[Line] | None:
    """Return the line cut before and after an include inside it, as in `[q=1;include=C.txt]`; None if it has none."""
    string = line.string
    comment = COMMENT.search(string)
    for match in INLINE.finditer(string, 0, comment.start() if comment else len(string)):
        start, end = match.span("include")
        prefix, after = string[:start], string[end:]
        if prefix.count('"') % 2:
            continue  # in a quoted text
        if not prefix.strip(BLANKS) and not after.strip(BLANKS + ";,"):
            continue  # a line of its own
        pieces = ((prefix, 0), (string[start:end], start), (after, end))
        place = line.place
        return [
            Line(piece, Place(place.source, place.line, place.column + offset))
            for piece, offset in pieces
            if piece.strip(BLANKS)
        ]
    return None


def _file_names(text: str, offset: int, place: Place) -> list[tuple[int, str]]:
    """Return the names in `a+b` with their offsets in the line."""
    comment = COMMENT.search(text)
    text = (text[: comment.start()] if comment else text).rstrip(BLANKS + ";,")
    if "$" in text:
        raise ConfigError(
            "VariableInInclude",
            "an include line cannot contain variables",
            _span(place, offset + len(text) - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))),
            hint="write the path itself, or give the file on the command line with configFile=",
        )
    names: list[tuple[int, str]] = []
    for part in split_names(text):
        name = part.strip(BLANKS)
        start = offset + len(part) - len(part.lstrip(BLANKS))
        offset += len(part) + 1
        if len(name) >= 2 and name[0] == name[-1] == '"':
            name, start = name[1:-1].strip(BLANKS), start + 1
        elif name.startswith('"') or name.endswith('"'):
            stripped = name.strip('"')
            name, start = stripped, start + name.find(stripped)
        if name:
            names.append((start, name))
    if not names:
        raise ConfigError("MissingValue", "the name of the file is missing", _span(place, offset - 1, 1))
    return names


def _span(place: Place, offset: int, length: int) -> Span:
    return Span(place.source, place.line, place.column + offset, max(1, length))
