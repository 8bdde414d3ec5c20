"""What the public documentation of CNTK 2.7's operators, losses and metrics says that they give.

Each case says in our own words, with our own data, what an example of the documentation computes; expected values come
from NumPy. Shapes, types of elements and the order of arguments are those of the documentation.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C

F = np.float32
SAMPLES = np.array([[[5, 1], [20, 2]], [[30, 1], [40, 2]], [[55, 1], [60, 2]]], F)
ROWS = [[3, 8], [9, 4], [7, 7.5]]
PICTURE = np.arange(25, dtype=F).reshape(1, 5, 5)
SMALL = np.arange(9, dtype=F).reshape(1, 3, 3)
CORNERS = np.array([[[2, -1], [-1, 2]]], F)
SQUARE = np.arange(16, dtype=F).reshape(1, 4, 4)
STEPS = np.arange(24, dtype=F).reshape(1, 4, 3, 2)


def data(array: Any, make: Callable[[Any], Any], **options: Any) -> Any:
    """The value of a function of an input for a minibatch `array`."""
    array = np.asarray(array, F)
    x = C.input_variable(array.shape[1:], **options)
    return make(x).eval({x: array})


def steps(make: Callable[[Any], Any]) -> Any:
    """The value of a function of a sequence of four steps."""
    x = C.sequence.input_variable((3, 2))
    return make(x).eval({x: STEPS})


def slid() -> np.ndarray[Any, Any]:
    """The picture times the corners of each window of 2 x 2."""
    p = PICTURE[0]
    return (2 * p[:-1, :-1] - p[:-1, 1:] - p[1:, :-1] + 2 * p[1:, 1:])[None, None]


def spread() -> np.ndarray[Any, Any]:
    """Each element of the small picture times the corners, added up."""
    made = np.zeros((1, 1, 4, 4))
    for row, column in np.ndindex(3, 3):
        made[0, 0, row : row + 2, column : column + 2] += SMALL[0, row, column] * CORNERS[0]
    return made


def selu(x: Any) -> Any:
    x = np.asarray(x, float)
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1))


X = [[-1, -0.5, 0, 1, 2]]
E5 = np.eye(5)
OUTER = np.arange(8.0).reshape(2, 2, 2)

VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "abs": (lambda: C.abs([-4, 4, -1.5]).eval(), [4, 4, 1.5]),
    "acos": (lambda: C.acos([[1, 0.5], [-0.25, -0.75]]).eval(), np.arccos([[1, 0.5], [-0.25, -0.75]])),
    "asin": (lambda: C.asin([[1, 0.5], [-0.25, -0.75]]).eval(), np.arcsin([[1, 0.5], [-0.25, -0.75]])),
    "atan": (lambda: C.atan([-1, 0, 1]).eval(), np.arctan([-1, 0, 1])),
    "asinh": (lambda: C.asinh([[1, 0.5], [-0.25, -0.75]]).eval(), np.arcsinh([[1, 0.5], [-0.25, -0.75]])),
    "atanh": (lambda: C.atanh([[0.9, 0.5], [-0.25, -0.75]]).eval(), np.arctanh([[0.9, 0.5], [-0.25, -0.75]])),
    "cosh": (lambda: C.cosh([[1, 0.5]]).eval(), np.cosh([[1, 0.5]])),
    "sinh": (lambda: C.sinh([[1, 0.5]]).eval(), np.sinh([[1, 0.5]])),
    "tan": (lambda: C.tan([-1, 0, 1]).eval(), np.tan([-1, 0, 1])),
    "tanh": (lambda: C.tanh([[1, 2], [3, 4]]).eval(), np.tanh([[1, 2], [3, 4]])),
    "argmax of columns": (lambda: C.argmax(ROWS, 0).eval(), [[1, 0]]),
    "argmax of rows": (lambda: C.argmax(ROWS, 1).eval(), [[1], [0], [1]]),
    "argmin of columns": (lambda: C.argmin(ROWS, 0).eval(), [[0, 1]]),
    "argmin of rows": (lambda: C.argmin(ROWS, 1).eval(), [[0], [1], [0]]),
    "ceil": (lambda: C.ceil([0.2, 1.3, 4, 5.5, 0]).eval(), [1, 2, 4, 6, 0]),
    "ceil of a matrix": (lambda: C.ceil(arg=[[0.6, 3.3], [-1.9, 5.6]]).eval(), [[1, 4], [-1, 6]]),
    "floor": (lambda: C.floor([-5.5, -4.2, -3, -0.7, 0]).eval(), [-6, -5, -3, -1, 0]),
    "floor of a matrix": (lambda: C.floor(arg=[[0.6, 3.3], [1.9, 5.6]]).eval(), [[0, 3], [1, 5]]),
    "round": (lambda: C.round([0.2, 1.3, 4, 5.5, 0]).eval(), [0, 1, 4, 6, 0]),
    "round goes up from halves": (lambda: C.round(arg=[-5.5, -4.2, -0.7]).eval(), [-5, -4, -1]),
    "clip": (lambda: C.clip([1, 2.1, 3, 4.1], 2.0, 4.0).eval(), [2, 2.1, 3, 4]),
    "clip by arrays": (
        lambda: C.clip([-10, -5, 0, 5, 10], [-5, -4, 0, 3, 5], [5, 4, 1, 4, 9]).eval(), [-5, -4, 0, 4, 9],
    ),
    "convolution": (lambda: data(PICTURE[None], lambda x: C.convolution(CORNERS, x, auto_padding=[False])), slid()),
    "convolution_transpose": (
        lambda: data(SMALL[None], lambda x: C.convolution_transpose(CORNERS, x, auto_padding=[False])), spread(),
    ),
    "depth_to_space": (
        lambda: data(np.tile(np.arange(8.0).reshape(1, 8, 1, 1), (1, 1, 2, 3)), lambda x: C.depth_to_space(x, 2)),
        [[np.tile([[0, 2], [4, 6]], (2, 3)), np.tile([[1, 3], [5, 7]], (2, 3))]],
    ),
    "space_to_depth": (
        lambda: data(np.arange(24.0).reshape(1, 1, 4, 6), lambda x: C.space_to_depth(x, block_size=2)),
        np.stack([np.arange(24.0).reshape(4, 6)[i::2, j::2] for i in (0, 1) for j in (0, 1)])[None],
    ),
    "dropout drops nothing in eval": (lambda: C.dropout(ROWS, 0.5).eval(), ROWS),
    "element_divide": (lambda: C.element_divide([1, 1, 1, 1], [0.5, 0.25, 0.125, 0]).eval(), [2, 4, 8, 0]),
    "element_divide by one": (lambda: C.element_divide([5, 10, 15, 30], [2]).eval(), [2.5, 5, 7.5, 15]),
    "element_max": (lambda: C.element_max([1, 2, 0], [3, 1, 0]).eval(), [3, 2, 0]),
    "element_min": (lambda: C.element_min([1, 2, 0], [3, 1, 0], [2, 2, -1]).eval(), [1, 1, -1]),
    "element_select": (
        lambda: C.element_select([-10, -1, 0, 0.3, 100], [1, 2, 3, 4, 5], [6, 7, 8, 9, 10]).eval(), [1, 2, 8, 4, 5],
    ),
    "element_times": (lambda: C.element_times([5, 10, 15, 30], [2], [1, 2, 1, 2]).eval(), [10, 40, 30, 120]),
    "truth values": (
        lambda: C.element_xor(C.element_and(x=[1, 1, 0], y=[1, 0, 1]), C.element_or(x=[0, 1, 0], y=[1, 0, 0])).eval(),
        [0, 1, 0],
    ),
    "elu": (lambda: C.elu(X).eval(), np.where(np.array(X) > 0, X, np.exp(X) - 1)),
    "selu": (lambda: C.selu(X).eval(), selu(X)),
    "leaky_relu": (lambda: C.leaky_relu(X).eval(), [[-0.01, -0.005, 0, 1, 2]]),
    "param_relu": (lambda: C.param_relu(C.constant(np.full((1, 5), 0.5, F)), X).eval(), [[-0.5, -0.25, 0, 1, 2]]),
    "relu": (lambda: C.relu(X).eval(), [[0, 0, 0, 1, 2]]),
    "softplus": (lambda: C.softplus(X, steepness=4).eval(), np.log1p(np.exp(4 * np.array(X))) / 4),
    "softsign": (lambda: C.softsign(X).eval(), np.array(X) / (1 + np.abs(X))),
    "hard_sigmoid": (lambda: C.hard_sigmoid([-2.5, -1.5, 1], 0.2, 0.5).eval(), [0, 0.2, 0.7]),
    "equal": (lambda: C.equal([-1, 0, 1], [1]).eval(), [0, 0, 1]),
    "greater": (lambda: C.greater([41, 42, 43], [42, 42, 42]).eval(), [0, 0, 1]),
    "less_equal": (lambda: C.less_equal([41, 42, 43], [42, 42, 42]).eval(), [1, 1, 0]),
    "expand_dims": (lambda: data(SAMPLES, lambda x: C.expand_dims(x, 1)), SAMPLES[:, :, None]),
    "eye_like": (lambda: C.eye_like(np.ones((3, 3), F), sparse_output=False).eval(), np.eye(3)),
    "flatten": (lambda: C.flatten(OUTER.astype(F), 1).eval(), OUTER.reshape(2, 4)),
    "flatten in front": (lambda: C.flatten(OUTER.astype(F), axis=0).eval(), OUTER.reshape(1, 8)),
    "gather": (
        lambda: data([[[0], [1]], [[4], [5]]], lambda x: C.gather(np.arange(12, dtype=F).reshape(6, 2), x)),
        np.arange(12).reshape(6, 2)[np.array([[[0], [1]], [[4], [5]]])],
    ),
    "hardmax": (lambda: C.hardmax([1, 3, 2, 3]).eval(), [0, 1, 0, 0]),
    "log_add_exp": (
        lambda: C.exp(C.log_add_exp(np.log(np.array([1, 2, 3], F)), np.log(np.array([1, 2, 5], F)))).eval(), [2, 4, 8],
    ),
    "log_softmax": (lambda: C.log_softmax([[1, 2, 3]]).eval(), [np.log(np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())]),
    "softmax": (lambda: C.softmax([[1, 1, 2, 3]]).eval(), [np.exp([1, 1, 2, 3]) / np.exp([1, 1, 2, 3]).sum()]),
    "softmax along an axis": (
        lambda: C.softmax([[[1, 1], [3, 5]]], axis=1).eval(),
        [np.exp([[1, 1], [3, 5]]) / np.exp([[1, 1], [3, 5]]).sum(0)],
    ),
    "minus": (lambda: C.minus([[1, 2], [3, 4]], 1).eval(), [[0, 1], [2, 3]]),
    "one_hot": (lambda: data([[1, 2], [4, 0]], lambda x: C.one_hot(x, 5)), [[E5[1], E5[2]], [E5[4], E5[0]]]),
    "one_hot in front": (
        lambda: data([[1, 2], [4, 0]], lambda x: C.one_hot(x, 5, False, axis=0)),
        [np.stack([E5[1], E5[2]], 1), np.stack([E5[4], E5[0]], 1)],
    ),
    "pad": (
        lambda: C.pad(ROWS, [(1, 1), (2, 2)], C.ops.CONSTANT_PAD, 1).eval(),
        np.pad(ROWS, [(1, 1), (2, 2)], constant_values=1),
    ),
    "pad by reflection": (
        lambda: C.pad(ROWS, pattern=[(1, 1), (1, 0)], mode=C.ops.REFLECT_PAD).eval(),
        np.pad(ROWS, [(1, 1), (1, 0)], "reflect"),
    ),
    "plus": (lambda: C.plus([-5, -4, -3], [10], [3, 2, 3], [-13], [+42], "several").eval(), [37, 37, 39]),
    "pooling by means": (
        lambda: data(SQUARE[None], lambda x: C.pooling(x, C.AVG_POOLING, (2, 2), (2, 2))),
        [[[[2.5, 4.5], [10.5, 12.5]]]],
    ),
    "pooling by maxima": (
        lambda: data(SQUARE[None], lambda x: C.pooling(x, C.MAX_POOLING, (2, 2), (2, 2))), [[[[5, 7], [13, 15]]]],
    ),
    "pow": (lambda: C.pow([1, 2, -2], [3, -2, 3]).eval(), [1, 0.25, -8]),
    "reciprocal": (lambda: C.reciprocal([-0.25, 0.2, -2]).eval(), [-4, 5, -0.5]),
    "reduce_max": (lambda: C.reduce_max(SAMPLES, 0).eval(), SAMPLES.max(0, keepdims=True)),
    "reduce_max of two axes": (lambda: C.reduce_max(SAMPLES, (0, 2)).eval(), SAMPLES.max((0, 2), keepdims=True)),
    "reduce_mean of the minibatch and an axis": (
        lambda: data(SAMPLES, lambda x: C.reduce_mean(x * 1.0, (C.Axis.default_batch_axis(), 1))),
        SAMPLES.mean((0, 2)).reshape(2, 1),
    ),
    "reduce_sum of the minibatch": (
        lambda: data(SAMPLES, lambda x: C.reduce_sum(x * 1.0, C.Axis.default_batch_axis())), SAMPLES.sum(0),
    ),
    "reduce_sum of everything": (
        lambda: data(SAMPLES, lambda x: C.reduce_sum(x * 1.0, C.Axis.all_axes())), SAMPLES.sum(),
    ),
    "reduce_sum without the axis": (lambda: C.reduce_sum(SAMPLES, axis=1, keepdims=False).eval(), SAMPLES.sum(1)),
    "reduce_prod": (lambda: C.reduce_prod(SAMPLES, 1).eval(), SAMPLES.prod(1, keepdims=True)),
    "reduce_l1": (lambda: C.reduce_l1([[-1, 2], [3, -4]], 1).eval(), [[3], [7]]),
    "reduce_l2": (lambda: C.reduce_l2([[3, 4], [6, 8]], -1).eval(), [[5], [10]]),
    "reduce_log_sum_exp": (
        lambda: C.reduce_log_sum_exp(np.log(SAMPLES), 0).eval(), np.log(SAMPLES.sum(0, keepdims=True)),
    ),
    "reshape": (
        lambda: data([[[[0, 1], [2, 3], [4, 5]]]], lambda x: C.reshape(x, (2, 3))), [[[0, 1, 2], [3, 4, 5]]],
    ),
    "slice": (lambda: data(SAMPLES, lambda x: C.slice(x, 0, 1, 2)), SAMPLES[:, 1:]),
    "slice of two axes": (lambda: data(SAMPLES, lambda x: C.slice(x, (0, 1), (1, 0), (2, 1))), SAMPLES[:, 1:, :1]),
    "slice with a stride": (lambda: data(SAMPLES, lambda x: C.slice(x, 1, 0, 2, -1)), SAMPLES[:, :, ::-1]),
    "splice": (
        lambda: C.splice(SAMPLES[:1], 10 * SAMPLES[1:2], axis=1).eval(),
        np.concatenate([SAMPLES[:1], 10 * SAMPLES[1:2]], 1),
    ),
    "squeeze": (lambda: data(np.ones((2, 2, 1, 3)), C.squeeze), np.ones((2, 2, 3))),
    "swapaxes": (lambda: C.swapaxes(SAMPLES, 1, 2).eval(), SAMPLES.swapaxes(1, 2)),
    "transpose": (lambda: C.transpose(STEPS[0], perm=(2, 0, 1)).eval(), STEPS[0].transpose(2, 0, 1)),
    "transpose by name": (lambda: C.transpose(STEPS[0], (1, 2, 0), "turned").eval(), STEPS[0].transpose(1, 2, 0)),
    "times": (lambda: C.times([[1, 2], [3, 4]], [[5], [6]]).eval(), [[17], [39]]),
    "times of two axes": (
        lambda: C.times(OUTER.astype(F), OUTER.astype(F), output_rank=1).eval(), np.tensordot(OUTER, OUTER, 2),
    ),
    "times of one axis": (
        lambda: C.times(OUTER.astype(F), OUTER.astype(F), output_rank=2).eval(), np.tensordot(OUTER, OUTER, 1),
    ),
    "times_transpose": (lambda: C.times_transpose([[1, 2], [3, 4]], [[5, 6], [7, 8]]).eval(), [[17, 23], [39, 53]]),
    "unpooling": (
        lambda: data(
            SQUARE[None],
            lambda x: C.unpooling(C.pooling(x, C.MAX_POOLING, (2, 2), (2, 2)), x, C.MAX_UNPOOLING, (2, 2), (2, 2)),
        ),
        [[[[0, 0, 0, 0], [0, 5, 0, 7], [0, 0, 0, 0], [0, 13, 0, 15]]]],
    ),
    "crop_manual": (
        lambda: data(SQUARE[None], lambda x: C.crop_manual(x, C.pooling(x, C.MAX_POOLING, (2, 2), (2, 2)), 1, 1)),
        [[[[5, 6], [9, 10]]]],
    ),
    "sequence.first": (lambda: steps(C.sequence.first), STEPS[:, 0]),
    "sequence.last": (lambda: steps(C.sequence.last), STEPS[:, 3]),
    "sequence.is_first": (lambda: steps(C.sequence.is_first)[0], [1, 0, 0, 0]),
    "sequence.past_value": (
        lambda: steps(C.sequence.past_value)[0], np.concatenate([np.zeros((1, 3, 2)), STEPS[0, :3]]),
    ),
    "sequence.gather": (
        lambda: steps(lambda x: C.sequence.gather(x, C.greater(C.reduce_sum(x), 60)))[0], STEPS[0, 2:],
    ),
    "sequence.scatter": (
        lambda: steps(lambda x: C.sequence.scatter(C.sequence.last(x), C.sequence.is_first(x)))[0],
        np.concatenate([STEPS[0, 3:], np.zeros((3, 3, 2))]),
    ),
    "sequence.broadcast_as": (
        lambda: steps(lambda x: C.sequence.broadcast_as(C.sequence.last(x), C.sequence.is_first(x)))[0],
        np.stack([STEPS[0, 3]] * 4),
    ),
    "sequence.where": (lambda: steps(lambda x: C.sequence.where(C.greater(C.reduce_sum(x), 60)))[0], [2, 3]),
    "sequence.reduce_sum": (lambda: steps(C.sequence.reduce_sum), STEPS.sum(1)),
    "cross_entropy_with_softmax": (
        lambda: C.cross_entropy_with_softmax([[1, 2, 3, 4]], [[0.35, 0.15, 0.05, 0.45]]).eval(),
        [[-(np.array([0.35, 0.15, 0.05, 0.45]) * np.log(np.exp([1, 2, 3, 4]) / np.exp([1, 2, 3, 4]).sum())).sum()]],
    ),
    "classification_error": (
        lambda: C.classification_error([[1, 2, 3, 4], [5, 8, 7, 6]], [[0, 0, 1, 0], [0, 1, 0, 0]], axis=1).eval(),
        0.5,
    ),
    "classification_error of the best two": (
        lambda: C.classification_error([[1, 2, 3, 4]], [[0, 0, 1, 0]], topN=2).eval(), [[0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.sampled
def test_value(name: str) -> None:
    compute, expected = VALUES[name]
    found: Any = compute()
    assert isinstance(found, np.ndarray | np.generic)
    assert found.dtype == F
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_sequences_of_two_vectors_have_a_distance_at_each_step() -> None:
    left, right = C.sequence.input_variable(2), C.sequence.input_variable(2)
    a = np.array([[[1, 0], [1, 1]], [[0, -2], [3, 4]]], F)
    b = np.array([[[1, 0], [-1, 1]], [[0, 5], [4, 3]]], F)
    found = C.cosine_distance(left, right).eval({left: a, right: b})
    np.testing.assert_allclose(found, [[1, 0], [-1, 24 / 25]], atol=1e-5)


def test_assign_gives_a_constant_its_value() -> None:
    kept, given = C.constant(0, shape=(2, 3)), C.parameter(shape=(2, 3), init=4)
    assert C.assign(kept, given).eval().tolist() == kept.asarray().tolist() == np.full((2, 3), 4).tolist()


def test_combine_computes_several() -> None:
    x, y = C.input_variable((1, 2)), C.input_variable((1, 2))
    both = C.combine([C.plus(x, y), C.minus(x, y)])
    found = both.eval({x: [[[1, 2]]], y: [[[3, 5]]]})
    assert found[both.outputs[0]].tolist() == [[[4, 7]]]
    assert found[both.outputs[1]].tolist() == [[[-2, -3]]]


def test_the_weights_of_a_recurrent_stack_have_one_axis_that_is_inferred() -> None:
    """Two layers of 8 LSTM units: 8 * 4 * (4 + 8) + 8 * 4 * (8 + 8) weights, 2 * 2 * 4 * 8 biases."""
    w = C.parameter((C.InferredDimension, 4), C.cntk_py.constant_initializer(0.1))
    x = C.sequence.input_variable(4)
    made = C.optimized_rnnstack(x, w, 8, 2)
    long, short = np.arange(20, dtype=F).reshape(5, 4), np.arange(12, dtype=F).reshape(3, 4)
    first, second = made.eval({x: [long, short]})
    assert first.shape == (5, 8) and second.shape == (3, 8)
    np.testing.assert_allclose(first[:3], second, rtol=1e-6)
    assert w.shape == (256, 4)


def test_filters_that_fit_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"filters of the shape \(2, 2, 2\) for samples of the shape \(2, 3, 3\)"):
        C.convolution_transpose(np.ones((2, 2, 2), F), C.input_variable((2, 3, 3)))
