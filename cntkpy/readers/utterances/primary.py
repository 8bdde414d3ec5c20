"""The first deserializer of a reader decides which utterances there are, and how long."""

from __future__ import annotations

import logging

import numpy as np

from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.readers.common.beginnings import unless_cut
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.errors import DataError
from cntkpy.readers.registry import Setting

from .features import UtteranceFeatures
from .frames import lengths_in_primary, primary_of
from .labels import Labels
from .lists import picked

log = logging.getLogger("cntkpy.readers")
MAX_NAMES_SHOWN = 5


def corpus_of(setting: Setting) -> Corpus:
    """The numbers of keys. Utterances have names: keys are numbers only if the reader says so."""
    return setting.corpus or Corpus(numeric=False)


def wanted_keys(corpus: Corpus) -> set[str] | None:
    """The utterances of the first deserializer, if that has features."""
    primary = primary_of(corpus)
    return set(primary.source.keys) if isinstance(primary, UtteranceFeatures) else None


def labels_of_right_length(labels: Labels, corpus: Corpus, path: str, hint: str) -> np.ndarray:
    """Utterances with labels for as many frames as the features have; the others are left out with a warning."""
    lengths = lengths_in_primary(corpus, corpus.numbers(labels.keys)) if len(labels) else np.empty(0)
    chosen = np.arange(len(labels))
    if lengths is not None:
        wrong = np.flatnonzero((lengths >= 0) & (lengths != labels.lengths) & labels.contiguous)
        if len(wrong):
            names = ", ".join(picked(labels.keys, wrong[:MAX_NAMES_SHOWN]))
            log.warning(
                "%d utterances have labels for another number of frames and are left out: %s (the first has %d frames, "
                "and labels for %d)",
                len(wrong),
                printable(names),
                lengths[wrong[0]],
                labels.lengths[wrong[0]],
            )
        chosen = np.setdiff1d(chosen, wrong)
    if not len(chosen):
        error = DataError(f"{path} has labels for none of the utterances of the features.", path=path, hint=hint)
        raise unless_cut(error)
    return chosen
