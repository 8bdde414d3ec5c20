"""Operators made of others give what numpy gives, and the gradients of finite differences."""

import numpy as np
import pytest

from cntkpy.cntk_config import UserError
from cntkpy.training import combine, input_variable, ops, parameter

X = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 3.0]], np.float32)

UNARY = {
    "elu": (ops.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    "selu": (ops.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1))),
    "softplus": (ops.softplus, lambda x: np.log1p(np.exp(x))),
    "softsign": (ops.softsign, lambda x: x / (1 + abs(x))),
    "hard_sigmoid": (lambda x: ops.hard_sigmoid(x, 0.2, 0.5), lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "param_relu": (lambda x: ops.param_relu(0.1, x), lambda x: np.where(x > 0, x, 0.1 * x)),
    "tan": (ops.tan, np.tan),
    "sinh": (ops.sinh, np.sinh),
    "cosh": (ops.cosh, np.cosh),
    "asinh": (ops.asinh, np.arcsinh),
    "asinh of large numbers": (lambda x: ops.asinh(x * 1e4), lambda x: np.arcsinh(x * 1e4)),
    "atanh": (lambda x: ops.atanh(x * 0.25), lambda x: np.arctanh(x / 4)),
    "cube": (lambda x: x**3, lambda x: x**3),
    "inverse": (lambda x: ops.pow(x, -2), lambda x: x**-2.0),
    "one": (lambda x: ops.pow(x, 0), np.ones_like),
    "powers of its own": (lambda x: ops.pow(x, [3, -2, 2]), lambda x: x ** np.array([3, -2, 2.0])),
    "a large power": (lambda x: x**17, lambda x: x**17),
    "powers of 2": (lambda x: ops.pow(2.0, x), lambda x: 2.0**x),
    "largest": (lambda x: ops.element_max(x, 0.5, 1.0), lambda x: np.maximum(x, 1)),
    "smallest": (lambda x: ops.element_min(x, [1, 0, 1]), lambda x: np.minimum(x, [1, 0, 1])),
    "sum": (lambda x: ops.sum([x, x, 1.0]), lambda x: 2 * x + 1),
    "mean": (lambda x: ops.mean([x, x]), lambda x: x),
    "l1": (ops.reduce_l1, lambda x: abs(x).sum(axis=1, keepdims=True)),
    "l2": (ops.reduce_l2, lambda x: np.sqrt((x * x).sum(axis=1, keepdims=True))),
    "squares": (ops.reduce_sum_square, lambda x: (x * x).sum(axis=1, keepdims=True)),
    "product": (ops.reduce_prod, lambda x: x.prod(axis=1, keepdims=True)),
    "normalised": (
        lambda x: ops.per_dim_mean_variance_normalize(x, [1, 2, 3], [2, 2, 2]),
        lambda x: (x - [1, 2, 3]) * 2,
    ),
    "more": (lambda x: 1 - 2 * x / 4 + [1, 2, 3], lambda x: 1 - x / 2 + [1, 2, 3]),
}


@pytest.fixture(scope="module")
def values() -> dict[str, np.ndarray]:
    """Those of all operators, by one program."""
    x = input_variable(3)
    made = {name: function(x) for name, (function, _) in UNARY.items()}
    found = combine(list(made.values())).eval(X)
    assert [one.shape for one in made.values()] == [one.shape[1:] for one in found.values()]
    return dict(zip(made, found.values(), strict=True))


@pytest.mark.parametrize("name", UNARY)
def test_values(name: str, values: dict[str, np.ndarray]) -> None:
    _, expected = UNARY[name]
    np.testing.assert_allclose(values[name], expected(X.astype(np.float64)), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["elu", "softplus", "param_relu", "cube", "l2", "product"])
def test_gradients(name: str) -> None:
    function, expected = UNARY[name]
    x = input_variable(3)
    found = function(x).grad(X)
    for at in np.ndindex(X.shape):
        step = np.zeros(X.shape)
        step[at] = 1e-5
        difference = expected(X + step).sum() - expected(X - step).sum()
        assert found[at] == pytest.approx(difference / 2e-5, rel=1e-3, abs=1e-4)


KINKS = {
    "elu": (lambda x: ops.elu(x, 0.5), [0.5 * np.exp(-1), 1, 1, 1]),
    "selu": (lambda x: ops.selu(x, 2.0, 0.5), [np.exp(-1), 2, 2, 2]),
    "leaky_relu": (ops.leaky_relu, [0.01, 1, 1, 1]),
    "param_relu": (lambda x: ops.param_relu(0.25, x), [0.25, 1, 1, 1]),
    "relu": (ops.relu, [0, 0, 0, 1]),
    "abs": (ops.abs, [-1, 0, 0, 1]),
    "clip": (lambda x: ops.clip(x, 0.0, 1.0), [0, 1, 1, 1]),
    "clip with equal limits": (lambda x: ops.clip(x, 1.0, 1.0), [0, 0, 0, 1]),
    "hard_sigmoid": (lambda x: ops.hard_sigmoid(x, 0.5, 0.5), [0.5, 0.5, 0.5, 0.5]),
    "the second of equal operands of a maximum": (lambda x: ops.element_max(0.0, x), [0, 1, 1, 1]),
    "the second of equal operands of a minimum": (lambda x: ops.element_min(0.0, x), [1, 1, 1, 0]),
    "a hinge": (lambda x: ops.relu(1.0 - x), [-1, -1, -1, 0]),
    "reduce_l1": (ops.reduce_l1, [-1, 0, 0, 1]),
    "softsign": (ops.softsign, [0.25, 1, 1, 0.25]),
    "floor": (ops.floor, [0, 0, 0, 0]),
}
"""Gradients at -1, -0, 0 and 1, with the kinks exactly there."""


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.sampled
def test_gradients_at_kinks(name: str) -> None:
    function, expected = KINKS[name]
    x = input_variable(4)
    found = function(x).grad(np.array([[-1, -0.0, 0, 1]], np.float32))
    np.testing.assert_allclose(found, [expected], rtol=1e-6)


def test_the_slope_of_param_relu_has_a_gradient_below_zero_only() -> None:
    x, slope = input_variable(4), parameter(4, init=0.25)
    found = ops.param_relu(slope, x).grad(np.array([[-2, -1, 0, 3]], np.float32), wrt=[slope])
    np.testing.assert_array_equal(found, [-2, -1, 0, 0])


def test_large_values_keep_their_gradients() -> None:
    """The branch that is not taken would be infinite there."""
    x = input_variable(3)
    for function in (ops.elu, ops.selu, ops.leaky_relu):
        assert np.isfinite(function(x).grad(np.array([[-1e30, 1e3, 1e30]], np.float32))).all()


def constant(function) -> np.ndarray:
    return function.eval()


@pytest.mark.thorough
def test_shapes_classes_and_truth_values() -> None:
    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(constant(ops.transpose(cube, (2, 0, 1))), cube.transpose(2, 0, 1))
    np.testing.assert_array_equal(constant(ops.transpose(cube, (1, 2, 0))), cube.transpose(1, 2, 0))
    np.testing.assert_array_equal(constant(ops.reshape(cube, (3, 2), 0, 2)), cube.reshape(3, 2, 4))
    np.testing.assert_array_equal(constant(ops.reshape(cube, (12,), 1, 3)), cube.reshape(2, 12))
    np.testing.assert_array_equal(constant(ops.slice(cube, [1, 2], [0, 1], [2, 3])), cube[:, 0:2, 1:3])
    np.testing.assert_array_equal(constant(ops.expand_dims([1, 2], 0)), [[1, 2]])
    np.testing.assert_array_equal(constant(ops.squeeze([[1, 2]])), [1, 2])
    np.testing.assert_array_equal(constant(ops.one_hot([2.0, 0.0], 3)), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(constant(ops.take(np.arange(6).reshape(3, 2), [2, 0])), [[4, 5], [0, 1]])
    np.testing.assert_array_equal(constant(ops.argmax([1, 5, 5])), 1)
    np.testing.assert_array_equal(constant(ops.argmin([1, 5, -5])), 2)
    np.testing.assert_array_equal(constant(ops.reduce_prod(cube, axis=1)), cube.prod(axis=1, keepdims=True))
    np.testing.assert_array_equal(constant(ops.reduce_prod(cube + 1, axis=(0, 1))).ravel(), (cube + 1).prod((0, 1)))
    np.testing.assert_array_equal(constant(ops.argmax(cube % 7, axis=1))[:, 0], (cube % 7).argmax(axis=1))
    np.testing.assert_array_equal(constant(ops.argmax(cube % 7)), 6)
    assert (ops.argmax(cube).shape, ops.argmin([1, 5]).shape) == ((), ())
    np.testing.assert_array_equal(constant(ops.argmin(cube % 7, axis=-1))[..., 0], (cube % 7).argmin(axis=-1))
    np.testing.assert_array_equal(constant(ops.reduce_sum(cube, axis=[0, 2])).ravel(), cube.sum(axis=(0, 2)))
    a, b = [0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]
    np.testing.assert_array_equal(constant(ops.element_and(a, b)), [0, 0, 0, 1])
    np.testing.assert_array_equal(constant(ops.element_or(a, b)), [0, 1, 1, 1])
    np.testing.assert_array_equal(constant(ops.element_xor(a, b)), [0, 1, 1, 0])
    np.testing.assert_array_equal(constant(ops.element_not(b)), [1, 0, 1, 0])
    np.testing.assert_allclose(constant(ops.log_add_exp([1.0], [2.0])), np.logaddexp([1.0], [2.0]), rtol=1e-6)


def test_images() -> None:
    image = input_variable((1, 4, 4))
    kernel = np.ones((2, 1, 3, 3))
    data = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    found = ops.convolution(kernel, image, auto_padding=[False, False, False]).eval(data)
    assert found.shape == (1, 2, 2, 2)
    assert found[0, 1, 0, 0] == data[0, 0, :3, :3].sum()
    assert ops.convolution(kernel, image, auto_padding=[False, True, True]).shape == (2, 4, 4)
    largest = ops.pooling(image, ops.MAX_POOLING, (2, 2), (2, 2)).eval(data)
    np.testing.assert_array_equal(largest[0, 0], [[5, 7], [13, 15]])


def test_a_transposed_convolution_is_the_way_back() -> None:
    """Each element of the image is spread over a window, as `scipy.signal.convolve2d` does (mode "full")."""
    from scipy.signal import convolve2d

    random = np.random.default_rng(1)
    kernel, data = random.normal(size=(2, 3, 3, 2)), random.normal(size=(1, 2, 4, 3)).astype(np.float32)
    image = input_variable((2, 4, 3))
    found = ops.convolution_transpose(kernel, image, auto_padding=[False]).eval(data)[0]
    expected = [sum(convolve2d(data[0, one], kernel[one, out]) for one in range(2)) for out in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    wide = ops.convolution_transpose(kernel, image, strides=(2, 2), output_shape=(3, 8, 6))
    assert wide.shape == (3, 8, 6)


def test_what_was_largest_goes_back_to_its_place() -> None:
    image = input_variable((1, 4, 4))
    data = np.random.default_rng(1).permutation(16).astype(np.float32).reshape(1, 1, 4, 4)
    pooled = ops.pooling(image, ops.MAX_POOLING, (2, 2), (2, 2))
    found = ops.unpooling(pooled, image, ops.MAX_UNPOOLING, (2, 2), (2, 2)).eval(data)[0, 0]
    largest = data[0, 0].reshape(2, 2, 2, 2).max(axis=(1, 3)).repeat(2, axis=0).repeat(2, axis=1)
    np.testing.assert_array_equal(found, np.where(data[0, 0] == largest, largest, 0))


WRONG = {
    "transpose: there is no axis 1": lambda x: ops.transpose(x, (1, 0)),
    "no axis 5": lambda x: ops.reduce_sum(x, 5),
    "has 3 elements, not one": lambda x: ops.squeeze(x, 0),
    "unpooling reverses MAX_POOLING only": lambda x: ops.unpooling(x, x, ops.AVG_POOLING, (2,)),
    r"filters have \(channels, channels of the result, sizes\)": lambda x: ops.convolution_transpose(
        x, x, dilation=(2,)
    ),
    "convolution_transpose: filters are the same": lambda x: ops.convolution_transpose(x, x, sharing=[False]),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_operator(message: str) -> None:
    with pytest.raises(UserError, match=message):
        WRONG[message](input_variable(3))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_log_softmax_along_an_axis(axis: int) -> None:
    found = ops.log_softmax(input_variable((2, 3)), axis).eval(X[None])
    np.testing.assert_allclose(found[0], X - np.log(np.exp(X).sum(axis=axis, keepdims=True)), rtol=1e-5)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


ALONG_AN_AXIS = {
    ops.softmax: softmax,
    ops.log_softmax: lambda x, axis: np.log(softmax(x, axis)),
    ops.reduce_sum: lambda x, axis: x.sum(axis, keepdims=True),
    ops.reduce_max: lambda x, axis: x.max(axis, keepdims=True),
    ops.reduce_mean: lambda x, axis: x.mean(axis, keepdims=True),
    ops.reduce_log_sum_exp: lambda x, axis: np.log(np.exp(x).sum(axis, keepdims=True)),
    ops.argmax: lambda x, axis: x.argmax(axis, keepdims=True),
    ops.argmin: lambda x, axis: x.argmin(axis, keepdims=True),
}


@pytest.mark.parametrize(
    "shape", [(2, 3), *(pytest.param(shape, marks=pytest.mark.thorough) for shape in ((4,), (4, 1), (1, 4), (4, 2, 1)))]
)
def test_an_array_is_a_constant_of_its_shape(shape: tuple[int, ...]) -> None:
    """Finding C2: the rank of an array counts, so that `axis` counts the array's own axes; lists are arrays."""
    array = np.random.default_rng(0).normal(size=shape)
    expected: list[np.ndarray] = []
    made = []
    for axis in range(-len(shape), len(shape)):
        for function, meaning in ALONG_AN_AXIS.items():
            for given in (array, array.tolist()):
                made.append(function(given, axis=axis))
                expected.append(meaning(array, axis))
    found = combine(made).eval()
    for one, values in zip(expected, found.values(), strict=True):
        assert values.shape == one.shape
        np.testing.assert_allclose(values, one, rtol=1e-5, atol=1e-6)


def test_an_array_has_no_more_axes_than_its_own() -> None:
    for function in (ops.softmax, ops.log_softmax, ops.reduce_sum):
        with pytest.raises(UserError, match="there is no axis 3; the operand has the axes -2 to 1"):
            function(np.ones((4, 1)), axis=3)


def test_criteria_take_arrays() -> None:
    labels, values = np.eye(3)[1], np.array([0.5, 2.0, 1.0])
    loss = ops.cross_entropy_with_softmax(values, labels).eval()
    np.testing.assert_allclose(loss, -np.log(np.exp(2) / np.exp(values).sum()), rtol=1e-6)
    assert ops.classification_error(values.tolist(), labels.tolist()).eval() == 0
    assert ops.squared_error(values, labels).eval() == pytest.approx(0.25 + 1 + 1)
    with pytest.raises(UserError, match=r"topN is 4, there are 3 classes"):
        ops.classification_error(values, labels, topN=4)
