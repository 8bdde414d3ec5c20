"""The configuration of a small training, which tests change."""

TRAIN = """\
command = train
modelPath = m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""
