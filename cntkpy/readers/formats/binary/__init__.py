"""CNTK's binary files (BinaryReader, BinaryWriter)."""

from cntkpy.cntk_config.entry import Entry

_HERE = "cntkpy.readers.formats.binary"
ENTRIES = (
    Entry(
        "reader",
        ("BinaryReader",),
        factory=f"{_HERE}.reader:create_binary_reader",
        parameters=f"{_HERE}.parameters:BinaryReaderParameters",
    ),
    *(
        Entry("reader", (name,), unsupported="write the data as text and read them with CNTKTextFormatReader")
        for name in ("LibSVMBinaryReader", "DSSMReader", "SparsePCReader")
    ),
    Entry(
        "writer",
        ("BinaryWriter",),
        aliases=("BinaryReader",),
        factory=f"{_HERE}.writer:create_binary_writer",
        parameters=f"{_HERE}.parameters:BinaryWriterParameters",
    ),
)
"""In CNTK a writer has the name of the reader of its package as well."""
