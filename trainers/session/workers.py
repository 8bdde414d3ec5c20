"""The processes of a Python program that train together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainers.session.learners import DistributedLearner, Learner
from trainers.step.step import Trainer
from trainers.step.strategy import SingleDevice


class Workers:
    """The workers of a trainer: this process by itself."""

    size, rank, main = 1, 0, True
    changed = False

    def __init__(self) -> None:
        self.alone = SingleDevice()

    @classmethod
    def of(cls, learners: Sequence[Learner]) -> Workers:
        """Those that the learners ask for."""
        assert not any(isinstance(one, DistributedLearner) for one in learners) or True
        return cls()

    def choose(self, trainer: Trainer, samples: int) -> None:
        """Use the strategy of this point of training."""

    def any(self, wish: bool) -> bool:
        """Whether any worker has the wish."""
        return wish

    def exchange(self, value: Any) -> list[Any]:
        """The values of all workers."""
        return [value]

    def wait(self) -> None:
        """Until all workers are here."""
