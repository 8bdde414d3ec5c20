"""`Function`: one or several nodes of a network under construction.

Shapes are numpy's: the last axis is the fastest in memory. (A node's shape is the other way round.)
"""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.networks.builders.brainscript.loading import stored_value
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import betas, calls, graph, saving
from cntkpy.networks.builders.python.functions.attention import NAME as ATTENTION_WEIGHTS
from cntkpy.networks.builders.python.functions.attention import attention_weights
from cntkpy.networks.builders.python.functions.axes import DEFAULT_AXIS, Axis
from cntkpy.networks.builders.python.functions.blocks import (
    Block,
    Shown,
    mark_block,
    mark_name,
    mark_shown,
    mark_written,
    name_in_program,
)
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.checks import check_name, check_path, is_whole
from cntkpy.networks.builders.python.functions.copies import copied_roots
from cntkpy.networks.builders.python.functions.defaults import DEFAULT as DEFAULT_OPTION
from cntkpy.networks.builders.python.functions.defaults import HALF, PROCESS_OPTIONS, chosen
from cntkpy.networks.builders.python.functions.free import are_free, free_axis, free_nodes, free_shape, probed
from cntkpy.networks.builders.python.functions.free_files import take_free
from cntkpy.networks.builders.python.functions.graph import Model
from cntkpy.networks.builders.python.functions.leaves import FREE, UNKNOWN, adopting_constant, data_input, with_counts
from cntkpy.networks.builders.python.functions.mixins.called import Called
from cntkpy.networks.builders.python.functions.mixins.evaluation import Evaluated, functions_of
from cntkpy.networks.builders.python.functions.mixins.overloads import Operators
from cntkpy.networks.builders.python.functions.mixins.structure import View, signature_text, uid_of, variable_text
from cntkpy.networks.builders.python.functions.mixins.values import Valued
from cntkpy.networks.builders.python.functions.nodes import INPUTS, Input, ValueType, has_value, is_of_layer, note_user
from cntkpy.networks.builders.python.functions.parts import check_index, indexed, runs
from cntkpy.networks.builders.python.functions.per_sample import per_sample
from cntkpy.networks.builders.python.functions.recipes import (
    OpenShape,
    is_free,
    is_open,
    is_recipe,
    is_waiting,
    recipe,
    resolve,
    settled,
    shape_of,
)
from cntkpy.networks.builders.python.functions.user_code import revive
from cntkpy.networks.files.model_file import load_model as load_network
from cntkpy.networks.graph.axes import DEFAULT, is_kept
from cntkpy.networks.graph.network import Network, ValidatedNetwork
from cntkpy.networks.graph.node import Node

CloneMethod = str
"""Treatment of parameters by `Function.clone`: "clone" copies, "share" keeps, "freeze" copies them untrained."""

BATCH = (Axis.default_batch_axis(),)
"""The axes of data without time."""


@runtime_checkable
class Applies(Protocol):
    """Makes functions of functions: a layer."""

    def of_placeholder(self) -> Function:
        """Return the function of inputs that are not known yet, the same one every time."""
        ...


_FREE_SHAPES: WeakKeyDictionary[NodeValue, tuple[int, ...]] = WeakKeyDictionary()
"""The shapes of functions with free sizes, which depend on no placeholder: trying sizes takes as long as the network is
deep."""


def _tried_shape(root: NodeValue) -> tuple[int, ...] | None:
    """Return the shape of a function with free sizes; None: nothing is free, or its axes are not known."""
    open_shape = free_shape(per_sample(root))
    if open_shape is None:
        return None
    marks = {INPUTS[node].unknown if node in INPUTS else FREE for node in free_nodes([per_sample(root)])}
    mark = UNKNOWN if marks == {UNKNOWN} else FREE  # sizes to be inferred stay so
    shape = tuple(mark if size == FREE else size for size in reversed(open_shape))
    if mark == FREE:
        _FREE_SHAPES[root] = shape
    return shape


class Variable(Operators, Valued):
    """The nodes of a function with their names, shapes, precision, axes and values.

    Args:
        roots: the nodes.
    """

    def __init__(self, roots: NodeValue | Iterable[NodeValue]) -> None:
        self.roots: tuple[NodeValue, ...] = (roots,) if isinstance(roots, NodeValue) else tuple(roots)
        self._model: Model | None = None
        self._hash = hash(self.roots)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.roots == other.roots

    def __hash__(self) -> int:
        return self._hash

    @property
    def root(self) -> NodeValue:
        """Its only node."""
        if len(self.roots) != 1:
            raise UserError(
                "NoNode",
                f"a function with {len(self.roots)} outputs cannot be an operand",
                hint="use one of its .outputs",
            )
        return self.roots[0]

    @property
    def model(self) -> Model:
        """Its network and the values of its nodes."""
        if self._model is None:
            free = are_free(self.roots)
            self._model = probed(self.roots) if free else graph.make_outputs(self.roots)
        return self._model

    @property
    def network(self) -> ValidatedNetwork:
        """The network of this function, with the values that its parameters have now."""
        self.model.load()
        return self.model.network

    @property
    def node(self) -> Node:
        """Its only node in `network`."""
        return self.model.nodes[self.root]

    @property
    def name(self) -> str:
        """The name given to it, or that of a layer's parameter (W, b); "" if there is none."""
        if len(self.roots) != 1:
            return self.name_of_all
        root = self.roots[0]
        if self.depth:
            around = self._block_at(self.depth - 1)
            return "" if around is None else around.inner_name
        written = name_in_program(root)
        if written is not None:
            return written
        label = root.origin.name.rpartition(".")[2] if is_of_layer(root) else ""
        return root.name or ("b" if label == "B" else label)  # the bias of LSTM

    @name.setter
    def name(self, function_name: str) -> None:
        """Name it.

        Raises:
            UserError: it has a name already.
        """
        if self.name and self.name != function_name:
            message = f"{self!r} has a name, which cannot be changed to {shorten(repr(function_name))}"
            raise UserError("NodeExists", message, hint="alias(f, name) has another one")
        if len(self.roots) != 1:
            self.name_of_all = check_name(function_name)
        elif name_in_program(self.root) is None:
            self.root.name = check_name(function_name)
        else:
            mark_name(self.root, check_name(function_name))

    @property
    def uid(self) -> str:
        """A name that no other function of this process has."""
        return uid_of(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample; the axes of sequence and minibatch do not count. -1: a parameter's, not known yet."""
        root = self.root
        value = cell_of(root).value
        if value is None and self._takes_size_of_users():
            value = cell_of(root).value
        if value is not None:
            return tuple(value.shape)
        if self.is_parameter and root.shape and 0 in root.shape:
            return tuple(size or UNKNOWN for size in reversed(root.shape))
        if root.shape is not None and root in INPUTS:
            return tuple(size or INPUTS[root].unknown for size in reversed(root.shape))
        if root.shape is not None and 0 not in root.shape and (self.is_leaf or self.is_placeholder):
            return tuple(reversed(root.shape))
        if is_free(root):
            operand_shape = () if root.options.get("mask") else Function(calls.inputs_of(root)[0]).shape
            return (FREE, *operand_shape)
        if root in _FREE_SHAPES:
            return _FREE_SHAPES[root]
        if not settled(root):
            try:
                return tuple(reversed(shape_of(root)))
            except OpenShape:
                known = None if calls.is_inside_step() or is_waiting(root) else _tried_shape(root)
                if known is None:
                    raise
                return known
        if self._is_criterion:
            return Function(per_sample(root)).shape
        return tuple(reversed(graph.inferred(root).shape))

    @property
    def _is_criterion(self) -> bool:
        return per_sample(self.root) is not self.root

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The type of its elements."""
        return graph.precision(self.roots)

    @property
    def type(self) -> ValueType:
        """Shape, precision and axes of its value; `update_signature` and `input_variable(**f.type)` take it."""
        return ValueType(self.shape, self.dtype, self.is_sparse, self.dynamic_axes)

    @property
    def dynamic_axes(self) -> tuple[Axis, ...]:
        """The axes of its data: the minibatch, and time for sequences; none of what is the same for all samples."""
        kinds = [INPUTS.get(argument.root, Input(False)) for argument in self.data_arguments]
        inputs = [kind for kind in kinds if not kind.static]
        makes_batch = not inputs and any(node.operation.name == "ToBatch" for node in self._all())
        if not inputs and not makes_batch:
            return ()
        sequences = [kind.axis for kind in inputs if kind.sequence]
        if self.is_input or (is_open(self.root) and not are_free(self.roots)):
            return (*BATCH, Axis(sequences[0] or DEFAULT_AXIS)) if sequences else BATCH
        if self._is_criterion:
            return Function(per_sample(self.root)).dynamic_axes
        axis = free_axis(self.root) if are_free(self.roots) else graph.inferred(self.root).axis
        if axis is None:
            return ()
        if (not sequences and not is_kept(axis)) or axis == graph.ONE_STEP:
            return BATCH
        return (*BATCH, Axis(DEFAULT_AXIS if axis in (None, DEFAULT) else axis))

    @property
    def _resolved(self) -> NodeValue:
        """Its only node; a recipe becomes a node first, if the shapes of its operands are known."""
        if is_recipe(self.root):
            self._all()
        return self.root

    def _all(self) -> list[NodeValue]:
        return resolve(self.roots)

    def _leaves(self) -> list[Function]:
        """Return the leaves in the order of a walk; those of a model that was read have its order among themselves."""
        nodes = self._all()
        return [Function(node) for node in with_counts(graph.leaves(self.roots, nodes), nodes)]

    @property
    def placeholders(self) -> tuple[Function, ...]:
        """The inputs that are not known yet; see `arguments`."""
        return tuple(leaf for leaf in self._leaves() if leaf.is_placeholder)

    @property
    def arguments(self) -> tuple[Function, ...]:
        """The inputs that it depends on: of data, and placeholders that stand for them.

        Their order is that of a depth-first walk from the function, through operands from left to right as the program
        wrote them: those of `(c - a) / b` are c, a and b. Of a block, parameters come before what it was applied to.
        """
        return tuple(leaf for leaf in self._leaves() if leaf.is_input or leaf.is_placeholder)

    @property
    def data_arguments(self) -> tuple[Function, ...]:
        """The inputs of data that it depends on, without placeholders; see `arguments`."""
        return tuple(leaf for leaf in self._leaves() if leaf.is_input)

    def _of(self, *roots: NodeValue, view: View = View.COMPOSITE) -> Any:
        function = Function(roots)
        function.view = view
        return function

    def _apply(self, name: str, *operands: object) -> Any:
        return checked(operator(name, *map(as_node, operands)))


class Function(Variable, Called, Evaluated):
    """A function of inputs and parameters: its value is that of one node, or of several.

    Functions are made by `input_variable`, by operators and layers. Two objects are equal that stand for the same
    nodes.

    Args:
        roots: its nodes.
    """

    @property
    def outputs(self) -> tuple[Function, ...]:
        """Its values, a function each."""
        return tuple(self._of(root, view=View.VALUE) for root in self.roots)

    @property
    def output(self) -> Function:
        """Its only value."""
        return self._of(self.root, view=View.VALUE)

    @property
    def parameters(self) -> tuple[Function, ...]:
        """The parameters that it depends on, in the order of `arguments`; asking for them gives them values.

        Of a function of placeholders only where the shapes of these are known.
        """
        return self._with_values(leaf for leaf in self._leaves() if leaf.is_parameter)

    @property
    def constants(self) -> tuple[Function, ...]:
        """The constants that it depends on; see `parameters`."""
        return self._with_values(leaf for leaf in self._leaves() if leaf.is_constant)

    def _of_inputs(self) -> Function:
        """Return this function, of inputs in the place of placeholders whose shape is known."""
        known = [
            placeholder
            for placeholder in self.placeholders
            if placeholder.root.shape is not None and 0 not in placeholder.root.shape
        ]
        inputs = {
            placeholder: Function(data_input(placeholder.shape, None, False, "", Input(False))) for placeholder in known
        }
        for argument in inputs.values():
            cell_of(argument.root).dtype = None  # the function may be applied to inputs of any precision
        return self.clone("share", inputs)

    def _with_values(self, leaves: Iterable[Function]) -> tuple[Function, ...]:
        functions = tuple(leaves)
        if any(cell_of(leaf.root).value is None for leaf in functions):
            known = [
                placeholder.root.shape is not None and 0 not in placeholder.root.shape
                for placeholder in self.placeholders
            ]
            if all(known):
                _ = (self._of_inputs() if known else self).model
        return functions

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Return the same function of other inputs, in the order of `arguments`, or by their names; parameters are
        shared.

        Returns:
            A function; of data for all inputs (arrays, sparse matrices, lists of them) its value, see `eval`; of a
            function of several outputs a tuple of them.
        """
        by_input = self.argument_map(*arguments, **named)
        whole = by_input and len(by_input) == len(self.signature) and not self.placeholders
        if whole and all(map(is_data, by_input.values())):
            values = self.eval(by_input)
            return tuple(values.values()) if len(self.roots) > 1 else values
        return self.clone("share", by_input)

    def clone(self, method: CloneMethod = "clone", substitutions: Mapping[Function, object] | None = None) -> Function:
        """Return a copy.

        Args:
            method: "clone" copies parameters, "share" keeps them, "freeze" copies them and does not train them.
            substitutions: what is in the place of nodes of this function.
        """
        how = str(method).rpartition(".")[2].lower()
        if how not in ("clone", "share", "freeze"):
            raise UserError("BadChoice", f"a method of clone is clone, share or freeze, not {method}")
        copies = self._replaced(substitutions or {}, self._all())
        if how != "share" and not self.placeholders:
            _ = self.parameters  # random ones have their values from now on, so that both start alike
        copied = Function(copied_roots(self.roots, self._all(), how, copies))
        copied.name_of_all = self.name_of_all
        return checked(copied) if len(copied.roots) == 1 else copied

    def find_by_name(self, name: str, depth: int = 0) -> Function | None:
        """Return the function of that name among all that this one depends on; None if there is none."""
        del depth
        matches = self.find_all_with_name(name)
        if len(matches) > 1:
            raise UserError("UnknownNode", f"{len(matches)} functions are called '{name}'", hint="find_all_with_name")
        return matches[0] if matches else None

    def find_all_with_name(self, name: str, depth: int = 0) -> list[Function]:
        """Return all functions of that name among those that this one depends on."""
        del depth
        check_name(name)
        order = self._all()
        exact = [node for node in order if name == (name_in_program(node) or node.name)]
        if not exact:
            names = graph.names_of(order)
            exact = [node for node in order if names[node] == name or names[node].endswith(f".{name}")]
        if not exact and name == ATTENTION_WEIGHTS:
            exact = attention_weights(order)
        return [Function(node) for node in exact]

    def __getattr__(self, name: str) -> Any:
        """Return the function of that name, or the nearest parameter that is called so: `z.hidden`, `z.hidden.W`."""
        if name in betas.METHODS:
            betas.warn_beta(f"Function.{name}", betas.METHODS[name], 3)
            return getattr(self, betas.METHODS[name])
        if not name.startswith("_"):
            for node in self._all():
                path = node.origin.name if node.stored is None else node.stored.name
                if name in (node.name, name_in_program(node)) or path.endswith(
                    (f".{name}", ".B") if name == "b" else f".{name}"
                ):
                    if has_value(node) and cell_of(node).value is None and not self.placeholders:
                        _ = self.model  # infers its shape
                    return Function(node)
            if name == ATTENTION_WEIGHTS and (weights := attention_weights(self._all())):
                return Function(weights[0])
        raise AttributeError(f"a function has no attribute '{name}', and depends on none of that name")

    def save(self, filename: str | Path, format: object = None) -> None:
        """Write a model file of this function with its parameters; the file is replaced in one step.

        Args:
            path: the file.
            format: of a name with `ONNX`: an ONNX model, with sequences by time first, `(steps, batch, ...)`, and
                criteria as a value for each sample; it needs the package onnx. `"pytorch"` or `"jax"`: a
                folder with the function as a module of PyTorch, or as functions of JAX, `model.py`, and its weights.
                Anything else: a model file of this package.

        Raises:
            UserError: an operation has no equivalent in ONNX, PyTorch or JAX; the file cannot be written.
        """
        saving.save(self, filename, format)

    def restore(self, filename: str | Path) -> None:
        """Take the values of parameters from a model file of this function."""
        saving.restore(self, filename)

    @classmethod
    def load(cls, model: str | Path | bytes | bytearray, device: object = None, format: object = None) -> Function:
        """See `load_model`."""
        return load_model(model, device, format)

    def _node(self, value: object) -> NodeValue:
        return to_node(value)

    def __iter__(self) -> Iterator[Function]:
        """Return its values, a function each: `h, c = step(x)`."""
        return iter(self.outputs)

    def __rshift__(self, other: Any) -> Any:
        """`f >> g` is `g(f)`; see `composed`."""
        return composed(self, other)

    def __lshift__(self, other: Any) -> Any:
        """`g << f` is `g(f)`; see `composed`."""
        return composed(other, self)

    def __getitem__(self, key: Any) -> Any:
        """Elements of a sample, as numpy counts them; of a function of several outputs one of them, or some.

        An axis of which one element is taken stays. A list of numbers takes these elements, axis by axis.

        Raises:
            UserError: there are no such elements.
        """
        if len(self.roots) > 1:
            if not isinstance(key, slice) and not (is_whole(key) and -len(self.roots) <= key < len(self.roots)):
                message = f"{shorten(repr(key))} is not an output of this function, which has {len(self.roots)}"
                raise UserError("BadIndex", message)
            return self.outputs[key]
        keys = key if isinstance(key, tuple) else (key,)
        keys = keys[self._dynamic_keys(keys) :]
        for item in keys:
            check_index(item)
        try:
            shape = self.shape
        except OpenShape:
            return Function(recipe(lambda nodes: taken_by(Function(nodes[0]), keys).root, [self.root], "Slice"))
        if _is_open(self, shape):
            return Function(recipe(lambda nodes: taken_by(Function(nodes[0]), keys).root, [self.root], "Slice"))
        return taken_by(self, keys)

    def _dynamic_keys(self, keys: Sequence[object]) -> int:
        """Return how many of the keys of an index are those of dynamic axes.

        There are none, unless the option `align_axis` or a default `axis_offset` says that a program counts the batch.
        """
        offset = int(chosen("", "axis_offset", DEFAULT_OPTION, 0))
        if offset or PROCESS_OPTIONS.get("align_axis") != 1:
            return 0 if self.is_leaf else offset
        count = len(self.dynamic_axes)
        return count if all(item == slice(None) for item in keys[:count]) else 0

    def __str__(self) -> str:
        """Return its inputs and outputs with their types, see `signature_text`; of a leaf or an output see
        `variable_text`.
        """
        return variable_text(self) if self._is_variable else signature_text(self)

    @property
    def _is_variable(self) -> bool:
        return len(self.roots) == 1 and (self.is_leaf or self.is_placeholder or self.view is View.VALUE)

    def __repr__(self) -> str:
        """Return a variable as `str` has it, as lists of variables are printed in CNTK 2; the names of a function."""
        if self._is_variable:
            return variable_text(self)
        if len(self.roots) != 1:
            return f"Function({', '.join(repr(output) for output in self.outputs)})"
        return f"{self.op_name}('{self.name}')" if self.name else self.op_name


def known_shape(x: Function) -> tuple[int, ...]:
    """Return the shape of a function.

    Raises:
        OpenShape: it is not known, or one of its axes has a size that only data say.
    """
    shape = x.shape
    if _is_open(x, shape):
        raise OpenShape(is_free=True)
    return shape


def _is_open(x: Function, shape: tuple[int, ...]) -> bool:
    """Return whether an axis of a function of this shape has a size that only data say."""
    return FREE in shape or (UNKNOWN in shape and (x.is_input or x.is_output))


def operator(name: str, *arguments: object, label: str = "", **named: object) -> Function:
    """Return the function that one of BrainScript's library makes.

    Args:
        name: the library's function.
        arguments: functions, numbers, arrays.
        label: the name of what is made.
        named: what is passed by name.
    """
    begin = label or name.rpartition(".")[2]
    operands = [to_operand(argument) for argument in arguments]
    if name in _ELEMENTWISE:
        _take_last_axes(operands)
    made = named_function(calls.call(name, *operands, name=begin, **named), label)
    order = _WRITTEN_ORDER.get(name, range(len(operands)))
    written = [operands[index] for index in order if index < len(operands)]
    mark_written(made.root, (operand for operand in written if isinstance(operand, NodeValue)))
    for operand in operands:
        if isinstance(operand, NodeValue):
            note_user(operand, made.root)
    return made


_ELEMENTWISE = ("ElementDivide", "ElementTimes", "Minus", "Plus")
"""Operators element by element whose operands may be parameters with sizes to be inferred."""


def _take_last_axes(operands: Sequence[object]) -> None:
    """Give a parameter of fewer axes than another operand the sizes of the last ones, as CNTK 2.7 does."""
    nodes = [operand for operand in operands if isinstance(operand, NodeValue)]
    for node in nodes:
        if not has_value(node) or node.shape is None or 0 not in node.shape or cell_of(node).value is not None:
            continue
        for neighbour in nodes:
            try:
                sizes = () if neighbour is node else tuple(reversed(known_shape(Function(neighbour))))
            except OpenShape:
                continue
            if len(sizes) > len(node.shape):
                pairs = zip(node.shape, sizes, strict=False)
                node.shape = tuple(size or partner_size for size, partner_size in pairs)


_WRITTEN_ORDER: dict[str, Sequence[int]] = {
    "BS.Sequences.BroadcastSequenceAs": (1, 0),
    "BS.Sequences.Gather": (1, 0),
    "BS.Sequences.Scatter": (1, 0),
    "ClassificationError": (1, 0),
    "Clip": (2, 0, 1),
    "CrossEntropyWithSoftmax": (1, 0),
    "LambdaRank": (1, 0, 2),
    "Logistic": (1, 0),
    "NDCG1Eval": (1, 0, 2),
    "OptimizedRNNStack": (1, 0),
    "SquareError": (1, 0),
    "Times": (1, 0),
    "TransposeTimes": (1, 0),
    "WeightedLogistic": (1, 0, 2),
}
"""The places of operands of the library in the order of CNTK's Python functions, where it is another one."""


def in_written_order(made: Function, *operands: Function) -> Function:
    """Return the value of an operator that is made of several others, with the order in which its operands were
    written.
    """
    mark_written(made.root, (per_sample(operand.root) for operand in operands if len(operand.roots) == 1))
    return made


def checked(made: Function) -> Function:
    """Return a new function; infer the shape of a small network, so that an error appears where it is made.

    Raises:
        UserError: shapes or precisions do not fit.
    """
    if not calls.is_inside_step() and _is_small(made.root):
        _ = made.model
    return made


_SMALL = 12
"""Nodes of a network that costs little to look at."""


def _is_small(root: NodeValue) -> bool:
    """Return whether a node depends on few others, and all of these are known."""
    waiting, seen = [root], {root}
    while waiting and len(seen) <= _SMALL:
        node = waiting.pop()
        if node.operation.later or is_recipe(node):
            return False
        operands = calls.inputs_of(node)
        if not (operands or _is_known_leaf(node)):
            return False
        new = [each for each in operands if each not in seen]
        seen.update(new)
        waiting.extend(new)
    return not waiting


def _is_known_leaf(node: NodeValue) -> bool:
    """Return whether it is an input, a constant or a parameter of a known shape, whose start needs no seed."""
    waits = node.start is not None and node.start.seed is not None and cell_of(node).value is None
    known = node.shape is not None and 0 not in node.shape and node.stored is None
    return known and not waits and node.operation.name != "Placeholder"


def taken_by(x: Function, keys: Sequence[object]) -> Function:
    """Return the elements of a function of known shape that an index for each axis takes."""
    shape = known_shape(x)
    for axis, numbers in indexed(keys, shape):
        x = taken(x, len(shape), axis, numbers)
    return x


def taken(x: Function, rank: int, axis: int, numbers: Sequence[int], label: str = "") -> Function:
    """Return some elements of one axis of a function of `rank` axes; all of them in their order are the function
    itself.
    """
    place, wanted = rank - axis, runs(numbers)
    if len(wanted) == 1 and not label and wanted[0] == (0, x.shape[axis]):
        return x
    if len(wanted) == 1:
        return operator("Slice", *wanted[0], x, label=label, axis=place)
    parts = [operator("Slice", first, last, x, axis=place).root for first, last in wanted]
    return operator("Splice", parts, label=label, axis=place)


def named_function(value: object, name: str) -> Function:
    """Return a function of a node that a call has made, with the name that was asked for."""
    if not isinstance(value, NodeValue):
        raise UserError("NoNode", "the library has made no node of it")
    if check_name(name):
        value.name = name
    return Function(value)


def to_operand(value: object) -> object:
    """Convert an argument to an operand of a library function: functions and arrays to nodes, others unchanged."""
    if isinstance(value, Function):
        return per_sample(value.root)
    if isinstance(value, Applies):
        return per_sample(value.of_placeholder().root)
    if isinstance(value, np.ndarray | np.generic):
        return adopting_constant(value) if np.ndim(value) else float(value)
    if isinstance(value, list | tuple):
        return [to_operand(item) for item in value]
    return value


def is_data(value: object) -> bool:
    """Return whether an argument is data of a minibatch, not a function, a layer or a number."""
    return not isinstance(value, Function | Applies | NodeValue | int | float | np.generic)


def as_node(value: object) -> Function:
    """Return a function as it is, a layer as that of a placeholder; of numbers a constant, of a single one of shape
    ().
    """
    if isinstance(value, Function):
        return value
    return value.of_placeholder() if isinstance(value, Applies) else Function(adopting_constant(value))


def to_node(value: object) -> NodeValue:
    """Return the node of a function, an array or a number."""
    operand = to_operand(value)
    return operand if isinstance(operand, NodeValue) else adopting_constant(operand)


def composed(value: Any, further: Any) -> Any:
    """Apply a function, or each of a tuple of functions, to a value.

    A value of several parts (a tuple, a function of several outputs) is given as so many arguments, and to a tuple of
    as many functions a part each.
    """
    several = value if isinstance(value, tuple) else value.outputs if type(value) is Function else ()
    if not isinstance(further, tuple):
        made = further(*several) if len(several) > 1 else further(value)
        if made is None:
            hint = "end it with return"
            raise CallError("NoFunction", f"{shorten(repr(further))} gives nothing, not a function", hint=hint)
        return made
    if len(several) == len(further) > 1:
        return tuple(function(part) for function, part in zip(further, several, strict=True))
    return tuple(function(value) for function in further)


def combine(*operands: object, name: str = "") -> Function:
    """Return one function of the outputs of several.

    A name is that of the only output, which keeps its own; several outputs keep theirs, and the function has it.
    """
    check_name(name)
    operand_list = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    functions = functions_of("the operands of combine", list(operand_list))
    if not functions:
        raise CallError("WrongArguments", "combine needs a function", hint="combine([loss, metric])")
    made = Function(root for function in functions for root in function.roots)
    if len(made.roots) > 1:
        made.name = name
    if not name or len(made.roots) > 1 or per_sample(made.root) is not made.root:
        return made
    return operator("Pass", made, label=name)


def as_function(network: Network) -> Function:
    """Return the function of a network that was read from a file or built from a configuration.

    Its outputs are the nodes of the groups output, criterion and evaluation; without any, those that nothing uses.
    """
    labels = set(network.groups["label"])
    order = sorted(network.nodes.values(), key=labels.__contains__)  # features are the first arguments
    values = {node: stored_value(node, calls.origin(node.name)) for node in order}
    for node, value in values.items():
        value.inputs = tuple(values[node.input(index)] for index in range(len(node.inputs)))
        if node.value is not None:
            cell_of(value).value = node.value
        cell_of(value).samples = node.samples
        if not node.inputs:
            cell_of(value).dtype = HALF if network.precision == "half" else np.dtype(network.dtype)
        if node.dynamic_axes is not None:
            axis = node.options.get("dynamicAxis", "") if node.dynamic_axes == 2 else ""
            INPUTS[value] = Input(node.dynamic_axes == 2, axis, node.dynamic_axes == 0)
    _take_written(values)
    by_name = {node.name: value for node, value in values.items()}
    for value in values.values():
        take_free(value, by_name)
    for value in values.values():
        revive(value, [Function(source) for source in calls.inputs_of(value)])
    groups = [node for name in ("output", "criterion", "evaluation") for node in network.groups[name]]
    used = {source for node in network.nodes.values() for source in node.connected}
    roots = groups or [node for node in network.nodes.values() if node not in used]
    return Function(dict.fromkeys(values[node] for node in roots))


def _take_written(values: Mapping[Node, NodeValue]) -> None:
    """Let functions of a model file have the names, the operands and the blocks that the program wrote."""
    by_name = {node.name: value for node, value in values.items()}
    blocks: dict[int, Block] = {}
    for node, value in values.items():
        written = node.written
        if written is None:
            continue
        mark_name(value, written.name)
        if all(name in by_name for name in written.operands):
            mark_written(value, (by_name[name] for name in written.operands))
        if written.block is not None and all(name in by_name for name in written.block_operands):
            operands = tuple(by_name[name] for name in written.block_operands)
            mark_block(value, blocks.setdefault(written.block, Block(written.operation, operands, operands)))
        if (shown := written.shown) is not None and all(name in by_name for name in shown["operands"]):
            operands = tuple(by_name[name] for name in shown["operands"])
            mark_shown(value, Shown(shown["operation"], shown["attributes"], operands))


def load_model(model: str | Path | bytes | bytearray, device: object = None, format: object = None) -> Function:
    """Return the function that a model file holds: one written by `Function.save` or by a run, a model of CNTK, or of
    ONNX.

    Args:
        model: the file, or its bytes.
        device: accepted; changes nothing.
        format: accepted, the file says what it is.
    """
    del device, format
    if isinstance(model, bytes | bytearray):
        with TemporaryDirectory() as folder:
            path = Path(folder, "model")
            with output_file(path) as file:
                file.write(model)
            return load_model(path)
    check_path("the name of a model file", model)
    return as_function(load_network(model))
