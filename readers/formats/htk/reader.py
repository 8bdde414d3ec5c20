"""HTKMLFReader: sections of features and of labels; and the newer HTKDeserializers behind the same form."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from cntk_config.arrays import PerEpoch
from cntk_config.parameters import ConfigParameters
from readers.common.corpus import Corpus
from readers.contracts import Deserializer
from readers.formats.composite.reader import join
from readers.parameters import ReaderParameters, check_precision
from readers.pipeline.frame_batches import Frames
from readers.pipeline.randomize import BlockRandomizer
from readers.pipeline.source import Source
from readers.pipeline.truncated import TruncatedPacker
from readers.reader import Reader
from readers.registry import Setting
from readers.streams import DTYPES

from .assemble import assemble
from .options import features_of, labels_of
from .order import InOrder, make_timeline
from .reads import Reads, TruncatedReads
from .sections import HTKReaderParameters, Sections, find_sections

log = logging.getLogger("cntkpy.readers")


class HTKSource(Source):
    """A pipeline whose minibatches are made HTKMLFReader's way."""

    def __init__(self, data: Deserializer, timeline: Any, assembler: Any, **options: Any):
        super().__init__(data, timeline, assembler=assembler, **options)


class HTKReader(Reader):
    """A reader in which the number of parallel sequences may change from epoch to epoch.

    slots: that number per epoch; full: frame minibatches are never short; single: every minibatch is one utterance.
    """

    def __init__(self, source: HTKSource, slots: PerEpoch[int], *, full: bool = False, single: bool = False):
        super().__init__(source)
        self._slots, self._full, self._single = slots, full, single

    def start_minibatch_loop(
        self, minibatch_size: int, epoch: int, requested_epoch_samples: int | None = None, worker_rank: int = 0,
        number_of_workers: int = 1,
    ) -> None:  # fmt: skip
        """Go to the start of an epoch, counted from 0; without a number of samples it is one sweep of the data."""
        assembler: Any = self.source._assembler
        if isinstance(assembler, (Reads, TruncatedReads)):
            assembler.slots = self._slots[epoch]
        elif isinstance(assembler, TruncatedPacker):
            assembler.length = minibatch_size
            minibatch_size *= self._slots[epoch]
        if self._full and requested_epoch_samples is not None:
            requested_epoch_samples = self._whole_minibatches(minibatch_size, requested_epoch_samples)
        if self._single:
            minibatch_size, requested_epoch_samples = 1, None
        super().start_minibatch_loop(minibatch_size, epoch, requested_epoch_samples, worker_rank, number_of_workers)

    def _whole_minibatches(self, size: int, samples: int) -> int:
        """The size of an epoch that makes up for what is passed over at the end of each sweep."""
        total = self.samples_per_sweep
        rest = total % size if total > size else 0
        return samples + rest * ((samples - 1) // (total - rest))


def create_htk_reader(section: ConfigParameters, precision: str) -> Reader:
    """HTKMLFReader."""
    p = HTKReaderParameters(section)
    sections, dtype = find_sections(section), np.dtype(DTYPES[check_precision(section, precision)])
    p.check_together()
    writing = p.writing
    frame_mode = not writing and (p.frame_mode or p.read_method == "rollingWindow")
    data = assemble(p, sections, dtype, frame_mode=frame_mode)
    table, slots = data.table, p.slots
    options = {"local_timeline": False, "prefetch": p.prefetch}
    if writing:
        return HTKReader(HTKSource(data, InOrder(table), Reads(data.streams, 1), **options), slots, single=True)
    timeline = make_timeline(table, p.read_method, p.randomize, p.twister)
    full = p.minibatch_mode == "full"
    if frame_mode:
        return HTKReader(HTKSource(data, timeline, Frames(data, full), **options), slots, full=full)
    packer = (TruncatedReads if p.truncated else Reads)(data.streams, slots[0])
    return HTKReader(HTKSource(data, timeline, packer, **options), slots)


def create_new_htk_reader(section: ConfigParameters, precision: str) -> Reader:
    """HTKDeserializers: the deserializers of a composite reader behind the sections of HTKMLFReader."""
    if ReaderParameters.deserializers.find(section):
        from readers.formats.composite.reader import create_composite_reader

        return create_composite_reader(section, precision)
    p = HTKReaderParameters(section)
    sections = find_sections(section)
    p.check_together()
    frame_mode = p.frame_mode and not p.writing
    joined = _joined(sections, check_precision(section, precision), frame_mode)
    options: dict[str, Any] = {"local_timeline": False, "prefetch": p.prefetch}
    if p.writing:
        return HTKReader(
            HTKSource(joined, InOrder(joined.table), Reads(joined.streams, 1), **options), p.slots, single=True
        )
    in_order = p.randomize == 0 or p.read_method == "none"
    timeline = InOrder(joined.table) if in_order else BlockRandomizer(joined.table, p.randomize)
    if frame_mode:
        return Reader(Source(joined, timeline, frame_mode=True, **options))
    if p.truncated:
        return HTKReader(HTKSource(joined, timeline, TruncatedPacker(joined.streams, 1), **options), p.slots)
    return Reader(Source(joined, timeline, **options))


def _joined(sections: Sections, precision: str, frame_mode: bool) -> Deserializer:
    corpus = Corpus(numeric=False)
    parts: list[Any] = []
    for makers, make in ((sections.features, features_of), (sections.labels, labels_of)):
        for name, one in makers:
            setting = Setting(precision, primary=not parts, frame_mode=frame_mode, corpus=corpus)
            parts.append(make(name, one, setting))
    return join(parts)
