"""CSV and TSV files as text: the delimiter, the header, blocks of whole rows, and the line that a row is in."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from cntkpy.readers.common.packed import DataBytes, open_text
from cntkpy.readers.errors import DataError

from ..library import arrow, arrow_csv, broken
from .rows import DELIMITERS, lines_in, rows_in

BLOCK_BYTES = 4 << 20
"""Bytes of text that are parsed at a time; a row is not longer."""
MOST_COLUMNS = 100_000
"""Columns of a row; each takes memory of its own."""
MISSING = ("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null")
"""Cells that are missing values in a column of numbers, dates or booleans; in one of texts empty ones are."""


class TextBlock(NamedTuple):
    """Whole rows: the byte that they begin at, how many bytes they are, and the lines of the file before them."""

    begin: int
    size: int
    line: int


_NOT_CLOSED = "unexpected end of data"
"""The message of the module csv about a text that ends within quotes."""
_GOES_ON = "a cell goes on behind its last quote"
"""Pyarrow reads such a cell as one text, without the quotes; the module csv refuses it."""
_START = TextBlock(0, 1 << 20, 0)
"""The start of a file, for messages."""


class CsvText:
    """A CSV file.

    The first row is the header if none of its cells is a number. The delimiter is the one of `,`, `;` and tabulators
    that cuts the first row into most pieces; in files called .tsv it is the tabulator. Rows without anything in them do
    not count.

    Args:
        path: the file, or a URL; it may be compressed.

    Raises:
        DataError: it cannot be read, has no rows, or is no text in UTF-8.
    """

    def __init__(self, path: str) -> None:
        self.data = open_text(path)
        self.path = self.data.path
        endings = [suffix.lower() for suffix in Path(path).suffixes]
        self.delimiter = "\t" if ".tsv" in endings or ".tab" in endings else _delimiter(self._first_line())
        rows = list(islice(self._lines(), 2))
        if not rows:
            raise DataError(f"{self.path} has no rows.", path=self.path)
        self.header = [cell.strip() for cell in rows[0][1]] if not any(map(is_number, rows[0][1])) else None
        if self.header is not None and len(rows) < 2:
            raise DataError(f"{self.path} has no rows after its header.", path=self.path)
        self.width = len(rows[0][1])
        self.first = _checked(self.path, self.width, *rows[1 if self.header is not None else 0])
        """The cells of the first row of data."""
        if self.header is not None:
            _check_header(self.path, self.header)
        self.names = self.header if self.header is not None else [str(i + 1) for i in range(self.width)]
        """The names of columns: those of the header, or their numbers from 1."""

    def title(self, column: int) -> str:
        """Return the name of a column in messages."""
        return f"'{self.header[column]}'" if self.header is not None else str(column + 1)

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows but the header, in blocks of at most `BLOCK_BYTES`.

        Raises:
            DataError: a row is longer, a quote is not closed, or a cell goes on behind its last quote.
        """
        position, line, header = 0, 0, self.header is not None
        while content := self.data.bytes(position, BLOCK_BYTES):
            whole = len(content) < BLOCK_BYTES  # it goes to the end of the file
            ends, unclosed, torn = rows_in(content, self.delimiter)
            if whole and unclosed:
                raise self._unclosed(position, line)
            size = len(content) if whole else int(ends[-1]) if len(ends) else 0
            if not size:
                raise _too_long(self.path, line)
            if 0 <= torn < size:
                row = max(ends[ends <= torn].tolist(), default=0)
                raise _no_row(self.path, line + lines_in(content[:row]) + 1, _GOES_ON)
            begin = 0
            if header:
                begin = _end_of_first_row(content, [*ends.tolist(), size], self.delimiter)
                header = False
            if size > begin:
                yield TextBlock(position + begin, size - begin, line + lines_in(content[:begin]))
            line += lines_in(content[:size])
            position += size

    def content(self, block: TextBlock) -> bytes:
        """Return the text of a block.

        Raises:
            DataError: the file became shorter.
        """
        data = self.data.bytes(block.begin, block.size)
        if len(data) != block.size:
            raise self.data.cut_short()
        return data

    def rows(self, block: TextBlock) -> Iterator[tuple[int, list[str]]]:
        """Yield the line in which each row of a block ends, from 1, and its cells; for messages.

        Raises:
            DataError: a row has another length than the first one, or is no row at all.
        """
        file = io.TextIOWrapper(io.BytesIO(self.content(block)), encoding="utf-8-sig", newline="")
        for line, cells in self._read(file, block):
            yield line, _checked(self.path, self.width, line, cells)

    def row(self, block: TextBlock, number: int) -> tuple[int, list[str]]:
        """Return the line and the cells of a row of a block, counted from 0."""
        return next(islice(self.rows(block), number, None))

    def parsed(self, block: TextBlock, kinds: Sequence[Any], columns: Sequence[str] = (), threads: bool = True) -> Any:
        """Return a block as an Arrow table. Cells of texts have the blanks around them.

        Args:
            block: which rows.
            kinds: the type of each column; None: the one that fits all of its cells.
            columns: names of those that are read; none: all.
            threads: whether several threads convert columns.

        Raises:
            DataError: a row has another length than the first one, or a cell is not of the type; it names the line.
        """
        content = self.content(block)
        options = arrow_csv()
        convert = options.ConvertOptions(
            column_types={name: kind for name, kind in zip(self.names, kinds, strict=True) if kind is not None},
            include_columns=list(columns),
            null_values=list(MISSING),
            strings_can_be_null=False,
        )
        error = None
        # Rows of blanks need a handler, which pyarrow calls with a text: where that is none, Python prints a traceback.
        for handler in (None, _skip_blank):
            try:
                return options.read_csv(
                    arrow().BufferReader(content),
                    options.ReadOptions(use_threads=threads, block_size=len(content) + 1, column_names=self.names),
                    options.ParseOptions(
                        delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=handler
                    ),
                    convert,
                )
            except broken() as refusal:
                error = refusal
            if not _is_text(content):
                break
        for _ in self.rows(block):
            pass  # says which line it is
        reason = " ".join(str(error).split()).rstrip(".")[:300]
        message = f"{self.path}: the rows from line {block.line + 1} on cannot be read as a table: {reason}."
        raise DataError(message, path=self.path, line=block.line + 1)

    def _unclosed(self, position: int, line: int) -> DataError:
        """Return the error of a quote that is not closed in the last block of the file."""
        last, begin = line, position
        content = self.data.bytes(position, BLOCK_BYTES)
        ends = rows_in(content, self.delimiter).ends
        if len(ends):
            begin = int(ends[-1])
            last += lines_in(content[:begin])
        return _no_row(self.path, last + 1, _NOT_CLOSED, is_closed=False)

    def _first_line(self) -> str:
        with self._text() as file:
            try:
                for number, line in enumerate(iter(lambda: file.readline(BLOCK_BYTES + 1), "")):
                    if len(line) > BLOCK_BYTES:
                        raise _too_long(self.path, number)
                    if line.strip():
                        return line
            except UnicodeDecodeError as error:
                raise _not_text(self.path, self.data, error, _START) from None
        return ""

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        with self._text() as file:
            yield from self._read(file, _START)

    def _read(self, file: io.TextIOWrapper, block: TextBlock) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of a text that begins where a block does."""
        held = [0, 0]  # characters of the row that is read, and lines before it
        is_over = False

        def lines() -> Iterator[str]:
            nonlocal is_over
            while line := file.readline(BLOCK_BYTES + 1):
                held[0] += len(line)
                if held[0] > BLOCK_BYTES:
                    raise _too_long(self.path, block.line + held[1])
                yield line
            is_over = True

        try:
            reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
            for cells in reader:
                held[:] = 0, reader.line_num
                if len(cells) > MOST_COLUMNS:
                    raise DataError(
                        f"{self.path}:{block.line + reader.line_num}: the row has {len(cells):,} columns, the limit is "
                        f"{MOST_COLUMNS:,}.",
                        path=self.path,
                        line=block.line + reader.line_num,
                        hint="write a row for each sample; lists of numbers fit into Parquet",
                    )
                if any(cell.strip() for cell in cells):
                    yield block.line + reader.line_num, cells
        except UnicodeDecodeError as error:
            raise _not_text(self.path, self.data, error, block) from None
        except csv.Error as error:
            line = block.line + held[1] + 1
            raise _no_row(self.path, line, str(error), is_closed=not is_over) from None

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self.data.stream(), encoding="utf-8-sig", newline="")


def _too_long(path: str, line: int) -> DataError:
    """Return the error of a row that begins behind so many lines."""
    return DataError(
        f"{path}: the row from line {line + 1} on has more than {BLOCK_BYTES >> 20} MB.",
        path=path,
        line=line + 1,
        hint="is a quote not closed?",
    )


def _no_row(path: str, line: int, reason: str, *, is_closed: bool = True) -> DataError:
    """Return the error of quotes in the row that begins in a line.

    Args:
        path: the file.
        line: the line.
        reason: what the module csv says.
        is_closed: whether the text goes on behind the quote; else no other closes it.
    """
    fault = "the quotes in this row are wrong" if is_closed else "a quote in this row is not closed"
    return DataError(
        f"{path}:{line}: {fault}, so {path} cannot be read as a table: {reason}",
        path=path,
        line=line,
        hint='a text that begins with a quote ends with one; quotes within it are doubled: "say ""yes"""',
    )


def _not_text(path: str, data: DataBytes, error: UnicodeDecodeError, block: TextBlock) -> DataError:
    """Return the error of bytes that are no text, with their line if they are in the block."""
    content = data.bytes(block.begin, block.size)
    line: int | None = None
    try:
        content.decode()
    except UnicodeDecodeError as inside:
        line = block.line + lines_in(content[: inside.start]) + 1
    where = path if line is None else f"{path}:{line}"
    encoding = "utf-16" if data.bytes(0, 2) in (b"\xff\xfe", b"\xfe\xff") else "latin1"
    hint = f"save it as UTF-8, for instance: iconv -f {encoding} -t utf-8"
    return DataError(f"{where} is not text in UTF-8: {error.reason}", path=path, line=line, hint=hint)


def _checked(path: str, width: int, line: int, cells: list[str]) -> list[str]:
    """Return the cells of a row that is as long as the first one."""
    if len(cells) != width:
        raise DataError(
            f"{path}:{line}: the row has {len(cells)} columns, but the first one has {width}",
            path=path,
            line=line,
            hint="quote texts with the delimiter in them; with decimal commas, write ';' between columns",
        )
    return cells


def is_number(cell: str) -> bool:
    """Return whether a cell is a number as C and Python write it."""
    if "_" in cell:
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _delimiter(line: str) -> str:
    """Return the delimiter that cuts the first line into most pieces."""
    return max(DELIMITERS, key=line.count)


def _end_of_first_row(content: bytes, ends: Sequence[int], delimiter: str) -> int:
    """Return the end of the first row that is not blank."""
    begin = 0
    for end in ends:
        row = io.StringIO(content[begin:end].decode("utf-8-sig", "replace"), newline="")
        if any(cell.strip() for cells in csv.reader(row, delimiter=delimiter) for cell in cells):
            return end
        begin = end
    return begin


def _check_header(path: str, header: Sequence[str]) -> None:
    names = set[str]()
    for i, name in enumerate(header):
        if not name:
            raise DataError(
                f"{path}: column {i + 1} has no name in the header; is it the number of the row?",
                path=path,
                hint="leave it out; with pandas: to_csv(index=False)",
            )
        if name in names:
            raise DataError(f"{path}: two columns are called '{name}'", path=path, hint="rename one")
        names.add(name)


def _is_text(content: bytes) -> bool:
    """Return whether bytes are text in UTF-8."""
    try:
        str(content, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _skip_blank(row: Any) -> str:
    """Return pyarrow's action for a row of another length: skip a blank row, refuse any other."""
    return "error" if row.text.strip() else "skip"
