"""Write a configuration that trains on a table, and the lists of its categories."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, printable, shorten, suggestion
from cntkpy.cntk_config.base.extras import need
from cntkpy.cntk_config.base.files import is_file, is_url
from cntkpy.cntk_config.base.writing import atomic_write, not_written, shown
from cntkpy.cntk_config.parameters import ConfigParameters

if TYPE_CHECKING:
    from cntkpy.readers.formats.tables.files import TableFile

    from .plan import Plan

EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def make_config(
    path: str, target: str, task: str | None, dropped: Sequence[str], kinds: Sequence[str], output: str | None
) -> int:
    """Write the configuration and say what is in it and what to do with it; return the exit status.

    Args:
        path: the table: CSV, TSV, Parquet or Arrow.
        target: the column that is predicted.
        task: "regression" or "classification"; None: by the values of the target.
        dropped: columns that are left out.
        kinds: NAME=number or NAME=category each.
        output: the configuration; None: the name of the table with the ending .cntk, in the current folder.

    Raises:
        UserError: the table cannot be trained on. ConfigError: the options, or a file that is there.
    """
    need("tables", "new config")
    from .plan import plan_of
    from .text import stream_names, text_of

    table = _opened(path)
    asked = dict(_kind_of_option(text) for text in kinds)
    plan = plan_of(path, table, target, task, dropped, asked)
    config = Path(output) if output is not None else Path(Path(path).name.split(".")[0] + ".cntk")
    classes = config.with_suffix(".classes")
    for file in (config, classes):
        if file.exists() or file.is_symlink():
            hint = "move it away, or name another file: --output NAME.cntk"
            raise ConfigError("CannotWrite", f"there is a {shown(file)} already", None, hint)
    text = text_of(plan, config.stem, classes.as_posix())
    _check_names(text, plan)
    lists = {name: [*category.names, "<missing>", "<other>"] for name, category in stream_names(plan).items()}
    if plan.classes:
        lists["target"] = plan.classes
    try:
        if lists:
            classes.mkdir(parents=True)
        for name, names in lists.items():
            with atomic_write(classes / f"{name}.txt") as file:
                file.write("".join(f"{line}\n" for line in names).encode("utf-8"))
        with atomic_write(config) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise ConfigError("CannotWrite", not_written(error, str(config))) from None
    for line in _summary(plan, config):
        print(printable(line))
    return 0


def _opened(path: str) -> TableFile:
    from cntkpy.commands.tools.previews.forms import form_of
    from cntkpy.commands.tools.previews.tables import open_table

    if path.lower().endswith(EXCEL):
        hint = "save it as CSV (UTF-8), or in Python: pandas.read_excel(FILE).to_csv('FILE.csv', index=False)"
        raise UserError("UnknownFormat", f"'{path}' is a spreadsheet, which cntkpy does not read", hint=hint)
    if not is_url(path) and not is_file(path):
        near = suggestion(
            path, [str(file) for file in Path(path).parent.glob("*")] if Path(path).parent.is_dir() else []
        )
        raise ConfigError("FileNotFound", f"there is no file '{path}'", None, near)
    form = form_of(path)
    if form not in ("CSV", "Parquet", "Arrow"):
        hint = "tables end in .csv, .tsv, .tab, .parquet or .arrow; other data need a reader section: docs/readers.md"
        raise UserError("UnknownFormat", f"'{path}' is not a table", hint=hint)
    return open_table(path, form)


def _kind_of_option(text: str) -> tuple[str, str]:
    from .plan import unknown_option_value

    name, _, kind = text.rpartition("=")
    if not name or kind not in ("number", "category"):
        raise unknown_option_value(text, ("number", "category"))
    return name, kind


def _check_names(text: str, plan: Plan) -> None:
    """See that the configuration has the names of all columns as the table has them.

    Raises:
        UserError: a name, or the path, cannot be written in a configuration.
    """
    from cntkpy.commands.actions.evaluate import TestParameters
    from cntkpy.commands.context.root import RootParameters
    from cntkpy.readers.formats.composite.parameters import CompositeParameters
    from cntkpy.readers.formats.tables.conditions import BadConditionError, condition_of
    from cntkpy.readers.formats.tables.parameters import CsvParameters

    from .text import stream_names

    expected = [("target", [plan.target.name])]
    expected += [("numbers", [column.name for column in plan.numbers])] * bool(plan.numbers)
    expected += [(stream, [category.column.name]) for stream, category in stream_names(plan).items()]
    odd = [name for _, names in expected for name in names if re.search(r'["`$\n\r]|(?:^|\s)#', name)]
    unclosed = [name for _, names in expected for name in names if _is_unclosed(name)]
    odd += unclosed
    try:
        root = parse(text)
        train = TestParameters(root.section(RootParameters(root).command[0]))
        part = CsvParameters(CompositeParameters(train.reader).deserializers[0])
        condition_of(str(part.filter))
        wrong = [[name] for name in unclosed]
        wrong += [names for stream, names in expected if _names_in(part.input.section(stream)) != names]
        wrong_path = [str(path) for path in part.file] != [plan.path]
    except (UserError, BadConditionError):
        wrong, wrong_path = [odd or [plan.target.name]], not odd
    if wrong_path:
        raise UserError("BadStream", f"the path '{plan.path}' cannot be written in a configuration", hint="rename it")
    if wrong:
        name = (odd or wrong[0])[0]
        hint = 'rename the column, without " ` $ and #; or leave it out: --drop'
        raise UserError("BadStream", f"the column name {name!r} cannot be written in a configuration", hint=hint)


def _is_unclosed(name: str) -> bool:
    """Return whether a name begins with a bracket that it does not close: as a value it would begin a section."""
    return name[:1] in ("(", "[", "{") and any(
        name.count(pair[0]) != name.count(pair[1]) for pair in ("()", "[]", "{}")
    )


def _names_in(section: ConfigParameters) -> list[str]:
    from cntkpy.readers.formats.tables.parameters import TableStreamParameters

    stream = TableStreamParameters(section)
    return [str(name) for name in stream.columns] if stream.columns is not None else [str(stream.alias)]


def _summary(plan: Plan, config: Path) -> Iterator[str]:
    from .plan import CLASSIFICATION, MISSING_CLASS, OTHER_CLASS

    rows = plan.rows
    kind = f"{plan.task} of '{plan.target.name}'"
    if plan.task == CLASSIFICATION:
        kind += f", {len(plan.classes)} classes ({shorten(', '.join(plan.classes), 60)})"
    yield f"{config}: {kind}"
    sizes = f"{rows.training:,} training, {rows.validation:,} validation, {rows.test:,} test"
    yield f"  rows: {sizes}, by random({plan.seed})"
    if rows.without_target:
        yield f"  rows without a target, left out: {rows.without_target:,}"
    if plan.numbers:
        yield f"  numbers: {shorten(', '.join(column.name for column in plan.numbers), 300)}"
    if plan.categories:
        several = (f"{category.column.name} ({len(category.names)})" for category in plan.categories)
        yield f"  categories: {shorten(', '.join(several), 300)}"
    if filled := [f"{column.name} ({column.missing:,})" for column in plan.numbers if column.missing]:
        yield f"  missing numbers: the mean of the training part, and an indicator: {shorten(', '.join(filled), 200)}"
    absent = [f"{item.column.name} ({item.column.missing:,})" for item in plan.categories if item.column.missing]
    if absent:
        yield f"  missing categories: the category {MISSING_CLASS}: {shorten(', '.join(absent), 200)}"
    if plan.categories:
        yield f"  categories that the training part lacks: {OTHER_CLASS}"
    for name, reason in plan.left_out.items():
        yield f"  left out: {name} ({reason})"
    for note in plan.notes:
        yield f"  note: {note}"
    model = Path("models") / f"{config.stem}.model"
    if model.exists():
        yield f"  note: {model} is there, and a run goes on from it: remove models/{config.stem}.model* to train anew"
    run = f"cntkpy run {shlex.quote(str(config))}"
    yield f"  {run}"
    yield f"  {run} command=predict newRows=FILE"
