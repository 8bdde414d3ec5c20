"""CNTK binary format (CBF): chunks of sequences with a directory at the end."""

from cntkpy.cntk_config.entry import Entry

_HERE = "cntkpy.readers.formats.cbf.deserializer"
_PARAMETERS = "cntkpy.readers.formats.cbf.parameters"
ENTRIES = (
    Entry(
        "reader",
        ("CNTKBinaryReader",),
        factory=f"{_HERE}:create_binary_reader",
        parameters=f"{_PARAMETERS}:CBFReaderParameters",
        traits=frozenset({"varying slots"}),
        example="reader = [ readerType = CNTKBinaryReader ; file = train.bin ]",
    ),
    Entry(
        "deserializer",
        ("CNTKBinaryFormatDeserializer",),
        factory=f"{_HERE}:create_deserializer",
        parameters=f"{_PARAMETERS}:CBFParameters",
        traits=frozenset({"only first"}),
    ),
)
