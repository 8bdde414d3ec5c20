"""Color and Intensity: random changes of brightness, contrast, saturation, and along the main axes of colours."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.readers.common.draws import Draws
from cntkpy.readers.formats.image.parameters import ColorParameters, IntensityParameters
from cntkpy.readers.formats.image.storage import read_axes
from cntkpy.readers.formats.image.transforms.opencv import opencv
from cntkpy.readers.formats.image.transforms.transform import Picture, as_float, channels_of


@dataclass(frozen=True)
class Color:
    """x <- a x + b within 0..255, where b is a random part of the mean value and a lies around 1; then saturation.

    Each radius is the greatest relative change, one for each sweep; values are taken to lie in 0..255.
    """

    brightness: PerEpoch[float]
    contrast: PerEpoch[float]
    saturation: PerEpoch[float]
    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """Return a new picture, or the same one if all radii are zero."""
        brightness, contrast, saturation = (
            radius[draws.sweep] for radius in (self.brightness, self.contrast, self.saturation)
        )
        if not (brightness or contrast or saturation):
            return picture
        x = as_float(picture)
        if brightness or contrast:
            mean = float(x.mean(dtype=np.float64)) if brightness else 0.0
            shift = draws.uniform(-brightness, brightness) * mean if brightness else 0.0
            factor = 1 + draws.uniform(-contrast, contrast) if contrast else 1.0
            x = np.clip(x * x.dtype.type(factor) + x.dtype.type(shift), 0, 255)
        if saturation and channels_of(x) == 3:
            cv2 = opencv()
            hsv = cv2.cvtColor(x.astype(np.float32, copy=False), cv2.COLOR_BGR2HSV)
            factor = 1 + draws.uniform(-saturation, saturation)
            hsv[..., 1] = np.minimum(hsv[..., 1] * np.float32(factor), 1)
            x = cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR).astype(x.dtype, copy=False)
        return x


@dataclass(frozen=True)
class Intensity:
    """x <- x + V (a * l) within 0..255: a shift along the main axes of colours (Krizhevsky et al. 2012, section 4.1).

    values: float64[3] l; vectors: float64[3, 3] V with rows red, green, blue; a is normal with the sweep's `deviation`.
    """

    deviation: PerEpoch[float]
    values: np.ndarray = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """Return a new picture."""
        deviation = self.deviation[draws.sweep]
        if not deviation:
            return picture
        amounts = np.array([draws.normal(deviation) for _ in range(3)]) * self.values
        shift = (self.vectors @ amounts)[: channels_of(picture)][::-1]
        x = as_float(picture)
        return np.clip(x + (shift if x.ndim == 3 else shift[0]).astype(x.dtype), 0, 255)


def make_color(p: ColorParameters, dtype: np.dtype, channels: int) -> Color:
    """Color as a section declares it."""
    p.check_together()
    return Color(p.brightness, p.contrast, p.saturation, p.seed)


def make_intensity(p: IntensityParameters, dtype: np.dtype, channels: int) -> Intensity | None:
    """Intensity as a section declares it; None without a file or a deviation."""
    p.check_together()
    if not any(p.deviation) or not p.intensity_file:
        return None
    return Intensity(p.deviation, *read_axes(str(p.intensity_file)), p.seed)
