"""From the reader's minibatches to what the compiled network eats: padded, stacked, of few different shapes.

XLA compiles once per shape. Minibatches are therefore padded with gap cells to one of few shapes, and several of them
are stacked so that one call of the compiled function handles them all (a call costs more than a small minibatch).
Which shapes are best is seen from the first minibatches, which are read ahead.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError, suggestion
from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.arrays.batch import Grid, PackedGrid
from cntkpy.networks.arrays.sparse import Sparse
from cntkpy.networks.compile.evaluate import Batch
from cntkpy.networks.graph.axes import DEFAULT, is_of_python, own_axis
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.precision import dtype_of
from cntkpy.readers.minibatch import Layout, Minibatch, as_dense
from cntkpy.trainers.step.axes import (
    Axes,
    Placed,
    count_of_samples,
    grids,
    network_axes,
    packed_grids,
    place,
    put_dense,
)
from cntkpy.trainers.step.buckets import COMPILE_WORK, Buckets
from cntkpy.trainers.step.memory import empty, zeros
from cntkpy.trainers.step.shape import Shape

log = logging.getLogger("cntkpy.trainers")

STACK_BYTES = 32 << 20
"""Upper bound of the memory of one stack of minibatches."""

CAPACITY = 64
"""Minibatches in one stack, at most."""

LOOKAHEAD, MAX_LOOKAHEAD = 256, 4096
"""Minibatches read ahead before buckets are chosen for their shapes; twice as many as there were up to the last whose
size was new, for data in order of length."""

LOOKAHEAD_SECONDS = 5.0
"""After that time buckets are chosen for fewer minibatches of a slow source: for a power of two of them, so that most
often another run chooses for as many."""

FILL_SECONDS = 0.5
"""A stack of minibatches is not filled further after that time."""

SMALL_STEP_WORK = 1 << 18
"""Weights times samples of a minibatch up to which it is padded to `max_minibatch_size`: some ten microseconds."""

PACKED_WEIGHTS = 1 << 14
"""Elements of parameters from which on sequences share slots where there are several time axes: to lay them out takes
200 microseconds for 32 sequences."""

BUCKETS_OF_SEVERAL_AXES = 2
"""Buckets to choose, at most, where there are several time axes."""

T = TypeVar("T")


@dataclass
class Stack:
    """Some minibatches of one shape, stacked along a leading axis.

    Attributes:
        batch: a `Batch` whose arrays have a leading axis of fixed capacity; only the first `len(minibatches)` count.
        minibatches: what the reader delivered.
        layouts: their layouts, without the padding; in a network with several time axes those of the main one.
        placed: where their sequences lie; None: as in `layouts`.
    """

    batch: Any
    minibatches: list[Minibatch]
    layouts: list[Layout]
    placed: list[Placed] | None = None

    def layout(self, k: int, node: Node, found: Any = None) -> Layout:
        """The layout of a node's values for minibatch `k`; see `Placed.layout`."""
        return self.layouts[k] if self.placed is None or node.axis is None else self.placed[k].layout(node, found)

    def gaps(self, k: int, node: Node, layout: Layout) -> int:
        """The cells without sample, in minibatch `k` as the reader laid it out, for a node with that `layout`."""
        cells = _cells(self.minibatches[k], layout)
        if self.placed is not None and node.axis is not None:
            cells = self.placed[k].cells.get(node.axis, cells)
        return cells - layout.num_samples

    @property
    def carried_slots(self) -> int:
        """With truncated sequences, the number of slots whose activations continue to the next minibatch; else 0."""
        return self.layouts[0].S if self.minibatches[0].truncated else 0

    @property
    def samples(self) -> NDArray[np.int64]:
        """Real samples of every minibatch."""
        return np.array([layout.num_samples for layout in self.layouts], dtype=np.int64)

    @property
    def columns(self) -> NDArray[np.int64]:
        """Cells of every minibatch before padding, the reader's gaps included: what CNTK counts as samples
        in momentum, clipping and regularisation, if the criterion is a sum over the minibatch."""
        if self.placed is not None:
            return np.array([one.columns for one in self.placed], dtype=np.int64)
        found = zip(self.minibatches, self.layouts, strict=True)
        return np.array([_cells(minibatch, layout) for minibatch, layout in found], dtype=np.int64)

    def sizes(self, gaps: bool) -> NDArray[np.int64]:
        """What counts as the number of samples of every minibatch: its columns, or without `gaps` the real samples of
        the training criterion."""
        if gaps:
            return self.columns
        return self.samples if self.counts is None else self.counts[:, 0]

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """Samples of every minibatch that each reported node is the sum of, where there are several time axes."""
        return None if self.placed is None else np.array([one.counts for one in self.placed], dtype=np.int64)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Time steps of every minibatch before padding."""
        return np.array([layout.T for layout in self.layouts], dtype=np.int64)


@dataclass
class Batcher:
    """Pads and stacks the minibatches of a reader for one network.

    Attributes:
        nodes: the input nodes to feed.
        precision: of the network.
        minibatch_size: nominal number of samples; a frame minibatch is padded to it.
        buckets: the shapes in use; grows as new ones are met.
        capacity: minibatches per stack, an upper bound.
        exact: no padding, because some node depends on the number of columns.
        trace_level: from 2 on, new shapes are logged.
        axes: the time axes, if there are several.
        chosen: buckets to choose for minibatches that are read ahead; 0: take them as they come.
        hurries: read ahead fewer where the source is slow.
        weights: elements of the network's parameters.
        max_minibatch_size: the most samples of a minibatch in any epoch. Minibatches of single frames are padded to
            this size where the network is so small that padding takes less time than compiling a program for each size.
    """

    nodes: Sequence[Node]
    precision: str
    minibatch_size: int
    buckets: Buckets = field(default_factory=Buckets)
    capacity: int = CAPACITY
    exact: bool = False
    trace_level: int = 0
    axes: Axes | None = None
    chosen: int = 0
    hurries: bool = True
    weights: float = math.inf
    max_minibatch_size: int = 0

    def __post_init__(self) -> None:
        self._dtype = dtype_of(self.precision)
        self._sparse = sorted((node for node in self.nodes if node.kind.sparse), key=lambda node: node.name)
        self._dense = [node for node in self.nodes if not node.kind.sparse]
        self._sizes = {node.name: math.prod(node.shape or ()) for node in self.nodes}
        self._last = self._own = Shape(-1, -1)  # that of no minibatch, not even of an empty one
        several, packed = (len(self.axes.names), self.axes.packed) if self.axes is not None else (1, ())
        self.buckets.keep(len(self._sparse), several - 1, several if packed else 0)

    @classmethod
    def of(cls, network: ValidatedNetwork, roots: Sequence[Node], minibatch_size: int, **more: Any) -> "Batcher":
        """The batcher of what some nodes depend on; `more` are further arguments of `Batcher`."""
        below = network.below(roots)
        exact = any(node.kind.columns for node in below)
        more["weights"] = sum(math.prod(node.shape or ()) for node in below if node.trainable)
        axes = network_axes(network, roots)
        if axes is not None:  # their programs take long to compile
            more["chosen"] = min(more.get("chosen", 0), BUCKETS_OF_SEVERAL_AXES)
        if axes is not None and more["weights"] < PACKED_WEIGHTS:
            axes = replace(axes, packed=frozenset())
        return cls(input_nodes(network, roots), network.precision, minibatch_size, exact=exact, axes=axes, **more)

    def stacks(self, source: Iterator[Minibatch], is_due: Callable[[int], bool]) -> Iterator[Stack]:
        """Stacks of consecutive minibatches.

        Args:
            source: the minibatches of an epoch.
            is_due: called with the number of a minibatch (from 1), says whether a stack has to end with it.
        """
        in_bucket = self._in_bucket if self.axes is not None and self.axes.packed else None
        ahead = self._read_ahead(
            map(self._prepare, source), self._own_shape, lambda one: one.minibatch.truncated, in_bucket=in_bucket
        )
        for group in self._groups(ahead, self._shape, is_due, FILL_SECONDS):
            yield self._emptied(*group)

    def _emptied(self, pending: list["Prepared"], shape: Shape, capacity: int) -> Stack:
        """A stack of minibatches that were prepared for it: what was is not needed next to it, and goes."""
        stack = self._stack(pending, shape, capacity)
        pending.clear()
        return stack

    def prepare(self) -> None:
        """Called while a stack is computed whose results are wanted before the next one is asked for."""

    def _groups(
        self,
        source: Iterator[T],
        shape_of: Callable[[T], Shape],
        is_due: Callable[[int], bool],
        wait: float = math.inf,
        ends: Callable[[T], bool] | None = None,
    ) -> Iterator[tuple[list[T], Shape, int]]:
        """Consecutive minibatches of one shape, that shape, and the capacity of a stack of them.

        Args:
            source: the minibatches.
            shape_of: the shape that one is padded to.
            is_due: see `stacks`.
            wait: seconds after which a group is not waited for any more.
            ends: asked once for every minibatch, whether a group ends with it.
        """
        pending: list[T] = []
        shape, capacity, began = Shape(0, 0), 0, 0.0
        for number, one in enumerate(source, 1):
            wanted = shape_of(one)
            if wanted is not shape and wanted != shape:
                if pending:
                    yield pending, shape, capacity
                    pending = []
                shape, capacity = wanted, self._capacity(wanted)
            if not pending:
                began = time.monotonic()
            pending.append(one)
            ended = ends is not None and ends(one)
            if ended or len(pending) == capacity or is_due(number) or time.monotonic() - began > wait:
                yield pending, shape, capacity
                pending = []
        if pending:
            yield pending, shape, capacity

    def _read_ahead(
        self,
        source: Iterator[T],
        own_shape: Callable[[T], Shape],
        truncated: Callable[[T], bool],
        *,
        in_bucket: Callable[[T, Shape], Shape] | None = None,
        fails_late: bool = True,
    ) -> Iterator[T]:
        """The minibatches as they come; before the first whose shapes may differ, buckets are chosen for their shapes.

        Another run looks at as many, unless the source is slow. What the source raises is raised after the minibatches
        before it if it `fails_late`, as if nothing were read ahead.
        """
        for one in source:
            if self._has_buckets(own_shape(one)):
                yield one
                continue
            held, shapes, size = deque([one]), [own_shape(one)], 0
            failure: Exception | None = None
            ended = False
            began = time.monotonic()
            largest = smallest = shapes[0]
            enough = LOOKAHEAD
            while len(held) < enough and size < STACK_BYTES:
                if self.hurries and time.monotonic() - began > LOOKAHEAD_SECONDS:
                    del shapes[1 << (len(shapes).bit_length() - 1) :]
                    break
                try:
                    following = next(source, None)
                except Exception as error:
                    if not fails_late or isinstance(error, Stopped):
                        raise
                    failure = error
                    break
                if following is None:
                    ended = True
                    break
                held.append(following)
                shapes.append(own_shape(following))
                size += self._bytes(shapes[-1])
                extremes = largest.around(shapes[-1]), smallest.inside(shapes[-1])
                if extremes != (largest, smallest):
                    largest, smallest = extremes
                    enough = min(max(enough, 2 * len(held)), MAX_LOOKAHEAD)
            self.buckets.choose(
                shapes,
                self.minibatch_size,
                slots_stay=truncated(one),
                most=self.chosen,
                least_saving=COMPILE_WORK / max(1.0, self.weights) if ended else 0.0,
            )
            if in_bucket is not None:
                self.buckets.tighten(self.minibatch_size, shapes, [partial(in_bucket, one) for one in held])
            while held:
                yield held.popleft()
            if failure is not None:
                raise failure

    def _has_buckets(self, own: Shape) -> bool:
        """Whether buckets are chosen already, or not needed: minibatches of single frames are all alike."""
        frames = own.steps == 1 and not own.others and not own.sparse
        return frames or self.exact or not self.chosen or self.minibatch_size in self.buckets.chosen

    def _join_axes(self, axes: Axes) -> None:
        """Continue as with a single axis: sequences come in pieces, and those of all streams are equally long."""
        axes.check_cut()
        self.axes = None
        self.buckets.keep(len(self._sparse), 0)

    def _prepare(self, minibatch: Minibatch) -> "Prepared":
        if self.axes is not None and minibatch.truncated:
            self._join_axes(self.axes)
        if self.axes is not None:
            return self._prepare_axes(self.axes, minibatch)
        layout, first = None, ""
        for node in self.nodes:
            other = minibatch.layouts[stream_of(minibatch, node.name)]
            if layout is None:
                layout, first = other, node.name
            elif other is not layout and not np.array_equal(other.sequences, layout.sequences):
                raise _different(minibatch, layout, other, first, node)
        layout = layout or next(iter(minibatch.layouts.values()))
        sparse = [
            Sparse.from_csr(
                _csr(minibatch.streams[stream_of(minibatch, n.name)], n), layout.T, layout.S, self._dtype, True
            )
            for n in self._sparse
        ]
        return Prepared(minibatch, layout, sparse)

    def _prepare_axes(self, axes: Axes, minibatch: Minibatch) -> "Prepared":
        placed = place(axes, self.nodes, minibatch, lambda name: stream_of(minibatch, name))
        sparse: list[Sparse] = []
        for node in self._sparse:  # a step for each sample; their cells are known when there is a bucket
            rows = _csr(minibatch.streams[stream_of(minibatch, node.name)], node)[placed.rows[node.name]]
            sparse.append(Sparse.from_csr(rows, rows.shape[0], 1, self._dtype, True))
        of_main = next(node for node in self.nodes if node.axis == axes.main)
        return Prepared(minibatch, minibatch.layouts[stream_of(minibatch, of_main.name)], sparse, placed)

    def _own_shape(self, prepared: "Prepared") -> Shape:
        """The shape of a minibatch before padding."""
        layout, placed = prepared.layout, prepared.placed
        if not prepared.sparse and placed is None:
            if (self._own.steps, self._own.slots) != (layout.T, layout.S):
                self._own = Shape(layout.T, layout.S)
            return self._own
        sparse = tuple((len(s.rows), s.index.shape[2]) for s in prepared.sparse)
        if placed is None or self.axes is None:
            return Shape(layout.T, layout.S, sparse)
        others = tuple(placed.steps(axis) for axis in self.axes.others)
        return Shape(placed.steps(self.axes.main), placed.count, sparse, others, self._slots(placed))

    def _slots(self, placed: Placed) -> tuple[int, ...]:
        """`Shape.packed` of a minibatch."""
        if self.axes is None or not self.axes.packed:
            return ()
        return tuple(placed.layouts[axis].S if axis in placed.layouts else 0 for axis in self.axes.names)

    def _in_bucket(self, prepared: "Prepared", bucket: Shape) -> Shape:
        """The shape of a minibatch whose sequences share slots that are as long as those of a bucket."""
        own, placed = self._own_shape(prepared), prepared.placed
        if placed is None or self.axes is None:
            return own
        steps = dict(zip(self.axes.names, (bucket.steps, *bucket.others), strict=True))
        longer = {axis: steps[axis] for axis, layout in placed.layouts.items() if steps[axis] > layout.T}
        return replace(own, packed=self._slots(placed.packed(longer)))

    def _shape(self, prepared: "Prepared") -> Shape:
        layout = prepared.layout
        plain = not prepared.sparse and self.axes is None
        if plain and self._last.slots == layout.S and self._last.steps == layout.T:
            return self._last
        own, minibatch_size = self._own_shape(prepared), self.minibatch_size
        truncated = prepared.minibatch.truncated
        shorter = own.steps == 1 and own.slots < self.max_minibatch_size
        is_small = self.max_minibatch_size * self.weights <= SMALL_STEP_WORK
        if plain and shorter and is_small and not truncated and not self.exact:
            minibatch_size = self.max_minibatch_size
            own = Shape(1, minibatch_size)
        self._last = self.buckets.fit(
            own, minibatch_size, slots_stay=truncated, exact=self.exact, within=partial(self._in_bucket, prepared)
        )
        if self.buckets.use(self._last) and self.trace_level >= 2:
            text = "Compiling for minibatches of up to %d time steps and %d sequences (compilation %d)."
            log.info(text, self._last.steps, self._last.slots, len(self.buckets.used))
        return self._last

    def _capacity(self, shape: Shape) -> int:
        return max(1, min(self.capacity, STACK_BYTES // self._bytes(shape)))

    def _bytes(self, shape: Shape) -> int:
        """Memory of a minibatch of some shape."""
        size = sum(self._sizes[node.name] for node in self._dense) + sum(2 * k for _, k in shape.sparse)
        return max(1, shape.cells * (size * self._dtype.itemsize + (9 if shape.steps > 1 else 1)))

    def _stack(self, pending: list["Prepared"], shape: Shape, capacity: int) -> Stack:
        if self.axes is not None:
            return self._stack_axes(self.axes, pending, shape, capacity)
        grid = (capacity, shape.steps, shape.slots)
        own = ((one.layout.T, one.layout.S) for one in pending)
        full = sum(1 for _ in takewhile((shape.steps, shape.slots).__eq__, own))
        mask = np.zeros(grid, dtype=bool)
        mask[:full] = True
        cut = bool(pending) and pending[0].minibatch.truncated  # then a single step may continue a sequence
        across = shape.steps > 1 or cut
        distances = [np.full(grid, -1, dtype=np.int32) for _ in range(2 * across)]
        inputs: dict[str, Any] = {n.name: empty((*grid, *reversed(n.shape or ())), self._dtype) for n in self._dense}
        for number, node in enumerate(self._sparse):
            inputs[node.name] = self._stack_sparse(number, pending, grid, *shape.sparse[number])
        for node in self._dense:
            self._stack_dense(node, pending, inputs[node.name], full)
        for k, one in enumerate(pending):
            layout = one.layout
            steps, slots = layout.T, layout.S
            if k >= full or layout.num_samples < steps * slots:
                mask[k, :steps, :slots] = layout.mask
            for target, values in zip(distances, (layout.to_start, layout.to_end) if distances else (), strict=True):
                target[k, :steps, :slots] = values
        batch = Batch(inputs, mask, distances[0], distances[1]) if distances else Batch(inputs, mask)
        return Stack(batch, [one.minibatch for one in pending], [one.layout for one in pending])

    def _stack_dense(self, node: Node, pending: list["Prepared"], target: NDArray[Any], full: int) -> None:
        """Copy the values of an input into their stack; those of the first `full` minibatches fill their part of it.

        After them are zeros where other minibatches have nothing, and after the last one anything: nobody reads it.
        """
        name, size = node.name, self._sizes[node.name]
        every = [one.minibatch.streams[stream_of(one.minibatch, name)] for one in pending]
        for values in every:
            if values.shape[-1] != size:
                raise _wrong_size(node, values.shape[-1])
        if full:
            rows = [part for values in every[:full] for part in _parts(values, size)]
            np.concatenate(rows, out=target[:full].reshape(-1, size), casting="same_kind")
        target[full : len(pending)] = 0
        for k, one in enumerate(pending[full:], full):
            steps, slots = one.layout.T, one.layout.S
            parts = _parts(every[k], size)
            values = parts[0] if len(parts) == 1 else np.concatenate(parts)
            target[k, :steps, :slots] = values.reshape(steps, slots, *target.shape[3:])

    def _stack_sparse(
        self, number: int, pending: list["Prepared"], grid: tuple[int, ...], distinct: int, entries: int
    ) -> Sparse:
        """The values of a sparse input in their stack; memory of minibatches that are not there is not touched."""
        stacked = Sparse(
            zeros((grid[0], distinct), np.int32),
            zeros((*grid, entries), np.int32),
            zeros((*grid, entries), self._dtype),
        )
        for k, one in enumerate(pending):
            values = one.sparse[number]
            stacked.rows[k, : len(values.rows)] = values.rows
            stacked.rows[k, len(values.rows) :] = self._sizes[self._sparse[number].name]
            t, s, e = values.index.shape
            if one.placed is None:
                stacked.index[k, :t, :s, :e] = values.index
                stacked.values[k, :t, :s, :e] = values.values
            else:
                step, slot = one.placed.place_of(self._sparse[number].axis or DEFAULT)
                stacked.index[k, step, slot, :e] = values.index[:, 0]
                stacked.values[k, step, slot, :e] = values.values[:, 0]
        return stacked

    def _stack_axes(self, axes: Axes, pending: list["Prepared"], shape: Shape, capacity: int) -> Stack:
        """As `_stack`, in a network with several time axes."""
        shapes = dict(zip(axes.names, shape.grids, strict=True))
        for one in pending:
            one.placed = one.placed and one.placed.packed({axis: shapes[axis][0] for axis in axes.packed})
        placed = [one.placed for one in pending if one.placed is not None]
        lie: dict[str, Grid | PackedGrid] = {
            axis: packed_grids(placed, axis, capacity, steps, slots, shape.slots)
            if axis in axes.packed
            else grids(placed, axis, capacity, steps, slots)
            for axis, (steps, slots) in shapes.items()
        }
        inputs: dict[str, Any] = {}
        for node in self._dense:
            grid = (capacity, *shapes[node.axis or axes.main])
            target = inputs[node.name] = zeros((*grid, *reversed(node.shape or ())), self._dtype)
            for k, one in enumerate(pending):
                values = one.minibatch.streams[stream_of(one.minibatch, node.name)]
                if values.shape[-1] != self._sizes[node.name]:
                    raise _wrong_size(node, values.shape[-1])
                put_dense(target[k], as_dense(values), placed[k], node)
        for number, node in enumerate(self._sparse):
            grid = (capacity, *shapes[node.axis or axes.main])
            inputs[node.name] = self._stack_sparse(number, pending, grid, *shape.sparse[number])
        main = lie[axes.main]
        if isinstance(main, PackedGrid):
            main = grids(placed, axes.main, capacity, shape.steps, shape.slots)
        batch = Batch(inputs, *main, lie)
        return Stack(batch, [one.minibatch for one in pending], [one.layout for one in pending], placed)


@dataclass(frozen=True)
class Pieces:
    """Values of a stream that lie in several places until they are copied into a stack.

    Attributes:
        parts: arrays (rows, dim), or what is like CSR matrices of SciPy.
    """

    parts: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Of all together."""
        return sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]


def _parts(values: Any, size: int) -> list[NDArray[Any]]:
    """The values of a stream as arrays (rows, size), one after the other."""
    parts = values.parts if isinstance(values, Pieces) else [values]
    return [as_dense(part).reshape(-1, size) for part in parts]


def _cells(minibatch: Minibatch, layout: Layout) -> int:
    """The cells of a minibatch that count, gaps included."""
    return minibatch.columns_together or layout.T * layout.S


@dataclass
class Prepared:
    """A minibatch on its way into a stack: its layout, its sparse inputs in order of names, and where they lie."""

    minibatch: Minibatch
    layout: Layout
    sparse: list[Sparse]
    placed: Placed | None = None


def input_nodes(network: ValidatedNetwork, roots: Sequence[Node]) -> list[Node]:
    """The input nodes that some nodes depend on."""
    return [node for node in network.below(roots) if node.kind.layout == "always"]


def _different(minibatch: Minibatch, layout: Layout, other: Layout, first: str, node: Node) -> UserError:
    """Inputs whose sequences do not have the same lengths: which sequence it is, where the reader says."""
    second = node.name
    lengths = [one.sequences[:, 3] - one.sequences[:, 2] for one in (layout, other)]
    told, other_axis = "", second
    if len(lengths[0]) == len(lengths[1]) == len(minibatch.keys) and (lengths[0] != lengths[1]).any():
        at = int(np.argmax(lengths[0] != lengths[1]))
        counts = f"{count_of_samples(lengths[0][at])} of '{first}', {lengths[1][at]} of '{second}'"
        told = f": sequence {minibatch.keys[at]} has {counts}"
        other_axis = first if lengths[0][at] < lengths[1][at] else second
    return UserError(
        "DifferentLengths",
        f"inputs '{first}' and '{second}' have sequences of different lengths in one minibatch{told}",
        hint="these inputs share one time axis: a sequence needs as many samples of one as of the other. If their "
        f"lengths differ on purpose, {own_axis(other_axis, is_of_python(node))}",
    )


def stream_of(minibatch: Minibatch, name: str) -> str:
    """The reader's stream for an input node; names ignore case."""
    if name in minibatch.streams:
        return name
    for stream in minibatch.streams:
        if stream.lower() == name.lower():
            return stream
    raise UserError(
        "MissingStream",
        f"the network needs the input '{name}', but the reader delivers no stream of that name",
        hint=suggestion(name, minibatch.streams)
        or f"the reader delivers {', '.join(minibatch.streams)}; an input and its stream have one name, so "
        f"give the reader a stream '{name}', or call the input of the network as one of them",
    )


def _wrong_size(node: Node, found: int) -> UserError:
    return UserError(
        "DimensionMismatch",
        f"the reader's stream '{node.name}' has {found} values per sample, the network's input "
        f"{math.prod(node.shape or ())}",
        span=node.span,
        hint="make `dim` in the reader's section and the size of the input node equal",
    )


def _csr(values: Any, node: Node) -> Any:
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]  # slow to import, and needed for sparse data only

    sparse: Any = scipy.sparse
    if values.shape[-1] != math.prod(node.shape or ()):
        raise _wrong_size(node, values.shape[-1])
    return values if sparse.issparse(values) else sparse.csr_matrix(values.reshape(-1, values.shape[-1]))
