"""Operators that are made of others: what Python programs expect beside the library of BrainScript."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import reduce

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, in_written_order, operator
from cntkpy.networks.builders.python.operations.operators import (
    Operand,
    abs,
    alias,
    clip,
    element_divide,
    element_select,
    element_times,
    equal,
    exp,
    greater,
    less,
    minus,
    negate,
    plus,
    relu,
    square,
    zeros_like,
)


def _named(function: Function, name: str) -> Function:
    return alias(function, name) if name else function


@described("ElementMax")
def _larger(a: Function, b: Function) -> Function:
    return element_select(greater(a, b), a, b)


@described("ElementMin")
def _smaller(a: Function, b: Function) -> Function:
    return element_select(less(a, b), a, b)


def element_max(left: Operand, right: Operand, *further: Operand, name: str = "") -> Function:
    """Return the larger one, element by element."""
    operands, name = _several((left, right, *further), name)
    return _named(reduce(_larger, operands), name)


def element_min(left: Operand, right: Operand, *further: Operand, name: str = "") -> Function:
    """Return the smaller one, element by element."""
    operands, name = _several((left, right, *further), name)
    return _named(reduce(_smaller, operands), name)


def sum(*operands: Operand, name: str = "") -> Function:
    """Return the sum of several operands, or of a list of them."""
    functions, name = _several(operands, name)
    return _named(reduce(plus, functions), name)


def mean(*operands: Operand, name: str = "") -> Function:
    """Return the mean of several operands, or of a list of them."""
    functions, name = _several(operands, name)
    return element_divide(reduce(plus, functions), float(len(functions)), name=name)


def _several(operands: tuple[Operand, ...], name: str) -> tuple[list[Function], str]:
    """Return the operands, and the name, which may follow them."""
    if operands and isinstance(operands[-1], str):
        operands, name = operands[:-1], operands[-1]
    listed = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if not listed:
        raise CallError("WrongArguments", "a sum or a mean needs an operand")
    return [as_node(operand) for operand in listed], name


def pow(base: Operand, exponent: Operand, name: str = "") -> Function:
    """Return the power of each element; of a base below 0 it is a number only for a whole exponent."""
    return _named(as_node(base) ** exponent, name)


def log_add_exp(left: Operand, right: Operand, name: str = "") -> Function:
    """ln (e^left + e^right)"""
    made = operator("LogPlus", as_node(left), as_node(right), label=name)
    made.root.options["exact"] = True
    return made


def _element_function(function: str, meaning: str) -> Callable[..., Function]:
    def make(x: Operand, name: str = "") -> Function:
        return operator("_ElementFunction", as_node(x), function, label=name)

    make.__doc__ = meaning
    make.__name__ = function
    return make


tan = _element_function("tan", "The tangent.")
asin = _element_function("asin", "The inverse of sin; no number beyond -1 and 1.")
acos = _element_function("acos", "The inverse of cos; no number beyond -1 and 1.")
atan = _element_function("atan", "The inverse of tan.")
sinh = _element_function("sinh", "The hyperbolic sine.")
cosh = _element_function("cosh", "The hyperbolic cosine.")
asinh = _element_function("asinh", "The inverse of sinh.")
atanh = _element_function("atanh", "The inverse of tanh; no number beyond -1 and 1.")


# --------------------------------------------------------------------------------------------- activations


@described("ELU", lambda of: {"alpha": of["alpha"]})
def elu(x: Operand, alpha: float = 1.0, name: str = "") -> Function:
    """X from 0 on, alpha (e^x - 1) below; the gradient at 0 is 1."""
    x = as_node(x)
    below = negate(relu(negate(x)))  # e^x of a large x is infinite, and infinity times a gradient of 0 is not a number
    return element_select(less(x, 0.0), element_times(alpha, minus(exp(below), 1.0)), x, name=name)


@described("SELU")
def selu(x: Operand, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772, name: str = "") -> Function:
    """Scale times `elu`, whose gradient at 0 is 1 (Klambauer et al., "Self-normalizing neural networks", NIPS 2017)."""
    return element_times(scale, elu(x, alpha), name=name)


def softplus(x: Operand, steepness: float = 1.0, name: str = "") -> Function:
    """ln (1 + e^(steepness x)) / steepness"""
    if steepness == 1:
        return log_add_exp(x, 0.0, name)
    return element_divide(log_add_exp(element_times(steepness, x), 0.0), steepness, name=name)


@described("Softsign")
def softsign(x: Operand, steepness: float = 1.0, name: str = "") -> Function:
    """Steepness x / (1 + |steepness x|)"""
    scaled = as_node(x) if steepness == 1 else element_times(steepness, x)
    return element_divide(scaled, plus(1.0, abs(scaled)), name=name)


@described("PReLU")
def param_relu(alpha: Operand, x: Operand, name: str = "") -> Function:
    """X from 0 on, alpha x below; alpha may be a parameter. The gradient at 0 is 1 to x and 0 to alpha."""
    alpha, x = as_node(alpha), as_node(x)
    below = negate(relu(negate(x)))  # the gradient of alpha is a product with it, also where x is infinite
    return in_written_order(element_select(less(x, 0.0), element_times(alpha, below), x, name=name), alpha, x)


@described("HardSigmoid", lambda of: {"alpha": of["alpha"], "beta": of["beta"]})
def hard_sigmoid(x: Operand, alpha: float, beta: float, name: str = "") -> Function:
    """Alpha x + beta, limited to 0 and 1."""
    return clip(plus(element_times(alpha, x), beta), 0.0, 1.0, name=name)


# --------------------------------------------------------------------------------------------- truth values


def element_not(x: Operand, name: str = "") -> Function:
    """1 where the operand is 0, else 0."""
    return equal(x, 0.0, name=name)


def element_and(x: Operand, y: Operand, name: str = "") -> Function:
    """1 where both are 1, of operands of 0 and 1."""
    return element_times(x, y, name=name)


def element_or(x: Operand, y: Operand, name: str = "") -> Function:
    """1 where one of both is 1, of operands of 0 and 1."""
    return minus(plus(x, y), element_times(x, y), name=name)


def element_xor(x: Operand, y: Operand, name: str = "") -> Function:
    """1 where just one of both is 1, of operands of 0 and 1."""
    return square(minus(x, y), name=name)


# --------------------------------------------------------------------------------------------- constants


@described("ConstantOp", lambda of: {"fillValue": 1.0})
def ones_like(x: Operand, name: str = "") -> Function:
    """Ones of the same shape, whatever x is: also where it is infinite or no number."""
    return equal(zeros_like(x), 0.0, name=name)


# --------------------------------------------------------------------------------------------- statistics


def batch_normalization(
    operand: Operand,
    scale: Operand,
    bias: Operand,
    running_mean: Operand,
    running_inv_std: Operand,
    spatial: bool,
    normalization_time_constant: float = 5000,
    blend_time_constant: float = 0,
    epsilon: float = 0.00001,
    use_cudnn_engine: bool = False,
    disable_regularization: bool = False,
    name: str = "",
    running_count: Function | float | np.ndarray | None = None,
) -> Function:
    """Elements brought to mean 0 and variance 1 over the minibatch in training, with running statistics else.

    Args:
        operand: the elements.
        scale: a parameter: the factor of the result.
        bias: a parameter: what is added to it.
        running_mean: a constant that holds the running mean.
        running_inv_std: a constant that holds the running variance.
        spatial: one pair of statistics for each channel; else each element has its own.
        normalization_time_constant: memory of the running statistics in samples.
        blend_time_constant: how much of them enters training.
        epsilon: added to the variance.
        use_cudnn_engine: accepted; there is one engine.
        disable_regularization: accepted; changes nothing.
        name: names the result.
        running_count: a constant with the number of samples that the running statistics are of; there is a warning
            where it is missing, and 0 is assumed. Training changes it.
    """
    del use_cudnn_engine, disable_regularization
    made = operator(
        "BatchNormalization",
        *map(as_node, (operand, scale, bias, running_mean, running_inv_std)),
        bool(spatial),
        label=name,
        normalizationTimeConstant=float(normalization_time_constant),
        blendTimeConstant=float(blend_time_constant),
        epsilon=float(epsilon),
    )
    if running_count is None:
        message = "batch_normalization without running_count counts samples from 0; running_count=constant(0) says so"
        warnings.warn(message, UserWarning, stacklevel=2)
        return made
    cell, number = cell_of(made.root), _count(running_count)
    if isinstance(running_count, Function):
        constant = cell_of(running_count.root)
        cell.use(constant.shows or cell.counter)
        constant.show(cell.counter, running_count.root)
    cell.samples = number
    return made


def _count(running_count: object) -> int:
    """Return the samples that running statistics are of, as a program gives them."""
    value = (
        running_count.value
        if isinstance(running_count, Function) and running_count.is_leaf and not running_count.is_input
        else running_count
    )
    number = np.asarray(value) if isinstance(value, int | float | np.ndarray | np.generic) else np.empty(0)
    if number.size != 1 or not number.reshape(())[()] >= 0:
        message = f"batch_normalization: running_count is a constant of one number from 0 on, not {running_count!r}"
        raise CallError("WrongArguments", message, hint="running_count=constant(0)")
    return int(number.reshape(()))


@described("PerDimMeanVarianceNormalize")
def per_dim_mean_variance_normalize(operand: Operand, mean: Operand, inv_stddev: Operand, name: str = "") -> Function:
    """(operand - mean) * inv_stddev"""
    return element_times(minus(operand, mean), inv_stddev, name=name)


__all__ = [
    "acos", "asin", "asinh", "atan", "atanh", "batch_normalization", "cosh", "element_and", "element_max",
    "element_min", "element_not", "element_or", "element_xor", "elu", "hard_sigmoid", "log_add_exp", "mean",
    "ones_like", "param_relu", "per_dim_mean_variance_normalize", "pow", "selu", "sinh", "softplus", "softsign", "sum",
    "tan",
]  # fmt: skip
