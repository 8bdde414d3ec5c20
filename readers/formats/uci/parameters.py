"""The parameters of UCIFastReader, and which of its sections are features and which labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cntk_config.declare import BOOLEAN, INTEGER, PATH, SIZE, TEXT, Declared, Parameter, Part, Type, choice
from cntk_config.parameters import ConfigParameters, ConfigValue
from readers.writers.parameters import BinaryWriterParameters

AUTO = -1
"""randomize=auto: all records of an epoch."""


def _block(value: ConfigValue) -> int:
    word = value.strip().lower()
    return {"auto": AUTO, "none": 0}[word] if word in ("auto", "none") else value.as_size()


class UCIReaderParameters(Declared):
    """UCIFastReader: a line of text per record, its fields between blanks; some are features, some labels."""

    file = Parameter("file", PATH, help="The data file.")
    randomize = Parameter(
        "randomize", Type("auto | none | size", _block), default="auto",
        help="Records shuffled among each other: auto, all of an epoch; none; or a number.",
    )  # fmt: skip
    minibatch_mode = Parameter("minibatchMode", TEXT, default="partial", help="partial, or full: no short minibatches.")
    delimiter = Parameter("customDelimiter", TEXT, default="", help="A character between fields, besides blanks.")
    decimal_point = Parameter("customDecimalPoint", TEXT, default="", help="A character instead of the decimal point.")
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="1: tells how the cache is used.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on a background thread.")
    one_line = Parameter(
        "oneLinePerFile", BOOLEAN, default="false", help="The minibatch size is nbruttsineachrecurrentiter."
    )
    slices = Parameter("nbruttsineachrecurrentiter", SIZE, default="1", help="See oneLinePerFile.")
    create_map = Parameter("allowMapCreation", BOOLEAN, default="false", help="Set by action=createLabelMap.")
    writer_type = Parameter("writerType", TEXT, default=None, help="BinaryReader: keep a binary cache in wfile.")

    def check_together(self) -> None:
        """Errors in what does not go together."""
        from .options import UCISettings

        UCISettings(self.config, "float")

    def named_parts(self) -> Iterator[Part]:
        """The sections of features and labels."""
        return parts(self.config)


class FeatureParameters(Declared):
    """The section of the features."""

    file = Parameter("file", PATH, help="The data file; usually given in the reader's section.")
    dim = Parameter("dim", SIZE, help="Number of features.")
    start = Parameter("start", SIZE, default="0", own=True, help="Field of the first one, counted from 0.")

    def sample_size(self) -> int:
        """Elements of a sample."""
        return self.dim


class LabelParameters(Declared):
    """The section of the labels."""

    file = Parameter("file", PATH, help="The data file, the same as that of the features.")
    label_type = Parameter(
        "labelType", choice("category", "regression", "none", ignore_case=True), default="category",
        help="Names of classes, numbers, or nothing to be read.",
    )  # fmt: skip
    dim = Parameter("dim", SIZE, default=None, own=True, help="Fields of labels; 1 if absent.")
    start = Parameter("start", SIZE, default="0", own=True, help="Field of the first one, counted from 0.")
    label_dim = Parameter("labelDim", SIZE, default="0", help="Classes; at least those of the label mapping file.")
    mapping = Parameter("labelMappingFile", PATH, default=None, help="A label per line; its line is its class.")

    def sample_size(self) -> int | None:
        """Elements of a sample; None if only the data tell."""
        if self.label_type == "category":
            return self.label_dim or None
        return 1 if self.dim is None else self.dim


@dataclass
class Sections:
    """The sections of a reader, by what they are."""

    features: list[str]
    labels: list[str]


def classify(section: ConfigParameters) -> Sections:
    """Which sections of a reader are features and which are labels, each in alphabetical order."""
    found = Sections([], [])
    for name, inside in sorted(section.inner(), key=lambda one: one[0].lower()):
        marks = (LabelParameters.mapping, LabelParameters.label_dim, LabelParameters.label_type)
        kind = BinaryWriterParameters.section_type
        if any(mark.stands_in(inside) for mark in marks) or (kind.stands_in(inside) and kind.read(inside) == "labels"):
            found.labels.append(name)
        elif FeatureParameters.dim.stands_in(inside):
            found.features.append(name)
    return found


def parts(section: ConfigParameters) -> Iterator[Part]:
    """The sections of features and labels; each may also say how the binary cache is written."""
    found = classify(section)
    kinds = (("features", found.features, FeatureParameters), ("labels", found.labels, LabelParameters))
    for kind, names, declared in kinds:
        for name in names:
            yield Part(kind, section.section(name), (declared, BinaryWriterParameters))
