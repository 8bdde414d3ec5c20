"""Decisions about a table: which columns are numbers or categories, which are left out, and what the target is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, shorten, suggestion
from cntkpy.readers.formats.tables.csv.table import CsvTable
from cntkpy.readers.formats.tables.csv.text import MISSING, is_number
from cntkpy.readers.formats.tables.files import TableFile

from .columns import BOOLEAN, DATE, EMPTY, NUMBER, OTHER, TEXT, Column, Rows, drop, look_at

REGRESSION, CLASSIFICATION = "regression", "classification"
MOST_WHOLE_CLASSES, MOST_CLASSES, MOST_CATEGORIES = 20, 1000, 1000
"""Whole numbers of a target that are classes by themselves; classes of a target; categories that have a weight."""
FEWEST_ROWS, MOST_SEEDS = 30, 20
MISSING_CLASS, OTHER_CLASS = "<missing>", "<other>"
_IDENTIFIER = re.compile(r"(?:.*[\W_])?(?:id|index|uuid|guid|key)|.*[a-z]I[dD]|row ?(?:number|no)?", re.IGNORECASE)
_CAMEL_IDENTIFIER = re.compile(r".*[a-z]I[dD]")


@dataclass
class Category:
    """A column of categories and the names that have a class of their own."""

    column: Column
    names: list[str]


@dataclass
class Plan:
    """Decisions that a configuration states.

    Attributes:
        path: the file, as the user names it.
        table: the file, opened.
        target: its column.
        task: REGRESSION or CLASSIFICATION.
        classes: the names of the classes of the target.
        numbered: whether the classes of the target are whole numbers in the file, from 0 on.
        no_targets: texts of the target that are missing values, too.
        numbers: the columns of numbers and booleans.
        categories: the columns of texts.
        left_out: reasons by column.
        rows: rows of each part.
        seed: of the random numbers that divide the rows.
        notes: sentences for the user.
    """

    path: str
    table: TableFile
    target: Column
    task: str
    rows: Rows
    seed: int = 1
    classes: list[str] = field(default_factory=list[str])
    numbered: bool = False
    no_targets: list[str] = field(default_factory=list[str])
    numbers: list[Column] = field(default_factory=list[Column])
    categories: list[Category] = field(default_factory=list[Category])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])


def plan_of(
    path: str, table: TableFile, target: str, task: str | None, dropped: Sequence[str], kinds: Mapping[str, str]
) -> Plan:
    """Choose the columns and the kind of a training on a table.

    Args:
        path: the file, as the user names it.
        table: the file, opened.
        target: the column that is predicted.
        task: REGRESSION or CLASSIFICATION; None: by the values of the target.
        dropped: columns that are left out.
        kinds: "number" or "category" of columns, in place of what their values look like.

    Raises:
        DataError: the file cannot be read, or has no such column.
        ConfigError: options do not go together.
        UserError: the table cannot be trained on; the message says what to change.
    """
    for name in (target, *dropped, *kinds):
        _check_header(table, name)
        table.field(name)
    _check_options(target, dropped, kinds)
    names = [name for name in table.names if name not in dropped]
    names += [name for name in (target, *kinds) if name not in names]  # fields of structs
    rows, columns = look_at(table, target, names, (), 1)
    _check_first_row(table, columns.values())
    chosen = _task_of(columns[target], rows, task)
    guessed = task is None and chosen == CLASSIFICATION and columns[target].kind == NUMBER
    texts = {name for name, kind in kinds.items() if kind == "category"}
    texts |= {target} if chosen == CLASSIFICATION else set()
    no_targets: list[str] = []
    if isinstance(table, CsvTable) and any(columns[name].kind != TEXT for name in texts):
        no_targets = [] if columns[target].kind == TEXT else [text for text in MISSING if text]
        table = CsvTable(path, texts=texts)
    skipped = no_targets if target in texts else ()
    seed, (rows, columns) = _divided(table, target, names, skipped)
    plan = Plan(
        path, table, columns[target], chosen, rows, seed=seed, no_targets=no_targets if chosen == CLASSIFICATION else []
    )
    _set_classes(plan)
    if guessed:
        plan.notes.append(f"'{target}' has few whole numbers, taken as classes; --task regression predicts numbers")
    features = [column for name, column in columns.items() if name != target]
    _check_texts(features, kinds, table.path)
    for column in features:
        _place(plan, column, kinds.get(column.name))
    plan.left_out |= dict.fromkeys(dropped, "--drop")
    if not plan.numbers and not plan.categories:
        raise UserError("NoStreams", f"{table.path} has no column to predict '{target}' from", hint=_why(plan.left_out))
    return plan


def _divided(
    table: TableFile, target: str, names: Sequence[str], no_targets: Sequence[str]
) -> tuple[int, tuple[Rows, dict[str, Column]]]:
    """Return the first seed that gives each part rows, and what `look_at` says with it."""
    for seed in range(1, MOST_SEEDS):
        result = look_at(table, target, names, no_targets, seed)
        if result[0].each:
            return seed, result
    raise UserError("NoData", f"{table.path} has too few rows with a value of '{target}' to divide them")


def _check_header(table: TableFile, name: str) -> None:
    """Refuse the name of a column of a table without a header."""
    if not isinstance(table, CsvTable) or table.first_cells is None or name in table.names:
        return
    number = next(cell for cell in table.first_cells if is_number(cell))
    raise UserError(
        "NoStreams",
        f"{table.path} has no header, for its first row has the number {shorten(number)}: its columns are 1 to "
        f"{len(table.names)}, and none is called '{name}'",
        hint="name a column by its number, or write a header in which no name is a number: y2019, not 2019",
    )


def _check_first_row(table: TableFile, columns: Iterable[Column]) -> None:
    """Refuse a header that counts as a row because a name in it is a number."""
    if not isinstance(table, CsvTable) or (cells := table.first_cells) is None:
        return
    for column in columns:
        name = cells[table.names.index(column.name)].strip() if column.name in table.names else ""
        if column.kind == TEXT and not is_number(name) and all(map(is_number, column.distinct - {name})):
            number = next(cell for cell in cells if is_number(cell))
            message = f"{table.path}: the first row counts as data, for it has the number {shorten(number)}, but its"
            message += f" '{shorten(name)}' stands above numbers: is it a header?"
            raise UserError("NoStreams", message, hint="write names that are no numbers: y2019, not 2019")


def _why(left_out: Mapping[str, str]) -> str:
    return "left out: " + shorten(", ".join(f"{name} ({reason})" for name, reason in left_out.items()), 300)


def _check_options(target: str, dropped: Collection[str], kinds: Mapping[str, str]) -> None:
    if target in dropped:
        raise ConfigError("Conflict", f"--drop {target} leaves the target out", hint="drop other columns")
    for name in kinds:
        if name in dropped or name == target:
            hint = "--task says what the target is" if name == target else "leave one of them out"
            raise ConfigError("Conflict", f"--column {name}={kinds[name]} is for columns to predict from", hint=hint)


def _task_of(target: Column, rows: Rows, task: str | None) -> str:
    """Return the task; an error where the target has no values for it."""
    name = f"the target '{target.name}'"
    if not target.present:
        raise UserError("NoData", f"{name} has no values", hint="name another column: --target NAME")
    if target.kind in (DATE, OTHER, EMPTY):
        hint = "predict a number or a class: make a column of them"
        raise UserError("NoData", f"{name} is {target.stored}, which is neither a number nor a class", hint=hint)
    if len(target.distinct) == 1:
        value = next(iter(target.distinct))
        raise UserError("NoData", f"{name} is '{_shown(value)}' in all rows: there is nothing to learn")
    if rows.all < FEWEST_ROWS:
        message = f"{rows.all} rows have a value of '{target.name}': too few for training, validation and test"
        raise UserError("NoData", message, hint=f"{FEWEST_ROWS} rows at least are needed")
    if target.kind == TEXT:
        if target.otherwise:
            raise _not_plain(target)
        if task == REGRESSION:
            hint = "leave --task out, or write the column as numbers; `cntkpy preview` shows the first rows"
            raise UserError("NoData", f"{name} has texts, such as {_some(target)}: they are no numbers", hint=hint)
        if len(target.distinct) > min(MOST_CLASSES, max(2, target.present // 2)):
            message = (
                f"{name} has {len(target.distinct):,} different texts in {target.present:,} rows: these are no classes"
            )
            raise UserError("NoData", message, hint="name a column with few classes, or one of numbers: --target NAME")
        return CLASSIFICATION
    few = target.kind == BOOLEAN or (target.whole and len(target.distinct) <= MOST_WHOLE_CLASSES)
    if task == CLASSIFICATION and not (target.whole and len(target.distinct) <= MOST_CLASSES):
        hint = "leave --task out: regression predicts numbers"
        raise UserError("NoData", f"{name} has numbers that are no classes, such as {_some(target)}", hint=hint)
    return task or (CLASSIFICATION if few else REGRESSION)


def _some(column: Column) -> str:
    return shorten(", ".join(f"'{_shown(value)}'" for value in sorted(column.distinct)[:3]), 100)


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _not_plain(column: Column) -> UserError:
    return UserError(
        "NoData",
        f"column '{column.name}' has numbers with commas or signs, such as {_some(column)}",
        hint="write 1234.5, for instance in Python: pandas.read_csv(FILE, decimal=',', thousands='.'), then to_csv",
    )


def _set_classes(plan: Plan) -> None:
    """Name the classes of the target."""
    target = plan.target
    if plan.task == REGRESSION:
        return
    if target.kind == TEXT:
        from cntkpy.readers.common.labels import in_order

        plan.classes = in_order(target.distinct)
        unseen = [name for name in plan.classes if not target.counts[name]]
        for name in plan.classes:
            if not fits_a_list(name):
                message = f"the target '{target.name}' has the class {name!r}, which a list of classes cannot have"
                hint = "write the class without # at its start, line ends and blanks around it"
                raise UserError("NoData", message, hint=hint)
    else:  # in a file with types: the numbers are the classes
        if target.low < 0 or target.high >= MOST_CLASSES:
            hint = "write the column as texts"
            message = f"the target '{target.name}' has classes from {target.low:g} to {target.high:g}, not 0, 1, ..."
            raise UserError("NoData", message, hint=hint)
        if plan.table.field(target.name).type not in _whole_types():
            message = f"the target '{target.name}' has classes of the type {target.stored}"
            raise UserError("NoData", message, hint="write them as whole numbers or texts, or use --task regression")
        plan.numbered = True
        boolean = target.kind == BOOLEAN
        plan.classes = ["false", "true"] if boolean else [str(number) for number in range(int(target.high) + 1)]
        unseen = []
    if unseen:
        plan.notes.append(f"no row of the training part has the class {shorten(', '.join(unseen), 100)}")


def _whole_types() -> list[object]:
    from cntkpy.readers.formats.tables.library import arrow

    pa = arrow()
    return [pa.bool_(), *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64))]


def _check_texts(columns: Sequence[Column], kinds: Mapping[str, str], path: str) -> None:
    """Refuse columns of free text, and others that are neither numbers nor categories.

    Raises:
        UserError: it names all of them, and the options that leave them out.
    """
    refused: list[tuple[Column, str]] = []
    for column in columns:
        asked = kinds.get(column.name)
        if asked != "category" and column.kind == TEXT and column.present and column.otherwise:
            raise _not_plain(column)
        if asked == "number" and column.kind not in (NUMBER, BOOLEAN):
            hint = "write numbers, or leave --column out; dates: seconds or days as numbers"
            raise UserError("NoData", f"column '{column.name}' is {column.stored}, not numbers", hint=hint)
        if asked == "category" and column.kind != TEXT:
            hint = "write the column as texts, for instance pandas: .astype(str)"
            raise UserError("NoData", f"{path}: column '{column.name}' is {column.stored}, not texts", hint=hint)
        if asked is None and _is_free_text(column) and not _is_identifier(column):
            refused.append((column, f"{len(column.distinct):,} different texts in {column.present:,} rows"))
        elif column.kind == OTHER:
            refused.append((column, column.stored))
    if refused:
        listed = "; ".join(f"'{column.name}' ({reason}; {_example(column)})" for column, reason in refused)
        options = " ".join(drop(column.name) for column, _ in refused)
        raise UserError(
            "NoData",
            f"columns that are neither numbers nor categories: {shorten(listed, 600)}",
            hint=f"leave them out: {options}"
            + (
                f"; or take texts as categories: --column {shlex.quote(refused[0][0].name + '=category')}"
                if refused[0][0].kind == TEXT
                else ""
            ),
        )


def _example(column: Column) -> str:
    return f"such as '{shorten(min(column.distinct), 30)}'" if column.distinct else "no values that a network takes"


def _is_free_text(column: Column) -> bool:
    return column.kind == TEXT and len(column.distinct) > max(10, column.present // 2)


def _is_identifier(column: Column) -> bool:
    """Return whether a column numbers or names the rows."""
    if column.missing or len(column.distinct) != column.present or column.present < FEWEST_ROWS or column.many:
        return False
    named = _IDENTIFIER.fullmatch(column.name) is not None or _CAMEL_IDENTIFIER.fullmatch(column.name) is not None
    if column.kind == TEXT:
        return named
    counted = column.high - column.low + 1 == column.present
    return column.kind == NUMBER and re.match("u?int", column.stored) is not None and (named or counted)


def _place(plan: Plan, column: Column, asked: str | None) -> None:
    """Put a column among the numbers or categories, or leave it out."""
    if not column.present:
        plan.left_out[column.name] = "no values"
    elif column.kind == DATE:
        plan.left_out[column.name] = "dates are no numbers: make columns such as year, month, weekday"
    elif len(column.distinct) == 1 and not column.missing:
        plan.left_out[column.name] = "the same value in all rows"
    elif asked is None and _is_identifier(column):
        plan.left_out[column.name] = "another value in every row, like an id; --column NAME=KIND keeps it"
    elif column.kind == TEXT:
        listed = [name for name, _ in column.counts.most_common() if fits_a_list(name)]
        listed = [name for name in listed if name not in (MISSING_CLASS, OTHER_CLASS)]  # they are listed in any case
        common = listed[:MOST_CATEGORIES]
        if not listed:
            plan.left_out[column.name] = "no category can stand in a list: they begin with #, or have line ends"
            return
        if count := sum(not fits_a_list(name) for name in column.counts):
            plan.notes.append(f"{count:,} categories of '{column.name}' begin with #, or have line ends: {OTHER_CLASS}")
        if len(listed) > len(common):
            plan.notes.append(
                f"'{column.name}' has {len(column.counts):,} categories: the {MOST_CATEGORIES:,} most frequent ones "
                f"have weights, the others are {OTHER_CLASS}"
            )
        plan.categories.append(Category(column, sorted(common)))
    else:
        plan.numbers.append(column)


def fits_a_list(name: str) -> bool:
    """Return whether a name can be a line of a list of classes."""
    return name == name.strip() != "" and not name.startswith("#") and not re.search(r"[\n\r\0]", name)


def unknown_option_value(text: str, choices: Sequence[str]) -> ConfigError:
    """Return the error of an option NAME=KIND."""
    kind = text.rpartition("=")[2]
    hint = suggestion(kind, choices) or "write --column NAME=number or --column NAME=category"
    return ConfigError("BadChoice", f"--column {text} does not say what a column is", None, hint)
