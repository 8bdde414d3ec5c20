"""Matrix products, embeddings."""

from __future__ import annotations

import math

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.attention.onnx_scores import scores_of
from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Unusable, Value
from cntkpy.networks.nodes.shape.onnx_axes import MOST_PICKED, part, stacked


def product(use: Use) -> list[Value]:
    """MatMul."""
    x, y = use.value(0), use.value(1)
    if isinstance(x, Data) and isinstance(y, Array):
        return _by_matrix(use, x, y)
    if isinstance(x, Data) and isinstance(y, Data):
        return _of_data(use, x, y)
    return _from_left(use, use.array(0), use.data(1))


def _by_matrix(use: Use, x: Data, matrix: Array) -> list[Value]:
    """Rows of x times a matrix (k, m), which is the parameter [m x k]."""
    if matrix.value.ndim != 2:
        raise Unusable(f"its second operand has {matrix.value.ndim} axes; a matrix has 2")
    if x.axes[-1] != matrix.value.shape[0]:
        raise Unusable(f"rows of {x.axes[-1]} elements times a matrix of {matrix.value.shape[0]} rows")
    product = use.build.node("Times", use.build.parameter(matrix), x.node)
    return [use.build.data(product, (*x.axes[:-1], matrix.value.shape[1]))]


def _of_data(use: Use, x: Data, y: Data) -> list[Value]:
    """Matrices of each sample, (..., r, k) times (..., k, m), or queries and keys of all steps."""
    if (scores := scores_of(x, y)) is not None:
        return [scores]
    if (
        len(x.dims) > 2
        and x.dims[:-2] == y.dims[:-2]
        and x.words == y.words == x.axes[: len(x.words)] == y.axes[: len(y.words)]
    ):
        return [_of_each(use, x, y)]
    if len(x.dims) != 2 or len(y.dims) != 2 or x.words != y.words or x.axes[-2:] != x.dims or y.axes[-2:] != y.dims:
        raise Unusable("products of two values that depend on the data need one matrix of each per sample")
    product = use.build.node("Times", y.node, x.node)
    return [use.build.data(product, (*x.axes[:-1], y.axes[-1]))]


def _of_each(use: Use, x: Data, y: Data) -> Data:
    """Products of several matrices of each sample, one by one: (..., c, r, k) times (..., c, k, m)."""
    build, words, lead = use.build, x.words, x.dims[:-2]
    count, rows, inner, columns = math.prod(lead), x.dims[-2], x.dims[-1], y.dims[-1]
    if count > MOST_PICKED or y.dims[-2] != inner:
        raise Unusable(
            f"{count} products of matrices per sample; at most {MOST_PICKED} are possible, of sizes that fit"
        )
    left, right = build.data(x.node, (*words, count, rows, inner)), build.data(y.node, (*words, count, inner, columns))
    nodes: list[Node] = []
    for index in range(count):
        a = build.data(part(use, left, len(words), index, index + 1).node, (*words, rows, inner))
        b = build.data(part(use, right, len(words), index, index + 1).node, (*words, inner, columns))
        product_ = build.data(build.node("Times", b.node, a.node), (*words, rows, columns))
        nodes.append(build.data(product_.node, (*words, 1, rows, columns)).node)
    return build.data(nodes[0] if count == 1 else stacked(use, nodes, 3), (*words, *lead, rows, columns))


def _from_left(use: Use, matrix: Array, x: Data) -> list[Value]:
    """Return a matrix (m, k) times x (..., k, r): exchanged, multiplied from the right, exchanged back."""
    if matrix.value.ndim != 2 or len(x.axes) < 2 or isinstance(x.axes[-2], str) or isinstance(x.axes[-1], str):
        raise Unusable("a constant on the left must be a matrix, and the right operand a matrix per sample")
    build = use.build
    parameter = build.parameter(Array(matrix.value.T, f"{matrix.name}.T" if matrix.name else ""))
    turned = build.node("TransposeDimensions", x.node, axis1=1, axis2=2)
    product = build.node("Times", parameter, turned)
    return [
        build.data(
            build.node("TransposeDimensions", product, axis1=1, axis2=2),
            (*x.axes[:-2], matrix.value.shape[0], x.axes[-1]),
        )
    ]


def general(use: Use) -> list[Value]:
    """Gemm: alpha x B + beta C."""
    x, matrix = use.data(0), use.array(1)
    if use.get("transA", 0) or len(x.axes) != 2 or isinstance(x.axes[-1], str):
        raise Unusable("its first operand must be a vector per sample, not transposed")
    value = matrix.value.T if use.get("transB", 0) else matrix.value
    alpha, beta = use.get("alpha", 1.0), use.get("beta", 1.0)
    named = Array(np.asarray(value * np.asarray(alpha, value.dtype)) if alpha != 1 else value, matrix.name)
    (product,) = _by_matrix(use, x, named)
    if not use.has(2):
        return [product]
    assert isinstance(product, Data)
    term = use.array(2)
    bias = term.value.reshape(term.value.shape[1:]) if term.value.ndim == 2 and len(term.value) == 1 else term.value
    if bias.ndim > 1:
        raise Unusable("its third operand must be a vector")
    bias = bias if beta == 1 else np.asarray(bias * np.asarray(beta, bias.dtype))
    node = use.build.node("Plus", product.node, use.build.parameter(Array(bias, term.name), bias.shape or (1,)))
    return [use.build.data(node, product.axes)]


RULES: dict[str, Rule] = {"MatMul": product, "Gemm": general}
