"""The parameters of HTKMLFWriter."""

from __future__ import annotations

from collections.abc import Iterator

from cntk_config.declare import COUNT, PATH, TEXT, Declared, Parameter, Part, array, choice
from cntk_config.parameters import ConfigParameters


class HTKWriterParameters(Declared):
    """HTKMLFWriter: has a section for every node that is written."""

    nodes = Parameter("outputNodeNames", array(TEXT), default="()", help="The nodes; every one needs a section.")

    def named_parts(self) -> Iterator[Part]:
        """The sections of nodes."""
        for _, inside in node_sections(self.config):
            yield Part("node", inside, (OutputParameters,))


class OutputParameters(Declared):
    """A node that is written to feature files."""

    dim = Parameter("dim", COUNT, own=True, help="Values per frame: the size of the node.")
    file = Parameter(
        "file",
        PATH,
        default=None,
        own=True,
        aliases=("scpFile",),
        help="List of the files to write, one per utterance.",
    )
    kind = Parameter(
        "type",
        choice("Real", "scaledLogLikelihood", ignore_case=True),
        default="Real",
        own=True,
        help="scaledLogLikelihood: less the logarithm of the prior.",
    )
    path = Parameter("path", PATH, default=None, own=True, help="Folder; the list then has names of utterances.")
    ext = Parameter("ext", TEXT, default="mfc", own=True, help="With path: the extension of the files.")
    node = Parameter("nodeName", TEXT, default=None, own=True, help="The node, if the section has another name.")


def node_sections(section: ConfigParameters) -> Iterator[tuple[str, ConfigParameters]]:
    """The sections that say how a node is written."""
    for name, inside in section.inner():
        if OutputParameters.file.stands_in(inside) or OutputParameters.dim.stands_in(inside):
            yield name, inside
