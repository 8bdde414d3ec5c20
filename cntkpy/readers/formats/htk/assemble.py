"""The streams of HTKMLFReader side by side: entry n of every script file is the same utterance."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.errors import DataError
from cntkpy.readers.utterances.join import LabelStream, all_that_fit, join_streams, longest_taken, those_that_fit
from cntkpy.readers.utterances.side_by_side import SideBySide

from .features import FeatureSource
from .parameters import FeatureParameters, LabelParameters
from .sections import HTKReaderParameters, Sections


def assemble(p: HTKReaderParameters, sections: Sections, dtype: np.dtype, *, frame_mode: bool) -> SideBySide:
    """Return all streams of the reader. Utterances that do not fit together are left out with a warning, to a limit."""
    streams = [(name, FeatureParameters(inside)) for name, inside in sections.features]
    sources = [(name, stream, stream.source(energy=p.read_method == "rollingWindow")) for name, stream in streams]
    count = len(sources[0][2].script)
    for _name, item, source in sources[1:]:
        if len(source.script) != count:
            raise item.error(
                "scpFile",
                f"lists {len(source.script)} utterances, but that of '{sources[0][0]}' lists {count}",
                "entry n of every script file is the same utterance",
            )
    repeated = [_single(p, item, source, i) for i, (_, item, source) in enumerate(sources)]
    for (_, _, source), single in zip(sources, repeated, strict=True):
        short = np.flatnonzero(source.lengths < 2)
        if len(short) and not single:
            place = source.place(int(short[0]))
            raise DataError(
                f"{place}: utterances of less than 2 frames are not supported.",
                path=source.list_path,
                hint="leave the line out; a stream with one frame per utterance needs expandToUtterance=true",
            )
    features = [(name, source, single) for (name, _, source), single in zip(sources, repeated, strict=True)]
    labels = [_labels(name, LabelParameters(inside), sources[0][2]) for name, inside in sections.labels]
    limit = longest_taken(p.frame_mode or p.truncated or p.read_method == "rollingWindow", p.longest)
    kept = all_that_fit(features) if p.writing else those_that_fit(features, limit)
    return join_streams(features, labels, kept, dtype, frame_mode=frame_mode)


def _single(p: HTKReaderParameters, feature: FeatureParameters, source: FeatureSource, number: int) -> bool:
    """Return whether the utterances of a stream have a single frame to be repeated."""
    if p.writing:
        return number > 0 and bool((source.lengths == 1).all())
    if not feature.expand:
        return False
    if number == 0:
        raise feature.error(
            "expandToUtterance", "the first stream decides how long utterances are", "give it a later name"
        )
    if p.read_method == "rollingWindow":
        raise feature.error("expandToUtterance", "is not possible with readMethod=rollingWindow")
    if source.left or source.right:
        raise feature.error("expandToUtterance", "cannot have a context window")
    longer = np.flatnonzero(source.lengths != 1)
    if len(longer):
        raise feature.error(
            "expandToUtterance", f"utterances must have a single frame, but see {source.script.place(int(longer[0]))}"
        )
    return True


def _labels(name: str, p: LabelParameters, first: FeatureSource) -> LabelStream:
    """Return the labels that a section describes, of the utterances of the first features."""
    dim, states = p.classes(), p.state_list()
    p.check_type()
    labels = p.labels(states, dict(zip(first.keys, first.lengths.tolist(), strict=True)), first.period)
    return LabelStream(name, labels, dim, p.target_table(states), states)
