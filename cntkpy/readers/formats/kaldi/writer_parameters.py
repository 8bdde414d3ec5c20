"""The parameters of Kaldi2Writer."""

from __future__ import annotations

from collections.abc import Iterator

from cntkpy.cntk_config.declare import COUNT, INTEGER, PATH, REAL, TEXT, Declared, Parameter, Part, array, choice
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError

from .specifier import WriteSpecifier, parse_write_specifier


class KaldiWriterParameters(Declared):
    """Kaldi2Writer: has a section for every node that is written."""

    nodes = Parameter("outputNodeNames", array(TEXT), default="()", help="The nodes; every one needs a section.")
    verbosity = Parameter("verbosity", INTEGER, default="2", help="0: no messages about overflow.")
    overflow = Parameter("overflowValue", REAL, default="50", help="Values above it are counted in a warning.")
    most_warnings = Parameter("maxNumOverflowWarning", INTEGER, default="10", ignored="there is one per node.")

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections of nodes."""
        for _, inside in node_sections(self.config):
            yield Part("node", inside, (KaldiOutputParameters,))


class KaldiOutputParameters(Declared):
    """A node that is written to Kaldi archives."""

    dim = Parameter("dim", COUNT, own=True, help="Values per frame: the size of the node.")
    file = Parameter(
        "file",
        PATH,
        default=None,
        own=True,
        aliases=("scpFile",),
        help="List of utterances in the order of the reader: their names, or files to be written.",
    )
    archive = Parameter(
        "Kaldicmd",
        TEXT,
        default=None,
        own=True,
        help="Where all utterances go: ark:FILE, ark,t:FILE, ark,scp:FILE,SCRIPT, ark:- for standard output.",
    )
    kind = Parameter("type", choice("Real", ignore_case=True), default="Real", own=True, help="Kind of values.")

    def check_together(self) -> None:
        """Errors in what can be checked without the data."""
        self.specifier()

    def specifier(self) -> WriteSpecifier | None:
        """Return the parsed `Kaldicmd`; None if it is not set."""
        if self.archive is None:
            return None
        try:
            return parse_write_specifier(str(self.archive))
        except DataError as error:
            diagnostic = error.diagnostic
            raise self.error("Kaldicmd", diagnostic.message.removesuffix("."), diagnostic.hint) from None


def node_sections(section: ConfigParameters) -> Iterator[tuple[str, ConfigParameters]]:
    """Yield the sections that say how a node is written."""
    p = KaldiOutputParameters
    for name, inside in section.inner():
        if p.file.stands_in(inside) or p.dim.stands_in(inside) or p.archive.stands_in(inside):
            yield name, inside
