"""Rules for criteria, and for other sums over a minibatch: a criterion becomes a function of a minibatch of ONNX.

Padding of sequences does not count, where a model has their lengths.
"""

from __future__ import annotations

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.elementwise.onnx_writing import clipped_log
from cntkpy.networks.nodes.linear.onnx_writing import sum_elements
from cntkpy.networks.nodes.onnx_support.graph import Emitter
from cntkpy.networks.nodes.onnx_support.lengths import within
from cntkpy.networks.nodes.onnx_support.samples import require_whole, sample_rows, total
from cntkpy.networks.nodes.onnx_support.use import Rule, Use


def _number(use: Use, value: str) -> str:
    return use.emit.reshape(value, 0, use.dims)


def _samples(emit: Emitter, node: Node, value: str, lead: int) -> str:
    """Return the number of samples of a node."""
    inside = within(emit, node, value, 0)
    if inside is not None:
        return emit.op("ReduceSum", emit.cast(inside), keepdims=0)
    return emit.cast(emit.op("ReduceProd", emit.leading(value, lead), keepdims=0))


def _picked(emit: Emitter, values: str, size: int, index: str) -> str:
    """Return the element `index` of the last axis (one number on that axis); 0 if there is none."""
    here = emit.op("Equal", emit.integers(range(size)), index)
    return emit.reduce("Sum", emit.op("Where", here, values, emit.real(0)), [-1])


def cross_entropy_with_softmax(use: Use) -> str:
    """-sum of labels * logsoftmax(z)."""
    logarithms = use.emit.op("LogSoftmax", use.flat(1), axis=-1)
    return use.emit.op("Neg", total(use, use.emit.op("Mul", use.flat(0), logarithms), 1))


def cross_entropy(use: Use) -> str:
    """-sum of labels * log p."""
    return use.emit.op("Neg", total(use, use.emit.op("Mul", use.flat(0), clipped_log(use.emit, use.flat(1))), 1))


def square_error(use: Use) -> str:
    """Return the sum of squares."""
    difference = use.emit.op("Sub", use.flat(0), use.flat(1))
    return total(use, use.emit.op("Mul", difference, difference), 1)


def logistic(use: Use) -> str:
    """-sum of w log(y p + (1 - y)(1 - p)), with weights times the samples by the sum of weights."""
    emit, (y, p), unit = use.emit, (use.flat(0), use.flat(1)), use.emit.real(1)
    complement = emit.op("Mul", emit.op("Sub", unit, y), emit.op("Sub", unit, p))
    cells = clipped_log(emit, emit.op("Add", emit.op("Mul", y, p), complement))
    if len(use.operands) < 3:
        return emit.op("Neg", total(use, cells, 1))
    weights = use.flat(2)
    cost = total(use, emit.op("Mul", weights, cells), 1)
    count = _samples(emit, use.node.input(0), use.names[0], use.operands[0].lead)
    return emit.op("Neg", emit.op("Mul", cost, emit.op("Div", count, total(use, weights, 1, 2))))


def classification_error(use: Use) -> str:
    """Count the samples with a label that is not among the largest elements of z."""
    emit, z = use.emit, use.flat(1)
    wanted = emit.op("ArgMax", use.flat(0), axis=-1, keepdims=1, select_last_index=0)
    if len(use.operands) < 3:
        largest = emit.op("ArgMax", z, axis=-1, keepdims=1, select_last_index=0)
        return total(use, emit.cast(emit.op("Not", emit.op("Equal", largest, wanted))), 1)
    size = shapes.size(use.operands[1].dims)
    score = _picked(emit, z, size, wanted)
    earlier = emit.op("And", emit.op("Equal", z, score), emit.op("Less", emit.integers(range(size)), wanted))
    larger = emit.op("Or", emit.op("Greater", z, score), earlier)
    rank = emit.reduce("Sum", emit.cast(larger), [-1])
    top = emit.reshape(use.names[2], 0, (1,))
    return total(use, emit.cast(emit.op("GreaterOrEqual", rank, top)), 1)


def class_based(use: Use) -> str:
    """-sum of log p(class) + log p(word, given its class); not a number where the labels are not valid."""
    emit = use.emit
    label = emit.whole(use.flat(0))
    word, group, first, last = (emit.slice(label, -1, k, k + 1) for k in range(4))
    hidden, words = shapes.matrix(use.node.input(2).shape or ())
    classes = shapes.size(use.operands[3].dims)
    zero, none = emit.integer(0), emit.real(float("nan"))
    tests = [
        emit.op("GreaterOrEqual", first, zero),
        emit.op("GreaterOrEqual", word, first),
        emit.op("Less", word, last),
        emit.op("LessOrEqual", last, emit.integer(words)),
        emit.op("GreaterOrEqual", group, zero),
        emit.op("Less", group, emit.integer(classes)),
    ]
    valid = tests[0]
    for test in tests[1:]:
        valid = emit.op("And", valid, test)
    places = emit.integers(range(words))
    inside = emit.op("And", emit.op("GreaterOrEqual", places, first), emit.op("Less", places, last))
    logits = emit.op("MatMul", use.flat(1), use.weights(2, (words, hidden), (1, 0)))
    lowest = emit.real(float(np.finfo(emit.dtype).min))
    of_words = emit.op("LogSoftmax", emit.op("Where", inside, logits, lowest), axis=-1)
    of_classes = emit.op("LogSoftmax", use.flat(3), axis=-1)
    both = emit.op("Add", _picked(emit, of_words, words, word), _picked(emit, of_classes, classes, group))
    return emit.op("Neg", total(use, emit.op("Where", valid, both, none), 1))


def _queries(use: Use) -> tuple[str, str, str]:
    """Of documents with the same query: for each pair of documents whether they are, for each document its place."""
    emit = use.emit
    query = emit.squeeze(sample_rows(use, 2), -1)
    changed = emit.op("Not", emit.op("Equal", emit.slice(query, 0, 1), emit.slice(query, 0, 0, -1)))
    number = emit.op("CumSum", emit.whole(changed), emit.integer(0))
    number = emit.op("Concat", emit.integers([0]), number, axis=0)
    same = emit.op("Equal", emit.unsqueeze(number, 1), emit.unsqueeze(number, 0))
    count = emit.squeeze(emit.op("Shape", query, start=0, end=1), 0)
    index = emit.op("Range", emit.integer(0), count, emit.integer(1))
    earlier = emit.op("Less", emit.unsqueeze(index, 0), emit.unsqueeze(index, 1))
    place = emit.reduce("Sum", emit.cast(emit.op("And", same, earlier)), [-1])
    return same, earlier, place


def _ranks(use: Use, same: str, earlier: str) -> str:
    """For each document how many of its query have larger scores; of equal scores the smaller gain is first."""
    emit = use.emit
    pairs = [(emit.op("Transpose", rows, perm=[1, 0]), rows) for rows in (sample_rows(use, 0), sample_rows(use, 1))]
    less = emit.op("Less", *pairs[0])
    tied = emit.op("And", emit.op("Equal", *pairs[0]), earlier)
    tied = emit.op("And", emit.op("Equal", *pairs[1]), emit.op("Or", less, tied))
    ahead = emit.op("And", same, emit.op("Or", emit.op("Greater", *pairs[1]), tied))
    return emit.reduce("Sum", emit.cast(ahead), [-1])


def _of_queries(use: Use, same: str, place: str, actual: str, best: str) -> str:
    """Return the mean over queries of the sum of `actual` by the sum of `best`; 0 where that is 0. Both have one
    column.
    """
    emit, zero = use.emit, use.emit.real(0)
    members = emit.cast(same)
    actual, best = (emit.op("MatMul", members, sums) for sums in (actual, best))
    nothing = emit.op("Equal", best, zero)
    ratio = emit.op("Where", nothing, zero, emit.op("Div", actual, emit.op("Where", nothing, emit.real(1), best)))
    first = emit.op("Equal", place, zero)
    total = emit.op("ReduceSum", emit.op("Where", first, ratio, zero), keepdims=0)
    return emit.op("Div", total, emit.op("ReduceSum", emit.cast(first), keepdims=0))


def _percent(use: Use, share: str) -> str:
    """100 times a share, once for each document."""
    emit = use.emit
    count = emit.cast(emit.op("Size", use.names[0]))
    return _number(use, emit.op("Mul", emit.op("Mul", share, emit.real(100)), count))


def lambda_rank(use: Use) -> str:
    """100 N (1 - mean of actual / ideal), sums of gain / ln(2 + rank)."""
    require_whole(use)
    emit, gain = use.emit, sample_rows(use, 0)
    same, earlier, place = _queries(use)

    def discounted(rank: str) -> str:
        return emit.op("Div", gain, emit.op("Log", emit.op("Add", rank, emit.real(2))))

    ratio = _of_queries(use, same, place, discounted(_ranks(use, same, earlier)), discounted(place))
    return _percent(use, emit.op("Sub", emit.real(1), ratio))


def first_gain(use: Use) -> str:
    """100 N mean of the gain of the first by the largest gain."""
    require_whole(use)
    emit, gain, zero = use.emit, sample_rows(use, 0), use.emit.real(0)
    same, earlier, place = _queries(use)

    def first(rank: str) -> str:
        return emit.op("Where", emit.op("Equal", rank, zero), gain, zero)

    return _percent(use, _of_queries(use, same, place, first(_ranks(use, same, earlier)), first(place)))


RULES: dict[str, Rule] = {
    "CrossEntropyWithSoftmax": cross_entropy_with_softmax,
    "CrossEntropy": cross_entropy,
    "SquareError": square_error,
    "Logistic": logistic,
    "ClassificationError": classification_error,
    "ClassBasedCrossEntropyWithSoftmax": class_based,
    "DummyCriterion": sum_elements,
    "LambdaRank": lambda_rank,
    "NDCG1Eval": first_gain,
}
