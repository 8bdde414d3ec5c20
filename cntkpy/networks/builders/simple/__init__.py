"""SimpleNetworkBuilder."""

from cntkpy.cntk_config.entry import Entry

ENTRY = Entry(
    "builder",
    ("SimpleNetworkBuilder",),
    parameters="cntkpy.networks.builders.simple.parameters:SimpleNetworkBuilder",
    factory="cntkpy.networks.builders.simple.front_end:build_simple",
    sections=("SimpleNetworkBuilder",),
    example="SimpleNetworkBuilder = [ layerSizes = 784:200:10 ; trainingCriterion = CrossEntropyWithSoftmax ; "
    "evalCriterion = ErrorPrediction ]",
)
