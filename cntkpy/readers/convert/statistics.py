"""Statistics of minibatches, for previews."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.data_api.value import Value
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.streams import StreamInformation

MOST_SAMPLES, MOST_VALUES = 4, 12


class StreamStatistics:
    """Counts, ranges and lengths of one stream over some minibatches."""

    def __init__(self, stream: StreamInformation):
        self.stream = stream
        self.sequences = self.samples = self.nonzero = self.not_finite = 0
        self.low, self.high, self.sum = math.inf, -math.inf, 0.0
        self.shortest, self.longest = 2**62, 0
        self._classes: np.ndarray | None = np.zeros(stream.dim, np.int64) if 1 < stream.dim <= 1_000_000 else None

    def add(self, data: Any, layout: Layout) -> None:
        """Look at one minibatch; data is dense (T, S, dim) or CSR (T*S, dim)."""
        if layout.num_sequences == 0:
            return
        lengths = np.minimum(layout.sequences[:, 3], layout.T) - np.maximum(layout.sequences[:, 2], 0)
        self.sequences += layout.num_sequences
        self.samples += layout.num_samples
        self.shortest, self.longest = min(self.shortest, int(lengths.min())), max(self.longest, int(lengths.max()))
        if is_dense(data):
            rows = data.reshape(-1, data.shape[-1])
            rows = rows[layout.mask.ravel()] if layout.num_samples < len(rows) else rows
            values, per_row = rows[rows != 0], np.count_nonzero(rows, axis=1)
            columns = np.nonzero(rows)[1]
        else:
            some = data.data != 0
            values, columns = data.data[some], data.indices[some]
            counts = np.diff(np.append(0, np.cumsum(some))[data.indptr])
            per_row = counts[layout.mask.ravel()]
        finite = np.isfinite(values)
        self.not_finite += int(np.sum(~finite))
        self.nonzero += len(values)
        if len(values) < layout.num_samples * self.stream.dim:
            self.low, self.high = min(self.low, 0.0), max(self.high, 0.0)
        if finite.any():
            self.low, self.high = (
                min(self.low, float(values[finite].min())),
                max(self.high, float(values[finite].max())),
            )
            self.sum += float(values[finite].sum(dtype=np.float64))
        if self._classes is not None:
            if (per_row == 1).all() and (values == 1).all() and len(values) == layout.num_samples:
                self._classes += np.bincount(columns, minlength=self.stream.dim)
            else:
                self._classes = None

    def as_dict(self, names: dict[int, str]) -> dict[str, Any]:
        """JSON-able. names: of classes, where the reader knows them."""
        values = max(1, self.samples * self.stream.dim)
        classes = []
        if self._classes is not None and self.samples:
            order = np.argsort(-self._classes, kind="stable")
            numbers = order[self._classes[order] > 0].tolist()
            classes = [{"class": names.get(c, c), "count": int(self._classes[c])} for c in numbers]
        return {
            "name": self.stream.name,
            "storage": "sparse" if self.stream.sparse else "dense",
            "shape": list(self.stream.sample_shape),
            "type": str(self.stream.dtype),
            "sequences": self.sequences,
            "samples": self.samples,
            "length": {
                "min": self.shortest if self.sequences else 0,
                "mean": self.samples / max(1, self.sequences),
                "max": self.longest,
            },
            "nonzero": self.nonzero / values,
            "min": self.low if self.low <= self.high else 0.0,
            "max": self.high if self.low <= self.high else 0.0,
            "mean": self.sum / values,
            "not_finite": self.not_finite,
            "classes": classes,
        }


def texts(minibatch: Minibatch, count: int) -> list[dict[str, Any]]:
    """Return the first sequences of a minibatch: key, and the first samples of each stream as text."""
    values: list[dict[str, Any]] = []
    for name, data in minibatch.streams.items():
        layout = minibatch.layouts[name]
        sequences = Value.of_stream(data, layout, (data.shape[-1],)).as_sequences()[:count] if layout.T else []
        for i, rows in enumerate(sequences):
            if i == len(values):
                values.append({"key": minibatch.keys[i] if i < len(minibatch.keys) else None, "streams": {}})
            shown = [_text(rows[k]) for k in range(min(MOST_SAMPLES, rows.shape[0]))]
            values[i]["streams"][name] = shown + (["..."] if rows.shape[0] > MOST_SAMPLES else [])
    return values


def _text(sample: Any) -> str:
    if is_dense(sample):
        parts = [f"{v:g}" for v in sample[:MOST_VALUES].tolist()]
        omitted = len(sample) - MOST_VALUES
    else:
        parts = [f"{i}:{v:g}" for i, v in zip(sample.indices.tolist(), sample.data.tolist(), strict=True)]
        omitted = len(parts) - MOST_VALUES
        parts = parts[:MOST_VALUES] or ["(all zero)"]
    return " ".join(parts) + (f" ... ({omitted} more)" if omitted > 0 else "")
