"""Inputs, parameters, constants and placeholders."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.networks.builders.python.functions.axes import axis_name, is_batch
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.checks import check_name
from cntkpy.networks.builders.python.functions.defaults import DOUBLE, HALF, SINGLE, chosen_dtype
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.leaves import GLOROT, Shape, data_input, leaf, placeholder_of
from cntkpy.networks.builders.python.functions.nodes import Input

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from cntkpy.networks.builders.python.functions.axes import Axis


def input_variable(
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    dynamic_axes: Axis | str | Sequence[Axis | str] | None = None,
    name: str = "",
) -> Function:
    """Data with one sample for each sequence (of every minibatch, where there are no sequences).

    Args:
        shape: of a sample.
        dtype: numpy.float16, numpy.float32 or numpy.float64; by default that of `default_options`, else numpy.float32.
            A network has the precision of its leaves.
        needs_gradient: whether a `UserFunction` gives a gradient by it; `grad` gives one by any input.
        is_sparse: keep only the elements that are not zero.
        dynamic_axes: the axes that samples lie along; more than one of them: they come in sequences, along the time
            axis among them. An empty list: there is one value for the whole minibatch.
        name: names it.
    """
    axes: Sequence[Any] = dynamic_axes if isinstance(dynamic_axes, list | tuple) else [dynamic_axes]
    named = [axis_name(axis) for axis in axes if not is_batch(axis)]
    kind = Input(len(axes) > 1, named[-1] if len(axes) > 1 and named else "", not axes, needs_gradient)
    return Function(data_input(shape, dtype, is_sparse, name, kind))


def sequence_input(
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    sequence_axis: Axis | str | None = None,
    name: str = "",
) -> Function:
    """Data whose samples come in sequences; see `input_variable`.

    Args:
        shape: of a sample.
        dtype: see `input_variable`.
        needs_gradient: whether a `UserFunction` gives a gradient by it; `grad` gives one by any input.
        is_sparse: keep only the elements that are not zero.
        sequence_axis: the time axis; inputs of the same axis have sequences of the same lengths.
        name: names it.
    """
    return Function(
        data_input(shape, dtype, is_sparse, name, Input(True, axis_name(sequence_axis), False, needs_gradient))
    )


def parameter(
    shape: Shape | None = None,
    init: object = None,
    dtype: DTypeLike | None = None,
    device: object = None,
    name: str = "",
) -> Function:
    """Return a parameter.

    Args:
        shape: 0 or -1 for axes to be inferred; not needed where `init` is an array.
        init: an initializer, a number or an array; by default the initializer glorot_uniform.
        dtype: numpy.float16, numpy.float32 or numpy.float64; by default that of `default_options`, else that of an
            array, else numpy.float32.
        device: accepted; changes nothing.
        name: names it.
    """
    del device
    check_name(name)
    chosen = chosen_dtype("parameter", dtype) or _dtype_of_array(init)
    node = leaf(shape, GLOROT if init is None else init, chosen, name or "Parameter")
    node.name = name
    node.learning_rate_multiplier = 1.0
    return Function(node)


def constant(
    value: object = 0.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    device: object = None,
    name: str = "",
) -> Function:
    """Return a number or an array that training does not change; for `dtype` see `parameter`."""
    del device
    check_name(name)
    node = leaf(shape, value, chosen_dtype("constant", dtype) or _dtype_of_array(value), name or "Constant")
    node.name = name
    return Function(node)


def layer_parameter(shape: Shape, init: object, name: str) -> Function:
    """Return a parameter of a layer, which adopts the precision of what the layer is applied to; see `parameter`."""
    wanted = chosen_dtype(name, None)
    made = parameter(shape, init, wanted or np.float64, name=name)
    cell_of(made.root).dtype = wanted
    return made


def _dtype_of_array(init: object) -> np.dtype[np.generic]:
    """Half or double precision for an array of it, else single."""
    return init.dtype if isinstance(init, np.ndarray) and init.dtype in (HALF, DOUBLE) else SINGLE


def placeholder(shape: Shape | None = None, dynamic_axes: object = None, name: str = "") -> Function:
    """Stands for an input that is given later, see `Function.replace_placeholders`."""
    del dynamic_axes
    return Function(placeholder_of(shape, name))
