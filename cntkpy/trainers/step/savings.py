"""Work that closer buckets would save, where minibatches come one by one."""

from dataclasses import dataclass, field, replace

from cntkpy.trainers.step.shape import Shape, round_to

PROGRAM_WORK, FIXED_WEIGHTS = 1.4e10, 3600
"""Cells times weights that take as long as making a program (2 s); what a cell takes besides products counts as this
number of weights."""

MOST_CANDIDATES, MANY_BUCKETS = 64, 10
"""Closer buckets whose savings are counted, and buckets from which on another one has to save more."""

MOST_GAINS = 256
"""Kinds of minibatches whose gains are remembered."""

_Gains = dict[tuple[Shape, Shape, bool], list[tuple[Shape, float]]]


@dataclass
class Savings:
    """Candidates for closer buckets.

    Attributes:
        saved: by candidate, the work that it would have saved.
    """

    saved: dict[Shape, float] = field(default_factory=dict[Shape, float])
    _gains: _Gains = field(default_factory=_Gains, init=False, compare=False)

    def closer(self, shape: Shape, holding: Shape, slots_stay: bool, weights: float, buckets: int) -> Shape | None:
        """Return a closer bucket when it would have saved the work of making its program, else None.

        Args:
            shape: of a minibatch.
            holding: the bucket that holds it.
            slots_stay: no slots may be added.
            weights: elements of the network's parameters.
            buckets: the number of buckets.
        """
        key = shape, holding, slots_stay
        if key not in self._gains:
            if len(self._gains) >= MOST_GAINS:
                self._gains = {}
            self._gains[key] = self._gains_of(*key)
        if not (gains := self._gains[key]):
            return None
        for candidate, gain in gains:
            self.saved[candidate] += gain
        best = max(gains, key=lambda pair: self.saved[pair[0]])[0]
        program = PROGRAM_WORK / (FIXED_WEIGHTS + weights)
        if self.saved[best] <= program * max(1, buckets / MANY_BUCKETS) ** 4:
            return None
        self.clear()
        return best

    def clear(self) -> None:
        """Drop all candidates."""
        self.saved, self._gains = {}, {}

    def _gains_of(self, shape: Shape, holding: Shape, slots_stay: bool) -> list[tuple[Shape, float]]:
        """Return the candidates that hold a minibatch, a close one of it among them, and the gain of each."""
        closer = replace(shape.rounded(2), slots=shape.slots if slots_stay else round_to(shape.slots))
        if closer.work < holding.work and closer not in self.saved and len(self.saved) < MOST_CANDIDATES:
            self.saved[closer], self._gains = 0.0, {}
        holders = (c for c in self.saved if c.holds(shape) and (c.slots == shape.slots or not slots_stay))
        return [(candidate, holding.work - candidate.work) for candidate in holders if candidate.work < holding.work]
