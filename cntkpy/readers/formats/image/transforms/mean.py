"""Mean: the mean picture subtracted."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import numpy as np

from cntkpy.readers.common.draws import Draws
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.formats.image.parameters import MeanParameters
from cntkpy.readers.formats.image.storage import read_mean
from cntkpy.readers.formats.image.transforms.opencv import opencv
from cntkpy.readers.formats.image.transforms.transform import Picture

log = logging.getLogger("cntkpy.readers")


@dataclass(eq=False)
class Mean:
    """Subtract a picture of the same size; pictures of another size stay as they are, with one warning.

    mean: float32 (height, width[, channels]); path: its file, for the warning.
    """

    mean: np.ndarray = field(repr=False)
    path: str = ""
    seed: int = 0
    _warned: bool = False

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """Return a new picture of floats."""
        if picture.shape != self.mean.shape:
            if not self._warned:
                self._warned = True
                log.warning(
                    "The mean picture of %s is %s, but pictures are %s (height x width x channels): nothing is "
                    "subtracted.",
                    self.path,
                    _size(self.mean),
                    _size(picture),
                    extra=ABOUT_DATA,
                )
            return picture
        cv2 = opencv()
        return cv2.subtract(picture, self.mean, dtype=cv2.CV_64F if picture.dtype == np.float64 else cv2.CV_32F)


def _size(picture: Picture) -> str:
    return " x ".join(map(str, picture.shape))


def make_mean(p: MeanParameters, dtype: np.dtype, channels: int) -> Mean | None:
    """Mean as a section declares it; None without a file."""
    return Mean(read_mean(str(p.mean_file)), str(p.mean_file)) if p.mean_file else None
