"""The parameters of BinaryReader."""

from __future__ import annotations

from cntk_config.declare import BOOLEAN, INTEGER, PATH, SIZE, TEXT, Declared, Parameter


class BinaryReaderParameters(Declared):
    """BinaryReader: reads files that BinaryWriter wrote. Streams are the sections of the files, by their names."""

    file = Parameter("file", PATH, help="The files, separated by commas or line ends.")
    minibatch_mode = Parameter("minibatchMode", TEXT, default="partial", help="partial, or full: no short minibatches.")
    window = Parameter("windowSize", SIZE, default="0", help="Records mapped into memory at a time; 0: about 16 MB.")
    wref = Parameter("wref", TEXT, default=None, help="Accepted; the files are compared in any case.")
    different_sessions = Parameter(
        "allowDifferentSessions", BOOLEAN, default="false", help="Read files together that were not written together."
    )
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="1: lists sections and statistics.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on a background thread.")
