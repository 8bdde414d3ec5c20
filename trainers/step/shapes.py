"""The few shapes to which minibatches are padded: XLA compiles once per shape.

Where minibatches can be read ahead, shapes are planned for them (`trainers.step.planning`), and one more is made for
what none of these holds. Where minibatches come one by one, the first shapes fit closely, for data whose minibatches
are all alike. Later ones are coarser and foresee what may come, so that a corpus of sequences of 1 to 200 steps, in
whatever order, needs 12 of them at most.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from trainers.step.planning import WORTH, plan
from trainers.step.shape import Shape, Sizes, bucket, largest, power, rounded

PLANNED, EVALUATIONS = 3, 2
"""Shapes planned for an epoch of training, where later ones may need one more, and for an evaluation."""


@dataclass
class Shapes:
    """The shapes in use; grows as minibatches are met that fit into none of them.

    Attributes:
        known: the shapes, the one with the fewest cells first.
        cells, slots, sparse: the largest that minibatches had so far, before padding.
        plans: by nominal size of a minibatch, the shapes planned for it, and those that were missing.
        planned: by nominal size, how many of them were planned.
        used: those that minibatches were padded to in this process.
    """

    known: list[Shape] = field(default_factory=list[Shape])
    cells: int = 0
    slots: int = 0
    sparse: Sizes = ()
    plans: dict[int, list[Shape]] = field(default_factory=dict[int, list[Shape]])
    planned: dict[int, int] = field(default_factory=dict[int, int])
    used: list[Shape] = field(default_factory=list[Shape], compare=False)

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        plans = [
            [nominal, self.planned[nominal], [shape.to_json() for shape in shapes]]
            for nominal, shapes in self.plans.items()
        ]
        return [[shape.to_json() for shape in self.known], self.cells, self.slots, self.sparse, plans]

    @classmethod
    def from_json(cls, saved: Sequence[Any]) -> "Shapes":
        """The inverse of `to_json`; what earlier versions saved has no plans."""
        known, cells, slots, sparse = saved[:4]
        rest: list[Any] = saved[4] if len(saved) > 4 else []
        plans = {nominal: [Shape.from_json(shape) for shape in shapes] for nominal, _, shapes in rest}
        planned = {nominal: count for nominal, count, _ in rest}
        sizes: Sizes = tuple((distinct, entries) for distinct, entries in sparse)
        return cls([Shape.from_json(shape) for shape in known], cells, slots, sizes, plans, planned)

    def plan(
        self,
        shapes: Sequence[Shape],
        nominal: int,
        *,
        slots_stay: bool = False,
        count: int = PLANNED,
        worth: float = WORTH,
    ) -> None:
        """Choose the shapes for minibatches of a nominal size.

        Args:
            shapes: those of the first of these minibatches.
            nominal, slots_stay: see `fit`.
            count: how many there may be.
            worth: see `trainers.step.planning.plan`.
        """
        usual = [_usual(shape, nominal, fixed=slots_stay) for shape in shapes]
        self.plans[nominal] = plan(usual, count, slots_stay, worth)
        self.planned[nominal] = len(self.plans[nominal])
        self.know(self.plans[nominal])

    def keep(self, sparse: int, others: int) -> None:
        """Forget all if a shape is none of minibatches with so many sparse inputs and other time axes."""
        if any((len(shape.sparse), len(shape.others)) != (sparse, others) for shape in self.known):
            self.known, self.plans, self.planned, self.sparse = [], {}, {}, ()

    def use(self, shape: Shape) -> bool:
        """Note that a minibatch is padded to a shape; returns whether it is the first one."""
        new = shape not in self.used
        if new:
            self.used.append(shape)
        return new

    def know(self, shapes: Sequence[Shape]) -> None:
        """Let minibatches be padded to these shapes, too."""
        self.known += [shape for shape in shapes if shape not in self.known]
        self.known.sort(key=lambda one: one.cells)

    def _fit_planned(self, shape: Shape, nominal: int, slots_stay: bool) -> Shape:
        """The planned shape that a minibatch fits into with least work; else one more, which holds all before it."""
        shapes = self.plans[nominal]
        shape = _usual(shape, nominal, fixed=slots_stay)
        usable = [one for one in shapes if one.slots == shape.slots or not slots_stay]
        holding = [one for one in usable if one.holds(shape, math.inf)]
        if holding:
            return min(holding, key=lambda one: (one.work, one.steps))
        made = reduce(Shape.around, usable, shape)
        if len(shapes) > self.planned[nominal]:
            made = made.joined(())  # each is at least twice as large as the one before
        else:
            made = made.roomy()
            if made.work > RARE * shape.work:
                made = min((one.around(shape) for one in usable), key=lambda one: one.work).roomy()
        made = replace(made, slots=shape.slots) if slots_stay else made
        shapes.append(made)
        self.know([made])
        return made

    def fit(self, shape: Shape, nominal: int, *, slots_stay: bool = False, exact: bool = False) -> Shape:
        """The shape to pad a minibatch to.

        Args:
            shape: its own.
            nominal: the usual number of samples; a minibatch of single frames that is a little shorter gets that many
                slots, because only the last one of a sweep differs from the others.
            slots_stay: no slots may be added, because they go on in the next minibatch.
            exact: neither slots nor steps may be added.
        """
        if not shape.slots:  # all sequences of the minibatch are malformed, and left out
            shape = replace(shape, steps=max(1, shape.steps), slots=1)
        if nominal in self.plans and not exact:
            return self._fit_planned(shape, nominal, slots_stay)
        most, self.slots = self.slots, max(self.slots, shape.slots)
        self.cells = max(self.cells, shape.cells)
        self.sparse = largest((self.sparse, shape.sparse)) if self.sparse else shape.sparse
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
            made = Shape(1, nominal, rounded(shape.sparse))
        elif len(self.known) < CLOSE:
            slots = shape.slots if frames else bucket(shape.slots)
            others = tuple(bucket(steps, 4) for steps in shape.others)
            made = Shape(bucket(shape.steps, 4), slots, rounded(shape.sparse), others)
        elif shape.others:
            steps, others = power(shape.steps), tuple(map(power, shape.others))
            made = Shape(steps, bucket(max(shape.slots, self.slots)), rounded(shape.sparse), others)
        else:
            made = self._foreseeing(shape, growing=shape.slots > most, waste=waste)
        if waste == math.inf:
            made = made.joined(usable)
        if fixed:
            made = replace(made, slots=shape.slots, steps=shape.steps if exact else made.steps)
            made = replace(made, others=shape.others if exact else made.others)
        self.know([made])
        return made

    def _foreseeing(self, shape: Shape, growing: bool, waste: float) -> Shape:
        """A shape for minibatches of about so many steps, which are expected to fill as many cells as any so far."""
        steps = power(shape.steps)
        if steps > max(one.steps for one in self.known):  # longer than any before: what comes may be longer still
            steps <<= sum(len(self.known) >= count for count in GENEROUS)
        expected = bucket(max(shape.slots, min(self.cells // max(1, steps // 2), self.slots * (1 + growing))))
        if waste < math.inf:
            expected = min(expected, int(waste * shape.cells) // steps)
        slots = max(bucket(shape.slots), expected)
        share = max(1.0, steps * slots / self.cells)
        return Shape(steps, slots, tuple((power(math.ceil(u * share)), bucket(k)) for u, k in self.sparse))


RARE = 32
"""How many times as much work a minibatch may become that none of the planned shapes holds."""


def _usual(shape: Shape, nominal: int, fixed: bool) -> Shape:
    """A minibatch of frames that is a little shorter than the others, as they are."""
    frames = shape.steps == 1 and not shape.others
    full = frames and not fixed and 2 * shape.slots > nominal >= shape.slots
    return replace(shape, slots=nominal) if full else shape


CLOSE = 3
"""So many shapes fit closely."""


GENEROUS = (7, 9)
"""From so many shapes on, the number of steps of a shape is once more doubled where sequences get longer."""


def _permitted_waste(shapes: int) -> float:
    """How many times too large a shape may be, so that few compilations are needed: more and more, then anything."""
    return 2.0 if shapes < CLOSE else 4.0 if shapes < 7 else 8.0 if shapes < 11 else math.inf
