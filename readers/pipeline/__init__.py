"""The stages of reading: order, load, transform, pack, minibatch."""

from cntk_config.entry import Entry

ENTRIES = (
    Entry(
        "reader", ("CompositeDataReader",), factory="readers.pipeline.composite:create_composite_reader",
        parameters="readers.parameters:CompositeParameters", traits=frozenset({"varying slots"}),
    ),
)  # fmt: skip
