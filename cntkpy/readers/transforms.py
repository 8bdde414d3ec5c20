"""Transforms of pictures for `ImageDeserializer`, under CNTK's names: what a configuration section would say.

import cntkpy.readers.transforms as xforms
xforms.crop(crop_type="randomside", side_ratio=(0.8, 1.0), jitter_type="uniratio")
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.readers.errors import ArgumentError

Config = dict[str, Any]


def crop(
    crop_type: str = "center",
    crop_size: Any = 0,
    side_ratio: Any = 0.0,
    area_ratio: Any = 0.0,
    aspect_ratio: Any = 1.0,
    jitter_type: str = "none",
) -> Config:
    """Cut out a part.

    Args:
        crop_type: "center", "randomside", "randomarea" or "multiview10".
        crop_size: (width, height) in pixels, or one number; then the ratios do not count.
        side_ratio, area_ratio, aspect_ratio: a number, or (lowest, highest).
        jitter_type: "uniratio" draws from the ranges.
    """
    return {
        "type": "Crop",
        "cropType": crop_type,
        "cropSize": _pair(crop_size, "crop_size", ascending=False),
        "sideRatio": _pair(side_ratio, "side_ratio"),
        "areaRatio": _pair(area_ratio, "area_ratio"),
        "aspectRatio": _pair(aspect_ratio, "aspect_ratio"),
        "jitterType": jitter_type,
    }


def scale(
    width: int,
    height: int,
    channels: int,
    interpolations: str = "linear",
    scale_mode: str = "fill",
    pad_value: int = -1,
) -> Config:
    """Resize to one size.

    Args:
        interpolations: "nearest", "linear", "cubic" or "lanczos".
        scale_mode: "fill" stretches, "crop" cuts what is too long, "pad" adds a border.
        pad_value: of the border; -1 repeats the edge.
    """
    return {
        "type": "Scale",
        "width": width,
        "height": height,
        "channels": channels,
        "interpolations": interpolations,
        "scaleMode": scale_mode,
        "padValue": pad_value,
    }


def mean(filename: Any) -> Config:
    """Subtract the mean picture that is kept in a file; `cntkpy convert --mean` makes one."""
    return {"type": "Mean", "meanFile": str(filename)}


def color(brightness_radius: float = 0.0, contrast_radius: float = 0.0, saturation_radius: float = 0.0) -> Config:
    """Change brightness, contrast and saturation at random; each radius is between 0 and 1."""
    return {
        "type": "Color",
        "brightnessRadius": brightness_radius,
        "contrastRadius": contrast_radius,
        "saturationRadius": saturation_radius,
    }


def _pair(value: Any, name: str, ascending: bool = True) -> str:
    """`low:high` of a number or a pair."""
    pair = value if is_several(value) else (value, value)
    if len(pair) != 2 or not all(isinstance(value, int | float | np.number) for value in pair):
        raise ArgumentError(f"{name}: a number or a pair of numbers is needed, not {value!r}")
    if ascending and pair[0] > pair[1]:
        raise ArgumentError(f"{name}: the range {value!r} is not ascending")
    return f"{pair[0]:.12g}:{pair[1]:.12g}"
