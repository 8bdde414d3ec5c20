"""Model files of CNTK in the commands: they are shown, evaluated, written, edited, drawn and trained further."""

import json
import re
from pathlib import Path

import cntk_v1_writer as w
import cntk_v2_writer as v
import numpy as np
import pytest
import small_classification as actions

from cntkpy.networks.files.model_file import load_model

W = np.array([[0.5, -1], [1, 0.25], [-0.75, 0.5]])
BIAS = np.array([0.1, -0.2, 0.3])

CONFIG = f"""
precision = double
deviceId = cpu
modelPath = new.model
reader = [ readerType = CNTKTextFormatReader ; file = data.ctf ; randomize = none
    input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 3 ; format = dense ] ] ]
write = [ action = write ; outputPath = run/o ; outputNodeNames = z ]
edit = [ action = edit ; editPath = edit.mel ]
test = [ action = test ; modelPath = run/whole.dnn ]
adapt = [ action = adapt ; origModelFileName = run/whole.dnn
    SGD = [ modelPath = run/a ; minibatchSize = {len(actions.X)} ; maxEpochs = 2 ; learningRatesPerSample = 0.1
        momentumPerMB = 0 ] ]
plot = [ action = plot ; outputDotFile = run/net.dot ]
"""
EDIT = """
m = LoadModel(new.model, format=cntk)
y = Input(3, tag=label)
ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
err = ErrorPrediction(y, z, tag=eval)
SaveModel(m, run/whole.dnn)
"""


def later() -> bytes:
    """z = W x + b, as the library's layer Dense stores it."""
    f = v.Writer(double=True)
    f.input("x", 2)
    formal = f.placeholder("formal", 2)
    f.parameter("W", W)
    f.parameter("b", BIAS)
    f.function(31, "Times1", "Parameter_W", formal, outputRank=1)
    f.function(19, "Plus2", "Times1_Output_0", "Parameter_b")
    f.block("Block3", "Dense", "Plus2", {formal: "Input_x"}, "z")
    return f.content("Block3")


def first(version: int) -> bytes:
    """The same network, in the first format."""
    f = w.Writer(version, "double")
    f.parameter("W", W)
    f.parameter("b", BIAS[:, None], 3)
    f.input("x", 2)
    f.node("Times", "Times1", w.u64(1) + w.i32(-1), "W x")
    f.node("Plus", "z", inputs="Times1 b")
    f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
    return f.content


@pytest.fixture(params=["later", 12, 30])
def run(request, cntkpy, tmp_path: Path):
    """Run commands in a folder with such a model."""
    content = later() if request.param == "later" else first(request.param)
    (tmp_path / "new.model").write_bytes(content)

    def run(*words: str):
        files = {"m.cntk": CONFIG, "data.ctf": actions.DATA, "edit.mel": EDIT}
        return cntkpy("configFile=m.cntk", *words, files=files)

    return run


@pytest.mark.thorough
def test_from_the_file_to_further_training(run, tmp_path: Path) -> None:
    got = run("command=write:edit:test:adapt:plot")
    assert got.code == 0, got.err
    scores = actions.X @ W.T + BIAS
    written = np.loadtxt(tmp_path / "run/o.z")
    np.testing.assert_allclose(written, scores, atol=5.1e-7)

    start = {"W": W, "b": BIAS[:, None]}
    value, errors = actions.criterion(start), actions.errors(start)
    tested = re.search(r"Final Results.*", got.err)
    assert tested is not None
    assert f"ce = {value:.8f} * 40" in tested.group()
    assert f"err = {errors:.8f} * 40" in tested.group()

    p = actions.softmax(scores) - actions.Y
    moved = {
        "W": W - float(np.float32(0.1)) * p.T @ actions.X,
        "b": (BIAS - float(np.float32(0.1)) * p.sum(axis=0))[:, None],
    }
    assert f"Finished Epoch[ 1 of 2]: [Training] ce = {value:.8f} * 40;" in got.err
    assert f"Finished Epoch[ 2 of 2]: [Training] ce = {actions.criterion(moved):.8f} * 40;" in got.err

    dot = (tmp_path / "run/net.dot").read_text()
    assert 'label = "new.model"' in dot
    assert "Plus" in dot
    assert "Times1" in dot
    saved = load_model(tmp_path / "run/whole.dnn")
    np.testing.assert_array_equal(saved["W"].matrix(), W)


def test_show(run, cntkpy, tmp_path: Path) -> None:
    got = run("command=write")
    assert got.code == 0, got.err
    content = (tmp_path / "new.model").read_bytes()
    shown = cntkpy("show", "new.model")
    lines = shown.out.splitlines()
    assert lines[0] == "new.model: 5 nodes, 9 parameters (9 trainable), double"
    table = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[2:7]}
    ids = (", CNTK's Parameter_W", " CNTK's Plus2") if b"Composite" in content else ("", "")
    assert table["W"] == "LearnableParameter [3 x 2] 6 parameters" + ids[0]
    assert table["z"] == "Plus(Times1, b) [3]" + ids[1]
    assert lines[8:] == ["feature: x", "output: z"]


def test_what_a_file_says_is_shown_where_it_cannot_be_used(cntkpy, tmp_path: Path) -> None:
    f = w.Writer(30)
    f.input("x", 4)
    f.parameter("W", [[1.0, 2.0]])
    f.node("CRF", "crf", inputs="W x")
    (tmp_path / "rnn.dnn").write_bytes(f.content)
    got = cntkpy("show", "rnn.dnn")
    assert got.code == 1
    lines = got.out.splitlines()
    assert lines[0] == "rnn.dnn: 3 nodes, 2 parameters (2 trainable), float"
    assert lines[2].split() == ["crf", "CRF(W,", "x)"]
    assert "1 operation is not available here: CRF ('crf')" in got.err
    found = json.loads(cntkpy("show", "--format", "json", "rnn.dnn").out)
    assert found["nodes"][0]["operation"] == "CRF"


def test_other_files_are_named(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "m.ckp").write_bytes("BVersion\0".encode("utf-16-le") + bytes(30))
    got = cntkpy("show", "m.ckp")
    assert got.code == 1
    assert "the model m.ckp cannot be used: it is a checkpoint, not a model" in got.err
    assert "under the same name without .ckp" in got.err


AXES = """
command = write
precision = double
deviceId = cpu
write = [ action = write ; modelPath = axes.dnn ; outputPath = o ; format = [ type = real ]
    reader = [ readerType = CNTKTextFormatReader ; file = axes.ctf ; randomize = none
        input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 2 ; format = dense ] ] ] ]
"""
AXES_DATA = """1 |x 1 5 |y 10 20
1 |x 0 6
1 |x 1 7 |y 30 40
2 |x 0 8 |y 50 60
2 |x 1 9
"""


def test_several_sequence_axes(cntkpy, tmp_path: Path) -> None:
    """The steps of x whose first element is not 0, added to y, which has as many steps."""
    f = w.Writer(14, "double")
    f.node("DynamicAxis", "t")
    f.node("InputValue", "x", w.u64(0, 0) + w.shape(2) + w.u32(1) + w.text("t") + w.f32(0))
    f.node("InputValue", "y", w.u64(0, 0) + w.shape(2) + w.u32(0) + w.f32(0))
    f.node("Slice", "first", w.i64(0, 1) + w.i32(1), "x")
    f.node("Where", "places", w.text("kept"), "first")
    f.node("PackedIndex", "cells", inputs="x places")
    f.node("GatherPacked", "kept", inputs="cells x")
    f.node("ReconcileDynamicAxis", "here", inputs="kept y")
    f.node("Plus", "z", inputs="here y")
    f.groups = {"FeatureNodes": ["x", "y"], "OutputNodes": ["z"]}
    (tmp_path / "axes.dnn").write_bytes(f.content)
    data = AXES_DATA.replace("1 |x 0 6\n1 |x 1 7 |y 30 40", "1 |x 0 6 |y 30 40\n1 |x 1 7")
    got = cntkpy("configFile=m.cntk", files={"m.cntk": AXES, "axes.ctf": data})
    assert got.code == 0, got.err
    np.testing.assert_allclose(np.loadtxt(tmp_path / "o.z"), [[11, 25], [31, 47], [51, 69]])
