"""The orders of HTKMLFReader: blockRandomize, rollingWindow, none."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.kernels.random_fallback import rand_seed
from cntkpy.readers.pipeline.randomize import (
    BlockRandomizer,
    ChunkRandomizer,
    NoRandomizer,
    SequenceRandomizer,
    Sweep,
    Timeline,
    window_order,
)


class _CChunks(ChunkRandomizer):
    def random(self, sweep: int) -> np.ndarray:
        """C's rand."""
        return rand_seed(sweep)


class _CSequences(SequenceRandomizer):
    def random(self, sweep: int) -> np.ndarray:
        """C's rand, seeded with one more than for the chunks."""
        return rand_seed(sweep + 1)


class CBlockRandomizer(BlockRandomizer):
    """blockRandomize with C's rand; BlockRandomizer itself is the one with the Mersenne Twister."""

    def __init__(self, table: SequenceTable, window: int):
        super().__init__(table, window)
        self._chunks = _CChunks(table, window)
        self._sequences = _CSequences(table)


class InOrder(NoRandomizer):
    """The order of the script file; minibatches end where an epoch ends."""

    fills_up_to_epoch_end = True

    def __init__(self, table: SequenceTable):
        super().__init__(table, cuts_at_epoch_end=True)


class RollingWindow(Timeline):
    """rollingWindow: frames of a sweep trade places with others that are at most half a window away."""

    fills_up_to_epoch_end = True

    def __init__(self, table: SequenceTable, window: int):
        super().__init__(table)
        self.window = window

    def lay_out(self, number: int) -> Sweep:
        """Return one permutation of all frames."""
        order = window_order(self.table.num_sequences, self.window, number)
        return Sweep(number, order, self.table.lengths, None, np.empty(0, np.int32))


def make_timeline(table: SequenceTable, method: str, window: int, twister: bool) -> Timeline:
    """Return the order that readMethod, randomize (0: none) and useMersenneTwisterRand ask for."""
    if window == 0 or method == "none":
        return InOrder(table)
    if method == "rollingWindow":
        return RollingWindow(table, window)
    return BlockRandomizer(table, window) if twister else CBlockRandomizer(table, window)
