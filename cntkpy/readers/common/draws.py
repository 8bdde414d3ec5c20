"""Random numbers of one transform of one picture: no thread, worker or minibatch size can change them."""

from __future__ import annotations

from random import Random
from statistics import NormalDist


class Draws:
    """Numbers that depend on a seed, the sweep, the sequence and the place of the transform, and nothing else.

    So the same picture is cut differently in each sweep, equal transforms of joined streams draw the same numbers, and
    reading that resumes from a checkpoint draws what it would have drawn. `sweep` is the pass over the data, from 0;
    `view` is the number of a multi-view copy.
    """

    def __init__(self, seed: int = 0, sweep: int = 0, sequence: int = 0, place: int = 0, view: int = 0):
        self._key = seed % 2**64 | sweep << 64 | sequence << 128 | place << 192
        self.sweep, self.view = sweep, view
        self._random: Random | None = None

    def _next(self) -> float:
        if self._random is None:  # made when the first number is drawn: most transforms draw none
            self._random = Random(self._key)  # a Mersenne Twister, the same in all versions of Python
        return self._random.random()

    def uniform(self, low: float, high: float) -> float:
        """Return a number in [low, high)."""
        return low + (high - low) * self._next()

    def up_to(self, last: int) -> int:
        """Return a whole number from 0 to `last`, both included."""
        return int(self._next() * (last + 1))

    def coin(self) -> bool:
        """Return True or false, each with probability 1/2."""
        return self._next() < 0.5

    def normal(self, deviation: float) -> float:
        """Return a number from a normal distribution around zero."""
        return deviation * NormalDist().inv_cdf(max(self._next(), 2**-53))
