"""Statistics of the columns of a table: kinds, missing values, ranges, classes, and means of the training part."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.formats.tables.columns import is_number, is_text
from cntkpy.readers.formats.tables.files import TableFile
from cntkpy.readers.formats.tables.filters import draw
from cntkpy.readers.formats.tables.library import arrow, compute

TRAINING, VALIDATION = 0.8, 0.9
"""Rows whose random number is below the first limit are for training, those below the second one for validation."""
MOST_DISTINCT = 1 << 20
"""Different values of a column that are counted."""
NUMBER, BOOLEAN, TEXT, DATE, EMPTY, OTHER = "number", "boolean", "text", "date", "empty", "other"
LARGEST = 1e18
"""Largest number: its square is one of single precision."""
_WRITTEN_OTHERWISE = re.compile(r"[$€£]?\s?[+-]?\d+(?:[.,' ]\d{3})*(?:[.,]\d+)?\s?[$€£%]?")
"""Numbers with decimal commas, separators of thousands, or signs of money and per cent."""


def drop(name: str) -> str:
    """Return the option that leaves a column out, for a shell."""
    return f"--drop{'=' if name.startswith('-') else ' '}{shlex.quote(name)}"


@dataclass
class Column:
    """Statistics of a column in the rows that have a target.

    Attributes:
        name: its name.
        kind: NUMBER, BOOLEAN, TEXT, DATE, EMPTY or OTHER.
        stored: the type in the file.
        present: values that are not missing.
        missing: missing values, in all parts; NaN counts.
        distinct: different values, at most `MOST_DISTINCT`.
        counts: the values of a column of texts in the training part.
        whole: whether all numbers are whole.
        low, high: range of the numbers.
        mean, deviation: of the numbers of the training part.
        otherwise: whether all texts are numbers that are written in another way.
    """

    name: str
    kind: str
    stored: str
    present: int = 0
    missing: int = 0
    distinct: set[Any] = field(default_factory=set[Any])
    counts: Counter[str] = field(default_factory=Counter[str])
    whole: bool = True
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    deviation: float = 0.0
    otherwise: bool = True
    _trained: int = 0
    _squares: float = 0.0

    @property
    def many(self) -> bool:
        """True if the different values are too many to be counted."""
        return len(self.distinct) >= MOST_DISTINCT

    def add(self, array: Any, training: np.ndarray) -> None:
        """Count the values of some rows; training: bool[n], the rows of the training part."""
        if self.kind in (NUMBER, BOOLEAN):
            self._add_numbers(array.cast(arrow().float64()).to_numpy(zero_copy_only=False), training)
        elif self.kind == TEXT:
            self._add_texts(array, training)
        else:
            self.missing += array.null_count
            self.present += len(array) - array.null_count

    def _add_numbers(self, values: np.ndarray, training: np.ndarray) -> None:
        known = ~np.isnan(values)
        numbers = values[known]
        self.missing += len(values) - len(numbers)
        self.present += len(numbers)
        if not len(numbers):
            return
        if np.abs(numbers).max() > LARGEST:
            message = f"column '{self.name}' has infinite values, or values above {LARGEST:g}"
            raise UserError("NoData", message, hint=f"make them missing values, or leave it out: {drop(self.name)}")
        self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
        self.whole = self.whole and bool((numbers == np.floor(numbers)).all())
        if not self.many:
            self.distinct.update(np.unique(numbers).tolist())
        self._add_moments(values[known & training])

    def _add_moments(self, numbers: np.ndarray) -> None:
        """Join the mean and the deviation of more numbers with those so far."""
        if not len(numbers):
            return
        count, mean = len(numbers), float(numbers.mean())
        total, difference = self._trained + count, mean - self.mean
        self._squares += float(((numbers - mean) ** 2).sum()) + difference**2 * self._trained * count / total
        self.mean += difference * count / total
        self._trained = total
        self.deviation = math.sqrt(self._squares / total)

    def _add_texts(self, array: Any, training: np.ndarray) -> None:
        texts = array.cast(arrow().large_string())
        known = texts.drop_null()
        self.missing += texts.null_count
        self.present += len(known)
        if not self.many:
            names = known.unique().to_pylist()
            self.otherwise = self.otherwise and all(_WRITTEN_OTHERWISE.fullmatch(name) for name in names)
            self.distinct.update(names)
            counted = texts.filter(arrow().array(training)).drop_null().value_counts()
            for item in counted.to_pylist():
                self.counts[item["values"]] += item["counts"]


@dataclass
class Rows:
    """Rows with a target: those of the three parts, and those without a target."""

    training: int = 0
    validation: int = 0
    test: int = 0
    without_target: int = 0

    @property
    def each(self) -> bool:
        """True if each part has rows."""
        return self.training > 0 and self.validation > 0 and self.test > 0

    @property
    def all(self) -> int:
        """Rows with a target."""
        return self.training + self.validation + self.test


def kind_of(kind: Any) -> str:
    """Return the kind of a type of Arrow."""
    types = arrow().types
    if types.is_null(kind):
        return EMPTY
    if types.is_boolean(kind):
        return BOOLEAN
    if is_number(kind):
        return NUMBER
    if is_text(kind):
        return TEXT
    return DATE if types.is_temporal(kind) else OTHER


def look_at(
    table: TableFile, target: str, names: Collection[str], no_targets: Collection[str], seed: int
) -> tuple[Rows, dict[str, Column]]:
    """Read a table once and describe its columns.

    Args:
        table: the file.
        target: the column of the target; rows without it do not count.
        names: the columns that are described.
        no_targets: texts of the target that are missing values, too.
        seed: of the numbers that say which part a row belongs to.

    Returns:
        The rows of each part, and the columns by name.

    Raises:
        DataError: the file cannot be read. UserError: a value is infinite.
    """
    columns = {
        name: Column(name, kind_of(table.field(name).type), str(table.stored_field(name).type)) for name in names
    }
    rows, first, pa = Rows(), 0, arrow()
    for group, count in enumerate(table.rows()):
        pieces = table.read(group, list(names))
        arrays = {name: pa.chunked_array(pieces[name], table.field(name).type).combine_chunks() for name in names}
        drawn = draw(first + np.arange(count), seed)
        known = arrays[target].is_valid().to_numpy(zero_copy_only=False)
        if columns[target].kind in (NUMBER, BOOLEAN):
            known &= ~np.isnan(arrays[target].cast(pa.float64()).to_numpy(zero_copy_only=False))
        if no_targets:
            listed = compute().is_in(arrays[target], value_set=pa.array(list(no_targets), arrays[target].type))
            known &= ~listed.to_numpy(zero_copy_only=False)
        first += count
        drawn, chosen = drawn[known], pa.array(known)
        training = drawn < TRAINING
        rows.without_target += count - len(drawn)
        rows.training += int(training.sum())
        rows.validation += int(((drawn >= TRAINING) & (drawn < VALIDATION)).sum())
        rows.test += int((drawn >= VALIDATION).sum())
        for name, column in columns.items():
            column.add(arrays[name].filter(chosen), training)
    return rows, columns
