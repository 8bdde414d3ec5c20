"""StreamInformation as the original's Python interface has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import streams

FORMATS = {"dense": "dense", "sparse": "sparse"}


class StreamInformation(streams.StreamInformation):
    """Name, number, storage, element type and sample shape of a stream; a key of dictionaries of minibatch data.

    **Arguments:**

    - `storage_format`: "dense" or "sparse".
    - `shape`: shape of one sample, for instance `(3,)`.
    - `defines_mb_size`: whether the samples of this stream are the length of a sequence.
    """

    m_id: int
    m_defines_mb_size: bool

    def __init__(
        self, name: str, stream_id: int, storage_format: str, dtype: Any, shape: Sequence[int],
        defines_mb_size: bool = False,
    ):  # fmt: skip
        sizes = (shape,) if isinstance(shape, int | np.integer) else shape
        super().__init__(name, tuple(int(n) for n in sizes), FORMATS[storage_format] == "sparse", np.dtype(dtype))
        object.__setattr__(self, "m_id", stream_id)
        object.__setattr__(self, "m_defines_mb_size", bool(defines_mb_size))

    @property
    def storage_format(self) -> str:
        """ "dense" or "sparse"."""
        return "sparse" if self.sparse else "dense"

    m_storage_format = storage_format

    @property
    def m_name(self) -> str:
        """The name."""
        return self.name

    @property
    def m_element_type(self) -> np.dtype:
        """The element type."""
        return self.dtype

    @property
    def m_sample_layout(self) -> tuple[int, ...]:
        """The sample shape the original's way round: fastest axis first."""
        return self.sample_shape[::-1]

    def _identity(self) -> tuple[Any, ...]:
        return self.name, self.m_id, self.sparse, self.dtype, self.sample_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamInformation) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self.m_id)


def numbered(found: Sequence[streams.StreamInformation]) -> list[StreamInformation]:
    """Streams of the pipeline, numbered in order."""
    return [
        s if isinstance(s, StreamInformation)
        else StreamInformation(s.name, i, "sparse" if s.sparse else "dense", s.dtype, s.sample_shape)
        for i, s in enumerate(found)
    ]  # fmt: skip
