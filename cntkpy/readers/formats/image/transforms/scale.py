"""Scale: every picture brought to one size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cntkpy.readers.common.draws import Draws
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.image.parameters import INTERPOLATIONS, ScaleParameters
from cntkpy.readers.formats.image.transforms.opencv import opencv
from cntkpy.readers.formats.image.transforms.transform import Picture


@dataclass(frozen=True)
class Scale:
    """Resize to width x height with OpenCV.

    mode: fill stretches; crop scales one side and cuts the other; pad scales one side and adds a border of the value
    `pad`, or of the edge repeated if that is negative.
    """

    width: int
    height: int
    interpolation: str = "linear"
    mode: str = "fill"
    pad: int = -1
    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """Return a new picture."""
        cv2, (height, width) = opencv(), picture.shape[:2]
        w, h = self._target(width, height)
        resized = cv2.resize(picture, (w, h), interpolation=getattr(cv2, INTERPOLATIONS[self.interpolation]))
        if self.mode == "fill":
            return resized
        left, top = abs(w - self.width) // 2, abs(h - self.height) // 2
        if self.mode == "crop":
            return resized[top : top + self.height, left : left + self.width]
        border = cv2.BORDER_REPLICATE if self.pad < 0 else cv2.BORDER_CONSTANT
        return cv2.copyMakeBorder(
            resized, top, self.height - h - top, left, self.width - w - left, border, value=[float(self.pad)] * 4
        )

    def _target(self, width: int, height: int) -> tuple[int, int]:
        """Return the size before cutting or padding: one side as asked for, the other in proportion, rounded."""
        if self.mode == "fill":
            return self.width, self.height
        by_width = width < height if self.mode == "crop" else width > height
        if by_width:
            w, h = self.width, math.floor(height * self.width / width + 0.5)
        else:
            w, h = math.floor(width * self.height / height + 0.5), self.height
        fits = (w >= self.width and h >= self.height) if self.mode == "crop" else (w <= self.width and h <= self.height)
        if not fits or not (w and h):
            raise DataError(
                f"a picture of {width} x {height} becomes {w} x {h} with scaleMode={self.mode}, which cannot be "
                f"{'cut' if self.mode == 'crop' else 'padded'} to {self.width} x {self.height}",
                hint="use scaleMode=fill, or a square size",
            )
        return w, h


def make_scale(p: ScaleParameters, dtype: np.dtype, channels: int) -> Scale:
    """Scale as a section declares it; an error if pictures are read with another number of channels."""
    p.check_together()
    if p.channels != channels:
        raise p.error(
            "channels",
            f"is {p.channels}, but pictures are read with {channels}",
            "add grayscale=true to the deserializer" if channels == 3 else "write channels=1, or grayscale=false",
        )
    return Scale(p.to_width, p.to_height, p.interpolations, p.mode, p.pad)
