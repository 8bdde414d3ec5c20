"""Stream of a table, as configured."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TableStream:
    """One stream of a table.

    Attributes:
        columns: the column; several of numbers stand side by side.
        classes: numbers of the names of classes, where the column has texts; filled when they are known.
    """

    name: str
    dim: int
    sparse: bool
    columns: tuple[str, ...]
    defines_mb_size: bool = False
    listed: str | None = None
    """The file that lists the names of classes, if there is one."""
    classes: dict[str, int] = field(default_factory=dict[str, int])
