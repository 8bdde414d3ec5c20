"""Signs of life on standard output while something long runs that is no training."""

CONFIG = """\
command = train:test
progressTracing = true
modelPath = m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 1:2 ; trainingCriterion = CrossEntropyWithSoftmax ; evalCriterion = ErrorPrediction ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 50 ; learningRatesPerMB = 0.1 ]
]
test = [ action = test ; minibatchSize = 1 ]
reader = [ readerType = CNTKTextFormatReader ; file = train.ctf ; randomize = false
    input = [ features = [ dim = 1 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
"""  # noqa: E501


def test_every_hundred_minibatches(cntkpy) -> None:
    data = "".join(f"|features {k % 7} |labels {k % 2} {1 - k % 2}\n" for k in range(250))
    got = cntkpy("configFile=main.cntk", files={"main.cntk": CONFIG, "train.ctf": data})
    assert got.code == 0, got.err
    lines = got.out.splitlines()
    assert lines[0] == "PROGRESS: 100.00%"
    assert lines[1].startswith("EVALERR: ")
    assert lines[2:] == ["PROGRESS: 0.00%"] * 2
