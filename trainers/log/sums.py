"""What criteria and evaluation nodes add up to over minibatches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from networks.graph.network import Node
from trainers.log import text


class Sums:
    """Sums of the nodes' values, in double precision whatever the network computes in.

    Of a node that remembers the epoch (EpochAccumulator) the last value counts, and it is of one sample.

    Args:
        nodes: the nodes.
        values: what they add up to so far.
        samples: how many samples there were.
        counts: for each node, the samples that it is the sum of; None: all.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        values: NDArray[Any] | None = None,
        samples: int = 0,
        counts: NDArray[np.int64] | Sequence[int] | None = None,
    ):
        self._nodes = nodes
        self._last = np.array([node.kind.last_counts for node in nodes], bool)
        self.values: NDArray[Any] = np.zeros(len(nodes)) if values is None else values
        self.samples = samples
        self.counts = np.full(len(nodes), samples) if counts is None else np.array(counts, np.int64)

    def add(self, values: NDArray[Any], samples: int, counts: NDArray[np.int64] | None = None) -> None:
        """Add some minibatches.

        Args:
            values: `(minibatches, nodes)`.
            samples: how many the minibatches have together.
            counts: `(minibatches, nodes)`, the samples that each value is the sum of; None: all.
        """
        if len(values):
            self.values = np.where(self._last, values[-1], self.values + values.sum(axis=0))
        self.samples += samples
        self.counts = self.counts + (samples if counts is None else counts.sum(axis=0))

    def totals(self) -> list[text.Total]:
        """Per node, value and number of samples."""
        parts = zip(self._nodes, self.values, self._last, self.counts, strict=True)
        return [text.Total(node.name, float(value), 1 if last else int(n)) for node, value, last, n in parts]
