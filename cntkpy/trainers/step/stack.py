"""Minibatches of one shape, stacked along a leading axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError, suggestion
from cntkpy.networks.arrays.sparse import Sparse
from cntkpy.networks.graph.network import Node
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.step.axes import Placed


@dataclass
class Stack:
    """Some minibatches of one shape, stacked along a leading axis.

    Attributes:
        batch: a `Batch` whose arrays have a leading axis of fixed capacity; only the first `len(minibatches)` count.
        minibatches: what the reader delivered.
        layouts: their layouts, without the padding; in a network with several time axes those of the main one.
        placed: where their sequences lie; None: as in `layouts`.
    """

    batch: Any
    minibatches: list[Minibatch]
    layouts: list[Layout]
    placed: list[Placed] | None = None

    def layout(self, k: int, node: Node, results: object = None) -> Layout:
        """Return the layout of a node's values for minibatch `k`; see `Placed.layout`."""
        return self.layouts[k] if self.placed is None or node.axis is None else self.placed[k].layout(node, results)

    def gaps(self, k: int, node: Node, layout: Layout) -> int:
        """Return the cells without sample in minibatch `k` as the reader laid it out, for a node with `layout`."""
        cells = _cells(self.minibatches[k], layout)
        if self.placed is not None and node.axis is not None:
            cells = self.placed[k].cells.get(node.axis, cells)
        return cells - layout.num_samples

    @property
    def carried_slots(self) -> int:
        """With truncated sequences, the number of slots whose activations continue to the next minibatch; else 0."""
        return self.layouts[0].S if self.minibatches[0].truncated else 0

    @property
    def samples(self) -> NDArray[np.int64]:
        """Real samples of every minibatch."""
        return np.array([layout.num_samples for layout in self.layouts], dtype=np.int64)

    @property
    def columns(self) -> NDArray[np.int64]:
        """Cells of every minibatch before padding, the reader's gaps included: what CNTK counts as samples
        in momentum, clipping and regularisation, if the criterion is a sum over the minibatch."""
        if self.placed is not None:
            return np.array([placed.columns for placed in self.placed], dtype=np.int64)
        pairs = zip(self.minibatches, self.layouts, strict=True)
        return np.array([_cells(minibatch, layout) for minibatch, layout in pairs], dtype=np.int64)

    def sizes(self, gaps: bool) -> NDArray[np.int64]:
        """Return the number of samples of every minibatch: its columns, or without `gaps` the real samples of
        the training criterion."""
        if gaps:
            return self.columns
        return self.samples if self.counts is None else self.counts[:, 0]

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """Samples of every minibatch that each reported node is the sum of, where there are several time axes."""
        return None if self.placed is None else np.array([placed.counts for placed in self.placed], dtype=np.int64)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Time steps of every minibatch before padding."""
        return np.array([layout.T for layout in self.layouts], dtype=np.int64)


@dataclass
class Prepared:
    """A minibatch on its way into a stack.

    Attributes:
        minibatch: the minibatch.
        layout: its layout.
        sparse: its sparse inputs in order of names.
        placed: where its sequences lie; None: as in `layout`.
        state: the position of the source after it.
    """

    minibatch: Minibatch
    layout: Layout
    sparse: list[Sparse]
    placed: Placed | None = None
    state: dict[str, Any] | None = None


def stream_of(minibatch: Minibatch, name: str) -> str:
    """Return the reader's stream for an input node; names ignore case."""
    if name in minibatch.streams:
        return name
    for stream in minibatch.streams:
        if stream.lower() == name.lower():
            return stream
    raise UserError(
        "MissingStream",
        f"the network needs the input '{name}', but the reader delivers no stream of that name",
        hint=suggestion(name, minibatch.streams)
        or f"the reader delivers {', '.join(minibatch.streams)}; an input and its stream have one name, so "
        f"give the reader a stream '{name}', or call the input of the network as one of them",
    )


def _cells(minibatch: Minibatch, layout: Layout) -> int:
    """Return the cells of a minibatch that count, gaps included."""
    return minibatch.columns_together or layout.T * layout.S
