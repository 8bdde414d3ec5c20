"""Connectionist temporal classification: the probability of the tokens of a sequence, whenever they are emitted.

A. Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent neural
networks", ICML 2006. Each frame emits a token or the blank. Of what the frames of a sequence emit, equal neighbours
count once and blanks do not count. The probability of a sequence of U tokens is a sum over paths through 2 U + 1
states: the tokens, and blanks around them.
CNTK's reference of forward_backward says the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cntkpy.networks.arrays.largest import first_largest
from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call
from cntkpy.networks.nodes.declare import INTEGER, Argument, NodeKind, Option, RecordForm, TimeRule, inputs

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int32

    from cntkpy.networks.graph.node import Node


IMPOSSIBLE = -1e30
"""The logarithm of the probability 0: finite, so that sums and differences of it are numbers in single precision."""

BOUNDARY = 1.5
"""A label above it, CNTK's 2, begins a token, also where the frame before has the same one."""


def _shape(node: Node) -> Shape | None:
    """`[1]`; graph and features have as many rows as each other, blankTokenId is one of them."""
    graph, features = node.connected
    rules.carrying_data(graph, features)
    if features.shape is None or 0 in features.shape:
        return (1,)
    rows, blank = shapes.size(features.shape), int(node.options["blankTokenId"])
    if graph.shape is not None and 0 not in graph.shape and shapes.size(graph.shape) != rows:
        raise ShapeProblem(f"'{graph.name}' has {shapes.size(graph.shape)} rows, '{features.name}' has {rows}")
    if not 0 <= blank < rows:
        raise ShapeProblem(f"blankTokenId is the number of a row, from 0 to {rows - 1}, not {blank}")
    if node.options["delayConstraint"] < -1:
        delay = node.options["delayConstraint"]
        raise ShapeProblem(f"delayConstraint is a number of frames, or -1 for no constraint, not {delay}")
    return (1,)


class Paths(NamedTuple):
    """The states of each sequence, at most L = 2 T + 1.

    Attributes:
        row: the row of the features that a state emits.
        skips: whether a state may follow the one before the last: a token that is not the one before it.
        until: the last frame in which a state may be.
        final: whether a path may end in a state.
    """

    row: Int32[Array, "S L"]
    skips: Bool[Array, "S L"]
    until: Int32[Array, "S L"]
    final: Bool[Array, "S L"]


def _paths(labels: Float[Array, "T S K"], mask: Bool[Array, "T S"], blank: int, delay: int) -> Paths:
    """Return the states of sequences whose frames have labels: 2, or 1 after the first frame of a token."""
    steps, slots = mask.shape
    row, value = first_largest(labels), jnp.max(labels, axis=-1)
    marked = mask & (value > 0) & (row != blank)
    labels_so_far = jnp.concatenate([jnp.full((1, slots), -1, row.dtype), jnp.where(marked, row, -1)[:-1]])
    begins = marked & ((value > BOUNDARY) | (row != labels_so_far))
    count = jnp.sum(begins, axis=0, dtype=jnp.int32)
    slot = jnp.arange(slots)[None]
    place = jnp.where(marked, jnp.cumsum(begins, axis=0) - 1, steps)
    token = jnp.full((steps, slots), -1, row.dtype).at[jnp.where(begins, place, steps), slot].set(row, mode="drop")
    time = jnp.broadcast_to(jnp.arange(steps, dtype=jnp.int32)[:, None], mask.shape)
    last = jnp.zeros((steps, slots), jnp.int32).at[place, slot].max(time, mode="drop")
    until = last + delay if delay >= 0 else jnp.full_like(last, steps)
    odd = jnp.arange(2 * steps + 1) % 2 == 1
    states = [_between(part.T, fill) for part, fill in ((token, blank), (until, steps))]
    differs = jnp.pad(states[0][:, 2:] != states[0][:, :-2], [(0, 0), (2, 0)])
    number = jnp.arange(2 * steps + 1)[None] - 2 * count[:, None]
    return Paths(jnp.maximum(states[0], 0), differs & odd, states[1], (number == 0) | (number == -1))


def _between(tokens: Array, fill: int) -> Array:
    """Interleave values of tokens `(S, T)`, and `fill` around each: `(S, 2 T + 1)`."""
    blanks = jnp.full_like(tokens, fill)
    return jnp.concatenate([jnp.stack([blanks, tokens], axis=2).reshape(tokens.shape[0], -1), blanks[:, :1]], axis=1)


def _log_sum(a: Array, b: Array, c: Array) -> Array:
    """Return the logarithm of the sum of exponentials; in one pass over the states, which takes half of the time."""
    largest = jnp.maximum(jnp.maximum(a, b), c)
    return largest + jnp.log(jnp.exp(a - largest) + jnp.exp(b - largest) + jnp.exp(c - largest))


def _emissions(logarithms: Float[Array, "S K"], time: Array, paths: Paths) -> Float[Array, "S L"]:
    """Return the terms that being in each state at a time adds to the logarithm of the probability of a path."""
    chances = jnp.take_along_axis(logarithms, paths.row, axis=1)
    return jnp.where(time <= paths.until, chances, IMPOSSIBLE)


def _alphas(logarithms: Array, mask: Array, paths: Paths) -> tuple[Array, Array]:
    """Logarithms of the probability to be in a state at a time, having emitted all up to it; and that of all paths.

    In the gaps after the last frame of a sequence nothing changes.
    """
    steps, slots = mask.shape

    def step(alpha: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        time, now, real = row
        once, two = (jnp.pad(alpha[:, :-by], [(0, 0), (by, 0)], constant_values=IMPOSSIBLE) for by in (1, 2))
        reached = _log_sum(alpha, once, jnp.where(paths.skips, two, IMPOSSIBLE))
        after = jnp.maximum(reached + _emissions(now, time, paths), IMPOSSIBLE)
        alpha = jnp.where(real[:, None], after, alpha)
        return alpha, alpha

    start = jnp.full((slots, 2 * steps + 1), IMPOSSIBLE, logarithms.dtype).at[:, 0].set(0)
    last, alphas = jax.lax.scan(step, start, (jnp.arange(steps), logarithms, mask))
    return alphas, jax.scipy.special.logsumexp(jnp.where(paths.final, last, IMPOSSIBLE), axis=1)


def _occupancies(logarithms: Array, mask: Array, paths: Paths, alphas: Array, total: Array) -> Array:
    """Return the probability that a frame emits a row, given the tokens: `(T, S, K)`."""
    slot = jnp.arange(mask.shape[1])[:, None]

    def step(beta: Array, row: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        time, now, real, alpha = row
        in_state = jnp.exp(alpha + beta - total[:, None])
        in_row = jnp.zeros(now.shape, now.dtype).at[slot, paths.row].add(in_state)
        onward = jnp.maximum(beta + _emissions(now, time, paths), IMPOSSIBLE)
        skipping = jnp.where(paths.skips, onward, IMPOSSIBLE)
        once = jnp.pad(onward[:, 1:], [(0, 0), (0, 1)], constant_values=IMPOSSIBLE)
        two = jnp.pad(skipping[:, 2:], [(0, 0), (0, 2)], constant_values=IMPOSSIBLE)
        return jnp.where(real[:, None], _log_sum(onward, once, two), beta), in_row

    end = jnp.where(paths.final, 0, IMPOSSIBLE).astype(logarithms.dtype)
    times = jnp.arange(mask.shape[0])
    return jax.lax.scan(step, end, (times, logarithms, mask, alphas), reverse=True)[1]


def _forward(features: Array, mask: Array, paths: Paths) -> tuple[Array, Residuals]:
    logarithms = jax.nn.log_softmax(features, axis=-1)
    alphas, total = _alphas(logarithms, mask, paths)
    return -total, (logarithms, mask, paths, alphas, total)


def _backward(residuals: Residuals, g: Array) -> Gradients:
    logarithms, mask, paths, alphas, total = residuals
    slope = jnp.exp(logarithms) - _occupancies(logarithms, mask, paths, alphas, total)
    return jnp.where(mask[..., None], g[None, :, None] * slope, 0), None, None


_path_costs = custom_gradient(_forward, _backward)


def _forward_backward(call: Call, graph: Array, features: Array) -> Array:
    labels, features = jax.lax.stop_gradient(call.flat(graph, 0)), call.flat(features, 1)
    mask = call.context.grid(call.node.input(1).axis).mask
    paths = _paths(labels, mask, int(call.options["blankTokenId"]), int(call.options["delayConstraint"]))
    costs = _path_costs(features, mask, paths)
    call.problem(costs > -IMPOSSIBLE / 2)
    return jnp.sum(costs).reshape(1)


def _graph(call: Call, labels: Array) -> Array:
    return jax.lax.stop_gradient(labels)


KINDS = [
    NodeKind(
        "LabelsToGraph",
        (inputs("labels"),),
        "The labels of frames as ForwardBackward takes them: in each frame 2 or 1 in the row of a token, else 0. "
        "A token begins where there is a 2, and where the row is not that of the frame before.",
        "labels; gradient 0",
        rules.same,
        _graph,
        width="long",
        differentiable=False,
        example="graph = LabelsToGraph(labels)",
        not_exported="it makes the labels of a criterion of training",
    ),
    NodeKind(
        "ForwardBackward",
        ((*inputs("graph", "features"), Argument("blankTokenId", INTEGER)),),
        "Connectionist temporal classification (CTC): how improbable the tokens of the graph are, whichever frames "
        "emit them. The softmax of the features of a frame are the probabilities of the tokens and of the blank.",
        "- sum over sequences of ln (sum over all alignments of the tokens of the product of softmax (features)); "
        "gradient: softmax (features) less the probability of each row given the tokens",
        _shape,
        _forward_backward,
        options=(
            Option(
                "delayConstraint",
                INTEGER,
                -1,
                "how many frames after the last frame of its label a token may be emitted; -1: any number",
            ),
        ),
        layout="none",
        time=TimeRule(reduces_time=True, own_slots=True),
        record=RecordForm(optional=("delayConstraint",)),
        example="ctc = ForwardBackward(LabelsToGraph(labels), z, 2, tag=criterion)",
        not_exported="it sums over all alignments of labels and steps; export the output of the network",
    ),
]
