"""Pre-computed statistics and batch normalisation.

Specified in docs/specification/networks.md#b9-normalisation-and-pre-compute-nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.networks.arrays.images import ChannelsLast, as_given, is_image, plain
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import BOOLEAN, REAL, TEXT, NodeKind, Option, RecordForm, TimeRule, inputs
from cntkpy.networks.nodes.inputs.kinds import IMAGE_LAYOUTS, is_chw

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


def _statistic_shape(node: Node) -> Shape | None:
    """Return the shape of x."""
    rules.carrying_data(node.input(0))
    return node.input(0).shape


def _normalisation_shape(node: Node) -> Shape | None:
    """Return the shape of x; the other operands have the same, or broadcast to it."""
    x = node.input(0).shape
    for index in (1, 2):
        present = node.input(index).shape
        if x is None or present is None:
            continue
        fits = all(o in (1, d) for o, d in zip(present, shapes.padded(x, len(present)), strict=False))
        if not fits and shapes.size(present) != shapes.size(x):
            raise ShapeProblem("mean and inverse deviation must have the shape of the data")
    return x


def _like(call: Call, statistic: Array, index: int) -> Array:
    """Mean or deviation in the sample shape of the data (also for `[M x 1]` with data `[1 x 1 x M]`)."""
    shape, operand_shape = call.node.shape, call.node.input(index).shape
    if shapes.size(operand_shape) == shapes.size(shape) and not call.node.input(index).has_layout:
        return statistic.reshape(tuple(reversed(shape)))
    lead = 2 if call.node.input(index).has_layout else 0
    missing = len(shape) - len(operand_shape)
    return statistic.reshape(*statistic.shape[:lead], *(1,) * missing, *statistic.shape[lead:])


def _normalise(call: Call, x: Array, mean: Array, scale: Array) -> Array:
    return (x - _like(call, mean, 1)) * _like(call, scale, 2)


def _denormalise(call: Call, x: Array, mean: Array, scale: Array) -> Array:
    scale = _like(call, scale, 2)
    small = jnp.abs(scale) < 1e-30
    scale = jnp.where(small, jnp.where(scale < 0, -1e-30, 1e-30).astype(scale.dtype), scale)
    return x / scale + _like(call, mean, 1)


def _batch_shape(node: Node) -> Shape | None:
    """Return the shape of x; the other operands have as many elements as x, or with spatial=true as x has channels."""
    x = node.input(0).shape
    if x is None:
        return None
    rules.carrying_data(node.input(0))
    rules.constants(*node.connected[1:])
    for statistic in node.connected[3:]:
        if not statistic.is_parameter:
            raise ShapeProblem(f"the running statistics '{statistic.name}' must be a parameter")
    if node.options["spatial"] and not is_chw(node.options["imageLayout"]):
        raise ShapeProblem("spatial batch normalisation needs imageLayout=CHW")
    if node.options["spatial"] and not x:
        raise ShapeProblem("spatial batch normalisation needs an axis of channels, a number has none")
    count = x[-1] if node.options["spatial"] else shapes.size(x)
    for index in range(1, 5):
        parameter = node.input(index)
        if parameter.shape is None:
            continue
        rules.infer(parameter, (count, *(1,) * (len(parameter.shape) - 1)))
        if 0 not in parameter.shape and shapes.size(parameter.shape) != count:
            raise ShapeProblem(f"scale, bias and running statistics must have {count} elements")
    return x


def _momentum(constant: Array | float, samples: Array | float, seen: Array | float) -> Array:
    """Share of this minibatch in the running statistics."""
    return jnp.where(
        seen == 0,
        1.0,
        jnp.where(
            constant == 0,
            1.0,
            jnp.where(
                jnp.isinf(constant),
                0.0,
                jnp.where(
                    constant > 0,
                    -jnp.expm1(-samples / jnp.where(constant == 0, 1, constant)),
                    samples / (samples + seen),
                ),
            ),
        ),
    )


def _blend(constant: Array | float, samples: Array | float, seen: Array | float) -> Array:
    """Share of the running statistics in the normalisation."""
    finite = jnp.where(jnp.isinf(constant), 1.0, constant / (constant + samples))
    return jnp.where((seen == 0) | (constant == 0), 0.0, finite)


def _batch_normalise(
    call: Call, x: Array | ChannelsLast, scale: Array, bias: Array, run_mean: Array, run_variance: Array
) -> Array | ChannelsLast:
    context, node, options = call.context, call.node, call.node.options
    shape = node.shape
    count = shape[-1] if options["spatial"] else shapes.size(shape)
    scale, bias = scale.reshape(count), bias.reshape(count)
    run_mean, run_variance = (jax.lax.stop_gradient(a.reshape(count)) for a in (run_mean, run_variance))
    epsilon = (
        max(float(options["epsilon"]), 1e-5) if options["engine"].lower() == "cudnn" else float(options["epsilon"])
    )
    last = is_image(x) and options["spatial"]
    stored = as_given(x) if last else plain(x)
    lead = context.T * context.S if options["spatial"] else -1
    pixels = -1 if options["spatial"] else 1
    cells = stored.reshape(lead, *((pixels, count) if last else (count, pixels)))
    reduced = (0, 1) if last else (0, 2)

    def spread(statistic: Array) -> Array:
        return statistic if last else statistic[:, None]

    mean, inverse = run_mean, jax.lax.rsqrt(run_variance + epsilon)
    if context.training:
        mask = None if context.mask is None else context.mask.reshape(-1, 1, 1)
        samples = context.samples()
        number = jnp.asarray(samples * cells.shape[reduced[1]], cells.dtype)
        safe = jnp.maximum(number, 1)

        def average(values: Array) -> Array:
            return jnp.sum(values if mask is None else jnp.where(mask, values, 0), axis=reduced) / safe

        batch_mean = average(cells)
        centred = cells - spread(batch_mean)
        batch_variance = average(centred * centred)
        seen = context.state.get(node.name + "/samples", jnp.zeros((), jnp.float64))
        declared = float(options["normalizationTimeConstant"]), float(options["blendTimeConstant"])
        settings = context.settings.bn_time_constant, context.settings.bn_blend_time_constant
        constant, blend_constant = (
            jnp.asarray(o if g is None else g, jnp.float64) for o, g in zip(declared, settings, strict=True)
        )
        samples64 = jnp.asarray(samples, jnp.float64)
        a = _momentum(constant, samples64, seen).astype(cells.dtype)
        b = _blend(blend_constant, samples64, seen).astype(cells.dtype)
        unbiased = jnp.where(number > 1, number / jnp.maximum(number - 1, 1), 0)
        updates = (
            (node.input(3), a * batch_mean + (1 - a) * run_mean),
            (node.input(4), a * batch_variance * unbiased + (1 - a) * run_variance),
        )
        for target, value in updates:
            context.new_state[target.name] = jax.lax.stop_gradient(value).reshape(tuple(reversed(target.shape)))
        context.new_state[node.name + "/samples"] = seen + samples64
        mean = b * run_mean + (1 - b) * batch_mean
        inverse = b * jnp.where(b > 0, inverse, 0)  # a variance that starts at 0 has an infinite inverse
        inverse += (1 - b) * jax.lax.rsqrt(batch_variance + epsilon)
    factor = scale * inverse
    result = (cells * spread(factor) + spread(bias - mean * factor)).reshape(stored.shape)
    return ChannelsLast(result) if last else result


_ENGINE = Option("engine", TEXT, "cntk", "the same arithmetic; cudnn: epsilon at least 1e-5", ("cntk", "cudnn"))

KINDS = [
    NodeKind(
        "Mean",
        (inputs("x"),),
        "Mean over the data set, computed before training; a constant afterwards.",
        "sum x / n over all frames",
        _statistic_shape,
        layout="none",
        precompute=True,
        time=TimeRule(reduces_time=True),
        example="m = Mean(x)",
        not_exported="it is not computed yet: train the network, which computes it first",
    ),
    NodeKind(
        "InvStdDev",
        (inputs("x"),),
        "Inverse standard deviation over the data set, computed before training; a constant afterwards.",
        "1 / sqrt(max(var, 1e-10)), population variance",
        _statistic_shape,
        layout="none",
        precompute=True,
        time=TimeRule(reduces_time=True),
        example="s = InvStdDev(x)",
        not_exported="it is not computed yet: train the network, which computes it first",
    ),
    NodeKind(
        "PerDimMeanVarNormalization",
        (inputs("x", "mean", "invStdDev"),),
        "Data normalised by their statistics.",
        "(x - mean) * invStdDev",
        _normalisation_shape,
        _normalise,
        aliases=("PerDimMVNorm",),
        differentiable=False,
        example="h = PerDimMeanVarNormalization(x, Mean(x), InvStdDev(x))",
    ),
    NodeKind(
        "PerDimMeanVarDeNormalization",
        (inputs("x", "mean", "invStdDev"),),
        "The inverse of PerDimMeanVarNormalization.",
        "x / invStdDev + mean",
        _normalisation_shape,
        _denormalise,
        aliases=("PerDimMVDeNorm",),
        differentiable=False,
        example="h = PerDimMeanVarDeNormalization(y, Mean(x), InvStdDev(x))",
    ),
    NodeKind(
        "BatchNormalization",
        (inputs("x", "scale", "bias", "runMean", "runVariance"),),
        "Batch normalisation, per element or (spatial) per channel.",
        "scale * (x - m) / sqrt(v + epsilon) + bias; running statistics updated in training",
        _batch_shape,
        _batch_normalise,
        options=(
            Option("spatial", BOOLEAN, False, "one statistic per channel"),
            Option("normalizationTimeConstant", REAL, 0.0, "time constant of the running statistics in samples"),
            Option("blendTimeConstant", REAL, 0.0, "weight of the running statistics in training, in samples"),
            Option("epsilon", REAL, 1e-5, "added to the variance"),
            Option("disableRegularization", BOOLEAN, False, "scale and bias have no L1 and L2 regularisation"),
            _ENGINE,
            Option("imageLayout", TEXT, "CHW", "spatial needs CHW", IMAGE_LAYOUTS),
        ),
        images=True,
        time=TimeRule(reduces_time=True),
        running=(3, 4),
        record=RecordForm(
            names={"engine": "useCntkEngine"}, types={"engine": BOOLEAN}, optional=("disableRegularization",)
        ),
        example=(
            "gamma = Parameter(3, 1, init=fixedValue, value=1)\n"
            "m = Parameter(3, 1, init=fixedValue, value=0, needGradient=false)\n"
            "v = Parameter(3, 1, init=fixedValue, value=1, needGradient=false)\n"
            "h = BatchNormalization(z, gamma, b, m, v)"
        ),
    ),
]
