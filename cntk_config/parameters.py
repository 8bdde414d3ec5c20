"""ConfigParameters: a set of parameters, read when they are asked for, searched in the sets around it as well."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

from cntk_config.arrays import ConfigArray
from cntk_config.base.diagnostics import ConfigError, Diagnostic, Span, suggestion
from cntk_config.base.source import Fragment, Source, Text, Use, read_lines
from cntk_config.entries import Entry, entry_of
from cntk_config.includes import Loader, plain_text
from cntk_config.parse import Record, parse_set
from cntk_config.values import ConfigValue
from cntk_config.variables import expand

D = TypeVar("D")
MAX_NESTING = 100
"""How deep sections may be nested in each other."""


class _Required:
    """The default of what has no default."""

    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


class _Tree:
    """What all sets of one configuration share."""

    def __init__(self) -> None:
        self.warnings: list[Diagnostic] = []
        self.generation = 0
        """Counts the changes after loading; substituted texts are kept until the next one."""
        self._known: set[tuple[str, str]] = set()

    def warn(self, warning: Diagnostic) -> None:
        """Keep a warning, once."""
        key = (warning.kind, str(warning.span))
        if key not in self._known:
            self._known.add(key)
            self.warnings.append(warning)


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
        """Where names are searched that are not found here."""
        self.span: Span | None = None
        """Where the section is in the user's text; None for the root."""
        self._tree = parent._tree if parent else _Tree()
        self._entries: dict[str, Entry] = {}
        self._depth: int = parent._depth + 1 if parent else 0

    def __repr__(self) -> str:
        return f"<ConfigParameters {self.path}: {', '.join(self.names()[:8])}{', ...' if len(self) > 8 else ''}>"

    # ---------------------------------------------------------------------------------------------- look-up

    @overload
    def __call__(self, name: str) -> ConfigValue: ...
    @overload
    def __call__(self, name: str, default: str) -> ConfigValue: ...
    @overload
    def __call__(self, name: str, default: D) -> D: ...
    def __call__(self, name: str, default: Any = REQUIRED) -> Any:
        """The value of `name`, here or further out.

        Without a default, a missing or empty value is an error. With one, the result has its type: text gives a
        `ConfigValue`; a bool, int or float converts the value; None gives None or a `ConfigValue`.
        """
        value = self._get(name, default is REQUIRED)
        if value is None:
            return ConfigValue(default, path=self._full(name), scope=self) if isinstance(default, str) else default
        if isinstance(default, bool):
            return value.as_bool()
        if isinstance(default, int):
            return value.as_int64()
        return value.as_double() if isinstance(default, float) else value

    def find(self, name: str) -> ConfigValue | None:
        """The value of `name`, here or further out, or None. The text of a section may keep undefined variables."""
        holder, entry = self._find(name)
        if holder is None or entry is None or entry.is_default:
            return None
        return self._value(holder, entry, holder, strict=not entry.bracket)

    def own(self, name: str) -> ConfigValue | None:
        """The value of `name` in this very set, or None."""
        entry = self.own_entry(name)
        return None if entry is None or entry.is_default else self._value(self, entry, self, strict=not entry.bracket)

    def section(self, name: str, default: str | None = None) -> ConfigParameters:
        """The value of `name` as a set of parameters. Names which it lacks are searched in this set, then outside."""
        value = self._get(name, default is None, strict=False)
        if value is None:
            value = ConfigValue(default or "", path=self._full(name), scope=self)
        return ConfigParameters.from_value(value)

    def array(self, name: str, default: str | None = None) -> ConfigArray:
        """The value of `name` as an array. `default` is config text, for instance `""` or `"1:2"`."""
        value = self._get(name, default is None, strict=False)
        return ConfigArray(ConfigValue(default or "", path=self._full(name)) if value is None else value)

    def sections(self, name: str, default: str | None = None) -> list[ConfigParameters]:
        """The value of `name` as an array of sets, for instance `deserializers=([..]:[..])`. They have no parent."""
        return self.array(name, default).sections()

    def opaque(self, name: str) -> ConfigValue:
        """The text of `name`, which is in another language (NDL). Variables are also searched in this very set."""
        value = self._get(name, True, strict=False)
        assert value is not None
        fragments = [expand(fragment, self).fragment for fragment in value.fragments]
        return _make(fragments, value.path, self, value.entry)

    def exists(self, name: str) -> bool:
        """True when `name` is defined here or further out, whatever its value."""
        return self._find(name)[1] is not None

    __contains__ = exists

    def exists_current(self, name: str) -> bool:
        """True when `name` is defined in this very set."""
        return self.own_entry(name) is not None

    def match(self, name: str, text: str) -> bool:
        """True when the value is `text`, ignoring letter case. A missing value is an empty text."""
        value = self._get(name, False)
        return ("" if value is None else value.strip(" \t")).lower() == text.lower()

    def names(self) -> list[str]:
        """The names defined in this very set, in the order of their first definition."""
        return [entry.name for entry in self._entries.values()]

    def inner(self) -> Iterator[tuple[str, ConfigParameters]]:
        """Names and sections of what is written as a section in this very set; other entries are left out."""
        for name in self.names():
            try:
                value = self.own(name)
                if value and value[0] in "[({":
                    yield name, self.section(name)
            except ConfigError:
                continue

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return True

    @property
    def warnings(self) -> list[Diagnostic]:
        """What was noticed so far in the whole configuration."""
        return self._tree.warnings

    def error(self, name: str, message: str, hint: str | None = None, kind: str = "BadValue") -> ConfigError:
        """A `ConfigError` at the value of `name`, or at this section when there is none."""
        holder, entry = self._find(name)
        span = entry.span if holder and entry else self.span
        return ConfigError(kind, f"{self._full(name)}: {message}", span, hint)

    # ---------------------------------------------------------------------------------------------- changes

    def insert(self, name: str, value: object = None) -> None:
        """Add a parameter, as `insert("name", value)` or as config text: `insert("name=value; b=[x=1]")`.

        As in a file, a later value replaces an earlier one, and `[ ]` is added to a section.
        """
        if value is None:
            return self._load(plain_text(name, "<insert>"))
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        fragment = plain_text(text, "<insert>")
        part = Fragment(fragment, 0, max(0, len(fragment.string) - 1)).trimmed()
        if len(text) > 1 and part.string[:1] == '"' and part.string.find('"', 1) == part.end - part.start - 1:
            from cntk_config.parse import unquoted

            part = unquoted(part)
        self._assign(Entry(name.strip(" \t"), None, part))
        self._tree.generation += 1
        return None

    def load_config_file(self, path: str | os.PathLike[str]) -> None:
        """Add the parameters of a file (and of those which it includes), as if they stood at the end."""
        loader = Loader()
        text = loader.expand(loader.file(os.fspath(path)))
        self._warn(loader.warnings)
        self._load(text)

    # ---------------------------------------------------------------------------------------------- the inside

    def stored(self, name: str, *, raw: bool = False, strict: bool = True) -> ConfigValue:
        """The text of an own entry, for tools: `raw` without substitution; empty where it is the word `default`.

        With `strict=False` variables that cannot be replaced stay in the text.
        """
        entry = self._entries[_key(name)]
        if entry.is_default:
            return ConfigValue("", path=self._full(name), scope=self, entry=entry, fragments=tuple(entry.parts))
        if raw:
            return _make([part.tidy() for part in entry.parts], self._full(entry.name), self, entry)
        return self._value(self, entry, self, strict=strict)

    @classmethod
    def from_value(cls, value: ConfigValue, *, alone: bool = False) -> ConfigParameters:
        """A value read as a set. With `alone` it has no parent."""
        section = cls(path=value.path, parent=None if alone else value.scope)
        section.span = value.span
        if value.scope is not None:
            section._tree = value.scope._tree
        if section._depth > MAX_NESTING:
            message = f"sections are nested deeper than {MAX_NESTING} levels"
            raise ConfigError("NestingTooDeep", message, value.span)
        fragments = value.fragments
        if not fragments and value:
            text = plain_text(value, "<default>")
            fragments = (Fragment(text, 0, len(text.string)),)
        for fragment in fragments:
            section._insert_records(parse_set(fragment), fragment.text)
        return section

    def own_entry(self, name: str) -> Entry | None:
        """The entry of `name` in this very set."""
        return self._entries.get(_key(name))

    def entry_text(self, entry: Entry, *, active: tuple[Entry, ...] = ()) -> tuple[str, tuple[Use, ...], int]:
        """The text of an own entry after substitution, what was put in, and how deep variables went."""
        fragments, depth = self._substitute(entry, True, active)
        return _string(fragments), tuple(use for fragment in fragments for use in fragment.uses), depth

    def _find(self, name: str) -> tuple[ConfigParameters | None, Entry | None]:
        scope, key = self, _key(name)
        while scope is not None:
            entry = scope._entries.get(key)
            if entry is not None:
                return scope, entry
            scope = scope.parent
        return None, None

    def _get(self, name: str, mandatory: bool, *, strict: bool = True) -> ConfigValue | None:
        holder, entry = self._find(name)
        if holder is None or entry is None or entry.is_default:
            if mandatory:
                raise self._missing(name, entry)
            return None
        value = self._value(holder, entry, self if mandatory else holder, strict=strict)
        if mandatory and not value:
            raise self._missing(name, entry)
        return value

    def _value(self, holder: ConfigParameters, entry: Entry, scope: ConfigParameters, *, strict: bool) -> ConfigValue:
        fragments, _ = holder._substitute(entry, strict, ())
        return _make(fragments, self._full(entry.name), scope, entry)

    def _substitute(self, entry: Entry, strict: bool, active: tuple[Entry, ...]) -> tuple[list[Fragment], int]:
        """The fragments of an own entry with variables replaced; remembered until something is inserted."""
        known = entry.cached if strict else entry.cached_open
        generation = self._tree.generation
        if known is not None and known[0] == generation:
            if isinstance(known[1], ConfigError):
                raise known[1]
            return known[1]
        try:
            expanded = [expand(part.tidy(), self, strict=strict, active=(*active, entry)) for part in entry.parts]
        except ConfigError as error:
            if not active and strict:
                entry.cached = (generation, error.with_traceback(None))
            raise
        result = [one.fragment for one in expanded], max(one.depth for one in expanded)
        if strict:
            entry.cached = (generation, result)
        elif not active:
            entry.cached_open = (generation, result)
        return result

    def _missing(self, name: str, entry: Entry | None) -> ConfigError:
        scopes, scope = [], self
        while scope is not None:
            scopes.append(scope)
            scope = scope.parent
        why = "is missing" if entry is None else "has no value of its own" if entry.is_default else "is empty"

        def hint() -> str | None:
            names = [known for scope in scopes for known in scope.names()]
            return (suggestion(name, names) if entry is None else None) or f"add {name}=..."

        notes = [f"searched in {', '.join(scope.path for scope in scopes)}"] if entry is None else []
        span = entry.span if entry is not None else self.span
        return ConfigError("MissingParameter", f"{self._full(name)} {why}", span, hint, notes)

    def _full(self, name: str) -> str:
        return f"{self.path}:{name}"

    def _load(self, text: Text) -> None:
        self._insert_records(parse_set(Fragment(text, 0, len(text.string))), text)
        self._tree.generation += 1

    def _insert_records(self, records: Sequence[Record], text: Text) -> None:
        before: Record | None = None
        for record in records:
            if record.kind in ("assignment", "flag"):
                entry = entry_of(record, text)
                if entry.name:
                    self._assign(entry)
                else:
                    self._note("EmptyName", text, record, "a value without a name is ignored", "write name=value")
            elif record.kind == "missing":
                raise _missing_value(record, text)
            elif record.kind == "unnamed":
                self._note("EmptyName", text, record, "a value without a name is ignored", "write name=value")
            elif record.kind == "stray":
                message = f"this '{text.string[record.start]}' closes nothing and is ignored"
                self._note("StrayBracket", text, record, message, "remove it")
            elif self.parent is None and before is not None and not text.string[before.end : record.start].strip(" \t"):
                # only at the top: a section may be in another language, as NDL is
                message = "this bracket does not belong to the value before it"
                self._note("NamelessGroup", text, record, message, "put both into one bracket, or give it a name")
            before = record

    def _assign(self, new: Entry) -> None:
        entry = self._entries.setdefault(_key(new.name), new)
        if entry is not new:
            warning = entry.assign(new)
            if warning:
                self._tree.warn(warning)

    def _note(self, kind: str, text: Text, record: Record, message: str, hint: str) -> None:
        span = text.span(record.start, 1 if record.kind == "nameless" else max(1, record.end - record.start))
        self._tree.warn(Diagnostic(kind, message, span, hint, severity="warning"))

    def _warn(self, warnings: list[Diagnostic]) -> None:
        for warning in warnings:
            self._tree.warn(warning)


def parse(text: str, name: str = "<text>") -> ConfigParameters:
    """The configuration in a text. Include lines name files relative to the current directory."""
    loader = Loader()
    lines = read_lines(Source(name, text))
    root = ConfigParameters(path=name)
    merged = loader.expand(lines)
    root._warn(loader.warnings)
    root._load(merged)
    return root


def root_of(text: Text, loader: Loader) -> ConfigParameters:
    """The root of the configuration that a loader has read."""
    root = ConfigParameters(path=loader.last)
    root._warn(loader.warnings)
    root._load(text)
    return root


def _missing_value(record: Record, text: Text) -> ConfigError:
    assert record.name is not None
    name = text.string[record.name[0] : record.name[1]].strip(" \t")
    hint = f'write {name}="" for an empty text; a bracket must open on the line of its "="'
    return ConfigError("MissingValue", f"the value of '{name}' is missing", text.span(record.end), hint)


def _make(fragments: list[Fragment], path: str, scope: ConfigParameters, entry: Entry | None) -> ConfigValue:
    return ConfigValue(_string(fragments), path=path, fragments=tuple(fragments), scope=scope, entry=entry)


def _string(fragments: list[Fragment]) -> str:
    """The text of a value; one of several lines ends with a newline."""
    string = fragments[0].string if len(fragments) == 1 else " ".join(fragment.string for fragment in fragments)
    return string + "\n" if "\n" in string and not string.endswith("\n") else string


def _key(name: str) -> str:
    """Names ignore the case of ASCII letters."""
    return name.lower() if name.isascii() else "".join(c.lower() if c.isascii() else c for c in name)
