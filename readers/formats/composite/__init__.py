"""Several deserializers joined by sequence key: one order, one packing."""

from cntk_config.entry import Entry

ENTRIES = (
    Entry(
        "reader",
        ("CompositeDataReader",),
        factory="readers.formats.composite.reader:create_composite_reader",
        parameters="readers.formats.composite.parameters:CompositeParameters",
        traits=frozenset({"varying slots"}),
    ),
)
