"""Deserializers of utterances made from their sections: what formats of speech share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.errors import DataError
from cntkpy.readers.registry import Setting
from cntkpy.readers.streams import DTYPES

from .features import FrameSource, UtteranceFeatures, leave_out_longer, repeated_lengths, without_duplicates
from .frames import cut_into_chunks, set_primary
from .labels import ClassVectors, Labels, UtteranceLabels, check_classes
from .primary import corpus_of, labels_of_right_length

if TYPE_CHECKING:
    pass

log = logging.getLogger("cntkpy.readers")


def make_features(
    name: str, p: Any, open_source: Callable[[], FrameSource], setting: Setting, kind: str
) -> UtteranceFeatures:
    """Return the features of a section as a deserializer.

    Args:
        name: Name of the stream.
        p: The parameters of its section.
        open_source: Opens the files.
        setting: The reader around it.
        kind: Name of the deserializer, for messages.

    Raises:
        ConfigError: The section cannot be.
        DataError: The data cannot be read, or do not fit the section.
    """
    corpus = corpus_of(setting)
    if p.expand and setting.primary:
        raise p.error(
            "expandToUtterance", "the first deserializer decides how long utterances are", "put it further down"
        )
    source = open_source()
    if dropped := without_duplicates(source):
        text = "%s: %d lines with a name that is not unique are left out."
        log.warning(text, source.list_path, dropped, extra=ABOUT_DATA)
    if p.longest is not None:
        leave_out_longer(source, p.longest)
    if not len(source.keys):
        raise DataError(f"{kind}: No utterances to process.", path=source.list_path)
    repeated = repeated_lengths(p, source, corpus) if p.expand else None
    made = UtteranceFeatures(
        name,
        source,
        cut_into_chunks(source.lengths if repeated is None else repeated),
        corpus,
        dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode,
        repeated=repeated,
    )
    made.defines_mb_size = p.defines_mb_size
    if setting.primary:
        set_primary(corpus, made)
    return made


def make_labels(
    name: str, labels: Labels, vectors: ClassVectors, setting: Setting, joined: tuple[str, str]
) -> UtteranceLabels:
    """Return labels as a deserializer.

    Args:
        name: Name of the stream.
        labels: The labels of utterances.
        vectors: What classes are given as.
        setting: The reader around it.
        joined: Path of the labels, and how utterances are joined, for messages.

    Raises:
        DataError: The labels do not fit the section.
    """
    corpus = corpus_of(setting)
    check_classes(labels, vectors.dim, name)
    chosen = labels_of_right_length(labels, corpus, *joined)
    return UtteranceLabels(
        name,
        labels,
        chosen,
        vectors,
        cut_into_chunks(labels.lengths[chosen]),
        corpus,
        dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode,
    )
