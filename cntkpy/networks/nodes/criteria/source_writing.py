"""Criteria as tensor code: sums over the samples of the minibatch."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.source_support.dialect import Spellings
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import PRODUCT, SUM, NotExpressible, Value, aligned


def _samples(use: Use, *indices: int) -> tuple[list[Value], str]:
    """Return operands `(samples, elements)`, and the last argument of a sum over them, behind a comma.

    Without static shapes they have no padding; else the argument is a mask.
    """
    flat = [use.flat(index) for index in indices]
    if not use.body.dialect.static:
        return [use.real(value, use.node.input(index)) for index, value in zip(indices, flat, strict=True)], ""
    padded = [index for index, value in zip(indices, flat, strict=True) if value.lead == 2]
    if not padded:
        return flat, ""
    return [aligned(value, 2, 1) for value in flat], f", mask={use.mask(padded[0])}"


def _scalar(use: Use, text: str, level: int | None = None) -> Value:
    value = use.value(text, (), lead=0)
    return value if level is None else value._replace(level=level)


def _cross_entropy_with_softmax(use: Use) -> Value:
    (labels, z), mask = _samples(use, 0, 1)
    return _scalar(use, f"{use.helper('cross_entropy')}({z.text}, {labels.text}{mask})")


def _cross_entropy(use: Use) -> Value:
    (labels, p), mask = _samples(use, 0, 1)
    return _scalar(use, use.say("plain_cross_entropy", labels, p, mask), PRODUCT)


def _square_error(use: Use) -> Value:
    (first, second), mask = _samples(use, 0, 1)
    return _scalar(use, use.say("square_error", first, second, mask))


def _logistic(use: Use) -> Value:
    values, mask = _samples(use, *range(len(use.values)))
    return _scalar(use, f"{use.helper('logistic_loss')}({', '.join(value.text for value in values)}{mask})")


def _classification_error(use: Use) -> Value:
    (labels, z), mask = _samples(use, 0, 1)
    if len(use.values) == 3:
        count = use.values[2].number
        if count is None:
            raise NotExpressible("topN is not a constant")
        return _scalar(use, f"{use.helper('errors_of_top')}({z.text}, {labels.text}, {int(count)}{mask})")
    return _scalar(use, f"{use.helper('errors')}({z.text}, {labels.text}{mask})")


def _class_based(use: Use) -> Value:
    hidden, words = shapes.matrix(use.node.input(2).shape or ())
    (labels, h, score), mask = _samples(use, 0, 1, 3)
    matrix = use.reshaped(use.values[2], (words, hidden)).text
    arguments = f"{labels.text}, {h.text}, {matrix}, {score.text}{mask}"
    return _scalar(use, f"{use.helper('class_based_loss')}({arguments})")


def _dummy(use: Use) -> Value:
    values = [use.real(use.flat(index), use.node.input(index)) for index in range(3)]
    return _scalar(use, use.say("with_slope", *values), SUM)


def _torch_with_slope(use: Use, objective: Value, gradient: Value, z: Value) -> str:
    slope = Value(use.say("detach", gradient), 0, ())
    zero = f"({slope.at(PRODUCT)} * ({z.at(SUM)} - {use.say('detach', z)})).sum()"
    return f"{use.say('detach', objective)}.sum() + {zero}"


def _ranking(name: str) -> Rule:
    def rule(use: Use) -> Value:
        if any(value.lead == 2 for value in use.values):
            raise NotExpressible("the documents of a query follow each other in a minibatch, which padding would part")
        gain, score, query = (value.atom + ".flatten()" for value in use.values)
        return _scalar(use, f"{use.helper(name)}({gain}, {score}, {query})")

    return rule


SPELLINGS: Spellings = {
    "plain_cross_entropy": ("-({0} * log({1})).sum()", "plain_cross_entropy({0}, {1}{2})"),
    "with_slope": (_torch_with_slope, "with_slope({0}, {1}, {2})"),
    "square_error": ('F.mse_loss({0}, {1}, reduction="sum")', "square_error({0}, {1}{2})"),
}

NUMBERS = dict.fromkeys(("ClassificationError",))
"""Operations whose constants of one element are numbers."""

RULES: dict[str, Rule] = {
    "CrossEntropyWithSoftmax": _cross_entropy_with_softmax,
    "CrossEntropy": _cross_entropy,
    "SquareError": _square_error,
    "Logistic": _logistic,
    "ClassificationError": _classification_error,
    "ClassBasedCrossEntropyWithSoftmax": _class_based,
    "DummyCriterion": _dummy,
    "NDCG1Eval": _ranking("first_gain"),
    "LambdaRank": _ranking("lambda_rank"),
}

REFUSED = {
    "ForwardBackward": "its labels are a graph of states; the CTC losses of PyTorch and Optax take token numbers",
    "LabelsToGraph": "its labels are a graph of states; the CTC losses of PyTorch and Optax take token numbers",
    "EditDistanceError": "it counts edits of whole token sequences, which no tensor function does",
}
