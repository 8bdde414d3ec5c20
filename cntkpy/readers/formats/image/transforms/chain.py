"""The list of transforms of a stream: from a decoded picture to a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.draws import Draws
from cntkpy.readers.contracts import Transform
from cntkpy.readers.entries import TRANSFORM, find_entry, names
from cntkpy.readers.formats.image.layout import Transpose
from cntkpy.readers.formats.image.parameters import TransformTypeParameters
from cntkpy.readers.formats.image.transforms.scale import Scale
from cntkpy.readers.formats.image.transforms.transform import Picture

_NUMBER = {name: i for i, name in enumerate(names(TRANSFORM))}
AFTER_COLOURS = ("Mean", "Transpose", "Cast")
"""Transforms that a mean picture is made in front of."""


class Chain:
    """Transforms in order."""

    def __init__(self, transforms: Sequence[Transform]):
        self.transforms = list(transforms)
        seen: dict[str, int] = {}
        self._places: list[int] = []
        for transform in self.transforms:  # the second Crop of a list draws other numbers than the first
            name = type(transform).__name__
            self._places.append(seen.get(name, 0) * len(_NUMBER) + _NUMBER[name])
            seen[name] = seen.get(name, 0) + 1

    def apply(self, picture: Picture, sweep: int = 0, sequence: int = 0, view: int = 0, *, begin: int = 0) -> Picture:
        """Return the sample: (channels, height, width) after Transpose, else (height, width[, channels])."""
        for transform, place in zip(self.transforms[begin:], self._places[begin:], strict=True):
            picture = transform.apply(picture, Draws(transform.seed, sweep, sequence, place, view))
        return picture

    @property
    def channels_first(self) -> bool:
        """True if samples are (channels, height, width)."""
        return any(isinstance(transform, Transpose) for transform in self.transforms)

    def shape(self, channels: int) -> tuple[int, ...] | None:
        """Shape of the sample of any picture, which Scale decides; None without Scale."""
        last = max((i for i, transform in enumerate(self.transforms) if isinstance(transform, Scale)), default=None)
        if last is None:
            return None
        scale = self.transforms[last]
        assert isinstance(scale, Scale)
        blank = np.zeros((scale.height, scale.width, channels)[: 2 if channels == 1 else 3], np.uint8)
        return with_channels(self.apply(blank, begin=last + 1)).shape


def with_channels(sample: Picture) -> Picture:
    """Return a sample with three axes."""
    return sample[..., None] if sample.ndim == 2 else sample


def make_chain(sections: Sequence[ConfigParameters], dtype: np.dtype, channels: int, *, until_mean: bool) -> Chain:
    """Return the transforms that sections with `type` describe. until_mean: those in front of Mean, which has no file
    yet.
    """
    made: list[Any] = []
    for section in sections:
        which = TransformTypeParameters(section)
        if until_mean and which.type in AFTER_COLOURS:
            break
        if any(isinstance(value, Transpose) for value in made) and which.type != "Cast":
            raise which.error(
                "type",
                f"{which.type} cannot follow Transpose, which turns the picture into planes of colours",
                "put Transpose after the other transforms",
                "BadOrder",
            )
        made.append(_make(which.type, section, dtype, channels))
    return Chain([value for value in made if value is not None])


def old_chain(section: ConfigParameters, dtype: np.dtype, channels: int, *, planes: bool, until_mean: bool) -> Chain:
    """Return all transforms out of one section, in the order of the old reader. planes: with Transpose."""
    kinds = names(TRANSFORM)[: names(TRANSFORM).index("Transpose")]
    made = [_make(kind, section, dtype, channels) for kind in kinds if kind != "Mean" or not until_mean]
    return Chain(
        [
            transform
            for transform in [*made, Transpose() if planes and not until_mean else None]
            if transform is not None
        ]
    )


def _make(name: str, section: ConfigParameters, dtype: np.dtype, channels: int) -> Transform | None:
    """Return the transform of a section for pictures of so many channels; None if it would change nothing."""
    entry = find_entry(TRANSFORM, name)
    assert entry is not None
    declared = entry.declared()
    assert declared is not None
    return entry.load()(declared(section), dtype, channels)
