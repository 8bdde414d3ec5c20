"""Matrix products and reductions as tensor code."""

from __future__ import annotations

import math

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.source_support.dialect import Spellings
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import PRODUCT, NotExpressible, Value, number


def _times(use: Use) -> Value:
    """In memory a matrix is (inner, outputs); a product with samples is `x @ matrix`."""
    for item, operand in (use.values, use.values[::-1]):
        if item.number is not None:
            return use.finished(use.value(f"{operand.at(PRODUCT)} * {number(item.number)}", operand.dims, PRODUCT))
    a_node, x_node = use.node.input(0), use.node.input(1)
    rank = int(use.options.get("outputRank", 1))
    out, inner = shapes.size((a_node.shape or ())[:rank]), shapes.size((a_node.shape or ())[rank:])
    remainder = shapes.size(x_node.shape or ()) // inner
    left = use.reshaped(use.values[0], (inner, out))
    if not left.lead:
        right = use.reshaped(use.values[1], (inner,) if remainder == 1 else (remainder, inner))
        result = use.value(f"{right.at(PRODUCT)} @ {left.at(PRODUCT + 1)}", (*right.dims[:-1], out), PRODUCT)
        return use.finished(result)
    right = _matrix_of(use, 1, (remainder, inner), left.lead)
    result = use.value(f"{right.at(PRODUCT)} @ {left.at(PRODUCT + 1)}", (remainder, out), PRODUCT)
    return use.finished(result)


def _matrix_of(use: Use, index: int, dims: tuple[int, int], lead: int) -> Value:
    """Return an operand as a matrix for each sample."""
    value = use.reshaped(use.values[index], dims)
    if value.lead == 1 and lead == 2:
        return value._replace(text=f"{value.atom}[:, None]", lead=2)
    return value


def _transpose_times(use: Use) -> Value:
    a_node, x_node = use.node.input(0), use.node.input(1)
    inner, out = shapes.matrix(a_node.shape or ())
    remainder = shapes.size(x_node.shape or ()) // inner
    left = use.reshaped(use.values[0], (out, inner))
    if not left.lead:
        right = use.reshaped(use.values[1], (inner,) if remainder == 1 else (remainder, inner))
        result = use.value(f"{right.at(PRODUCT)} @ {left.atom}.T", (*right.dims[:-1], out), PRODUCT)
    else:
        right = _matrix_of(use, 1, (remainder, inner), max(value.lead for value in use.values))
        left = _matrix_of(use, 0, (out, inner), right.lead)
        result = use.value(f"{right.at(PRODUCT)} @ {left.atom}.mT", (remainder, out), PRODUCT)
    return use.finished(result)


def _total(word: str) -> Rule:
    """Return a reduction of all elements, over the minibatch as well."""

    def rule(use: Use) -> Value:
        value = use.real(use.values[0], use.node.input(0))
        return use.value(use.say(word, value), (), lead=0)

    return rule


def _column_sum(use: Use) -> Value:
    return use.value(use.say("Sum", use.flat(), -1), (1,))


def _khatri_rao(use: Use) -> Value:
    x, y = use.flat(0), use.flat(1)
    text = f"({y.atom}[..., :, None] * {x.atom}[..., None, :])"
    return use.reshaped(use.value(text, (y.dims[0], x.dims[0])), (x.dims[0] * y.dims[0],))


def _cos_distance(use: Use) -> Value:
    x, y = use.flat(0), use.flat(1)
    use.values = [x, y]
    return use.value(f"{use.helper('cosine')}({x.text}, {y.text})", (1,))


def _negative_samples(use: Use) -> Value:
    if use.lead == 2:
        raise NotExpressible("it compares samples of different steps, which padding would mix")
    x, y = use.flat(0), use.flat(1)
    shift, count = use.values[2].number, use.values[3].number
    assert shift is not None and count is not None
    text = f"{use.helper('cosine_with_negatives')}({x.text}, {y.text}, {int(shift)}, {int(count)})"
    return use.value(text, (int(count) + 1,))


def _transpose(use: Use) -> Value:
    shape = shapes.padded(use.node.input(0).shape or (), 2)
    value = use.reshaped(use.values[0], tuple(reversed(shape)))
    return use.finished(use.value(use.say("transpose", value, -1, -2), tuple(reversed(use.node.shape or ()))))


def _diagonal(use: Use) -> Value:
    rows = (use.node.shape or (1, 1))[1]
    value = use.reshaped(use.values[0], (rows, rows))
    return use.value(use.say("diagonal", value), (rows, 1))


def _lookup(use: Use) -> Value:
    """Blocks of one-hot vectors, each multiplied by the table."""
    rows, words = shapes.matrix(use.node.input(0).shape or ())
    flat = use.flat(1)
    blocks = math.prod(flat.dims) // words
    table = use.reshaped(use.values[0], (words, rows))
    if blocks == 1:
        return use.value(f"{flat.at(PRODUCT)} @ {table.atom}", (rows,), PRODUCT)
    each = use.reshaped(flat, (blocks, words))
    product = use.value(f"{each.at(PRODUCT)} @ {table.atom}", (blocks, rows), PRODUCT)
    return use.reshaped(product, (blocks * rows,))


SPELLINGS: Spellings = {
    "total": ("{0.atom}.sum()", "{0.atom}.sum()"),
    "total_of_abs": ("{0.atom}.abs().sum()", "jnp.abs({0}).sum()"),
    "norm": ("{0.atom}.norm()", "jnp.linalg.norm({0.atom}.ravel())"),
    "diagonal": ("{0.atom}.diagonal().detach()[:, None]", "jax.lax.stop_gradient(jnp.diagonal({0}))[:, None]"),
}

NUMBERS = dict.fromkeys(("Times", "CosDistanceWithNegativeSamples"))
"""Operations whose constants of one element are numbers."""

RULES: dict[str, Rule] = {
    "Times": _times,
    "TransposeTimes": _transpose_times,
    "SumElements": _total("total"),
    "SumColumnElements": _column_sum,
    "MatrixL1Reg": _total("total_of_abs"),
    "MatrixL2Reg": _total("norm"),
    "KhatriRaoProduct": _khatri_rao,
    "CosDistance": _cos_distance,
    "CosDistanceWithNegativeSamples": _negative_samples,
    "Transpose": _transpose,
    "Diagonal": _diagonal,
    "LookupTable": _lookup,
}
