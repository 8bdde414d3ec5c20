"""The parameters of BinaryReader and BinaryWriter."""

from __future__ import annotations

from collections.abc import Iterator

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
    among,
    array,
    choice,
)
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.parameters import MINIBATCH_MODE, PATHS

SECTION_TYPES = ("Data", "Labels", "LabelMapping", "Stats", "CategoryLabels")


class BinaryReaderParameters(Declared):
    """BinaryReader: reads files that BinaryWriter wrote. Streams are the sections of the files, by their names."""

    file = Parameter("file", PATHS, help="The file, or several: an array, also with commas or line ends between them.")
    minibatch_mode = MINIBATCH_MODE
    window = Parameter("windowSize", SIZE, default="0", help="Records read at a time; 0: about 16 MB.")
    wref = Parameter("wref", TEXT, default=None, ignored="the files are compared in any case.")
    different_sessions = Parameter(
        "allowDifferentSessions", BOOLEAN, default="false", help="Read files together that were not written together."
    )
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="1: lists sections and statistics.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on a background thread.")


class BinaryWriterParameters(Declared):
    """BinaryWriter, and every section inside it: what is written to a binary file."""

    wfile = Parameter("wfile", PATH, default=None, own=True, help="A file for this section and those inside.")
    wrecords = Parameter(
        "wrecords", COUNT, default=None, own=True, help="Records, at least as many as come; as the section around."
    )
    section_type = Parameter(
        "sectionType", among(TEXT, *SECTION_TYPES), default=None, own=True, help="What the section holds."
    )
    dim = Parameter("dim", COUNT, default="1", own=True, help="Elements of a record.")
    element_size = Parameter("elementSize", COUNT, default=None, own=True, help="Bytes of an element.")
    label_type = Parameter(
        "labelType",
        choice("category", "regression", "none", ignore_case=True),
        default=None,
        help="Of Labels: their kind.",
    )
    label_dim = Parameter("labelDim", COUNT, default=None, help="Labels: number of classes.")
    compute = Parameter("compute", array(TEXT), default=None, help="Stats: names of statistics.")
    wsize = Parameter("wsize", SIZE, default="256", ignored="files have the size they need.")
    window = Parameter("windowSize", SIZE, default="0", own=True, ignored="it changes nothing in the file.")
    wref = Parameter("wref", TEXT, default=None, own=True, ignored="the files of a writer belong together.")
    trace_level = Parameter("traceLevel", INTEGER, default="0", ignored="the writer logs nothing.")

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections that are written."""
        for _, inside in written(self.config):
            yield Part("written", inside, (BinaryWriterParameters,))


def written_files(section: ConfigParameters) -> Iterator[str]:
    """Yield the files of the section of a writer and of those inside that are written."""
    if (path := BinaryWriterParameters(section).wfile) is not None:
        yield str(path)
    for _, inside in written(section):
        yield from written_files(inside)


def written(section: ConfigParameters) -> Iterator[tuple[str, ConfigParameters]]:
    """Yield the sections inside that are written: those that say what they are."""
    for name, inside in section.inner():
        if BinaryWriterParameters.section_type.stands_in(inside):
            yield name, inside
