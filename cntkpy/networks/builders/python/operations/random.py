"""Numbers drawn at random inside of a network, others for every minibatch."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.checks import check_number, seed_option
from cntkpy.networks.builders.python.functions.defaults import chosen_dtype
from cntkpy.networks.builders.python.functions.function import Function, as_node, operator
from cntkpy.networks.builders.python.functions.leaves import Shape, dims
from cntkpy.networks.builders.python.functions.variables import constant
from cntkpy.networks.builders.python.operations.reshaping import Operand


def _drawn(x: Operand, distribution: str, first: float, second: float, seed: int | None, name: str) -> Function:
    numbers = [check_number(f"an argument of {distribution}", argument) for argument in (first, second)]
    return operator("_RandomLike", as_node(x), distribution, *numbers, seed_option(seed), label=name)


def _of_shape(shape: Shape, dtype: DTypeLike | None) -> Function:
    zeros = np.zeros(tuple(reversed(dims(shape))), np.float32)
    wanted = chosen_dtype("random", dtype)
    return as_node(zeros) if wanted is None else constant(zeros, dtype=wanted)


def _probability(mean: float) -> float:
    if not 0 <= check_number("the mean of bernoulli", mean) <= 1:
        raise UserError("BadValue", f"the mean of bernoulli lies from 0 to 1, it is not {mean}")
    return mean


def uniform(
    shape: Shape,
    dtype: DTypeLike | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: int | None = None,
    name: str = "",
) -> Function:
    """Return an array of numbers from `low` to `high`, the same for all samples of a minibatch.

    Args:
        shape: of the array.
        dtype: numpy.float16, numpy.float32 or numpy.float64; by default that of `default_options`, else that of the
            network.
        low: the smallest number.
        high: above all numbers.
        seed: functions of the same seed draw the same numbers, each time they are computed others; None: the place in
            the network counts, and other networks draw others. The same program gives the same numbers in every run.
        name: names it.
    """
    return uniform_like(_of_shape(shape, dtype), low, high, seed, name)


def normal(
    shape: Shape,
    dtype: DTypeLike | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: int | None = None,
    name: str = "",
) -> Function:
    """Return an array of normally distributed numbers; see `uniform`."""
    return normal_like(_of_shape(shape, dtype), mean, scale, seed, name)


def gumbel(
    shape: Shape,
    dtype: DTypeLike | None = None,
    loc: float = 0.0,
    scale: float = 1.0,
    seed: int | None = None,
    name: str = "",
) -> Function:
    """Return an array of numbers with Gumbel's distribution; see `uniform`."""
    return gumbel_like(_of_shape(shape, dtype), loc, scale, seed, name)


def bernoulli(
    shape: Shape, dtype: DTypeLike | None = None, mean: float = 0.5, seed: int | None = None, name: str = ""
) -> Function:
    """Return an array of ones, with the probability `mean`, and zeros; see `uniform`."""
    return bernoulli_like(_of_shape(shape, dtype), mean, seed, name)


def uniform_like(x: Operand, low: float = 0.0, high: float = 1.0, seed: int | None = None, name: str = "") -> Function:
    """Numbers from `low` to `high`, one for each element of `x`."""
    if check_number("an argument of uniform", low) >= check_number("an argument of uniform", high):
        raise UserError("BadValue", f"uniform: low is below high, but {low} is not below {high}")
    return _drawn(x, "uniform", low, high, seed, name)


def normal_like(x: Operand, mean: float = 0.0, scale: float = 1.0, seed: int | None = None, name: str = "") -> Function:
    """Normally distributed numbers with the deviation `scale`, one for each element of `x`."""
    check_number("the deviation", scale, 0.0)
    return _drawn(x, "normal", mean, scale, seed, name)


def gumbel_like(x: Operand, loc: float = 0.0, scale: float = 1.0, seed: int | None = None, name: str = "") -> Function:
    """Numbers with Gumbel's distribution (maxima), one for each element of `x`."""
    check_number("the scale", scale, 0.0)
    return _drawn(x, "gumbel", loc, scale, seed, name)


def bernoulli_like(x: Operand, mean: float = 0.5, seed: int | None = None, name: str = "") -> Function:
    """Ones, with the probability `mean`, and zeros, one for each element of `x`."""
    return _drawn(x, "bernoulli", _probability(mean), 0.0, seed, name)


__all__ = ["bernoulli", "bernoulli_like", "gumbel", "gumbel_like", "normal", "normal_like", "uniform", "uniform_like"]
