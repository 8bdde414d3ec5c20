"""Words for what the parse kernel found, with line, column, byte offset and sequence id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import events as k
from .stream_format import StreamFormat

_WORD_ENDS = bytes(range(33)) + b"|"
_BLANKS = b" \t"
_ROW = 4096
"""Bytes of a row that are searched for names."""
_NUMBER = re.compile(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?")
_TORN_BEFORE, _TORN = re.compile(rb"[ \t]+:"), re.compile(rb"[ \t]+[-+0-9]")
"""Blanks before the colon of a sparse value, and blanks before its value."""
TORN_HINT = "no blank stands between an index, its colon and its value: 0:1"
_SPARSE = re.compile(rf"[0-9]+:{_NUMBER.pattern}")


def table_hint(path: str | Path, line: bytes) -> str:
    """Return advice for a file whose first line is that of a table with separators; empty if it is not."""
    if b"|" in line or not any(separator in line for separator in (b",", b";", b"\t")):
        return ""
    return f"looks like a table: cntkpy convert {Path(path).name} NAME.ctf --labels COLUMN makes text format"


def show_byte(byte: int) -> str:
    """Return a byte as a reader of the message would write it."""
    if byte == 10:
        return "end of line"
    if 32 < byte < 127:
        return f"'{chr(byte)}'"
    return {32: "a blank", 9: "a tab", 13: "a carriage return"}.get(byte, f"byte 0x{byte:02x}")


def _word(buffer: np.ndarray, begin: int) -> str:
    """Return the word of the buffer that begins at `begin`."""
    text = buffer[begin : begin + 40].tobytes()
    end = next((i for i, c in enumerate(text) if c in _WORD_ENDS), len(text))
    return text[:end].decode("utf-8", "replace") + ("…" if end == 40 else "")


def _word_around(buffer: np.ndarray, position: int) -> str:
    """Return the word that holds `position`."""
    return _word(buffer, _behind(buffer, position, _WORD_ENDS, 40))


def _behind(buffer: np.ndarray, position: int, stops: bytes, most: int) -> int:
    """Return the place after the last of some bytes before `position`, at most this many bytes before it."""
    begin = position
    while begin > max(position - most, 0) and int(buffer[begin - 1]) not in stops:
        begin -= 1
    return begin


def describe(
    buffer: np.ndarray, kind: int, position: int, stream: int, formats: Sequence[StreamFormat], begin: int = 0
) -> str:
    """Describe the fault at buffer[position], in one sentence without the place. begin: where its sequence begins."""
    byte = show_byte(int(buffer[position])) if position < len(buffer) else "end of file"
    f = formats[stream] if stream >= 0 else None
    name, dim = (f.alias, f.dim) if f else ("", 0)
    if kind == k.PREFIX:
        return _prefix(buffer, position)
    if kind == k.VALUE:
        if not (word := _word_around(buffer, position)):
            return f"The file ends where a value of input '{name}' is expected"
        return f"A value of input '{name}' is not a number: '{word}' ({byte} is not expected)"
    if kind == k.INFINITE:
        sample = buffer[:position].tobytes().rpartition(b"|")[2]
        return f"A value of input '{sample.split()[0].decode()}' is too large for its type, and read as infinite"
    if kind == k.UNKNOWN:
        return f"Did not find a valid input name: '{_word(buffer, position)}' is none of {_configured(formats)}"
    if kind == k.EMPTY_ROW:
        row = 1 + int(np.count_nonzero(buffer[begin:position] == 10))
        message = f"Empty input row: no sample of any configured input. Could not read a row (# {row}) of the sequence"
        names = _other_names(buffer, position, formats)
        return message + (f"; it has {', '.join(names)}, the inputs are {_configured(formats)}" if names else "")
    if kind == k.INDEX:
        return f"A sparse value of input '{name}' is not index:value: '{_word_around(buffer, position)}'"
    if kind == k.RANGE:
        index = _word(buffer, position).split(":")[0]
        return f"Index {index} of sparse input '{name}' is out of range, its dimension is {dim}"
    return {
        k.JUNK: f"Unexpected character({byte}) in place of a name prefix ('|')",
        k.TOO_MANY: f"A sample of input '{name}' has more values than its dimension {dim}",
        k.MORE: "The sequence contains more samples than expected (more than it has rows)",
        k.LESS: "Number of samples in the sequence is less than expected (than it has rows)",
        k.SHORT: f"A sample of input '{name}' has fewer values than its dimension {dim}; the rest is zero",
        k.REPEATED: "The row has more samples than there are inputs",
    }[kind]


def _configured(formats: Sequence[StreamFormat]) -> str:
    return ", ".join(f"'{stream.alias}'" for stream in formats)


def _other_names(buffer: np.ndarray, begin: int, formats: Sequence[StreamFormat]) -> list[str]:
    """Up to three names of the row that begins there, if none of them is that of an input."""
    ends = np.flatnonzero(buffer[begin : begin + _ROW] == 10)
    row = buffer[begin : begin + (int(ends[0]) if len(ends) else _ROW)].tobytes().decode("utf-8", "replace")
    names = [part.split()[0] for part in row.split("|")[1:] if part[:1].strip().strip("#")]
    if any(stream.alias in names for stream in formats):
        return []
    return [f"'{name[:40]}'" for name in dict.fromkeys(names)][:3]


def names_in(text: bytes, most: int = 20) -> list[str]:
    """Return the names of the samples in the whole lines of a text, in their order, as many as a message may have."""
    parts = (part for line in text.split(b"\n")[:-1] or [text] for part in line.split(b"|")[1:])
    names = {part.split()[0]: None for part in parts if part[:1].strip().strip(b"#")}
    return [name[:40].decode("utf-8", "replace") for name in list(names)[:most]]


def other_format(
    buffer: np.ndarray, kind: int, position: int, stream: int, formats: Sequence[StreamFormat]
) -> str | None:
    """Return advice where a stream is written in another format or size than its section says, or a blank stands
    where none may; None elsewhere."""
    if kind == k.PREFIX and position + 1 < len(buffer) and int(buffer[position + 1]) in _BLANKS:
        return "the name of an input directly follows '|', without a blank"
    if kind == k.JUNK and chr(int(buffer[position])).isdigit():
        preceding = buffer[_behind(buffer, position, b"\n", 80) : position].tobytes()
        if preceding and not preceding.strip(_BLANKS):
            return "a sequence id is at the very start of its line, without a blank in front of it"
    if kind == k.TOO_MANY and not formats[stream].sparse:
        count = _values(buffer, position)
        name = formats[stream].name
        return (
            f"if every sample has {count} values, write dim = {count} in the section of '{name}'; else mend the file, "
            "or raise maxErrors to skip malformed samples"
        )
    word = _word_around(buffer, position) if kind in (k.VALUE, k.INDEX) else ""
    if kind == k.VALUE and _SPARSE.fullmatch(word):
        return (
            f"the file has sparse values, index:value: write format = sparse in the section of '{formats[stream].name}'"
        )
    head = buffer[_behind(buffer, position, b"|\n", _ROW) : position].tobytes() if word else b""
    tail = buffer[position : position + _ROW].tobytes()
    if word and formats[stream].sparse and (_TORN_BEFORE.match(tail) or (head[-1:] == b":" and _TORN.match(tail))):
        return TORN_HINT
    if kind == k.INDEX and _NUMBER.fullmatch(word) and b":" not in head:
        return f"the file has dense values: write format = dense in the section of '{formats[stream].name}'"
    return None


def _values(buffer: np.ndarray, position: int) -> int:
    """Count the values of the sample around `position`."""
    begin, end = _behind(buffer, position, b"|\n", position), position
    while end < len(buffer) and int(buffer[end]) not in b"|\n":
        end += 1
    return len(buffer[begin:end].tobytes().split()) - 1


def _prefix(buffer: np.ndarray, position: int) -> str:
    after = int(buffer[position + 1])
    if 32 < after < 127 and after != 124:
        return f"The file ends directly after the name of an input, '{_word(buffer, position + 1)}'"
    return f"Input name prefix ('|') is followed by an invalid character ({show_byte(after)})"
