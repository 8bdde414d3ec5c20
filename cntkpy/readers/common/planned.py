"""Minibatches that an order has chosen, before they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cntkpy.cntk_config.base.lazy_modules import np

State = dict[str, Any]
"""A position between two values of a stage, JSON-able."""

NO_LIMIT = 2**62
"""Samples of a minibatch, or of an epoch, that has no limit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of the minibatches that an order chooses.

    Attributes:
        minibatch: Samples of all workers together; `NO_LIMIT` where each worker counts its own.
        worker: Samples of this worker.
        count: Minibatches that may be chosen at once.
        samples: Samples after which no further minibatch is chosen.
    """

    minibatch: int
    worker: int
    count: int = 1
    samples: int = NO_LIMIT


@dataclass(frozen=True, slots=True)
class LoadHints:
    """Data that a store should have at hand.

    Attributes:
        keep: This worker's chunks of the current window; None: only those of the sequences that are loaded.
        ahead: The chunks after the window, in order of need.
        following: Returns this worker's part of the next n sequences; None if they are not known.
    """

    keep: np.ndarray | None = None
    ahead: np.ndarray | None = None
    following: Callable[[int], np.ndarray] | None = None


@dataclass(slots=True, eq=False)
class Planned:
    """One minibatch, or several that follow one another inside a sweep and an epoch.

    Attributes:
        sequences: Numbers in the table, of this worker only, int64[n].
        states: The state of the order after each minibatch.
        end_of_sweep: Whether a sweep ends with the last minibatch.
        end_of_epoch: Whether the epoch ends with it.
        hints: Data that are needed with these sequences and after them.
        cuts: Minibatch m has the sequences cuts[m] .. cuts[m+1]-1; None: there is one minibatch.
        together: Lengths of the sequences of all workers, where these share one minibatch.
        sweeps: The sweeps of the sequences: (sweep, number of sequences), one after the other.
    """

    sequences: np.ndarray
    states: Sequence[State]
    end_of_sweep: bool
    end_of_epoch: bool
    hints: LoadHints = LoadHints()
    cuts: Sequence[int] | None = None
    together: np.ndarray | None = None
    sweeps: tuple[tuple[int, int], ...] = ()

    @property
    def sizes(self) -> list[int]:
        """The number of sequences of each minibatch."""
        return [len(self.sequences)] if self.cuts is None else [b - a for a, b in pairwise(self.cuts)]

    def sweep_of_each(self) -> np.ndarray:
        """Return the sweep of every sequence, int64[n]."""
        sweeps, counts = np.array(self.sweeps, np.int64).reshape(-1, 2).T
        return np.repeat(sweeps, counts)

    def each(self) -> Iterator[Planned]:
        """Yield the minibatches, each alone."""
        if self.cuts is None:
            yield self
            return
        last = len(self.cuts) - 2
        for m, ((a, b), state) in enumerate(zip(pairwise(self.cuts), self.states, strict=True)):
            ends = (self.end_of_sweep, self.end_of_epoch) if m == last else (False, False)
            yield Planned(self.sequences[a:b], (state,), *ends, self.hints)


def join(parts: Sequence[Planned]) -> Planned | None:
    """Return one minibatch of sequences from several sweeps; None of none."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    last = parts[-1]
    keeps = [part.hints.keep for part in parts if part.hints.keep is not None]
    keep = np.unique(np.concatenate(keeps)) if keeps else None
    return Planned(
        np.concatenate([part.sequences for part in parts]),
        last.states,
        any(part.end_of_sweep for part in parts),
        last.end_of_epoch,
        LoadHints(keep, last.hints.ahead, last.hints.following),
        sweeps=tuple(run for part in parts for run in part.sweeps),
    )
