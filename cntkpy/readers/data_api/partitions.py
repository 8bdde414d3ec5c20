"""A pipeline that is read share by share: every call may ask for another minibatch size, or another partition."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.common.arguments import check_share, check_size
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.pipeline.local_timeline import LocalTimeline
from cntkpy.readers.pipeline.source import Source
from cntkpy.readers.user.deserializer import UserDeserializer

from .source_arguments import SourceArguments
from .words import python_words

log = logging.getLogger("cntkpy.readers")


def in_words_of_programs(error: UserError, options: SourceArguments) -> UserError:
    """Return an error of the pipeline in the words of a program's arguments, without frames, which do not help.

    That of a class of the program stays as it is.
    """
    is_own = all(isinstance(part, UserDeserializer) for part in options.parts)
    return (error if is_own else error.reworded(python_words)).with_traceback(None)


class Partitions:
    """The minibatch size and the partition of a pipeline, which may change before any minibatch.

    Args:
        source: The pipeline.
        options: The arguments that it was made of.
    """

    def __init__(self, source: Source, options: SourceArguments):
        self.source, self._options = source, options
        self._share: tuple[int, int, int] | None = None  # minibatch size, partitions, number of this one
        self._warned: set[int] = set()  # numbers of partitions that there are too few chunks for

    @property
    def is_started(self) -> bool:
        """True if a minibatch was asked for, or a position set."""
        return self._share is not None

    def set_share(self, size: int, workers: int, rank: int) -> None:
        """Read minibatches of this size, and of them this partition."""
        plain = size.__class__ is workers.__class__ is rank.__class__ is int
        if self._share != (size, workers, rank) or not plain:
            size = check_size(size)
            check_share(rank, workers, "partition")
            if self._share != (size, workers, rank):
                changes = {"minibatchSize": size, "workers": workers, "rank": rank, "held": None}
                self.source.set_state(self.source.get_state() | changes)
                self._share = (size, workers, rank)
                if rank == 0 and self._options.randomize:
                    self._warn_of_idle(workers)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to a position, with its minibatch size and partition.

        Raises:
            ArgumentError: It is no position.
        """
        if not isinstance(state, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"a checkpoint state is a dictionary, not {type(state).__name__}",
                "give what get_checkpoint_state() returned",
            )
        self.source.set_state(dict(state))
        timeline = self.source.timeline
        self._share = (self.source.minibatch_size, timeline.workers, timeline.rank)

    def _warn_of_idle(self, partitions: int) -> None:
        """Warn once where some partitions get no chunk."""
        order = self.source.timeline
        chunks = order.order.chunks if isinstance(order, LocalTimeline) else self.source.deserializer.table.num_chunks
        if chunks < partitions and partitions not in self._warned:
            self._warned.add(partitions)
            log.warning(
                "WARNING: %d of %d partitions get no data, and minibatches are that much smaller: shuffled data are "
                "shared by chunks, there %s %d. Let the deserializer make more, with a smaller chunkSizeInBytes, or "
                "read with randomize=False.",
                partitions - chunks,
                partitions,
                "is" if chunks == 1 else "are",
                chunks,
            )
