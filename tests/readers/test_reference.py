"""Orders, minibatches and layouts against slow programs that say in this many words what the specification says."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest

from cntkpy.readers.common.planned import Limits
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.pipeline.pack import place
from cntkpy.readers.pipeline.randomize import BlockRandomizer, ChunkRandomizer, NoRandomizer

ALL = 2**64 - 1
TRIALS = range(12)
Item = tuple[int, int]
"""Number of a sequence, and its length."""


class Twister:
    """MT19937-64 as its authors describe it."""

    def __init__(self, seed: int):
        self.state = [seed & ALL]
        for i in range(1, 312):
            last = self.state[-1]
            self.state.append((6364136223846793005 * (last ^ (last >> 62)) + i) & ALL)
        self.at = 312

    def draw(self, low: int, high: int) -> int:
        if self.at == 312:
            x, self.at = self.state, 0
            for k in range(312):
                y = (x[k] & ~(2**31 - 1)) | (x[(k + 1) % 312] & (2**31 - 1))
                x[k] = x[(k + 156) % 312] ^ (y >> 1) ^ (0xB5026F5AA96619E9 if y & 1 else 0)
        y = self.state[self.at]
        self.at += 1
        y ^= (y >> 29) & 0x5555555555555555
        y ^= (y << 17) & 0x71D67FFFEDA60000
        y ^= (y << 37) & 0xFFF7EEE000000000
        return low + (y ^ (y >> 43)) % (high - low)


def windows(starts: list[int], window: int, in_chunks: bool) -> list[tuple[int, int]]:
    """[begin, end) of the placed chunks around each."""
    count, half, found = len(starts) - 1, window // 2, []
    begin, end = 0, 1
    for c in range(count):
        if in_chunks:
            begin = max(c - half, 0)
            end = begin + max(window, 1)
            found.append((begin, end) if end <= count else (max(count - max(window, 1), 0), count))
            continue
        while starts[c] - starts[begin] > half:
            begin += 1
        begin, end = min(begin, c), max(end, c + 1)
        while end < count and starts[end + 1] - starts[c] < half:
            end += 1
        found.append((begin, end))
    return found


def shuffled(chunks: list[list[Item]], window: int, in_chunks: bool, seed: int) -> list[tuple[Item, int]]:
    """Sequences in the order of a sweep, each with the place of its chunk."""
    twister, placed = Twister(seed), list(chunks)
    for i in range(len(placed)):
        j = twister.draw(0, len(placed))
        placed[i], placed[j] = placed[j], placed[i]
    starts, first = [0], [0]
    for chunk in placed:
        starts.append(starts[-1] + sum(length for _, length in chunk))
        first.append(first[-1] + len(chunk))
    around = windows(starts, window, in_chunks)
    found = [(one, c) for c, chunk in enumerate(placed) for one in chunk]
    row = [c for _, c in found]
    twister, done = Twister(seed), 0
    for c in range(len(placed)):  # the reading cursor comes to chunk c
        n = around[c][1]
        while n < len(placed) and around[n][0] <= c:
            n += 1
        for t in range(first[done], first[n]):
            begin, end = around[row[t]]
            while True:
                j = twister.draw(first[begin], first[end])
                low, high = around[row[j]]
                if begin <= found[j][1] < end and low <= found[t][1] < high:
                    break
            found[t], found[j] = found[j], found[t]
        done = n
    return found


def some_data(rng: random.Random) -> tuple[list[list[Item]], SequenceTable]:
    """Chunks of sequences, of one length or of several."""
    same, chunks, number = rng.random() < 0.4, [], 0
    for _ in range(rng.randint(1, 12)):
        size = rng.randint(1, 5)
        chunks.append([(number + i, 1 if same else rng.randint(1, 6)) for i in range(size)])
        number += size
    lengths = np.array([length for chunk in chunks for _, length in chunk], np.int32)
    first = np.cumsum([0, *map(len, chunks)])
    return chunks, SequenceTable(first, lengths[:1] if same else lengths)


@pytest.mark.parametrize("in_chunks", [True, False])
def test_windows_around_chunks(in_chunks):
    rng = random.Random(3)
    for _ in range(300):
        sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 9))]
        table = SequenceTable(np.cumsum([0, *sizes]), np.ones(1, np.int32))
        for window in (1, 2, 3, rng.randint(1, 12), 2 * sum(sizes), ALL >> 2):
            found = ChunkRandomizer(table, window, in_chunks=in_chunks).windows(np.arange(len(sizes)))
            expected = windows(table.first.tolist(), window, in_chunks)
            assert list(map(tuple, found.tolist())) == expected


@pytest.mark.parametrize("trial", TRIALS)
def test_shuffled_minibatches(trial):
    rng = random.Random(trial)
    chunks, table = some_data(rng)
    in_chunks, total = rng.random() < 0.5, table.num_samples
    window = rng.choice([1, 2, 3, 5, len(chunks), 128] if in_chunks else [1, 2, 4, 9, 20, total, 2 * total, ALL >> 2])
    seed, epoch, workers, size = rng.choice([0, 7, 2**40]), rng.randint(0, 3), rng.randint(1, 3), rng.randint(1, 15)
    samples, local = rng.choice([None, rng.randint(1, 2 * total)]), rng.random() < 0.5
    begin, end = epoch * (samples or total), (epoch + 1) * (samples or total)
    for rank in range(workers):
        timeline = BlockRandomizer(table, window, in_chunks=in_chunks, seed=seed)
        timeline.set_state(EpochRequest(size, epoch, samples, rank, workers))
        share = max(1, size // workers + (rank < size % workers)) if local else size
        most = 2**62 if local else size
        position, found, expected = begin, [], []
        timeline.limits = Limits(most, share)
        while (selection := next(timeline, None)) is not None:
            found.append((selection.sequences.tolist(), selection.end_of_sweep, selection.end_of_epoch))
        while position < end and rank < len(chunks):
            sweep, taken, mine, chosen = position // total, 0, 0, []
            order = shuffled(chunks, window, in_chunks, seed + sweep)
            at, i = sweep * total, 0
            while i < len(order) and at < position:  # one inside a sequence means the next one
                at, i = at + order[i][0][1], i + 1
            position, limit = at, min(most, end - at, (sweep + 1) * total - at)
            if position >= end:
                break
            first = True
            for (number, length), chunk in order[i:]:
                own = chunk % workers == rank
                if not first and (taken + length > limit or (own and mine + length > share)):
                    break
                if position + taken >= end:
                    break
                taken += length
                if own:
                    mine += length
                    chosen.append(number)
                first = first and not own and local
            if taken == 0:
                continue
            position += taken
            expected.append((chosen, position % total == 0, position >= end))
        assert found == expected


@pytest.mark.parametrize("trial", TRIALS)
def test_minibatches_in_the_order_of_the_file(trial):
    rng = random.Random(trial)
    chunks, table = some_data(rng)
    items, total = [one for chunk in chunks for one in chunk], table.num_samples
    epoch, workers, size = rng.randint(0, 3), rng.randint(1, 3), rng.randint(1, 15)
    samples = rng.choice([None, rng.randint(1, 2 * total)])
    end = (epoch + 1) * (samples or total)
    for rank in range(workers):
        timeline = NoRandomizer(table)
        timeline.set_state(EpochRequest(size, epoch, samples, rank, workers))
        found, expected, position = [], [], epoch * (samples or total)
        timeline.limits = Limits(2**62, size)
        while (selection := next(timeline, None)) is not None:
            found.append((selection.sequences.tolist(), selection.end_of_sweep))
        while True:
            at, i = position // total * total, 0
            while i < len(items) and at < position:
                at, i = at + items[i][1], i + 1
            position = at
            if position >= end:
                break
            mine, chosen = 0, []
            for number, length in items[i % len(items) :]:
                own = number % workers == rank
                if own and chosen and mine + length > size:
                    break
                position += length
                if own:
                    mine += length
                    chosen.append(number)
            expected.append((chosen, position % total == 0))
        assert found == expected


@pytest.mark.parametrize("trial", TRIALS)
def test_first_fit(trial):
    rng = random.Random(trial)
    lengths = [rng.randint(1, rng.choice([1, 3, 9])) for _ in range(rng.randint(1, 25))]
    longest, filled, expected = max(lengths), [], []
    for i, length in enumerate(lengths):
        slot = next((s for s, used in enumerate(filled) if used + length <= longest), len(filled))
        filled += [0] * (slot == len(filled))
        expected.append([i, slot, filled[slot], filled[slot] + length])
        filled[slot] += length
    layout = place(np.array(lengths))
    assert (layout.T, layout.S, layout.sequences.tolist()) == (longest, len(filled), expected)


@pytest.mark.parametrize("trial", TRIALS)
def test_pieces_of_truncated_sequences(trial, compose, tools):
    rng = random.Random(trial)
    lengths = [rng.randint(1, 9) for _ in range(rng.randint(1, 15))]
    text = "".join(f"{i} |x {t}\n" for i, n in enumerate(lengths) for t in range(n))
    steps, size = rng.randint(1, 6), rng.randint(1, 20)
    slots: list[deque[list[int]]] = [deque() for _ in range(max(1, size // steps))]
    waiting, expected = deque(enumerate(lengths)), []
    while waiting or any(slots):
        for slot in slots:
            while waiting and sum(length - used for _, length, used in slot) <= steps:
                slot.append([*waiting.popleft(), 0])
        pieces = []
        for s, slot in enumerate(slots):
            step = 0
            while slot and step < steps:
                key, length, used = slot[0]
                count = min(length - used, steps - step)
                pieces.append((key, s, step - used, step - used + length))
                slot[0][2] += count
                step += count
                if slot[0][2] == length:
                    slot.popleft()
        expected.append(pieces)
    reader = compose([(text, "x:1")], randomize=False, truncated=True, truncationLength=steps)
    found = tools["epoch"](reader, size)
    reader.close()
    assert [
        [(key, *row[1:]) for key, row in zip(m.keys, m.layout.sequences.tolist(), strict=True)] for m in found
    ] == expected
    assert {m.layout.mask.shape for m in found} == {(steps, len(slots))}
    assert [m.end_of_epoch for m in found] == [False] * (len(found) - 1) + [True]
