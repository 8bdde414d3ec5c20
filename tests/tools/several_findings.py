"""A configuration with several findings for tests of reports; names and texts have characters beyond ASCII."""

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
