"""The pipeline with pictures: minibatches are decoded on all cores, several at a time, in their order."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from cntkpy.readers.common.chunk import Part
from cntkpy.readers.common.planned import Planned
from cntkpy.readers.contracts import Deserializer, Order
from cntkpy.readers.errors import DataError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.pipeline.assembly import Inputs, Made
from cntkpy.readers.pipeline.bundle import Bundle, SideBySide
from cntkpy.readers.pipeline.pack import FramePacker, SequencePacker, place
from cntkpy.readers.pipeline.source import Source, SourceOptions

from .decode import PictureError
from .deserializer import Pictures

log = logging.getLogger("cntkpy.readers")
IMAGES_PER_TASK = 8
"""Most pictures that a thread takes at once."""
AHEAD = 4
"""Pictures per thread that are decoded ahead, if minibatches are small; else two minibatches are."""


def pictures_in(data: Deserializer) -> list[tuple[Pictures, np.ndarray | None]]:
    """Return the picture streams of a deserializer, each with its sequence numbers by that of the reader (None: the
    same).
    """
    if isinstance(data, Pictures):
        return [(data, None)]
    if not isinstance(data, Bundle | SideBySide):
        return []
    pairs = zip(data.parts, data.numbers, strict=True)
    return [
        (picture, result if inner is None else inner[result])
        for part, result in pairs
        for picture, inner in pictures_in(part)
    ]


def source_of(data: Deserializer, timeline: Order, options: SourceOptions) -> Source:
    """Return the pipeline of a deserializer: one that decodes pictures, if there are any in it."""
    return PictureSource(data, timeline, options) if pictures_in(data) else Source(data, timeline, options)


class DirectStore:
    """Loads sequences as they are asked for, and keeps nothing."""

    def __init__(self, data: Deserializer):
        self._data = data

    def begin(self, sequences: np.ndarray, hints: object = None) -> Callable[[], list[Part]]:
        """Return a function that returns one part; none where a worker has no share of a minibatch."""
        del hints
        if len(sequences) == 0:
            return list
        n = np.arange(len(sequences))
        return lambda: [Part(self._data.load_sequences(sequences), n, n)]

    def close(self) -> None:
        """Nothing to do."""


class PictureSource(Source):
    """A pipeline some of whose streams are pictures; `threads` of the options decode them."""

    def __init__(self, data: Deserializer, timeline: Order, options: SourceOptions):
        if options.truncation_length:
            raise DataError("Pictures cannot be cut into pieces of sequences.", hint="leave truncated out")
        self.pictures = pictures_in(data)
        first = data.parts[0] if isinstance(data, Bundle) else data
        store = DirectStore(data) if isinstance(first, Pictures) else None
        make_packer = partial(_Ahead, source=self, ahead=options.prefetch, frame_mode=options.frame_mode)
        super().__init__(data, timeline, replace(options, threads=1), store=store, make_packer=make_packer)
        for pictures, _ in self.pictures:
            pictures.keep = options.keep_in_memory
        self.threads = options.threads
        self._pool = ThreadPoolExecutor(self.threads, "cntkpy-pictures")

    def submit(self, work: Any, *arguments: Any) -> Future[Any]:
        """Let a thread do something."""
        return self._pool.submit(work, *arguments)

    def close(self) -> None:
        """Stop the threads and let go of the data."""
        super().close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for pictures, _ in self.pictures:
            pictures.close()


@dataclass(eq=False)
class _Begun:
    """A minibatch whose pictures are being decoded.

    Attributes:
        planned: Its sequences; None at the end of the epoch.
        samples: Pictures by stream, which are being filled in.
        work: What the threads do.
    """

    planned: Planned | None
    samples: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    work: list[Future[list[tuple[int, PictureError]]]] = field(default_factory=list[Any])


class _Ahead:
    """Begins minibatches ahead of time and finishes them in order."""

    def __init__(self, inputs: Inputs, source: PictureSource, ahead: bool, frame_mode: bool):
        self._inputs, self._source, self._ahead, self._begun = inputs, source, ahead, deque[_Begun]()
        names = {pictures.name for pictures, _ in source.pictures}
        other_streams = [stream for stream in inputs.streams if stream.name not in names]
        self._packer = (FramePacker if frame_mode else SequencePacker)(other_streams)
        self._lost: set[int] = set()

    def __next__(self) -> Made:
        """Return the next minibatch, and the state of the order after it."""
        while self._wants_more():
            self._begun.append(self._begin())
        begun = self._begun.popleft()
        if begun.planned is None:
            return None, self._inputs.timeline.get_state(), None
        return self._pack(begun, begun.planned), begun.planned.states[0], None

    def _wants_more(self) -> bool:
        begun = self._begun
        if not begun:
            return True
        if not self._ahead or begun[-1].planned is None:
            return False
        waiting = sum(len(work.planned.sequences) for work in begun if work.planned is not None)
        return len(begun) < 2 or waiting < AHEAD * self._source.threads

    def _begin(self) -> _Begun:
        source, inputs = self._source, self._inputs
        planned = inputs.plan()
        begun = _Begun(planned)
        if planned is None:
            return begun
        numbers, sweeps = planned.sequences, planned.sweep_of_each()
        count = len(numbers)
        piece = max(1, min(IMAGES_PER_TASK, count // (2 * source.threads)))
        for pictures, result in source.pictures:
            samples = begun.samples[pictures.name] = np.empty((count, *pictures.shape), pictures.dtype)
            own_numbers = numbers if result is None else result[numbers]
            for index in range(0, count, piece):
                some = slice(index, index + piece)
                begun.work.append(
                    source.submit(
                        _decode,
                        pictures,
                        own_numbers[some].tolist(),
                        sweeps[some].tolist(),
                        numbers[some].tolist(),
                        samples[some],
                        index,
                    )
                )
        return begun

    def _pack(self, begun: _Begun, planned: Planned) -> Minibatch:
        source, inputs, numbers = self._source, self._inputs, planned.sequences
        failed = np.zeros(len(numbers), bool)
        for work in begun.work:
            for position, error in work.result():
                self._lose(inputs.invalid.maximum, int(numbers[position]), error)
                failed[position] = True
        parts = inputs.store.begin(numbers, replace(planned.hints, following=None))()
        failed |= np.isin(numbers, numbers[failed])
        kept, parts = inputs.invalid.without(
            numbers, parts, failed if failed.any() else None, end_of_sweep=planned.end_of_sweep
        )
        good = None if len(kept) == len(numbers) else np.isin(numbers, kept)
        data, layouts = self._packer.pack(parts, len(kept))
        layout = place(np.ones(len(kept), np.int64))
        for pictures, _ in source.pictures:
            samples = begun.samples[pictures.name] if good is None else begun.samples[pictures.name][good]
            data[pictures.name] = samples.reshape(layout.T, len(kept), math.prod(pictures.shape))
            layouts[pictures.name] = layout
        ordered = {stream.name: data[stream.name] for stream in inputs.streams}
        layouts = {name: layouts[name] for name in ordered}
        minibatch = Minibatch(ordered, layouts, inputs.keys(kept), planned.end_of_sweep, planned.end_of_epoch)
        if planned.together is not None:
            whole = place(planned.together)
            minibatch.columns_together = whole.T * whole.S
        return minibatch

    def _lose(self, most: int, sequence: int, error: PictureError) -> None:
        """Count a picture that cannot be read; one too many is an error."""
        message = error.diagnostic.message
        if not most:
            raise error
        if sequence in self._lost:
            return
        self._lost.add(sequence)
        if len(self._lost) > most:
            raise DataError(
                f"Number of invalid sequences '{len(self._lost)}' in the input exceeded the specified maximum number "
                f"'{most}': {message}",
                hint="mend the data, or raise maxErrors of the reader to leave such pictures out",
            ) from None
        log.warning("%s It is left out.", message)

    def get_state(self) -> None:
        """Nothing is held back: what was begun is started over."""

    def set_state(self, state: None) -> None:
        """Drop the started pictures, and wait until no thread works on them."""
        for item in self._begun:
            for work in item.work:
                work.cancel()
        for element in self._begun:
            for work in element.work:
                if not work.cancelled():
                    work.exception()
        self._begun.clear()


def _decode(
    pictures: Pictures,
    own_numbers: Sequence[int],
    sweeps: Sequence[int],
    numbers: Sequence[int],
    samples: np.ndarray,
    position: int,
) -> list[tuple[int, PictureError]]:
    """Make some samples; which of the minibatch could not be made, and why."""
    failed: list[tuple[int, PictureError]] = []
    for i, sequence in enumerate(own_numbers):
        try:
            pictures.sample(sequence, sweeps[i], numbers[i], samples[i])
        except PictureError as error:
            failed.append((position + i, error))
    return failed
