"""The classic command line, `configFile=a.cntk+b.cntk name=value ...`: from its words to the root."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from cntkpy.cntk_config.base.diagnostics import ConfigError, Span
from cntkpy.cntk_config.base.files import is_file
from cntkpy.cntk_config.base.names import split_names
from cntkpy.cntk_config.base.source import BLANKS, Line, Place, Source, Text, join_lines, read_lines
from cntkpy.cntk_config.includes import Loader
from cntkpy.cntk_config.parameters import ConfigParameters, root_of

CONFIG_FILE = "configfile="
CURRENT_DIRECTORY = "currentdirectory="
ALLOW_REMOTE = "allowremote=true"
"""The word that allows configurations behind URLs; in a file it has no effect."""
STEP = re.compile(r"\w[\w-]*")
PATH = re.compile(rf"(?P<path>{STEP.pattern}(?:[./]{STEP.pattern})+)[ \t]*=")
"""The name of one value: no name of CNTK has a point or a slash. Names of one's own may have a point: `$my.dim$`."""

ELEMENT = re.compile(r"(?P<name>\w[\w./-]*)\[[ \t]*(?P<index>-?[0-9]+)[ \t]*\][ \t]*=")
"""One element of a list, as other programs set it."""


def has_config_file(argv: Sequence[str]) -> bool:
    """Return True when the words are a classic command line: one of them is `configFile=...`."""
    return any(word.lower().startswith(CONFIG_FILE) for word in argv)


def load(argv: Sequence[str]) -> ConfigParameters:
    """Return the configuration that a command line describes.

    The words are used strictly from left to right: files are read, other words become lines, and what comes later
    is stronger. `train/SGD/maxEpochs=3`, or the same with points, sets one value, unless the files have that very name,
    or a variable `$...$` of it; `train/SGD/maxEpochs=default` removes one. `currentDirectory=DIR` changes the directory
    of the process at once. Files may be URLs if one of the words is `allowRemote=true`.
    """
    return load_with(argv, {})


def load_with(argv: Sequence[str], texts: Mapping[str, str]) -> ConfigParameters:
    """Return the configuration that a command line describes, see `load`.

    Args:
        argv: The words.
        texts: Texts of an editor in place of files, by canonical path.
    """
    loader = Loader(any(word.lower() == ALLOW_REMOTE for word in argv), texts)
    layers: list[list[Line]] = []
    named: set[str] = set()
    paths: dict[int, tuple[Source, str]] = {}
    for number, word in enumerate(argv, 1):
        source = Source(f"<argument {number}>", word, argument=number)
        _check(source)
        if word.lower().startswith(CONFIG_FILE):
            layers.append(_config_files(word, source, loader, named))
            continue
        if word.lower().startswith(CURRENT_DIRECTORY):
            _change_directory(word[len(CURRENT_DIRECTORY) :], Span(source, 1, len(CURRENT_DIRECTORY) + 1))
        if (element := ELEMENT.match(word)) is not None:
            raise _element_error(source, element)
        path = PATH.match(word)
        if path is not None:
            paths[len(layers)] = source, path["path"]
            source.is_path = True
            layers.append(_nested(source, path["path"]))
        else:
            layers.append(read_lines(source, tidy=False))
    layers = [loader.expanded(layer) for layer in layers]
    text = join_lines([line for layer in layers for line in layer])
    root = root_of(text, loader)
    names = [layer for layer, (_, path) in paths.items() if _is_name(path, root, text)]
    if names:
        for layer in names:
            source, _ = paths.pop(layer)
            source.is_path = False
            layers[layer] = read_lines(source, tidy=False)
        root = root_of(join_lines([line for layer in layers for line in layer]), loader)
    for source, path in paths.values():
        _check_path(root, source, path)
    return root


def _element_error(source: Source, match: re.Match[str]) -> ConfigError:
    """Return the error of `learningRatesPerMB[1]=0.02`."""
    name = match["name"]
    message = f"'{match[0].rstrip('= ')}' is one element of a list, which cannot be set by itself"
    hint = f"write the whole list: {name}=FIRST:SECOND, where VALUE*COUNT repeats and the last one stays"
    return ConfigError("BadPath", message, Span(source, 1, 1, len(match[0]) - 1), hint)


def _is_name(path: str, root: ConfigParameters, text: Text) -> bool:
    """Return whether the files have this very name, or a variable of it."""
    return root.definition(path) is not None or f"${path.lower()}$" in text.string.lower()


def _nested(source: Source, path: str) -> list[Line]:
    """Return the lines of `train=[SGD=[maxEpochs=3]]` for `train/SGD/maxEpochs=3`; every part keeps its place."""
    *sections, last = STEP.finditer(path)
    lines = [Line(f"{step[0]}=[", Place(source, 1, step.start() + 1)) for step in sections]
    first, *extra = read_lines(source, tidy=False)
    lines.append(Line(first.string[last.start() :], Place(source, 1, last.start() + 1)))
    end = Place(source, 1, len(first.string))
    return [*lines, *extra, Line("]" * len(sections), end)]


def _check_path(root: ConfigParameters, source: Source, path: str) -> None:
    """A path changes a section that is there; it does not put a new one in front of one that is further out."""
    section = root
    for step in list(STEP.finditer(path))[:-1]:
        entry = section.definition(step[0])
        is_new = entry is not None and all(part.span.source is source for part in entry.parts)
        around = section.parent
        if is_new and around is not None and around.exists(step[0]):
            message = f"{section.path} has no section '{step[0]}' of its own; it uses one further out"
            span = Span(source, 1, step.start() + 1, len(step[0]))
            hint = f"name the section where it stands: {path[step.start() :]}=..."
            raise ConfigError("BadPath", message, span, hint)
        if entry is None or not entry.bracket:
            return
        section = section.section(step[0])


def _config_files(word: str, source: Source, loader: Loader, named: set[str]) -> list[Line]:
    lines: list[Line] = []
    column = len(CONFIG_FILE) + 1
    names = word[len(CONFIG_FILE) :]
    whole = "+" in names and is_file(names.strip(BLANKS))  # a file or folder with a plus sign in its name
    for part in [names] if whole else split_names(names):
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
                hint="give every file once; what is later is stronger",
            )
        named.add(name)
        try:
            lines.extend(loader.file(name, span))
        except ConfigError as error:
            if "+" not in names or error.span is not span:
                raise
            raise error.with_note("a plus sign joins files: it is between their names") from None
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
