"""Values and gradients of operators against formulas of NumPy: at random points, at kinks, at the largest numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntk_config import UserError

INF, NAN = np.inf, np.nan
RANDOM = np.random.default_rng(3)
POINTS = np.array([
    0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2, -2, 2.5, -2.5, 1e-6, -1e-6, 1e-12, 1e-300, 30, -30, 800, -800, 1e4, -1e4,
    1e30, -1e30, 1e300, INF, -INF, NAN, *RANDOM.normal(0, 2, 12),
])  # fmt: skip
MODERATE = (np.abs(POINTS) < 50) & ((POINTS == 0) | (np.abs(POINTS) > 1e-7))

LOG_SMALLEST, LOG_LEAST = 1e-37, float(np.float32(-85.1))
"""CNTK's logarithm of everything smaller."""
FAR = 9.2103404
"""So far apart, CNTK's logarithm of a sum is the larger operand."""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one(x):
    return np.ones_like(x)


def none(x, *others):
    return np.zeros_like(x)


def log_add(x, y):
    return np.where(abs(x - y) > FAR, np.maximum(x, y), np.logaddexp(x, y))


def inverse(x):
    return np.where(x == 0, 0, 1 / x)


def elu(x, alpha=1.0):
    return np.where(x < 0, alpha * (np.exp(np.minimum(x, 0)) - 1), x)


def elu_slope(x, alpha=1.0):
    return np.where(x < 0, alpha * np.exp(np.minimum(x, 0)), 1)


SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772

UNARY: dict[str, tuple[Callable, Callable, Callable]] = {
    "abs": (C.abs, abs, np.sign),
    "acos": (C.acos, np.arccos, lambda x: -1 / np.sqrt(1 - x * x)),
    "asin": (C.asin, np.arcsin, lambda x: 1 / np.sqrt(1 - x * x)),
    "asinh": (C.asinh, np.arcsinh, lambda x: 1 / np.sqrt(1 + x * x)),
    "atan": (C.atan, np.arctan, lambda x: 1 / (1 + x * x)),
    "atanh": (C.atanh, np.arctanh, lambda x: 1 / (1 - x * x)),
    "ceil": (C.ceil, np.ceil, none),
    "clip": (
        partial(C.clip, min_value=-1.0, max_value=1.5), lambda x: np.clip(x, -1, 1.5), lambda x: (x >= -1) & (x <= 1.5)
    ),
    "cos": (C.cos, np.cos, lambda x: -np.sin(x)),
    "cosh": (C.cosh, np.cosh, np.sinh),
    "elu": (C.elu, elu, elu_slope),
    "elu of an alpha": (lambda x: C.elu(x, 0.3), lambda x: elu(x, 0.3), lambda x: elu_slope(x, 0.3)),
    "element_not": (C.element_not, lambda x: x == 0, none),
    "exp": (C.exp, np.exp, np.exp),
    "floor": (C.floor, np.floor, none),
    "hard_sigmoid": (
        lambda x: C.hard_sigmoid(x, 0.5, 0.5), lambda x: np.clip(x / 2 + 0.5, 0, 1), lambda x: (abs(x) <= 1) / 2
    ),
    "leaky_relu": (C.leaky_relu, lambda x: np.where(x < 0, 0.01 * x, x), lambda x: np.where(x < 0, 0.01, 1)),
    "log": (
        C.log, lambda x: np.where(x < LOG_SMALLEST, LOG_LEAST, np.log(x)),
        lambda x: np.where(x < LOG_SMALLEST, np.exp(-LOG_LEAST), 1 / x),
    ),
    "negate": (C.negate, np.negative, lambda x: -one(x)),
    "ones_like": (C.ones_like, one, none),
    "pow of 0": (lambda x: C.pow(x, 0), lambda x: x**0, none),
    "pow of 1": (lambda x: C.pow(x, 1), lambda x: x, one),
    "pow of 3": (lambda x: C.pow(x, 3), lambda x: x**3, lambda x: 3 * x * x),
    "pow of -1": (lambda x: C.pow(x, -1), lambda x: x**-1.0, lambda x: -(x**-2.0)),
    "pow of a root": (lambda x: C.pow(x, 0.5), lambda x: np.where(x == -INF, INF, x**0.5), lambda x: 0.5 * x**-0.5),
    "pow of a small number": (
        lambda x: C.pow(x, 0.01), lambda x: np.where(x == -INF, INF, x**0.01), lambda x: 0.01 * x**-0.99
    ),
    "pow of an array": (lambda x: C.pow(x, [3.0]), lambda x: x**3, lambda x: 3 * x * x),
    "power of 2": (lambda x: C.pow(2.0, x), lambda x: 2.0**x, lambda x: 2.0**x * np.log(2)),
    "reciprocal": (C.reciprocal, inverse, lambda x: -(inverse(x) ** 2)),
    "relu": (C.relu, lambda x: np.maximum(x, 0), lambda x: x > 0),
    "round": (C.round, lambda x: np.floor(x + 0.5), none),
    "selu": (C.selu, lambda x: SCALE * elu(x, ALPHA), lambda x: SCALE * elu_slope(x, ALPHA)),
    "sigmoid": (C.sigmoid, sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x))),
    "sin": (C.sin, np.sin, np.cos),
    "sinh": (C.sinh, np.sinh, np.cosh),
    "softplus": (C.softplus, lambda x: log_add(x, 0), sigmoid),
    "softplus of a steepness": (lambda x: C.softplus(x, 4), lambda x: log_add(4 * x, 0) / 4, lambda x: sigmoid(4 * x)),
    "softsign": (C.softsign, lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2),
    "sqrt": (C.sqrt, lambda x: np.sqrt(np.maximum(x, 0)), lambda x: 0.5 / np.sqrt(np.maximum(x, 0))),
    "square": (C.square, np.square, lambda x: 2 * x),
    "stop_gradient": (C.stop_gradient, lambda x: x, none),
    "tan": (C.tan, np.tan, lambda x: 1 + np.tan(x) ** 2),
    "tanh": (C.tanh, np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "zeros_like": (C.zeros_like, none, none),
}  # fmt: skip

PAIRS = np.array([
    (0, 0), (-0.0, 0), (1, 1), (-1, -1), (2, 3), (2, -2), (-3, 0), (-2, 2), (-2, 3), (1e4, 1), (-1e4, -1e4), (INF, 1),
    (-INF, 1), (INF, INF), (1, INF), (NAN, 1), (1, NAN), (0.5, 0.25), (3, 1e-3), (7.25, 20),
    *RANDOM.normal(0, 2, (8, 2)),
])  # fmt: skip

BINARY: dict[str, tuple[Callable, Callable, Callable, Callable]] = {
    "plus": (C.plus, lambda x, y: x + y, lambda x, y: one(x), lambda x, y: one(x)),
    "minus": (C.minus, lambda x, y: x - y, lambda x, y: one(x), lambda x, y: -one(x)),
    "element_times": (C.element_times, lambda x, y: x * y, lambda x, y: y, lambda x, y: x),
    "element_divide": (
        C.element_divide, lambda x, y: x * inverse(y), lambda x, y: inverse(y), lambda x, y: -x * inverse(y) ** 2
    ),
    "the larger one": (
        C.element_max, lambda x, y: np.where(x > y, x, y), lambda x, y: x > y, lambda x, y: ~(x > y)
    ),
    "the smaller one": (
        C.element_min, lambda x, y: np.where(x < y, x, y), lambda x, y: x < y, lambda x, y: ~(x < y)
    ),
    "log_add_exp": (
        C.log_add_exp, log_add, lambda x, y: np.where(x == y, 0.5, sigmoid(x - y)),
        lambda x, y: np.where(x == y, 0.5, sigmoid(y - x)),
    ),
    "param_relu": (
        C.param_relu, lambda x, y: np.where(y < 0, x * y, y),
        lambda x, y: np.where(y < 0, y, np.where(np.isnan(y), NAN, 0)),
        lambda x, y: np.where(y < 0, x, 1),
    ),
    "pow": (
        C.pow, np.power, lambda x, y: np.where(y == 0, 0, y * np.power(x, y - 1)),
        lambda x, y: np.power(x, y) * np.log(np.where(x == 0, 1, x)),
    ),
    "element_select": (
        lambda x, y: C.element_select(x, y, 2 * y), lambda x, y: np.where(x != 0, y, 2 * y), none,
        lambda x, y: np.where(x != 0, 1, 2),
    ),
    "mean": (C.mean, lambda x, y: (x + y) / 2, lambda x, y: one(x) / 2, lambda x, y: one(x) / 2),
    "less": (C.less, lambda x, y: x < y, none, none),
    "less_equal": (C.less_equal, lambda x, y: x <= y, none, none),
    "greater": (C.greater, lambda x, y: x > y, none, none),
    "greater_equal": (C.greater_equal, lambda x, y: x >= y, none, none),
    "equal": (C.equal, lambda x, y: x == y, none, none),
    "not_equal": (C.not_equal, lambda x, y: x != y, none, none),
}  # fmt: skip

ROWS = np.array([
    [1, 1, 0, -2], [0, 0, 0, 0], [3, -3, 3, -3], [1e3, 1e3, 0, -1e3], [-INF, 1, 2, 3], [5, 4, 3, 2], [INF, 1, 2, 3],
    [1e-3, 2e-3, 3e-3, -0.5], [NAN, 1, 2, 3], *RANDOM.normal(0, 2, (4, 4)),
])  # fmt: skip


def log_sum(x):
    top = x.max()
    return top + np.log(np.exp(x - top).sum())


def softmax(x):
    return np.exp(x - log_sum(x)) if np.isfinite(x.max()) else NAN * x


def softmax_slope(x):
    return softmax(x) * (np.arange(4) - (np.arange(4) * softmax(x)).sum())


REDUCTIONS: dict[str, tuple[Callable, Callable, Callable]] = {
    "sum": (C.reduce_sum, np.sum, one),
    "mean": (C.reduce_mean, np.mean, lambda x: one(x) / 4),
    "max": (C.reduce_max, np.max, lambda x: x == x.max()),
    "min": (C.reduce_min, np.min, lambda x: x == x.min()),
    "prod": (C.reduce_prod, np.prod, lambda x: np.array([np.delete(x, at).prod() for at in range(4)])),
    "log_sum_exp": (C.reduce_log_sum_exp, lambda x: x.max() if x.max() == INF else log_sum(x), softmax),
    "l1": (C.reduce_l1, lambda x: abs(x).sum(), np.sign),
    "l2": (C.reduce_l2, lambda x: np.sqrt((x * x).sum()), lambda x: x / np.sqrt((x * x).sum())),
    "sum_square": (C.reduce_sum_square, lambda x: (x * x).sum(), lambda x: 2 * x),
    "argmax": (C.argmax, np.argmax, none),
    "argmin": (C.argmin, np.argmin, none),
    "softmax": (C.softmax, softmax, softmax_slope),
    "softmax of an axis": (lambda x: C.softmax(x, axis=0), softmax, softmax_slope),
    "log_softmax": (C.log_softmax, lambda x: x - log_sum(x) if np.isfinite(x.max()) else NAN * x,
                    lambda x: np.arange(4) - 6 * softmax(x)),
    "hardmax": (C.hardmax, lambda x: np.eye(4)[np.argmax(x)], none),
}  # fmt: skip
"""The gradients are of the sum of what a reduction gives; of four elements, of their sum weighted by 0, 1, 2, 3."""


def passed(inputs, data, outputs, weights=None):
    """Values of functions, and the gradients of their weighted sum."""
    both = C.combine(outputs)
    given = dict(zip(inputs, data, strict=True))
    state, values = both.forward(given, both.outputs, both.outputs)
    shapes = [values[one].shape for one in both.outputs]
    roots = {one: np.broadcast_to(1.0 if weights is None else weights(shape), shape)
             for one, shape in zip(both.outputs, shapes, strict=True)}  # fmt: skip
    found = both.backward(state, roots, set(inputs))
    return [values[one] for one in both.outputs], [found[one] for one in inputs]


def compare(found, expected, at, dtype) -> None:
    tolerance = {"rtol": 1e-12, "atol": 1e-16} if dtype == np.float64 else {"rtol": 2e-5, "atol": 2e-6}
    np.testing.assert_allclose(found, np.asarray(expected, np.float64), **tolerance, err_msg=f"at {at}")


@pytest.fixture(scope="module", params=[np.float64, np.float32])
def elements(request):
    """Every function of one operand has a row of the input, so that one program computes all of them."""
    dtype = request.param
    points = (POINTS if dtype == np.float64 else POINTS[MODERATE]).astype(dtype)
    x = C.input_variable((len(UNARY), len(points)), dtype=dtype, needs_gradient=True)
    made = [function(C.reshape(x[at], (len(points),))) for at, (function, _, _) in enumerate(UNARY.values())]
    values, (gradients,) = passed([x], [np.tile(points, (1, len(UNARY), 1))], made)
    found = zip([one[0] for one in values], gradients[0], strict=True)
    return dtype, points.astype(np.float64), dict(zip(UNARY, found, strict=True))


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name: str, elements) -> None:
    dtype, points, found = elements
    _, function, slope = UNARY[name]
    value, gradient = found[name]
    with np.errstate(all="ignore"):
        expected, slopes = function(points), np.asarray(slope(points), np.float64)
    compare(value, expected, points, dtype)
    known = ~np.isnan(points)  # a gradient where there is no number is none of CNTK's
    if name == "softsign":
        known &= np.abs(points) < 1e3  # of differences there
    compare(gradient[known], slopes[known], points[known], dtype)


@pytest.fixture(scope="module")
def pairs():
    shape = (len(BINARY), len(PAIRS))
    x, y = (C.input_variable(shape, dtype=np.float64, needs_gradient=True) for _ in range(2))
    made = []
    for at, (function, *_) in enumerate(BINARY.values()):
        made.append(function(*(C.reshape(one[at], (len(PAIRS),)) for one in (x, y))))
    values, gradients = passed([x, y], [np.broadcast_to(one, (1, *shape)) for one in PAIRS.T], made)
    found = zip([one[0] for one in values], *(one[0] for one in gradients), strict=True)
    return dict(zip(BINARY, found, strict=True))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_operands(name: str, pairs) -> None:
    """Of equal operands of a maximum or a minimum the second has the gradient, as in CNTK."""
    for found, formula in zip(pairs[name], BINARY[name][1:], strict=True):
        with np.errstate(all="ignore"):
            expected = np.asarray(formula(*PAIRS.T), np.float64)
        compare(found, expected, PAIRS, np.float64)


@pytest.fixture(scope="module")
def reduced():
    x = C.input_variable((len(REDUCTIONS), 4), dtype=np.float64, needs_gradient=True)
    made = [function(C.reshape(x[at], (4,))) for at, (function, *_) in enumerate(REDUCTIONS.values())]
    data = np.broadcast_to(ROWS[:, None], (len(ROWS), len(REDUCTIONS), 4))
    weights = {4: np.arange(4.0), 1: np.ones(1)}
    values, (gradients,) = passed([x], [data], made, lambda shape: weights[shape[-1]])
    return dict(zip(REDUCTIONS, zip(values, gradients.swapaxes(0, 1), strict=True), strict=True))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_functions_of_a_sample(name: str, reduced) -> None:
    """The gradient of a largest element goes to every one that is as large."""
    values, gradients = reduced[name]
    _, function, slope = REDUCTIONS[name]
    for row, value, gradient in zip(ROWS, values, gradients, strict=True):
        with np.errstate(all="ignore"):
            compare(np.squeeze(value), function(row), row, np.float64)
            if not np.isnan(slope(row)).any():
                compare(gradient, slope(row), row, np.float64)


# ------------------------------------------------------------------------------------------- losses, normalisations


def test_losses_of_unlikely_numbers() -> None:
    z, t = (C.input_variable(3, dtype=np.float64, needs_gradient=True) for _ in range(2))
    scores = np.array([[1, 2, 3], [1e4, -1e4, 0], [0, 0, 0], [0.1, 0.1, 0.1], [800, 800, -800.0]])
    targets = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]])
    loss = C.cross_entropy_with_softmax(z, t)
    likelihoods = np.array([row - log_sum(row) for row in scores])
    expected = -np.where(targets > 0, targets * likelihoods, 0).sum(axis=1)
    np.testing.assert_allclose(loss.eval({z: scores, t: targets}), expected, rtol=1e-12)
    gradient = np.exp(likelihoods) * targets.sum(axis=1, keepdims=True) - targets
    np.testing.assert_allclose(loss.grad({z: scores, t: targets}, wrt=[z]), gradient, rtol=1e-12, atol=1e-13)
    errors, two = C.classification_error(z, t), C.classification_error(z, t, topN=2)
    np.testing.assert_array_equal(errors.eval({z: scores, t: targets}), [0, 1, 0, 1, 1])
    np.testing.assert_array_equal(two.eval({z: scores[:4], t: targets[:4]}), [0, 1, 0, 0])
    p = np.array([[0, 1, 0.5], [1, 0, 0.25], [0, 0, 0], [1, 1, 1], [1e-300, 0.3, 0.9]])
    y = np.array([[0, 1, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1], [1, 1, 0.0]])
    seen = y * p + (1 - y) * (1 - p)
    with np.errstate(divide="ignore"):
        expected = -np.where(seen < LOG_SMALLEST, LOG_LEAST, np.log(seen)).sum(axis=1)
    found = C.binary_cross_entropy(z, t).eval({z: p, t: y})
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_the_cosine_of_vectors_of_zeros() -> None:
    x, y = (C.input_variable(3, dtype=np.float64, needs_gradient=True) for _ in range(2))
    left = np.array([[0, 0, 0], [1, 2, 3], [0, 0, 0], [1, 2, 3], [1, 2, 3], [1, 0, 0.0]])
    right = np.array([[1, 2, 3], [0, 0, 0], [0, 0, 0], [2, 4, 6], [-1, -2, -3], [0, 5, 0.0]])
    found = C.cosine_distance(x, y).eval({x: left, y: right})
    np.testing.assert_allclose(found.ravel(), [0, 0, 0, 1, -1, 0], rtol=1e-12, atol=1e-15)


def test_normalisations_of_equal_elements() -> None:
    """The variance of one sample, or of equal elements, is 0."""
    x = C.input_variable(3, dtype=np.float64, needs_gradient=True)
    scale, bias = C.parameter(3, init=2.0, dtype=np.float64), C.parameter(3, init=0.5, dtype=np.float64)
    mean, variance = C.constant(np.zeros(3)), C.constant(np.ones(3))
    z = C.batch_normalization(x, scale, bias, mean, variance, False, epsilon=1e-5, running_count=C.constant(0))
    data = np.array([[1.0, -2, 3]])
    state, values = z.forward({x: data}, None, z.outputs)
    np.testing.assert_array_equal(values[z.output], [[0.5] * 3])
    found = z.backward(state, {z.output: np.ones((1, 3))}, {x, scale, bias})
    assert [found[one].tolist() for one in (x, scale, bias)] == [[[0] * 3], [0] * 3, [1] * 3]
    np.testing.assert_array_equal(mean.value, data[0])
    np.testing.assert_array_equal(variance.value, np.zeros(3))
    y = C.input_variable(4)
    found = C.layers.LayerNormalization()(y).eval({y: np.array([[7.0] * 4, [1e4] * 4], np.float32)})
    np.testing.assert_array_equal(found, np.zeros((2, 4)))


OTHERS = {
    "alias", "broadcast_as", "combine", "dropout", "element_max", "element_min", "flatten", "mean",
    "reconcile_dynamic_axes", "splice", "squeeze", "sum",
}  # fmt: skip
"""What computes nothing, or is tried under another name."""


def keeps_the_shape(function: Callable, x: C.Function) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(x).shape == x.shape
        except (UserError, TypeError, AttributeError):
            return False


def test_every_function_of_elements_is_in_a_table() -> None:
    """A new function of one operand that keeps the shape needs a row."""
    tried = {function for table in (UNARY, REDUCTIONS) for function, *_ in table.values()}
    tried |= {function.func for function in tried if isinstance(function, partial)}
    x = C.input_variable(5)
    names = [name for name in C.ops.__all__ if callable(getattr(C.ops, name)) and name not in OTHERS]
    left = [name for name in names if keeps_the_shape(getattr(C.ops, name), x)]
    assert len(left) > 30
    assert [name for name in left if getattr(C.ops, name) not in tried] == []
