"""Speech: HTK feature files and archives, MLF labels, the readers and deserializers of the two, the writer."""

from cntkpy.cntk_config.entry import Entry

_HERE = "cntkpy.readers.formats.htk"
ENTRIES = (
    Entry(
        "reader", ("HTKMLFReader",), factory=f"{_HERE}.reader:create_htk_reader",
        parameters=f"{_HERE}.sections:HTKReaderParameters",
    ),
    Entry(
        "reader", ("HTKDeserializers",), aliases=("ExperimentalHTKMLFReader",),
        factory=f"{_HERE}.reader:create_new_htk_reader", parameters=f"{_HERE}.sections:HTKReaderParameters",
    ),
    Entry("section", ("features",), parameters=f"{_HERE}.parameters:FeatureParameters", within=("HTKMLFReader",)),
    Entry("section", ("labels",), parameters=f"{_HERE}.parameters:LabelParameters", within=("HTKMLFReader",)),
    Entry(
        "deserializer", ("HTKFeatureDeserializer",), factory=f"{_HERE}.options:create_features",
        parameters=f"{_HERE}.parameters:FeatureDeserializerParameters", traits=frozenset({"named sequences"}),
    ),
    Entry(
        "deserializer", ("HTKMLFDeserializer",), factory=f"{_HERE}.options:create_labels",
        parameters=f"{_HERE}.parameters:LabelDeserializerParameters",
        traits=frozenset({"named sequences", "never first"}),
    ),
    Entry("deserializer", ("HTKMLFBinaryDeserializer",), factory=f"{_HERE}.options:refuse_binary_labels"),
    Entry("deserializer", ("LatticeDeserializer",), factory=f"{_HERE}.options:refuse_lattices"),
    Entry(
        "writer", ("HTKMLFWriter",), aliases=("HTKMLFReader",), factory=f"{_HERE}.writer:create_htk_writer",
        parameters=f"{_HERE}.writer_parameters:HTKWriterParameters",
    ),
    Entry("section", ("node",), parameters=f"{_HERE}.writer_parameters:OutputParameters", within=("HTKMLFWriter",)),
)  # fmt: skip
