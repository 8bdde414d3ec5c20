"""Actions of CNTK that cntkpy will not have, with what to use instead."""

from cntkpy.cntk_config.entry import Entry

ENTRIES = (
    Entry(
        "action",
        ("convertdbn",),
        unsupported="describe the network with a builder and start its parameters with initFromFilePath",
    ),
    Entry("action", ("exportdbn",), unsupported="use action=dumpNode, which writes every parameter as text"),
    Entry("action", ("devtest",), unsupported="it ran internal tests of CNTK; cntkpy's own are run by pytest"),
)
