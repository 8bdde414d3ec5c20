"""The streams of a minibatch as rows: the samples of every sequence, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.readers.minibatch import Minibatch

from .value import Value


def rows_of(minibatch: Minibatch, stream: str) -> tuple[Any, np.ndarray]:
    """Return the samples of a stream of whole sequences.

    Returns:
        An array (samples, dim), or scipy CSR; the samples of each sequence, int64.
    """
    data, layout = minibatch.streams[stream], minibatch.layouts[stream]
    dim = data.shape[-1]
    value = Value.of_stream(data, layout, (dim,))
    lengths = layout.sequences[:, 3] - layout.sequences[:, 2]
    if value.is_sparse:
        return value.as_csr(), lengths
    array = value.padded()
    rows = array[np.arange(array.shape[1]) < lengths[:, None]] if value.lengths is not None else array
    return rows.reshape(-1, dim), lengths
