"""Options of `cntkpy convert` about the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, shorten

FEW_CLASSES = 20
"""Whole numbers of a column of labels that are classes in any case."""


@dataclass(frozen=True)
class NamedColumns:
    """Options about the columns of a table.

    Attributes:
        labels: the column with the classes; None: found.
        target: the column with values to be predicted, in place of classes.
        dropped: columns that are left out.
        missing: what stands for missing numbers; None: they are errors.
    """

    labels: str | None = None
    target: str | None = None
    dropped: tuple[str, ...] = ()
    missing: float | None = None

    @property
    def any(self) -> bool:
        """True if there is an option."""
        return self != NamedColumns()

    @property
    def predicted(self) -> str | None:
        """The column of the stream of labels, if it is named."""
        return self.labels if self.labels is not None else self.target

    def check(self, streams: Sequence[object]) -> None:
        """Refuse options that say the same twice.

        Raises:
            ConfigError: labels and target, or one of them and streams, are there.
        """
        if self.missing is not None and not isfinite(self.missing):
            raise ConfigError("BadNumber", f"--missing {self.missing} is not finite", hint="write a number")
        if self.labels is not None and self.target is not None:
            message = "--labels has classes, --target values: they are two ways to read one column"
            raise ConfigError("BadStream", message, hint="use one of them")
        if streams and self.predicted is not None:
            option = "--labels" if self.labels is not None else "--target"
            raise ConfigError(
                "BadStream", f"{option} and --stream both say what the columns are", hint="use one of them"
            )


def refuse_values(path: str, title: str, distinct: int, rows: int) -> None:
    """Refuse whole numbers as classes where they hardly recur, as prices do not.

    Args:
        path: the table.
        title: what the column is called.
        distinct: different values of the column.
        rows: rows of the table.

    Raises:
        UserError: there are nearly as many values as rows.
    """
    if distinct > FEW_CLASSES and 2 * distinct > rows:
        message = f"{path}: column {title} has {distinct:,} different numbers in {rows:,} rows: are they classes?"
        hint = (
            f"for values write --target {shorten(title)}; classes may be listed in a file, one a line, after the table"
        )
        raise UserError("BadStream", message, hint=hint)
