"""The structure of a function in terms of CNTK 2: primitive functions, composites and blocks.

A function of ours is all three at once. `root_function` and `block_root` are the same function, seen as the operation
that gives its value, and as what is inside of its block.
"""

# What programs give is of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from operator import eq
from typing import Any, Self
from weakref import WeakKeyDictionary

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten, suggestion
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.axes import DEFAULT_AXIS, Axis
from cntkpy.networks.builders.python.functions.blocks import (
    Block,
    block_of,
    leaves_in_order,
    op_name_of,
    shown_as,
    written_operands,
)
from cntkpy.networks.builders.python.functions.cells import OPTIONS
from cntkpy.networks.builders.python.functions.checks import check_number, seed_option
from cntkpy.networks.builders.python.functions.leaves import counts_of, with_counts
from cntkpy.networks.builders.python.functions.nodes import has_value, ordered, type_text
from cntkpy.networks.builders.python.functions.recipes import OpenShape
from cntkpy.networks.nodes.host.kinds import HOST

CUSTOM = "customAttributes"
"""The option that holds what a program has attached to an operation, as JSON."""

SETTABLE = {"dropoutRate": "rate", "rngSeed": "seed"}
"""The attributes that can be set, and the options of nodes that they are."""


_GIVEN_SEED = "_given_seed"
"""The attribute of a node for the seed that a program has set."""


class View(Enum):
    """The forms in which a function is seen."""

    COMPOSITE = "a function of inputs"
    VALUE = "an output"
    PRIMITIVE = "the operation that gives its value"
    INSIDE = "what is inside of its block"


class Structure:
    """The structure of a function."""

    roots: tuple[NodeValue, ...]
    view: View = View.COMPOSITE
    """As what the function is seen."""
    name_of_all: str = ""
    """The name of a function of several outputs."""
    depth: int = 0
    """The number of blocks around each other that it is seen from inside of; all of them have the same value."""

    def _of(self, *roots: NodeValue, view: View = View.COMPOSITE) -> Self:
        """Return the function of some nodes."""
        raise NotImplementedError

    @property
    def _resolved(self) -> NodeValue:
        """Its only node."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample."""
        raise NotImplementedError

    def _leaves(self) -> list[Any]:
        """Return the leaves that it depends on, in the order of a walk."""
        raise NotImplementedError

    @property
    def _block(self) -> Block | None:
        """The block that it is the value of, or that all its outputs are of, unless it is seen from inside."""
        return self._block_at(self.depth)

    def _block_at(self, depth: int) -> Block | None:
        """Return the block inside of that many blocks."""
        block = block_of(self.roots[0]) if self.roots else None
        if not all(block_of(root) is block for root in self.roots):
            return None
        for _ in range(depth):
            block = None if block is None else block.inner
        return block

    @property
    def op_name(self) -> str:
        """The name of the operation, as CNTK 2 has it; of a layer the name of the layer."""
        block = self._block
        if block is not None:
            return block.op_name
        if len(self.roots) != 1:
            operations = [shown_as(root) for root in self.roots]
            first = operations[0] if operations else None
            return "Combine" if first is None or any(each is not first for each in operations) else first.op_name
        shown = shown_as(self._resolved)
        return op_name_of(self._resolved) if shown is None else shown.op_name

    @property
    def inputs(self) -> tuple[Self, ...]:
        """Of a function of inputs its leaves; of its `root_function` the operands, as the program wrote them.

        A block has its parameters and constants, and what it was applied to.
        """
        inputs = self._operands()
        leaves = [operand.roots[0] for operand in inputs if has_value(operand.roots[0])]
        if any(0 in (leaf.shape or ()) for leaf in leaves):
            for root in self.roots:
                with suppress(UserError):  # a placeholder is left: sizes stay unknown
                    _ = self._of(root).shape  # parameters take their sizes from what they are used with
        return inputs

    def _operands(self) -> tuple[Self, ...]:
        """Return what `inputs` does, of which parameters may have sizes to be inferred."""
        if self.is_composite:
            return tuple(self._leaves())
        block = self._block
        if len(self.roots) > 1 and block is None:
            shown = None if self.op_name == "Combine" else shown_as(self.roots[0])
            return tuple(map(self._of, self.roots if shown is None else shown.operands))
        node = self.roots[0] if len(self.roots) > 1 else self._resolved
        if block is None:
            if (shown := shown_as(node)) is not None:
                return tuple(map(self._of, shown.operands))
            operands = calls.inputs_of(node)
            written = written_operands(node)
            in_order = written if set(written) == set(operands) else operands
            return tuple(map(self._of, (*in_order, *counts_of(node))))
        members = set(ordered(self.roots))
        members -= set(block.operands)
        leaves = with_counts(leaves_in_order(self.roots, members), members)
        return tuple(map(self._of, (*leaves, *block.operands)))

    @property
    def root_function(self) -> Self:
        """The operation that gives its value: a primitive function, or a block."""
        function = self._of(*self.roots, view=self.view if self.view is View.INSIDE else View.PRIMITIVE)
        function.depth, function.name_of_all = self.depth, self.name_of_all
        return function

    @property
    def owner(self) -> Self:
        """The same."""
        return self.root_function

    @property
    def is_block(self) -> bool:
        """Return whether it is the value of a block: of a layer, or of `as_block`."""
        return self._block is not None

    @property
    def is_primitive(self) -> bool:
        """Return whether it is seen as one operation, which is not a block: `root_function` of others."""
        return not self.is_composite and not self.is_block

    @property
    def is_composite(self) -> bool:
        """Return whether it is seen as a function of inputs; `root_function` is not."""
        return self.view in (View.COMPOSITE, View.VALUE)

    @property
    def block_root(self) -> Self:
        """The function inside of its block.

        Raises:
            UserError: it is not the value of a block.
        """
        if not self.is_block:
            raise CallError("NoFunction", f"{self!r} is not a block", hint="is_block says which functions are")
        function = self._of(*self.roots, view=View.INSIDE)
        function.depth = self.depth + 1
        return function

    @property
    def block_arguments_mapping(self) -> list[tuple[Self, Self]]:
        """For each operand of its block, a pair: the placeholder that it replaced, of a layer itself; and the operand.

        Raises:
            UserError: it is not the value of a block.
        """
        _ = self.block_root
        block = self._block
        assert block is not None
        pairs = zip(block.arguments, block.operands, strict=True)
        return [(self._of(argument), self._of(operand)) for argument, operand in pairs]

    @property
    def attributes(self) -> dict[str, Any]:
        """The options of its operation by name; those that can be set have CNTK's names. A seed of -1: it has none."""
        if (shown := shown_as(self._resolved)) is not None and self._block is None:
            return dict(shown.attributes)
        options = {key: value for key, value in self._resolved.options.items() if key not in _OURS}
        options = _ATTRIBUTES.get(op_name_of(self._resolved), dict[str, Any])(options)
        if "seed" in options:
            options |= {"rngSeed": self._seed(options.pop("seed")), "rngOffset": 0}
        if "rate" in options:
            options["dropoutRate"] = options.pop("rate")
        return {key: value for key, value in options.items() if key not in (HOST, CUSTOM)}

    def _seed(self, option: int) -> int:
        """Return the seed that an option stands for; -1: there is none. Options have 32 bits, seeds of programs 64."""
        seed = vars(self._resolved).get(_GIVEN_SEED)
        return seed if seed is not None and seed_option(seed) == option else option - 1

    def attached(self) -> dict[str, Any]:
        """Return a copy of what a program has attached to its operation."""
        return json.loads(self._resolved.options.get(CUSTOM, "{}"))

    @property
    def custom_attributes(self) -> dict[str, Any]:
        """Attributes that a program has attached to its operation; items can be set. Model files keep them."""
        return CustomAttributes(self)

    @custom_attributes.setter
    def custom_attributes(self, values: Mapping[str, object]) -> None:
        """Attach numbers, texts, lists and dictionaries of them by name.

        Raises:
            UserError: it is an input, a parameter or a constant, or a value cannot be kept.
        """
        node = self._resolved
        if not calls.inputs_of(node):
            message = f"{self!r} is no operation that attributes could be attached to"
            raise CallError("NoFunction", message, hint="alias(x) is one")
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"custom attributes are a dictionary, not {shorten(repr(values))}"
            raise CallError("WrongArguments", message, hint="f.custom_attributes = {'version': 2}")
        try:
            node.options[CUSTOM] = json.dumps(dict(values))
            OPTIONS.add()
        except (TypeError, ValueError) as error:
            hint = "give numbers, texts, lists and dictionaries of them; array.tolist() makes such"
            raise CallError("WrongArguments", f"custom attributes are kept as JSON: {error}", hint=hint) from None

    def set_attribute(self, name: str, value: float) -> None:
        """Change the rate or the seed of a dropout, also in functions that were computed and trainers that have begun.

        Raises:
            UserError: its operation has no such attribute, or it cannot be changed.
        """
        node = self._resolved
        if name not in SETTABLE or SETTABLE[name] not in node.options:
            known = [attribute for attribute, option in SETTABLE.items() if option in node.options]
            message = f"{self!r} has no attribute '{name}' that could be changed"
            hint = suggestion(name, known) or (f"possible: {', '.join(known)}" if known else "make another function")
            raise CallError("UnknownArgument", message, hint=hint)
        if name == "dropoutRate" and not 0 <= check_number("a dropout rate", value) < 1:
            raise UserError("BadValue", f"a dropout rate lies from 0 to 1, it is not {value}")
        node.options[SETTABLE[name]] = float(value) if name == "dropoutRate" else seed_option(value)
        if name == "rngSeed":
            vars(node)[_GIVEN_SEED] = value
        OPTIONS.add()


POOLING_TYPES = ("max", "average")
"""The kinds of pooling, in the order of their numbers in CNTK 2."""


def _of_windows(options: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a convolution or a pooling; axes are NumPy's."""
    names = {"stride": "strides", "kind": "poolingType"}
    hidden = ("imageLayout", "mapCount", "sharedPadding", "wholePicture")
    shown = {names.get(key, key): value for key, value in options.items() if key not in hidden}
    if "poolingType" in shown:
        shown["poolingType"] = POOLING_TYPES.index(shown["poolingType"])
        if "kernelShape" in shown:
            shown["poolingWindowShape"] = shown.pop("kernelShape")
    return {key: value[::-1] if isinstance(value, tuple) else value for key, value in shown.items()}


def _renamed(names: Mapping[str, str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what gives options CNTK's names; those that are not renamed stay."""
    return lambda options: {names.get(key, key): value for key, value in options.items()}


_OURS = frozenset({"count", "exact", "function", "oneStep"})
"""Options of nodes that are no attributes in CNTK."""

_ATTRIBUTES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "BatchNormalization": _renamed({"engine": "useCuDNNEngine"}),
    "Convolution": _of_windows,
    "Crop": lambda options: {"offset": [options["offsetX"], options["offsetY"]]} if "offsetX" in options else {},
    "FutureValue": lambda options: {"offset": options.get("timeStep", 1)},
    "OptimizedRNNStack": _renamed({"hiddenDims": "hiddenSize"}),
    "PastValue": lambda options: {"offset": options.get("timeStep", 1)},
    "Pooling": _of_windows,
    "Reshape": _renamed({"dims": "newShape"}),
    "ROIPooling": lambda options: _renamed({"outputShape": "roiOutputShape"})(_of_windows(options)),
    "RandomDistribution": lambda options: {
        "randomDistributionType": options["distribution"],
        "randomDistributionArgs": [options["first"], options["second"]],
        "seed": options.get("seed", 0),
    },
    "RandomSample": _renamed({"sampleWithReplacement": "allowDuplicates"}),
    "RandomSampleInclusionFrequency": _renamed({"sampleWithReplacement": "allowDuplicates"}),
    "TransposeTimes": lambda options: {"outputRank": 1} | options,
    "Unpooling": lambda options: _renamed({"kernelShape": "unpoolingWindowShape"})(_of_windows(options)),
}
"""By operation what makes CNTK's attributes of the options of its node."""


class CustomAttributes(dict[str, Any]):
    """Attributes that a program has attached to an operation; the function keeps changes of this dictionary.

    Args:
        function: the function.
    """

    def __init__(self, function: Structure) -> None:
        super().__init__(function.attached())
        self._function = function

    def _keep(self, changed: dict[str, object]) -> None:
        """Attach other items; those that cannot be kept change nothing."""
        self._function.custom_attributes = changed
        super().clear()
        super().update(self._function.attached())

    def __setitem__(self, key: str, value: object) -> None:
        self._keep({**self, key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._keep({name: value for name, value in self.items() if name != key})

    def __ior__(self, other: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._keep({**self, **dict(other)})
        return self

    def update(self, *items: Any, **named: object) -> None:
        """Set several items."""
        self._keep({**self, **dict(*items, **named)})

    def setdefault(self, key: str, default: object = None) -> Any:
        """Return the item; where it is missing it is set."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: object) -> Any:
        """Remove an item and return it."""
        value = super().get(key, *default) if key in self or default else self[key]
        if key in self:
            del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last item and return it."""
        if not self:
            raise KeyError("there are no custom attributes")
        key = list(self)[-1]
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all items."""
        self._keep({})


_UIDS: WeakKeyDictionary[NodeValue, int] = WeakKeyDictionary()
"""The numbers of nodes in their uids."""

_numbers = itertools.count(1)


def uid_of(variable: Any) -> str:
    """Return a name that nothing else of this process has, as CNTK 2 writes it: `Input3`, `Plus12_Output_0`."""
    node = variable.roots[0]
    kind = _kind(variable)
    if kind == "Output":
        shown = shown_as(node)
        kind = "Block" if block_of(node) else op_name_of(node) if shown is None else shown.op_name
    if node not in _UIDS:
        _UIDS[node] = next(_numbers)
    return f"{kind}{_UIDS[node]}{'_Output_0' if variable.view is View.VALUE and variable.is_output else ''}"


def _kind(variable: Any) -> str:
    """Return what a function stands for."""
    kinds = {
        "Input": variable.is_input,
        "Parameter": variable.is_parameter,
        "Constant": variable.is_constant,
        "Placeholder": variable.is_placeholder,
    }
    return next((kind for kind, holds in kinds.items() if holds), "Output")


def variable_text(variable: Any) -> str:
    """Return a leaf or an output with its axes and its shape, as CNTK 2 writes it: `Input('x', [#, *], [2 x 3])`.

    What has no name is written with its uid.
    """
    kind, name = _kind(variable), variable.name or uid_of(variable)
    try:
        sizes, axes = " x ".join(map(str, variable.shape)), ", ".join(map(_axis_text, variable.dynamic_axes))
    except OpenShape:
        sizes = axes = "???"
    axes = "???" if kind == "Placeholder" else axes
    return f"{kind}('{name}', [{axes}], [{sizes}])"


def _axis_text(axis: Axis) -> str:
    """Return the sign of the batch or of the default sequence axis, or the name of another axis."""
    return "#" if axis.is_batch_axis else "*" if axis.name == DEFAULT_AXIS else axis.name


def signature_text(function: Any, name: str = "") -> str:
    """Return a function with the types of its inputs and outputs: `h: Dense(x: Tensor[3]) -> Tensor[2]`.

    Args:
        function: the function.
        name: in front of the inputs; by default its own and that of its operation.
    """
    prefix = f"{function.name}: " if function.name else ""
    primitive = function.root_function
    is_one = not function.is_composite or all(map(eq, function.inputs, primitive.inputs))
    label = name or prefix + (primitive.op_name if is_one else "Composite")
    inputs = ", ".join(map(_named_type, function.signature))
    outputs = ", ".join(map(_type_text, function.outputs))
    return f"{label}({inputs}) -> {outputs if len(function.roots) == 1 else f'Tuple[{outputs}]'}"


def _named_type(function: Any) -> str:
    """Return a type, behind the name of what has it."""
    return f"{function.name}: {_type_text(function)}" if function.name else _type_text(function)


def _type_text(function: Any) -> str:
    """Return a type as `cntk.layers.typing` writes it; `Sequence[tensor]` where the shape is not known yet."""
    try:
        return type_text(function.shape, function.is_sparse, len(function.dynamic_axes) > 1)
    except OpenShape:
        return "Sequence[tensor]"
