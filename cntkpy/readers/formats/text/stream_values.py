"""The values of one stream, as Python reads them from text without Numba."""

from __future__ import annotations

import re
from array import array

import numpy as np

from cntkpy.readers.common.chunk import StreamData

from .stream_format import StreamFormat

_PLAIN = b"0123456789- "
_NUMBER_TEXT = rb"[+-]?[0-9]+(?:(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)|\.[0-9]*)?"
_NUMBER = re.compile(_NUMBER_TEXT)
_ENTRIES = re.compile(rb" *(?:[0-9]{1,18}:" + _NUMBER_TEXT + rb"(?: +|\Z))*")


class StreamValues:
    """Data of one stream, as far as it is read: values, indices (of a sparse one), values of each sample."""

    def __init__(self, form: StreamFormat):
        self.form = form
        self.values = array("d")
        self.indices = array("i")
        self.counts: list[int] = []
        self.bounds = [0]

    def read(self, text: bytes) -> bool:
        """Read a sample; whether it is one. Nothing is kept of what is odd."""
        count = len(self.values)
        if self._sparse(text) if self.form.sparse else self._dense(text):
            self.counts.append(len(self.values) - count)
            return True
        self.undo(len(self.values) - count)
        return False

    def undo(self, count: int) -> None:
        """Forget this many values, which belong to no sample."""
        left = len(self.values) - count
        del self.values[left:]
        if self.form.sparse:
            del self.indices[left:]

    def undo_sample(self) -> None:
        """Forget the last sample."""
        self.undo(self.counts.pop())

    def _dense(self, text: bytes) -> bool:
        numbers = text.split()
        if len(numbers) != self.form.dim:
            return False
        odd = text.translate(None, _PLAIN)
        # float() knows more numbers than there are here: .5, inf, 1_0.
        if odd and (odd.translate(None, b"+eE.") or not all(map(_NUMBER.fullmatch, numbers))):
            return False
        try:
            self.values.extend(map(float, numbers))
        except ValueError:
            return False
        return True

    def _sparse(self, text: bytes) -> bool:
        if _ENTRIES.fullmatch(text) is None:
            return False
        numbers = text.replace(b":", b" ").split()
        indices = list(map(int, numbers[::2]))
        if indices and max(indices) >= self.form.dim:
            return False
        self.indices.extend(indices)
        self.values.extend(map(float, numbers[1::2]))
        return True

    def data(self, dtype: np.dtype) -> StreamData:
        """Return all samples."""
        f, count = self.form, len(self.counts)
        # Numbers that a type cannot hold become infinite, as in the kernels.
        with np.errstate(over="ignore"):
            values = np.frombuffer(self.values, np.float64).astype(dtype)
        bounds = np.array(self.bounds, np.int64)
        if not f.sparse:
            return StreamData(f.dim, values, np.arange(count, dtype=np.int64) * f.dim, bounds)
        counts = np.array(self.counts, np.int32)
        starts = counts.cumsum(dtype=np.int64) - counts
        return StreamData(f.dim, values, starts, bounds, counts, np.frombuffer(self.indices, np.int32))
