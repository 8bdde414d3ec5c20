"""HTKMLFReader: sections of features and of labels; and the newer HTKDeserializers after the same form."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.contracts import Deserializer
from cntkpy.readers.formats.composite.reader import join
from cntkpy.readers.parameters import ReaderParameters, check_precision
from cntkpy.readers.pipeline.randomize import BlockRandomizer, NoRandomizer
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.pipeline.truncated import TruncatedPacker
from cntkpy.readers.reader import Reader
from cntkpy.readers.registry import Setting
from cntkpy.readers.streams import DTYPES
from cntkpy.readers.utterances.reader import UtteranceReader, in_file_order, make_reader

from .assemble import assemble
from .options import features_of, labels_of
from .sections import HTKReaderParameters, Sections, find_sections


def create_htk_reader(section: ConfigParameters, precision: str) -> Reader:
    """HTKMLFReader."""
    p = HTKReaderParameters(section)
    sections, dtype = find_sections(section), np.dtype(DTYPES[check_precision(section, precision)])
    p.check_together()
    data = assemble(p, sections, dtype, frame_mode=p.reads_frames(p.read_method))
    return make_reader(data, p, p.read_method)


def create_new_htk_reader(section: ConfigParameters, precision: str) -> Reader:
    """HTKDeserializers: the deserializers of a composite reader after the sections of HTKMLFReader."""
    if ReaderParameters.deserializers.find(section):
        from cntkpy.readers.formats.composite.reader import create_composite_reader

        return create_composite_reader(section, precision)
    p = HTKReaderParameters(section)
    sections = find_sections(section)
    p.check_together()
    frame_mode = p.frame_mode and not p.writing
    joined = _joined(sections, check_precision(section, precision), frame_mode)
    if p.writing:
        return in_file_order(joined, p.prefetch)
    in_order = p.randomize == 0 or p.read_method == "none"
    timeline = NoRandomizer(joined.table) if in_order else BlockRandomizer(joined.table, p.randomize)
    if p.truncated and not frame_mode:
        options = SourceOptions(slots=p.slots, prefetch=p.prefetch)
        return UtteranceReader(Source(joined, timeline, options, make_packer=TruncatedPacker), p.slots)
    return Reader(Source(joined, timeline, SourceOptions(frame_mode=frame_mode, prefetch=p.prefetch)))


def _joined(sections: Sections, precision: str, frame_mode: bool) -> Deserializer:
    corpus = Corpus(numeric=False)
    parts: list[Any] = []
    for makers, make in ((sections.features, features_of), (sections.labels, labels_of)):
        for name, item in makers:
            setting = Setting(precision, primary=not parts, frame_mode=frame_mode, corpus=corpus)
            parts.append(make(name, item, setting))
    return join(parts)
