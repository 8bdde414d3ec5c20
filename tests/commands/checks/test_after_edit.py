"""Networks of trainings that come after an edit: looked at, unless the edit may write the model of the training."""

import pytest

CONFIG = """\
command = edit:train
SGD = [ maxEpochs = 1 ; learningRatesPerSample = 0.1 ]
reader = [ file = d.ctf ; input = [ x = [ dim = 2 ; format = dense ] ; l = [ dim = 2 ; format = dense ] ] ]
edit = [ EDIT ]
train = [ action = train ; modelPath = new.dnn
    BrainScriptNetworkBuilder = [
        x = Input {2} ; l = Input {2}
        z = ParameterTensor {(2:3)} * x
        ce = SquareError (l, z, tag='criterion')
    ]
]
"""
SCRIPT = "action = edit ; editPath = e.mel"
WRONG = "m.cntk:8:37: error: Times"


@pytest.mark.parametrize(
    ("edit", "script", "found"),
    [
        (SCRIPT, "m = LoadModel(old.dnn)\nSaveModel(m, other.dnn)\n", True),
        (SCRIPT, "m = LoadModel(old.dnn)\nSaveModel(m, new.dnn.0)\n", False),
        (SCRIPT, "LoadModelWithName(m, old.dnn)\nSaveDefaultModel(./new.dnn)\n", False),
        (SCRIPT + " ; makeMode = false", "m = LoadModel(old.dnn)\nSaveModel(m, new.dnn)\n", False),
        ("action = SVD ; modelPath = old.dnn ; outputmodelPath = other.dnn ; KeepRatio = 0.5", "", True),
        ("action = SVD ; modelPath = old.dnn ; outputmodelPath = new.dnn.0 ; KeepRatio = 0.5", "", False),
    ],
)
def test_a_training_after_an_edit(edit: str, script: str, found: bool, cntkpy) -> None:
    files = {"m.cntk": CONFIG.replace("EDIT", edit), "e.mel": script, "d.ctf": "|x 1 0 |l 1 0\n"}
    assert (WRONG in cntkpy("check", "m.cntk", files=files).out) == found


def test_a_training_that_begins_anew(cntkpy) -> None:
    """With makeMode=false it builds its network, whatever an edit writes."""
    script = "m = LoadModel(old.dnn)\nSaveModel(m, new.dnn)\n"
    text = CONFIG.replace("EDIT", SCRIPT).replace("modelPath = new.dnn", "modelPath = new.dnn ; makeMode = false")
    files = {"m.cntk": text, "e.mel": script, "d.ctf": "|x 1 0 |l 1 0\n"}
    assert WRONG in cntkpy("check", "m.cntk", files=files).out
