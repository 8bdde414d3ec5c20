"""The data of a member as numbers: text, NumPy's .npy, JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from tokenize import TokenError
from typing import Any, cast

import numpy as np

from cntkpy.cntk_config.base.lines import split_lines

PIECE = 1 << 18
"""Characters of a text whose numbers are converted at a time."""
_BETWEEN = re.compile(r"[\s,]")
_DEEP = "its arrays are nested too deeply"
_BAD_HEADER = (
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    TokenError,
    RecursionError,
    MemoryError,
    OverflowError,
)
"""Exceptions of NumPy for the header of an array, which is text in Python's syntax."""


class Malformed(Exception):
    """Error in the data of a member, with advice; the caller adds the place."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(eq=False)
class MemberStream:
    """A stream of numbers out of members.

    endings: of the names of its members; json_field: the name of the value in an object of JSON; listed: the file that
    lists the names of classes; classes: their numbers by name.
    """

    name: str
    endings: tuple[str, ...]
    dim: int
    sparse: bool
    json_field: str | None = None
    defines_mb_size: bool = False
    listed: str | None = None
    classes: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def one_sample(self) -> bool:
        """True if every member is known to be one sample without a look at it: a class in a file of its own."""
        return self.sparse and self.endings == ("cls",)


def samples_of(data: bytes, stream: MemberStream, ending: str, dtype: np.dtype) -> np.ndarray:
    """Return the samples of a member: of the dtype (n, dim) if the stream is dense, else classes int32 (n,).

    Raises:
        Malformed: the data are no such samples.
    """
    if stream.listed is not None:
        return _classes(_named(_text(data), stream.classes), stream)
    kind = ending.rpartition(".")[2]
    if kind == "npy":
        numbers = _npy(data)
    elif kind == "json":
        numbers = _json(data, stream.json_field)
    else:
        numbers = _numbers(_text(data))
    return _classes(numbers, stream) if stream.sparse else _dense(numbers, stream, dtype)


def _dense(numbers: np.ndarray, stream: MemberStream, dtype: np.dtype) -> np.ndarray:
    dim = stream.dim
    if numbers.size == dim:
        rows = numbers.reshape(1, dim)
    elif numbers.ndim > 1 and len(numbers) and numbers.size == len(numbers) * dim:
        rows = numbers.reshape(-1, dim)
    elif numbers.ndim == 1 and dim == 1 and len(numbers):
        rows = numbers.reshape(-1, 1)
    else:
        shape = " x ".join(map(str, numbers.shape)) or "1"
        raise Malformed(f"it has {shape} numbers, but dim is {dim}", "write the number of values of a sample as dim")
    with np.errstate(over="ignore"):
        return rows.astype(dtype)


def _classes(numbers: np.ndarray, stream: MemberStream) -> np.ndarray:
    numbers = numbers.reshape(-1)
    if not len(numbers):
        raise Malformed("it has no class", "a class is a number from 0 on")
    whole = numbers.astype(np.float64)
    bad = ~((whole >= 0) & (whole < stream.dim) & (whole == np.floor(whole)))
    if bad.any():
        value = numbers[np.argmax(bad)]
        raise Malformed(f"{value} is not a class below dim, which is {stream.dim}", "classes are counted from 0")
    return whole.astype(np.int32)


def _named(text: str, classes: Mapping[str, int]) -> np.ndarray:
    """Return the numbers of the classes that the lines name."""
    names = [line.strip() for line in split_lines(text) if line.strip()]
    unknown = next((name for name in names if name not in classes), None)
    if unknown is not None:
        raise Malformed(f"'{unknown[:80]}' is not in labelMappingFile", "a line is a class")
    return np.array([classes[name] for name in names], np.int64)


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed(f"its byte {error.start} is not text (UTF-8)") from None
    return text


def _numbers(text: str) -> np.ndarray:
    """Return numbers with blanks or commas between them, float64[n]."""
    arrays = [_numbers_in(piece) for piece in _pieces(text)]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _pieces(text: str) -> Iterator[str]:
    """Return a text cut between words: the words of all of it would take many times its bytes."""
    begin = 0
    while begin + PIECE < len(text):
        cut = _BETWEEN.search(text, begin + PIECE)
        end = len(text) if cut is None else cut.start()
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _numbers_in(text: str) -> np.ndarray:
    words = text.replace(",", " ").split()
    try:
        return np.array(words, np.float64) if words else np.empty(0)
    except ValueError:
        word = next(word for word in words if not _is_number(word))
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word[:80])
        raise Malformed(f"'{shown}' is not a number", "labelMappingFile lists names of classes") from None


def _is_number(word: str) -> bool:
    try:
        np.array([word], np.float64)
    except ValueError:
        return False
    return True


def _npy(data: bytes) -> np.ndarray:
    """Return an array of numbers. `np.load` would make room for whatever the header claims."""
    file = io.BytesIO(data)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(file)
        shape, fortran, dtype = read[version](file)
    except _BAD_HEADER as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise Malformed(f"it is not an array of NumPy ({reason})", "numpy.save makes one") from None
    if dtype.kind not in "biuf":
        raise Malformed(f"it is an array of {dtype}, not of numbers")
    count = 1
    for size in shape:
        count *= int(size)
    remainder = len(data) - file.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != remainder:
        raise Malformed(f"its header says {count} values of {dtype.itemsize} bytes, but {remainder} bytes follow")
    return np.frombuffer(data, dtype, count, file.tell()).reshape(shape, order="F" if fortran else "C")


def _json(data: bytes, name: str | None) -> np.ndarray:
    """Return a number, an array of numbers, or an array of arrays of them; of an object the value of this name."""
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is not JSON ({_DEEP if isinstance(error, RecursionError) else error})") from None
    if name is not None:
        if not isinstance(value, dict) or name not in value:
            raise Malformed(f"it is not an object with the name '{name}'", "field is a name in the object")
        value = cast("dict[str, Any]", value)[name]
    elif isinstance(value, dict):
        raise Malformed("it is an object", "field = NAME says which value of it is meant")
    try:
        numbers = np.array(value, np.float64)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise Malformed("it has something else than numbers, or rows of different lengths") from None
    if numbers.ndim > 2 or _has_text(value):
        raise Malformed("it is not a number, an array of numbers, or an array of such arrays")
    return numbers


def _has_text(value: Any) -> bool:
    """Return whether there are texts or nulls, which NumPy would convert."""
    if isinstance(value, list):
        return any(map(_has_text, cast("list[Any]", value)))
    return not isinstance(value, int | float)
