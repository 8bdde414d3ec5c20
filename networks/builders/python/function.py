"""`Function`: one or several nodes of a network under construction, with Python's operators.

Shapes are numpy's: the last axis is the fastest in memory. (A node's shape is the other way round.)
"""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cntk_config.base.diagnostics import UserError, shorten, suggestion
from networks.builders.brainscript.loading import stored_value
from networks.builders.brainscript.node_values import NodeValue, Start
from networks.builders.brainscript.operations import OPERATIONS, Operation
from networks.builders.python import calls, graph
from networks.builders.python.axes import DEFAULT_AXIS, axis_name, is_batch
from networks.builders.python.cells import Counter, cell_of
from networks.builders.python.checks import (
    as_array,
    check_flag,
    check_name,
    check_number,
    check_path,
    check_whole,
    is_whole,
)
from networks.builders.python.defaults import DOUBLE, SINGLE, chosen_dtype
from networks.builders.python.graph import Model
from networks.builders.python.nodes import CASTS, INPUTS, DataAxes, Input, ordered
from networks.builders.python.parts import check_index, indexed, runs
from networks.builders.python.per_sample import keep_criterion, per_sample
from networks.builders.python.recipes import (
    Build,
    OpenShape,
    is_open,
    is_recipe,
    recipe,
    resolve,
    settled,
    shape_of,
)
from networks.files.model_file import load_model as load_network
from networks.files.model_file import save_model
from networks.graph.axes import DEFAULT
from networks.graph.network import Network, ValidatedNetwork
from networks.graph.node import Node

CloneMethod = str
"""How `Function.clone` treats parameters: "clone" copies them, "share" keeps them, "freeze" copies them untrained."""

Shape = int | Sequence[int]

UNKNOWN = -1
"""Stands in the shape of a parameter for what follows from its use."""

BATCH = ("defaultBatchAxis",)
"""The axes of data without time."""


class Evaluates(Protocol):
    """Computes functions on data; `trainers.session` sets it."""

    def __call__(self, function: Function, arguments: Any, outputs: Sequence[Function], as_numpy: bool = True) -> Any:
        """The values of the outputs."""
        ...


class Sessions(Protocol):
    """Trains functions; `trainers.session` sets it."""

    def forward(
        self, arguments: Any, outputs: Sequence[Function], kept: Sequence[Function], as_numpy: bool
    ) -> tuple[Any, dict[Function, Any]]:
        """See `Function.forward`."""
        ...

    def backward(
        self, state: Any, roots: Mapping[Function, Any], variables: Iterable[Function], as_numpy: bool
    ) -> dict[Function, Any]:
        """See `Function.backward`."""
        ...

    def grad(self, function: Function, at: Any, wrt: Any, outputs: Any, root: Function | None, as_numpy: bool) -> Any:
        """See `Function.grad`."""
        ...

    def train(self, function: Function, minibatch_source: Any, **options: Any) -> Any:
        """See `Function.train`."""
        ...

    def test(self, function: Function, minibatch_source: Any, **options: Any) -> Any:
        """See `Function.test`."""
        ...


@runtime_checkable
class Applies(Protocol):
    """Makes functions of functions: a layer."""

    def of_placeholder(self) -> Function:
        """The function of inputs that are not known yet, the same one every time."""
        ...


class Function:
    """A function of inputs and parameters: its value is that of one node, or of several.

    Functions are made by `input_variable`, by operators and layers. Two objects are equal that stand for the same
    nodes.

    Args:
        roots: its nodes.
    """

    evaluator: ClassVar[Evaluates | None] = None
    sessions: ClassVar[Sessions | None] = None

    __array_priority__ = 100.0  # numpy leaves operators to this class

    def __init__(self, roots: NodeValue | Iterable[NodeValue]) -> None:
        self.roots: tuple[NodeValue, ...] = (roots,) if isinstance(roots, NodeValue) else tuple(roots)
        self._model: Model | None = None
        self._hash = hash(self.roots)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.roots == other.roots

    def __hash__(self) -> int:
        return self._hash

    # ------------------------------------------------------------------------------------------------- what it is

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
            self._model = graph.make(self.roots, {"output": self.roots})
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
            return ""
        root = self.roots[0]
        found = root.origin.name.rpartition(".")[2] if _is_of_layer(root) else ""
        return root.name or ("b" if found == "B" else found)  # the bias of LSTM

    @property
    def uid(self) -> str:
        """A name that no other function of this process has."""
        return self.roots[0].origin.name.replace(calls.MARK, "_")

    @property
    def op_name(self) -> str:
        """The operation, as the language calls it."""
        return self._resolved.operation.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample; the axes of sequence and minibatch do not count. -1: a parameter's, not known yet."""
        root = self.root
        value = cell_of(root).value
        if value is not None:
            return tuple(value.shape)
        if self.is_parameter and root.shape and 0 in root.shape:
            return tuple(one or UNKNOWN for one in reversed(root.shape))
        if root.shape is not None and 0 not in root.shape and (self.is_leaf or self.is_placeholder):
            return tuple(reversed(root.shape))
        if not settled(root):
            return tuple(reversed(shape_of(root)))
        if self._is_criterion:
            return Function(per_sample(root)).shape
        return tuple(reversed(self.node.shape or ()))

    def _of_inputs(self) -> Function:
        """This function, of inputs in the place of placeholders whose shape is known."""
        known = [one for one in self.placeholders if one.root.shape is not None and 0 not in one.root.shape]
        given = {one: input_variable(one.shape) for one in known}
        for one in given.values():
            cell_of(one.root).dtype = None  # the function may be applied to inputs of any precision
        return self.clone("share", given)

    @property
    def _is_criterion(self) -> bool:
        return per_sample(self.root) is not self.root

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        return graph.precision(self.roots)

    @property
    def is_leaf(self) -> bool:
        """Whether it is an input, a parameter or a constant."""
        return self.is_input or self.is_parameter or self.is_constant

    @property
    def is_input(self) -> bool:
        """Whether it stands for data."""
        return len(self.roots) == 1 and (self.root in INPUTS or _is_loaded_input(self.root))

    @property
    def is_parameter(self) -> bool:
        """Whether training changes it."""
        return len(self.roots) == 1 and _is_parameter(self.root)

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for an input that is not known yet."""
        return len(self.roots) == 1 and self.op_name == "Placeholder"

    @property
    def dynamic_axes(self) -> tuple[str, ...]:
        """The axes of its data: the minibatch, and time for sequences; none of what is the same for all samples."""
        given = [INPUTS.get(one.root, Input(False)) for one in self.arguments]
        inputs = [one for one in given if not one.static]
        if not inputs:
            return ()
        sequences = [one.axis for one in inputs if one.sequence]
        if self.is_input or is_open(self.root):
            return (*BATCH, sequences[0] or DEFAULT_AXIS) if sequences else BATCH
        if self._is_criterion:
            return Function(per_sample(self.root)).dynamic_axes
        if not self.node.has_layout:
            return ()
        axis = self.node.axis
        if not sequences or axis == graph.ONE_STEP:
            return BATCH
        return (*BATCH, DEFAULT_AXIS if axis in (None, DEFAULT) else axis)

    @property
    def data_axes(self) -> DataAxes | None:
        """The axes that its data have; None of what is no input."""
        if not self.is_input:
            return None
        shape = tuple(reversed(self.root.shape or ()))
        own = INPUTS.get(self.root)
        if own is None:
            return DataAxes(shape, None, self.is_sparse)
        dynamic = 0 if own.static else 2 if own.sequence else 1
        return DataAxes(shape, dynamic, self.is_sparse)

    @property
    def is_constant(self) -> bool:
        """Whether it has a value that training does not change."""
        return len(self.roots) == 1 and _has_value(self.root) and not self.is_parameter

    @property
    def is_sparse(self) -> bool:
        """Whether it is an input of sparse data."""
        return self.is_input and "Sparse" in self.op_name

    @property
    def is_sequence(self) -> bool:
        """Whether it is an input whose samples come in sequences."""
        return self.root in INPUTS and INPUTS[self.root].sequence

    @property
    def is_output(self) -> bool:
        """Whether it is computed from others."""
        return not (self.is_leaf or self.is_placeholder)

    @property
    def outputs(self) -> tuple[Function, ...]:
        """Its values, a function each."""
        return tuple(Function(one) for one in self.roots)

    @property
    def output(self) -> Function:
        """Its only value."""
        return Function(self.root)

    @property
    def root_function(self) -> Function:
        """The function itself."""
        return self

    owner = root_function

    @property
    def inputs(self) -> tuple[Function, ...]:
        """What its only node is computed from."""
        return tuple(Function(one) for one in calls.inputs_of(self._resolved))

    @property
    def _resolved(self) -> NodeValue:
        """Its only node; a recipe becomes a node first, if the shapes of its operands are known."""
        if is_recipe(self.root):
            self._all()
        return self.root

    @property
    def arguments(self) -> tuple[Function, ...]:
        """The inputs of data that it depends on, in the order in which they were made."""
        return tuple(sorted((one for one in self._leaves() if one.is_input), key=_age))

    @property
    def parameters(self) -> tuple[Function, ...]:
        """What training changes of all that it depends on; they have values from now on.

        Of a function of placeholders only where the shapes of these are known.
        """
        return self._with_values(one for one in self._leaves() if one.is_parameter)

    @property
    def constants(self) -> tuple[Function, ...]:
        """What it depends on and training does not change; see `parameters`."""
        return self._with_values(one for one in self._leaves() if one.is_constant)

    def _with_values(self, leaves: Iterable[Function]) -> tuple[Function, ...]:
        found = tuple(leaves)
        if any(cell_of(one.root).value is None for one in found):
            known = [one.root.shape is not None and 0 not in one.root.shape for one in self.placeholders]
            if all(known):
                _ = (self._of_inputs() if known else self).model
        return found

    def _all(self) -> list[NodeValue]:
        return resolve(self.roots)

    def _leaves(self) -> list[Function]:
        return [Function(one) for one in self._all() if not calls.inputs_of(one)]

    # ------------------------------------------------------------------------------------------------- values

    @property
    def value(self) -> NDArray[Any]:
        """The value of a parameter or constant; that of now, while training goes on."""
        cell = cell_of(self.root)
        found = cell.current()
        if found is None:
            if not _has_value(self.root):
                raise UserError("NoValue", f"{self!r} has no value of its own; use eval")
            found = self.model.nodes[self.root].value
        if found is None:
            raise UserError("NoValue", "the shape of this parameter is not known yet; use it in a function first")
        return np.array(found, cell.dtype or cell.alone or (SINGLE if self.is_constant else found.dtype))

    @value.setter
    def value(self, given: ArrayLike) -> None:
        if not _has_value(self.root):
            raise UserError(
                "NoValue", f"{self!r} has no value of its own that could be set", hint="set that of a parameter"
            )
        cell = cell_of(self.root)
        array = as_array("a value", given, cell.dtype or (SINGLE if cell.value is None else cell.value.dtype))
        before = cell.current()
        if before is not None:
            if array.ndim and _filled(array.shape) != _filled(before.shape):
                raise UserError("BadShape", f"a value of shape {array.shape} for a parameter of shape {before.shape}")
            array = array.reshape(before.shape) if array.ndim else np.broadcast_to(array, before.shape)
        else:
            check_axes("a value", array.shape, self.root)
        cell.set_value(array)

    def asarray(self) -> NDArray[Any]:
        """`value`."""
        return self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """`value` for `numpy.asarray(p)`; else NumPy would make an array of one object."""
        del copy  # the value is a copy
        if not (len(self.roots) == 1 and _has_value(self.root)):
            raise UserError("NoValue", f"{self!r} has no value of its own, so it is no array", hint="eval gives values")
        return self.value if dtype is None else self.value.astype(dtype)

    def eval(self, arguments: Any = None, outputs: Sequence[Function] | None = None, **more: Any) -> Any:
        """Its values for some data.

        Args:
            arguments: the data of every input, by input; of a single input also the data alone. Data are arrays
                (n, *sample), or for sequences a list of arrays (length, *sample), sparse matrices, or values of a
                minibatch source.
            outputs: what to compute; by default this function.
            more: `device` is accepted and changes nothing; with `as_numpy=False` values come as `Value`s.

        Returns:
            An array (n, *sample), a list of arrays (length, *sample) for sequences; by output a dictionary of them
            where there are several.
        """
        _refuse(more, "device", "as_numpy")
        wanted = self.outputs if outputs is None else _functions("outputs", outputs)
        if Function.evaluator is None:
            raise UserError("MissingPackage", "functions are computed by cntkpy.training", hint="import it first")
        return Function.evaluator(self, arguments, wanted, bool(more.get("as_numpy", True)))

    def forward(
        self,
        arguments: Any,
        outputs: Sequence[Function] | None = None,
        keep_for_backward: Any = None,
        device: Any = None,
        as_numpy: bool = True,
    ) -> tuple[Any, dict[Function, Any]]:
        """The values by output; with `keep_for_backward` in training mode, and in front of them what `backward` needs.

        In training mode dropout is active, with another mask each time, and batch normalisation takes the statistics of
        the minibatch and updates the running ones.

        Args:
            arguments: the data, see `eval`.
            outputs: what to compute; by default this function.
            keep_for_backward: the outputs that `backward` starts from; None: it is not called.
            device: accepted; changes nothing.
            as_numpy: see `eval`.

        Returns:
            The state for `backward`, None without `keep_for_backward`; and a dictionary of the values by output.
        """
        del device
        wanted = self.outputs if outputs is None else _functions("outputs", outputs)
        kept = () if keep_for_backward is None else _functions("keep_for_backward", keep_for_backward)
        return self._sessions().forward(arguments, wanted, kept, as_numpy)

    def backward(self, state: Any, root_gradients: Any, variables: Iterable[Function], as_numpy: bool = True) -> Any:
        """Gradients of the sum of outputs, each multiplied by what is given for it.

        They belong to the values that `forward` gave: the same parameters, data, masks and random numbers.

        Args:
            state: what `forward` with `keep_for_backward` gave first.
            root_gradients: by output, an array like its value; of a single output also the array alone.
            variables: parameters or inputs.
            as_numpy: False: gradients come as `Value`s.

        Returns:
            A dictionary: for each variable an array, see `grad`.
        """
        several = isinstance(root_gradients, Mapping)
        given: dict[Function, Any] = (
            {one.output: each for one, each in root_gradients.items()} if several else {self.output: root_gradients}
        )
        if not given:
            raise UserError("WrongArguments", "backward needs the gradient of an output", hint="{f.output: gradient}")
        return self._sessions().backward(state, given, variables, as_numpy)

    # ------------------------------------------------------------------------------------------------- graphs

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The same function of other inputs, in the order of `arguments`, or by their names; parameters are shared.

        Returns:
            A function; of data for all inputs (arrays, sparse matrices, lists of them) its values, see `eval`.
        """
        own = self.placeholders + self.arguments
        if len(arguments) > len(own):
            raise UserError("WrongArguments", f"{len(arguments)} arguments for a function of {len(own)} inputs")
        given: dict[Function, Any] = dict(zip(own, arguments, strict=False))
        for name, value in named.items():
            found = next((one for one in own if one.name == name), None)
            if found is None:
                hint = suggestion(name, [one.name for one in own])
                raise UserError("UnknownArgument", f"the function has no input '{name}'", hint=hint)
            given[found] = value
        if given and len(given) == len(own) and not self.placeholders and all(map(is_data, given.values())):
            return self.eval(given)
        return self.clone("share", given)

    @property
    def placeholders(self) -> tuple[Function, ...]:
        """What stands for inputs that are not known yet, in the order in which it was made."""
        return tuple(sorted((one for one in self._leaves() if one.op_name == "Placeholder"), key=_age))

    def replace_placeholders(self, substitutions: Mapping[Function, Any]) -> Function:
        """Put inputs in the place of the placeholders of this function; an input may be the function itself.

        Returns:
            The function.
        """
        own = self._all()
        new = _replaced(substitutions, own)
        for one in own:
            if calls.inputs_of(one):
                one.inputs = tuple(new.get(source, source) for source in calls.inputs_of(one))
            keep_criterion(one, one, new)
        self.roots = tuple(new.get(one, one) for one in self.roots)
        self._model, self._hash = None, hash(self.roots)
        return self

    def replace_placeholder(self, substitution: Any) -> Function:
        """This function with an input in the place of its only placeholder."""
        return self.replace_placeholders({self.placeholders[0]: substitution})

    def clone(self, method: CloneMethod = "clone", substitutions: Mapping[Function, Any] | None = None) -> Function:
        """A copy.

        Args:
            method: "clone" copies parameters, "share" keeps them, "freeze" copies them and does not train them.
            substitutions: what stands in the place of nodes of this function.
        """
        how = str(method).rpartition(".")[2].lower()
        if how not in ("clone", "share", "freeze"):
            raise UserError("BadChoice", f"a method of clone is clone, share or freeze, not {method}")
        copies = _replaced(substitutions or {}, self._all())
        if how != "share" and not self.placeholders:
            _ = self.parameters  # random ones have their values from now on, so that both start alike
        order = self._all()
        if how != "share":
            graph.give_seeds(self.roots, order)  # where shapes are not known, the same seeds
        changed = _above(order, set(copies))
        for one in order:
            if one not in copies and (_has_value(one) if how != "share" else False):
                copies[one] = _copied_parameter(one, how == "freeze")
        made: list[NodeValue] = []
        for one in order:
            if one in copies or _has_value(one) or not (one in changed or how != "share"):
                continue
            if (one in INPUTS or _is_loaded_input(one)) and how != "share":
                continue  # the copy has the same inputs
            copies[one] = _copied(one, how == "share")
            made.append(one)
            if is_recipe(one) and how != "share":
                copies[one].options["build"] = _of_copies(one.options["build"], copies, how == "freeze")
        for one in made:
            copies[one].inputs = tuple(copies.get(source, source) for source in calls.inputs_of(one))
            keep_criterion(copies[one], one, copies)
        return Function(copies.get(one, one) for one in self.roots)

    def find_by_name(self, name: str, depth: int = 0) -> Function | None:
        """The function of that name among all that this one depends on; None if there is none."""
        del depth
        found = self.find_all_with_name(name)
        if len(found) > 1:
            raise UserError("UnknownNode", f"{len(found)} functions are called '{name}'", hint="find_all_with_name")
        return found[0] if found else None

    def find_all_with_name(self, name: str, depth: int = 0) -> list[Function]:
        """All functions of that name among those that this one depends on."""
        del depth
        check_name(name)
        order = self._all()
        exact = [one for one in order if one.name == name]
        if not exact:
            names = graph.names_of(order)
            exact = [one for one in order if names[one] == name or names[one].endswith(f".{name}")]
        return [Function(one) for one in exact]

    def __getattr__(self, name: str) -> Any:
        """The function of that name, or the nearest parameter that is called so: `z.hidden`, `z.hidden.W`."""
        if not name.startswith("_"):
            for one in self._all():
                path = one.origin.name if one.stored is None else one.stored.name
                if one.name == name or path.endswith((f".{name}", ".B") if name == "b" else f".{name}"):
                    if _has_value(one) and cell_of(one).value is None and not self.placeholders:
                        _ = self.model  # infers its shape
                    return Function(one)
        raise AttributeError(f"a function has no attribute '{name}', and depends on none of that name")

    def save(self, path: str | Path, format: Any = None) -> None:
        """Write a model file of this function with its parameters; the file is replaced in one step.

        Args:
            path: the file.
            format: accepted, there is one format; ONNX is an error.
        """
        check_path("the name of a model file", path)
        if "ONNX" in str(format):
            raise UserError("NotSupported", f"{path}: models are not written as ONNX", hint="save(path); p.value")
        save_model(path, self.network)

    def restore(self, path: str | Path) -> None:
        """Take the values of parameters from a model file of this function."""
        known = load_network(path).nodes
        found: dict[Function, NDArray[Any]] = {}
        for value, node in self.model.nodes.items():
            if not node.is_parameter:
                continue
            array = known[node.name].value if node.name in known else None
            if array is None:
                raise UserError("NoNode", f"the model {path} has no parameter '{node.name}'")
            if node.value is not None and _filled(array.shape) != _filled(node.value.shape):
                shapes = f"has the shape {array.shape}, that of this function {node.value.shape}"
                raise UserError("BadShape", f"'{node.name}' of the model {path} {shapes}")
            found[Function(value)] = np.asarray(array)
        for one, array in found.items():
            one.value = array

    @classmethod
    def load(cls, model: str | Path, device: Any = None, format: Any = None) -> Function:
        """See `load_model`."""
        return load_model(model, device, format)

    # ------------------------------------------------------------------------------------------------- training

    def grad(self, at: Any = None, wrt: Any = None, outputs: Any = None, **more: Any) -> Any:
        """The gradient of the sum of this function over some data, in training mode; see `forward`.

        Args:
            at: the data by input, see `eval`.
            wrt: a parameter or an input, or several; by default the inputs. (Inputs are dense then.)
            outputs: functions whose values for the data are wanted, too, of the same computation.
            more: `grad_root`, the function to differentiate, if it is another one; `device` is accepted and changes
                nothing; with `as_numpy=False` gradients and values come as `Value`s.

        Returns:
            An array in the shape of the parameter, or of the data of the input; of several by function; with
            `outputs` a pair of that and the values by output.
        """
        _refuse(more, "device", "as_numpy", "grad_root")
        root = more.get("grad_root")
        if root is not None:
            (root,) = _functions("grad_root", root)
        return self._sessions().grad(self, at, wrt, outputs, root, bool(more.get("as_numpy", True)))

    def train(self, minibatch_source: Any, **options: Any) -> Any:
        """Train by this function, a loss or `combine([loss, metric])`; see `trainers.session.functions.train`."""
        return self._sessions().train(self, minibatch_source, **options)

    def test(self, minibatch_source: Any, **options: Any) -> Any:
        """The value of this function, a metric, on data; see `trainers.session.functions.test`."""
        return self._sessions().test(self, minibatch_source, **options)

    def _sessions(self) -> Sessions:
        if Function.sessions is None:
            raise UserError("MissingPackage", "functions are trained by cntkpy.training", hint="import it first")
        return Function.sessions

    # ------------------------------------------------------------------------------------------------- operators

    def __add__(self, other: Any) -> Function:
        return operator("Plus", self, as_node(other))

    def __radd__(self, other: Any) -> Function:
        return operator("Plus", as_node(other), self)

    def __sub__(self, other: Any) -> Function:
        return operator("Minus", self, as_node(other))

    def __rsub__(self, other: Any) -> Function:
        return operator("Minus", as_node(other), self)

    def __mul__(self, other: Any) -> Function:
        return operator("ElementTimes", self, as_node(other))

    def __rmul__(self, other: Any) -> Function:
        return operator("ElementTimes", as_node(other), self)

    def __truediv__(self, other: Any) -> Function:
        return operator("ElementDivide", self, as_node(other))

    def __rtruediv__(self, other: Any) -> Function:
        return operator("ElementDivide", as_node(other), self)

    def __matmul__(self, other: Any) -> Function:
        return operator("Times", as_node(other), self)  # the language multiplies from the left

    def __rmatmul__(self, other: Any) -> Function:
        return operator("Times", self, as_node(other))

    def __pow__(self, other: Any) -> Function:
        return power(self, other)

    def __neg__(self) -> Function:
        return operator("Negate", self)

    def __abs__(self) -> Function:
        return operator("Abs", self)

    def __iter__(self) -> Iterator[Function]:
        """Its values, a function each: `h, c = step(x)`."""
        return iter(self.outputs)

    def __rshift__(self, other: Any) -> Any:
        """`f >> g` is `g(f)`; see `composed`."""
        return composed(self, other)

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
        for one in keys:
            check_index(one)
        try:
            shape = self.shape
        except OpenShape:
            return Function(recipe(lambda nodes: Function(nodes[0])[key].root, [self.root], "Slice"))
        result = self
        for axis, numbers in indexed(keys, shape):
            result = taken(result, len(shape), axis, numbers)
        return result

    def __repr__(self) -> str:
        if len(self.roots) != 1:
            return f"Function({', '.join(repr(one) for one in self.outputs)})"
        what = "Input" if self.is_input else "Parameter" if self.is_parameter else self.op_name
        return f"{what}('{self.name}')" if self.name else what


def operator(name: str, *arguments: Any, label: str = "", **named: Any) -> Function:
    """The function that one of BrainScript's library makes.

    Args:
        name: the library's function.
        arguments: functions, numbers, arrays.
        label: the name of what is made.
        named: what is passed by name.
    """
    begin = label or name.rpartition(".")[2]
    found = calls.call(name, *(to_operand(one) for one in arguments), name=begin, **named)
    return named_function(found, label)


def taken(x: Function, rank: int, axis: int, numbers: Sequence[int], label: str = "") -> Function:
    """Some elements of one axis of a function of `rank` axes; all of them in their order are the function itself."""
    place, wanted = rank - axis, runs(numbers)
    if len(wanted) == 1 and not label and wanted[0] == (0, x.shape[axis]):
        return x
    if len(wanted) == 1:
        return operator("Slice", *wanted[0], x, label=label, axis=place)
    parts = [operator("Slice", first, last, x, axis=place).root for first, last in wanted]
    return operator("Splice", parts, label=label, axis=place)


LARGEST_POWER = 16
"""Whole exponents up to this one are products."""


def power(base: Any, exponent: Any) -> Function:
    """The power, element by element; a base below 0 needs whole numbers as exponents, else the result is no number."""
    x = as_node(base)
    if isinstance(exponent, int | float) and exponent in range(1, LARGEST_POWER + 1):
        result = x
        for _ in range(int(exponent) - 1):
            result = operator("ElementTimes", result, x)
        return result
    return operator("_Power", x, as_node(exponent))


def named_function(found: Any, name: str) -> Function:
    """A function of a node that a call has made, with the name that was asked for."""
    if not isinstance(found, NodeValue):
        raise UserError("NoNode", "the library has made no node of it")
    if check_name(name):
        found.name = name
    return Function(found)


def to_operand(given: Any) -> Any:
    """What a library function takes: a node for functions and arrays, anything else as it is."""
    if isinstance(given, Function):
        return per_sample(given.root)
    if isinstance(given, Applies):
        return per_sample(given.of_placeholder().root)
    if isinstance(given, np.ndarray | np.generic):
        return _adopting(given).root if np.ndim(given) else float(given)
    if isinstance(given, list | tuple):
        return [to_operand(one) for one in given]
    return given


def is_data(given: Any) -> bool:
    """Whether an argument is data of a minibatch, not what networks are made of: a function, a layer, a number."""
    return not isinstance(given, Function | Applies | NodeValue | int | float | np.generic)


def as_node(given: Any) -> Function:
    """A function as it is, a layer as that of a placeholder; of numbers a constant, of a single one of shape ()."""
    if isinstance(given, Function):
        return given
    return given.of_placeholder() if isinstance(given, Applies) else _adopting(given)


def _adopting(given: Any) -> Function:
    """A constant that adopts the precision of the leaves that it meets; an array alone has its own."""
    node = _leaf(None, as_array("an operand", given, np.float64), DOUBLE, "Constant")
    if isinstance(given, np.ndarray) and given.dtype == np.float64:
        cell_of(node).alone = given.dtype
    cell_of(node).dtype = None
    return Function(node)


def to_node(given: Any) -> NodeValue:
    """The node of a function, an array or a number."""
    found = to_operand(given)
    return found if isinstance(found, NodeValue) else _adopting(found).root


# --------------------------------------------------------------------------------------------- inputs, parameters


def input_variable(
    shape: Shape = (),
    dtype: Any = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    dynamic_axes: Any = None,
    name: str = "",
) -> Function:
    """Data with one sample for each sequence (of every minibatch, where there are no sequences).

    Args:
        shape: of a sample.
        dtype: numpy.float32 or numpy.float64; by default that of `default_options`, else numpy.float32. A network has
            the precision of its leaves.
        needs_gradient: accepted; gradients of inputs are not computed.
        is_sparse: keep only the elements that are not zero.
        dynamic_axes: the axes that samples lie along; more than one of them: they come in sequences, along the time
            axis among them. An empty list: there is one value for the whole minibatch.
        name: names it.
    """
    del needs_gradient
    axes: Sequence[Any] = dynamic_axes if isinstance(dynamic_axes, list | tuple) else [dynamic_axes]
    named = [axis_name(one) for one in axes if one not in BATCH and not is_batch(one)]
    found = _input(shape, dtype, is_sparse, len(axes) > 1, name, named[-1] if len(axes) > 1 and named else "")
    INPUTS[found.root].static = not axes
    return found


def sequence_input(
    shape: Shape = (),
    dtype: Any = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    sequence_axis: Any = None,
    name: str = "",
) -> Function:
    """Data whose samples come in sequences; see `input_variable`.

    Args:
        shape: of a sample.
        dtype: see `input_variable`.
        needs_gradient: accepted; gradients of inputs are not computed.
        is_sparse: keep only the elements that are not zero.
        sequence_axis: the time axis; inputs of the same axis have sequences of the same lengths.
        name: names it.
    """
    del needs_gradient
    return _input(shape, dtype, is_sparse, True, name, axis_name(sequence_axis))


def _input(shape: Shape, dtype: Any, sparse: bool, sequence: bool, name: str, axis: str = "") -> Function:
    check_name(name)
    size = dims(shape)
    operation = OPERATIONS["SparseInputValue" if check_flag("is_sparse", sparse) else "InputValue"]
    node = NodeValue(operation, calls.origin(name or "Input"), {"dynamicAxis": ""}, shape=size, name=name)
    cell_of(node).dtype = chosen_dtype("input_variable", dtype) or SINGLE
    INPUTS[node] = Input(sequence, axis)
    return Function(node)


def parameter(
    shape: Shape | None = None, init: Any = None, dtype: Any = None, device: Any = None, name: str = ""
) -> Function:
    """What training changes.

    Args:
        shape: 0 for axes to be inferred; not needed where `init` is an array.
        init: an initializer, a number or an array; by default the initializer glorot_uniform.
        dtype: numpy.float32 or numpy.float64; by default that of `default_options`, else that of an array, else
            numpy.float32.
        device: accepted; changes nothing.
        name: names it.
    """
    del device
    check_name(name)
    own = chosen_dtype("parameter", dtype) or _dtype_of_array(init)
    node = _leaf(shape, GLOROT if init is None else init, own, name or "Parameter")
    node.name = name
    node.learning_rate_multiplier = 1.0
    return Function(node)


def constant(
    value: Any = 0.0, shape: Shape | None = None, dtype: Any = None, device: Any = None, name: str = ""
) -> Function:
    """A number or an array that training does not change; for `dtype` see `parameter`."""
    del device
    check_name(name)
    node = _leaf(shape, value, chosen_dtype("constant", dtype) or _dtype_of_array(value), name or "Constant")
    node.name = name
    return Function(node)


def layer_parameter(shape: Shape, init: Any, name: str) -> Function:
    """A parameter of a layer, which adopts the precision of what the layer is applied to; see `parameter`."""
    wanted = chosen_dtype(name, None)
    made = parameter(shape, init, wanted or np.float64, name=name)
    cell_of(made.root).dtype = wanted
    return made


def _dtype_of_array(given: Any) -> np.dtype[Any]:
    """Double precision for an array of it, else single."""
    return DOUBLE if isinstance(given, np.ndarray) and given.dtype == DOUBLE else SINGLE


def placeholder(shape: Shape | None = None, name: str = "", dynamic_axes: Any = None) -> Function:
    """Stands for an input that is given later, see `Function.replace_placeholders`."""
    del dynamic_axes
    size = (0,) if shape is None else dims(shape)
    node = NodeValue(Operation("Placeholder", shape="input"), calls.origin(name or "Placeholder"), shape=size)
    node.name = name
    return Function(node)


class Initializer:
    """How random parameters start.

    Args:
        kind: one of BrainScript's kinds.
        scale: factor of the values.
        seed: a seed of its own; None: the next one of the network.
    """

    def __init__(self, kind: str, scale: float = 1.0, seed: int | None = None) -> None:
        self.kind, self.scale = kind, check_number("the scale of an initializer", scale, 0.0)
        self.seed = None if seed is None else check_whole("a seed", seed, 0)


GLOROT = Initializer("glorotUniform")


def _leaf(shape: Shape | None, init: Any, dtype: Any, label: str) -> NodeValue:
    operation = OPERATIONS["LearnableParameter"]
    if isinstance(init, Initializer):
        if shape is None:
            raise UserError("MissingParameter", "a parameter with an initializer needs a shape")
        node = NodeValue(operation, calls.origin(label), shape=dims(shape))
        cell_of(node).dtype = dtype
        seed = calls.UNSEEDED if init.seed is None else init.seed
        node.start = Start(init.kind, scale=init.scale, seed=seed)
        return node
    array = as_array("a start value", init, dtype)
    if shape is not None and 0 in dims(shape):
        if array.ndim:
            message = f"an array of shape {array.shape} for a parameter of shape {shape}, which is not known yet"
            raise UserError("BadShape", message, hint="init=array without a shape, or a number")
        node = NodeValue(operation, calls.origin(label), shape=dims(shape))
        node.start = Start("fixedValue", value=float(array.reshape(())))
        cell_of(node).dtype = dtype
        return node
    if shape is not None:
        array = array if array.ndim else np.broadcast_to(array, tuple(reversed(dims(shape))))
        if array.shape != tuple(reversed(dims(shape))):
            raise UserError("BadShape", f"an array of shape {array.shape} for a parameter of shape {shape}")
    array = np.array(array)
    node = NodeValue(operation, calls.origin(label), shape=tuple(reversed(array.shape)))
    node.start = Start("fixedValue", value=0.0)
    cell_of(node).start_with(array)
    cell_of(node).dtype = dtype
    return node


def check_axes(what: str, given: tuple[int, ...], node: NodeValue) -> None:
    """Whether a value has the axes of a parameter that are known, while others may be to be inferred.

    Raises:
        UserError: it has others.
    """
    own = tuple(reversed(node.shape or ()))
    if len(own) != len(given) or any(one not in (0, size) for one, size in zip(own, given, strict=True)):
        shape = tuple(one or UNKNOWN for one in own)
        raise UserError("BadShape", f"{what} of shape {given} for a parameter of shape {shape}")


def composed(value: Any, further: Any) -> Any:
    """What a function makes of a value, or each of a tuple of functions.

    A value of several parts (a tuple, a function of several outputs) is given as so many arguments, and to a tuple of
    as many functions a part each.
    """
    several = value if isinstance(value, tuple) else value.outputs if type(value) is Function else ()
    if not isinstance(further, tuple):
        made = further(*several) if len(several) > 1 else further(value)
        if made is None:
            hint = "end it with return"
            raise UserError("NoFunction", f"{shorten(repr(further))} gives nothing, not a function", hint=hint)
        return made
    if len(several) == len(further) > 1:
        return tuple(one(part) for one, part in zip(further, several, strict=True))
    return tuple(one(value) for one in further)


def combine(*operands: Any, name: str = "") -> Function:
    """One function of the outputs of several; a name is accepted, of several outputs each has its own."""
    check_name(name)
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    functions = _functions("the operands of combine", list(given))
    if not functions:
        raise UserError("WrongArguments", "combine needs a function", hint="combine([loss, metric])")
    return Function(root for one in functions for root in one.roots)


def as_function(network: Network) -> Function:
    """The function of a network that was read from a file or built from a configuration.

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
            cell_of(value).dtype = np.dtype(network.dtype)
        if node.dynamic_axes is not None:
            axis = node.options.get("dynamicAxis", "") if node.dynamic_axes == 2 else ""
            INPUTS[value] = Input(node.dynamic_axes == 2, axis, node.dynamic_axes == 0)
    groups = [node for name in ("output", "criterion", "evaluation") for node in network.groups[name]]
    used = {source for node in network.nodes.values() for source in node.connected}
    roots = groups or [node for node in network.nodes.values() if node not in used]
    return Function(dict.fromkeys(values[node] for node in roots))


def load_model(model: str | Path, device: Any = None, format: Any = None) -> Function:
    """The function that a model file holds: one written by `Function.save` or by a run, or a model of CNTK.

    Args:
        model: the file.
        device: accepted; changes nothing.
        format: accepted, the file says what it is; ONNX is an error.
    """
    del device
    check_path("the name of a model file", model)
    if "ONNX" in str(format):
        raise UserError("NotSupported", f"{model}: models are not read from ONNX", hint="load_model of a model of CNTK")
    return as_function(load_network(model))


# --------------------------------------------------------------------------------------------- helpers


def dims(shape: Shape) -> tuple[int, ...]:
    """A node's shape of numpy's."""
    sizes: tuple[Any, ...] = tuple(shape) if isinstance(shape, list | tuple | np.ndarray) else (shape,)
    for one in sizes:
        if not is_whole(one) or one < 0:
            raise UserError("BadShape", f"{shape!r} is no shape: numbers from 1 on are expected (0: to be inferred)")
    return tuple(int(one) for one in reversed(sizes))


def _filled(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without its axes of one element."""
    return tuple(one for one in shape if one != 1)


def _functions(what: str, given: Any) -> tuple[Function, ...]:
    """Some functions; one alone is its values."""
    several: Any = given.outputs if isinstance(given, Function) else given
    found: list[Any] = list(several) if isinstance(several, Iterable) and not isinstance(several, str) else [several]
    for one in found:
        if not isinstance(one, Function):
            raise UserError(
                "NoFunction", f"{what}: {shorten(repr(one))} is no function", hint="give functions: [z, loss]"
            )
    return tuple(found)


def _replaced(substitutions: Any, own: Sequence[NodeValue]) -> dict[NodeValue, NodeValue]:
    """What stands in the place of which nodes.

    Raises:
        UserError: it is no mapping of functions, or one of them is no part of the function.
    """
    if not isinstance(substitutions, Mapping):
        message = f"substitutions are a dictionary {{function: other}}, not {shorten(repr(substitutions))}"
        raise UserError("WrongArguments", message)
    pairs: Mapping[Any, Any] = substitutions
    for key in pairs:
        if not isinstance(key, Function):
            raise UserError("NoFunction", f"{shorten(repr(key))} is no function that could be replaced")
        if key.root not in own:
            message = f"{key!r} is no part of the function, so nothing can stand in its place"
            raise UserError("NoNode", message, hint="find_by_name finds its parts, .arguments are its inputs")
    return {key.root: to_node(one) for key, one in pairs.items()}


def _has_value(node: NodeValue) -> bool:
    return node.start is not None if node.stored is None else node.stored.is_parameter


def _is_parameter(node: NodeValue) -> bool:
    if not _has_value(node) or cell_of(node).frozen:
        return False
    return node.learning_rate_multiplier > 0


def _is_of_layer(node: NodeValue) -> bool:
    """Whether it is a parameter that the library has made, whose path has names."""
    return node.start is not None and node.stored is None and "." in node.origin.name


def _is_loaded_input(node: NodeValue) -> bool:
    return node.stored is not None and node.stored.kind.layout == "always"


def _age(leaf: Function) -> int:
    """A number that is larger for what was made later."""
    return int(leaf.root.origin.name.partition(calls.MARK)[2].partition(".")[0] or 0)


def _above(order: Iterable[NodeValue], changed: set[NodeValue]) -> set[NodeValue]:
    """What depends on some nodes."""
    found = set(changed)
    nodes = list(order)
    growing = bool(found)
    while growing:
        growing = False
        for one in nodes:
            if one not in found and any(source in found for source in calls.inputs_of(one)):
                found.add(one)
                growing = True
    return found


def _copied(node: NodeValue, shared: bool = False) -> NodeValue:
    """A copy of a node; `shared`: the running statistics of a batch normalisation are the same."""
    found = copy.copy(node)
    found.options = dict(node.options)
    if node in INPUTS:
        INPUTS[found] = INPUTS[node]
    if node in CASTS:
        CASTS[found] = CASTS[node]
    own, cell = cell_of(node), cell_of(found)
    own.release()
    cell.dtype, cell.alone = own.dtype, own.alone
    if shared:
        cell.use(own.counter)
    else:
        cell.counter = Counter(own.samples)
    return found


def _copied_parameter(node: NodeValue, freeze: bool) -> NodeValue:
    found = _copied(node)
    found.start = copy.copy(node.start)
    cell, value = cell_of(found), cell_of(node).current()
    cell.value, cell.frozen = None if value is None else np.array(value), freeze or cell_of(node).frozen
    cell.is_array = cell_of(node).is_array
    return found


def _of_copies(build: Build, copies: dict[NodeValue, NodeValue], freeze: bool) -> Build:
    """What makes the node of a recipe, with copies of the parameters that the recipe itself brings along.

    Args:
        build: makes the node of the recipe that was copied.
        copies: the copies of nodes that were made so far; those of parameters are added.
        freeze: whether the copies are not trained.
    """

    def make(operands: tuple[NodeValue, ...]) -> NodeValue:
        made = build(operands)
        below = set(ordered(operands))
        own = [one for one in ordered([made]) if one not in below]
        graph.give_seeds([made], own)
        new = dict(copies)
        for one in own:
            if one not in copies and _has_value(one):
                new[one] = copies[one] = _copied_parameter(one, freeze)
                if one.start is not None and not cell_of(one).is_array:
                    cell_of(copies[one]).value = None  # the other may be trained by now
        inner = [one for one in own if calls.inputs_of(one)]
        new |= {one: _copied(one) for one in inner}
        for one in inner:
            if is_recipe(one):
                new[one].options["build"] = _of_copies(one.options["build"], copies, freeze)
            new[one].inputs = tuple(new.get(source, source) for source in calls.inputs_of(one))
            keep_criterion(new[one], one, new)
        return new.get(made, made)

    return make


def _refuse(given: Mapping[str, Any], *known: str) -> None:
    for name in given:
        if name not in known:
            raise UserError("UnknownArgument", f"eval has no argument '{name}'")


__all__ = [
    "Callable",
    "Function",
    "Initializer",
    "as_function",
    "combine",
    "constant",
    "input_variable",
    "load_model",
    "operator",
    "parameter",
    "placeholder",
    "sequence_input",
]
