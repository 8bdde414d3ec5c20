"""CNTKTextFormatDeserializer: sequences out of a text file, by chunk or one by one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.common.packed import PackedBytes, open_text
from cntkpy.readers.common.recent import RECENTLY, SPARE
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.formats.text import fallback
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.streams import StreamInformation

from .events import UNREAD
from .faults import Faults, absence
from .index import DEFAULT_OPTIONS, IndexOptions, TextIndex, build_index
from .parse import PADDING, Parsed, parse, streams_of
from .parsed_ahead import Kept, ParsedAhead
from .stream_format import StreamFormat
from .tables import Runs, Text

GAP = 4096  # bytes that are as quickly read as left out
_NO_TEXT = np.empty(0, np.uint8)
log = logging.getLogger("cntkpy.readers")


class TextFormatDeserializer:
    """A file in CNTK text format. Loading is safe from several threads.

    Args:
        path: The file.
        formats: The streams.
        dtype: Of the values.
        index: Options of the index; its `main` is that of the streams.
        max_errors: Malformed places that are tolerated.
        trace_level: From 1 on, places are logged; from 2 on, every sequence.
        parse_ahead: Parse chunks of a compressed file while the index is made; they are used if whole chunks are
            loaded.
    """

    def __init__(
        self,
        path: str,
        formats: Sequence[StreamFormat],
        dtype: np.dtype | type = np.float32,
        index: IndexOptions = DEFAULT_OPTIONS,
        *,
        max_errors: int = 0,
        trace_level: int = 1,
        parse_ahead: bool = False,
    ):
        self._file = open_text(path)
        self.path, self.formats, self.dtype = self._file.path, list(formats), np.dtype(dtype)
        self.trace_level = trace_level
        self.defines_mb_size = any(f.defines_mb_size for f in self.formats)
        self.streams = [StreamInformation(f.name, (f.dim,), f.sparse, self.dtype) for f in self.formats]
        self._names = streams_of(self.formats)
        main = next((f.alias for f in self.formats if f.defines_mb_size), "")
        self._local = threading.local()  # the text of each thread
        self._named = not index.corpus.numeric
        self._parsed = ParsedAhead(index.chunk_size, self._parse_ahead)
        meanwhile = self._parsed.more if parse_ahead else None
        self.index = build_index(path, replace(index, main=main), data=self._file, meanwhile=meanwhile)
        self._local = threading.local()  # mostly other threads load
        self._loads = 0
        self.table = self.index.table
        first = self.table.first
        spans = self.index.ends[first[1:] - 1] - self.index.begins[first[:-1]]
        self.chunk_bytes = spans // 2 * self.dtype.itemsize
        self._faults = Faults(self._file, self.index, self.formats, max_errors, trace_level)
        if trace_level > 0:
            _warn_of_file(self.index, self.path)

    @property
    def files(self) -> list[str]:
        """The file that is read."""
        return [self.path]

    def absence(self, stream: str) -> tuple[str, str, str] | None:
        """See `KnowsAbsence`."""
        return absence(stream, self.formats, self._file)

    @property
    def whole_chunks(self) -> bool:
        """True if a single sequence takes as long to load as its whole chunk: it is unpacked, or comes in a block."""
        return self._file.packed or not self._file.local

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all sequences of a chunk, read in one go."""
        self._loads += 1
        these = slice(int(self.table.first[chunk]), int(self.table.first[chunk + 1]))
        if (kept := self._parsed.take(chunk)) is not None:
            RECENTLY.release(self, kept.nbytes)
            return self._loaded(kept.parsed, kept.text, kept.begins, these)
        begins, ends = self.index.begins[these], self.index.ends[these]
        from_, to = begins[:1], ends[-1:]
        begins, ends = begins - from_[0], ends - from_[0]
        result = self._load((from_, to, np.zeros(1, np.int64)), begins, ends, these)
        if self._loads % len(self.chunk_bytes) == 0:  # mostly those were all
            self._local.buffer = None
        return result

    def _parse_ahead(self, offsets: np.ndarray, sizes: np.ndarray, samples: np.ndarray) -> Kept | None:
        """Parse a chunk before the index is complete; None if it has errors, which are counted when it is needed."""
        size, begins = int(offsets[-1] + sizes[-1] - offsets[0]), offsets - offsets[0]
        buffer = self._buffer(size + 1 + PADDING)
        buffer[-PADDING:] = 10
        self._read(buffer[: size + 1], int(offsets[0]))
        text = Text(buffer, begins, begins + sizes, samples)
        parsed = parse(text, self.formats, self._names, self.dtype, 0, self._named)
        if parsed.chunk is None:
            return None
        kept = Kept(parsed, _NO_TEXT, begins[:0], parsed.chunk.nbytes)
        if len(parsed.events):  # of what the file has and nobody reads
            kept = Kept(parsed, buffer.copy(), begins, parsed.chunk.nbytes + len(buffer))
        if not RECENTLY.reserve(self, kept.nbytes, SPARE):
            return None
        if isinstance(self._file, PackedBytes):
            self._file.forget(int(offsets[0]) + size)
        return kept

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return these sequences, in the given order, read in order of the file. Neighbours are read in one go."""
        offsets = self.index.begins[sequences]
        sizes = self.index.ends[sequences] - offsets
        ordered = np.argsort(offsets, kind="stable") if np.any(np.diff(offsets) < 0) else np.arange(len(offsets))
        starts, stops = offsets[ordered], offsets[ordered] + sizes[ordered]
        new = np.ones(len(starts), bool)
        # What lies between two of them is read too if that is not more than the sequences themselves.
        new[1:] = starts[1:] > stops[:-1] + min(GAP, int(sizes.mean()))
        runs = np.flatnonzero(new)
        begins, ends = starts[runs], stops[np.append(runs[1:] - 1, len(stops) - 1)]
        places = starts_of(ends - begins + 1)
        of_run = np.cumsum(new) - 1
        where = np.empty(len(starts), np.int64)
        where[ordered] = starts - begins[of_run] + places[of_run]
        return self._load((begins, ends, places[:-1]), where, where + sizes, sequences)

    def _load(
        self,
        runs: tuple[np.ndarray, np.ndarray, np.ndarray],
        begins: np.ndarray,
        ends: np.ndarray,
        sequences: np.ndarray | slice,
    ) -> Chunk:
        """Read pieces of the file and parse the sequences which then begin and end at these places of the buffer.

        runs: first byte of each piece, the byte after its last one, its place in the buffer, int64[r] each.
        """
        buffer = self._buffer(int(runs[2][-1] + runs[1][-1] - runs[0][-1]) + 1 + PADDING)
        buffer[-PADDING:] = 10
        nominal = self.table.lengths if len(self.table.lengths) == 1 else self.table.lengths[sequences]
        nominal = nominal.astype(np.int32, copy=False)
        text = Text(buffer, begins, ends, nominal)
        cut, named = self._cut(ends, sequences), self._named
        budget = self._faults.budget(sequences)
        if fits_budget(2 * len(buffer)):
            self._read_runs(runs, buffer)
            places = fallback.parse(text, self.formats, self.dtype, budget, named, cut)
            if places is not None:
                return self._loaded(places, buffer, begins, sequences)
        arguments = (text, self.formats, self._names, self.dtype, budget, named, cut)
        readable = self._file.descriptor >= 0
        parsed = parse(*arguments, runs=Runs(self._file.descriptor, *runs)) if readable else None
        if parsed is None or parsed.code == UNREAD:  # not by kernels, or to tell what is wrong
            self._read_runs(runs, buffer)
            parsed = parse(*arguments)
        return self._loaded(parsed, buffer, begins, sequences)

    def _loaded(self, parsed: Parsed, buffer: np.ndarray, begins: np.ndarray, sequences: np.ndarray | slice) -> Chunk:
        """Return the parsed chunk; log its events."""
        if len(parsed.events):
            self._faults.report(parsed, buffer, begins, _numbers(sequences))
        if parsed.chunk is None:
            raise AssertionError("the parser gave no chunk and no error")
        if self.trace_level > 1:
            _log_sequences(parsed.chunk, self.index, _numbers(sequences), self.path)
        return parsed.chunk

    def _read_runs(self, runs: tuple[np.ndarray, np.ndarray, np.ndarray], buffer: np.ndarray) -> None:
        """Read the pieces of the file into the buffer."""
        for from_, to, place in zip(*runs, strict=True):
            self._read(buffer[place : place + to - from_ + 1], int(from_))

    def _cut(self, ends: np.ndarray, sequences: np.ndarray | slice) -> int:
        """Return the end of the file among these sequences, if its last line has no newline; else -1."""
        if self.index.newline_at_end:
            return -1
        last = self.table.num_sequences - 1
        if isinstance(sequences, slice):
            return int(ends[-1]) if sequences.stop == last + 1 else -1
        places = np.flatnonzero(sequences == last)
        return int(ends[places[0]]) if len(places) else -1

    def _buffer(self, size: int) -> np.ndarray:
        """Memory of this thread for text, used again and again: fresh pages cost as much as reading the file."""
        have = getattr(self._local, "buffer", None)
        if have is None or len(have) < size:
            have = self._local.buffer = np.empty(size + size // 8, np.uint8)
        return have[:size]

    def _read(self, into: np.ndarray, offset: int) -> None:
        """Fill `into` but for its last byte, which becomes LF, from byte `offset` of the file."""
        self._file.read(into[:-1], offset)
        into[-1] = 10


def _numbers(sequences: np.ndarray | slice) -> np.ndarray:
    return np.arange(int(sequences.start), int(sequences.stop)) if isinstance(sequences, slice) else sequences


def _warn_of_file(index: TextIndex, path: str) -> None:
    """Log warnings about a file that can be read."""
    if not index.newline_at_end:
        log.warning("The last line of the input file (%s) does not end with a newline; it is read all the same.", path)
    if (repeated := index.repeated()) is not None:
        log.warning(
            "Sequence id %s occurs again after other ids; its lines are read as several sequences (file %s).",
            repeated,
            path,
        )


def _log_sequences(chunk: Chunk, index: TextIndex, numbers: np.ndarray, path: str) -> None:
    """Log a line for every sequence that was read."""
    counts = {name: np.diff(data.sequences).tolist() for name, data in chunk.streams.items()}
    for i, key in enumerate(index.table.names(numbers)):
        samples = ", ".join(f"{name}: {lengths[i]}" for name, lengths in counts.items())
        offset = int(index.begins[numbers[i]])
        text = "Read sequence id %s (samples of %s), at offset %d in the input file (%s)."
        log.info(text, key, samples, offset, path)
