"""A `$` that was lost: half a variable is told, and so is the name of one in place of its text."""

import pytest

CONFIG = """\
command = train
Dim = 2
Out = models
train = [
    action = train
    modelPath = "$Out$/m"
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = $Dim$ ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""
NET = "net = [\n x = InputValue(2)\n z = Sigmoid(x)\n c = SquareError(x, z, tag=criterion)\n]\n"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("$Out$/m", "Out$/m", "m.cntk:6:18: warning: 'Out$' is ordinary text, no variable: it has one $ - write $Out$"),
        ("$Out$/m", "$out/m", "m.cntk:6:18: warning: '$out' is ordinary text, no variable: it has one $ - write $out$"),
        ("$Out$/m", "${Out}/m", "m.cntk:6:18: warning: '${Out}' is ordinary text, no variable: it has one $"),
        ("$Out$/m", "$(Out)/m", "m.cntk:6:18: warning: '$(Out)' is ordinary text, no variable: it has one $"),
        (
            "$Out$/m",
            "Out/m",
            "m.cntk:6:18: warning: m.cntk:train:modelPath: 'Out' is ordinary text, no variable - did you",
        ),
        ("$Out$/m", "x/Out/m", "m.cntk:6:20: warning: m.cntk:train:modelPath: 'Out' is ordinary text, no variable"),
        (
            "$Dim$",
            "Dim",
            "m.cntk:8:45: error: m.cntk:train:SGD:minibatchSize[0]: 'Dim' is not an integer - did you mean $Dim$?",
        ),
        (
            "2:2",
            "dim:2",
            "m.cntk:7:43: error: m.cntk:train:SimpleNetworkBuilder:layerSizes[0]: 'dim' is not an integer - did",
        ),
    ],
)
def test_a_lost_dollar(old: str, new: str, told: str, cntkpy) -> None:
    files = {"m.cntk": CONFIG.replace(old, new, 1), "data.ctf": "|features 1 0 |labels 1 0\n"}
    lines = cntkpy("check", "m.cntk", files=files).out.splitlines()
    assert [line for line in lines if line.startswith(told)], lines


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (NET.replace("(2)", "(Dim)"), "'Dim' must be a number or a constant - did you mean $Dim$?"),
        (NET.replace("Sigmoid(x)", "Out(x)"), "undefined function or macro 'Out' in 'Out(x)' - did you mean $Out$?"),
    ],
)
def test_networks(text: str, told: str, cntkpy) -> None:
    builder = CONFIG[CONFIG.index("Simple") : CONFIG.index("    SGD")]
    config = CONFIG.replace(builder, "NDLNetworkBuilder = [ run = net ]\n") + text
    assert told in cntkpy("check", "m.cntk", files={"m.cntk": config}).out


@pytest.mark.parametrize(
    "word",
    [
        "train/modelPath=Out/m",  # the folder is there
        "train/modelPath=a$b/m",
        "train/nodeNameRegex=Dim$",
    ],
)
def test_what_is_no_mistake(word: str, cntkpy) -> None:
    files = {"m.cntk": CONFIG, "Out/there": "", "data.ctf": "|features 1 0 |labels 1 0\n"}
    assert "[CK038]" not in cntkpy("check", "m.cntk", word, files=files).out
