"""Kaldi: archives, script files, feature transforms, alignments; the readers, deserializers and writer of these."""

from cntkpy.cntk_config.entry import Entry

_HERE = "cntkpy.readers.formats.kaldi"
_HTK = "cntkpy.readers.formats.htk"
ENTRIES = (
    Entry(
        "reader", ("Kaldi2Reader",), factory=f"{_HERE}.reader:create_kaldi_reader",
        parameters=f"{_HERE}.parameters:KaldiReaderParameters",
    ),
    Entry(
        "reader", ("KaldiReader",), factory=f"{_HTK}.reader:create_htk_reader",
        parameters=f"{_HTK}.sections:HTKReaderParameters",
    ),
    Entry("section", ("features",), parameters=f"{_HERE}.parameters:KaldiFeatureParameters", within=("Kaldi2Reader",)),
    Entry("section", ("labels",), parameters=f"{_HERE}.parameters:KaldiLabelParameters", within=("Kaldi2Reader",)),
    Entry(
        "deserializer", ("KaldiFeatureDeserializer",), factory=f"{_HERE}.deserializers:create_features",
        parameters=f"{_HERE}.parameters:KaldiFeatureDeserializerParameters", traits=frozenset({"named sequences"}),
    ),
    Entry(
        "deserializer", ("KaldiLabelDeserializer",), factory=f"{_HERE}.deserializers:create_labels",
        parameters=f"{_HERE}.parameters:KaldiLabelDeserializerParameters",
        traits=frozenset({"named sequences", "never first"}),
    ),
    Entry(
        "writer", ("Kaldi2Writer",), aliases=("Kaldi2Reader", "KaldiWriter", "KaldiReader"),
        factory=f"{_HERE}.writer:create_kaldi_writer", parameters=f"{_HERE}.writer_parameters:KaldiWriterParameters",
    ),
    Entry(
        "section", ("node",), parameters=f"{_HERE}.writer_parameters:KaldiOutputParameters", within=("Kaldi2Writer",)
    ),
)  # fmt: skip
