"""The streams of HTKMLFReader side by side: entry n of every script file is the same utterance."""

from __future__ import annotations

import logging

import numpy as np

from cntk_config.base.diagnostics import printable
from readers.common.corpus import Corpus
from readers.errors import DataError

from .features import FeatureSource, HTKFeatures
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
    kept = _features_that_fit(p, [s for _, _, s in sources], repeated)
    first = sources[0][2]
    labels = [_Stream(name, LabelParameters(inside), set(first.script.keys)) for name, inside in sections.labels]
    for stream in labels:
        kept = stream.fitting(first, kept, count)
    for _, _, source in sources:
        source.keep(kept)
    lengths, corpus = first.lengths, Corpus(numeric=False)
    chunks = cut_into_chunks(lengths)
    parts: list[Utterances] = [
        HTKFeatures(
            name,
            source,
            chunks,
            corpus,
            dtype=dtype,
            frame_mode=frame_mode,
            repeated=lengths if single else None,
        )
        for (name, _, source), single in zip(sources, repeated, strict=True)
    ]
    for stream in labels:
        chosen = np.array([stream.where[key] for key in first.script.keys], np.int64)
        parts.append(
            HTKLabels(
                stream.name,
                stream.labels,
                chosen,
                stream.dim,
                chunks,
                corpus,
                dtype=dtype,
                frame_mode=frame_mode,
                targets=stream.targets,
                states=stream.states,
            )
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


def _features_that_fit(p: HTKReaderParameters, sources: list[FeatureSource], repeated: list[bool]) -> np.ndarray:
    """Utterances that have the same number of frames in every stream, and not too many."""
    first = sources[0]
    for source, single in zip(sources, repeated, strict=True):
        short = np.flatnonzero(source.lengths < 2)
        if len(short) and not single:
            place = source.script.place(int(short[0]))
            raise DataError(
                f"{place}: utterances of less than 2 frames are not supported.", path=source.script.paths[0],
                hint="leave the line out; a stream with one frame per utterance needs expandToUtterance=true",
            )  # fmt: skip
    good = np.ones(len(first.script), bool)
    for source, single in zip(sources, repeated, strict=True):
        good &= single | (source.lengths == first.lengths)
    if p.writing:
        if not good.all():
            raise DataError(
                f"{first.script.place(int(np.argmin(good)))}: the utterance does not have the same number of frames in "
                "every stream.", path=first.script.paths[0],
            )  # fmt: skip
        return np.arange(len(good))
    limit = LONGEST if p.frame_mode or p.truncated or p.read_method == "rollingWindow" else min(LONGEST, p.longest)
    good &= first.lengths <= limit
    return _dropping(
        good,
        np.arange(len(good)),
        len(good),
        first,
        f"of different length in another stream, or longer than {limit} frames",
    )


def _dropping(good: np.ndarray, kept: np.ndarray, count: int, first: FeatureSource, why: str) -> np.ndarray:
    bad = kept[~good]
    if not len(bad):
        return kept
    names = ", ".join(first.script.keys[i] for i in bad[:_SHOWN].tolist())
    if 2 * len(bad) > count:
        raise DataError(
            f"{len(bad)} of {count} utterances of {first.script.paths[0]} are unusable: {why} (the first: {names}).",
            path=first.script.paths[0], hint="at most half of the utterances may be left out",
        )  # fmt: skip
    log.warning("%d of %d utterances are left out: %s: %s", len(bad), count, why, printable(names))
    return kept[good]


class _Stream:
    """A stream of labels on its way to a deserializer."""

    def __init__(self, name: str, p: LabelParameters, wanted: set[str]):
        self.name, self.dim = name, p.classes()
        p.check_type()
        self.states = states = p.state_list()
        self.labels: Labels = p.labels(states, wanted)
        check_classes(self.labels, self.dim, name)
        gaps = np.flatnonzero(~self.labels.contiguous)
        if len(gaps):
            where = int(gaps[0])
            raise DataError(
                f"The labels of {self.labels.keys[where]} ({self.labels.place(where)}) leave a gap between ranges.",
                path=self.labels.places[where][0], hint="a range begins where the one before it ends, the first at 0",
            )  # fmt: skip
        self.targets = p.target_table(states)
        self.where = {key: i for i, key in enumerate(self.labels.keys)}

    def fitting(self, first: FeatureSource, kept: np.ndarray, count: int) -> np.ndarray:
        """Of these utterances, those that have labels for all frames."""
        lengths = self.labels.lengths
        keys = first.script.keys
        has = [self.where.get(keys[i], -1) for i in kept.tolist()]
        good = np.array(
            [w >= 0 and lengths[w] == first.lengths[i] for w, i in zip(has, kept.tolist(), strict=True)], bool
        )
        return _dropping(good, kept, count, first, f"no labels in '{self.name}', or for another number of frames")
