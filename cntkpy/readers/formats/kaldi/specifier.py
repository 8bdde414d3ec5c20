"""Specifiers: how Kaldi names tables (`ark:...`, `scp:...`), the files in them, and ranges of rows and columns.

Kaldi hands a name that begins or ends with `|` to a shell. Here no command is ever executed: the error shows the
command that makes the file once. Only `gunzip -c F |` and its like are understood, as a compressed file F.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.readers.errors import DataError

_KINDS = re.compile(r"\s*(ark|scp)((?:,\w+)*):(.*)", re.DOTALL)
_READING = {"o", "no", "s", "ns", "cs", "ncs", "p", "np", "bg", "b", "t"}
_WRITING = {"b", "t", "f", "nf", "p"}
_WRITTEN = re.compile(r"\s*(ark,scp|scp,ark|ark|scp)((?:,\w+)*):(.*)", re.DOTALL)
_OFFSET = re.compile(r"(.*):(\d{1,18})", re.DOTALL)
_RANGE = re.compile(r"(.*)\[([^\[\]]*)\]\s*", re.DOTALL)
_BOUNDS = re.compile(r"(?:(\d{1,9}):(\d{1,9})|:?)")
_UNPACKING = [
    *([word] for word in ("zcat", "bzcat", "xzcat", "lzcat", "zstdcat")),
    *([word, "-c"] for word in ("gunzip", "unpigz", "bunzip2", "unxz", "unlzma", "unzstd")),
    *([word, *options] for word in ("gzip", "pigz", "bgzip", "bzip2", "lbzip2", "pbzip2", "xz", "zstd", "pzstd")
      for options in (["-dc"], ["-cd"], ["-d", "-c"])),
]  # fmt: skip
"""Commands that write what a file unpacks to; the content of the file decides how it is unpacked."""
_PACKED = ".gz", ".bz2", ".xz", ".zst"
_TO_STDOUT = re.compile(r"(.*\s)([\"']?)((?:ark|scp)(?:,\w+)*):-\2\s*", re.DOTALL)
_TO_POSTERIORS = re.compile(
    r"(.*\S)\s*\|\s*ali-to-post\s+[\"']?ark(?:,\w+)*:-[\"']?\s+[\"']?ark(?:,\w+)*:-[\"']?\s*", re.S
)

Bounds = tuple[int, int] | None
"""First and last row or column, both included; None: all."""


@dataclass(frozen=True)
class Place:
    """Location of an object.

    path: a file; offset: the byte where the object begins; packed: the file is compressed, see `codecs`.
    rows, columns: the parts that are used.
    """

    path: str
    offset: int = 0
    packed: bool = False
    rows: Bounds = None
    columns: Bounds = None


@dataclass(frozen=True)
class ReadSpecifier:
    """A table to be read: an archive, or a script file with a line `key place` for every key.

    permissive: entries that cannot be read count as absent.
    """

    text: str
    script: bool
    place: Place
    permissive: bool = False


@dataclass(frozen=True)
class WriteSpecifier:
    """A table to be written: an archive (`-`: standard output), a script file next to it, or a script file that names
    a file for each key."""

    text: str
    archive: str | None
    script: str | None
    as_text: bool = False


def command_for_file(command: str, name: str = "data") -> tuple[str, str]:
    """Return the command that writes once what a pipe would give, and the specifier that then is in its place.

    >>> command_for_file("copy-feats scp:a.scp ark:- ")
    ('copy-feats scp:a.scp ark:data.ark', 'ark:data.ark')
    >>> command_for_file("ali-to-pdf m ark:a.ark ark:- | ali-to-post ark:- ark:-", "labels")
    ('ali-to-pdf m ark:a.ark ark:labels.ark', 'ark:labels.ark')
    """
    command = command.strip()
    if match := _TO_POSTERIORS.fullmatch(command):  # alignments are labels as they are
        command = match[1]
    if match := _TO_STDOUT.fullmatch(command):
        return f"{match[1]}{match[2]}ark:{name}.ark{match[2]}", f"ark:{name}.ark"
    return f"{command} > {name}.ark", f"ark:{name}.ark"


def _refuse_pipe(text: str, where: str, name: str) -> DataError:
    command = text.strip()
    if command.startswith("|"):
        hint = "write to a file, ark:FILE, and give it to the command yourself"
    else:
        once, instead = command_for_file(command.removesuffix("|"), name)
        hint = f"run it once yourself: {once}  Then write {instead} in its place"
    return DataError(f"{where}'{command}' is a shell command; commands in specifiers are not executed.", hint=hint)


def parse_place(text: str, where: str = "", *, ranges: bool = False, name: str = "data") -> Place:
    """Return an extended filename: a path, `path:offset`, a command that unpacks a file.

    Args:
        text: the filename.
        where: what an error begins with, such as "feats.scp, line 3: ".
        ranges: whether rows and columns in brackets may follow, as in script files.
        name: what the file is called in the command that an error shows.

    Raises:
        DataError: a pipe, standard input, an empty name, a malformed range.
    """
    rows = columns = None
    text = text.strip()
    if ranges and text.endswith("]") and (match := _RANGE.fullmatch(text)):
        text = match[1].rstrip()
        rows, columns = _bounds(match[2], where)
    if text.endswith("|"):
        packed = _unpacked(text[:-1])
        if packed is None:
            raise _refuse_pipe(text, where, name)
        return Place(packed, 0, True, rows, columns)
    if text.startswith("|"):
        raise _refuse_pipe(text, where, name)
    if text in ("", "-"):
        raise DataError(
            f"{where}standard input cannot be read as a table, because tables are read more than once.",
            hint="write it to a file and name that",
        )
    if match := _OFFSET.fullmatch(text):
        return Place(match[1], int(match[2]), False, rows, columns)
    return Place(text, 0, text.endswith(_PACKED), rows, columns)


def _unpacked(command: str) -> str | None:
    """Return the only file that a command unpacks to standard output; None for any other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    plain = not any(c in words[-1] for c in "|<>;&$`*?[]{}()~\n") and not words[-1].startswith("-") if words else False
    return words[-1] if plain and words[:-1] in _UNPACKING else None


def _bounds(text: str, where: str) -> tuple[Bounds, Bounds]:
    parts = [part.strip() for part in text.split(",")]
    matches = [_BOUNDS.fullmatch(part) for part in parts]
    if len(parts) > 2 or None in matches:
        raise DataError(
            f"{where}'[{text}]' is not a range.", hint="write [first:last] or [first:last,first:last], rows first"
        )
    both: list[Bounds] = [(int(m[1]), int(m[2])) if m and m[1] else None for m in matches]
    backwards = next((b for b in both if b and b[0] > b[1]), None)
    if backwards:
        raise DataError(f"{where}the range {backwards[0]}:{backwards[1]} ends before it begins.")
    return both[0], both[1] if len(both) > 1 else None


def parse_read_specifier(text: str, where: str = "", name: str = "data") -> ReadSpecifier:
    """Return an rspecifier, such as `ark:feats.ark` or `scp,p:feats.scp`.

    Options that only promise an order of keys are accepted; `p` is permissive.

    Raises:
        DataError: it is malformed, has an unknown option, or is a pipe.
    """
    match = _KINDS.fullmatch(text)
    if match is None:
        raise DataError(f"{where}'{shorten(text)}' is not a specifier of a table.", hint="write ark:FILE or scp:FILE")
    options = [word for word in match[2].split(",") if word]
    unknown = next((word for word in options if word not in _READING), None)
    if unknown is not None:
        raise DataError(
            f"{where}unknown option '{unknown}' in the specifier '{text.strip()}'.",
            hint=f"options of reading are {', '.join(sorted(_READING))}",
        )
    place = parse_place(match[3], where, name=name)
    return ReadSpecifier(text.strip(), match[1] == "scp", place, "p" in options)


def parse_write_specifier(text: str) -> WriteSpecifier:
    """Return a wspecifier: `ark:F`, `ark,t:F`, `scp:F`, `ark,scp:A,S`.

    Raises:
        DataError: it is malformed, has an unknown option, or writes to a command.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise DataError(
            f"'{text.strip()}' is not a specifier of a table to write.", hint="write ark:FILE or ark,scp:FILE,SCRIPT"
        )
    options = [word for word in match[2].split(",") if word]
    unknown = next((word for word in options if word not in _WRITING), None)
    if unknown is not None:
        raise DataError(
            f"unknown option '{unknown}' in the specifier '{text.strip()}'.",
            hint=f"options of writing are {', '.join(sorted(_WRITING))}",
        )
    names = [match[3].strip()]
    if "," in match[1]:
        names = [word.strip() for word in match[3].split(",")]
        if len(names) != 2:
            raise DataError(
                f"'{text.strip()}' does not name an archive and a script file.", hint="write ark,scp:FILE,SCRIPT"
            )
    for name in names:
        if name.startswith("|") or name.endswith("|"):
            raise _refuse_pipe(name, "", "data")
        if not name:
            raise DataError(
                f"The specifier '{text.strip()}' names no file.", hint="write ark:FILE, or ark:- for stdout"
            )
    as_text = "t" in options
    if match[1] == "ark":
        return WriteSpecifier(text.strip(), names[0], None, as_text)
    if match[1] == "scp":
        return WriteSpecifier(text.strip(), None, names[0], as_text)
    archive, script = names if match[1] == "ark,scp" else reversed(names)
    if archive == "-":
        raise DataError(
            f"'{text.strip()}' has a script file for standard output, which has no offsets.", hint="name an archive"
        )
    return WriteSpecifier(text.strip(), archive, script, as_text)
