"""A reader of utterances: in which order they come, and how minibatches are made of them, as HTKMLFReader does it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.readers.contracts import Deserializer
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.pipeline.frame_batches import Frames
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.reader import Reader

from .order import InOrder, make_timeline
from .parameters import UtteranceReaderParameters
from .reads import Reads, TruncatedReads
from .side_by_side import SideBySide


class UtteranceReader(Reader):
    """A reader in which the number of parallel sequences may change from epoch to epoch.

    slots: that number per epoch, where the minibatch size is that of one of them; full: frame minibatches are never
    short; single: every minibatch is one utterance.
    """

    def __init__(self, source: Source, slots: PerEpoch[int] | None = None, *, full: bool = False, single: bool = False):
        super().__init__(source)
        self._slots, self._full, self._single = slots, full, single

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""
        if self._slots is not None:
            request = replace(request, minibatch_size=request.minibatch_size * self._slots[request.epoch])
        if self._full and request.samples is not None:
            request = replace(request, samples=self._whole_minibatches(request.minibatch_size, request.samples))
        if self._single:
            request = replace(request, minibatch_size=1, samples=None)
        super().start(request)

    def _whole_minibatches(self, size: int, samples: int) -> int:
        """Return the size of an epoch that makes up for what is passed over at the end of each sweep."""
        total = self.samples_per_sweep
        left_over = total % size if total > size else 0
        return samples + left_over * ((samples - 1) // (total - left_over))


def in_file_order(data: Deserializer, prefetch: bool) -> Reader:
    """Return the reader of `action=write`: utterances one by one, in their own order."""
    source = Source(data, InOrder(data.table), SourceOptions(prefetch=prefetch), make_packer=Reads)
    return UtteranceReader(source, single=True)


def make_reader(data: SideBySide, p: UtteranceReaderParameters, method: str) -> Reader:
    """Return the reader of streams of the same utterances.

    Args:
        data: the streams, of frames or of utterances as `p.reads_frames(method)` says.
        p: what the section says.
        method: readMethod: `blockRandomize`, `rollingWindow` or `none`.
    """
    if p.writing:
        return in_file_order(data, p.prefetch)
    timeline = make_timeline(data.table, method, p.randomize, p.twister)
    if p.reads_frames(method):
        full = p.minibatch_mode == "full"
        make_frames = partial(Frames, data=data, full=full)
        options = SourceOptions(prefetch=p.prefetch)
        return UtteranceReader(Source(data, timeline, options, make_packer=make_frames), full=full)
    make_packer = TruncatedReads if p.truncated else Reads
    options = SourceOptions(slots=p.slots, prefetch=p.prefetch)
    return UtteranceReader(Source(data, timeline, options, make_packer=make_packer))
