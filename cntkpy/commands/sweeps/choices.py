"""The words of a sweep: which are choices, of what values; see docs/sweeps.md for the forms.

train/SGD/learningRatesPerMB=0.1,0.2        choices of two
train/SGD/momentumPerMB=range(0, 0.9)       any number
train/SGD/minibatchSize=zip(16, 32)         changes together with all other `zip`
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cntkpy.cntk_config import ConfigError, Span
from cntkpy.cntk_config.base.diagnostics import shorten, suggestion
from cntkpy.cntk_config.base.source import Source
from cntkpy.cntk_config.command_line import CONFIG_FILE, CURRENT_DIRECTORY
from cntkpy.commands.sweeps.rewrites import CALL, FORMS, inside_sections, rewritten, split, without_brackets

NAME = re.compile(r'[ \t]*("?)[\w./:-]+\1[ \t]*')
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
WHOLE = re.compile(r"[-+]?\d+")
MOST_VALUES = 1_000_000
"""Most values of one range."""
MOST_WHOLE = 2**53
"""Greater whole numbers have no exact floating-point number."""
HINT = "give a word several values, such as train/SGD/learningRatesPerSample=0.01,0.03"
EXAMPLE = "write range(LOW, HIGH), range(LOW, HIGH, log), range(LOW, HIGH, count=5) or range(LOW, HIGH, step=2)"


@dataclass(frozen=True)
class Choice:
    """Several values of one path, or of several paths that change together.

    Attributes:
        paths: the names of the values.
        rows: for every choice a text for each path.
    """

    paths: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def values(self, index: int) -> dict[str, str]:
        """Return the texts of one choice."""
        return dict(zip(self.paths, self.rows[index], strict=True))

    @property
    def to_check(self) -> list[dict[str, str]]:
        """The values that stand for all others."""
        return [self.values(index) for index in range(len(self.rows))]


@dataclass(frozen=True)
class Interval:
    """All numbers between two.

    Attributes:
        path: the name of the value.
        low: the least number.
        high: the greatest number.
        log: numbers are drawn by their logarithm.
        whole: only whole numbers.
    """

    path: str
    low: float
    high: float
    log: bool
    whole: bool

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the values."""
        return (self.path,)

    @property
    def to_check(self) -> list[dict[str, str]]:
        """The values that stand for all others: the bounds."""
        return [{self.path: self.text(self.low)}, {self.path: self.text(self.high)}]

    def text(self, value: float) -> str:
        """Return a number as it is written, with ten digits."""
        return str(round(value)) if self.whole else f"{value:.10g}"

    def exact(self, value: float) -> str:
        """Return a number with all its digits: the trial runs with the very number that the study keeps (D27)."""
        return str(round(value)) if self.whole else repr(float(value)).removesuffix(".0")

    def at(self, part: float) -> str:
        """Return the number at a part (0 to 1, without 1) of the interval."""
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        value = low * (high / low) ** part if self.log else low + (high - low) * part
        return self.text(min(math.floor(value), self.high) if self.whole else value)


Axis = Choice | Interval


@dataclass(frozen=True)
class Space:
    """The words of a sweep.

    Attributes:
        words: all words, those with choices as they were given.
        names: for each of the words the path that it chooses a value of, or an empty text.
        axes: what is chosen.
    """

    words: tuple[str, ...]
    names: tuple[str, ...]
    axes: tuple[Axis, ...]

    def words_for(self, values: dict[str, str]) -> list[str]:
        """Return the classic command line of a trial."""
        pairs = zip(self.words, self.names, strict=True)
        return [f"{name}={values[name]}" if name else word for word, name in pairs]

    def place(self, path: str) -> Span:
        """Return the word that chooses a value."""
        number = self.names.index(path)
        return Span(Source(f"<argument {number + 1}>", self.words[number], argument=number + 1), 1, 1)

    def first(self) -> dict[str, str]:
        """Return one value for every path."""
        return {path: text for axis in self.axes for path, text in axis.to_check[0].items()}


def read_words(words: Sequence[str]) -> Space:
    """Return the words of a sweep.

    Raises:
        ConfigError: a choice is wrong, or there is none.
    """
    forms = [_read(word, number) for number, word in enumerate(words, 1)]
    names = tuple(form.name if form is not None else "" for form in forms)
    result = [form for form in forms if form is not None]
    seen: dict[str, str] = {}
    for form in result:
        key = form.name.replace("/", ".").lower()
        if key in seen:
            raise form.error("Conflict", f"'{form.name}' is chosen twice", "give all values of it in one word")
        seen[key] = form.name
    if not result:
        listed = next((listed for word in words if (listed := without_brackets(word)) is not None), None)
        hint = f"commas in brackets are one value; write {listed}" if listed is not None else HINT
        raise ConfigError("MissingParameter", "no word of this sweep has a choice", None, hint)
    return Space(tuple(words), names, tuple(_axes(result)))


@dataclass(frozen=True)
class _Form:
    """A word with a choice: its path, the form, what stands in its brackets, and where the word stands."""

    name: str
    form: str
    parts: tuple[str, ...]
    source: Source

    def error(self, kind: str, message: str, hint: str) -> ConfigError:
        column = self.source.text.find("=") + 2
        return ConfigError(
            kind, message, Span(self.source, 1, column, max(1, len(self.source.text) - column + 1)), hint
        )


def _read(word: str, number: int) -> _Form | None:
    """Return the choice of a word; None: it is a word like every other."""
    name, equals, value = word.partition("=")
    if not equals or word.lower().startswith((CONFIG_FILE, CURRENT_DIRECTORY)) or not NAME.fullmatch(name):
        return None
    source, value, name = Source(f"<argument {number}>", word, argument=number), value.strip(), name.strip()
    _refuse_inside(_Form(name, "", (), source), word)
    call = CALL.fullmatch(value)
    pieces = split(value, ",")
    if call is not None and len(pieces) == 1 and len(split(call[2], ")")) == 1:
        if call[1] not in FORMS:
            _refuse_other_form(_Form(name, call[1], tuple(split(call[2], ",")), source))
            return None
        return _checked(_Form(name, call[1], tuple(split(call[2], ",")), source))
    if len(pieces) < 2 or len(split(value, ";")) > 1 or any(len(split(segment, "=")) > 1 for segment in pieces[1:]):
        return None
    return _checked(_Form(name, "choice", tuple(pieces), source))


def _refuse_other_form(form: _Form) -> None:
    """Refuse a form of other programs, such as `loguniform(1e-4, 0.1)`, and say how it is written here.

    Raises:
        ConfigError: it is one.
    """
    written = rewritten(form.form, form.parts)
    if written is not None:
        message = f"{form.name}: {form.form}(...) is no form of a sweep"
        raise form.error("BadChoice", message, f"write '{form.name}={written}'")


def _refuse_inside(form: _Form, word: str) -> None:
    """Refuse choices inside of sections, where a comma ends a value.

    Raises:
        ConfigError: there are some.
    """
    words = list(inside_sections(word))
    if words:
        written = " ".join(f"'{word}'" for word in words)
        message = f"{form.name}: a choice stands in a word of its own, not in a section"
        raise form.error("BadChoice", message, f"write {written}")


def _checked(form: _Form) -> _Form:
    """Return a form in which no value is empty, and none is there twice."""
    if "" in form.parts:
        raise form.error("MissingValue", f"{form.name} has an empty choice", 'write "" for an empty text')
    if form.form == "range":
        return form
    twice = next((part for index, part in enumerate(form.parts) if part in form.parts[:index]), None)
    if twice is not None and form.form == "choice":
        raise form.error("Conflict", f"{form.name} has the choice {twice} twice", "give every value once")
    return form


def _axes(forms: list[_Form]) -> Iterator[Axis]:
    """Return the axes, in the order of the words; all words with `zip` are one, in the place of the first."""
    zipped = [form for form in forms if form.form == "zip"]
    for form in forms:
        if form.form == "choice":
            yield Choice((form.name,), tuple((part,) for part in form.parts))
        elif form.form == "range":
            yield _range(form)
        elif form is zipped[0]:
            yield _zip(zipped)


def _zip(forms: list[_Form]) -> Choice:
    first = forms[0]
    if len(forms) == 1:
        message = f"only {first.name} has zip(...), which joins the values of several words"
        raise first.error("Conflict", message, "write choice(...), or give a second word with zip(...)")
    for form in forms:
        if len(form.parts) != len(first.parts):
            message = f"{first.name} has {len(first.parts)} values in zip(...), {form.name} has {len(form.parts)}"
            raise form.error("Conflict", message, "give all words with zip(...) as many values")
    rows = tuple(zip(*(form.parts for form in forms), strict=True))
    twice = next((row for index, row in enumerate(rows) if row in rows[:index]), None)
    if twice is not None:
        raise first.error("Conflict", f"zip(...) has the values {', '.join(twice)} twice", "give them once")
    return Choice(tuple(form.name for form in forms), rows)


def _range(form: _Form) -> Axis:
    """Return a range: an interval, or the numbers of it that `count` or `step` name."""
    bounds, options = form.parts[:2], form.parts[2:]
    if len(bounds) < 2 or not all(NUMBER.fullmatch(bound) for bound in bounds):
        raise form.error("BadNumber", f"the range of {form.name} begins with two numbers", EXAMPLE)
    low, high = map(float, bounds)
    log, count, step = _options(form, options)
    whole = all(map(WHOLE.fullmatch, bounds))
    _check_width(form, bounds, log, whole)
    if not low < high:
        raise form.error(
            "BadOrder", f"the range of {form.name} is empty: {bounds[0]} is not below {bounds[1]}", EXAMPLE
        )
    if log and low <= 0:
        hint = "begin with a number above 0, or leave out log"
        raise form.error("BadValue", f"the range of {form.name} begins with {bounds[0]}, which has no logarithm", hint)
    interval = Interval(form.name, low, high, log, whole)
    if count is not None:
        parts = [index / (count - 1) for index in range(count)]
        values = [low * (high / low) ** part if log else low + (high - low) * part for part in parts]
    elif step is not None:
        steps = (high - low) / step * (1 + 1e-12)
        if steps >= MOST_VALUES:
            message = f"the range of {form.name} has more than {MOST_VALUES:,} values"
            raise form.error("BadValue", message, "write a larger step")
        listed = math.floor(steps) + 1
        values = [low + step * index for index in range(listed)]
        interval = Interval(form.name, low, high, log, interval.whole and float(step).is_integer())
    else:
        return interval
    return Choice((form.name,), tuple(dict.fromkeys((interval.text(value),) for value in values)))


def _check_width(form: _Form, bounds: Sequence[str], log: bool, whole: bool) -> None:
    """Check that the numbers of a range can be computed.

    Raises:
        ConfigError: they are too large, or too far apart.
    """
    low, high = map(float, bounds)
    for text, value in zip(bounds, (low, high), strict=True):
        if not math.isfinite(value):
            raise form.error(
                "BadNumber", f"the range of {form.name} has {shorten(text, 40)}, which is too large", EXAMPLE
            )
        if whole and abs(value) > MOST_WHOLE:
            message = f"the range of {form.name} has {shorten(text, 40)}; its whole numbers are {MOST_WHOLE:,} at most"
            raise form.error("BadNumber", message, "write a point in it, such as 1e20, for any number")
    if not math.isfinite(high - low) or (log and low > 0 and not math.isfinite(high / low)):
        message = f"the range from {bounds[0]} to {bounds[1]} of {form.name} is too wide"
        raise form.error("BadNumber", message, EXAMPLE)


def _options(form: _Form, options: Sequence[str]) -> tuple[bool, int | None, float | None]:
    """Return the options of a range, after its bounds: `log`, `count=N`, `step=X`."""
    log, count, step = False, None, None
    for option in options:
        name, _, text = (part.strip() for part in option.partition("="))
        if option == "log":
            log = True
        elif name == "count" and re.fullmatch("[0-9]{1,6}", text) and int(text) > 1:
            count = int(text)
        elif name == "step" and NUMBER.fullmatch(text) and float(text) > 0:
            step = float(text)
        else:
            hint = suggestion(name, ["log", "count", "step"]) if name not in ("count", "step") else None
            if name.lower() in ("log", "log_scale", "scale") and text:
                hint = "write log" if text.lower() in ("true", "1", "log") else "leave it out: a range is linear"
            raise form.error("BadValue", f"'{option}' is no option of a range", hint or EXAMPLE)
    if step is not None and (log or count is not None):
        other_text = "log" if log else "count"
        raise form.error("Conflict", f"step and {other_text} do not go together in a range", "keep one of them")
    return log, count, step


def product(axes: Sequence[Axis]) -> int | None:
    """Return the number of combinations; None: there are infinitely many."""
    sizes = [size(axis) for axis in axes]
    return None if None in sizes else math.prod(length for length in sizes if length is not None)


def size(axis: Axis) -> int | None:
    """Return the number of values of an axis; None: any number of an interval."""
    if isinstance(axis, Choice):
        return len(axis.rows)
    return int(axis.high - axis.low) + 1 if axis.whole and not axis.log else None
