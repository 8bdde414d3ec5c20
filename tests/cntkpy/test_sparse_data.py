"""Sparse data in the forms of CNTK 2: lists of matrices, free dimensions, gradients."""

import numpy as np
import pytest
import scipy.sparse

import cntkpy.compat.cntk as C

EYE = np.eye(3, dtype=np.float32)
WEIGHTS = np.arange(6, dtype=np.float32).reshape(3, 2)


def csr(array: np.ndarray) -> scipy.sparse.csr_matrix:
    return scipy.sparse.csr_matrix(array)


def test_a_gradient_by_a_sparse_input() -> None:
    x, w = C.input_variable(3, is_sparse=True, needs_gradient=True), C.parameter(init=WEIGHTS)
    z = C.times(x, w)
    assert z.grad({x: csr(EYE[:2])}).tolist() == [[1, 5, 9], [1, 5, 9]]
    both = z.grad({x: csr(EYE[:2])}, [x, w])
    assert both[x].tolist() == [[1, 5, 9], [1, 5, 9]] and both[w].tolist() == [[1, 1], [1, 1], [0, 0]]
    assert (x * x).grad({x: csr(2 * EYE[:2])}, [x]).tolist() == [[4, 0, 0], [0, 4, 0]]


def test_a_gradient_by_a_sparse_sequence() -> None:
    x, w = C.sequence.input_variable(3, is_sparse=True, needs_gradient=True), C.parameter(init=WEIGHTS)
    first, second = C.times(x, w).grad({x: [csr(EYE[:2]), csr(EYE)]})
    assert first.tolist() == [[1, 5, 9]] * 2 and second.tolist() == [[1, 5, 9]] * 3


def test_matrices_as_samples() -> None:
    x, w = C.input_variable((2, 3), is_sparse=True, needs_gradient=True), C.parameter(init=WEIGHTS)
    data = [csr(EYE[:2]), csr(EYE[1:])]
    assert C.times(x, w).eval({x: data}).tolist() == [[[0, 1], [2, 3]], [[2, 3], [4, 5]]]
    assert C.times(x, w).grad({x: data}).tolist() == [[[1, 5, 9]] * 2] * 2


def test_matrices_as_steps() -> None:
    x, w = C.sequence.input_variable((2, 3), is_sparse=True), C.parameter(init=WEIGHTS)
    data = [[csr(EYE[:2]), csr(EYE[1:])], [csr(EYE[1:])]]
    first, second = C.times(x, w).eval({x: data})
    assert first.tolist() == [[[0, 1], [2, 3]], [[2, 3], [4, 5]]] and second.tolist() == [[[2, 3], [4, 5]]]


def test_a_free_dimension_of_a_sparse_input() -> None:
    x, w = C.input_variable((C.FreeDimension, 3), is_sparse=True, needs_gradient=True), C.parameter(init=WEIGHTS)
    z = C.times(x, w)
    assert x.shape == (-3, 3) and z.shape == (-3, 2)
    assert z.eval({x: [csr(EYE[:2])]}).tolist() == [[[0, 1], [2, 3]]]
    assert z.eval({x: [csr(EYE), csr(EYE)]}).tolist() == [WEIGHTS.tolist()] * 2
    assert z.grad({x: [csr(EYE[:2])]}).tolist() == [[[1, 5, 9], [1, 5, 9]]]
    assert z.grad({x: [csr(EYE[:2])]}, [w]).tolist() == [[1, 1], [1, 1], [0, 0]]


def test_training_on_a_free_dimension_of_a_sparse_input() -> None:
    x, y, w = C.input_variable((C.FreeDimension, 3), is_sparse=True), C.input_variable(()), C.parameter(init=WEIGHTS)
    z = C.reduce_sum(C.times(x, w))
    trainer = C.Trainer(z, C.squared_error(z, C.reshape(y, (1, 1))), [C.sgd([w], 0.1)])
    assert trainer.train_minibatch({x: [csr(EYE[:2])], y: [1.0]})
    assert trainer.previous_minibatch_loss_average == pytest.approx(25)
    assert w.value.tolist() == [[-1, 0], [1, 2], [4, 5]]
