"""Sections of a report: the table of the runs, and what tests of classifications took for what."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from cntkpy.commands.report.curves import swatch, trainings
from cntkpy.commands.report.markup import Markup, headed_row, scrolled_table, tag, text
from cntkpy.commands.report.png import data_url
from cntkpy.commands.runs.forms import shown
from cntkpy.commands.runs.record import Confusion, Example, Run
from cntkpy.commands.runs.table import AFTER, FIRST, Cell, Table, rows_of, with_short_names

MAX_CLASSES = 40
"""With more classes, only the pairs that are confused most are listed."""
WIDE = 9
"""Tables with more columns have a smaller font."""
MINUTES = len("2026-11-28 10:00")
"""Characters of a time of a start, without seconds."""
PAIRS = 12
HEAT = 6
"""Shades of the cells of a matrix."""


def summary_section(runs: Sequence[Run], table: Table, best: int | None = None, best_by: str = "") -> Markup:
    """Return the table of the runs: what differs, best and last criteria, state, time; then what went wrong.

    Args:
        runs: The runs.
        table: Their table.
        best: The place of the best row, which is marked.
        best_by: By what it is the best.
    """
    errors = [
        tag("p", tag("span", run.state, class_="bad"), f" {run.name}: ", tag("code", run.error))
        for run in runs
        if run.error
    ]
    note = tag("p", f"\u2605 the best run: {best_by}", class_="note") if best is not None else None
    minutes = Table(table.columns, [[*row[:-1], str(row[-1])[:MINUTES]] for row in table.rows], table.values)
    return tag("div", _table(with_short_names(minutes), runs, best), note, errors)


def _table(table: Table, runs: Sequence[Run], best: int | None) -> Markup:
    """Return a row for each training, which the script of the page sorts; of one training, a row for each column."""
    numbers = [any(isinstance(row[place], float) for row in table.rows) for place in range(len(table.columns))]
    dots, least = _dots(runs), _least(table)
    cells = [
        [
            _name(cell, dot, number == best) if place == 0 else _cell(cell, numbers[place], number in least[place])
            for place, cell in enumerate(row)
        ]
        for number, (row, dot) in enumerate(zip(table.rows, dots, strict=True))
    ]
    if len(cells) == 1:
        heads = [tag("th", name, scope="row") for name in table.columns]
        rows = [tag("tr", pair) for pair in zip(heads, cells[0], strict=True)]
        return scrolled_table(rows, class_="summary")
    rows = [tag("tr", row) for row in cells]
    classes = "summary sortable wide" if len(table.columns) > WIDE else "summary sortable"
    return scrolled_table(rows, map(_broken, table.columns), class_=classes, data_key="summary")


def _broken(name: str) -> list[Markup]:
    """Return a name that may be broken where a word in it begins: `learningRates` in `PerMB`."""
    parts = re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[:/_])", name)
    return [*(Markup(f"{text(part)}<wbr>") for part in parts[:-1]), text(parts[-1])]


def _least(table: Table) -> list[set[int]]:
    """Return for each column the places of the rows with the least criterion; empty for other columns."""
    first, least = FIRST + table.values, list[set[int]]()
    for place in range(len(table.columns)):
        values = [row[place] for row in table.rows]
        known = [value for value in values if isinstance(value, float) and math.isfinite(value)]
        judged = first <= place < len(table.columns) - AFTER and len(known) > 1 and min(known) < max(known)
        least.append({number for number, value in enumerate(values) if judged and value == min(known)})
    return least


def _dots(runs: Sequence[Run]) -> list[Markup | None]:
    """Return the dot of each row of the table: the trainings that have curves have a colour."""
    drawn = [id(curves) for _, curves in trainings(runs)]
    return [swatch(drawn.index(id(curves))) if id(curves) in drawn else None for _, curves in rows_of(runs)]


def _name(cell: Cell, dot: Markup | None, is_best: bool) -> Markup:
    star = tag("span", "\u2605 ", class_="best", title="the best run") if is_best else None
    return tag("th", dot, star, shown(cell), scope="row")


def _cell(cell: Cell, right: bool, is_least: bool) -> Markup:
    state = {"failed": "bad", "killed": "bad", "interrupted": "warn"}.get(str(cell))
    content = tag("strong", shown(cell)) if is_least else shown(cell)
    return tag("td", content, class_="number" if right else state)


def confusion_section(runs: Sequence[Run]) -> Markup | None:
    """Return the matrices of the tests, and the samples with the largest loss."""
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
            data_key=f"confusion {run.path} {confusion.command}",
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
        headed_row(number, [tag("td", count or "", class_=_heat(count, sum(counts))) for count in counts])
        for number, counts in enumerate(confusion.counts)
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
