"""A UCI text file as a deserializer: one record per line, fields between blanks, some features, some labels."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

import numpy as np

from cntkpy.readers.common.chunk import Chunk, StreamData, dense_stream
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.common.packed import DataBytes, believe, text_bytes
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.uci import fallback
from cntkpy.readers.kernels import text_codes as codes
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.streams import StreamInformation

from .columns import Columns
from .messages import infinite_field, wrong_field

log = logging.getLogger("cntkpy.readers")

CHUNK = 4 << 20
_BLOCK_BYTES = 4 << 20
_PADDING = 32  # the kernels look at words of eight bytes
_NUMBER = re.compile(rb"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def _find_records(file: DataBytes, translation: bytes | None) -> tuple[np.ndarray, np.ndarray]:
    """Return offset and line (from 0) of every record, int64[n] each."""
    size = file.size
    if fits_budget(size):
        text = file.bytes(0, size)
        begin = _length_of_mark(np.frombuffer(text, np.uint8), file.path)
        return fallback.find_records(text[begin:], begin, translation)
    from cntkpy.readers.kernels import line_kernels as k

    offsets, lines = np.empty(1024, np.int64), np.empty(1024, np.int64)
    state = np.zeros(3, np.int64)
    buffer = np.empty(_BLOCK_BYTES + _PADDING, np.uint8)
    held = position = 0
    while True:
        if len(buffer) - _PADDING - held < _BLOCK_BYTES // 2:
            buffer = np.concatenate([buffer, np.empty(len(buffer), np.uint8)])
        count = min(len(buffer) - _PADDING - held, size - position - held)
        file.read(buffer[held : held + count], position + held)
        filled = held + count
        last = position + filled == size
        whole = filled if last else buffer[:filled].tobytes().rfind(b"\n") + 1
        if not whole:
            believe(file, filled, position)
        state[k.POSITION] = _length_of_mark(buffer[:filled], file.path) if position == 0 else 0
        seen = _with_blanks(buffer, translation)
        while k.find_records(seen, state[k.POSITION], whole, position, offsets, lines, state) == codes.FULL:
            offsets, lines = (np.concatenate([a, np.empty(len(a), np.int64)]) for a in (offsets, lines))
        if last:
            records = int(state[k.RECORD])
            return offsets[:records].copy(), lines[:records].copy()
        buffer[: filled - whole] = buffer[whole:filled].copy()
        position, held = position + whole, filled - whole


def _with_blanks(text: np.ndarray, translation: bytes | None) -> np.ndarray:
    """Return the bytes with blanks as separators and a dot as decimal point."""
    if translation is None:
        return text
    return np.frombuffer(bytearray(text.tobytes().translate(translation)), np.uint8)


def _length_of_mark(head: np.ndarray, path: str) -> int:
    """Return the length of the byte-order mark at the start of a file."""
    mark = head[:3].tobytes()
    if mark[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"The data file {path} is UTF-16.", path=path, hint="save it as UTF-8")
    return 3 if mark == b"\xef\xbb\xbf" else 0


class UCIText:
    """A UCI text file. Loading is safe from several threads once all labels are known.

    labels: the label map; may_add: whether labels of the data that it lacks are added to it. Chunks have to be loaded
    in order then. classes: least size of the one-hot labels.
    """

    def __init__(
        self,
        path: str,
        columns: Columns,
        dtype: np.dtype | type,
        labels: LabelMap | None = None,
        *,
        classes: int = 0,
        may_add: bool = False,
        chunk_size: int = CHUNK,
    ):
        self.columns, self.dtype = columns, np.dtype(dtype)
        self.labels, self.classes, self.may_add = labels or LabelMap(), classes, may_add
        self._translation = columns.translation()
        self._is_infinite = False
        """True once a number was too large for the type of the values, which is said once."""
        try:
            self._file = text_bytes(path)
        except OSError as error:
            raise DataError(
                f"The data file {path} cannot be opened: {error.strerror or error}", path=path, hint="check its name"
            ) from None
        self.path, self.size = self._file.path, self._file.size
        self.offsets, self.lines = _find_records(self._file, self._translation)
        if len(self.offsets) == 0:
            raise DataError(f"The data file {path} is empty.", path=path, hint="there is no line with data in it")
        first = np.unique(np.searchsorted(self.offsets, np.arange(0, self.size + chunk_size, chunk_size)))
        self.table = SequenceTable(np.union1d(first, [0, len(self.offsets)]).astype(np.int64), np.ones(1, np.int32))
        per_record = columns.dim * self.dtype.itemsize + 16 + 20 * (columns.kind != "none")
        if columns.kind == "regression":
            per_record += columns.label_dim * self.dtype.itemsize
        self.chunk_bytes = np.diff(self.table.first) * per_record

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """Features, and labels if there are any."""
        streams = [StreamInformation(self.columns.features, (self.columns.dim,), False, self.dtype)]
        if self.columns.kind == "category":
            streams.append(StreamInformation(self.columns.labels, (self.num_classes,), False, self.dtype))
        elif self.columns.kind == "regression":
            streams.append(StreamInformation(self.columns.labels, (self.columns.label_dim,), False, self.dtype))
        return streams

    @property
    def num_classes(self) -> int:
        """Size of the one-hot labels."""
        return max(self.classes, len(self.labels))

    @property
    def files(self) -> list[str]:
        """The file that is read."""
        return [self.path]

    @property
    def whole_chunks(self) -> bool:
        """True if a single record takes as long to load as its whole chunk: it is unpacked."""
        return self._file.packed

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all records of a chunk."""
        first, end = int(self.table.first[chunk]), int(self.table.first[chunk + 1])
        stop = int(self.offsets[end]) if end < len(self.offsets) else self.size
        buffer = np.empty(stop - int(self.offsets[first]) + _PADDING, np.uint8)
        self._file.read(buffer[:-_PADDING], int(self.offsets[first]))
        buffer[-_PADDING:] = 10
        features, labels = self._parse(buffer, np.arange(first, end))
        return self._chunk(features, labels, np.arange(end - first))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these records, each read by itself."""
        order = np.argsort(sequences, kind="stable")
        ordered = sequences[order]
        begins = self.offsets[ordered]
        ends = np.append(self.offsets, self.size)[ordered + 1]
        place = starts_of(ends - begins + 1)
        buffer = np.empty(int(place[-1]) + _PADDING, np.uint8)
        for i in range(len(ordered)):
            self._file.read(buffer[place[i] : place[i + 1] - 1], int(begins[i]))
        buffer[place[1:] - 1] = 10
        buffer[-_PADDING:] = 10
        features, labels = self._parse(buffer, ordered)
        row = np.empty(len(order), np.int64)
        row[order] = np.arange(len(order))
        return self._chunk(features, labels, row)

    def _chunk(self, features: np.ndarray, labels: np.ndarray, row: np.ndarray) -> Chunk:
        """Return a chunk whose sequence i has the values of row[i]."""
        c = self.columns
        bounds = np.arange(len(row) + 1)
        streams = {c.features: StreamData(c.dim, features, row * c.dim, bounds)}
        if c.kind == "category":
            ones = np.ones(1, self.dtype)
            streams[c.labels] = one_hot(labels[row], self.num_classes, ones)
        elif c.kind == "regression":
            streams[c.labels] = dense_stream(labels.reshape(-1, c.label_dim)[row], bounds)
        return Chunk(streams, features.nbytes + labels.nbytes)

    def _parse(self, text: np.ndarray, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features (flat), and labels: ids, targets (flat) or nothing. text ends in padding."""
        c, n = self.columns, len(records)
        if fits_budget(2 * len(text)):
            arguments = (c, self._translation, self.labels, self.may_add, self.dtype, n)
            result = fallback.parse(text[:-_PADDING].tobytes(), *arguments)
            if isinstance(result, fallback.Trouble):
                if result.code == codes.MORE:
                    raise self._changed()
                raise self._error(result, text, records)
            if result is not None:
                return result
        return self._parse_with_kernels(text, records)

    def _parse_with_kernels(self, text: np.ndarray, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from cntkpy.readers.kernels import line_kernels as k

        c, n = self.columns, len(records)
        numbers = _with_blanks(text, self._translation)
        features = np.empty(n * c.dim, self.dtype)
        ids = np.empty(n if c.kind == "category" else 0, np.int32)
        targets = np.empty(n * c.label_dim if c.kind == "regression" else 0, self.dtype)
        kind = {"none": codes.NONE, "category": codes.CATEGORY, "regression": codes.REGRESSION}[c.kind]
        slows, state = np.empty((256, 5), np.int64), np.zeros(6, np.int64)
        while True:
            code = k.parse_records(
                numbers, text, len(text) - _PADDING, c.first_feature, c.dim, kind, c.first_label, c.label_dim,
                self.labels.names, self.labels.starts, self.labels.table, features, ids, targets, slows, state,
            )  # fmt: skip
            if code == codes.FULL and state[k.SLOWS] == 0:
                slows = np.empty((4 * len(slows), 5), np.int64)
            for begin, end, column, event, element in slows[: state[k.SLOWS]].tolist():
                value = numbers[begin:end].tobytes()
                if _NUMBER.fullmatch(value) is None:
                    record = self._record_at(text, begin)
                    code = codes.TEXT_IN_FEATURES if event == 0 else codes.STRAY_TEXT
                    raise self._error(fallback.Trouble(code, begin, end, column, record), text, records)
                if event < 2:
                    values = features if event == 0 else targets
                    with np.errstate(over="ignore"):
                        values[element] = float(value)
                    if abs(values.item(element)) == np.inf and not self._is_infinite:
                        self._is_infinite = True
                        line = int(self.lines[records[self._record_at(text, begin)]]) + 1
                        log.warning("%s", infinite_field(text, begin, end, self.path, line))
            state[k.SLOWS] = 0
            if code == codes.DONE:
                if state[k.RECORD] != n:
                    raise self._changed()
                return features, ids if kind == codes.CATEGORY else targets
            if code == codes.FULL:
                continue
            if code == codes.MORE:
                raise self._changed()
            begin, end, column = (int(state[i]) for i in (k.BEGIN, k.END, k.COLUMN))
            if code == codes.UNKNOWN_LABEL and self.may_add:
                self.labels.add(text[begin:end].tobytes())
                continue
            raise self._error(fallback.Trouble(code, begin, end, column, int(state[k.RECORD])), text, records)

    def _changed(self) -> DataError:
        return DataError(f"The data file {self.path} was changed while it was read.", path=self.path)

    def _record_at(self, text: np.ndarray, position: int) -> int:
        """Return the number of the record, of those in the buffer, that byte `position` belongs to."""
        lines = text[:position].tobytes().split(b"\n")[:-1]
        table = self._translation or bytes(range(256))
        return sum(bool(line.translate(table).strip(b" \t\r")) for line in lines)

    def _error(self, trouble: fallback.Trouble, text: np.ndarray, records: np.ndarray) -> DataError:
        line = int(self.lines[records[trouble.record]]) + 1
        return wrong_field(trouble, text, self.columns, self.path, line)


def one_hot(ids: np.ndarray, classes: int, ones: np.ndarray) -> StreamData:
    """Ids as a stream of vectors with a single one; `ones` is an array of the element type holding 1."""
    n = len(ids)
    return StreamData(
        classes, np.broadcast_to(ones, n).copy(), np.arange(n), np.arange(n + 1), np.ones(n, np.int32), ids
    )
