"""Columns of Arrow arrays as samples: what each type of column is to a stream, and its values.

A row of the table is a sequence. Dense streams take numbers (one value), fixed-size lists of numbers (a sample), lists
of numbers (a sequence of single values, or with dim above 1 one sample), lists of such lists (a sequence of samples),
and several columns of numbers side by side. Sparse streams take whole numbers and texts, dictionaries included, as
one-hot samples, maps of index and value as sparse samples, and lists of either as sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.diagnostics import shorten, suggestion
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError

from .library import arrow
from .stream import TableStream

BLOCK = 2048
"""Rows of columns that are laid side by side at a time: they stay in the processor's cache."""


class Place(NamedTuple):
    """Where an array lies, for messages: rows are counted from the start of the row group.

    chosen: int32[n], the numbers of the rows that a filter leaves; None: all of them.
    named: gives the text of a place: of a row group, a row and a column.
    """

    path: str
    group: int
    row: int
    column: str
    chosen: np.ndarray | None
    named: Callable[[int, int, str], str]

    def error(self, row: int, what: str, hint: str | None = None) -> DataError:
        """An error in a row of the array."""
        return DataError(f"{self.text(row)}: {what}.", path=self.path, hint=hint)

    def text(self, row: int = 0) -> str:
        """Where a row of the array is."""
        number = self.row + row if self.chosen is None else int(self.chosen[self.row + row])
        return self.named(self.group, number, self.column)


class Laid(NamedTuple):
    """The samples of some rows: lengths int64[rows], values; counts and indices int32 where they are sparse."""

    lengths: np.ndarray
    values: np.ndarray
    counts: np.ndarray | None = None
    indices: np.ndarray | None = None


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is text, or a dictionary."""
    types = arrow().types
    return types.is_dictionary(kind) or any(
        test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view)
    )


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow is a number."""
    types = arrow().types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def is_list(kind: Any) -> bool:
    """Whether a type of Arrow is a list of any length; maps do not count."""
    types = arrow().types
    return types.is_list(kind) or types.is_large_list(kind)


def text_inside(kind: Any) -> bool:
    """Whether a column has texts, or lists of texts."""
    return is_text(kind.value_type if is_list(kind) else kind)


def varies(kind: Any, stream: TableStream) -> bool:
    """Whether rows of a column can have different numbers of samples."""
    return is_list(kind) and (stream.sparse or stream.dim == 1 or not is_number(kind.value_type))


def mismatch(kind: Any, stream: TableStream) -> tuple[str, str | None] | None:
    """Why a column cannot be this stream, and what to write instead; None if it can.

    Args:
        kind: the type of the column.
        stream: the stream.
    """
    return _sparse_mismatch(kind, stream) if stream.sparse else _dense_mismatch(kind, stream)


def _dense_mismatch(kind: Any, stream: TableStream) -> tuple[str, str | None] | None:
    types, dim = arrow().types, stream.dim
    if len(stream.columns) > 1:
        return None if is_number(kind) else (f"it is {kind}, not a number", "columns side by side are numbers")
    inner = kind.value_type if is_list(kind) else kind
    if text_inside(kind):
        return f"it is {kind}, not numbers", f"write format = sparse: {stream.name} is then a one-hot class"
    if types.is_map(inner):
        return f"it is {kind}, not numbers", "write format = sparse"
    if types.is_fixed_size_list(inner) and is_number(inner.value_type):
        size = inner.list_size
        return None if size == dim else (f"its samples have {size} values, but dim is {dim}", f"write dim = {size}")
    if is_number(inner) or (is_list(inner) and is_number(inner.value_type)):
        if is_number(kind) and dim != 1:
            hint = f"write dim = 1, or columns = (...) with the names of {dim} columns"
            return f"a row has one value, but dim is {dim}", hint
        return None
    return f"it is {kind}, not numbers", "dense streams take numbers, and lists of them"


def _sparse_mismatch(kind: Any, stream: TableStream) -> tuple[str, str | None] | None:
    types = arrow().types
    if len(stream.columns) > 1:
        return "several columns cannot be a sparse stream", "write format = dense"
    inner = kind.value_type if is_list(kind) else kind
    if types.is_map(inner):
        if types.is_integer(inner.key_type) and is_number(inner.item_type):
            return None
        return f"it is {kind}, not a map of an index and a value", "write map<int32, float>"
    if types.is_integer(inner) or is_text(inner):
        return None
    numbers = is_number(inner) or types.is_fixed_size_list(inner) or is_list(inner)
    hint = "write format = dense, or store classes as whole numbers or texts" if numbers else None
    return f"it is {kind}, not classes", hint


def lay(arrays: list[Any], stream: TableStream, places: list[Place], dtype: np.dtype) -> Laid:
    """The samples of a stream out of the arrays of its columns, one array a column, as long as each other.

    Raises:
        DataError: a value is missing, out of range, of another size, or not listed; it names row and column.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if len(arrays) > 1:
            return _side_by_side(arrays, places, dtype)
        array, place = arrays[0], places[0]
        _no_nulls(array, place)
        lengths, values = np.ones(len(array), np.int64), array
        if varies(array.type, stream):
            lengths, values = _unfolded(array)
            _all_have_samples(lengths, place)
        rows = _Rows(place, lengths)
        _no_nulls(values, rows)
        return (
            _sparse(values, lengths, stream, rows, dtype)
            if stream.sparse
            else _dense(values, lengths, stream, rows, dtype)
        )


class _Rows:
    """A place whose rows are those of samples: an error in sample i is one in the row that it is of."""

    def __init__(self, place: Place, lengths: np.ndarray) -> None:
        self._place, self._ends = place, lengths.cumsum()

    def error(self, sample: int, what: str, hint: str | None = None) -> DataError:
        """An error in a sample."""
        return self._place.error(int(np.searchsorted(self._ends, sample, side="right")), what, hint)


def _no_nulls(array: Any, place: Place | _Rows) -> None:
    if array.null_count:
        first = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        hint = "fill missing values in, or leave such rows out"
        if isinstance(place, Place):
            hint += f': filter = "{place.column} is not null"'
        raise place.error(first, "a value is missing (null)", hint)


def _unfolded(array: Any) -> tuple[np.ndarray, Any]:
    """Lengths of lists, and their elements one after the other."""
    return np.diff(array.offsets.to_numpy()).astype(np.int64), array.flatten()


def _all_have_samples(lengths: np.ndarray, place: Place) -> None:
    if not lengths.all():
        hint = "a sequence needs a sample of every stream: leave such rows out"
        raise place.error(int(np.flatnonzero(lengths == 0)[0]), "the list is empty", hint)


def _side_by_side(arrays: list[Any], places: list[Place], dtype: np.dtype) -> Laid:
    columns: list[np.ndarray] = []
    for array, place in zip(arrays, places, strict=True):
        _no_nulls(array, place)
        columns.append(array.to_numpy(zero_copy_only=False))
    count = len(columns[0])
    rows = np.empty((count, len(columns)), dtype)
    for begin in range(0, count, BLOCK):
        for number, column in enumerate(columns):
            rows[begin : begin + BLOCK, number] = column[begin : begin + BLOCK]
    return Laid(np.ones(count, np.int64), rows.reshape(-1))


def _dense(values: Any, lengths: np.ndarray, stream: TableStream, rows: _Rows, dtype: np.dtype) -> Laid:
    """Samples of numbers; values: an array with an element for each sample."""
    if arrow().types.is_fixed_size_list(values.type):
        flat, per = values.flatten(), values.type.list_size
    elif is_list(values.type):
        sizes, flat = _unfolded(values)
        per = stream.dim
        wrong = np.flatnonzero(sizes != per)
        if len(wrong):
            size = int(sizes[wrong[0]])
            raise rows.error(int(wrong[0]), f"a sample has {size} values, but dim is {per}", f"every list has {per}")
    else:
        flat, per = values, 1
    if flat.null_count:
        at = int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0])
        raise rows.error(at // max(per, 1), "a value is missing (null)", "fill missing values in")
    found = _own(flat, dtype)
    if len(found) != len(values) * stream.dim:
        raise rows.error(0, f"there are {len(found)} values in {len(values)} samples of {stream.dim}")
    return Laid(lengths, found)


def _own(numbers: Any, dtype: np.dtype) -> np.ndarray:
    """Numbers of an array as the kernels take them: in memory that may be written to, which nobody does."""
    buffer = numbers.buffers()[1]
    values = numbers.to_numpy(zero_copy_only=False)
    if buffer is not None and buffer.is_mutable and values.dtype == dtype:
        return np.frombuffer(buffer, dtype, len(values), numbers.offset * dtype.itemsize)
    found = values.astype(dtype, copy=False)
    return found if found.flags.writeable and found.flags.c_contiguous else found.copy()


def _sparse(values: Any, lengths: np.ndarray, stream: TableStream, rows: _Rows, dtype: np.dtype) -> Laid:
    """One-hot samples, or maps; values: an array with an element for each sample."""
    if arrow().types.is_map(values.type):
        return _maps(values, lengths, stream, rows, dtype)
    named = is_text(values.type)
    classes = _numbers_of_names(values, stream, rows) if named else values.to_numpy(zero_copy_only=False)
    _in_range(classes, stream, rows, np.arange(len(classes)))
    counts = np.ones(len(classes), np.int32)
    return Laid(lengths, np.ones(len(classes), dtype), counts, classes.astype(np.int32))


def _maps(values: Any, lengths: np.ndarray, stream: TableStream, rows: _Rows, dtype: np.dtype) -> Laid:
    offsets = values.offsets.to_numpy().astype(np.int64)
    counts = np.diff(offsets)
    begin, end = int(offsets[0]), int(offsets[-1])
    sample = np.repeat(np.arange(len(counts)), counts)
    items = values.items.slice(begin, end - begin)
    if items.null_count:
        at = int(np.flatnonzero(items.is_null().to_numpy(zero_copy_only=False))[0])
        raise rows.error(int(sample[at]), "a value is missing (null)", "fill missing values in")
    indices = values.keys.slice(begin, end - begin).to_numpy(zero_copy_only=False)
    _in_range(indices, stream, rows, sample)
    numbers = _own(items, dtype)
    return Laid(lengths, numbers, counts.astype(np.int32), indices.astype(np.int32))


def _in_range(indices: np.ndarray, stream: TableStream, rows: _Rows, sample: np.ndarray) -> None:
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < stream.dim:
        at = int(np.flatnonzero((indices < 0) | (indices >= stream.dim))[0])
        message = f"class {int(indices[at])} is out of range, the dimension is {stream.dim}"
        raise rows.error(int(sample[at]), message, "classes are numbered from 0; is dim right?")


def _numbers_of_names(values: Any, stream: TableStream, rows: _Rows) -> np.ndarray:
    """The classes of texts, int64[n]."""
    coded = _coded(values)
    names = names_in(coded.dictionary)
    numbers = np.array([stream.classes.get(name, -1) if name is not None else -1 for name in names], np.int64)
    indices = coded.indices.to_numpy(zero_copy_only=False)
    found = numbers[indices] if len(numbers) else np.empty(0, np.int64)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        name = names[int(indices[unknown[0]])]
        if name is None:
            raise rows.error(int(unknown[0]), "a value is missing (null)", "fill missing values in")
        raise rows.error(int(unknown[0]), f"the class '{shorten(name)}' is not listed", _like(name, stream.classes))
    return found


def _like(name: str, classes: Mapping[str, int]) -> str:
    return suggestion(name, classes) or f"the classes are {shorten(', '.join(classes), 200)}"


def _coded(values: Any) -> Any:
    """Texts as a dictionary and places in it."""
    if arrow().types.is_dictionary(values.type):
        return values
    return values.cast(arrow().large_string()).dictionary_encode()


def names_in(dictionary: Any) -> list[str | None]:
    """The values of a dictionary as names of classes."""
    return dictionary.cast(arrow().string()).to_pylist()


def used_names(array: Any, place: Place, nulls: bool = False) -> set[str]:
    """The names of classes that occur in a column of texts, or of lists of texts. nulls: values may be missing."""
    if not nulls:
        _no_nulls(array, place)
    values = array.flatten() if is_list(array.type) else array
    coded = _coded(values)
    names = names_in(coded.dictionary)
    indices: np.ndarray = coded.indices.drop_null().to_numpy(zero_copy_only=False)
    used: list[int] = np.unique(indices).tolist()
    return {name for i in used if (name := names[i]) is not None}


def lengths_in(array: Any, stream: TableStream, place: Place) -> np.ndarray:
    """Samples of every row, int64[rows]."""
    _no_nulls(array, place)
    if not varies(array.type, stream):
        return np.ones(len(array), np.int64)
    lengths = np.diff(array.offsets.to_numpy()).astype(np.int64)
    _all_have_samples(lengths, place)
    return lengths


def joined(pieces: list[Laid], stream: TableStream) -> Laid:
    """Several pieces one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    parts = list(zip(*pieces, strict=True)) if stream.sparse else list(zip(*(p[:2] for p in pieces), strict=True))
    return Laid(*(np.concatenate(part) for part in parts))


def sample_starts(laid: Laid, stream: TableStream) -> np.ndarray:
    """Where the values of every sample begin, int64[samples]."""
    if laid.counts is not None:
        return starts_of(laid.counts)[:-1]
    return np.arange(int(laid.lengths.sum()), dtype=np.int64) * stream.dim
