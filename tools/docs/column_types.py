"""The table of docs/column-types.md that says what columns of other writers become, made by reading their files.

The files are those of tests/readers/formats/tables/writers, where a README says how they were written. The page says
where the table belongs: `<!-- column types -->` ... `<!-- end -->`.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import ArrowDeserializer, MinibatchSource, ParquetDeserializer, StreamDef, StreamDefs
from cntkpy.readers.formats.tables.files import ArrowTable, ParquetTable, TableFile
from cntkpy.readers.formats.tables.nested import nested_names

MARKED = re.compile(r"(<!-- column types -->\n).*?(<!-- end -->)", re.DOTALL)
WRITERS = Path(__file__).resolve().parents[2] / "tests/readers/formats/tables/writers"
_DIMS = (1, 2, 3, 6)
_CLASSES = 3
_LITERALS = ("1", "'b'", "true", "'2026-01-01'", "'2026-01-01 00:00:00Z'", "'01:00:00'")
"""Values that a filter compares a column with: the first that fits."""


class Column(NamedTuple):
    """What a column becomes.

    Attributes:
        dense: values of dim that are read.
        sparse: what a sparse stream has; "" where it is refused.
        filter: whether a filter compares it.
        advice: what the error of a column that no stream takes advises.
    """

    dense: str
    sparse: str
    filter: str
    advice: str


def with_types(page: str) -> str:
    """Return a page with its table as the files are read now."""
    return MARKED.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", page)


@cache
def table() -> str:
    """Return the table in Markdown."""
    lines = ["| written by | type | dense | sparse | filter |", "|---|---|---|---|---|"]
    several: dict[tuple[str, str, Column], list[str]] = {}
    for path in sorted(WRITERS.glob("*.*")):
        if path.suffix in (".parquet", ".arrow"):
            writer = path.stem.partition("-")[0]
            for name, column in columns(path).items():
                several.setdefault((writer, name, column), []).append(path.suffix[1:])
    names = [(writer, name) for writer, name, _ in several]
    for (writer, name, column), endings in sorted(several.items(), key=lambda one: one[0][0]):
        where = writer if names.count((writer, name)) == 1 else f"{writer}, .{', .'.join(endings)}"
        cells = (column.dense or "-", column.sparse or "-", column.filter)
        if column.advice:
            cells = (f"no: {re.sub(r'pyarrow [0-9.]+', 'pyarrow', column.advice)}", "", column.filter)
        lines.append("| " + " | ".join((where, f"`{name}`", *cells)).replace("\n", " ") + " |")
    return "\n".join(lines)


def columns(path: Path) -> dict[str, Column]:
    """Return what the columns of a file become, by their names."""
    try:
        opened = (ParquetTable if path.suffix == ".parquet" else ArrowTable)(str(path))
    except UserError as error:
        return {"Int128": Column("", "", "no", str(error.hint))}
    return {name: _column(path, opened, name) for name in opened.names if name != "row"}


def _column(path: Path, opened: TableFile, name: str) -> Column:
    if fields := nested_names(opened.schema, name):
        return Column("its fields", "its fields", _filter(path, fields[0]), "")
    dense: list[str] = []
    advice = ""
    for dim in _DIMS:
        try:
            lengths, _ = _read(path, StreamDef(field=name, shape=dim))
            dense.append(f"`dim = {dim}`" + (": sequences" if max(lengths) > 1 else ""))
        except UserError as error:
            advice = advice or str(error.hint)
    sparse = ""
    try:
        lengths, values = _read(path, StreamDef(field=name, shape=_CLASSES, is_sparse=True))
        sparse = "sequences of classes" if max(lengths) > 1 else "class" if set(values) == {1} else "indices, values"
    except UserError:
        pass
    return Column(", ".join(dense), sparse, _filter(path, name), "" if dense or sparse else advice)


def _read(path: Path, stream: Any, condition: str | None = None) -> tuple[list[int], list[float]]:
    """Return the lengths of the sequences of a stream, and its values."""
    make = ParquetDeserializer if path.suffix == ".parquet" else ArrowDeserializer
    deserializer = make(str(path), StreamDefs(x=stream), filter=condition)
    source = MinibatchSource(deserializer, randomize=False, max_sweeps=1)
    samples = source.next_minibatch(100)[source["x"]].as_sequences()
    values = [value for one in samples for value in (one.data if stream.is_sparse else one.ravel()).tolist()]
    return [one.shape[0] for one in samples], values


def _filter(path: Path, name: str) -> str:
    for literal in _LITERALS:
        try:
            _read(path, StreamDef(field="row", shape=1), f"`{name}` != {literal} or `{name}` == {literal}")
        except UserError:
            continue
        return "yes"
    return "no"
