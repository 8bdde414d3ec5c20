"""The parameters of HTKFeatureDeserializer and HTKMLFDeserializer, and the deserializers made from them."""

from __future__ import annotations

from typing import NoReturn

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.parameters import DeserializerParameters
from cntkpy.readers.registry import Setting
from cntkpy.readers.utterances.deserializers import make_features, make_labels
from cntkpy.readers.utterances.features import UtteranceFeatures
from cntkpy.readers.utterances.labels import ClassVectors, UtteranceLabels
from cntkpy.readers.utterances.primary import corpus_of, wanted_frames

from .parameters import FeatureDeserializerParameters, FeatureParameters, LabelDeserializerParameters, LabelParameters

_JOINED = "utterances are joined by their names without extension; in an MLF a leading */ is dropped"


def create_features(section: ConfigParameters, setting: Setting) -> UtteranceFeatures:
    """HTKFeatureDeserializer."""
    return features_of(*FeatureDeserializerParameters(section).stream(), setting)


def features_of(name: str, inside: ConfigParameters, setting: Setting) -> UtteranceFeatures:
    """Return the features that a section describes, as a deserializer."""
    p = FeatureParameters(inside)
    return make_features(name, p, p.source, setting, "HTKDeserializer")


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
    """Return the labels that a section describes, as a deserializer."""
    p = LabelParameters(inside)
    if p.boundaries and setting.frame_mode:
        raise p.error("phoneBoundaries", "not in frame mode")
    frames, period = wanted_frames(corpus_of(setting))
    states, dim = p.state_list(), p.classes()
    p.check_type()
    labels = p.labels(states, frames, period)
    vectors = ClassVectors(dim, p.target_table(states), p.boundaries, states)
    return make_labels(name, labels, vectors, setting, (p.paths()[0], _JOINED))


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
