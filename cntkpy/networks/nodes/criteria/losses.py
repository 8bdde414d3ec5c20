"""Training and evaluation criteria: sums over the real cells of the minibatch, of shape [1].

Specified in docs/specification/networks.md#b10-criteria-and-evaluation-nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntkpy.networks.arrays.largest import first_largest
from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.criteria.classes import words_in_classes
from cntkpy.networks.nodes.declare import Forward, NodeKind, ShapeRule, Signature, TimeRule, inputs
from cntkpy.networks.nodes.elementwise.kinds import clipped_log

if TYPE_CHECKING:
    from cntkpy.networks.arrays.sparse import Sparse
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


def _masked(cells: Array, mask: Array | None) -> Array:
    """`cells` with trailing axes after (T, S), zero in gaps."""
    if mask is None:
        return cells
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (cells.ndim - 2)), cells, jnp.zeros_like(cells))


# ---- cross entropy with softmax


def _log_probabilities(z: Array) -> Array:
    shifted = z - jax.lax.stop_gradient(jnp.max(z, axis=-1, keepdims=True))
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True))


def _softmax_cost_forward(labels: Array, z: Array, mask: Array) -> tuple[Array, Residuals]:
    logarithms = _log_probabilities(z)
    return -jnp.sum(_masked(labels * logarithms, mask)).reshape(1), (labels, logarithms, mask)


def _softmax_cost_backward(residuals: Residuals, g: Array) -> Gradients:
    labels, logarithms, mask = residuals
    return _masked(-g * logarithms, mask), _masked(g * (jnp.exp(logarithms) - labels), mask), None


_dense_softmax_cost = custom_gradient(_softmax_cost_forward, _softmax_cost_backward)


def _sparse_cost_forward(elements: Array, weights: Array, z: Array, mask: Array) -> tuple[Array, Residuals]:
    logarithms = _log_probabilities(z)
    picked = jnp.take_along_axis(logarithms, elements, axis=-1, mode="clip")
    return -jnp.sum(_masked(weights * picked, mask)).reshape(1), (elements, weights, logarithms, mask)


def _sparse_cost_backward(residuals: Residuals, g: Array) -> Gradients:
    elements, weights, logarithms, mask = residuals
    T, S = elements.shape[:2]
    gradient = jnp.exp(logarithms)
    gradient = gradient.at[jnp.arange(T)[:, None, None], jnp.arange(S)[None, :, None], elements].add(-weights)
    return None, None, _masked(g * gradient, mask), None


_sparse_softmax_cost = custom_gradient(_sparse_cost_forward, _sparse_cost_backward)


def _cross_entropy_with_softmax(call: Call, labels: Array | Sparse, z: Array | Sparse) -> Array:
    z = _plain(call, z, 1)
    if is_sparse(labels):
        return _sparse_softmax_cost(labels.elements(), labels.values.astype(z.dtype), z, call.context.mask)
    return _dense_softmax_cost(call.flat(labels, 0), z, call.context.mask)


def _plain(call: Call, value: Array | Sparse, index: int) -> Array:
    if is_sparse(value):
        value = value.dense(call.node.input(index).shape)
    return call.flat(value, index)


# ---- others


def _cross_entropy(call: Call, labels: Array, p: Array) -> Array:
    return _probability_cost(call.flat(labels, 0), call.flat(p, 1), call.context.mask)


def _probability_cost_forward(labels: Array, p: Array, mask: Array) -> tuple[Array, Residuals]:
    logarithms = clipped_log(p)
    return -jnp.sum(_masked(labels * logarithms, mask)).reshape(1), (labels, p, logarithms, mask)


def _probability_cost_backward(residuals: Residuals, g: Array) -> Gradients:
    labels, p, logarithms, mask = residuals
    return _masked(-g * logarithms, mask), _masked(-g * labels / p, mask), None


_probability_cost = custom_gradient(_probability_cost_forward, _probability_cost_backward)


def _square_error(call: Call, a: Array, b: Array) -> Array:
    difference = call.flat(a, 0) - call.flat(b, 1)
    difference = call.masked(difference)
    return jnp.sum(difference * difference).reshape(1)


def _logistic_forward(y: Array, p: Array, weights: Array, mask: Array) -> tuple[Array, Residuals]:
    likelihood = y * p + (1 - y) * (1 - p)
    cells = _masked(weights * clipped_log(likelihood), mask)
    return -jnp.sum(cells).reshape(1), (y, likelihood, weights, mask)


def _logistic_backward(residuals: Residuals, g: Array) -> Gradients:
    y, likelihood, weights, mask = residuals
    return None, _masked(-g * weights * (2 * y - 1) / likelihood, mask), None, None


_logistic_cost = custom_gradient(_logistic_forward, _logistic_backward)


def _logistic(call: Call, y: Array, p: Array, weights: Array | None = None) -> Array:
    y, p = jax.lax.stop_gradient(call.flat(y, 0)), call.flat(p, 1)
    mask = call.context.mask
    if weights is None:
        return _logistic_cost(y, p, jnp.ones((), p.dtype), mask)
    factors = jax.lax.stop_gradient(call.flat(weights, 2))
    cost = _logistic_cost(y, p, factors, mask)
    factor = call.context.samples() / jnp.sum(_masked(factors, mask))
    # the value is normalised by the weights, its gradient is not (as in CNTK)
    return cost + jax.lax.stop_gradient(cost * (factor - 1))


def _logistic_shape(node: Node) -> Shape | None:
    """`[1]`; y and p have the same shape, weights one row."""
    rule = rules.equal_shapes(node)
    if len(node.inputs) == 3:
        weights = node.input(2)
        if weights.shape is not None and shapes.size(weights.shape) != 1:
            raise ShapeProblem("the weights must have one row")
        rules.carrying_data(weights)
    return rule


def _error_shape(node: Node) -> Shape | None:
    """`[1]`; labels and z have the same shape, topN is a constant."""
    rule = rules.equal_shapes(node)
    if len(node.inputs) == 3 and (node.input(2).has_layout or shapes.size(node.input(2).shape or (1,)) != 1):
        raise ShapeProblem("topN must be a single constant, as in Constant(5)")
    return rule


def _classification_error(call: Call, labels: Array | Sparse, z: Array | Sparse, top: Array | None = None) -> Array:
    scores = jax.lax.stop_gradient(_plain(call, z, 1))
    if is_sparse(labels) and labels.index.shape[-1] == 1:
        wanted = jnp.minimum(labels.elements()[..., 0], scores.shape[-1] - 1)
        wanted = jnp.where(labels.values[..., 0] == 0, 0, wanted)  # no label: the first of equal values, as when dense
    else:
        wanted = first_largest(jax.lax.stop_gradient(_plain(call, labels, 0)))
    if top is None:
        wrong = first_largest(scores) != wanted
    else:
        wanted_score = jnp.take_along_axis(scores, wanted[..., None], axis=-1)
        earlier = jnp.arange(scores.shape[-1]) < wanted[..., None]
        rank = jnp.sum((scores > wanted_score) | ((scores == wanted_score) & earlier), axis=-1)
        wrong = rank >= jax.lax.stop_gradient(top).reshape(()).astype(rank.dtype)
    if call.context.mask is not None:
        wrong = wrong & call.context.mask
    return jnp.sum(wrong.astype(scores.dtype)).reshape(1)


def _class_based_shape(node: Node) -> Shape | None:
    """`[1]`; labels have 4 rows, W is `[rows of h x words]`."""
    label, h, weights, score = (node.input(i) for i in range(4))
    if label.shape is not None and shapes.size(label.shape) != 4:
        raise ShapeProblem("the labels must have 4 rows: word, class, first word of the class, one past the last")
    rules.carrying_data(label, h, score)
    rules.constants(weights)
    if h.shape is not None and weights.shape is not None and shapes.matrix(weights.shape)[0] != shapes.size(h.shape):
        raise ShapeProblem("the weights must have as many rows as the hidden layer")
    return (1,)


def _class_based(call: Call, labels: Array, h: Array, weights: Array, score: Array) -> Array:
    hidden, words = shapes.matrix(call.node.input(2).shape)
    ids = jax.lax.stop_gradient(call.flat(labels, 0)).astype(jnp.int32).reshape(-1, 4)
    h, score, mask = call.flat(h, 1), call.flat(score, 3), call.context.mask
    lead = h.shape[:2]
    if mask is not None:
        ids = jnp.where(mask.reshape(-1, 1), ids, jnp.asarray([0, 0, 0, 1], jnp.int32))
    word, group, first, last = (ids[:, i] for i in range(4))
    valid = (first >= 0) & (first <= word) & (word < last) & (last <= words) & (group >= 0) & (group < score.shape[-1])
    ids = jnp.where(valid[:, None], ids, jnp.asarray([0, 0, 0, 1], jnp.int32))
    word, group, first, last = (ids[:, i] for i in range(4))
    use = jnp.ones(len(ids), h.dtype) if mask is None else mask.reshape(-1).astype(h.dtype)
    in_class = words_in_classes(
        h.reshape(-1, hidden),
        weights.reshape(words, hidden),
        word,
        first,
        last,
        use * valid.astype(h.dtype),
        score.shape[-1],
    )
    of_class = jnp.take_along_axis(_log_probabilities(score), group.reshape(*lead, 1), -1, mode="clip")[..., 0]
    wrong = jnp.where(jnp.all(valid), 0, jnp.nan).astype(h.dtype)
    return -call.total(of_class) - in_class + wrong


def _dummy_forward(objective: Array, gradient: Array, z: Array, mask: Array) -> tuple[Array, tuple[Array, Array]]:
    return jnp.sum(_masked(objective, mask)).reshape(1), (gradient, mask)


_dummy_cost = custom_gradient(
    _dummy_forward, lambda residuals, g: (None, None, _masked(g * residuals[0], residuals[1]), None)
)


def _dummy(call: Call, objective: Array, gradient: Array, z: Array) -> Array:
    return _dummy_cost(call.flat(objective, 0), call.flat(gradient, 1), call.flat(z, 2), call.context.mask)


def _dummy_shape(node: Node) -> Shape | None:
    """`[1]`, the sum of all rows of the objective; it and the gradient are inputs, gradient has the shape of z."""
    objective, gradient, z = (node.input(i) for i in range(3))
    if objective.inputs or gradient.inputs:
        raise ShapeProblem("the objective and the gradient must be inputs")
    rules.carrying_data(objective, gradient, z)
    if gradient.shape is not None and z.shape is not None and shapes.size(gradient.shape) != shapes.size(z.shape):
        raise ShapeProblem("the gradient must have as many rows as the last operand")
    return (1,)


def _criterion(
    name: str,
    signatures: tuple[Signature, ...],
    meaning: str,
    formula: str,
    shape: ShapeRule | None,
    forward: Forward,
    **fields: Any,
) -> NodeKind:
    return NodeKind(
        name,
        signatures,
        meaning,
        formula,
        shape,
        forward,
        layout="none",
        time=TimeRule(reduces_time=True),
        pairwise=shape in (rules.equal_shapes, _logistic_shape, _error_shape),
        **fields,
    )


KINDS = [
    _criterion(
        "CrossEntropyWithSoftmax",
        (inputs("labels", "z"),),
        "Cross entropy of labels and the softmax of z.",
        "-sum labels * logsoftmax(z); gradient to z: softmax(z) - labels, whatever the labels sum to",
        rules.equal_shapes,
        _cross_entropy_with_softmax,
        aliases=("CEWithSM",),
        sparse=True,
        example="ce = CrossEntropyWithSoftmax(labels, z, tag=criterion)",
    ),
    _criterion(
        "CrossEntropy",
        (inputs("labels", "p"),),
        "Cross entropy of labels and probabilities.",
        "-sum labels * log p (clipped log); gradient to p: -labels / p",
        rules.equal_shapes,
        _cross_entropy,
        example="ce = CrossEntropy(labels, Softmax(z), tag=criterion)",
    ),
    _criterion(
        "SquareError",
        (inputs("a", "b"),),
        "Sum of squares.",
        "sum (a - b)^2",
        rules.equal_shapes,
        _square_error,
        aliases=("SE",),
        example="mse = SquareError(labels, z, tag=criterion)",
    ),
    _criterion(
        "Logistic",
        (inputs("y", "p"), inputs("y", "p", "weights")),
        "Cross entropy of 0/1 labels and probabilities.",
        "-sum log(y p + (1 - y)(1 - p)); with weights -N sum w log(...) / sum w, its gradient not normalised",
        _logistic_shape,
        _logistic,
        example="loss = Logistic(Input(1), Sigmoid(Times(Parameter(1, 4), x)), tag=criterion)",
    ),
    _criterion(
        "ClassificationError",
        (inputs("labels", "z"), inputs("labels", "z", "topN")),
        "Number of frames whose label is not among the topN largest of z.",
        "the first of equal values counts as the larger",
        _error_shape,
        _classification_error,
        aliases=("ErrorPrediction",),
        differentiable=False,
        sparse=True,
        elsewhere={"topn": "it is the third input: ClassificationError(labels, z, Constant(5))"},
        example="err = ClassificationError(labels, z, tag=eval)",
    ),
    _criterion(
        "ClassBasedCrossEntropyWithSoftmax",
        (inputs("labels", "h", "W", "classScore"),),
        "Cross entropy of a word given its class and of the class; labels: (word, class, first word, last + 1).",
        "-log softmax(classScore)[class] - log softmax(W[:, first:last]' h)[word - first]",
        _class_based_shape,
        _class_based,
        aliases=("CBCEWithSM",),
        example=(
            "score = Times(Parameter(20, 4), x)\n"
            "ce = ClassBasedCrossEntropyWithSoftmax(Input(4), x, Parameter(4, 1000), score, tag=criterion)"
        ),
    ),
    _criterion(
        "DummyCriterion",
        (inputs("objective", "gradient", "z"),),
        "Objective and gradient given by the data.",
        "sum objective; gradient to z: gradient",
        _dummy_shape,
        _dummy,
        example="loss = DummyCriterion(Input(1), Input(3), z, tag=criterion)",
    ),
]
