"""The padded shape of a minibatch, and the sizes that shapes have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP_SLOTS = 8
"""Slots whose work takes as long as beginning a time step."""

CELL_ENTRIES = 16
"""Entries of a sparse sample whose work takes as long as the rest of its cell."""

Sizes = tuple[tuple[int, int], ...]
"""For each sparse input, distinct elements in a minibatch and entries per sample."""


@dataclass(frozen=True)
class Shape:
    """The padded shape of a minibatch.

    Attributes:
        steps, slots: time steps and parallel sequences.
        sparse: for each sparse input, in order of names, distinct elements in the minibatch and entries per sample.
        others: time steps on the other axes of a network with several; each sequence then has a slot of its own.
    """

    steps: int
    slots: int
    sparse: Sizes = ()
    others: tuple[int, ...] = ()

    @property
    def cells(self) -> int:
        """Steps times slots."""
        return (self.steps + sum(self.others)) * self.slots

    @property
    def work(self) -> float:
        """The time that a minibatch of this shape takes, relative to others; see `work_of`."""
        return float(work_of(np.array(self.row, np.float64), len(self.others), len(self.sparse)))

    @property
    def row(self) -> list[int]:
        """Steps, slots, steps on other axes, distinct elements and then entries of the sparse inputs."""
        return [self.steps, self.slots, *self.others, *(u for u, _ in self.sparse), *(k for _, k in self.sparse)]

    @classmethod
    def of_row(cls, row: Sequence[int], others: int, sparse: int) -> "Shape":
        """The inverse of `row`, for so many other axes and sparse inputs."""
        distinct, entries = row[2 + others : 2 + others + sparse], row[2 + others + sparse :]
        return cls(row[0], row[1], tuple(zip(distinct, entries, strict=True)), tuple(row[2 : 2 + others]))

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        return [self.steps, self.slots, self.sparse, *([self.others] if self.others else [])]

    @classmethod
    def from_json(cls, saved: Sequence[Any]) -> "Shape":
        """The inverse of `to_json`."""
        others = tuple(saved[3]) if len(saved) > 3 else ()
        return cls(saved[0], saved[1], tuple((distinct, entries) for distinct, entries in saved[2]), others)

    def holds(self, other: "Shape", padding: float = np.inf) -> bool:
        """Whether a minibatch of the other shape fits into this one, which has at most `padding` times its cells."""
        pairs = list(zip(self.sparse, other.sparse, strict=True))
        return (
            other.steps <= self.steps
            and other.slots <= self.slots
            and all(theirs <= mine for mine, theirs in zip(self.others, other.others, strict=True))
            and ((self.steps == 1 and not self.others) or self.cells <= padding * other.cells)
            and all(theirs <= mine for ours, others in pairs for mine, theirs in zip(ours, others, strict=True))
            and all(ours[1] <= max(4, padding) * others[1] for ours, others in pairs)
        )

    def around(self, other: "Shape") -> "Shape":
        """The smallest shape that holds both."""
        return Shape(
            max(self.steps, other.steps),
            max(self.slots, other.slots),
            largest((self.sparse, other.sparse)),
            tuple(map(max, self.others, other.others)),
        )

    def inside(self, other: "Shape") -> "Shape":
        """The fewest steps and slots of the two."""
        return Shape(
            min(self.steps, other.steps), min(self.slots, other.slots), (), tuple(map(min, self.others, other.others))
        )

    def rounded(self, parts: int, slots: bool = True) -> "Shape":
        """Every size rounded up: steps to one of `parts` sizes per doubling, the rest more coarsely; `slots`, too."""
        others = tuple(round_to(steps, parts) for steps in self.others)
        wide = self.slots if not slots or self.steps == 1 else round_to(self.slots, 2 if others or parts < 8 else 4)
        return Shape(round_to(self.steps, parts), wide, round_up(self.sparse), others)

    def with_slack(self) -> "Shape":
        """A shape that is a little larger."""
        sparse = tuple((round_to(distinct + distinct // 8), round_to(entries)) for distinct, entries in self.sparse)
        others = tuple(round_to(steps, 4) for steps in self.others)
        return Shape(round_to(self.steps, 4), round_to(self.slots + self.slots // 8 + 1, 4), sparse, others)

    def in_powers(self) -> "Shape":
        """A shape that holds this one, whose sizes are powers of two."""
        sparse = tuple((next_power(distinct), round_to(entries)) for distinct, entries in self.sparse)
        return Shape(next_power(self.steps), next_power(self.slots), sparse, tuple(map(next_power, self.others)))


def work_of(rows: NDArray[Any], others: int, sparse: int) -> NDArray[np.float64]:
    """The time that minibatches take, relative to each other.

    A time step takes as long as some more slots would. The entries of a sample and the distinct elements of a
    minibatch, which are the rows of a gradient, count as far as they add to the work of a cell.

    Args:
        rows: (..., columns), see `Shape.row`.
        others, sparse: number of other axes and of sparse inputs.
    """
    steps = rows[..., 0] + rows[..., 2 : 2 + others].sum(-1)
    distinct, entries = rows[..., 2 + others : 2 + others + sparse], rows[..., 2 + others + sparse :]
    return steps * (rows[..., 1] + STEP_SLOTS) * (1 + entries.sum(-1) / CELL_ENTRIES) + distinct.sum(-1)


def largest(sizes: Iterable[Sizes]) -> Sizes:
    """Element by element."""
    return tuple((max(u for u, _ in column), max(k for _, k in column)) for column in zip(*sizes, strict=True))


def round_up(sizes: Sizes) -> Sizes:
    """Element by element the next of the series."""
    return tuple((round_to(distinct), round_to(entries)) for distinct, entries in sizes)


def round_to(size: int, parts: int = 2) -> int:
    """The next size of a series with `parts` sizes per doubling, for 2: 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    if size <= 2:
        return max(1, size)
    step = max(1, next_power(size) // (2 * parts))
    return -(-size // step) * step


def next_power(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()
