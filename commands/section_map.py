"""Which part of the program reads which section of a configuration, and by which declarations.

    root ─ train ─┬─ SGD ─ AutoAdjust
                  ├─ reader ─ input ─ features
                  └─ SimpleNetworkBuilder

`check`, `explain`, `show`, completion and the language server all look at this tree of `Use`s.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from cntk_config import ConfigError, ConfigParameters
from cntk_config.declare import (
    BOOLEAN,
    INTEGER,
    PATH,
    TEXT,
    Declared,
    Parameter,
    array,
    choice,
)
from commands.dispatch import find_action
from commands.root import RootParameters

BUILDING = ("test", "eval", "write", "testUnroll", "cv")
"""Actions which build a network anew if they see a builder, and load one otherwise."""
READER_PARAMETERS = {
    "cntktextformatreader": "readers.text_format.options:TextReaderParameters",
    "ucifastreader": "readers.uci.options:UCIReaderParameters",
    "binaryreader": "readers.binary.reader:BinaryReaderParameters",
    "userminibatchsource": "readers.data_api.source_reader:UserReaderParameters",
    "htkmlfreader": "readers.htk.sections:HTKReaderParameters",
    **dict.fromkeys(
        ("sequencereader", "lmsequencereader", "batchsequencereader"),
        "readers.language.sentences:SequenceReaderParameters",
    ),
    **dict.fromkeys(
        ("lusequencereader", "batchlusequencereader", "multiiobatchlusequencereader"),
        "readers.language.columns:LUSequenceReaderParameters",
    ),
}
DESERIALIZER_PARAMETERS = {"cntktextformatdeserializer": "readers.text_format.options:TextFormatParameters"}


class CommandParameters(Declared):
    """Every command section: what is done in it."""

    action = Parameter("action", array(TEXT), help="What to do: one action or several.")
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="0: results only; 1: progress; 2: more.")
    make_mode = Parameter("makeMode", BOOLEAN, default="true", help="Leave finished models alone, continue others.")
    threads = Parameter("numCPUThreads", INTEGER, default="0", help="CPU threads; 0 leaves it to the libraries.")
    outputs = Parameter(
        "outputNodeNames", array(TEXT), default=None, help="With a builder: the nodes that are outputs."
    )


class ReaderParameters(Declared):
    """Every reader: which one it is."""

    reader_type = Parameter("readerType", TEXT, default="CNTKTextFormatReader", help="The kind of reader.")
    module = Parameter("module", TEXT, default=None, help="A Python module that has the reader.")
    precision = Parameter(
        "precision", choice("float", "double", ignore_case=True), default="float", own=True, help="Element type."
    )
    truncated = Parameter("truncated", BOOLEAN, default="false", help="Truncated back-propagation through time.")
    verbosity = Parameter("verbosity", INTEGER, default="0", help="1 tells more.")


class DeserializerParameters(Declared):
    """Every deserializer: which one it is."""

    type = Parameter("type", TEXT, help="The kind of deserializer.")
    module = Parameter("module", TEXT, default=None, help="A Python module that has the deserializer.")
    precision = ReaderParameters.precision


class WriterParameters(Declared):
    """Every writer: which one it is."""

    writer_type = Parameter("writerType", TEXT, default="BinaryWriter", help="The kind of writer.")
    module = Parameter("module", TEXT, default=None, help="A Python module that has the writer.")


class NDLBuilderParameters(Declared):
    """`NDLNetworkBuilder`: a network written in the network description language."""

    network = Parameter("networkDescription", PATH, default=None, help="The file of the network.")
    run = Parameter("run", array(TEXT), default=None, help="Sections that hold the network.")
    load = Parameter("load", array(TEXT), default=None, help="Sections to be read before, with macros.")
    macros = Parameter("ndlMacros", PATH, default=None, help="Files of macros, joined by `+`.")
    seed_offset = Parameter("randomSeedOffset", INTEGER, default="0", help="Added to the seed of every parameter.")
    dump = Parameter("dumpFileName", PATH, default=None, help="Accepted and ignored; see action=dumpNode.")


@dataclass
class Use:
    """A section, and who reads it."""

    section: ConfigParameters
    role: str
    """What it is, for messages: `SGD`, `reader`, `action train`."""
    declared: tuple[type[Declared], ...] = ()
    open: bool = False
    """Other names are read as well, which the program cannot list."""
    sets: bool = False
    """Every name in it is a section of its own (the streams of `input`)."""
    parts: list[Use] = field(default_factory=list)
    command: str = ""
    actions: tuple[str, ...] = ()

    def parameter(self, name: str) -> Parameter | None:
        """The declaration of a name in this section."""
        for one in self.declared:
            if found := one.parameter(name):
                return found
        return None

    def parameters(self) -> Iterator[Parameter]:
        """All declared parameters, each name once."""
        seen: set[str] = set()
        for one in self.declared:
            for parameter in one.parameters():
                if parameter.name.lower() not in seen:
                    seen.add(parameter.name.lower())
                    yield parameter

    def names(self) -> list[str]:
        """The names that are read from this section, aliases included."""
        return [name for one in self.parameters() for name in (one.name, *one.aliases)]

    def walk(self) -> Iterator[Use]:
        """This use and all inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def reads_below(self) -> set[str]:
        """Names, in lower case, that a section inside searches further out, so that they may stand here."""
        return {
            name.lower()
            for part in self.parts
            if part.section.parent is not None  # sets in a list are not connected to what is around them
            for use in part.walk()
            for one in use.parameters()
            if not one.own
            for name in (one.name, *one.aliases)
        }


def section_map(root: ConfigParameters, *, everything: bool = True) -> Use:
    """The uses of a whole configuration. With `everything` also commands that `command` does not list."""
    top = Use(root, "top level", (RootParameters,))
    try:
        listed = [str(name) for name in RootParameters(root).command]
    except ConfigError:
        listed = []
    names = [name for name in listed if root.exists_current(name)]
    if everything:
        names += [name for name in root.names() if name not in names and _has_action(root, name)]
    for name in names:
        try:
            top.parts.append(command_use(root.section(name), name))
        except ConfigError:
            continue
    return top


def _has_action(root: ConfigParameters, name: str) -> bool:
    entry = root.own_entry(name)
    if entry is None or not entry.bracket or "action" not in entry.text.lower():
        return False
    try:
        return root.section(name).exists_current("action")
    except ConfigError:
        return False


def command_use(section: ConfigParameters, name: str) -> Use:
    """The use of a command section. What cannot be read is left out."""
    use = Use(section, f"command {name}", (CommandParameters,), command=name)
    try:
        use.actions = tuple(str(action) for action in section.array("action"))
    except ConfigError:
        use.open = True
    for action in use.actions:
        try:
            declared = find_action(action, name).declaration()
        except ConfigError:
            declared = None
        if declared is None:
            use.open = True
        else:
            use.declared += (declared,)
    if set(use.actions) & set(BUILDING):
        use.declared += (_load("commands.networks_and_readers:ModelParameters"),)
    for one in use.parameters():
        if one.type.is_section:
            use.parts += _part(section, one)
    for one in use.parts:
        for inside in one.walk():
            inside.command = name
    return use


def _part(section: ConfigParameters, one: Parameter) -> list[Use]:
    """The section that a parameter names, if it is given."""
    name = one.find(section)
    if name is None:
        return []
    try:
        inside = section.section(name)
        key = one.name.lower()
        if key in ("reader", "cvreader"):
            return [reader_use(inside, one.name)]
        if key == "writer":
            return [writer_use(inside)]
        if key == "ndlnetworkbuilder":
            return [Use(inside, one.name, (NDLBuilderParameters,))]
        if key == "simplenetworkbuilder":
            return [Use(inside, one.name, (_load("networks.simple:SimpleNetworkBuilder"),))]
        declared = one.type.declared
        use = Use(inside, one.name, (declared(),) if declared else (), open=declared is None)
        for parameter in use.parameters():
            if parameter.type.is_section:
                use.parts += _part(inside, parameter)
        return [use]
    except ConfigError:
        return []


def reader_use(section: ConfigParameters, role: str) -> Use:
    """The use of a reader section, its streams and deserializers."""
    use = Use(section, role, (ReaderParameters,))
    kind = section.find("readerType")
    if section.exists_current("deserializers"):
        use.declared += (_load("readers.composite:CompositeParameters"),)
        for one in section.sections("deserializers"):
            use.parts.append(_deserializer_use(one))
        return use
    key = "cntktextformatreader" if kind is None else kind.lower()
    path = READER_PARAMETERS.get(key)
    declared = _load(path) if path else declaration_near(section)
    if declared is None:
        use.open = True
        return use
    use.declared += (declared,)
    if key == "cntktextformatreader":
        use.parts += _streams(section)
    elif key == "ucifastreader":
        use.declared += (_load("readers.writers.binary:BinaryWriterParameters"),)
        use.parts += _uci(section)
    else:
        use.open = True
    return use


def _deserializer_use(section: ConfigParameters) -> Use:
    use = Use(section, "deserializer", (DeserializerParameters,))
    path = DESERIALIZER_PARAMETERS.get((section.find("type") or "").lower())
    if path:
        use.declared += (_load(path),)
        use.parts += _streams(section)
    else:
        use.open = True
    return use


def writer_use(section: ConfigParameters) -> Use:
    """The use of a writer section."""
    return Use(section, "writer", (WriterParameters, _load("readers.writers.binary:BinaryWriterParameters")), open=True)


def _streams(section: ConfigParameters) -> list[Use]:
    """`input` and the streams in it."""
    if not section.exists("input"):
        return []
    inside = section.section("input")
    use = Use(inside, "input", sets=True)
    for name in inside.names():
        declared = _load("readers.text_format.options:StreamParameters")
        use.parts.append(Use(inside.section(name), f"stream {name}", (declared,)))
    return [use]


def _uci(section: ConfigParameters) -> list[Use]:
    """The sections of features and labels."""
    from readers.uci.options import FeatureParameters, LabelParameters, classify
    from readers.writers.binary import BinaryWriterParameters

    found = classify(section)
    kinds = [("features", found.features, FeatureParameters), ("labels", found.labels, LabelParameters)]
    return [
        Use(section.section(name), f"{kind} {name}", (declared, BinaryWriterParameters), open=kind == "labels")
        for kind, names, declared in kinds
        for name in names
    ]


def declaration_near(section: ConfigParameters) -> type[Declared] | None:
    """The declaration of another reader: `declared` of its factory, or the one `...ReaderParameters` of its module."""
    from readers.registry import find_reader

    factory = find_reader(section)()
    declared = getattr(factory, "declared", None)
    if isinstance(declared, str):
        return _load(declared)
    if declared is not None:
        return declared
    module = importlib.import_module(factory.__module__)
    near = [
        one
        for name, one in vars(module).items()
        if name.endswith("ReaderParameters") and isinstance(one, type) and issubclass(one, Declared)
    ]
    return near[0] if len(near) == 1 else None


def _load(path: str) -> type[Declared]:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
