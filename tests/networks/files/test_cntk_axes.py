"""Operations along any axis, from CNTK's model files."""

import cntk_v1_writer as w
import cntk_v2_writer as v
import numpy as np
import pytest
from cntk_models import assert_all_close

from cntkpy.networks.files.cntk_binary.load import read_cntk

RANDOM = np.random.default_rng(21)
X = RANDOM.normal(size=(4, 3, 2, 5))
"""Four cells of shape [3 x 2 x 5]."""


def first(operation, body, version=30, links="x"):
    f = w.Writer(version, "double")
    f.input("x", 3, 2, 5)
    f.node(operation, "z", body, links)
    return f.content


def later(op, *extra, **attributes):
    f = v.Writer(double=True)
    f.input("x", 3, 2, 5)
    f.function(op, "F", "Input_x", *extra, name="z", **attributes)
    return f.content("F")


def test_slices():
    contents = [
        first("Slice", w.i32(1) + w.i64(1, -3) + w.i32(3, 1)),
        later(14, axis=v.static(2), beginIndex=v.Int(1), endIndex=v.Int(-2), sliceStrides=v.Int(1)),
        later(14, axis=v.static(-1), beginIndex=v.Int(-4), endIndex=v.Int(3), sliceStrides=v.Int(1)),
    ]
    assert_all_close(contents, {"x": X}, X[:, :, :, 1:3])


def test_stacks():
    contents = [first("RowStack", w.i32(3), links="x x"), later(43, "Input_x", axis=v.static(-1))]
    assert_all_close(contents, {"x": X}, np.concatenate([X, X], axis=3))


def test_transposed():
    contents = [first("TransposeDimensions", w.i32(1, 3)), later(12, axis1=v.static(0), axis2=v.static(-1))]
    assert_all_close(contents, {"x": X}, X.swapaxes(1, 3))
    contents = [
        first("TransposeDimensions", w.i32(0, 0) + w.u64(3, 2, 0, 1)),
        later(12, axisVec=[v.static(2), v.static(0), v.static(1)]),
        later(12, axisVec=[v.static(-1), v.static(0), v.static(-2)]),
    ]
    assert_all_close(contents, {"x": X}, X.transpose(0, 3, 1, 2))


def test_reshaped():
    expected = np.stack([cell.reshape((3, 10), order="F") for cell in X])
    contents = [
        first("Reshape", w.i32(2, 0) + w.shape(0)),
        first("Reshape", w.i32(2, 4) + w.shape(10)),
        later(16, newShape=v.Shape((v.INFERRED,)), beginAxis=v.static(1), endAxis=v.END),
        later(16, newShape=v.Shape((10,)), beginAxis=v.static(-2), endAxis=v.END),
        later(16, newShape=v.Shape((3, 10))),
    ]
    assert_all_close(contents, {"x": X}, expected)
    four = np.stack([cell.reshape((3, 2, 5, 1), order="F").swapaxes(2, 3) for cell in X])
    assert_all_close([later(16, newShape=v.Shape((3, 2, 1, 5)))], {"x": X}, four)


REDUCTIONS = {
    "Sum": np.sum,
    "Mean": np.mean,
    "Max": np.max,
    "Min": np.min,
    "LogSum": lambda x, axis, keepdims=True: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    function = REDUCTIONS[name]
    one = [
        first("ReduceElements", w.i32(1, 2) + w.text(name) + w.boolean(True)),
        first("ReduceElements", w.i32(2) + w.text(name), 23),
        later(39, axis=v.static(1), reductionOpName=name, reductionKeepDimensions=True),
        later(39, axisVec=[v.static(-2)], reductionOpName=name, reductionKeepDimensions=True),
    ]
    assert_all_close(one, {"x": X}, function(X, axis=2, keepdims=True))
    dropped = [
        first("ReduceElements", w.i32(1, 2) + w.text(name) + w.boolean(False)),
        later(39, axis=v.static(1), reductionOpName=name, reductionKeepDimensions=False),
    ]
    assert_all_close(dropped, {"x": X}, function(X, axis=2, keepdims=False))
    two = [
        first("ReduceElements", w.i32(2, 3, 1) + w.text(name) + w.boolean(True)),
        later(39, axisVec=[v.static(0), v.static(2)], reductionOpName=name, reductionKeepDimensions=True),
    ]
    assert_all_close(two, {"x": X}, function(X, axis=(1, 3), keepdims=True))
    whole = [
        first("ReduceElements", w.i32(1, 0) + w.text(name) + w.boolean(False)),
        later(39, axis=v.ALL_STATIC, reductionOpName=name, reductionKeepDimensions=False),
    ]
    assert_all_close(whole, {"x": X}, function(X, axis=(1, 2, 3), keepdims=False)[:, None])


def test_products_of_higher_rank():
    weights = RANDOM.normal(size=(4, 2, 3, 2))
    f = v.Writer(double=True)
    f.input("x", 3, 2, 5)
    f.function(31, "F", f.parameter("W", weights), "Input_x", name="z", outputRank=2)
    g = w.Writer(30, "double")
    g.input("x", 3, 2, 5)
    g.parameter("W", weights.reshape(4, -1, order="F"), *weights.shape)
    g.node("Times", "z", w.u64(2) + w.i32(-1), "W x")
    expected = np.einsum("abij,tijk->tabk", weights, X)
    assert_all_close([f.content("F"), g.content], {"x": X}, expected)


def test_initial_states_that_are_trained():
    f = v.Writer(double=True)
    f.input("x", 2)
    f.parameter("start", [0.5, -1])
    f.placeholder("Plus2_Output_0", 2)
    f.function(37, "Past1", "Plus2_Output_0", "Parameter_start", offset=1)
    f.function(19, "Plus2", "Input_x", "Past1_Output_0", name="z")
    x = RANDOM.normal(size=(5, 2))
    assert_all_close([f.content("Plus2")], {"x": x}, np.cumsum(x, axis=0) + np.array([0.5, -1]))
    network = read_cntk(f.content("Plus2"))
    assert [node.name for node in network["Past1"].connected] == ["z", "start"]


def test_pass_keeps_its_name():
    f = w.Writer(30)
    f.input("x", 3)
    f.node("Pass", "z", inputs="x")
    f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
    network = read_cntk(f.content)
    assert [node.name for node in network.groups["output"]] == ["z"]
