"""The best model by each criterion, as the validation data say: `saveBestModelPerCriterion`."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cntkpy.trainers.log.text import Total

log = logging.getLogger("cntkpy.trainers")


@dataclass
class BestModels:
    """Keeps the epoch with the smallest value of each criterion.

    Args:
        path: of the final model; the best one by a criterion is `PATH_NAME`, with the name of its node.
        best: by node, the number of epochs and the value.
    """

    path: str
    best: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def observe(self, done: int, totals: Iterable[Total]) -> list[str]:
        """Take in the values after this many epochs; the files of the criteria that are better than before."""
        better = [total for total in totals if total.average < self.best.get(total.name, (0, math.inf))[1]]
        for total in better:
            self.best[total.name] = done, total.average
            log.info("The model after epoch %d is the best so far by %s: '%s'.", done, total.name, self.of(total.name))
        return [self.of(total.name) for total in better]

    def of(self, name: str) -> str:
        """Return the file of the best model by a criterion."""
        return f"{self.path}_{name}"

    def state(self) -> dict[str, list[Any]]:
        """Return the state for checkpoints."""
        return {name: [done, repr(value)] for name, (done, value) in self.best.items()}

    def restore(self, state: dict[str, list[Any]]) -> None:
        """Restore `state`."""
        self.best = {name: (int(done), float(value)) for name, (done, value) in state.items()}
