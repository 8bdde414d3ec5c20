"""Random choices with given weights, for criteria over many classes of which each minibatch looks at a few.

Specified in docs/specification/brainscript-library.md.

Specified in docs/training-from-python.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import NO_SEED, Call
from cntkpy.networks.nodes.declare import (
    BOOLEAN,
    INTEGER,
    REAL,
    TEXT,
    Argument,
    Forward,
    NodeKind,
    Option,
    RecordForm,
    ShapeRule,
    TimeRule,
    inputs,
)

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node


DRAWN = "/drawn"
SIMULATIONS = 10
"""Number of samplings without replacement that are tried to find out how many draws it takes."""


def _classes(node: Node) -> int | None:
    """Return the number of classes with a weight."""
    weights = node.input(0)
    rules.constants(weights)
    count = int(node.options["numSamples"])
    if count < 1:
        raise ShapeProblem("numSamples must be at least 1")
    if weights.shape is None or 0 in weights.shape:
        return None
    classes = shapes.size(weights.shape)
    if shapes.trimmed(weights.shape) != (classes,):
        raise ShapeProblem("the weights must be a vector, one for each class")
    if not node.options["sampleWithReplacement"] and count >= classes:
        raise ShapeProblem(
            f"{count} different classes cannot be drawn from {classes}", "with replacement any number can"
        )
    return classes


def _sample_shape(node: Node) -> Shape | None:
    """`[n x numSamples]` for n weights."""
    classes = _classes(node)
    return None if classes is None else (classes, int(node.options["numSamples"]))


def _frequency_shape(node: Node) -> Shape | None:
    """`[n x 1]` for n weights."""
    classes = _classes(node)
    return None if classes is None else (classes, 1)


def _not_drawn_yet(node: Node) -> dict[str, np.ndarray]:
    return {DRAWN: np.zeros((), np.int32)}


def draws_without_seed(node: Node) -> bool:
    """Return whether a node draws numbers that its place in the network decides."""
    return node.kind.memory is _not_drawn_yet and node.options.get("seed", NO_SEED) == NO_SEED


def first_draw(number: int) -> np.ndarray:
    """Return how many numbers a node counts as drawn before a network is computed; networks of other numbers draw
    others.
    """
    return np.asarray(number * _SPREAD % 2**31, np.int32)


_SPREAD = 0x9E3779B1
"""2^32 times the golden ratio: its multiples lie far apart, however many there are."""


def _stream(call: Call, count: int) -> tuple[Array, Array]:
    """Return the key of a node, and how many numbers it has drawn before these `count`."""
    context, name = call.context, call.node.name + DRAWN
    drawn = jnp.asarray(context.state.get(name, 0), jnp.int32)
    context.new_state[name] = drawn + count
    start = jax.random.key(0) if context.key is None else context.key
    return call.random_key(start), drawn


def _key(call: Call) -> Array:
    """Return another key for every minibatch; nodes of one seed have the same ones, in training mode and otherwise."""
    key, drawn = _stream(call, 1)
    if call.options.get("seed", NO_SEED) != NO_SEED:
        key = call.random_key(jax.random.key(0))
    return jax.random.fold_in(key, drawn)


def _logarithms(weights: Array) -> Array:
    """Of the probabilities."""
    weights = jax.lax.stop_gradient(weights).reshape(-1)
    return jnp.log(weights) - jnp.log(jnp.sum(weights))


def _order(key: Array, logarithms: Array, count: int) -> Array:
    """Different classes in the order in which draws find them: the largest of logarithms with Gumbel noise."""
    return jax.lax.top_k(logarithms + jax.random.gumbel(key, logarithms.shape, logarithms.dtype), count)[1]


def _sample(call: Call, weights: Array) -> Array:
    """Return one-hot columns; in memory `(numSamples, n)`."""
    logarithms, count = _logarithms(weights), int(call.options["numSamples"])
    if call.options["sampleWithReplacement"]:
        chosen = jax.random.categorical(_key(call), logarithms, shape=(count,))
    else:
        chosen = _order(_key(call), logarithms, count)
    return jax.nn.one_hot(chosen, logarithms.shape[0], dtype=call.context.dtype)


def _frequency(call: Call, weights: Array) -> Array:
    """Return the expected number of each class in a sample; in memory `(1, n)`."""
    logarithms, count = _logarithms(weights), int(call.options["numSamples"])
    chances = jnp.exp(logarithms)
    if call.options["sampleWithReplacement"]:
        return (count * chances)[None]

    def draws(key: Array) -> Array:
        """Return the expected number of draws until `count` different classes are drawn, in a given order."""
        cumulated = jnp.cumsum(chances[_order(key, logarithms, count)])
        missed = 1 - jnp.concatenate([jnp.zeros(1, cumulated.dtype), cumulated[:-1]])
        return jnp.sum(1 / jnp.maximum(missed, jnp.finfo(cumulated.dtype).eps))

    mean = jnp.mean(jax.vmap(draws)(jax.random.split(_key(call), SIMULATIONS)))
    return -jnp.expm1(mean * jnp.log1p(-jnp.minimum(chances, 1)))[None]


def _uniform(key: Array, shape: tuple[int, ...], first: float, second: float) -> Array:
    return jax.random.uniform(key, shape, minval=first, maxval=second)


def _normal(key: Array, shape: tuple[int, ...], first: float, second: float) -> Array:
    return first + second * jax.random.normal(key, shape)


def _gumbel(key: Array, shape: tuple[int, ...], first: float, second: float) -> Array:
    return first + second * jax.random.gumbel(key, shape)


def _bernoulli(key: Array, shape: tuple[int, ...], first: float, second: float) -> Array:
    del second
    return jax.random.bernoulli(key, first, shape)


DISTRIBUTIONS: dict[str, Callable[[Array, Any, float, float], Array]] = {
    "uniform": _uniform,
    "normal": _normal,
    "gumbel": _gumbel,
    "bernoulli": _bernoulli,
}


def _random_like(call: Call, x: Array) -> Array:
    """Numbers of the shape of x; without a gradient to x.

    They are a part of one sequence of numbers: two computations of n numbers give those of one of 2 n.
    """
    options = call.options
    draw = DISTRIBUTIONS[options["distribution"]]
    key, drawn = _stream(call, x.size)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, drawn + jnp.arange(x.size))

    def one_number(element_key: Array) -> Array:
        return draw(element_key, (), options["first"], options["second"])

    numbers = jax.vmap(one_number)(keys)
    return numbers.reshape(x.shape).astype(call.context.dtype)


def _kind(name: str, meaning: str, formula: str, shape: ShapeRule | None, forward: Forward, **fields: Any) -> NodeKind:
    signature = (Argument("weights"), Argument("numSamples", INTEGER), Argument("sampleWithReplacement", BOOLEAN))
    return NodeKind(
        name,
        (signature,),
        meaning,
        formula,
        shape,
        forward,
        layout="none",
        time=TimeRule(reduces_time=True),
        random=True,
        memory=_not_drawn_yet,
        record=RecordForm(nodes_only=True),
        **fields,
    )


KINDS = [
    NodeKind(
        "RandomLike",
        (inputs("x"),),
        "Numbers drawn at random, in the shape of x, others for every minibatch. It has no gradient to x.",
        "",
        rules.same,
        _random_like,
        options=(
            Option("distribution", TEXT, "uniform", "what is drawn from", tuple(DISTRIBUTIONS)),
            Option("first", REAL, 0.0, "lower bound of uniform, mean of normal and bernoulli, location of gumbel"),
            Option("second", REAL, 1.0, "upper bound of uniform, deviation of normal, scale of gumbel"),
            Option(
                "seed",
                INTEGER,
                NO_SEED,
                "nodes of the same seed draw the same numbers; 0: the place in the network counts",
            ),
        ),
        time=TimeRule(reduces_time=True),
        random=True,
        memory=_not_drawn_yet,
        record=RecordForm(optional=("seed",)),
        example="noise = RandomLike(x, distribution=normal)",
        not_exported="it draws random numbers",
    ),
    _kind(
        "RandomSample",
        "Classes drawn at random for every minibatch, as one-hot columns. It has no gradient to the weights.",
        "probability of class i in a draw: weight i / sum of weights",
        _sample_shape,
        _sample,
        example="sample = RandomSample(Parameter(10, 1, init=fixedValue, value=1), 5, true)",
        not_exported="it draws random numbers",
    ),
    _kind(
        "RandomSampleInclusionFrequency",
        "How often each class is expected among the columns of RandomSample. It has no gradient to the weights.",
        "with replacement numSamples p; else 1 - (1 - p)^T, T the mean number of draws of 10 simulated samples",
        _frequency_shape,
        _frequency,
        example="often = RandomSampleInclusionFrequency(Parameter(10, 1, init=fixedValue, value=1), 5, true)",
        not_exported="it belongs to the drawing of random numbers",
    ),
]
