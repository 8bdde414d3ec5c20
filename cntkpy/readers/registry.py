"""Readers, deserializers and writers by name: built-in ones, those of installed packages, those of a Python module.

What is built in is an entry (see `cntkpy.readers.entries`). A reader is `f(section, precision) -> Reader`, a
deserializer `f(section, setting) -> Deserializer`, a writer `f(section, precision) -> Writer`; see
`cntkpy.readers.contracts`. Packages offer them as entry points `cntkpy.readers`, `cntkpy.deserializers` and
`cntkpy.writers`; `module="my.module"` in the section names a module that has an attribute of the type's name. Without
it, the type itself may be the name of a module in the current folder, as it is that of a library in CNTK.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.cntk_config.base.spelling import nearest
from cntkpy.cntk_config.entry import Entry
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue, parse
from cntkpy.readers.common.user_code import check_interface, place_of

from .contracts import ChunkSource, MinibatchReader
from .entries import COMPOSITE, DESERIALIZER, KINDS, READER, VARYING_SLOTS, Kind, find_entry, names
from .errors import ArgumentError
from .parameters import CNTK_MODULES, DeserializerParameters, ReaderParameters, built_in

if TYPE_CHECKING:
    from cntkpy.readers.common.corpus import Corpus

    from .reader import Reader


class Setting(NamedTuple):
    """Settings that a reader passes to its deserializers.

    precision: element type; primary: whether it is the first one, whose order counts; frame_mode: whether minibatches
    are of frames; trace_level: level of the log, None for its own; corpus: how keys are understood; threads: how many
    may load; max_errors: invalid sequences to leave out, as text, None for its own; alone: whether there is no other.
    """

    precision: str = "float"
    primary: bool = True
    frame_mode: bool = False
    trace_level: str | None = None
    corpus: Corpus | None = None
    threads: int = 1
    max_errors: str | None = None
    alone: bool = False


def _entry_points(group: str) -> dict[str, Callable[[], Any]]:
    return _entry_points_along(tuple(sys.path), group)


@functools.lru_cache(maxsize=len(KINDS))
def _entry_points_along(_path: tuple[str, ...], group: str) -> dict[str, Callable[[], Any]]:
    """Return the actions found along `sys.path`: looking for packages takes a millisecond."""
    from importlib import metadata  # it is slow to import

    return {point.name: point.load for point in metadata.entry_points(group=group)}


def entry_of_reader(section: ConfigParameters) -> Entry | None:
    """Return the built-in reader that a section asks for; None if it is of a package, of a module, or unknown.

    `deserializers` means the composite reader, else `readerType` decides; without it, text format.
    """
    if ReaderParameters.deserializers.find(section):
        return find_entry(READER, COMPOSITE)
    return built_in(READER, ReaderParameters.reader_type.read(section), ReaderParameters.module.read(section))


def find_reader(section: ConfigParameters) -> Callable[[], Any]:
    """Return a loader of the factory of a section's reader; nothing is imported yet."""
    if ReaderParameters.several.find(section):
        raise section.error(
            "readers",
            "several readers side by side are not supported",
            "join their data with deserializers=([type=...]:[type=...])",
            "NotSupported",
        )
    entry = entry_of_reader(section)
    if entry and not entry.unsupported:
        return entry.load
    load = find_factory(READER, ReaderParameters.reader_type.read(section), section)
    return lambda: _as_reader(load())


def _as_reader(value: Any) -> Any:
    """Return a class derived from UserReader as a factory; its arguments are taken from the section."""
    if not inspect.isclass(value):
        return value
    from cntkpy.readers.user.reader import ReaderFactory, UserReader  # it imports NumPy

    return ReaderFactory(value) if issubclass(value, UserReader) else value


def find_installed(kind: Kind, name: str) -> Callable[[], Any] | None:
    """Return a loader of the factory `name`, if an installed package offers it."""
    return _entry_points(kind.entry_points).get(str(name))


def varying_slots(section: ConfigParameters) -> bool:
    """Return whether the reader of a section reports to the trainer the number of parallel sequences of its last
    minibatch.

    The others report what `nbruttsineachrecurrentiter` says, whatever their minibatches are.
    """
    entry = entry_of_reader(section)
    return entry is None or VARYING_SLOTS in entry.traits


def find_deserializer(section: ConfigParameters) -> Callable[[], Any]:
    """Return a loader of the factory of a deserializer section."""
    load = find_factory(DESERIALIZER, DeserializerParameters.type.read(section), section)
    return lambda: _as_factory(load())


def _as_factory(value: Any) -> Any:
    """Return a class derived from UserDeserializer as a factory; its arguments are taken from the section."""
    if not (inspect.isclass(value) and issubclass(value, ChunkSource)):
        return value
    from cntkpy.readers.user.deserializer import UserData
    from cntkpy.readers.user.from_section import construct

    from .streams import DTYPES

    def make(section: ConfigParameters, setting: Setting) -> UserData:
        return UserData(construct(value, section), DTYPES[setting.precision])

    return make


def find_factory(kind: Kind, name: ConfigValue, section: ConfigParameters) -> Callable[[], Any]:
    """Return a loader of the factory `name`: built in (in any case), an entry point, or of a module.

    Raises:
        ConfigError: if nothing has the name.
    """
    module = ReaderParameters.module.read(section)
    if (entry := built_in(kind, name, module)) is not None:
        if entry.unsupported:
            raise name.error("NotSupported", f"the {kind.name} '{name}' is not supported", entry.unsupported)
        return entry.load
    installed = _entry_points(kind.entry_points)
    if str(name) in installed:
        return installed[str(name)]
    if module is not None and module.lower() not in CNTK_MODULES:
        return lambda: load_from_module(module, name, kind.name)
    if module is None and _stands_here(name):
        return lambda: load_of_module(name, kind)
    known = [*names(kind), *installed]
    suffix = kind.name.capitalize()  # names share it, so it says nothing about how alike they are
    stems = {known_name.removesuffix(suffix): known_name for known_name in known}
    stem = nearest(name.removesuffix(suffix), stems)
    module_hint = f"install the package that has this {kind.name}, or name its Python module: module=NAME"
    meant = stems[stem] if stem is not None else nearest(name, known, 0.85)  # the suffix may be misspelt
    hint = f"did you mean '{meant}'?" if meant is not None else f"{module_hint}; known: {', '.join(known)}"
    raise name.error(f"Unknown{kind.name.capitalize()}", f"unknown {kind.name} '{name}'", hint)


def _stands_here(name: str) -> bool:
    """Return whether the current folder has a Python module of that name. Nothing is imported."""
    spec = PathFinder.find_spec(name, [str(Path.cwd())]) if name.isidentifier() else None
    return spec is not None and spec.loader is not None


def load_of_module(name: ConfigValue, kind: Kind) -> Any:
    """Return the factory of a kind in a module of the current folder that has the name of the type.

    That is its function `create_reader` (or `create_writer`, `create_deserializer`), else the only class in it that is
    derived from one of `cntkpy.readers.user`.

    Raises:
        ConfigError: the module cannot be imported, or has none, or several.
    """
    module = _import(name)
    own_values = {
        key: value for key, value in vars(module).items() if inspect.isclass(value) or inspect.isfunction(value)
    }
    own_values = {key: value for key, value in own_values.items() if value.__module__ == module.__name__}
    maker = f"create_{kind.name}"
    if inspect.isfunction(own_values.get(maker)):
        return own_values[maker]
    classes = {key: value for key, value in own_values.items() if inspect.isclass(value) and _is_of_kind(value, kind)}
    if len(classes) == 1:
        return next(iter(classes.values()))
    reason = f"several, {', '.join(classes)}" if classes else f"none, and no function {maker}"
    example = next(iter(classes), "Class")
    raise name.error(
        f"Unknown{kind.name.capitalize()}",
        f"the module '{name}' ({module.__file__}) is to have a {kind.name}; it has {reason}",
        f"write {kind.selector}={example} ; module={name}",
    )


def _is_of_kind(result: type, kind: Kind) -> bool:
    if kind is DESERIALIZER:
        return issubclass(result, ChunkSource)
    from cntkpy.readers.user.reader import UserReader

    return kind is READER and issubclass(result, UserReader)


def load_from_module(module: ConfigValue, name: ConfigValue, kind: str) -> Any:
    """Return an attribute of a Python module, both named in a section. The module may be in the current directory."""
    module_type = _import(module)
    try:
        return getattr(module_type, str(name))
    except AttributeError:
        hint = suggestion(name, [n for n in vars(module_type) if not n.startswith("_")])
        message = f"the module '{module}' has no {kind} '{name}'"
        raise name.error(f"Unknown{kind.capitalize()}", message, hint) from None


_refused: list[None] = []
"""Has an entry for each `refusing_modules` that is entered, in whichever thread."""


@contextmanager
def refusing_modules(refuse: bool = True) -> Generator[None]:
    """Inside, a section that names a Python module is an error (`ModuleNotImported`); the module is not imported.

    Args:
        refuse: False changes nothing.
    """
    if not refuse:
        yield
        return
    _refused.append(None)
    try:
        yield
    finally:
        _refused.pop()


def _import(module: ConfigValue) -> ModuleType:
    """Import the module that a section names: the one place where code is run that a configuration chooses."""
    if _refused:
        raise module.error(
            "ModuleNotImported",
            f"this command does not import the Python module '{module}', which the configuration names",
            "if you trust that module, add --import-modules",
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(str(module))
    except Exception as error:  # whatever the module does when it is run
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        config_error = module.error("UnknownModule", f"the module '{module}' cannot be imported: {kind}{error}")
        for note in place_of(error):
            config_error = config_error.with_note(note)
        raise config_error from error


def create_reader(section: ConfigParameters | str, precision: str = "float") -> Reader:
    """Return the reader that a section (or the text of one) describes.

    Args:
        precision: element type of the values, "float" or "double", if the section does not say it.

    Raises:
        ConfigError: for what the section says.
        DataError: for what is in the files.
    """
    from .epochs import FORMER_NAMES
    from .reader import Reader
    from .streams import DTYPES  # these import NumPy

    if isinstance(section, str):
        section = parse(section)
    if not isinstance(section, ConfigParameters):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"a reader is described by a section or its text, not by {type(section).__name__}",
            'write create_reader("readerType=... ; file=...")',
        )
    if precision not in DTYPES:
        raise ArgumentError(f"precision must be {' or '.join(DTYPES)}, not {precision!r}")
    reader: Reader = find_reader(section)()(section, precision)
    if entry_of_reader(section) is None:
        check_interface(reader, MinibatchReader, section, FORMER_NAMES)
    if isinstance(cast("object", reader), Reader):
        reader.remake = lambda state: (_remade, (section, precision, state))
    return reader


def _remade(section: ConfigParameters, precision: str, state: dict[str, Any] | None) -> Reader:
    """Return a reader of this section that continues at a position."""
    reader = create_reader(section, precision)
    if state is not None:
        reader.set_state(state)
    return reader
