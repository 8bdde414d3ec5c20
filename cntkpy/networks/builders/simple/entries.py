"""The entry of SimpleNetworkBuilder."""

from __future__ import annotations

from cntkpy.cntk_config.entry import Entry

SIMPLE = Entry(
    "builder",
    ("SimpleNetworkBuilder",),
    help="The sizes of the layers of a network.",
    parameters="cntkpy.networks.builders.simple.parameters:SimpleNetworkBuilder",
    factory="cntkpy.networks.builders.simple.front_end:build_simple",
    check="cntkpy.networks.builders.simple.check:check_simple",
    sections=("SimpleNetworkBuilder",),
    example="""\
SimpleNetworkBuilder = [
    layerSizes = 2:50:2
    trainingCriterion = "CrossEntropyWithSoftmax"
    evalCriterion = "ClassificationError"
]""",
)
