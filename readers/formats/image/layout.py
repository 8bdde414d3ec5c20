"""Transpose and Cast: how the values of a sample are laid out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .draws import Draws
from .transform import Picture


@dataclass(frozen=True)
class Transpose:
    """(height, width, channels) to (channels, height, width). A view: the copy into the minibatch does the work."""

    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """A view."""
        return picture[None] if picture.ndim == 2 else picture.transpose(2, 0, 1)


@dataclass(frozen=True)
class Cast:
    """Values to float or double."""

    dtype: np.dtype
    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """A new picture, or the same one."""
        return picture.astype(self.dtype, copy=False)
