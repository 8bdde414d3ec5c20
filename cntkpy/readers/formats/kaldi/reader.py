"""Kaldi2Reader: sections of features in Kaldi archives and of labels in alignments or posteriors."""

from __future__ import annotations

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.reader import Reader
from cntkpy.readers.streams import DTYPES
from cntkpy.readers.utterances.join import (
    Features,
    LabelStream,
    all_that_fit,
    join_streams,
    leave_out,
    longest_taken,
    those_that_fit,
)
from cntkpy.readers.utterances.reader import make_reader
from cntkpy.readers.utterances.side_by_side import SideBySide

from .features import open_features
from .label_streams import open_labels
from .parameters import (
    KaldiFeatureParameters,
    KaldiLabelParameters,
    KaldiReaderParameters,
    Sections,
    find_sections,
)


def create_kaldi_reader(section: ConfigParameters, precision: str) -> Reader:
    """Kaldi2Reader. Minibatches are those of HTKMLFReader on the same data."""
    p = KaldiReaderParameters(section)
    p.check_together()
    sections, dtype = find_sections(section), np.dtype(DTYPES[check_precision(section, precision)])
    data = _assemble(p, sections, dtype, frame_mode=p.reads_frames(p.read_method))
    return make_reader(data, p, p.read_method)


def _assemble(p: KaldiReaderParameters, sections: Sections, dtype: np.dtype, *, frame_mode: bool) -> SideBySide:
    """Return all streams of the reader. Utterances that do not fit together are left out with a warning, to a limit."""
    streams = [(name, KaldiFeatureParameters(inside)) for name, inside in sections.features]
    features: list[Features] = []
    for name, item in streams:
        source = open_features(item, dtype)
        count = len(source.keys)
        if features and count != len(features[0][1].keys):
            raise item.error(
                "scpFile",
                f"lists {count} utterances, but that of '{features[0][0]}' lists {len(features[0][1].keys)}",
                "entry n of every list is the same utterance",
            )
        features.append((name, source, False))
    if p.writing:
        return join_streams(features, [], all_that_fit(features), dtype, frame_mode=frame_mode)
    first = features[0][1]
    count = len(first.keys)
    good = first.lengths >= 2
    kept = leave_out(good, np.arange(count), count, first, "of fewer than 2 frames")
    limit = longest_taken(p.frame_mode or p.truncated or p.read_method == "rollingWindow", p.longest)
    kept = those_that_fit(features, limit, kept)
    wanted = set(first.keys)
    labels: list[LabelStream] = []
    for name, inside in sections.labels:
        result = open_labels(KaldiLabelParameters(inside), wanted, p.delay)
        labels.append(LabelStream(name, *result))
    return join_streams(features, labels, kept, dtype, frame_mode=frame_mode)
