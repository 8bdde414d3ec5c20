"""What changes in a training from epoch to epoch; a checkpoint holds all of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cntkpy.trainers.checkpoints.array_file import Arrays
from cntkpy.trainers.checkpoints.checkpoint import Checkpoint
from cntkpy.trainers.loop.best import BestModels

if TYPE_CHECKING:
    from cntkpy.trainers.schedules.rate_control import RateControl


@dataclass
class TrainingState:
    """The numbers of a training after an epoch.

    Attributes:
        control: The control of the rate.
        best_models: The best model by each criterion.
        adapted_size: The minibatch size that was adapted last; sizes that are listed do not set it.
        samples_seen: Over all epochs.
        rate: Per sample, after the adjustments of the last epoch; None: not known yet.
        minibatch_size: That of the last epoch; 0: none yet.
        found_rates: Rates that searches have found.
        search_ratio: The rate that the last search has found by the rate before.
        best: The number of epochs after which the criterion was best, and the criterion then.
    """

    control: RateControl
    best_models: BestModels
    adapted_size: int
    samples_seen: int = 0
    rate: float | None = None
    minibatch_size: int = 0
    found_rates: list[float] = field(default_factory=list[float])
    search_ratio: float = 1.0
    best: tuple[int, float] | None = None

    def observe(self, done: int, value: float) -> None:
        """Remember the epoch with the smallest value; `done`: the number of epochs."""
        if self.best is None or value < self.best[1]:
            self.best = done, value

    def checkpoint(
        self, updates: dict[str, Arrays], reader: dict[str, Any], last_slots: int, shapes: Any
    ) -> Checkpoint:
        """The state as a checkpoint.

        Args:
            updates: By parameter, the arrays of the update rule.
            reader: Position of the reader.
            last_slots: Parallel sequences of the last minibatch.
            shapes: The padded shapes in use.
        """
        schedule = {
            "found_rates": self.found_rates,
            "search_ratio": self.search_ratio,
            "adapted_size": self.adapted_size,
            "last_slots": last_slots,
            "best": self.best,
            "best_models": self.best_models.state(),
            "shapes": shapes,
            "control": self.control.state(),
        }
        numbers = self.samples_seen, self.rate, self.control.reference, self.minibatch_size
        return Checkpoint(*numbers, updates, reader, {"schedule": schedule})

    def roll_back(self, checkpoint: Checkpoint) -> None:
        """Take the numbers of an earlier epoch; what the control and searches have learned since is kept."""
        self.samples_seen = checkpoint.samples_seen
        self.rate = checkpoint.rate
        self.control.reference = checkpoint.reference
        self.minibatch_size = self.adapted_size = checkpoint.minibatch_size

    def resume(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Take everything from a checkpoint; returns the values of its schedule, {} in one of an early version."""
        self.roll_back(checkpoint)
        schedule: dict[str, Any] = checkpoint.extra.get("schedule", {})
        if schedule:
            self.found_rates, self.search_ratio = schedule["found_rates"], schedule["search_ratio"]
            self.control.restore(schedule["control"])
            self.adapted_size = schedule.get("adapted_size", checkpoint.minibatch_size)
            if (best := schedule.get("best")) is not None:
                self.best = int(best[0]), float(best[1])
            self.best_models.restore(schedule.get("best_models", {}))
        return schedule
