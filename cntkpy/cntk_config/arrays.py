"""Lists whose elements have counts, and values per epoch, whose last element repeats."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Generic, Protocol, TypeVar, cast, overload

from cntkpy.cntk_config.base.diagnostics import ConfigError

T = TypeVar("T")
MOST_LISTED = 1_000_000
"""Most elements of a list that is gone through one by one."""


class Located(Protocol):
    """Source of a list; makes errors that name the place."""

    def error(self, kind: str, message: str, hint: str | None = None) -> ConfigError:
        """Return an error at this place."""
        ...


class Runs(Sequence[T]):
    """A sequence kept as elements with counts, so that `0.1*1000000` costs nothing."""

    def __init__(self, counts: list[int]) -> None:
        self._ends = list(accumulate(counts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _run(self, index: int) -> int:
        """Return the run that holds the element `index` (which may be negative)."""
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError("array index out of range")
        return bisect_right(self._ends, position)

    def _element(self, run: int) -> T:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._element(self._run(index))

    def starts(self) -> list[int]:
        """Return the starts of the elements."""
        return sorted({begin for begin in [0, *self._ends] if begin < len(self)})

    def distinct(self) -> list[T]:
        """Return every element once, however often it is repeated."""
        return [self[begin] for begin in self.starts()]

    def _where(self) -> Located | None:
        """Return the source of the list."""
        return None

    def __iter__(self) -> Iterator[T]:
        """Return the elements one by one; a `ConfigError` if there are more than `MOST_LISTED`."""
        if len(self) > MOST_LISTED:
            message = f"the list has {len(self):,} elements, more than {MOST_LISTED:,}"
            where, hint = self._where(), "correct the count after the '*'"
            raise (
                where.error("ExpansionTooLarge", message, hint)
                if where
                else ConfigError("TooLarge", message, hint=hint)
            )
        return self._each()

    def _each(self) -> Iterator[T]:
        begin = 0
        for run, end in enumerate(self._ends):
            if end > begin:
                element = self._element(run)
                for _ in range(end - begin):
                    yield element
            begin = end

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return False
        return list(self) == list(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self[:20])!r}{', ...' if len(self) > 20 else ''})"


class PerEpoch(Runs[T], Generic[T]):
    """Values per epoch: an index past the end gives the last one. `len()` is the number listed.

    rates = config.array("learningRatesPerMB").doubles()      # 0.1*3:0.2
    rates[9]                                                  # 0.2
    """

    def __init__(self, values: Sequence[T], counts: list[int] | None = None, source: Located | None = None) -> None:
        super().__init__([1] * len(values) if counts is None else counts)
        self._values = list(values)
        self._source = source

    def _run(self, index: int) -> int:
        if not len(self):
            message, hint = "the list is empty, but a value is needed", "give at least one value"
            if self._source is None:
                raise ConfigError("EmptyVector", message, hint=hint)
            raise self._source.error("EmptyVector", message, hint)
        return super()._run(min(index, len(self) - 1))

    def _where(self) -> Located | None:
        return self._source

    def _element(self, run: int) -> T:
        return self._values[run]
