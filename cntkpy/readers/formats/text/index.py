"""The index of a text file: where every sequence lies, found in one buffered pass or taken from a cache."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, BinaryIO

import numpy as np

from cntkpy.readers.common import index_cache
from cntkpy.readers.common.corpus import Corpus, repeated
from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.common.packed import DataBytes, PackedBytes, believe, open_text
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.text import fallback
from cntkpy.readers.formats.text.blocks import whole_lines
from cntkpy.readers.formats.text.offsets import Offsets, joined
from cntkpy.readers.kernels import text_codes as codes
from cntkpy.readers.kernels.budget import fits_budget, make_room

BLOCK_BYTES = 1 << 20
_SOME = 1 << 16
_BLOCKS_OF_FILE = 4
"""Read at once from a file that is not compressed: a thread that reads ahead is asked for each."""
_WORTH = 4
"""The blocks from which on a thread that reads ahead is worth its start."""
BYTES_PER_THREAD = 16 << 20  # bytes of a file worth a thread
BOM = b"\xef\xbb\xbf"
UNKNOWN = 2**62
"""The size of a compressed file that is not little, before it was unpacked."""
_CHUNKS_BY_SEARCH = 1000
"""If chunks have more sequences than this, to look for the end of each is faster than to look at every sequence."""
_SCANNED_PER_WORK, _LINE_WORK, _CHUNK_WORK = 8, 20, 40
"""Bytes that take as long to look through without kernels as a unit of work; the work of a line, of a chunk."""
_LENGTHS = np.dtype(np.uint8), np.dtype(np.int32)
"""Types of the lengths: the smaller one if all fit."""
_BLANK = b" \t\r\n\v\f\0"
NUMERIC = Corpus()
Meanwhile = Callable[[Offsets, np.ndarray], bool]
"""Something to be done with the first sequences: their n offsets and samples, uint8[n - 1] or int32[n - 1]; the end of
the last one is not known yet. Returns whether there was something to do."""


@dataclass(eq=False)
class TextIndex:
    """Sequences of a text file: the table of keys and lengths, and where each lies.

    begins, ends: N each; size: bytes of the file; newline_at_end: whether the file ends in LF.
    """

    table: SequenceTable
    begins: Offsets
    ends: Offsets
    size: int
    newline_at_end: bool

    def repeated(self) -> int | str | None:
        """Return a sequence id that is at two places of the file with others in between; None if there is none."""
        keys = self.table.keys
        same = repeated(keys) if keys is not None else None
        return self.table.names(np.array([same[0]]))[0] if same is not None else None


@dataclass(frozen=True)
class IndexOptions:
    """Options of an index.

    Attributes:
        skip_sequence_ids: Whether every line is a sequence.
        main: Alias of the input whose samples define the length of a sequence.
        chunk_size: Bytes of a chunk.
        block: Bytes that are looked through at once.
        corpus: The keys.
        cache: Use an index kept next to the file, or keep this one. A compressed file is unpacked for its index in any
            case, so none is kept.
        threads: Pieces of the file that are read at once, at most.
        piece: Bytes of a piece, at least.
    """

    skip_sequence_ids: bool = False
    main: str = ""
    chunk_size: int = 32 << 20
    block: int = BLOCK_BYTES
    corpus: Corpus = NUMERIC
    cache: bool = False
    threads: int = 1
    piece: int = BYTES_PER_THREAD


DEFAULT_OPTIONS = IndexOptions()


def build_index(
    path: str,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    data: DataBytes | None = None,
    meanwhile: Meanwhile | None = None,
) -> TextIndex:
    """Read the whole file once.

    Args:
        path: The file.
        options: See `IndexOptions`.
        data: The file, if it is open already.
        meanwhile: Called as long as the next bytes of a compressed file are not unpacked.

    Raises:
        DataError: The file cannot be read, or has no sequences of these options.
    """
    data = data or open_text(path)
    path, corpus, main = data.path, options.corpus, options.main
    cache = options.cache and not data.packed and data.local
    try:
        kept = index_cache.cache_name(path, main, options.skip_sequence_ids, not corpus.numeric, corpus.hashed)
        index = index_cache.load(kept, path, is_sound) if cache else None
        if index is None:
            index = _build(data, options, meanwhile)
            if cache:
                index_cache.save(kept, path, *index)
        return _finish(data, main, options.chunk_size, corpus, *index)
    except OSError as error:
        raise DataError(
            f"The input file ({path}) cannot be read: {error.strerror or error}", path=path, hint="check 'file'"
        ) from None


@dataclass(eq=False)
class _Found:
    """Sequences of a piece of the file: per sequence keys uint64, samples uint8 or int32, offsets, after which
    comes the end of the last one."""

    keys: np.ndarray
    base: int
    """If there are no keys, and not every line is a sequence: the key of sequence i is base + i, modulo 2^64."""
    samples: np.ndarray
    offsets: Offsets
    lines: int
    newline: bool
    end: int
    """Byte offset of the end of the piece."""
    fault: tuple[int, int] | None
    """Error code and byte offset; then `lines` are those before it."""

    def key(self, sequence: int) -> int:
        """Return a key."""
        return int(self.keys[sequence]) if len(self.keys) else (self.base + sequence) % 2**64

    def all_keys(self) -> np.ndarray:
        """Return the keys, uint64."""
        return self.keys if len(self.keys) else _counted(self.base, len(self.samples))

    def add_samples(self, count: int) -> None:
        """To the last sequence."""
        samples = int(self.samples[-1]) + count
        if samples > np.iinfo(self.samples.dtype).max:
            self.samples = self.samples.astype(np.int32)
        self.samples[-1] = samples

    def drop(self, count: int) -> None:
        """Leave out the first sequences."""
        self.keys, self.base = self.keys[count:], self.base + count
        self.samples, self.offsets = self.samples[count:], self.offsets.shifted(count)


def _build(
    data: DataBytes, options: IndexOptions, meanwhile: Meanwhile | None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays keys, samples, offsets and turns (see `Offsets`) of all sequences; the size of the file,
    whether it ends in LF, and (if every line is a sequence) the lines in front of the first one with data.
    """
    path, corpus, main = data.path, options.corpus, options.main.encode()
    with data.stream() as file:
        begin, first, skipped = _start(file, path)
        named = not corpus.numeric
        by_line = options.skip_sequence_ids or first == b"|"
        if named and by_line:
            raise DataError(
                f"The sequences of {path} have no keys, but here keys are texts: useNumericSequenceKeys=false says so, "
                "or they are names of utterances.",
                path=path,
                hint="write a key before the first '|' of each sequence",
            )
        mode = codes.LINES if by_line else codes.NAMES if named else codes.NUMBERS
        size = _little(data) if data.packed else file.seek(0, 2)
        if (text := _text_in_budget(file, begin, size)) is not None:
            parsed = fallback.find_sequences(text, begin, mode, main, corpus.hashed)
            if len(text) == size - begin:
                if parsed.fault is not None:
                    raise _bad_key(data, *parsed.fault, skipped + parsed.lines + 1, named)
                offsets = Offsets.of(np.append(parsed.offsets, size))
                return _arrays(parsed.keys, parsed.samples, offsets), {
                    "size": size,
                    "newline": text.endswith(b"\n"),
                    "skipped": skipped * by_line,
                }
        several = 1 if named or data.packed else max(1, min(options.threads, (size - begin) // max(1, options.piece)))
        cuts = [begin, *(_next_line(file, begin + (size - begin) * i // several) for i in range(1, several)), size]
    pieces = [(a, b) for a, b in pairwise(cuts) if a < b]

    def scan(bounds: tuple[int, int]) -> _Found:
        scanned = _Scan(bounds[0], mode, main, corpus.hashed, continues=bounds[0] > begin)
        return _scan(data, scanned, *bounds, options.block, meanwhile)

    together = Lock()

    def scan_with_others(bounds: tuple[int, int]) -> _Found:
        with together:
            pass
        return scan(bounds)

    if len(pieces) == 1:
        scans = [scan(pieces[0])]
    else:
        with ThreadPoolExecutor(len(pieces) - 1, "cntkpy-index") as pool:
            # A thread that works at once keeps the core of the one that started it, which then continues late.
            with together:
                futures = [pool.submit(scan_with_others, scanned) for scanned in pieces[1:]]
            scans = [scan(pieces[0]), *(future.result() for future in futures)]
    lines = skipped
    for scanned in scans:
        if scanned.fault is not None:
            raise _bad_key(data, *scanned.fault, lines + scanned.lines + 1, named)
        lines += scanned.lines
    whole = scans[0] if len(scans) == 1 else _join(scans, by_line)
    keys = whole.keys if by_line or (whole.key(0) == 0 and not len(whole.keys)) else whole.all_keys()
    return _arrays(keys, whole.samples, whole.offsets), {
        "size": scans[-1].end,
        "newline": scans[-1].newline,
        "skipped": skipped * by_line,
    }


def _arrays(keys: np.ndarray, samples: np.ndarray, offsets: Offsets) -> dict[str, np.ndarray]:
    return {"keys": keys, "samples": samples, "offsets": offsets.low, "turns": offsets.turns}


def _little(data: DataBytes) -> int:
    """Return the size of a compressed file if it is little; `UNKNOWN`, without unpacking it all, if it is not."""
    size = len(data.bytes(0, BLOCK_BYTES + 1))
    return size if size <= BLOCK_BYTES else UNKNOWN


class _Scan:
    """The sequences of lines that follow each other, so far.

    continues: the first lines may belong to a sequence that began before; then sequence 0 is what belongs to it.
    """

    def __init__(self, begin: int, mode: int, main: bytes, hashed: bool, continues: bool) -> None:
        from cntkpy.readers.kernels import index_kernels

        self._kernels = k = index_kernels
        self.state = np.zeros(k.STATE, np.int64)
        self.state[[k.HASHED, k.MODE, k.COUNTED, k.MOST]] = hashed, mode, mode == codes.NUMBERS, 255
        self.keys = np.empty(1024 if mode == codes.NAMES else 0, np.uint64)
        self.samples, self.offsets = np.empty(1024, np.uint8), np.empty(1024, np.uint32)
        self.turns = list[int]()
        if continues:
            self.state[k.HIGH] = begin >> 32
            if mode == codes.NUMBERS:
                self.state[k.SEQUENCES] = self.state[k.CONTINUES] = 1
                self.offsets[0] = begin % 2**32
        self._begin, self._main = begin, np.frombuffer(main, np.uint8)
        self._last_name = np.empty(codes.LONGEST_NAME if mode == codes.NAMES else 1, np.uint8)

    @property
    def count(self) -> int:
        """Number of sequences."""
        return int(self.state[self._kernels.SEQUENCES])

    def add(self, buffer: np.ndarray, size: int, offset: int, end: int) -> tuple[int, int] | None:
        """Add those of the lines buffer[:size], which begin at byte `offset` of a file of `end` bytes.

        Returns the code of what is wrong and its place in the file.
        """
        k, state, p = self._kernels, self.state, 0
        while True:
            arrays = self.keys, self.samples, self.offsets
            code = k.find_sequences(buffer, p, size, offset, self._main, *arrays, self._last_name, state)
            p = int(state[k.POSITION])
            if code == codes.FULL:
                seen = max(offset + p - self._begin, 1)  # of the file, to guess how many sequences there will be
                left = (end - self._begin) / seen if end != UNKNOWN else 0
                self._make_room(max(2 * len(self.offsets), int(len(self.offsets) * left * 1.1)))
            elif code == codes.OTHER_KEYS:
                state[k.COUNTED], self.keys = 0, np.empty(len(self.offsets), np.uint64)
                self.keys[: self.count] = _counted(int(state[k.BASE]), self.count)
            elif code == codes.MANY_SAMPLES:
                state[k.MOST], self.samples = 2**31 - 1, self.samples.astype(np.int32)
            elif code == codes.HIGHER:
                self._turn(offset + p)
            else:
                return None if code == codes.DONE else (code, offset + p)

    def result(self, newline: bool, end: int, fault: tuple[int, int] | None) -> _Found:
        """Return the sequences up to byte `end` of the file."""
        n = self.count
        if n == len(self.offsets):
            self._make_room(n + 1)
        self._turn(end)
        self.offsets[n] = end % 2**32
        if n:
            here = int(self.state[self._kernels.HERE])
            self.samples = self.samples if here <= np.iinfo(self.samples.dtype).max else self.samples.astype(np.int32)
            self.samples[n - 1] = here
        base, lines = int(self.state[self._kernels.BASE]), int(self.state[self._kernels.LINE])
        return _Found(self.keys[:n], base, self.samples[:n], self.so_far(n + 1), lines, newline, end, fault)

    def so_far(self, count: int) -> Offsets:
        """Return the first offsets."""
        return Offsets(self.offsets[:count], np.array(self.turns, np.int64))

    def _turn(self, offset: int) -> None:
        """The next offset is this one."""
        high = self._kernels.HIGH
        self.turns += [self.count] * ((offset >> 32) - int(self.state[high]))
        self.state[high] = offset >> 32

    def _make_room(self, room: int) -> None:
        self.keys = _longer(self.keys, room) if len(self.keys) else self.keys
        self.samples, self.offsets = _longer(self.samples, room), _longer(self.offsets, room)


def _scan(data: DataBytes, scan: _Scan, begin: int, end: int, block: int, meanwhile: Meanwhile | None = None) -> _Found:
    """Read the lines in the bytes begin..end-1."""
    plain = data if isinstance(data, FileBytes) else None
    past = plain if plain is not None and plain.too_large_to_keep() else None
    block *= _BLOCKS_OF_FILE if plain is not None else 1
    offset, newline = begin, True
    fault: tuple[int, int] | None = None
    with data.stream(0) if past is None else past.passing() as file:
        assert isinstance(file, io.RawIOBase)
        file.seek(begin)
        ahead = plain is not None and past is None and end - begin >= _WORTH * block
        with closing(whole_lines(file, end - begin, block, ahead=ahead)) as parts:
            for lines, held, is_end in parts:
                fault = scan.add(lines, len(lines), offset, end)
                offset += len(lines)
                if fault is not None:
                    break
                if is_end:
                    newline = not len(lines)
                elif not len(lines):
                    believe(data, held, offset)
                if meanwhile is not None and isinstance(data, PackedBytes):
                    while (n := scan.count) and not data.ready(offset + held):
                        if not meanwhile(scan.so_far(n), scan.samples[: n - 1]):
                            break
    return scan.result(newline, offset, fault)


def _join(scans: list[_Found], by_line: bool) -> _Found:
    """Pieces put together; a sequence cut in two becomes one again."""
    last, counted = scans[0], not len(scans[0].keys)
    for after in [] if by_line else scans[1:]:
        count = 1 + int(len(after.samples) > 1 and after.key(1) == last.key(len(last.samples) - 1))
        last.add_samples(int(after.samples[:count].sum(dtype=np.int64)))
        after.drop(count)
        if len(after.samples):
            counted = counted and not len(after.keys) and after.key(0) == last.key(len(last.samples))
            last = after
    keys = scans[0].keys if counted else np.concatenate([scanned.all_keys() for scanned in scans])
    samples = np.concatenate([scanned.samples for scanned in scans])
    offsets = joined([scanned.offsets for scanned in scans])
    lines = sum(scanned.lines for scanned in scans)
    return _Found(keys, scans[0].base, samples, offsets, lines, scans[-1].newline, scans[-1].end, None)


def _counted(base: int, count: int) -> np.ndarray:
    """base, base + 1, ... modulo 2^64."""
    return np.arange(count, dtype=np.uint64) + np.uint64(base % 2**64)


def _next_line(file: BinaryIO, offset: int) -> int:
    """Offset of the first line that begins at or after byte `offset`; the size of the file if there is none."""
    file.seek(offset - 1)
    file.readline()
    return file.tell()


def _bad_key(data: DataBytes, code: int, place: int, line: int, named: bool) -> DataError:
    from .messages import table_hint

    if code == codes.OVERFLOW:
        message = "Overflow while reading a numeric sequence id"
    elif code == codes.LONG_NAME:
        message = f"A sequence key is longer than {codes.LONGEST_NAME} bytes"
    else:
        message = f"Expected a sequence {'key' if named else 'id'} at the offset {place}, none was found"
    hint = (
        "a key is at the very start of a line and ends at the first blank"
        if named
        else "a sequence id is a number below 2^64 at the very start of a line; "
        "skipSequenceIds=true makes every line a sequence"
    )
    path = data.path
    with data.stream() as file:
        first = file.readline(1 << 16)
    if convert := table_hint(path, first):
        hint = f"the file {convert} of it"
    return DataError(
        f"{message} (file {path}, line {line}, column 1, byte offset {place}).", path=path, line=line, hint=hint
    )


def _start(file: BinaryIO, path: str) -> tuple[int, bytes, int]:
    """Offset of the first byte that is neither mark nor blank, that byte, and the lines in front of it."""
    head = file.read(3)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(
            f"The input file ({path}) is UTF-16, which is not supported.", path=path, hint="save it as UTF-8 or ASCII"
        )
    offset = 3 if head == BOM else 0
    file.seek(offset)
    lines = 0
    while block := file.read(1 << 16):
        stripped = block.lstrip(_BLANK)
        blanks = len(block) - len(stripped)
        lines += block.count(b"\n", 0, blanks)
        if stripped:
            return offset + blanks, stripped[:1], lines
        offset += blanks
    raise DataError(f"Input file is empty: {path}", path=path, hint="there is no line with data in it")


def is_sound(arrays: index_cache.Arrays, details: index_cache.Details, size: int) -> bool:
    """Return whether these arrays can be the index of a file of this size: kernels read where they say."""
    keys, samples, low, turns = (arrays[name] for name in ("keys", "samples", "offsets", "turns"))
    kinds = [(scanned.dtype, scanned.ndim) for scanned in (keys, low, turns)]
    if kinds != [(np.uint64, 1), (np.uint32, 1), (np.int64, 1)] or not len(samples):
        return False
    if samples.dtype not in _LENGTHS or samples.ndim != 1:
        return False
    if details["size"] != size or not all(isinstance(details[name], int) for name in ("newline", "skipped")):
        return False
    offsets = Offsets(low, turns)
    return (
        len(low) == len(samples) + 1
        and len(keys) in (0, len(samples))
        and len(turns) == size >> 32
        and offsets.ascend()
        and int(low[-1]) == size % 2**32
        and int(samples.min()) >= 0
        and (int(samples.max()) * len(samples) <= size or int(samples.sum(dtype=np.int64)) <= size)
    )


def _finish(
    data: DataBytes, main: str, chunk_size: int, corpus: Corpus, arrays: dict[str, np.ndarray], details: dict[str, Any]
) -> TextIndex:
    """Form the chunks."""
    keys, samples = arrays["keys"] if len(arrays["keys"]) else None, arrays["samples"]
    offsets = Offsets(arrays["offsets"], arrays["turns"])
    if keys is None and details["skipped"]:  # without ids, the key is the number of the line
        keys = _counted(details["skipped"], len(samples))
    begins, ends = (
        Offsets(offsets.low[:-1], offsets.turns),
        offsets.shifted(1),
    )  # a sequence ends where the next one begins
    if data.packed:
        for offset in range(0, len(samples), _SOME):  # no array as long as the index is made
            sizes = np.diff(offsets[offset : offset + _SOME + 1])
            believe(data, int(sizes.max()), int(offsets[offset + int(sizes.argmax())]))
    if main and not samples.all():
        keys = _counted(0, len(samples)) if keys is None else keys
        keep = np.flatnonzero(samples > 0)
        keys, samples, begins, ends = keys[keep], samples[keep], begins.chosen(keep), ends.chosen(keep)
    if len(begins) == 0:
        path = data.path
        raise DataError(f"No line of {path} has a sample of input '{main}', which defines the size.", path=path)
    if keys is not None and not corpus.numeric and not corpus.hashed:
        keys = corpus.numbers(_names(data, begins, keys))
    maximum = max(1, min(chunk_size, details["size"]))
    lengths = samples[:1].copy() if samples.min() == samples.max() else samples
    table = SequenceTable(_chunks(begins, ends, maximum), lengths, keys, None if corpus.numeric else corpus)
    return TextIndex(table, begins, ends, details["size"], details["newline"])


def _text_in_budget(file: BinaryIO, begin: int, size: int) -> bytes | None:
    """Return the text of a file of `size` bytes from `begin` on; None if making its index does not fit the budget."""
    if not fits_budget(size // _SCANNED_PER_WORK if make_room(2 * size) else size):
        return None
    file.seek(begin)
    text = file.read(size - begin)
    return text if fits_budget(_LINE_WORK * text.count(b"\n")) else None


def _chunks(begins: Offsets, ends: Offsets, maximum: int) -> np.ndarray:
    """First sequence of every chunk of at most this many bytes (or one sequence), then the number of sequences."""
    size = int(ends[-1]) - int(begins[0])
    if size <= maximum:
        return np.array([0, len(begins)], np.int64)
    # Of two chunks that follow each other, the first sequence of the second did not fit into the first.
    most = min(len(begins), 2 * size // maximum + 1)
    if _CHUNKS_BY_SEARCH * most < len(begins) or fits_budget(_CHUNK_WORK * most):
        return fallback.form_chunks(begins, ends, maximum)
    from cntkpy.readers.kernels import index_kernels as k

    first = np.empty(len(begins) + 1, np.int64)
    return first[: k.form_chunks(begins[:], ends[:], maximum, first) + 1].copy()


def _names(data: DataBytes, offsets: Offsets, lengths: np.ndarray) -> list[str]:
    """Keys of sequences as text; the kernel gave their lengths in bytes."""
    names: list[str] = []
    with data.stream() as file:
        for offset, length in zip(offsets.tolist(), lengths.tolist(), strict=True):
            file.seek(offset)
            names.append(file.read(length).decode("utf-8", "backslashreplace"))
    return names


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    out = np.empty(length, array.dtype)
    out[: len(array)] = array
    return out
