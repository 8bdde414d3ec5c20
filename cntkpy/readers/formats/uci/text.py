"""A UCI text file as a deserializer: one record per line, fields between blanks, some features, some labels."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from cntkpy.readers.common.chunk import Chunk, StreamData, dense_stream
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.common.packed import believe, text_bytes
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.uci import fallback
from cntkpy.readers.kernels import text_codes as codes
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.streams import StreamInformation

from .columns import Columns

CHUNK = 4 << 20
_BLOCK_BYTES = 4 << 20
_PADDING = 32  # the kernels look at words of eight bytes
_SEPARATORS = ",;|"
_NUMBER = re.compile(rb"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")


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
        try:
            self._file = text_bytes(path)
        except OSError as error:
            raise DataError(
                f"The data file {path} cannot be opened: {error.strerror or error}", path=path, hint="check its name"
            ) from None
        self.path, self.size = self._file.path, self._file.size
        self.offsets, self.lines = self._find_records()
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

    def _find_records(self) -> tuple[np.ndarray, np.ndarray]:
        """Offset and line (from 0) of every record."""
        if fits_budget(self.size):
            text = self._file.bytes(0, self.size)
            begin = self._start(np.frombuffer(text, np.uint8))
            return fallback.find_records(text[begin:], begin, self._translation)
        from cntkpy.readers.kernels import line_kernels as k

        offsets, lines = np.empty(1024, np.int64), np.empty(1024, np.int64)
        state = np.zeros(3, np.int64)
        buffer = np.empty(_BLOCK_BYTES + _PADDING, np.uint8)
        held = position = 0
        while True:
            if len(buffer) - _PADDING - held < _BLOCK_BYTES // 2:
                buffer = np.concatenate([buffer, np.empty(len(buffer), np.uint8)])
            count = min(len(buffer) - _PADDING - held, self.size - position - held)
            self._file.read(buffer[held : held + count], position + held)
            filled = held + count
            last = position + filled == self.size
            whole = filled if last else buffer[:filled].tobytes().rfind(b"\n") + 1
            if not whole:
                believe(self._file, filled, position)
            state[k.POSITION] = self._start(buffer[:filled]) if position == 0 else 0
            seen = self._with_blanks(buffer)
            while k.find_records(seen, state[k.POSITION], whole, position, offsets, lines, state) == codes.FULL:
                offsets, lines = (np.concatenate([a, np.empty(len(a), np.int64)]) for a in (offsets, lines))
            if last:
                records = int(state[k.RECORD])
                return offsets[:records].copy(), lines[:records].copy()
            buffer[: filled - whole] = buffer[whole:filled].copy()
            position, held = position + whole, filled - whole

    def _with_blanks(self, text: np.ndarray) -> np.ndarray:
        """The bytes with blanks as separators and a dot as decimal point."""
        if self._translation is None:
            return text
        return np.frombuffer(bytearray(text.tobytes().translate(self._translation)), np.uint8)

    def _start(self, head: np.ndarray) -> int:
        """Length of the mark at the start of the file."""
        mark = head[:3].tobytes()
        if mark[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"The data file {self.path} is UTF-16.", path=self.path, hint="save it as UTF-8")
        return 3 if mark == b"\xef\xbb\xbf" else 0

    @property
    def files(self) -> list[str]:
        """The file that is read."""
        return [self.path]

    @property
    def whole_chunks(self) -> bool:
        """True if a single record takes as long to load as its whole chunk: it is unpacked."""
        return self._file.packed

    def load_chunk(self, chunk: int) -> Chunk:
        """All records of a chunk."""
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
        """A chunk whose sequence i has the values of row[i]."""
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
                raise self._error(
                    result.code, text, (result.begin, result.end, result.column), int(records[result.record])
                )
            if result is not None:
                return result
        return self._parse_with_kernels(text, records)

    def _parse_with_kernels(self, text: np.ndarray, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from cntkpy.readers.kernels import line_kernels as k

        c, n = self.columns, len(records)
        numbers = self._with_blanks(text)
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
                    record = self._record_at(text, begin, records)
                    code = codes.TEXT_IN_FEATURES if event == 0 else codes.STRAY_TEXT
                    raise self._error(code, text, (begin, end, column), record)
                if event < 2:
                    with np.errstate(over="ignore"):  # what a type cannot hold becomes infinite, as in the kernels
                        (features, targets)[event][element] = float(value)
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
            raise self._error(code, text, (begin, end, column), int(records[state[k.RECORD]]))

    def _changed(self) -> DataError:
        return DataError(f"The data file {self.path} was changed while it was read.", path=self.path)

    def _record_at(self, text: np.ndarray, position: int, records: np.ndarray) -> int:
        """The record that byte `position` of the buffer belongs to."""
        lines = text[:position].tobytes().split(b"\n")[:-1]
        table = self._translation or bytes(range(256))
        return int(records[sum(bool(line.translate(table).strip(b" \t\r")) for line in lines)])

    def _error(self, code: int, text: np.ndarray, field: tuple[int, int, int], record: int) -> DataError:
        """Return what is wrong with a field (begin and end in the buffer, number)."""
        begin, end, column = field
        c = self.columns
        line = int(self.lines[record]) + 1
        line_start = text[:begin].tobytes().rpartition(b"\n")[2]
        excerpt = text[begin : min(end, begin + 60)].tobytes().decode("utf-8", "replace")
        place = f"{self.path}, line {line}, column {len(line_start.decode('utf-8', 'replace')) + 1}"
        if code == codes.UNKNOWN_LABEL:
            message = f"label found in data not specified in label mapping file: {excerpt} ({place})"
            hint = "run action=createLabelMap again, after removing the old file, or mend the data"
        elif code == codes.MISSING:
            needed = max(c.first_feature + c.dim, c.first_label + c.label_dim if c.kind != "none" else 0)
            message = f"the line has {column} fields, at least {needed} are needed ({place.rpartition(',')[0]})"
            hint = "features are the fields start .. start+dim-1 of their section, counted from 0; so are labels"
        elif code == codes.TEXT_IN_FEATURES:
            message = f"'{excerpt}' is not a number, but field {column} is a feature ({place})"
            hint = "fields are counted from 0; check start and dim of the features, customDelimiter, customDecimalPoint"
        else:
            message = f"'{excerpt}' is not a number, and field {column} is not a label ({place})"
            hint = f"labels are the fields from {c.first_label} on, counted from 0; check start of the labels"
            if c.kind == "regression" and c.first_label <= column < c.first_label + c.label_dim:
                message = f"the label '{excerpt}' is not a number ({place})"
                hint = "labelType=regression has numbers as labels; for names use labelType=category"
        behind = text[begin:].tobytes().partition(b"\n")[0]
        hint = self._other_separator(line_start + behind if code == codes.MISSING else behind[: end - begin]) or hint
        return DataError(message, path=self.path, line=line, hint=hint)

    def _other_separator(self, text: bytes) -> str:
        """Return what to write if something else than blanks is between the fields of a text."""
        separator = next((separator for separator in _SEPARATORS if separator.encode() in text), "")
        if not separator or self.columns.delimiter or separator == self.columns.decimal_point:
            return ""
        point = ', or customDecimalPoint="," if it is the decimal point' if separator == "," else ""
        return f"if '{separator}' is between fields, write customDelimiter=\"{separator}\"{point}"


def one_hot(ids: np.ndarray, classes: int, ones: np.ndarray) -> StreamData:
    """Ids as a stream of vectors with a single one; `ones` is an array of the element type holding 1."""
    n = len(ids)
    return StreamData(
        classes, np.broadcast_to(ones, n).copy(), np.arange(n), np.arange(n + 1), np.ones(n, np.int32), ids
    )
