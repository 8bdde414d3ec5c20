"""Sections of a report: the table of the runs, and what tests of classifications took for what."""

from __future__ import annotations

from collections.abc import Sequence

from cntkpy.commands.report.curves import swatch, trainings
from cntkpy.commands.report.markup import Markup, tag
from cntkpy.commands.report.png import data_url
from cntkpy.commands.runs.forms import shown
from cntkpy.commands.runs.record import Confusion, Example, Run
from cntkpy.commands.runs.table import Cell, Table, for_people, table_of

MAX_CLASSES = 40
"""With more classes, only the pairs that are confused most are listed."""
MAX_ACROSS = 5
"""So many trainings stand side by side; more, one below another."""
PAIRS = 12
HEAT = 6
"""Shades of the cells of a matrix."""


def summary_section(runs: Sequence[Run]) -> Markup:
    """The table of the runs: what differs, best and last criteria, state, time; then what went wrong."""
    errors = [
        tag("p", tag("span", run.state, class_="bad"), f" {run.name}: ", tag("code", run.error))
        for run in runs
        if run.error
    ]
    return tag("div", _table(for_people(table_of(runs)), runs), errors)


def _table(table: Table, runs: Sequence[Run]) -> Markup:
    """A row for each training; of a few, a column for each, which a phone and a sheet of paper have room for."""
    numbers = [any(isinstance(row[place], float) for row in table.rows) for place in range(len(table.columns))]
    dots = _dots(runs)
    heads = [tag("th", name, scope="col") for name in table.columns]
    cells = [
        [
            _cell(cell, right, None if place else dot)
            for place, (cell, right) in enumerate(zip(row, numbers, strict=True))
        ]
        for row, dot in zip(table.rows, dots, strict=True)
    ]
    lines = [list(line) for line in zip(heads, *cells, strict=True)] if len(cells) <= MAX_ACROSS else [heads, *cells]
    head, *rows = [tag("tr", line) for line in lines]
    return tag("div", tag("table", tag("thead", head), tag("tbody", rows), class_="summary"), class_="scroll")


def _dots(runs: Sequence[Run]) -> list[Markup | None]:
    """The dot of each row of the table: the trainings that have curves have a colour."""
    drawn = [id(curves) for _, curves in trainings(runs)]
    rows = [curves for run in runs for curves in (run.curves or [None])]
    return [swatch(drawn.index(id(row))) if id(row) in drawn else None for row in rows]


def _cell(cell: Cell, right: bool, dot: Markup | None) -> Markup:
    bad = {"failed": "bad", "killed": "bad", "interrupted": "warn"}.get(str(cell))
    return tag("td", dot, shown(cell), class_="number" if right else bad)


def confusion_section(runs: Sequence[Run]) -> Markup | None:
    """The matrices of the tests, and the samples with the largest loss."""
    confusions = [(run, confusion) for run in runs for confusion in run.confusions]
    if not confusions:
        return None
    parts = [
        tag(
            "details",
            tag("summary", _title(run, confusion)),
            _matrix(confusion),
            _pairs(confusion),
            _worst(confusion),
            open=len(confusions) == 1,
        )
        for run, confusion in confusions
    ]
    return tag("div", parts)


def _title(run: Run, confusion: Confusion) -> str:
    total = sum(map(sum, confusion.counts))
    right = sum(row[index] for index, row in enumerate(confusion.counts))
    return f"{run.name}: {confusion.command}, {right:,} of {total:,} samples right ({100 * right / max(1, total):.2f}%)"


def _matrix(confusion: Confusion) -> Markup | None:
    size = len(confusion.counts)
    if size > MAX_CLASSES:
        return tag("p", f"{size} classes: the matrix is left out.", class_="note")
    head = tag("tr", tag("th", "is \\ taken for"), [tag("th", number, scope="col") for number in range(size)])
    rows = [
        tag(
            "tr",
            tag("th", number, scope="row"),
            [tag("td", count or "", class_=_heat(count, sum(row))) for count in row],
        )
        for number, row in enumerate(confusion.counts)
    ]
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="confusion")
    return tag("div", table, class_="scroll")


def _heat(count: int, total: int) -> str | None:
    return f"h{max(1, round(HEAT * count / total))}" if count and total else None


def _pairs(confusion: Confusion) -> Markup | None:
    pairs = [
        (count, label, taken_for)
        for label, row in enumerate(confusion.counts)
        for taken_for, count in enumerate(row)
        if count and label != taken_for
    ]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    texts = [f"{label} for {taken_for} ({count})" for count, label, taken_for in pairs[:PAIRS]]
    return tag("p", "Taken for another class most often: ", ", ".join(texts), ".")


def _worst(confusion: Confusion) -> Markup | None:
    if not confusion.worst:
        return None
    steps = any(example.step for example in confusion.worst)
    pictures = any(example.picture for example in confusion.worst)
    names = ["sequence", *(["step"] if steps else []), "class", "taken for", "loss", *(["picture"] if pictures else [])]
    rows: list[Markup] = []
    for example in confusion.worst:
        cells = [str(example.sequence), *([str(example.step)] if steps else [])]
        cells += [str(example.label), str(example.taken_for), f"{example.loss:.4g}"]
        shown = tag("td", _picture(example)) if pictures else None
        rows.append(tag("tr", [tag("td", cell, class_="number") for cell in cells], shown))
    head = tag("tr", [tag("th", name, scope="col", class_="number") for name in names])
    table = tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll")
    return tag("div", tag("h3", "The samples with the largest loss"), tag("p", _COUNTED, class_="note"), table)


def _picture(example: Example) -> Markup | None:
    pixels = example.picture
    if pixels is None:
        return None
    url = data_url(pixels.width, pixels.height, pixels.channels, pixels.content)
    return tag("img", src=url, width=2 * pixels.width, height=2 * pixels.height, alt=f"sequence {example.sequence}")


_COUNTED = "Sequences and steps count from 0, in the order in which the test read the data."
