"""Pure-Python fallbacks of `order_kernels`: the same arguments, the same results."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.random_fallback import draws


def shuffle_all(state: np.ndarray, values: np.ndarray) -> None:
    """Shuffle in place, every draw over the whole range."""
    count, swapped = len(values), values.tolist()
    for i, j in enumerate(draws(state, np.full(count, count, np.uint64))):
        swapped[i], swapped[j] = swapped[j], swapped[i]
    values[:] = swapped


def shuffle_range(state: np.ndarray, values: np.ndarray, begin: int, end: int) -> None:
    """Fisher-Yates on values[begin:end], in place."""
    left = np.arange(end - begin, 0, -1).astype(np.uint64)
    swapped = values.tolist()
    for i, draw in enumerate(draws(state, left), begin):
        swapped[i], swapped[i + draw] = swapped[i + draw], swapped[i]
    values[:] = swapped


def windows_in_samples(starts: np.ndarray, window: int) -> np.ndarray:
    """Window [begin, end) of placed chunks around each placed chunk, `starts` int64[C+1] in samples."""
    first, count, half = starts.tolist(), len(starts) - 1, window // 2
    result: list[tuple[int, int]] = []
    begin, end = 0, 1
    for c in range(count):
        while begin < c and first[c] - first[begin] > half:
            begin += 1
        end = max(end, c + 1)
        while end < count and first[end + 1] - first[c] < half:
            end += 1
        result.append((begin, end))
    return np.array(result, np.int64).reshape(-1, 2)


def number_places(first: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """The sequences of placed chunks, one after the other, into `values`."""
    values[:] = np.concatenate([np.arange(int(first[c]), int(first[c + 1])) for c in places.tolist()])


def take(
    lengths: np.ndarray,
    begin: int,
    count: int,
    owner: np.ndarray,
    workers: int,
    rank: int,
    minibatch_size: int,
    worker_size: int,
    epoch_left: int,
    at_least_one: bool,
    together: bool,
) -> tuple[int, int, int]:
    """Sequences begin..end-1 of `count` that go into one minibatch: end, samples, samples of this worker."""
    same = len(lengths) == 1
    length = int(lengths[0])
    taken, local_taken, t = 0, 0, begin
    while t < count:
        length = length if same else int(lengths[t])
        local = workers == 1 or int(owner[t] if len(owner) else t) % workers == rank
        if not at_least_one and (taken + length > minibatch_size or (local and local_taken + length > worker_size)):
            break
        if taken >= epoch_left:
            break
        taken += length
        local_taken += length * local
        at_least_one = at_least_one and not (local or together)
        t += 1
    return t, taken, local_taken


def take_several(
    lengths: np.ndarray,
    begin: int,
    count: int,
    minibatch_size: int,
    epoch_left: int,
    cuts_at_epoch_end: bool,
    fills_up: bool,
    cross_sweeps: bool,
    most: int,
    samples: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sequences begin.. of `count` in minibatches, at least one sequence each."""
    length = int(lengths[0]) if len(lengths) == 1 else 0
    count -= begin
    ends = None if length else np.broadcast_to(lengths, begin + count)[begin:].cumsum(dtype=np.int64)
    cuts, taken, t, total = [0], list[int](), 0, 0
    while len(taken) < most and t < count and total < epoch_left and total <= samples:
        left = epoch_left - total
        room = min(minibatch_size, left) if fills_up else minibatch_size
        if ends is None:
            n = max(1, room // length)
            n = min(n, -(-left // length)) if cuts_at_epoch_end else n
        else:
            n = max(1, int(ends.searchsorted(total + room, "right")) - t)
            n = min(n, int(ends.searchsorted(epoch_left, "left")) + 1 - t) if cuts_at_epoch_end else n
        n = min(n, count - t)
        t += n
        if cross_sweeps and t == count:
            break
        total = t * length if ends is None else int(ends[t - 1])
        taken.append(total)
        cuts.append(t)
    return np.array(cuts, np.int64), np.array(taken, np.int64)


def count_up(begin: int, end: int) -> np.ndarray:
    """begin .. end-1, int64."""
    return np.arange(begin, end, dtype=np.int64)


def by_chunk(first: np.ndarray, sequences: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sort sequences by their chunks: chunks, where those of each begin, numbers within the chunk, places."""
    none = np.empty(0, np.int64)
    if not len(sequences) or int(sequences.min()) < 0 or int(sequences.max()) >= int(first[-1]):
        return none, none, none, none
    if len(first) == 2:
        return np.zeros(1, np.int64), np.array([0, len(sequences)]), sequences.copy(), np.arange(len(sequences))
    chunk = first.searchsorted(sequences, "right") - 1
    where = np.argsort(chunk, kind="stable")
    used, counts = np.unique(chunk, return_counts=True)
    return used, np.concatenate([[0], counts.cumsum()]), (sequences - first[chunk])[where], where
