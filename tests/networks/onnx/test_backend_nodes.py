"""The tests of single operators that the package `onnx` has, for every operator that can be read.

A test has no parameters: all its inputs are data. Here the first axis of an input is the batch, or time and batch for
recurrent operators; inputs that have to be known become initialisers.
"""

import functools
import warnings
from collections import Counter

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.nodes.onnx_support.values import Array, Data
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.reading.load import RULES, build
from cntkpy.networks.onnx.reading.parse import NEWEST, read_model

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.thorough

QUICK = [
    *("add_bcast", "argmax_negative_axis_keepdims_random", "averagepool_2d_ceil", "averagepool_2d_same_lower"),
    *("batchnorm_epsilon", "basic_conv_with_padding", "conv_with_strides_and_asymmetric_padding", "concat_3d_axis_2"),
    *(
        "convtranspose_output_shape",
        "convtranspose_pads",
        "elu",
        "gemm_default_vector_bias",
        "gemm_transposeB",
        "globalaveragepool",
        "gru_batchwise",
    ),
    *(
        "hardsigmoid",
        "lrn",
        "lstm_with_initial_bias",
        "lstm_with_peepholes",
        "instancenorm_example",
        "layer_normalization_3d_axis1_epsilon",
        "matmul_2d",
        "maxpool_2d_ceil",
        "maxpool_2d_dilations",
        "mean_example",
        "prelu_broadcast",
    ),
    *(
        "reduce_l2_keep_dims_random",
        "reduce_log_sum_exp_keepdims_random",
        "rnn_seq_length",
        "selu",
        "simple_rnn_batchwise",
    ),
    *("slice_end_out_of_bounds", "softmax_axis_1", "softplus", "split_equal_parts_2d", "transpose_default"),
    *("unsqueeze_axis_2", "where_example"),
]
"""Tests that must be computed, each of another operator or attribute."""

LEAST = 380
"""Of the tests that must be computed."""


@functools.cache
def cases():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers that are too large for small types
        every = collect_testcases("")
    found = {}
    for case in every:
        kinds = {node.op_type for node in case.model.graph.node}
        arrays = all(isinstance(one, np.ndarray) for part in case.data_sets[0] for one in part)
        empty = arrays and any(0 in one.shape for part in case.data_sets[0] for one in part)
        training = any(node.op_type == "Dropout" and len(node.input) > 2 for node in case.model.graph.node)
        if kinds <= {*RULES, "Constant"} and arrays and not empty and not training and "_expanded" not in case.name:
            found[case.name.removeprefix("test_")] = case
    return found


def _moved(array, axes, times):
    """An array of these axes as `(T, S, ...)`."""
    words = [index for index, one in enumerate(axes) if isinstance(one, str)]
    rest = [index for index, one in enumerate(axes) if isinstance(one, int)]
    words.sort(key=lambda index: axes[index] not in times)
    turned = array.transpose(*words, *rest)
    return turned if len(words) == 2 else turned[None]


def _back(array, value, times):
    """`(T, S, ...)` as an array of the axes of a value."""
    words = [one for one in value.axes if isinstance(one, str)]
    array = array.reshape(*array.shape[:2], *value.dims)
    array = array if len(words) == 2 else array[0]
    words.sort(key=lambda one: one not in times)
    order = [words.index(one) if isinstance(one, str) else None for one in value.axes]
    rest = iter(range(len(words), array.ndim))
    return array.transpose([next(rest) if one is None else one for one in order])


FOUR_DIGITS = {"test_averagepool_2d_ceil_last_window_starts_on_pad"}
"""Cases whose expected values are written with four digits."""


def compute(case, known, folder, tolerance):
    """Raise AssertionError if the values are others, UserError if the operator is refused."""
    inputs, outputs = case.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for one in model.opset_import:
        one.version = min(one.version, NEWEST)
    names = [one.name for one in model.graph.input]
    given = dict(zip(names, inputs, strict=True))
    for name in known:
        model.graph.initializer.append(onnx.numpy_helper.from_array(given[name], name))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    network, graph = build(read_model(path), "model")
    times, data = graph.building.times, {}
    for name in names:
        if name in known:
            continue
        value = graph.values[name]
        array = given[name]
        if value.node.operation == "SparseInputValue":
            array = np.eye(value.dims[0])[array]
        data[name] = _moved(array, value.axes, times)
    wanted = [one.name for one in model.graph.output]
    batch = ours.minibatch(network, wanted, data) if times else Batch(data)
    found = ours.values(network, wanted, batch)
    for name, expected in zip(wanted, outputs, strict=True):
        value = graph.values[name]
        assert isinstance(value, Data | Array)
        got = value.value if isinstance(value, Array) else _back(found[name], value, times)
        np.testing.assert_allclose(got, expected.astype(np.float64), rtol=tolerance, atol=1e-5)


def outcome(case, folder):
    """ "computed", or why it is refused in the last of the ways to take its inputs."""
    names = [one.name for one in case.model.graph.input]
    why = ""
    for known in ((), names[1:], names[:1]):
        try:
            compute(case, known, folder, 1e-3 if case.name in FOUR_DIGITS else 1e-4)
        except UserError as problem:
            why = str(problem)
        else:
            return "computed"
    return why


@pytest.mark.parametrize("name", QUICK)
def test_some(name, tmp_path):
    assert outcome(cases()[name], tmp_path) == "computed"


def test_all_that_are_not_refused_are_equal(tmp_path):
    found = Counter(outcome(case, tmp_path) == "computed" for case in cases().values())
    assert found[True] >= LEAST, found
