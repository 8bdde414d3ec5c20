"""What criteria and evaluation nodes add up to over minibatches."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from networks.compile.evaluate import kept_lengths
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
        counted = kept_lengths(nodes)
        self._kept = [index for index, node in enumerate(nodes) if node in counted]
        self._last = np.array([node.kind.last_counts for node in nodes], bool)
        self.values: NDArray[Any] = np.zeros(len(nodes)) if values is None else values
        self.samples = samples
        self.counts = np.full(len(nodes), samples) if counts is None else np.array(counts, np.int64)

    def add(self, values: NDArray[Any], samples: int, counts: NDArray[np.int64] | None = None) -> None:
        """Add some minibatches.

        Args:
            values: `(minibatches, nodes)`, and behind them the samples that are counted, see `CompiledStep.run`.
            samples: how many the minibatches have together.
            counts: `(minibatches, nodes)`, the samples that each value is the sum of; None: all.
        """
        kept = values[:, len(self._nodes) :].sum(axis=0)
        values = values[:, : len(self._nodes)]
        if len(values):
            self.values = np.where(self._last, values[-1], self.values + values.sum(axis=0))
        self.samples += samples
        more = np.full(len(self._nodes), samples) if counts is None else counts.sum(axis=0)
        more[self._kept] = kept
        self.counts = self.counts + more

    def joint(self, total: Callable[[list[float]], Sequence[float]]) -> "Sums":
        """Those of all processes, of which each has the values of its own part; `total` adds up numbers of all."""
        found = total([*map(float, self.values), *map(float, self.counts[self._kept])])
        counts = self.counts.copy()
        counts[self._kept] = found[len(self._nodes) :]
        return Sums(self._nodes, np.array(found[: len(self._nodes)]), self.samples, counts)

    def totals(self) -> list[text.Total]:
        """Per node, value and number of samples."""
        parts = zip(self._nodes, self.values, self._last, self.counts, strict=True)
        return [text.Total(node.name, float(value), 1 if last else int(n)) for node, value, last, n in parts]
