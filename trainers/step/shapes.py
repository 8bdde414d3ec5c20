"""The few shapes to which minibatches are padded: XLA compiles once per shape.

The first shapes fit closely, for data whose minibatches are all alike. Later ones are coarser and foresee what may
come, so that a corpus of sequences of 1 to 200 steps, in whatever order, needs 12 of them at most.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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

    def joined(self, others: Iterable["Shape"]) -> "Shape":
        """A shape that holds this one and all others, with room to spare: its sizes are powers of two."""
        every = (self, *others)
        sparse = tuple((_power(distinct), entries) for distinct, entries in _largest(shape.sparse for shape in every))
        lengths = tuple(_power(max(column)) for column in zip(*(s.others for s in every), strict=True))
        return Shape(_power(max(s.steps for s in every)), _power(max(s.slots for s in every)), sparse, lengths)


@dataclass
class Shapes:
    """The shapes in use; grows as minibatches are met that fit into none of them.

    Attributes:
        known: the shapes, the one with the fewest cells first.
        cells, slots, sparse: the largest that minibatches had so far, before padding.
    """

    known: list[Shape] = field(default_factory=list[Shape])
    cells: int = 0
    slots: int = 0
    sparse: Sizes = ()

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        return [[shape.to_json() for shape in self.known], self.cells, self.slots, self.sparse]

    @classmethod
    def from_json(cls, saved: Sequence[Any]) -> "Shapes":
        """The inverse of `to_json`."""
        known, cells, slots, sparse = saved
        return cls([Shape.from_json(shape) for shape in known], cells, slots, tuple(map(tuple, sparse)))

    def fit(self, shape: Shape, nominal: int, *, slots_stay: bool = False, exact: bool = False) -> Shape:
        """The shape to pad a minibatch to.

        Args:
            shape: its own.
            nominal: the usual number of samples; a minibatch of single frames that is a little shorter gets that many
                slots, because only the last one of a sweep differs from the others.
            slots_stay: no slots may be added, because they go on in the next minibatch.
            exact: neither slots nor steps may be added.
        """
        most, self.slots = self.slots, max(self.slots, shape.slots)
        self.cells = max(self.cells, shape.cells)
        self.sparse = _largest((self.sparse, shape.sparse)) if self.sparse else shape.sparse
        waste = _permitted_waste(len(self.known))
        fixed = slots_stay or exact
        frames = shape.steps == 1 and not shape.others
        full = not fixed and frames and 2 * shape.slots > nominal >= shape.slots  # usual for frames
        wanted = shape.slots if fixed else nominal if full and waste < math.inf else None
        usable = [one for one in self.known if wanted in (None, one.slots)]
        for one in usable:
            if one.holds(shape, waste) and ((one.steps, one.others) == (shape.steps, shape.others) or not exact):
                return one
        if full:
            made = Shape(1, nominal, _rounded(shape.sparse))
        elif len(self.known) < CLOSE:
            slots = shape.slots if frames else bucket(shape.slots)
            others = tuple(bucket(steps, 4) for steps in shape.others)
            made = Shape(bucket(shape.steps, 4), slots, _rounded(shape.sparse), others)
        elif shape.others:
            steps, others = _power(shape.steps), tuple(map(_power, shape.others))
            made = Shape(steps, bucket(max(shape.slots, self.slots)), _rounded(shape.sparse), others)
        else:
            made = self._foreseeing(shape, growing=shape.slots > most, waste=waste)
        if waste == math.inf:
            made = made.joined(usable)
        if fixed:
            made = replace(made, slots=shape.slots, steps=shape.steps if exact else made.steps)
            made = replace(made, others=shape.others if exact else made.others)
        self.known.append(made)
        self.known.sort(key=lambda one: one.cells)
        return made

    def _foreseeing(self, shape: Shape, growing: bool, waste: float) -> Shape:
        """A shape for minibatches of about so many steps, which are expected to fill as many cells as any so far."""
        steps = _power(shape.steps)
        if steps > max(one.steps for one in self.known):  # longer than any before: what comes may be longer still
            steps <<= sum(len(self.known) >= count for count in GENEROUS)
        expected = bucket(max(shape.slots, min(self.cells // max(1, steps // 2), self.slots * (1 + growing))))
        if waste < math.inf:
            expected = min(expected, int(waste * shape.cells) // steps)
        slots = max(bucket(shape.slots), expected)
        share = max(1.0, steps * slots / self.cells)
        return Shape(steps, slots, tuple((_power(math.ceil(u * share)), bucket(k)) for u, k in self.sparse))


CLOSE = 3
"""So many shapes fit closely."""


GENEROUS = (7, 9)
"""From so many shapes on, the number of steps of a shape is once more doubled where sequences get longer."""


def _permitted_waste(shapes: int) -> float:
    """How many times too large a shape may be, so that few compilations are needed: more and more, then anything."""
    return 2.0 if shapes < CLOSE else 4.0 if shapes < 7 else 8.0 if shapes < 11 else math.inf


def _largest(sizes: Iterable[Sizes]) -> Sizes:
    """Element by element."""
    return tuple((max(u for u, _ in column), max(k for _, k in column)) for column in zip(*sizes, strict=True))


def _rounded(sizes: Sizes) -> Sizes:
    """Element by element the next of the series."""
    return tuple((bucket(distinct), bucket(entries)) for distinct, entries in sizes)


def bucket(size: int, parts: int = 2) -> int:
    """The next size of a series with `parts` sizes per doubling, for 2: 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    if size <= 2:
        return max(1, size)
    step = max(1, _power(size) // (2 * parts))
    return -(-size // step) * step


def _power(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()
