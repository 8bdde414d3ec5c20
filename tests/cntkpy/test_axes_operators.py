"""Operators of cntk.ops that are made of others: straight_through_impl, eye_like, associative_multi_arg."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntk_config.base.diagnostics import UserError


def test_straight_through_impl_is_the_sign_and_its_gradient_is_one_near_zero():
    x = C.input_variable(6, needs_gradient=True)
    binary = C.straight_through_impl(x, name="binary")
    data = np.array([[-3.0, -1.0, -0.25, 0.0, 0.5, 4.0]], np.float32)
    np.testing.assert_allclose(binary.eval({x: data}), [[-1, -1, -1, -1, 1, 1]], atol=1e-7)
    weighted = binary * C.constant(np.arange(1.0, 7.0, dtype=np.float32))
    np.testing.assert_array_equal(weighted.grad({x: data}, wrt=[x])[:, [0, 2, 3, 4, 5]], [[0, 3, 4, 5, 0]])
    assert binary.name == "binary"


def test_straight_through_impl_of_huge_values():
    x = C.input_variable(2)
    np.testing.assert_array_equal(C.straight_through_impl(x).eval({x: [[-1e30, 1e30]]}), [[-1, 1]])


def test_eye_like_of_a_constant_and_of_an_input():
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(C.eye_like(C.constant(matrix)).eval(), np.eye(3, 4))
    x = C.input_variable((2, 3))
    found = C.eye_like(x, sparse_output=False, name="unit").eval({x: np.full((2, 2, 3), np.inf)})
    np.testing.assert_array_equal(found, [np.eye(2, 3)] * 2)


def test_eye_like_of_a_vector_is_an_error():
    with pytest.raises(UserError, match="samples of two axes"):
        C.eye_like(C.input_variable(3))


def test_associative_multi_arg_folds_from_the_left():
    @C.ops.associative_multi_arg
    def largest(left, right, name=""):
        return C.element_max(left, right, name=name)

    found = largest([1.0, 5.0], [2.0, 1.0], [0.0, 9.0], name="most")
    np.testing.assert_array_equal(found.eval(), [2, 9])
    assert found.name == "most"
    assert largest([1.0], [2.0], "pair").name == "pair"
