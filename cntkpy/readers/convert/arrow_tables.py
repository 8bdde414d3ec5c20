"""Parquet files and Arrow files: columns as streams, and streams as columns.

A column that is written says in the metadata of its field, under `cntkpy`, what it is: `dense 3`, `sparse 100`,
`class 10`, or `key`. So what was written is read back without being described.
"""

from __future__ import annotations

import logging
import shlex
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, shorten
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.data_api.factories import to_section
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.tables.arrays import (
    KEY,
    MARK,
    key_name,
    keys_as_array,
    marked,
    samples_as_array,
    sequences_as_array,
)
from cntkpy.readers.formats.tables.columns import is_number, text_inside
from cntkpy.readers.formats.tables.deserializer import names_of
from cntkpy.readers.formats.tables.files import ArrowTable, ParquetTable, TableFile
from cntkpy.readers.formats.tables.library import arrow, broken, parquet

from .batches import Batch, Stream, class_numbers
from .named_columns import NamedColumns, refuse_values
from .sources import Input, from_reader, single
from .targets import Target

log = logging.getLogger("cntkpy.readers")
FEATURES, LABELS = "features", "labels"
GROUP = 32 << 20
"""Bytes of a row group that is written, about."""
_MOST_CLASSES = 1 << 20


def from_parquet(
    paths: Sequence[str], streams: Sequence[Stream], precision: str = "float", options: NamedColumns | None = None
) -> Input:
    """Return a Parquet file; see `_from_table`."""
    return _from_table(
        "ParquetDeserializer", ParquetTable(single(paths, "a Parquet file")), streams, precision, options
    )


def from_arrow(
    paths: Sequence[str], streams: Sequence[Stream], precision: str = "float", options: NamedColumns | None = None
) -> Input:
    """Return a file in Arrow's file format; see `_from_table`."""
    return _from_table("ArrowDeserializer", ArrowTable(single(paths, "an Arrow file")), streams, precision, options)


def _from_table(
    kind: str, table: TableFile, streams: Sequence[Stream], precision: str, options: NamedColumns | None
) -> Input:
    """Return the columns of a table as streams.

    With `labels` or `target` there are two: `labels`, the classes or values of that column, and `features`, all columns
    of numbers. Else those that are asked for, each the column of its name; else all columns.
    """
    options = options or NamedColumns()
    options.check(streams)
    for name in options.dropped:
        table.field(name)
    kept = [name for name in table.names if name not in options.dropped and _mark(table, name) != [KEY]]
    if options.predicted is not None:
        result, sources = _two(table, options, kept)
    else:
        result = list(streams) or [_stream_of(table, name) for name in kept]
        sources: dict[str, dict[str, Any]] = {s.name: {"alias": s.name} for s in result}
    if options.missing is not None:
        for s in result[:1] if options.target is not None else result:  # values to be predicted are not filled in
            if s.form == "dense" and is_number(table.field((sources[s.name].get("columns") or [s.name])[0]).type):
                sources[s.name]["missing"] = [repr(options.missing)] * s.dim
    inputs = {
        s.name: {"dim": s.dim, "format": "dense" if s.form == "dense" else "sparse"} | sources[s.name] for s in result
    }
    part: dict[str, Any] = {"type": kind, "file": table.path, "input": inputs}
    section: dict[str, Any] = {"randomize": False, "deserializers": [part]}
    if (key := next((name for name in table.names if _mark(table, name) == [KEY]), None)) is not None:
        part["keyColumn"] = key
        section["useNumericSequenceKeys"] = is_number(table.field(key).type)
    from cntkpy.readers.registry import create_reader

    read = from_reader(create_reader(to_section(section), precision), precision)
    names = {name: [classes[i] for i in sorted(classes)] for name, classes in read.labels.items()}
    return replace(read, streams=result, names=names, files=[table.path])


def _two(
    table: TableFile, options: NamedColumns, kept: Sequence[str]
) -> tuple[list[Stream], dict[str, dict[str, Any]]]:
    """Features and labels, and where they are."""
    labels = options.predicted or ""
    table.field(labels)
    if labels in options.dropped:
        option = "--labels" if options.labels is not None else "--target"
        raise ConfigError("Conflict", f"{option} {labels} is left out by --drop", hint="leave one of them out")
    numbers = [name for name in kept if name != labels and is_number(table.field(name).type)]
    if not numbers:
        raise UserError("NoStreams", f"{table.path} has no columns of numbers besides '{labels}'")
    no_numbers = [name for name in kept if name != labels and name not in numbers]
    if no_numbers:
        drop = " ".join(f"--drop {shlex.quote(name)}" for name in no_numbers)
        raise UserError(
            "BadStream",
            f"{table.path}: these columns are not numbers: {shorten(', '.join(no_numbers))}",
            hint=f"leave them out: {shorten(drop, 300)}",
        )
    kind = table.field(labels).type
    if options.target is not None and not is_number(kind):
        raise UserError(
            "BadStream", f"{table.path}: column '{labels}' is {kind}: these are no values", hint="use --labels"
        )
    classes = Stream(LABELS, 1) if options.target is not None else _stream_of(table, labels, classes=True)
    if options.target is None and classes.form == "dense":
        log.warning(
            "Column '%s' has numbers that are not whole: they are values of one dimension, not classes.", labels
        )
    streams = [Stream(FEATURES, len(numbers)), Stream(LABELS, classes.dim, classes.form)]
    return streams, {FEATURES: {"columns": numbers}, LABELS: {"alias": labels}}


def _mark(table: TableFile, name: str) -> list[str]:
    """Return the words in the metadata of a column that tell its form."""
    metadata: dict[bytes, bytes] = table.field(name).metadata or {}
    return metadata.get(MARK, b"").decode("utf-8", "replace").split()


def _stream_of(table: TableFile, name: str, classes: bool = False) -> Stream:
    """Return a column as a stream; classes: it has classes, also where it has numbers."""
    mark = _mark(table, name)
    if len(mark) == 2 and mark[0] in ("dense", "sparse", "class") and mark[1].isdecimal() and len(mark[1]) < 10:
        return Stream(name, max(1, int(mark[1])), mark[0])
    types, kind = arrow().types, table.field(name).type
    if text_inside(kind):
        return Stream(name, len(names_of([table], name, _MOST_CLASSES)), "class")
    if classes and types.is_integer(kind):
        return Stream(name, _largest(table, name) + 1, "class")
    inner = kind
    while types.is_list(inner) or types.is_large_list(inner):
        inner = inner.value_type
    if types.is_fixed_size_list(inner):
        return Stream(name, inner.list_size)
    if is_number(inner) and (inner is kind or inner == kind.value_type):
        return Stream(name, 1)
    raise UserError(
        "NoStreams",
        f"{table.path}: column '{name}' is {kind}: how many values has a sample?",
        hint=f"name the columns that are converted, with their dimensions: --stream {name}:DIM[:FORM]",
    )


def _largest(table: TableFile, name: str) -> int:
    """Return the largest class of a column of whole numbers.

    Raises:
        UserError: the numbers hardly recur, so that they are no classes. DataError: they are too large.
    """
    largest = 0
    distinct: set[int] = set()
    for group in range(table.groups):
        for array in table.read(group, [name])[name]:
            if len(array) > array.null_count:
                values = np.unique(array.drop_null().to_numpy(zero_copy_only=False))
                largest = max(largest, int(values[-1]))
                distinct.update(values[:_MOST_CLASSES].tolist())
    refuse_values(table.path, f"'{name}'", len(distinct), sum(table.rows()))
    if largest >= _MOST_CLASSES:
        raise DataError(f"{table.path}: column '{name}' has the class {largest}: is it a class?", path=table.path)
    return largest


class TableTarget:
    """Rows, collected in a temporary file until it is known which columns have several samples in a row."""

    def __init__(self, streams: Sequence[Stream], precision: str) -> None:
        self._streams, self._element = list(streams), np.dtype(np.float64 if precision == "double" else np.float32)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the target
        self._writer: Any = None
        self._single = {s.name: True for s in streams}
        self._count = 0

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        pa = arrow()
        count = len(batch.parts[self._streams[0].name].lengths)
        keys = list(batch.keys) if len(batch.keys) else list(range(self._count, self._count + count))
        self._count += count
        arrays = [keys_as_array(keys)]
        for s in self._streams:
            part = batch.parts[s.name]
            if not part.lengths.all():
                raise UserError(
                    "EmptySequence",
                    f"sequence {keys[int(np.flatnonzero(part.lengths == 0)[0])]} has no samples of '{s.name}', which "
                    "readers of tables refuse",
                    hint="write an .npz archive",
                )
            self._single[s.name] &= bool((part.lengths == 1).all())
            arrays.append(sequences_as_array(self._samples(part.rows, s), part.lengths))
        names = [s.name for s in self._streams]
        value = pa.record_batch(arrays, names=[key_name(names), *names])
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, value.schema)
        self._writer.write_batch(value)

    def _samples(self, rows: Any, s: Stream) -> Any:
        """Samples as an array, an element each."""
        if s.form == "class":
            return arrow().array(class_numbers(rows, s.name).astype(np.int32))
        return samples_as_array(rows, s.dim, s.form == "sparse", self._element)

    def tables(self) -> Iterator[Any]:
        """Yield the written rows in tables of about `GROUP` bytes, in the final schema; the first may be empty."""
        pa = arrow()
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        held: list[Any] = []
        size = 0
        with pa.ipc.open_stream(self._file) as written:
            for batch in written:
                held.append(self._final(batch))
                size += held[-1].nbytes
                if size >= GROUP:
                    yield pa.Table.from_batches(held)
                    held, size = [], 0
        if held:
            yield pa.Table.from_batches(held)

    def _final(self, batch: Any) -> Any:
        """Return a batch without lists where every row has one sample."""
        pa = arrow()
        key = batch.column(0)
        arrays, fields = [key], [marked(batch.schema.names[0], key, KEY)]
        for s in self._streams:
            array = batch.column(s.name)
            array = array.flatten() if self._single[s.name] else array
            arrays.append(array)
            fields.append(marked(s.name, array, f"{s.form} {s.dim}"))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def close(self) -> None:
        """Let go of the temporary file."""
        if self._writer is not None:
            with suppress(*broken()):
                self._writer.close()
        self._file.close()


@contextmanager
def to_parquet(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """A Parquet file."""
    module = parquet()
    with _written(path, streams, source, lambda file, schema: module.ParquetWriter(file, schema)) as target:
        yield target


@contextmanager
def to_arrow(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """A file in Arrow's file format."""
    pa = arrow()
    with _written(path, streams, source, lambda file, schema: pa.ipc.new_file(file, schema)) as target:
        yield target


@contextmanager
def _written(
    path: str, streams: Sequence[Stream], source: Input, make: Callable[[IO[bytes], Any], Any]
) -> Generator[Target]:
    target = TableTarget(streams, source.precision)
    try:
        with atomic_write(path) as file:
            yield target
            writer: Any = None
            for table in target.tables():
                writer = make(file, table.schema) if writer is None else writer
                table = table.combine_chunks()
                writer.write_table(table, max(1, len(table)))
            if writer is not None:
                writer.close()
    finally:
        target.close()
