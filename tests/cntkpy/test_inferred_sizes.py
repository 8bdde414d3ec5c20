"""Sizes that are to be inferred: of parameters by the operations on them, of inputs by data (P21, P30)."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError

OPEN = C.InferredDimension
ONE = C.learning_parameter_schedule(1.0, minibatch_size=1)


def shapes(make: Callable[[C.Function], C.Function], parameter_shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    parameter = C.parameter(parameter_shape, init=1.0)
    made = make(parameter)
    return parameter.shape, made.shape


def test_an_operation_says_the_shape_of_its_parameter() -> None:
    x, matrix, picture = C.input_variable(3), C.input_variable((2, 3)), C.input_variable((2, 5, 5))
    assert shapes(lambda w: C.times(x, w), (OPEN, 4)) == ((3, 4), (4,))
    assert shapes(lambda w: C.times(matrix, w), (OPEN, 5)) == ((3, 5), (2, 5))
    assert shapes(lambda w: C.times(matrix, w, infer_input_rank_to_map=0), (OPEN, 5)) == ((2, 3, 5), (5,))
    assert shapes(lambda w: C.convolution(w, picture), (3, OPEN, 3, 3)) == ((3, 2, 3, 3), (3, 5, 5))
    assert shapes(lambda w: x + w, (OPEN,)) == ((3,), (3,))
    assert shapes(lambda w: matrix * w, (OPEN,)) == ((3,), (2, 3))
    assert shapes(lambda w: w, (OPEN, 2)) == ((-1, 2), (-1, 2))


def test_batch_and_layer_normalisation_infer_their_parameters() -> None:
    x = C.input_variable(3)
    scale, bias = C.parameter((OPEN,), init=1.0), C.parameter((OPEN,), init=0.0)
    mean, variance = C.constant(0.0, (OPEN,)), C.constant(1.0, (OPEN,))
    made = C.batch_normalization(x, scale, bias, mean, variance, False, running_count=C.constant(0))
    assert [each.shape for each in (made, scale, bias, mean, variance)] == [(3,)] * 5
    layer = C.layers.LayerNormalization()(C.input_variable((2, 5)))
    assert [each.shape for each in layer.parameters] == [(5,), (5,)]


def test_what_is_computed_of_an_input_of_unknown_size_has_it() -> None:
    x = C.input_variable((OPEN, 2))
    product = C.times(x, np.ones((2, 3), np.float32))
    assert [(x + 1).shape, product.shape, C.reduce_sum(x, 1).shape] == [(OPEN, 2), (OPEN, 3), (OPEN, 1)]
    assert C.times(C.input_variable((C.FreeDimension, 2)), np.ones((2, 3))).shape == (C.FreeDimension, 3)
    np.testing.assert_array_equal(product.eval({x: np.ones((1, 4, 2))}), np.full((1, 4, 3), 2))


def test_axes_of_one_element_in_front_change_nothing() -> None:
    row, weights = np.float32([[7, 8]]), C.parameter((2,), init=0.0)
    assert C.parameter((1, 2), init=row[0]).value.shape == (1, 2)
    np.testing.assert_array_equal(C.parameter((2,), init=row).value, row[0])
    C.assign(weights, row).eval()
    np.testing.assert_array_equal(weights.value, row[0])
    C.sgd([weights], ONE).update({weights: row}, 1)
    np.testing.assert_array_equal(weights.value, [0, 0])
    with pytest.raises(UserError, match=r"an array of shape \(2, 1\) for a parameter of shape \(2,\)"):
        C.parameter((2,), init=row.T)


def test_a_constant_may_be_sparse() -> None:
    matrix = np.float32([[1, 0, 2], [0, 3, 0]])
    constant = C.constant(sparse.csr_matrix(matrix))
    np.testing.assert_array_equal(constant.value, matrix)
    np.testing.assert_array_equal(C.times(constant, np.ones((3, 1))).eval(), [[3], [3]])


def test_values_of_lists_have_steps_and_views_of_matrices_shapes() -> None:
    x = C.input_variable(2)
    assert C.Value.create(x, [np.float32([1, 2]), np.float32([3, 4])]).shape == (2, 1, 2)
    assert C.Value.create(x, np.float32([[1, 2], [3, 4]])).shape == (2, 2)
    matrix = sparse.csr_matrix(np.float32([[1, 0, 2], [0, 0, 1]]))
    assert C.NDArrayView.from_csr(matrix, shape=(2, 1, 3)).shape == (2, 1, 3)
    with pytest.raises(UserError, match=r"shape is \(3, 2\), the matrix has \(2, 3\)"):
        C.NDArrayView.from_csr(matrix, shape=(3, 2))
    np.testing.assert_array_equal(C.NDArrayView.from_dense(np.eye(3))[1:].asarray(), np.eye(3)[1:])


def test_learners_and_schedules_say_the_size_of_minibatches() -> None:
    weights, schedule = [C.parameter((2,), init=0.0)], C.learning_parameter_schedule
    assert C.sgd(weights, 0.1, minibatch_size=32).minibatch_size == 32
    assert C.sgd(weights, schedule(0.1, minibatch_size=8)).minibatch_size == 8
    assert C.sgd(weights, 0.1).minibatch_size == C.learners.IGNORE
    specified = [schedule(0.1, size).is_minibatch_size_explicitly_specified for size in (None, 4)]
    assert specified == [False, True]


def test_arguments_hold_placeholders() -> None:
    step = C.Function(lambda a, b: b - a)
    assert [argument.name for argument in step.signature] == ["a", "b"]
    assert sorted(argument.name for argument in step.arguments) == ["a", "b"]
    assert len(C.layers.LSTM(2).arguments) == 3
    named = C.Function(lambda a: {"p": a + 1, "q": a * 2})(C.input_variable(2))
    assert [output.name for output in named.outputs] == ["p", "q"]


def test_inputs_of_a_block_have_their_sizes_before_anything_is_computed() -> None:
    """Programs walk through a graph and look at parameters, before they ask the function for anything else."""
    z = C.layers.Sequential([C.layers.Dense(4, name="first"), C.layers.Dense((2, 3))])(C.input_variable(5))
    weights, bias, hidden = z.root_function.inputs
    assert str(weights) == "Parameter('W', [], [4 x 2 x 3])"
    assert (weights.shape, bias.shape, hidden.shape) == ((4, 2, 3), (2, 3), (4,))
    assert [leaf.shape for leaf in C.layers.Dense(4)(C.input_variable(5)).inputs] == [(5, 4), (4,), (5,)]
    assert C.layers.Dense(4)(C.placeholder()).root_function.inputs[0].shape == (-1, 4)
    times = C.times(C.input_variable(3), C.parameter((-1, 2)))
    assert times.root_function.inputs[1].shape == (3, 2)
