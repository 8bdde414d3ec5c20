"""Runs as a table: a row for each training, the values in which they differ, best and last criteria, time, state."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from cntkpy.cntk_config.base.diagnostics import UserError, shorten, suggestion
from cntkpy.commands.runs.record import Curves, Run, Setting

Cell = str | float | None
Texts = tuple[str | None, ...]
"""Values of one name in several runs."""

NEVER_SHOWN = frozenset(
    word.lower()
    for word in (
        "makeMode", "traceLevel", "logFormat", "stderr", "doneFile", "timestamping", "progressTracing", "modelPath",
        "numMBsToShowResult", "firstMBsToShowResult", "verbosity", "outputPath", "outputFile", "outputModelPath",
        "outputModelFile", "record", "runFolder", "tensorBoardLogDir",
    )
)  # fmt: skip
"""Parameters that change where a run writes and what it says, not what it learns."""
TRACKING = "tracking:"
"""Values that say where a run is tracked."""
FIRST = 3
"""Columns before those of values."""
AFTER = 2
"""Columns after those of criteria: seconds, and the time of the start."""
MAX_VALUES, MAX_TEXT = 10, 60
"""Columns of values, and characters of a text, in tables for people; the other forms have all of them."""
MAX_LABEL = 4
"""Values in the label of a run."""
MAX_WRITTEN = 2000
"""Characters of a value that is compared with the variables in it."""
SIGNS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
CONDITION = re.compile(r"([^<>!=~]+)(<=|>=|!=|=|<|>|~)(.*)")


@dataclass
class Table:
    """Columns by name; every row has a cell for each.

    Attributes:
        columns: the names.
        rows: the cells: texts, numbers, None where there is nothing.
        values: so many columns from `FIRST` on are values of the configuration.
    """

    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list[list[Cell]])
    values: int = 0

    def place(self, name: str) -> int:
        """Return the place of a column; its whole name, or the end of it, or of a word in it, in any case.

        Raises:
            UserError: there is none, or several.
        """
        lower = [column.lower() for column in self.columns]
        wanted = name.strip().lower().replace("/", ":")
        if wanted in lower:
            return lower.index(wanted)
        indexes = [index for index, column in enumerate(lower) if column.endswith(":" + wanted)]
        if len(indexes) == 1:
            return indexes[0]
        hint = suggestion(name, self.columns) or f"the columns are {', '.join(self.columns)}"
        raise UserError("UnknownName", f"the table of runs has no column '{name}'", hint=hint)


def table_of(runs: Sequence[Run]) -> Table:
    """Return the table of runs; a run with several trainings has a row for each."""
    differing = differing_values(runs)
    pairs = rows_of(runs)
    judged = list(dict.fromkeys(node for _, curves in pairs if curves is not None for node in curves.nodes))
    tested = list(
        dict.fromkeys((result.command, node) for run in runs for result in run.results for node in result.nodes)
    )
    columns = ["run", "state", "epochs", *differing.values()]
    columns += [f"{node} {reason}" for node in judged for reason in ("best", "last")]
    columns += [f"{node} {command}" for command, node in tested]
    table = Table([*columns, "seconds", "started"], values=len(differing))
    for run, curves in pairs:
        values = run.values
        row: list[Cell] = [_name(run, curves), run.state, _epochs(curves)]
        row += [values.get(name, "") for name in differing]
        row += [value for node in judged for value in _judged(curves, node)]
        row += [_result(run, command, node) for command, node in tested]
        table.rows.append([*row, run.seconds, f"{run.started:%Y-%m-%d %H:%M:%S}" if run.started else ""])
    return table


def rows_of(runs: Sequence[Run]) -> list[tuple[Run, Curves | None]]:
    """Return the run and the training of each row of the table; a run without trainings has a row, too."""
    return [(run, curves) for run in runs for curves in (run.curves or [None])]


def differing_values(runs: Sequence[Run]) -> dict[str, str]:
    """Return the names of values that are not the same in all runs, by name in lower case.

    A variable stands for what is written with it. Of several values that differ in the same way, the first one stands
    for all. The folder of a run does not count.
    """
    configured = [run for run in runs if run.settings]
    if len(configured) < 2:
        return {}
    spelling = {lower: name for run in configured for lower, name in _used(run)}
    values = [{setting.name.lower(): setting for setting in run.settings} for run in configured]
    differing: dict[str, Texts] = {}
    for lower in spelling:
        if lower.rpartition(":")[2] not in NEVER_SHOWN and not lower.startswith(TRACKING):
            settings = [value.get(lower) for value in values]
            texts = tuple(
                _without_folder(run, setting.text if setting is not None else None)
                for run, setting in zip(configured, settings, strict=True)
            )
            if len(set(texts)) > 1:
                differing[lower] = texts
    variables = {lower.rpartition(":")[2] for lower in differing}
    independent = {
        lower: texts
        for lower, texts in differing.items()
        if not _is_written_with([value.get(lower) for value in values], variables)
        and not any(_follows(texts, variable) for name, variable in differing.items() if name != lower)
    }
    first: dict[Texts, str] = {}
    for lower, texts in independent.items():
        first.setdefault(texts, lower)
    return {lower: spelling[lower] for lower in first.values()}


def differing_texts(runs: Sequence[Run]) -> dict[int, str]:
    """Return the values that are not the same in all runs as one text for each run, by its `id`."""
    names = list(differing_values(runs).items())[:MAX_LABEL]
    ends = [name.rpartition(":")[2] for _, name in names]
    shown = [end if ends.count(end) == 1 else name for end, (_, name) in zip(ends, names, strict=True)]
    return {
        id(run): ", ".join(
            f"{name}={_short(run.values[lower])}"
            for (lower, _), name in zip(names, shown, strict=True)
            if lower in run.values
        )
        for run in runs
    }


def _is_written_with(settings: Sequence[Setting | None], variables: Set[str]) -> bool:
    """Return True if the texts of a value differ only where variables stand.

    Args:
        settings: The value in each run.
        variables: The last parts of the names of values that differ, in lower case.
    """
    known = [setting for setting in settings if setting is not None]
    if len(known) < len(settings) or max(len(setting.text) for setting in known) > MAX_WRITTEN:
        return False
    used = [
        {step.name.lower(): step.text for step in setting.origins if step.kind == "variable" and "$" not in step.text}
        for setting in known
    ]
    names = [name for name in used[0] if name in variables and all(name in texts for texts in used)]
    return _is_one_template(
        [setting.text for setting in known], [[texts[name] for texts in used] for name in names if used[0][name]]
    )


def _is_one_template(texts: Sequence[str], variables: Sequence[Sequence[str]]) -> bool:
    """Return True if one text with holes gives all texts, where each hole is filled with one of the variables.

    Args:
        texts: One text for each run.
        variables: For each variable its text in each run.
    """
    waiting, seen = [(0,) * len(texts)], set[tuple[int, ...]]()
    while waiting:
        places = waiting.pop()
        if all(place == len(text) for place, text in zip(places, texts, strict=True)):
            return bool(variables)
        if places in seen:
            continue
        seen.add(places)
        if len({text[place : place + 1] for place, text in zip(places, texts, strict=True)}) == 1:
            waiting.append(tuple(place + 1 for place in places))
        waiting += [
            tuple(place + len(part) for place, part in zip(places, parts, strict=True))
            for parts in variables
            if all(text.startswith(part, place) for text, place, part in zip(texts, places, parts, strict=True))
        ]
    return False


def _follows(texts: Texts, variable: Texts) -> bool:
    """Return True if the texts are one text with those of a variable in it: `2:$hidden$:3`."""
    templates = {
        re.sub(rf"(?<![\w.]){re.escape(part)}(?![\w.])", "\0", text) if part else text
        for text, part in zip(texts, variable, strict=True)
        if text is not None and part is not None
    }
    return len(templates) == 1 and "\0" in (template := templates.pop()) and template != "\0"


def _used(run: Run) -> Iterator[tuple[str, str]]:
    """Return the names of values, in lower case and as written; commands that the run does not run are left out."""
    listed = {name.strip().lower() for name in run.values.get("command", "train").split(":")}
    commands = {name.removesuffix(":action") for name, _ in run.spellings() if re.fullmatch("[^:]+:action", name)}
    for lower, name in run.spellings():
        if lower.partition(":")[0] not in commands - listed:
            yield lower, name


def _without_folder(run: Run, text: str | None) -> str | None:
    if text is None:
        return None
    folder = str(run.path.parent)
    for prefix in dict.fromkeys((str(run.path.parent.absolute()), folder)):
        if len(prefix) > 1:
            text = re.sub(rf"(?<![^/\s\"]){re.escape(prefix)}(?![^/\s\"])", ".", text)
    return text


def _name(run: Run, curves: Curves | None) -> str:
    return run.name if curves is None or len(run.curves) == 1 else f"{run.name}: {curves.command}"


def _epochs(curves: Curves | None) -> str:
    if curves is None:
        return ""
    done = max(curves.epochs, default=0)
    return f"{done}/{curves.wanted}" if curves.wanted else str(done)


def _judged(curves: Curves | None, node: str) -> tuple[float | None, float | None]:
    return (None, None) if curves is None else (curves.best(node), curves.last(node))


def _result(run: Run, command: str, node: str) -> float | None:
    nodes = [result.nodes[node] for result in run.results if result.command == command and node in result.nodes]
    return nodes[-1] if nodes else None


def select(table: Table, conditions: Sequence[str], order: str | None) -> Table:
    """Return the rows that satisfy every condition, sorted.

    Args:
        conditions: `NAME=VALUE`, also with `!=`, `<`, `<=`, `>`, `>=`, and `~` for a part of the text.
        order: the column to sort by; with `-` in front, the greatest first. None: as they are. Empty cells come last.

    Raises:
        UserError: a condition cannot be read, or names no column.
    """
    rows = table.rows
    for condition in conditions:
        match = CONDITION.fullmatch(condition.strip())
        if match is None:
            hint = "write NAME=VALUE, NAME<VALUE or NAME~PART, for instance 'state=completed'"
            raise UserError("UnknownName", f"'{condition}' is no condition", hint=hint)
        place = table.place(match[1].strip())
        rows = [row for row in rows if _holds(row[place], match[2], match[3].strip())]
    if order is not None:
        place = table.place(order.removeprefix("-"))
        there = [row for row in rows if row[place] not in (None, "")]
        there.sort(key=lambda row: _key(row[place]), reverse=order.startswith("-"))
        rows = there + [row for row in rows if row[place] in (None, "")]
    return Table(table.columns, rows, table.values)


def chosen(table: Table, names: Sequence[str]) -> Table:
    """Return the table with the column of the runs and those that are named, in this order.

    Args:
        table: The table.
        names: Columns; the end of a name is enough.

    Raises:
        UserError: There is no such column, or there are several.
    """
    places = list(dict.fromkeys([0, *(table.place(name) for name in names)]))
    return Table([table.columns[place] for place in places], [[row[place] for place in places] for row in table.rows])


def with_short_names(table: Table) -> Table:
    """Return the table with the last name of each path as its column, where that is the only one."""
    ends = [column.rpartition(":")[2] for column in table.columns]
    columns = [end if ends.count(end) == 1 else column for column, end in zip(table.columns, ends, strict=True)]
    return Table(columns, table.rows, table.values)


def for_people(table: Table) -> Table:
    """Return the table with short texts, and with the values that most runs have, if there are too many."""
    places = range(FIRST, FIRST + table.values)
    filled = sorted(places, key=lambda place: -sum(row[place] != "" for row in table.rows))[:MAX_VALUES]
    kept = [place for place in range(len(table.columns)) if place not in places or place in filled]
    rows = [[_short(row[place]) for place in kept] for row in table.rows]
    return Table([table.columns[place] for place in kept], rows, len(filled))


def left_out(table: Table) -> str:
    """Return a sentence about the values that `for_people` leaves out; empty: there are none."""
    extra = table.values - MAX_VALUES
    return f"{extra} more values differ; --format csv has them, and cntkpy diff shows two runs." if extra > 0 else ""


def _short(cell: Cell) -> Cell:
    return shorten(cell, MAX_TEXT) if isinstance(cell, str) else cell


def as_number(cell: Cell) -> float | None:
    """Return the number of a cell; a text may be one."""
    if isinstance(cell, str):
        try:
            cell = float(cell.partition("/")[0])
        except ValueError:
            return None
    return None if cell is None or math.isnan(cell) else cell


def _key(cell: Cell) -> tuple[int, float, str]:
    number = as_number(cell)
    return (1, 0.0, str(cell)) if number is None else (0, number, "")


def _holds(cell: Cell, sign: str, wanted: str) -> bool:
    if sign == "~":
        return wanted.lower() in str(cell).lower()
    left, right = as_number(cell), as_number(wanted)
    if left is None or right is None:
        same = ("" if cell is None else str(cell)).lower() == wanted.lower()
        return same if sign == "=" else not same if sign == "!=" else False
    return SIGNS[sign](left, right)


def best_row(table: Table, trials: Mapping[int, float] | None = None) -> int | None:
    """Return the place of the best row: the least value of the first criterion; None: there is none, or one row only.

    Args:
        table: The table; rows of runs that failed count only where there are no others.
        trials: Of a sweep, what is to be small by the places of rows, in place of the first criterion.
    """
    first = FIRST + table.values
    if len(table.rows) < 2 or (trials is None and not table.columns[first].endswith(" best")):
        return None
    values = {place: as_number(row[first]) for place, row in enumerate(table.rows)} if trials is None else trials
    known = {place: value for place, value in values.items() if value is not None and math.isfinite(value)}
    sound = {place: value for place, value in known.items() if table.rows[place][1] in ("completed", "running")}
    candidates = sound or known
    return min(candidates, key=candidates.__getitem__, default=None)
