"""A minibatch as plain data: values per stream and the layout of its sequences. No framework types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cntkpy.readers.common.sparse import is_dense, nbytes_of

from .errors import DataError


@lru_cache(maxsize=64)
def _one_each(slots: int) -> np.ndarray:
    """Slot, begin and end of sequences of one sample, one in each slot: int64 (slots, 3)."""
    slot = np.arange(slots)
    return np.stack([slot, np.zeros_like(slot), np.ones_like(slot)], axis=1)


@dataclass(eq=False)
class Layout:
    """Layout of a minibatch's sequences: T time steps of S parallel slots.

    `sequences` is int64 (n, 4): id, slot, begin, end, one line per sequence, gaps not listed. A sequence continued
    from the minibatch before has begin < 0, one that continues in the next has end > T.
    """

    T: int
    S: int
    sequences: np.ndarray

    @cached_property
    def cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per valid cell, sequence after sequence: time step, slot, line of `sequences` (int64 each)."""
        begin = np.maximum(self.sequences[:, 2], 0)
        lengths = np.minimum(self.sequences[:, 3], self.T) - begin
        owner = np.repeat(np.arange(len(lengths)), lengths)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + begin[owner]
        return step, self.sequences[owner, 1], owner

    @property
    def num_sequences(self) -> int:
        """Sequences (or pieces of sequences) in the minibatch."""
        return len(self.sequences)

    @cached_property
    def is_single(self) -> bool:
        """True if every sequence is one sample, in a slot of its own, in order."""
        if self.T != 1 or len(self.sequences) != self.S:
            return False
        return bool((self.sequences[:, 1:] == _one_each(self.S)).all())

    @cached_property
    def is_full(self) -> bool:
        """True if every sequence has all steps, in a slot of its own, in order."""
        if len(self.sequences) != self.S:
            return False
        slots, steps = self.sequences[:, 1], self.sequences[:, 2:]
        return bool((slots == np.arange(self.S)).all() and (steps == (0, self.T)).all())

    @cached_property
    def num_samples(self) -> int:
        """Cells that are not gaps."""
        if self.T == 1:
            return len(self.sequences)
        if len(self.sequences) == 1:  # NumPy takes ten times as long
            _, _, begin, end = self.sequences[0].tolist()
            return min(end, self.T) - max(begin, 0)
        return int(np.sum(np.minimum(self.sequences[:, 3], self.T) - np.maximum(self.sequences[:, 2], 0)))

    @cached_property
    def mask(self) -> np.ndarray:
        """bool (T, S): True where there is a sample."""
        out = np.zeros((self.T, self.S), bool)
        step, slot, _ = self.cells
        out[step, slot] = True
        return out

    @cached_property
    def to_start(self) -> np.ndarray:
        """int32 (T, S): steps back to the first step of the cell's sequence, -1 in gaps."""
        step, _, owner = self.cells
        return self._in_cells(step - self.sequences[owner, 2])

    @cached_property
    def to_end(self) -> np.ndarray:
        """int32 (T, S): steps forward to the last step of the cell's sequence, -1 in gaps."""
        step, _, owner = self.cells
        return self._in_cells(self.sequences[owner, 3] - 1 - step)

    def _in_cells(self, distances: np.ndarray) -> np.ndarray:
        out = np.full((self.T, self.S), -1, np.int32)
        step, slot, _ = self.cells
        out[step, slot] = distances
        return out


@lru_cache(maxsize=64)
def singles(count: int) -> Layout:
    """So many sequences of one sample each, in slots of their own, in order: one layout for all such minibatches."""
    order = np.arange(count)
    sequences = np.stack([order, order, np.zeros_like(order), np.ones_like(order)], axis=1)
    sequences.flags.writeable = False
    return Layout(1 if count else 0, count, sequences)


@lru_cache(maxsize=512)
def one_sequence(steps: int, slots: int) -> Layout:
    """Return a sequence in the first slot, the others are empty: one layout for all such minibatches."""
    sequences = np.array([[0, 0, 0, steps]])
    sequences.flags.writeable = False
    return Layout(steps, slots, sequences)


class _Keys:
    """A list, or a function that makes it when it is first asked for: few ask, and it takes as long as the rest."""

    def __get__(self, minibatch: Any, owner: type | None = None) -> Any:
        if minibatch is None:
            return list
        keys = minibatch.__dict__["_keys"]
        if callable(keys):
            keys = minibatch.__dict__["_keys"] = keys()
        return keys

    def __set__(self, minibatch: Any, keys: list[int | str] | Callable[[], list[int | str]]) -> None:
        minibatch.__dict__["_keys"] = keys


@dataclass(eq=False, init=False)
class Minibatch:
    """Values and layouts of one minibatch.

    `streams[name]` is a dense float array (T, S, dim) in C order with zeros in gaps, or for a sparse stream a scipy
    CSR matrix (T*S, dim) whose row t*S+s is the cell (t, s). Entries of one sample keep the order of the file, and
    the same index given twice stays twice. `keys` are the sequence keys in order of `layout.sequences`. `truncated`
    says that slots keep their sequences from one minibatch to the next (truncated back-propagation through time).
    `columns_together`: cells (T*S) of the whole minibatch, where several workers share one, or without the slots that
    are there only because another minibatch needs them; 0 if these are the cells of the layout, or not known.
    """

    streams: dict[str, Any]
    layouts: dict[str, Layout]
    keys: _Keys = _Keys()
    end_of_sweep: bool = False
    end_of_epoch: bool = False
    truncated: bool = False
    columns_together: int = 0

    def __init__(
        self,
        streams: dict[str, Any],
        layouts: dict[str, Layout],
        keys: list[int | str] | Callable[[], list[int | str]] = list,
        end_of_sweep: bool = False,
        end_of_epoch: bool = False,
        truncated: bool = False,
        columns_together: int = 0,
    ):
        self.streams, self.layouts = streams, layouts
        self._keys = keys  # which `keys` shows; to set that takes as long as all the others
        self.end_of_sweep, self.end_of_epoch, self.truncated = end_of_sweep, end_of_epoch, truncated
        self.columns_together = columns_together

    @property
    def absent(self) -> dict[str, tuple[str, str, str]]:
        """Of streams that the data lack, as far as the reader knows: message, hint and file."""
        return self.__dict__.get("_absent", {})

    @absent.setter
    def absent(self, streams: dict[str, tuple[str, str, str]]) -> None:
        self.__dict__["_absent"] = streams

    def missing(self, stream: str) -> DataError | None:
        """Return the error of a stream that the data lack; None of any other."""
        if stream not in self.absent:
            return None
        message, hint, path = self.absent[stream]
        return DataError(message, path=path, hint=hint)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_keys": self.keys}  # and not what they are made of

    @property
    def layout(self) -> Layout:
        """The layout shared by all streams."""
        layouts = list(self.layouts.values())
        first = layouts[0]
        for other_layout in layouts[1:]:
            if other_layout is not first and not (
                (other_layout.T, other_layout.S) == (first.T, first.S)
                and np.array_equal(other_layout.sequences, first.sequences)
            ):
                raise ValueError("The streams of this minibatch have sequences of different lengths; see .layouts.")
        return first

    @property
    def nbytes(self) -> int:
        """Memory of the values of all streams."""
        return sum(map(nbytes_of, self.streams.values()))

    @property
    def num_samples(self) -> int:
        """Samples of the longest stream, gaps not counted."""
        most = 0
        for layout in self.layouts.values():  # `max` takes three times as long
            most = layout.num_samples if layout.num_samples > most else most
        return most

    @property
    def num_sequences(self) -> int:
        """Sequences (or pieces of them) in the minibatch."""
        return max([layout.num_sequences for layout in self.layouts.values()], default=0)

    def matrix(self, name: str, gaps: bool = False) -> Any:
        """Return the stream as a matrix (dim, columns), columns by time step and within a step by slot; sparse as
        CSC.
        """
        if name not in self.streams:
            raise DataError(
                f"No stream found matching given name '{name}'", hint=f"there are: {', '.join(self.streams)}"
            )
        data, layout = self.streams[name], self.layouts[name]
        rows = data.reshape(layout.T * layout.S, data.shape[-1]) if is_dense(data) else data
        if not gaps and layout.num_samples < layout.T * layout.S:
            rows = rows[np.flatnonzero(layout.mask.ravel())]
        return rows.T


def as_dense(rows: Any) -> np.ndarray:
    """Rows as an array; of an index given twice the last value counts."""
    if is_dense(rows):
        return rows
    out = np.zeros(rows.shape, rows.dtype)
    out[np.repeat(np.arange(int(rows.shape[0])), np.diff(rows.indptr)), rows.indices] = rows.data
    return out
