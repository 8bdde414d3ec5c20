"""Parameters declared once, as typed fields: read at run time, checked beforehand, and documented from one place.

class SGDParameters(Declared):
    "How the network is trained."

    max_epochs = Parameter("maxEpochs", INTEGER, help="Number of epochs.")
    minibatch_size = Parameter("minibatchSize", per_epoch(SIZE), default="256", help="Samples per minibatch.")
    reader = Parameter("reader", SECTION, default=None, help="Where the data come from.")

sgd = SGDParameters(config.section("SGD"))
sgd.max_epochs            # an int; a located error when it is missing or not a number
sgd.minibatch_size[7]     # the value for an epoch
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast, overload

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, suggestion
from cntkpy.cntk_config.base.objects import load_object
from cntkpy.cntk_config.parameters import MIN_SIMILARITY, REQUIRED, SIZE_MAXIMUM, ConfigParameters, ConfigValue

T = TypeVar("T")
N = TypeVar("N")


@dataclass(frozen=True)
class Type(Generic[T]):
    """A type of parameter: what documents call it, and how it is made from a value."""

    name: str
    convert: Callable[[ConfigValue], T]
    choices: tuple[str, ...] = ()
    """The words that are allowed, if only some are."""
    is_section: bool = False
    """Read as a set of parameters: undefined variables in it matter only where they are needed."""
    declared: Callable[[], type[Declared]] | None = None
    """The declaration of the section, if there is one."""
    each: str = ""
    """Name of one inner section, if the user names them; `declared` is then the declaration of each."""
    per_epoch: bool = False
    """True if it is a list with one value per epoch."""
    minimum: float | None = None
    maximum: float | None = None
    """The range of a number, or of each number of a list, where the parameter says nothing else."""


TEXT: Type[ConfigValue] = Type("text", lambda value: value)
PATH: Type[ConfigValue] = Type("path", lambda value: value)
INTEGER: Type[int] = Type("integer", ConfigValue.as_int)
SIZE: Type[int] = Type("size", ConfigValue.as_size)
COUNT: Type[int] = replace(SIZE, maximum=2**31 - 1)
"""A number of things that are counted one by one, or the length of an axis: CNTK's greatest size, -1, is none."""
SAMPLES: Type[int] = Type("size", lambda value: value.as_size() % SIZE_MAXIMUM, maximum=2**62)
"""Samples of an epoch: 0 is one pass over the data, and so is CNTK's greatest size, -1."""
REAL: Type[float] = Type("number", ConfigValue.as_double, minimum=-math.inf)
FLOAT32: Type[float] = Type("float", ConfigValue.as_float, minimum=-math.inf)
BOOLEAN: Type[bool] = Type("boolean", ConfigValue.as_bool)
SECTION: Type[ConfigParameters] = Type("section", ConfigValue.as_section, is_section=True)
SECTIONS: Type[list[ConfigParameters]] = Type("sections", ConfigValue.as_sections, is_section=True)


def choice(*words: str, ignore_case: bool = False) -> Type[str]:
    """Return one of several words. The result is spelled as declared."""
    spelled = {(word.lower() if ignore_case else word): word for word in words}
    shown = [word for word in words if word]

    def convert(value: ConfigValue) -> str:
        word = spelled.get(value.lower() if ignore_case else str(value))
        if word is None:
            raise value.error("BadChoice", f"'{value}' is not one of {', '.join(shown)}", suggestion(value, shown))
        return word

    return Type(" | ".join(shown), convert, choices=tuple(shown))


def among(type: Type[T], *words: str) -> Type[T]:
    """Return a type of which some words are right. Whoever reads the parameter refuses others, with a message of its
    own.
    """
    return replace(type, name=" | ".join(words), choices=words)


def array(element: Type[T]) -> Type[list[T]]:
    """Return a list, for instance `(a, b)` or `1:2*3`."""
    return Type(
        f"array of {element.name}",
        lambda value: list(value.as_array().convert(element.convert)),
        choices=element.choices,
        minimum=element.minimum,
        maximum=element.maximum,
    )


def per_epoch(element: Type[T]) -> Type[PerEpoch[T]]:
    """Return a list with one value per epoch, whose last value repeats."""
    return Type(
        f"{element.name} per epoch",
        lambda value: value.as_array().convert(element.convert),
        choices=element.choices,
        per_epoch=True,
        minimum=element.minimum,
        maximum=element.maximum,
    )


def load_declared(name: str) -> type[Declared]:
    """Return the declaration called `"module:Class"`."""
    return load_object(name)


def section_of(name: str) -> Type[Any]:
    """Return a section with declared parameters; `name` is `"module:Class"`, imported when the section is read."""

    def declared() -> type[Declared]:
        return load_declared(name)

    return Type("section", lambda value: declared()(ConfigValue.as_section(value)), is_section=True, declared=declared)


def sections_by_name(each: str, name: str) -> Type[ConfigParameters]:
    """Return a section of sections whose names the user chooses, all with the parameters of `name`,
    `"module:Class"`.
    """
    return Type(
        "section of sections", ConfigValue.as_section, is_section=True, declared=lambda: load_declared(name), each=each
    )


class Part(NamedTuple):
    """A section inside another one that has a name of the user's choice."""

    role: str
    """Name of its role in messages: `features`, `stream`."""
    section: ConfigParameters
    declared: tuple[type[Declared], ...]
    open: bool = False
    """Others read more of it: the section of another command."""


class Parameter(Generic[T]):
    """One declared parameter: a field of a `Declared` class.

    `default` is config text, read like a value of the file; None means that an absent parameter gives None. Without
    `default` the parameter is required. `own=True` does not search outside the section. `aliases` are older names.
    `ignored` says why a parameter that CNTK has changes nothing here: it is accepted, and reported as without effect.
    `minimum` bounds a number, or each number of a list, from below; the type has bounds of its own.
    """

    @overload
    def __init__(
        self: Parameter[N | None],
        name: str,
        type: Type[N],
        *,
        default: None,
        own: bool = ...,
        aliases: tuple[str, ...] = ...,
        help: str = ...,
        ignored: str = ...,
        minimum: float | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: Parameter[N],
        name: str,
        type: Type[N],
        *,
        default: str = ...,
        own: bool = ...,
        aliases: tuple[str, ...] = ...,
        help: str = ...,
        ignored: str = ...,
        minimum: float | None = ...,
    ) -> None: ...
    def __init__(
        self,
        name: str,
        type: Type[Any],
        *,
        default: Any = REQUIRED,
        own: bool = False,
        aliases: tuple[str, ...] = (),
        help: str = "",
        ignored: str = "",
        minimum: float | None = None,
    ) -> None:
        self.name = name
        self.type: Type[Any] = type
        self.default: Any = default
        self.own = own
        self.aliases = aliases
        self.ignored = ignored
        self.help = help or (f"Ignored: {ignored}" if ignored else "")
        self.minimum = type.minimum if minimum is None else minimum
        self.maximum = type.maximum
        self.attribute = ""
        """The name of the field in Python."""
        self._owner: type | None = None

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {self.type.name})"

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name
        self._owner = owner

    @overload
    def __get__(self, instance: None, owner: type) -> Parameter[T]: ...
    @overload
    def __get__(self, instance: Declared, owner: type) -> T: ...
    def __get__(self, instance: Declared | None, owner: type) -> Parameter[T] | T:
        return self if instance is None else self.read(instance.config)

    @property
    def required(self) -> bool:
        """True when there is no default."""
        return self.default is REQUIRED

    def stands_in(self, config: ConfigParameters) -> bool:
        """Return whether the section itself has the parameter; its value does not matter, nor what is around it."""
        return any(config.exists_current(name) for name in (self.name, *self.aliases))

    def find(self, config: ConfigParameters) -> str | None:
        """Return the name under which the parameter is given: its own or an alias; None when it is absent."""
        for name in (self.name, *self.aliases):
            if config.exists_current(name) if self.own else config.exists(name):
                return name
        return None

    def value(self, config: ConfigParameters) -> ConfigValue | None:
        """Return the value as given, or None. `default` as a value is the same as absent."""
        name = self.find(config)
        if name is None:
            return None
        return config.own(name) if self.own else config.find(name)

    def read(self, config: ConfigParameters) -> T:
        """Return the converted value, or the default."""
        name = self.find(config)
        value = self.value(config)
        if value is None or name is None or (self.required and not value):
            if self.required:
                raise self._missing(config, name)
            if self.default is None:
                return None  # type: ignore[return-value]
            path = f"{config.path}:{self.name}"
            return self._convert(ConfigValue(self.default, path=path, scope=config))
        if self.type.is_section and not self.own and self.default in (REQUIRED, None):
            value.scope = config  # a section without a default searches in the asking section first, as in CNTK
        return self._convert(value)

    def _convert(self, value: ConfigValue) -> T:
        converted = self.type.convert(value)
        if self.minimum is not None or self.maximum is not None:
            self._check_range(value, converted)
        return converted

    def _check_range(self, value: ConfigValue, converted: Any) -> None:
        several = cast("Any", converted.distinct() if isinstance(converted, PerEpoch) else converted)
        listed = self.type.per_epoch or isinstance(several, list)
        for number in cast("Iterable[float]", several if listed else (several,)):
            if number != number:
                raise value.error("BadValue", f"{self.name} is a number, not nan")
            if self.minimum is not None and not number >= self.minimum:
                raise value.error("BadValue", f"{self.name} is at least {self.minimum:g}")
            if self.maximum is not None and not number <= self.maximum:
                hint = "-1 is CNTK's greatest size; say how many" if number == SIZE_MAXIMUM else None
                raise value.error("BadValue", f"{self.name} is at most {self.maximum:.0f}", hint)

    def _missing(self, config: ConfigParameters, name: str | None) -> ConfigError:
        known = {alias.lower() for p in self._declared_beside() for alias in (p.name, *p.aliases)}
        if not self.own or name is not None:
            error = config.missing(name or self.name, known)
            return error.with_note(f"{self.name}: {self.help}") if self.help else error
        message = f"{config.path}:{self.name} is missing"
        other_names = [name for name in config.names() if name.lower() not in known]
        hint = suggestion(self.name, other_names, MIN_SIMILARITY) or f"add {self.name}=..."
        return ConfigError("MissingParameter", message, config.span, hint, [f"searched in {config.path} only"])

    def _declared_beside(self) -> tuple[Parameter[Any], ...]:
        """Return the parameters of the same section."""
        owner = self._owner
        return owner.parameters() if owner is not None and issubclass(owner, Declared) else ()


class Declared:
    """A section whose parameters are declared. `config` is the section itself."""

    _parameters: ClassVar[tuple[Parameter[Any], ...]] = ()
    _by_name: ClassVar[dict[str, Parameter[Any]]] = {}

    def __init__(self, config: ConfigParameters) -> None:
        self.config = config

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        fields = {p.attribute: p for base in cls.__mro__[:0:-1] for p in vars(base).get("_parameters", ())}
        fields |= {name: field for name, field in vars(cls).items() if isinstance(field, Parameter)}
        cls._parameters = tuple(fields.values())
        names = [
            (name.lower(), parameter) for parameter in cls._parameters for name in (parameter.name, *parameter.aliases)
        ]
        cls._by_name = dict(reversed(names))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.config.path}>"

    @classmethod
    def parameters(cls) -> tuple[Parameter[Any], ...]:
        """Return the declared parameters in order, those of base classes first."""
        return cls._parameters

    @classmethod
    def parameter(cls, name: str) -> Parameter[Any] | None:
        """Return the declared parameter with a name or an alias."""
        return cls._by_name.get(name.lower())

    def check_together(self) -> None:
        """Raise a `ConfigError` if values that are right by themselves contradict each other. Opens no files."""

    def without_effect(self) -> Iterable[tuple[str, str]]:
        """Parameters that are given but have no effect, given the other values, each with the reason."""
        return ()

    def idle(self) -> Iterable[tuple[str, str, str]]:
        """Say that the section does nothing as it stands: a parameter as the place, the message, what to write.

        `SGD/momentum` is a parameter of a section inside.
        """
        return ()

    def sample_size(self) -> int | None:
        """Elements of a sample, if this is the section of a stream that says it."""
        return None

    def size_advice(self, wanted: int) -> str | None:
        """Return a hint for samples of `wanted` elements, beyond another `dim`; None if there is none."""
        return None

    def is_left_out(self) -> bool:
        """Return whether a reader makes no stream of this section, though it stands among the streams."""
        return False

    def needs_no_files(self) -> bool:
        """Return whether the files that this section and those inside name may be missing: something holds what is in
        them."""
        return False

    def named_parts(self) -> Iterable[Part]:
        """Return the sections in this one that stand among its parameters and have names of the user's choice."""
        return ()

    def given(self, name: str) -> ConfigValue | None:
        """Return the value of a parameter as the user gave it, or None."""
        declared = self.parameter(name)
        return declared.value(self.config) if declared else self.config.find(name)

    def error(self, name: str, message: str, hint: str | None = None, kind: str = "BadValue") -> ConfigError:
        """Return an error about a parameter, at its value, or at the section when it is not given."""
        value = self.given(name)
        if value is not None and value.span is not None:
            return value.error(kind, message, hint)
        return ConfigError(kind, f"{self.config.path}:{name}: {message}", self.config.span, hint)

    def problems(self) -> list[Diagnostic]:
        """Everything wrong with the values: missing ones, wrong types, in declared sections inside as well."""
        return list(self._problems())

    def unknown(self) -> list[Diagnostic]:
        """Return a warning for every name of this section that is not declared."""
        known = [name for parameter in self._parameters for name in (parameter.name, *parameter.aliases)]
        return [
            Diagnostic(
                "UnknownParameter",
                f"{self.config.path}: '{name}' is not a known parameter here",
                entry.name_span,
                suggestion(name, known),
                severity="warning",
            )
            for name in self.config.names()
            if self.parameter(name) is None and (entry := self.config.definition(name)) is not None
        ]

    def _problems(self) -> Iterator[Diagnostic]:
        for parameter in self._parameters:
            try:
                value = parameter.read(self.config)
                if isinstance(value, Declared):
                    yield from value._problems()
            except ConfigError as error:
                yield error.diagnostic
