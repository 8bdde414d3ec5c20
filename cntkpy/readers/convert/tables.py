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
from cntkpy.readers.formats.tables.csv.text import MISSING, CsvText, TextBlock, is_number
from cntkpy.readers.formats.tables.library import arrow, broken, compute

from .batches import Batch, Part, Stream, one_hot
from .named_columns import NamedColumns, refuse_values
from .sources import Input, batch_size

log = logging.getLogger("cntkpy.readers")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
FEATURES, LABELS = "features", "labels"


def from_csv(
    paths: Sequence[str], streams: Sequence[Stream], precision: str = "float", options: NamedColumns | None = None
) -> Input:
    """Return a table, and perhaps a file with the names of the classes, one a line.

    Without streams there are two: `labels`, the classes of the column `labels` (else the only one that holds no
    numbers), and `features`, all other columns. With streams, the columns are theirs from left to right; one of form
    "class" takes one column. Without a file of names, classes are numbered in the order of their names: by value if
    these are whole numbers, else by alphabet.

    Args:
        paths: the table; the names of the classes.
        streams: what the columns are.
        precision: "float" or "double".
        options: which columns are what, by names or numbers from 1.

    Raises:
        UserError: the columns cannot be distinguished. DataError: a row is not as the table's first ones.
    """
    if len(paths) > 2:
        raise ConfigError("TooManyFiles", f"a table is one file, and one of class names: {' '.join(paths)}")
    options = options or NamedColumns()
    options.check(streams)
    if any(s.form == "sparse" for s in streams):
        raise ConfigError("BadStream", "a table has no sparse streams", hint="read them as dense")
    table = _Table(paths[0])
    kept_columns = _kept(table, options.dropped)
    columns = _described(table, streams, kept_columns) if streams else _found(table, options, kept_columns)
    label_names = _names_of(paths[1]) if len(paths) == 2 else None
    if options.labels is not None and label_names is None:
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
        _batches(table, columns, kept, names, np.float64 if precision == "double" else np.float32, options),
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
        """Yield all rows, some thousand at a time.

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
        """Return all that occurs in a column."""
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
    """Return whether the column of labels has numbers that are not whole: values, not classes.

    Raises:
        UserError: it has whole numbers that hardly recur.
    """
    if column.form != "class":
        return False
    title = table.title(column.columns[0])
    cells = table.classes(column.columns[0])
    if not all(map(is_number, cells)):
        return False
    if all(float(cell).is_integer() for cell in cells):
        refuse_values(table.path, title, len(cells), sum(len(block.columns[0]) for block in table.cells()))
        return False
    log.warning("Column %s has numbers that are not whole: they are values of one dimension, not classes.", title)
    return True


def _kept(table: _Table, dropped: Sequence[str]) -> list[int]:
    """Return the columns that are not left out, from left to right."""
    numbers = {_column(table, name) for name in dropped}
    if len(numbers) == table.width:
        raise UserError("NoStreams", f"--drop leaves out all columns of {table.path}")
    return [i for i in range(table.width) if i not in numbers]


def _found(table: _Table, options: NamedColumns, kept: Sequence[int]) -> list[_Columns]:
    """Which columns are what, when only the one with the classes or values is named, or none."""
    if (predicted := options.predicted) is not None:
        column = _column(table, predicted)
        if column not in kept:
            option = "--labels" if options.labels is not None else "--target"
            raise ConfigError("Conflict", f"{option} {predicted} is left out by --drop", hint="leave one of them out")
    else:
        texts = [i for i in kept if not is_number(table.first[i])]
        if len(texts) != 1:
            last = table.header[kept[-1]] if table.header is not None else kept[-1] + 1
            several = (
                f"columns {', '.join(map(table.title, texts))} hold texts" if texts else "all columns hold numbers"
            )
            raise UserError(
                "NoStreams",
                f"{table.path}: {several}: which one holds the classes?",
                hint=f"name it: --labels {last}, or --target {last} if it has values; without either, name the streams "
                f"from left to right: --stream {FEATURES}:{len(kept)}",
            )
        column = texts[0]
    features = tuple(i for i in kept if i != column)
    if not features:
        raise UserError("NoStreams", f"{table.path} has one column, and that holds the classes")
    form = "class" if options.target is None else "dense"
    return [_Columns(FEATURES, features, "dense"), _Columns(LABELS, (column,), form)]


def _column(table: _Table, name: str) -> int:
    """Return the number of a column from 0, by its name or its number from 1."""
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


def _described(table: _Table, streams: Sequence[Stream], kept: Sequence[int]) -> list[_Columns]:
    """Return the columns of streams that stand side by side."""
    columns: list[_Columns] = []
    position = 0
    for s in streams:
        width = 1 if s.form == "class" else s.dim
        columns.append(_Columns(s.name, tuple(kept[position : position + width]), s.form))
        position += width
    if position != len(kept):
        raise UserError(
            "BadStream",
            f"{table.path} has {len(kept)} columns, but the streams have {position}",
            hint="--stream names all columns from left to right; one of form class has one; --drop leaves one out",
        )
    return columns


def _names_of(path: str) -> list[str]:
    """Return the names of the classes that a file lists, one a line."""
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
    table: _Table,
    columns: Sequence[_Columns],
    streams: Sequence[Stream],
    names: dict[str, list[str]],
    dtype: type,
    options: NamedColumns,
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
                    missing = None if options.target is not None and of.name == LABELS else options.missing
                    parts[of.name] = Part(_values(table, piece, of.columns, missing).astype(dtype), lengths)
            yield Batch(range(done, done + count), parts)
            done += count


def _classes(table: _Table, piece: Block, of: _Columns, names: Sequence[str]) -> np.ndarray:
    """Return the numbers of classes, float64[n]."""
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


def _values(table: _Table, piece: Block, columns: Sequence[int], missing: float | None) -> np.ndarray:
    """Numbers float64 (rows, columns); missing: what stands for missing ones."""
    if missing is not None:
        piece = piece._replace(columns=[_filled(column, missing) for column in piece.columns])
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


def _filled(cells: Any, missing: float) -> Any:
    """Return texts with a number in place of missing values and NaN."""
    absent = compute().is_in(cells, value_set=arrow().array([*MISSING, "nan", "NaN", "NAN", "-nan"]))
    return compute().if_else(absent, arrow().scalar(repr(missing)), cells)


def _first_without(piece: Block, columns: Sequence[int]) -> int | None:
    """Return the first row with a cell that is no number; None if there is none."""
    rows = zip(*(piece.columns[i].to_pylist() for i in columns), strict=True)
    return next((number for number, cells in enumerate(rows) if not all(map(is_number, cells))), None)


def _without_blank_rows(cells: list[Any]) -> list[Any]:
    """Return the cells of the rows that have any."""
    lengths = sum(compute().binary_length(cell).to_numpy().astype(np.int64) for cell in cells)
    full = np.asarray(lengths) > 0
    return cells if full.all() else [cell.filter(arrow().array(full)) for cell in cells]


def _cure(cell: str, title: str) -> str:
    if is_number(cell.replace(",", ".", 1)):
        return "write a decimal point instead of the comma"
    if not cell.strip() or cell.strip().lower() in ("na", "n/a", "nan", "null", "none", "?", "-"):
        return "--missing NUMBER stands for missing values; `cntkpy new config` puts means in their place"
    return f"if it holds the classes: --labels {title}; to leave the column out: --drop {title}"
