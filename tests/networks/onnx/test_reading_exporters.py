"""Graphs as the exporters of PyTorch 2.13, Keras 3 (tf2onnx) and skl2onnx write them, compared with onnxruntime."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.model_file import load_model
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import run
from cntkpy.networks.onnx.files import as_bytes

from .test_reading import loaded, model_of, real

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
reference = pytest.importorskip("onnx.reference")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
ML = "ai.onnx.ml"


def assert_same(model, folder, data, output="y", expected=None, bound=1e-5):
    """The network of a model computes what onnxruntime does; sequences are batch first in the model."""
    network = loaded(model, folder)
    times = [node.dynamic_axes > 1 for node in network.nodes.values() if node.operation.endswith("InputValue")]
    given = {name: array.swapaxes(0, 1) if any(times) else array[None] for name, array in data.items()}
    found = ours.values(network, [output], ours.minibatch(network, [output], given))[output]
    expected = run(as_bytes(model), data)[output] if expected is None else expected
    found = found.swapaxes(0, 1) if any(times) and found.shape[0] > 1 else found
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=bound, atol=bound)
    return network


ACTIVATIONS = {
    "Gelu": (20, {}),
    "Gelu by tanh": (20, {"approximate": "tanh"}),
    "Mish": (18, {}),
    "Celu": (12, {"alpha": 1.5}),
    "Shrink": (9, {"lambd": 0.7, "bias": 0.2}),
    "Round": (11, {}),
    "HardSwish": (14, {}),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, tmp_path):
    opset, attributes = ACTIVATIONS[name]
    model = model_of([(name.split()[0], ["x"], ["y"], attributes)], {"x": ["n", 5]}, ["y"], {}, opset=opset)
    data = real(np.random.default_rng(1), 4, 5) * 2
    data[0, :3] = 0.5, 1.5, -2.5
    assert_same(model, tmp_path, {"x": data})


def test_swish(tmp_path):
    model = model_of([("Swish", ["x"], ["y"], {"alpha": 1.5})], {"x": ["n", 5]}, ["y"], {}, opset=24)
    data = real(np.random.default_rng(1), 4, 5)
    assert_same(model, tmp_path, {"x": data}, expected=data / (1 + np.exp(-1.5 * data)))


# ---- images


def average(**attributes):
    return [("AveragePool", ["x"], ["y"], attributes)]


POOLS = {
    "ceil, all cells": average(kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, count_include_pad=1),
    "ceil, image only": average(kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    "ceil, padding counts": average(
        kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1
    ),
    "ceil, one side padded": average(
        kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 0, 1], ceil_mode=1, count_include_pad=1
    ),
    "padding does not count": average(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "larger than the image": average(kernel_shape=[7, 6], pads=[2, 1, 2, 1]),
    "larger, padding counts": average(kernel_shape=[7, 6], pads=[2, 1, 2, 1], count_include_pad=1),
    "same": average(kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    "dilated": average(kernel_shape=[2, 2], dilations=[2, 1], strides=[2, 2]),
    "largest, ceil": [("MaxPool", ["x"], ["y"], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1})],
    "largest, larger than the image": [("MaxPool", ["x"], ["y"], {"kernel_shape": [7, 6], "pads": [2, 1, 2, 1]})],
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling(name, tmp_path):
    model = model_of(POOLS[name], {"x": ["n", 2, 5, 5]}, ["y"], {}, opset=19)
    assert_same(model, tmp_path, {"x": real(np.random.default_rng(2), 3, 2, 5, 5)})


def test_cells_of_the_rounded_up_window_do_not_count(tmp_path):
    """PyTorch divides by the cells up to the end of the padding; a model computed by hand, not by onnxruntime."""
    model = model_of(POOLS["ceil, padding counts"], {"x": ["n", 1, 4, 4]}, ["y"], {}, opset=19)
    ones = np.ones((1, 1, 4, 4), np.float32)
    side = np.array([2 / 3, 1, 0.5])  # cells of the image among those from -1 to 4: 2 of 3, 3 of 3, 1 of 2
    assert_same(model, tmp_path, {"x": ones}, expected=np.outer(side, side).reshape(1, 1, 3, 3))


CONVOLUTIONS = {
    "one axis, larger than the input": ((2, 3), (4, 2, 5), {"pads": [2, 2]}),
    "one axis, strides": ((4, 9), (4, 2, 3), {"pads": [1, 0], "strides": [2], "group": 2}),
    "one axis, dilated beyond the input": ((2, 4), (3, 2, 3), {"pads": [2, 1], "dilations": [3]}),
    "one of two axes larger": ((2, 3, 8), (4, 2, 5, 3), {"pads": [2, 1, 2, 1]}),
    "as large as the padded input": ((2, 3), (1, 2, 7), {"pads": [2, 2]}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, tmp_path):
    dims, weights, attributes = CONVOLUTIONS[name]
    random = np.random.default_rng(3)
    arrays = {"w": real(random, *weights), "b": real(random, weights[0])}
    model = model_of([("Conv", ["x", "w", "b"], ["y"], attributes)], {"x": ["n", *dims]}, ["y"], arrays, opset=17)
    assert_same(model, tmp_path, {"x": real(random, 2, *dims)})


def test_pixel_shuffle_and_its_inverse(tmp_path):
    random = np.random.default_rng(4)
    for mode in ("DCR", "CRD"):
        operators = [("DepthToSpace", ["x"], ["y"], {"blocksize": 2, "mode": mode})]
        model = model_of(operators, {"x": ["n", 8, 2, 3]}, ["y"], {})
        assert_same(model, tmp_path, {"x": real(random, 2, 8, 2, 3)})
    model = model_of([("SpaceToDepth", ["x"], ["y"], {"blocksize": 2})], {"x": ["n", 2, 4, 6]}, ["y"], {})
    assert_same(model, tmp_path, {"x": real(random, 2, 2, 4, 6)})


@pytest.mark.parametrize("opset, factors", [(18, 2), (21, 4)])
def test_group_normalisation(opset, factors, tmp_path):
    random = np.random.default_rng(4)
    arrays = {"s": real(random, factors), "b": real(random, factors)}
    operators = [("GroupNormalization", ["x", "s", "b"], ["y"], {"num_groups": 2})]
    model = model_of(operators, {"x": ["n", 4, 3, 3]}, ["y"], arrays, opset=opset)
    x = real(random, 2, 4, 3, 3)
    groups = x.reshape(2, 2, -1)
    less = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    scale, shift = (np.repeat(one, 4 // factors).reshape(4, 1, 1) for one in (arrays["s"], arrays["b"]))
    assert_same(model, tmp_path, {"x": x}, expected=less.reshape(x.shape) * scale + shift, bound=1e-4)


# ---- shape arithmetic


def test_flatten_of_keras(tmp_path):
    """Shape, Cast to a real number, Slice, Cast back, Concat, Reshape."""
    operators = [
        ("Shape", ["x"], ["s"], {}),
        ("Cast", ["s"], ["f"], {"to": 1}),
        ("Slice", ["f", "zero", "one"], ["c"], {}),
        ("Cast", ["c"], ["i"], {"to": 7}),
        ("Concat", ["i", "four"], ["k"], {"axis": 0}),
        ("Reshape", ["x", "k"], ["y"], {}),
    ]
    arrays = {"zero": np.array([0]), "one": np.array([1]), "four": np.array([4])}
    model = model_of(operators, {"x": ["n", 2, 2]}, ["y"], arrays, opset=15)
    assert_same(model, tmp_path, {"x": real(np.random.default_rng(5), 5, 2, 2)})


def test_arithmetic_of_sizes(tmp_path):
    """Sizes multiplied, divided, compared and chosen, as integers of 4 bytes and as real numbers of 2."""
    operators = [
        ("Shape", ["x"], ["s"], {}),
        ("Cast", ["s"], ["h"], {"to": 10}),
        ("Gather", ["h", "zero"], ["n"], {}),
        ("Mul", ["n", "six"], ["n6"], {}),
        ("Div", ["n6", "three"], ["n2"], {}),
        ("Floor", ["n2"], ["fl"], {}),
        ("Div", ["fl", "two"], ["m"], {}),
        ("Cast", ["m"], ["i"], {"to": 6}),
        ("Less", ["izero", "i"], ["some"], {}),
        ("Equal", ["i", "minus"], ["none"], {}),
        ("Where", ["none", "izero", "i"], ["j"], {}),
        ("Where", ["some", "j", "izero"], ["k"], {}),
        ("Cast", ["k"], ["l"], {"to": 7}),
        ("Unsqueeze", ["l", "axis"], ["lead"], {}),
        ("Gather", ["s", "rest"], ["others"], {}),
        ("ReduceProd", ["others"], ["count"], {"keepdims": 1}),
        ("Concat", ["lead", "count"], ["dims"], {"axis": 0}),
        ("Reshape", ["x", "dims"], ["y"], {}),
    ]
    halves = {name: np.array(value, np.float16) for name, value in (("six", 6), ("three", 3), ("two", 2))}
    arrays = {
        **halves,
        "zero": np.array(0),
        "axis": np.array([0]),
        "rest": np.array([1, 2]),
        "izero": np.array(0, np.int32),
        "minus": np.array(-1, np.int32),
    }
    model = model_of(operators, {"x": ["n", 2, 3]}, ["y"], arrays, opset=15)
    assert_same(model, tmp_path, {"x": real(np.random.default_rng(5), 4, 2, 3)})


@pytest.mark.parametrize("kind, number", [("Add", 1), ("Mul", 0.5), ("Div", 2), ("Less", 7), ("Equal", 5)])
def test_arithmetic_that_needs_the_size_is_refused(kind, number, tmp_path):
    operators = [
        ("Shape", ["x"], ["s"], {}),
        ("Cast", ["s"], ["f"], {"to": 1}),
        ("Gather", ["f", "zero"], ["n"], {}),
        (kind, ["n", "number"], ["m"], {}),
        ("Cast", ["m"], ["c"], {"to": 1}),
        ("Mul", ["x", "c"], ["y"], {}),
    ]
    arrays = {"zero": np.array(0), "number": np.array(number, np.float32)}
    with pytest.raises(UserError, match="size of an axis of the minibatch"):
        loaded(model_of(operators, {"x": ["n", 3]}, ["y"], arrays, opset=15), tmp_path)


# ---- loops


def keras_cell(steps):
    """A recurrent layer as tf2onnx writes it: a Loop, whose body takes the step of its number."""
    info = helper.make_tensor_value_info
    node = helper.make_node
    body = helper.make_graph(
        [
            node("Add", ["at", "one"], ["next"]),
            node("Gather", ["t", "at"], ["xt"]),
            node("MatMul", ["xt", "w"], ["a"]),
            node("MatMul", ["h", "r"], ["b"]),
            node("Add", ["a", "b"], ["sum"]),
            node("Slice", ["sum", "from", "to", "both"], ["whole"]),
            node("Tanh", ["whole"], ["new"]),
            node("Cast", ["next"], ["nextf"], to=1),
            node("Cast", ["count"], ["countf"], to=1),
            node("Less", ["nextf", "countf"], ["more"]),
            node("And", ["more", "more"], ["go"]),
            node("Identity", ["new"], ["out"]),
        ],
        "body",
        [info("i", 7, []), info("c", 9, []), info("at", 6, []), info("h", 1, None), info("count", 6, [])],
        [info("go", 9, []), info("next", 6, []), info("new", 1, None), info("count", 6, []), info("out", 1, None)],
        [
            numpy_helper.from_array(np.array([0, 0]), "from"),
            numpy_helper.from_array(np.array([2147483647, 4]), "to"),
            numpy_helper.from_array(np.array([0, 1]), "both"),
        ],
    )
    operators = [
        ("Transpose", ["x"], ["t"], {"perm": [1, 0, 2]}),
        ("Shape", ["t"], ["s"], {}),
        ("Cast", ["s"], ["s4"], {"to": 6}),
        ("Slice", ["s4", "zero", "first"], ["T1"], {}),
        ("Squeeze", ["T1", "zero"], ["T"], {}),
        ("Slice", ["s4", "first", "second"], ["N"], {}),
        ("Concat", ["N", "four"], ["dims4"], {"axis": 0}),
        ("Cast", ["dims4"], ["dims"], {"to": 7}),
        ("Expand", ["nought", "dims"], ["h0"], {}),
        ("Cast", ["T"], ["trips"], {"to": 7}),
        ("Less", ["start", "T"], ["some"], {}),
        ("Loop", ["trips", "some", "start", "h0", "T"], ["l0", "last", "l2", "steps"], {"body": body}),
        ("Transpose", ["steps"], ["all"], {"perm": [1, 0, 2]}),
        ("Slice", ["steps", "minus", "end", "zero"], ["ls"], {}),
        ("Squeeze", ["ls", "zero"], ["y"], {}),
    ]
    random = np.random.default_rng(6)
    arrays = {
        "w": real(random, 3, 4),
        "r": real(random, 4, 4),
        "nought": np.array(0, np.float32),
        "one": np.array(1, np.int32),
        "start": np.array(0, np.int32),
        "zero": np.array([0]),
        "first": np.array([1]),
        "second": np.array([2]),
        "four": np.array([4], np.int32),
        "minus": np.array([-1]),
        "end": np.array([2147483647]),
    }
    return model_of(operators, {"x": ["n", steps, 3]}, ["y", "all", "last"], arrays, opset=15)


@pytest.mark.parametrize("steps", ["time", 6])
@pytest.mark.parametrize("output", ["y", "all", "last"])
def test_a_loop_over_the_steps_of_sequences(steps, output, tmp_path):
    network = assert_same(keras_cell(steps), tmp_path, {"x": real(np.random.default_rng(7), 2, 6, 3)}, output)
    assert sum(node.operation == "PastValue" for node in network.nodes.values()) >= 1  # not one copy for each step


def test_a_loop_that_counts_otherwise_is_refused(tmp_path):
    model = keras_cell("time")
    body = next(one.g for node in model.graph.node for one in node.attribute if one.name == "body")
    body.node[0].op_type = "Sub"
    with pytest.raises(UserError, match="the number of a step can be compared"):
        loaded(model, tmp_path)


def test_a_loop_of_a_fixed_number_of_times(tmp_path):
    """Its body is computed three times; the values of all times are joined."""
    info, node = helper.make_tensor_value_info, helper.make_node
    body = helper.make_graph(
        [
            node("Cast", ["i"], ["f"], to=1),
            node("Add", ["v", "f"], ["a"]),
            node("Tanh", ["a"], ["next"]),
            node("Identity", ["c"], ["go"]),
            node("Identity", ["next"], ["out"]),
        ],
        "body",
        [info("i", 7, []), info("c", 9, []), info("v", 1, None)],
        [info("go", 9, []), info("next", 1, None), info("out", 1, None)],
    )
    operators = [
        ("Loop", ["three", "", "x"], ["last", "every"], {"body": body}),
        ("Transpose", ["every"], ["y"], {"perm": [1, 0, 2]}),
    ]
    model = model_of(operators, {"x": ["n", 2]}, ["y", "last"], {"three": np.array(3)}, opset=15)
    for output in ("y", "last"):
        assert_same(model, tmp_path, {"x": real(np.random.default_rng(8), 4, 2)}, output)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(1 << 40), "three"))
    with pytest.raises(UserError, match="nor a number up to 256"):
        loaded(model, tmp_path)


@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("batch", ["n", 3])
def test_recurrent_layers_of_a_fixed_number_of_steps(kind, gates, batch, tmp_path):
    """As PyTorch writes them unless it is told that the number of steps varies."""
    random = np.random.default_rng(9)
    operators = [
        ("Transpose", ["x"], ["t"], {"perm": [1, 0, 2]}),
        (kind, ["t", "w", "r", "b", "", "h0"], ["s"], {"hidden_size": 5}),
        ("Transpose", ["s"], ["u"], {"perm": [2, 0, 1, 3]}),
        ("Reshape", ["u", "dims"], ["y"], {}),
    ]
    arrays = {
        "w": real(random, 1, gates * 5, 4),
        "r": real(random, 1, gates * 5, 5),
        "b": real(random, 1, 2 * gates * 5),
        "h0": np.zeros((1, 3, 5), np.float32),
        "dims": np.array([-1, 7, 5]),
    }
    model = model_of(operators, {"x": [batch, 7, 4]}, ["y"], arrays, opset=17)
    assert_same(model, tmp_path, {"x": real(random, 3, 7, 4)})


def test_heads_of_a_fixed_number_of_steps(tmp_path):
    """Products of matrices for each head, and a Gemm of rows of all samples, as PyTorch's attention has them."""
    random = np.random.default_rng(10)
    operators = [
        ("Transpose", ["x"], ["t"], {"perm": [1, 0, 2]}),
        ("Reshape", ["t", "split"], ["q0"], {}),
        ("Transpose", ["q0"], ["q1"], {"perm": [1, 0, 2]}),
        ("Reshape", ["q1", "heads"], ["q"], {}),
        ("Transpose", ["q"], ["k"], {"perm": [0, 1, 3, 2]}),
        ("MatMul", ["q", "k"], ["scores"], {}),
        ("Softmax", ["scores"], ["shares"], {"axis": -1}),
        ("MatMul", ["shares", "q"], ["seen"], {}),
        ("Transpose", ["seen"], ["turned"], {"perm": [2, 0, 1, 3]}),
        ("Reshape", ["turned", "rows"], ["flat"], {}),
        ("Gemm", ["flat", "w", "b"], ["out"], {"transB": 1}),
        ("Reshape", ["out", "whole"], ["back"], {}),
        ("Transpose", ["back"], ["y"], {"perm": [1, 0, 2]}),
    ]
    arrays = {
        "split": np.array([5, 6, 2]),
        "heads": np.array([3, 2, 5, 2]),
        "rows": np.array([15, 4]),
        "whole": np.array([5, 3, 4]),
        "w": real(random, 4, 4),
        "b": real(random, 4),
    }
    model = model_of(operators, {"x": [3, 5, 4]}, ["y"], arrays, opset=17)
    assert_same(model, tmp_path, {"x": real(random, 3, 5, 4)})


# ---- ai.onnx.ml, outputs


def ml_model(operators, outputs, opset=None, initialisers=()):
    nodes = [
        helper.make_node(kind, ins, outs, domain=domain, **attributes)
        for domain, kind, ins, outs, attributes in operators
    ]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 4])], results, list(initialisers)
    )
    versions = [helper.make_opsetid(ML, 1)] + ([helper.make_opsetid("", opset)] if opset else [])
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


def classifier(classes, rows, labels, transform="SOFTMAX"):
    random = np.random.default_rng(11)
    attributes = {
        labels: list("abc")[:classes] if labels.endswith("strings") else list(range(classes)),
        "coefficients": random.normal(size=4 * rows).tolist(),
        "intercepts": random.normal(size=rows).tolist(),
        "post_transform": transform,
    }
    scaler = (ML, "Scaler", ["x"], ["s"], {"offset": [1.0, 0.5, 0.0, -1.0], "scale": [2.0, 1.0, 0.5, 1.0]})
    linear = (ML, "LinearClassifier", ["s"], ["label", "scores"], attributes)
    normal = (ML, "Normalizer", ["scores"], ["y"], {"norm": "L1"})
    kind = 8 if labels.endswith("strings") else 7
    return ml_model([scaler, linear, normal], {"label": kind, "y": 1})


CLASSIFIERS = {
    "integers": (3, 3, "classlabels_ints"),
    "texts": (3, 3, "classlabels_strings"),
    "two classes": (2, 1, "classlabels_ints", "LOGISTIC"),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_of_a_classifier(name, tmp_path, caplog):
    network = assert_same(classifier(*CLASSIFIERS[name]), tmp_path, {"x": real(np.random.default_rng(12), 5, 4)})
    assert [node.name for node in network.groups["output"]] == ["y"]
    assert "the output 'label' of" in caplog.text and "is left out" in caplog.text
    with pytest.raises(UserError, match="'label' could not be read from the model: it is not supported: the label"):
        network.find("label")


@pytest.mark.parametrize("norm", ["L1", "L2", "MAX"])
def test_a_model_that_has_operators_of_ai_onnx_ml_only(norm, tmp_path):
    model = ml_model([(ML, "Normalizer", ["x"], ["y"], {"norm": norm})], {"y": 1})
    assert_same(model, tmp_path, {"x": np.abs(real(np.random.default_rng(13), 3, 4))})


def test_a_linear_regression(tmp_path):
    attributes = {"coefficients": [1.0, -2.0, 0.5, 3.0] * 2, "intercepts": [0.25, 1.0], "targets": 2}
    model = ml_model([(ML, "LinearRegressor", ["x"], ["y"], attributes)], {"y": 1})
    assert_same(model, tmp_path, {"x": real(np.random.default_rng(13), 3, 4)})


def test_other_operators_of_ai_onnx_ml_are_named_with_their_domain(tmp_path):
    model = ml_model([(ML, "TreeEnsembleRegressor", ["x"], ["y"], {})], {"y": 1})
    with pytest.raises(UserError, match=r"ai.onnx.ml.TreeEnsembleRegressor 'y': operators of other domains are not"):
        loaded(model, tmp_path)


def test_a_table_of_texts_hinders_its_own_output_only(tmp_path):
    """As skl2onnx writes a classifier of another kind: the number of the class picks its name."""
    names = helper.make_tensor("names", onnx.TensorProto.STRING, [4], [b"a", b"b", b"c", b"d"])
    operators = [
        ("", "Softmax", ["x"], ["y"], {"axis": -1}),
        ("", "ArgMax", ["y"], ["at"], {"axis": 1, "keepdims": 0}),
        (ML, "ArrayFeatureExtractor", ["names", "at"], ["label"], {}),
    ]
    model = ml_model(operators, {"label": 8, "y": 1}, 17, [names])
    x = real(np.random.default_rng(14), 3, 4)
    shares = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    network = assert_same(model, tmp_path, {"x": x}, expected=shares)
    with pytest.raises(UserError, match="'names' has elements of type string"):
        network.find("label")


def test_without_any_output_that_can_be_read_all_operators_are_named(tmp_path):
    """Those that take the result of a refused one, too; of each kind the first one and how many there are."""
    operators = [
        ("Einsum", ["x"], ["e1"], {"equation": "ij->ij"}),
        ("Einsum", ["e1"], ["e2"], {"equation": "ij->ij"}),
        ("Det", ["e2"], ["d"], {}),
        ("Relu", ["d"], ["r"], {}),
        ("Einsum", ["r"], ["y"], {"equation": "ij->ij"}),
    ]
    with pytest.raises(UserError) as error:
        loaded(model_of(operators, {"x": ["n", 3]}, ["y"], {}), tmp_path)
    assert str(error.value).splitlines()[1:] == [
        "  Einsum 'e1' and 2 more: this operator is not supported",
        "  Det 'd': this operator is not supported",
    ]
    assert "because of 4 operators:" in str(error.value)


def test_export_of_one_output(tmp_path, capsys):
    from cntkpy.commands.tools.export import Asked, export_file
    from cntkpy.networks.onnx.export import Settings

    path = tmp_path / "c.onnx"
    path.write_bytes(as_bytes(classifier(3, 3, "classlabels_ints")))
    assert export_file(Asked(str(path), str(tmp_path / "o.onnx"), Settings(("y",)))) == 0
    assert load_model(tmp_path / "o.onnx").groups["output"][0].name == "y"
    with pytest.raises(UserError, match="'label' could not be read from the model"):
        export_file(Asked(str(path), str(tmp_path / "o.onnx"), Settings(("label",))))
