"""Means that a reader subtracts from its pictures, as arrays for exported models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.formats.composite.parameters import CompositeParameters
from cntkpy.readers.formats.image.layout import Cast, Transpose
from cntkpy.readers.formats.image.mean_picture import MAKERS
from cntkpy.readers.formats.image.options import PLANES, ImageParameters, ImageReaderParameters
from cntkpy.readers.formats.image.transforms.chain import Chain, make_chain, old_chain, with_channels
from cntkpy.readers.formats.image.transforms.mean import Mean
from cntkpy.readers.parameters import DeserializerParameters, ReaderParameters


def subtracted_pictures(section: ConfigParameters) -> dict[str, np.ndarray]:
    """Return the mean picture of each stream that has one, float32 with the axes of its samples.

    Args:
        section: of a reader.

    Raises:
        ConfigError: no stream has one; a transform behind Mean changes values; the mean has another size than the
            pictures.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, chain, channels in _chains(section):
        mean = _mean(section, name, chain, channels)
        if mean is not None:
            arrays[name] = mean
    if not arrays:
        message = "the reader subtracts no mean picture, and other transforms are not part of a model"
        raise section.error("", message, "leave readerPreprocessing out")
    return arrays


def _chains(section: ConfigParameters) -> Iterator[tuple[str, Chain, int]]:
    """Yield the streams of pictures: names, transforms, channels of decoded pictures."""
    dtype = np.dtype(np.float32)
    if ReaderParameters.deserializers.find(section):
        for deserializer in CompositeParameters(section).deserializers:
            if DeserializerParameters(deserializer).type.lower() in MAKERS:
                p = ImageParameters(deserializer)
                name, stream, _ = p.streams()
                channels = 1 if p.grayscale else 3
                yield name, make_chain(stream.transforms or (), dtype, channels, until_mean=False), channels
    elif ReaderParameters.reader_type.read(section).lower() == "imagereader":
        name, features, _ = ImageReaderParameters(section).streams()
        gray = features.channels == 1 if features.grayscale is None else features.grayscale
        channels, planes = 1 if gray else 3, features.layout in PLANES
        yield name, old_chain(features.config, dtype, channels, planes=planes, until_mean=False), channels


def _mean(section: ConfigParameters, name: str, chain: Chain, channels: int) -> np.ndarray | None:
    place = next((index for index, transform in enumerate(chain.transforms) if isinstance(transform, Mean)), None)
    if place is None:
        return None
    mean = chain.transforms[place]
    assert isinstance(mean, Mean)
    behind = [transform for transform in chain.transforms[place + 1 :] if not isinstance(transform, Cast)]
    if unsupported := next((transform for transform in behind if not isinstance(transform, Transpose)), None):
        message = (
            f"{type(unsupported).__name__} of '{name}' is behind Mean, so a model cannot subtract the mean picture"
        )
        raise section.error("transforms", message, "put Mean behind it")
    sample, picture = chain.shape(channels), with_channels(mean.mean)
    if behind:
        picture = picture.transpose(2, 0, 1)
    if sample is not None and sample != picture.shape:
        sizes = f"{' x '.join(map(str, picture.shape))}, pictures of '{name}' are {' x '.join(map(str, sample))}"
        raise section.error("transforms", f"the mean picture of {mean.path} is {sizes}, so nothing is subtracted")
    return picture
