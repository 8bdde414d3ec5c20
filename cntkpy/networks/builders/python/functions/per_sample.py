"""Criteria as values of each sample.

A criterion node sums over the minibatch, which is what training wants. Where a criterion is evaluated, or is an operand
of another operator, programs expect a value for each sample: the same formula made of other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.blocks import mark_written, written_operands

_made: WeakKeyDictionary[NodeValue, NodeValue] = WeakKeyDictionary()

Node = NodeValue


class Criterion(NamedTuple):
    """The criterion that a formula replaces; its operands must fit as those of the criterion.

    **Fields:**

    - `name`: the operation.
    - `operands`: its inputs.
    """

    name: str
    operands: tuple[Node, ...]


CRITERIA: WeakKeyDictionary[Node, Criterion] = WeakKeyDictionary()
"""The criteria that formulas stand for."""


def keep_criterion(formula: Node, of: Node, replaced: Mapping[Node, Node]) -> None:
    """Let a formula stand for the criterion of another one, with other nodes in the place of some."""
    if of in CRITERIA:
        name, operands = CRITERIA[of]
        CRITERIA[formula] = Criterion(name, tuple(replaced.get(operand, operand) for operand in operands))


def per_sample(node: Node) -> Node:
    """Return the node itself; of a criterion the node that gives its value for each sample."""
    formula = _FORMULAS.get(node.operation.name)
    if formula is None:
        return node
    if node not in _made:
        operands = calls.inputs_of(node)
        _made[node] = _("NewReshape", formula(*operands), [])  # a number, with the shape ()
        mark_written(_made[node], written_operands(node))
        CRITERIA[_made[node]] = Criterion(node.operation.name, operands)
    return _made[node]


def with_samples(criterion: Any) -> Any:
    """Return the criterion itself; of an operand without samples, an array, the formula that has a value for each
    sample.

    A criterion node sums over the minibatch, in which both of its operands have samples.
    """
    node: Node = criterion.root
    operands = calls.inputs_of(node)[:2] if node.operation.name in _FORMULAS else ()
    have_samples = all(type(criterion)(operand).arguments for operand in operands)
    return criterion if have_samples else type(criterion)(per_sample(node))


def _(name: str, *inputs: object) -> Node:
    return calls.call(name, *inputs, name="PerSample")


def _one() -> Node:
    return _("BS.Constants.OnesTensor", [1.0])


def _total(labels: Node, values: Node) -> Node:
    return _("ReduceSum", _("ElementTimes", labels, values))


def _cross_entropy_with_softmax(labels: Node, z: Node) -> Node:
    """Its gradient to z is softmax(z) - labels, whatever the labels sum to, as that of the criterion."""
    logarithm = _("ReduceLogSum", z)
    extra = _("ElementTimes", _("Minus", _("ReduceSum", labels), _one()), _("_StopGradient", logarithm))
    return _("Plus", _("Minus", logarithm, _total(labels, z)), extra)


def _cross_entropy(labels: Node, p: Node) -> Node:
    return _("Negate", _total(labels, _("Log", p)))


def _classification_error(labels: Node, z: Node, top: Node | None = None) -> Node:
    labels = _("Hardmax", labels)
    if top is None:
        return _("Minus", _one(), _total(labels, _("Hardmax", z)))
    above = _("ReduceSum", _("Greater", z, _total(labels, z)))
    return _("GreaterEqual", above, top)


def _square_error(a: Node, b: Node) -> Node:
    difference = _("Minus", a, b)
    return _("ReduceSum", _("ElementTimes", difference, difference))


def _logistic(y: Node, p: Node, weights: Node | None = None) -> Node:
    not_y, not_p = _("Minus", _one(), y), _("Minus", _one(), p)
    likelihood = _("Plus", _("ElementTimes", y, p), _("ElementTimes", not_y, not_p))
    cost = _("Negate", _("ReduceSum", _("Log", likelihood)))
    return cost if weights is None else _("ElementTimes", weights, cost)


_FORMULAS: dict[str, Callable[..., Node]] = {
    "CrossEntropyWithSoftmax": _cross_entropy_with_softmax,
    "CrossEntropy": _cross_entropy,
    "ClassificationError": _classification_error,
    "ErrorPrediction": _classification_error,
    "SquareError": _square_error,
    "Logistic": _logistic,
}
"""The value for a sample of each criterion that has one; rankings have none."""
