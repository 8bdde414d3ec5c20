"""The parameters of UCIFastReader, and which of its sections are features and which labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cntkpy.cntk_config.base.files import LIST_LIMIT, is_file, read_input
from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    INTEGER,
    PATH,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    Part,
    Type,
    choice,
)
from cntkpy.cntk_config.parameters import SIZE_MAXIMUM, ConfigParameters, ConfigValue
from cntkpy.readers.common.codecs import LONGEST_MAGIC, format_of
from cntkpy.readers.common.label_lines import label_lines
from cntkpy.readers.contracts import AUTO_BLOCK
from cntkpy.readers.formats.binary.parameters import BinaryWriterParameters, written_files
from cntkpy.readers.parameters import MINIBATCH_MODE, no_stream

from .columns import Columns

CACHE_WRITERS = ("binaryreader", "binarywriter")
"""Values of `writerType`, in lower case, of writers whose files can be read in place of the text."""


def _block(value: ConfigValue) -> int:
    word = value.strip().lower()
    if word in ("true", "false"):
        hint = "write auto: all records of an epoch" if word == "true" else "write none"
        raise value.error("BadChoice", f"'{value}' is not auto, none or a number of records", hint)
    if word in ("auto", "none"):
        return {"auto": AUTO_BLOCK, "none": 0}[word]
    if (size := value.as_size()) == SIZE_MAXIMUM:
        message = f"{value} is CNTK's greatest size, and a number of records divides the epoch"
        raise value.error("BadValue", message, "write auto: all records of an epoch")
    return size


class UCIReaderParameters(Declared):
    """UCIFastReader: a line of text per record, its fields between blanks; some are features, some labels."""

    file = Parameter("file", PATH, default=None, help="The data file. The section of the features may have it, too.")
    randomize = Parameter(
        "randomize",
        Type("auto | none | size", _block),
        default="auto",
        help="Records shuffled among each other: auto, all of an epoch; none; or a number.",
    )
    minibatch_mode = MINIBATCH_MODE
    delimiter = Parameter("customDelimiter", TEXT, default="", help="A character between fields, besides blanks.")
    decimal_point = Parameter("customDecimalPoint", TEXT, default="", help="A character instead of the decimal point.")
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="1: logs how the cache is used.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on a background thread.")
    one_line = Parameter(
        "oneLinePerFile", BOOLEAN, default="false", help="The minibatch size is nbruttsineachrecurrentiter."
    )
    slices = Parameter("nbruttsineachrecurrentiter", COUNT, default="1", help="See oneLinePerFile.")
    create_map = Parameter("allowMapCreation", BOOLEAN, default="false", help="Set by action=createLabelMap.")
    writer_type = Parameter("writerType", TEXT, default=None, help="BinaryReader: keep a binary cache in wfile.")

    def check_together(self) -> None:
        """Errors in what does not go together."""
        self.columns()

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Yield delimiters and decimal points of several characters, of which only the first counts, as in CNTK."""
        for name in ("customDelimiter", "customDecimalPoint"):
            if (value := self.given(name)) and len(value) > 1:
                yield name, f"only the first character of '{value}' counts, '{value[0]}'", f'write {name}="{value[0]}"'

    def columns(self) -> Columns:
        """Which fields of a line are read.

        Raises:
            ConfigError: if sections of features and labels are missing or contradict each other.
        """
        sections = classify(self.config)
        features, labels, path = self.features(), self.labels(), self.path()
        delimiter, point = self._characters()
        features.check_dim()
        for section in filter(None, (features, labels)):
            if section.start >= 2**31:
                raise section.error("start", "fields are counted from 0", "write 0 or more")
        name, first, dim = sections.features[0], features.start, features.dim
        if labels is None:
            return Columns(name, first, dim, delimiter=delimiter, decimal_point=point)
        if labels.file not in (None, path):
            raise labels.error(
                "file", "features and labels must come from one file", "give file in the reader's section"
            )
        if labels.label_type == "none":
            return Columns(name, first, dim, delimiter=delimiter, decimal_point=point)
        label_dim = labels.fields()
        if max(first, labels.start) < min(first + dim, labels.start + label_dim):
            raise labels.error(
                "start",
                f"fields {labels.start} to {labels.start + label_dim - 1} are labels, but {first} to {first + dim - 1} "
                "are features",
                "the two must not overlap",
            )
        return Columns(
            name, first, dim, sections.labels[0], labels.label_type, labels.start, label_dim, delimiter, point
        )

    def path(self) -> str:
        """Return the data file, that of the features.

        Raises:
            ConfigError: if there is none.
        """
        file = self.features().file
        if file is None:
            raise self.config.missing("file", {BinaryWriterParameters.wfile.name}).with_note("file: the data file")
        return str(file)

    def features(self) -> FeatureParameters:
        """Return the section of the features; an error if there is none."""
        features = classify(self.config).features
        if not features:
            raise no_stream(
                self.config, "the reader has no section of features", "add features=[dim=... ; start=...]", ("dim",)
            )
        return FeatureParameters(self.config.section(features[0]))

    def labels(self) -> LabelParameters | None:
        """Return the section of the labels, if there is one."""
        labels = classify(self.config).labels
        return LabelParameters(self.config.section(labels[0])) if labels else None

    def _characters(self) -> tuple[str, str]:
        """Return the delimiter and the decimal point, empty if they are the usual ones."""
        delimiter, point = self._character("customDelimiter"), self._character("customDecimalPoint")
        if delimiter and delimiter == point:
            raise self.error("customDelimiter", "is the same as customDecimalPoint", "use two characters")
        if delimiter and (delimiter in "0123456789+-" or (delimiter == "." and not point)):
            raise self.error("customDelimiter", f"'{delimiter}' is a part of numbers")
        if point and point in "0123456789+- eE":
            raise self.error("customDecimalPoint", f"'{point}' is another part of numbers, or a blank")
        return delimiter, point

    def _character(self, name: str) -> str:
        value = self.given(name)
        if not value:
            return ""
        if ord(value[0]) >= 128 or value[0] in "\n\0":
            raise value.error("BadValue", f"{name} must be an ASCII character", None)
        return str(value[0])

    def needs_no_files(self) -> bool:
        """Return whether the binary cache is there, which is then read instead of the text and the labels."""
        kind = self.writer_type
        if kind is None or kind.lower() not in CACHE_WRITERS:
            return False
        files = list(written_files(self.config))
        return bool(files) and all(map(is_file, files))

    def named_parts(self) -> Iterator[Part]:
        """Return the sections of features and labels."""
        return parts(self.config)


class FeatureParameters(Declared):
    """The section of the features."""

    file = Parameter("file", PATH, default=None, help="The data file; usually given in the reader's section.")
    dim = Parameter("dim", COUNT, help="Number of features.")
    start = Parameter("start", SIZE, default="0", own=True, help="Field of the first one, counted from 0.")

    def sample_size(self) -> int:
        """Elements of a sample."""
        return self.dim

    def check_dim(self) -> None:
        """An error if the number of features is none."""
        if not 0 < self.dim < 2**31:
            raise self.error("dim", f"{self.dim} is not a number of features", "write 1 or more")


class LabelParameters(Declared):
    """The section of the labels."""

    file = Parameter("file", PATH, default=None, help="The data file, the same as that of the features.")
    label_type = Parameter(
        "labelType",
        choice("category", "regression", "none", ignore_case=True),
        default="category",
        help="Names of classes, numbers, or nothing to be read.",
    )
    dim = Parameter("dim", COUNT, default=None, own=True, help="Fields of labels; 1 if absent.")
    start = Parameter("start", SIZE, default="0", own=True, help="Field of the first one, counted from 0.")
    label_dim = Parameter("labelDim", COUNT, default="0", help="Classes; at least those of the label mapping file.")
    mapping = Parameter("labelMappingFile", PATH, default=None, help="A label per line; its line is its class.")

    def sample_size(self) -> int | None:
        """Elements of a sample; None if only the data says."""
        if self.label_type == "category":
            listed = self._listed()
            return max(self.label_dim, listed) if self.label_dim and listed is not None else None
        return 1 if self.dim is None else self.dim

    def _listed(self) -> int | None:
        """Return the number of labels in the label mapping file, 0 if it is not there; None if it is no plain text."""
        if not self.mapping or not is_file(self.mapping):
            return 0
        try:
            content = read_input(self.mapping, LIST_LIMIT)
            return None if format_of(content[:LONGEST_MAGIC]) else sum(1 for _ in label_lines(content))
        except OSError:
            return None

    def fields(self) -> int:
        """Return the number of fields that are labels; an error if that does not go with their type."""
        count = 1 if self.dim is None else self.dim
        if self.label_type == "category":
            if count > 1:
                raise self.error("dim", "labels of type category are a single field", "write dim=1")
            if not self.mapping:
                raise self.error("labelMappingFile", "the label mapping file is missing", None, "MissingParameter")
            return 1
        if count == 0:
            raise self.error("dim", "0 is not a number of labels", "write 1 or more")
        return count


@dataclass
class Sections:
    """The sections of a reader, by what they are."""

    features: list[str]
    labels: list[str]


def classify(section: ConfigParameters) -> Sections:
    """Which sections of a reader are features and which are labels, each in alphabetical order."""
    sections = Sections([], [])
    for name, inside in sorted(section.inner(), key=lambda item: item[0].lower()):
        marks = (LabelParameters.mapping, LabelParameters.label_dim, LabelParameters.label_type)
        kind = BinaryWriterParameters.section_type
        if any(mark.stands_in(inside) for mark in marks) or (kind.stands_in(inside) and kind.read(inside) == "labels"):
            sections.labels.append(name)
        elif FeatureParameters.dim.stands_in(inside):
            sections.features.append(name)
    return sections


def parts(section: ConfigParameters) -> Iterator[Part]:
    """Yield the sections of features and labels; each may also say how the binary cache is written."""
    sections = classify(section)
    kinds = (("features", sections.features, FeatureParameters), ("labels", sections.labels, LabelParameters))
    for kind, names, declared in kinds:
        for name in names:
            part = section.section(name)
            skipped = declared is LabelParameters and LabelParameters.label_type.read(part) == "none"
            yield Part("skipped" if skipped else kind, part, (declared, BinaryWriterParameters))
