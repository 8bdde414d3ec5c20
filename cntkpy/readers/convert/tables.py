"""Tables: CSV and TSV files, with a header or without; numbers, and columns with the names of classes."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, shorten, suggestion
from cntkpy.readers.common.labels import in_order
from cntkpy.readers.common.packed import open_data
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.tables.csv.text import CsvText, TextBlock, is_number
from cntkpy.readers.formats.tables.library import arrow, broken, compute

from .batches import Batch, Part, Stream, one_hot
from .sources import Input, batch_size

log = logging.getLogger("cntkpy.readers")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
FEATURES, LABELS = "features", "labels"


def from_csv(
    paths: Sequence[str], streams: Sequence[Stream], precision: str = "float", labels: str | None = None
) -> Input:
    """A table, and perhaps a file with the names of the classes, one a line.

    Without streams there are two: `labels`, the classes of the column `labels` (else the only one that holds no
    numbers), and `features`, all other columns. With streams, the columns are theirs from left to right; one of form
    "class" takes one column. Without a file of names, classes are numbered in the order of their names: by value if
    these are whole numbers, else by alphabet.

    Args:
        paths: the table; the names of the classes.
        streams: what the columns are.
        precision: "float" or "double".
        labels: name of the column with the classes, or its number from 1.

    Raises:
        UserError: the columns cannot be distinguished. DataError: a row is not as the table's first ones.
    """
    if len(paths) > 2:
        raise ConfigError("TooManyFiles", f"a table is one file, and one of class names: {' '.join(paths)}")
    if streams and labels is not None:
        raise ConfigError("BadStream", "--labels and --stream both say what the columns are", hint="use one of them")
    if any(s.form == "sparse" for s in streams):
        raise ConfigError("BadStream", "a table has no sparse streams", hint="read them as dense")
    table = _Table(paths[0])
    columns = _described(table, streams) if streams else _found(table, labels)
    label_names = _names_of(paths[1]) if len(paths) == 2 else None
    if labels is not None and label_names is None:
        columns = [_Columns(c.name, c.columns, "dense") if _has_values(table, c) else c for c in columns]
    if label_names is not None and not any(column.form == "class" for column in columns):
        raise UserError("BadStream", f"{paths[1]} has names of classes, but no stream has classes")
    names: dict[str, list[str]] = {}
    for column in columns:
        if column.form == "class":
            names[column.name] = label_names if label_names is not None else in_order(table.classes(column.columns[0]))
    kept = [Stream(c.name, len(names[c.name]) if c.form == "class" else len(c.columns), c.form) for c in columns]
    for asked, stream in zip(streams, kept, strict=False):
        if asked.dim < stream.dim:
            raise UserError(
                "BadStream",
                f"column {table.title(columns[kept.index(stream)].columns[0])} of {paths[0]} has "
                f"{stream.dim} classes, not {asked.dim}: {shorten(', '.join(names[stream.name]))}",
                hint=f"write --stream {stream.name}:{stream.dim}:class",
            )
    kept = [Stream(s.name, max(s.dim, streams[i].dim if streams else 0), s.form) for i, s in enumerate(kept)]
    return Input(
        kept,
        _batches(table, columns, kept, names, np.float64 if precision == "double" else np.float32),
        labels={name: dict(enumerate(several)) for name, several in names.items()},
        precision=precision,
        files=paths,
        names=names if label_names is None else {},
    )


class Block(NamedTuple):
    """Some rows: where their text is, the number of the first one, and Arrow arrays of the cells of every column.

    The number is counted in the text, without rows that are blank.
    """

    text: TextBlock
    first: int
    columns: list[Any]


@dataclass(frozen=True)
class _Columns:
    """The columns of one stream, numbers from 0."""

    name: str
    columns: tuple[int, ...]
    form: str


class _Table(CsvText):
    """The rows of a table as texts, read as often as needed."""

    def cells(self) -> Iterator[Block]:
        """All rows, some thousand at a time.

        Raises:
            DataError: a row is not as long as the first one, or the file is no table.
        """
        kinds = [arrow().string()] * self.width
        for block in self.blocks():
            table = self.parsed(block, kinds).combine_chunks()
            columns = [compute().utf8_trim_whitespace(column).combine_chunks() for column in table.columns]
            columns = _without_blank_rows(columns)
            if len(columns[0]):
                yield Block(block, 0, columns)

    def classes(self, column: int) -> set[str]:
        """All that occurs in a column."""
        result: set[str] = set()
        for block in self.cells():
            names = compute().unique(block.columns[column]).to_pylist()
            if "" in names:
                line, _ = self.row(block.text, compute().index(block.columns[column], "").as_py())
                raise DataError(
                    f"{self.path}:{line}: column {self.title(column)} is empty, where the name of a class is expected",
                    path=self.path,
                    line=line,
                    hint="leave the row out, or give it a class",
                )
            result.update(names)
        return result


def _has_values(table: _Table, column: _Columns) -> bool:
    """Return whether the column of labels has numbers that are not whole: values, not classes."""
    if column.form != "class":
        return False
    cells = table.classes(column.columns[0])
    if not all(map(is_number, cells)) or all(float(cell).is_integer() for cell in cells):
        return False
    title = table.title(column.columns[0])
    log.warning("Column %s has numbers that are not whole: they are values of one dimension, not classes.", title)
    return True


def _found(table: _Table, labels: str | None) -> list[_Columns]:
    """Which columns are what, when only the one with the classes is named, or none."""
    if labels is not None:
        column = _column(table, labels)
    else:
        texts = [i for i, cell in enumerate(table.first) if not is_number(cell)]
        if len(texts) != 1:
            last = table.header[-1] if table.header is not None else table.width
            several = (
                f"columns {', '.join(map(table.title, texts))} hold texts" if texts else "all columns hold numbers"
            )
            raise UserError(
                "NoStreams",
                f"{table.path}: {several}: which one holds the classes?",
                hint=f"name it: --labels {last}; without classes, name the streams from left to right: "
                f"--stream {FEATURES}:{table.width}",
            )
        column = texts[0]
    other_indexes = tuple(i for i in range(table.width) if i != column)
    if not other_indexes:
        raise UserError("NoStreams", f"{table.path} has one column, and that holds the classes")
    return [_Columns(FEATURES, other_indexes, "dense"), _Columns(LABELS, (column,), "class")]


def _column(table: _Table, name: str) -> int:
    """The number of a column from 0, by its name or its number from 1."""
    if table.header is not None and name in table.header:
        return table.header.index(name)
    if _WHOLE.fullmatch(name) and 1 <= int(name) <= table.width:
        return int(name) - 1
    raise UserError(
        "BadStream",
        f"{table.path} has no column '{name}'",
        hint=(suggestion(name, table.header) or f"its columns are {shorten(', '.join(table.header), 200)}")
        if table.header is not None
        else f"it has no header: name the column by its number, 1 to {table.width}",
    )


def _described(table: _Table, streams: Sequence[Stream]) -> list[_Columns]:
    """The columns of streams that stand side by side."""
    columns: list[_Columns] = []
    position = 0
    for s in streams:
        width = 1 if s.form == "class" else s.dim
        columns.append(_Columns(s.name, tuple(range(position, position + width)), s.form))
        position += width
    if position != table.width:
        raise UserError(
            "BadStream",
            f"{table.path} has {table.width} columns, but the streams have {position}",
            hint="--stream names all columns from left to right; one of form class has one",
        )
    return columns


def _names_of(path: str) -> list[str]:
    """The names of the classes that a file lists, one a line."""
    try:
        with io.TextIOWrapper(open_data(path), encoding="utf-8-sig") as file:
            names = [line.strip() for line in file]
    except OSError as error:
        raise DataError(f"The input file ({path}) cannot be read: {error.strerror or error}", path=path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8: {error.reason}", path=path) from None
    while names and not names[-1]:
        names.pop()
    if not names or not all(names):
        raise DataError(f"{path} has no names of classes, or an empty line among them.", path=path)
    return names


def _batches(
    table: _Table, columns: Sequence[_Columns], streams: Sequence[Stream], names: dict[str, list[str]], dtype: type
) -> Iterator[Batch]:
    size, done = batch_size(streams), 0
    for block in table.cells():
        for index in range(0, len(block.columns[0]), size):
            piece = Block(block.text, index, [column.slice(index, size) for column in block.columns])
            count = len(piece.columns[0])
            lengths = np.ones(count, np.int64)
            parts: dict[str, Part] = {}
            for of, stream in zip(columns, streams, strict=True):
                if of.form == "class":
                    parts[of.name] = Part(one_hot(_classes(table, piece, of, names[of.name]), stream), lengths)
                else:
                    parts[of.name] = Part(_values(table, piece, of.columns).astype(dtype), lengths)
            yield Batch(range(done, done + count), parts)
            done += count


def _classes(table: _Table, piece: Block, of: _Columns, names: Sequence[str]) -> np.ndarray:
    """The numbers of classes, float64[n]."""
    numbers = {name: number for number, name in enumerate(names)}
    coded = piece.columns[of.columns[0]].dictionary_encode()
    codes = np.array([numbers.get(name, -1) for name in coded.dictionary.to_pylist()], np.float64)[coded.indices]
    unknown = np.flatnonzero(codes < 0)
    if not len(unknown):
        return codes
    line, cells = table.row(piece.text, piece.first + int(unknown[0]))
    raise DataError(
        f"{table.path}:{line}: the class '{shorten(cells[of.columns[0]].strip())}' in column "
        f"{table.title(of.columns[0])} is not listed",
        path=table.path,
        line=line,
        hint=suggestion(cells[of.columns[0]].strip(), numbers) or f"the names are {shorten(', '.join(numbers))}",
    )


def _values(table: _Table, piece: Block, columns: Sequence[int]) -> np.ndarray:
    """Numbers float64 (rows, columns)."""
    out = np.empty((len(piece.columns[0]), len(columns)))
    try:
        for index, column in enumerate(columns):
            out[:, index] = piece.columns[column].cast(arrow().float64()).to_numpy()
    except broken():
        number = _first_without(piece, columns)
        if number is None:  # digits of other scripts, which Python knows
            return np.array([list(map(float, piece.columns[i].to_pylist())) for i in columns]).T
        line, cells = table.row(piece.text, piece.first + number)
        i = next(i for i in columns if not is_number(cells[i]))
        raise DataError(
            f"{table.path}:{line}: column {table.title(i)} is '{shorten(cells[i])}', which is not a number",
            path=table.path,
            line=line,
            hint=_cure(cells[i], table.title(i)),
        ) from None
    return out


def _first_without(piece: Block, columns: Sequence[int]) -> int | None:
    """The first row with a cell that is no number; None if there is none."""
    rows = zip(*(piece.columns[i].to_pylist() for i in columns), strict=True)
    return next((number for number, cells in enumerate(rows) if not all(map(is_number, cells))), None)


def _without_blank_rows(cells: list[Any]) -> list[Any]:
    """The cells of the rows that have any."""
    lengths = sum(compute().binary_length(cell).to_numpy().astype(np.int64) for cell in cells)
    full = np.asarray(lengths) > 0
    return cells if full.all() else [cell.filter(arrow().array(full)) for cell in cells]


def _cure(cell: str, title: str) -> str:
    if is_number(cell.replace(",", ".", 1)):
        return "write a decimal point instead of the comma"
    if not cell.strip() or cell.strip().lower() in ("na", "n/a", "nan", "null", "none", "?", "-"):
        return "leave rows with missing values out, or fill them in"
    return (
        f"if it holds the classes: --labels {title}; without the column, a reader section with a CsvDeserializer and "
        "columns = (...) reads the others: cntkpy convert configFile=FILE reader OUTPUT"
    )
