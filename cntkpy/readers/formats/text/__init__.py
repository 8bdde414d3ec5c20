"""CNTK text format (CTF)."""

from cntkpy.cntk_config.entry import Entry

_OPTIONS = "cntkpy.readers.formats.text.options"
ENTRIES = (
    Entry(
        "reader",
        ("CNTKTextFormatReader",),
        factory=f"{_OPTIONS}:create_text_reader",
        parameters=f"{_OPTIONS}:TextReaderParameters",
        traits=frozenset({"varying slots"}),
        example="reader = [ file = train.ctf ; input = [ features = [ dim = 2 ; format = dense ] ] ]",
    ),
    Entry(
        "section",
        ("stream",),
        parameters=f"{_OPTIONS}:StreamParameters",
        within=("CNTKTextFormatReader",),
        example="features = [ dim = 784 ; format = dense ; alias = f ]",
    ),
    Entry(
        "deserializer",
        ("CNTKTextFormatDeserializer",),
        factory=f"{_OPTIONS}:create_deserializer",
        parameters=f"{_OPTIONS}:TextFormatParameters",
    ),
)
