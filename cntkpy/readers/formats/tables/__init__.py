"""Tables: Parquet, Arrow and CSV files, whose columns become streams."""

from cntkpy.cntk_config.entry import Entry

_PARAMETERS = "cntkpy.readers.formats.tables.parameters"
_EXAMPLE = (
    "deserializers = ([ type = {name} ; file = {file} ; input = [ x = [ dim = 3 ; columns = a:b:c ] ; "
    "y = [ dim = 2 ; format = sparse ] ] ])"
)


def _entry(name: str, ending: str) -> Entry:
    """Return the deserializer of one kind of files."""
    kind = f"{name}Deserializer"
    return Entry(
        "deserializer",
        (kind,),
        factory=f"{_PARAMETERS}:create_{name.lower()}",
        parameters=f"{_PARAMETERS}:{name}Parameters",
        example=_EXAMPLE.format(name=kind, file=f"train.{ending}"),
    )


ENTRIES = (_entry("Parquet", "parquet"), _entry("Arrow", "arrow"), _entry("Csv", "csv"))
