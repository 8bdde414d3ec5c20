"""Axes: round numbers for their ticks, and points thinned to what can be seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """A range of values, linear or logarithmic.

    Attributes:
        low, high: the ends; decimal logarithms of them if `log`.
    """

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Sequence[float], log: bool = False) -> Axis | None:
        """Return an axis with room for the values that are finite, and positive if `log`; None: there are none."""
        result = [
            math.log10(value) if log else value for value in values if math.isfinite(value) and (value > 0 or not log)
        ]
        if not result:
            return None
        low, high = min(result), max(result)
        room = (high - low) * 0.05 or (0.1 if log else abs(high) * 0.05 or 1.0)
        start = low - room
        return cls(0.0 if not log and low >= 0 > start else start, high + room, log)

    def place(self, value: float) -> float | None:
        """Return the position of a value, from 0 to 1; None if a logarithmic axis has none for it."""
        if not math.isfinite(value) or (self.log and value <= 0):
            return None
        return ((math.log10(value) if self.log else value) - self.low) / (self.high - self.low)

    def ticks(self, wanted: int = 6) -> list[float]:
        """Return round values inside of the axis."""
        if self.log and self.high - self.low >= 1:
            step = max(1, math.ceil((self.high - self.low) / wanted))
            powers = range(math.ceil(self.low), math.floor(self.high) + 1)
            return [10.0**power for power in powers if power % step == 0]
        if self.log:
            inner = Axis(10.0**self.low, 10.0**self.high).ticks(wanted)
            return [value for value in inner if value > 0]
        step = nice((self.high - self.low) / wanted)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [step * number for number in range(first, last + 1)]


def nice(step: float) -> float:
    """Return the next of 1, 2, 5, 10, ... times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step * 0.999999), 10 * power)


def whole_steps(axis: Axis) -> int:
    """Return the number of ticks an axis of epochs has: none between two epochs, unless less than two epochs are
    shown."""
    return min(8, math.ceil(axis.high - axis.low)) if axis.high - axis.low >= 2 else 4


def number(value: float) -> str:
    """Return the label of a tick, with four significant digits; whole numbers without an exponent up to a million."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:.4g}"


def thinned(points: Sequence[Point], limit: int) -> list[Point]:
    """At most about `limit` points that look like all: of each stretch the lowest and the highest one.

    The first and the last point stay.
    """
    if len(points) <= limit:
        return list(points)
    size = math.ceil(len(points) / (limit // 2))
    kept = [points[0]]
    for begin in range(0, len(points), size):
        kept += _extremes(points[begin : begin + size])
    return list(dict.fromkeys([*kept, points[-1]]))


def _extremes(stretch: Sequence[Point]) -> Iterator[Point]:
    ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
    yield from sorted(ends)
