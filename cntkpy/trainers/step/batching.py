"""From the reader's minibatches to what the compiled network eats: padded, stacked, of few different shapes.

Minibatches are padded to one of few shapes, and several of them are stacked so that one call of the compiled function
handles them all (a call costs more than a small minibatch). Which shapes are best is seen from the first minibatches,
which are read ahead.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.step.axes import network_axes
from cntkpy.trainers.step.buckets import COMPILE_WORK, Buckets
from cntkpy.trainers.step.padding import Inputs, Padding, input_nodes, padding_of
from cntkpy.trainers.step.shape import Shape
from cntkpy.trainers.step.stack import Prepared, Stack

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
class Batcher:
    """Pads and stacks the minibatches of a reader for one network.

    Attributes:
        padding: of the network's inputs.
        minibatch_size: nominal number of samples; a frame minibatch is padded to it.
        buckets: the shapes in use; grows as new ones are met.
        capacity: minibatches per stack, an upper bound.
        exact: no padding, because some node depends on the number of columns.
        trace_level: from 2 on, new shapes are logged.
        chosen: buckets to choose for minibatches that are read ahead; 0: take them as they come.
        hurries: read ahead fewer where the source is slow.
        weights: elements of the network's parameters.
        max_minibatch_size: the most samples of a minibatch in any epoch. Minibatches of single frames are padded to
            this size where the network is so small that padding takes less time than compiling a program for each size.
    """

    padding: Padding
    minibatch_size: int
    buckets: Buckets = field(default_factory=Buckets)
    capacity: int = CAPACITY
    exact: bool = False
    trace_level: int = 0
    chosen: int = 0
    hurries: bool = True
    weights: float = math.inf
    max_minibatch_size: int = 0

    def __post_init__(self) -> None:
        self._last = Shape(-1, -1)  # that of no minibatch, not even of an empty one
        self._pad(self.padding)

    def _pad(self, padding: Padding) -> None:
        """Pad minibatches so from now on."""
        self.padding = padding
        self.buckets.keep(len(padding.inputs.sparse), padding.secondary, padding.secondary + 1 if padding.packed else 0)

    @classmethod
    def of(cls, network: ValidatedNetwork, roots: Sequence[Node], minibatch_size: int, **options: Any) -> "Batcher":
        """Return the batcher of what some nodes depend on; `options` are further arguments of `Batcher`."""
        below = network.below(roots)
        exact = any(node.kind.columns for node in below)
        options["weights"] = sum(math.prod(node.shape or ()) for node in below if node.trainable)
        padding = padding_of(Inputs(input_nodes(network, roots), network.dtype), network_axes(network, roots))
        if padding.lays_out:  # their programs take long to compile
            options["chosen"] = min(options.get("chosen", 0), BUCKETS_OF_SEVERAL_AXES)
        if padding.packed and options["weights"] < PACKED_WEIGHTS:
            padding = padding.with_own_slots()
        return cls(padding, minibatch_size, exact=exact, **options)

    def stacks(self, source: Iterator[Minibatch], is_due: Callable[[int], bool]) -> Iterator[Stack]:
        """Yield stacks of consecutive minibatches.

        Args:
            source: the minibatches of an epoch.
            is_due: called with the number of a minibatch (from 1), says whether a stack has to end with it.
        """
        prepared = map(self._prepare, source)
        ahead = LookAhead(self).read(
            prepared, self._own_shape, lambda prepared: prepared.minibatch.truncated, within=self._within
        )
        for pending, shape, capacity in self._groups(ahead, self._shape, is_due, FILL_SECONDS):
            yield self._emptied(pending, shape, capacity)

    def _emptied(self, pending: list[Prepared], shape: Shape, capacity: int) -> Stack:
        """Return a stack of minibatches, and drop what was prepared for it: it is not needed next to the stack."""
        stack = self.padding.stack(pending, shape, capacity)
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
        """Yield consecutive minibatches of one shape, that shape, and the capacity of a stack of them.

        Args:
            source: the minibatches.
            shape_of: the shape that one is padded to.
            is_due: see `stacks`.
            wait: seconds after which a group is not waited for any more.
            ends: asked once for every minibatch, whether a group ends with it.
        """
        pending: list[T] = []
        shape, capacity, began = Shape(0, 0), 0, 0.0
        for number, minibatch in enumerate(source, 1):
            wanted = shape_of(minibatch)
            if wanted is not shape and wanted != shape:
                if pending:
                    yield pending, shape, capacity
                    pending = []
                shape, capacity = wanted, self._capacity(wanted)
            if not pending:
                began = time.monotonic()
            pending.append(minibatch)
            ended = ends is not None and ends(minibatch)
            if ended or len(pending) == capacity or is_due(number) or time.monotonic() - began > wait:
                yield pending, shape, capacity
                pending = []
        if pending:
            yield pending, shape, capacity

    def has_buckets(self, shape: Shape) -> bool:
        """Return whether buckets are chosen already, or not needed: minibatches of single frames are all alike."""
        frames = shape.steps == 1 and not shape.secondary and not shape.sparse
        return frames or self.exact or not self.chosen or self.minibatch_size in self.buckets.chosen

    def _prepare(self, minibatch: Minibatch) -> Prepared:
        if minibatch.truncated and self.padding.lays_out:
            self._pad(self.padding.of_pieces())
        return self.padding.prepare(minibatch)

    def _own_shape(self, prepared: Prepared) -> Shape:
        return self.padding.shape(prepared)

    def _within(self, prepared: Prepared) -> Callable[[Shape], Shape]:
        return partial(self.padding.shape_in, prepared=prepared)

    def _shape(self, prepared: Prepared) -> Shape:
        """Return the shape that a minibatch is padded to."""
        layout = prepared.layout
        plain = not prepared.sparse and prepared.placed is None
        if plain and self._last.slots == layout.S and self._last.steps == layout.T:
            return self._last
        shape, minibatch_size = self._own_shape(prepared), self.minibatch_size
        truncated = prepared.minibatch.truncated
        shorter = shape.steps == 1 and shape.slots < self.max_minibatch_size
        is_small = self.max_minibatch_size * self.weights <= SMALL_STEP_WORK
        if plain and shorter and is_small and not truncated and not self.exact:
            minibatch_size = self.max_minibatch_size
            shape = Shape(1, minibatch_size)
        within = self._within(prepared)
        ragged = any(layout.num_samples < layout.T * layout.S for layout in prepared.minibatch.layouts.values())
        options: dict[str, Any] = {"exact": self.exact, "within": within, "ragged": ragged, "weights": self.weights}
        self._last = self.buckets.fit(shape, minibatch_size, slots_stay=truncated, **options)
        if self.buckets.use(self._last) and self.trace_level >= 2:
            text = "Compiling for minibatches of up to %d time steps and %d sequences (compilation %d)."
            log.info(text, self._last.steps, self._last.slots, len(self.buckets.used))
        return self._last

    def _capacity(self, shape: Shape) -> int:
        return max(1, min(self.capacity, STACK_BYTES // self.padding.inputs.bytes(shape)))


class LookAhead:
    """Reads minibatches ahead to choose buckets for their shapes.

    Args:
        batcher: pads and stacks them.
    """

    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher

    def read(
        self,
        source: Iterator[T],
        own_shape: Callable[[T], Shape],
        truncated: Callable[[T], bool],
        *,
        within: Callable[[T], Callable[[Shape], Shape]] | None = None,
        fails_late: bool = True,
    ) -> Iterator[T]:
        """Yield the minibatches; before the first whose shapes may differ, buckets are chosen for their shapes.

        Another run looks at as many, unless the source is slow. What the source raises is raised after the minibatches
        before it if it `fails_late`, as if nothing were read ahead.

        Args:
            source: the minibatches.
            own_shape: the shape of one before padding.
            truncated: whether its sequences are truncated.
            within: gives its shape in a bucket, see `Padding.shape_in`; None: sequences share no slots.
            fails_late: see above.
        """
        for first in source:
            if self._batcher.has_buckets(own_shape(first)):
                yield first
                continue
            held, shapes = deque([first]), [own_shape(first)]
            failure: Exception | None = None
            ended = False
            try:
                ended = self._hold(source, own_shape, held, shapes)
            except Exception as error:
                if not fails_late or isinstance(error, Stopped):
                    raise
                failure = error
            self._batcher.buckets.choose(
                shapes,
                self._batcher.minibatch_size,
                slots_stay=truncated(first),
                most=self._batcher.chosen,
                least_saving=COMPILE_WORK / max(1.0, self._batcher.weights) if ended else 0.0,
            )
            if within is not None and self._batcher.padding.packed:
                self._batcher.buckets.tighten(self._batcher.minibatch_size, shapes, list(map(within, held)))
            while held:
                yield held.popleft()
            if failure is not None:
                raise failure

    def _hold(self, source: Iterator[T], own_shape: Callable[[T], Shape], held: deque[T], shapes: list[Shape]) -> bool:
        """Read minibatches to choose buckets for; return whether the source has ended.

        Args:
            source: the minibatches.
            own_shape: the shape of one before padding.
            held: the first of them; the others are added.
            shapes: those of `held` to choose buckets for; fewer where the source is slow.
        """
        began, size = time.monotonic(), 0
        largest = smallest = shapes[0]
        enough = LOOKAHEAD
        while len(held) < enough and size < STACK_BYTES:
            if self._batcher.hurries and time.monotonic() - began > LOOKAHEAD_SECONDS:
                del shapes[1 << (len(shapes).bit_length() - 1) :]
                return False
            following = next(source, None)
            if following is None:
                return True
            held.append(following)
            shapes.append(own_shape(following))
            size += self._batcher.padding.inputs.bytes(shapes[-1])
            extremes = largest.around(shapes[-1]), smallest.inside(shapes[-1])
            if extremes != (largest, smallest):
                largest, smallest = extremes
                enough = min(max(enough, 2 * len(held)), MAX_LOOKAHEAD)
        return False
