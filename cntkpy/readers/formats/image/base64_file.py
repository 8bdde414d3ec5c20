"""Pictures inside a text file: lines `label TAB base64` or `key TAB label TAB base64`."""

from __future__ import annotations

import binascii
import logging
import re

import numpy as np

from cntkpy.readers.common import index_cache
from cntkpy.readers.common.corpus import Corpus, check_distinct, padded_keys, same_number
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.packed import SHORT, DataBytes, most_believed, text_bytes
from cntkpy.readers.errors import DataError

from .container import MAX_BASE64_BYTES, read_file
from .decode import PictureError

log = logging.getLogger("cntkpy.readers")
_HINT = "a line is label TAB base64, or key TAB label TAB base64; the first line decides which"
_CONTENT = "base64 has the letters A-Z, a-z, 0-9, + and /, = at its end only, and no blanks or prefix"
_NUMBER = re.compile(rb" *(\d+)")
_BEHIND = re.sub(rb"[A-Za-z0-9+/=]", b"", bytes(range(256)))
"""Every byte that is not part of base64: what may follow a picture."""


class Base64File:
    """The pictures of a text file; only where they lie is kept in memory.

    labels: number of classes, None if labels are not read; first: int64[C+1], pictures before each chunk of
    `chunk_size` bytes; keys: uint64[N], or None if they are the numbers of lines from 0. cache: keep the index next to
    the file (not if keys are texts).
    """

    def __init__(
        self,
        path: str,
        labels: int | None,
        corpus: Corpus,
        *,
        chunk_size: int = 32 << 20,
        cache: bool = False,
        primary: bool = True,
    ):
        self.path = path
        kept = index_cache.cache_name(path, "base64", labels is None, not corpus.numeric, corpus.hashed)
        try:
            self._data = text_bytes(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        self.path = path = self._data.path
        cache = cache and not self._data.packed and self._data.local
        value = index_cache.load(kept, path, _is_sound) if cache and corpus.numeric else None
        if value is None:
            arrays, keys = _index(self._data, labels is not None)
            if keys is None and not corpus.numeric:
                keys = [b"%d" % i for i in range(len(arrays["begins"]))]
            if keys is not None:
                arrays["keys"] = _numbered(keys, path, corpus, primary)
            if cache and (keys is None or corpus.numeric):
                index_cache.save(kept, path, arrays, {})
        else:
            arrays = value[0]
        self._begins, self._ends = arrays["begins"], arrays["ends"]
        self.keys = arrays.get("keys")
        self.classes = _checked(arrays["labels"], labels, path) if labels is not None else None
        self.first = _chunks(self._begins, self._ends, chunk_size)

    def __len__(self) -> int:
        return len(self._begins)

    def place(self, record: int) -> str:
        """Return the place of a picture, for messages."""
        return f"{self.path}, line {record + 1}"

    def name(self, record: int) -> str:
        """Return the name of a picture in messages."""
        return f"line {record + 1}"

    @property
    def files(self) -> list[str]:
        """The file itself."""
        return [self.path]

    def source(self, record: int) -> tuple[str, int | None]:
        """Return the file, and the line of a picture."""
        return self.path, record + 1

    def encoded(self, record: int) -> bytes:
        """Return the bytes of a picture."""
        begin, end = int(self._begins[record]), int(self._ends[record])
        plain = self._data.local and not self._data.packed
        text = read_file(self.path, begin, end - begin) if plain else self._data.bytes(begin, end - begin)
        text = text.rstrip(_BEHIND)
        if len(text) % 4:
            message = f"its text has {len(text)} characters, which is not a multiple of 4 as base64 has"
            raise PictureError(message, hint=_CONTENT)
        try:
            return binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error as error:
            raise PictureError(f"its text is not base64: {error}", hint=_CONTENT) from None

    def close(self) -> None:
        """Close the file."""
        self._data.close()


def _index(data: DataBytes, labelled: bool) -> tuple[dict[str, np.ndarray], list[bytes] | None]:
    """Begins, ends (int64[N], bytes) and labels (int64[N]) of the pictures; and the keys, if there are any."""
    keys: list[bytes] = []
    rows: list[tuple[int, int, int]] = []
    keyed: bool | None = None
    position, warned, path = 0, False, data.path
    try:
        most = most_believed(data, MAX_BASE64_BYTES, SHORT)
        with data.stream() as file:
            while line := file.readline(most):
                number = len(rows) + 1
                if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                    position, line = 3, line[3:]
                if len(line) == most and not line.endswith(b"\n"):
                    hint = "no picture is so large" if most == MAX_BASE64_BYTES else "unpack it, if that is right"
                    raise _bad(path, number, f"is longer than {most} bytes", hint)
                if keyed is None:
                    keyed = line.count(b"\t", 0, -1) > 1
                begin = line.find(b"\t") + 1 if keyed else 0
                middle = line.find(b"\t", begin) + 1
                if not middle or (keyed and not begin) or not line[middle:].strip():
                    raise _bad(path, number, "has no picture in it", _HINT)
                match = _NUMBER.match(line, begin, min(middle - 1, begin + 18))
                if match is None and labelled:
                    text = line[begin : middle - 1][:40].decode("utf-8", "backslashreplace")
                    raise DataError(
                        f"Cannot parse label value on line {number}, in file {path}: '{text}'.",
                        path=path,
                        line=number,
                        hint=_HINT,
                    )
                if match is not None and labelled and not warned and line[match.end() : middle - 1].strip():
                    warned = True
                    log.warning(
                        "%s, line %d: of the label '%s' only %d is read, the number of a class.",
                        path,
                        number,
                        line[begin : middle - 1][:40].decode("utf-8", "backslashreplace"),
                        int(match[1]),
                        extra=ABOUT_DATA,
                    )
                if keyed:
                    keys.append(line[: begin - 1])
                rows.append((position + middle, position + len(line), int(match[1]) if match else 0))
                position += len(line)
    except OSError as error:
        raise _unreadable(path, error) from None
    if not rows:
        raise DataError(f"The file {path} is empty.", path=path, hint=_HINT)
    begins, ends, labels = np.array(rows, np.int64).T.copy()
    return {"begins": begins, "ends": ends, "labels": labels}, keys if keyed else None


def _is_sound(arrays: index_cache.Arrays, _: index_cache.Details, size: int) -> bool:
    """Return whether these arrays can be the index of a file of this size."""
    begins, ends, labels, keys = arrays["begins"], arrays["ends"], arrays["labels"], arrays.get("keys")
    kinds = {(array.dtype, array.shape) for array in (begins, ends, labels)}
    if kinds != {(np.dtype(np.int64), (len(begins),))} or not len(begins):
        return False
    if keys is not None and (keys.dtype, keys.shape) != (np.uint64, begins.shape):
        return False
    in_order = (begins < ends).all() and (ends[:-1] <= begins[1:]).all() and (labels >= 0).all()
    return bool(in_order) and int(begins[0]) >= 0 and int(ends[-1]) <= size


def _unreadable(path: str, error: OSError) -> DataError:
    return DataError(f"The file {path} cannot be read: {error.strerror or error}", path=path, hint="check 'file'")


def _bad(path: str, line: int, message: str, hint: str) -> DataError:
    return DataError(f"{path}: line {line} {message}.", path=path, line=line, hint=hint)


def _numbered(keys: list[bytes], path: str, corpus: Corpus, primary: bool) -> np.ndarray:
    """Keys as numbers uint64[N]."""
    if corpus.numeric:
        matches = [_NUMBER.match(key) for key in keys]
        numbers = [int(item[1]) if item and len(item[1]) <= 20 else -1 for item in matches]
        bad = next((i for i, number in enumerate(numbers) if not 0 <= number < 2**64), None)
        if bad is None:
            found_numbers = np.array(numbers, np.uint64)
            names = padded_keys(key.decode("utf-8", "backslashreplace") for key in keys)
            same = same_number(names, found_numbers)
            if same is None or not primary:
                check_distinct(names, found_numbers)
                return found_numbers
            log.warning("%s: the keys '%s' and '%s' are the same number, so keys are taken as texts.", path, *same)
            corpus.numeric = False
            return corpus.numbers([key.decode("utf-8", "backslashreplace") for key in keys])
        if not primary:
            text = keys[bad].decode("utf-8", "backslashreplace")
            raise DataError(
                f"Invalid numeric sequence id '{text}' (line {bad + 1} in {path}).",
                path=path,
                line=bad + 1,
                hint="add useNumericSequenceKeys=false to the reader if keys are texts",
            )
        log.warning("%s, line %d: keys are not numbers, so keys are taken as texts.", path, bad + 1)
        corpus.numeric = False
    return corpus.numbers([key.decode("utf-8", "backslashreplace") for key in keys])


def _checked(classes: np.ndarray, dim: int, path: str) -> np.ndarray:
    if (classes >= dim).any():
        index = int(np.argmax(classes >= dim))
        raise DataError(
            f"The image on line {index + 1} in file {path} has invalid class id '{classes[index]}'. It is exceeding "
            f"the label dimension of '{dim}'.",
            path=path,
            line=index + 1,
            hint="labelDim is the number of classes, which are counted from 0",
        )
    return classes.astype(np.int32)


def _chunks(begins: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
    """Pictures before each chunk, int64[C+1]."""
    from cntkpy.readers.kernels import index_kernels as k

    first = np.empty(len(begins) + 1, np.int64)
    return first[: k.form_chunks(begins, ends, max(1, size), first) + 1].copy()
