"""Minibatches for networks with several time axes.

Each sequence has a slot of its own, the same on all axes, or shares one where all nodes can do with that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.batch import Grid, PackedGrid
from cntkpy.networks.compile.evaluate import LENGTHS
from cntkpy.networks.graph.axes import (
    DEFAULT,
    ONE,
    axes_of,
    equal_lengths,
    is_of_python,
    main_axis,
    own_axis,
    separate_slots,
    shown,
    summed_axis,
)
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.packing import packed_axes
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.pipeline import pack
from cntkpy.trainers.step.memory import HostArray

Lengths = NDArray[np.int64]
"""Samples of each sequence of a minibatch."""


@dataclass(frozen=True, eq=False)
class Axes:
    """The time axes of the inputs of a network.

    Attributes:
        main: the one whose samples are those of a minibatch.
        secondary: the rest, in a fixed order.
        features: names of the inputs whose columns count, with gaps, in momentum and regularisation.
        equal: nodes with two operands on different axes whose sequences must have the same lengths.
        counted: for each node that is reported, the axis whose samples it is the sum of.
        made: for each axis that is made of an axis of samples, how many samples of it a minibatch has.
        packed: those on which sequences may share slots.
        in_python: whether the network is one of a Python program.
        whole: a node that selects steps of whole sequences, or compares them; None: there is none.
    """

    main: str
    secondary: tuple[str, ...]
    features: frozenset[str]
    equal: tuple[tuple[Node, Node, Node], ...]
    counted: tuple[str, ...] = ()
    whole: Node | None = None
    made: Mapping[str, Callable[[Minibatch], int]] = field(default_factory=dict[str, Callable[[Minibatch], int]])
    packed: frozenset[str] = frozenset()
    in_python: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (self.main, *self.secondary)

    def check_cut(self) -> None:
        """See that sequences may come in pieces: then all axes have the same layout, and count as one.

        Raises:
            UserError: a node needs whole sequences.
        """
        if self.whole is not None:
            compares = self.whole.kind.layout == "none"
            needs = "compares whole sequences" if compares else "selects steps of whole sequences"
            steps, cut = "BS.Sequences.First, Last, Gather, Scatter", "truncated=true"
            remedy = f"remove {cut} from the reader"
            if self.in_python:
                steps, cut = "sequence.first, last, gather, scatter", "truncation_length"
                remedy = f"leave {cut} of the MinibatchSource out"
            advice = "" if compares else f"; {steps} and slices along time select steps"
            raise UserError(
                "TruncatedAxes",
                f"{self.whole.operation} '{self.whole.name}' {needs}, but {cut} cuts them into pieces",
                span=self.whole.span,
                hint=f"{remedy}{advice}",
            )


def network_axes(network: ValidatedNetwork, roots: Sequence[Node]) -> Axes | None:
    """Return the time axes of what some nodes depend on; None: there is only one, and sequences may share a slot."""
    below = network.below(roots)
    if not separate_slots(below):
        return None
    inputs = [node for node in below if node.kind.layout == "always"]
    main = main_axis(below, roots)
    features = [node.name for node in inputs if node in network.groups["feature"]] or [node.name for node in inputs]
    secondary = tuple(axis for axis in axes_of(inputs) if axis != main)
    counted = tuple(summed_axis(root) or main for root in roots)
    whole = next((node for node in below if node.kind.time.own_slots), None)
    equal, made = tuple(equal_lengths(below)), made_samples(below)
    packed = packed_axes(network.nodes.values()) & {main, *secondary}
    in_python = any(map(is_of_python, inputs))
    return Axes(main, secondary, frozenset(features), equal, counted, whole, made, packed, in_python)


def made_samples(nodes: Iterable[Node]) -> dict[str, Callable[[Minibatch], int]]:
    """Return functions that count the samples of a minibatch on each axis that is made of an axis of samples.

    Axes whose lengths are computed are left out: these are known only when the network is computed.
    """
    counts: dict[str, Callable[[Minibatch], int]] = {}
    for node in nodes:
        if node.operation != "ToSequence" or node.axis is None:
            continue
        lengths = node.input(1) if len(node.inputs) > 1 else None
        while lengths is not None and lengths.operation in ("Pass", "NewReshape"):
            lengths = lengths.input(0)
        if lengths is None:
            counts[node.axis] = partial(_all_steps, (node.input(0).shape or (0,))[-1])
        elif lengths.kind.layout == "always" and not lengths.kind.sparse:
            counts[node.axis] = partial(_given_steps, lengths.name)
    return counts


def _all_steps(steps: int, minibatch: Minibatch) -> int:
    return steps * next(iter(minibatch.layouts.values())).num_sequences


def _given_steps(lengths: str, minibatch: Minibatch) -> int:
    name = next(stream for stream in minibatch.streams if stream.lower() == lengths.lower())
    total = float(np.sum(minibatch.streams[name]))
    return int(total) if math.isfinite(total) else 0


@dataclass(eq=False)
class Placed:
    """Places of the sequences of a minibatch.

    Attributes:
        lengths: by axis, the samples of each sequence.
        layouts: by axis, where sequence `i` lies if it shares its slot with others; on the other axes it has slot `i`.
        rows: by input, the row `t * S + s` of each sample in the reader's layout, sequence after sequence.
        cells: by axis, the number of cells of that layout, gaps included.
        columns: what a minibatch counts for in momentum: the largest of these numbers of a feature.
        counts: for each node that is reported, the samples that it is the sum of.
        tried: by axis and steps of a slot, the layouts found so far.
    """

    lengths: dict[str, Lengths]
    rows: dict[str, NDArray[np.int64]]
    cells: dict[str, int]
    columns: int
    counts: tuple[int, ...] = ()
    layouts: dict[str, Layout] = field(default_factory=dict[str, Layout])
    tried: dict[tuple[str, int], Layout] = field(default_factory=dict[tuple[str, int], Layout])

    @property
    def count(self) -> int:
        """Return the number of sequences."""
        return len(next(iter(self.lengths.values())))

    def packed(self, steps: Mapping[str, int]) -> Placed:
        """Return the same with slots of so many steps, by axis, which sequences share; never more slots than before."""
        layouts = dict(self.layouts)
        for axis, count in steps.items():
            layout = layouts.get(axis)
            if layout is None or count != layout.T:
                if (axis, count) not in self.tried:
                    self.tried[axis, count] = _packed(self.lengths[axis], count)
                candidate = self.tried[axis, count]
                layouts[axis] = candidate if layout is None or candidate.S < layout.S else layout
        return replace(self, layouts=layouts)

    def place_of(self, axis: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Step and slot of every sample, sequence after sequence."""
        if axis in self.layouts:
            step, slot, _ = self.layouts[axis].cells
            return step, slot
        return _cells(self.lengths[axis])

    def steps(self, axis: str) -> int:
        """Return the samples of the longest sequence, at least 1."""
        return max(1, int(self.lengths[axis].max(initial=0)))

    def layout(self, node: Node, results: Any = None) -> Layout:
        """Return the layout of a node's values.

        Args:
            node: the node.
            results: what the function of `compile_network` gave for this minibatch, needed where the node's axis is
                none of an input.
        """
        assert node.axis is not None
        if node.axis in self.layouts:
            return self.layouts[node.axis]
        lengths = self.lengths.get(node.axis)
        if lengths is None:
            lengths = np.asarray(results[node.axis + LENGTHS])[: self.count].astype(np.int64)
        slot = np.arange(len(lengths))
        return Layout(max(1, int(lengths.max(initial=0))), len(slot), np.stack([slot, slot, 0 * slot, lengths], axis=1))


def _packed(lengths: Lengths, steps: int) -> Layout:
    """Sequences after each other, each in the first slot with room, the longest one first: that leaves fewest gaps.

    Args:
        lengths: of the sequences.
        steps: of a slot, at least the longest sequence.
    """
    order = np.argsort(-lengths, kind="stable")
    sequences = pack.place(np.append(steps, lengths[order])).sequences[1:]  # the first one says how long slots are
    table = np.empty_like(sequences)
    table[order] = sequences
    table[:, 0] = np.arange(len(lengths))
    table[:, 1] -= 1
    return Layout(steps, int(table[:, 1].max(initial=0)) + 1, table)


def place(axes: Axes, nodes: Sequence[Node], minibatch: Minibatch, stream: Callable[[str], str]) -> Placed:
    """Put the sequences of a minibatch into slots.

    Args:
        axes: the axes.
        nodes: the inputs.
        minibatch: what the reader delivered.
        stream: the name of the reader's stream for an input.

    Raises:
        UserError: lengths do not fit; it names the sequence.
    """
    lengths: dict[str, Lengths] = {}
    owner: dict[str, Node] = {}
    rows: dict[str, NDArray[np.int64]] = {}
    cells: dict[str, int] = {}
    ids: NDArray[np.int64] | None = None
    for node in nodes:
        layout = minibatch.layouts[stream(node.name)]
        order = np.argsort(layout.sequences[:, 0], kind="stable")
        table = layout.sequences[order]
        if ids is not None and not np.array_equal(ids, table[:, 0]):
            raise UserError(
                "DifferentSequences", f"the stream of '{node.name}' has other sequences than those of the other inputs"
            )
        ids, steps = table[:, 0], table[:, 3] - table[:, 2]
        axis = node.axis or DEFAULT
        if (steps < 1).any() and (error := minibatch.missing(stream(node.name))) is not None:
            raise error
        if (steps < 1).any():
            index = int(np.argmax(steps < 1))
            raise UserError(
                "EmptySequence",
                f"the input '{node.name}' has no sample in {_name(minibatch, index)}",
                hint="in a network with several time axes every sequence needs at least one sample of each input",
            )
        if axis == ONE and (steps != 1).any():
            index = int(np.argmax(steps != 1))
            raise UserError(
                "DifferentLengths",
                f"the input '{node.name}' has {steps[index]} samples in {_name(minibatch, index)}, but takes one per "
                "sequence",
                span=node.span,
                hint="make it a sequence.input_variable, or give one sample for each sequence"
                if is_of_python(node)
                else "give the input a time axis of its own, or write one sample per sequence into the data",
            )
        if axis in lengths and not np.array_equal(lengths[axis], steps):
            raise _unequal(minibatch, lengths[axis], steps, owner[axis].name, node.name, node, axis)
        lengths[axis], owner[axis] = steps, node
        starts = np.cumsum(steps) - steps
        step = np.arange(int(steps.sum())) - np.repeat(starts, steps) + np.repeat(table[:, 2], steps)
        rows[node.name] = step * layout.S + np.repeat(table[:, 1], steps)
        cells[axis] = layout.T * layout.S
    for node, first, second in axes.equal:
        ones = np.ones_like(next(iter(lengths.values())))
        first_steps, second_steps = (
            ones if source.axis == ONE else lengths.get(source.axis or "") for source in (first, second)
        )
        if first_steps is not None and second_steps is not None and not np.array_equal(first_steps, second_steps):
            raise _unequal(minibatch, first_steps, second_steps, first.name, second.name, node, None)
    columns = max(cells[node.axis or DEFAULT] for node in nodes if node.name in axes.features)
    samples = {axis: int(steps.sum()) for axis, steps in lengths.items()}
    samples.setdefault(ONE, len(lengths[axes.main]))
    samples |= {axis: count(minibatch) for axis, count in axes.made.items() if axis in axes.counted}
    counts = tuple(samples.get(axis, samples[axes.main]) for axis in axes.counted)
    placed = Placed(lengths, rows, cells, columns, counts)
    return placed.packed({axis: placed.steps(axis) for axis in axes.packed})


def _name(minibatch: Minibatch, index: int) -> str:
    keys = minibatch.keys
    return f"sequence {keys[index]}" if index < len(keys) else f"sequence {index + 1} of the minibatch"


def count_of_samples(count: int) -> str:
    """In words."""
    return f"{count} sample" if count == 1 else f"{count} samples"


def _unequal(
    minibatch: Minibatch,
    first_lengths: Lengths,
    second_lengths: Lengths,
    first: str,
    second: str,
    node: Node,
    axis: str | None,
) -> UserError:
    index = int(np.argmax(first_lengths != second_lengths))
    lengths = int(first_lengths[index]), int(second_lengths[index])
    counts = f"{_name(minibatch, index)} has {count_of_samples(lengths[0])} of '{first}', {lengths[1]} of '{second}'"
    if axis is not None:
        return UserError(
            "DifferentLengths",
            f"inputs '{first}' and '{second}' have sequences of different lengths in one minibatch: {counts}",
            span=node.span,
            hint=f"both are on {shown(axis)}; "
            f"{own_axis(first if lengths[0] < lengths[1] else second, is_of_python(node))}",
        )
    message = f"joins sequences of different lengths: {counts}"
    if takes_one_step(node):
        several = max(lengths)
        message = (
            f"takes one sample of '{node.input(2).name}' for each sequence: {_name(minibatch, index)} has {several}"
        )
    text = f"{node.operation} '{node.name}' {message}"
    return UserError("DifferentLengths", text, span=node.span, hint=lengths_hint(node))


def takes_one_step(node: Node) -> bool:
    """Return whether a node scatters one step to each sequence."""
    return node.operation == "ScatterPacked" and node.input(1).axis == ONE


def lengths_hint(node: Node) -> str:
    """Return advice about a node whose operands have sequences of different lengths."""
    if takes_one_step(node):
        several = node.input(2).name
        return (
            f"one step of '{several}' goes with each sequence: take BS.Sequences.Last (x); sequence.last (x) in Python"
        )
    return "its operands must have as many steps in every sequence"


def packed_grids(placed: Sequence[Placed], axis: str, capacity: int, steps: int, slots: int, count: int) -> PackedGrid:
    """Return the places of the sequences of a stack on an axis on which they share slots.

    Args:
        placed: the minibatches.
        axis: the axis.
        capacity, steps, slots: the shape of arrays with a number for each cell.
        count: sequences of a minibatch, with those that are not there.
    """
    shape = (capacity, steps, slots)
    mask, owner = np.zeros(shape, bool), np.zeros(shape, np.int32)
    to_start, to_end = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    first, lengths = np.zeros((capacity, count), np.int32), np.zeros((capacity, count), np.int32)
    for k, placement in enumerate(placed):
        layout = placement.layouts[axis]
        step, slot, line = layout.cells
        _, slot_numbers, begin, end = layout.sequences.T
        mask[k, step, slot], owner[k, step, slot] = True, line
        to_start[k, step, slot], to_end[k, step, slot] = step - begin[line], end[line] - 1 - step
        first[k, : placement.count], lengths[k, : placement.count] = begin * slots + slot_numbers, end - begin
    return PackedGrid(mask, to_start, to_end, owner, first, lengths)


def grids(placed: Sequence[Placed], axis: str, capacity: int, steps: int, slots: int) -> Grid:
    """Return the places of the sequences of a stack on one axis; arrays (capacity, steps, slots)."""
    lengths = np.zeros((capacity, 1, slots), np.int32)
    for k, placement in enumerate(placed):
        lengths[k, 0, : placement.count] = placement.lengths[axis]
    step = np.arange(steps, dtype=np.int32)[None, :, None]
    mask = step < lengths
    return Grid(mask, np.where(mask, step, np.int32(-1)), np.where(mask, lengths - 1 - step, np.int32(-1)))


def put_dense(target: HostArray, values: HostArray, placed: Placed, node: Node) -> None:
    """Copy the samples of an input to their cells; `target`: (steps, slots, ...)."""
    axis, rows = node.axis or DEFAULT, placed.rows[node.name]
    if placed.count == 1 and values.shape[1] == 1 and axis not in placed.layouts:  # one slot here and there
        samples = values[rows[0] : rows[0] + len(rows), 0]
        target[: len(rows), 0] = samples.reshape(len(rows), *target.shape[2:])
        return
    step, slot = placed.place_of(axis)
    flat = values.reshape(-1, values.shape[-1])[rows]
    target[step, slot] = flat.reshape(len(flat), *target.shape[2:])


def rows_at(rows: Any, to: NDArray[np.int64], count: int) -> Any:
    """Return a CSR matrix of this many rows: those given at the places `to`, each once, the others empty."""
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]  # slow to import, and needed for sparse data only

    matrix: Any = scipy.sparse
    order = np.argsort(to, kind="stable")
    chosen = rows[order]
    counts = np.zeros(count + 1, np.int64)
    counts[to[order] + 1] = np.diff(chosen.indptr)
    return matrix.csr_matrix((chosen.data, chosen.indices, np.cumsum(counts)), shape=(count, rows.shape[-1]))


def _cells(lengths: Lengths) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Step and slot of every sample, sequence after sequence."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(starts, lengths), np.repeat(np.arange(len(lengths)), lengths)
