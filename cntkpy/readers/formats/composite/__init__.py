"""Several deserializers joined by sequence key: one order, one packing."""

from cntkpy.cntk_config.entry import Entry

ENTRIES = (
    Entry(
        "reader",
        ("CompositeDataReader",),
        factory="cntkpy.readers.formats.composite.reader:create_composite_reader",
        parameters="cntkpy.readers.formats.composite.parameters:CompositeParameters",
        traits=frozenset({"varying slots"}),
    ),
)
