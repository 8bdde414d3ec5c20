"""Padded sizes of minibatches of single frames that a program passes one by one."""

from __future__ import annotations

from cntkpy.trainers.step.shape import round_to


class PaddedSizes:
    """A few sizes, since XLA compiles a program for each: the first one as it is, others two per doubling."""

    def __init__(self) -> None:
        self._known: list[int] = []

    def of(self, samples: int) -> int:
        """Return the padded size of a minibatch: less than twice its samples."""
        samples = max(1, samples)
        size = min((bound for bound in self._known if samples <= bound < 2 * samples), default=None)
        if size is None:
            size = round_to(samples) if self._known else samples
            self._known.append(size)
        return size
