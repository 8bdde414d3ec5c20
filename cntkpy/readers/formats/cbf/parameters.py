"""The parameters of a file in CNTK binary format."""

from cntkpy.cntk_config.declare import PATH, SIZE, TEXT, Declared, Parameter, sections_by_name
from cntkpy.readers.parameters import OrderParameters


class StreamName(Declared):
    """A stream of a file in CNTK binary format under another name."""

    alias = Parameter("alias", TEXT, default=None, own=True, help="Its name in the file; its own name if absent.")
    dim = Parameter("dim", SIZE, default=None, own=True, ignored="the file says it.")
    format = Parameter("format", TEXT, default=None, own=True, ignored="the file says it.")


class CBFParameters(Declared):
    """A file in CNTK binary format."""

    file = Parameter("file", PATH, help="The data file.")
    input = Parameter(
        "input",
        sections_by_name("stream", "cntkpy.readers.formats.cbf.parameters:StreamName"),
        default=None,
        help="Sections of streams that get other names; all streams of the file are read.",
    )

    def names(self) -> dict[str, str]:
        """New names by those in the file."""
        if self.input is None:
            return {}
        inside = {name: StreamName(self.input.section(name)) for name in self.input.names()}
        return {str(value.alias) if value.alias is not None else name: name for name, value in inside.items()}


class CBFReaderParameters(CBFParameters, OrderParameters):
    """CNTKBinaryReader: reads one file in CNTK binary format."""
