"""Samples and sequences as Arrow arrays: what columns that are written, or handed out, hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.minibatch import as_dense

from .library import arrow

KEY = "key"
"""The column of keys, and what its mark says."""
MARK = b"cntkpy"
"""Metadata of a field that say what a column is: `dense 3`, `sparse 100`, `class 10`, or `key`."""


def samples_as_array(rows: Any, dim: int, sparse: bool, dtype: np.dtype) -> Any:
    """Return an element for each sample: a number, a list of fixed size, or a map of index and value.

    Args:
        rows: (samples, dim), an array or scipy CSR.
        dim: values of a sample.
        sparse: whether rows are CSR and become maps.
        dtype: of the values.
    """
    pa = arrow()
    if sparse:
        offsets, indices = rows.indptr.astype(np.int32), rows.indices.astype(np.int32)
        return pa.MapArray.from_arrays(pa.array(offsets), pa.array(indices), pa.array(rows.data.astype(dtype)))
    flat = pa.array(np.ascontiguousarray(as_dense(rows), dtype).reshape(-1))
    return flat if dim == 1 else pa.FixedSizeListArray.from_arrays(flat, dim)


def sequences_as_array(samples: Any, lengths: np.ndarray) -> Any:
    """Return a list of samples for each sequence. lengths: int64[sequences]."""
    return arrow().ListArray.from_arrays(arrow().array(starts_of(lengths).astype(np.int32)), samples)


def keys_as_array(keys: list[Any]) -> Any:
    """Keys of sequences: texts, or numbers as uint64."""
    pa = arrow()
    return pa.array(keys, pa.string() if keys and isinstance(keys[0], str) else pa.uint64())


def key_name(streams: list[str]) -> str:
    """Return a name for the column of keys that no stream has."""
    name = KEY
    while name in streams:
        name += "_"
    return name


def marked(name: str, array: Any, mark: str) -> Any:
    """Return the field of a column that says what it is."""
    return arrow().field(name, array.type, mark != KEY, {MARK: mark.encode()})
