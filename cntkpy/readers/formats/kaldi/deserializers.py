"""KaldiFeatureDeserializer and KaldiLabelDeserializer: streams of a composite reader."""

from __future__ import annotations

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.registry import Setting
from cntkpy.readers.streams import DTYPES
from cntkpy.readers.utterances.deserializers import make_features, make_labels
from cntkpy.readers.utterances.features import UtteranceFeatures
from cntkpy.readers.utterances.labels import ClassVectors, UtteranceLabels
from cntkpy.readers.utterances.primary import corpus_of, wanted_frames

from .features import open_features
from .label_streams import open_labels
from .parameters import (
    KaldiFeatureDeserializerParameters,
    KaldiFeatureParameters,
    KaldiLabelDeserializerParameters,
    KaldiLabelParameters,
)


def create_features(section: ConfigParameters, setting: Setting) -> UtteranceFeatures:
    """KaldiFeatureDeserializer. Without scpFile it has all utterances of the table.

    Raises:
        ConfigError: the section cannot be.
        DataError: the data cannot be read, or do not fit the section.
    """
    name, inside = KaldiFeatureDeserializerParameters(section).stream()
    p, dtype = KaldiFeatureParameters(inside), np.dtype(DTYPES[setting.precision])
    return make_features(name, p, lambda: open_features(p, dtype), setting, "KaldiFeatureDeserializer")


def create_labels(section: ConfigParameters, setting: Setting) -> UtteranceLabels:
    """KaldiLabelDeserializer.

    Raises:
        ConfigError: the section cannot be, or is the first deserializer.
        DataError: the data cannot be read, or do not fit the section.
    """
    if setting.primary:
        raise section.error(
            "type",
            "KaldiLabelDeserializer cannot be the first deserializer: it does not control chunks",
            "put the features first",
        )
    name, inside = KaldiLabelDeserializerParameters(section).stream()
    p = KaldiLabelParameters(inside)
    labels, dim, targets, states = open_labels(p, wanted_frames(corpus_of(setting))[0])
    joined = str(p.labels), "utterances are joined by their keys"
    return make_labels(name, labels, ClassVectors(dim, targets, states=states), setting, joined)
