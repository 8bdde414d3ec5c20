"""Learning rates and momenta that change during training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.networks.builders.python.functions.calls import as_list
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.session.checks import is_number, is_whole

FULL_DATA_SWEEP = 0
"""An `epoch_size` of one pass over the data."""

Values = float | Sequence[float] | Sequence[tuple[int, float]]


class Schedule:
    """A number that depends on how far training is.

    Args:
        values: a number; a list of numbers, one for each epoch; or a list of pairs (number of epochs, value). The last
            one continues.
        minibatch_size: the number of samples that a value is for: 1 is per sample, None or 0 is for a minibatch of any
            size.
        epoch_size: samples of an epoch; 0 or None: a pass over the data.
    """

    def __init__(self, values: Values, minibatch_size: int | None = None, epoch_size: int | None = None) -> None:
        self.size = _size("minibatch_size", minibatch_size)
        """The number of samples that a value is for; None: any number."""
        self.epoch_size = _size("epoch_size", epoch_size)
        self.open = minibatch_size is None
        """Whether nothing was said of the size of minibatches, not even that it does not matter (0)."""
        self._steps = _steps(values)
        self.constant = len({value for _, value in self._steps}) == 1
        """Whether it has one value only."""

    @property
    def steps(self) -> list[tuple[int, float]]:
        """Pairs of a number of epochs and a value."""
        return list(self._steps)

    @property
    def is_minibatch_size_specified(self) -> bool:
        """Whether its values are for minibatches of a certain size."""
        return self.size is not None

    @property
    def minibatch_size(self) -> int:
        """The number of samples that a value is for; 0, CNTK's IGNORE: any number."""
        return self.size or 0

    def at(self, samples: int, sweeps: int = 0) -> float:
        """The value after this many samples and passes over the data."""
        if self.constant:
            return self._steps[0][1]
        epoch = sweeps if self.epoch_size is None else samples // self.epoch_size
        for count, value in self._steps:
            if epoch < count:
                return value
            epoch -= count
        return self._steps[-1][1]

    def __getitem__(self, samples: int) -> float:
        return self.at(samples)

    @property
    def values(self) -> list[float]:
        """The values, in their order."""
        return [value for _, value in self._steps]

    def for_minibatches_of(self, size: int | None) -> Schedule:
        """This schedule with its values for minibatches of this many samples; None or 0: of any size."""
        return Schedule(self.steps, size or 0, self.epoch_size)

    @property
    def all_whole(self) -> bool:
        """Whether all values are whole numbers from 1 on."""
        return all(value >= 1 and value == int(value) for _, value in self._steps)

    def __repr__(self) -> str:
        size = "" if self.size is None else f", minibatch_size={self.size}"
        return f"{type(self).__name__}({[(n, v) for n, v in self._steps]}{size})"


def _size(name: str, given: Any) -> int | None:
    if given is None:
        return None
    if not is_whole(given) or given < 0:
        raise ArgumentError(f"{name} is a number of samples, not {given!r}", "write a whole number")
    return int(given) or None


def _steps(values: Any) -> list[tuple[int, float]]:
    several: list[Any] = values.tolist() if isinstance(values, np.ndarray) and values.ndim else as_list(values)
    found = [_step(one, values) for one in several]
    if not found:
        raise ArgumentError("a schedule needs a value", "write a number, a list of numbers, or [(epochs, number), ...]")
    return found


def _step(given: Any, values: Any) -> tuple[int, float]:
    pair: list[Any] = as_list(given) if isinstance(given, tuple) else [1, given]
    if len(pair) != 2 or not is_whole(pair[0]) or pair[0] < 1 or not is_number(pair[1]):
        hint = "write a number, a list of numbers, or [(epochs, number), ...]"
        raise ArgumentError(f"{values!r} is not a schedule", hint)
    return int(pair[0]), float(pair[1])


def learning_rate(values: Values, minibatch_size: int | None = None, epoch_size: int | None = None) -> Schedule:
    """A learning rate, for the mean gradient of a minibatch of `minibatch_size` samples; None: of any size."""
    return Schedule(values, minibatch_size, epoch_size)


def learning_rate_per_sample(values: Values, epoch_size: int | None = None) -> Schedule:
    """A learning rate for each sample: the gradient is summed over the minibatch."""
    return Schedule(values, 1, epoch_size)


def momentum(values: Values, minibatch_size: int | None = None, epoch_size: int | None = None) -> Schedule:
    """A momentum: how much is kept from one minibatch (of that size) to the next."""
    return Schedule(values, minibatch_size, epoch_size)


def momentum_per_sample(values: Values, epoch_size: int | None = None) -> Schedule:
    """A momentum: how much is kept from one sample to the next."""
    return Schedule(values, 1, epoch_size)


def momentum_as_time_constant(values: Values, epoch_size: int | None = None) -> Schedule:
    """A momentum as the number of samples after which 1/e of a gradient is left; 0 is no momentum."""
    if any(value < 0 for _, value in _steps(values)):
        raise ArgumentError(f"a time constant is a number of samples from 0 on, not {values!r}")
    steps = [(count, math.exp(-1 / value) if value else 0.0) for count, value in _steps(values)]
    return Schedule(steps, 1, epoch_size)


def time_constant_of(schedule: Schedule) -> float:
    """The time constant of a constant momentum, in samples."""
    value, size = schedule.at(0), schedule.size
    if not schedule.constant or size is None or not 0 < value < 1:
        raise ArgumentError(f"{schedule!r} is no constant momentum per sample", "momentum_as_time_constant(n)")
    return -size / math.log(value)


def minibatch_size(values: Values, epoch_size: int | None = None) -> Schedule:
    """The samples of a minibatch."""
    found = Schedule(values, None, epoch_size)
    return found


def as_schedule(given: Any) -> Schedule:
    """A schedule as it is; a number as a constant one, for minibatches of any size."""
    return given if isinstance(given, Schedule) else Schedule(given)
