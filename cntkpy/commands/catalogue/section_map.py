"""Which part of the program reads which section of a configuration, and by which declarations.

    root ─ train ─┬─ SGD ─ AutoAdjust
                  ├─ reader ─ input ─ features
                  └─ SimpleNetworkBuilder

`check`, `explain`, `show`, completion and the language server all look at this tree of `Use`s.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config import entry as catalogue
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.cntk_config.declare import Declared, Parameter, Type, load_declared
from cntkpy.cntk_config.entry import collect
from cntkpy.commands.actions.networks_and_readers import ModelParameters
from cntkpy.commands.catalogue.dispatch import BUILDS, declaration, find_action, has_trait
from cntkpy.commands.context.root import CommandParameters, RootParameters
from cntkpy.readers.contracts import Declares
from cntkpy.readers.entries import DESERIALIZER, READER, WRITER, Kind
from cntkpy.readers.parameters import DeserializerParameters, ReaderParameters, WriterParameters, built_in
from cntkpy.readers.registry import entry_of_reader

READER_ROLES = READER.sections


@dataclass
class Use:
    """A section, and who reads it."""

    section: ConfigParameters
    role: str
    """Name of its role in messages: `SGD`, `reader`, `action train`."""
    declared: tuple[type[Declared], ...] = ()
    open: bool = False
    """Other names are read as well, which the program cannot list."""
    sets: bool = False
    """Every name in it is a section of its own (the streams of `input`)."""
    parts: list[Use] = field(default_factory=list["Use"])
    others: list[Use] = field(default_factory=list["Use"])
    """Sections of the top level that are no commands, which are its `parts`."""
    command: str = ""
    actions: tuple[str, ...] = ()
    unknown: list[ConfigError] = field(default_factory=list[ConfigError])
    """The errors of actions that do not exist."""

    def parameter(self, name: str) -> Parameter[Any] | None:
        """Return the declaration of a name in this section."""
        for kind in self.declared:
            if parameter := kind.parameter(name):
                return parameter
        return None

    def value(self, parameter: Parameter[Any]) -> ConfigValue | None:
        """Return the text of a parameter; None where it has none, or cannot be read, which `check` reports."""
        try:
            return parameter.value(self.section)
        except ConfigError:
            return None

    def parameters(self) -> Iterator[Parameter[Any]]:
        """Return all declared parameters, each name once."""
        return iter(_parameters(self.declared))

    def names(self) -> tuple[str, ...]:
        """Return the names that are read from this section, aliases included."""
        return _names(self.declared)

    def walk(self) -> Iterator[Use]:
        """Yield this use and all inside it."""
        yield self
        for part in (*self.parts, *self.others):
            yield from part.walk()

    def part(self, role: str) -> Use | None:
        """Return the section inside that has a role."""
        return next((part for part in self.parts if part.role == role), None)

    def reads_below(self) -> set[str]:
        """Names, in lower case, that a section inside searches further out, so that they may be here."""
        connected = (part for part in self.parts if part.section.parent is not None)  # sets in a list are not
        return set[str]().union(*(_searched(use.declared) for part in connected for use in part.walk()))


@dataclass(kw_only=True)
class TopLevel(Use):
    """The top level of a configuration, read once: its parameters, and its commands as `parts`."""

    values: RootParameters
    commands: list[ConfigValue]
    """The names of the sections to run, in order; none where they cannot be read."""
    error: ConfigError | None
    """The error of the names."""

    def command_names(self) -> list[ConfigValue]:
        """Return the names of the sections to run.

        Raises:
            ConfigError: They cannot be read.
        """
        if self.error is not None:
            raise self.error
        return self.commands

    def lacks_command(self) -> bool:
        """Return whether a name of the sections to run is that of none: what it would write is not known."""
        return not self.listed <= {use.command.lower() for use in self.parts}

    def runs(self, use: Use) -> bool:
        """Return whether a command is listed."""
        return use.command.lower() in self.listed

    @functools.cached_property
    def listed(self) -> frozenset[str]:
        """The names of the sections to run in lower case, as they are compared."""
        return frozenset(str(name).lower() for name in self.commands)


@functools.cache
def _parameters(declared: tuple[type[Declared], ...]) -> tuple[Parameter[Any], ...]:
    """Return the parameters of several declarations, each name once."""
    parameters: dict[str, Parameter[Any]] = {}
    for kind in declared:
        for parameter in kind.parameters():
            parameters.setdefault(parameter.name.lower(), parameter)
    return tuple(parameters.values())


@functools.cache
def _names(declared: tuple[type[Declared], ...]) -> tuple[str, ...]:
    return tuple(name for parameter in _parameters(declared) for name in (parameter.name, *parameter.aliases))


@functools.cache
def _searched(declared: tuple[type[Declared], ...]) -> frozenset[str]:
    """Return the names, in lower case, that are also searched further out."""
    return frozenset(
        n.lower()
        for parameter in _parameters(declared)
        if not parameter.own
        for n in (parameter.name, *parameter.aliases)
    )


def section_map(root: ConfigParameters) -> TopLevel:
    """Read the top level of a configuration; return the uses of its sections, also of commands that are not listed."""
    values = RootParameters(root)
    commands, problem = list[ConfigValue](), None
    try:
        commands = list(values.command)
    except ConfigError as error:
        problem = error
    top = TopLevel(
        section=root, role="top level", declared=(RootParameters,), values=values, commands=commands, error=problem
    )
    names = [name for name in map(str, commands) if root.exists_current(name)]
    there = set(names)
    names += [name for name in root.names() if name not in there and _is_command(root, name)]
    for name in names:
        try:
            top.parts.append(command_use(root.section(name), name))
        except ConfigError:
            continue
    top.others = _given(root, RootParameters.tracking)
    return top


def _is_command(root: ConfigParameters, name: str) -> bool:
    """Return whether a section is a command: it has an action, or it trains and the action is further out."""
    entry = root.definition(name)
    inherits = root.exists_current("action")
    if entry is None or not entry.bracket or not (inherits or "action" in entry.text.lower()):
        return False
    try:
        section = root.section(name)
    except ConfigError:
        return False
    return section.exists_current("action") or (inherits and section.exists_current("SGD"))


def command_use(section: ConfigParameters, name: str) -> Use:
    """Return the use of a command section. What cannot be read is left out."""
    use = Use(section, f"command {name}", (CommandParameters,), command=name)
    actions: list[ConfigValue] = []
    try:
        actions = list(section.array("action"))
    except ConfigError:
        use.open = True
    use.actions = tuple(map(str, actions))
    for action in actions:
        try:
            declared = declaration(find_action(str(action), name, action.span))
        except ConfigError as error:
            use.unknown.append(error)
            declared = None
        if declared is None:
            use.open = True
        else:
            use.declared += (declared,)
    if any(has_trait(action, BUILDS) for action in use.actions):
        use.declared += (ModelParameters,)
    use.parts = _inside(use)
    for part in use.parts:
        for inside in part.walk():
            inside.command = name
    return use


def _inside(use: Use) -> list[Use]:
    """Return the sections in a section: those that its parameters name, and those that have names of the user's
    choice.
    """
    uses: list[Use] = []
    for parameter in use.parameters():
        if parameter.type.is_section:
            uses += _given(use.section, parameter)
    named: dict[str, Use] = {}
    for declared in use.declared:
        try:
            for part in declared(use.section).named_parts():
                item = named.setdefault(part.section.path, Use(part.section, _named(part.role, part.section)))
                item.declared += tuple(new for new in part.declared if new not in item.declared)
                item.open |= part.open
        except ConfigError:
            continue  # what is wrong is found when values are looked at
    return uses + [_filled(use) for use in named.values()]


def _given(section: ConfigParameters, parameter: Parameter[Any]) -> list[Use]:
    """Return the section that a parameter names, if it is given."""
    name = parameter.find(section)
    if name is None:
        return []
    try:
        if (
            parameter.name.lower() == RootParameters.parallel.name.lower()
            and (parameter.value(section) or "[")[0] not in "[({"
        ):
            return []  # `parallelTrain = true` of the top level is found as the section ParallelTrain
        if parameter.name in DESERIALIZER.sections:
            return [deserializer_use(inside) for inside in section.sections(name)]
        inside = section.section(name)
        if parameter.name in READER.sections:
            return [reader_use(inside, parameter.name)]
        if parameter.name in WRITER.sections:
            return [writer_use(inside)]
        if parameter.type.each:
            return [_streams(inside, parameter.name, parameter.type)]
        builder = catalogue.find_entry(parameter.name, collect("cntkpy.networks.builders", folders=True))
        find = builder.declared if builder is not None else parameter.type.declared
        declared = find() if find is not None else None
        return [_filled(Use(inside, parameter.name, (declared,) if declared else (), open=declared is None))]
    except ConfigError:
        return []


def _filled(use: Use) -> Use:
    use.parts = _inside(use)
    return use


def _named(role: str, section: ConfigParameters) -> str:
    return f"{role} {section.path.rpartition(':')[2]}"


def _streams(section: ConfigParameters, name: str, type: Type[Any]) -> Use:
    """Return a section of sections, all with the same declaration."""
    use = Use(section, name, sets=True)
    assert type.declared is not None
    for _, inside in section.inner():
        use.parts.append(_filled(Use(inside, _named(type.each, inside), (type.declared(),))))
    return use


def reader_use(section: ConfigParameters, role: str) -> Use:
    """Return the use of a reader section, its streams and deserializers."""
    use = Use(section, role, (ReaderParameters,))
    entry = entry_of_reader(section)
    declared = entry.declared() if entry else declaration_near(section)
    if declared is None:
        use.open = True
    else:
        use.declared = (declared, ReaderParameters)
        use.open = entry is not None and entry.open
        if declared.parameter(WRITER.selector) and WriterParameters.writer_type.find(section):
            use.declared += _declaration(WRITER, WRITER.default)  # it keeps a cache
    return _filled(use)


def deserializer_use(section: ConfigParameters) -> Use:
    """Return the use of the section of a deserializer."""
    name = DeserializerParameters.type.value(section) or ""
    kinds = _declaration(DESERIALIZER, name, section) or _installed(DESERIALIZER, name)
    return _filled(Use(section, "deserializer", (*kinds, DeserializerParameters), open=not kinds))


def writer_use(section: ConfigParameters) -> Use:
    """Return the use of a writer section."""
    name = WriterParameters.writer_type.read(section)
    kinds = _declaration(WRITER, name, section) or _installed(WRITER, name)
    return _filled(Use(section, "writer", (*kinds, WriterParameters), open=not kinds))


def _declaration(kind: Kind, name: str, section: ConfigParameters | None = None) -> tuple[type[Declared], ...]:
    """Return the declaration of what is built in under a name; nothing if that is a class of the section's module."""
    module = ReaderParameters.module.read(section) if section is not None else None
    entry = built_in(kind, name, module)
    declared = entry.declared() if entry else None
    return (declared,) if declared else ()


def declaration_near(section: ConfigParameters) -> type[Declared] | None:
    """Return the declaration of a reader of an installed package.

    A module that a configuration names is not imported here: to look at a configuration must run nothing of it.
    """
    try:
        result = _installed(READER, ReaderParameters.reader_type.read(section))
    except ConfigError:
        return None  # found when the reader's type is looked at
    return result[0] if result else None


def _installed(kind: Kind, name: str) -> tuple[type[Declared], ...]:
    """Return the declaration of what an installed package offers under a name; nothing if it declares nothing."""
    from cntkpy.readers.registry import find_installed

    load = find_installed(kind, name)
    result = _declaration_of(load()) if load is not None else None
    return (result,) if result is not None else ()


def _declaration_of(factory: Any) -> type[Declared] | None:
    """`declared` of what makes a reader or writer: a class, or `"module:Class"`."""
    if not isinstance(factory, Declares):
        return None
    return load_declared(factory.declared) if isinstance(factory.declared, str) else factory.declared


def import_modules(top: Use) -> Iterator[Diagnostic]:
    """Fill in the declarations of readers from the modules that their sections name, which runs these modules.

    Returns: what keeps a module from being imported.
    """
    from cntkpy.readers.registry import find_reader

    for use in list(top.walk()):
        if use.role not in READER_ROLES or not use.open or ReaderParameters.module.find(use.section) is None:
            continue
        if entry_of_reader(use.section) is not None:
            continue
        try:
            declared = _declaration_of(find_reader(use.section)())
        except ConfigError as error:
            yield error.diagnostic
            continue
        if declared is not None:
            use.declared, use.open = (declared, ReaderParameters), False
            _filled(use)
