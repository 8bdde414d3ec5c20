"""Minibatches for several workers: each pads its own part to a shape that holds the parts of all.

Workers compute in step, so before a stack of minibatches is computed its shapes, sizes and number must be known to all.
They are exchanged for as many minibatches as are read ahead. A worker without data takes part with empty minibatches.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.step.feed import FILL_SECONDS, STACK_BYTES, Batcher, Later, Stage, State
from cntkpy.trainers.step.shape import Shape
from cntkpy.trainers.step.stack import Prepared, Stack


@dataclass(frozen=True)
class Part:
    """One worker's part of a minibatch, as the other workers know it.

    Attributes:
        shape: its `Shape` before padding.
        samples, columns: real ones, and cells with gaps.
        whole: columns of the minibatch of all workers if the reader knows them, else 0.
        truncated: its slots continue in the next.
        counts: see `Placed.counts`.
    """

    shape: Shape
    samples: int
    columns: int
    whole: int = 0
    truncated: bool = False
    counts: tuple[int, ...] = ()

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        return [self.shape.to_json(), self.samples, self.columns, self.whole, self.truncated, list(self.counts)]

    @classmethod
    def from_json(cls, saved: list[Any]) -> Part:
        """Return the inverse of `to_json`."""
        return cls(Shape.from_json(saved[0]), *saved[1:5], counts=tuple(saved[5]))


def whole(parts: list[Part]) -> Part:
    """Return the minibatch of all workers: the shape that holds every part, and what they have together."""
    shape = reduce(Shape.around, (part.shape for part in parts))
    columns = max(part.whole for part in parts) or sum(part.columns for part in parts)
    return Part(
        shape,
        sum(part.samples for part in parts),
        columns,
        truncated=any(part.truncated for part in parts),
        counts=tuple(map(sum, zip(*(part.counts for part in parts if part.counts), strict=True))),
    )


@dataclass
class PreparedPart(Prepared):
    """This worker's part of a minibatch.

    Attributes:
        whole: what all workers have of it.
    """

    whole: Part = field(kw_only=True)


@dataclass
class SharedStack(Stack):
    """A stack of this worker's parts; `samples`, `columns`, `steps` are those of the whole minibatches.

    Attributes:
        wholes: the minibatches of all workers.
    """

    wholes: list[Part] = field(default_factory=list[Part])

    @property
    def carried_slots(self) -> int:
        """With truncated sequences, the padded number of slots; else 0."""
        return self.batch.mask.shape[2] if self.wholes[0].truncated else 0

    @property
    def samples(self) -> NDArray[np.int64]:
        """Real samples of every whole minibatch."""
        return np.array([whole.samples for whole in self.wholes], dtype=np.int64)

    @property
    def columns(self) -> NDArray[np.int64]:
        """Cells of every whole minibatch before padding, the reader's gaps included."""
        return np.array([whole.columns for whole in self.wholes], dtype=np.int64)

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """As in `Stack`, of every whole minibatch."""
        return None if self.placed is None else np.array([whole.counts for whole in self.wholes], dtype=np.int64)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Time steps of every whole minibatch before padding."""
        return np.array([whole.shape.steps for whole in self.wholes], dtype=np.int64)


@dataclass
class SharedBatcher(Batcher):
    """A batcher whose stacks have the same shapes and lengths on all workers.

    Attributes:
        group: the workers.
        ends_block: called with the samples of a whole minibatch, in order; says whether a stack has to end with it.
    """

    group: ProcessGroup = None  # type: ignore[assignment]
    ends_block: Callable[[int], bool] = lambda samples: False
    fill_seconds = math.inf
    fails_late = False  # a worker that fails does so at once: the others wait for it

    @classmethod
    def like(cls, batcher: Batcher, group: ProcessGroup, ends: Callable[[int], bool] | None = None) -> SharedBatcher:
        """Return the same batcher for one of several workers, whose minibatches are that much smaller."""
        values: dict[str, Any] = {attribute.name: getattr(batcher, attribute.name) for attribute in fields(Batcher)}
        values["minibatch_size"] = -(-batcher.minibatch_size // group.communicator.size)
        values["padding"] = batcher.padding.with_own_slots()  # the slots of a sequence are on one device
        values["hurries"] = False  # all workers plan for the same minibatches, whatever their clocks say
        return cls(**values, group=group, ends_block=ends or (lambda samples: False))

    def all_prepared(self, source: Stage[Minibatch], is_due: Callable[[int], bool]) -> Stage[Prepared]:
        """Return the stage that prepares the minibatches of all workers."""
        return Together(source, self, is_due)

    def is_truncated(self, prepared: Prepared) -> bool:
        """Return whether slots of a minibatch continue in the next one, of any worker."""
        return _whole(prepared).truncated

    def own_shape(self, prepared: Prepared) -> Shape:
        """Return the shape that holds the parts of all workers."""
        return self._share(_whole(prepared))

    def ends(self, prepared: Prepared) -> bool:
        """Return whether a stack ends with a minibatch, in all workers."""
        return self.ends_block(_whole(prepared).samples)

    def stack(self, pending: list[Prepared], shape: Shape, capacity: int) -> Stack:
        """Return the parts of minibatches as a stack."""
        stack = self.padding.stack(pending, shape, capacity)
        wholes = list(map(_whole, pending))
        return SharedStack(stack.batch, stack.minibatches, stack.layouts, stack.placed, wholes=wholes)

    def part_of(self, prepared: Prepared) -> Part:
        """Return what the other workers have to know of this worker's part."""
        layout, minibatch = prepared.layout, prepared.minibatch
        placed, shape, together = prepared.placed, self.padding.shape(prepared), minibatch.columns_together
        columns = layout.T * layout.S if placed is None else placed.columns
        counts = () if placed is None else placed.counts
        return Part(shape, layout.num_samples, columns, together, minibatch.truncated, counts)

    def no_part(self) -> Part:
        """Return the part of a worker that has no data left."""
        return Part(Shape(0, 0, ((1, 1),) * len(self.padding.inputs.sparse), (0,) * self.padding.secondary), 0, 0)

    def nothing(self, state: State | None) -> Prepared:
        """Return the minibatch of a worker that has no data left."""
        layout = Layout(1, 0, np.zeros((0, 4), np.int64))
        inputs = self.padding.inputs
        streams: dict[str, Any] = {node.name: np.zeros((1, 0, inputs.sizes[node.name])) for node in inputs.dense}
        if inputs.sparse:
            import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

            streams |= {node.name: scipy.sparse.csr_matrix((0, inputs.sizes[node.name])) for node in inputs.sparse}
        return self.prepared(Minibatch(streams, dict.fromkeys(streams, layout)), state)

    def _share(self, part: Part) -> Shape:
        """Return the shape that the parts of a minibatch need; devices of one process get equally many slots."""
        steps, slots, devices = max(1, part.shape.steps), max(1, part.shape.slots), len(self.group.local)
        if (
            steps == 1 and not part.shape.secondary and slots > self.minibatch_size
        ):  # shares of frames differ a little from minibatch to minibatch
            room = max(4, self.minibatch_size // 8)
            slots = -(-slots // room) * room
        secondary = tuple(max(1, steps) for steps in part.shape.secondary)
        return Shape(steps, -(-slots // devices) * devices, part.shape.sparse, secondary)

    def _know_share(self, shape: Shape) -> None:
        """Let a share of frames have a shape of its own where the only ones that hold it are twice the nominal number:
        those of the epochs before the parallel ones, for instance, in which every worker has whole minibatches."""
        frames = shape.steps == 1 and not shape.secondary and not self.exact
        holding = [bucket.slots for bucket in self.buckets.known if bucket.steps == 1 and bucket.slots >= shape.slots]
        if frames and holding and min(holding) >= 2 * self.minibatch_size > shape.slots:
            self.buckets.know([shape])

    def shape(self, prepared: Prepared) -> Shape:
        """Return the padded shape for the parts of a minibatch."""
        devices, share, truncated = len(self.group.local), self.own_shape(prepared), self.is_truncated(prepared)
        if share.slots > self.minibatch_size and not share.sparse:
            self._know_share(share)
        shape = self.buckets.fit(
            share, self.minibatch_size, slots_stay=truncated, exact=self.exact, weights=self.weights
        )
        self.buckets.use(shape)
        return replace(shape, slots=-(-shape.slots // devices) * devices)


class Together(Later[Minibatch, Prepared]):
    """This worker's parts of the minibatches, with what all workers have of them.

    Args:
        source: this worker's minibatches.
        batcher: pads and stacks them.
        is_due: see `Batcher.stacks`.
    """

    def __init__(self, source: Stage[Minibatch], batcher: SharedBatcher, is_due: Callable[[int], bool]) -> None:
        super().__init__(source)
        self._batcher, self._is_due = batcher, is_due
        self._drop()

    def __next__(self) -> Prepared:
        if not self._planned and not self._finished:
            self._planned.extend(self._plan())
            self._finished = not self._planned
        if not self._planned:
            raise StopIteration
        prepared = self._planned.popleft()
        self._number += 1
        self._state = prepared.state
        return prepared

    def _drop(self) -> None:
        self._planned: deque[Prepared] = deque()
        self._held: list[Prepared] = []
        self._ended = self._stopped = self._finished = False
        self._number = 0

    def _plan(self) -> list[Prepared]:
        """Return the next minibatches of all workers, to the next one that is due; none at the end of all data.

        Raises:
            Stopped: on all workers, when reading was stopped on one of them.
        """
        began, batcher = time.monotonic(), self._batcher
        while not (self._ended or self._stopped or self._is_enough()):
            try:
                minibatch = next(self._source, None)
            except Stopped:
                self._stopped = True  # the others wait for this worker in the exchange below
                break
            if minibatch is None:
                self._ended = True
            else:
                self._held.append(batcher.prepared(minibatch, self._source.get_state()))
        own_parts = [batcher.part_of(held).to_json() for held in self._held]
        slow = time.monotonic() - began > FILL_SECONDS
        answers = batcher.group.communicator.exchange([self._stopped, slow, self._ended, own_parts])
        if any(stopped for stopped, _, _, _ in answers):
            raise Stopped
        batcher.is_quick = not any(slow for _, slow, _, _ in answers)
        plans = [(ended, [Part.from_json(part) for part in parts]) for _, _, ended, parts in answers]
        going_on = [len(parts) for ended, parts in plans if not ended]
        count = min(going_on) if going_on else max(len(parts) for _, parts in plans)
        batcher.lay_out_pieces(any(part.truncated for _, parts in plans for part in parts))
        taken, self._held = self._held[:count], self._held[count:]
        state = taken[-1].state if taken else self._state
        taken += [batcher.nothing(state) for _ in range(count - len(taken))]
        empty = batcher.no_part()
        columns = [[parts[k] if k < len(parts) else empty for _, parts in plans] for k in range(count)]
        return [
            PreparedPart(part.minibatch, part.layout, part.sparse, part.placed, part.state, whole=whole(column))
            for part, column in zip(taken, columns, strict=True)
        ]

    def _is_enough(self) -> bool:
        """Return whether what is held may fill a stack: few enough bytes, not beyond a minibatch that is due."""
        count = len(self._held)
        size = sum(prepared.minibatch.nbytes for prepared in self._held)
        is_due = any(self._is_due(self._number + k) for k in range(1, count + 1))
        return count >= self._batcher.capacity or size > STACK_BYTES or is_due


def _whole(prepared: Prepared) -> Part:
    """Return what all workers have of a minibatch."""
    assert isinstance(prepared, PreparedPart)
    return prepared.whole
