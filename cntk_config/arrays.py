"""Arrays: `1:2*3`, `(a, b)`, one element a line in brackets; and per-epoch values, whose last element repeats."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, overload

from cntk_config.base.diagnostics import ConfigError, shorten
from cntk_config.base.source import Fragment
from cntk_config.parse import Item, parse_array, unquoted
from cntk_config.values import INTEGER, ConfigValue
from cntk_config.variables import expand

if TYPE_CHECKING:
    from cntk_config.parameters import ConfigParameters

T = TypeVar("T")
MAX_COUNT = 2**31 - 1


class _Run(NamedTuple):
    """An element and how often it stands in the array."""

    fragment: Fragment
    times: int


class _Runs(Sequence[T]):
    """A sequence kept as elements with counts, so that `0.1*1000000` costs nothing."""

    def __init__(self, counts: list[int]) -> None:
        self._ends = list(accumulate(counts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _run(self, index: int) -> int:
        """The run that holds the element `index` (which may be negative)."""
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

    def __iter__(self) -> Iterator[T]:
        begin = 0
        for run, end in enumerate(self._ends):
            if end > begin:
                element = self._element(run)
                for _ in range(end - begin):
                    yield element
            begin = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self[:20])!r}{', ...' if len(self) > 20 else ''})"


class ConfigArray(_Runs[ConfigValue]):
    """The elements of a value that is read as an array, each a `ConfigValue`.

        config.array("layers")            # layers=784:256*2:10
        [int(n) for n in config.array("layers")]

    `value*count` repeats. Quoted and bracketed elements are kept whole. Empty elements vanish.
    """

    def __init__(self, value: ConfigValue | str = "") -> None:
        self.value = value if isinstance(value, ConfigValue) else ConfigValue(value)
        fragments = self.value.fragments or (_plain(self.value),)
        self._elements: list[_Run] = []
        for fragment in fragments:
            for item in parse_array(fragment):
                self._add(fragment, item)
        super().__init__([run.times for run in self._elements])

    def load_config_file(self, path: str | os.PathLike[str]) -> None:
        """Append the elements in a file that has one element (or several, as in `a:b*3`) a line."""
        from cntk_config.includes import read_file

        text = read_file(path)
        fragment = Fragment(text, 0, len(text.string))
        for item in parse_array(fragment):
            self._add(fragment, item)
        super().__init__([run.times for run in self._elements])

    @property
    def path(self) -> str:
        """The full name of the array."""
        return self.value.path

    def convert(self, converter: Callable[[ConfigValue], T]) -> PerEpoch[T]:
        """Every element converted, for instance `array.convert(ConfigValue.as_double)`."""
        values = [converter(self._element(run)) for run in range(len(self._elements))]
        return PerEpoch(values, [run.times for run in self._elements], self.value)

    def integers(self) -> PerEpoch[int]:
        """The elements as 32-bit integers."""
        return self.convert(ConfigValue.as_int)

    def sizes(self) -> PerEpoch[int]:
        """The elements as unsigned 64-bit integers."""
        return self.convert(ConfigValue.as_size)

    def doubles(self) -> PerEpoch[float]:
        """The elements as numbers."""
        return self.convert(ConfigValue.as_double)

    def floats(self) -> PerEpoch[float]:
        """The elements as numbers rounded to 32 bits."""
        return self.convert(ConfigValue.as_float)

    def sections(self) -> list[ConfigParameters]:
        """The elements as sets of parameters, without a parent.

        A value that is one set and not a list of sets gives this one set.
        """
        from cntk_config.parameters import ConfigParameters

        bracketed = any(run.fragment.text.string[run.fragment.start] in "[({" for run in self._elements)
        if self._elements and not bracketed:
            return [ConfigParameters.from_value(self.value, alone=True)]
        values = [self._make(run) for run in range(len(self._elements))]
        sets = [ConfigParameters.from_value(value, alone=True) for value in values]
        return [one for one, run in zip(sets, self._elements, strict=True) for _ in range(run.times)]

    def _element(self, run: int) -> ConfigValue:
        fragment = self._elements[run].fragment
        if fragment.text.string.find("$", fragment.start, fragment.end) >= 0:
            expand(fragment, self.value.scope)  # raises for what could not be replaced before
        return self._make(run)

    def _make(self, run: int) -> ConfigValue:
        fragment = self._elements[run].fragment.tidy()
        path = f"{self.value.path}[{run}]" if self.value.path else ""
        text = fragment.string
        if "\n" in text and not text.endswith("\n"):
            text += "\n"
        return ConfigValue(text, path=path, fragments=(fragment,), scope=None)

    def _add(self, whole: Fragment, item: Item) -> None:
        count = self._count(whole, item)
        fragment = Fragment(whole.text, item.start, item.end).trimmed()
        if item.form == "quoted":
            fragment = unquoted(fragment)
        if fragment.end > fragment.start:
            self._elements.append(_Run(fragment, count))

    def _count(self, whole: Fragment, item: Item) -> int:
        """How often an element is repeated; BadRepeat when `*count` makes no sense."""
        if item.repeat is None:
            return 1
        string, star, end = whole.text.string, *item.repeat
        count = string[star + 1 : end].strip(" \t")
        place = star
        if item.start == item.end:
            wrong = "nothing stands before the '*'"
        elif item.form == "group":
            wrong = "an element in brackets cannot be repeated"
        elif not count:
            wrong = "the count behind the '*' is missing"
        elif not INTEGER.fullmatch(count) or (count.startswith("-") and count.lstrip("-0")):
            wrong, place = f"'{shorten(count, 30)}' is not a count", string.index(count, star + 1)
        elif len(count.lstrip("+0")) > 10 or int(count) > MAX_COUNT:
            wrong, place = f"the count {shorten(count, 30)} is too large", string.index(count, star + 1)
        else:
            return int(count)
        raise ConfigError(
            "BadRepeat",
            f"{self.value.path + ': ' if self.value.path else ''}'{shorten(string[item.start : end])}': {wrong}",
            whole.text.span(place, max(1, end - place)),
            hint='write value*count, for instance 0.1*3; put an element that contains a "*" in quotes',
        )


class PerEpoch(_Runs[T], Generic[T]):
    """Values per epoch: an index past the end gives the last one. `len()` is the number listed.

    rates = config.array("learningRatesPerMB").doubles()      # 0.1*3:0.2
    rates[9]                                                  # 0.2
    """

    def __init__(self, values: Sequence[T], counts: list[int] | None = None, source: ConfigValue | None = None) -> None:
        super().__init__([1] * len(values) if counts is None else counts)
        self._values = list(values)
        self._source = source

    def _run(self, index: int) -> int:
        if not len(self):
            source = ConfigValue() if self._source is None else self._source
            raise source.error("EmptyVector", "the list is empty, but a value is needed", "give at least one value")
        return super()._run(min(index, len(self) - 1))

    def _element(self, run: int) -> T:
        return self._values[run]


def _plain(value: str) -> Fragment:
    """A text given by a program, as if it had been read from a file called `<default>`."""
    from cntk_config.includes import plain_text

    text = plain_text(value, "<text>")
    return Fragment(text, 0, len(text.string)).trimmed()
