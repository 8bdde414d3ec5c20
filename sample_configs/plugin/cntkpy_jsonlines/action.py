"""`action = countClasses`: how often every class occurs in the data of any reader."""

import logging

import numpy as np

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.declare import SECTION, TEXT, Declared, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.context.run_context import RunContext
from cntkpy.readers import create_reader

log = logging.getLogger("cntkpy.commands")


class CountClassesParameters(Declared):
    """`action=countClasses`: counts the classes in a stream of one-hot vectors."""

    reader = Parameter("reader", SECTION, help="The data.")
    stream = Parameter("stream", TEXT, default="labels", help="The stream of classes.")


def count_classes(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section; cntkpy calls this for `action = countClasses`."""
    p = CountClassesParameters(section)
    reader, stream = create_reader(p.reader, context.precision), str(p.stream)
    known = [one.name for one in reader.streams]
    if stream not in known:
        raise p.error("stream", f"the reader has no stream '{stream}'", f"it has {', '.join(known)}")
    try:
        reader.start_minibatch_loop(1024, epoch=0)
        counts = 0
        while (minibatch := reader.get_minibatch()) is not None:
            counts = counts + np.asarray(minibatch.matrix(stream).sum(axis=1)).reshape(-1)
        names = reader.get_label_mapping(stream)
        for number, count in enumerate(np.atleast_1d(counts).tolist()):
            log.info("%s: %d", names.get(number, number), count)
    finally:
        reader.close()


ENTRY = Entry(
    "action",
    ("countClasses",),
    parameters="cntkpy_jsonlines.action:CountClassesParameters",
    factory="cntkpy_jsonlines.action:count_classes",
)
"""What the entry point of the package names, so that `cntkpy check` knows the parameters as well."""
