"""The kinds of trainings that are killed, and their data."""

from __future__ import annotations

from pathlib import Path

CONFIG = """\
command = train
precision = float
deviceId = cpu
train = [ action = train ; modelPath = $RunDir$/m ; traceLevel = 0
    {network}
    SGD = [ maxEpochs = 5 ; epochSize = 0 ; minibatchSize = 16 ; checkpointEveryMinutes = 0.002
        momentumPerMB = 0.9 ; {sgd} ]
    reader = [ file = data.ctf ; randomize = true ; chunkSizeInBytes = 4000 ; {reader}
        input = [ features = [ dim = 3 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""
RATE = "learningRatesPerMB = 0.2*3:0.05"
SIMPLE = (
    "SimpleNetworkBuilder = [ layerSizes = 3:8:2 ; layerTypes = Sigmoid ; trainingCriterion = CrossEntropyWithSoftmax"
    " ; evalCriterion = ErrorPrediction ; {more} ]"
)
NDL = """NDLNetworkBuilder = [ run = net ]
    net = [
        features = Input(3)
        labels = Input(2)
        {body}
        ce = CrossEntropyWithSoftmax(labels, z)
        FeatureNodes = (features)
        LabelNodes = (labels)
        CriterionNodes = (ce)
        OutputNodes = (z)
    ]"""
RECURRENT = """W = Parameter(6, 3)
        R = Parameter(6, 6)
        V = Parameter(2, 6)
        past = PastValue(6, 1, h, timeStep=1)
        h = Tanh(Plus(Times(W, features), Times(R, past)))
        z = Times(V, h)"""
NORMALISED = """W = Parameter(6, 3)
        gain = Parameter(6, 1, init=fixedValue, value=1)
        bias = Parameter(6, 1, init=fixedValue, value=0)
        mean = Parameter(6, 1, init=fixedValue, value=0, learningRateMultiplier=0)
        spread = Parameter(6, 1, init=fixedValue, value=0, learningRateMultiplier=0)
        count = Parameter(1, 1, init=fixedValue, value=0, learningRateMultiplier=0)
        V = Parameter(2, 6)
        h = Sigmoid(BatchNormalization(Times(W, features), gain, bias, mean, spread, count, spatial=false))
        z = Times(V, h)"""

KINDS = {
    "plain": (SIMPLE.format(more=""), RATE, ""),
    "dropout": (SIMPLE.format(more="addDropoutNodes = true"), RATE + " ; dropoutRate = 0.3", ""),
    "adaptive": (SIMPLE.format(more=""), RATE + " ; gradUpdateType = FSAdaGrad", ""),
    "recurrent": (NDL.format(body=RECURRENT), RATE + " ; truncated = true", "truncated = true"),
    "normalised": (NDL.format(body=NORMALISED), RATE, ""),
    "search": (
        SIMPLE.format(more=""),
        "AutoAdjust = [ autoAdjustLR = searchBeforeEpoch ; numMiniBatch4LRSearch = 10 ; numPrevLearnRates = 2 ]",
        "",
    ),
}
"""Name: its network, and what its SGD and reader sections have besides."""


def prepare(folder: Path) -> None:
    """Write data and configurations."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(3)
    with (folder / "data.ctf").open("w") as file:
        for number in range(400):
            for _ in range(1 + number % 5):
                x = numbers.normal(size=3)
                label = int(x.sum() + 0.3 * numbers.normal() > 0)
                file.write(f"{number} |features {' '.join(f'{v:.3f}' for v in x)} |labels {1 - label} {label}\n")
    for kind, (network, sgd, reader) in KINDS.items():
        (folder / f"{kind}.cntk").write_text(CONFIG.format(network=network, sgd=sgd, reader=reader))
