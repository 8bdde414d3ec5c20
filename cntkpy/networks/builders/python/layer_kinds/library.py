"""Layers that calls of BrainScript's library make, and the starts of their parameters."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.brainscript.language.values import Function as Procedure
from cntkpy.networks.builders.brainscript.language.values import Record
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.cells import Counter, cell_of
from cntkpy.networks.builders.python.functions.checks import (
    as_array,
    check_callable,
    check_flag,
    check_name,
    check_whole,
    is_whole,
)
from cntkpy.networks.builders.python.functions.defaults import chosen_dtype
from cntkpy.networks.builders.python.functions.function import Function, named_function, to_operand
from cntkpy.networks.builders.python.functions.leaves import Initializer, check_axes, dims
from cntkpy.networks.builders.python.functions.recipes import OpenShape
from cntkpy.networks.builders.python.layer_kinds.base import Layer, identity

WINDOW_HINT = "windows have no more axes than samples; reshape(x, (channels, height, width)) makes pictures"


_WITH_WINDOWS = ("Convolution", "MaxUnpooling", "Pooling")


class LibraryLayer(Layer):
    """A layer that a call of BrainScript's library makes."""

    options: Mapping[str, Any] = {}
    """Options of the node with windows that it makes, beyond those of the library."""
    least_rank = 0
    """The number of axes that samples have at least."""
    least_sizes: tuple[int, ...] = ()
    """Of the last axes, the number of elements that they have at least."""
    rank_hint = "input_rank and map_rank count axes of a sample"

    def __init__(
        self,
        library: str,
        *arguments: Any,
        label: str,
        name: str = "",
        init: Initializer | np.ndarray | None = None,
        **named: Any,
    ):
        super().__init__(self._run, name)
        self._mark = calls.marked(name or label)
        self._init = init
        self._bias = named.get("initBias")
        if self._bias is not None and not isinstance(self._bias, float):
            named["initBias"] = 0.0
        if isinstance(init, Initializer):
            named |= {"init": init.kind, "initValueScale": init.scale}
        self._function: Procedure = calls.call(library, *arguments, name=self._mark, **named)
        self._label = name or label
        sizes = [argument if isinstance(argument, (list, tuple)) else [argument] for argument in arguments]
        self._sizes = [
            label,
            *(" x ".join(map(str, argument[::-1])) for argument in sizes if all(map(is_whole, argument))),
        ]
        """Label, and sizes in Python's order of axes."""
        self._dtype = chosen_dtype(label, None)
        self._applied = 0
        self._counter = Counter()
        """Of batch normalisation: its running statistics are the same wherever it is applied."""

    def _run(self, *arguments: Any) -> Function:
        if self.least_rank:
            self._check_ranks(arguments)
        self._applied += 1
        name = self._mark if self._applied == 1 else self._label
        made = calls.call(self._function, *(to_operand(_operand(argument)) for argument in arguments), name=name)
        self.prepare(made)
        return named_function(made, "")

    def _check_ranks(self, arguments: Sequence[object]) -> None:
        """Raise a UserError where samples of known shape have too few axes, or too few elements on them."""
        for argument in arguments:
            try:
                shape = argument.shape if isinstance(argument, Function) else None
            except OpenShape:
                continue
            if shape is not None and len(shape) < self.least_rank:
                message = f"{self._sizes[0]}: samples have {self.least_rank} axes or more, not the shape {shape}"
                raise UserError("BadShape", message, hint=self.rank_hint)
            sizes = () if shape is None else shape[-self.least_rank :]
            if any(0 < size < least for size, least in zip(sizes, self.least_sizes, strict=False)):
                message = f"{self._sizes[0]}: windows over {self.least_sizes} elements do not fit into samples {shape}"
                raise UserError("BadShape", message, hint="pad=True lets them reach over the edges")

    def _described(self) -> list[str]:
        return [self.kind or self._sizes[0], *self._sizes[1:]]

    def prepare(self, made: Any) -> None:
        """Start the random parameters of this layer as its initializer says."""
        if isinstance(made, NodeValue) and made.operation.name == "BatchNormalization":
            cell_of(made).use(self._counter)
        if self.options:  # a bias may be added to the node with windows
            (made if made.operation.name in _WITH_WINDOWS else calls.inputs_of(made)[0]).options.update(self.options)
        for node in call_nodes(made):
            if node.start is None or not node.origin.name.startswith(self._mark + "."):
                continue
            cell_of(node).dtype = cell_of(node).dtype or self._dtype
            _start(node, self._init)
            if node.start.seed is None and not isinstance(self._bias, float | None) and node.origin.name.endswith(".b"):
                _start_bias(node, self._bias)


def _operand(value: object) -> object:
    """Return the operand of a layer."""
    if value is None or isinstance(value, str):
        hint = "layer(x), x an input_variable or the value of another layer"
        raise CallError("WrongArguments", f"a layer is applied to functions, not to {value!r}", hint=hint)
    return value


def call_nodes(made: object) -> list[NodeValue]:
    """Return the nodes that a call has made, up to delay nodes, whose inputs are unknown inside of a recurrence."""
    members = [calls.member(made, name) for name in ("h", "c")] if isinstance(made, Record) else [made]
    waiting, nodes = list(members), dict[NodeValue, None]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, NodeValue) and node not in nodes:
            nodes[node] = None
            waiting.extend(node.inputs if isinstance(node.inputs, tuple) else ())
    return list(nodes)


def _start(node: NodeValue, init: object) -> None:
    start = node.start
    assert start is not None
    if init is None or (start.seed is None and start.kind != "bilinear"):
        return  # a bias
    if isinstance(init, Initializer):
        init.into(start)
        if init.seed is not None:
            start.seed = init.seed
        return
    array = np.asarray(init, np.float64)
    if array.ndim == 0:
        start.kind, start.value, start.seed = "fixedValue", float(array), None
    elif cell_of(node).value is None:
        check_axes("a start value", array.shape, node)
        cell_of(node).start_with(array)


def weights_start(init: Initializer | ArrayLike | None, output_rank: int | None = None) -> Initializer | np.ndarray:
    """Return the start of weights, by default glorot_uniform; set the output rank of an initializer that has none."""
    if init is None:
        return Initializer("glorotUniform", output_rank=output_rank)
    return init.with_ranks(output_rank) if isinstance(init, Initializer) else _numbers("init", init)


def bias_start(value: Initializer | ArrayLike) -> Initializer | np.ndarray | float:
    """Return the start of a bias: a number, an initializer or an array."""
    if isinstance(value, Initializer):
        return value
    array = _numbers("init_bias", value)
    return array if array.ndim else float(array)


def _numbers(name: str, value: object) -> np.ndarray:
    if callable(value):
        hint = f"{name}=glorot_uniform()"
        raise CallError("WrongArguments", f"{name} is an initializer, a number or an array, not {value!r}", hint=hint)
    return as_array(name, value, np.float64)


def _start_bias(node: NodeValue, init: Initializer | np.ndarray) -> None:
    start = node.start
    assert start is not None
    if isinstance(init, Initializer):
        node.start = init.start()
    elif cell_of(node).value is None:
        check_axes("a start value", init.shape, node)
        cell_of(node).start_with(init)


def activation_function(value: Callable[..., Function] | None) -> Callable[..., Function] | None:
    """Return an activation function, or None."""
    if value is not None:
        check_callable("an activation", value, "activation=relu; None: there is none")
    return value


def with_activation(layer: Layer, activation: Any, name: str) -> Layer:
    """Return a layer, and an activation function behind it where there is one."""
    check_name(name)
    if activation_function(activation) is None or activation is identity:
        layer.name = name
        return layer

    def apply(x: Function) -> Function:
        return activation(layer(x))

    return Layer(apply, name)


def least_sizes(sizes: Sequence[int], padding: Any, dilation: Any = 1) -> tuple[int, ...]:
    """Return the numbers of elements that axes have at least, so that a window fits.

    Args:
        sizes: of the window, in Python's order of axes.
        padding: one flag, or one for each axis: windows may reach over the edges.
        dilation: the distance between neighbours in a window; one, or one for each axis.
    """
    several = (list(each) if isinstance(each, list | tuple) else [each] for each in (padding, dilation))
    flags, steps = (each * len(sizes) if len(each) == 1 else each for each in several)
    both = zip(sizes, flags[-len(sizes) :], steps[-len(sizes) :], strict=False)  # others are refused elsewhere
    return tuple(1 if flag else (size - 1) * step + 1 for size, flag, step in both)


def sizes_of(value: Any) -> list[int] | int:
    """Return sizes as the library has them: the axes the other way round."""
    several = value if isinstance(value, list | tuple) else [value]
    for size in several:
        check_whole("a stride or a size", size, 1)
    return list(dims(value)) if isinstance(value, list | tuple) else int(value)


def flags_of(value: object) -> list[bool] | bool:
    """Return flags of padding as the library has them: the axes the other way round."""
    if isinstance(value, list | tuple):
        return [check_flag("pad", flag) for flag in reversed(value)]
    return check_flag("pad", value)
