"""Any minibatch source as the reader of a `train`, `test` or `write` section."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_dict
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.planned import State
from cntkpy.readers.common.user_code import calling
from cntkpy.readers.contracts import Closes
from cntkpy.readers.epochs import EpochReader, EpochRequest
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.parameters import UserReaderParameters
from cntkpy.readers.registry import load_from_module
from cntkpy.readers.streams import StreamInformation
from cntkpy.readers.user import streams as numbered
from cntkpy.readers.user.from_section import construct

from .base import MinibatchMap, MinibatchSourceBase
from .batches import InputAxes
from .layouts import laid_out
from .user_source import UserMinibatchSource
from .value import MinibatchData


class SourceReader(EpochReader):
    """The reader interface over a minibatch source.

    An epoch without a number of samples ends with the sweep of the source. The position at the start of every epoch is
    kept, so that reading an epoch again (validation, search of the learning rate) gives the same data.
    """

    def __init__(self, source: MinibatchSourceBase, precision: str = "float"):
        self.source, self._name = source, type(source).__name__
        self._dtype = np.dtype({"float": np.float32, "double": np.float64}[precision])
        self.data_end = False
        self._size, self._workers, self._rank = 1, 1, 0
        self._epoch, self._limit, self._done = 0, None, 0
        self._starts: dict[int, dict[str, Any]] = {}
        self._fresh = True

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of the minibatches."""
        return list(self.source.streams.values())

    @property
    def samples_per_sweep(self) -> int:
        """Not known of a user's source."""
        return 0

    def gives_shares(self, workers: int) -> bool:
        """Return the source is asked for the share of each worker."""
        return True

    def shares_keep_minibatches(self) -> bool:
        """Nobody knows how a user's source divides its data."""
        return False

    def start(self, request: EpochRequest) -> None:
        """Go to the next epoch, or back to the start of one that was begun before."""
        if request.samples is None and isinstance(self.source, UserMinibatchSource):
            with calling(f"{self._name}.is_infinite()"):
                endless = self.source.is_infinite()
            if endless:
                raise DataError(
                    f"{self._name} is infinite, so an epoch needs a number of samples",
                    hint="write epochSize=... in SGD; a program gives start_minibatch_loop a number of samples",
                )
        epoch = request.epoch
        self._size, self._workers, self._rank = request.minibatch_size, request.workers, request.worker
        self._epoch, self._limit, self._done = epoch, request.samples, 0
        self.data_end = False
        if epoch in self._starts:
            if not self._fresh or epoch != max(self._starts):
                self._restore(self._starts[epoch])
        else:
            self._starts[epoch] = self._position()
        self._fresh = True

    def get_minibatch(self) -> Minibatch | None:
        """Return the next minibatch, None after the last of the epoch."""
        if self.data_end:
            return None
        size = self._size if self._limit is None else min(self._size, self._limit - self._done)
        self._fresh = False
        result = self._ask(size) if size > 0 else {}
        if not result:
            self.data_end = True
            if self._done == 0 and self._workers == 1:
                raise DataError(
                    f"{self._name} has no data for epoch {self._epoch + 1}: its first answer is empty",
                    hint="lower maxEpochs, or let the source continue with its data from the beginning",
                )
            return None
        minibatch = as_minibatch(result, self._dtype, self._name)
        self._done += self._samples_of(minibatch) if self._workers == 1 else size
        over = minibatch.end_of_sweep if self._limit is None else self._done >= self._limit
        self.data_end = minibatch.end_of_epoch = over
        return minibatch

    def _ask(self, size: int) -> MinibatchMap:
        """Data of every stream from the source, or nothing."""
        call = f"{self._name}.next_minibatch({size}, {self._workers}, {self._rank})"
        with calling(call):
            minibatch = self.source._next(size, self._workers, self._rank)  # pyright: ignore[reportPrivateUsage]
        check_answer(minibatch, self.streams, call)
        return minibatch

    def _samples_of(self, minibatch: Minibatch) -> int:
        """Return the size of a minibatch: the samples of the defining stream, else of the longest stream."""
        defining = next((s.name for s in self.streams if _defines_length(s)), None)
        return minibatch.num_samples if defining is None else minibatch.layouts[defining].num_samples

    def _position(self) -> dict[str, Any]:
        call = f"{self._name}.get_checkpoint_state()"
        with calling(call):
            state: Any = self.source.get_checkpoint_state()
        if not is_dict(state) or not all(isinstance(key, str) for key in state):
            raise ArgumentError(
                f"{call} gave {state!r}, but the checkpoint state of a minibatch source is a dictionary "
                "whose keys are texts"
            )
        try:
            json.dumps(state)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"{call} gave what JSON cannot hold: {error}", "numbers of numpy as int(...), arrays as .tolist()"
            ) from None
        return dict(state)

    def _restore(self, state: dict[str, Any]) -> None:
        with calling(f"{self._name}.restore_from_checkpoint({state!r})"):
            self.source.restore_from_checkpoint(dict(state))

    def get_state(self) -> State:
        """Return the position of the source and of the epoch."""
        return {
            "source": self._position(),
            "epoch": self._epoch,
            "samples": self._done,
            "epochSize": self._limit,
            "minibatchSize": self._size,
            "workers": self._workers,
            "rank": self._rank,
            "ended": self.data_end,
        }

    def epoch_state(self, epoch: int) -> dict[str, Any]:
        """Return the position at the start of an epoch, the next one or one that was begun before.

        Such a source cannot find it by the number of the epoch.
        """
        return {"source": dict(self._starts[epoch]) if epoch in self._starts else self._position()}

    def restore_epoch(self, state: dict[str, Any]) -> None:
        """Go to where `epoch_state` was taken; ignores the position of a reader of another kind."""
        if "source" in state:
            self.set_state(state)

    def set_state(self, state: State) -> None:
        """Restore a state of `get_state`; the next `start_minibatch_loop` continues there with its epoch."""
        if not is_dict(state) or "source" not in state:
            raise ArgumentError(f"this is not the position of a {self._name}")
        self._restore(state["source"])
        self._epoch, self._done = int(state.get("epoch", 0)), int(state.get("samples", 0))
        self._limit = state.get("epochSize")
        self._size, self._workers = int(state.get("minibatchSize", 1)), int(state.get("workers", 1))
        self._rank, self.data_end = int(state.get("rank", 0)), bool(state.get("ended", False))
        self._starts, self._fresh = {}, True

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """Names of classes: none."""
        return {}

    def close(self) -> None:
        """Close the source, if it can be closed."""
        if isinstance(self.source, Closes):
            self.source.close()


def _defines_length(stream: StreamInformation) -> bool:
    """Return whether the samples of a stream are the length of a sequence."""
    return isinstance(stream, numbered.StreamInformation) and stream.m_defines_mb_size


def check_answer(found: Any, streams: Sequence[StreamInformation], call: str) -> None:
    """Return whether a source gave data for each of its streams, and for nothing else; or an empty dictionary.

    Raises:
        DataError: if it is not what it should be; it names the call.
    """
    if not is_dict(found):
        raise DataError(
            f"{call} gave {type(found).__name__}, not a dictionary {{stream: MinibatchData}}",
            hint="an empty dictionary ends the data",
        )
    known = {s.name: s for s in streams}
    for key, data in found.items():
        name = key.name if isinstance(key, StreamInformation) else None
        if name not in known:
            reason = f"the text {key!r}" if isinstance(key, str) else f"{type(key).__name__} {name or key!r}"
            raise DataError(
                f"{call}: {reason} is a key of the dictionary, but not a stream of the source",
                hint=f"the keys are the objects that stream_infos() gives, of {', '.join(known)}",
            )
        if not isinstance(data, MinibatchData):
            raise DataError(
                f"{call}, stream '{name}': {type(data).__name__} instead of MinibatchData",
                hint="write MinibatchData(data, number of sequences, number of samples, end of sweep)",
            )
    missing = [name for name in known if name not in {key.name for key in found}]
    if found and missing:
        raise DataError(f"{call}: there are no data of stream '{missing[0]}'", hint="a minibatch has all streams")


def as_minibatch(found: MinibatchMap, dtype: np.dtype, source: str = "The minibatch source") -> Minibatch:
    """Return a pipeline minibatch out of what a source gave: every sequence in a slot of its own."""
    streams: dict[str, Any] = {}
    layouts: dict[str, Layout] = {}
    for stream, data in found.items():
        streams[stream.name], layouts[stream.name] = _stream(stream, data, dtype, source)
    counts = {name: layout.num_sequences for name, layout in layouts.items()}
    for name, count in counts.items():
        first = next(iter(counts))
        if count != counts[first]:
            raise DataError(
                f"{source}: stream '{first}' has {counts[first]} sequences, stream '{name}' has {count}; "
                "all streams must have the same number"
            )
    return Minibatch(streams, layouts, [], any(data.end_of_sweep for data in found.values()))


def _stream(stream: Any, data: MinibatchData, dtype: np.dtype, source: str) -> tuple[Any, Layout]:
    if data.data is None:
        return np.zeros((0, 0, stream.dim), dtype), Layout(0, 0, np.zeros((0, 4), np.int64))
    value = data.data
    if stream.sparse and not value.is_sparse:
        raise DataError(
            f"{source} gave dense data for the sparse stream '{stream.name}'",
            hint="give a scipy CSR matrix or Value.one_hot(...), or declare the stream 'dense'",
        )
    try:
        batch = value.read(InputAxes(f"stream '{stream.name}'", stream.sample_shape, None))
    except ArgumentError as error:
        hint = "data are (sequences, *sample) or (sequences, steps, *sample)"
        raise DataError(f"{source} gave {error.message}", hint=hint) from None
    cells, layout = laid_out(batch, dtype)
    if not stream.sparse and batch.rows is not None:
        cells = cells.toarray().reshape(layout.T, layout.S, stream.dim)
    return cells, layout


def create_user_reader(section: ConfigParameters, precision: str) -> Any:
    """Return the reader of `readerType=UserMinibatchSource`."""
    p = UserReaderParameters(section)
    kind = load_from_module(p.module, p.class_name, "class")
    source = construct(kind, section)
    if not isinstance(source, MinibatchSourceBase):
        raise p.error(
            "class", f"{p.class_name} is not a minibatch source", "derive it from cntkpy.readers.UserMinibatchSource"
        )
    if "streams" not in vars(source):
        raise p.error("class", f"{p.class_name}.__init__ does not call super().__init__()", "call it last")
    return SourceReader(source, precision)
