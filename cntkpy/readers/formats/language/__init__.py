"""Sentences for language models and tagging (SequenceReader, LUSequenceReader)."""

from cntkpy.cntk_config.entry import Entry

_HERE = "cntkpy.readers.formats.language"
_PARAMETERS = f"{_HERE}.parameters"
ENTRIES = (
    Entry(
        "reader",
        ("SequenceReader", "LMSequenceReader", "BatchSequenceReader"),
        factory=f"{_HERE}.sentences:create_sequence_reader",
        parameters=f"{_PARAMETERS}:SequenceReaderParameters",
    ),
    Entry("section", ("features",), parameters=f"{_PARAMETERS}:SequenceFeatureParameters", within=("SequenceReader",)),
    Entry("section", ("labels",), parameters=f"{_PARAMETERS}:SequenceLabelParameters", within=("SequenceReader",)),
    Entry(
        "reader",
        ("LUSequenceReader", "BatchLUSequenceReader", "MultiIOBatchLUSequenceReader"),
        factory=f"{_HERE}.columns:create_lu_sequence_reader",
        parameters=f"{_PARAMETERS}:LUSequenceReaderParameters",
    ),
    Entry("section", ("features",), parameters=f"{_PARAMETERS}:LUFeatureParameters", within=("LUSequenceReader",)),
    Entry("section", ("labels",), parameters=f"{_PARAMETERS}:LULabelParameters", within=("LUSequenceReader",)),
    Entry(
        "writer",
        ("LMSequenceWriter",),
        aliases=("LMSequenceReader", "SequenceWriter"),
        factory=f"{_HERE}.writer:create_lm_sequence_writer",
        parameters=f"{_PARAMETERS}:SequenceWriterParameters",
    ),
    Entry(
        "writer",
        ("LUSequenceWriter",),
        aliases=("LUSequenceReader",),
        factory=f"{_HERE}.writer:create_lu_sequence_writer",
        parameters=f"{_PARAMETERS}:SequenceWriterParameters",
    ),
    Entry("section", ("node",), parameters=f"{_PARAMETERS}:SequenceOutputParameters", within=("LMSequenceWriter",)),
)
