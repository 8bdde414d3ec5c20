"""Parquet and Arrow files: their schema, their row groups, and the columns of a row group as Arrow arrays."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from cntkpy.cntk_config.base.diagnostics import shorten, suggestion
from cntkpy.cntk_config.base.files import is_url, open_input
from cntkpy.readers.common.beginnings import Beginnings, current
from cntkpy.readers.common.bounds import most_decoded
from cntkpy.readers.common.remote import RemoteBytes, shown
from cntkpy.readers.errors import DataError
from cntkpy.readers.kernels.budget import fits_budget

from .footer import ColumnChunk, Statistics, column_chunks, statistics
from .ipc import (
    BATCH,
    FEATHER_1,
    MAGIC,
    Damaged,
    Message,
    batch_of_stream,
    is_stream,
    messages_of_file,
    messages_of_stream,
)
from .library import arrow, broken, parquet
from .lists import are_numbers, lists_of
from .nested import nested_array, nested_field, nested_names, top_of
from .pages import PageSizes, coded_bytes, most_bytes, page_sizes
from .partitions import Partition
from .plain import plain_type

MOST_ROWS = 2**31 - 1
"""Most rows of a row group."""
PLAIN = "int64, float, double or text, and lists of them"
FEWER_ROWS = "write row groups of fewer rows: pyarrow.parquet.write_table(..., row_group_size=100_000)"
_UNKNOWN = "LogicalType that is not recognized"
"""Message of older pyarrow versions about an unknown Parquet type."""
DAMAGED = "the file is damaged: write it again"
READ_BYTES = 1 << 20
"""Bytes of a column chunk of Parquet that are read at a time."""
BYTES_IN_BUDGET = 100
"""Bytes of lists for which pyarrow takes as much longer than kernels as a byte of the budget is worth."""
PLAUSIBLE = 8
"""Rows for each byte of a file; where it claims more, they are counted before memory is taken for them."""


@contextmanager
def guarded(action: str, path: str, hint: str = DAMAGED) -> Generator[None]:
    """Turn exceptions of pyarrow into a `DataError` of a file: `what`, and the reason."""
    errors = broken()
    try:
        yield
    except DataError:
        raise
    except errors as error:
        if isinstance(error, NotImplementedError) or _UNKNOWN in str(error):
            version = arrow().__version__
            hint = f"pyarrow {version} lacks this, the file may be whole: write the column as {PLAIN}"
        raise DataError(f"{action}: {_reason(error)}.", path=path, hint=hint) from None


def too_large(path: str, part: str, nbytes: int, size: int, hint: str = FEWER_ROWS) -> DataError:
    """Return the error of a part of a file that takes more bytes than are believed.

    Args:
        path: the file.
        part: for instance `row group 3`.
        nbytes: its bytes, decoded.
        size: bytes of the file.
        hint: what to do.
    """
    message = f"{path}: {part} takes up to {nbytes:,} bytes decoded, in a file of {size:,} bytes"
    return DataError(f"{message}: this is not believed to be data.", path=path, hint=hint)


class TableFile:
    """A table in row groups (Parquet) or record batches (Arrow), which are both called row groups here.

    Args:
        path: the file, or a URL.
        partition: the columns that are folders. A column of the file with the same name counts instead.

    Raises:
        DataError: it cannot be read, or is no such file.
    """

    kind: str = ""
    groups: int
    """Number of row groups."""

    def __init__(self, path: str, partition: Partition | None = None) -> None:
        self.path = shown(path)
        self._open(path)
        with self.opened() as file:
            self.schema: Any = self._schema(file)
            self.groups = self._groups(file)
            if (limits := current()) is not None:
                self.groups = self._groups_with(limits)
            self._columns: list[str] = list(self.schema.names)
        if not self._columns:
            raise DataError(f"{self.path} has no columns.", path=self.path)
        self.folders = {name: value for name, value in (partition or {}).items() if name not in self._columns}
        """Columns that are folders of the file, and their values."""
        self.names: list[str] = [*self._columns, *self.folders]

    def rows(self, column: str | None = None) -> list[int]:
        """Rows of every row group. column: one of those that are going to be read, if that is known."""
        raise NotImplementedError

    def bytes_of_groups(self) -> list[int]:
        """Return an estimate of the bytes of the decoded columns, by row group."""
        raise NotImplementedError

    def row_name(self, group: int, row: int, column: str) -> str:
        """Return the place of a row, for messages; row: counted from 0 in its row group."""
        return f"{self.path}, row group {group}, row {row}, column '{column}'"

    def detail(self, column: str) -> str:
        """Return details of a column of an unexpected type, for messages; "" if there are none."""
        several = nested_names(self.schema, column) if column in self.schema.names else []
        return f" (its fields are {shorten(', '.join(several), 200)})" if several else ""

    def known_of_groups(self) -> list[dict[str, Statistics]]:
        """Return the file's statistics of its columns, by row group; [] if it has none."""
        return []

    def read(self, group: int, columns: Sequence[str], threads: bool = False) -> dict[str, list[Any]]:
        """Return the columns of a row group, each as its Arrow arrays one after the other, of plain types.

        Their buffers are checked.
        """
        own_names = [name for name in columns if name not in self.folders]
        with self.opened(group) as file:
            table = self._read(file, group, own_names or self._columns[:1], threads)
            pieces: dict[str, list[Any]] = {}
            for name in own_names:
                chunks = table.column(top_of(self.schema, name)).chunks
                for chunk in chunks:
                    chunk.validate(full=True)  # offsets and indices that point outside are found here
                pieces[name] = [nested_array(chunk, self.schema, name) for chunk in chunks]
            for name in columns:
                if name in self.folders:
                    pieces[name] = [self._constant(name, table.num_rows)]
        return pieces

    def field(self, name: str) -> Any:
        """Return the field of a column, or of a field of a column of structs: `place.city`. Its type is plain.

        Raises:
            DataError: the file has no such column, or several of it.
        """
        field = self.stored_field(name)
        return field.with_type(plain_type(field.type))

    def stored_field(self, name: str) -> Any:
        """Return the same with the type that the file has."""
        count = self.names.count(name)
        if not count and (value := nested_field(self.schema, name)) is not None:
            return value
        if count != 1:
            reason = f"has {count} columns" if count else "has no column"
            fields = (
                nested_name
                for column in dict.fromkeys(self._columns)
                for nested_name in nested_names(self.schema, column)
            )
            hint = suggestion(name, [*self.names, *fields]) or f"its columns are {shorten(', '.join(self.names), 200)}"
            raise DataError(f"{self.path} {reason} '{name}'.", path=self.path, hint=hint)
        return self._field_of_folder(name) if name in self.folders else self.schema.field(name)

    def _field_of_folder(self, name: str) -> Any:
        pa = arrow()
        return pa.field(name, pa.int64() if self.folders[name].whole else pa.string())

    def _constant(self, name: str, rows: int) -> Any:
        return arrow().repeat(arrow().scalar(self.folders[name].value, self._field_of_folder(name).type), rows)

    @contextmanager
    def opened(self, group: int | None = None) -> Generator[Any]:
        """The file, opened for pyarrow; what pyarrow raises becomes an error that names the row group."""
        where = self.path if group is None else f"{self.path}, row group {group}"
        hint = "check 'file' and its type" if group is None else DAMAGED
        reason = f"{where} cannot be read as {self.kind}"
        with guarded(reason, self.path, hint), self.opened_bytes() as file:
            yield arrow().PythonFile(file, mode="r")

    @contextmanager
    def opened_bytes(self) -> Generator[BinaryIO]:
        """The file."""
        remote = self._remote
        with remote.stream() if remote else open_input(self.path) as file:
            self.size = remote.size if remote else os.fstat(file.fileno()).st_size
            yield file

    def _groups_with(self, limits: Beginnings) -> int:
        """Return the row groups that have the first records."""
        return min(self.groups, limits.count_of(self.path, self.groups))

    def _open(self, path: str) -> None:
        self._remote = RemoteBytes(path) if is_url(path) else None

    def _schema(self, file: Any) -> Any:
        raise NotImplementedError

    def _groups(self, file: Any) -> int:
        raise NotImplementedError

    def _read(self, file: Any, group: int, columns: Sequence[str], threads: bool) -> Any:
        raise NotImplementedError

    def _bad_rows(self, group: int, reason: str) -> DataError:
        return DataError(f"{self.path}, row group {group}: {reason}.", path=self.path, hint=DAMAGED)


class ParquetTable(TableFile):
    """A Parquet file."""

    kind = "Parquet"
    _chunks: list[list[ColumnChunk]] | None = None  # read when they are needed
    _coded: dict[tuple[int, str], list[str]]
    """Columns of row groups whose bytes are known to be few enough, with their parts that are read as dictionaries."""

    def _schema(self, file: Any) -> Any:
        self._coded = {}
        opened = parquet().ParquetFile(file)
        self.metadata: Any = opened.metadata
        return opened.schema_arrow

    def _groups(self, file: Any) -> int:
        return self.metadata.num_row_groups

    def _groups_with(self, limits: Beginnings) -> int:
        rows = itertools.accumulate(self.metadata.row_group(number).num_rows for number in range(self.groups))
        needed = sum(1 for _ in itertools.takewhile(lambda count: count < limits.records, rows)) + 1
        if needed < self.groups:
            limits.cut[self.path] = None
        return min(self.groups, needed)

    def bytes_of_groups(self) -> list[int]:
        """Return the sizes in the metadata, at least an equal share of the file per row group."""
        groups = [self.metadata.row_group(number) for number in range(self.groups)]
        return [max(int(group.total_byte_size), self.size // self.groups) for group in groups]

    def known_of_groups(self) -> list[dict[str, Statistics]]:
        """Return the statistics of the footer."""
        with self.opened_bytes() as file:
            return statistics(file, self.size)[: self.groups]

    def rows(self, column: str | None = None) -> list[int]:
        """Rows of every row group, as the metadata say; counted where these are not plausible."""
        # No metadata of columns: pyarrow aborts the process where those are damaged.
        num_rows = [int(self.metadata.row_group(number).num_rows) for number in range(self.groups)]
        for number, rows in enumerate(num_rows):
            if not 0 <= rows <= MOST_ROWS:
                raise self._bad_rows(number, f"it has {rows} rows, the limit is {MOST_ROWS}")
        if sum(num_rows) > PLAUSIBLE * self.size:
            counted = self._columns[0] if column is None or column in self.folders else column
            for number, rows in enumerate(num_rows):
                if (count := self._count(number, counted)) != rows:
                    raise self._bad_rows(number, f"it has {count} rows, but its header says {rows}")
        limits = current()
        return num_rows if limits is None else [limits.count_of(self.path, rows) for rows in num_rows]

    def _count(self, group: int, column: str) -> int:
        coded = self._bounded(group, [column])
        with self.opened(group) as file:
            batches = (
                parquet()
                .ParquetFile(file, metadata=self.metadata, read_dictionary=coded)
                .iter_batches(1 << 16, row_groups=[group], columns=[column], use_threads=False)
            )
            return sum(batch.num_rows for batch in batches)

    def _read(self, file: Any, group: int, columns: Sequence[str], threads: bool) -> Any:
        coded = self._bounded(group, columns)
        lists = self._lists(group, columns)
        remaining_names = [name for name in columns if name not in lists]
        if not remaining_names:
            return arrow().table(lists)
        # Else pyarrow reads whole column chunks, into new memory each time; so it does from a URL, with few requests.
        reading = {} if self._remote else {"pre_buffer": False, "buffer_size": READ_BYTES}
        whole = parquet().ParquetFile(file, metadata=self.metadata, read_dictionary=coded, **reading)
        if (limits := current()) is not None:
            batches = whole.iter_batches(limits.records, row_groups=[group], columns=remaining_names, use_threads=False)
            return arrow().Table.from_batches([next(batches)])
        table = whole.read_row_group(group, columns=remaining_names, use_threads=threads)
        for name, array in lists.items():
            table = table.append_column(name, array)
        return table

    def _bounded(self, group: int, columns: Sequence[str]) -> list[str]:
        """Refuse columns of a row group that take too many bytes once they are decoded.

        Returns:
            The parts of columns, as `x` or `x.list.element`, that have to be read as dictionaries: their texts would
            take too many bytes.

        Raises:
            DataError: they take too many bytes in any case.
        """
        most, result = most_decoded(self.size), list[str]()
        for top in dict.fromkeys(top_of(self.schema, name) for name in columns):
            if (group, top) not in self._coded:
                self._coded[group, top] = self._coded_parts(group, top, most)
            result += self._coded[group, top]
        return result

    def _coded_parts(self, group: int, column: str, most: int) -> list[str]:
        """Return the parts of a column that have to be read as dictionaries, see `_bounded`."""
        rows = int(self.metadata.row_group(group).num_rows)
        total, plain, parts = 0, 0, list[str]()
        with self.opened_bytes() as file:
            for place, chunk in enumerate(self._chunks_of(file, group)):
                if chunk.path[0] != column:
                    continue
                sizes = None if self._remote else page_sizes(file, chunk)
                if sizes is None:  # of a URL, or with a header that only pyarrow understands
                    sizes = PageSizes(chunk.nbytes, 0, coded=False, shared=False, values=chunk.values)
                nbytes = most_bytes(chunk, sizes, int(self.metadata.schema.column(place).length))
                coded = coded_bytes(chunk, sizes)
                total += nbytes
                plain += nbytes if coded is None else coded
                parts += [] if coded is None else [self.metadata.schema.column(place).path]
        if max(total, rows) <= most:
            return []
        if max(plain, rows) > most:
            raise too_large(self.path, f"column '{column}' of row group {group}", max(plain, rows), self.size)
        return parts

    def _chunks_of(self, file: BinaryIO, group: int) -> list[ColumnChunk]:
        """Return the column chunks of a row group, one for each leaf of the schema; none where they are not known."""
        if self._chunks is None:
            self._chunks = column_chunks(file, self.size)
        chunks = self._chunks[group] if group < len(self._chunks) else []
        return chunks if len(chunks) == len(self.metadata.schema) else []

    def _lists(self, group: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return those columns of a row group that `lists` reads, as Arrow arrays."""
        once = [name for name in columns if self._columns.count(name) == 1]
        possible = [name for name in once if are_numbers(self.schema.field(name).type)]
        known = self.metadata.row_group(group)
        if (
            not possible
            or self._remote
            or current() is not None
            or fits_budget(int(known.total_byte_size) // BYTES_IN_BUDGET)
        ):
            return {}
        with self.opened_bytes() as file:
            lists = {name: self._list(file, group, name) for name in possible}
        return {name: array for name, array in lists.items() if array is not None}

    def _list(self, file: BinaryIO, group: int, name: str) -> Any:
        """Return a column of a row group as an Arrow array; None: pyarrow has to read it."""
        chunks = self._chunks_of(file, group)
        places = [place for place, chunk in enumerate(chunks) if chunk.path[:1] == (name,)]
        if len(places) != 1:
            return None
        leaf, rows = self.metadata.schema.column(places[0]), int(self.metadata.row_group(group).num_rows)
        return lists_of(file, chunks[places[0]], rows, leaf.max_definition_level, self.schema.field(name).type)


class ArrowTable(TableFile):
    """A file in Arrow's IPC file format, which is that of Feather, version 2, or in its stream format."""

    kind = "Arrow's file format"
    _messages: list[Message]
    """Dictionaries and record batches; of a stream the schema, too."""

    def _schema(self, file: Any) -> Any:
        with self.opened_bytes() as source:
            head = source.read(8)
            if head.startswith(FEATHER_1):
                raise DataError(
                    f"{self.path} is a file of Feather, version 1, which is not read.",
                    path=self.path,
                    hint="write version 2: pyarrow.feather.write_feather(pyarrow.feather.read_table(NAME), NAME)",
                )
            self._is_stream = not head.startswith(MAGIC) and is_stream(head)
            if self._is_stream:
                self.kind = "Arrow's stream format"
            try:
                schema = arrow().ipc.open_stream(file).schema if self._is_stream else arrow().ipc.open_file(file).schema
                self._messages = (messages_of_stream if self._is_stream else messages_of_file)(source, self.size)
            except Damaged as error:
                raise DataError(
                    f"{self.path} cannot be read as {self.kind}: {error}.", path=self.path, hint=DAMAGED
                ) from None
        self._batches = [number for number, message in enumerate(self._messages) if message.kind == BATCH]
        return schema

    def _groups(self, file: Any) -> int:
        return len(self._batches)

    def bytes_of_groups(self) -> list[int]:
        """Return the bytes of every record batch, decoded."""
        return [self._messages[number].nbytes for number in self._batches]

    def rows(self, column: str | None = None) -> list[int]:
        """Return the rows of every record batch, as their headers say; counted where these are not plausible."""
        rows = [self._messages[number].rows for number in self._batches]
        if min(rows, default=0) >= 0 and sum(rows) <= PLAUSIBLE * self.size:
            return rows
        chosen = column if column is not None and column not in self.folders else self._smallest()
        return [sum(map(len, self.read(number, [chosen])[chosen])) for number in range(self.groups)]

    def _smallest(self) -> str:
        """Return the column whose values take least room."""
        return min(self._columns, key=lambda name: _bits(self.schema.field(name).type))

    def _read(self, file: Any, group: int, columns: Sequence[str], threads: bool) -> Any:
        number = self._batches[group]
        previous_messages = [message for message in self._messages[:number] if message.kind != BATCH]
        needed = (
            [*previous_messages, self._messages[number]] if self._is_stream else [*self._messages[: self._batches[0]]]
        )
        rows = self._messages[number].rows
        nbytes = sum(column.nbytes for column in {*needed, self._messages[number]}) + 8 * max(rows, 0)
        if nbytes > most_decoded(self.size):
            raise too_large(self.path, f"record batch {group}", nbytes, self.size)
        tops = dict.fromkeys(top_of(self.schema, name) for name in columns)
        included = [self.schema.get_field_index(name) for name in tops]
        if self._is_stream:
            with self.opened_bytes() as source:
                batch = batch_of_stream(source, needed, included, threads)
        else:
            options = arrow().ipc.IpcReadOptions(included_fields=included, use_threads=threads)
            batch = arrow().ipc.open_file(file, options=options).get_batch(group)
        return arrow().Table.from_batches([batch])


def _bits(kind: Any) -> int:
    """Bits of a value of a type; many where values have different sizes."""
    try:
        return kind.bit_width
    except ValueError:
        return 1 << 30


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split()).rstrip(".")[:300]
