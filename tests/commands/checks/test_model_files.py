"""What `check` finds with the help of models that are there, and of networks that a builder makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import save_model

READER = "reader = [ readerType = CNTKTextFormatReader ; file = t.ctf ; input = [ x = [ dim = 3 ; format = dense ] ] ]"
WRITE = f"command = write\nwrite = [ action = write ; modelPath = base.dnn ; outputPath = out ; {READER}\n"
NET = "x = Input(3, tag=feature)\nW = Parameter(2, 3)\nz = Times(W, x{tag})\n"


@pytest.fixture
def found(cntkpy, tmp_path: Path):
    """Check and run a configuration beside a model; the run's message, after both have said the same."""

    def call(text: str, tag: str = "") -> str:
        save_model(tmp_path / "base.dnn", parse_ndl(NET.format(tag=tag)).validate())
        checked = cntkpy("check", "m.cntk", files={"m.cntk": text, "t.ctf": "|x 1 2 3\n"})
        ran = cntkpy("configFile=m.cntk")
        assert (checked.code, ran.code) == (2, 2), checked.out + ran.err
        assert ran.message in checked.out
        return ran.message

    return call


def test_nodes_that_a_model_does_not_have(found) -> None:
    assert "the network has no node 'zz'" in found(f"{WRITE} outputNodeNames = zz ]\n", ", tag=output")


def test_some_of_the_nodes_are_a_warning(cntkpy, found) -> None:
    found(f"{WRITE} outputNodeNames = zz ]\n")
    checked = cntkpy("check", "m.cntk", files={"m.cntk": f"{WRITE} outputNodeNames = z:zz ]\n"})
    assert checked.code == 1
    assert "warning: m.cntk:write:outputNodeNames[1]: the network has no node 'zz'" in checked.out


def test_a_file_that_is_no_model_is_left_to_the_run(cntkpy) -> None:
    files = {"m.cntk": f"{WRITE} outputNodeNames = z ]\n", "base.dnn": "no model", "t.ctf": "|x 1 2 3\n"}
    assert cntkpy("check", "m.cntk", files=files).code == 0


def test_a_network_without_outputs_has_nothing_to_write(cntkpy) -> None:
    text = f"""command = train:write
modelPath = m
train = [ action = train ; SGD = [ maxEpochs = 1 ; learningRatesPerMB = 0.1 ] ; {READER}
    BrainScriptNetworkBuilder = {{ x = Input {{3}} ; z = SumElements (x) ; criterionNodes = (z) }} ]
write = [ action = write ; outputPath = out ; {READER} ]
"""
    checked = cntkpy("check", "m.cntk", files={"m.cntk": text, "t.ctf": "|x 1 2 3\n"})
    assert checked.code == 2
    assert "m.cntk:5:20: error: there is no node to write: the network has no output" in checked.out
    assert "write outputNodeNames = " in checked.out
    assert "there is no node to write" in cntkpy("configFile=m.cntk").err


@pytest.mark.parametrize(
    ("node", "severity"), [("nope", "error"), ("ClassificationErro:EvalClassificationError", "warning")]
)
def test_nodes_that_a_command_evaluates_after_training_them(cntkpy, node: str, severity: str) -> None:
    """B1: the network of `train:test` is known before it is trained."""
    text = f"""command = train
modelPath = m
train = [ action = train:test ; evalNodeNames = {node} ; SGD = [ maxEpochs = 1 ; learningRatesPerMB = 0.1 ]
    SimpleNetworkBuilder = [ layerSizes = 3:2 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ClassificationError ]
    reader = [ readerType = CNTKTextFormatReader ; file = t.ctf
        input = [ features = [ dim = 3 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ] ]
"""
    files = {"m.cntk": text, "t.ctf": "|features 1 2 3 |labels 0 1\n"}
    checked = cntkpy("check", "m.cntk", files=files)
    unknown = node.partition(":")[0]
    message = f"m.cntk:train:evalNodeNames[0]: the network has no node '{unknown}'"
    assert f"{severity}: {message}" in checked.out
    if severity == "error":
        ran = cntkpy("configFile=m.cntk")
        assert (ran.code, ran.message) == (2, message)
        assert "Epoch[" not in ran.err
