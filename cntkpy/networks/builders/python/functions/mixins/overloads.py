"""Python's arithmetic operators on functions."""

from __future__ import annotations

from typing import Self

LARGEST_POWER = 16
"""Whole exponents up to this one are products."""


class Operators:
    """Arithmetic of functions; the names are those of BrainScript's library."""

    __array_priority__ = 100.0  # numpy leaves operators to this class

    def _apply(self, name: str, *operands: object) -> Self:
        """Return the function that one of the library makes of functions, layers, arrays and numbers."""
        raise NotImplementedError

    def __add__(self, other: object) -> Self:
        return self._apply("Plus", self, other)

    def __radd__(self, other: object) -> Self:
        return self._apply("Plus", other, self)

    def __sub__(self, other: object) -> Self:
        return self._apply("Minus", self, other)

    def __rsub__(self, other: object) -> Self:
        return self._apply("Minus", other, self)

    def __mul__(self, other: object) -> Self:
        return self._apply("ElementTimes", self, other)

    def __rmul__(self, other: object) -> Self:
        return self._apply("ElementTimes", other, self)

    def __truediv__(self, other: object) -> Self:
        return self._apply("ElementDivide", self, other)

    def __rtruediv__(self, other: object) -> Self:
        return self._apply("ElementDivide", other, self)

    def __matmul__(self, other: object) -> Self:
        return self._apply("Times", other, self)  # the language multiplies from the left

    def __rmatmul__(self, other: object) -> Self:
        return self._apply("Times", self, other)

    def __pow__(self, exponent: object) -> Self:
        """Return the power of each element; of a base below 0 it is a number only for a whole exponent."""
        if isinstance(exponent, int | float) and exponent in range(1, LARGEST_POWER + 1):
            result = self
            for _ in range(int(exponent) - 1):
                result = self._apply("ElementTimes", result, self)
            return result
        return self._apply("_Power", self, exponent)

    def __rpow__(self, base: object) -> Self:
        return self._apply("_Power", base, self)

    def __neg__(self) -> Self:
        return self._apply("Negate", self)

    def __abs__(self) -> Self:
        return self._apply("Abs", self)
