"""Parameters that readers, deserializers and writers have in common. Declarations only: nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.names import is_url
from cntkpy.cntk_config.base.spelling import nearest
from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    INTEGER,
    SECTIONS,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    Type,
    choice,
    per_epoch,
)
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue

if TYPE_CHECKING:
    from cntkpy.cntk_config.entry import Entry
    from cntkpy.readers.contracts import Deserializer
    from cntkpy.readers.entries import Kind
    from cntkpy.readers.pipeline.randomize import Timeline


NEARLY = 0.75
"""Least similarity of a name to the one it is taken for, 0 to 1."""


def several_paths(value: ConfigValue) -> list[ConfigValue]:
    """Return the files of an array in any of its forms; or one, which may have colons or commas in it if it exists."""
    array = value.startswith(("(", "[", "{")) or any(sign in value for sign in ":,\n")
    return list(value.as_array()) if array and not exists(str(value)) and not is_url(str(value)) else [value]


PATHS = Type("path | array of paths", several_paths)

CNTK_MODULES = ("cntktextformatreader", "cntkbinaryreader", "imagereader", "htkdeserializers")
"""Values of `module` in configurations of CNTK, which name its libraries."""


def stream_names(p: Any, example: str) -> list[str]:
    """Return the names of the sections of `p.input` in alphabetical order.

    Args:
        p: the parameters of a reader or a deserializer.
        example: what to write where there is none.

    Raises:
        ConfigError: there is none.
    """
    names = sorted((name for name, _ in p.input.inner()), key=str.lower)
    if not names:
        raise p.error("input", "no input stream is given", example)
    return names


def check_one_defines_size(p: Any, streams: Iterable[Any]) -> None:
    """Refuse several streams of a deserializer `p` with `defines_mb_size`."""
    if sum(stream.defines_mb_size for stream in streams) > 1:
        raise p.error("input", "only one stream can define the size of the minibatch (definesMBSize)")


def no_stream(section: ConfigParameters, message: str, hint: str, names: tuple[str, ...]) -> ConfigError:
    """Return the error of a reader that has no section of a kind, whose mark is one of `names`.

    A name that is nearly one of them is the mistake, and its place that of the error.
    """
    return misspelt_mark(section, message, names) or section.error("", message, hint, "MissingParameter")


def misspelt_mark(section: ConfigParameters, message: str, names: tuple[str, ...]) -> ConfigError | None:
    """Return the error of a name in a section of a reader that is nearly one of `names`; None if there is no such
    name.
    """
    for role, inside in section.inner():
        for name in inside.names():
            meant, entry = nearest(name, names, NEARLY), inside.definition(name)
            if meant and meant.lower() != name.lower() and entry is not None:
                return ConfigError(
                    "MissingParameter",
                    f"{section.path}: {message}; '{name}' of '{role}' is not a known parameter",
                    entry.name_span,
                    f"did you mean '{meant}'?",
                )
    return None


def built_in(kind: Kind, name: str, module: str | None) -> Entry | None:
    """Return the entry that a type and a module name; None if the module has what the type names.

    A module is asked where nothing built in has the type's exact spelling: CNTK's samples have a class CSVDeserializer.

    Args:
        kind: reader, deserializer or writer.
        name: the type.
        module: the module, if one is given.
    """
    from cntkpy.readers.entries import find_entry

    entry = find_entry(kind, name)
    if entry is None or module is None or module.lower() in CNTK_MODULES:
        return entry
    return entry if str(name) in (*entry.names, *entry.aliases) else None


def _idle_module(p: Declared, selector: str, kind: str) -> Iterator[tuple[str, str]]:
    """`module` beside a type that is built in, which it does not replace."""
    from cntkpy.readers.entries import KINDS

    module, name = p.given("module"), p.given(selector)
    if module is None or name is None or module.lower() in CNTK_MODULES:
        return
    entry = built_in(next(entry for entry in KINDS if entry.name == kind), name, module)
    if entry is None:
        return
    declared = entry.declared()
    of_entry = declared.parameter("module") if declared is not None else None
    if of_entry in (None, ReaderParameters.module, WriterParameters.module):  # else the entry reads it itself
        yield "module", f"{entry.name} is built in; give what '{module}' has another name"


class ReaderParameters(Declared):
    """Every reader: which one it is."""

    reader_type = Parameter("readerType", TEXT, default="CNTKTextFormatReader", help="The kind of reader.")
    module = Parameter("module", TEXT, default=None, help="A Python module that has the reader.")
    deserializers = Parameter(
        "deserializers", SECTIONS, default=None, own=True, help="Several sources; then this is a CompositeDataReader."
    )
    several = Parameter(
        "readers",
        TEXT,
        default=None,
        own=True,
        help="Not supported: several readers side by side. Use `deserializers`.",
    )
    precision = Parameter(
        "precision", choice("float", "double", ignore_case=True), default=None, own=True, help="Element type."
    )
    truncated = Parameter("truncated", BOOLEAN, default="false", help="Truncated back-propagation through time.")
    verbosity = Parameter("verbosity", INTEGER, default="0", help="1 logs more.")
    slots = Parameter("nbruttsineachrecurrentiter", per_epoch(COUNT), default="1", help="Sequences side by side.")

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """Return the module of a reader that is built in."""
        return _idle_module(self, "readerType", "reader")


class DeserializerParameters(Declared):
    """Every deserializer: which one it is."""

    type = Parameter("type", TEXT, help="The kind of deserializer.")
    module = ReaderParameters.module
    precision = ReaderParameters.precision
    randomize = Parameter(
        "randomize",
        TEXT,
        default=None,
        own=True,
        ignored="the order is that of the reader; write it beside deserializers.",
    )

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """Return the module of a type that is built in."""
        return _idle_module(self, "type", "deserializer")


class WriterParameters(Declared):
    """Every writer: which one it is."""

    writer_type = Parameter("writerType", TEXT, default="BinaryWriter", help="The kind of writer.")
    module = Parameter("module", TEXT, default=None, help="A Python module that has the writer.")
    precision = ReaderParameters.precision

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """Return the module of a writer that is built in."""
        return _idle_module(self, "writerType", "writer")


def _features(value: ConfigValue) -> str:
    if value.lower() != "real":
        raise value.error("BadChoice", f"features are of type real, not '{value}'", "write real")
    return "real"


def _labels(value: ConfigValue) -> str:
    if value.lower() != "category":
        raise value.error(
            "BadChoice",
            f"labels of type '{value}' are not supported",
            "write category; real targets are one more section of features",
        )
    return "category"


FEATURE_TYPE = Type("real", _features, choices=("real",))
"""`type` of features in files of frames; letter case does not count."""
LABEL_TYPE = Type("category", _labels, choices=("category",))
"""`type` and `labelType` of labels of frames; letter case does not count."""


def check_precision(section: ConfigParameters, precision: str) -> str:
    """Return the section's own precision if it has one."""
    return ReaderParameters.precision.read(section) or precision


def _randomize(value: ConfigValue) -> bool:
    word = value.strip().lower()
    return {"auto": True, "none": False}[word] if word in ("auto", "none") else value.as_bool()


MINIBATCH_MODE = Parameter(
    "minibatchMode", choice("partial", "full", ignore_case=True), default="partial", help="full: no short minibatches."
)
_ORDERS = ("true", "false", "auto", "none")
RANDOMIZE = Type(" | ".join(_ORDERS), _randomize, choices=_ORDERS)


class OrderParameters(Declared):
    """Parameters of the order of the data and of its storage."""

    randomize = Parameter("randomize", RANDOMIZE, default="true", help="Reshuffle the data in each sweep.")
    window = Parameter(
        "randomizationWindow", SIZE, default=None, help="Samples among which data are shuffled; everything if absent."
    )
    sample_window = Parameter(
        "sampleBasedRandomizationWindow",
        BOOLEAN,
        default="true",
        help="Of deserializers in Python: count the window in samples, not in chunks. Of others samples are counted.",
    )
    seed = Parameter("randomizationSeed", SIZE, default="0", help="Added to the number of the sweep.")
    keep_in_memory = Parameter("keepDataInMemory", BOOLEAN, default="false", help="Parse once, keep everything.")
    frame_mode = Parameter("frameMode", BOOLEAN, default="false", help="Every sequence must be a single sample.")
    threads = Parameter(
        "multiThreadedDeserialization", BOOLEAN, default="false", help="Parse on as many threads as there are cores."
    )
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on background threads.")

    def timeline(self, deserializer: Deserializer) -> Timeline:
        """Return the randomizer."""
        from cntkpy.readers.pipeline.randomize import WHOLE_DATA, BlockRandomizer, NoRandomizer, chunks_in_memory

        table = deserializer.table
        if not self.randomize:
            return NoRandomizer(table)
        if self.window is None and not self.keep_in_memory and (chunks := chunks_in_memory(deserializer)):
            return BlockRandomizer(table, chunks, in_chunks=True, seed=self.seed)
        return BlockRandomizer(table, WHOLE_DATA if self.window is None else self.window, seed=self.seed)


def check_keys(p: Any) -> None:
    """`p` has the parameters of sequence keys: `numeric_keys` and `hash_keys`."""
    if p.hash_keys and p.numeric_keys:
        raise p.error(
            "hashSequenceKeys",
            "Hashing should not be used with numeric sequence keys.",
            "add useNumericSequenceKeys=false, or leave hashSequenceKeys out",
        )


class UserReaderParameters(Declared):
    """UserMinibatchSource: minibatches made by a Python class."""

    module = Parameter("module", TEXT, help="The Python module of the class.")
    class_name = Parameter("class", TEXT, help="The class; the arguments of its constructor stand in the section too.")
