"""UCI text, and its binary cache."""

from cntkpy.cntk_config.entry import Entry

_PARAMETERS = "cntkpy.readers.formats.uci.parameters"
ENTRIES = (
    Entry(
        "reader",
        ("UCIFastReader",),
        factory="cntkpy.readers.formats.uci.reader:create_uci_reader",
        parameters=f"{_PARAMETERS}:UCIReaderParameters",
        example="reader = [ readerType = UCIFastReader ; file = t.txt ; features = [ dim = 2 ; start = 1 ] ]",
    ),
    Entry("section", ("features",), parameters=f"{_PARAMETERS}:FeatureParameters", within=("UCIFastReader",)),
    Entry("section", ("labels",), parameters=f"{_PARAMETERS}:LabelParameters", within=("UCIFastReader",)),
)
