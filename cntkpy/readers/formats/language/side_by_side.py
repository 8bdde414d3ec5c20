"""Several LUSequenceReaders in step: each minibatch has the streams of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from cntkpy.readers.common.planned import State
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.errors import DataError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.streams import StreamInformation

from .source import SentenceSource


class SideBySide:
    """Sources that give the same number of sentences in every minibatch; ends when the first of them ends."""

    def __init__(self, sources: Sequence[SentenceSource], names: Sequence[str]):
        self._sources, self._names = list(sources), list(names)
        self.streams: list[StreamInformation] = [stream for source in sources for stream in source.streams]
        seen: set[str] = set()
        for stream in self.streams:
            if stream.name.lower() in seen:
                raise DataError(
                    f"Two of the readers {', '.join(names)} have a section named '{stream.name}'.",
                    hint="sections of features and labels name streams; give each a name of its own",
                )
            seen.add(stream.name.lower())
        first, *other_sources = sources
        for name, source in zip(self._names[1:], other_sources, strict=True):
            count, wanted = source.corpus.measures.sentences, first.corpus.measures.sentences
            if count != wanted:
                raise DataError(
                    f"The readers {self._names[0]} and {name} have {wanted} and {count} sentences, "
                    f"in {first.corpus.path} and {source.corpus.path}.",
                    path=source.corpus.path,
                    hint="sentence by sentence they are read together, so there have to be equally many",
                )

    @property
    def parts(self) -> Sequence[SentenceSource]:
        """The sources."""
        return self._sources

    @property
    def files(self) -> list[str]:
        """The corpora."""
        return [path for source in self._sources for path in source.files]

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the first source."""
        return self._sources[0].samples_per_sweep

    def __next__(self) -> Minibatch:
        """Return the next minibatch of all; the end of the epoch is that of the iteration."""
        parts = [next(source, None) for source in self._sources]
        minibatches = [part for part in parts if part is not None]
        if len(minibatches) < len(parts):
            raise StopIteration
        first = minibatches[0]
        for name, source, other_minibatch in zip(self._names, self._sources, minibatches, strict=True):
            if other_minibatch.num_sequences != first.num_sequences:
                places = (self._sources[0].corpus.path, first.keys[0]), (source.corpus.path, other_minibatch.keys[0])
                place, two = (f"{path} (from sentence {int(key) + 1} on)" for path, key in places)
                raise DataError(
                    f"The readers {self._names[0]} and {name} give {first.num_sequences} and "
                    f"{other_minibatch.num_sequences} sentences in one minibatch, of {place} and {two}.",
                    path=source.corpus.path,
                    hint="their files need sentences of the same lengths, or use equalLength=false",
                )
        return Minibatch(
            {name: data for minibatch in minibatches for name, data in minibatch.streams.items()},
            {name: layout for minibatch in minibatches for name, layout in minibatch.layouts.items()},
            first.keys,
            first.end_of_sweep,
            any(minibatch.end_of_epoch for minibatch in minibatches),
        )

    def get_state(self) -> State:
        """Return the positions of all of them."""
        return {"version": 1, "readers": [source.get_state() for source in self._sources]}

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or resume exactly where `get_state` was called."""
        same = isinstance(state, EpochRequest)
        states = [state] * len(self._sources) if same else state["readers"]
        for source, value in zip(self._sources, states, strict=True):
            source.set_state(value)

    def close(self) -> None:
        """Stop reading ahead."""
        for source in self._sources:
            source.close()
