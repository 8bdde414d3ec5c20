"""The padded shape of a minibatch, and the sizes that shapes have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
        secondary: time steps on the other axes of a network with several; each sequence then has a slot of its own.
        packed: where sequences share slots on some axes, the slots on each; 0: each sequence has its own. Else empty.
    """

    steps: int
    slots: int
    sparse: Sizes = ()
    secondary: tuple[int, ...] = ()
    packed: tuple[int, ...] = ()

    @property
    def grids(self) -> list[tuple[int, int]]:
        """Steps and slots on each axis."""
        steps = (self.steps, *self.secondary)
        slots = (shared or self.slots for shared in self.packed or (0,) * len(steps))
        return list(zip(steps, slots, strict=True))

    @property
    def cells(self) -> int:
        """Steps times slots, of all axes."""
        return sum(steps * slots for steps, slots in self.grids)

    @property
    def is_frames(self) -> bool:
        """Return whether it is that of single frames."""
        return self.steps == 1 and not self.secondary

    @cached_property
    def work(self) -> float:
        """Return the time that a minibatch of this shape takes, relative to others; see `work_of`."""
        return float(work_of(np.array(self.row, np.float64), len(self.secondary), len(self.sparse)))

    @property
    def row(self) -> list[int]:
        """Steps, slots, steps on other axes, distinct elements and then entries of the sparse inputs, `packed`."""
        distinct, entries = ([size[k] for size in self.sparse] for k in range(2))
        return [self.steps, self.slots, *self.secondary, *distinct, *entries, *self.packed]

    @classmethod
    def of_row(cls, row: Sequence[int], secondary: int, sparse: int) -> "Shape":
        """Return the inverse of `row`, for so many other axes and sparse inputs."""
        _, _, *remaining = row
        distinct, entries = (
            remaining[secondary : secondary + sparse],
            remaining[secondary + sparse : secondary + 2 * sparse],
        )
        sizes = tuple(zip(distinct, entries, strict=True))
        return cls(row[0], row[1], sizes, tuple(remaining[:secondary]), tuple(remaining[secondary + 2 * sparse :]))

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        extras = [self.secondary, self.packed] if self.packed else [self.secondary] if self.secondary else []
        return [self.steps, self.slots, self.sparse, *extras]

    @classmethod
    def from_json(cls, saved: Sequence[Any]) -> "Shape":
        """Return the inverse of `to_json`."""
        sparse = tuple((distinct, entries) for distinct, entries in saved[2])
        return cls(saved[0], saved[1], sparse, *(tuple(sizes) for sizes in saved[3:5]))

    def holds(self, shape: "Shape", padding: float = np.inf) -> bool:
        """Return whether a minibatch of another shape fits into this one, with at most `padding` times its cells."""
        pairs = list(zip(self.sparse, shape.sparse, strict=True))
        return (
            shape.steps <= self.steps
            and shape.slots <= self.slots
            and all(theirs <= mine for mine, theirs in zip(self.secondary, shape.secondary, strict=True))
            and all(theirs <= mine for mine, theirs in zip(self.packed, shape.packed, strict=True))
            and (self.is_frames or self.cells <= padding * shape.cells)
            and all(theirs <= mine for ours, held in pairs for mine, theirs in zip(ours, held, strict=True))
            and all(ours[1] <= max(4, padding) * held[1] for ours, held in pairs)
        )

    def around(self, shape: "Shape") -> "Shape":
        """Return the smallest shape that holds both."""
        return Shape(
            max(self.steps, shape.steps),
            max(self.slots, shape.slots),
            largest((self.sparse, shape.sparse)),
            tuple(map(max, self.secondary, shape.secondary)),
            tuple(map(max, self.packed, shape.packed)),
        )

    def inside(self, shape: "Shape") -> "Shape":
        """Return the fewest steps and slots of the two."""
        secondary, packed = (
            tuple(map(min, *both)) for both in ((self.secondary, shape.secondary), (self.packed, shape.packed))
        )
        return Shape(min(self.steps, shape.steps), min(self.slots, shape.slots), (), secondary, packed)

    def rounded(self, parts: int, slots: bool = True) -> "Shape":
        """Return every size rounded up: steps to one of `parts` sizes per doubling, the rest more coarsely; `slots`,
        too.
        """
        secondary = tuple(round_to(steps, parts) for steps in self.secondary)
        wide = self.slots if not slots or self.steps == 1 else round_to(self.slots, 2 if secondary or parts < 8 else 4)
        packed = tuple(slots and round_to(slots, max(parts, 4)) for slots in self.packed)
        return Shape(round_to(self.steps, parts), wide, round_up(self.sparse), secondary, packed)

    def with_slack(self) -> "Shape":
        """Return a shape that is a little larger."""
        sparse = tuple((round_to(distinct + distinct // 8), round_to(entries)) for distinct, entries in self.sparse)
        secondary = tuple(round_to(steps, 4) for steps in self.secondary)
        packed = tuple(slots and round_to(slots + slots // 8 + 1, 4) for slots in self.packed)
        return Shape(round_to(self.steps, 4), round_to(self.slots + self.slots // 8 + 1, 4), sparse, secondary, packed)

    def in_powers(self) -> "Shape":
        """Return a shape that holds this one, whose sizes are powers of two."""
        sparse = tuple((next_power(distinct), round_to(entries)) for distinct, entries in self.sparse)
        secondary, packed = tuple(map(next_power, self.secondary)), tuple(s and next_power(s) for s in self.packed)
        return Shape(next_power(self.steps), next_power(self.slots), sparse, secondary, packed)


def work_of(rows: NDArray[Any], secondary: int, sparse: int) -> NDArray[np.float64]:
    """Return the time that minibatches take, relative to each other.

    A time step takes as long as some more slots would. The entries of a sample and the distinct elements of a
    minibatch, which are the rows of a gradient, count as far as they add to the work of a cell.

    Args:
        rows: (..., columns), see `Shape.row`.
        others, sparse: number of other axes and of sparse inputs.
    """
    sizes = rows[..., 2:]
    steps = np.concatenate([rows[..., :1], sizes[..., :secondary]], -1)
    distinct, entries = (
        sizes[..., secondary : secondary + sparse],
        sizes[..., secondary + sparse : secondary + 2 * sparse],
    )
    packed = sizes[..., secondary + 2 * sparse :]
    slots = np.where(packed > 0, packed, rows[..., 1:2]) if packed.shape[-1] else rows[..., 1:2]
    return (steps * (slots + STEP_SLOTS)).sum(-1) * (1 + entries.sum(-1) / CELL_ENTRIES) + distinct.sum(-1)


def largest(sizes: Iterable[Sizes]) -> Sizes:
    """Element by element."""
    return tuple((max(u for u, _ in column), max(k for _, k in column)) for column in zip(*sizes, strict=True))


def round_up(sizes: Sizes) -> Sizes:
    """Element by element the next of the series."""
    return tuple((round_to(distinct), round_to(entries)) for distinct, entries in sizes)


def round_to(size: int, parts: int = 2) -> int:
    """Return the next size of a series with `parts` sizes per doubling, for 2: 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    if size <= 2:
        return max(1, size)
    step = max(1, next_power(size) // (2 * parts))
    return -(-size // step) * step


def next_power(size: int) -> int:
    """Return the next power of two."""
    return 1 << (size - 1).bit_length()
