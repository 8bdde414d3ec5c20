"""The text of a program: a value of a configuration or a file, with included files in the place of `include "name"`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import ConfigError, Span
from cntkpy.cntk_config.base.files import TEXT_LIMIT, is_file, read_input
from cntkpy.cntk_config.base.names import from_here
from cntkpy.cntk_config.base.source import Fragment, Source, Text, TextBuilder, decode
from cntkpy.cntk_config.parameters import ConfigValue
from cntkpy.grammar.tables import terminal

MAX_INCLUDES = 1000
"""Number of files of a program, at most."""

_COMMENT = terminal("brainscript", "COMMENT").pattern
_STRING = terminal("brainscript", "STRING").pattern
_NAME = terminal("brainscript", "NAME").pattern
_INCLUDE = terminal("brainscript", "INCLUDE").pattern
WORDS = re.compile(f"(?P<comment>{_COMMENT})|(?P<string>{_STRING})|(?P<name>{_NAME})")
BLANKS = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*")
QUOTED = re.compile(_STRING)


Place = Fragment
"""Place of a value: a stretch of the text of a program."""


class ProgramError(ConfigError):
    """A mistake in the text of a program.

    Attributes:
        place: The place in the text.
    """

    _process_only = frozenset({"place"})
    place: Place | None = None


def error(
    kind: str, message: str, place: Place | None, hint: str | None = None, notes: Sequence[str] = ()
) -> ProgramError:
    """Return a located error, to be raised."""
    if place is None:
        return ProgramError(kind, message, None, hint, notes)
    problem = ProgramError(kind, message, place.span, hint, (*place.notes, *notes))
    problem.place = place
    return problem


def text_of_value(value: ConfigValue, folders: Sequence[Path] = ()) -> Text:
    """Return the program that is a value of a configuration.

    Args:
        value: the value, with its brackets.
        folders: where included files are looked for, besides the current directory.

    Raises:
        ConfigError: the value was put together of several, or an included file cannot be read.
    """
    if len(value.fragments) > 1:
        raise ConfigError(
            "RepeatedNetwork",
            "a network written in BrainScript cannot be added to another: the key is given twice",
            value.fragments[-1].span,
            hint="give the key once; what should change from outside is written as $name$ in the network",
            notes=[f"it is given first at {value.fragments[0].span}"],
        )
    builder = TextBuilder()
    for fragment in value.fragments:
        builder.copy(fragment.text, fragment.start, fragment.end)
    if not value.fragments:
        return text_of_string(value, value.path or "<BrainScript>", folders)
    return with_includes(builder.text(), folders)


def text_of_string(string: str, name: str, folders: Sequence[Path] = ()) -> Text:
    """Return the program in a string."""
    return with_includes(_lines(Source(name, string)), folders)


def text_of_file(path: Path, name: str, folders: Sequence[Path] = (), asked: Span | None = None) -> Text:
    """Return the program in a file.

    Args:
        path: the file.
        name: what to call it in messages.
        folders: where included files are looked for, besides the current directory and the file's own.
        asked: the place that names the file.

    Raises:
        ConfigError: the file cannot be read.
    """
    return with_includes(_read(path, name, asked), folders)


def joined_text(paths: Iterable[Path], name: str) -> Text:
    """Join the texts of files of cntkpy, which include no others.

    Args:
        paths: The files.
        name: Name of their folder in messages.
    """
    builder = TextBuilder()
    for path in paths:
        builder.add_lines(_source(path, f"{name}/{path.parent.name}/{path.name}", None))
    return builder.text()


def with_includes(text: Text, folders: Sequence[Path]) -> Text:
    """`text` with the included files in the place of `include "name"`, again and again."""
    if "include" not in text.string:
        return text
    builder = TextBuilder()
    pending: list[tuple[Text, int, tuple[Path, ...]]] = [(text, 0, ())]
    count = size = 0
    while pending:
        current, start, chain = pending.pop()
        include = _next_include(current, start)
        if include is None:
            builder.copy(current, start, len(current.string))
            continue
        begin, end, name = include
        builder.copy(current, start, begin)
        pending.append((current, end, chain))
        place = Place(current, begin, end)
        count += 1
        if count > MAX_INCLUDES:
            raise error("TooManyIncludes", f"more than {MAX_INCLUDES} files are included", place)
        path = _find(name, place, folders)
        resolved = path.resolve()
        if resolved in chain:
            raise error("RepeatedInclude", f"'{name}' includes itself", place)
        included = _read(path, name if path == Path(name) else from_here(path), place.span)
        size += len(included.string)
        if size > TEXT_LIMIT:
            message = f"the included files have more than {TEXT_LIMIT >> 20} MiB together"
            raise error("TooManyIncludes", message, place, "a file that is included again counts again")
        pending.append((included, 0, (*chain, resolved)))
    return builder.text()


def _next_include(text: Text, start: int) -> tuple[int, int, str] | None:
    """(start, end, file name) of the next include after `start`."""
    for word in WORDS.finditer(text.string, start):
        if word["name"] != _INCLUDE:
            continue
        blanks = BLANKS.match(text.string, word.end())
        quoted = QUOTED.match(text.string, blanks.end() if blanks else word.end())
        if quoted is None:
            place = Place(text, word.start(), word.end())
            raise error("BadSyntax", "include needs the name of a file in quotes", place, 'write include "file.bs"')
        return word.start(), quoted.end(), quoted[0][1:-1]
    return None


def _find(name: str, place: Place, folders: Sequence[Path]) -> Path:
    """Return the file of that name: as written, or from the own folder of the including file or one of `folders`.

    Each of them may have the path as written, as CNTK's manual says, or the file itself, as CNTK does.
    """
    path = Path(name.replace("\0", "\ufffd"))
    source = place.span.source
    nearby = [source.path.parent] if isinstance(source, Source) and source.path else []
    candidates = [path, *(folder / candidate for folder in (*nearby, *folders) for candidate in (path, path.name))]
    for candidate in candidates:
        if is_file(candidate):
            return candidate
    searched = ", ".join(dict.fromkeys(str(folder) for folder in (Path.cwd(), *nearby, *folders)))
    raise error("FileNotFound", f"the included file '{name}' does not exist", place, f"searched in {searched}")


def _read(path: Path, name: str, asked: Span | None) -> Text:
    return _lines(_source(path, name, asked))


def _source(path: Path, name: str, asked: Span | None) -> Source:
    try:
        data = read_input(path)
    except OSError as problem:
        raise ConfigError("FileNotFound", f"cannot read '{name}': {problem.strerror or problem}", asked) from None
    return decode(data, name, path=path.resolve(), included_at=asked)


def _lines(source: Source) -> Text:
    builder = TextBuilder()
    builder.add_lines(source)
    return builder.text()
