"""Crop: a part of the picture, from the middle, from a random place, or one of ten views."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cntkpy.readers.common.draws import Draws
from cntkpy.readers.formats.image.parameters import RANDOM, VIEWS, CropParameters
from cntkpy.readers.formats.image.transforms.opencv import opencv
from cntkpy.readers.formats.image.transforms.transform import Picture

ATTEMPTS = 10


@dataclass(frozen=True)
class Crop:
    """Cut a part out.

    kind: center, randomside, randomarea or multiview10; size (width, height), or (0, 0) if ratios decide; side: range
    of the ratio to the shorter side, area: to the area; aspect: range of the ratio of width to height; jitter: draw
    from the ranges (else their lower ends count); truncate: sides are cut to whole pixels, not rounded.
    """

    kind: str = "center"
    size: tuple[int, int] = (0, 0)
    side: tuple[float, float] = (0.0, 0.0)
    area: tuple[float, float] = (0.0, 0.0)
    aspect: tuple[float, float] = (1.0, 1.0)
    jitter: bool = False
    flip: bool = False
    truncate: bool = False
    seed: int = 0

    def apply(self, picture: Picture, draws: Draws) -> Picture:
        """Return a view of the picture, or a mirrored copy."""
        height, width = picture.shape[:2]
        w, h = self._size(width, height, draws)
        x, y = self._corner(width - w, height - h, draws)
        cut = picture[y : y + h, x : x + w]
        flip = draws.view % VIEWS >= 5 if self.kind == "multiview10" else self.flip and draws.coin()
        return opencv().flip(cut, 1) if flip else cut

    def _corner(self, right: int, down: int, draws: Draws) -> tuple[int, int]:
        """Return x and y of a part that leaves this room."""
        if self.kind in RANDOM:
            return draws.up_to(right), draws.up_to(down)
        if self.kind == "multiview10" and (corner := draws.view % 5) < 4:
            return right * (corner % 2), down * (corner // 2)
        return right // 2, down // 2

    def _size(self, width: int, height: int, draws: Draws) -> tuple[int, int]:
        """Width and height of the part."""
        if self.size[0]:
            return min(width, self.size[0]), min(height, self.size[1])
        for _ in range(ATTEMPTS):
            w, h = width, height
            if self.side[0]:
                side = min(width, height) * self._draw(self.side, draws)
                w = h = int(side) if self.truncate else math.floor(side + 0.5)
            elif self.area[0]:
                w = h = math.floor(math.sqrt(width * height * self._draw(self.area, draws)) + 0.5)
            aspect = self._draw(self.aspect, draws)
            if aspect != 1:
                long, short = int(math.sqrt(w * h * aspect)), int(math.sqrt(w * h / aspect))
                w, h = (long, short) if draws.coin() else (short, long)
            if 0 < w <= width and 0 < h <= height:
                return w, h
        return width, height

    def _draw(self, ends: tuple[float, float], draws: Draws) -> float:
        return draws.uniform(*ends) if self.jitter and ends[0] != ends[1] else ends[0]


def make_crop(p: CropParameters, dtype: np.dtype, channels: int) -> Crop:
    """Crop as a section declares it."""
    kind = {"random": "randomside"}.get(p.crop_type, p.crop_type)
    p.check_together()
    flip = kind in RANDOM if p.flip is None else p.flip
    return Crop(
        kind,
        p.crop_size,
        p.side,
        p.area_ratio,
        p.aspect_ratio,
        p.jitter == "uniRatio",
        flip and kind != "multiview10",
        p.crop_ratio is not None,
        p.seed,
    )
