"""A name that is set twice in one section of one file: the last text counts, and the first is lost."""

import pytest
from small_training import TRAIN

PART = "train = [ SGD = [ maxEpochs = 3 ] ]"
DATA = {"train.ctf": "|features 1 0 |labels 1 0\n"}


def warnings(got) -> list[str]:
    return [line for line in got.out.splitlines() if line.endswith("[CK037]")]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("= 0.1 ]", "= 0.1 ; MaxEpochs = 2 ]", "m.cntk:6:88: warning: 'maxEpochs' has been set before, at m.cntk:6:25"),
        (
            "modelPath = m",
            "modelPath = m\nmodelPath = n",
            "m.cntk:3:13: warning: 'modelPath' has been set before, at m.c",
        ),
        (
            "dim = 2",
            "dim = 3 ; dim = 2",
            "m.cntk:8:48: warning: 'dim' has been set before, at m.cntk:8:38: '3' is lost",
        ),
        (
            "modelPath = m",
            f"modelPath = m\n{PART}",
            "m.cntk:7:25: warning: 'maxEpochs' has been set before, at m.cntk:3:31",
        ),
    ],
)
def test_a_name_that_is_set_twice(old: str, new: str, told: str, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", files={"m.cntk": TRAIN.replace(old, new, 1), **DATA})
    (line,) = warnings(got)
    assert line.startswith(told)
    assert " - the last one counts; remove one of the two [CK037]" in line
    assert got.code == 1


def test_a_run_warns_too(cntkpy) -> None:
    config = TRAIN.replace("SquareError ;", "No ;").replace("maxEpochs = 1", "maxEpochs = 1 ; maxEpochs = 2")
    got = cntkpy("run", "configFile=m.cntk", files={"m.cntk": config, **DATA})
    assert "has been set before" in got.err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("maxEpochs = 1", "maxEpochs = 1 ; maxEpochs = 1"),  # nothing is lost
        ("modelPath = m", "modelPath = m\ninclude=b.cntk"),
        ("modelPath = m", "modelPath = m\ntrain = [ SGD = [ momentumPerMB = 0.9 ] ]"),
    ],
)
def test_what_is_no_mistake(old: str, new: str, cntkpy) -> None:
    files = {"m.cntk": TRAIN.replace(old, new, 1), "b.cntk": PART, **DATA}
    assert not warnings(cntkpy("check", "m.cntk", files=files))


@pytest.mark.parametrize("words", [("m.cntk", "train/SGD/maxEpochs=3"), ("configFile=m.cntk+b.cntk", "modelPath=x")])
def test_other_layers(words: tuple[str, ...], cntkpy) -> None:
    files = {"m.cntk": TRAIN, "b.cntk": f"modelPath = n\n{PART}", **DATA}
    got = cntkpy("check", *words, files=files)
    assert got.out == "no problems in 1 configuration\n"


def test_a_section_that_replaces_another_is_told_once(cntkpy) -> None:
    text = "command = ()\nSGD = [ maxEpochs = 2 ; minibatchSize = 20 ]\nSGD = { maxEpochs = 3 }\n"
    got = cntkpy("check", "m.cntk", files={"m.cntk": text})
    assert [line[-7:] for line in got.out.splitlines() if line.startswith("m.cntk")] == ["[CK034]"]
