"""The padded arrays of minibatches: on one time axis, and on several.

XLA compiles once per shape, so minibatches are padded with gap cells to one of few shapes, see
`cntkpy.trainers.step.buckets`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.batch import Grid, PackedGrid
from cntkpy.networks.arrays.sparse import Sparse
from cntkpy.networks.compile.evaluate import Batch
from cntkpy.networks.graph.axes import DEFAULT, is_of_python, own_axis
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.minibatch import Layout, Minibatch, as_dense
from cntkpy.trainers.step.axes import Axes, Placed, count_of_samples, grids, packed_grids, place, put_dense
from cntkpy.trainers.step.memory import HostArray, empty, join, zeros
from cntkpy.trainers.step.shape import Shape
from cntkpy.trainers.step.stack import Prepared, Stack, stream_of


class Padding(Protocol):
    """Pads minibatches to a shape and stacks them."""

    inputs: Inputs
    secondary: int
    """Number of time axes besides the main one."""
    lays_out: bool
    """True: sequences are laid out anew, not as the reader has them."""
    packed: bool
    """True: sequences share slots on some axes, of which a minibatch needs the fewer the longer they are."""

    def prepare(self, minibatch: Minibatch) -> Prepared:
        """Return the sizes of a minibatch, before a shape is chosen."""
        ...

    def shape(self, prepared: Prepared) -> Shape:
        """Return the shape of a minibatch before padding."""
        ...

    def shape_in(self, bucket: Shape, prepared: Prepared) -> Shape:
        """Return the shape of a minibatch whose sequences share slots that are as long as those of a bucket."""
        ...

    def stack(self, pending: Sequence[Prepared], shape: Shape, capacity: int) -> Stack:
        """Return minibatches padded to a shape, in arrays with room for `capacity` of them."""
        ...

    def of_pieces(self) -> Padding:
        """Return the padding of minibatches of truncated sequences."""
        ...

    def with_own_slots(self) -> Padding:
        """Return the padding that gives each sequence a slot of its own, which a device can have."""
        ...


class Inputs:
    """The input nodes of a network.

    Args:
        nodes: the nodes.
        dtype: element type of their values.
    """

    def __init__(self, nodes: Sequence[Node], dtype: DTypeLike):
        self.nodes, self.dtype = nodes, np.dtype(dtype)
        self.sparse = sorted((node for node in nodes if node.kind.sparse), key=lambda node: node.name)
        self.dense = [node for node in nodes if not node.kind.sparse]
        self.sizes = {node.name: math.prod(node.shape or ()) for node in nodes}

    def bytes(self, shape: Shape) -> int:
        """Return the memory of a minibatch of some shape."""
        size = sum(self.sizes[node.name] for node in self.dense) + sum(2 * k for _, k in shape.sparse)
        return max(1, shape.cells * (size * self.dtype.itemsize + (9 if shape.steps > 1 else 1)))

    def values(self, minibatch: Minibatch, node: Node) -> Any:
        """Return the stream of a node.

        Raises:
            UserError: a sample of it has another size.
        """
        values = minibatch.streams[stream_of(minibatch, node.name)]
        if values.shape[-1] != self.sizes[node.name]:
            raise _wrong_size(node, values.shape[-1])
        return values

    def stacked_sparse(
        self, number: int, pending: Sequence[Prepared], grid: tuple[int, ...], sizes: tuple[int, int]
    ) -> Sparse:
        """Return the values of a sparse input in their stack; memory of minibatches that are not there stays untouched.

        Args:
            number: of the input.
            pending: the minibatches.
            grid: capacity, time steps and slots.
            sizes: distinct elements of a minibatch, and entries of a sample.
        """
        (distinct, entries), node = sizes, self.sparse[number]
        stacked = Sparse(
            zeros((grid[0], distinct), np.int32), zeros((*grid, entries), np.int32), zeros((*grid, entries), self.dtype)
        )
        for k, prepared in enumerate(pending):
            values = prepared.sparse[number]
            stacked.rows[k, : len(values.rows)] = values.rows
            stacked.rows[k, len(values.rows) :] = self.sizes[node.name]
            t, s, e = values.index.shape
            if prepared.placed is None:
                stacked.index[k, :t, :s, :e] = values.index
                stacked.values[k, :t, :s, :e] = values.values
            else:
                step, slot = prepared.placed.place_of(node.axis or DEFAULT)
                stacked.index[k, step, slot, :e] = values.index[:, 0]
                stacked.values[k, step, slot, :e] = values.values[:, 0]
        return stacked


def padding_of(inputs: Inputs, axes: Axes | None) -> Padding:
    """Return the padding for time axes; None: there is one."""
    return SingleAxis(inputs) if axes is None else SeveralAxes(inputs, axes)


class SingleAxis(Padding):
    """All inputs lie on one time axis, their sequences after each other in slots as the reader has laid them out."""

    secondary, lays_out, packed = 0, False, False

    def __init__(self, inputs: Inputs):
        self.inputs = inputs
        self._shape = Shape(-1, -1)  # that of no minibatch, not even of an empty one

    def prepare(self, minibatch: Minibatch) -> Prepared:
        """See `Padding`; the layouts of all inputs are alike."""
        layout, first = None, ""
        for node in self.inputs.nodes:
            second = minibatch.layouts[stream_of(minibatch, node.name)]
            if layout is None:
                layout, first = second, node.name
            elif second is not layout and not np.array_equal(second.sequences, layout.sequences):
                raise _absent(minibatch, [first, node.name]) or _different(minibatch, layout, second, first, node)
        layout = layout or next(iter(minibatch.layouts.values()))
        dtype = self.inputs.dtype
        rows: list[Any] = [_csr(self.inputs.values(minibatch, node)) for node in self.inputs.sparse]
        return Prepared(minibatch, layout, [Sparse.from_csr(csr, layout.T, layout.S, dtype, True) for csr in rows])

    def shape(self, prepared: Prepared) -> Shape:
        """See `Padding`; the same object as long as it does not change."""
        layout = prepared.layout
        if prepared.sparse:
            return Shape(layout.T, layout.S, _sparse_sizes(prepared))
        if (self._shape.steps, self._shape.slots) != (layout.T, layout.S):
            self._shape = Shape(layout.T, layout.S)
        return self._shape

    def shape_in(self, bucket: Shape, prepared: Prepared) -> Shape:
        """See `Padding`; no slots are shared anew."""
        return self.shape(prepared)

    def of_pieces(self) -> Padding:
        """Return this one."""
        return self

    def with_own_slots(self) -> Padding:
        """Return this one: slots are those of the reader."""
        return self

    def stack(self, pending: Sequence[Prepared], shape: Shape, capacity: int) -> Stack:
        """See `Padding`."""
        grid = (capacity, shape.steps, shape.slots)
        sizes = ((prepared.layout.T, prepared.layout.S) for prepared in pending)
        full = sum(1 for _ in takewhile((shape.steps, shape.slots).__eq__, sizes))
        mask = np.zeros(grid, dtype=bool)
        mask[:full] = True
        cut = bool(pending) and pending[0].minibatch.truncated  # then a single step may continue a sequence
        across = shape.steps > 1 or cut
        distances = [np.full(grid, -1, dtype=np.int32) for _ in range(2 * across)]
        dtype, dense = self.inputs.dtype, self.inputs.dense
        inputs: dict[str, Any] = {n.name: empty((*grid, *reversed(n.shape or ())), dtype) for n in dense}
        for number, node in enumerate(self.inputs.sparse):
            inputs[node.name] = self.inputs.stacked_sparse(number, pending, grid, shape.sparse[number])
        for node in dense:
            self._fill(node, pending, inputs[node.name], full)
        for k, prepared in enumerate(pending):
            layout = prepared.layout
            steps, slots = layout.T, layout.S
            if k >= full or layout.num_samples < steps * slots:
                mask[k, :steps, :slots] = layout.mask
            for target, values in zip(distances, (layout.to_start, layout.to_end) if distances else (), strict=True):
                target[k, :steps, :slots] = values
        batch = Batch(inputs, mask, distances[0], distances[1]) if distances else Batch(inputs, mask)
        return Stack(batch, [prepared.minibatch for prepared in pending], [prepared.layout for prepared in pending])

    def _fill(self, node: Node, pending: Sequence[Prepared], target: HostArray, full: int) -> None:
        """Copy the values of an input into their stack; those of the first `full` minibatches fill their part of it.

        After them are zeros where other minibatches have nothing, and after the last one anything: nobody reads it.
        """
        size = self.inputs.sizes[node.name]
        rows = [as_dense(self.inputs.values(prepared.minibatch, node)).reshape(-1, size) for prepared in pending]
        if full:
            join(rows[:full], target)
        target[full : len(pending)] = 0
        for k, prepared in enumerate(pending[full:], full):
            steps, slots = prepared.layout.T, prepared.layout.S
            target[k, :steps, :slots] = rows[k].reshape(steps, slots, *target.shape[3:])


class SeveralAxes(Padding):
    """Inputs lie on several time axes; each sequence is laid out anew, see `cntkpy.trainers.step.axes`."""

    lays_out = True

    def __init__(self, inputs: Inputs, axes: Axes):
        self.inputs, self._axes = inputs, axes
        self.secondary, self.packed = len(axes.secondary), bool(axes.packed)

    def prepare(self, minibatch: Minibatch) -> Prepared:
        """See `Padding`."""
        axes = self._axes
        placed = place(axes, self.inputs.nodes, minibatch, lambda name: stream_of(minibatch, name))
        sparse: list[Sparse] = []
        for node in self.inputs.sparse:  # a step for each sample; their cells are known when there is a bucket
            rows: Any = _csr(self.inputs.values(minibatch, node))[placed.rows[node.name]]
            sparse.append(Sparse.from_csr(rows, rows.shape[0], 1, self.inputs.dtype, True))
        of_main = next(node for node in self.inputs.nodes if node.axis == axes.main)
        return Prepared(minibatch, minibatch.layouts[stream_of(minibatch, of_main.name)], sparse, placed)

    def shape(self, prepared: Prepared) -> Shape:
        """See `Padding`."""
        placed = _placed(prepared)
        secondary = tuple(placed.steps(axis) for axis in self._axes.secondary)
        slots = self._slots(placed)
        return Shape(placed.steps(self._axes.main), placed.count, _sparse_sizes(prepared), secondary, slots)

    def _slots(self, placed: Placed) -> tuple[int, ...]:
        """Return `Shape.packed` of a minibatch."""
        axes = self._axes
        return tuple(placed.layouts[a].S if a in placed.layouts else 0 for a in axes.names) if axes.packed else ()

    def shape_in(self, bucket: Shape, prepared: Prepared) -> Shape:
        """See `Padding`."""
        placed = _placed(prepared)
        steps = dict(zip(self._axes.names, (bucket.steps, *bucket.secondary), strict=True))
        longer = {axis: steps[axis] for axis, layout in placed.layouts.items() if steps[axis] > layout.T}
        return replace(self.shape(prepared), packed=self._slots(placed.packed(longer)))

    def of_pieces(self) -> Padding:
        """Return the padding on a single axis: pieces of sequences of all streams are equally long.

        Raises:
            UserError: the network cannot do with that.
        """
        self._axes.check_cut()
        return SingleAxis(self.inputs)

    def with_own_slots(self) -> Padding:
        """See `Padding`."""
        return SeveralAxes(self.inputs, replace(self._axes, packed=frozenset()))

    def stack(self, pending: Sequence[Prepared], shape: Shape, capacity: int) -> Stack:
        """See `Padding`."""
        axes = self._axes
        shapes = dict(zip(axes.names, shape.grids, strict=True))
        steps = {axis: shapes[axis][0] for axis in axes.packed}
        placed = [_placed(prepared).packed(steps) for prepared in pending]
        for prepared, layout in zip(pending, placed, strict=True):
            prepared.placed = layout
        lie: dict[str, Grid | PackedGrid] = {
            axis: packed_grids(placed, axis, capacity, *sizes, shape.slots)
            if axis in axes.packed
            else grids(placed, axis, capacity, *sizes)
            for axis, sizes in shapes.items()
        }
        inputs: dict[str, Any] = {}
        for node in self.inputs.dense:
            grid = (capacity, *shapes[node.axis or axes.main])
            target = inputs[node.name] = zeros((*grid, *reversed(node.shape or ())), self.inputs.dtype)
            for k, prepared in enumerate(pending):
                put_dense(target[k], as_dense(self.inputs.values(prepared.minibatch, node)), placed[k], node)
        for number, node in enumerate(self.inputs.sparse):
            grid = (capacity, *shapes[node.axis or axes.main])
            inputs[node.name] = self.inputs.stacked_sparse(number, pending, grid, shape.sparse[number])
        main = lie[axes.main]
        if isinstance(main, PackedGrid):
            main = grids(placed, axes.main, capacity, shape.steps, shape.slots)
        batch = Batch(inputs, *main, lie)
        return Stack(
            batch, [prepared.minibatch for prepared in pending], [prepared.layout for prepared in pending], placed
        )


def _placed(prepared: Prepared) -> Placed:
    assert prepared.placed is not None
    return prepared.placed


def _sparse_sizes(prepared: Prepared) -> tuple[tuple[int, int], ...]:
    """Return for each sparse input the distinct elements of a minibatch and the entries of a sample."""
    return tuple((len(sparse.rows), sparse.index.shape[2]) for sparse in prepared.sparse)


def input_nodes(network: ValidatedNetwork, roots: Iterable[Node]) -> list[Node]:
    """Return the input nodes that some nodes depend on."""
    return [node for node in network.below(roots) if node.kind.layout == "always"]


def _absent(minibatch: Minibatch, inputs: Sequence[str]) -> UserError | None:
    """Return the error of inputs that the data lack, if one of them is."""
    errors = (minibatch.missing(stream_of(minibatch, name)) for name in inputs)
    return next((error for error in errors if error is not None), None)


def _different(minibatch: Minibatch, layout: Layout, second_layout: Layout, first: str, node: Node) -> UserError:
    """Inputs whose sequences do not have the same lengths: which sequence it is, where the reader says."""
    lengths, second = [each.sequences[:, 3] - each.sequences[:, 2] for each in (layout, second_layout)], node.name
    detail, other_axis, none_of = "", second, ""
    if len(lengths[0]) == len(lengths[1]) == len(minibatch.keys) and (lengths[0] != lengths[1]).any():
        index = int(np.argmax(lengths[0] != lengths[1]))
        counts = f"{count_of_samples(lengths[0][index])} of '{first}', {lengths[1][index]} of '{second}'"
        detail = f": sequence {minibatch.keys[index]} has {counts}"
        other_axis = first if lengths[0][index] < lengths[1][index] else second
        if not min(lengths[0][index], lengths[1][index]):
            none_of = f"the data have no sample of '{other_axis}' there, or call it otherwise (see the log); "
    return UserError(
        "DifferentLengths",
        f"inputs '{first}' and '{second}' have sequences of different lengths in one minibatch{detail}",
        hint=f"{none_of}these inputs share one time axis: a sequence needs as many samples of one as of the other. If "
        f"their lengths differ on purpose, {own_axis(other_axis, is_of_python(node))}",
    )


def _wrong_size(node: Node, size: int) -> UserError:
    return UserError(
        "DimensionMismatch",
        f"the reader's stream '{node.name}' has {size} values per sample, the network's input "
        f"{math.prod(node.shape or ())}",
        span=node.span,
        hint="make `dim` in the reader's section and the size of the input node equal",
    )


def _csr(values: Any) -> Any:
    """Return values of a sparse input as a CSR matrix of SciPy."""
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]  # slow to import, and needed for sparse data only

    sparse: Any = scipy.sparse
    return values if sparse.issparse(values) else sparse.csr_matrix(values.reshape(-1, values.shape[-1]))
