"""The forms of a table of runs: for a terminal, JSON, CSV, Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence

from cntkpy.cntk_config.base.diagnostics import printable_json
from cntkpy.commands.runs.plain import CONTROL
from cntkpy.commands.runs.table import AFTER, FIRST, Cell, Table

FORMS = ("table", "json", "csv", "markdown")
FORMULA = (*"=+-@\t\r\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of texts that programs of spreadsheets take for formulas, wide forms of the signs among them."""
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
CONTROL_BUT_BREAKS = {code: "?" for code in CONTROL if chr(code) not in "\t\n"}


def write(table: Table, form: str) -> str:
    """Return the table in one of `FORMS`, except `table`."""
    return {"json": as_json, "csv": as_csv, "markdown": as_markdown}[form](table)


def as_json(table: Table) -> str:
    """Return a list of objects; a number that JSON does not have is null."""
    rows = [dict(zip(table.columns, map(_finite, row), strict=True)) for row in table.rows]
    return printable_json(json.dumps(rows, indent=2, ensure_ascii=False)) + "\n"


def as_csv(table: Table) -> str:
    """Comma-separated values; numbers with all their digits.

    A text that a program of spreadsheets would compute has an apostrophe in front; control characters are `?`.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_inert, table.columns))
    writer.writerows([map(_inert, row) for row in table.rows])
    return out.getvalue()


def _inert(cell: Cell) -> Cell:
    """Return a cell that spreadsheets show and do not compute; numbers are as they are."""
    if not isinstance(cell, str):
        return "" if cell is None else cell
    if cell[:1] not in FORMULA and cell.isprintable():
        return cell
    shown = cell.translate(CONTROL_BUT_BREAKS)
    return shown if cell[:1] not in FORMULA or NUMBER.fullmatch(cell) else f"'{shown}"


def as_markdown(table: Table) -> str:
    """Return a table of Markdown."""
    rows = [table.columns, *([shown(cell) for cell in row] for row in table.rows)]
    lines = ["| " + " | ".join(_cell(text) for text in row) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("---:" if right else "---" for right in _right(table)) + "|")
    return "\n".join(lines) + "\n"


COLUMN_GAP = 2
"""Blanks between columns of a terminal."""
LEAST_COLUMNS = 2
"""Columns that are shown however narrow a terminal is."""
LEAST_NAME = 12
"""Characters of the name of a run that are shown however narrow a terminal is."""


def fitting(table: Table, width: int) -> tuple[Table, list[str], list[str]]:
    """Return the columns that fit side by side, their heads, and the names of columns that are left out.

    Columns stay by weight: the run, its state, the first value of the configuration, the first criterion, other values,
    epochs, the others. If not all fit, heads that are longer than their cells have two lines. Names of runs that take
    more than half of the line lose their beginnings.

    Args:
        table: The table.
        width: Characters of a line.
    """
    longest = max(width // 2, LEAST_NAME)
    table = Table(table.columns, [[_end(row[0], longest), *row[1:]] for row in table.rows], table.values)
    cells = [max((len(shown(row[place])) for row in table.rows), default=0) for place in range(len(table.columns))]
    heads = [[column.translate(CONTROL)] for column in table.columns]
    widths = [max(len(head[0]), cell) for head, cell in zip(heads, cells, strict=True)]
    if sum(widths) + COLUMN_GAP * (len(widths) - 1) > width:
        heads = [_lines(head[0], cell) for head, cell in zip(heads, cells, strict=True)]
        widths = [max(cell, *map(len, head)) for head, cell in zip(heads, cells, strict=True)]
    kept: set[int] = set()
    used = -COLUMN_GAP
    for place in _by_weight(table):
        if len(kept) < LEAST_COLUMNS or used + COLUMN_GAP + widths[place] <= width:
            used += COLUMN_GAP + widths[place]
            kept.add(place)
    places = sorted(kept)
    left_out = [column for place, column in enumerate(table.columns) if place not in kept]
    rows = [[row[place] for place in places] for row in table.rows]
    values = sum(FIRST <= place < FIRST + table.values for place in places)
    return (
        Table([table.columns[place] for place in places], rows, values),
        ["\n".join(heads[place]) for place in places],
        left_out,
    )


def _by_weight(table: Table) -> list[int]:
    """Return the places of the columns, those that say most first."""
    count, after = len(table.columns), FIRST + table.values
    values, judged = list(range(FIRST, after)), list(range(after, count - AFTER))
    order = [0, 1, *values[:1], *judged[:1], *values[1:], 2, *judged[1:], *range(count - AFTER, count)]
    return [place for place in dict.fromkeys(order) if 0 <= place < count]


def _lines(head: str, cell: int) -> list[str]:
    """Return the head of a column in two lines, if it is longer than its cells, which have `cell` characters."""
    ends = [match.start() for match in re.finditer(r" |(?<=[a-z])(?=[A-Z])", head)]
    if len(head) <= max(cell, LEAST_NAME) or not ends:
        return [head]
    halves = [[head[:end], head[end:].strip()] for end in ends]
    return min(halves, key=lambda lines: max(map(len, lines)))


def _end(cell: Cell, length: int) -> Cell:
    """Return a cell whose text has no more characters than `length`: its end."""
    return f"...{cell[3 - length :]}" if isinstance(cell, str) and len(cell) > length else cell


def terminal_width() -> int | None:
    """Return the characters of a line of the terminal; None where the output is no terminal and COLUMNS is not set."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or os.environ.get("COLUMNS") else None


def show(table: Table, wide: bool = False, heads: Sequence[str] | None = None) -> None:
    """Print the table to a terminal, page by page if it is longer; into a file or a pipe as wide as the table.

    Args:
        table: The table.
        wide: Print each row in one line, however long that is.
        heads: Texts over the columns, which may have several lines; by default the names of columns.
    """
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(box=None, pad_edge=False, header_style="bold")
    heads = heads if heads is not None else [column.translate(CONTROL) for column in table.columns]
    for head, right in zip(heads, _right(table), strict=True):
        drawn.add_column(
            Text(head), justify="right" if right else "left", vertical="bottom", overflow="fold", no_wrap=wide
        )
    for row in table.rows:
        drawn.add_row(*(Text(shown(cell).translate(CONTROL), style=_style(cell)) for cell in row))
    console = Console(highlight=False, markup=False)
    if wide or not sys.stdout.isatty():
        console = Console(highlight=False, markup=False, width=max(80, console.measure(drawn).maximum, 1000))
    if not sys.stdout.isatty() or len(table.rows) < shutil.get_terminal_size().lines:
        console.print(drawn)
        return
    with console.capture() as page:
        console.print(drawn)
    _show_pages(page.get())


def _show_pages(text: str) -> None:
    """Show a text with the pager that PAGER names, or `less`; Ctrl-C is the pager's meanwhile."""
    import click

    os.environ.setdefault("LESS", "FRSX")  # as git has it: colours, long lines cut, and the text stays
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        click.echo_via_pager(text)
    finally:
        signal.signal(signal.SIGINT, handler)


def shown(cell: Cell) -> str:
    """Return a cell for people: six significant digits."""
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else f"{cell:.6g}"


def _style(cell: Cell) -> str:
    return {"failed": "red", "killed": "red", "interrupted": "yellow", "running": "cyan"}.get(str(cell), "")


def _right(table: Table) -> list[bool]:
    """Return whether a column has numbers, and stands to the right."""
    cells = [[row[place] for row in table.rows] for place in range(len(table.columns))]
    return [any(isinstance(cell, float) for cell in column) for column in cells]


def _cell(text: str) -> str:
    return " ".join(text.translate(CONTROL).split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
