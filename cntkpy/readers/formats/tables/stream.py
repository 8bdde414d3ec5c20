"""Stream of a table, as configured."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TableStream:
    """One stream of a table.

    Attributes:
        columns: the column; several of numbers stand side by side.
        missing: what stands for missing values: a number for each column; of a sparse stream the name of a class,
            or its number where the column has numbers. Empty: a missing value is an error.
        unlisted: the class of texts that no class is called; None: such a text is an error.
        indicators: the values are 1 where the column has no value, else 0.
        classes: numbers of the names of classes, where the column has texts; filled when they are known.
    """

    name: str
    dim: int
    sparse: bool
    columns: tuple[str, ...]
    defines_mb_size: bool = False
    listed: str | None = None
    """The file that lists the names of classes, if there is one."""
    missing: tuple[str, ...] = ()
    unlisted: str | None = None
    indicators: bool = False
    classes: dict[str, int] = field(default_factory=dict[str, int])
