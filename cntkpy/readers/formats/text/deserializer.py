"""CNTKTextFormatDeserializer: sequences out of a text file, by chunk or one by one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from cntkpy.cntk_config.base.diagnostics import nearest
from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.packed import DataBytes, PackedBytes, open_text
from cntkpy.readers.common.recent import RECENTLY, SPARE
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.text import fallback
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.streams import StreamInformation

from .events import UNKNOWN, UNREAD
from .index import BOM, NUMERIC, build_index
from .parse import PADDING, Parsed, parse, streams_of
from .parsed_ahead import Kept, ParsedAhead
from .stream_format import StreamFormat
from .tables import Runs, Text

_LOOKED_AT = 256 << 10
GAP = 4096  # bytes that are as quickly read as left out
_NO_TEXT = np.empty(0, np.uint8)
log = logging.getLogger("cntkpy.readers")


class TextFormatDeserializer:
    """A file in CNTK text format. Loading is safe from several threads.

    threads: how many read the index; parse_ahead: parse chunks of a compressed file while the index is made; they
    are used if whole chunks are loaded.
    """

    def __init__(
        self,
        path: str,
        formats: Sequence[StreamFormat],
        dtype: np.dtype | type = np.float32,
        *,
        skip_sequence_ids: bool = False,
        max_errors: int = 0,
        chunk_size: int = 32 << 20,
        trace_level: int = 1,
        corpus: Corpus = NUMERIC,
        cache_index: bool = False,
        threads: int = 1,
        parse_ahead: bool = False,
    ):
        self._file = open_text(path)
        self.path, self.formats, self.dtype = self._file.path, list(formats), np.dtype(dtype)
        self.max_errors, self.trace_level = max_errors, trace_level
        self.defines_mb_size = any(f.defines_mb_size for f in self.formats)
        self.streams = [StreamInformation(f.name, (f.dim,), f.sparse, self.dtype) for f in self.formats]
        self._names = streams_of(self.formats)
        main = next((f.alias for f in self.formats if f.defines_mb_size), "")
        self._local = threading.local()  # the text of each thread
        self._named = not corpus.numeric
        self._parsed = ParsedAhead(chunk_size, self._parse_ahead)
        self.index = build_index(
            path,
            skip_sequence_ids=skip_sequence_ids,
            main=main,
            chunk_size=chunk_size,
            corpus=corpus,
            cache=cache_index,
            threads=threads,
            data=self._file,
            meanwhile=self._parsed.more if parse_ahead else None,
        )
        self._local = threading.local()  # mostly other threads load
        self.table = self.index.table
        first = self.table.first
        spans = self.index.ends[first[1:] - 1] - self.index.begins[first[:-1]]
        self.chunk_bytes = spans // 2 * self.dtype.itemsize
        self._lock = threading.Lock()
        self._counted: set[int] = set()
        self._warned: set[str] = set()
        self._kept_quiet = False
        if trace_level > 0:
            self._warn_of_file()

    def _warn_of_file(self) -> None:
        """Return warnings about a file that can be read."""
        if not self.index.newline_at_end:
            log.warning(
                "The last line of the input file (%s) does not end with a newline; it is read all the same.", self.path
            )
        if (repeated := self.index.repeated()) is not None:
            log.warning(
                "Sequence id %s occurs again after other ids; its lines are read as several sequences (file %s).",
                repeated,
                self.path,
            )

    @property
    def files(self) -> list[str]:
        """The file that is read."""
        return [self.path]

    def absence(self, stream: str) -> tuple[str, str, str] | None:
        """See `KnowsAbsence`: the first bytes of the file have no sample of the stream, but have other names."""
        from .messages import names_in

        alias = next((f.alias for f in self.formats if f.name == stream), None)
        text = self._file.bytes(0, _LOOKED_AT)
        names = names_in(text)
        if alias is None or alias in names:
            return None
        message = f"'{alias}'" if alias == stream else f"'{alias}', the alias of the input '{stream}'"
        where = f" in its first {_LOOKED_AT >> 10} KB" if len(text) == _LOOKED_AT else ""
        near = nearest(alias, names)
        there = f"it has: {', '.join(names) or 'none'}"
        cure = f"did you mean '{near}'? write alias = {near}" if near else "write one of them as alias = ..."
        return (
            f"The input file ({self.path}) has no values called {message}{where}.",
            f"{there}; {cure} in the section of '{stream}'" if names else there,
            self.path,
        )

    @property
    def whole_chunks(self) -> bool:
        """True if a single sequence takes as long to load as its whole chunk: it is unpacked, or comes in a block."""
        return self._file.packed or not self._file.local

    def load_chunk(self, chunk: int) -> Chunk:
        """All sequences of a chunk, read in one go."""
        these = slice(int(self.table.first[chunk]), int(self.table.first[chunk + 1]))
        if (kept := self._parsed.take(chunk)) is not None:
            RECENTLY.release(self, kept.nbytes)
            return self._loaded(kept.parsed, kept.text, kept.begins, these)
        begins, ends = self.index.begins[these], self.index.ends[these]
        from_, to = begins[:1], ends[-1:]
        begins, ends = begins - from_[0], ends - from_[0]
        return self._load((from_, to, np.zeros(1, np.int64)), begins, ends, these)

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
        """These sequences, in the given order, read in order of the file. Neighbours are read in one go."""
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
        known = self._known_errors(sequences)
        budget = max(0, self.max_errors - len(self._counted) + known)  # once exceeded, what is sound can still be read
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
        """Return what was read; log its events."""
        if len(parsed.events):
            self._report(parsed, buffer, begins, _numbers(sequences))
        if parsed.chunk is None:
            raise AssertionError("the parser gave no chunk and no error")
        if self.trace_level > 1:
            self._tell_loaded(parsed.chunk, _numbers(sequences))
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

    def _tell_loaded(self, chunk: Chunk, numbers: np.ndarray) -> None:
        """A line for every sequence that was read."""
        counts = {name: np.diff(data.sequences).tolist() for name, data in chunk.streams.items()}
        for i, key in enumerate(self.table.names(numbers)):
            samples = ", ".join(f"{name}: {lengths[i]}" for name, lengths in counts.items())
            offset = int(self.index.begins[numbers[i]])
            log.info(
                "Read sequence id %s (samples of %s), at offset %d in the input file (%s).",
                key,
                samples,
                offset,
                self.path,
            )

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

    def _known_errors(self, sequences: np.ndarray | slice) -> int:
        """Errors counted before in these sequences: a place in the file counts once, however often it is read."""
        if not self._counted:
            return 0
        begins, ends = self.index.begins[sequences], self.index.ends[sequences]
        with self._lock:
            known = np.array(sorted(self._counted)) >> 4
        return int(np.sum(np.searchsorted(known, ends) - np.searchsorted(known, begins)))

    def _report(self, parsed: Parsed, buffer: np.ndarray, begins: np.ndarray, sequences: np.ndarray) -> None:
        """Log warnings, count errors, stop when the budget is used up."""
        from .messages import describe, other_format

        with self._lock:
            places, text, line, cure = Places(self._file), "", 0, None
            for kind, position, number, stream in parsed.events.tolist():
                sequence = int(sequences[number])
                offset = int(self.index.begins[sequence]) + position - int(begins[number])
                counted = kind < UNKNOWN
                if counted:
                    fresh = (offset << 4) + kind not in self._counted
                    self._counted.add((offset << 4) + kind)
                    last = len(self._counted) > self.max_errors
                else:
                    fresh, last = True, False
                if not last and (self.trace_level < 1 or not fresh):
                    self._kept_quiet |= fresh
                    continue
                message = describe(buffer, kind, position, stream, self.formats, int(begins[number]))
                if kind >= UNKNOWN:
                    if message in self._warned:
                        continue
                    self._warned.add(message)
                line, column = places.find(offset)
                key = self.table.names(np.array([sequence]))[0]
                place = f"line {line}, column {column}, sequence id {key}"
                text = f"{message} ({place}, byte offset {offset})."
                if last:
                    cure = other_format(buffer, kind, position, stream, self.formats)
                    break
                log.warning("%s (%s), at offset %d in the input file (%s).", message, place, offset, self.path)
            exhausted = len(self._counted) > self.max_errors and bool((parsed.events[:, 0] < UNKNOWN).any())
        if exhausted:
            quiet = "; traceLevel=1 shows all the others" if self._kept_quiet else ""
            raise DataError(
                f"Reached the maximum number of allowed errors while reading the input file ({self.path}). {text}",
                path=self.path,
                line=line,
                hint=cure
                or f"mend the file, or raise maxErrors (now {self.max_errors}) to skip malformed samples{quiet}",
            )


def _numbers(sequences: np.ndarray | slice) -> np.ndarray:
    return np.arange(int(sequences.start), int(sequences.stop)) if isinstance(sequences, slice) else sequences


class Places:
    """Line and column (both from 1) of bytes of a text, read again only as far as needed."""

    def __init__(self, data: DataBytes):
        self._data = data
        self._read = 0
        self._lines = 0
        self._last = -1
        with suppress(OSError), data.stream() as file:
            self._last += len(BOM) * (file.read(len(BOM)) == BOM)  # no editor shows it

    def find(self, offset: int) -> tuple[int, int]:
        """Line and column of byte `offset`."""
        if offset < self._read:
            self.__init__(self._data)
        try:
            with self._data.stream() as file:
                file.seek(self._read)
                while self._read < offset and (block := file.read(min(1 << 20, offset - self._read))):
                    count = block.count(b"\n")
                    if count:
                        self._lines += count
                        self._last = self._read + block.rfind(b"\n")
                    self._read += len(block)
        except OSError:
            return 0, 0
        return self._lines + 1, offset - self._last
