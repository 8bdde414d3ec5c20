"""A small classification for the tests of actions: data, a network, a configuration, and its arithmetic in NumPy."""

import numpy as np
from safetensors.numpy import load_file

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(40, 2)).round(3)
Y = np.eye(3)[RANDOM.integers(0, 3, 40)]
DATA = "".join(f"|x {' '.join(map(str, x))} |y {' '.join(f'{v:g}' for v in y)}\n" for x, y in zip(X, Y, strict=True))

NETWORK = """
    net = [
        x = Input(2)
        y = Input(3)
        W = Parameter(3, 2, init=uniform)
        b = Parameter(3, 1, init=fixedValue, value=0)
        t = Times(W, x)
        z = Plus(t, b)
        p = Softmax(z)
        ce = CrossEntropyWithSoftmax(y, z)
        err = ErrorPrediction(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (ce)
        EvalNodes = (err)
        OutputNodes = (z)
    ]
"""

CONFIG = f"""
command = train
precision = double
deviceId = cpu
modelPath = run/m
reader = [ readerType = CNTKTextFormatReader ; file = data.ctf ; randomize = none ; maxErrors = 1000
    input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 3 ; format = dense ] ] ]
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    {NETWORK}
    SGD = [ minibatchSize = 10 ; maxEpochs = 3 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0 ]
]
"""


def files(more: str) -> dict[str, str]:
    """The files of a test: the data, and the configuration with more sections."""
    return {"data.ctf": DATA, "m.cntk": CONFIG + more}


def model(path) -> dict[str, np.ndarray]:
    """The parameters of a model file."""
    return load_file(path)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def criterion(parameters: dict[str, np.ndarray], targets: np.ndarray = Y) -> float:
    """The average cross entropy on all data."""
    p = softmax(X @ parameters["W"].T + parameters["b"].T)
    return float(-(targets * np.log(p)).sum(axis=1).mean())


def errors(parameters: dict[str, np.ndarray]) -> float:
    """The share of samples whose largest score is another one."""
    z = X @ parameters["W"].T + parameters["b"].T
    return float((z.argmax(axis=1) != Y.argmax(axis=1)).mean())
