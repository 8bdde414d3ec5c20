"""KaldiFeatureDeserializer and KaldiLabelDeserializer: streams of a composite reader."""

from __future__ import annotations

import logging

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.registry import Setting
from cntkpy.readers.streams import DTYPES
from cntkpy.readers.utterances.features import UtteranceFeatures, leave_out_longer, repeated_lengths, without_duplicates
from cntkpy.readers.utterances.frames import cut_into_chunks, set_primary
from cntkpy.readers.utterances.labels import UtteranceLabels, check_classes
from cntkpy.readers.utterances.primary import corpus_of, labels_of_right_length, wanted_frames

from .features import open_features
from .label_streams import open_labels
from .parameters import (
    KaldiFeatureDeserializerParameters,
    KaldiFeatureParameters,
    KaldiLabelDeserializerParameters,
    KaldiLabelParameters,
)

log = logging.getLogger("cntkpy.readers")


def create_features(section: ConfigParameters, setting: Setting) -> UtteranceFeatures:
    """KaldiFeatureDeserializer. Without scpFile it has all utterances of the table.

    Raises:
        ConfigError: the section cannot be.
        DataError: the data cannot be read, or do not fit the section.
    """
    name, inside = KaldiFeatureDeserializerParameters(section).stream()
    p, corpus, dtype = KaldiFeatureParameters(inside), corpus_of(setting), np.dtype(DTYPES[setting.precision])
    if p.expand and setting.primary:
        raise p.error(
            "expandToUtterance", "the first deserializer decides how long utterances are", "put it further down"
        )
    source = open_features(p, dtype)
    if dropped := without_duplicates(source):
        log.warning("%s: %d lines with a name that is not unique are left out.", source.list_path, dropped)
    if p.longest is not None:
        leave_out_longer(source, p.longest)
    if not source.keys:
        raise DataError("KaldiFeatureDeserializer: No utterances to process.", path=source.list_path)
    repeated = repeated_lengths(p, source, corpus) if p.expand else None
    lengths = source.lengths if repeated is None else repeated
    made = UtteranceFeatures(
        name, source, cut_into_chunks(lengths), corpus, dtype=dtype, frame_mode=setting.frame_mode, repeated=repeated
    )
    made.defines_mb_size = p.defines_mb_size
    if setting.primary:
        set_primary(corpus, made)
    return made


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
    p, corpus = KaldiLabelParameters(inside), corpus_of(setting)
    labels, dim, targets, states = open_labels(p, wanted_frames(corpus)[0])
    check_classes(labels, dim, name)
    chosen = labels_of_right_length(labels, corpus, str(p.labels), "utterances are joined by their keys")
    return UtteranceLabels(
        name,
        labels,
        chosen,
        dim,
        cut_into_chunks(labels.lengths[chosen]),
        corpus,
        dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode,
        targets=targets,
        states=states,
    )
