"""Learning rates decided after each epoch: `autoAdjustLR = adjustAfterEpoch`.

See docs/specification/actions-and-training.md 2.7.1.
A decision is a pure function of the history of one value per epoch; loading and saving of models is the trainer's work.
"""

import math
from dataclasses import dataclass

from cntkpy.readers.common.planned import State
from cntkpy.trainers.parameters.sgd import AutoAdjustParameters


@dataclass(frozen=True)
class Options:
    """The rules of the control; see `AutoAdjustParameters`.

    Attributes:
        listed: the number of epochs for which a rate is listed. The others: as in the section.
    """

    listed: int
    interval: int = 1
    reduce_if_less: float = 0.0
    decrease: float = 0.618
    increase_if_more: float = math.inf
    increase: float = 1.382
    continue_reduce: bool = False
    load_best: bool = True

    @classmethod
    def read(cls, p: AutoAdjustParameters, listed: int) -> "Options":
        """Return the options of a section."""
        return cls(
            listed,
            max(1, p.interval),
            p.reduce_if_less,
            p.decrease_factor,
            p.increase_if_more,
            p.increase_factor,
            p.continue_reduce,
            p.load_best,
        )


@dataclass
class RateControl:
    """The memory of the control.

    Attributes:
        options: the rules.
        start: index of the first epoch of this run (0-based).
        reference: the value that the next decision compares with; infinite before the first.
    """

    options: Options
    start: int = 0
    reference: float = math.inf
    average: float = math.inf
    reducing: bool = False

    def __post_init__(self) -> None:
        self._skipped = self.start % self.options.interval

    def state(self) -> State:
        """Return the memory as JSON-able values, but for the reference."""
        return {"average": repr(self.average), "reducing": self.reducing, "skipped": self._skipped}

    def restore(self, state: State) -> None:
        """Restore `state`, also in the middle of an interval."""
        self.average, self.reducing = float(state["average"]), state["reducing"]
        self._skipped = state["skipped"]

    def observe(self, epoch: int, value: float) -> None:
        """Take the control value of an epoch into the mean of the current interval."""
        k = epoch % self.options.interval + 1
        if math.isinf(self.average):
            self.average = value
        else:
            self.average = ((k - 1 - self._skipped) * self.average + value) / (k - self._skipped)

    def due(self, epoch: int) -> bool:
        """Return whether a decision follows this epoch: its rate was not listed, and it ends an interval."""
        return epoch >= self.options.listed and self._ends_interval(epoch)

    @property
    def degraded(self) -> bool:
        """Return whether the mean is worse than the reference, or no finite number."""
        return not math.isfinite(self.average) or (math.isfinite(self.reference) and self.average > self.reference)

    def decide(self, rate: float) -> tuple[float, bool]:
        """Return the rate of the next epoch, and whether training ends here.

        To be called after a roll-back has restored `rate` and `reference`, when the decision is due.
        """
        o, known = self.options, math.isfinite(self.reference)
        gain = self.reference - self.average
        too_little = not math.isfinite(self.average) or (known and gain <= o.reduce_if_less * self.reference)
        if o.continue_reduce:
            if too_little and self.reducing:
                return rate, True
            self.reducing |= too_little
            return (rate * o.decrease if self.reducing else rate), False
        if too_little:
            return rate * o.decrease, False
        if known and gain > o.increase_if_more * self.reference:
            return rate * o.increase, False
        return rate, False

    def accept(self, epoch: int) -> None:
        """The epoch stands (no roll-back): at the end of an interval its mean becomes the reference."""
        if self._ends_interval(epoch):
            self.reference = self.average
            self._skipped = 0

    def _ends_interval(self, epoch: int) -> bool:
        return epoch % self.options.interval + 1 == self.options.interval
