"""Deserializers of utterances side by side: the streams of the same utterances, whole or frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.contracts import Deserializer, ReadsFiles
from cntkpy.readers.errors import DataError
from cntkpy.readers.pipeline.bundle import Bundle

from .frames import FrameTable, Utterances


def _by_stream(pieces: Sequence[tuple[Utterances, list[Any]]]) -> list[dict[str, Any]]:
    names = [part.streams[0].name for part, _ in pieces]
    return [dict(zip(names, some, strict=True)) for some in zip(*(p for _, p in pieces), strict=True)]


class SideBySide:
    """Deserializers with the same utterances in the same order, as one."""

    def __init__(self, parts: Sequence[Utterances]):
        self.parts = list(parts)
        self.streams = [stream for part in parts for stream in part.streams]
        self.table = parts[0].table
        self.chunk_bytes = np.sum([part.chunk_bytes for part in parts], axis=0)

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all sequences of a chunk."""
        return self._merge([part.load_chunk(chunk) for part in self.parts])

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these."""
        return self._merge([part.load_sequences(sequences) for part in self.parts])

    def frame_batches(self, sequences: np.ndarray, bounds: Sequence[int]) -> list[dict[str, Any]]:
        """Frame mode: frames bounds[k] .. bounds[k+1]-1 of these for every k, by stream."""
        which, frames = self.parts[0].frames.place(sequences)
        return _by_stream([(part, part.pieces(which, frames, bounds)) for part in self.parts])

    @staticmethod
    def _merge(chunks: list[Chunk]) -> Chunk:
        return Chunk({name: data for c in chunks for name, data in c.streams.items()}, sum(c.nbytes for c in chunks))


class JoinedFrames(Bundle):
    """Frame mode: deserializers of utterances joined by name, once per utterance instead of once per frame."""

    def __init__(self, parts: Sequence[Utterances], **options: Any):
        super().__init__([part.by_utterance() for part in parts], **options)
        self.frame_parts, first = parts, parts[0]
        lengths = first.lengths[self.numbers[0]]
        self._require_frames(lengths)
        self.frames = FrameTable(self.table.first, lengths, first.numbers[self.numbers[0]], first.corpus)
        self.table = self.frames

    def _require_frames(self, lengths: np.ndarray) -> None:
        for part, result in zip(self.frame_parts, self.numbers, strict=True):
            short = np.flatnonzero(part.lengths[result] < lengths)
            if len(short):
                bad = int(short[0])
                raise DataError(
                    f"Sequence with key '{part.corpus.name(int(part.numbers[result[bad]]))}' has "
                    f"'{part.lengths[result[bad]]}' frame(s), whereas the primary sequence expects at least "
                    f"'{lengths[bad]}' frames.",
                    hint="a stream with one frame per utterance needs expandToUtterance=true",
                )

    def frame_batches(self, sequences: np.ndarray, bounds: Sequence[int]) -> list[dict[str, Any]]:
        """Frames bounds[k] .. bounds[k+1]-1 of these for every k, by stream."""
        which, frames = self.frames.place(sequences)
        both = zip(self.frame_parts, self.numbers, strict=True)
        return _by_stream([(part, part.pieces(result[which], frames, bounds)) for part, result in both])

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return the same frames from every part."""
        which, frames = self.frames.place(sequences)
        chunks = [
            part.load_sequences(part.frames.starts[result[which]] + frames)
            for part, result in zip(self.frame_parts, self.numbers, strict=True)
        ]
        return Chunk({name: data for c in chunks for name, data in c.streams.items()}, sum(c.nbytes for c in chunks))


def frames_or_sequences(parts: Sequence[Deserializer]) -> Sequence[Deserializer]:
    """Deserializers in frame mode that can be joined: frames with frames, sequences with sequences.

    A frame has no key, so together with other deserializers utterances of one frame are sequences.

    Raises:
        DataError: there are other deserializers, and utterances of several frames.
    """
    framed = [part for part in parts if isinstance(part, Utterances) and part.frame_mode]
    other_parts = [part for part in parts if part not in framed]
    if not framed or not other_parts:
        return parts
    if any((part.lengths != 1).any() for part in framed):
        where = ", ".join(other_parts[0].files) if isinstance(other_parts[0], ReadsFiles) else "another deserializer"
        raise DataError(
            f"frameMode=true makes frames of utterances, which cannot be joined with the sequences of {where}.",
            hint="leave frameMode out; or give all streams as features and labels of HTK or Kaldi",
        )
    return [part.by_utterance() if isinstance(part, Utterances) else part for part in parts]


def join_frames(parts: Sequence[Deserializer], **options: Any) -> JoinedFrames | None:
    """Deserializers in frame mode as one, if all have utterances whose frames are all good."""
    ours = [part for part in parts if isinstance(part, Utterances) and part.frame_mode and not part.has_invalid]
    return JoinedFrames(ours, **options) if len(ours) == len(parts) else None
