"""Rules for matrix products and sums over samples."""

from __future__ import annotations

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.onnx_support.graph import Emitter
from cntkpy.networks.nodes.onnx_support.samples import require_whole, sample_rows, total
from cntkpy.networks.nodes.onnx_support.use import Operand, Rule, Use

LEAST_LENGTH = 1e-30
"""Of vectors whose cosine is computed."""


def _matrix(use: Use, index: int, *dims: int) -> str:
    """Return an operand in the shape of a matrix."""
    name, lead, present, _ = use.operands[index]
    return name if present == dims else use.emit.reshape(name, lead, dims)


def times(use: Use) -> str:
    """In memory A is (k..., m...) and x is (..., rest..., k...): a product of joined axes."""
    a = use.node.input(0).shape or ()
    rank = int(use.options.get("outputRank", 1))
    out, inner = shapes.size(a[:rank]), shapes.size(a[rank:])
    if use.operands[1].numbers and use.operands[1].dims == (inner,) and not use.operands[0].lead:
        return use.shaped(use.emit.op("Gather", _matrix(use, 0, inner, out), use.operands[1].numbers, axis=0), (out,))
    return _product(use, _matrix(use, 0, inner, out), out, inner)


def _product(use: Use, matrix: str, out: int, inner: int) -> str:
    """Return the rows of x times a matrix of `inner` rows and `out` columns."""
    x, by_sample = use.operands[1], use.operands[0].lead > 0
    columns = shapes.size(x.dims) // inner
    if x.dims[-1:] == (inner,) and x.lead and not by_sample:
        rows, dims = x.name, (*x.dims[:-1], out)
    elif columns == 1 and x.lead and not by_sample:
        rows, dims = use.emit.reshape(x.name, x.lead, (inner,)), (out,)
    else:
        rows, dims = _matrix(use, 1, columns, inner), (columns, out)
    return use.shaped(use.emit.op("MatMul", rows, matrix), dims)


def transpose_times(use: Use) -> str:
    """In memory A is (m, k): its last two axes are exchanged."""
    inner, out = shapes.matrix(use.node.input(0).shape or ())
    lead = use.operands[0].lead
    matrix = use.emit.op("Transpose", _matrix(use, 0, out, inner), perm=[*range(lead), lead + 1, lead])
    return _product(use, matrix, out, inner)


def sum_column_elements(use: Use) -> str:
    """Return the sum of a sample."""
    return use.shaped(use.emit.reduce("Sum", use.flat(), [-1]), (1,))


def khatri_rao(use: Use) -> str:
    """Return the products of all pairs of elements, those of x fastest."""
    (x, y), emit = use.operands, use.emit
    first = emit.reshape(x.name, x.lead, (1, shapes.size(x.dims)))
    second = emit.reshape(y.name, y.lead, (shapes.size(y.dims), 1))
    return emit.reshape(emit.op("Mul", second, first), use.lead, use.dims)


def cos_distance(use: Use) -> str:
    """Return the cosine of two samples."""
    return use.shaped(cosine(use.emit, use.flat(0), use.flat(1)), (1,))


def cosine(emit: Emitter, *vectors: str) -> str:
    """Return the sum of products, divided by both lengths, of which neither is taken for less than the least one."""
    product = emit.reduce("Sum", emit.op("Mul", *vectors), [-1])
    for vector in vectors:
        length = emit.op("Sqrt", emit.reduce("Sum", emit.op("Mul", vector, vector), [-1]))
        product = emit.op("Div", product, emit.op("Max", length, emit.real(LEAST_LENGTH)))
    return product


def diagonal(use: Use) -> str:
    """Return the diagonal of a matrix that is the same for all samples, as a row."""
    count = use.operands[0].dims[-1]
    here = use.emit.constant(np.eye(count, dtype=np.bool_))
    return use.emit.reduce("Sum", use.emit.op("Where", here, use.names[0], use.emit.real(0)), [-1])


def transpose(use: Use) -> str:
    """Return the first two axes of a sample exchanged: the last two in memory."""
    x = use.operands[0]
    padded = Operand(x.name, x.lead, (*(1,) * (2 - len(x.dims)), *x.dims))
    name = x.name if padded.dims == x.dims else use.emit.reshape(x.name, x.lead, padded.dims)
    rank = x.lead + len(padded.dims)
    return use.emit.op("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])


def lookup_table(use: Use) -> str:
    """Blocks of x times the table, in memory (words, rows)."""
    rows, words = shapes.matrix(use.node.input(0).shape or ())
    x = use.operands[1]
    blocks = shapes.size(x.dims) // words
    if x.numbers and blocks == 1:
        return use.shaped(use.emit.op("Gather", use.names[0], x.numbers, axis=0), (rows,))
    product = use.emit.op("MatMul", _matrix(use, 1, blocks, words), use.names[0])
    return use.shaped(product, (blocks, rows))


def sum_elements(use: Use) -> str:
    """Return the sum of all elements of the minibatch."""
    return total(use, use.names[0], len(use.operands[0].dims))


def sum_of_absolutes(use: Use) -> str:
    """Return the sum of the absolute values of all elements."""
    return total(use, use.emit.op("Abs", use.names[0]), len(use.operands[0].dims))


def norm(use: Use) -> str:
    """Return the root of the sum of squares of all elements."""
    x = use.names[0]
    return use.emit.op("Sqrt", total(use, use.emit.op("Mul", x, x), len(use.operands[0].dims)))


def negative_samples(use: Use) -> str:
    """Cosines with the sample itself, and with those that follow it after a shift, in a circle."""
    require_whole(use)
    emit, x, y = use.emit, sample_rows(use, 0), sample_rows(use, 1)
    shift, count = (int(use.constants[index].reshape(())) for index in (2, 3))
    samples = emit.squeeze(emit.op("Shape", y, start=0, end=1), 0)
    places = emit.op("Range", emit.integer(0), samples, emit.integer(1))
    cosines = [cosine(emit, x, y)]
    for step in range(shift, shift + count):
        negatives = emit.op("Mod", emit.op("Add", places, emit.integer(step)), samples)
        cosines.append(cosine(emit, x, emit.op("Gather", y, negatives, axis=0)))
    joined = emit.op("Concat", *cosines, axis=-1)
    sizes = emit.op("Concat", emit.leading(use.names[0], use.lead), emit.integers(use.dims), axis=0)
    return emit.op("Reshape", joined, sizes)


RULES: dict[str, Rule] = {
    "Times": times,
    "TransposeTimes": transpose_times,
    "SumColumnElements": sum_column_elements,
    "KhatriRaoProduct": khatri_rao,
    "CosDistance": cos_distance,
    "Transpose": transpose,
    "LookupTable": lookup_table,
    "Diagonal": diagonal,
    "SumElements": sum_elements,
    "MatrixL1Reg": sum_of_absolutes,
    "MatrixL2Reg": norm,
    "CosDistanceWithNegativeSamples": negative_samples,
}
