"""Networks of commands that `command` does not list: what is wrong with them by themselves is a warning."""

import pytest
from small_training import TRAIN

NETWORK = """\
other = [
    action = train
    modelPath = n
    NDLNetworkBuilder = [ run = net ]
    net = [
        features = Input(2)
        labels = Input(2)
        W = Parameter(2, 2)
        z = Times(W, features)
        ce = SquareError(labels, z)
        FeatureNodes = (features)
        LabelNodes = (labels)
        CriterionNodes = (ce)
    ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""
DATA = {"train.ctf": "|features 1 0 |labels 1 0\n"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("Times(W, features)", "Times(W, feature)", "could not be resolved: 'feature'"),
        ("Times(W, features)", "Tims(W, features)", "'Tims'"),
        ("Times(W, features)", "Times(W)", "Times"),
        ("Parameter(2, 2)", "Parameter(2, 3)", "Times"),
        ("features = [ dim = 2", "features = [ dim = 3", "the stream has 3"),
        ("[ features = [ dim", "[ feature = [ dim", "no stream for the input 'features'"),
    ],
)
def test_a_mistake_in_a_command_that_is_not_listed(old: str, new: str, told: str, cntkpy) -> None:
    """It is the error of the command where that is asked for."""
    text = TRAIN + NETWORK.replace(old, new, 1)
    got = cntkpy("check", "m.cntk", files={"m.cntk": text, **DATA})
    warnings = [line for line in got.out.splitlines() if ": warning: " in line]
    assert warnings and told in warnings[0]
    assert ": error: " not in got.out
    listed = cntkpy("check", "m.cntk", "command=other", files={"m.cntk": text, **DATA})
    errors = [line for line in listed.out.splitlines() if ": error: " in line]
    assert errors[0] == warnings[0].replace(": warning: ", ": error: ")


@pytest.mark.parametrize("lost", ["", "    modelPath = n\n", "        CriterionNodes = (ce)\n"])
def test_what_another_command_line_may_mend(lost: str, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", files={"m.cntk": TRAIN + NETWORK.replace(lost, "", 1), **DATA})
    assert got.out == "no problems in 1 configuration\n"


@pytest.mark.parametrize(("top", "told"), [(2, False), (3, True), (5, True)])
def test_a_top_n_of_all_classes(top: int, told: bool, cntkpy) -> None:
    """W13: the error is 0 whatever the network computes."""
    text = (
        "command = train\nmodelPath = m\ntrain = [ action = train\n BrainScriptNetworkBuilder = {\n"
        "  features = Input{2}; labels = Input{3}; z = DenseLayer{3} (features)\n"
        f"  ce = CrossEntropyWithSoftmax (labels, z); e = ClassificationError (labels, z, topN={top})\n"
        "  criterionNodes = (ce); evaluationNodes = (e) }\n"
        " SGD = [ maxEpochs = 1; minibatchSize = 2; learningRatesPerSample = 0.1 ]\n"
        " reader = [ readerType = CNTKTextFormatReader; file = d\n"
        "  input = [ features = [ dim = 2; format = dense ]; labels = [ dim = 3; format = dense ] ] ] ]\n"
    )
    got = cntkpy("check", "a.cntk", files={"a.cntk": text, "d": "|features 1 2 |labels 0 0 1\n"})
    assert (f"ClassificationError is always 0: topN is {top}, and there are 3 classes" in got.out) == told
    assert got.code == int(told)
