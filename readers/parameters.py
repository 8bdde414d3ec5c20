"""Parameters that readers, deserializers and writers have in common. Declarations only: nothing heavy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk_config.declare import BOOLEAN, INTEGER, SECTIONS, SIZE, TEXT, Declared, Parameter, Type, choice, per_epoch
from cntk_config.parameters import ConfigParameters, ConfigValue
from readers.entries import DESERIALIZER, NAMED_SEQUENCES, find_entry

if TYPE_CHECKING:
    from readers.contracts import Deserializer
    from readers.pipeline.randomize import Timeline


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
    verbosity = Parameter("verbosity", INTEGER, default="0", help="1 tells more.")
    slots = Parameter("nbruttsineachrecurrentiter", per_epoch(SIZE), default="1", help="Sequences side by side.")


class DeserializerParameters(Declared):
    """Every deserializer: which one it is."""

    type = Parameter("type", TEXT, help="The kind of deserializer.")
    module = ReaderParameters.module
    precision = ReaderParameters.precision


class WriterParameters(Declared):
    """Every writer: which one it is."""

    writer_type = Parameter("writerType", TEXT, default="BinaryWriter", help="The kind of writer.")
    module = Parameter("module", TEXT, default=None, help="A Python module that has the writer.")
    precision = ReaderParameters.precision


def check_precision(section: ConfigParameters, precision: str) -> str:
    """The section's own precision if it has one."""
    return ReaderParameters.precision.read(section) or precision


def _randomize(value: ConfigValue) -> bool:
    word = value.strip().lower()
    return {"auto": True, "none": False}[word] if word in ("auto", "none") else value.as_bool()


AUTO_BLOCK = -1
"""Size of a block of records that are shuffled among each other: all records of an epoch."""
MINIBATCH_MODE = Parameter(
    "minibatchMode", choice("partial", "full", ignore_case=True), default="partial", help="full: no short minibatches."
)
RANDOMIZE = Type("true | false | auto | none", _randomize)


class OrderParameters(Declared):
    """In which order a reader gives its data, and how it is kept."""

    randomize = Parameter("randomize", RANDOMIZE, default="true", help="Shuffle the data anew in each sweep.")
    window = Parameter(
        "randomizationWindow", SIZE, default=None, help="Samples among which data are shuffled; everything if absent."
    )
    sample_window = Parameter("sampleBasedRandomizationWindow", BOOLEAN, default="true", help="Changes nothing.")
    seed = Parameter("randomizationSeed", SIZE, default="0", help="Added to the number of the sweep.")
    keep_in_memory = Parameter("keepDataInMemory", BOOLEAN, default="false", help="Parse once, keep everything.")
    frame_mode = Parameter("frameMode", BOOLEAN, default="false", help="Every sequence must be a single sample.")
    threads = Parameter(
        "multiThreadedDeserialization", BOOLEAN, default="false", help="Parse on as many threads as there are cores."
    )
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on background threads.")

    def timeline(self, deserializer: Deserializer) -> Timeline:
        """The randomizer."""
        from readers.pipeline.randomize import EVERYTHING, BlockRandomizer, NoRandomizer

        if not self.randomize:
            return NoRandomizer(deserializer.table)
        window = EVERYTHING if self.window is None else self.window
        return BlockRandomizer(deserializer.table, window, seed=self.seed)


class CompositeParameters(OrderParameters):
    """CompositeDataReader: reads streams of several deserializers, joined by sequence key."""

    deserializers = Parameter("deserializers", SECTIONS, help="Sections with `type`; the first decides the order.")
    truncated = Parameter("truncated", BOOLEAN, default="false", own=True, help="Cut sequences for truncated BPTT.")
    truncation_length = Parameter("truncationLength", SIZE, default="0", help="Steps of a piece of a sequence.")
    action = Parameter("action", TEXT, default="", own=True, help="`write` turns randomization off.")
    verbosity = Parameter("verbosity", INTEGER, default="0", help="Changes nothing: losses are always reported.")
    trace_level = Parameter("traceLevel", TEXT, default=None, help="Handed to the deserializers.")
    local_timeline = Parameter("localTimeline", BOOLEAN, default="true", help="Each worker counts its own samples.")
    check_data = Parameter(
        "checkData", BOOLEAN, default="true", help="Leave out sequences missing somewhere; false: they are an error."
    )
    allow_loss = Parameter(
        "allowDataLoss", BOOLEAN, default="false", help="More than half of the sequences may be missing somewhere."
    )
    max_errors = Parameter("maxErrors", SIZE, default="0", own=True, help="Invalid sequences to leave out.")
    numeric_keys = Parameter(
        "useNumericSequenceKeys", BOOLEAN, default="true",
        help="Sequence ids are numbers; false: any text. By default false beside HTK deserializers.",
    )  # fmt: skip
    hash_keys = Parameter("hashSequenceKeys", BOOLEAN, default="false", help="Know text ids by a hash only.")

    def check_together(self) -> None:
        """Errors in what does not go together."""
        if self.truncated and self.frame_mode:
            message = "frameMode and truncated BPTT are mutually exclusive."
            raise self.error("truncated", message, "leave one of them out", "Conflict")
        if self.truncated and self.truncation_length == 0:
            raise self.error("truncated", "Truncation length cannot be 0.", "set truncationLength")
        if not self.deserializers:
            raise self.error("deserializers", "no deserializer is given", "write deserializers=([type=... ; ...])")
        if self.keys_are_numbers:
            check_keys(self)

    @property
    def keys_are_numbers(self) -> bool:
        """`useNumericSequenceKeys`, by default false where there are utterances, which have names."""
        if self.given("useNumericSequenceKeys") is not None:
            return self.numeric_keys
        kinds = [find_entry(DESERIALIZER, DeserializerParameters.type.read(one)) for one in self.deserializers]
        return not any(kind is not None and NAMED_SEQUENCES in kind.traits for kind in kinds)


def check_keys(p: Any) -> None:
    """`p` has the parameters of sequence keys: `numeric_keys` and `hash_keys`."""
    if p.hash_keys and p.numeric_keys:
        raise p.error(
            "hashSequenceKeys", "Hashing should not be used with numeric sequence keys.",
            "add useNumericSequenceKeys=false, or leave hashSequenceKeys out",
        )  # fmt: skip


class UserReaderParameters(Declared):
    """UserMinibatchSource: minibatches made by a Python class."""

    module = Parameter("module", TEXT, help="The Python module of the class.")
    class_name = Parameter("class", TEXT, help="The class; the arguments of its constructor stand in the section too.")
