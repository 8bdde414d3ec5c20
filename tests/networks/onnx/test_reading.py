"""ONNX models become networks: those written here again, those of other programs, damaged ones."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.compile.evaluate import Batch, compile_gradient, network_parameters, network_state
from cntkpy.networks.files.model_file import load_model
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import random_data, run
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.files import as_bytes, write
from cntkpy.networks.onnx.model import to_model
from cntkpy.networks.onnx.table import RULES

from ..nodes.node_cases import CASES
from .test_node_kinds import network_of
from .test_sequences import HEAD, LOOPS

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper, numpy_helper = onnx.helper, onnx.numpy_helper

ONE_WAY = {
    *("sum_over_minibatch", "minibatch_Mean", "minibatch_Max", "minibatch_Min", "minibatch_Prod", "minibatch_LogSum"),
    *(
        "lstm_along_an_axis",
        "max_unpooling",
        "ce",
        "cross_entropy",
        "square_error",
        "logistic",
        "sum_elements",
        "l1",
        "l2",
    ),
    *("error", "class_based", "dummy", "negative_samples"),
}
"""Cases that are exported, but not read: they mix samples, or their operators are not read."""

AGAIN = [case for case in CASES if nodes.operation(case[1]).name in RULES and case[0] not in ONE_WAY]


def read_again(exported, folder):
    write(folder / "m.onnx", to_model(exported, "0", {}))
    return load_model(folder / "m.onnx")


def assert_same_values(exported, network, names, bound=1e-5):
    for data in random_data(exported, np.random.default_rng(7)):
        expected = ours.values(exported.network, names, ours.minibatch(exported.network, names, data))
        data = {node.name: data[node.name] for node in exported.inputs}
        got = ours.values(network, names, ours.minibatch(network, names, data))
        for name in names:
            np.testing.assert_allclose(got[name].reshape(expected[name].shape), expected[name], rtol=bound, atol=bound)


@pytest.mark.parametrize("case", AGAIN, ids=lambda case: case[0])
@pytest.mark.sampled
def test_every_kind_out_and_in_again(case, helpers, tmp_path):
    network, name = network_of(helpers, case, "float")
    exported = export(network, ours.constants, Settings((name,)))
    assert_same_values(exported, read_again(exported, tmp_path), [name])


@pytest.mark.parametrize("batch_first", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", [name for name in LOOPS if not name.startswith("attention")])
@pytest.mark.sampled
def test_loops_out_and_in_again(name, batch_first, tmp_path):
    network = parse_ndl(HEAD + LOOPS[name] + "\n", precision="float", diagnostics=[])
    exported = export(network, ours.constants, Settings(("h",), batch_first=batch_first))
    assert_same_values(exported, read_again(exported, tmp_path), ["h"])


TRAINED = """\
x = ImageInput(6, 5, 2, imageLayout=CHW, tag=feature)
K = Parameter(3, 18)
c = Convolution(K, x, 3, 3, 3, 1, 1, zeroPadding=true, imageLayout=CHW)
s = Parameter(3, 1, init=fixedValue, value=1)
o = Parameter(3, 1, init=fixedValue, value=0)
m = Parameter(3, 1, init=fixedValue, value=0.1, needGradient=false)
v = Parameter(3, 1, init=fixedValue, value=1.2, needGradient=false)
n = RectifiedLinear(BatchNormalization(c, s, o, m, v, spatial=true, imageLayout=CHW, epsilon=0.001))
p = MaxPooling(n, 2, 2, 2, 2, imageLayout=CHW)
f = Parameter(4, 18, needGradient=false)
h = Tanh(Times(f, p))
W = Parameter(3, 4)
b = Parameter(3)
z = Plus(Times(W, h), b)
"""


def gradients(network):
    """Of a cross entropy of `z`, on the same data each time."""
    labels = nodes.create(network, "InputValue", "labels", (), {"dims": (3,)})
    nodes.create(network, "CrossEntropyWithSoftmax", "ce", (labels, network["z"]))
    random = np.random.default_rng(1)
    data = {"x": random.normal(size=(1, 8, 2, 5, 6)), "labels": np.eye(3)[random.integers(0, 3, (1, 8))]}
    network = network.validate()
    function = compile_gradient(network, "ce")
    found, totals, state = function(network_parameters(network), network_state(network), Batch(data))
    return {name: np.asarray(array).reshape(-1) for name, array in found.items()}, float(totals["ce"]), state


@pytest.mark.thorough
def test_a_network_that_went_out_and_in_trains_on_with_the_same_numbers(tmp_path):
    exported = export(parse_ndl(TRAINED, precision="float", diagnostics=[]), ours.constants, Settings(("z",)))
    again = read_again(exported, tmp_path)
    first, total, _ = gradients(exported.network)
    second, total_again, _ = gradients(again)
    assert total_again == pytest.approx(total, rel=1e-6)
    assert set(second) == set(first) == {"K", "s", "o", "W", "b"}
    for name, array in first.items():
        np.testing.assert_allclose(second[name], array, rtol=1e-4, atol=1e-5)


def test_a_model_in_double_precision_stays_one(tmp_path):
    network = parse_ndl("x = Input(2, tag=feature)\nz = Exp(x)\n", precision="double", diagnostics=[])
    exported = export(network, ours.constants, Settings(("z",), double=True))
    again = read_again(exported, tmp_path)
    assert again.precision == "double"
    assert_same_values(exported, again, ["z"], bound=1e-14)


# ---- models of other programs


def model_of(operators, inputs, outputs, initialisers, opset=13):
    """A model of operators `(kind, inputs, outputs, attributes)` and inputs `name: dims`."""
    made = [helper.make_node(kind, ins, outs, **attributes) for kind, ins, outs, attributes in operators]
    values = [helper.make_tensor_value_info(name, 1, dims) for name, dims in inputs.items()]
    results = [helper.make_tensor_value_info(name, 1, None) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in initialisers.items()]
    graph = helper.make_graph(made, "g", values, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


def loaded(model, folder):
    (folder / "other.onnx").write_bytes(as_bytes(model))
    return load_model(folder / "other.onnx")


def real(random, *dims):
    return random.normal(size=dims).astype(np.float32)


def flattened_by_shape(random):
    """As PyTorch writes `x.view(x.size(0), -1)`, with a batch of 1."""
    operators = [
        ("Conv", ["x", "k", "kb"], ["c"], {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3], "strides": [2, 2]}),
        ("BatchNormalization", ["c", "g", "be", "mu", "va"], ["n"], {"momentum": 0.9}),
        ("Relu", ["n"], ["r"], {}),
        ("MaxPool", ["r"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Shape", ["p"], ["sh"], {}),
        ("Constant", [], ["zero"], {"value": numpy_helper.from_array(np.array(0))}),
        ("Gather", ["sh", "zero"], ["size"], {"axis": 0}),
        ("Unsqueeze", ["size"], ["size1"], {"axes": [0]}),
        ("Constant", [], ["rest"], {"value": numpy_helper.from_array(np.array([-1]))}),
        ("Concat", ["size1", "rest"], ["dims"], {"axis": 0}),
        ("Reshape", ["p", "dims"], ["flat"], {}),
        ("Gemm", ["flat", "w", "b"], ["z"], {"transB": 1, "alpha": 1.0, "beta": 1.0}),
    ]
    arrays = {
        "k": real(random, 4, 3, 3, 3),
        "kb": real(random, 4),
        "g": real(random, 4),
        "be": real(random, 4),
        "mu": real(random, 4),
        "va": np.abs(real(random, 4)) + 1,
        "w": real(random, 5, 16),
        "b": real(random, 5),
    }
    return model_of(operators, {"x": [1, 3, 8, 8]}, ["z"], arrays, opset=9), {"x": real(random, 1, 3, 8, 8)}


def residual_with_global_pooling(random):
    operators = [
        ("Conv", ["x", "k"], ["c"], {"pads": [1, 1, 1, 1]}),
        ("Clip", ["c", "low", "high"], ["r"], {}),
        ("Add", ["r", "x"], ["s"], {}),
        ("GlobalAveragePool", ["s"], ["p"], {}),
        ("Flatten", ["p"], ["f"], {}),
        ("MatMul", ["f", "w"], ["m"], {}),
        ("Add", ["m", "b"], ["a"], {}),
        ("Softmax", ["a"], ["z"], {"axis": -1}),
    ]
    arrays = {
        "k": real(random, 3, 3, 3, 3),
        "w": real(random, 3, 4),
        "b": real(random, 4),
        "low": np.array(0, np.float32),
        "high": np.array(6, np.float32),
    }
    return model_of(operators, {"x": ["N", 3, 6, 7]}, ["z"], arrays), {"x": real(random, 5, 3, 6, 7)}


def depthwise_and_dilated(random):
    """As MobileNet and its like: a kernel for each channel, then one element; a dilated convolution; means."""
    operators = [
        ("Conv", ["x", "k"], ["d"], {"group": 4, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("Conv", ["d", "p", "pb"], ["c"], {}),
        ("HardSwish", ["c"], ["r"], {}),
        ("Conv", ["r", "q"], ["e"], {"dilations": [2, 2], "pads": [2, 2, 2, 2], "group": 2}),
        ("AveragePool", ["e"], ["m"], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("ConvTranspose", ["m", "t"], ["u"], {"strides": [2, 2], "dilations": [2, 1], "pads": [1, 1, 1, 0]}),
        ("Flatten", ["u"], ["z"], {}),
    ]
    arrays = {
        "k": real(random, 4, 1, 3, 3),
        "p": real(random, 6, 4, 1, 1),
        "pb": real(random, 6),
        "q": real(random, 4, 3, 3, 3),
        "t": real(random, 4, 2, 3, 2),
    }
    return model_of(operators, {"x": ["n", 4, 9, 8]}, ["z"], arrays, opset=14), {"x": real(random, 2, 4, 9, 8)}


def two_inputs_and_slices(random):
    operators = [
        ("Concat", ["x", "y"], ["c"], {"axis": 1}),
        ("Split", ["c", "sizes"], ["a", "d"], {"axis": 1}),
        ("Mul", ["a", "scale"], ["e"], {}),
        ("Slice", ["d", "one", "end", "one"], ["f"], {}),
        ("ReduceMean", ["e"], ["g"], {"axes": [1], "keepdims": 1}),
        ("Sub", ["e", "g"], ["i"], {}),
        ("Div", ["i", "f"], ["z"], {}),
    ]
    arrays = {"sizes": np.array([3, 4]), "scale": real(random, 3), "one": np.array([1]), "end": np.array([4])}
    data = {"x": real(random, 2, 5), "y": np.abs(real(random, 2, 2)) + 0.5}
    return model_of(operators, {"x": ["batch", 5], "y": ["batch", 2]}, ["z"], arrays), data


def layer_normalised(random):
    operators = [
        ("ReduceMean", ["x"], ["mean"], {"axes": [-1]}),
        ("Sub", ["x", "mean"], ["d"], {}),
        ("Pow", ["d", "two"], ["sq"], {}),
        ("ReduceMean", ["sq"], ["var"], {"axes": [-1]}),
        ("Add", ["var", "eps"], ["ve"], {}),
        ("Sqrt", ["ve"], ["sd"], {}),
        ("Div", ["d", "sd"], ["n"], {}),
        ("Mul", ["n", "g"], ["m"], {}),
        ("Add", ["m", "b"], ["s"], {}),
        ("Transpose", ["s"], ["t"], {"perm": [0, 2, 1]}),
        ("Reshape", ["t", "dims"], ["z"], {}),
    ]
    arrays = {
        "two": np.array(2, np.float32),
        "eps": np.array(1e-5, np.float32),
        "dims": np.array([-1, 12]),
        "g": real(random, 4),
        "b": real(random, 4),
    }
    return model_of(operators, {"x": ["n", 3, 4]}, ["z"], arrays), {"x": real(random, 2, 3, 4)}


OTHERS = [
    flattened_by_shape,
    residual_with_global_pooling,
    depthwise_and_dilated,
    two_inputs_and_slices,
    layer_normalised,
]


@pytest.mark.parametrize("make", OTHERS, ids=lambda make: make.__name__)
def test_models_of_other_programs(make, tmp_path):
    model, data = make(np.random.default_rng(2))
    network = loaded(model, tmp_path)
    found = ours.values(network, ["z"], Batch({name: array[None] for name, array in data.items()}))["z"][0]
    expected = run(as_bytes(model), data)["z"]
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


def test_a_recurrent_layer_whose_state_begins_with_computed_zeros(tmp_path):
    """As PyTorch writes a model with a batch of any size: zeros of the size of the batch."""
    random = np.random.default_rng(8)
    operators = [
        ("Shape", ["x"], ["sizes"], {}),
        ("Gather", ["sizes", "one"], ["n"], {"axis": 0}),
        ("Unsqueeze", ["n", "first"], ["n1"], {}),
        ("Concat", ["ones", "n1", "width"], ["dims"], {"axis": 0}),
        ("ConstantOfShape", ["dims"], ["h0"], {}),
        ("Expand", ["zeros", "dims"], ["c0"], {}),
        ("LSTM", ["x", "w", "r", "b", "", "h0", "c0"], ["y", "h", "c"], {"hidden_size": 4}),
        ("Squeeze", ["y", "ones"], ["s"], {}),
        ("LayerNormalization", ["s", "g", "be"], ["z"], {"axis": -1}),
        ("Squeeze", ["c", "first"], ["last"], {}),
    ]
    arrays = {
        "w": real(random, 1, 16, 3),
        "r": real(random, 1, 16, 4),
        "b": real(random, 1, 32),
        "g": real(random, 4),
        "be": real(random, 4),
        "one": np.array(1),
        "first": np.array([0]),
        "ones": np.array([1]),
        "width": np.array([4]),
        "zeros": np.zeros((1, 1, 1), np.float32),
    }
    model = model_of(operators, {"x": ["None", "None", 3]}, ["z", "last"], arrays, opset=17)
    network, data = loaded(model, tmp_path), real(random, 5, 2, 3)
    found = ours.values(network, ["z", "last"], ours.minibatch(network, ["z", "last"], {"x": data}))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "batch"
    expected = run(as_bytes(model), {"x": data})
    np.testing.assert_allclose(found["z"], expected["z"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["last"][0], expected["last"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.sampled
def test_recurrent_layers(kind, gates, direction, tmp_path):
    """As PyTorch writes them: batch first outside, directions joined, then the last step."""
    random, ways, size = np.random.default_rng(4), 1 + (direction == "bidirectional"), 5
    operators = [
        ("Transpose", ["x"], ["t"], {"perm": [1, 0, 2]}),
        (kind, ["t", "w", "r", "b"], ["y", "y_h"], {"hidden_size": size, "direction": direction}),
        ("Transpose", ["y"], ["u"], {"perm": [0, 2, 1, 3]}),
        ("Reshape", ["u", "dims"], ["v"], {}),
        ("Transpose", ["v"], ["all"], {"perm": [1, 0, 2]}),
        ("Gather", ["all", "last"], ["z"], {"axis": 1}),
    ]
    arrays = {
        "w": real(random, ways, gates * size, 3),
        "r": real(random, ways, gates * size, size),
        "b": real(random, ways, 2 * gates * size),
        "dims": np.array([0, 0, -1]),
        "last": np.array(-1),
    }
    model = model_of(operators, {"x": ["batch", "time", 3]}, ["all", "z"], arrays, opset=14)
    network, data = loaded(model, tmp_path), real(random, 4, 6, 3)
    batch = ours.minibatch(network, ["all", "z"], {"x": data.swapaxes(0, 1)})
    found = ours.values(network, ["all", "z"], batch)
    expected = run(as_bytes(model), {"x": data})
    np.testing.assert_allclose(found["all"].swapaxes(0, 1), expected["all"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["z"][0], expected["z"], rtol=1e-4, atol=1e-5)


def test_an_embedding_takes_one_hot_vectors(tmp_path):
    random = np.random.default_rng(5)
    model = model_of(
        [("Gather", ["table", "words"], ["e"], {}), ("Tanh", ["e"], ["z"], {})],
        {"words": ["n"]},
        ["z"],
        {"table": real(random, 7, 3)},
    )
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    network = loaded(model, tmp_path)
    assert (network["words"].operation, network["words"].shape) == ("SparseInputValue", (7,))
    found = ours.values(network, ["z"], Batch({"words": np.eye(7)[None, [2, 5]]}))["z"][0]
    np.testing.assert_allclose(found, run(as_bytes(model), {"words": np.array([2, 5])})["z"], rtol=1e-5)


# ---- what cannot be read


def test_all_operators_that_cannot_be_read_are_named(tmp_path):
    operators = [
        ("Relu", ["x"], ["r"], {}),
        ("Einsum", ["r", "r"], ["e"], {"equation": "ij,ij->ij"}),
        ("MyOwn", ["r"], ["o"], {"domain": "com.example"}),
        ("Add", ["e", "o"], ["z"], {}),
    ]
    with pytest.raises(UserError) as error:
        loaded(model_of(operators, {"x": ["n", 3]}, ["z"], {}), tmp_path)
    lines = str(error.value).splitlines()
    assert lines[0].endswith("other.onnx cannot be used, because of 2 operators:")
    assert lines[1:] == [
        "  Einsum 'e': this operator is not supported",
        "  com.example.MyOwn 'o': operators of other domains are not supported",
    ]


def test_an_operator_of_constants_only_has_data(tmp_path) -> None:
    """D19: the message said that it has no data, and it has."""
    with pytest.raises(UserError, match="Trilu 'z': it is supported for constants only"):
        loaded(model_of([("Trilu", ["x"], ["z"], {})], {"x": ["n", 3, 3]}, ["z"], {}), tmp_path)


MLP = [("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["z"], {})]
WEIGHTS = {"w": np.ones((3, 2), np.float32)}


def changed(change):
    model = model_of(MLP, {"x": ["n", 3]}, ["z"], WEIGHTS)
    change(model)
    return model


def huge(model):
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([1 << 40, 1 << 20])


def cyclic(model):
    model.graph.node[0].input[0] = "z"


def twice(model):
    model.graph.node[1].output[0] = "h"


def outside(location):
    def change(model):
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", "0"), ("length", "24")):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value

    return change


def old(model):
    model.opset_import[0].version = 6


def without_output(model):
    model.graph.output[0].name = "nothing"


DAMAGED = [
    (huge, "'w' has 24 bytes, not"),
    (cyclic, "MatMul 'h' takes 'z', which nothing before it computes"),
    (twice, "Relu 'h' computes 'h', which is there already"),
    (outside("../secret"), "which is not inside of its folder"),
    (outside("/etc/passwd"), "which is not inside of its folder"),
    (outside("short"), "'short' has no 24 bytes for 'w' at byte 0"),
    (outside("none"), "the values of 'w' cannot be read"),
    (old, "it uses version 6 of the operators; 7 to 27 can be read"),
    (without_output, "nothing computes its output 'nothing'"),
]


@pytest.mark.parametrize("change, message", DAMAGED, ids=lambda one: getattr(one, "__name__", None))
def test_damaged_models(change, message, tmp_path):
    (tmp_path / "short").write_bytes(b"1234")
    (tmp_path.parent / "secret").write_bytes(bytes(24))
    with pytest.raises(UserError, match=message):
        loaded(changed(change), tmp_path)


def test_a_constant_that_would_be_huge(tmp_path):
    operators = [("ConstantOfShape", ["dims"], ["c"], {}), ("Add", ["x", "c"], ["z"], {})]
    model = model_of(operators, {"x": ["n", 3]}, ["z"], {"dims": np.array([1 << 20, 1 << 20, 3])})
    with pytest.raises(UserError, match="it would make 3,298,534,883,328 elements"):
        loaded(model, tmp_path)


def test_initialisers_beside_the_model(tmp_path):
    values = np.arange(6, dtype="<f4").reshape(3, 2)
    (tmp_path / "w.bin").write_bytes(values.tobytes())
    network = loaded(changed(outside("w.bin")), tmp_path)
    np.testing.assert_array_equal(network["w"].value, values)


def test_a_truncated_file(tmp_path):
    content = as_bytes(model_of(MLP, {"x": ["n", 3]}, ["z"], WEIGHTS))
    (tmp_path / "m.onnx").write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="it is damaged"):
        load_model(tmp_path / "m.onnx")
