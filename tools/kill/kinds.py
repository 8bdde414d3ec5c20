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
    reader = [ randomize = true ; {reader} ]
]
"""
TEXT = """file = data.ctf ; chunkSizeInBytes = 4000 ; {more}
        input = [ features = [ dim = 3 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ]"""
OWN = "deserializers = ([ type = Numbers ; module = numbers_of_mine ; chunks = 40 ])"
MODULE = """\
import time
import numpy as np
from cntkpy.readers import StreamInformation, UserDeserializer

class Numbers(UserDeserializer):
    def __init__(self, chunks: int):
        super().__init__()
        self._chunks = chunks

    def stream_infos(self):
        return [StreamInformation("features", 0, "dense", np.float32, (3,)),
                StreamInformation("labels", 1, "dense", np.float32, (2,))]

    def num_chunks(self):
        return self._chunks

    def get_chunk(self, chunk_id):
        time.sleep(0.001)
        numbers = np.random.default_rng(chunk_id)
        x = numbers.normal(size=(30, 3)).astype(np.float32)
        label = (x.sum(axis=1) > 0).astype(np.float32)
        return {"features": x, "labels": np.stack([1 - label, label], axis=1)}
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
        average = Parameter(6, 1, init=fixedValue, value=0, learningRateMultiplier=0)
        spread = Parameter(6, 1, init=fixedValue, value=0, learningRateMultiplier=0)
        V = Parameter(2, 6)
        h = Sigmoid(BatchNormalization(Times(W, features), gain, bias, average, spread, spatial=false))
        z = Times(V, h)"""

KINDS = {
    "plain": (SIMPLE.format(more=""), RATE, TEXT.format(more="")),
    "dropout": (SIMPLE.format(more="addDropoutNodes = true"), RATE + " ; dropoutRate = 0.3", TEXT.format(more="")),
    "adaptive": (SIMPLE.format(more=""), RATE + " ; gradUpdateType = FSAdaGrad", TEXT.format(more="")),
    "recurrent": (NDL.format(body=RECURRENT), RATE + " ; truncated = true", TEXT.format(more="truncated = true")),
    "normalised": (NDL.format(body=NORMALISED), RATE, TEXT.format(more="")),
    "search": (
        SIMPLE.format(more=""),
        "AutoAdjust = [ autoAdjustLR = searchBeforeEpoch ; numMiniBatch4LRSearch = 10 ; numPrevLearnRates = 2 ]",
        TEXT.format(more=""),
    ),
    "user": (SIMPLE.format(more=""), RATE, OWN),
    "workers": (
        SIMPLE.format(more=""),
        RATE + " ; ParallelTrain = [ parallelizationMethod = DataParallelSGD ]",
        TEXT.format(more=""),
    ),
}
"""Name: its network, what its SGD section has besides, and its data."""
WORKERS = {"workers": 2}
"""Processes of the kinds that have several; all of them are killed at once."""


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
    (folder / "numbers_of_mine.py").write_text(MODULE)
    for kind, (network, sgd, reader) in KINDS.items():
        (folder / f"{kind}.cntk").write_text(CONFIG.format(network=network, sgd=sgd, reader=reader))
