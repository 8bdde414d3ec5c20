"""Minibatches for several workers: each pads its own part to a shape that holds the parts of all.

Workers compute in step, so before a stack of minibatches is computed its shapes, sizes and number must be known to all.
They are exchanged for as many minibatches as are read ahead. A worker without data takes part with empty minibatches.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.parallel.balancing import balance, moves
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.step.batching import FILL_SECONDS, STACK_BYTES, Batcher, LookAhead
from cntkpy.trainers.step.shape import Shape
from cntkpy.trainers.step.stack import Prepared, Stack, stream_of

MIN_WORK, FRAME_BYTES = 1 << 26, 1 << 16
"""Workers give each other frames from so many weights times samples of a worker on (milliseconds), and up to so many
bytes of a frame."""


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

    @property
    def frames(self) -> bool:
        """Return whether it is single frames without gaps."""
        shape = self.shape
        alone = not (shape.sparse or shape.secondary or self.counts or self.truncated)
        return alone and shape.steps == 1 and self.samples == self.columns == shape.slots

    def to_json(self) -> list[Any]:
        """JSON-able form."""
        return [self.shape.to_json(), self.samples, self.columns, self.whole, self.truncated, list(self.counts)]

    @classmethod
    def from_json(cls, saved: list[Any]) -> "Part":
        """The inverse of `to_json`."""
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


_Read = list[tuple[Prepared, Part]]
"""This worker's parts of minibatches, and what all workers have of them."""


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
        ends: called with the samples of a whole minibatch, in order; says whether a stack has to end with it.
        levels: the workers give each other frames where that takes less time than padding, see `levelling`.
    """

    group: ProcessGroup = None  # type: ignore[assignment]
    ends: Callable[[int], bool] = lambda samples: False
    levels: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._held: list[Prepared] = []
        self._ended = self._stopped = False
        self._quick = False
        self._made: Iterator[Stack] = iter(())
        self._following: Stack | BaseException | None = None

    @classmethod
    def like(
        cls,
        batcher: Batcher,
        group: ProcessGroup,
        ends: Callable[[int], bool] | None = None,
        levels: bool = False,
    ) -> "SharedBatcher":
        """Return the same batcher for one of several workers, whose minibatches are that much smaller."""
        values: dict[str, Any] = {attribute.name: getattr(batcher, attribute.name) for attribute in fields(Batcher)}
        values["minibatch_size"] = -(-batcher.minibatch_size // group.communicator.size)
        values["padding"] = batcher.padding.with_own_slots()  # the slots of a sequence are on one device
        values["hurries"] = False  # all workers plan for the same minibatches, whatever their clocks say
        return cls(**values, group=group, ends=ends or (lambda samples: False), levels=levels)

    def stacks(self, source: Iterator[Minibatch], is_due: Callable[[int], bool]) -> Iterator[Stack]:
        """Stacks of consecutive minibatches; see `Batcher.stacks`."""
        self._made, self._following = self._make(source, is_due), None
        while (stack := self._taken()) is not None:
            yield stack

    def _make(self, source: Iterator[Minibatch], is_due: Callable[[int], bool]) -> Iterator[Stack]:
        together = self._together(source, is_due)
        # A worker that fails does so at once: the others wait for it.
        ahead = LookAhead(self).read(
            together, lambda both: self._share(both[1]), lambda both: both[1].truncated, fails_late=False
        )
        groups = self._groups(
            ahead, lambda both: self._shape_of(both[1]), is_due, ends=lambda both: self.ends(both[1].samples)
        )
        for group, shape, capacity in groups:
            stack = self.padding.stack([prepared for prepared, _ in group], shape, capacity)
            wholes = [whole for _, whole in group]
            yield SharedStack(stack.batch, stack.minibatches, stack.layouts, stack.placed, wholes=wholes)

    def _together(self, source: Iterator[Minibatch], is_due: Callable[[int], bool]) -> Iterator[tuple[Prepared, Part]]:
        """This worker's parts of the minibatches, and what all workers have of them."""
        self._held, self._ended, self._stopped, self._quick = [], False, False, False
        number = 0
        while ahead := self._ahead(source, lambda k, after=number: is_due(after + k)):
            number += len(ahead)
            yield from ahead

    def prepare(self) -> None:
        """Make the next stack while another is computed; not where the caller would wait for slow data."""
        if self._quick and self._following is None:
            try:
                self._following = next(self._made, None)
            except (Exception, Stopped) as error:  # raised after what is computed now
                self._following = error

    def _taken(self) -> Stack | None:
        """Return the next stack: the one that is prepared, or made now; None after the last."""
        following, self._following = self._following, None
        if isinstance(following, BaseException):
            raise following
        return next(self._made, None) if following is None else following

    def _ahead(self, source: Iterator[Minibatch], is_due: Callable[[int], bool]) -> _Read:
        """Return the next minibatches of all workers, to the next one that is due; none at the end of all data.

        Raises:
            Stopped: on all workers, when reading was stopped on one of them.
        """
        began = time.monotonic()
        while not (self._ended or self._stopped or self._is_enough(is_due)):
            try:
                minibatch = next(source, None)
            except Stopped:
                self._stopped = True  # the others wait for this worker in the exchange below
                break
            if minibatch is None:
                self._ended = True
            else:
                self._held.append(self._prepare(minibatch))
        own_parts = [self._part(held).to_json() for held in self._held]
        slow = time.monotonic() - began > FILL_SECONDS
        answers = self.group.communicator.exchange([self._stopped, slow, self._ended, own_parts])
        if any(stopped for stopped, _, _, _ in answers):
            raise Stopped
        self._quick = not any(slow for _, slow, _, _ in answers)
        plans = [(ended, parts) for _, _, ended, parts in answers]
        going_on = [len(parts) for ended, parts in plans if not ended]
        count = min(going_on) if going_on else max(len(parts) for _, parts in plans)
        if self.padding.lays_out and any(Part.from_json(part).truncated for _, parts in plans for part in parts):
            self._pad(self.padding.of_pieces())
        local_parts, self._held = self._held[:count], self._held[count:]
        local_parts += [self._nothing() for _ in range(count - len(local_parts))]
        empty = Part(Shape(0, 0, ((1, 1),) * len(self.padding.inputs.sparse), (0,) * self.padding.secondary), 0, 0)
        columns = [[Part.from_json(parts[k]) if k < len(parts) else empty for _, parts in plans] for k in range(count)]
        if self.levels and len(self.group.local) == 1 and self._is_worth_levelling():
            local_parts, columns = self._level(local_parts, columns)
        return [(prepared, whole(column)) for prepared, column in zip(local_parts, columns, strict=True)]

    def _is_worth_levelling(self) -> bool:
        """Return whether computing a frame takes much longer than sending it."""
        inputs = self.padding.inputs
        size = sum(inputs.sizes.values()) * inputs.dtype.itemsize
        plain = not self.padding.lays_out and not inputs.sparse and not self.exact
        return plain and size <= FRAME_BYTES and self.weights * self.minibatch_size >= MIN_WORK

    def _level(self, shares: list[Prepared], columns: list[list[Part]]) -> tuple[list[Prepared], list[list[Part]]]:
        """Minibatches and the parts of all workers after these have given each other frames."""
        planned = [
            moves([part.samples for part in column]) if all(part.frames for part in column) else []
            for column in columns
        ]
        if not any(planned):
            return shares, columns
        names = sorted({stream_of(shares[0].minibatch, node.name) for node in self.padding.inputs.nodes})
        minibatches = balance(
            [share.minibatch for share in shares], planned, names, self.group.communicator.rank, self.group.send
        )
        for k, some in enumerate(planned):
            counts = [part.samples for part in columns[k]]
            for giver, taker, number in some:
                counts[giver] -= number
                counts[taker] += number
            if some:
                parts = zip(columns[k], counts, strict=True)
                columns[k] = [replace(p, shape=Shape(1, n), samples=n, columns=n) for p, n in parts]
            if minibatches[k] is not shares[k].minibatch:
                shares[k] = self._prepare(minibatches[k])
        return shares, columns

    def _is_enough(self, is_due: Callable[[int], bool]) -> bool:
        """Return whether what is held may fill a stack: few enough bytes, not beyond a minibatch that is due."""
        count = len(self._held)
        size = sum(prepared.minibatch.nbytes for prepared in self._held)
        return count >= self.capacity or size > STACK_BYTES or any(is_due(k) for k in range(1, count + 1))

    def _part(self, prepared: Prepared) -> Part:
        layout, minibatch = prepared.layout, prepared.minibatch
        placed, shape, together = prepared.placed, self._own_shape(prepared), minibatch.columns_together
        columns = layout.T * layout.S if placed is None else placed.columns
        counts = () if placed is None else placed.counts
        return Part(shape, layout.num_samples, columns, together, minibatch.truncated, counts)

    def _nothing(self) -> Prepared:
        """Return the part of a worker that has no data left."""
        layout = Layout(1, 0, np.zeros((0, 4), np.int64))
        inputs = self.padding.inputs
        streams: dict[str, Any] = {node.name: np.zeros((1, 0, inputs.sizes[node.name])) for node in inputs.dense}
        if inputs.sparse:
            import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

            streams |= {node.name: scipy.sparse.csr_matrix((0, inputs.sizes[node.name])) for node in inputs.sparse}
        return self._prepare(Minibatch(streams, dict.fromkeys(streams, layout)))

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

    def _shape_of(self, part: Part) -> Shape:
        """Return the padded shape for the parts of a minibatch."""
        devices, share = len(self.group.local), self._share(part)
        if share.slots > self.minibatch_size and not share.sparse:
            self._know_share(share)
        shape = self.buckets.fit(
            share, self.minibatch_size, slots_stay=part.truncated, exact=self.exact, weights=self.weights
        )
        self.buckets.use(shape)
        return replace(shape, slots=-(-shape.slots // devices) * devices)
