"""Transpose and Cast: how the values of a sample are laid out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cntkpy.readers.common.draws import Draws
from cntkpy.readers.formats.image.transforms.transform import Picture
from cntkpy.readers.streams import DTYPES

from .parameters import CastParameters, TransposeParameters


@dataclass(frozen=True)
class Transpose:
    """(height, width, channels) to (channels, height, width). A view: the copy into the minibatch does the work."""

    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """Return a view."""
        return picture[None] if picture.ndim == 2 else picture.transpose(2, 0, 1)


@dataclass(frozen=True)
class Cast:
    """Values to float or double."""

    dtype: np.dtype
    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """Return a new picture, or the same one."""
        return picture.astype(self.dtype, copy=False)


def make_transpose(p: TransposeParameters, dtype: np.dtype, channels: int) -> Transpose:
    """Transpose, which has no parameters."""
    return Transpose()


def make_cast(p: CastParameters, dtype: np.dtype, channels: int) -> Cast:
    """Cast as a section declares it; by default to the type of the reader."""
    return Cast(np.dtype(DTYPES[p.precision]) if p.precision else dtype)
