"""`action=export`: the model of a training as ONNX, compared on random data and on data of a reader."""

import json
from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

from cntkpy.networks.onnx import check

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

MORE = (
    "out = [ action = export ; outputFile = run/m.onnx ; softmaxNodeNames = z ; outputNodeNames = z ; double = true ]\n"
)


@pytest.fixture
def run(cntkpy, already_trained):
    already_trained(files=actions.files(""))

    def run(*words: str):
        return cntkpy("configFile=m.cntk", "command=train:out", *words, files=actions.files(MORE))

    return run


def test_a_trained_model(run, tmp_path: Path) -> None:
    got = run()
    assert got.code == 0, got.err
    assert "z: largest difference from onnxruntime" in got.err
    assert "Written: run/m.onnx: opset 17, 4 operators, inputs x [batch x 2]" in got.err
    z, p = onnxruntime.InferenceSession(tmp_path / "run/m.onnx").run(None, {"x": actions.X})
    weights = actions.model(tmp_path / "run/m")
    expected = actions.X @ weights["W"].T + weights["b"].ravel()
    np.testing.assert_allclose(z.reshape(-1, 3), expected, rtol=1e-12)
    np.testing.assert_allclose(p.reshape(-1, 3), actions.softmax(expected), rtol=1e-12)


def test_metadata_tell_the_configuration(run, tmp_path: Path) -> None:
    found = []
    for words in ((), ("out=[minibatchSize=7]",)):
        assert run(*words).code == 0
        model = onnx.load(tmp_path / "run/m.onnx")
        found.append({one.key: one.value for one in model.metadata_props})
    assert len(found[0]["cntkpy.configuration"]) == 64
    assert found[0]["cntkpy.configuration"] != found[1]["cntkpy.configuration"]
    assert json.loads(found[0]["cntkpy.trained"]) == ["W", "b"]


def test_data_of_the_reader_are_compared(run, tmp_path: Path, monkeypatch) -> None:
    seen = []

    def spy(exported, model, sequences):
        seen.append([[value.shape for value in one] for one in sequences])
        return real(exported, model, sequences)

    real = check.check_data
    monkeypatch.setattr(check, "check_data", spy)
    assert run("out=[minibatchSize=8]").code == 0
    assert seen == [[[(8, 2), (8, 3), (8, 3)]]]


def test_a_difference_is_an_error(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(check, "DOUBLE_BOUND", -1.0)
    got = run()
    assert got.code == 1
    assert "the values of onnxruntime differ" in got.err
    assert not (tmp_path / "run/m.onnx").exists()


def test_a_criterion_is_the_sum_over_the_minibatch_of_the_reader(run, tmp_path: Path) -> None:
    got = run("out=[outputNodeNames=ce]")
    assert got.code == 0, got.err
    assert "ce: largest difference from onnxruntime" in got.err
    session = onnxruntime.InferenceSession(tmp_path / "run/m.onnx")
    labels = np.eye(3)[np.arange(len(actions.X)) % 3]
    ce, z = session.run(["ce", "z.softmax"], {"x": actions.X, "y": labels})
    np.testing.assert_allclose(ce, [-np.log(z.reshape(labels.shape)[labels > 0]).sum()], rtol=1e-10)
