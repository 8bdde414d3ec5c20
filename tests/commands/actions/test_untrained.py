"""What `test`, `write` and `cv` evaluate: after `train` its model, a new network only with a warning (A1)."""

import re
from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

BOTH = "both = [ action = {} ; NDLNetworkBuilder = [ run = net ] ; crossValidationInterval = 0:1:4 ; outputPath = out\n"
BOTH += actions.NETWORK
BOTH += "    SGD = [ minibatchSize = 10 ; maxEpochs = 3 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0 ]\n]\n"
UNTRAINED = "evaluates a new, untrained network"
FINAL = re.compile(r"^Final Results: .*err = (\S+) \* 40; ce = (\S+) \* 40", re.MULTILINE)


def results(text: str) -> list[list[float]]:
    return [[float(value) for value in found] for found in FINAL.findall(text)]


@pytest.mark.thorough
@pytest.mark.parametrize("action", ["train:test", "trainRNN:eval:write", "train:cv", "train:testUnroll"])
def test_actions_behind_train_use_the_trained_model(cntkpy, tmp_path: Path, action: str) -> None:
    files = actions.files(BOTH.format(action))
    got = cntkpy("configFile=m.cntk", "command=both", files=files)
    assert got.code == 0, got.err
    trained = actions.model(tmp_path / "run/m")
    assert results(got.err)[-1] == pytest.approx([actions.errors(trained), actions.criterion(trained)], abs=1e-8)
    if "write" in action:
        z = actions.X @ trained["W"].T + trained["b"].T
        assert np.loadtxt(tmp_path / "out.z") == pytest.approx(z, abs=1e-4)
    assert UNTRAINED not in got.err
    again = cntkpy("configFile=m.cntk", "command=both")
    assert results(again.err)[-1] == results(got.err)[-1]
    assert UNTRAINED not in cntkpy("check", "m.cntk", "command=both").out


def test_modelpath_inside_sgd(cntkpy, tmp_path: Path) -> None:
    text = BOTH.format("train:test").replace("SGD = [", "SGD = [ modelPath = run/inside ;")
    got = cntkpy("configFile=m.cntk", "command=both", files=actions.files(text))
    assert got.code == 0, got.err
    trained = actions.model(tmp_path / "run/inside")
    assert results(got.err)[-1][1] == pytest.approx(actions.criterion(trained), abs=1e-8)


@pytest.mark.parametrize(
    ("action", "name"), [("test", "test"), ("write", "write"), ("test:train", "test"), ("cv:eval", "eval")]
)
def test_a_new_network_is_evaluated_with_a_warning(cntkpy, action: str, name: str) -> None:
    text = BOTH.format(action.replace("cv:", ""))
    got = cntkpy("configFile=m.cntk", "command=both", files=actions.files(text))
    assert got.code == 0, got.err
    assert re.search(
        rf"WARNING: action {name} of command both {UNTRAINED}, .*NDLNetworkBuilder at m.cntk:\d+:", got.err
    )
    checked = cntkpy("check", "m.cntk", "command=both", files=actions.files(BOTH.format(action)))
    assert checked.code == 1, checked.out
    assert re.search(rf"m.cntk:\d+:\d+: warning: command both: {name} {UNTRAINED}, .* \[CK044\]", checked.out)


def test_cv_alone_loads_models(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "command=train:both", files=actions.files(BOTH.format("cv")))
    assert got.code == 0, got.err
    assert UNTRAINED not in got.err + cntkpy("check", "m.cntk", "command=train:both").out
