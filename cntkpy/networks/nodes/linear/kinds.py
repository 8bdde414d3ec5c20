"""Matrix products and reductions.

Specified in docs/specification/networks.md#b5-linear-algebra-and-reductions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.arrays.products import by_slot, dot, product
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import (
    INTEGER,
    Argument,
    NodeKind,
    Option,
    RecordForm,
    ShapeRule,
    TimeRule,
    inputs,
    one_signature,
)
from cntkpy.networks.nodes.elementwise.kinds import absolute

if TYPE_CHECKING:
    from cntkpy.networks.arrays.sparse import Sparse
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


def _times_shape(node: Node) -> Shape | None:
    """Return a of `[m x k...]` and x of `[k... x r...]` give `[m x r...]`; 0 in the shape of a parameter A is
    inferred.
    """
    a, x = node.input(0), node.input(1)
    if a.shape is None or x.shape is None or 0 in x.shape:
        return None
    right = x.shape or (1,)  # a number is a vector of one element
    rank = _output_rank(node)
    if rank > len(a.shape):
        raise ShapeProblem(f"the left operand of Times has {len(a.shape)} axes, its result cannot have {rank} of them")
    if 0 in a.shape[:rank]:
        raise ShapeProblem("the first dimension of the left operand of Times cannot be inferred")
    if 0 in a.shape:
        _add_axes(node, a, right)
        reduced = len(a.shape) - rank
        if reduced > len(right):
            raise ShapeProblem("the left operand has more axes to contract than the right operand has")
        rules.infer(a, (*a.shape[:rank], *right[:reduced]))
    dims = a.shape
    if rank == 1 and len(dims) == 2 and dims[1] != right[0] and a.is_parameter:
        for count in range(2, len(right) + 1):
            if shapes.size(right[:count]) == dims[1]:
                a.reshape((dims[0], *right[:count]))
                break
    dims = a.shape
    assert dims is not None
    reduced = len(dims) - rank
    result = (*dims[:rank], *right[reduced:]) or (1,)
    if dims[rank:] != shapes.padded(right, reduced)[:reduced]:
        raise ShapeProblem(
            "inner dimensions do not match: the columns of the left operand must be the rows of the right one",
            provisional=result,
        )
    return result


def _output_rank(node: Node) -> int:
    """Return the number of axes of the left operand that are those of the result."""
    rank = int(node.options.get("outputRank", 1))
    if rank < 0:
        raise ShapeProblem("outputRank must not be negative")
    return rank


def _add_axes(node: Node, a: Node, right: Shape) -> None:
    """Give A the axes that it takes from x: all but the last `inferInputRankToMap` of x are contracted."""
    kept = int(node.options.get("inferInputRankToMap", -1))
    assert a.shape is not None
    if kept < 0 or a.shape[-1] or a.value is not None or not a.is_parameter:
        return
    if kept >= len(right):
        raise ShapeProblem(f"the right operand has {len(right)} axes, {kept} of them cannot be kept")
    missing = len(right) - kept - (len(a.shape) - _output_rank(node))
    if missing > 0:
        a.shape = (*a.shape, *(0,) * missing)


def _rows_of(call: Call, matrix: Array, x: Sparse) -> Array:
    """Rows `(U, o)` of the in-memory matrix which a sparse operand touches."""
    gathered = call.context.gathered.get(call.node.input(0).name)
    return jnp.take(matrix, x.rows, axis=0, mode="clip") if gathered is None else gathered.astype(matrix.dtype)


def _sparse_product(rows: Array, x: Sparse) -> Array:
    """Sum over the entries of each cell of value * row: `(T, S, o)`."""
    if x.index.shape[-1] == 1:
        return rows[x.index[..., 0]] * x.values.astype(rows.dtype)
    return jnp.einsum("tskm,tsk->tsm", rows[x.index], x.values.astype(rows.dtype), precision="highest")


def _times(call: Call, a: Array | Sparse, x: Array | Sparse) -> Array:
    """In memory A is (kr ... k1, o), x is (T, S, rest, kr ... k1): a product of joined axes."""
    a_node, x_node = call.node.input(0), call.node.input(1)
    rank = int(call.options.get("outputRank", 1))
    out = shapes.size(a_node.shape[:rank])
    inner = shapes.size(a_node.shape[rank:])
    if is_sparse(a):
        a = a.dense(a_node.shape)
    if is_sparse(x):
        if not a_node.has_layout and rank == 1 and len(x_node.shape) == len(a_node.shape) - 1:
            return _sparse_product(_rows_of(call, a.reshape(inner, out), x), x)
        x = x.dense(x_node.shape)
    if a_node.has_layout:
        lead = a.shape[:2]
        left = a.reshape(*lead, inner, out)
        right = x.reshape(*(x.shape[:2] if x_node.has_layout else (1, 1)), -1, inner)
        if len(left) < len(right):  # one matrix for all steps
            return _by_one_step(right, left[0]).reshape(*right.shape[:2], *reversed(call.node.shape))
        products = jnp.matmul(right, left, precision="highest")
        return products.reshape(*lead, *reversed(call.node.shape))
    lead = x.shape[:2] if x_node.has_layout else ()
    return dot(x.reshape(-1, inner), a.reshape(inner, out)).reshape(*lead, *reversed(call.node.shape))


def _by_one_step(rows: Array, matrix: Array, contract: int = -2) -> Array:
    """Rows (T, S, r, inner) times the matrix of each slot, of which one axis has `inner` elements: (T, S, r, out).

    One product per slot; of `einsum` XLA's code for CPUs makes products whose results it turns.
    """
    steps, slots, count, inner = rows.shape
    left = by_slot(rows).reshape(slots, steps * count, inner)
    return by_slot(product(left, matrix, (-1, contract)).reshape(slots, steps, count, -1))


def _transpose_times_shape(node: Node) -> Shape | None:
    """Return a of `[k x m]` and x of `[k x r...]` give `[m x r...]`."""
    a, x = node.input(0), node.input(1)
    if a.shape is None or x.shape is None or 0 in x.shape:
        return None
    if len(a.shape) > 2:
        raise ShapeProblem("the left operand of TransposeTimes must be a matrix")
    if not x.shape:
        raise ShapeProblem("the right operand of TransposeTimes is a number; it must have an axis")
    if 0 in a.shape:
        if len(a.shape) == 2 and a.shape[1] == 0:
            raise ShapeProblem("the number of columns of the left operand of TransposeTimes cannot be inferred")
        rules.infer(a, (x.shape[0], *a.shape[1:]))
    rows, columns = shapes.matrix(a.shape)
    result = (columns, *x.shape[1:])
    if rows != x.shape[0]:
        raise ShapeProblem(
            "inner dimensions do not match: both operands of TransposeTimes must have as many rows", provisional=result
        )
    return result


def _transpose_times(call: Call, a: Array, x: Array) -> Array:
    a_node, x_node = call.node.input(0), call.node.input(1)
    inner, out = shapes.matrix(a_node.shape)
    if a_node.has_layout:
        lead = a.shape[:2]
        right = x.reshape(*(x.shape[:2] if x_node.has_layout else (1, 1)), -1, inner)
        left = a.reshape(*lead, out, inner)
        if len(left) < len(right):  # one matrix for all steps
            return _by_one_step(right, left[0], -1).reshape(*right.shape[:2], *reversed(call.node.shape))
        products = jnp.einsum("...ri,...oi->...ro", right, left, precision="highest")
        return products.reshape(*lead, *reversed(call.node.shape))
    lead = x.shape[:2] if x_node.has_layout else ()
    return dot(x.reshape(-1, inner), a.reshape(out, inner), (-1, -1)).reshape(*lead, *reversed(call.node.shape))


def _norm(x: Array) -> tuple[Array, Residuals]:
    out = jnp.sqrt(jnp.sum(x * x)).reshape(1)
    return out, (x, out)


_frobenius = custom_gradient(_norm, lambda r, g: (g[0] * r[0] / (r[1][0] + 1e-30),))


def _reduce(function: Callable[[Array], Array]) -> Callable[[Call, Array], Array]:
    def forward(call: Call, x: Array) -> Array:
        return function(call.masked(x) if call.node.input(0).has_layout else x)

    return forward


def _sum(x: Array) -> Array:
    return jnp.sum(x).reshape(1)


def _sum_of_absolutes(x: Array) -> Array:
    return jnp.sum(absolute(x)).reshape(1)


def _column_sum(call: Call, x: Array) -> Array:
    return jnp.sum(call.flat(x), axis=-1, keepdims=True)


def _needs_layout(rule: ShapeRule) -> ShapeRule:
    @functools.wraps(rule)
    def shape(node: Node) -> Shape | None:
        rules.carrying_data(*node.connected)
        return rule(node)

    return shape


def _khatri_rao_shape(node: Node) -> Shape | None:
    """As many rows as the product of those of x and y."""
    x, y = node.input(0).shape, node.input(1).shape
    return None if x is None or y is None else (shapes.size(x) * shapes.size(y),)


def _khatri_rao(call: Call, x: Array, y: Array) -> Array:
    x, y = call.flat(x, 0), call.flat(y, 1)
    return (y[..., :, None] * x[..., None, :]).reshape(*x.shape[:2], -1)


def _cosine(x: Array, y: Array) -> Array:
    """Cosine over the last axis, the inverse norms clipped at 1e30."""
    scale_x = 1 / jnp.maximum(_length(x), 1e-30)
    scale_y = 1 / jnp.maximum(_length(y), 1e-30)
    return jnp.sum(x * y, axis=-1, keepdims=True) * scale_x * scale_y


def _length(x: Array) -> Array:
    square = jnp.sum(x * x, axis=-1, keepdims=True)
    zero = square == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))


def _same_rows(rule: ShapeRule) -> ShapeRule:
    @functools.wraps(rule)
    def shape(node: Node) -> Shape | None:
        x, y = node.input(0).shape, node.input(1).shape
        if x is not None and y is not None and shapes.trimmed(x) != shapes.trimmed(y):
            raise ShapeProblem("the first two operands must have the same shape")
        return rule(node)

    return shape


def _cos_distance(call: Call, x: Array, y: Array) -> Array:
    return _cosine(call.flat(x, 0), call.flat(y, 1))


def _number(node: Node, subject: str) -> int:
    number = None
    if node.is_parameter and node.shape is not None and math.prod(node.shape) == 1:
        if node.value is not None:
            number = float(node.value.reshape(()))
        elif node.init is not None:
            number = node.init.same()  # shapes are inferred before there are values
    if number is None:
        raise ShapeProblem(f"{subject} must be a constant number")
    if not 0 <= number < 1 << 31:
        raise ShapeProblem(f"{subject} must not be {number:g}")
    return int(number)


def _negative_samples_shape(node: Node) -> Shape | None:
    """`[negatives + 1]`."""
    rules.carrying_data(node.input(0), node.input(1))
    _number(node.input(2), "the shift")
    return (_number(node.input(3), "the number of negative samples") + 1,)


def _cos_negative(call: Call, x: Array, y: Array, shift: Array, negatives: Array) -> Array:
    x, y = call.flat(x, 0), call.flat(y, 1)
    lead = x.shape[:2]
    x, y = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    first = _number(call.node.input(2), "the shift")
    count = _number(call.node.input(3), "the number of negative samples")
    places = jnp.arange(len(y))  # no jnp.roll: beside last steps of sequences XLA makes a program of it that crashes
    rows = [_cosine(x, y)] + [_cosine(x, y[(places + first + i) % len(y)]) for i in range(count)]
    return jnp.concatenate(rows, axis=-1).reshape(*lead, count + 1)


def _transpose_shape(node: Node) -> Shape | None:
    """Return the first two axes exchanged."""
    x = node.input(0).shape
    if x is None:
        return None
    x = shapes.padded(x, 2) if len(x) < 2 else x
    return (x[1], x[0], *x[2:])


def _transpose(call: Call, x: Array) -> Array:
    x_node = call.node.input(0)
    lead = x.shape[:2] if x_node.has_layout else ()
    shape = shapes.padded(x_node.shape, 2)
    return jnp.swapaxes(x.reshape(*lead, *reversed(shape)), -1, -2)


def _diagonal(call: Call, x: Array) -> Array:
    return jnp.diagonal(x.reshape(call.node.shape[1], -1)).reshape(-1, 1)


def _diagonal_shape(node: Node) -> Shape | None:
    """`[1 x n]` of an `[n x n]` parameter."""
    x = node.input(0).shape
    if x is None:
        return None
    rows, columns = shapes.matrix(x)
    if rows != columns or node.input(0).has_layout:
        raise ShapeProblem("Diagonal needs a square matrix without minibatch axis")
    return (1, rows)


def _lookup_shape(node: Node) -> Shape | None:
    """E of `[d x v]` and x of `[k v]` give `[k d]`."""
    table, x = node.input(0), node.input(1)
    if table.shape is None or x.shape is None or 0 in x.shape:
        return None
    rules.carrying_data(x)
    if table.has_layout or len(table.shape) != 2:
        raise ShapeProblem("the table must be a matrix without minibatch axis")
    rules.infer(table, (table.shape[0], shapes.size(x.shape)))
    rows, words = shapes.matrix(table.shape)
    if words == 0 or shapes.size(x.shape) % words:
        raise ShapeProblem("the rows of the right operand must be a multiple of the columns of the table")
    return (rows * (shapes.size(x.shape) // words),)


def _lookup(call: Call, table: Array, x: Array | Sparse) -> Array:
    words, rows = call.node.input(0).shape[1], call.node.input(0).shape[0]
    blocks = call.node.shape[0] // rows
    if is_sparse(x):
        if blocks == 1:
            return _sparse_product(_rows_of(call, table, x), x)
        elements = x.elements()
        picked = table[elements % words] * x.values[..., None].astype(table.dtype)
        block = jax.nn.one_hot(elements // words, blocks, dtype=table.dtype)
        return jnp.einsum("tskm,tskb->tsbm", picked, block, precision="highest").reshape(*x.index.shape[:2], -1)
    lead = x.shape[:2]
    return dot(x.reshape(-1, words), table.reshape(words, rows)).reshape(*lead, -1)


def _single(node: Node) -> Shape:
    """`[1]`."""
    return (1,)


KINDS = [
    one_signature(
        "Times",
        inputs("A", "x"),
        "Matrix product; A [o x k1 x ...] is contracted with the first axes of x. A matrix whose columns are the "
        "product of the first dimensions of x is re-shaped to fit.",
        "A x",
        _times_shape,
        _times,
        sparse=True,
        product=True,
        picks_rows=True,
        width="short",
        options=(
            Option("outputRank", INTEGER, 1, "how many axes of A are axes of the result; the others are contracted"),
            Option("inferInputRankToMap", INTEGER, -1, "for inferred axes of A: how many last axes of x are kept"),
        ),
        record=RecordForm(optional=("outputRank", "inferInputRankToMap")),
        example="h = Times(W, x)",
    ),
    one_signature(
        "TransposeTimes",
        inputs("A", "x"),
        "Product with the transposed matrix.",
        "A' x",
        _transpose_times_shape,
        _transpose_times,
        width="short",
        example="h = TransposeTimes(W, z)",
    ),
    one_signature(
        "SumElements",
        inputs("x"),
        "Sum of all elements, over the minibatch too.",
        "sum x",
        rules.scalar,
        _reduce(_sum),
        layout="none",
        time=TimeRule(reduces_time=True),
        example="total = SumElements(x)",
    ),
    one_signature(
        "SumColumnElements",
        inputs("x"),
        "Sum of each column.",
        "sum_i x_i",
        _needs_layout(_single),
        _column_sum,
        example="h = SumColumnElements(x)",
    ),
    one_signature(
        "MatrixL1Reg",
        inputs("x"),
        "Sum of absolute values.",
        "sum |x|; gradient sign(x)",
        rules.scalar,
        _reduce(_sum_of_absolutes),
        aliases=("L1Reg",),
        layout="none",
        time=TimeRule(reduces_time=True),
        example="penalty = MatrixL1Reg(W)",
    ),
    one_signature(
        "MatrixL2Reg",
        inputs("x"),
        "Frobenius norm (not squared).",
        "sqrt(sum x^2); gradient x / (norm + 1e-30)",
        rules.scalar,
        _reduce(_frobenius),
        aliases=("L2Reg",),
        layout="none",
        time=TimeRule(reduces_time=True),
        example="penalty = MatrixL2Reg(W)",
    ),
    one_signature(
        "KhatriRaoProduct",
        inputs("x", "y"),
        "Columnwise cross product.",
        "out[i + rows(x) j] = x_i y_j",
        _needs_layout(_khatri_rao_shape),
        _khatri_rao,
        aliases=("ColumnwiseCrossProduct",),
        example="h = KhatriRaoProduct(x, y)",
    ),
    one_signature(
        "CosDistance",
        inputs("x", "y"),
        "Cosine of two columns.",
        "x'y / (|x| |y|)",
        _same_rows(_single),
        _cos_distance,
        aliases=("CosDist",),
        example="h = CosDistance(x, y)",
    ),
    NodeKind(
        "CosDistanceWithNegativeSamples",
        ((Argument("x"), Argument("y"), Argument("shift"), Argument("negatives")),),
        "Cosine with the matching column and with shifted columns of the minibatch (frames only).",
        "row 0: cos(x_j, y_j); row i: cos(x_j, y_(j + shift + i - 1 mod N))",
        _same_rows(_negative_samples_shape),
        _cos_negative,
        aliases=("CosWithNegSamples",),
        time=TimeRule(reduces_time=True),
        columns=True,
        example="h = CosDistanceWithNegativeSamples(x, y, Constant(1), Constant(4))",
    ),
    one_signature(
        "Transpose",
        inputs("x"),
        "First two axes exchanged.",
        "x'",
        _transpose_shape,
        _transpose,
        record=None,
        example="V = Transpose(W)",
    ),
    one_signature(
        "Diagonal",
        inputs("x"),
        "Diagonal of a square matrix as a row.",
        "x_ii",
        _diagonal_shape,
        _diagonal,
        differentiable=False,
        layout="none",
        example="d = Diagonal(Parameter(4, 4))",
    ),
    one_signature(
        "LookupTable",
        inputs("E", "x"),
        "Each block of x (a stack of one-hot columns) multiplied by the table E and stacked.",
        "(E x_1, E x_2, ...)",
        _lookup_shape,
        _lookup,
        sparse=True,
        picks_rows=True,
        width="short",
        example="e = LookupTable(Parameter(5, 10), words)",
    ),
]
