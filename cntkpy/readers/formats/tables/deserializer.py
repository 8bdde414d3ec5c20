"""Columns of tables as streams: a row is a sequence, a row group a chunk."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import shorten, suggestion
from cntkpy.readers.common.bounds import most_decoded
from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.chunk_cache import ChunkCache, bytes_of
from cntkpy.readers.common.corpus import Corpus, check_distinct, padded_keys, repeated
from cntkpy.readers.common.labels import in_order, load_labels
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.contracts import DEFAULT_MEMORY
from cntkpy.readers.errors import DataError
from cntkpy.readers.streams import StreamInformation

from .columns import (
    Laid,
    Place,
    first_infinite,
    form_of,
    is_series,
    is_text,
    joined,
    lay,
    lengths_in,
    mismatch,
    sample_starts,
    text_inside,
    used_names,
)
from .files import TableFile, guarded, too_large
from .filters import Filter
from .groups import RowGroup, changed, row_groups
from .library import arrow
from .pictures import check_pictures
from .plain import expanded_bytes
from .stream import TableStream

log = logging.getLogger("cntkpy.readers")
ENTRY_BYTES, SAMPLE_BYTES = 8, 8
"""Bytes of a sparse value and its index, and of the place of a sample."""
_MOST_CHUNKS = 1 << 20


@dataclass(frozen=True)
class RowKeys:
    """Keys of rows.

    Attributes:
        column: The column that has them; None: none has.
        corpus: The keys of the reader around.
        primary: Whether they come first, so that they may decide that keys are texts.
    """

    column: str | None = None
    corpus: Corpus | None = None
    primary: bool = False


NO_KEYS = RowKeys()


class TableDeserializer:
    """Tables of the same columns, one after the other.

    Where a row can have several samples, where keys are read and where classes have names that no file lists, these
    columns are read once, row group by row group, when the object is made. Loading is safe from several threads.

    Args:
        tables: the files.
        streams: what is read of them.
        dtype: of the values.
        keys: the keys of the rows; without a column of them they are numbered from 0 through all files.
        threads: whether several threads decode the columns of a row group.
        condition: what rows have to fulfil to be read.
        pictures: the columns of pictures, which are read apart; their bytes count as those of chunks.

    Raises:
        DataError: a file has no such column, or one of another type; a row that is looked at is malformed.
    """

    whole_chunks = True

    def __init__(
        self,
        tables: Sequence[TableFile],
        streams: Sequence[TableStream],
        dtype: np.dtype | type = np.float32,
        keys: RowKeys = NO_KEYS,
        *,
        threads: bool = False,
        condition: Filter | None = None,
        pictures: Sequence[str] = (),
    ) -> None:
        key, corpus = keys.column, keys.corpus
        self._tables, self._streams, self.dtype = list(tables), list(streams), np.dtype(dtype)
        self._threads = threads
        self._columns = list(dict.fromkeys(column for s in streams for column in s.columns))
        self.defines_mb_size = any(s.defines_mb_size for s in streams)
        self.streams = [StreamInformation(s.name, (s.dim,), s.sparse, self.dtype) for s in streams]
        for table in self._tables:
            check_schema(table, streams, key, condition)
            for column in pictures:
                check_pictures(table, column)
            check_same_kinds(table, self._tables[0], [*self._columns, *([key] if key is not None else [])])
        self.groups = row_groups(self._tables, condition)
        """The row groups, which are the chunks."""
        self._filtered = condition is not None
        named = [s for s in streams if _has_names(self._tables[0].field(s.columns[0]).type, s)]
        for stream in named:
            _number_listed(stream)
        self._find_names([s for s in named if s.listed is None])
        self.class_names: dict[str, Callable[[], dict[int, str]]] = {s.name: partial(_by_number, s) for s in named}
        first = starts_of([group.rows for group in self.groups])
        lengths, samples = self._lengths()
        numbers = self._keys(key, corpus or Corpus(), keys.primary) if key is not None else None
        if numbers is None and self._filtered:
            numbers = np.concatenate([group.numbers() for group in self.groups]).astype(np.uint64)
        named_keys = corpus if corpus is not None and not corpus.numeric else None
        if named_keys is not None and key is None:
            raise DataError(
                f"The rows of {self.files[0]} have no keys, but here keys are texts.",
                path=self.files[0],
                hint="keyColumn = NAME says which column has them",
            )
        self.table = SequenceTable(first, lengths, numbers, named_keys)
        width = sum(ENTRY_BYTES if s.sparse else s.dim * self.dtype.itemsize for s in streams)
        self.chunk_bytes = samples * (width + SAMPLE_BYTES * len(streams))
        for group, nbytes in zip(self.groups, self.chunk_bytes.tolist(), strict=True):
            if nbytes > most_decoded(group.table.size):
                where = f"row group {group.number} of {group.rows:,} rows"
                raise too_large(group.table.path, where, nbytes, group.table.size)
        if pictures:
            self.chunk_bytes += np.array([group.nbytes for group in self.groups])
        self._infinite: set[str] = set()
        """Streams with a value that was too large for their type, which is said once."""
        self._cache = ChunkCache(self.load_chunk, first, _MOST_CHUNKS, DEFAULT_MEMORY)

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        return [table.path for table in self._tables]

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all rows of a row group."""
        group = self.groups[chunk]
        pieces = group.read(self._columns, self._threads) if self._columns else {}
        streams: dict[str, StreamData] = {}
        for stream in self._streams:
            laid = self._lay(group, stream, [pieces[column] for column in stream.columns])
            if len(laid.lengths) != group.rows:
                raise changed(group.table.path, group.number, len(laid.lengths), group.rows)
            starts, bounds = sample_starts(laid, stream), starts_of(laid.lengths)
            streams[stream.name] = StreamData(stream.dim, laid.values, starts, bounds, laid.counts, laid.indices)
        result = Chunk(streams)
        result.nbytes = bytes_of(result)
        return result

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return these rows, in the given order; the row groups that they are in are decoded whole, and the last ones
        kept.
        """
        return self._cache.sequences(sequences)

    def _lay(self, group: RowGroup, stream: TableStream, columns: list[list[Any]]) -> Laid:
        """Return the samples of a stream; columns: the arrays of each of its columns."""
        cuts = sorted({0, *(end for arrays in columns for end in np.cumsum([len(array) for array in arrays]).tolist())})
        if any(len(arrays) != len(cuts) - 1 for arrays in columns):
            columns = [_cut_at(arrays, cuts) for arrays in columns]
        laid: list[Laid] = []
        too_large: list[str] = []
        for number, row in enumerate(cuts[:-1]):
            places = [group.place(row, column) for column in stream.columns]
            pieces = [arrays[number] for arrays in columns]
            with _placed(places[0]), np.errstate(over="call", call=lambda kind, _: too_large.append(kind)):
                laid.append(lay(pieces, stream, places, self.dtype))
            if too_large and stream.name not in self._infinite:
                self._infinite.add(stream.name)
                exact = lay(pieces, stream, places, np.dtype(np.float64))
                index, column = first_infinite(laid[-1], exact, stream)
                text = places[column].text(index)
                log.warning("%s: a value is too large for its type, and read as infinite.", text)
        return joined(laid, stream)

    def _find_names(self, streams: Sequence[TableStream]) -> None:
        """Number the names of classes that occur; there are at most as many as the dimension."""
        for s in streams:
            names = names_of(self._tables, s.columns[0], s.dim, nulls=self._filtered or bool(s.missing))
            names += [name for name in s.missing if name not in names]
            s.classes.update({name: number for number, name in enumerate(names)})

    def _lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Nominal lengths of all rows, int32 as in SequenceTable, and the samples of each row group, int64."""
        defining = [s for s in self._streams if s.defines_mb_size] or self._streams
        varying = [s for s in defining if len(s.columns) == 1 and self._varies(s)]
        counts = np.array([group.rows for group in self.groups], np.int64)
        if not varying:
            return np.ones(1, np.int32), counts
        arrays: list[np.ndarray] = []
        for chunk, group in enumerate(self.groups):
            pieces = group.read(list(dict.fromkeys(s.columns[0] for s in varying)), self._threads)
            longest = np.ones(group.rows, np.int64)
            for s in varying:
                lengths: list[np.ndarray] = []
                for array, place in group.placed(pieces[s.columns[0]], s.columns[0]):
                    with _placed(place):
                        lengths.append(lengths_in(array, s, place))
                np.maximum(longest, np.concatenate(lengths), out=longest)
            counts[chunk] = longest.sum()
            arrays.append(longest.astype(np.int32))
        every = np.concatenate(arrays)
        return (every[:1] if (every == every[0]).all() else every), counts

    def _varies(self, stream: TableStream) -> bool:
        return is_series(self._tables[0].field(stream.columns[0]).type, stream)

    def _keys(self, column: str, corpus: Corpus, primary: bool) -> np.ndarray:
        """Return the keys of all rows, uint64.

        Where texts are no numbers, or two are the same one, keys are texts from now on, if the table is primary.
        """
        try:
            return self._keys_of(column, corpus)
        except DataError as error:
            if not (primary and corpus.numeric and is_text(self._tables[0].field(column).type)):
                raise
            log.warning("%s, so keys are taken as texts.", error.message.rstrip("."))
        corpus.numeric = False
        return self._keys_of(column, corpus)

    def _keys_of(self, column: str, corpus: Corpus) -> np.ndarray:
        arrays: list[np.ndarray] = []
        padded: Counter[str] = Counter()
        for group in self.groups:
            for array, place in group.placed(group.read([column])[column], column):
                with _placed(place):
                    arrays.append(_keys_in(array, place, corpus, padded))
        keys = np.concatenate(arrays)
        if (same := repeated(keys)) is not None:
            text = "%s, column '%s': the key %s comes twice; both rows are read."
            log.warning(text, self.files[0], column, corpus.name(int(keys[same[0]])), extra=ABOUT_DATA)
        try:
            check_distinct(padded, keys)
        except DataError as error:
            raise DataError(
                f"{self.files[0]}, column '{column}': {error.message}.", path=self.files[0], hint=error.hint
            ) from None
        return keys


def names_of(tables: Sequence[TableFile], column: str, most: int, nulls: bool = False) -> list[str]:
    """Return the names of classes that occur in a column, in the order of their numbers.

    Args:
        tables: the files. All rows count, so that every filter leaves the same numbers.
        column: of texts.
        most: classes that there may be.
        nulls: values may be missing.

    Raises:
        DataError: there are more than `most`, or a value is missing.
    """
    names: set[str] = set()
    for table in tables:
        for number in range(table.groups):
            group = RowGroup(table, number, 0, 0, None, 0)
            for array, place in group.placed(table.read(number, [column])[column], column):
                with _placed(place):
                    names |= used_names(array, place, nulls)
            if len(names) > most:
                raise DataError(
                    f"{table.path}: column '{column}' has more than {most} classes, which is dim.",
                    path=table.path,
                    hint="write the number of its classes as dim",
                )
    return in_order(names)


def check_schema(
    table: TableFile, streams: Sequence[TableStream], key: str | None = None, condition: Filter | None = None
) -> None:
    """Refuse a table whose columns cannot be these streams.

    Raises:
        DataError: it names the file and the column, and says what to write.
    """
    for stream in streams:
        for column in stream.columns:
            kind = table.field(column).type
            with guarded(f"{table.path}, column '{column}'", table.path):
                wrong = mismatch(kind, stream)
            if wrong is not None:
                reason, hint = wrong
                extra_name = table.detail(column)
                message = f"{table.path}: column '{column}' cannot be the stream '{stream.name}': {reason}{extra_name}."
                raise DataError(message, path=table.path, hint=hint)
    if key is not None:
        kind = table.field(key).type
        if not (arrow().types.is_integer(kind) or is_text(kind)):
            message = f"{table.path}: column '{key}' cannot have keys: it is {kind}."
            raise DataError(message, path=table.path, hint="keys are whole numbers or texts")
    if condition is not None:
        condition.check(table)


def check_same_kinds(table: TableFile, first: TableFile, columns: Sequence[str]) -> None:
    """Refuse a file whose columns are of another kind than those of the first file: texts are not numbers, nor lists.

    Raises:
        DataError: it names both files, the column and its types.
    """
    for column in columns:
        kind, expected = table.field(column).type, first.field(column).type
        if _kind(kind) != _kind(expected):
            raise DataError(
                f"{table.path}: column '{column}' is {kind}, but {expected} in {first.path}.",
                path=table.path,
                hint="write the column with one type in all files, or read the files by sections of their own",
            )


def _kind(kind: Any) -> tuple[int, bool, bool]:
    """Return the depth of lists of a type, and whether their values are texts, or maps."""
    sizes, value = form_of(kind)
    return len(sizes), is_text(value), arrow().types.is_map(value)


def _placed(place: Place) -> AbstractContextManager[None]:
    """Turn errors of pyarrow into errors that name a column."""
    return guarded(f"{place.path}, row group {place.group}, column '{place.column}'", place.path)


def _cut_at(arrays: Sequence[Any], cuts: Sequence[int]) -> list[Any]:
    """Arrays one after the other, cut at other rows than they are."""
    whole = arrow().chunked_array(arrays)
    return [whole.slice(a, b - a).combine_chunks() for a, b in pairwise(cuts)]


def _has_names(kind: Any, stream: TableStream) -> bool:
    """Return whether classes have names: those of texts, or those of a list where every value is missing."""
    if stream.indicators or (not stream.sparse and stream.missing):
        return False
    return text_inside(kind) or (arrow().types.is_null(kind) and stream.listed is not None)


def _number_listed(stream: TableStream) -> None:
    """Give the classes of a stream the numbers of the lines of their file."""
    if stream.listed is None:
        return
    names = load_labels(stream.listed).mapping()
    if len(names) > stream.dim:
        raise DataError(
            f"{stream.listed} lists {len(names)} classes, but the dimension of {stream.name} is {stream.dim}.",
            path=stream.listed,
            hint=f"write dim = {len(names)}",
        )
    stream.classes.update({name: number for number, name in names.items()})
    for name in (*stream.missing, *((stream.unlisted,) if stream.unlisted is not None else ())):
        if name not in stream.classes:
            raise DataError(
                f"{stream.listed} does not list the class '{shorten(name)}' of the stream {stream.name}.",
                path=stream.listed,
                hint=suggestion(name, stream.classes)
                or f"add a line '{shorten(name)}', and write dim = {len(names) + 1}",
            )


def _by_number(stream: TableStream) -> dict[int, str]:
    return {number: name for name, number in stream.classes.items()}


def _keys_in(array: Any, place: Place, corpus: Corpus, padded: Counter[str]) -> np.ndarray:
    """Return the keys in an array, uint64[n]. Texts of digits that begin with a zero are counted in `padded`."""
    if not arrow().types.is_integer(array.type):
        if (nbytes := expanded_bytes(array)) > most_decoded(place.size):
            raise too_large(place.path, f"column '{place.column}'", nbytes, place.size)
        array = array.cast(arrow().large_string())
    if array.null_count:
        index = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        raise place.error(index, "the key is missing (null)")
    if corpus.numeric and arrow().types.is_integer(array.type):
        numbers = array.to_numpy(zero_copy_only=False)
        if len(numbers) and int(numbers.min()) < 0:
            index = int(np.flatnonzero(numbers < 0)[0])
            raise place.error(index, f"{int(numbers[index])} is not a key", "keys are texts, or numbers from 0 on")
        return numbers.astype(np.uint64)
    names = array.cast(arrow().large_string()).to_pylist()
    if corpus.numeric:
        padded.update(padded_keys(names))
    try:
        return corpus.numbers(names)
    except DataError as error:
        raise place.error(0, f"this row or a later one: {error.message}", error.hint) from None
