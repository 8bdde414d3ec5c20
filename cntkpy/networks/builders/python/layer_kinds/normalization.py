"""Layers that bring elements to mean 0 and variance 1, and that scale them."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.checks import check_flag, check_number, is_whole
from cntkpy.networks.builders.python.functions.defaults import DEFAULT, chosen
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.variables import layer_parameter
from cntkpy.networks.builders.python.layer_kinds.base import Layer, identity, makes_blocks
from cntkpy.networks.builders.python.layer_kinds.library import LibraryLayer
from cntkpy.networks.builders.python.operations import operators, reductions
from cntkpy.networks.builders.python.operations.reshaping import Operand


@makes_blocks
def BatchNormalization(
    map_rank: int | None = DEFAULT,
    init_scale: float = 1.0,
    normalization_time_constant: float = DEFAULT,
    blend_time_constant: float = 0,
    epsilon: float = DEFAULT,
    use_cntk_engine: bool = DEFAULT,
    disable_regularization: bool = False,
    name: str = "",
) -> Layer:
    """Elements brought to mean 0 and variance 1 over the minibatch in training, with running statistics else.

    Args:
        map_rank: 1 for one pair of statistics for each channel; by default each element has its own.
        init_scale: how the scale starts.
        normalization_time_constant: memory of the running statistics in samples; 5000.
        blend_time_constant: how much of them enters training.
        epsilon: added to the variance; 0.00001.
        use_cntk_engine: accepted; there is one engine.
        disable_regularization: accepted; changes nothing.
        name: names the result.
    """
    del use_cntk_engine, disable_regularization
    rank, constant, added = (
        chosen("BatchNormalization", name, value, fallback)
        for name, value, fallback in (
            ("map_rank", map_rank, None),
            ("normalization_time_constant", normalization_time_constant, 5000),
            ("epsilon", epsilon, 0.00001),
        )
    )
    if rank is not None and not (is_whole(rank) and rank == 1):
        raise UserError("BadValue", f"map_rank is None or 1, not {rank!r}")
    return LibraryLayer(
        "_BatchNormalizationLayer",
        label="BatchNormalization",
        name=name,
        spatial=rank is not None,
        initialScale=check_number("init_scale", init_scale),
        normalizationTimeConstant=check_number("normalization_time_constant", constant, 0.0),
        blendTimeConstant=check_number("blend_time_constant", blend_time_constant, 0.0),
        epsilon=check_number("epsilon", added, 0.0),
    )


@makes_blocks
def LayerNormalization(
    initial_scale: float = 1.0, initial_bias: float = 0.0, epsilon: float = DEFAULT, name: str = ""
) -> Layer:
    """Return each sample brought to mean 0 and variance 1, then scaled and shifted by learned numbers.

    Args:
        initial_scale: how the first of them starts.
        initial_bias: how the other one starts.
        epsilon: added to the root of the variance; 0.00001.
        name: names the result.
    """
    added = check_number("epsilon", chosen("LayerNormalization", "epsilon", epsilon, 0.00001), 0.0)
    scale = layer_parameter((0,), check_number("initial_scale", initial_scale), name="scale")
    bias = layer_parameter((0,), check_number("initial_bias", initial_bias), name="bias")

    def apply(x: Operand) -> Function:
        centred = operators.minus(x, reductions.reduce_mean(x))
        root = operators.sqrt(reductions.reduce_mean(operators.square(centred)))
        return operators.plus(operators.element_times(operators.element_divide(centred, root + added), scale), bias)

    return Layer(apply, name)


STABILIZER_START = 0.99537863
"""The start of a stabilizer's parameter: its factor is 1 with the default steepness."""


@makes_blocks
def Stabilizer(steepness: float = 4, enable_self_stabilization: bool = DEFAULT, name: str = "") -> Layer:
    """Return the input times a learned positive number."""
    enabled = chosen("Stabilizer", "enable_self_stabilization", enable_self_stabilization, True)
    if not check_flag("enable_self_stabilization", enabled):
        return Layer(identity, name)
    factor = check_number("steepness", steepness)
    alpha = layer_parameter((), STABILIZER_START, name="alpha")

    def apply(x: Operand) -> Function:
        steep = operators.exp(operators.element_times(factor, alpha))
        beta = operators.element_divide(operators.log(operators.plus(1.0, steep)), factor, name="beta")
        return operators.element_times(x, beta)

    return Layer(apply, name)
