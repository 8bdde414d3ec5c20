"""Which sequences go into the next minibatches: what an order hands out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(eq=False)
class Selection:
    """The sequences of one minibatch.

    Attributes:
        sequences: Their numbers in the table, of this worker only.
        keep: This worker's chunks of the current window; None: only those of these sequences are needed.
        ahead: The chunks after the window, in order of need.
        together: Lengths of the sequences of all workers, where these share one minibatch.
        following: Gives this worker's part of the next n sequences; None if they are not known.
    """

    sequences: np.ndarray
    end_of_sweep: bool
    end_of_epoch: bool
    keep: np.ndarray | None = None
    ahead: np.ndarray | None = None
    together: np.ndarray | None = None
    sweeps: tuple[tuple[int, int], ...] = ()
    """Which sweeps the sequences are of: (sweep, number of sequences) one after the other."""
    following: Callable[[int], np.ndarray] | None = None

    def sweep_of_each(self) -> np.ndarray:
        """The sweep of every sequence, int64[n]."""
        sweeps, counts = np.array(self.sweeps, np.int64).reshape(-1, 2).T
        return np.repeat(sweeps, counts)


@dataclass(eq=False)
class Several:
    """Minibatches that follow one another inside a sweep and an epoch.

    selection: all their sequences, and what ended with the last of them; cuts: minibatch m has the sequences
    cuts[m] .. cuts[m+1]-1; states: of the timeline, after each.
    """

    selection: Selection
    cuts: list[int]
    states: Iterable[dict[str, Any]]


def join(parts: Sequence[Selection]) -> Selection | None:
    """One minibatch of sequences from several sweeps."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    keeps = [p.keep for p in parts if p.keep is not None]
    return Selection(
        np.concatenate([p.sequences for p in parts]),
        any(p.end_of_sweep for p in parts),
        parts[-1].end_of_epoch,
        np.unique(np.concatenate(keeps)) if keeps else None,
        parts[-1].ahead,
        sweeps=tuple(run for part in parts for run in part.sweeps),
        following=parts[-1].following,
    )
