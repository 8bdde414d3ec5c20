"""Description of each stream of a reader."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

DTYPES = {"float": np.float32, "double": np.float64}
"""Element types by the words for them in configurations."""


@dataclass(frozen=True)
class StreamInformation:
    """Name, sample shape, storage and element type of one stream of data."""

    name: str
    sample_shape: tuple[int, ...]
    sparse: bool = False
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float32))

    @property
    def dim(self) -> int:
        """Number of values of one sample."""
        return math.prod(self.sample_shape)
