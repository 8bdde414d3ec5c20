"""Inputs and results of packers: an order, data and a store; minibatches, each with the position after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cntkpy.readers.common.planned import NO_LIMIT, Limits, Planned, State
from cntkpy.readers.contracts import Data, Order, Store, WaitsForData
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.streams import StreamInformation

from .invalid import InvalidSequences

Position = tuple[State, Any]
"""The state of the order, and what the packer holds back, JSON-able."""
Made = tuple[Minibatch | None, State, Any]
"""A minibatch, None at the end of the epoch, and the position after it."""


@dataclass(eq=False)
class Inputs:
    """Parts that minibatches are made of.

    Attributes:
        timeline: The order.
        deserializer: The data.
        store: Where loaded sequences come from.
        invalid: Counts the sequences that are left out.
        minibatch_size: Samples of a minibatch, of all workers together.
        worker_size: Samples of this worker, if `counts_own`; else `minibatch_size`.
        counts_own: Whether each worker counts its own samples; else all take the same minibatch and share it.
        slots: Parallel sequences, of all workers together; 0 where the minibatch size decides.
    """

    timeline: Order
    deserializer: Data
    store: Store
    invalid: InvalidSequences
    minibatch_size: int = 0
    worker_size: int = 1
    counts_own: bool = False
    slots: int = 0

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """Streams of the minibatches."""
        return self.deserializer.streams

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole data set (sum of nominal sequence lengths)."""
        return self.deserializer.table.num_samples

    @property
    def limits(self) -> Limits:
        """Sizes of one minibatch."""
        return Limits(NO_LIMIT if self.counts_own else self.minibatch_size, self.worker_size)

    def plan(self, limits: Limits | None = None) -> Planned | None:
        """Return the next minibatch of the order, of these sizes if they are given; None at the end of the epoch."""
        self.timeline.limits = limits or self.limits
        return next(self.timeline, None)

    def waits(self) -> bool:
        """Return whether the order has to wait for data before it can plan one more minibatch."""
        return self._waiting is not None and self._waiting.waits

    @cached_property
    def _waiting(self) -> WaitsForData | None:
        return self.timeline if isinstance(self.timeline, WaitsForData) else None

    def own_slots(self) -> int:
        """Of the slots, those of this worker; one at least."""
        t = self.timeline
        return max(1, self.slots // t.workers + (t.rank < self.slots % t.workers))

    def keys(self, sequences: np.ndarray) -> list[int | str]:
        """Keys of sequences as they stand in the data."""
        return self.deserializer.table.names(sequences)


class Packer(Protocol):
    """A stage that makes minibatches of an order, data and a store: its `Inputs`."""

    def __next__(self) -> Made:
        """Return the next minibatch, None at the end of the epoch, and the position after it."""
        ...

    def get_state(self) -> Any:
        """Return the samples held back between minibatches, JSON-able; None if there are none."""
        ...

    def set_state(self, state: Any) -> None:
        """Hold back again what `state` says, and drop what was made ahead."""
        ...


class InStep(ABC):
    """Base of packers that ask the order for no more than they give out: one minibatch at a time.

    Args:
        inputs: What minibatches are made of.
    """

    def __init__(self, inputs: Inputs):
        self.inputs = inputs

    @abstractmethod
    def _make(self) -> Minibatch | None:
        """Return the next minibatch, None at the end of the epoch."""

    @abstractmethod
    def get_state(self) -> Any:
        """Return the samples held back, JSON-able."""

    def __next__(self) -> Made:
        """Return one minibatch and the position after it."""
        return self._make(), self.inputs.timeline.get_state(), self.get_state()
