"""The padded shape of a minibatch, and the sizes that shapes have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

STEP = 8
"""Slots whose work takes as long as beginning a time step."""

ENTRIES = 16
"""Entries of a sparse sample whose work takes as long as the rest of its cell."""

Sizes = tuple[tuple[int, int], ...]


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
        """How long a minibatch of this shape takes, beside others.

        A time step takes as long as some slots more would. The entries of a sample and the distinct elements of a
        minibatch, which are the rows of a gradient, count as far as they add to the work of a cell.
        """
        entries = sum(k for _, k in self.sparse)
        steps = self.steps + sum(self.others)
        return steps * (self.slots + STEP) * (1 + entries / ENTRIES) + sum(u for u, _ in self.sparse)

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        return [self.steps, self.slots, self.sparse, *([self.others] if self.others else [])]

    @classmethod
    def from_json(cls, saved: Sequence[Any]) -> "Shape":
        """The inverse of `to_json`."""
        others = tuple(saved[3]) if len(saved) > 3 else ()
        return cls(saved[0], saved[1], tuple((distinct, entries) for distinct, entries in saved[2]), others)

    def holds(self, other: "Shape", waste: float = 4.0) -> bool:
        """Whether a minibatch of the other shape fits into this one, which has at most `waste` times its cells."""
        pairs = list(zip(self.sparse, other.sparse, strict=True))
        return (
            other.steps <= self.steps
            and other.slots <= self.slots
            and all(theirs <= mine for mine, theirs in zip(self.others, other.others, strict=True))
            and ((self.steps == 1 and not self.others) or self.cells <= waste * other.cells)
            and all(theirs <= mine for ours, others in pairs for mine, theirs in zip(ours, others, strict=True))
            and all(ours[1] <= max(4, waste) * others[1] for ours, others in pairs)
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
        others = tuple(map(min, self.others, other.others))
        return Shape(min(self.steps, other.steps), min(self.slots, other.slots), (), others)

    def roomy(self) -> "Shape":
        """A shape that is a little larger."""
        sparse = tuple((bucket(distinct + distinct // 8), bucket(entries)) for distinct, entries in self.sparse)
        lengths = tuple(bucket(steps, 4) for steps in self.others)
        return Shape(bucket(self.steps, 4), bucket(self.slots + self.slots // 8 + 1, 4), sparse, lengths)

    def joined(self, others: Iterable["Shape"]) -> "Shape":
        """A shape that holds this one and all others, with room to spare: its sizes are powers of two."""
        every = (self, *others)
        sparse = tuple((power(distinct), entries) for distinct, entries in largest(shape.sparse for shape in every))
        lengths = tuple(power(max(column)) for column in zip(*(s.others for s in every), strict=True))
        return Shape(power(max(s.steps for s in every)), power(max(s.slots for s in every)), sparse, lengths)


def largest(sizes: Iterable[Sizes]) -> Sizes:
    """Element by element."""
    return tuple((max(u for u, _ in column), max(k for _, k in column)) for column in zip(*sizes, strict=True))


def rounded(sizes: Sizes) -> Sizes:
    """Element by element the next of the series."""
    return tuple((bucket(distinct), bucket(entries)) for distinct, entries in sizes)


def bucket(size: int, parts: int = 2) -> int:
    """The next size of a series with `parts` sizes per doubling, for 2: 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    if size <= 2:
        return max(1, size)
    step = max(1, power(size) // (2 * parts))
    return -(-size // step) * step


def power(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()
