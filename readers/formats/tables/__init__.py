"""Tables: Parquet, Arrow and CSV files, whose columns become streams."""

from cntk_config.entry import Entry

_PARAMETERS = "readers.formats.tables.parameters"
_EXAMPLE = (
    "deserializers = ([ type = {name} ; file = {file} ; input = [ x = [ dim = 3 ; columns = a:b:c ] ; "
    "y = [ dim = 2 ; format = sparse ] ] ])"
)
ENTRIES = (
    Entry(
        "deserializer",
        ("ParquetDeserializer",),
        factory=f"{_PARAMETERS}:create_parquet",
        parameters=f"{_PARAMETERS}:ParquetParameters",
        example=_EXAMPLE.format(name="ParquetDeserializer", file="train.parquet"),
    ),
    Entry(
        "deserializer",
        ("ArrowDeserializer",),
        factory=f"{_PARAMETERS}:create_arrow",
        parameters=f"{_PARAMETERS}:ArrowParameters",
        example=_EXAMPLE.format(name="ArrowDeserializer", file="train.arrow"),
    ),
    Entry(
        "deserializer",
        ("CsvDeserializer",),
        factory=f"{_PARAMETERS}:create_csv",
        parameters=f"{_PARAMETERS}:CsvParameters",
        example=_EXAMPLE.format(name="CsvDeserializer", file="train.csv"),
    ),
)
