"""The parameters of Kaldi2Reader, of its sections, and of the deserializers of Kaldi data."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from cntkpy.cntk_config.base.files import exists, read_input
from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    INTEGER,
    PATH,
    SECTION,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    Part,
    Type,
    choice,
    sections_by_name,
)
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.parameters import FEATURE_TYPE, no_stream
from cntkpy.readers.utterances.parameters import (
    WINDOW,
    OneStreamParameters,
    Sections,
    UtteranceLabelParameters,
    UtteranceReaderParameters,
    window_advice,
)

from .specifier import parse_read_specifier

NO_TRANSFORM = "NO_FEATURE_TRANSFORM"
TABLE = Type("path or specifier", lambda value: value)
"""A table: a specifier, or a file that holds one."""
_SEQUENCE_TRAINING = (
    "train with CrossEntropyWithSoftmax: remove seqTrainCriterion, derivatives, objectives, denlats, alignments"
)
_DERIVED = ("readerderiv", "seqtrainderiv", "readerobj", "seqtrainobj")


def is_specifier(value: str) -> bool:
    """Return whether a value is a specifier itself, and not a file that holds one."""
    return value.strip().lower().startswith(("ark:", "ark,", "scp:", "scp,")) and not exists(value)


def specifier_of(value: str) -> tuple[str, str]:
    """Return the specifier that a file holds, or that is there itself: it, and the file.

    Raises:
        DataError: there is no such file.
    """
    if is_specifier(value):
        return value.strip(), ""
    try:
        content = read_input(value).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise DataError(
            f"The file with the specifier, {value}, cannot be opened: {error.strerror or error}",
            path=value,
            hint="it has one line such as scp:feats.scp; that may also stand in place of the name of the file",
        ) from None
    specifier = content.removeprefix("\ufeff").strip(" \t\r\n")
    if "\n" in specifier or "\0" in specifier:
        raise DataError(
            f"{value} is not a file of one line with a specifier.",
            path=value,
            hint=f"write ark:{value} if it is an archive, scp:{value} if it is a script file",
        )
    return specifier, value


@contextmanager
def named_in(path: str) -> Generator[None]:
    """Errors in a table say which file names it, if one does."""
    try:
        yield
    except DataError as error:
        raise (error.with_note(f"named in {path}") if path and path not in error.message else error) from None


def check_table(p: Declared, parameter: Parameter[Any], name: str) -> None:
    """An error where a table cannot be: it is a command, or no specifier. Missing files are not reported.

    Args:
        p: the section.
        parameter: of the section, a TABLE.
        name: what the file is called in the command that an error shows in place of a pipe.
    """
    value = parameter.value(p.config)
    if not value or not (is_specifier(value) or exists(value)):
        return
    try:
        specifier, path = specifier_of(value)
        parse_read_specifier(specifier, f"{path}: " if path else "", name)
    except DataError as error:
        diagnostic = error.diagnostic
        raise p.error(parameter.name, diagnostic.message.removesuffix("."), diagnostic.hint) from None


class KaldiFeatureParameters(Declared):
    """A stream of features: rows of matrices in Kaldi archives."""

    counts = Parameter(
        "scpFile",
        PATH,
        default=None,
        own=True,
        help="Utterances and how many frames they have: a line `key frames` each, as feat-to-len prints them.",
    )
    rx = Parameter("rx", TABLE, own=True, help="File that holds `scp:FILE` or `ark:FILE`; or that itself.")
    dim = Parameter("dim", COUNT, help="Values of a frame after featureTransform, before contextWindow.")
    transform = Parameter(
        "featureTransform", PATH, default="", help=f"A network of the nnet1 kind for all frames; or {NO_TRANSFORM}."
    )
    window = Parameter(
        "contextWindow", WINDOW, default="1", help="Frames side by side: an odd number, or before:after."
    )
    kind = Parameter("type", FEATURE_TYPE, default="real", own=True, help="Kind of values.")
    expand = Parameter(
        "expandToUtterance",
        BOOLEAN,
        default="false",
        help="KaldiFeatureDeserializer: utterances have one frame, repeated to full length.",
    )
    defines_mb_size = Parameter(
        "definesMBSize",
        BOOLEAN,
        default="false",
        help="KaldiFeatureDeserializer: frames of this stream are the length of a sequence.",
    )
    longest = Parameter(
        "maxSequenceSize", SIZE, default=None, help="KaldiFeatureDeserializer leaves out utterances of more frames."
    )

    def check_together(self) -> None:
        """Errors in what can be checked without the data."""
        _ = self.kind  # there is no other
        check_table(self, KaldiFeatureParameters.rx, "features")
        if not 0 < self.dim < 2**24:
            raise self.error("dim", f"{self.dim} is not a number of values", "write 1 or more")

    @property
    def transform_file(self) -> str:
        """The file of the transform, or nothing."""
        return "" if str(self.transform) == NO_TRANSFORM else str(self.transform)

    def sample_size(self) -> int:
        """Elements of a sample: a frame with its neighbours."""
        return self.dim * (sum(self.window) + 1)

    def size_advice(self, wanted: int) -> str | None:
        """Return a hint that names the likely window."""
        return window_advice(wanted, self.given("contextWindow"))


class KaldiLabelParameters(UtteranceLabelParameters):
    """A stream of labels: classes of frames, out of alignments or posteriors."""

    labels = Parameter(
        "mlfFile",
        TABLE,
        default=None,
        own=True,
        help="File that holds `ark:FILE` or `scp:FILE`, of alignments or posteriors; or that itself.",
    )
    states = Parameter("labelMappingFile", PATH, default="", help="Numbers in the archive, one a line, by class.")

    def check_together(self) -> None:
        """Errors in what can be checked without the data."""
        check_table(self, KaldiLabelParameters.labels, "labels")


class KaldiFeatureDeserializerParameters(OneStreamParameters):
    """KaldiFeatureDeserializer: one stream of features."""

    input = Parameter(
        "input",
        sections_by_name("features", "cntkpy.readers.formats.kaldi.parameters:KaldiFeatureParameters"),
        help="One section for the stream, named after it.",
    )


class KaldiLabelDeserializerParameters(OneStreamParameters):
    """KaldiLabelDeserializer: one stream of labels."""

    input = Parameter(
        "input",
        sections_by_name("labels", "cntkpy.readers.formats.kaldi.parameters:KaldiLabelParameters"),
        help="One section for the stream, named after it.",
    )


class KaldiReaderParameters(UtteranceReaderParameters):
    """Kaldi2Reader: features in Kaldi archives, labels in alignments or posteriors, a section for each stream."""

    read_method = Parameter(
        "readMethod",
        choice("blockRandomize", "rollingWindow", ignore_case=True),
        default="blockRandomize",
        help="How data are shuffled; rollingWindow is always by frames.",
    )
    delay = Parameter(
        "targets_delay", INTEGER, default="0", help="The label of a frame is that of this many frames before it."
    )
    criterion = Parameter("seqTrainCriterion", TEXT, default=None, help="Not supported: sequence training.")
    lattices = Parameter("denlats", SECTION, default=None, own=True, help="Not supported: sequence training.")
    alignments = Parameter("alignments", SECTION, default=None, own=True, help="Not supported: sequence training.")
    chunked = Parameter("CSCTruncated", BOOLEAN, default="false", help="Of a modified CNTK; not supported.")
    past = Parameter("getPast", BOOLEAN, default="false", help="Of a modified CNTK; accepted without CSCTruncated.")
    left_context = Parameter(
        "leftContext", SIZE, default="0", help="Of a modified CNTK; accepted without CSCTruncated."
    )
    right_context = Parameter(
        "rightContext", SIZE, default="0", help="Of a modified CNTK; accepted without CSCTruncated."
    )
    verbosity = Parameter("verbosity", INTEGER, default="2", ignored="warnings are always given.")
    trace_level = Parameter("traceLevel", TEXT, default=None, ignored="warnings are always given.")
    read_ahead = Parameter("readAhead", BOOLEAN, default="false", ignored="prefetch=false turns reading ahead off.")
    page_file = Parameter("pageFilePath", PATH, default=None, ignored="nothing is paged out.")
    page_text = Parameter("pageTextFormat", TEXT, default=None, ignored="nothing is paged out.")
    buffer = Parameter("uttDerivativeBufferSize", TEXT, default=None, ignored="only sequence training needs it.")

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections of streams."""
        result = find_sections(self.config)
        for role, sections, declared in (
            ("features", result.features, KaldiFeatureParameters),
            ("labels", result.labels, KaldiLabelParameters),
        ):
            for _, section in sections:
                yield Part(role, section, (declared,))

    def check_together(self) -> None:
        """Errors in what does not go together."""
        self._refuse()
        sections = find_sections(self.config)
        if not sections.features:
            raise no_stream(
                self.config,
                "the reader has no section of features",
                "add features=[scpFile=... ; rx=... ; dim=...]",
                ("scpFile",),
            )
        if self.writing:
            if sections.labels:
                name = sections.labels[0][0]
                raise self.config.error(
                    name,
                    "labels are not read by action=write: writer mode does not support labels as inputs",
                    "leave the section out",
                )
            return
        self.check_minibatches()
        if self.frame_mode and any(slots > 1 for slots in self.parallel):
            raise self.error(
                "nbruttsineachrecurrentiter",
                "frames have no parallel utterances",
                "set frameMode=false, or leave it out",
            )
        if self.delay < 0:
            raise self.error("targets_delay", f"{self.delay} is not a number of frames to wait", "write 0 or more")
        if len(sections.features) + len(sections.labels) < 2:
            raise no_stream(
                self.config,
                "the reader has a single stream; it needs at least 1 input and 1 output",
                "add labels=[mlfFile=... ; labelDim=...]",
                ("mlfFile", "scpFile"),
            )

    def _refuse(self) -> None:
        """Errors in what CNTK had and this program has not."""
        self.check_legacy()
        if self.chunked:
            raise self.error(
                "CSCTruncated",
                "belongs to a modified CNTK: latency-controlled bidirectional training",
                "set it to false, or use truncated=true",
                "NotSupported",
            )
        derived = [
            name
            for name, inside in self.config.inner()
            if KaldiFeatureParameters.kind.stands_in(inside)
            and str(inside.own(KaldiFeatureParameters.kind.name)).lower() in _DERIVED
        ]
        asked = [
            (name, provided)
            for name, provided in (
                ("seqTrainCriterion", self.criterion is not None),
                ("denlats", self.lattices is not None),
                ("alignments", self.alignments is not None),
                (derived[0] if derived else "", bool(derived)),
            )
            if provided
        ]
        if asked:
            raise self.config.error(
                asked[0][0], "sequence training with lattices is not supported", _SEQUENCE_TRAINING, "NotSupported"
            )


def find_sections(section: ConfigParameters) -> Sections:
    """Which sections are streams: those with an scpFile of their own are features, else with an mlfFile labels."""
    sections = Sections()
    for name, inside in section.inner():
        if KaldiFeatureParameters.counts.stands_in(inside):
            sections.features.append((name, inside))
        elif KaldiLabelParameters.labels.stands_in(inside):
            sections.labels.append((name, inside))
    for group in (sections.features, sections.labels):
        group.sort(key=lambda item: item[0].lower())
    return sections
