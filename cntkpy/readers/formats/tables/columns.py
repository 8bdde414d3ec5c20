"""Columns of Arrow arrays as samples: what each type of column is to a stream, and its values.

A row of the table is a sequence. Dense streams take numbers (one value), fixed-size lists of numbers (a sample), lists
of numbers (a sequence of single values, or with dim above 1 one sample), lists of such lists (a sequence of samples),
and several columns of numbers side by side. Lists within the lists of a sample are laid out in order. Sparse streams
take whole numbers, booleans and texts, dictionaries included, as one-hot samples, maps of index and value as sparse
samples, and lists of either as sequences. The types are those that `plain` leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
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
    """Location of an array, for messages: rows are counted from the start of the row group.

    chosen: int32[n], the numbers of the rows that a filter leaves; None: all of them.
    named: gives the text of a place: of a row group, a row and a column.
    size: bytes of the file.
    """

    path: str
    group: int
    row: int
    column: str
    chosen: np.ndarray | None
    named: Callable[[int, int, str], str]
    size: int = 0

    def error(self, row: int, problem: str, hint: str | None = None) -> DataError:
        """Return an error in a row of the array."""
        return DataError(f"{self.text(row)}: {problem}.", path=self.path, hint=hint)

    def text(self, row: int = 0) -> str:
        """Return the place of a row of the array, for messages."""
        number = self.row + row if self.chosen is None else int(self.chosen[self.row + row])
        return self.named(self.group, number, self.column)


class Laid(NamedTuple):
    """The samples of some rows: lengths int64[rows], values; counts and indices int32 where they are sparse."""

    lengths: np.ndarray
    values: np.ndarray
    counts: np.ndarray | None = None
    indices: np.ndarray | None = None


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is text, or a dictionary of texts or bytes."""
    types = arrow().types
    if types.is_dictionary(kind):
        return not types.is_nested(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind)


def is_number(kind: Any) -> bool:
    """Return whether a type of Arrow is a number."""
    types = arrow().types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def is_list(kind: Any) -> bool:
    """Return whether a type of Arrow is a list, of fixed size or not; maps do not count."""
    types = arrow().types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


class Form(NamedTuple):
    """A type of Arrow as lists within lists: sizes from the outermost list to the innermost, None where they vary."""

    sizes: tuple[int | None, ...]
    value: Any
    """The type of the values."""


def form_of(kind: Any) -> Form:
    """Return the lists that a type consists of, and the type of what is in them."""
    sizes: list[int | None] = []
    while is_list(kind):
        sizes.append(kind.list_size if arrow().types.is_fixed_size_list(kind) else None)
        kind = kind.value_type
    return Form(tuple(sizes), kind)


def text_inside(kind: Any) -> bool:
    """Return whether a column has texts, or lists of texts."""
    return is_text(form_of(kind).value)


def is_series(kind: Any, stream: TableStream) -> bool:
    """Return whether the outermost lists of a column are sequences of samples.

    Args:
        kind: the type of the column.
        stream: the stream, which the column fits.
    """
    sizes = form_of(kind).sizes
    if not sizes:
        return False
    if stream.sparse:
        return True
    if len(sizes) == 1:
        return sizes[0] is None and stream.dim == 1
    return _product(sizes) != stream.dim


def _product(sizes: Sequence[int | None]) -> int | None:
    """Return the number of values of lists of fixed size; None if a size is not fixed."""
    fixed = [size for size in sizes if size is not None]
    return prod(fixed) if len(fixed) == len(sizes) else None


def mismatch(kind: Any, stream: TableStream) -> tuple[str, str | None] | None:
    """Return why a column cannot be this stream, and what to write instead; None if it can.

    Args:
        kind: the type of the column.
        stream: the stream.
    """
    return _sparse_mismatch(kind, stream) if stream.sparse else _dense_mismatch(kind, stream)


def _dense_mismatch(kind: Any, stream: TableStream) -> tuple[str, str | None] | None:
    types, dim = arrow().types, stream.dim
    if stream.indicators:
        return None
    if stream.missing:
        if types.is_null(kind) or is_number(kind):
            return None
        return f"it is {kind}, not a number", "missing = (...) has numbers for columns of numbers"
    if len(stream.columns) > 1:
        return None if is_number(kind) else (f"it is {kind}, not a number", "columns side by side are numbers")
    sizes, value = form_of(kind)
    if is_text(value):
        if types.is_dictionary(kind) or not sizes:
            hint = f"write format = sparse: {stream.name} is then a one-hot class"
        else:
            hint = f"write format = sparse: {stream.name} is then a sequence of classes"
        return f"it is {kind}, not numbers", hint
    if types.is_map(value):
        return f"it is {kind}, not numbers", "write format = sparse"
    if not is_number(value):
        return f"it is {kind}, not numbers", _how_to_write(value) or "dense streams take numbers, and lists of them"
    if not sizes:
        hint = f"write dim = 1, or columns = (...) with the names of {dim} columns"
        return None if dim == 1 else (f"a row has one value, but dim is {dim}", hint)
    outer, whole, sample = sizes[0], _product(sizes), _product(sizes[1:])
    if dim == whole or sample is None or (len(sizes) == 1 and whole is None) or (len(sizes) > 1 and sample == dim):
        return None
    if len(sizes) == 1 or whole is None:
        size = whole if whole is not None else sample
        return f"its samples have {size} values, but dim is {dim}", f"write dim = {size}"
    return (
        f"a row has {outer} x {sample} values, but dim is {dim}",
        f"write dim = {whole} for one sample, or dim = {sample} for a sequence of {outer} samples",
    )


def _sparse_mismatch(kind: Any, stream: TableStream) -> tuple[str, str | None] | None:
    types = arrow().types
    if len(stream.columns) > 1:
        return "several columns cannot be a sparse stream", "write format = dense"
    sizes, value = form_of(kind)
    if stream.missing:
        return _filled_mismatch(kind, stream)
    if len(sizes) > 1:
        return f"it is {kind}, not classes, nor lists of them", "write format = dense, or store one list in a row"
    if types.is_map(value):
        if types.is_integer(value.key_type) and is_number(value.item_type):
            return None
        return f"it is {kind}, not a map of an index and a value", "write map<int32, float>"
    if types.is_integer(value) or types.is_boolean(value) or is_text(value):
        return None
    hint = "write format = dense, or store classes as whole numbers or texts"
    return f"it is {kind}, not classes", hint if is_number(value) else _how_to_write(value)


def _filled_mismatch(kind: Any, stream: TableStream) -> tuple[str, str | None] | None:
    """Return why missing values of a column cannot become a class; None if they can."""
    types = arrow().types
    if types.is_null(kind) or is_text(kind):
        return None
    if not (types.is_integer(kind) or types.is_boolean(kind)):
        return f"it is {kind}, not classes", "missing = CLASS is for columns of classes"
    if not stream.missing[0].isdecimal():
        return f"it is {kind}, so 'missing' is the number of a class", f"write missing = {max(0, stream.dim - 1)}"
    return None


def _how_to_write(kind: Any) -> str:
    """Return a hint for a type that no stream takes."""
    types = arrow().types
    if types.is_null(kind):
        return "every value is missing: leave the column out, or give it a type when it is written"
    if types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind):
        return "write it as numbers, for instance pandas: .astype('int64'), polars: .cast(pl.Int64), duckdb: epoch(x)"
    if types.is_struct(kind):
        return "a field of it is a column, too: alias = COLUMN.FIELD"
    if any(test(kind) for test in (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)):
        return (
            "write texts, for instance CAST(x AS VARCHAR), or numbers; bytes are only read as pictures, by transforms"
        )
    return "write numbers, texts, lists of either, or map<int32, float>"


def lay(arrays: list[Any], stream: TableStream, places: list[Place], dtype: np.dtype) -> Laid:
    """Return the samples of a stream out of the arrays of its columns, one array a column, as long as each other.

    What happens when a value is too large for its type is a matter of the caller: `np.errstate(over=...)`.

    Raises:
        DataError: a value is missing, out of range, of another size, or not listed; it names row and column.
    """
    with np.errstate(invalid="ignore"):
        if stream.indicators:
            absent = [array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False) for array in arrays]
            return Laid(np.ones(len(arrays[0]), np.int64), np.stack(absent, axis=1).astype(dtype).reshape(-1))
        if stream.missing and not stream.sparse:
            arrays = [_filled(array, float(value)) for array, value in zip(arrays, stream.missing, strict=True)]
        if len(arrays) > 1:
            return _side_by_side(arrays, places, dtype)
        array, place = arrays[0], places[0]
        if stream.missing and stream.sparse:
            array = _with_class(array, stream)
        else:
            _no_nulls(array, place)
        lengths, values = np.ones(len(array), np.int64), array
        if is_series(array.type, stream):
            lengths, values = _unfolded(array)
            _all_have_samples(lengths, place)
        rows = _Rows(place, lengths)
        if not stream.missing:
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

    def error(self, sample: int, problem: str, hint: str | None = None) -> DataError:
        """Return an error in a sample."""
        return self._place.error(int(np.searchsorted(self._ends, sample, side="right")), problem, hint)


def _no_nulls(array: Any, place: Place | _Rows) -> None:
    if array.null_count:
        first = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        hint = "fill missing values in, or leave such rows out"
        if isinstance(place, Place):
            hint += f': filter = "{place.column} is not null"'
        raise place.error(first, "a value is missing (null)", hint)


def _filled(array: Any, value: float) -> Any:
    """Return numbers as float64 with a value in place of missing ones and of NaN."""
    numbers = array.cast(arrow().float64()).to_numpy(zero_copy_only=False)
    return arrow().array(np.where(np.isnan(numbers), value, numbers))


def _with_class(array: Any, stream: TableStream) -> Any:
    """Return classes; whole numbers have the number of a class in place of missing ones, texts keep them."""
    if arrow().types.is_null(array.type):
        array = array.cast(arrow().large_string() if stream.classes else arrow().int64())
    return array if is_text(array.type) else array.cast(arrow().int64()).fill_null(int(stream.missing[0]))


def _unfolded(array: Any) -> tuple[np.ndarray, Any]:
    """Return the lengths of lists, and their elements one after the other."""
    return _sizes(array), array.flatten()


def _sizes(array: Any) -> np.ndarray:
    """Return the lengths of lists, int64[n]."""
    if arrow().types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, np.int64)
    return np.diff(array.offsets.to_numpy()).astype(np.int64)


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
    flat, per = values, 1
    while is_list(flat.type):
        sizes, inner = _unfolded(flat)
        size = int(sizes[0]) if len(sizes) else 0
        wrong = np.flatnonzero(sizes != size) if is_list(inner.type) or per > 1 else np.flatnonzero(sizes != stream.dim)
        if len(wrong):
            index = int(wrong[0])
            reason, hint = (
                f"a sample has {int(sizes[index])} values, but dim is {stream.dim}",
                f"every list has {stream.dim}",
            )
            if is_list(inner.type) or per > 1:
                reason, hint = (
                    f"lists in it have {size} and {int(sizes[index])} elements",
                    "all of them are of one size",
                )
            raise rows.error(index // per, reason, hint)
        flat, per = inner, per * size
        _no_nulls_inside(flat, per, rows)
    result = _own(flat, dtype)
    if len(values) and per != stream.dim:
        raise rows.error(0, f"a sample has {per} values, but dim is {stream.dim}", f"write dim = {per}")
    return Laid(lengths, result)


def _no_nulls_inside(flat: Any, per: int, rows: _Rows) -> None:
    """Refuse missing values in samples; per: elements of a sample."""
    if flat.null_count:
        index = int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0])
        raise rows.error(index // max(per, 1), "a value is missing (null)", "fill missing values in")


def _own(numbers: Any, dtype: np.dtype) -> np.ndarray:
    """Numbers of an array as the kernels take them: in memory that may be written to, which nobody does."""
    buffer = numbers.buffers()[1]
    values = numbers.to_numpy(zero_copy_only=False)
    if buffer is not None and buffer.is_mutable and values.dtype == dtype:
        return np.frombuffer(buffer, dtype, len(values), numbers.offset * dtype.itemsize)
    result = values.astype(dtype, copy=False)
    return result if result.flags.writeable and result.flags.c_contiguous else result.copy()


def _sparse(values: Any, lengths: np.ndarray, stream: TableStream, rows: _Rows, dtype: np.dtype) -> Laid:
    """Return one-hot samples, or maps; values: an array with an element for each sample."""
    if arrow().types.is_map(values.type):
        return _maps(values, lengths, stream, rows, dtype)
    named = is_text(values.type)
    if arrow().types.is_boolean(values.type):
        values = values.cast(arrow().uint8())
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
        index = int(np.flatnonzero(items.is_null().to_numpy(zero_copy_only=False))[0])
        raise rows.error(int(sample[index]), "a value is missing (null)", "fill missing values in")
    indices = values.keys.slice(begin, end - begin).to_numpy(zero_copy_only=False)
    _in_range(indices, stream, rows, sample)
    numbers = _own(items, dtype)
    return Laid(lengths, numbers, counts.astype(np.int32), indices.astype(np.int32))


def _in_range(indices: np.ndarray, stream: TableStream, rows: _Rows, sample: np.ndarray) -> None:
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < stream.dim:
        index = int(np.flatnonzero((indices < 0) | (indices >= stream.dim))[0])
        message = f"class {int(indices[index])} is out of range, the dimension is {stream.dim}"
        raise rows.error(int(sample[index]), message, "classes are numbered from 0; is dim right?")


def _numbers_of_names(values: Any, stream: TableStream, rows: _Rows) -> np.ndarray:
    """Return the classes of texts, int64[n]."""
    coded = _coded(values)
    names = names_in(coded.dictionary)
    numbers = np.array([stream.classes.get(name, -1) if name is not None else -1 for name in names], np.int64)
    absent = stream.classes[stream.missing[0]] if stream.missing else -1
    if stream.unlisted is not None:
        numbers[numbers < 0] = stream.classes[stream.unlisted]
    numbers[[i for i, name in enumerate(names) if name is None]] = absent
    if coded.indices.null_count:
        coded_indices = coded.indices.cast(arrow().int64()).fill_null(len(numbers))
        numbers = np.append(numbers, absent)
    else:
        coded_indices = coded.indices
    indices = coded_indices.to_numpy(zero_copy_only=False)
    number = numbers[indices] if len(numbers) else np.empty(0, np.int64)
    unknown = np.flatnonzero(number < 0)
    if len(unknown):
        name = names[int(indices[unknown[0]])]
        if name is None:
            raise rows.error(int(unknown[0]), "a value is missing (null)", "fill missing values in")
        raise rows.error(int(unknown[0]), f"the class '{shorten(name)}' is not listed", _like(name, stream.classes))
    return number


def _like(name: str, classes: Mapping[str, int]) -> str:
    return suggestion(name, classes) or f"the classes are {shorten(', '.join(classes), 200)}"


def _coded(values: Any) -> Any:
    """Texts as a dictionary and places in it."""
    if arrow().types.is_dictionary(values.type):
        return values
    return values.cast(arrow().large_string()).dictionary_encode()


def names_in(dictionary: Any) -> list[str | None]:
    """Return the values of a dictionary as names of classes."""
    return dictionary.to_pylist() if is_text(dictionary.type) else dictionary.cast(arrow().string()).to_pylist()


def used_names(array: Any, place: Place, nulls: bool = False) -> set[str]:
    """Return the names of classes that occur in a column of texts, or of lists of texts. nulls: values may be
    missing.
    """
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
    if not is_series(array.type, stream):
        return np.ones(len(array), np.int64)
    lengths = _sizes(array)
    _all_have_samples(lengths, place)
    return lengths


def first_infinite(laid: Laid, exact: Laid, stream: TableStream) -> tuple[int, int]:
    """Return the row and the column, counted from 0, of the first value that is infinite in one type, but not in the
    exact one.
    """
    ends = np.cumsum(laid.counts) if laid.counts is not None else None
    index = int(np.argmax(np.isinf(laid.values) & np.isfinite(exact.values)))
    sample = index // stream.dim if ends is None else int(np.searchsorted(ends, index, side="right"))
    row = int(np.searchsorted(laid.lengths.cumsum(), sample, side="right"))
    return row, index % stream.dim if len(stream.columns) > 1 else 0


def joined(pieces: list[Laid], stream: TableStream) -> Laid:
    """Several pieces one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    parts = list(zip(*pieces, strict=True)) if stream.sparse else list(zip(*(p[:2] for p in pieces), strict=True))
    return Laid(*(np.concatenate(part) for part in parts))


def sample_starts(laid: Laid, stream: TableStream) -> np.ndarray:
    """Return the index of the first value of every sample, int64[samples]."""
    if laid.counts is not None:
        return starts_of(laid.counts)[:-1]
    return np.arange(int(laid.lengths.sum()), dtype=np.int64) * stream.dim
