"""Text that is written piece by piece: CNTK text format, columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, Any, Protocol

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.minibatch import as_dense

from .batches import Batch, Stream, class_numbers, dense_pieces, one_hot
from .sources import Input


class Target(Protocol):
    """Files that are being written. They appear together at the end, or not at all."""

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        ...


def features_and_classes(streams: Sequence[Stream], files: str) -> tuple[Stream, Stream | None]:
    """Return the stream of features and that of classes, if there is one: files of speech hold no others.

    Args:
        streams: those to be written.
        files: what they are to be written to, for the message.

    Raises:
        UserError: there are others.
    """
    features = [s for s in streams if s.form != "class"]
    labels = [s for s in streams if s.form == "class"]
    if len(features) != 1 or len(labels) > 1:
        names = ", ".join(f"{s.name} ({s.form})" for s in streams)
        raise UserError(
            "BadStream",
            f"{files} hold one stream of features, and one of classes at most; there are {names}",
            hint="name them: --stream features:33 --stream labels:132:class",
        )
    return features[0], labels[0] if labels else None


def sequence_lengths(batch: Batch, streams: Sequence[Stream], instead: str) -> np.ndarray:
    """Return the lengths of the sequences, which have to be those of all streams."""
    parts = [batch.parts[s.name] for s in streams]
    if any(not np.array_equal(part.lengths, parts[0].lengths) for part in parts):
        raise UserError(
            "DifferentLengths",
            f"streams of different lengths cannot stand side by side in {instead}",
            hint="write CNTK text format or an .npz archive",
        )
    return parts[0].lengths


def numbers(values: np.ndarray) -> list[str]:
    """Numbers as text, in as few digits as read back the same."""
    if not np.isfinite(values).all():
        raise UserError("NotFinite", "inf and nan cannot be written as text", hint="write an .npz archive")
    if values.dtype.kind in "iu" or ((values == np.floor(values)) & (np.abs(values) < 1e15)).all():
        return list(map(str, values.astype(np.int64).tolist()))
    texts = map(repr, values.tolist()) if values.dtype == np.float64 else values.astype("U24").tolist()
    return [text.removesuffix(".0") for text in texts]


class CTFTarget:
    """CNTK text format. Every line has an id; text ids become running numbers."""

    def __init__(self, file: IO[bytes], streams: Sequence[Stream]):
        self._file, self._streams, self._count = file, streams, 0

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        texts = [(s.name, self._samples(self._rows(batch, s))) for s in self._streams]
        bounds = [starts_of(batch.parts[s.name].lengths).tolist() for s in self._streams]
        lines: list[str] = []
        for s in self._streams:
            empty = np.flatnonzero(batch.parts[s.name].lengths == 0)
            if len(empty):
                key = self._key(batch, int(empty[0]), int(empty[0]))
                raise UserError(
                    "EmptySequence",
                    f"sequence {key} has no samples of '{s.name}', which text format cannot hold",
                    hint="write an .npz archive",
                )
        for i in range(len(batch.parts[self._streams[0].name].lengths)):
            key = self._key(batch, i, 0)
            self._count += 1
            for step in range(max(b[i + 1] - b[i] for b in bounds)):
                line = str(key)
                for (name, samples), b in zip(texts, bounds, strict=True):
                    if b[i] + step < b[i + 1]:
                        line += f" |{name} {samples[b[i] + step]}"
                lines.append(line)
        if lines:
            self._file.write(("\n".join(lines) + "\n").encode("latin-1"))

    def _key(self, batch: Batch, i: int, ahead: int) -> Any:
        return batch.keys[i] if len(batch.keys) and not isinstance(batch.keys[i], str) else self._count + ahead

    @staticmethod
    def _rows(batch: Batch, s: Stream) -> Any:
        rows = batch.parts[s.name].rows
        if s.form == "class" and isinstance(rows, np.ndarray):
            return one_hot(class_numbers(rows, s.name), s)
        return rows

    @staticmethod
    def _samples(rows: Any) -> list[str]:
        if is_dense(rows):
            texts, dim = numbers(rows.reshape(-1)), rows.shape[1]
            return [" ".join(texts[index : index + dim]) for index in range(0, len(texts), dim)]
        pairs = [f"{i}:{v}" for i, v in zip(rows.indices.tolist(), numbers(rows.data), strict=True)]
        return [" ".join(pairs[a:b]) for a, b in pairwise(rows.indptr.tolist())]


class UCITarget:
    """A line of numbers per sample: the streams side by side; classes are one number, sparse streams written out."""

    def __init__(self, file: IO[bytes], streams: Sequence[Stream]):
        self._file, self._streams = file, streams

    def write(self, batch: Batch) -> None:
        """Add some sequences, sample by sample."""
        sequence_lengths(batch, self._streams, "columns")
        for piece in dense_pieces(batch, self._streams):
            self._write(piece)

    def _write(self, batch: Batch) -> None:
        columns: list[list[str]] = []
        for s in self._streams:
            rows = batch.parts[s.name].rows
            values = class_numbers(rows, s.name)[:, None] if s.form == "class" else as_dense(rows)
            texts, dim = numbers(values.reshape(-1)), values.shape[1]
            columns.append([" ".join(texts[index : index + dim]) for index in range(0, len(texts), dim)])
        lines = [" ".join(row) for row in zip(*columns, strict=True)]
        if lines:
            self._file.write(("\n".join(lines) + "\n").encode("ascii"))


@contextmanager
def to_ctf(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """A file in CNTK text format."""
    for s in streams:
        if not re.fullmatch(r"[!-{}~]+", s.name) or s.name.startswith("#"):
            raise UserError(
                "BadStream",
                f"'{s.name}' cannot be the name of a stream in text format",
                hint="a name is printable ASCII without blanks and '|' and does not begin with '#'",
            )
    with atomic_write(path) as file:
        yield CTFTarget(file, streams)


@contextmanager
def to_uci(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """A file of columns."""
    with atomic_write(path) as file:
        yield UCITarget(file, streams)
