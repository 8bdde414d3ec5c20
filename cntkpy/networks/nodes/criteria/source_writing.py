"""Criteria as tensor code: sums over the samples of the minibatch."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import PRODUCT, SUM, NotExpressible, Value


def _pair(use: Use) -> tuple[str, str]:
    """The first two operands `(samples, elements)`, without padding."""
    first, second = (use.real(use.flat(index), use.node.input(index)) for index in (0, 1))
    return first.text, second.text


def _scalar(use: Use, text: str, level: int | None = None) -> Value:
    value = use.value(text, (), lead=0)
    return value if level is None else value._replace(level=level)


def _cross_entropy_with_softmax(use: Use) -> Value:
    labels, z = _pair(use)
    return _scalar(use, f"{use.helper('cross_entropy')}({z}, {labels})")


def _cross_entropy(use: Use) -> Value:
    labels, p = _pair(use)
    return _scalar(use, f"-({labels} * {use.helper('log')}({p})).sum()", PRODUCT)


def _square_error(use: Use) -> Value:
    first, second = _pair(use)
    return _scalar(use, f'F.mse_loss({first}, {second}, reduction="sum")')


def _logistic(use: Use) -> Value:
    labels, p = _pair(use)
    arguments = [labels, p]
    if len(use.values) == 3:
        arguments.append(use.real(use.flat(2), use.node.input(2)).text)
    return _scalar(use, f"{use.helper('logistic_loss')}({', '.join(arguments)})")


def _classification_error(use: Use) -> Value:
    labels, z = _pair(use)
    if len(use.values) == 3:
        count = use.values[2].number
        if count is None:
            raise NotExpressible("topN is not a constant")
        return _scalar(use, f"{use.helper('errors_of_top')}({z}, {labels}, {int(count)})")
    return _scalar(use, f"{use.helper('errors')}({z}, {labels})")


def _class_based(use: Use) -> Value:
    hidden, words = shapes.matrix(use.node.input(2).shape or ())
    labels, h, score = (use.real(use.flat(index), use.node.input(index)).text for index in (0, 1, 3))
    matrix = use.reshaped(use.values[2], (words, hidden)).text
    return _scalar(use, f"{use.helper('class_based_loss')}({labels}, {h}, {matrix}, {score})")


def _dummy(use: Use) -> Value:
    objective, gradient, z = (use.real(use.flat(index), use.node.input(index)) for index in range(3))
    zero = f"({gradient.at(PRODUCT)}.detach() * ({z.at(SUM)} - {z.atom}.detach())).sum()"
    return _scalar(use, f"{objective.atom}.detach().sum() + {zero}", SUM)


def _ranking(name: str) -> Rule:
    def rule(use: Use) -> Value:
        if any(value.lead == 2 for value in use.values):
            raise NotExpressible("the documents of a query follow each other in a minibatch, which padding would part")
        gain, score, query = (value.atom + ".flatten()" for value in use.values)
        return _scalar(use, f"{use.helper(name)}({gain}, {score}, {query})")

    return rule


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
    "ForwardBackward": "its labels are a graph of states; torch.nn.functional.ctc_loss takes token numbers",
    "LabelsToGraph": "its labels are a graph of states; torch.nn.functional.ctc_loss takes token numbers",
    "EditDistanceError": "it counts edits of whole token sequences, which no tensor function does",
}
