"""A repository of twelve compositions: four environments and three models."""

BASE = """\
command = train:test
dim = 20
classes = 4
train = [
    action = train
    modelPath = "$RunDir$/model.dnn"
    SGD = [ epochSize = 0 ; minibatchSize = 64 ; learningRatesPerMB = 0.1 ; maxEpochs = 3 ]
]
test = [ action = test ; modelPath = "$RunDir$/model.dnn" ]
reader = [
    readerType = CNTKTextFormatReader
    file = "$DataDir$/train.ctf"
    input = [ features = [ dim = $dim$ ; format = dense ] ; labels = [ dim = $classes$ ; format = dense ] ]
]
"""
MODEL = """\
hidden = %d
train = [ BrainScriptNetworkBuilder = {
    features = Input {$dim$}
    labels = Input {$classes$}
    h1 = DenseLayer {$hidden$, activation = ReLU} (features)
    h2 = DenseLayer {$hidden$, activation = ReLU} (h1)
    z = LinearLayer {$classes$} (h2)
    ce = CrossEntropyWithSoftmax (labels, z)
    err = ClassificationError (labels, z)
    featureNodes = (features)
    labelNodes = (labels)
    criterionNodes = (ce)
    evaluationNodes = (err)
    outputNodes = (z)
} ]
"""
ENVIRONMENT = """\
env = %s
RunDir = "run/%s"
DataDir = "data"
train = [ SGD = [ maxEpochs = 5 ] ]
"""
PROJECT = """\
ignore = ["CK060"]

[[run]]
files = ["base.cntk"]
each = ["env/*.cntk", "models/*.cntk"]

[types]
env = "dev|test|stage|prod"
train.SGD.maxEpochs = { min = 1, max = 200 }
"""


def repository() -> dict[str, str]:
    """Return the files of the repository, by their names."""
    files = {"cntkpy.toml": PROJECT, "base.cntk": BASE}
    files |= {f"env/{name}.cntk": ENVIRONMENT % (name, name) for name in ("dev", "test", "stage", "prod")}
    files |= {f"models/{name}.cntk": MODEL % size for name, size in (("small", 8), ("medium", 64), ("large", 256))}
    return files
