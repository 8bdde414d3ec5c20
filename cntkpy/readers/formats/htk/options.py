"""The parameters of HTKFeatureDeserializer and HTKMLFDeserializer, and the deserializers made from them."""

from __future__ import annotations

import logging
from typing import NoReturn

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.parameters import DeserializerParameters
from cntkpy.readers.registry import Setting
from cntkpy.readers.streams import DTYPES
from cntkpy.readers.utterances.features import UtteranceFeatures, leave_out_longer, repeated_lengths, without_duplicates
from cntkpy.readers.utterances.frames import cut_into_chunks, set_primary
from cntkpy.readers.utterances.labels import UtteranceLabels, check_classes
from cntkpy.readers.utterances.primary import corpus_of, labels_of_right_length, wanted_frames

from .parameters import FeatureDeserializerParameters, FeatureParameters, LabelDeserializerParameters, LabelParameters

log = logging.getLogger("cntkpy.readers")
_JOINED = "utterances are joined by their names without extension; in an MLF a leading */ is dropped"


def create_features(section: ConfigParameters, setting: Setting) -> UtteranceFeatures:
    """HTKFeatureDeserializer."""
    return features_of(*FeatureDeserializerParameters(section).stream(), setting)


def features_of(name: str, inside: ConfigParameters, setting: Setting) -> UtteranceFeatures:
    """The features that a section describes, as a deserializer."""
    p, corpus = FeatureParameters(inside), corpus_of(setting)
    if p.expand and setting.primary:
        raise p.error(
            "expandToUtterance", "the first deserializer decides how long utterances are", "put it further down"
        )
    source = p.source()
    dropped = without_duplicates(source)
    if dropped:
        log.warning("%s: %d lines with a name that is not unique are left out.", source.script.paths[0], dropped)
    if p.longest is not None:
        leave_out_longer(source, p.longest)
    if not len(source.script):
        raise DataError("HTKDeserializer: No utterances to process.", path=source.script.paths[0])
    repeated = repeated_lengths(p, source, corpus) if p.expand else None
    lengths = source.lengths if repeated is None else repeated
    made = UtteranceFeatures(
        name,
        source,
        cut_into_chunks(lengths),
        corpus,
        dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode,
        repeated=repeated,
    )
    made.defines_mb_size = p.defines_mb_size
    if setting.primary:
        set_primary(corpus, made)
    return made


def create_labels(section: ConfigParameters, setting: Setting) -> UtteranceLabels:
    """HTKMLFDeserializer."""
    if setting.primary:
        raise section.error(
            "type",
            "Mlf deserializer does not support primary mode, it cannot control chunking.",
            "put the features first",
        )
    return labels_of(*LabelDeserializerParameters(section).stream(), setting)


def labels_of(name: str, inside: ConfigParameters, setting: Setting) -> UtteranceLabels:
    """The labels that a section describes, as a deserializer."""
    p, corpus = LabelParameters(inside), corpus_of(setting)
    if p.boundaries and setting.frame_mode:
        raise p.error("phoneBoundaries", "not in frame mode")
    frames, period = wanted_frames(corpus)
    states, dim = p.state_list(), p.classes()
    p.check_type()
    labels = p.labels(states, frames, period)
    check_classes(labels, dim, name)
    chosen = labels_of_right_length(labels, corpus, p.paths()[0], _JOINED)
    return UtteranceLabels(
        name,
        labels,
        chosen,
        dim,
        cut_into_chunks(labels.lengths[chosen]),
        corpus,
        dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode,
        targets=p.target_table(states),
        boundaries=p.boundaries,
        states=states,
    )


def refuse_lattices(section: ConfigParameters, setting: object = None) -> NoReturn:
    """LatticeDeserializer."""
    raise DeserializerParameters.type.read(section).error(
        "NotSupported",
        "lattices (sequence training) are not supported",
        "train with frame labels: HTKMLFDeserializer and a cross-entropy criterion",
    )


def refuse_binary_labels(section: ConfigParameters, setting: object = None) -> NoReturn:
    """HTKMLFBinaryDeserializer."""
    raise DeserializerParameters.type.read(section).error(
        "NotSupported",
        "binary label files are not supported: their format is not documented",
        "use HTKMLFDeserializer with an MLF",
    )
