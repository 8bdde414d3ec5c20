"""Bad input: one located message and the right exit status, found by a run; `check` finds the same without running."""

import re

import pytest

GOOD = """\
command = train
modelPath = out/m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:3 ; trainingCriterion = CrossEntropyWithSoftmax ; evalCriterion = ErrorPrediction ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]
]
"""  # noqa: E501
DATA = "|features 0 1 |labels 1 0 0\n|features 1 0 |labels 0 1 0\n|features 1 1 |labels 0 0 1\n"

CONFIGURATIONS = {
    "unknown command section": ("command = train", "command = tarin", "main.cntk:1:11", "tarin"),
    "unknown action": ("action = train", "action = trainn", "main.cntk:4:14", "trainn"),
    "unknown reader": ("CNTKTextFormatReader", "CNTKTextFormatRaeder", "main.cntk:7:29", "CNTKTextFormatRaeder"),
    "wrong type": ("minibatchSize = 2", "minibatchSize = abc", "main.cntk:6:45", "abc"),
    "missing required value": ("maxEpochs = 1 ; ", "", "main.cntk:6:11", "maxEpochs"),
    "missing criterion": ("trainingCriterion = CrossEntropyWithSoftmax ;", "", "main.cntk:5:28", "trainingCriterion"),
    "missing dimension": ("[ dim = 2 ; format = dense ]", "[ format = dense ]", "main.cntk:8:30", "dim"),
    "no learning rate": (" ; learningRatesPerMB = 0.1", "", "main.cntk:6:11", "learning rate"),
    "undefined variable": ("out/m", "$RunDir$/m", "main.cntk:2:13", "RunDir"),
    "cycle": ("modelPath = out/m", "modelPath = $a$\na = $modelPath$", "main.cntk:[23]:", "modelPath"),
    "bracket never closed": ("\n]\n", "\n", "main.cntk:3:9", "never closed"),
}


@pytest.mark.parametrize("mistake", CONFIGURATIONS)
def test_a_mistake_in_the_configuration(mistake: str, cntkpy) -> None:
    old, new, place, word = CONFIGURATIONS[mistake]
    assert old in GOOD
    got = cntkpy("configFile=main.cntk", files={"main.cntk": GOOD.replace(old, new), "train.ctf": DATA})
    assert got.code == 2
    assert word in got.message
    assert re.search(rf"^  --> {place}", got.err, re.MULTILINE), got.err
    assert got.err.count("EXCEPTION occurred") == 1
    assert "Traceback" not in got.err
    checked = cntkpy("check", "main.cntk")
    assert checked.code == 2
    assert re.match(place, checked.out), checked.out
    assert checked.out.splitlines()[1:] == ["1 error in 1 configuration"]


def test_a_missing_file(cntkpy) -> None:
    got = cntkpy("configFile=gone.cntk")
    assert got.code == 2
    assert "gone.cntk" in got.message
    assert "--> <argument 1>:1:12" in got.err


DATA_MISTAKES = {
    "missing data file": (None, ["train.ctf"]),
    "empty data file": ("", ["train.ctf", "empty"]),
    "bad number": (DATA.replace("1 0 |labels 0 1", "1 x |labels 0 1"), ["line 2", "column 13", "sequence id 1"]),
    "dense sample too long": (DATA.replace("1 0 |labels 0 1", "1 0 5 |labels 0 1"), ["line 2", "dimension 2"]),
    "missing stream": (DATA.replace(" |labels 0 1 0", ""), ["sequence 1", "0 samples of 'labels'"]),
}


@pytest.mark.parametrize("mistake", DATA_MISTAKES)
def test_a_mistake_in_the_data(mistake: str, cntkpy) -> None:
    data, words = DATA_MISTAKES[mistake]
    files = {"main.cntk": GOOD} | ({"train.ctf": data} if data is not None else {})
    got = cntkpy("configFile=main.cntk", files=files)
    assert got.code == (2 if data is None else 1), got.err  # a missing file is seen before the first command
    assert all(word in got.message for word in words), got.message
    assert "Traceback" not in got.err


def test_an_index_out_of_range(cntkpy) -> None:
    sparse = GOOD.replace("[ dim = 3 ; format = dense ]", "[ dim = 3 ; format = sparse ]")
    data = "|features 0 1 |labels 0:1\n|features 1 0 |labels 7:1\n"
    got = cntkpy("configFile=main.cntk", files={"main.cntk": sparse, "train.ctf": data})
    assert got.code == 1
    assert "line 2" in got.message
    assert "7" in got.message


def test_the_good_one_is_good(cntkpy) -> None:
    got = cntkpy("configFile=main.cntk", files={"main.cntk": GOOD, "train.ctf": DATA})
    assert got.code == 0, got.err
