"""Streams whose entry n is the same utterance, side by side; utterances that do not fit together are left out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.readers.common.beginnings import unless_cut
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.common.notices import ABOUT_JOINED
from cntkpy.readers.errors import DataError

from .features import FrameSource, UtteranceFeatures
from .frames import Utterances, cut_into_chunks
from .labels import ClassVectors, Labels, UtteranceLabels, check_classes
from .lists import picked
from .side_by_side import SideBySide

log = logging.getLogger("cntkpy.readers")
MAX_SEQUENCE_LENGTH = 65535
_MAX_NAMES_SHOWN = 5


def longest_taken(pieces: bool, longest: int) -> int:
    """Frames of the longest utterance that a reader takes: less than it could, if it gives whole utterances."""
    return MAX_SEQUENCE_LENGTH if pieces else min(MAX_SEQUENCE_LENGTH, longest)


Features = tuple[str, FrameSource, bool]
"""Name of a stream, its frames, and whether its utterances have a single frame to be repeated."""


def join_streams(
    features: Sequence[Features], labels: Sequence[LabelStream], kept: np.ndarray, dtype: np.dtype, *, frame_mode: bool
) -> SideBySide:
    """Streams whose entry n is the same utterance, side by side; of the kept utterances, those that have labels."""
    first = features[0][1]
    count = len(first.lengths)
    for stream in labels:
        kept = stream.fitting(first, kept, count)
    for _, source, _ in features:
        source.keep(kept)
    lengths, corpus = first.lengths, Corpus(numeric=False)
    chunks = cut_into_chunks(lengths)
    options: dict[str, Any] = {"dtype": dtype, "frame_mode": frame_mode}
    parts: list[Utterances] = [
        UtteranceFeatures(name, source, chunks, corpus, repeated=lengths if single else None, **options)
        for name, source, single in features
    ]
    for s in labels:
        chosen = np.array([s.where[key] for key in first.keys], np.int64)
        parts.append(
            UtteranceLabels(
                s.name, s.labels, chosen, ClassVectors(s.dim, s.targets, states=s.states), chunks, corpus, **options
            )
        )
    return SideBySide(parts)


def _same_length(features: Sequence[Features]) -> np.ndarray:
    first = features[0][1]
    good = np.ones(len(first.lengths), bool)
    for _, source, single in features:
        good &= single | (source.lengths == first.lengths)
    return good


def all_that_fit(features: Sequence[Features]) -> np.ndarray:
    """Return all utterances, which have the same number of frames in every stream, else that is an error."""
    good, first = _same_length(features), features[0][1]
    if not good.all():
        raise DataError(
            f"{first.place(int(np.argmin(good)))}: the utterance does not have the same number of frames in "
            "every stream.",
            path=first.list_path,
        )
    return np.arange(len(good))


def those_that_fit(features: Sequence[Features], limit: int, kept: np.ndarray | None = None) -> np.ndarray:
    """Of the kept utterances, those of the same number of frames in every stream, and not more than the limit."""
    first = features[0][1]
    good = _same_length(features) & (first.lengths <= limit)
    kept = np.arange(len(good)) if kept is None else kept
    why = f"of different length in another stream, or longer than {limit} frames"
    return leave_out(good[kept], kept, len(good), first, why)


def leave_out(
    good: np.ndarray, kept: np.ndarray, count: int, first: FrameSource, why: str, hint: str = ""
) -> np.ndarray:
    """Return those of the kept utterances that are good; a warning names others.

    More than half of `count` are an error, and so are the last ones. The hint goes with the error.
    """
    bad = kept[~good]
    if not len(bad):
        return kept
    names = ", ".join(picked(first.keys, bad[:_MAX_NAMES_SHOWN]))
    if 2 * len(bad) > count or len(bad) == len(kept):
        limit = "at most half of the utterances may be left out" if 2 * len(bad) > count else "no utterance is left"
        error = DataError(
            f"{len(bad)} of {count} utterances of {first.list_path} are unusable: {why} (the first: {names}).",
            path=first.list_path,
            hint=hint or limit,
        )
        raise unless_cut(error)
    log.warning("%d of %d utterances are left out: %s: %s", len(bad), count, why, printable(names), extra=ABOUT_JOINED)
    return kept[good]


class LabelStream:
    """A stream of labels on its way to a deserializer."""

    def __init__(self, name: str, labels: Labels, dim: int, targets: np.ndarray | None, states: LabelMap | None):
        self.name, self.labels, self.dim, self.targets, self.states = name, labels, dim, targets, states
        check_classes(labels, dim, name)
        gaps = np.flatnonzero(~labels.contiguous)
        if len(gaps):
            where = int(gaps[0])
            raise DataError(
                f"The labels of {labels.keys[where]} ({labels.place(where)}) leave a gap between ranges.",
                path=labels.places[where][0],
                hint="a range begins where the one before it ends, the first at 0",
            )
        self.where = {key: i for i, key in enumerate(labels.keys)}

    def fitting(self, first: FrameSource, kept: np.ndarray, count: int) -> np.ndarray:
        """Of these utterances, those that have labels for all frames."""
        names = picked(first.keys, kept)
        has = np.array([self.where.get(name, -1) for name in names], np.int64)
        frames, labelled = first.lengths[kept], np.full(len(kept), -1, np.int64)
        labelled[has >= 0] = self.labels.lengths[has[has >= 0]]
        why: list[str] = []
        hint = ""
        if missing := int((has < 0).sum()):
            why.append(f"{missing} without labels in '{self.name}'")
            if missing == len(kept):
                hint = f"labels are found by the name of the utterance, such as '{printable(names[0])}'"
                folder, slash, last = printable(names[0]).rpartition("/")
                hint += f"; '{last}={folder}/...' in the list calls it '{last}'" * bool(slash)
        if len(wrong := np.flatnonzero((has >= 0) & (labelled != frames))):
            index = int(wrong[0])
            why.append(
                f"{len(wrong)} with labels for another number of frames in '{self.name}' "
                f"({printable(names[index])} has {frames[index]} frames, and labels for {labelled[index]})"
            )
            hint = hint or self.labels.other_length(int(has[index]), int(frames[index]))
        return leave_out(labelled == frames, kept, count, first, ", ".join(why), hint)
