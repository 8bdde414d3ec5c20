"""Operations that look at the run: whether it trains, what passed since the start of the epoch, what values are.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import (
    BOOLEAN,
    INTEGER,
    SECTION,
    TEXT,
    Argument,
    NodeKind,
    Option,
    RecordForm,
    TimeRule,
    inputs,
    unchanged,
)

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node
    from cntkpy.networks.nodes.call import Call
    from cntkpy.networks.nodes.onnx_support.use import Use


PROPERTIES = ("isTraining",)
SUM, COUNT = "/sum", "/count"
NUDGE = "/nudge"
"""An array of this name behind that of a Trace is added to its values, so that one can differentiate by them."""


def _property(options: dict[str, object]) -> None:
    if options["propertyName"] not in PROPERTIES:
        raise ShapeProblem(f"there is no property '{options['propertyName']}'", "the properties are: isTraining")


def _environment(call: Call) -> Array:
    return jnp.full((1,), 1 if call.context.training else 0, call.context.dtype)


def _accumulated_shape(node: Node) -> Shape | None:
    """Return the shape of x."""
    rules.carrying_data(node.input(0))
    return node.input(0).shape


def _nothing_yet(node: Node) -> dict[str, np.ndarray]:
    return {SUM: np.zeros(tuple(reversed(node.shape or ())), np.float64), COUNT: np.zeros((), np.float64)}


def mean_so_far(node: Node, state: Mapping[str, Array]) -> Array:
    """Return the value of an EpochAccumulator after what the state has seen; 0 before the first sample."""
    total, count = state[node.name + SUM], state[node.name + COUNT]
    return total / jnp.maximum(count, 1)


def _accumulate(call: Call, x: Array) -> Array:
    context, name = call.context, call.node.name
    state: dict[str, Array] = {
        name + key: context.state.get(name + key, jnp.asarray(start)) for key, start in _nothing_yet(call.node).items()
    }
    cells = jax.lax.stop_gradient(call.masked(x)).astype(jnp.float64)
    state[name + SUM] = state[name + SUM] + jnp.sum(cells, axis=(0, 1))
    state[name + COUNT] = state[name + COUNT] + context.samples()
    context.new_state.update(state)
    return mean_so_far(call.node, state).astype(context.dtype)


def _traced(call: Call, x: Array) -> Array:
    nudge = call.context.state.get(call.node.name + NUDGE)
    return x if nudge is None or nudge.shape != x.shape else x + nudge


def _assigned_shape(node: Node) -> Shape | None:
    """Return the shape of x, that of the parameter."""
    target, x = node.connected
    if not target.is_parameter:
        raise ShapeProblem(f"'{target.name}' is not a parameter, so no value can be assigned to it")
    if x.has_layout:
        message = f"'{x.name}' has a value for each sample, one value for the whole minibatch is expected"
        raise ShapeProblem(message, "reduce it over the minibatch first: ReduceMinibatch, in Python reduce_mean")
    if x.shape is not None:
        rules.infer(target, x.shape)
        if target.shape is not None and 0 not in (*target.shape, *x.shape) and target.shape != x.shape:
            raise ShapeProblem(f"'{target.name}' and '{x.name}' have different shapes")
    return x.shape


def _assigned(call: Call, target: Array, x: Array) -> Array:
    context, name = call.context, call.node.input(0).name
    value = jax.lax.stop_gradient(x)
    if name in context.state:
        context.new_state[name] = value
    return value


def _new_value(use: Use) -> str:
    """Return the second operand: the rule of export of an assignment."""
    return use.names[1]


KINDS = [
    NodeKind(
        "EnvironmentInput",
        ((Argument("propertyName", TEXT, choices=PROPERTIES),),),
        "A property of the run: isTraining is 1 in training, else 0.",
        "",
        rules.scalar,
        _environment,
        layout="none",
        prepare=_property,
        example="training = EnvironmentInput(isTraining)",
    ),
    NodeKind(
        "EpochAccumulator",
        (inputs("x"),),
        "The mean of x over all samples since the start of the epoch. As an evaluation node, its last value counts.",
        "sum of x / number of samples",
        _accumulated_shape,
        _accumulate,
        layout="none",
        time=TimeRule(reduces_time=True),
        differentiable=False,
        memory=_nothing_yet,
        last_counts=True,
        example="average = EpochAccumulator(SumColumnElements(x), tag=eval)",
        not_exported="it counts the samples of an epoch of training",
    ),
    NodeKind(
        "Assign",
        (inputs("parameter", "x"),),
        "x, which becomes the value of a parameter that is not trained, after each minibatch of a training.",
        "x; gradient 0",
        _assigned_shape,
        _assigned,
        layout="none",
        differentiable=False,
        running=(0,),
        example=(
            "m = Parameter(4, init=fixedValue, value=0, needGradient=false)\n"
            "h = Assign(m, ReduceMinibatch(x, reductionOp=Mean))"
        ),
        onnx=_new_value,
    ),
    NodeKind(
        "Trace",
        (inputs("x"),),
        "The operand itself, whose values some minibatches write into the log.",
        "x",
        rules.same,
        _traced,
        options=(
            Option("say", TEXT, "", "what the log says before the values"),
            Option("logFrequency", INTEGER, 100, "every how many minibatches values are logged; 0: never again"),
            Option("logFirst", INTEGER, 10, "how many minibatches at the start are logged"),
            Option("logGradientToo", BOOLEAN, False, "log the gradients, too"),
            Option("onlyUpToRow", INTEGER, 100000000, "how many elements of a sample are shown"),
            Option("onlyUpToT", INTEGER, 100000000, "how many steps of a sequence are shown"),
            Option("format", TEXT, "", "how values become text, as in the section `format` of `write`"),
        ),
        sparse=True,
        record=RecordForm(types={"format": SECTION}, optional=("format",), nodes_only=True),
        example="h = Trace(z, say=scores, logFrequency=100)",
        onnx=unchanged,
    ),
]
