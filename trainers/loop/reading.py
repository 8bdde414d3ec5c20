"""A reader around another one, and the reader that counts parallel sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from readers.contracts import MinibatchReader, RemembersEpochs

if TYPE_CHECKING:
    from readers.minibatch import Minibatch
    from readers.streams import StreamInformation


class WrappedReader:
    """Everything that a reader does, done by another one.

    Args:
        reader: The other one.
    """

    def __init__(self, reader: MinibatchReader):
        self.inner = reader
        """The reader inside."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of the minibatches."""
        return self.inner.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set; 0 if that is not known."""
        return self.inner.samples_per_sweep

    def start_minibatch_loop(
        self,
        minibatch_size: int,
        epoch: int,
        requested_epoch_samples: int | None = None,
        worker_rank: int = 0,
        number_of_workers: int = 1,
    ) -> None:
        """Go to the start of an epoch; see `MinibatchReader.start_minibatch_loop`."""
        self.inner.start_minibatch_loop(minibatch_size, epoch, requested_epoch_samples, worker_rank, number_of_workers)

    def get_minibatch(self) -> Minibatch | None:
        """The next minibatch, None after the last of the epoch."""
        return self.inner.get_minibatch()

    def state(self) -> dict[str, Any]:
        """Position after the last minibatch given out, JSON-able."""
        return self.inner.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken, in the middle of an epoch too."""
        self.inner.restore(state)

    def epoch_state(self, epoch: int) -> dict[str, Any]:
        """The position at the start of an epoch, where the reader remembers it; else the position of now."""
        inside = innermost(self)
        return inside.epoch_state(epoch) if isinstance(inside, RemembersEpochs) else self.state()

    def restore_epoch(self, state: dict[str, Any]) -> None:
        """Go to where `epoch_state` was taken, where the reader needs that to find the epoch."""
        inside = innermost(self)
        if isinstance(inside, RemembersEpochs):
            inside.restore_epoch(state)

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """Names of the classes of a stream; {} where there are none."""
        return self.inner.get_label_mapping(name)

    def close(self) -> None:
        """Stop reading and free the data."""
        self.inner.close()


def innermost(reader: MinibatchReader) -> MinibatchReader:
    """The reader that reads, inside of those that wrap it."""
    while isinstance(reader, WrappedReader):
        reader = reader.inner
    return reader


class CountedReader(WrappedReader):
    """A reader that knows how many parallel sequences its last minibatch had.

    That number converts rates per minibatch where sequences are truncated.
    """

    def __init__(self, reader: MinibatchReader):
        super().__init__(reader)
        self.last_slots = 0
        """Slots of the last minibatch given out; 0 before the first."""

    def get_minibatch(self) -> Minibatch | None:
        """The next minibatch, None after the last of the epoch."""
        minibatch = self.inner.get_minibatch()
        if minibatch is not None:
            self.last_slots = next(iter(minibatch.layouts.values())).S
        return minibatch

    def state(self) -> dict[str, Any]:
        """Position after the last minibatch given out and its number of slots, JSON-able."""
        return {**self.inner.state(), "last_slots": self.last_slots}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken, in the middle of an epoch too."""
        self.last_slots = state.get("last_slots", 0)
        self.inner.restore({name: value for name, value in state.items() if name != "last_slots"})
