"""Readers as commands and people use them: made from a section, read epoch by epoch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from .common.planned import State
from .contracts import EpochSource, Joins, KnowsAbsence, NamesClasses, ReadsAhead, ReadsFiles, SharesData, Wraps
from .epochs import EpochReader, EpochRequest
from .errors import ArgumentError, DataError
from .minibatch import Minibatch
from .streams import StreamInformation

log = logging.getLogger("cntkpy.readers")


class Reader(EpochReader):
    """CNTK's reader interface over a pipeline.

    reader.start_minibatch_loop(256, epoch=0)
    while (minibatch := reader.get_minibatch()) is not None:
        ...
    """

    def __init__(self, source: EpochSource):
        self.source = source
        self.data_end = False
        """True if the last minibatch was the last of its epoch."""
        self._started = self._looked = False
        self.remake: Callable[[dict[str, Any] | None], tuple[Any, ...]] | None = None
        """Given a position or None, what `pickle` makes the reader with again; None: nothing does."""

    def __reduce__(self) -> Any:
        """Return a copy, in this process or another one, opens the data again and continues where this reader is."""
        if self.remake is None:
            raise TypeError("a reader that create_reader has not made cannot be pickled")
        return self.remake(self.get_state() if self._started else None)

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of the minibatches."""
        return self.source.streams

    @property
    def files(self) -> list[str]:
        """The files with the data, as far as the parts of the reader say."""
        return list(dict.fromkeys(_files_of(self.source)))

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set."""
        return self.source.samples_per_sweep

    def gives_shares(self, workers: int) -> bool:
        """Return whether it can give that many workers a share of the data each; see `SharesData`."""
        return isinstance(self.source, SharesData) and self.source.gives_shares(workers)

    def shares_keep_minibatches(self) -> bool:
        """Return whether these shares make up the minibatches of one worker; see `SharesData`."""
        return isinstance(self.source, SharesData) and self.source.shares_keep_minibatches()

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""
        self.data_end = False
        self._started = True
        self.source.set_state(request)

    def leave_reading_ahead(self) -> None:
        """Make minibatches where they are asked for, from now on; see `ReadsAhead`."""
        if isinstance(self.source, ReadsAhead):
            self.source.leave_reading_ahead()

    def get_minibatch(self) -> Minibatch | None:
        """Return the next minibatch, None after the last of the epoch."""
        if not self._started:
            raise ArgumentError("get_minibatch() before start_minibatch_loop(minibatch_size, epoch)")
        try:
            minibatch = next(self.source, None)
        except DataError as error:
            raise error.with_traceback(None) from error.__cause__  # frames of the pipeline do not help
        if not self._looked and minibatch is not None:
            self._looked = True
            self._look_for_absent(minibatch)
        self.data_end = minibatch is None or minibatch.end_of_epoch
        return minibatch

    def _look_for_absent(self, minibatch: Minibatch) -> None:
        """Say of the streams without samples in the first minibatch why they have none, if the data lack them."""
        empty = [name for name, layout in minibatch.layouts.items() if not layout.num_samples]
        if empty and len(empty) < len(minibatch.layouts):
            known = {name: _absence(self.source, name) for name in empty}
            minibatch.absent = {name: why for name, why in known.items() if why is not None}
            for message, hint, _ in minibatch.absent.values():
                log.warning("WARNING: %s (%s)", message, hint)

    def get_state(self) -> State:
        """Return the position after the last minibatch given out, to be stored as JSON."""
        return self.source.get_state()

    def set_state(self, state: State) -> None:
        """Restore a state of `get_state`, also in the middle of an epoch."""
        self.data_end = False
        self.source.set_state(state)
        self._started = True

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """Names of the classes of a stream or a section of labels: {0: "cat", 1: "dog"}; {} where there are none."""
        return _names_of(self.source, name)

    def close(self) -> None:
        """Stop reading ahead and free the data."""
        self.source.close()


def _inside(part: object) -> list[Any]:
    """Return the deserializers that a source or a deserializer is made of."""
    return [*([part.deserializer] if isinstance(part, Wraps) else ()), *(part.parts if isinstance(part, Joins) else ())]


def _files_of(part: object) -> Sequence[str]:
    """Return the `files` of a source or a deserializer, or those of the deserializers it is made of."""
    if isinstance(part, ReadsFiles):
        return part.files
    return [path for part_inside in _inside(part) for path in _files_of(part_inside)]


def _absence(part: object, stream: str) -> tuple[str, str, str] | None:
    """Why a source or a deserializer, or one of those it is made of, has no samples of a stream."""
    if isinstance(part, KnowsAbsence):
        return part.absence(stream)
    return next((row for inner in _inside(part) if (row := _absence(inner, stream)) is not None), None)


def _names_of(part: object, name: str) -> dict[int, str]:
    """Return the names in the `class_names` of a source or a deserializer, or of those it is made of."""
    for item, names in part.class_names.items() if isinstance(part, NamesClasses) else ():
        if item.lower() == name.lower():
            return names()
    return next((result for inner in _inside(part) if (result := _names_of(inner, name))), dict[int, str]())
