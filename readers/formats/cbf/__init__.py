"""CNTK binary format (CBF): chunks of sequences with a directory at the end."""

from cntk_config.entry import Entry

_HERE = "readers.formats.cbf.deserializer"
ENTRIES = (
    Entry(
        "deserializer", ("CNTKBinaryFormatDeserializer",), factory=f"{_HERE}:create_deserializer",
        parameters=f"{_HERE}:CBFParameters",
    ),
)  # fmt: skip
