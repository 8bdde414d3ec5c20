"""Nodes that began in BrainScript, in the network description language and in our model files."""

from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.graph.initialize import SeedCounter

CONFIG = """
NDLNetworkBuilder = [ run = net ]
net = [
    x = ImageInput(8, 8, 1, imageLayout=cudnn, tag=feature)
    K = Parameter(2, 9)
    y = Convolution(K, x, {3, 3, 1}, mapCount=2, autoPadding=false)
    found = Crop(x, y)
    given = Crop(x, y, 1, 2)
    common = Crop(x, y, x, x)
    named = Crop(x, y, offsetX=2, offsetY=1)
    v = Input(4, tag=feature)
    W = Parameter(0, 0)
    units = OptimizedRNNStack(W, v, hiddenDims=3, numLayers=2, bidirectional=true, recurrentOp=gru)
    shown = Trace(units, say="states", logFirst=2, format="type=category")
    trains = EnvironmentInput(isTraining)
    weights = Constant(1, rows=5)
    drawn = RandomSample(weights, 3, true)
    expected = RandomSampleInclusionFrequency(weights, 3, false)
    average = EpochAccumulator(v, tag=eval)
    ce = SquareError(v, v, tag=criterion)
    out = Plus(shown, trains, tag=output)
]
"""


def test_their_arguments_shapes_and_files(tmp_path):
    network = build_network(parse(CONFIG), "float", SeedCounter())
    shapes = {
        name: network.find(name).shape for name in ("found", "W", "units", "trains", "drawn", "expected", "average")
    }
    assert shapes == {
        "found": (6, 6, 1),
        "W": (3, 120),
        "units": (6,),
        "trains": (1,),
        "drawn": (5, 3),
        "expected": (5, 1),
        "average": (4,),
    }
    offsets = {
        name: (network.find(name).options["offsetX"], network.find(name).options["offsetY"])
        for name in ("found", "given", "common", "named")
    }
    assert offsets == {"found": (None, None), "given": (1, 2), "common": (None, None), "named": (2, 1)}
    save_model(tmp_path / "m.model", network)
    loaded = load_model(tmp_path / "m.model")
    for node in network.nodes.values():
        same = loaded.find(node.name)
        assert (same.operation, same.options, same.shape) == (node.operation, node.options, node.shape)
        assert [one.name for one in same.connected] == [one.name for one in node.connected]
