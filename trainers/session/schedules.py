"""Learning rates and momenta that change while training goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from networks.builders.python.calls import as_list
from readers.errors import ArgumentError

FULL_DATA_SWEEP = 0
"""An `epoch_size` of one pass over the data."""

Values = float | Sequence[float] | Sequence[tuple[int, float]]


class Schedule:
    """A number that depends on how far training is.

    Args:
        values: a number; a list of numbers, one for each epoch; or a list of pairs (number of epochs, value). The last
            one goes on.
        minibatch_size: the number of samples that a value is for: 1 is per sample, None is for a minibatch of any size.
        epoch_size: samples of an epoch; 0 or None: a pass over the data.
    """

    def __init__(self, values: Values, minibatch_size: int | None = None, epoch_size: int | None = None) -> None:
        self.minibatch_size = _size(minibatch_size)
        self.epoch_size = epoch_size or None
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
        return self.minibatch_size is not None

    def at(self, samples: int, sweeps: int = 0) -> float:
        """The value after so many samples and passes over the data."""
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
    def all_whole(self) -> bool:
        """Whether all values are whole numbers from 1 on."""
        return all(value >= 1 and value == int(value) for _, value in self._steps)

    def __repr__(self) -> str:
        size = "" if self.minibatch_size is None else f", minibatch_size={self.minibatch_size}"
        return f"{type(self).__name__}({[(n, v) for n, v in self._steps]}{size})"


def _size(given: Any) -> int | None:
    if given is None or given == 0:
        return None
    if isinstance(given, bool) or int(given) != given or given < 0:
        raise ArgumentError(f"minibatch_size is a number of samples, not {given!r}")
    return int(given)


def _steps(values: Any) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    for one in as_list(values):
        count, value = one if isinstance(one, tuple) else (1, one)  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(value, int | float) or not math.isfinite(value) or int(count) < 1:  # pyright: ignore
            raise ArgumentError(
                f"{values!r} is no schedule", "write a number, a list of numbers, or [(epochs, number), ...]"
            )
        found.append((int(count), float(value)))  # pyright: ignore[reportUnknownArgumentType]
    if not found:
        raise ArgumentError("a schedule needs a value")
    return found


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
    steps = [(count, math.exp(-1 / value) if value else 0.0) for count, value in _steps(values)]
    return Schedule(steps, 1, epoch_size)


def time_constant_of(schedule: Schedule) -> float:
    """The time constant of a constant momentum, in samples."""
    value, size = schedule.at(0), schedule.minibatch_size
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
