"""Numbers that change during training: learning rates, momenta, sizes of minibatches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, cast

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.readers.errors import ArgumentError

Values = float | Sequence[float] | Sequence[tuple[int, float]] | PerEpoch[float]


class Schedule:
    """A number that depends on how far training is.

    Args:
        values: a number; a list of numbers, one for each epoch; a list of pairs (number of epochs, value); or values
            of a configuration. The last one continues.
        minibatch_size: the number of samples that a value is for: 1 is per sample, None or 0 is for a minibatch of any
            size.
        epoch_size: samples of an epoch; 0 or None: a pass over the data.
    """

    def __init__(self, values: Values, minibatch_size: int | None = None, epoch_size: int | None = None) -> None:
        self._values = per_epoch(values)
        self.size = _size("minibatch_size", minibatch_size)
        """Number of samples that a value is for; None: any number."""
        self.epoch_size = _size("epoch_size", epoch_size)
        self.open = minibatch_size is None
        """True: nothing was said of the size of minibatches, not even that it does not matter (0)."""
        self.constant = len(set(self.values)) == 1
        """True: it has one value only."""

    @property
    def steps(self) -> list[tuple[int, float]]:
        """Pairs of a number of epochs and a value."""
        starts = self._values.starts()
        ends = [*starts[1:], len(self._values)]
        return [(end - start, self._values[start]) for start, end in zip(starts, ends, strict=True)]

    @property
    def values(self) -> list[float]:
        """Return the values, in their order."""
        return self._values.distinct()

    @property
    def is_minibatch_size_explicitly_specified(self) -> bool:
        """Return whether the program has said for how many samples its values are; 0 says: for any number."""
        return not self.open

    @property
    def is_minibatch_size_specified(self) -> bool:
        """Return whether its values are for minibatches of a certain size."""
        return self.size is not None

    @property
    def minibatch_size(self) -> int:
        """Number of samples that a value is for; 0, CNTK's IGNORE: any number."""
        return self.size or 0

    @property
    def all_whole(self) -> bool:
        """Return whether all values are whole numbers from 1 on."""
        return all(value >= 1 and value == int(value) for value in self.values)

    def of_epoch(self, epoch: int) -> float:
        """Return the value of an epoch, from 0 on; the last one repeats."""
        return self._values[epoch]

    def at(self, samples: int, sweeps: int = 0) -> float:
        """Return the value after this many samples and passes over the data."""
        return self.of_epoch(sweeps if self.epoch_size is None else samples // self.epoch_size)

    def __getitem__(self, samples: int) -> float:
        return self.at(samples)

    def for_minibatches_of(self, size: int | None) -> Schedule:
        """Return this schedule with its values for minibatches of this many samples; None or 0: of any size."""
        return Schedule(self._values, size or 0, self.epoch_size)

    def __repr__(self) -> str:
        size = "" if self.size is None else f", minibatch_size={self.size}"
        return f"{type(self).__name__}({self.steps}{size})"


def of_time_constants(constants: PerEpoch[float], epoch_size: int | None = None) -> Schedule:
    """Return the momenta per sample of numbers of samples after which 1/e of a gradient is left; 0 is no momentum."""
    steps = [(n, math.exp(-1 / float(value)) if value else 0.0) for n, value in Schedule(constants).steps]
    return Schedule(steps, 1, epoch_size)


def per_epoch(values: Any) -> PerEpoch[float]:
    """Return a program's schedule as values by epoch.

    Raises:
        ArgumentError: it is no schedule.
    """
    if isinstance(values, PerEpoch):
        return cast("PerEpoch[float]", values)
    several: Any = values
    if isinstance(values, Real):  # `check` of a configuration has no NumPy
        several = [values]
    elif not isinstance(values, list | tuple):
        several = values.tolist() if isinstance(values, np.ndarray) and values.ndim else [values]
    steps = [_step(step, values) for step in several]
    if not steps:
        raise ArgumentError("a schedule needs a value", "write a number, a list of numbers, or [(epochs, number), ...]")
    return PerEpoch([value for _, value in steps], [count for count, _ in steps])


def _step(entry: Any, values: Any) -> tuple[int, float]:
    pair: tuple[Any, ...] = cast("tuple[Any, ...]", entry) if isinstance(entry, tuple) else (1, entry)
    if len(pair) != 2 or not _is_whole(pair[0]) or pair[0] < 1 or not _is_number(pair[1]):
        hint = "write a number, a list of numbers, or [(epochs, number), ...]"
        raise ArgumentError(f"{values!r} is not a schedule", hint)
    return int(pair[0]), float(pair[1])


def _size(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not _is_whole(value) or value < 0:
        raise ArgumentError(f"{name} is a number of samples, not {value!r}", "write a whole number")
    return int(value) or None


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and value is not True and value is not False and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and int(value) == value
