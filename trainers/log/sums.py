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
    """

    def __init__(self, nodes: Sequence[Node], values: NDArray[Any] | None = None, samples: int = 0):
        self._nodes = nodes
        self._last = np.array([node.kind.last_counts for node in nodes], bool)
        self.values: NDArray[Any] = np.zeros(len(nodes)) if values is None else values
        self.samples = samples

    def add(self, values: NDArray[Any], samples: int) -> None:
        """Add the values `(minibatches, nodes)` of some minibatches; `samples` is how many they have together."""
        if len(values):
            self.values = np.where(self._last, values[-1], self.values + values.sum(axis=0))
        self.samples += samples

    def totals(self) -> list[text.Total]:
        """Per node, value and number of samples."""
        parts = zip(self._nodes, self.values, self._last, strict=True)
        return [text.Total(node.name, float(value), 1 if last else self.samples) for node, value, last in parts]
