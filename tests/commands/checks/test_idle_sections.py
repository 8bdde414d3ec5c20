"""Warnings of sections and criteria that do nothing as they stand, by `check` and at the start of a run."""

from __future__ import annotations

import pytest

TOP = """command = train
modelPath = m
SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
"""
TEXT = "reader = [ file = d.ctf ; input = [ features = [dim=2;format=dense] ; labels = [dim=%d;format=dense] ] ]\n"
IMAGES = """train = [ action = train
 SimpleNetworkBuilder = [ layerSizes = 12:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
 reader = [ %s ] ]
"""
NEW = """deserializers = ([ type = ImageDeserializer ; file = d.map ; input = [ labels = [labelDim=2]
 features = [ transforms = ([type=Scale;width=2;height=2;channels=3]:%s) ] ] ])"""
OLD = """readerType = ImageReader ; file = d.map ; labels = [labelDim=2]
 features = [ width=2 ; height=2 ; channels=3 ; %s ]"""
ADAPT = TOP.replace("SGD = [ ", "SGD = [ %s ; ") + (
    "train = [ action = %s ; origModelFileName = old ; %s ; reader = [ file = d.ctf ; input = [ x = [dim=2] ] ] ]\n"
)


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (NEW % "[type=Mean]", "subtracts nothing: there is no meanFile"),
        (NEW % "[type=Mean;meanFile=m.xml]", ""),
        (NEW % "[type=Color]", "every radius is 0"),
        (NEW % "[type=Color;contrastRadius=0:0.5]", ""),
        (NEW % "[type=Intensity]", "add intensityFile"),
        (NEW % "[type=Intensity;intensityStdDev=1]", "add intensityFile"),
        (NEW % "[type=Intensity;intensityFile=i.xml]", "write intensityStdDev"),
        (NEW % "[type=Intensity;intensityFile=i.xml;intensityStdDev=1]", ""),
        (OLD % "cropType=random", ""),
        (OLD % "intensityStdDev=1", "add intensityFile"),
        (OLD % "intensityFile=i.xml", "write intensityStdDev"),
        (OLD % "intensityStdDev=0", ""),
    ],
)
def test_transforms_that_change_nothing(cntkpy, reader: str, message: str) -> None:
    """S6."""
    got = cntkpy("check", "--select", "CK016", "--quiet", "main.cntk", files={"main.cntk": TOP + IMAGES % reader})
    assert (got.code, got.out.count("warning:")) == (bool(message), bool(message)), got.out
    assert message in got.out


@pytest.mark.parametrize(
    ("sgd", "action", "more", "message"),
    [
        ("traceLevel=0", "adapt", "refNodeName=p", "adaptationRegType is none"),
        ("adaptationRegType=KL", "adapt", "refNodeName=p", "adaptationRegWeight is 0"),
        ("adaptationRegType=KL;adaptationRegWeight=0.5", "adapt", "refNodeName=p", ""),
        ("traceLevel=0", "adapt", "traceLevel=0", ""),
        ("adaptationRegType=KL;adaptationRegWeight=0.5", "train", "initialModel=q", "action=train does not keep"),
    ],
)
def test_adaptation_without_effect(cntkpy, sgd: str, action: str, more: str, message: str) -> None:
    """S7."""
    got = cntkpy("check", "--select", "CK016", "main.cntk", files={"main.cntk": ADAPT % (sgd, action, more)})
    assert ("warning:" in got.out) == bool(message) and message in got.out, got.out


NETWORKS = {
    "softmax over one class": (1, "z = LinearLayer{1}(features)", "CrossEntropyWithSoftmax(labels, z)"),
    "cross entropy over one class": (1, "z = Sigmoid(LinearLayer{1}(features))", "CrossEntropy(labels, z)"),
    "a softmax of one element": (1, "z = Softmax(LinearLayer{1}(features))", "SquareError(labels, z)"),
    "a second softmax": (2, "z = Softmax(LinearLayer{2}(features))", "CrossEntropyWithSoftmax(labels, z)"),
    "a logistic criterion": (1, "z = Sigmoid(LinearLayer{1}(features))", "Logistic(labels, z)"),
    "two classes": (2, "z = LinearLayer{2}(features)", "CrossEntropyWithSoftmax(labels, z)"),
    "probabilities": (2, "z = Softmax(LinearLayer{2}(features))", "CrossEntropy(labels, z)"),
    "a softmax beside the criterion": (
        1,
        "z = LinearLayer{1}(features) ; p = Softmax(z) ; outputNodes = (p)",
        "SquareError(labels, z)",
    ),
}
WARNINGS = {
    "softmax over one class": "CrossEntropyWithSoftmax is over one class",
    "cross entropy over one class": "CrossEntropy is over one class",
    "a softmax of one element": "Softmax is over one class, so it is always 1",
    "a second softmax": "write CrossEntropyWithSoftmax (labels, ",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_criteria_that_teach_nothing(cntkpy, name: str) -> None:
    """W13, W15."""
    classes, network, criterion = NETWORKS[name]
    inputs = f"features = Input{{2}} ; labels = Input{{{classes}}}"
    builder = f"BrainScriptNetworkBuilder = {{ {inputs} ; {network} ; c = {criterion} ; criterionNodes = (c) }}"
    text = TOP + TEXT % classes + f"train = [ action = train\n {builder} ]\n"
    got = cntkpy("check", "--select", "CK065", "--quiet", "main.cntk", files={"main.cntk": text})
    assert got.out.count("warning:") == (name in WARNINGS) and WARNINGS.get(name, "") in got.out, got.out


@pytest.mark.parametrize("criterion", ["CrossEntropyWithSoftmax", "SquareError", "Logistic"])
def test_simple_network_of_one_class(cntkpy, criterion: str) -> None:
    """The same at the start of a run, which goes on."""
    criteria = f"trainingCriterion = {criterion} ; evalCriterion = ErrorPrediction"
    train = f"train = [ action = train ; SimpleNetworkBuilder = [ layerSizes = 2:1 ; {criteria} ] ]\n"
    got = cntkpy(
        "configFile=main.cntk", files={"main.cntk": TOP + TEXT % 1 + train, "d.ctf": "|features 1 2 |labels 1\n"}
    )
    assert got.code == 0
    assert (f"{criterion} is over one class" in got.err) == criterion.startswith("CrossEntropy")
    assert "ClassificationError is over one class" in got.err


SPEECH = (
    TOP
    + """train = [ action = train
 SimpleNetworkBuilder = [ layerSizes = 6:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
 reader = [ %s ] ]
"""
)
OF_READER = "readerType = HTKMLFReader ; features = [scpFile=f.scp;dim=6;%s] ; labels = [mlfFile=l.mlf;labelDim=2] ; %s"
OF_DESERIALIZER = """deserializers = ([ type = HTKFeatureDeserializer
 input = [ features = [scpFile=f.scp;dim=6;%s] ] ])"""


@pytest.mark.parametrize(
    ("reader", "warned"),
    [
        (OF_READER % ("addEnergy=3", "readMethod=rollingWindow"), False),
        (OF_READER % ("addEnergy=3", "readMethod=blockRandomize"), True),
        (OF_READER % ("addEnergy=3", "traceLevel=0"), True),
        (OF_READER % ("addEnergy=0", "traceLevel=0"), False),
        (OF_DESERIALIZER % "addEnergy=3", True),
        (OF_DESERIALIZER % "addEnergy=0", False),
    ],
)
def test_zeros_that_are_not_added(cntkpy, reader: str, warned: bool) -> None:
    """S11."""
    got = cntkpy("check", "--select", "CK016", "main.cntk", files={"main.cntk": SPEECH % reader})
    assert ("addEnergy of 'features' has no effect" in got.out) == warned, got.out
