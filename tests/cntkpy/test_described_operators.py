"""Operators of several nodes have the name, the operands and the attributes of CNTK's operation (P30, W2)."""

from pathlib import Path

import numpy as np
import pytest

import cntkpy.compat.cntk as C

X = C.input_variable((2, 3, 4), name="x")
V = C.input_variable(3, name="v")
S = C.sequence.input_variable(3, name="s")
PICTURE = C.input_variable((1, 4, 4), name="picture")

OPERATIONS = {
    "Slice": (C.slice(X, 1, 0, 2), ["x"], {"axis": 1, "beginIndex": 0, "endIndex": 2}),
    "Slice of two axes": (C.slice(X, [0, 2], [0, 1], [1, 3]), ["x"], {"beginIndexVec": [0, 1], "endIndexVec": [1, 3]}),
    "ReduceElements": (C.reduce_max(X), ["x"], {"reductionOpName": "Max", "reductionKeepDimensions": True}),
    "ReduceElements of two axes": (C.reduce_sum(X, (0, 1), False), ["x"], {"reductionKeepDimensions": False}),
    "ReduceElements by argmin": (C.argmin(X, 0), ["x"], {"axis": 0, "reductionOpName": "Argmin"}),
    "TransposeAxes": (C.transpose(X, (1, 2, 0)), ["x"], {"axisVec": (1, 2, 0)}),
    "Reshape": (C.reshape(X, (6, 4)), ["x"], {"newShape": (6, 4)}),
    "Splice": (C.splice(V, V * 1, axis=0), ["v", ""], {"axis": 0}),
    "Pad": (
        C.pad(X, [(1, 1), (0, 0), (0, 0)]),
        ["x"],
        {"paddingMode": C.CONSTANT_PAD, "paddingHead": [1, 0, 0], "paddingConstantValue": 0.0},
    ),
    "OneHotOp": (C.one_hot(V, 5), ["v"], {"numClass": 5}),
    "ELU": (C.elu(V, 2.0), ["v"], {"alpha": 2.0}),
    "CosDistance": (C.cosine_distance(V, V * 1), ["v", ""], {}),
    "RandomDistribution": (C.random.normal_like(V, seed=4), ["v"], {"rngSeed": 4}),
    "Cast": (C.cast(V, np.float64), ["v"], {"newDataType": "float64"}),
    "Ceil": (C.ceil(V), ["v"], {}),
    "Round": (C.round(V), ["v"], {}),
    "ConstantOp": (C.zeros_like(V), ["v"], {"fillValue": 0.0}),
    "ConstantOp of ones": (C.ones_like(V), ["v"], {"fillValue": 1.0}),
    "EyeLikeOp": (C.eye_like(V), ["v"], {"outputSparse": True}),
    "LeakyReLU": (C.leaky_relu(V, 0.3), ["v"], {"alpha": 0.3}),
    "SELU": (C.selu(V), ["v"], {}),
    "HardSigmoid": (C.hard_sigmoid(V, 0.2, 0.5), ["v"], {"alpha": 0.2, "beta": 0.5}),
    "PReLU": (C.param_relu(C.constant([1.0, 2.0, 3.0], name="a"), V), ["a", "v"], {}),
    "Softmax": (C.softmax(X, axis=1), ["x"], {"axis": 1}),
    "LogSoftmax": (C.log_softmax(X, axis=1), ["x"], {"axis": 1}),
    "Logistic": (C.binary_cross_entropy(V, V * 1), ["v", ""], {}),
    "Squeeze": (C.squeeze(PICTURE, 0), ["picture"], {"axisVec": 0}),
    "TransposeAxes of two": (C.swapaxes(X, 0, 2), ["x"], {"axis1": 0, "axis2": 2}),
    "DepthToSpace": (C.depth_to_space(C.input_variable((4, 2, 2), name="d"), 2), ["d"], {"blockSize": 2}),
    "SpaceToDepth": (C.space_to_depth(PICTURE, 2), ["picture"], {"blockSize": 2}),
    "MeanVarianceNormalization": (C.mean_variance_normalization(PICTURE, 0.1), ["picture"], {"epsilon": 0.1}),
    "LocalResponseNormalization": (
        C.local_response_normalization(X, 1, 2.0, 3.0, 4.0),
        ["x"],
        {"depthRadius": 1, "bias": 2.0, "alpha": 3.0, "beta": 4.0},
    ),
    "ROIPooling": (
        C.roipooling(PICTURE, C.input_variable((2, 4), name="r"), C.MAX_POOLING, (2, 2), 0.5),
        ["picture", "r"],
        {"roiOutputShape": (2, 2), "spatialScale": 0.5, "poolingType": C.MAX_POOLING},
    ),
    "OptimizedRNNStack": (
        C.optimized_rnnstack(S, C.parameter((C.InferredDimension, 2), name="w"), 2, 1),
        ["s", "w"],
        {"hiddenSize": 2, "numLayers": 1, "bidirectional": False, "recurrentOp": "lstm"},
    ),
    "RandomDistribution of a shape": (
        C.random.uniform((2,), low=1, high=2, seed=5),
        [""],
        {"randomDistributionType": "uniform", "randomDistributionArgs": [1.0, 2.0], "rngSeed": 5},
    ),
    "Sequence::Slice": (C.sequence.slice(S, 1, 3), ["s"], {"beginIndex": 1, "endIndex": 3}),
    "Sequence::First": (C.sequence.first(S), ["s"], {}),
    "Sequence::Last": (C.sequence.last(S), ["s"], {}),
    "Sequence::IsFirst": (C.sequence.is_first(S), ["s"], {}),
    "Sequence::BroadcastAs": (C.sequence.broadcast_as(V, S), ["v", "s"], {}),
    "Sequence::Gather": (C.sequence.gather(S, C.sequence.is_first(S)), ["s", ""], {}),
    "Sequence::ReduceElements": (C.sequence.reduce_max(S), ["s"], {"reductionOpName": "Max"}),
    "Sequence::Softmax": (C.sequence.softmax(S), ["s"], {}),
    "Where": (C.sequence.where(C.input_variable((), name="n", dynamic_axes=S.dynamic_axes)), ["n"], {}),
    "ForwardBackward": (
        C.forward_backward(C.labels_to_graph(S), C.sequence.input_variable(3, name="z"), 2, 3),
        ["", "z"],
        {"blankTokenId": 2, "delayConstraint": 3},
    ),
    "EditDistanceError": (C.edit_distance_error(S, S * 1, 1, 2, 3), ["s", ""], {"deletionPenalty": 2}),
    "Crop": (C.crop_manual(PICTURE, C.input_variable((1, 2, 2), name="r"), 1, 2), ["picture", "r"], {"offset": [1, 2]}),
    "Unpooling": (
        C.unpooling(C.pooling(PICTURE, C.MAX_POOLING, (2, 2), (2, 2)), PICTURE, C.MAX_UNPOOLING, (2, 2), (2, 2)),
        ["", "picture"],
        {"unpoolingWindowShape": (2, 2), "strides": (2, 2)},
    ),
    "TransposeTimes": (C.times_transpose(V, V * 1), ["v", ""], {"outputRank": 1}),
    "Dropout": (C.dropout(V, 0.25, seed=7), ["v"], {"dropoutRate": 0.25, "rngSeed": 7, "rngOffset": 0}),
    "RandomSample": (C.random_sample(C.constant([1.0, 2.0], name="c"), 3, True), ["c"], {"allowDuplicates": True}),
    "ElementMax": (C.element_max(V, [1, 2, 3]), ["v", ""], {}),
    "ElementMin": (C.element_min(V, V * 2), ["v", ""], {}),
    "Sin": (C.sin(V), ["v"], {}),
    "LogPlus": (C.log_add_exp(V, V * 1), ["v", ""], {}),
    "PastValue": (C.sequence.delay(S, time_step=3), ["s"], {"offset": 3}),
    "Pooling": (
        C.pooling(PICTURE, C.MAX_POOLING, (2, 3), (1, 2)),
        ["picture"],
        {"poolingType": C.MAX_POOLING, "poolingWindowShape": (2, 3), "strides": (1, 2), "includePad": False},
    ),
    "Convolution": (
        C.convolution(C.constant(1.0, (1, 1, 2, 2), name="w"), PICTURE, strides=(1, 2)),
        ["w", "picture"],
        {"groups": 1, "dilation": (1, 1, 1), "transpose": False},
    ),
}


@pytest.mark.parametrize("case", OPERATIONS)
def test_an_operation_has_the_name_operands_and_attributes_of_cntk(case: str) -> None:
    function, operands, attributes = OPERATIONS[case]
    root = function.root_function
    assert root.op_name == case.partition(" ")[0]
    assert [operand.name for operand in root.inputs] == operands
    assert {key: root.attributes[key] for key in attributes} == attributes


def test_attributes_are_those_of_cntk() -> None:
    for function in (C.tan(V), C.log_add_exp(V, V * 1), C.sinh(V), C.unpack_batch(V)):
        assert function.root_function.attributes == {}


def test_copies_and_deferred_operators_are_described_too() -> None:
    hole, other = C.placeholder(), C.input_variable((2, 3, 4), name="other")
    late = C.reduce_sum(hole, (0, 1)).replace_placeholders({hole: X})
    copy = C.slice(X, 1, 0, 2).clone("share", {X: other})
    assert late.root_function.op_name == "ReduceElements"
    assert [copy.root_function.op_name, copy.root_function.inputs[0].name] == ["Slice", "other"]
    np.testing.assert_array_equal(copy.eval({other: np.ones((1, 2, 3, 4))}), np.ones((1, 2, 2, 4)))


@pytest.mark.parametrize("case", ["LeakyReLU", "Slice", "ReduceElements by argmin", "ElementMin", "Sequence::Last"])
def test_model_files_keep_operations(case: str, tmp_path: Path) -> None:
    function = OPERATIONS[case][0]
    function.save(str(tmp_path / "model"))
    loaded = C.load_model(str(tmp_path / "model"))
    assert loaded.root_function.op_name == function.root_function.op_name
    assert loaded.root_function.attributes == function.root_function.attributes
    assert [x.name for x in loaded.root_function.inputs] == [x.name for x in function.root_function.inputs]


def test_a_criterion_with_a_constant_target_is_saved(tmp_path: Path) -> None:
    f = C.cross_entropy_with_softmax(V, [1, 0, 0])
    f.save(str(tmp_path / "model"))
    value = C.load_model(str(tmp_path / "model")).eval(np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(value, [np.log(3)] * 2, rtol=1e-6)


def test_variables_and_functions_as_texts() -> None:
    w, c = C.parameter((2, 3), name="w"), C.constant([1.0], name="c")
    assert list(map(str, (V, S, w, c, C.placeholder(name="p")))) == [
        "Input('v', [#], [3])",
        "Input('s', [#, *], [3])",
        "Parameter('w', [], [2 x 3])",
        "Constant('c', [], [1])",
        "Placeholder('p', [???], [???])",
    ]
    assert str(C.log(C.input_variable(1), name="f")) == "f: Log(Tensor[1]) -> Tensor[1]"
    assert str(C.combine([V + 1, S * 2])).endswith("-> Tuple[Tensor[3], Sequence[Tensor[3]]]")
