"""cntk.contrib.netopt.factorization: Dense layers with two small matrices in the place of a large one."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.leaves import UNKNOWN
from cntkpy.networks.builders.python.layers import Layer
from cntkpy.readers.errors import ArgumentError

from ...logging.graph import depth_first_search
from ...misc import convert
from ...missing import no_attribute
from ...ops import times
from ...ops.functions import BlockFunction
from ...variables import Parameter

Matrix = NDArray[Any]


def svd_subprojection(matrix: Matrix, k: int) -> tuple[Matrix, Matrix]:
    """Return two factors of the closest matrix of a lower rank.

    Args:
        matrix: of the shape (m, n).
        k: the rank, 1 to min(m, n).

    Returns:
        Matrices of the shapes (m, k) and (k, n); each has the roots of the singular values.
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    roots = np.sqrt(values[:k])
    return left[:, :k] * roots, roots[:, np.newaxis] * right[:k]


def dense_factored(
    shapes: Sequence[int],
    activation: Callable[[Function], Function] | None = None,
    init: Mapping[str, Any] | None = None,
    input_rank: int | None = None,
    map_rank: int | None = None,
    bias: bool = True,
    init_bias: Any = 0,
    name: str = "",
) -> Layer:
    """Return a Dense layer whose weights are a product of two matrices, W1 and W2.

    Args:
        shapes: the columns of W1 and of W2; the second is the size of the result.
        activation: a function of the sums.
        init: how `W1` and `W2` start, arrays or initializers.
        input_rank: not available, as an input is a vector.
        map_rank: the same.
        bias: whether something is added.
        init_bias: how that starts.
        name: of the layer.

    Raises:
        ArgumentError: a rank is given, a start is missing, or `shapes` are not two numbers.
    """
    if input_rank is not None or map_rank is not None:
        raise ArgumentError("dense_factored is of vectors", "leave input_rank and map_rank out")
    if init is None or set(init) != {"W1", "W2"}:
        raise ArgumentError(f"init has the start of both matrices, not {init!r}", "init={'W1': array, 'W2': array}")
    if len(shapes) != 2:
        raise ArgumentError(f"shapes are the columns of two matrices, not {shapes!r}", "shapes=(k, n)")
    inner, outer = shapes
    starts = {key: np.asarray(value) if isinstance(value, list) else value for key, value in init.items()}
    rows = starts["W1"].shape[0] if isinstance(starts["W1"], np.ndarray) else UNKNOWN
    first = Parameter((rows, inner), init=starts["W1"], name="W1")
    second = Parameter((inner, outer), init=starts["W2"], name="W2")
    added = Parameter((outer,), init=init_bias, name="b") if bias else None

    def apply(x: Function) -> Function:
        product = times(times(x, first), second)
        sums = product if added is None else product + added
        return sums if activation is None else activation(sums)

    return BlockFunction("DenseFactored", name)(apply)


def factor_dense(
    model: Function,
    projection_function: Callable[[Matrix], int] | None = None,
    factor_function: Callable[[Matrix, int], tuple[Matrix, Matrix]] | None = None,
    filter_function: Callable[[Function], bool] | None = None,
) -> Function:
    """Return a copy of a model with factored layers in the place of its Dense layers.

    Args:
        model: the model, which stays as it is.
        projection_function: the rank for a matrix of weights, of the shape (inputs, outputs).
        factor_function: makes two factors of such a matrix and a rank; None: `svd_subprojection`.
        filter_function: whether a Dense layer is factored; None: all whose inputs and results are vectors.

    Raises:
        ArgumentError: there is no projection, or a rank or factors do not fit the weights.
    """
    if projection_function is None:
        raise ArgumentError(
            "factor_dense needs the rank of each layer", "projection_function=lambda W: min(W.shape) // 2"
        )
    factor = svd_subprojection if factor_function is None else factor_function

    def is_chosen(block: Function) -> bool:
        if not block.is_block or block.op_name != "Dense" or len(_weights(block).shape) != 2:
            return False
        return filter_function is None or bool(filter_function(block))

    def factored(block: Function) -> Function:
        weights = np.asarray(_weights(block).value)
        k = int(projection_function(weights))
        if not 1 <= k <= min(weights.shape):
            raise ArgumentError(
                f"the rank of weights of the shape {weights.shape} is 1 to {min(weights.shape)}, not {k}"
            )
        left, right = (np.asarray(part, weights.dtype) for part in factor(weights, k))
        if left.shape != (weights.shape[0], k) or right.shape != (k, weights.shape[1]):
            expected = f"({weights.shape[0]}, {k}) and ({k}, {weights.shape[1]})"
            raise ArgumentError(f"the factors have the shapes {left.shape} and {right.shape}, not {expected}")
        biases = [part for part in block.inputs if part.is_parameter and part.name == "b"]
        layer = dense_factored(
            (k, weights.shape[1]),
            _activation(block, bool(biases)),
            {"W1": left, "W2": right},
            bias=bool(biases),
            init_bias=biases[0].value if biases else 0,
            name=block.name,
        )
        return layer(block.inputs[-1])

    return convert(model, is_chosen, factored)


def _weights(block: Function) -> Function:
    """Return the weights of a Dense layer."""
    return next(part for part in block.inputs if part.is_parameter and part.name == "W")


def _activation(block: Function, has_bias: bool) -> Callable[[Function], Function] | None:
    """Return the activation function of a Dense layer; None: it has none."""
    trained = {part.uid for part in block.inputs if part.is_parameter}
    name = "Plus" if has_bias else "Times"

    def is_sum(part: Any) -> bool:
        return getattr(part, "op_name", "") == name and any(operand.uid in trained for operand in part.inputs)

    sums = depth_first_search(block.block_root, is_sum, depth=-1)[0]
    if math.prod(sums.shape) == math.prod(block.shape) and sums == block.block_root:
        return None
    return lambda x: block.block_root.clone("share", {sums: x})


__all__ = ["dense_factored", "factor_dense", "svd_subprojection"]

__getattr__ = no_attribute("cntk.contrib.netopt.factorization", __all__)
