"""Layers: the library of BrainScript called from Python. A layer is a function of functions with parameters of its own.

A layer that is applied twice uses the same parameters twice.
"""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.brainscript.language.values import Function as Procedure
from cntkpy.networks.builders.brainscript.language.values import Record
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.blocks import Block, mark_block, mark_written, written_operands
from cntkpy.networks.builders.python.functions.cells import Counter, cell_of
from cntkpy.networks.builders.python.functions.checks import (
    as_array,
    check_callable,
    check_flag,
    check_name,
    check_number,
    check_whole,
    is_whole,
)
from cntkpy.networks.builders.python.functions.defaults import DEFAULT, chosen, chosen_dtype
from cntkpy.networks.builders.python.functions.defaults import default_options as default_options
from cntkpy.networks.builders.python.functions.defaults import default_options_for as default_options_for
from cntkpy.networks.builders.python.functions.deferring import deferred, needs_shapes
from cntkpy.networks.builders.python.functions.function import (
    Function,
    as_node,
    composed,
    is_data,
    known_shape,
    named_function,
    to_node,
    to_operand,
)
from cntkpy.networks.builders.python.functions.leaves import Initializer, Shape, check_axes, dims
from cntkpy.networks.builders.python.functions.nodes import has_value
from cntkpy.networks.builders.python.functions.recipes import OpenShape
from cntkpy.networks.builders.python.functions.variables import layer_parameter, placeholder
from cntkpy.networks.builders.python.initializers import bilinear as bilinear
from cntkpy.networks.builders.python.initializers import glorot_normal as glorot_normal
from cntkpy.networks.builders.python.initializers import glorot_uniform as glorot_uniform
from cntkpy.networks.builders.python.initializers import he_normal as he_normal
from cntkpy.networks.builders.python.initializers import he_uniform as he_uniform
from cntkpy.networks.builders.python.initializers import initializer_with_rank as initializer_with_rank
from cntkpy.networks.builders.python.initializers import normal as normal
from cntkpy.networks.builders.python.initializers import truncated_normal as truncated_normal
from cntkpy.networks.builders.python.initializers import uniform as uniform
from cntkpy.networks.builders.python.initializers import xavier as xavier
from cntkpy.networks.builders.python.operations import operators, reductions, reshaping
from cntkpy.networks.builders.python.operations.windows import Sliding, per_axis, steps_in_windows

P = ParamSpec("P")


class Layer:
    """A function of functions.

    Args:
        apply: makes the function of its arguments.
        name: names what it makes.
    """

    function: Callable[..., Function]
    """Makes the function of its arguments."""

    def __init__(self, apply: Callable[..., Function], name: str = "") -> None:
        self.function = apply
        self.name = check_name(name)
        self.kind = ""
        """The name of the constructor, of layers whose functions are blocks."""
        self.layers: list[Layer] = []
        """Of a `Sequential`, its layers."""
        self._made: list[Function] = []
        self._applied_to: list[list[Function]] = []
        """The functions that each of them was made of."""
        self._open: Function | None = None

    def __repr__(self) -> str:
        kind, *inside = self._described()
        inside += [repr(layer) for layer in self.layers]
        inside += [f"name='{self.name}'"] if self.name else []
        return f"{kind}({', '.join(inside)})"

    def __str__(self) -> str:
        """Its inputs and outputs with their types, see `Function.__str__`; as `repr` where it needs more to be made."""
        try:
            return str(self._first or self.of_placeholder())
        except (UserError, TypeError):
            return repr(self)

    def _described(self) -> list[str]:
        """The name of its constructor, and its sizes where they are known."""
        return [self.kind or ("Sequential" if self.layers else "Layer")]

    def of_placeholder(self) -> Function:
        """The function of a placeholder for each input, the same one every time; it shares the parameters.

        Raises:
            UserError: this is a step of a recurrence.
        """
        if self._open is None:
            names = self._missing((), {})
            made = self(*(placeholder(name=name) for name in names)) if names else self(placeholder())
            if type(made) is not Function:  # pyright: ignore[reportUnnecessaryComparison]
                raise CallError("NoFunction", "the layer gives several functions", hint="call it with its inputs")
            self._open = made
        return self._open

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function of these arguments, with a placeholder in the place of each one that is not given.

        Of data, once it was applied, the values of what it made first.

        Raises:
            UserError: it takes other arguments.
        """
        if arguments and not named and self._first is not None and all(map(is_data, arguments)):
            return self._first(*arguments)
        if missing := self._missing(arguments, named):
            named = {**named, **{name: placeholder(name=name) for name in missing}}
        try:
            made = self.function(*arguments, **named)
        except OpenShape:  # a function that looks at shapes is made when they are known
            made = deferred(self.function, arguments, named)
        if type(made) is Function:
            self._made.append(made)
            self._applied_to.append(
                [argument for argument in (*arguments, *named.values()) if isinstance(argument, Function)]
            )
            if self.name and len(made.roots) == 1:
                made.root.name = self.name
            self._mark_block(made, self._applied_to[-1])
        return made

    def _mark_block(self, made: Function, applied_to: Sequence[Function]) -> None:
        """Let what a layer makes count as one operation, whose name is that of the layer's constructor."""
        operands = tuple(root for function in applied_to for root in function.roots)
        if self.kind and len(made.roots) == 1 and made.root not in operands:
            mark_block(made.root, Block(self.kind, operands, operands))
        elif operands:
            first = made.roots[0]
            members = [node for node in written_operands(first) if has_value(node)]  # of a cell
            mark_written(first, (*members, *operands))

    def _missing(self, positional: Sequence[Any], named: Mapping[str, Any]) -> list[str]:
        """The names of the arguments that are not given, of a function that takes a fixed number of them."""
        try:
            signature = inspect.signature(self.function)
        except ValueError:  # one that is not written in Python
            return []
        try:
            bound = signature.bind_partial(*positional, **named).arguments
        except TypeError as error:
            label = self.name or (self.function.__name__ if hasattr(self.function, "__wrapped__") else "")
            subject = f"'{label}'" if label else "the layer"
            raise CallError("WrongArguments", f"{subject} takes {signature}: {error}") from None
        fixed = inspect.Parameter.POSITIONAL_OR_KEYWORD
        known = signature.parameters.items()
        return [
            name
            for name, parameter in known
            if parameter.kind == fixed and parameter.default is parameter.empty and name not in bound
        ]

    @property
    def parameters(self) -> tuple[Function, ...]:
        """Its own parameters, without those of what it was applied to; before that some have axes of unknown size."""
        made = self._first
        if made is None:
            made = self.of_placeholder()
        below = {root for operand in self._applied_to[self._made.index(made)] for root in operand.roots}
        waiting, members = [root for root in made.roots if root not in below], set[NodeValue]()
        while waiting:
            node = waiting.pop()
            if node not in members:
                members.add(node)
                waiting.extend(source for source in calls.inputs_of(node) if source not in below)
        return tuple(parameter for parameter in made.parameters if parameter.root in members)

    @property
    def _first(self) -> Function | None:
        """The first function that it made of inputs whose shapes are known."""
        return next((function for function in self._made if all(map(_has_shape, function.placeholders))), None)

    @property
    def signature(self) -> tuple[Function, ...]:
        """The inputs that a call takes, by the names that they have there, in their order."""
        return self.of_placeholder().signature

    def update_signature(self, *types: Any, **named: Any) -> None:
        """See `Function.update_signature`; what the layer was applied to before counts no more for its values."""
        made = self.of_placeholder()
        made.update_signature(*types, **named)
        index = self._made.index(made)
        self._made.insert(0, self._made.pop(index))
        self._applied_to.insert(0, self._applied_to.pop(index))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the first function that it made: a parameter (`layer.W`), a function by name, `eval`.

        Before it was applied that is the function of a placeholder, whose parameters may have axes of unknown size.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            made = self._first or self.of_placeholder()
        except (UserError, TypeError):
            raise AttributeError(
                f"'{name}': this layer is a function once it was applied; call it with its inputs first"
            ) from None
        return getattr(made, name)

    def __rshift__(self, other: Callable[[Any], Any]) -> Layer:
        return Sequential([self, other])


def _has_shape(function: Function) -> bool:
    """Return whether the shape of a placeholder is known."""
    return function.root.shape is not None and 0 not in function.root.shape


def makes_blocks(constructor: Callable[P, Layer]) -> Callable[P, Layer]:
    """A decorator of constructors of layers: what the layers make is a block with the constructor's name."""

    @functools.wraps(constructor)
    def make(*arguments: P.args, **named: P.kwargs) -> Layer:
        layer = constructor(*arguments, **named)
        layer.kind = constructor.__name__
        return layer

    return make


WINDOW_HINT = "windows have no more axes than samples; reshape(x, (channels, height, width)) makes pictures"

_WITH_WINDOWS = ("Convolution", "MaxUnpooling", "Pooling")


class _Library(Layer):
    """A layer that a call of BrainScript's library makes."""

    options: Mapping[str, Any] = {}
    """Options of the node with windows that it makes, beyond those of the library."""
    least_rank = 0
    """The number of axes that samples have at least."""
    rank_hint = "input_rank and map_rank count axes of a sample"

    def __init__(self, library: str, *arguments: Any, label: str, name: str = "", init: Any = None, **named: Any):
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

    def _check_ranks(self, arguments: Sequence[Any]) -> None:
        """Raise a UserError where samples of known shape have too few axes."""
        for argument in arguments:
            try:
                shape = argument.shape if isinstance(argument, Function) else None
            except OpenShape:
                continue
            if shape is not None and len(shape) < self.least_rank:
                message = f"{self._sizes[0]}: samples have {self.least_rank} axes or more, not the shape {shape}"
                raise UserError("BadShape", message, hint=self.rank_hint)

    def _described(self) -> list[str]:
        return [self.kind or self._sizes[0], *self._sizes[1:]]

    def prepare(self, made: Any) -> None:
        """Start the random parameters of this layer as its initializer says."""
        if isinstance(made, NodeValue) and made.operation.name == "BatchNormalization":
            cell_of(made).use(self._counter)
        if self.options:  # a bias may be added to the node with windows
            (made if made.operation.name in _WITH_WINDOWS else calls.inputs_of(made)[0]).options.update(self.options)
        for node in _nodes(made):
            if node.start is None or not node.origin.name.startswith(self._mark + "."):
                continue
            cell_of(node).dtype = cell_of(node).dtype or self._dtype
            _start(node, self._init)
            if node.start.seed is None and not isinstance(self._bias, float | None) and node.origin.name.endswith(".b"):
                _start_bias(node, self._bias)


def _operand(value: Any) -> Any:
    """Return the operand of a layer."""
    if value is None or isinstance(value, str):
        hint = "layer(x), x an input_variable or the value of another layer"
        raise CallError("WrongArguments", f"a layer is applied to functions, not to {value!r}", hint=hint)
    return value


def _nodes(made: Any) -> list[NodeValue]:
    """Return the nodes that a call has made, up to delay nodes, whose inputs are unknown inside of a recurrence."""
    members = [calls.member(made, name) for name in ("h", "c")] if isinstance(made, Record) else [made]
    waiting, nodes = list(members), dict[NodeValue, None]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, NodeValue) and node not in nodes:
            nodes[node] = None
            waiting.extend(node.inputs if isinstance(node.inputs, tuple) else ())
    return list(nodes)


def _start(node: NodeValue, init: Any) -> None:
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


def weights_start(init: Any, output_rank: int | None = None) -> Any:
    """Return the start of weights, by default glorot_uniform; set the output rank of an initializer that has none."""
    if init is None:
        return Initializer("glorotUniform", output_rank=output_rank)
    return init.with_ranks(output_rank) if isinstance(init, Initializer) else _numbers("init", init)


def bias_start(value: Any) -> Any:
    """Return the start of a bias: a number, an initializer or an array."""
    if isinstance(value, Initializer):
        return value
    array = _numbers("init_bias", value)
    return array if array.ndim else float(array)


def _numbers(name: str, value: Any) -> Any:
    if callable(value):
        hint = f"{name}=glorot_uniform()"
        raise CallError("WrongArguments", f"{name} is an initializer, a number or an array, not {value!r}", hint=hint)
    return as_array(name, value, np.float64)


def _start_bias(node: NodeValue, init: Any) -> None:
    start = node.start
    assert start is not None
    if isinstance(init, Initializer):
        node.start = init.start()
    elif cell_of(node).value is None:
        check_axes("a start value", init.shape, node)
        cell_of(node).start_with(init)


# --------------------------------------------------------------------------------------------- layers


def _activation(value: Any) -> Any:
    """An activation function, or None."""
    if value is not None:
        check_callable("an activation", value, "activation=relu; None: there is none")
    return value


def _activated(layer: Layer, activation: Any, name: str) -> Layer:
    check_name(name)
    if _activation(activation) is None or activation is identity:
        layer.name = name
        return layer

    def apply(x: Any) -> Function:
        return activation(layer(x))

    return Layer(apply, name)


def identity(x: Any) -> Any:
    """X itself."""
    return x


@makes_blocks
def Dense(
    shape: Shape,
    activation: Any = DEFAULT,
    init: Any = DEFAULT,
    input_rank: int | None = None,
    map_rank: int | None = None,
    bias: Any = DEFAULT,
    init_bias: Any = DEFAULT,
    name: str = "",
) -> Layer:
    """Elements that are weighted sums of all inputs, with an activation function.

    Args:
        shape: of the result.
        activation: a function of the sums.
        init: how the weights start; glorot_uniform.
        input_rank: how many axes are summed over.
        map_rank: how many axes are not; neither: all are summed over.
        bias: whether something is added.
        init_bias: how that starts.
        name: names the result.
    """
    if not dims(shape):  # one sum, as a number
        single = Dense(1, None, init, input_rank, map_rank, bias, init_bias)
        activate = chosen("Dense", "activation", activation, None)
        return _activated(Sequential([single, lambda x: operators.reshape(x, known_shape(x)[:-1])]), activate, name)
    layer = _Library(
        "LinearLayer",
        list(dims(shape)),
        label="Dense",
        init=weights_start(chosen("Dense", "init", init, None), len(dims(shape))),
        inputRank=input_rank,
        mapRank=map_rank,
        bias=check_flag("bias", chosen("Dense", "bias", bias, True)),
        initBias=bias_start(chosen("Dense", "init_bias", init_bias, 0.0)),
    )
    layer.least_rank = max(input_rank or 0, map_rank or 0)
    return _activated(layer, chosen("Dense", "activation", activation, None), name)


@makes_blocks
def Embedding(shape: Shape | None = None, init: Any = DEFAULT, weights: Any = None, name: str = "") -> Layer:
    """A vector of this many elements for each of the classes of a one-hot input.

    Args:
        shape: of the vectors.
        init: how they start; glorot_uniform.
        weights: an array (classes, elements) that is not trained, instead.
        name: names the result.

    Raises:
        UserError: neither is given, or weights of vectors of another shape.
    """
    if weights is not None:
        if init is not DEFAULT and init is not None:
            message = "Embedding: weights are not trained, so that init has no effect"
            raise CallError("WrongArguments", message, hint="Embedding(shape, init=array) is trained from there on")
        table = as_node(weights)
        if shape is not None and dims(table.shape[1:]) != dims(shape):
            message = f"Embedding: weights {table.shape} have vectors of the shape {table.shape[1:]}, not {shape}"
            raise UserError("BadShape", message, hint="weights say the shape: leave it out")
        table.root.name = table.root.name or "E"
        return Layer(lambda x: operators.times(x, table), name)
    if shape is None and isinstance(init, np.ndarray | list):
        shape = np.shape(init)[-1]
    if shape is None:
        raise UserError("MissingParameter", "Embedding needs the shape of its vectors, or weights")
    start = weights_start(chosen("Embedding", "init", init, None))
    return _Library("EmbeddingLayer", list(dims(shape)), label="Embedding", init=start, name=name)


@makes_blocks
def Convolution(
    filter_shape: Shape, num_filters: int | None = None, sequential: bool = False, activation: Any = DEFAULT,
    init: Any = DEFAULT, pad: Any = DEFAULT, strides: Any = 1, sharing: bool = True, bias: Any = DEFAULT,
    init_bias: Any = DEFAULT, reduction_rank: int = 1, transpose_weight: bool = False, dilation: Any = 1,
    groups: int = 1, input_num_filters: int | None = None, max_temp_mem_size_in_samples: int = 0,
    op_name: str = "Convolution", name: str = "",
) -> Layer:  # fmt: skip
    """Filters slid over images (channels, height, width), or over any number of axes after the channels.

    Args:
        filter_shape: (height, width) of a filter.
        num_filters: the channels of the result.
        sequential: the first axis of filters lies along the sequence: (steps, height, width).
        activation: a function of the sums.
        init: how the filters start; glorot_uniform.
        pad: whether images are padded so that the result has their size.
        strides: how far filters move.
        sharing: must be True.
        bias: whether something is added for each filter.
        init_bias: how that starts.
        reduction_rank: 0: the input has no axis of channels.
        transpose_weight: must be False.
        dilation: the distance between neighbours in a filter.
        groups: each group of filters sees one group of channels.
        input_num_filters: accepted; the channels of the input are known when the layer is applied.
        max_temp_mem_size_in_samples: accepted; changes nothing.
        op_name: accepted; changes nothing.
        name: names the result.
    """
    del input_num_filters, max_temp_mem_size_in_samples, op_name
    if not sharing or transpose_weight or reduction_rank not in (0, 1):
        message = "Convolution: sharing is True, transpose_weight is False and reduction_rank is 0 or 1"
        raise UserError("NotSupported", message)
    sizes = tuple(reversed(dims(filter_shape)))
    padding = chosen("Convolution", "pad", pad, False)
    how = Sliding("Convolution", strides, padding, dilation, check_whole("groups", groups, 1), "pad")
    windows = how.along_steps(len(sizes), sizes[0]) if sequential else None
    options = (how.after_steps(len(sizes)) if sequential else how).options((0, *sizes))
    biased = check_flag("bias", chosen("Convolution", "bias", bias, True))
    start = bias_start(chosen("Convolution", "init_bias", init_bias, 0.0))
    layer = _Library(
        "ConvolutionalLayer",
        _filters(num_filters),
        list(options["kernelShape"]),
        label="Convolution",
        init=_filter_start(init, num_filters, sizes, reduction_rank),
        bias=biased and windows is None,
        initBias=start,
    )
    layer.options = options
    layer.least_rank, layer.rank_hint = len(sizes), WINDOW_HINT
    steps: list[Any] = [layer]
    if windows is not None:  # the bias has no axis of steps
        steps = [partial(steps_in_windows, "Convolution", how=windows, axis=reduction_rank), *steps]
        steps.append(lambda x: reshaping.squeeze(x, 1))
        if biased:
            shift = layer_parameter((_filters(num_filters), *(1,) * (len(sizes) - 1)), start, name="b")
            steps.append(lambda x: operators.plus(x, shift))
    if reduction_rank == 0:
        steps.insert(steps.index(layer), lambda x: reshaping.expand_dims(x, 0))
    if _has_no_axis(num_filters):  # one filter, and no axis for it
        steps.append(lambda x: reshaping.squeeze(x, 0))
    made = Sequential(steps) if len(steps) > 1 else layer
    return _activated(made, chosen("Convolution", "activation", activation, None), name)


def SequentialConvolution(
    filter_shape: Shape, num_filters: int | None = None, activation: Any = DEFAULT, init: Any = DEFAULT,
    pad: Any = DEFAULT, strides: Any = 1, sharing: bool = True, bias: Any = DEFAULT, init_bias: Any = DEFAULT,
    reduction_rank: int = 1, transpose_weight: bool = False, dilation: Any = 1, groups: int = 1,
    input_num_filters: int | None = None, max_temp_mem_size_in_samples: int = 0, op_name: str = "Convolution",
    name: str = "",
) -> Layer:  # fmt: skip
    """`Convolution` along sequences: the first axis of filters is that of steps."""
    del input_num_filters, max_temp_mem_size_in_samples, op_name
    return Convolution(
        filter_shape, num_filters, True, activation, init, pad, strides, sharing, bias, init_bias, reduction_rank,
        transpose_weight, dilation, groups, name=name,
    )  # fmt: skip


def _of_axes(axes: int) -> Callable[..., Layer]:
    """`Convolution` with filters of this number of axes; a number as their shape has this number for each axis."""

    def make(
        filter_shape: Shape, num_filters: int | None = None, activation: Any = DEFAULT, init: Any = DEFAULT,
        pad: Any = DEFAULT, strides: Any = 1, bias: Any = DEFAULT, init_bias: Any = DEFAULT, reduction_rank: int = 1,
        dilation: Any = 1, groups: int = 1, input_num_filters: int | None = None, name: str = "",
    ) -> Layer:  # fmt: skip
        options = {"activation": activation, "init": init, "pad": pad, "bias": bias, "init_bias": init_bias}
        chosen_options = {key: chosen(label, key, option, DEFAULT) for key, option in options.items()}
        sizes = _filter(label, filter_shape, axes)
        return Convolution(
            sizes, num_filters, strides=strides, reduction_rank=reduction_rank, dilation=dilation, groups=groups,
            input_num_filters=input_num_filters, name=name, **chosen_options,
        )  # fmt: skip

    label = make.__name__ = make.__qualname__ = f"Convolution{axes}D"
    make.__doc__ = f"`Convolution` with filters of {axes} axes; a number is their size on each axis."
    return make


Convolution1D, Convolution2D, Convolution3D = map(_of_axes, (1, 2, 3))


@makes_blocks
def ConvolutionTranspose(
    filter_shape: Shape,
    num_filters: int | None = None,
    activation: Any = DEFAULT,
    init: Any = DEFAULT,
    pad: Any = DEFAULT,
    strides: Any = 1,
    sharing: bool = True,
    bias: Any = DEFAULT,
    init_bias: Any = DEFAULT,
    output_shape: Any = None,
    reduction_rank: int = 1,
    dilation: Any = 1,
    max_temp_mem_size_in_samples: int = 0,
    name: str = "",
) -> Layer:
    """The reverse of `Convolution`: images (channels, height, width) made larger by the strides.

    Args:
        filter_shape: (height, width) of a filter.
        num_filters: the channels of the result.
        activation: a function of the sums.
        init: how the filters start; glorot_uniform.
        pad: the result has (n - 1) * stride + 1 rows then, else (n - 1) * stride + filter.
        strides: how far filters move.
        sharing: must be True.
        bias: whether something is added for each filter.
        init_bias: how that starts.
        output_shape: (height, width) of the result, where several sizes of it are made that of the input by
            `Convolution`.
        reduction_rank: 0: the input has no axis of channels.
        dilation: the distance between neighbours in a filter.
        max_temp_mem_size_in_samples: accepted; changes nothing.
        name: names the result.
    """
    del max_temp_mem_size_in_samples
    if not sharing or reduction_rank not in (0, 1):
        raise UserError("NotSupported", "ConvolutionTranspose: sharing is True and reduction_rank is 0 or 1")
    sizes = tuple(reversed(dims(filter_shape)))
    padding = chosen("ConvolutionTranspose", "pad", pad, False)
    how = Sliding("ConvolutionTranspose", strides, padding, dilation, padding_name="pad")
    weights: dict[str, Any] = {
        "init": weights_start(chosen("ConvolutionTranspose", "init", init, None)),
        "bias": check_flag("bias", chosen("ConvolutionTranspose", "bias", bias, True)),
        "initBias": bias_start(chosen("ConvolutionTranspose", "init_bias", init_bias, 0.0)),
    }
    options = how.options((_filters(num_filters), *sizes))
    if output_shape is not None:
        sized = per_axis("ConvolutionTranspose: output_shape", output_shape, len(sizes), 0)
        options["outputShape"] = tuple(reversed(sized))
    made: list[_Library] = []

    def apply(x: Any) -> Function:
        x = reshaping.expand_dims(x, 0) if reduction_rank == 0 else x
        if not made:  # the weights have the channels of the input
            shapes = _filters(num_filters), list(dims(filter_shape)), known_shape(x)[0]
            made.append(_Library("ConvolutionTransposeLayer", *shapes, label="ConvolutionTranspose", **weights))
            made[0].options = options
        result = made[0](x)
        return reshaping.squeeze(result, 0) if _has_no_axis(num_filters) else result

    return _activated(Layer(apply), chosen("ConvolutionTranspose", "activation", activation, None), name)


def _transpose_of_axes(axes: int) -> Callable[..., Layer]:
    """`ConvolutionTranspose` with filters of this number of axes; see `_of_axes`."""

    def make(
        filter_shape: Shape, num_filters: int | None = None, activation: Any = DEFAULT, init: Any = DEFAULT,
        pad: Any = DEFAULT, strides: Any = 1, bias: Any = DEFAULT, init_bias: Any = DEFAULT, output_shape: Any = None,
        reduction_rank: int = 1, dilation: Any = 1, name: str = "",
    ) -> Layer:  # fmt: skip
        options = {"activation": activation, "init": init, "pad": pad, "bias": bias, "init_bias": init_bias}
        chosen_options = {key: chosen(label, key, option, DEFAULT) for key, option in options.items()}
        return ConvolutionTranspose(
            _filter(label, filter_shape, axes), num_filters, strides=strides, output_shape=output_shape,
            reduction_rank=reduction_rank, dilation=dilation, name=name, **chosen_options,
        )  # fmt: skip

    label = make.__name__ = make.__qualname__ = f"ConvolutionTranspose{axes}D"
    make.__doc__ = f"`ConvolutionTranspose` with filters of {axes} axes; a number is their size on each axis."
    return make


ConvolutionTranspose1D, ConvolutionTranspose2D, ConvolutionTranspose3D = map(_transpose_of_axes, (1, 2, 3))


def _filter(label: str, shape: Shape, axes: int) -> Shape:
    """The shape of a filter with this number of axes; a number is its size on each of them."""
    sizes = (shape,) * axes if isinstance(shape, int) else shape
    if len(dims(sizes)) != axes:
        message = f"{label}: a filter has {axes} axes, not the shape {shape}"
        raise UserError("BadShape", message, hint=f"{label[:-2]} takes filters with any number of axes")
    return sizes


@makes_blocks
def MaxPooling(filter_shape: Shape, strides: Any = 1, pad: Any = DEFAULT, name: str = "") -> Layer:
    """The largest element of each window."""
    return _pooling("MaxPooling", filter_shape, strides, pad, name)


@makes_blocks
def AveragePooling(filter_shape: Shape, strides: Any = 1, pad: Any = DEFAULT, name: str = "") -> Layer:
    """The mean of each window."""
    return _pooling("AveragePooling", filter_shape, strides, pad, name)


def _pooling(kind: str, filter_shape: Shape, strides: Any, pad: Any, name: str) -> Layer:
    layer = _Library(
        f"{kind}Layer",
        list(dims(filter_shape)),
        label=kind,
        name=name,
        stride=_sizes(strides),
        pad=_flags(chosen(kind, "pad", pad, False)),
    )
    layer.options = {"sharedPadding": True}
    layer.least_rank, layer.rank_hint = len(dims(filter_shape)), WINDOW_HINT
    return layer


@makes_blocks
def MaxUnpooling(filter_shape: Shape, strides: Any = 1, pad: Any = DEFAULT, name: str = "") -> Layer:
    """Applied to x and an image: the elements of x where the largest one of each window of the image was.

    The windows are those of the `MaxPooling` of the image.
    """
    padding = _flags(chosen("MaxUnpooling", "pad", pad, False))
    layer = _Library(
        "MaxUnpoolingLayer",
        list(dims(filter_shape)),
        label="MaxUnpooling",
        name=name,
        stride=_sizes(strides),
        pad=padding,
    )
    layer.options = {"sharedPadding": True, "wholePicture": True}
    return layer


@makes_blocks
def GlobalMaxPooling(name: str = "") -> Layer:
    """The largest element of each channel."""
    return Layer(lambda x: MaxPooling(known_shape(x)[1:], pad=False)(x), name)


@makes_blocks
def GlobalAveragePooling(name: str = "") -> Layer:
    """The mean of each channel."""
    return Layer(lambda x: AveragePooling(known_shape(x)[1:], pad=False)(x), name)


@makes_blocks
def BatchNormalization(
    map_rank: Any = DEFAULT,
    init_scale: float = 1.0,
    normalization_time_constant: Any = DEFAULT,
    blend_time_constant: float = 0,
    epsilon: Any = DEFAULT,
    use_cntk_engine: Any = DEFAULT,
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
    return _Library(
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
    initial_scale: float = 1.0, initial_bias: float = 0.0, epsilon: Any = DEFAULT, name: str = ""
) -> Layer:
    """Each sample brought to mean 0 and variance 1, then scaled and shifted by learned numbers.

    Args:
        initial_scale: how the first of them starts.
        initial_bias: how the other one starts.
        epsilon: added to the root of the variance; 0.00001.
        name: names the result.
    """
    added = check_number("epsilon", chosen("LayerNormalization", "epsilon", epsilon, 0.00001), 0.0)
    scale = layer_parameter((0,), check_number("initial_scale", initial_scale), name="scale")
    bias = layer_parameter((0,), check_number("initial_bias", initial_bias), name="bias")

    def apply(x: Any) -> Function:
        centred = operators.minus(x, reductions.reduce_mean(x))
        root = operators.sqrt(reductions.reduce_mean(operators.square(centred)))
        return operators.plus(operators.element_times(operators.element_divide(centred, root + added), scale), bias)

    return Layer(apply, name)


STABILIZER_START = 0.99537863
"""The start of a stabilizer's parameter: its factor is 1 with the default steepness."""


@makes_blocks
def Stabilizer(steepness: float = 4, enable_self_stabilization: Any = DEFAULT, name: str = "") -> Layer:
    """The input times a learned positive number."""
    enabled = chosen("Stabilizer", "enable_self_stabilization", enable_self_stabilization, True)
    if not check_flag("enable_self_stabilization", enabled):
        return Layer(identity, name)
    factor = check_number("steepness", steepness)
    alpha = layer_parameter((), STABILIZER_START, name="alpha")

    def apply(x: Any) -> Function:
        steep = operators.exp(operators.element_times(factor, alpha))
        beta = operators.element_divide(operators.log(operators.plus(1.0, steep)), factor, name="beta")
        return operators.element_times(x, beta)

    return Layer(apply, name)


@makes_blocks
def Dropout(
    dropout_rate: float | None = None, keep_prob: float | None = None, seed: int | None = None, name: str = ""
) -> Layer:
    """In training some elements are set to zero at random.

    Args:
        dropout_rate: how many.
        keep_prob: how many are not, instead.
        seed: layers of the same seed have the same masks; see `operators.dropout`.
        name: names the result.
    """
    if (dropout_rate is None) == (keep_prob is None):
        raise CallError("WrongArguments", "Dropout takes either dropout_rate or keep_prob")
    rate = operators.check_rate(dropout_rate if dropout_rate is not None else 1 - check_number("keep_prob", keep_prob))
    return Layer(lambda x: operators.dropout(x, rate, seed), name)


@makes_blocks
def Activation(activation: Any = DEFAULT, name: str = "") -> Layer:
    """An activation function as a layer."""
    return Layer(_activation(chosen("Activation", "activation", activation, identity)) or identity, name)


def Label(name: str) -> Layer:
    """The input under a name."""
    return Layer(operators.alias, name)


def _filters(count: Any) -> int:
    """Return the number of filters from a number or a tuple of one number; 1 if there is none."""
    if isinstance(count, list | tuple) and len(count) == 1:
        count = count[0]
    return 1 if _has_no_axis(count) else check_whole("num_filters", count, 1)


def _has_no_axis(num_filters: Any) -> bool:
    """Return whether there is one filter without an axis: None or (). A number of NumPy is not compared to ()."""
    return num_filters is None or (isinstance(num_filters, tuple) and not num_filters)


def _filter_start(init: Any, count: Any, sizes: tuple[int, ...], reduction_rank: int) -> Any:
    """Return the start of filters (count, channels, sizes); add the axes of 1 that an array may omit."""
    start = weights_start(chosen("Convolution", "init", init, None))
    rank = len(sizes)
    if not isinstance(start, np.ndarray) or not rank <= start.ndim < rank + 2:
        return start
    if reduction_rank == 0:
        start = np.expand_dims(start, start.ndim - rank)
    return start[None] if _has_no_axis(count) and start.ndim == rank + 1 else start


def _sizes(value: Any) -> Any:
    several = value if isinstance(value, list | tuple) else [value]
    for size in several:
        check_whole("a stride or a size", size, 1)
    return list(dims(value)) if isinstance(value, list | tuple) else int(value)


def _flags(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [check_flag("pad", flag) for flag in reversed(value)]
    return check_flag("pad", value)


# --------------------------------------------------------------------------------------------- combinations


def Sequential(layers: Sequence[Any], name: str = "") -> Layer:
    """Functions applied one after another; lists among them are flattened, tuples apply all to the same input."""
    flat = list(_flattened(layers))

    def apply(*x: Any) -> Any:
        result: Any = x[0] if len(x) == 1 else x
        for layer in flat:
            result = composed(result, layer)
        return Function(root for part in result for root in part.roots) if isinstance(result, tuple) else result

    made = Layer(apply, name)
    made.layers = [layer for layer in flat if isinstance(layer, Layer)]
    return made


def _flattened(layers: Any) -> Iterable[Any]:
    for part in layers if isinstance(layers, list) else [layers]:
        if isinstance(part, list):
            yield from _flattened(part)
        elif isinstance(part, Layer | Function | tuple) or callable(part):
            yield part
        else:
            raise CallError("NoFunction", f"Sequential takes layers and functions, not {type(part).__name__}")


def For(what_range: Iterable[Any], constructor: Callable[..., Any], name: str = "") -> Layer:
    """The layers that a function makes, one after another; it may take the number of the layer."""
    if not isinstance(what_range, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CallError("WrongArguments", f"For goes over a range, not {what_range!r}", hint="range(3)")
    check_callable("the constructor of For", constructor, "For(range(3), lambda i: Dense(10))")
    takes = len(inspect.signature(constructor).parameters)
    return Sequential([constructor(index) if takes else constructor() for index in what_range], name)


def SequentialClique(functions: Sequence[Any], name: str = "") -> Layer:
    """Functions applied one after another: each takes the sum of the input and of what all functions before gave.

    What the last one gives is the value.
    """
    flat = list(_flattened(list(functions)))

    def apply(x: Any) -> Any:
        value = x
        for layer in flat:
            value = layer(x)
            x = x + value
        return value

    made = Layer(apply, name)
    made.layers = [layer for layer in flat if isinstance(layer, Layer)]
    return made


def ResNetBlock(f: Callable[[Any], Any], name: str = "") -> Layer:
    """The input added to a function of it."""
    return Layer(lambda x: f(x) + x, name)


# --------------------------------------------------------------------------------------------- recurrence


class Cell(Layer):
    """A step of a recurrent layer: a function of the states before and the input that gives the states.

    Args:
        step: takes the states and the input, gives the states.
        states: how many there are.
        name: names it.
    """

    def __init__(self, step: Callable[..., Any], states: int, name: str = "") -> None:
        super().__init__(step, name)
        self.states = states

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The states after a step."""
        if len(arguments) + len(named) != self.states + 1:
            message = f"a step takes {self.states} states and the input, not {len(arguments) + len(named)} arguments"
            raise CallError("WrongArguments", message, hint="Recurrence(LSTM(n))(x) goes along a sequence")
        return super().__call__(*arguments, **named)


class _Block(_Library):
    """The library's part of a step, whatever it gives."""

    def values(self, *arguments: Any, activation: Any = operators.tanh) -> Any:
        """Call the library's function; replace its tanh by another activation."""
        self._applied += 1
        name = self._mark if self._applied == 1 else calls.marked(self._label)
        state = calls.call(self._function, *arguments, name=name)
        self.prepare(state)
        if activation is not operators.tanh:
            made = [node for node in _nodes(state) if node.origin.name.startswith(f"{name}.")]
            of_tanh = [node for node in made if node.operation.name == "Tanh"]
            new = {node: to_node(activation(Function(calls.inputs_of(node)[0]))) for node in of_tanh}
            for node in made:
                node.inputs = tuple(new.get(source, source) for source in calls.inputs_of(node))
        return state


BIAS = ("fixedValue", 0.0)
"""Default start of a bias."""


def LSTM(
    shape: Shape,
    cell_shape: Shape | None = None,
    activation: Any = DEFAULT,
    use_peepholes: Any = DEFAULT,
    init: Any = DEFAULT,
    init_bias: Any = DEFAULT,
    enable_self_stabilization: Any = DEFAULT,
    name: str = "",
) -> Cell:
    """A step of LSTM cells: a function of output, cell and input that gives output and cell.

    Args:
        shape: of the output.
        cell_shape: of the cell, if another: the output is then a projection.
        activation: of what enters the cell, and of the cell; tanh.
        use_peepholes: gates see the cell.
        init: how the weights start; glorot_uniform.
        init_bias: how the biases of gates and cell start.
        enable_self_stabilization: states are scaled by learned numbers.
        name: names the output.
    """
    activate = _activation(chosen("LSTM", "activation", activation, operators.tanh)) or identity
    bias = check_number("init_bias", chosen("LSTM", "init_bias", init_bias, 0.0))
    peepholes = check_flag("use_peepholes", chosen("LSTM", "use_peepholes", use_peepholes, False))
    block = _Block(
        "BS.RNNs.LSTMBlock",
        _single(shape),
        label=name or "LSTM",
        usePeepholes=peepholes,
        cellShape=None if cell_shape is None else _single(cell_shape),
        init=weights_start(chosen("LSTM", "init", init, None)),
        enableSelfStabilization=_stabilized("LSTM", enable_self_stabilization),
    )

    def step(h: Any, c: Any, x: Any) -> Function:
        value = block.values(to_node(x), calls.record(h=to_node(h), c=to_node(c)), activation=activate)
        for node in _nodes(value) if bias else ():
            start = node.start
            if node.learning_rate_multiplier > 0 and start is not None and (start.kind, start.value) == BIAS:
                start.value = bias
        return Function((calls.member(value, "h"), calls.member(value, "c")))

    return Cell(step, 2, name)


def _stabilized(layer: str, value: Any) -> bool:
    name = "enable_self_stabilization"
    return check_flag(name, chosen(layer, name, value, False))


def _state_stabilizer(layer: str, value: Any, shape: Shape, cell_shape: Any) -> Layer:
    """Return the layer that stabilises the state before a step of one state."""
    if cell_shape is not None and _single(cell_shape) != _single(shape):
        hint = f"Dense after the {layer} makes another shape of its state"
        raise UserError("NotSupported", f"{layer} has no cell of another shape than its state", hint=hint)
    return Stabilizer(enable_self_stabilization=_stabilized(layer, value))


def GRU(
    shape: Shape,
    cell_shape: Shape | None = None,
    activation: Any = DEFAULT,
    init: Any = DEFAULT,
    init_bias: Any = DEFAULT,
    enable_self_stabilization: Any = DEFAULT,
    name: str = "",
) -> Cell:
    """A step of gated recurrent units: a function of state and input that gives the state."""
    activate = _activation(chosen("GRU", "activation", activation, operators.tanh)) or identity
    stabilizer = _state_stabilizer("GRU", enable_self_stabilization, shape, cell_shape)
    block = _Block(
        "_GRUBlock",
        _single(shape),
        label=name or "GRU",
        init=weights_start(chosen("GRU", "init", init, None)),
        initBias=check_number("init_bias", chosen("GRU", "init_bias", init_bias, 0.0)),
    )

    def step(h: Any, x: Any) -> Function:
        made = named_function(block.values(to_node(x), to_node(stabilizer(h)), activation=activate), "")
        by_name = {node.origin.name.rpartition(".")[2]: node for node in _nodes(made.root) if node.start is not None}
        mark_written(made.root, (by_name[letter] for letter in ("b", "W", "H", "H1")))  # CNTK computes the gates first
        return made

    return Cell(step, 1, name)


def RNNStep(
    shape: Shape,
    cell_shape: Shape | None = None,
    activation: Any = DEFAULT,
    init: Any = DEFAULT,
    init_bias: Any = DEFAULT,
    enable_self_stabilization: Any = DEFAULT,
    name: str = "",
) -> Cell:
    """A step of a plain recurrent network: activation(b + W x + H h)."""
    stabilizer = _state_stabilizer("RNNStep", enable_self_stabilization, shape, cell_shape)
    block = _Block(
        "_RNNBlock",
        _single(shape),
        label=name or "RNNStep",
        init=weights_start(chosen("RNNStep", "init", init, None)),
        initBias=check_number("init_bias", chosen("RNNStep", "init_bias", init_bias, 0.0)),
    )
    activate = _activation(chosen("RNNStep", "activation", activation, operators.sigmoid)) or identity

    def step(h: Any, x: Any) -> Function:
        return activate(named_function(block.values(to_node(x), to_node(stabilizer(h))), ""))

    return Cell(step, 1, name)


RNNUnit = RNNStep


def _single(shape: Shape) -> int:
    size = dims(shape)
    if len(size) != 1:
        raise UserError("BadShape", f"the state of a step has one axis, {shape} has {len(size)}")
    return size[0]


@makes_blocks
def Recurrence(
    step_function: Any,
    go_backwards: Any = DEFAULT,
    initial_state: Any = DEFAULT,
    return_full_state: bool = False,
    name: str = "",
) -> Layer:
    """A step applied to every element of a sequence, with the states of the element before.

    Args:
        step_function: a layer such as LSTM, or a function of the states (1 to 6) and the input.
        go_backwards: from the end to the beginning.
        initial_state: the states before the first step: a number or a function (also one that has a value for each
            sequence), or one for each.
        return_full_state: all states instead of the first one.
        name: names the result.
    """
    states = _states_of(step_function)
    backwards = check_flag("go_backwards", chosen("Recurrence", "go_backwards", go_backwards, False))
    initial = chosen("Recurrence", "initial_state", initial_state, 0.0)
    several: Sequence[Any] = initial if isinstance(initial, list | tuple) else [initial] * states
    starts = [to_operand(0.0 if start is None else _initial(start)) for start in several]
    if len(starts) != states:
        raise CallError("WrongArguments", f"{len(starts)} initial states for a step with {states}")
    names = STATES[:states]
    data = [start if isinstance(start, NodeValue) and Function(start).data_arguments else None for start in starts]
    starts = [start if array is None else 0.0 for start, array in zip(starts, data, strict=True)]
    is_start = operators.is_last if backwards else operators.is_first

    def started(value: NodeValue, start: NodeValue | None, x: Function) -> Function:
        """The state before a step; at the first one the start, if that is a value for each sequence."""
        if start is None:
            return Function(value)
        everywhere = operators.broadcast_as(Function(start), x, "initial_state")
        return operators.element_select(is_start(x), everywhere, Function(value))

    def step(x: Any, earlier: Sequence[NodeValue]) -> Sequence[NodeValue]:
        states_before = [started(node, start, Function(x)) for node, start in zip(earlier, data, strict=True)]
        after = step_function(*states_before, Function(x))
        for state in after if isinstance(after, tuple) else (after,):
            if not isinstance(state, Function):
                message = f"a step of a recurrence gives functions, not {state!r}"
                raise CallError("NoFunction", message, hint="return the state, or the states (h, c)")
        results = after if isinstance(after, tuple) else after.outputs if len(after.roots) == states else (after,)
        if len(results) != states:
            raise CallError("WrongArguments", f"the step gave {len(results)} states, it takes {states}")
        return [to_node(state) for state in results]

    def apply(x: Any) -> Function:
        body, mark = calls.step_function(step, names), calls.marked(name or "Recurrence")
        made = calls.call(f"_Recurrence{states}", body, -1.0 if backwards else 1.0, *starts, name=mark)
        state = calls.call(made, to_operand(x), name=mark)
        nodes = [calls.member(state, letter) for letter in names]
        for node in nodes:  # evaluates the inputs of delay nodes
            calls.inputs_of(node)
        return Function(nodes if return_full_state else nodes[0])

    return Layer(apply, name)


def _initial(value: Any) -> Any:
    if isinstance(value, Function | NodeValue):
        return value
    array = as_array("an initial state", value, np.float64)
    return array if array.ndim else float(array)


@makes_blocks
def RecurrenceFrom(
    step_function: Any, go_backwards: Any = DEFAULT, return_full_state: bool = False, name: str = ""
) -> Layer:
    """A `Recurrence` whose states before the first step are arguments: `layer(h, c, x)` for an LSTM."""

    def apply(*arguments: Any) -> Function:
        recurrence = Recurrence(step_function, go_backwards, list(arguments[:-1]), return_full_state, name)
        return recurrence(arguments[-1])

    return Layer(apply)


@makes_blocks
def Fold(
    folder_function: Any,
    go_backwards: Any = DEFAULT,
    initial_state: Any = DEFAULT,
    return_full_state: bool = False,
    name: str = "",
) -> Layer:
    """The state after the last step of a `Recurrence`."""
    backwards = check_flag("go_backwards", chosen("Fold", "go_backwards", go_backwards, False))
    end = operators.first if backwards else operators.last
    recurrence = Recurrence(folder_function, backwards, initial_state, return_full_state)

    def apply(x: Any) -> Function:
        return Function(end(output).root for output in recurrence(x).outputs)

    return Layer(apply, name)


@makes_blocks
def Delay(T: int = 1, initial_state: Any = DEFAULT, name: str = "") -> Layer:
    """The value T steps earlier (later for a negative T)."""
    state = chosen("Delay", "initial_state", initial_state, 0.0)
    check_whole("T", T)

    def apply(x: Any) -> Function:
        if T == 0:
            return operators.alias(x)
        return operators.past_value(x, state, T) if T > 0 else operators.future_value(x, state, -T)

    return Layer(apply, name)


def PastValueWindow(window_size: int, axis: int = -2, go_backwards: Any = DEFAULT, name: str = "") -> Layer:
    """The last steps of each sequence as one sample, the last step first; with `go_backwards` the first ones.

    Args:
        window_size: how many steps.
        axis: the axis along which they lie, a negative number: of steps (n,) they make (window_size, n) with -2 and
            (window_size * n,) with -1.
        go_backwards: the first steps, from the first one on.
        name: names the values.

    Returns:
        A layer of two outputs: the values, 0 where a sequence has not that many steps, and for each step whether it is
        there, as 1 or 0: (window_size, 1) with the axis -2.
    """
    check_whole("PastValueWindow: window_size", window_size, 1)
    if not is_whole(axis) or axis >= 0:
        hint = "PastValueWindow(n, axis=-2)"
        raise UserError("BadIndex", f"PastValueWindow: an axis is a number below 0, not {axis!r}", hint=hint)
    backwards = check_flag("go_backwards", chosen("PastValueWindow", "go_backwards", go_backwards, False))
    end = operators.first if backwards else operators.last

    def shifted_by(x: Function, steps: int) -> Function:
        if steps == 0:
            return operators.alias(x)
        return operators.future_value(x, None, steps) if backwards else operators.past_value(x, None, steps)

    def apply(x: Any) -> Function:
        x = as_node(x)
        there = operators.zeros_like(operators.is_first(x)) + 1.0
        value, valid = (
            end(operators.splice([along(shifted_by(values, steps)) for steps in range(window_size)], axis=axis))
            for values, along in ((x, _window), (operators.reshape(there, (1,) * -axis), operators.alias))
        )
        value.root.name = name or value.root.name
        return Function((value.root, valid.root))

    @needs_shapes
    def _window(value: Function) -> Function:
        return operators.reshape(value, (*(1,) * (-axis - len(value.shape)), *value.shape))

    return Layer(apply)


STATES = "hcpqrs"
"""The names of the states of a step in the library."""

_STEPS = "use LSTM(n), GRU(n), RNNStep(n) or a function of the states and the input"


def _states_of(step: Any) -> int:
    if isinstance(step, Cell):
        return step.states
    count = -1
    if callable(step) and not isinstance(step, Function):
        parameters = inspect.signature(step.function if isinstance(step, Layer) else step).parameters.values()
        count += sum(
            parameter.kind <= parameter.POSITIONAL_OR_KEYWORD and parameter.default is parameter.empty
            for parameter in parameters
        )
    if count < 0:
        raise CallError("NoFunction", f"{step!r} is not a step of a recurrence", hint=_STEPS)
    if not 1 <= count <= len(STATES):
        message = f"a step has 1 to {len(STATES)} states and the input, not {count + 1} parameters"
        raise CallError("WrongArguments", message, hint=_STEPS)
    return count
