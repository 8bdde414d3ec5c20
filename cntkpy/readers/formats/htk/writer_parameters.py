"""The parameters of HTKMLFWriter."""

from __future__ import annotations

from collections.abc import Iterator

from cntkpy.cntk_config.declare import COUNT, PATH, TEXT, Declared, Parameter, Part, array, choice
from cntkpy.cntk_config.parameters import ConfigParameters


class HTKWriterParameters(Declared):
    """HTKMLFWriter: has a section for every node that is written."""

    nodes = Parameter("outputNodeNames", array(TEXT), default="()", help="The nodes; every one needs a section.")

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections of nodes, also those inside `write`."""
        for _, inside in node_sections(self.config):
            yield Part("node", inside, (OutputParameters,))

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """Sections of nodes that are not to be written."""
        wanted = {str(name).lower() for name in self.nodes}
        for name, inside in node_sections(self.config):
            if wanted and inside.parent is self.config and node_name(name, inside).lower() not in wanted:
                yield name, f"outputNodeNames does not name '{node_name(name, inside)}', so that it is not written"


class OutputParameters(Declared):
    """A node that is written to feature files."""

    dim = Parameter("dim", COUNT, own=True, help="Values per frame: the size of the node.")
    file = Parameter(
        "file",
        PATH,
        default=None,
        own=True,
        aliases=("scpFile",),
        help="List of the files to write, one per utterance; with path it may be left out.",
    )
    kind = Parameter(
        "type",
        choice("Real", "scaledLogLikelihood", ignore_case=True),
        default="Real",
        own=True,
        help="scaledLogLikelihood: less the logarithm of the prior.",
    )
    path = Parameter(
        "path",
        PATH,
        default=None,
        own=True,
        help="Folder of files called as the utterances; a list then has their names.",
    )
    ext = Parameter("ext", TEXT, default="mfc", own=True, help="With path: the extension of the files.")
    node = Parameter("nodeName", TEXT, default=None, own=True, help="The node, if the section has another name.")


def node_sections(section: ConfigParameters) -> Iterator[tuple[str, ConfigParameters]]:
    """Yield the sections that say how a node is written, also those inside a section called `write`."""
    p = OutputParameters
    for name, inside in section.inner():
        if any(parameter.stands_in(inside) for parameter in (p.file, p.dim, p.path)):
            yield name, inside
        elif name.lower() == "write":
            yield from node_sections(inside)


def node_name(name: str, section: ConfigParameters) -> str:
    """Return the node that a section called `name` is about."""
    return str(OutputParameters.node.read(section) or name)
