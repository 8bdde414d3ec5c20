"""The few shapes to which minibatches are padded: XLA compiles a program for each.

The first minibatches of an epoch are read ahead, sorted by length and cut into at most three buckets; from then on the
buckets are fixed. A minibatch that fits into none of them makes one more, which holds all before it. Where minibatches
come one by one, as from a program in Python, the first bucket is a large one, so that few minibatches need another; it
is not padded where all its sequences have equally many steps.
Closer ones are made when padding has taken as long as another program does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.narrowing import is_dict
from cntkpy.readers.common.planned import State
from cntkpy.trainers.step.savings import Savings
from cntkpy.trainers.step.shape import Shape, round_to, round_up, work_of

TRAINING_BUCKETS, EVALUATION_BUCKETS = 3, 2
"""Buckets that are chosen for an epoch of training, and for an evaluation."""

MIN_SAVING, MIN_SAVING_SEVERAL_AXES = 0.08, 0.3
"""Part of the work that one more bucket has to save; programs of several time axes take long to compile."""

MOST_SAVING = 0.5
"""A bucket that saves more than this part of the work is always chosen."""

MOST_ROWS = 256
"""Different shapes among which buckets are cut, in time and memory that grow with the square; more are joined before,
each with its neighbours in length."""

COMPILE_WORK = 3e8
"""Cells times weights that take as long as compiling a program, about."""

MAX_PADDING = 32
"""Largest ratio of the work in a new bucket to a minibatch's own work."""

LATER_PADDING = 8.0
"""Largest ratio of the work in a bucket that holds all before it to a minibatch's own work, for minibatches that come
one by one."""


@dataclass
class Buckets:
    """The buckets in use.

    Attributes:
        known: all of them, the one with the fewest cells first.
        chosen: by nominal size of a minibatch, the buckets chosen for it, and those that were missing.
        counts: by nominal size, how many of them were chosen.
        savings: of closer buckets, for minibatches that came one by one.
        used: those that minibatches were padded to in this process.
    """

    known: list[Shape] = field(default_factory=list[Shape])
    chosen: dict[int, list[Shape]] = field(default_factory=dict[int, list[Shape]])
    counts: dict[int, int] = field(default_factory=dict[int, int])
    savings: Savings = field(default_factory=Savings)
    used: list[Shape] = field(default_factory=list[Shape], compare=False)

    def to_json(self) -> State:
        """JSON-able form."""
        chosen = [
            [minibatch_size, self.counts[minibatch_size], [bucket.to_json() for bucket in buckets]]
            for minibatch_size, buckets in self.chosen.items()
        ]
        saved = [[shape.to_json(), work] for shape, work in self.savings.saved.items()]
        return {"known": [shape.to_json() for shape in self.known], "chosen": chosen, "saved": saved}

    @classmethod
    def from_json(cls, saved: object) -> "Buckets":
        """Return the inverse of `to_json`; of a checkpoint of version 0.1, whose shapes are a list, nothing."""
        if not is_dict(saved):
            return cls()
        buckets = cls([Shape.from_json(shape) for shape in saved["known"]])
        for minibatch_size, count, shapes in saved["chosen"]:
            buckets.chosen[minibatch_size] = [Shape.from_json(shape) for shape in shapes]
            buckets.counts[minibatch_size] = count
        buckets.savings.saved = {Shape.from_json(shape): work for shape, work in saved.get("saved", [])}
        return buckets

    def choose(
        self,
        shapes: Sequence[Shape],
        minibatch_size: int,
        *,
        slots_stay: bool = False,
        most: int = TRAINING_BUCKETS,
        least_saving: float = 0.0,
    ) -> None:
        """Choose the buckets for minibatches of a nominal size.

        Args:
            shapes: those of the first of these minibatches.
            minibatch_size, slots_stay: see `fit`.
            most: how many there may be.
            least_saving: work that one more bucket has to save.
        """
        full = [_is_full(shape, minibatch_size) and not slots_stay for shape in shapes]
        usual = [
            replace(original, slots=minibatch_size) if is_full else original
            for original, is_full in zip(shapes, full, strict=True)
        ]
        self.chosen[minibatch_size] = choose_buckets(usual, most, least_saving, slots_stay)
        self.counts[minibatch_size] = len(self.chosen[minibatch_size])
        self.know(self.chosen[minibatch_size])

    def tighten(self, minibatch_size: int, shapes: Sequence[Shape], within: Sequence[Callable[[Shape], Shape]]) -> None:
        """Take slots that sequences share from the chosen buckets, as far as the minibatches do without.

        Slots that are longer than a minibatch needs hold more sequences.

        Args:
            minibatch_size, shapes: those that the buckets were chosen for.
            within: for each minibatch, its shape with slots as long as those of a bucket.
        """
        chosen = self.chosen[minibatch_size]
        needed = {bucket: tuple(min(1, slots) for slots in bucket.packed) for bucket in chosen}
        for shape, in_bucket in zip(shapes, within, strict=False):
            bucket = self._fit_chosen(shape, minibatch_size, slots_stay=False)
            needed[bucket] = tuple(map(max, needed[bucket], in_bucket(bucket).packed))
        tight = [replace(candidate, packed=slots).rounded(8).packed for candidate, slots in needed.items()]
        self.chosen[minibatch_size] = [
            replace(candidate, packed=tuple(map(min, candidate.packed, slots)))
            for candidate, slots in zip(needed, tight, strict=True)
        ]
        self.known = [candidate for candidate in self.known if candidate not in needed]
        self.know(self.chosen[minibatch_size])

    def keep(self, sparse: int, secondary: int, packed: int = 0) -> None:
        """Forget all if a bucket is not one of minibatches with so many sparse inputs, other time axes and `packed`."""
        sizes = (sparse, secondary, packed)
        if any((len(shape.sparse), len(shape.secondary), len(shape.packed)) != sizes for shape in self.known):
            self.known, self.chosen, self.counts = [], {}, {}
            self.savings.clear()

    def use(self, shape: Shape) -> bool:
        """Note that a minibatch is padded to a bucket; returns whether it is the first one."""
        new = shape not in self.used
        if new:
            self.used.append(shape)
        return new

    def know(self, shapes: Sequence[Shape]) -> None:
        """Let minibatches be padded to these buckets, too."""
        self.known += [shape for shape in shapes if shape not in self.known]
        self.known.sort(key=lambda bucket: bucket.cells)

    def fit(
        self,
        shape: Shape,
        minibatch_size: int,
        *,
        slots_stay: bool = False,
        exact: bool = False,
        within: Callable[[Shape], Shape] | None = None,
        ragged: bool = True,
        weights: float = 0.0,
    ) -> Shape:
        """Return the bucket to pad a minibatch to.

        Args:
            shape: its own.
            minibatch_size: the usual number of samples; a minibatch of single frames that is a little shorter gets so
                many slots, because only the last one of a sweep differs from the others.
            slots_stay: no slots may be added, because they continue in the next minibatch.
            exact: neither slots nor steps may be added.
            within: its shape with slots as long as those of a bucket.
            ragged: its sequences differ in length, so that other minibatches may have longer ones.
            weights: elements of the network's parameters.
        """
        if not shape.slots:  # all sequences of the minibatch are malformed, and left out
            shape = replace(shape, steps=max(1, shape.steps), slots=1)
        if minibatch_size in self.chosen and not exact:
            return self._fit_chosen(shape, minibatch_size, slots_stay, within if shape.packed else None)
        full = _is_full(shape, minibatch_size) and not (exact or slots_stay)
        if full or exact:
            same = replace(shape, slots=minibatch_size) if full else shape
            fitting = (bucket for bucket in self.known if bucket.steps == same.steps and bucket.slots == same.slots)
            return next((bucket for bucket in fitting if bucket.holds(shape, 1.0)), None) or self._made(
                replace(same, sparse=round_up(same.sparse))
            )
        usable = [bucket for bucket in self.known if bucket.slots == shape.slots or not slots_stay]
        holding = next((bucket for bucket in usable if bucket.holds(shape)), None)
        if holding is not None:
            closer = self.savings.closer(shape, holding, slots_stay, weights, len(self.known))
            return holding if closer is None else self._made(closer)
        made = reduce(Shape.around, usable, shape)
        made = made if made.work <= LATER_PADDING * shape.work else shape
        if ragged or any(bucket.steps != shape.steps for bucket in usable):
            slots = 0 if shape.is_frames else round_to(made.slots)
            made = replace(made.in_powers(), slots=slots or made.slots, packed=made.with_slack().packed)
        elif usable or shape.slots == 1:
            made = made.rounded(4)
        else:  # where all sequences of the first minibatch have equally many steps, others most often have as many
            made = replace(made.rounded(4), steps=shape.steps, slots=shape.slots, secondary=shape.secondary)
        return self._made(replace(made, slots=shape.slots) if slots_stay else made)

    def _made(self, bucket: Shape) -> Shape:
        """Return a new bucket, which is known from now on."""
        self.know([bucket])
        return bucket

    def _fit_chosen(
        self, shape: Shape, minibatch_size: int, slots_stay: bool, within: Callable[[Shape], Shape] | None = None
    ) -> Shape:
        """Return the chosen bucket that takes least work; else one more, which holds all before it."""
        buckets = self.chosen[minibatch_size]
        shape = replace(shape, slots=minibatch_size) if _is_full(shape, minibatch_size) and not slots_stay else shape
        usable = [bucket for bucket in buckets if bucket.slots == shape.slots or not slots_stay]
        holding = [bucket for bucket in usable if bucket.holds(shape if within is None else within(bucket))]
        if holding:
            return min(holding, key=lambda bucket: (bucket.work, bucket.steps))
        made = reduce(Shape.around, usable, shape)
        if len(buckets) > self.counts[minibatch_size]:
            made = made.in_powers()  # each is at least twice as large as the one before
        else:
            made = made.with_slack()
            if made.work > MAX_PADDING * shape.work:
                made = min((bucket.around(shape) for bucket in usable), key=lambda bucket: bucket.work).with_slack()
        made = replace(made, slots=shape.slots) if slots_stay else made
        buckets.append(made)
        return self._made(made)


def choose_buckets(
    shapes: Sequence[Shape], most: int, least_saving: float = 0.0, slots_stay: bool = False
) -> list[Shape]:
    """Return the buckets of least work: the minibatches are sorted by length and cut into groups, which share a bucket.

    Args:
        shapes: those of the minibatches, at least one.
        most: how many buckets there may be.
        least_saving: work that one more bucket has to save, besides `MIN_SAVING` of all.
        slots_stay: no slots may be added; then there is one bucket for each number of slots.

    Returns:
        Each minibatch fits into one of them.
    """
    if slots_stay:
        return [
            replace(reduce(Shape.around, some), slots=slots).rounded(8, slots=False)
            for slots in sorted({shape.slots for shape in shapes})
            if (some := [shape for shape in shapes if shape.slots == slots])
        ]
    distinct, weights = np.unique(np.array([shape.row for shape in shapes]), axis=0, return_counts=True)
    secondary, sparse = len(shapes[0].secondary), len(shapes[0].sparse)
    lengths = distinct[:, 0] + distinct[:, 2 : 2 + secondary].sum(1)
    rows, weights = distinct[order := np.lexsort((distinct[:, 1], lengths))], weights[order]
    if len(rows) > MOST_ROWS:
        starts = np.arange(MOST_ROWS) * len(rows) // MOST_ROWS
        rows, weights = np.maximum.reduceat(rows, starts), np.add.reduceat(weights, starts)
    buckets = np.array([Shape.of_row(row, secondary, sparse).rounded(8).row for row in rows.tolist()])
    count = len(rows)
    work = np.full((count, count + 1), np.inf)  # of minibatches i to j-1 in one bucket
    for i in range(count):
        together = np.maximum.accumulate(buckets[i:])
        work[i, i + 1 :] = weights[i:].cumsum() * work_of(together, secondary, sparse)
    least, cuts = [np.append(0.0, np.full(count, np.inf))], list[NDArray[np.int64]]()
    for _ in range(min(most, count)):
        with_one_more = least[-1][:count, None] + work
        cuts.append(with_one_more.argmin(0))
        least.append(with_one_more.min(0))
    saving = MIN_SAVING_SEVERAL_AXES if secondary else MIN_SAVING
    chosen = 1
    while chosen < len(cuts):
        saved = least[chosen][count] - least[chosen + 1][count]
        if saved <= max(saving * least[chosen + 1][count], min(least_saving, MOST_SAVING * least[chosen + 1][count])):
            break
        chosen += 1
    result, end = list[Shape](), count
    for cut in reversed(cuts[:chosen]):
        begin = int(cut[end])
        result.append(Shape.of_row(buckets[begin:end].max(0).tolist(), secondary, sparse))
        end = begin
    return sorted(set(result), key=lambda bucket: (bucket.work, bucket.steps))


def _is_full(shape: Shape, minibatch_size: int) -> bool:
    """Return whether it is a minibatch of single frames, or the last one of a sweep, which may be a little shorter."""
    return shape.steps == 1 and not shape.secondary and 2 * shape.slots > minibatch_size >= shape.slots
