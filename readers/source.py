"""The pipeline: deserializer -> randomizer -> packer -> minibatch, read ahead, with a position that can be saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .minibatch import Minibatch
from .pack import FramePacker, SequencePacker
from .prefetch import Prefetcher
from .randomize import Timeline
from .sequences import Deserializer
from .store import ChunkStore
from .streams import StreamInformation
from .truncated import TruncatedPacker

STATE_VERSION = 1


class _Assembler(Protocol):
    """Turns selections into minibatches; `state` is what is held back between them, JSON-able."""

    def next(self, source: Source) -> Minibatch | None: ...

    def state(self) -> Any: ...

    def restore(self, state: Any, source: Source) -> None: ...

    def clear(self) -> None: ...


class WholeSequences:
    """Minibatches of whole sequences (or frames): nothing is held back."""

    def __init__(self, packer: SequencePacker):
        self._packer = packer

    def next(self, source: Source) -> Minibatch | None:
        """Take, fetch, pack."""
        selection = source.timeline.next(*source.limits)
        if selection is None:
            return None
        parts = source.store.fetch(selection.sequences, selection.keep)
        data, layouts = self._packer.pack(parts, len(selection.sequences))
        keys = source.keys(selection.sequences)
        return Minibatch(data, layouts, keys, selection.end_of_sweep, selection.end_of_epoch)

    def state(self) -> None:
        """Nothing."""

    def restore(self, state: Any, source: Source) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Nothing to do."""


class Source:
    """Reads minibatches epoch by epoch. Between two calls its state is a small JSON-able dictionary."""

    def __init__(
        self,
        deserializer: Deserializer,
        timeline: Timeline,
        *,
        frame_mode: bool = False,
        truncation_length: int = 0,
        local_timeline: bool = False,
        keep_in_memory: bool = False,
        memory: int | None = None,
        prefetch: bool = True,
    ):
        self.deserializer, self.timeline = deserializer, timeline
        self._local_timeline = local_timeline
        options = {} if memory is None else {"memory": memory}
        self.store = ChunkStore(deserializer, keep_everything=keep_in_memory, threads=int(prefetch), **options)
        self._assembler: _Assembler
        if truncation_length:
            self._assembler = TruncatedPacker(deserializer.streams, truncation_length)
        else:
            self._assembler = WholeSequences((FramePacker if frame_mode else SequencePacker)(deserializer.streams))
        self._prefetcher: Prefetcher[tuple[Minibatch | None, dict[str, Any]]] = Prefetcher(self._produce, int(prefetch))
        self.minibatch_size = 0
        self.limits = (1, 1)
        self._delivered: dict[str, Any] = {}

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """What the minibatches hold."""
        return self.deserializer.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set (sum of nominal sequence lengths)."""
        return self.deserializer.table.num_samples

    def start(self, minibatch_size: int, epoch: int, epoch_size: int | None, workers: int = 1, rank: int = 0) -> None:
        """Go to the start of an epoch (from 0); epoch_size None means one sweep."""
        self._prefetcher.reset()
        self._assembler.clear()
        self._set_limits(minibatch_size, workers, rank)
        self.timeline.start_epoch(epoch, epoch_size, workers, rank)
        self._delivered = self._state()

    def _set_limits(self, minibatch_size: int, workers: int, rank: int) -> None:
        self.minibatch_size = minibatch_size
        if self._local_timeline:
            local = max(1, minibatch_size // workers + (rank < minibatch_size % workers))
            self.limits = (2**62, local)
        else:
            self.limits = (minibatch_size, minibatch_size)

    def next(self) -> Minibatch | None:
        """The next minibatch, None at the end of the epoch."""
        minibatch, self._delivered = self._prefetcher.next()
        return minibatch

    def _produce(self) -> tuple[Minibatch | None, dict[str, Any]]:
        minibatch = self._assembler.next(self)
        return minibatch, self._state()

    def keys(self, sequences: np.ndarray) -> list[int]:
        """Keys of sequences."""
        return self.deserializer.table.key(sequences).tolist()

    def _state(self) -> dict[str, Any]:
        t = self.timeline
        return {
            "version": STATE_VERSION,
            "minibatchSourcePosition": t.position,
            "epochEnd": t.epoch_end,
            "minibatchSize": self.minibatch_size,
            "workers": t.workers,
            "rank": t.rank,
            "held": self._assembler.state(),
        }

    def state(self) -> dict[str, Any]:
        """Where reading stands after the last minibatch that was given out."""
        return dict(self._delivered)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state` was taken. Only minibatchSourcePosition is needed; the rest stays as started."""
        if "minibatchSourcePosition" not in state:
            raise ValueError("Checkpoint misses required field minibatchSourcePosition")
        self._prefetcher.reset()
        self._assembler.clear()
        t = self.timeline
        workers, rank = int(state.get("workers", t.workers)), int(state.get("rank", t.rank))
        if workers != t.workers:
            t.forget()
        t.workers, t.rank = workers, rank
        t.epoch_end = int(state.get("epochEnd", t.epoch_end))
        self._set_limits(int(state.get("minibatchSize", self.minibatch_size)), workers, rank)
        t.seek(int(state["minibatchSourcePosition"]))
        if state.get("held") is not None:
            self._assembler.restore(state["held"], self)
        self._delivered = self._state()

    def close(self) -> None:
        """Stop the threads and let go of the data."""
        self._prefetcher.close()
        self.store.close()
