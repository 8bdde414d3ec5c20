"""Words of the command line: the path of one value (A16), `default` for a builder (A4)."""

import pytest

CONFIG = """
command = train
modelPath = m
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 9
            minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""
FILES = {"m.cntk": CONFIG, "data.ctf": "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n"}


@pytest.mark.parametrize("word", ["train/SGD/maxEpochs=1", "train.SGD.maxEpochs=1", "TRAIN/sgd/maxepochs = 1"])
def test_a_path_sets_one_value(word: str, cntkpy) -> None:
    shown = cntkpy("show", "m.cntk", word, files=FILES)
    assert "SGD:maxEpochs=1\n" in shown.out
    assert "SGD:minibatchSize=2\n" in shown.out
    assert cntkpy("check", "m.cntk", word).out == "no problems in 1 configuration\n"


def test_a_run_takes_it(cntkpy, tmp_path) -> None:
    got = cntkpy("configFile=m.cntk", "train/SGD/maxEpochs=1", files=FILES)
    assert got.code == 0, got.err
    assert "Epoch[ 1 of 1]" in got.err
    assert (tmp_path / "m").exists()


def test_places_and_unknown_names_of_a_path(cntkpy) -> None:
    got = cntkpy("check", "m.cntk", "train/SGD/maxEpochs=abc", files=FILES)
    assert "<argument 2>:1:21: error: m.cntk:train:SGD:maxEpochs: 'abc' is not an integer" in got.out
    for words in (("check", "m.cntk"), ("configFile=m.cntk",)):
        got = cntkpy(*words, "train/SGD/maxEpoch=3", "train/SGD/maxEpochs=1", "unheardOf=2")
        text = got.out + got.err
        assert "<argument 2>:1:11: warning: SGD: 'maxEpoch' is not a known parameter" in text
        assert "nothing reads 'unheardOf'" in text


def test_a_section_that_stands_further_out(cntkpy) -> None:
    """A path does not hide the values of a section which the command has from further out."""
    got = cntkpy(
        "check", "b.cntk", "train/SGD/maxEpochs=3", files={"b.cntk": "SGD=[maxEpochs=9]\ntrain=[action=train]\n"}
    )
    assert got.code == 2
    assert "<argument 2>:1:7: error: b.cntk:train has no section 'SGD' of its own" in got.out
    assert "SGD/maxEpochs=..." in got.out


def test_default_removes_a_builder(cntkpy) -> None:
    ndl = "train=[SimpleNetworkBuilder=default]"
    for words in (("check", "m.cntk"), ("configFile=m.cntk",)):
        got = cntkpy(*words, ndl, files=FILES)
        assert got.code == 2
        assert "the training has no network builder" in got.out + got.err
        assert "internal error" not in got.err
