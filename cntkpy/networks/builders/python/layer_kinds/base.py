"""Layers: functions of functions, with parameters of their own, and layers made of several.

A layer that is applied twice uses the same parameters twice.
"""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.blocks import Block, block_of, mark_block, mark_written, written_operands
from cntkpy.networks.builders.python.functions.checks import check_callable, check_name
from cntkpy.networks.builders.python.functions.deferring import deferred
from cntkpy.networks.builders.python.functions.function import Function, composed, is_data
from cntkpy.networks.builders.python.functions.mixins.called import input_like
from cntkpy.networks.builders.python.functions.nodes import has_value, ordered
from cntkpy.networks.builders.python.functions.recipes import OpenShape
from cntkpy.networks.builders.python.functions.variables import placeholder

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
        """Return its inputs and outputs with their types, see `Function.__str__`; as `repr` where it needs more to be
        made.
        """
        try:
            return str(self._first or self.of_placeholder())
        except (UserError, TypeError):
            return repr(self)

    def _described(self) -> list[str]:
        """Return the name of its constructor, and its sizes where they are known."""
        return [self.kind or ("Sequential" if self.layers else "Layer")]

    def of_placeholder(self) -> Function:
        """Return the function of a placeholder for each input, the same one every time; it shares the parameters.

        Raises:
            UserError: this is a step of a recurrence.
        """
        if self._open is None:
            names = self._missing((), {})
            made = self(*(placeholder(name=name) for name in names)) if names else self(placeholder(name="x"))
            if type(made) is not Function:  # pyright: ignore[reportUnnecessaryComparison]
                raise CallError("NoFunction", "the layer gives several functions", hint="call it with its inputs")
            self._open = made
        return self._open

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return the function of these arguments, with a placeholder in the place of each one that is not given.

        Of data, once it was applied, the values of what it made first.

        Raises:
            UserError: it takes other arguments.
        """
        if arguments and not named and self._first is not None and all(map(is_data, arguments)):
            return self._of_own_inputs()(*arguments)
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
            name = made.name
            if self.name and len(made.roots) == 1:
                made.root.name = self.name
            self._mark_block(made, self._applied_to[-1], name)
        return made

    def _mark_block(self, made: Function, applied_to: Sequence[Function], name: str) -> None:
        """Mark the result of a layer, which had this name, as one block, with the name of the layer's constructor."""
        operands = tuple(root for function in applied_to for root in function.roots)
        if self.kind and len(made.roots) == 1 and made.root not in operands:
            mark_block(made.root, Block(self.kind, operands, operands, block_of(made.root), name))
        elif operands:
            first = made.roots[0]
            members = [node for node in written_operands(first) if has_value(node)]  # of a cell
            mark_written(first, (*members, *operands))

    def _missing(self, positional: Sequence[object], named: Mapping[str, object]) -> list[str]:
        """Return the names of the arguments that are not given, of a function that takes a fixed number of them."""
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

    def save(self, filename: str | Path, format: object = None) -> None:
        """Write a model file of the layer, without what it was applied to; see `Function.save`."""
        self._of_own_inputs().save(filename, format)

    def _of_own_inputs(self) -> Function:
        """Return its function of inputs in their order; those that it was applied to stay, other operands become some.

        Raises:
            UserError: it was not applied to what has a shape.
        """
        made = self._first
        if made is None:
            return self.of_placeholder()
        applied_to = self._applied_to[self._made.index(made)]
        members = set(ordered(made.roots))
        names = [function.name for function in self.signature] if len(self.signature) == len(applied_to) else []
        inputs: dict[Function, Function] = {}
        for index, operand in enumerate(applied_to):
            if len(operand.roots) == 1 and not operand.is_leaf and operand.root in members and operand.data_arguments:
                inputs[operand] = Function(input_like(operand, names[index] if names else ""))
        if not inputs:
            return made
        copied = made.clone("share", inputs)
        mark_written(copied.roots[0], (inputs.get(operand, operand).roots[0] for operand in applied_to))
        return copied

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

    def __rshift__(self, other: Callable[..., object]) -> Layer:
        return Sequential([self, other])

    def __lshift__(self, other: Callable[..., object]) -> Layer:
        return Sequential([other, self])


def _has_shape(function: Function) -> bool:
    """Return whether the shape of a placeholder is known."""
    return function.root.shape is not None and 0 not in function.root.shape


def makes_blocks(constructor: Callable[P, Layer]) -> Callable[P, Layer]:
    """Return a decorator of constructors of layers: what the layers make is a block with the constructor's name."""

    @functools.wraps(constructor)
    def make(*arguments: P.args, **named: P.kwargs) -> Layer:
        layer = constructor(*arguments, **named)
        layer.kind = constructor.__name__
        return layer

    return make


def identity(x: Function) -> Function:
    """X itself."""
    return x


def Sequential(layers: Sequence[object], name: str = "") -> Layer:
    """Functions applied one after another; lists among them are flattened, tuples apply all to the same input."""
    flat = list(_flattened(layers))

    def apply(*x: Any) -> Function:
        result: Any = x[0] if len(x) == 1 else x
        for layer in flat:
            result = composed(result, layer)
        return Function(root for part in result for root in part.roots) if isinstance(result, tuple) else result

    made = Layer(apply, name)
    made.layers = [layer for layer in flat if isinstance(layer, Layer)]
    return made


def _flattened(layers: object) -> Iterable[Any]:
    for part in layers if isinstance(layers, list) else [layers]:
        if isinstance(part, list):
            yield from _flattened(part)
        elif isinstance(part, Layer | Function | tuple) or callable(part):
            yield part
        else:
            raise CallError("NoFunction", f"Sequential takes layers and functions, not {type(part).__name__}")


def For(what_range: Iterable[object], constructor: Callable[..., object], name: str = "") -> Layer:
    """Return the layers that a function makes, one after another; it may take the number of the layer."""
    if not isinstance(what_range, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CallError("WrongArguments", f"For goes over a range, not {what_range!r}", hint="range(3)")
    check_callable("the constructor of For", constructor, "For(range(3), lambda i: Dense(10))")
    takes = len(inspect.signature(constructor).parameters)
    return Sequential([constructor(index) if takes else constructor() for index in what_range], name)


def SequentialClique(functions: Sequence[object], name: str = "") -> Layer:
    """Functions applied one after another: each takes the sum of the input and of what all functions before gave.

    What the last one gives is the value.
    """
    flat = list(_flattened(list(functions)))

    def apply(x: Function) -> Function:
        value = x
        for layer in flat:
            value = layer(x)
            x = x + value
        return value

    made = Layer(apply, name)
    made.layers = [layer for layer in flat if isinstance(layer, Layer)]
    return made


def ResNetBlock(f: Callable[[Function], Function], name: str = "") -> Layer:
    """Return the input added to a function of it."""
    return Layer(lambda x: f(x) + x, name)
