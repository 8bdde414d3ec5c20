"""Which values the trial of a number has, in a grid and in a random search.

Both depend on the number and the seed only, so that any process finds the same trial again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from cntkpy.cntk_config import ConfigError
from cntkpy.commands.sweeps.choices import Axis, Choice, Interval, Space, product, size

MOST_TRIALS = 1_000_000
"""Most trials of a sweep."""


class Grid:
    """All combinations, the last axis changing fastest.

    Args:
        space: what is chosen.

    Raises:
        ConfigError: there are infinitely many, or too many.
    """

    def __init__(self, space: Space) -> None:
        self._axes = space.axes
        for axis in space.axes:
            if isinstance(axis, Interval) and size(axis) is None:
                message = f"a grid needs single values, and {axis.path} may be any number of a range"
                log = ", log" if axis.log else ""
                hint = f"write range(LOW, HIGH{log}, count=5), or search with --sampler random --trials N"
                raise ConfigError("Conflict", message, space.place(axis.path), hint)
        self.size = product(space.axes) or 0
        if self.size > MOST_TRIALS:
            size_text = f"{self.size:,}" if self.size < MOST_TRIALS**3 else "far too many"
            message = f"the grid has {size_text} trials, more than {MOST_TRIALS:,}"
            raise ConfigError("BadValue", message, None, "search with --sampler random --trials N")

    def values(self, number: int) -> dict[str, str]:
        """Return the values of a trial, by path."""
        return combination(self._axes, number)


def check_trials(trials: int) -> None:
    """Check a number of trials.

    Raises:
        ConfigError: there are too many.
    """
    if trials > MOST_TRIALS:
        message = f"--trials asks for more than {MOST_TRIALS:,}"
        raise ConfigError("BadValue", message, None, f"write --trials {MOST_TRIALS} at most")


class Draws:
    """A random search: independent draws, and where there are finitely many combinations, each at most once.

    Args:
        space: what is chosen.
        trials: the number of trials.
        seed: trials of the same seed are the same.

    Raises:
        ConfigError: there are fewer combinations than trials, or too many trials.
    """

    def __init__(self, space: Space, trials: int, seed: int) -> None:
        self._axes, self._seed, self.size = space.axes, seed, trials
        check_trials(trials)
        count = product(space.axes)
        if count is not None and count < trials:
            message = f"there are {count:,} combinations, fewer than {trials} trials"
            raise ConfigError("BadValue", message, None, f"write --trials {count}, or leave out --sampler for a grid")
        self._numbers: list[int] | None = None
        if count is not None:
            numbers, drawn = random.Random(seed), dict[int, None]()
            while len(drawn) < trials:  # the first ones are the same for every number of trials
                drawn[numbers.randrange(count)] = None
            self._numbers = list(drawn)

    def values(self, number: int) -> dict[str, str]:
        """Return the values of a trial, by path."""
        if self._numbers is not None:
            return combination(self._axes, self._numbers[number])
        numbers = random.Random(f"{self._seed}:{number}")
        values: dict[str, str] = {}
        for axis in self._axes:
            if isinstance(axis, Choice):
                values |= axis.values(numbers.randrange(len(axis.rows)))
            else:
                values[axis.path] = axis.at(numbers.random())
        return values


Points = Grid | Draws


def combination(axes: Sequence[Axis], number: int) -> dict[str, str]:
    """Return one combination of finitely many."""
    values: list[dict[str, str]] = []
    for axis in reversed(axes):
        number, index = divmod(number, size(axis) or 1)
        if isinstance(axis, Choice):
            values.append(axis.values(index))
        else:
            values.append({axis.path: axis.text(math.ceil(axis.low) + index)})
    return {path: text for value in reversed(values) for path, text in value.items()}
