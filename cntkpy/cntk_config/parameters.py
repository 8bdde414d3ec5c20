"""Values, arrays and sets of parameters: text that becomes a number, a list or a section when somebody asks for it.

The three stand in one file because each makes the others: a value is read as an array or as a set, their elements are
values.
"""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, overload

from cntkpy.cntk_config.arrays import PerEpoch, Runs
from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span, shorten, suggestion
from cntkpy.cntk_config.base.source import Fragment, Source, Text, Use, read_lines
from cntkpy.cntk_config.definitions import Definition, Origin, all_given, given_by
from cntkpy.cntk_config.includes import Loader, plain_text, read_file
from cntkpy.cntk_config.parse import Item, Record, parse_array, parse_set, remembered, unquoted
from cntkpy.cntk_config.variables import expand, substitute
from cntkpy.grammar.tables import terminal

T = TypeVar("T")
D = TypeVar("D")
INTEGER = terminal("config", "INTEGER")
REAL = terminal("config", "REAL")
INFINITE = terminal("config", "INFINITE")
TRUE = terminal("config", "TRUE")
FALSE = terminal("config", "FALSE")
WHITESPACE = " \t\n\r\f\v"
SIZE_MAXIMUM = 2**64 - 1
MAX_COUNT = 2**31 - 1
MIN_SIMILARITY = 0.75
"""Least similarity of a suggested name to the missing one, 0 to 1."""
MAX_NESTING = 100
"""Largest nesting depth of sections."""
ONE_WORD_HINT = 'on the command line name=value is one word, without blanks around its "="'


class ConfigValue(str):
    """The text of a value, after substitution, which knows its place and converts itself.

    It is a `str` and works as one. `int(v)`, `float(v)` and the `as_...` methods convert the whole text, or raise a
    `ConfigError` that names the parameter and its place in the user's file.
    """

    __slots__ = ("entry", "fragments", "path", "scope")

    path: str
    """The full name, for instance `main.cntk:train:SGD:maxEpochs`."""
    fragments: tuple[Fragment, ...]
    scope: ConfigParameters | None
    """The set that becomes the parent when the value is read as a section."""
    entry: Definition | None

    def __new__(
        cls,
        text: str = "",
        *,
        path: str = "",
        fragments: tuple[Fragment, ...] = (),
        scope: ConfigParameters | None = None,
        entry: Definition | None = None,
    ) -> ConfigValue:
        """Return a value; a program needs only `ConfigValue("text")`, the rest is filled in by the parser."""
        value = super().__new__(cls, text)
        value.path, value.fragments, value.scope = path, fragments, scope
        value.entry = entry
        return value

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    @property
    def span(self) -> Span | None:
        """Span of the value in the user's text; None for a default of the program."""
        return self.fragments[0].span if self.fragments else None

    def locate(self, offset: int, length: int = 1) -> Span | None:
        """Return the place in the user's file of the character at `offset` of this text.

        For a character that came out of a variable, that is the place of `$name$`.
        """
        for fragment in self.fragments:
            size = fragment.end - fragment.start
            if offset <= size:
                return fragment.text.span(fragment.start + max(0, offset), length)
            offset -= size + 1
        return self.fragments[-1].text.span(self.fragments[-1].end, length) if self.fragments else None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Origins of the value: the last definition first, what it overrode, the variables put in."""
        history = self.entry.history if self.entry else ()
        variables: dict[str, Origin] = {}
        pending = [use for fragment in self.fragments for use in fragment.uses][::-1]
        while pending:
            use = pending.pop()
            if use.name.lower() not in variables:
                variables[use.name.lower()] = Origin("variable", use.name, use.text, use.span)
                pending.extend(reversed(use.inner))
        return (*history, *variables.values())

    @property
    def in_word(self) -> bool:
        """True if a word of the command line has set it, a part of it, or a variable in it."""
        kinds = ("set", "merged", "variable")
        return any(origin.span is not None and origin.span.in_word for origin in self.origins if origin.kind in kinds)

    def error(self, kind: str, message: str, hint: str | None = None) -> ConfigError:
        """Return a `ConfigError` at this value; the message gets the full name in front."""
        uses = [use for fragment in self.fragments for use in fragment.uses]
        notes = [f"${use.name}$ is '{shorten(use.text)}', defined at {use.span}" for use in uses[:3]]
        return ConfigError(kind, f"{self.path}: {message}" if self.path else message, self.span, hint, notes)

    def __int__(self) -> int:
        return self.as_int64()

    def __float__(self) -> float:
        return self.as_double()

    def as_int(self) -> int:
        """Return a 32-bit integer."""
        return self._integer(-(2**31), 2**31 - 1)

    def as_uint(self) -> int:
        """Return an unsigned 32-bit integer."""
        return self._integer(0, 2**32 - 1)

    def as_short(self) -> int:
        """Return a 16-bit integer."""
        return self._integer(-(2**15), 2**15 - 1)

    def as_int64(self) -> int:
        """Return a 64-bit integer."""
        return self._integer(-(2**63), 2**63 - 1)

    def as_size(self) -> int:
        """Return an unsigned 64-bit integer; -1 means the greatest one."""
        return self._integer(0, SIZE_MAXIMUM, minus_one=True)

    def as_double(self) -> float:
        """Return a number as C's strtod reads it, including hexadecimal, `inf`, `nan` and `1#INF`."""
        text = self.strip(WHITESPACE)
        if not REAL.fullmatch(text):
            match = INFINITE.fullmatch(text)
            if not match:
                raise self.error("BadNumber", f"'{shorten(self)}' is not a number", self._number_hint(text))
            return -math.inf if match["sign"] == "-" else math.inf
        try:
            return float.fromhex(text) if "x" in text.lower() else float(re.sub(r"(?i)(nan)\(.*", r"\1", text))
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf

    def as_float(self) -> float:
        """Return a number rounded to 32 bits."""
        value = self.as_double()
        return array("f", [value])[0] if math.isfinite(value) else value

    def as_bool(self) -> bool:
        """Return a truth value: 1 t T true True TRUE, or 0 f F false False FALSE and the empty text."""
        text = self.strip(WHITESPACE)
        if TRUE.fullmatch(text):
            return True
        if FALSE.fullmatch(text) or not text:
            return False
        raise self.error("BadBoolean", f"'{shorten(self)}' is not a boolean", "write true or false")

    def _integer(self, low: int, high: int, minus_one: bool = False) -> int:
        text = self.strip(WHITESPACE)
        if not INTEGER.fullmatch(text):
            hint = "write a whole number with digits only"
            if REAL.fullmatch(text) and math.isfinite(value := self.as_double()) and value == int(value):
                hint = f"write {int(value)}" if abs(value) < 1e18 else hint
            raise self.error("BadInteger", f"'{shorten(self)}' is not an integer", hint)
        sign, digits = text[0] == "-", text.lstrip("+-").lstrip("0") or "0"
        value = int(digits) if len(digits) <= 20 else 10**20
        value = -value if sign else value
        if value == -1 and minus_one:
            return high
        if not low <= value <= high:
            raise self.error("IntegerRange", f"{shorten(text)} is out of range, {low} to {high}")
        return value

    def _number_hint(self, text: str) -> str:
        if "," in text and REAL.fullmatch(text.replace(",", ".")):
            return "use a point, not a comma, for fractions"
        return "write a number such as 3, 0.5 or 1e-4"

    def as_text(self) -> str:
        """Return the plain `str`."""
        return str.__str__(self)

    def as_array(self) -> ConfigArray:
        """Return the elements, for instance of `1:2*3`, `(a, b)` or `([x=1]:[x=2])`."""
        return ConfigArray(self)

    def as_section(self) -> ConfigParameters:
        """Return the value as a set of parameters."""
        return ConfigParameters.from_value(self)

    @overload
    def __call__(self, name: str) -> ConfigValue: ...
    @overload
    def __call__(self, name: str, default: str) -> ConfigValue: ...
    @overload
    def __call__(self, name: str, default: D) -> D: ...
    def __call__(self, name: str, default: Any = ...) -> Any:
        """Return the value of `name` in this section: `sgd = config("SGD"); sgd("maxEpochs")`."""
        return self.as_section()(name) if default is ... else self.as_section()(name, default)

    def as_sections(self) -> list[ConfigParameters]:
        """Return an array of sets, for instance `([x=1]:[x=2])`, without a parent: names are not searched outside."""
        return self.as_array().sections()


class _Run(NamedTuple):
    """An element and how often it is in the array."""

    fragment: Fragment
    times: int


class ConfigArray(Runs[ConfigValue]):
    """The elements of a value that is read as an array, each a `ConfigValue`.

        config.array("layers")            # layers=784:256*2:10
        [int(n) for n in config.array("layers")]

    `value*count` repeats. Quoted and bracketed elements are kept whole. Empty elements vanish.
    """

    def __init__(self, value: ConfigValue | str = "") -> None:
        self.value = value if isinstance(value, ConfigValue) else ConfigValue(value)
        fragments = self.value.fragments or (_plain(self.value, "<text>").trimmed(),)
        self._elements: list[_Run] = []
        for fragment in fragments:
            for item in parse_array(fragment):
                self._add(fragment, item)
        super().__init__([run.times for run in self._elements])

    def load_config_file(self, path: str | os.PathLike[str]) -> None:
        """Append the elements in a file that has one element (or several, as in `a:b*3`) a line."""
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
        """Return every element converted, for instance `array.convert(ConfigValue.as_double)`."""
        values = [converter(self._element(run)) for run in range(len(self._elements))]
        return PerEpoch(values, [run.times for run in self._elements], self.value)

    def integers(self) -> PerEpoch[int]:
        """Return the elements as 32-bit integers."""
        return self.convert(ConfigValue.as_int)

    def sizes(self) -> PerEpoch[int]:
        """Return the elements as unsigned 64-bit integers."""
        return self.convert(ConfigValue.as_size)

    def doubles(self) -> PerEpoch[float]:
        """Return the elements as numbers."""
        return self.convert(ConfigValue.as_double)

    def floats(self) -> PerEpoch[float]:
        """Return the elements as numbers rounded to 32 bits."""
        return self.convert(ConfigValue.as_float)

    def sections(self) -> list[ConfigParameters]:
        """Return the elements as sets of parameters, without a parent.

        A value that is one set and not a list of sets gives this one set.
        """
        bracketed = any(run.fragment.text.string[run.fragment.start] in "[({" for run in self._elements)
        if self._elements and not bracketed:
            return [ConfigParameters.from_value(self.value, alone=True)]
        values = [self._make(run) for run in range(len(self._elements))]
        sets = [ConfigParameters.from_value(value, alone=True) for value in values]
        return list(PerEpoch(sets, [run.times for run in self._elements], self.value))

    def _where(self) -> ConfigValue:
        return self.value

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
        known = (fragment,) if self.value.fragments else ()  # a default of the program has no place
        return ConfigValue(text, path=path, fragments=known, scope=None)

    def _add(self, whole: Fragment, item: Item) -> None:
        count = self._count(whole, item)
        fragment = Fragment(whole.text, item.start, item.end).trimmed()
        if item.form == "quoted":
            fragment = unquoted(fragment)
        if fragment.end > fragment.start:
            self._elements.append(_Run(fragment, count))

    def _count(self, whole: Fragment, item: Item) -> int:
        """Return the repeat count of an element; raise BadRepeat if `*count` is invalid."""
        if item.repeat is None:
            return 1
        string, star, end = whole.text.string, *item.repeat
        count = string[star + 1 : end].strip(" \t")
        place = star
        if item.start == item.end:
            wrong = "there is no value before the '*'"
        elif item.form == "group" and string[item.start] != "[":
            wrong = "a list in brackets cannot be repeated"
        elif not count:
            wrong = "the count after the '*' is missing"
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


class _Required:
    """The default of what has no default."""

    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


class _Tree:
    """State shared by all sets of one configuration."""

    def __init__(self) -> None:
        self.warnings: list[Diagnostic] = []
        self.generation = 0
        """Counts the changes after loading; substituted texts are kept until the next one."""
        self.assignments = 0
        """Counts the texts that were given to entries."""
        self._known: set[tuple[str, str]] = set()

    def warn(self, warning: Diagnostic) -> None:
        """Keep a warning, once."""
        key = (warning.kind, str(warning.span))
        if key not in self._known:
            self._known.add(key)
            self.warnings.append(warning)


class _Entries:
    """The entries of one set.

    Attributes:
        by_name: By name, see `_key`.
        removed: The words `section/name=default` that removed entries, or found none, by the name.
        tree: What all sets of the configuration share.
    """

    def __init__(self, tree: _Tree) -> None:
        self.by_name: dict[str, Definition] = {}
        self.removed: dict[str, Definition] = {}
        self.tree = tree

    def insert(self, fragment: Fragment, top: bool) -> None:
        """Add the parameters of a text; `top`: it is that of a root, not of a section."""
        records = remembered(fragment, "given", all_given)  # a section is made again by everyone who reads it
        if records is None:
            self._insert_records(parse_set(fragment), fragment.text, top)
        else:
            for record in records:
                self.assign(Definition(*record))

    def _insert_records(self, records: Sequence[Record], text: Text, top: bool) -> None:
        previous_record: Record | None = None
        for record in records:
            if record.kind in ("assignment", "flag"):
                entry = Definition(*given_by(record, text))
                if entry.name:
                    self.assign(entry)
                else:
                    self._note_nameless(text, record)
            elif record.kind == "missing":
                raise _missing_value(record, text)
            elif record.kind == "unnamed":
                self._note_nameless(text, record, previous_record)
            elif record.kind == "stray":
                message = f"this '{text.string[record.start]}' closes nothing and is ignored"
                self._note("StrayBracket", text, record, message, "remove it")
            elif (
                top and previous_record is not None and not text.string[previous_record.end : record.start].strip(" \t")
            ):
                # only at the top: a section may be in another language, as NDL is
                message = "this bracket does not belong to the value before it"
                self._note("NamelessGroup", text, record, message, "put both into one bracket, or give it a name")
            previous_record = record

    def assign(self, new: Definition) -> None:
        """Add an entry, or give an entry of the same name another value."""
        self.tree.assignments += 1
        new.order = self.tree.assignments
        if new.is_removal:
            self.by_name.pop(_key(new.name), None)
            self.removed[_key(new.name)] = new
            return
        entry = self.by_name.setdefault(_key(new.name), new)
        if entry is not new:
            warning = entry.assign(new)
            if warning:
                self.tree.warn(warning)

    def removals(self) -> list[Definition]:
        """Return the words that remove entries, where no later word has given these again."""
        return [entry for key, entry in self.removed.items() if key not in self.by_name]

    def _note_nameless(self, text: Text, record: Record, previous_record: Record | None = None) -> None:
        message, hint = "a value without a name is ignored", "write name=value"
        if previous_record is not None and previous_record.name is not None and previous_record.value is not None:
            element = text.string[slice(*previous_record.value)]
            if element[:1] == "[" and element[1:-1].strip().isdigit() and text.string.startswith("=", record.start):
                name = text.string[slice(*previous_record.name)].strip(" \t")
                hint = f"one element of a list cannot be set: write the whole list, {name}=FIRST:SECOND"
        if text.span(record.start).in_word:
            hint = ONE_WORD_HINT
        self._note("EmptyName", text, record, message, hint)

    def _note(self, kind: str, text: Text, record: Record, message: str, hint: str) -> None:
        span = text.span(record.start, 1 if record.kind == "nameless" else max(1, record.end - record.start))
        self.tree.warn(Diagnostic(kind, message, span, hint, severity="warning"))


class ConfigParameters:
    """A set of parameters: the root of a configuration, or a section of it.

        config = parse("maxEpochs=5; reader=[file=train.txt]")
        int(config("maxEpochs"))          # 5
        config("traceLevel", 0)           # 0, of the type of the default
        config.section("reader")("file")  # 'train.txt'; a name not found there is searched further out

    Names ignore letter case. Values are text until they are converted, and remember where they come from.
    """

    def __init__(self, *, path: str = "global", parent: ConfigParameters | None = None) -> None:
        self.path = path
        """The full name, for instance `main.cntk:train:SGD`."""
        self.parent = parent
        """Set in which missing names are searched."""
        self.span: Span | None = None
        """Span of the section in the user's text; None for the root."""
        self._entries = _Entries(parent._entries.tree if parent else _Tree())
        self._depth: int = parent._depth + 1 if parent else 0

    def __repr__(self) -> str:
        return f"<ConfigParameters {self.path}: {', '.join(self.names()[:8])}{', ...' if len(self) > 8 else ''}>"

    @overload
    def __call__(self, name: str) -> ConfigValue: ...
    @overload
    def __call__(self, name: str, default: str) -> ConfigValue: ...
    @overload
    def __call__(self, name: str, default: D) -> D: ...
    def __call__(self, name: str, default: Any = REQUIRED) -> Any:
        """Return the value of `name`, here or further out.

        Without a default, a missing or empty value is an error. With one, the result has its type: text gives a
        `ConfigValue`; a bool, int or float converts the value; None gives None or a `ConfigValue`.
        """
        value = _get(self, name, default is REQUIRED)
        if value is None:
            return ConfigValue(default, path=_full(self, name), scope=self) if isinstance(default, str) else default
        return _like(default, value)

    def find(self, name: str) -> ConfigValue | None:
        """Return the value of `name`, here or further out, or None. A section may keep undefined variables."""
        return _value_if_any(self, *_find(self, name))

    def own(self, name: str) -> ConfigValue | None:
        """Return the value of `name` in this very set, or None."""
        return _value_if_any(self, self, self.definition(name))

    def section(self, name: str, default: str | None = None) -> ConfigParameters:
        """Return the set of parameters `name`. Names which it lacks are searched in this set, then outside."""
        entry = _find(self, name)[1]
        value = _get(self, name, default is None, strict=entry is not None and not entry.bracket)
        if value is None:
            value = ConfigValue(default or "", path=_full(self, name), scope=self)
        return ConfigParameters.from_value(value)

    def array(self, name: str, default: str | None = None) -> ConfigArray:
        """Return the value of `name` as an array. `default` is config text, for instance `""` or `"1:2"`."""
        value = _get(self, name, default is None, strict=False)
        return ConfigArray(ConfigValue(default or "", path=_full(self, name)) if value is None else value)

    def sections(self, name: str, default: str | None = None) -> list[ConfigParameters]:
        """Return the array of sets `name`, for instance `deserializers=([..]:[..])`. They have no parent."""
        return self.array(name, default).sections()

    def opaque(self, name: str) -> ConfigValue:
        """Return the text of `name` in another language (NDL). Variables are also searched in this very set."""
        return _opaque(self, name)

    def exists(self, name: str) -> bool:
        """Return True when `name` is defined here or further out, whatever its value."""
        return _find(self, name)[1] is not None

    __contains__ = exists

    def exists_current(self, name: str) -> bool:
        """Return True when `name` is defined in this very set."""
        return self.definition(name) is not None

    def is_removed(self, name: str) -> bool:
        """Return True when the nearest definition of `name` is `default`, which removes a value or a section."""
        entry = _find(self, name)[1]
        return entry is not None and entry.is_default

    def removals(self) -> list[Definition]:
        """Return the words `section/name=default` for this very set whose entries no later word has given again."""
        return self._entries.removals()

    def match(self, name: str, text: str) -> bool:
        """Return True when the value is `text`, ignoring letter case. A missing value is an empty text."""
        value = _get(self, name, False)
        return ("" if value is None else value.strip(" \t")).lower() == text.lower()

    def names(self) -> list[str]:
        """Return the names defined in this very set, in the order of their first definition."""
        return [entry.name for entry in self._entries.by_name.values()]

    def inner(self) -> Iterator[tuple[str, ConfigParameters]]:
        """Names and sections of what is written as a section in this very set; other entries are left out."""
        return _inner(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._entries.by_name)

    def __bool__(self) -> bool:
        return True

    @property
    def warnings(self) -> list[Diagnostic]:
        """Warnings so far about the whole configuration."""
        return self._entries.tree.warnings

    @property
    def generation(self) -> int:
        """Changes of the whole configuration so far; substituted texts are kept until the next one."""
        return self._entries.tree.generation

    def error(self, name: str, message: str, hint: str | None = None, kind: str = "BadValue") -> ConfigError:
        """Return a `ConfigError` at the value of `name`, or at this section when there is none."""
        holder, entry = _find(self, name)
        span = entry.span if holder and entry else self.span
        return ConfigError(kind, f"{_full(self, name) if name else self.path}: {message}", span, hint)

    def insert(self, name: str, value: object = None) -> None:
        """Add a parameter, as `insert("name", value)` or as config text: `insert("name=value; b=[x=1]")`.

        As in a file, a later value replaces an earlier one, and `[ ]` is added to a section. A dictionary is a section,
        a list an array.

        Raises:
            ConfigError: a value of another type.
        """
        if value is None:
            self.add_text(plain_text(name, "<insert>"))
        else:
            self._entries.assign(_definition_of(name.strip(" \t"), value))
            self._entries.tree.generation += 1

    def load_config_file(self, path: str | os.PathLike[str]) -> None:
        """Add the parameters of a file (and of those which it includes), as if they stood at the end."""
        loader = Loader()
        text = loader.expand(loader.file(os.fspath(path)))
        _add(self, text, loader)

    def stored(self, name: str, *, raw: bool = False, strict: bool = True) -> ConfigValue:
        """Return the text of an own entry, for tools: `raw` without substitution; empty where it is the word `default`.

        With `strict=False` variables that cannot be replaced stay in the text.
        """
        return _stored(self, self._entries.by_name[_key(name)], raw, strict)

    @classmethod
    def from_value(cls, value: ConfigValue, *, alone: bool = False) -> ConfigParameters:
        """Return a value read as a set. With `alone` it has no parent."""
        section = cls(path=value.path, parent=None if alone else value.scope)
        section.span = value.span
        if value.scope is not None:
            section._entries.tree = value.scope._entries.tree
        if section._depth > MAX_NESTING:
            message = f"sections are nested deeper than {MAX_NESTING} levels"
            raise ConfigError("NestingTooDeep", message, value.span)
        fragments = value.fragments or ((_plain(value, "<default>"),) if value else ())
        for fragment in fragments:
            section._entries.insert(fragment, section.parent is None)
        return section

    def files(self) -> list[Path]:
        """Return the files that entries of this very set were read from, each once, in the order of the entries."""
        sources = [entry.span.source for entry in self._entries.by_name.values()]
        paths = [source.path for source in sources if isinstance(source, Source) and source.path is not None]
        return list(dict.fromkeys(paths))

    def definition(self, name: str) -> Definition | None:
        """Return the entry of `name` in this very set."""
        return self._entries.by_name.get(_key(name))

    def substituted(
        self, entry: Definition, /, *, active: tuple[Definition, ...] = ()
    ) -> tuple[str, tuple[Use, ...], int]:
        """Return the text of an own entry after substitution, what was put in, and how deep variables went."""
        fragments, depth = substitute(entry, self, active=active)
        return _string(fragments), tuple(use for fragment in fragments for use in fragment.uses), depth

    def missing(self, name: str, known: Collection[str] = ()) -> ConfigError:
        """Return the error of a parameter that has to be given and is not; one of the `known` names is not meant."""
        return _missing_parameter(self, name, _find(self, name)[1], known)

    def add_text(self, text: Text) -> None:
        """Add the parameters of a text, as if it stood at the end."""
        self._entries.insert(Fragment(text, 0, len(text.string)), self.parent is None)
        self._entries.tree.generation += 1

    def add_warnings(self, warnings: list[Diagnostic]) -> None:
        """Keep warnings, each once."""
        for warning in warnings:
            self._entries.tree.warn(warning)


def _find(section: ConfigParameters, name: str) -> tuple[ConfigParameters | None, Definition | None]:
    """Return the nearest set, from this one outwards, that defines a name, and its definition there."""
    scope: ConfigParameters | None = section
    while scope is not None:
        entry = scope.definition(name)
        if entry is not None:
            return scope, entry
        scope = scope.parent
    return None, None


def _get(section: ConfigParameters, name: str, mandatory: bool, *, strict: bool = True) -> ConfigValue | None:
    """Return the value of a name, here or further out; a missing or empty one that is mandatory is an error."""
    holder, entry = _find(section, name)
    if holder is None or entry is None or entry.is_default:
        if mandatory:
            raise section.missing(name)
        return None
    value = _value_of(section, holder, entry, section if mandatory else holder, strict=strict)
    if mandatory and not value:
        raise section.missing(name)
    return value


def _value_if_any(
    section: ConfigParameters, holder: ConfigParameters | None, entry: Definition | None
) -> ConfigValue | None:
    """Return the value of a definition in `holder`; None without one, and where it is the word `default`."""
    if holder is None or entry is None or entry.is_default:
        return None
    return _value_of(section, holder, entry, holder, strict=not entry.bracket)


def _value_of(
    section: ConfigParameters, holder: ConfigParameters, entry: Definition, scope: ConfigParameters, *, strict: bool
) -> ConfigValue:
    """Return the value of a definition.

    Args:
        section: The set that was asked; its path is in front of the name.
        holder: The set that has the definition.
        entry: The definition.
        scope: The set around the value, if it is read as a section.
        strict: Whether a variable that cannot be replaced is an error.
    """
    fragments, _ = substitute(entry, holder, strict=strict)
    return _make(fragments, _full(section, entry.name), scope, entry)


def _stored(section: ConfigParameters, entry: Definition, raw: bool, strict: bool) -> ConfigValue:
    """Return the text of an own entry, see `ConfigParameters.stored`."""
    path = _full(section, entry.name)
    if entry.is_default:
        return ConfigValue("", path=path, scope=section, entry=entry, fragments=tuple(entry.parts))
    if raw:
        return _make([part.tidy() for part in entry.parts], path, section, entry)
    return _value_of(section, section, entry, section, strict=strict)


def _opaque(section: ConfigParameters, name: str) -> ConfigValue:
    """Return a text in another language, see `ConfigParameters.opaque`."""
    value = _get(section, name, True, strict=False)
    assert value is not None
    fragments = [expand(fragment, section).fragment for fragment in value.fragments]
    return _make(fragments, value.path, section, value.entry)


def _inner(section: ConfigParameters) -> Iterator[tuple[str, ConfigParameters]]:
    """Yield names and sections, see `ConfigParameters.inner`."""
    for name in section.names():
        try:
            value = section.own(name)
            if value and value[0] in "[({":
                yield name, section.section(name)
        except ConfigError:
            continue


def _full(section: ConfigParameters, name: str) -> str:
    return f"{section.path}:{name}"


def read_text_file(path: str | os.PathLike[str], variables_from: ConfigParameters | None = None) -> ConfigValue:
    """Return a file in another language (NDL, MEL), read as a config file is: no comments, no empty lines.

    With `variables_from`, `$name$` is replaced from this section and its parents. The result knows its places:
    `value.locate(offset)` gives file, line and column.
    """
    text = read_file(path)
    fragment = Fragment(text, 0, len(text.string))
    if variables_from is not None:
        fragment = expand(fragment, variables_from).fragment
    name = Path(path).name
    return ConfigValue(fragment.string, path=name, fragments=(fragment,), scope=variables_from)


def parse(text: str, name: str = "<text>") -> ConfigParameters:
    """Return the configuration in a text. Include lines name files relative to the current directory."""
    loader = Loader()
    lines = read_lines(Source(name, text))
    merged = loader.expand(lines)
    return _add(ConfigParameters(path=name), merged, loader)


def root_of(text: Text, loader: Loader) -> ConfigParameters:
    """Return the root of the configuration that a loader has read."""
    return _add(ConfigParameters(path=loader.last), text, loader)


def _add(section: ConfigParameters, text: Text, loader: Loader) -> ConfigParameters:
    """Add the parameters of a text that a loader has read, and its warnings; return the set."""
    section.add_warnings(loader.warnings)
    section.add_text(text)
    return section


def _missing_parameter(
    section: ConfigParameters, name: str, entry: Definition | None, known: Collection[str]
) -> ConfigError:
    """Return the error of a parameter that has no value; `entry`: its definition, if there is one."""
    scopes: list[ConfigParameters] = []
    scope: ConfigParameters | None = section
    while scope is not None:
        scopes.append(scope)
        scope = scope.parent
    why = "is missing" if entry is None else "has no value of its own" if entry.is_default else "is empty"

    def hint() -> str | None:
        names = [name for scope in scopes for name in scope.names() if name.lower() not in known]
        return (suggestion(name, names, MIN_SIMILARITY) if entry is None else None) or f"add {name}=..."

    notes = [f"searched in {', '.join(scope.path for scope in scopes)}"] if entry is None else []
    span = entry.span if entry is not None else section.span
    return ConfigError("MissingParameter", f"{section.path}:{name} {why}", span, hint, notes)


def _missing_value(record: Record, text: Text) -> ConfigError:
    assert record.name is not None
    name = text.string[record.name[0] : record.name[1]].strip(" \t")
    span = text.span(record.end)
    rule = ONE_WORD_HINT if span.in_word else 'a bracket must open on the line of its "="'
    hint = f'write {name}="" for an empty text; {rule}'
    return ConfigError("MissingValue", f"the value of '{name}' is missing", span, hint)


def _make(fragments: list[Fragment], path: str, scope: ConfigParameters, entry: Definition | None) -> ConfigValue:
    return ConfigValue(_string(fragments), path=path, fragments=tuple(fragments), scope=scope, entry=entry)


def _string(fragments: list[Fragment]) -> str:
    """Return the text of a value; one of several lines ends with a newline."""
    string = fragments[0].string if len(fragments) == 1 else " ".join(fragment.string for fragment in fragments)
    return string + "\n" if "\n" in string and not string.endswith("\n") else string


def _like(default: object, value: ConfigValue) -> Any:
    """Return a value with the type of its default."""
    if isinstance(default, bool):
        return value.as_bool()
    if isinstance(default, int):
        return value.as_int64()
    return value.as_double() if isinstance(default, float) else value


def _key(name: str) -> str:
    """Names ignore the case of ASCII letters."""
    return name.lower() if name.isascii() else "".join(c.lower() if c.isascii() else c for c in name)


def _plain(value: str, name: str) -> Fragment:
    """Return a text given by a program, as if it had been read from a file of a name."""
    text = plain_text(value, name)
    return Fragment(text, 0, len(text.string))


def _definition_of(name: str, value: object) -> Definition:
    """Return the definition of a name whose value a program gives."""
    if isinstance(value, ConfigValue) and value.fragments:  # it keeps its place
        definition = Definition(name, None, value.fragments[0], value.entry is not None and value.entry.is_list)
        definition.parts = value.fragments
        return definition
    text = _text_of(name, value)
    fragment = plain_text(text, "<insert>")
    part = Fragment(fragment, 0, max(0, len(fragment.string) - 1)).trimmed()
    if len(text) > 1 and part.string[:1] == '"' and part.string.find('"', 1) == part.end - part.start - 1:
        part = unquoted(part)
    return Definition(name, None, part)


def _text_of(name: str, value: object) -> str:
    """Return a value of Python as it is written in a configuration."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return "[" + ";".join(f"{key}={_quoted(_text_of(key, member))}" for key, member in members.items()) + "]"
    if isinstance(value, list | tuple):
        return "(" + ":".join(_quoted(_text_of(name, element)) for element in cast("Sequence[object]", value)) + ")"
    if isinstance(value, str | Number | os.PathLike):
        return str(value)  # pyright: ignore[reportUnknownArgumentType]
    raise ConfigError(
        "BadValue",
        f"insert('{name}', ...): a {type(value).__name__} cannot be a value of a configuration",
        hint="texts, numbers, truth values, dictionaries and lists of them can",
    )


def _quoted(text: str) -> str:
    """Text that is one element of an array, or one value of a section."""
    plain = text[:1] in ("[", "(") or '"' in text or text.replace(".", "").replace("-", "").isalnum()
    return text if plain else f'"{text}"'
