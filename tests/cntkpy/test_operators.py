"""Every operator of cntk.ops, cntk.sequence, cntk.losses and cntk.metrics: shape, dynamic axes, values and gradient.

Values are written once more in NumPy; gradients are finite differences of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.compat.cntk.star_names import NAMES

Arrays = list[np.ndarray]
"""The data of one input: an array for each sequence, or one for all samples."""


@dataclass(frozen=True)
class Case:
    """An operator on one or two inputs.

    Attributes:
        make: the function of the inputs.
        expected: its value for arrays with one sample in each row; of sequences for the arrays of one sequence.
        data: by input, its samples; a list: sequences.
        gradient: whether it is that of `expected`; False: it is 0; None: it is looked at elsewhere.
        reduced: of sequences, whether there is one value for each of them.
        everywhere: whether the value is the same for all samples.
    """

    make: Callable[..., Any]
    expected: Callable[..., Any]
    data: tuple[Any, ...]
    gradient: bool | None = True
    reduced: bool = False
    everywhere: bool = False


RANDOM = np.random.default_rng(5)


def some(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Different numbers, none of which is near a whole number: there functions have kinks."""
    found = RANDOM.uniform(low, high, shape)
    near = np.abs(found - np.round(found)) < 0.05
    return np.where(near, found + 0.11, found)


X, Y, V = some(2, 2, 3), some(2, 2, 3), some(2, 3)
P = some(2, 2, 3, low=0.1, high=0.9)
SEQUENCES = [some(3, 2), some(2, 2)]
PICTURE = some(2, 4, 4, 4)
FLAGS = (X > 0).astype(float)


def one(make: Any, expected: Any, data: Any = X, **more: Any) -> Case:
    return Case(make, expected, (data,), **more)


def two(make: Any, expected: Any, a: Any = X, b: Any = Y, **more: Any) -> Case:
    return Case(make, expected, (a, b), **more)


def reduced(function: Any) -> list[Case]:
    """A reduction over one axis and over several, which stay or not, and over the minibatch."""
    numpy = REDUCTIONS[function]

    def case(axes: Any, keepdims: bool, wanted: Any, everywhere: bool = False) -> Case:
        return one(
            lambda x: function(x, axes, keepdims),
            lambda x: numpy(x, axis=wanted, keepdims=keepdims),
            everywhere=everywhere,
        )

    batch = C.Axis.default_batch_axis()
    return [
        case(0, True, 1),
        case(-1, False, 2),
        case(None, True, (1, 2)),
        case((0, C.Axis(1)), False, (1, 2)),
        case(C.Axis.all_static_axes(), False, (1, 2)),
        case(batch, False, 0, True),
        case([batch, -1], False, (0, 2), True),
        case(C.Axis.all_axes(), False, None, True),
    ]


REDUCTIONS: dict[Any, Any] = {
    C.reduce_sum: np.sum,
    C.reduce_mean: np.mean,
    C.reduce_max: np.max,
    C.reduce_min: np.min,
    C.reduce_prod: np.prod,
    C.reduce_log_sum_exp: lambda x, **how: np.log(np.sum(np.exp(x), **how)),
    C.reduce_l1: lambda x, **how: np.sum(np.abs(x), **how),
    C.reduce_l2: lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    C.reduce_sum_square: lambda x, **how: np.sum(x * x, **how),
}


def softmax(x: np.ndarray, axis: Any) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def cross_entropy(z: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return np.log(np.exp(z).sum(axis, keepdims=True)) - (z * y).sum(axis, keepdims=True)


def errors(z: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return (z.argmax(axis) != y.argmax(axis)).astype(float)


def correlated(x: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """Windows of pictures, weighted and summed, without padding."""
    _, _, height, width = kernels.shape
    rows, columns = x.shape[2] - height + 1, x.shape[3] - width + 1
    found = np.zeros((len(x), len(kernels), rows, columns))
    for i, j in np.ndindex(rows, columns):
        found[:, :, i, j] = np.einsum("ncij,kcij->nk", x[:, :, i : i + height, j : j + width], kernels)
    return found


def spread(x: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """Each element of a picture times a kernel, summed up where kernels overlap."""
    _, out, height, width = kernels.shape
    found = np.zeros((len(x), out, x.shape[2] + height - 1, x.shape[3] + width - 1))
    for i, j in np.ndindex(x.shape[2], x.shape[3]):
        found[:, :, i : i + height, j : j + width] += np.einsum("nc,ckij->nkij", x[:, :, i, j], kernels)
    return found


def blocks(x: np.ndarray) -> np.ndarray:
    """Windows of two by two along the last axis."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)


def unpooled(x: np.ndarray) -> np.ndarray:
    largest = blocks(x).max(-1).repeat(2, axis=2).repeat(2, axis=3)
    return np.where(x == largest, x, 0)


def cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def response(x: np.ndarray) -> np.ndarray:
    wide = np.pad(x**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    return x / (1 + 0.5 / 3 * (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:])) ** 0.75


def normalised(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=(2, 3), keepdims=True)
    return centred / (np.sqrt((centred**2).mean(axis=(2, 3), keepdims=True)) + 1e-5)


def logistic(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def total(x: np.ndarray) -> np.ndarray:
    """The sum over the last two axes, which stay."""
    return x.sum(axis=(-2, -1), keepdims=True)


MATRIX, KERNELS = some(3, 4), some(2, 4, 2, 2)
TABLE = some(4, 2)
NUMBERS = np.array([[0.0, 2, 1], [2, 2, 0]])
CLASSES = np.eye(3)[[[0, 2], [1, 1]]]

OPERATORS: dict[str, Case | list[Case]] = {
    "abs": one(C.abs, np.abs),
    "alias": one(C.alias, lambda x: x),
    "acos": one(C.acos, np.arccos, 2 * P - 1),
    "asin": one(C.asin, np.arcsin, 2 * P - 1),
    "atan": one(C.atan, np.arctan),
    "argmax": [one(lambda x: C.argmax(x, 0), lambda x: x.argmax(1)[:, None].astype(float)),
               one(C.argmax, lambda x: x.reshape(2, -1).argmax(1).astype(float))],
    "argmin": one(lambda x: C.argmin(x, -1), lambda x: x.argmin(2)[..., None].astype(float)),
    "asinh": one(C.asinh, np.arcsinh),
    "atanh": one(C.atanh, np.arctanh, P),
    "batch_normalization": one(
        lambda x: C.batch_normalization(x, [2.0, 1, 3], [1.0, 2, 3], [0.5, 0, 0], [4.0, 1, 1], False, epsilon=0,
                                        running_count=0),
        lambda x: (x - [0.5, 0, 0]) / [2, 1, 1] * [2, 1, 3] + [1, 2, 3], V, gradient=None),
    "cast": one(lambda x: C.cast(x, np.float64), lambda x: x),
    "ceil": one(C.ceil, np.ceil),
    "clip": one(lambda x: C.clip(x, -0.55, 0.85), lambda x: np.clip(x, -0.55, 0.85)),
    "combine": one(lambda x: C.combine([C.tanh(x)]).output, np.tanh),
    "convolution": one(lambda x: C.convolution(KERNELS, x, auto_padding=[False]),
                       lambda x: correlated(x, KERNELS), PICTURE),
    "convolution_transpose": one(
        lambda x: C.convolution_transpose(KERNELS.transpose(1, 0, 2, 3), x, auto_padding=[False]),
        lambda x: spread(x, KERNELS.transpose(1, 0, 2, 3)), PICTURE),
    "cos": one(C.cos, np.cos),
    "cosh": one(C.cosh, np.cosh),
    "cosine_distance": two(C.cosine_distance, cosine, V, some(2, 3)),
    "crop_automatic": one(
        lambda x: C.crop_automatic(x, C.pooling(x, C.AVG_POOLING, (3, 3))),
        lambda x: x[:, :, 1:3, 1:3], PICTURE),
    "crop_automatic_with_ancestors": two(
        lambda x, y: C.crop_automatic_with_ancestors(x, C.pooling(y, C.AVG_POOLING, (3, 3)), x, y),
        lambda x, y: x[:, :, 1:3, 1:3], PICTURE, PICTURE[::-1]),
    "crop_manual": two(lambda x, y: C.crop_manual(x, y, 1, 2),
                       lambda x, y: x[:, :, 2:4, 1:4], PICTURE, some(2, 1, 2, 3)),
    "depth_to_space": one(
        lambda x: C.depth_to_space(x, 2),
        lambda x: x.reshape(2, 2, 2, 4, 4).transpose(0, 3, 1, 4, 2).reshape(2, 1, 8, 8), PICTURE),
    "element_and": two(C.element_and, lambda x, y: x * y, FLAGS, 1 - FLAGS * FLAGS[::-1], gradient=None),
    "element_divide": two(C.element_divide, lambda x, y: x / y, X, P),
    "element_max": two(C.element_max, np.maximum),
    "element_min": two(C.element_min, np.minimum),
    "element_not": one(C.element_not, lambda x: 1 - x, FLAGS, gradient=False),
    "element_or": two(C.element_or, np.maximum, FLAGS, FLAGS[::-1], gradient=None),
    "element_select": two(lambda x, y: C.element_select(C.greater(x, 0), x * 2, y),
                          lambda x, y: np.where(x > 0, 2 * x, y)),
    "element_times": [two(C.element_times, lambda x, y: x * y),
                      two(lambda x, y: x * y, lambda x, y: x * y[:, None], X, V)],
    "element_xor": two(C.element_xor, lambda x, y: abs(x - y), FLAGS, FLAGS[::-1], gradient=None),
    "elu": one(lambda x: C.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * (np.exp(x) - 1))),
    "equal": two(C.equal, lambda x, y: (x == y).astype(float), NUMBERS, NUMBERS[::-1], gradient=False),
    "exp": one(C.exp, np.exp),
    "expand_dims": [one(lambda x: C.expand_dims(x, 0), lambda x: x[:, None]),
                    one(lambda x: C.expand_dims(x, -1), lambda x: x[..., None])],
    "flatten": [one(C.flatten, lambda x: x.reshape(2, 1, 6)), one(lambda x: C.flatten(x, 1), lambda x: x),
                one(lambda x: C.flatten(x, 0), lambda x: x.reshape(2, 1, 6))],
    "floor": one(C.floor, np.floor),
    "future_value": one(C.ops.future_value, lambda x: np.vstack([x[1:], 0 * x[:1]]), SEQUENCES),
    "gather": [one(lambda x: C.gather(TABLE, x), lambda x: TABLE[np.round(x).astype(int)], NUMBERS, gradient=False),
               one(lambda x: C.gather(x, np.array([2.0, 0]), axis=1), lambda x: x[..., [2, 0]])],
    "greater": two(C.greater, lambda x, y: (x > y).astype(float)),
    "greater_equal": two(C.greater_equal, lambda x, y: (x >= y).astype(float)),
    "hard_sigmoid": one(lambda x: C.hard_sigmoid(x, 0.3, 0.4), lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    "hardmax": one(C.hardmax, lambda x: np.eye(3)[x.argmax(-1)], V, gradient=False),
    "image_scaler": one(lambda x: C.image_scaler(x, 2, [1, 2, 3, 4]),
                        lambda x: 2 * x + np.arange(1, 5).reshape(1, 4, 1, 1), PICTURE),
    "leaky_relu": one(lambda x: C.leaky_relu(x, 0.25), lambda x: np.where(x > 0, x, x / 4)),
    "less": two(C.less, lambda x, y: (x < y).astype(float)),
    "less_equal": two(C.less_equal, lambda x, y: (x <= y).astype(float)),
    "local_response_normalization": one(lambda x: C.local_response_normalization(x, 1, 1.0, 0.5, 0.75),
                                        response, PICTURE),
    "log": one(C.log, np.log, P),
    "log_add_exp": two(C.log_add_exp, np.logaddexp),
    "log_softmax": [one(lambda x: C.log_softmax(x, 0), lambda x: np.log(softmax(x, 1))),
                    one(C.log_softmax, lambda x: np.log(softmax(x, (1, 2))))],
    "mean": two(lambda x, y: C.mean([x, y]), lambda x, y: (x + y) / 2),
    "mean_variance_normalization": one(C.mean_variance_normalization, normalised, PICTURE),
    "minus": two(C.minus, lambda x, y: x - y),
    "negate": one(C.negate, np.negative),
    "not_equal": two(C.not_equal, lambda x, y: (x != y).astype(float), NUMBERS, NUMBERS[::-1], gradient=False),
    "one_hot": [one(lambda x: C.one_hot(x, 4), lambda x: np.eye(4)[x.astype(int)], NUMBERS, gradient=False),
                one(lambda x: C.one_hot(x, 4, axis=0), lambda x: np.eye(4)[x.astype(int)].swapaxes(1, 2), NUMBERS,
                    gradient=False)],
    "ones_like": one(C.ones_like, np.ones_like),
    "pad": [one(lambda x: C.pad(x, [(1, 0), (0, 2)], constant_value=7), lambda x: np.pad(
                x, [(0, 0), (1, 0), (0, 2)], constant_values=7)),
            one(lambda x: C.pad(x, [(0, 1), (1, 1)], C.ops.REFLECT_PAD), lambda x: np.pad(
                x, [(0, 0), (0, 1), (1, 1)], mode="reflect"))],
    "param_relu": one(lambda x: C.param_relu([0.5, 0.25, 0.75], x),
                      lambda x: np.where(x > 0, x, x * [0.5, 0.25, 0.75])),
    "past_value": [one(lambda x: C.ops.past_value(x, 3.0), lambda x: np.vstack([0 * x[:1] + 3, x[:-1]]), SEQUENCES)],
    "per_dim_mean_variance_normalize": one(
        lambda x: C.per_dim_mean_variance_normalize(x, [1, 2, 3], [2, 2, 4]), lambda x: (x - [1, 2, 3]) * [2, 2, 4]),
    "plus": [two(C.plus, lambda x, y: x + y),
             two(lambda x, y: C.plus(x, y, 2.0), lambda x, y: x + y[:, None] + 2, X, V)],
    "pooling": [one(lambda x: C.pooling(x, C.MAX_POOLING, (2, 2), (2, 2)), lambda x: blocks(x).max(-1), PICTURE),
                one(lambda x: C.pooling(x, C.AVG_POOLING, (2, 2), (2, 2)), lambda x: blocks(x).mean(-1), PICTURE)],
    "pow": [one(lambda x: C.pow(x, 3), lambda x: x**3), two(C.pow, lambda x, y: x**y, P, Y)],
    "reciprocal": one(C.reciprocal, lambda x: 1 / x),
    "reconcile_dynamic_axes": one(lambda x: C.reconcile_dynamic_axes(x, x), lambda x: x, SEQUENCES),
    "relu": one(C.relu, lambda x: np.maximum(x, 0)),
    "reshape": [one(lambda x: C.reshape(x, (3, -1)), lambda x: x.reshape(2, 3, 2)),
                one(lambda x: C.reshape(x, (3, 1), 1), lambda x: x.reshape(2, 2, 3, 1)),
                one(lambda x: C.reshape(x, (1,), 0, 0), lambda x: x.reshape(2, 1, 2, 3))],
    "round": one(C.round, lambda x: np.floor(x + 0.5)),
    "selu": one(C.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1))),
    "sigmoid": one(C.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "sin": one(C.sin, np.sin),
    "sinh": one(C.sinh, np.sinh),
    "slice": [one(lambda x: C.slice(x, 1, 0, -1), lambda x: x[:, :, :-1]),
              one(lambda x: C.slice(x, [0, 1], [1, 0], [2, 3], [1, 2]), lambda x: x[:, 1:2, ::2]),
              one(lambda x: C.slice(x, 1, 0, 3, -1), lambda x: x[:, :, ::-1]),
              one(lambda x: C.slice(x, C.Axis.default_dynamic_axis(), -2, 0), lambda x: x[-2:], SEQUENCES)],
    "softmax": [one(lambda x: C.softmax(x, 0), lambda x: softmax(x, 1)), one(C.softmax, lambda x: softmax(x, (1, 2)))],
    "softplus": one(lambda x: C.softplus(x, 2), lambda x: np.log1p(np.exp(2 * x)) / 2),
    "softsign": one(C.softsign, lambda x: x / (1 + abs(x))),
    "space_to_depth": one(
        lambda x: C.space_to_depth(x, 2),
        lambda x: x.reshape(2, 4, 2, 2, 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 16, 2, 2), PICTURE),
    "splice": [two(C.splice, lambda x, y: np.concatenate([x, y], axis=2)),
               two(lambda x, y: C.splice(x, y, axis=0), lambda x, y: np.concatenate([x, y], axis=1)),
               two(lambda x, y: C.splice(x, y, axis=C.Axis.new_leading_axis()), lambda x, y: np.stack([x, y], axis=1))],
    "sqrt": one(C.sqrt, np.sqrt, P),
    "square": one(C.square, np.square),
    "squeeze": one(lambda x: C.squeeze(C.expand_dims(x, 1), 1), lambda x: x),
    "stop_gradient": one(C.stop_gradient, lambda x: x, gradient=False),
    "sum": two(lambda x, y: C.sum([x, y, x]), lambda x, y: 2 * x + y),
    "swapaxes": one(C.swapaxes, lambda x: x.swapaxes(1, 2)),
    "tan": one(C.tan, np.tan, P),
    "tanh": one(C.tanh, np.tanh),
    "times": [one(lambda x: C.times(x, MATRIX), lambda x: x @ MATRIX),
              two(lambda x, y: C.times(x, C.transpose(y, (1, 0))), lambda x, y: x @ y.swapaxes(1, 2)),
              one(lambda x: C.times(x, MATRIX.reshape(3, 2, 2), output_rank=2),
                  lambda x: (x @ MATRIX).reshape(2, 2, 2), V)],
    "times_transpose": one(lambda x: C.times_transpose(x, MATRIX.T), lambda x: x @ MATRIX),
    "top_k": [one(lambda x: C.top_k(x, 2)[0], lambda x: -np.sort(-x, axis=2)[..., :2]),
              one(lambda x: C.top_k(x, 2)[1], lambda x: np.argsort(-x, axis=2)[..., :2].astype(float))],
    "transpose": one(lambda x: C.transpose(x, (2, 0, 1)), lambda x: x.transpose(0, 3, 1, 2), PICTURE),
    "unpooling": one(
        lambda x: C.unpooling(C.pooling(x, C.MAX_POOLING, (2, 2), (2, 2)), x, C.MAX_UNPOOLING, (2, 2), (2, 2)),
        unpooled, PICTURE),
    "zeros_like": one(C.zeros_like, np.zeros_like),
} | {name.__name__: reduced(name) for name in REDUCTIONS}  # fmt: skip

SEQUENCE_OPERATORS: dict[str, Case | list[Case]] = {
    "broadcast_as": one(lambda x: C.sequence.broadcast_as(C.sequence.last(x), x), lambda x: 0 * x + x[-1], SEQUENCES),
    "delay": one(
        lambda x: C.sequence.delay(x, time_step=2), lambda x: np.vstack([0 * x[:2], x[:-2]])[: len(x)], SEQUENCES
    ),
    "first": one(C.sequence.first, lambda x: x[0], SEQUENCES, reduced=True),
    "future_value": one(
        lambda x: C.sequence.future_value(x, 1.0, 2), lambda x: np.vstack([x[2:], 0 * x[:2] + 1])[: len(x)], SEQUENCES
    ),
    "gather": one(lambda x: C.sequence.gather(x, 1.0 - C.sequence.is_first(x)), lambda x: x[1:], SEQUENCES),
    "is_first": one(C.sequence.is_first, lambda x: np.eye(len(x))[0], SEQUENCES, gradient=False),
    "is_last": one(C.sequence.is_last, lambda x: np.eye(len(x))[-1], SEQUENCES, gradient=False),
    "last": one(C.sequence.last, lambda x: x[-1], SEQUENCES, reduced=True),
    "past_value": one(lambda x: C.sequence.past_value(x, [1.0, 2]), lambda x: np.vstack([[[1, 2]], x[:-1]]), SEQUENCES),
    "reduce_max": one(C.sequence.reduce_max, lambda x: x.max(0), SEQUENCES, reduced=True),
    "reduce_sum": one(C.sequence.reduce_sum, lambda x: x.sum(0), SEQUENCES, reduced=True),
    "scatter": one(
        lambda x: C.sequence.scatter(C.sequence.first(x), C.sequence.is_last(x)),
        lambda x: np.vstack([0 * x[1:], x[:1]]),
        SEQUENCES,
    ),
    "slice": [
        one(lambda x: C.sequence.slice(x, 1, 0), lambda x: x[1:], SEQUENCES),
        one(lambda x: C.sequence.slice(x, 0, 1), lambda x: x[0], SEQUENCES, reduced=True),
    ],
    "softmax": one(C.sequence.softmax, lambda x: softmax(x, 0), SEQUENCES),
    "where": one(
        lambda x: C.sequence.where(1.0 - C.sequence.is_first(x)),
        lambda x: np.arange(1.0, len(x)),
        SEQUENCES,
        gradient=False,
    ),
}

CRITERIA: dict[str, Case | list[Case]] = {
    "binary_cross_entropy": two(C.binary_cross_entropy, logistic, P, P[::-1]),
    "classification_error": [
        two(lambda z, y: C.classification_error(z, y, axis=0), lambda z, y: errors(z, y, 1).mean(axis=-1), X,
            np.eye(2)[[[0, 1, 1], [1, 0, 0]]].swapaxes(1, 2)),
        two(C.classification_error, lambda z, y: errors(z, y, 1), V, CLASSES[0]),
        two(lambda z, y: C.classification_error(z, y, topN=2),
            lambda z, y: (np.argsort(-z)[:, :2] != y.argmax(1)[:, None]).all(1).astype(float), V, CLASSES[0]),
    ],
    "cosine_distance": two(C.losses.cosine_distance, cosine, V, some(2, 3)),
    "cosine_distance_with_negative_samples": two(
        lambda x, y: C.cosine_distance_with_negative_samples(x, y, 1, 1),
        lambda x, y: np.stack([cosine(x, y), cosine(x, np.roll(y, -1, axis=0))], axis=1), V, some(2, 3)),
    "cross_entropy_with_softmax": [
        two(lambda z, y: C.cross_entropy_with_softmax(z, y, axis=0), lambda z, y: cross_entropy(z, y, 1)),
        two(C.cross_entropy_with_softmax, lambda z, y: cross_entropy(z, y, 2)),
        two(C.cross_entropy_with_softmax, lambda z, y: cross_entropy(z, y, 1)[:, 0], V, CLASSES[0], gradient=None),
    ],
    "fmeasure": [
        two(C.fmeasure, lambda p, t: 1 - 2 * total(p * t) / (total(p) + total(t)), P, P[::-1]),
        two(lambda p, t: C.fmeasure(p, t, beta=2), lambda p, t: 1 - 1 / (
            0.2 * total(p) / total(p * t) + 0.8 * total(t) / total(p * t)), PICTURE ** 2, PICTURE[::-1] ** 2),
    ],
    "squared_error": two(C.squared_error, lambda x, y: ((x - y) ** 2).sum(axis=(1, 2))),
    "weighted_binary_cross_entropy": two(
        lambda p, y: C.weighted_binary_cross_entropy(p, y, 3.0), lambda p, y: 3 * logistic(p, y), P, P[::-1]),
}  # fmt: skip

NOT_HERE = {
    "TIMES_NO_INFERRED_INPUT_RANK": "an argument of times: test_small_names",
    "dropout": "masks are drawn at random: test_training_mode",
    "optimized_rnnstack": "its weights have cuDNN's order: tests/networks/nodes",
    "random_sample": "it draws at random: test_more_programs",
    "random_sample_inclusion_frequency": "it simulates draws: test_more_programs",
    **dict.fromkeys(
        ("labels_to_graph", "forward_backward", "edit_distance_error", "nce_loss", "hierarchical_softmax_layer"),
        "they have tests: test_criteria",
    ),
    "lambda_rank": "one value for all samples, and a gradient that is not that of the value: tests/networks/nodes",
    **dict.fromkeys(
        ("assign", "associative_multi_arg", "eye_like", "straight_through_impl"), "they have tests: test_axes_operators"
    ),
    **dict.fromkeys(
        ("to_batch", "to_sequence", "to_sequence_like", "unpack_batch"), "they have tests: test_dynamic_axes"
    ),
    "unpack": "it has tests: test_free_sizes",
    **dict.fromkeys(("as_block", "as_composite"), "they have tests: test_blocks"),
    **dict.fromkeys(("output_variable", "user_function"), "they have tests: test_user_functions"),
    "roipooling": "it has tests: test_convolutions",
    "ndcg_at_1": "one value for all samples: tests/networks/nodes",
    **dict.fromkeys(
        ("constant", "input", "input_variable", "parameter", "placeholder", "placeholder_variable"),
        "leaves, no operators",
    ),
    **dict.fromkeys(("BlockFunction", "Function", "functions", "sequence"), "no operators"),
    **dict.fromkeys(
        ("AVG_POOLING", "CONSTANT_PAD", "MAX_POOLING", "MAX_UNPOOLING", "REFLECT_PAD", "SYMMETRIC_PAD"), "arguments"
    ),
}
"""Public names that are in no table, and why."""

CASES: dict[str, Case] = {
    f"{module}.{name} {number}".removesuffix(" 0"): case
    for module, table in (("ops", OPERATORS), ("sequence", SEQUENCE_OPERATORS), ("criteria", CRITERIA))
    for name, cases in table.items()
    for number, case in enumerate(cases if isinstance(cases, list) else [cases])
}


def test_every_public_operator_is_in_a_table() -> None:
    for module, table in ((C.ops, OPERATORS), (C.sequence, SEQUENCE_OPERATORS)):
        operators = {name for name in module.__all__ if name not in NAMES["ops"].split()}
        assert operators - set(table) - set(NOT_HERE) == set(), "add a case, or a reason to NOT_HERE"
    assert {*C.losses.__all__, *C.metrics.__all__} - {*NAMES["losses"].split()} - set(CRITERIA) - set(NOT_HERE) == set()
    assert {*OPERATORS, *SEQUENCE_OPERATORS, *CRITERIA} & set(NOT_HERE) == set()


@dataclass(frozen=True)
class Found:
    """What one computation of all cases gave."""

    inputs: dict[str, tuple[Any, ...]]
    functions: dict[str, Any]
    values: dict[Any, Any]
    gradients: dict[Any, Any]


def weights(shape: tuple[int, ...]) -> np.ndarray:
    """What the elements of a value are multiplied by before they are summed up."""
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape) + 1.5


TOGETHER = 15
"""Number of cases of a program: compiling takes longer for each case in larger programs."""


@cache
def computed(group: int) -> Found:
    """Some functions and their gradients, of inputs of their own, by one program each."""
    cases = dict(list(CASES.items())[group * TOGETHER : (group + 1) * TOGETHER])
    inputs = {name: tuple(map(leaf_of, case.data)) for name, case in cases.items()}
    functions = {name: case.make(*inputs[name]) for name, case in cases.items()}
    data = {leaf: given for name, case in cases.items() for leaf, given in zip(inputs[name], case.data, strict=True)}
    used = [leaf for function in functions.values() for leaf in function.arguments]
    values = C.combine(list(functions.values())).eval({leaf: data[leaf] for leaf in used})
    weighted = [functions[name] * weights(functions[name].shape) for name in cases if cases[name].gradient is not None]
    numbers = [
        C.reduce_sum(C.sequence.reduce_sum(one) if len(one.dynamic_axes) == 2 else one, keepdims=False)
        for one in weighted
    ]
    of_samples = [one for one in numbers if one.dynamic_axes]
    of_all = [one for one in numbers if not one.dynamic_axes]
    total = C.reduce_sum(C.sum(of_samples), C.Axis.all_axes())
    total = total + C.sum(of_all) if of_all else total
    wanted = [
        leaf for name, case in cases.items() if case.gradient is not None for leaf in inputs[name] if leaf in used
    ]
    return Found(inputs, functions, values, total.grad({leaf: data[leaf] for leaf in total.arguments}, wrt=wanted))


@pytest.fixture
def found(name: str) -> Found:
    """Return what was computed for the group of a case."""
    return computed(list(CASES).index(name) // TOGETHER)


def leaf_of(data: Any) -> Any:
    if isinstance(data, list):
        return C.sequence.input_variable(data[0].shape[1:], dtype=np.float64)
    return C.input_variable(data.shape[1:], dtype=np.float64)


def expected_values(case: Case, data: tuple[Any, ...]) -> Arrays:
    """The values in NumPy, one array for each sequence of sequences."""
    if isinstance(data[0], list):
        return [np.asarray(case.expected(*one), float) for one in zip(*data, strict=True)]
    return [np.asarray(case.expected(*data), float)]


@pytest.mark.parametrize("name", CASES)
def test_shapes_axes_and_values(name: str, found: Found) -> None:
    case, function = CASES[name], found.functions[name]
    value = found.values[function]
    sequences = isinstance(case.data[0], list)
    expected = expected_values(case, case.data)
    batch, steps = C.Axis.default_batch_axis(), C.Axis.default_dynamic_axis()
    axes = () if case.everywhere else (batch,) if not sequences or case.reduced else (batch, steps)
    assert function.dynamic_axes == axes or (len(axes) == 2 == len(function.dynamic_axes)), "gathered steps are an axis"
    if sequences and case.reduced:
        expected = [np.stack(expected)]
    for one, wanted in zip(value if isinstance(value, list) else [value], expected, strict=True):
        assert one.shape == wanted.shape
        assert function.shape == wanted.shape[0 if case.everywhere else 1 :]
        np.testing.assert_allclose(one, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.gradient is not None])
def test_gradients(name: str, found: Found) -> None:
    case, function = CASES[name], found.functions[name]

    def total(data: tuple[Any, ...]) -> float:
        return sum((one * weights(function.shape)).sum() for one in expected_values(case, data))

    for place, leaf in enumerate(found.inputs[name]):
        if leaf not in found.gradients:
            assert leaf not in function.arguments
            continue
        arrays = found.gradients[leaf]
        for number, gradient in enumerate(arrays if isinstance(arrays, list) else [arrays]):
            expected = differences(total, case.data, place, number) if case.gradient else np.zeros_like(gradient)
            np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


def differences(
    total: Callable[[tuple[Any, ...]], float], data: tuple[Any, ...], place: int, number: int
) -> np.ndarray:
    """The gradient of a function of data to one array among them."""

    def moved(at: tuple[int, ...], step: float) -> float:
        given = [[np.array(array) for array in one] if isinstance(one, list) else np.array(one) for one in data]
        (given[place][number] if isinstance(given[place], list) else given[place])[at] += step
        return total(tuple(given))

    array = data[place][number] if isinstance(data[place], list) else data[place]
    found = np.zeros(array.shape)
    for at in np.ndindex(array.shape):
        found[at] = (moved(at, 1e-6) - moved(at, -1e-6)) / 2e-6
    return found


@pytest.mark.parametrize("function", [C.asin, C.acos, C.atanh, lambda x: C.pow(x, -0.5)])
def test_the_end_of_a_shorter_sequence_has_no_gradient(function) -> None:
    """Padding is 0 in the data; after w it has a value for which the function has none."""
    x, w = C.sequence.input_variable(1), C.parameter((1,), init=2.5)
    long, short = np.array([[-3.2], [-1.8], [-2.2]], np.float32), np.array([[-2.3]], np.float32)
    given = function(x + w) if function in (C.asin, C.acos, C.atanh) else function(abs(x) * w)
    both = given.grad({x: [long, short]}, wrt=[w])
    assert np.isfinite(both).all()
    np.testing.assert_allclose(both, sum(given.grad({x: [one]}, wrt=[w]) for one in (long, short)), rtol=1e-5)
