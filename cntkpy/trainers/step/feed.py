"""The feed: minibatches of a source on their way to the compiled step, as one chain of stages.

    source -> prepared -> bucketed -> stacked -> placed

Minibatches are padded to one of few shapes, and several of them are stacked so that one call of the compiled function
handles them all (a call costs more than a small minibatch). Which shapes are best is seen from the first minibatches,
which are read ahead; of a program, whose next minibatch depends on the results of this one, nothing is read ahead.

The state of each stage is the position of the source after the last value that the stage has given, however far the
stages before it have read.

On a device that has memory of its own, a computation is begun and not waited for, and so is a copy to the device. While
the device computes stack n, stack n + 1 is read and copied to it:

    host      run n | read n+1 | wait for n-1 | place n+1 | run n+1 | read n+2 | wait for n | ...
    copies                                      copy n+1 ............          copy n+2 ...
    device    compute n ........................................ | compute n+1 .............

A stack so takes as long as the slowest of reading, copying and computing, and not as their sum. Two stacks are in the
memory of the device at most: n + 1 is placed after n - 1 was computed.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.common.planned import State
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.step.axes import network_axes
from cntkpy.trainers.step.buckets import COMPILE_WORK, Buckets
from cntkpy.trainers.step.padding import Inputs, Padding, input_nodes, padding_of
from cntkpy.trainers.step.shape import Shape
from cntkpy.trainers.step.stack import Prepared, Stack

if TYPE_CHECKING:
    from cntkpy.networks.compile.evaluate import Batch

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

SLOW_SECONDS = 1.0
"""Seconds of reading a stack from which on the next is not read early: progress lines would wait for it."""

S = TypeVar("S")
T = TypeVar("T")


class Stage(Iterator[T]):
    """A stage of a feed, or its source."""

    def get_state(self) -> State | None:
        """Return the position of the source after the last value that was given; None: the source has none."""
        return None

    def set_state(self, state: State) -> None:
        """Continue at a position that `get_state` has returned."""
        raise NotImplementedError


class Unsaved(Stage[T]):
    """A source without a position.

    Args:
        values: what it gives.
    """

    def __init__(self, values: Iterator[T]) -> None:
        self._values = values

    def __next__(self) -> T:
        return next(self._values)


class Pushed(Stage[Minibatch]):
    """A source that a program fills; it ends where nothing waits, and continues when something does.

    Args:
        waiting: minibatches that wait to be read.

    Attributes:
        waiting: the same.
    """

    def __init__(self, waiting: Iterable[Minibatch] = ()) -> None:
        self.waiting = deque(waiting)

    def __next__(self) -> Minibatch:
        if not self.waiting:
            raise StopIteration
        return self.waiting.popleft()


class Later(Stage[T], Generic[S, T]):
    """A stage after another one.

    Args:
        source: the stage before it.
    """

    def __init__(self, source: Stage[S]) -> None:
        self._source = source
        self._state: State | None = None

    def get_state(self) -> State | None:
        """See `Stage`."""
        return self._source.get_state() if self._state is None else self._state

    def set_state(self, state: State) -> None:
        """See `Stage`."""
        self._source.set_state(state)
        self._state = state
        self._drop()

    def _drop(self) -> None:
        """Drop what was read ahead."""


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
    fill_seconds = FILL_SECONDS
    """A stack is not filled further after that time."""
    fails_late = True
    """True: an error of the source is raised after the minibatches before it."""
    is_quick = False
    """The next stack may be read while results are waited for that are due now."""

    def __post_init__(self) -> None:
        self._last = Shape(-1, -1)  # that of no minibatch, not even of an empty one
        self._pad(self.padding)

    def _pad(self, padding: Padding) -> None:
        """Pad minibatches so from now on."""
        self.padding = padding
        self.buckets.keep(len(padding.inputs.sparse), padding.secondary, padding.secondary + 1 if padding.packed else 0)

    @classmethod
    def of(cls, network: ValidatedNetwork, roots: Sequence[Node], minibatch_size: int, **options: Any) -> Batcher:
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

    def stacks(self, source: Iterator[Minibatch], is_due: Callable[[int], bool]) -> Stacked:
        """Return the feed up to stacks of consecutive minibatches.

        Args:
            source: the minibatches of an epoch.
            is_due: called with the number of a minibatch (from 1), says whether a stack has to end with it.
        """
        stage = source if isinstance(source, Stage) else Unsaved(source)
        return Stacked(Bucketed(self.all_prepared(stage, is_due), self), self, is_due)

    def alone(self, minibatch: Minibatch) -> Stack:
        """Return the stack of a minibatch alone; no buckets are chosen."""
        prepared = self.prepared(minibatch)
        return self.stack([prepared], self.shape(prepared), 1)

    def all_prepared(self, source: Stage[Minibatch], is_due: Callable[[int], bool]) -> Stage[Prepared]:
        """Return the stage that prepares minibatches; see `stacks`."""
        del is_due
        return EachPrepared(source, self)

    def has_buckets(self, shape: Shape) -> bool:
        """Return whether buckets are chosen already, or not needed: minibatches of single frames are all alike."""
        frames = shape.steps == 1 and not shape.secondary and not shape.sparse
        return frames or self.exact or not self.chosen or self.minibatch_size in self.buckets.chosen

    def prepared(self, minibatch: Minibatch, state: State | None = None) -> Prepared:
        """Return what is known of a minibatch before there is a shape for it; `state`: of the source after it."""
        self.lay_out_pieces(minibatch.truncated)
        prepared = self.padding.prepare(minibatch)
        prepared.state = state
        return prepared

    def lay_out_pieces(self, truncated: bool) -> None:
        """Lay out sequences as the reader has cut them, if it has."""
        if truncated and self.padding.lays_out:
            self._pad(self.padding.of_pieces())

    def is_truncated(self, prepared: Prepared) -> bool:
        """Return whether slots of a minibatch continue in the next one."""
        return prepared.minibatch.truncated

    def ends(self, prepared: Prepared) -> bool:
        """Return whether a stack ends with a minibatch; called once for each, in order."""
        del prepared
        return False

    def own_shape(self, prepared: Prepared) -> Shape:
        """Return the shape of a minibatch before padding."""
        return self.padding.shape(prepared)

    def within(self, prepared: Prepared) -> Callable[[Shape], Shape]:
        """Return a function that gives the shape of a minibatch in a bucket, see `Padding.shape_in`."""
        return partial(self.padding.shape_in, prepared=prepared)

    def stack(self, pending: list[Prepared], shape: Shape, capacity: int) -> Stack:
        """Return minibatches of one shape as a stack."""
        return self.padding.stack(pending, shape, capacity)

    def shape(self, prepared: Prepared) -> Shape:
        """Return the shape that a minibatch is padded to."""
        layout = prepared.layout
        plain = not prepared.sparse and prepared.placed is None
        if plain and self._last.slots == layout.S and self._last.steps == layout.T:
            return self._last
        shape, minibatch_size = self.own_shape(prepared), self.minibatch_size
        truncated = prepared.minibatch.truncated
        shorter = shape.steps == 1 and shape.slots < self.max_minibatch_size
        is_small = self.max_minibatch_size * self.weights <= SMALL_STEP_WORK
        if plain and shorter and is_small and not truncated and not self.exact:
            minibatch_size = self.max_minibatch_size
            shape = Shape(1, minibatch_size)
        within = self.within(prepared)
        ragged = any(layout.num_samples < layout.T * layout.S for layout in prepared.minibatch.layouts.values())
        options: dict[str, Any] = {"exact": self.exact, "within": within, "ragged": ragged, "weights": self.weights}
        self._last = self.buckets.fit(shape, minibatch_size, slots_stay=truncated, **options)
        if self.buckets.use(self._last) and self.trace_level >= 2:
            text = "Compiling for minibatches of up to %d time steps and %d sequences (compilation %d)."
            log.info(text, self._last.steps, self._last.slots, len(self.buckets.used))
        return self._last

    def capacity_of(self, shape: Shape) -> int:
        """Return how many minibatches of a shape a stack has room for."""
        return max(1, min(self.capacity, STACK_BYTES // self.padding.inputs.bytes(shape)))


class Through(Later[T, T]):
    """The values of a stage, each passed through a generator that has no state.

    Args:
        source: the stage.
        generator: yields each value after it has looked at it.
    """

    def __init__(self, source: Stage[T], generator: Callable[[Iterator[T]], Iterator[T]]) -> None:
        super().__init__(source)
        self._values = generator(source)

    def __next__(self) -> T:
        return next(self._values)


class EachPrepared(Later[Minibatch, Prepared]):
    """The minibatches, with what is known of them before there is a shape for them.

    Args:
        source: the minibatches.
        batcher: pads and stacks them.
    """

    def __init__(self, source: Stage[Minibatch], batcher: Batcher) -> None:
        super().__init__(source)
        self._batcher = batcher

    def __next__(self) -> Prepared:
        return self._batcher.prepared(next(self._source), self._source.get_state())


class Bucketed(Later[Prepared, Prepared]):
    """The same minibatches; before the first whose shapes may differ, buckets are chosen for their shapes.

    Another run looks at as many, unless the source is slow. What the source raises is raised after the minibatches
    before it if `Batcher.fails_late`, as if nothing were read ahead.

    Args:
        source: the minibatches.
        batcher: pads and stacks them.
    """

    def __init__(self, source: Stage[Prepared], batcher: Batcher) -> None:
        super().__init__(source)
        self._batcher = batcher
        self._held: deque[Prepared] = deque()
        self._failure: Exception | None = None

    def __next__(self) -> Prepared:
        if not self._held:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            first = next(self._source)
            if self._batcher.has_buckets(self._batcher.own_shape(first)):
                self._state = first.state
                return first
            self._choose(first)
        prepared = self._held.popleft()
        self._state = prepared.state
        return prepared

    def _drop(self) -> None:
        self._held.clear()
        self._failure = None

    def _choose(self, first: Prepared) -> None:
        """Choose buckets for the shapes of a minibatch and of those after it, which are held."""
        batcher, size = self._batcher, self._batcher.minibatch_size
        self._held.append(first)
        shapes = [batcher.own_shape(first)]
        ended = False
        try:
            ended = self._hold(shapes)
        except Exception as error:
            if not batcher.fails_late or isinstance(error, Stopped):
                raise
            self._failure = error
        batcher.buckets.choose(
            shapes,
            size,
            slots_stay=batcher.is_truncated(first),
            most=batcher.chosen,
            least_saving=COMPILE_WORK / max(1.0, batcher.weights) if ended else 0.0,
        )
        if batcher.padding.packed:
            batcher.buckets.tighten(size, shapes, list(map(batcher.within, self._held)))

    def _hold(self, shapes: list[Shape]) -> bool:
        """Read minibatches to choose buckets for; return whether the source has ended.

        Args:
            shapes: those of the held ones to choose buckets for; fewer where the source is slow.
        """
        began, size, batcher = time.monotonic(), 0, self._batcher
        largest = smallest = shapes[0]
        enough = LOOKAHEAD
        while len(self._held) < enough and size < STACK_BYTES:
            if batcher.hurries and time.monotonic() - began > LOOKAHEAD_SECONDS:
                del shapes[1 << (len(shapes).bit_length() - 1) :]
                return False
            following = next(self._source, None)
            if following is None:
                return True
            self._held.append(following)
            shapes.append(batcher.own_shape(following))
            size += batcher.padding.inputs.bytes(shapes[-1])
            extremes = largest.around(shapes[-1]), smallest.inside(shapes[-1])
            if extremes != (largest, smallest):
                largest, smallest = extremes
                enough = min(max(enough, 2 * len(self._held)), MAX_LOOKAHEAD)
        return False


class Stacked(Later[Prepared, Stack]):
    """Consecutive minibatches of one shape, stacked.

    Args:
        source: the minibatches.
        batcher: pads and stacks them.
        is_due: see `Batcher.stacks`.
    """

    def __init__(self, source: Stage[Prepared], batcher: Batcher, is_due: Callable[[int], bool]) -> None:
        super().__init__(source)
        self._batcher, self._is_due = batcher, is_due
        self._number, self._capacity = 0, 0
        self._shape = Shape(0, 0)
        self._next: tuple[Prepared, Shape] | None = None
        """The minibatch that begins the next stack, of another shape."""

    def __next__(self) -> Stack:
        if self._state is None:
            self._state = self._source.get_state()
        batcher, began = self._batcher, 0.0
        pending: list[Prepared] = []
        while (item := self._next or self._read()) is not None:
            prepared, shape = item
            self._next = None
            if shape is not self._shape and shape != self._shape:
                if pending:
                    self._next = item
                    break
                self._shape, self._capacity = shape, batcher.capacity_of(shape)
            if not pending:
                began = time.monotonic()
            pending.append(prepared)
            self._number += 1
            is_full = len(pending) == self._capacity
            if batcher.ends(prepared) or is_full or self._is_due(self._number):
                break
            if time.monotonic() - began > batcher.fill_seconds:
                break
        if not pending:
            raise StopIteration
        self._state = pending[-1].state
        return batcher.stack(pending, self._shape, self._capacity)

    def get_state(self) -> State | None:
        """See `Stage`; None: the source was not asked for anything yet."""
        return self._state

    def _drop(self) -> None:
        self._next = None

    def _read(self) -> tuple[Prepared, Shape] | None:
        prepared = next(self._source, None)
        return None if prepared is None else (prepared, self._batcher.shape(prepared))


class PlacedStack(NamedTuple):
    """A stack as the compiled step takes it.

    Attributes:
        stack: the minibatches.
        batch: their data, in the memory of the device or on their way to it.
    """

    stack: Stack
    batch: Batch


class Placed(Later[Stack, PlacedStack]):
    """The stacks, placed on the device; the next can be read and placed before it is asked for.

    Args:
        source: the stacks.
        place: begins to copy a stack to the device.

    Attributes:
        waited: seconds that stacks were waited for since this was set to 0.
    """

    def __init__(self, source: Stage[Stack], place: Callable[[Stack], PlacedStack]) -> None:
        super().__init__(source)
        self._place = place
        self._next: tuple[PlacedStack, State | None] | BaseException | None = None
        self._seconds = self.waited = 0.0

    def __next__(self) -> PlacedStack:
        item, self._next = self._next, None
        if item is None:
            stack, state = self._read()
            item = self._place(stack), state
        if isinstance(item, BaseException):
            raise item
        placed, self._state = item
        return placed

    def _drop(self) -> None:
        self._next = None

    @property
    def is_slow(self) -> bool:
        """Return whether the last stack took long to read."""
        return self._seconds > SLOW_SECONDS

    def read_ahead(self, wait: Callable[[], None] = lambda: None) -> None:
        """Read and place the next stack; an error in doing so is raised when that stack is asked for.

        Args:
            wait: called before it is placed.
        """
        try:
            stack, state = self._read()
        except (Exception, Stopped) as error:
            self._next = error
            return
        wait()
        try:
            self._next = self._place(stack), state
        except Exception as error:
            self._next = error

    def _read(self) -> tuple[Stack, State | None]:
        began = time.perf_counter()
        stack = next(self._source)
        self._seconds = time.perf_counter() - began
        self.waited += self._seconds
        return stack, self._source.get_state()
