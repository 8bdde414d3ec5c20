"""What an export writes: names, inputs, outputs, constants, metadata, and errors."""

import json

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.onnx import files, ours
from cntkpy.networks.onnx.check import check
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.model import to_model

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

MLP = """\
features = Input(4, tag=feature)
labels = Input(3, tag=label)
W0 = Parameter(5, 4)
b0 = Parameter(5, 1)
h = Sigmoid(Plus(Times(W0, features), b0))
z = Plus(Times(Parameter(3, 5), h), Parameter(3))
ce = CrossEntropyWithSoftmax(labels, z, tag=criterion)
err = ClassificationError(labels, z, tag=eval)
"""


def exported_model(text, *names, precision="float", **settings):
    network = parse_ndl(text, precision=precision, diagnostics=[])
    exported = export(network, ours.constants, Settings(names, **settings), "mlp")
    return exported, to_model(exported, "1.2", {"cntkpy.source": "net.dnn"})


def feeds(exported):
    return {port.name for port in exported.graph.inputs}


def test_labels_and_criteria_are_left_out():
    exported, model = exported_model(MLP, "z")
    assert feeds(exported) == {"features"}
    kinds = [operation.kind for operation in exported.graph.operators]
    assert kinds == ["MatMul", "Reshape", "Add", "Sigmoid", "MatMul", "Add"]
    assert {"W0", "b0"} < {one.name for one in model.graph.initializer}


def test_a_criterion_that_is_asked_for_has_its_labels_as_an_input():
    exported, model = exported_model(MLP, "ce", "err")
    assert feeds(exported) == {"features", "labels"}
    assert [port.dims for port in exported.graph.outputs] == [(1,), (1,)]
    assert all(one.allowed for one in check(exported, files.as_bytes(model)))


def test_the_softmax_of_a_node():
    exported, model = exported_model(MLP, softmax=("z",))
    assert [port.name for port in exported.graph.outputs] == ["z.softmax"]
    (found,) = check(exported, files.as_bytes(model))
    assert found.allowed


def test_metadata():
    _, model = exported_model(MLP, "z", "h")
    assert (model.producer_name, model.producer_version, model.ir_version) == ("cntkpy", "1.2", 8)
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 17)]
    found = {one.key: one.value for one in model.metadata_props}
    assert found["cntkpy.layout"] == "batch"
    assert found["cntkpy.source"] == "net.dnn"
    assert json.loads(found["cntkpy.outputs"]) == [{"node": "z", "dims": [3, 1]}, {"node": "h", "dims": [5, 1]}]
    assert int(found["cntkpy.parameters"]) >= 20 + 5 + 15 + 3


@pytest.mark.parametrize("opset", [17, 18, 21, 24, 27])
def test_versions_of_operators(opset):
    if opset > onnx.defs.onnx_opset_version():
        pytest.skip("the installed onnx is older")
    text = "x = Input(3, 2, tag=feature)\ny = ReduceElements(x, axis=1, reductionOp=LogSum)\nz = Plus(x, y)\n"
    exported, model = exported_model(text, "z", opset=opset)
    onnx.checker.check_model(model, full_check=True)
    assert check(exported, files.as_bytes(model))[0].allowed


def test_another_version_is_an_error():
    with pytest.raises(UserError, match="opset 9 cannot be written; possible are 17 to"):
        exported_model(MLP, "z", opset=9)


def test_the_same_bytes_every_time():
    assert files.as_bytes(exported_model(MLP, "z")[1]) == files.as_bytes(exported_model(MLP, "z")[1])


def test_all_nodes_that_cannot_be_exported_are_named():
    with pytest.raises(UserError) as error:
        exported_model(MLP + "noise = RandomLike(z)\naverage = EpochAccumulator(h)\n", "noise", "average")
    lines = str(error.value).splitlines()
    assert lines[0] == "the network cannot be written as ONNX, because of 2 nodes:"
    assert lines[1].startswith("  RandomLike 'noise': it draws random numbers")
    assert lines[2].startswith("  EpochAccumulator 'average': it counts the samples of an epoch of training")


def test_without_outputs_the_operands_of_criteria_are_proposed():
    with pytest.raises(UserError, match="the network has no output node") as error:
        exported_model(MLP)
    assert error.value.hint == "name one: --output z"


@pytest.mark.parametrize("name, what", [("W0", "the same whatever the data are"), ("features", "an input")])
def test_what_is_no_output(name, what):
    with pytest.raises(UserError, match=f"'{name}' cannot be an output: it is {what}"):
        exported_model(MLP, name)


def test_what_depends_on_parameters_alone_is_computed_at_once():
    text = "x = Input(2, tag=feature)\ns = Constant(2)\nW = Parameter(2, 2)\nz = Times(ElementTimes(Exp(s), W), x)\n"
    exported, model = exported_model(text, "z")
    assert [one.kind for one in exported.graph.operators] == ["MatMul"]
    assert len(model.graph.initializer) == 1
    assert check(exported, files.as_bytes(model))[0].allowed


def test_kernels_have_the_axes_of_a_convolution():
    text = "x = ImageInput(5, 4, 2, imageLayout=CHW, tag=feature)\nW = Parameter(3, 18)\n"
    text += "z = Convolution(W, x, 3, 3, 3, 1, 1, zeroPadding=true, imageLayout=CHW)\n"
    exported, model = exported_model(text, "z")
    assert {one.name: tuple(one.dims) for one in model.graph.initializer} == {"W": (3, 2, 3, 3)}
    assert exported.graph.inputs[0].dims == ("batch", 2, 4, 5)
    assert [one.kind for one in exported.graph.operators] == ["Conv"]


def test_a_network_in_double_precision_becomes_single_with_a_note():
    exported, model = exported_model(MLP, "z", precision="double")
    assert exported.notes == ["the network is of precision double; its parameters are written as float (--double)"]
    assert check(exported, files.as_bytes(model))[0].allowed
    exported, model = exported_model(MLP, "z", precision="double", double=True)
    assert exported.notes == []
    assert check(exported, files.as_bytes(model))[0].largest < 1e-12


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(
    "layer", ["Times(E, words)", "LookupTable(E, words)", "Plus(Times(E, words), Times(E, words))"]
)
@pytest.mark.sampled
def test_one_hot_vectors_as_integers(layer, batch_first):
    text = f"words = SparseInput(9, tag=feature)\nE = Parameter(4, 9)\nv = {layer}\n"
    text += "p = PastValue(4, z)\nz = Tanh(Plus(v, p))\n"
    exported, model = exported_model(text, "z", indices=("words",), batch_first=batch_first)
    assert exported.graph.inputs[0].dims == exported.axes
    assert exported.graph.inputs[0].kind == "integer"
    assert "MatMul" not in {one.kind for one in exported.graph.operators}
    assert check(exported, files.as_bytes(model))[0].allowed


def test_integers_for_what_is_no_vector():
    with pytest.raises(UserError, match="'z' is not an input of vectors, which indices can stand for"):
        exported_model(MLP, "z", indices=("z",))


def test_names_of_all_kinds(sketch):
    x = sketch.input("x[0]", 2)
    first = sketch("Tanh", x, name="größe * 2/1")
    sketch("Exp", first, name="a b.c")
    sketch("LogPlus", first, x, name="größe * 2")
    exported = export(sketch.network, ours.constants, Settings(("a b.c", "größe * 2")))
    model = to_model(exported, "0", {})
    onnx.checker.check_model(model, full_check=True)
    assert all(one.allowed for one in check(exported, files.as_bytes(model)))
    assert [port.name for port in exported.graph.outputs] == ["a b.c", "größe * 2"]


def test_an_output_that_is_another_node():
    text = "x = Input(2, tag=feature)\ny = Exp(x)\nd = Dropout(y)\ne = Dropout(d)\n"
    exported, model = exported_model(text, "d", "y", "e")
    assert [port.name for port in exported.graph.outputs] == ["d", "y", "e"]
    assert all(one.allowed for one in check(exported, files.as_bytes(model)))


def test_statistics_that_were_never_updated_are_noted():
    text = "x = Input(2, tag=feature)\none = Parameter(2, init=fixedValue, value=1)\n"
    text += "m = Parameter(2, needGradient=false)\nv = Parameter(2, init=fixedValue, value=1, needGradient=false)\n"
    exported, model = exported_model(text + "z = BatchNormalization(x, one, one, m, v)\n", "z")
    assert exported.notes == ["the running statistics were never updated by a training here: 'z'"]
    assert check(exported, files.as_bytes(model))[0].allowed


def test_large_parameters_go_to_a_second_file(tmp_path):
    text = "x = Input(40, tag=feature)\nz = Times(Parameter(30, 40), x)\n"
    _, model = exported_model(text, "z")
    whole = onnxruntime.InferenceSession(files.as_bytes(model))
    files.write(tmp_path / "big.onnx", model, most=100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.onnx", "big.onnx.data"]
    parted = onnxruntime.InferenceSession(tmp_path / "big.onnx")
    data = {"x": np.ones((2, 40), np.float32)}
    np.testing.assert_array_equal(parted.run(None, data)[0], whole.run(None, data)[0])


def test_a_wrong_model_is_found():
    exported, model = exported_model(MLP, "z")
    tensor = next(one for one in model.graph.initializer if one.name == "b0")
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.full((1, 5), 3, np.float32), "b0"))
    (found,) = check(exported, files.as_bytes(model))
    assert not found.allowed
