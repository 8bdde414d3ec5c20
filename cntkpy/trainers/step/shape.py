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
        packed: where sequences share slots on some axes, the slots on each; 0: each sequence has its own. Else empty.
    """

    steps: int
    slots: int
    sparse: Sizes = ()
    others: tuple[int, ...] = ()
    packed: tuple[int, ...] = ()

    @property
    def grids(self) -> list[tuple[int, int]]:
        """Steps and slots on each axis."""
        steps = (self.steps, *self.others)
        slots = (shared or self.slots for shared in self.packed or (0,) * len(steps))
        return list(zip(steps, slots, strict=True))

    @property
    def cells(self) -> int:
        """Steps times slots, of all axes."""
        return sum(steps * slots for steps, slots in self.grids)

    @property
    def work(self) -> float:
        """The time that a minibatch of this shape takes, relative to others; see `work_of`."""
        return float(work_of(np.array(self.row, np.float64), len(self.others), len(self.sparse)))

    @property
    def row(self) -> list[int]:
        """Steps, slots, steps on other axes, distinct elements and then entries of the sparse inputs, `packed`."""
        distinct, entries = ([size[k] for size in self.sparse] for k in range(2))
        return [self.steps, self.slots, *self.others, *distinct, *entries, *self.packed]

    @classmethod
    def of_row(cls, row: Sequence[int], others: int, sparse: int) -> "Shape":
        """The inverse of `row`, for so many other axes and sparse inputs."""
        _, _, *rest = row
        distinct, entries = rest[others : others + sparse], rest[others + sparse : others + 2 * sparse]
        sizes = tuple(zip(distinct, entries, strict=True))
        return cls(row[0], row[1], sizes, tuple(rest[:others]), tuple(rest[others + 2 * sparse :]))

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        more = [self.others, self.packed] if self.packed else [self.others] if self.others else []
        return [self.steps, self.slots, self.sparse, *more]

    @classmethod
    def from_json(cls, saved: Sequence[Any]) -> "Shape":
        """The inverse of `to_json`."""
        sparse = tuple((distinct, entries) for distinct, entries in saved[2])
        return cls(saved[0], saved[1], sparse, *(tuple(more) for more in saved[3:5]))

    def holds(self, other: "Shape", padding: float = np.inf) -> bool:
        """Whether a minibatch of the other shape fits into this one, which has at most `padding` times its cells."""
        pairs = list(zip(self.sparse, other.sparse, strict=True))
        return (
            other.steps <= self.steps
            and other.slots <= self.slots
            and all(theirs <= mine for mine, theirs in zip(self.others, other.others, strict=True))
            and all(theirs <= mine for mine, theirs in zip(self.packed, other.packed, strict=True))
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
            tuple(map(max, self.packed, other.packed)),
        )

    def inside(self, other: "Shape") -> "Shape":
        """The fewest steps and slots of the two."""
        others, packed = (tuple(map(min, *both)) for both in ((self.others, other.others), (self.packed, other.packed)))
        return Shape(min(self.steps, other.steps), min(self.slots, other.slots), (), others, packed)

    def rounded(self, parts: int, slots: bool = True) -> "Shape":
        """Every size rounded up: steps to one of `parts` sizes per doubling, the rest more coarsely; `slots`, too."""
        others = tuple(round_to(steps, parts) for steps in self.others)
        wide = self.slots if not slots or self.steps == 1 else round_to(self.slots, 2 if others or parts < 8 else 4)
        packed = tuple(slots and round_to(slots, max(parts, 4)) for slots in self.packed)
        return Shape(round_to(self.steps, parts), wide, round_up(self.sparse), others, packed)

    def with_slack(self) -> "Shape":
        """A shape that is a little larger."""
        sparse = tuple((round_to(distinct + distinct // 8), round_to(entries)) for distinct, entries in self.sparse)
        others = tuple(round_to(steps, 4) for steps in self.others)
        packed = tuple(slots and round_to(slots + slots // 8 + 1, 4) for slots in self.packed)
        return Shape(round_to(self.steps, 4), round_to(self.slots + self.slots // 8 + 1, 4), sparse, others, packed)

    def in_powers(self) -> "Shape":
        """A shape that holds this one, whose sizes are powers of two."""
        sparse = tuple((next_power(distinct), round_to(entries)) for distinct, entries in self.sparse)
        others, packed = tuple(map(next_power, self.others)), tuple(s and next_power(s) for s in self.packed)
        return Shape(next_power(self.steps), next_power(self.slots), sparse, others, packed)


def work_of(rows: NDArray[Any], others: int, sparse: int) -> NDArray[np.float64]:
    """The time that minibatches take, relative to each other.

    A time step takes as long as some more slots would. The entries of a sample and the distinct elements of a
    minibatch, which are the rows of a gradient, count as far as they add to the work of a cell.

    Args:
        rows: (..., columns), see `Shape.row`.
        others, sparse: number of other axes and of sparse inputs.
    """
    rest = rows[..., 2:]
    steps = np.concatenate([rows[..., :1], rest[..., :others]], -1)
    distinct, entries = rest[..., others : others + sparse], rest[..., others + sparse : others + 2 * sparse]
    packed = rest[..., others + 2 * sparse :]
    slots = np.where(packed > 0, packed, rows[..., 1:2]) if packed.shape[-1] else rows[..., 1:2]
    return (steps * (slots + STEP_SLOTS)).sum(-1) * (1 + entries.sum(-1) / CELL_ENTRIES) + distinct.sum(-1)


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
