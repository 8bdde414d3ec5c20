"""The first deserializer of a reader decides which utterances there are, and how long."""

from __future__ import annotations

import logging

import numpy as np

from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.readers.common.beginnings import unless_cut
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.errors import DataError
from cntkpy.readers.registry import Setting

from .features import UtteranceFeatures
from .frames import lengths_in_primary, primary_of
from .labels import Labels
from .lists import picked

log = logging.getLogger("cntkpy.readers")
MAX_NAMES_SHOWN = 5


def corpus_of(setting: Setting) -> Corpus:
    """Return the numbers of keys. Utterances have names: keys are numbers only if the reader says so."""
    return setting.corpus or Corpus(numeric=False)


def wanted_frames(corpus: Corpus) -> tuple[dict[str, int] | None, int]:
    """Return the frames of each utterance of the first deserializer, if that has features, and the period of a
    frame.
    """
    primary = primary_of(corpus)
    if not isinstance(primary, UtteranceFeatures):
        return None, 0
    return dict(zip(primary.source.keys, primary.lengths.tolist(), strict=True)), primary.source.period


def labels_of_right_length(labels: Labels, corpus: Corpus, path: str, hint: str) -> np.ndarray:
    """Utterances with labels for as many frames as the features have; the others are left out with a warning."""
    lengths = lengths_in_primary(corpus, corpus.numbers(labels.keys)) if len(labels) else np.empty(0)
    chosen = np.arange(len(labels))
    if lengths is not None:
        wrong = np.flatnonzero((lengths >= 0) & (lengths != labels.lengths) & labels.contiguous)
        if len(wrong) and len(wrong) == len(labels):
            index = int(wrong[0])
            raise DataError(
                f"{path} has labels for another number of frames than the features, in all of {len(labels)} "
                f"utterances: {printable(labels.keys[index])} ({labels.place(index)}) has {lengths[index]} frames, and "
                f"labels for {labels.lengths[index]}.",
                path=path,
                hint=labels.other_length(index, lengths[index]),
            )
        if len(wrong):
            names = ", ".join(picked(labels.keys, wrong[:MAX_NAMES_SHOWN]))
            log.warning(
                "%d utterances have labels for another number of frames and are left out: %s (the first has %d frames, "
                "and labels for %d)",
                len(wrong),
                printable(names),
                lengths[wrong[0]],
                labels.lengths[wrong[0]],
                extra=ABOUT_DATA,
            )
        chosen = np.setdiff1d(chosen, wrong)
    if not len(chosen):
        error = DataError(f"{path} has labels for none of the utterances of the features.", path=path, hint=hint)
        raise unless_cut(error)
    return chosen
