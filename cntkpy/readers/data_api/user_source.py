"""Minibatch sources that users write in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.user.record import Record
from cntkpy.readers.user.streams import StreamInformation, declared_streams

from .base import MinibatchMap, MinibatchSourceBase


class UserMinibatchSource(MinibatchSourceBase):
    """Derive from it to make minibatches in any way.

    A subclass makes its `StreamInformation` objects before it calls the constructor of this class, which asks for them.
    """

    def __init__(self) -> None:
        streams = declared_streams(self, "make the streams before calling super().__init__()")
        if not streams:
            raise ArgumentError(f"{type(self).__name__} must provide at least one stream")
        self.streams = Record(**{s.name: s for s in streams})

    def __getattr__(self, name: str) -> Any:
        if name == "streams":
            message = f"the streams of {type(self).__name__} are not known"
            raise ArgumentError(message, "call super().__init__() at the end of its __init__")
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    def stream_infos(self) -> Sequence[StreamInformation]:
        """Return the streams in order."""
        raise NotImplementedError(f"{type(self).__name__} has to implement stream_infos()")

    def next_minibatch(
        self, num_samples: int, number_of_workers: int = 1, worker_rank: int = 0, device: Any = None
    ) -> MinibatchMap:
        """Data of the next minibatch by stream; an empty dictionary at the end.

        Args:
            num_samples: how many samples are asked for, of all workers together.
            number_of_workers, worker_rank: how many workers share the data, and which of them this is.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has to implement "
            "next_minibatch(num_samples, number_of_workers, worker_rank, device)"
        )

    def _next(self, size: int, workers: int, rank: int) -> MinibatchMap:
        return self.next_minibatch(size, workers, rank, None)

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Return the position, to be stored as JSON; the keys are texts."""
        return {}

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore a state of `get_checkpoint_state`."""
        if checkpoint:
            raise NotImplementedError(
                f"{type(self).__name__} has a checkpoint state, so it has to implement restore_from_checkpoint"
            )
