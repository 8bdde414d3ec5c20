"""The streams of HTKMLFReader side by side: entry n of every script file is the same utterance."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from cntk_config.base.diagnostics import printable
from readers.common.corpus import Corpus
from readers.common.labels import LabelMap
from readers.errors import DataError

from .features import FeatureSource, FrameSource, HTKFeatures
from .frames import Utterances, cut_into_chunks
from .labels import HTKLabels, check_classes
from .mlf import Labels
from .options import FeatureParameters, LabelParameters
from .sections import HTKReaderParameters, Sections
from .side_by_side import SideBySide

log = logging.getLogger("cntkpy.readers")
LONGEST = 65535
_SHOWN = 5


def assemble(p: HTKReaderParameters, sections: Sections, dtype: np.dtype, *, frame_mode: bool) -> SideBySide:
    """All streams of the reader. Utterances that do not fit together are left out with a warning, to a limit."""
    streams = [(name, FeatureParameters(inside)) for name, inside in sections.features]
    sources = [(name, one, one.source()) for name, one in streams]
    count = len(sources[0][2].script)
    for _name, one, source in sources[1:]:
        if len(source.script) != count:
            raise one.error(
                "scpFile", f"lists {len(source.script)} utterances, but that of '{sources[0][0]}' lists {count}",
                "entry n of every script file is the same utterance",
            )  # fmt: skip
    repeated = [_single(p, one, source, i) for i, (_, one, source) in enumerate(sources)]
    for (_, _, source), single in zip(sources, repeated, strict=True):
        short = np.flatnonzero(source.lengths < 2)
        if len(short) and not single:
            place = source.place(int(short[0]))
            raise DataError(
                f"{place}: utterances of less than 2 frames are not supported.", path=source.list_path,
                hint="leave the line out; a stream with one frame per utterance needs expandToUtterance=true",
            )  # fmt: skip
    features = [(name, source, single) for (name, _, source), single in zip(sources, repeated, strict=True)]
    wanted = set(sources[0][2].keys)
    labels = [_labels(name, LabelParameters(inside), wanted) for name, inside in sections.labels]
    limit = longest_taken(p.frame_mode or p.truncated or p.read_method == "rollingWindow", p.longest)
    kept = all_that_fit(features) if p.writing else those_that_fit(features, limit)
    return join_streams(features, labels, kept, dtype, frame_mode=frame_mode)


def longest_taken(pieces: bool, longest: int) -> int:
    """Frames of the longest utterance that a reader takes: less than it could, if it gives whole utterances."""
    return LONGEST if pieces else min(LONGEST, longest)


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
        HTKFeatures(name, source, chunks, corpus, repeated=lengths if single else None, **options)
        for name, source, single in features
    ]
    for s in labels:
        chosen = np.array([s.where[key] for key in first.keys], np.int64)
        parts.append(
            HTKLabels(s.name, s.labels, chosen, s.dim, chunks, corpus, targets=s.targets, states=s.states, **options)
        )
    return SideBySide(parts)


def _single(p: HTKReaderParameters, one: FeatureParameters, source: FeatureSource, number: int) -> bool:
    """Whether the utterances of a stream have a single frame to be repeated."""
    if p.writing:
        return number > 0 and bool((source.lengths == 1).all())
    if not one.expand:
        return False
    if number == 0:
        raise one.error("expandToUtterance", "the first stream decides how long utterances are", "give it a later name")
    if p.read_method == "rollingWindow":
        raise one.error("expandToUtterance", "is not possible with readMethod=rollingWindow")
    if source.left or source.right:
        raise one.error("expandToUtterance", "cannot have a context window")
    longer = np.flatnonzero(source.lengths != 1)
    if len(longer):
        raise one.error(
            "expandToUtterance", f"utterances must have a single frame, but see {source.script.place(int(longer[0]))}"
        )
    return True


def _same_length(features: Sequence[Features]) -> np.ndarray:
    first = features[0][1]
    good = np.ones(len(first.lengths), bool)
    for _, source, single in features:
        good &= single | (source.lengths == first.lengths)
    return good


def all_that_fit(features: Sequence[Features]) -> np.ndarray:
    """All utterances, which have the same number of frames in every stream, else that is an error."""
    good, first = _same_length(features), features[0][1]
    if not good.all():
        raise DataError(
            f"{first.place(int(np.argmin(good)))}: the utterance does not have the same number of frames in "
            "every stream.", path=first.list_path,
        )  # fmt: skip
    return np.arange(len(good))


def those_that_fit(features: Sequence[Features], limit: int, kept: np.ndarray | None = None) -> np.ndarray:
    """Of the kept utterances, those of the same number of frames in every stream, and not more than the limit."""
    first = features[0][1]
    good = _same_length(features) & (first.lengths <= limit)
    kept = np.arange(len(good)) if kept is None else kept
    why = f"of different length in another stream, or longer than {limit} frames"
    return leave_out(good[kept], kept, len(good), first, why)


def leave_out(good: np.ndarray, kept: np.ndarray, count: int, first: FrameSource, why: str) -> np.ndarray:
    """Those of the kept utterances that are good; a warning names others. More than half of `count` are an error."""
    bad = kept[~good]
    if not len(bad):
        return kept
    names = ", ".join(first.keys[i] for i in bad[:_SHOWN].tolist())
    if 2 * len(bad) > count:
        raise DataError(
            f"{len(bad)} of {count} utterances of {first.list_path} are unusable: {why} (the first: {names}).",
            path=first.list_path, hint="at most half of the utterances may be left out",
        )  # fmt: skip
    log.warning("%d of %d utterances are left out: %s: %s", len(bad), count, why, printable(names))
    return kept[good]


def _labels(name: str, p: LabelParameters, wanted: set[str]) -> LabelStream:
    """The labels that a section describes."""
    dim, states = p.classes(), p.state_list()
    p.check_type()
    labels = p.labels(states, wanted)
    return LabelStream(name, labels, dim, p.target_table(states), states)


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
                path=labels.places[where][0], hint="a range begins where the one before it ends, the first at 0",
            )  # fmt: skip
        self.where = {key: i for i, key in enumerate(labels.keys)}

    def fitting(self, first: FrameSource, kept: np.ndarray, count: int) -> np.ndarray:
        """Of these utterances, those that have labels for all frames."""
        lengths = self.labels.lengths
        keys = first.keys
        has = [self.where.get(keys[i], -1) for i in kept.tolist()]
        good = np.array(
            [w >= 0 and lengths[w] == first.lengths[i] for w, i in zip(has, kept.tolist(), strict=True)], bool
        )
        return leave_out(good, kept, count, first, f"no labels in '{self.name}', or for another number of frames")
