"""Leaves of functions: inputs, parameters, constants and placeholders, as nodes."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue, Start
from cntkpy.networks.builders.brainscript.operations import OPERATIONS, Operation
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.checks import (
    as_array,
    check_flag,
    check_name,
    check_number,
    check_whole,
    is_whole,
)
from cntkpy.networks.builders.python.functions.defaults import DOUBLE, HALF, SINGLE, chosen_dtype, kept_dtype
from cntkpy.networks.builders.python.functions.nodes import INPUTS, Input
from cntkpy.networks.graph.initialize import RANDOM_KINDS

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Shape = int | Sequence[int]

UNKNOWN = -1
"""Stands in the shape of a parameter for what follows from its use."""

FREE = -3
"""Stands in the shape of an input for what each minibatch says."""

INFERRED_RANK = 2147483647
"""CNTK's number for a rank of an initializer that is not given."""


class Initializer:
    """Initializers of random parameters.

    Args:
        kind: one of BrainScript's kinds.
        scale: factor of the values.
        seed: a seed of its own; None: the next one of the network.
        output_rank: how many of the last axes count outputs, or below 0 how many of the first ones; None: the last
            one, or what the layer says.
        filter_rank: how many of the last axes are those of a filter, after which outputs are counted; None: none, or
            what the layer says.
        kernel: width and height of the filter of bilinear.
    """

    def __init__(
        self,
        kind: str,
        scale: float = 1.0,
        seed: int | None = None,
        output_rank: int | None = None,
        filter_rank: int | None = None,
        kernel: tuple[int, int] = (0, 0),
    ) -> None:
        self.kind, self.scale = kind, check_number("the scale of an initializer", scale, 0.0)
        self.seed = None if seed is None else check_whole("a seed", seed, 0)
        self.output_rank = _rank("output_rank", output_rank, None)
        self.filter_rank = _rank("filter_rank", filter_rank, 0)
        self.kernel = kernel

    def with_ranks(self, output_rank: int | None, filter_rank: int | None = None) -> Initializer:
        """Return the same with ranks where it has none of its own."""
        return Initializer(
            self.kind,
            self.scale,
            self.seed,
            output_rank if self.output_rank is None else self.output_rank,
            filter_rank if self.filter_rank is None else self.filter_rank,
            self.kernel,
        )

    def into(self, start: Start) -> None:
        """Let a parameter start so, with its own ranks where there are none, and its own scale and seed."""
        start.kind, start.kernel = self.kind, self.kernel
        if self.output_rank is not None:
            start.output_rank = self.output_rank
        if self.filter_rank is not None:
            start.filter_rank = self.filter_rank

    def start(self) -> Start:
        """Return the start of a parameter; the network chooses a seed that is missing."""
        seed = calls.UNSEEDED if self.seed is None else self.seed
        start = Start(self.kind, scale=self.scale, seed=seed if self.kind in RANDOM_KINDS else None)
        self.into(start)
        return start


def _rank(name: str, rank: object, least: int | None) -> int | None:
    return None if rank is None or rank == INFERRED_RANK else check_whole(name, rank, least)


GLOROT = Initializer("glorotUniform")


def leaf(shape: Shape | None, init: object, dtype: np.dtype[np.generic] | None, label: str) -> NodeValue:
    """Return a parameter or constant; see `variables.parameter`."""
    if isinstance(shape, list | tuple):
        shape = tuple(0 if is_whole(size) and size == UNKNOWN else size for size in shape)
    operation = OPERATIONS["LearnableParameter"]
    if isinstance(init, Initializer):
        if shape is None:
            raise UserError("MissingParameter", "a parameter with an initializer needs a shape")
        node = NodeValue(operation, calls.origin(label), shape=dims(shape))
        cell_of(node).dtype = dtype
        node.start = init.start()
        return node
    array = as_array("a start value", init, kept_dtype(dtype))
    if shape is not None and 0 in dims(shape):
        declared = tuple(reversed(dims(shape)))
        if array.ndim and len(declared) == array.ndim and all(map(_fits, declared, array.shape)):
            return leaf(None, array, dtype, label)
        if array.ndim:
            shown = tuple(size or UNKNOWN for size in declared)
            message = f"an array of shape {array.shape} for a parameter of shape {shown}"
            raise UserError("BadShape", message, hint="init=array without a shape, or a number")
        node = NodeValue(operation, calls.origin(label), shape=dims(shape))
        node.start = Start("fixedValue", value=float(array.reshape(())))
        cell_of(node).dtype = dtype
        return node
    if shape is not None:
        declared = tuple(reversed(dims(shape)))
        array = array if array.ndim else np.broadcast_to(array, declared)
        array = array.reshape(declared) if differ_by_leading_ones(array.shape, declared) else array
        if array.shape != declared:
            raise UserError("BadShape", f"an array of shape {array.shape} for a parameter of shape {shape}")
    array = np.array(array)
    node = NodeValue(operation, calls.origin(label), shape=tuple(reversed(array.shape)))
    node.start = Start("fixedValue", value=0.0)
    cell_of(node).start_with(array)
    cell_of(node).dtype = dtype
    return node


def _fits(size: int, array_size: int) -> bool:
    """Return whether an axis of an array is one of a parameter, whose size may be to be inferred (0)."""
    return size in (0, array_size)


def adopting_constant(value: object) -> NodeValue:
    """Return a constant that adopts the precision of the leaves that it meets; an array alone has its own."""
    node = leaf(None, as_array("an operand", value, np.float64), DOUBLE, "Constant")
    if isinstance(value, np.ndarray) and value.dtype in (HALF, DOUBLE):
        cell_of(node).alone = value.dtype
    cell_of(node).dtype = None
    return node


def counts_of(node: NodeValue) -> tuple[NodeValue, ...]:
    """Return the constant with the samples that the running statistics of a batch normalisation are of.

    It is an operand in CNTK 2 alone. Other nodes have none.
    """
    if node.operation.name != "BatchNormalization":
        return ()
    cell = cell_of(node)
    if cell.counter.constant is None:
        constant = leaf(None, 0.0, SINGLE, "aggregate_count")
        constant.name = "aggregate_count"
        cell_of(constant).show(cell.counter, constant)
        cell.use(cell.counter)
        return (constant,)
    return (cell.counter.constant,)


def with_counts(leaves: Iterable[NodeValue], nodes: Iterable[NodeValue]) -> list[NodeValue]:
    """Return the leaves of some nodes, and behind each running variance the constant of its `counts_of`."""
    counts = {calls.inputs_of(node)[-1]: count for node in nodes if (count := counts_of(node))}
    return [each for known in leaves for each in (known, *counts.get(known, ()))]


def data_input(shape: Shape, dtype: DTypeLike | None, sparse: bool, name: str, kind: Input) -> NodeValue:
    """Return an input; see `variables.input_variable`."""
    check_name(name)
    size = _input_dims(shape)
    operation = OPERATIONS["SparseInputValue" if check_flag("is_sparse", sparse) else "InputValue"]
    node = NodeValue(operation, calls.origin(name or "Input"), {"dynamicAxis": ""}, shape=size, name=name)
    cell_of(node).dtype = chosen_dtype("input_variable", dtype) or SINGLE
    if 0 in size and UNKNOWN in (shape if isinstance(shape, list | tuple | np.ndarray) else (shape,)):
        kind.unknown = UNKNOWN
    INPUTS[node] = kind
    return node


def placeholder_of(shape: Shape | None, name: str) -> NodeValue:
    """Return a placeholder; see `variables.placeholder`."""
    size = (0,) if shape is None else dims(shape, _is_free)
    node = NodeValue(Operation("Placeholder", shape="input"), calls.origin(name or "Placeholder"), shape=size)
    node.name = name
    return node


def check_axes(subject: str, shape_given: tuple[int, ...], node: NodeValue) -> None:
    """Return whether a value has the axes of a parameter that are known, while others may be to be inferred.

    Raises:
        UserError: it has others.
    """
    declared = tuple(reversed(node.shape or ()))
    if len(declared) != len(shape_given) or any(
        declared_size not in (0, size) for declared_size, size in zip(declared, shape_given, strict=True)
    ):
        shape = tuple(size or UNKNOWN for size in declared)
        raise UserError("BadShape", f"{subject} of shape {shape_given} for a parameter of shape {shape}")


def dims(shape: Shape, is_free: Callable[[object], bool] = lambda element: False) -> tuple[int, ...]:
    """Return a node's shape of numpy's; 0 stands for what is to be inferred.

    Args:
        shape: numpy's.
        is_free: whether an element stands for a size that is 0 as well.
    """
    sizes: tuple[Any, ...] = tuple(shape) if isinstance(shape, list | tuple | np.ndarray) else (shape,)
    for element in sizes:
        if not is_free(element) and (not is_whole(element) or element < UNKNOWN):
            raise UserError("BadShape", f"{shape!r} is not a shape: numbers from 1 on are expected (0: to be inferred)")
    return tuple(max(0, int(element)) for element in reversed(sizes))


def _is_free(size: object) -> bool:
    """Return whether an element of a shape stands for what each minibatch says: free, or to be inferred."""
    return is_whole(size) and size in (FREE, UNKNOWN)


def _input_dims(shape: Shape) -> tuple[int, ...]:
    """Return a node's shape of that of an input; 0 stands for what each minibatch says."""
    sizes = dims(shape, _is_free)
    free = sum(map(_is_free, shape)) if isinstance(shape, list | tuple | np.ndarray) else _is_free(shape)
    if sizes.count(0) > free:
        message = f"{shape!r} is not the shape of an input: numbers from 1 on are expected"
        raise UserError("BadShape", message, hint="FreeDimension (-3) is an axis whose size each minibatch says")
    return sizes


def differ_by_leading_ones(shape: tuple[int, ...], reference: tuple[int, ...]) -> bool:
    """Return whether two shapes differ only by axes of one element in front."""
    rank = max(len(shape), len(reference))
    return shape != reference and (1,) * (rank - len(shape)) + shape == (1,) * (rank - len(reference)) + reference


def filled(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without its axes of one element."""
    return tuple(size for size in shape if size != 1)
