"""Sums of criteria over minibatches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.compile.evaluate import kept_lengths
from cntkpy.networks.graph.network import Node
from cntkpy.trainers.log.text import Total


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums of some criteria, in double precision whatever the network computes in.

    `Totals()` is the start for a loss and a metric, `Totals.start(nodes)` for nodes of a network.

    Attributes:
        values: float64[criteria], the sums. Of a node that remembers the epoch (EpochAccumulator) the last value.
        counts: int64[criteria], the samples that each value is the sum of.
        samples: Samples of all minibatches.
        minibatches: How many there were.
        replaced: bool[criteria], whether a later value replaces an earlier one.
    """

    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, np.int64))
    samples: int = 0
    minibatches: int = 0
    replaced: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(2, bool))

    @classmethod
    def start(cls, nodes: Sequence[Node]) -> Totals:
        """Return the totals of nodes before the first minibatch."""
        replaced = np.array([node.kind.last_counts for node in nodes], bool)
        return cls(np.zeros(len(nodes)), np.zeros(len(nodes), np.int64), replaced=replaced)

    @classmethod
    def of_loss(cls, loss: float, metric: float, samples: int, minibatches: int) -> Totals:
        """Return the totals of a loss and a metric."""
        return cls(np.array([loss, metric]), np.array([samples, samples]), samples, minibatches)

    def add(
        self, nodes: Sequence[Node], results: NDArray[np.float64], samples: int, counts: NDArray[np.int64] | None = None
    ) -> Totals:
        """Return the totals with some more minibatches.

        Args:
            nodes: The nodes.
            results: `(minibatches, columns)`, what `CompiledStep.run` returns: the values of the nodes, then the
                samples of those nodes that count their own.
            samples: Samples of these minibatches.
            counts: `(minibatches, nodes)`, the samples that each value is the sum of; None: all.
        """
        values = results[:, : len(nodes)]
        counted = np.full(len(nodes), samples) if counts is None else counts.sum(axis=0)
        counted[_counting(nodes)] = results[:, len(nodes) :].sum(axis=0)
        if not len(values):
            return self
        total = self.values + values.sum(axis=0)
        total[self.replaced] = values[-1, self.replaced]
        sizes = self.samples + samples, self.minibatches + len(values)
        return Totals(total, self.counts + counted, *sizes, self.replaced)

    def plus(self, further: Totals) -> Totals:
        """Return the sum of two."""
        sizes = self.samples + further.samples, self.minibatches + further.minibatches
        return Totals(self.values + further.values, self.counts + further.counts, *sizes, self.replaced)

    def since(self, earlier: Totals) -> Totals:
        """Return the sums since earlier totals."""
        sizes = self.samples - earlier.samples, self.minibatches - earlier.minibatches
        return Totals(self.values - earlier.values, self.counts - earlier.counts, *sizes, self.replaced)

    def joint(self, nodes: Sequence[Node], add_up: Callable[[list[float]], Sequence[float]]) -> Totals:
        """Return the totals of all processes, each of which has those of its own part.

        Args:
            nodes: The nodes.
            add_up: Adds up numbers of all processes.
        """
        counting, counts = _counting(nodes), self.counts.copy()
        sums = add_up([*map(float, self.values), *map(float, counts[counting])])
        counts[counting] = sums[len(nodes) :]
        return Totals(np.array(sums[: len(nodes)]), counts, self.samples, self.minibatches, self.replaced)

    def rows(self, nodes: Sequence[Node]) -> list[Total]:
        """Return for each node its name, its sum and its number of samples, as the log shows them."""
        parts = zip(nodes, self.values, self.replaced, self.counts, strict=True)
        return [Total(node.name, float(value), 1 if last else int(count)) for node, value, last, count in parts]

    def to_json(self) -> list[object]:
        """JSON-able form."""
        return [self.values.tolist(), self.samples, self.counts.tolist(), self.minibatches]

    @classmethod
    def from_json(cls, nodes: Sequence[Node], saved: Sequence[Any]) -> Totals:
        """Return the inverse of `to_json`."""
        values, samples, counts, *minibatches = saved
        start = cls.start(nodes)
        minibatches = int(minibatches[0]) if minibatches else 0
        return cls(np.array(values), np.array(counts, np.int64), samples, minibatches, start.replaced)

    # ---- of a loss and a metric

    @property
    def loss(self) -> float:
        """Sum of the loss over the samples."""
        return float(self.values[0])

    @property
    def metric(self) -> float:
        """Sum of the metric over the samples."""
        return float(self.values[1])

    @property
    def average_loss(self) -> float:
        """Loss per sample; 0 before the first sample."""
        return self.loss / self.samples if self.samples else 0.0

    @property
    def average_metric(self) -> float:
        """Metric per sample; 0 before the first sample."""
        return self.metric / self.samples if self.samples else 0.0

    def numbers(self) -> list[float]:
        """Loss, metric, samples, minibatches: the arguments of `of_loss`."""
        return [self.loss, self.metric, self.samples, self.minibatches]


def _counting(nodes: Sequence[Node]) -> list[int]:
    """Return the numbers of the nodes whose samples are counted while they are computed."""
    counted = kept_lengths(nodes)
    return [number for number, node in enumerate(nodes) if node in counted]
