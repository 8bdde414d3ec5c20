"""Pieces of data on their way from one format to another, and how streams are described on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.data_api.frameworks import canonical
from cntkpy.readers.data_api.rows import rows_of
from cntkpy.readers.minibatch import Minibatch, as_dense

FORMS = ("dense", "sparse", "class")
VALUES = 1 << 20
"""Values of a batch, about: wide samples come in smaller batches."""
_DIM = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Stream:
    """One stream. Form "class" is one number in columns and arrays, a one-hot sparse vector elsewhere."""

    name: str
    dim: int
    form: str = "dense"


def parse_stream(text: str) -> Stream:
    """Return a stream written as NAME:DIM or NAME:DIM:FORM."""
    name, *remainder = text.split(":")
    form = remainder[1] if len(remainder) > 1 else "dense"
    if (
        not name
        or not remainder
        or len(remainder) > 2
        or not _DIM.fullmatch(remainder[0])
        or int(remainder[0]) < 1
        or form not in FORMS
    ):
        raise ConfigError(
            "BadStream",
            f"'{text}' does not describe a stream",
            hint=f"write NAME:DIM or NAME:DIM:FORM, with a form out of {', '.join(FORMS)}",
        )
    return Stream(name, int(remainder[0]), form)


@dataclass
class Part:
    """The samples of one stream, sequence after sequence.

    rows: ndarray (samples, dim) or scipy CSR (samples, dim); lengths: int64[N], samples of each sequence.
    """

    rows: Any
    lengths: np.ndarray


@dataclass
class Batch:
    """Some whole sequences: their keys, and their streams by name."""

    keys: Sequence[Any]
    parts: dict[str, Part]

    @property
    def samples(self) -> int:
        """Samples of the longest stream."""
        return max(int(part.lengths.sum()) for part in self.parts.values())


def from_minibatch(minibatch: Minibatch) -> Batch:
    """Return a minibatch of whole sequences as a batch."""
    parts = {name: Part(*rows_of(minibatch, name)) for name in minibatch.streams}
    return Batch(minibatch.keys, parts)


def batches_of(reader: Any, size: int = 4096) -> Iterator[Batch]:
    """Yield one sweep of a reader."""
    reader.start_minibatch_loop(size, 0)
    try:
        while (minibatch := reader.get_minibatch()) is not None:
            yield from_minibatch(minibatch)
    finally:
        reader.close()


def dense_pieces(batch: Batch, streams: Sequence[Stream]) -> Iterator[Batch]:
    """Yield the sequences of a batch, so few at a time that they do not fill the memory when sparse values are written
    out.

    streams: those that are looked at; the lengths of all streams are equal.
    """
    lengths = batch.parts[streams[0].name].lengths
    ends = starts_of(lengths)
    room = max(1, VALUES // sum(s.dim for s in streams))
    first = 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + room, side="right")) - 1)
        rows = slice(int(ends[first]), int(ends[last]))
        parts = {name: Part(part.rows[rows], part.lengths[first:last]) for name, part in batch.parts.items()}
        yield Batch(batch.keys[first:last], parts)
        first = last


def class_numbers(rows: Any, name: str) -> np.ndarray:
    """Return the classes of one-hot rows, int64[samples]."""
    if not isinstance(rows, np.ndarray):
        rows = canonical(rows)
        if (np.diff(rows.indptr) == 1).all() and (rows.data == 1).all():
            return rows.indices.astype(np.int64)
    dense = as_dense(rows)
    numbers = dense.argmax(axis=1)
    wrong = np.flatnonzero((np.count_nonzero(dense, axis=1) != 1) | (dense[np.arange(len(dense)), numbers] != 1))
    if len(wrong):
        raise UserError(
            "NotAClass",
            f"a sample of '{name}' is not a class: it must have a single 1 and zeros else",
            hint=f"convert it as {name}:{dense.shape[1]} or {name}:{dense.shape[1]}:sparse",
        )
    return numbers


def one_hot(numbers: np.ndarray, stream: Stream) -> Any:
    """Classes as CSR rows (samples, dim)."""
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

    wrong = np.flatnonzero((numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= stream.dim))
    if len(wrong):
        raise UserError(
            "NotAClass",
            f"{numbers[wrong[0]]:g} is not a class of '{stream.name}', which has classes 0 to {stream.dim - 1}",
            hint="give the stream a larger dimension, or read it as dense",
        )
    n = len(numbers)
    return scipy.sparse.csr_matrix(
        (np.ones(n, np.float32), numbers.astype(np.int32), np.arange(n + 1)), shape=(n, stream.dim)
    )
