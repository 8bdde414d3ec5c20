"""The parameters of HTKFeatureDeserializer and HTKMLFDeserializer, and the deserializers made from them."""

from __future__ import annotations

import logging
from typing import NoReturn

import numpy as np

from cntk_config.base.diagnostics import printable
from cntk_config.declare import Declared
from cntk_config.parameters import ConfigParameters
from readers.common.corpus import Corpus
from readers.errors import DataError
from readers.parameters import DeserializerParameters
from readers.registry import Setting
from readers.streams import DTYPES

from .features import FrameSource, HTKFeatures, without_duplicates
from .frames import cut_into_chunks, lengths_in_primary, primary_of, set_primary
from .labels import HTKLabels, check_classes
from .mlf import Labels
from .parameters import FeatureDeserializerParameters, FeatureParameters, LabelDeserializerParameters, LabelParameters

log = logging.getLogger("cntkpy.readers")
SHOWN = 5
_JOINED = "utterances are joined by their names without extension; in an MLF a leading */ is dropped"


def corpus_of(setting: Setting) -> Corpus:
    """The numbers of keys. Utterances have names, so keys are texts whatever else the reader would take them for."""
    corpus = setting.corpus or Corpus(numeric=False)
    corpus.numeric = False
    return corpus


def create_features(section: ConfigParameters, setting: Setting) -> HTKFeatures:
    """HTKFeatureDeserializer."""
    return features_of(*FeatureDeserializerParameters(section).stream(), setting)


def features_of(name: str, inside: ConfigParameters, setting: Setting) -> HTKFeatures:
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
    made = HTKFeatures(
        name, source, cut_into_chunks(lengths), corpus, dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode, repeated=repeated,
    )  # fmt: skip
    made.defines_mb_size = p.defines_mb_size
    if setting.primary:
        set_primary(corpus, made)
    return made


def leave_out_longer(source: FrameSource, longest: int) -> None:
    """Keep the utterances of at most so many frames."""
    fitting = np.flatnonzero(source.lengths <= longest)
    dropped = len(source.lengths) - len(fitting)
    if dropped:
        log.warning("%s: %d utterances of more than %d frames are left out.", source.list_path, dropped, longest)
        source.keep(fitting)


def repeated_lengths(p: Declared, source: FrameSource, corpus: Corpus) -> np.ndarray:
    """How often the only frame of each utterance is repeated; utterances unknown to the first deserializer go."""
    longer = np.flatnonzero(source.lengths != 1)
    if len(longer):
        place = source.place(int(longer[0]))
        raise p.error("expandToUtterance", f"utterances must have a single frame, but see {place}")
    if source.left or source.right:
        raise p.error("expandToUtterance", "cannot have a context window")
    lengths = lengths_in_primary(corpus, corpus.numbers(source.keys))
    if lengths is None:
        raise p.error("expandToUtterance", "needs features as the first deserializer")
    kept = np.flatnonzero(lengths >= 0)
    if not len(kept):
        raise DataError(
            f"{source.list_path} has none of the utterances of the first deserializer.", path=source.list_path
        )
    source.keep(kept)
    return lengths[kept]


def create_labels(section: ConfigParameters, setting: Setting) -> HTKLabels:
    """HTKMLFDeserializer."""
    if setting.primary:
        raise section.error(
            "type", "Mlf deserializer does not support primary mode, it cannot control chunking.",
            "put the features first",
        )  # fmt: skip
    return labels_of(*LabelDeserializerParameters(section).stream(), setting)


def labels_of(name: str, inside: ConfigParameters, setting: Setting) -> HTKLabels:
    """The labels that a section describes, as a deserializer."""
    p, corpus = LabelParameters(inside), corpus_of(setting)
    if p.boundaries and setting.frame_mode:
        raise p.error("phoneBoundaries", "not in frame mode")
    wanted = wanted_keys(corpus)
    states, dim = p.state_list(), p.classes()
    p.check_type()
    labels = p.labels(states, wanted)
    check_classes(labels, dim, name)
    chosen = labels_of_right_length(labels, corpus, p.paths()[0])
    return HTKLabels(
        name, labels, chosen, dim, cut_into_chunks(labels.lengths[chosen]), corpus, dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode, targets=p.target_table(states), boundaries=p.boundaries, states=states,
    )  # fmt: skip


def wanted_keys(corpus: Corpus) -> set[str] | None:
    """The utterances of the first deserializer, if that has features."""
    primary = primary_of(corpus)
    return set(primary.source.keys) if isinstance(primary, HTKFeatures) else None


def labels_of_right_length(labels: Labels, corpus: Corpus, path: str, hint: str = _JOINED) -> np.ndarray:
    """Utterances with labels for as many frames as the features have; the others are left out with a warning."""
    lengths = lengths_in_primary(corpus, corpus.numbers(labels.keys)) if len(labels) else np.empty(0)
    chosen = np.arange(len(labels))
    if lengths is not None:
        wrong = np.flatnonzero((lengths >= 0) & (lengths != labels.lengths) & labels.contiguous)
        if len(wrong):
            names = ", ".join(labels.keys[i] for i in wrong[:SHOWN].tolist())
            log.warning(
                "%d utterances have labels for another number of frames and are left out: %s",
                len(wrong),
                printable(names),
            )
        chosen = np.setdiff1d(chosen, wrong)
    if not len(chosen):
        raise DataError(
            f"{path} has labels for none of the utterances of the features.", path=path, hint=hint,
        )  # fmt: skip
    return chosen


def refuse_lattices(section: ConfigParameters, setting: object = None) -> NoReturn:
    """LatticeDeserializer."""
    raise DeserializerParameters.type.read(section).error(
        "NotSupported", "lattices (sequence training) are not supported",
        "train with frame labels: HTKMLFDeserializer and a cross-entropy criterion",
    )  # fmt: skip


def refuse_binary_labels(section: ConfigParameters, setting: object = None) -> NoReturn:
    """HTKMLFBinaryDeserializer."""
    raise DeserializerParameters.type.read(section).error(
        "NotSupported", "binary label files are not supported: their format is not documented",
        "use HTKMLFDeserializer with an MLF",
    )  # fmt: skip
