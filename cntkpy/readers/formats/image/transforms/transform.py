"""Data of transforms."""

from __future__ import annotations

import numpy as np

Picture = np.ndarray
"""(height, width, 3) in the order blue, green, red, or (height, width) if grey; uint8 until a transform computes."""


def channels_of(picture: Picture) -> int:
    """Number of channels."""
    return 1 if picture.ndim == 2 else picture.shape[2]


def as_float(picture: Picture) -> Picture:
    """Return the picture in numbers that can be computed with: double stays double, everything else is float."""
    return picture if picture.dtype == np.float64 else picture.astype(np.float32, copy=False)
