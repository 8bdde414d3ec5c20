"""The criterion to train is a scalar, however it was chosen; else nothing is trained, and `check` says so (A8)."""

import re
from pathlib import Path

import pytest
import small_classification as actions

WAYS = {
    "group": ("CriterionNodes = (ce)", "CriterionNodes = (z)"),
    "old name": ("CriterionNodes = (ce)", "CriteriaNodes = (z, ce)"),
    "tag": ("z = Plus(t, b)", "z = Plus(t, b, tag=criterion)"),
    "SGD": ("SGD = [", "SGD = [ trainCriterionNodeName = z ;"),
    "evaluation": ("SGD = [", "SGD = [ evalCriterionNodeName = z ;"),
}
TRAINED = "the training criterion 'z' = Plus has shape [3 x 1]; a criterion has one element"


@pytest.mark.parametrize("way", WAYS)
def test_a_criterion_of_several_elements(cntkpy, tmp_path: Path, way: str) -> None:
    before, after = WAYS[way]
    text = actions.CONFIG.replace(before, after)
    if way == "tag":
        text = text.replace("        CriterionNodes = (ce)\n", "")
    number = next(i for i, line in enumerate(text.splitlines(), 1) if line.strip().startswith("z = "))
    if way in ("SGD", "evaluation"):
        number = next(i for i, line in enumerate(text.splitlines(), 1) if "CriterionNodeName" in line)
    message = TRAINED.replace("training", "evaluation" if way == "evaluation" else "training")
    got = cntkpy("configFile=m.cntk", files=actions.files("") | {"m.cntk": text})
    assert got.code == 2, got.err
    assert message in got.err
    assert f"--> m.cntk:{number}:" in got.err
    assert "Epoch[" not in got.err
    assert not list(tmp_path.glob("run/m*"))
    checked = cntkpy("check", "m.cntk")
    assert checked.code == 2
    assert re.search(
        rf"^m.cntk:{number}:\d+: error: (m.cntk:\S+ )?{re.escape(message)} - .* \[CK054\]$", checked.out, re.MULTILINE
    )


def test_a_property_that_a_script_sets(cntkpy, tmp_path: Path) -> None:
    """The script is warned of; the training from the edited model is refused, at its place."""
    text = actions.CONFIG.replace("command = train\n", "command = train:edit:more\n")
    text += "edit = [ action = edit ; editPath = e.mel ]\n"
    text += "more = [ action = train ; modelPath = run/n ; NDLNetworkBuilder = [ run = net ]\n" + actions.NETWORK
    text += "    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.05 ] ]\n"
    script = 'LoadModel("run/m")\nSetProperty(z, criterion, true)\nSetProperty(ce, criterion, false)\n'
    script += 'SaveModel("run/n.0")\n'
    got = cntkpy("configFile=m.cntk", files=actions.files("") | {"m.cntk": text, "e.mel": script})
    assert got.code == 2, got.err
    assert "Plus 'z' has shape [3 x 1]; it cannot be trained on" in got.err
    assert TRAINED in got.err
    assert re.search(r"--> m.cntk:\d+:", got.err)
    assert not (tmp_path / "run/n").exists()


def test_nodes_of_one_element_and_further_criteria(cntkpy) -> None:
    """A layout of one element per sample, a scalar, and criteria that are only listed may be of any shape."""
    for way in ("CriterionNodes = (ce, z)", "CriterionNodes = (one)", "CriterionNodes = (sum)"):
        text = actions.CONFIG.replace("CriterionNodes = (ce)", way)
        text = text.replace("p = Softmax(z)", "p = Softmax(z)\none = Plus(RowSlice(0, 1, z), ce)\nsum = SumElements(z)")
        got = cntkpy("configFile=m.cntk", "makeMode=false", files=actions.files("") | {"m.cntk": text})
        assert got.code == 0, got.err
        assert "error" not in cntkpy("check", "m.cntk").out


def test_a_criterion_along_an_axis(cntkpy) -> None:
    """Its elements are values for each position, and their sum is a criterion; a product is none, with or without."""
    more = "v = Parameter(1, 2)\nproduct = ElementTimes(z, v)\nr = ReduceElements(product, axis=1)"
    for criterion, code in (("Negate(Plus(r, ReduceElements(z)))", 0), ("Plus(r, product)", 2)):
        text = actions.CONFIG.replace("CriterionNodes = (ce)", "CriterionNodes = (c)")
        text = text.replace("p = Softmax(z)", f"p = Softmax(z)\n{more}\nc = {criterion}")
        assert cntkpy("check", "m.cntk", files=actions.files("") | {"m.cntk": text}).code == code


def test_a_recurrent_network_over_one_class(cntkpy) -> None:
    """Its nodes have no place of their own: the place is that of its builder."""
    builder = "rnnType=LSTM;layerSizes=4:3:1;recurrentLayer=1;trainingCriterion=CrossEntropyWithSoftmax"
    text = f"command=train\ntrain=[action=train;modelPath=m;SimpleNetworkBuilder=[{builder}"
    text += ";evalCriterion=ClassificationError];SGD=[maxEpochs=1;minibatchSize=2;learningRatesPerMB=0.1]"
    streams = "features=[dim=4;format=dense];labels=[dim=1;format=dense]"
    text += f";reader=[readerType=CNTKTextFormatReader;file=d;input=[{streams}]]]"
    checked = cntkpy("check", "r.cntk", files={"r.cntk": text})
    assert checked.code == 1
    assert "r.cntk:2:54: warning: CrossEntropyWithSoftmax is over one class" in checked.out
