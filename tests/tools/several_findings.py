"""A configuration with several findings, in names and texts with other letters than ASCII, for tests of reports."""

MAIN = """\
command = train
a = "é😀" ; modelPaht = m
train = [
    action = train
    SGD = [ maxEpochs = 2 ; minibatchSizes = 3 ; learningRatesPerMB = 0.1 ]
    reader = [ file = "nö file.ctf" ; input = [ features = [ dim = 2 ; format = dense ]
        labels = [ dim = 3 ; format = dense ] ] ]
]
"""
