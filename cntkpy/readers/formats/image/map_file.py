"""Map files: a line per picture, `path TAB label` or `key TAB path TAB label`. Kept as bytes, whatever their number."""

from __future__ import annotations

import logging
import os
from collections import Counter

import numpy as np

from cntkpy.cntk_config.base.files import LIST_LIMIT
from cntkpy.readers.common.corpus import Corpus, check_distinct, padded_keys, same_number
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.packed import read_data
from cntkpy.readers.errors import DataError

from .container import Archives, read_file, split
from .decode import PictureError

log = logging.getLogger("cntkpy.readers")
MAX_LINES_SHOWN = 5
_HINT = "a line is path TAB label, or key TAB path TAB label"
_TAB, _NEWLINE, _RETURN, _BLANK, _ZERO = 9, 10, 13, 32, 48


class MapFile:
    """The pictures that a map file lists.

    labels: number of classes; None if labels are not read, and then a line may be a path alone. keys: uint64[N], or
    None if none of the lines has one: then a key is the number of the line, from 0.
    """

    def __init__(self, path: str, labels: int | None, corpus: Corpus, *, primary: bool = True):
        self.path = path
        try:
            data = read_data(path, LIST_LIMIT)
        except OSError as error:
            raise DataError(
                f"The map file {path} cannot be read: {error.strerror or error}", path=path, hint="check 'file'"
            ) from None
        self._data = data.removeprefix(b"\xef\xbb\xbf")
        self._folder = os.path.dirname(path) or "."  # noqa: PTH120  keeps the spelling of the path
        self._archives = Archives()
        buffer = np.frombuffer(self._data, np.uint8)
        starts, stops = _lines(buffer)
        if not len(starts):
            raise DataError(f"The map file {path} is empty.", path=path, hint=_HINT)
        keyed, self._starts, self._stops, labelled = _columns(path, buffer, starts, stops, labels)
        self.classes = None
        if labels is not None:
            self.classes = self._labels(buffer, labelled, labels)
            self._tell_what_is_not_read(stops, keyed, labelled[1])
        self.keys = self._keys(buffer, starts, keyed, corpus, primary) if keyed.any() or not corpus.numeric else None
        self._check_archives()

    def __len__(self) -> int:
        return len(self._starts)

    def name(self, record: int) -> str:
        """Return the path of a picture as the map file has it, without quotes, with `...` replaced by the file's
        folder.
        """
        raw = self._data[self._starts[record] : self._stops[record]].strip(b"\r")
        if len(raw) > 1 and raw[:1] == raw[-1:] == b'"':
            raw = raw[1:-1]
        text = os.fsdecode(raw)
        return self._folder + text[3:] if text.startswith("...") else text

    def place(self, record: int) -> str:
        """Return the place in the list of a picture, for messages."""
        return f"{self.path}, line {record + 1}"

    @property
    def files(self) -> list[str]:
        """The files and archives with the pictures."""
        names = map(self.name, range(len(self)))
        return list(dict.fromkeys(inside[0] if (inside := split(name)) else name for name in names))

    def source(self, record: int) -> tuple[str, int | None]:
        """Return the file, and the line of a picture."""
        return self.path, record + 1

    def encoded(self, record: int) -> bytes:
        """Return the bytes of a picture."""
        path = self.name(record)
        inside = split(path) if "@" in path else None
        return read_file(path) if inside is None else self._archives.read(*inside)

    def close(self) -> None:
        """Close archives."""
        self._archives.close()

    # -------------------------------------------------------------------------------------------- columns

    def _labels(self, buffer: np.ndarray, where: tuple[np.ndarray, np.ndarray], dim: int) -> np.ndarray:
        """Classes int32[N]."""
        values, good, ends = _numbers(buffer, *where)
        if not good.all():
            index = int(np.argmin(good))
            text = self._data[where[0][index] : where[1][index]].decode("utf-8", "backslashreplace")
            raise _error(
                self.path,
                index,
                "Cannot parse label value on line {line}, second column, in file {file}.",
                f"a label is the number of a class, counted from 0, not '{text}'",
            )
        if (values >= dim).any():
            index = int(np.argmax(values >= dim))
            raise _error(
                self.path,
                index,
                f"Image '{self.name(index)}' has invalid class id '{values[index]}'. It is exceeding the label "
                f"dimension of '{dim}'. Line {{line}} in file {{file}}.",
                f"labelDim is the number of classes, which are counted from 0: it has to be {values.max() + 1} here",
            )
        for index in np.flatnonzero(ends < where[1]).tolist():
            if self._data[ends[index] : where[1][index]].strip():
                log.warning(
                    "%s: of the label '%s' only %d is read, the number of a class.",
                    self.place(index),
                    self._text(where[0][index], where[1][index]),
                    values[index],
                    extra=ABOUT_DATA,
                )
                break
        return values.astype(np.int32)

    def _tell_what_is_not_read(self, stops: np.ndarray, keyed: np.ndarray, ends: np.ndarray) -> None:
        """A warning if there are columns after the label."""
        for position in np.flatnonzero(keyed & (ends < stops)).tolist():
            if extra := self._data[ends[position] : stops[position]].strip():
                log.warning(
                    "%s: '%s' after the label is not read; a picture has one label, and a text file joined by keys "
                    "holds more.",
                    self.place(position),
                    extra.decode("utf-8", "backslashreplace"),
                    extra=ABOUT_DATA,
                )
                break

    def _keys(
        self, buffer: np.ndarray, starts: np.ndarray, keyed: np.ndarray, corpus: Corpus, primary: bool
    ) -> np.ndarray:
        """Keys uint64[N]; the number of the line where there is none."""
        ends = starts + 0
        tabs = np.flatnonzero(buffer == _TAB)
        ends[keyed] = tabs[np.searchsorted(tabs, starts[keyed])]
        if corpus.numeric:
            values, good, stops = _numbers(buffer, starts[keyed], ends[keyed])
            if good.all():
                names = self._padded(buffer, starts[keyed], stops, ends[keyed])
                if (same := same_number(names, values)) is None or not primary:
                    check_distinct(names, values)
                    keys = np.arange(len(starts), dtype=np.uint64)
                    keys[keyed] = values
                    return keys
                log.warning(
                    "%s: the keys '%s' and '%s' are the same number, so keys are taken as texts.", self.path, *same
                )
                corpus.numeric = False
                return self._named(starts, ends, corpus)
            index = int(np.flatnonzero(keyed)[np.argmin(good)])
            if not primary:
                name = self._text(starts[index], ends[index])
                raise _error(
                    self.path,
                    index,
                    f"Invalid numeric sequence id '{name}' (line {{line}} in {{file}}).",
                    "add useNumericSequenceKeys=false to the reader if keys are texts",
                )
            log.warning("%s: keys are not numbers, so keys are taken as texts.", self.place(index))
            corpus.numeric = False
        return self._named(starts, ends, corpus)

    def _named(self, starts: np.ndarray, ends: np.ndarray, corpus: Corpus) -> np.ndarray:
        """Return keys that are texts as numbers of the corpus, uint64[N]."""
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return corpus.numbers([self._text(a, b) if a < b else str(i) for i, (a, b) in enumerate(pairs)])

    def _padded(self, buffer: np.ndarray, starts: np.ndarray, stops: np.ndarray, ends: np.ndarray) -> Counter[str]:
        """Return the keys that are written otherwise than their number is, with their counts; stops: of the digits."""
        first = buffer[starts]
        some = np.flatnonzero(((first == _ZERO) & (ends - starts > 1)) | (first == _BLANK) | (stops != ends))
        pairs = zip(starts[some].tolist(), ends[some].tolist(), strict=True)
        return padded_keys(self._text(a, b) for a, b in pairs)

    def _text(self, begin: int, end: int) -> str:
        return self._data[begin:end].decode("utf-8", "backslashreplace")

    def _check_archives(self) -> None:
        """All members of archives must be there."""
        if b"@/" not in self._data and b"@\\" not in self._data:
            return
        missing: list[str] = []
        for record in range(len(self)):
            inside = split(self.name(record))
            if inside is None:
                continue
            try:
                if not self._archives.has(*inside):
                    missing.append(f"'{inside[1]}' is not in {inside[0]} ({self.place(record)})")
            except PictureError as error:
                message = f"{error.diagnostic.message} ({self.place(record)})."
                raise DataError(message, path=self.path, hint=error.diagnostic.hint) from None
        if missing:
            for line in missing[:MAX_LINES_SHOWN]:
                log.warning("%s", line)
            raise DataError(
                f"Cannot retrieve image data for some sequences: {missing[0]}"
                + (f", and {len(missing) - 1} more." if len(missing) > 1 else "."),
                path=self.path,
                hint="names inside an archive begin at its top, without a leading slash",
            )


def _error(path: str, record: int, message: str, hint: str) -> DataError:
    message = message.replace("{line}", str(record + 1)).replace("{file}", path)
    return DataError(message, path=path, line=record + 1, hint=hint)


def _columns(
    path: str, buffer: np.ndarray, starts: np.ndarray, stops: np.ndarray, labels: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Per line: whether it has a key; begin and end of its path; begin and end of its label."""
    tabs = np.append(np.flatnonzero(buffer == _TAB), np.full(3, len(buffer)))
    first = np.searchsorted(tabs, starts)
    item, two, three = (np.minimum(tabs[np.minimum(first + i, len(tabs) - 1)], stops) for i in range(3))
    keyed = three > two + 1  # there is a third column with something in it
    path_from = np.where(keyed, item + 1, starts)
    path_to = np.where(keyed, two, item)
    label_from = np.minimum(np.where(keyed, two + 1, item + 1), stops)
    label_to = np.where(keyed, three, two)
    bad = path_to <= path_from
    if labels is not None:
        bad |= label_to <= label_from
    if bad.any():
        index = int(np.argmax(bad))
        raise _error(
            path,
            index,
            "Invalid map file format, must contain 2 or 3 tab-delimited columns, line {line} in file {file}.",
            _HINT
            + (
                "; the columns are divided by tabs, not by blanks"
                if starts[index] < stops[index]
                else "; there may be no blank lines"
            ),
        )
    return keyed, path_from, path_to, (label_from, label_to)


def _lines(buffer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of every line, without its end mark."""
    ends = np.flatnonzero(buffer == _NEWLINE)
    if len(buffer) and (not len(ends) or ends[-1] != len(buffer) - 1):
        ends = np.append(ends, len(buffer))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    stops = ends.copy()
    stops[(ends > starts) & (buffer[np.maximum(ends - 1, 0)] == _RETURN)] -= 1
    return starts.astype(np.int64), stops.astype(np.int64)


def _numbers(buffer: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unsigned numbers at the start of pieces of text, uint64; whether there is one that fits 64 bits; where it ends.

    Blanks in front of a number are passed over.
    """
    values, alive = np.zeros(len(begin), np.uint64), np.ones(len(begin), bool)
    good = np.zeros(len(begin), bool)
    limit = np.uint64(2**64 // 10 - 1)
    pair = begin.copy()
    while (blank := (pair < end) & (buffer[np.minimum(pair, len(buffer) - 1)] == _BLANK)).any():
        pair[blank] += 1
    ends = pair.copy()
    while alive.any():
        alive &= pair < end
        digits = buffer[np.minimum(pair, len(buffer) - 1)].astype(np.int64) - _ZERO
        alive &= (digits >= 0) & (digits <= 9)
        over = alive & (values > limit)
        for i in np.flatnonzero(over).tolist():  # close to the limit: in whole numbers of any size
            value = int(values[i]) * 10 + int(digits[i])
            good[i] = value < 2**64
            values[i], alive[i] = value % 2**64, good[i]
        usual = alive & ~over
        values[usual] = values[usual] * np.uint64(10) + digits[usual].astype(np.uint64)
        good |= usual
        pair += 1
        ends[alive] = pair[alive]
    return values, good, ends
