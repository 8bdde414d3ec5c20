"""CNTK's Python interface to data (`cntk.io`): minibatch sources, deserializers, values.

Everything here is offered by `readers` itself: `from cntkpy.readers import MinibatchSource`.
"""

from cntkpy.cntk_config.entry import Entry

ENTRIES = (
    Entry(
        "reader",
        ("UserMinibatchSource",),
        factory="cntkpy.readers.data_api.source_reader:create_user_reader",
        parameters="cntkpy.readers.parameters:UserReaderParameters",
        open=True,
        traits=frozenset({"varying slots"}),
    ),
)
